//! Lists: strings in an order, reached from both ends and by position.
//!
//! Owns both forms. Packed: a few bytes (`small`). Large: a [`Tree`] whose leaves are runs of elements of at most 4 KiB, and
//! elements of more than 1 KiB by themselves, which no snapshot and no change ever copies. A position is found by counting
//! from the root, then from the nearer end of a run. Also keeps what Redis would call the list, which follows its own
//! thresholds (`naming`). Knows no keys and writes no replies.

mod changes;
mod leaf;
pub(crate) mod naming;
mod run;
mod small;
mod view;

#[cfg(test)]
mod tests;

use std::ops::Range;

use weft_rope::Rope;

use self::leaf::Leaf;
use self::naming::{element_bytes, listpack_bytes, string_bytes};
use self::run::{RUN_MAX, Run};
use crate::packed;
use crate::tree::{Leaf as _, Tree};

pub use self::changes::ListMut;
pub use self::naming::NodeLimit;
pub use self::view::{Elements, ListRef};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where positions begin.
    Left,
    /// Where they end.
    Right,
}

/// An element.
#[derive(Clone, Copy, Debug)]
pub enum Element<'a> {
    /// In one piece.
    Bytes(&'a [u8]),
    /// A long one, that can be shared.
    Rope(&'a Rope),
}

impl Element<'_> {
    /// Its length in bytes.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Element::Bytes(bytes) => bytes.len(),
            Element::Rope(rope) => rope.len(),
        }
    }

    /// Whether it is the empty string.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether its bytes are these.
    #[inline]
    #[must_use]
    pub fn is_equal(self, bytes: &[u8]) -> bool {
        match self {
            Element::Bytes(own) => own == bytes,
            Element::Rope(rope) => rope.len() == bytes.len() && rope.eq_slice(bytes),
        }
    }

    /// Bytes that it takes in Redis's small form.
    fn listpack_bytes(self) -> u64 {
        match self {
            Element::Bytes(bytes) => element_bytes(bytes),
            Element::Rope(rope) => string_bytes(rope.len()),
        }
    }
}

/// Up to here the size of what is called a quicklist is kept, in case it becomes a listpack again.
const SIZE_KEPT_MAX: u64 = 256 * 1024;
/// As many removed elements are looked at to keep the size; with more it is found anew when it is needed.
const REMOVED_LOOKED_AT: usize = 1024;

/// A large list.
#[derive(Clone, Debug, Default)]
pub struct List {
    tree: Tree<Leaf>,
    /// It was called a quicklist and has not become small again.
    is_quicklist: bool,
    /// Bytes of the elements in Redis's small form. Always known while the list is called a listpack.
    size: Option<u64>,
}

impl List {
    /// A list of the elements of a packed one.
    fn of_packed(bytes: &[u8]) -> Self {
        let items = small::len(bytes);
        let elements = bytes.get(small::HEAD..).unwrap_or_default();
        Self {
            tree: Tree::from_leaves([Leaf::Run(Run::of_packed(elements, items))]),
            is_quicklist: small::is_quicklist(bytes),
            size: Some(small::size(bytes)),
        }
    }

    /// How many elements there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len() as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// Bytes allocated, as if none were shared. A count that is kept.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.tree.allocated_bytes()
    }

    fn get(&self, index: usize) -> Option<Element<'_>> {
        let (leaf, offset) = self.tree.at(index as u64)?;
        leaf.get(offset)
    }

    fn end(&self, end: End) -> Option<Element<'_>> {
        match end {
            End::Left => self.tree.first()?.first(),
            End::Right => self.tree.last()?.last(),
        }
    }

    /// The room that a new run at an end gets: the longer the list, the more.
    fn room(&self) -> usize {
        (self.tree.allocated_bytes() / 4)
            .next_power_of_two()
            .min(RUN_MAX)
    }

    fn push(&mut self, end: End, element: Element<'_>) {
        self.note_added(element.listpack_bytes());
        if self.tree.is_empty() {
            self.tree.push_last(Leaf::of(element, 0));
            return;
        }
        let room = self.room();
        match end {
            End::Left => self.tree.splice_first(|leaf, more| {
                if !leaf.push_front(element) {
                    more.push(std::mem::replace(leaf, Leaf::of_first(element, room)));
                }
            }),
            End::Right => self.tree.splice_last(|leaf, more| {
                if !leaf.push_back(element) {
                    more.push(Leaf::of(element, room));
                }
            }),
        };
    }

    /// Removes the element at an end after `each` has seen it. None if there is none.
    fn pop<R>(&mut self, end: End, each: impl FnOnce(Element<'_>) -> R) -> Option<R> {
        let is_counted = self.size.is_some();
        let take = |leaf: &mut Leaf, _: &mut Vec<Leaf>| {
            let element = match end {
                End::Left => leaf.first(),
                End::Right => leaf.last(),
            }?;
            let bytes = if is_counted {
                element.listpack_bytes()
            } else {
                0
            };
            let result = each(element);
            match (&mut *leaf, end) {
                (Leaf::Run(run), End::Left) => run.drop_front(),
                (Leaf::Run(run), End::Right) => run.drop_back(),
                (Leaf::Whole(_), _) => leaf.remove(0..1),
            }
            Some((result, bytes))
        };
        let taken = match end {
            End::Left => self.tree.splice_first(take),
            End::Right => self.tree.splice_last(take),
        };
        let (result, bytes) = taken??;
        self.note_removed(bytes);
        Some(result)
    }

    fn insert(&mut self, index: usize, element: Element<'_>) {
        if index >= self.len() {
            self.push(End::Right, element);
            return;
        }
        self.note_added(element.listpack_bytes());
        self.tree.splice_at(index as u64, |leaf, offset, more| {
            leaf.insert(offset, element, more)
        });
    }

    fn set(&mut self, index: usize, element: Element<'_>) {
        if self.size.is_some() {
            let old = self.get(index).map_or(0, Element::listpack_bytes);
            self.note_removed(old);
            self.note_added(element.listpack_bytes());
        }
        self.tree.splice_at(index as u64, |leaf, offset, more| {
            leaf.set(offset, element, more)
        });
    }

    /// Removes all elements but those in a range of positions.
    fn keep(&mut self, range: Range<usize>) {
        let (len, kept) = (self.len(), range.len());
        if len - kept > REMOVED_LOOKED_AT {
            self.size = None;
        } else if self.size.is_some() {
            let before = Elements::forward(self, 0).take(range.start);
            let behind = Elements::forward(self, range.end);
            let bytes = before.chain(behind).map(Element::listpack_bytes).sum();
            self.note_removed(bytes);
        }
        self.tree.detach(range.end as u64..len as u64, |_, _| ());
        self.tree.detach(0..range.start as u64, |_, _| ());
        if self.size.is_none() && !self.is_quicklist {
            self.find_size();
        }
    }

    /// Removes up to `most` elements with these bytes, beginning from one end, and says how many.
    fn remove_equal(&mut self, most: usize, from: End, wanted: &[u8]) -> usize {
        // The leaves to be changed are found first and changed from behind, so that their positions stay right.
        let mut places: Vec<(u64, Range<usize>)> = Vec::new();
        let mut left = most;
        let mut look = |first: u64, leaf: &Leaf| {
            let within = leaf.reach(wanted, left, from);
            if let Some((range, found)) = within {
                places.push((first, range));
                left -= found;
            }
            left > 0
        };
        match from {
            End::Left => {
                let mut leaves = self.tree.leaves_from(0);
                while let Some((first, leaf)) = leaves.next()
                    && look(first, leaf)
                {}
                places.reverse();
            }
            End::Right => {
                let last = self.tree.len().saturating_sub(1);
                let mut leaves = self.tree.leaves_back_from(last);
                while let Some((first, leaf)) = leaves.next()
                    && look(first, leaf)
                {}
            }
        }
        for (first, range) in places {
            self.tree.edit_at(first, |leaf, _| match leaf {
                Leaf::Run(run) => run.remove_equal(range, wanted),
                Leaf::Whole(_) => leaf.remove(range),
            });
        }
        let removed = most - left;
        self.note_removed(element_bytes(wanted) * removed as u64);
        removed
    }

    /// Notes that elements with so many bytes are about to be added.
    #[inline]
    fn note_growth(&mut self, added: u64, items: usize, limit: NodeLimit) {
        if !self.is_quicklist {
            let bytes = listpack_bytes(self.size.unwrap_or(u64::MAX / 2)) + added;
            self.is_quicklist = limit.is_exceeded(bytes, (self.len() + items) as u64);
        }
    }

    /// Notes that elements may have been removed, so that the list may be called a listpack again.
    #[inline]
    fn note_removal(&mut self, limit: NodeLimit) {
        if !self.is_quicklist || !limit.is_half_kept(0, self.tree.len()) {
            return;
        }
        if self.size.is_none() && self.allocated_bytes() <= limit.own_bytes_max() {
            self.find_size();
        }
        if let Some(size) = self.size {
            self.is_quicklist = !limit.is_half_kept(listpack_bytes(size), self.tree.len());
        }
    }

    #[inline]
    fn note_added(&mut self, bytes: u64) {
        if let Some(size) = &mut self.size {
            *size += bytes;
            if self.is_quicklist && *size > SIZE_KEPT_MAX {
                self.size = None;
            }
        }
    }

    #[inline]
    fn note_removed(&mut self, bytes: u64) {
        if let Some(size) = &mut self.size {
            *size -= bytes;
        }
    }

    fn find_size(&mut self) {
        let elements = Elements::forward(self, 0);
        self.size = Some(elements.map(Element::listpack_bytes).sum());
    }
}

impl Leaf {
    /// Up to where, beginning from one end, there are elements with these bytes, `most` at most; and how many.
    fn reach(&self, wanted: &[u8], most: usize, from: End) -> Option<(Range<usize>, usize)> {
        let run = match self {
            Self::Run(run) => run,
            Self::Whole(rope) => {
                return Element::Rope(rope).is_equal(wanted).then_some((0..1, 1));
            }
        };
        if packed::size_of(wanted.len()) > run.used() {
            return None;
        }
        let (mut found, mut reach) = (0, 0);
        let mut look = |(at, (_, element)): (usize, (usize, &[u8]))| {
            if element == wanted {
                found += 1;
                reach = at + 1;
            }
            found < most
        };
        match from {
            End::Left => run.elements().enumerate().all(&mut look),
            End::Right => run.elements().rev().enumerate().all(&mut look),
        };
        let range = match from {
            End::Left => 0..reach,
            End::Right => run.items() - reach..run.items(),
        };
        (found > 0).then_some((range, found))
    }
}
