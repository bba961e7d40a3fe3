//! Sorting by merging that can be interrupted: short runs are sorted at once, then merged in pairs, and these in pairs, until one is left.
//! What is equal keeps its order.

use std::cmp::Ordering;
use std::ops::Range;

use crate::dispatch::Budget;

/// Items that are sorted at once.
const RUN: usize = 4096;
/// About what sorting a run takes for an item, and moving one in a merge.
const NS_PER_SORTED: u64 = 40;
const NS_PER_MERGED: u64 = 12;
/// Items that are merged between two looks at the budget.
const CHUNK: usize = 1024;

/// How far the sorting of some items has come.
#[derive(Debug)]
pub(super) struct Merging<T> {
    /// So many items belong to sorted runs.
    sorted: usize,
    /// The length of the runs that are merged in this round.
    width: usize,
    /// What is left of the two runs that are being merged.
    left: Range<usize>,
    right: Range<usize>,
    /// What this round has merged.
    merged: Vec<T>,
}

impl<T> Default for Merging<T> {
    fn default() -> Self {
        Self {
            sorted: 0,
            width: RUN,
            left: 0..0,
            right: 0..0,
            merged: Vec::new(),
        }
    }
}

impl<T: Copy> Merging<T> {
    /// Goes on until done or until the budget is spent; whether it is done. The items are always the same.
    pub(super) fn step(
        &mut self,
        items: &mut Vec<T>,
        budget: &mut Budget,
        compare: impl Fn(&T, &T) -> Ordering,
    ) -> bool {
        while self.sorted < items.len() {
            if budget.left() == 0 {
                return false;
            }
            let end = items.len().min(self.sorted + RUN);
            items[self.sorted..end].sort_by(&compare);
            budget.take((end - self.sorted) as u64 * NS_PER_SORTED);
            self.sorted = end;
        }
        while self.width < items.len() {
            if budget.left() == 0 {
                return false;
            }
            self.merge(items, &compare);
            budget.take(CHUNK as u64 * NS_PER_MERGED);
            if self.merged.len() == items.len() {
                std::mem::swap(items, &mut self.merged);
                self.merged.clear();
                self.width *= 2;
            }
        }
        true
    }

    /// Merges the next items of this round.
    fn merge(&mut self, items: &[T], compare: &impl Fn(&T, &T) -> Ordering) {
        self.merged.reserve(items.len() - self.merged.len());
        for _ in 0..CHUNK {
            if self.left.is_empty() && self.right.is_empty() {
                let start = self.merged.len();
                let middle = items.len().min(start + self.width);
                self.left = start..middle;
                self.right = middle..items.len().min(middle + self.width);
            }
            let from_right = self.left.is_empty()
                || !self.right.is_empty()
                    && compare(&items[self.right.start], &items[self.left.start]) == Ordering::Less;
            let run = if from_right {
                &mut self.right
            } else {
                &mut self.left
            };
            let Some(next) = run.next() else {
                return;
            };
            self.merged.push(items[next]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_like_a_stable_sort_however_often_it_is_interrupted() {
        let mut random = fastrand::Rng::with_seed(3);
        for len in [0, 1, 2, RUN - 1, RUN, RUN + 1, 2 * RUN, 5 * RUN + 7, 40_000] {
            let items: Vec<(u32, usize)> = (0..len).map(|at| (random.u32(..1000), at)).collect();
            let by_number = |one: &(u32, usize), other: &(u32, usize)| one.0.cmp(&other.0);
            let mut expected = items.clone();
            expected.sort_by(by_number);
            let mut sorted = items;
            let mut merging = Merging::default();
            let mut steps = 0;
            let mut budget = Budget::slice();
            while !merging.step(&mut sorted, &mut budget, by_number) {
                steps += 1;
                budget = Budget::slice();
                budget.take(budget.left() - random.u64(1..50_000));
            }
            assert_eq!(sorted, expected, "{len} items");
            assert!(
                steps > 0 || len < 2 * RUN,
                "{len} items were not interrupted"
            );
        }
    }
}
