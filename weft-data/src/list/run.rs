//! Elements in one piece of memory of at most 4 KiB: what most leaves of a large list are.
//!
//! Owns the room on either side of the elements. Both ends are added to and taken from without moving the others, so that a
//! list is as fast a stack as it is a queue. Elements lie as `packed` lays them out.

use std::ops::Range;

use crate::packed::{self, Elements};

/// The most bytes of a run.
pub(super) const RUN_MAX: usize = 4096;
/// The longest element in a run. Longer ones are leaves of their own.
pub(super) const ELEMENT_MAX: usize = 1024;
/// The least room that a run is made with.
const ROOM_MIN: usize = 512;

/// Elements one after the other, with room before the first and behind the last one.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// Elements from `start` to the end.
    bytes: Vec<u8>,
    start: u32,
    items: u32,
}

impl Run {
    /// An empty run with room for about so many bytes.
    pub(super) fn with_room(room: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(room.clamp(ROOM_MIN, RUN_MAX)),
            ..Self::default()
        }
    }

    /// An empty run that has its room, about so many bytes, in front.
    pub(super) fn with_room_before(room: usize) -> Self {
        let room = room.clamp(ROOM_MIN, RUN_MAX);
        Self {
            bytes: vec![0; room],
            start: room as u32,
            items: 0,
        }
    }

    /// The elements that `bytes`, `RUN_MAX` at most, consists of.
    pub(super) fn of_packed(bytes: &[u8], items: usize) -> Self {
        let mut run = Self::with_room((bytes.len() * 2).next_power_of_two());
        run.bytes.extend_from_slice(bytes);
        run.items = items as u32;
        run
    }

    #[inline]
    pub(super) const fn items(&self) -> usize {
        self.items as usize
    }

    /// Bytes of the elements.
    #[inline]
    pub(super) const fn used(&self) -> usize {
        self.bytes.len() - self.start as usize
    }

    #[inline]
    pub(super) const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    #[inline]
    pub(super) fn elements(&self) -> Elements<'_> {
        Elements::new(&self.bytes, self.start as usize)
    }

    /// The elements in a range of their offsets.
    #[inline]
    pub(super) fn elements_in(&self, items: Range<usize>) -> Elements<'_> {
        if items == (0..self.items()) {
            return self.elements();
        }
        Elements::within(&self.bytes, self.places(items))
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&[u8]> {
        packed::at(&self.bytes, self.start as usize)
    }

    #[inline]
    pub(super) fn last(&self) -> Option<&[u8]> {
        self.elements().next_back().map(|(_, element)| element)
    }

    pub(super) fn get(&self, offset: usize) -> Option<&[u8]> {
        packed::at(&self.bytes, self.place(offset))
    }

    /// Where the element at this offset begins, or where the last one ends; found from the nearer end.
    fn place(&self, offset: usize) -> usize {
        let start = self.start as usize;
        if offset <= self.items() / 2 {
            packed::skip(&self.bytes, start, offset)
        } else {
            let behind = self.items().saturating_sub(offset);
            packed::skip_back(&self.bytes, start, self.bytes.len(), behind)
        }
    }

    fn places(&self, items: Range<usize>) -> Range<usize> {
        self.place(items.start)..self.place(items.end)
    }

    /// Appends an element; false, and nothing is done, if there is no room.
    #[inline]
    pub(super) fn push_back(&mut self, element: &[u8]) -> bool {
        let size = packed::size_of(element.len());
        if self.bytes.len() + size > RUN_MAX {
            if self.used() + size > RUN_MAX / 2 {
                return false;
            }
            self.center();
        }
        self.grow(size);
        packed::push(&mut self.bytes, &[element]);
        self.items += 1;
        true
    }

    /// Puts an element before the others; false, and nothing is done, if there is no room.
    #[inline]
    pub(super) fn push_front(&mut self, element: &[u8]) -> bool {
        let size = packed::size_of(element.len());
        if size > self.start as usize && !self.make_room_before(size) {
            return false;
        }
        let end = self.start as usize;
        let start = end - size;
        packed::write(&mut self.bytes[start..end], element);
        self.start = start as u32;
        self.items += 1;
        true
    }

    /// Drops the first element.
    #[inline]
    pub(super) fn drop_front(&mut self) {
        if let Some(element) = self.first() {
            self.start += packed::size_of(element.len()) as u32;
            self.items -= 1;
        }
    }

    /// Drops the last element.
    #[inline]
    pub(super) fn drop_back(&mut self) {
        if let Some((place, _)) = self.elements().next_back() {
            self.bytes.truncate(place);
            self.items -= 1;
        }
    }

    /// Inserts an element before the one at this offset, or behind all; false, and nothing is done, if there is no room.
    pub(super) fn insert(&mut self, offset: usize, element: &[u8]) -> bool {
        if offset == 0 && self.push_front(element) {
            return true;
        }
        if offset == self.items() {
            return self.push_back(element);
        }
        let size = packed::size_of(element.len());
        if self.used() + size > RUN_MAX {
            return false;
        }
        let place = self.place(offset) - self.start as usize;
        self.bytes.drain(..self.start as usize);
        self.start = 0;
        self.grow(size);
        packed::insert(&mut self.bytes, place, &[element]);
        self.items += 1;
        true
    }

    /// Puts another element in the place of the one at this offset; false, and nothing is done, if there is no room.
    pub(super) fn replace(&mut self, offset: usize, element: &[u8]) -> bool {
        let place = self.place(offset);
        let Some(old) = packed::at(&self.bytes, place) else {
            return false;
        };
        let (old, new) = (packed::size_of(old.len()), packed::size_of(element.len()));
        if self.bytes.len() + new > RUN_MAX + old {
            return false;
        }
        self.grow(new.saturating_sub(old));
        packed::replace(&mut self.bytes, place, &[element])
    }

    /// Removes the elements in a range of offsets.
    pub(super) fn remove(&mut self, items: Range<usize>) {
        let Range { start, end } = self.places(items.clone());
        if start == self.start as usize {
            self.start = end as u32;
        } else {
            self.bytes.drain(start..end);
        }
        self.items -= items.len() as u32;
        if self.items == 0 {
            self.clear();
        }
    }

    /// Removes the elements in a range of offsets that are equal to `element`.
    pub(super) fn remove_equal(&mut self, items: Range<usize>, element: &[u8]) {
        let within = self.places(items);
        let mut kept = within.start;
        let mut place = within.start;
        while place < within.end {
            let Some(found) = packed::at(&self.bytes, place) else {
                break;
            };
            let (size, equal) = (packed::size_of(found.len()), found == element);
            if equal {
                self.items -= 1;
            } else {
                self.bytes.copy_within(place..place + size, kept);
                kept += size;
            }
            place += size;
        }
        self.bytes.drain(kept..place);
        if self.items == 0 {
            self.clear();
        }
    }

    /// Keeps the elements before this offset and returns the others.
    pub(super) fn split_off(&mut self, offset: usize) -> Self {
        let place = self.place(offset);
        let right = Self::of_packed(&self.bytes[place..], self.items() - offset);
        self.bytes.truncate(place);
        self.items = offset as u32;
        right
    }

    /// The offset that divides the bytes most evenly; between two elements, if there are two.
    pub(super) fn middle(&self) -> usize {
        let half = self.start as usize + self.used() / 2;
        let before = self
            .elements()
            .take_while(|(place, _)| *place < half)
            .count();
        before.clamp(1, self.items().saturating_sub(1).max(1))
    }

    /// Appends all elements of another run; there has to be room for them.
    pub(super) fn append(&mut self, right: &Self) {
        let added = right.used();
        if self.bytes.len() + added > RUN_MAX {
            self.bytes.drain(..self.start as usize);
            self.start = 0;
        }
        self.grow(added);
        self.bytes
            .extend_from_slice(&right.bytes[right.start as usize..]);
        self.items += right.items;
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
        self.items = 0;
    }

    /// Makes the allocation large enough for so many more bytes at the end.
    #[inline]
    fn grow(&mut self, added: usize) {
        let needed = self.bytes.len() + added;
        if needed > self.bytes.capacity() {
            let room = (self.bytes.capacity() * 2).clamp(ROOM_MIN, RUN_MAX);
            self.bytes
                .reserve_exact(room.max(needed) - self.bytes.len());
        }
    }

    /// Moves the elements, half a run at most, to the middle.
    #[cold]
    fn center(&mut self) {
        self.rebuild(RUN_MAX, (RUN_MAX - self.used()) / 2);
    }

    /// Finds room for so many bytes before the first element, unless the elements would have to be moved too often.
    #[cold]
    fn make_room_before(&mut self, size: usize) -> bool {
        let (used, capacity) = (self.used(), self.capacity());
        if capacity < RUN_MAX && used + size <= RUN_MAX {
            // While it grows, all new room lies in front.
            let room = (capacity * 2).clamp(ROOM_MIN, RUN_MAX).max(used + size);
            self.rebuild(room, room - used);
            true
        } else if used + size <= RUN_MAX / 2 {
            self.center();
            true
        } else {
            false
        }
    }

    /// Makes the allocation `room` bytes and lets the elements begin at `start`.
    fn rebuild(&mut self, room: usize, start: usize) {
        let mut bytes = Vec::with_capacity(room.max(start + self.used()));
        bytes.resize(start, 0);
        bytes.extend_from_slice(&self.bytes[self.start as usize..]);
        self.bytes = bytes;
        self.start = start as u32;
    }
}
