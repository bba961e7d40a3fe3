//! A vector whose clone is its snapshot.
//!
//! Owns a radix tree of counted nodes: items by position in leaves of 64, 64 nodes under each inner node. `clone` shares the
//! root; a write copies the shared nodes on its way, never more. Does not know what the items are. Invariants: all
//! leaves but the last are full; nodes grow by doubling, so that a short vector is one small allocation; the bytes allocated are kept.

use std::fmt;
use std::sync::Arc;

/// A vector with O(1) `clone`, O(log n) access by position, and copy-on-write between clones.
pub struct CowVec<T> {
    root: Option<Arc<Node<T>>>,
    len: usize,
    /// Levels of inner nodes above the leaves.
    height: u32,
    bytes: usize,
}

enum Node<T> {
    Leaf(Vec<T>),
    Inner(Vec<Arc<Node<T>>>),
}

const BITS: u32 = 6;
const WIDTH: usize = 1 << BITS;

/// The two counts before the contents of an `Arc`.
pub(crate) const COUNTS_BYTES: usize = 2 * size_of::<usize>();

impl<T> Default for CowVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for CowVec<T> {
    fn clone(&self) -> Self {
        Self {
            root: self.root.clone(),
            ..*self
        }
    }
}

impl<T> fmt::Debug for CowVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CowVec")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T: Clone> Clone for Node<T> {
    /// Keeps the room for more, so that a copy takes as many bytes as what it was copied from.
    fn clone(&self) -> Self {
        fn with_room<V: Clone>(items: &Vec<V>) -> Vec<V> {
            let mut copy = Vec::with_capacity(items.capacity());
            copy.extend_from_slice(items);
            copy
        }
        match self {
            Node::Leaf(items) => Node::Leaf(with_room(items)),
            Node::Inner(children) => Node::Inner(with_room(children)),
        }
    }
}

impl<T> Node<T> {
    /// What an empty node takes.
    const OWN_BYTES: usize = COUNTS_BYTES + size_of::<Self>();

    fn bytes(&self) -> usize {
        Self::OWN_BYTES
            + match self {
                Node::Leaf(items) => items.capacity() * size_of::<T>(),
                Node::Inner(children) => children.capacity() * size_of::<Arc<Self>>(),
            }
    }
}

impl<T> CowVec<T> {
    /// An empty vector; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            root: None,
            len: 0,
            height: 0,
            bytes: 0,
        }
    }

    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes allocated for the nodes, shared or not; not what items own elsewhere.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.bytes
    }

    /// The item at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        let mut node = self.root.as_deref()?;
        let mut shift = self.height * BITS;
        loop {
            match node {
                Node::Leaf(items) => return items.get(index % WIDTH),
                Node::Inner(children) => {
                    node = children.get((index >> shift) % WIDTH)?;
                    shift -= BITS;
                }
            }
        }
    }

    /// The last item.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map_while(|index| self.get(index))
    }
}

impl<T: Clone> CowVec<T> {
    /// The item at `index`, to be written: the shared nodes on the way are copied.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len {
            return None;
        }
        let mut node = Arc::make_mut(self.root.as_mut()?);
        let mut shift = self.height * BITS;
        loop {
            match node {
                Node::Leaf(items) => return items.get_mut(index % WIDTH),
                Node::Inner(children) => {
                    node = Arc::make_mut(children.get_mut((index >> shift) % WIDTH)?);
                    shift -= BITS;
                }
            }
        }
    }

    /// Appends an item.
    pub fn push(&mut self, item: T) {
        let Some(mut root) = self.root.take() else {
            self.root = Some(path_to(item, 0, &mut self.bytes));
            self.len = 1;
            return;
        };
        if self.len == WIDTH << (self.height * BITS) {
            let node = Node::Inner(vec![root]);
            self.bytes += node.bytes();
            root = Arc::new(node);
            self.height += 1;
        }
        push_below(&mut root, self.len, self.height, item, &mut self.bytes);
        self.root = Some(root);
        self.len += 1;
    }

    /// Removes the last item.
    pub fn pop(&mut self) -> Option<T> {
        let root = self.root.as_mut()?;
        let item = pop_below(root, &mut self.bytes);
        self.len -= 1;
        loop {
            let only = match root.as_ref() {
                Node::Leaf(items) if items.is_empty() => None,
                Node::Inner(children) if children.len() == 1 => children.first().map(Arc::clone),
                _ => break,
            };
            self.bytes -= root.bytes();
            match only {
                None => {
                    self.root = None;
                    break;
                }
                Some(child) => {
                    *root = child;
                    self.height -= 1;
                }
            }
        }
        item
    }

    /// Removes the item at `index` and puts the last one in its place.
    pub fn swap_remove(&mut self, index: usize) -> Option<T> {
        if index >= self.len {
            return None;
        }
        let last = self.pop()?;
        match self.get_mut(index) {
            Some(item) => Some(std::mem::replace(item, last)),
            None => Some(last),
        }
    }
}

/// Makes room for one more, by doubling.
fn make_room<V>(items: &mut Vec<V>, bytes: &mut usize) {
    if items.len() == items.capacity() {
        let before = items.capacity();
        items.reserve_exact(before.clamp(1, WIDTH));
        *bytes += (items.capacity() - before) * size_of::<V>();
    }
}

/// A leaf with `item`, under `level` inner nodes.
fn path_to<T>(item: T, level: u32, bytes: &mut usize) -> Arc<Node<T>> {
    let node = match level {
        0 => Node::Leaf(vec![item]),
        _ => Node::Inner(vec![path_to(item, level - 1, bytes)]),
    };
    *bytes += node.bytes();
    Arc::new(node)
}

fn push_below<T: Clone>(
    node: &mut Arc<Node<T>>,
    index: usize,
    level: u32,
    item: T,
    bytes: &mut usize,
) {
    match Arc::make_mut(node) {
        Node::Leaf(items) => {
            make_room(items, bytes);
            items.push(item);
        }
        Node::Inner(children) => match children.get_mut((index >> (level * BITS)) % WIDTH) {
            Some(child) => push_below(child, index, level - 1, item, bytes),
            None => {
                make_room(children, bytes);
                children.push(path_to(item, level - 1, bytes));
            }
        },
    }
}

/// Removes the last item below `node`, and the nodes below it that become empty.
fn pop_below<T: Clone>(node: &mut Arc<Node<T>>, bytes: &mut usize) -> Option<T> {
    match Arc::make_mut(node) {
        Node::Leaf(items) => items.pop(),
        Node::Inner(children) => {
            let last = children.last_mut()?;
            let item = pop_below(last, bytes);
            let is_empty = match last.as_ref() {
                Node::Leaf(items) => items.is_empty(),
                Node::Inner(children) => children.is_empty(),
            };
            if is_empty {
                *bytes -= last.bytes();
                children.pop();
            }
            item
        }
    }
}

#[cfg(test)]
#[path = "cow_vec/tests.rs"]
mod tests;
