//! BITFIELD: integers of any width at any bit.
//!
//! A field is read and written through a window: the bytes from the one that its first bit is in. 64 bits that begin within a
//! byte touch nine bytes.

/// Bytes of a window.
pub const WINDOW_BYTES: usize = 9;

/// The bytes around a field, zeroes where the string has ended.
pub type Window = [u8; WINDOW_BYTES];

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    signed: bool,
    bits: u32,
}

/// What becomes of a value that does not fit its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Its low bits are kept.
    Wrap,
    /// The nearest value that fits.
    Saturate,
    /// Nothing is written.
    Fail,
}

impl FieldType {
    /// `i` or `u` and the number of bits: 1 to 64 signed, 1 to 63 unsigned.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (letter, bits) = text.split_first()?;
        let (signed, most) = match letter {
            b'i' => (true, 64),
            b'u' => (false, 63),
            _ => return None,
        };
        let bits = crate::number::parse_i64(bits)?;
        let bits = u32::try_from(bits).ok()?;
        (1..=most).contains(&bits).then_some(Self { signed, bits })
    }

    /// Its width.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// How many bytes of its window a field takes that begins `shift` bits (0 to 7) into it.
    #[must_use]
    pub const fn bytes(self, shift: u32) -> usize {
        (shift + self.bits).div_ceil(8) as usize
    }

    /// The value of the field `shift` bits (0 to 7) into the window.
    #[must_use]
    pub fn read(self, window: &Window, shift: u32) -> i64 {
        let aligned = spread(window) << shift;
        if self.signed {
            (aligned.cast_signed() >> (128 - self.bits)) as i64
        } else {
            (aligned >> (128 - self.bits)) as i64
        }
    }

    /// Writes the field's low bits of `value`.
    pub fn write(self, window: &mut Window, shift: u32, value: i64) {
        let up = 128 - self.bits - shift;
        let mask = (u128::MAX >> (128 - self.bits)) << up;
        let bits = (u128::from(value.cast_unsigned()) << up) & mask;
        let all = (spread(window) & !mask) | bits;
        window.copy_from_slice(&all.to_be_bytes()[..WINDOW_BYTES]);
    }

    /// What is stored for `value` when the field is set to it; none if it does not fit and that fails.
    #[must_use]
    pub fn set(self, value: i64, overflow: Overflow) -> Option<i64> {
        // A negative number for an unsigned field counts as the large one with the same bits.
        let value = if self.signed {
            i128::from(value)
        } else {
            i128::from(value.cast_unsigned())
        };
        self.fit(value, overflow)
    }

    /// What is stored for the sum of the field's value and `delta`; none if it does not fit and that fails.
    #[must_use]
    pub fn sum(self, value: i64, delta: i64, overflow: Overflow) -> Option<i64> {
        self.fit(i128::from(value) + i128::from(delta), overflow)
    }

    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = if self.signed {
            let half = 1_i128 << (self.bits - 1);
            (-half, half - 1)
        } else {
            (0, (1_i128 << self.bits) - 1)
        };
        let fitting = match overflow {
            _ if (least..=most).contains(&value) => value,
            Overflow::Fail => return None,
            Overflow::Saturate => value.clamp(least, most),
            Overflow::Wrap if self.signed => {
                let up = 128 - self.bits;
                (value << up) >> up
            }
            Overflow::Wrap => value & most,
        };
        Some(fitting as i64)
    }
}

/// The window as the high bytes of a number.
fn spread(window: &Window) -> u128 {
    let mut bytes = [0; 16];
    bytes[..WINDOW_BYTES].copy_from_slice(window);
    u128::from_be_bytes(bytes)
}
