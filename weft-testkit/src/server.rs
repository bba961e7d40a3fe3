//! A server process of a test: its own port, socket and folder; ready when it answers PING; killed on drop.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weft_client::{Address, ClientError, Connection, Reply};

use crate::error::KitError;
use crate::folder::TemporaryFolder;

/// How long a server may take until it answers.
const START_SECONDS_MAX: u64 = 20;
/// A port found free can be taken by another process before the server binds it; so many ports are tried.
const PORTS_TRIED: usize = 5;
/// What the log of such a server says.
const PORT_TAKEN: &str = "Address already in use";
/// The kit's own read timeout: longer than any command of a test runs.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A running server. Its standard output and error go to a log in its folder.
#[derive(Debug)]
pub struct Server {
    child: Child,
    program: PathBuf,
    port: u16,
    folder: TemporaryFolder,
}

impl Server {
    /// Starts `program`, redis-server's way of arguments being understood, with `arguments` after the port, the
    /// folder and the Unix socket. Saving is off.
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self, KitError> {
        Self::start_within(program, arguments, &[])
    }

    /// The same with more variables in its environment.
    pub fn start_within(
        program: &Path,
        arguments: &[String],
        environment: &[(&str, &str)],
    ) -> Result<Self, KitError> {
        let mut tries = 1;
        loop {
            match Self::start_once(program, arguments, environment) {
                Err(KitError::Server(what)) if what.contains(PORT_TAKEN) && tries < PORTS_TRIED => {
                    tries += 1
                }
                other => return other,
            }
        }
    }

    fn start_once(
        program: &Path,
        arguments: &[String],
        environment: &[(&str, &str)],
    ) -> Result<Self, KitError> {
        let folder = TemporaryFolder::new()?;
        let port = free_port()?;
        let log_path = folder.path().join("log");
        let log = File::create(&log_path).map_err(KitError::io("make the server's log"))?;
        let errors = log
            .try_clone()
            .map_err(KitError::io("share the server's log"))?;
        let child = Command::new(program)
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .arg("--dir")
            .arg(folder.path())
            .arg("--unixsocket")
            .arg(folder.path().join("socket"))
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|error| {
                KitError::Server(format!("cannot run {}: {error}", program.display()))
            })?;
        let mut server = Server {
            child,
            program: program.to_path_buf(),
            port,
            folder,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<(), KitError> {
        let deadline = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failure(&format!("ended at its start ({status})")));
            }
            if let Ok(mut connection) = self.connect() {
                match connection.command(&["PING"]) {
                    Ok(Reply::Error(text))
                        if String::from_utf8_lossy(&text).starts_with("LOADING") => {}
                    // An error such as NOAUTH is an answer too.
                    Ok(_) => return Ok(()),
                    Err(_) => {}
                }
            }
            if Instant::now() > deadline {
                return Err(self.failure("does not answer"));
            }
            // Nothing announces the listener, so it is asked for every few milliseconds.
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// A new TCP connection.
    pub fn connect(&self) -> Result<Connection, ClientError> {
        let mut connection = Connection::connect(&self.address())?;
        connection.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(connection)
    }

    /// Where it listens on TCP.
    pub fn address(&self) -> Address {
        Address::Tcp("127.0.0.1".to_owned(), self.port)
    }

    /// Where it listens on a Unix socket.
    pub fn socket(&self) -> Address {
        Address::Unix(self.folder.path().join("socket"))
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process number.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// An error that tells what happened to this server, with the end of its log.
    pub fn failure(&self, what: &str) -> KitError {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let end = lines[lines.len().saturating_sub(30)..].join("\n  ");
        KitError::Server(format!(
            "{} {what}; its log ends:\n  {end}",
            self.program.display()
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server's state is of no interest any more, so there is no orderly shutdown to wait for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> Result<u16, KitError> {
    let listener =
        TcpListener::bind(("127.0.0.1", 0)).map_err(KitError::io("look for a free port"))?;
    let address = listener
        .local_addr()
        .map_err(KitError::io("look for a free port"))?;
    Ok(address.port())
}
