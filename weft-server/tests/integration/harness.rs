//! Starts the program in a folder of its own, follows its log, and talks to it in bytes.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_weft-server");

/// A running server.
pub struct Server {
    child: Child,
    port: u16,
    folder: TempDir,
    lines: Receiver<String>,
    /// Lines of the log so far.
    pub seen: Vec<String>,
}

impl Server {
    /// A server with these options besides a port and a folder, once it takes connections.
    pub fn start(options: &[&str]) -> Server {
        Server::start_with(options, |command| command)
    }

    /// The same with a command that `prepare` has changed.
    pub fn start_with(
        options: &[&str],
        prepare: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut command = Command::new(PROGRAM);
        command
            .args(["--port", &port.to_string(), "--dir"])
            .arg(folder.path())
            .args(io_driver())
            .args(options);
        prepare(&mut command);
        Server::launch(command, folder, port)
    }

    /// Runs a command line that leads to a server on `port`, once that takes connections.
    pub fn launch(mut command: Command, folder: TempDir, port: u16) -> Server {
        command.stdout(Stdio::piped());
        if command.get_envs().all(|(name, _)| name != "NOTIFY_SOCKET") {
            command.env_remove("NOTIFY_SOCKET");
        }
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut server = Server {
            child,
            port,
            folder,
            lines,
            seen: Vec::new(),
        };
        server.wait_for_line("Ready to accept connections");
        server
    }

    /// Follows the log until a line that contains `text`, and returns that line.
    pub fn wait_for_line(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(_) => panic!("no line with {text:?} in\n{}", self.seen.join("\n")),
            }
        }
    }

    /// The messages of all lines so far, without process, time and level.
    pub fn messages(&self) -> Vec<&str> {
        self.seen.iter().map(|line| message(line)).collect()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn connect(&self) -> Client {
        Client::connect(("127.0.0.1", self.port)).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the process, with the rest of its log.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        // The pipe ends with the process.
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            self.seen.push(line);
        }
        assert!(Instant::now() < deadline, "the server did not end");
        self.child.wait().unwrap()
    }

    /// Ends it and expects it to end well.
    pub fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = self.wait();
        assert_eq!((status.code(), status.signal()), (Some(0), None));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The options that make every server of this run use the driver that the environment names.
fn io_driver() -> Vec<String> {
    match std::env::var("WEFT_TEST_IO_DRIVER") {
        Ok(driver) => vec!["--io-driver".to_owned(), driver],
        Err(_) => Vec::new(),
    }
}

/// The part of a log line behind process, time and level.
pub fn message(line: &str) -> &str {
    // "12:M 05 Mar 2026 04:06:07.089 * message"
    let mut rest = line;
    for _ in 0..6 {
        match rest.split_once(' ') {
            Some((_, after)) => rest = after,
            None => return line,
        }
    }
    rest
}

/// What a program that ended by itself left behind.
pub struct Ended {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

/// Runs the program to its end.
pub fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Ended {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ended {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A port nobody listens on, another one with every call. Below the range from which the system takes ports itself.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 20_000;
    let start = (std::process::id() % u32::from(COUNT / 16)) as u16 * 16;
    loop {
        let port = FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        if TcpListener::bind(("0.0.0.0", port)).is_ok() && TcpListener::bind(("::1", port)).is_ok()
        {
            return port;
        }
    }
}

/// A connection that speaks in bytes.
pub struct Client<S = TcpStream> {
    pub stream: S,
}

impl Client {
    pub fn connect(address: impl std::net::ToSocketAddrs) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream })
    }
}

impl<S: Read + Write> Client<S> {
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a request and expects exactly this reply.
    pub fn ask(&mut self, request: &str, reply: &str) {
        self.send(format!("{request}\r\n"));
        self.expect(reply.as_bytes());
    }

    /// Expects exactly these bytes next.
    pub fn expect(&mut self, bytes: &[u8]) {
        let mut received = vec![0; bytes.len()];
        self.stream
            .read_exact(&mut received)
            .unwrap_or_else(|error| {
                panic!(
                    "{error} instead of {:?}",
                    String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
                )
            });
        if received != bytes {
            let at = received
                .iter()
                .zip(bytes)
                .position(|(left, right)| left != right)
                .unwrap();
            let shown = |bytes: &[u8]| {
                String::from_utf8_lossy(&bytes[at.saturating_sub(20)..bytes.len().min(at + 200)])
                    .into_owned()
            };
            panic!(
                "at byte {at}: {:?} instead of {:?}",
                shown(&received),
                shown(bytes)
            );
        }
    }

    /// Reads one line.
    pub fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// Sends a request and returns the body of the bulk string that answers it.
    pub fn bulk(&mut self, request: &str) -> String {
        self.send(format!("{request}\r\n"));
        let head = self.line();
        let length: usize = head
            .trim_end()
            .strip_prefix('$')
            .expect(&head)
            .parse()
            .unwrap();
        let mut body = vec![0; length + 2];
        self.stream.read_exact(&mut body).unwrap();
        body.truncate(length);
        String::from_utf8(body).unwrap()
    }

    /// Sends a request that is answered with two bulk strings, and returns them.
    pub fn bulk_pair(&mut self, request: &str) -> (String, String) {
        self.send(format!("{request}\r\n"));
        assert_eq!(self.line(), "*2\r\n");
        let mut bulk = || {
            self.line();
            self.line().trim_end().to_owned()
        };
        (bulk(), bulk())
    }

    /// Expects the peer to close, without another byte.
    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).unwrap();
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}

/// The value of a field of INFO.
pub fn info_field(client: &mut Client, field: &str) -> String {
    let info = client.bulk("INFO");
    let value = info
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value
        .unwrap_or_else(|| panic!("no {field} in {info}"))
        .to_owned()
}
