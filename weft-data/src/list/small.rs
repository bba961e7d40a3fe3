//! The packed form of a list.
//!
//! ```text
//! tag        kind, and whether Redis would call the list a quicklist
//! elements   how many, 2 bytes, low one first
//! element*   as `packed` lays them out
//! ```

use std::ops::Range;

use super::End;
use super::naming::{NodeLimit, element_bytes, listpack_bytes};
use crate::collection::Kind;
use crate::packed::{self, Elements};

/// Where elements begin.
pub(super) const HEAD: usize = 3;
/// The flag of a list that was called a quicklist.
const QUICKLIST: u8 = 0b1000;

/// How many elements there are. No bytes: no list.
#[inline]
pub(super) fn len(bytes: &[u8]) -> usize {
    match bytes {
        [_, low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    }
}

#[inline]
fn set_len(bytes: &mut Vec<u8>, len: usize) {
    if len == 0 {
        bytes.clear();
    } else {
        bytes[1..HEAD].copy_from_slice(&(len as u16).to_le_bytes());
    }
}

/// Makes a list of no bytes.
#[inline]
pub(super) fn begin(bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        bytes.extend_from_slice(&[Kind::List.tag(), 0, 0]);
    }
}

pub(super) fn is_quicklist(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|tag| tag & QUICKLIST != 0)
}

#[inline]
pub(super) fn elements(bytes: &[u8]) -> Elements<'_> {
    Elements::new(bytes, HEAD)
}

/// The elements from the one at `index`.
pub(super) fn elements_from(bytes: &[u8], index: usize) -> Elements<'_> {
    Elements::new(bytes, place(bytes, index))
}

/// The elements before the one at `index`.
pub(super) fn elements_before(bytes: &[u8], index: usize) -> Elements<'_> {
    Elements::within(bytes, HEAD..place(bytes, index))
}

/// Where the element at this index begins, or where the last one ends; found from the nearer end.
fn place(bytes: &[u8], index: usize) -> usize {
    let len = len(bytes);
    if index <= len / 2 {
        packed::skip(bytes, HEAD, index)
    } else {
        packed::skip_back(bytes, HEAD, bytes.len(), len.saturating_sub(index))
    }
}

pub(super) fn get(bytes: &[u8], index: usize) -> Option<&[u8]> {
    packed::at(bytes, place(bytes, index))
}

/// Notes that elements with so many bytes are about to be added.
#[inline]
pub(super) fn note_growth(bytes: &mut [u8], added: u64, items: usize, limit: NodeLimit) {
    let items = (len(bytes) + items) as u64;
    // Ours is never much smaller than a listpack, so that most additions need no computing.
    let most = listpack_bytes(bytes.len() as u64) + added;
    if limit.is_exceeded(most, items)
        && limit.is_exceeded(listpack_bytes(size(bytes)) + added, items)
    {
        bytes[0] |= QUICKLIST;
    }
}

/// Notes that elements may have been removed.
pub(super) fn note_removal(bytes: &mut [u8], limit: NodeLimit) {
    if is_quicklist(bytes) && limit.is_half_kept(listpack_bytes(size(bytes)), len(bytes) as u64) {
        bytes[0] &= !QUICKLIST;
    }
}

/// Bytes that the elements take in a listpack.
pub(super) fn size(bytes: &[u8]) -> u64 {
    elements(bytes)
        .map(|(_, element)| element_bytes(element))
        .sum()
}

#[inline]
pub(super) fn push(bytes: &mut Vec<u8>, end: End, element: &[u8]) {
    let len = len(bytes);
    match end {
        End::Left => packed::insert(bytes, HEAD, &[element]),
        End::Right => packed::push(bytes, &[element]),
    }
    set_len(bytes, len + 1);
}

pub(super) fn insert(bytes: &mut Vec<u8>, index: usize, element: &[u8]) {
    let len = len(bytes);
    let place = place(bytes, index);
    packed::insert(bytes, place, &[element]);
    set_len(bytes, len + 1);
}

pub(super) fn replace(bytes: &mut Vec<u8>, index: usize, element: &[u8]) {
    let place = place(bytes, index);
    packed::replace(bytes, place, &[element]);
}

/// Removes the elements in a range of indexes.
pub(super) fn remove(bytes: &mut Vec<u8>, range: Range<usize>) {
    let left = len(bytes) - range.len();
    let places = place(bytes, range.start)..place(bytes, range.end);
    packed::remove(bytes, places);
    set_len(bytes, left);
}

/// Removes up to `most` elements equal to `element`, beginning from one end, and says how many.
pub(super) fn remove_equal(bytes: &mut Vec<u8>, most: usize, from: End, element: &[u8]) -> usize {
    let equal = |(_, other): &(usize, &[u8])| *other == element;
    let found: Vec<usize> = match from {
        End::Left => elements(bytes)
            .filter(equal)
            .map(|(at, _)| at)
            .take(most)
            .collect(),
        End::Right => {
            let backward = elements(bytes).rev();
            let mut found: Vec<usize> = backward
                .filter(equal)
                .map(|(at, _)| at)
                .take(most)
                .collect();
            found.reverse();
            found
        }
    };
    let size = packed::size_of(element.len());
    for place in found.iter().rev() {
        packed::remove(bytes, *place..place + size);
    }
    let left = len(bytes) - found.len();
    set_len(bytes, left);
    found.len()
}
