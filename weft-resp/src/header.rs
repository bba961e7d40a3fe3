//! Lines of the multibulk format: `*3\r\n`, `$16\r\n`.
//!
//! Owns where such a line ends and how its number reads. Does not know what the number counts. As in Redis, the byte
//! after the carriage return is not looked at, and a NUL hides everything behind it, so that a line with a NUL before
//! its end stays unfinished until it is too long.

use memchr::memchr2;

/// A line must end within this many bytes.
pub(crate) const LINE_MAX: usize = 64 * 1024;

/// Where a line ends.
pub(crate) enum LineEnd {
    /// The carriage return is at this index, and one more byte follows it.
    At(usize),
    /// More bytes are needed.
    Incomplete,
    /// There is no end within [`LINE_MAX`].
    TooBig,
}

/// Finds the end of the line at the start of `rest`.
pub(crate) fn line_end(rest: &[u8]) -> LineEnd {
    let window = &rest[..rest.len().min(LINE_MAX + 1)];
    match memchr2(b'\r', 0, window) {
        Some(index) if window[index] == b'\r' => {
            if rest.len() > index + 1 {
                LineEnd::At(index)
            } else {
                LineEnd::Incomplete
            }
        }
        _ if rest.len() > LINE_MAX => LineEnd::TooBig,
        _ => LineEnd::Incomplete,
    }
}

/// Reads `rest` as one type byte, one to three digits, a carriage return and any byte: the number and how many bytes
/// that took. `None` when it is anything else, also when it is valid but longer.
#[inline(always)]
pub(crate) fn short(rest: &[u8]) -> Option<(usize, usize)> {
    let &[_, first, second, third, fourth, ..] = rest else {
        return None;
    };
    let first = first.wrapping_sub(b'0');
    if second == b'\r' && first <= 9 {
        return Some((usize::from(first), 4));
    }
    let digit = second.wrapping_sub(b'0');
    let two = usize::from(first) * 10 + usize::from(digit);
    let leading = first.wrapping_sub(1) < 9 && digit <= 9;
    if third == b'\r' && leading {
        return Some((two, 5));
    }
    let digit = third.wrapping_sub(b'0');
    if fourth == b'\r' && leading && digit <= 9 && rest.len() > 5 {
        return Some((two * 10 + usize::from(digit), 6));
    }
    None
}

/// `digits` as an integer in Redis's strict syntax: no plus sign, no leading zero, no space, no `-0`.
pub(crate) fn integer(digits: &[u8]) -> Option<i64> {
    let (negative, magnitude) = match digits {
        [b'0'] => return Some(0),
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    if !matches!(magnitude.first(), Some(b'1'..=b'9')) {
        return None;
    }
    let mut value: u64 = 0;
    for byte in magnitude {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    if negative {
        0i64.checked_sub_unsigned(value)
    } else {
        i64::try_from(value).ok()
    }
}
