//! SLOWLOG, LATENCY and the statistics of commands, on a clock that only DEBUG SLEEP moves.

mod in_process;

use std::sync::atomic::{AtomicU64, Ordering};

use in_process::{Local, START_MS};
use weft_engine::clock::Clock;
use weft_engine::engine::WorkerState;
use weft_rope::Output;

const START_S: u64 = START_MS / 1000;

fn local(arguments: &[&str]) -> Local {
    let mut all = vec!["--enable-debug-command", "yes"];
    all.extend(arguments);
    Local::with_arguments(&all)
}

/// Sends one command, its arguments separated by single spaces.
fn ask(local: &mut Local, line: &str) -> String {
    let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    String::from_utf8(local.command(&arguments)).unwrap()
}

fn info(local: &mut Local, section: &str) -> Vec<String> {
    let reply = ask(local, &format!("INFO {section}"));
    reply
        .lines()
        .skip(2)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_slow_command_is_kept_with_its_client_and_what_it_waited() {
    let mut local = local(&[]);
    ask(&mut local, "CLIENT SETNAME joe");
    ask(&mut local, "GET k");
    let clock = std::sync::Arc::clone(&local.clock);
    local.worker.turn_began(&clock);
    local.clock.advance_ms(3);
    ask(&mut local, "DEBUG SLEEP 0.0125");
    assert_eq!(
        ask(&mut local, "SLOWLOG GET"),
        format!(
            "*1\r\n*6\r\n:0\r\n:{START_S}\r\n:12500\r\n*3\r\n$5\r\nDEBUG\r\n$5\r\nSLEEP\r\n$6\r\n0.0125\r\n\
             $11\r\n127.0.0.1:1\r\n$3\r\njoe\r\n"
        )
    );
    assert_eq!(
        info(&mut local, "slowlog"),
        [
            "slowlog_length:1",
            "slowlog_0:waited_usec=3000,took_usec=12500"
        ]
    );
    assert_eq!(ask(&mut local, "SLOWLOG RESET"), "+OK\r\n");
    assert_eq!(ask(&mut local, "SLOWLOG LEN"), ":0\r\n");
}

#[test]
fn only_the_slow_one_of_a_pipeline_is_kept_and_what_stood_before_it_was_its_wait() {
    let mut local = local(&[]);
    let clock = std::sync::Arc::clone(&local.clock);
    local.worker.turn_began(&clock);
    local.send(b"PING\r\nDEBUG SLEEP 0.009\r\nDEBUG SLEEP 0.010\r\nPING\r\n");
    assert_eq!(
        info(&mut local, "slowlog"),
        [
            "slowlog_length:1",
            "slowlog_0:waited_usec=9000,took_usec=10000"
        ]
    );
}

#[test]
fn thresholds_and_lengths_are_live() {
    let mut local = local(&[]);
    ask(&mut local, "CONFIG SET slowlog-log-slower-than 0");
    // Both it and what follows.
    ask(&mut local, "PING");
    assert_eq!(ask(&mut local, "SLOWLOG LEN"), ":2\r\n");
    ask(&mut local, "CONFIG SET slowlog-max-len 2");
    assert_eq!(ask(&mut local, "SLOWLOG LEN"), ":2\r\n");
    ask(&mut local, "CONFIG SET slowlog-max-len 0");
    ask(&mut local, "PING");
    assert_eq!(ask(&mut local, "SLOWLOG LEN"), ":2\r\n");
    ask(
        &mut local,
        "CONFIG SET slowlog-max-len 10 slowlog-log-slower-than -1",
    );
    ask(&mut local, "DEBUG SLEEP 1");
    assert_eq!(ask(&mut local, "SLOWLOG LEN"), ":2\r\n");
}

#[test]
fn secrets_are_not_kept() {
    let mut local = local(&["--slowlog-log-slower-than", "0"]);
    for request in [
        "AUTH secret",
        "AUTH default secret",
        "HELLO 2 SETNAME AUTH AUTH default secret SETNAME x",
        "CONFIG SET requirepass secret maxclients 100",
        "CONFIG SET maxclients 100 REQUIREPASS secret",
    ] {
        ask(&mut local, request);
    }
    let log = ask(&mut local, "SLOWLOG GET -1");
    assert!(!log.contains("secret"), "{log}");
    // As Redis shows them, the newest first.
    let words: Vec<&str> = log
        .split("\r\n")
        .filter(|line| !line.starts_with(['*', ':', '$']))
        .collect();
    let shown = words.join(" ").replace("127.0.0.1:1 ", "/ ");
    assert_eq!(
        shown,
        "CONFIG SET maxclients 100 REQUIREPASS (redacted) / x CONFIG SET requirepass (redacted) maxclients 100 / x \
         HELLO 2 SETNAME AUTH AUTH (redacted) (redacted) SETNAME x / x AUTH (redacted) (redacted) /  \
         AUTH (redacted) /  "
    );
}

#[test]
fn refused_commands_are_not_slow_ones() {
    let mut local = local(&["--slowlog-log-slower-than", "0"]);
    for request in ["NOSUCH", "GET", "SLOWLOG NOSUCH", "SLOWLOG LEN 1"] {
        assert!(ask(&mut local, request).starts_with('-'));
    }
    assert_eq!(ask(&mut local, "SLOWLOG LEN"), ":0\r\n");
}

#[test]
fn commands_are_counted_with_their_time_and_what_became_of_them() {
    let mut local = local(&[]);
    for request in [
        "DEBUG SLEEP 0.002",
        "DEBUG SLEEP 0.003",
        "SET n 1",
        "SET n 1 BAD",
        "INCR n",
        "GET",
        "SLOWLOG",
        "SLOWLOG NOSUCH",
        "SLOWLOG LEN 1",
        "SLOWLOG GET x",
        "NOSUCH",
    ] {
        ask(&mut local, request);
    }
    let stats = info(&mut local, "commandstats");
    assert_eq!(
        stats,
        [
            "cmdstat_set:calls=2,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1",
            "cmdstat_get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0",
            "cmdstat_incr:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0",
            "cmdstat_debug:calls=2,usec=5000,usec_per_call=2500.00,rejected_calls=0,failed_calls=0",
            "cmdstat_slowlog:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0",
            "cmdstat_slowlog|get:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1",
            "cmdstat_slowlog|len:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0",
        ]
    );
    assert_eq!(info(&mut local, "errorstats"), ["errorstat_ERR:count=7"]);
    assert!(info(&mut local, "stats").contains(&"total_error_replies:7".to_owned()));
    // Refused commands are not processed.
    assert!(info(&mut local, "stats").contains(&"total_commands_processed:9".to_owned()));
    let latency = info(&mut local, "latencystats");
    assert!(
        latency.contains(
            &"latency_percentiles_usec_debug:p50=2007.039,p99=3014.655,p99.9=3014.655".to_owned()
        ),
        "{latency:?}"
    );
    assert!(
        latency
            .contains(&"latency_percentiles_usec_set:p50=0.001,p99=0.001,p99.9=0.001".to_owned())
    );
}

#[test]
fn each_error_is_counted_once_by_its_first_word() {
    let mut local = local(&["--requirepass", "x"]);
    for request in ["GET k", "PING", "AUTH y", "AUTH x", "INCR", "HELLO 9"] {
        ask(&mut local, request);
    }
    assert_eq!(
        info(&mut local, "errorstats"),
        [
            "errorstat_ERR:count=1",
            "errorstat_NOAUTH:count=2",
            "errorstat_NOPROTO:count=1",
            "errorstat_WRONGPASS:count=1",
        ]
    );
    let stats = info(&mut local, "stats");
    for line in ["total_error_replies:5", "acl_access_denied_auth:1"] {
        assert!(stats.contains(&line.to_owned()), "{stats:?}");
    }
}

#[test]
fn a_protocol_error_is_an_error_reply() {
    let mut local = local(&[]);
    local.deliver(b"*1\r\n$x\r\n");
    assert!(local.replies().starts_with(b"-ERR Protocol error"));
    // The session is over; another one of the engine tells.
    let mut other = in_process::session(&local.engine, 2);
    let mut out = Output::new();
    other.received(
        &local.engine,
        &mut local.worker,
        &local.clock,
        b"INFO errorstats\r\n",
        &mut out,
    );
    let reply = String::from_utf8(out.to_vec()).unwrap();
    assert!(reply.contains("errorstat_ERR:count=1\r\n"), "{reply}");
}

#[test]
fn resetstat_counts_commands_and_errors_anew_for_all_workers() {
    let mut local = local(&[]);
    let mut second = WorkerState::new(&local.engine, 1, 8);
    let mut other = in_process::session(&local.engine, 2);
    let mut on_second = |local: &Local, bytes: &[u8]| {
        let mut out = Output::new();
        other.received(&local.engine, &mut second, &local.clock, bytes, &mut out);
    };
    ask(&mut local, "GET k");
    ask(&mut local, "GET");
    on_second(&local, b"GET k\r\nNOSUCH\r\n");
    assert_eq!(
        info(&mut local, "commandstats")[0],
        "cmdstat_get:calls=2,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0"
    );
    assert_eq!(ask(&mut local, "CONFIG RESETSTAT"), "+OK\r\n");
    assert_eq!(
        info(&mut local, "commandstats"),
        [
            "cmdstat_config|resetstat:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0"
        ]
    );
    assert_eq!(info(&mut local, "errorstats"), [""; 0]);
    on_second(&local, b"PING\r\nNOSUCH\r\n");
    assert_eq!(info(&mut local, "errorstats"), ["errorstat_ERR:count=1"]);
    let stats = info(&mut local, "commandstats");
    let ping = "cmdstat_ping:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0";
    assert!(stats.contains(&ping.to_owned()), "{stats:?}");
}

/// Every reading of the instant is 100 ns later, or as much as was asked for once.
#[derive(Default)]
struct Ticking {
    now_ns: AtomicU64,
    readings: AtomicU64,
    /// How much later the reading of this number is.
    late: (u64, u64),
}

impl Clock for Ticking {
    fn unix_us(&self) -> u64 {
        START_MS * 1000
    }

    fn monotonic_ns(&self) -> u64 {
        START_MS * 1_000_000
    }

    fn instant_ns(&self) -> u64 {
        let number = self.readings.fetch_add(1, Ordering::Relaxed);
        let step = if number == self.late.0 {
            self.late.1
        } else {
            100
        };
        self.now_ns.fetch_add(step, Ordering::Relaxed) + step
    }
}

#[test]
fn equal_fast_commands_share_readings_and_their_sum_is_exact() {
    let mut local = local(&[]);
    let clock = Ticking::default();
    local.receive_at(&b"GET k\r\n".repeat(20), &clock);
    // One at the beginning, then after 8, 16 and 20 commands.
    assert_eq!(clock.readings.load(Ordering::Relaxed), 4);
    let get = "cmdstat_get:calls=20,usec=0,usec_per_call=0.01,rejected_calls=0,failed_calls=0";
    assert_eq!(info(&mut local, "commandstats")[0], get);
    let latency = info(&mut local, "latencystats");
    assert_eq!(
        latency[0],
        "latency_percentiles_usec_get:p50=0.012,p99=0.025,p99.9=0.025"
    );
}

#[test]
fn what_is_not_alike_or_not_short_has_a_reading_of_its_own() {
    let long = format!("SET k {}\r\n", "v".repeat(4096)).repeat(2);
    for (requests, readings) in [
        ("GET k\r\nPING\r\nGET k\r\n", 4),
        ("SET k v\r\nSET k v\r\n", 2),
        (&*long, 3),
        ("STRLEN k\r\nSTRLEN k\r\n", 2),
        ("MSET k v\r\nMSET k v\r\n", 3),
        ("CLIENT ID\r\nCLIENT GETNAME\r\n", 3),
        ("PING\r\nPING x\r\nPING x\r\n", 3),
        ("GET k\r\nGET\r\nGET k\r\n", 4),
        ("HELLO 2\r\nHELLO 2\r\n", 3),
    ] {
        let mut local = local(&[]);
        let clock = Ticking::default();
        local.receive_at(requests.as_bytes(), &clock);
        assert_eq!(
            clock.readings.load(Ordering::Relaxed),
            readings,
            "{requests}"
        );
    }
    let mut close = local(&["--slowlog-log-slower-than", "999"]);
    let clock = Ticking::default();
    close.receive_at(b"GET k\r\nGET k\r\n", &clock);
    assert_eq!(clock.readings.load(Ordering::Relaxed), 3);
}

#[test]
fn a_slow_one_among_those_that_share_a_reading_is_seen() {
    let mut local = local(&[]);
    let clock = Ticking {
        late: (2, 12_000_300),
        ..Ticking::default()
    };
    local.receive_at(&b"GET k\r\n".repeat(16), &clock);
    let latency = info(&mut local, "latencystats");
    assert_eq!(
        latency[0],
        "latency_percentiles_usec_get:p50=0.012,p99=12058.623,p99.9=12058.623"
    );
    assert_eq!(
        info(&mut local, "slowlog"),
        [
            "slowlog_length:1",
            "slowlog_0:waited_usec=0,took_usec=12000"
        ]
    );
}

#[test]
fn percentiles_are_those_asked_for_and_tracking_is_live() {
    let mut local = local(&["--latency-tracking-info-percentiles", "0", "33.3333", "100"]);
    for ms in 1..=3 {
        ask(&mut local, &format!("DEBUG SLEEP 0.00{ms}"));
    }
    let expected = "latency_percentiles_usec_debug:p0=999.424,p33.3333=1003.519,p100=3014.655";
    let latency = info(&mut local, "latencystats");
    assert!(latency.contains(&expected.to_owned()), "{latency:?}");
    ask(&mut local, "CONFIG SET latency-tracking no");
    assert_eq!(info(&mut local, "latencystats"), [""; 0]);
    ask(&mut local, "DEBUG SLEEP 0.5");
    ask(&mut local, "CONFIG SET latency-tracking yes");
    let latency = info(&mut local, "latencystats");
    assert!(latency.contains(&expected.to_owned()), "{latency:?}");
}

#[test]
fn histograms_are_told_by_command_and_container() {
    let mut local = local(&[]);
    ask(&mut local, "CONFIG RESETSTAT");
    for seconds in ["0.001", "0.001", "0.03"] {
        ask(&mut local, &format!("DEBUG SLEEP {seconds}"));
    }
    let debug = "$5\r\ndebug\r\n*4\r\n$5\r\ncalls\r\n:3\r\n$14\r\nhistogram_usec\r\n*4\r\n:1056\r\n:2\r\n:33816\r\n:3\r\n";
    let resetstat = "$16\r\nconfig|resetstat\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n*2\r\n:1\r\n:1\r\n";
    assert_eq!(
        ask(
            &mut local,
            "LATENCY HISTOGRAM debug nosuch CONFIG config|ResetStat get"
        ),
        format!("*6\r\n{debug}{resetstat}{resetstat}")
    );
    assert_eq!(
        ask(&mut local, "LATENCY HISTOGRAM nosuch|x config|x"),
        "*0\r\n"
    );
    ask(&mut local, "HELLO 3");
    let in_resp3 = debug.replace("*4\r\n$5\r\ncalls", "%2\r\n$5\r\ncalls");
    let in_resp3 = in_resp3.replace("*4\r\n:1056", "%2\r\n:1056");
    assert_eq!(
        ask(&mut local, "LATENCY HISTOGRAM debug"),
        format!("%1\r\n{in_resp3}")
    );
    let all = ask(&mut local, "LATENCY HISTOGRAM");
    for name in ["debug", "config|resetstat", "hello", "latency|histogram"] {
        assert!(all.contains(&format!("\r\n{name}\r\n")), "{all}");
    }
    assert!(all.starts_with("%4\r\n"));
}

#[test]
fn events_are_monitored_from_the_threshold_on() {
    let mut local = local(&[]);
    ask(&mut local, "DEBUG SLEEP 0.05");
    assert_eq!(ask(&mut local, "LATENCY LATEST"), "*0\r\n");
    assert!(ask(&mut local, "LATENCY DOCTOR").contains("latency-monitor-threshold"));
    ask(&mut local, "CONFIG SET latency-monitor-threshold 10");
    for seconds in ["0.0099", "0.02", "0.03", "0.01"] {
        ask(&mut local, &format!("DEBUG SLEEP {seconds}"));
    }
    // 120 ms into the second that the test begins with.
    assert_eq!(
        ask(&mut local, "LATENCY LATEST"),
        format!("*1\r\n*4\r\n$7\r\ncommand\r\n:{START_S}\r\n:30\r\n:30\r\n")
    );
    local.clock.advance_ms(1000);
    ask(&mut local, "DEBUG SLEEP 0.015");
    assert_eq!(
        ask(&mut local, "LATENCY HISTORY command"),
        format!(
            "*2\r\n*2\r\n:{START_S}\r\n:30\r\n*2\r\n:{}\r\n:15\r\n",
            START_S + 1
        )
    );
    assert_eq!(
        ask(&mut local, "LATENCY LATEST"),
        format!(
            "*1\r\n*4\r\n$7\r\ncommand\r\n:{}\r\n:15\r\n:30\r\n",
            START_S + 1
        )
    );
    let graph = ask(&mut local, "LATENCY GRAPH command");
    assert!(
        graph.contains("command - high 30 ms, low 15 ms (all time high 30 ms)\n"),
        "{graph}"
    );
    assert!(ask(&mut local, "LATENCY DOCTOR").contains("1. command: 2 latency spikes"));
    assert_eq!(
        ask(&mut local, "LATENCY RESET command command nosuch"),
        ":1\r\n"
    );
    assert_eq!(ask(&mut local, "LATENCY HISTORY command"), "*0\r\n");
    assert_eq!(ask(&mut local, "LATENCY RESET"), ":0\r\n");
    assert_eq!(
        ask(&mut local, "LATENCY GRAPH command"),
        "-ERR No samples available for event 'command'\r\n"
    );
}
