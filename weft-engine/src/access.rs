//! When a key was last used, or how often: the 24 bits that an entry keeps for it.
//!
//! Owns what the bits mean under each family of `maxmemory-policy`. Does not know keys or the time. Without an LFU policy
//! they are the second of the last use, modulo 2^24 (194 days). With one they are, from the top:
//!
//! ```text
//! minute of the last use, modulo 2^16 | counter 8
//! ```
//! The counter grows by chance, the less likely the higher it is, and falls by one every `lfu-decay-time` minutes without
//! use. Switching the policy does not rewrite the bits: they are wrong until the key is used again, as in Redis.

use crate::config::{ParameterId, Settings};

/// What an entry's bits can hold.
const MASK: u64 = 0xff_ffff;
/// The counter of a new key, and the one below which every use counts; from Redis.
const COUNTER_BIRTH: u32 = 5;
const COUNTER_MAX: u32 = 255;
/// The places of `volatile-lfu` and `allkeys-lfu` among the choices of `maxmemory-policy`.
const LFU_POLICIES: [u8; 2] = [1, 5];

/// How uses are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessRule {
    /// When a key was last used.
    #[default]
    Recency,
    /// How often it is used.
    Frequency {
        /// `lfu-log-factor`: how slowly the counter grows.
        log_factor: u32,
        /// `lfu-decay-time`, minutes; 0: it never falls.
        decay_minutes: u32,
    },
}

impl AccessRule {
    /// The rule that the settings ask for.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let number =
            |id: ParameterId| u32::try_from(settings.integer(id).max(0)).unwrap_or(u32::MAX);
        if LFU_POLICIES.contains(&settings.choice(ParameterId::MaxmemoryPolicy)) {
            Self::Frequency {
                log_factor: number(ParameterId::LfuLogFactor),
                decay_minutes: number(ParameterId::LfuDecayTime),
            }
        } else {
            Self::Recency
        }
    }

    /// The bits of a key made at `now_s`, seconds since 1970.
    #[must_use]
    pub fn birth(self, now_s: u64) -> u32 {
        match self {
            Self::Recency => (now_s & MASK) as u32,
            Self::Frequency { .. } => frequency_bits(now_s, COUNTER_BIRTH),
        }
    }

    /// The bits of a key used at `now_s`. `random` is asked only where chance decides.
    #[must_use]
    #[inline]
    pub fn used(self, bits: u32, now_s: u64, random: impl FnOnce() -> f64) -> u32 {
        match self {
            Self::Recency => (now_s & MASK) as u32,
            Self::Frequency { log_factor, .. } => {
                let counter = self.frequency(bits, now_s);
                let above = counter.saturating_sub(COUNTER_BIRTH);
                let likely = 1.0 / (f64::from(above) * f64::from(log_factor) + 1.0);
                let grown = u32::from(counter < COUNTER_MAX && random() < likely);
                frequency_bits(now_s, counter + grown)
            }
        }
    }

    /// The counter at `now_s`: what is left of it after the time without use.
    #[must_use]
    pub fn frequency(self, bits: u32, now_s: u64) -> u32 {
        let counter = bits & COUNTER_MAX;
        let idle_minutes = ((now_s / 60) as u16).wrapping_sub((bits >> 8) as u16);
        match self {
            Self::Frequency { decay_minutes, .. } if decay_minutes > 0 => {
                counter.saturating_sub(u32::from(idle_minutes) / decay_minutes)
            }
            _ => counter,
        }
    }
}

fn frequency_bits(now_s: u64, counter: u32) -> u32 {
    u32::from((now_s / 60) as u16) << 8 | counter
}

/// Seconds since the use that the bits tell of, under [`AccessRule::Recency`].
#[must_use]
pub fn idle_s(bits: u32, now_s: u64) -> u32 {
    (now_s.wrapping_sub(u64::from(bits)) & MASK) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_700_000_000;

    fn lfu(log_factor: u32, decay_minutes: u32) -> AccessRule {
        AccessRule::Frequency {
            log_factor,
            decay_minutes,
        }
    }

    #[test]
    fn idle_time_survives_the_wrap_of_the_bits() {
        let bits = AccessRule::Recency.birth(NOW_S);
        assert_eq!(idle_s(bits, NOW_S), 0);
        assert_eq!(idle_s(bits, NOW_S + 12_345), 12_345);
        let before_wrap = (NOW_S | MASK) - 2;
        let bits = AccessRule::Recency.used(bits, before_wrap, || unreachable!());
        assert_eq!(idle_s(bits, before_wrap + 10), 10);
    }

    #[test]
    fn the_counter_starts_at_five_and_grows_ever_more_slowly() {
        let rule = lfu(10, 1);
        let born = rule.birth(NOW_S);
        assert_eq!(rule.frequency(born, NOW_S), 5);
        let second = rule.used(born, NOW_S, || 0.999);
        assert_eq!(rule.frequency(second, NOW_S), 6);
        assert_eq!(
            rule.frequency(rule.used(second, NOW_S, || 0.0909), NOW_S),
            7
        );
        assert_eq!(
            rule.frequency(rule.used(second, NOW_S, || 0.0910), NOW_S),
            6
        );
        let full = frequency_bits(NOW_S, 255);
        assert_eq!(rule.frequency(rule.used(full, NOW_S, || 0.0), NOW_S), 255);
        let greedy = lfu(0, 1);
        assert_eq!(
            greedy.frequency(
                greedy.used(frequency_bits(NOW_S, 200), NOW_S, || 0.99),
                NOW_S
            ),
            201
        );
    }

    #[test]
    fn the_counter_falls_with_the_minutes_without_use() {
        let bits = frequency_bits(NOW_S, 20);
        let minute = NOW_S / 60 * 60;
        assert_eq!(lfu(10, 1).frequency(bits, minute + 59), 20);
        assert_eq!(lfu(10, 1).frequency(bits, minute + 60), 19);
        assert_eq!(lfu(10, 3).frequency(bits, minute + 60 * 8), 18);
        assert_eq!(lfu(10, 1).frequency(bits, minute + 60 * 100), 0);
        assert_eq!(lfu(10, 0).frequency(bits, minute + 60 * 100), 20);
        let late = frequency_bits(65_535 * 60, 9);
        assert_eq!(lfu(10, 1).frequency(late, 65_537 * 60), 7);
    }
}
