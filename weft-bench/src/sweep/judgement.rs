//! What the figures mean: what bounds a load, and which setting of threads is the best for it.
//!
//! Owns the rules and their thresholds, and says from which numbers it drew a conclusion. Pure. What bounds: whichever of
//! client and server has the thread that was ready to run for the greatest part of the time. If it had to wait for a
//! processor for [`SHORT`] or more of the time, processors are short. If it was ready for less than [`BUSY`], nobody was
//! busy and time passed between them. Else it is that side: the client's own limit, or the server's, with the step that takes most,
//! or, where a server does not tell its steps, whether the time was in the kernel ([`KERNEL`]) or in the server's own code.

use std::fmt;

use super::sample::{Sample, Side, median_of};
use crate::server::{STEPS, ThreadSpent};
use crate::statistics::{Interval, median, paired_ratios};

/// A thread ready to run for this part of the time is busy.
const BUSY: f64 = 0.8;

/// A thread that waits for a processor for this part of the time is short of processors.
const SHORT: f64 = 0.2;

/// With this part of its processor time in the kernel, a server's work is the system's.
const KERNEL: f64 = 0.6;

/// A rate reaches another if it may be this part of it: what is less than that apart matters to nobody.
const REACHES: f64 = 0.98;

/// A rate that was measured as less than this part of another does not reach it, however uncertain both are.
const REACHES_AT_LEAST: f64 = 0.9;

/// A thread counts for a setting without a number if it ran for this part of what the busiest one did.
const TAKES_PART: f64 = 0.1;

/// What bounds a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// What it is.
    pub by: BoundBy,
    /// The busiest thread of that side, or of the server's.
    pub thread: String,
    /// The part of the time in which it ran.
    pub run: f64,
    /// The part in which it waited for a processor.
    pub wait: f64,
    /// The part of the server's processor time in the kernel.
    pub kernel: f64,
    /// The machine's idle part.
    pub idle: Option<f64>,
}

/// The kinds of bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BoundBy {
    /// This program could not ask faster.
    Client,
    /// The server's threads, most of all in this step, which takes this part of its time.
    Step(&'static str, f64),
    /// The server's threads, in the kernel.
    System,
    /// The server's threads, in its own code.
    Server,
    /// Client and server share too few processors.
    Processors,
    /// Nobody: requests were on their way, or waited to be noticed.
    Latency,
}

impl BoundBy {
    /// In result files.
    pub fn name(self) -> &'static str {
        match self {
            BoundBy::Client => "client",
            BoundBy::Step(..) => "server-step",
            BoundBy::System => "server-kernel",
            BoundBy::Server => "server",
            BoundBy::Processors => "processors",
            BoundBy::Latency => "latency",
        }
    }

    /// In the narrow column of a table.
    pub fn short(self) -> String {
        match self {
            BoundBy::Step(step, _) => format!("server: {step}"),
            BoundBy::System => "server: kernel".to_owned(),
            other => other.name().to_owned(),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match self.by {
            BoundBy::Client => f.write_str("the client: ")?,
            BoundBy::Step(step, share) => write!(
                f,
                "the server's processor time, {} of it in {step}: ",
                percent(share)
            )?,
            BoundBy::System => write!(
                f,
                "the server's processor time, {} of it in the kernel: ",
                percent(self.kernel)
            )?,
            BoundBy::Server => write!(
                f,
                "the server's processor time, {} of it in its own code: ",
                percent(1.0 - self.kernel)
            )?,
            BoundBy::Processors => f.write_str("too few processors for server and client: ")?,
            BoundBy::Latency => f.write_str("latency, nobody is busy: ")?,
        }
        write!(
            f,
            "{} ran {} and waited for a processor {} of the time",
            self.thread,
            percent(self.run),
            percent(self.wait)
        )?;
        match self.idle {
            Some(idle) => write!(f, ", the machine was idle {}", percent(idle)),
            None => Ok(()),
        }
    }
}

/// What bounds a load, from its measurements; `None` if there are none, or the server's threads were not seen.
pub fn bound(samples: &[Sample]) -> Option<Bound> {
    let server = busiest(samples, |sample| &sample.server)?;
    let client = busiest(samples, |sample| &sample.client);
    let ready = |thread: &ThreadSpent| thread.run + thread.wait;
    let kernel = median_of(samples, |sample| sample.kernel_share);
    let client_leads = client
        .as_ref()
        .is_some_and(|client| ready(client) > ready(&server));
    let leader = match client {
        Some(client) if client_leads => client,
        _ => server,
    };
    let by = if leader.wait >= SHORT {
        BoundBy::Processors
    } else if ready(&leader) < BUSY {
        BoundBy::Latency
    } else if client_leads {
        BoundBy::Client
    } else if let Some((step, share)) = largest_step(samples) {
        BoundBy::Step(step, share)
    } else if kernel >= KERNEL {
        BoundBy::System
    } else {
        BoundBy::Server
    };
    let idles: Vec<f64> = samples.iter().filter_map(|sample| sample.idle).collect();
    Some(Bound {
        by,
        thread: leader.name,
        run: leader.run,
        wait: leader.wait,
        kernel,
        idle: (!idles.is_empty()).then(|| median(idles)),
    })
}

/// The busiest thread of a side: the medians over the rounds, under the name that it has in the last.
fn busiest(samples: &[Sample], side: impl Fn(&Sample) -> &Side) -> Option<ThreadSpent> {
    let of_rounds: Vec<&ThreadSpent> = samples
        .iter()
        .filter_map(|sample| side(sample).busiest())
        .collect();
    let last = of_rounds.last()?;
    Some(ThreadSpent {
        run: median(of_rounds.iter().map(|thread| thread.run)),
        wait: median(of_rounds.iter().map(|thread| thread.wait)),
        ..(*last).clone()
    })
}

/// The step with the greatest part of the time of all five, and that part.
fn largest_step(samples: &[Sample]) -> Option<(&'static str, f64)> {
    let mut sums = [0.0; 5];
    for steps in samples.iter().filter_map(|sample| sample.steps_us) {
        for (sum, us) in sums.iter_mut().zip(steps) {
            *sum += us;
        }
    }
    let whole: f64 = sums.iter().sum();
    let (step, us) = STEPS
        .into_iter()
        .zip(sums)
        .max_by(|left, right| left.1.total_cmp(&right.1))?;
    (whole > 0.0).then(|| (step, us / whole))
}

/// One setting of threads of one server under one load.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// What stood for `{threads}`.
    pub threads: &'a str,
    /// Its measurements.
    pub samples: &'a [Sample],
}

/// The best of several settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SweetSpot {
    /// Its place among the settings.
    pub setting: usize,
    /// The place of the one with the highest rate.
    pub fastest: usize,
    /// The rate of the former divided by that of the latter.
    pub ratio: f64,
    /// Where that ratio lies.
    pub interval: Option<Interval>,
}

/// The setting with the fewest threads whose rate reaches the highest; of those with equally many, the one with the lowest
/// p99. A setting reaches the highest rate if the 95 % interval of the ratio of the two, paired by rounds, reaches
/// [`REACHES`], and the ratio is at least [`REACHES_AT_LEAST`]. A setting that is no number counts as many threads as took part in the work.
pub fn sweet_spot(settings: &[Setting<'_>]) -> Option<SweetSpot> {
    let rate = |setting: &Setting<'_>| median_of(setting.samples, |sample| sample.rate);
    let measured = || {
        let places = settings.iter().enumerate();
        places.filter(|(_, setting)| !setting.samples.is_empty())
    };
    let (fastest, best) =
        measured().max_by(|left, right| rate(left.1).total_cmp(&rate(right.1)))?;
    let reached = |&(place, setting): &(usize, &Setting<'_>)| {
        let (ratio, interval) = compared(setting, best);
        let reaches = interval.is_none_or(|interval| interval.high >= REACHES);
        place == fastest || (reaches && ratio >= REACHES_AT_LEAST)
    };
    let p99 = |setting: &Setting<'_>| median_of(setting.samples, |sample| sample.p99_us);
    let (setting, chosen) = measured().filter(reached).min_by(|left, right| {
        let order = thread_count(left.1).cmp(&thread_count(right.1));
        order.then(p99(left.1).total_cmp(&p99(right.1)))
    })?;
    let (ratio, interval) = compared(chosen, best);
    Some(SweetSpot {
        setting,
        fastest,
        ratio,
        interval: interval.filter(|_| setting != fastest),
    })
}

/// The ratio of two settings' rates, from the rounds that both have.
fn compared(setting: &Setting<'_>, best: &Setting<'_>) -> (f64, Option<Interval>) {
    let (mut upper, mut lower) = (Vec::new(), Vec::new());
    for sample in setting.samples {
        let other = best.samples.iter().find(|it| it.round == sample.round);
        if let Some(other) = other {
            upper.push(sample.rate);
            lower.push(other.rate);
        }
    }
    let ratios = paired_ratios(&upper, &lower);
    match Interval::of_ratios(&ratios) {
        Some(interval) => (interval.mean, Some(interval)),
        None => (median(ratios), None),
    }
}

fn thread_count(setting: &Setting<'_>) -> usize {
    if let Ok(count) = setting.threads.parse() {
        return count;
    }
    let took_part = |sample: &Sample| {
        let threads = &sample.server.threads;
        let most = threads.iter().map(|thread| thread.run).fold(0.0, f64::max);
        let part = threads.iter().filter(|it| it.run >= most * TAKES_PART);
        part.count() as f64
    };
    median_of(setting.samples, took_part).round() as usize
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::sample;
    use super::*;

    /// Three rounds with one busy thread on each side.
    fn rounds(server: (f64, f64), client: (f64, f64)) -> Vec<Sample> {
        let thread = |name: &str, (run, wait)| ThreadSpent {
            name: name.to_owned(),
            run,
            wait,
            voluntary: 1,
            involuntary: 1,
        };
        let one = |round| {
            let mut sample = sample(round, 1000.0);
            sample.server.threads = vec![thread("idle", (0.1, 0.0)), thread("worker", server)];
            sample.client.threads = vec![thread("load-0", client)];
            sample
        };
        (0..3).map(one).collect()
    }

    fn by(samples: &[Sample]) -> BoundBy {
        bound(samples).unwrap().by
    }

    #[test]
    fn each_bound_has_its_numbers() {
        assert_eq!(by(&rounds((0.5, 0.1), (0.95, 0.02))), BoundBy::Client);
        assert_eq!(by(&rounds((0.4, 0.1), (0.5, 0.1))), BoundBy::Latency);
        assert_eq!(by(&rounds((0.6, 0.35), (0.5, 0.1))), BoundBy::Processors);
        assert_eq!(by(&rounds((0.25, 0.5), (0.5, 0.1))), BoundBy::Processors);
        assert_eq!(by(&rounds((0.5, 0.1), (0.6, 0.35))), BoundBy::Processors);
        let mut busy = rounds((0.95, 0.05), (0.5, 0.1));
        assert_eq!(by(&busy), BoundBy::Step("write", 3.0 / 4.875));
        busy.iter_mut().for_each(|sample| sample.steps_us = None);
        assert_eq!(by(&busy), BoundBy::System);
        busy.iter_mut().for_each(|sample| sample.kernel_share = 0.3);
        assert_eq!(by(&busy), BoundBy::Server);
        assert_eq!(bound(&[]), None);
    }

    #[test]
    fn a_bound_says_where_it_comes_from() {
        let text = |samples: &[Sample]| bound(samples).unwrap().to_string();
        let busy = rounds((0.95, 0.04), (0.5, 0.1));
        assert_eq!(
            text(&busy),
            "the server's processor time, 62 % of it in write: worker ran 95 % and waited for a processor 4 % of the time, \
             the machine was idle 25 %"
        );
        assert_eq!(
            text(&rounds((0.5, 0.1), (0.95, 0.02))),
            "the client: load-0 ran 95 % and waited for a processor 2 % of the time, the machine was idle 25 %"
        );
    }

    fn series(rates: [f64; 3], p99_us: f64) -> Vec<Sample> {
        let one = |(round, rate)| Sample {
            p99_us,
            ..sample(round, rate)
        };
        rates.into_iter().enumerate().map(one).collect()
    }

    fn spot(settings: &[(&str, &[Sample])]) -> SweetSpot {
        let settings: Vec<Setting<'_>> = settings
            .iter()
            .map(|&(threads, samples)| Setting { threads, samples })
            .collect();
        sweet_spot(&settings).unwrap()
    }

    #[test]
    fn the_fewest_threads_that_reach_the_best_win() {
        let one = series([100.0, 101.0, 99.0], 200.0);
        let two = series([198.0, 203.0, 199.0], 200.0);
        let four = series([201.0, 200.0, 204.0], 200.0);
        let chosen = spot(&[("1", &one), ("2", &two), ("4", &four)]);
        assert_eq!((chosen.setting, chosen.fastest), (1, 2));
        assert!(chosen.interval.unwrap().holds(1.0) && chosen.ratio > 0.98);
        let alone = spot(&[("1", &one), ("4", &four)]);
        assert_eq!((alone.setting, alone.fastest, alone.ratio), (1, 1, 1.0));
        assert_eq!(alone.interval, None);
    }

    #[test]
    fn what_is_uncertain_but_far_below_does_not_reach() {
        let wild = series([40.0, 210.0, 100.0], 200.0);
        let steady = series([200.0, 201.0, 199.0], 200.0);
        let chosen = spot(&[("1", &wild), ("2", &steady)]);
        assert_eq!(chosen.setting, 1);
    }

    #[test]
    fn equally_many_threads_are_told_apart_by_p99() {
        // Two threads took part in each measurement.
        let automatic = series([200.0, 201.0, 199.0], 150.0);
        let two = series([201.0, 202.0, 199.0], 200.0);
        assert_eq!(spot(&[("2", &two), ("auto", &automatic)]).setting, 1);
        let slower = series([200.0, 201.0, 199.0], 250.0);
        assert_eq!(spot(&[("2", &two), ("auto", &slower)]).setting, 0);
    }

    #[test]
    fn a_setting_without_measurements_is_not_chosen() {
        let two = series([201.0, 202.0, 199.0], 200.0);
        assert_eq!(spot(&[("1", &[]), ("2", &two)]).setting, 1);
        assert_eq!(sweet_spot(&[]), None);
    }

    #[test]
    fn one_round_compares_medians() {
        let chosen = spot(&[
            ("1", &series([95.0, 0.0, 0.0], 1.0)[..1]),
            ("2", &series([100.0, 0.0, 0.0], 1.0)[..1]),
        ]);
        assert_eq!((chosen.setting, chosen.ratio), (0, 0.95));
    }
}
