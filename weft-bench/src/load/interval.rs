//! What came of each interval of a run, while it runs.
//!
//! Owns one thread's interval under way and, for the one that waits, the sums over all threads. A thread tells of an interval
//! once it is over, in one message; that is the only cost besides a second histogram. Invariants: an interval is handed out
//! once, in order, and when no thread can add to it any more.

use std::collections::VecDeque;

use hdrhistogram::Histogram;

use super::live::Counts;
use super::record::Scale;

/// The answers of one interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its number since the beginning of the measurement.
    pub index: u64,
    /// Latencies, in units of the scale.
    pub latencies: Histogram<u64>,
    /// What came of it; `open` as it was at its end.
    pub counts: Counts,
}

impl Interval {
    pub(super) fn new(index: u64, scale: &Scale) -> Interval {
        Interval {
            index,
            latencies: scale.histogram(),
            counts: Counts::default(),
        }
    }

    /// Adds what another thread, or a later interval, has measured on the same scale.
    pub fn add(&mut self, other: &Interval) {
        self.latencies
            .add(&other.latencies)
            .expect("histograms of one scale have the same bounds");
        self.counts.add(&other.counts);
    }
}

/// Intervals as the threads tell of them.
#[derive(Debug)]
pub(super) struct Intervals {
    scale: Scale,
    /// By thread, the first interval it may still tell of.
    next: Vec<u64>,
    /// The first one that has not been handed out.
    first: u64,
    sums: VecDeque<Interval>,
}

impl Intervals {
    pub(super) fn new(scale: Scale, threads: usize) -> Intervals {
        Intervals {
            scale,
            next: vec![0; threads],
            first: 0,
            sums: VecDeque::new(),
        }
    }

    /// A thread tells of an interval. Those between its last one and this were empty.
    pub(super) fn tell(&mut self, thread: usize, interval: &Interval) {
        let Some(place) = interval
            .index
            .checked_sub(self.first)
            .and_then(|place| usize::try_from(place).ok())
        else {
            return;
        };
        while self.sums.len() <= place {
            let index = self.first + self.sums.len() as u64;
            self.sums.push_back(Interval::new(index, &self.scale));
        }
        self.sums[place].add(interval);
        self.next[thread] = interval.index + 1;
    }

    /// A thread will tell of nothing more.
    pub(super) fn ended(&mut self, thread: usize) {
        self.next[thread] = u64::MAX;
    }

    /// The next complete interval.
    pub(super) fn take(&mut self) -> Option<Interval> {
        let complete = self.next.iter().min().copied().unwrap_or(u64::MAX);
        if self.first >= complete {
            return None;
        }
        let interval = self.sums.pop_front()?;
        self.first += 1;
        Some(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale {
        unit_ns: 1000,
        lowest: 1,
        digits: 3,
    };

    fn interval(index: u64, latency: u64) -> Interval {
        let mut interval = Interval::new(index, &SCALE);
        interval.latencies.record(latency).unwrap();
        interval.counts.answered = 1;
        interval
    }

    #[test]
    fn intervals_are_handed_out_when_all_threads_are_past_them() {
        let mut intervals = Intervals::new(SCALE, 2);
        intervals.tell(0, &interval(0, 5));
        intervals.tell(0, &interval(2, 7));
        assert!(intervals.take().is_none());
        intervals.tell(1, &interval(1, 9));
        let taken = |intervals: &mut Intervals| {
            let interval = intervals.take()?;
            Some((interval.index, interval.counts.answered))
        };
        assert_eq!(taken(&mut intervals), Some((0, 1)));
        assert_eq!(taken(&mut intervals), Some((1, 1)));
        assert_eq!(taken(&mut intervals), None);
        intervals.ended(1);
        assert_eq!(taken(&mut intervals), Some((2, 1)));
        intervals.ended(0);
        assert_eq!(taken(&mut intervals), None);
    }
}
