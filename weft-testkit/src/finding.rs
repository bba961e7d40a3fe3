//! A difference between the servers as it is told: a sequence of requests in the notation of case files.

use std::fmt;

use crate::differential::{Difference, Manner};
use crate::door::Answer;
use crate::generator::{After, Step};
use crate::literal::Expected;
use crate::quoting::{quoted, request_line};

/// Characters of one answer that are shown.
const SHOWN_MAX: usize = 600;

/// A difference and the shortest sequence found that shows it.
#[derive(Debug)]
pub struct Finding {
    /// The requests.
    pub steps: Vec<Step>,
    /// How they were sent.
    pub manner: Manner,
    /// What differed.
    pub difference: Difference,
    /// Whether it showed again when the sequence was played once more.
    pub repeatable: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let difference = &self.difference;
        writeln!(
            f,
            "# {}: {}",
            difference.command,
            difference.what.replace('\n', "\n#")
        )?;
        let again = if self.repeatable {
            ""
        } else {
            "; it did not show again when played once more"
        };
        writeln!(
            f,
            "# sent {}, {}{again}",
            self.manner.delivery.name(),
            self.manner.protocol.name()
        )?;
        let skipped = if self.repeatable {
            0
        } else {
            self.steps.len().saturating_sub(20)
        };
        if skipped > 0 {
            writeln!(f, "# ({skipped} requests before these)")?;
        }
        writeln!(f, "case found by a random run")?;
        for (index, step) in self.steps.iter().enumerate().skip(skipped) {
            writeln!(f, "> {}", request_line(&step.request))?;
            if index == difference.index
                && let Some([reference, subject]) = &difference.answers
            {
                writeln!(f, "< {}", shown(reference))?;
                writeln!(f, "# the server under test: {}", shown(subject))?;
            }
            if step.after == After::Expire {
                writeln!(f, "advance 6")?;
            }
        }
        Ok(())
    }
}

/// An answer in the notation of case files, cut if it is long.
pub fn shown(answer: &Answer) -> String {
    let text = match answer {
        Answer::Reply(wire) => Expected::Exact(wire.clone()).to_string(),
        Answer::Odd(bytes) => format!("bytes that are no canonical reply: {}", quoted(bytes)),
        Answer::Broken(what) => what.clone(),
        Answer::Closed => "closed".to_owned(),
        Answer::Nothing => "no reply in time".to_owned(),
    };
    if text.chars().count() > SHOWN_MAX {
        text.chars().take(SHOWN_MAX).chain("...".chars()).collect()
    } else {
        text
    }
}
