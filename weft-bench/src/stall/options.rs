//! The options of a stall's measurement.
//!
//! Owns the command line down to the values. Does not connect.

use std::path::PathBuf;
use std::time::Duration;

use crate::server::{CommandLine, split_words};
use crate::words::Words;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: weft-bench stall --run COMMAND [options]

How long other clients wait while one client runs a command over and over: latencies of light traffic, sent by the clock
and measured from the intended time, (1) with nothing else, (2) while the command runs, (3) while threads of this program
burn as much processor time as (2) took, without talking to the server. What (2) adds to (3) is the server's doing.

  --run COMMAND           the command; may be repeated
  --slow                  a set of slow commands on the data of --fill
  -h HOST, -p PORT        a running server (default: 127.0.0.1, 6379)
  --server COMMAND        or a command line that starts one; {threads}, {port} and {dir} as in weft-bench sweep
  --threads N             what stands for {threads} (default: 1)
  --pin-server CPUS       processors of a server that is started
  --fill N                N string keys, and a hash, two sets, a sorted set and a list of N/2 members: bighash, s1, s2, z1, l1

  --command COMMAND       the light traffic; {key} is one of the keys (default: GET {key})
  --rate N                its requests a second (default: 1000)
  --connections N         default: 1
  --keys N                default: what --fill says, else 100000
  --seconds S             of each measurement (default: 5)
  --rounds N              default: 3
  --control-cores C       what (3) burns, in processors (default: what (2) took)

  --max-added-p999 MS     exit status 1 if a command adds more to the 99.9th percentile (median of the rounds)
  --json FILE             all measurements

Exit status: 0; 1 beyond the bound; 2 a measurement failed.
";

/// The slow commands of `--slow`.
pub const SLOW: [&str; 11] = [
    "KEYS *",
    "KEYS nomatch*",
    "HGETALL bighash",
    "SMEMBERS s1",
    "LRANGE l1 0 -1",
    "ZRANGE z1 0 -1 WITHSCORES",
    "SINTERSTORE dst s1 s2",
    "ZUNIONSTORE dst2 2 z1 s2",
    "SORT s1 ALPHA LIMIT 0 10",
    "EVAL 'local x=0 for i=1,2e7 do x=x+i end return 1' 0",
    "EVAL 'return pcall(function() local x=0 for i=1,2e7 do x=x+i end return 1 end) and 1' 0",
];

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `--run` and `--slow`: as written, and in words.
    pub commands: Vec<(String, Vec<String>)>,
    /// `-h` and `-p`.
    pub target: (String, u16),
    /// `--server`.
    pub server: Option<CommandLine>,
    /// `--threads`.
    pub threads: String,
    /// `--pin-server`.
    pub server_processors: Option<String>,
    /// `--fill`.
    pub fill: u64,
    /// `--command`.
    pub light: String,
    /// `--rate`.
    pub rate: f64,
    /// `--connections`.
    pub connections: usize,
    /// `--keys`.
    pub keys: u64,
    /// `--seconds`.
    pub measured: Duration,
    /// `--rounds`.
    pub rounds: usize,
    /// `--control-cores`.
    pub control_cores: Option<f64>,
    /// `--max-added-p999`, in milliseconds.
    pub added_p999_ms_max: Option<f64>,
    /// `--json`.
    pub json: Option<PathBuf>,
}

/// Reads a command line. `None`: `--help`.
///
/// # Errors
/// What is wrong with it.
pub fn parse(arguments: &[Vec<u8>]) -> Result<Option<Options>, String> {
    let mut options = Options {
        commands: Vec::new(),
        target: ("127.0.0.1".to_owned(), 6379),
        server: None,
        threads: "1".to_owned(),
        server_processors: None,
        fill: 0,
        light: "GET {key}".to_owned(),
        rate: 1000.0,
        connections: 1,
        keys: 0,
        measured: Duration::from_secs(5),
        rounds: 3,
        control_cores: None,
        added_p999_ms_max: None,
        json: None,
    };
    let mut lines: Vec<String> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(name) = words.option()? {
        match &name[..] {
            "--run" => lines.push(words.value()?),
            "--slow" => lines.extend(SLOW.map(str::to_owned)),
            "-h" | "--host" => options.target.0 = words.value()?,
            "-p" | "--port" => options.target.1 = words.number(1, u16::MAX)?,
            "--server" => {
                let command = CommandLine::parse(&words.value()?);
                options.server = Some(command.map_err(|why| format!("--server: {why}"))?);
            }
            "--threads" => options.threads = words.value()?,
            "--pin-server" => options.server_processors = Some(words.value()?),
            "--fill" => options.fill = words.number(2, 1_000_000_000)?,
            "--command" => options.light = words.value()?,
            "--rate" => options.rate = words.number(0.1, 10_000_000.0)?,
            "--connections" => options.connections = words.number(1, 60_000)?,
            "--keys" => options.keys = words.number(1, u64::MAX)?,
            "--seconds" => {
                options.measured = Duration::from_secs_f64(words.number(0.05, 86_400.0)?);
            }
            "--rounds" => options.rounds = words.number(1, 1000)?,
            "--control-cores" => options.control_cores = Some(words.number(0.0, 1024.0)?),
            "--max-added-p999" => {
                options.added_p999_ms_max = Some(words.number(0.0, 3_600_000.0)?);
            }
            "--json" => options.json = Some(PathBuf::from(words.value()?)),
            "--help" => return Ok(None),
            other => return Err(format!("there is no option {other}")),
        }
    }
    for line in lines {
        let command = split_words(&line)?;
        if command.is_empty() {
            return Err("--run needs a command".to_owned());
        }
        options.commands.push((line, command));
    }
    if options.commands.is_empty() {
        return Err("--run says which command may stall others".to_owned());
    }
    if options.keys == 0 {
        options.keys = if options.fill > 0 {
            options.fill
        } else {
            100_000
        };
    }
    Ok(Some(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Ok(parse(&words)?.expect("no help is asked for"))
    }

    #[test]
    fn commands_are_split_into_words() {
        let options = parsed(&["--run", "EVAL 'return 1' 0", "--fill", "1000"]).unwrap();
        let (text, words) = &options.commands[0];
        assert_eq!(text, "EVAL 'return 1' 0");
        assert_eq!(words[..], ["EVAL", "return 1", "0"]);
        assert_eq!((options.keys, options.rate), (1000, 1000.0));
        let slow = parsed(&["--slow", "--run=PING"]).unwrap();
        assert_eq!(slow.commands.len(), 12);
        assert_eq!(slow.commands[9].1.len(), 3);
        assert_eq!(slow.keys, 100_000);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |words: &[&str]| parsed(words).unwrap_err();
        assert_eq!(error(&[]), "--run says which command may stall others");
        assert_eq!(error(&["--run", ""]), "--run needs a command");
        assert_eq!(error(&["--run", "'"]), "a ' is not closed in: '");
        assert_eq!(
            error(&["--port", "0"]),
            "--port is from 1 to 65535, not '0'"
        );
    }
}
