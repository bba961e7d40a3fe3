//! Decimal digits of a double, by the Grisu2 algorithm.
//!
//! Owns the digits and their power of ten. Does not know how they are laid out as text. Florian Loitsch, "Printing
//! Floating-Point Numbers Quickly and Accurately with Integers" (PLDI 2010). The digits always read back as the same
//! double, but for about one double in 300 they are not the shortest ones that do (1e23 gives 16 nines). Redis prints
//! those digits, so a formatter that is always shortest would differ from it. The cached powers are every eighth power
//! of ten from 1e-348 to 1e340, rounded to 64 bits, computed at compile time.

/// `digits()` times 10 to the power of `exponent`. The first digit is not zero.
pub(crate) struct Digits {
    buffer: [u8; 18],
    count: usize,
    pub(crate) exponent: i32,
}

impl Digits {
    /// The digits as ASCII; at most 17.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.buffer[..self.count]
    }

    fn push(&mut self, digit: u8) {
        self.buffer[self.count] = b'0' + digit;
        self.count += 1;
    }
}

/// `significand` times 2 to the power of `exponent`.
#[derive(Clone, Copy)]
struct Float {
    significand: u64,
    exponent: i32,
}

impl Float {
    /// The same value with the highest bit set. Not for zero.
    const fn normalized(self) -> Float {
        let shift = self.significand.leading_zeros();
        Float {
            significand: self.significand << shift,
            exponent: self.exponent - shift as i32,
        }
    }

    /// The product, rounded to the nearest 64 bits.
    const fn times(self, other: Float) -> Float {
        let product = self.significand as u128 * other.significand as u128 + (1 << 63);
        Float {
            significand: (product >> 64) as u64,
            exponent: self.exponent + other.exponent + 64,
        }
    }
}

/// The digits of `value`, which is positive and finite.
pub(crate) fn digits(value: f64) -> Digits {
    const FRACTION_BITS: u32 = 52;
    const HIDDEN_BIT: u64 = 1 << FRACTION_BITS;
    let bits = value.to_bits();
    let fraction = bits & (HIDDEN_BIT - 1);
    let biased = (bits >> FRACTION_BITS) as i32;
    let float = if biased == 0 {
        Float {
            significand: fraction,
            exponent: -1074,
        }
    } else {
        Float {
            significand: fraction | HIDDEN_BIT,
            exponent: biased - 1075,
        }
    };
    // Half way to the neighbours; the lower one is nearer below a power of two.
    let upper = Float {
        significand: float.significand * 2 + 1,
        exponent: float.exponent - 1,
    }
    .normalized();
    let nearer = float.significand == HIDDEN_BIT;
    let lower = if nearer {
        float.significand * 4 - 1
    } else {
        float.significand * 2 - 1
    };
    let lower_exponent = float.exponent - if nearer { 2 } else { 1 };
    let lower = Float {
        significand: lower << (lower_exponent - upper.exponent),
        exponent: upper.exponent,
    };

    let (power, decimal) = cached_power(upper.exponent);
    let exact = float.normalized().times(power);
    // One unit inwards, since the products are off by up to one.
    let mut upper = upper.times(power);
    upper.significand -= 1;
    let low = lower.times(power).significand + 1;
    generate(
        upper,
        upper.significand - low,
        upper.significand - exact.significand,
        -decimal,
    )
}

/// Powers of ten that fit into 32 bits.
const UNITS: [u32; 10] = [
    1,
    10,
    100,
    1000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

/// Digits of `upper`, until what is left out is no more than `width`; then towards the value, `distance` below.
fn generate(upper: Float, mut width: u64, mut distance: u64, exponent: i32) -> Digits {
    let shift = -upper.exponent;
    let one = 1u64 << shift;
    let mut whole = (upper.significand >> shift) as u32;
    let mut part = upper.significand & (one - 1);
    let mut digits = Digits {
        buffer: [0; 18],
        count: 0,
        exponent,
    };
    // All digits of the whole part at once, last first: dividing by a constant is much cheaper than by each unit.
    let mut decimals = [0u8; UNITS.len()];
    let mut place = 0i32;
    let mut left = whole;
    while left > 0 {
        decimals[place as usize] = (left % 10) as u8;
        left /= 10;
        place += 1;
    }
    while place > 0 {
        place -= 1;
        let (unit, digit) = (UNITS[place as usize], decimals[place as usize]);
        digits.push(digit);
        whole -= u32::from(digit) * unit;
        let rest = (u64::from(whole) << shift) + part;
        if rest <= width {
            digits.exponent += place;
            approach(&mut digits, width, rest, u64::from(unit) << shift, distance);
            return digits;
        }
    }
    loop {
        part *= 10;
        width *= 10;
        distance *= 10;
        digits.push((part >> shift) as u8);
        part &= one - 1;
        place -= 1;
        if part < width {
            digits.exponent += place;
            approach(&mut digits, width, part, one, distance);
            return digits;
        }
    }
}

/// Lowers the last digit, worth `unit`, while that brings the digits, now `rest` below the upper bound, nearer to
/// `distance` below it and keeps them within `width`.
fn approach(digits: &mut Digits, width: u64, mut rest: u64, unit: u64, distance: u64) {
    let last = &mut digits.buffer[digits.count - 1];
    while rest < distance
        && width - rest >= unit
        && (rest + unit < distance || distance - rest > rest + unit - distance)
    {
        *last -= 1;
        rest += unit;
    }
}

/// A product with the chosen power has a binary exponent between these: its whole part fits into 32 bits.
const EXPONENT_MIN: i32 = -60;
const EXPONENT_MAX: i32 = -32;

const FIRST_POWER: i32 = -348;
const POWER_STEP: i32 = 8;
const POWERS: usize = 87;

static CACHED_POWERS: [Float; POWERS] = cached_powers();

/// The cached power that brings `exponent` between the bounds, and which power of ten it is.
fn cached_power(exponent: i32) -> (Float, i32) {
    // log10(2) in 1/2^20; a start that is at most one step off.
    let decimal = ((EXPONENT_MIN - 64 - exponent) as i64 * 315_653) >> 20;
    let mut index =
        ((decimal as i32 - FIRST_POWER) / POWER_STEP).clamp(0, POWERS as i32 - 1) as usize;
    loop {
        let power = CACHED_POWERS[index];
        let reached = exponent + power.exponent + 64;
        if reached < EXPONENT_MIN {
            index += 1;
        } else if reached > EXPONENT_MAX {
            index -= 1;
        } else {
            return (power, FIRST_POWER + POWER_STEP * index as i32);
        }
    }
}

/// Words of the numbers the table is computed with, least significant first: 1280 bits are more than 1e340 and its
/// reciprocal to 64 bits and a margin need.
const WORDS: usize = 40;
type Wide = [u32; WORDS];

const fn cached_powers() -> [Float; POWERS] {
    let mut table = [Float {
        significand: 0,
        exponent: 0,
    }; POWERS];
    let zero = (-FIRST_POWER / POWER_STEP) as usize;
    // 1e-348 is 1e-4 below a multiple of the step: both directions start from 1e-4, as 2^1276 / 10^4 and downwards.
    let mut up: Wide = [0; WORDS];
    up[0] = 10_000;
    let mut down: Wide = [0; WORDS];
    down[WORDS - 1] = 1 << 28;
    let one_exponent = -(32 * (WORDS as i32 - 1) + 28);
    divide(&mut down, 10_000);
    let mut index = zero;
    loop {
        table[index] = rounded(&down, one_exponent);
        if index == 0 {
            break;
        }
        divide(&mut down, 100_000_000);
        index -= 1;
    }
    index = zero + 1;
    while index < POWERS {
        table[index] = rounded(&up, 0);
        multiply(&mut up, 100_000_000);
        index += 1;
    }
    table
}

const fn multiply(wide: &mut Wide, by: u32) {
    let mut carry = 0u64;
    let mut index = 0;
    while index < WORDS {
        carry += wide[index] as u64 * by as u64;
        wide[index] = carry as u32;
        carry >>= 32;
        index += 1;
    }
    assert!(carry == 0);
}

const fn divide(wide: &mut Wide, by: u32) {
    let mut rest = 0u64;
    let mut index = WORDS;
    while index > 0 {
        index -= 1;
        rest = rest << 32 | wide[index] as u64;
        wide[index] = (rest / by as u64) as u32;
        rest %= by as u64;
    }
}

/// `wide` times 2 to the power of `exponent`, rounded to 64 bits.
const fn rounded(wide: &Wide, exponent: i32) -> Float {
    let mut top = WORDS - 1;
    while wide[top] == 0 {
        top -= 1;
    }
    // The four highest words, so that at least 97 bits are at hand.
    let mut high = 0u128;
    let mut index = 0;
    while index < 4 {
        high = high << 32
            | if top >= index {
                wide[top - index] as u128
            } else {
                0
            };
        index += 1;
    }
    let shift = high.leading_zeros();
    high <<= shift;
    let exponent = exponent + 32 * (top as i32 - 3) - shift as i32 + 64;
    let significand = (high >> 64) as u64 + (high >> 63 & 1) as u64;
    Float {
        significand,
        exponent,
    }
}
