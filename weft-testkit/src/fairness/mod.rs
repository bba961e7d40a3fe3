//! What one client that never stops does to the others: the latency of probes beside it, and beside nothing.
//!
//! A round has phases of equal length, in changing order, all on one server and with the same probes:
//! *control* (nothing else), *hog* (a thread that burns as much processor time as the flooding client, without talking to
//! the server: what a busy neighbour costs on a small machine anyway), *flood* (one connection with a pipeline that is always
//! full) and *unread* (the same, replies never read). Latency counts from the moment a request was meant to be sent,
//! so that a stall counts for every request it delayed.

mod flood;
mod hog;
pub(crate) mod probe;

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::KitError;
use crate::interval::median;
use crate::server::Server;
use crate::throughput::{cpu_us, fill, resident_bytes};
use flood::{Flood, Flooded};
use probe::{Observed, Probe, Schedule};

/// Bytes of every value.
const VALUE_BYTES: usize = 128;

/// What happens besides the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    Control,
    /// Processor time is burnt.
    Hog,
    /// A full pipeline.
    Flood,
    /// A full pipeline whose replies nobody reads.
    Unread,
}

impl Phase {
    /// All of them.
    pub const ALL: [Phase; 4] = [Phase::Control, Phase::Hog, Phase::Flood, Phase::Unread];

    /// What it is called in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Control => "control",
            Phase::Hog => "hog",
            Phase::Flood => "flood",
            Phase::Unread => "unread",
        }
    }

    /// The phase of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server's program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The phases of a round.
    pub phases: Vec<Phase>,
    /// Connections whose latency is measured.
    pub probes: usize,
    /// Requests per second of each of them.
    pub rate: usize,
    /// Commands that the flooding connection has under way.
    pub depth: usize,
    /// Whether the hog burns the processor time that the server spends on the flood too.
    pub hog_for_server: bool,
    /// Keys that are there before, each with a value of 128 bytes.
    pub keys: usize,
    /// How long a phase runs before it is measured.
    pub warm_up: Duration,
    /// How long it is measured.
    pub duration: Duration,
    /// Rounds, of which the medians count.
    pub rounds: usize,
}

/// Latencies of one phase, in milliseconds, and what went on meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The round, counted from 1.
    pub round: usize,
    /// The phase.
    pub phase: Phase,
    /// Half of the requests were faster.
    pub p50_ms: f64,
    /// 99 % were faster.
    pub p99_ms: f64,
    /// 99.9 % were faster.
    pub p999_ms: f64,
    /// The slowest.
    pub max_ms: f64,
    /// 99 % were sent with less delay than this: the part of the latencies that is the probe's own.
    pub late_p99_ms: f64,
    /// 99 % were faster, counted from the moment they were really sent.
    pub sent_p99_ms: f64,
    /// Replies per second.
    pub rate: f64,
    /// The flooding client's commands per second: those answered, or those sent when it reads nothing.
    pub flood_rate: f64,
    /// How often the server closed the flooding connection.
    pub closed: u64,
    /// Cores that the flooding client, or the hog, kept busy.
    pub burnt_cores: f64,
    /// Cores that the server kept busy.
    pub server_cores: f64,
    /// Resident MiB of the server when the phase ended.
    pub resident_mib: f64,
}

impl Sample {
    /// The head of [`csv`](Self::csv).
    pub const CSV_HEAD: &'static str = "round,phase,p50_ms,p99_ms,p999_ms,max_ms,late_p99_ms,sent_p99_ms,rate,flood_rate,closed,burnt_cores,server_cores,resident_mib";

    /// As a line of comma-separated values.
    pub fn csv(&self) -> String {
        format!(
            "{},{},{:.4},{:.4},{:.4},{:.4},{:.4},{:.4},{:.0},{:.0},{},{:.3},{:.3},{:.1}",
            self.round,
            self.phase.name(),
            self.p50_ms,
            self.p99_ms,
            self.p999_ms,
            self.max_ms,
            self.late_p99_ms,
            self.sent_p99_ms,
            self.rate,
            self.flood_rate,
            self.closed,
            self.burnt_cores,
            self.server_cores,
            self.resident_mib
        )
    }
}

/// All samples, in the order they were taken.
#[derive(Clone, Debug)]
pub struct Report {
    /// One per phase and round.
    pub samples: Vec<Sample>,
    /// Requests per second that were asked of the probes together.
    pub asked: f64,
}

/// By how much a phase's p99 exceeds another's: the median of the rounds, the smallest and the greatest, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rise {
    /// The median.
    pub median_ms: f64,
    /// The smallest.
    pub low_ms: f64,
    /// The greatest.
    pub high_ms: f64,
}

impl Report {
    fn of(&self, phase: Phase) -> impl Iterator<Item = &Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.phase == phase)
    }

    /// By how much the p99 of `phase` exceeds that of `base` in the same round; `None` if they never stood together.
    pub fn rise(&self, phase: Phase, base: Phase) -> Option<Rise> {
        let rises: Vec<f64> = self
            .of(phase)
            .filter_map(|sample| {
                let base = self.of(base).find(|other| other.round == sample.round)?;
                Some(sample.p99_ms - base.p99_ms)
            })
            .collect();
        (!rises.is_empty()).then(|| Rise {
            median_ms: median(rises.iter().copied()),
            low_ms: rises.iter().copied().fold(f64::INFINITY, f64::min),
            high_ms: rises.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// Whether each kind of flood raises the p99 by no more than `bound_ms` above what is there without it: above the
    /// hog's, or the control's where no hog was measured. Kinds that were not measured are not among them.
    pub fn verdicts(&self, bound_ms: f64) -> Vec<(Phase, bool)> {
        let verdict = |phase| {
            let rise = self
                .rise(phase, Phase::Hog)
                .or_else(|| self.rise(phase, Phase::Control))?;
            Some((phase, rise.median_ms <= bound_ms))
        };
        [Phase::Flood, Phase::Unread]
            .into_iter()
            .filter_map(verdict)
            .collect()
    }

    /// Writes all samples as comma-separated values.
    pub fn write_csv(&self, csv: &mut dyn Write) -> Result<(), KitError> {
        let lines: Vec<String> = self.samples.iter().map(Sample::csv).collect();
        writeln!(csv, "{}\n{}", Sample::CSV_HEAD, lines.join("\n"))
            .map_err(KitError::io("write the comma-separated values"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<9}{:>9}{:>9}{:>9}{:>9}{:>10}{:>10}{:>8}{:>12}{:>8}{:>8}{:>8}{:>9}",
            "ms",
            "p50",
            "p99",
            "p99.9",
            "max",
            "late p99",
            "sent p99",
            "rate",
            "flood k/s",
            "closed",
            "client",
            "server",
            "RSS MiB"
        )?;
        for phase in Phase::ALL {
            if self.of(phase).next().is_none() {
                continue;
            }
            let middle = |field: fn(&Sample) -> f64| median(self.of(phase).map(field));
            writeln!(
                f,
                "{:<9}{:>9.3}{:>9.3}{:>9.3}{:>9.3}{:>10.3}{:>10.3}{:>7.0}%{:>12.1}{:>8.0}{:>8.2}{:>8.2}{:>9.1}",
                phase.name(),
                middle(|sample| sample.p50_ms),
                middle(|sample| sample.p99_ms),
                middle(|sample| sample.p999_ms),
                middle(|sample| sample.max_ms),
                middle(|sample| sample.late_p99_ms),
                middle(|sample| sample.sent_p99_ms),
                100.0 * middle(|sample| sample.rate) / self.asked,
                middle(|sample| sample.flood_rate) / 1000.0,
                middle(|sample| sample.closed as f64),
                middle(|sample| sample.burnt_cores),
                middle(|sample| sample.server_cores),
                middle(|sample| sample.resident_mib),
            )?;
        }
        for phase in [Phase::Flood, Phase::Unread] {
            for base in [Phase::Control, Phase::Hog] {
                if let Some(rise) = self.rise(phase, base) {
                    writeln!(
                        f,
                        "p99 of {} above {}: {:+.3} ms ({:+.3} to {:+.3})",
                        phase.name(),
                        base.name(),
                        rise.median_ms,
                        rise.low_ms,
                        rise.high_ms
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Starts the server and runs all rounds; `progress` hears of every sample.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(&Sample)) -> Result<Report, KitError> {
    let server = Server::start(&plan.program, &plan.arguments)?;
    let value = vec![b'x'; VALUE_BYTES];
    fill(&mut server.connect()?, plan.keys, |number| {
        [format!("key:{number:012}").into_bytes(), value.clone()]
    })?;
    let mut stage = Stage {
        plan,
        probe: Probe::connect(server.port(), plan.probes, plan.keys, VALUE_BYTES)?,
        server,
        flood: Burn::default(),
        quiet_server_cores: 0.0,
    };
    // How much a flood burns has to be known before the first hog; this also warms everything up.
    stage.play(0, Phase::Control)?;
    stage.play(0, Phase::Flood)?;
    let mut report = Report {
        samples: Vec::new(),
        asked: (plan.probes * plan.rate) as f64,
    };
    for round in 0..plan.rounds {
        for phase in order(&plan.phases, round) {
            let sample = stage.play(round + 1, phase)?;
            progress(&sample);
            report.samples.push(sample);
        }
    }
    Ok(report)
}

/// The phases of a round: another one first every round, the other way about every second round.
fn order(phases: &[Phase], round: usize) -> Vec<Phase> {
    let mut order = phases.to_vec();
    if !order.is_empty() {
        let turn = round / 2 % order.len();
        order.rotate_left(turn);
    }
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Cores that a flood keeps busy.
#[derive(Clone, Copy, Debug, Default)]
struct Burn {
    client: f64,
    server: f64,
}

struct Stage<'a> {
    plan: &'a Plan,
    server: Server,
    probe: Probe,
    /// As the last flood was.
    flood: Burn,
    /// What the probes alone cost the server, as the last control was.
    quiet_server_cores: f64,
}

/// What ran beside the probes.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    flooded: Flooded,
    burnt: Duration,
}

/// What the server used while the probes ran.
struct Usage {
    cores: f64,
    resident_mib: f64,
}

impl Stage<'_> {
    fn play(&mut self, round: usize, phase: Phase) -> Result<Sample, KitError> {
        let schedule = Schedule {
            rate: self.plan.rate,
            warm_up: self.plan.warm_up,
            duration: self.plan.duration,
        };
        let stop = AtomicBool::new(false);
        let hogs = match (phase, self.plan.hog_for_server) {
            (Phase::Hog, true) => vec![
                self.flood.client,
                (self.flood.server - self.quiet_server_cores).max(0.0),
            ],
            (Phase::Hog, false) => vec![self.flood.client],
            _ => Vec::new(),
        };
        let flood = match phase {
            Phase::Flood | Phase::Unread => Some(Flood {
                port: self.server.port(),
                depth: self.plan.depth,
                keys: self.plan.keys,
                value_bytes: VALUE_BYTES,
                reads: phase == Phase::Flood,
            }),
            _ => None,
        };
        let start = Instant::now();
        let (observed, usage, beside) = std::thread::scope(|scope| {
            let stopping = Stopping(&stop);
            let flooding = flood.map(|flood| {
                let stop = &stop;
                scope.spawn(move || flood.run(stop))
            });
            let hogs: Vec<_> = hogs
                .iter()
                .map(|share| scope.spawn(|| hog::burn(*share, &stop)))
                .collect();
            let outcome = self.observe(&schedule);
            drop(stopping);
            let mut beside = Beside::default();
            if let Some(flooding) = flooding {
                beside.flooded = flooding.join().map_err(panicked)??;
                beside.burnt = beside.flooded.cpu;
            }
            for hog in hogs {
                beside.burnt += hog.join().map_err(panicked)?;
            }
            outcome.map(|(observed, usage)| (observed, usage, beside))
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let burnt_cores = beside.burnt.as_secs_f64() / seconds;
        match phase {
            Phase::Control => self.quiet_server_cores = usage.cores,
            Phase::Flood => {
                self.flood = Burn {
                    client: burnt_cores,
                    server: usage.cores,
                }
            }
            _ => {}
        }
        let ms = |quantile: f64| observed.latency.value_at_quantile(quantile) as f64 / 1e6;
        Ok(Sample {
            round,
            phase,
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            max_ms: observed.latency.max() as f64 / 1e6,
            late_p99_ms: observed.lateness.value_at_quantile(0.99) as f64 / 1e6,
            sent_p99_ms: observed.service.value_at_quantile(0.99) as f64 / 1e6,
            rate: observed.latency.len() as f64 / self.plan.duration.as_secs_f64(),
            flood_rate: beside.flooded.commands as f64 / seconds,
            closed: beside.flooded.closed,
            burnt_cores,
            server_cores: usage.cores,
            resident_mib: usage.resident_mib,
        })
    }

    /// The probes' latencies, and the server's use of the machine meanwhile.
    fn observe(&mut self, schedule: &Schedule) -> Result<(Observed, Usage), KitError> {
        let process = self.server.process();
        let before = cpu_us(process)?;
        let start = Instant::now();
        let observed = self
            .probe
            .run(schedule)
            .map_err(|error| self.server.failure(&format!("was probed: {error}")))?;
        let spent = cpu_us(process)?.saturating_sub(before);
        let usage = Usage {
            cores: spent as f64 / start.elapsed().as_micros() as f64,
            resident_mib: resident_bytes(process)? as f64 / f64::from(1 << 20),
        };
        Ok((observed, usage))
    }
}

/// Tells the other threads to stop when dropped, even by a panic: the scope would wait for them for ever.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> KitError {
    KitError::Unexpected("a thread of the load ended by a panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(round: usize, phase: Phase, p99_ms: f64) -> Sample {
        Sample {
            round,
            phase,
            p50_ms: 0.1,
            p99_ms,
            p999_ms: 3.0,
            max_ms: 4.0,
            late_p99_ms: 0.05,
            sent_p99_ms: 1.0,
            rate: 4000.0,
            flood_rate: 0.0,
            closed: 0,
            burnt_cores: 0.0,
            server_cores: 0.5,
            resident_mib: 10.0,
        }
    }

    #[test]
    fn a_rise_is_that_of_the_same_round() {
        let mut samples = Vec::new();
        for (round, control, hog, flood) in
            [(1, 0.1, 0.5, 1.0), (2, 0.2, 3.0, 3.4), (3, 0.1, 0.5, 2.5)]
        {
            samples.push(sample(round, Phase::Flood, flood));
            samples.push(sample(round, Phase::Control, control));
            samples.push(sample(round, Phase::Hog, hog));
        }
        let report = Report {
            samples,
            asked: 4000.0,
        };
        let rise = report.rise(Phase::Flood, Phase::Hog).expect("three rounds");
        assert!((rise.median_ms - 0.5).abs() < 1e-9);
        assert!((rise.low_ms - 0.4).abs() < 1e-9);
        assert!((rise.high_ms - 2.0).abs() < 1e-9);
        assert_eq!(report.verdicts(1.0), [(Phase::Flood, true)]);
        assert_eq!(report.verdicts(0.4), [(Phase::Flood, false)]);
        assert_eq!(report.rise(Phase::Unread, Phase::Hog), None);
        assert!(
            report
                .to_string()
                .contains("p99 of flood above hog: +0.500 ms (+0.400 to +2.000)")
        );
        assert_eq!(
            Sample::CSV_HEAD.split(',').count(),
            report.samples[0].csv().split(',').count()
        );
    }

    #[test]
    fn without_a_hog_the_control_counts() {
        let report = Report {
            samples: vec![
                sample(1, Phase::Control, 0.1),
                sample(1, Phase::Unread, 1.3),
            ],
            asked: 4000.0,
        };
        assert_eq!(report.verdicts(1.3), [(Phase::Unread, true)]);
        assert_eq!(report.verdicts(1.0), [(Phase::Unread, false)]);
    }

    #[test]
    fn phases_change_places() {
        let phases = [Phase::Control, Phase::Hog, Phase::Flood];
        assert_eq!(order(&phases, 0), phases);
        assert_eq!(
            order(&phases, 1),
            [Phase::Flood, Phase::Hog, Phase::Control]
        );
        assert_eq!(
            order(&phases, 2),
            [Phase::Hog, Phase::Flood, Phase::Control]
        );
    }
}
