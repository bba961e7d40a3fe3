//! How the names and values of fields are written: numbers and strings in few bytes.
//!
//! ```text
//! number = 7 bits a byte, low bits first; the high bit says that more follow
//! text   = number of length * 2, bytes
//!        | number of width * 2 + 1, `width` bytes     an integer's, little endian, where that is shorter than its digits
//! ```
//!
//! Readers never panic, whatever the bytes are.

use std::hash::Hasher;

use crate::number::{format_i64, parse_i64};

/// A name or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// Any bytes.
    Bytes(&'a [u8]),
    /// The digits of an integer.
    Integer(i64),
}

impl Text<'_> {
    /// Calls `act` with its bytes.
    pub fn with<R>(self, act: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Text::Bytes(bytes) => act(bytes),
            Text::Integer(value) => act(format_i64(value).as_bytes()),
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        self.with(<[u8]>::to_vec)
    }

    /// About how many bytes there are: an integer counts as few.
    #[must_use]
    pub const fn weight(self) -> usize {
        match self {
            Text::Bytes(bytes) => bytes.len(),
            Text::Integer(_) => 8,
        }
    }

    pub(super) fn digest(self, hasher: &mut impl Hasher) {
        self.with(|bytes| {
            hasher.write_usize(bytes.len());
            hasher.write(bytes);
        });
    }
}

/// Appends a number.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a text.
pub(super) fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    if let Some(value) = parse_i64(text) {
        let width = (64 - (value ^ (value >> 63)).leading_zeros() as usize) / 8 + 1;
        if width < text.len() {
            push_number(out, width as u64 * 2 + 1);
            out.extend_from_slice(&value.to_le_bytes()[..width]);
            return;
        }
    }
    push_number(out, text.len() as u64 * 2);
    out.extend_from_slice(text);
}

/// Takes numbers and texts from the front of some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        if first < 0x80 {
            self.0 = rest;
            return Some(u64::from(first));
        }
        let mut number = 0_u64;
        for (at, byte) in self.0.iter().take(10).enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Some(number);
            }
        }
        None
    }

    #[inline]
    pub(super) fn bytes(&mut self, len: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    #[inline]
    pub(super) fn text(&mut self) -> Option<Text<'a>> {
        let head = self.number()?;
        if head & 1 == 0 {
            return Some(Text::Bytes(self.bytes(head >> 1)?));
        }
        let bytes = self.bytes(head >> 1)?;
        let negative = bytes.last()? & 0x80 != 0;
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Text::Integer(i64::from_le_bytes(wide)))
    }
}
