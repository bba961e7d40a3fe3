//! What of DEBUG only a whole server can show: that it sleeps, crashes and starts anew, and who may ask for it.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{PROGRAM, Server, free_port};

const ALLOWED: &[&str] = &["--enable-debug-command", "local"];

#[test]
fn debug_sleep_stops_every_worker() {
    const SLEEP: Duration = Duration::from_millis(500);
    let server = Server::start(&["--enable-debug-command", "yes", "--io-threads", "2"]);
    let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    clients[0].ask("DEBUG WORKERS 2", "+OK\r\n");
    clients
        .iter_mut()
        .for_each(|client| client.ask("GET k", "$-1\r\n"));
    let mut sleeper = server.connect();
    let over = AtomicBool::new(false);
    let longest: Vec<Duration> = thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                let over = &over;
                scope.spawn(move || {
                    let mut longest = Duration::ZERO;
                    while !over.load(Ordering::Relaxed) {
                        let asked = Instant::now();
                        client.ask("GET k", "$-1\r\n");
                        longest = longest.max(asked.elapsed());
                    }
                    longest
                })
            })
            .collect();
        let begin = Instant::now();
        sleeper.ask(&format!("DEBUG SLEEP {}", SLEEP.as_secs_f64()), "+OK\r\n");
        assert!(begin.elapsed() >= SLEEP);
        over.store(true, Ordering::Relaxed);
        let join = |thread: thread::ScopedJoinHandle<'_, Duration>| thread.join().unwrap();
        threads.into_iter().map(join).collect()
    });
    // Whatever worker they are on, all of them wait for the end. On a busy machine one may have asked a little late.
    assert!(
        longest.iter().all(|longest| *longest >= SLEEP / 2),
        "{longest:?}"
    );
}

/// The server that was asked to crash in this way, and the signal that ended it.
fn crash(way: &str) -> (Server, Option<i32>) {
    let mut server = Server::start_with(ALLOWED, |command| command.stderr(Stdio::null()));
    let mut client = server.connect();
    client.send(format!("DEBUG {way}\r\n"));
    client.expect_end();
    let signal = server.wait().signal();
    (server, signal)
}

#[test]
fn a_crash_ends_the_process_by_its_signal_and_the_log_says_why() {
    for (way, signal, line) in [
        (
            "SEGFAULT",
            Signal::SEGV,
            " crashed by signal: 11, sent to itself for DEBUG SEGFAULT",
        ),
        (
            "OOM",
            Signal::ABORT,
            "Out Of Memory allocating 9223372036854775807 bytes!",
        ),
        ("PANIC", Signal::ABORT, "DEBUG PANIC called"),
        (
            "ASSERT",
            Signal::ABORT,
            "=== ASSERTION FAILED === DEBUG ASSERT called, which never holds",
        ),
    ] {
        let (server, ended_by) = crash(way);
        assert_eq!(ended_by, Some(signal.as_raw()), "{way}");
        let log = server.seen.join("\n");
        assert!(log.contains(line), "{way}: {log}");
    }
}

#[test]
fn a_panic_leaves_its_backtrace_in_the_log() {
    let (server, _) = crash("PANIC");
    let log = server.seen.join("\n");
    assert!(
        log.contains("# Thread weft-worker-0: panicked at "),
        "{log}"
    );
    assert!(log.contains("weft_engine::commands::debug"), "{log}");
}

#[test]
fn a_restart_is_the_same_process_with_its_parameters_written() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let file = folder.path().join("weft.conf");
    let text = format!("port {port}\nenable-debug-command yes\nmaxclients 100\n");
    fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("weft.conf").current_dir(folder.path());
    let mut server = Server::launch(command, folder, port);
    let id = server.id();
    let mut client = server.connect();
    client.ask("CONFIG SET maxclients 90", "+OK\r\n");
    // Relative paths are those of the folder that it was started in.
    client.ask("CONFIG SET enable-debug-command no", "-ERR CONFIG SET failed (possibly related to argument 'enable-debug-command') - can't set immutable config\r\n");
    client.ask("SET key value", "+OK\r\n");
    client.send("DEBUG RESTART 10\r\n");
    client.expect_end();
    server.wait_for_line("bye bye");
    server.wait_for_line("Ready to accept connections");
    assert_eq!(server.id(), id);
    let mut client = server.connect();
    client.ask("GET key", "$-1\r\n");
    assert_eq!(
        client.bulk_pair("CONFIG GET maxclients"),
        ("maxclients".to_owned(), "90".to_owned())
    );
    server.stop();
}

#[test]
fn a_crash_with_recovery_puts_nothing_in_order() {
    let mut server = Server::start(ALLOWED);
    let mut client = server.connect();
    client.send("DEBUG CRASH-AND-RECOVER\r\n");
    client.expect_end();
    server.wait_for_line("Ready to accept connections");
    let ends = |line: &String| line.contains("bye bye");
    assert!(!server.seen.iter().any(ends));
    server.connect().ask("PING", "+PONG\r\n");
    server.stop();
}

#[test]
fn what_was_read_from_standard_input_cannot_be_read_again() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut command = Command::new(PROGRAM);
    let (input, mut feed) = std::io::pipe().unwrap();
    command.arg("-").stdin(input).current_dir(folder.path());
    write!(feed, "port {port}\nenable-debug-command yes\n").unwrap();
    drop(feed);
    let mut server = Server::launch(command, folder, port);
    let mut client = server.connect();
    for way in ["RESTART", "CRASH-AND-RECOVER"] {
        client.ask(
            &format!("DEBUG {way}"),
            "-ERR failed to restart the server. Check server logs.\r\n",
        );
        server.wait_for_line("Can't restart: the configuration came from standard input");
    }
    server.stop();
}

#[test]
fn without_permission_debug_is_refused() {
    let server = Server::start(&[]);
    server.connect().ask(
        "DEBUG SEGFAULT",
        "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
         local connection, otherwise you need to set this option in the configuration file, and then restart the \
         server.\r\n",
    );
}

#[test]
fn overdue_keys_stay_while_housekeeping_is_paused() {
    let server = Server::start(&["--enable-debug-command", "yes", "--hz", "500"]);
    let mut client = server.connect();
    client.ask("DEBUG PAUSE-CRON 1", "+OK\r\n");
    client.ask("SET k v PX 1", "+OK\r\n");
    client.ask("DEBUG SLEEP 0.05", "+OK\r\n");
    client.ask("DBSIZE", ":1\r\n");
    client.ask("DEBUG PAUSE-CRON 0", "+OK\r\n");
    let deadline = Instant::now() + crate::harness::PATIENCE;
    loop {
        client.send("DBSIZE\r\n");
        if client.line() == ":0\r\n" {
            break;
        }
        assert!(Instant::now() < deadline);
    }
}
