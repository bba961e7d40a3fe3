//! The mode that starts servers with several settings of threads, puts several loads on each, and tells what came of it.
//!
//! Owns the order of measurements and where results go. `cell` is a load, `measure` one measurement, `judgement` what the
//! figures mean, `results` the file; `table` and `page` show them. Invariant: measurements that are compared with each other
//! are taken side by side, in another order every round, so that what the machine does besides hits all alike.

mod cell;
mod judgement;
mod measure;
mod options;
mod page;
mod plot;
mod presets;
mod results;
mod sample;
mod stacks;
mod table;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::columns::figure;
use crate::interrupt::Interrupt;
use crate::load::system_text;
use options::{Options, Task, USAGE};
pub use results::Results;
use results::{Machine, Series, Server, Settings};
pub use sample::FIGURES;

/// Does what the command line says.
pub fn run(arguments: &[Vec<u8>]) -> ExitCode {
    let ended = match options::parse(arguments) {
        Ok(Task::Sweep(options)) => sweep(&options),
        Ok(Task::Usage) => {
            print!("{USAGE}");
            Ok(true)
        }
        Ok(Task::Presets) => {
            for preset in presets::PRESETS {
                println!("{:<10} {}", preset.name, preset.what);
            }
            println!("{:<10} all of them", presets::ALL);
            Ok(true)
        }
        Err(why) => Err(why),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("weft-bench sweep: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every measurement succeeded.
fn sweep(options: &Options) -> Result<bool, String> {
    let results = match &options.from {
        Some(file) => {
            let mut results = read(file)?;
            if options.label.is_some() {
                results.label.clone_from(&options.label);
            }
            results
        }
        None => measured(options)?,
    };
    let mut out = io::stdout().lock();
    // Whoever closed the output has read enough; files are written all the same.
    let _ = out.write_all(table::text(&results).as_bytes());
    if let Some(path) = options.json.as_ref().filter(|_| options.from.is_some()) {
        write(path, &json_text(&results))?;
    }
    if let Some(path) = &options.html {
        write(path, &page::html(&results))?;
    }
    Ok(results.series.iter().all(|it| it.failures.is_empty()))
}

fn read(file: &Path) -> Result<Results, String> {
    let failed = |why: String| format!("{}: {why}", file.display());
    let bytes = fs::read(file).map_err(|error| failed(system_text(&error)))?;
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| failed(format!("it is no JSON: {error}")))?;
    Results::from_json(&value).map_err(failed)
}

fn json_text(results: &Results) -> String {
    format!("{:#}\n", results.to_json())
}

/// Writes a file so that nobody ever sees half of it.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {}", path.display(), system_text(&error));
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    fs::write(&beside, text).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)
}

/// Every series, still without measurements.
fn planned(options: &Options) -> Result<Results, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let servers = options.servers.iter().map(|(name, command)| Server {
        name: name.clone(),
        command: command.text().to_owned(),
        version: None,
    });
    let servers: Vec<Server> = servers.collect();
    for (place, server) in servers.iter().enumerate() {
        if servers[..place].iter().any(|it| it.name == server.name) {
            return Err(format!("two servers are called {}", server.name));
        }
    }
    let mut series = Vec::new();
    for cell in 0..options.cells.len() {
        for (server, (_, command)) in options.servers.iter().enumerate() {
            let alone = ["-".to_owned()];
            let settings = match command.takes_threads() {
                true => &options.threads[..],
                false => &alone,
            };
            series.extend(settings.iter().map(|threads| Series {
                server,
                threads: threads.clone(),
                cell,
                samples: Vec::new(),
                failures: Vec::new(),
            }));
        }
    }
    Ok(Results {
        label: options.label.clone(),
        unix_seconds: now.map_or(0, |now| now.as_secs()),
        machine: Machine {
            system: weft_os::process::operating_system(),
            processors: weft_os::cpu::usable_count(),
        },
        settings: Settings {
            rounds: options.rounds,
            seconds: options.measured.as_secs_f64(),
            warm_up_seconds: options.warm_up.as_secs_f64(),
            keys: options.keys,
            server_processors: options.server_processors.clone(),
        },
        servers,
        cells: options.cells.iter().map(ToString::to_string).collect(),
        series,
    })
}

fn measured(options: &Options) -> Result<Results, String> {
    let mut results = planned(options)?;
    if let Some(path) = &options.json {
        // Better now than after an hour.
        write(path, &json_text(&results))?;
    }
    // The processors that this program has for itself are counted before it is tied to some of them.
    if let Some(processors) = &options.client_processors {
        processors
            .pin_thread()
            .map_err(|error| format!("--pin-client: {}", system_text(&error)))?;
    }
    let interrupt = Interrupt::new();
    let all = results.series.len() * options.rounds;
    let began = Instant::now();
    let mut done = 0;
    'rounds: for round in 0..options.rounds {
        for cell in 0..options.cells.len() {
            let series = results.series.iter().enumerate();
            let of_cell: Vec<usize> = series
                .filter(|(_, series)| series.cell == cell)
                .map(|(place, _)| place)
                .collect();
            for place in turns(&of_cell, round) {
                done += 1;
                eprint!("[{done}/{all}, {} s] ", began.elapsed().as_secs());
                one(&mut results, place, options, round, &interrupt);
                if interrupt.came() {
                    break 'rounds;
                }
            }
        }
        if let Some(path) = &options.json {
            write(path, &json_text(&results))?;
        }
    }
    if interrupt.came() {
        eprintln!("interrupted: this is what there is so far");
        if let Some(path) = &options.json {
            write(path, &json_text(&results))?;
        }
    }
    if results.series.iter().all(|it| it.samples.is_empty()) {
        return Err("no measurement succeeded".to_owned());
    }
    Ok(results)
}

/// One measurement of one series.
fn one(
    results: &mut Results,
    place: usize,
    options: &Options,
    round: usize,
    interrupt: &Interrupt,
) {
    let series = &mut results.series[place];
    let server = &mut results.servers[series.server];
    let (_, command) = &options.servers[series.server];
    let cell = &options.cells[series.cell];
    let threads = &series.threads;
    eprint!("{cell}; {}, {} ... ", server.name, table::counted(threads));
    match measure::measure(command, threads, cell, options, round, interrupt) {
        Ok(measured) => {
            server.version = server.version.take().or(measured.version);
            let sample = measured.sample;
            eprintln!(
                "{}/s, p99 {} us, {} us/op",
                figure(sample.rate),
                figure(sample.p99_us),
                figure(sample.server.cpu_us)
            );
            series.samples.push(sample);
        }
        // The other measurements of a long night are worth having.
        Err(why) => {
            eprintln!("failed: {why}");
            series.failures.push(why);
        }
    }
}

/// The order within a round: there and back, and each beginning one further on, so that over the rounds every one comes early
/// and late.
fn turns(of_cell: &[usize], round: usize) -> Vec<usize> {
    let mut turns = of_cell.to_vec();
    if let Some(count) = std::num::NonZeroUsize::new(turns.len()) {
        turns.rotate_left(round / 2 % count);
    }
    if round % 2 == 1 {
        turns.reverse();
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_there_and_back() {
        let order = |round| turns(&[5, 6, 7], round);
        assert_eq!(order(0), [5, 6, 7]);
        assert_eq!(order(1), [7, 6, 5]);
        assert_eq!(order(2), [6, 7, 5]);
        assert_eq!(order(3), [5, 7, 6]);
        assert_eq!(order(6), [5, 6, 7]);
        assert!(turns(&[], 3).is_empty());
    }
}
