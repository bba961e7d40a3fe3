//! How sure a measured ratio is: the interval of Student's t on the logarithms of paired ratios, and medians.
//!
//! Ratios are paired: both measurements of a pair stand side by side in time, so that what the machine does besides
//! leaves the ratio alone. Their logarithms are averaged, because a half and a double are equally far from one. It
//! knows nothing of what was measured.

/// The ratio of two quantities, and where it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The geometric mean of the pairs' ratios.
    pub ratio: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many pairs there were.
    pub pairs: usize,
}

impl Interval {
    /// The interval of these ratios; `None` for fewer than two, or if one is no positive number.
    pub fn of_ratios(ratios: &[f64]) -> Option<Self> {
        let pairs = ratios.len();
        let sound = ratios.iter().all(|ratio| ratio.is_finite() && *ratio > 0.0);
        if pairs < 2 || !sound {
            return None;
        }
        let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let mean = logarithms.iter().sum::<f64>() / pairs as f64;
        let squares: f64 = logarithms
            .iter()
            .map(|logarithm| (logarithm - mean).powi(2))
            .sum();
        let degrees = pairs - 1;
        let error_of_mean = (squares / degrees as f64 / pairs as f64).sqrt();
        let reach = t_quantile(degrees) * error_of_mean;
        Some(Interval {
            ratio: mean.exp(),
            low: (mean - reach).exp(),
            high: (mean + reach).exp(),
            pairs,
        })
    }

    /// Half of its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether all of it lies below `bound`.
    pub fn lies_below(&self, bound: f64) -> bool {
        self.high < bound
    }
}

/// The 0.975 quantile of Student's t with 1 to 20 degrees of freedom, from any table of the distribution.
const T_TABLE: [f64; 20] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
    2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
];
/// The same quantile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.959_964;

/// The 0.975 quantile of Student's t: what the mean of a two-sided interval of 95 % reaches, in errors of the mean.
fn t_quantile(degrees: usize) -> f64 {
    if let Some(quantile) = degrees.checked_sub(1).and_then(|place| T_TABLE.get(place)) {
        return *quantile;
    }
    // Beyond the table the first terms of the Cornish-Fisher expansion are exact to four digits.
    let (z, n) = (NORMAL_QUANTILE, degrees as f64);
    z + (z.powi(3) + z) / (4.0 * n)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * n.powi(3))
}

/// The middle value, the mean of the middle two if their number is even; not a number if there is none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match (values.len() % 2, values.get(half)) {
        (1, Some(middle)) => *middle,
        (0, Some(upper)) => (values[half - 1] + upper) / 2.0,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64, tolerance: f64) {
        assert!(
            (found - wanted).abs() <= tolerance,
            "{found} is not {wanted}"
        );
    }

    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        for (degrees, quantile) in [
            (1, 12.7062),
            (4, 2.7764),
            (9, 2.2622),
            (20, 2.0860),
            (21, 2.0796),
            (25, 2.0595),
            (30, 2.0423),
            (40, 2.0211),
            (60, 2.0003),
            (120, 1.9799),
            (1_000_000, 1.9600),
        ] {
            near(t_quantile(degrees), quantile, 0.0001);
        }
    }

    /// The logarithms are 4.9, 5.3, 4.4, 4.8, 5.6: mean 5, standard deviation sqrt(0.215), and 2.7764 times
    /// sqrt(0.215 / 5) is 0.57573.
    #[test]
    fn the_interval_of_known_numbers_is_right() {
        let ratios: Vec<f64> = [4.9_f64, 5.3, 4.4, 4.8, 5.6]
            .iter()
            .map(|logarithm| logarithm.exp())
            .collect();
        let interval = Interval::of_ratios(&ratios).expect("five ratios");
        near(interval.ratio.ln(), 5.0, 1e-9);
        near(interval.low.ln(), 5.0 - 0.57573, 1e-4);
        near(interval.high.ln(), 5.0 + 0.57573, 1e-4);
        assert_eq!(interval.pairs, 5);
    }

    #[test]
    fn a_ratio_and_its_inverse_cancel() {
        let interval = Interval::of_ratios(&[0.5, 2.0]).expect("two ratios");
        near(interval.ratio, 1.0, 1e-12);
        near(interval.low * interval.high, 1.0, 1e-9);
    }

    #[test]
    fn equal_ratios_leave_no_doubt() {
        let interval = Interval::of_ratios(&[0.96; 5]).expect("five ratios");
        near(interval.half_width(), 0.0, 1e-12);
        assert!(interval.lies_below(0.97));
        assert!(!interval.lies_below(0.95));
    }

    #[test]
    fn too_little_gives_no_interval() {
        assert_eq!(Interval::of_ratios(&[]), None);
        assert_eq!(Interval::of_ratios(&[1.0]), None);
        assert_eq!(Interval::of_ratios(&[1.0, 0.0]), None);
        assert_eq!(Interval::of_ratios(&[1.0, f64::NAN]), None);
    }

    /// Of many intervals of random samples about 95 in a hundred hold the true value.
    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        let mut random = fastrand::Rng::with_seed(5);
        let rounds = 4000;
        let held = (0..rounds)
            .filter(|_| {
                let ratios: Vec<f64> = (0..6)
                    .map(|_| {
                        // The sum of twelve uniform numbers is nearly normal, with variance 1.
                        let sum: f64 = (0..12).map(|_| random.f64()).sum();
                        (0.1 * (sum - 6.0)).exp()
                    })
                    .collect();
                Interval::of_ratios(&ratios)
                    .is_some_and(|interval| interval.low <= 1.0 && 1.0 <= interval.high)
            })
            .count();
        near(held as f64 / f64::from(rounds), 0.95, 0.01);
    }

    #[test]
    fn medians() {
        near(median([3.0, 1.0, 2.0]), 2.0, 0.0);
        near(median([4.0, 1.0, 2.0, 3.0]), 2.5, 0.0);
        assert!(median([]).is_nan());
    }
}
