//! The latency monitor: events that took at least `latency-monitor-threshold`.
//!
//! Owns a short history per event. Knows nothing of what the events are; it is told of those that were long enough, so that its
//! lock is taken for these and for readers only. Times are milliseconds, moments are seconds since 1970.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many samples of an event are kept, from Redis.
pub const HISTORY: usize = 160;

/// What can take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyEvent {
    /// A command that is not of constant or logarithmic time.
    Command,
    /// A command that is.
    FastCommand,
    /// Removing overdue keys that nobody asked for.
    ExpireCycle,
}

impl LatencyEvent {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Command, Self::FastCommand, Self::ExpireCycle];

    /// Its name, as LATENCY has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::FastCommand => "fast-command",
            Self::ExpireCycle => "expire-cycle",
        }
    }

    /// The event of that name, in its exact spelling.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|event| event.name().as_bytes() == name)
    }
}

/// The longest that an event took within one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySample {
    /// The second.
    pub at_s: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// What is known of one event. There is at least one sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencySeries {
    /// The oldest first, at most [`HISTORY`].
    pub samples: Vec<LatencySample>,
    /// The longest since the last reset, in milliseconds.
    pub longest_ms: u64,
}

impl LatencySeries {
    fn add(&mut self, sample: LatencySample) {
        self.longest_ms = self.longest_ms.max(sample.took_ms);
        match self.samples.last_mut() {
            // Workers may come a moment late; what they bring belongs to the newest second then.
            Some(last) if last.at_s >= sample.at_s => {
                last.took_ms = last.took_ms.max(sample.took_ms);
            }
            _ => {
                if self.samples.len() == HISTORY {
                    self.samples.remove(0);
                }
                self.samples.push(sample);
            }
        }
    }
}

/// The monitor of one engine.
#[derive(Default)]
pub struct LatencyMonitor(Mutex<[LatencySeries; LatencyEvent::ALL.len()]>);

impl LatencyMonitor {
    /// Notes that an event took so long.
    pub fn add(&self, event: LatencyEvent, sample: LatencySample) {
        self.lock()[event as usize].add(sample);
    }

    /// What is known of an event, if it was ever long enough.
    #[must_use]
    pub fn series(&self, event: LatencyEvent) -> Option<LatencySeries> {
        let series = self.lock()[event as usize].clone();
        (!series.samples.is_empty()).then_some(series)
    }

    /// Forgets an event and says whether anything was known of it.
    pub fn reset(&self, event: LatencyEvent) -> bool {
        let series = std::mem::take(&mut self.lock()[event as usize]);
        !series.samples.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, [LatencySeries; LatencyEvent::ALL.len()]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: u64, took_ms: u64) -> LatencySample {
        LatencySample { at_s, took_ms }
    }

    #[test]
    fn a_second_keeps_its_longest() {
        let monitor = LatencyMonitor::default();
        for (at_s, took_ms) in [(10, 20), (10, 30), (11, 15), (10, 40), (11, 5)] {
            monitor.add(LatencyEvent::Command, sample(at_s, took_ms));
        }
        let series = monitor.series(LatencyEvent::Command).unwrap();
        assert_eq!(series.samples, [sample(10, 30), sample(11, 40)]);
        assert_eq!(series.longest_ms, 40);
        assert_eq!(monitor.series(LatencyEvent::FastCommand), None);
    }

    #[test]
    fn history_is_bounded_and_reset_by_event() {
        let monitor = LatencyMonitor::default();
        (0..200).for_each(|second| {
            monitor.add(LatencyEvent::ExpireCycle, sample(second, 200 - second))
        });
        let series = monitor.series(LatencyEvent::ExpireCycle).unwrap();
        assert_eq!(series.samples.len(), HISTORY);
        assert_eq!(series.samples[0], sample(40, 160));
        assert_eq!(series.longest_ms, 200);
        assert!(monitor.reset(LatencyEvent::ExpireCycle));
        assert!(!monitor.reset(LatencyEvent::ExpireCycle));
        assert_eq!(monitor.series(LatencyEvent::ExpireCycle), None);
    }

    #[test]
    fn names_are_exact() {
        for event in LatencyEvent::ALL {
            assert_eq!(LatencyEvent::of_name(event.name().as_bytes()), Some(event));
        }
        assert_eq!(LatencyEvent::of_name(b"Command"), None);
    }
}
