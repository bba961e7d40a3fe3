//! Changing lists in either form, and from one into the other.

use std::ops::Range;

use super::{Element, End, List, ListRef, NodeLimit, small};
use crate::collection::{Collection, Draft, PACKED_MAX};
use crate::packed;

/// A list that is being changed.
pub struct ListMut<'d, 'a> {
    draft: &'d mut Draft<'a>,
    limit: NodeLimit,
}

/// What a draft of a list is.
enum Form<'d> {
    Packed(&'d mut Vec<u8>),
    Large(&'d mut List),
}

impl<'d, 'a> ListMut<'d, 'a> {
    /// Changes a draft, which is a list or nothing, while listpacks may be this large.
    pub fn new(draft: &'d mut Draft<'a>, limit: NodeLimit) -> Self {
        Self { draft, limit }
    }

    fn form(&mut self) -> Form<'_> {
        let collection = match self.draft {
            Draft::Packed(bytes) => return Form::Packed(bytes),
            Draft::Large(collection) => &mut **collection,
            Draft::Grown(collection) => &mut **collection,
        };
        match collection {
            Collection::List(list) => Form::Large(list),
            _ => unreachable!("a list is changed where there is one"),
        }
    }

    /// The list in its large form, whatever it was.
    fn grown(&mut self) -> &mut List {
        if let Draft::Packed(bytes) = self.draft {
            let list = List::of_packed(bytes);
            *self.draft = Draft::Grown(Box::new(Collection::List(list)));
        }
        match self.form() {
            Form::Large(list) => list,
            Form::Packed(_) => unreachable!("made large above"),
        }
    }

    /// A look at the list.
    #[must_use]
    pub fn as_ref(&self) -> ListRef<'_> {
        self.draft
            .as_ref()
            .map_or(ListRef::Packed(&[]), ListRef::from)
    }

    /// Notes that so many elements of so many bytes are about to be added, and finds the form that has room for them. None:
    /// the large one.
    fn prepare(&mut self, bytes: usize, items: usize, packed_bytes: usize) -> Option<&mut Vec<u8>> {
        let limit = self.limit;
        match self.form() {
            Form::Packed(packed) => {
                small::note_growth(packed, bytes as u64, items, limit);
                if packed.len() + packed_bytes > PACKED_MAX {
                    return None;
                }
            }
            Form::Large(list) => {
                list.note_growth(bytes as u64, items, limit);
                return None;
            }
        }
        match &mut *self.draft {
            Draft::Packed(packed) => Some(packed),
            Draft::Large(_) | Draft::Grown(_) => None,
        }
    }

    /// Adds elements one after the other at an end, and returns the new length.
    pub fn push<'e>(
        &mut self,
        end: End,
        elements: impl ExactSizeIterator<Item = Element<'e>> + Clone,
    ) -> usize {
        if let Draft::Packed(packed) = self.draft {
            small::begin(packed);
        }
        let (mut bytes, mut packed_bytes) = (0, 0);
        for element in elements.clone() {
            bytes += element.len();
            packed_bytes += packed_size(element);
        }
        if let Some(packed) = self.prepare(bytes, elements.len(), packed_bytes) {
            for element in elements {
                small::push(packed, end, contiguous(element));
            }
            return small::len(packed);
        }
        let list = self.grown();
        elements.for_each(|element| list.push(end, element));
        list.len()
    }

    /// Removes up to `count` elements from an end, which `each` sees first.
    pub fn pop(&mut self, end: End, count: usize, mut each: impl FnMut(Element<'_>)) {
        if count == 0 {
            return;
        }
        let limit = self.limit;
        match self.form() {
            Form::Large(list) if count == 1 => {
                list.pop(end, each);
                list.note_removal(limit);
            }
            _ => {
                let list = self.as_ref();
                let len = list.len();
                let elements = list.elements_from(end, 0);
                elements.take(count).for_each(&mut each);
                let count = count.min(len);
                self.keep(match end {
                    End::Left => count..len,
                    End::Right => 0..len - count,
                });
            }
        }
    }

    /// Removes all elements but those in a range of positions, which are positions of elements. Whoever has a snapshot
    /// lets this take the same time however many they are, and can free them later.
    pub fn keep(&mut self, range: Range<usize>) {
        let limit = self.limit;
        match self.form() {
            Form::Packed(bytes) => {
                let len = small::len(bytes);
                if range.is_empty() {
                    bytes.clear();
                } else {
                    small::remove(bytes, range.end..len);
                    small::remove(bytes, 0..range.start);
                }
                small::note_removal(bytes, limit);
            }
            Form::Large(list) => {
                list.keep(range);
                list.note_removal(limit);
            }
        }
    }

    /// Puts an element in the place of the one at a position; false if there is no such position.
    pub fn set(&mut self, index: usize, element: Element<'_>) -> bool {
        let limit = self.limit;
        let len = self.as_ref().len();
        if len == 0 {
            return false;
        }
        let exists = index < len;
        let packed_bytes = packed_size(element);
        if let Some(packed) = self.prepare(element.len(), 1, packed_bytes) {
            if exists {
                small::replace(packed, index, contiguous(element));
                small::note_removal(packed, limit);
            }
        } else if exists {
            let list = self.grown();
            list.set(index, element);
            list.note_removal(limit);
        }
        exists
    }

    /// Inserts an element before or behind the first one equal to `pivot`, and returns the new length; none if there is no such
    /// one.
    pub fn insert(&mut self, is_before: bool, pivot: &[u8], element: Element<'_>) -> Option<usize> {
        let list = self.as_ref();
        if list.is_empty() {
            return None;
        }
        let found = list.elements(0).position(|other| other.is_equal(pivot));
        let packed_bytes = packed_size(element);
        let packed = self.prepare(element.len(), 1, packed_bytes);
        let index = found? + usize::from(!is_before);
        match packed {
            Some(packed) => {
                small::insert(packed, index, contiguous(element));
                Some(small::len(packed))
            }
            None => {
                let list = self.grown();
                list.insert(index, element);
                Some(list.len())
            }
        }
    }

    /// Removes up to `most` elements with these bytes, beginning from one end, and says how many.
    pub fn remove(&mut self, most: usize, from: End, wanted: &[u8]) -> usize {
        let limit = self.limit;
        match self.form() {
            Form::Packed(bytes) => {
                let removed = small::remove_equal(bytes, most, from, wanted);
                if removed > 0 {
                    small::note_removal(bytes, limit);
                }
                removed
            }
            Form::Large(list) => {
                let removed = list.remove_equal(most, from, wanted);
                if removed > 0 {
                    list.note_removal(limit);
                }
                removed
            }
        }
    }
}

/// Bytes that an element takes in a packed list; too many for one that is a rope.
fn packed_size(element: Element<'_>) -> usize {
    match element {
        Element::Bytes(bytes) if bytes.len() <= PACKED_MAX => packed::size_of(bytes.len()),
        Element::Bytes(_) | Element::Rope(_) => PACKED_MAX,
    }
}

/// The bytes of an element that fits into a packed list.
fn contiguous(element: Element<'_>) -> &[u8] {
    match element {
        Element::Bytes(bytes) => bytes,
        Element::Rope(_) => unreachable!("a rope is long"),
    }
}
