//! What a run came to: the figures of every output.
//!
//! Owns the report, of which the JSON output is the exact image: fields keep their names and meaning while [`VERSION`] stays
//! the same, and readers ignore what they do not know. Times are in microseconds (`_us`) or seconds (`_s`); shares are from 0
//! to 1. Does not print.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::cpu::ThreadCpu;
use crate::load::{Class, Outcome, Scale};

/// The version of the report's form.
pub const VERSION: u32 = 1;

/// Latencies are told apart to three digits, from this many nanoseconds on.
pub const SCALE: Scale = Scale {
    unit_ns: 1,
    lowest: 100,
    digits: 3,
};

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// The program and its version.
    pub program: String,
    /// What the user calls the run; may be empty.
    pub name: String,
    /// When the measurement began, in seconds since 1970.
    pub started_unix_s: f64,
    /// What was asked for.
    pub workload: Workload,
    /// From the beginning of the measurement until the last answer, or until its time was over if that was later.
    pub elapsed_s: f64,
    /// Requests answered, whatever the answer.
    pub operations: u64,
    /// Requests (with scripted units: units) per second.
    pub rate: Rate,
    /// Everything that went wrong.
    pub failures: Failures,
    /// Of all requests. With an open loop from the time they were due.
    pub latency: Latency,
    /// What each command came to.
    pub commands: Vec<Part>,
    /// What each unit came to, if units consist of several commands.
    pub units: Vec<Part>,
    /// Bytes of requests.
    pub bytes_sent: u64,
    /// Bytes of answers.
    pub bytes_received: u64,
    /// How an open loop kept its schedule.
    pub schedule: Option<Schedule>,
    /// What this program used.
    pub client: Client,
    /// What the server's process used, if it was named.
    pub server: Option<Server>,
    /// What makes the figures mean less than they seem to.
    pub warnings: Vec<String>,
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Where it went.
    pub targets: Vec<String>,
    /// `closed`, `open constant`, `open poisson`, `storm constant`, `storm poisson`, `replay`.
    pub pace: String,
    /// Connections, of all threads together.
    pub connections: usize,
    /// Requests of a connection that may be under way.
    pub pipeline: u32,
    /// Threads that drive the connections.
    pub threads: usize,
    /// What is sent.
    pub commands: Vec<String>,
    /// The keys, as the option spells them: number and distribution.
    pub keys: String,
    /// The sizes of the values, as the option spells them.
    pub value_size: String,
    /// Whether values carry a checksum that is looked at.
    pub verify: bool,
    /// What random numbers started from.
    pub seed: u64,
}

/// Requests (with scripted units: units) per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// `requests` or `units`.
    pub of: String,
    /// What was asked for; `None` in a closed loop.
    pub asked: Option<f64>,
    /// What came of it.
    pub achieved: f64,
    /// Requests per second, whatever the others are.
    pub requests: f64,
}

/// Everything that went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// Answers that were errors.
    pub errors: u64,
    /// Answers that were not what they should be.
    pub wrong: u64,
    /// Requests whose connection broke before the answer.
    pub lost: u64,
    /// Requests without an answer when the run ended.
    pub unanswered: u64,
    /// Requests that were due and could not be sent before the run ended.
    pub unsent: u64,
    /// The sum, as a share of all requests.
    pub share: f64,
    /// Connections that broke or did not come about.
    pub connections: u64,
    /// The first few of each kind.
    pub first: Vec<String>,
}

/// Latencies, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// The least; 0 if there are none, like all the others.
    pub min_us: f64,
    /// Their mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// 90 % are not above it.
    pub p90_us: f64,
    /// 95 % are not above it.
    pub p95_us: f64,
    /// 99 % are not above it.
    pub p99_us: f64,
    /// 99.9 % are not above it.
    pub p99_9_us: f64,
    /// 99.99 % are not above it.
    pub p99_99_us: f64,
    /// The greatest.
    pub max_us: f64,
}

/// What a command or a unit came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// As it was written.
    pub text: String,
    /// How many were answered (units: to the end).
    pub operations: u64,
    /// The same per second.
    pub rate: f64,
    /// Answers that were errors.
    pub errors: u64,
    /// Answers that were not what they should be.
    pub wrong: u64,
    /// Requests whose connection broke before the answer.
    pub lost: u64,
    /// Requests without an answer when the run ended.
    pub unanswered: u64,
    /// Answers that were absent values.
    pub nulls: u64,
    /// Bytes of requests.
    pub bytes_sent: u64,
    /// Bytes of answers.
    pub bytes_received: u64,
    /// How long they took.
    pub latency: Latency,
}

/// How an open loop kept its schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// How late this program was with requests that nothing else held up.
    pub late: Latency,
    /// How long requests waited for room on their connection, because answers were missing. It is part of their latency.
    pub held: Latency,
}

/// What this program used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// Processor time of the threads that drive connections.
    pub cpu_s: f64,
    /// The same per request, in microseconds.
    pub cpu_us_per_request: f64,
    /// The busiest thread's share of its time on a processor.
    pub busiest_share: f64,
    /// Each thread.
    pub threads: Vec<ClientThread>,
}

/// A thread that drives connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientThread {
    /// Seconds on a processor.
    pub cpu_s: f64,
    /// The share of its time on a processor.
    pub share: f64,
    /// The share of its time in which it had to wait for one.
    pub waiting_share: f64,
}

/// What the server's process used while the run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The process.
    pub pid: u32,
    /// Processor time.
    pub cpu_s: f64,
    /// Processors it kept busy, on average.
    pub processors: f64,
    /// Processor time per request, in microseconds.
    pub cpu_us_per_request: f64,
    /// Processor time per unit, in microseconds, if units consist of several commands.
    pub cpu_us_per_unit: Option<f64>,
    /// Its threads that used any.
    pub threads: Vec<ThreadCpu>,
}

/// What is reported about a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassName {
    /// The command's or the unit's name.
    pub name: String,
    /// The command as it was written; the commands of a unit.
    pub text: String,
}

/// What the connections know of how well the schedule was kept.
#[derive(Clone, Debug)]
pub struct Tally {
    /// How late requests left that nothing held up but this program, in units of [`SCALE`].
    pub late: Histogram<u64>,
    /// How long requests waited until there was room on their connection, in units of [`SCALE`].
    pub held: Histogram<u64>,
    /// Arrivals that were never sent.
    pub unsent: u64,
    /// Commands of units that were left out because a field was missing.
    pub skipped: u64,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Tally {
        Tally {
            late: SCALE.histogram(),
            held: SCALE.histogram(),
            unsent: 0,
            skipped: 0,
        }
    }

    /// Adds what another thread has counted.
    pub fn add(&mut self, other: &Tally) {
        for (sum, other) in [(&mut self.late, &other.late), (&mut self.held, &other.held)] {
            sum.add(other)
                .expect("histograms of one scale have the same bounds");
        }
        self.unsent += other.unsent;
        self.skipped += other.skipped;
    }
}

/// What a report is made of.
pub struct Material<'a> {
    /// What the user calls the run.
    pub name: &'a str,
    /// What was asked for.
    pub workload: Workload,
    /// Requests or units per second, if the clock sets the pace.
    pub asked: Option<f64>,
    /// When the measurement began.
    pub started_unix_s: f64,
    /// How long it was to be, if it went on for so long.
    pub time: Option<Duration>,
    /// What was measured.
    pub outcome: &'a Outcome,
    /// What the classes of the outcome are.
    pub classes: &'a [ClassName],
    /// How many of them are commands; the others are units.
    pub commands: usize,
    /// What the connections know.
    pub tally: &'a Tally,
    /// The server's process and what its threads used.
    pub server: Option<(u32, Vec<ThreadCpu>)>,
}

impl Latency {
    /// Of a histogram on [`SCALE`].
    pub fn of(histogram: &Histogram<u64>) -> Latency {
        if histogram.is_empty() {
            return Latency::default();
        }
        let us = |units: u64| microseconds(units as f64);
        let at = |quantile: f64| us(histogram.value_at_quantile(quantile));
        Latency {
            count: histogram.len(),
            min_us: us(histogram.min()),
            mean_us: microseconds(histogram.mean()),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            p99_99_us: at(0.9999),
            max_us: us(histogram.max()),
        }
    }
}

/// From units of [`SCALE`], to three decimals.
fn microseconds(units: f64) -> f64 {
    (units * SCALE.unit_ns as f64).round() / 1000.0
}

fn per(amount: f64, count: f64) -> f64 {
    let each = amount / count;
    if each.is_finite() { each } else { 0.0 }
}

impl Report {
    /// Puts a report together.
    pub fn new(material: Material<'_>) -> Report {
        let outcome = material.outcome;
        let elapsed_s = outcome
            .elapsed
            .max(material.time.unwrap_or_default())
            .as_secs_f64();
        let parts: Vec<Part> = material
            .classes
            .iter()
            .zip(outcome.record.classes())
            .map(|(name, class)| Part::new(name, class, elapsed_s))
            .collect();
        let (commands, units) = parts.split_at(material.commands.min(parts.len()));
        let mut all = SCALE.histogram();
        for class in outcome.record.classes().iter().take(material.commands) {
            all.add(&class.latencies)
                .expect("histograms of one scale have the same bounds");
        }
        let operations = outcome.answered;
        let finished: u64 = units.iter().map(|unit| unit.operations).sum();
        let requests = per(operations as f64, elapsed_s);
        let rate = match units {
            [] => Rate {
                of: "requests".to_owned(),
                asked: material.asked,
                achieved: requests,
                requests,
            },
            _ => Rate {
                of: "units".to_owned(),
                asked: material.asked,
                achieved: per(finished as f64, elapsed_s),
                requests,
            },
        };
        let schedule = material.asked.map(|_| Schedule {
            late: Latency::of(&material.tally.late),
            held: Latency::of(&material.tally.held),
        });
        let server = material.server.map(|(pid, threads)| {
            let cpu_s: f64 = threads.iter().map(|thread| thread.cpu_s).sum();
            Server {
                pid,
                cpu_s,
                processors: per(cpu_s, elapsed_s),
                cpu_us_per_request: per(cpu_s * 1e6, operations as f64),
                cpu_us_per_unit: (!units.is_empty()).then(|| per(cpu_s * 1e6, finished as f64)),
                threads,
            }
        });
        let mut report = Report {
            version: VERSION,
            program: concat!("weft-bench ", env!("CARGO_PKG_VERSION")).to_owned(),
            name: material.name.to_owned(),
            started_unix_s: material.started_unix_s,
            workload: material.workload,
            elapsed_s,
            operations,
            rate,
            failures: failures(commands, outcome, material.tally),
            latency: Latency::of(&all),
            commands: commands.to_vec(),
            units: units.to_vec(),
            bytes_sent: commands.iter().map(|part| part.bytes_sent).sum(),
            bytes_received: commands.iter().map(|part| part.bytes_received).sum(),
            schedule,
            client: client(outcome),
            server,
            warnings: Vec::new(),
        };
        report.warnings = warnings(&report, outcome, material.tally);
        report
    }
}

impl Part {
    fn new(name: &ClassName, class: &Class, elapsed_s: f64) -> Part {
        let operations = class.latencies.len();
        Part {
            name: name.name.clone(),
            text: name.text.clone(),
            operations,
            rate: per(operations as f64, elapsed_s),
            errors: class.errors,
            wrong: class.wrong,
            lost: class.lost,
            unanswered: class.unanswered,
            nulls: class.nulls,
            bytes_sent: class.bytes_sent,
            bytes_received: class.bytes_received,
            latency: Latency::of(&class.latencies),
        }
    }
}

fn failures(commands: &[Part], outcome: &Outcome, tally: &Tally) -> Failures {
    let sum = |field: fn(&Part) -> u64| commands.iter().map(field).sum::<u64>();
    let mut failures = Failures {
        errors: sum(|part| part.errors),
        wrong: sum(|part| part.wrong),
        lost: sum(|part| part.lost),
        unanswered: sum(|part| part.unanswered),
        unsent: tally.unsent,
        share: 0.0,
        connections: outcome.record.lost_connections,
        first: Vec::new(),
    };
    let silent = failures.lost + failures.unanswered + failures.unsent;
    let failed = failures.errors + failures.wrong + silent;
    failures.share = per(failed as f64, (outcome.answered + silent) as f64);
    for (part, class) in commands.iter().zip(outcome.record.classes()) {
        let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        if let Some(error) = &class.first_error {
            let error = text(error);
            failures.first.push(format!("{}: {error}", part.name));
        }
        let wrong = class.wrong_texts.iter().map(|wrong| text(wrong));
        failures.first.extend(wrong);
    }
    if let Some(loss) = &outcome.record.first_loss {
        failures.first.push(format!("connection: {loss}"));
    }
    failures
}

fn client(outcome: &Outcome) -> Client {
    let share = |part: Duration, of: Duration| per(part.as_secs_f64(), of.as_secs_f64());
    let threads: Vec<ClientThread> = outcome
        .threads
        .iter()
        .map(|thread| ClientThread {
            cpu_s: thread.cpu.as_secs_f64(),
            share: share(thread.cpu, thread.elapsed),
            waiting_share: share(thread.waiting, thread.elapsed),
        })
        .collect();
    let cpu_s: f64 = threads.iter().map(|thread| thread.cpu_s).sum();
    Client {
        cpu_s,
        cpu_us_per_request: per(cpu_s * 1e6, outcome.answered as f64),
        busiest_share: threads
            .iter()
            .map(|thread| thread.share)
            .fold(0.0, f64::max),
        threads,
    }
}

/// A thread is the bottleneck from this share of its time on a processor on.
const BUSY_SHARE: f64 = 0.9;
/// So much of its time a thread may wait for a processor.
const WAITING_SHARE: f64 = 0.05;
/// A schedule is kept if requests leave this much after their time at most, or ...
const LATE_US: f64 = 1000.0;
/// ... if the delay is at most this share of the latencies.
const LATE_SHARE: f64 = 0.2;
/// Less than this share of the rate that was asked for is worth a warning.
const ACHIEVED_SHARE: f64 = 0.99;

fn warnings(report: &Report, outcome: &Outcome, tally: &Tally) -> Vec<String> {
    let mut warnings = Vec::new();
    let busiest = report.client.busiest_share;
    if busiest >= BUSY_SHARE {
        warnings.push(format!(
            "a client thread was busy {:.0} % of the time: the client was the bottleneck, and this is no figure of the \
             server's; use more --threads, or a machine of its own",
            busiest * 100.0
        ));
    }
    let waiting = report.client.threads.iter();
    let waiting = waiting.map(|it| it.waiting_share).fold(0.0, f64::max);
    if waiting >= WAITING_SHARE {
        warnings.push(format!(
            "a client thread waited {:.0} % of the time for a processor: something else runs on them, and latencies contain \
             that wait",
            waiting * 100.0
        ));
    }
    if let Some(schedule) = &report.schedule {
        let late = schedule.late.p99_us;
        if late > LATE_US && late > LATE_SHARE * report.latency.p99_us {
            warnings.push(format!(
                "the client sent late: 1 % of its requests left {:.1} ms after their time or later without being held up by \
                 the server, and latencies contain that delay",
                late / 1000.0
            ));
        }
        if schedule.held.count > 0 {
            warnings.push(format!(
                "{} requests waited for room on their connection, up to {:.1} ms; the wait is part of their latency (more \
                 --connections or --pipeline make room)",
                schedule.held.count,
                schedule.held.max_us / 1000.0
            ));
        }
    }
    if let Some(asked) = report.rate.asked
        && report.rate.achieved < ACHIEVED_SHARE * asked
        // Arrivals that are drawn are a few more or less by themselves.
        && (asked - report.rate.achieved) * report.elapsed_s > 4.0 * (asked * report.elapsed_s).sqrt()
    {
        warnings.push(format!(
            "{:.0} {} per second were asked for and {:.0} achieved",
            asked, report.rate.of, report.rate.achieved
        ));
    }
    let failures = &report.failures;
    if failures.unanswered > 0 {
        warnings.push(format!(
            "{} requests had no answer when the run ended, the oldest after {:.1} ms; they are in no percentile",
            failures.unanswered,
            microseconds(outcome.record.oldest_unanswered as f64) / 1000.0
        ));
    }
    if failures.unsent > 0 {
        warnings.push(format!(
            "{} requests that were due could not be sent before the run ended; they are in no percentile",
            failures.unsent
        ));
    }
    if failures.connections > 0 {
        warnings.push(format!(
            "{} connections broke or did not come about",
            failures.connections
        ));
    }
    if tally.skipped > 0 {
        warnings.push(format!(
            "{} commands of units were left out because the field they need was missing",
            tally.skipped
        ));
    }
    if report.operations == 0 {
        warnings.push("nothing was measured".to_owned());
    }
    warnings
}
