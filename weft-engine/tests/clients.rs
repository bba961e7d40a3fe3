//! Clients as others see them: CLIENT LIST, KILL, PAUSE, REPLY and MONITOR between sessions of one engine.

mod in_process;

use std::sync::Arc;

use in_process::{START_MS, engine, session};
use weft_engine::action::Action;
use weft_engine::clients::ClientRecord;
use weft_engine::clock::{Clock, ManualClock};
use weft_engine::config::{Config, Facts};
use weft_engine::engine::{Engine, WorkerState};
use weft_engine::session::{Session, Verdict};
use weft_rope::Output;

/// One worker and any number of clients.
struct Server {
    engine: Engine,
    worker: WorkerState,
    clock: ManualClock,
}

impl Server {
    fn new() -> Self {
        let engine = engine(Config::new(Facts { usable_cpus: 1 }), 1, None);
        let worker = WorkerState::new(&engine, 0, 7);
        Self {
            engine,
            worker,
            clock: ManualClock::at_ms(START_MS),
        }
    }

    fn connect(&self) -> Session {
        let mut session = session(&self.engine, self.engine.next_client_id());
        session.settle(0, 3, 12, self.clock.monotonic_ns());
        session
    }

    /// Delivers bytes and returns what was replied, and what the owner has to do.
    fn deliver(&mut self, session: &mut Session, bytes: &str) -> (String, Verdict) {
        let mut out = Output::new();
        session.set_active_ns(self.clock.monotonic_ns());
        let verdict = session.received(
            &self.engine,
            &mut self.worker,
            &self.clock,
            bytes.as_bytes(),
            &mut out,
        );
        (text(&out), verdict)
    }

    /// Sends inline requests, one a line, and returns the replies.
    fn ask(&mut self, session: &mut Session, requests: &str) -> String {
        let (replies, verdict) = self.deliver(session, &requests.replace('\n', "\r\n"));
        assert_eq!(verdict, Verdict::Open, "{requests}");
        replies
    }

    fn go_on(&mut self, session: &mut Session) -> (String, Verdict) {
        let mut out = Output::new();
        let verdict = session.go_on(&self.engine, &mut self.worker, &self.clock, &mut out);
        (text(&out), verdict)
    }

    /// The clients whose owners are to look at them.
    fn attended(&mut self) -> Vec<Arc<ClientRecord>> {
        let actions = self.worker.actions.drain(..);
        actions
            .filter_map(|action| match action {
                Action::Attend(record) => Some(record),
                _ => None,
            })
            .collect()
    }

    fn pushed(&self, session: &mut Session) -> String {
        let mut out = Output::new();
        session.take_pushes(&self.worker, &mut out);
        text(&out)
    }
}

fn text(out: &Output) -> String {
    String::from_utf8(out.to_vec()).expect("these replies are text")
}

/// The bulk string that a reply consists of.
fn bulk(reply: &str) -> &str {
    let (_, rest) = reply.split_once("\r\n").expect("a bulk string");
    rest.strip_suffix("\r\n").expect("a bulk string")
}

/// What is shown as the memory of a client that asks for its own line, and the length of that reply.
fn own_memory(server: &mut Server, session: &mut Session) -> (usize, usize) {
    let list = server.ask(session, "CLIENT LIST ID 2\n");
    let total = list.split(" tot-mem=").nth(1).expect("a line");
    let total = total.split(' ').next().expect("a number");
    (total.parse().expect("a number"), list.len())
}

#[test]
fn every_field_of_a_line_is_true() {
    let mut server = Server::new();
    let mut first = server.connect();
    let mut second = server.connect();
    server.clock.advance_ms(2500);
    server.ask(
        &mut first,
        "HELLO 3\nCLIENT SETNAME me\nCLIENT SETINFO LIB-NAME lib\nCLIENT SETINFO LIB-VER 1.2\nSELECT 7\n\
         CLIENT NO-TOUCH ON\nCLIENT NO-EVICT ON\n",
    );
    server.clock.advance_ms(1499);
    // A request of 18 bytes with 13 bytes of arguments.
    let (memory, replied) = own_memory(&mut server, &mut second);
    let fixed = memory - 18 - 13;
    assert_eq!(
        bulk(&server.ask(&mut second, "CLIENT LIST\n")),
        format!(
            "id=1 addr=127.0.0.1:1 laddr=127.0.0.1:2 fd=12 name=me age=3 idle=1 flags=eT db=7 sub=0 psub=0 ssub=0 multi=-1 \
             watch=0 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem={} events=r \
             cmd=client|no-evict user=default redir=-1 resp=3 lib-name=lib lib-ver=1.2 io-thread=0 tot-net-in=135 \
             tot-net-out=174 tot-cmds=7\n\
             id=2 addr=127.0.0.1:1 laddr=127.0.0.1:2 fd=12 name= age=3 idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 \
             watch=0 qbuf=13 qbuf-free=0 argv-mem=10 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem={} events=r \
             cmd=client|list user=default redir=-1 resp=2 lib-name= lib-ver= io-thread=0 tot-net-in=31 tot-net-out={replied} \
             tot-cmds=1\n",
            fixed,
            fixed + 13 + 10,
        )
    );
    // An unfinished request, and replies that were not taken.
    server.deliver(&mut first, "*2\r\n$4\r\nECHO\r\n$100\r\nabc");
    first.set_unsent(16 * 1024 + 20_000);
    let line = server.ask(&mut second, "CLIENT LIST ID 1\n");
    for part in [
        // What is known of a parsed part takes some bytes too.
        " qbuf=31 ",
        " obl=16384 oll=2 omem=20000 ",
        " events=rw ",
        " tot-net-in=158 tot-net-out=0 ",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn an_own_line_counts_the_replies_before_it() {
    let mut server = Server::new();
    let mut client = server.connect();
    let replies = server.ask(
        &mut client,
        "PING\nFOO\nCLIENT INFO\nSET k v\nCLIENT INFO\n",
    );
    let starts: Vec<usize> = replies.match_indices('$').map(|(at, _)| at).collect();
    let infos = replies.lines().filter(|line| line.starts_with("id="));
    let shown: Vec<String> = infos
        .map(|line| {
            let (_, rest) = line
                .split_once(" argv-mem=")
                .expect("a line of CLIENT LIST");
            let words: Vec<&str> = rest.split(' ').collect();
            let names = [
                "obl=",
                "events=",
                "tot-net-in=",
                "tot-net-out=",
                "tot-cmds=",
            ];
            let named = |word: &&&str| names.iter().any(|name| word.starts_with(name));
            let chosen: Vec<&str> = words.iter().filter(named).copied().collect();
            format!("argv-mem={} {}", words[0], chosen.join(" "))
        })
        .collect();
    let expected: Vec<String> = [(63, 1), (starts[1], 3)]
        .iter()
        .map(|(obl, commands)| {
            format!(
                "argv-mem=10 obl={obl} events=r tot-net-in=46 tot-net-out=0 tot-cmds={commands}"
            )
        })
        .collect();
    assert_eq!((starts[0], shown), (63, expected));
    // In a line of its own everything before has been sent.
    let info = server.ask(&mut client, "CLIENT INFO\n");
    assert!(info.contains(" obl=0 oll=0 omem=0 "), "{info}");
}

#[test]
fn a_session_that_ends_leaves_the_list() {
    let mut server = Server::new();
    let mut first = server.connect();
    let second = server.connect();
    assert_eq!(server.engine.clients.connected(), 2);
    drop(second);
    assert_eq!(server.engine.clients.connected(), 1);
    assert_eq!(server.ask(&mut first, "CLIENT LIST ID 2\n"), "$0\r\n\r\n");
}

#[test]
fn a_killed_client_runs_nothing_more_and_is_gone_at_once() {
    let mut server = Server::new();
    let mut killer = server.connect();
    let mut victim = server.connect();
    server.ask(&mut victim, "SET k 1\n");
    assert_eq!(server.ask(&mut killer, "CLIENT KILL ID 2\n"), ":1\r\n");
    assert_eq!(server.engine.clients.connected(), 1);
    let attended = server.attended();
    assert_eq!(attended.len(), 1);
    assert_eq!(attended[0].id(), 2);
    assert!(attended[0].is_doomed());
    assert_eq!(server.ask(&mut killer, "CLIENT KILL ID 2\n"), ":0\r\n");
    assert_eq!(server.ask(&mut killer, "CLIENT LIST ID 2\n"), "$0\r\n\r\n");
    let (replies, verdict) = server.deliver(&mut victim, "SET k 2\r\n");
    assert_eq!((&*replies, verdict), ("", Verdict::Drop));
    assert_eq!(server.ask(&mut killer, "GET k\n"), "$1\r\n1\r\n");
    drop(victim);
    assert_eq!(server.engine.clients.connected(), 1);
}

#[test]
fn who_kills_itself_is_answered_first() {
    let mut server = Server::new();
    for (kill, reply) in [
        ("CLIENT KILL 127.0.0.1:1", "+OK\r\n"),
        ("CLIENT KILL SKIPME no", ":1\r\n"),
    ] {
        let mut client = server.connect();
        let (replies, verdict) =
            server.deliver(&mut client, &format!("SET k 1\r\n{kill}\r\nSET k 2\r\n"));
        assert_eq!(replies, format!("+OK\r\n{reply}"));
        assert_eq!(verdict, Verdict::Close);
        assert_eq!(server.engine.clients.connected(), 0);
        assert!(server.attended().is_empty());
    }
}

#[test]
fn filters_of_kill_are_joined() {
    let mut server = Server::new();
    let mut killer = server.connect();
    let others: Vec<Session> = (0..3).map(|_| server.connect()).collect();
    server.clock.advance_ms(9_999);
    let young = server.connect();
    for (filter, killed) in [
        ("MAXAGE 10", ":0\r\n"),
        ("ID 2 ADDR 127.0.0.1:2", ":0\r\n"),
        ("ID 2 LADDR 127.0.0.1:1", ":0\r\n"),
        ("ID 2 TYPE pubsub", ":0\r\n"),
        ("ID 2 MAXAGE 10 SKIPME no", ":0\r\n"),
        ("ID 1", ":0\r\n"),
        (
            "ID 2 LADDR 127.0.0.1:2 ADDR 127.0.0.1:1 USER default TYPE NORMAL MAXAGE 9",
            ":1\r\n",
        ),
        ("MAXAGE 9", ":2\r\n"),
        ("TYPE normal", ":1\r\n"),
    ] {
        let request = format!("CLIENT KILL {filter} SKIPME yes\n");
        assert_eq!(server.ask(&mut killer, &request), killed, "{filter}");
    }
    drop((others, young));
}

#[test]
fn a_pause_holds_requests_in_order_and_loses_none() {
    let mut server = Server::new();
    let mut admin = server.connect();
    let mut client = server.connect();
    server.ask(&mut client, "SET k 0\nCLIENT REPLY ON\n");
    assert_eq!(
        server.ask(&mut admin, "CLIENT PAUSE 1000 WRITE\n"),
        "+OK\r\n"
    );
    let (replies, verdict) = server.deliver(
        &mut client,
        "GET k\r\nINCR k\r\nGET k\r\nCLIENT REPLY SKIP\r\nINCR k\r\nGET k\r\n",
    );
    assert_eq!((&*replies, verdict), ("$1\r\n0\r\n", Verdict::Held));
    assert!(client.is_held() && !client.may_move() && client.may_idle());
    let line = server.ask(&mut admin, "CLIENT LIST ID 2\n");
    assert!(
        line.contains(" flags=b ") && line.contains(" cmd=incr "),
        "{line}"
    );
    assert_eq!(server.engine.clients.facts().blocked, 1);
    // What arrives meanwhile waits behind it, read or write.
    let (replies, verdict) = server.deliver(&mut client, "GET k\r\nINCR k\r\n*x\r\n");
    assert_eq!((&*replies, verdict), ("", Verdict::Held));
    server.clock.advance_ms(999);
    assert_eq!(server.go_on(&mut client), (String::new(), Verdict::Held));
    server.clock.advance_ms(1);
    let (replies, verdict) = server.go_on(&mut client);
    assert_eq!(
        replies,
        ":1\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n2\r\n:3\r\n-ERR Protocol error: invalid multibulk length\r\n"
    );
    assert_eq!(verdict, Verdict::Close);
    assert_eq!(server.engine.clients.facts().blocked, 0);
}

#[test]
fn a_pause_of_all_holds_everything_that_could_run() {
    let mut server = Server::new();
    let mut admin = server.connect();
    let mut client = server.connect();
    let mut monitor = server.connect();
    server.ask(&mut monitor, "MONITOR\n");
    server.ask(&mut admin, "CLIENT PAUSE 1000\n");
    let (replies, verdict) = server.deliver(&mut client, "NONE\r\nGET\r\nPING\r\nQUIT\r\n");
    assert!(
        replies.starts_with("-ERR unknown command 'NONE'"),
        "{replies}"
    );
    assert!(replies.ends_with("for 'get' command\r\n"), "{replies}");
    assert_eq!(verdict, Verdict::Held);
    // The one who paused cannot end it, who monitors can.
    assert_eq!(
        server.deliver(&mut admin, "CLIENT UNPAUSE\r\n"),
        (String::new(), Verdict::Held)
    );
    assert_eq!(server.ask(&mut monitor, "CLIENT UNPAUSE\n"), "+OK\r\n");
    assert!(matches!(
        server.worker.actions.last(),
        Some(Action::PauseEnded)
    ));
    assert_eq!(server.go_on(&mut admin), ("+OK\r\n".into(), Verdict::Open));
    assert_eq!(
        server.go_on(&mut client),
        ("+PONG\r\n+OK\r\n".into(), Verdict::Close)
    );
}

#[test]
fn what_was_skipped_stays_skipped_over_a_pause() {
    let mut server = Server::new();
    let mut client = server.connect();
    let (replies, verdict) = server.deliver(
        &mut client,
        "CLIENT PAUSE 10 WRITE\r\nCLIENT REPLY SKIP\r\nINCR k\r\nINCR k\r\n",
    );
    assert_eq!((&*replies, verdict), ("+OK\r\n", Verdict::Held));
    server.clock.advance_ms(10);
    assert_eq!(server.go_on(&mut client), (":2\r\n".into(), Verdict::Open));
}

#[test]
fn keys_whose_time_comes_during_a_pause_are_missing_but_stay() {
    let mut server = Server::new();
    let mut client = server.connect();
    server.ask(&mut client, "SET k v PX 500\nCLIENT PAUSE 2000 WRITE\n");
    server.clock.advance_ms(1000);
    let replies = server.ask(&mut client, "GET k\nEXISTS k\nDBSIZE\n");
    assert_eq!(replies, "$-1\r\n:0\r\n:1\r\n");
    assert!(!server.worker.expire(&server.engine, &server.clock, 100));
    assert_eq!(server.ask(&mut client, "DBSIZE\n"), ":1\r\n");
    server.clock.advance_ms(1000);
    server.worker.expire(&server.engine, &server.clock, 100);
    assert_eq!(server.ask(&mut client, "DBSIZE\n"), ":0\r\n");
}

#[test]
fn no_touch_leaves_no_trace_in_the_use_of_keys() {
    let mut server = Server::new();
    let mut client = server.connect();
    server.ask(&mut client, "SET k v\nCLIENT NO-TOUCH ON\n");
    server.clock.advance_ms(5000);
    assert_eq!(
        server.ask(&mut client, "GET k\nOBJECT IDLETIME k\n"),
        "$1\r\nv\r\n:5\r\n"
    );
    server.ask(&mut client, "CLIENT NO-TOUCH OFF\n");
    assert_eq!(
        server.ask(&mut client, "GET k\nOBJECT IDLETIME k\n"),
        "$1\r\nv\r\n:0\r\n"
    );
}

#[test]
fn a_monitor_sees_commands_as_they_ran_and_no_secret() {
    let mut server = Server::new();
    let mut monitor = server.connect();
    let mut client = server.connect();
    assert_eq!(server.ask(&mut monitor, "MONITOR\n"), "+OK\r\n");
    server.ask(
        &mut client,
        "SET k \"a\\r\\nb\\t\\\"\\\\\\x00\\a\\b\\x7f\\xff \"\nNONE x\nGET\nCONFIG GET port\nSELECT 5\nAUTH secret\n\
         AUTH a b c\nHELLO 3 AUTH u secret SETNAME x\nHELLO 9 auth u secret\nHELLO 3 SETNAME auth AUTH secret\nCLIENT LIST\nCLIENT ID\n",
    );
    let attended = server.attended();
    assert_eq!(attended.len(), 1);
    assert_eq!(attended[0].id(), 1);
    let lines = [
        "[0 127.0.0.1:1] \"SET\" \"k\" \"a\\r\\nb\\t\\\"\\\\\\x00\\a\\b\\x7f\\xff \"",
        "[5 127.0.0.1:1] \"SELECT\" \"5\"",
        "[5 127.0.0.1:1] \"AUTH\" \"(redacted)\"",
        "[5 127.0.0.1:1] \"AUTH\" \"(redacted)\" \"(redacted)\" \"(redacted)\"",
        "[5 127.0.0.1:1] \"HELLO\" \"3\" \"AUTH\" \"(redacted)\" \"(redacted)\" \"SETNAME\" \"x\"",
        "[5 127.0.0.1:1] \"HELLO\" \"9\" \"auth\" \"(redacted)\" \"(redacted)\"",
        "[5 127.0.0.1:1] \"HELLO\" \"3\" \"SETNAME\" \"auth\" \"AUTH\" \"(redacted)\"",
        "[5 127.0.0.1:1] \"CLIENT\" \"ID\"",
    ];
    let expected: String = lines
        .iter()
        .map(|line| format!("+1700000000.000000 {line}\r\n"))
        .collect();
    assert_eq!(server.pushed(&mut monitor), expected);
    assert_eq!(server.pushed(&mut monitor), "");
    // Its own commands stand behind their replies, in order.
    server.clock.advance_ms(1);
    let own = "+1700000000.001000 [0 127.0.0.1:1]";
    assert_eq!(
        server.ask(
            &mut monitor,
            "PING\nCLIENT REPLY SKIP\nPING\nGET k\nMONITOR\nECHO a\n"
        ),
        format!(
            "+PONG\r\n{own} \"PING\"\r\n{own} \"CLIENT\" \"REPLY\" \"SKIP\"\r\n\
             -ERR Replica can't interact with the keyspace\r\n$1\r\na\r\n{own} \"ECHO\" \"a\"\r\n"
        )
    );
    let line = server.ask(&mut client, "CLIENT LIST ID 1\n");
    assert!(line.contains(" flags=O "), "{line}");
    assert!(!monitor.may_move());
    assert_eq!(
        server.ask(&mut monitor, "RESET\nGET l\n").lines().next(),
        Some("+RESET")
    );
    assert!(monitor.may_move());
    server.attended();
    server.ask(&mut client, "PING\n");
    assert!(server.attended().is_empty());
    assert!(!server.engine.clients.is_monitored());
}

#[test]
fn a_monitor_that_takes_nothing_is_cut_off() {
    let mut server = Server::new();
    let mut monitor = server.connect();
    let mut client = server.connect();
    server.ask(
        &mut client,
        "CONFIG SET client-output-buffer-limit \"normal 20000 0 0\"\n",
    );
    server.ask(&mut monitor, "MONITOR\n");
    let text = "x".repeat(10_000);
    for round in 0..4 {
        assert_eq!(
            server.engine.clients.connected(),
            if round < 4 { 2 } else { 1 }
        );
        server.ask(&mut client, &format!("ECHO {text}\n"));
    }
    assert_eq!(server.engine.clients.connected(), 1);
    let warned = server.worker.actions.iter().any(|action| {
        matches!(action, Action::Warn(text) if text.starts_with("Client id=1 addr=127.0.0.1:1 ")
            && text.ends_with(" scheduled to be closed ASAP for overcoming of output buffer limits."))
    });
    assert!(warned);
    assert!(
        server
            .attended()
            .iter()
            .any(|record| record.id() == 1 && record.is_doomed())
    );
    assert_eq!(server.deliver(&mut monitor, "PING\r\n").1, Verdict::Drop);
}

#[test]
fn a_monitor_that_is_gone_costs_nothing() {
    let mut server = Server::new();
    let mut client = server.connect();
    let mut monitor = server.connect();
    server.ask(&mut monitor, "MONITOR\n");
    assert!(server.engine.clients.is_monitored());
    drop(monitor);
    assert!(!server.engine.clients.is_monitored());
    server.ask(&mut client, "PING\n");
    assert!(server.attended().is_empty());
}

#[test]
fn a_client_that_wants_no_replies_gets_none_and_is_closed_all_the_same() {
    let mut server = Server::new();
    for bytes in ["QUIT\r\n", "*x\r\n"] {
        let mut client = server.connect();
        let (replies, verdict) =
            server.deliver(&mut client, &format!("CLIENT REPLY OFF\r\nPING\r\n{bytes}"));
        assert_eq!((&*replies, verdict), ("", Verdict::Close), "{bytes}");
    }
}
