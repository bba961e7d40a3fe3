//! A segment: 1 to 64 buckets that cover one range of positions.
//!
//! Owns placement: an entry lives in its home bucket or in the next one. The home is the bits of the position right
//! after those that chose the segment, so buckets are in the order of positions. Does not know what handles mean.
//! Placement prefers the home, so that a look-up usually touches one bucket; when home and next are full, entries of
//! the next move on by one, as far as needed. Simulated with 64 buckets this reaches a load of 0.90 before a split, and
//! 1.6 % are displaced at the average load; taking the emptier of the two reaches 0.78, with 32 % displaced.
//! Sizes are powers of two: from 64 to 1024 bytes, exact classes of the general allocator, then half a page of the ground and
//! a whole one: when the tables of all shards grow together, what they leave is what they need next.
//! Invariant: `away` of a bucket is the number of `displaced` bits in the next.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ptr::NonNull;

use super::bucket::{Bucket, SLOTS};
use crate::arena::ground::{Ground, HALF_BYTES, PAGE_BYTES};
use crate::expiry::Due16;
use crate::gate::limbo::Block;
use crate::position::Position;

/// The largest segment has 2 to the power of this many buckets.
pub(crate) const LOG2_MAX: u32 = 6;

/// How many buckets a chain of moves may touch.
const REACH: usize = 16;

/// A segment's memory; whoever has the directory owns it.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    start: NonNull<Bucket>,
    log2: u32,
}

impl Segment {
    /// A segment of 2^`log2` empty buckets.
    pub(crate) fn allocate(log2: u32, ground: &Ground) -> Segment {
        let layout = layout(log2);
        let start = match layout.size() {
            PAGE_BYTES => Some(ground.take_page()),
            HALF_BYTES => Some(ground.take_half()),
            _ => None,
        };
        if let Some(start) = start {
            let start = start.cast();
            return Segment { start, log2 };
        }
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(memory.cast::<Bucket>()) else {
            handle_alloc_error(layout)
        };
        Segment { start, log2 }
    }

    /// # Safety
    ///
    /// `start` and `log2` are those of a segment that is not freed while the result is used.
    #[inline]
    pub(crate) unsafe fn from_parts(start: NonNull<Bucket>, log2: u32) -> Segment {
        Segment { start, log2 }
    }

    #[inline]
    pub(crate) fn start(self) -> NonNull<Bucket> {
        self.start
    }

    #[inline]
    pub(crate) fn log2(self) -> u32 {
        self.log2
    }

    pub(crate) fn bytes(self) -> usize {
        layout(self.log2).size()
    }

    pub(crate) fn into_block(self) -> Block {
        let layout = layout(self.log2);
        match layout.size() {
            PAGE_BYTES => Block::Page(self.start.cast()),
            HALF_BYTES => Block::Half(self.start.cast()),
            _ => Block::Raw(self.start.cast(), layout),
        }
    }

    /// Entries that fit.
    pub(crate) fn capacity(self) -> u32 {
        SLOTS << self.log2
    }

    #[inline]
    pub(crate) fn buckets<'a>(self) -> &'a [Bucket] {
        // SAFETY: all zeroes is a bucket, and whoever made this value answers for the memory being live.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), 1 << self.log2) }
    }

    /// The number of the home bucket, given how many bits of the position led here.
    #[inline]
    pub(crate) fn home(self, position: Position, bits: u32) -> usize {
        // Two shifts, because one bucket means shifting by all 64 bits.
        ((position.bits() << bits >> 1) >> (63 - self.log2)) as usize
    }

    /// Where a home bucket's range of positions begins, given the segment's.
    pub(crate) fn range_start(self, low: u64, high: u64, bucket: usize) -> u64 {
        // `high` is one less than a multiple of the number of buckets, so this is exact.
        let range = u128::from(high - low) + 1;
        low + ((range >> self.log2) * bucket as u128) as u64
    }

    #[inline]
    pub(crate) fn next(self, bucket: usize) -> usize {
        (bucket + 1) & ((1 << self.log2) - 1)
    }

    #[inline]
    pub(crate) fn previous(self, bucket: usize) -> usize {
        bucket.wrapping_sub(1) & ((1 << self.log2) - 1)
    }

    /// Puts an entry into its home or next to it; false if there is no room.
    pub(crate) fn place(self, home: usize, tag: u8, handle: u32, due: Due16, now: u64) -> bool {
        let buckets = self.buckets();
        if let Some(slot) = buckets[home].free().first() {
            buckets[home].put(slot, tag, handle, false);
            buckets[home].lower_due(due, now);
            return true;
        }
        let mut at = home;
        for reach in 1..buckets.len().min(REACH + 1) {
            at = self.next(at);
            if buckets[at].free().first().is_some() {
                for _ in 1..reach {
                    let from = self.previous(at);
                    self.shift(from, at, now);
                    at = from;
                }
                let slot = buckets[at].free().first().expect("its own or just made");
                buckets[at].put(slot, tag, handle, true);
                buckets[at].lower_due(due, now);
                buckets[home].add_away();
                return true;
            }
            if buckets[at].own().first().is_none() {
                return false;
            }
        }
        false
    }

    /// Empties a slot, and fills it with an entry of the same home that had to live next door, if there is one.
    pub(crate) fn vacate(self, bucket: usize, slot: u32, now: u64) {
        let buckets = self.buckets();
        let here = &buckets[bucket];
        if here.displaced().contains(slot) {
            here.clear(slot);
            buckets[self.previous(bucket)].subtract_away();
            return;
        }
        here.clear(slot);
        if here.away() > 0 {
            let there = &buckets[self.next(bucket)];
            let from = there.displaced().first().expect("away counts it");
            here.put(slot, there.tag(from), there.handle(from), false);
            here.lower_due(there.due(), now);
            there.clear(from);
            here.subtract_away();
        }
    }

    /// Moves one entry that belongs to `from` on to `to`, the bucket after it, which has room.
    fn shift(self, from: usize, to: usize, now: u64) {
        let buckets = self.buckets();
        let (from, to) = (&buckets[from], &buckets[to]);
        let slot = from.own().first().expect("checked on the way");
        let free = to.free().first().expect("room was found or made");
        to.put(free, from.tag(slot), from.handle(slot), true);
        to.lower_due(from.due(), now);
        from.clear(slot);
        from.add_away();
    }
}

fn layout(log2: u32) -> Layout {
    Layout::array::<Bucket>(1 << log2).expect("at most 4096 bytes")
}
