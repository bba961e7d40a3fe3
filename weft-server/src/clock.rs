//! The engine's clock: the system's.

use rustix::time::{ClockId, Timespec, clock_gettime};
use weft_engine::clock::Clock;
use weft_reactor::monotonic_ns;

/// Reads the system's clocks, without a system call where the kernel offers that. Instants come from the processor's counter
/// where that runs evenly, and from the monotonic clock elsewhere.
#[derive(Clone, Debug)]
pub struct SystemClock {
    counter: quanta::Clock,
}

impl SystemClock {
    /// The first one of a process compares the counter with the system's clock, which takes some 10 ms.
    pub fn new() -> Self {
        Self {
            counter: quanta::Clock::new(),
        }
    }
}

impl Clock for SystemClock {
    fn unix_us(&self) -> u64 {
        microseconds(clock_gettime(ClockId::Realtime))
    }

    /// On the scale of the driver's clock.
    fn monotonic_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn instant_ns(&self) -> u64 {
        self.counter.delta_as_nanos(0, self.counter.raw())
    }
}

/// A clock set to before 1970 shows 1970.
fn microseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1000
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_clocks_agree_with_the_standard_library() {
        let before = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_micros() as u64;
        let clock = SystemClock::new();
        let now = clock.unix_us();
        let after = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_micros() as u64;
        assert!(before <= now && now <= after);
        let first = clock.monotonic_ns();
        assert!(first <= clock.monotonic_ns());
        assert!(first / 1000 <= clock.monotonic_us());
    }

    #[test]
    fn instants_run_as_fast_as_the_monotonic_clock() {
        const SPAN_NS: u64 = 20_000_000;
        let clock = SystemClock::new();
        let (before_ns, first_ns) = (clock.monotonic_ns(), clock.instant_ns());
        let (mut inner_ns, mut second_ns, mut after_ns);
        loop {
            inner_ns = clock.monotonic_ns();
            second_ns = clock.instant_ns();
            after_ns = clock.monotonic_ns();
            if inner_ns - before_ns >= SPAN_NS {
                break;
            }
        }
        let elapsed_ns = second_ns - first_ns;
        let (least_ns, most_ns) = (inner_ns - before_ns, after_ns - before_ns);
        // Whatever came between two readings counts for the clock's error; beyond that it is a thousandth at most.
        assert!(
            elapsed_ns + elapsed_ns / 1000 + 1_000_000 >= least_ns
                && elapsed_ns <= most_ns + most_ns / 1000,
            "{elapsed_ns} of {least_ns} to {most_ns}"
        );
    }

    #[test]
    fn times_before_1970_do_not_wrap() {
        assert_eq!(
            microseconds(Timespec {
                tv_sec: -5,
                tv_nsec: 7000
            }),
            7
        );
        assert_eq!(
            microseconds(Timespec {
                tv_sec: 2,
                tv_nsec: 3999
            }),
            2_000_003
        );
    }
}
