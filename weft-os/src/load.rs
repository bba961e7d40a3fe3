//! How busy the processors are, and how long a thread waits for one.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use rustix::thread::{CpuSet, sched_getaffinity};

/// The calling thread's time on and before processors, read again and again.
#[derive(Debug)]
pub struct ThreadSchedule {
    file: Option<File>,
}

impl ThreadSchedule {
    /// For the calling thread. Without `/proc`, or in a kernel without these statistics, all readings are 0.
    #[must_use]
    pub fn of_this_thread() -> Self {
        // The file stays this thread's, whoever reads it.
        Self {
            file: File::open("/proc/thread-self/schedstat").ok(),
        }
    }

    /// Nanoseconds the thread has spent ready to run and without a processor.
    #[must_use]
    pub fn waiting_ns(&self) -> u64 {
        let mut text = [0; 80];
        let count = self
            .file
            .as_ref()
            .and_then(|file| file.read_at(&mut text, 0).ok());
        waiting_ns(&text[..count.unwrap_or(0)]).unwrap_or(0)
    }
}

/// The second of three numbers: time on a processor, time waiting for one, times it got one.
fn waiting_ns(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// How long the processors that this thread may use have been idle, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleTime {
    /// Ticks of 10 ms, summed over them.
    pub ticks: u64,
    /// Their number.
    pub processors: usize,
}

/// Idle time so far, or nothing where the system does not tell.
#[must_use]
pub fn idle_time() -> Option<IdleTime> {
    let allowed = sched_getaffinity(None).ok()?;
    idle_time_in(&fs::read_to_string("/proc/stat").ok()?, |processor| {
        processor < CpuSet::MAX_CPU && allowed.is_set(processor)
    })
}

/// A line of `/proc/stat`: the processor, then ticks in user mode, nice, system, idle, waiting for input and output, ...
fn idle_time_in(text: &str, allowed: impl Fn(usize) -> bool) -> Option<IdleTime> {
    let mut sum = IdleTime {
        ticks: 0,
        processors: 0,
    };
    for line in text.lines() {
        let Some(line) = line.strip_prefix("cpu") else {
            break;
        };
        let mut words = line.split_ascii_whitespace();
        // The line of the sums has no number.
        if line.starts_with(' ') || !allowed(words.next()?.parse().ok()?) {
            continue;
        }
        let idle: u64 = words.nth(3)?.parse().ok()?;
        let waiting: u64 = words.next().unwrap_or("0").parse().ok()?;
        sum.ticks += idle + waiting;
        sum.processors += 1;
    }
    (sum.processors > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(waiting_ns(b"607093 17 3\n"), Some(17));
        assert_eq!(waiting_ns(b"607093"), None);
        assert_eq!(waiting_ns(b""), None);
    }

    #[test]
    fn only_allowed_processors_count() {
        let text = "cpu  1 1 1 300 30 0 0 0\ncpu0 1 1 1 100 10 0 0 0\ncpu1 1 1 1 200 20 0 0 0\nintr 5 cpu9\n";
        let idle = |allowed: fn(usize) -> bool| idle_time_in(text, allowed);
        assert_eq!(
            idle(|_| true),
            Some(IdleTime {
                ticks: 330,
                processors: 2
            })
        );
        assert_eq!(
            idle(|processor| processor == 1),
            Some(IdleTime {
                ticks: 220,
                processors: 1
            })
        );
        assert_eq!(idle(|_| false), None);
        assert_eq!(idle_time_in("nonsense", |_| true), None);
    }

    #[test]
    fn this_machine_tells() {
        let idle = idle_time().unwrap();
        assert_eq!(idle.processors, crate::cpu::affinity_count());
        // Whatever the reading is, it cannot be more than the thread's whole life.
        let schedule = ThreadSchedule::of_this_thread();
        assert!(schedule.waiting_ns() <= schedule.waiting_ns());
    }
}
