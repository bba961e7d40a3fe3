//! Binary rounding and the hexadecimal float syntax of C, shared by doubles and extended values.
//!
//! A value here is `significand * 2^exponent`, plus less than one unit of the last bit when `sticky`
//! is set. Knows nothing of any particular format beyond its precision and its smallest exponent.

/// Rounds half to even to at most `precision` (<= 64) bits, none of them weighing less than `2^exponent_min`.
///
/// The result is normalised (its top bit is bit `precision - 1`) unless it is denormal or zero, which both
/// have the exponent `exponent_min`. With `sticky` the significand must have more than `precision` bits, or
/// bits below `exponent_min`: a lost part cannot be restored by widening.
pub(crate) fn round_half_even(
    significand: u128,
    exponent: i32,
    sticky: bool,
    precision: u32,
    exponent_min: i32,
) -> (u64, i32) {
    if significand == 0 {
        return (0, exponent_min);
    }
    let bits = 128 - significand.leading_zeros();
    let surplus = bits as i32 - precision as i32;
    let dropped = surplus.max(exponent_min.saturating_sub(exponent));
    if dropped <= 0 {
        // `dropped` is negative by what can be gained; both operands fit u64 after the shift.
        return ((significand << -dropped) as u64, exponent + dropped);
    }
    if dropped > 128 {
        return (0, exponent_min);
    }
    let (kept, rest) = if dropped == 128 {
        (0, significand)
    } else {
        (significand >> dropped, significand & ((1 << dropped) - 1))
    };
    let half = 1u128 << (dropped - 1);
    let up = rest > half || (rest == half && (sticky || kept & 1 == 1));
    let kept = kept + u128::from(up);
    let exponent = exponent + dropped;
    if kept >> precision != 0 {
        ((kept >> 1) as u64, exponent + 1)
    } else {
        (kept as u64, exponent)
    }
}

/// What a hexadecimal float says, before any rounding: 0 exactly when its digits are all zero.
pub(crate) struct Hexadecimal {
    pub(crate) significand: u128,
    pub(crate) exponent: i32,
    pub(crate) sticky: bool,
}

/// Far outside every supported format, and far from overflowing an i32 in later arithmetic.
const EXPONENT_LIMIT: i64 = 1 << 20;

/// Parses what follows the sign of a C hexadecimal float (`0x1.8p-3`; point and exponent optional), all of it.
///
/// `None` if it is not one. Linear in the text, without allocation; exponents saturate.
pub(crate) fn parse_hexadecimal(text: &[u8]) -> Option<Hexadecimal> {
    let [b'0', b'x' | b'X', digits @ ..] = text else {
        return None;
    };
    let mut significand: u128 = 0;
    let mut sticky = false;
    let mut scale: i64 = 0;
    let mut seen_digit = false;
    let mut seen_point = false;
    let mut position = 0;
    while let Some(&byte) = digits.get(position) {
        match (byte as char).to_digit(16) {
            Some(digit) => {
                seen_digit = true;
                if significand >> 120 == 0 {
                    significand = significand << 4 | u128::from(digit);
                    scale -= if seen_point { 4 } else { 0 };
                } else {
                    sticky |= digit != 0;
                    scale += if seen_point { 0 } else { 4 };
                }
            }
            None if byte == b'.' && !seen_point => seen_point = true,
            None => break,
        }
        position += 1;
    }
    if !seen_digit {
        return None;
    }
    match digits.get(position..)? {
        [] => {}
        [b'p' | b'P', exponent @ ..] => scale = scale.saturating_add(parse_exponent(exponent)?),
        _ => return None,
    }
    Some(Hexadecimal {
        significand,
        exponent: scale.clamp(-EXPONENT_LIMIT, EXPONENT_LIMIT) as i32,
        sticky,
    })
}

/// Parses an optionally signed decimal exponent, saturating at a magnitude that no text in memory can make up
/// for with digits. `None` unless the whole text is one.
pub(crate) fn parse_exponent(text: &[u8]) -> Option<i64> {
    const SATURATED: i64 = 1 << 50;
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value: i64 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = (value * 10 + i64::from(digit)).min(SATURATED);
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_to_the_even_neighbour() {
        let double = |significand, sticky| round_half_even(significand, 0, sticky, 53, -1074);
        assert_eq!(double(1, false), (1 << 52, -52));
        assert_eq!(double((1 << 53) + 1, false), (1 << 52, 1));
        assert_eq!(double((1 << 53) + 1, true), ((1 << 52) + 1, 1));
        assert_eq!(double((1 << 53) + 3, false), ((1 << 52) + 2, 1));
        assert_eq!(double((1 << 54) - 1, false), (1 << 52, 2));
        assert_eq!(double(u128::MAX, true), (1 << 52, 76));
    }

    #[test]
    fn tiny_values_become_denormal_or_zero() {
        assert_eq!(round_half_even(1, -1074, false, 53, -1074), (1, -1074));
        assert_eq!(round_half_even(1, -1075, false, 53, -1074), (0, -1074));
        assert_eq!(round_half_even(1, -1075, true, 53, -1074), (1, -1074));
        assert_eq!(round_half_even(3, -1076, false, 53, -1074), (1, -1074));
        assert_eq!(
            round_half_even(u128::MAX, -1202, false, 53, -1074),
            (1, -1074)
        );
        assert_eq!(
            round_half_even(u128::MAX, -1203, false, 53, -1074),
            (0, -1074)
        );
        assert_eq!(round_half_even(1, i32::MIN, false, 53, -1074), (0, -1074));
    }
}
