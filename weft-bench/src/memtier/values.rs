//! What is stored: sizes of values, and their bytes.

use std::sync::Arc;

use fastrand::Rng;

use super::keys::KeySpace;
use super::options::Sizes;

/// What the bytes of a value are that is not random.
const FILLER: u8 = b'x';

/// Random values are windows into this many bytes more than the longest one has.
const WINDOWS: usize = 64 << 10;

/// Gives values. Cloned, it shares its bytes.
#[derive(Clone, Debug)]
pub struct Values {
    sizes: Sizes,
    weights: u32,
    /// Sizes follow the key, from the least to the greatest.
    by_key: bool,
    space: KeySpace,
    /// Everything about a value follows from its key.
    fixed: bool,
    bytes: Arc<[u8]>,
    /// How many windows there are; 1 if values are not random.
    windows: usize,
}

impl Values {
    /// Values of these sizes.
    pub fn new(sizes: &Sizes, by_key: bool, space: KeySpace, random: Option<&mut Rng>) -> Values {
        let longest = match sizes {
            Sizes::Fixed(size) => *size,
            Sizes::Range(_, to) => *to,
            Sizes::Weighted(sizes) => sizes.iter().map(|(size, _)| *size).max().unwrap_or(1),
        };
        let (bytes, windows) = match random {
            Some(random) => {
                let mut bytes = vec![0; longest + WINDOWS - 1];
                random.fill(&mut bytes);
                (bytes, WINDOWS)
            }
            None => (vec![FILLER; longest], 1),
        };
        Values {
            weights: match sizes {
                Sizes::Weighted(sizes) => sizes.iter().map(|(_, weight)| *weight).sum(),
                _ => 0,
            },
            sizes: sizes.clone(),
            by_key,
            space,
            fixed: false,
            bytes: bytes.into(),
            windows,
        }
    }

    /// The same, but what is drawn for a value is drawn from its key: whoever knows the key knows the value.
    pub fn fixed(self) -> Values {
        Values {
            fixed: true,
            ..self
        }
    }

    /// The value for a key.
    #[inline]
    pub fn next(&self, key: u64, random: &mut Rng) -> &[u8] {
        match self.fixed {
            true => self.draw(key, &mut Rng::with_seed(key)),
            false => self.draw(key, random),
        }
    }

    #[inline]
    fn draw(&self, key: u64, random: &mut Rng) -> &[u8] {
        let size = match &self.sizes {
            Sizes::Fixed(size) => *size,
            Sizes::Range(from, to) if self.by_key => {
                let place = u128::from(key.saturating_sub(self.space.minimum));
                let width = (to - from) as u128;
                let steps = u128::from(self.space.count() - 1).max(1);
                from + (width * place / steps).min(width) as usize
            }
            Sizes::Range(from, to) => random.usize(*from..=*to),
            Sizes::Weighted(sizes) => {
                let mut drawn = random.u32(..self.weights);
                let size = sizes.iter().find(|(_, weight)| {
                    let here = drawn < *weight;
                    drawn = drawn.saturating_sub(*weight);
                    here
                });
                size.map_or(1, |(size, _)| *size)
            }
        };
        let start = match self.windows {
            1 => 0,
            windows => random.usize(..windows),
        };
        &self.bytes[start..start + size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: KeySpace = KeySpace {
        minimum: 1,
        maximum: 101,
        stddev: None,
        median: None,
        zipf_exponent: 1.0,
    };

    #[test]
    fn sizes_are_as_asked_for() {
        let mut random = Rng::with_seed(1);
        let fixed = Values::new(&Sizes::Fixed(5), false, SPACE, None);
        assert_eq!(fixed.next(1, &mut random), b"xxxxx");
        let spread = Values::new(&Sizes::Range(10, 110), true, SPACE, None);
        for (key, size) in [(1, 10), (51, 60), (101, 110), (0, 10), (500, 110)] {
            assert_eq!(spread.next(key, &mut random).len(), size);
        }
        let drawn = Values::new(&Sizes::Range(10, 12), false, SPACE, None);
        let mut seen = [0; 13];
        (0..3000).for_each(|_| seen[drawn.next(1, &mut random).len()] += 1);
        assert!(seen[10..].iter().all(|&count| count > 900));
        let weighted = Values::new(&Sizes::Weighted(vec![(1, 80), (9, 20)]), false, SPACE, None);
        let short = (0..10_000)
            .filter(|_| weighted.next(1, &mut random).len() == 1)
            .count();
        assert!((7800..8200).contains(&short), "{short}");
    }

    #[test]
    fn random_values_differ() {
        let mut random = Rng::with_seed(1);
        let values = Values::new(
            &Sizes::Fixed(32),
            false,
            SPACE,
            Some(&mut Rng::with_seed(2)),
        );
        let first = values.next(1, &mut random).to_vec();
        let second = values.next(1, &mut random);
        assert_eq!(first.len(), 32);
        assert_ne!(first, second);
    }

    #[test]
    fn fixed_values_follow_from_their_keys() {
        let values = |seed| {
            let mut bytes = Rng::with_seed(seed);
            Values::new(&Sizes::Range(10, 50), false, SPACE, Some(&mut bytes)).fixed()
        };
        let (one, other) = (values(7), values(7));
        let mut different = 0;
        for key in 1..=101 {
            let value = one.next(key, &mut Rng::with_seed(key));
            assert_eq!(value, other.next(key, &mut Rng::with_seed(1)));
            different += u32::from(value != one.next(key + 1, &mut Rng::with_seed(1)));
        }
        assert_eq!(different, 101);
    }
}
