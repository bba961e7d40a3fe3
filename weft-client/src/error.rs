//! What can go wrong between a client and its server, named by whose fault it is.

use std::fmt;
use std::io;

/// Why a request or a reply did not get through. An error *reply* of the server is not one of these: it arrives as
/// a [`crate::Reply`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The operating system refused: no listener, no route, connection reset.
    Io(io::Error),
    /// The read timeout passed before the reply was complete. The connection is still in order: the rest of the
    /// reply can be read later.
    TimedOut,
    /// The server closed the connection; `pending` bytes of an unfinished reply had arrived.
    Closed {
        /// Bytes received after the last whole reply.
        pending: usize,
    },
    /// The server sent bytes which are no RESP reply.
    Malformed(String),
    /// The server sent a reply greater than the connection's limit, in bytes.
    TooLarge(usize),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Io(error) => write!(f, "{error}"),
            ClientError::TimedOut => write!(f, "no reply within the read timeout"),
            ClientError::Closed { pending: 0 } => write!(f, "the server closed the connection"),
            ClientError::Closed { pending } => {
                write!(
                    f,
                    "the server closed the connection inside a reply ({pending} bytes had arrived)"
                )
            }
            ClientError::Malformed(what) => write!(f, "the server's reply is not RESP: {what}"),
            ClientError::TooLarge(limit) => {
                write!(f, "the server's reply is greater than {limit} bytes")
            }
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A socket timeout is reported as either, depending on the platform.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::TimedOut,
            _ => ClientError::Io(error),
        }
    }
}
