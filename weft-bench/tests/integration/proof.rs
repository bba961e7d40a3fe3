//! The drop-in modes tell what happened: against servers of known delays, and beside the tool whose place one takes.
//!
//! A busy machine makes answers late and never early, so that what is compared is the best of several runs.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::native_server::Server;
use crate::program::{PROGRAM, installed, run};

/// How far two figures may be apart.
const TOLERANCE: f64 = 0.05;

/// Runs before a difference is believed.
const ATTEMPTS: usize = 12;

/// So long before an answer is due the server stops sleeping: a sleep may last longer than was asked for.
const AWAKE: Duration = Duration::from_micros(200);

/// Answers each request so long after it has come, to within microseconds.
fn punctual(delay: Duration) -> Server {
    Server::start(move |_, words| {
        let due = Instant::now() + delay;
        thread::sleep(delay.saturating_sub(AWAKE));
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        Some(match &words[0][..] {
            b"CONFIG" => b"*2\r\n$4\r\nsave\r\n$0\r\n\r\n".to_vec(),
            _ => b"+OK\r\n".to_vec(),
        })
    })
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// In a second.
    rate: f64,
    /// Milliseconds.
    average: f64,
    p50: f64,
    p95: f64,
}

impl Figures {
    /// The better one of each.
    fn best(self, other: Figures) -> Figures {
        Figures {
            rate: self.rate.max(other.rate),
            average: self.average.min(other.average),
            p50: self.p50.min(other.p50),
            p95: self.p95.min(other.p95),
        }
    }

    fn agrees(&self, other: &Figures) -> bool {
        let near = |left: f64, right: f64| (left / right - 1.0).abs() <= TOLERANCE;
        near(self.rate, other.rate)
            && near(self.average, other.average)
            && near(self.p50, other.p50)
            && near(self.p95, other.p95)
    }
}

/// redis-benchmark, ours or another: two connections.
fn redis_benchmark(program: &mut Command, server: &Server, requests: u32) -> Figures {
    program.args(["-p", &server.port.to_string(), "-c", "2", "--csv", "-n"]);
    program.args([&requests.to_string(), "PING"]);
    let ended = run(std::mem::replace(program, Command::new("")), "");
    // test, rate, average, least, p50, p95, p99, greatest.
    let line = ended.output.lines().last().unwrap_or_default();
    let cells: Vec<f64> = line
        .split(',')
        .skip(1)
        .filter_map(|cell| cell.trim_matches('"').parse().ok())
        .collect();
    assert_eq!(cells.len(), 7, "{ended:?}");
    Figures {
        rate: cells[0],
        average: cells[1],
        p50: cells[3],
        p95: cells[4],
    }
}

fn ours(server: &Server, requests: u32) -> Figures {
    let mut command = Command::new(PROGRAM);
    command.arg("redis-benchmark");
    redis_benchmark(&mut command, server, requests)
}

/// memtier, ours or another: two connections.
fn memtier(mut program: Command, server: &Server, requests: u32) -> Figures {
    program.args([
        "-p",
        &server.port.to_string(),
        "-c2",
        "-t1",
        "--hide-histogram",
    ]);
    program.args([&format!("--requests={}", requests / 2), "--command=PING"]);
    program.arg("--print-percentiles=50,95");
    let ended = run(program, "");
    // rate, average, p50, p95, KB/sec.
    let line = ended
        .output
        .lines()
        .find_map(|line| line.strip_prefix("Totals"));
    let cells: Vec<f64> = line
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|cell| cell.parse().ok())
        .collect();
    assert_eq!(cells.len(), 5, "{ended:?}");
    Figures {
        rate: cells[0],
        average: cells[1],
        p50: cells[2],
        p95: cells[3],
    }
}

fn our_memtier(server: &Server, requests: u32) -> Figures {
    let mut command = Command::new(PROGRAM);
    command.arg("memtier");
    memtier(command, server, requests)
}

/// Repeats both until their best figures agree.
fn agree(mut left: impl FnMut() -> Figures, mut right: impl FnMut() -> Figures) {
    let (mut one, mut other) = (left(), right());
    for _ in 1..ATTEMPTS {
        if one.agrees(&other) {
            return;
        }
        one = one.best(left());
        other = other.best(right());
    }
    assert!(one.agrees(&other), "{one:?} and {other:?}");
}

/// What two connections must come to when every answer takes so long.
fn known(milliseconds: f64) -> Figures {
    Figures {
        rate: 2000.0 / milliseconds,
        average: milliseconds,
        p50: milliseconds,
        p95: milliseconds,
    }
}

#[test]
fn known_values_are_found() {
    let server = punctual(Duration::from_millis(10));
    agree(|| ours(&server, 40), || known(10.0));
    agree(|| our_memtier(&server, 40), || known(10.0));
}

#[test]
fn the_modes_agree_about_a_millisecond() {
    let server = punctual(Duration::from_millis(1));
    agree(|| ours(&server, 400), || our_memtier(&server, 400));
}

#[test]
fn redis_benchmark_agrees_about_a_millisecond() {
    let Some(theirs) = installed("redis-benchmark") else {
        eprintln!("skipped: no redis-benchmark is installed");
        return;
    };
    beside(&theirs, |program, server| {
        redis_benchmark(&mut Command::new(program), server, 400)
    });
}

#[test]
fn memtier_benchmark_agrees_about_a_millisecond() {
    let Some(theirs) = installed("memtier_benchmark") else {
        eprintln!("skipped: no memtier_benchmark is installed");
        return;
    };
    beside(&theirs, |program, server| {
        memtier(Command::new(program), server, 400)
    });
}

fn beside(theirs: &Path, measure: impl Fn(&Path, &Server) -> Figures) {
    let server = punctual(Duration::from_millis(1));
    agree(|| ours(&server, 400), || measure(theirs, &server));
    agree(|| our_memtier(&server, 400), || measure(theirs, &server));
}
