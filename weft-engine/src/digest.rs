//! A number that two engines share exactly when they hold the same data.

use std::hash::{DefaultHasher, Hash, Hasher};

use weft_data::number;
use weft_keyspace::{Entry, Exclusive, StringRef, ValueRef};

use crate::engine::Engine;

/// The digest of all databases: independent of the order of keys and of how values are stored, but not of deadlines.
/// Stops all workers while it counts; `worker` must be outside its gate.
#[must_use]
pub fn digest(engine: &Engine, worker: usize) -> u64 {
    let alone = engine.keyspace.exclusive(worker);
    let [sum] = of_all(&alone, [0]);
    sum
}

/// As many such digests as there are seeds, independent of each other; 0 for no keys.
pub(crate) fn of_all<const N: usize>(alone: &Exclusive<'_>, seeds: [u64; N]) -> [u64; N] {
    let keyspace = alone.keyspace();
    let mut sums = [0_u64; N];
    for shard in alone.shards() {
        for database in 0..keyspace.databases() {
            if shard.len(database) == 0 {
                continue;
            }
            let mut from = Some(keyspace.shard_start(shard.index()));
            while let Some(position) = from {
                from = shard.scan(database, position, usize::MAX, |entry| {
                    for (sum, seed) in sums.iter_mut().zip(seeds) {
                        *sum = sum.wrapping_add(of_entry(seed, database, &entry));
                    }
                });
            }
        }
    }
    sums
}

fn of_entry(seed: u64, database: usize, entry: &Entry<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    database.hash(&mut hasher);
    entry.key().hash(&mut hasher);
    entry.deadline().hash(&mut hasher);
    hash_value(entry, &mut hasher);
    hasher.finish()
}

/// The digest of a value and of whether it expires, whatever its key.
pub(crate) fn of_value(seed: u64, entry: &Entry<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    entry.deadline().is_some().hash(&mut hasher);
    hash_value(entry, &mut hasher);
    hasher.finish()
}

fn hash_value(entry: &Entry<'_>, hasher: &mut DefaultHasher) {
    match entry.value() {
        ValueRef::String(StringRef::Int(value)) => {
            number::format_i64(value).as_bytes().hash(hasher);
        }
        ValueRef::String(StringRef::Bytes(bytes)) => bytes.hash(hasher),
        ValueRef::String(StringRef::Rope(rope)) => rope.to_vec().hash(hasher),
        ValueRef::Collection(collection) => collection.digest(hasher),
    }
}
