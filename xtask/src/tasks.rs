//! What each task consists of.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::deb;
use crate::report::Report;
use crate::stage::{self, Counts, Outcome};
use crate::tidy;

/// The profile that CI builds and tests with.
const PROFILE: &str = "ci";
/// Random requests per family and door in every CI run.
const REQUESTS_PER_FAMILY: &str = "10000";
/// What concurrent histories are recorded from in every CI run: seconds of load, the driver, and how the server is told to
/// behave.
const HISTORIES: &[(&str, &str, &[&str])] = &[
    ("12", "auto", &["--migrate"]),
    ("12", "epoll", &["--migrate"]),
    ("12", "auto", &["--pauses", "1"]),
    ("12", "epoll", &["--pauses", "2", "--migrate"]),
    ("8", "auto", &["--pauses", "3", "--break-latch", "20"]),
];
/// The server that pauses at random at latches and gates.
const PAUSED: &str = "weft-server-paused";
/// Storms of connections in every CI run. The rate is one that a busy machine of 2 cores reaches.
const STORM: &str = "storm --seconds 1 --rate 2000 --working 20";
/// Storms in one pass of a soak.
const SOAK_STORM: &str = "storm --seconds 10 --rate 10000";
/// Requests per family of one pass of a soak.
const SOAK_REQUESTS_PER_FAMILY: &str = "100000";
/// Seconds of load for each kind of concurrent history in one pass of a soak.
const SOAK_SECONDS: &str = "60";

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The test kit as the build stage made it.
fn kit(arguments: &[&str]) -> Command {
    kit_of(PROFILE, arguments)
}

fn kit_of(profile: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(target().join(profile).join("weft-testkit"));
    command.args(arguments).current_dir(root());
    command
}

pub(crate) fn ci() -> bool {
    let mut report = Report::new(true);
    report.add(stage::run(
        "format",
        &mut cargo(&["fmt", "--all", "--check"]),
    ));
    report.add(tidy_stage());
    let lints = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--profile",
        PROFILE,
        "--quiet",
        "--",
        "-D",
        "warnings",
    ];
    report.add(stage::run("lints", &mut cargo(&lints)));
    tests(&mut report);
    report.finish()
}

pub(crate) fn test() -> bool {
    let mut report = Report::new(false);
    tests(&mut report);
    report.finish()
}

/// `auto` is io_uring wherever that is allowed.
const DRIVERS: [&str; 2] = ["auto", "epoll"];

/// Build, unit tests, cases, random runs, clients. Nothing that follows the build makes sense without it.
fn tests(report: &mut Report) {
    if !build(report) {
        return;
    }
    report.add(stage::run("pages", &mut kit(&["pages", "--check"])));
    if !report.add(stage::run("build tests", &mut unit(WORKSPACE, true))) {
        return;
    }
    report.add(stage::run("unit", &mut unit(WORKSPACE, false)));
    report.add(stage::run("other driver", &mut other_driver()));
    report.add(loom());
    report.add(stage::run("oracles", &mut kit(&["oracles"])));
    report.add(stage::run("command docs", &mut kit(&["command-docs"])));
    for driver in DRIVERS {
        for (name, words) in [
            ("cases", ["cases"].as_slice()),
            (
                "differential",
                &["differential", "--count", REQUESTS_PER_FAMILY],
            ),
            ("streams", &["streams"]),
            ("clients", &["clients", "--strict"]),
        ] {
            let mut kit = kit(words);
            kit.args(["--subject-arg", "--io-driver", "--subject-arg", driver]);
            report.add(stage::run(name, &mut kit));
        }
    }
    for driver in DRIVERS {
        report.add(storm(driver, STORM));
    }
    report.add(stage::run("exporter", &mut kit(&["exporter"])));
    for (seconds, driver, manner) in HISTORIES {
        report.add(histories(seconds, driver, "1", manner));
    }
    // Whether the measuring tools work, not what they measure: one round has no interval, and any rise is allowed.
    let threads = "threads --io-threads 2 --connections 4 --pipeline 16 --keys 1000 --window 0.1 --max-rounds 1";
    let fairness = "fairness --keys 1000 --window 0.3 --rounds 1 --bound-ms 60000";
    for (name, line) in [("threads", threads), ("fairness", fairness)] {
        let words: Vec<&str> = line.split(' ').collect();
        report.add(stage::run(name, &mut kit(&words)));
    }
}

/// All programs, and before them the server that pauses, which is kept under another name.
fn build(report: &mut Report) -> bool {
    let mut paused = cargo(&["build", "--package", "weft-server", "--features", "pauses"]);
    paused.args(["--profile", PROFILE, "--quiet"]);
    let built = report.add(stage::run("paused server", &mut paused));
    let folder = target().join(PROFILE);
    let kept = built && std::fs::copy(folder.join("weft-server"), folder.join(PAUSED)).is_ok();
    if built && !kept {
        println!("cannot copy {}", folder.join("weft-server").display());
    }
    let mut all = cargo(&["build", "--workspace", "--bins", "--profile", PROFILE]);
    report.add(stage::run("build", all.arg("--quiet"))) && kept
}

/// Concurrent histories of four active workers; the server that pauses is the subject where pauses are asked for.
fn histories(seconds: &str, driver: &str, seed: &str, manner: &[&str]) -> Outcome {
    let mut command = kit(&["histories", "--seconds", seconds, "--seed", seed]);
    command.args(["--workers", "4", "--subject-arg", "--io-driver"]);
    command.args(["--subject-arg", driver]).args(manner);
    if manner.contains(&"--pauses") {
        let subject = target().join(PROFILE).join(PAUSED);
        command.arg("--subject").arg(subject);
    }
    stage::run("histories", &mut command)
}

/// Connections that come and go, and what is left of them.
fn storm(driver: &str, line: &str) -> Outcome {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = kit(&words);
    command.args(["--subject-arg", "--io-driver", "--subject-arg", driver]);
    stage::run("storm", &mut command)
}

const WORKSPACE: &[&str] = &["--workspace"];

/// Unit and integration tests of `scope`, by nextest where it is installed; `build` only compiles them.
fn unit(scope: &[&str], build: bool) -> Command {
    let nextest = cargo(&["nextest", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    let mut command = if nextest {
        cargo(&["nextest", "run", "--cargo-profile", PROFILE])
    } else {
        cargo(&["test", "--profile", PROFILE])
    };
    command.args(scope);
    match (nextest, build) {
        (_, true) => command.arg("--no-run"),
        (true, false) => command.args([
            "--no-fail-fast",
            "--status-level",
            "fail",
            "--final-status-level",
            "slow",
            "--show-progress",
            "none",
        ]),
        (false, false) => command.args(["--no-fail-fast", "--quiet"]),
    };
    command
}

/// The server's tests once more, with the driver that it does not choose by itself.
fn other_driver() -> Command {
    let mut command = unit(&["-p", "weft-server", "--test", "integration"], false);
    command.env("WEFT_TEST_IO_DRIVER", "epoll");
    command
}

/// The models of lock-free code: the crates that have some are compiled once more, with loom's atomics.
fn loom() -> Outcome {
    let mut command = cargo(&["test", "--profile", PROFILE, "--lib", "--quiet"]);
    for name in tidy::crates_with_loom(&root()) {
        command.args(["-p", &name]);
    }
    // What is no model cannot run on loom's atomics.
    command.args(["--", "model", "loom"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target().join("loom"));
    stage::run("loom", &mut command)
}

fn tidy_stage() -> Outcome {
    println!("\n== tidy");
    let start = Instant::now();
    let (checks, complaints) = tidy::check(&root());
    complaints
        .iter()
        .for_each(|complaint| println!("{complaint}"));
    let failed = complaints.len();
    println!("tidy: {checks} files looked at, {failed} complaints");
    Outcome {
        name: "tidy",
        succeeded: failed == 0,
        missing: false,
        counts: Counts {
            passed: 0,
            failed,
            skipped: 0,
        },
        elapsed: start.elapsed(),
    }
}

pub(crate) fn tidy_alone() -> bool {
    let tidy = tidy_stage().succeeded;
    let pages = kit_after_build(PROFILE, &["pages", "--check"]);
    tidy && pages
}

pub(crate) fn pages() -> bool {
    kit_after_build(PROFILE, &["pages"])
}

fn kit_after_build(profile: &str, arguments: &[&str]) -> bool {
    let build = [
        "build",
        "--workspace",
        "--bins",
        "--profile",
        profile,
        "--quiet",
    ];
    stage::run("build", &mut cargo(&build)).succeeded
        && stage::run("kit", &mut kit_of(profile, arguments)).succeeded
}

/// Builds what is shipped; the folder of the programs, if that worked.
fn build_programs(profile: &str) -> Option<PathBuf> {
    let build = [
        "build",
        "--profile",
        profile,
        "--quiet",
        "-p",
        "weft-server",
        "-p",
        "weft-bench",
    ];
    let built = stage::run("build", &mut cargo(&build)).succeeded;
    built.then(|| target().join(profile))
}

/// The package of programs that were built with this profile.
pub(crate) fn deb(profile: &str) -> bool {
    let Some(programs) = build_programs(profile) else {
        return false;
    };
    match deb::package(&root(), &programs, &target().join("debian")) {
        Ok(package) => {
            println!("{}", package.display());
            true
        }
        Err(error) => {
            println!("deb: {error}");
            false
        }
    }
}

pub(crate) fn links(folder: &str) -> bool {
    let Some(programs) = build_programs("release") else {
        return false;
    };
    match deb::links(Path::new(folder), &programs) {
        Ok(()) => true,
        Err(error) => {
            println!("{folder}: {error}");
            false
        }
    }
}

pub(crate) fn bench(names: &[&str]) -> bool {
    let mut benches = cargo(&["bench", "--workspace", "--benches", "--quiet"]);
    if let [name] = names {
        benches.args(["--", name]);
    }
    let benches = stage::run("benches", &mut benches).succeeded;
    benches && kit_after_build("release", &["throughput"])
}

pub(crate) fn soak(minutes: u64) -> bool {
    let mut report = Report::new(true);
    if !build(&mut report) {
        return report.finish();
    }
    let end = Instant::now() + std::time::Duration::from_secs(minutes * 60);
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let mut seed = since.as_secs();
    while Instant::now() < end {
        let arguments = [
            "differential",
            "--count",
            SOAK_REQUESTS_PER_FAMILY,
            "--seed",
            &seed.to_string(),
        ];
        report.add(stage::run("differential", &mut kit(&arguments)));
        for driver in DRIVERS {
            report.add(storm(driver, SOAK_STORM));
        }
        for (_, driver, manner) in HISTORIES {
            if !manner.contains(&"--break-latch") {
                report.add(histories(SOAK_SECONDS, driver, &seed.to_string(), manner));
            }
        }
        seed += 1;
    }
    fuzz(minutes, &mut report);
    report.finish()
}

/// Each fuzz target for its share of the minutes.
fn fuzz(minutes: u64, report: &mut Report) {
    let list = cargo(&["fuzz", "list"])
        .env("RUSTC_BOOTSTRAP", "1")
        .output();
    let Some(list) = list.ok().filter(|output| output.status.success()) else {
        println!(
            "the fuzz targets are left out: cargo-fuzz is not installed (`cargo install cargo-fuzz`)"
        );
        return;
    };
    let targets: Vec<String> = String::from_utf8_lossy(&list.stdout)
        .lines()
        .map(str::to_owned)
        .collect();
    let seconds = minutes * 60 / targets.len().max(1) as u64;
    for target in targets {
        let time = format!("-max_total_time={seconds}");
        let mut command = cargo(&["fuzz", "run", &target, "--", &time, "-rss_limit_mb=2048"]);
        // The sanitizers' flags are admitted on a stable compiler by this variable alone.
        command.env("RUSTC_BOOTSTRAP", "1");
        report.add(stage::run("fuzz", &mut command));
    }
}
