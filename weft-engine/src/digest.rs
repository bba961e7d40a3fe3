//! A number that two engines share exactly when they hold the same data.

use std::hash::{DefaultHasher, Hash, Hasher};

use weft_data::number;
use weft_keyspace::{Entry, ValueRef};

use crate::engine::Engine;

/// The digest of all databases: independent of the order of keys and of how values are stored, but not of deadlines.
/// Stops all workers while it counts; `worker` must be outside its gate.
#[must_use]
pub fn digest(engine: &Engine, worker: usize) -> u64 {
    let alone = engine.keyspace.exclusive(worker);
    let mut sum = 0_u64;
    for shard in alone.shards() {
        for database in 0..engine.keyspace.databases() {
            if shard.len(database) == 0 {
                continue;
            }
            let mut from = Some(engine.keyspace.shard_start(shard.index()));
            while let Some(position) = from {
                from = shard.scan(database, position, usize::MAX, |entry| {
                    sum = sum.wrapping_add(entry_digest(database, &entry));
                });
            }
        }
    }
    sum
}

fn entry_digest(database: usize, entry: &Entry<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    database.hash(&mut hasher);
    entry.key().hash(&mut hasher);
    entry.deadline().hash(&mut hasher);
    match entry.value() {
        ValueRef::Int(value) => number::format_i64(value).as_bytes().hash(&mut hasher),
        ValueRef::Bytes(bytes) => bytes.hash(&mut hasher),
        ValueRef::Rope(rope) => rope.to_vec().hash(&mut hasher),
    }
    hasher.finish()
}
