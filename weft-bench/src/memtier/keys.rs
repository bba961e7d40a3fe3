//! Which keys requests are about.
//!
//! Owns the key patterns and the state of a sequence of keys. Every client has its own sequence for each of its commands.
//! Invariant: keys stay between the minimum and the maximum, both of them included.

use fastrand::Rng;

use crate::distribution::{Zipf, normal};

/// How keys follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// R: each as likely as any other.
    Random,
    /// S: one after the other, round and round.
    Sequential,
    /// P: the same, in a part of the keys that is this client's own.
    Parallel,
    /// G: those around the median more often.
    Gaussian,
    /// Z: the first ones more often.
    Zipf,
}

/// The keys there are, and how they are drawn.
#[derive(Clone, Copy, Debug)]
pub struct KeySpace {
    pub minimum: u64,
    pub maximum: u64,
    /// `None`: a sixth of the range.
    pub stddev: Option<f64>,
    /// `None`: the middle of the range.
    pub median: Option<f64>,
    pub zipf_exponent: f64,
}

impl KeySpace {
    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.maximum - self.minimum + 1
    }
}

/// A sequence of keys.
#[derive(Clone, Debug)]
pub struct Keys {
    kind: Kind,
    first: u64,
    last: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    InOrder { next: u64 },
    Gaussian { median: f64, stddev: f64 },
    Zipf(Zipf),
}

impl Keys {
    /// The sequence of client `client` of `clients`.
    pub fn new(space: &KeySpace, pattern: Pattern, client: u64, clients: u64) -> Keys {
        let (mut first, mut last) = (space.minimum, space.maximum);
        let count = space.count();
        let kind = match pattern {
            Pattern::Random => Kind::Uniform,
            Pattern::Sequential => Kind::InOrder { next: first },
            Pattern::Parallel => {
                // With more clients than keys, several have the same one.
                let part = |client: u64| {
                    (u128::from(count) * u128::from(client) / u128::from(clients)) as u64
                };
                let start = part(client).min(count - 1);
                let end = part(client + 1).max(start + 1);
                last = first + end - 1;
                first += start;
                Kind::InOrder { next: first }
            }
            Pattern::Gaussian => {
                let width = (last - first) as f64;
                Kind::Gaussian {
                    median: space.median.unwrap_or(first as f64 + width / 2.0),
                    stddev: space.stddev.unwrap_or(width / 6.0),
                }
            }
            Pattern::Zipf => Kind::Zipf(Zipf::new(count, space.zipf_exponent)),
        };
        Keys { kind, first, last }
    }

    /// The next key.
    #[inline]
    pub fn next(&mut self, random: &mut Rng) -> u64 {
        match &mut self.kind {
            Kind::Uniform => random.u64(self.first..=self.last),
            Kind::InOrder { next } => {
                let key = *next;
                *next = if key >= self.last {
                    self.first
                } else {
                    key + 1
                };
                key
            }
            Kind::Gaussian { median, stddev } => {
                for _ in 0..GAUSSIAN_TRIES {
                    let key = (*median + *stddev * normal(random)).round();
                    if key >= self.first as f64 && key <= self.last as f64 {
                        return (key as u64).clamp(self.first, self.last);
                    }
                }
                // The median lies far outside.
                (*median as u64).clamp(self.first, self.last)
            }
            Kind::Zipf(zipf) => self.first + zipf.rank(random) - 1,
        }
    }
}

/// Draws before the nearest key is taken.
const GAUSSIAN_TRIES: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: KeySpace = KeySpace {
        minimum: 100,
        maximum: 199,
        stddev: None,
        median: None,
        zipf_exponent: 1.0,
    };

    fn drawn(space: &KeySpace, pattern: Pattern, count: usize) -> Vec<u64> {
        let mut random = Rng::with_seed(1);
        let mut keys = Keys::new(space, pattern, 0, 1);
        std::iter::repeat_with(|| keys.next(&mut random))
            .take(count)
            .collect()
    }

    fn share(keys: &[u64], range: std::ops::RangeInclusive<u64>) -> f64 {
        keys.iter().filter(|key| range.contains(key)).count() as f64 / keys.len() as f64
    }

    #[test]
    fn sequences_go_round() {
        let keys = drawn(&SPACE, Pattern::Sequential, 201);
        assert_eq!(keys[..3], [100, 101, 102]);
        assert_eq!(keys[99..102], [199, 100, 101]);
        assert_eq!(keys[200], 100);
    }

    #[test]
    fn parts_cover_the_keys_without_overlap() {
        let mut random = Rng::with_seed(1);
        let mut seen = Vec::new();
        for client in 0..7 {
            let mut keys = Keys::new(&SPACE, Pattern::Parallel, client, 7);
            let first = keys.next(&mut random);
            seen.push(first);
            loop {
                match keys.next(&mut random) {
                    key if key == first => break,
                    key => seen.push(key),
                }
            }
        }
        assert_eq!(seen, (100..=199).collect::<Vec<u64>>());
        // More clients than keys.
        let few = KeySpace {
            maximum: 101,
            ..SPACE
        };
        for client in 0..5 {
            let key = Keys::new(&few, Pattern::Parallel, client, 5).next(&mut random);
            assert!((100..=101).contains(&key));
        }
    }

    #[test]
    fn random_keys_are_spread_evenly() {
        let keys = drawn(&SPACE, Pattern::Random, 100_000);
        assert!(keys.iter().all(|key| (100..=199).contains(key)));
        assert!((share(&keys, 100..=109) - 0.1).abs() < 0.01);
        assert!((share(&keys, 190..=199) - 0.1).abs() < 0.01);
    }

    #[test]
    fn gaussian_keys_lie_around_the_median() {
        let keys = drawn(&SPACE, Pattern::Gaussian, 100_000);
        assert!(keys.iter().all(|key| (100..=199).contains(key)));
        // One standard deviation, 16.5 keys, on either side.
        assert!((share(&keys, 134..=165) - 0.673).abs() < 0.02);
        let aside = KeySpace {
            median: Some(180.0),
            stddev: Some(2.0),
            ..SPACE
        };
        let keys = drawn(&aside, Pattern::Gaussian, 10_000);
        assert!((share(&keys, 178..=182) - 0.79).abs() < 0.03);
        let outside = KeySpace {
            median: Some(1e6),
            stddev: Some(1.0),
            ..SPACE
        };
        assert_eq!(drawn(&outside, Pattern::Gaussian, 2), [199, 199]);
    }

    #[test]
    fn zipf_keys_follow_the_law() {
        for exponent in [0.5, 1.0, 2.0] {
            let space = KeySpace {
                zipf_exponent: exponent,
                ..SPACE
            };
            let keys = drawn(&space, Pattern::Zipf, 200_000);
            assert!(keys.iter().all(|key| (100..=199).contains(key)));
            let sum: f64 = (1..=100).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1_u32, 2, 3, 10] {
                let expected = f64::from(rank).powf(-exponent) / sum;
                let key = 99 + u64::from(rank);
                let found = share(&keys, key..=key);
                assert!(
                    (found - expected).abs() < 0.1 * expected + 0.001,
                    "exponent {exponent}, rank {rank}: {found}, not {expected}"
                );
            }
        }
    }
}
