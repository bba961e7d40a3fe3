//! Memory that prefetchers may still be reading.
//!
//! Owns directories, segments and chunk maps from the moment a table drops them until every worker has left its gate
//! once. Does not know tables. Prefetching reads these blocks without the latch but inside a gate, so a worker that
//! has been outside since can only have found the successors. Invariant: at most about [`BATCH`] blocks wait for the
//! next batch, and one batch waits for the gates.

use std::alloc::{Layout, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use crate::arena::ChunkMap;
use crate::arena::ground::{Ground, HALF_BYTES, PAGE_BYTES};
use crate::gate::Gates;
use crate::table::Remains;

/// Blocks collected before the gates are looked at.
const BATCH: usize = 32;

/// Something to free later.
pub(crate) enum Block {
    /// Memory of the general allocator.
    Raw(NonNull<u8>, Layout),
    /// A page of the ground, or half of one.
    Page(NonNull<u8>),
    Half(NonNull<u8>),
    /// A chunk map with its capacity.
    Map(NonNull<ChunkMap>, usize),
}

// SAFETY: a block is owned by whoever holds it.
unsafe impl Send for Block {}

impl Block {
    fn bytes(&self) -> usize {
        match self {
            Block::Raw(_, layout) => layout.size(),
            Block::Page(_) => PAGE_BYTES,
            Block::Half(_) => HALF_BYTES,
            Block::Map(_, capacity) => capacity * size_of::<ChunkMap>(),
        }
    }

    /// # Safety
    ///
    /// Nobody reads it any more.
    pub(crate) unsafe fn free(self, ground: &Ground) {
        match self {
            // SAFETY: the block was allocated with this layout and is not used any more.
            Block::Raw(start, layout) => unsafe { dealloc(start.as_ptr(), layout) },
            // SAFETY: the page came from the ground and is not used any more.
            Block::Page(start) => unsafe { ground.give_back_page(start) },
            // SAFETY: the half came from the ground and is not used any more.
            Block::Half(start) => unsafe { ground.give_back_half(start) },
            Block::Map(start, capacity) => {
                let map = NonNull::slice_from_raw_parts(start, capacity);
                // SAFETY: it was leaked from a box of this length and is not used any more.
                drop(unsafe { Box::from_raw(map.as_ptr()) });
            }
        }
    }
}

/// The waiting room.
pub(crate) struct Limbo {
    gates: Arc<Gates>,
    ground: Arc<Ground>,
    waiting: Mutex<Waiting>,
    bytes: AtomicUsize,
}

#[derive(Default)]
struct Waiting {
    collecting: Vec<Block>,
    sealed: Vec<Block>,
    /// The gates when `sealed` was sealed.
    stamp: Box<[u32]>,
    /// Whole tables, with the gates when they lost their roots. Freed by [`Limbo::collect`] only, since that is more
    /// than somebody who holds a latch may do.
    tables: Vec<(Box<Remains>, Box<[u32]>)>,
}

impl Limbo {
    pub(crate) fn new(gates: Arc<Gates>, ground: Arc<Ground>) -> Limbo {
        Limbo {
            gates,
            ground,
            waiting: Mutex::default(),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes waiting.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Takes a block that nothing published leads to any more.
    pub(crate) fn retire(&self, block: Block) {
        self.bytes.fetch_add(block.bytes(), Relaxed);
        let free = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.collecting.push(block);
            if waiting.collecting.len() < BATCH {
                return;
            }
            self.turn(&mut waiting)
        };
        self.free(free);
    }

    /// Takes a table without a root, whose values were dropped.
    pub(crate) fn retire_table(&self, table: Box<Remains>, stamp: Box<[u32]>) {
        self.bytes.fetch_add(table.bytes(), Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.tables.push((table, stamp));
    }

    /// Frees what can be freed now; whether nothing is left. Not to be called under a latch.
    pub(crate) fn collect(&self) -> bool {
        let left: Vec<_> = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut waiting.tables)
        };
        let (free, kept): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|(_, stamp)| self.gates.all_left_since(stamp));
        let all = kept.is_empty();
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.tables.extend(kept);
        }
        self.free_tables(free);
        let none = self.collect_blocks();
        self.ground.trim_pages();
        none && all
    }

    fn collect_blocks(&self) -> bool {
        for _ in 0..2 {
            let (free, left) = {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                let free = self.turn(&mut waiting);
                (free, waiting.sealed.len() + waiting.collecting.len())
            };
            self.free(free);
            if left == 0 {
                return true;
            }
        }
        false
    }

    /// Returns the sealed batch if everyone has been outside since, and seals the next.
    fn turn(&self, waiting: &mut Waiting) -> Vec<Block> {
        if !waiting.sealed.is_empty() && !self.gates.all_left_since(&waiting.stamp) {
            return Vec::new();
        }
        let free = std::mem::take(&mut waiting.sealed);
        waiting.sealed = std::mem::take(&mut waiting.collecting);
        waiting.stamp = self.gates.stamp();
        free
    }

    fn free_tables(&self, tables: Vec<(Box<Remains>, Box<[u32]>)>) {
        for (mut table, _) in tables {
            self.bytes.fetch_sub(table.bytes(), Relaxed);
            // SAFETY: its values were dropped, and every worker has been outside its gate since it lost its root.
            let done = unsafe { table.free_memory(&self.ground, usize::MAX) };
            debug_assert!(done, "the budget was everything");
        }
    }

    fn free(&self, blocks: Vec<Block>) {
        for block in blocks {
            self.bytes.fetch_sub(block.bytes(), Relaxed);
            // SAFETY: every worker has been outside its gate since the block was retired.
            unsafe { block.free(&self.ground) };
        }
    }
}

impl Drop for Limbo {
    fn drop(&mut self) {
        let waiting = self
            .waiting
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let mut blocks = std::mem::take(&mut waiting.sealed);
        blocks.append(&mut waiting.collecting);
        let tables = std::mem::take(&mut waiting.tables);
        // Guards of gates borrow the keyspace, so nobody is inside any more.
        self.free_tables(tables);
        self.free(blocks);
    }
}
