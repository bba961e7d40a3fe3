//! Byte strings by their keys: what sets, sorted sets and hashes are built on when they are large.
//!
//! Owns the records, a key and a payload each, and the table that finds them by key. Does not know what payloads mean; whoever wants
//! another order keeps handles in it. A handle stays good while its record is neither removed nor given a payload of another size.
//! `clone` is O(1) and is a snapshot. The seed decides the order of scans, and is what keeps others from choosing colliding keys.
//!
//! Record: length of the key in one byte, or from 0x80 on in two, or from 0x4000 on in eight, big endian with 0x80 or 0xc0 added
//! to the first; the key; the payload.

use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;

use crate::slab::{Handle, Slab};
use crate::table::{Load, Table};

/// Records of a key and a payload.
#[derive(Clone, Debug)]
pub struct Members {
    slab: Slab,
    table: Table,
    hash: RandomState,
}

/// What [`Members::insert`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// The record.
    pub handle: Handle,
    /// The handle that the key had before, often the same, if it was there.
    pub replaced: Option<Handle>,
}

impl Members {
    /// No members. The seed decides their order.
    #[must_use]
    pub fn new(seed: u64) -> Members {
        let hash = RandomState::with_seeds(
            seed,
            seed.rotate_left(17) ^ 0x5bf0_3635,
            seed.rotate_left(31),
            !seed,
        );
        Members {
            slab: Slab::new(),
            table: Table::new(),
            hash,
        }
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes allocated, shared or not; O(1).
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.slab.allocated_bytes() + self.table.allocated_bytes()
    }

    /// The record of `key`.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Handle> {
        self.find(self.hash_of(key), key)
    }

    #[inline]
    fn find(&self, hash: u64, key: &[u8]) -> Option<Handle> {
        self.table.find(hash, |handle| self.key(handle) == key)
    }

    /// Whether `key` is there.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// The key of a record.
    ///
    /// # Panics
    /// If the handle is not that of a record here; the same holds for all that take one.
    #[inline]
    #[must_use]
    pub fn key(&self, handle: Handle) -> &[u8] {
        self.record(handle).0
    }

    /// The payload of a record.
    #[inline]
    #[must_use]
    pub fn payload(&self, handle: Handle) -> &[u8] {
        self.record(handle).1
    }

    /// Key and payload of a record.
    #[inline]
    #[must_use]
    pub fn record(&self, handle: Handle) -> (&[u8], &[u8]) {
        let record = self.slab.get(handle);
        let (start, len) = key_extent(record);
        record[start..].split_at(len)
    }

    /// Asks for the first bytes of a record.
    pub fn load_ahead(&self, handle: Handle, load: Load) {
        self.slab.load_ahead(handle, load);
    }

    /// Asks for what removing a record reads in the table. Reads the record.
    pub fn load_place_ahead(&self, handle: Handle, load: Load) {
        self.table.load_ahead(self.hash_of(self.key(handle)), load);
    }

    /// The payload of a record, to be written over with one of the same size.
    pub fn payload_mut(&mut self, handle: Handle) -> &mut [u8] {
        let record = self.slab.get_mut(handle);
        let (start, len) = key_extent(record);
        &mut record[start + len..]
    }

    /// Adds `key` with a payload that consists of the given parts, or gives it that payload if it is there. A payload of the same
    /// size leaves the handle as it is; another may change it.
    pub fn insert(&mut self, key: &[u8], payload: &[&[u8]]) -> Inserted {
        let hash = self.hash_of(key);
        match self.find(hash, key) {
            Some(before) => Inserted {
                handle: self.replace(before, key, payload),
                replaced: Some(before),
            },
            None => Inserted {
                handle: self.insert_hashed(hash, key, payload),
                replaced: None,
            },
        }
    }

    /// Adds `key`, which is not there, with a payload.
    pub fn insert_new(&mut self, key: &[u8], payload: &[&[u8]]) -> Handle {
        self.insert_hashed(self.hash_of(key), key, payload)
    }

    fn insert_hashed(&mut self, hash: u64, key: &[u8], payload: &[&[u8]]) -> Handle {
        let length = KeyLength::new(key.len());
        let parts = [length.bytes(), key]
            .into_iter()
            .chain(payload.iter().copied());
        let handle = self.slab.insert(parts);
        self.table.insert(hash, handle);
        handle
    }

    /// Gives the record of `key`, found before, another payload, and returns the handle that it has from now on.
    pub fn replace(&mut self, before: Handle, key: &[u8], payload: &[&[u8]]) -> Handle {
        debug_assert!(self.key(before) == key, "the handle is the key's");
        let length = KeyLength::new(key.len());
        let parts = [length.bytes(), key]
            .into_iter()
            .chain(payload.iter().copied());
        let handle = self.slab.replace(before, parts);
        if handle != before {
            self.table.replace(self.hash_of(key), before, handle);
        }
        handle
    }

    /// Removes `key`; says whether it was there.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        match self.get(key) {
            Some(handle) => {
                self.remove_handle(handle);
                true
            }
            None => false,
        }
    }

    /// Removes a record.
    pub fn remove_handle(&mut self, handle: Handle) {
        let hash = self.hash_of(self.key(handle));
        let was_there = self.table.remove(hash, handle);
        debug_assert!(was_there, "every record is in the table");
        self.slab.remove(handle);
    }

    /// Gives `each` the members from `cursor` on until it had `at_least` or there are no more; returns the next cursor, 0 at the end.
    /// What is there from the first call to the last is given at least once. A cursor has 32 bits.
    pub fn scan(&self, cursor: u64, at_least: usize, each: impl FnMut(Handle)) -> u64 {
        self.table.scan(cursor, at_least, each)
    }

    /// A member of which each is as likely as any other, if `draw` gives each number below its argument as likely as any other.
    pub fn random(&self, draw: &mut impl FnMut(u64) -> u64) -> Option<Handle> {
        self.table.random(draw)
    }

    /// The member with this number in the order of scans: for drawing several different ones.
    #[must_use]
    pub fn nth(&self, number: usize) -> Option<Handle> {
        self.table.nth(number)
    }

    /// All members in the order of scans.
    pub fn iter(&self) -> impl Iterator<Item = Handle> + '_ {
        self.table.iter()
    }

    fn hash_of(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hash.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}

/// The bytes before a key.
struct KeyLength {
    bytes: [u8; 8],
    used: usize,
}

impl KeyLength {
    fn new(len: usize) -> KeyLength {
        let number = len as u64;
        let (number, used) = match number {
            0..0x80 => (number << 56, 1),
            0x80..0x4000 => ((number | 0x8000) << 48, 2),
            _ => (number | 0xc0 << 56, 8),
        };
        KeyLength {
            bytes: number.to_be_bytes(),
            used,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

/// Where the key of a record starts, and its length.
#[inline]
fn key_extent(record: &[u8]) -> (usize, usize) {
    let first = usize::from(record[0]);
    match first {
        0..0x80 => (1, first),
        0x80..0xc0 => (2, (first & 0x3f) << 8 | usize::from(record[1])),
        _ => (
            8,
            record[1..8]
                .iter()
                .fold(first & 0x3f, |sum, &byte| sum << 8 | usize::from(byte)),
        ),
    }
}

#[cfg(test)]
#[path = "members/tests.rs"]
mod tests;
