//! Where a turn's time goes: marks around the system calls of a turn that is timed.
//!
//! In other turns a mark is one test of a flag and reads no clock.

use rustix::time::{ClockId, clock_gettime};

use crate::clock::monotonic_ns;
use crate::driver::TurnReport;

/// The time now if this turn is timed, otherwise 0.
#[inline]
pub(crate) fn mark(report: &TurnReport) -> u64 {
    match report.times {
        Some(_) => monotonic_ns(),
        None => 0,
    }
}

/// Counts the time since `mark` as reading.
#[inline]
pub(crate) fn count_read(report: &mut TurnReport, mark_ns: u64) {
    if let Some(times) = &mut report.times {
        times.read_ns += monotonic_ns() - mark_ns;
    }
}

/// Counts the time since `mark` as writing, and says how long it was; 0 if the turn is not timed.
#[inline]
pub(crate) fn count_write(report: &mut TurnReport, mark_ns: u64) -> u64 {
    let Some(times) = &mut report.times else {
        return 0;
    };
    let elapsed_ns = monotonic_ns() - mark_ns;
    times.write_ns += elapsed_ns;
    elapsed_ns
}

/// What a send costs, as timed turns have measured it, for turns that are not timed.
#[derive(Debug, Default)]
pub(crate) struct SendCost {
    /// Smoothed; 0 before the first measurement.
    cost_ns: u64,
}

impl SendCost {
    /// `sends` have taken that long together.
    pub(crate) fn note(&mut self, spent_ns: u64, sends: usize) {
        if let Some(each_ns) = spent_ns.checked_div(sends as u64) {
            self.cost_ns = match self.cost_ns {
                0 => each_ns,
                before_ns => (before_ns * 3 + each_ns) / 4,
            };
        }
    }

    /// So many cost this.
    #[inline]
    pub(crate) fn of(&self, sends: usize) -> u64 {
        self.cost_ns * sends as u64
    }
}

/// What falling asleep and waking up cost the processor. It is measured in the timed turns that sleep, with a clock that
/// takes a system call, and taken to be the same in the others.
#[derive(Debug)]
pub(crate) struct SleepCost {
    /// What reading the clock adds to a measurement.
    clock_ns: u64,
    /// Smoothed; None: not measured yet.
    cost_ns: Option<u64>,
}

impl SleepCost {
    pub(crate) fn new() -> SleepCost {
        let pause = || {
            let before_ns = thread_cpu_ns();
            thread_cpu_ns() - before_ns
        };
        SleepCost {
            clock_ns: (0..4).map(|_| pause()).min().unwrap_or(0),
            cost_ns: None,
        }
    }

    /// Begins a measurement.
    pub(crate) fn mark(&self) -> u64 {
        thread_cpu_ns()
    }

    /// Ends it.
    pub(crate) fn measured_since(&mut self, mark_ns: u64) {
        let spent_ns = thread_cpu_ns() - mark_ns;
        self.note(spent_ns.saturating_sub(self.clock_ns));
    }

    fn note(&mut self, spent_ns: u64) {
        self.cost_ns = Some(match self.cost_ns {
            Some(before_ns) => (before_ns * 3 + spent_ns) / 4,
            None => spent_ns,
        });
    }

    /// How much of a wait of `wait_ns` was sleep.
    #[inline]
    pub(crate) fn sleep_in(&self, wait_ns: u64) -> u64 {
        wait_ns.saturating_sub(self.cost_ns.unwrap_or(0))
    }
}

/// Processor time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::TurnTimes;

    #[test]
    fn only_a_timed_turn_reads_the_clock() {
        let mut report = TurnReport::default();
        assert_eq!(mark(&report), 0);
        count_read(&mut report, 0);
        count_write(&mut report, 0);
        assert_eq!(report.times, None);

        report.times = Some(TurnTimes::default());
        let start_ns = monotonic_ns();
        let mark_ns = mark(&report);
        assert!(mark_ns >= start_ns);
        count_read(&mut report, mark_ns - 1_000);
        count_write(&mut report, mark_ns - 5_000);
        let times = report.times.unwrap();
        assert!(
            times.read_ns >= 1_000 && times.write_ns >= 5_000,
            "{times:?}"
        );
        let longest_ns = monotonic_ns() - start_ns + 5_000;
        assert!(times.write_ns <= longest_ns, "{times:?}");
    }

    #[test]
    fn the_cost_of_sleep_is_smoothed_and_never_more_than_the_wait() {
        let mut cost = SleepCost {
            clock_ns: 0,
            cost_ns: None,
        };
        assert_eq!(cost.sleep_in(10_000), 10_000);
        cost.note(4_000);
        assert_eq!(cost.sleep_in(10_000), 6_000);
        cost.note(8_000);
        assert_eq!(cost.sleep_in(10_000), 5_000);
        assert_eq!(cost.sleep_in(4_999), 0);
    }

    #[test]
    fn work_is_processor_time_and_sleep_is_not() {
        let mut cost = SleepCost::new();
        let mark_ns = cost.mark();
        let mut sum = 0_u64;
        while thread_cpu_ns() - mark_ns < 2_000_000 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        cost.measured_since(mark_ns);
        assert!(cost.cost_ns.unwrap() >= 1_900_000, "{cost:?}");
    }
}
