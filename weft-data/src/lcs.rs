//! The longest common subsequence of two byte strings, in resumable steps.
//!
//! Bit-parallel (H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004): one step handles 64 cells of a
//! row. The second string is cut into strips of 64 columns and each strip runs down all rows, so that one strip's match
//! masks stay in the first-level cache and only a carry bit per row passes between strips. Length only: one bit
//! per byte of the shorter string. Otherwise one bit per cell is kept, and the walk back from the far corner
//! prefers, like Redis, equal bytes, then the second string's predecessor unless the first's is longer.
//!
//! Knows no clock: the caller chooses budgets.

use std::fmt;

/// What is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Only the length.
    Length,
    /// The subsequence itself.
    Sequence,
    /// Where its runs of at least `length_min` bytes are.
    Ranges {
        /// Shorter runs are left out (MINMATCHLEN; 0 keeps all).
        length_min: usize,
    },
}

/// A run of equal bytes, in both strings. Offsets are from 0; the ends are `start + length - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchRange {
    /// Where the run starts in the first string.
    pub a_start: usize,
    /// Where the run starts in the second string.
    pub b_start: usize,
    /// Its bytes; at least 1.
    pub length: usize,
}

/// Why there will be no result. Displays as Redis's error text, with its prefix.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LcsError {
    /// A string has 2^32 - 2 bytes or more.
    TooLong,
    /// Redis's table of 4 bytes per cell would exceed the limit.
    OverLimit,
    /// The memory was within the limit but not to be had.
    NoMemory,
}

impl fmt::Display for LcsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "ERR String too long for LCS",
            Self::OverLimit => {
                "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
            }
            Self::NoMemory => "ERR Insufficient memory, failed allocating transient memory for LCS",
        })
    }
}

impl std::error::Error for LcsError {}

/// Strings from this length on are refused (Redis's table has 32-bit cells and one row and column more).
const LENGTH_LIMIT: usize = u32::MAX as usize - 1;

/// Columns of a strip: the cells that one step of filling does.
const STRIP: usize = 64;

/// Steps of filling that take as long as one step back, which waits for memory and guesses branches badly.
const TRACE_COST: usize = 16;

/// A computation under way. Holds both strings (anything that is bytes) until it is dropped.
///
/// ```text
/// Fill --(last strip done, length only)--------------------> Done
///   \----(last strip done)--> Trace --(a border is reached)--> Done
/// ```
#[derive(Debug)]
pub struct Lcs<S> {
    a: S,
    b: S,
    wanted: Wanted,
    phase: Phase,
    length: usize,
    sequence: Vec<u8>,
    ranges: Vec<MatchRange>,
}

#[derive(Debug)]
enum Phase {
    Fill(Box<Fill>),
    Trace(Trace),
    Done,
}

/// Going down the strips, left to right.
#[derive(Debug)]
struct Fill {
    /// The shorter string is the rows when only the length is wanted.
    transposed: bool,
    strip: usize,
    row: usize,
    /// Per byte, the columns of this strip that hold it.
    masks: [u64; 256],
    /// This strip's row: a zero bit for each column where the length is one more than in the column before it.
    current: u64,
    /// One bit per row: what the strip to the left carried over; replaced by what this one does.
    carries: Vec<u64>,
    /// All rows of all strips, strip by strip; empty when only the length is wanted.
    rows: Vec<u64>,
}

/// Going back from the far corner; `i` and `j` are how much of either string is left.
#[derive(Debug)]
struct Trace {
    rows: Vec<u64>,
    i: usize,
    j: usize,
    /// The run being extended; its starts are `i` and `j`.
    run: usize,
}

impl<S: AsRef<[u8]>> Lcs<S> {
    /// Prepares the computation for `a` and `b`.
    ///
    /// # Errors
    /// As Redis refuses: strings of 2^32 - 2 bytes or more, and `(a + 1) * (b + 1) * 4` above `memory_max`
    /// (`proto-max-bulk-len`) bytes, whatever is wanted. What is really used is at most that, a thirty-second
    /// of it for strings of similar length.
    pub fn new(a: S, b: S, wanted: Wanted, memory_max: u64) -> Result<Self, LcsError> {
        let (a_len, b_len) = (a.as_ref().len(), b.as_ref().len());
        if a_len >= LENGTH_LIMIT || b_len >= LENGTH_LIMIT {
            return Err(LcsError::TooLong);
        }
        if (a_len as u128 + 1) * (b_len as u128 + 1) * 4 > u128::from(memory_max) {
            return Err(LcsError::OverLimit);
        }
        let mut lcs = Self {
            a,
            b,
            wanted,
            phase: Phase::Done,
            length: 0,
            sequence: Vec::new(),
            ranges: Vec::new(),
        };
        if a_len == 0 || b_len == 0 {
            return Ok(lcs);
        }
        let transposed = wanted == Wanted::Length && a_len > b_len;
        let (row_count, column_count) = if transposed {
            (b_len, a_len)
        } else {
            (a_len, b_len)
        };
        let mut rows = Vec::new();
        if wanted != Wanted::Length {
            let words = row_count
                .checked_mul(column_count.div_ceil(STRIP))
                .ok_or(LcsError::NoMemory)?;
            rows.try_reserve_exact(words)
                .map_err(|_| LcsError::NoMemory)?;
        }
        let mut carries = Vec::new();
        carries
            .try_reserve_exact(row_count.div_ceil(64))
            .map_err(|_| LcsError::NoMemory)?;
        carries.resize(row_count.div_ceil(64), 0);
        lcs.phase = Phase::Fill(Box::new(Fill {
            transposed,
            strip: 0,
            row: 0,
            masks: [0; 256],
            current: 0,
            carries,
            rows,
        }));
        Ok(lcs)
    }

    /// Works on about `budget_cells` cells (at least 64) and returns whether the result is complete. A million
    /// cells take some 50 to 100 microseconds.
    pub fn step(&mut self, budget_cells: usize) -> bool {
        let mut budget = (budget_cells / STRIP).max(1);
        loop {
            match &mut self.phase {
                Phase::Done => return true,
                Phase::Fill(fill) => {
                    let (rows, columns) = if fill.transposed {
                        (self.b.as_ref(), self.a.as_ref())
                    } else {
                        (self.a.as_ref(), self.b.as_ref())
                    };
                    if fill.run(
                        rows,
                        columns,
                        self.wanted != Wanted::Length,
                        &mut self.length,
                        &mut budget,
                    ) {
                        self.phase = if self.wanted == Wanted::Length {
                            Phase::Done
                        } else {
                            let rows = std::mem::take(&mut fill.rows);
                            Phase::Trace(Trace {
                                rows,
                                i: self.a.as_ref().len(),
                                j: self.b.as_ref().len(),
                                run: 0,
                            })
                        };
                    }
                }
                Phase::Trace(trace) => {
                    let (a, b) = (self.a.as_ref(), self.b.as_ref());
                    if trace.run(
                        a,
                        b,
                        self.wanted,
                        &mut self.sequence,
                        &mut self.ranges,
                        &mut budget,
                    ) {
                        self.sequence.reverse();
                        self.phase = Phase::Done;
                    }
                }
            }
            if budget == 0 {
                return matches!(self.phase, Phase::Done);
            }
        }
    }

    /// The length of the subsequence, complete once [`Lcs::step`] has returned true.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The subsequence, if it was wanted, once [`Lcs::step`] has returned true.
    pub fn sequence(&self) -> &[u8] {
        &self.sequence
    }

    /// The runs, if they were wanted, from the last to the first, once [`Lcs::step`] has returned true.
    pub fn ranges(&self) -> &[MatchRange] {
        &self.ranges
    }
}

impl Fill {
    /// Returns whether all strips are done. `budget` is in steps of one strip's row.
    fn run(
        &mut self,
        rows: &[u8],
        columns: &[u8],
        keep: bool,
        length: &mut usize,
        budget: &mut usize,
    ) -> bool {
        while let Some(strip) = columns.chunks(STRIP).nth(self.strip) {
            if self.row == 0 {
                self.masks.fill(0);
                for (column, &byte) in strip.iter().enumerate() {
                    self.masks[usize::from(byte)] |= 1 << column;
                }
                self.current = u64::MAX;
            }
            let end = rows.len().min(self.row.saturating_add(*budget));
            *budget -= end - self.row;
            for (row, &byte) in rows.iter().enumerate().take(end).skip(self.row) {
                let matching = self.current & self.masks[usize::from(byte)];
                let carry_word = &mut self.carries[row / 64];
                let carry = *carry_word >> (row % 64) & 1;
                let (sum, over) = self.current.overflowing_add(matching);
                let (sum, over_again) = sum.overflowing_add(carry);
                *carry_word ^= (carry ^ u64::from(over | over_again)) << (row % 64);
                self.current = sum | (self.current & !matching);
                if keep {
                    self.rows.push(self.current);
                }
            }
            self.row = end;
            if end < rows.len() {
                return false;
            }
            let used = u64::MAX >> (STRIP - strip.len());
            *length += (!self.current & used).count_ones() as usize;
            self.row = 0;
            self.strip += 1;
            if *budget == 0 {
                break;
            }
        }
        self.strip >= columns.len().div_ceil(STRIP)
    }
}

impl Trace {
    /// Returns whether a border has been reached. `budget` is in steps of filling.
    fn run(
        &mut self,
        a: &[u8],
        b: &[u8],
        wanted: Wanted,
        sequence: &mut Vec<u8>,
        ranges: &mut Vec<MatchRange>,
        budget: &mut usize,
    ) -> bool {
        while self.i > 0 && self.j > 0 {
            if *budget == 0 {
                return false;
            }
            *budget = budget.saturating_sub(TRACE_COST);
            let (row, column) = (self.i - 1, self.j - 1);
            if a[row] == b[column] {
                if wanted == Wanted::Sequence {
                    sequence.push(a[row]);
                }
                self.run += 1;
                self.i -= 1;
                self.j -= 1;
                continue;
            }
            self.end_run(wanted, ranges);
            // The bytes differ, so the length here is the longer one of its two predecessors: if it is more than in
            // the column before, it comes from the row above.
            let word = self.rows[column / STRIP * a.len() + row];
            if word >> (column % STRIP) & 1 == 0 {
                self.i -= 1;
            } else {
                self.j -= 1;
            }
        }
        self.end_run(wanted, ranges);
        true
    }

    fn end_run(&mut self, wanted: Wanted, ranges: &mut Vec<MatchRange>) {
        if let Wanted::Ranges { length_min } = wanted
            && self.run > 0
            && self.run >= length_min
        {
            ranges.push(MatchRange {
                a_start: self.i,
                b_start: self.j,
                length: self.run,
            });
        }
        self.run = 0;
    }
}

#[cfg(test)]
mod tests;
