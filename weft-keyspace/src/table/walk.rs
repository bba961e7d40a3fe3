//! Visiting entries: SCAN and random picks.
//!
//! Owns the order of a walk: ascending positions, one home bucket at a time. Since a home bucket is a range of
//! positions, however many buckets there are, a walk that goes on from the end of the last range misses nothing that
//! was there all the time; after shrinking it may see some entries twice.

use super::{Context, Table};
use crate::Rng;
use crate::entry::Entry;
use crate::position::Position;

/// Random slots tried before a pick goes for the nearest entry.
const TRIES: usize = 64;

impl Table {
    /// Visits the entries of up to `most` home buckets from the one at `from` on; where to go on, or `None` at the end.
    pub(crate) fn scan(
        &self,
        context: Context<'_>,
        from: Position,
        most: usize,
        mut each: impl FnMut(Entry<'_>),
    ) -> Option<Position> {
        let directory = self.directory();
        let slots = self.slots();
        let mut index = directory.index(from);
        let mut at = Some(from);
        let mut left = most.max(1);
        loop {
            let slot = &slots[index];
            let depth = slot.depth();
            let (first, width) = directory.span(index, depth);
            let segment = slot.segment();
            let (low, high) = self.positions(context, first);
            let range = (high - low) >> segment.log2();
            let start = at.take().map_or(0, |position| {
                segment.home(position, directory.shard_bits() + depth)
            });
            for home in start..1 << segment.log2() {
                let begin = segment.range_start(low, high, home);
                if left == 0 {
                    return Some(Position::from_bits(begin));
                }
                left -= 1;
                self.visit_home(segment, home, &mut each);
                if slot.has_stashed() {
                    for handles in self
                        .stash
                        .range(begin..=begin + range)
                        .map(|(_, list)| list)
                    {
                        for &handle in handles {
                            each(self.look_at(handle));
                        }
                    }
                }
            }
            index = first + width;
            if index == slots.len() {
                return None;
            }
            if left == 0 {
                return Some(Position::from_bits(high + 1));
            }
        }
    }

    /// A random entry, every one about equally likely.
    pub(crate) fn random(&self, rng: &mut impl Rng) -> Option<Entry<'_>> {
        if self.len == 0 {
            return None;
        }
        if self.stashed > 0 && below(rng, self.len) < self.stashed {
            let pick = below(rng, self.stashed);
            let mut handles = self.stash.values().flatten();
            return handles.nth(pick).map(|&handle| self.look_at(handle));
        }
        let slots = self.slots();
        for _ in 0..TRIES {
            let segment = slots[below(rng, slots.len())].segment();
            let buckets = segment.buckets();
            let bucket = &buckets[below(rng, buckets.len())];
            let slot = below(rng, super::bucket::SLOTS as usize) as u32;
            if bucket.used().contains(slot) {
                return Some(self.look_at(bucket.handle(slot)));
            }
        }
        let start = below(rng, slots.len());
        (start..slots.len())
            .chain(0..start)
            .flat_map(|index| slots[index].segment().buckets())
            .find_map(|bucket| bucket.used().first().map(|slot| bucket.handle(slot)))
            .or_else(|| self.stash.values().flatten().next().copied())
            .map(|handle| self.look_at(handle))
    }

    fn visit_home(
        &self,
        segment: super::segment::Segment,
        home: usize,
        each: &mut impl FnMut(Entry<'_>),
    ) {
        let buckets = segment.buckets();
        for slot in buckets[home].own() {
            each(self.look_at(buckets[home].handle(slot)));
        }
        if buckets[home].away() > 0 {
            let next = &buckets[segment.next(home)];
            for slot in next.displaced() {
                each(self.look_at(next.handle(slot)));
            }
        }
    }
}

/// A random number below `bound`, which is not 0.
fn below(rng: &mut impl Rng, bound: usize) -> usize {
    ((u128::from(rng.next_u64()) * bound as u128) >> 64) as usize
}
