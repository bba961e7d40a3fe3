//! Random pauses at latches and gates, for tests that look for orders of events that are rare otherwise.
//!
//! Without the feature `pauses` a pause is nothing at all. With it and `WEFT_PAUSES=SEED` in the environment a thread
//! pauses at random where another one could come in between: it yields, spins or sleeps for up to 200 us. With
//! `WEFT_BREAK_LATCH=N` one write in N is told to let go of its latches first, which breaks units without touching
//! memory that is not latched: a test of the tests. The only place of the keyspace that looks at its surroundings.

#[cfg(all(feature = "pauses", not(loom)))]
pub use on::lets_go;
#[cfg(all(feature = "pauses", not(loom)))]
pub(crate) use on::pause;

/// A place at which another thread may come in between.
#[cfg(not(all(feature = "pauses", not(loom))))]
#[inline(always)]
pub(crate) fn pause() {}

#[cfg(all(feature = "pauses", not(loom)))]
mod on {
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    /// One place in so many is paused at.
    const PAUSED: u64 = 20;
    /// The longest sleep, in microseconds.
    const SLEEP_US_MAX: u64 = 200;
    /// The longest spin, in turns of a loop.
    const SPINS_MAX: u64 = 2_000;

    static SEED: OnceLock<Option<u64>> = OnceLock::new();
    static BREAK: OnceLock<Option<u64>> = OnceLock::new();

    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }

    fn variable(name: &str) -> Option<u64> {
        std::env::var(name).ok()?.parse().ok()
    }

    /// A random number of this thread (splitmix64).
    fn random() -> u64 {
        static THREADS: AtomicU64 = AtomicU64::new(1);
        STATE.with(|state| {
            if state.get() == 0 {
                let seed = SEED.get().copied().flatten().unwrap_or(0);
                state.set(
                    seed ^ THREADS
                        .fetch_add(1, Relaxed)
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15),
                );
            }
            let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
            state.set(next);
            let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        })
    }

    /// A place at which another thread may come in between.
    pub(crate) fn pause() {
        if SEED.get_or_init(|| variable("WEFT_PAUSES")).is_none() {
            return;
        }
        let drawn = random();
        if !drawn.is_multiple_of(PAUSED) {
            return;
        }
        let length = drawn >> 32;
        match (drawn >> 16) % 4 {
            0 | 1 => std::thread::yield_now(),
            2 => (0..length % SPINS_MAX).for_each(|_| std::hint::spin_loop()),
            _ => std::thread::sleep(Duration::from_micros(length % SLEEP_US_MAX)),
        }
    }

    /// Whether a unit is to let go of its latches here, wrongly.
    pub fn lets_go() -> bool {
        let rate = BREAK.get_or_init(|| variable("WEFT_BREAK_LATCH"));
        rate.is_some_and(|rate| random().is_multiple_of(rate.max(1)))
    }
}
