//! The directory of a table: positions to segments.
//!
//! Owns the memory of the slots and their packing. Prefetchers read it without the latch, so everything is atomic; a
//! directory never changes its size, it is replaced. A segment that fewer bits identify than the directory has fills
//! several slots; the first of them, the canonical one, has its count and its due bound.
//!
//! ```text
//! slot: segment pointer 8, its low 6 bits: log2 of buckets 3, has stashed entries 1 | depth 8 bits, count 24 bits | due 32 bits
//! ```

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use super::bucket::Bucket;
use super::segment::Segment;
use crate::arena::ChunkMap;
use crate::expiry::Due32;
use crate::gate::limbo::Block;
use crate::position::Position;

const LOG2_MASK: usize = 0b111;
const STASHED: usize = 0b1000;
const TAG_MASK: usize = 0b11_1111;
const DEPTH_SHIFT: u32 = 24;
const COUNT_MASK: u32 = (1 << DEPTH_SHIFT) - 1;

/// Header of a directory; its slots follow it.
#[repr(C, align(16))]
pub(crate) struct Directory {
    /// The arena's chunk map.
    pub(crate) map: AtomicPtr<ChunkMap>,
    /// Bits that choose a slot, after those that chose the shard.
    depth: u32,
    shard_bits: u32,
}

/// One slot.
#[repr(C)]
pub(crate) struct Slot {
    segment: AtomicPtr<Bucket>,
    state: AtomicU32,
    due: AtomicU32,
}

impl Slot {
    #[inline]
    pub(crate) fn segment(&self) -> Segment {
        let tagged = self.segment.load(Acquire);
        let log2 = (tagged.addr() & LOG2_MASK) as u32;
        let start = tagged.map_addr(|address| address & !TAG_MASK);
        // SAFETY: slots are filled before the directory is published, and never with null.
        let start = unsafe { NonNull::new_unchecked(start) };
        // SAFETY: segments are freed only after they left every directory and every reader its gate.
        unsafe { Segment::from_parts(start, log2) }
    }

    /// Whether entries of this range are in the table's stash.
    #[inline]
    pub(crate) fn has_stashed(&self) -> bool {
        self.segment.load(Relaxed).addr() & STASHED != 0
    }

    fn set_segment(&self, segment: Segment, stashed: bool) {
        let flag = if stashed { STASHED } else { 0 };
        let tagged = segment
            .start()
            .as_ptr()
            .map_addr(|address| address | segment.log2() as usize | flag);
        self.segment.store(tagged, Release);
    }

    /// How many bits, after the shard's, identify the segment.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.state.load(Relaxed) >> DEPTH_SHIFT
    }

    /// Entries in the segment, stashed ones not counted. Canonical slots only.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.state.load(Relaxed) & COUNT_MASK
    }

    #[inline]
    pub(crate) fn set_count(&self, count: u32) {
        let depth = self.state.load(Relaxed) & !COUNT_MASK;
        self.state.store(depth | count, Relaxed);
    }

    /// Lower bound of the deadlines in the range. Canonical slots only.
    #[inline]
    pub(crate) fn due(&self) -> Due32 {
        Due32::from_bits(self.due.load(Relaxed))
    }

    #[inline]
    pub(crate) fn set_due(&self, due: Due32) {
        self.due.store(due.bits(), Relaxed);
    }
}

impl Directory {
    /// A directory of 2^`depth` slots. It must be filled before anybody sees it.
    pub(crate) fn allocate(depth: u32, shard_bits: u32, map: *mut ChunkMap) -> NonNull<Directory> {
        let layout = layout(depth);
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(memory.cast::<Directory>()) else {
            handle_alloc_error(layout)
        };
        let header = Directory {
            map: AtomicPtr::new(map),
            depth,
            shard_bits,
        };
        // SAFETY: fresh memory of the right layout.
        unsafe { start.write(header) };
        start
    }

    pub(crate) fn into_block(start: NonNull<Directory>, depth: u32) -> Block {
        Block::Raw(start.cast(), layout(depth))
    }

    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    #[inline]
    pub(crate) fn shard_bits(&self) -> u32 {
        self.shard_bits
    }

    pub(crate) fn bytes(&self) -> usize {
        layout(self.depth).size()
    }

    /// The slots of the directory at `start`.
    ///
    /// # Safety
    ///
    /// The directory is not freed for `'a`.
    #[inline]
    pub(crate) unsafe fn slots<'a>(start: NonNull<Directory>) -> &'a [Slot] {
        // SAFETY: a directory starts with its header.
        let depth = unsafe { start.as_ref() }.depth;
        // SAFETY: the slots follow the header in the same allocation.
        let slots = unsafe { start.add(1) };
        // SAFETY: there are 2^depth of them, initialised (all zeroes is a slot).
        unsafe { std::slice::from_raw_parts(slots.cast::<Slot>().as_ptr(), 1 << depth) }
    }

    /// The number of the slot for a position.
    #[inline]
    pub(crate) fn index(&self, position: Position) -> usize {
        // Two shifts, because depth 0 means shifting by all 64 bits.
        ((position.bits() << self.shard_bits >> 1) >> (63 - self.depth)) as usize
    }

    /// The first slot of the segment that `index` belongs to, and how many it fills.
    #[inline]
    pub(crate) fn span(&self, index: usize, depth: u32) -> (usize, usize) {
        let width = 1 << (self.depth - depth);
        (index & !(width - 1), width)
    }
}

/// Fills all slots of a segment: `first` and `width` as from [`Directory::span`].
pub(crate) fn install(
    slots: &[Slot],
    (first, width): (usize, usize),
    depth: u32,
    segment: Segment,
    stashed: bool,
) {
    for slot in &slots[first..first + width] {
        slot.set_segment(segment, stashed);
        slot.state.store(depth << DEPTH_SHIFT, Relaxed);
        slot.due.store(0, Relaxed);
    }
}

/// Copies one slot.
pub(crate) fn copy(from: &Slot, to: &Slot) {
    to.segment.store(from.segment.load(Relaxed), Relaxed);
    to.state.store(from.state.load(Relaxed), Relaxed);
    to.due.store(from.due.load(Relaxed), Relaxed);
}

/// Sets the mark that entries of these slots are stashed.
pub(crate) fn mark_stashed(slots: &[Slot], (first, width): (usize, usize), stashed: bool) {
    for slot in &slots[first..first + width] {
        slot.set_segment(slot.segment(), stashed);
    }
}

fn layout(depth: u32) -> Layout {
    let slots = Layout::array::<Slot>(1 << depth).expect("bounded by the number of segments");
    let (layout, _) = Layout::new::<Directory>()
        .extend(slots)
        .expect("bounded by the number of segments");
    layout
}

const _: () = assert!(size_of::<Directory>() == 16 && size_of::<Slot>() == 16);
