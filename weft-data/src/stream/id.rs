//! The ids of entries: a time in milliseconds, and a number that tells apart what was added in the same one.

use std::fmt;
use std::hash::Hasher;

use crate::number::{format_u64, parse_u64_lenient};

/// An entry's id. Entries are in the order of their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Milliseconds since 1970, if a server made it.
    pub ms: u64,
    /// Which one of that millisecond.
    pub seq: u64,
}

/// The longest text that is read as an id.
const TEXT_MAX: usize = 127;

impl Id {
    /// The first one, which no entry has.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The last one.
    pub const MAX: Self = Self {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// The one after it, if it is not the last.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match (self.ms, self.seq) {
            (u64::MAX, u64::MAX) => None,
            (ms, u64::MAX) => Some(Self { ms: ms + 1, seq: 0 }),
            (ms, seq) => Some(Self { ms, seq: seq + 1 }),
        }
    }

    /// The one before it, if it is not the first.
    #[must_use]
    pub const fn previous(self) -> Option<Self> {
        match (self.ms, self.seq) {
            (0, 0) => None,
            (ms, 0) => Some(Self {
                ms: ms - 1,
                seq: u64::MAX,
            }),
            (ms, seq) => Some(Self { ms, seq: seq - 1 }),
        }
    }

    /// Reads `MS-SEQ`, or `MS` alone, which has the second number `missing_seq`. Numbers are read as leniently as Redis reads them.
    #[must_use]
    pub fn parse(text: &[u8], missing_seq: u64) -> Option<Self> {
        if text.len() > TEXT_MAX {
            return None;
        }
        // As in Redis, nothing behind a zero counts.
        let end = text.iter().position(|byte| *byte == 0);
        let text = &text[..end.unwrap_or(text.len())];
        let (ms, seq) = match text.iter().position(|byte| *byte == b'-') {
            Some(dash) => (&text[..dash], Some(&text[dash + 1..])),
            None => (text, None),
        };
        let ms = parse_u64_lenient(ms)?;
        let seq = match seq {
            Some(seq) => parse_u64_lenient(seq)?,
            None => missing_seq,
        };
        Some(Self { ms, seq })
    }

    pub(super) fn digest(self, hasher: &mut impl Hasher) {
        hasher.write_u64(self.ms);
        hasher.write_u64(self.seq);
    }

    /// Its text, `MS-SEQ`.
    #[must_use]
    pub fn text(self) -> IdText {
        let (ms, seq) = (format_u64(self.ms), format_u64(self.seq));
        let mut text = IdText {
            bytes: [0; ID_TEXT_MAX],
            len: 0,
        };
        for part in [ms.as_bytes(), b"-", seq.as_bytes()] {
            text.bytes[text.len..text.len + part.len()].copy_from_slice(part);
            text.len += part.len();
        }
        text
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// Two numbers of up to 20 digits, and the dash.
const ID_TEXT_MAX: usize = 41;

/// The text of an id.
#[derive(Clone, Copy, Debug)]
pub struct IdText {
    bytes: [u8; ID_TEXT_MAX],
    len: usize,
}

impl IdText {
    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
