//! Throughput, processor time and memory of the server under test beside the reference, by redis-benchmark.
//!
//! The servers take turns, in another order every round, so that what the machine does besides hits both alike; medians
//! are told. Processor time is that of all threads of the server, over a whole run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weft_client::Connection;

use crate::error::KitError;
use crate::interval::median;
use crate::server::Server;

/// Keys that are there before a run, each with a value of [`VALUE_BYTES`].
const KEYS: usize = 200_000;
const VALUE_BYTES: usize = 128;
/// Keys of the measurement of memory.
const MEMORY_KEYS: usize = 1_000_000;
/// Requests sent at once while filling.
const FILL_BATCH: usize = 1000;

/// One load: what redis-benchmark is told.
const LOADS: &[(&str, &[&str])] = &[
    ("GET", &["-t", "get", "-n", "300000"]),
    ("SET", &["-t", "set", "-n", "300000"]),
    (
        "GET, pipeline 16",
        &["-t", "get", "-n", "2000000", "-P", "16"],
    ),
    (
        "SET, pipeline 16",
        &["-t", "set", "-n", "2000000", "-P", "16"],
    ),
    (
        "GET, pipeline 100",
        &["-t", "get", "-n", "4000000", "-P", "100"],
    ),
    (
        "SET, pipeline 100",
        &["-t", "set", "-n", "4000000", "-P", "100"],
    ),
];

/// A server that is measured.
#[derive(Clone, Debug)]
pub struct Contender {
    /// What it is called in the table.
    pub name: &'static str,
    /// Its program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// Measures and prints the tables.
pub fn run(contenders: &[Contender], benchmark: &Path, rounds: usize) -> Result<(), KitError> {
    println!(
        "{:<20}{:<10}{:>12}{:>12}",
        "50 connections", "server", "k/s", "CPU us/op"
    );
    for (label, load) in LOADS {
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); contenders.len()];
        for round in 0..rounds {
            for turn in 0..contenders.len() {
                let index = (turn + round) % contenders.len();
                samples[index].push(measure(&contenders[index], benchmark, load)?);
            }
        }
        for (contender, samples) in contenders.iter().zip(&samples) {
            let rate = median(samples.iter().map(|sample| sample.requests_per_second));
            let cpu = median(samples.iter().map(|sample| sample.cpu_us_per_request));
            println!(
                "{label:<20}{:<10}{:>12.0}{:>12.3}",
                contender.name,
                rate / 1000.0,
                cpu
            );
        }
    }
    println!(
        "\n{:<20}{:<10}{:>12}{:>12}",
        "memory", "server", "empty MiB", "bytes/key"
    );
    for contender in contenders {
        let (empty, per_key) = memory(contender)?;
        println!(
            "{:<20}{:<10}{:>12.1}{:>12.1}",
            "16 B key and value", contender.name, empty, per_key
        );
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    requests_per_second: f64,
    cpu_us_per_request: f64,
}

fn measure(contender: &Contender, benchmark: &Path, load: &[&str]) -> Result<Sample, KitError> {
    let server = Server::start(&contender.program, &contender.arguments)?;
    let value = vec![b'x'; VALUE_BYTES];
    fill(&mut server.connect()?, KEYS, |number| {
        [format!("key:{number:012}").into_bytes(), value.clone()]
    })?;
    let before = cpu_us(server.process())?;
    let output = Command::new(benchmark)
        .args([
            "-p",
            &server.port().to_string(),
            "-c",
            "50",
            "-r",
            &KEYS.to_string(),
            "-d",
            &VALUE_BYTES.to_string(),
            "--csv",
        ])
        .args(load)
        .stdin(Stdio::null())
        .output()
        .map_err(KitError::io("run redis-benchmark"))?;
    let spent = cpu_us(server.process())?.saturating_sub(before);
    let text = String::from_utf8_lossy(&output.stdout);
    // The last line is "test","requests per second",...
    let rate = text
        .lines()
        .last()
        .and_then(|line| line.split(',').nth(1))
        .map(|field| field.trim_matches('"'));
    let requests_per_second = rate
        .and_then(|rate| rate.parse().ok())
        .ok_or_else(|| KitError::Unexpected(format!("redis-benchmark printed {text:?}")))?;
    let place = load.iter().position(|word| *word == "-n");
    let requests: f64 = place
        .and_then(|place| load.get(place + 1))
        .and_then(|count| count.parse().ok())
        .unwrap_or(1.0);
    Ok(Sample {
        requests_per_second,
        cpu_us_per_request: spent as f64 / requests,
    })
}

pub(crate) fn fill(
    connection: &mut Connection,
    keys: usize,
    entry: impl Fn(usize) -> [Vec<u8>; 2],
) -> Result<(), KitError> {
    for start in (0..keys).step_by(FILL_BATCH) {
        let requests: Vec<Vec<Vec<u8>>> = (start..keys.min(start + FILL_BATCH))
            .map(|number| {
                let [key, value] = entry(number);
                vec![b"SET".to_vec(), key, value]
            })
            .collect();
        let replies = connection.pipeline(&requests)?;
        if replies
            .iter()
            .any(|reply| reply.bytes.first() != Some(&b'+'))
        {
            return Err(KitError::Unexpected(
                "a SET of the filling failed".to_owned(),
            ));
        }
    }
    Ok(())
}

/// Resident MiB of the empty server, and bytes per key when it is full.
fn memory(contender: &Contender) -> Result<(f64, f64), KitError> {
    let server = Server::start(&contender.program, &contender.arguments)?;
    let empty = resident_bytes(server.process())?;
    let mut per_key = Vec::new();
    // Several counts, so that the moment at which a table doubles favours nobody.
    let mut connection = server.connect()?;
    let mut filled = 0;
    for eighths in 4..=8 {
        let count = MEMORY_KEYS * eighths / 8;
        let start = filled;
        fill(&mut connection, count - start, |number| {
            let number = start + number;
            [
                format!("k{number:015}").into_bytes(),
                format!("v{number:015}").into_bytes(),
            ]
        })?;
        filled = count;
        per_key.push((resident_bytes(server.process())? - empty) as f64 / filled as f64);
    }
    let mean = per_key.iter().sum::<f64>() / per_key.len() as f64;
    Ok((empty as f64 / f64::from(1 << 20), mean))
}

/// Processor time of a process so far, all threads, in microseconds.
pub(crate) fn cpu_us(process: u32) -> Result<u64, KitError> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).map_err(KitError::io(format!("read {path}")))?;
    // The second field, the name, may hold anything; the others follow its last parenthesis.
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |place: usize| {
        fields
            .get(place)
            .and_then(|field| field.parse::<u64>().ok())
            .unwrap_or(0)
    };
    // Fields 14 and 15 of proc(5), user and system time, in hundredths of a second on Linux.
    Ok((ticks(11) + ticks(12)) * 10_000)
}

pub(crate) fn resident_bytes(process: u32) -> Result<u64, KitError> {
    let path = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(&path).map_err(KitError::io(format!("read {path}")))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|line| line.split_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| KitError::Unexpected(format!("{path} tells no VmRSS")))
}
