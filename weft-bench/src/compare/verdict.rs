//! What became of a figure from one result to another.
//!
//! Owns the rule: a difference is shown if the 95 % interval of the ratio of the paired rounds does not hold one; it is a
//! regression if it is shown, is for the worse and exceeds the figure's threshold. With a single pair there is no interval,
//! nothing is shown, and the threshold alone decides. Rates of failures, which are often zero, are compared by their
//! difference. Pure.

use std::fmt;

use super::series::Rounds;
use crate::statistics::{Interval, median, paired_ratios};

/// The figure that is compared by difference.
const FAILURES: &str = "failure_rate";

/// The change of one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The figure.
    pub name: String,
    /// Its title in tables.
    pub title: String,
    /// Its median before.
    pub base: f64,
    /// Its median after.
    pub new: f64,
    /// After divided by before: the geometric mean of the pairs. `None` where that has no meaning.
    pub ratio: Option<f64>,
    /// Where the ratio lies.
    pub interval: Option<Interval>,
    /// How many pairs there were.
    pub pairs: usize,
    /// What that means.
    pub verdict: Verdict,
    /// Whether it is for the worse by more than the threshold allows.
    pub regression: bool,
}

/// What a change means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Shown, for the better.
    Better,
    /// Shown, for the worse.
    Worse,
    /// The interval holds one, or nothing changed.
    NoDifference,
    /// Too few rounds to tell.
    OnePair,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifference => "no difference shown",
            Verdict::OnePair => "one pair, nothing shown",
        })
    }
}

/// Compares a figure. `threshold` in percent, of failure rates in percentage points.
pub fn change(base: &Rounds, new: &Rounds, threshold: Option<f64>) -> Change {
    let mut pairs: (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for (round, value) in &new.values {
        if let Some((_, before)) = base.values.iter().find(|it| it.0 == *round) {
            pairs.0.push(*value);
            pairs.1.push(*before);
        }
    }
    let ratios = paired_ratios(&pairs.0, &pairs.1);
    let interval = Interval::of_ratios(&ratios);
    let sound = ratios.iter().all(|ratio| ratio.is_finite() && *ratio > 0.0);
    let ratio = match interval {
        Some(interval) => Some(interval.mean),
        None => ratios.first().copied().filter(|_| sound),
    };
    let mut change = Change {
        name: base.name.clone(),
        title: base.title.clone(),
        base: median(base.values.iter().map(|it| it.1)),
        new: median(new.values.iter().map(|it| it.1)),
        ratio,
        interval,
        pairs: ratios.len(),
        verdict: Verdict::NoDifference,
        regression: false,
    };
    let exceeds = |loss: f64| threshold.is_some_and(|percent| loss * 100.0 > percent);
    let Some(ratio) = ratio.filter(|_| base.name != FAILURES) else {
        // Compared by difference; of values that are never zero there is a ratio.
        let loss = match base.more_is_better {
            true => change.base - change.new,
            false => change.new - change.base,
        };
        change.regression = exceeds(loss);
        change.verdict = match loss {
            _ if change.regression => Verdict::Worse,
            _ => Verdict::NoDifference,
        };
        return change;
    };
    let gain = if base.more_is_better {
        ratio
    } else {
        1.0 / ratio
    };
    // A rate of 0.95 is 5 % less; a latency of 1.05 is 5 % more.
    let loss = if base.more_is_better {
        1.0 - ratio
    } else {
        ratio - 1.0
    };
    change.verdict = match interval {
        None => Verdict::OnePair,
        Some(interval) if interval.holds(1.0) => Verdict::NoDifference,
        Some(_) if gain > 1.0 => Verdict::Better,
        Some(_) => Verdict::Worse,
    };
    change.regression =
        matches!(change.verdict, Verdict::Worse | Verdict::OnePair) && exceeds(loss);
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(name: &str, more_is_better: bool, values: &[f64]) -> Rounds {
        Rounds {
            name: name.to_owned(),
            title: name.to_owned(),
            more_is_better,
            values: values.iter().copied().enumerate().collect(),
        }
    }

    fn of_rate(base: &[f64], new: &[f64]) -> Change {
        let side = |values| rounds("rate", true, values);
        change(&side(base), &side(new), Some(5.0))
    }

    #[test]
    fn drift_that_hits_both_alike_leaves_the_ratio_alone() {
        let change = of_rate(&[100.0, 50.0, 200.0], &[90.0, 45.0, 180.0]);
        assert_eq!((change.base, change.new, change.pairs), (100.0, 90.0, 3));
        assert!((change.ratio.unwrap() - 0.9).abs() < 1e-9);
        assert_eq!((change.verdict, change.regression), (Verdict::Worse, true));
        let back = of_rate(&[90.0, 45.0, 180.0], &[100.0, 50.0, 200.0]);
        assert_eq!((back.verdict, back.regression), (Verdict::Better, false));
    }

    #[test]
    fn what_spans_one_is_no_difference() {
        let change = of_rate(&[100.0, 100.0, 100.0], &[80.0, 110.0, 95.0]);
        assert_eq!(
            (change.verdict, change.regression),
            (Verdict::NoDifference, false)
        );
        // Shown, but within the threshold.
        let change = of_rate(&[100.0, 101.0, 102.0], &[98.0, 99.0, 100.0]);
        assert_eq!((change.verdict, change.regression), (Verdict::Worse, false));
    }

    #[test]
    fn less_is_better_of_latencies() {
        let of_p99 = |base: &[f64], new: &[f64]| {
            let side = |values| rounds("p99_us", false, values);
            let change = change(&side(base), &side(new), Some(10.0));
            (change.verdict, change.regression)
        };
        let (before, after) = ([100.0, 101.0, 99.0], [120.0, 121.0, 119.0]);
        assert_eq!(of_p99(&before, &after), (Verdict::Worse, true));
        assert_eq!(of_p99(&after, &before), (Verdict::Better, false));
    }

    #[test]
    fn rounds_are_paired_by_their_number() {
        let mut base = rounds("rate", true, &[100.0, 200.0, 400.0]);
        let mut new = rounds("rate", true, &[100.0, 200.0, 400.0]);
        base.values.remove(0);
        new.values.remove(1);
        let change = change(&base, &new, None);
        assert_eq!((change.pairs, change.ratio), (1, Some(1.0)));
    }

    #[test]
    fn one_pair_shows_nothing_but_can_exceed() {
        let change = of_rate(&[100.0], &[90.0, 80.0]);
        assert_eq!(
            (change.verdict, change.regression),
            (Verdict::OnePair, true)
        );
        let change = of_rate(&[100.0], &[96.0]);
        assert_eq!(
            (change.verdict, change.regression),
            (Verdict::OnePair, false)
        );
    }

    #[test]
    fn failures_are_compared_by_difference() {
        let of_failures = |base: &[f64], new: &[f64]| {
            let side = |values| rounds(FAILURES, false, values);
            let change = change(&side(base), &side(new), Some(0.1));
            (change.verdict, change.regression)
        };
        let same = (Verdict::NoDifference, false);
        assert_eq!(of_failures(&[0.0, 0.0], &[0.0, 0.0]), same);
        assert_eq!(of_failures(&[0.0, 0.0], &[0.0005, 0.0005]), same);
        assert_eq!(
            of_failures(&[0.0, 0.0], &[0.002, 0.002]),
            (Verdict::Worse, true)
        );
    }

    #[test]
    fn without_a_threshold_nothing_is_a_regression() {
        let side = |values: &[f64]| rounds("rate", true, values);
        let change = change(&side(&[100.0, 101.0]), &side(&[10.0, 10.1]), None);
        assert_eq!((change.verdict, change.regression), (Verdict::Worse, false));
    }
}
