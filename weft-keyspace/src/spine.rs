//! What all shards share.
//!
//! Owns the partition, the gates, the memory's source, and the few words per shard and database that are read without
//! a latch: roots for prefetching, key counts, the bitmaps of non-empty shards. Does not know shards. Invariants: the
//! words of one shard fill lines of their own and are written only under its latch; a set bit in a bitmap means
//! "perhaps", a clear one means that the shard's table is empty.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

use crate::arena::ground::Ground;
use crate::gate::Gates;
use crate::gate::limbo::Limbo;
use crate::position::Partition;
use crate::table::Directory;

pub(crate) struct Spine {
    pub(crate) partition: Partition,
    pub(crate) shards: usize,
    pub(crate) databases: usize,
    pub(crate) roots: Grid<AtomicPtr<Directory>>,
    /// Keys per shard and database.
    pub(crate) keys: Grid<AtomicUsize>,
    /// Of those, keys with a deadline.
    pub(crate) deadlines: Grid<AtomicUsize>,
    /// Keys with fields that expire.
    pub(crate) fielded: Grid<AtomicUsize>,
    /// Bytes held per shard: pages, tables, values outside.
    pub(crate) held: Grid<AtomicUsize>,
    nonempty: Box<[Box<[AtomicU64]>]>,
    // In this order: what limbo frees goes back to the ground.
    pub(crate) limbo: Limbo,
    pub(crate) gates: Arc<Gates>,
    pub(crate) ground: Arc<Ground>,
}

impl Spine {
    pub(crate) fn new(
        partition: Partition,
        shards: usize,
        databases: usize,
        workers: usize,
        workers_max: usize,
    ) -> Spine {
        let gates = Arc::new(Gates::new(workers, workers_max));
        let ground = Arc::new(Ground::new());
        let bitmap = || {
            (0..shards.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect()
        };
        Spine {
            partition,
            shards,
            databases,
            roots: Grid::new(shards, databases),
            keys: Grid::new(shards, databases),
            deadlines: Grid::new(shards, databases),
            fielded: Grid::new(shards, databases),
            held: Grid::new(shards, 1),
            nonempty: (0..databases).map(|_| bitmap()).collect(),
            limbo: Limbo::new(Arc::clone(&gates), Arc::clone(&ground)),
            gates,
            ground,
        }
    }

    /// Notes that a shard has keys in a database; its latch is held.
    #[inline]
    pub(crate) fn mark_nonempty(&self, shard: usize, db: usize) {
        let word = &self.nonempty[db][shard / 64];
        let bit = 1 << (shard % 64);
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Notes that a shard has no keys in a database; its latch is held.
    pub(crate) fn mark_empty(&self, shard: usize, db: usize) {
        let word = &self.nonempty[db][shard / 64];
        let bit = 1 << (shard % 64);
        if word.load(Relaxed) & bit != 0 {
            word.fetch_and(!bit, Relaxed);
        }
    }

    /// The first shard from `from` on that has keys in a database.
    pub(crate) fn next_nonempty(&self, db: usize, from: usize) -> Option<usize> {
        let mut shard = from;
        while shard < self.shards {
            let word = self.nonempty[db][shard / 64].load(Relaxed) >> (shard % 64);
            if word == 0 {
                shard = (shard / 64 + 1) * 64;
                continue;
            }
            shard += word.trailing_zeros() as usize;
            if self.keys.at(shard, db).load(Relaxed) > 0 {
                return Some(shard);
            }
            shard += 1;
        }
        None
    }
}

/// One word per shard and database, the words of a shard in lines of their own.
pub(crate) struct Grid<T> {
    rows: Box<[Row<T>]>,
    /// Rows per shard.
    stride: usize,
    columns: usize,
}

/// 16 words of 8 bytes.
#[derive(Default)]
#[repr(align(128))]
struct Row<T>([T; 16]);

impl<T: Default> Grid<T> {
    fn new(shards: usize, columns: usize) -> Grid<T> {
        const { assert!(size_of::<T>() == 8) };
        let stride = columns.div_ceil(16);
        Grid {
            rows: (0..shards * stride)
                .map(|_| Row(Default::default()))
                .collect(),
            stride,
            columns,
        }
    }

    #[inline]
    pub(crate) fn at(&self, shard: usize, column: usize) -> &T {
        assert!(column < self.columns, "no such database");
        &self.rows[shard * self.stride + column / 16].0[column % 16]
    }

    /// All shards' words of one column.
    pub(crate) fn column(&self, column: usize) -> impl Iterator<Item = &T> {
        assert!(column < self.columns, "no such database");
        let rows = self.rows.iter().skip(column / 16).step_by(self.stride);
        rows.map(move |row| &row.0[column % 16])
    }
}
