//! INFO threads: what each worker did, in Redis's lines, and where its time went, in lines of our own.
//!
//! Times are those of the worker's loop since its start or the last CONFIG RESETSTAT. The five steps and `idle_us` add up
//! to that time: the loop knows how long it was busy, and the turns that were timed tell how that divides.

use super::{Facts, Lines, positive};
use crate::statistics::{Account, Totals, WorkerStatistics};
use crate::step_times::{Step, split};

/// Where one worker's time went, in microseconds.
#[derive(Debug, Default, PartialEq, Eq)]
struct LoopTimes {
    /// By step, in the order of [`Step::ALL`].
    steps: [u64; 5],
    idle: u64,
}

impl LoopTimes {
    /// `totals`: the worker's counters since the last reset, which was at `reset_ns`.
    fn new(worker: &WorkerStatistics, totals: &Totals, reset_ns: u64, now_ns: u64) -> Self {
        let began_ns = positive(worker.loop_began_ns.load());
        if began_ns == 0 {
            return Self::default();
        }
        let elapsed = now_ns.saturating_sub(began_ns.max(reset_ns)) / 1000;
        let busy = (positive(totals.busy_ns) / 1000).min(elapsed);
        // Soon after a reset there may be no sample yet; older ones are better than none.
        let steps = split(busy, sampled(totals))
            .or_else(|| split(busy, sampled(&Totals::of(worker))))
            .unwrap_or_default();
        Self {
            steps,
            idle: elapsed - busy,
        }
    }

    fn busy(&self) -> u64 {
        self.steps.iter().sum()
    }
}

fn sampled(totals: &Totals) -> [u64; 5] {
    [
        totals.sampled_read_ns,
        totals.sampled_parse_ns,
        totals.sampled_execute_ns,
        totals.sampled_encode_ns,
        totals.sampled_write_ns,
    ]
    .map(positive)
}

fn times(facts: &Facts<'_, '_, '_>) -> Vec<LoopTimes> {
    let reset_ns = facts.cx.engine.statistics_reset_ns();
    let times = |Account { statistics, totals }: &Account| {
        LoopTimes::new(statistics, totals, reset_ns, facts.monotonic_ns)
    };
    facts.workers.iter().map(times).collect()
}

/// The section.
pub(super) fn threads(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    for (id, Account { totals, .. }) in facts.workers.iter().enumerate() {
        lines.field(
            &format!("io_thread_{id}"),
            format_args!(
                "clients={},reads={},writes={}",
                positive(totals.connected_clients),
                totals.reads,
                totals.writes
            ),
        );
    }
    let times = times(facts);
    for (id, (times, worker)) in times.iter().zip(&facts.workers).enumerate() {
        let Account { statistics, totals } = worker;
        let [read, parse, execute, encode, write] = times.steps;
        let busy = times.busy();
        lines.field(
            &format!("weft_worker_{id}"),
            format_args!(
                "busy_percent={:.2},read_us={read},parse_us={parse},execute_us={execute},encode_us={encode},\
                 write_us={write},idle_us={},longest_turn_us={},loops={},batch={:.2}",
                100.0 * ratio(busy, busy + times.idle),
                times.idle,
                statistics.longest_turn_ns.load() / 1000,
                totals.loops,
                ratio(positive(totals.batched_requests), positive(totals.batches)),
            ),
        );
    }
    let bottleneck = largest(&sum_of_steps(&times)).map_or("none", Step::name);
    lines.field("bottleneck_step", bottleneck);
}

fn sum_of_steps(times: &[LoopTimes]) -> [u64; 5] {
    let mut sums = [0; 5];
    for worker in times {
        for (sum, step) in sums.iter_mut().zip(worker.steps) {
            *sum += step;
        }
    }
    sums
}

/// The step that takes most; none if there was no work.
fn largest(steps: &[u64; 5]) -> Option<Step> {
    let (step, us) = Step::ALL
        .into_iter()
        .zip(*steps)
        .max_by_key(|(_, us)| *us)?;
    (us > 0).then_some(step)
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn worker(busy_ns: i64, sampled_ns: [i64; 5]) -> WorkerStatistics {
        let worker = WorkerStatistics::default();
        worker.loop_began_ns.set(1_000 * MS);
        worker.busy_ns.add(busy_ns);
        worker.sampled_read_ns.add(sampled_ns[0]);
        worker.sampled_parse_ns.add(sampled_ns[1]);
        worker.sampled_execute_ns.add(sampled_ns[2]);
        worker.sampled_encode_ns.add(sampled_ns[3]);
        worker.sampled_write_ns.add(sampled_ns[4]);
        worker
    }

    #[test]
    fn steps_and_idleness_add_up_to_the_time_of_the_loop() {
        let worker = worker(60 * MS, [3, 1, 2, 1, 5]);
        let now_ns = 1_100_000_000;
        let times = LoopTimes::new(&worker, &Totals::of(&worker), 0, now_ns);
        assert_eq!(
            times,
            LoopTimes {
                steps: [15_000, 5_000, 10_000, 5_000, 25_000],
                idle: 40_000,
            }
        );
    }

    #[test]
    fn after_a_reset_only_what_follows_counts() {
        let worker = worker(60 * MS, [3, 1, 2, 1, 5]);
        let reset = Totals::of(&worker);
        let reset_ns = 1_100_000_000;
        let since = || Totals::of(&worker).since(&reset);
        let idle = LoopTimes::new(&worker, &since(), reset_ns, reset_ns + 7_000_000);
        assert_eq!((idle.steps, idle.idle), ([0; 5], 7_000));

        worker.busy_ns.add(MS);
        // No sample since: divided as before.
        let unsampled = LoopTimes::new(&worker, &since(), reset_ns, reset_ns + 7_000_000);
        assert_eq!(
            (unsampled.steps, unsampled.idle),
            ([250, 83, 167, 83, 417], 6_000)
        );

        worker.sampled_execute_ns.add(10);
        let sampled = LoopTimes::new(&worker, &since(), reset_ns, reset_ns + 7_000_000);
        assert_eq!((sampled.steps, sampled.idle), ([0, 0, 1_000, 0, 0], 6_000));
    }

    #[test]
    fn a_worker_whose_loop_has_not_begun_has_no_time() {
        let worker = WorkerStatistics::default();
        let times = LoopTimes::new(&worker, &Totals::of(&worker), 0, 5_000_000);
        assert_eq!(times, LoopTimes::default());
    }

    #[test]
    fn the_bottleneck_is_the_largest_step() {
        assert_eq!(largest(&[0; 5]), None);
        assert_eq!(largest(&[1, 2, 9, 3, 4]), Some(Step::Execute));
        assert_eq!(largest(&[1, 0, 0, 0, 4]), Some(Step::Write));
    }
}
