//! A byte string of counted chunks.
//!
//! Owns the order of the chunks and copy-on-write between clones: `clone` shares the list, a write copies the list
//! (pointers only) and the touched chunks. A single chunk needs no list. Does not know what the bytes mean. Invariant:
//! every chunk but the last holds exactly [`CHUNK_BYTES`], and the last is not empty.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::chunk::{CHUNK_BYTES, Chunk};

/// A byte string of chunks: O(1) `clone`, O(1) access by position, copied on write chunk by chunk.
#[derive(Clone, Default)]
pub struct Rope {
    chunks: Chunks,
    len: usize,
}

/// The chunks in order.
#[derive(Clone, Default)]
enum Chunks {
    /// Nothing is allocated.
    #[default]
    None,
    One(Chunk),
    /// At least two.
    Many(Arc<Vec<Chunk>>),
}

const _: () = assert!(size_of::<Rope>() <= 24);

impl Rope {
    /// An empty rope; allocates nothing.
    pub const fn new() -> Rope {
        Rope {
            chunks: Chunks::None,
            len: 0,
        }
    }

    /// A rope holding a copy of `bytes`.
    pub fn from_slice(bytes: &[u8]) -> Rope {
        let mut rope = Rope::new();
        rope.append(bytes);
        rope
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunks in order; all but the last hold [`CHUNK_BYTES`].
    #[inline]
    pub fn chunks(&self) -> &[Chunk] {
        match &self.chunks {
            Chunks::None => &[],
            Chunks::One(chunk) => std::slice::from_ref(chunk),
            Chunks::Many(list) => list,
        }
    }

    /// The byte at `index`, or `None` past the end.
    #[inline]
    pub fn byte(&self, index: usize) -> Option<u8> {
        self.chunks()
            .get(index / CHUNK_BYTES)?
            .as_slice()
            .get(index % CHUNK_BYTES)
            .copied()
    }

    /// The bytes of `range` as slices in order, none of them empty. A range that reaches past the end is cut there.
    pub fn slices(&self, range: impl RangeBounds<usize>) -> Slices<'_> {
        let (start, end) = self.clamp(&range);
        Slices {
            chunks: self.chunks(),
            start,
            end,
        }
    }

    /// The bytes of `range`, copied. A range that reaches past the end is cut there.
    pub fn copy_range(&self, range: impl RangeBounds<usize>) -> Vec<u8> {
        let (start, end) = self.clamp(&range);
        let mut out = Vec::with_capacity(end - start);
        self.slices(start..end)
            .for_each(|slice| out.extend_from_slice(slice));
        out
    }

    /// All bytes copied into one vector.
    pub fn to_vec(&self) -> Vec<u8> {
        self.copy_range(..)
    }

    /// The whole string when it lies in one piece (at most one chunk).
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        match self.chunks() {
            [] => Some(&[]),
            [only] => Some(only.as_slice()),
            _ => None,
        }
    }

    /// The same to be written, copied first if it is shared.
    pub fn contiguous_mut(&mut self) -> Option<&mut [u8]> {
        match self.chunks_mut() {
            [] => Some(&mut []),
            [only] => Some(only.make_mut()),
            _ => None,
        }
    }

    /// Bytes allocated for this rope: chunk capacities, counts and the list, shared or not.
    pub fn allocated_bytes(&self) -> usize {
        // The counted header of a chunk: two counts and a vector.
        let header = 2 * size_of::<usize>() + size_of::<Vec<u8>>();
        let chunks: usize = self
            .chunks()
            .iter()
            .map(|chunk| chunk.capacity() + header)
            .sum();
        match &self.chunks {
            Chunks::Many(list) => {
                let header = 2 * size_of::<usize>() + size_of::<Vec<Chunk>>();
                chunks + header + list.capacity() * size_of::<Chunk>()
            }
            _ => chunks,
        }
    }

    /// Appends a copy of `bytes`.
    pub fn append(&mut self, mut bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.len += bytes.len();
        if let Some(last) = self.last_mut() {
            let taken = last.extend(bytes);
            bytes = &bytes[taken..];
        }
        for part in bytes.chunks(CHUNK_BYTES) {
            self.add(Chunk::from_slice(part));
        }
    }

    /// Appends `chunk`, without copying when the rope ends on a chunk boundary.
    pub fn push_chunk(&mut self, chunk: Chunk) {
        if chunk.is_empty() {
            return;
        }
        if self.len.is_multiple_of(CHUNK_BYTES) {
            self.len += chunk.len();
            self.add(chunk);
        } else {
            self.append(chunk.as_slice());
        }
    }

    /// Appends `count` zero bytes. Many of them share their memory until they are written.
    pub fn append_zeroes(&mut self, mut count: usize) {
        if count == 0 {
            return;
        }
        self.len += count;
        if let Some(last) = self.last_mut() {
            count -= last.extend_zeroes(count);
        }
        if count >= 2 * CHUNK_BYTES {
            // Full chunks of zeroes are one and the same until they are written.
            let mut zeroes = Chunk::with_capacity(CHUNK_BYTES);
            zeroes.extend_zeroes(CHUNK_BYTES);
            while count >= CHUNK_BYTES {
                self.add(zeroes.clone());
                count -= CHUNK_BYTES;
            }
        }
        while count > 0 {
            let mut chunk = Chunk::with_capacity(count);
            count -= chunk.extend_zeroes(count);
            self.add(chunk);
        }
    }

    /// Overwrites the bytes from `offset` on with `bytes`, growing the rope as needed; a gap is filled with zeroes.
    /// An empty `bytes` changes nothing.
    pub fn write_at(&mut self, offset: usize, mut bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if offset > self.len {
            self.append_zeroes(offset - self.len);
        }
        let inside = bytes.len().min(self.len - offset);
        let (mut over, rest) = bytes.split_at(inside);
        bytes = rest;
        let chunks = self.chunks_mut();
        let mut position = offset;
        while !over.is_empty() {
            let chunk = &mut chunks[position / CHUNK_BYTES];
            let within = position % CHUNK_BYTES;
            let take = over.len().min(chunk.len() - within);
            if take == chunk.len() && chunk.is_shared() {
                *chunk = Chunk::from_slice(&over[..take]);
            } else {
                chunk.make_mut()[within..within + take].copy_from_slice(&over[..take]);
            }
            over = &over[take..];
            position += take;
        }
        self.append(bytes);
    }

    /// Replaces all bytes of a rope of one chunk without allocating, see [`Chunk::overwrite`]. False: nothing has changed.
    pub fn overwrite(&mut self, bytes: &[u8]) -> bool {
        let Chunks::One(chunk) = &mut self.chunks else {
            return false;
        };
        let done = !bytes.is_empty() && chunk.overwrite(bytes);
        if done {
            self.len = bytes.len();
        }
        done
    }

    /// Drops the bytes from `len` on. No effect when there are not that many.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.len = len;
        match len.div_ceil(CHUNK_BYTES) {
            0 => self.chunks = Chunks::None,
            1 => {
                if let Some(first) = self.chunks().first() {
                    self.chunks = Chunks::One(first.clone());
                }
            }
            count => {
                if let Chunks::Many(list) = &mut self.chunks {
                    Arc::make_mut(list).truncate(count);
                }
            }
        }
        if let Some(last) = self.last_mut() {
            last.truncate(len - (len - 1) / CHUNK_BYTES * CHUNK_BYTES);
        }
    }

    /// Whether the rope's bytes equal `bytes`.
    pub fn eq_slice(&self, bytes: &[u8]) -> bool {
        self.len == bytes.len()
            && self
                .chunks()
                .iter()
                .zip(bytes.chunks(CHUNK_BYTES))
                .all(|(chunk, part)| chunk.as_slice() == part)
    }

    /// The chunks, their list unshared.
    fn chunks_mut(&mut self) -> &mut [Chunk] {
        match &mut self.chunks {
            Chunks::None => &mut [],
            Chunks::One(chunk) => std::slice::from_mut(chunk),
            Chunks::Many(list) => Arc::make_mut(list).as_mut_slice(),
        }
    }

    fn last_mut(&mut self) -> Option<&mut Chunk> {
        self.chunks_mut().last_mut()
    }

    /// Adds a chunk behind full ones. Its bytes are counted already.
    fn add(&mut self, chunk: Chunk) {
        self.chunks = match std::mem::take(&mut self.chunks) {
            Chunks::None => Chunks::One(chunk),
            Chunks::One(first) => Chunks::Many(Arc::new(vec![first, chunk])),
            Chunks::Many(mut list) => {
                Arc::make_mut(&mut list).push(chunk);
                Chunks::Many(list)
            }
        };
    }

    /// `range` as a pair within the rope, start not after end.
    fn clamp(&self, range: &impl RangeBounds<usize>) -> (usize, usize) {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&end) => end.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        let end = end.min(self.len);
        (start.min(end), end)
    }
}

impl From<&[u8]> for Rope {
    fn from(bytes: &[u8]) -> Rope {
        Rope::from_slice(bytes)
    }
}

impl PartialEq for Rope {
    fn eq(&self, other: &Rope) -> bool {
        // Both are cut at the same positions, so chunk by chunk is byte by byte.
        self.len == other.len && self.chunks() == other.chunks()
    }
}

impl Eq for Rope {}

impl PartialEq<[u8]> for Rope {
    fn eq(&self, other: &[u8]) -> bool {
        self.eq_slice(other)
    }
}

impl fmt::Debug for Rope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rope")
            .field("len", &self.len)
            .field("chunks", &self.chunks().len())
            .finish()
    }
}

/// The slices of a range of a [`Rope`], in order.
#[derive(Clone, Debug)]
pub struct Slices<'a> {
    chunks: &'a [Chunk],
    start: usize,
    end: usize,
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.start >= self.end {
            return None;
        }
        let chunk = self.chunks.get(self.start / CHUNK_BYTES)?.as_slice();
        let from = self.start % CHUNK_BYTES;
        let to = chunk.len().min(from + (self.end - self.start));
        self.start += to - from;
        Some(&chunk[from..to])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.start >= self.end {
            return (0, Some(0));
        }
        let count = (self.end - 1) / CHUNK_BYTES - self.start / CHUNK_BYTES + 1;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Slices<'_> {}
