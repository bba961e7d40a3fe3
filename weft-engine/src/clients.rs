//! All connected clients, as every worker may see them.
//!
//! Owns one record per connection, the pause that CLIENT PAUSE asked for, and the list of those who monitor. A record is
//! entered when its connection begins and leaves with it, or before, when it is killed. Knows no session, no socket, and
//! starts nothing: who has to be told is said by [`crate::action::Action::Attend`].
//!
//! Invariant: what a record shows is written by the worker that owns the connection, without locked instructions; what
//! others want of the connection they leave in the record (its doom, what is pushed to it) and then tell the owner.

pub(crate) mod monitors;
mod pause;
mod record;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::client::Origin;
use crate::command::{CommandRow, CommandTable};

use pause::Pause;

pub use pause::Scope;
pub use record::{ClientFlags, ClientRecord};

/// Connections that come and go at the same time seldom meet.
const SHARDS: usize = 64;

/// All connected clients.
pub struct Clients {
    shards: [Mutex<HashMap<u64, Arc<ClientRecord>>>; SHARDS],
    connected: AtomicUsize,
    watch: Watch,
    pause: Mutex<Option<Pause>>,
    /// How many pauses are over.
    pauses_ended: AtomicUsize,
    monitors: Mutex<Vec<Arc<ClientRecord>>>,
    /// The full names of commands by the addresses of their rows.
    command_names: HashMap<usize, Box<str>>,
}

/// What every command looks at before it runs: on a line of its own that is hardly ever written.
#[derive(Default)]
#[repr(align(128))]
struct Watch(AtomicU32);

/// Somebody monitors.
const MONITORED: u32 = 1;
/// Commands that may change the data wait.
const WRITES_HELD: u32 = 2;
/// All commands wait.
const ALL_HELD: u32 = 4;

/// Numbers about all clients, for INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientFacts {
    /// Connections open now, without those that were killed.
    pub connected: usize,
    /// Clients that wait: for data, or since a pause holds them.
    pub blocked: usize,
    /// Clients that wait for data for a limited time.
    pub timed: usize,
    /// Bytes of the largest input buffer of a client.
    pub input_buffer_max: usize,
    /// Bytes of the largest output that a client has not taken.
    pub output_buffer_max: usize,
    /// Clients that monitor.
    pub monitors: usize,
    /// Clients that watch keys.
    pub watching: usize,
}

impl Clients {
    /// Nobody yet.
    #[must_use]
    pub fn new(commands: &CommandTable) -> Self {
        let mut command_names = HashMap::new();
        for (name, command) in commands
            .numbered()
            .iter()
            .flat_map(|it| it.with_subcommands())
        {
            command_names.insert(address(command.row), name.into());
        }
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            connected: AtomicUsize::new(0),
            watch: Watch::default(),
            pause: Mutex::default(),
            pauses_ended: AtomicUsize::new(0),
            monitors: Mutex::default(),
            command_names,
        }
    }

    /// Enters a new connection.
    pub(crate) fn enter(self: &Arc<Self>, id: u64, origin: Origin) -> Registered {
        let record = Arc::new(ClientRecord::new(id, origin));
        self.shard(id).insert(id, Arc::clone(&record));
        self.connected.fetch_add(1, Ordering::Relaxed);
        Registered {
            clients: Arc::clone(self),
            record,
        }
    }

    /// A record that is entered nowhere.
    pub(crate) fn unlisted(self: &Arc<Self>) -> Registered {
        let origin = Origin {
            address: "".into(),
            local_address: "".into(),
            local: true,
        };
        Registered {
            clients: Arc::clone(self),
            record: Arc::new(ClientRecord::new(0, origin)),
        }
    }

    /// Takes a record out, so that nobody finds it any more. False: it was out already.
    pub(crate) fn retire(&self, record: &ClientRecord) -> bool {
        let found = self.shard(record.id()).remove(&record.id()).is_some();
        if found {
            self.connected.fetch_sub(1, Ordering::Relaxed);
        }
        found
    }

    /// Ends another client's connection: it runs no further command, and nobody finds it any more. Its owner has to be told
    /// if this is true; false: it was gone already.
    pub fn kill(&self, record: &ClientRecord) -> bool {
        let found = self.retire(record);
        if found {
            record.doom();
        }
        found
    }

    /// The client of that number.
    #[must_use]
    pub fn find(&self, id: u64) -> Option<Arc<ClientRecord>> {
        self.shard(id).get(&id).cloned()
    }

    /// All clients, the longest connected first.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<ClientRecord>> {
        let mut all = Vec::with_capacity(self.connected());
        for shard in &self.shards {
            all.extend(lock(shard).values().cloned());
        }
        all.sort_unstable_by_key(|record| record.id());
        all
    }

    /// How many are connected now, without those that were killed.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }

    /// Numbers about all clients. Looks at every record.
    #[must_use]
    pub fn facts(&self) -> ClientFacts {
        let mut facts = ClientFacts::default();
        for shard in &self.shards {
            for record in lock(shard).values() {
                let flags = record.flags();
                facts.connected += 1;
                let waits =
                    flags.contains(ClientFlags::HELD) || flags.contains(ClientFlags::WAITING);
                facts.blocked += usize::from(waits);
                facts.timed += usize::from(flags.contains(ClientFlags::TIMED));
                facts.watching += usize::from(record.watched() > 0);
                facts.monitors += usize::from(flags.contains(ClientFlags::MONITOR));
                facts.input_buffer_max = facts.input_buffer_max.max(record.input_buffer());
                facts.output_buffer_max = facts.output_buffer_max.max(record.unsent());
            }
        }
        facts
    }

    /// The client's line as CLIENT LIST shows it, without a line end. `now_ns` is on the scale of the engine's clock.
    #[must_use]
    pub fn line(&self, record: &ClientRecord, now_ns: u64) -> Vec<u8> {
        let command = self.command_names.get(&record.command());
        record.line(command.map_or("NULL", |name| &**name), now_ns)
    }

    #[inline]
    fn watch(&self) -> u32 {
        self.watch.0.load(Ordering::Relaxed)
    }

    /// Whether somebody monitors.
    #[inline]
    #[must_use]
    pub fn is_monitored(&self) -> bool {
        self.watch() & MONITORED != 0
    }

    /// Whether clients are paused, or were until a moment ago.
    #[inline]
    #[must_use]
    pub fn may_be_paused(&self) -> bool {
        self.watch() & (WRITES_HELD | ALL_HELD) != 0
    }

    fn shard(&self, id: u64) -> MutexGuard<'_, HashMap<u64, Arc<ClientRecord>>> {
        lock(&self.shards[id as usize % SHARDS])
    }
}

/// What stands for a row in a record.
pub(crate) fn address(row: &'static CommandRow) -> usize {
    std::ptr::from_ref(row).addr()
}

/// A connection's entry among the clients, for as long as it lives.
pub(crate) struct Registered {
    clients: Arc<Clients>,
    record: Arc<ClientRecord>,
}

impl Registered {
    pub(crate) fn record(&self) -> &Arc<ClientRecord> {
        &self.record
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }
}

impl std::fmt::Debug for Registered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Registered")
            .field(&self.record.id())
            .finish()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.clients.retire(&self.record);
        if self.record.flags().contains(ClientFlags::MONITOR) {
            self.clients.stop_monitoring(&self.record);
        }
    }
}

/// Nothing that is done under these locks can fail half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
