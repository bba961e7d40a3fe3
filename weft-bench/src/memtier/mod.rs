//! The mode that stands in for memtier_benchmark: its options, workloads, tables and exit codes.
//!
//! Owns the order of things: options, runs one after the other, tables. Results go to the standard output or a file,
//! progress and notes to the standard error.

mod command;
mod json;
mod keys;
mod mix;
mod options;
mod table;
mod usage;
mod values;

use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use weft_os::descriptors::raise_limit;

use crate::load::{
    Class, Conduct, ErrorReplies, Failure, Outcome, Plan, Progress, Prologue, Run, Scale,
};
use crate::reach::{self, Server};
use command::Command;
use keys::KeySpace;
use mix::{Action, Clients, Limit, Mix, Turn};
use options::{Breakdown, Instead, Options, Requests};
use table::{Row, Table};
use usage::USAGE;
use values::Values;

/// The version whose options these are.
const VERSION: &str = "2.3.0";

/// How often progress is shown.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

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

fn measure(options: &Options) -> Result<(), String> {
    if !options.understood.is_empty() {
        eprintln!(
            "memtier_benchmark: understood {}",
            options.understood.join("; ")
        );
    }
    let turns = turns(options)?;
    let socket = options.socket.as_deref();
    let (server, connection) = reach::reach(&options.server, options.port, socket)
        .map_err(|lost| format!("cannot connect to {}: {}", lost.name, lost.why))?;
    drop(connection);
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
    let plan = plan(options, &server, &turns);
    let mut tables = Vec::new();
    let mut json = options
        .json_out_file
        .as_ref()
        .map(|path| (path, json::Report::new(options)));
    for number in 1..=options.run_count {
        let started = SystemTime::now();
        let outcome = one_run(options, &plan, &turns, number, &mut seeds)
            .map_err(|failure| said(&failure, &server))?;
        report_errors(&outcome);
        let table = table(options, &turns, &outcome);
        if let Some((_, json)) = &mut json {
            json.add_run(&table, &options.percentiles, started, number);
        }
        tables.push(table);
    }
    if let Some((path, json)) = json {
        std::fs::write(path, json.text())
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    write_results(options, &tables, &mut out).map_err(|error| error.to_string())
}

/// What is sent in turn, and what of it counts together.
fn turns(options: &Options) -> Result<Vec<Turn>, String> {
    if options.commands.is_empty() {
        let get = match options.multi_key_get {
            0 => Action::Get,
            keys => Action::GetMany(keys),
        };
        let (set_pattern, get_pattern) = options.key_patterns;
        let (sets, gets) = options.ratio;
        let all = [
            (Action::Set, sets, set_pattern, SETS),
            (get, gets, get_pattern, GETS),
        ];
        return Ok(all
            .into_iter()
            .filter(|(_, times, _, _)| *times > 0)
            .map(|(action, times, pattern, class)| Turn {
                action,
                times,
                pattern,
                class,
            })
            .collect());
    }
    let mut turns = Vec::new();
    for (class, option) in options.commands.iter().enumerate() {
        let command = Command::parse(&option.text).map_err(|error| {
            format!(
                "--command={}: {error}",
                String::from_utf8_lossy(&option.text)
            )
        })?;
        if option.ratio > 0 {
            turns.push(Turn {
                action: Action::Command(command),
                times: option.ratio,
                pattern: option.pattern,
                class: u16::try_from(class).map_err(|_| "too many commands".to_owned())?,
            });
        }
    }
    Ok(turns)
}

/// Classes of the requests that are no commands of the user's.
const SETS: u16 = 0;
const GETS: u16 = 1;

fn plan(options: &Options, server: &Server, turns: &[Turn]) -> Plan {
    let connections = options.clients * options.threads;
    // Where the system refuses, so does opening the connections.
    let wanted = connections + OWN_DESCRIPTORS + options.threads * THREAD_DESCRIPTORS;
    raise_limit(wanted as u64);
    let mut prologue = Prologue::default();
    if let Some(password) = &options.password {
        match &options.user {
            Some(user) => prologue.push(&[b"AUTH", &user[..], password]),
            None => prologue.push(&[b"AUTH", &password[..]]),
        }
    }
    if let Some(version) = options.resp {
        prologue.push(&["HELLO", &version.to_string()]);
    }
    if let Some(database) = options.database.filter(|database| *database != 0) {
        prologue.push(&["SELECT", &database.to_string()]);
    }
    let classes = turns.iter().map(|turn| usize::from(turn.class) + 1);
    Plan {
        targets: vec![server.target.clone()],
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
        by_second: options.json_out_file.is_some(),
        conduct: Conduct::default(),
        classes: classes.max().unwrap_or(0).max(usize::from(GETS) + 1),
    }
}

fn mix(options: &Options, plan: &Plan, turns: &[Turn], seeds: &mut Rng) -> Mix {
    let keys = KeySpace {
        minimum: options.key_minimum,
        maximum: options.key_maximum,
        stddev: options.key_stddev,
        median: options.key_median,
        zipf_exponent: options.zipf_exponent,
    };
    let requests = match options.requests {
        Requests::Count(count) => count,
        // Clients with keys of their own share them.
        Requests::AllKeys if turns[0].pattern == keys::Pattern::Parallel => {
            keys.count().div_ceil(plan.connections as u64)
        }
        Requests::AllKeys => keys.count(),
    };
    let random = options.random_data.then_some(seeds);
    Mix {
        turns: turns.to_vec(),
        key_prefix: options.key_prefix.clone(),
        values: Values::new(&options.data_sizes, options.sizes_by_key, keys, random),
        keys,
        expiry: options.expiry,
        offset: options.data_offset,
        limit: match options.test_seconds {
            Some(seconds) => Limit::Time(seconds.saturating_mul(1_000_000_000)),
            None => Limit::Requests(requests),
        },
        reconnect_interval: options.reconnect_interval,
        interval_ns: 1_000_000_000_u64
            .checked_div(options.rate_limit)
            .unwrap_or(0),
        end_ns: OnceLock::new(),
    }
}

fn one_run(
    options: &Options,
    plan: &Plan,
    turns: &[Turn],
    number: u32,
    seeds: &mut Rng,
) -> Result<Outcome, Failure> {
    eprintln!("[RUN #{number}] Preparing benchmark client...");
    let mix = Arc::new(mix(options, plan, turns, seeds));
    let common = seeds.u64(..);
    let client_seed = || match options.distinct_client_seed {
        true => seeds.fork(),
        false => Rng::with_seed(common),
    };
    let client_seed = std::cell::RefCell::new(client_seed);
    eprintln!("[RUN #{number}] Launching threads now...");
    let mut run = Run::start(plan, |thread| {
        Clients::new(&mix, thread, plan.threads, plan.connections, || {
            client_seed.borrow_mut()()
        })
    })?;
    let mut shown = Shown::default();
    loop {
        match run.wait(PROGRESS_EVERY) {
            None => shown.write(number, &mix, plan, &run.progress(), plan.threads),
            Some(outcome) => {
                let outcome = outcome?;
                let mut last = run.progress();
                last.elapsed = outcome.elapsed;
                shown.write(number, &mix, plan, &last, 0);
                eprintln!();
                return Ok(outcome);
            }
        }
    }
}

/// What the progress line showed last.
#[derive(Default)]
struct Shown {
    last: Option<Progress>,
}

impl Shown {
    fn write(&mut self, number: u32, mix: &Mix, plan: &Plan, now: &Progress, threads: usize) {
        let (counts, elapsed) = (now.counts, now.elapsed.as_secs_f64());
        let done = match mix.limit {
            _ if threads == 0 => 1.0,
            Limit::Requests(requests) => {
                counts.answered as f64 / (requests as f64 * plan.connections as f64)
            }
            Limit::Time(time_ns) => now.elapsed.as_nanos() as f64 / time_ns as f64,
        };
        let (before, since) = match &self.last {
            Some(last) => (last.counts, elapsed - last.elapsed.as_secs_f64()),
            None => (Default::default(), elapsed),
        };
        let rate = |count: u64, seconds: f64| {
            let rate = count as f64 / seconds;
            if rate.is_finite() { rate } else { 0.0 }
        };
        let new = counts.answered - before.answered;
        let latency = |sum: u64, count: u64| match count {
            0 => 0.0,
            count => sum as f64 / count as f64 / 1000.0,
        };
        eprint!(
            "[RUN #{number} {:.0}%, {:3} secs] {threads:2} threads: {:11} ops, {:7.0} (avg: {:7.0}) ops/sec, \
             {}/sec (avg: {}/sec), {:5.2} (avg: {:5.2}) msec latency\r",
            (done * 100.0).min(100.0),
            now.elapsed.as_secs(),
            counts.answered,
            rate(new, since),
            rate(counts.answered, elapsed),
            size(rate(counts.bytes - before.bytes, since)),
            size(rate(counts.bytes, elapsed)),
            latency(counts.latency_sum - before.latency_sum, new),
            latency(counts.latency_sum, counts.answered),
        );
        self.last = Some(*now);
    }
}

/// Bytes in the unit that fits.
fn size(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["B", "KB", "MB", "GB"];
    let mut size = bytes;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.2}{}", UNITS[unit])
}

fn report_errors(outcome: &Outcome) {
    for class in outcome.record.classes() {
        if let Some(text) = &class.first_error {
            eprintln!(
                "{} error responses, the first of them: {}",
                class.errors,
                String::from_utf8_lossy(text)
            );
        }
    }
}

/// The rows that the options ask for.
fn table(options: &Options, turns: &[Turn], outcome: &Outcome) -> Table {
    let classes = outcome.record.classes();
    let mut rows: Vec<Row> = Vec::new();
    if options.commands.is_empty() {
        let row = |name: &str, class: u16, misses: bool| Row {
            name: format!("{name}s"),
            kind: name.to_uppercase(),
            class: classes.get(usize::from(class)).cloned(),
            misses,
        };
        rows.push(row("Set", SETS, false));
        rows.push(row("Get", GETS, true));
        rows.push(Row {
            class: None,
            ..row("Wait", SETS, false)
        });
    } else {
        for turn in turns {
            let Action::Command(command) = &turn.action else {
                continue;
            };
            let class = &classes[usize::from(turn.class)];
            let name = match options.breakdown {
                Breakdown::Command => format!("{}s", command.name()),
                Breakdown::Line => {
                    let text = &options.commands[usize::from(turn.class)].text;
                    String::from_utf8_lossy(text).into_owned()
                }
            };
            match rows.iter_mut().find(|row| row.name == name) {
                Some(Row {
                    class: Some(same), ..
                }) => same.add(class),
                _ => rows.push(Row {
                    name,
                    kind: command.name().to_uppercase(),
                    class: Some(class.clone()),
                    misses: false,
                }),
            }
        }
    }
    let mut sum: Option<Class> = None;
    for class in rows.iter().filter_map(|row| row.class.as_ref()) {
        match &mut sum {
            Some(sum) => sum.add(class),
            None => sum = Some(class.clone()),
        }
    }
    // An absent answer to something else than a GET is no miss.
    if let (Some(sum), true) = (&mut sum, options.commands.is_empty()) {
        sum.nulls = classes[usize::from(GETS)].nulls;
    }
    rows.push(Row {
        name: "Totals".to_owned(),
        kind: "TOTAL".to_owned(),
        class: sum,
        misses: options.commands.is_empty(),
    });
    Table {
        rows,
        hit_columns: options.commands.is_empty(),
        elapsed: outcome.elapsed,
    }
}

fn write_results(options: &Options, tables: &[Table], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:<9} Threads", options.threads)?;
    writeln!(out, "{:<9} Connections per thread", options.clients)?;
    match (options.test_seconds, options.requests) {
        (Some(seconds), _) => writeln!(out, "{seconds:<9} Seconds")?,
        (None, Requests::Count(count)) => writeln!(out, "{count:<9} Requests per client")?,
        (None, Requests::AllKeys) => writeln!(out, "{:<9} Requests per client", "allkeys")?,
    }
    let mut one = |title: &str, table: &Table| -> io::Result<()> {
        write!(out, "\n\n")?;
        table.write(title, &options.percentiles, out)?;
        if !options.hide_histogram {
            table.write_distribution(out)?;
        }
        Ok(())
    };
    if let [only] = tables {
        one("ALL STATS", only)?;
        return out.flush();
    }
    if options.print_all_runs {
        for (number, table) in tables.iter().enumerate() {
            one(&format!("RUN #{} RESULTS", number + 1), table)?;
        }
    }
    let by_rate = |left: &&Table, right: &&Table| left.rate().total_cmp(&right.rate());
    if let (Some(best), Some(worst)) =
        (tables.iter().max_by(by_rate), tables.iter().min_by(by_rate))
    {
        one("BEST RUN RESULTS", best)?;
        one("WORST RUN RESULTS", worst)?;
    }
    if let Some(average) = Table::average(tables) {
        let title = format!("AGGREGATED AVERAGE RESULTS ({} runs)", tables.len());
        one(&title, &average)?;
    }
    out.flush()
}

fn said(failure: &Failure, server: &Server) -> String {
    match failure {
        Failure::Connect { error, .. } => format!(
            "cannot connect to {}: {}",
            server.name,
            crate::load::system_text(error)
        ),
        other => other.to_string(),
    }
}
