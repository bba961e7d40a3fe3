//! Doubles as Redis prints them on the wire.
//!
//! Owns the choice between plain and exponent notation, which is Redis's own: found by asking Redis 8.2. Integers of
//! up to 2^62 are printed in full. Otherwise, with D shortest digits times 10^K: plain with zeroes appended when K is
//! not negative and fewer than seven zeroes would follow the first D digits, plain with a decimal point when K is above
//! -7 or the magnitude lies between 1e-3 and 1e4, otherwise with an exponent that carries its sign.

/// Room for any text: sign, 17 digits, a point, zeroes or an exponent.
pub(crate) const TEXT_MAX: usize = 32;

/// Doubles of at most this magnitude that are integers are printed as integers.
const INTEGER_MAX: f64 = 4_611_686_018_427_387_904.0;

/// A double's text.
pub(crate) struct Text {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl Text {
    pub(crate) fn as_bytes(&self) -> &[u8] {
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

/// The text of `value`: `inf`, `-inf`, `nan`, or its shortest digits that read back as the same double.
pub(crate) fn text(value: f64) -> Text {
    let mut text = Text {
        bytes: [0; TEXT_MAX],
        len: 0,
    };
    if value.is_nan() {
        text.extend(b"nan");
    } else if value.is_infinite() {
        text.extend(if value > 0.0 { b"inf" } else { b"-inf" });
    } else if value.abs() <= INTEGER_MAX && value.trunc() == value {
        text.extend(itoa::Buffer::new().format(value as i64).as_bytes());
    } else {
        fraction(value, &mut text);
    }
    text
}

/// Prints a finite `value` that is not zero.
fn fraction(value: f64, text: &mut Text) {
    if value < 0.0 {
        text.push(b'-');
    }
    let Digits {
        digits,
        count,
        exponent,
    } = shortest(value.abs());
    let digits = &digits[..count];
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

/// `digits[..count]` times 10 to the power of `exponent`; the first and the last digit are not zero.
struct Digits {
    digits: [u8; 17],
    count: usize,
    exponent: i32,
}

/// The shortest digits of a positive finite `value`.
fn shortest(value: f64) -> Digits {
    let mut buffer = zmij::Buffer::new();
    let printed = buffer.format_finite(value);
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((printed, "0"));
    let mut exponent: i32 = exponent.parse().expect("an exponent that was just printed");
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent -= part.len() as i32;
    // The mantissa may carry zeroes at either end: `0.001`, `1.0`, `120.0`.
    let all = whole.bytes().chain(part.bytes());
    let mut out = Digits {
        digits: [0; 17],
        count: 0,
        exponent,
    };
    let mut zeroes = 0;
    for digit in all.skip_while(|digit| *digit == b'0') {
        if digit == b'0' {
            zeroes += 1;
            continue;
        }
        while zeroes > 0 {
            out.digits[out.count] = b'0';
            out.count += 1;
            zeroes -= 1;
        }
        out.digits[out.count] = digit;
        out.count += 1;
    }
    out.exponent += zeroes;
    out
}
