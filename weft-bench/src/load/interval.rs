//! What came of each interval of a run, while it runs.
//!
//! Owns one thread's interval under way and, for the one that waits, the sums over all threads. A thread tells of an interval
//! once it is over, in one message; that is the only cost besides further histograms. Invariants: an interval is handed out
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
    /// What came of it by class, if the plan tells classes apart.
    pub classes: Vec<Part>,
}

/// One class's part of an interval.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// In units of the scale. `None`: no answers; of many classes few are used in one interval.
    pub latencies: Option<Histogram<u64>>,
    /// Their sum, the least and the greatest, exactly.
    pub sum: u64,
    pub least: u64,
    pub greatest: u64,
    /// Bytes of requests that left in it.
    pub sent_bytes: u64,
    /// Bytes of answers that came in it.
    pub received_bytes: u64,
}

impl Part {
    /// How many answers.
    pub fn count(&self) -> u64 {
        self.latencies.as_ref().map_or(0, Histogram::len)
    }

    /// Notes answers that took so many units.
    pub(super) fn answered(&mut self, scale: &Scale, latency: u64, count: u64) {
        self.widen(latency, latency);
        self.sum = self.sum.saturating_add(latency.saturating_mul(count));
        self.latencies
            .get_or_insert_with(|| scale.histogram())
            .saturating_record_n(latency, count);
    }

    /// Latencies from `least` to `greatest` are to be added.
    fn widen(&mut self, least: u64, greatest: u64) {
        self.least = match self.latencies {
            Some(_) => self.least.min(least),
            None => least,
        };
        self.greatest = self.greatest.max(greatest);
    }

    /// Adds what was measured elsewhere on the same scale.
    pub fn add(&mut self, other: &Part) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        let Some(added) = &other.latencies else {
            return;
        };
        self.widen(other.least, other.greatest);
        self.sum = self.sum.saturating_add(other.sum);
        match &mut self.latencies {
            Some(latencies) => latencies
                .add(added)
                .expect("histograms of one scale have the same bounds"),
            None => self.latencies = Some(added.clone()),
        }
    }
}

impl Interval {
    pub(super) fn new(index: u64, scale: &Scale, classes: usize) -> Interval {
        Interval {
            index,
            latencies: scale.histogram(),
            counts: Counts::default(),
            classes: vec![Part::default(); classes],
        }
    }

    /// Adds what another thread, or a later interval, has measured on the same scale.
    pub fn add(&mut self, other: &Interval) {
        self.latencies
            .add(&other.latencies)
            .expect("histograms of one scale have the same bounds");
        self.counts.add(&other.counts);
        for (part, other) in self.classes.iter_mut().zip(&other.classes) {
            part.add(other);
        }
    }
}

/// Intervals as the threads tell of them.
#[derive(Debug)]
pub(super) struct Intervals {
    scale: Scale,
    /// How many classes are told apart.
    classes: usize,
    /// By thread, the first interval it may still tell of.
    next: Vec<u64>,
    /// The first one that has not been handed out.
    first: u64,
    sums: VecDeque<Interval>,
}

impl Intervals {
    pub(super) fn new(scale: Scale, threads: usize, classes: usize) -> Intervals {
        Intervals {
            scale,
            classes,
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
            self.sums
                .push_back(Interval::new(index, &self.scale, self.classes));
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
        let mut interval = Interval::new(index, &SCALE, 2);
        interval.latencies.record(latency).unwrap();
        interval.counts.answered = 1;
        interval.classes[1].answered(&SCALE, latency, 2);
        interval.classes[1].sent_bytes = 10;
        interval
    }

    #[test]
    fn parts_of_threads_add_up() {
        let mut sum = interval(0, 7);
        sum.add(&interval(0, 30));
        let [unused, part] = &sum.classes[..] else {
            panic!("two classes");
        };
        assert_eq!((unused.count(), unused.sent_bytes), (0, 0));
        assert_eq!((part.count(), part.sum), (4, 2 * 7 + 2 * 30));
        assert_eq!((part.least, part.greatest, part.sent_bytes), (7, 30, 20));
        let latencies = part.latencies.as_ref().unwrap();
        assert_eq!(latencies.value_at_quantile(0.5), 7);
        assert_eq!(latencies.value_at_quantile(1.0), 30);
    }

    #[test]
    fn intervals_are_handed_out_when_all_threads_are_past_them() {
        let mut intervals = Intervals::new(SCALE, 2, 2);
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
