//! What came of each second of a run, by line of the report.
//!
//! Owns the sums over the kinds of one line and over all lines. Keeps percentiles and no histograms, so that a long run costs
//! little. Latencies are in microseconds.

use crate::load::{Interval, Part};

/// A second and a line of the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Second {
    pub count: u64,
    /// Of latencies.
    pub sum: u64,
    pub least: u64,
    pub greatest: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Those that were asked for, in their order; none without answers.
    pub percentiles: Vec<u64>,
}

/// All seconds so far.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// By kind, its line; kinds of one title share one.
    lines: Vec<usize>,
    percentiles: Vec<f64>,
    /// By second, by line; the last line is the sum.
    seconds: Vec<Vec<Second>>,
}

impl Series {
    /// No seconds yet. `titles`: those of the kinds.
    pub fn new<'a>(titles: impl IntoIterator<Item = &'a str>, percentiles: &[f64]) -> Series {
        let mut known: Vec<&str> = Vec::new();
        let line = |title| match known.iter().position(|it| *it == title) {
            Some(line) => line,
            None => {
                known.push(title);
                known.len() - 1
            }
        };
        Series {
            lines: titles.into_iter().map(line).collect(),
            percentiles: percentiles.to_vec(),
            seconds: Vec::new(),
        }
    }

    /// Adds the next second. What belongs to no kind is left out.
    pub fn add(&mut self, interval: &Interval) {
        let sum = self.lines.iter().max().map_or(0, |last| last + 1);
        let mut lines = vec![Part::default(); sum + 1];
        for (&line, part) in self.lines.iter().zip(&interval.classes) {
            lines[line].add(part);
            lines[sum].add(part);
        }
        let second = |part: &Part| Second {
            count: part.count(),
            sum: part.sum,
            least: part.least,
            greatest: part.greatest,
            sent_bytes: part.sent_bytes,
            received_bytes: part.received_bytes,
            percentiles: part.latencies.as_ref().map_or_else(Vec::new, |latencies| {
                let percentiles = self.percentiles.iter();
                percentiles
                    .map(|&it| latencies.value_at_percentile(it))
                    .collect()
            }),
        };
        self.seconds.push(lines.iter().map(second).collect());
    }

    /// The seconds of a line.
    pub fn line(&self, line: usize) -> impl Iterator<Item = &Second> {
        self.seconds.iter().filter_map(move |lines| lines.get(line))
    }
}
