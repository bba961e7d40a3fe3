//! The mode that stands in for redis-benchmark: the same shapes as redis-benchmark 7.0.15, as recorded in `golden`.
//!
//! With RECORD_GOLDEN=1 the test asks the installed redis-benchmark again and writes the file.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::program::{Ended, PROGRAM, installed, redis_benchmark, run};
use crate::scripted::{Script, Scripted};
use crate::shape::shape;

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/integration/redis_benchmark.golden"
);

/// Command lines and the server they meet. `SOCKET` stands for its Unix socket.
const LINES: &[(Script, &str)] = &[
    (Script::Plain, "-n 100 -t get"),
    (Script::Plain, "-n 100 -t get -q"),
    (Script::Plain, "-n 100 -t set,get --csv"),
    (Script::Plain, "-n 100 -t set,get --csv -q"),
    (
        Script::Plain,
        "-n 100 -q -t ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset",
    ),
    (
        Script::Plain,
        "-n 100 --csv -t ping_inline,ping_mbulk,lrange_100,lrange_300,lrange_500,lrange_600",
    ),
    (Script::Plain, "-n 100 -q -t lrange_450,ping_bulk"),
    (Script::Plain, "-n 100 -t foo"),
    (Script::Plain, "-n 100 -t foo --csv"),
    (Script::Plain, "-n 100 -t GET,foo -q"),
    (Script::Plain, "-n 1000 -c 5 -P 16 --threads 2 -t get"),
    (Script::Plain, "-n 100 -c 3 --threads 5 -t get"),
    (Script::Plain, "-n 100 -c 3 --threads 600 -t get -q"),
    (Script::Plain, "-n 5 -c 2 -P 2 -t get"),
    (Script::Plain, "-n 100 -P 0 -c 0 -d 0 -t set"),
    (Script::Plain, "-n 100 -d 1000 -t set"),
    (Script::Plain, "-n 100 -r 100 -t set,zadd -q"),
    (Script::Plain, "-n 100 -r 0 -t set -q"),
    (Script::Plain, "-n 1e2 -c 5x -t get"),
    (Script::Plain, "-n 100 -k 0 -t get"),
    (Script::Plain, "-n 100 -k 0 -P 3 --threads 2 -t get -q"),
    (Script::Plain, "-n 100 -e -t get -q"),
    (
        Script::Plain,
        "-n 100 -3 --enable-tracking --dbnum 4 -a pass --user me -t get",
    ),
    (Script::Plain, "-n 100 -s SOCKET -t get"),
    (Script::Plain, "-n 100 lpush x __rand_int__"),
    (Script::Plain, "-n 100 -q -r 10 lpush x __rand_int__ -q"),
    (Script::Plain, "-n 100 --csv set x y"),
    (Script::Plain, "-n 100 -x set x"),
    (Script::Plain, "-n 100 -q fail"),
    (Script::Plain, "-n 100 --csv fail"),
    (Script::Plain, "-u foo -t get"),
    (Script::Plain, "--cluster -n 100 -t get"),
    (Script::Plain, "-s /does/not/exist -t get"),
    (Script::Errors, "-n 100 -c 2 -t set"),
    (Script::Errors, "-n 100 -c 4 --threads 2 -t set -q"),
    (Script::Closes, "-n 100 -c 2 -t set"),
    (Script::Garbage, "-n 100 -c 2 -t set -q"),
    (Script::Noise, "-n 100 -c 2 -t set -q"),
    (Script::Locked, "-n 100 -t get"),
    (Script::Locked, "-n 100 -t get -a pass"),
    (Script::NoConfig, "-n 100 -c 2 -t get"),
    (Script::NoConfig, "-n 100 -c 2 --threads 2 -t get"),
    (Script::NoDatabases, "-n 100 --dbnum 99 -t get -q"),
    (Script::Cluster, "--cluster -n 100 -t get"),
    (Script::Cluster, "--cluster -n 100 -t get,mset -q"),
    (
        Script::Cluster,
        "--cluster -n 100 --csv --threads 3 get x{tag}",
    ),
    (Script::Slow(3), "-n 20 -c 2 -t get --precision 1"),
];

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// What running `command` for this line leaves behind, as a section of the file.
fn section(script: Script, line: &str, command: impl Fn(&[String]) -> Command) -> String {
    let server = Scripted::start(script);
    let socket = server.socket().display().to_string();
    let mut arguments = vec!["-p".to_owned(), server.port.to_string()];
    arguments.extend(words(&line.replace("SOCKET", &socket)));
    let ended = run(command(&arguments), "from standard input");
    let mut section = format!("### {script:?}: {line}\n");
    let code = ended.code.unwrap();
    for (name, text) in [("output", ended.output), ("errors", ended.errors)] {
        let text = shape(&text.replace(&socket, "SOCKET"));
        write!(section, "--- {name}\n{text}\n").unwrap();
    }
    writeln!(section, "--- code {code}").unwrap();
    section
}

/// The recorded section for this line.
fn recorded<'a>(golden: &'a str, script: Script, line: &str) -> &'a str {
    let head = format!("### {script:?}: {line}\n");
    let start = golden
        .find(&head)
        .unwrap_or_else(|| panic!("{head} is not recorded"));
    let end = golden[start + 1..]
        .find("\n### ")
        .map_or(golden.len(), |end| start + 1 + end + 1);
    &golden[start..end]
}

#[test]
fn reports_have_the_shapes_of_redis_benchmarks() {
    if std::env::var_os("RECORD_GOLDEN").is_some() {
        let peer = installed("redis-benchmark").expect("redis-benchmark is installed");
        let recorded: String = LINES
            .iter()
            .map(|(script, line)| {
                section(*script, line, |arguments| {
                    let mut command = Command::new(&peer);
                    command.args(arguments);
                    command
                })
            })
            .collect();
        std::fs::write(GOLDEN, recorded).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    let mut different = String::new();
    for (script, line) in LINES {
        let expected = recorded(&golden, *script, line);
        let ours = section(*script, line, redis_benchmark);
        if ours != expected {
            write!(different, "{ours}\ninstead of\n{expected}\n").unwrap();
        }
    }
    assert!(different.is_empty(), "{different}");
}

fn with_port(server: &Scripted, line: &str) -> Vec<String> {
    let mut arguments = vec!["-p".to_owned(), server.port.to_string()];
    arguments.extend(words(line));
    arguments
}

fn measured(server: &Scripted, line: &str) -> Ended {
    let ended = run(redis_benchmark(&with_port(server, line)), "");
    assert_eq!(ended.code, Some(0), "{line}: {}", ended.errors);
    let mut errors = ended.errors.lines();
    assert!(
        errors.all(|line| line.starts_with("WARNING: Keepalive")),
        "{line}: {}",
        ended.errors
    );
    ended
}

/// The columns of the only line of CSV: rate, average, least, median, 95th, 99th, greatest.
fn columns(server: &Scripted, line: &str) -> Vec<f64> {
    let ended = measured(server, line);
    let [_, row] = ended.output.lines().collect::<Vec<_>>()[..] else {
        panic!("not two lines: {}", ended.output);
    };
    row.split(',')
        .skip(1)
        .map(|column| column.trim_matches('"').parse().unwrap())
        .collect()
}

#[test]
fn the_name_of_the_program_selects_the_mode() {
    let mut command = Command::new(PROGRAM);
    command.arg0("/usr/bin/redis-benchmark").arg("--version");
    let version = run(command, "");
    assert_eq!(
        version.output,
        format!(
            "redis-benchmark 8.2.3 (weft-bench {})\n",
            env!("CARGO_PKG_VERSION")
        )
    );
    let wrong = run(redis_benchmark(&words("-zz")), "");
    assert_eq!(wrong.code, Some(1));
    let first = "Invalid option \"-zz\" or option argument missing\n\nUsage: redis-benchmark [OPTIONS] [COMMAND ARGS...]\n";
    assert!(wrong.output.starts_with(first), "{}", wrong.output);
    let help = run(redis_benchmark(&words("--help")), "");
    assert_eq!(help.code, Some(0));
    assert_eq!(help.output, wrong.output[first.find("Usage").unwrap()..]);
}

#[test]
fn connections_begin_with_who_they_are() {
    let server = Scripted::start(Script::Plain);
    measured(
        &server,
        "-q -n 2 -c 1 -P 2 -d 8 -3 --enable-tracking --dbnum 4 -a pass --user me get k",
    );
    assert_eq!(
        server.received(),
        [
            "AUTH me pass",
            "CONFIG GET save",
            "CONFIG GET appendonly",
            "AUTH me pass",
            "CLIENT TRACKING on",
            "SELECT 4",
            "HELLO 3",
            "get k",
            "get k"
        ]
    );
}

#[test]
fn exactly_the_requests_asked_for_are_sent() {
    for (line, expected) in [
        ("-q -n 1000 -c 7 get k", 1000),
        ("-q -n 1000 -c 7 --threads 3 get k", 1000),
        ("-q -n 1000 -c 7 -P 16 --threads 3 get k", 1008),
        ("-q -n 100 -c 7 -k 0 --threads 3 get k", 100),
        ("-q -n 5 -c 50 get k", 5),
        ("-q -n 1 -c 5 --threads 5 -P 3 -k 0 get k", 3),
    ] {
        let server = Scripted::start(Script::Plain);
        measured(&server, line);
        let received = server.received();
        assert_eq!(
            received
                .iter()
                .filter(|request| *request == "get k")
                .count(),
            expected,
            "{line}"
        );
        assert_eq!(received.len(), expected + 2, "{line}");
    }
}

#[test]
fn random_numbers_stay_below_the_length_and_follow_the_seed() {
    let numbers = |seed: &str| {
        let server = Scripted::start(Script::Plain);
        measured(
            &server,
            &format!("-q -n 200 -c 1 -r 10 --seed {seed} set k:__rand_int__ __rand_int__"),
        );
        let mut requests = server.received();
        requests.drain(..2);
        requests
    };
    let first = numbers("1");
    assert_eq!(first.len(), 200);
    let mut seen = [false; 10];
    for request in &first {
        let [name, key, value] = request.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{request}");
        };
        assert_eq!(name, "set");
        for text in [key.strip_prefix("k:").unwrap(), value] {
            assert_eq!(text.len(), 12);
            seen[text.parse::<usize>().unwrap()] = true;
        }
    }
    assert_eq!(seen, [true; 10]);
    assert_eq!(first, numbers("1"));
    assert_ne!(first, numbers("2"));
}

#[test]
fn streams_have_a_test() {
    let server = Scripted::start(Script::Plain);
    let ended = measured(&server, "-n 10 -c 1 -d 4 --seed 1 --csv -t xadd");
    assert!(ended.output.contains("\n\"XADD\",\""), "{}", ended.output);
    let request = server.received().pop().unwrap();
    let value = request.strip_prefix("XADD mystream * myfield ").unwrap();
    assert_eq!(value.len(), 4);
}

#[test]
fn a_known_delay_is_what_is_measured() {
    let server = Scripted::start(Script::Slow(20));
    let [rate, average, least, median, p95, p99, greatest] =
        columns(&server, "--csv -n 100 -c 5 -P 2 get k")[..]
    else {
        panic!("seven columns");
    };
    // A step of the histogram below 20 ms.
    for latency in [average, least, median, p95, p99, greatest] {
        assert!(latency >= 19.9, "{latency} ms");
    }
    assert!(median < 40.0, "{median} ms");
    assert!(least <= median && median <= p95 && p95 <= p99 && p99 <= greatest);
    // Five connections, two requests at a time.
    assert!(rate <= 500.0 && rate > 250.0, "{rate} per second");
}

#[test]
fn a_test_ends_with_its_last_answer() {
    let server = Scripted::start(Script::Plain);
    // Ended at a quarter of a second, this would be 40 per second.
    let best = (0..5)
        .map(|_| columns(&server, "--csv -n 10 -c 10 --threads 2 get k")[0])
        .fold(0.0, f64::max);
    assert!(best > 100.0, "{best} per second");
}

#[test]
fn progress_is_shown_in_place() {
    let server = Scripted::start(Script::Slow(100));
    let ended = measured(&server, "-q -n 6 -c 1 get k");
    let parts: Vec<&str> = ended.output.split('\r').collect();
    let [blank, first, .., wiped, last] = &parts[..] else {
        panic!("{parts:?}");
    };
    assert_eq!(*blank, " ");
    assert_eq!(
        *first,
        "get k: rps=0.0 (overall: 0.0) avg_msec=-nan (overall: -nan)"
    );
    // At about 0.25 and 0.5 seconds.
    assert!(parts.len() >= 8, "{parts:?}");
    assert_eq!(wiped.trim(), "");
    assert_eq!(wiped.len(), parts[parts.len() - 3].len() + 1);
    assert!(last.starts_with("get k: ") && last.ends_with(" msec\n"));
    assert!(
        parts[3].starts_with("get k: rps=") && parts[3].contains(" avg_msec=1"),
        "{parts:?}"
    );
}

#[test]
fn the_tests_are_repeated_until_interrupted() {
    for (line, expected) in [
        (
            "-l --csv -n 10 -t set,get",
            ["\"test\"", "\"SET\"", "\"GET\"", "\"SET\"", "\"GET\""],
        ),
        (
            "-l --csv -n 10 get k",
            [
                "\"test\"",
                "\"get k\"",
                "\"get k\"",
                "\"get k\"",
                "\"get k\"",
            ],
        ),
    ] {
        let server = Scripted::start(Script::Plain);
        let mut child = redis_benchmark(&with_port(&server, line))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for (line, expected) in lines.zip(expected) {
            let line = line.unwrap();
            assert!(line.starts_with(expected), "{line} instead of {expected}");
        }
        // Its output ends at an unfinished line, now that nobody reads it: that ends the program too.
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(1));
    }
}

#[test]
fn idle_connections_are_counted() {
    let server = Scripted::start(Script::Plain);
    let mut child = redis_benchmark(&with_port(&server, "-I -c 5"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = Vec::new();
    output.read_until(b'\n', &mut text).unwrap();
    output.read_until(b'\r', &mut text).unwrap();
    output.read_until(b'\r', &mut text).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "Creating 5 idle connections and waiting forever (Ctrl+C when done)\nclients: 5\rclients: 5\r"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        server.received(),
        ["CONFIG GET save", "CONFIG GET appendonly"]
    );
}

#[test]
fn a_server_that_is_not_there_ends_the_program() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let refused = format!("Could not connect to Redis at 127.0.0.1:{port}: Connection refused\n");
    let ended = run(redis_benchmark(&words(&format!("-p {port} -t get"))), "");
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.output, "");
    assert_eq!(
        ended.errors,
        format!("{refused}WARNING: Could not fetch server CONFIG\n{refused}")
    );
    let tls = run(
        redis_benchmark(&words("--tls --cacert /nonexistent -t get")),
        "",
    );
    assert_eq!(
        (tls.code, tls.errors.as_str()),
        (
            Some(1),
            "/nonexistent: No such file or directory (os error 2)\n"
        )
    );
}

#[test]
fn large_values_arrive_whole() {
    let server = Scripted::start(Script::Plain);
    measured(&server, "-q -n 6 -c 2 -P 3 -d 300000 -r 10 -t set");
    let received = server.received();
    let mut values = received.iter().filter_map(|request| {
        let (key, value) = request.strip_prefix("SET key:")?.split_once(' ')?;
        assert_eq!(key.len(), 12);
        Some(value)
    });
    let first = values.next().unwrap();
    assert_eq!(first.len(), 300_000);
    assert!(first.bytes().all(|byte| byte.is_ascii_uppercase()));
    assert_eq!(values.filter(|value| *value == first).count(), 5);
}

#[test]
fn threads_share_many_connections() {
    let server = Scripted::start(Script::Plain);
    let ended = measured(&server, "-n 2000 -c 400 --threads 4 -t get");
    assert!(ended.output.contains("  400 parallel clients\n"));
    assert!(ended.output.contains("  2000 requests completed in "));
    assert!(ended.output.contains("  multi-thread: yes\n  threads: 4\n"));
}
