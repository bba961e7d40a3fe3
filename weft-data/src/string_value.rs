//! How a string value is to be stored and what its encoding is called.
//!
//! Knows neither entries nor keys; the lengths that decide a name come as arguments. Strings written in place (APPEND to an
//! existing key, SETRANGE, SETBIT) are `raw` in Redis whatever they hold; whoever stores them keeps that fact.

use crate::number::parse_i64;

/// What to store for the bytes of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classified {
    /// The bytes are exactly the text of this integer; store the integer.
    Int(i64),
    /// Store the bytes.
    Bytes,
}

/// Finds whether `bytes` are to be stored as an integer: when they are the canonical text of an i64.
#[inline]
pub fn classify(bytes: &[u8]) -> Classified {
    // Most strings are not integers, and their first byte already says so.
    match bytes.first() {
        Some(b'0'..=b'9' | b'-') => parse_i64(bytes).map_or(Classified::Bytes, Classified::Int),
        _ => Classified::Bytes,
    }
}

/// OBJECT ENCODING's answers for strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringEncoding {
    /// Stored as an integer.
    Int,
    /// Stored with its key in one small allocation, never written in place.
    Embstr,
    /// Stored apart.
    Raw,
}

/// Bytes of key and value together up to which Redis 8.2 embeds the value (found by asking: 64 less its headers).
pub const EMBEDDED_MAX: usize = 41;

/// What a deadline takes of [`EMBEDDED_MAX`].
pub const DEADLINE_BYTES: usize = 8;

impl StringEncoding {
    /// What a value of `value_len` bytes that is no integer and was stored whole is called, next to a key of `key_len` bytes.
    pub fn of_bytes(key_len: usize, value_len: usize, has_deadline: bool) -> Self {
        let deadline = if has_deadline { DEADLINE_BYTES } else { 0 };
        if key_len.saturating_add(value_len).saturating_add(deadline) <= EMBEDDED_MAX {
            Self::Embstr
        } else {
            Self::Raw
        }
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Embstr => "embstr",
            Self::Raw => "raw",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_integers_are_integers() {
        for (text, expected) in [
            ("0", Classified::Int(0)),
            ("-1", Classified::Int(-1)),
            ("9223372036854775807", Classified::Int(i64::MAX)),
            ("-9223372036854775808", Classified::Int(i64::MIN)),
            ("9223372036854775808", Classified::Bytes),
            ("-9223372036854775809", Classified::Bytes),
            ("", Classified::Bytes),
            ("-", Classified::Bytes),
            ("-0", Classified::Bytes),
            ("00", Classified::Bytes),
            ("+5", Classified::Bytes),
            (" 5", Classified::Bytes),
            ("5 ", Classified::Bytes),
            ("5\0", Classified::Bytes),
            ("1.0", Classified::Bytes),
            ("10000000000000000000000", Classified::Bytes),
        ] {
            assert_eq!(classify(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn encodings_are_those_of_redis_8_2() {
        for (key_len, value_len, has_deadline, expected) in [
            (1, 40, false, "embstr"),
            (1, 41, false, "raw"),
            (1, 32, true, "embstr"),
            (1, 33, true, "raw"),
            (10, 31, false, "embstr"),
            (10, 32, false, "raw"),
            (31, 10, false, "embstr"),
            (31, 11, false, "raw"),
            (31, 2, true, "embstr"),
            (31, 3, true, "raw"),
            (41, 0, false, "embstr"),
            (42, 0, false, "raw"),
            (usize::MAX, 0, true, "raw"),
        ] {
            let encoding = StringEncoding::of_bytes(key_len, value_len, has_deadline);
            assert_eq!(
                encoding.name(),
                expected,
                "{key_len} {value_len} {has_deadline}"
            );
        }
        assert_eq!(StringEncoding::Int.name(), "int");
    }
}
