//! Why a run ended before its time, named by whose fault it is.

use std::fmt;
use std::io;

use weft_resp::DecodeError;

/// Why a run ended before its time.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// A connection did not come about.
    Connect {
        /// The number of the target in the plan.
        target: usize,
        /// What the system said.
        error: io::Error,
    },
    /// The server closed a connection.
    Closed,
    /// A connection broke.
    Lost(io::Error),
    /// The server answered with this error: its text, without the type byte and the line end.
    ErrorReply(Vec<u8>),
    /// The server sent what is no reply.
    Protocol(DecodeError),
    /// The server answered what was not asked.
    Unasked,
    /// This machine: threads, descriptors, the readiness interface.
    System(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect { error, .. } => {
                write!(f, "could not connect: {}", system_text(error))
            }
            Failure::Closed => f.write_str("Server closed the connection"),
            Failure::Lost(error) | Failure::System(error) => f.write_str(&system_text(error)),
            Failure::ErrorReply(text) => f.write_str(&String::from_utf8_lossy(text)),
            Failure::Protocol(DecodeError::UnknownType(byte)) => write!(
                f,
                "Protocol error, got \"{}\" as reply type byte",
                byte.escape_ascii()
            ),
            Failure::Protocol(error) => write!(f, "Protocol error, {error}"),
            Failure::Unasked => f.write_str("Protocol error, a reply that answers nothing"),
        }
    }
}

/// What the system says about an error, without the number that `io::Error` adds.
pub fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = match text.rfind(" (os error ") {
        Some(end) => &text[..end],
        None => &text,
    };
    text.strip_prefix("failed to lookup address information: ")
        .unwrap_or(text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_systems() {
        assert_eq!(
            system_text(&io::Error::from_raw_os_error(111)),
            "Connection refused"
        );
        assert_eq!(
            Failure::Protocol(DecodeError::UnknownType(b'h')).to_string(),
            "Protocol error, got \"h\" as reply type byte"
        );
    }
}
