//! A copy-on-write B+tree whose items are found by position, by what they are ordered by, or both.
//!
//! Owns the inner nodes: how leaves hang together, how many items and bytes lie below each, and where the first one of them
//! stands in the order. What an item is, and when a leaf is too full or too sparse, the [`Leaf`] says. Knows no values, keys
//! or clocks.
//!
//! Nodes are counted. A clone of the tree shares all of them; changing one copies the shared nodes on its way and no others.
//! Invariants: all leaves are equally deep and none is empty; an inner node has at most [`FANOUT`] children and, unless it
//! lies at either edge of the tree, at least [`CHILDREN_MIN`]; the root of inner nodes has two or more. What a node says of
//! the items, the bytes and the first item below it is exact.

mod change;
mod walk;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

pub use self::change::Detached;
pub use self::walk::{Leaves, LeavesBackward};

/// The most children of an inner node.
pub const FANOUT: usize = 32;
/// The fewest children of an inner node that has neighbours on both sides.
pub const CHILDREN_MIN: usize = FANOUT / 4;
/// Two neighbours with no more children than this together become one.
const MERGED_MAX: usize = FANOUT * 3 / 4;
/// A count that every allocation behind an `Arc` begins with.
const ARC_BYTES: usize = 2 * size_of::<usize>();

/// A run of items, the unit of copying: some kilobytes at most, so that a copy takes less than a microsecond.
pub trait Leaf: Clone {
    /// Where an item stands in the order; `()` if only positions count.
    type Bound: Clone;

    /// How many items there are. Takes the same time whatever is in it, as do all of these but the changing ones.
    fn items(&self) -> usize;

    /// Bytes that it has allocated beside itself.
    fn heap_bytes(&self) -> usize;

    /// Where the first item stands. Asked only if there is one.
    fn bound(&self) -> Self::Bound;

    /// Whether it has to be split: it is then, as often as it says so.
    fn is_full(&self) -> bool;

    /// Keeps the first part and returns the rest, neither empty.
    fn split(&mut self) -> Self;

    /// Whether it should be united with a neighbour.
    fn is_sparse(&self) -> bool;

    /// Whether `right`, the next leaf, can be united with it without making it full.
    fn has_room_for(&self, right: &Self) -> bool;

    /// Appends the items of the next leaf, for which there is room.
    fn absorb(&mut self, right: &Self);

    /// Removes the items in this range of offsets.
    fn remove(&mut self, range: Range<usize>);
}

/// The tree.
pub struct Tree<L: Leaf> {
    root: Option<Child<L>>,
}

type Children<L> = SmallVec<[Child<L>; FANOUT]>;

/// A node and what its parent knows of it.
#[derive(Clone)]
struct Child<L: Leaf> {
    /// Items below it, at least one.
    items: u64,
    /// Bytes allocated below it and for itself, as if nothing were shared.
    bytes: usize,
    /// Where its first item stands.
    bound: L::Bound,
    node: Node<L>,
}

#[derive(Clone)]
enum Node<L: Leaf> {
    Leaf(Arc<L>),
    Inner(Arc<Inner<L>>),
}

#[derive(Clone)]
struct Inner<L: Leaf> {
    children: Children<L>,
}

impl<L: Leaf> Child<L> {
    fn of_leaf(leaf: L) -> Self {
        Self {
            items: leaf.items() as u64,
            bytes: leaf_bytes(&leaf),
            bound: leaf.bound(),
            node: Node::Leaf(Arc::new(leaf)),
        }
    }

    /// A node of these children, at least one.
    fn of_children(children: Children<L>) -> Self {
        Self {
            items: items_of(&children),
            bytes: inner_bytes(&children),
            bound: children[0].bound.clone(),
            node: Node::Inner(Arc::new(Inner { children })),
        }
    }
}

fn leaf_bytes<L: Leaf>(leaf: &L) -> usize {
    ARC_BYTES + size_of::<L>() + leaf.heap_bytes()
}

fn items_of<L: Leaf>(children: &[Child<L>]) -> u64 {
    children.iter().map(|child| child.items).sum()
}

fn inner_bytes<L: Leaf>(children: &[Child<L>]) -> usize {
    let below: usize = children.iter().map(|child| child.bytes).sum();
    ARC_BYTES + size_of::<Inner<L>>() + below
}

/// The child that has the item at `index`, which becomes its index there.
#[inline]
fn child_at<L: Leaf>(children: &[Child<L>], index: &mut u64) -> usize {
    for (at, child) in children.iter().enumerate() {
        if *index < child.items {
            return at;
        }
        *index -= child.items;
    }
    unreachable!("a node has as many items as its parent says");
}

/// The last child for whose first item `is_before` says true, else the first one.
#[inline]
fn child_before<L: Leaf>(
    children: &[Child<L>],
    is_before: &mut impl FnMut(&L::Bound) -> bool,
) -> usize {
    let later = &children[1..];
    later.partition_point(|child| is_before(&child.bound))
}

impl<L: Leaf> Tree<L> {
    /// A tree without items; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { root: None }
    }

    /// A tree of these leaves in this order, in one pass. Empty ones are left out, full ones split.
    #[must_use]
    pub fn from_leaves(leaves: impl IntoIterator<Item = L>) -> Self {
        let mut level: Vec<Child<L>> = Vec::new();
        for mut leaf in leaves {
            let siblings = change::whole_leaves(&mut leaf, Vec::new());
            if leaf.items() > 0 {
                level.push(Child::of_leaf(leaf));
                level.extend(siblings);
            }
        }
        while level.len() > 1 {
            level = change::spread(level);
        }
        Self { root: level.pop() }
    }

    /// How many items there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.root.as_ref().map_or(0, |root| root.items)
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Bytes allocated for nodes and leaves, as if none were shared. A count that is kept.
    #[inline]
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.bytes)
    }

    /// The leaf that has the item at `index`, and the item's offset in it.
    #[must_use]
    pub fn at(&self, mut index: u64) -> Option<(&L, usize)> {
        let root = self.root.as_ref().filter(|root| index < root.items)?;
        let leaf = root.leaf_below(|children| child_at(children, &mut index));
        Some((leaf, index as usize))
    }

    /// The first leaf.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<&L> {
        Some(self.root.as_ref()?.leaf_below(|_| 0))
    }

    /// The last leaf.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<&L> {
        Some(
            self.root
                .as_ref()?
                .leaf_below(|children| children.len() - 1),
        )
    }

    /// The last leaf for whose first item `is_before` says true, else the first leaf; and the index of its first item.
    /// `is_before` has to say true up to some point of the order and false from there on.
    pub fn seek(&self, mut is_before: impl FnMut(&L::Bound) -> bool) -> Option<(u64, &L)> {
        let mut first = 0;
        let leaf = self.root.as_ref()?.leaf_below(|children| {
            let at = child_before(children, &mut is_before);
            first += items_of(&children[..at]);
            at
        });
        Some((first, leaf))
    }
}

impl<L: Leaf> Child<L> {
    /// The leaf that is reached by taking the child that `choose` says at every node.
    #[inline]
    fn leaf_below(&self, mut choose: impl FnMut(&[Child<L>]) -> usize) -> &L {
        let mut node = &self.node;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf,
                Node::Inner(inner) => node = &inner.children[choose(&inner.children)].node,
            }
        }
    }
}

impl<L: Leaf> Default for Tree<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: Leaf> Clone for Tree<L> {
    /// A snapshot, in the same time whatever the size.
    fn clone(&self) -> Self {
        Self {
            root: self.root.clone(),
        }
    }
}

impl<L: Leaf> fmt::Debug for Tree<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("items", &self.len())
            .field("allocated_bytes", &self.allocated_bytes())
            .finish()
    }
}
