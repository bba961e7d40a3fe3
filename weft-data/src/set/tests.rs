//! Sets in both forms against an ordered model, thresholds, algebra, and chance.
use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    intset_entries: 512,
    listpack_entries: 128,
    listpack_value: 64,
};
/// So low that short sequences pass through everything.
const LOW: Limits = Limits {
    intset_entries: 6,
    listpack_entries: 4,
    listpack_value: 5,
};
/// So high that large tables are still called after small forms.
const HIGH: Limits = Limits {
    intset_entries: 1_000_000,
    listpack_entries: 1_000_000,
    listpack_value: 1_000_000,
};

/// A set as a keyspace keeps it.
#[derive(Default)]
struct Kept {
    packed: Vec<u8>,
    large: Option<Box<Collection>>,
}

impl Kept {
    fn edit<R>(&mut self, limits: Limits, act: impl FnOnce(&mut SetMut<'_, '_>) -> R) -> R {
        let mut draft = match &mut self.large {
            Some(collection) => Draft::Large(collection),
            None => Draft::Packed(&mut self.packed),
        };
        let result = act(&mut SetMut::new(&mut draft, limits, 7));
        if let Draft::Grown(collection) = draft {
            self.large = Some(collection);
        }
        result
    }

    fn add(&mut self, limits: Limits, members: &[&[u8]]) -> usize {
        self.edit(limits, |set| set.add_all(members.iter().copied()))
    }

    fn look(&self) -> Option<SetRef<'_>> {
        let collection = match &self.large {
            Some(collection) => CollectionRef::Large(collection),
            None if self.packed.is_empty() => return None,
            None => CollectionRef::Packed(&self.packed),
        };
        Some(collection.into())
    }

    fn name(&self) -> &'static str {
        self.look().map_or("", |set| set.encoding().name())
    }

    fn members(&self) -> Vec<Vec<u8>> {
        self.look().map(members).unwrap_or_default()
    }
}

fn members(set: SetRef<'_>) -> Vec<Vec<u8>> {
    let mut members = Vec::new();
    set.for_each(|member| members.push(member.to_vec()));
    members
}

fn texts(numbers: impl Iterator<Item = u32>, before: &str) -> Vec<Vec<u8>> {
    numbers
        .map(|number| format!("{before}{number}").into_bytes())
        .collect()
}

fn slices(texts: &[Vec<u8>]) -> Vec<&[u8]> {
    texts.iter().map(Vec::as_slice).collect()
}

/// A set to which the members were added one by one.
fn kept(limits: Limits, members: &[Vec<u8>]) -> Kept {
    let mut kept = Kept::default();
    for member in members {
        kept.add(limits, &[member]);
    }
    kept
}

fn set(limits: Limits, members: &[Vec<u8>]) -> Set {
    let kept = kept(limits, members);
    kept.look()
        .map_or_else(|| Set::empty(Encoding::Intset), SetRef::snapshot)
}

fn joined(members: &[Vec<u8>]) -> String {
    let texts: Vec<_> = members
        .iter()
        .map(|member| String::from_utf8_lossy(member))
        .collect();
    texts.join(" ")
}

fn run(mut algebra: Algebra) -> Outcome {
    while algebra.step().is_some() {}
    algebra.finish().0
}

/// Draws that only look random.
fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |bound| {
        assert!(bound > 0);
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ mixed >> 31) * u128::from(bound)) >> 64) as u64
    }
}

#[test]
fn names_follow_the_thresholds() {
    let numbers = |count: u32| texts(1..count + 1, "");
    let words = |count: u32| texts(1..count + 1, "x");
    for (members, name) in [
        (numbers(512), "intset"),
        (numbers(513), "hashtable"),
        (words(128), "listpack"),
        (words(129), "hashtable"),
        ([numbers(127), words(1)].concat(), "listpack"),
        ([numbers(128), words(1)].concat(), "hashtable"),
        ([words(127), numbers(1)].concat(), "listpack"),
        (vec![vec![b'x'; 64]], "listpack"),
        (vec![vec![b'x'; 65]], "hashtable"),
        ([numbers(2), vec![vec![b'x'; 65]]].concat(), "hashtable"),
        (vec![b"01".to_vec()], "listpack"),
        (vec![b"1".to_vec(), b"+1".to_vec()], "listpack"),
        (
            vec![
                b"9223372036854775807".to_vec(),
                b"-9223372036854775808".to_vec(),
            ],
            "intset",
        ),
        (vec![b"9223372036854775808".to_vec()], "listpack"),
    ] {
        assert_eq!(kept(LIMITS, &members).name(), name, "{}", joined(&members));
    }
}

#[test]
fn the_first_addition_decides_by_its_size() {
    for (members, name) in [
        (texts(0..600, ""), "hashtable"),
        (vec![b"1".to_vec(); 512], "intset"),
        (vec![b"1".to_vec(); 513], "hashtable"),
        (vec![b"x".to_vec(); 128], "listpack"),
        (vec![b"x".to_vec(); 129], "hashtable"),
        ([texts(0..100, ""), texts(0..1, "x")].concat(), "listpack"),
    ] {
        let mut kept = Kept::default();
        kept.add(LIMITS, &slices(&members));
        assert_eq!(kept.name(), name);
    }
    let none = Limits {
        intset_entries: 0,
        ..LIMITS
    };
    assert_eq!(kept(none, &texts(1..3, "")).name(), "listpack");
    let none = Limits {
        listpack_entries: 0,
        ..none
    };
    assert_eq!(kept(none, &texts(1..2, "")).name(), "hashtable");
}

#[test]
fn integers_that_become_words_may_be_too_long() {
    let short = Limits {
        listpack_value: 3,
        ..LIMITS
    };
    let made = |texts: &[&[u8]]| {
        let mut kept = Kept::default();
        for text in texts {
            kept.add(short, &[text]);
        }
        kept
    };
    assert_eq!(made(&[b"12345"]).name(), "intset");
    assert_eq!(made(&[b"12345", b"x"]).name(), "hashtable");
    assert_eq!(made(&[b"-123", b"1", b"x"]).name(), "hashtable");
    assert_eq!(made(&[b"123", b"1", b"x"]).name(), "listpack");
    let mut kept = made(&[b"123456", b"1"]);
    assert!(kept.edit(short, |set| set.remove(b"123456")));
    kept.add(short, &[b"x"]);
    assert_eq!(kept.name(), "listpack");
}

#[test]
fn orders_are_those_that_the_names_stand_for() {
    let words = |text: &str| -> Vec<Vec<u8>> {
        text.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    };
    for (added, order) in [
        ("5 7 3 x 2", "3 5 7 x 2"),
        ("5 x y 7 3", "5 x y 7 3"),
        (
            "3 -70000 5 9223372036854775807 -1",
            "-70000 -1 3 5 9223372036854775807",
        ),
    ] {
        assert_eq!(joined(&kept(LIMITS, &words(added)).members()), order);
    }
    // As large as the default thresholds let these names be.
    let long: Vec<Vec<u8>> = (0..128)
        .rev()
        .map(|number| format!("{number:064}").into_bytes())
        .collect();
    let listpack = kept(LIMITS, &long);
    assert_eq!((listpack.name(), listpack.members()), ("listpack", long));
    assert!(listpack.large.is_some());
    let wide: Vec<Vec<u8>> = (0..512_i64)
        .rev()
        .map(|number| (i64::MAX - number).to_string().into_bytes())
        .collect();
    let intset = kept(LIMITS, &wide.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!((intset.name(), intset.members()), ("intset", wide));
}

#[test]
fn a_large_set_keeps_its_name_while_thresholds_allow() {
    let numbers = texts(0..5000, "");
    let mut intset = kept(HIGH, &numbers);
    assert_eq!((intset.name(), intset.members().len()), ("intset", 5000));
    intset.add(HIGH, &[b"x"]);
    assert_eq!(intset.name(), "listpack");
    intset.add(LIMITS, &[b"y"]);
    assert_eq!((intset.name(), intset.members().len()), ("hashtable", 5002));
    let listpack = kept(HIGH, &texts(0..5000, "a rather long member "));
    assert_eq!(listpack.name(), "listpack");
    let Some(Collection::Set(Set(Form::Table { .. }))) = listpack.large.as_deref() else {
        panic!("five thousand members are not flat");
    };
}

#[test]
fn emptied_sets_are_no_sets() {
    let mut packed = kept(LIMITS, &texts(0..3, ""));
    for member in texts(0..3, "") {
        assert!(packed.edit(LIMITS, |set| set.remove(&member)));
        assert!(!packed.edit(LIMITS, |set| set.remove(&member)));
    }
    assert!(packed.packed.is_empty() && packed.large.is_none());
    let mut large = kept(LIMITS, &texts(0..2000, "m"));
    let popped = large.edit(LIMITS, |set| set.pop_many(5000, dice(1)));
    assert_eq!(popped.len(), 2000);
    assert!(large.look().is_some_and(SetRef::is_empty));
}

#[test]
fn popping_most_makes_a_set_anew() {
    for (members, count, name) in [
        (texts(0..131, "x"), 110, "listpack"),
        (texts(0..131, "x"), 109, "hashtable"),
        (texts(0..200, "x"), 167, "listpack"),
        (texts(0..200, "x"), 166, "hashtable"),
        (texts(0..800, "x"), 672, "listpack"),
        (texts(0..800, "x"), 671, "hashtable"),
        (texts(0..2000, ""), 1990, "listpack"),
        (texts(0..500, ""), 490, "intset"),
    ] {
        let mut kept = kept(LIMITS, &members);
        let popped = kept.edit(LIMITS, |set| set.pop_many(count, dice(3)));
        assert_eq!(popped.len(), count);
        assert_eq!(kept.name(), name, "{} less {count}", members.len());
        let mut all = kept.members();
        match popped {
            Popped::Gathered(gathered) => all.extend(gathered.iter().map(<[u8]>::to_vec)),
            Popped::Rest(set) => set.as_ref().for_each(|member| all.push(member.to_vec())),
        }
        let all: BTreeSet<Vec<u8>> = all.into_iter().collect();
        assert_eq!(all, members.into_iter().collect());
    }
    // A small set that is called hashtable, and one that is not.
    let mut sticky = kept(LOW, &texts(0..10, "x"));
    assert_eq!(sticky.name(), "hashtable");
    sticky.edit(LIMITS, |set| set.pop_many(9, dice(3)));
    assert_eq!(sticky.name(), "listpack");
    let mut listpack = kept(LIMITS, &texts(0..10, "x"));
    listpack.edit(LIMITS, |set| set.pop_many(7, dice(3)));
    assert!(listpack.members().is_sorted(), "the order stays");
}

#[test]
fn what_a_stored_result_is_called() {
    use Operation::{Difference, Intersection, Union};
    let make = |text: &str| set(LIMITS, &parse(text));
    fn parse(text: &str) -> Vec<Vec<u8>> {
        let words = text.split(' ').filter(|word| !word.is_empty());
        words.map(|word| word.as_bytes().to_vec()).collect()
    }
    let stored = |operation, operands: &[&str], limits: Limits| {
        let sets = operands.iter().map(|text| make(text)).collect();
        match run(Algebra::stored(operation, sets, limits, 1)) {
            Outcome::Set(set) => {
                let text = joined(&members(set.as_ref()));
                format!("{} {text}", set.as_ref().encoding().name())
            }
            other => panic!("a set was asked for, not {other:?}"),
        }
    };
    for (operation, operands, result) in [
        (Difference, &["x 3 1 y", "x y"][..], "intset 1 3"),
        (Difference, &["x 3 1 y", "x"], "listpack 1 3 y"),
        (Difference, &["x 3 1 y", "x", "y"], "intset 1 3"),
        (Difference, &["x 3 1 y", "x", "y", "y"], "listpack 3 1"),
        (Difference, &["x 3 1 y", "", "", "", "x", "y"], "intset 1 3"),
        (Difference, &["", "x"], "intset "),
        (Difference, &["x y", "y", "x"], "intset "),
        (Union, &["3 2 1 x", "4 5"], "listpack 1 2 3 x 4 5"),
        (Union, &["5 4", "3 x 1"], "listpack 3 4 5 x 1"),
        (Union, &["2 1", "1 3"], "intset 1 2 3"),
        (Intersection, &["3 x 1", "x 1 3 y"], "listpack 3 x 1"),
        (Intersection, &["3 x 1", "1 3 y z"], "intset 1 3"),
        (Intersection, &["3 1 2", "x 2 1 y"], "intset 1 2"),
        (Intersection, &["3 1 2", ""], "intset "),
    ] {
        assert_eq!(stored(operation, operands, LIMITS), result, "{operands:?}");
    }
    // Thresholds that have been lowered since.
    let low = Limits {
        intset_entries: 3,
        ..LIMITS
    };
    let numbers = "1 2 3 4 5";
    assert!(stored(Intersection, &[numbers], low).starts_with("hashtable "));
    assert!(stored(Union, &[numbers], low).starts_with("hashtable "));
    let listed = ["y 3 2 4 1", "5 4 3 2 1 x"];
    assert_eq!(stored(Intersection, &listed, low), "listpack 3 2 4 1");
}

#[test]
fn algebra_over_large_sets() {
    let a = set(LIMITS, &texts(0..3000, "m"));
    let b = set(LIMITS, &texts(1000..4000, "m"));
    let c = set(LIMITS, &texts(1990..2100, "m"));
    let list = |operation, sets: &[&Set]| {
        let sets = sets.iter().map(|set| (*set).clone()).collect();
        let mut found = match run(Algebra::members(operation, sets, LIMITS, 1)) {
            Outcome::Gathered(gathered) => gathered.iter().map(<[u8]>::to_vec).collect(),
            Outcome::Set(set) => members(set.as_ref()),
            Outcome::Count(_) => panic!("members were asked for"),
        };
        found.sort();
        found
    };
    let sorted = |mut texts: Vec<Vec<u8>>| {
        texts.sort();
        texts
    };
    let expected = sorted(texts(1990..2100, "m"));
    assert_eq!(list(Operation::Intersection, &[&a, &b, &c]), expected);
    let expected = sorted(texts(0..4000, "m"));
    assert_eq!(list(Operation::Union, &[&c, &a, &b]), expected);
    let expected = sorted(texts(0..1000, "m"));
    assert_eq!(list(Operation::Difference, &[&a, &b, &c]), expected);
    let expected = sorted(texts(0..1990, "m"));
    let expected = [expected, texts(2100..3000, "m")].concat();
    assert_eq!(list(Operation::Difference, &[&a, &c]), sorted(expected));
    for (limit, count) in [(usize::MAX, 2000), (2000, 2000), (7, 7)] {
        let sets = vec![a.clone(), b.clone()];
        match run(Algebra::intersection_count(sets, limit, LIMITS)) {
            Outcome::Count(found) => assert_eq!(found, count),
            other => panic!("a number was asked for, not {other:?}"),
        }
    }
    assert_eq!((a.len(), b.len(), c.len()), (3000, 3000, 110));
}

/// Whether these counts could well be those of equally likely cells: the chance to see them so uneven is above 0.001.
fn is_even(counts: &[u64]) -> bool {
    let total: u64 = counts.iter().sum();
    let mean = total as f64 / counts.len() as f64;
    let sum: f64 = counts
        .iter()
        .map(|count| (*count as f64 - mean).powi(2) / mean)
        .sum();
    // Wilson and Hilferty's approximation.
    let degrees = (counts.len() - 1) as f64;
    let z =
        ((sum / degrees).cbrt() - (1.0 - 2.0 / (9.0 * degrees))) / (2.0 / (9.0 * degrees)).sqrt();
    z < 3.09
}

/// Something that yields members.
type Run<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&[u8]));

#[test]
fn chance_is_even() {
    assert!(!is_even(&[100, 140, 60, 100]));
    let mut draw = dice(11);
    for (members, limits) in [
        (texts(0..100, ""), LIMITS),
        (texts(0..100, "member "), LIMITS),
        (texts(0..100, "member "), LOW),
    ] {
        let source = set(limits, &members);
        let index: BTreeMap<Vec<u8>, usize> = members.iter().cloned().zip(0..).collect();
        let count = |run: Run<'_>| {
            let mut counts = vec![0; members.len()];
            run(&mut |text| counts[index[text]] += 1);
            counts
        };
        let single = count(&mut |each| {
            for _ in 0..20_000 {
                let member = source.as_ref().random(&mut draw).expect("members");
                member.with(&mut *each);
            }
        });
        assert!(is_even(&single), "{single:?}");
        for wanted in [5, 30, 70] {
            let different = count(&mut |each| {
                for _ in 0..500 {
                    let mut sample = Sample::different(source.clone(), wanted);
                    let mut seen = BTreeSet::new();
                    while sample.left() > 0 {
                        sample.step(&mut draw, |member| {
                            assert!(seen.insert(member.to_vec()));
                            member.with(&mut *each);
                        });
                    }
                    assert_eq!(seen.len(), wanted);
                }
            });
            // Drawn without putting back, counts vary less than that; so this asks for less than it could.
            assert!(is_even(&different), "{different:?}");
        }
        let repeated = count(&mut |each| {
            let mut sample = Sample::repeated(source.clone(), 20_000);
            while sample.left() > 0 {
                sample.step(&mut draw, |member| member.with(&mut *each));
            }
        });
        assert!(is_even(&repeated), "{repeated:?}");
        for wanted in [1, 20, 95] {
            let popped = count(&mut |each| {
                for _ in 0..500 {
                    let mut collection = Collection::Set(source.clone());
                    let mut draft = Draft::Large(&mut collection);
                    let mut set = SetMut::new(&mut draft, LIMITS, 3);
                    match set.pop_many(wanted, &mut draw) {
                        Popped::Gathered(gathered) => gathered.iter().for_each(&mut *each),
                        Popped::Rest(set) => {
                            set.as_ref().for_each(|member| member.with(&mut *each))
                        }
                    }
                }
            });
            assert!(is_even(&popped), "{popped:?}");
        }
        let first = count(&mut |each| {
            for _ in 0..10_000 {
                let mut collection = Collection::Set(source.clone());
                let mut draft = Draft::Large(&mut collection);
                let popped = SetMut::new(&mut draft, LIMITS, 3).pop(&mut draw);
                each(&popped.expect("members"));
            }
        });
        assert!(is_even(&first), "{first:?}");
    }
}

#[test]
fn all_different_members_come_in_order() {
    let members = texts(0..20, "x");
    let mut sample = Sample::different(set(LIMITS, &members), 50);
    assert_eq!(sample.left(), 20);
    let mut seen = Vec::new();
    while sample.left() > 0 {
        sample.step(dice(1), |member| seen.push(member.to_vec()));
    }
    assert_eq!(seen, members);
    assert_eq!(Sample::repeated(set(LIMITS, &[]), 5).left(), 0);
    assert_eq!(Sample::different(set(LIMITS, &[]), 5).left(), 0);
}

#[test]
fn a_scan_yields_what_stays() {
    let mut kept = kept(LIMITS, &texts(0..500, "stays "));
    let mut cursor = 0;
    let mut seen = BTreeSet::new();
    let mut turn = 0;
    loop {
        let set = kept.look().expect("a set");
        cursor = set.scan(cursor, 10, |member| {
            seen.insert(member.to_vec());
        });
        if cursor == 0 {
            break;
        }
        turn += 1;
        kept.add(
            LIMITS,
            &slices(&texts(turn * 100..turn * 100 + 300, "comes ")),
        );
        for text in texts(turn * 100..turn * 100 + 250, "comes ") {
            kept.edit(LIMITS, |set| set.remove(&text));
        }
    }
    for text in texts(0..500, "stays ") {
        assert!(seen.contains(&text));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<Vec<u8>>),
    Remove(Vec<u8>),
    Pop(usize),
    Snapshot,
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (-12..12_i32).prop_map(|number| number.to_string().into_bytes()),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(40_000), Just(-3_000_000_000)]
            .prop_map(|number: i64| number.to_string().into_bytes()),
        4 => vec(b'a'..b'e', 0..3),
        1 => vec(any::<u8>(), 0..8),
        1 => (0..3_usize, any::<u8>()).prop_map(|(times, byte)| vec![byte; 100 * times + 60]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => vec(member(), 1..8).prop_map(Step::Add),
        4 => member().prop_map(Step::Remove),
        1 => (0..12_usize).prop_map(Step::Pop),
        1 => Just(Step::Snapshot),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    prop_oneof![Just(LIMITS), Just(LOW), Just(HIGH)]
}

proptest! {
    #[test]
    fn behaves_like_a_model(steps in vec((limits(), step()), 0..60), seed in any::<u64>()) {
        let mut kept = Kept::default();
        let mut model: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut snapshots: Vec<(Set, BTreeSet<Vec<u8>>)> = Vec::new();
        for (limits, step) in steps {
            match step {
                Step::Add(members) => {
                    let before = model.len();
                    model.extend(members.iter().cloned());
                    prop_assert_eq!(kept.add(limits, &slices(&members)), model.len() - before);
                }
                Step::Remove(member) => {
                    let removed = kept.edit(limits, |set| set.remove(&member));
                    prop_assert_eq!(removed, model.remove(&member));
                }
                Step::Pop(count) => {
                    let popped = kept.edit(limits, |set| set.pop_many(count, dice(seed)));
                    let mut gone = Vec::new();
                    match popped {
                        Popped::Gathered(gathered) => gone.extend(gathered.iter().map(<[u8]>::to_vec)),
                        Popped::Rest(set) => set.as_ref().for_each(|member| gone.push(member.to_vec())),
                    }
                    prop_assert_eq!(gone.len(), count.min(model.len()));
                    for member in gone {
                        prop_assert!(model.remove(&member));
                    }
                }
                Step::Snapshot => {
                    if let Some(set) = kept.look() {
                        snapshots.push((set.snapshot(), model.clone()));
                    }
                }
            }
            let found = kept.members();
            prop_assert_eq!(found.len(), model.len());
            if let Some(set) = kept.look() {
                prop_assert_eq!(set.len(), model.len());
                prop_assert!(model.iter().all(|member| set.contains(member)));
                if let Some(few) = set.few() {
                    let few: Vec<_> = few.map(Member::to_vec).collect();
                    prop_assert_eq!(&few, &found);
                }
                let mut walked = Vec::new();
                let mut walk = Walk::new(set.snapshot());
                while !walk.is_over() {
                    walk.step(|member| walked.push(member.to_vec()));
                }
                prop_assert_eq!(&walked, &found);
            }
            if kept.large.is_none() && !kept.packed.is_empty() {
                prop_assert!(is_valid(&kept.packed));
            }
            prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), model.clone());
            if kept.large.as_ref().is_some_and(|collection| collection.is_empty()) {
                kept = Kept::default();
            }
        }
        for (set, model) in snapshots {
            let found: BTreeSet<Vec<u8>> = members(set.as_ref()).into_iter().collect();
            prop_assert_eq!(&found, &model);
            match set.into_built() {
                Some(Built::Packed(bytes)) => {
                    prop_assert!(is_valid(&bytes));
                    let set = SetRef::from(CollectionRef::Packed(&bytes));
                    prop_assert_eq!(members(set).into_iter().collect::<BTreeSet<_>>(), model);
                }
                Some(Built::Large(collection)) => prop_assert_eq!(collection.len(), model.len()),
                None => prop_assert!(model.is_empty()),
            }
        }
    }

    #[test]
    fn survives_any_bytes(bytes in vec(prop_oneof![0..20_u8, any::<u8>()], 1..40), word in member()) {
        let set = SetRef(View::Flat(&bytes));
        let count = set.few().map_or(0, Iterator::count);
        if is_valid(&bytes) {
            prop_assert_eq!(count, set.len());
        }
        let _ = set.contains(&word);
        let _ = set.random(dice(5));
        let mut walk = Walk::new(set.snapshot());
        while !walk.is_over() {
            walk.step(|_| ());
        }
    }
}
