//! A running server: its start, until it answers; its end, by its id.
//!
//! Owns the child, its port, its folder and what it printed. A port found free can be taken before the server binds it, so
//! a start that fails for that reason is tried again. Invariant: whoever drops a [`Process`] ends the server.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use weft_client::{Address, Connection, Reply};

use super::command_line::CommandLine;
use super::info::Facts;
use super::launcher::{ANYWHERE, LAUNCHER};
use super::usage::{self, Usage};

/// How long a server may take until it answers.
const START_MAX: Duration = Duration::from_secs(30);

/// How long a server that was asked to end may take before it is killed.
const END_MAX: Duration = Duration::from_secs(5);

/// How often it is looked whether it has.
const POLLED_EVERY: Duration = Duration::from_millis(2);

/// The longest answer to PING, INFO and the like takes less than this, whatever the server has to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// So many ports are tried.
const PORTS_TRIED: usize = 5;

/// What a server says whose port is taken.
const PORT_TAKEN: &str = "ddress already in use";

/// So much of what a server printed is shown when it does not start.
const SHOWN_BYTES: usize = 4096;

/// What to start.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The command line.
    pub command: &'a CommandLine,
    /// What stands for `{threads}`.
    pub threads: &'a str,
    /// The processors it may use, as taskset writes them.
    pub processors: Option<&'a str>,
}

/// A running server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// The server itself, if the child is a wrapper that started it, with its start time, which tells it from a later
    /// process of the same number.
    inner: Option<(u32, u64)>,
    port: u16,
    folder: TempDir,
    facts: Facts,
}

impl Process {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// Why it did not, with the end of what it printed.
    pub fn start(launch: &Launch<'_>) -> Result<Process, String> {
        let mut tries = 1;
        loop {
            match Process::start_once(launch) {
                Err(why) if why.contains(PORT_TAKEN) && tries < PORTS_TRIED => tries += 1,
                other => return other,
            }
        }
    }

    fn start_once(launch: &Launch<'_>) -> Result<Process, String> {
        let system = |error: std::io::Error| format!("cannot prepare a server's start: {error}");
        let folder = tempfile::Builder::new()
            .prefix("weft-bench-")
            .tempdir()
            .map_err(system)?;
        let port = free_port().map_err(system)?;
        let output = File::create(folder.path().join(OUTPUT)).map_err(system)?;
        let words = launch.command.filled(launch.threads, port, folder.path());
        // Through the file itself: the program's path may have been replaced by a newer one since it started.
        let child = Command::new("/proc/self/exe")
            .arg(LAUNCHER)
            .arg(std::process::id().to_string())
            .arg(launch.processors.unwrap_or(ANYWHERE))
            .args(words)
            .current_dir(folder.path())
            // The terminal's interrupt is for this program, which ends the server when it has its figures.
            .process_group(0)
            .stdin(Stdio::null())
            .stderr(output.try_clone().map_err(system)?)
            .stdout(output)
            .spawn()
            .map_err(system)?;
        let mut process = Process {
            child,
            inner: None,
            port,
            folder,
            facts: Facts::default(),
        };
        process.wait_until_ready()?;
        process.facts = Facts::ask(&mut process.connect()?)?;
        process.inner = process.behind_a_wrapper();
        Ok(process)
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's id, also when a wrapper started it.
    pub fn id(&self) -> u32 {
        self.inner.map_or(self.child.id(), |(id, _)| id)
    }

    /// What it said about itself when it had started.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What its threads have used so far.
    ///
    /// # Errors
    /// As the operating system says; usually that the server has gone.
    pub fn usage(&self) -> Result<Usage, String> {
        Usage::of(self.id()).map_err(|error| self.failure(&format!("cannot be watched: {error}")))
    }

    /// A connection.
    ///
    /// # Errors
    /// That it cannot be reached.
    pub fn connect(&self) -> Result<Connection, String> {
        self.try_connect()
            .ok_or_else(|| self.failure("does not accept a connection"))
    }

    /// Ends it: asks it to, without saving, and kills it if it does not.
    pub fn stop(mut self) {
        if let Some(mut connection) = self.try_connect() {
            // The answer is the end of the connection.
            let _ = connection.command(&["SHUTDOWN", "NOSAVE"]);
        }
        let deadline = Instant::now() + END_MAX;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(POLLED_EVERY);
        }
    }

    fn try_connect(&self) -> Option<Connection> {
        let address = Address::Tcp("127.0.0.1".to_owned(), self.port);
        let mut connection = Connection::connect(&address).ok()?;
        connection.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(connection)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_MAX;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failure(&format!("ended at its start ({status})")));
            }
            if let Some(mut connection) = self.try_connect() {
                match connection.command(&["PING"]) {
                    Ok(Reply::Error(text)) if text.starts_with(b"LOADING") => {}
                    // An error such as NOAUTH is an answer too.
                    Ok(_) => return Ok(()),
                    Err(_) => {}
                }
            }
            if Instant::now() > deadline {
                return Err(self.failure("does not answer"));
            }
            // Nothing announces the listener.
            std::thread::sleep(POLLED_EVERY);
        }
    }

    /// The server that a child of ours started, if it is not the child.
    fn behind_a_wrapper(&self) -> Option<(u32, u64)> {
        let id = self.facts.process?;
        let child = self.child.id();
        (id != child && usage::descends_from(id, child))
            .then(|| usage::start_time(id).map(|time| (id, time)))?
    }

    /// What happened, with the end of what the server printed.
    fn failure(&self, what: &str) -> String {
        let printed = fs::read(self.folder.path().join(OUTPUT)).unwrap_or_default();
        let end = &printed[printed.len().saturating_sub(SHOWN_BYTES)..];
        let text = String::from_utf8_lossy(end);
        match text.trim() {
            "" => format!("the server {what} and has printed nothing"),
            text => format!("the server {what}; it printed:\n{text}"),
        }
    }
}

/// What the server prints goes here, in its folder.
const OUTPUT: &str = "output";

impl Drop for Process {
    fn drop(&mut self) {
        if let Some((id, time)) = self.inner
            && usage::start_time(id) == Some(time)
            && let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw)
        {
            // Gone already is as good.
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
