//! The packed form: a few members in their order, each with its score, in one run of bytes.
//!
//! ```text
//! packed = tag, count, element ...       tag: the kind and the flag CALLED_SKIPLIST; count: of elements, one byte
//! element = score, member                score: eight bytes, little endian; elements as `packed` lays them out
//! ```

use std::cmp::Ordering;
use std::ops::Range;

use super::large::stored;
use crate::collection::{Kind, PACKED_MAX};
use crate::packed::{self, Elements};

/// The flag in the tag of a set that Redis would call a skiplist.
const CALLED_SKIPLIST: u8 = 0b1000;
/// Where elements begin.
const START: usize = 2;
const SCORE_BYTES: usize = size_of::<f64>();
// The count is one byte.
const _: () = assert!((PACKED_MAX - START) / packed::size_of(SCORE_BYTES) <= u8::MAX as usize);

/// Packed bytes to be read.
#[derive(Clone, Copy, Debug)]
pub struct Small<'a>(&'a [u8]);

#[inline]
fn split(element: &[u8]) -> (f64, &[u8]) {
    match element.split_first_chunk() {
        Some((score, member)) => (f64::from_le_bytes(*score), member),
        None => (0.0, element),
    }
}

impl<'a> Small<'a> {
    /// Of packed bytes with their tag.
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn len(self) -> usize {
        self.0.get(1).copied().map_or(0, usize::from)
    }

    pub(super) fn is_called_listpack(self) -> bool {
        is_called_listpack(self.0)
    }

    /// Members with their scores and the offsets of their elements.
    fn elements(self) -> impl DoubleEndedIterator<Item = (usize, f64, &'a [u8])> {
        let elements = Elements::new(self.0, START);
        elements.map(|(offset, element)| {
            let (score, member) = split(element);
            (offset, score, member)
        })
    }

    /// Members with their scores.
    pub(super) fn items(self) -> impl DoubleEndedIterator<Item = (&'a [u8], f64)> {
        self.elements().map(|(_, score, member)| (member, score))
    }

    /// The rank, offset and score of a member.
    fn find(self, member: &[u8]) -> Option<(usize, usize, f64)> {
        let mut elements = self.elements().enumerate();
        elements.find_map(|(rank, (offset, score, one))| {
            (one == member).then_some((rank, offset, score))
        })
    }

    pub(super) fn rank(self, member: &[u8]) -> Option<(u64, f64)> {
        let (rank, _, score) = self.find(member)?;
        Some((rank as u64, score))
    }

    /// The range of offsets of the elements with these ranks.
    fn offsets(self, ranks: Range<u64>) -> Range<usize> {
        let count = (ranks.end - ranks.start) as usize;
        let mut elements = Elements::new(self.0, START);
        if let Some(skipped) = (ranks.start as usize).checked_sub(1) {
            elements.nth(skipped);
        }
        let start = elements.offsets().start;
        if let Some(skipped) = count.checked_sub(1) {
            elements.nth(skipped);
        }
        start..elements.offsets().start
    }
}

fn is_called_listpack(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|tag| tag & CALLED_SKIPLIST == 0)
}

/// Bytes of a packed set of these members, with their scores and in their order; none if they are too many.
pub(super) fn build<'m>(
    called_listpack: bool,
    items: impl Iterator<Item = (&'m [u8], f64)>,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for (member, score) in items {
        if bytes.is_empty() {
            begin(&mut bytes, called_listpack);
        }
        if !fits(&bytes, member) {
            return None;
        }
        let score = stored(score, called_listpack);
        packed::push(&mut bytes, &[&score.to_le_bytes(), member]);
        bytes[1] += 1;
    }
    Some(bytes)
}

fn begin(bytes: &mut Vec<u8>, called_listpack: bool) {
    let flag = if called_listpack { 0 } else { CALLED_SKIPLIST };
    bytes.extend_from_slice(&[Kind::SortedSet.tag() | flag, 0]);
}

/// Whether there is room for another member.
pub(super) fn fits(bytes: &[u8], member: &[u8]) -> bool {
    let start = bytes.len().max(START);
    member.len() < PACKED_MAX && start + packed::size_of(SCORE_BYTES + member.len()) <= PACKED_MAX
}

/// The score of a member and its offset.
pub(super) fn find(bytes: &[u8], member: &[u8]) -> Option<(usize, f64)> {
    let (_, offset, score) = Small(bytes).find(member)?;
    Some((offset, score))
}

/// Adds a member that is not there and for which there is room.
pub(super) fn add(bytes: &mut Vec<u8>, called_listpack: bool, member: &[u8], score: f64) {
    if bytes.is_empty() {
        begin(bytes, called_listpack);
    } else if !called_listpack {
        bytes[0] |= CALLED_SKIPLIST;
    }
    let score = stored(score, called_listpack);
    let comes_later = |(_, other, name): &(usize, f64, &[u8])| {
        let order = other.partial_cmp(&score).unwrap_or(Ordering::Equal);
        order.then_with(|| (*name).cmp(member)).is_gt()
    };
    // Whoever adds in ascending order finds the place from behind at once.
    let last = Small(bytes).elements().next_back();
    let offset = match last {
        Some(ref last) if comes_later(last) => Small(bytes)
            .elements()
            .find(comes_later)
            .map_or(bytes.len(), |(offset, ..)| offset),
        _ => bytes.len(),
    };
    packed::insert(bytes, offset, &[&score.to_le_bytes(), member]);
    bytes[1] += 1;
}

/// Removes the element at this offset. The last one takes all bytes with it.
pub(super) fn remove_at(bytes: &mut Vec<u8>, offset: usize) {
    if let Some(element) = packed::at(bytes, offset) {
        let end = offset + packed::size_of(element.len());
        remove(bytes, offset..end, 1);
    }
}

/// Removes the elements with these ranks, all of which exist.
pub(super) fn remove_ranks(bytes: &mut Vec<u8>, ranks: Range<u64>) {
    let offsets = Small(bytes).offsets(ranks.clone());
    remove(bytes, offsets, (ranks.end - ranks.start) as u8);
}

fn remove(bytes: &mut Vec<u8>, offsets: Range<usize>, count: u8) {
    packed::remove(bytes, offsets);
    bytes[1] -= count;
    if bytes[1] == 0 {
        bytes.clear();
    }
}

/// Gives the member at this offset another score.
pub(super) fn change(bytes: &mut Vec<u8>, offset: usize, score: f64) {
    let Some((old, member)) = packed::at(bytes, offset).map(split) else {
        return;
    };
    let called_listpack = is_called_listpack(bytes);
    let member = member.to_vec();
    let count = bytes[1];
    debug_assert_ne!(old, score, "nothing is done for an equal score");
    let end = offset + packed::size_of(SCORE_BYTES + member.len());
    packed::remove(bytes, offset..end);
    bytes[1] = count - 1;
    add(bytes, called_listpack, &member, score);
}
