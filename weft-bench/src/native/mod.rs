//! Native mode: what neither redis-benchmark nor memtier_benchmark can ask.
//!
//! Owns the order of things: preparation, the run, the report. [`Spec`] says what a run does, [`run`] does it, [`Report`] is
//! what came of it; other modes build on these three. Open loops measure from the time a request was due.

mod answer;
mod clients;
mod command;
mod compiled;
mod cpu;
mod keys;
pub mod options;
mod pace;
pub mod report;
mod script;
mod series;
mod spec;
pub mod terminal;
mod usage;
mod values;
mod verify;
pub mod words;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weft_client::{ClientError, Connection, Reply};
use weft_os::descriptors::raise_limit;

use crate::interrupt::Interrupt;
use crate::load::{
    self, Conduct, ErrorReplies, Interval, Losses, Outcome, Plan, Prologue, Run, system_text,
};
use crate::reach::{self, Server, Unreachable};
use clients::{Clients, Common};
use compiled::Program;
use options::{Instead, Options};
use report::{Material, Workload};

#[allow(
    unused_imports,
    reason = "what a description consists of, for modes that make one"
)]
pub use self::{
    command::Command,
    cpu::{ProcessCpu, ThreadCpu},
    keys::{Distribution, KeySpace},
    pace::{Arrivals, Pace, Think},
    report::{Latency, Part, Report, SCALE},
    spec::{Endpoint, Limit, Setup, Spec, Unit},
    values::Sizes,
};

/// Descriptors this program has besides its connections, and those of each thread.
const OWN_DESCRIPTORS: usize = 32;
const THREAD_DESCRIPTORS: usize = 4;

/// How often the one that waits looks up.
const PATIENCE: Duration = Duration::from_millis(50);

/// Requests of a connection under way while keys are filled in.
const FILL_PIPELINE: u32 = 64;

/// Why a run came to nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The description cannot be run: why.
    Spec(String),
    /// A server cannot be reached.
    Unreachable(Unreachable),
    /// A command of the preparation failed.
    Setup {
        /// The command as it was written.
        command: String,
        /// What the server or the connection said.
        why: String,
    },
    /// The process whose use of the processors is asked for cannot be looked at.
    Process {
        /// Its number.
        pid: u32,
        /// What the system says.
        why: String,
    },
    /// The run ended before its time.
    Load(load::Failure),
    /// A file cannot be written.
    Output {
        /// Its name.
        path: String,
        /// What the system says.
        why: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Spec(why) => f.write_str(why),
            Failure::Unreachable(unreachable) => {
                write!(
                    f,
                    "cannot connect to {}: {}",
                    unreachable.name, unreachable.why
                )
            }
            Failure::Setup { command, why } => write!(f, "'{command}' failed: {why}"),
            Failure::Process { pid, why } => write!(f, "process {pid} cannot be looked at: {why}"),
            Failure::Load(failure) => failure.fmt(f),
            Failure::Output { path, why } => write!(f, "{path}: {why}"),
        }
    }
}

impl From<load::Failure> for Failure {
    fn from(failure: load::Failure) -> Failure {
        Failure::Load(failure)
    }
}

/// Who looks on while a run goes on.
pub trait Watch {
    /// The next interval of a second is over.
    fn interval(&mut self, interval: &Interval) {
        let _ = interval;
    }

    /// A moment has passed. False: the run ends now, with what it has.
    fn moment(&mut self, progress: &load::Progress) -> bool {
        let _ = progress;
        true
    }
}

/// Nobody.
impl Watch for () {}

/// Prepares the server, runs, and reports.
///
/// # Errors
/// The description is wrong, the server cannot be reached, or the preparation failed. What fails during the run is in the
/// report.
pub fn run(spec: &Spec) -> Result<Report, Failure> {
    run_watched(spec, &mut ())
}

/// The same while somebody looks on.
///
/// # Errors
/// As [`run`].
pub fn run_watched(spec: &Spec, watch: &mut dyn Watch) -> Result<Report, Failure> {
    spec.check().map_err(Failure::Spec)?;
    let servers = spec
        .targets
        .iter()
        .map(reached)
        .collect::<Result<Vec<Server>, Failure>>()?;
    prepare(spec, &servers[0])?;
    let program = Program::new(spec);
    let plan = plan(spec, &servers, &program);
    let common = Arc::new(Common::new(spec, Arc::clone(&program)));
    let threads = plan.threads;
    let run = match program.serial || program.verify {
        true => Run::start(&plan, |thread| Clients::<true>::new(&common, thread)),
        false => Run::start(&plan, |thread| Clients::<false>::new(&common, thread)),
    }?;
    let watched = watch_run(run, spec.warmup, spec.server_pid, watch)?;
    Ok(Report::new(Material {
        name: &spec.name,
        workload: describe(spec, &servers, threads),
        asked: spec.asked_rate().map(|(rate, _)| rate),
        started_unix_s: watched.started_unix_s,
        time: match spec.limit {
            Limit::Time(time) if !watched.interrupted => Some(time),
            _ => None,
        },
        outcome: &watched.outcome,
        classes: &program.classes,
        commands: program.commands,
        tally: &common.tally(),
        server: watched.server,
    }))
}

/// What a run came to, and what the server used meanwhile.
#[derive(Debug)]
pub struct Watched {
    /// What was measured.
    pub outcome: Outcome,
    /// When the measurement began, in seconds since 1970.
    pub started_unix_s: f64,
    /// Somebody wanted it to end before its time.
    pub interrupted: bool,
    /// The server's process and what its threads used.
    pub server: Option<(u32, Vec<ThreadCpu>)>,
}

/// Waits for the end of a run.
///
/// # Errors
/// The run failed, or there is no such process.
pub fn watch_run(
    mut run: Run,
    warmup: Duration,
    server_pid: Option<u32>,
    watch: &mut dyn Watch,
) -> Result<Watched, Failure> {
    let now_s = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap_or_default().as_secs_f64()
    };
    let started_unix_s = now_s() + warmup.as_secs_f64();
    let server_cpu = || {
        server_pid
            .map(|pid| match ProcessCpu::read(pid) {
                Ok(cpu) => Ok((pid, cpu)),
                Err(error) => Err(Failure::Process {
                    pid,
                    why: system_text(&error),
                }),
            })
            .transpose()
    };
    let mut before = None;
    let mut interrupted = false;
    let outcome = loop {
        // The measurement has begun, or begins within the next moment.
        if before.is_none() && now_s() >= started_unix_s {
            before = Some(server_cpu()?);
        }
        let patience = match before {
            Some(_) => PATIENCE,
            None => Duration::from_secs_f64((started_unix_s - now_s()).max(0.0)).min(PATIENCE),
        };
        let ended = run.wait(patience);
        run.take_intervals().for_each(|it| watch.interval(&it));
        match ended {
            Some(outcome) => break outcome?,
            None => {
                if !watch.moment(&run.progress()) {
                    interrupted = true;
                    run.end();
                }
            }
        }
    };
    let server = match (before.flatten(), server_cpu()) {
        (Some((pid, before)), Ok(Some((_, after)))) => Some((pid, after.since(&before))),
        // It has ended meanwhile, or the run ended before the measurement began.
        _ => None,
    };
    Ok(Watched {
        outcome,
        started_unix_s,
        interrupted,
        server,
    })
}

/// Finds the server at an endpoint.
///
/// # Errors
/// It cannot be reached.
pub fn reached(endpoint: &Endpoint) -> Result<Server, Failure> {
    let reached = match endpoint {
        Endpoint::Tcp(host, port) => reach::reach(host, *port, None),
        Endpoint::Unix(path) => reach::reach("", 0, Some(path)),
    };
    Ok(reached.map_err(Failure::Unreachable)?.0)
}

/// What every connection sends first.
pub fn opening(spec: &Spec) -> Vec<Vec<Vec<u8>>> {
    let mut opening: Vec<Vec<Vec<u8>>> = Vec::new();
    if let Some(password) = &spec.password {
        let mut auth = vec![b"AUTH".to_vec()];
        auth.extend(spec.user.clone());
        auth.push(password.clone());
        opening.push(auth);
    }
    if spec.resp3 {
        opening.push(vec![b"HELLO".to_vec(), b"3".to_vec()]);
    }
    if spec.database != 0 {
        opening.push(vec![
            b"SELECT".to_vec(),
            spec.database.to_string().into_bytes(),
        ]);
    }
    opening
}

/// The same, as the engine takes it.
pub fn prologue(spec: &Spec) -> Prologue {
    let mut prologue = Prologue::default();
    for command in opening(spec) {
        prologue.push(&command);
    }
    prologue
}

/// Allows for so many connections.
pub fn raise_descriptors(connections: usize, threads: usize) {
    let wanted = connections + OWN_DESCRIPTORS + threads * THREAD_DESCRIPTORS;
    // Where the system refuses, so does opening the connections.
    raise_limit(wanted as u64);
}

/// Sends what is sent once, and fills in the keys.
fn prepare(spec: &Spec, server: &Server) -> Result<(), Failure> {
    if !spec.setup.is_empty() {
        let mut connection = reach::connect(server).map_err(Failure::Unreachable)?;
        for command in opening(spec) {
            let name = String::from_utf8_lossy(&command[0]).into_owned();
            answered(connection.command(&command), &name, false)?;
        }
        for setup in &spec.setup {
            let text = &setup.command.text;
            let request = clients::once(spec, &setup.command);
            let reply = send(&mut connection, &request);
            answered(reply, text, setup.may_fail)?;
        }
    }
    if spec.fill {
        let filling = Spec {
            units: Unit::sets_and_gets(1, 0),
            keys: KeySpace {
                distribution: Distribution::Sequential,
                ..spec.keys.clone()
            },
            limit: Limit::Requests(spec.keys.count),
            pipeline: Some(FILL_PIPELINE),
            pace: Pace::Closed { think: Think::None },
            warmup: Duration::ZERO,
            reconnect_every: 0,
            server_pid: None,
            setup: Vec::new(),
            fill: false,
            verify: spec.verify,
            ..spec.clone()
        };
        let report = run(&filling)?;
        if report.failures.share > 0.0 {
            return Err(Failure::Setup {
                command: "SET {key} {value}".to_owned(),
                why: report.failures.first.join("; "),
            });
        }
    }
    Ok(())
}

fn send(connection: &mut Connection, request: &[u8]) -> Result<Reply, ClientError> {
    connection.send_bytes(request)?;
    connection.read_reply()
}

fn answered(
    reply: Result<Reply, ClientError>,
    command: &str,
    may_fail: bool,
) -> Result<(), Failure> {
    let failed = |why: String| Failure::Setup {
        command: command.to_owned(),
        why,
    };
    match reply {
        Ok(Reply::Error(text) | Reply::BulkError(text)) if !may_fail => {
            Err(failed(String::from_utf8_lossy(&text).into_owned()))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn plan(spec: &Spec, servers: &[Server], program: &Program) -> Plan {
    let threads = spec.threads.min(spec.connections);
    raise_descriptors(spec.connections, threads);
    let window = spec.window();
    let thinks = matches!(spec.pace, Pace::Closed { think } if think != Think::None);
    Plan {
        targets: servers.iter().map(|server| server.target.clone()).collect(),
        connections: spec.connections,
        threads,
        window,
        refill_at: match thinks {
            true => 0,
            false => window - 1,
        },
        prologue: Arc::new(prologue(spec)),
        errors: ErrorReplies::Counted,
        scale: SCALE,
        classes: program.classes.len(),
        conduct: Conduct {
            losses: Losses::Counted,
            lazy: matches!(spec.pace, Pace::Storm { .. }),
            warmup: spec.warmup,
            patience: match spec.limit {
                Limit::Time(time) => Some(spec.warmup + time + spec.drain),
                Limit::Requests(_) => None,
            },
            interval: Some(Duration::from_secs(1)),
            ..Conduct::default()
        },
    }
}

fn describe(spec: &Spec, servers: &[Server], threads: usize) -> Workload {
    let arrivals = |kind: &str, arrivals: Arrivals| match arrivals {
        Arrivals::Constant => format!("{kind} constant"),
        Arrivals::Poisson => format!("{kind} poisson"),
    };
    Workload {
        targets: servers.iter().map(|server| server.name.clone()).collect(),
        pace: match spec.pace {
            Pace::Closed { .. } => "closed".to_owned(),
            Pace::Open { arrivals: it, .. } => arrivals("open", it),
            Pace::Storm { arrivals: it, .. } => arrivals("storm", it),
        },
        connections: spec.connections,
        pipeline: spec.window(),
        threads,
        commands: spec
            .units
            .iter()
            .map(|unit| {
                let texts = unit.commands.iter().map(|command| command.text.as_str());
                format!(
                    "{} {}",
                    unit.weight,
                    texts.collect::<Vec<&str>>().join("; ")
                )
            })
            .collect(),
        keys: format!("{} {}", spec.keys.count, spec.keys.distribution),
        value_size: spec.value_sizes.to_string(),
        verify: spec.verify,
        seed: spec.seed,
    }
}

/// Does what the command line says, without the program's and the mode's name in it.
pub fn main(arguments: &[Vec<u8>]) -> ExitCode {
    let ended = match options::parse(arguments) {
        Ok(options) => measure(&options),
        Err(Instead::Usage) => {
            return match io::stdout().write_all(usage::USAGE.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Err(Instead::Refused(why)) => Err(Failure::Spec(format!(
            "{why}\nTry 'weft-bench run --help' for the options."
        ))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("weft-bench run: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), Failure> {
    let mut watch = terminal::Watcher::new(&options.outputs)?;
    let report = run_watched(&options.spec, &mut watch)?;
    watch.finish()?;
    terminal::write(&report, &options.outputs)
}
