//! Doors: the ways a request can take to an engine. Every case goes through every door, so a door added later
//! reruns all of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::command_table;
use crate::delivery::Delivery;
use crate::error::KitError;
use crate::probe::{Answer, Probe, Protocol};
use crate::server::Server;

/// A way to an engine.
pub trait Door {
    /// What it is called in reports.
    fn name(&self) -> String;

    /// Empties every database.
    fn reset(&mut self) -> Result<(), KitError>;

    /// The names of the commands behind the door, in lower case.
    fn commands(&mut self) -> Result<BTreeSet<String>, KitError>;

    /// A new session, in RESP2.
    fn open(&mut self) -> Result<Box<dyn DoorSession>, KitError>;

    /// Lets time pass: on a socket it really does, an engine without clocks is told.
    fn advance(&mut self, milliseconds: u64) -> Result<(), KitError>;

    /// How requests are grouped and cut on the way.
    fn delivery(&self) -> Delivery;

    /// Sets how requests are grouped and cut from now on.
    fn set_delivery(&mut self, delivery: Delivery);

    /// What is wrong behind the door after a case, beyond its replies.
    fn check(&mut self) -> Result<Option<String>, KitError> {
        Ok(None)
    }
}

/// A session behind a door.
pub trait DoorSession {
    /// Hands over bytes as one arrival.
    fn send(&mut self, bytes: &[u8]) -> Result<(), KitError>;

    /// The next answer.
    fn read(&mut self) -> Result<Answer, KitError>;
}

/// The door through a TCP socket of a server process.
#[derive(Debug)]
pub struct SocketDoor {
    server: Server,
    control: Probe,
    delivery: Delivery,
    answer_timeout: Duration,
}

/// How long a case waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

impl SocketDoor {
    /// Starts a server with the arguments that a case file asks for.
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self, KitError> {
        let server = Server::start(program, arguments)?;
        let mut control = Probe::connect(&server, Protocol::Resp2)?;
        let password = arguments
            .iter()
            .position(|argument| argument == "--requirepass");
        if let Some(password) = password.and_then(|place| arguments.get(place + 1)) {
            control.ask(&["AUTH", password])?;
        }
        Ok(SocketDoor {
            server,
            control,
            delivery: Delivery::Single,
            answer_timeout: ANSWER_TIMEOUT,
        })
    }

    /// Sets how long sessions opened from now on wait for an answer.
    pub fn set_answer_timeout(&mut self, timeout: Duration) {
        self.answer_timeout = timeout;
    }
}

impl Door for SocketDoor {
    fn name(&self) -> String {
        format!("socket, {}", self.delivery.name())
    }

    fn reset(&mut self) -> Result<(), KitError> {
        if !self.server.is_alive() {
            return Err(self.server.failure("has ended"));
        }
        let reply = self.control.ask(&["FLUSHALL"])?;
        if reply.text() == Some(b"OK") {
            Ok(())
        } else {
            Err(KitError::Unexpected(format!(
                "FLUSHALL is answered with {reply:?}"
            )))
        }
    }

    fn commands(&mut self) -> Result<BTreeSet<String>, KitError> {
        command_table::names(&self.control.ask(&["COMMAND"])?)
    }

    fn open(&mut self) -> Result<Box<dyn DoorSession>, KitError> {
        let mut probe = Probe::connect(&self.server, Protocol::Resp2)?;
        probe
            .connection()
            .set_read_timeout(Some(self.answer_timeout))?;
        Ok(Box::new(probe))
    }

    fn advance(&mut self, milliseconds: u64) -> Result<(), KitError> {
        // Time passing is what the case is about.
        std::thread::sleep(Duration::from_millis(milliseconds));
        Ok(())
    }

    fn delivery(&self) -> Delivery {
        self.delivery
    }

    fn set_delivery(&mut self, delivery: Delivery) {
        self.delivery = delivery;
    }
}

impl DoorSession for Probe {
    fn send(&mut self, bytes: &[u8]) -> Result<(), KitError> {
        self.send_bytes(bytes)
    }

    fn read(&mut self) -> Result<Answer, KitError> {
        Probe::read(self)
    }
}
