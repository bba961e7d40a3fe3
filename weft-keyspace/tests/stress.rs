//! Many threads on one keyspace: batches with prefetching, exclusive units, trimming; then everything is counted.

#![cfg(not(loom))]

use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use weft_keyspace::{DeadlineChange, Keyspace, NewValue, Options, Position, StringRef};

const WORKERS: usize = 4;
const BATCHES: usize = 1500;
const BATCH: usize = 32;
const NOW_MS: u64 = 1_700_000_000_000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(bound)) >> 64) as u64
    }
}

fn value(seed: u64) -> Vec<u8> {
    let len = [5, 40, 300, 2500, 70_000][(seed % 37) as usize % 5];
    let len = if len > 300 && !seed.is_multiple_of(11) {
        16
    } else {
        len
    };
    vec![seed as u8; len]
}

/// One worker: keys of its own in database 0, checked against a model; shared keys in databases 1 and 2, of which only
/// the form of the value is known.
fn work(keyspace: &Keyspace, worker: usize, flushed: &AtomicUsize) -> HashMap<Vec<u8>, Vec<u8>> {
    let mut random = Random(worker as u64 * 7919 + 1);
    let mut model: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    for batch in 0..BATCHES {
        let keys: Vec<(usize, Vec<u8>)> = (0..BATCH)
            .map(|_| match random.below(4) {
                0 => {
                    let db = 1 + random.below(2) as usize;
                    (db, format!("shared:{}", random.below(3000)).into_bytes())
                }
                _ => (0, format!("{worker}:{}", random.below(6000)).into_bytes()),
            })
            .collect();
        let positions: Vec<Position> = keys.iter().map(|(_, key)| keyspace.position(key)).collect();
        let inside = keyspace.gate(worker).enter();
        for ((db, _), &position) in keys.iter().zip(&positions) {
            keyspace.prefetch_bucket(&inside, *db, position, true);
        }
        for ((db, _), &position) in keys.iter().zip(&positions) {
            keyspace.prefetch_entry(&inside, *db, position, true);
        }
        for ((db, key), &position) in keys.iter().zip(&positions) {
            let mut shard = keyspace.latch(keyspace.shard_of(position));
            shard.clamp_now(NOW_MS);
            let found = shard.find(*db, position, key).map(|entry| {
                match entry.string().expect("a string") {
                    StringRef::Bytes(bytes) => bytes.to_vec(),
                    StringRef::Rope(rope) => rope.to_vec(),
                    StringRef::Int(_) => panic!("no integers were stored"),
                }
            });
            if *db == 0 {
                assert_eq!(found.as_ref(), model.get(key));
            } else if let Some(found) = found {
                assert!(found.iter().all(|byte| byte == &found[0]));
            }
            match random.below(if batch % 600 < 400 { 4 } else { 8 }) {
                0 => {}
                1 | 2 => {
                    let value = value(random.below(1 << 20));
                    let deadline = if *db == 2 {
                        DeadlineChange::At(NOW_MS + random.below(100_000))
                    } else {
                        DeadlineChange::Keep
                    };
                    shard.set(*db, position, key, NewValue::Bytes(&value), deadline);
                    if *db == 0 {
                        model.insert(key.clone(), value);
                    }
                }
                _ => {
                    let removed = shard.remove(*db, position, key);
                    drop(shard);
                    drop(removed);
                    model.remove(key);
                }
            }
        }
        let shard = random.below(keyspace.shards() as u64) as usize;
        if batch % 16 == 0 {
            keyspace.trim(&inside, shard);
        }
        if batch % 16 == 8 {
            let now = NOW_MS + random.below(50_000);
            keyspace.latch(shard).expire_due(
                2,
                now,
                10,
                |entry| assert!(entry.deadline().is_some_and(|at| at <= NOW_MS + 50_000)),
                |_, _| panic!("only strings were stored"),
            );
        }
        drop(inside);
        if batch % 128 == worker {
            let exclusive = keyspace.exclusive(worker);
            let mut dropped: Vec<_> = exclusive.shards().map(|mut shard| shard.flush(1)).collect();
            exclusive
                .shards()
                .for_each(|mut shard| shard.swap_tables(1, 2));
            assert_eq!(keyspace.key_count(2), 0);
            drop(exclusive);
            // Some in slices, the rest at once.
            let (some, rest) = dropped.split_at_mut(8);
            for dropped in some {
                for _ in 0..3 {
                    flushed.fetch_add(usize::from(dropped.free_some(10)), Relaxed);
                }
            }
            assert!(rest.len() == 8);
        }
    }
    model
}

#[test]
fn threads_agree_with_their_models() {
    let keyspace = Keyspace::new(Options {
        shards: 16,
        databases: 3,
        workers: WORKERS,
        workers_max: WORKERS,
        hash_seeds: [5, 6, 7, 8],
    });
    let barrier = Barrier::new(WORKERS);
    let flushed = AtomicUsize::new(0);
    let models: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (keyspace, barrier, flushed) = (&keyspace, &barrier, &flushed);
                scope.spawn(move || {
                    barrier.wait();
                    work(keyspace, worker, flushed)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("it does not panic"))
            .collect()
    });
    let expected: HashMap<Vec<u8>, Vec<u8>> = models.into_iter().flatten().collect();
    assert_eq!(keyspace.key_count(0), expected.len());
    let mut seen = 0;
    for shard in 0..keyspace.shards() {
        let mut at = Some(keyspace.shard_start(shard));
        let latched = keyspace.latch(shard);
        while let Some(from) = at {
            at = latched.scan(0, from, 16, |entry| {
                let value = match entry.string().expect("a string") {
                    StringRef::Bytes(bytes) => bytes.to_vec(),
                    StringRef::Rope(rope) => rope.to_vec(),
                    StringRef::Int(_) => panic!("no integers were stored"),
                };
                assert_eq!(expected.get(entry.key()), Some(&value));
                seen += 1;
            });
        }
    }
    assert_eq!(seen, expected.len());
    // Emptied, nothing is left.
    let exclusive = keyspace.exclusive(0);
    for mut shard in exclusive.shards() {
        for db in 0..3 {
            assert!(shard.flush(db).free_some(usize::MAX));
        }
    }
    drop(exclusive);
    keyspace.collect_retired();
    assert_eq!(keyspace.memory(), Default::default());
    assert_eq!(keyspace.held_bytes(), 0);
    assert!(flushed.into_inner() > 0);
}

#[test]
fn replaced_memory_waits_for_those_who_are_inside() {
    let keyspace = Keyspace::new(Options {
        shards: 1,
        databases: 1,
        workers: 2,
        workers_max: 2,
        hash_seeds: [5, 6, 7, 8],
    });
    let inside = keyspace.gate(1).enter();
    for number in 0..5000_u32 {
        let key = number.to_be_bytes();
        let position = keyspace.position(&key);
        keyspace
            .latch(0)
            .set(0, position, &key, NewValue::Int(1), DeadlineChange::Clear);
    }
    keyspace.collect_retired();
    let waiting = keyspace.memory().retired;
    assert!(waiting > 10_000, "{waiting}");
    let mut dropped = keyspace.latch(0).flush(0);
    assert_eq!(dropped.len(), 5000);
    assert!(!dropped.free_some(usize::MAX));
    drop(inside);
    assert!(dropped.free_some(usize::MAX));
    keyspace.collect_retired();
    assert_eq!(keyspace.memory(), Default::default());
}
