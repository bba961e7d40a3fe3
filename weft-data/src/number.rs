//! Integers as text, and integers and doubles read from it by Redis's strict syntaxes.
//!
//! Parsers take the whole text or nothing, never allocate, and are linear in its length. Formatters fill a
//! small buffer on the stack. Which error a refused text earns is the caller's business. Extended values are in
//! `long_double`; how doubles are printed is part of the protocol.
use crate::rounding::{parse_hexadecimal, round_half_even};

/// The text of a number, on the stack. Dereferences to its bytes, which are ASCII.
#[derive(Clone, Copy)]
pub struct NumberText {
    bytes: [u8; NumberText::CAPACITY],
    start: u8,
}

impl NumberText {
    /// Integers need 20 bytes.
    const CAPACITY: usize = 20;

    /// The text's bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }

    /// Fills the buffer from its end, two digits at a time: no second copy, and no length to know first.
    #[inline]
    fn integer(negative: bool, mut magnitude: u64) -> Self {
        let mut bytes = [0; Self::CAPACITY];
        let mut start = Self::CAPACITY;
        while magnitude >= 10 {
            let pair = (magnitude % 100) as usize;
            bytes[start - 2..start].copy_from_slice(&DIGIT_PAIRS[pair]);
            start -= 2;
            magnitude /= 100;
        }
        if magnitude != 0 || start == Self::CAPACITY {
            start -= 1;
            bytes[start] = b'0' + magnitude as u8;
        }
        if negative {
            start -= 1;
            bytes[start] = b'-';
        }
        Self {
            bytes,
            start: start as u8,
        }
    }
}

/// `00` to `99`.
const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
};

impl std::ops::Deref for NumberText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl std::fmt::Debug for NumberText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self))
    }
}

/// The longest text of an i64: `-9223372036854775808`.
pub const INTEGER_TEXT_MAX: usize = 20;

/// Parses a signed integer in its one canonical form: no `+`, spaces, leading zeros or `-0`.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => {
            let magnitude = parse_digits(digits)?;
            if magnitude == 0 || magnitude > i64::MIN.unsigned_abs() {
                return None;
            }
            Some((magnitude as i64).wrapping_neg())
        }
        _ => i64::try_from(parse_digits(text)?).ok(),
    }
}

/// Parses an unsigned integer in its one canonical form: no sign, spaces or leading zeros.
#[inline]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    parse_digits(text)
}

/// Parses an unsigned integer as leniently as SCAN cursors and stream ids are.
///
/// Besides the canonical form: leading whitespace, `+`, leading zeros, anything after a NUL, and negative numbers
/// modulo 2^64 unless they are a canonical i64 (`-1` is refused, `-01` is 18446744073709551615).
pub fn parse_u64_lenient(text: &[u8]) -> Option<u64> {
    let text = until_nul(text);
    if let Some(value) = parse_i64(text) {
        return u64::try_from(value).ok();
    }
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r');
    let start = text.iter().position(|byte| !blank(byte))?;
    let (negative, digits) = match text.get(start..)? {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// `0`, or digits that do not start with 0 and fit a u64.
#[inline]
fn parse_digits(digits: &[u8]) -> Option<u64> {
    let (&first, rest) = digits.split_first()?;
    let first = first.wrapping_sub(b'0');
    if first > 9 || (first == 0 && !rest.is_empty()) {
        return None;
    }
    let mut value = u64::from(first);
    // 19 digits cannot overflow a u64; only the twentieth needs checks.
    let (unchecked, last) = if rest.len() < 19 {
        (rest, None)
    } else if rest.len() == 19 {
        let (&last, unchecked) = rest.split_last()?;
        (unchecked, Some(last))
    } else {
        return None;
    };
    let mut unchecked = unchecked;
    while let Some((&eight, after)) = unchecked.split_first_chunk::<8>() {
        value = value * 100_000_000 + parse_eight_digits(eight)?;
        unchecked = after;
    }
    for byte in unchecked {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    if let Some(byte) = last {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Eight ASCII digits at once: neighbours are added in pairs, in fours, and all together.
#[inline]
fn parse_eight_digits(digits: [u8; 8]) -> Option<u64> {
    const HIGH_HALVES: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    // '0' to '9' are 0x30 to 0x39: the high half is 3, and stays 3 when 6 is added. Bytes of 0xfa and more carry into
    // their neighbour there, but have failed the first test already.
    let text = u64::from_le_bytes(digits);
    let beyond = text.wrapping_add(0x0606_0606_0606_0606);
    if text & HIGH_HALVES != ZEROS || beyond & HIGH_HALVES != ZEROS {
        return None;
    }
    let ones = text - ZEROS;
    let pairs = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// The canonical text of a signed integer.
#[inline]
pub fn format_i64(value: i64) -> NumberText {
    NumberText::integer(value < 0, value.unsigned_abs())
}

/// The canonical text of an unsigned integer.
#[inline]
pub fn format_u64(value: u64) -> NumberText {
    NumberText::integer(false, value)
}

/// How many bytes the canonical text of `value` has: the STRLEN of an integer-encoded string.
#[inline]
pub fn i64_text_len(value: i64) -> usize {
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(value < 0)
}

/// Parses a double as arguments such as ZADD's scores are: C's syntax, all of the text, decimal or hexadecimal.
///
/// Infinities by name are values. `None` for NaN, for finite text too large for a double, and for non-zero text
/// so small that it would become zero; denormal results are fine.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let (negative, magnitude) = split_sign(text);
    if let [b'0', b'x' | b'X', ..] = magnitude {
        let hexadecimal = parse_hexadecimal(magnitude)?;
        let value = f64_of_parts(
            hexadecimal.significand,
            hexadecimal.exponent,
            hexadecimal.sticky,
        );
        if value.is_infinite() || (value == 0.0 && hexadecimal.significand != 0) {
            return None;
        }
        return Some(if negative { -value } else { value });
    }
    let value = parse_decimal_f64(text)?;
    if value.is_infinite() && !matches!(magnitude, [.., b'f' | b'F' | b'y' | b'Y']) {
        return None;
    }
    if value == 0.0 {
        let mantissa = magnitude
            .iter()
            .take_while(|byte| !matches!(byte, b'e' | b'E'));
        if mantissa.into_iter().any(|byte| matches!(byte, b'1'..=b'9')) {
            return None;
        }
    }
    Some(value)
}

/// Parses the bound of a score range (ZCOUNT, ZRANGEBYSCORE ..., without its `(`): looser than [`parse_f64`].
///
/// The text ends at its first NUL, an empty one is 0, decimal only, overflow is an infinity and underflow is 0.
/// `None` for NaN and everything else.
pub fn parse_score_bound(text: &[u8]) -> Option<f64> {
    match until_nul(text) {
        [] => Some(0.0),
        text => parse_decimal_f64(text),
    }
}

/// C's decimal float syntax, which is also the standard library's, NaN apart. Redis 8.2 reads `-+inf` too.
fn parse_decimal_f64(text: &[u8]) -> Option<f64> {
    if let [b'-', b'+', name @ ..] = text {
        let infinite = name.eq_ignore_ascii_case(b"inf") || name.eq_ignore_ascii_case(b"infinity");
        return infinite.then_some(f64::NEG_INFINITY);
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

/// Rounds `significand * 2^exponent` (and a little more, if `sticky`) to a double.
fn f64_of_parts(significand: u128, exponent: i32, sticky: bool) -> f64 {
    let (significand, exponent) = round_half_even(significand, exponent, sticky, 53, -1074);
    if exponent > 971 {
        return f64::INFINITY;
    }
    if significand >> 52 == 0 {
        return f64::from_bits(significand);
    }
    let biased = (exponent + 1075) as u64;
    f64::from_bits(biased << 52 | (significand & ((1 << 52) - 1)))
}

pub(crate) fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests;
