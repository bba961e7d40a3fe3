//! How the server starts, and how it says why it does not.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Client, PATIENCE, PROGRAM, Server, free_port, message, run};

#[test]
fn the_lines_that_tools_wait_for_come_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut server = Server::start(&["--unixsocket", socket.to_str().unwrap()]);
    server.wait_for_line("Ready to accept connections unix");
    let messages = server.messages();
    let running = format!("Running mode=standalone, port={}.", server.port());
    let expected = [
        "oO0OoO0OoO0Oo Weft is starting oO0OoO0OoO0Oo",
        "Configuration loaded",
        &running,
        "Server initialized",
        "Data is kept in memory only: there is no saving to disk yet.",
        "Ready to accept connections tcp",
        "Ready to accept connections unix",
    ];
    let found: Vec<&str> = messages
        .into_iter()
        .filter(|message| expected.contains(message))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_line_has_process_role_time_and_level() {
    let server = Server::start(&[]);
    let line = &server.seen[0];
    let mut words = line.split(' ');
    assert_eq!(words.next().unwrap(), format!("{}:C", server.id()));
    let shape = |word: &str| {
        word.chars()
            .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
            .collect::<String>()
    };
    assert_eq!(shape(words.next().unwrap()), "00");
    assert_eq!(words.next().unwrap().len(), 3);
    assert_eq!(shape(words.next().unwrap()), "0000");
    assert_eq!(shape(words.next().unwrap()), "00:00:00.000");
    assert_eq!(words.next().unwrap(), "*");
    let ready = server
        .seen
        .iter()
        .find(|line| line.contains("Ready to accept"))
        .unwrap();
    assert!(ready.starts_with(&format!("{}:M ", server.id())), "{ready}");
}

#[test]
fn the_picture_is_shown_when_asked_for() {
    let server = Server::start(&["--always-show-logo", "yes"]);
    let log = server.seen.join("\n");
    let picture = log.find(&format!(" PID: {}", server.id())).unwrap();
    assert!(log.contains(&format!("Port: {}", server.port())));
    assert!(picture < log.find("Server initialized").unwrap());
}

#[test]
fn requests_are_answered_over_every_kind_of_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let server = Server::start(&[
        "--unixsocket",
        socket.to_str().unwrap(),
        "--unixsocketperm",
        "700",
    ]);
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
        0o700
    );
    server.connect().ask("SET door tcp", "+OK\r\n");
    Client::connect(("::1", server.port()))
        .unwrap()
        .ask("GET door", "$3\r\ntcp\r\n");
    let mut unix = Client {
        stream: UnixStream::connect(&socket).unwrap(),
    };
    unix.ask("GET door", "$3\r\ntcp\r\n");
    unix.ask("PING", "+PONG\r\n");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    fs::write(&pid_file, "someone else's").unwrap();
    let ended = run(&[
        "--port",
        &port,
        "--bind",
        "127.0.0.1",
        "--pidfile",
        pid_file.to_str().unwrap(),
    ]);
    assert_eq!(ended.code, Some(1));
    let messages: Vec<&str> = ended.output.lines().map(message).collect();
    assert_eq!(
        messages[messages.len() - 2..],
        [
            format!(
                "Warning: Could not create server TCP listening socket 127.0.0.1:{port}: bind: Address already in use"
            ),
            format!("Failed listening on port {port} (tcp), aborting."),
        ]
    );
    assert_eq!(fs::read_to_string(&pid_file).unwrap(), "someone else's");
}

#[test]
fn an_optional_address_may_be_missing() {
    let server = Server::start(&["--bind", "127.0.0.1", "-192.0.2.200"]);
    let warning = format!(
        "Warning: Could not create server TCP listening socket 192.0.2.200:{}: bind: Cannot assign requested address",
        server.port()
    );
    assert!(
        server.messages().contains(&warning.as_str()),
        "{:?}",
        server.seen
    );
    server.connect().ask("PING", "+PONG\r\n");
}

#[test]
fn there_must_be_something_to_listen_on() {
    let ended = run(&["--port", "0"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        message(ended.output.lines().last().unwrap()),
        "Configured to not listen anywhere, exiting."
    );
}

#[test]
fn a_wrong_line_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weft.conf");
    fs::write(&file, "# comment\nbogus-parameter yes\n").unwrap();
    let ended = run(&[file.as_os_str()]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
    let lines: Vec<&str> = ended
        .errors
        .lines()
        .filter(|line| !line.is_empty())
        .collect();
    assert!(
        lines[0].starts_with("*** FATAL CONFIG FILE ERROR ("),
        "{}",
        ended.errors
    );
    assert_eq!(
        lines[1..],
        [
            "Reading the configuration file, at line 2",
            ">>> 'bogus-parameter yes'",
            "Bad directive or wrong number of arguments",
            &format!("(file '{}', line 2)", file.display()),
        ]
    );
}

#[test]
fn what_is_not_built_yet_stops_the_start() {
    let ended = run(&["--appendonly", "yes"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.contains(">>> 'appendonly \"yes\"'"),
        "{}",
        ended.errors
    );
}

#[test]
fn a_directory_or_log_that_cannot_be_used_stops_the_start() {
    let ended = run(&["--dir", "/nonexistent"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.contains("\nNo such file or directory\n"),
        "{}",
        ended.errors
    );
    let ended = run(&["--logfile", "/nonexistent/log"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended
            .errors
            .contains("\nCan't open the log file: No such file or directory\n"),
        "{}",
        ended.errors
    );
}

#[test]
fn a_missing_file_is_named() {
    let ended = run(&["/nonexistent/weft.conf"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.output.lines().map(message).collect::<Vec<_>>(),
        ["Fatal error, can't open config file '/nonexistent/weft.conf': No such file or directory"]
    );
}

#[test]
fn parameters_without_effect_are_listed_once() {
    let server = Server::start(&[
        "--list-compress-depth",
        "7",
        "--list-max-listpack-size",
        "3",
    ]);
    let lines: Vec<&str> = server
        .messages()
        .into_iter()
        .filter(|line| line.contains("no effect yet"))
        .collect();
    assert_eq!(lines.len(), 1, "{:?}", server.seen);
    assert!(
        lines[0].contains("list-compress-depth") && lines[0].contains("list-max-listpack-size"),
        "{}",
        lines[0]
    );
    let server = Server::start(&[]);
    assert!(
        !server
            .seen
            .iter()
            .any(|line| line.contains("no effect yet"))
    );
}

#[test]
fn the_configuration_may_come_from_standard_input() {
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let mut file = tempfile::tempfile_in(folder.path()).unwrap();
    writeln!(file, "port {port}\nmaxclients 77").unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("-").stdin(Stdio::from(file));
    let server = Server::launch(command, folder, port);
    server.connect().ask(
        "CONFIG GET maxclients",
        "*2\r\n$10\r\nmaxclients\r\n$2\r\n77\r\n",
    );
}

#[test]
fn version_and_help_are_told() {
    let version = run(&["--version"]);
    assert_eq!(version.code, Some(0));
    assert!(
        version.output.starts_with("Weft server v="),
        "{}",
        version.output
    );
    let help = run(&["--help"]);
    assert_eq!(help.code, Some(0));
    assert!(
        help.output.starts_with("Usage: ") && help.output.contains("--port 7777"),
        "{}",
        help.output
    );
}

#[test]
fn a_daemon_leaves_the_terminal_and_tells_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let [pid_file, log] = ["pid", "log"].map(|name| folder.path().join(name));
    let port = free_port();
    let status = Command::new(PROGRAM)
        .args(["--daemonize", "yes", "--port", &port.to_string(), "--dir"])
        .arg(folder.path())
        .args(["--logfile", "log", "--pidfile", "pid"])
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let deadline = Instant::now() + PATIENCE;
    let mut client = loop {
        if let Ok(client) = Client::connect(("127.0.0.1", port)) {
            break client;
        }
        assert!(
            Instant::now() < deadline,
            "{}",
            fs::read_to_string(&log).unwrap_or_default()
        );
        std::thread::yield_now();
    };
    client.ask("PING", "+PONG\r\n");
    let number = fs::read_to_string(&pid_file).unwrap();
    let id = number
        .strip_suffix('\n')
        .unwrap()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .unwrap();
    // A session of its own: no terminal can end it.
    assert_eq!(rustix::process::getsid(Some(id)).unwrap(), id);
    assert!(
        fs::read_to_string(&log)
            .unwrap()
            .contains(&format!("{}:M ", id.as_raw_nonzero()))
    );
    kill_process(id, Signal::TERM).unwrap();
    client.expect_end();
    while pid_file.exists() {
        assert!(
            Instant::now() < deadline,
            "{}",
            fs::read_to_string(&log).unwrap()
        );
        std::thread::yield_now();
    }
}

#[test]
fn few_descriptors_mean_few_clients() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 100; exec \"$0\" \"$@\"",
        PROGRAM,
        "--port",
        &port.to_string(),
    ]);
    let server = Server::launch(command, folder, port);
    let mut client = server.connect();
    if client.bulk_pair("CONFIG GET maxclients").1 == "10000" {
        // Whoever may raise his own hard limit is not stopped by it.
        assert!(server.messages().contains(
            &"Increased maximum number of open files to 10032 (it was originally set to 100)."
        ));
        return;
    }
    assert_eq!(client.bulk_pair("CONFIG GET maxclients").1, "68");
    let expected = [
        "You requested maxclients of 10000 requiring at least 10032 max file descriptors.",
        "Server can't set maximum open files to 10032 because of OS error: Operation not permitted.",
        "Current maximum open files is 100. maxclients has been reduced to 68 to compensate for low ulimit. \
         If you need higher maxclients increase 'ulimit -n'.",
    ];
    let found: Vec<&str> = server
        .messages()
        .into_iter()
        .filter(|line| expected.contains(line))
        .collect();
    assert_eq!(found, expected);
    client.ask(
        "CONFIG SET maxclients 5000",
        "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to handle the \
         specified number of clients, try with 68\r\n",
    );
}

#[test]
fn a_live_unix_socket_is_never_replaced_and_a_stale_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let options = ["--unixsocket", socket.to_str().unwrap()];
    let mut first = Server::start(&options);
    let ended = run(&["--port", "0", "--unixsocket", socket.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1));
    let last = message(ended.output.lines().last().unwrap());
    assert!(last.starts_with("Failed opening Unix socket: "), "{last}");
    Client {
        stream: UnixStream::connect(&socket).unwrap(),
    }
    .ask("PING", "+PONG\r\n");
    first.signal(Signal::KILL);
    first.wait();
    assert!(socket.exists());
    let _second = Server::start(&options);
    Client {
        stream: UnixStream::connect(&socket).unwrap(),
    }
    .ask("PING", "+PONG\r\n");
}
