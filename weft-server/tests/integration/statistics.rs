//! What INFO, SLOWLOG and LATENCY tell of many workers together is what happened.

use std::thread;

use crate::harness::{Client, Server};

const CLIENTS: usize = 8;
const ROUNDS: usize = 500;

fn server() -> (Server, Client) {
    let server = Server::start(&["--io-threads", "4", "--enable-debug-command", "yes"]);
    let mut client = server.connect();
    client.ask("DEBUG WORKERS 4", "+OK\r\n");
    (server, client)
}

/// Lines of a section of INFO that begin with this.
fn lines(client: &mut Client, section: &str, prefix: &str) -> Vec<String> {
    let info = client.bulk(&format!("INFO {section}"));
    let lines = info.lines().filter(|line| line.starts_with(prefix));
    lines.map(str::to_owned).collect()
}

/// Lets `CLIENTS` clients run this at a time, each on a connection of its own.
fn with_clients(port: u16, run: impl Fn(&mut Client) + Sync) {
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client::connect(("127.0.0.1", port)).unwrap();
                run(&mut client);
            });
        }
    });
}

#[test]
fn counts_of_all_workers_add_up() {
    let (server, mut client) = server();
    let port = server.port();
    client.ask("CONFIG RESETSTAT", "+OK\r\n");
    with_clients(port, |client| {
        for _ in 0..ROUNDS {
            client.send("GET k\r\nGET k\r\nINCR k x\r\nNOSUCH\r\nAUTH default x y\r\n");
            client.expect(b"$-1\r\n$-1\r\n");
            for _ in 0..3 {
                assert!(client.line().starts_with('-'));
            }
        }
    });
    let rounds = CLIENTS * ROUNDS;
    let get = &lines(&mut client, "commandstats", "cmdstat_get:")[0];
    assert!(
        get.starts_with(&format!("cmdstat_get:calls={},usec=", 2 * rounds))
            && get.ends_with(",rejected_calls=0,failed_calls=0"),
        "{get}"
    );
    // Commands take some time, and no client waited for them in vain.
    let usec: u64 = get
        .split([',', '='])
        .nth(3)
        .and_then(|number| number.parse().ok())
        .unwrap();
    assert!((1..60_000_000).contains(&usec), "{get}");
    let incr = &lines(&mut client, "commandstats", "cmdstat_incr:")[0];
    assert_eq!(
        *incr,
        format!(
            "cmdstat_incr:calls=0,usec=0,usec_per_call=0.00,rejected_calls={rounds},failed_calls=0"
        )
    );
    let auth = &lines(&mut client, "commandstats", "cmdstat_auth:")[0];
    assert!(auth.ends_with(&format!(",failed_calls={rounds}")), "{auth}");
    assert_eq!(
        lines(&mut client, "errorstats", "errorstat_"),
        [format!("errorstat_ERR:count={}", 3 * rounds)]
    );
    assert_eq!(
        lines(&mut client, "stats", "total_error_replies:"),
        [format!("total_error_replies:{}", 3 * rounds)]
    );
    // The commands of this client come on top: RESETSTAT and the INFOs before this one.
    assert_eq!(
        lines(&mut client, "stats", "total_commands_processed:"),
        [format!("total_commands_processed:{}", 3 * rounds + 6)]
    );
    let misses = format!("keyspace_misses:{}", 2 * rounds);
    assert_eq!(lines(&mut client, "stats", "keyspace_misses:"), [misses]);
}

#[test]
fn memory_never_looks_negative_while_threads_free_what_others_made() {
    let (server, mut client) = server();
    let port = server.port();
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            with_clients(port, |client| {
                let value = "x".repeat(100_000);
                for round in 0..50 {
                    let key = round % 5;
                    client.send(format!(
                        "*3\r\n$3\r\nSET\r\n$1\r\n{key}\r\n$100000\r\n{value}\r\nDEL {key}\r\n"
                    ));
                    client.expect(b"+OK\r\n");
                    client.line();
                }
            });
        });
        while !load.is_finished() {
            for field in [
                "used_memory:",
                "used_memory_dataset:",
                "used_memory_peak:",
                "mem_clients_normal:",
            ] {
                let line = &lines(&mut client, "memory", field)[0];
                let bytes: u64 = line[field.len()..].parse().unwrap();
                assert!(bytes < 1 << 36, "{line}");
            }
        }
        load.join().unwrap();
    });
    client.ask("FLUSHALL", "+OK\r\n");
    // The reaper is done soon.
    while lines(&mut client, "memory", "lazyfree_pending_objects:")
        != ["lazyfree_pending_objects:0"]
    {
        thread::yield_now();
    }
    assert_ne!(
        lines(&mut client, "memory", "lazyfreed_objects:"),
        ["lazyfreed_objects:0"]
    );
}

#[test]
fn slow_commands_of_all_workers_have_numbers_in_one_order() {
    let (server, mut client) = server();
    let port = server.port();
    client.ask(
        "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 100000",
        "+OK\r\n",
    );
    client.ask("SLOWLOG RESET", "+OK\r\n");
    with_clients(port, |client| {
        for _ in 0..ROUNDS {
            client.ask("GET k", "$-1\r\n");
        }
    });
    client.ask("CONFIG SET slowlog-log-slower-than -1", "+OK\r\n");
    // SLOWLOG RESET itself is there, and so is nothing after the last CONFIG SET.
    client.ask("SLOWLOG LEN", &format!(":{}\r\n", CLIENTS * ROUNDS + 1));
    let ids: Vec<u64> = lines(&mut client, "slowlog", "slowlog_")
        .iter()
        .skip(1)
        .map(|line| {
            let (name, _) = line.split_once(':').unwrap();
            name["slowlog_".len()..].parse().unwrap()
        })
        .collect();
    assert_eq!(ids.len(), CLIENTS * ROUNDS + 1);
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1] + 1));
}

#[test]
fn sleep_is_slow_and_a_latency_event() {
    let server = Server::start(&[
        "--enable-debug-command",
        "yes",
        "--latency-monitor-threshold",
        "30",
    ]);
    let mut client = server.connect();
    client.ask("DEBUG SLEEP 0.05", "+OK\r\n");
    client.ask("SLOWLOG LEN", ":1\r\n");
    client.send("LATENCY LATEST\r\n");
    client.expect(b"*1\r\n*4\r\n$7\r\ncommand\r\n");
    client.line();
    let took: u64 = client
        .line()
        .trim_start_matches(':')
        .trim_end()
        .parse()
        .unwrap();
    assert!((50..10_000).contains(&took), "{took}");
    client.line();
    let p50 = &lines(
        &mut client,
        "latencystats",
        "latency_percentiles_usec_debug:",
    )[0];
    let us: f64 = p50
        .split([',', '='])
        .nth(1)
        .and_then(|number| number.parse().ok())
        .unwrap();
    assert!(us >= 50_000.0, "{p50}");
}
