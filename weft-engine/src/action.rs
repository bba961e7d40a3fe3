//! What the engine wants done by its surroundings.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weft_data::collection::Collection;
use weft_keyspace::{Dropped, Garbage};

use crate::clients::ClientRecord;
use crate::config::{Change, SetError, Settings};

/// Something to be done after the replies of the turn are on their way.
pub enum Action {
    /// Stop the server.
    Shutdown(Shutdown),
    /// Write a warning into the log.
    Warn(String),
    /// Make the owner of a client look at its record: it was killed, or something was made for it.
    Attend(Arc<ClientRecord>),
    /// Make all workers go on with the clients that a pause holds.
    PauseEnded,
    /// Make all workers look at the settings, which may concern clients that sleep.
    SettingsChanged,
}

/// How to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Save even without save points; `None`: as configured.
    pub save: Option<bool>,
    /// Do not wait for replicas.
    pub now: bool,
    /// Stop even if saving fails.
    pub force: bool,
    /// Start again after so long: DEBUG RESTART.
    pub restart: Option<Duration>,
}

impl Shutdown {
    /// Why a shutdown that has to save is refused.
    pub const CANNOT_SAVE: &str =
        "There is no saving to disk yet. Error trying to save the DB, can't exit.";

    /// There is no way to save yet, and a server that was told to save must not stop without having done so.
    #[must_use]
    pub fn cannot_save(&self) -> bool {
        self.save == Some(true) && !self.force
    }
}

/// How DEBUG makes the process end at once, with a core where the system keeps one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// By an access to memory that is not the process's.
    Segfault,
    /// By a fault that the program has noticed.
    Panic,
    /// By something that does not hold.
    Assert,
    /// By an allocation that fails.
    OutOfMemory,
}

/// What is freed by the reaper, outside latches.
pub enum Waste {
    /// Large values.
    Values(Garbage),
    /// A whole table.
    Table(Dropped),
    /// What readers of collections have captured.
    Snapshots(Vec<Box<Collection>>),
}

impl Waste {
    /// How many values it holds.
    #[must_use]
    pub fn objects(&self) -> usize {
        match self {
            Self::Values(garbage) => garbage.values.len(),
            Self::Table(table) => table.len(),
            Self::Snapshots(_) => 0,
        }
    }
}

/// What the engine cannot do itself: files, sockets, facts about the process.
pub trait Host: Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    /// As the operating system says.
    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Replaces a file at once or not at all.
    ///
    /// # Errors
    /// As the operating system says; the old file is then untouched.
    fn replace_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Makes changed parameters take effect outside the engine, all or none. Called with the configuration locked, before
    /// the settings are in force.
    ///
    /// # Errors
    /// The reason, for the client; nothing has changed then.
    fn apply(&self, changes: &[Change], settings: &Settings) -> Result<(), SetError>;

    /// The absolute path of the folder that relative paths start from; none if the system cannot tell.
    fn working_folder(&self) -> Option<Vec<u8>>;

    /// Makes exactly `count` workers active, whatever the load; none: as many as the load wants.
    ///
    /// # Errors
    /// How many there are, if `count` is not between 1 and that.
    fn force_workers(&self, count: Option<usize>) -> Result<(), usize>;

    /// Frees large values.
    fn reap(&self, waste: Waste);

    /// How many values have been handed over to be freed and are not free yet.
    fn waste_left(&self) -> usize {
        0
    }

    /// Stops the calling thread for so long: DEBUG SLEEP.
    fn sleep(&self, _: Duration) {}

    /// Ends the process at once, the reason in the log.
    fn fail(&self, fault: Fault) -> ! {
        panic!("{fault:?}")
    }

    /// Whether the program can be started again as it was; if not, the log says why.
    fn can_restart(&self) -> bool {
        false
    }

    /// Starts the program again after so long, in place of this process, nothing put in order: DEBUG CRASH-AND-RECOVER.
    /// Returns if that fails, and the log says why.
    fn crash_and_recover(&self, _: Duration) {}

    /// What the general allocator holds.
    fn allocator(&self) -> AllocatorFacts {
        AllocatorFacts::default()
    }

    /// What the general allocator tells of itself, many lines of text.
    fn allocator_report(&self) -> String {
        "The allocator keeps no statistics".to_owned()
    }

    /// Gives memory that the general allocator holds for nobody to the system.
    fn purge_allocator(&self) {}

    /// What is known of the process.
    fn process(&self) -> ProcessFacts;
}

/// What the general allocator holds, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorFacts {
    /// Allocated and not freed.
    pub allocated: u64,
    /// Pages with something allocated in them.
    pub active: u64,
    /// Pages that the system backs with memory.
    pub resident: u64,
}

/// Facts about the process, for INFO.
#[derive(Clone, Debug, Default)]
pub struct ProcessFacts {
    /// The process id.
    pub process_id: u32,
    /// Name, release and machine of the operating system.
    pub operating_system: String,
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// Physical memory in bytes.
    pub total_memory_bytes: u64,
    /// Memory in use as the allocator counts it, in bytes.
    pub allocated_bytes: u64,
    /// Processor time spent in user mode, microseconds.
    pub user_cpu_us: u64,
    /// Processor time spent in the kernel, microseconds.
    pub system_cpu_us: u64,
    /// The program's path.
    pub executable: String,
    /// The allocator's name and version.
    pub allocator: String,
    /// Who supervises the process: `no`, `systemd` or `upstart`.
    pub supervisor: &'static str,
    /// The driver of sockets in use: `epoll` or `io_uring`.
    pub io_driver: String,
}
