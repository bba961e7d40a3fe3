//! How far a thread is, for those who watch.
//!
//! Owns a few numbers, written by one thread and read by others now and then; each thread's lie on cache lines of their
//! own. Invariant: they only grow, `open` apart.

use std::sync::atomic::{AtomicU64, Ordering};

/// One thread's numbers.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Live {
    answered: AtomicU64,
    latency_sum: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    failed: AtomicU64,
    open: AtomicU64,
}

/// What they are at one moment; also the thread's own copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests answered.
    pub answered: u64,
    /// The sum of their latencies, in units of the plan's scale.
    pub latency_sum: u64,
    /// Bytes of requests and answers.
    pub bytes: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// Requests that failed in other ways: wrong answers, and none because a connection broke.
    pub failed: u64,
    /// Connections that are open.
    pub open: u64,
}

impl Counts {
    /// Adds those of another thread.
    pub fn add(&mut self, other: &Counts) {
        self.answered += other.answered;
        self.latency_sum = self.latency_sum.saturating_add(other.latency_sum);
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.failed += other.failed;
        self.open += other.open;
    }

    /// What came since they were `earlier`; `open` as it is.
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            answered: self.answered - earlier.answered,
            latency_sum: self.latency_sum.saturating_sub(earlier.latency_sum),
            bytes: self.bytes - earlier.bytes,
            errors: self.errors - earlier.errors,
            failed: self.failed - earlier.failed,
            open: self.open,
        }
    }
}

impl Live {
    /// Publishes. Called by one thread only.
    pub fn store(&self, counts: &Counts) {
        // Relaxed: each number stands for itself.
        self.answered.store(counts.answered, Ordering::Relaxed);
        self.latency_sum
            .store(counts.latency_sum, Ordering::Relaxed);
        self.bytes.store(counts.bytes, Ordering::Relaxed);
        self.errors.store(counts.errors, Ordering::Relaxed);
        self.failed.store(counts.failed, Ordering::Relaxed);
        self.open.store(counts.open, Ordering::Relaxed);
    }

    /// What was published last.
    pub fn load(&self) -> Counts {
        Counts {
            answered: self.answered.load(Ordering::Relaxed),
            latency_sum: self.latency_sum.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            open: self.open.load(Ordering::Relaxed),
        }
    }
}
