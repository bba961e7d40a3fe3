//! A unit: what is atomic.
//!
//! It holds the latches of its keys and is the only way handlers reach the keyspace. Whatever it does is buffered
//! in its log: effects, changes, statistics. `commit` lets them out together, latches still held.
//! Time stands still within a unit: it is read when first asked for. A key whose time has come is missing for every
//! handler from then on; it is removed before the key is written, and at the latest by `commit`.

mod waiting;
mod watching;

use std::cell::{Cell, RefCell};

use smallvec::SmallVec;
use weft_data::collection::{Built, CollectionRef, Draft, Kind};
use weft_data::string_value::StringEncoding;
use weft_keyspace::{
    DeadlineChange, Dropped, Entry, Exclusive, Garbage, Latched, NewValue, OwnedEntry, OwnedValue,
    Position, RopeMut, Shard, StringRef, Wanted,
};

use super::context::Key;
use crate::access::AccessRule;
use crate::clock::Clock;
use crate::engine::{Engine, Listeners, WorkerState};
use crate::error::CommandError;
use crate::journal::{Effect, EffectArgument};
pub(super) use waiting::Ready;
pub(crate) use watching::forget;

/// What kind of change an event tells of: the classes of `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// DEL, EXPIRE, RENAME and the like.
    Generic,
    /// Strings.
    String,
    /// Lists.
    List,
    /// Sets.
    Set,
    /// Hashes.
    Hash,
    /// Sorted sets.
    SortedSet,
    /// Streams.
    Stream,
    /// A key's time has come.
    Expired,
    /// A key was made.
    New,
    /// A change that nobody is notified of.
    Silent,
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

/// What came of changing a collection.
#[derive(Clone, Copy, Debug)]
pub struct Edited<R> {
    /// What the change itself says.
    pub result: R,
    /// Nothing is left: the key is gone.
    pub emptied: bool,
}

/// Keys by database, position and name.
type Overdue = SmallVec<[(usize, Position, Box<[u8]>); 1]>;

/// What a unit has done and not yet let out. Reused from unit to unit.
#[derive(Default)]
pub(crate) struct UnitLog {
    effects: Vec<Effect>,
    changes: Vec<Change>,
    /// Keys that were touched while somebody waited for them.
    ready: Vec<Ready>,
    /// Keys that were read after their time had come.
    overdue: RefCell<Overdue>,
    dropped: Vec<Dropped>,
    garbage: Vec<Garbage>,
    touched: i64,
    expired: i64,
    expired_fields: i64,
    hits: Cell<i64>,
    misses: Cell<i64>,
    access_rule: AccessRule,
    /// Where packed collections are changed.
    scratch: Vec<u8>,
    /// The state of what decides by chance whether a use counts.
    chance: Cell<u64>,
}

impl UnitLog {
    /// From now on uses of keys are kept by this rule.
    pub(crate) fn set_access_rule(&mut self, rule: AccessRule) {
        self.access_rule = rule;
    }
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
    /// The keyspace is this unit's alone although it has latches one by one.
    alone: Option<Exclusive<'k>>,
    database: usize,
    now: Cell<Option<u64>>,
    /// The second that uses of keys are noted with: read once a batch, which is exact enough.
    used_at_s: Cell<Option<u64>>,
    /// A key of the command was looked up in order to be written.
    looked: Cell<bool>,
    /// Uses leave no trace.
    traceless: bool,
    listeners: Listeners,
    log: UnitLog,
}

impl<'k> Unit<'k> {
    /// A unit's frame for a batch of commands, with no latch taken yet.
    pub(crate) fn new(engine: &'k Engine, clock: &'k dyn Clock, log: UnitLog) -> Self {
        Self {
            engine,
            clock,
            access: Access::None,
            alone: None,
            database: 0,
            now: Cell::new(None),
            used_at_s: Cell::new(None),
            looked: Cell::new(false),
            traceless: false,
            listeners: Listeners::NONE,
            log,
        }
    }

    /// Begins the next command of a transaction, at the same point in time.
    pub(super) fn begin_next(&mut self, database: usize, traceless: bool) {
        self.remove_overdue();
        self.go_on_for(database, traceless);
    }

    /// Gives the log's memory back for the next batch.
    pub(crate) fn finish(self) -> UnitLog {
        self.log
    }

    /// Begins a command of a client that has selected `database`.
    pub(super) fn begin(&mut self, database: usize) {
        self.database = database;
        self.now.set(None);
        self.looked.set(false);
        self.traceless = false;
        self.listeners = self.engine.listeners();
    }

    /// From now on uses of keys are kept by this rule.
    pub fn set_access_rule(&mut self, rule: AccessRule) {
        self.log.set_access_rule(rule);
    }

    /// Whether uses of keys by this command leave no trace in their idle time and frequency (CLIENT NO-TOUCH).
    pub fn set_traceless(&mut self, traceless: bool) {
        self.traceless = traceless;
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
        self.alone = None;
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
        if self.log.touched == 0 && self.log.effects.is_empty() && self.log.changes.is_empty() {
            return;
        }
        statistics
            .changes
            .add(std::mem::take(&mut self.log.touched));
        statistics
            .expired_keys
            .add(std::mem::take(&mut self.log.expired));
        if self.log.expired_fields != 0 {
            let expired = std::mem::take(&mut self.log.expired_fields);
            statistics.expired_fields.add(expired);
        }
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

    /// Runs `act` with keys addressed in another database, which the unit's latches cover as well.
    pub fn in_database<R>(&mut self, database: usize, act: impl FnOnce(&mut Self) -> R) -> R {
        let own = std::mem::replace(&mut self.database, database);
        let result = act(self);
        self.database = own;
        result
    }

    /// The key's live entry, used and counted as a hit or a miss: for commands that read values.
    pub fn read(&self, key: Key<'_>) -> Option<Entry<'_>> {
        let entry = self.look(key);
        if let Some(entry) = entry {
            self.note_use(entry);
        }
        self.count(entry)
    }

    /// The key's string, used and counted as [`Unit::read`] does it.
    ///
    /// # Errors
    /// If the key holds something else.
    pub fn string(&self, key: Key<'_>) -> Result<Option<StringRef<'_>>, CommandError> {
        self.read(key).map(string_of).transpose()
    }

    /// The key's string before it is written, as [`Unit::peek`] does it.
    ///
    /// # Errors
    /// If the key holds something else.
    pub fn peek_string(&self, key: Key<'_>) -> Result<Option<StringRef<'_>>, CommandError> {
        self.peek(key).map(string_of).transpose()
    }

    /// The key's collection, used and counted as [`Unit::read`] does it.
    ///
    /// # Errors
    /// If the key holds something of another kind.
    pub fn collection(
        &self,
        key: Key<'_>,
        kind: Kind,
    ) -> Result<Option<CollectionRef<'_>>, CommandError> {
        let entry = self.read(key);
        entry.map(|entry| collection_of(entry, kind)).transpose()
    }

    /// The key's collection before it is written, as [`Unit::peek`] does it.
    ///
    /// # Errors
    /// If the key holds something of another kind.
    pub fn peek_collection(
        &self,
        key: Key<'_>,
        kind: Kind,
    ) -> Result<Option<CollectionRef<'_>>, CommandError> {
        let entry = self.peek(key);
        entry.map(|entry| collection_of(entry, kind)).transpose()
    }

    /// Lets `act` change the key's collection, or make one if there is no such key. Its deadline stays. A key whose
    /// collection has become empty is gone, unless it is a stream.
    ///
    /// # Errors
    /// If the key holds something of another kind; `act` is not called then.
    pub fn edit<R>(
        &mut self,
        key: Key<'_>,
        kind: Kind,
        act: impl FnOnce(&mut Draft<'_>) -> R,
    ) -> Result<Edited<R>, CommandError> {
        #[cfg(feature = "pauses")]
        self.let_go();
        self.purge(key);
        if !self.looked.get() {
            self.peek(key);
        }
        if kind == Kind::Hash {
            // Its fields may get deadlines, which are noted relative to the shard's time.
            self.note_time(key);
        }
        let database = self.database;
        let wanted = Wanted {
            kind,
            birth: self.birth(),
        };
        let mut scratch = std::mem::take(&mut self.log.scratch);
        let shard = self.shard_mut(key);
        let edited =
            shard.edit_collection(database, key.position, key.name, wanted, &mut scratch, act);
        self.log.scratch = scratch;
        let edited = edited.ok_or(CommandError::WrongType)?;
        if edited.exists && !edited.existed {
            self.touched(key, EventClass::New, "new");
        }
        Ok(Edited {
            result: edited.result,
            emptied: edited.existed && !edited.exists,
        })
    }

    /// Stores a whole collection in place of whatever the key holds, without a deadline; whether there was anything. One
    /// that is empty only removes what is there.
    pub fn put_collection(&mut self, key: Key<'_>, built: Built) -> bool {
        let existed = self.remove(key);
        if !built.as_ref().is_void() {
            let value = match built {
                Built::Packed(ref bytes) => NewValue::Packed(bytes),
                Built::Large(collection) => NewValue::Large(collection),
            };
            self.replace(key, value, DeadlineChange::Clear);
            if !existed {
                self.touched(key, EventClass::New, "new");
            }
        }
        existed
    }

    /// The seed of the tables of new collections.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.engine.collection_seed
    }

    /// The key's live entry, counted but not used: for commands that ask about a key and not for its value.
    pub fn read_unused(&self, key: Key<'_>) -> Option<Entry<'_>> {
        self.count(self.look(key))
    }

    /// The key's live entry, used but not counted: for commands that will write. Writing it is then no second use.
    pub fn peek(&self, key: Key<'_>) -> Option<Entry<'_>> {
        let entry = self.look(key)?;
        self.note_use(entry);
        self.looked.set(true);
        Some(entry)
    }

    /// The access bits of a key that is made now.
    pub(super) fn birth(&self) -> u32 {
        self.log.access_rule.birth(self.used_at_s())
    }

    fn note_use(&self, entry: Entry<'_>) {
        if !self.traceless {
            let bits = entry.access();
            let chance = || chance(&self.log.chance);
            let rule = self.log.access_rule;
            entry.set_access(rule.used(bits, self.used_at_s(), chance));
        }
    }

    fn count<'e>(&self, entry: Option<Entry<'e>>) -> Option<Entry<'e>> {
        let counter = if entry.is_some() {
            &self.log.hits
        } else {
            &self.log.misses
        };
        counter.set(counter.get() + 1);
        entry
    }

    fn used_at_s(&self) -> u64 {
        if let Some(second) = self.used_at_s.get() {
            return second;
        }
        let second = self.clock.unix_ms() / 1000;
        self.used_at_s.set(Some(second));
        second
    }

    /// The key's live entry, neither counted nor used.
    pub fn look(&self, key: Key<'_>) -> Option<Entry<'_>> {
        let entry = self
            .shard(key)
            .find(self.database, key.position, key.name)?;
        match entry.deadline() {
            Some(deadline) if deadline <= self.now_ms() => {
                self.log
                    .overdue
                    .borrow_mut()
                    .push((self.database, key.position, key.name.into()));
                None
            }
            _ => Some(entry),
        }
    }

    /// Stores a value under the key and says whether the key was there before.
    pub fn set(&mut self, key: Key<'_>, value: NewValue<'_>, deadline: DeadlineChange) -> bool {
        let existed = self.replace(key, value, deadline);
        if !existed {
            self.touched(key, EventClass::New, "new");
        }
        existed
    }

    /// The same, and nobody is told of a new key.
    fn replace(&mut self, key: Key<'_>, value: NewValue<'_>, deadline: DeadlineChange) -> bool {
        #[cfg(feature = "pauses")]
        self.let_go();
        match deadline {
            // The deadline to be kept must be that of a live key.
            DeadlineChange::Keep => self.purge(key),
            DeadlineChange::At(_) => self.note_time(key),
            DeadlineChange::Clear => {}
        }
        if matches!(value, NewValue::Packed(_) | NewValue::Large(_)) {
            // A hash may come with deadlines of fields.
            self.note_time(key);
        }
        let grows_raw = matches!(value, NewValue::Bytes(bytes) if deadline_makes_raw(key, bytes));
        let (database, rule, second) = (self.database, self.log.access_rule, self.used_at_s());
        let leave = self.traceless || self.looked.get();
        let mut luck = self.log.chance.take();
        let shard = self.shard_mut(key);
        let stamp = |old: Option<u32>| match old {
            None => rule.birth(second),
            Some(bits) if leave => bits,
            Some(bits) => rule.used(bits, second, || next_chance(&mut luck)),
        };
        let replaced = shard.set_stamped(database, key.position, key.name, value, deadline, stamp);
        self.log.chance.set(luck);
        let overdue = replaced
            .and_then(|replaced| replaced.deadline)
            .is_some_and(|deadline| deadline <= self.now_ms());
        if overdue {
            self.expired(key);
        }
        if grows_raw {
            self.keep_raw(key);
        }
        replaced.is_some() && !overdue
    }

    /// Stores a whole entry under the key, as a new one, in place of whatever is there.
    pub fn put(&mut self, key: Key<'_>, value: OwnedValue, deadline: Option<u64>, raw: bool) {
        self.remove(key);
        let change = deadline.map_or(DeadlineChange::Clear, DeadlineChange::At);
        let flattened = raw && matches!(value, OwnedValue::Rope(_));
        let value = match value {
            // As `as_new` does, without sharing it once more.
            OwnedValue::Rope(rope) => NewValue::Rope(rope),
            OwnedValue::Collection(Built::Large(collection)) => NewValue::Large(collection),
            ref other => other.as_new(raw),
        };
        self.set(key, value, change);
        // What was raw and long enough to lie apart may be stored beside its key now.
        if flattened {
            self.set_raw(key);
        }
    }

    /// Takes the key out and returns all of it; none if it is missing.
    pub fn take(&mut self, key: Key<'_>) -> Option<OwnedEntry> {
        self.purge(key);
        let database = self.database;
        self.shard_mut(key).take(database, key.position, key.name)
    }

    /// Removes the key and says whether it was there.
    pub fn remove(&mut self, key: Key<'_>) -> bool {
        self.purge(key);
        self.discard(key)
    }

    /// Removes the key, due or not, and leaves a large value to the reaper.
    fn discard(&mut self, key: Key<'_>) -> bool {
        let database = self.database;
        let removed = self.shard_mut(key).remove(database, key.position, key.name);
        let existed = removed.is_some();
        // What is small is freed here.
        if let Some(value) = removed.and_then(|removed| removed.value)
            && value.pieces() > 1
        {
            self.log.garbage.push(Garbage {
                values: vec![value],
            });
        }
        existed
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
                matches!(entry.string(), Some(StringRef::Bytes(bytes)) if deadline_makes_raw(key, bytes));
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
        self.note_all_ready(|concerned| databases.contains(&concerned));
        removed
    }

    /// Exchanges two databases. Only in a command that runs exclusively.
    pub fn swap_databases(&mut self, one: usize, other: usize) {
        let Access::All(all) = &self.access else {
            unreachable!("exchanging databases runs exclusively")
        };
        let (keyspace, now) = (&self.engine.keyspace, self.now_ms());
        for mut shard in all.shards() {
            shard.mark_swapped([one, other], now, |name| keyspace.position(name));
            shard.swap_tables(one, other);
        }
        self.note_all_ready(|concerned| concerned == one || concerned == other);
    }

    /// The one call that every change to a key ends in: what watches, notifies and tracks hangs on it.
    pub fn touched(&mut self, key: Key<'_>, class: EventClass, event: &'static str) {
        if class != EventClass::New {
            self.log.touched += 1;
        }
        self.tell(key, class, event);
    }

    /// The same for a change that is already counted with another key's: the other half of a move.
    pub fn touched_too(&mut self, key: Key<'_>, class: EventClass, event: &'static str) {
        self.tell(key, class, event);
    }

    fn tell(&mut self, key: Key<'_>, class: EventClass, event: &'static str) {
        self.tell_watchers(key, class);
        if self.may_be_awaited(key) {
            self.note_ready(key.name);
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

    /// Whether anybody listens to the journal: effects that are costly to make can be left out otherwise.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.listeners.contains(Listeners::JOURNAL)
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

    /// The whole keyspace, for a command that runs exclusively.
    pub(super) fn alone(&self) -> &Exclusive<'k> {
        match &self.access {
            Access::All(all) => all,
            _ => unreachable!("only commands that run exclusively look at all shards"),
        }
    }

    /// A key that the command does not name. Only in one whose row says that it needs the whole keyspace for its arguments.
    #[must_use]
    pub fn unnamed<'n>(&self, name: &'n [u8]) -> Key<'n> {
        let keyspace = &self.engine.keyspace;
        let position = keyspace.position(name);
        let shard = keyspace.shard_of(position);
        let latch = match &self.access {
            Access::Many(shards) if shards.len() == keyspace.shards() => shard as u32,
            _ => self.latch_of(shard),
        };
        Key {
            name,
            position,
            latch,
        }
    }

    fn shard(&self, key: Key<'_>) -> &Shard {
        match &self.access {
            Access::One(_, shard) => shard,
            Access::Many(shards) => &shards[key.latch as usize].1,
            Access::None | Access::All(_) => unreachable!("{}", KEYS_ARE_LATCHED),
        }
    }

    fn shard_mut(&mut self, key: Key<'_>) -> &mut Shard {
        match &mut self.access {
            Access::One(_, shard) => shard,
            Access::Many(shards) => &mut shards[key.latch as usize].1,
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
        if self
            .engine
            .clients
            .paused_until_ns(self.clock.monotonic_ns())
            .is_some()
        {
            // The data stands still while clients are paused; the keys count as missing all the same.
            self.log.overdue.get_mut().clear();
            return;
        }
        for (database, position, name) in std::mem::take(self.log.overdue.get_mut()) {
            let latch = self.latch_of(self.engine.keyspace.shard_of(position));
            let key = Key {
                name: &name,
                position,
                latch,
            };
            self.in_database(database, |unit| unit.purge(key));
        }
    }

    fn expire(&mut self, key: Key<'_>) {
        self.note_time(key);
        self.discard(key);
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

    pub(super) fn count_expired_fields(&mut self, fields: usize) {
        self.log.expired_fields += fields as i64;
    }

    fn latch_of(&self, shard: usize) -> u32 {
        match &self.access {
            Access::Many(shards) => shards
                .binary_search_by_key(&shard, |(shard, _)| *shard)
                .unwrap_or(0) as u32,
            _ => 0,
        }
    }

    /// A fault on purpose, which a test has to find: takes the same latches anew, so that others may come in between
    /// what the unit has read or written and what it writes next.
    #[cfg(feature = "pauses")]
    fn let_go(&mut self) {
        if !weft_keyspace::lets_go() {
            return;
        }
        match std::mem::replace(&mut self.access, Access::None) {
            Access::One(shard, held) => {
                drop(held);
                self.latch_one(shard);
            }
            Access::Many(held) => {
                let shards: Vec<usize> = held.iter().map(|(shard, _)| *shard).collect();
                drop(held);
                self.latch_many(&shards);
            }
            other => self.access = other,
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

fn string_of(entry: Entry<'_>) -> Result<StringRef<'_>, CommandError> {
    entry.string().ok_or(CommandError::WrongType)
}

fn collection_of(entry: Entry<'_>, kind: Kind) -> Result<CollectionRef<'_>, CommandError> {
    entry
        .collection()
        .filter(|collection| collection.kind() == kind)
        .ok_or(CommandError::WrongType)
}

/// The next number from 0 to 1 of a sequence that looks random (SplitMix64).
fn next_chance(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

fn chance(state: &Cell<u64>) -> f64 {
    let mut next = state.get();
    let drawn = next_chance(&mut next);
    state.set(next);
    drawn
}

/// Whether a deadline makes the difference between `embstr` and `raw` for this value.
fn deadline_makes_raw(key: Key<'_>, bytes: &[u8]) -> bool {
    let encoding =
        |has_deadline| StringEncoding::of_bytes(key.name.len(), bytes.len(), has_deadline);
    encoding(false) == StringEncoding::Embstr && encoding(true) == StringEncoding::Raw
}
