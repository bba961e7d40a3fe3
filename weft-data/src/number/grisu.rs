//! The digits of a double, by Grisu2 (F. Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with
//! Integers", PLDI 2010).
//!
//! Grisu2 always round-trips but is not the shortest for about one random bit pattern in two thousand: 1e23 gives
//! 9999999999999999. Redis's replies show exactly these digits, so a better algorithm would be wrong here. The
//! choice among cached powers decides which doubles those are; it is the smallest power that fits.

/// Decimal digits and the power of ten of the last one.
pub(super) struct Digits {
    bytes: [u8; Digits::CAPACITY],
    length: usize,
    pub(super) exponent: i32,
}

impl Digits {
    /// 17 digits distinguish all doubles, and Grisu2 stops as soon as it is within the interval.
    const CAPACITY: usize = 18;

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, digit: u64) {
        if digit != 0 || self.length != 0 {
            self.bytes[self.length] = b'0' + digit as u8;
            self.length += 1;
        }
    }
}

/// `significand * 2^exponent`
#[derive(Clone, Copy)]
struct Scaled {
    significand: u64,
    exponent: i32,
}

impl Scaled {
    fn normalised(self) -> Self {
        let shift = self.significand.leading_zeros();
        Self {
            significand: self.significand << shift,
            exponent: self.exponent - shift as i32,
        }
    }

    /// The upper half of the product, rounded half up.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.significand) * u128::from(other.significand);
        Self {
            significand: ((product + (1 << 63)) >> 64) as u64,
            exponent: self.exponent + other.exponent + 64,
        }
    }
}

const HIDDEN_BIT: u64 = 1 << 52;

/// The digits of a positive finite double.
pub(super) fn shortest_digits(value: f64) -> Digits {
    let bits = value.to_bits();
    let biased = (bits >> 52) as i32;
    let fraction = bits & (HIDDEN_BIT - 1);
    let exact = if biased == 0 {
        Scaled {
            significand: fraction,
            exponent: -1074,
        }
    } else {
        Scaled {
            significand: fraction | HIDDEN_BIT,
            exponent: biased - 1075,
        }
    };
    // Half way to the neighbours; below a power of two the lower one is half as far.
    let upper = Scaled {
        significand: (exact.significand << 1) + 1,
        exponent: exact.exponent - 1,
    }
    .normalised();
    let closer = u32::from(exact.significand == HIDDEN_BIT);
    let lower_exponent = exact.exponent - 1 - closer as i32;
    let lower = Scaled {
        significand: ((exact.significand << (1 + closer)) - 1) << (lower_exponent - upper.exponent),
        exponent: upper.exponent,
    };
    let (power, decimal) = cached_power(upper.exponent);
    let scaled = exact.normalised().times(power);
    let upper = upper.times(power);
    let lower = lower.times(power);
    // Each product may be off by one unit: stay inside the certain interval.
    generate(
        scaled,
        upper.significand - 1,
        lower.significand + 1,
        -decimal,
    )
}

/// Produces the digits of `upper` until they lie between `lower` and `upper`, then moves the last one towards `exact`.
/// All three have the exponent of `exact`, which is in [-60, -32].
fn generate(exact: Scaled, upper: u64, lower: u64, decimal: i32) -> Digits {
    let shift = -exact.exponent;
    let unit = 1u64 << shift;
    let mut digits = Digits {
        bytes: [0; Digits::CAPACITY],
        length: 0,
        exponent: decimal,
    };
    let mut distance = upper - exact.significand;
    let mut interval = upper - lower;
    let mut whole = upper >> shift;
    let mut rest = upper & (unit - 1);
    let mut divisor: u64 = 1_000_000_000;
    for position in (0..10).rev() {
        digits.push(whole / divisor);
        whole %= divisor;
        let remainder = (whole << shift) + rest;
        if remainder <= interval {
            digits.exponent += position;
            weed(&mut digits, interval, remainder, divisor << shift, distance);
            return digits;
        }
        divisor /= 10;
    }
    loop {
        rest *= 10;
        interval *= 10;
        distance *= 10;
        digits.push(rest >> shift);
        rest &= unit - 1;
        digits.exponent -= 1;
        if rest < interval {
            weed(&mut digits, interval, rest, unit, distance);
            return digits;
        }
    }
}

/// Lowers the last digit while that brings the number closer to the exact value and keeps it in the interval.
fn weed(digits: &mut Digits, interval: u64, mut remainder: u64, step: u64, distance: u64) {
    while remainder < distance
        && interval - remainder >= step
        && (remainder + step < distance || distance - remainder > remainder + step - distance)
    {
        digits.bytes[digits.length - 1] -= 1;
        remainder += step;
    }
}

const FIRST_POWER: i32 = -348;
const POWER_STEP: i32 = 8;

/// A power of ten that brings a significand with `exponent` to an exponent in [-60, -32], and its decimal exponent.
fn cached_power(exponent: i32) -> (Scaled, i32) {
    // log10(2) is about 78913 / 2^18: an estimate at most one step below the answer.
    let estimate = ((-61 - exponent) * 78913) >> 18;
    let mut index = ((estimate - FIRST_POWER) / POWER_STEP).max(0) as usize;
    loop {
        let power = power_at(index);
        if exponent + power.exponent + 64 >= -60 {
            return (power, FIRST_POWER + index as i32 * POWER_STEP);
        }
        index += 1;
    }
}

fn power_at(index: usize) -> Scaled {
    let decimal = FIRST_POWER + index as i32 * POWER_STEP;
    // floor(log2(10^decimal)), from log2(10) = 217706 / 2^16, exact for this range.
    Scaled {
        significand: POWERS[index],
        exponent: ((decimal * 217_706) >> 16) - 63,
    }
}

/// The 64 leading bits of 10^-348, 10^-340 ... 10^340, rounded half to even.
#[rustfmt::skip]
const POWERS: [u64; 87] = [
    0xfa8fd5a0081c0288, 0xbaaee17fa23ebf76, 0x8b16fb203055ac76, 0xcf42894a5dce35ea, 0x9a6bb0aa55653b2d,
    0xe61acf033d1a45df, 0xab70fe17c79ac6ca, 0xff77b1fcbebcdc4f, 0xbe5691ef416bd60c, 0x8dd01fad907ffc3c,
    0xd3515c2831559a83, 0x9d71ac8fada6c9b5, 0xea9c227723ee8bcb, 0xaecc49914078536d, 0x823c12795db6ce57,
    0xc21094364dfb5637, 0x9096ea6f3848984f, 0xd77485cb25823ac7, 0xa086cfcd97bf97f4, 0xef340a98172aace5,
    0xb23867fb2a35b28e, 0x84c8d4dfd2c63f3b, 0xc5dd44271ad3cdba, 0x936b9fcebb25c996, 0xdbac6c247d62a584,
    0xa3ab66580d5fdaf6, 0xf3e2f893dec3f126, 0xb5b5ada8aaff80b8, 0x87625f056c7c4a8b, 0xc9bcff6034c13053,
    0x964e858c91ba2655, 0xdff9772470297ebd, 0xa6dfbd9fb8e5b88f, 0xf8a95fcf88747d94, 0xb94470938fa89bcf,
    0x8a08f0f8bf0f156b, 0xcdb02555653131b6, 0x993fe2c6d07b7fac, 0xe45c10c42a2b3b06, 0xaa242499697392d3,
    0xfd87b5f28300ca0e, 0xbce5086492111aeb, 0x8cbccc096f5088cc, 0xd1b71758e219652c, 0x9c40000000000000,
    0xe8d4a51000000000, 0xad78ebc5ac620000, 0x813f3978f8940984, 0xc097ce7bc90715b3, 0x8f7e32ce7bea5c70,
    0xd5d238a4abe98068, 0x9f4f2726179a2245, 0xed63a231d4c4fb27, 0xb0de65388cc8ada8, 0x83c7088e1aab65db,
    0xc45d1df942711d9a, 0x924d692ca61be758, 0xda01ee641a708dea, 0xa26da3999aef774a, 0xf209787bb47d6b85,
    0xb454e4a179dd1877, 0x865b86925b9bc5c2, 0xc83553c5c8965d3d, 0x952ab45cfa97a0b3, 0xde469fbd99a05fe3,
    0xa59bc234db398c25, 0xf6c69a72a3989f5c, 0xb7dcbf5354e9bece, 0x88fcf317f22241e2, 0xcc20ce9bd35c78a5,
    0x98165af37b2153df, 0xe2a0b5dc971f303a, 0xa8d9d1535ce3b396, 0xfb9b7cd9a4a7443c, 0xbb764c4ca7a44410,
    0x8bab8eefb6409c1a, 0xd01fef10a657842c, 0x9b10a4e5e9913129, 0xe7109bfba19c0c9d, 0xac2820d9623bf429,
    0x80444b5e7aa7cf85, 0xbf21e44003acdd2d, 0x8e679c2f5e44ff8f, 0xd433179d9c8cb841, 0x9e19db92b4e31ba9,
    0xeb96bf6ebadf77d9, 0xaf87023b9bf0ee6b,
];

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;

    #[test]
    fn cached_powers_are_the_rounded_powers_of_ten() {
        for index in 0..POWERS.len() {
            let decimal = FIRST_POWER + index as i32 * POWER_STEP;
            let power = power_at(index);
            let ten = BigUint::from(10u8).pow(decimal.unsigned_abs());
            // significand * 2^exponent = 10^decimal, both sides times two, as integers
            let (mut left, mut right) =
                (BigUint::from(power.significand) << 1u8, BigUint::from(2u8));
            let mut unit = BigUint::from(2u8);
            if decimal < 0 {
                left *= &ten;
                unit *= &ten;
            } else {
                right *= &ten;
            }
            if power.exponent < 0 {
                right <<= power.exponent.unsigned_abs();
            } else {
                left <<= power.exponent.unsigned_abs();
                unit <<= power.exponent.unsigned_abs();
            }
            let error = if left > right {
                &left - &right
            } else {
                &right - &left
            };
            assert!(error * 2u8 <= unit, "10^{decimal}");
            assert!(power.significand >> 63 == 1, "10^{decimal}");
        }
    }

    #[test]
    fn every_binary_exponent_finds_a_power_in_the_window() {
        for exponent in -1138..=960 {
            let (power, _) = cached_power(exponent);
            let sum = exponent + power.exponent + 64;
            assert!((-60..=-32).contains(&sum), "{exponent}: {sum}");
        }
    }
}
