//! A server with nothing to do does nothing: no wake-ups, no processor time.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Client, Server, info_field};

const CONNECTIONS: usize = 1000;

/// How long after the last request everything has to be asleep.
const SETTLING: Duration = Duration::from_secs(10);

/// How long it has to stay so.
const WINDOW: Duration = Duration::from_secs(3);

/// What the threads of the server have used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Used {
    /// How often they fell asleep.
    naps: u64,
    /// Time on processors.
    cpu: Duration,
}

impl Used {
    fn by(server: &Server) -> Used {
        let mut used = Used {
            naps: 0,
            cpu: Duration::ZERO,
        };
        for task in tasks(server) {
            let read = |name: &str| fs::read_to_string(task.join(name)).unwrap();
            let status = read("status");
            let naps = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            used.naps += naps.unwrap().trim().parse::<u64>().unwrap();
            // "nanoseconds-on-cpu nanoseconds-waiting slices"
            let schedule = read("schedstat");
            let on_cpu = schedule.split(' ').next().unwrap();
            used.cpu += Duration::from_nanos(on_cpu.parse().unwrap());
        }
        used
    }

    fn since(self, earlier: Used) -> Used {
        Used {
            naps: self.naps - earlier.naps,
            cpu: self.cpu.saturating_sub(earlier.cpu),
        }
    }
}

fn tasks(server: &Server) -> Vec<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    tasks.map(|task| task.unwrap().path()).collect()
}

/// Waits until the server has been asleep for a second.
fn wait_for_sleep(server: &Server, when: &str) {
    wait_for_naps(server, 0, when);
}

/// Waits until its threads fall asleep no more than `most` times in a second.
fn wait_for_naps(server: &Server, most: u64, when: &str) {
    let deadline = Instant::now() + SETTLING;
    loop {
        let before = Used::by(server);
        thread::sleep(Duration::from_secs(1));
        let used = Used::by(server).since(before);
        if used.naps <= most {
            break;
        }
        assert!(Instant::now() < deadline, "{when}: still {used:?} a second");
    }
}

/// Expects that the server falls asleep and stays so.
fn expect_sleep(server: &Server, when: &str) {
    wait_for_sleep(server, when);
    let before = Used::by(server);
    thread::sleep(WINDOW);
    let used = Used::by(server).since(before);
    assert_eq!(used.naps, 0, "{when}: {used:?}");
    // 0.2 % of a core.
    assert!(used.cpu <= WINDOW / 500, "{when}: {used:?}");
}

/// Many connections that have each asked something.
fn connections(server: &Server) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    clients
        .iter_mut()
        .for_each(|client| client.ask("PING", "+PONG\r\n"));
    clients
}

/// All clients ask for a while.
fn load(clients: &mut [Client]) {
    for round in 0..20 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("SET key:{number} {round}\r\nGET key:{number}\r\n"));
        }
        let reply = format!("+OK\r\n${}\r\n{round}\r\n", round.to_string().len());
        for client in &mut *clients {
            client.expect(reply.as_bytes());
        }
    }
}

/// A server with four active workers.
fn with_workers(options: &[&str]) -> Server {
    let server = Server::start(
        &[
            &["--io-threads", "4", "--enable-debug-command", "yes"],
            options,
        ]
        .concat(),
    );
    server.connect().ask("DEBUG WORKERS 4", "+OK\r\n");
    server
}

#[test]
fn nothing_wakes_a_server_whose_clients_are_silent() {
    let server = with_workers(&[]);
    let mut clients = connections(&server);
    expect_sleep(&server, "after connecting");
    load(&mut clients);
    expect_sleep(&server, "after load");
    // As soon as the number of workers is free, some of them have nothing at all.
    clients[0].ask("DEBUG WORKERS AUTO", "+OK\r\n");
    load(&mut clients);
    expect_sleep(&server, "with workers as needed");
    drop(clients);
    expect_sleep(&server, "without clients");
}

fn wait_for_blocked(control: &mut Client, count: usize) {
    while info_field(control, "blocked_clients") != count.to_string() {
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn those_who_wait_for_data_wake_nobody() {
    let server = with_workers(&[]);
    let mut control = server.connect();
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let timeout = if number % 2 == 0 { 0 } else { 3600 };
        client.send(format!("BLPOP key{} common {timeout}\r\n", number % 100));
        if number == 0 {
            // The others, on other workers, might come before it.
            wait_for_blocked(&mut control, 1);
        }
    }
    wait_for_blocked(&mut control, CONNECTIONS);
    assert_eq!(info_field(&mut control, "total_blocking_keys"), "101");
    let timed = (CONNECTIONS / 2).to_string();
    assert_eq!(info_field(&mut control, "clients_in_timeout_table"), timed);
    expect_sleep(&server, "while many wait");
    control.ask("RPUSH common e", ":1\r\n");
    clients[0].expect(b"*2\r\n$6\r\ncommon\r\n$1\r\ne\r\n");
}

#[test]
fn limits_that_concern_nobody_now_wake_nobody() {
    let server = with_workers(&[
        "--timeout",
        "3600",
        "--client-output-buffer-limit",
        "normal 100mb 10mb 60",
    ]);
    let mut clients = connections(&server);
    load(&mut clients);
    expect_sleep(&server, "with a timeout and limits");
    // Said while all are asleep, new limits concern all.
    clients[0].ask("CONFIG SET timeout 2", "+OK\r\n");
    let start = Instant::now();
    for client in &mut clients {
        client.expect_end();
    }
    let waited = start.elapsed();
    assert!(waited < SETTLING, "{waited:?}");
}

#[test]
fn a_deadline_far_away_costs_next_to_nothing() {
    let server = with_workers(&[]);
    let mut clients = connections(&server);
    clients[0].ask("SET far value EX 1000", "+OK\r\n");
    wait_for_naps(&server, 1, "after the deadline is known");
    let before = Used::by(&server);
    thread::sleep(WINDOW);
    let used = Used::by(&server).since(before);
    // One worker looks, once a second.
    assert!(used.naps <= WINDOW.as_secs() + 2, "{used:?}");
    assert!(used.cpu <= WINDOW / 500, "{used:?}");
}

#[test]
fn keys_go_in_time_whichever_worker_is_told_of_them() {
    let server = with_workers(&[]);
    // On two workers, so that one of them is not the one that watches.
    let mut clients = [server.connect(), server.connect()];
    for client in &mut clients {
        client.ask("PING", "+PONG\r\n");
        wait_for_sleep(&server, "without keys");
        // The worker that is told of it will be asleep again.
        client.ask("SET key value PX 4000", "+OK\r\n");
        client.ask("HSETEX hash PX 4000 FIELDS 1 field value", ":1\r\n");
        thread::sleep(Duration::from_secs(6));
    }
    assert_eq!(info_field(&mut clients[0], "expired_keys"), "2");
    assert_eq!(info_field(&mut clients[0], "expired_subkeys"), "2");
}
