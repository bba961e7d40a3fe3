//! What the server's threads have in common.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use weft_engine::engine::Engine;

use crate::admission::Admission;
use crate::crew::Crew;
use crate::log::Log;
use crate::messages::ToMain;
use crate::reaper::Reaper;

/// Known to every thread.
pub struct Shared {
    /// The log.
    pub log: Arc<Log>,
    /// The engine.
    pub engine: Arc<Engine>,
    /// The way to the reaper.
    pub reaper: Reaper,
    /// Who may connect.
    pub admission: Admission,
    /// The workers.
    pub crew: Arc<Crew>,
    /// The way to the main thread.
    pub main: Sender<ToMain>,
}
