//! What happened lately: counts of the last 1.6 seconds, in buckets of a tenth of a second, as Redis averages its
//! `instantaneous` figures.
//!
//! Written by one worker as it works and read by all. Nothing has to happen while the worker sleeps: buckets that are too
//! old are not counted.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Length of a bucket.
pub(crate) const BUCKET_NS: u64 = 100_000_000;

/// Full buckets that are counted, besides the one that is being filled.
const WINDOW: u64 = 16;

const BUCKETS: usize = WINDOW as usize + 1;

/// How many things are counted.
pub(crate) const KINDS: usize = 5;

/// One worker's recent past.
#[derive(Default)]
pub(crate) struct Recent {
    buckets: [Bucket; BUCKETS],
}

#[derive(Default)]
struct Bucket {
    /// Which tenth of a second it is, plus one, so that none is zero.
    tick: AtomicU64,
    counts: [AtomicI64; KINDS],
}

/// Counts over a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Window {
    /// Commands run.
    pub(crate) commands: i64,
    /// Bytes received.
    pub(crate) input_bytes: i64,
    /// Bytes of replies made.
    pub(crate) output_bytes: i64,
    /// Turns of the loop in which something happened.
    pub(crate) loops: i64,
    /// Nanoseconds the loop was busy.
    pub(crate) busy_ns: i64,
    /// The length of the stretch.
    pub(crate) seconds: f64,
}

impl Recent {
    /// Adds counts at this time. Only the worker may call it.
    pub(crate) fn add(&self, now_ns: u64, counts: [i64; KINDS]) {
        let tick = now_ns / BUCKET_NS + 1;
        let bucket = &self.buckets[(tick % BUCKETS as u64) as usize];
        if bucket.tick.load(Ordering::Relaxed) != tick {
            bucket
                .counts
                .iter()
                .for_each(|count| count.store(0, Ordering::Relaxed));
            bucket.tick.store(tick, Ordering::Release);
        }
        for (count, added) in bucket.counts.iter().zip(counts) {
            let sum = count.load(Ordering::Relaxed) + added;
            count.store(sum, Ordering::Relaxed);
        }
    }

    /// Adds what is in the window before `now_ns` and after `reset_ns`.
    fn sum_into(&self, sums: &mut [i64; KINDS], now_ns: u64, reset_ns: u64) {
        let newest = now_ns / BUCKET_NS + 1;
        let oldest = newest.saturating_sub(WINDOW);
        let reset = if reset_ns == 0 {
            0
        } else {
            reset_ns / BUCKET_NS + 1
        };
        for bucket in &self.buckets {
            let tick = bucket.tick.load(Ordering::Acquire);
            if tick >= oldest && tick <= newest && tick > reset {
                for (sum, count) in sums.iter_mut().zip(&bucket.counts) {
                    *sum += count.load(Ordering::Relaxed);
                }
            }
        }
    }
}

impl Window {
    /// The recent past of all workers together, without what was before `reset_ns` (0: never).
    pub(crate) fn of<'r>(
        workers: impl Iterator<Item = &'r Recent>,
        now_ns: u64,
        reset_ns: u64,
    ) -> Self {
        let mut sums = [0; KINDS];
        for recent in workers {
            recent.sum_into(&mut sums, now_ns, reset_ns);
        }
        let [commands, input_bytes, output_bytes, loops, busy_ns] = sums;
        let length_ns = WINDOW * BUCKET_NS + now_ns % BUCKET_NS;
        Self {
            commands,
            input_bytes,
            output_bytes,
            loops,
            busy_ns,
            seconds: length_ns as f64 / 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn one(commands: i64) -> [i64; KINDS] {
        [commands, commands * 10, commands * 100, 1, 7]
    }

    fn window(recent: &Recent, now_ns: u64, reset_ns: u64) -> Window {
        Window::of(std::iter::once(recent), now_ns, reset_ns)
    }

    fn per_second(window: &Window) -> f64 {
        window.commands as f64 / window.seconds
    }

    #[test]
    fn a_steady_load_shows_its_rate_at_any_moment() {
        let recent = Recent::default();
        let start_ns = 5 * SECOND_NS;
        // A command each millisecond, for five seconds.
        for millisecond in 0..5_000 {
            let now_ns = start_ns + millisecond * 1_000_000;
            recent.add(now_ns, one(1));
            if millisecond > 1_700 {
                let rate = per_second(&window(&recent, now_ns, 0));
                assert!((999.0..1001.0).contains(&rate), "{rate} at {millisecond}");
            }
        }
    }

    #[test]
    fn a_load_that_has_ended_is_forgotten_without_anybody_s_doing() {
        let recent = Recent::default();
        recent.add(10 * SECOND_NS, one(50));
        let now = window(&recent, 10 * SECOND_NS, 0);
        assert_eq!(
            (now.commands, now.input_bytes, now.output_bytes),
            (50, 500, 5000)
        );
        assert_eq!((now.loops, now.busy_ns, now.seconds), (1, 7, 1.6));
        let later = |ms: u64| window(&recent, 10 * SECOND_NS + ms * 1_000_000, 0).commands;
        assert_eq!((later(1_699), later(1_700)), (50, 0));
        assert_eq!(later(1_000_000), 0);
    }

    #[test]
    fn an_old_bucket_is_emptied_before_it_is_used_again() {
        let recent = Recent::default();
        recent.add(SECOND_NS, one(1_000));
        recent.add(SECOND_NS + BUCKETS as u64 * BUCKET_NS, one(3));
        let now_ns = SECOND_NS + BUCKETS as u64 * BUCKET_NS;
        assert_eq!(window(&recent, now_ns, 0).commands, 3);
    }

    #[test]
    fn a_reset_hides_what_was_before_it() {
        let recent = Recent::default();
        recent.add(SECOND_NS, one(1));
        recent.add(SECOND_NS + 2 * BUCKET_NS, one(10));
        let now_ns = SECOND_NS + 3 * BUCKET_NS;
        assert_eq!(window(&recent, now_ns, 0).commands, 11);
        assert_eq!(window(&recent, now_ns, SECOND_NS + BUCKET_NS).commands, 10);
        assert_eq!(
            window(&recent, now_ns, SECOND_NS + 2 * BUCKET_NS).commands,
            0
        );
    }

    #[test]
    fn workers_are_added_up() {
        let workers = [Recent::default(), Recent::default()];
        workers[0].add(SECOND_NS, one(1));
        workers[1].add(SECOND_NS, one(2));
        assert_eq!(Window::of(workers.iter(), SECOND_NS, 0).commands, 3);
    }
}
