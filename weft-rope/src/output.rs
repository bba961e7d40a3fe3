//! What a session is going to send.
//!
//! Owns a sequence of byte runs and of counted chunk ranges, in order, and how much of it has been sent. Does not know
//! the protocol or the socket. Writers append to [`Output::tail`]; a tail that reached [`RUN_BYTES`] is sealed, so that
//! a reply of any size never moves again. Invariant: `queued` and `sent` describe exactly the bytes not yet sent.

use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;
use std::ops::Range;

use crate::chunk::{CHUNK_BYTES, Chunk};
use crate::rope::Rope;

/// A tail this long is sealed and a new one begun; also the most capacity that `clear` keeps.
const RUN_BYTES: usize = 64 * 1024;

/// A rope at least this long is lent to the socket instead of being copied: zero-copy begins to pay there.
const LEND_BYTES: usize = 16 * 1024;

/// A piece of a lent rope at most this long is copied all the same: cheaper than a slice of its own.
const PIECE_BYTES: usize = 1024;

/// A run at most this long is copied rather than moved when one output is appended to another.
const COPY_BYTES: usize = 4 * 1024;

/// Bytes to send: owned runs and counted chunk ranges, in order.
#[derive(Default)]
pub struct Output {
    sealed: VecDeque<Segment>,
    tail: Vec<u8>,
    /// Bytes of the first segment (of the tail, when nothing is sealed) already sent.
    sent: usize,
    /// Bytes in `sealed`, those already sent included.
    queued: usize,
    /// Segments dropped from the front so far: makes a [`Mark`] independent of sending.
    dropped: u64,
}

/// A position in an [`Output`] at which bytes are inserted later. Marks are used last in, first out, and everything
/// from the earliest mark on must stay unsent meanwhile.
#[derive(Debug)]
#[must_use]
pub struct Mark {
    segment: u64,
    offset: usize,
}

enum Segment {
    Owned(Vec<u8>),
    Counted(Chunk, Range<usize>),
}

impl Segment {
    fn bytes(&self) -> &[u8] {
        match self {
            Segment::Owned(bytes) => bytes,
            Segment::Counted(chunk, range) => &chunk.as_slice()[range.clone()],
        }
    }
}

impl Output {
    /// An empty output; allocates nothing.
    pub fn new() -> Output {
        Output::default()
    }

    /// The run to append to. Only append: bytes already there may be half sent, and positions in it may be marked.
    #[inline]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        if self.tail.len() >= RUN_BYTES {
            self.seal();
        }
        &mut self.tail
    }

    /// Appends the bytes `range` of `chunk` without copying them. A range past the chunk's end is cut there.
    pub fn push_counted(&mut self, chunk: Chunk, range: Range<usize>) {
        let end = range.end.min(chunk.len());
        if range.start >= end {
            return;
        }
        self.seal();
        self.queued += end - range.start;
        self.sealed
            .push_back(Segment::Counted(chunk, range.start..end));
    }

    /// Appends the bytes of `rope`: lent when there are at least 16 KiB of them, otherwise copied.
    pub fn push_rope(&mut self, rope: &Rope) {
        self.push_rope_range(rope, 0..rope.len());
    }

    /// The same for a part of `rope`. A range beyond its end is cut off.
    pub fn push_rope_range(&mut self, rope: &Rope, range: Range<usize>) {
        let end = range.end.min(rope.len());
        let mut start = range.start;
        let lent = end.saturating_sub(start) >= LEND_BYTES;
        while start < end {
            let chunk = &rope.chunks()[start / CHUNK_BYTES];
            let from = start % CHUNK_BYTES;
            let to = chunk.len().min(from + (end - start));
            if lent && to - from > PIECE_BYTES {
                self.push_counted(chunk.clone(), from..to);
            } else {
                self.tail().extend_from_slice(&chunk.as_slice()[from..to]);
            }
            start += to - from;
        }
    }

    /// Bytes not yet sent.
    #[inline]
    pub fn len(&self) -> usize {
        self.queued + self.tail.len() - self.sent
    }

    /// Whether everything has been sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory held: capacities of the runs plus the counted ranges.
    pub fn allocated_bytes(&self) -> usize {
        let sealed: usize = self
            .sealed
            .iter()
            .map(|segment| match segment {
                Segment::Owned(bytes) => bytes.capacity(),
                Segment::Counted(_, range) => range.len(),
            })
            .sum();
        sealed + self.sealed.capacity() * size_of::<Segment>() + self.tail.capacity()
    }

    /// Fills `slices` with the next bytes to send, in order, and returns how many were filled.
    pub fn io_slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for (slot, bytes) in slices.iter_mut().zip(self.runs()) {
            *slot = IoSlice::new(bytes);
            filled += 1;
        }
        filled
    }

    /// The bytes not yet sent, as slices in order, none of them empty.
    pub fn runs(&self) -> impl Iterator<Item = &[u8]> {
        let mut skip = self.sent;
        self.sealed
            .iter()
            .map(Segment::bytes)
            .chain(std::iter::once(self.tail.as_slice()))
            .map(move |bytes| &bytes[std::mem::take(&mut skip)..])
            .filter(|bytes| !bytes.is_empty())
    }

    /// The bytes not yet sent, copied.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        self.runs().for_each(|bytes| out.extend_from_slice(bytes));
        out
    }

    /// Notes that the next `count` bytes have been sent and frees what they held.
    ///
    /// # Panics
    /// When fewer bytes were left: the count of a send can only come from these bytes.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "more bytes sent than there were");
        self.sent += count;
        while let Some(first) = self.sealed.front() {
            let len = first.bytes().len();
            if self.sent < len {
                return;
            }
            self.sent -= len;
            self.queued -= len;
            self.dropped += 1;
            self.sealed.pop_front();
        }
        if self.sent == self.tail.len() {
            self.clear();
        }
    }

    /// Drops everything unsent. Keeps the capacity of one run, at most 64 KiB.
    pub fn clear(&mut self) {
        self.dropped += self.sealed.len() as u64;
        if self.sealed.capacity() > 64 {
            self.sealed = VecDeque::new();
        } else {
            self.sealed.clear();
        }
        if self.tail.capacity() > RUN_BYTES {
            self.tail = Vec::new();
        } else {
            self.tail.clear();
        }
        self.sent = 0;
        self.queued = 0;
    }

    /// Moves everything unsent in `other` to the end of this output; `other` is empty afterwards.
    pub fn append(&mut self, other: &mut Output) {
        if other.is_empty() {
            other.clear();
            return;
        }
        if self.is_empty() && self.sealed.is_empty() {
            // Swapping leaves `other` this one's capacity.
            self.clear();
            std::mem::swap(self, other);
            std::mem::swap(&mut self.dropped, &mut other.dropped);
            return;
        }
        let mut skip = std::mem::take(&mut other.sent);
        for segment in other.sealed.drain(..) {
            let skip = std::mem::take(&mut skip);
            match segment {
                Segment::Owned(bytes) if skip > 0 || bytes.len() <= COPY_BYTES => {
                    self.tail().extend_from_slice(&bytes[skip..]);
                }
                Segment::Owned(bytes) => {
                    self.seal();
                    self.queued += bytes.len();
                    self.sealed.push_back(Segment::Owned(bytes));
                }
                Segment::Counted(chunk, range) => {
                    self.push_counted(chunk, range.start + skip..range.end)
                }
            }
        }
        if skip == 0 && other.tail.len() > COPY_BYTES {
            self.seal();
            std::mem::swap(&mut self.tail, &mut other.tail);
        } else {
            self.tail().extend_from_slice(&other.tail[skip..]);
        }
        other.clear();
    }

    /// Marks the present end, for [`Output::insert`].
    pub fn mark(&mut self) -> Mark {
        let offset = self.tail().len();
        Mark {
            segment: self.dropped + self.sealed.len() as u64,
            offset,
        }
    }

    /// Inserts `bytes` at `mark`.
    ///
    /// # Panics
    /// When the marked run was sent or cleared in the meantime.
    pub fn insert(&mut self, mark: Mark, bytes: &[u8]) {
        let index = mark
            .segment
            .checked_sub(self.dropped)
            .expect("marked bytes were sent") as usize;
        let run = if index == self.sealed.len() {
            &mut self.tail
        } else if let Some(Segment::Owned(run)) = self.sealed.get_mut(index) {
            self.queued += bytes.len();
            run
        } else {
            // The mark stood at the end of a run, and a run that was empty is never sealed: a counted range took the
            // place it would have had.
            self.queued += bytes.len();
            self.sealed.insert(index, Segment::Owned(bytes.to_vec()));
            return;
        };
        insert_at(run, mark.offset, bytes);
    }

    /// Ends the tail, if there is something in it.
    #[cold]
    fn seal(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let tail = std::mem::take(&mut self.tail);
        self.queued += tail.len();
        self.sealed.push_back(Segment::Owned(tail));
    }
}

/// Inserts `bytes` into `run` at `offset`.
fn insert_at(run: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let old = run.len();
    assert!(offset <= old, "marked bytes were cleared");
    run.extend_from_slice(bytes);
    run.copy_within(offset..old, offset + bytes.len());
    run[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("len", &self.len())
            .field("sealed", &self.sealed.len())
            .finish()
    }
}
