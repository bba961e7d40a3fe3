//! Which keys requests are about.
//!
//! Owns sets of keys, how one of them is drawn, and how keys are spelled. Invariant: what is drawn is below the number of keys.

use std::fmt;

use fastrand::Rng;

use crate::distribution::{Zipf, normal};

/// A set of numbered keys.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySpace {
    /// What stands before the number.
    pub prefix: Vec<u8>,
    /// The number of the first key.
    pub first: u64,
    /// How many there are. At least 1.
    pub count: u64,
    /// Numbers have leading zeroes up to so many digits.
    pub digits: u8,
    /// How one is drawn.
    pub distribution: Distribution,
}

/// How likely each key is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Each as likely as any other.
    Uniform,
    /// One after the other, over all connections together, and round again.
    Sequential,
    /// Around a centre, as shares of the number of keys: `centre` from 0 to 1, `spread` is the standard deviation.
    Gaussian {
        /// Where the middle is.
        centre: f64,
        /// How wide it is.
        spread: f64,
    },
    /// Key number K, counted from 1, as likely as K to the power of minus `theta`.
    Zipf {
        /// The exponent, above 0.
        theta: f64,
    },
    /// The first `keys` of the keys get `requests` of the requests; both are shares from 0 to 1. Evenly within each part.
    Hot {
        /// The share of the keys that are hot.
        keys: f64,
        /// The share of the requests that go to them.
        requests: f64,
    },
}

impl Default for KeySpace {
    fn default() -> KeySpace {
        KeySpace {
            prefix: b"key:".to_vec(),
            first: 0,
            count: 100_000,
            digits: 0,
            distribution: Distribution::Uniform,
        }
    }
}

impl Distribution {
    /// Reads `uniform`, `sequential`, `gaussian[:CENTRE]:SPREAD`, `zipf[:THETA]`, `hot:KEYS:REQUESTS`. The error says what
    /// would be right.
    pub fn parse(text: &str) -> Result<Distribution, String> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let numbers: Vec<f64> = parts
            .map(|part| {
                part.parse()
                    .map_err(|_| format!("'{part}' in '{text}' is no number"))
            })
            .collect::<Result<_, String>>()?;
        let share = |number: f64| (0.0..=1.0).contains(&number);
        match (name, &numbers[..]) {
            ("uniform", []) => Ok(Distribution::Uniform),
            ("sequential", []) => Ok(Distribution::Sequential),
            ("gaussian", []) => Ok(Distribution::Gaussian {
                centre: 0.5,
                spread: 1.0 / 6.0,
            }),
            ("gaussian", &[spread]) if spread > 0.0 && spread <= 1.0 => {
                Ok(Distribution::Gaussian {
                    centre: 0.5,
                    spread,
                })
            }
            ("gaussian", &[centre, spread]) if share(centre) && spread > 0.0 && spread <= 1.0 => {
                Ok(Distribution::Gaussian { centre, spread })
            }
            ("zipf", []) => Ok(Distribution::Zipf { theta: 0.99 }),
            ("zipf", &[theta]) if theta > 0.0 && theta <= 20.0 => Ok(Distribution::Zipf { theta }),
            ("hot", &[keys, requests]) if keys > 0.0 && share(keys) && share(requests) => {
                Ok(Distribution::Hot { keys, requests })
            }
            _ => Err(format!(
                "'{text}' is none of uniform, sequential, gaussian, gaussian:SPREAD, gaussian:CENTRE:SPREAD, zipf:THETA \
                 and hot:KEYS:REQUESTS (THETA above 0; the others are shares from 0 to 1, such as hot:0.1:0.9)"
            )),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Sequential => f.write_str("sequential"),
            Distribution::Gaussian { centre, spread } => write!(f, "gaussian:{centre}:{spread}"),
            Distribution::Zipf { theta } => write!(f, "zipf:{theta}"),
            Distribution::Hot { keys, requests } => write!(f, "hot:{keys}:{requests}"),
        }
    }
}

/// A key space, made ready to draw from.
#[derive(Clone, Debug)]
pub struct Keys {
    space: KeySpace,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Sequential,
    Gaussian { median: f64, deviation: f64 },
    Zipf(Zipf),
    Hot { keys: u64, requests: f64 },
}

/// Draws before the nearest key is taken.
const GAUSSIAN_TRIES: u32 = 64;

/// More digits than a number has.
const DIGITS_MAX: usize = 40;

impl Keys {
    /// Prepares to draw.
    pub fn new(space: &KeySpace) -> Keys {
        let count = space.count.max(1);
        let kind = match space.distribution {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Sequential => Kind::Sequential,
            Distribution::Gaussian { centre, spread } => Kind::Gaussian {
                median: centre * (count - 1) as f64,
                deviation: spread * count as f64,
            },
            Distribution::Zipf { theta } => Kind::Zipf(Zipf::new(count, theta)),
            Distribution::Hot { keys, requests } => Kind::Hot {
                keys: ((keys * count as f64).round() as u64).clamp(1, count),
                requests,
            },
        };
        Keys {
            space: KeySpace {
                count,
                ..space.clone()
            },
            kind,
        }
    }

    /// Draws a key: its number less that of the first. `turn` counts the keys drawn over all connections.
    #[inline]
    pub fn draw(&self, turn: u64, random: &mut Rng) -> u64 {
        let count = self.space.count;
        match &self.kind {
            Kind::Uniform => random.u64(..count),
            Kind::Sequential => turn % count,
            Kind::Gaussian { median, deviation } => {
                for _ in 0..GAUSSIAN_TRIES {
                    let key = (*median + *deviation * normal(random)).round();
                    if key >= 0.0 && key < count as f64 {
                        return (key as u64).min(count - 1);
                    }
                }
                (*median as u64).min(count - 1)
            }
            Kind::Zipf(zipf) => zipf.rank(random) - 1,
            Kind::Hot { keys, requests } => {
                if *keys == count || random.f64() < *requests {
                    random.u64(..*keys)
                } else {
                    random.u64(*keys..count)
                }
            }
        }
    }

    /// Appends the key with this number.
    #[inline]
    pub fn write(&self, key: u64, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(self.space.first.wrapping_add(key)).as_bytes();
        out.extend_from_slice(&self.space.prefix);
        self.pad(digits.len(), out);
        out.extend_from_slice(digits);
    }

    /// Appends the key with this number as an argument of a request.
    #[inline]
    pub fn write_argument(&self, key: u64, out: &mut Vec<u8>) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(self.space.first.wrapping_add(key)).as_bytes();
        let len = self.space.prefix.len() + digits.len().max(usize::from(self.space.digits));
        out.push(b'$');
        out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.space.prefix);
        self.pad(digits.len(), out);
        out.extend_from_slice(digits);
        out.extend_from_slice(b"\r\n");
    }

    fn pad(&self, digits: usize, out: &mut Vec<u8>) {
        let zeroes = usize::from(self.space.digits).saturating_sub(digits);
        out.extend_from_slice(&[b'0'; DIGITS_MAX][..zeroes.min(DIGITS_MAX)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: u64 = 400_000;

    fn space(count: u64, distribution: &str) -> KeySpace {
        KeySpace {
            count,
            distribution: Distribution::parse(distribution).unwrap(),
            ..KeySpace::default()
        }
    }

    fn drawn(space: &KeySpace) -> Vec<u64> {
        let keys = Keys::new(space);
        let mut random = Rng::with_seed(20);
        let mut counts = vec![0; space.count as usize];
        for turn in 0..DRAWN {
            counts[keys.draw(turn, &mut random) as usize] += 1;
        }
        counts
    }

    /// The sum over cells of the squared difference between drawn and expected, over the expected; cells of which fewer
    /// than 10 are expected are put together with the next ones. With it, the degrees of freedom.
    fn chi_square(counts: &[u64], probability: impl Fn(u64) -> f64) -> (f64, f64) {
        let (mut sum, mut cells) = (0.0, 0.0);
        let (mut found, mut expected) = (0.0, 0.0);
        for (key, &count) in counts.iter().enumerate() {
            found += count as f64;
            expected += probability(key as u64) * DRAWN as f64;
            if expected >= 10.0 {
                sum += (found - expected) * (found - expected) / expected;
                cells += 1.0;
                (found, expected) = (0.0, 0.0);
            }
        }
        (sum, cells - 1.0)
    }

    /// Chi-square lies within four standard deviations of its mean, which are the degrees of freedom.
    fn check(counts: &[u64], probability: impl Fn(u64) -> f64) {
        assert_eq!(counts.iter().sum::<u64>(), DRAWN);
        let (chi_square, freedom) = chi_square(counts, probability);
        let width = (2.0 * freedom).sqrt();
        assert!(
            (chi_square - freedom).abs() < 4.0 * width,
            "chi-square {chi_square} with {freedom} degrees of freedom"
        );
    }

    #[test]
    fn uniform_keys_pass_a_chi_square_test() {
        check(&drawn(&space(1000, "uniform")), |_| 0.001);
    }

    #[test]
    fn zipf_keys_pass_a_chi_square_test() {
        for theta in [0.5, 0.99, 1.0, 1.2, 2.0] {
            let weight = |key: u64| ((key + 1) as f64).powf(-theta);
            let sum: f64 = (0..10_000).map(weight).sum();
            let counts = drawn(&space(10_000, &format!("zipf:{theta}")));
            check(&counts, |key| weight(key) / sum);
        }
    }

    #[test]
    fn zipf_ranks_of_a_great_many_keys_have_their_share() {
        const COUNT: u64 = 1 << 40;
        let theta = 0.99;
        // The sum of the weights by the formula of Euler and Maclaurin, behind the first million.
        let weight = |rank: f64| rank.powf(-theta);
        let head = 1_000_000_u64;
        let first: f64 = (1..head).map(|rank| weight(rank as f64)).sum();
        let integral = |x: f64| x.powf(1.0 - theta) / (1.0 - theta);
        let rest = integral(COUNT as f64) - integral(head as f64)
            + (weight(head as f64) + weight(COUNT as f64)) / 2.0;
        let sum = first + rest;
        let keys = Keys::new(&space(COUNT, "zipf:0.99"));
        let mut random = Rng::with_seed(5);
        let mut counts = [0_u64; 51];
        for turn in 0..DRAWN {
            let key = keys.draw(turn, &mut random);
            assert!(key < COUNT);
            counts[(key as usize).min(50)] += 1;
        }
        check(&counts, |key| match key {
            50 => {
                1.0 - (1..=50)
                    .map(|rank| weight(f64::from(rank)) / sum)
                    .sum::<f64>()
            }
            key => weight((key + 1) as f64) / sum,
        });
    }

    #[test]
    fn gaussian_keys_pass_a_chi_square_test() {
        for (text, centre, spread) in [
            ("gaussian", 0.5, 1.0 / 6.0),
            ("gaussian:0.8:0.05", 0.8, 0.05),
        ] {
            let space = space(1000, text);
            let (median, deviation) = (centre * 999.0, spread * 1000.0);
            // Key K stands for what lies within half a key of it, by Simpson's rule; what lies outside is drawn again.
            let density = |x: f64| (-0.5 * ((x - median) / deviation).powi(2)).exp();
            let cell = |key: u64| {
                let key = key as f64;
                (density(key - 0.5) + 4.0 * density(key) + density(key + 0.5)) / 6.0
            };
            let sum: f64 = (0..1000).map(cell).sum();
            check(&drawn(&space), |key| cell(key) / sum);
        }
    }

    #[test]
    fn hot_keys_pass_a_chi_square_test() {
        check(&drawn(&space(1000, "hot:0.1:0.9")), |key| match key {
            0..100 => 0.9 / 100.0,
            _ => 0.1 / 900.0,
        });
        check(&drawn(&space(10, "hot:1:0.5")), |_| 0.1);
    }

    #[test]
    fn sequences_go_round() {
        let keys = Keys::new(&space(3, "sequential"));
        let random = &mut Rng::with_seed(1);
        let drawn: Vec<u64> = (0..5).map(|turn| keys.draw(turn, random)).collect();
        assert_eq!(drawn, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn keys_are_spelled_as_asked_for() {
        let text = |space: KeySpace, key| {
            let keys = Keys::new(&space);
            let (mut plain, mut argument) = (Vec::new(), Vec::new());
            keys.write(key, &mut plain);
            keys.write_argument(key, &mut argument);
            let plain = String::from_utf8(plain).unwrap();
            let expected = format!("${}\r\n{plain}\r\n", plain.len());
            assert_eq!(String::from_utf8(argument).unwrap(), expected);
            plain
        };
        assert_eq!(text(KeySpace::default(), 7), "key:7");
        let padded = KeySpace {
            digits: 12,
            first: 100,
            ..KeySpace::default()
        };
        assert_eq!(text(padded, 7), "key:000000000107");
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for text in [
            "",
            "zipf:0",
            "zipf:x",
            "hot",
            "hot:2:0.5",
            "uniform:1",
            "gaussian:0",
        ] {
            assert!(Distribution::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            Distribution::parse("zipf:x").unwrap_err(),
            "'x' in 'zipf:x' is no number"
        );
    }
}
