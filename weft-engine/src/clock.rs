//! Time comes from outside: the engine reads no clock of its own.

/// A source of time, read at command boundaries.
pub trait Clock {
    /// Microseconds since 1970.
    fn unix_us(&self) -> u64;

    /// Nanoseconds since an arbitrary start, never going back. Cheap: it is read twice for every step that is measured.
    fn monotonic_ns(&self) -> u64;

    /// Nanoseconds on a scale of its own, never going back: the cheapest reading there is, taken once for every command.
    fn instant_ns(&self) -> u64 {
        self.monotonic_ns()
    }

    /// Microseconds on the scale of [`monotonic_ns`](Self::monotonic_ns).
    fn monotonic_us(&self) -> u64 {
        self.monotonic_ns() / 1000
    }

    /// Milliseconds since 1970.
    fn unix_ms(&self) -> u64 {
        self.unix_us() / 1000
    }
}

/// A clock that stands still until it is moved: for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock(std::sync::atomic::AtomicU64);

impl ManualClock {
    /// A clock that shows this time.
    #[must_use]
    pub const fn at_ms(unix_ms: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(unix_ms * 1000))
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, ms: u64) {
        self.advance_us(ms * 1000);
    }

    /// Moves the clock forward by less.
    pub fn advance_us(&self, us: u64) {
        self.0.fetch_add(us, std::sync::atomic::Ordering::Relaxed);
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn unix_us(&self) -> u64 {
        (**self).unix_us()
    }

    fn monotonic_ns(&self) -> u64 {
        (**self).monotonic_ns()
    }

    fn instant_ns(&self) -> u64 {
        (**self).instant_ns()
    }
}

impl Clock for ManualClock {
    fn unix_us(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn monotonic_ns(&self) -> u64 {
        self.unix_us() * 1000
    }
}
