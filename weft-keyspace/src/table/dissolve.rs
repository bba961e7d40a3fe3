//! Taking a whole table apart.
//!
//! Owns what is left of a table that FLUSHDB, FLUSHALL or the end of the keyspace removed. First the values outside
//! the arena go, then, once no prefetcher can be reading them, chunks, segments and directory, all in slices. Nothing
//! here needs a latch: the arena belongs to the table alone, which is why it is not the shard's.

use std::fmt;
use std::sync::Arc;

use super::Table;
use super::directory::Directory;
use crate::arena::ground::Ground;
use crate::spine::Spine;

/// Work units that giving a chunk to the system counts for: about as long as dropping this many small values.
const CHUNK_UNITS: usize = 64;

/// A table that was emptied, waiting to be freed in slices.
#[derive(Default)]
pub struct Dropped(Option<Waiting>);

struct Waiting {
    spine: Arc<Spine>,
    remains: Box<Remains>,
    /// The gates when the table had just lost its root.
    stamp: Box<[u32]>,
}

impl Dropped {
    /// `table` has just lost its root.
    pub(crate) fn new(spine: &Arc<Spine>, table: Table) -> Dropped {
        Dropped(Some(Waiting {
            stamp: spine.gates.stamp(),
            spine: Arc::clone(spine),
            remains: Box::new(Remains {
                table,
                slot: 0,
                bucket: 0,
                freed: 0,
            }),
        }))
    }

    /// Entries in it.
    pub fn len(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |waiting| waiting.remains.table.len)
    }

    /// Whether there were no entries in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frees up to about `budget` values; true when nothing is left. False with work undone may also mean that some
    /// worker has not left its gate since the flush: try again later.
    pub fn free_some(&mut self, budget: usize) -> bool {
        let Some(waiting) = &mut self.0 else {
            return true;
        };
        let mut left = budget.max(1);
        if !waiting.remains.drop_values(&mut left) {
            return false;
        }
        if !waiting.spine.gates.all_left_since(&waiting.stamp) {
            return false;
        }
        // SAFETY: the values are dropped, and everybody has been outside since the table lost its root.
        let done = unsafe { waiting.remains.free_memory(&waiting.spine.ground, left) };
        if done {
            self.0 = None;
        }
        done
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        // Usually nobody is inside who was when this was flushed, and then it is freed at once.
        if self.free_some(usize::MAX) {
            return;
        }
        if let Some(waiting) = self.0.take() {
            let Waiting {
                spine,
                remains,
                stamp,
            } = waiting;
            spine.limbo.retire_table(remains, stamp);
        }
    }
}

impl fmt::Debug for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dropped")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// A table without a root.
pub(crate) struct Remains {
    table: Table,
    /// The next directory slot to drop values of.
    slot: usize,
    /// The next bucket in its segment.
    bucket: usize,
    /// The next directory slot to free the segment of.
    freed: usize,
}

impl Remains {
    /// Bytes that are not freed yet, about.
    pub(crate) fn bytes(&self) -> usize {
        self.table.table_bytes() + self.table.arena.page_bytes() + self.table.external
    }

    /// Drops values outside and long keys for up to `budget` units (entries looked at, chunks dropped); takes what it used from
    /// the budget. True when none are left.
    fn drop_values(&mut self, budget: &mut usize) -> bool {
        let slots = self.table.slots();
        while self.table.external > 0 && self.slot < slots.len() {
            let directory = self.table.directory();
            let depth = slots[self.slot].depth();
            let (first, width) = directory.span(self.slot, depth);
            let buckets = slots[first].segment().buckets();
            while self.bucket < buckets.len() {
                if *budget == 0 {
                    return false;
                }
                let bucket = &buckets[self.bucket];
                for slot in bucket.used() {
                    let units = self.drop_external(bucket.handle(slot));
                    *budget = budget.saturating_sub(units);
                }
                self.bucket += 1;
            }
            self.bucket = 0;
            self.slot = first + width;
        }
        while let Some((_, handles)) = self.table.stash.pop_first() {
            for handle in handles {
                let units = self.drop_external(handle);
                *budget = budget.saturating_sub(units);
            }
            if *budget == 0 {
                return self.table.stash.is_empty();
            }
        }
        true
    }

    /// Frees everything else, up to `budget` units at once; true when done, after which it must not be called again.
    ///
    /// # Safety
    ///
    /// All values are dropped, and every worker has been outside its gate since the table lost its root.
    pub(crate) unsafe fn free_memory(&mut self, ground: &Ground, budget: usize) -> bool {
        let chunks = (budget / CHUNK_UNITS).max(1);
        // SAFETY: nobody looks at the table any more.
        if !unsafe { self.table.arena.give_back(ground, chunks) } {
            return false;
        }
        let (directory, slots) = (self.table.directory(), self.table.slots());
        for _ in 0..budget.max(1) {
            let Some(slot) = slots.get(self.freed) else {
                // SAFETY: nobody reads it any more.
                unsafe { self.table.arena.map_block().free(ground) };
                // SAFETY: nobody reads it any more.
                unsafe {
                    Directory::into_block(self.table.directory, directory.depth()).free(ground)
                };
                return true;
            };
            let (_, width) = directory.span(self.freed, slot.depth());
            // SAFETY: nobody reads it any more, and each segment is met once, at its canonical slot.
            unsafe { slot.segment().into_block().free(ground) };
            self.freed += width;
        }
        false
    }

    fn drop_external(&mut self, handle: u32) -> usize {
        let entry = self.table.entry(handle);
        let bytes = entry.external_bytes();
        if bytes == 0 {
            return 1;
        }
        self.table.external -= bytes;
        // SAFETY: each entry is visited once, and nothing looks at it afterwards.
        let value = unsafe { entry.take_outside() };
        if let Some(long) = entry.long_key() {
            // SAFETY: as above.
            unsafe { long.free() };
        }
        1 + value.map_or(0, |value| value.pieces())
    }
}
