//! Command lines that people publish, under the names they publish them with: the program is called through a link.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::harness::{Client, PATIENCE, PROGRAM, Server, free_port};

/// What Debian's `/etc/redis/redis.conf` sets, in its folders below `root`.
fn stock_file(root: &Path, port: u16) -> String {
    let root = root.display();
    format!(
        "bind 127.0.0.1 -::1
protected-mode yes
port {port}
tcp-backlog 511
timeout 0
tcp-keepalive 300
daemonize yes
pidfile {root}/redis-server.pid
loglevel notice
logfile {root}/redis-server.log
databases 16
always-show-logo no
set-proc-title yes
proc-title-template \"{{title}} {{listen-addr}} {{server-mode}}\"
stop-writes-on-bgsave-error yes
rdbcompression yes
rdbchecksum yes
dbfilename dump.rdb
rdb-del-sync-files no
dir {root}
replica-serve-stale-data yes
replica-read-only yes
repl-diskless-sync yes
repl-diskless-sync-delay 5
repl-diskless-sync-max-replicas 0
repl-diskless-load disabled
repl-disable-tcp-nodelay no
replica-priority 100
acllog-max-len 128
lazyfree-lazy-eviction no
lazyfree-lazy-expire no
lazyfree-lazy-server-del no
replica-lazy-flush no
lazyfree-lazy-user-del no
lazyfree-lazy-user-flush no
oom-score-adj no
oom-score-adj-values 0 200 800
disable-thp yes
appendonly no
appendfilename \"appendonly.aof\"
appenddirname \"appendonlydir\"
appendfsync everysec
no-appendfsync-on-rewrite no
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 64mb
aof-load-truncated yes
aof-use-rdb-preamble yes
aof-timestamp-enabled no
slowlog-log-slower-than 10000
slowlog-max-len 128
latency-monitor-threshold 0
notify-keyspace-events \"\"
hash-max-listpack-entries 512
hash-max-listpack-value 64
list-max-listpack-size -2
list-compress-depth 0
set-max-intset-entries 512
zset-max-listpack-entries 128
zset-max-listpack-value 64
hll-sparse-max-bytes 3000
stream-node-max-bytes 4096
stream-node-max-entries 100
activerehashing yes
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
client-output-buffer-limit pubsub 32mb 8mb 60
hz 10
dynamic-hz yes
aof-rewrite-incremental-fsync yes
rdb-save-incremental-fsync yes
jemalloc-bg-thread yes
"
    )
}

/// A folder of links, to come first in the search path.
struct Links(TempDir);

impl Links {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["redis-server", "redis-sentinel", "redis-check-aof"] {
            symlink(PROGRAM, folder.path().join(name)).unwrap();
        }
        Self(folder)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let mut places = vec![self.0.path().to_path_buf()];
        places.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        command
            .env("PATH", std::env::join_paths(places).unwrap())
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null());
        command
    }
}

fn is_installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// Waits for a daemon on `port`, asks it something, and ends it.
fn meet_daemon(port: u16, pid_file: PathBuf, title: &str) {
    let deadline = Instant::now() + PATIENCE;
    let mut client = loop {
        if let Ok(client) = Client::connect(("127.0.0.1", port)) {
            break client;
        }
        assert!(Instant::now() < deadline, "no server came up");
        std::thread::yield_now();
    };
    client.ask("PING", "+PONG\r\n");
    let id = fs::read_to_string(&pid_file).unwrap();
    let shown = fs::read(format!("/proc/{}/cmdline", id.trim())).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    assert_eq!(shown.trim_end_matches('\0'), title);
    let id = id.trim().parse().ok().and_then(Pid::from_raw).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    client.expect_end();
    while pid_file.exists() {
        assert!(Instant::now() < deadline, "the server did not end");
        std::thread::yield_now();
    }
}

/// `taskset -c 0-3 redis-server /etc/redis/redis.conf` and `numactl -N 0 redis-server ./redis.conf`.
#[test]
fn servers_tied_to_processors_start_from_a_stock_file() {
    let lines: [(&[&str], &str); 2] = [
        (
            &["taskset", "-c", "0-3", "redis-server"],
            "{folder}/redis.conf",
        ),
        (&["numactl", "-N", "0", "redis-server"], "./redis.conf"),
    ];
    for (line, file) in lines {
        if !is_installed(line[0]) {
            println!("{} is not installed", line[0]);
            continue;
        }
        let links = Links::new();
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        fs::write(
            folder.path().join("redis.conf"),
            stock_file(folder.path(), port),
        )
        .unwrap();
        let status = links
            .command(line[0])
            .args(&line[1..])
            .arg(file.replace("{folder}", &folder.path().to_string_lossy()))
            .current_dir(folder.path())
            .status()
            .unwrap();
        assert!(status.success(), "{line:?}");
        // A title that is longer than the command line leaves that as it is.
        let title = match file {
            "./redis.conf" => "redis-server\0./redis.conf".to_owned(),
            _ => format!("redis-server 127.0.0.1:{port}"),
        };
        meet_daemon(port, folder.path().join("redis-server.pid"), &title);
        let log = fs::read_to_string(folder.path().join("redis-server.log")).unwrap();
        assert!(!log.contains("no effect yet"), "{log}");
    }
}

/// Half of one processor, computed by the shell that writes the file.
#[test]
fn io_threads_of_half_a_processor_stop_the_start_with_line_and_reason() {
    let links = Links::new();
    let folder = tempfile::tempdir().unwrap();
    let output = links
        .command("sh")
        .args([
            "-c",
            "printf 'port 0\\nio-threads %d\\n' $((1 / 2)) > redis.conf && redis-server ./redis.conf",
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = errors.lines().filter(|line| !line.is_empty()).collect();
    let file = folder.path().canonicalize().unwrap().join("redis.conf");
    assert!(
        lines[0].starts_with("*** FATAL CONFIG FILE ERROR"),
        "{errors}"
    );
    assert_eq!(
        lines[1..],
        [
            "Reading the configuration file, at line 2",
            ">>> 'io-threads 0'",
            "argument must be between 1 and 1024 inclusive",
            &format!("(file '{}', line 2)", file.display()),
        ]
    );
}

#[test]
fn links_of_other_names_say_what_they_are_not() {
    let links = Links::new();
    let version = links.command("redis-server").arg("-v").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    assert!(
        version.starts_with("Redis server v=7.2.4 sha=00000000:0 malloc=jemalloc-5."),
        "{version}"
    );
    for (name, reason) in [
        ("redis-sentinel", "redis-sentinel is not available here"),
        ("redis-check-aof", "checks no files"),
    ] {
        let ended = links.command(name).arg("/etc/any.conf").output().unwrap();
        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{name}");
        assert!(errors.contains(reason), "{name}: {errors}");
        assert!(ended.stdout.is_empty(), "{name}");
    }
}

/// The lines that call redis-cli, with another host and port.
#[test]
fn redis_cli_is_answered() {
    if !is_installed("redis-cli") {
        println!("redis-cli is not installed");
        return;
    }
    let server = Server::start(&[]);
    server.connect().ask("SET key value", "+OK\r\n");
    let port = server.port().to_string();
    let told = |words: &[&str]| {
        let output = Command::new("redis-cli")
            .args(["-h", "localhost", "-p", &port])
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        told(&["CONFIG", "SET", "io-threads-do-reads", "no"]),
        "OK\n"
    );
    let histogram = told(&["LATENCY", "HISTOGRAM", "set"]);
    assert!(
        histogram.starts_with("set\ncalls\n1\nhistogram_usec\n"),
        "{histogram}"
    );
    let threads = told(&["INFO", "threads"]);
    assert!(threads.starts_with("# Threads\r\n"), "{threads}");
    // It goes on until it is ended.
    let mut statistics = Command::new("stdbuf")
        .args(["-oL", "redis-cli", "-h", "localhost", "-p", &port, "--stat"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(statistics.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    assert!(line().starts_with("------- data ------"));
    assert!(line().starts_with("keys "));
    let figures = line();
    let figures: Vec<&str> = figures.split_whitespace().collect();
    assert_eq!(figures[0], "1", "{figures:?}");
    assert_eq!(figures.len(), 7, "{figures:?}");
    statistics.kill().unwrap();
    statistics.wait().unwrap();
}

#[test]
fn the_service_starts_as_its_unit_says() {
    let unit = include_str!("../../../packaging/weft-server.service");
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[..2], ["/usr/bin/weft-server", "/etc/weft/weft.conf"]);
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let file = folder.path().join("weft.conf");
    let sample = include_str!("../../../weft.conf");
    fs::write(&file, format!("{sample}\nport {port}\n")).unwrap();
    let path = folder.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = || {
        let mut message = [0; 512];
        let count = manager.recv(&mut message).unwrap();
        String::from_utf8(message[..count].to_vec()).unwrap()
    };
    let mut command = Command::new(PROGRAM);
    command
        .arg(&file)
        .args(&words[2..])
        .env("NOTIFY_SOCKET", &path)
        .current_dir(folder.path());
    let mut server = Server::launch(command, folder, port);
    assert_eq!(told(), "STATUS=Ready to accept connections\nREADY=1\n");
    let mut client = server.connect();
    client.ask("PING", "+PONG\r\n");
    assert_eq!(
        client.bulk_pair("CONFIG GET dir").1,
        server.folder().canonicalize().unwrap().to_string_lossy()
    );
    server.stop();
    assert_eq!(told(), "STATUS=Stopping\nSTOPPING=1\n");
}
