//! What a worker does by the clock: removes overdue keys, closes idle clients, gives memory back.
//!
//! Owns when that happens. While something happens on the worker it looks around `hz` times a second; otherwise its timer
//! is set for the first client that could become idle for too long and the first key that is due, or not at all, so that an idle
//! server sleeps:
//!
//! ```text
//!  asleep --work_done, a client's time--> watching: a tick every 1000/hz ms --quiet for a while--> asleep
//! ```

use std::sync::atomic::Ordering;

use weft_engine::clock::Clock;
use weft_engine::config::{ParameterId, Settings};
use weft_reactor::{Close, Driver, TimerId, TimerToken};

use crate::allocator;
use crate::controller::ROUND_NS;
use crate::worker::Worker;

/// Overdue keys removed at a time: some 100 microseconds of work. If there are more, the next turn goes on.
const EXPIRE_BUDGET: usize = 256;

/// As many more for every step of `active-expire-effort` above the first.
const EXPIRE_BUDGET_PER_EFFORT: usize = 64;

/// Shards whose idle pages are looked for per tick.
const TRIM_SHARDS: usize = 16;

/// How often the use of memory is looked at: it takes tens of microseconds.
const MEMORY_PERIOD_NS: u64 = 1_000_000_000;

/// Rounds without work after which free memory is given back and the timer stops; more if it takes more to look at all
/// clients.
const QUIET_ROUNDS: u32 = 10;

/// As many clients may be looked at in a round before `dynamic-hz` has more rounds, as in Redis.
const CLIENTS_PER_ROUND: usize = 200;

/// The most rounds a second: `hz` itself takes no more.
const HZ_MAX: u32 = 500;

/// The longest sleep while a key has a deadline: the system's time may be set meanwhile.
const DEADLINE_NAP_MAX_NS: u64 = 1_000_000_000;

/// The timer of the rounds.
const TICK: TimerToken = TimerToken(0);

/// When to look around next, and how far the rounds have come.
#[derive(Default)]
pub struct Housekeeping {
    /// Something happened since the last tick.
    worked: bool,
    /// The timer and when it is due.
    armed: Option<(TimerId, u64)>,
    quiet_rounds: u32,
    /// When to look at everything but overdue keys again.
    round_due_ns: u64,
    /// When to look at the use of memory again.
    memory_due_ns: u64,
    /// Shards still to be trimmed in this round, counted down.
    trim_left: usize,
    /// The slot of the session table that the search for idle clients has come to.
    slot: usize,
}

impl Housekeeping {
    /// Something happened that may give housekeeping something to do.
    pub fn work_done(&mut self) {
        self.worked = true;
    }

    /// Makes sure that work is followed by a tick.
    pub fn arm<D: Driver>(&mut self, io: &mut D, settings: &Settings) {
        if self.worked {
            self.arm_by(
                io,
                io.turn_started_ns() + period_ns(settings.hz()).min(ROUND_NS),
            );
        }
    }

    /// Makes sure that a tick comes no later than that.
    fn arm_by<D: Driver>(&mut self, io: &mut D, due_ns: u64) {
        match self.armed {
            Some((_, armed_ns)) if armed_ns <= due_ns => return,
            Some((timer, _)) => {
                io.cancel_timer(timer);
            }
            None => {}
        }
        self.armed = Some((io.arm_timer(due_ns, TICK), due_ns));
    }

    /// The timer is due.
    pub fn tick<D: Driver>(&mut self, worker: &mut Worker, io: &mut D) {
        self.armed = None;
        worker.state.refresh_settings(&worker.shared.engine);
        if worker
            .shared
            .engine
            .housekeeping_paused
            .load(Ordering::Relaxed)
        {
            // It may end at any time, and nobody is told.
            return self.arm_by(io, io.turn_started_ns() + ROUND_NS);
        }
        let settings = worker.state.settings();
        let effort = settings.active_expire_effort() as usize;
        let period_ns = period_ns(rounds_per_second(settings, worker.sessions.slots()));
        let tick_ns = period_ns.min(ROUND_NS);
        let budget = EXPIRE_BUDGET + EXPIRE_BUDGET_PER_EFFORT * effort.saturating_sub(1);
        let more = worker
            .state
            .expire(&worker.shared.engine, &worker.clock, budget);
        let now_ns = io.turn_started_ns();
        worker.end_load_round(now_ns);
        if now_ns >= self.round_due_ns {
            self.round_due_ns = now_ns + period_ns;
            self.round(worker, io);
        }
        if more {
            self.worked = true;
            self.arm_by(io, now_ns);
        } else if self.quiet_rounds < quiet_rounds(worker) || self.trim_left > 0 {
            self.arm_by(io, now_ns + tick_ns);
        } else {
            self.watch_deadlines(worker, io, tick_ns);
            if let Some(due_ns) = idle_due_ns(worker) {
                self.arm_by(io, due_ns.max(now_ns + period_ns));
            }
        }
    }

    /// While there is nothing else to do, one worker looks after what time removes: the first, which is always active. It sleeps
    /// until the first key is due. No worker can give a key an earlier time unheard: it watches for a while itself, and then
    /// wakes the first.
    fn watch_deadlines<D: Driver>(&mut self, worker: &Worker, io: &mut D, least_ns: u64) {
        let Some(due_ms) = worker.state.next_due_ms(&worker.shared.engine) else {
            return;
        };
        if worker.state.id() == 0 {
            let left_ms = due_ms.saturating_sub(worker.clock.unix_ms());
            let left_ns = left_ms.saturating_mul(1_000_000);
            let nap_ns = left_ns.clamp(least_ns, DEADLINE_NAP_MAX_NS.max(least_ns));
            self.arm_by(io, io.turn_started_ns() + nap_ns);
        } else {
            worker.shared.crew.worker(0).wake();
        }
    }

    /// What is done `hz` times a second, whether or not keys are overdue.
    fn round<D: Driver>(&mut self, worker: &mut Worker, io: &mut D) {
        self.close_idle(worker, io);
        self.trim(worker);
        self.note_memory(worker, io.turn_started_ns());
        if std::mem::take(&mut self.worked) {
            self.quiet_rounds = 0;
        } else {
            self.quiet_rounds = self.quiet_rounds.saturating_add(1);
        }
        if self.quiet_rounds == quiet_rounds(worker) {
            allocator::purge();
        }
    }

    /// Looks at a part of the sessions, so that all have been looked at within a second.
    fn close_idle<D: Driver>(&mut self, worker: &mut Worker, io: &mut D) {
        let settings = worker.state.settings();
        let timeout_ns = u64::from(settings.timeout_seconds()) * 1_000_000_000;
        let rounds = rounds_per_second(settings, worker.sessions.slots()) as usize;
        let share = worker.sessions.slots() / rounds + 1;
        for _ in 0..share.min(worker.sessions.slots()) {
            self.slot = if self.slot + 1 < worker.sessions.slots() {
                self.slot + 1
            } else {
                0
            };
            let Some(connected) = worker.sessions.at_slot(self.slot) else {
                continue;
            };
            let id = connected.id;
            if timeout_ns > 0
                && !connected.session.may_idle()
                && io.turn_started_ns().saturating_sub(connected.active_ns) > timeout_ns
            {
                worker.shared.log.verbose("Closing idle client");
                io.close(id, Close::Now);
            } else {
                // Looked at once a second, it keeps the rounds going.
                connected.session.set_unsent(io.pending_output(id));
                self.worked |= worker.check_output(io, id);
            }
        }
    }

    /// Keeps the peak of memory use true to a second, while anything happens. One worker does it for all.
    fn note_memory(&mut self, worker: &Worker, now_ns: u64) {
        if worker.state.id() == 0 && now_ns >= self.memory_due_ns {
            self.memory_due_ns = now_ns + MEMORY_PERIOD_NS;
            worker
                .shared
                .engine
                .memory_use(worker.clock.unix_ms() / 1000);
        }
    }

    /// Gives idle pages of some shards back. A round over all shards follows every stretch of work. One worker does it for
    /// all.
    fn trim(&mut self, worker: &Worker) {
        if worker.state.id() != 0 {
            return;
        }
        let keyspace = &worker.shared.engine.keyspace;
        if self.trim_left == 0 && self.worked {
            self.trim_left = keyspace.shards();
        }
        let count = TRIM_SHARDS.min(self.trim_left);
        if count == 0 {
            return;
        }
        let inside = keyspace.gate(worker.state.id()).enter();
        for _ in 0..count {
            self.trim_left -= 1;
            keyspace.trim(&inside, self.trim_left);
        }
        drop(inside);
        if self.trim_left == 0 {
            worker.shared.reaper.collect(&worker.shared.engine);
        }
    }
}

/// Rounds without work after which the timer stops: at least as many as it takes to look at every client.
fn quiet_rounds(worker: &Worker) -> u32 {
    let rounds = rounds_per_second(worker.state.settings(), worker.sessions.slots());
    QUIET_ROUNDS.max(rounds.saturating_add(1))
}

/// When the first client can have been idle for too long.
fn idle_due_ns(worker: &Worker) -> Option<u64> {
    let timeout_s = worker.state.settings().timeout_seconds();
    let first_ns = worker.sessions.active_ns().min()?;
    (timeout_s > 0).then(|| first_ns + u64::from(timeout_s) * 1_000_000_000)
}

/// `hz`, or with `dynamic-hz` as many times that as keep the clients to be looked at in a round few.
fn rounds_per_second(settings: &Settings, clients: usize) -> u32 {
    let mut rounds = settings.hz().max(1);
    if settings.flag(ParameterId::DynamicHz) {
        while clients > CLIENTS_PER_ROUND * rounds as usize && rounds < HZ_MAX {
            rounds = (rounds * 2).min(HZ_MAX);
        }
    }
    rounds
}

fn period_ns(rounds_per_second: u32) -> u64 {
    1_000_000_000 / u64::from(rounds_per_second.max(1))
}

#[cfg(test)]
mod tests {
    use weft_engine::config::{Config, Facts};

    use super::*;

    #[test]
    fn many_clients_are_looked_at_in_more_rounds() {
        let mut config = Config::new(Facts { usable_cpus: 1 });
        let rounds = |config: &Config, clients| rounds_per_second(config.settings(), clients);
        for (clients, expected) in [
            (0, 10),
            (2000, 10),
            (2001, 20),
            (10_000, 80),
            (1_000_000, 500),
        ] {
            assert_eq!(rounds(&config, clients), expected, "{clients} clients");
        }
        config.set(&[b"dynamic-hz", b"no"], false).unwrap();
        assert_eq!(rounds(&config, 1_000_000), 10);
    }
}
