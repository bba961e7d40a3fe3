//! A leaf of a large sorted set: a run of scores and of the handles of their members, in order.

use std::ops::Range;

use crate::slab::Handle;
use crate::tree::Leaf;

/// Room for so many members: together with the counts before it the leaf is 1,536 bytes, an allocator's size class.
const ROOM: usize = 126;
/// So many members become full leaves where many are put in at once: a few more fit.
pub(super) const BULK: usize = 116;
/// With fewer members a leaf is united with a neighbour, if both together are not more than `UNITED_MAX`.
const SPARSE_BELOW: usize = ROOM / 4;
const UNITED_MAX: usize = ROOM * 3 / 4;

/// A run of members: what the order needs of them. Always room for one more.
#[derive(Clone)]
pub(super) struct Run {
    scores: [f64; ROOM],
    handles: [Handle; ROOM],
    len: u16,
}

impl Run {
    /// A run of one member.
    pub(super) fn of(score: f64, handle: Handle) -> Self {
        Self {
            scores: [score; ROOM],
            handles: [handle; ROOM],
            len: 1,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub(super) fn scores(&self) -> &[f64] {
        &self.scores[..self.len()]
    }

    #[inline]
    pub(super) fn handles(&self) -> &[Handle] {
        &self.handles[..self.len()]
    }

    /// Whether one more fills it.
    #[inline]
    pub(super) fn is_nearly_full(&self) -> bool {
        self.len() + 1 == ROOM
    }

    #[inline]
    pub(super) fn insert(&mut self, at: usize, score: f64, handle: Handle) {
        let len = self.len();
        self.scores.copy_within(at..len, at + 1);
        self.handles.copy_within(at..len, at + 1);
        self.scores[at] = score;
        self.handles[at] = handle;
        self.len += 1;
    }
}

impl Leaf for Run {
    type Bound = (f64, Handle);

    fn items(&self) -> usize {
        self.len()
    }

    fn heap_bytes(&self) -> usize {
        0
    }

    fn bound(&self) -> Self::Bound {
        (self.scores[0], self.handles[0])
    }

    fn is_full(&self) -> bool {
        self.len() == ROOM
    }

    fn split(&mut self) -> Self {
        let kept = self.len() / 2;
        let mut rest = self.clone();
        rest.remove(0..kept);
        self.len = kept as u16;
        rest
    }

    fn is_sparse(&self) -> bool {
        self.len() < SPARSE_BELOW
    }

    fn has_room_for(&self, right: &Self) -> bool {
        self.len() + right.len() <= UNITED_MAX
    }

    fn absorb(&mut self, right: &Self) {
        let (len, all) = (self.len(), self.len() + right.len());
        self.scores[len..all].copy_from_slice(right.scores());
        self.handles[len..all].copy_from_slice(right.handles());
        self.len = all as u16;
    }

    #[inline]
    fn remove(&mut self, range: Range<usize>) {
        let len = self.len();
        self.scores.copy_within(range.end..len, range.start);
        self.handles.copy_within(range.end..len, range.start);
        self.len -= range.len() as u16;
    }
}
