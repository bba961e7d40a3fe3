//! One bucket: a cache line with twelve entries.
//!
//! Owns the layout of the line. Does not know what handles lead to. All accesses are relaxed atomics, because
//! prefetchers read buckets without the latch; whoever writes holds the latch.
//!
//! ```text
//! 12 handles of 4 bytes | 12 tags of 1 byte, 0 = free | displaced 12 bits | away 4 bits | due 16 bits
//! ```
//! `displaced` marks entries whose home is the bucket before this one; `away` counts the entries of this bucket that
//! live in the next. `due` is a lower bound of the deadlines in this bucket, see [`crate::expiry`].

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::expiry::Due16;

/// Entries in a bucket.
pub(crate) const SLOTS: u32 = 12;
const SLOT_MASK: u32 = (1 << SLOTS) - 1;
const DISPLACED_SHIFT: u32 = 32;
const AWAY_SHIFT: u32 = 44;
const DUE_SHIFT: u32 = 48;

/// A cache line of entries.
#[repr(C, align(64))]
pub(crate) struct Bucket {
    handles: [AtomicU32; SLOTS as usize],
    /// Tags of slots 0 to 7.
    low: AtomicU64,
    /// Tags of slots 8 to 11, then the rest.
    high: AtomicU64,
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    #[inline]
    pub(crate) fn handle(&self, slot: u32) -> u32 {
        self.handles[slot as usize].load(Relaxed)
    }

    #[inline]
    pub(crate) fn set_handle(&self, slot: u32, handle: u32) {
        self.handles[slot as usize].store(handle, Relaxed);
    }

    /// Slots with this tag.
    #[inline]
    pub(crate) fn matches(&self, tag: u8) -> Slots {
        let low = self.low.load(Relaxed);
        let high = self.high.load(Relaxed);
        Slots(equal_bytes(low, high, tag) & SLOT_MASK)
    }

    /// Free slots.
    #[inline]
    pub(crate) fn free(&self) -> Slots {
        self.matches(0)
    }

    /// Slots in use.
    #[inline]
    pub(crate) fn used(&self) -> Slots {
        Slots(!self.free().0 & SLOT_MASK)
    }

    /// Slots whose entries belong to the bucket before.
    #[inline]
    pub(crate) fn displaced(&self) -> Slots {
        Slots((self.high.load(Relaxed) >> DISPLACED_SHIFT) as u32 & SLOT_MASK)
    }

    /// Slots in use whose entries belong here.
    #[inline]
    pub(crate) fn own(&self) -> Slots {
        self.used().without(self.displaced())
    }

    /// How many of this bucket's entries live in the next.
    #[inline]
    pub(crate) fn away(&self) -> u32 {
        (self.high.load(Relaxed) >> AWAY_SHIFT) as u32 & 0xf
    }

    #[inline]
    pub(crate) fn add_away(&self) {
        debug_assert!(self.away() < SLOTS, "the next bucket has no more slots");
        let high = self.high.load(Relaxed);
        self.high.store(high + (1 << AWAY_SHIFT), Relaxed);
    }

    #[inline]
    pub(crate) fn subtract_away(&self) {
        debug_assert!(self.away() > 0, "an entry of this bucket was in the next");
        let high = self.high.load(Relaxed);
        self.high.store(high - (1 << AWAY_SHIFT), Relaxed);
    }

    #[inline]
    pub(crate) fn due(&self) -> Due16 {
        Due16::from_bits((self.high.load(Relaxed) >> DUE_SHIFT) as u16)
    }

    #[inline]
    pub(crate) fn set_due(&self, due: Due16) {
        let high = self.high.load(Relaxed) & !(0xffff << DUE_SHIFT);
        self.high
            .store(high | u64::from(due.bits()) << DUE_SHIFT, Relaxed);
    }

    /// Makes the bound at most `due`; `now` is the current tick.
    #[inline]
    pub(crate) fn lower_due(&self, due: Due16, now: u64) {
        if due.is_some() {
            self.set_due(self.due().earlier(due, now));
        }
    }

    #[inline]
    pub(crate) fn tag(&self, slot: u32) -> u8 {
        if slot < 8 {
            (self.low.load(Relaxed) >> (slot * 8)) as u8
        } else {
            (self.high.load(Relaxed) >> ((slot - 8) * 8)) as u8
        }
    }

    /// Fills a free slot.
    #[inline]
    pub(crate) fn put(&self, slot: u32, tag: u8, handle: u32, displaced: bool) {
        debug_assert_eq!(self.tag(slot), 0, "the slot is free");
        self.handles[slot as usize].store(handle, Relaxed);
        self.set_tag(slot, tag, displaced);
    }

    /// Empties a slot.
    #[inline]
    pub(crate) fn clear(&self, slot: u32) {
        self.handles[slot as usize].store(0, Relaxed);
        self.set_tag(slot, 0, false);
    }

    #[inline]
    fn set_tag(&self, slot: u32, tag: u8, displaced: bool) {
        let mut high = self.high.load(Relaxed) & !(1 << (DISPLACED_SHIFT + slot));
        high |= u64::from(displaced) << (DISPLACED_SHIFT + slot);
        if slot < 8 {
            let low = self.low.load(Relaxed) & !(0xff << (slot * 8));
            self.low.store(low | u64::from(tag) << (slot * 8), Relaxed);
        } else {
            let shift = (slot - 8) * 8;
            high = high & !(0xff << shift) | u64::from(tag) << shift;
        }
        self.high.store(high, Relaxed);
    }
}

/// A set of slots; iterates in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots(u32);

impl Slots {
    #[inline]
    pub(crate) fn first(self) -> Option<u32> {
        (self.0 != 0).then(|| self.0.trailing_zeros())
    }

    #[inline]
    pub(crate) fn without(self, others: Slots) -> Slots {
        Slots(self.0 & !others.0)
    }

    #[inline]
    pub(crate) fn and(self, others: Slots) -> Slots {
        Slots(self.0 & others.0)
    }

    #[inline]
    pub(crate) fn contains(self, slot: u32) -> bool {
        self.0 >> slot & 1 != 0
    }
}

impl Iterator for Slots {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let slot = self.first()?;
        self.0 &= self.0 - 1;
        Some(slot)
    }
}

/// Which of the sixteen bytes equal `byte`.
#[cfg(target_arch = "x86_64")]
#[inline]
fn equal_bytes(low: u64, high: u64, byte: u8) -> u32 {
    use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};

    #[inline]
    #[target_feature(enable = "sse2")]
    fn with_sse2(low: u64, high: u64, byte: u8) -> u32 {
        let bytes = _mm_set_epi64x(high as i64, low as i64);
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32
    }
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { with_sse2(low, high, byte) }
}

/// Which of the sixteen bytes equal `byte`.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn equal_bytes(low: u64, high: u64, byte: u8) -> u32 {
    let pattern = u64::from(byte) * 0x0101_0101_0101_0101;
    portable::zero_bytes(low ^ pattern) | portable::zero_bytes(high ^ pattern) << 8
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    /// One bit per byte of `word` that is zero.
    pub(super) fn zero_bytes(word: u64) -> u32 {
        const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let nonzero = (word & LOW7).wrapping_add(LOW7) | word | LOW7;
        // The top bits of the bytes, gathered by one multiplication.
        ((!nonzero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::portable::zero_bytes;

    #[test]
    fn zero_bytes_finds_exactly_the_zero_bytes() {
        let choices = [0_u8, 1, 0x7f, 0x80, 0xff];
        for pick in 0..5_usize.pow(8) {
            let mut rest = pick;
            let bytes: [u8; 8] = std::array::from_fn(|_| {
                let byte = choices[rest % 5];
                rest /= 5;
                byte
            });
            let expected = (0..8)
                .filter(|&i| bytes[i] == 0)
                .fold(0, |bits, i| bits | 1 << i);
            assert_eq!(zero_bytes(u64::from_le_bytes(bytes)), expected);
        }
    }
}
