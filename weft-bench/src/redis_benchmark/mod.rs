//! The mode that stands in for redis-benchmark: its options, tests, texts, columns and exit codes.
//!
//! Owns the order of things: options, questions to the server, tests one after the other. What differs on purpose: a test
//! ends with its last answer rather than at the next quarter of a second, and a server that cannot be reached ends the
//! program instead of being tried for ever.

mod arguments;
mod batches;
mod catalogue;
mod report;
mod server;
mod usage;

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use weft_os::descriptors::raise_limit;

use crate::load::{
    Budget, Conduct, ErrorReplies, Failure, Outcome, Plan, Prologue, Run, Scale, Target, Template,
    encode,
};
use crate::reach::{self, Manner, Server};
use crate::slots;
use crate::substitute::replaced;
use arguments::{Instead, Options};
use batches::{Batches, Nothing};
use catalogue::TESTS;
use report::{CSV_HEAD, Circumstances, ProgressLine, Report};
use server::{Configuration, Node};
use usage::USAGE;

/// The version whose options and tests these are.
const VERSION: &str = "8.2.3";

/// How often progress is shown.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Descriptors this program has besides its connections, and those of each thread.
const OWN_DESCRIPTORS: usize = 32;
const THREAD_DESCRIPTORS: usize = 4;

/// What every connection to a test's keys replaces in a user's command, in a cluster.
const TAG: &[u8] = b"{tag}";

/// Redis-benchmark's own steps: latencies in microseconds, 8 of them a step.
const LOWEST_MICROSECONDS: u64 = 10;

/// Why the program ends before it is done.
enum End {
    /// With this on standard error.
    Said(String),
    /// Nobody reads what it prints.
    Unheard,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> End {
        End::Unheard
    }
}

/// Does what the command line says, without the program's name in it.
pub fn run(arguments: &[Vec<u8>]) -> ExitCode {
    let out = &mut io::stdout().lock();
    let ended = match arguments::parse(arguments) {
        Ok(options) => measure(options, out),
        Err(Instead::Usage) => out.write_all(USAGE.as_bytes()).map_err(End::from),
        Err(Instead::Version) => writeln!(
            out,
            "redis-benchmark {VERSION} (weft-bench {})",
            env!("CARGO_PKG_VERSION")
        )
        .map_err(End::from),
        Err(Instead::Invalid(name)) => {
            let printed = write!(
                out,
                "Invalid option \"{}\" or option argument missing\n\n{USAGE}",
                String::from_utf8_lossy(&name)
            );
            return match printed {
                Ok(()) | Err(_) => ExitCode::FAILURE,
            };
        }
        Err(Instead::Refused(why)) => Err(End::Said(why)),
    };
    let ended = ended.and_then(|()| out.flush().map_err(End::from));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(End::Said(text)) => {
            // What stands in its buffer comes first.
            let _ = out.flush();
            eprintln!("{text}");
            ExitCode::FAILURE
        }
        Err(End::Unheard) => ExitCode::FAILURE,
    }
}

/// Everything that the tests have in common.
struct Bench {
    options: Options,
    servers: Vec<Server>,
    configurations: Vec<Option<Configuration>>,
    /// In a cluster, a tag of each server's.
    tags: Option<Vec<String>>,
    data: Vec<u8>,
    prologue: Arc<Prologue>,
    /// Gives every thread of every test numbers of its own.
    seeds: Rng,
}

/// One test, or the user's command.
struct Work<'a> {
    title: &'a str,
    /// The request for each server.
    requests: Vec<Vec<u8>>,
    payload_bytes: usize,
}

fn measure(mut options: Options, out: &mut impl Write) -> Result<(), End> {
    for warning in &options.warnings {
        eprintln!("{warning}");
    }
    if options.last_from_stdin && !options.command.is_empty() {
        let mut last = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut last)
            .map_err(|error| End::Said(format!("Could not read the last argument: {error}")))?;
        options.command.push(last);
    }
    let mut bench = Bench::prepare(options, out)?;
    if bench.options.idle {
        return bench.idle(out);
    }
    if bench.options.csv {
        writeln!(out, "{CSV_HEAD}")?;
        out.flush()?;
    }
    loop {
        if bench.options.command.is_empty() {
            for test in TESTS {
                if bench.options.selects(test.names) {
                    let numbered = bench.options.numbers.is_some();
                    let data = &bench.data;
                    let work = Work {
                        title: test.title,
                        requests: bench.for_each_server(|tag| test.encode(data, numbered, tag)),
                        payload_bytes: bench.options.data_bytes,
                    };
                    bench.test(&work, out)?;
                }
            }
            if !bench.options.csv {
                writeln!(out)?;
            }
        } else {
            bench.command(out)?;
        }
        out.flush()?;
        if !bench.options.forever {
            return Ok(());
        }
    }
}

impl Bench {
    /// Asks the server what it is.
    fn prepare(options: Options, out: &mut impl Write) -> Result<Bench, End> {
        let manner = Manner {
            tls: options.tls.prepare(&options.host).map_err(End::Said)?,
            ..Manner::default()
        };
        let socket = options.socket.as_deref();
        let reached = reach::reach_by(&manner, &options.host, options.port, socket);
        let (first, mut connection) = reached.map_err(|unreachable| {
            let complaint = server::complaint(&unreachable);
            End::Said(format!(
                "{complaint}\nWARNING: Could not fetch server CONFIG\n{complaint}"
            ))
        })?;
        server::log_in(&first, &mut connection, &options).map_err(End::Said)?;
        let mut servers = vec![first];
        let mut configurations = Vec::new();
        let mut tags = None;
        if options.cluster {
            let nodes = server::cluster(&servers[0], &mut connection).map_err(End::Said)?;
            write_nodes(&nodes, out)?;
            tags = nodes.iter().map(|node| slots::tag(node.slot)).collect();
            servers = nodes.into_iter().map(|node| node.server).collect();
            for server in &servers {
                let mut connection = reach::connect_by(&manner, server)
                    .map_err(|unreachable| End::Said(server::complaint(&unreachable)))?;
                server::log_in(server, &mut connection, &options).map_err(End::Said)?;
                configurations
                    .push(server::configuration(server, &mut connection).map_err(End::Said)?);
            }
        } else {
            configurations
                .push(server::configuration(&servers[0], &mut connection).map_err(End::Said)?);
        }
        if configurations.iter().any(Option::is_none) {
            eprintln!("WARNING: Could not fetch server CONFIG");
        }
        let mut seeds = match options.seed {
            Some(seed) => Rng::with_seed(seed),
            None => Rng::new(),
        };
        Ok(Bench {
            data: std::iter::repeat_with(|| seeds.u8(b'A'..=b'Z'))
                .take(options.data_bytes)
                .collect(),
            prologue: Arc::new(prologue(&options, manner)),
            servers,
            configurations,
            tags,
            seeds,
            options,
        })
    }

    fn for_each_server(&self, request: impl Fn(Option<&str>) -> Vec<u8>) -> Vec<Vec<u8>> {
        match &self.tags {
            Some(tags) => tags.iter().map(|tag| request(Some(tag))).collect(),
            None => vec![request(None)],
        }
    }

    /// Measures the command of the user.
    fn command(&mut self, out: &mut impl Write) -> Result<(), End> {
        let words = &self.options.command;
        let shown = if self.options.last_from_stdin {
            &words[..words.len() - 1]
        } else {
            words
        };
        let title = String::from_utf8_lossy(&shown.join(&b' ')).into_owned();
        let requests = self.for_each_server(|tag| match tag {
            Some(tag) => {
                let tag = format!("{{{tag}}}");
                let words: Vec<Vec<u8>> = words
                    .iter()
                    .map(|word| replaced(word, TAG, tag.as_bytes()))
                    .collect();
                encode(&words)
            }
            None => encode(words),
        });
        let work = Work {
            title: &title,
            payload_bytes: requests.first().map_or(0, Vec::len),
            requests,
        };
        self.test(&work, out)
    }

    /// Measures one test and prints what came of it.
    fn test(&mut self, work: &Work<'_>, out: &mut impl Write) -> Result<(), End> {
        let plan = self.plan();
        let options = &self.options;
        let repeat = options.pipeline as usize;
        let templates: Arc<[Template]> = work
            .requests
            .iter()
            .map(|request| Template::new(request, repeat, options.numbers.is_some()))
            .collect();
        let batches = options.requests.div_ceil(u64::from(options.pipeline));
        let budget = Budget::new(batches, plan.threads);
        let mut seeds = self.seeds.fork();
        let workload = |_| Batches {
            templates: Arc::clone(&templates),
            requests: options.pipeline,
            share: budget.share(),
            numbers: options.numbers.unwrap_or_default(),
            random: seeds.fork(),
            keep_alive: options.keep_alive,
            taken: 0,
        };
        let mut run = Run::start(&plan, workload).map_err(|failure| self.said(failure))?;
        let mut progress = ProgressLine::new(work.title);
        let ended = loop {
            if !options.csv {
                let now = run.progress();
                let counts = now.counts;
                progress.write(counts.answered, counts.latency_sum, now.elapsed, out)?;
            }
            if let Some(ended) = run.wait(PROGRESS_EVERY) {
                break ended;
            }
        };
        let outcome = ended.map_err(|failure| self.said(failure))?;
        if !options.csv {
            progress.wipe(out)?;
        }
        self.report(work, &plan, &outcome, out)?;
        Ok(())
    }

    fn report(
        &self,
        work: &Work<'_>,
        plan: &Plan,
        outcome: &Outcome,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let options = &self.options;
        let report = Report {
            title: work.title,
            requests: outcome.answered,
            elapsed: outcome.elapsed,
            latencies: &outcome.record.classes()[0].latencies,
        };
        if options.csv {
            report.write_csv(out)?;
        } else if options.quiet {
            report.write_short(out)?;
        } else {
            let around = Circumstances {
                clients: plan.connections,
                payload_bytes: work.payload_bytes,
                keep_alive: options.keep_alive,
                configurations: &self.configurations,
                cluster: options.cluster,
                threads: Some(self.threads()).filter(|&threads| threads > 0),
            };
            report.write_full(&around, out)?;
        }
        out.flush()
    }

    /// Opens connections and leaves them.
    fn idle(&mut self, out: &mut impl Write) -> Result<(), End> {
        let plan = self.plan();
        writeln!(
            out,
            "Creating {} idle connections and waiting forever (Ctrl+C when done)",
            plan.connections
        )?;
        let mut run = Run::start(&plan, |_| Nothing).map_err(|failure| self.said(failure))?;
        loop {
            write!(out, "clients: {}\r", run.progress().counts.open)?;
            out.flush()?;
            if let Some(Err(failure)) = run.wait(PROGRESS_EVERY) {
                return Err(self.said(failure));
            }
        }
    }

    /// Threads as the report shows them; 0: not shown.
    fn threads(&self) -> usize {
        match self.options.threads {
            0 if self.options.cluster => self.servers.len(),
            threads => threads,
        }
    }

    fn plan(&self) -> Plan {
        let options = &self.options;
        let threads = self.threads().clamp(1, options.clients);
        let wanted = options.clients + OWN_DESCRIPTORS + threads * THREAD_DESCRIPTORS;
        // Where the system refuses, so does opening the connections.
        raise_limit(wanted as u64);
        Plan {
            targets: self
                .servers
                .iter()
                .map(|server| server.target.clone())
                .collect::<Vec<Target>>(),
            connections: options.clients,
            threads,
            window: options.pipeline,
            refill_at: 0,
            prologue: Arc::clone(&self.prologue),
            errors: ErrorReplies::Fatal,
            scale: Scale {
                unit_ns: 1000,
                lowest: LOWEST_MICROSECONDS,
                digits: options.precision,
            },
            classes: 1,
            conduct: Conduct::default(),
        }
    }

    /// What redis-benchmark says to a failure.
    fn said(&self, failure: Failure) -> End {
        End::Said(match failure {
            Failure::Connect { target, error } => format!(
                "Could not connect to Redis at {}: {}",
                self.servers[target].name,
                crate::load::system_text(&error)
            ),
            Failure::ErrorReply(text) => {
                format!("Error from server: {}", String::from_utf8_lossy(&text))
            }
            other => format!("Error: {other}"),
        })
    }
}

/// What every connection sends first.
fn prologue(options: &Options, manner: Manner) -> Prologue {
    let mut prologue = Prologue::default();
    prologue.encrypt(manner.tls);
    if let Some(auth) = server::auth(options) {
        prologue.push(&auth);
    }
    if options.tracking {
        prologue.push(&["CLIENT", "TRACKING", "on"]);
    }
    if options.database != 0 && !options.cluster {
        prologue.push(&["SELECT", &options.database.to_string()]);
    }
    if options.resp3 {
        prologue.push(&["HELLO", "3"]);
    }
    prologue
}

fn write_nodes(nodes: &[Node], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Cluster has {} master nodes:\n", nodes.len())?;
    for (number, node) in nodes.iter().enumerate() {
        writeln!(out, "Master {number}: {} {}", node.id, node.server.name)?;
    }
    writeln!(out)
}
