//! What memtier mode reads from files and leaves in files, and what it sends besides requests.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::native_server::Server;
use crate::program::{Ended, PROGRAM, run};

fn memtier(server: &Server, arguments: &[&str]) -> Ended {
    let mut command = Command::new(PROGRAM);
    command
        .args(["memtier", "-s", "127.0.0.1", "-p"])
        .arg(server.port.to_string())
        .args(arguments);
    run(command, "")
}

fn measured(server: &Server, arguments: &[&str]) -> Ended {
    let ended = memtier(server, arguments);
    assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.errors);
    ended
}

fn requests(server: &Server) -> Vec<String> {
    let received = server.received();
    received.iter().map(|(_, words)| words.join(" ")).collect()
}

#[test]
fn lines_of_monitor_are_sent_in_order() {
    let server = Server::store();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("monitor.txt");
    std::fs::write(
        &path,
        "OK\n\
         1460100081.165665 [0 127.0.0.1:51706] \"set\" \"a b\" \"\\x00\\\"\"\n\
         1460100083.053365 [0 127.0.0.1:51707] \"get\" \"a b\"\n\
         1460100083.053365 [3 unix:/tmp/x] \"PING\"\n",
    )
    .unwrap();
    let input = format!("--monitor-input={}", path.display());
    let ended = measured(
        &server,
        &[
            "-c1",
            "-t1",
            "-n5",
            &input,
            "--command=__monitor_line@__",
            "--hide-histogram",
        ],
    );
    assert_eq!(
        requests(&server),
        ["set a b \0\"", "get a b", "PING", "set a b \0\"", "get a b"]
    );
    assert!(
        ended
            .errors
            .starts_with("Loaded 3 monitor commands from 4 total lines\n"),
        "{}",
        ended.errors
    );
    for title in ["\nSets ", "\nGets ", "\nPings "] {
        assert!(ended.output.contains(title), "{}", ended.output);
    }
    let server = Server::store();
    measured(
        &server,
        &[
            "-c1",
            "-t1",
            "-n3",
            &input,
            "--command=__monitor_line2__",
            "--command=SET __key__ x",
            "--key-prefix=k",
            "--key-maximum=1",
            "--command-key-pattern=S",
        ],
    );
    assert_eq!(requests(&server), ["get a b", "SET k0 x", "get a b"]);
    let wrong = memtier(&server, &[&input, "--command=__monitor_line4__"]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.errors.ends_with(
            "memtier_benchmark: invalid monitor placeholder '__monitor_line4__' (valid range: __monitor_line1__ to \
             __monitor_line3__ or __monitor_line@__)\n"
        ),
        "{}",
        wrong.errors
    );
}

#[test]
fn waits_follow_sets() {
    let server = Server::start(|_, _| Some(b":1\r\n".to_vec()));
    let ended = measured(
        &server,
        &[
            "-c1",
            "-t1",
            "-n14",
            "--ratio=3:1",
            "--wait-ratio=2:1",
            "--num-slaves=2-2",
            "--wait-timeout=7-7",
            "--hide-histogram",
        ],
    );
    let names: Vec<String> = server
        .received()
        .iter()
        .map(|(_, words)| match &words[0][..] {
            "WAIT" => words.join(" "),
            name => name.to_owned(),
        })
        .collect();
    let wait = "WAIT 2 7";
    assert_eq!(
        names,
        [
            "SET", "SET", wait, "SET", "GET", "SET", wait, "SET", "SET", wait, "GET", "SET", "SET",
            wait
        ]
    );
    let line = ended
        .output
        .lines()
        .find(|line| line.starts_with("Waits"))
        .unwrap();
    assert!(line.trim_end().ends_with("---"), "{line}");
}

#[test]
fn scans_go_on_where_their_answers_say() {
    let server = Server::start(|_, words| {
        let next = match &words[1][..] {
            b"0" => "17",
            b"17" => "3",
            b"3" => "9",
            _ => "0",
        };
        Some(format!("*2\r\n${}\r\n{next}\r\n*0\r\n", next.len()).into_bytes())
    });
    let scan = [
        "-c1",
        "-t1",
        "-n6",
        "--command=SCAN 0 COUNT 5",
        "--scan-incremental-iteration",
        "--hide-histogram",
    ];
    let ended = measured(&server, &scan);
    let cursors = |server: &Server| -> Vec<String> {
        let received = server.received();
        received.iter().map(|(_, words)| words[1].clone()).collect()
    };
    assert_eq!(cursors(&server), ["0", "17", "3", "9", "0", "17"]);
    assert!(ended.output.contains("\nScan 0s "), "{}", ended.output);
    assert!(
        ended.output.contains("\nScan <cursor>s "),
        "{}",
        ended.output
    );
    let few = [&scan[..], &["--scan-incremental-max-iterations=1"]].concat();
    measured(&server, &few);
    assert_eq!(cursors(&server)[6..], ["0", "17", "0", "17", "0", "17"]);
}

#[test]
fn values_are_compared_with_what_was_stored() {
    let server = Server::store();
    let keys = ["--key-maximum=99", "-R", "--data-size-range=1-200"];
    let store = [
        &keys[..],
        &[
            "-c2",
            "-t2",
            "-nallkeys",
            "--key-pattern=P:P",
            "--ratio=1:0",
            "--data-verify",
        ],
    ]
    .concat();
    let ended = measured(&server, &store);
    let told = |ended: &Ended| ended.errors.lines().last().unwrap().to_owned();
    assert_eq!(
        told(&ended),
        "Data verification completed: 100 keys verified successfully, 0 absent, 0 with errors"
    );
    let only = [&keys[..], &["--verify-only"]].concat();
    assert_eq!(told(&measured(&server, &only)), told(&ended));
    // Another run of the program finds what is wrong.
    measured(
        &server,
        &["-c1", "-t1", "-n1", "--command=SET memtier-7 other"],
    );
    let wrong = memtier(&server, &only);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.errors.ends_with(
            "99 keys verified successfully, 0 absent, 1 with errors\n\
             memtier_benchmark: data verification failed: key memtier-7: another value, of 5 bytes\n"
        ),
        "{}",
        wrong.errors
    );
}

#[test]
fn connections_that_break_are_opened_again() {
    // Every fifth request closes its connection.
    let seen = AtomicU64::new(0);
    let server = Server::start(move |_, _| {
        let last = seen.fetch_add(1, Ordering::Relaxed) % 5 == 4;
        (!last).then(|| b"+OK\r\n".to_vec())
    });
    let ended = measured(
        &server,
        &[
            "-c1",
            "-t1",
            "-n12",
            "--ratio=1:0",
            "--reconnect-on-error",
            "--hide-histogram",
        ],
    );
    assert_eq!(server.received().len(), 12);
    assert!(
        ended.errors.contains(
            "2 connection errors, the first of them: Server closed the connection; 2 requests were lost, 0 connections \
             given up\n"
        ),
        "{}",
        ended.errors
    );
    let closing = Server::start(|_, _| None);
    let ended = measured(
        &closing,
        &[
            "-c1",
            "-t1",
            "-n12",
            "--reconnect-on-error",
            "--max-reconnect-attempts=2",
        ],
    );
    assert_eq!(closing.received().len(), 3);
    assert!(
        ended.errors.contains("1 connections given up\n"),
        "{}",
        ended.errors
    );
    let without = memtier(&closing, &["-c1", "-t1", "-n12"]);
    assert_eq!(without.code, Some(1));
}

#[test]
fn clients_come_step_by_step() {
    let server = Server::store();
    measured(
        &server,
        &[
            "-c3",
            "-t1",
            "--test-time=3",
            "--clients-start=1",
            "--clients-step=1",
            "--step-duration=1",
            "--rate-limiting=100",
            "--hide-histogram",
        ],
    );
    let mut counts = [0; 4];
    for (connection, _) in server.received() {
        counts[connection] += 1;
    }
    // The one that asks whether the server is there, and three that send for 3, 2 and 1 seconds.
    assert_eq!(counts[0], 0);
    for (connection, seconds) in [(1, 3), (2, 2), (3, 1)] {
        let (least, most) = (seconds * 60, seconds * 100 + 12);
        let count = counts[connection];
        assert!((least..=most).contains(&count), "{counts:?}");
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn files_tell_of_clients_and_histograms() {
    let server = Server::store();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let stats = format!("--client-stats={}", file("client").display());
    let histograms = format!("--hdr-file-prefix={}", file("hdr").display());
    measured(
        &server,
        &[
            "-c2",
            "-t2",
            "-n20",
            "--ratio=1:1",
            "--hide-histogram",
            &stats,
            &histograms,
        ],
    );
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "client-1-0-0.csv",
            "client-1-0-1.csv",
            "client-1-1-0.csv",
            "client-1-1-1.csv",
            "hdr_FULL_RUN_1.hgrm",
            "hdr_FULL_RUN_1.txt",
            "hdr_GET_command_run_1.hgrm",
            "hdr_GET_command_run_1.txt",
            "hdr_SET_command_run_1.hgrm",
            "hdr_SET_command_run_1.txt",
        ]
    );
    let client = lines(&file("client-1-1-0.csv"));
    assert_eq!(client[0], "Per-Second Benchmark Data");
    assert_eq!(
        client[1],
        "Second,SET Requests,SET Average Latency,SET Total Bytes,SET Total Bytes TX,SET Total Bytes RX,GET Requests,\
         GET Average Latency,GET Total Bytes,GET Total Bytes TX,GET Total Bytes RX,GET Misses,GET Hits,WAIT Requests,\
         WAIT Average Latency"
    );
    let seconds = client[2..].iter().take_while(|line| !line.is_empty());
    let sets: u64 = seconds
        .map(|line| line.split(',').nth(1).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(sets, 10);
    let titles: Vec<&String> = client
        .iter()
        .filter(|line| line.starts_with("Full-Test"))
        .collect();
    assert_eq!(
        titles,
        [
            "Full-Test GET Latency",
            "Full-Test SET Latency",
            "Full-Test WAIT Latency"
        ]
    );
    let table = lines(&file("hdr_FULL_RUN_1.txt"));
    assert!(
        table
            .iter()
            .any(|line| line.ends_with("Total count    =           80]")),
        "{table:?}"
    );
    let log = lines(&file("hdr_SET_command_run_1.hgrm"));
    assert_eq!(log[0], "#[SET command HDR latency histogram results]");
    assert!(log[4].contains(",HISTFAAAA"), "{log:?}");
}

#[test]
fn figures_go_to_statsd() {
    let server = Server::store();
    let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    // A port at which no Graphite listens.
    let graphite = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let silent = graphite.local_addr().unwrap().port();
    drop(graphite);
    measured(
        &server,
        &[
            "-c1",
            "-t1",
            "-n10",
            "--hide-histogram",
            "--statsd-host=127.0.0.1",
            &format!("--statsd-port={}", socket.local_addr().unwrap().port()),
            "--statsd-run-label=r",
            &format!("--graphite-port={silent}"),
        ],
    );
    let mut told = Vec::new();
    let mut buffer = [0; 2048];
    // Two lots of figures, the second of which is all 0.
    while told
        .iter()
        .filter(|line: &&String| line.contains("progress_pct"))
        .count()
        < 2
    {
        let length = socket.recv(&mut buffer).unwrap();
        told.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
    }
    assert!(told.iter().all(|line| line.starts_with("memtier.r.")));
    assert!(told.contains(&"memtier.r.progress_pct:100.000000|g".to_owned()));
    assert_eq!(told.last().unwrap(), "memtier.r.progress_pct:0.000000|g");
}

#[test]
fn every_second_of_every_line_has_its_figures() {
    let server = Server::store();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let json = format!("--json-out-file={}", path.display());
    measured(
        &server,
        &[
            "-c1",
            "-t2",
            "--test-time=2",
            "--rate-limiting=50",
            "--ratio=1:1",
            "--hide-histogram",
            "--print-percentiles=50,99.9",
            &json,
        ],
    );
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let stats = &report["ALL STATS"];
    assert_eq!(stats["Runtime"]["Interrupted"], "false");
    let series = |line: &str| stats[line]["Time-Serie"].as_object().unwrap();
    let sum = |line: &str, field: &str| -> u64 {
        let figures = series(line).values();
        figures.map(|second| second[field].as_u64().unwrap()).sum()
    };
    for line in ["Sets", "Gets", "Totals"] {
        assert_eq!(
            Some(sum(line, "Count")),
            stats[line]["Count"].as_u64(),
            "{line}"
        );
        assert!(series(line).len() >= 2, "{line}");
        let names: Vec<&str> = series(line)["1"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            names,
            [
                "Bytes RX",
                "Bytes TX",
                "Count",
                "Average Latency",
                "Accumulated Latency",
                "Min Latency",
                "Max Latency",
                "p50.00",
                "p99.90",
            ]
        );
        for second in series(line).values().filter(|second| second["Count"] != 0) {
            let figure = |name: &str| second[name].as_f64().unwrap();
            assert!(figure("p50.00") <= figure("p99.90"), "{second}");
            // The histogram tells three digits.
            assert!(
                figure("p99.90") <= figure("Max Latency") * 1.002,
                "{second}"
            );
            assert!(
                figure("p50.00") * 1.002 >= figure("Min Latency"),
                "{second}"
            );
        }
    }
    assert_eq!(
        sum("Sets", "Count") + sum("Gets", "Count"),
        sum("Totals", "Count")
    );
    assert_eq!(
        sum("Sets", "Bytes TX") + sum("Gets", "Bytes TX"),
        sum("Totals", "Bytes TX")
    );
    // What is never sent has its seconds too.
    assert_eq!(
        series("Waits")["0"],
        serde_json::json!({"Bytes RX": 0, "Bytes TX": 0, "Count": 0})
    );
}

#[test]
fn an_interrupted_run_reports_what_it_has() {
    let server = Server::store();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let mut command = Command::new(PROGRAM);
    command
        .args(["memtier", "-s", "127.0.0.1", "-p"])
        .arg(server.port.to_string())
        .args([
            "-c1",
            "-t1",
            "--test-time=600",
            "--run-count=3",
            "--print-all-runs",
            "--hide-histogram",
        ])
        .arg(format!("--json-out-file={}", path.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    server.wait_for(100);
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let output = String::from_utf8(ended.stdout).unwrap();
    let errors = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{errors}");
    assert!(
        errors.contains("\n[RUN #1] Interrupted by user (Ctrl+C) after 0.")
            && errors.ends_with(" secs, stopping threads...\n"),
        "{errors}"
    );
    // No further run begins.
    assert!(!errors.contains("[RUN #2]"), "{errors}");
    assert!(output.contains("\nALL STATS\n"), "{output}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let stats = &report["ALL STATS"];
    assert_eq!(stats["Runtime"]["Interrupted"], "true");
    let count = stats["Totals"]["Count"].as_u64().unwrap();
    assert!(count >= 99, "{count}");
    assert_eq!(
        stats["Totals"]["Time-Serie"]["0"]["Count"].as_u64(),
        Some(count)
    );
}

/// A queue that is full takes no connection: the system goes on trying for minutes.
#[test]
fn connections_that_do_not_come_about_are_given_up() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    // Room for the connection that finds the server, and for no other.
    rustix::net::listen(&listener, 0).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut command = Command::new(PROGRAM);
    command
        .args(["memtier", "-s", "127.0.0.1", "-p", &port.to_string()])
        .args(["-c1", "-t1", "-n1", "--connection-timeout=1"]);
    let ended = run(command, "");
    assert_eq!(ended.code, Some(1));
    let expected =
        format!("memtier_benchmark: cannot connect to 127.0.0.1:{port}: Connection timed out\n");
    assert!(ended.errors.ends_with(&expected), "{}", ended.errors);
}
