//! The stages of one task: their table at the end, their budgets, and the closing line that machines read.

use std::time::Instant;

use crate::stage::{Counts, Outcome};

/// Seconds that CI may take on 2 cores from a cold clone: the stages' names and the budget they share.
const BUDGETS: &[(&str, &[&str], u64)] = &[
    (
        "build",
        &[
            "format",
            "tidy",
            "lints",
            "paused server",
            "build",
            "pages",
            "build tests",
        ],
        9 * 60,
    ),
    ("unit", &["unit", "loom"], 5 * 60),
    (
        "differential",
        &[
            "oracles",
            "cases",
            "command docs",
            "differential",
            "streams",
        ],
        6 * 60,
    ),
    ("histories", &["histories"], 2 * 60),
    ("clients", &["clients", "storm", "exporter"], 4 * 60),
];

/// Collects what came of the stages.
#[derive(Debug)]
pub(crate) struct Report {
    start: Instant,
    outcomes: Vec<Outcome>,
    /// Whether what could not be had counts as a failure.
    strict: bool,
}

impl Report {
    pub(crate) fn new(strict: bool) -> Self {
        Report {
            start: Instant::now(),
            outcomes: Vec::new(),
            strict,
        }
    }

    /// Takes a stage; whether it succeeded.
    pub(crate) fn add(&mut self, outcome: Outcome) -> bool {
        let succeeded = outcome.succeeded;
        self.outcomes.push(outcome);
        succeeded
    }

    /// Prints the table and the closing line; whether everything succeeded and something was tested.
    pub(crate) fn finish(&self) -> bool {
        println!(
            "\n{:<16}{:<8}{:>8}{:>8}{:>9}{:>9}",
            "stage", "result", "passed", "failed", "skipped", "seconds"
        );
        let mut total = Counts::default();
        for outcome in &self.outcomes {
            println!(
                "{:<16}{:<8}{:>8}{:>8}{:>9}{:>9.1}",
                outcome.name,
                match outcome {
                    Outcome {
                        succeeded: true, ..
                    } => "ok",
                    Outcome { missing: true, .. } => "missing",
                    _ => "FAILED",
                },
                outcome.counts.passed,
                outcome.counts.failed,
                outcome.counts.skipped,
                outcome.elapsed.as_secs_f64(),
            );
            total.add(outcome.counts);
            // A stage that failed without a test of its own, a lint for example, is one failure.
            if outcome.missing && !self.strict {
                total.skipped += 1;
            } else if !outcome.succeeded && outcome.counts.failed == 0 {
                total.failed += 1;
            }
        }
        for (name, stages, seconds) in BUDGETS {
            let taken = self
                .outcomes
                .iter()
                .filter(|outcome| stages.contains(&outcome.name));
            let taken: f64 = taken.map(|outcome| outcome.elapsed.as_secs_f64()).sum();
            if taken > *seconds as f64 {
                println!("over budget: {name} took {taken:.0} s of {seconds} s");
            }
        }
        println!("total: {:.0} s\n", self.start.elapsed().as_secs_f64());
        let skipped = if total.skipped > 0 {
            format!(", {} skipped", total.skipped)
        } else {
            String::new()
        };
        println!("{} passed, {} failed{skipped}", total.passed, total.failed);
        total.failed == 0 && total.passed > 0
    }
}
