//! How a table grows and shrinks, one segment at a time.
//!
//! Owns the decisions and the moves. A segment whose buckets are full although it has room in general is doubled,
//! then split; one that overflows while nearly empty holds positions with a long common beginning, so it is split to
//! get past the beginning, as long as the directory stays small. What is replaced is retired. Invariant: every change
//! is published by single stores, in an order that never leads a prefetcher to memory that is not a segment.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Release;

use super::bucket::SLOTS;
use super::directory::{self, Directory};
use super::segment::{LOG2_MAX, Segment};
use super::{Context, Table};
use crate::expiry::{Due16, Due32};
use crate::position::{CURSOR_BITS, Position};

/// Directory slots allowed per segment, as a power of two.
const SPARE_LOG2: u32 = 6;
/// As many stashed entries are given another chance when their segment is rebuilt.
const UNSTASH_MAX: usize = 64;

/// An entry on the move.
struct Item {
    position: Position,
    handle: u32,
    due: Due16,
}

/// What a rebuilt range looks like.
struct Built {
    segment: Segment,
    count: u32,
    left_over: Vec<Item>,
}

impl Table {
    /// Makes room in the segment of directory slot `index`; false if growing would not help.
    #[cold]
    pub(super) fn grow(&mut self, context: Context<'_>, index: usize) -> bool {
        let directory = self.directory();
        let slots = self.slots();
        let depth = slots[index].depth();
        let (first, _) = directory.span(index, depth);
        let segment = slots[index].segment();
        let crowded = slots[first].count() * 2 >= segment.capacity();
        if crowded && segment.log2() < LOG2_MAX {
            self.resize(context, index, segment.log2() + 1);
            return true;
        }
        let deepest_useful = CURSOR_BITS - LOG2_MAX - directory.shard_bits();
        let affordable = depth < directory.depth()
            || depth < SPARE_LOG2
            || 1 << depth >> SPARE_LOG2 < self.segments;
        if depth >= deepest_useful || !affordable {
            return false;
        }
        self.split(context, index);
        true
    }

    /// Makes the segment of a position smaller, or joins it with its buddy, if it is sparse.
    pub(super) fn shrink(&mut self, context: Context<'_>, position: Position) {
        let directory = self.directory();
        let slots = self.slots();
        let index = directory.index(position);
        let depth = slots[index].depth();
        let (first, width) = directory.span(index, depth);
        let (count, segment) = (slots[first].count(), slots[first].segment());
        if count * 4 >= segment.capacity() || segment.capacity() == SLOTS && depth == 0 {
            return;
        }
        let buddy = first ^ width;
        if depth > 0 && slots[buddy].depth() == depth {
            let total = count + slots[buddy].count();
            if total * 2 <= SLOTS << LOG2_MAX {
                self.merge(context, first.min(buddy));
                return;
            }
        }
        if segment.log2() > 0 && size_for(count) < segment.log2() {
            self.resize(context, index, segment.log2() - 1);
        }
    }

    /// Rebuilds a segment with another number of buckets.
    fn resize(&mut self, context: Context<'_>, index: usize, log2: u32) {
        let depth = self.slots()[index].depth();
        let span = self.directory().span(index, depth);
        let due = self.slots()[span.0].due();
        let (items, kept) = self.gather(context, span.0);
        let built = self.build(context, items, depth, log2);
        let old = self.slots()[span.0].segment();
        self.settle(span, depth, built, due, kept);
        self.retire(context, old);
    }

    fn split(&mut self, context: Context<'_>, index: usize) {
        let depth = self.slots()[index].depth();
        let (first, _) = self.directory().span(index, depth);
        let due = self.slots()[first].due();
        let (items, kept) = self.gather(context, first);
        let bit = 63 - self.directory().shard_bits() - depth;
        let (upper, lower): (Vec<_>, Vec<_>) = items
            .into_iter()
            .partition(|item| item.position.bits() >> bit & 1 != 0);
        let built_lower = self.build_fitting(context, lower, depth + 1);
        let built_upper = self.build_fitting(context, upper, depth + 1);
        let old = self.slots()[first].segment();
        let directory_depth = self.directory().depth();
        let first = if depth == directory_depth {
            self.double_directory(context);
            self.deepest = 0;
            first * 2
        } else {
            first
        };
        if depth + 1 == self.directory().depth() {
            self.deepest += 2;
        }
        self.segments += 1;
        let half = 1 << (self.directory().depth() - depth - 1);
        self.settle((first, half), depth + 1, built_lower, due, kept);
        self.settle((first + half, half), depth + 1, built_upper, due, kept);
        self.retire(context, old);
    }

    /// Joins the segment at `first` with its buddy behind it.
    fn merge(&mut self, context: Context<'_>, first: usize) {
        let slots = self.slots();
        let depth = slots[first].depth();
        let (_, width) = self.directory().span(first, depth);
        let due = slots[first]
            .due()
            .earlier(slots[first + width].due(), context.now);
        let (mut items, kept_lower) = self.gather(context, first);
        let (upper, kept_upper) = self.gather(context, first + width);
        items.extend(upper);
        let built = self.build_fitting(context, items, depth - 1);
        let old = [first, first + width].map(|first| self.slots()[first].segment());
        self.segments -= 1;
        if depth == self.directory().depth() {
            self.deepest -= 2;
        }
        let kept = kept_lower || kept_upper;
        self.settle((first, width * 2), depth - 1, built, due, kept);
        for segment in old {
            self.retire(context, segment);
        }
        while self.deepest == 0 && self.directory().depth() > 0 {
            self.halve_directory(context);
        }
    }

    /// Publishes a rebuilt range.
    fn settle(
        &mut self,
        span: (usize, usize),
        depth: u32,
        built: Built,
        due: Due32,
        stash_kept: bool,
    ) {
        let stashed = stash_kept || !built.left_over.is_empty();
        let slots = self.slots();
        directory::install(slots, span, depth, built.segment, stashed);
        slots[span.0].set_count(built.count);
        slots[span.0].set_due(due);
        for item in built.left_over {
            self.stash(item.position, item.handle);
        }
    }

    /// The entries of a segment, and of the stash if those are few; whether some were left there.
    fn gather(&mut self, context: Context<'_>, first: usize) -> (Vec<Item>, bool) {
        let slot = &self.slots()[first];
        let mut handles = Vec::with_capacity(slot.count() as usize);
        for bucket in slot.segment().buckets() {
            for used in bucket.used() {
                let handle = bucket.handle(used);
                super::load_ahead(self.arena.address(handle).as_ptr());
                handles.push(handle);
            }
        }
        let mut kept = false;
        if slot.has_stashed() {
            let (from, to) = self.positions(context, first);
            let stashed: usize = self
                .stash
                .range(from..=to)
                .map(|(_, list)| list.len())
                .sum();
            kept = stashed > UNSTASH_MAX;
            if !kept {
                let positions: Vec<u64> = self.stash.range(from..=to).map(|(&at, _)| at).collect();
                for position in positions {
                    handles.extend(self.stash.remove(&position).expect("listed"));
                }
                self.stashed -= stashed;
            }
        }
        let items = handles
            .into_iter()
            .map(|handle| {
                let entry = self.entry(handle);
                Item {
                    position: Table::position_of(context, entry),
                    handle,
                    due: Due16::of(entry.due(), context.now),
                }
            })
            .collect();
        (items, kept)
    }

    /// First and last position of a canonical slot's segment, the shard's bits included.
    pub(super) fn positions(&self, context: Context<'_>, first: usize) -> (u64, u64) {
        let directory = self.directory();
        let (_, width) = directory.span(first, self.slots()[first].depth());
        let bits = directory.shard_bits() + directory.depth();
        let start = |index: u64| {
            if bits == 0 { 0 } else { index << (64 - bits) }
        };
        let shard = (context.shard as u64) << directory.depth();
        let from = start(shard | first as u64);
        let next = start((shard | first as u64).wrapping_add(width as u64));
        (from, next.wrapping_sub(1))
    }

    fn build_fitting(&mut self, context: Context<'_>, items: Vec<Item>, depth: u32) -> Built {
        let log2 = size_for(items.len() as u32);
        self.build(context, items, depth, log2)
    }

    fn build(&mut self, context: Context<'_>, items: Vec<Item>, depth: u32, log2: u32) -> Built {
        let segment = Segment::allocate(log2, &context.spine.ground);
        self.segment_bytes += segment.bytes();
        let bits = self.directory().shard_bits() + depth;
        let mut count = 0;
        let left_over = items
            .into_iter()
            .filter(|item| {
                let home = segment.home(item.position, bits);
                let tag = item.position.tag();
                let placed = segment.place(home, tag, item.handle, item.due, context.now);
                count += u32::from(placed);
                !placed
            })
            .collect();
        Built {
            segment,
            count,
            left_over,
        }
    }

    /// Lets go of a segment that no published slot has any more.
    fn retire(&mut self, context: Context<'_>, segment: Segment) {
        self.segment_bytes -= segment.bytes();
        context.spine.limbo.retire(segment.into_block());
    }

    fn double_directory(&mut self, context: Context<'_>) {
        let old = self.directory();
        let new = Directory::allocate(old.depth() + 1, old.shard_bits(), self.arena.map());
        // SAFETY: just allocated, and not freed while in use here.
        let slots = unsafe { Directory::slots(new) };
        for (index, slot) in slots.iter().enumerate() {
            directory::copy(&self.slots()[index / 2], slot);
        }
        self.publish(context, new);
    }

    fn halve_directory(&mut self, context: Context<'_>) {
        let old = self.directory();
        let depth = old.depth() - 1;
        let new = Directory::allocate(depth, old.shard_bits(), self.arena.map());
        // SAFETY: just allocated, and not freed while in use here.
        let slots = unsafe { Directory::slots(new) };
        self.deepest = 0;
        for (index, slot) in slots.iter().enumerate() {
            directory::copy(&self.slots()[index * 2], slot);
            self.deepest += usize::from(slot.depth() == depth);
        }
        self.publish(context, new);
    }

    fn publish(&mut self, context: Context<'_>, new: NonNull<Directory>) {
        let depth = self.directory().depth();
        let old = std::mem::replace(&mut self.directory, new);
        context.root.store(new.as_ptr(), Release);
        context
            .spine
            .limbo
            .retire(Directory::into_block(old, depth));
    }
}

/// Buckets for so many entries, as a power of two, at most three quarters full.
fn size_for(count: u32) -> u32 {
    (0..LOG2_MAX)
        .find(|&log2| count * 4 <= (SLOTS << log2) * 3)
        .unwrap_or(LOG2_MAX)
}
