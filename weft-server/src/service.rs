//! Living under a service manager, or without one: `supervised`, `daemonize`, `pidfile`.
//!
//! Owns the notification protocol of systemd, upstart's stop signal, the way into the background and the file with the
//! process id. Becoming a daemon means starting the program again: it happens before there is any thread, and a fresh
//! process has no state to repair.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpid, kill_process, setsid};
use weft_engine::config::Supervisor as Supervised;

/// Who waits to hear that the server is ready.
#[derive(Debug, PartialEq, Eq)]
pub enum Supervisor {
    /// Nobody.
    None,
    /// systemd, at this socket.
    Systemd(OsString),
    /// upstart, which waits for the process to stop itself.
    Upstart,
}

impl Supervisor {
    /// What the `supervised` parameter comes to in this environment.
    pub fn of(parameter: Supervised) -> Self {
        Self::decide(
            parameter,
            env::var_os("NOTIFY_SOCKET"),
            env::var_os("UPSTART_JOB").is_some(),
        )
    }

    /// In the word that INFO has for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "no",
            Self::Systemd(_) => "systemd",
            Self::Upstart => "upstart",
        }
    }

    fn decide(parameter: Supervised, socket: Option<OsString>, upstart_job: bool) -> Self {
        match (parameter, socket) {
            (Supervised::Systemd | Supervised::Auto, Some(socket)) => Self::Systemd(socket),
            (Supervised::Upstart | Supervised::Auto, _) if upstart_job => Self::Upstart,
            _ => Self::None,
        }
    }

    /// The environment variable for lack of which a service manager that was named is not told anything.
    pub fn missed(&self, parameter: Supervised) -> Option<&'static str> {
        match (self, parameter) {
            (Self::None, Supervised::Systemd) => Some("NOTIFY_SOCKET"),
            (Self::None, Supervised::Upstart) => Some("UPSTART_JOB"),
            _ => None,
        }
    }

    /// Clients can connect from now on.
    pub fn ready(&self) {
        match self {
            Self::None => {}
            Self::Systemd(socket) => {
                let _ = notify(socket, "STATUS=Ready to accept connections\nREADY=1\n");
            }
            // The process goes on when upstart has seen it.
            Self::Upstart => {
                let _ = kill_process(getpid(), Signal::STOP);
            }
        }
    }

    /// The server is about to end.
    pub fn stopping(&self) {
        if let Self::Systemd(socket) = self {
            let _ = notify(socket, "STATUS=Stopping\nSTOPPING=1\n");
        }
    }
}

/// A name that begins with `@` is in the abstract namespace.
fn notify(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(message.as_bytes(), &address)
        .map(drop)
}

/// Tells a process that it is the one in the background.
const BACKGROUND: &str = "WEFT_IN_BACKGROUND";

/// Whether this process is the one in the background. If so, it has now left the terminal.
pub fn in_background() -> bool {
    if env::var_os(BACKGROUND).is_none() {
        return false;
    }
    // Fails only for the leader of a process group, which a process just started is not.
    let _ = setsid();
    true
}

/// Starts the program again, with the same arguments and in the same directory, in the background. What was read from
/// standard input is handed on, for the other process will look for it there.
///
/// # Errors
/// Those of starting a process.
pub fn start_in_background(
    arguments: &[OsString],
    folder: &Path,
    input: Option<&[u8]>,
) -> io::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    if let Some((name, rest)) = arguments.split_first() {
        command.arg0(name).args(rest);
    }
    command
        .current_dir(folder)
        .env(BACKGROUND, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match input {
        None => {
            command.stdin(Stdio::null()).spawn()?;
            Ok(())
        }
        Some(input) => {
            let mut child = command.stdin(Stdio::piped()).spawn()?;
            let mut pipe = child
                .stdin
                .take()
                .expect("standard input was asked to be a pipe");
            pipe.write_all(input)
        }
    }
}

/// The file that tells others the process id; it goes when this is dropped.
#[derive(Debug)]
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn write(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        fs::write(&path, format!("{}\n", std::process::id()))?;
        Ok(Self(path))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_who_supervises() {
        let socket = || Some(OsString::from("/run/notify"));
        let systemd = || Supervisor::Systemd("/run/notify".into());
        assert_eq!(
            Supervisor::decide(Supervised::Auto, socket(), true),
            systemd()
        );
        assert_eq!(
            Supervisor::decide(Supervised::Auto, None, true),
            Supervisor::Upstart
        );
        assert_eq!(
            Supervisor::decide(Supervised::Auto, None, false),
            Supervisor::None
        );
        assert_eq!(
            Supervisor::decide(Supervised::Systemd, socket(), false),
            systemd()
        );
        assert_eq!(
            Supervisor::decide(Supervised::Systemd, None, true),
            Supervisor::None
        );
        assert_eq!(
            Supervisor::None.missed(Supervised::Systemd),
            Some("NOTIFY_SOCKET")
        );
        assert_eq!(Supervisor::None.missed(Supervised::Auto), None);
        assert_eq!(systemd().missed(Supervised::Systemd), None);
        assert_eq!(
            Supervisor::decide(Supervised::Upstart, socket(), true),
            Supervisor::Upstart
        );
        assert_eq!(
            Supervisor::decide(Supervised::No, socket(), true),
            Supervisor::None
        );
    }

    #[test]
    fn systemd_is_told_over_both_kinds_of_sockets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("weft-notify-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, address) in [
            (
                UnixDatagram::bind(&path).unwrap(),
                path.clone().into_os_string(),
            ),
            (
                UnixDatagram::bind_addr(&abstract_address).unwrap(),
                OsString::from(format!("@{name}")),
            ),
        ] {
            let supervisor = Supervisor::Systemd(address);
            supervisor.ready();
            supervisor.stopping();
            let mut buffer = [0; 200];
            let count = socket.recv(&mut buffer).unwrap();
            assert_eq!(
                &buffer[..count],
                b"STATUS=Ready to accept connections\nREADY=1\n"
            );
            let count = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"STATUS=Stopping\nSTOPPING=1\n");
        }
    }

    #[test]
    fn the_pid_file_comes_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weft.pid");
        let file = PidFile::write(&path).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            format!("{}\n", std::process::id())
        );
        drop(file);
        assert!(!path.exists());
        assert_eq!(
            PidFile::write(Path::new("/nonexistent/pid"))
                .unwrap_err()
                .kind(),
            io::ErrorKind::NotFound
        );
    }
}
