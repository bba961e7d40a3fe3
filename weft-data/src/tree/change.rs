//! Changing a tree: one leaf, its ends, or a range.
//!
//! Every change goes down one path (a range: two) and makes good on the way back up: nodes that became too full are split,
//! those that became too poor are united with a neighbour or take from it.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{
    CHILDREN_MIN, Child, Children, FANOUT, Leaf, MERGED_MAX, Node, Tree, child_at, child_before,
    inner_bytes, items_of, leaf_bytes,
};

impl<L: Leaf> Tree<L> {
    /// Lets `act` change the leaf that has the item at `index`, which gets the item's offset in it. None, and nothing is done,
    /// if there is no such item.
    pub fn edit_at<R>(&mut self, index: u64, act: impl FnOnce(&mut L, usize) -> R) -> Option<R> {
        self.splice_at(index, |leaf, offset, _| act(leaf, offset))
    }

    /// The same, and what `act` puts into the vector becomes leaves that follow the changed one.
    pub fn splice_at<R>(
        &mut self,
        index: u64,
        act: impl FnOnce(&mut L, usize, &mut Vec<L>) -> R,
    ) -> Option<R> {
        if index >= self.len() {
            return None;
        }
        let left = Cell::new(index);
        let choose = |children: &[Child<L>]| {
            let mut index = left.get();
            let at = child_at(children, &mut index);
            left.set(index);
            at
        };
        self.change(choose, |leaf, more| act(leaf, left.get() as usize, more))
    }

    /// Lets `act` change the leaf that [`Tree::seek`] finds, which gets the index of its first item, and the vector for leaves
    /// that follow it. None if the tree is empty.
    pub fn splice_where<R>(
        &mut self,
        mut is_before: impl FnMut(&L::Bound) -> bool,
        act: impl FnOnce(&mut L, u64, &mut Vec<L>) -> R,
    ) -> Option<R> {
        let first = Cell::new(0);
        let choose = |children: &[Child<L>]| {
            let at = child_before(children, &mut is_before);
            first.set(first.get() + items_of(&children[..at]));
            at
        };
        self.change(choose, |leaf, more| act(leaf, first.get(), more))
    }

    /// Lets `act` change the first leaf, and put leaves behind it. None if the tree is empty.
    #[inline]
    pub fn splice_first<R>(&mut self, act: impl FnOnce(&mut L, &mut Vec<L>) -> R) -> Option<R> {
        self.change(|_| 0, act)
    }

    /// Lets `act` change the last leaf, and put leaves behind it. None if the tree is empty.
    #[inline]
    pub fn splice_last<R>(&mut self, act: impl FnOnce(&mut L, &mut Vec<L>) -> R) -> Option<R> {
        self.change(|children| children.len() - 1, act)
    }

    /// Puts a leaf, unless it is empty, before all others.
    pub fn push_first(&mut self, leaf: L) {
        if self.is_empty() {
            *self = Self::from_leaves([leaf]);
            return;
        }
        self.splice_first(|first, more| more.push(std::mem::replace(first, leaf)));
    }

    /// Puts a leaf, unless it is empty, behind all others.
    pub fn push_last(&mut self, leaf: L) {
        if self.is_empty() {
            *self = Self::from_leaves([leaf]);
            return;
        }
        self.splice_last(|_, more| more.push(leaf));
    }

    /// Removes the items in the range, as far as there are any, and gives each leaf that loses some with their offsets: the
    /// leaf as it was. Takes the time of O(log n) nodes and of what is removed.
    pub fn remove_range(&mut self, range: Range<u64>, mut each: impl FnMut(&L, Range<usize>)) {
        let detached = self.detach(range, &mut each);
        detached.each_leaf(|leaf| each(leaf, 0..leaf.items()));
    }

    /// Takes the items in the range out, as far as there are any, in the time of O(log n) nodes. `cut` gets the leaves, two at
    /// most, that lose only some, with their offsets; whole ones are returned to be looked at, and freed, by and by.
    pub fn detach(
        &mut self,
        range: Range<u64>,
        mut cut: impl FnMut(&L, Range<usize>),
    ) -> Detached<L> {
        let mut detached = Detached { parts: Vec::new() };
        let range = range.start..range.end.min(self.len());
        if range.is_empty() {
            return detached;
        }
        if range == (0..self.len()) {
            detached.parts.extend(self.root.take());
            return detached;
        }
        if let Some(root) = &mut self.root {
            cut_out(root, range, &mut cut, &mut detached.parts);
        }
        self.lower_root();
        detached
    }

    fn change<R>(
        &mut self,
        mut choose: impl FnMut(&[Child<L>]) -> usize,
        act: impl FnOnce(&mut L, &mut Vec<L>) -> R,
    ) -> Option<R> {
        let root = self.root.as_mut()?;
        let changed = change(root, true, &mut choose, act);
        if !changed.siblings.is_empty() {
            let mut level = changed.siblings;
            level.insert(0, self.root.take()?);
            while level.len() > 1 {
                level = spread(level);
            }
            self.root = level.pop();
        } else if changed.poor {
            self.lower_root();
        }
        Some(changed.result)
    }

    /// Takes away root nodes that have one child or none.
    fn lower_root(&mut self) {
        while let Some(root) = &mut self.root {
            match &mut root.node {
                _ if root.items == 0 => self.root = None,
                Node::Inner(inner) if inner.children.len() == 1 => {
                    self.root = Arc::make_mut(inner).children.pop();
                }
                _ => return,
            }
        }
    }
}

/// What a range was taken out of: whole parts of a tree, apart from it.
pub struct Detached<L: Leaf> {
    parts: Vec<Child<L>>,
}

impl<L: Leaf> Detached<L> {
    /// Gives all leaves in order.
    pub fn each_leaf(&self, mut each: impl FnMut(&L)) {
        self.parts.iter().for_each(|part| part.each_leaf(&mut each));
    }

    /// Bytes allocated for them, as if none were shared.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

impl<L: Leaf> fmt::Debug for Detached<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detached")
            .field("items", &items_of(&self.parts))
            .field("allocated_bytes", &self.allocated_bytes())
            .finish()
    }
}

/// What came of changing a leaf, for the node above.
struct Changed<L: Leaf, R> {
    result: R,
    /// Nodes that have to follow the one that was changed.
    siblings: Vec<Child<L>>,
    /// The node has lost something and has become empty, sparse or poor.
    poor: bool,
}

/// Changes the leaf below `child` that `choose` leads to. `is_last`: nothing in the tree follows `child`.
fn change<L: Leaf, R>(
    child: &mut Child<L>,
    is_last: bool,
    choose: &mut impl FnMut(&[Child<L>]) -> usize,
    act: impl FnOnce(&mut L, &mut Vec<L>) -> R,
) -> Changed<L, R> {
    match &mut child.node {
        Node::Leaf(leaf) => {
            let leaf = Arc::make_mut(leaf);
            let (items, sparse) = (leaf.items(), leaf.is_sparse());
            let mut more = Vec::new();
            let result = act(leaf, &mut more);
            let siblings = if more.is_empty() && !leaf.is_full() {
                Vec::new()
            } else {
                whole_leaves(leaf, more)
            };
            let left = leaf.items();
            child.items = left as u64;
            child.bytes = leaf_bytes(leaf);
            if left > 0 {
                child.bound = leaf.bound();
            }
            Changed {
                result,
                siblings,
                poor: left == 0 || (leaf.is_sparse() && (left < items || !sparse)),
            }
        }
        Node::Inner(inner) => {
            let children = &mut Arc::make_mut(inner).children;
            let (count, at) = (children.len(), choose(children));
            let below = &mut children[at];
            let (items, bytes) = (below.items, below.bytes);
            let is_last = is_last && at + 1 == count;
            let changed = change(below, is_last, choose, act);
            let mut siblings = Vec::new();
            // A leaf that is sparse often stays so, beside full ones.
            if changed.siblings.is_empty() && !(changed.poor && can_mend(children, at)) {
                let below = &children[at];
                child.items = child.items - items + below.items;
                child.bytes = child.bytes - bytes + below.bytes;
                if at == 0 {
                    child.bound = below.bound.clone();
                }
            } else {
                if changed.siblings.is_empty() {
                    mend(children, at);
                } else {
                    siblings = adopt(children, at + 1, changed.siblings, is_last);
                }
                recount(child);
            }
            let left = child_count(child);
            Changed {
                result: changed.result,
                siblings,
                poor: left < CHILDREN_MIN && left < count,
            }
        }
    }
}

/// Splits a leaf and those that are to follow it until none is full, and drops the empty ones.
pub(super) fn whole_leaves<L: Leaf>(leaf: &mut L, more: Vec<L>) -> Vec<Child<L>> {
    let mut waiting: Vec<L> = more.into_iter().rev().collect();
    let mut siblings = Vec::new();
    while leaf.is_full() {
        waiting.push(leaf.split());
    }
    while let Some(mut next) = waiting.pop() {
        while next.is_full() {
            waiting.push(next.split());
        }
        if leaf.items() == 0 {
            *leaf = next;
        } else if next.items() > 0 {
            siblings.push(Child::of_leaf(next));
        }
    }
    siblings
}

/// Inserts children at a place. If they are too many, the node keeps the first ones and nodes of the others are returned.
fn adopt<L: Leaf>(
    children: &mut Children<L>,
    at: usize,
    siblings: Vec<Child<L>>,
    is_last: bool,
) -> Vec<Child<L>> {
    if children.len() + siblings.len() <= FANOUT {
        children.insert_many(at, siblings);
        return Vec::new();
    }
    // Whoever appends to the tree leaves full nodes behind.
    let keeps_full = is_last && at == children.len();
    let mut all: Vec<Child<L>> = children.drain(..).collect();
    all.splice(at..at, siblings);
    let kept = if keeps_full {
        FANOUT
    } else {
        all.len().div_ceil(all.len().div_ceil(FANOUT))
    };
    let rest = all.split_off(kept);
    children.extend(all);
    spread(rest)
}

/// Makes as few nodes as possible of these children, all about equally full.
pub(super) fn spread<L: Leaf>(children: Vec<Child<L>>) -> Vec<Child<L>> {
    let nodes = children.len().div_ceil(FANOUT);
    let mut parents = Vec::with_capacity(nodes);
    let mut left = children.len();
    let mut children = children.into_iter();
    while left > 0 {
        let taken = left.div_ceil(nodes - parents.len());
        parents.push(Child::of_children(children.by_ref().take(taken).collect()));
        left -= taken;
    }
    parents
}

fn child_count<L: Leaf>(child: &Child<L>) -> usize {
    match &child.node {
        Node::Leaf(_) => 0,
        Node::Inner(inner) => inner.children.len(),
    }
}

/// Finds anew what a node's parent knows of it.
fn recount<L: Leaf>(child: &mut Child<L>) {
    let Node::Inner(inner) = &child.node else {
        return;
    };
    let children = &inner.children;
    child.items = items_of(children);
    child.bytes = inner_bytes(children);
    if let Some(first) = children.first() {
        child.bound = first.bound.clone();
    }
}

/// Makes good that the child at this place, if there is one, may be empty, sparse or poor.
fn mend<L: Leaf>(children: &mut Children<L>, mut at: usize) {
    loop {
        let Some(child) = children.get(at) else {
            return;
        };
        if child.items == 0 {
            children.remove(at);
            return;
        }
        if children.len() == 1 {
            return;
        }
        let (before, after) = (at > 0, at + 1 < children.len());
        match &child.node {
            Node::Leaf(leaf) => {
                if !leaf.is_sparse() {
                    return;
                }
                if after && unite_leaves(children, at) {
                    continue;
                }
                if before && unite_leaves(children, at - 1) {
                    at -= 1;
                    continue;
                }
                return;
            }
            Node::Inner(inner) => {
                if inner.children.len() >= CHILDREN_MIN {
                    return;
                }
                let leftward = before
                    && (!after || child_count(&children[at - 1]) <= child_count(&children[at + 1]));
                let first = if leftward { at - 1 } else { at };
                unite_nodes(children, first);
                at = first;
            }
        }
    }
}

/// Whether mending this child, which may be empty, sparse or poor, would change anything.
#[inline]
fn can_mend<L: Leaf>(children: &Children<L>, at: usize) -> bool {
    let Node::Leaf(leaf) = &children[at].node else {
        return true;
    };
    let fits = |left: &Child<L>, right: &Child<L>| match (&left.node, &right.node) {
        (Node::Leaf(left), Node::Leaf(right)) => left.has_room_for(right),
        _ => false,
    };
    leaf.items() == 0
        || children
            .get(at + 1)
            .is_some_and(|next| fits(&children[at], next))
        || at > 0 && fits(&children[at - 1], &children[at])
}

/// Unites the leaf at this place with the next one, if there is room.
fn unite_leaves<L: Leaf>(children: &mut Children<L>, at: usize) -> bool {
    let (child, next) = match children.get_mut(at..at + 2) {
        Some([child, next]) => (child, next),
        _ => return false,
    };
    let (Node::Leaf(leaf), Node::Leaf(right)) = (&mut child.node, &next.node) else {
        return false;
    };
    if next.items > 0 {
        if !leaf.has_room_for(right) {
            return false;
        }
        let leaf = Arc::make_mut(leaf);
        leaf.absorb(right);
        child.items = leaf.items() as u64;
        child.bytes = leaf_bytes(leaf);
    }
    children.remove(at + 1);
    true
}

/// Makes one node of the one at this place and the next, or two that are equally full.
fn unite_nodes<L: Leaf>(children: &mut Children<L>, at: usize) {
    let next = children.remove(at + 1);
    let child = &mut children[at];
    let (Node::Inner(inner), Node::Inner(right)) = (&mut child.node, next.node) else {
        return;
    };
    let inner = Arc::make_mut(inner);
    let seam = inner.children.len();
    let right = Arc::unwrap_or_clone(right).children;
    let mut all = std::mem::take(&mut inner.children);
    all.extend(right);
    // Only nodes at what was an edge can be poor still.
    mend(&mut all, seam);
    if seam > 0 {
        mend(&mut all, seam - 1);
    }
    let kept = if all.len() <= MERGED_MAX {
        all.len()
    } else {
        all.len() / 2
    };
    inner.children = all.drain(..kept).collect();
    recount(child);
    if !all.is_empty() {
        children.insert(at + 1, Child::of_children(all.drain(..).collect()));
    }
}

/// Takes the items in a range, which are not all, from below `child`.
fn cut_out<L: Leaf>(
    child: &mut Child<L>,
    range: Range<u64>,
    cut: &mut impl FnMut(&L, Range<usize>),
    detached: &mut Vec<Child<L>>,
) {
    match &mut child.node {
        Node::Leaf(leaf) => {
            let range = range.start as usize..range.end as usize;
            cut(leaf, range.clone());
            let leaf = Arc::make_mut(leaf);
            leaf.remove(range);
            child.items = leaf.items() as u64;
            child.bytes = leaf_bytes(leaf);
            child.bound = leaf.bound();
        }
        Node::Inner(inner) => {
            let children = &mut Arc::make_mut(inner).children;
            let mut start = range.start;
            let first = child_at(children, &mut start);
            let mut left = range.end - range.start;
            let mut whole = first..first;
            for at in first..children.len() {
                if left == 0 {
                    break;
                }
                let below = &mut children[at];
                let taken = left.min(below.items - start);
                if taken == below.items {
                    if whole.is_empty() {
                        whole.start = at;
                    }
                    whole.end = at + 1;
                } else {
                    cut_out(below, start..start + taken, cut, detached);
                }
                left -= taken;
                start = 0;
            }
            detached.extend(children.drain(whole));
            mend(children, first + 1);
            mend(children, first);
            recount(child);
        }
    }
}
