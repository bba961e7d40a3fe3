//! Clients that concern each other over the bounds of workers: CLIENT LIST, KILL and PAUSE, and MONITOR.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Client, PATIENCE, Server, info_field};

/// Four workers, all of them active.
fn four_workers(options: &[&str]) -> (Server, Client) {
    let fixed = ["--io-threads", "4", "--enable-debug-command", "yes"];
    let server = Server::start(&[&fixed, options].concat());
    let mut control = server.connect();
    control.ask("DEBUG WORKERS 4", "+OK\r\n");
    (server, control)
}

/// Changes the number of active workers until told to stop, so that connections move.
fn keep_moving(mut control: Client, over: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(11);
    while !over.load(Ordering::Relaxed) {
        control.ask(&format!("DEBUG WORKERS {}", random.u8(1..=4)), "+OK\r\n");
        thread::sleep(Duration::from_millis(20));
    }
    control.ask("DEBUG WORKERS 4", "+OK\r\n");
}

/// Tells the other threads to end, also when this one fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn id(client: &mut Client) -> u64 {
    client.send("CLIENT ID\r\n");
    let line = client.line();
    line.trim_end().strip_prefix(':').unwrap().parse().unwrap()
}

/// The value of a field in a line of CLIENT LIST.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let mut words = line.split(' ');
    let word = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    word.unwrap_or_else(|| panic!("no {name} in {line}"))
}

/// Lists clients until as many are left as there should be.
fn wait_for_clients(control: &mut Client, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    while control.bulk("CLIENT LIST").lines().count() != count {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn the_list_shows_the_clients_of_all_workers() {
    const CLIENTS: usize = 40;
    let (server, mut control) = four_workers(&[]);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("CLIENT SETNAME c{number}"), "+OK\r\n");
        client.ask(&format!("SELECT {}", number % 16), "+OK\r\n");
    }
    let list = control.bulk("CLIENT LIST TYPE normal");
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), CLIENTS + 1);
    let workers: BTreeSet<&str> = lines.iter().map(|line| field(line, "io-thread")).collect();
    assert_eq!(workers, BTreeSet::from(["0", "1", "2", "3"]));
    // Numbers are given where connections are taken in: those of one worker in order, others in between.
    let ids = lines
        .iter()
        .map(|line| field(line, "id").parse::<u64>().unwrap());
    assert!(ids.is_sorted());
    for (number, client) in clients.iter_mut().enumerate() {
        let name = format!("c{number}");
        let line = lines
            .iter()
            .find(|line| field(line, "name") == name)
            .unwrap();
        assert_eq!(field(line, "db"), (number % 16).to_string());
        assert_eq!(field(line, "cmd"), "select");
        assert_eq!(field(line, "tot-cmds"), "2");
        assert_eq!(field(line, "id"), id(client).to_string());
        let address = client.stream.local_addr().unwrap().to_string();
        assert_eq!(field(line, "addr"), address);
        assert_eq!(field(line, "laddr"), format!("127.0.0.1:{}", server.port()));
        assert!(field(line, "fd").parse::<u32>().unwrap() > 2);
    }
    clients.truncate(CLIENTS / 2);
    wait_for_clients(&mut control, CLIENTS / 2 + 1);
}

#[test]
fn clients_are_killed_wherever_they_are() {
    const VICTIMS: usize = 60;
    let (server, mut control) = four_workers(&[]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let forcing = server.connect();
        let over = &over;
        let ending = Ending(over);
        let mover = scope.spawn(move || keep_moving(forcing, over));
        let mut victims = Vec::new();
        for number in 0..VICTIMS {
            let mut client = server.connect();
            let id = id(&mut client);
            // Each goes on until its connection ends, and then tells how many replies it had.
            let runner = scope.spawn(move || {
                let mut replies = 0;
                let batch = format!("INCR victim:{number}\r\n").repeat(20);
                let mut reader = BufReader::new(client.stream.try_clone().unwrap());
                'running: while client.stream.write_all(batch.as_bytes()).is_ok() {
                    for _ in 0..20 {
                        let mut line = String::new();
                        match reader.read_line(&mut line) {
                            Ok(length) if length > 0 => replies += 1,
                            _ => break 'running,
                        }
                        assert_eq!(line, format!(":{replies}\r\n"));
                    }
                }
                replies
            });
            victims.push((number, id, runner));
        }
        thread::sleep(Duration::from_millis(300));
        let mut ends = HashMap::new();
        for (number, id, runner) in victims {
            control.ask(&format!("CLIENT KILL ID {id}"), ":1\r\n");
            control.ask(&format!("CLIENT LIST ID {id}"), "$0\r\n\r\n");
            control.ask(&format!("CLIENT KILL ID {id}"), ":0\r\n");
            let replies: u64 = runner.join().unwrap();
            assert!(replies > 0);
            let count: u64 = control
                .bulk(&format!("GET victim:{number}"))
                .trim_end()
                .parse()
                .unwrap();
            assert!(count >= replies, "{count} {replies}");
            ends.insert(number, count);
        }
        // The dead do not count on.
        for (number, count) in ends {
            let now = control.bulk(&format!("GET victim:{number}"));
            assert_eq!(now.trim_end(), count.to_string());
        }
        drop(ending);
        mover.join().unwrap();
    });
    wait_for_clients(&mut control, 1);
    assert_eq!(info_field(&mut control, "connected_clients"), "1");
}

#[test]
fn one_command_kills_the_clients_of_all_workers_and_its_own() {
    let (server, mut control) = four_workers(&[]);
    let mut clients: Vec<Client> = (0..20).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.ask("PING", "+PONG\r\n");
    }
    control.ask("CLIENT KILL TYPE normal SKIPME yes", ":20\r\n");
    clients.iter_mut().for_each(Client::expect_end);
    let mut clients: Vec<Client> = (0..20).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.ask("PING", "+PONG\r\n");
    }
    control.ask("CLIENT KILL TYPE normal SKIPME no", ":21\r\n");
    control.expect_end();
    clients.iter_mut().for_each(Client::expect_end);
    let address = {
        let mut victim = server.connect();
        victim.ask("PING", "+PONG\r\n");
        let address = victim.stream.local_addr().unwrap();
        let mut control = server.connect();
        control.ask(&format!("CLIENT KILL {address}"), "+OK\r\n");
        victim.expect_end();
        address
    };
    server
        .connect()
        .ask(&format!("CLIENT KILL {address}"), "-ERR No such client\r\n");
}

#[test]
fn nothing_changes_while_writes_are_paused_and_nothing_is_lost() {
    const WRITERS: usize = 16;
    const DEPTH: u64 = 16;
    let (server, mut control) = four_workers(&[]);
    let over = AtomicBool::new(false);
    let total = AtomicU64::new(0);
    for number in 0..WRITERS {
        control.ask(&format!("SET n:{number} 0"), "+OK\r\n");
    }
    thread::scope(|scope| {
        // The writers end too when something fails here.
        let _ending = Ending(&over);
        for number in 0..WRITERS {
            let mut client = server.connect();
            let (over, total) = (&over, &total);
            scope.spawn(move || {
                let mut count = 0;
                let batch = format!("INCR n:{number}\r\nGET n:{number}\r\n").repeat(DEPTH as usize);
                while !over.load(Ordering::Relaxed) {
                    client.send(&batch);
                    for _ in 0..DEPTH {
                        count += 1;
                        let text: String = count.to_string();
                        let replies = format!(":{text}\r\n${}\r\n{text}\r\n", text.len());
                        client.expect(replies.as_bytes());
                    }
                }
                total.fetch_add(count, Ordering::Relaxed);
            });
        }
        let mut reader = server.connect();
        let keys: String = (0..WRITERS).map(|number| format!(" n:{number}")).collect();
        let mut values = || {
            reader.send(format!("MGET{keys}\r\n"));
            assert_eq!(reader.line(), format!("*{WRITERS}\r\n"));
            let mut bulk = || (reader.line(), reader.line());
            (0..WRITERS).map(|_| bulk()).collect::<Vec<_>>()
        };
        let mut before = values();
        for round in 0..30 {
            let workers = 1 + round % 4;
            control.ask(&format!("DEBUG WORKERS {workers}"), "+OK\r\n");
            control.ask("CLIENT PAUSE 60000 WRITE", "+OK\r\n");
            let paused = values();
            assert_ne!(paused, before, "nobody was writing");
            thread::sleep(Duration::from_millis(5));
            assert_eq!(values(), paused);
            control.ask("CLIENT UNPAUSE", "+OK\r\n");
            before = paused;
            let deadline = Instant::now() + PATIENCE;
            while values() == before {
                assert!(Instant::now() < deadline, "nobody goes on");
            }
        }
    });
    let sum: u64 = (0..WRITERS)
        .map(|number| {
            let value = control.bulk(&format!("GET n:{number}"));
            value.trim_end().parse::<u64>().unwrap()
        })
        .sum();
    assert_eq!(sum, total.into_inner());
}

#[test]
fn a_pause_ends_by_the_clock_for_the_clients_of_all_workers() {
    const PAUSE_MS: u64 = 400;
    let (server, mut control) = four_workers(&["--timeout", "1"]);
    let mut clients: Vec<Client> = (0..12).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.ask("PING", "+PONG\r\n");
    }
    let start = Instant::now();
    control.ask(&format!("CLIENT PAUSE {PAUSE_MS}"), "+OK\r\n");
    for client in &mut clients {
        client.send("PING\r\nSET k v\r\nNONE\r\n");
    }
    for client in &mut clients {
        client
            .expect(b"+PONG\r\n+OK\r\n-ERR unknown command 'NONE', with args beginning with: \r\n");
        assert!(start.elapsed() >= Duration::from_millis(PAUSE_MS));
    }
    assert!(start.elapsed() < Duration::from_secs(20));
    // One that is held longer than others may be idle is not idle.
    let start = Instant::now();
    control.ask("CLIENT PAUSE 2500 WRITE", "+OK\r\n");
    let mut held = server.connect();
    held.ask("SET k 1", "+OK\r\n");
    assert!(start.elapsed() >= Duration::from_millis(2500));
}

#[test]
fn what_a_pause_holds_dies_with_its_client() {
    let (server, mut control) = four_workers(&[]);
    control.ask("SET k 0", "+OK\r\n");
    control.ask("CLIENT PAUSE 60000 WRITE", "+OK\r\n");
    let mut gone: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    for client in &mut gone {
        client.send("GET k\r\nSET k 1\r\nGET k\r\n");
        client.expect(b"$1\r\n0\r\n");
    }
    // Some hang up, some say only that they will send no more, some are killed.
    for client in &gone[..3] {
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut killed = gone.split_off(5);
    let mut half_closed = gone;
    half_closed.truncate(3);
    for client in &mut half_closed {
        client.expect_end();
    }
    for client in &mut killed {
        let address = client.stream.local_addr().unwrap();
        control.ask(&format!("CLIENT KILL {address}"), "+OK\r\n");
        client.expect_end();
    }
    wait_for_clients(&mut control, 1);
    control.ask("CLIENT UNPAUSE", "+OK\r\n");
    control.ask("SET l 1", "+OK\r\n");
    control.ask("GET k", "$1\r\n0\r\n");
}

/// What a monitor shows of a command: the address, and the arguments.
fn shown(line: &str) -> (String, String) {
    // +1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
    let (time, rest) = line.split_once(" [0 ").expect(line);
    let time = time.strip_prefix('+').expect(line);
    let (seconds, micros) = time.split_once('.').expect(line);
    assert!(
        seconds.parse::<u64>().is_ok() && micros.len() == 6,
        "{line}"
    );
    let (address, arguments) = rest.split_once("] ").expect(line);
    (address.to_owned(), arguments.trim_end().to_owned())
}

#[test]
fn a_monitor_sees_every_command_once_in_the_order_of_each_connection() {
    const CLIENTS: usize = 12;
    const ROUNDS: u64 = 60;
    const DEPTH: u64 = 50;
    let (server, _control) = four_workers(&[]);
    let mut monitor = server.connect();
    monitor.ask("MONITOR", "+OK\r\n");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let forcing = server.connect();
        let over = &over;
        let ending = Ending(over);
        let mover = scope.spawn(move || keep_moving(forcing, over));
        let senders: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let mut client = server.connect();
                let address = client.stream.local_addr().unwrap().to_string();
                scope.spawn(move || {
                    let mut count = 0;
                    for _ in 0..ROUNDS {
                        let numbers = count..count + DEPTH;
                        let batch: String = numbers
                            .clone()
                            .map(|number| format!("ECHO {number}\r\n"))
                            .collect();
                        client.send(batch);
                        for number in numbers {
                            let text: String = number.to_string();
                            client.expect(format!("${}\r\n{text}\r\n", text.len()).as_bytes());
                        }
                        count += DEPTH;
                    }
                    address
                })
            })
            .collect();
        let mut next: HashMap<String, u64> = HashMap::new();
        let mut lines = BufReader::new(monitor.stream.try_clone().unwrap()).lines();
        for _ in 0..CLIENTS as u64 * ROUNDS * DEPTH {
            let (address, arguments) = shown(&lines.next().unwrap().unwrap());
            let next = next.entry(address).or_default();
            assert_eq!(arguments, format!("\"ECHO\" \"{next}\""));
            *next += 1;
        }
        drop(ending);
        mover.join().unwrap();
        let addresses: BTreeSet<String> = senders
            .into_iter()
            .map(|sender| sender.join().unwrap())
            .collect();
        assert_eq!(next.into_keys().collect::<BTreeSet<_>>(), addresses);
    });
    // DEBUG is for administrators and not shown: nothing is left but what comes now.
    let mut client = server.connect();
    client.ask("PING", "+PONG\r\n");
    let address = client.stream.local_addr().unwrap();
    let (shown_address, arguments) = shown(&monitor.line());
    assert_eq!(
        (shown_address, &*arguments),
        (address.to_string(), "\"PING\"")
    );
    // Nor is anything after it has left.
    monitor.ask("RESET", "+RESET\r\n");
    client.ask("PING", "+PONG\r\n");
    monitor.ask("PING", "+PONG\r\n");
}

#[test]
fn a_monitor_that_does_not_read_is_cut_off_at_its_limit_alone() {
    let (mut server, mut control) =
        four_workers(&["--client-output-buffer-limit", "normal 4mb 0 0"]);
    let mut monitor = server.connect();
    monitor.ask("MONITOR", "+OK\r\n");
    let address = monitor.stream.local_addr().unwrap();
    let request = format!("ECHO {}\r\n", "x".repeat(50_000));
    let reply = format!("$50000\r\n{}\r\n", "x".repeat(50_000));
    let deadline = Instant::now() + PATIENCE;
    while control
        .bulk("CLIENT LIST")
        .contains(&format!(" addr={address} "))
    {
        assert!(Instant::now() < deadline);
        control.send(request.repeat(10));
        control.expect(reply.repeat(10).as_bytes());
    }
    let line = server.wait_for_line("output buffer limits");
    assert!(line.contains(" # Client id="), "{line}");
    assert!(line.contains(&format!(" addr={address} ")), "{line}");
    // What it had not been sent is gone with it.
    let mut rest = Vec::new();
    let _ = monitor.stream.read_to_end(&mut rest);
    control.ask("PING", "+PONG\r\n");
}

#[test]
fn whoever_monitors_may_be_idle() {
    let (server, mut control) = four_workers(&["--timeout", "1"]);
    let mut monitor = server.connect();
    monitor.ask("MONITOR", "+OK\r\n");
    let mut idle = server.connect();
    idle.ask("PING", "+PONG\r\n");
    let (_, arguments) = shown(&monitor.line());
    assert_eq!(arguments, "\"PING\"");
    idle.expect_end();
    // The control connection was idle as long, and is gone too.
    control.expect_end();
    let mut client = server.connect();
    client.ask("ECHO still", "$5\r\nstill\r\n");
    let (_, arguments) = shown(&monitor.line());
    assert_eq!(arguments, "\"ECHO\" \"still\"");
}

#[test]
fn the_log_names_clients_as_the_list_does() {
    let mut server = Server::start(&["--loglevel", "verbose"]);
    let mut client = server.connect();
    client.ask("CLIENT SETNAME me", "+OK\r\n");
    let address = client.stream.local_addr().unwrap();
    client.ask("QUIT", "+OK\r\n");
    client.expect_end();
    let line = server.wait_for_line("Client closed connection");
    let port = server.port();
    assert!(
        line.contains(&format!(
            " - Client closed connection id=1 addr={address} laddr=127.0.0.1:{port} fd="
        )),
        "{line}"
    );
    assert!(
        line.contains(" name=me age=0 idle=0 flags=c db=0 "),
        "{line}"
    );
    assert!(line.ends_with(" tot-net-out=10 tot-cmds=2"), "{line}");
}

#[test]
fn clients_of_a_unix_socket_are_shown_as_such() {
    use std::os::unix::net::UnixStream;
    let server = Server::start(&["--unixsocket", "weft.sock"]);
    let mut monitor = server.connect();
    monitor.ask("MONITOR", "+OK\r\n");
    let stream = UnixStream::connect(server.path("weft.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut client = Client { stream };
    let line = client.bulk("CLIENT INFO");
    assert_eq!(field(&line, "addr"), "weft.sock:0");
    assert_eq!(field(&line, "laddr"), "weft.sock:0");
    assert_eq!(field(&line, "flags"), "U");
    let line = monitor.line();
    assert!(
        line.ends_with(" [0 unix:weft.sock] \"CLIENT\" \"INFO\"\r\n"),
        "{line}"
    );
}
