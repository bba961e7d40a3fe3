//! The leaves of a large list: runs of elements, and long elements each on their own.

use std::ops::Range;

use weft_rope::Rope;

use super::Element;
use super::run::{ELEMENT_MAX, RUN_MAX, Run};
use crate::packed;
use crate::tree;

/// A leaf.
#[derive(Clone, Debug)]
pub(super) enum Leaf {
    /// Elements of at most [`ELEMENT_MAX`] bytes.
    Run(Run),
    /// One that is longer: shared between snapshots, never copied.
    Whole(Rope),
}

impl Leaf {
    /// A leaf with this one element; a run gets about so many bytes of room.
    pub(super) fn of(element: Element<'_>, room: usize) -> Self {
        match element {
            Element::Bytes(bytes) if bytes.len() <= ELEMENT_MAX => {
                let mut run = Run::with_room(room.max(packed::size_of(bytes.len())));
                run.push_back(bytes);
                Self::Run(run)
            }
            Element::Bytes(bytes) => Self::Whole(Rope::from_slice(bytes)),
            Element::Rope(rope) => Self::Whole(rope.clone()),
        }
    }

    /// The same for a leaf that others are going to be put in front of.
    pub(super) fn of_first(element: Element<'_>, room: usize) -> Self {
        match element {
            Element::Bytes(bytes) if bytes.len() <= ELEMENT_MAX => {
                let size = packed::size_of(bytes.len());
                let mut run = Run::with_room_before(room.max(size));
                run.push_front(bytes);
                Self::Run(run)
            }
            _ => Self::of(element, room),
        }
    }

    pub(super) fn get(&self, offset: usize) -> Option<Element<'_>> {
        match self {
            Self::Run(run) => run.get(offset).map(Element::Bytes),
            Self::Whole(rope) => (offset == 0).then_some(Element::Rope(rope)),
        }
    }

    pub(super) fn first(&self) -> Option<Element<'_>> {
        match self {
            Self::Run(run) => run.first().map(Element::Bytes),
            Self::Whole(rope) => Some(Element::Rope(rope)),
        }
    }

    pub(super) fn last(&self) -> Option<Element<'_>> {
        match self {
            Self::Run(run) => run.last().map(Element::Bytes),
            Self::Whole(rope) => Some(Element::Rope(rope)),
        }
    }

    /// Puts an element before the others, if this leaf is for such ones and has room.
    #[inline]
    pub(super) fn push_front(&mut self, element: Element<'_>) -> bool {
        match (self, element) {
            (Self::Run(run), Element::Bytes(bytes)) if bytes.len() <= ELEMENT_MAX => {
                run.push_front(bytes)
            }
            _ => false,
        }
    }

    /// Appends an element, if this leaf is for such ones and has room.
    #[inline]
    pub(super) fn push_back(&mut self, element: Element<'_>) -> bool {
        match (self, element) {
            (Self::Run(run), Element::Bytes(bytes)) if bytes.len() <= ELEMENT_MAX => {
                run.push_back(bytes)
            }
            _ => false,
        }
    }

    /// Inserts an element before the one at this offset, or behind all. What does not fit goes into leaves that follow.
    pub(super) fn insert(&mut self, offset: usize, element: Element<'_>, more: &mut Vec<Self>) {
        match (&mut *self, element) {
            (Self::Run(run), Element::Bytes(bytes)) if bytes.len() <= ELEMENT_MAX => {
                if run.insert(offset, bytes) {
                    return;
                }
                if offset == run.items() {
                    more.push(Self::of(element, RUN_MAX));
                } else if offset == 0 {
                    more.push(std::mem::replace(self, Self::of(element, RUN_MAX)));
                } else {
                    let middle = run.middle();
                    let mut right = run.split_off(middle);
                    // One side has room: an element is a quarter of a run at most.
                    let inserted = if offset <= middle {
                        run.insert(offset, bytes)
                    } else {
                        right.insert(offset - middle, bytes)
                    };
                    debug_assert!(inserted, "half a run has room");
                    more.push(Self::Run(right));
                }
            }
            (Self::Run(run), _) => {
                let right = run.split_off(offset);
                more.extend([Self::of(element, 0), Self::Run(right)]);
            }
            (Self::Whole(_), _) => {
                let new = Self::of(element, RUN_MAX / 4);
                if offset == 0 {
                    more.push(std::mem::replace(self, new));
                } else {
                    more.push(new);
                }
            }
        }
    }

    /// Puts an element in the place of the one at this offset. What does not fit goes into leaves that follow.
    pub(super) fn set(&mut self, offset: usize, element: Element<'_>, more: &mut Vec<Self>) {
        match (&mut *self, element) {
            (Self::Run(run), Element::Bytes(bytes)) if bytes.len() <= ELEMENT_MAX => {
                if !run.replace(offset, bytes) {
                    run.remove(offset..offset + 1);
                    self.insert(offset, element, more);
                }
            }
            (Self::Run(run), _) => {
                run.remove(offset..offset + 1);
                self.insert(offset, element, more);
            }
            (Self::Whole(_), _) => *self = Self::of(element, RUN_MAX / 4),
        }
    }

    /// The range of offsets, as far as there are that many, in which elements are to be looked at.
    pub(super) fn all(&self) -> Range<usize> {
        0..tree::Leaf::items(self)
    }
}

impl tree::Leaf for Leaf {
    type Bound = ();

    #[inline]
    fn items(&self) -> usize {
        match self {
            Self::Run(run) => run.items(),
            Self::Whole(_) => 1,
        }
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Run(run) => run.capacity(),
            Self::Whole(rope) => rope.allocated_bytes(),
        }
    }

    fn bound(&self) {}

    /// Never: whoever inserts splits first.
    #[inline]
    fn is_full(&self) -> bool {
        false
    }

    fn split(&mut self) -> Self {
        match self {
            Self::Run(run) => Self::Run(run.split_off(run.middle())),
            Self::Whole(_) => Self::Run(Run::default()),
        }
    }

    #[inline]
    fn is_sparse(&self) -> bool {
        matches!(self, Self::Run(run) if run.used() < RUN_MAX / 4)
    }

    fn has_room_for(&self, right: &Self) -> bool {
        match (self, right) {
            (Self::Run(run), Self::Run(right)) => run.used() + right.used() <= RUN_MAX * 3 / 4,
            _ => false,
        }
    }

    fn absorb(&mut self, right: &Self) {
        if let (Self::Run(run), Self::Run(right)) = (self, right) {
            run.append(right);
        }
    }

    fn remove(&mut self, range: Range<usize>) {
        match self {
            Self::Run(run) => run.remove(range),
            Self::Whole(_) if range.is_empty() => {}
            Self::Whole(_) => *self = Self::Run(Run::default()),
        }
    }
}
