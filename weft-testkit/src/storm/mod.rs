//! Storms of connections, and whether anything is left of them: counters, descriptors, memory.
//!
//! A server is started, warmed by one storm and measured after a second one, whose remains have no excuse. Meanwhile
//! connections that stay open work at a steady rate, beside the storm and before it. Connections that the kernel loses
//! because its queue was full (it counts them) are the only ones that may be missing from the server's count.

mod blow;
mod limit;
mod manner;
mod state;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hdrhistogram::Histogram;
use weft_client::{Connection, Reply};

use crate::error::KitError;
use crate::fairness::probe::{Probe, Schedule};
use crate::server::Server;
use crate::throughput::fill;
use blow::{Blown, Weather, blow};
use manner::{HALF_KEY, LARGE_BYTES, LARGE_KEY};
use state::{Rest, State, expect, listen_overflows};

pub use limit::run as run_limit;
pub use manner::Manner;

/// Storms per server.
const STORMS: usize = 2;
/// Keys that the working connections read, and bytes of their values.
const KEYS: usize = 1000;
const VALUE_BYTES: usize = 128;
/// How long the working connections work before they count.
const WARM_UP: Duration = Duration::from_millis(100);
/// What `used_memory` may gain from one storm to the next, in bytes. Lists of free things find their size late.
const USED_GROWTH_MAX: i64 = 256 * 1024;
/// What resident memory may gain, in bytes: an allocator's pages do not come and go one by one.
const RESIDENT_GROWTH_MAX: i64 = 4 * 1024 * 1024;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Workers made active by DEBUG WORKERS; 0 leaves it to the server. Each has a server of its own.
    pub workers: Vec<usize>,
    /// Connections per second; 0: as many as can be had.
    pub rate: f64,
    /// What connections do, in turn.
    pub manners: Vec<Manner>,
    /// How long each storm lasts.
    pub duration: Duration,
    /// Threads that connect, at most 200.
    pub threads: usize,
    /// Connections that stay open and work.
    pub working: usize,
    /// Requests per second of each.
    pub working_rate: usize,
}

/// One storm and what it left.
#[derive(Clone, Debug)]
pub struct Storm {
    workers: usize,
    number: usize,
    blown: Blown,
    /// Latency of the working connections meanwhile, and before the first storm.
    working_ns: [Histogram<u64>; 2],
    before: State,
    after: State,
    overflows: u64,
    /// What is not as it has to be.
    pub complaints: Vec<String>,
}

/// Runs all storms; `progress` hears of each.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(&Storm)) -> Result<Vec<Storm>, KitError> {
    let mut storms = Vec::new();
    for workers in &plan.workers {
        let mut field = Field::prepare(plan, *workers)?;
        for number in 1..=STORMS {
            let storm = field
                .storm(number)
                .map_err(|error| field.server.failure(&format!("was stormed: {error}")))?;
            progress(&storm);
            storms.push(storm);
        }
    }
    Ok(storms)
}

/// A server and its lasting connections.
struct Field<'a> {
    plan: &'a Plan,
    workers: usize,
    server: Server,
    control: Connection,
    probe: Probe,
    calm_ns: Histogram<u64>,
    /// Before the first storm.
    first: State,
    last: State,
}

impl<'a> Field<'a> {
    fn prepare(plan: &'a Plan, workers: usize) -> Result<Self, KitError> {
        let mut arguments = plan.arguments.clone();
        if workers > 0 {
            let threads = workers.to_string();
            let more = ["--io-threads", &threads, "--enable-debug-command", "yes"];
            arguments.extend(more.map(str::to_owned));
        }
        let server = Server::start(&plan.program, &arguments)?;
        let mut control = server.connect()?;
        let ok = Reply::Simple(b"OK".to_vec());
        if workers > 0 {
            expect(
                &mut control,
                &["DEBUG", "WORKERS", &workers.to_string()],
                &ok,
            )?;
        }
        let value = vec![b'x'; VALUE_BYTES];
        fill(&mut control, KEYS, |number| {
            [format!("key:{number:012}").into_bytes(), value.clone()]
        })?;
        let large = "x".repeat(LARGE_BYTES);
        expect(&mut control, &["SET", LARGE_KEY, &large], &ok)?;
        let mut probe = Probe::connect(server.port(), plan.working, KEYS, VALUE_BYTES)?;
        let calm_ns = probe.run(&schedule(plan))?.latency;
        let rest = Rest {
            clients: plan.working as u64 + 1,
            received: 0,
            descriptors: usize::MAX,
        };
        let first = State::settled(&server, &mut control, rest)?;
        Ok(Field {
            plan,
            workers,
            server,
            control,
            probe,
            calm_ns,
            last: first.clone(),
            first,
        })
    }

    fn storm(&mut self, number: usize) -> Result<Storm, KitError> {
        let plan = self.plan;
        let weather = Weather {
            port: self.server.port(),
            manners: &plan.manners,
            rate: plan.rate,
            duration: WARM_UP + plan.duration,
            threads: plan.threads,
        };
        let lost_before = listen_overflows();
        let (blown, observed) = std::thread::scope(|scope| {
            let blowing = scope.spawn(|| blow(&weather));
            let observed = self.probe.run(&schedule(plan));
            let blown = blowing.join().unwrap_or_else(|_| {
                Err(KitError::Unexpected(
                    "the storm ended by a panic".to_owned(),
                ))
            });
            (blown, observed)
        });
        let (blown, observed) = (blown?, observed?);
        let overflows = listen_overflows() - lost_before;
        let rest = Rest {
            clients: plan.working as u64 + 1,
            received: (self.last.received + blown.opened).saturating_sub(overflows),
            descriptors: self.first.descriptors,
        };
        let after = State::settled(&self.server, &mut self.control, rest)?;
        let before = std::mem::replace(&mut self.last, after.clone());
        let mut storm = Storm {
            workers: self.workers,
            number,
            blown,
            working_ns: [observed.latency, self.calm_ns.clone()],
            before,
            after,
            overflows,
            complaints: Vec::new(),
        };
        storm.judge(&self.first, number == STORMS);
        storm.look_at_data(&mut self.control)?;
        Ok(storm)
    }
}

fn schedule(plan: &Plan) -> Schedule {
    Schedule {
        rate: plan.working_rate,
        warm_up: WARM_UP,
        duration: plan.duration,
    }
}

impl Storm {
    /// What has to be back where it was before the first storm; `last`: memory too has to be where the storm before left it.
    fn judge(&mut self, first: &State, last: bool) {
        let (before, after) = (&self.before, &self.after);
        let mut complaints = Vec::new();
        let mut unless = |holds: bool, what: String| {
            if !holds {
                complaints.push(what);
            }
        };
        let blown = &self.blown;
        unless(
            blown.failed == 0,
            format!(
                "{} connections failed: {}",
                blown.failed,
                blown.failures.join("; ")
            ),
        );
        unless(
            after.clients == first.clients,
            format!(
                "connected_clients is {}, was {}",
                after.clients, first.clients
            ),
        );
        let of_workers: u64 = after.worker_clients.iter().sum();
        unless(
            after.worker_clients.is_empty() || of_workers == first.clients,
            format!(
                "the workers' clients are {:?}, were {}",
                after.worker_clients, first.clients
            ),
        );
        let received = after.received - before.received;
        let missing = blown.opened.checked_sub(received);
        unless(
            missing.is_some_and(|missing| missing <= self.overflows),
            format!(
                "total_connections_received rose by {received} with {} connections, of which the kernel lost {} at most",
                blown.opened, self.overflows
            ),
        );
        unless(
            after.rejected == first.rejected,
            format!(
                "rejected_connections is {}, was {}",
                after.rejected, first.rejected
            ),
        );
        unless(
            after.descriptors == first.descriptors,
            format!(
                "{} descriptors are open, were {}",
                after.descriptors, first.descriptors
            ),
        );
        if last {
            let (used, resident) = self.growth();
            unless(
                used <= USED_GROWTH_MAX,
                format!("used_memory grew by {used} bytes, more than {USED_GROWTH_MAX}"),
            );
            unless(
                resident <= RESIDENT_GROWTH_MAX,
                format!(
                    "resident memory grew by {resident} bytes, more than {RESIDENT_GROWTH_MAX}"
                ),
            );
        }
        self.complaints.extend(complaints);
    }

    /// Half a request has set nothing.
    fn look_at_data(&mut self, control: &mut Connection) -> Result<(), KitError> {
        for (words, expected) in [
            (["EXISTS", HALF_KEY], 0),
            (["STRLEN", LARGE_KEY], LARGE_BYTES as i64),
        ] {
            let reply = control.command(&words)?;
            if reply != Reply::Integer(expected) {
                self.complaints
                    .push(format!("{} was answered {reply:?}", words.join(" ")));
            }
        }
        Ok(())
    }

    /// By how much `used_memory` and resident memory grew, in bytes.
    fn growth(&self) -> (i64, i64) {
        let difference = |after: u64, before: u64| after as i64 - before as i64;
        (
            difference(self.after.used, self.before.used),
            difference(self.after.resident, self.before.resident),
        )
    }
}

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |histogram: &Histogram<u64>, quantile: f64| {
            histogram.value_at_quantile(quantile) as f64 / 1e6
        };
        let blown = &self.blown;
        let cpu_us = self.after.cpu_us.saturating_sub(self.before.cpu_us);
        let (used, resident) = self.growth();
        let [beside, calm] = &self.working_ns;
        writeln!(
            f,
            "{} workers, storm {}: {} connections in {:.2} s, {:.0} per second, {:.1} us of the server's processor time each",
            self.workers,
            self.number,
            blown.opened,
            blown.elapsed.as_secs_f64(),
            blown.rate(),
            cpu_us as f64 / blown.opened.max(1) as f64,
        )?;
        writeln!(
            f,
            "  connect to PONG: p50 {:.3}, p99 {:.3}, max {:.3} ms; working connections: p50 {:.3}, p99 {:.3} ms (without the storm {:.3}, {:.3})",
            ms(&blown.answer_ns, 0.5),
            ms(&blown.answer_ns, 0.99),
            ms(&blown.answer_ns, 1.0),
            ms(beside, 0.5),
            ms(beside, 0.99),
            ms(calm, 0.5),
            ms(calm, 0.99),
        )?;
        write!(
            f,
            "  afterwards {} clients, {} descriptors, used_memory {} ({used:+}), resident {} ({resident:+}), {} queue overflows",
            self.after.clients,
            self.after.descriptors,
            self.after.used,
            self.after.resident,
            self.overflows,
        )?;
        for complaint in &self.complaints {
            write!(f, "\n  WRONG: {complaint}")?;
        }
        Ok(())
    }
}
