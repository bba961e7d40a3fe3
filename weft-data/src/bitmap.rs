//! Strings as rows of bits: counting them, finding one, and reading and changing one.
//!
//! Owns what is done to bytes that lie in one piece and how it is spread over the chunks of a rope; the fields of
//! BITFIELD (`field`), the operators of BITOP (`combine`) and the loops that look at many bytes at a time (`kernel`). Knows neither
//! keys nor arguments. Bit 0 is the highest bit of the first byte, as in Redis.

pub mod combine;
pub mod field;
#[cfg(target_arch = "x86_64")]
mod groups;
mod kernel;
#[cfg(test)]
mod tests;

use std::ops::Range;

use weft_rope::{CHUNK_BYTES, Rope};

/// The byte that a bit is in, and the mask of the bit there.
#[inline]
#[must_use]
pub const fn locate(bit: usize) -> (usize, u8) {
    (bit / 8, 0x80 >> (bit % 8))
}

/// How many of the bits in `bits` are set. The range lies within `bytes`.
#[must_use]
pub fn count(bytes: &[u8], bits: Range<usize>) -> u64 {
    if bits.is_empty() {
        return 0;
    }
    let within = bytes_of(&bits);
    kernel::count_ones(&bytes[within]) - outside(|index| bytes[index], &bits)
}

/// The first bit in `bits` that is set, or the first that is clear. The range lies within `bytes`.
#[must_use]
pub fn position(bytes: &[u8], wanted: bool, bits: Range<usize>) -> Option<usize> {
    if bits.is_empty() {
        return None;
    }
    let within = bytes_of(&bits);
    // What is wanted becomes the ones.
    let ones = |index: usize| {
        if wanted { bytes[index] } else { !bytes[index] }
    };
    let head = ones(within.start) & (0xff >> (bits.start % 8));
    let (index, byte) = if head != 0 {
        (within.start, head)
    } else {
        let rest = &bytes[within.start + 1..within.end];
        let index = within.start + 1 + kernel::first_other(rest, if wanted { 0 } else { 0xff })?;
        (index, ones(index))
    };
    let found = index * 8 + byte.leading_zeros() as usize;
    (found < bits.end).then_some(found)
}

/// The bytes that a range of bits, which is not empty, lies in.
const fn bytes_of(bits: &Range<usize>) -> Range<usize> {
    bits.start / 8..bits.end.div_ceil(8)
}

/// How many set bits there are in the bytes of `bits` before its first and behind its last bit.
fn outside(byte: impl Fn(usize) -> u8, bits: &Range<usize>) -> u64 {
    let mut ones = 0;
    if !bits.start.is_multiple_of(8) {
        ones += (byte(bits.start / 8) & !(0xff >> (bits.start % 8))).count_ones();
    }
    if !bits.end.is_multiple_of(8) {
        ones += (byte(bits.end / 8) & (0xff >> (bits.end % 8))).count_ones();
    }
    u64::from(ones)
}

/// Counts the set bits of a large string, a part at a time.
#[derive(Debug)]
pub struct Counting {
    rope: Rope,
    left: Range<usize>,
    ones: u64,
    outside: u64,
}

impl Counting {
    /// Of the bits in `bits`, which lie within `rope`.
    #[must_use]
    pub fn new(rope: Rope, bits: Range<usize>) -> Self {
        let (left, outside) = if bits.is_empty() {
            (0..0, 0)
        } else {
            let byte = |index| rope.byte(index).unwrap_or_default();
            (bytes_of(&bits), outside(byte, &bits))
        };
        Self {
            rope,
            left,
            ones: 0,
            outside,
        }
    }

    /// Looks at `bytes` more bytes or the rest; the count when all are seen.
    pub fn step(&mut self, bytes: usize) -> Option<u64> {
        let end = self.left.start.saturating_add(bytes).min(self.left.end);
        for slice in self.rope.slices(self.left.start..end) {
            self.ones += kernel::count_ones(slice);
        }
        self.left.start = end;
        self.left.is_empty().then(|| self.ones - self.outside)
    }
}

/// Looks for a bit in a large string, a part at a time.
#[derive(Debug)]
pub struct Seeking {
    rope: Rope,
    wanted: bool,
    left: Range<usize>,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// Here.
    At(usize),
    /// Nowhere.
    Nowhere,
    /// There is more to look at.
    More,
}

impl Seeking {
    /// For the first bit in `bits` that is set, or that is clear. The range lies within `rope`.
    #[must_use]
    pub const fn new(rope: Rope, wanted: bool, bits: Range<usize>) -> Self {
        Self {
            rope,
            wanted,
            left: bits,
        }
    }

    /// Looks at the next `bytes` bytes.
    pub fn step(&mut self, bytes: usize) -> Sought {
        let end = self
            .left
            .start
            .saturating_add(bytes.saturating_mul(8))
            .min(self.left.end);
        while self.left.start < end {
            let index = self.left.start / (CHUNK_BYTES * 8);
            let before = index * CHUNK_BYTES * 8;
            let Some(chunk) = self.rope.chunks().get(index) else {
                break;
            };
            let stop = end.min(before + chunk.len() * 8);
            let bits = self.left.start - before..stop - before;
            if let Some(found) = position(chunk.as_slice(), self.wanted, bits) {
                return Sought::At(before + found);
            }
            self.left.start = stop;
        }
        if self.left.is_empty() {
            Sought::Nowhere
        } else {
            Sought::More
        }
    }
}
