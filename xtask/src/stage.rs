//! One stage of a task: a command whose output passes through, is timed, and whose closing lines are counted.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The test kit's exit status when something from outside could not be had.
const EXIT_MISSING: i32 = 3;

/// What passed, failed and was skipped, as the runners' closing lines say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// What came of a stage.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) succeeded: bool,
    /// Whether it ended because something from outside could not be had.
    pub(crate) missing: bool,
    pub(crate) counts: Counts,
    pub(crate) elapsed: Duration,
}

/// Runs a command as a stage.
pub(crate) fn run(name: &'static str, command: &mut Command) -> Outcome {
    println!("\n== {name}: {}", shown(command));
    let start = Instant::now();
    let counts = Arc::new(Mutex::new(Counts::default()));
    let status = match command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Err(error) => {
            println!(
                "{name}: cannot run {}: {error}",
                command.get_program().to_string_lossy()
            );
            None
        }
        Ok(mut child) => {
            let readers = [
                child
                    .stdout
                    .take()
                    .map(|stream| pass_on(stream, Arc::clone(&counts))),
                child
                    .stderr
                    .take()
                    .map(|stream| pass_on(stream, Arc::clone(&counts))),
            ];
            for reader in readers.into_iter().flatten() {
                // A reader ends with its stream; it has nothing to panic about.
                let _ = reader.join();
            }
            child.wait().ok()
        }
    };
    let counts = *counts.lock().unwrap_or_else(PoisonError::into_inner);
    Outcome {
        name,
        succeeded: status.is_some_and(|status| status.success()),
        missing: status.and_then(|status| status.code()) == Some(EXIT_MISSING),
        counts,
        elapsed: start.elapsed(),
    }
}

fn pass_on(
    stream: impl Read + Send + 'static,
    counts: Arc<Mutex<Counts>>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        while lines
            .read_until(b'\n', &mut line)
            .is_ok_and(|count| count > 0)
        {
            // Nobody listening is no reason to stop the stage.
            let _ = std::io::stdout().write_all(&line);
            if let Some(found) = closing_line(&String::from_utf8_lossy(&line)) {
                counts
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add(found);
            }
            line.clear();
        }
    })
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

/// The counts in a closing line of cargo test, cargo nextest or the test kit.
fn closing_line(line: &str) -> Option<Counts> {
    // Nextest repeats the output of a failed test, indented: that line is counted by its own summary.
    let of_cargo_test = line.starts_with("test result: ");
    let line = line.trim();
    let is_closing = of_cargo_test
        || (line.starts_with("Summary [") && line.contains(" run: "))
        || line.split_once(": ").is_some_and(|(_, rest)| {
            rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(" passed, ")
        });
    if !is_closing {
        return None;
    }
    let number_before = |word: &str| {
        let words: Vec<&str> = line
            .split([' ', ',', ';', ':', '('])
            .filter(|part| !part.is_empty())
            .collect();
        let place = words.iter().position(|found| *found == word)?;
        words.get(place.checked_sub(1)?)?.parse::<usize>().ok()
    };
    Some(Counts {
        passed: number_before("passed")?,
        failed: number_before("failed").unwrap_or(0),
        skipped: number_before("skipped")
            .or_else(|| number_before("ignored"))
            .unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: usize, failed: usize, skipped: usize) -> Option<Counts> {
        Some(Counts {
            passed,
            failed,
            skipped,
        })
    }

    #[test]
    fn closing_lines_of_all_runners_are_counted() {
        for (line, expected) in [
            (
                "test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
                counts(7, 0, 1),
            ),
            (
                "     Summary [   1.234s] 12 tests run: 12 passed, 3 skipped",
                counts(12, 0, 3),
            ),
            (
                "     Summary [   1.234s] 12 tests run: 11 passed (1 slow), 1 failed, 0 skipped",
                counts(11, 1, 0),
            ),
            ("cases: 950 passed, 2 failed", counts(950, 2, 0)),
            ("clients: 4 passed, 0 failed, 1 skipped", counts(4, 0, 1)),
            (
                "    test result: FAILED. 0 passed; 1 failed; 0 ignored",
                None,
            ),
            ("redis-cli: 17 checks passed", None),
            (
                "weft-testkit/cases/incr.case: 12 cases, 96 times played, 0 failed, 0 skipped, 0.1 s",
                None,
            ),
            ("12 passed, 0 failed", None),
        ] {
            assert_eq!(closing_line(line), expected, "{line}");
        }
    }
}
