//! What others see of the process, and how it is tied to the machine.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;

use crate::harness::{PROGRAM, Server, free_port, message, run};

fn command_line(server: &Server) -> String {
    let text = fs::read(format!("/proc/{}/cmdline", server.id())).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.trim_end_matches('\0').to_owned()
}

fn score(server: &Server) -> i32 {
    let text = fs::read_to_string(format!("/proc/{}/oom_score_adj", server.id())).unwrap();
    text.trim().parse().unwrap()
}

#[test]
fn the_title_says_where_the_server_listens() {
    let server = Server::start_with(&["--bind", "127.0.0.1"], |command| command.arg0("weft"));
    let mut client = server.connect();
    let port = server.port();
    assert_eq!(command_line(&server), format!("weft 127.0.0.1:{port}"));
    client.ask(
        "CONFIG SET proc-title-template \"{port} of {title}{server-mode}\"",
        "+OK\r\n",
    );
    assert_eq!(command_line(&server), format!("{port} of weft"));
    let other = free_port();
    client.ask(&format!("CONFIG SET port {other}"), "+OK\r\n");
    assert_eq!(command_line(&server), format!("{other} of weft"));
    // What does not fit changes nothing.
    client.ask(
        &format!("CONFIG SET proc-title-template {}", "x".repeat(500)),
        "+OK\r\n",
    );
    assert_eq!(command_line(&server), format!("{other} of weft"));
}

#[test]
fn the_title_can_be_left_alone() {
    let server = Server::start_with(&["--set-proc-title", "no"], |command| command.arg0("weft"));
    let shown = command_line(&server);
    assert!(
        shown.starts_with("weft\0--port\0") && shown.ends_with("\0--set-proc-title\0no"),
        "{shown}"
    );
}

#[test]
fn the_kernel_is_told_whom_to_end_first() {
    let server = Server::start(&["--oom-score-adj", "yes"]);
    let mut client = server.connect();
    let at_start = score(&server);
    client.ask("CONFIG SET oom-score-adj-values \"5 10 15\"", "+OK\r\n");
    assert_eq!(score(&server), at_start + 5);
    client.ask(
        "CONFIG SET oom-score-adj absolute oom-score-adj-values \"900 0 0\"",
        "+OK\r\n",
    );
    assert_eq!(score(&server), 900);
    // All or nothing.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    client.ask(
        &format!("CONFIG SET oom-score-adj-values \"1000 0 0\" port {port}"),
        "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs.\r\n",
    );
    assert_eq!(score(&server), 900);
    // Only the privileged may go below what they began with.
    let reply = if may_lower_scores() {
        "+OK\r\n"
    } else {
        "-ERR CONFIG SET failed (possibly related to argument 'oom-score-adj-values') - Failed to set current \
         oom_score_adj. Check server logs.\r\n"
    };
    client.ask("CONFIG SET oom-score-adj-values \"-1000 0 0\"", reply);
    client.ask("CONFIG SET oom-score-adj no", "+OK\r\n");
    assert_eq!(score(&server), at_start);
}

/// Whether this process has CAP_SYS_RESOURCE.
fn may_lower_scores() -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:\t"));
    u64::from_str_radix(mask.unwrap(), 16).unwrap() >> CAP_SYS_RESOURCE & 1 == 1
}

#[test]
fn lines_of_the_log_take_valkey_s_forms() {
    let mut server = Server::start(&["--log-format", "json", "--log-timestamp-format", "iso8601"]);
    let id = server.id();
    let line = server.seen.last().unwrap();
    let start = format!("{{\"pid\":{id},\"role\":\"primary\",\"timestamp\":\"");
    let end = "\",\"level\":\"notice\",\"message\":\"Ready to accept connections tcp\"}";
    assert!(line.starts_with(&start) && line.ends_with(end), "{line}");
    server.connect().ask(
        "CONFIG SET log-format logfmt log-timestamp-format milliseconds",
        "+OK\r\n",
    );
    server.signal(Signal::TERM);
    server.wait();
    let line = server.seen.last().unwrap();
    let start = format!("pid={id} role=primary timestamp=\"1");
    let end = " level=warning message=\"Weft is now ready to exit, bye bye...\"";
    assert!(line.starts_with(&start) && line.ends_with(end), "{line}");
}

#[test]
fn a_unix_socket_belongs_to_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let path = socket.to_str().unwrap();
    // The folder's own group is one that the test may give a file to.
    let group = fs::metadata(folder.path()).unwrap().gid();
    let _server = Server::start(&[
        "--unixsocket",
        path,
        "--unixsocketgroup",
        &group.to_string(),
    ]);
    assert_eq!(fs::metadata(&socket).unwrap().gid(), group);
    let other = folder.path().join("other");
    let ended = run(&[
        "--port",
        "0",
        "--unixsocket",
        other.to_str().unwrap(),
        "--unixsocketgroup",
        "no-such-group",
    ]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        message(ended.output.lines().last().unwrap()),
        "Failed opening Unix socket: there is no group no-such-group"
    );
    assert!(!other.exists());
}

#[test]
fn a_service_manager_that_is_not_there_is_named() {
    let server = Server::start(&["--supervised", "systemd"]);
    let line = "'supervised' names a service manager, but NOTIFY_SOCKET is not set: nobody is told that the server is ready.";
    assert!(server.messages().contains(&line), "{:?}", server.seen);
}

/// The processors that a thread of this name may use.
fn processors(server: &Server, name: &str) -> String {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    for task in tasks {
        let task = task.unwrap().path();
        if fs::read_to_string(task.join("comm")).unwrap().trim() == name {
            let status = fs::read_to_string(task.join("status")).unwrap();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
            return line.unwrap().to_owned();
        }
    }
    panic!("no thread is called {name}");
}

#[test]
fn background_work_has_processors_of_its_own() {
    let server = Server::start(&[]);
    let all = processors(&server, "weft-reaper");
    let first = all.split(['-', ',']).next().unwrap().to_owned();
    let server = Server::start(&["--bio-cpulist", &first]);
    assert_eq!(processors(&server, "weft-reaper"), first);
    assert_eq!(processors(&server, "weft-acceptor"), all);
    let ended = run(&["--port", "0", "--bio-cpulist", "bogus"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.contains(">>> 'bio-cpulist \"bogus\"'"),
        "{}",
        ended.errors
    );
}

#[test]
fn a_seed_gives_keys_their_order_back() {
    let order = |seed: &str| {
        let server = Server::start(&["--hash-seed", seed, "--io-threads", "1"]);
        let mut client = server.connect();
        for number in 0..50 {
            client.ask(&format!("SET key:{number} value"), "+OK\r\n");
        }
        client.bulk("RANDOMKEY");
        client.send("KEYS *\r\nPING\r\n");
        let mut keys = Vec::new();
        loop {
            match client.line() {
                line if line == "+PONG\r\n" => break keys,
                line => keys.push(line),
            }
        }
    };
    let blue = order("blue");
    assert_eq!(blue.len(), 1 + 2 * 50);
    assert_eq!(blue, order("blue"));
    assert_ne!(blue, order("green"));
}

#[test]
fn a_signal_that_asks_to_save_does_not_end_the_server() {
    let mut server = Server::start(&[
        "--shutdown-on-sigterm",
        "save",
        "--shutdown-on-sigint",
        "save",
        "force",
    ]);
    server.signal(Signal::TERM);
    let line = server.wait_for_line("shutdown-on-sigterm: There is no saving to disk yet");
    assert!(line.ends_with("can't exit."), "{line}");
    server.connect().ask("PING", "+PONG\r\n");
    server.signal(Signal::INT);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn marks_and_multipath_are_taken_or_named() {
    for options in [["--socket-mark-id", "7"], ["--mptcp", "yes"]] {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut command = Command::new(PROGRAM);
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(options);
        let possible = match options[0] {
            "--mptcp" => multipath_is_there(),
            // The system lets only the privileged do it.
            _ => rustix::process::geteuid().is_root(),
        };
        if possible {
            let server = Server::launch(command, folder, port);
            server.connect().ask("PING", "+PONG\r\n");
        } else {
            let ended = command.output().unwrap();
            assert_eq!(ended.status.code(), Some(1), "{options:?}");
            let log = String::from_utf8(ended.stdout).unwrap();
            assert!(
                log.contains("Could not create server TCP listening socket"),
                "{options:?}: {log}"
            );
        }
    }
}

/// Whether the kernel's table of protocols has multipath TCP.
fn multipath_is_there() -> bool {
    let protocols = fs::read_to_string("/proc/net/protocols").unwrap_or_default();
    protocols.lines().any(|line| line.starts_with("MPTCP "))
}
