//! Which engines a task is about: the reference, the server under test, the engine in this process.

use std::path::PathBuf;

use weft_testkit::differential::Pair;
use weft_testkit::door::Door;
use weft_testkit::engine_door::EngineDoor;
use weft_testkit::error::KitError;
use weft_testkit::oracle::Oracles;
use weft_testkit::socket_door::SocketDoor;

use crate::arguments::Arguments;

/// The reference if none is named.
const REFERENCE: &str = "redis8";

/// Which engines a task is about.
pub(crate) struct Contest {
    reference: String,
    subject_name: Option<String>,
    /// The server under test; `None`: the engine in this process alone.
    pub(crate) subject: Option<PathBuf>,
    /// Whether the engine in this process is under test, beside the server or alone.
    engine: bool,
    /// Arguments of the server under test.
    pub(crate) arguments: Vec<String>,
}

impl Contest {
    pub(crate) fn of(arguments: &Arguments) -> Result<Self, KitError> {
        let (socket, engine) = match arguments.one("door") {
            // The engine in this process is the product's: it stands beside its server, not beside another one.
            None => (true, arguments.one("subject").is_none()),
            Some("socket") => (true, false),
            Some("engine") => (false, true),
            Some(other) => return Err(KitError::syntax("--door", 0, format!("unknown: {other}"))),
        };
        let subject_name = arguments.one("subject").map(str::to_owned);
        let subject = match &subject_name {
            _ if !socket => None,
            Some(name) => Some(resolve(name)?),
            None => {
                let here = std::env::current_exe().map_err(KitError::io("find this program"))?;
                Some(here.with_file_name("weft-server"))
            }
        };
        Ok(Contest {
            reference: arguments.one("reference").unwrap_or(REFERENCE).to_owned(),
            subject_name,
            subject,
            engine,
            arguments: arguments.all("subject-arg").to_vec(),
        })
    }

    /// The reference's program, fetched if need be.
    pub(crate) fn reference(&self) -> Result<PathBuf, KitError> {
        resolve(&self.reference)
    }

    /// Whether the server under test is the reference itself, to check what is written about it.
    pub(crate) fn is_reference_alone(&self) -> bool {
        self.subject_name.as_deref() == Some(REFERENCE)
    }

    /// The doors to the engine under test, each with an engine of its own; `more` are arguments for it.
    pub(crate) fn doors(&self, more: &[String]) -> Result<Vec<Box<dyn Door>>, KitError> {
        let mut arguments = more.to_vec();
        arguments.extend_from_slice(&self.arguments);
        let mut doors: Vec<Box<dyn Door>> = Vec::new();
        if let Some(subject) = &self.subject {
            doors.push(Box::new(SocketDoor::start(subject, &arguments)?));
        }
        if self.engine {
            doors.push(Box::new(EngineDoor::start(&arguments)?));
        }
        Ok(doors)
    }

    /// The reference against each door.
    pub(crate) fn pairs(&self) -> Result<Vec<Pair>, KitError> {
        let reference = self.reference()?;
        let pair = |subject| {
            Ok(Pair::new(
                Box::new(SocketDoor::start(&reference, &[])?),
                subject,
            ))
        };
        self.doors(&[])?.into_iter().map(pair).collect()
    }
}

fn resolve(name: &str) -> Result<PathBuf, KitError> {
    let oracles = match name {
        "redis8" | "redis70" => Oracles::obtain(),
        path => return Ok(PathBuf::from(path)),
    };
    let found = if name == "redis8" {
        oracles.reference
    } else {
        oracles.redis70
    };
    found.ok_or_else(|| KitError::Missing(oracles.missing.join("; ")))
}
