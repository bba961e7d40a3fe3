//! Collections in the keyspace, against a model: in both forms, beside strings and deadlines, undone, shared and flushed.

#![cfg(not(loom))]

use std::collections::BTreeMap;

use weft_data::collection::{Built, CollectionRef, Draft, Kind};
use weft_data::sorted_set::{Limits, SortedSetMut, SortedSetRef};
use weft_keyspace::{
    DeadlineChange, Edited, Entry, Keyspace, NewValue, Options, OwnedValue, Position, ValueRef,
    Wanted,
};

const LIMITS: Limits = Limits {
    entries: 20,
    value: 64,
};
const SEED: u64 = 7;
const KEYS: u64 = 40;
const NOW_MS: u64 = 1_700_000_000_000;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    String(Vec<u8>),
    SortedSet(BTreeMap<Vec<u8>, u64>),
}

#[derive(Clone, Debug, PartialEq)]
struct Cell {
    value: Value,
    deadline: Option<u64>,
}

type Model = BTreeMap<Vec<u8>, Cell>;

fn keyspace() -> Keyspace {
    Keyspace::new(Options {
        shards: 2,
        databases: 2,
        workers: 1,
        workers_max: 1,
        hash_seeds: [1, 2, 3, 4],
    })
}

fn cell(entry: &Entry<'_>) -> Cell {
    let value = match entry.value() {
        ValueRef::String(_) => match entry.to_owned_value() {
            OwnedValue::Bytes(bytes) => Value::String(bytes),
            other => panic!("only short strings were stored: {other:?}"),
        },
        ValueRef::Collection(collection) => Value::SortedSet(members(collection)),
    };
    Cell {
        value,
        deadline: entry.deadline(),
    }
}

fn members(collection: CollectionRef<'_>) -> BTreeMap<Vec<u8>, u64> {
    let set = SortedSetRef::from(collection);
    let mut members = BTreeMap::new();
    set.each(0..u64::MAX, false, |member, score| {
        members.insert(member.to_vec(), score.to_bits());
    });
    members
}

fn contents(keyspace: &Keyspace) -> Model {
    let mut found = Model::new();
    for shard in 0..keyspace.shards() {
        let mut from = Some(keyspace.shard_start(shard));
        while let Some(position) = from {
            from = keyspace
                .latch(shard)
                .scan(0, position, usize::MAX, |entry| {
                    found.insert(entry.key().to_vec(), cell(&entry));
                });
        }
    }
    found
}

struct Subject {
    keyspace: Keyspace,
    model: Model,
    random: fastrand::Rng,
    scratch: Vec<u8>,
}

impl Subject {
    fn new(seed: u64) -> Self {
        Self {
            keyspace: keyspace(),
            model: Model::new(),
            random: fastrand::Rng::with_seed(seed),
            scratch: Vec::new(),
        }
    }

    fn at(&self, key: &[u8]) -> (usize, Position) {
        let position = self.keyspace.position(key);
        (self.keyspace.shard_of(position), position)
    }

    fn edit<R>(
        &mut self,
        key: &[u8],
        act: impl FnOnce(&mut SortedSetMut<'_, '_>) -> R,
    ) -> Option<Edited<R>> {
        let (shard, position) = self.at(key);
        let act = |draft: &mut Draft<'_>| act(&mut SortedSetMut::new(draft, LIMITS, SEED, 1));
        let scratch = &mut self.scratch;
        self.keyspace.latch(shard).edit_collection(
            0,
            position,
            key,
            Wanted {
                kind: Kind::SortedSet,
                birth: 0,
            },
            scratch,
            act,
        )
    }

    /// Does something to a random key, and to the model what it should do.
    fn change(&mut self) {
        let key = format!("key:{}", self.random.u64(..KEYS)).into_bytes();
        let (shard, position) = self.at(&key);
        match self.random.u32(..20) {
            0..10 => {
                let count = 1 << self.random.u32(..7);
                let added: Vec<(Vec<u8>, u64)> = (0..count)
                    .map(|_| {
                        let member = format!("member:{:05}", self.random.u32(..400));
                        (member.into_bytes(), self.random.u64(..50))
                    })
                    .collect();
                let edited = self.edit(&key, |set| {
                    for (member, score) in &added {
                        set.update(member, |_| Some(*score as f64));
                    }
                });
                let cell = self.model.get_mut(&key);
                if matches!(
                    cell,
                    Some(Cell {
                        value: Value::String(_),
                        ..
                    })
                ) {
                    assert!(edited.is_none(), "a string is no sorted set");
                    return;
                }
                let edited = edited.expect("nothing else is there");
                assert_eq!((edited.existed, edited.exists), (cell.is_some(), true));
                let cell = self.model.entry(key).or_insert(Cell {
                    value: Value::SortedSet(BTreeMap::new()),
                    deadline: None,
                });
                if let Value::SortedSet(set) = &mut cell.value {
                    set.extend(
                        added
                            .into_iter()
                            .map(|(member, score)| (member, (score as f64).to_bits())),
                    );
                }
            }
            10..14 => {
                let (from, count) = (self.random.u64(..60), self.random.u64(..120));
                let edited = self.edit(&key, |set| set.remove_ranks(from..from + count, |_| {}));
                match self.model.get_mut(&key).map(|cell| &mut cell.value) {
                    Some(Value::String(_)) => assert!(edited.is_none()),
                    None => {
                        let edited = edited.expect("there is nothing");
                        assert_eq!((edited.existed, edited.exists), (false, false));
                    }
                    Some(Value::SortedSet(set)) => {
                        let mut order: Vec<_> = set.iter().map(|(m, s)| (*s, m.clone())).collect();
                        order.sort_by(|a, b| {
                            (f64::from_bits(a.0), &a.1)
                                .partial_cmp(&(f64::from_bits(b.0), &b.1))
                                .expect("no score is NaN")
                        });
                        let removed = order.into_iter().skip(from as usize).take(count as usize);
                        removed.for_each(|(_, member)| {
                            set.remove(&member);
                        });
                        let edited = edited.expect("it is a sorted set");
                        assert_eq!((edited.existed, edited.exists), (true, !set.is_empty()));
                        if set.is_empty() {
                            self.model.remove(&key);
                        }
                    }
                }
            }
            14..16 => {
                let removed = self.keyspace.latch(shard).remove(0, position, &key);
                assert_eq!(removed.is_some(), self.model.remove(&key).is_some());
            }
            16 => {
                let value = vec![b'v'; self.random.usize(..100)];
                let new = NewValue::Bytes(&value);
                self.keyspace
                    .latch(shard)
                    .set(0, position, &key, new, DeadlineChange::Clear);
                let cell = Cell {
                    value: Value::String(value),
                    deadline: None,
                };
                self.model.insert(key, cell);
            }
            17 => {
                let deadline = self
                    .random
                    .bool()
                    .then(|| NOW_MS + self.random.u64(1..1000));
                self.keyspace
                    .latch(shard)
                    .set_deadline(0, position, &key, deadline);
                if let Some(cell) = self.model.get_mut(&key) {
                    cell.deadline = deadline;
                }
            }
            _ => {
                // A copy under another name, which shares all nodes of a large one.
                let name = format!("key:{}", self.random.u64(..KEYS)).into_bytes();
                let found = self
                    .keyspace
                    .latch(shard)
                    .find(0, position, &key)
                    .map(|entry| {
                        let raw = entry.is_raw();
                        (entry.to_owned_value(), raw)
                    });
                let Some((value, raw)) = found else { return };
                let (shard, position) = self.at(&name);
                let new = value.as_new(raw);
                self.keyspace
                    .latch(shard)
                    .set(0, position, &name, new, DeadlineChange::Clear);
                let cell = Cell {
                    value: self.model[&key].value.clone(),
                    deadline: None,
                };
                self.model.insert(name, cell);
            }
        }
    }

    fn verify(&self) {
        assert_eq!(contents(&self.keyspace), self.model);
        for shard in 0..self.keyspace.shards() {
            self.keyspace.latch(shard).verify(0);
        }
        let census = self.keyspace.census(0);
        let sets = self
            .model
            .values()
            .filter(|cell| matches!(cell.value, Value::SortedSet(_)));
        assert_eq!(
            census.collections(Kind::SortedSet).iter().sum::<u64>(),
            sets.count() as u64
        );
    }
}

#[test]
fn agrees_with_the_model() {
    for seed in 0..20 {
        let mut subject = Subject::new(seed);
        for step in 0..1500 {
            subject.change();
            if step % 100 == 0 {
                subject.verify();
            }
        }
        subject.verify();
    }
}

#[test]
fn pre_images_put_everything_back() {
    for seed in 100..130 {
        let mut subject = Subject::new(seed);
        (0..300).for_each(|_| subject.change());
        let before = subject.model.clone();
        for shard in 0..2 {
            subject.keyspace.latch(shard).capture();
        }
        (0..300).for_each(|_| subject.change());
        for shard in 0..2 {
            let mut latched = subject.keyspace.latch(shard);
            let images = latched.captured();
            for image in images.into_iter().rev() {
                latched.restore(image);
            }
        }
        subject.model = before;
        subject.verify();
    }
}

#[test]
fn snapshots_stay_as_they_were() {
    let mut subject = Subject::new(1000);
    let mut snapshots: Vec<(Built, Value)> = Vec::new();
    for _ in 0..4000 {
        subject.change();
        let key = format!("key:{}", subject.random.u64(..KEYS)).into_bytes();
        let (shard, position) = subject.at(&key);
        let latched = subject.keyspace.latch(shard);
        if let Some(collection) = latched
            .find(0, position, &key)
            .and_then(|entry| entry.collection())
        {
            let snapshot = (collection.to_built(), subject.model[&key].value.clone());
            if snapshots.len() < 50 {
                snapshots.push(snapshot);
            } else {
                let at = subject.random.usize(..50);
                let (built, value) = std::mem::replace(&mut snapshots[at], snapshot);
                assert_eq!(Value::SortedSet(members(built.as_ref())), value);
            }
        }
    }
    for (built, value) in snapshots {
        assert_eq!(Value::SortedSet(members(built.as_ref())), value);
    }
}

#[test]
fn what_held_collections_gives_all_memory_back() {
    let mut subject = Subject::new(2000);
    for _ in 0..3000 {
        subject.change();
    }
    let held = subject.keyspace.memory();
    assert!(held.external > 0, "some are large");
    for shard in 0..2 {
        let mut latched = subject.keyspace.latch(shard);
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut from = Some(subject.keyspace.shard_start(shard));
        while let Some(position) = from {
            from = latched.scan(0, position, usize::MAX, |entry| {
                names.push(entry.key().to_vec())
            });
        }
        for name in names {
            latched.remove(0, subject.keyspace.position(&name), &name);
        }
    }
    assert_eq!(subject.keyspace.memory().external, 0);
    assert_eq!(subject.keyspace.memory().entries, 0);
}
