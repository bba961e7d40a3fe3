//! Active expiry in one table.
//!
//! Owns the walk from the table's bound to segments, to buckets, to entries that are really due, and the renewal of
//! the bounds on the way back. Invariant: a bound is renewed only after everything below it was looked at.

use super::bucket::Bucket;
use super::{Context, Found, Occupied, Place, Table};
use crate::entry::RawEntry;
use crate::expiry::{Due16, Due32, tick, tick_start_ms};
use crate::position::Position;

/// One call's part of a round over what is due. A round goes once through the table, in as many calls as it takes: so
/// it ends also while bounds, being coarse, keep calling due what is not.
pub(crate) struct DueWalk {
    now_ms: u64,
    /// The start of the bucket to look at next; `None` when all were.
    at: Option<Position>,
    /// Buckets that may still be looked at.
    buckets_left: usize,
}

/// A round that has not ended.
#[derive(Clone, Copy)]
pub(super) struct Round {
    at: Position,
    /// When it began, in ticks.
    began: u64,
}

impl Table {
    /// Lower bound of the earliest deadline, milliseconds.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        (self.deadlines + self.fielded > 0).then(|| tick_start_ms(self.due))
    }

    /// Goes on with the round, or begins one if something may be due; looks at up to `buckets` buckets.
    pub(crate) fn due_walk(
        &mut self,
        context: Context<'_>,
        now_ms: u64,
        buckets: usize,
    ) -> DueWalk {
        if self.round.is_none() && self.due <= context.now {
            self.round = Some(Round {
                at: context.spine.partition.shard_start(context.shard),
                began: context.now,
            });
        }
        DueWalk {
            now_ms,
            at: self.round.map(|round| round.at),
            buckets_left: buckets,
        }
    }

    /// Ends a call's part of the round; whether something may still be due that no part has looked at.
    pub(crate) fn end_walk(&mut self, context: Context<'_>, walk: &DueWalk) -> bool {
        let Some(round) = self.round else {
            return false;
        };
        self.round = walk.at.map(|at| Round { at, ..round });
        self.round.is_some() || round.began < context.now && self.due <= context.now
    }

    /// The next entry that is due; `None` when there is no more or the walk's limit is reached. The caller removes it,
    /// or those of its fields that are due, before it asks again.
    pub(crate) fn next_due(
        &mut self,
        context: Context<'_>,
        walk: &mut DueWalk,
    ) -> Option<Occupied<'_>> {
        let (position, found) = self.find_due(context, walk)?;
        Some(Occupied::new(self, position, found))
    }

    fn find_due(&mut self, context: Context<'_>, walk: &mut DueWalk) -> Option<(Position, Found)> {
        walk.at?;
        while let Some(at) = walk.at {
            let directory = self.directory();
            let slots = self.slots();
            let index = directory.index(at);
            let depth = slots[index].depth();
            let (first, width) = directory.span(index, depth);
            let slot = &slots[first];
            let (low, high) = self.positions(context, first);
            let due = slot.due();
            if at.bits() > low || due.is_due(context.now) {
                let segment = slot.segment();
                let stale = due.is_stale(context.now);
                let bits = directory.shard_bits() + depth;
                for number in segment.home(at, bits)..1 << segment.log2() {
                    let begin = segment.range_start(low, high, number);
                    walk.at = Some(Position::from_bits(begin));
                    if walk.buckets_left == 0 {
                        return None;
                    }
                    walk.buckets_left -= 1;
                    let bucket = &segment.buckets()[number];
                    let due = bucket.due();
                    if (due.is_due(context.now) || stale && due.is_some())
                        && let Some(found) = self.due_in_bucket(context, walk, bucket, number)
                    {
                        return Some(found);
                    }
                }
                if slot.has_stashed()
                    && let Some(found) = self.due_in_stash(walk, low, high)
                {
                    return Some(found);
                }
                slot.set_due(self.renewed(context, first, low, high));
            }
            walk.at = (first + width < slots.len()).then(|| Position::from_bits(high + 1));
        }
        self.due = self
            .slots()
            .iter()
            .map(|slot| slot.due())
            .filter(|due| due.is_some())
            .map(|due| due.tick(context.now))
            .min()
            .unwrap_or(u64::MAX);
        None
    }

    /// A due entry of a bucket; renews the bucket's bound if there is none.
    fn due_in_bucket(
        &self,
        context: Context<'_>,
        walk: &DueWalk,
        bucket: &Bucket,
        number: usize,
    ) -> Option<(Position, Found)> {
        let mut earliest = Due16::NONE;
        for slot in bucket.used() {
            let handle = bucket.handle(slot);
            let entry = self.entry(handle);
            let Some(at) = entry.due() else {
                continue;
            };
            if at <= walk.now_ms {
                let place = Place::new(number, slot);
                return Some(Table::found(context, handle, entry, place));
            }
            let due = Due16::new(tick(at), context.now);
            earliest = earliest.earlier(due, context.now);
        }
        bucket.set_due(earliest);
        None
    }

    fn due_in_stash(&self, walk: &DueWalk, low: u64, high: u64) -> Option<(Position, Found)> {
        self.stash.range(low..=high).find_map(|(&bits, handles)| {
            handles.iter().find_map(|&handle| {
                let entry = self.entry(handle);
                let due = entry.due().is_some_and(|at| at <= walk.now_ms);
                let found = Found {
                    handle,
                    entry,
                    place: Place::STASH,
                };
                due.then_some((Position::from_bits(bits), found))
            })
        })
    }

    /// The bound of a segment from those of its buckets and from its stashed entries.
    fn renewed(&self, context: Context<'_>, first: usize, low: u64, high: u64) -> Due32 {
        let slot = &self.slots()[first];
        let now = context.now;
        let buckets = slot.segment().buckets().iter().map(Bucket::due);
        let mut earliest = buckets
            .filter(|due| due.is_some())
            .map(|due| Due32::new(now.saturating_add_signed(due.ahead(now)), now))
            .fold(Due32::NONE, |a, b| a.earlier(b, now));
        if slot.has_stashed() {
            for &handle in self.stash.range(low..=high).flat_map(|(_, list)| list) {
                let due = Due32::of(self.entry(handle).due(), now);
                earliest = earliest.earlier(due, now);
            }
        }
        earliest
    }

    fn found(
        context: Context<'_>,
        handle: u32,
        entry: RawEntry,
        place: Place,
    ) -> (Position, Found) {
        let found = Found {
            handle,
            entry,
            place,
        };
        (Table::position_of(context, entry), found)
    }
}
