//! The engine's clock: the system's.

use rustix::time::{ClockId, Timespec, clock_gettime};
use weft_engine::clock::Clock;
use weft_reactor::monotonic_ns;

/// Reads the system's clocks, without a system call where the kernel offers that.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn unix_us(&self) -> u64 {
        microseconds(clock_gettime(ClockId::Realtime))
    }

    /// On the scale of the driver's clock.
    fn monotonic_ns(&self) -> u64 {
        monotonic_ns()
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
        let now = SystemClock.unix_us();
        let after = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_micros() as u64;
        assert!(before <= now && now <= after);
        let first = SystemClock.monotonic_ns();
        assert!(first <= SystemClock.monotonic_ns());
        assert!(first / 1000 <= SystemClock.monotonic_us());
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
