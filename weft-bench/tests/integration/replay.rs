//! Recording and replaying.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::native_server::{Request, Server};
use crate::program::{Ended, PROGRAM, installed, run};

fn bench(arguments: &[&str], input: &str) -> Ended {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    run(command, input)
}

fn name(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// The report of a replay.
fn replayed(server: &Server, trace: &str, arguments: &[&str]) -> Value {
    let port = server.port.to_string();
    let arguments = [
        &["replay", "-p", &port, "--json-out", "-", trace],
        arguments,
    ]
    .concat();
    let ended = bench(&arguments, "");
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    serde_json::from_str(&ended.output).unwrap()
}

const CAPTURE: &str = "OK\n\
1700000000.000000 [0 10.0.0.1:1000] \"SET\" \"a\" \"x\\x00\\n\\\"\\\\y\"\n\
1700000000.000100 [0 10.0.0.2:1000] \"MULTI\"\n\
1700000000.000200 [3 10.0.0.2:1000] \"GET\" \"b\"\n\
1700000000.100000 [3 lua] \"GET\" \"b\"\n\
1700000000.100000 [3 10.0.0.2:1000] \"SUBSCRIBE\" \"news\"\n\
1700000000.100000 [0 10.0.0.1:1000] \"ACL\" \"SETUSER\" \"(redacted)\"\n\
1700000000.200000 [0 10.0.0.1:1000] \"GET\" \"a\"\n\
nonsense\n\
1700000000.400000 [2 10.0.0.1:1000] \"select\" \"2\"\n\
1700000000.400000 [2 10.0.0.1:1000] \"PING\"\n";

/// The words of the requests, apart for each connection.
fn by_connection(received: &[Request]) -> Vec<Vec<String>> {
    let mut connections: Vec<usize> = received.iter().map(|(number, _)| *number).collect();
    connections.sort_unstable();
    connections.dedup();
    let mut all: Vec<Vec<String>> = connections
        .into_iter()
        .map(|connection| {
            received
                .iter()
                .filter(|(number, _)| *number == connection)
                .map(|(_, words)| words.join(" "))
                .collect()
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_capture_is_played_as_it_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let trace = name(&folder, "trace");
    let ended = bench(&["record", "--from", "-", &trace], CAPTURE);
    assert_eq!(ended.code, Some(0));
    let bytes = fs::metadata(&trace).unwrap().len();
    // The size is without the end: a tag, a number and the checksum.
    assert_eq!(
        ended.errors,
        format!(
            "7 requests of 2 clients in {} bytes; left out: 1 of scripts, 1 with secrets, 1 unreadable\nthe first unreadable \
             line has no time at its beginning: nonsense\n",
            bytes - 6
        )
    );
    for (speed, least, most) in [("1", 0.4, 3.0), ("4", 0.1, 0.39), ("max", 0.0, 0.39)] {
        let server = Server::store();
        let report = replayed(&server, &trace, &["--speed", speed]);
        assert_eq!(
            by_connection(&server.received()),
            [
                vec!["MULTI", "SELECT 3", "GET b"],
                vec!["SET a x\0\n\"\\y", "GET a", "select 2", "PING"],
            ],
            "speed {speed}"
        );
        // With the SELECT that was added.
        assert_eq!(report["operations"], 7, "{report}");
        let elapsed = report["elapsed_s"].as_f64().unwrap();
        assert!((least..most).contains(&elapsed), "speed {speed}: {elapsed}");
        assert_eq!(report["workload"]["connections"], 2);
        assert!(
            report["warnings"][0]
                .as_str()
                .unwrap()
                .starts_with("1 requests of the trace were left out"),
            "{report}"
        );
    }
    let server = Server::store();
    replayed(&server, &trace, &["--speed", "max", "--skip", "get,Ping"]);
    assert_eq!(
        by_connection(&server.received()),
        [vec!["MULTI"], vec!["SET a x\0\n\"\\y", "select 2"]]
    );
}

#[test]
fn many_clients_have_a_connection_each() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, capture) = (name(&folder, "trace"), name(&folder, "capture"));
    let lines: String = (0..3000)
        .map(|number| {
            let client = number % 100;
            format!(
                "1700000000.{:06} [0 1.1.1.1:{client}] \"SET\" \"c:{client}\" \"{number}\"\n",
                number * 100
            )
        })
        .collect();
    fs::write(&capture, lines).unwrap();
    let ended = bench(&["record", "--from", &capture, &trace], "");
    assert!(
        ended.errors.starts_with("3000 requests of 100 clients"),
        "{}",
        ended.errors
    );
    assert!(fs::metadata(&trace).unwrap().len() < 3000 * 20);
    let server = Server::store();
    let report = replayed(&server, &trace, &["-t", "2"]);
    assert_eq!(report["operations"], 3000);
    let connections = by_connection(&server.received());
    assert_eq!(connections.len(), 100);
    for requests in connections {
        let numbers: Vec<u32> = requests
            .iter()
            .map(|text| text.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(numbers.len(), 30);
        assert!(numbers.is_sorted());
        assert!(numbers.iter().all(|number| number % 100 == numbers[0]));
    }
    let cut = name(&folder, "cut");
    let whole = fs::read(&trace).unwrap();
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let report = replayed(&server, &cut, &["--speed", "max"]);
    let warning = report["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("the trace was cut off after "),
        "{warning}"
    );
}

#[test]
fn a_live_server_is_recorded() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut read = |count: usize| {
                    let lines: Vec<String> = (&mut reader)
                        .lines()
                        .take(count)
                        .map_while(Result::ok)
                        .collect();
                    lines
                };
                // AUTH with two arguments, and MONITOR. The first lines come together with the answer.
                if read(7).len() < 7 {
                    return;
                }
                stream.write_all(b"+OK\r\n").unwrap();
                assert_eq!(read(3), ["*1", "$7", "MONITOR"]);
                stream
                    .write_all(b"+OK\r\n+1.000000 [0 a:1] \"SET\" \"k\" \"v\"\r\n+1.5000")
                    .unwrap();
                stream.write_all(b"00 [1 b:1] \"PING\"\r\n").unwrap();
                // The recorder ends the connection.
                let _ = reader.read(&mut [0]);
            });
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let trace = name(&folder, "trace");
    let arguments = [
        "record",
        "-p",
        &port.to_string(),
        "--user",
        "me",
        "-a",
        "pw",
        "-n",
        "2",
        &trace,
    ];
    let ended = bench(&arguments, "");
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(
        ended.errors.starts_with("2 requests of 2 clients"),
        "{}",
        ended.errors
    );
    let server = Server::store();
    replayed(&server, &trace, &["--speed", "max"]);
    assert_eq!(
        by_connection(&server.received()),
        [vec!["SELECT 1", "PING"], vec!["SET k v"]]
    );
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = name(&folder, "trace");
    for (content, says) in [
        (&b"hello"[..], "this is no trace of weft-bench record"),
        (
            b"WEFTTRC\x07",
            "a trace of version 7, and this program knows version 1",
        ),
        (b"WEFTTRC\x01\x09", "the trace is damaged at byte 8"),
    ] {
        fs::write(&path, content).unwrap();
        let ended = bench(&["replay", &path], "");
        assert_eq!(ended.code, Some(1));
        assert_eq!(ended.errors, format!("weft-bench replay: {path}: {says}\n"));
    }
}

/// Ends a server when it is no longer needed.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server's keys and values.
fn dump(port: u16) -> Vec<(String, String)> {
    let mut connection =
        weft_client::Connection::connect(&weft_client::Address::Tcp("127.0.0.1".to_owned(), port))
            .unwrap();
    let text = |reply| match reply {
        weft_resp::Reply::Bulk(text) => String::from_utf8(text).unwrap(),
        other => panic!("{other:?}"),
    };
    let weft_resp::Reply::Array(keys) = connection.command(&["KEYS", "*"]).unwrap() else {
        panic!("no keys");
    };
    let mut all: Vec<(String, String)> = keys
        .into_iter()
        .map(text)
        .map(|key| {
            let value = text(connection.command(&["GET", &key]).unwrap());
            (key, value)
        })
        .collect();
    all.sort();
    all
}

fn started(program: &Path, folder: &Path) -> (Child, u16) {
    // The port is free, though nobody keeps it so.
    let port = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let child = Command::new(program)
        .args(["--port", &port.to_string(), "--save", "", "--dir"])
        .arg(folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        thread::yield_now();
    }
    (Child(child), port)
}

#[test]
fn what_a_real_server_was_sent_makes_another_one_equal() {
    let Some(program) = installed("redis-server") else {
        eprintln!("no redis-server on the search path: nothing to compare with");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (_first, port) = started(&program, folder.path());
    let trace = name(&folder, "trace");
    let recording = Command::new(PROGRAM)
        .args([
            "record",
            "-p",
            &port.to_string(),
            "-n",
            "501",
            "--no-progress",
            &trace,
        ])
        .spawn()
        .unwrap();
    let mut asking =
        weft_client::Connection::connect(&weft_client::Address::Tcp("127.0.0.1".to_owned(), port))
            .unwrap();
    // Until MONITOR runs. What sees it is the first request that is recorded.
    loop {
        let weft_resp::Reply::Bulk(clients) = asking.command(&["CLIENT", "LIST"]).unwrap() else {
            panic!("no list of clients");
        };
        if String::from_utf8_lossy(&clients).contains("cmd=monitor") {
            break;
        }
    }
    let port_text = port.to_string();
    let arguments = [
        "run", "-p", &port_text, "-c", "1", "-n", "500", "--ratio", "1:0", "--keys", "50",
    ];
    let ended = bench(&arguments, "");
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let mut recording = Child(recording);
    assert!(recording.0.wait().unwrap().success());
    let (_second, other_port) = started(&program, folder.path());
    let port_text = other_port.to_string();
    let ended = bench(&["replay", "-p", &port_text, "--speed", "2", &trace], "");
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let (first, second) = (dump(port), dump(other_port));
    assert_eq!(first.len(), 50);
    assert_eq!(first, second);
}
