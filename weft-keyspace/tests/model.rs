//! The keyspace against a model: random operations, then equality of everything that can be seen.

#![cfg(not(loom))]

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use weft_data::collection::Draft;
use weft_keyspace::{
    DeadlineChange, Entry, Keyspace, Memory, NewValue, Options, Outside, OwnedValue, Position,
    PreImage, StringRef,
};
use weft_rope::Rope;

/// Only strings are stored.
const NO_FIELDS: fn(&[u8], &mut Draft<'_>) = |_, _| panic!("a string has no fields");

const DATABASES: usize = 3;
/// A plausible time: the coarse bounds are relative to the shard's time.
const START_MS: u64 = 1_700_000_000_000;

#[derive(Clone, Debug, PartialEq)]
struct Cell {
    value: Value,
    deadline: Option<u64>,
    raw: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Int(i64),
    Bytes(Vec<u8>),
}

type Model = BTreeMap<(usize, Vec<u8>), Cell>;

#[derive(Clone, Debug)]
enum Change {
    Keep,
    Clear,
    At(u64),
}

#[derive(Clone, Debug)]
enum Op {
    SetInt(i64, Change),
    SetBytes(usize, u8, bool, Change),
    SetRope(usize, u8, Change),
    Edit(u8),
    Append(usize, u8),
    Remove,
    Take,
    Deadline(Option<u64>),
    Expire(u64, usize),
    Flush,
    Swap(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        2 => Just(Change::Keep),
        1 => Just(Change::Clear),
        2 => (0..100_000_u64).prop_map(Change::At),
        1 => (0..100_000_000_000_u64).prop_map(Change::At),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![
        6 => 0..150_usize,
        2 => 0..2100_usize,
        1 => 60_000..200_000_usize,
    ];
    prop_oneof![
        4 => (any::<i64>(), change()).prop_map(|(value, change)| Op::SetInt(value, change)),
        12 => (len.clone(), any::<u8>(), any::<bool>(), change())
            .prop_map(|(len, byte, raw, change)| Op::SetBytes(len, byte, raw, change)),
        2 => (len.clone(), any::<u8>(), change()).prop_map(|(len, byte, change)| Op::SetRope(len, byte, change)),
        2 => any::<u8>().prop_map(Op::Edit),
        2 => (0..3000_usize, any::<u8>()).prop_map(|(len, byte)| Op::Append(len, byte)),
        6 => Just(Op::Remove),
        2 => Just(Op::Take),
        4 => prop::option::of(0..100_000_u64).prop_map(Op::Deadline),
        1 => (0..20_000_u64, 1..20_usize).prop_map(|(step, max)| Op::Expire(step, max)),
    ]
}

fn rare_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        60 => op(),
        1 => Just(Op::Flush),
        1 => (0..DATABASES).prop_map(Op::Swap),
    ]
}

/// Few keys, so that they meet again; some empty, long and very long ones.
fn key(number: u32) -> Vec<u8> {
    match number % 23 {
        0 if number == 0 => Vec::new(),
        1 => format!("{number}:{}", "k".repeat(600 + number as usize % 7)).into_bytes(),
        2 => format!("{number}:{}", "k".repeat(40_000)).into_bytes(),
        3 => format!("{number}:{}", "k".repeat(500)).into_bytes(),
        _ => format!("key:{number}").into_bytes(),
    }
}

fn seen(entry: &Entry<'_>) -> Cell {
    Cell {
        value: match entry.string().expect("a string") {
            StringRef::Int(value) => Value::Int(value),
            StringRef::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            StringRef::Rope(rope) => Value::Bytes(rope.to_vec()),
        },
        deadline: entry.deadline(),
        raw: entry.is_raw(),
    }
}

fn contents(keyspace: &Keyspace) -> Model {
    let mut model = Model::new();
    for db in 0..keyspace.databases() {
        for shard in 0..keyspace.shards() {
            let mut at = Some(keyspace.shard_start(shard));
            let latched = keyspace.latch(shard);
            while let Some(from) = at {
                at = latched.scan(db, from, 3, |entry| {
                    let before = model.insert((db, entry.key().to_vec()), seen(&entry));
                    assert_eq!(
                        before, None,
                        "nothing changes meanwhile, so nothing comes twice"
                    );
                });
                if let Some(next) = at {
                    assert!(next > from);
                    assert_eq!(
                        keyspace.cursor_position(keyspace.cursor(next)),
                        Some((shard, next))
                    );
                }
            }
        }
    }
    model
}

struct Subject {
    keyspace: Keyspace,
    model: Model,
    now: u64,
}

impl Subject {
    fn new(shards: usize, mask: u64) -> Subject {
        let options = Options {
            shards,
            databases: DATABASES,
            workers: 2,
            workers_max: 2,
            hash_seeds: [1, 2, 3, 4],
        };
        Subject {
            keyspace: Keyspace::with_position_mask(options, mask),
            model: Model::new(),
            now: START_MS,
        }
    }

    fn apply(&mut self, db: usize, key: &[u8], op: Op) {
        let position = self.keyspace.position(key);
        let mut shard = self.keyspace.latch(self.keyspace.shard_of(position));
        assert_eq!(shard.clamp_now(self.now), self.now);
        let place = (db, key.to_vec());
        let existing = self.model.get(&place).cloned();
        let deadline_after = |change: &Change| match change {
            Change::Keep => existing.as_ref().and_then(|cell| cell.deadline),
            Change::Clear => None,
            Change::At(ahead) => Some(self.now + ahead),
        };
        let as_change = |change: &Change| match change {
            Change::Keep => DeadlineChange::Keep,
            Change::Clear => DeadlineChange::Clear,
            Change::At(ahead) => DeadlineChange::At(self.now + ahead),
        };
        match op {
            Op::SetInt(value, change) => {
                let existed = shard
                    .set(db, position, key, NewValue::Int(value), as_change(&change))
                    .is_some();
                assert_eq!(existed, existing.is_some());
                let deadline = deadline_after(&change);
                let value = Value::Int(value);
                self.model.insert(
                    place,
                    Cell {
                        value,
                        deadline,
                        raw: false,
                    },
                );
            }
            Op::SetBytes(len, byte, raw, change) => {
                let bytes = vec![byte; len];
                let value = if raw {
                    NewValue::RawBytes(&bytes)
                } else {
                    NewValue::Bytes(&bytes)
                };
                let existed = shard
                    .set(db, position, key, value, as_change(&change))
                    .is_some();
                assert_eq!(existed, existing.is_some());
                let deadline = deadline_after(&change);
                let value = Value::Bytes(bytes);
                self.model.insert(
                    place,
                    Cell {
                        value,
                        deadline,
                        raw,
                    },
                );
            }
            Op::SetRope(len, byte, change) => {
                let bytes = vec![byte; len];
                let value = NewValue::Rope(Rope::from_slice(&bytes));
                let existed = shard
                    .set(db, position, key, value, as_change(&change))
                    .is_some();
                assert_eq!(existed, existing.is_some());
                let deadline = deadline_after(&change);
                let value = Value::Bytes(bytes);
                self.model.insert(
                    place,
                    Cell {
                        value,
                        deadline,
                        raw: false,
                    },
                );
            }
            Op::Edit(byte) => {
                if let Some(bytes) = shard.edit_bytes(db, position, key) {
                    bytes.fill(byte);
                    let cell = self.model.get_mut(&place).expect("it exists");
                    let Value::Bytes(bytes) = &mut cell.value else {
                        panic!("a string")
                    };
                    assert!(bytes.len() <= 2048);
                    bytes.fill(byte);
                }
            }
            Op::Append(len, byte) => {
                let rope = shard.rope_mut(db, position, key);
                assert_eq!(rope.is_some(), existing.is_some());
                if let Some(mut rope) = rope {
                    rope.append(&vec![byte; len]);
                    drop(rope);
                    let cell = self.model.get_mut(&place).expect("it exists");
                    let mut bytes = match &cell.value {
                        Value::Int(value) => value.to_string().into_bytes(),
                        Value::Bytes(bytes) => bytes.clone(),
                    };
                    bytes.extend(vec![byte; len]);
                    cell.value = Value::Bytes(bytes);
                    cell.raw = true;
                }
            }
            Op::Remove => {
                let removed = shard.remove(db, position, key);
                assert_eq!(
                    removed.map(|removed| removed.deadline),
                    existing.map(|cell| cell.deadline)
                );
                self.model.remove(&place);
            }
            Op::Take => {
                let taken = shard.take(db, position, key).map(|taken| {
                    assert_eq!(taken.key, key);
                    Cell {
                        value: match taken.value {
                            OwnedValue::Int(value) => Value::Int(value),
                            OwnedValue::Bytes(bytes) => Value::Bytes(bytes),
                            OwnedValue::Rope(rope) => Value::Bytes(rope.to_vec()),
                            OwnedValue::Collection(_) => panic!("only strings were stored"),
                        },
                        deadline: taken.deadline,
                        raw: taken.raw,
                    }
                });
                assert_eq!(taken, self.model.remove(&place));
            }
            Op::Deadline(ahead) => {
                let deadline = ahead.map(|ahead| self.now + ahead);
                let existed = shard.set_deadline(db, position, key, deadline);
                assert_eq!(existed, existing.is_some());
                if let Some(cell) = self.model.get_mut(&place) {
                    cell.deadline = deadline;
                }
            }
            Op::Expire(step, max) => {
                drop(shard);
                self.now += step;
                self.expire(db, max);
            }
            Op::Flush => {
                drop(shard);
                for shard in 0..self.keyspace.shards() {
                    let mut dropped = self.keyspace.latch(shard).flush(db);
                    while !dropped.free_some(3) {}
                }
                self.model.retain(|(at, _), _| *at != db);
            }
            Op::Swap(other) => {
                drop(shard);
                for shard in 0..self.keyspace.shards() {
                    self.keyspace.latch(shard).swap_tables(db, other);
                }
                let swap = |at: usize| {
                    if at == db {
                        other
                    } else if at == other {
                        db
                    } else {
                        at
                    }
                };
                self.model = std::mem::take(&mut self.model)
                    .into_iter()
                    .map(|((at, key), cell)| ((swap(at), key), cell))
                    .collect();
            }
        }
    }

    fn expire(&mut self, db: usize, max: usize) {
        for shard in 0..self.keyspace.shards() {
            loop {
                let mut gone = Vec::new();
                let progress = self.keyspace.latch(shard).expire_due(
                    db,
                    self.now,
                    max,
                    |entry| gone.push(entry.key().to_vec()),
                    NO_FIELDS,
                );
                assert_eq!(progress.removed, gone.len());
                assert!(gone.len() <= max);
                for key in gone {
                    let cell = self.model.remove(&(db, key)).expect("it existed");
                    assert!(cell.deadline.is_some_and(|at| at <= self.now));
                }
                if !progress.more {
                    let left = self.keyspace.latch(shard).with_deadline(db);
                    assert_eq!(progress.next_due_ms.is_some(), left > 0);
                    break;
                }
            }
        }
        let overdue = self
            .model
            .iter()
            .find(|((at, _), cell)| *at == db && cell.deadline.is_some_and(|at| at <= self.now));
        assert_eq!(overdue, None);
    }

    fn check(&self) {
        for shard in 0..self.keyspace.shards() {
            (0..DATABASES).for_each(|db| self.keyspace.latch(shard).verify(db));
        }
        assert!(contents(&self.keyspace) == self.model);
        for ((db, key), cell) in &self.model {
            let position = self.keyspace.position(key);
            let shard = self.keyspace.latch(self.keyspace.shard_of(position));
            let entry = shard.find(*db, position, key).expect("it exists");
            assert_eq!(entry.key(), key);
            assert!(seen(&entry) == *cell);
        }
        for db in 0..DATABASES {
            let of_db = || self.model.iter().filter(|((at, _), _)| *at == db);
            assert_eq!(self.keyspace.key_count(db), of_db().count());
            let with_deadline = of_db().filter(|(_, cell)| cell.deadline.is_some()).count();
            assert_eq!(self.keyspace.deadline_count(db), with_deadline);
            let mut shard = 0;
            let mut nonempty = HashSet::new();
            while let Some(next) = self.keyspace.next_nonempty(db, shard) {
                nonempty.insert(next);
                shard = next + 1;
            }
            let expected: HashSet<usize> = of_db()
                .map(|((_, key), _)| self.keyspace.shard_of(self.keyspace.position(key)))
                .collect();
            assert_eq!(nonempty, expected);
        }
        let memory = self.keyspace.memory();
        assert_eq!(memory.held(), self.keyspace.held_bytes());
    }
}

fn run(shards: usize, mask: u64, keys: u32, ops: Vec<(usize, u32, Op)>) {
    let mut subject = Subject::new(shards, mask);
    for (count, (db, number, op)) in ops.into_iter().enumerate() {
        subject.apply(db, &key(number % keys), op);
        if count % 50 == 0 {
            (0..shards).for_each(|shard| subject.keyspace.latch(shard).verify(db));
        }
    }
    subject.check();
    // Emptied by hand, all that is left is empty tables.
    for (db, key) in subject.model.keys().cloned().collect::<Vec<_>>() {
        subject.apply(db, &key, Op::Remove);
    }
    subject.check();
    let memory = subject.keyspace.memory();
    assert_eq!((memory.entries, memory.external), (0, 0));
}

fn ops(len: usize) -> impl Strategy<Value = Vec<(usize, u32, Op)>> {
    prop::collection::vec((0..DATABASES, 0..4000_u32, rare_op()), 0..len)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_model(ops in ops(600)) {
        run(4, u64::MAX, 4000, ops);
    }

    #[test]
    fn agrees_with_the_model_on_few_keys(ops in ops(600)) {
        run(2, u64::MAX, 40, ops);
    }

    #[test]
    fn agrees_with_the_model_when_positions_collide(ops in ops(900)) {
        // One position, two low bits, a few top bits, a long common beginning.
        run(1, 0, 4000, ops.clone());
        run(2, 3, 4000, ops.clone());
        run(4, 0xf800_0000_0000_0000, 4000, ops.clone());
        run(4, 0x0000_0fff_ffff_ffff, 4000, ops);
    }

    #[test]
    fn pre_images_put_everything_back(before in ops(200), unit in ops(200)) {
        for mask in [u64::MAX, 0xf] {
            let mut subject = Subject::new(2, mask);
            for (db, number, op) in before.clone() {
                subject.apply(db, &key(number % 300), op);
            }
            let contents_before = contents(&subject.keyspace);
            for shard in 0..2 {
                subject.keyspace.latch(shard).capture();
            }
            for (db, number, op) in unit.clone() {
                if !matches!(op, Op::Flush | Op::Swap(_)) {
                    subject.apply(db, &key(number % 300), op);
                }
            }
            for shard in 0..2 {
                let mut latched = subject.keyspace.latch(shard);
                let images: Vec<PreImage> = latched.captured();
                for image in images.into_iter().rev() {
                    latched.restore(image);
                }
            }
            prop_assert!(contents(&subject.keyspace) == contents_before);
        }
    }
}

fn small(keyspace: &Keyspace, db: usize, key: &[u8], value: &[u8]) {
    let position = keyspace.position(key);
    let mut shard = keyspace.latch(keyspace.shard_of(position));
    shard.set(
        db,
        position,
        key,
        NewValue::Bytes(value),
        DeadlineChange::Keep,
    );
}

#[test]
fn entries_have_the_sizes_promised() {
    let subject = Subject::new(1, u64::MAX);
    let keyspace = &subject.keyspace;
    let sizes = [
        (16, 16, None, 40),
        (16, 16, Some(START_MS), 48),
        (16, 100, None, 128),
        (0, 0, None, 8),
    ];
    for (key_len, value_len, deadline, expected) in sizes {
        let key = vec![b'k'; key_len];
        let position = keyspace.position(&key);
        let mut shard = keyspace.latch(0);
        let change = deadline.map_or(DeadlineChange::Clear, DeadlineChange::At);
        shard.set(
            0,
            position,
            &key,
            NewValue::Bytes(&vec![b'v'; value_len]),
            change,
        );
        assert_eq!(
            shard
                .find(0, position, &key)
                .expect("set")
                .allocated_bytes(),
            expected
        );
    }
}

#[test]
fn tables_grow_and_shrink_again() {
    for mask in [u64::MAX, 0x07ff_ffff_ffff_ffff] {
        let subject = Subject::new(2, mask);
        let keyspace = &subject.keyspace;
        let empty = {
            small(keyspace, 0, b"x", b"");
            keyspace.memory().tables
        };
        for number in 0..40_000_u32 {
            small(
                keyspace,
                0,
                format!("key:{number:012}").as_bytes(),
                b"0123456789abcdef",
            );
        }
        let full = keyspace.memory();
        assert!(
            full.tables > 40_000 * 6 && full.tables < 40_000 * 14,
            "{full:?}"
        );
        for number in 0..40_000_u32 {
            let key = format!("key:{number:012}");
            let position = keyspace.position(key.as_bytes());
            let mut shard = keyspace.latch(keyspace.shard_of(position));
            assert!(shard.remove(0, position, key.as_bytes()).is_some());
        }
        keyspace.collect_retired();
        let inside = keyspace.gate(0).enter();
        for shard in 0..2 {
            while keyspace.trim(&inside, shard) > 0 {}
        }
        let after = keyspace.memory();
        assert_eq!(after.retired, 0);
        assert!(after.tables < empty + 2 * 12_000, "{empty} {after:?}");
        assert!(after.pages <= 2 * 3 * 4096, "{after:?}");
        assert_eq!(keyspace.key_count(0), 1);
    }
}

#[test]
fn scan_returns_what_is_there_all_the_time_across_growth_and_shrinking() {
    let subject = Subject::new(4, u64::MAX);
    let keyspace = &subject.keyspace;
    for number in 0..300 {
        small(keyspace, 0, format!("stay:{number}").as_bytes(), b"v");
    }
    let mut churn = 0_u32;
    let mut alive: Vec<u32> = Vec::new();
    for round in 0..8 {
        let mut seen = HashSet::new();
        let mut cursor = 0;
        let mut growing = round % 2 == 0;
        loop {
            let (shard, mut position) = keyspace.cursor_position(cursor).expect("a cursor");
            let next = keyspace.latch(shard).scan(0, position, 2, |entry| {
                seen.insert(entry.key().to_vec());
            });
            if let Some(next) = next {
                position = next;
                cursor = keyspace.cursor(position);
            } else if shard + 1 < keyspace.shards() {
                cursor = keyspace.cursor(keyspace.shard_start(shard + 1));
            } else {
                break;
            }
            if growing {
                for _ in 0..60 {
                    small(keyspace, 0, format!("churn:{churn}").as_bytes(), b"v");
                    alive.push(churn);
                    churn += 1;
                }
                growing = alive.len() < 20_000;
            } else {
                for number in alive.split_off(alive.len().saturating_sub(100)) {
                    let key = format!("churn:{number}");
                    let position = keyspace.position(key.as_bytes());
                    let mut shard = keyspace.latch(keyspace.shard_of(position));
                    assert!(shard.remove(0, position, key.as_bytes()).is_some());
                }
                growing = alive.is_empty();
            }
        }
        for number in 0..300 {
            assert!(
                seen.contains(format!("stay:{number}").as_bytes()),
                "round {round}: stay:{number}"
            );
        }
    }
}

#[test]
fn random_picks_are_fair_enough() {
    let subject = Subject::new(1, u64::MAX);
    let keyspace = &subject.keyspace;
    for number in 0..1000 {
        small(keyspace, 0, format!("key:{number}").as_bytes(), b"v");
    }
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut rng = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut picked: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    let shard = keyspace.latch(0);
    for _ in 0..100_000 {
        let entry = shard.random(0, &mut rng).expect("there are keys");
        *picked.entry(entry.key().to_vec()).or_default() += 1;
    }
    assert_eq!(picked.len(), 1000);
    assert!(
        picked.values().all(|&times| (50..200).contains(&times)),
        "{:?}",
        picked.values().max()
    );
    assert!(shard.random(1, &mut rng).is_none());
}

#[test]
fn long_values_wait_for_the_end_of_the_latch() {
    let subject = Subject::new(1, u64::MAX);
    let key = b"big";
    let position = subject.keyspace.position(key);
    let mut shard = subject.keyspace.latch(0);
    let big = Rope::from_slice(&vec![7; 1 << 20]);
    shard.set(
        0,
        position,
        key,
        NewValue::Rope(big.clone()),
        DeadlineChange::Clear,
    );
    assert_eq!(shard.memory().external, big.allocated_bytes() as u64);
    shard.set(0, position, key, NewValue::Int(1), DeadlineChange::Clear);
    assert_eq!(shard.memory().external, 0);
    let garbage = shard.take_garbage();
    assert!(matches!(&garbage.values[..], [Outside::Rope(rope)] if *rope == big));
    shard.set(
        0,
        position,
        key,
        NewValue::Rope(big.clone()),
        DeadlineChange::Clear,
    );
    let removed = shard.remove(0, position, key).expect("it exists");
    assert!(matches!(removed.value, Some(Outside::Rope(rope)) if rope == big));
}

#[test]
fn positions_and_cursors_turn_into_each_other() {
    let subject = Subject::new(4, u64::MAX);
    let keyspace = &subject.keyspace;
    assert_eq!(
        keyspace.cursor_position(0),
        Some((0, Position::from_bits(0)))
    );
    assert_eq!(keyspace.cursor_position(1 << 48), None);
    assert_eq!(
        keyspace.cursor_position((1 << 48) - 1),
        Some((3, Position::from_bits(!0xffff)))
    );
    assert_eq!(keyspace.cursor(keyspace.shard_start(2)), 1 << 47);
}

#[test]
fn expiry_removes_exactly_what_is_due_however_small_its_steps() {
    let subject = Subject::new(1, u64::MAX);
    let keyspace = &subject.keyspace;
    let mut shard = keyspace.latch(0);
    shard.clamp_now(START_MS);
    for number in 0..20_000_u64 {
        let key = format!("key:{number}");
        let position = keyspace.position(key.as_bytes());
        // Every second key lives 10 ms times its number, the others for ever.
        let deadline = if number % 2 == 0 {
            DeadlineChange::At(START_MS + 10 * number)
        } else {
            DeadlineChange::Clear
        };
        shard.set(0, position, key.as_bytes(), NewValue::Int(1), deadline);
    }
    let mut gone = 0;
    for (step, max) in [
        (0, 1),
        (10_000, 1),
        (11_000, 2),
        (12_000, 7),
        (100_000, 3),
        (199_980, 100),
    ] {
        let now = START_MS + step;
        let mut calls = 0;
        loop {
            let progress = shard.expire_due(
                0,
                now,
                max,
                |entry| assert!(entry.deadline().is_some_and(|at| at <= now)),
                NO_FIELDS,
            );
            gone += progress.removed;
            calls += 1;
            assert!(calls < 100_000, "it comes to an end");
            if !progress.more {
                let left = shard.with_deadline(0);
                assert_eq!(progress.next_due_ms.is_some(), left > 0);
                // The bound is coarse by a tick of 256 ms, but never late.
                if let Some(next) = progress.next_due_ms {
                    assert!(next > now && next <= START_MS + (step / 20 + 1) * 20);
                    assert!(next + 256 > START_MS + (step / 20 + 1) * 20);
                }
                break;
            }
        }
        assert_eq!(gone as u64, step / 20 + 1);
        shard.verify(0);
    }
    assert_eq!((shard.len(0), shard.with_deadline(0)), (10_000, 0));
    // Nothing is left to look for.
    let progress = shard.expire_due(0, START_MS * 2, 1, |_| panic!("nothing expires"), NO_FIELDS);
    assert_eq!(
        (progress.removed, progress.more, progress.next_due_ms),
        (0, false, None)
    );
}

#[test]
fn far_deadlines_are_found_when_their_time_comes() {
    const DAY_MS: u64 = 86_400_000;
    let subject = Subject::new(1, u64::MAX);
    let keyspace = &subject.keyspace;
    let mut shard = keyspace.latch(0);
    shard.clamp_now(START_MS);
    let days = [1, 2, 30, 400, 5000];
    for day in days {
        let key = format!("day:{day}");
        let position = keyspace.position(key.as_bytes());
        let deadline = DeadlineChange::At(START_MS + day * DAY_MS);
        shard.set(0, position, key.as_bytes(), NewValue::Int(1), deadline);
    }
    // Whether looked for every hour or only on the day, whether the day before or not: the day is kept.
    for day in days {
        for hour in (0..23).rev().step_by(if day < 100 { 1 } else { 11 }) {
            let progress = shard.expire_due(
                0,
                START_MS + day * DAY_MS - hour * 3_600_000,
                100,
                |_| (),
                NO_FIELDS,
            );
            assert_eq!(
                progress.removed,
                usize::from(hour == 0),
                "day {day}, hour {hour}"
            );
            assert!(!progress.more);
        }
    }
    assert_eq!(shard.len(0), 0);
}

#[test]
fn many_sizes_share_pages() {
    let subject = Subject::new(1, u64::MAX);
    let keyspace = &subject.keyspace;
    for number in 0..400_usize {
        let value = vec![b'v'; number * 37 % 460];
        small(keyspace, 0, format!("key:{number}").as_bytes(), &value);
    }
    let memory = keyspace.memory();
    keyspace.latch(0).verify(0);
    assert!(memory.pages < memory.entries * 2, "{memory:?}");
}

#[test]
fn a_value_is_set_together_with_its_access_bits() {
    let subject = Subject::new(1, u64::MAX);
    let position = subject.keyspace.position(b"k");
    let mut shard = subject.keyspace.latch(0);
    let long = vec![b'v'; 5000];
    let values = [
        NewValue::Bytes(b"short"),
        NewValue::Bytes(b"other"),
        NewValue::Int(7),
        NewValue::Bytes(&long),
        NewValue::RawBytes(b"x"),
    ];
    for (number, value) in (0_u32..).zip(values) {
        shard.set_stamped(
            0,
            position,
            b"k",
            value,
            DeadlineChange::At(START_MS),
            |before| {
                assert_eq!(before, number.checked_sub(1));
                number
            },
        );
        let entry = shard.find(0, position, b"k").expect("it was set");
        assert_eq!(entry.access(), number);
    }
    shard.set(0, position, b"k", NewValue::Int(1), DeadlineChange::Clear);
    shard.set(
        0,
        subject.keyspace.position(b"l"),
        b"l",
        NewValue::Int(1),
        DeadlineChange::Clear,
    );
    let access = |key: &[u8]| {
        shard
            .find(0, subject.keyspace.position(key), key)
            .map(|entry| entry.access())
    };
    assert_eq!((access(b"k"), access(b"l")), (Some(4), Some(0)));
}

#[test]
fn memory_is_told_by_database_and_by_where_it_comes_from() {
    let subject = Subject::new(4, u64::MAX);
    let keyspace = &subject.keyspace;
    assert_eq!(
        (keyspace.mapped_bytes(), keyspace.database_memory(0)),
        (0, Memory::default())
    );
    for number in 0..20_000_u32 {
        small(
            keyspace,
            (number % 2) as usize,
            format!("key:{number}").as_bytes(),
            b"0123456789abcdef",
        );
    }
    let [one, other, all] = [
        keyspace.database_memory(0),
        keyspace.database_memory(1),
        keyspace.memory(),
    ];
    assert!(one.entries >= 10_000 * 32 && other.entries >= 10_000 * 32);
    assert_eq!(one.entries + other.entries, all.entries);
    assert_eq!(one.tables + other.tables, all.tables);
    // Large segments are pages, too, and a few pages wait for the next ones.
    let mapped = keyspace.mapped_bytes();
    let waiting = 64 * 4096;
    assert!(
        mapped >= all.pages && mapped <= all.held() + waiting,
        "{mapped}, {all:?}"
    );
    for shard in 0..keyspace.shards() {
        for db in 0..2 {
            drop(keyspace.latch(shard).flush(db));
        }
    }
    keyspace.collect_retired();
    assert_eq!(keyspace.memory().pages, 0);
    assert!(keyspace.mapped_bytes() <= waiting);
}
