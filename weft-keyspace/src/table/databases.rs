//! The tables of one shard, one per database.
//!
//! Owns the tables and keeps the shard's words in the spine (roots, counts, bytes held, non-empty bits) in step with
//! them. Does not know capture. Invariant: between calls every root leads to the directory of the table in its place.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::{Context, Dropped, Table, get_by_root};
use crate::entry::Entry;
use crate::keyspace::Memory;
use crate::position::Position;
use crate::spine::Spine;

/// The tables of a shard.
pub(crate) struct Databases {
    spine: Arc<Spine>,
    shard: usize,
    tables: Box<[Option<Box<Table>>]>,
}

impl Databases {
    /// No tables. There is one of these per shard of a spine.
    pub(crate) fn new(spine: Arc<Spine>, shard: usize) -> Databases {
        let tables = (0..spine.databases).map(|_| None).collect();
        Databases {
            spine,
            shard,
            tables,
        }
    }

    #[inline]
    pub(crate) fn shard(&self) -> usize {
        self.shard
    }

    /// The entry with this key.
    #[inline]
    pub(crate) fn find(&self, db: usize, position: Position, key: &[u8]) -> Option<Entry<'_>> {
        let root = self.spine.roots.at(self.shard, db);
        // By the root and not by the table: prefetching has just brought these lines.
        // SAFETY: the root leads to the directory of a table that is borrowed through `self`.
        match unsafe { get_by_root(root, position, key) } {
            Some(entry) => entry,
            None => self.tables[db].as_ref()?.get(position, key),
        }
    }

    #[inline]
    pub(crate) fn table(&self, db: usize) -> Option<&Table> {
        self.tables[db].as_deref()
    }

    /// A table and what it needs to change. Whoever changed it calls [`Databases::publish`].
    #[inline]
    pub(crate) fn table_mut(&mut self, db: usize, now: u64) -> Option<(Context<'_>, &mut Table)> {
        let context = Context {
            spine: &self.spine,
            shard: self.shard,
            root: self.spine.roots.at(self.shard, db),
            now,
        };
        Some((context, self.tables[db].as_deref_mut()?))
    }

    /// The same; makes a table if there is none.
    pub(crate) fn table_or_new(&mut self, db: usize, now: u64) -> (Context<'_>, &mut Table) {
        let context = Context {
            spine: &self.spine,
            shard: self.shard,
            root: self.spine.roots.at(self.shard, db),
            now,
        };
        let table = self.tables[db].get_or_insert_with(|| Box::new(Table::new(context)));
        (context, table)
    }

    pub(crate) fn context(&self, db: usize, now: u64) -> Context<'_> {
        Context {
            spine: &self.spine,
            shard: self.shard,
            root: self.spine.roots.at(self.shard, db),
            now,
        }
    }

    /// The word with the bytes that the shard holds, for those who change a value in place.
    pub(crate) fn table_and_held(&mut self, db: usize) -> Option<(&mut Table, &AtomicUsize)> {
        let held = self.spine.held.at(self.shard, 0);
        Some((self.tables[db].as_deref_mut()?, held))
    }

    /// Brings the spine's words in step, if the table changed in any way that they tell of.
    #[inline]
    pub(crate) fn publish(&mut self, db: usize) {
        if self.tables[db]
            .as_mut()
            .is_some_and(|table| table.take_changed())
        {
            self.publish_now(db);
        }
    }

    /// Takes a table out.
    pub(crate) fn take(&mut self, db: usize) -> Dropped {
        let Some(table) = self.tables[db].take() else {
            return Dropped::default();
        };
        let root = self.spine.roots.at(self.shard, db);
        root.store(std::ptr::null_mut(), Release);
        let word = self.spine.held.at(self.shard, 0);
        word.store(word.load(Relaxed) - table.held, Relaxed);
        self.publish_now(db);
        self.spine.mark_empty(self.shard, db);
        Dropped::new(&self.spine, *table)
    }

    pub(crate) fn swap(&mut self, a: usize, b: usize) {
        self.tables.swap(a, b);
        for db in [a, b] {
            let directory = self.tables[db]
                .as_ref()
                .map_or(std::ptr::null_mut(), |table| table.directory.as_ptr());
            self.spine
                .roots
                .at(self.shard, db)
                .store(directory, Release);
            self.publish_now(db);
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        let tables = self.tables.iter().flatten();
        tables
            .map(|table| table.memory())
            .fold(Memory::default(), Memory::plus)
    }

    fn publish_now(&mut self, db: usize) {
        let (keys, deadlines, fielded) = self.tables[db].as_ref().map_or((0, 0, 0), |table| {
            (table.len, table.deadlines, table.fielded)
        });
        self.spine.keys.at(self.shard, db).store(keys, Relaxed);
        let word = self.spine.deadlines.at(self.shard, db);
        word.store(deadlines, Relaxed);
        let word = self.spine.fielded.at(self.shard, db);
        // Seldom anything else than 0, so that the line need not be written.
        if word.load(Relaxed) != fielded {
            word.store(fielded, Relaxed);
        }
        if keys > 0 {
            self.spine.mark_nonempty(self.shard, db);
        }
        if let Some(table) = &mut self.tables[db] {
            let bytes = table.arena.page_bytes() + table.table_bytes() + table.external;
            let before = std::mem::replace(&mut table.held, bytes);
            let word = self.spine.held.at(self.shard, 0);
            word.store(word.load(Relaxed) - before + bytes, Relaxed);
        }
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        for db in 0..self.tables.len() {
            drop(self.take(db));
        }
    }
}
