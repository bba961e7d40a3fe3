//! What a process and its threads use of the processors, as the kernel tells anybody.
//!
//! Owns the reading of `/proc/PID`. Threads are read one by one from their `schedstat`, in nanoseconds; where a kernel keeps
//! none, from their `stat`, in ticks. Invariant: a thread that has ended is in no later reading, so that differences are too
//! small rather than wrong.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use serde::{Deserialize, Serialize};

/// A process's use of the processors up to a moment.
#[derive(Clone, Debug, Default)]
pub struct ProcessCpu {
    threads: Vec<(u32, String, u64)>,
}

/// What a thread used between two moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadCpu {
    /// Its name.
    pub name: String,
    /// Seconds on a processor.
    pub cpu_s: f64,
}

impl ProcessCpu {
    /// Reads it.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn read(pid: u32) -> io::Result<ProcessCpu> {
        let mut threads = Vec::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let folder = entry?.path();
            let number = folder
                .file_name()
                .and_then(|name| name.to_str()?.parse::<u32>().ok());
            let Some(number) = number else {
                continue;
            };
            let used = fs::read_to_string(folder.join("schedstat"))
                .ok()
                .and_then(|text| schedstat_ns(&text))
                .or_else(|| stat_ns(&fs::read_to_string(folder.join("stat")).ok()?));
            // A thread that has just ended.
            let Some(used_ns) = used else {
                continue;
            };
            let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            threads.push((number, name.trim_end().to_owned(), used_ns));
        }
        threads.sort_by_key(|(number, ..)| *number);
        Ok(ProcessCpu { threads })
    }

    /// What its threads have used since, those with nothing left out.
    pub fn since(&self, earlier: &ProcessCpu) -> Vec<ThreadCpu> {
        self.threads
            .iter()
            .filter_map(|(number, name, used_ns)| {
                let before = earlier
                    .threads
                    .binary_search_by_key(number, |(number, ..)| *number)
                    .map_or(0, |place| earlier.threads[place].2);
                let used = Duration::from_nanos(used_ns.saturating_sub(before));
                (!used.is_zero()).then(|| ThreadCpu {
                    name: name.clone(),
                    cpu_s: used.as_secs_f64(),
                })
            })
            .collect()
    }
}

/// The first of three numbers: the time on a processor.
fn schedstat_ns(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Fields 14 and 15 of `stat`, counted from 1 (proc(5)): ticks in user and kernel mode.
fn stat_ns(text: &str) -> Option<u64> {
    // The second field is the name in parentheses, and may hold anything.
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(14 - 3);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let ticks = next()?.checked_add(next()?)?;
    Some((u128::from(ticks) * 1_000_000_000 / u128::from(clock_ticks_per_second().max(1))) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_processors() {
        let before = ProcessCpu::read(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while ProcessCpu::read(std::process::id())
            .unwrap()
            .since(&before)
            .iter()
            .map(|thread| thread.cpu_s)
            .sum::<f64>()
            < 0.01
        {
            sum = (0..100_000).fold(sum, |sum, n| sum.rotate_left(1) ^ n);
        }
        assert!(ProcessCpu::read(u32::MAX).is_err(), "{sum}");
    }

    #[test]
    fn ticks_are_found_behind_any_name() {
        let tick = 1_000_000_000 / clock_ticks_per_second();
        assert_eq!(
            stat_ns("7 (a) (b) S 1 2 3 4 5 6 7 8 9 10 3 4 0 0\n"),
            Some(7 * tick)
        );
        assert_eq!(stat_ns("7 (a"), None);
        assert_eq!(schedstat_ns("12 3 4\n"), Some(12));
    }
}
