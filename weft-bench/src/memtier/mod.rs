//! The mode that stands in for memtier_benchmark: its options, workloads, tables and exit codes.
//!
//! Owns the order of things: options, runs one after the other, tables. Results go to the standard output or a file,
//! progress and notes to the standard error.

mod clients;
mod cluster;
mod command;
mod configuration;
mod hdr_files;
mod json;
mod keys;
mod mix;
mod monitor;
mod options;
mod progress;
mod series;
mod spelling;
mod statsd;
mod table;
mod usage;
mod value;
mod values;
mod verify;
mod watch;
mod workload;

use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use weft_client::{Connection, Reply};
use weft_os::descriptors::raise_limit;

use crate::interrupt::Interrupt;
use crate::load::{
    Class, Conduct, ErrorReplies, Failure, Losses, Outcome, Plan, Prologue, Run, Scale,
};
use crate::reach::{self, Manner, Server};
use clients::{Clients, Found};
use cluster::Cluster;
use json::Course;
use keys::KeySpace;
use mix::{Limit, Mix};
use options::{Instead, Options, Requests, Verify};
use progress::{Moment, ProgressLine};
use series::Series;
use statsd::Statsd;
use table::{Row, Table};
use usage::USAGE;
use values::Values;
use workload::{GETS, Workload};

/// The version whose options these are.
const VERSION: &str = "2.3.0";

/// How often progress is shown.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// How often somebody looks whether the run is to end, or the cluster has changed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a node may take to be connected to that is asked for slots during a run.
const REFRESH_PATIENCE: Duration = Duration::from_secs(5);

/// Descriptors this program has besides its connections, and those of each thread.
const OWN_DESCRIPTORS: usize = 32;
const THREAD_DESCRIPTORS: usize = 4;

/// What random numbers start from unless told otherwise: runs are repeatable.
const SEED: u64 = 0x6d65_6d74;

/// Does what the command line says, without the program's name in it.
pub fn run(arguments: &[Vec<u8>]) -> ExitCode {
    let ended = match options::parse(arguments) {
        Ok(options) => measure(&options),
        Err(Instead::Usage) => io::stdout()
            .write_all(USAGE.as_bytes())
            .map_err(|error| error.to_string()),
        Err(Instead::Version) => writeln!(
            io::stdout(),
            "memtier_benchmark {VERSION} (weft-bench {})",
            env!("CARGO_PKG_VERSION")
        )
        .map_err(|error| error.to_string()),
        Err(Instead::Refused(why)) => Err(format!(
            "{why}\nTry 'memtier_benchmark --help' for the options."
        )),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("memtier_benchmark: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What a test works with.
struct Test<'a> {
    options: &'a Options,
    manner: Manner,
    /// In a cluster, the node that is asked for the others.
    server: Server,
    workload: Workload,
    statsd: Option<Statsd>,
    interrupt: Interrupt,
}

/// What a run left behind.
struct Ran {
    outcome: Outcome,
    /// By thread.
    found: Vec<Found>,
    course: Course,
}

/// What a report tells of one run.
struct Results {
    table: Table,
    course: Course,
}

fn measure(options: &Options) -> Result<(), String> {
    if !options.understood.is_empty() {
        eprintln!(
            "memtier_benchmark: understood {}",
            options.understood.join("; ")
        );
    }
    if options.show_config {
        eprint!(
            "============== Configuration values: ==============\n{}===================================================\n",
            configuration::text(options)
        );
    }
    let workload = Workload::new(options)?;
    let seconds = options.connection_seconds_max;
    let manner = Manner {
        family: options.family,
        tls: options.tls.prepare(&options.server)?,
        patience: (seconds > 0).then(|| Duration::from_secs(seconds)),
    };
    let socket = options.socket.as_deref();
    let (server, _) = reach::reach_by(&manner, &options.server, options.port, socket)
        .map_err(|lost| format!("cannot connect to {}: {}", lost.name, lost.why))?;
    let test = Test {
        statsd: options.statsd.as_ref().map(Statsd::new).transpose()?,
        options,
        manner,
        server,
        workload,
        interrupt: Interrupt::new(),
    };
    let mut out: Box<dyn Write> = match &options.out_file {
        Some(path) => {
            eprintln!("Writing results to {}", path.display());
            Box::new(File::create(path).map_err(|error| format!("{}: {error}", path.display()))?)
        }
        None => {
            eprintln!("Writing results to stdout");
            Box::new(io::stdout())
        }
    };
    let mut seeds = match options.randomize {
        true => Rng::new(),
        false => Rng::with_seed(SEED),
    };
    if options.verify == Verify::Only {
        return test.verify(&test.mix(&mut seeds)?);
    }
    let mut all = Vec::new();
    let mut last = None;
    for number in 1..=options.run_count {
        let mix = Arc::new(test.mix(&mut seeds)?);
        all.push(test.run(&mix, number, &mut seeds)?);
        last = Some(mix);
        if test.interrupt.came() {
            break;
        }
    }
    write_results(options, &all, &mut out)?;
    match last {
        Some(mix) if options.verify == Verify::After => test.verify(&mix),
        _ => Ok(()),
    }
}

fn plan(options: &Options, servers: &[Server], workload: &Workload, manner: &Manner) -> Plan {
    let connections = options.clients * options.threads * servers.len();
    // Where the system refuses, so does opening the connections.
    let wanted = connections + OWN_DESCRIPTORS + options.threads * THREAD_DESCRIPTORS;
    raise_limit(wanted as u64);
    let mut prologue = Prologue::default();
    prologue.encrypt(manner.tls.clone());
    for request in greeting(options) {
        prologue.push(&request);
    }
    // Each thread's connections go to one node after the other, so that a client's stay in one thread.
    let node = |server: &Server| std::iter::repeat_n(server.target.clone(), options.threads);
    Plan {
        targets: servers.iter().flat_map(node).collect(),
        connections,
        threads: options.threads,
        window: options.pipeline,
        refill_at: options.pipeline - 1,
        prologue: Arc::new(prologue),
        errors: ErrorReplies::Counted,
        scale: Scale {
            unit_ns: 1000,
            lowest: 1,
            digits: 3,
        },
        classes: workload.classes(),
        conduct: Conduct {
            losses: match options.reconnect {
                Some(_) => Losses::Counted,
                None => Losses::Fatal,
            },
            lazy: options.staircase.is_some() || options.start_jitter.1 > 0,
            interval: (options.json_out_file.is_some() || options.statsd.is_some())
                .then_some(PROGRESS_EVERY),
            interval_by_class: options.json_out_file.is_some(),
            connect_patience: manner.patience,
            ..Conduct::default()
        },
    }
}

/// What every connection says first.
fn greeting(options: &Options) -> Vec<Vec<Vec<u8>>> {
    let mut requests = Vec::new();
    let mut add = |words: &[&[u8]]| {
        requests.push(words.iter().map(|word| word.to_vec()).collect());
    };
    if let Some(password) = &options.password {
        match &options.user {
            Some(user) => add(&[b"AUTH", user, password]),
            None => add(&[b"AUTH", password]),
        }
    }
    if let Some(version) = options.resp {
        add(&[b"HELLO", version.to_string().as_bytes()]);
    }
    if let Some(database) = options.database.filter(|database| *database != 0) {
        add(&[b"SELECT", database.to_string().as_bytes()]);
    }
    requests
}

/// Asks a node of a cluster for the slots. The error is for the user.
fn slots(options: &Options, manner: &Manner, server: &Server) -> Result<Cluster, String> {
    let mut connection = reach::connect_by(manner, server)
        .map_err(|lost| format!("cannot connect to {}: {}", lost.name, lost.why))?;
    log_in(options, &mut connection)?;
    Cluster::ask(server, &mut connection)
}

/// Says so over a connection of our own.
fn log_in(options: &Options, connection: &mut Connection) -> Result<(), String> {
    for request in greeting(options) {
        match connection.command(&request) {
            Ok(Reply::Error(error)) => return Err(String::from_utf8_lossy(&error).into_owned()),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

impl Test<'_> {
    /// What clients of a run have in common.
    fn mix(&self, seeds: &mut Rng) -> Result<Mix, String> {
        let options = self.options;
        let keys = KeySpace {
            minimum: options.key_minimum,
            maximum: options.key_maximum,
            stddev: options.key_stddev,
            median: options.key_median,
            zipf_exponent: options.zipf_exponent,
        };
        let clients = (options.clients * options.threads) as u64;
        let requests = match options.requests {
            Requests::Count(count) => count,
            // Clients with keys of their own share them.
            Requests::AllKeys if self.workload.turns[0].pattern == keys::Pattern::Parallel => {
                keys.count().div_ceil(clients)
            }
            Requests::AllKeys => keys.count(),
        };
        let sizes = &options.data_sizes;
        let values = match options.verify {
            Verify::No => {
                let random = options.random_data.then_some(seeds);
                Values::new(sizes, options.sizes_by_key, keys, random)
            }
            // The same in every run of the program.
            Verify::After | Verify::Only => {
                let mut random = Rng::with_seed(SEED);
                let random = options.random_data.then_some(&mut random);
                Values::new(sizes, options.sizes_by_key, keys, random).fixed()
            }
        };
        let cluster = match options.cluster {
            true => Some(self.cluster()?),
            false => None,
        };
        let microseconds = |count: u64| count.saturating_mul(1000);
        Ok(Mix {
            turns: self.workload.turns.clone(),
            key_prefix: options.key_prefix.clone(),
            values,
            keys,
            expiry: options.expiry,
            offset: options.data_offset,
            limit: match options.test_seconds {
                Some(seconds) => Limit::Time(seconds.saturating_mul(1_000_000_000)),
                None => Limit::Requests(requests),
            },
            reconnect_interval: options.reconnect_interval,
            reconnect: options.reconnect,
            interval_ns: 1_000_000_000_u64
                .checked_div(options.rate_limit)
                .unwrap_or(0),
            wait: options.wait,
            staircase: options.staircase,
            start_jitter_ns: (
                microseconds(options.start_jitter.0),
                microseconds(options.start_jitter.1),
            ),
            scan_steps_max: options.scan_steps_max,
            cluster,
            unreported: self.workload.unreported(),
            by_client: options.client_stats.is_some(),
        })
    }

    /// The slots as they are now. The error is for the user.
    fn cluster(&self) -> Result<Cluster, String> {
        slots(self.options, &self.manner, &self.server)
    }

    /// Asks for the slots again, without waiting for the answer.
    fn refresh(&self, mix: &Arc<Mix>) {
        let (options, mix) = (self.options.clone(), Arc::clone(mix));
        let (mut manner, server) = (self.manner.clone(), self.server.clone());
        manner.patience.get_or_insert(REFRESH_PATIENCE);
        std::thread::spawn(move || {
            // Without an answer, redirections tell of one slot after the other.
            if let (Some(cluster), Ok(newer)) = (&mix.cluster, slots(&options, &manner, &server)) {
                cluster.learn(&newer);
            }
        });
    }

    fn verify(&self, mix: &Mix) -> Result<(), String> {
        let log_in = |connection: &mut Connection| log_in(self.options, connection);
        let verified = verify::verify(mix, &self.server, &self.manner, log_in)?;
        eprintln!("{verified}");
        match verified.wrong {
            0 => Ok(()),
            _ => Err(format!(
                "data verification failed: {}",
                verified.told.join("; ")
            )),
        }
    }

    /// Does the whole test once.
    fn run(&self, mix: &Arc<Mix>, number: u32, seeds: &mut Rng) -> Result<Results, String> {
        let options = self.options;
        let reads = options.cluster
            || options.reconnect.is_some()
            || options.scan_steps_max.is_some()
            || options.client_stats.is_some();
        let ran = match reads {
            true => self.run_clients::<true>(mix, number, seeds)?,
            false => self.run_clients::<false>(mix, number, seeds)?,
        };
        let found = &ran.found;
        report_errors(&ran.outcome, found);
        let results = Results {
            table: self.table(&ran.outcome, found),
            course: ran.course,
        };
        let failed =
            |(path, error): (std::path::PathBuf, io::Error)| format!("{}: {error}", path.display());
        if let Some(prefix) = &options.client_stats {
            let own = !options.commands.is_empty();
            watch::write(prefix, number, found, &self.workload, own, options.cluster)
                .map_err(failed)?;
        }
        if let Some(prefix) = &options.hdr_prefix {
            hdr_files::write(prefix, number, &results.table, results.course.started)
                .map_err(failed)?;
        }
        Ok(results)
    }

    fn run_clients<const READS: bool>(
        &self,
        mix: &Arc<Mix>,
        number: u32,
        seeds: &mut Rng,
    ) -> Result<Ran, String> {
        let options = self.options;
        let nodes = match &mix.cluster {
            Some(cluster) => cluster.nodes(),
            None => std::slice::from_ref(&self.server),
        };
        let plan = &plan(options, nodes, &self.workload, &self.manner);
        let clients = options.clients * options.threads;
        eprintln!("[RUN #{number}] Preparing benchmark client...");
        if let Some(stairs) = &options.staircase {
            progress::announce(number, stairs, options);
        }
        let common = seeds.u64(..);
        let mut client_seed = || match options.distinct_client_seed {
            true => seeds.fork(),
            false => Rng::with_seed(common),
        };
        let founds = Arc::new(Mutex::new(Vec::new()));
        eprintln!("[RUN #{number}] Launching threads now...");
        if let Some(statsd) = &self.statsd {
            statsd.begun(options.threads, clients, number);
        }
        let started = SystemTime::now();
        let mut run = Run::start(plan, |thread| {
            let random = &mut client_seed;
            Clients::<READS>::new(mix, thread, plan.threads, clients, &founds, random)
        })
        .map_err(|failure| said(&failure, plan))?;
        let mut line = ProgressLine::new(number, mix.limit, clients);
        let titles = self.workload.kinds.iter().map(|kind| kind.title.as_str());
        let mut series = Series::new(titles, &options.percentiles);
        let mut latest = None;
        let mut shown = 0;
        let mut interrupted = false;
        let outcome = loop {
            let waited = run.wait(LOOK_EVERY);
            for interval in run.take_intervals() {
                series.add(&interval);
                latest = Some(interval);
            }
            if mix.cluster.as_ref().is_some_and(Cluster::take_stale) {
                self.refresh(mix);
            }
            let mut now = run.progress();
            let ended = waited.is_some();
            if !ended && !interrupted && self.interrupt.came() {
                interrupted = true;
                eprint!(
                    "\n[RUN #{number}] Interrupted by user (Ctrl+C) after {:.1} secs, stopping threads...",
                    now.elapsed.as_secs_f64()
                );
                run.end();
            }
            if !ended && (interrupted || now.elapsed.as_secs() == shown) {
                continue;
            }
            shown = now.elapsed.as_secs();
            if let Some(Ok(outcome)) = &waited {
                now.elapsed = outcome.elapsed;
            }
            let moment = Moment {
                threads: if ended { 0 } else { options.threads },
                clients: match &options.staircase {
                    Some(stairs) => progress::clients_at(stairs, options.clients, now.elapsed),
                    None => options.clients,
                },
                now,
            };
            if !interrupted && !matches!(waited, Some(Err(_))) {
                let figures = line.write(&moment, latest.as_ref());
                if let Some(statsd) = &self.statsd {
                    statsd.tell(&figures, &options.percentiles);
                }
            }
            if let Some(ended) = waited {
                eprintln!();
                break ended.map_err(|failure| said(&failure, plan))?;
            }
        };
        drop(run);
        if let Some(statsd) = &self.statsd {
            statsd.ended(number);
        }
        let mut found = std::mem::take(&mut *founds.lock().unwrap_or_else(PoisonError::into_inner));
        found.sort_by_key(|found| found.thread);
        Ok(Ran {
            course: Course {
                started,
                elapsed: outcome.elapsed,
                interrupted,
                series,
            },
            outcome,
            found,
        })
    }

    /// The rows that the options ask for.
    fn table(&self, outcome: &Outcome, found: &[Found]) -> Table {
        let classes = outcome.record.classes();
        let own = !self.options.commands.is_empty();
        let mut rows: Vec<Row> = Vec::new();
        for (number, (kind, class)) in self.workload.kinds.iter().zip(classes).enumerate() {
            let sum = |count: fn(&Found) -> &Vec<u64>| -> u64 {
                found.iter().map(|found| count(found)[number]).sum()
            };
            let row = Row {
                name: kind.title.clone(),
                kind: kind.name.clone(),
                class: class.clone(),
                sent: kind.sent,
                misses: kind.misses,
                bytes: kind.bytes,
                moved: sum(|found| &found.moved),
                asked: sum(|found| &found.asked),
                connection_errors: 0,
            };
            match rows.iter_mut().find(|same| same.name == row.name) {
                Some(same) => {
                    same.class.add(&row.class);
                    same.moved += row.moved;
                    same.asked += row.asked;
                }
                None => rows.push(row),
            }
        }
        rows.push(self.totals(&rows, outcome, !own));
        Table {
            rows,
            hit_columns: !own,
            cluster: self.options.cluster,
            elapsed: outcome.elapsed,
        }
    }

    /// The sum of all rows.
    fn totals(&self, rows: &[Row], outcome: &Outcome, misses: bool) -> Row {
        let unreported = usize::from(self.workload.unreported());
        let mut class: Class = outcome.record.classes()[unreported].emptied();
        for row in rows {
            class.add(&row.class);
        }
        // An absent answer to something else than a GET is no miss.
        if misses {
            class.nulls = rows[usize::from(GETS)].class.nulls;
        }
        Row {
            name: "Totals".to_owned(),
            kind: "TOTAL".to_owned(),
            class,
            sent: true,
            misses,
            bytes: true,
            moved: rows.iter().map(|row| row.moved).sum(),
            asked: rows.iter().map(|row| row.asked).sum(),
            connection_errors: outcome.record.lost_connections,
        }
    }
}

fn report_errors(outcome: &Outcome, found: &[Found]) {
    for class in outcome.record.classes() {
        if let Some(text) = &class.first_error {
            eprintln!(
                "{} error responses, the first of them: {}",
                class.errors,
                String::from_utf8_lossy(text)
            );
        }
    }
    let record = &outcome.record;
    if let Some(why) = &record.first_loss {
        let given_up: u64 = found.iter().map(|found| found.given_up).sum();
        let lost: u64 = record.classes().iter().map(|class| class.lost).sum();
        eprintln!(
            "{} connection errors, the first of them: {why}; {lost} requests were lost, {given_up} connections given up",
            record.lost_connections
        );
    }
}

fn write_results(options: &Options, all: &[Results], out: &mut impl Write) -> Result<(), String> {
    let tables: Vec<Table> = all.iter().map(|results| results.table.clone()).collect();
    let mut json = json::Report::new(options);
    // What is shown, under which title.
    let mut shown: Vec<(String, Table, Option<&Course>)> = Vec::new();
    let titled = |title: &str, number: usize| {
        let course = Some(&all[number].course);
        (title.to_owned(), tables[number].clone(), course)
    };
    if all.len() == 1 {
        shown.push(titled("ALL STATS", 0));
    } else {
        if options.print_all_runs {
            for number in 0..all.len() {
                shown.push(titled(&format!("RUN #{} RESULTS", number + 1), number));
            }
        }
        let by_rate =
            |left: &usize, right: &usize| tables[*left].rate().total_cmp(&tables[*right].rate());
        let runs = 0..all.len();
        if let (Some(best), Some(worst)) = (runs.clone().max_by(by_rate), runs.min_by(by_rate)) {
            shown.push(titled("BEST RUN RESULTS", best));
            shown.push(titled("WORST RUN RESULTS", worst));
        }
        if let Some(average) = Table::average(&tables) {
            let title = format!("AGGREGATED AVERAGE RESULTS ({} runs)", all.len());
            shown.push((title, average, None));
        }
    }
    write_tables(options, &shown, out).map_err(|error| error.to_string())?;
    if let Some(path) = &options.json_out_file {
        for (title, table, course) in &shown {
            json.add(title, table, *course);
        }
        std::fs::write(path, json.text())
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn write_tables(
    options: &Options,
    shown: &[(String, Table, Option<&Course>)],
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{:<9} Threads", options.threads)?;
    writeln!(out, "{:<9} Connections per thread", options.clients)?;
    match (options.test_seconds, options.requests) {
        (Some(seconds), _) => writeln!(out, "{seconds:<9} Seconds")?,
        (None, Requests::Count(count)) => writeln!(out, "{count:<9} Requests per client")?,
        (None, Requests::AllKeys) => writeln!(out, "{:<9} Requests per client", "allkeys")?,
    }
    for (title, table, _) in shown {
        write!(out, "\n\n")?;
        table.write(title, &options.percentiles, out)?;
        if !options.hide_histogram {
            table.write_distribution(out)?;
        }
    }
    out.flush()
}

fn said(failure: &Failure, plan: &Plan) -> String {
    match failure {
        Failure::Connect { target, error } => format!(
            "cannot connect to {}: {}",
            plan.targets[*target],
            crate::load::system_text(error)
        ),
        other => other.to_string(),
    }
}
