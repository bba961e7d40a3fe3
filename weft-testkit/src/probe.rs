//! One connection as the tests use it: requests and raw bytes out, replies in the kit's own form.

use weft_client::{ClientError, Connection};

use crate::error::KitError;
use crate::server::Server;
use crate::wire::{Kind, Wire, write_request};

/// The protocol a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2, which a connection speaks at first.
    Resp2,
    /// RESP3, after HELLO 3.
    Resp3,
}

impl Protocol {
    /// Both.
    pub const ALL: [Protocol; 2] = [Protocol::Resp2, Protocol::Resp3];

    /// "RESP2" or "RESP3".
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Resp2 => "RESP2",
            Protocol::Resp3 => "RESP3",
        }
    }
}

/// What a server sent where a reply was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A reply in its canonical writing.
    Reply(Wire),
    /// A reply that is not in its canonical writing; its bytes.
    Odd(Vec<u8>),
    /// Bytes that are no reply at all; nothing more can be read.
    Malformed(String),
    /// The end of the connection.
    Closed,
    /// Nothing within the read timeout.
    Nothing,
}

impl Answer {
    /// The reply, if it is one.
    pub fn reply(&self) -> Option<&Wire> {
        match self {
            Answer::Reply(wire) => Some(wire),
            _ => None,
        }
    }
}

/// A connection of a test.
#[derive(Debug)]
pub struct Probe {
    connection: Connection,
}

impl Probe {
    /// Connects over TCP and, for RESP3, switches the protocol.
    pub fn connect(server: &Server, protocol: Protocol) -> Result<Self, KitError> {
        let mut probe = Probe {
            connection: server.connect()?,
        };
        if protocol == Protocol::Resp3 {
            let reply = probe.ask(&["HELLO", "3"])?;
            if !matches!(reply, Wire::Sequence(Kind::Map, _)) {
                return Err(KitError::Unexpected(format!(
                    "HELLO 3 is answered with {reply:?}"
                )));
            }
        }
        Ok(probe)
    }

    /// Wraps a connection that stands already.
    pub fn over(connection: Connection) -> Self {
        Probe { connection }
    }

    /// The connection itself.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), KitError> {
        match self.connection.send_bytes(bytes) {
            // The server hung up while it was being written to; what it had to say can still be read.
            Err(ClientError::Io(error))
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset
                ) =>
            {
                Ok(())
            }
            other => Ok(other?),
        }
    }

    /// The next answer. A broken connection counts as closed.
    pub fn read(&mut self) -> Result<Answer, KitError> {
        match self.connection.read_raw_reply() {
            Ok(raw) => Ok(match Wire::scan(&raw.bytes) {
                Some(wire) => Answer::Reply(wire),
                None => Answer::Odd(raw.bytes),
            }),
            Err(ClientError::Closed { pending: 0 }) => Ok(Answer::Closed),
            Err(ClientError::TimedOut) => Ok(Answer::Nothing),
            Err(ClientError::Io(error)) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                Ok(Answer::Closed)
            }
            Err(ClientError::Malformed(what)) => Ok(Answer::Malformed(what)),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends one command and returns its reply, which has to come.
    pub fn ask<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<Wire, KitError> {
        let mut request = Vec::new();
        write_request(&mut request, arguments);
        self.send_bytes(&request)?;
        match self.read()? {
            Answer::Reply(wire) => Ok(wire),
            other => Err(KitError::Unexpected(format!(
                "{} is answered with {other:?}",
                crate::quoting::request_line(arguments)
            ))),
        }
    }

    /// Sends several commands at once and returns their replies.
    pub fn ask_all<A: AsRef<[u8]>>(&mut self, requests: &[Vec<A>]) -> Result<Vec<Wire>, KitError> {
        let mut replies = Vec::with_capacity(requests.len());
        for raw in self.connection.pipeline(requests)? {
            replies.push(
                Wire::scan(&raw.bytes).ok_or_else(|| {
                    KitError::Unexpected(format!("an odd reply: {:?}", raw.bytes))
                })?,
            );
        }
        Ok(replies)
    }
}
