//! Registers as runs, for values most of whose registers are zero.
//!
//! ```text
//! ZERO  = 00llllll            l + 1 registers (1 to 64) that hold 0
//! XZERO = 01llllll llllllll   l + 1 registers (1 to 16,384) that hold 0, high bits first
//! VAL   = 1rrrrrll            l + 1 registers (1 to 4) that hold r + 1 (1 to 32)
//! ```
//!
//! The form is Redis's, described in its documentation and articles. Which of several equal forms is written was found by
//! asking Redis 8.2: a raised register splits its run, zeroes take the shortest form, and equal runs beside each other are joined around
//! the change as long as they fit one.

use std::fmt::Write;

use super::estimate::Histogram;
use super::{Corrupted, HEADER_BYTES, Observation, REGISTERS, Registers};

const LONG: u8 = 0x40;
const VALUE: u8 = 0x80;
const ZERO_RUN_MAX: usize = 64;
const VALUE_RUN_MAX: usize = 4;
const VALUE_MAX: u8 = 32;

/// How many runs are looked at, from the one before the change on, to join equal ones.
const JOINED_RUNS_MAX: usize = 5;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// What its registers hold.
    rank: u8,
    /// How many they are.
    len: usize,
    /// The bytes that it takes.
    bytes: usize,
}

/// The run at the start of `bytes`; none if they are at their end or in the middle of a run.
#[inline(always)]
fn run(bytes: &[u8]) -> Option<Run> {
    let first = *bytes.first()?;
    Some(if first & VALUE != 0 {
        Run {
            rank: (first >> 2 & 0x1f) + 1,
            len: usize::from(first & 3) + 1,
            bytes: 1,
        }
    } else if first & LONG == 0 {
        Run {
            rank: 0,
            len: usize::from(first) + 1,
            bytes: 1,
        }
    } else {
        // A missing second byte counts as the zero that Redis keeps behind its strings.
        let second = bytes.get(1).copied().unwrap_or_default();
        Run {
            rank: 0,
            len: usize::from(u16::from_be_bytes([first & !LONG, second])) + 1,
            bytes: 2,
        }
    })
}

/// Appends `count` registers that hold 0, `count` up to all.
pub(super) fn push_zeroes(bytes: &mut Vec<u8>, count: usize) {
    let mut short = Short::default();
    short.zeroes(count);
    bytes.extend_from_slice(short.as_slice());
}

/// Up to three runs on their way into the value.
#[derive(Default)]
struct Short {
    bytes: [u8; 5],
    len: usize,
}

impl Short {
    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn zeroes(&mut self, count: usize) {
        match count.checked_sub(1) {
            None => {}
            Some(less) if count <= ZERO_RUN_MAX => self.push(less as u8),
            Some(less) => {
                let [high, low] = (less as u16).to_be_bytes();
                self.push(LONG | high);
                self.push(low);
            }
        }
    }

    fn values(&mut self, rank: u8, count: usize) {
        if count > 0 {
            self.push(value_run(rank, count));
        }
    }

    fn same(&mut self, rank: u8, count: usize) {
        if rank == 0 {
            self.zeroes(count);
        } else {
            self.values(rank, count);
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A VAL of 1 to 4 registers that hold 1 to 32.
const fn value_run(rank: u8, count: usize) -> u8 {
    VALUE | (rank - 1) << 2 | (count as u8 - 1)
}

/// A run's beginning.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// In the whole value.
    at: usize,
    /// Its first register.
    register: usize,
}

/// A run's beginning and those of the two runs before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    here: Place,
    before: Option<Place>,
    earlier: Option<Place>,
}

impl Cursor {
    /// The first run.
    pub(super) const START: Self = Self {
        here: Place {
            at: HEADER_BYTES,
            register: 0,
        },
        before: None,
        earlier: None,
    };

    fn pass(&mut self, run: Run) {
        self.earlier = self.before.replace(self.here);
        self.here.at += run.bytes;
        self.here.register += run.len;
    }

    /// The run before, which keeps its beginning when runs from it on are joined. The first run if what is before it is not known.
    fn back(self) -> Self {
        match (self.before, self.earlier) {
            (Some(here), Some(before)) => Self {
                here,
                before: Some(before),
                earlier: None,
            },
            _ => Self::START,
        }
    }
}

/// The run that a register is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// What the register holds.
    pub(super) rank: u8,
    start: Cursor,
    run: Run,
}

impl Found {
    /// Before the run.
    pub(super) const fn cursor(&self) -> Cursor {
        self.start
    }
}

/// Finds the run of an observation's register, which does not lie before `start`, in a whole value.
pub(super) fn seek(
    bytes: &[u8],
    start: Cursor,
    observation: Observation,
) -> Result<Found, Corrupted> {
    let register = usize::from(observation.register);
    let mut cursor = start;
    loop {
        let Place {
            at,
            register: first,
        } = cursor.here;
        let run = run(bytes.get(at..).unwrap_or_default()).ok_or(Corrupted)?;
        if register < first + run.len {
            return Ok(Found {
                rank: run.rank,
                start: cursor,
                run,
            });
        }
        cursor.pass(run);
    }
}

/// Raises the register that was found, and says from where to look for one that follows it. None, and nothing done: this form
/// cannot hold it, or not in `size_max` bytes.
pub(super) fn raise(
    bytes: &mut Vec<u8>,
    found: Found,
    observation: Observation,
    size_max: usize,
) -> Option<Cursor> {
    let Found { start, run, .. } = found;
    if observation.rank > VALUE_MAX {
        return None;
    }
    let at = start.here.at;
    let ahead = usize::from(observation.register) - start.here.register;
    let mut runs = Short::default();
    runs.same(run.rank, ahead);
    runs.values(observation.rank, 1);
    runs.same(run.rank, run.len - ahead - 1);
    if runs.len > run.bytes && bytes.len() + runs.len - run.bytes > size_max {
        return None;
    }
    let old = at..(at + run.bytes).min(bytes.len());
    bytes.splice(old, runs.as_slice().iter().copied());
    join(bytes, start.before.unwrap_or(Cursor::START.here).at);
    Some(start.back())
}

/// Joins equal runs beside each other, from the run at `at` on.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOINED_RUNS_MAX {
        let Some(own) = run(bytes.get(at..).unwrap_or_default()) else {
            return;
        };
        let next = run(&bytes[at + 1..]);
        match next {
            Some(next)
                if own.rank > 0 && next.rank == own.rank && own.len + next.len <= VALUE_RUN_MAX =>
            {
                bytes[at] = value_run(own.rank, own.len + next.len);
                bytes.remove(at + 1);
            }
            _ => at += own.bytes,
        }
    }
}

/// All runs in order, then whether they were whole.
fn each_run(bytes: &[u8], mut act: impl FnMut(usize, Run)) -> Result<(), Corrupted> {
    let (mut at, mut register) = (0, 0);
    while let Some(run) = run(&bytes[at..]) {
        if register + run.len > REGISTERS || at + run.bytes > bytes.len() {
            return Err(Corrupted);
        }
        act(register, run);
        at += run.bytes;
        register += run.len;
    }
    if register == REGISTERS {
        Ok(())
    } else {
        Err(Corrupted)
    }
}

/// How many registers hold each rank.
pub(super) fn histogram(bytes: &[u8]) -> Result<Histogram, Corrupted> {
    let mut histogram: Histogram = [0; 64];
    each_run(bytes, |_, run| {
        histogram[usize::from(run.rank)] += run.len as u32;
    })?;
    Ok(histogram)
}

/// Raises `registers` to those in `bytes` where these are higher.
pub(super) fn merge_into(registers: &mut Registers, bytes: &[u8]) -> Result<(), Corrupted> {
    each_run(bytes, |register, run| {
        if run.rank > 0 {
            for own in &mut registers[register..register + run.len] {
                *own = run.rank.max(*own);
            }
        }
    })
}

/// The runs as text, whole or not.
pub(super) fn runs(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(run) = bytes.get(at..).and_then(run) {
        let separator = if at == 0 { "" } else { " " };
        let written = match run {
            Run {
                rank: 0,
                bytes: 1,
                len,
            } => write!(text, "{separator}z:{len}"),
            Run { rank: 0, len, .. } => write!(text, "{separator}Z:{len}"),
            Run { rank, len, .. } => write!(text, "{separator}v:{rank},{len}"),
        };
        debug_assert!(written.is_ok(), "a string takes all text");
        at += run.bytes;
    }
    text
}
