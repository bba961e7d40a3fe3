//! Hashes in a few bytes: fields one after the other.
//!
//! ```text
//! flat = tag, number of fields u16, fields      the number's low byte first; fields as in `fields`, the tag says which
//! ```
//!
//! With deadlines, fields are ordered by them, those without one last; a field goes before others with the same deadline, and behind
//! all others without one. Readers end at the first damage.
use std::ops::Range;

use super::fields::{self, Fields, Shape};
use super::{Deadline, Encoding, Field, Limits, Value};
use crate::collection::Kind;

/// Flags of the tag.
const CALLED_HASHTABLE: u8 = 0x08;
const WITH_DEADLINES: u8 = 0x10;
const FLAGS: u8 = CALLED_HASHTABLE | WITH_DEADLINES;

const START: usize = 3;

/// Flat bytes to be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flat<'a>(&'a [u8]);

impl<'a> Flat<'a> {
    #[inline]
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn bytes(self) -> &'a [u8] {
        self.0
    }

    #[inline]
    fn tag(self) -> u8 {
        self.0.first().copied().unwrap_or_default()
    }

    #[inline]
    fn has_deadlines(self) -> bool {
        self.tag() & WITH_DEADLINES != 0
    }

    #[inline]
    fn shape(self) -> Shape {
        if self.has_deadlines() {
            Shape::WithDeadlines
        } else {
            Shape::Plain
        }
    }

    pub(super) fn called(self) -> Encoding {
        match self.tag() & FLAGS {
            0 => Encoding::Listpack,
            WITH_DEADLINES => Encoding::ListpackEx,
            _ => Encoding::Hashtable,
        }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        match self.0 {
            [_, low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
            _ => 0,
        }
    }

    /// All fields in order.
    #[inline]
    pub(super) fn iter(self) -> Fields<'a> {
        self.iter_from(START)
    }

    /// The fields from the one at this place on.
    #[inline]
    pub(super) fn iter_from(self, place: usize) -> Fields<'a> {
        Fields::new(self.0, place.max(START), self.shape())
    }

    /// Where the field of this name begins.
    #[inline]
    fn find(self, name: &[u8]) -> Option<usize> {
        fields::find(self.0, START, self.shape(), name)
    }

    #[inline]
    pub(super) fn get(self, name: &[u8]) -> Option<Field<'a>> {
        self.iter_from(self.find(name)?).next()
    }

    /// The first deadline.
    #[inline]
    pub(super) fn due(self) -> Option<u64> {
        if self.has_deadlines() {
            self.iter().next()?.deadline
        } else {
            None
        }
    }
}

/// Makes of no bytes a hash without fields.
#[inline]
pub(super) fn begin(bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        bytes.extend_from_slice(&[Kind::Hash.tag(), 0, 0]);
    }
}

/// Calls it so, unless it is called more than that.
pub(super) fn call_at_least(bytes: &mut Vec<u8>, called: Encoding) {
    match called {
        Encoding::Listpack => {}
        Encoding::ListpackEx => {
            if Flat::new(bytes).called() == Encoding::Listpack {
                add_deadlines(bytes);
            }
        }
        Encoding::Hashtable => bytes[0] |= CALLED_HASHTABLE,
    }
}

/// Gives all fields a place for a deadline.
fn add_deadlines(bytes: &mut Vec<u8>) {
    let flat = Flat::new(bytes);
    // One byte each, and the deadline that is about to be set.
    let mut with = Vec::with_capacity(bytes.len() + flat.len() + 8);
    with.extend_from_slice(&bytes[..START]);
    with[0] |= WITH_DEADLINES;
    let mut start = START;
    let mut fields = flat.iter();
    while fields.next().is_some() {
        let end = fields.place();
        with.extend_from_slice(&bytes[start..end]);
        fields::push_deadline(&mut with, None);
        start = end;
    }
    // The buffer is used again and again: it stays.
    bytes.clear();
    bytes.extend_from_slice(&with);
}

fn change_len(bytes: &mut [u8], by: isize) {
    let len = Flat::new(bytes).len().saturating_add_signed(by) as u16;
    bytes[1..START].copy_from_slice(&len.to_le_bytes());
}

/// Sets a field and says whether it is new.
pub(super) fn set(
    bytes: &mut Vec<u8>,
    name: &[u8],
    value: &[u8],
    deadline: Deadline,
    limits: &Limits,
) -> bool {
    if name.len() > limits.value || value.len() > limits.value {
        call_at_least(bytes, Encoding::Hashtable);
    }
    if matches!(deadline, Deadline::At(_)) && !Flat::new(bytes).has_deadlines() {
        add_deadlines(bytes);
    }
    let flat = Flat::new(bytes);
    let Some(offset) = flat.find(name) else {
        insert(bytes, name, value, deadline.applied_to(None));
        change_len(bytes, 1);
        if Flat::new(bytes).len() > limits.entries {
            call_at_least(bytes, Encoding::Hashtable);
        }
        return true;
    };
    let old = flat
        .iter_from(offset)
        .next()
        .and_then(|field| field.deadline);
    let stays = match deadline {
        Deadline::Keep => true,
        Deadline::Clear => old.is_none(),
        Deadline::At(_) => false,
    };
    if !stays {
        let range = range_of(flat, offset);
        bytes.drain(range);
        insert(bytes, name, value, deadline.applied_to(old));
    } else if !fields::overwrite(bytes, offset, value) {
        let range = range_of(Flat::new(bytes), offset);
        bytes.drain(range);
        insert_at(bytes, offset, name, value, old);
    }
    false
}

/// Gives a field a deadline, or takes it; says whether there is such a field.
pub(super) fn set_deadline(bytes: &mut Vec<u8>, name: &[u8], deadline: Option<u64>) -> bool {
    let Some(mut offset) = Flat::new(bytes).find(name) else {
        return false;
    };
    if !Flat::new(bytes).has_deadlines() {
        if deadline.is_none() {
            return true;
        }
        add_deadlines(bytes);
        match Flat::new(bytes).find(name) {
            Some(moved) => offset = moved,
            None => return false,
        }
    }
    let flat = Flat::new(bytes);
    let range = range_of(flat, offset);
    let Some(field) = flat.iter_from(offset).next() else {
        return false;
    };
    if field.deadline.is_none() && deadline.is_none() {
        return true;
    }
    if let Value::Bytes(value) = field.value {
        let value = value.to_vec();
        bytes.drain(range);
        insert(bytes, name, &value, deadline);
    }
    true
}

/// Removes a field and says whether it was there.
pub(super) fn remove(bytes: &mut Vec<u8>, name: &[u8]) -> bool {
    let flat = Flat::new(bytes);
    let Some(offset) = flat.find(name) else {
        return false;
    };
    let range = range_of(flat, offset);
    bytes.drain(range);
    change_len(bytes, -1);
    true
}

/// Removes up to `most` fields whose time has come; they are the first ones.
pub(super) fn expire_due(
    bytes: &mut Vec<u8>,
    now_ms: u64,
    most: usize,
    each: &mut dyn FnMut(&[u8]),
) -> usize {
    let (mut end, mut count) = (START, 0);
    let mut fields = Flat::new(bytes).iter();
    while count < most
        && let Some(field) = fields.next()
        && !field.is_live(now_ms)
    {
        each(field.name);
        end = fields.place();
        count += 1;
    }
    if count > 0 {
        bytes.drain(START..end);
        change_len(bytes, -(count as isize));
    }
    count
}

/// The bytes of the field at this offset.
fn range_of(flat: Flat<'_>, offset: usize) -> Range<usize> {
    let mut fields = flat.iter_from(offset);
    fields.next();
    offset..fields.place()
}

/// Puts a field where its deadline belongs.
fn insert(bytes: &mut Vec<u8>, name: &[u8], value: &[u8], deadline: Option<u64>) {
    let mut place = bytes.len();
    if let Some(ms) = deadline {
        let mut fields = Flat::new(bytes).iter();
        loop {
            let here = fields.place();
            match fields.next() {
                Some(field) if field.deadline.is_some_and(|other| other < ms) => {}
                _ => {
                    place = here.min(bytes.len());
                    break;
                }
            }
        }
    }
    insert_at(bytes, place, name, value, deadline);
}

/// Puts a field at this place, where one begins or the last one ends.
fn insert_at(bytes: &mut Vec<u8>, place: usize, name: &[u8], value: &[u8], deadline: Option<u64>) {
    let end = bytes.len();
    let shape = Flat::new(bytes).shape();
    fields::push(bytes, shape, name, value, deadline);
    let size = bytes.len() - end;
    bytes[place..].rotate_right(size);
}

/// Whether bytes are a hash, exactly as written here.
pub(super) fn is_valid(bytes: &[u8]) -> bool {
    let Some(&tag) = bytes.first() else {
        return false;
    };
    let flat = Flat::new(bytes);
    let mut fields = flat.iter();
    let count = fields.by_ref().count();
    let is_whole = Kind::of_tag(tag) == Some(Kind::Hash)
        && tag & !(FLAGS | Kind::Hash.tag()) == 0
        && flat.len() > 0
        && count == flat.len()
        && fields.place() == bytes.len();
    let is_ordered = || {
        flat.iter()
            .map(|field| field.deadline.unwrap_or(u64::MAX))
            .is_sorted()
    };
    let are_different = || {
        let mut names: Vec<&[u8]> = flat.iter().map(|field| field.name).collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1])
    };
    is_whole && is_ordered() && are_different()
}
