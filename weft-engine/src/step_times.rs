//! Where a worker's time goes, by step, measured in one turn of its loop in 32.
//!
//! Owns the choice of those turns and the splitting of their time. Which turns are taken is random, so that a load with a
//! rhythm cannot fall into step with it; the first one is always taken. In all other turns a step costs one test of a flag.
//! What reading the clock costs is taken out of the measurements: it is as long as the shortest steps.

use weft_resp::Probe;

use crate::clock::Clock;
use crate::statistics::WorkerStatistics;

/// The steps of a request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Waiting without sleep, and receiving.
    Read,
    /// Finding requests in the bytes.
    Parse,
    /// Looking up, latching, the command itself, committing.
    Execute,
    /// Writing replies into the output.
    Encode,
    /// Sending.
    Write,
}

impl Step {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Parse,
        Self::Execute,
        Self::Encode,
        Self::Write,
    ];

    /// Its name in INFO.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Parse => "parse",
            Self::Execute => "execute",
            Self::Encode => "encode",
            Self::Write => "write",
        }
    }
}

/// One turn of a worker's loop, as its driver saw it. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    /// When the wait was over, on the scale of the engine's clock.
    pub started_ns: u64,
    /// When everything was done.
    pub ended_ns: u64,
    /// How long the wait was sleep.
    pub asleep_ns: u64,
    /// Whether anything had happened.
    pub eventful: bool,
    /// Receives that brought bytes.
    pub receives: u32,
    /// Sends that took bytes.
    pub sends: u32,
    /// What the system calls took, if the turn was timed.
    pub system: Option<SystemTimes>,
}

/// Nanoseconds of one turn in system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemTimes {
    /// Waiting without sleep, and receiving.
    pub read_ns: u64,
    /// Sending.
    pub write_ns: u64,
}

/// One turn in so many is timed.
const TURNS_PER_SAMPLE: u32 = 32;

/// A worker's stopwatch.
pub(crate) struct StepTimer {
    random: fastrand::Rng,
    /// Turns until the next that is timed.
    turns_left: u32,
    timed: bool,
    /// What reading the clock takes.
    reading_ns: u64,
    mark_ns: u64,
    spent: Spent,
    last_ended_ns: u64,
    seen: Seen,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    parse_ns: u64,
    execute_ns: u64,
    encode_ns: u64,
}

/// Counters as they stood at the end of the last turn.
#[derive(Clone, Copy, Default)]
struct Seen {
    commands: i64,
    input_bytes: i64,
    output_bytes: i64,
}

impl Seen {
    fn of(statistics: &WorkerStatistics) -> Self {
        Self {
            commands: statistics.commands_processed.load(),
            input_bytes: statistics.input_bytes.load(),
            output_bytes: statistics.output_bytes.load(),
        }
    }
}

impl StepTimer {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            turns_left: 0,
            timed: false,
            reading_ns: 0,
            mark_ns: 0,
            spent: Spent::default(),
            last_ended_ns: 0,
            seen: Seen::default(),
        }
    }

    /// The loop begins now. If an earlier worker of this number had its loop, the time between was idle.
    pub(crate) fn begin_loop(&mut self, statistics: &WorkerStatistics, now_ns: u64) {
        self.last_ended_ns = now_ns;
        if statistics.loop_began_ns.load() == 0 {
            statistics.loop_began_ns.set(now_ns as i64);
        }
        self.seen = Seen::of(statistics);
    }

    /// Says whether the turn that follows is timed.
    pub(crate) fn begin_turn(&mut self, clock: &dyn Clock) -> bool {
        if self.turns_left > 0 {
            self.turns_left -= 1;
            return false;
        }
        // On average as many turns as belong to a sample, itself included.
        self.turns_left = self.random.u32(0..TURNS_PER_SAMPLE * 2 - 1);
        self.timed = true;
        self.spent = Spent::default();
        let readings = [(); 3].map(|()| clock.monotonic_ns());
        self.reading_ns = readings
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]))
            .min()
            .unwrap_or(0);
        true
    }

    /// Begins to measure a step.
    #[inline]
    pub(crate) fn start(&mut self, clock: &dyn Clock) {
        if self.timed {
            self.mark_ns = clock.monotonic_ns();
        }
    }

    /// The time since the last `start` or `lap` was spent on `step`, which is not a step of the driver's.
    #[inline]
    pub(crate) fn lap(&mut self, clock: &dyn Clock, step: Step) {
        if self.timed {
            self.lap_timed(clock, step);
        }
    }

    #[cold]
    fn lap_timed(&mut self, clock: &dyn Clock, step: Step) {
        let now_ns = clock.monotonic_ns();
        let took_ns = now_ns
            .saturating_sub(self.mark_ns)
            .saturating_sub(self.reading_ns);
        self.mark_ns = now_ns;
        match step {
            Step::Parse => self.spent.parse_ns += took_ns,
            Step::Encode => self.spent.encode_ns += took_ns,
            Step::Execute | Step::Read | Step::Write => self.spent.execute_ns += took_ns,
        }
    }

    /// A probe for writers, if the turn is timed.
    #[inline]
    pub(crate) fn probe<'c>(&self, ticks: &'c dyn Fn() -> u64) -> Option<Probe<'c>> {
        self.timed.then(|| Probe::new(ticks, self.reading_ns))
    }

    /// What `probe` measured was taken for execution so far.
    pub(crate) fn take_encoding_out(&mut self, probe: Option<Probe<'_>>) {
        if let Some(probe) = probe {
            let spent = &mut self.spent;
            // Where few calls stood for many, they may have stood for more than there was.
            let most_ns = spent.execute_ns.saturating_sub(probe.overhead());
            let encode_ns = probe.spent().min(most_ns);
            spent.encode_ns += encode_ns;
            spent.execute_ns = most_ns - encode_ns;
        }
    }

    /// Counts a turn that is over. `delayed_ns` tells how much of the turn another thread had the processor that this one
    /// wanted; it is asked only if the turn may be the longest.
    pub(crate) fn end_turn(
        &mut self,
        statistics: &WorkerStatistics,
        turn: &Turn,
        delayed_ns: impl FnOnce() -> u64,
    ) {
        let busy_ns = turn
            .ended_ns
            .saturating_sub(self.last_ended_ns)
            .saturating_sub(turn.asleep_ns);
        self.last_ended_ns = turn.ended_ns;
        statistics.busy_ns.add(busy_ns as i64);
        if turn.receives > 0 {
            statistics.reads.add(i64::from(turn.receives));
        }
        if turn.sends > 0 {
            statistics.writes.add(i64::from(turn.sends));
        }
        if turn.eventful {
            statistics.loops.add(1);
        }
        let took_ns = turn.ended_ns.saturating_sub(turn.started_ns);
        if turn.eventful && took_ns > statistics.longest_turn_ns.load() {
            let without_delay_ns = took_ns.saturating_sub(delayed_ns());
            statistics.longest_turn_ns.raise(without_delay_ns);
        }
        if std::mem::take(&mut self.timed)
            && let Some(system) = turn.system
        {
            self.add_sample(statistics, system);
        }
        let seen = Seen::of(statistics);
        let before = std::mem::replace(&mut self.seen, seen);
        let commands = seen.commands - before.commands;
        statistics.most_commands_in_turn.raise(commands as u64);
        statistics.recent.add(
            turn.ended_ns,
            [
                commands,
                seen.input_bytes - before.input_bytes,
                seen.output_bytes - before.output_bytes,
                i64::from(turn.eventful),
                busy_ns as i64,
            ],
        );
    }

    fn add_sample(&self, statistics: &WorkerStatistics, system: SystemTimes) {
        for (counter, spent_ns) in [
            (&statistics.sampled_read_ns, system.read_ns),
            (&statistics.sampled_parse_ns, self.spent.parse_ns),
            (&statistics.sampled_execute_ns, self.spent.execute_ns),
            (&statistics.sampled_encode_ns, self.spent.encode_ns),
            (&statistics.sampled_write_ns, system.write_ns),
        ] {
            counter.add(spent_ns as i64);
        }
    }
}

/// Divides `busy` among the steps as the samples say, to the last unit. Nothing sampled: nothing divided. Counters are
/// below 2^63, so that products fit.
pub(crate) fn split(busy: u64, sampled: [u64; 5]) -> Option<[u64; 5]> {
    let whole: u128 = sampled.iter().map(|part| u128::from(*part)).sum();
    if whole == 0 {
        return None;
    }
    let mut behind = 0_u128;
    let mut given = 0;
    Some(sampled.map(|part| {
        behind += u128::from(part);
        // Differences of rounded running sums add up exactly.
        let until = (u128::from(busy) * behind / whole) as u64;
        until - std::mem::replace(&mut given, until)
    }))
}

#[cfg(test)]
mod tests;
