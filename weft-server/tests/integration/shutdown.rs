//! How the server ends.

use std::fs;
use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;

use crate::harness::{Client, Server};

#[test]
fn sigterm_ends_it_in_good_order() {
    ends_in_good_order(Signal::TERM, "SIGTERM");
}

#[test]
fn sigint_ends_it_in_good_order() {
    ends_in_good_order(Signal::INT, "SIGINT");
}

fn ends_in_good_order(signal: Signal, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let [socket, pid_file] = ["socket", "pid"].map(|name| folder.path().join(name));
    let mut server = Server::start(&[
        "--unixsocket",
        socket.to_str().unwrap(),
        "--pidfile",
        pid_file.to_str().unwrap(),
    ]);
    assert_eq!(
        fs::read_to_string(&pid_file).unwrap(),
        format!("{}\n", server.id())
    );
    assert!(socket.exists());
    server.wait_for_line("Ready to accept connections unix");
    let mut client = server.connect();
    client.ask("PING", "+PONG\r\n");
    server.signal(signal);
    assert_eq!(server.wait().code(), Some(0));
    client.expect_end();
    assert!(!socket.exists() && !pid_file.exists());
    let signal_line = server
        .seen
        .iter()
        .position(|line| line.contains("signal-handler"))
        .unwrap();
    let (id, line) = (server.id(), &server.seen[signal_line]);
    assert!(
        line.starts_with(&format!("{id}:signal-handler (")),
        "{line}"
    );
    assert!(
        line.ends_with(&format!(") Received {name} scheduling shutdown...")),
        "{line}"
    );
    assert_eq!(
        server.messages()[signal_line + 1..],
        [
            "User requested shutdown...",
            "Removing the pid file.",
            "Removing the unix socket file.",
            "Weft is now ready to exit, bye bye...",
        ]
    );
}

#[test]
fn sighup_is_ignored() {
    let mut server = Server::start(&[]);
    server.signal(Signal::HUP);
    server.connect().ask("PING", "+PONG\r\n");
    server.stop();
}

#[test]
fn shutdown_closes_without_a_reply() {
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    let mut other = server.connect();
    other.ask("PING", "+PONG\r\n");
    client.send("SET key value\r\nSHUTDOWN NOSAVE\r\nGET key\r\n");
    client.expect(b"+OK\r\n");
    client.expect_end();
    other.expect_end();
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn replies_already_made_are_delivered() {
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    let value = "x".repeat(1 << 20);
    client.send(format!(
        "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n",
        value.len()
    ));
    client.expect(b"+OK\r\n");
    // More than the sockets hold: the rest is still with the server when it is told to end.
    client.send("GET k\r\n".repeat(8));
    let mut head = format!("${}\r\n", value.len());
    client.expect(head.as_bytes());
    server.signal(Signal::TERM);
    server.wait_for_line("User requested shutdown...");
    head = format!("{value}\r\n{head}");
    for _ in 0..7 {
        client.expect(head.as_bytes());
    }
    client.expect(format!("{value}\r\n").as_bytes());
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn systemd_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(crate::harness::PATIENCE))
        .unwrap();
    let mut server = Server::start_with(&["--supervised", "auto"], |command| {
        command.env("NOTIFY_SOCKET", &path)
    });
    let mut buffer = [0; 200];
    let mut next = || {
        let count = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    };
    assert!(next().contains("\nREADY=1\n"));
    server.stop();
    assert!(next().contains("\nSTOPPING=1\n"));
}

/// Has more replies waiting than sockets hold, and reads none of them.
fn mute_client(server: &Server) -> Client {
    let mut client = server.connect();
    client.ask(&format!("SET k {}", "x".repeat(60_000)), "+OK\r\n");
    client.send(b"GET k\r\n".repeat(1000));
    // Another connection's turn comes after the one that took those requests in.
    server.connect().ask("PING", "+PONG\r\n");
    client
}

#[test]
fn a_client_that_never_reads_does_not_hold_up_the_end() {
    let mut server = Server::start(&[]);
    let _mute = mute_client(&server);
    server.stop();
}

#[test]
fn a_second_sigint_ends_it_at_once() {
    let mut server = Server::start(&[]);
    let _mute = mute_client(&server);
    server.signal(Signal::INT);
    server.wait_for_line("User requested shutdown...");
    server.signal(Signal::INT);
    assert_eq!(server.wait().code(), Some(1));
    let last = server.seen.last().unwrap();
    assert!(last.ends_with(") You insist... exiting now."), "{last}");
}

#[test]
fn every_way_to_shut_down_ends_it() {
    for options in [
        "",
        "NOSAVE",
        "NOW",
        "FORCE",
        "nosave now force",
        "SAVE FORCE",
        "NOW NOW",
    ] {
        let mut server = Server::start(&[]);
        let mut client = server.connect();
        client.send(format!("SHUTDOWN {options}\r\n"));
        client.expect_end();
        assert_eq!(server.wait().code(), Some(0), "{options}");
        let expected = [
            "User requested shutdown...",
            "Weft is now ready to exit, bye bye...",
        ];
        assert_eq!(server.messages().last_chunk(), Some(&expected), "{options}");
    }
}

const CANNOT_SAVE: &str =
    "There is no saving to disk yet. Error trying to save the DB, can't exit.";

#[test]
fn a_shutdown_that_must_save_is_refused_and_the_log_says_why() {
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    client.ask(
        "SHUTDOWN SAVE",
        "-ERR Errors trying to SHUTDOWN. Check logs.\r\n",
    );
    client.ask(
        "SHUTDOWN SAVE NOW",
        "-ERR Errors trying to SHUTDOWN. Check logs.\r\n",
    );
    server.wait_for_line(CANNOT_SAVE);
    client.ask("PING", "+PONG\r\n");
    server.stop();
}

#[test]
fn the_parameters_say_what_a_signal_does() {
    for (how, ends) in [
        ("default", true),
        ("nosave", true),
        ("now", true),
        ("force", true),
        ("nosave now force", true),
        ("save force", true),
        ("save", false),
        ("save now", false),
    ] {
        for (signal, parameter, other) in [
            (Signal::TERM, "shutdown-on-sigterm", "shutdown-on-sigint"),
            (Signal::INT, "shutdown-on-sigint", "shutdown-on-sigterm"),
        ] {
            let mut server = Server::start(&[&format!("--{parameter}"), how]);
            server.signal(signal);
            server.wait_for_line("User requested shutdown...");
            if !ends {
                server.wait_for_line(CANNOT_SAVE);
                server.wait_for_line(
                    "Errors trying to shut down the server. Check the logs for more information.",
                );
                let mut client = server.connect();
                client.ask("PING", "+PONG\r\n");
                // The next signal is a first one again, and the parameter is that of the moment.
                client.ask(
                    &format!("CONFIG SET {parameter} default {other} save"),
                    "+OK\r\n",
                );
                server.signal(signal);
            }
            assert_eq!(server.wait().code(), Some(0), "{parameter} {how}");
        }
    }
}
