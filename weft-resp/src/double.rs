//! Doubles as Redis prints them on the wire.
//!
//! Owns the choice between plain and exponent notation, which is Redis's own: found by asking Redis 8.2. Integers of
//! up to 2^62 are printed in full. Otherwise the digits times 10^K are plain with K zeroes appended when K is 0 to 7,
//! plain with a decimal point when K is -6 to -1 or the magnitude lies between 1e-3 and 1e4, and else have an exponent,
//! which always carries a sign.

use crate::grisu;

/// Room for any text: sign, 17 digits, a point, zeroes or an exponent.
const TEXT_MAX: usize = 32;

/// Doubles of at most this magnitude that are integers are printed as integers.
const INTEGER_MAX: f64 = 4_611_686_018_427_387_904.0;

/// A double's text; see [`double_text`].
#[derive(Clone, Copy)]
pub struct DoubleText {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl DoubleText {
    /// The text as ASCII; at most 25 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn zeroes(&mut self, count: usize) {
        (0..count).for_each(|_| self.push(b'0'));
    }
}

/// The text of `value` as Redis prints it: `inf`, `-inf`, `nan`, or digits that read back as the same double, for
/// example `0.1`, `3`, `1e+100`.
pub fn double_text(value: f64) -> DoubleText {
    let mut text = DoubleText {
        bytes: [0; TEXT_MAX],
        len: 0,
    };
    if value.is_nan() {
        text.extend(b"nan");
    } else if value.is_infinite() {
        text.extend(if value > 0.0 { b"inf" } else { b"-inf" });
    } else if value == 0.0 {
        text.extend(if value.is_sign_negative() {
            b"-0"
        } else {
            b"0"
        });
    } else if value.abs() <= INTEGER_MAX && value.trunc() == value {
        text.extend(itoa::Buffer::new().format(value as i64).as_bytes());
    } else {
        fraction(value, &mut text);
    }
    text
}

/// Prints a finite `value` that is not zero.
fn fraction(value: f64, text: &mut DoubleText) {
    if value < 0.0 {
        text.push(b'-');
    }
    let found = grisu::digits(value.abs());
    let (digits, exponent) = (found.as_bytes(), found.exponent);
    let count = digits.len();
    // The power of ten of the first digit.
    let power = exponent + count as i32 - 1;
    if exponent >= 0 && power < count as i32 + 7 {
        text.extend(digits);
        text.zeroes(exponent as usize);
    } else if exponent < 0 && (exponent > -7 || power.abs() < 4) {
        if power < 0 {
            text.extend(b"0.");
            text.zeroes((-power - 1) as usize);
            text.extend(digits);
        } else {
            let (whole, part) = digits.split_at(power as usize + 1);
            text.extend(whole);
            text.push(b'.');
            text.extend(part);
        }
    } else {
        text.push(digits[0]);
        if count > 1 {
            text.push(b'.');
            text.extend(&digits[1..]);
        }
        text.push(b'e');
        text.push(if power < 0 { b'-' } else { b'+' });
        text.extend(itoa::Buffer::new().format(power.unsigned_abs()).as_bytes());
    }
}
