//! How busy a worker was: measured by the worker, read by the controller.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use weft_reactor::TurnReport;

use crate::controller::{ROUND_NS, Sample};

/// What a worker publishes at the end of each round: written by it alone.
#[derive(Default)]
#[repr(align(128))]
pub struct Published {
    at_ns: AtomicU64,
    busy_ppm: AtomicU32,
    waiting_ppm: AtomicU32,
    lively: AtomicU32,
    rate: AtomicU32,
}

impl Published {
    /// The sample as it counts at `now_ns`: a worker that has not published for long had nothing to do.
    pub fn sample(&self, now_ns: u64, connections: usize) -> Sample {
        let age_ns = now_ns.saturating_sub(self.at_ns.load(Ordering::Relaxed));
        if age_ns > 3 * ROUND_NS {
            return Sample {
                connections,
                ..Sample::default()
            };
        }
        let share = |ppm: &AtomicU32| f64::from(ppm.load(Ordering::Relaxed)) / 1e6;
        Sample {
            busy: share(&self.busy_ppm),
            waiting: share(&self.waiting_ppm),
            rate: f64::from(self.rate.load(Ordering::Relaxed)),
            connections,
            lively: self.lively.load(Ordering::Relaxed) as usize,
        }
    }
}

/// What a worker has measured since its last round.
pub struct Load {
    round_began_ns: u64,
    asleep_ns: u64,
    waiting_ns: u64,
    commands: i64,
    lively: u32,
}

impl Load {
    /// Of a worker that begins now.
    pub fn beginning(now_ns: u64) -> Self {
        Self {
            round_began_ns: now_ns,
            asleep_ns: 0,
            waiting_ns: 0,
            commands: 0,
            lively: 0,
        }
    }

    /// Adds a turn.
    pub fn turn(&mut self, report: &TurnReport) {
        self.asleep_ns += report.asleep_ns;
    }

    /// Whether a connection that was last active at `active_ns` makes work in this round.
    pub fn is_lively(&self, active_ns: u64) -> bool {
        active_ns >= self.round_began_ns
    }

    /// A connection that was last active at `active_ns` is active again.
    pub fn active_again(&mut self, active_ns: u64) {
        if !self.is_lively(active_ns) {
            self.lively += 1;
        }
    }

    /// Ends the round if it has lasted long enough, and publishes it. `commands` is how many the worker has run since its
    /// start, `waiting_ns` tells how long it has waited for processors since then. Says whether it did.
    pub fn end_round(
        &mut self,
        now_ns: u64,
        commands: i64,
        waiting_ns: impl FnOnce() -> u64,
        published: &Published,
    ) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.round_began_ns);
        if elapsed_ns < ROUND_NS {
            return false;
        }
        let waiting_ns = waiting_ns();
        let ppm = |ns: u64| (ns.min(elapsed_ns) as f64 / elapsed_ns as f64 * 1e6) as u32;
        let rate = (commands - self.commands) as f64 * 1e9 / elapsed_ns as f64;
        published
            .busy_ppm
            .store(1_000_000 - ppm(self.asleep_ns), Ordering::Relaxed);
        published.waiting_ppm.store(
            ppm(waiting_ns.saturating_sub(self.waiting_ns)),
            Ordering::Relaxed,
        );
        published.lively.store(self.lively, Ordering::Relaxed);
        published.rate.store(rate as u32, Ordering::Relaxed);
        published.at_ns.store(now_ns, Ordering::Relaxed);
        self.round_began_ns = now_ns;
        self.asleep_ns = 0;
        self.waiting_ns = waiting_ns;
        self.commands = commands;
        self.lively = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_when_it_is_long_enough_and_grows_old() {
        let start = 1_000_000_000;
        let published = Published::default();
        let mut load = Load::beginning(start);
        load.turn(&TurnReport {
            asleep_ns: ROUND_NS / 2,
            ..TurnReport::default()
        });
        load.active_again(start - 1);
        load.active_again(start + 5);
        assert!(!load.end_round(start + ROUND_NS - 1, 500, || 0, &published));
        let end = start + 2 * ROUND_NS;
        assert!(load.end_round(end, 500, || 0, &published));
        let sample = published.sample(end, 7);
        assert_eq!(
            (sample.busy, sample.rate, sample.connections, sample.lively),
            (0.75, 2500.0, 7, 1)
        );
        let old = published.sample(end + 4 * ROUND_NS, 7);
        assert_eq!(
            old,
            Sample {
                connections: 7,
                ..Sample::default()
            }
        );
    }
}
