//! The tree against a vector, its snapshots against copies, and how much a change copies.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::{ARC_BYTES, CHILDREN_MIN, Child, FANOUT, Inner, Leaf, Node, Tree};

/// A few numbers; some of them need room of their own.
#[derive(Clone, Debug, PartialEq)]
struct Numbers(Vec<u32>);

const FULL: usize = 9;

const RUNS: u64 = 400;

impl Leaf for Numbers {
    type Bound = u32;

    fn items(&self) -> usize {
        self.0.len()
    }

    fn heap_bytes(&self) -> usize {
        4 * self.0.len()
    }

    fn bound(&self) -> u32 {
        self.0[0]
    }

    fn is_full(&self) -> bool {
        self.0.len() >= FULL
    }

    fn split(&mut self) -> Self {
        Self(self.0.split_off(self.0.len() / 2))
    }

    fn is_sparse(&self) -> bool {
        self.0.len() < 3
    }

    fn has_room_for(&self, right: &Self) -> bool {
        self.0.len() + right.0.len() < FULL - 1
    }

    fn absorb(&mut self, right: &Self) {
        self.0.extend_from_slice(&right.0);
    }

    fn remove(&mut self, range: Range<usize>) {
        self.0.drain(range);
    }
}

impl<L: Leaf> Tree<L>
where
    L::Bound: PartialEq + std::fmt::Debug,
{
    /// Checks all that the tree promises of itself.
    pub(crate) fn verify(&self) {
        let Some(root) = &self.root else { return };
        if let Node::Inner(inner) = &root.node {
            assert!(inner.children.len() >= 2, "the root has two children");
        }
        verify_child(root, true, true);
    }
}

/// Checks a node and returns its height.
fn verify_child<L: Leaf>(child: &Child<L>, is_first: bool, is_last: bool) -> usize
where
    L::Bound: PartialEq + std::fmt::Debug,
{
    match &child.node {
        Node::Leaf(leaf) => {
            assert!(leaf.items() > 0, "a leaf is not empty");
            assert!(!leaf.is_full(), "a leaf is not full");
            assert_eq!(child.items, leaf.items() as u64);
            let bytes = ARC_BYTES + size_of::<L>() + leaf.heap_bytes();
            assert_eq!(child.bytes, bytes, "bytes of a leaf");
            assert_eq!(child.bound, leaf.bound());
            0
        }
        Node::Inner(inner) => {
            let children = &inner.children;
            assert!(!children.spilled(), "a node is one allocation");
            assert!(!children.is_empty() && children.len() <= FANOUT);
            if !is_first && !is_last {
                assert!(
                    children.len() >= CHILDREN_MIN,
                    "{} children",
                    children.len()
                );
            }
            let last = children.len() - 1;
            let heights: HashSet<usize> = children
                .iter()
                .enumerate()
                .map(|(at, child)| verify_child(child, is_first && at == 0, is_last && at == last))
                .collect();
            assert_eq!(heights.len(), 1, "all leaves are equally deep");
            let items: u64 = children.iter().map(|child| child.items).sum();
            assert_eq!(child.items, items);
            let bytes: usize = children.iter().map(|child| child.bytes).sum();
            assert_eq!(child.bytes, bytes + ARC_BYTES + size_of::<Inner<L>>());
            assert_eq!(child.bound, children[0].bound);
            heights.into_iter().next().unwrap_or(0) + 1
        }
    }
}

fn contents(tree: &Tree<Numbers>) -> Vec<u32> {
    let leaves = tree.leaves_from(0);
    leaves.flat_map(|(_, leaf)| leaf.0.clone()).collect()
}

fn tree_of(numbers: Range<u32>, leaf: usize) -> Tree<Numbers> {
    let numbers: Vec<u32> = numbers.collect();
    Tree::from_leaves(numbers.chunks(leaf).map(|chunk| Numbers(chunk.to_vec())))
}

/// A tree and what has to be in it.
#[derive(Clone)]
struct Pair {
    tree: Tree<Numbers>,
    model: Vec<u32>,
}

impl Pair {
    fn change(&mut self, random: &mut fastrand::Rng) {
        let len = self.model.len();
        let at = random.usize(0..len.max(1));
        let number = random.u32(..);
        match random.u32(0..20) {
            0..6 => {
                if len == 0 {
                    self.tree.push_last(Numbers(vec![number]));
                } else {
                    self.tree
                        .edit_at(at as u64, |leaf, offset| leaf.0.insert(offset, number));
                }
                self.model.insert(at, number);
            }
            6..10 => {
                let removed = self
                    .tree
                    .edit_at(at as u64, |leaf, offset| leaf.0.remove(offset));
                assert_eq!(removed, (len > 0).then(|| self.model.remove(at)));
            }
            10 => {
                let replaced = self.tree.edit_at(at as u64, |leaf, offset| {
                    std::mem::replace(&mut leaf.0[offset], number)
                });
                let place = self.model.get_mut(at);
                assert_eq!(replaced, place.map(|old| std::mem::replace(old, number)));
            }
            11..13 => {
                let added: Vec<u32> = (0..random.u32(0..30)).collect();
                if random.bool() {
                    self.tree.push_first(Numbers(added.clone()));
                    self.model.splice(0..0, added);
                } else {
                    self.tree.push_last(Numbers(added.clone()));
                    self.model.extend(added);
                }
            }
            13 if len > 0 => {
                // Leaves in the middle of another one, many or few.
                let most = if random.bool() { 4 } else { 400 };
                let added: Vec<u32> = (0..random.u32(0..most)).collect();
                self.tree.splice_at(at as u64, |leaf, offset, more| {
                    let rest = leaf.0.split_off(offset);
                    let size = random.usize(1..20);
                    more.extend(added.chunks(size).map(|chunk| Numbers(chunk.to_vec())));
                    more.push(Numbers(rest));
                });
                self.model.splice(at..at, added);
            }
            14 if len > 0 => {
                self.tree.splice_first(|leaf, _| leaf.0.remove(0));
                self.model.remove(0);
            }
            15 if len > 0 => {
                self.tree.splice_last(|leaf, _| leaf.0.pop());
                self.model.pop();
            }
            16 => {
                let most = if random.u8(0..6) == 0 { len } else { 40 };
                let end = (at + random.usize(0..most + 1)).min(len);
                let mut removed = 0;
                self.tree
                    .remove_range(at as u64..end as u64, |_, range| removed += range.len());
                assert_eq!(removed, self.model.drain(at..end).count());
            }
            _ => {
                for _ in 0..random.u32(0..40) {
                    self.tree.splice_last(|leaf, more| {
                        if leaf.0.len() + 1 < FULL {
                            leaf.0.push(number);
                        } else {
                            more.push(Numbers(vec![number]));
                        }
                    });
                    if len > 0 {
                        self.model.push(number);
                    }
                }
            }
        }
    }

    fn check(&self, random: &mut fastrand::Rng) {
        self.tree.verify();
        assert_eq!(self.tree.len(), self.model.len() as u64);
        assert_eq!(contents(&self.tree), self.model);
        let at = random.usize(0..self.model.len() + 2);
        let found = self.tree.at(at as u64);
        let found = found.map(|(leaf, offset)| leaf.0[offset]);
        assert_eq!(found, self.model.get(at).copied());
    }
}

#[test]
fn changes_are_those_of_a_vector_and_snapshots_stand_still() {
    for seed in 0..RUNS {
        let mut random = fastrand::Rng::with_seed(seed);
        // Some begin with several levels of nodes.
        let len = if seed % 8 == 0 {
            random.u32(..12_000)
        } else {
            0
        };
        let mut live = vec![Pair {
            tree: tree_of(0..len, random.usize(3..FULL)),
            model: (0..len).collect(),
        }];
        for _ in 0..120 {
            let which = random.usize(..live.len());
            match random.u32(0..12) {
                0 if live.len() < 6 => {
                    let snapshot = live[which].clone();
                    live.push(snapshot);
                }
                1 if live.len() > 1 => {
                    live.swap_remove(which);
                }
                _ => live[which].change(&mut random),
            }
            live[random.usize(..live.len())].check(&mut random);
        }
        live.iter().for_each(|pair| pair.check(&mut random));
    }
}

#[test]
fn a_removed_range_is_given_once_and_in_parts() {
    for (start, end) in [
        (0, 1),
        (5, 5),
        (3, 4_000),
        (0, 10_000),
        (1, 9_999),
        (7, 20_000),
    ] {
        let mut tree = tree_of(0..10_000, 7);
        let before = tree.allocated_bytes();
        let mut removed = Vec::new();
        let detached = tree.clone().detach(start..end, |leaf, range| {
            removed.extend_from_slice(&leaf.0[range]);
        });
        assert!(detached.allocated_bytes() <= before);
        detached.each_leaf(|leaf| removed.extend_from_slice(&leaf.0));
        removed.sort_unstable();
        let end = end.min(10_000);
        let expected: Vec<u32> = (start as u32..end as u32).collect();
        assert_eq!(removed, expected, "{start}..{end}");
        removed.clear();
        tree.remove_range(start..end, |leaf, range| {
            removed.extend_from_slice(&leaf.0[range]);
        });
        removed.sort_unstable();
        assert_eq!(removed, expected, "{start}..{end}");
        tree.verify();
        let expected: Vec<u32> = (0..10_000)
            .filter(|number| !(start..end).contains(&u64::from(*number)))
            .collect();
        assert_eq!(contents(&tree), expected);
    }
}

#[test]
fn items_are_found_by_their_order() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut tree: Tree<Numbers> = Tree::new();
    let mut model: Vec<u32> = Vec::new();
    assert!(tree.seek(|_| true).is_none());
    assert_eq!(tree.splice_where(|_| true, |_, _, _| ()), None);
    tree.push_last(Numbers(vec![500]));
    model.push(500);
    for _ in 0..6_000 {
        let number = random.u32(0..100_000);
        let place = model.partition_point(|other| *other < number);
        tree.splice_where(
            |bound| *bound < number,
            |leaf, first, _| {
                let offset = leaf.0.partition_point(|other| *other < number);
                assert_eq!(first + offset as u64, place as u64);
                leaf.0.insert(offset, number);
            },
        );
        model.insert(place, number);
    }
    tree.verify();
    assert_eq!(contents(&tree), model);
    for _ in 0..2_000 {
        let number = random.u32(0..101_000);
        let (first, leaf) = tree.seek(|bound| *bound <= number).expect("not empty");
        let offset = leaf.0.partition_point(|other| *other <= number);
        let place = model.partition_point(|other| *other <= number);
        assert_eq!(first as usize + offset, place);
    }
}

#[test]
fn leaves_are_walked_both_ways_from_anywhere() {
    for len in [0, 1, 8, 200, 2_000] {
        let tree = tree_of(0..len, 7);
        for index in [0, 1, 6, 7, 199, 1_000, 1_999, 2_000] {
            let forward: Vec<(u64, u32)> = tree
                .leaves_from(index)
                .map(|(first, leaf)| (first, leaf.0[0]))
                .collect();
            let backward: Vec<(u64, u32)> = tree
                .leaves_back_from(index)
                .map(|(first, leaf)| (first, leaf.0[0]))
                .collect();
            if index >= u64::from(len) {
                assert!(forward.is_empty() && backward.is_empty());
                continue;
            }
            let start = index / 7 * 7;
            let firsts = |from: u64, to: u64| (from..to).step_by(7).map(|at| (at, at as u32));
            assert_eq!(forward, firsts(start, u64::from(len)).collect::<Vec<_>>());
            let expected: Vec<_> = firsts(0, start + 1).collect();
            assert_eq!(backward, expected.into_iter().rev().collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_tree_is_built_in_one_pass() {
    for leaves in [0_u32, 1, 2, 32, 33, 64, 65, 1_024, 1_025, 5_000] {
        let tree = tree_of(0..leaves * 5, 5);
        tree.verify();
        assert_eq!(contents(&tree), (0..leaves * 5).collect::<Vec<_>>());
        assert_eq!(
            tree.first().map(|leaf| leaf.0[0]),
            (leaves > 0).then_some(0)
        );
        let last = tree.last().and_then(|leaf| leaf.0.last());
        assert_eq!(last.copied(), (leaves * 5).checked_sub(1));
    }
    let empty: Tree<Numbers> = Tree::from_leaves([Numbers(vec![]), Numbers(vec![])]);
    assert!(empty.is_empty());
    assert_eq!(empty.allocated_bytes(), 0);
}

/// The places of all nodes.
fn nodes(tree: &Tree<Numbers>) -> HashSet<usize> {
    fn collect(child: &Child<Numbers>, into: &mut HashSet<usize>) {
        match &child.node {
            Node::Leaf(leaf) => {
                into.insert(Arc::as_ptr(leaf).addr());
            }
            Node::Inner(inner) => {
                into.insert(Arc::as_ptr(inner).addr());
                inner.children.iter().for_each(|child| collect(child, into));
            }
        }
    }
    let mut into = HashSet::new();
    if let Some(root) = &tree.root {
        collect(root, &mut into);
    }
    into
}

#[test]
fn a_change_copies_only_its_path() {
    let tree = tree_of(0..200_000, 6);
    let before = nodes(&tree);
    // 33,334 leaves hang below four levels of nodes.
    let path = 5;
    let mut changed = tree.clone();
    changed.edit_at(77_777, |leaf, offset| leaf.0[offset] = 5);
    let copied = nodes(&changed).difference(&before).count();
    assert_eq!(copied, path);
    let mut cut = tree.clone();
    cut.detach(50_000..150_000, |_, _| ());
    let copied = nodes(&cut).difference(&before).count();
    assert!(copied <= 2 * path, "{copied} nodes are copied");
    assert_eq!(contents(&tree), (0..200_000).collect::<Vec<_>>());
}

#[test]
fn appending_leaves_full_nodes_behind() {
    let mut tree: Tree<Numbers> = Tree::new();
    for number in 0..20_000 {
        tree.push_last(Numbers(vec![number; 5]));
    }
    tree.verify();
    let full = nodes(&tree).len() - 20_000;
    assert_eq!(
        full,
        20_000_usize.div_ceil(32) + 20_000_usize.div_ceil(32 * 32) + 1
    );
    while tree.splice_first(|leaf, _| leaf.0.clear()).is_some() {}
    assert!(tree.is_empty());
}
