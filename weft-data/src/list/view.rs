//! Reading lists in either form.

use std::hash::Hasher;
use std::iter::Rev;

use super::leaf::Leaf;
use super::{Element, End, List, small};
use crate::collection::{Collection, CollectionRef};
use crate::packed;
use crate::tree::{Leaves, LeavesBackward};

/// A list to be looked at.
#[derive(Clone, Copy, Debug)]
pub enum ListRef<'a> {
    /// Packed, with its tag; without bytes it is empty.
    Packed(&'a [u8]),
    /// Large.
    Large(&'a List),
}

impl<'a> From<CollectionRef<'a>> for ListRef<'a> {
    /// A look at what the caller knows to be a list.
    fn from(collection: CollectionRef<'a>) -> Self {
        match collection {
            CollectionRef::Packed(bytes) => Self::Packed(bytes),
            CollectionRef::Large(Collection::List(list)) => Self::Large(list),
            CollectionRef::Large(_) => unreachable!("a list is asked for where there is one"),
        }
    }
}

impl<'a> ListRef<'a> {
    /// How many elements there are.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Self::Packed(bytes) => small::len(bytes),
            Self::Large(list) => list.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The name that OBJECT ENCODING says.
    #[must_use]
    pub fn encoding(self) -> &'static str {
        let is_quicklist = match self {
            Self::Packed(bytes) => small::is_quicklist(bytes),
            Self::Large(list) => list.is_quicklist,
        };
        if is_quicklist {
            "quicklist"
        } else {
            "listpack"
        }
    }

    /// The element at a position.
    #[must_use]
    pub fn get(self, index: usize) -> Option<Element<'a>> {
        match self {
            Self::Packed(bytes) => small::get(bytes, index).map(Element::Bytes),
            Self::Large(list) => list.get(index),
        }
    }

    /// The element at an end.
    #[must_use]
    pub fn end(self, end: End) -> Option<Element<'a>> {
        match (self, end) {
            (Self::Packed(bytes), End::Left) => small::elements(bytes).next(),
            (Self::Packed(bytes), End::Right) => small::elements(bytes).next_back(),
            (Self::Large(list), _) => return list.end(end),
        }
        .map(|(_, element)| Element::Bytes(element))
    }

    /// The elements from this position on.
    #[must_use]
    pub fn elements(self, from: usize) -> Elements<'a> {
        match self {
            Self::Packed(bytes) => Elements::Packed(small::elements_from(bytes, from)),
            Self::Large(list) => Elements::forward(list, from),
        }
    }

    /// The elements before this position, in reverse order.
    #[must_use]
    pub fn elements_back(self, before: usize) -> Elements<'a> {
        match self {
            Self::Packed(bytes) => {
                Elements::PackedBackward(small::elements_before(bytes, before).rev())
            }
            Self::Large(list) => Elements::backward(list, before),
        }
    }

    /// The same from the left end or from the right one: the elements, in their order or in the reverse one, that remain
    /// when `skipped` are left out.
    #[must_use]
    pub fn elements_from(self, end: End, skipped: usize) -> Elements<'a> {
        match end {
            End::Left => self.elements(skipped),
            End::Right => self.elements_back(self.len().saturating_sub(skipped)),
        }
    }

    /// Adds the elements in their order to a hash, independently of the form.
    pub fn digest(self, hasher: &mut impl Hasher) {
        for element in self.elements(0) {
            hasher.write_usize(element.len());
            match element {
                Element::Bytes(bytes) => bytes.iter().for_each(|byte| hasher.write_u8(*byte)),
                Element::Rope(rope) => rope
                    .slices(..)
                    .flatten()
                    .for_each(|byte| hasher.write_u8(*byte)),
            }
        }
    }
}

/// Elements one after the other.
pub enum Elements<'a> {
    /// Of a packed list.
    Packed(packed::Elements<'a>),
    /// Of a packed list, from its end.
    PackedBackward(Rev<packed::Elements<'a>>),
    /// Of a large list.
    Large(Forward<'a>),
    /// Of a large list, from its end.
    LargeBackward(Backward<'a>),
}

/// The state of going through a large list.
pub struct Forward<'a> {
    leaves: Leaves<'a, Leaf>,
    run: packed::Elements<'a>,
    /// Elements of the next leaf to be left out.
    skipped: usize,
}

/// The same in the other direction.
pub struct Backward<'a> {
    leaves: LeavesBackward<'a, Leaf>,
    run: packed::Elements<'a>,
    /// Elements of the next leaf to be gone through.
    taken: Option<usize>,
}

impl<'a> Elements<'a> {
    pub(super) fn forward(list: &'a List, from: usize) -> Self {
        let skipped = list.tree.at(from as u64).map_or(0, |(_, offset)| offset);
        Self::Large(Forward {
            leaves: list.tree.leaves_from(from as u64),
            run: packed::Elements::new(&[], 0),
            skipped,
        })
    }

    pub(super) fn backward(list: &'a List, before: usize) -> Self {
        let last = before.min(list.len()).checked_sub(1);
        let last = last.map_or(u64::MAX, |last| last as u64);
        Self::LargeBackward(Backward {
            leaves: list.tree.leaves_back_from(last),
            run: packed::Elements::new(&[], 0),
            taken: list.tree.at(last).map(|(_, offset)| offset + 1),
        })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        match self {
            Self::Packed(elements) => elements.next().map(|(_, bytes)| Element::Bytes(bytes)),
            Self::PackedBackward(elements) => {
                elements.next().map(|(_, bytes)| Element::Bytes(bytes))
            }
            Self::Large(forward) => match forward.run.next() {
                Some((_, bytes)) => Some(Element::Bytes(bytes)),
                None => forward.next_leaf(),
            },
            Self::LargeBackward(backward) => match backward.run.next_back() {
                Some((_, bytes)) => Some(Element::Bytes(bytes)),
                None => backward.next_leaf(),
            },
        }
    }
}

impl<'a> Forward<'a> {
    /// The first element of the next leaf.
    fn next_leaf(&mut self) -> Option<Element<'a>> {
        let (_, leaf) = self.leaves.next()?;
        let skipped = std::mem::take(&mut self.skipped);
        match leaf {
            Leaf::Run(run) => {
                self.run = run.elements_in(skipped..run.items());
                self.run.next().map(|(_, bytes)| Element::Bytes(bytes))
            }
            Leaf::Whole(rope) => Some(Element::Rope(rope)),
        }
    }
}

impl<'a> Backward<'a> {
    /// The last element of the next leaf.
    fn next_leaf(&mut self) -> Option<Element<'a>> {
        let (_, leaf) = self.leaves.next()?;
        let all = leaf.all();
        let taken = self.taken.take().unwrap_or(all.end);
        match leaf {
            Leaf::Run(run) => {
                self.run = run.elements_in(0..taken);
                self.run.next_back().map(|(_, bytes)| Element::Bytes(bytes))
            }
            Leaf::Whole(rope) => Some(Element::Rope(rope)),
        }
    }
}
