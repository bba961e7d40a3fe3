//! The workers: which there are, which are active, and who decides that.
//!
//! A worker, once started, stays; one that is not active has no connections and sleeps. The controller has no thread of
//! its own: whichever worker ends a round first asks it, so that an idle server asks nobody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use weft_engine::clients::ClientRecord;
use weft_engine::engine::WORKERS_MAX;
use weft_os::load::{IdleTime, idle_time};
use weft_reactor::Mailbox;

use crate::controller::{Controller, Move, ROUND_NS, Sample, View};
use crate::load::Published;
use crate::messages::ToWorker;

/// The way to a worker, and how much it has to do.
pub struct WorkerHandle {
    mailbox: Mailbox<ToWorker>,
    connections: AtomicUsize,
    /// What the worker has last measured.
    pub load: Published,
}

impl WorkerHandle {
    /// For the worker with this mailbox.
    pub fn new(mailbox: Mailbox<ToWorker>) -> Self {
        Self {
            mailbox,
            connections: AtomicUsize::new(0),
            load: Published::default(),
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

    /// Makes it look at the record of a client that it owns, or did a moment ago.
    pub fn attend(&self, record: Arc<ClientRecord>) {
        self.mailbox.post(ToWorker::Attend(record));
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

/// All workers.
pub struct Crew {
    /// By their numbers. Those that have been started come first.
    places: Box<[OnceLock<WorkerHandle>]>,
    started: AtomicUsize,
    active: AtomicUsize,
    control: Mutex<Control>,
}

/// What the controller needs between two decisions.
struct Control {
    controller: Controller,
    /// `io-threads`.
    cap: usize,
    /// Processors this process may use: more workers than that are only activated by force.
    processors: usize,
    forced: Option<usize>,
    next_round_ns: u64,
    /// When idle time was last read, and what it was.
    idle: Option<(u64, IdleTime)>,
}

impl Crew {
    /// No worker yet. `cap` is the most that the load may activate.
    pub fn new(cap: usize, processors: usize) -> Self {
        Self {
            places: (0..WORKERS_MAX).map(|_| OnceLock::new()).collect(),
            started: AtomicUsize::new(0),
            active: AtomicUsize::new(1),
            control: Mutex::new(Control {
                controller: Controller::default(),
                cap,
                processors,
                forced: None,
                next_round_ns: 0,
                idle: None,
            }),
        }
    }

    /// Takes in the next worker. Only the main thread starts workers.
    pub fn add(&self, handle: WorkerHandle) {
        let id = self.started();
        let added = self.places[id].set(handle).is_ok();
        assert!(added, "worker {id} is started once");
        self.started.store(id + 1, Ordering::Release);
    }

    /// How many workers have been started.
    pub fn started(&self) -> usize {
        self.started.load(Ordering::Acquire)
    }

    /// How many are active.
    pub fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Worker number `id`, which has been started.
    pub fn worker(&self, id: usize) -> &WorkerHandle {
        self.places[id].get().expect("this worker was started")
    }

    /// All workers that have been started.
    pub fn workers(&self) -> impl Iterator<Item = &WorkerHandle> {
        self.places.iter().map_while(OnceLock::get)
    }

    /// The active worker with the fewest connections.
    pub fn least_loaded(&self) -> &WorkerHandle {
        let load = |worker: &&WorkerHandle| worker.connections.load(Ordering::Relaxed);
        self.workers()
            .take(self.active())
            .min_by_key(load)
            .expect("the first worker is started before connections are accepted")
    }

    /// A new `io-threads`.
    pub fn set_cap(&self, cap: usize, now_ns: u64) {
        let mut control = self.lock();
        control.cap = cap;
        self.decide(&mut control, now_ns);
    }

    /// Exactly `count` active workers, all of them started; none: as the load wants.
    pub fn force(&self, count: Option<usize>, now_ns: u64) {
        let mut control = self.lock();
        control.forced = count;
        self.decide(&mut control, now_ns);
    }

    /// A worker has ended a round: decides, unless that was done a moment ago or is being done.
    pub fn round_ended(&self, now_ns: u64) {
        if let Ok(mut control) = self.control.try_lock()
            && now_ns >= control.next_round_ns
        {
            self.decide(&mut control, now_ns);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&self, control: &mut Control, now_ns: u64) {
        // A little less than a round: all workers end theirs at about the same time.
        control.next_round_ns = now_ns + ROUND_NS * 3 / 4;
        let samples: Vec<Sample> = self
            .workers()
            .map(|worker| {
                let connections = worker.connections.load(Ordering::Relaxed);
                worker.load.sample(now_ns, connections)
            })
            .collect();
        let mut view = View {
            workers: &samples,
            active: self.active(),
            most: control.cap.min(control.processors).min(samples.len()),
            forced: control.forced,
            idle_processors: 0.0,
        };
        if control.controller.asks_for_idle_processors(&view) {
            view.idle_processors = control.idle_processors(now_ns);
        } else {
            control.idle = None;
        }
        let decision = control.controller.decide(&view);
        if self.active.swap(decision.active, Ordering::Relaxed) != decision.active
            && let Some(first) = self.workers().next()
        {
            // The work that no connection brings is done by whoever is active: it has to look whether there is some.
            first.wake();
        }
        for Move { from, to, count } in decision.moves {
            self.worker(from).mailbox.post(ToWorker::Give { to, count });
        }
    }
}

impl Control {
    /// Processors idle on average since the last look; none at the first.
    fn idle_processors(&mut self, now_ns: u64) -> f64 {
        const TICK_NS: f64 = 1e7;
        let Some(now) = idle_time() else {
            return 0.0;
        };
        match self.idle.replace((now_ns, now)) {
            Some((then_ns, then)) if now_ns > then_ns => {
                now.ticks.saturating_sub(then.ticks) as f64 * TICK_NS / (now_ns - then_ns) as f64
            }
            _ => 0.0,
        }
    }
}
