//! Sorted sets against a simple model, in both forms, with snapshots that must not change.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::collection::{Kind, PACKED_MAX};

/// Scores by member, and the order of a sorted set.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    scores: BTreeMap<Vec<u8>, f64>,
    order: BTreeSet<(Ordered, Vec<u8>)>,
    called_skiplist: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.partial_cmp(&other.0).expect("scores are never NaN")
    }
}

impl Model {
    fn set(&mut self, limits: Limits, member: &[u8], score: f64) -> Update {
        let old = self.scores.get(member).copied();
        if old == Some(score) {
            return Update::Nothing;
        }
        if let Some(old) = old {
            self.order.remove(&(Ordered(old), member.to_vec()));
        } else {
            self.called_skiplist |=
                self.scores.len() >= limits.entries || member.len() > limits.value;
        }
        let score = if self.called_skiplist {
            score
        } else {
            score + 0.0
        };
        self.scores.insert(member.to_vec(), score);
        self.order.insert((Ordered(score), member.to_vec()));
        if old.is_some() {
            Update::Changed
        } else {
            Update::Added
        }
    }

    fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let score = self.scores.remove(member)?;
        self.order.remove(&(Ordered(score), member.to_vec()));
        if self.scores.is_empty() {
            self.called_skiplist = false;
        }
        Some(score)
    }

    fn items(&self) -> Vec<(Vec<u8>, f64)> {
        let item = |(score, member): &(Ordered, Vec<u8>)| (member.clone(), score.0);
        self.order.iter().map(item).collect()
    }
}

/// A value as the keyspace keeps it.
#[derive(Clone, Debug)]
enum Kept {
    Packed(Vec<u8>),
    Large(Box<Collection>),
}

impl Kept {
    fn look(&self) -> SortedSetRef<'_> {
        match self {
            Kept::Packed(bytes) => SortedSetRef::packed(bytes),
            Kept::Large(collection) => SortedSetRef::from(CollectionRef::Large(collection)),
        }
    }

    fn edit<R>(&mut self, limits: Limits, act: impl FnOnce(&mut SortedSetMut<'_, '_>) -> R) -> R {
        let mut draft = match self {
            Kept::Packed(bytes) => Draft::Packed(bytes),
            Kept::Large(collection) => Draft::Large(collection),
        };
        let result = act(&mut SortedSetMut::new(&mut draft, limits, 7, 1));
        match draft {
            Draft::Grown(grown) => *self = Kept::Large(grown),
            Draft::Packed(_) => {}
            Draft::Large(collection) if collection.is_empty() => *self = Kept::Packed(Vec::new()),
            Draft::Large(_) => {}
        }
        if let Kept::Packed(bytes) = self {
            assert!(bytes.len() <= PACKED_MAX, "{} bytes", bytes.len());
        }
        if let Kept::Large(collection) = self
            && let Collection::SortedSet(set) = &**collection
        {
            set.verify();
        }
        result
    }
}

fn items_of(set: SortedSetRef<'_>, ranks: Range<u64>, backwards: bool) -> Vec<(Vec<u8>, f64)> {
    let mut items = Vec::new();
    set.each(ranks, backwards, |member, score| {
        items.push((member.to_vec(), score))
    });
    items
}

fn bits(items: &[(Vec<u8>, f64)]) -> Vec<(Vec<u8>, u64)> {
    let bits = |(member, score): &(Vec<u8>, f64)| (member.clone(), score.to_bits());
    items.iter().map(bits).collect()
}

fn check(kept: &Kept, model: &Model) {
    let set = kept.look();
    let items = model.items();
    let len = items.len() as u64;
    assert_eq!(set.len(), len);
    if len > 0 {
        let expected = if model.called_skiplist {
            "skiplist"
        } else {
            "listpack"
        };
        assert_eq!(set.encoding(), expected);
    }
    assert_eq!(bits(&items_of(set, 0..len + 3, false)), bits(&items));
    let backwards: Vec<_> = items.iter().rev().cloned().collect();
    assert_eq!(items_of(set, 0..len, true), backwards);
    for (rank, (member, score)) in items.iter().enumerate() {
        assert_eq!(set.score(member), Some(*score));
        assert_eq!(set.rank(member), Some((rank as u64, *score)));
        assert_eq!(set.at(rank as u64), Some((&member[..], *score)));
    }
    assert_eq!(set.score(b"nobody"), None);
    assert_eq!(set.rank(b"nobody"), None);
    assert_eq!(set.at(len), None);
    let mut found = BTreeSet::new();
    let mut cursor = 0;
    loop {
        cursor = set.scan(cursor, 3, |member, score| {
            found.insert((Ordered(score), member.to_vec()));
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(found, model.order);
}

#[derive(Clone, Debug)]
enum Step {
    Set(u16, i8),
    Add(u16, i8),
    Remove(u16),
    RemoveRanks(u64, u64),
    Append(u8),
    Prepend(u8),
    Snapshot,
    CheckRanges(i8, bool, i8, bool, u16, u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..600_u16, any::<i8>()).prop_map(|(member, score)| Step::Set(member, score)),
        2 => (0..600_u16, any::<i8>()).prop_map(|(member, score)| Step::Add(member, score)),
        4 => (0..600_u16).prop_map(Step::Remove),
        1 => (0..400_u64, 0..60_u64).prop_map(|(start, count)| Step::RemoveRanks(start, count)),
        1 => any::<u8>().prop_map(Step::Append),
        1 => any::<u8>().prop_map(Step::Prepend),
        1 => Just(Step::Snapshot),
        1 => (any::<i8>(), any::<bool>(), any::<i8>(), any::<bool>(), 0..600_u16, 0..600_u16)
            .prop_map(|(a, b, c, d, e, f)| Step::CheckRanges(a, b, c, d, e, f)),
    ]
}

/// Short and long members.
fn name(number: u16) -> Vec<u8> {
    let mut name = format!("{number}").into_bytes();
    if number % 29 == 3 {
        name.resize(70 + usize::from(number), b'x');
    }
    name
}

fn check_ranges(kept: &Kept, model: &Model, step: &Step) {
    let Step::CheckRanges(min, min_excluded, max, max_excluded, low, high) = *step else {
        return;
    };
    let set = kept.look();
    let range = ScoreRange {
        min: f64::from(min) / 8.0,
        min_excluded,
        max: f64::from(max) / 8.0,
        max_excluded,
    };
    let within = |score: f64| {
        (score > range.min || (score == range.min && !min_excluded))
            && (score < range.max || (score == range.max && !max_excluded))
    };
    let expected: Vec<_> = model
        .items()
        .into_iter()
        .filter(|item| within(item.1))
        .collect();
    let ranks = set.ranks_by_score(&range);
    assert_eq!(ranks.end - ranks.start, expected.len() as u64);
    assert_eq!(items_of(set, ranks, false), expected);

    // The same members with one score.
    let mut level = Kept::Packed(Vec::new());
    let limits = Limits {
        entries: 20,
        value: 64,
    };
    for member in model.scores.keys() {
        level.edit(limits, |set| set.update(member, |_| Some(1.5)));
    }
    let (low, high) = (name(low), name(high));
    let bound = |excluded, name| {
        if excluded {
            MemberBound::Excluded(name)
        } else {
            MemberBound::Included(name)
        }
    };
    let range = MemberRange {
        min: bound(min_excluded, &low),
        max: bound(max_excluded, &high),
    };
    let within = |member: &&Vec<u8>| {
        (**member > low || (**member == low && !min_excluded))
            && (**member < high || (**member == high && !max_excluded))
    };
    let expected: Vec<Vec<u8>> = model.scores.keys().filter(within).cloned().collect();
    for backwards in [false, true] {
        let ranks = level.look().ranks_by_member(&range, backwards);
        let found = items_of(level.look(), ranks, false);
        let found: Vec<Vec<u8>> = found.into_iter().map(|(member, _)| member).collect();
        assert_eq!(found, expected);
    }
}

fn run(limits: Limits, steps: &[Step]) {
    let mut kept = Kept::Packed(Vec::new());
    let mut model = Model::default();
    let mut snapshots: Vec<(Kept, Model)> = Vec::new();
    for step in steps {
        match step {
            Step::Set(member, score) => {
                let (member, score) = (name(*member), f64::from(*score) / 8.0);
                let done = kept.edit(limits, |set| set.update(&member, |_| Some(score)));
                assert_eq!(done, model.set(limits, &member, score));
            }
            Step::Add(member, added) => {
                let (member, added) = (name(*member), -f64::from(*added) / 8.0);
                let old = model.scores.get(&member).copied();
                let new = old.unwrap_or(-0.0) + added;
                let done = kept.edit(limits, |set| {
                    set.update(&member, |seen| {
                        assert_eq!(seen, old);
                        Some(new)
                    })
                });
                assert_eq!(done, model.set(limits, &member, new));
                let done = kept.edit(limits, |set| set.update(&member, |_| None));
                assert_eq!(done, Update::Nothing);
            }
            Step::Remove(member) => {
                let member = name(*member);
                let removed = kept.edit(limits, |set| set.remove(&member));
                assert_eq!(removed, model.remove(&member));
            }
            Step::RemoveRanks(start, count) => {
                let ranks = *start..start + count;
                let gone: Vec<_> = model
                    .items()
                    .into_iter()
                    .skip(*start as usize)
                    .take(*count as usize)
                    .collect();
                let removed = kept.edit(limits, |set| set.remove_ranks(ranks, |_| {}));
                assert_eq!(removed, gone.len() as u64);
                for (member, score) in gone {
                    assert_eq!(model.remove(&member), Some(score));
                }
            }
            Step::Append(count) | Step::Prepend(count) => {
                let sign = if matches!(step, Step::Append(_)) {
                    1.0
                } else {
                    -1.0
                };
                for number in 0..u16::from(*count) {
                    let member = format!("m{sign}{number}").into_bytes();
                    let score = sign * (1000.0 + f64::from(number));
                    let done = kept.edit(limits, |set| set.update(&member, |_| Some(score)));
                    assert_eq!(done, model.set(limits, &member, score));
                }
            }
            Step::Snapshot if snapshots.len() < 4 => {
                snapshots.push((kept.clone(), model.clone()));
            }
            Step::Snapshot => {}
            Step::CheckRanges(..) => check_ranges(&kept, &model, step),
        }
        check(&kept, &model);
    }
    for (kept, model) in &snapshots {
        check(kept, model);
        if let Kept::Large(collection) = kept
            && let Collection::SortedSet(set) = &**collection
        {
            set.verify();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn acts_like_the_model(steps in prop::collection::vec(step(), 1..150)) {
        run(Limits { entries: 128, value: 64 }, &steps);
    }

    #[test]
    fn acts_like_the_model_whatever_it_is_called(
        entries in 0..400_usize,
        value in 0..700_usize,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        run(Limits { entries, value }, &steps);
    }

    #[test]
    fn built_is_what_was_put_in(
        numbers in prop::collection::btree_map(0..3000_u16, any::<i8>(), 0..600),
        entries in 0..600_usize,
    ) {
        let limits = Limits { entries, value: 64 };
        let mut model = Model::default();
        for (number, score) in &numbers {
            model.set(limits, &name(*number), f64::from(*score));
        }
        let items = model.items();
        let borrowed = || items.iter().map(|(member, score)| (&member[..], *score));
        let built = build(limits, 3, borrowed);
        if let (Built::Packed(_), true) = (&built, items.is_empty()) {
            return Ok(());
        }
        let kept = match built {
            Built::Packed(bytes) => Kept::Packed(bytes),
            Built::Large(collection) => Kept::Large(collection),
        };
        if let Kept::Large(collection) = &kept
            && let Collection::SortedSet(set) = &**collection
        {
            set.verify();
        }
        // Put together at once, nothing counts but what is there.
        let longest = items.iter().map(|(member, _)| member.len()).max().unwrap_or(0);
        model.called_skiplist = items.len() > entries || longest > 64;
        check(&kept, &model);
    }
}

#[test]
fn what_is_packed_has_its_tag_and_grows_when_it_is_too_long() {
    let limits = Limits {
        entries: 128,
        value: 64,
    };
    let mut kept = Kept::Packed(Vec::new());
    kept.edit(limits, |set| set.update(b"a", |_| Some(1.0)));
    let Kept::Packed(bytes) = &kept else {
        panic!("one member is packed");
    };
    assert_eq!(Kind::of_tag(bytes[0]), Some(Kind::SortedSet));
    assert_eq!(bytes.len(), 2 + 1 + 8 + 1 + 1);
    kept.edit(limits, |set| set.update(&[b'b'; 900], |_| Some(2.0)));
    assert!(matches!(kept, Kept::Packed(_)));
    assert_eq!(kept.look().encoding(), "skiplist");
    kept.edit(limits, |set| set.update(&[b'c'; 200], |_| Some(0.0)));
    assert!(matches!(kept, Kept::Large(_)));
    assert_eq!(kept.look().at(0), Some((&[b'c'; 200][..], 0.0)));
    assert_eq!(kept.edit(limits, |set| set.remove_ranks(0..9, |_| {})), 3);
    assert!(kept.look().is_empty());
}

#[test]
fn damaged_bytes_are_read_without_harm() {
    for bytes in [
        &[][..],
        &[3],
        &[3, 9],
        &[3, 2, 200, 1],
        &[3, 1, 3, 1, 2, 3, 4],
    ] {
        let set = SortedSetRef::packed(bytes);
        set.each(0..10, false, |_, _| {});
        set.each(0..10, true, |_, _| {});
        assert_eq!(set.score(b"x"), None);
    }
}
