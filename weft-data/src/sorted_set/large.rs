//! The large form: the members in a table, and their order in a tree.
//!
//! Every member has one record, whose payload is its score, and one place in the tree: its score again, so that most comparisons need
//! no record, and its handle. Invariant: the two say the same, so every handle in the tree, and in its bounds, is that of a record.

use std::fmt;
use std::ops::Range;

use smallvec::SmallVec;

use super::leaf::{BULK, Run};
use super::range::{MemberRange, ScoreRange};
use super::{Limits, Update};
use crate::members::Members;
use crate::slab::Handle;
use crate::table::Load;
use crate::tree::{Leaf, Tree};

/// A sorted set with many or long members. `clone` is O(1) and is a snapshot.
#[derive(Clone)]
pub struct SortedSet {
    members: Members,
    order: Tree<Run>,
    called_listpack: bool,
}

impl fmt::Debug for SortedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedSet")
            .field("len", &self.len())
            .field("called_listpack", &self.called_listpack)
            .finish_non_exhaustive()
    }
}

const SCORE_IS_KEPT: &str = "a record's payload is its score";

/// Whether what stands at `(score, handle)` comes before `member` with score `wanted`.
#[inline]
fn is_before(
    members: &Members,
    (score, handle): (f64, Handle),
    wanted: f64,
    member: &[u8],
) -> bool {
    score < wanted || (score == wanted && members.key(handle) < member)
}

/// The place of `member` with score `wanted` in a run: of the first item that does not come before it.
#[inline]
fn place(run: &Run, members: &Members, wanted: f64, member: &[u8]) -> usize {
    let scores = run.scores();
    let first = scores.partition_point(|score| *score < wanted);
    let equal = scores[first..].partition_point(|score| *score == wanted);
    let equals = &run.handles()[first..first + equal];
    first + equals.partition_point(|handle| members.key(*handle) < member)
}

/// The leaves of a tree in this order.
fn runs(order: &[(f64, Handle)]) -> impl Iterator<Item = Run> {
    order.chunks(BULK).filter_map(|chunk| {
        let (&(score, handle), rest) = chunk.split_first()?;
        let mut run = Run::of(score, handle);
        for (score, handle) in rest {
            run.insert(run.len(), *score, *handle);
        }
        Some(run)
    })
}

impl SortedSet {
    /// Of members in their order, each with its score.
    pub(super) fn build<'m>(
        seed: u64,
        called_listpack: bool,
        items: impl Iterator<Item = (&'m [u8], f64)>,
    ) -> Self {
        let mut members = Members::new(seed);
        let mut order = Vec::new();
        for (member, score) in items {
            let score = stored(score, called_listpack);
            let handle = members.insert(member, &[&score.to_le_bytes()]).handle;
            order.push((score, handle));
        }
        Self {
            members,
            order: Tree::from_leaves(runs(&order)),
            called_listpack,
        }
    }

    /// Of members that have their scores as payload, and these in their order.
    pub(super) fn of_ranking(
        mut members: Members,
        order: &[(f64, Handle)],
        called_listpack: bool,
    ) -> Self {
        let kept = |&(score, handle): &(f64, Handle)| (stored(score, called_listpack), handle);
        let order: Vec<(f64, Handle)> = order.iter().map(kept).collect();
        if called_listpack {
            for (score, handle) in order.iter().filter(|(score, _)| *score == 0.0) {
                let payload = members.payload_mut(*handle);
                payload.copy_from_slice(&score.to_le_bytes());
            }
        }
        Self {
            members,
            order: Tree::from_leaves(runs(&order)),
            called_listpack,
        }
    }

    /// How many members it has.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Bytes allocated, shared or not; O(1).
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.members.allocated_bytes() + self.order.allocated_bytes()
    }

    /// Whether Redis would call its form `listpack`.
    #[must_use]
    pub fn is_called_listpack(&self) -> bool {
        self.called_listpack
    }

    fn score_of(&self, handle: Handle) -> f64 {
        let bytes = self
            .members
            .payload(handle)
            .first_chunk()
            .expect(SCORE_IS_KEPT);
        f64::from_le_bytes(*bytes)
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        Some(self.score_of(self.members.get(member)?))
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<(u64, f64)> {
        let score = self.score(member)?;
        let members = &self.members;
        let (first, run) = self
            .order
            .seek(|bound| is_at_most(members, *bound, score, member))?;
        Some((first + place(run, members, score, member) as u64, score))
    }

    /// How many members, from the first on, come before what is looked for.
    fn count_before(&self, mut is_before: impl FnMut(f64, Handle) -> bool) -> u64 {
        let found = self
            .order
            .seek(|(score, handle)| is_before(*score, *handle));
        found.map_or(0, |(first, run)| {
            let (mut low, mut high) = (0, run.len());
            while low < high {
                let middle = (low + high) / 2;
                if is_before(run.scores()[middle], run.handles()[middle]) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            first + low as u64
        })
    }

    pub(super) fn ranks_by_score(&self, range: &ScoreRange) -> Range<u64> {
        let start = self.count_before(|score, _| range.is_after(score));
        let end = self.count_before(|score, _| !range.is_before(score));
        start..end.max(start)
    }

    pub(super) fn ranks_by_member(&self, range: &MemberRange<'_>) -> Range<u64> {
        let start = self.count_before(|_, handle| range.is_after(self.members.key(handle)));
        let end = self.count_before(|_, handle| !range.is_before(self.members.key(handle)));
        start..end.max(start)
    }

    /// Whether all scores are equal, so that the members are in the order of their bytes.
    pub(super) fn is_level(&self) -> bool {
        let first = self.order.first().and_then(|run| run.scores().first());
        let last = self.order.last().and_then(|run| run.scores().last());
        first == last
    }

    pub(super) fn at(&self, rank: u64) -> Option<(&[u8], f64)> {
        let (run, at) = self.order.at(rank)?;
        Some((self.members.key(run.handles()[at]), run.scores()[at]))
    }

    /// Gives some of a run's members.
    #[inline]
    fn each_of<'r>(
        &self,
        items: impl Iterator<Item = (&'r Handle, &'r f64)>,
        each: &mut impl FnMut(&[u8], f64),
    ) {
        for (handle, score) in items {
            each(self.members.key(*handle), *score);
        }
    }

    pub(super) fn each(&self, ranks: Range<u64>, mut each: impl FnMut(&[u8], f64)) {
        let of = |run: &Run, offsets: Range<usize>, each: &mut _| {
            let handles = run.handles()[offsets.clone()].iter();
            self.each_of(handles.zip(&run.scores()[offsets]), each);
        };
        // Mostly all lie in one leaf.
        if let Some((run, start)) = self.order.at(ranks.start)
            && ranks.end - ranks.start <= (run.len() - start) as u64
        {
            let count = (ranks.end - ranks.start) as usize;
            return of(run, start..start + count, &mut each);
        }
        for (first, run) in self.order.leaves_from(ranks.start) {
            if first >= ranks.end {
                break;
            }
            let start = ranks.start.saturating_sub(first) as usize;
            let end = run.len().min((ranks.end - first) as usize);
            of(run, start..end, &mut each);
        }
    }

    pub(super) fn each_backwards(&self, ranks: Range<u64>, mut each: impl FnMut(&[u8], f64)) {
        let Some(last) = ranks.end.min(self.order.len()).checked_sub(1) else {
            return;
        };
        let of = |run: &Run, offsets: Range<usize>, each: &mut _| {
            let handles = run.handles()[offsets.clone()].iter().rev();
            self.each_of(handles.zip(run.scores()[offsets].iter().rev()), each);
        };
        if let Some((run, at)) = self.order.at(last)
            && last + 1 - ranks.start <= at as u64 + 1
        {
            let count = (last + 1 - ranks.start) as usize;
            return of(run, at + 1 - count..at + 1, &mut each);
        }
        for (first, run) in self.order.leaves_back_from(last) {
            let end = run.len().min((last + 1 - first) as usize);
            let start = ranks.start.saturating_sub(first) as usize;
            if start >= end {
                break;
            }
            of(run, start..end, &mut each);
        }
    }

    pub(super) fn scan(
        &self,
        cursor: u64,
        at_least: usize,
        mut each: impl FnMut(&[u8], f64),
    ) -> u64 {
        self.members.scan(cursor, at_least, |handle| {
            each(self.members.key(handle), self.score_of(handle));
        })
    }

    /// Gives `member` the score that `decide` says for the one it has; none leaves it as it is.
    pub(super) fn update(
        &mut self,
        member: &[u8],
        limits: Limits,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Update {
        let found = self.members.get(member);
        let old = found.map(|handle| self.score_of(handle));
        let (new, handle) = match (decide(old), found) {
            (None, _) => return Update::Nothing,
            (Some(new), None) => {
                self.called_listpack &= self.len() < limits.entries && member.len() <= limits.value;
                let new = stored(new, self.called_listpack);
                let handle = self.members.insert(member, &[&new.to_le_bytes()]).handle;
                self.place_new(new, handle);
                return Update::Added;
            }
            (Some(new), Some(handle)) => (stored(new, self.called_listpack), handle),
        };
        if Some(new) == old {
            return Update::Nothing;
        }
        self.move_to(member, old.unwrap_or_default(), new, handle);
        let payload = self.members.payload_mut(handle);
        payload.copy_from_slice(&new.to_le_bytes());
        Update::Changed
    }

    /// Puts a record that is new into the order.
    fn place_new(&mut self, score: f64, handle: Handle) {
        let Self { members, order, .. } = self;
        let (member, total) = (members.key(handle), order.len());
        let placed = order.splice_where(
            |bound| is_before(members, *bound, score, member),
            |run, first, more| {
                let at = place(run, members, score, member);
                // Whoever puts in one after the other at either end leaves full runs behind.
                if run.is_nearly_full() && at == run.len() && first + at as u64 == total {
                    more.push(Run::of(score, handle));
                } else if run.is_nearly_full() && at == 0 && first == 0 {
                    more.push(std::mem::replace(run, Run::of(score, handle)));
                } else {
                    run.insert(at, score, handle);
                }
            },
        );
        if placed.is_none() {
            order.push_last(Run::of(score, handle));
        }
    }

    /// Moves a member within the order.
    fn move_to(&mut self, member: &[u8], old: f64, new: f64, handle: Handle) {
        let Self { members, order, .. } = self;
        let total = order.len();
        let moved = order.splice_where(
            |bound| is_at_most(members, *bound, old, member),
            |run, first, _| {
                let at = place(run, members, old, member);
                debug_assert_eq!(run.handles()[at], handle, "the order knows every member");
                run.remove(at..at + 1);
                let at = place(run, members, new, member);
                let is_first = at > 0 || first == 0;
                let is_last = at < run.len() || first + run.len() as u64 + 1 == total;
                let within = is_first && is_last;
                if within {
                    run.insert(at, new, handle);
                }
                within
            },
        );
        if moved != Some(true) {
            self.place_new(new, handle);
        }
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let handle = self.members.get(member)?;
        let score = self.score_of(handle);
        let Self { members, order, .. } = self;
        order.splice_where(
            |bound| is_at_most(members, *bound, score, member),
            |run, _, _| {
                let at = place(run, members, score, member);
                debug_assert_eq!(run.handles()[at], handle, "the order knows every member");
                run.remove(at..at + 1);
            },
        );
        self.members.remove_handle(handle);
        Some(score)
    }

    pub(super) fn remove_ranks(&mut self, ranks: Range<u64>, load: Load) {
        let mut handles: SmallVec<[Handle; 8]> = SmallVec::new();
        let count = ranks.end - ranks.start;
        // Mostly they are few and lie in one leaf.
        let mut coming = [None; 2];
        let found = self.order.splice_at(ranks.start, |run, start, _| {
            let within = count <= (run.len() - start) as u64;
            if within {
                let offsets = start..start + count as usize;
                handles.extend_from_slice(&run.handles()[offsets.clone()]);
                run.remove(offsets);
                let handle = |at: Option<usize>| run.handles().get(at?).copied();
                coming = match start {
                    0 => [handle(Some(0)), handle(Some(1))],
                    end if end == run.len() => {
                        [handle(end.checked_sub(1)), handle(end.checked_sub(2))]
                    }
                    _ => coming,
                };
            }
            within
        });
        if found == Some(false) {
            self.order.remove_range(ranks, |run, offsets| {
                handles.extend_from_slice(&run.handles()[offsets]);
            });
        }
        for handle in handles {
            self.members.remove_handle(handle);
        }
        // Who takes from an end takes what is there next: cache misses of one removal overlap with the work of another.
        if let [Some(next), after] = coming {
            self.members.load_place_ahead(next, load);
            if let Some(after) = after {
                self.members.load_ahead(after, load);
            }
        }
    }

    /// Checks what has to hold, for tests.
    #[cfg(test)]
    pub(super) fn verify(&self) {
        assert_eq!(self.order.len(), self.members.len() as u64);
        let mut previous: Option<(f64, &[u8])> = None;
        for (_, run) in self.order.leaves_from(0) {
            for (score, handle) in run.scores().iter().zip(run.handles()) {
                let member = self.members.key(*handle);
                assert_eq!(self.score_of(*handle).to_bits(), score.to_bits());
                assert_eq!(self.members.get(member), Some(*handle));
                if let Some((before, name)) = previous {
                    assert!(before < *score || (before == *score && name < member));
                }
                previous = Some((*score, member));
            }
        }
    }
}

/// Whether what stands at `(score, handle)` is `member` with score `wanted`, or comes before it.
#[inline]
fn is_at_most(
    members: &Members,
    (score, handle): (f64, Handle),
    wanted: f64,
    member: &[u8],
) -> bool {
    score < wanted || (score == wanted && members.key(handle) <= member)
}

/// The score as it is kept: what Redis calls a listpack keeps zeroes without their sign.
#[inline]
pub(super) fn stored(score: f64, called_listpack: bool) -> f64 {
    if called_listpack { score + 0.0 } else { score }
}
