//! Hashes against a list of fields in Redis's order, in every form.

use super::*;
use fastrand::Rng;
use std::collections::BTreeMap;

type Row = (Vec<u8>, Vec<u8>, Option<u64>);

/// What a hash should hold, in the order of a listpack, and what it should be called.
#[derive(Clone, Debug)]
struct Model {
    rows: Vec<Row>,
    called: Encoding,
}

impl Model {
    fn place(&self, deadline: Option<u64>) -> usize {
        let end = self.rows.len();
        deadline.map_or(end, |ms| {
            let goes_before = |row: &Row| row.2.is_none_or(|other| other >= ms);
            self.rows.iter().position(goes_before).unwrap_or(end)
        })
    }

    fn insert(&mut self, row: Row) {
        let at = self.place(row.2);
        self.rows.insert(at, row);
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        self.rows.iter().position(|row| row.0 == name)
    }

    fn call_at_least(&mut self, called: Encoding) {
        if self.called == Encoding::Listpack || called == Encoding::Hashtable {
            self.called = called;
        }
    }

    fn set(&mut self, name: &[u8], value: &[u8], deadline: Deadline, limits: &Limits) -> bool {
        if name.len().max(value.len()) > limits.value {
            self.call_at_least(Encoding::Hashtable);
        }
        if matches!(deadline, Deadline::At(_)) {
            self.call_at_least(Encoding::ListpackEx);
        }
        let Some(at) = self.find(name) else {
            self.insert((name.to_vec(), value.to_vec(), deadline.applied_to(None)));
            if self.rows.len() > limits.entries {
                self.call_at_least(Encoding::Hashtable);
            }
            return true;
        };
        let old = self.rows[at].2;
        let stays = match deadline {
            Deadline::Keep => true,
            Deadline::Clear => old.is_none(),
            Deadline::At(_) => false,
        };
        if stays {
            self.rows[at].1 = value.to_vec();
        } else {
            self.rows.remove(at);
            self.insert((name.to_vec(), value.to_vec(), deadline.applied_to(old)));
        }
        false
    }

    fn set_deadline(&mut self, name: &[u8], deadline: Option<u64>) -> bool {
        let Some(at) = self.find(name) else {
            return false;
        };
        if deadline.is_some() {
            self.call_at_least(Encoding::ListpackEx);
        }
        if deadline.is_some() || self.rows[at].2.is_some() {
            let (name, value, _) = self.rows.remove(at);
            self.insert((name, value, deadline));
        }
        true
    }
}

/// A key's place, as the keyspace has it.
#[derive(Clone, Debug)]
enum Kept {
    Packed(Vec<u8>),
    Large(Box<Collection>),
}

impl Kept {
    fn edit<R>(&mut self, limits: Limits, act: impl FnOnce(&mut HashMut<'_, '_>) -> R) -> R {
        let mut scratch = Vec::new();
        let (result, kept) = match self {
            Kept::Packed(bytes) => {
                scratch.clone_from(bytes);
                let mut draft = Draft::Packed(&mut scratch);
                let result = act(&mut HashMut::new(&mut draft, limits, 7));
                let grown = match draft {
                    Draft::Grown(collection) => Some(Kept::Large(collection)),
                    _ => None,
                };
                (result, Some(grown.unwrap_or(Kept::Packed(scratch))))
            }
            Kept::Large(collection) => {
                let mut draft = Draft::Large(collection);
                (act(&mut HashMut::new(&mut draft, limits, 7)), None)
            }
        };
        if let Some(kept) = kept {
            *self = kept;
        }
        if let Kept::Packed(bytes) = self {
            assert!(bytes.is_empty() || is_valid(bytes), "{bytes:?}");
        }
        result
    }

    fn look(&self) -> Option<HashRef<'_>> {
        match self {
            Kept::Packed(bytes) if bytes.is_empty() => None,
            Kept::Packed(bytes) => Some(CollectionRef::Packed(bytes).into()),
            Kept::Large(collection) if collection.is_empty() => None,
            Kept::Large(collection) => Some(CollectionRef::Large(collection).into()),
        }
    }
}

fn row_of(field: Field<'_>) -> Row {
    let value = match field.value {
        Value::Bytes(bytes) => bytes.to_vec(),
        Value::Rope(rope) => rope.to_vec(),
    };
    (field.name.to_vec(), value, field.deadline)
}

fn walk(hash: HashRef<'_>, now_ms: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut walk = Walk::new(hash.snapshot(), now_ms);
    while !walk.is_over() {
        walk.step(|field| rows.push(row_of(field)));
    }
    rows
}

fn assert_same(kept: &Kept, model: &Model, now_ms: u64) {
    let Some(hash) = kept.look() else {
        assert!(model.rows.is_empty());
        return;
    };
    assert_eq!(hash.len(), model.rows.len());
    assert_eq!(hash.encoding(), model.called);
    assert_eq!(hash.due(), model.rows.iter().filter_map(|row| row.2).min());
    if let View::Keyed(keyed) = hash.0 {
        keyed.check();
    }
    let live: Vec<Row> = model
        .rows
        .iter()
        .filter(|row| row.2.is_none_or(|ms| ms > now_ms))
        .cloned()
        .collect();
    assert_eq!(hash.live_len(now_ms), live.len());
    let mut walked = walk(hash, now_ms);
    if matches!(hash.0, View::Flat(_)) && hash.encoding() != Encoding::Hashtable {
        assert_eq!(walked, live);
    }
    let mut wanted = live.clone();
    walked.sort();
    wanted.sort();
    assert_eq!(walked, wanted);
    let mut scanned = Vec::new();
    let mut cursor = 0;
    loop {
        cursor = hash.scan(cursor, 10, now_ms, |field| scanned.push(row_of(field)));
        if cursor == 0 {
            break;
        }
    }
    scanned.sort();
    assert_eq!(scanned, wanted);
    for row in &model.rows {
        assert_eq!(hash.get_any(&row.0).map(row_of), Some(row.clone()));
        assert_eq!(hash.get(&row.0, now_ms).is_some(), live.contains(row));
    }
}

/// How large names and values get.
#[derive(Clone, Copy)]
struct Sizes {
    fields: u32,
    value: usize,
}

fn run(seed: u64, limits: Limits, sizes: Sizes, steps: usize) {
    let mut rng = Rng::with_seed(seed);
    let fresh = Model {
        rows: Vec::new(),
        called: Encoding::Listpack,
    };
    let (mut kept, mut model) = (Kept::Packed(Vec::new()), fresh.clone());
    let mut snapshots: Vec<(Kept, Model, u64)> = Vec::new();
    let mut now = 1_000_000;
    for _ in 0..steps {
        let name = format!("f{}", rng.u32(..sizes.fields)).into_bytes();
        let deadline = now + rng.u64(1..40);
        match rng.u32(..100) {
            0..45 => {
                let len = rng.usize(..sizes.value);
                let value: Vec<u8> = std::iter::repeat_with(|| rng.alphanumeric() as u8)
                    .take(len)
                    .collect();
                let change = match rng.u32(..4) {
                    0 => Deadline::Keep,
                    1 => Deadline::At(deadline),
                    _ => Deadline::Clear,
                };
                let rope = Rope::from_slice(&value);
                let given = if len >= ROPE_MIN {
                    Value::Rope(&rope)
                } else {
                    Value::Bytes(&value)
                };
                let is_new = kept.edit(limits, |hash| hash.set(&name, given, change));
                assert_eq!(is_new, model.set(&name, &value, change, &limits));
            }
            45..65 => {
                let deadline = rng.bool().then_some(deadline);
                let is_there = kept.edit(limits, |hash| hash.set_deadline(&name, deadline));
                assert_eq!(is_there, model.set_deadline(&name, deadline));
            }
            65..85 => {
                let removed = kept.edit(limits, |hash| hash.remove(&name));
                let at = model.find(&name);
                assert_eq!(removed, at.is_some());
                at.map(|at| model.rows.remove(at));
            }
            85..90 => {
                now += rng.u64(..30);
                let most = rng.usize(..8);
                let mut names = Vec::new();
                let count = kept.edit(limits, |hash| {
                    hash.expire_due(now, most, |name| names.push(name.to_vec()))
                });
                assert_eq!(count, names.len());
                let due = model
                    .rows
                    .iter()
                    .filter(|row| row.2.is_some_and(|ms| ms <= now))
                    .count();
                assert_eq!(count, due.min(most));
                let mut deadlines = Vec::new();
                for name in names {
                    let at = model.find(&name).expect("it was there");
                    deadlines.push(model.rows.remove(at).2.expect("it expired"));
                }
                assert!(deadlines.is_sorted() && deadlines.iter().all(|&ms| ms <= now));
            }
            90..92 => {
                let due = model
                    .find(&name)
                    .filter(|&at| model.rows[at].2.is_some_and(|ms| ms <= now));
                assert_eq!(
                    kept.edit(limits, |hash| hash.remove_due(&name, now)),
                    due.is_some()
                );
                due.map(|at| model.rows.remove(at));
            }
            92..97 => assert_same(&kept, &model, now),
            _ => {
                if snapshots.len() > 2 {
                    let (kept, model, now) = snapshots.swap_remove(rng.usize(..snapshots.len()));
                    assert_same(&kept, &model, now);
                }
                snapshots.push((kept.clone(), model.clone(), now));
            }
        }
        if kept.look().is_none() {
            assert!(model.rows.is_empty());
            (kept, model) = (Kept::Packed(Vec::new()), fresh.clone());
        }
    }
    snapshots.push((kept, model, now));
    for (kept, model, now) in &snapshots {
        assert_same(kept, model, *now);
    }
}

const REDIS: Limits = Limits {
    entries: 512,
    value: 64,
};

#[test]
fn small_hashes_are_listpacks() {
    for seed in 0..20 {
        run(
            seed,
            REDIS,
            Sizes {
                fields: 12,
                value: 20,
            },
            1500,
        );
    }
}

#[test]
fn large_listpacks_keep_their_order() {
    for seed in 20..25 {
        run(
            seed,
            REDIS,
            Sizes {
                fields: 400,
                value: 65,
            },
            2500,
        );
    }
}

#[test]
fn hashes_become_hashtables() {
    for seed in 30..40 {
        run(
            seed,
            Limits {
                entries: 40,
                value: 30,
            },
            Sizes {
                fields: 120,
                value: 31,
            },
            2500,
        );
        run(
            seed,
            Limits {
                entries: 5,
                value: 30,
            },
            Sizes {
                fields: 30,
                value: 34,
            },
            1500,
        );
    }
}

#[test]
fn long_values_are_kept_apart() {
    for seed in 40..44 {
        run(
            seed,
            REDIS,
            Sizes {
                fields: 10,
                value: 2 * ROPE_MIN,
            },
            400,
        );
        run(
            seed,
            Limits {
                entries: 512,
                value: 1 << 20,
            },
            Sizes {
                fields: 20,
                value: 40_000,
            },
            400,
        );
    }
}

fn hash_of_fields(count: usize, limits: Limits) -> Kept {
    let mut kept = Kept::Packed(Vec::new());
    for number in 0..count {
        kept.edit(limits, |hash| {
            hash.set(
                format!("{number}").as_bytes(),
                Value::Bytes(b"v"),
                Deadline::Clear,
            )
        });
    }
    kept
}

#[test]
fn random_fields_are_uniform_among_those_that_live() {
    for (seed, limits) in [
        (1, REDIS),
        (
            2,
            Limits {
                entries: 10,
                value: 64,
            },
        ),
    ] {
        let mut kept = hash_of_fields(150, limits);
        for number in 100..150 {
            kept.edit(limits, |hash| {
                hash.set_deadline(format!("{number}").as_bytes(), Some(5))
            });
        }
        let hash = kept.look().expect("it has fields");
        let mut rng = Rng::with_seed(seed);
        let mut times: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for _ in 0..100_000 {
            let field = hash
                .random(10, &mut |bound| rng.u64(..bound))
                .expect("some live");
            *times.entry(field.name.to_vec()).or_default() += 1;
        }
        assert_eq!(times.len(), 100);
        let chi_square: f64 = times
            .values()
            .map(|&times| (f64::from(times) - 1000.0).powi(2) / 1000.0)
            .sum();
        // The quantile of 99 degrees of freedom for p = 0.001.
        assert!(chi_square < 148.23, "{chi_square}");
    }
}

#[test]
fn no_random_field_where_none_lives() {
    for limits in [
        REDIS,
        Limits {
            entries: 1,
            value: 1,
        },
    ] {
        let mut kept = hash_of_fields(3, limits);
        for number in 0..3 {
            kept.edit(limits, |hash| {
                hash.set_deadline(format!("{number}").as_bytes(), Some(5))
            });
        }
        let hash = kept.look().expect("they are there");
        assert_eq!(hash.live_len(5), 0);
        assert!(hash.random(5, &mut |_| 0).is_none());
        assert_eq!(hash.live_len(4), 3);
    }
}

#[test]
fn a_scan_gives_what_stays_while_the_form_changes() {
    let limits = Limits {
        entries: 512,
        value: 64,
    };
    let mut kept = hash_of_fields(500, limits);
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = 0;
    let mut round = 0;
    loop {
        let hash = kept.look().expect("it has fields");
        cursor = hash.scan(cursor, 10, 0, |field| {
            seen.insert(field.name.to_vec());
        });
        if cursor == 0 {
            break;
        }
        round += 1;
        for number in 0..50 {
            let name = format!("other {round} {number}");
            kept.edit(limits, |hash| {
                hash.set(name.as_bytes(), Value::Bytes(b""), Deadline::Clear)
            });
        }
    }
    assert!((0..500).all(|number| seen.contains(format!("{number}").as_bytes())));
}

#[test]
fn damaged_bytes_are_no_hash() {
    let Kept::Packed(good) = hash_of_fields(5, REDIS) else {
        panic!("it is small")
    };
    assert!(is_valid(&good));
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            if is_valid(&bad) {
                // Another hash: it has as many fields, and is written the same way.
                let hash = HashRef::from(CollectionRef::Packed(&bad));
                assert_eq!(hash.few(0).expect("it is flat").count(), hash.len());
            }
            let hash = HashRef(View::Flat(Flat::new(&bad)));
            assert!(hash.few(0).expect("it is flat").count() <= 5);
        }
        assert!(!is_valid(&good[..at]));
    }
}

#[test]
fn a_digest_ignores_the_form() {
    let digest = |kept: &Kept| {
        let mut hasher = DefaultHasher::new();
        kept.look().expect("it has fields").digest(&mut hasher);
        hasher.finish()
    };
    let mut flat = hash_of_fields(300, REDIS);
    let mut keyed = hash_of_fields(
        300,
        Limits {
            entries: 1,
            value: 64,
        },
    );
    assert_eq!(digest(&flat), digest(&keyed));
    flat.edit(REDIS, |hash| hash.set_deadline(b"7", Some(9)));
    assert_ne!(digest(&flat), digest(&keyed));
    keyed.edit(REDIS, |hash| hash.set_deadline(b"7", Some(9)));
    assert_eq!(digest(&flat), digest(&keyed));
}

/// A hash of 8 small fields takes little more than its bytes.
#[test]
fn small_fields_take_one_byte_more() {
    let mut kept = Kept::Packed(Vec::new());
    for number in 0..8 {
        let (name, value) = (format!("field{number}"), format!("value{number}"));
        kept.edit(REDIS, |hash| {
            hash.set(
                name.as_bytes(),
                Value::Bytes(value.as_bytes()),
                Deadline::Clear,
            )
        });
    }
    let Kept::Packed(bytes) = kept else {
        panic!("it is small")
    };
    assert_eq!(bytes.len(), 3 + 8 * (6 + 6 + 1));
}

/// What a large hash takes of each field.
#[test]
fn a_field_of_a_large_hash_takes_little() {
    let mut kept = hash_of_fields(
        1,
        Limits {
            entries: 0,
            value: 64,
        },
    );
    let count = 100_000;
    for number in 0..count {
        let name = format!("field:{number:09}");
        kept.edit(REDIS, |hash| {
            hash.set(name.as_bytes(), Value::Bytes(b"12345678"), Deadline::Clear)
        });
    }
    let Kept::Large(collection) = kept else {
        panic!("it is large")
    };
    let each = collection.allocated_bytes() as f64 / f64::from(count);
    // 26 bytes of text and flags in 28, and an entry of the table.
    assert!((36.0..41.0).contains(&each), "{each}");
}

#[test]
fn samples_are_uniform_and_have_what_was_asked_for() {
    let mut rng = Rng::with_seed(11);
    for limits in [
        REDIS,
        Limits {
            entries: 10,
            value: 64,
        },
    ] {
        let mut kept = hash_of_fields(120, limits);
        for number in 100..120 {
            kept.edit(limits, |hash| {
                hash.set_deadline(format!("{number}").as_bytes(), Some(5))
            });
        }
        let hash = kept.look().expect("it has fields").snapshot();
        for (count, rounds) in [(1, 30_000), (20, 1_500), (60, 500), (100, 10), (1000, 10)] {
            let mut times: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
            for _ in 0..rounds {
                let mut sample = Sample::different(hash.clone(), count, 10);
                assert_eq!(sample.left(), count.min(100) as u64);
                let mut names = std::collections::BTreeSet::new();
                while sample.left() > 0 {
                    sample.step(
                        |bound| rng.u64(..bound),
                        |field| {
                            assert!(names.insert(field.name.to_vec()));
                        },
                    );
                }
                assert_eq!(names.len(), count.min(100));
                for name in names {
                    *times.entry(name).or_default() += 1;
                }
            }
            assert_eq!(times.len(), 100);
            // Fields drawn together are less scattered than fields drawn one by one: the bound holds all the more.
            let expected = f64::from(rounds) * count.min(100) as f64 / 100.0;
            let chi_square: f64 = times
                .values()
                .map(|&times| (f64::from(times) - expected).powi(2) / expected)
                .sum();
            assert!(chi_square < 148.23, "{count}: {chi_square}");
        }
        let mut sample = Sample::repeated(hash, 250, 10);
        let mut given = 0;
        while sample.left() > 0 {
            sample.step(
                |bound| rng.u64(..bound),
                |field| given += u32::from(field.deadline.is_none()),
            );
        }
        assert_eq!(given, 250);
    }
}
