//! Clients that ask for more than they read: what they cost, whom they disturb, and what ends them.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Client, PATIENCE, Server, info_field, message};

const MIB: usize = 1 << 20;

fn set(client: &mut Client, key: &str, value: &str) {
    client.send(format!(
        "*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n",
        key.len(),
        value.len()
    ));
    client.send(value);
    client.send("\r\n");
    client.expect(b"+OK\r\n");
}

fn bulk(value: &str) -> String {
    format!("${}\r\n{value}\r\n", value.len())
}

/// Resident memory of the server.
fn resident_bytes(server: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kib.parse::<usize>().unwrap() * 1024
}

/// How many bytes of replies the server has made.
fn replied_bytes(client: &mut Client) -> usize {
    info_field(client, "total_net_output_bytes")
        .parse()
        .unwrap()
}

/// Waits until the server has made so many bytes of replies more than `before`.
fn wait_for_replies(client: &mut Client, before: usize, bytes: usize) {
    let deadline = Instant::now() + PATIENCE;
    while replied_bytes(client) < before + bytes {
        assert!(Instant::now() < deadline, "the replies are not made");
    }
}

/// Reads until the peer ends the connection, in order or not, and returns how much came.
fn read_to_the_end(client: &mut Client) -> usize {
    let (mut buffer, mut count) = (vec![0; 1 << 16], 0);
    loop {
        match client.stream.read(&mut buffer) {
            Ok(0) => return count,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return count,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The longest that `count` GETs on a connection of their own had to wait, one after the other.
fn longest_wait(server: &Server, count: usize) -> Duration {
    let mut client = server.connect();
    let ask = |client: &mut Client| {
        let start = Instant::now();
        client.ask("GET other", "$5\r\nvalue\r\n");
        start.elapsed()
    };
    (0..count).map(|_| ask(&mut client)).max().unwrap()
}

#[test]
fn lent_values_take_no_memory_and_arrive_as_they_were() {
    const READERS: usize = 32;
    const LEN: usize = 16 * MIB;
    let server = Server::start(&[]);
    let mut client = server.connect();
    let value: String = (0..LEN)
        .map(|at| char::from(b'a' + (at * 7 % 251 % 26) as u8))
        .collect();
    set(&mut client, "key", &value);
    let (before, replied) = (resident_bytes(&server), replied_bytes(&mut client));
    let mut readers: Vec<Client> = (0..READERS).map(|_| server.connect()).collect();
    for reader in &mut readers {
        reader.send("GET key\r\n");
    }
    wait_for_replies(&mut client, replied, READERS * LEN);
    let grown = resident_bytes(&server).saturating_sub(before);
    assert!(grown < LEN / 2, "{} replies take {grown} bytes", READERS);
    // Overwritten, written into and gone: the readers get what they asked for.
    client.send("SETRANGE key 100 changed\r\n");
    client.expect(format!(":{LEN}\r\n").as_bytes());
    set(&mut client, "key", &"n".repeat(LEN));
    client.ask("DEL key", ":1\r\n");
    let expected = bulk(&value);
    for reader in &mut readers {
        reader.expect(expected.as_bytes());
    }
    client.ask("GET key", "$-1\r\n");
}

#[test]
fn replies_that_wait_cost_little_more_than_their_bytes() {
    const REQUESTS: usize = 100_000;
    const VALUE: usize = 1000;
    let server = Server::start(&[]);
    let mut client = server.connect();
    set(&mut client, "key", &"v".repeat(VALUE));
    let (before, replied) = (resident_bytes(&server), replied_bytes(&mut client));
    let mut late = server.connect();
    late.send("GET key\r\n".repeat(REQUESTS));
    let bytes = REQUESTS * (VALUE + 9);
    wait_for_replies(&mut client, replied, bytes);
    let grown = resident_bytes(&server).saturating_sub(before);
    assert!(grown < bytes * 5 / 4, "{bytes} bytes take {grown}");
    let expected = bulk(&"v".repeat(VALUE)).repeat(1000);
    for _ in 0..REQUESTS / 1000 {
        late.expect(expected.as_bytes());
    }
    late.ask("PING", "+PONG\r\n");
}

#[test]
fn a_slow_reader_delays_nobody() {
    // All on one worker.
    let server = Server::start(&["--io-threads", "1"]);
    let mut client = server.connect();
    set(&mut client, "other", "value");
    set(&mut client, "small", &"s".repeat(1024));
    set(&mut client, "large", &"l".repeat(MIB));
    // 64 MiB for each, copied and lent.
    let stuck: Vec<Client> = [
        "GET small\r\n".repeat(64 * 1024),
        "GET large\r\n".repeat(64),
    ]
    .iter()
    .map(|requests| {
        let mut reader = server.connect();
        reader.send(requests);
        reader
    })
    .collect();
    let mut slow = stuck[1].stream.try_clone().unwrap();
    let done = AtomicBool::new(false);
    let longest = thread::scope(|scope| {
        // 1 KB a second.
        scope.spawn(|| {
            let mut piece = [0; 100];
            while !done.load(Ordering::Relaxed) {
                slow.read_exact(&mut piece).unwrap();
                thread::sleep(Duration::from_millis(100));
            }
        });
        let longest = longest_wait(&server, 1000);
        done.store(true, Ordering::Relaxed);
        longest
    });
    assert!(longest < Duration::from_millis(100), "{longest:?}");
    // Both are still owed everything.
    drop(stuck);
    client.ask("PING", "+PONG\r\n");
}

/// Expects the line about a client over its limit. It went there in this way.
fn expect_line(server: &mut Server, client: &Client, fate: &str) {
    let address = client.stream.local_addr().unwrap();
    let line = server.wait_for_line("output buffer limits");
    let text = message(&line);
    assert!(line.contains(" # Client id="), "{line}");
    assert!(
        text.starts_with("Client id=")
            && text.contains(&format!(
                " addr={address} laddr=127.0.0.1:{} ",
                server.port()
            )),
        "{text}"
    );
    assert!(
        text.ends_with(&format!(" {fate} for overcoming of output buffer limits.")),
        "{text}"
    );
}

#[test]
fn a_hard_limit_bounds_memory_whatever_is_asked() {
    let mut server = Server::start(&["--client-output-buffer-limit", "normal 1mb 0 0"]);
    let mut client = server.connect();
    set(&mut client, "small", &"s".repeat(15_000));
    set(&mut client, "other", "value");
    let before = resident_bytes(&server);
    // 2 GB of replies each: many small ones, and one large one.
    let many = "GET small\r\n".repeat(136_000);
    let one = format!(
        "*136001\r\n$4\r\nMGET\r\n{}",
        "$5\r\nsmall\r\n".repeat(136_000)
    );
    for (number, requests) in [many, one].into_iter().enumerate() {
        let mut greedy = server.connect();
        // It ends while they are being sent.
        let _ = greedy.stream.write_all(requests.as_bytes());
        expect_line(&mut server, &greedy, "scheduled to be closed ASAP");
        let got = read_to_the_end(&mut greedy);
        assert!(got <= 16 * MIB, "{got}");
        assert_eq!(
            info_field(&mut client, "client_output_buffer_limit_disconnections"),
            (number + 1).to_string()
        );
    }
    let grown = resident_bytes(&server).saturating_sub(before);
    // The arguments of the long request take most of it.
    assert!(grown < 32 * MIB, "{grown}");
    // Nobody else is concerned.
    client.ask("GET other", "$5\r\nvalue\r\n");
}

#[test]
fn a_limit_does_not_hit_replies_that_sockets_hold() {
    const REQUESTS: usize = 200;
    let server = Server::start(&["--client-output-buffer-limit", "normal 1500kb 0 0"]);
    let mut client = server.connect();
    let value = "v".repeat(10_000);
    set(&mut client, "key", &value);
    // One read brings requests for 2 MB, of which little more than 1 MiB is made before it is sent.
    client.send("GET key\r\n".repeat(REQUESTS));
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.expect(bulk(&value).repeat(REQUESTS).as_bytes());
    client.expect_end();
}

#[test]
fn a_low_limit_lets_ordinary_replies_pass() {
    let mut server = Server::start(&["--client-output-buffer-limit", "normal 1 0 0"]);
    let mut client = server.connect();
    for size in [100, 1000, 16_000] {
        let value = "v".repeat(size);
        set(&mut client, "key", &value);
        client.ask("GET key", &bulk(&value));
    }
    set(&mut client, "key", &"v".repeat(16_384));
    client.send("GET key\r\n");
    assert_eq!(read_to_the_end(&mut client), 0);
    expect_line(&mut server, &client, "scheduled to be closed ASAP");
}

/// A client that is owed far more than sockets hold, and reads nothing.
fn stuck(server: &Server) -> Client {
    let mut client = server.connect();
    set(&mut client, "key", &"v".repeat(100_000));
    let replied = replied_bytes(&mut client);
    let mut other = server.connect();
    client.send("GET key\r\n".repeat(300));
    wait_for_replies(&mut other, replied, 30_000_000);
    client
}

#[test]
fn a_soft_limit_ends_who_is_over_it_for_its_seconds() {
    let mut server = Server::start(&["--client-output-buffer-limit", "normal 0 1mb 2"]);
    let start = Instant::now();
    // It sends nothing more, and nobody else does anything.
    let client = stuck(&server);
    expect_line(&mut server, &client, "closed");
    let waited = start.elapsed();
    assert!(
        waited >= Duration::from_secs(2) && waited < Duration::from_secs(20),
        "{waited:?}"
    );
    assert_eq!(
        info_field(
            &mut server.connect(),
            "client_output_buffer_limit_disconnections"
        ),
        "1"
    );
}

#[test]
fn limits_may_be_changed_while_replies_wait() {
    let mut server = Server::start(&[]);
    let mut control = server.connect();
    // Without a limit they wait as long as they like.
    let mut patient = stuck(&server);
    for (limits, fate) in [("normal 1mb 0 0", "closed"), ("normal 0 1mb 1", "closed")] {
        control.ask(
            "CONFIG SET client-output-buffer-limit \"normal 0 0 0\"",
            "+OK\r\n",
        );
        let client = stuck(&server);
        // Only the one over the limit is ended: the other has been served by now.
        patient.expect(bulk(&"v".repeat(100_000)).repeat(300).as_bytes());
        control.ask(
            &format!("CONFIG SET client-output-buffer-limit \"{limits}\""),
            "+OK\r\n",
        );
        expect_line(&mut server, &client, fate);
        patient.ask("PING", "+PONG\r\n");
        control.ask(
            "CONFIG SET client-output-buffer-limit \"normal 0 0 0\"",
            "+OK\r\n",
        );
        patient.send("GET key\r\n".repeat(300));
    }
    patient.expect(bulk(&"v".repeat(100_000)).repeat(300).as_bytes());
    assert_eq!(
        info_field(&mut control, "client_output_buffer_limit_disconnections"),
        "2"
    );
}
