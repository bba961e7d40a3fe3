//! Where an element falls, and how high.
//!
//! The hash is MurmurHash64A (Austin Appleby, public domain), read in little-endian order on every processor, with the seed that Redis uses.

use super::REGISTERS;

const SEED: u64 = 0xadc8_3b19;
const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// Bits of the hash that choose the register.
const REGISTER_BITS: u32 = REGISTERS.trailing_zeros();

/// What one element says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The register that it falls on.
    pub register: u16,
    /// One more than the zeroes at the low end of what is left of its hash: 1 to 51.
    pub rank: u8,
}

/// What `element` says.
#[must_use]
pub fn observe(element: &[u8]) -> Observation {
    let hash = murmur(element);
    let register = (hash % REGISTERS as u64) as u16;
    // A bit behind the last one ends the count.
    let rest = (hash >> REGISTER_BITS) | 1 << (u64::BITS - REGISTER_BITS);
    Observation {
        register,
        rank: rest.trailing_zeros() as u8 + 1,
    }
}

fn murmur(bytes: &[u8]) -> u64 {
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> SHIFT;
        hash = (hash ^ mixed.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ hash >> SHIFT
}
