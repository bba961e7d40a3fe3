//! An engine without sockets, files or a clock of its own.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "shared by tests that use different parts"
)]

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weft_engine::action::{Host, ProcessFacts, Waste};
use weft_engine::client::Origin;
use weft_engine::clock::{Clock, ManualClock};
use weft_engine::config::{
    Change, Config, ConfigurationFiles, Facts, Invocation, SetError, Settings,
};
use weft_engine::dispatch::Change as KeyChange;
use weft_engine::engine::{Engine, Identity, Observer, Parts, WorkerState};
use weft_engine::session::{Session, Verdict};
use weft_rope::Output;

/// When every test begins, in milliseconds since 1970.
pub const START_MS: u64 = 1_700_000_000_000;

/// Time passes for those who sleep.
struct Nowhere(Arc<ManualClock>);

struct NoFiles;

impl ConfigurationFiles for NoFiles {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("no file {path}"))
    }

    fn expand(&mut self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read_stdin(&mut self) -> Result<Vec<u8>, String> {
        Err("no standard input".to_owned())
    }
}

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

    fn sleep(&self, duration: Duration) {
        self.0.advance_us(duration.as_micros() as u64);
    }

    fn process(&self) -> ProcessFacts {
        ProcessFacts::default()
    }
}

/// Keeps the changes that the engine tells of.
#[derive(Clone, Default)]
pub struct Changes(Arc<Mutex<Vec<KeyChange>>>);

impl Changes {
    /// Takes what was told since the last call.
    pub fn take(&self) -> Vec<KeyChange> {
        std::mem::take(&mut self.0.lock().expect("no test panics while holding it"))
    }
}

impl Observer for Changes {
    fn changed(&self, changes: &[KeyChange]) {
        self.0
            .lock()
            .expect("no test panics while holding it")
            .extend_from_slice(changes);
    }
}

/// An engine for so many workers.
pub fn engine(config: Config, workers: usize, observer: Option<Box<dyn Observer>>) -> Engine {
    engine_at(config, workers, observer, &Arc::default())
}

/// The same; sleeping moves this clock.
fn engine_at(
    config: Config,
    workers: usize,
    observer: Option<Box<dyn Observer>>,
    clock: &Arc<ManualClock>,
) -> Engine {
    Engine::new(Parts {
        config,
        host: Box::new(Nowhere(Arc::clone(clock))),
        observer,
        workers,
        hash_seeds: [1, 2, 3, 4],
        identity: Identity {
            run_id: "0".repeat(40),
            replication_id: "1".repeat(40),
            started_ms: START_MS,
            config_file: None,
        },
    })
}

/// A new connection's session.
pub fn session(engine: &Engine, id: u64) -> Session {
    let origin = Origin {
        address: "127.0.0.1:1".into(),
        local_address: "127.0.0.1:2".into(),
        local: true,
    };
    Session::new(engine, id, origin)
}

/// An engine, one worker and one client.
pub struct Local {
    pub engine: Engine,
    pub worker: WorkerState,
    pub clock: Arc<ManualClock>,
    pub changes: Changes,
    session: Session,
    out: Output,
}

impl Local {
    /// A fresh engine with the default configuration.
    pub fn new() -> Self {
        Self::with(Config::new(Facts { usable_cpus: 1 }))
    }

    /// A fresh engine started with these command-line arguments.
    pub fn with_arguments(arguments: &[&str]) -> Self {
        let arguments: Vec<Vec<u8>> = arguments
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect();
        let Invocation::Serve(line) = Invocation::parse(&arguments) else {
            panic!("not a start: {arguments:?}")
        };
        let config = Config::load(&line, &mut NoFiles, Facts { usable_cpus: 1 });
        Self::with(config.unwrap_or_else(|error| panic!("{error}")))
    }

    fn with(config: Config) -> Self {
        let changes = Changes::default();
        let clock = Arc::new(ManualClock::at_ms(START_MS));
        let engine = engine_at(config, 1, Some(Box::new(changes.clone())), &clock);
        let worker = WorkerState::new(&engine, 0, 7);
        let session = session(&engine, 1);
        Self {
            worker,
            clock,
            changes,
            session,
            engine,
            out: Output::new(),
        }
    }

    /// Tells the session how many bytes of replies its client has not taken.
    pub fn set_unsent(&mut self, bytes: usize) {
        self.session.set_unsent(bytes);
    }

    /// Sends bytes; what was replied is in [`replies`](Self::replies).
    pub fn deliver(&mut self, bytes: &[u8]) -> Verdict {
        let clock = Arc::clone(&self.clock);
        self.deliver_at(bytes, &clock)
    }

    /// The same by another clock.
    pub fn deliver_at(&mut self, bytes: &[u8], clock: &dyn Clock) -> Verdict {
        self.out.clear();
        self.session
            .received(&self.engine, &mut self.worker, clock, bytes, &mut self.out)
    }

    /// Takes the output with what the last delivery was replied, as a connection would that sends it later.
    pub fn take_output(&mut self) -> Output {
        std::mem::take(&mut self.out)
    }

    /// What the last delivery was replied.
    pub fn replies(&self) -> Vec<u8> {
        self.out.to_vec()
    }

    /// Sends bytes and returns how long the replies are.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let clock = Arc::clone(&self.clock);
        self.receive_at(bytes, &*clock)
    }

    /// The same by another clock.
    pub fn receive_at(&mut self, bytes: &[u8], clock: &dyn Clock) -> usize {
        let verdict = self.deliver_at(bytes, clock);
        assert_eq!(
            verdict,
            Verdict::Open,
            "the session closed after {:?}",
            String::from_utf8_lossy(bytes)
        );
        self.out.len()
    }

    /// Sends bytes and returns the reply's bytes.
    pub fn send(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.receive(bytes);
        self.replies()
    }

    /// Sends one command.
    pub fn command(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        weft_resp::RequestWriter::new(&mut bytes).command(arguments);
        self.send(&bytes)
    }
}
