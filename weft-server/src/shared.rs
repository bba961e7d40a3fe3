//! What the server's threads have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use weft_engine::engine::Engine;

use crate::admission::Admission;
use crate::log::Log;
use crate::messages::{Mailbox, ToMain, ToWorker};
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
    /// The ways to the workers, by their numbers; at least one.
    pub workers: Vec<WorkerHandle>,
    /// The way to the main thread.
    pub main: Sender<ToMain>,
}

/// The way to a worker, and how much it has to do.
pub struct WorkerHandle {
    mailbox: Mailbox<ToWorker>,
    connections: AtomicUsize,
}

impl Shared {
    /// The worker with the fewest connections.
    pub fn least_loaded(&self) -> &WorkerHandle {
        let load = |worker: &&WorkerHandle| worker.connections.load(Ordering::Relaxed);
        self.workers
            .iter()
            .min_by_key(load)
            .expect("there is at least one worker")
    }
}

impl WorkerHandle {
    /// For the worker with this mailbox.
    pub fn new(mailbox: Mailbox<ToWorker>) -> Self {
        Self {
            mailbox,
            connections: AtomicUsize::new(0),
        }
    }

    /// Sends a connection, which counts as the worker's at once, so that a burst spreads.
    pub fn hand_over(&self, connection: ToWorker) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.mailbox.post(connection);
    }

    /// One of the worker's connections is gone.
    pub fn connection_left(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Tells it to end.
    pub fn stop(&self) {
        self.mailbox.post(ToWorker::Stop);
    }

    /// Makes it look around.
    pub fn wake(&self) {
        self.mailbox.wake();
    }
}
