//! Doors: the ways a request can take to an engine. Every case and every random run goes through every door, so a
//! door added later reruns all of them.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::command_table;
use crate::delivery::Delivery;
use crate::error::KitError;
use crate::quoting::request_line;
use crate::wire::{Kind, Wire, write_request};

/// The protocol a session speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2, which a session speaks at first.
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

/// What came where a reply was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A reply in its canonical writing.
    Reply(Wire),
    /// A reply that is not in its canonical writing; its bytes.
    Odd(Vec<u8>),
    /// Bytes that are no reply at all, or an engine that fell over; nothing more can be read.
    Broken(String),
    /// The end of the connection.
    Closed,
    /// Nothing within the time allowed.
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

/// A way to an engine.
pub trait Door {
    /// What it is called in reports.
    fn name(&self) -> String;

    /// How requests are grouped and cut on the way.
    fn delivery(&self) -> Delivery;

    /// Sets how requests are grouped and cut from now on.
    fn set_delivery(&mut self, delivery: Delivery);

    /// Sets how long sessions opened from now on wait for an answer.
    fn set_answer_timeout(&mut self, timeout: Duration);

    /// A new session, in RESP2.
    fn open(&mut self) -> Result<Box<dyn DoorSession>, KitError>;

    /// The session of the kit itself, logged in and in database 0.
    fn control(&mut self) -> &mut dyn DoorSession;

    /// Lets time pass, at least so much: on a socket it really does, an engine without clocks is told.
    fn advance(&mut self, milliseconds: u64) -> Result<(), KitError>;

    /// Begins anew with another engine if this one has ended, or if `distrusted`: it may hang.
    fn revive(&mut self, distrusted: bool) -> Result<(), KitError>;

    /// What is wrong behind the door, beyond what it answers.
    fn check(&mut self) -> Result<Option<String>, KitError>;

    /// Empties every database.
    fn reset(&mut self) -> Result<(), KitError> {
        let reply = self.control().ask(&["FLUSHALL"])?;
        if reply.text() == Some(b"OK") {
            Ok(())
        } else {
            Err(KitError::Unexpected(format!(
                "FLUSHALL is answered with {reply:?}"
            )))
        }
    }

    /// The names of the commands behind the door, in lower case.
    fn commands(&mut self) -> Result<BTreeSet<String>, KitError> {
        command_table::names(&self.control().ask(&["COMMAND"])?)
    }

    /// A new session in a protocol. Where a password is wanted the switch is refused, and the session is as it was.
    fn connect(&mut self, protocol: Protocol) -> Result<Box<dyn DoorSession>, KitError> {
        let mut session = self.open()?;
        if protocol == Protocol::Resp3 {
            match session.ask(&["HELLO", "3"])? {
                Wire::Sequence(Kind::Map, _) | Wire::Error(_) => {}
                other => {
                    return Err(KitError::Unexpected(format!(
                        "HELLO 3 is answered with {other:?}"
                    )));
                }
            }
        }
        Ok(session)
    }
}

/// A session behind a door.
pub trait DoorSession {
    /// Hands over bytes as one arrival.
    fn send(&mut self, bytes: &[u8]) -> Result<(), KitError>;

    /// The next answer.
    fn read(&mut self) -> Result<Answer, KitError>;

    /// Says that nothing more will be sent, and returns all bytes that still come until the other side ends too.
    fn finish(&mut self) -> Result<Vec<u8>, KitError>;
}

impl dyn DoorSession + '_ {
    /// Sends one command and returns its reply, which has to come.
    pub fn ask<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<Wire, KitError> {
        let mut request = Vec::new();
        write_request(&mut request, arguments);
        self.send(&request)?;
        match self.read()? {
            Answer::Reply(wire) => Ok(wire),
            other => Err(KitError::Unexpected(format!(
                "{} is answered with {other:?}",
                request_line(arguments)
            ))),
        }
    }
}

/// The password in a server's arguments, with which the kit logs in.
pub(crate) fn password(arguments: &[String]) -> Option<&String> {
    let place = arguments
        .iter()
        .position(|argument| argument == "--requirepass")?;
    arguments.get(place + 1)
}
