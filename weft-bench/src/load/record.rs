//! What was measured: latencies by class of request.
//!
//! Owns the histograms of one thread and their sum. Does not know clocks. Invariant: merging loses nothing, whatever the
//! order.

use hdrhistogram::Histogram;

/// The longest latency told apart, in nanoseconds: an hour. A longer one counts as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// In what steps latencies are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Nanoseconds of one unit of the histogram's values.
    pub unit_ns: u64,
    /// Latencies below this many units need not be told apart.
    pub lowest: u64,
    /// Significant decimal digits, at most 5.
    pub digits: u8,
}

impl Scale {
    /// An empty histogram of it.
    pub fn histogram(&self) -> Histogram<u64> {
        let lowest = self.lowest.max(1);
        let highest = (LONGEST_NS / self.unit_ns.max(1)).max(lowest * 2);
        Histogram::new_with_bounds(lowest, highest, self.digits.min(5))
            .expect("the bounds and the digits are in the range that the type allows")
    }
}

/// Latencies of the requests of one run, or of one thread of it.
#[derive(Clone, Debug)]
pub struct Record {
    scale: Scale,
    classes: Vec<Class>,
    /// Connections that broke or did not come about.
    pub lost_connections: u64,
    /// Why the first of them did.
    pub first_loss: Option<String>,
    /// How long the oldest request had been under way that was unanswered at the end, in units of the scale.
    pub oldest_unanswered: u64,
}

/// So many wrong answers of a class are described.
const WRONG_TOLD: usize = 5;

/// The requests of one class.
#[derive(Clone, Debug)]
pub struct Class {
    /// In units of the scale.
    pub latencies: Histogram<u64>,
    /// Answers that were absent values.
    pub nulls: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<Vec<u8>>,
    /// Answers that were not what they should be.
    pub wrong: u64,
    /// What was wrong with the first few.
    pub wrong_texts: Vec<Vec<u8>>,
    /// Requests whose connection broke before the answer.
    pub lost: u64,
    /// Requests without an answer when the run ended.
    pub unanswered: u64,
    /// Bytes of requests.
    pub bytes_sent: u64,
    /// Bytes of answers.
    pub bytes_received: u64,
}

impl Class {
    /// A class of the same scale of which nothing is known yet.
    pub fn emptied(&self) -> Class {
        let mut latencies = self.latencies.clone();
        latencies.reset();
        Class::over(latencies)
    }

    fn over(latencies: Histogram<u64>) -> Class {
        Class {
            latencies,
            nulls: 0,
            errors: 0,
            first_error: None,
            wrong: 0,
            wrong_texts: Vec::new(),
            lost: 0,
            unanswered: 0,
            bytes_sent: 0,
            bytes_received: 0,
        }
    }

    /// Adds what was measured elsewhere, on the same scale.
    pub fn add(&mut self, other: &Class) {
        self.latencies
            .add(&other.latencies)
            .expect("histograms of one scale have the same bounds");
        self.nulls += other.nulls;
        self.errors += other.errors;
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
        self.wrong += other.wrong;
        let room = WRONG_TOLD.saturating_sub(self.wrong_texts.len());
        self.wrong_texts
            .extend(other.wrong_texts.iter().take(room).cloned());
        self.lost += other.lost;
        self.unanswered += other.unanswered;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
    }
}

impl Record {
    /// Nothing yet, for so many classes.
    pub fn new(scale: Scale, classes: usize) -> Record {
        let class = || Class::over(scale.histogram());
        Record {
            scale,
            classes: std::iter::repeat_with(class).take(classes).collect(),
            lost_connections: 0,
            first_loss: None,
            oldest_unanswered: 0,
        }
    }

    /// Notes `count` answers of a class that took so long. Returns the latency in units.
    #[inline]
    pub fn answered(&mut self, class: u16, latency_ns: u64, count: u64) -> u64 {
        let latency = latency_ns / self.scale.unit_ns;
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.latencies.saturating_record_n(latency, count);
        }
        latency
    }

    /// Notes that one of the answers was absent.
    #[inline]
    pub fn was_null(&mut self, class: u16) {
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.nulls += 1;
        }
    }

    /// Notes that one of the answers was an error with this text.
    #[inline]
    pub fn was_error(&mut self, class: u16, text: impl FnOnce() -> Vec<u8>) {
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.errors += 1;
            class.first_error.get_or_insert_with(text);
        }
    }

    /// Notes that one of the answers was not what it should be.
    pub fn was_wrong(&mut self, class: u16, text: Vec<u8>) {
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.wrong += 1;
            if class.wrong_texts.len() < WRONG_TOLD {
                class.wrong_texts.push(text);
            }
        }
    }

    /// Notes requests whose connection broke.
    pub fn were_lost(&mut self, class: u16, count: u64) {
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.lost += count;
        }
    }

    /// Notes requests that have been under way for so long when the run ended.
    pub fn were_unanswered(&mut self, class: u16, count: u64, age_ns: u64) {
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.unanswered += count;
            self.oldest_unanswered = self.oldest_unanswered.max(age_ns / self.scale.unit_ns);
        }
    }

    /// Notes that a connection broke or did not come about.
    pub fn connection_lost(&mut self, why: impl FnOnce() -> String) {
        self.lost_connections += 1;
        self.first_loss.get_or_insert_with(why);
    }

    /// Notes bytes of requests.
    #[inline]
    pub fn bytes_sent(&mut self, class: u16, bytes: u64) {
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.bytes_sent += bytes;
        }
    }

    /// Notes bytes of answers.
    #[inline]
    pub fn bytes_received(&mut self, class: u16, bytes: u64) {
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.bytes_received += bytes;
        }
    }

    /// Adds what another thread measured, on the same scale.
    pub fn merge(&mut self, other: &Record) {
        for (class, other) in self.classes.iter_mut().zip(&other.classes) {
            class.add(other);
        }
        self.lost_connections += other.lost_connections;
        if self.first_loss.is_none() {
            self.first_loss.clone_from(&other.first_loss);
        }
        self.oldest_unanswered = self.oldest_unanswered.max(other.oldest_unanswered);
    }

    /// What was measured of each class.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECONDS: Scale = Scale {
        unit_ns: 1000,
        lowest: 10,
        digits: 3,
    };

    #[test]
    fn threads_sum_up() {
        let mut left = Record::new(MICROSECONDS, 2);
        let mut right = Record::new(MICROSECONDS, 2);
        assert_eq!(left.answered(0, 100_999, 3), 100);
        assert_eq!(right.answered(0, 9_000_000, 1), 9000);
        right.answered(1, 0, 1);
        right.was_error(1, || b"ERR x".to_vec());
        right.was_null(0);
        left.merge(&right);
        let [first, second] = left.classes() else {
            panic!("two classes");
        };
        assert_eq!(first.latencies.len(), 4);
        assert_eq!((first.nulls, first.errors), (1, 0));
        // Steps of 8 microseconds: 96 to 103, 9000 to 9007.
        assert_eq!(first.latencies.value_at_quantile(0.5), 103);
        assert_eq!(first.latencies.max(), 9007);
        assert_eq!(second.latencies.len(), 1);
        assert_eq!((second.nulls, second.errors), (0, 1));
        assert_eq!(second.first_error.as_deref(), Some(&b"ERR x"[..]));
    }

    #[test]
    fn what_takes_longer_than_an_hour_counts_as_an_hour() {
        let mut record = Record::new(MICROSECONDS, 1);
        record.answered(0, u64::MAX, 1);
        let latencies = &record.classes()[0].latencies;
        assert_eq!(latencies.len(), 1);
        assert!(latencies.equivalent(latencies.max(), latencies.high()));
        // A class that was not announced is not counted.
        record.answered(7, 1, 1);
    }
}
