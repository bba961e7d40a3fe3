//! The measuring instrument: drives load against Redis-compatible servers and reports what they did.
//!
//! `load` is the engine; it knows no command line and no report. Each mode is a folder that reads its own options, gives the
//! engine a plan and something to send, and prints in its own shape: `redis_benchmark` is redis-benchmark's, `memtier` is
//! memtier_benchmark's, `native` is this program's own; `trace` records and replays; `sweep` starts servers (`server`) and
//! compares their settings, `compare` two results, and `stall` tells how long others wait. Under the name of the program that
//! a mode stands in for, this one is that mode.
#![forbid(unsafe_code)]
// A program has no outside: `pub` is for its other modules.
#![allow(unreachable_pub)]

mod columns;
mod compare;
mod distribution;
mod interrupt;
mod load;
mod memtier;
mod native;
mod numbers;
mod reach;
mod redis_benchmark;
mod server;
mod slots;
mod spelling;
mod stall;
mod statistics;
mod substitute;
mod sweep;
mod tls_settings;
mod trace;
mod uri;
mod words;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: weft-bench <mode> [options]

Modes:
  run                open and closed loops, scripts, key skew, verification; the native mode
  record             what a server's clients send, into a trace
  replay             a trace, at the recorded pace or another
  redis-benchmark    options, tests and output of redis-benchmark
  memtier            options, workloads and output of memtier_benchmark
  sweep              servers with several thread settings under several loads: figures, plots, the best setting
  compare            two results: what changed, how sure that is, an exit status for scripts
  stall              how long others wait while one client runs a slow command

Started as `redis-benchmark` or `memtier_benchmark`, through a link of that name, the program is in that mode.
`weft-bench <mode> --help` lists the mode's options.
";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let arguments: Vec<Vec<u8>> = arguments.map(OsString::into_vec).collect();
    let name = Path::new(&program).file_name().unwrap_or_default();
    match name.as_bytes() {
        b"redis-benchmark" => return redis_benchmark::run(&arguments),
        b"memtier_benchmark" => return memtier::run(&arguments),
        _ => {}
    }
    match arguments.split_first() {
        Some((mode, rest)) if mode == b"run" => native::main(rest),
        Some((mode, rest)) if mode == b"record" => trace::record::main(rest),
        Some((mode, rest)) if mode == b"replay" => trace::replay::main(rest),
        Some((mode, rest)) if mode == b"redis-benchmark" => redis_benchmark::run(rest),
        Some((mode, rest)) if mode == b"memtier" => memtier::run(rest),
        Some((mode, rest)) if mode == b"sweep" => sweep::run(rest),
        Some((mode, rest)) if mode == b"compare" => compare::run(rest),
        Some((mode, rest)) if mode == b"stall" => stall::run(rest),
        Some((mode, rest)) if mode == server::LAUNCHER.as_bytes() => server::launch(rest),
        Some((help, _)) if matches!(&help[..], b"--help" | b"-h" | b"help") => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        Some((version, _)) if matches!(&version[..], b"--version" | b"-V") => {
            println!("weft-bench {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        other => {
            if let Some((mode, _)) = other {
                eprintln!(
                    "weft-bench: no mode is called {:?}\n",
                    mode.escape_ascii().to_string()
                );
            }
            eprint!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}
