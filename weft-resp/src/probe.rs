//! How long encoding takes, for those who ask: a writer with a probe measures its own methods.
//!
//! Reads no clock of its own. What the readings themselves cost is taken out of the result, since a small reply is encoded
//! in less time than a clock is read; and of many replies only some are measured, and stand for the others.

use std::cell::Cell;
use std::fmt;

/// Adds up what the methods of a [`Writer`](crate::Writer) take.
pub struct Probe<'c> {
    ticks: &'c dyn Fn() -> u64,
    reading_cost: u64,
    calls: Cell<u32>,
    spent: Cell<u64>,
    overhead: Cell<u64>,
}

/// Calls that are all measured, so that short replies are measured well.
const ALL_MEASURED: u32 = 8;

/// Of further calls one in so many is measured. Pairs and triples of elements do not fall into step with it.
const STRIDE: u32 = 7;

impl<'c> Probe<'c> {
    /// A probe of a clock whose reading takes `reading_cost` of its own ticks.
    #[must_use]
    pub fn new(ticks: &'c dyn Fn() -> u64, reading_cost: u64) -> Probe<'c> {
        Probe {
            ticks,
            reading_cost,
            calls: Cell::new(0),
            spent: Cell::new(0),
            overhead: Cell::new(0),
        }
    }

    /// Ticks spent encoding.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Ticks that went into measuring.
    #[must_use]
    pub fn overhead(&self) -> u64 {
        self.overhead.get()
    }

    pub(crate) fn measure<R>(&self, call: impl FnOnce() -> R) -> R {
        let calls = self.calls.get();
        self.calls.set(calls.wrapping_add(1));
        let stands_for = if calls < ALL_MEASURED {
            1
        } else if calls.is_multiple_of(STRIDE) {
            STRIDE
        } else {
            return call();
        };
        let before = (self.ticks)();
        let result = call();
        let ticks = (self.ticks)()
            .saturating_sub(before)
            .saturating_sub(self.reading_cost);
        self.spent
            .set(self.spent.get() + ticks * u64::from(stands_for));
        self.overhead
            .set(self.overhead.get() + 2 * self.reading_cost);
        result
    }
}

impl fmt::Debug for Probe<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Probe")
            .field("spent", &self.spent())
            .finish_non_exhaustive()
    }
}
