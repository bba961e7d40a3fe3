//! Leaves in their order, from any place to either end.

use smallvec::SmallVec;

use super::{Child, Leaf, Node, Tree, child_at, items_of};

/// The nodes from the root down, with the place of the child that was taken.
type Path<'a, L> = SmallVec<[(&'a [Child<L>], usize); 8]>;

/// The leaves from one on, each with the index of its first item.
pub struct Leaves<'a, L: Leaf> {
    walk: Walk<'a, L>,
}

/// The leaves from one back to the first, each with the index of its first item.
pub struct LeavesBackward<'a, L: Leaf> {
    walk: Walk<'a, L>,
}

struct Walk<'a, L: Leaf> {
    path: Path<'a, L>,
    /// The leaf to be given next, and the index of its first item.
    next: Option<(u64, &'a L)>,
}

impl<L: Leaf> Tree<L> {
    /// The leaves from the one that has the item at `index`; none if there is no such item.
    #[must_use]
    pub fn leaves_from(&self, index: u64) -> Leaves<'_, L> {
        let walk = Walk::new(self, index);
        Leaves { walk }
    }

    /// The leaves from the one that has the item at `index` back to the first; none if there is no such item.
    #[must_use]
    pub fn leaves_back_from(&self, index: u64) -> LeavesBackward<'_, L> {
        let walk = Walk::new(self, index);
        LeavesBackward { walk }
    }
}

impl<'a, L: Leaf> Walk<'a, L> {
    fn new(tree: &'a Tree<L>, index: u64) -> Self {
        let mut path = Path::new();
        let root = tree.root.as_ref().filter(|root| index < root.items);
        let next = root.map(|root| {
            let mut left = index;
            let mut node = &root.node;
            loop {
                match node {
                    Node::Leaf(leaf) => return (index - left, &**leaf),
                    Node::Inner(inner) => {
                        let at = child_at(&inner.children, &mut left);
                        path.push((&inner.children, at));
                        node = &inner.children[at].node;
                    }
                }
            }
        });
        Self { path, next }
    }

    /// The leaf beside the one that the path leads to.
    fn beside(&mut self, forward: bool) -> Option<&'a L> {
        let mut node = loop {
            let (children, at) = self.path.pop()?;
            let beside = if forward { at + 1 } else { at.wrapping_sub(1) };
            if let Some(child) = children.get(beside) {
                self.path.push((children, beside));
                break &child.node;
            }
        };
        loop {
            match node {
                Node::Leaf(leaf) => return Some(leaf),
                Node::Inner(inner) => {
                    let at = if forward { 0 } else { inner.children.len() - 1 };
                    self.path.push((&inner.children, at));
                    node = &inner.children[at].node;
                }
            }
        }
    }
}

impl<'a, L: Leaf> Iterator for Leaves<'a, L> {
    type Item = (u64, &'a L);

    fn next(&mut self) -> Option<Self::Item> {
        let (first, leaf) = self.walk.next.take()?;
        let after = first + leaf.items() as u64;
        self.walk.next = self.walk.beside(true).map(|leaf| (after, leaf));
        Some((first, leaf))
    }
}

impl<'a, L: Leaf> Iterator for LeavesBackward<'a, L> {
    type Item = (u64, &'a L);

    fn next(&mut self) -> Option<Self::Item> {
        let (first, leaf) = self.walk.next.take()?;
        let before = self.walk.beside(false);
        self.walk.next = before.map(|leaf| (first - leaf.items() as u64, leaf));
        Some((first, leaf))
    }
}

impl<L: Leaf> std::iter::FusedIterator for Leaves<'_, L> {}
impl<L: Leaf> std::iter::FusedIterator for LeavesBackward<'_, L> {}

impl<L: Leaf> Child<L> {
    /// Gives all leaves below, in order.
    pub(super) fn each_leaf(&self, each: &mut impl FnMut(&L)) {
        match &self.node {
            Node::Leaf(leaf) => each(leaf),
            Node::Inner(inner) => {
                debug_assert_eq!(items_of(&inner.children), self.items);
                inner
                    .children
                    .iter()
                    .for_each(|child| child.each_leaf(each));
            }
        }
    }
}
