//! How many workers should be active, and which connections should move.
//!
//! A pure state machine over samples: it reads no clock and knows no thread. Another worker pays only while a processor is
//! idle, and sometimes not even then (smaller batches, more wake-ups), so that each one more is a trial:
//!
//! ```text
//!             all busy, a processor idle, 2 rounds                 TRIAL_ROUNDS later, rate grown enough
//!   settled ----------------------------------------> on trial ---------------------------------------> settled
//!      |  ^                                              | otherwise: as before, and a rest that doubles each time
//!      |  '----------------------------------------------'
//!      '-- the work fits on fewer, or workers wait for processors: one less
//! ```
//! A round is [`ROUND_NS`] long.

/// Time between decisions: long enough for shares to mean something, short against what users notice.
pub const ROUND_NS: u64 = 100_000_000;

/// Rounds that a reason for more workers has to last.
const ROUNDS_TO_GROW: u32 = 2;
/// Rounds that a reason for fewer has to last.
const ROUNDS_TO_SHRINK: u32 = 5;
/// Rounds between one more worker and the verdict. The first is not counted: connections are still on their way.
const TRIAL_ROUNDS: u32 = 4;
/// The rest after a trial that failed, in rounds, and the longest one.
const REST_ROUNDS: u32 = 20;
const REST_ROUNDS_MAX: u32 = 600;
/// Share of its time that a worker is busy at least when it counts as full.
const FULL: f64 = 0.85;
/// Processors that must be idle on average for a trial.
const IDLE_PROCESSORS: f64 = 0.25;
/// Share of its time that a worker waits for a processor at most when there are enough of them.
const WAITING: f64 = 0.15;
/// Of the rate that one more worker would bring at best, what it has to bring.
const GAIN: f64 = 0.3;
/// Busy share of each worker up to which the work is given to one less.
const FITS: f64 = 0.6;

/// What one worker did in the last round. Shares are of wall time.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Sample {
    /// Share of the time not asleep.
    pub busy: f64,
    /// Share of the time it was ready to run and had no processor.
    pub waiting: f64,
    /// Requests per second.
    pub rate: f64,
    /// Its connections.
    pub connections: usize,
    /// Those that sent something in this round.
    pub lively: usize,
}

/// Everything a decision is made from.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// All workers there are. Those from `active` on have connections only while they are giving them away.
    pub workers: &'a [Sample],
    /// How many are active.
    pub active: usize,
    /// The most that may be.
    pub most: usize,
    /// Exactly this many, whatever the load.
    pub forced: Option<usize>,
    /// Processors that were idle in the last round, on average, out of those this process may use; unknown counts as none.
    pub idle_processors: f64,
}

/// Connections to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The worker that has them.
    pub from: usize,
    /// The worker that is to have them.
    pub to: usize,
    /// How many.
    pub count: usize,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// How many workers are active from now on: the first ones.
    pub active: usize,
    /// What moves.
    pub moves: Vec<Move>,
}

/// The decisions' memory.
#[derive(Debug, Default)]
pub struct Controller {
    full_rounds: u32,
    spare_rounds: u32,
    crowded_rounds: u32,
    uneven_rounds: u32,
    trial: Option<Trial>,
    rest: Rest,
}

#[derive(Debug)]
struct Trial {
    /// Active workers before it.
    before: usize,
    /// Requests per second before it.
    rate_before: f64,
    /// Requests per second, summed over the rounds that count.
    rate_sum: f64,
    rounds: u32,
}

/// After a trial that failed.
#[derive(Debug, Default)]
struct Rest {
    rounds_left: u32,
    /// The length of the next one.
    next: u32,
    /// Lively connections when the trial failed: a different load deserves a new trial at once.
    lively: usize,
}

impl Controller {
    /// Whether the next decision depends on idle processors, which are not free to ask for.
    pub fn asks_for_idle_processors(&self, view: &View<'_>) -> bool {
        self.could_grow(view)
    }

    /// Decides at the end of a round.
    pub fn decide(&mut self, view: &View<'_>) -> Decision {
        let active = match view.forced {
            Some(forced) => {
                *self = Self::default();
                forced
            }
            None => self.load_wants(view).clamp(1, view.most.max(1)),
        };
        let active = active.min(view.workers.len()).max(1);
        Decision {
            active,
            moves: self.moves(view, active),
        }
    }

    fn could_grow(&self, view: &View<'_>) -> bool {
        let active = &view.workers[..view.active.min(view.workers.len())];
        let lively: usize = active.iter().map(|worker| worker.lively).sum();
        view.forced.is_none()
            && self.trial.is_none()
            && view.active < view.most.min(view.workers.len())
            && lively > view.active
            && active.iter().all(|worker| worker.busy >= FULL)
            && mean(active, |worker| worker.waiting) <= WAITING
    }

    fn load_wants(&mut self, view: &View<'_>) -> usize {
        if view.active > view.most {
            self.trial = None;
            return view.most;
        }
        let active = &view.workers[..view.active.min(view.workers.len())];
        let rate: f64 = view.workers.iter().map(|worker| worker.rate).sum();
        let lively: usize = active.iter().map(|worker| worker.lively).sum();
        self.rest.pass_round(lively);
        if let Some(trial) = &mut self.trial {
            trial.rounds += 1;
            if trial.rounds > 1 {
                trial.rate_sum += rate;
            }
            if trial.rounds < TRIAL_ROUNDS {
                return view.active;
            }
            return self.judge(view, lively);
        }
        let grows = self.could_grow(view)
            && self.rest.rounds_left == 0
            && view.idle_processors >= IDLE_PROCESSORS;
        self.full_rounds = if grows { self.full_rounds + 1 } else { 0 };
        if self.full_rounds >= ROUNDS_TO_GROW {
            self.full_rounds = 0;
            // Where many processors are idle, one at a time would take long to reach them.
            let step = ((view.idle_processors / 2.0) as usize).clamp(1, view.active);
            self.trial = Some(Trial {
                before: view.active,
                rate_before: rate,
                rate_sum: 0.0,
                rounds: 0,
            });
            return view.active + step;
        }
        let busy: f64 = active.iter().map(|worker| worker.busy).sum();
        let spare = view.active > 1 && busy / (view.active - 1) as f64 <= FITS;
        self.spare_rounds = if spare { self.spare_rounds + 1 } else { 0 };
        let crowded = view.active > 1 && mean(active, |worker| worker.waiting) > 2.0 * WAITING;
        self.crowded_rounds = if crowded { self.crowded_rounds + 1 } else { 0 };
        if self.spare_rounds >= ROUNDS_TO_SHRINK {
            self.spare_rounds = 0;
            return view.active - 1;
        }
        if self.crowded_rounds >= ROUNDS_TO_SHRINK {
            self.crowded_rounds = 0;
            self.rest.begin(lively);
            return view.active - 1;
        }
        view.active
    }

    /// The verdict on a trial.
    fn judge(&mut self, view: &View<'_>, lively: usize) -> usize {
        let Some(trial) = self.trial.take() else {
            return view.active;
        };
        let rate = trial.rate_sum / f64::from(trial.rounds - 1);
        let hoped = (view.active - trial.before) as f64 / trial.before as f64;
        if rate >= trial.rate_before * (1.0 + GAIN * hoped) {
            self.rest = Rest::default();
            return view.active;
        }
        // A load that ended says nothing about workers.
        if rate >= trial.rate_before * 0.5 {
            self.rest.begin(lively);
        }
        trial.before
    }

    /// Empties the workers that are not active, and evens out the others.
    fn moves(&mut self, view: &View<'_>, active: usize) -> Vec<Move> {
        let changed = active != view.active;
        // What counts as a worker's share: with a number forced, all connections; otherwise those that make work.
        let share = |worker: &Sample| match view.forced {
            Some(_) => worker.connections,
            None => worker.lively,
        };
        let mut counts: Vec<usize> = view.workers.iter().map(share).collect();
        let mut moves = Vec::new();
        for (from, worker) in view.workers.iter().enumerate().skip(active) {
            let each = worker.connections.div_ceil(active);
            let mut left = worker.connections;
            let mut order: Vec<usize> = (0..active).collect();
            order.sort_by_key(|to| counts[*to]);
            for to in order {
                let count = each.min(left);
                if count > 0 {
                    counts[to] += count;
                    left -= count;
                    moves.push(Move { from, to, count });
                }
            }
        }
        counts.truncate(active);
        let (most, least) = (counts.iter().max(), counts.iter().min());
        let gap = most.unwrap_or(&0) - least.unwrap_or(&0);
        let fair = counts.iter().sum::<usize>().div_ceil(active);
        self.uneven_rounds = if gap >= 2.max(fair / 4) {
            self.uneven_rounds + 1
        } else {
            0
        };
        // A difference that is not of our making may be gone in the next round.
        if changed || view.forced.is_some() || self.uneven_rounds >= ROUNDS_TO_SHRINK {
            self.uneven_rounds = 0;
            even_out(&mut counts, &mut moves);
        }
        moves
    }
}

impl Rest {
    fn begin(&mut self, lively: usize) {
        let rounds = self.next.clamp(REST_ROUNDS, REST_ROUNDS_MAX);
        *self = Self {
            rounds_left: rounds,
            next: rounds * 2,
            lively,
        };
    }

    fn pass_round(&mut self, lively: usize) {
        self.rounds_left = self.rounds_left.saturating_sub(1);
        if self.rounds_left > 0 && lively.abs_diff(self.lively) > self.lively.max(4) / 2 {
            *self = Self::default();
        }
    }
}

/// Moves from the largest to the smallest until no two differ by more than one.
fn even_out(counts: &mut [usize], moves: &mut Vec<Move>) {
    for _ in 0..counts.len() {
        let by_count = |&index: &usize| counts[index];
        let Some(from) = (0..counts.len()).max_by_key(by_count) else {
            return;
        };
        let Some(to) = (0..counts.len()).min_by_key(by_count) else {
            return;
        };
        let mean = counts.iter().sum::<usize>() / counts.len();
        if counts[from] - counts[to] < 2 {
            return;
        }
        let count = (counts[from] - mean).min((mean - counts[to]).max(1));
        counts[from] -= count;
        counts[to] += count;
        moves.push(Move { from, to, count });
    }
}

fn mean(workers: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    workers.iter().map(of).sum::<f64>() / workers.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine: so many processors, a load of so many connections and requests per second, a cost per request, and how
    /// much dearer requests are with each worker more.
    struct Machine {
        processors: f64,
        others: f64,
        connections: usize,
        asked: f64,
        cost_s: f64,
        dearer: f64,
    }

    impl Machine {
        /// Runs `rounds` from one worker on and returns how many were active after each.
        fn run(&self, controller: &mut Controller, most: usize, rounds: usize) -> Vec<usize> {
            let mut counts = vec![0; most];
            counts[0] = self.connections;
            let mut active = 1;
            let mut history = Vec::new();
            for _ in 0..rounds {
                let cost = self.cost_s * (1.0 + self.dearer * (active - 1) as f64);
                let free = (self.processors - self.others).max(0.1);
                let possible = (active as f64).min(free) / cost;
                let rate = possible.min(self.asked);
                let busy = (rate * cost).min(active as f64);
                let workers: Vec<Sample> = counts
                    .iter()
                    .map(|&connections| Sample {
                        busy: busy / active as f64 * f64::from(u8::from(connections > 0)),
                        waiting: ((active as f64 - free) / active as f64).max(0.0),
                        rate: rate * connections as f64 / self.connections as f64,
                        connections,
                        lively: connections,
                    })
                    .collect();
                let decision = controller.decide(&View {
                    workers: &workers,
                    active,
                    most,
                    forced: None,
                    idle_processors: (free - busy).max(0.0),
                });
                active = decision.active;
                for Move { from, to, count } in decision.moves {
                    assert!(counts[from] >= count, "moved more than there were");
                    counts[from] -= count;
                    counts[to] += count;
                }
                assert!(counts[active..].iter().all(|&count| count == 0));
                history.push(active);
            }
            history
        }
    }

    const QUIET: Machine = Machine {
        processors: 8.0,
        others: 0.0,
        connections: 50,
        asked: 50_000.0,
        cost_s: 5e-6,
        dearer: 0.1,
    };

    #[test]
    fn a_light_load_stays_on_one_worker() {
        let history = QUIET.run(&mut Controller::default(), 8, 100);
        assert!(history.iter().all(|&active| active == 1));
    }

    #[test]
    fn a_heavy_load_spreads_over_idle_processors() {
        let heavy = Machine {
            asked: 1e9,
            ..QUIET
        };
        let history = heavy.run(&mut Controller::default(), 8, 200);
        assert_eq!(history.last(), Some(&8));
        assert!(history.windows(2).all(|pair| pair[1] >= pair[0]));
    }

    #[test]
    fn no_worker_joins_where_no_processor_is_idle() {
        let crowded = Machine {
            processors: 2.0,
            others: 1.0,
            asked: 1e9,
            ..QUIET
        };
        let history = crowded.run(&mut Controller::default(), 8, 200);
        assert!(history.iter().all(|&active| active == 1));
    }

    #[test]
    fn a_worker_that_brings_nothing_goes_and_the_trials_become_rare() {
        let hopeless = Machine {
            processors: 4.0,
            asked: 1e9,
            dearer: 1.0,
            ..QUIET
        };
        let history = hopeless.run(&mut Controller::default(), 2, 1200);
        let trials = history.windows(2).filter(|pair| pair[1] > pair[0]).count();
        assert!((3..=7).contains(&trials), "{trials} trials");
        let wasted = history.iter().filter(|&&active| active > 1).count();
        assert!(wasted <= 50, "{wasted} of 1200 rounds");
    }

    #[test]
    fn a_load_that_fades_is_gathered_again() {
        let mut controller = Controller::default();
        let sample = |busy| Sample {
            busy,
            rate: 1000.0,
            connections: 10,
            lively: 10,
            ..Sample::default()
        };
        let mut active = 4;
        for _ in 0..30 {
            let workers = vec![sample(0.2 * 4.0 / active as f64); active];
            active = controller
                .decide(&View {
                    workers: &workers,
                    active,
                    most: 4,
                    forced: None,
                    idle_processors: 3.0,
                })
                .active;
        }
        // Two would be busy for 0.4 of their time each, and one alone for 0.8.
        assert_eq!(active, 2);
    }

    #[test]
    fn one_lively_connection_never_gets_a_second_worker() {
        let mut controller = Controller::default();
        let worker = Sample {
            busy: 1.0,
            rate: 1e6,
            connections: 100,
            lively: 1,
            ..Sample::default()
        };
        for _ in 0..50 {
            let decision = controller.decide(&View {
                workers: &[worker, Sample::default()],
                active: 1,
                most: 2,
                forced: None,
                idle_processors: 1.0,
            });
            assert_eq!(decision.active, 1);
        }
    }

    #[test]
    fn a_forced_number_holds_and_shares_all_connections() {
        let mut controller = Controller::default();
        let full = Sample {
            connections: 200,
            ..Sample::default()
        };
        let workers = [
            full,
            Sample::default(),
            Sample::default(),
            Sample::default(),
        ];
        let decision = controller.decide(&View {
            workers: &workers,
            active: 1,
            most: 1,
            forced: Some(4),
            idle_processors: 0.0,
        });
        assert_eq!(decision.active, 4);
        let moved: usize = decision.moves.iter().map(|step| step.count).sum();
        assert_eq!(moved, 150);
        assert!(
            decision
                .moves
                .iter()
                .all(|step| step.from == 0 && step.count == 50)
        );
    }

    #[test]
    fn who_is_not_active_gives_everything_away() {
        let mut controller = Controller::default();
        let with = |connections| Sample {
            connections,
            ..Sample::default()
        };
        let decision = controller.decide(&View {
            workers: &[with(10), with(4), with(7)],
            active: 3,
            most: 3,
            forced: Some(2),
            idle_processors: 0.0,
        });
        let given: usize = decision
            .moves
            .iter()
            .filter(|step| step.from == 2)
            .map(|step| step.count)
            .sum();
        assert_eq!((decision.active, given), (2, 7));
        let mut counts = [10_i64, 4, 7];
        for step in &decision.moves {
            counts[step.from] -= step.count as i64;
            counts[step.to] += step.count as i64;
        }
        assert!(
            counts[0].abs_diff(counts[1]) <= 1 && counts[2] == 0,
            "{counts:?}"
        );
    }

    #[test]
    fn a_lower_cap_is_obeyed_at_once() {
        let workers = [Sample::default(); 6];
        let decision = Controller::default().decide(&View {
            workers: &workers,
            active: 6,
            most: 2,
            forced: None,
            idle_processors: 4.0,
        });
        assert_eq!(decision.active, 2);
    }
}
