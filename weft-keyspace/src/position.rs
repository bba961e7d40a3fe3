//! Where a key belongs.
//!
//! Owns the partition: key to position, position to shard, position to SCAN cursor. This is the one place that knows.
//! Invariants: the shard is the top bits of the position; SCAN visits positions in ascending order; the top 48 bits
//! identify every bucket that any table can ever have, so a cursor of 48 bits is exact.

use ahash::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Bits of a position that a SCAN cursor carries.
pub(crate) const CURSOR_BITS: u32 = 48;

/// A key's place in the order of the keyspace: its keyed hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// The position with these bits.
    #[inline]
    pub const fn from_bits(bits: u64) -> Position {
        Position(bits)
    }

    /// All 64 bits.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The byte that a bucket keeps of each of its entries, never 0: from the low bits, which select no bucket.
    #[inline]
    pub(crate) const fn tag(self) -> u8 {
        let tag = self.0 as u8;
        if tag == 0 { 1 } else { tag }
    }
}

/// The partition function of one process.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    hash: RandomState,
    shard_bits: u32,
    /// All ones, except in tests that want positions to collide.
    mask: u64,
}

impl Partition {
    pub(crate) fn new(shards: usize, seeds: [u64; 4], mask: u64) -> Partition {
        assert!(
            shards.is_power_of_two() && shards <= 1 << 16,
            "the number of shards is a power of two, at most 65536"
        );
        Partition {
            hash: RandomState::with_seeds(seeds[0], seeds[1], seeds[2], seeds[3]),
            shard_bits: shards.trailing_zeros(),
            mask,
        }
    }

    #[inline]
    pub(crate) fn position(&self, key: &[u8]) -> Position {
        let mut hasher = self.hash.build_hasher();
        hasher.write(key);
        Position(hasher.finish() & self.mask)
    }

    #[inline]
    pub(crate) fn shard_bits(&self) -> u32 {
        self.shard_bits
    }

    #[inline]
    pub(crate) fn shard_of(&self, position: Position) -> usize {
        // Two shifts, because one shard means shifting by all 64 bits.
        ((position.0 >> 1) >> (63 - self.shard_bits)) as usize
    }

    /// The lowest position of a shard.
    pub(crate) fn shard_start(&self, shard: usize) -> Position {
        Position(((shard as u64) << 1) << (63 - self.shard_bits))
    }

    pub(crate) fn cursor(&self, position: Position) -> u64 {
        position.0 >> (64 - CURSOR_BITS)
    }

    pub(crate) fn cursor_position(&self, cursor: u64) -> Option<Position> {
        (cursor < 1 << CURSOR_BITS).then_some(Position(cursor << (64 - CURSOR_BITS)))
    }
}
