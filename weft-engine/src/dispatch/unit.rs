//! A unit: what is atomic.
//!
//! It holds the latches of its keys and is the only way handlers reach the keyspace. Whatever it does is buffered
//! in its log: effects, changes, statistics. `commit` lets them out together, latches still held.
//! Time stands still within a unit: it is read when first asked for. A key whose time has come is missing for every
//! handler from then on; it is removed before the key is written, and at the latest by `commit`.

use std::cell::{Cell, RefCell};

use smallvec::SmallVec;
use weft_data::string_value::StringEncoding;
use weft_keyspace::{
    DeadlineChange, Dropped, Entry, Exclusive, Garbage, Latched, NewValue, Position, RopeMut,
    Shard, ValueRef,
};

use super::context::Key;
use crate::clock::Clock;
use crate::engine::{Engine, Listeners, WorkerState};
use crate::journal::{Effect, EffectArgument};

/// What kind of change an event tells of: the classes of `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// DEL, EXPIRE, RENAME and the like.
    Generic,
    /// Strings.
    String,
    /// A key's time has come.
    Expired,
    /// A key was made.
    New,
}

/// One change to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key's database.
    pub database: u32,
    /// The key's name.
    pub key: Box<[u8]>,
    /// Its class.
    pub class: EventClass,
    /// What happened, in the word that subscribers read.
    pub event: &'static str,
}

/// Keys by position and name.
type Overdue = SmallVec<[(Position, Box<[u8]>); 1]>;

/// What a unit has done and not yet let out. Reused from unit to unit.
#[derive(Default)]
pub(crate) struct UnitLog {
    effects: Vec<Effect>,
    changes: Vec<Change>,
    /// Keys that were read after their time had come.
    overdue: RefCell<Overdue>,
    dropped: Vec<Dropped>,
    garbage: Vec<Garbage>,
    touched: i64,
    expired: i64,
    hits: Cell<i64>,
    misses: Cell<i64>,
}

const KEYS_ARE_LATCHED: &str = "a handler gets its keys from dispatch, which latches them first";

enum Access<'k> {
    None,
    One(usize, Latched<'k>),
    Many(Vec<(usize, Latched<'k>)>),
    All(Exclusive<'k>),
}

/// The latched part of the keyspace and what is done to it.
pub struct Unit<'k> {
    engine: &'k Engine,
    clock: &'k dyn Clock,
    access: Access<'k>,
    database: usize,
    now: Cell<Option<u64>>,
    listeners: Listeners,
    log: UnitLog,
}

impl<'k> Unit<'k> {
    /// A unit's frame for a batch of commands, with no latch taken yet.
    pub(crate) fn new(engine: &'k Engine, clock: &'k dyn Clock, log: UnitLog) -> Self {
        let now = Cell::new(None);
        Self {
            engine,
            clock,
            access: Access::None,
            database: 0,
            now,
            listeners: Listeners::NONE,
            log,
        }
    }

    /// Gives the log's memory back for the next batch.
    pub(crate) fn finish(self) -> UnitLog {
        self.log
    }

    /// Begins a command of a client that has selected `database`.
    pub(super) fn begin(&mut self, database: usize) {
        self.database = database;
        self.now.set(None);
        self.listeners = self.engine.listeners();
    }

    /// Latches one shard, keeping the latch already held if it is that one.
    pub(super) fn latch_one(&mut self, shard: usize) {
        if !matches!(&self.access, Access::One(held, _) if *held == shard) {
            self.access = Access::None;
            self.access = Access::One(shard, self.engine.keyspace.latch(shard));
        }
    }

    /// Latches several shards, given in ascending order without repetition.
    pub(super) fn latch_many(&mut self, shards: &[usize]) {
        self.access = Access::None;
        self.access = Access::Many(
            shards
                .iter()
                .map(|shard| (*shard, self.engine.keyspace.latch(*shard)))
                .collect(),
        );
    }

    /// Takes the whole keyspace. The worker must be outside its gate.
    pub(super) fn latch_all(&mut self, worker: usize) {
        self.access = Access::None;
        self.access = Access::All(self.engine.keyspace.exclusive(worker));
    }

    /// Lets go of all latches.
    pub(super) fn release(&mut self) {
        self.access = Access::None;
    }

    /// Lets out what the unit has done: the journal first, then those who listen to changes.
    pub(super) fn commit(&mut self, worker: &mut WorkerState) {
        self.remove_overdue();
        let statistics = worker.statistics();
        let (hits, misses) = (self.log.hits.take(), self.log.misses.take());
        if hits + misses != 0 {
            statistics.keyspace_hits.add(hits);
            statistics.keyspace_misses.add(misses);
        }
        if self.log.touched == 0 && self.log.effects.is_empty() {
            return;
        }
        statistics
            .changes
            .add(std::mem::take(&mut self.log.touched));
        statistics
            .expired_keys
            .add(std::mem::take(&mut self.log.expired));
        if !self.log.effects.is_empty() {
            self.engine
                .journal
                .append(worker.id(), std::mem::take(&mut self.log.effects));
        }
        if !self.log.changes.is_empty() {
            self.engine.observe(&self.log.changes);
            self.log.changes.clear();
        }
        self.collect_garbage();
        if !self.log.dropped.is_empty() || !self.log.garbage.is_empty() {
            worker.reap(&mut self.log.dropped, &mut self.log.garbage);
        }
    }

    /// The time in milliseconds since 1970: the same throughout the unit, and never before what another unit has seen
    /// under the same latches.
    pub fn now_ms(&self) -> u64 {
        if let Some(now) = self.now.get() {
            return now;
        }
        let clock = self.clock.unix_ms();
        let now = match &self.access {
            Access::One(_, shard) => clock.max(shard.latest_now()),
            Access::Many(shards) => {
                let seen = shards.iter().map(|(_, shard)| shard.latest_now());
                seen.fold(clock, u64::max)
            }
            Access::None | Access::All(_) => clock,
        };
        self.now.set(Some(now));
        now
    }

    /// The time in microseconds since 1970, not frozen.
    pub fn clock_us(&self) -> u64 {
        self.clock.unix_us()
    }

    /// Nanoseconds on the clock that never goes back, not frozen.
    pub fn monotonic_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }

    pub(super) const fn engine(&self) -> &'k Engine {
        self.engine
    }

    /// The database the unit's keys are in.
    #[must_use]
    pub const fn database(&self) -> usize {
        self.database
    }

    /// The key's live entry, counted as a hit or a miss.
    pub fn read(&self, key: Key<'_>) -> Option<Entry<'_>> {
        let entry = self.peek(key);
        let counter = if entry.is_some() {
            &self.log.hits
        } else {
            &self.log.misses
        };
        counter.set(counter.get() + 1);
        entry
    }

    /// The key's live entry, not counted: for commands that will write or only look.
    pub fn peek(&self, key: Key<'_>) -> Option<Entry<'_>> {
        let entry = self
            .shard(key)
            .find(self.database, key.position, key.name)?;
        match entry.deadline() {
            Some(deadline) if deadline <= self.now_ms() => {
                self.log
                    .overdue
                    .borrow_mut()
                    .push((key.position, key.name.into()));
                None
            }
            _ => Some(entry),
        }
    }

    /// Stores a value under the key and says whether the key was there before.
    pub fn set(&mut self, key: Key<'_>, value: NewValue<'_>, deadline: DeadlineChange) -> bool {
        match deadline {
            // The deadline to be kept must be that of a live key.
            DeadlineChange::Keep => self.purge(key),
            DeadlineChange::At(_) => self.note_time(key),
            DeadlineChange::Clear => {}
        }
        let grows_raw = matches!(value, NewValue::Bytes(bytes) if deadline_makes_raw(key, bytes));
        let database = self.database;
        let shard = self.shard_mut(key);
        let replaced = shard.set(database, key.position, key.name, value, deadline);
        let overdue = replaced
            .and_then(|replaced| replaced.deadline)
            .is_some_and(|deadline| deadline <= self.now_ms());
        if overdue {
            self.expired(key);
        }
        if grows_raw {
            self.keep_raw(key);
        }
        let existed = replaced.is_some() && !overdue;
        if !existed {
            self.touched(key, EventClass::New, "new");
        }
        existed
    }

    /// Removes the key and says whether it was there.
    pub fn remove(&mut self, key: Key<'_>) -> bool {
        self.purge(key);
        let database = self.database;
        self.shard_mut(key)
            .remove(database, key.position, key.name)
            .is_some()
    }

    /// Gives the key a deadline or takes it away; false if there is no such key.
    pub fn set_deadline(&mut self, key: Key<'_>, deadline: Option<u64>) -> bool {
        let database = self.database;
        self.note_time(key);
        let shard = self.shard_mut(key);
        let found = shard.set_deadline(database, key.position, key.name, deadline);
        if deadline.is_some() {
            self.keep_raw(key);
        }
        found
    }

    /// In Redis a short string that no longer fits beside its key and its deadline becomes `raw`, and stays so when the
    /// deadline goes.
    fn keep_raw(&mut self, key: Key<'_>) {
        let entry = self.shard(key).find(self.database, key.position, key.name);
        let raw = entry.is_some_and(|entry| {
            let crowded =
                matches!(entry.value(), ValueRef::Bytes(bytes) if deadline_makes_raw(key, bytes));
            crowded && entry.deadline().is_some()
        });
        if raw {
            self.set_raw(key);
        }
    }

    /// The key's value as a rope to be changed in place, whatever its form was.
    pub fn rope_mut(&mut self, key: Key<'_>) -> Option<RopeMut<'_>> {
        self.purge(key);
        let database = self.database;
        self.shard_mut(key)
            .rope_mut(database, key.position, key.name)
    }

    /// The bytes of a short value, to be changed in place; none if the key is missing, an integer or a large value.
    pub fn edit_bytes(&mut self, key: Key<'_>) -> Option<&mut [u8]> {
        self.purge(key);
        let database = self.database;
        self.shard_mut(key)
            .edit_bytes(database, key.position, key.name)
    }

    /// Marks a short string as changed in place, which OBJECT ENCODING shows.
    pub fn set_raw(&mut self, key: Key<'_>) {
        let database = self.database;
        self.shard_mut(key)
            .set_raw(database, key.position, key.name, true);
    }

    /// Empties `database` or all databases and says how many keys there were. Only in a command that runs exclusively.
    pub fn flush(&mut self, database: Option<usize>) -> usize {
        let Access::All(all) = &self.access else {
            unreachable!("flushing runs exclusively")
        };
        let databases = match database {
            Some(one) => one..one + 1,
            None => 0..self.engine.keyspace.databases(),
        };
        let mut removed = 0;
        for mut shard in all.shards() {
            for database in databases.clone() {
                let keys = shard.len(database);
                if keys > 0 {
                    removed += keys;
                    self.log.dropped.push(shard.flush(database));
                }
            }
        }
        removed
    }

    /// The one call that every change to a key ends in: what watches, notifies and tracks hangs on it.
    pub fn touched(&mut self, key: Key<'_>, class: EventClass, event: &'static str) {
        if class != EventClass::New {
            self.log.touched += 1;
        }
        if self.listeners.contains(Listeners::CHANGES) {
            self.log.changes.push(Change {
                database: self.database as u32,
                key: key.name.into(),
                class,
                event,
            });
        }
    }

    /// Counts changes that belong to no single key.
    pub fn touched_many(&mut self, changes: usize) {
        self.log.touched += changes as i64;
    }

    /// Records what the unit did, in its deterministic form, if anybody listens to the journal.
    pub fn effect(&mut self, arguments: &[&[u8]]) {
        if self.listeners.contains(Listeners::JOURNAL) {
            self.log
                .effects
                .push(Effect::command(self.database as u32, arguments));
        }
    }

    /// The same for arguments that are costly to make.
    pub fn effect_with(&mut self, arguments: impl FnOnce() -> Vec<EffectArgument>) {
        if self.listeners.contains(Listeners::JOURNAL) {
            self.log.effects.push(Effect {
                database: self.database as u32,
                arguments: arguments(),
            });
        }
    }

    pub(super) fn only_shard(&mut self) -> Option<&mut Shard> {
        match &mut self.access {
            Access::One(_, shard) => Some(shard),
            _ => None,
        }
    }

    fn shard(&self, key: Key<'_>) -> &Shard {
        match &self.access {
            Access::One(_, shard) => shard,
            Access::Many(shards) => &shards[usize::from(key.latch)].1,
            Access::None | Access::All(_) => unreachable!("{}", KEYS_ARE_LATCHED),
        }
    }

    fn shard_mut(&mut self, key: Key<'_>) -> &mut Shard {
        match &mut self.access {
            Access::One(_, shard) => shard,
            Access::Many(shards) => &mut shards[usize::from(key.latch)].1,
            Access::None | Access::All(_) => unreachable!("{}", KEYS_ARE_LATCHED),
        }
    }

    fn each_shard(&mut self, mut each: impl FnMut(&mut Shard)) {
        match &mut self.access {
            Access::None => {}
            Access::One(_, shard) => each(shard),
            Access::Many(shards) => shards.iter_mut().for_each(|(_, shard)| each(shard)),
            Access::All(all) => all.shards().for_each(|mut shard| each(&mut shard)),
        }
    }

    /// Removes the key if its time has come: before anything is written to it.
    pub(super) fn purge(&mut self, key: Key<'_>) {
        let deadline = self
            .shard(key)
            .find(self.database, key.position, key.name)
            .and_then(|entry| entry.deadline());
        if deadline.is_some_and(|deadline| deadline <= self.now_ms()) {
            self.expire(key);
        }
    }

    /// Removes keys that were found overdue while only reading.
    fn remove_overdue(&mut self) {
        if self.log.overdue.get_mut().is_empty() {
            return;
        }
        for (position, name) in std::mem::take(self.log.overdue.get_mut()) {
            let latch = self.latch_of(self.engine.keyspace.shard_of(position));
            self.purge(Key {
                name: &name,
                position,
                latch,
            });
        }
    }

    fn expire(&mut self, key: Key<'_>) {
        let database = self.database;
        self.note_time(key);
        self.shard_mut(key).remove(database, key.position, key.name);
        self.expired(key);
    }

    /// Later units under this latch see no earlier time, whatever their clock says.
    fn note_time(&mut self, key: Key<'_>) {
        let now = self.now_ms();
        self.shard_mut(key).clamp_now(now);
    }

    /// Records that the key's time had come and that it is gone.
    pub(super) fn expired(&mut self, key: Key<'_>) {
        self.log.expired += 1;
        self.touched(key, EventClass::Expired, "expired");
        self.effect(&[b"DEL", key.name]);
    }

    fn latch_of(&self, shard: usize) -> u16 {
        match &self.access {
            Access::Many(shards) => shards
                .binary_search_by_key(&shard, |(shard, _)| *shard)
                .unwrap_or(0) as u16,
            _ => 0,
        }
    }

    fn collect_garbage(&mut self) {
        let mut garbage = std::mem::take(&mut self.log.garbage);
        self.each_shard(|shard| {
            if shard.has_garbage() {
                garbage.push(shard.take_garbage());
            }
        });
        self.log.garbage = garbage;
    }
}

/// Whether a deadline makes the difference between `embstr` and `raw` for this value.
fn deadline_makes_raw(key: Key<'_>, bytes: &[u8]) -> bool {
    let encoding =
        |has_deadline| StringEncoding::of_bytes(key.name.len(), bytes.len(), has_deadline);
    encoding(false) == StringEncoding::Embstr && encoding(true) == StringEncoding::Raw
}
