//! The one clock of the reactor: CLOCK_MONOTONIC in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC: the time scale of every deadline given to a driver. Read without a system call.
#[inline]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The kernel never reports a negative monotonic time, and 64 bits of nanoseconds last for 584 years.
    (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64
}
