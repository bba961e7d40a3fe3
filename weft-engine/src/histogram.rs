//! A histogram of durations from 1 ns to 1 s that keeps two decimal digits, in HdrHistogram's cells.
//!
//! One thread records, any thread reads. Owns the cells and what is read off them; percentiles and distributions are
//! those that Redis prints of the same durations. Cells are 1 ns wide below 256 ns, and above that 128 to every doubling.
//! The cells of a doubling are allocated when the first duration falls into it: 1 KiB each, a handful for most commands.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longer durations count as this long.
pub const LONGEST_NS: u64 = 1_000_000_000;

/// Cells per block.
const CELLS: usize = 128;

/// Blocks 0 and 1 have cells of 1 ns; block `b` above that begins at `2^(b + 6)`.
const BLOCKS: usize = 24;

/// The first bound of a distribution, in nanoseconds; every further one is twice the one before.
const FIRST_BOUND_NS: u64 = 1024;

type Block = Box<[AtomicU64; CELLS]>;

/// Durations of one thread.
#[derive(Default)]
pub struct Histogram {
    blocks: [OnceLock<Block>; BLOCKS],
}

impl Histogram {
    /// Counts `count` durations of the same length. Only the histogram's thread may call it.
    #[inline]
    pub fn record(&self, duration_ns: u64, count: u64) {
        let (block, cell) = place(duration_ns.clamp(1, LONGEST_NS));
        let cells = self.blocks[block].get_or_init(empty_block);
        let cell = &cells[cell];
        cell.store(cell.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// Bytes allocated for cells.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let blocks = self.blocks.iter().filter(|block| block.get().is_some());
        blocks.count() * size_of::<[AtomicU64; CELLS]>()
    }
}

#[cold]
fn empty_block() -> Block {
    Box::new([const { AtomicU64::new(0) }; CELLS])
}

/// Where a duration is counted.
#[inline]
const fn place(ns: u64) -> (usize, usize) {
    if ns < CELLS as u64 {
        return (0, ns as usize);
    }
    let exponent = ns.ilog2();
    let cell = (ns >> (exponent - 7)) as usize - CELLS;
    (exponent as usize - 6, cell)
}

/// The shortest duration that is counted in a cell.
const fn shortest_ns(block: usize, cell: usize) -> u64 {
    if block == 0 {
        cell as u64
    } else {
        ((CELLS + cell) as u64) << (block - 1)
    }
}

/// The longest.
const fn longest_ns(block: usize, cell: usize) -> u64 {
    let width = if block == 0 { 1 } else { 1 << (block - 1) };
    shortest_ns(block, cell) + width - 1
}

/// The durations of several threads, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Block, cell and count, for those that are not empty, in order.
    cells: Vec<(usize, usize, u64)>,
    count: u64,
}

impl Durations {
    /// All that these histograms have counted.
    pub fn of<'h>(histograms: impl Iterator<Item = &'h Histogram> + Clone) -> Self {
        let mut durations = Self::default();
        for block in 0..BLOCKS {
            let mut sums = [0; CELLS];
            for cells in histograms.clone().filter_map(|all| all.blocks[block].get()) {
                for (sum, cell) in sums.iter_mut().zip(cells.iter()) {
                    *sum += cell.load(Ordering::Relaxed);
                }
            }
            for (cell, count) in sums.into_iter().enumerate().filter(|(_, sum)| *sum > 0) {
                durations.cells.push((block, cell, count));
                durations.count += count;
            }
        }
        durations
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The duration in nanoseconds that `percent` of all do not exceed, as precisely as the cells tell: their upper ends,
    /// and the lower one for 0 %.
    #[must_use]
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let share = percent.min(100.0) / 100.0 * self.count as f64;
        let wanted = ((share + 0.5) as u64).max(1);
        let mut seen = 0;
        for (block, cell, count) in &self.cells {
            seen += count;
            if seen >= wanted {
                return if percent == 0.0 {
                    shortest_ns(*block, *cell)
                } else {
                    longest_ns(*block, *cell)
                };
            }
        }
        0
    }

    /// Bounds in microseconds, each about twice the one before, and how many durations do not exceed them: only those bounds
    /// below which there are more than below the one before.
    #[must_use]
    pub fn distribution(&self) -> Vec<(u64, u64)> {
        let mut distribution = Vec::new();
        let mut cells = self.cells.iter().peekable();
        let mut seen = 0;
        let mut bound_ns = FIRST_BOUND_NS;
        while cells.peek().is_some() {
            let (block, cell) = place(bound_ns);
            let before = seen;
            while let Some((.., count)) = cells.next_if(|(b, c, _)| (*b, *c) <= (block, cell)) {
                seen += count;
            }
            if seen > before {
                // The last bound is the end of all cells.
                let end_ns = longest_ns(block, cell).min(longest_ns(BLOCKS - 1, CELLS - 1));
                distribution.push((end_ns / 1000, seen));
            }
            bound_ns *= 2;
        }
        distribution
    }
}

#[cfg(test)]
mod tests;
