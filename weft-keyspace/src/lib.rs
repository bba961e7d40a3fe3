//! The keyspace: shards, latches, gates, arenas, tables, entries and expiry.
//!
//! Owns every key and value in memory and the two ways of being alone with them: a shard's latch, and all gates closed.
//! Knows no commands, no connections, no files and reads no clock. `unsafe` is confined to `latch`, `gate`, `arena`,
//! `table` and `entry`.
//!
//! Top-down: [`Keyspace`] (keyspace.rs) → [`Shard`] (shard.rs) → `Table` (table.rs: directory, segments, buckets) →
//! `Arena` (arena.rs) → [`Entry`] (entry.rs).

mod arena;
mod entry;
#[forbid(unsafe_code)]
mod expiry;
mod gate;
#[forbid(unsafe_code)]
mod keyspace;
mod latch;
#[forbid(unsafe_code)]
mod pauses;
#[forbid(unsafe_code)]
mod position;
#[forbid(unsafe_code)]
mod shard;
#[forbid(unsafe_code)]
mod spine;
mod table;
#[forbid(unsafe_code)]
mod waiters;
#[forbid(unsafe_code)]
mod watchers;
#[forbid(unsafe_code)]
mod word;

pub use entry::{Entry, NewValue, Outside, OwnedEntry, OwnedValue, StringRef, ValueRef};
pub use expiry::ExpireProgress;
pub use gate::{Gate, GateGuard};
pub use keyspace::{Exclusive, Keyspace, Latched, Memory, Options, Rng};
#[cfg(all(feature = "pauses", not(loom)))]
#[doc(hidden)]
pub use pauses::lets_go;
pub use position::Position;
pub use shard::{
    DeadlineChange, Edited, Garbage, PreImage, Prior, Removed, Replaced, RopeMut, Shard, Wanted,
};
pub use table::{Census, Dropped, LENGTH_CLASSES, Lengths, PLACE_BYTES, load_ahead};
pub use waiters::{Awaited, Waiter};
pub use watchers::{Watched, Watcher};
