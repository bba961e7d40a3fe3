//! The mode that stands in for memtier_benchmark.

use std::collections::HashMap;
use std::process::Command;

use crate::program::{Ended, PROGRAM, run};
use crate::scripted::{Script, Scripted};

fn memtier(server: &Scripted, arguments: &[&str]) -> Ended {
    let mut command = Command::new(PROGRAM);
    command
        .arg("memtier")
        .args(["-s", "127.0.0.1", "-p", &server.port.to_string()])
        .args(arguments);
    run(command, "")
}

fn measured(server: &Scripted, arguments: &[&str]) -> Ended {
    let ended = memtier(server, arguments);
    assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.errors);
    ended
}

/// How often each command was received.
fn names(server: &Scripted) -> HashMap<String, usize> {
    let mut names = HashMap::new();
    for request in server.received() {
        let name = request.split(' ').next().unwrap().to_owned();
        *names.entry(name).or_insert(0) += 1;
    }
    names
}

/// The figures of a line of the table.
fn row(ended: &Ended, name: &str) -> Vec<String> {
    let line = ended.output.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {}", ended.output));
    line[name.len()..]
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[test]
fn sets_and_gets_alternate_by_ratio() {
    let server = Scripted::start(Script::Plain);
    let ended = measured(&server, &["-c", "3", "-t", "2", "-n", "40", "--ratio=1:3"]);
    assert_eq!(
        names(&server),
        HashMap::from([("SET".to_owned(), 60), ("GET".to_owned(), 180)])
    );
    assert!(
        ended.output.starts_with(
            "2         Threads\n3         Connections per thread\n40        Requests per client\n\n\nALL STATS\n====="
        ),
        "{}",
        ended.output
    );
    let [rate, hits, misses, ..] = &row(&ended, "Gets")[..] else {
        panic!("too few columns");
    };
    assert_eq!((rate, misses.as_str()), (hits, "0.00"));
    assert_eq!(row(&ended, "Waits")[..3], ["0.00", "---", "---"]);
    assert_eq!(row(&ended, "Sets").len(), 8);
    assert!(
        ended
            .output
            .contains("\nRequest Latency Distribution\nType ")
    );
    assert!(ended.errors.contains("[RUN #1] Launching threads now...\n"));
    assert!(
        ended
            .errors
            .contains("[RUN #1 100%,   0 secs]  0 threads  3 conns:         240 ops, ")
    );
}

#[test]
fn keys_go_round_in_order() {
    let server = Scripted::start(Script::Plain);
    measured(
        &server,
        &[
            "-c1",
            "-t1",
            "-n5",
            "--ratio=1:0",
            "--key-pattern=S:S",
            "--key-minimum=8",
            "--key-maximum=10",
            "--key-prefix=k",
            "-d",
            "4",
            "--hide-histogram",
        ],
    );
    assert_eq!(
        server.received(),
        [
            "SET k8 xxxx",
            "SET k9 xxxx",
            "SET k10 xxxx",
            "SET k8 xxxx",
            "SET k9 xxxx"
        ]
    );
}

#[test]
fn parallel_clients_share_all_keys() {
    let server = Scripted::start(Script::Plain);
    measured(
        &server,
        &[
            "-c3",
            "-t2",
            "-n",
            "allkeys",
            "--ratio=1:0",
            "--key-pattern=P:P",
            "--key-minimum=1",
            "--key-maximum=60",
        ],
    );
    let mut received = server.received();
    received.sort();
    received.dedup();
    assert_eq!(received.len(), 60);
}

#[test]
fn published_command_lines_are_understood_in_one_line() {
    let server = Scripted::start(Script::Plain);
    let ended = measured(
        &server,
        &[
            "--test-time=1",
            "--clients=2",
            "--threads=2",
            "--key-pattern=S:S",
            "--data-size=3",
            "--ratio=1:2",
            "--pipeline=10",
            "--command=SET user:{{id}} {{value}}",
            "--command=GET user:{{id}}",
        ],
    );
    let first = ended.errors.lines().next().unwrap();
    assert_eq!(
        first,
        "memtier_benchmark: understood {{id}} as __key__; {{value}} as __data__; --ratio as the ratios of the \
         commands, in their order; --key-pattern (its first letter) as that of the commands"
    );
    assert_eq!(ended.errors.matches("understood").count(), 1);
    let received = server.received();
    assert!(received.contains(&"SET user:memtier-0 xxx".to_owned()));
    assert!(received.contains(&"GET user:memtier-0".to_owned()));
    let names = names(&server);
    assert!(names["SET"].abs_diff(names["GET"] / 2) <= 10, "{names:?}");
    assert!(ended.output.contains("\n1         Seconds\n"));
    let [rate, ..] = &row(&ended, "Totals")[..] else {
        panic!("no columns");
    };
    assert!(rate.parse::<f64>().unwrap() > 0.0);
    assert!(!ended.output.contains("Hits/sec"));
}

#[test]
fn lines_can_be_reported_one_by_one() {
    let server = Scripted::start(Script::Plain);
    let commands = [
        "--command=LPUSH a 1",
        "--command-ratio=2",
        "--command=LPUSH b __data__",
        "-n12",
        "-c2",
        "-t1",
    ];
    let together = measured(&server, &commands);
    assert!(together.output.contains("\nLpushs "));
    let apart = measured(
        &server,
        &[&commands[..], &["--command-stats-breakdown=line"]].concat(),
    );
    assert!(apart.output.contains("\nLPUSH a 1 "));
    assert!(apart.output.contains("\nLPUSH b __data__ "));
    let received = server.received();
    assert_eq!(
        received.iter().filter(|line| *line == "LPUSH a 1").count(),
        2 * 16
    );
}

#[test]
fn runs_are_compared() {
    let server = Scripted::start(Script::Plain);
    let ended = measured(
        &server,
        &[
            "-n20",
            "-c2",
            "-t1",
            "-x3",
            "--hide-histogram",
            "--print-all-runs",
        ],
    );
    let titles: Vec<&str> = ended
        .output
        .lines()
        .filter(|line| line.contains("RESULTS"))
        .collect();
    assert_eq!(
        titles,
        [
            "RUN #1 RESULTS",
            "RUN #2 RESULTS",
            "RUN #3 RESULTS",
            "BEST RUN RESULTS",
            "WORST RUN RESULTS",
            "AGGREGATED AVERAGE RESULTS (3 runs)"
        ]
    );
    assert!(
        ended
            .errors
            .contains("[RUN #3] Preparing benchmark client...\n")
    );
}

#[test]
fn errors_are_counted_and_shown() {
    let server = Scripted::start(Script::Errors);
    let ended = measured(&server, &["-n10", "-c2", "-t1", "--ratio=1:0"]);
    assert!(
        ended
            .errors
            .contains("14 error responses, the first of them: FOO bar\n"),
        "{}",
        ended.errors
    );
    let wrong = memtier(&server, &["--foo"]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong
            .errors
            .starts_with("memtier_benchmark: unrecognized option --foo\n")
    );
}

#[test]
fn a_rate_is_kept() {
    let server = Scripted::start(Script::Plain);
    let ended = measured(
        &server,
        &[
            "-n10",
            "-c4",
            "-t1",
            "--rate-limiting=20",
            "--hide-histogram",
        ],
    );
    let rate: f64 = row(&ended, "Totals")[0].parse().unwrap();
    // Four connections at 20 a second; without the pause after the last request, ten intervals are nine.
    assert!(rate > 40.0 && rate < 95.0, "{rate} per second");
}

#[test]
fn connections_are_opened_again() {
    let server = Scripted::start(Script::Plain);
    measured(
        &server,
        &[
            "-n10",
            "-c2",
            "-t1",
            "--reconnect-interval=4",
            "--pipeline=3",
            "-a",
            "me:secret",
            "-P",
            "resp3",
        ],
    );
    let names = names(&server);
    // After 4 and 8 requests.
    assert_eq!((names["AUTH"], names["HELLO"]), (6, 6));
    assert_eq!(names["SET"] + names["GET"], 20);
}

#[test]
fn a_known_delay_is_what_is_measured() {
    let server = Scripted::start(Script::Slow(20));
    let ended = measured(&server, &["-n20", "-c2", "-t1", "--hide-histogram"]);
    let totals = row(&ended, "Totals");
    let average: f64 = totals[3].parse().unwrap();
    let median: f64 = totals[4].parse().unwrap();
    assert!((20.0..60.0).contains(&average), "{average} ms");
    assert!((20.0..40.0).contains(&median), "{median} ms");
}

#[test]
fn results_are_written_as_json() {
    let server = Scripted::start(Script::Slow(1));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    let argument = format!("--json-out-file={}", path.display());
    measured(&server, &["-n20", "-c2", "-t1", "--ratio=1:1", &argument]);
    let text = std::fs::read_to_string(&path).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["configuration"]["clients"], 2);
    assert_eq!(report["run information"]["Requests per client"], 20);
    let stats = &report["ALL STATS"];
    assert_eq!(stats["Runtime"]["Time unit"], "MILLISECONDS");
    for (name, count) in [("Sets", 20), ("Gets", 20), ("Totals", 40)] {
        assert_eq!(stats[name]["Count"], count);
        let series = stats[name]["Time-Serie"].as_object().unwrap();
        let counts = series
            .values()
            .map(|second| second["Count"].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), count);
        for figure in [
            "Ops/sec",
            "Average Latency",
            "Min Latency",
            "Max Latency",
            "KB/sec",
        ] {
            assert!(
                stats[name][figure].as_f64().unwrap() > 0.9,
                "{name} {figure}"
            );
        }
        for percentile in ["p50.00", "p99.00", "p99.90"] {
            let latency = &stats[name]["Percentile Latencies"][percentile];
            assert!(latency.as_f64().unwrap() >= 1.0);
        }
    }
    assert_eq!(stats["Gets"]["Misses/sec"], 0.0);
    let last = stats["SET"].as_array().unwrap().last().unwrap();
    assert_eq!(last["percent"], 100.0);
}
