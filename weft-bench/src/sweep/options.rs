//! The options of a sweep.
//!
//! Owns the command line down to the values. Does not start and does not print anything.

use std::path::PathBuf;
use std::time::Duration;

use weft_os::cpu_list::CpuList;

use super::cell::{Cell, Mix};
use super::presets;
use crate::server::CommandLine;
use crate::words::Words;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: weft-bench sweep --server NAME=COMMAND [options]

Starts servers with several settings of threads, puts several loads on each, and tells what came of it: rates, latencies,
processor time, which setting is the best for which load and what bounds it. Measurements take turns, in another order
every round.

Servers:
  --server NAME=COMMAND   a server's command line; may be repeated. {threads}, {port} and {dir} stand for what differs
                          from start to start; --port and the port are added where {port} is missing
  --threads LIST          what stands for {threads}, such as 1,2,4,auto (default: 1,2,4,8)
  --pin-server CPUS       processors of the servers, such as 0-3,8
  --pin-client CPUS       processors of this program

Loads: each connection count with each pipeline, mix and size
  --connections LIST      default: 50
  --pipeline LIST         default: 1
  --mix MIX               commands and how often each comes, such as set:1,get:9; may be repeated (default: get)
  --size LIST             bytes of a value (default: 100)
  --preset NAME           the loads of a published experiment; may be repeated
  --presets               lists them

Measurements:
  --rounds N              default: 3; fewer than two give no intervals
  --seconds S             of each measurement (default: 5)
  --warm-up S             before it, with the same load (default: 1)
  --keys N                keys there are, up to 256 MiB of values (default: 100000)
  --client-threads N      default: as many as there are processors for, at most one for 16 connections and 4 in all

Results:
  --json FILE             all measurements, for weft-bench compare and for --from
  --html FILE             a page with plots
  --label TEXT            what the page is about
  --from FILE             measures nothing: shows what such a file holds, as a table and with --html as a page
";

/// All values together take at most this much, lest large ones fill the machine.
const VALUES_BYTES_MAX: usize = 256 << 20;

/// So many keys there are at least, however large their values.
const KEYS_MIN: u64 = 100;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `--server`.
    pub servers: Vec<(String, CommandLine)>,
    /// `--threads`.
    pub threads: Vec<String>,
    /// `--pin-server`.
    pub server_processors: Option<String>,
    /// `--pin-client`.
    pub client_processors: Option<CpuList>,
    /// The loads, without repetition.
    pub cells: Vec<Cell>,
    /// `--rounds`.
    pub rounds: usize,
    /// `--seconds`.
    pub measured: Duration,
    /// `--warm-up`.
    pub warm_up: Duration,
    /// `--keys`.
    pub keys: u64,
    /// `--client-threads`.
    pub client_threads: Option<usize>,
    /// `--json`.
    pub json: Option<PathBuf>,
    /// `--html`.
    pub html: Option<PathBuf>,
    /// `--label`.
    pub label: Option<String>,
    /// `--from`.
    pub from: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, PartialEq)]
pub enum Task {
    /// Measure, or show.
    Sweep(Box<Options>),
    /// `--help`.
    Usage,
    /// `--presets`.
    Presets,
}

impl Options {
    /// How many keys there are for a load.
    pub fn keys_of(&self, cell: &Cell) -> u64 {
        let fitting = VALUES_BYTES_MAX / cell.value_bytes.max(1);
        self.keys.min((fitting as u64).max(KEYS_MIN))
    }

    /// How many threads ask.
    pub fn client_threads_of(&self, cell: &Cell, processors: usize) -> usize {
        let fitting = processors.min(4).min(cell.connections.div_ceil(16));
        let wanted = self.client_threads.unwrap_or(fitting);
        wanted.clamp(1, cell.connections.max(1))
    }
}

/// Reads a command line.
///
/// # Errors
/// What is wrong with it.
pub fn parse(arguments: &[Vec<u8>]) -> Result<Task, String> {
    let mut options = Options {
        servers: Vec::new(),
        threads: presets::THREADS.map(str::to_owned).to_vec(),
        server_processors: None,
        client_processors: None,
        cells: Vec::new(),
        rounds: 3,
        measured: Duration::from_secs(5),
        warm_up: Duration::from_secs(1),
        keys: 100_000,
        client_threads: None,
        json: None,
        html: None,
        label: None,
        from: None,
    };
    let (mut connections, mut pipelines, mut sizes) = (None, None, None);
    let mut mixes: Vec<Mix> = Vec::new();
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds);
    let mut words = Words::new(arguments);
    while let Some(name) = words.option()? {
        match &name[..] {
            "--server" => {
                let value = words.value()?;
                options.servers.push(server(&value)?);
            }
            "--threads" => options.threads = threads(&words.value()?)?,
            "--pin-server" => {
                let value = words.value()?;
                CpuList::parse(&value).map_err(|why| format!("--pin-server: {why}"))?;
                options.server_processors = Some(value);
            }
            "--pin-client" => {
                let list = CpuList::parse(&words.value()?);
                options.client_processors =
                    Some(list.map_err(|why| format!("--pin-client: {why}"))?);
            }
            "--connections" => connections = Some(words.numbers(1, CONNECTIONS_MAX)?),
            "--pipeline" => pipelines = Some(words.numbers(1, PIPELINE_MAX)?),
            "--mix" => {
                let mix = Mix::parse(&words.value()?);
                mixes.push(mix.map_err(|why| format!("--mix: {why}"))?);
            }
            "--size" => sizes = Some(words.numbers(1, SIZE_MAX)?),
            "--preset" => {
                let name = words.value()?;
                let cells = presets::cells(&name)
                    .ok_or_else(|| format!("no preset is called '{name}'; --presets lists them"))?;
                options.cells.extend(cells);
            }
            "--rounds" => options.rounds = words.number(1, 1000)?,
            "--seconds" => options.measured = seconds(words.number(0.05, 86_400.0)?),
            "--warm-up" => options.warm_up = seconds(words.number(0.0, 3600.0)?),
            "--keys" => options.keys = words.number(1, 100_000_000)?,
            "--client-threads" => options.client_threads = Some(words.number(1, 256)?),
            "--json" => options.json = Some(PathBuf::from(words.value()?)),
            "--html" => options.html = Some(PathBuf::from(words.value()?)),
            "--label" => options.label = Some(words.value()?),
            "--from" => options.from = Some(PathBuf::from(words.value()?)),
            "--presets" => return Ok(Task::Presets),
            "--help" | "-h" => return Ok(Task::Usage),
            other => return Err(format!("there is no option {other}")),
        }
    }
    let axes = connections.is_some() || pipelines.is_some() || sizes.is_some();
    if axes || !mixes.is_empty() || options.cells.is_empty() {
        if mixes.is_empty() {
            mixes.extend(Mix::parse("get"));
        }
        for mix in &mixes {
            for &value_bytes in &sizes.clone().unwrap_or(vec![100]) {
                for &connections in &connections.clone().unwrap_or(vec![50]) {
                    for &pipeline in &pipelines.clone().unwrap_or(vec![1]) {
                        options.cells.push(Cell {
                            connections,
                            pipeline,
                            mix: mix.clone(),
                            value_bytes,
                        });
                    }
                }
            }
        }
    }
    let mut cells: Vec<Cell> = Vec::new();
    for cell in options.cells {
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    options.cells = cells;
    if options.from.is_none() && options.servers.is_empty() {
        return Err("--server NAME=COMMAND says what to measure".to_owned());
    }
    Ok(Task::Sweep(Box::new(options)))
}

/// What a computer's addresses could carry to one server.
const CONNECTIONS_MAX: usize = 60_000;

const PIPELINE_MAX: u32 = 100_000;

/// What a server takes.
const SIZE_MAX: usize = 512 << 20;

fn server(text: &str) -> Result<(String, CommandLine), String> {
    let (name, command) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
        .ok_or_else(|| format!("--server is NAME=COMMAND, not '{text}'"))?;
    let command = CommandLine::parse(command).map_err(|why| format!("--server {name}: {why}"))?;
    Ok((name.to_owned(), command))
}

fn threads(text: &str) -> Result<Vec<String>, String> {
    let mut threads: Vec<String> = Vec::new();
    for word in text.split(',').map(str::trim) {
        if word.is_empty() {
            return Err(format!(
                "--threads is a list such as 1,2,auto, not '{text}'"
            ));
        }
        if !threads.iter().any(|known| known == word) {
            threads.push(word.to_owned());
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        match parse(&words)? {
            Task::Sweep(options) => Ok(*options),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn axes_are_multiplied() {
        let options = parsed(&[
            "--server",
            "a=srv --io-threads {threads}",
            "--connections=1,50",
            "--mix",
            "get",
            "--mix",
            "set:1,get:9",
            "--size",
            "3,128",
            "--threads",
            "1,auto,1",
        ])
        .unwrap();
        assert_eq!(options.cells.len(), 8);
        assert_eq!(options.cells[0].to_string(), "GET, 3 B, 1 connection");
        assert_eq!(
            options.cells[7].to_string(),
            "SET/GET 1:9, 128 B, 50 connections"
        );
        assert_eq!(options.threads, ["1", "auto"]);
        assert_eq!(options.servers[0].0, "a");
        assert!(options.servers[0].1.takes_threads());
    }

    #[test]
    fn presets_add_up_without_repetition() {
        let options = parsed(&[
            "--server", "a=srv", "--preset", "gets", "--preset", "gets", "--size", "7",
        ])
        .unwrap();
        let names: Vec<String> = options.cells.iter().map(Cell::to_string).collect();
        assert_eq!(
            names,
            [
                "GET, 3 B, 50 connections",
                "GET, 3 B, 400 connections",
                "GET, 3 B, 50 connections, pipeline 16",
                "GET, 7 B, 50 connections",
            ]
        );
    }

    #[test]
    fn large_values_have_fewer_keys() {
        let options = parsed(&["--server", "a=srv", "--size", "100,102400,536870912"]).unwrap();
        let keys: Vec<u64> = options
            .cells
            .iter()
            .map(|cell| options.keys_of(cell))
            .collect();
        assert_eq!(keys, [100_000, 2621, 100]);
        let threads = |processors| options.client_threads_of(&options.cells[0], processors);
        assert_eq!((threads(1), threads(2), threads(64)), (1, 2, 4));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |words: &[&str]| parsed(words).unwrap_err();
        assert_eq!(error(&[]), "--server NAME=COMMAND says what to measure");
        assert_eq!(
            error(&["--server", "x"]),
            "--server is NAME=COMMAND, not 'x'"
        );
        assert_eq!(
            error(&["--preset", "x"]),
            "no preset is called 'x'; --presets lists them"
        );
        assert_eq!(error(&["--fast"]), "there is no option --fast");
        assert!(error(&["--pin-server", "x"]).starts_with("--pin-server: "));
        assert!(error(&["--mix", "x"]).starts_with("--mix: 'x' is none of get, set, "));
        assert_eq!(
            error(&["--size", "0"]),
            "--size is from 1 to 536870912, not '0'"
        );
    }
}
