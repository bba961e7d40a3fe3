//! The 80-bit extended floating point value of x87, in software: what `INCRBYFLOAT` computes with.
//!
//! 64 bits of significand, exponents from 2^-16445 to 2^16383, every operation rounded half to even once. Text in
//! is C's `strtold` syntax, all of it; text out is the exact binary value rounded to 17 decimals, as C prints
//! `%.17Lf`, trailing zeros dropped, never an exponent. Everyday
//! values never allocate; the rest use big integers bounded by [`TEXT_LIMIT`].

use std::cmp::Ordering;

use num_bigint::BigUint;

use crate::number::{parse_i64, split_sign};
use crate::rounding::{parse_exponent, parse_hexadecimal, round_half_even};

/// Longer texts are refused (Redis's limit, found by asking), which also bounds what parsing costs.
pub const TEXT_LIMIT: usize = 5119;

/// The longest text produced: sign and 4933 digits; values that large have no fraction.
pub const TEXT_MAX: usize = 4934;

/// An x87 extended value. Zero has a sign, though no text shows it.
#[derive(Clone, Copy, Debug)]
pub struct LongDouble {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Magnitude {
    /// `significand * 2^exponent`: the top bit is set, or the exponent is [`EXPONENT_MIN`] (denormals and zero).
    Finite {
        significand: u64,
        exponent: i32,
    },
    Infinite,
    Nan,
}

/// The weight of the last bit of denormals and of the largest values.
const EXPONENT_MIN: i32 = -16445;
const EXPONENT_MAX: i32 = 16320;

/// Decimal exponents outside of these are infinite or zero whatever the (at most [`TEXT_LIMIT`]) digits are.
const DECIMAL_MAX: i64 = 4932;
const DECIMAL_MIN: i64 = -4952;

/// Decimals in the text, and what to scale by to have them before the point.
const DECIMALS: usize = 17;
const DECIMAL_SCALE: u128 = 10u128.pow(DECIMALS as u32);

impl LongDouble {
    /// Positive zero: what an absent key counts as.
    pub const ZERO: Self = Self {
        negative: false,
        magnitude: Magnitude::Finite {
            significand: 0,
            exponent: EXPONENT_MIN,
        },
    };

    /// Parses the whole text: decimal (`.5`, `5.`, `1e-7`), hexadecimal (`0x1.8p3`), `inf` or `infinity` in any case, each
    /// with an optional sign.
    ///
    /// `None` for anything else: empty, spaces, NUL, NaN, more than [`TEXT_LIMIT`] bytes, finite text too large for the
    /// format, and non-zero text so small that it would become zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if let Some(value) = parse_i64(text) {
            return Some(value.into());
        }
        if text.len() > TEXT_LIMIT {
            return None;
        }
        let (negative, text) = split_sign(text);
        let magnitude = match text {
            [b'0', b'x' | b'X', ..] => {
                let hexadecimal = parse_hexadecimal(text)?;
                let given = hexadecimal.significand;
                in_range(
                    given != 0,
                    round(given, hexadecimal.exponent, hexadecimal.sticky),
                )?
            }
            [b'i' | b'I', ..] => {
                if !text.eq_ignore_ascii_case(b"inf") && !text.eq_ignore_ascii_case(b"infinity") {
                    return None;
                }
                Magnitude::Infinite
            }
            _ => parse_decimal(text)?,
        };
        Some(Self {
            negative,
            magnitude,
        })
    }

    /// Whether this is not a number: infinities of both signs were added.
    pub fn is_nan(&self) -> bool {
        self.magnitude == Magnitude::Nan
    }

    /// Whether this is an infinity: given by name, or a sum too large.
    pub fn is_infinite(&self) -> bool {
        self.magnitude == Magnitude::Infinite
    }

    /// Neither NaN nor an infinity.
    pub fn is_finite(&self) -> bool {
        matches!(self.magnitude, Magnitude::Finite { .. })
    }

    /// Appends the text: at most [`TEXT_MAX`] bytes; `inf`, `-inf` and `nan` where there are no digits; never `-0`.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let (significand, exponent) = match self.magnitude {
            Magnitude::Nan => return out.extend_from_slice(b"nan"),
            Magnitude::Infinite => {
                return out.extend_from_slice(if self.negative { b"-inf" } else { b"inf" });
            }
            Magnitude::Finite {
                significand,
                exponent,
            } => (significand, exponent),
        };
        if exponent > 0 {
            if self.negative {
                out.push(b'-');
            }
            if exponent <= 64 {
                let whole = u128::from(significand) << exponent;
                out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
            } else {
                let whole = BigUint::from(significand) << exponent.unsigned_abs();
                out.extend_from_slice(whole.to_str_radix(10).as_bytes());
            }
            return;
        }
        let shift = exponent.unsigned_abs();
        let (mut whole, fraction) = match shift {
            0 => (significand, 0),
            1..64 => (significand >> shift, significand & ((1 << shift) - 1)),
            _ => (0, significand),
        };
        // 64 + 57 bits at most.
        let mut decimals = divide_by_power_of_two(u128::from(fraction) * DECIMAL_SCALE, shift);
        if decimals == DECIMAL_SCALE {
            decimals = 0;
            whole += 1;
        }
        if self.negative && (whole != 0 || decimals != 0) {
            out.push(b'-');
        }
        out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
        if decimals != 0 {
            let mut digits = [b'0'; DECIMALS + 1];
            digits[0] = b'.';
            let mut rest = decimals as u64;
            for digit in digits[1..].iter_mut().rev() {
                *digit += (rest % 10) as u8;
                rest /= 10;
            }
            let kept = digits
                .iter()
                .rposition(|&digit| digit != b'0')
                .map_or(0, |last| last + 1);
            out.extend_from_slice(&digits[..kept]);
        }
    }

    /// The text in a vector of its own; see [`LongDouble::write_text`].
    pub fn to_text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(40);
        self.write_text(&mut text);
        text
    }
}

impl From<i64> for LongDouble {
    fn from(value: i64) -> Self {
        Self {
            negative: value < 0,
            magnitude: round(u128::from(value.unsigned_abs()), 0, false),
        }
    }
}

impl std::ops::Add for LongDouble {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        use Magnitude::{Finite, Infinite, Nan};
        let (left, right) = match (self.magnitude, other.magnitude) {
            (
                Finite {
                    significand,
                    exponent,
                },
                Finite {
                    significand: s,
                    exponent: e,
                },
            ) => ((significand, exponent), (s, e)),
            (Nan, _) | (_, Nan) => {
                return Self {
                    negative: false,
                    magnitude: Nan,
                };
            }
            (Infinite, Infinite) if self.negative != other.negative => {
                return Self {
                    negative: false,
                    magnitude: Nan,
                };
            }
            (Infinite, _) => return self,
            (_, Infinite) => return other,
        };
        // Values with a larger exponent are larger, denormals included.
        let ordering = (left.1, left.0).cmp(&(right.1, right.0));
        let (larger, smaller, negative) = match ordering {
            Ordering::Less => (right, left, other.negative),
            _ => (left, right, self.negative),
        };
        // Two bits above for the carry, 62 below for what the smaller one loses.
        let exponent = larger.1 - 62;
        let high = u128::from(larger.0) << 62;
        let low = u128::from(smaller.0) << 62;
        let distance = (larger.1 - smaller.1) as u32;
        let aligned = low.checked_shr(distance).unwrap_or(0);
        let sticky = aligned.checked_shl(distance).unwrap_or(0) != low;
        if self.negative == other.negative {
            return Self {
                negative,
                magnitude: round(high + aligned, exponent, sticky),
            };
        }
        // What was lost counts against the difference: one unit less, and a little more.
        let difference = high - aligned - u128::from(sticky);
        Self {
            negative: negative && (difference != 0 || sticky),
            magnitude: round(difference, exponent, sticky),
        }
    }
}

fn round(significand: u128, exponent: i32, sticky: bool) -> Magnitude {
    let (significand, exponent) = round_half_even(significand, exponent, sticky, 64, EXPONENT_MIN);
    if exponent > EXPONENT_MAX {
        Magnitude::Infinite
    } else {
        Magnitude::Finite {
            significand,
            exponent,
        }
    }
}

/// Refuses what overflowed, and what became zero although the text was `nonzero`.
fn in_range(nonzero: bool, magnitude: Magnitude) -> Option<Magnitude> {
    match magnitude {
        Magnitude::Finite { significand, .. } if significand != 0 || !nonzero => Some(magnitude),
        _ => None,
    }
}

/// `value / 2^shift`, rounded half to even; `value` has at most 121 bits.
fn divide_by_power_of_two(value: u128, shift: u32) -> u128 {
    if shift == 0 {
        return value;
    }
    if shift >= 128 {
        return 0;
    }
    let quotient = value >> shift;
    let rest = value & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    quotient + u128::from(rest > half || (rest == half && quotient & 1 == 1))
}

/// Parses an unsigned decimal of at most [`TEXT_LIMIT`] bytes, all of it, in range.
fn parse_decimal(text: &[u8]) -> Option<Magnitude> {
    let end = text
        .iter()
        .position(|byte| matches!(byte, b'e' | b'E'))
        .unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(end);
    let mut exponent = match exponent {
        [] => 0,
        [_, exponent @ ..] => parse_exponent(exponent)?,
    };
    let mut seen_digit = false;
    let mut seen_point = false;
    // The value is digits * 10^exponent; the small form is exact up to `SMALL_DIGITS`.
    let mut small: u128 = 0;
    let mut count = 0usize;
    for &byte in mantissa {
        match byte {
            b'0'..=b'9' => {
                seen_digit = true;
                count += usize::from(byte != b'0' || count != 0);
                small = small.wrapping_mul(10).wrapping_add(u128::from(byte - b'0'));
                exponent -= i64::from(seen_point);
            }
            b'.' if !seen_point => seen_point = true,
            _ => return None,
        }
    }
    if !seen_digit {
        return None;
    }
    if count == 0 {
        return Some(LongDouble::ZERO.magnitude);
    }
    if count <= SMALL_DIGITS
        && let -19..=0 = exponent
    {
        return Some(divide_small(small, exponent.unsigned_abs() as u32));
    }
    let leading = exponent + count as i64 - 1;
    if !(DECIMAL_MIN..=DECIMAL_MAX).contains(&leading) {
        return None;
    }
    let digits: Vec<u8> = mantissa
        .iter()
        .copied()
        .filter(|&byte| byte != b'.')
        .collect();
    let digits = BigUint::parse_bytes(&digits, 10)?;
    in_range(true, scale_big(digits, exponent as i32))
}

/// Every number of so many digits fits a u128: what 17 decimals and up to 21 digits before them need.
const SMALL_DIGITS: usize = 38;

/// `value / 10^places`, for a non-zero value and at most 19 places: far from both ends of the format.
fn divide_small(value: u128, places: u32) -> Magnitude {
    if places == 0 {
        return round(value, 0, false);
    }
    // Long division of value * 2^128 in digits of 64 bits; the divisor is one digit.
    let divisor = u128::from(10u64.pow(places));
    let mut rest = 0;
    let quotient = [(value >> 64) as u64, value as u64, 0, 0].map(|digit| {
        let dividend = rest << 64 | u128::from(digit);
        rest = dividend % divisor;
        (dividend / divisor) as u64
    });
    // A value of at least 1 leaves at least 2^64 here, so two digits from the first non-zero one on have over 64 bits.
    let (kept, lost, exponent) = match quotient {
        [0, 0, high, low] => ([high, low], 0, -128),
        [0, high, low, last] => ([high, low], last, -64),
        [high, low, next, last] => ([high, low], next | last, 0),
    };
    let significand = u128::from(kept[0]) << 64 | u128::from(kept[1]);
    round(significand, exponent, lost != 0 || rest != 0)
}

/// `value * 10^exponent`, with a leading digit between [`DECIMAL_MIN`] and [`DECIMAL_MAX`].
fn scale_big(value: BigUint, exponent: i32) -> Magnitude {
    let power = BigUint::from(10u8).pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return leading_bits(value * power, 0, false);
    }
    // Enough bits for the quotient to have more than 64.
    let shift = (power.bits() + 66).saturating_sub(value.bits());
    let dividend = value << shift;
    let quotient = &dividend / &power;
    let exact = &quotient * &power == dividend;
    leading_bits(quotient, -(shift as i32), !exact)
}

/// Rounds `value * 2^exponent`.
fn leading_bits(value: BigUint, exponent: i32, sticky: bool) -> Magnitude {
    let surplus = value.bits().saturating_sub(128);
    let kept = &value >> surplus;
    let lost = value.trailing_zeros().is_some_and(|zeros| zeros < surplus);
    let significand = kept
        .iter_u64_digits()
        .rev()
        .fold(0u128, |sum, digit| sum << 64 | u128::from(digit));
    round(significand, exponent + surplus as i32, sticky || lost)
}

#[cfg(test)]
mod tests;
