//! A set in a few bytes: integers in ascending order, or members in the order in which they came.
//!
//! ```text
//! tag                                kind (3 bits), what it is called (2 bits), width of integers (2 bits)
//! called intset:     tag, integers
//! called otherwise:  tag, number of members (2 bytes, little-endian), elements (see `packed`)
//! ```
//!
//! Owns this layout and its changes. How many bytes it may take is the caller's business. Readers never panic.
use std::collections::HashSet;

use super::integers::{self, Integers, Width};
use super::{Encoding, Limits, Member};
use crate::collection::Kind;
use crate::packed::{self, Elements};

/// Where integers begin.
const INTEGERS: usize = 1;
/// Where elements begin.
const ELEMENTS: usize = 3;
const CALLED_SHIFT: u8 = 3;
const WIDTH_SHIFT: u8 = 5;
/// As many members as the count can say; far more than fit.
const LISTED_MAX: usize = u16::MAX as usize;

/// A flat set to be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flat<'a> {
    Integers(Integers<'a>),
    Listed { bytes: &'a [u8], called: Encoding },
}

const fn tag(called: Encoding, width: Width) -> u8 {
    Kind::Set.tag() | (called as u8) << CALLED_SHIFT | (width as u8) << WIDTH_SHIFT
}

/// The bytes of a set without members, which is to be called so.
pub(super) fn empty(called: Encoding) -> Vec<u8> {
    let mut bytes = vec![tag(called, Width::Two)];
    if called != Encoding::Intset {
        bytes.extend_from_slice(&[0, 0]);
    }
    bytes
}

impl<'a> Flat<'a> {
    /// Reads the tag; damage reads as a set without members.
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let tag = bytes.first().copied().unwrap_or_default();
        match Encoding::of_code(tag >> CALLED_SHIFT & 0b11) {
            Some(Encoding::Intset) | None => Flat::Integers(Integers::new(
                bytes.get(INTEGERS..).unwrap_or_default(),
                width_of(bytes),
            )),
            Some(called) => Flat::Listed { bytes, called },
        }
    }

    pub(super) const fn called(self) -> Encoding {
        match self {
            Flat::Integers(_) => Encoding::Intset,
            Flat::Listed { called, .. } => called,
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            Flat::Integers(integers) => integers.len(),
            Flat::Listed { bytes, .. } => count(bytes),
        }
    }

    pub(super) fn contains(self, member: Member<'_>) -> bool {
        match self {
            Flat::Integers(integers) => member
                .integer()
                .is_some_and(|value| integers.search(value).is_ok()),
            Flat::Listed { bytes, .. } => {
                member.with(|text| packed::find(bytes, ELEMENTS, 1, text).is_some())
            }
        }
    }

    pub(super) fn iter(self) -> Iter<'a> {
        match self {
            Flat::Integers(integers) => Iter::Integers { integers, next: 0 },
            Flat::Listed { bytes, .. } => Iter::Listed(Elements::new(bytes, ELEMENTS)),
        }
    }

    /// The member at `index`, in the set's order.
    pub(super) fn at(self, index: usize) -> Option<Member<'a>> {
        match self {
            Flat::Integers(integers) => integers.at(index).map(Member::Integer),
            Flat::Listed { .. } => self.iter().nth(index),
        }
    }

    /// The members from a place on, which is 0 at first and then what `Iter::place` said.
    pub(super) fn iter_from(self, place: usize) -> Iter<'a> {
        match self {
            Flat::Integers(integers) => Iter::Integers {
                integers,
                next: place,
            },
            Flat::Listed { bytes, .. } => {
                Iter::Listed(Elements::new(bytes, ELEMENTS.saturating_add(place)))
            }
        }
    }

    fn text_len_max(self) -> usize {
        match self {
            Flat::Integers(integers) => integers.text_len_max(),
            Flat::Listed { bytes, .. } => Elements::new(bytes, ELEMENTS)
                .map(|(_, element)| element.len())
                .max()
                .unwrap_or(0),
        }
    }
}

fn width_of(bytes: &[u8]) -> Width {
    let tag = bytes.first().copied().unwrap_or_default();
    Width::of_code(tag >> WIDTH_SHIFT & 0b11).unwrap_or(Width::Two)
}

fn count(bytes: &[u8]) -> usize {
    match bytes.get(1..ELEMENTS) {
        Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
        _ => 0,
    }
}

fn set_count(bytes: &mut [u8], count: usize) {
    bytes[1..ELEMENTS].copy_from_slice(&(count as u16).to_le_bytes());
}

/// The members of a flat set in its order.
#[derive(Clone, Debug)]
pub(super) enum Iter<'a> {
    Integers { integers: Integers<'a>, next: usize },
    Listed(Elements<'a>),
}

impl Iter<'_> {
    /// Where the next member is.
    pub(super) fn place(&self) -> usize {
        match self {
            Iter::Integers { next, .. } => *next,
            Iter::Listed(elements) => elements.offsets().start.saturating_sub(ELEMENTS),
        }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        match self {
            Iter::Integers { integers, next } => {
                let value = integers.at(*next)?;
                *next += 1;
                Some(Member::Integer(value))
            }
            Iter::Listed(elements) => elements.next().map(|(_, element)| Member::Bytes(element)),
        }
    }
}

/// What became of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addition {
    /// The member was there already.
    Present,
    Added,
    /// Nothing was done: with the member the set takes more bytes than it may.
    Full,
}

/// Adds a member, if the set may take the bytes that it needs then: as many as `room` says for what it is called.
pub(super) fn add(
    bytes: &mut Vec<u8>,
    member: Member<'_>,
    limits: &Limits,
    room: impl Fn(Encoding) -> usize,
) -> Addition {
    let flat = Flat::new(bytes);
    let place = match (flat, member.integer()) {
        (Flat::Integers(integers), Some(value)) => match integers.search(value) {
            Ok(_) => return Addition::Present,
            Err(index) => Some((value, index, integers.len())),
        },
        (Flat::Integers(_), None) => None,
        (Flat::Listed { .. }, _) => {
            if flat.contains(member) {
                return Addition::Present;
            }
            None
        }
    };
    let called = limits.called_with(flat.called(), flat.len(), member, || flat.text_len_max());
    if let Some((value, index, len)) = place
        && called == Encoding::Intset
    {
        let width = width_of(bytes);
        let wider = width.max(Width::of(value));
        if INTEGERS + (len + 1) * wider.bytes() > room(called) {
            return Addition::Full;
        }
        if wider != width {
            integers::widen(bytes, INTEGERS, width, wider);
            bytes[0] = tag(Encoding::Intset, wider);
        }
        integers::insert(bytes, INTEGERS, wider, index, value);
        return Addition::Added;
    }
    let taken = match flat {
        Flat::Integers(integers) => {
            let size = |value| packed::size_of(crate::number::i64_text_len(value));
            ELEMENTS + integers.iter().map(size).sum::<usize>()
        }
        Flat::Listed { bytes, .. } => bytes.len(),
    };
    if member.len() > packed::ELEMENT_MAX
        || taken + packed::size_of(member.len()) > room(called)
        || flat.len() >= LISTED_MAX
    {
        return Addition::Full;
    }
    if flat.called() == Encoding::Intset {
        *bytes = listed(flat.iter(), called);
    } else {
        bytes[0] = tag(called, Width::Two);
    }
    let members = count(bytes) + 1;
    set_count(bytes, members);
    member.with(|text| packed::push(bytes, &[text]));
    Addition::Added
}

/// The bytes of a set with these members, in this order.
fn listed<'a>(members: impl Iterator<Item = Member<'a>>, called: Encoding) -> Vec<u8> {
    let mut bytes = empty(called);
    let mut count = 0;
    for member in members {
        member.with(|text| packed::push(&mut bytes, &[text]));
        count += 1;
    }
    set_count(&mut bytes, count);
    bytes
}

/// Removes a member and says whether it was there.
pub(super) fn remove(bytes: &mut Vec<u8>, member: Member<'_>) -> bool {
    match Flat::new(bytes) {
        Flat::Integers(integers) => {
            let Some(Ok(index)) = member.integer().map(|value| integers.search(value)) else {
                return false;
            };
            let width = width_of(bytes);
            integers::remove(bytes, INTEGERS, width, index);
        }
        Flat::Listed { .. } => {
            let found = member.with(|text| packed::find(bytes, ELEMENTS, 1, text));
            let Some((_, offset)) = found else {
                return false;
            };
            packed::remove(bytes, offset..offset + packed::size_of(member.len()));
            let members = count(bytes).saturating_sub(1);
            set_count(bytes, members);
        }
    }
    true
}

/// Keeps the members for which `keep` says so, in their order.
pub(super) fn retain(bytes: &mut Vec<u8>, mut keep: impl FnMut(Member<'_>) -> bool) {
    let flat = Flat::new(bytes);
    *bytes = match flat {
        Flat::Integers(integers) => {
            let width = width_of(bytes);
            let mut kept = vec![bytes[0]];
            for value in integers.iter() {
                if keep(Member::Integer(value)) {
                    kept.extend_from_slice(&value.to_le_bytes()[..width.bytes()]);
                }
            }
            kept
        }
        Flat::Listed { called, .. } => listed(flat.iter().filter(|member| keep(*member)), called),
    };
}

/// Whether the bytes are a set with at least one member, exactly as written here.
pub(super) fn is_valid(bytes: &[u8]) -> bool {
    let Some(&first) = bytes.first() else {
        return false;
    };
    let flat = Flat::new(bytes);
    let (called, width) = (flat.called(), width_of(bytes));
    if first != tag(called, width) || flat.len() == 0 {
        return false;
    }
    match flat {
        Flat::Integers(integers) => integers.is_valid(),
        Flat::Listed { .. } => {
            let mut seen = HashSet::new();
            width == Width::Two
                && packed::validate(bytes, ELEMENTS) == Some(count(bytes))
                && Elements::new(bytes, ELEMENTS).all(|(_, element)| seen.insert(element))
        }
    }
}
