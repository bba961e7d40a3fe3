//! Several workers: how many, who decides, and connections that move between them while they are in use.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Client, PATIENCE, Server, info_field, run};

const CONNECTIONS: usize = 200;
const THREADS: usize = 4;
/// How long the number of workers keeps changing, and how often.
const CHANGING: Duration = Duration::from_secs(60);
const CHANGE_EVERY: Duration = Duration::from_millis(50);

/// A connection whose replies are all known in advance.
struct Verified {
    stream: TcpStream,
    name: String,
    count: u64,
    random: fastrand::Rng,
    /// Sent and not yet answered: what has to come back.
    expected: Vec<u8>,
    /// Still to be sent.
    unsent: Vec<u8>,
}

impl Verified {
    fn new(port: u16, number: usize) -> Self {
        Self {
            stream: Client::connect(("127.0.0.1", port)).unwrap().stream,
            name: format!("sequence:{number}"),
            count: 0,
            random: fastrand::Rng::with_seed(number as u64),
            expected: Vec::new(),
            unsent: Vec::new(),
        }
    }

    /// Sends a few requests, sometimes only a part of the last one.
    fn ask(&mut self) {
        for _ in 0..self.random.usize(1..=12) {
            self.count += 1;
            let (name, count) = (&self.name, self.count);
            let (request, reply) = match self.random.u8(0..40) {
                0 => {
                    // Longer than what is received in one piece.
                    let value = format!("{count}:").repeat(self.random.usize(1..20_000));
                    (
                        format!("*2\r\n$4\r\nECHO\r\n${}\r\n{value}\r\n", value.len()),
                        format!("${}\r\n{value}\r\n", value.len()),
                    )
                }
                1..10 => (
                    format!("ECHO {count}\r\n"),
                    format!("${}\r\n{count}\r\n", count.to_string().len()),
                ),
                10..20 => (
                    format!("SET copy:{name} {count}\r\nGET copy:{name}\r\n"),
                    format!("+OK\r\n${}\r\n{count}\r\n", count.to_string().len()),
                ),
                _ => (
                    format!("INCRBY {name} 1\r\nDECRBY {name} 1\r\nINCR {name}\r\nDECR {name}\r\n"),
                    ":1\r\n:0\r\n:1\r\n:0\r\n".to_owned(),
                ),
            };
            self.unsent.extend_from_slice(request.as_bytes());
            self.expected.extend_from_slice(reply.as_bytes());
        }
        let first = self.random.usize(0..=self.unsent.len());
        self.stream.write_all(&self.unsent[..first]).unwrap();
        self.unsent.drain(..first);
    }

    fn check(&mut self) {
        self.stream.write_all(&self.unsent).unwrap();
        self.unsent.clear();
        let mut received = vec![0; self.expected.len()];
        self.stream.read_exact(&mut received).unwrap();
        assert!(
            received == self.expected,
            "{}: {:?} instead of {:?}",
            self.name,
            String::from_utf8_lossy(&received),
            String::from_utf8_lossy(&self.expected)
        );
        self.expected.clear();
    }
}

#[test]
fn connections_move_between_workers_without_losing_a_byte() {
    let server = Server::start(&["--io-threads", "4", "--enable-debug-command", "yes"]);
    let over = AtomicBool::new(false);
    let counts: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (port, over) = (server.port(), &over);
                scope.spawn(move || {
                    let mut connections: Vec<_> = (thread..CONNECTIONS)
                        .step_by(THREADS)
                        .map(|number| Verified::new(port, number))
                        .collect();
                    while !over.load(Ordering::Relaxed) {
                        connections.iter_mut().for_each(Verified::ask);
                        connections.iter_mut().for_each(Verified::check);
                    }
                    connections
                        .iter()
                        .map(|connection| connection.count)
                        .sum::<u64>()
                })
            })
            .collect();
        let mut control = server.connect();
        let mut random = fastrand::Rng::with_seed(7);
        let end = Instant::now() + CHANGING;
        while Instant::now() < end && !threads.iter().any(|thread| thread.is_finished()) {
            let count = random.u8(1..=4);
            control.ask(&format!("DEBUG WORKERS {count}"), "+OK\r\n");
            thread::sleep(CHANGE_EVERY);
        }
        over.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    let mut client = server.connect();
    let moved: u64 = info_field(&mut client, "connections_moved")
        .parse()
        .unwrap();
    assert!(moved > 10_000, "{moved} moves");
    assert!(counts > 10_000, "{counts} requests");
    assert_eq!(info_field(&mut client, "connected_clients"), "1");
}

#[test]
fn the_number_of_workers_changes_at_run_time() {
    let server = Server::start(&["--io-threads", "2", "--enable-debug-command", "yes"]);
    let mut client = server.connect();
    let refused = |most| {
        format!(
            "-ERR DEBUG WORKERS takes 'auto' or a number from 1 to {most}, the workers that 'io-threads' has started\r\n"
        )
    };
    client.ask("DEBUG WORKERS 3", &refused(2));
    client.ask("DEBUG WORKERS 0", &refused(2));
    client.ask("DEBUG WORKERS many", &refused(2));
    client.ask("CONFIG SET io-threads 5", "+OK\r\n");
    // They are started after the answer.
    let deadline = Instant::now() + PATIENCE;
    loop {
        client.send("DEBUG WORKERS 5\r\n");
        if client.line() == "+OK\r\n" {
            break;
        }
        assert!(Instant::now() < deadline, "{} workers", workers(&server));
        thread::yield_now();
    }
    assert_eq!(workers(&server), 5);
    let mut others: Vec<Client> = (0..20).map(|_| server.connect()).collect();
    for other in &mut others {
        other.ask("PING", "+PONG\r\n");
    }
    client.ask("CONFIG SET io-threads 1", "+OK\r\n");
    client.ask("DEBUG WORKERS auto", "+OK\r\n");
    for other in &mut others {
        other.ask("PING", "+PONG\r\n");
    }
    client.ask(
        "CONFIG GET io-threads",
        "*2\r\n$10\r\nio-threads\r\n$1\r\n1\r\n",
    );
}

fn workers(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", server.id()))
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with("weft-worker-"))
        .count()
}

#[test]
fn impossible_numbers_of_workers_stop_the_start() {
    for count in ["0", "1025", "some"] {
        let ended = run(&["--io-threads", count]);
        assert_eq!(ended.code, Some(1), "{count}");
        assert!(
            ended.errors.contains(&format!("io-threads \"{count}\"")),
            "{}",
            ended.errors
        );
    }
}

#[test]
fn a_cpu_list_ties_the_server_s_threads() {
    let server = Server::start(&["--server-cpulist", "0", "--io-threads", "auto"]);
    let mut client = server.connect();
    client.ask(
        "CONFIG GET io-threads",
        "*2\r\n$10\r\nio-threads\r\n$1\r\n1\r\n",
    );
    for task in std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        // The allocator chooses the processor of its thread itself.
        if !status.starts_with("Name:\tweft-") {
            continue;
        }
        let allowed = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
        assert_eq!(allowed, Some("0"));
    }
    for list in ["zero", "3-1", "0-3:0", "1000"] {
        let ended = run(&["--server-cpulist", list]);
        assert_eq!(ended.code, Some(1), "{list}");
        assert!(ended.errors.contains("server-cpulist"), "{}", ended.errors);
    }
}
