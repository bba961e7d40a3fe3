//! Connections: who gets one, what travels over it, and what ends it.

use std::fs;
use std::net::{Shutdown, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Client, PATIENCE, Server, info_field};

#[test]
fn one_client_too_many_is_told() {
    let server = Server::start(&["--maxclients", "3"]);
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    clients
        .iter_mut()
        .for_each(|client| client.ask("PING", "+PONG\r\n"));
    for _ in 0..2 {
        let mut refused = server.connect();
        refused.expect(b"-ERR max number of clients reached\r\n");
        refused.expect_end();
    }
    assert_eq!(info_field(&mut clients[0], "rejected_connections"), "2");
    assert_eq!(info_field(&mut clients[0], "connected_clients"), "3");
    assert_eq!(
        info_field(&mut clients[0], "total_connections_received"),
        "3"
    );
    // Another one fits as soon as the limit is raised, and again when somebody has left.
    clients[0].ask("CONFIG SET maxclients 4", "+OK\r\n");
    let mut fourth = server.connect();
    fourth.ask("PING", "+PONG\r\n");
    fourth.ask("CONFIG SET maxclients 3", "+OK\r\n");
    fourth.ask("QUIT", "+OK\r\n");
    fourth.expect_end();
    clients.pop().unwrap().ask("QUIT", "+OK\r\n");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut next = server.connect();
        next.send("PING\r\n");
        if next.line() == "+PONG\r\n" {
            break;
        }
        assert!(Instant::now() < deadline);
    }
}

/// An address of this machine that is not a loopback address, if it has one.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Connecting a datagram socket sends nothing: it only chooses the address to send from.
    socket.connect("198.51.100.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn protected_mode_keeps_strangers_out_until_there_is_a_password() {
    let Some(address) = own_address() else {
        eprintln!("this machine has no address that is not local: nothing to try");
        return;
    };
    let server = Server::start(&[]);
    let mut local = server.connect();
    let stranger = || Client::connect((address, server.port())).unwrap();
    let mut denied = stranger();
    let text = denied.line();
    assert!(
        text.starts_with(
            "-DENIED Redis is running in protected mode because protected mode is enabled"
        ),
        "{text}"
    );
    assert!(
        text.ends_with("accepting connections from the outside.\r\n"),
        "{text}"
    );
    denied.expect_end();
    assert_eq!(info_field(&mut local, "rejected_connections"), "1");
    local.ask("CONFIG SET requirepass secret", "+OK\r\n");
    stranger().ask("PING", "-NOAUTH Authentication required.\r\n");
    local.ask("CONFIG SET requirepass \"\"", "+OK\r\n");
    assert!(stranger().line().starts_with("-DENIED "));
    local.ask("CONFIG SET protected-mode no", "+OK\r\n");
    stranger().ask("PING", "+PONG\r\n");
}

#[test]
fn idle_clients_are_closed_after_the_timeout() {
    let server = Server::start(&[]);
    let mut idle = server.connect();
    idle.ask("PING", "+PONG\r\n");
    let mut busy = server.connect();
    busy.ask("CONFIG SET timeout 1", "+OK\r\n");
    let start = Instant::now();
    let watch = thread::spawn(move || {
        idle.expect_end();
        start.elapsed()
    });
    while !watch.is_finished() {
        busy.ask("PING", "+PONG\r\n");
        assert!(start.elapsed() < PATIENCE);
    }
    let waited = watch.join().unwrap();
    assert!(
        waited >= Duration::from_millis(900) && waited < Duration::from_secs(5),
        "{waited:?}"
    );
    busy.ask("PING", "+PONG\r\n");
}

fn set(client: &mut Client, key: &str, value: &str) {
    client.send(format!(
        "*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n",
        key.len(),
        value.len()
    ));
    client.expect(b"+OK\r\n");
}

#[test]
fn large_values_come_back_as_they_were() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    for size in [65_535, 65_536, 65_537, 1 << 20, (5 << 20) + 3] {
        let value: String = (0..size)
            .map(|at| char::from(b'a' + (at * 7 % 251 % 26) as u8))
            .collect();
        set(&mut client, "large", &value);
        client.ask("GET large", &format!("${size}\r\n{value}\r\n"));
        client.ask("STRLEN large", &format!(":{size}\r\n"));
    }
}

#[test]
fn a_long_pipeline_is_answered_in_order_to_a_late_reader() {
    const REQUESTS: usize = 100_000;
    let server = Server::start(&[]);
    let mut client = server.connect();
    let requests: String = (0..REQUESTS)
        .map(|number| format!("ECHO {number}\r\n"))
        .collect();
    client.send(requests);
    let replies: String = (0..REQUESTS)
        .map(|number| {
            let text = number.to_string();
            format!("${}\r\n{text}\r\n", text.len())
        })
        .collect();
    client.expect(replies.as_bytes());
}

#[test]
fn half_a_million_replies_wait_for_a_client_that_reads_late() {
    const REQUESTS: usize = 500_000;
    const VALUE: usize = 1024;
    let server = Server::start(&[]);
    let mut client = server.connect();
    let value = "v".repeat(VALUE);
    set(&mut client, "key", &value);
    let batch = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n".repeat(1000);
    for _ in 0..REQUESTS / 1000 {
        client.send(&batch);
    }
    let replies = format!("${VALUE}\r\n{value}\r\n").repeat(1000);
    for _ in 0..REQUESTS / 1000 {
        client.expect(replies.as_bytes());
    }
    client.ask("PING", "+PONG\r\n");
}

#[test]
fn a_client_that_has_said_its_last_word_gets_all_replies() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    set(&mut client, "key", &"v".repeat(100_000));
    client.send("GET key\r\n".repeat(100));
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.expect(
        format!("$100000\r\n{}\r\n", "v".repeat(100_000))
            .repeat(100)
            .as_bytes(),
    );
    client.expect_end();
}

#[test]
fn a_client_over_its_output_limit_is_closed_and_named() {
    let mut server = Server::start(&["--client-output-buffer-limit", "normal 1mb 0 0"]);
    let mut client = server.connect();
    set(&mut client, "key", &"v".repeat(100_000));
    let address = client.stream.local_addr().unwrap();
    // The sockets hold a few megabytes, the limit is one more.
    let _ = std::io::Write::write_all(&mut client.stream, &b"GET key\r\n".repeat(1000));
    let line = server.wait_for_line("output buffer limits");
    assert!(
        line.contains(" # Client id=") && line.contains(&format!(" addr={address} ")),
        "{line}"
    );
    server.connect().ask("PING", "+PONG\r\n");
}

#[test]
fn keys_go_when_their_time_has_come_though_nobody_asks() {
    const KEYS: usize = 200_000;
    const BATCH: usize = 1000;
    let server = Server::start(&[]);
    let mut client = server.connect();
    // Deadlines close to each other: at any time some buckets hold keys that are due and others that soon will be.
    for first in (0..KEYS).step_by(BATCH) {
        let requests: String = (first..first + BATCH)
            .map(|number| format!("SET key:{number} value PX {}\r\n", 3000 + number * 7 % 700))
            .collect();
        client.send(requests);
        client.expect("+OK\r\n".repeat(BATCH).as_bytes());
    }
    let deadline = Instant::now() + PATIENCE;
    while info_field(&mut client, "expired_keys") != KEYS.to_string() {
        assert!(Instant::now() < deadline);
    }
    client.ask("DBSIZE", ":0\r\n");
}

/// How often the threads of the process have gone to sleep so far.
fn naps(server: &Server) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    tasks
        .map(|task| {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let count = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
                .unwrap();
            count.trim().parse::<u64>().unwrap()
        })
        .sum()
}

#[test]
fn an_idle_server_sleeps() {
    let server = Server::start(&[]);
    server.connect().ask("SET key value", "+OK\r\n");
    // Housekeeping follows the last work for a few seconds, then nothing is left to be done.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = naps(&server);
        thread::sleep(Duration::from_secs(1));
        if naps(&server) == before {
            break;
        }
        assert!(Instant::now() < deadline, "{} naps", naps(&server));
    }
    // A key with a deadline keeps the clock ticking, `hz` times a second.
    server.connect().ask("SET key value EX 1000", "+OK\r\n");
    thread::sleep(Duration::from_secs(6));
    let before = naps(&server);
    thread::sleep(Duration::from_secs(1));
    let ticks = naps(&server) - before;
    assert!((1..=15).contains(&ticks), "{ticks} ticks");
}

fn resident_bytes(client: &mut Client) -> u64 {
    info_field(client, "used_memory_rss").parse().unwrap()
}

#[test]
fn memory_goes_back_to_the_system() {
    const VALUES: usize = 64;
    let server = Server::start(&[]);
    let mut client = server.connect();
    let empty = resident_bytes(&mut client);
    let value = "v".repeat(1 << 20);
    for number in 0..VALUES {
        set(&mut client, &format!("large:{number}"), &value);
    }
    for number in 0..100_000 {
        client.send(format!(
            "SET small:{number} 0123456789012345678901234567890123456789\r\n"
        ));
    }
    client.expect("+OK\r\n".repeat(100_000).as_bytes());
    assert!(resident_bytes(&mut client) > empty + (VALUES as u64) * (1 << 20));
    client.ask("FLUSHALL", "+OK\r\n");
    let deadline = Instant::now() + PATIENCE;
    while resident_bytes(&mut client) > empty + (8 << 20) {
        assert!(
            Instant::now() < deadline,
            "{} -> {}",
            empty,
            resident_bytes(&mut client)
        );
    }
}

#[test]
fn many_clients_come_and_go() {
    let server = Server::start(&[]);
    for round in 0..20 {
        let mut clients: Vec<Client> = (0..100).map(|_| server.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("SET k{number} {round}\r\nGET k{number}\r\n"));
        }
        let expected = format!("+OK\r\n${}\r\n{round}\r\n", round.to_string().len());
        clients
            .iter_mut()
            .for_each(|client| client.expect(expected.as_bytes()));
    }
    let mut client = server.connect();
    let deadline = Instant::now() + PATIENCE;
    while info_field(&mut client, "connected_clients") != "1" {
        assert!(Instant::now() < deadline);
    }
    assert_eq!(
        info_field(&mut client, "total_connections_received"),
        "2001"
    );
}

#[test]
fn the_tables_of_flushed_keys_go_back_to_the_system() {
    const KEYS: usize = 1_000_000;
    const BATCH: usize = 10_000;
    // About half of what the buckets alone of so many keys take.
    const MARGIN: u64 = 5 << 20;
    let server = Server::start(&[]);
    let mut client = server.connect();
    let empty = resident_bytes(&mut client);
    for first in (0..KEYS).step_by(BATCH) {
        let requests = (first..first + BATCH).map(|number| format!("SET key:{number} v\r\n"));
        client.send(requests.collect::<String>());
        client.expect("+OK\r\n".repeat(BATCH).as_bytes());
    }
    client.ask("FLUSHALL", "+OK\r\n");
    let deadline = Instant::now() + PATIENCE;
    while resident_bytes(&mut client) > empty + MARGIN {
        assert!(
            Instant::now() < deadline,
            "{} bytes are left",
            resident_bytes(&mut client)
        );
    }
}
