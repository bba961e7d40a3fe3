//! Elements one after the other in a few bytes: what the packed forms of collections are made of.
//!
//! Owns the layout of an element and its changes in place. Does not know what elements mean, nor the tag before the first
//! one: offsets count from the beginning of the whole vector, and every reader says where elements start.
//!
//! ```text
//! element = length, bytes, size      length: of the bytes; size: of both before it, written so that it is read from its end
//! number  = 0xxxxxxx                 below 128
//!         | 1xxxxxxx xxxxxxxx        else, high bits first; a size has these two bytes in the other order
//! ```
//!
//! Readers never panic, whatever the bytes are: they end at the first damage. `validate` says whether there is any.

use std::ops::Range;

/// The most bytes that an element holds: far more than a packed collection may take.
pub const ELEMENT_MAX: usize = 0x7fff - 2;

/// From here on a number takes two bytes.
const WIDE_FROM: usize = 0x80;
const WIDE: u8 = 0x80;

const fn width(number: usize) -> usize {
    if number < WIDE_FROM { 1 } else { 2 }
}

/// How many bytes an element with `len` bytes takes in all.
#[inline]
#[must_use]
pub const fn size_of(len: usize) -> usize {
    let body = width(len) + len;
    body + width(body)
}

fn total(parts: &[&[u8]]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

/// Appends a number below 2 to the power of 15.
#[inline]
pub(crate) fn push_number(bytes: &mut Vec<u8>, number: usize) {
    if number < WIDE_FROM {
        bytes.push(number as u8);
    } else {
        bytes.extend_from_slice(&[WIDE | (number >> 8) as u8, number as u8]);
    }
}

/// Appends an element made of `parts`, which are `ELEMENT_MAX` bytes at most.
#[inline]
pub fn push(bytes: &mut Vec<u8>, parts: &[&[u8]]) {
    let len = total(parts);
    assert!(len <= ELEMENT_MAX, "an element is small");
    bytes.reserve(size_of(len));
    push_number(bytes, len);
    for part in parts {
        bytes.extend_from_slice(part);
    }
    let body = width(len) + len;
    if body < WIDE_FROM {
        bytes.push(body as u8);
    } else {
        bytes.extend_from_slice(&[body as u8, WIDE | (body >> 8) as u8]);
    }
}

/// Writes an element with these bytes, `ELEMENT_MAX` at most, into a place that is exactly as large as it will be.
#[inline]
pub fn write(place: &mut [u8], element: &[u8]) {
    let (len, size) = (element.len(), place.len());
    assert!(len <= ELEMENT_MAX, "an element is small");
    debug_assert_eq!(size, size_of(len));
    let start = width(len);
    let body = start + len;
    place[start..body].copy_from_slice(element);
    if len < WIDE_FROM {
        place[0] = len as u8;
    } else {
        place[..2].copy_from_slice(&[WIDE | (len >> 8) as u8, len as u8]);
    }
    if body < WIDE_FROM {
        place[body] = body as u8;
    } else {
        place[body..].copy_from_slice(&[body as u8, WIDE | (body >> 8) as u8]);
    }
}

/// Inserts an element made of `parts` before the one at `offset`, or at the end.
pub fn insert(bytes: &mut Vec<u8>, offset: usize, parts: &[&[u8]]) {
    let before = bytes.len();
    push(bytes, parts);
    let size = bytes.len() - before;
    bytes[offset..].rotate_right(size);
}

/// Removes the elements that lie in this range of offsets.
pub fn remove(bytes: &mut Vec<u8>, range: Range<usize>) {
    bytes.drain(range);
}

/// Puts an element made of `parts` in the place of the one at `offset`. False, and no change, if there is none.
pub fn replace(bytes: &mut Vec<u8>, offset: usize, parts: &[&[u8]]) -> bool {
    let Some(old) = read(bytes, offset, bytes.len()) else {
        return false;
    };
    let (old, start) = (old.len(), offset + width(old.len()));
    if old == total(parts) {
        let mut at = start;
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    } else {
        bytes.drain(offset..offset + size_of(old));
        insert(bytes, offset, parts);
    }
    true
}

/// The element at `offset`, if there is one that ends before `end`.
#[inline]
fn read(bytes: &[u8], offset: usize, end: usize) -> Option<&[u8]> {
    let (len, start) = read_number(bytes, offset)?;
    if offset + size_of(len) > end {
        return None;
    }
    bytes.get(start..start + len)
}

/// The number at `offset`, such as the length of an element, and where it ends.
#[inline]
pub(crate) fn read_number(bytes: &[u8], offset: usize) -> Option<(usize, usize)> {
    let first = *bytes.get(offset)?;
    if first & WIDE == 0 {
        return Some((usize::from(first), offset + 1));
    }
    let second = *bytes.get(offset + 1)?;
    let number = usize::from(first & !WIDE) << 8 | usize::from(second);
    (number >= WIDE_FROM).then_some((number, offset + 2))
}

/// The element at `offset`, if there is one.
#[inline]
#[must_use]
pub fn at(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    read(bytes, offset, bytes.len())
}

/// The offset of the element that ends at `end`, if that is one and it begins at `start` or later.
fn offset_before(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    let last = *bytes.get(end.checked_sub(1)?)?;
    let whole = if last & WIDE == 0 {
        usize::from(last) + 1
    } else {
        let low = *bytes.get(end.checked_sub(2)?)?;
        (usize::from(last & !WIDE) << 8 | usize::from(low)) + 2
    };
    let offset = end.checked_sub(whole)?;
    (offset >= start && size_of(read(bytes, offset, end)?.len()) == whole).then_some(offset)
}

/// Where the element begins that stands so many behind the one at `offset`, or the end if there are not as many.
#[inline]
#[must_use]
pub fn skip(bytes: &[u8], mut offset: usize, count: usize) -> usize {
    for _ in 0..count {
        let Some(first) = bytes.get(offset) else {
            break;
        };
        if first & WIDE == 0 {
            let len = usize::from(*first);
            offset += size_of(len);
        } else {
            match at(bytes, offset) {
                Some(element) => offset += size_of(element.len()),
                None => break,
            }
        }
    }
    offset.min(bytes.len())
}

/// Where the element begins that stands so many before `end`, where one ends or there is none; `start` if there are not as
/// many.
#[inline]
#[must_use]
pub fn skip_back(bytes: &[u8], start: usize, mut end: usize, count: usize) -> usize {
    for _ in 0..count {
        let Some(last) = end.checked_sub(1).and_then(|at| bytes.get(at)) else {
            break;
        };
        let offset = if last & WIDE == 0 {
            end.checked_sub(usize::from(*last) + 1)
        } else {
            offset_before(bytes, start, end)
        };
        match offset {
            Some(offset) if offset >= start => end = offset,
            _ => break,
        }
    }
    end
}

/// Looks for an element equal to `wanted` among every `stride`-th one, beginning with the first, and returns its index among
/// all and its offset.
#[inline]
#[must_use]
pub fn find(bytes: &[u8], start: usize, stride: usize, wanted: &[u8]) -> Option<(usize, usize)> {
    let (mut offset, mut index) = (start, 0);
    let mut until = 0;
    while let Some(element) = at(bytes, offset) {
        if until == 0 {
            if element == wanted {
                return Some((index, offset));
            }
            until = stride;
        }
        until -= 1;
        index += 1;
        offset += size_of(element.len());
    }
    None
}

/// Counts the elements from `start` to the end; none if the bytes are not whole elements, exactly as `push` writes them.
#[must_use]
pub fn validate(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut offset, mut count) = (start, 0);
    if start > bytes.len() {
        return None;
    }
    while offset < bytes.len() {
        let end = offset + size_of(at(bytes, offset)?.len());
        if offset_before(bytes, offset, end)? != offset {
            return None;
        }
        offset = end;
        count += 1;
    }
    Some(count)
}

/// The elements with their offsets, from either end.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    front: usize,
    back: usize,
}

impl<'a> Elements<'a> {
    /// The elements from the one at `start` to the end.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8], start: usize) -> Self {
        Self {
            bytes,
            front: start.min(bytes.len()),
            back: bytes.len(),
        }
    }

    /// Those from the one at the beginning of the range to the one before its end.
    #[must_use]
    pub fn within(bytes: &'a [u8], range: Range<usize>) -> Self {
        let back = range.end.min(bytes.len());
        Self {
            bytes,
            front: range.start.min(back),
            back,
        }
    }

    /// The offsets of what is left: from the next element to the end of the last one.
    #[must_use]
    pub const fn offsets(&self) -> Range<usize> {
        self.front..self.back
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (usize, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.front;
        match read(self.bytes, offset, self.back) {
            Some(element) => {
                self.front += size_of(element.len());
                Some((offset, element))
            }
            None => {
                self.front = self.back;
                None
            }
        }
    }
}

impl DoubleEndedIterator for Elements<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let found = offset_before(self.bytes, self.front, self.back)
            .and_then(|offset| Some((offset, read(self.bytes, offset, self.back)?)));
        self.back = found.map_or(self.front, |(offset, _)| offset);
        found
    }
}

impl std::iter::FusedIterator for Elements<'_> {}

#[cfg(test)]
mod tests;
