//! What is timed and how it is divided, on clocks that move as told.

use std::cell::Cell;

use weft_resp::{Protocol, Writer};
use weft_rope::Output;

use super::*;

/// A clock that goes on by a fixed step with every reading, and by leaps when told to.
struct Stepping {
    now_ns: Cell<u64>,
    step_ns: u64,
}

impl Stepping {
    fn new(step_ns: u64) -> Self {
        Self {
            now_ns: Cell::new(1_000_000),
            step_ns,
        }
    }

    fn pass(&self, ns: u64) {
        self.now_ns.set(self.now_ns.get() + ns);
    }
}

impl Clock for Stepping {
    fn unix_us(&self) -> u64 {
        0
    }

    fn monotonic_ns(&self) -> u64 {
        self.pass(self.step_ns);
        self.now_ns.get()
    }
}

fn turn(started_ns: u64, ended_ns: u64, asleep_ns: u64) -> Turn {
    Turn {
        started_ns,
        ended_ns,
        asleep_ns,
        eventful: true,
        receives: 3,
        sends: 2,
        system: None,
    }
}

fn undelayed() -> u64 {
    0
}

#[test]
fn one_turn_in_32_is_timed_the_first_included_and_without_rhythm() {
    const TURNS: usize = 320_000;
    let clock = Stepping::new(0);
    let statistics = WorkerStatistics::default();
    let mut timer = StepTimer::new(1);
    let mut timed = Vec::new();
    for number in 0..TURNS {
        if timer.begin_turn(&clock) {
            timed.push(number);
        }
        timer.end_turn(&statistics, &Turn::default(), undelayed);
    }
    assert_eq!(timed[0], 0);
    let expected = TURNS as f64 / 32.0;
    let deviation = (timed.len() as f64 - expected) / expected;
    assert!(deviation.abs() < 0.03, "{} samples", timed.len());
    // A load that does the same every eighth turn is met in each of its phases as often.
    let mut phases = [0_usize; 8];
    timed.iter().for_each(|number| phases[number % 8] += 1);
    for met in phases {
        assert!(
            met.abs_diff(timed.len() / 8) < timed.len() / 40,
            "{phases:?}"
        );
    }
    let longest = timed.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert_eq!(longest, Some(63));
}

#[test]
fn a_timed_turn_is_divided_among_the_steps() {
    let clock = Stepping::new(10);
    let statistics = WorkerStatistics::default();
    let mut timer = StepTimer::new(1);
    timer.begin_loop(&statistics, 0);
    assert!(timer.begin_turn(&clock));

    timer.start(&clock);
    clock.pass(100);
    timer.lap(&clock, Step::Parse);
    clock.pass(400);
    timer.lap(&clock, Step::Execute);
    clock.pass(50);
    timer.lap(&clock, Step::Parse);
    {
        let ticks = || clock.monotonic_ns();
        let probe = timer.probe(&ticks);
        let mut out = Output::new();
        timer.start(&clock);
        clock.pass(300);
        // Takes no time on this clock but for the two readings of the probe, of which one falls within what it measures.
        Writer::probed(&mut out, Protocol::Resp2, probe.as_ref()).ok();
        timer.lap(&clock, Step::Execute);
        timer.take_encoding_out(probe);
    }
    let spent = Spent {
        parse_ns: 150,
        execute_ns: 700,
        encode_ns: 0,
    };
    assert_eq!(timer.spent, spent);

    let system = SystemTimes {
        read_ns: 1_000,
        write_ns: 2_000,
    };
    let turn = Turn {
        system: Some(system),
        ..turn(10_000, 15_000, 8_000)
    };
    timer.end_turn(&statistics, &turn, undelayed);
    let totals = crate::statistics::Totals::of(&statistics);
    assert_eq!(
        [
            totals.sampled_read_ns,
            totals.sampled_parse_ns,
            totals.sampled_execute_ns,
            totals.sampled_encode_ns,
            totals.sampled_write_ns,
        ],
        [1_000, 150, 700, 0, 2_000]
    );
    assert_eq!(
        (totals.busy_ns, totals.loops, totals.reads, totals.writes),
        (7_000, 1, 3, 2)
    );
    assert_eq!(statistics.longest_turn_ns.load(), 5_000);
}

#[test]
fn encoding_is_taken_out_of_execution_and_never_more_than_there_is() {
    let clock = Stepping::new(0);
    let mut timer = StepTimer::new(1);
    assert!(timer.begin_turn(&clock));
    // Each of the probe's readings is 30 nanoseconds after the one before.
    let ticks = || {
        clock.pass(30);
        clock.now_ns.get()
    };
    let mut out = Output::new();
    let probe = timer.probe(&ticks);
    timer.start(&clock);
    clock.pass(200);
    Writer::probed(&mut out, Protocol::Resp2, probe.as_ref()).ok();
    timer.lap(&clock, Step::Execute);
    timer.take_encoding_out(probe);
    assert_eq!((timer.spent.execute_ns, timer.spent.encode_ns), (230, 30));

    timer.spent = Spent::default();
    let probe = timer.probe(&ticks);
    Writer::probed(&mut out, Protocol::Resp2, probe.as_ref()).ok();
    timer.start(&clock);
    clock.pass(20);
    timer.lap(&clock, Step::Execute);
    timer.take_encoding_out(probe);
    assert_eq!((timer.spent.execute_ns, timer.spent.encode_ns), (0, 20));
}

#[test]
fn an_untimed_turn_reads_no_clock() {
    let clock = Stepping::new(1);
    let statistics = WorkerStatistics::default();
    let mut timer = StepTimer::new(1);
    timer.turns_left = 1;
    assert!(!timer.begin_turn(&clock));
    let before_ns = clock.now_ns.get();
    timer.start(&clock);
    timer.lap(&clock, Step::Parse);
    let ticks = || clock.monotonic_ns();
    assert!(timer.probe(&ticks).is_none());
    timer.lap(&clock, Step::Execute);
    timer.end_turn(&statistics, &turn(10, 20, 0), undelayed);
    assert_eq!(clock.now_ns.get(), before_ns);
    assert_eq!(timer.spent, Spent::default());
}

#[test]
fn the_longest_turn_is_without_delay_which_is_asked_for_only_then() {
    let clock = Stepping::new(0);
    let statistics = WorkerStatistics::default();
    let mut timer = StepTimer::new(1);
    let asked = Cell::new(0);
    let mut end = |started_ns, ended_ns, delayed_ns| {
        let _ = timer.begin_turn(&clock);
        timer.end_turn(&statistics, &turn(started_ns, ended_ns, 0), || {
            asked.set(asked.get() + 1);
            delayed_ns
        });
        (statistics.longest_turn_ns.load(), asked.get())
    };
    assert_eq!(end(100, 400, 50), (250, 1));
    assert_eq!(end(500, 750, 0), (250, 1));
    assert_eq!(end(800, 1_100, 200), (250, 2));
    assert_eq!(end(1_200, 1_600, 0), (400, 3));
    statistics.longest_turn_ns.reset();
    assert_eq!(end(2_000, 2_001, 5), (0, 4));
    assert_eq!(end(2_000, 2_010, 5), (5, 5));
}

#[test]
fn what_happened_lately_is_what_the_counters_gained() {
    let statistics = WorkerStatistics::default();
    let clock = Stepping::new(0);
    let mut timer = StepTimer::new(1);
    timer.begin_loop(&statistics, 1_000_000_000);
    for ended_ns in [1_000_300_000, 1_000_900_000] {
        statistics.commands_processed.add(5);
        statistics.input_bytes.add(50);
        statistics.output_bytes.add(500);
        let _ = timer.begin_turn(&clock);
        timer.end_turn(
            &statistics,
            &turn(ended_ns - 100_000, ended_ns, 200_000),
            undelayed,
        );
    }
    let window = crate::recent::Window::of(std::iter::once(&statistics.recent), 1_001_000_000, 0);
    assert_eq!(
        (window.commands, window.input_bytes, window.output_bytes),
        (10, 100, 1_000)
    );
    assert_eq!((window.loops, window.busy_ns), (2, 500_000));
}

#[test]
fn shares_add_up_exactly() {
    assert_eq!(split(100, [0; 5]), None);
    assert_eq!(split(0, [1, 2, 3, 4, 5]), Some([0; 5]));
    assert_eq!(split(100, [1, 1, 1, 0, 0]), Some([33, 33, 34, 0, 0]));
    let parts = split(u64::MAX, [7, 0, 3, 1 << 62, 1]).unwrap();
    assert_eq!(parts.iter().sum::<u64>(), u64::MAX);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..1_000 {
        let busy = random.u64(0..1_000_000);
        let sampled = [(); 5].map(|()| random.u64(0..10_000));
        let parts = split(busy, sampled).unwrap();
        assert_eq!(parts.iter().sum::<u64>(), busy);
        let whole: u64 = sampled.iter().sum();
        for (part, sample) in parts.iter().zip(sampled) {
            let exact = busy as f64 * sample as f64 / whole as f64;
            assert!((*part as f64 - exact).abs() <= 1.0);
        }
    }
}
