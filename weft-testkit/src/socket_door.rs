//! The door through a TCP socket of a server process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_client::{ClientError, Connection};

use crate::delivery::Delivery;
use crate::door::{Answer, Door, DoorSession, password};
use crate::error::KitError;
use crate::server::Server;
use crate::wire::Wire;

/// How long an answer is waited for, unless another time is set.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The door through a TCP socket of a server process.
pub struct SocketDoor {
    program: PathBuf,
    arguments: Vec<String>,
    server: Server,
    control: Box<dyn DoorSession>,
    delivery: Delivery,
    answer_timeout: Duration,
}

impl SocketDoor {
    /// Starts a server.
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self, KitError> {
        let server = Server::start(program, arguments)?;
        let control = control(&server, arguments)?;
        Ok(SocketDoor {
            program: program.to_path_buf(),
            arguments: arguments.to_vec(),
            server,
            control,
            delivery: Delivery::Single,
            answer_timeout: ANSWER_TIMEOUT,
        })
    }

    /// The server behind the door.
    pub fn server(&self) -> &Server {
        &self.server
    }
}

fn control(server: &Server, arguments: &[String]) -> Result<Box<dyn DoorSession>, KitError> {
    let mut control: Box<dyn DoorSession> = Box::new(SocketSession {
        connection: server.connect()?,
    });
    if let Some(password) = password(arguments) {
        control.ask(&["AUTH", password])?;
    }
    Ok(control)
}

impl Door for SocketDoor {
    fn name(&self) -> String {
        format!("socket, {}", self.delivery.name())
    }

    fn delivery(&self) -> Delivery {
        self.delivery
    }

    fn set_delivery(&mut self, delivery: Delivery) {
        self.delivery = delivery;
    }

    fn set_answer_timeout(&mut self, timeout: Duration) {
        self.answer_timeout = timeout;
    }

    fn open(&mut self) -> Result<Box<dyn DoorSession>, KitError> {
        let mut connection = self.server.connect()?;
        connection.set_read_timeout(Some(self.answer_timeout))?;
        Ok(Box::new(SocketSession { connection }))
    }

    fn control(&mut self) -> &mut dyn DoorSession {
        self.control.as_mut()
    }

    fn advance(&mut self, milliseconds: u64) -> Result<(), KitError> {
        // Time passing is what is wanted, not a meeting with another thread.
        if milliseconds > 0 {
            std::thread::sleep(Duration::from_millis(milliseconds));
        }
        Ok(())
    }

    fn revive(&mut self, distrusted: bool) -> Result<(), KitError> {
        if distrusted || !self.server.is_alive() {
            self.server = Server::start(&self.program, &self.arguments)?;
            self.control = control(&self.server, &self.arguments)?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<Option<String>, KitError> {
        Ok((!self.server.is_alive()).then(|| self.server.failure("has ended").to_string()))
    }
}

/// A connection of a test.
struct SocketSession {
    connection: Connection,
}

impl DoorSession for SocketSession {
    fn send(&mut self, bytes: &[u8]) -> Result<(), KitError> {
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

    fn read(&mut self) -> Result<Answer, KitError> {
        match self.connection.read_raw_reply() {
            Ok(raw) => Ok(match Wire::scan(&raw.bytes) {
                Some(wire) => Answer::Reply(wire),
                None => Answer::Odd(raw.bytes),
            }),
            Err(ClientError::Closed { pending: 0 }) => Ok(Answer::Closed),
            Err(ClientError::Closed { .. }) => Ok(Answer::Broken(
                "the connection ended inside a reply".to_owned(),
            )),
            Err(ClientError::TimedOut) => Ok(Answer::Nothing),
            Err(ClientError::Malformed(what)) => Ok(Answer::Broken(what)),
            Err(ClientError::Io(error)) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                Ok(Answer::Closed)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn finish(&mut self) -> Result<Vec<u8>, KitError> {
        // The server may have hung up first.
        let _ = self.connection.finish_sending();
        match self.connection.read_to_close() {
            Err(ClientError::Io(error)) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                Ok(self.connection.take_received())
            }
            other => Ok(other?),
        }
    }
}
