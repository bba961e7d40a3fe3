//! One measurement: a fresh server, its keys, a warm-up, the load, and what everybody used meanwhile.
//!
//! Owns the order of these and what a cell is in the words of native mode, which sends it. Every measurement has a server of
//! its own, so that none inherits the memory or the connections of another.

use std::time::Duration;

use super::cell::{Cell, Verb};
use super::options::Options;
use super::sample::{Sample, Side, ratio};
use crate::interrupt::Interrupt;
use crate::native::{self, Command, Endpoint, KeySpace, Limit, Report, Sizes, Spec, Unit};
use crate::server::{CommandLine, Facts, Launch, Machine, Process, Spent, ThreadSpent, fill};

/// What came of it.
#[derive(Debug)]
pub struct Measured {
    /// The figures.
    pub sample: Sample,
    /// What the server calls itself.
    pub version: Option<String>,
}

/// Measures one server with one setting of threads under one load.
///
/// # Errors
/// Why there is no figure.
pub fn measure(
    command: &CommandLine,
    threads: &str,
    cell: &Cell,
    options: &Options,
    round: usize,
    interrupt: &Interrupt,
) -> Result<Measured, String> {
    let process = Process::start(&Launch {
        command,
        threads,
        processors: options.server_processors.as_deref(),
    })?;
    let mut connection = process.connect()?;
    let keys = options.keys_of(cell);
    for (prefix, words) in cell.mix.filling() {
        let value = vec![b'x'; cell.value_bytes];
        let filled = (0..keys).map(|key| {
            let words = words.iter().map(|word| match *word {
                "{key}" => format!("{prefix}{key}").into_bytes(),
                "{value}" => value.clone(),
                word => word.as_bytes().to_vec(),
            });
            words.collect()
        });
        fill(&mut connection, filled)?;
    }
    let spec = |time: Duration, seed: u64| spec(cell, options, process.port(), time, seed);
    // The same requests for everybody, other ones in another round.
    let seed = 2 * round as u64 + 1;
    if !options.warm_up.is_zero() {
        sent(&spec(options.warm_up, seed)?, interrupt)?;
    }
    let spec = spec(options.measured, seed + 1)?;
    let facts_before = Facts::ask(&mut connection)?;
    let (machine, before) = (Machine::now(), process.usage()?);
    let report = sent(&spec, interrupt)?;
    let spent = process.usage()?.since(&before);
    let idle = Machine::now().zip(machine);
    let idle = idle.and_then(|(after, before)| after.idle_since(&before));
    let facts_after = Facts::ask(&mut connection)?;
    drop(connection);
    let version = process.facts().version.clone();
    process.stop();
    Ok(Measured {
        sample: sample(round, &report, [facts_before, facts_after], &spent, idle)?,
        version,
    })
}

fn sent(spec: &Spec, interrupt: &Interrupt) -> Result<Report, String> {
    let report = native::run_watched(spec, &mut interrupt.clone());
    if interrupt.came() {
        return Err("interrupted".to_owned());
    }
    report.map_err(|failure| failure.to_string())
}

/// The cell in native mode's words.
fn spec(
    cell: &Cell,
    options: &Options,
    port: u16,
    time: Duration,
    seed: u64,
) -> Result<Spec, String> {
    let unit = |&(verb, times): &(&Verb, u32)| {
        let words: Vec<String> = verb
            .words
            .iter()
            .map(|word| native_word(word, verb))
            .collect();
        Ok(Unit::single(Command::of_words(&words)?, times))
    };
    let units = cell.mix.parts().iter().map(unit);
    Ok(Spec {
        targets: vec![Endpoint::Tcp("127.0.0.1".to_owned(), port)],
        connections: cell.connections,
        pipeline: Some(cell.pipeline),
        threads: options.client_threads_of(cell, weft_os::cpu::usable_count()),
        limit: Limit::Time(time),
        seed,
        units: units.collect::<Result<_, String>>()?,
        keys: KeySpace {
            prefix: Vec::new(),
            count: options.keys_of(cell),
            ..KeySpace::default()
        },
        value_sizes: Sizes::Fixed(cell.value_bytes),
        ..Spec::default()
    })
}

/// A word of a command as native mode spells it: keys have a prefix by type.
fn native_word(word: &str, verb: &Verb) -> String {
    match word {
        "{key}" => format!("{{key prefix={}}}", verb.prefix),
        other => other.to_owned(),
    }
}

/// The figures of one measurement.
fn sample(
    round: usize,
    report: &Report,
    facts: [Facts; 2],
    spent: &Spent,
    idle: Option<f64>,
) -> Result<Sample, String> {
    let failures = &report.failures;
    if report.operations == 0 {
        return Err(match failures.first.first() {
            Some(first) => first.clone(),
            None => "nothing was answered".to_owned(),
        });
    }
    let per_request = |amount: f64| ratio(amount, report.operations as f64);
    let [before, after] = facts.map(|facts| facts.steps);
    let steps_us = before.zip(after).map(|(before, after)| {
        std::array::from_fn(|step| per_request(after[step].saturating_sub(before[step]) as f64))
    });
    let client = &report.client;
    let threads = client.threads.iter().enumerate();
    let threads = threads.map(|(number, thread)| ThreadSpent {
        name: format!("client thread {number}"),
        run: thread.share,
        wait: thread.waiting_share,
        voluntary: 0,
        involuntary: 0,
    });
    let wrong = failures.wrong + failures.lost + failures.unanswered + failures.unsent;
    Ok(Sample {
        round,
        answered: report.operations,
        failed: failures.errors + wrong,
        seconds: report.elapsed_s,
        rate: report.rate.requests,
        p50_us: report.latency.p50_us,
        p99_us: report.latency.p99_us,
        p999_us: report.latency.p99_9_us,
        max_us: report.latency.max_us,
        server: Side {
            cpu_us: per_request(spent.run_ns as f64 / 1000.0),
            cores: spent.cores(),
            threads: spent.threads.clone(),
        },
        kernel_share: spent.kernel_share,
        steps_us,
        resident_bytes: spent.resident_bytes,
        client: Side {
            cpu_us: client.cpu_us_per_request,
            cores: ratio(client.cpu_s, report.elapsed_s),
            threads: threads.collect(),
        },
        idle,
    })
}
