//! The fields that expire, in the order in which they do.
use std::ops::Range;

use crate::slab::Handle;
use crate::tree::{Leaf, Tree};

/// Handles of fields by their deadlines. `clone` is O(1) and is a snapshot.
#[derive(Clone, Debug, Default)]
pub(super) struct Deadlines(Tree<Run>);

/// A deadline in 6 bytes and a handle in 4, high bytes first: their order is that of the bytes.
type Item = [u8; 10];

/// With this many items a leaf is split.
const FULL: usize = 128;
const SPARSE_BELOW: usize = FULL / 4;
const UNITED_MAX: usize = FULL * 3 / 4;

#[derive(Clone, Debug)]
struct Run(Vec<Item>);

fn item(deadline: u64, handle: u32) -> Item {
    let mut item = Item::default();
    let (front, back) = item.split_at_mut(6);
    front.copy_from_slice(&deadline.to_be_bytes()[2..]);
    back.copy_from_slice(&handle.to_be_bytes());
    item
}

fn parts(item: &Item) -> (u64, Handle) {
    let deadline = item[..6]
        .iter()
        .fold(0, |ms, &byte| ms << 8 | u64::from(byte));
    let handle = item[6..]
        .iter()
        .fold(0, |bits, &byte| bits << 8 | u32::from(byte));
    (deadline, Handle::from_bits(handle))
}

impl Deadlines {
    pub(super) fn insert(&mut self, deadline: u64, handle: Handle) {
        let item = item(deadline, handle.bits());
        if self.0.is_empty() {
            self.0.push_last(Run(vec![item]));
            return;
        }
        self.0.splice_where(
            |bound| *bound <= item,
            |leaf, _, _| {
                let at = leaf.0.partition_point(|other| *other < item);
                leaf.insert(at, item);
            },
        );
    }

    pub(super) fn remove(&mut self, deadline: u64, handle: Handle) {
        let item = item(deadline, handle.bits());
        self.0.splice_where(
            |bound| *bound <= item,
            |leaf, _, _| {
                if let Ok(at) = leaf.0.binary_search(&item) {
                    leaf.remove(at..at + 1);
                }
            },
        );
    }

    /// The field that expires first.
    pub(super) fn first(&self) -> Option<(u64, Handle)> {
        self.0.first().and_then(|leaf| leaf.0.first()).map(parts)
    }

    /// How many expire by then.
    pub(super) fn count_by(&self, now_ms: u64) -> usize {
        let end = item(now_ms.saturating_add(1).min(super::DEADLINE_END), 0);
        let Some((first, leaf)) = self.0.seek(|bound| *bound < end) else {
            return 0;
        };
        first as usize + leaf.0.partition_point(|item| *item < end)
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.0.allocated_bytes()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len() as usize
    }
}

impl Run {
    fn insert(&mut self, at: usize, item: Item) {
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(self.0.len().clamp(4, 16));
        }
        self.0.insert(at, item);
    }
}

impl Leaf for Run {
    type Bound = Item;

    fn items(&self) -> usize {
        self.0.len()
    }

    fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Item>()
    }

    fn bound(&self) -> Item {
        self.0.first().copied().unwrap_or_default()
    }

    fn is_full(&self) -> bool {
        self.0.len() >= FULL
    }

    fn split(&mut self) -> Self {
        let rest = self.0.split_off(self.0.len() / 2);
        self.0.shrink_to_fit();
        Self(rest)
    }

    fn is_sparse(&self) -> bool {
        self.0.len() < SPARSE_BELOW
    }

    fn has_room_for(&self, right: &Self) -> bool {
        self.0.len() + right.0.len() <= UNITED_MAX
    }

    fn absorb(&mut self, right: &Self) {
        self.0.extend_from_slice(&right.0);
    }

    fn remove(&mut self, range: Range<usize>) {
        self.0.drain(range);
    }
}
