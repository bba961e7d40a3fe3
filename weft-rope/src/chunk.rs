//! Counted bytes of at most 64 KiB.
//!
//! Owns sharing and growth of one chunk; does not know how chunks are strung together. The bytes are an allocation of
//! their own, so that a full chunk fills an allocator size class exactly. A chunk with more than one owner is never
//! written: [`Chunk::make_mut`] copies it first.

use std::fmt;
use std::sync::Arc;

/// The most bytes one chunk holds, and what every chunk of a rope but the last holds exactly.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// The first allocation of a growing chunk, in bytes.
const FIRST_BYTES: usize = 64;

/// Counted bytes: at most [`CHUNK_BYTES`], shared by `clone`, copied before a shared one is written.
#[derive(Clone, Default)]
pub struct Chunk {
    bytes: Arc<Vec<u8>>,
}

impl Chunk {
    /// An empty chunk with room for `capacity` bytes (clamped to [`CHUNK_BYTES`]).
    pub fn with_capacity(capacity: usize) -> Chunk {
        Chunk {
            bytes: Arc::new(Vec::with_capacity(capacity.min(CHUNK_BYTES))),
        }
    }

    /// A chunk holding the first [`CHUNK_BYTES`] of `bytes` at most, allocated to size.
    pub fn from_slice(bytes: &[u8]) -> Chunk {
        let take = bytes.len().min(CHUNK_BYTES);
        Chunk {
            bytes: Arc::new(bytes[..take].to_vec()),
        }
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of bytes, at most [`CHUNK_BYTES`].
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it holds no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes allocated, used or not.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether another owner exists at this moment.
    #[inline]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.bytes) > 1
    }

    /// The bytes for writing; copies them first if the chunk is shared.
    pub fn make_mut(&mut self) -> &mut [u8] {
        self.own(0)
    }

    /// Replaces the bytes without allocating: if nobody else owns them, and the room there is suits `bytes` (at most half of
    /// it stays unused). False: nothing has changed.
    pub fn overwrite(&mut self, bytes: &[u8]) -> bool {
        match Arc::get_mut(&mut self.bytes) {
            Some(own) if bytes.len() <= own.capacity() && bytes.len() >= own.capacity() / 2 => {
                own.clear();
                own.extend_from_slice(bytes);
                true
            }
            _ => false,
        }
    }

    /// Appends as much of `bytes` as fits into [`CHUNK_BYTES`] and returns how much that was.
    pub fn extend(&mut self, bytes: &[u8]) -> usize {
        let take = bytes.len().min(CHUNK_BYTES - self.len());
        if take > 0 {
            self.own(take).extend_from_slice(&bytes[..take]);
        }
        take
    }

    /// Appends up to `count` zero bytes and returns how many fitted.
    pub fn extend_zeroes(&mut self, count: usize) -> usize {
        let take = count.min(CHUNK_BYTES - self.len());
        if take > 0 {
            let own = self.own(take);
            own.resize(own.len() + take, 0);
        }
        take
    }

    /// Drops the bytes from `len` on. No effect when there are not that many.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.own(0).truncate(len);
        }
    }

    /// Gives unused capacity back to the allocator, unless the chunk is shared.
    pub fn shrink_to_fit(&mut self) {
        if let Some(own) = Arc::get_mut(&mut self.bytes) {
            own.shrink_to_fit();
        }
    }

    /// The vector, unshared, with room for `extra` more bytes: grown by doubling, never past [`CHUNK_BYTES`].
    fn own(&mut self, extra: usize) -> &mut Vec<u8> {
        let needed = self.bytes.len() + extra;
        debug_assert!(needed <= CHUNK_BYTES);
        if Arc::get_mut(&mut self.bytes).is_none() {
            let capacity = if extra == 0 {
                needed
            } else {
                grown(self.bytes.len(), needed)
            };
            let mut copy = Vec::with_capacity(capacity);
            copy.extend_from_slice(&self.bytes);
            self.bytes = Arc::new(copy);
        }
        let own = Arc::get_mut(&mut self.bytes).expect("made unique above");
        if needed > own.capacity() {
            let capacity = grown(own.capacity(), needed);
            own.reserve_exact(capacity - own.len());
        }
        own
    }
}

/// The capacity that follows `capacity` when `needed` bytes must fit.
fn grown(capacity: usize, needed: usize) -> usize {
    (capacity * 2).max(needed).clamp(FIRST_BYTES, CHUNK_BYTES)
}

impl PartialEq for Chunk {
    fn eq(&self, other: &Chunk) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Chunk {}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk")
            .field("len", &self.len())
            .field("shared", &self.is_shared())
            .finish()
    }
}

impl From<Vec<u8>> for Chunk {
    /// Takes over the vector's allocation.
    ///
    /// # Panics
    /// When it holds more than [`CHUNK_BYTES`].
    fn from(bytes: Vec<u8>) -> Chunk {
        assert!(bytes.len() <= CHUNK_BYTES, "longer than a chunk");
        Chunk {
            bytes: Arc::new(bytes),
        }
    }
}
