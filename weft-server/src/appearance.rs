//! What the process looks like from outside: its title, and how gladly the kernel ends it when memory runs out.
//!
//! Owns what both are made of; `weft_os` knows how they are set. A title that cannot be shown is no reason for anything.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use weft_engine::config::{Settings, process_title};
use weft_os::process;

use crate::log::{Log, system_text};

/// The bounds of the kernel's scores.
const SCORES: std::ops::RangeInclusive<i32> = -1000..=1000;

/// What the settings are applied to.
pub struct Appearance {
    /// The name the program was started under.
    program: Vec<u8>,
    config_file: Option<Vec<u8>>,
    /// The score that was there before.
    score_at_start: i32,
}

impl Appearance {
    /// Of this process, started under the name `program`.
    pub fn new(program: &OsStr, config_file: Option<&Path>) -> Self {
        Self {
            program: program.as_bytes().to_vec(),
            config_file: config_file.map(|path| path.as_os_str().as_bytes().to_vec()),
            score_at_start: process::oom_score_adjustment().unwrap_or(0),
        }
    }

    /// Shows the title that the settings ask for, if they ask for one and it is no longer than the command line was.
    pub fn show_title(&self, settings: &Settings) {
        if let Some(title) = process_title(settings, &self.program, self.config_file.as_deref()) {
            let _ = process::set_title(&title);
        }
    }

    /// Takes on the score that the settings ask for; without one, that of the start.
    ///
    /// # Errors
    /// The system's, which the log tells.
    pub fn take_score(&self, settings: &Settings, log: &Log) -> io::Result<()> {
        let wanted = wanted_score(settings, self.score_at_start);
        if process::oom_score_adjustment().is_ok_and(|score| score == wanted) {
            return Ok(());
        }
        process::set_oom_score_adjustment(wanted).inspect_err(|error| {
            log.warning(format_args!(
                "Unable to write oom_score_adj: {}",
                system_text(error)
            ));
        })
    }
}

fn wanted_score(settings: &Settings, at_start: i32) -> i32 {
    match settings.oom_score() {
        None => at_start,
        Some((true, score)) => score.clamp(*SCORES.start(), *SCORES.end()),
        Some((false, score)) => at_start
            .saturating_add(score)
            .clamp(*SCORES.start(), *SCORES.end()),
    }
}

#[cfg(test)]
mod tests {
    use weft_engine::config::{Config, Facts};

    use super::*;

    #[test]
    fn scores_are_raised_or_replaced_within_the_kernel_s_bounds() {
        for (mode, values, expected) in [
            ("no", "5 10 15", 7),
            ("yes", "5 10 15", 12),
            ("relative", "5 10 15", 12),
            ("absolute", "5 10 15", 5),
            ("absolute", "1500 0 0", 1000),
            ("yes", "-1500 0 0", -1000),
        ] {
            let mut config = Config::new(Facts { usable_cpus: 1 });
            let pairs = ["oom-score-adj", mode, "oom-score-adj-values", values];
            config.set(&pairs.map(str::as_bytes), false).unwrap();
            assert_eq!(
                wanted_score(config.settings(), 7),
                expected,
                "{mode} {values}"
            );
        }
    }
}
