//! Native mode, against servers of which everything is known.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::native_server::{Server, Store};
use crate::program::{Ended, PROGRAM, run};

fn native(server: &Server, arguments: &[&str]) -> Ended {
    let mut command = Command::new(PROGRAM);
    command
        .args(["run", "-p", &server.port.to_string()])
        .args(arguments);
    run(command, "")
}

/// The report of a run.
fn report(server: &Server, arguments: &[&str]) -> Value {
    let arguments = [&["--json-out", "-"], arguments].concat();
    let ended = native(server, &arguments);
    assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.errors);
    serde_json::from_str(&ended.output).unwrap()
}

fn number(report: &Value, path: &str) -> f64 {
    let value = report.pointer(path);
    value
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no number at {path} in {report}"))
}

fn count(report: &Value, path: &str) -> u64 {
    number(report, path) as u64
}

fn warnings(report: &Value) -> Vec<&str> {
    let warnings = report["warnings"].as_array().unwrap();
    warnings.iter().map(|it| it.as_str().unwrap()).collect()
}

fn ok() -> Option<Vec<u8>> {
    Some(b"+OK\r\n".to_vec())
}

/// Answers at once, but answers nobody for 100 ms when the request with this number has come.
fn stalling(at: u64) -> Server {
    let seen = AtomicU64::new(0);
    let gate = Mutex::new(());
    Server::start(move |_, _| {
        let _held = gate.lock().unwrap();
        if seen.fetch_add(1, Ordering::Relaxed) + 1 == at {
            // The delay is what is measured, not a wait for something.
            thread::sleep(Duration::from_millis(100));
        }
        ok()
    })
}

/// Takes so many milliseconds for each answer.
fn slow(milliseconds: u64) -> Server {
    Server::start(move |_, _| {
        thread::sleep(Duration::from_millis(milliseconds));
        ok()
    })
}

#[test]
fn known_delays_are_what_is_measured() {
    let seen = AtomicU64::new(0);
    let server = Server::start(move |_, _| {
        // One answer in a hundred takes 80 ms, the others 2 ms.
        let slow = seen.fetch_add(1, Ordering::Relaxed) % 100 == 50;
        thread::sleep(Duration::from_millis(if slow { 80 } else { 2 }));
        ok()
    });
    let report = report(&server, &["-c", "1", "-n", "300", "--", "PING"]);
    assert_eq!(count(&report, "/operations"), 300);
    assert_eq!(count(&report, "/latency/count"), 300);
    for (path, least, most) in [
        ("/latency/min_us", 2e3, 4e3),
        ("/latency/p50_us", 2e3, 10e3),
        ("/latency/p90_us", 2e3, 40e3),
        ("/latency/p99_9_us", 80e3, 120e3),
        ("/latency/max_us", 80e3, 120e3),
    ] {
        let found = number(&report, path);
        assert!((least..most).contains(&found), "{path}: {found}");
    }
    // 297 answers of 2 ms and 3 of 80 ms.
    assert!(number(&report, "/latency/mean_us") >= (297.0 * 2e3 + 3.0 * 80e3) / 300.0);
    let elapsed = number(&report, "/elapsed_s");
    let rate = number(&report, "/rate/achieved");
    assert!((rate * elapsed - 300.0).abs() < 0.01);
}

#[test]
fn the_closed_loop_agrees_with_the_other_modes() {
    let server = slow(40);
    let report = report(&server, &["-c", "4", "-n", "100", "--", "PING"]);
    let port = server.port.to_string();
    let mode = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        let (mode, rest) = arguments.split_first().unwrap();
        command.args([mode, "-p", &port]).args(rest);
        run(command, "").output
    };
    let csv = mode(&["redis-benchmark", "-c", "4", "-n", "100", "--csv", "PING"]);
    // test, rate, average, least, p50, p95, p99, greatest.
    let redis_benchmark: Vec<f64> = csv
        .lines()
        .last()
        .unwrap()
        .split(',')
        .skip(1)
        .map(|cell| cell.trim_matches('"').parse().unwrap())
        .collect();
    let table = mode(&[
        "memtier",
        "-c",
        "4",
        "-t",
        "1",
        "-n",
        "25",
        "--command=PING",
    ]);
    // Totals, rate, average, p50, p99, p99.9, KB/sec.
    let memtier: Vec<f64> = table
        .lines()
        .find(|line| line.starts_with("Totals"))
        .unwrap()
        .split_whitespace()
        .skip(1)
        .map(|cell| cell.parse().unwrap())
        .collect();
    let rate = number(&report, "/rate/achieved");
    let p50 = number(&report, "/latency/p50_us") / 1000.0;
    // The median stands still when a busy machine holds up a few; a rate does not.
    for (name, rate, p50) in [
        ("native", rate, p50),
        ("redis-benchmark", redis_benchmark[0], redis_benchmark[3]),
        ("memtier", memtier[0], memtier[2]),
    ] {
        assert!((40.0..42.0).contains(&p50), "{name}: {p50} ms");
        assert!((60.0..=100.0).contains(&rate), "{name}: {rate} per second");
    }
}

#[test]
fn an_open_loop_shows_a_stall() {
    let server = stalling(300);
    let report = report(
        &server,
        &[
            "-c",
            "4",
            "-d",
            "1",
            "--rate",
            "1000",
            "--arrivals",
            "constant",
            "--",
            "PING",
        ],
    );
    assert_eq!(count(&report, "/operations"), 1000);
    // A hundred requests were due in the stall, one for each of its milliseconds.
    for (path, least, most) in [
        ("/latency/p95_us", 35e3, 80e3),
        ("/latency/p99_us", 85e3, 115e3),
        ("/latency/p99_9_us", 95e3, 125e3),
    ] {
        let found = number(&report, path);
        assert!((least..most).contains(&found), "{path}: {found}");
    }
}

#[test]
fn closed_loops_miss_a_stall() {
    let server = stalling(5000);
    let native = report(&server, &["-c", "4", "-n", "20000", "--", "PING"]);
    let p99_9 = number(&native, "/latency/p99_9_us");
    assert!(p99_9 < 90e3, "{p99_9}");
    assert!(number(&native, "/latency/max_us") >= 90e3);
    let port = server.port.to_string();
    let server = stalling(5000);
    let mut command = Command::new(PROGRAM);
    command.args([
        "redis-benchmark",
        "-c",
        "4",
        "-n",
        "20000",
        "--csv",
        "-p",
        &server.port.to_string(),
        "PING",
    ]);
    let csv = run(command, "").output;
    // test, rate, average, least, p50, p95, p99, greatest.
    let line = csv.lines().last().unwrap();
    let cells: Vec<f64> = line
        .split(',')
        .skip(1)
        .map(|cell| cell.trim_matches('"').parse().unwrap())
        .collect();
    assert!(cells[5] < 90.0 && cells[6] >= 90.0, "{line}");
    let server = stalling(5000);
    let mut command = Command::new(PROGRAM);
    command.args([
        "memtier",
        "-c",
        "4",
        "-t",
        "1",
        "-n",
        "5000",
        "--command=PING",
        "-p",
        &server.port.to_string(),
    ]);
    let table = run(command, "").output;
    let totals = table
        .lines()
        .find(|line| line.starts_with("Totals"))
        .unwrap();
    // rate, average, p50, p99, p99.9, KB/sec.
    let cells: Vec<f64> = totals
        .split_whitespace()
        .skip(1)
        .map(|cell| cell.parse().unwrap())
        .collect();
    assert!(cells[4] < 90.0, "{totals} of port {port}");
}

#[test]
fn what_waits_for_room_is_counted_from_when_it_was_due() {
    // One request in 20 ms on one connection, of which one is asked for in 10 ms.
    let server = slow(20);
    let report = report(
        &server,
        &[
            "-c",
            "1",
            "-P",
            "1",
            "-d",
            "0.5",
            "--rate",
            "100",
            "--arrivals",
            "constant",
            "--",
            "PING",
        ],
    );
    assert_eq!(count(&report, "/operations"), 50);
    assert!(count(&report, "/schedule/held/count") >= 45);
    // The last one was due after 490 ms and left after 49 others had taken 20 ms each.
    let max = number(&report, "/latency/max_us");
    assert!((500e3..700e3).contains(&max), "{max}");
    let text = warnings(&report).join("\n");
    assert!(
        text.contains("requests waited for room on their connection"),
        "{text}"
    );
    assert!(
        text.contains("100 requests per second were asked for and"),
        "{text}"
    );
}

#[test]
fn what_could_not_be_sent_is_not_forgotten() {
    let seen = AtomicU64::new(0);
    let server = Server::start(move |_, _| match seen.fetch_add(1, Ordering::Relaxed) {
        0..10 => ok(),
        _ => Some(Vec::new()),
    });
    let report = report(
        &server,
        &[
            "-c",
            "1",
            "-P",
            "5",
            "-d",
            "0.4",
            "--rate",
            "100",
            "--arrivals",
            "constant",
            "--drain",
            "200ms",
            "--",
            "PING",
        ],
    );
    assert_eq!(count(&report, "/operations"), 10);
    assert_eq!(count(&report, "/failures/unanswered"), 5);
    assert_eq!(count(&report, "/failures/unsent"), 25);
    assert!((number(&report, "/failures/share") - 30.0 / 40.0).abs() < 1e-9);
    let text = warnings(&report).join("\n");
    assert!(
        text.contains("5 requests had no answer when the run ended"),
        "{text}"
    );
    assert!(
        text.contains("25 requests that were due could not be sent"),
        "{text}"
    );
}

#[test]
fn connections_that_break_cost_what_was_under_way() {
    let server = {
        let counts: Mutex<HashMap<usize, u32>> = Mutex::default();
        Server::start(move |connection, _| {
            let mut counts = counts.lock().unwrap();
            let count = counts.entry(connection).or_default();
            *count += 1;
            // Four connections end with their third request.
            if connection < 5 && *count == 3 {
                None
            } else {
                ok()
            }
        })
    };
    let report = report(&server, &["-c", "4", "-n", "200", "--", "PING"]);
    let lost = count(&report, "/failures/lost");
    // The first connection only looked whether somebody is there.
    assert_eq!(lost, 4);
    assert_eq!(count(&report, "/failures/connections"), 4);
    assert_eq!(count(&report, "/operations"), 196);
    assert!(warnings(&report).join("\n").contains("4 connections broke"));
}

#[test]
fn verification_catches_what_is_wrong() {
    let store = Store::default();
    let gets = AtomicU64::new(0);
    let server = Server::start(move |_, words| {
        let mut reply = store.answer(words);
        if words[0] == b"GET" && reply.len() > 10 {
            let at = reply.len() - 5;
            match gets.fetch_add(1, Ordering::Relaxed) {
                40 => reply[at] ^= 1,
                80 => reply = store.answer(&[b"GET".to_vec(), other(&words[1])]),
                120 => reply = b"$3\r\nabc\r\n".to_vec(),
                _ => {}
            }
        }
        Some(reply)
    });
    /// The key next to this one.
    fn other(key: &[u8]) -> Vec<u8> {
        let mut key = key.to_vec();
        let last = key.last_mut().unwrap();
        *last = if *last == b'0' { b'1' } else { b'0' };
        key
    }
    let arguments = ["-c", "3", "-n", "500", "--verify", "--fill", "--keys", "10"];
    let report = report(&server, &arguments);
    assert_eq!(count(&report, "/operations"), 500);
    assert_eq!(count(&report, "/failures/wrong"), 3);
    assert_eq!(count(&report, "/failures/errors"), 0);
    let first: Vec<&str> = report["failures"]["first"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect();
    for part in [
        "GET: a damaged value for key:",
        "GET: the value of another key for key:",
        "that this program has not written: \"abc\" (3 bytes)",
    ] {
        assert!(
            first.iter().any(|text| text.contains(part)),
            "{part}: {first:?}"
        );
    }
    // The same without a fault.
    let server = Server::store();
    let arguments = [
        "-c",
        "3",
        "-P",
        "4",
        "-n",
        "500",
        "--verify",
        "--fill",
        "--keys",
        "10",
        "--command",
        "MGET {key*4}",
        "--command",
        "SET {key} {value:16-200}",
        "--command",
        "GET {key}",
    ];
    let report = self::report(&server, &arguments);
    assert_eq!(count(&report, "/failures/wrong"), 0, "{report}");
}

#[test]
fn every_key_is_filled_once() {
    let server = Server::store();
    let arguments = [
        "-c",
        "7",
        "-t",
        "3",
        "-n",
        "10",
        "--fill",
        "--keys",
        "500",
        "--key-digits",
        "6",
    ];
    let report = report(&server, &[&arguments[..], &["--ratio", "0:1"]].concat());
    let mut keys: Vec<String> = server
        .received_named("SET")
        .into_iter()
        .map(|(_, words)| words[1].clone())
        .collect();
    keys.sort();
    let expected: Vec<String> = (0..500).map(|key| format!("key:{key:06}")).collect();
    assert_eq!(keys, expected);
    assert_eq!(count(&report, "/commands/0/nulls"), 0);
    assert_eq!(report["commands"][0]["name"], "GET");
}

/// Writes a script and gives its name.
fn script(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("script");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn captured_fields_are_sent() {
    let next = AtomicU64::new(0);
    let server = Server::start(move |_, words| {
        if words[0] != b"XREADGROUP" {
            return ok();
        }
        // None, one, two or three entries.
        let first = next.fetch_add(3, Ordering::Relaxed);
        let entries = first / 3 % 4;
        if entries == 0 {
            return Some(b"*-1\r\n".to_vec());
        }
        let mut reply = format!("*1\r\n*2\r\n$4\r\njobs\r\n*{entries}\r\n");
        for id in first..first + entries {
            let id = format!("{id}-0");
            reply += &format!(
                "*2\r\n${}\r\n{id}\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
                id.len()
            );
        }
        Some(reply.into_bytes())
    });
    let folder = tempfile::tempdir().unwrap();
    let script = script(
        &folder,
        "setup\n - XGROUP CREATE jobs workers $ MKSTREAM\nunit work\n XREADGROUP GROUP workers c{connection} STREAMS jobs >\n \
         -> ids = 0.1.*.0\n -> first = 0.1.0.0\n XACK jobs workers {ids}\n XDEL jobs entry:{first}\n",
    );
    let report = report(&server, &["-c", "3", "-n", "40", "--script", &script]);
    assert_eq!(count(&report, "/units/0/operations"), 40);
    assert_eq!(report["rate"]["of"], "units");
    assert_eq!(server.received_named("XGROUP").len(), 1);
    let expected: HashSet<String> = (0..40)
        .flat_map(|call: u64| (call * 3..call * 3 + call % 4).map(|id| format!("{id}-0")))
        .collect();
    let acked: Vec<String> = server
        .received_named("XACK")
        .into_iter()
        .flat_map(|(_, words)| words[3..].to_vec())
        .collect();
    assert_eq!(acked.len(), expected.len());
    assert_eq!(acked.into_iter().collect::<HashSet<String>>(), expected);
    let deleted: HashSet<String> = server
        .received_named("XDEL")
        .into_iter()
        .map(|(_, words)| words[2].clone())
        .collect();
    let firsts = (0..40).filter(|call| call % 4 > 0);
    assert_eq!(
        deleted,
        firsts.map(|call| format!("entry:{}-0", call * 3)).collect()
    );
    // Ten answers were empty, and two commands each had no use for them.
    let text = warnings(&report).join("\n");
    assert!(
        text.contains("20 commands of units were left out"),
        "{text}"
    );
}

#[test]
fn a_unit_stays_together() {
    let server = Server::start(|_, words| {
        Some(match &words[0][..] {
            b"EXEC" => b"*2\r\n+OK\r\n:1\r\n".to_vec(),
            b"MULTI" => b"+OK\r\n".to_vec(),
            _ => b"+QUEUED\r\n".to_vec(),
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let script = script(
        &folder,
        "unit transaction weight 2\nMULTI\nSET {key} {value}\nINCR n:{key}\nEXEC\nunit ping\nPING\n",
    );
    let report = report(
        &server,
        &["-c", "3", "-n", "60", "--verify", "--script", &script],
    );
    assert_eq!(count(&report, "/failures/wrong"), 0, "{report}");
    let transactions = count(&report, "/units/0/operations");
    assert_eq!(transactions + count(&report, "/units/1/operations"), 60);
    assert!(transactions > 20, "{transactions}");
    let mut by_connection: HashMap<usize, Vec<Vec<String>>> = HashMap::new();
    for (connection, words) in server.received() {
        by_connection.entry(connection).or_default().push(words);
    }
    for requests in by_connection.values() {
        let mut requests = requests.iter();
        while let Some(request) = requests.next() {
            if request[0] == "PING" {
                continue;
            }
            assert_eq!(request[0], "MULTI");
            let set = requests.next().unwrap();
            assert_eq!(set[0], "SET");
            // The same key within the unit.
            assert_eq!(requests.next().unwrap()[1], format!("n:{}", set[1]));
            assert_eq!(requests.next().unwrap()[0], "EXEC");
        }
    }
}

#[test]
fn a_storm_has_a_connection_for_each_request() {
    let server = Server::start(|_, _| ok());
    let report = report(
        &server,
        &[
            "--storm",
            "200",
            "--arrivals",
            "constant",
            "-d",
            "0.5",
            "-c",
            "20",
            "--",
            "PING",
        ],
    );
    assert_eq!(count(&report, "/operations"), 100);
    let connections: HashSet<usize> = server
        .received()
        .into_iter()
        .map(|(connection, _)| connection)
        .collect();
    assert_eq!(connections.len(), 100);
}

#[test]
fn connections_are_opened_again() {
    let server = Server::start(|_, _| ok());
    report(
        &server,
        &[
            "-c",
            "2",
            "-n",
            "60",
            "--reconnect-every",
            "10",
            "--",
            "PING",
        ],
    );
    let mut counts: HashMap<usize, u32> = HashMap::new();
    for (connection, _) in server.received() {
        *counts.entry(connection).or_default() += 1;
    }
    assert!(counts.len() >= 6, "{counts:?}");
    assert!(counts.values().all(|&count| count <= 10), "{counts:?}");
}

#[test]
fn thinking_takes_its_time() {
    let server = Server::start(|_, _| ok());
    let report = report(
        &server,
        &["-c", "2", "-n", "20", "--think", "20ms", "--", "PING"],
    );
    // Nine pauses on each connection.
    assert!(number(&report, "/elapsed_s") >= 0.18);
    assert_eq!(count(&report, "/operations"), 20);
}

#[test]
fn the_warm_up_is_not_recorded() {
    let server = Server::start(|_, _| ok());
    let report = report(
        &server,
        &[
            "-c", "2", "-n", "100", "--warmup", "200ms", "--think", "10ms", "--", "PING",
        ],
    );
    assert_eq!(count(&report, "/operations"), 100);
    let received = server.received().len();
    assert!((110..170).contains(&received), "{received}");
}

#[test]
fn mixes_follow_their_weights_and_connections_their_account() {
    let server = Server::start(|_, words| {
        Some(match &words[0][..] {
            b"HELLO" => b"%1\r\n$5\r\nproto\r\n:3\r\n".to_vec(),
            b"FAIL" => b"-ERR no such thing\r\n".to_vec(),
            _ => b"+OK\r\n".to_vec(),
        })
    });
    let report = report(
        &server,
        &[
            "-c",
            "2",
            "-n",
            "1000",
            "--user",
            "me",
            "-a",
            "secret",
            "-3",
            "--db",
            "5",
            "--command",
            "LPUSH l:{int:1-3} {value:10}",
            "--weight",
            "3",
            "--command",
            "FAIL {number} {connection} {{x}}",
        ],
    );
    let (pushed, failed) = (
        server.received_named("LPUSH"),
        server.received_named("FAIL"),
    );
    assert_eq!(pushed.len() + failed.len(), 1000);
    assert!((690..810).contains(&pushed.len()), "{}", pushed.len());
    let lists: HashSet<&str> = pushed.iter().map(|(_, words)| words[1].as_str()).collect();
    assert_eq!(lists, HashSet::from(["l:1", "l:2", "l:3"]));
    assert!(pushed.iter().all(|(_, words)| words[2].len() == 10));
    let numbers: HashSet<&str> = failed.iter().map(|(_, words)| words[1].as_str()).collect();
    assert_eq!(numbers.len(), failed.len());
    assert!(
        failed
            .iter()
            .all(|(_, words)| words[3] == "{x}" && ["0", "1"].contains(&&*words[2]))
    );
    assert_eq!(count(&report, "/failures/errors"), failed.len() as u64);
    assert_eq!(report["failures"]["first"][0], "FAIL: ERR no such thing");
    let mut by_connection: HashMap<usize, Vec<Vec<String>>> = HashMap::new();
    for (connection, words) in server.received() {
        by_connection.entry(connection).or_default().push(words);
    }
    assert_eq!(by_connection.len(), 2);
    for requests in by_connection.values() {
        assert_eq!(
            requests[..3],
            [
                vec!["AUTH", "me", "secret"],
                vec!["HELLO", "3"],
                vec!["SELECT", "5"]
            ]
        );
    }
}

#[test]
fn files_hold_what_each_second_brought() {
    let server = Server::start(|_, _| ok());
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (csv, hdr, json) = (name("csv"), name("hdr"), name("json"));
    let ended = native(
        &server,
        &[
            "-c",
            "2",
            "-d",
            "1.5",
            "--rate",
            "200",
            "--arrivals",
            "constant",
            "--csv-out",
            &csv,
            "--hdr-out",
            &hdr,
            "--json-out",
            &json,
            "--progress",
            "--name",
            "mine",
            "--server-pid",
            &std::process::id().to_string(),
            "--",
            "PING",
        ],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let report: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(
        (count(&report, "/version"), count(&report, "/operations")),
        (1, 300)
    );
    assert_eq!(report["name"], "mine");
    assert_eq!(report["workload"]["pace"], "open constant");
    assert_eq!(count(&report, "/server/pid"), u64::from(std::process::id()));
    let csv = fs::read_to_string(csv).unwrap();
    let mut lines = csv.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert_eq!(columns, 12);
    let rows: Vec<Vec<f64>> = lines
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0][1] + rows[1][1], 300.0);
    assert!((180.0..=220.0).contains(&rows[0][1]), "{csv}");
    let log = fs::read_to_string(hdr).unwrap();
    let histograms: Vec<&str> = log
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit(',').next().unwrap())
        .collect();
    assert_eq!(histograms.len(), 2);
    // What a compressed histogram of version 2 begins with, in base 64.
    assert!(
        histograms.iter().all(|text| text.starts_with("HISTFAAA")),
        "{log}"
    );
    assert!(ended.errors.contains("    1 s  "), "{}", ended.errors);
    assert!(
        ended.output.starts_with("mine: 127.0.0.1:"),
        "{}",
        ended.output
    );
    for part in [
        "200.0 requests/s of 200.0 asked for",
        "p99.99",
        "of processor time",
        "(left late)",
    ] {
        assert!(ended.output.contains(part), "{part}: {}", ended.output);
    }
}

#[test]
fn without_a_terminal_there_is_no_progress() {
    let server = Server::start(|_, _| ok());
    let ended = native(&server, &["-n", "10", "--", "PING"]);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
}

#[test]
fn mistakes_are_said_plainly() {
    let server = Server::start(|_, words| {
        Some(match &words[0][..] {
            b"BAD" => b"-ERR bad\r\n".to_vec(),
            _ => b"+OK\r\n".to_vec(),
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let script = script(&folder, "unit a\nGET {id}\nPING\n");
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let free = format!("127.0.0.1:{port}");
    for (arguments, says) in [
        (
            &["--rate", "fast"][..],
            "weft-bench run: --rate: takes a number per second above 0, such as 50000, not 'fast'\nTry 'weft-bench run --help' for the options.\n"
                .to_owned(),
        ),
        (
            &["--script", &script],
            "weft-bench run: unit 'a': 'GET {id}' uses {id}, which no command before it captures\nTry 'weft-bench run --help' for the options.\n"
                .to_owned(),
        ),
        (
            &["--setup", "BAD thing", "-n", "1"],
            "weft-bench run: 'BAD thing' failed: ERR bad\n".to_owned(),
        ),
        (
            &["--target", &free, "-n", "1"],
            format!("weft-bench run: cannot connect to {free}: Connection refused\n"),
        ),
        (
            &["--csv-out", "/nowhere/csv", "-n", "1"],
            "weft-bench run: /nowhere/csv: No such file or directory\n".to_owned(),
        ),
    ] {
        let ended = native(&server, arguments);
        assert_eq!((ended.code, ended.errors), (Some(1), says), "{arguments:?}");
    }
}

#[test]
fn an_interrupt_ends_a_run_with_its_report() {
    let started = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&started);
    let server = Server::start(move |_, _| {
        seen.fetch_add(1, Ordering::Relaxed);
        ok()
    });
    let child = Command::new(PROGRAM)
        .args([
            "run",
            "-p",
            &server.port.to_string(),
            "-d",
            "60",
            "-c",
            "2",
            "--think",
            "1ms",
            "--",
            "PING",
        ])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while started.load(Ordering::Relaxed) < 20 {
        thread::yield_now();
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("\nrate  ")
    );
}
