//! Coarse deadlines: how active expiry finds what is due without an index.
//!
//! Owns the arithmetic of the lower bounds that buckets (16 bits) and segments (32 bits) keep. Times count ticks of
//! 256 ms; a bound is the tick modulo its width, 0 meaning "nothing expires here", so a tick that falls on 0 is noted
//! one tick earlier. What lies beyond half the width (2.3 hours, 17 years) is noted as the far end of it: "look again
//! then"; bounds of segments and tables never lie beyond what their buckets can tell. Invariant: a bound never lies
//! after the earliest deadline it stands for, relative to the time when it was noted, which is the shard's time
//! ([`Shard::clamp_now`](crate::Shard::clamp_now)).

/// Milliseconds per tick, as a power of two.
const TICK_SHIFT: u32 = 8;

/// The tick in which `ms` lies.
#[inline]
pub(crate) fn tick(ms: u64) -> u64 {
    ms >> TICK_SHIFT
}

/// The first millisecond of a tick.
#[inline]
pub(crate) fn tick_start_ms(tick: u64) -> u64 {
    tick << TICK_SHIFT
}

macro_rules! due {
    ($(#[$doc:meta])* $name:ident, $bits:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name($bits);

        impl $name {
            /// Nothing expires.
            pub(crate) const NONE: $name = $name(0);
            /// The largest distance that can be told from the past.
            const HORIZON: u64 = <$signed>::MAX as u64;

            #[inline]
            pub(crate) fn from_bits(bits: $bits) -> $name {
                $name(bits)
            }

            #[inline]
            pub(crate) fn bits(self) -> $bits {
                self.0
            }

            #[inline]
            pub(crate) fn is_some(self) -> bool {
                self.0 != 0
            }

            /// The tick that stands for tick `deadline` if it is noted in tick `now`: the deadline, or the horizon. One
            /// that has passed is noted as now: it is due at once either way.
            #[inline]
            pub(crate) fn reach(deadline: u64, now: u64) -> u64 {
                now + deadline.saturating_sub(now).min(Self::HORIZON)
            }

            /// The bound for a deadline in tick `deadline`, noted in tick `now`.
            #[inline]
            pub(crate) fn new(deadline: u64, now: u64) -> $name {
                match Self::reach(deadline, now) as $bits {
                    0 => $name(<$bits>::MAX),
                    bits => $name(bits),
                }
            }

            /// The bound for an optional deadline in milliseconds.
            #[inline]
            pub(crate) fn of(deadline_ms: Option<u64>, now: u64) -> $name {
                deadline_ms.map_or(Self::NONE, |ms| Self::new(tick(ms), now))
            }

            /// Ticks from `now` on; negative when the bound has passed.
            #[inline]
            pub(crate) fn ahead(self, now: u64) -> i64 {
                self.0.wrapping_sub(now as $bits) as $signed as i64
            }

            /// Whether something may be due.
            #[inline]
            pub(crate) fn is_due(self, now: u64) -> bool {
                self.is_some() && self.ahead(now) <= 0
            }

            /// The earlier of two bounds.
            #[inline]
            pub(crate) fn earlier(self, other: $name, now: u64) -> $name {
                if !self.is_some() {
                    other
                } else if !other.is_some() || self.ahead(now) <= other.ahead(now) {
                    self
                } else {
                    other
                }
            }
        }
    };
}

due!(
    /// A bucket's bound.
    Due16,
    u16,
    i16
);
due!(
    /// A segment's bound.
    Due32,
    u32,
    i32
);

impl Due32 {
    /// Whether this bound passed so long ago that bounds of 16 bits noted then can no longer be told from the future.
    pub(crate) fn is_stale(self, now: u64) -> bool {
        self.is_some() && self.ahead(now) < -(Due16::HORIZON as i64)
    }

    /// The tick that this bound means.
    pub(crate) fn tick(self, now: u64) -> u64 {
        now.saturating_add_signed(self.ahead(now))
    }
}

/// What one call of [`Shard::expire_due`](crate::Shard::expire_due) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireProgress {
    /// Entries removed.
    pub removed: usize,
    /// Whether the call stopped at its limit, so that something may still be due now.
    pub more: bool,
    /// Lower bound of the earliest deadline left, milliseconds; `None` when nothing expires.
    pub next_due_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_due_exactly_from_its_tick_on() {
        for now in [0, 1, 0x7fff, 0xffff, 0x1_0000, 0x1_2345_6789_u64] {
            for ahead in [0_u64, 1, 2, 1000, 0x7ffe] {
                let due = Due16::new(now + ahead, now);
                let at = due.ahead(now);
                // The tick that falls on 0 is noted one early.
                let early = u64::from((now + ahead) as u16 == 0);
                assert_eq!(at, ahead as i64 - early as i64);
                assert_eq!(due.is_due(now), at <= 0);
                assert!(due.is_due(now + ahead));
            }
        }
    }

    #[test]
    fn what_lies_beyond_the_horizon_is_looked_at_there() {
        let now = 1_000_000;
        let due = Due16::new(now + 10_000_000, now);
        assert_eq!(due.ahead(now), 0x7fff);
        assert_eq!(Due16::new(now - 5, now).ahead(now), 0);
    }

    #[test]
    fn the_earlier_of_two_bounds_wins_across_the_wrap() {
        let now = 0xfffe;
        let near = Due16::new(now + 3, now);
        let far = Due16::new(now + 300, now);
        assert_eq!(near.earlier(far, now), near);
        assert_eq!(far.earlier(near, now), near);
        assert_eq!(Due16::NONE.earlier(far, now), far);
        assert_eq!(far.earlier(Due16::NONE, now), far);
    }
}
