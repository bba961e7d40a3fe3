//! What repeated measurements say: medians, and intervals of Student's t.
//!
//! Owns the arithmetic and nothing of what was measured. Ratios are paired: both measurements of a pair were taken side by
//! side, so that what the machine does besides leaves the ratio alone; their logarithms are averaged, because a half and a
//! double are equally far from one. Invariant: too few measurements give no interval rather than a guess.

/// A value and where it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean; of ratios the geometric one.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Of the mean of these values; `None` for fewer than two, or if one is not finite.
    pub fn of_mean(values: &[f64]) -> Option<Interval> {
        let count = values.len();
        if count < 2 || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let degrees = count - 1;
        let error_of_mean = (squares / degrees as f64 / count as f64).sqrt();
        let reach = t_quantile(degrees) * error_of_mean;
        Some(Interval {
            mean,
            low: mean - reach,
            high: mean + reach,
        })
    }

    /// Of the geometric mean of these ratios; `None` for fewer than two, or if one is no positive number.
    pub fn of_ratios(ratios: &[f64]) -> Option<Interval> {
        if !ratios.iter().all(|ratio| *ratio > 0.0) {
            return None;
        }
        let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let interval = Interval::of_mean(&logarithms)?;
        Some(Interval {
            mean: interval.mean.exp(),
            low: interval.low.exp(),
            high: interval.high.exp(),
        })
    }

    /// Whether it holds this value.
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The ratios of the pairs of two series, as far as both go.
pub fn paired_ratios(upper: &[f64], lower: &[f64]) -> Vec<f64> {
    upper.iter().zip(lower).map(|(a, b)| a / b).collect()
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

/// The 0.975 quantile of Student's t with 1 to 20 degrees of freedom, from any table of the distribution.
const T_TABLE: [f64; 20] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
    2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
];

/// The same quantile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.959_964;

/// The 0.975 quantile of Student's t: what a two-sided interval of 95 % reaches, in errors of the mean.
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
            (20, 2.0860),
            (21, 2.0796),
            (30, 2.0423),
            (60, 2.0003),
            (120, 1.9799),
        ] {
            near(t_quantile(degrees), quantile, 0.0001);
        }
    }

    /// Mean 5, standard deviation sqrt(0.215); 2.7764 times sqrt(0.215 / 5) is 0.57573.
    #[test]
    fn intervals_of_known_numbers_are_right() {
        let values = [4.9, 5.3, 4.4, 4.8, 5.6];
        let interval = Interval::of_mean(&values).unwrap();
        near(interval.mean, 5.0, 1e-9);
        near(interval.low, 5.0 - 0.57573, 1e-4);
        near(interval.high, 5.0 + 0.57573, 1e-4);
        assert!(interval.holds(5.5) && !interval.holds(5.6));
        let ratios: Vec<f64> = values.iter().map(|value: &f64| value.exp()).collect();
        let interval = Interval::of_ratios(&ratios).unwrap();
        near(interval.mean.ln(), 5.0, 1e-9);
        near(interval.low.ln(), 5.0 - 0.57573, 1e-4);
        near(interval.high.ln(), 5.0 + 0.57573, 1e-4);
    }

    #[test]
    fn a_ratio_and_its_inverse_cancel() {
        let ratios = paired_ratios(&[1.0, 4.0, 9.0], &[2.0, 2.0]);
        assert_eq!(ratios, [0.5, 2.0]);
        let interval = Interval::of_ratios(&ratios).unwrap();
        near(interval.mean, 1.0, 1e-12);
        near(interval.low * interval.high, 1.0, 1e-9);
    }

    #[test]
    fn too_little_gives_no_interval() {
        assert_eq!(Interval::of_mean(&[]), None);
        assert_eq!(Interval::of_mean(&[1.0]), None);
        assert_eq!(Interval::of_mean(&[1.0, f64::INFINITY]), None);
        assert_eq!(Interval::of_ratios(&[1.0, 0.0]), None);
        assert_eq!(Interval::of_ratios(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn medians() {
        near(median([3.0, 1.0, 2.0]), 2.0, 0.0);
        near(median([4.0, 1.0, 2.0, 3.0]), 2.5, 0.0);
        assert!(median([]).is_nan());
    }
}
