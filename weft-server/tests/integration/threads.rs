//! INFO tells where the time goes, and what it tells agrees with what happened.

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Client, Server, info_field};

/// The numbers of a line `name=value,name=value`.
fn number(line: &str, name: &str) -> f64 {
    let value = line
        .split(',')
        .find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    value
        .unwrap_or_else(|| panic!("no {name} in {line}"))
        .parse()
        .unwrap()
}

/// All lines of INFO threads that begin with this.
fn lines(client: &mut Client, prefix: &str) -> Vec<String> {
    let info = client.bulk("INFO threads");
    let lines = info.lines().filter(|line| line.starts_with(prefix));
    lines
        .map(|line| line.split_once(':').unwrap().1.to_owned())
        .collect()
}

fn sum(lines: &[String], name: &str) -> f64 {
    lines.iter().map(|line| number(line, name)).sum()
}

const STEPS: [&str; 5] = ["read_us", "parse_us", "execute_us", "encode_us", "write_us"];

/// Four clients that ask one after the other, as fast as they are answered, until told to stop.
fn load(server: &Server, request: &str, reply: &str, time: Duration) -> u64 {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let mut client = server.connect();
                scope.spawn(move || {
                    let start = Instant::now();
                    let mut asked = 0;
                    while start.elapsed() < time {
                        for _ in 0..16 {
                            client.ask(request, reply);
                        }
                        asked += 16;
                    }
                    asked
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    })
}

#[test]
fn under_load_every_step_is_told_and_they_add_up() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.ask("SET key 0123456789", "+OK\r\n");
    client.ask("CONFIG RESETSTAT", "+OK\r\n");
    let start = Instant::now();
    let asked = load(
        &server,
        "GET key",
        "$10\r\n0123456789\r\n",
        Duration::from_millis(1_500),
    );
    let rate = info_field(&mut client, "instantaneous_ops_per_sec");
    let workers = lines(&mut client, "weft_worker_");
    let elapsed_us = start.elapsed().as_micros() as f64;

    for step in STEPS {
        assert!(sum(&workers, step) > 0.0, "{step} in {workers:?}");
    }
    for worker in &workers {
        let told: f64 = STEPS.iter().map(|step| number(worker, step)).sum();
        let whole = told + number(worker, "idle_us");
        assert!(
            (0.8 * elapsed_us..1.2 * elapsed_us).contains(&whole),
            "{whole} of {elapsed_us} in {worker}"
        );
        let percent = 100.0 * told / whole;
        assert!(
            (number(worker, "busy_percent") - percent).abs() < 0.1,
            "{worker}"
        );
    }
    assert!(sum(&workers, "loops") > 100.0, "{workers:?}");
    assert!(sum(&workers, "longest_turn_us") > 0.0, "{workers:?}");
    let batch = workers
        .iter()
        .map(|worker| number(worker, "batch"))
        .fold(0.0, f64::max);
    assert!((1.0..=4.0).contains(&batch), "{workers:?}");

    let asked = asked as f64;
    let threads = lines(&mut client, "io_thread_");
    assert_eq!(sum(&threads, "clients"), 1.0, "{threads:?}");
    for (told, counted) in [
        (sum(&threads, "reads"), asked),
        (sum(&threads, "writes"), asked),
        (rate.parse().unwrap(), asked / 1.5),
    ] {
        assert!(
            (0.7 * counted..1.3 * counted).contains(&told),
            "{told} {counted}"
        );
    }
    let reads: f64 = info_field(&mut client, "total_reads_processed")
        .parse()
        .unwrap();
    assert!((reads - sum(&threads, "reads")).abs() < 10.0);
    for field in ["used_cpu_sys_main_thread", "used_cpu_user_main_thread"] {
        assert!(
            info_field(&mut client, field).parse::<f64>().unwrap() > 0.0,
            "{field}"
        );
    }
}

#[test]
fn rates_fall_to_zero_when_the_load_ends() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    load(&server, "PING", "+PONG\r\n", Duration::from_millis(300));
    let rate = |client: &mut Client| -> u64 {
        info_field(client, "instantaneous_ops_per_sec")
            .parse()
            .unwrap()
    };
    assert!(rate(&mut client) > 50);
    let start = Instant::now();
    // Asking is a load too, if only a few requests per second.
    while rate(&mut client) > 20 {
        assert!(start.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(100));
    }
    assert!(start.elapsed() > Duration::from_secs(1));
}

#[test]
fn a_long_turn_is_told_until_the_reset() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let big = "x".repeat(10_000);
    client.ask(&format!("SET a {big}"), "+OK\r\n");
    client.ask(&format!("SET b {big}"), "+OK\r\n");
    let longest = |client: &mut Client| {
        let workers = lines(client, "weft_worker_");
        workers
            .iter()
            .map(|worker| number(worker, "longest_turn_us"))
            .fold(0.0, f64::max)
    };
    let start = Instant::now();
    client.ask("LCS a b LEN", ":10000\r\n");
    let took_us = start.elapsed().as_micros() as f64;
    // A hundred million cells: at least hundreds of microseconds, however they are counted.
    let told = longest(&mut client);
    assert!(
        told > 300.0 && told < took_us + 50_000.0,
        "{told} of {took_us}"
    );
    client.ask("CONFIG RESETSTAT", "+OK\r\n");
    // Now it is that of the request that was answered with this.
    assert!(longest(&mut client) < told);
}
