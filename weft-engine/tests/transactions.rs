//! Transactions: between sessions of one engine, on one worker and on several threads.

mod in_process;

use std::sync::atomic::{AtomicBool, Ordering};

use in_process::{START_MS, engine, session};
use weft_engine::action::Action;
use weft_engine::clock::{Clock, ManualClock};
use weft_engine::config::{Config, Facts};
use weft_engine::engine::{Engine, WorkerState};
use weft_engine::journal::JournalReader;
use weft_engine::session::{Session, Verdict};
use weft_rope::Output;

/// Two workers and any number of clients, named by their numbers from 0: the even ones are the first worker's.
struct Server {
    engine: Engine,
    workers: [WorkerState; 2],
    clock: ManualClock,
    journal: JournalReader,
    clients: Vec<Option<Session>>,
}

impl Server {
    fn new(clients: usize) -> Self {
        let engine = engine(Config::new(Facts { usable_cpus: 2 }), 2, None);
        let workers = [0, 1].map(|id| WorkerState::new(&engine, id, 7));
        let journal = engine.listen_to_journal(0);
        let clock = ManualClock::at_ms(START_MS);
        let connect = |who: usize| {
            let mut session = session(&engine, engine.next_client_id());
            session.settle(who % 2, 3, 12, clock.monotonic_ns());
            Some(session)
        };
        let clients = (0..clients).map(connect).collect();
        Self {
            engine,
            workers,
            clock,
            journal,
            clients,
        }
    }

    fn client(&mut self, who: usize) -> &mut Session {
        self.clients[who].as_mut().expect("it is connected")
    }

    /// Sends inline requests, one a line, and returns the replies, line ends as blanks.
    fn ask(&mut self, who: usize, requests: &str) -> String {
        self.deliver(who, requests).0
    }

    fn deliver(&mut self, who: usize, requests: &str) -> (String, Verdict) {
        let bytes = requests.replace('\n', "\r\n") + "\r\n";
        let session = self.clients[who].as_mut().expect("it is connected");
        let worker = &mut self.workers[who % 2];
        let mut out = Output::new();
        let verdict = session.received(
            &self.engine,
            worker,
            &self.clock,
            bytes.as_bytes(),
            &mut out,
        );
        (text(&out), verdict)
    }

    fn go_on(&mut self, who: usize) -> (String, Verdict) {
        let session = self.clients[who].as_mut().expect("it is connected");
        let worker = &mut self.workers[who % 2];
        let mut out = Output::new();
        let verdict = session.go_on(&self.engine, worker, &self.clock, &mut out);
        (text(&out), verdict)
    }

    /// The client's connection ends.
    fn hang_up(&mut self, who: usize) {
        let mut session = self.clients[who].take().expect("it is connected");
        session.leave(&self.engine, &self.workers[who % 2]);
    }

    /// What has been written since the last call: units apart, commands of one joined.
    fn units(&mut self) -> Vec<String> {
        let records = self.journal.read().into_iter();
        let line = |effect: &weft_engine::journal::Effect| {
            let words = effect.to_plain();
            let words = words.iter().map(|word| String::from_utf8_lossy(word));
            let line = words.collect::<Vec<_>>().join(" ");
            format!("{}: {line}", effect.database)
        };
        records
            .map(|record| {
                let lines: Vec<String> = record.effects.iter().map(line).collect();
                lines.join(", ")
            })
            .collect()
    }

    fn info(&mut self, who: usize, field: &str) -> String {
        let info = self.ask(who, "INFO everything");
        let mut found = info.split(' ').filter_map(|line| line.strip_prefix(field));
        let value = found.find_map(|rest| rest.strip_prefix(':'));
        value
            .unwrap_or_else(|| panic!("no {field} in {info}"))
            .to_owned()
    }

    /// A field of a client's line.
    fn shown(&mut self, asking: usize, who: usize, field: &str) -> String {
        let list = self.ask(asking, &format!("CLIENT LIST ID {}", who + 1));
        let mut found = list.split(' ').filter_map(|part| part.strip_prefix(field));
        let value = found.find_map(|rest| rest.strip_prefix('='));
        value.expect("the field").trim_end().to_owned()
    }
}

fn text(out: &Output) -> String {
    let text = String::from_utf8(out.to_vec()).expect("these replies are text");
    text.replace("\r\n", " ")
}

#[test]
fn replies_may_be_switched_off_and_on_in_between() {
    let mut server = Server::new(1);
    for (requests, replies) in [
        (
            "MULTI\nPING 1\nCLIENT REPLY OFF\nPING 2\nCLIENT REPLY ON\nPING 3\nEXEC",
            "+OK +QUEUED +QUEUED +QUEUED +QUEUED +QUEUED *5 $1 1 +OK $1 3 ",
        ),
        (
            "MULTI\nPING 1\nCLIENT REPLY OFF\nPING 2\nEXEC\nPING 3\nCLIENT REPLY ON\nPING 4",
            "+OK +QUEUED +QUEUED +QUEUED *3 $1 1 +OK $1 4 ",
        ),
        (
            "MULTI\nPING 1\nCLIENT REPLY SKIP\nPING 2\nEXEC\nPING 3\nPING 4",
            "+OK +QUEUED +QUEUED +QUEUED *3 $1 1 $1 2 $1 4 ",
        ),
        (
            "CLIENT REPLY OFF\nMULTI\nPING 1\nCLIENT REPLY ON\nPING 2\nEXEC\nPING 3\nPING 4",
            "+OK $1 2 $1 3 $1 4 ",
        ),
        (
            "CLIENT REPLY SKIP\nMULTI\nPING 1\nCLIENT REPLY SKIP\nEXEC\nPING 3\nPING 4",
            "+QUEUED +QUEUED *2 $1 1 $1 4 ",
        ),
        (
            "MULTI\nCLIENT REPLY SKIP\nPING 1\nEXEC\nPING 3\nPING 4",
            "+OK +QUEUED +QUEUED *2 $1 1 $1 4 ",
        ),
        (
            "MULTI\nPING\nCLIENT REPLY SKIP\nEXEC\nMULTI\nPING\nEXEC",
            "+OK +QUEUED +QUEUED *2 +PONG +QUEUED *1 +PONG ",
        ),
    ] {
        assert_eq!(server.ask(0, requests), replies, "{requests}");
    }
}

#[test]
fn a_client_s_line_tells_of_its_transaction() {
    let mut server = Server::new(2);
    let show = |server: &mut Server| {
        ["flags", "multi", "watch", "multi-mem", "cmd", "tot-cmds"]
            .map(|field| server.shown(1, 0, field))
            .join(" ")
    };
    server.ask(0, "WATCH a b");
    assert_eq!(show(&mut server), "N -1 2 0 watch 1");
    assert_eq!(server.info(1, "watching_clients"), "1");
    assert_eq!(server.info(1, "total_watched_keys"), "2");
    server.ask(0, "MULTI\nPING\nSET a 12345");
    // 13 bytes of arguments, and 16 for each command.
    assert_eq!(show(&mut server), "x 2 2 45 set 2");
    server.ask(1, "SET b 1");
    assert_eq!(show(&mut server), "xd 2 0 45 set 2");
    assert_eq!(server.info(1, "watching_clients"), "0");
    // It will not run: nothing more is kept.
    server.ask(0, "GET a");
    assert_eq!(show(&mut server), "xd 2 0 45 get 2");
    assert_eq!(server.ask(0, "EXEC"), "*-1 ");
    assert_eq!(show(&mut server), "N -1 0 0 exec 3");
    assert_eq!(server.info(1, "total_watched_keys"), "0");
    let inside = server.ask(0, "WATCH a\nMULTI\nCLIENT INFO\nEXEC");
    for part in [
        " flags=x ",
        " multi=1 watch=0 ",
        " multi-mem=26 ",
        " cmd=exec ",
    ] {
        assert!(inside.contains(part), "{part}: {inside}");
    }
    assert_eq!(server.info(1, "total_watched_keys"), "0");
}

#[test]
fn commands_in_it_are_counted_and_logged_as_others_are() {
    let mut server = Server::new(2);
    server.ask(
        1,
        "CONFIG SET slowlog-log-slower-than 0\nSLOWLOG RESET\nCONFIG RESETSTAT",
    );
    server.ask(0, "MULTI\nSET a 1\nLPUSH a 2\nGET a\nEXEC");
    server.ask(0, "MULTI\nFOO\nEXEC\nEXEC\nMULTI\nMULTI\nDISCARD");
    let stats = server.ask(1, "INFO commandstats");
    for (command, calls, rejected, failed) in [
        ("set", 1, 0, 0),
        ("lpush", 1, 0, 1),
        ("get", 1, 0, 0),
        ("multi", 4, 0, 1),
        ("exec", 3, 0, 2),
        ("discard", 1, 0, 0),
    ] {
        let line = format!("cmdstat_{command}:calls={calls},");
        let end = format!(",rejected_calls={rejected},failed_calls={failed}");
        let found = stats.split(' ').find(|part| part.starts_with(&line));
        assert!(
            found.is_some_and(|it| it.ends_with(&end)),
            "{command}: {stats}"
        );
    }
    let errors = server.ask(1, "INFO errorstats");
    for part in [
        "errorstat_EXECABORT:count=1 ",
        "errorstat_ERR:count=3 ",
        "errorstat_WRONGTYPE:count=1 ",
    ] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    let log = server.ask(1, "SLOWLOG GET 100");
    let count = |word: &str| log.split(' ').filter(|part| *part == word).count();
    assert_eq!(
        ["SET", "LPUSH", "GET", "EXEC", "MULTI"].map(count),
        [1, 1, 1, 0, 4]
    );
}

#[test]
fn those_who_monitor_see_commands_in_the_order_they_run() {
    let mut server = Server::new(2);
    server.ask(1, "MONITOR");
    server.ask(
        0,
        "MULTI\nSET x 1\nAUTH foo\nSELECT 2\nGET y\nEXEC\nWATCH x\nMULTI\nPING\nDISCARD",
    );
    let mut out = Output::new();
    let session = server.clients[1].as_mut().expect("it is connected");
    session.take_pushes(&server.workers[1], &mut out);
    let lines = String::from_utf8(out.to_vec()).expect("text");
    let shown: Vec<&str> = lines
        .lines()
        .map(|line| line.split_once(" [").expect("a line").1)
        .collect();
    assert_eq!(
        shown,
        [
            r#"0 127.0.0.1:1] "MULTI""#,
            r#"0 127.0.0.1:1] "SET" "x" "1""#,
            r#"0 127.0.0.1:1] "AUTH" "(redacted)""#,
            r#"2 127.0.0.1:1] "SELECT" "2""#,
            r#"2 127.0.0.1:1] "GET" "y""#,
            r#"2 127.0.0.1:1] "EXEC""#,
            r#"2 127.0.0.1:1] "WATCH" "x""#,
            r#"2 127.0.0.1:1] "MULTI""#,
            r#"2 127.0.0.1:1] "DISCARD""#,
        ]
    );
    // Its own lines do not come into the middle of a reply.
    let own = server.ask(1, "MULTI\nPING 1\nPING 2\nEXEC");
    let shape: Vec<&str> = own
        .split(' ')
        .filter(|part| !part.starts_with("+1") && !part.starts_with("[0"))
        .collect();
    assert_eq!(
        shape.join(" "),
        r#"+OK 127.0.0.1:1] "MULTI" +QUEUED +QUEUED *2 $1 1 $1 2 127.0.0.1:1] "PING" "1" 127.0.0.1:1] "PING" "2" 127.0.0.1:1] "EXEC" "#
    );
}

#[test]
fn a_pause_of_writes_holds_what_would_write() {
    let mut server = Server::new(2);
    server.ask(0, "MULTI\nSET k 1");
    server.ask(1, "CLIENT PAUSE 100 WRITE");
    assert_eq!(
        server.deliver(0, "EXEC\nPING"),
        (String::new(), Verdict::Held)
    );
    assert_eq!(server.shown(1, 0, "flags"), "xb");
    server.clock.advance_ms(100);
    assert_eq!(server.go_on(0), ("*1 +OK +PONG ".to_owned(), Verdict::Open));
    // So does one that is queued, and what only reads does not wait.
    server.ask(1, "CLIENT PAUSE 100 WRITE");
    assert_eq!(
        server.deliver(0, "MULTI\nGET k\nEXEC\nMULTI\nSET k 2\nEXEC"),
        ("+OK +QUEUED *1 $1 1 +OK ".to_owned(), Verdict::Held)
    );
    server.ask(1, "CLIENT UNPAUSE");
    assert_eq!(
        server.go_on(0),
        ("+QUEUED *1 +OK ".to_owned(), Verdict::Open)
    );
}

#[test]
fn what_it_did_is_one_unit_of_the_journal() {
    let mut server = Server::new(2);
    server.ask(
        0,
        "MULTI\nSET a 1\nGET a\nSELECT 3\nINCR n\nLPUSH n 1\nEXEC",
    );
    server.ask(0, "SELECT 0\nMULTI\nGET a\nEXEC\nMULTI\nEXEC");
    server.ask(0, "MULTI\nSET a 2\nFLUSHDB\nSET b 3\nEXEC");
    assert_eq!(
        server.units(),
        [
            "0: SET a 1, 3: INCRBY n 1",
            "0: SET a 2, 0: FLUSHDB, 0: SET b 3"
        ]
    );
}

#[test]
fn nothing_of_a_watch_is_left_behind() {
    let mut server = Server::new(4);
    for end in ["UNWATCH", "MULTI\nDISCARD", "MULTI\nEXEC", "RESET"] {
        server.ask(0, "WATCH a b c");
        assert_eq!(server.info(1, "total_watched_keys"), "3", "{end}");
        server.ask(1, "WATCH b d");
        assert_eq!(server.info(1, "total_watched_keys"), "4", "{end}");
        server.ask(0, end);
        assert_eq!(server.info(1, "total_watched_keys"), "2", "{end}");
        server.ask(1, "UNWATCH");
        assert_eq!(server.info(1, "total_watched_keys"), "0", "{end}");
    }
    server.ask(2, "WATCH a b c\nMULTI\nSET a 1");
    server.ask(3, "SELECT 1\nWATCH a b c");
    assert_eq!(server.info(1, "total_watched_keys"), "6");
    server.hang_up(2);
    assert_eq!(server.info(1, "total_watched_keys"), "3");
    server.hang_up(3);
    assert_eq!(server.info(1, "total_watched_keys"), "0");
    for shard in 0..server.engine.keyspace.shards() {
        assert!(
            !server.engine.keyspace.latch(shard).watches_anything(),
            "{shard}"
        );
    }
}

#[test]
fn a_transaction_stays_where_it_is() {
    let mut server = Server::new(1);
    assert!(server.client(0).may_move());
    server.ask(0, "WATCH a");
    assert!(!server.client(0).may_move());
    server.ask(0, "MULTI\nUNWATCH");
    assert!(!server.client(0).may_move());
    server.ask(0, "EXEC");
    assert!(server.client(0).may_move());
}

#[test]
fn what_is_queued_counts_as_unfinished_input() {
    let mut server = Server::new(1);
    server.ask(0, "CONFIG SET client-query-buffer-limit 1048576");
    let long = "x".repeat(30_000);
    server.ask(0, "MULTI");
    for _ in 0..34 {
        let (replies, verdict) = server.deliver(0, &format!("SET k {long}"));
        assert_eq!((&*replies, verdict), ("+QUEUED ", Verdict::Open));
    }
    let (replies, verdict) = server.deliver(0, &format!("SET k {long}"));
    assert_eq!((&*replies, verdict), ("", Verdict::Close));
    let warned = |action: &Action| matches!(action, Action::Warn(text) if text.starts_with("Closing client that reached max query buffer length: id=1 "));
    assert_eq!(
        server.workers[0]
            .actions
            .iter()
            .filter(|it| warned(it))
            .count(),
        1
    );
}

#[test]
fn those_who_wait_are_served_when_all_has_run() {
    let mut server = Server::new(3);
    assert_eq!(
        server.deliver(1, "BLMOVE l m LEFT LEFT 0").1,
        Verdict::Waiting
    );
    assert_eq!(server.deliver(2, "BLPOP m 0").1, Verdict::Waiting);
    assert_eq!(
        server.ask(0, "MULTI\nRPUSH l a\nLLEN l\nRPUSH l b\nLLEN m\nEXEC"),
        "+OK +QUEUED +QUEUED +QUEUED +QUEUED *4 :1 :1 :2 :0 "
    );
    assert_eq!(
        server.units(),
        [
            "0: RPUSH l a, 0: RPUSH l b",
            "0: LMOVE l m LEFT LEFT",
            "0: LPOP m"
        ]
    );
    assert_eq!(server.go_on(1), ("$1 a ".to_owned(), Verdict::Open));
    assert_eq!(server.go_on(2), ("*2 $1 m $1 a ".to_owned(), Verdict::Open));
    // With the whole keyspace too.
    assert_eq!(server.deliver(1, "BLMOVE l m LEFT LEFT 0").1, Verdict::Open);
    assert_eq!(
        server.deliver(1, "BLMOVE l n LEFT LEFT 0").1,
        Verdict::Waiting
    );
    assert_eq!(server.deliver(2, "BLPOP n 0").1, Verdict::Waiting);
    assert_eq!(
        server.ask(0, "MULTI\nFLUSHALL\nRPUSH l x y\nDBSIZE\nEXEC"),
        "+OK +QUEUED +QUEUED +QUEUED *3 +OK :2 :1 "
    );
    assert_eq!(server.go_on(1), ("$1 x ".to_owned(), Verdict::Open));
    assert_eq!(server.go_on(2), ("*2 $1 n $1 x ".to_owned(), Verdict::Open));
    assert_eq!(server.ask(0, "LRANGE l 0 -1"), "*1 $1 y ");
}

#[test]
fn time_stands_still_in_it() {
    let mut server = Server::new(1);
    server.ask(0, "SET k v PX 1000\nSET l w PX 1000");
    server.clock.advance_ms(995);
    // The clock that DEBUG SLEEP moves is another one here: what counts is that nobody asks it twice.
    assert_eq!(
        server.ask(0, "MULTI\nPTTL k\nSET m x PX 5\nPTTL m\nPTTL l\nEXEC"),
        "+OK +QUEUED +QUEUED +QUEUED +QUEUED *4 :5 +OK :5 :5 "
    );
}

/// Sends one request after the other from a thread of its own.
struct Thread<'e> {
    engine: &'e Engine,
    worker: WorkerState,
    clock: ManualClock,
    session: Session,
}

impl<'e> Thread<'e> {
    fn new(engine: &'e Engine, id: usize) -> Self {
        let mut session = session(engine, engine.next_client_id());
        session.settle(id, 3, 12, 0);
        Self {
            engine,
            worker: WorkerState::new(engine, id, id as u64),
            clock: ManualClock::at_ms(START_MS),
            session,
        }
    }

    fn ask(&mut self, requests: &str) -> String {
        let mut out = Output::new();
        let bytes = requests.replace('\n', "\r\n") + "\r\n";
        let verdict = self.session.received(
            self.engine,
            &mut self.worker,
            &self.clock,
            bytes.as_bytes(),
            &mut out,
        );
        assert_eq!(verdict, Verdict::Open);
        text(&out)
    }
}

const THREADS: usize = 4;

#[test]
fn nobody_sees_half_of_a_transfer() {
    const ACCOUNTS: usize = 8;
    const START: i64 = 1_000;
    let engine = engine(
        Config::new(Facts {
            usable_cpus: THREADS as u16,
        }),
        THREADS,
        None,
    );
    let names: Vec<String> = (0..ACCOUNTS)
        .map(|number| format!("account{number}"))
        .collect();
    let mut first = Thread::new(&engine, 0);
    for name in &names {
        first.ask(&format!("SET {name} {START}"));
    }
    drop(first);
    let sum = |reply: &str| -> i64 {
        let numbers = reply.split(' ').filter_map(|part| part.parse::<i64>().ok());
        numbers.sum()
    };
    std::thread::scope(|scope| {
        for id in 0..THREADS {
            let (engine, names) = (&engine, &names);
            scope.spawn(move || {
                let mut thread = Thread::new(engine, id);
                let mut random = fastrand::Rng::with_seed(id as u64);
                for round in 0..1_500 {
                    let (from, to) = (random.usize(..ACCOUNTS), random.usize(..ACCOUNTS));
                    let amount = random.i64(1..10);
                    let all = names.join(" ");
                    let reply = match round % 5 {
                        // Some with a command for which all stand still.
                        0 if round % 100 == 0 => thread.ask(&format!(
                            "MULTI\nDECRBY {} {amount}\nDBSIZE\nINCRBY {} {amount}\nEXEC",
                            names[from], names[to]
                        )),
                        0..3 => thread.ask(&format!(
                            "MULTI\nDECRBY {} {amount}\nINCRBY {} {amount}\nEXEC",
                            names[from], names[to]
                        )),
                        3 => {
                            let reply = thread.ask(&format!("MGET {all}"));
                            let sizes = reply.split(' ').filter(|part| part.starts_with('$'));
                            assert_eq!(sizes.count(), ACCOUNTS);
                            assert_eq!(sum(&reply), START * ACCOUNTS as i64);
                            continue;
                        }
                        _ => {
                            let reads: Vec<String> =
                                names.iter().map(|name| format!("GET {name}")).collect();
                            let reply = thread.ask(&format!("MULTI\n{}\nEXEC", reads.join("\n")));
                            assert_eq!(sum(&reply), START * ACCOUNTS as i64);
                            continue;
                        }
                    };
                    assert!(reply.contains(" *"), "{reply}");
                }
            });
        }
    });
}

#[test]
fn whoever_saw_no_change_is_the_only_one() {
    const ROUNDS: usize = 400;
    let engine = engine(
        Config::new(Facts {
            usable_cpus: THREADS as u16,
        }),
        THREADS,
        None,
    );
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for id in 0..THREADS {
            let (engine, failed) = (&engine, &failed);
            scope.spawn(move || {
                let mut thread = Thread::new(engine, id);
                let mut done = 0;
                while done < ROUNDS {
                    // Two keys that must stay alike.
                    thread.ask("WATCH n m");
                    let read = thread.ask("MGET n m");
                    let numbers: Vec<u64> = read
                        .split(' ')
                        .filter_map(|part| part.parse().ok())
                        .collect();
                    let number = numbers.first().copied().unwrap_or(0);
                    assert!(numbers.iter().all(|it| *it == number), "{read}");
                    let next = number + 1;
                    let reply = thread.ask(&format!("MULTI\nSET n {next}\nSET m {next}\nEXEC"));
                    if reply.ends_with("*2 +OK +OK ") {
                        done += 1;
                    } else {
                        assert!(reply.ends_with("*-1 "), "{reply}");
                        failed.store(true, Ordering::Relaxed);
                    }
                }
                thread.session.leave(engine, &thread.worker);
            });
        }
    });
    let mut last = Thread::new(&engine, 0);
    let total = ROUNDS * THREADS;
    assert_eq!(last.ask("GET n"), format!("$4 {total} "));
    assert!(last.ask("INFO clients").contains(" total_watched_keys:0 "));
}
