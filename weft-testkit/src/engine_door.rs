//! The door straight into the engine: no sockets, no threads, a clock that is moved by hand.
//!
//! Behind it stands a second, empty engine: the recorded effects of every case are replayed into it, and both must then
//! hold the same data. So every case is a test of the effects too.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::rc::Rc;

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

use crate::command_table;
use crate::delivery::Delivery;
use crate::door::{Door, DoorSession};
use crate::error::KitError;
use crate::literal::Base;
use crate::probe::Answer;
use crate::quoting::request_line;
use crate::wire::{Wire, write_request};

/// The clock of the copy stands here, in the past, so that the copy removes nothing by itself.
const COPY_CLOCK_MS: u64 = 1_000;

/// The door into an engine in this process.
pub struct EngineDoor {
    primary: Rc<RefCell<Local>>,
    control: LocalSession,
    journal: JournalReader,
    copy: Rc<RefCell<Local>>,
    copy_control: LocalSession,
    copy_database: u32,
    delivery: Delivery,
}

impl EngineDoor {
    /// Starts an engine with the arguments that a case file asks for.
    pub fn start(arguments: &[String]) -> Result<Self, KitError> {
        let primary = Local::start(arguments, Base::NowMilliseconds.value().unsigned_abs())?;
        let copy = Local::start(&[], COPY_CLOCK_MS)?;
        let journal = primary.borrow().engine.listen_to_journal(0);
        let mut control = LocalSession::open(&primary);
        let password = arguments
            .iter()
            .position(|argument| argument == "--requirepass");
        if let Some(password) = password.and_then(|place| arguments.get(place + 1)) {
            ask(&mut control, &["AUTH", password])?;
        }
        let copy_control = LocalSession::open(&copy);
        Ok(EngineDoor {
            primary,
            control,
            journal,
            copy,
            copy_control,
            copy_database: 0,
            delivery: Delivery::Single,
        })
    }
}

impl Door for EngineDoor {
    fn name(&self) -> String {
        format!("engine, {}", self.delivery.name())
    }

    fn reset(&mut self) -> Result<(), KitError> {
        {
            let primary = self.primary.borrow();
            let behind = Base::NowMilliseconds
                .value()
                .unsigned_abs()
                .saturating_sub(primary.clock.unix_ms());
            primary.clock.advance_ms(behind);
        }
        let reply = ask(&mut self.control, &["FLUSHALL"])?;
        if reply.text() == Some(b"OK") {
            Ok(())
        } else {
            Err(KitError::Unexpected(format!(
                "FLUSHALL is answered with {reply:?}"
            )))
        }
    }

    fn commands(&mut self) -> Result<BTreeSet<String>, KitError> {
        command_table::names(&ask(&mut self.control, &["COMMAND"])?)
    }

    fn open(&mut self) -> Result<Box<dyn DoorSession>, KitError> {
        Ok(Box::new(LocalSession::open(&self.primary)))
    }

    fn advance(&mut self, milliseconds: u64) -> Result<(), KitError> {
        self.primary.borrow().clock.advance_ms(milliseconds);
        Ok(())
    }

    fn delivery(&self) -> Delivery {
        self.delivery
    }

    fn set_delivery(&mut self, delivery: Delivery) {
        self.delivery = delivery;
    }

    fn check(&mut self) -> Result<Option<String>, KitError> {
        for effect in self
            .journal
            .read()
            .into_iter()
            .flat_map(|record| record.effects)
        {
            if effect.database != self.copy_database {
                self.copy_database = effect.database;
                ask(
                    &mut self.copy_control,
                    &["SELECT", &effect.database.to_string()],
                )?;
            }
            let request = effect.to_plain();
            let reply = ask(&mut self.copy_control, &request)?;
            if reply.is_error() {
                return Ok(Some(format!(
                    "the effect {} is answered with {reply:?}",
                    request_line(&request)
                )));
            }
        }
        let same =
            digest(&self.primary.borrow().engine, 0) == digest(&self.copy.borrow().engine, 0);
        Ok(
            (!same)
                .then(|| "the replayed effects make other data than the requests did".to_owned()),
        )
    }
}

fn ask<A: AsRef<[u8]>>(session: &mut LocalSession, arguments: &[A]) -> Result<Wire, KitError> {
    let mut request = Vec::new();
    write_request(&mut request, arguments);
    session.send(&request)?;
    match session.read()? {
        Answer::Reply(wire) => Ok(wire),
        other => Err(KitError::Unexpected(format!(
            "{} is answered with {other:?}",
            request_line(arguments)
        ))),
    }
}

/// An engine, its one worker and its clock.
struct Local {
    engine: Engine,
    worker: WorkerState,
    clock: ManualClock,
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
                started_ms: now_ms,
                config_file: None,
            },
        });
        let worker = WorkerState::new(&engine, 0, 7);
        Ok(Rc::new(RefCell::new(Local {
            engine,
            worker,
            clock: ManualClock::at_ms(now_ms),
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
        } = &mut *local;
        let mut rest = bytes;
        while !rest.is_empty() && !self.closed {
            let mut out = Output::new();
            // As a server does: a large argument that is under way is received to its place.
            let verdict = match self.session.receive_target() {
                Some(target) => {
                    let count = target.len().min(rest.len());
                    let (now, later) = rest.split_at(count);
                    target[..count].copy_from_slice(now);
                    rest = later;
                    self.session
                        .received_direct(engine, worker, clock, count, &mut out)
                }
                None => {
                    let now = std::mem::take(&mut rest);
                    self.session.received(engine, worker, clock, now, &mut out)
                }
            };
            self.answered.extend(out.to_vec());
            self.closed = verdict == Verdict::Close;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Answer, KitError> {
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
