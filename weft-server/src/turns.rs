//! What a worker notes about the turns of its loop, for INFO.
//!
//! Translates the driver's reports for the engine, and looks at what only the system knows: the thread's processor time, and
//! how long it was ready while others had the processor. That costs a microsecond a time, so that it is looked at after
//! a quarter of a millisecond of work or a hundredth of a second; what is taken off a turn may therefore have been lost
//! shortly before it.

use weft_engine::engine::WorkerState;
use weft_engine::step_times::{SystemTimes, Turn};
use weft_os::cpu::thread_time;
use weft_os::load::ThreadSchedule;
use weft_reactor::{TurnReport, TurnTimes, monotonic_ns};

/// Work after which the delay is looked at again before the next turn begins.
const LOOK_AFTER_WORK_NS: u64 = 250_000;

/// Time after which it is.
const LOOK_AFTER_NS: u64 = 10_000_000;

/// Between two looks at the thread's processor time.
const CPU_TIME_EVERY_NS: u64 = 100_000_000;

/// Belongs to the worker's thread.
pub struct Turns {
    schedule: ThreadSchedule,
    /// What the thread had waited for processors when that was last looked at.
    waited_ns: u64,
    looked_ns: u64,
    worked_ns: u64,
    cpu_time_due_ns: u64,
}

impl Turns {
    /// For the loop of the calling thread.
    pub fn of_this_thread() -> Self {
        Self {
            schedule: ThreadSchedule::of_this_thread(),
            waited_ns: 0,
            looked_ns: 0,
            worked_ns: 0,
            cpu_time_due_ns: 0,
        }
    }

    /// How long the thread has waited for processors since its start.
    pub fn waiting_ns(&self) -> u64 {
        self.schedule.waiting_ns()
    }

    /// A turn's wait is over.
    pub fn turn_began(&mut self, now_ns: u64) {
        let due = self.worked_ns >= LOOK_AFTER_WORK_NS || now_ns - self.looked_ns >= LOOK_AFTER_NS;
        if due {
            self.looked_ns = now_ns;
            self.worked_ns = 0;
            self.waited_ns = self.schedule.waiting_ns();
        }
    }

    /// A turn is over whose wait ended at `started_ns`.
    pub fn turn_ended(&mut self, state: &mut WorkerState, started_ns: u64, report: &TurnReport) {
        let ended_ns = monotonic_ns();
        self.worked_ns += ended_ns - started_ns;
        let turn = Turn {
            started_ns,
            ended_ns,
            asleep_ns: report.asleep_ns,
            eventful: report.events > 0 || report.receives > 0 || report.sends > 0,
            receives: report.receives,
            sends: report.sends,
            system: report
                .times
                .map(|TurnTimes { read_ns, write_ns }| SystemTimes { read_ns, write_ns }),
        };
        state.end_turn(&turn, || {
            self.schedule.waiting_ns().saturating_sub(self.waited_ns)
        });
        if ended_ns >= self.cpu_time_due_ns {
            self.cpu_time_due_ns = ended_ns + CPU_TIME_EVERY_NS;
            let used = thread_time();
            let statistics = state.statistics();
            statistics.cpu_user_us.set(used.user_us as i64);
            statistics.cpu_system_us.set(used.system_us as i64);
        }
    }
}
