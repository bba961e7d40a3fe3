//! What all workers share, and what each worker has for itself.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_data::collection::Collection;
use weft_keyspace::{Dropped, Garbage, Keyspace, Options};

use crate::access::AccessRule;
use crate::action::{Action, Host, Waste};
use crate::client::Client;
use crate::clients::Clients;
use crate::command::{CommandTable, Numbered};
use crate::command_statistics::{CommandAccounts, CommandStatistics};
use crate::commands;
use crate::config::{Config, Settings};
use crate::dispatch::{Batch, Change, ExpiryCursor, UnitLog};
use crate::journal::Journal;
use crate::latency::{LatencyEvent, LatencyMonitor, LatencySample};
use crate::memory::Watermarks;
use crate::slow_log::SlowLog;
use crate::statistics::{Account, Totals, WorkerStatistics};
use crate::step_times::{StepTimer, Turn};

/// The keyspace, the commands, the configuration and the journal of one server.
pub struct Engine {
    /// The data.
    pub keyspace: Keyspace,
    /// Seeds the hashes of the members of collections.
    pub(crate) collection_seed: u64,
    /// All commands.
    pub commands: CommandTable,
    /// All connected clients.
    pub clients: Arc<Clients>,
    /// Effects of committed units.
    pub journal: Arc<Journal>,
    /// What the engine cannot do itself.
    pub host: Box<dyn Host>,
    /// Who this server is.
    pub identity: Identity,
    replication_id: Mutex<String>,
    /// Whether overdue keys are removed although nobody asks for them.
    pub active_expiry: AtomicBool,
    /// What is counted per command and per kind of error.
    pub command_accounts: CommandAccounts,
    /// Commands that were slow.
    pub slow_log: SlowLog,
    /// Events that took long.
    pub latency: LatencyMonitor,
    /// Whether nothing is done by the clock: DEBUG PAUSE-CRON.
    pub housekeeping_paused: AtomicBool,
    pub(crate) watermarks: Watermarks,
    /// How many workers serve connections now.
    pub active_workers: AtomicUsize,
    config: Mutex<Config>,
    config_generation: AtomicU64,
    listeners: AtomicU32,
    observer: Option<Box<dyn Observer>>,
    /// Those of all workers that ever were, by their numbers.
    statistics: Mutex<Vec<Arc<WorkerStatistics>>>,
    statistics_reset: Mutex<StatisticsReset>,
    next_client: AtomicU64,
}

/// From where statistics count.
#[derive(Default)]
struct StatisticsReset {
    /// Nanoseconds on the scale of the engine's clock; 0: never reset.
    at_ns: u64,
    /// Each worker's counters then, by their numbers.
    workers: Vec<Totals>,
}

/// Snapshots of collections that may take more bytes are freed by the reaper, in case that nobody else has them any more.
const SNAPSHOT_REAPED_FROM: usize = 64 * 1024;

/// Who a server is, fixed from its start.
#[derive(Clone, Debug)]
pub struct Identity {
    /// 40 hexadecimal digits, new with every start.
    pub run_id: String,
    /// Likewise: names the history of the data set, until [`Engine::set_replication_id`].
    pub replication_id: String,
    /// When it started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The path of the configuration file, if one was given.
    pub config_file: Option<std::path::PathBuf>,
}

/// What an engine is made of.
pub struct Parts {
    /// The configuration it starts with.
    pub config: Config,
    /// Its surroundings.
    pub host: Box<dyn Host>,
    /// Who hears of every change to a key.
    pub observer: Option<Box<dyn Observer>>,
    /// How many workers are expected to run at a time: decides how finely the keyspace is divided.
    pub workers: usize,
    /// Seeds of the keyed hash: random, so that nobody can choose keys that collide.
    pub hash_seeds: [u64; 4],
    /// Who it is.
    pub identity: Identity,
}

/// Hears of changes to keys, latches held: it must be quick and must not call back.
pub trait Observer: Send + Sync {
    /// These keys have changed, in this order, in one unit.
    fn changed(&self, changes: &[Change]);
}

/// Who listens to what units do, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listeners(u32);

impl Listeners {
    /// Nobody.
    pub const NONE: Self = Self(0);
    /// Somebody reads the journal.
    pub const JOURNAL: Self = Self(1);
    /// Somebody hears of changes.
    pub const CHANGES: Self = Self(2);

    /// Whether all of `other` are among these.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The most workers an engine can have.
pub const WORKERS_MAX: usize = 1024;

/// The most shards a keyspace can have: a unit numbers its latches in 16 bits, with a number to spare.
const SHARDS_MAX: usize = 32768;
/// The fewest shards: enough that a few dozen workers seldom meet.
const SHARDS_MIN: usize = 512;
/// Shards per worker.
const SHARDS_PER_WORKER: usize = 128;

impl Engine {
    /// An engine without keys.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let options = Options {
            shards: (parts.workers * SHARDS_PER_WORKER)
                .next_power_of_two()
                .clamp(SHARDS_MIN, SHARDS_MAX),
            databases: parts.config.settings().databases(),
            workers: 0,
            workers_max: WORKERS_MAX,
            hash_seeds: parts.hash_seeds,
        };
        let listeners = if parts.observer.is_some() {
            Listeners::CHANGES
        } else {
            Listeners::NONE
        };
        // Another one than the keyspace's: what one hash shows says nothing of the other.
        let [seed, ..] = parts.hash_seeds;
        let collection_seed = fastrand::Rng::with_seed(seed).u64(..);
        let keyspace = Keyspace::new(options);
        let commands = CommandTable::new(commands::FAMILIES);
        Self {
            collection_seed,
            watermarks: Watermarks::begin(&*parts.host, &keyspace),
            keyspace,
            clients: Arc::new(Clients::new(&commands)),
            command_accounts: CommandAccounts::new(commands.count()),
            commands,
            slow_log: SlowLog::default(),
            latency: LatencyMonitor::default(),
            journal: Arc::new(Journal::new(WORKERS_MAX)),
            host: parts.host,
            replication_id: Mutex::new(parts.identity.replication_id.clone()),
            identity: parts.identity,
            active_expiry: AtomicBool::new(true),
            housekeeping_paused: AtomicBool::new(false),
            active_workers: AtomicUsize::new(1),
            config: Mutex::new(parts.config),
            config_generation: AtomicU64::new(0),
            listeners: AtomicU32::new(listeners.0),
            observer: parts.observer,
            statistics: Mutex::default(),
            statistics_reset: Mutex::default(),
            next_client: AtomicU64::new(1),
        }
    }

    /// Whether a new connection may run commands without a password.
    #[must_use]
    pub fn open_to_all(&self) -> bool {
        self.config().settings().requirepass().is_none()
    }

    /// A number no connection has had before.
    pub fn next_client_id(&self) -> u64 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }

    /// The configuration, locked.
    pub fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Workers take the settings anew before their next batch.
    pub fn settings_changed(&self) {
        self.config_generation.fetch_add(1, Ordering::Release);
    }

    /// Who listens now.
    #[must_use]
    pub fn listeners(&self) -> Listeners {
        Listeners(self.listeners.load(Ordering::Relaxed))
    }

    /// Switches the journal on and returns its reader, which starts here. `worker` must be outside its gate.
    #[must_use]
    pub fn listen_to_journal(&self, worker: usize) -> crate::journal::JournalReader {
        let alone = self.keyspace.exclusive(worker);
        self.listeners
            .fetch_or(Listeners::JOURNAL.0, Ordering::Relaxed);
        let reader = self.journal.reader();
        drop(alone);
        reader
    }

    pub(crate) fn observe(&self, changes: &[Change]) {
        if let Some(observer) = &self.observer {
            observer.changed(changes);
        }
    }

    /// The sums of all workers' counters since the start or the last reset.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals::sum(self.accounts().iter().map(|account| &account.totals))
    }

    /// What each worker has counted since the start or the last reset, by their numbers.
    #[must_use]
    pub fn accounts(&self) -> Vec<Account> {
        let reset = self.statistics_reset();
        let statistics = self.worker_statistics().into_iter().enumerate();
        statistics
            .map(|(id, statistics)| {
                let since = reset.workers.get(id).copied().unwrap_or_default();
                let totals = Totals::of(&statistics).since(&since);
                Account { statistics, totals }
            })
            .collect()
    }

    /// When statistics were last reset, in nanoseconds on the scale of the clock; 0: never.
    #[must_use]
    pub fn statistics_reset_ns(&self) -> u64 {
        self.statistics_reset().at_ns
    }

    /// CONFIG RESETSTAT: everything counts from here, except what tells how many there are now. What is counted per command
    /// counts from every worker's next [refresh](WorkerState::refresh_settings).
    pub fn reset_statistics(&self, now_ns: u64) {
        let mut reset = self.statistics_reset();
        reset.at_ns = now_ns;
        reset.workers = self
            .worker_statistics()
            .iter()
            .map(|worker| {
                worker.longest_turn_ns.reset();
                worker.most_commands_in_turn.reset();
                Totals {
                    connected_clients: 0,
                    watched_keys: 0,
                    ..Totals::of(worker)
                }
            })
            .collect();
        drop(reset);
        self.command_accounts.reset();
        self.settings_changed();
    }

    /// The name of the data set's history, 40 hexadecimal digits.
    #[must_use]
    pub fn replication_id(&self) -> String {
        let id = self.replication_id.lock();
        id.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives the history another name.
    pub fn set_replication_id(&self, id: String) {
        let current = self.replication_id.lock();
        *current.unwrap_or_else(PoisonError::into_inner) = id;
    }

    fn statistics_reset(&self) -> MutexGuard<'_, StatisticsReset> {
        self.statistics_reset
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of all workers there have been, by their numbers.
    #[must_use]
    pub fn worker_statistics(&self) -> Vec<Arc<WorkerStatistics>> {
        self.statistics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Makes a place for worker `id`: its gate and its counters.
    fn join(&self, id: usize) -> Arc<WorkerStatistics> {
        self.keyspace.take_gate_into_use(id);
        let mut all = self
            .statistics
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if id >= all.len() {
            all.resize_with(id + 1, Arc::default);
        }
        Arc::clone(&all[id])
    }
}

/// How long a command must take for the slow log or the latency monitor to want it.
fn notable_ns(settings: &Settings) -> u64 {
    let ns = |number: Option<u64>, unit_ns: u64| number.map(|n| n.saturating_mul(unit_ns));
    [
        ns(settings.slowlog_log_slower_than_us(), 1_000),
        ns(settings.latency_monitor_threshold_ms(), 1_000_000),
    ]
    .into_iter()
    .flatten()
    .min()
    .unwrap_or(u64::MAX)
}

/// Makes the choice of turns that are timed independent of the commands' randomness.
const TIMER_SEED: u64 = 0x7469_6d65_7475_726e;

/// What one worker has for itself between batches.
pub struct WorkerState {
    id: usize,
    statistics: Arc<WorkerStatistics>,
    settings: Arc<Settings>,
    settings_generation: u64,
    access_rule: AccessRule,
    pub(crate) commands: Arc<CommandStatistics>,
    /// Whether durations of commands are kept.
    pub(crate) tracks_latency: bool,
    /// Commands that take at least so many nanoseconds are looked at more closely.
    pub(crate) notable_ns: u64,
    /// When the turn's wait was over, on the scale of the clock's instants; the greatest number: not known.
    pub(crate) turn_began_ns: u64,
    log: UnitLog,
    /// What commands of clients that waited are run with.
    stand_in: Option<Box<Client>>,
    /// Batches not in use.
    #[allow(
        clippy::vec_box,
        reason = "they are handed out as they are, in one word"
    )]
    batches: Vec<Box<Batch>>,
    pub(crate) expiry: ExpiryCursor,
    pub(crate) timer: StepTimer,
    waste: Vec<Waste>,
    /// What the worker's surroundings are to do.
    pub actions: Vec<Action>,
    /// Randomness for commands.
    pub random: fastrand::Rng,
}

impl WorkerState {
    /// Worker number `id`, counted from 0 and below [`WORKERS_MAX`]. No two workers have the same at a time.
    #[must_use]
    pub fn new(engine: &Engine, id: usize, seed: u64) -> Self {
        let settings_generation = engine.config_generation.load(Ordering::Acquire);
        let settings = Arc::clone(engine.config().settings());
        Self {
            id,
            statistics: engine.join(id),
            access_rule: AccessRule::of(&settings),
            commands: engine.command_accounts.of_worker(id),
            tracks_latency: settings.latency_tracking(),
            notable_ns: notable_ns(&settings),
            turn_began_ns: u64::MAX,
            settings,
            settings_generation,
            log: UnitLog::default(),
            stand_in: None,
            batches: Vec::new(),
            expiry: ExpiryCursor::default(),
            timer: StepTimer::new(seed ^ TIMER_SEED),
            waste: Vec::new(),
            actions: Vec::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// The worker's number.
    #[must_use]
    pub const fn id(&self) -> usize {
        self.id
    }

    /// The worker's counters.
    #[must_use]
    pub fn statistics(&self) -> &WorkerStatistics {
        &self.statistics
    }

    /// Counts a command that waited and has ended. Its time is what it has run.
    pub(crate) fn count_waited(&self, command: Numbered, took_ns: u64) {
        self.statistics.commands_processed.add(1);
        self.commands
            .ran(command.index, 1, took_ns, self.tracks_latency);
    }

    /// Counts an error reply.
    pub(crate) fn count_error(&self, engine: &Engine, text: &[u8]) {
        self.statistics.error_replies.add(1);
        engine.command_accounts.count_error(&self.commands, text);
    }

    /// The settings as they were when the batch began.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes the settings anew if they have changed, and counts commands anew if the statistics were reset.
    pub fn refresh_settings(&mut self, engine: &Engine) {
        let generation = engine.config_generation.load(Ordering::Acquire);
        if generation != self.settings_generation {
            self.settings = Arc::clone(engine.config().settings());
            self.access_rule = AccessRule::of(&self.settings);
            self.commands = engine.command_accounts.of_worker(self.id);
            self.tracks_latency = self.settings.latency_tracking();
            self.notable_ns = notable_ns(&self.settings);
            self.settings_generation = generation;
        }
    }

    /// The worker's loop begins: from here on it is either busy or idle.
    pub fn begin_loop(&mut self, clock: &dyn crate::clock::Clock) {
        self.timer
            .begin_loop(&self.statistics, clock.monotonic_ns());
    }

    /// Before each turn of the loop: whether it is to be timed, by the driver too.
    #[must_use]
    pub fn begin_turn(&mut self, clock: &dyn crate::clock::Clock) -> bool {
        self.timer.begin_turn(clock)
    }

    /// The turn's wait is over: what is received from here on has arrived now.
    pub fn turn_began(&mut self, clock: &dyn crate::clock::Clock) {
        self.turn_began_ns = clock.instant_ns();
    }

    /// Counts a turn that is over. `delayed_ns` tells for how much of it another thread had the processor; it is asked
    /// only if the turn may be the longest.
    pub fn end_turn(&mut self, turn: &Turn, delayed_ns: impl FnOnce() -> u64) {
        self.timer.end_turn(&self.statistics, turn, delayed_ns);
    }

    /// When the first key or field of a key may be due, in milliseconds since 1970: never too late. None if time removes nothing.
    #[must_use]
    pub fn next_due_ms(&self, engine: &Engine) -> Option<u64> {
        crate::dispatch::next_due_ms(engine, self.id())
    }

    /// Removes up to `budget` overdue keys and says whether there may be more now.
    pub fn expire(
        &mut self,
        engine: &Engine,
        clock: &dyn crate::clock::Clock,
        budget: usize,
    ) -> bool {
        let paused = engine.clients.paused_until_ns(clock.monotonic_ns());
        if !engine.active_expiry.load(Ordering::Relaxed) || paused.is_some() {
            return false;
        }
        let began_ns = clock.instant_ns();
        let more = crate::dispatch::expire_cycle(engine, self, clock, budget);
        let took_ns = clock.instant_ns().saturating_sub(began_ns);
        self.statistics.expire_cycle_ns.add(took_ns as i64);
        self.statistics.expire_cycles_cut.add(i64::from(more));
        let took_ms = took_ns / 1_000_000;
        let threshold_ms = self.settings.latency_monitor_threshold_ms();
        if threshold_ms.is_some_and(|least| took_ms >= least) {
            let at_s = clock.unix_ms() / 1_000;
            let sample = LatencySample { at_s, took_ms };
            engine.latency.add(LatencyEvent::ExpireCycle, sample);
        }
        more
    }

    /// Hands what has to be freed to the reaper: after the batch, outside latches and gate.
    pub(crate) fn hand_over_waste(&mut self, engine: &Engine) {
        for waste in self.waste.drain(..) {
            self.statistics.reaped_objects.add(waste.objects() as i64);
            engine.host.reap(waste);
        }
    }

    pub(crate) fn take_stand_in(&mut self, engine: &Engine) -> Box<Client> {
        let stand_in = self.stand_in.take();
        stand_in.unwrap_or_else(|| Box::new(Client::stand_in(&engine.clients)))
    }

    pub(crate) fn put_stand_in(&mut self, stand_in: Box<Client>) {
        self.stand_in = Some(stand_in);
    }

    pub(crate) fn take_batch(&mut self) -> Box<Batch> {
        let mut batch = self.batches.pop().unwrap_or_default();
        batch.requests.clear();
        batch
    }

    /// Keeps the batch's memory for the next. There are never more than connections in a group.
    pub(crate) fn put_batch(&mut self, batch: Box<Batch>) {
        self.batches.push(batch);
    }

    /// How uses of keys are kept.
    #[must_use]
    pub const fn access_rule(&self) -> AccessRule {
        self.access_rule
    }

    pub(crate) fn take_log(&mut self) -> UnitLog {
        let mut log = std::mem::take(&mut self.log);
        log.set_access_rule(self.access_rule);
        log
    }

    pub(crate) fn put_log(&mut self, log: UnitLog) {
        self.log = log;
    }

    /// Leaves snapshots to the reaper, unless freeing them is a trifle.
    #[expect(clippy::vec_box, reason = "they come in boxes and go in boxes")]
    pub(crate) fn reap_snapshots(&mut self, mut snapshots: Vec<Box<Collection>>) {
        snapshots.retain(|snapshot| snapshot.allocated_bytes() > SNAPSHOT_REAPED_FROM);
        if !snapshots.is_empty() {
            self.waste.push(Waste::Snapshots(snapshots));
        }
    }

    pub(crate) fn reap(&mut self, dropped: &mut Vec<Dropped>, garbage: &mut Vec<Garbage>) {
        self.waste.extend(dropped.drain(..).map(Waste::Table));
        self.waste.extend(garbage.drain(..).map(Waste::Values));
    }
}
