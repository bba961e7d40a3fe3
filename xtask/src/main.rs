//! The project's own tasks: what CI runs and what a person runs are the same commands.
//!
//! It builds nothing of the product itself and depends on no crate: it calls cargo and the test kit, times the stages,
//! adds up what passed and failed, and checks by itself what concerns the tree as a whole (`tidy`).

#![forbid(unsafe_code)]

mod deb;
mod report;
mod stage;
mod tasks;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask TASK

  ci                 everything that CI runs: format, tidy, lints, build, unit tests, cases, differential runs, histories, clients
  test               build and all tests, with what can be had on this machine
  tidy               layering, names, headers, unsafe, stale pages
  pages              write the pages and the sample file that are made from tables
  deb [PROFILE]      build a Debian package of the server and the benchmark, under target/debian (of the profile release)
  links FOLDER       make links there that call the programs redis-server, redis-benchmark and memtier_benchmark
  bench [NAME]       the crates' benchmarks, then throughput against the reference
  soak [MINUTES]     differential runs and concurrent histories with ever new seeds, then the fuzz targets, for so long each (10)
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let passed = match words.as_slice() {
        ["ci"] => tasks::ci(),
        ["test"] => tasks::test(),
        ["tidy"] => tasks::tidy_alone(),
        ["pages"] => tasks::pages(),
        ["deb"] => tasks::deb("release"),
        ["deb", profile] => tasks::deb(profile),
        ["links", folder] => tasks::links(folder),
        ["bench", names @ ..] => tasks::bench(names),
        ["soak"] => tasks::soak(10),
        ["soak", minutes] if minutes.parse::<u64>().is_ok() => {
            tasks::soak(minutes.parse().unwrap_or(10))
        }
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
