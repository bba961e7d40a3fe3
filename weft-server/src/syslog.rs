//! Lines to the system's log daemon, in the datagrams its socket takes: `<PRIORITY>IDENT[PID]: MESSAGE`.
//!
//! Owns the socket's place and the numbers of facilities and severities, which are those of RFC 5424. A message that
//! cannot be delivered is lost.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::log::Level;

/// Where log daemons listen.
const SOCKET: &str = "/dev/log";

/// A way to the system's log.
pub struct Syslog {
    socket: UnixDatagram,
    ident: String,
    facility: u8,
}

impl Syslog {
    /// Messages under this name and facility ("user", "local0" to "local7"; anything else counts as "local0"). None:
    /// there is no daemon to talk to.
    pub fn connect(ident: &str, facility: &str) -> Option<Self> {
        Self::connect_to(Path::new(SOCKET), ident, facility)
    }

    fn connect_to(path: &Path, ident: &str, facility: &str) -> Option<Self> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect(path).ok()?;
        // A daemon that does not read must not stop the server.
        socket.set_nonblocking(true).ok()?;
        Some(Self {
            socket,
            ident: ident.to_owned(),
            facility: facility_number(facility),
        })
    }

    /// Sends one message.
    pub fn send(&self, level: Level, message: &str) {
        let severity = match level {
            Level::Debug => 7,
            Level::Verbose => 6,
            Level::Notice => 5,
            Level::Warning | Level::Nothing => 4,
        };
        let priority = self.facility * 8 + severity;
        let datagram = format!(
            "<{priority}>{}[{}]: {message}",
            self.ident,
            std::process::id()
        );
        let _ = self.socket.send(datagram.as_bytes());
    }
}

fn facility_number(name: &str) -> u8 {
    match name.to_ascii_lowercase().as_str() {
        "user" => 1,
        name => match name
            .strip_prefix("local")
            .and_then(|digit| digit.parse::<u8>().ok())
        {
            Some(number @ 0..=7) => 16 + number,
            _ => 16,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_carries_priority_name_and_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let daemon = UnixDatagram::bind(&path).unwrap();
        let syslog = Syslog::connect_to(&path, "weft", "LOCAL3").unwrap();
        syslog.send(Level::Warning, "trouble");
        let mut buffer = [0; 100];
        let count = daemon.recv(&mut buffer).unwrap();
        let expected = format!("<{}>weft[{}]: trouble", 19 * 8 + 4, std::process::id());
        assert_eq!(buffer[..count], *expected.as_bytes());
    }

    #[test]
    fn facilities_have_their_numbers() {
        assert_eq!(
            ["user", "local0", "LOCAL7", "local8", "mail"].map(facility_number),
            [1, 16, 23, 16, 16]
        );
    }

    #[test]
    fn no_daemon_is_no_error() {
        assert!(Syslog::connect_to(Path::new("/nonexistent/log"), "weft", "user").is_none());
    }
}
