//! Sorted sets: what the parts of the family have in common.
//!
//! One file a part: its rows and its handlers. Owns how scores, members with scores and ranges of them are written, and the step-wise
//! reply of a range that is large. What is large is captured under the latch and read afterwards.

mod algebra;
mod blocking;
mod bounds;
mod members;
mod pops;
mod random;
mod ranges;
mod scan;

use std::ops::Range;

use weft_data::collection::{Built, Collection, CollectionRef, Kind};
use weft_data::sorted_set::{Limits, SortedSetMut, SortedSetRef};
use weft_resp::{Protocol, Writer};

use crate::command::CommandRow;
use crate::dispatch::{Budget, Context, Edited, EventClass, Key, Progress, Steps};
use crate::error::CommandError;
use crate::journal::EffectArgument;

pub(super) const MEMBERS: &[CommandRow] = members::ROWS;
pub(super) const RANGES: &[CommandRow] = ranges::ROWS;
pub(super) const POPS: &[CommandRow] = pops::ROWS;
pub(super) const BLOCKING: &[CommandRow] = blocking::ROWS;
pub(super) const RANDOM: &[CommandRow] = random::ROWS;
pub(super) const ALGEBRA: &[CommandRow] = algebra::ROWS;
pub(super) const SCAN: &[CommandRow] = scan::ROWS;

/// So many members are written at once, without a snapshot.
const AT_ONCE_MAX: u64 = 128;
/// So many are written between two looks at the budget.
const CHUNK: u64 = 64;
/// About what finding and writing a member and its score takes, and how many bytes are copied in a nanosecond.
const NS_PER_MEMBER: u64 = 60;
const BYTES_PER_NS: u64 = 8;

impl Context<'_, '_> {
    pub(super) fn sorted_set_limits(&self) -> Limits {
        self.worker.settings().sorted_set_limits()
    }

    /// The sorted set at a key, to be read.
    pub(super) fn sorted_set(
        &self,
        key: Key<'_>,
    ) -> Result<Option<SortedSetRef<'_>>, CommandError> {
        let found = self.unit.collection(key, Kind::SortedSet)?;
        Ok(found.map(SortedSetRef::from))
    }

    /// Changes the sorted set at a key, or makes one that is about to have `expected` members.
    pub(super) fn edit_sorted_set<R>(
        &mut self,
        key: Key<'_>,
        expected: usize,
        act: impl FnOnce(&mut SortedSetMut<'_, '_>, &mut Writer<'_>) -> R,
    ) -> Result<Edited<R>, CommandError> {
        let (limits, seed) = (self.sorted_set_limits(), self.unit.seed());
        let reply = &mut self.reply;
        self.unit.edit(key, Kind::SortedSet, |draft| {
            act(&mut SortedSetMut::new(draft, limits, seed, expected), reply)
        })
    }

    /// Says that so many members of a sorted set were added, changed or removed, and that it is gone if it became empty.
    pub(super) fn sorted_set_touched(
        &mut self,
        key: Key<'_>,
        event: &'static str,
        changes: usize,
        emptied: bool,
    ) {
        self.unit.touched(key, EventClass::SortedSet, event);
        self.unit.touched_many(changes.saturating_sub(1));
        if emptied {
            self.unit.touched_too(key, EventClass::Generic, "del");
        }
    }

    /// Whether members and their scores are written as pairs, as RESP3 has them.
    fn pairs(&self) -> bool {
        self.client.protocol == Protocol::Resp3
    }

    /// Puts a sorted set that was computed into the place of whatever a key holds, or nothing if it is empty, and replies how many
    /// members it has. The effect is the result: what it was computed from may have gone for whoever replays it.
    pub(super) fn store_sorted_set(&mut self, key: Key<'_>, built: Built, event: &'static str) {
        /// So many members an effect takes at most.
        const MEMBERS_PER_EFFECT: u64 = 256;
        let set = Snapshot(built);
        let len = set.look().len();
        self.reply.integer(len as i64);
        let recorded = self
            .unit
            .is_recorded()
            .then(|| Snapshot::of(set.0.as_ref()));
        let existed = self.unit.put_collection(key, set.0);
        if existed {
            self.unit.effect(&[b"DEL", key.name]);
        }
        if len == 0 {
            if existed {
                self.unit.touched(key, EventClass::Generic, "del");
            }
            return;
        }
        if let Some(set) = recorded {
            for start in (0..len).step_by(MEMBERS_PER_EFFECT as usize) {
                self.unit.effect_with(|| {
                    let mut arguments: Vec<EffectArgument> =
                        vec![b"ZADD"[..].into(), key.name.into()];
                    let ranks = start..start + MEMBERS_PER_EFFECT;
                    set.look().each(ranks, false, |member, score| {
                        arguments.push(weft_resp::double_text(score).as_bytes().into());
                        arguments.push(member.into());
                    });
                    arguments
                });
            }
        }
        self.unit.touched(key, EventClass::SortedSet, event);
    }
}

/// Writes the header of so many members, with their scores or without.
fn reply_header(reply: &mut Writer<'_>, count: u64, with_scores: bool, pairs: bool) {
    let flat = with_scores && !pairs;
    reply.array(count as usize * if flat { 2 } else { 1 });
}

/// Writes a member, with its score or without.
#[inline]
fn reply_item(reply: &mut Writer<'_>, member: &[u8], score: f64, with_scores: bool, pairs: bool) {
    if with_scores && pairs {
        reply.array(2);
    }
    reply.bulk(member);
    if with_scores {
        reply.double(score);
    }
}

/// A sorted set that outlives the latch.
struct Snapshot(Built);

impl Snapshot {
    fn look(&self) -> SortedSetRef<'_> {
        SortedSetRef::from(self.0.as_ref())
    }

    fn of(found: CollectionRef<'_>) -> Self {
        Self(found.to_built())
    }

    /// What the reaper has to free.
    fn into_large(self) -> Option<Box<Collection>> {
        match self.0 {
            Built::Large(collection) => Some(collection),
            Built::Packed(_) => None,
        }
    }
}

/// Replies the members with these ranks: at once if they are few, else in steps.
fn reply_ranks(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    ranks_of: impl FnOnce(SortedSetRef<'_>) -> Range<u64>,
    backwards: bool,
    with_scores: bool,
) -> Result<(), CommandError> {
    let pairs = cx.pairs();
    let found = cx.unit.collection(key, Kind::SortedSet)?;
    let Some(found) = found else {
        cx.reply.array(0);
        return Ok(());
    };
    let set = SortedSetRef::from(found);
    let ranks = ranks_of(set);
    let count = ranks.end - ranks.start;
    let reply = &mut cx.reply;
    reply_header(reply, count, with_scores, pairs);
    if count <= AT_ONCE_MAX {
        set.each(ranks, backwards, |member, score| {
            reply_item(reply, member, score, with_scores, pairs);
        });
        return Ok(());
    }
    let snapshot = Snapshot::of(found);
    cx.continue_with(Listing {
        snapshot,
        ranks,
        backwards,
        with_scores,
        pairs,
    });
    Ok(())
}

/// The rest of a range on its way into the reply.
struct Listing {
    snapshot: Snapshot,
    ranks: Range<u64>,
    backwards: bool,
    with_scores: bool,
    pairs: bool,
}

impl Steps for Listing {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        let Range { start, end } = &mut self.ranks;
        while start < end && budget.left() > 0 {
            let count = CHUNK.min(*end - *start);
            let chunk = if self.backwards {
                *end -= count;
                *end..*end + count
            } else {
                *start += count;
                *start - count..*start
            };
            let mut bytes = 0;
            let (with_scores, pairs) = (self.with_scores, self.pairs);
            let set = self.snapshot.look();
            set.each(chunk, self.backwards, |member, score| {
                bytes += member.len() as u64;
                reply_item(reply, member, score, with_scores, pairs);
            });
            budget.take(count * NS_PER_MEMBER + bytes / BYTES_PER_NS);
        }
        if start < end {
            Progress::More
        } else {
            Progress::Done
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        self.snapshot.into_large().into_iter().collect()
    }
}
