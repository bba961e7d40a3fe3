//! Commands that wait, between connections of four workers: nothing is lost, doubled, or told to the wrong one.

use std::collections::HashSet;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Client, PATIENCE, Server, info_field};

/// Four workers, all of them active.
fn four_workers() -> (Server, Client) {
    let server = Server::start(&["--io-threads", "4", "--enable-debug-command", "yes"]);
    let mut control = server.connect();
    control.ask("DEBUG WORKERS 4", "+OK\r\n");
    (server, control)
}

/// Waits until so many clients wait.
fn wait_for_blocked(control: &mut Client, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    while info_field(control, "blocked_clients") != count.to_string() {
        assert!(Instant::now() < deadline);
    }
}

fn pair(key: &str, value: &str) -> String {
    format!(
        "*2\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n",
        key.len(),
        value.len()
    )
}

fn id(client: &mut Client) -> String {
    client.send("CLIENT ID\r\n");
    client.line().trim_start_matches(':').trim_end().to_owned()
}

/// The bulk string that comes next; none if it is null or a null array.
fn bulk_or_null(client: &mut Client) -> Option<String> {
    let head = client.line();
    if head == "$-1\r\n" || head == "*-1\r\n" {
        return None;
    }
    assert!(head.starts_with('$'), "{head}");
    Some(client.line().trim_end().to_owned())
}

/// Tells the other threads to end, also when this one fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_hundred_clients_are_served_in_order() {
    const CLIENTS: usize = 100;
    let (server, mut control) = four_workers();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send("BLPOP q 0\r\n");
        wait_for_blocked(&mut control, number + 1);
    }
    let mut pusher = server.connect();
    for number in 0..CLIENTS {
        pusher.ask(&format!("RPUSH q {number}"), ":1\r\n");
    }
    for (number, client) in clients.iter_mut().enumerate() {
        client.expect(pair("q", &number.to_string()).as_bytes());
        // The connection goes on as before.
        client.ask("PING", "+PONG\r\n");
    }
    wait_for_blocked(&mut control, 0);
}

#[test]
fn time_outs_are_exact_and_earlier_replies_do_not_wait_for_them() {
    let (server, _control) = four_workers();
    let mut clients: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    for client in &mut clients {
        let started = Instant::now();
        client.send("PING\r\nBLPOP nokey 0.2\r\nBLPOP nokey 0.0001\r\nPING\r\n");
        client.expect(b"+PONG\r\n");
        assert!(started.elapsed() < Duration::from_millis(200));
        client.expect(b"*-1\r\n");
        assert!(started.elapsed() >= Duration::from_millis(200));
        client.expect(b"*-1\r\n+PONG\r\n");
        assert!(started.elapsed() >= Duration::from_millis(201));
    }
    // All at once, on all workers.
    let started = Instant::now();
    for client in &mut clients {
        client.send("BZPOPMIN nokey 0.1\r\n");
    }
    for client in &mut clients {
        client.expect(b"*-1\r\n");
    }
    assert!(started.elapsed() >= Duration::from_millis(100));
}

#[test]
fn every_request_of_a_pipeline_is_answered_in_its_turn() {
    let (server, mut control) = four_workers();
    let mut clients: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("BRPOPLPUSH a b 5\r\nBRPOPLPUSH a b 5\r\nPING\r\n");
    }
    wait_for_blocked(&mut control, clients.len());
    let mut pusher = server.connect();
    for number in 0..2 * clients.len() {
        pusher.send(format!("LPUSH a {number}\r\n"));
        pusher.line();
    }
    let mut taken = HashSet::new();
    for client in &mut clients {
        taken.extend([bulk_or_null(client), bulk_or_null(client)]);
        client.expect(b"+PONG\r\n");
    }
    assert_eq!(taken.len(), 2 * clients.len());
    assert!(!taken.contains(&None));
    pusher.ask("LLEN a", ":0\r\n");
    pusher.ask("LLEN b", &format!(":{}\r\n", taken.len()));
}

#[test]
fn what_expires_before_the_transaction_ends_serves_nobody() {
    let (server, mut control) = four_workers();
    control.ask("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
    let mut waiting = server.connect();
    let started = Instant::now();
    waiting.send("BLPOP k 1\r\n");
    wait_for_blocked(&mut control, 1);
    control.send("MULTI\r\nRPUSH k a\r\nPEXPIRE k 50\r\nDEBUG SLEEP 0.1\r\nEXEC\r\n");
    control.expect(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n:1\r\n+OK\r\n");
    waiting.expect(b"*-1\r\n");
    assert!(started.elapsed() >= Duration::from_secs(1));
    control.ask("EXISTS k", ":0\r\n");
}

#[test]
fn who_hangs_up_takes_nothing_and_is_gone_at_once() {
    let (server, mut control) = four_workers();
    for round in 0..20 {
        let mut clients: Vec<Client> = (0..8).map(|_| server.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            // Some have sent more, which nobody has read.
            let more = if number % 2 == 0 {
                ""
            } else {
                "PING\r\nLPOP k\r\n"
            };
            client.send(format!("BLPOP k other 0\r\n{more}"));
        }
        wait_for_blocked(&mut control, clients.len());
        if round % 2 == 0 {
            for client in &clients {
                client.stream.shutdown(Shutdown::Write).unwrap();
            }
        } else {
            clients.clear();
        }
        wait_for_blocked(&mut control, 0);
        control.ask("RPUSH k e", ":1\r\n");
        control.ask("LLEN k", ":1\r\n");
        control.ask("DEL k", ":1\r\n");
        for client in &mut clients {
            client.expect_end();
        }
    }
    assert_eq!(info_field(&mut control, "total_blocking_keys"), "0");
}

#[test]
fn killed_and_unblocked_from_any_worker() {
    const CLIENTS: usize = 24;
    let (server, mut control) = four_workers();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.connect()).collect();
    let ids: Vec<String> = clients.iter_mut().map(id).collect();
    for client in &mut clients {
        client.send("BLPOP k 0\r\nPING\r\n");
    }
    wait_for_blocked(&mut control, CLIENTS);
    let mut others: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for (number, id) in ids.iter().enumerate() {
        let other = &mut others[number % 4];
        match number % 3 {
            0 => other.ask(&format!("CLIENT UNBLOCK {id}"), ":1\r\n"),
            1 => other.ask(&format!("CLIENT UNBLOCK {id} ERROR"), ":1\r\n"),
            _ => other.ask(&format!("CLIENT KILL ID {id}"), ":1\r\n"),
        }
    }
    for (number, client) in clients.iter_mut().enumerate() {
        match number % 3 {
            0 => client.expect(b"*-1\r\n+PONG\r\n"),
            1 => client.expect(b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n+PONG\r\n"),
            _ => client.expect_end(),
        }
    }
    control.ask("RPUSH k e", ":1\r\n");
    control.ask("LLEN k", ":1\r\n");
}

#[test]
fn unblocking_and_pushing_at_the_same_time_lose_and_double_nothing() {
    const ROUNDS: usize = 2000;
    let (server, _control) = four_workers();
    let (mut waiter, mut pusher, mut unblocker) =
        (server.connect(), server.connect(), server.connect());
    let id = id(&mut waiter);
    let (mut served, mut lapsed) = (0, 0);
    for round in 0..ROUNDS {
        waiter.send("BLPOP k 0\r\n");
        // Whoever comes first; the other finds nobody, or leaves the element there.
        let (push, unblock) = (
            format!("RPUSH k {round}\r\n"),
            format!("CLIENT UNBLOCK {id}\r\n"),
        );
        if round % 2 == 0 {
            pusher.send(push);
            unblocker.send(unblock);
        } else {
            unblocker.send(unblock);
            pusher.send(push);
        }
        let unblocked = unblocker.line() == ":1\r\n";
        pusher.expect(b":1\r\n");
        match waiter.line().as_str() {
            "*-1\r\n" => {
                assert!(unblocked);
                lapsed += 1;
                pusher.ask(
                    "LPOP k",
                    &format!("${}\r\n{round}\r\n", round.to_string().len()),
                );
            }
            reply => {
                assert!(!unblocked);
                served += 1;
                let whole = pair("k", &round.to_string());
                assert!(whole.starts_with(reply));
                waiter.expect(&whole.as_bytes()[reply.len()..]);
            }
        }
        pusher.ask("EXISTS k", ":0\r\n");
    }
    assert_eq!(served + lapsed, ROUNDS);
}

#[test]
fn a_stream_that_expires_ends_the_wait_of_its_groups() {
    let (server, mut control) = four_workers();
    let mut readers: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    control.ask("XGROUP CREATE s g $ MKSTREAM", "+OK\r\n");
    for reader in &mut readers {
        reader.send("XREADGROUP GROUP g c BLOCK 0 STREAMS s >\r\n");
    }
    wait_for_blocked(&mut control, readers.len());
    assert_eq!(
        info_field(&mut control, "total_blocking_keys_on_nokey"),
        "1"
    );
    control.ask("PEXPIRE s 20", ":1\r\n");
    for reader in &mut readers {
        reader.expect(
            b"-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option\r\n",
        );
    }
}

/// 50 who wait and 50 who push, on several lists and in several ways, while workers come and go and others hang up.
#[test]
fn a_queue_loses_and_doubles_nothing() {
    const PARTIES: usize = 50;
    // As many steps as the environment says, for a long run.
    let steps: usize =
        std::env::var("WEFT_QUEUE_STEPS").map_or(20_000, |steps| steps.parse().unwrap());
    let (server, mut control) = four_workers();
    let over = AtomicBool::new(false);
    let pushing = AtomicUsize::new(PARTIES);
    let taken = thread::scope(|scope| {
        let ending = Ending(&over);
        let (over, pushing, port) = (&over, &pushing, server.port());
        let connect = move || Client::connect(("127.0.0.1", port)).unwrap();
        let consumers: Vec<_> = (0..PARTIES)
            .map(|number| scope.spawn(move || consume(connect(), number)))
            .collect();
        for number in 0..PARTIES {
            scope.spawn(move || {
                let mut client = connect();
                for step in 0..steps / PARTIES {
                    client.send(format!("RPUSH q{} {number}:{step}\r\n", step % 2));
                    assert!(client.line().starts_with(':'));
                }
                pushing.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mut mover = connect();
        scope.spawn(move || {
            let mut random = fastrand::Rng::with_seed(5);
            while !over.load(Ordering::Relaxed) {
                mover.ask(&format!("DEBUG WORKERS {}", random.u8(1..=4)), "+OK\r\n");
                let mut short = connect();
                short.send("BLPOP nothing 0\r\n");
                drop(short);
            }
        });
        while pushing.load(Ordering::Relaxed) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..PARTIES {
            control.ask("RPUSH ends 1", ":1\r\n");
            // Whoever took it is told by its end.
            let deadline = Instant::now() + PATIENCE;
            loop {
                control.send("EXISTS ends\r\n");
                if control.line() == ":0\r\n" {
                    break;
                }
                assert!(Instant::now() < deadline);
            }
        }
        let taken = consumers.into_iter().map(|it| it.join().unwrap());
        let taken: Vec<Vec<String>> = taken.collect();
        drop(ending);
        taken
    });
    let mut all: Vec<String> = taken.into_iter().flatten().collect();
    // What the last ones left behind when they ended.
    for list in ["q0", "q1"] {
        control.send(format!("LRANGE {list} 0 -1\r\n"));
        let count: usize = control.line().trim_end()[1..].parse().unwrap();
        all.extend((0..count).filter_map(|_| bulk_or_null(&mut control)));
    }
    let expected = steps / PARTIES * PARTIES;
    assert_eq!(all.len(), expected);
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), expected);
}

/// Takes elements in one way or another until told to end; those it got.
fn consume(mut client: Client, number: usize) -> Vec<String> {
    let mut taken = Vec::new();
    for turn in 0.. {
        // Everybody looks at the list of ends now and then.
        if turn % 2 == 0 {
            client.send("BLPOP q0 q1 ends 0\r\n");
            assert_eq!(client.line(), "*2\r\n");
            client.line();
            let key = client.line();
            let element = bulk_or_null(&mut client).unwrap();
            if key == "ends\r\n" {
                break;
            }
            taken.push(element);
        } else {
            let list = if number.is_multiple_of(2) { "q0" } else { "q1" };
            client.send(format!("BLMOVE {list} own{number} LEFT RIGHT 0.01\r\n"));
            if let Some(element) = bulk_or_null(&mut client) {
                client.send(format!("LPOP own{number}\r\n"));
                assert_eq!(bulk_or_null(&mut client).as_ref(), Some(&element));
                taken.push(element);
            }
        }
    }
    taken
}
