//! Commands that wait: between sessions of one engine.

mod in_process;

use in_process::{START_MS, engine, session};
use weft_engine::action::Action;
use weft_engine::clock::{Clock, ManualClock};
use weft_engine::config::{Config, Facts};
use weft_engine::engine::{Engine, WorkerState};
use weft_engine::journal::JournalReader;
use weft_engine::session::{Session, Verdict};
use weft_rope::Output;

/// A client, what it has been sent and not yet read, and what its owner has to do.
struct Client {
    session: Session,
    inbox: String,
    verdict: Verdict,
}

/// One worker and any number of clients, named by their numbers from 0. Those who can go on do so at once.
struct Server {
    engine: Engine,
    worker: WorkerState,
    clock: ManualClock,
    journal: JournalReader,
    clients: Vec<Option<Client>>,
}

impl Server {
    fn new(clients: usize) -> Self {
        let engine = engine(Config::new(Facts { usable_cpus: 1 }), 1, None);
        let worker = WorkerState::new(&engine, 0, 7);
        let journal = engine.listen_to_journal(0);
        let mut server = Self {
            engine,
            worker,
            clock: ManualClock::at_ms(START_MS),
            journal,
            clients: Vec::new(),
        };
        for _ in 0..clients {
            server.connect();
        }
        server
    }

    fn connect(&mut self) -> usize {
        let mut session = session(&self.engine, self.engine.next_client_id());
        session.settle(0, 3, 12, self.clock.monotonic_ns());
        self.clients.push(Some(Client {
            session,
            inbox: String::new(),
            verdict: Verdict::Open,
        }));
        self.clients.len() - 1
    }

    fn client(&mut self, who: usize) -> &mut Client {
        self.clients[who].as_mut().expect("it is connected")
    }

    /// Sends inline requests, one a line.
    fn send(&mut self, who: usize, requests: &str) {
        let bytes = requests.replace('\n', "\r\n") + "\r\n";
        let mut client = self.clients[who].take().expect("it is connected");
        let mut out = Output::new();
        client.verdict = client.session.received(
            &self.engine,
            &mut self.worker,
            &self.clock,
            bytes.as_bytes(),
            &mut out,
        );
        client.inbox.push_str(&text(&out));
        self.clients[who] = Some(client);
        self.attend();
    }

    /// Sends requests and reads what has come.
    fn ask(&mut self, who: usize, requests: &str) -> String {
        self.send(who, requests);
        self.read(who)
    }

    fn read(&mut self, who: usize) -> String {
        std::mem::take(&mut self.client(who).inbox).replace("\r\n", " ")
    }

    fn go_on(&mut self, who: usize) {
        let Some(mut client) = self.clients[who].take() else {
            return;
        };
        let mut out = Output::new();
        client.verdict =
            client
                .session
                .go_on(&self.engine, &mut self.worker, &self.clock, &mut out);
        client.inbox.push_str(&text(&out));
        self.clients[who] = Some(client);
    }

    fn attend(&mut self) {
        loop {
            let actions: Vec<Action> = self.worker.actions.drain(..).collect();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                if let Action::Attend(record) = action {
                    let who = record.id() as usize - 1;
                    if let Some(client) = &self.clients[who]
                        && client.session.wait_is_over(self.clock.monotonic_ns())
                    {
                        self.go_on(who);
                    }
                }
            }
        }
    }

    /// Lets time pass, as if it were a timer for everybody who waits.
    fn advance_ms(&mut self, ms: u64) {
        self.clock.advance_ms(ms);
        let now_ns = self.clock.monotonic_ns();
        for who in 0..self.clients.len() {
            let over = |client: &Client| client.session.wait_is_over(now_ns);
            if self.clients[who].as_ref().is_some_and(over) {
                self.go_on(who);
            }
        }
        self.attend();
    }

    fn waits(&mut self, who: usize) -> bool {
        let client = self.client(who);
        let waits = client.session.client().is_waiting();
        assert_eq!(waits, client.verdict == Verdict::Waiting);
        waits
    }

    /// What was written since the last call, a command a line.
    fn effects(&mut self) -> Vec<String> {
        let records = self.journal.read();
        let effects = records.iter().flat_map(|record| &record.effects);
        effects
            .map(|effect| {
                let words = effect.to_plain();
                let words = words.iter().map(|word| String::from_utf8_lossy(word));
                words.collect::<Vec<_>>().join(" ")
            })
            .collect()
    }

    fn info(&mut self, who: usize, field: &str) -> String {
        self.send(who, "INFO everything");
        let info = std::mem::take(&mut self.client(who).inbox);
        let found = info
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        found
            .unwrap_or_else(|| panic!("no {field} in {info}"))
            .to_owned()
    }
}

fn text(out: &Output) -> String {
    String::from_utf8(out.to_vec()).expect("these replies are text")
}

/// `*2 $1 k $1 v `, as [`Server::read`] shows it.
fn pair(key: &str, value: &str) -> String {
    format!("*2 ${} {key} ${} {value} ", key.len(), value.len())
}

#[test]
fn who_came_first_is_served_first() {
    let mut server = Server::new(101);
    for who in 0..100 {
        assert_eq!(server.ask(who, "BLPOP q 0"), "");
        assert!(server.waits(who));
    }
    for n in 0..50 {
        assert_eq!(server.ask(100, &format!("RPUSH q {n}")), ":1 ");
        assert_eq!(server.read(n), pair("q", &n.to_string()));
        assert!(!server.waits(n));
    }
    // Several at once, in the order of the elements; what is left stays.
    let elements: Vec<String> = (50..102).map(|n| n.to_string()).collect();
    let push = format!("RPUSH q {}", elements.join(" "));
    assert_eq!(server.ask(100, &push), ":52 ");
    for n in 50..100 {
        assert_eq!(server.read(n), pair("q", &n.to_string()));
    }
    assert_eq!(server.ask(100, "LRANGE q 0 -1"), "*2 $3 100 $3 101 ");
    assert_eq!(server.ask(3, "BLPOP q 0"), pair("q", "100"));
}

#[test]
fn chains_end_before_the_next_command_runs() {
    let mut server = Server::new(3);
    server.send(0, "BLMOVE s d LEFT RIGHT 0");
    server.send(1, "BLMOVE d s RIGHT LEFT 0");
    assert_eq!(server.ask(2, "SET x 1\nLPUSH s e\nSET x 2"), "+OK :1 +OK ");
    assert_eq!(server.read(0), "$1 e ");
    assert_eq!(server.read(1), "$1 e ");
    assert_eq!(
        server.effects(),
        [
            "SET x 1",
            "LPUSH s e",
            "LMOVE s d LEFT RIGHT",
            "LMOVE d s RIGHT LEFT",
            "SET x 2"
        ]
    );
    assert_eq!(server.ask(2, "LRANGE s 0 -1"), "*1 $1 e ");
}

#[test]
fn a_chain_may_be_of_any_length_and_lead_to_itself() {
    // Longer than rounds of looking for what to latch.
    for length in [1, 2, 3, 4, 5, 6, 9, 40] {
        let mut server = Server::new(length + 2);
        for who in 0..length {
            server.send(
                who,
                &format!("BLMOVE l{who} l{} LEFT RIGHT 0", (who + 1) % length),
            );
        }
        // Back at the beginning it is taken by the next one who waits there.
        server.send(length, "BRPOP l0 0");
        assert_eq!(server.ask(length + 1, "RPUSH l0 e\nEXISTS l0"), ":1 :0 ");
        for who in 0..length {
            assert_eq!(server.read(who), "$1 e ", "{who} of {length}");
        }
        assert_eq!(server.read(length), pair("l0", "e"));
        assert_eq!(server.effects().len(), length + 2);
    }
}

#[test]
fn only_zero_is_for_ever_and_nothing_is_too_short() {
    let mut server = Server::new(2);
    for (timeout, ms) in [
        ("0.0001", 1),
        ("1e-9", 1),
        ("0.001", 1),
        ("0.0011", 2),
        ("0x1p-3", 125),
        ("2", 2000),
    ] {
        for command in ["BLPOP nokey", "BZPOPMIN nokey", "BLMOVE nokey x LEFT LEFT"] {
            assert_eq!(server.ask(0, &format!("{command} {timeout}")), "");
            assert!(server.waits(0));
            server.advance_ms(ms - 1);
            assert!(server.waits(0), "{timeout}");
            server.advance_ms(1);
            assert_eq!(server.read(0), "*-1 ", "{timeout}");
        }
    }
    let no_float = "-ERR timeout is not a float or out of range ";
    for (timeout, error) in [
        ("-1", "-ERR timeout is negative "),
        ("-0.0001", "-ERR timeout is negative "),
        ("-inf", "-ERR timeout is negative "),
        ("inf", "-ERR timeout is out of range "),
        ("1e300", "-ERR timeout is out of range "),
        ("9223372036854775", "-ERR timeout is out of range "),
        ("nan", no_float),
        ("x", no_float),
        ("1_0", no_float),
    ] {
        assert_eq!(server.ask(0, &format!("BLPOP k {timeout}")), error);
    }
    for forever in ["0", "-0", "0.0", "9.2e15"] {
        server.send(0, &format!("BLPOP k {forever}"));
        server.advance_ms(100_000_000_000);
        assert!(server.waits(0));
        server.send(1, "RPUSH k e");
        assert_eq!(server.read(0), pair("k", "e"));
        server.read(1);
    }
}

#[test]
fn the_time_counts_from_when_the_wait_began() {
    let mut server = Server::new(3);
    server.send(0, "BLPOP k 0");
    server.send(1, "BLPOP k 10");
    server.advance_ms(5000);
    // This one is another's.
    server.send(2, "RPUSH k e");
    assert_eq!(server.read(0), pair("k", "e"));
    server.send(2, "SET k string\nDEL k");
    server.advance_ms(4999);
    assert!(server.waits(1));
    server.advance_ms(1);
    assert_eq!(server.read(1), "*-1 ");
}

#[test]
fn requests_behind_it_wait_and_replies_before_it_do_not() {
    let mut server = Server::new(2);
    server.send(
        0,
        "SET x 1\nBRPOPLPUSH a b 5\nBRPOPLPUSH a b 5\nINCR x\nBRPOPLPUSH a b 5\nLLEN b",
    );
    assert_eq!(server.read(0), "+OK ");
    server.send(0, "PING");
    for n in 0..3 {
        assert!(server.waits(0));
        assert_eq!(server.ask(1, &format!("LPUSH a {n}")), ":1 ");
        let reply = server.read(0);
        match n {
            0 => assert_eq!(reply, "$1 0 "),
            1 => assert_eq!(reply, "$1 1 :2 "),
            _ => assert_eq!(reply, "$1 2 :3 +PONG "),
        }
    }
    assert!(!server.waits(0));
    // More than are looked at together.
    let many = vec!["BLPOP q 0"; 100].join("\n");
    server.send(0, &format!("{many}\nPING"));
    for n in 0..100 {
        assert_eq!(server.read(0), "");
        server.send(1, &format!("RPUSH q {n}"));
        let pong = if n == 99 { "+PONG " } else { "" };
        assert_eq!(server.read(0), pair("q", &n.to_string()) + pong);
    }
}

#[test]
fn what_is_wrong_behind_it_is_told_behind_its_reply() {
    let mut server = Server::new(2);
    server.send(0, "BLPOP q 0\nPING\n*x");
    server.send(0, "PING");
    assert!(server.waits(0));
    server.send(1, "RPUSH q e");
    let error = "-ERR Protocol error: invalid multibulk length ";
    assert_eq!(server.read(0), pair("q", "e") + "+PONG " + error);
    assert_eq!(server.client(0).verdict, Verdict::Close);
    // The same without a request between them.
    let other = server.connect();
    server.send(other, "BLPOP q 0\n*x");
    assert!(server.waits(other));
    server.send(1, "RPUSH q e");
    assert_eq!(server.read(other), pair("q", "e") + error);
    assert_eq!(server.client(other).verdict, Verdict::Close);
}

#[test]
fn unblocking_ends_a_wait_once() {
    let mut server = Server::new(2);
    let error = "-UNBLOCKED client unblocked via CLIENT UNBLOCK ";
    for (command, lapsed) in [
        ("BLPOP k 0", "*-1 "),
        ("BRPOP k 9", "*-1 "),
        ("BLMPOP 0 1 k LEFT", "*-1 "),
        ("BLMOVE k l LEFT LEFT 0", "*-1 "),
        ("BRPOPLPUSH k l 0", "*-1 "),
        ("BZPOPMIN k 0", "*-1 "),
        ("BZPOPMAX k 0", "*-1 "),
        ("BZMPOP 0 1 k MIN", "*-1 "),
        ("WAIT 1 0", ":0 "),
        ("WAITAOF 0 1 0", "*2 :0 :0 "),
    ] {
        for (how, reply) in [("", lapsed), (" TIMEOUT", lapsed), (" error", error)] {
            server.send(0, command);
            assert!(server.waits(0), "{command}");
            let unblock = format!("CLIENT UNBLOCK 1{how}\nCLIENT UNBLOCK 1");
            assert_eq!(server.ask(1, &unblock), ":1 :0 ", "{command}");
            assert_eq!(server.read(0), reply, "{command}");
        }
    }
    // Nothing is left of those who waited.
    assert_eq!(server.ask(1, "RPUSH k 1\nLLEN k"), ":1 :1 ");
    assert_eq!(
        server.ask(1, "CLIENT UNBLOCK 1\nCLIENT UNBLOCK 77"),
        ":0 :0 "
    );
    // Whoever comes first decides: data,
    server.send(0, "BLPOP q 0");
    assert_eq!(server.ask(1, "RPUSH q 1\nCLIENT UNBLOCK 1 ERROR"), ":1 :0 ");
    assert_eq!(server.read(0), pair("q", "1"));
    // or the other.
    server.send(0, "BLPOP q 0");
    assert_eq!(
        server.ask(1, "CLIENT UNBLOCK 1 ERROR\nRPUSH q 1\nLLEN q"),
        ":1 :1 :1 "
    );
    assert_eq!(server.read(0), error);
}

#[test]
fn replies_follow_the_protocol_of_the_client_that_waits() {
    let mut server = Server::new(2);
    server.send(0, "HELLO 3");
    server.read(0);
    for (command, push, reply) in [
        ("BLPOP k 0", "RPUSH k a", "*2 $1 k $1 a "),
        (
            "BLMPOP 0 2 j k RIGHT COUNT 2",
            "RPUSH k a b c",
            "*2 $1 k *2 $1 c $1 b ",
        ),
        ("BLMOVE k l LEFT LEFT 0", "RPUSH k a", "$1 a "),
        ("BZPOPMIN k 0", "ZADD k 1.5 m", "*3 $1 k $1 m ,1.5 "),
        (
            "BZMPOP 0 2 j k MIN COUNT 2",
            "ZADD k 1.5 m 2 n 3 o",
            "*2 $1 k *2 *2 $1 m ,1.5 *2 $1 n ,2 ",
        ),
    ] {
        server.send(0, command);
        server.send(1, push);
        assert_eq!(server.read(0), reply, "{command}");
        server.send(1, "FLUSHALL");
    }
    for command in [
        "BLPOP k 1",
        "BLMOVE k l LEFT LEFT 1",
        "BZPOPMAX k 1",
        "BZMPOP 1 1 k MAX",
    ] {
        server.send(0, command);
        server.advance_ms(1000);
        assert_eq!(server.read(0), "_ ", "{command}");
    }
    server.send(0, "HELLO 2");
    server.read(0);
    server.read(1);
    for (command, reply) in [
        ("BZPOPMAX k 0", "*3 $1 k $1 n $1 2 "),
        ("BZMPOP 0 1 k MAX", "*2 $1 k *1 *2 $1 n $1 2 "),
    ] {
        server.send(0, command);
        assert_eq!(server.ask(1, "ZADD k 1.5 m 2 n"), ":2 ");
        assert_eq!(server.read(0), reply);
        server.send(1, "DEL k");
        server.read(1);
    }
}

#[test]
fn another_type_serves_nobody() {
    let mut server = Server::new(4);
    server.send(0, "BLPOP k 0");
    server.send(1, "BZPOPMIN k 0");
    server.send(2, "BLPOP k 0");
    assert_eq!(server.ask(3, "SET k v\nDEL k\nZADD k 1 m"), "+OK :1 :1 ");
    assert_eq!(server.read(1), "*3 $1 k $1 m $1 1 ");
    assert_eq!(server.ask(3, "EXISTS k\nHSET k f v\nDEL k"), ":0 :1 :1 ");
    assert_eq!(server.ask(3, "LPUSH k e"), ":1 ");
    assert_eq!(server.read(0), pair("k", "e"));
    assert!(server.waits(2));
    // Those that are there at once fail at once.
    assert_eq!(
        server.ask(
            3,
            "SET s v\nBLPOP nokey s 0\nBZPOPMIN s 0\nBLMOVE s t LEFT LEFT 0"
        ),
        "+OK -WRONGTYPE Operation against a key holding the wrong kind of value \
         -WRONGTYPE Operation against a key holding the wrong kind of value \
         -WRONGTYPE Operation against a key holding the wrong kind of value "
    );
}

#[test]
fn whatever_brings_a_list_serves() {
    let mut server = Server::new(2);
    for (bring, source) in [
        ("RENAME l k", "l"),
        ("RENAMENX l k", "l"),
        ("COPY l k", "l"),
        ("SELECT 1\nMOVE k 0", "k"),
        ("SELECT 1\nCOPY k k DB 0", "k"),
        ("SWAPDB 0 1", "k"),
        ("SWAPDB 1 0", "k"),
        ("LMOVE l k LEFT RIGHT", "l"),
        ("RPOPLPUSH l k", "l"),
        ("BRPOPLPUSH l k 0", "l"),
    ] {
        let elsewhere = if source == "k" { "SELECT 1\n" } else { "" };
        server.send(1, &format!("{elsewhere}RPUSH {source} e"));
        server.send(0, "BLPOP k 0");
        assert!(server.waits(0), "{bring}");
        server.send(1, bring);
        assert_eq!(server.read(0), pair("k", "e"), "{bring}");
        server.send(1, "FLUSHALL\nSELECT 0");
    }
    // In place of something else, too.
    for bring in ["RENAME l k", "COPY l k REPLACE"] {
        server.send(0, "BLPOP k 0");
        server.send(1, "SET k v\nRPUSH l e");
        assert!(server.waits(0));
        server.send(1, bring);
        assert_eq!(server.read(0), pair("k", "e"), "{bring}");
        server.send(1, "FLUSHALL");
    }
    // A whole list may feed several, and they others.
    let moving: Vec<usize> = (0..8).map(|_| server.connect()).collect();
    for (n, who) in moving.iter().enumerate() {
        server.send(*who, &format!("BLMOVE k to{n} LEFT LEFT 0"));
    }
    server.send(0, "BLPOP to7 0");
    server.send(1, "RPUSH l 0 1 2 3 4 5 6 7 8\nRENAME l k");
    for (n, who) in moving.iter().enumerate() {
        assert_eq!(server.read(*who), format!("$1 {n} "));
    }
    assert_eq!(server.read(0), pair("to7", "7"));
    server.read(1);
    assert_eq!(
        server.ask(1, "LRANGE k 0 -1\nEXISTS to0 to7"),
        "*1 $1 8 :1 "
    );
}

#[test]
fn who_waits_for_several_keys_gets_one_element() {
    let mut server = Server::new(3);
    server.send(0, "BLPOP a b a c 0");
    server.send(1, "BRPOP c b 0");
    assert_eq!(server.ask(2, "RPUSH b 1\nRPUSH a 2\nLLEN a"), ":1 :1 :1 ");
    assert_eq!(server.read(0), pair("b", "1"));
    assert_eq!(server.ask(2, "RPUSH c 3 4\nLRANGE c 0 -1"), ":2 *1 $1 3 ");
    assert_eq!(server.read(1), pair("c", "4"));
    assert_eq!(server.ask(2, "RPUSH b 5\nLLEN b"), ":1 :1 ");
    // What is there at once comes from the first that is there.
    assert_eq!(server.ask(0, "BLPOP x a b 0"), pair("a", "2"));
    assert_eq!(server.info(2, "total_blocking_keys"), "0");
}

#[test]
fn nothing_is_taken_for_a_client_that_is_gone() {
    let mut server = Server::new(4);
    for who in 0..3 {
        server.send(who, "BLPOP k other 0");
    }
    // The connection is closed,
    let mut gone = server.clients[0].take().unwrap();
    gone.session.leave(&server.engine, &server.worker);
    drop(gone);
    // was killed and its owner does not know yet,
    assert_eq!(server.ask(3, "CLIENT KILL ID 2"), ":1 ");
    // or its session ended without a word.
    server.clients[2] = None;
    assert_eq!(server.ask(3, "RPUSH k e\nLLEN k\nDEL k"), ":1 :1 :1 ");
    server.clients[1] = None;
    assert_eq!(server.ask(3, "RPUSH other e\nLLEN other"), ":1 :1 ");
    assert_eq!(server.info(3, "total_blocking_keys"), "0");
}

#[test]
fn an_element_that_cannot_go_where_it_should_goes_to_the_next() {
    let mut server = Server::new(4);
    server.send(0, "BLMOVE k s LEFT LEFT 0");
    server.send(1, "BLMOVE k l LEFT LEFT 0");
    server.send(2, "BLPOP l 0");
    assert_eq!(server.ask(3, "SET s string\nRPUSH k e"), "+OK :1 ");
    assert_eq!(
        server.read(0),
        "-WRONGTYPE Operation against a key holding the wrong kind of value "
    );
    assert_eq!(server.read(1), "$1 e ");
    assert_eq!(server.read(2), pair("l", "e"));
    assert_eq!(server.ask(3, "EXISTS k l"), ":0 ");
}

#[test]
fn many_elements_at_once_are_taken_whole() {
    let mut server = Server::new(3);
    server.send(0, "BLMPOP 0 1 k RIGHT COUNT 500");
    server.send(1, "BZMPOP 0 1 z MAX COUNT 500");
    let elements: Vec<String> = (0..1000).map(|n| format!("e{n}")).collect();
    server.send(2, &format!("RPUSH k {}", elements.join(" ")));
    let taken: String = (500..1000).rev().map(|n| format!("$4 e{n} ")).collect();
    assert_eq!(server.read(0), format!("*2 $1 k *500 {taken}"));
    let members: Vec<String> = (0..300)
        .map(|n| format!("{n} m"))
        .map(|m| m.clone() + &m[..m.len() - 2])
        .collect();
    server.send(2, &format!("ZADD z {}", members.join(" ")));
    let reply = server.read(1);
    assert!(
        reply.starts_with("*2 $1 z *300 *2 $4 m299 $3 299 "),
        "{reply}"
    );
    assert!(reply.ends_with("*2 $2 m0 $1 0 "), "{reply}");
    server.read(2);
    assert_eq!(server.ask(2, "LLEN k\nEXISTS z"), ":500 :0 ");
    assert_eq!(server.effects().last().unwrap(), "ZPOPMAX z 300");
}

#[test]
fn a_reply_nobody_wants_is_not_sent() {
    let mut server = Server::new(2);
    server.send(0, "CLIENT REPLY SKIP\nBLPOP k 0\nPING");
    server.send(1, "RPUSH k 1");
    assert_eq!(server.read(0), "+PONG ");
    server.send(
        0,
        "CLIENT REPLY OFF\nBLPOP k 0\nPING\nBLPOP k 1\nCLIENT REPLY ON",
    );
    server.send(1, "RPUSH k 1");
    assert_eq!(server.read(0), "");
    server.advance_ms(1000);
    assert_eq!(server.read(0), "+OK ");
}

#[test]
fn those_who_wait_are_seen() {
    let mut server = Server::new(4);
    server.send(3, "CONFIG RESETSTAT");
    server.read(3);
    server.send(0, "BLPOP k j 0");
    server.send(1, "BLPOP j l 7");
    server.send(2, "WAIT 1 100\nPING");
    let line = server.ask(3, "CLIENT LIST ID 1");
    for part in [" flags=b ", " cmd=blpop ", " argv-mem=8 ", " multi=-1 "] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert_eq!(server.info(3, "blocked_clients"), "3");
    assert_eq!(server.info(3, "clients_in_timeout_table"), "2");
    assert_eq!(server.info(3, "total_blocking_keys"), "3");
    assert_eq!(server.info(3, "total_blocking_keys_on_nokey"), "0");
    // It counts when it ends, without the time it waited.
    server.send(3, "INFO commandstats");
    assert!(!server.read(3).contains("cmdstat_blpop"));
    server.send(3, "RPUSH k e\nCLIENT UNBLOCK 2 ERROR");
    server.advance_ms(100);
    assert_eq!(server.read(2), ":0 +PONG ");
    server.read(3);
    let statistics = server.info(3, "cmdstat_blpop");
    assert!(statistics.starts_with("calls=2,usec=0,"), "{statistics}");
    assert!(statistics.ends_with("failed_calls=1"), "{statistics}");
    assert_eq!(server.info(3, "errorstat_UNBLOCKED"), "count=1");
    assert_eq!(server.info(3, "blocked_clients"), "0");
    assert_eq!(server.info(3, "total_blocking_keys"), "0");
    let line = server.ask(3, "CLIENT LIST ID 1");
    assert!(
        line.contains(" flags=N ") && line.contains(" argv-mem=0 "),
        "{line}"
    );
}

#[test]
fn a_pause_holds_back_those_who_push_and_no_time_out() {
    let mut server = Server::new(4);
    server.send(0, "BLPOP k 0");
    server.send(1, "BLPOP k 1\nPING\nSET x 1");
    assert_eq!(server.ask(3, "CLIENT PAUSE 5000 WRITE"), "+OK ");
    server.send(2, "RPUSH k e\nBLPOP k 0.5");
    assert_eq!(server.client(2).verdict, Verdict::Held);
    server.advance_ms(1000);
    assert_eq!(server.read(1), "*-1 +PONG ");
    assert_eq!(server.client(1).verdict, Verdict::Held);
    server.clock.advance_ms(4000);
    server.go_on(1);
    server.go_on(2);
    server.attend();
    assert_eq!(server.read(1), "+OK ");
    assert_eq!(server.read(0), pair("k", "e"));
    assert_eq!(server.read(2), ":1 ");
    assert!(server.waits(2));
    server.advance_ms(500);
    assert_eq!(server.read(2), "*-1 ");
}

#[test]
fn waiting_for_replicas_is_waiting_for_the_time() {
    let mut server = Server::new(1);
    for (command, reply) in [
        ("WAIT 0 0", ":0 "),
        ("WAIT -1 0", ":0 "),
        ("WAIT x 0", "-ERR value is not an integer or out of range "),
        ("WAIT 1 -1", "-ERR timeout is negative "),
        (
            "WAIT 1 1.5",
            "-ERR timeout is not an integer or out of range ",
        ),
        (
            "WAIT 1 9223372036854775807",
            "-ERR timeout is out of range ",
        ),
        ("WAITAOF 0 0 0", "*2 :0 :0 "),
        (
            "WAITAOF 2 0 0",
            "-ERR value is out of range, value must between 0 and 1 ",
        ),
        (
            "WAITAOF 0 -1 0",
            "-ERR value is out of range, must be positive ",
        ),
        (
            "WAITAOF 1 0 x",
            "-ERR timeout is not an integer or out of range ",
        ),
        (
            "WAITAOF 1 0 0",
            "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled. ",
        ),
    ] {
        assert_eq!(server.ask(0, command), reply, "{command}");
    }
    for (command, reply) in [("WAIT 1 50", ":0 "), ("WAITAOF 0 2 50", "*2 :0 :0 ")] {
        assert_eq!(server.ask(0, command), "");
        server.advance_ms(49);
        assert!(server.waits(0));
        server.advance_ms(1);
        assert_eq!(server.read(0), reply);
    }
}

/// One entry of a stream as XREAD replies it in RESP2.
fn entry(stream: &str, id: &str) -> String {
    format!(
        "*1 *2 ${} {stream} *1 *2 ${} {id} *2 $1 f $1 v ",
        stream.len(),
        id.len()
    )
}

#[test]
fn readers_of_a_stream_are_all_told() {
    let mut server = Server::new(6);
    server.send(5, "XADD s 5-0 f v");
    server.read(5);
    server.send(0, "XREAD BLOCK 0 STREAMS s $");
    server.send(1, "XREAD BLOCK 1000 COUNT 1 STREAMS other s $ 5");
    server.send(2, "XREAD BLOCK 0 STREAMS s 7-0");
    server.send(3, "XREAD BLOCK 0 STREAMS s other 6 3-0");
    server.send(4, "XREAD BLOCK 1000 STREAMS s +");
    assert_eq!(server.read(4), entry("s", "5-0"));
    server.send(4, "XREAD BLOCK 1000 STREAMS other +");
    for who in 0..5 {
        assert!(server.waits(who), "{who}");
    }
    assert_eq!(server.ask(5, "XADD s 6-0 f v"), "$3 6-0 ");
    assert_eq!(server.read(0), entry("s", "6-0"));
    assert_eq!(server.read(1), entry("s", "6-0"));
    // For these it is not enough, nor is it that another stream begins.
    server.send(5, "XADD other 1-0 f v\nXADD s 7-0 f v");
    server.read(5);
    assert!(server.waits(2) && !server.waits(3) && !server.waits(4));
    assert_eq!(server.read(3), entry("s", "7-0"));
    assert_eq!(server.read(4), entry("other", "1-0"));
    // One that goes, or becomes something else, is waited for on.
    for change in [
        "DEL s",
        "SET s v\nDEL s",
        "XADD s 3-0 f v\nDEL s",
        "FLUSHALL",
    ] {
        server.send(5, change);
        assert!(server.waits(2), "{change}");
    }
    server.read(5);
    assert_eq!(server.ask(5, "XADD s 8-0 f v\nXLEN s"), "$3 8-0 :1 ");
    assert_eq!(server.read(2), entry("s", "8-0"));
    // Time passes as for others.
    server.send(0, "XREAD BLOCK 20 STREAMS s $");
    server.advance_ms(19);
    assert!(server.waits(0));
    server.advance_ms(1);
    assert_eq!(server.read(0), "*-1 ");
    for (block, error) in [
        ("0.1", "-ERR timeout is not an integer or out of range "),
        ("x", "-ERR timeout is not an integer or out of range "),
        ("-1", "-ERR timeout is negative "),
        ("9223372036854775807", "-ERR timeout is out of range "),
    ] {
        let request = format!("XREAD BLOCK {block} STREAMS s $");
        assert_eq!(server.ask(0, &request), error);
    }
    assert_eq!(server.info(5, "total_blocking_keys"), "0");
}

#[test]
fn an_entry_goes_to_one_consumer_of_a_group() {
    let mut server = Server::new(5);
    server.send(4, "XGROUP CREATE s g 0 MKSTREAM\nXGROUP CREATE s h 0");
    server.read(4);
    server.send(0, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >");
    server.send(1, "XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
    server.send(2, "XREADGROUP GROUP h a BLOCK 10000 NOACK STREAMS s >");
    assert_eq!(server.info(4, "total_blocking_keys_on_nokey"), "1");
    server.effects();
    assert_eq!(server.ask(4, "XADD s 1-0 f v"), "$3 1-0 ");
    assert_eq!(server.read(0), entry("s", "1-0"));
    assert_eq!(server.read(2), entry("s", "1-0"));
    assert!(server.waits(1));
    let effects = server.effects();
    assert_eq!(effects[0], "XADD s 1-0 f v");
    assert!(
        effects[1].starts_with("XCLAIM s g a 0 1-0 TIME "),
        "{effects:?}"
    );
    assert_eq!(server.ask(4, "XADD s 2-0 f v"), "$3 2-0 ");
    assert_eq!(server.read(1), entry("s", "2-0"));
    assert_eq!(
        server.ask(4, "XPENDING s g"),
        "*4 :2 $3 1-0 $3 2-0 *2 *2 $1 a $1 1 *2 $1 b $1 1 "
    );
    // What is pending does not wait for anything.
    assert_eq!(
        server.ask(0, "XREADGROUP GROUP g a BLOCK 0 STREAMS s 0"),
        entry("s", "1-0")
    );
    // One of several streams.
    server.send(4, "XGROUP CREATE t g 0 MKSTREAM");
    server.read(4);
    server.send(0, "XREADGROUP GROUP g a BLOCK 0 STREAMS t s > >");
    server.send(3, "XREADGROUP GROUP g c BLOCK 50 STREAMS s t > >");
    assert_eq!(server.ask(4, "XADD s 3-0 f v"), "$3 3-0 ");
    assert_eq!(server.read(0), entry("s", "3-0"));
    server.advance_ms(50);
    assert_eq!(server.read(3), "*-1 ");
}

#[test]
fn who_reads_for_a_group_hears_that_it_is_gone() {
    let no_group =
        "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option ";
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value ";
    for (change, error) in [
        ("DEL s", no_group),
        ("UNLINK s", no_group),
        ("FLUSHDB", no_group),
        ("FLUSHALL", no_group),
        ("SET s x", wrong_type),
        ("RPUSH l e\nRENAME l s", wrong_type),
        ("RENAME s t", no_group),
        ("SWAPDB 0 1", no_group),
        ("XGROUP DESTROY s g", no_group),
        ("PEXPIREAT s 1", no_group),
        ("MOVE s 1", no_group),
    ] {
        let mut server = Server::new(3);
        server.send(2, "XGROUP CREATE s g $ MKSTREAM");
        server.send(0, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
        server.send(1, "XREAD BLOCK 0 STREAMS s $");
        assert!(server.waits(0));
        server.send(2, change);
        assert_eq!(server.read(0), error, "{change}");
        assert!(server.waits(1), "{change}");
    }
    // Found out by whoever looks, or by the clock.
    for look in ["GET s", "TTL s", ""] {
        let mut server = Server::new(3);
        server.send(2, "XGROUP CREATE s g $ MKSTREAM\nPEXPIRE s 100");
        server.send(0, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
        server.clock.advance_ms(100);
        if look.is_empty() {
            server.worker.expire(&server.engine, &server.clock, 100);
            server.attend();
        } else {
            server.send(2, look);
        }
        assert_eq!(server.read(0), no_group, "{look}");
    }
    // Other changes are no news.
    let mut server = Server::new(2);
    server.send(1, "XGROUP CREATE s g $ MKSTREAM\nXGROUP CREATE s h $");
    server.send(0, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
    server.send(
        1,
        "XGROUP DESTROY s h\nXTRIM s MAXLEN 0\nPEXPIRE s 100000\nXSETID s 9-0",
    );
    assert!(server.waits(0));
}

#[test]
fn a_transaction_serves_when_all_of_it_has_run() {
    let mut server = Server::new(3);
    server.send(0, "BLPOP a b 0");
    let pushed = "+OK +QUEUED +QUEUED *2 :1 :1 ";
    assert_eq!(server.ask(1, "MULTI\nRPUSH b 1\nRPUSH a 2\nEXEC"), pushed);
    assert_eq!(server.read(0), pair("a", "2"));
    server.send(1, "FLUSHALL");
    // What is gone again serves nobody.
    server.send(0, "BLPOP k 0");
    server.send(2, "BZPOPMIN k 0");
    server.send(
        1,
        "MULTI\nRPUSH k e\nDEL k\nZADD k 1 m\nDEL k\nSET k v\nEXEC",
    );
    assert!(server.waits(0) && server.waits(2));
    server.send(1, "MULTI\nDEL k\nRPUSH k e\nDEL k\nRPUSH k f g\nEXEC");
    assert_eq!(server.read(0), pair("k", "f"));
    server.send(1, "MULTI\nSELECT 1\nZADD k 1 m\nSWAPDB 0 1\nEXEC\nSELECT 0");
    assert_eq!(server.read(2), "*3 $1 k $1 m $1 1 ");
    server.read(1);
    // Nothing waits in it.
    server.send(1, "MULTI");
    for command in [
        "BLPOP no 0",
        "BRPOP no 0",
        "BLMPOP 0 1 no LEFT",
        "BLMOVE no l LEFT LEFT 0",
        "BRPOPLPUSH no l 0",
        "BZPOPMIN no 0",
        "BZMPOP 0 1 no MIN",
        "XREAD BLOCK 0 STREAMS no $",
        "WAIT 1 0",
        "WAITAOF 0 1 0",
    ] {
        server.send(1, command);
    }
    server.read(1);
    assert_eq!(
        server.ask(1, "EXEC"),
        "*10 *-1 *-1 *-1 $-1 $-1 *-1 *-1 *-1 :0 *2 :0 :0 "
    );
}

#[test]
fn a_transaction_that_spoils_where_an_element_should_go_passes_it_on() {
    for last in 0..32 {
        let mut server = Server::new(5);
        server.send(0, "BLMOVE k s LEFT LEFT 0");
        server.send(1, &format!("BLMOVE k far{last} LEFT LEFT 0"));
        server.send(2, &format!("BLPOP far{last} 0"));
        server.send(3, "MULTI\nSET s v\nRPUSH k e\nEXEC");
        assert_eq!(
            server.read(0),
            "-WRONGTYPE Operation against a key holding the wrong kind of value "
        );
        assert_eq!(server.read(1), "$1 e ");
        assert_eq!(server.read(2), pair(&format!("far{last}"), "e"));
    }
}
