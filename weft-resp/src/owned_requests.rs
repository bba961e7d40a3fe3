//! Requests that own their bytes, one behind the other: for whatever queues more than one.
//!
//! Owns one buffer for all of them, so that a queue that is filled and emptied again and again allocates nothing. Does not know how
//! requests look on the wire.

use crate::args::{Args, Requests};

/// So much memory stays when the queue is emptied.
const KEPT_BYTES: usize = 4 * 1024;

/// A queue of requests. Large arguments are shared, not copied.
#[derive(Debug, Default)]
pub struct OwnedRequests {
    bytes: Vec<u8>,
    requests: Requests,
    total: usize,
}

impl OwnedRequests {
    /// Appends a copy of a request.
    pub fn push(&mut self, args: Args<'_>) {
        self.requests.push_copy(args, &mut self.bytes);
        self.total += args.total_bytes();
    }

    /// Number of requests.
    #[inline]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// All requests in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Args<'_>> {
        self.requests.iter(&self.bytes)
    }

    /// Bytes of all arguments together.
    pub fn total_bytes(&self) -> usize {
        self.total
    }

    /// Forgets all requests, keeping a little memory for the next ones.
    pub fn clear(&mut self) {
        self.total = 0;
        if self.bytes.capacity() > KEPT_BYTES || self.requests.allocated_bytes() > KEPT_BYTES {
            *self = Self::default();
        } else {
            self.bytes.clear();
            self.requests.clear();
        }
    }

    /// Bytes of memory, large arguments included.
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity() + self.requests.allocated_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;

    fn owned(words: &[&[u8]]) -> OwnedArgs {
        OwnedArgs::from_slices(words)
    }

    #[test]
    fn requests_come_out_as_they_went_in() {
        let large = vec![b'x'; 100_000];
        let first = owned(&[b"SET", b"key", &large]);
        let second = owned(&[b"GET", b""]);
        let mut queue = OwnedRequests::default();
        assert!(queue.is_empty());
        queue.push(first.args());
        queue.push(second.args());
        let words: Vec<Vec<&[u8]>> = queue.iter().map(|args| args.iter().collect()).collect();
        assert_eq!(
            words,
            [vec![b"SET", &b"key"[..], &large], vec![b"GET", b""]]
        );
        assert_eq!((queue.len(), queue.total_bytes()), (2, 100_009));
        assert!(queue.allocated_bytes() > 100_000);
        let share = queue.iter().next().and_then(|args| args.rope(2).cloned());
        assert_eq!(share.as_ref(), first.args().rope(2));
        queue.clear();
        assert!(queue.is_empty());
        assert_eq!(queue.total_bytes(), 0);
        assert!(queue.allocated_bytes() <= 2 * KEPT_BYTES);
    }
}
