//! The door straight into the engine: no sockets, no threads, a clock that is moved by hand.
//!
//! Behind it stands a second, empty engine: the recorded effects of every case are replayed into it, and both must then
//! hold the same data. So every case is a test of the effects too.

use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use weft_engine::action::{Host, ProcessFacts, Waste};
use weft_engine::client::Origin;
use weft_engine::clock::{Clock, ManualClock};
use weft_engine::config::{
    Change, CommandLine, Config, ConfigurationFiles, Facts, Invocation, SetError, Settings,
};
use weft_engine::digest::digest;
use weft_engine::engine::{Engine, Identity, Parts, WorkerState};
use weft_engine::journal::JournalReader;
use weft_engine::session::{Session, Verdict};
use weft_rope::Output;

use crate::delivery::Delivery;
use crate::door::{Answer, Door, DoorSession, password};
use crate::error::KitError;
use crate::literal::Base;
use crate::quoting::request_line;
use crate::wire::Wire;

/// The clock of the copy stands here, in the past, so that the copy removes nothing by itself.
const COPY_CLOCK_MS: u64 = 1_000;

/// The door into an engine in this process.
pub struct EngineDoor {
    arguments: Vec<String>,
    behind: Behind,
    delivery: Delivery,
}

impl EngineDoor {
    /// Starts an engine with the arguments of a server.
    pub fn start(arguments: &[String]) -> Result<Self, KitError> {
        Ok(EngineDoor {
            arguments: arguments.to_vec(),
            behind: Behind::start(arguments)?,
            delivery: Delivery::Single,
        })
    }
}

/// The engine and its copy.
struct Behind {
    primary: Rc<RefCell<Local>>,
    control: Box<dyn DoorSession>,
    journal: JournalReader,
    copy: Rc<RefCell<Local>>,
    copy_control: Box<dyn DoorSession>,
    copy_database: u32,
}

impl Behind {
    fn start(arguments: &[String]) -> Result<Self, KitError> {
        let primary = Local::start(arguments, Base::NowMilliseconds.value().unsigned_abs())?;
        let copy = Local::start(&[], COPY_CLOCK_MS)?;
        let journal = primary.borrow().engine.listen_to_journal(0);
        let mut control: Box<dyn DoorSession> = Box::new(LocalSession::open(&primary));
        if let Some(password) = password(arguments) {
            control.ask(&["AUTH", password])?;
        }
        let copy_control = Box::new(LocalSession::open(&copy));
        Ok(Behind {
            primary,
            control,
            journal,
            copy,
            copy_control,
            copy_database: 0,
        })
    }
}

impl Door for EngineDoor {
    fn name(&self) -> String {
        format!("engine, {}", self.delivery.name())
    }

    fn delivery(&self) -> Delivery {
        self.delivery
    }

    fn set_delivery(&mut self, delivery: Delivery) {
        self.delivery = delivery;
    }

    /// An engine in this process answers at once or never.
    fn set_answer_timeout(&mut self, _: Duration) {}

    fn open(&mut self) -> Result<Box<dyn DoorSession>, KitError> {
        Ok(Box::new(LocalSession::open(&self.behind.primary)))
    }

    fn control(&mut self) -> &mut dyn DoorSession {
        self.behind.control.as_mut()
    }

    fn advance(&mut self, milliseconds: u64) -> Result<(), KitError> {
        // What is counted from the present is compared with a server's, so this clock never falls behind the real one.
        let clock = &self.behind.primary.borrow().clock;
        let then = clock.unix_ms() + milliseconds;
        let now = Base::NowMilliseconds.value().unsigned_abs();
        clock.advance_ms(then.max(now) - clock.unix_ms());
        Ok(())
    }

    fn revive(&mut self, distrusted: bool) -> Result<(), KitError> {
        if distrusted || self.behind.primary.borrow().fallen.is_some() {
            self.behind = Behind::start(&self.arguments)?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<Option<String>, KitError> {
        let behind = &mut self.behind;
        if let Some(what) = &behind.primary.borrow().fallen {
            return Ok(Some(format!("the engine panicked: {what}")));
        }
        for effect in behind
            .journal
            .read()
            .into_iter()
            .flat_map(|record| record.effects)
        {
            if effect.database != behind.copy_database {
                behind.copy_database = effect.database;
                behind
                    .copy_control
                    .ask(&["SELECT", &effect.database.to_string()])?;
            }
            let request = effect.to_plain();
            let reply = behind.copy_control.ask(&request)?;
            if reply.is_error() {
                return Ok(Some(format!(
                    "the effect {} is answered with {reply:?}",
                    request_line(&request)
                )));
            }
        }
        let same =
            digest(&behind.primary.borrow().engine, 0) == digest(&behind.copy.borrow().engine, 0);
        Ok(
            (!same)
                .then(|| "the replayed effects make other data than the requests did".to_owned()),
        )
    }
}

/// An engine, its one worker and its clock.
struct Local {
    engine: Engine,
    worker: WorkerState,
    clock: ManualClock,
    /// What it said when it panicked; nothing is asked of it from then on.
    fallen: Option<String>,
}

impl Local {
    fn start(arguments: &[String], now_ms: u64) -> Result<Rc<RefCell<Self>>, KitError> {
        let words: Vec<Vec<u8>> = arguments
            .iter()
            .map(|word| word.clone().into_bytes())
            .collect();
        let line = match Invocation::parse(&words) {
            Invocation::Serve(line) => line,
            _ => CommandLine::default(),
        };
        let config = Config::load(&line, &mut NoFiles, Facts { usable_cpus: 1 })
            .map_err(|error| KitError::Server(error.to_string()))?;
        let engine = Engine::new(Parts {
            config,
            host: Box::new(Nowhere),
            observer: None,
            workers: 1,
            hash_seeds: [1, 2, 3, 4],
            identity: Identity {
                run_id: "0".repeat(40),
                replication_id: "1".repeat(40),
                started_ms: now_ms,
                config_file: None,
            },
        });
        let worker = WorkerState::new(&engine, 0, 7);
        Ok(Rc::new(RefCell::new(Local {
            engine,
            worker,
            clock: ManualClock::at_ms(now_ms),
            fallen: None,
        })))
    }
}

/// A session of an engine in this process, with the bytes it has answered and nobody has read.
struct LocalSession {
    local: Rc<RefCell<Local>>,
    session: Session,
    answered: Vec<u8>,
    closed: bool,
}

impl LocalSession {
    fn open(local: &Rc<RefCell<Local>>) -> Self {
        let session = {
            let engine = &local.borrow().engine;
            let origin = Origin {
                address: "127.0.0.1:1".into(),
                local_address: "127.0.0.1:2".into(),
                local: true,
            };
            Session::new(engine, engine.next_client_id(), origin)
        };
        LocalSession {
            local: Rc::clone(local),
            session,
            answered: Vec::new(),
            closed: false,
        }
    }
}

impl DoorSession for LocalSession {
    fn send(&mut self, bytes: &[u8]) -> Result<(), KitError> {
        let mut local = self.local.borrow_mut();
        let Local {
            engine,
            worker,
            clock,
            fallen,
        } = &mut *local;
        let mut rest = bytes;
        while !rest.is_empty() && !self.closed && fallen.is_none() {
            let session = &mut self.session;
            // Nothing is asked of the engine after a panic, so nothing broken can be seen.
            let step = AssertUnwindSafe(|| {
                let mut out = Output::new();
                // As a server does: a large argument that is under way is received to its place.
                let (verdict, count) = match session.receive_target() {
                    Some(target) => {
                        let count = target.len().min(rest.len());
                        target[..count].copy_from_slice(&rest[..count]);
                        (
                            session.received_direct(engine, worker, clock, count, &mut out),
                            count,
                        )
                    }
                    None => (
                        session.received(engine, worker, clock, rest, &mut out),
                        rest.len(),
                    ),
                };
                (verdict, count, out.to_vec())
            });
            match catch_unwind(step) {
                Ok((verdict, count, answered)) => {
                    rest = &rest[count..];
                    self.answered.extend(answered);
                    self.closed = verdict == Verdict::Close;
                }
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().cloned();
                    let text = text
                        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                    *fallen = Some(text.unwrap_or_else(|| "without a message".to_owned()));
                }
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Answer, KitError> {
        if let Some(what) = &self.local.borrow().fallen
            && self.answered.is_empty()
        {
            return Ok(Answer::Broken(format!("the engine panicked: {what}")));
        }
        if self.answered.is_empty() {
            return Ok(if self.closed {
                Answer::Closed
            } else {
                Answer::Nothing
            });
        }
        match Wire::scan_first(&self.answered) {
            Some((wire, length)) => {
                self.answered.drain(..length);
                Ok(Answer::Reply(wire))
            }
            None => Ok(Answer::Odd(std::mem::take(&mut self.answered))),
        }
    }

    fn finish(&mut self) -> Result<Vec<u8>, KitError> {
        if let Some(what) = &self.local.borrow().fallen {
            return Ok(format!("the engine panicked: {what}").into_bytes());
        }
        Ok(std::mem::take(&mut self.answered))
    }
}

/// Surroundings in which there is nothing.
struct Nowhere;

impl Host for Nowhere {
    fn read_file(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn replace_file(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn apply(&self, _: &[Change], _: &Settings) -> Result<(), SetError> {
        Ok(())
    }

    fn working_folder(&self) -> Option<Vec<u8>> {
        None
    }

    fn force_workers(&self, _: Option<usize>) -> Result<(), usize> {
        Err(1)
    }

    fn reap(&self, waste: Waste) {
        drop(waste);
    }

    fn process(&self) -> ProcessFacts {
        ProcessFacts::default()
    }
}

struct NoFiles;

impl ConfigurationFiles for NoFiles {
    fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Err("there are no files behind this door".to_owned())
    }

    fn expand(&mut self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read_stdin(&mut self) -> Result<Vec<u8>, String> {
        Err("there is no standard input behind this door".to_owned())
    }
}
