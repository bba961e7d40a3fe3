//! One shard: the tables of its databases and all operations on them.
//!
//! Owns the rule that every change goes through one point, [`Shard::before_change`], which records the entry as it was
//! while a unit captures. Does not know commands, and never frees anything large: that is left for whoever unlatches.
//! Invariant: the words in the spine (counts, roots, bitmaps) agree with the tables whenever the latch is free.

mod capture;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use weft_data::collection::{CollectionRef, Draft, Kind};
use weft_rope::Rope;

use crate::arena::SLOT_MAX;
use crate::entry::{
    Draft as EntryDraft, Entry, KeyPart, NewValue, Outside, OwnedEntry, Payload, StringRef,
    ValueRef, rope_bytes,
};
use crate::expiry::{ExpireProgress, tick};
use crate::keyspace::{Memory, Rng};
use crate::latch::Guarded;
use crate::position::Position;
use crate::spine::Spine;
use crate::table::{Census, Context, Databases, Dropped, Measure, Occupied, Table, TableCensus};
use crate::waiters::{Awaited, Waiter, Waiters};
use crate::watchers::{Watched, Watcher, Watchers};
use capture::Capture;
pub use capture::{PreImage, Prior};

/// Buckets that expiry may look at for every entry that it may remove.
const BUCKETS_PER_REMOVAL: usize = 16;

/// What to do with a key's deadline when its value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineChange {
    /// Leave it as it is; a new key gets none.
    Keep,
    /// Remove it.
    Clear,
    /// Set it, absolute milliseconds.
    At(u64),
}

/// What a value took the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The deadline it had, milliseconds since 1970.
    pub deadline: Option<u64>,
}

/// What a removal leaves over.
#[derive(Debug, Default)]
pub struct Removed {
    /// When the entry would have expired, absolute milliseconds.
    pub deadline: Option<u64>,
    /// A value outside its entry, to be dropped when the latch is free.
    pub value: Option<Outside>,
}

/// Large values that were overwritten or removed; dropping it frees them.
#[derive(Debug, Default)]
pub struct Garbage {
    /// The values.
    pub values: Vec<Outside>,
}

impl Garbage {
    /// Whether there is nothing to free.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// A shard of the keyspace; reached through its latch.
pub struct Shard {
    databases: Databases,
    /// The latest time seen here, milliseconds.
    now: u64,
    capture: Option<Box<Capture>>,
    garbage: Vec<Outside>,
    /// Somebody waits for a key.
    awaited: bool,
    waiters: Option<Box<Waiters>>,
    watchers: Option<Box<Watchers>>,
}

impl Shard {
    pub(crate) fn new(spine: Arc<Spine>, index: usize) -> Shard {
        Shard {
            databases: Databases::new(spine, index),
            now: 0,
            capture: None,
            garbage: Vec::new(),
            awaited: false,
            waiters: None,
            watchers: None,
        }
    }

    /// The shard's number.
    pub fn index(&self) -> usize {
        self.databases.shard()
    }

    /// The time that counts under this latch: the later of `now_ms` and the latest seen here, milliseconds.
    #[inline]
    pub fn clamp_now(&mut self, now_ms: u64) -> u64 {
        self.now = self.now.max(now_ms);
        self.now
    }

    /// The latest time seen under this latch, milliseconds.
    #[inline]
    pub fn latest_now(&self) -> u64 {
        self.now
    }

    /// The entry with this key, expired or not.
    #[inline]
    pub fn find(&self, db: usize, position: Position, key: &[u8]) -> Option<Entry<'_>> {
        self.databases.find(db, position, key)
    }

    /// Sets a key's value and tells what was there before, expired or not. The LRU/LFU bits of an existing key stay.
    pub fn set(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        value: NewValue<'_>,
        deadline: DeadlineChange,
    ) -> Option<Replaced> {
        let keep = |access: Option<u32>| access.unwrap_or(0);
        self.set_stamped(db, position, key, value, deadline, keep)
    }

    /// The same, with the LRU/LFU bits that `stamp` makes of those of an existing key, or of none for a new one.
    pub fn set_stamped(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        value: NewValue<'_>,
        deadline: DeadlineChange,
        stamp: impl FnOnce(Option<u32>) -> u32,
    ) -> Option<Replaced> {
        if self.capture.is_some() {
            self.before_change(db, position, key);
        }
        if let Some((context, table)) = self.databases.table_mut(db, tick(self.now))
            && let Some(mut occupied) = table.occupied(position, key)
        {
            let entry = occupied.look();
            let replaced = Replaced {
                deadline: entry.deadline(),
            };
            entry.set_access(stamp(Some(entry.access())));
            let in_place = match &value {
                NewValue::Bytes(bytes) => occupied.overwrite_bytes(bytes, false, deadline),
                NewValue::RawBytes(bytes) => occupied.overwrite_bytes(bytes, true, deadline),
                NewValue::Packed(bytes) if deadline == DeadlineChange::Keep => {
                    occupied.overwrite_packed(context, bytes)
                }
                _ => false,
            };
            if !in_place {
                let old = set_existing(context, occupied, value, deadline);
                self.databases.publish(db);
                self.discard(old);
            }
            return Some(replaced);
        }
        self.insert(db, position, key, value, deadline, stamp(None));
        None
    }

    /// The bytes of an inline string, to be changed in place; `None` for anything else.
    pub fn edit_bytes(&mut self, db: usize, position: Position, key: &[u8]) -> Option<&mut [u8]> {
        self.before_change(db, position, key);
        let (_, table) = self.databases.table_mut(db, 0)?;
        table.occupied(position, key)?.into_bytes()
    }

    /// Lets `act` change a collection, or make one where there is no key. The deadline stays. A packed one is changed in
    /// `scratch` and stored again. `None`, and nothing done, when the key holds something else than what is wanted.
    pub fn edit_collection<R>(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        wanted: Wanted,
        scratch: &mut Vec<u8>,
        act: impl FnOnce(&mut Draft<'_>) -> R,
    ) -> Option<Edited<R>> {
        if self.capture.is_some() {
            self.before_change(db, position, key);
        }
        scratch.clear();
        if let Some((context, table)) = self.databases.table_mut(db, tick(self.now))
            && let Some(occupied) = table.occupied(position, key)
        {
            if occupied.look().collection()?.kind() != wanted.kind {
                return None;
            }
            let (result, exists, outside) = edit(context, occupied, scratch, act);
            self.databases.publish(db);
            self.discard(outside);
            return Some(Edited {
                result,
                existed: true,
                exists,
            });
        }
        let mut draft = Draft::Packed(scratch);
        let result = act(&mut draft);
        let value = match draft {
            Draft::Packed(bytes) if bytes.is_empty() => None,
            Draft::Packed(bytes) => Some(NewValue::Packed(bytes)),
            Draft::Grown(collection) => Some(NewValue::Large(collection)),
            Draft::Large(_) => unreachable!("it was not given a large one"),
        };
        let exists = value.is_some();
        if let Some(value) = value {
            self.insert(db, position, key, value, DeadlineChange::Keep, wanted.birth);
        }
        Some(Edited {
            result,
            existed: false,
            exists,
        })
    }

    /// The value as a rope, to be changed in place; it becomes one if it was none, and `raw`. `None` for a collection.
    pub fn rope_mut(&mut self, db: usize, position: Position, key: &[u8]) -> Option<RopeMut<'_>> {
        self.alter(db, position, key, |context, mut occupied| {
            let rope = match occupied.look().value() {
                ValueRef::Collection(_) | ValueRef::String(StringRef::Rope(_)) => None,
                ValueRef::String(StringRef::Bytes(bytes)) => Some(Rope::from_slice(bytes)),
                ValueRef::String(StringRef::Int(value)) => {
                    Some(Rope::from_slice(value.to_string().as_bytes()))
                }
            };
            if let Some(rope) = rope {
                let deadline = occupied.look().deadline();
                occupied.set_value(context, Payload::Rope(rope), true, deadline);
            }
            occupied.set_raw(true);
        })?;
        let (table, held) = self.databases.table_and_held(db)?;
        let (rope, counts, census) = table.occupied(position, key)?.into_rope()?;
        Some(RopeMut {
            before: rope_bytes(rope),
            length_before: rope.len(),
            rope,
            counts,
            census,
            held,
        })
    }

    /// Marks an existing string as `raw` or not; whether the key exists.
    pub fn set_raw(&mut self, db: usize, position: Position, key: &[u8], raw: bool) -> bool {
        self.alter(db, position, key, |_, mut occupied| occupied.set_raw(raw))
            .is_some()
    }

    /// Removes a key. A value outside its entry comes back to be dropped when the latch is free.
    pub fn remove(&mut self, db: usize, position: Position, key: &[u8]) -> Option<Removed> {
        self.alter(db, position, key, |context, occupied| Removed {
            deadline: occupied.look().deadline(),
            value: occupied.remove(context),
        })
    }

    /// Removes a key and returns all of it.
    pub fn take(&mut self, db: usize, position: Position, key: &[u8]) -> Option<OwnedEntry> {
        self.alter(db, position, key, |context, occupied| {
            let entry = occupied.look();
            let taken = OwnedEntry {
                key: key.to_vec(),
                value: entry.to_owned_value(),
                deadline: entry.deadline(),
                raw: entry.is_raw(),
                access: entry.access(),
            };
            // A long value is shared with `taken`, so nothing large is freed here.
            drop(occupied.remove(context));
            taken
        })
    }

    /// Sets or removes a deadline, absolute milliseconds; whether the key exists.
    pub fn set_deadline(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        deadline: Option<u64>,
    ) -> bool {
        self.alter(db, position, key, |context, mut occupied| {
            occupied.set_deadline(context, deadline);
        })
        .is_some()
    }

    /// Keys in a database.
    pub fn len(&self, db: usize) -> usize {
        self.databases.table(db).map_or(0, Table::len)
    }

    /// Keys with a deadline in a database.
    pub fn with_deadline(&self, db: usize) -> usize {
        self.databases.table(db).map_or(0, Table::deadlines)
    }

    /// Empties a database. What was in it is freed by the caller, when the latch is free. Not captured.
    pub fn flush(&mut self, db: usize) -> Dropped {
        if let Some(watchers) = &self.watchers {
            watchers.mark_all(db);
        }
        self.databases.take(db)
    }

    /// Exchanges two databases. Not captured.
    pub fn swap_tables(&mut self, a: usize, b: usize) {
        self.databases.swap(a, b);
    }

    /// Visits the entries of up to `max_buckets` buckets from `from` on; where to go on, `None` when the shard is done.
    /// An entry that is there all the time is visited at least once, however the table changes in between.
    pub fn scan(
        &self,
        db: usize,
        from: Position,
        max_buckets: usize,
        each: impl FnMut(Entry<'_>),
    ) -> Option<Position> {
        let table = self.databases.table(db)?;
        let context = self.databases.context(db, tick(self.now));
        table.scan(context, from, max_buckets, each)
    }

    /// A random entry of a database.
    pub fn random(&self, db: usize, rng: &mut impl Rng) -> Option<Entry<'_>> {
        self.databases.table(db)?.random(rng)
    }

    /// Removes up to `max` entries that are due; `each` sees every one before it goes. For a collection with fields that
    /// are due `fields` is called instead, which removes them; it counts as one. Looks at no more than 16 times as many
    /// buckets. Large values go to the garbage.
    pub fn expire_due(
        &mut self,
        db: usize,
        now_ms: u64,
        max: usize,
        mut each: impl FnMut(&Entry<'_>),
        mut fields: impl FnMut(&[u8], &mut Draft<'_>),
    ) -> ExpireProgress {
        let now_ms = self.clamp_now(now_ms);
        let mut progress = ExpireProgress::default();
        let Some((context, table)) = self.databases.table_mut(db, tick(now_ms)) else {
            return progress;
        };
        let buckets = max.saturating_mul(BUCKETS_PER_REMOVAL);
        let mut walk = table.due_walk(context, now_ms, buckets);
        let mut scratch = Vec::new();
        while progress.removed < max
            && let Some(occupied) = table.next_due(context, &mut walk)
        {
            let entry = occupied.look();
            if let Some(capture) = &mut self.capture {
                capture.note(db, occupied.position(), entry.key(), Some(entry));
            }
            let outside = if entry.deadline().is_some_and(|at| at <= now_ms) {
                each(&entry);
                occupied.remove(context)
            } else {
                let key: Box<[u8]> = entry.key().into();
                scratch.clear();
                let act = |draft: &mut Draft<'_>| fields(&key, draft);
                edit(context, occupied, &mut scratch, act).2
            };
            self.garbage.extend(outside.filter(Outside::is_large));
            progress.removed += 1;
        }
        progress.more = table.end_walk(context, &walk);
        // Bounds are coarse: what they call due now was looked at and is due later.
        let least = if progress.more { 0 } else { now_ms + 1 };
        progress.next_due_ms = table.next_due_ms().map(|due| due.max(least));
        self.databases.publish(db);
        progress
    }

    /// Lower bound of the earliest deadline in a database, milliseconds.
    pub fn next_due_ms(&self, db: usize) -> Option<u64> {
        self.databases.table(db)?.next_due_ms()
    }

    /// From now on every entry is recorded before it changes.
    pub fn capture(&mut self) {
        self.capture.get_or_insert_default();
    }

    /// Ends capturing: the entries as they were, the first of each key, in the order of the changes.
    pub fn captured(&mut self) -> Vec<PreImage> {
        self.capture
            .take()
            .map_or_else(Vec::new, |capture| capture.into_images())
    }

    /// Puts an entry back as it was. Images go back in the reverse of their order.
    pub fn restore(&mut self, image: PreImage) {
        let PreImage {
            db,
            position,
            key,
            prior,
        } = image;
        match prior {
            None => {
                if let Some(removed) = self.remove(db, position, &key) {
                    self.discard(removed.value);
                }
            }
            Some(prior) => {
                let deadline = prior
                    .deadline
                    .map_or(DeadlineChange::Clear, DeadlineChange::At);
                self.set(db, position, &key, prior.value.as_new(prior.raw), deadline);
                self.set_raw(db, position, &key, prior.raw);
                if let Some(entry) = self.find(db, position, &key) {
                    entry.set_access(prior.access);
                }
            }
        }
    }

    /// Whether large values wait to be freed.
    #[inline]
    pub fn has_garbage(&self) -> bool {
        !self.garbage.is_empty()
    }

    /// Large values that were overwritten or expired. What nobody takes is freed right after the latch.
    pub fn take_garbage(&mut self) -> Garbage {
        Garbage {
            values: std::mem::take(&mut self.garbage),
        }
    }

    /// Whether anybody waits for a key here.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        self.awaited
    }

    /// Whether anybody waits for this key.
    pub fn awaits(&self, db: usize, position: Position, key: &[u8]) -> bool {
        self.awaited
            && self
                .waiters()
                .is_some_and(|it| it.awaits(db, position, key))
    }

    /// Lets somebody wait for a key behind all who do already; the ticket, never 0, that names the place in this queue.
    pub fn enqueue(
        &mut self,
        db: usize,
        kind: Awaited,
        position: Position,
        key: &[u8],
        waiter: Waiter,
    ) -> u64 {
        self.awaited = true;
        let waiters = self.waiters.get_or_insert_with(|| Box::new(Waiters::new()));
        waiters.push(db, kind, position, key, waiter)
    }

    /// The first who waits for a key behind the place with this ticket (0: the first of all), and its ticket.
    pub fn next_waiter(
        &self,
        db: usize,
        kind: Awaited,
        position: Position,
        key: &[u8],
        after: u64,
    ) -> Option<(u64, &Waiter)> {
        self.waiters()?.next(db, kind, position, key, after)
    }

    /// Takes somebody out of a queue; whether that was necessary.
    pub fn dequeue(
        &mut self,
        db: usize,
        kind: Awaited,
        position: Position,
        key: &[u8],
        ticket: u64,
    ) -> bool {
        let Some(waiters) = &mut self.waiters else {
            return false;
        };
        let removed = waiters.remove(db, kind, position, key, ticket);
        self.awaited = !waiters.is_empty();
        removed
    }

    /// Every database, position and name that somebody waits for here, some of them more than once.
    pub fn awaited_keys(&self) -> impl Iterator<Item = (usize, Position, &[u8])> {
        self.waiters().into_iter().flat_map(Waiters::keys)
    }

    fn waiters(&self) -> Option<&Waiters> {
        self.waiters.as_deref()
    }

    /// Whether anybody may be watching a key here.
    #[inline]
    pub fn has_watchers(&self) -> bool {
        self.watchers.is_some()
    }

    /// Whether anybody watches a key here.
    pub fn watches_anything(&self) -> bool {
        let watchers = self.watchers.as_ref();
        watchers.is_some_and(|watchers| !watchers.is_empty())
    }

    /// Lets somebody hear of changes to a key, which is there if it is `alive`.
    pub fn watch(&mut self, db: usize, key: &[u8], alive: bool, watcher: &Arc<Watcher>) -> Watched {
        let watchers = self.watchers.get_or_insert_default();
        watchers.add(db, key, alive, watcher)
    }

    /// It hears of the key no longer; whether it was the last who watched it.
    pub fn unwatch(&mut self, db: usize, key: &[u8], watcher: &Arc<Watcher>) -> bool {
        let Some(watchers) = &mut self.watchers else {
            return false;
        };
        let last = watchers.remove(db, key, watcher);
        if watchers.is_spent() {
            self.watchers = None;
        }
        last
    }

    /// Lets those know who watch a key that it has changed; `removed`: no more than that it is gone.
    #[cold]
    pub fn mark_watchers(&self, db: usize, key: &[u8], removed: bool) {
        if let Some(watchers) = &self.watchers {
            watchers.mark(db, key, removed);
        }
    }

    /// Lets those know who watch keys that two databases are about to change places, as far as a key is in either of them at
    /// `now_ms`.
    pub fn mark_swapped(
        &self,
        databases: [usize; 2],
        now_ms: u64,
        hash: impl Fn(&[u8]) -> Position,
    ) {
        let Some(watchers) = &self.watchers else {
            return;
        };
        watchers.mark_swapped(databases, |key| {
            databases.iter().any(|db| {
                let entry = self.find(*db, hash(key), key);
                entry.is_some_and(|entry| entry.deadline().is_none_or(|at| at > now_ms))
            })
        });
    }

    /// Memory of this shard.
    pub fn memory(&self) -> Memory {
        self.databases.memory()
    }

    /// Memory of this shard's part of a database.
    pub fn database_memory(&self, db: usize) -> Memory {
        self.databases
            .table(db)
            .map_or_else(Memory::default, Table::memory)
    }

    /// Adds what is known of all entries of a database here.
    pub fn add_to_census(&self, db: usize, census: &mut Census) {
        if let Some(table) = self.databases.table(db) {
            census.add(table.census(), table.deadlines());
        }
    }

    /// Checks all invariants of a database here: for tests.
    ///
    /// # Panics
    ///
    /// When one does not hold.
    #[doc(hidden)]
    pub fn verify(&self, db: usize) {
        if let Some(table) = self.databases.table(db) {
            table.verify(self.databases.context(db, tick(self.now)));
        }
    }

    pub(crate) fn databases_mut(&mut self) -> &mut Databases {
        &mut self.databases
    }

    /// The one point that every change of an entry passes: records it as it is, lets `act` change it, and publishes what
    /// that did to the counts. `None` when the key does not exist, which is recorded too.
    #[inline]
    fn alter<R>(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        act: impl FnOnce(Context<'_>, Occupied<'_>) -> R,
    ) -> Option<R> {
        if self.capture.is_some() {
            self.before_change(db, position, key);
        }
        let (context, table) = self.databases.table_mut(db, tick(self.now))?;
        let occupied = table.occupied(position, key)?;
        let result = act(context, occupied);
        self.databases.publish(db);
        Some(result)
    }

    /// Records an entry as it is, while capturing.
    fn before_change(&mut self, db: usize, position: Position, key: &[u8]) {
        if let Some(capture) = &mut self.capture {
            let entry = self.databases.find(db, position, key);
            capture.note(db, position, key, entry);
        }
    }

    /// Adds a key that does not exist.
    fn insert(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        value: NewValue<'_>,
        deadline: DeadlineChange,
        access: u32,
    ) {
        let raw = matches!(value, NewValue::RawBytes(_));
        let mut flat = Vec::new();
        let mut draft = EntryDraft {
            key: KeyPart::new(key, position),
            value: payload(value, &mut flat),
            deadline: match deadline {
                DeadlineChange::At(at) => Some(at),
                DeadlineChange::Keep | DeadlineChange::Clear => None,
            },
            raw,
            access,
        };
        draft.fit();
        let (context, table) = self.databases.table_or_new(db, tick(self.now));
        table.insert(context, position, draft);
        self.databases.publish(db);
    }

    /// Drops a value that is no more; a large one later.
    fn discard(&mut self, value: Option<Outside>) {
        self.garbage.extend(value.filter(Outside::is_large));
    }
}

/// Which collection is to be changed.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// What it is.
    pub kind: Kind,
    /// The LRU/LFU bits of its key, if that is made for it.
    pub birth: u32,
}

/// What came of changing a collection.
#[derive(Clone, Copy, Debug)]
pub struct Edited<R> {
    /// What the change itself says.
    pub result: R,
    /// There was a collection before.
    pub existed: bool,
    /// There is one now.
    pub exists: bool,
}

/// Lets `act` change the collection that an entry holds; removes the entry when nothing is left of it. What `act` says,
/// whether the entry is still there, and what lay outside of one that is not.
fn edit<R>(
    context: Context<'_>,
    mut occupied: Occupied<'_>,
    scratch: &mut Vec<u8>,
    act: impl FnOnce(&mut Draft<'_>) -> R,
) -> (R, bool, Option<Outside>) {
    if let Some(CollectionRef::Packed(bytes)) = occupied.look().collection() {
        scratch.extend_from_slice(bytes);
        let mut draft = Draft::Packed(scratch);
        let result = act(&mut draft);
        let deadline = occupied.look().deadline();
        match draft {
            Draft::Packed(bytes) if bytes.is_empty() => {
                let outside = occupied.remove(context);
                return (result, false, outside);
            }
            Draft::Packed(bytes) => {
                let same = matches!(occupied.look().collection(), Some(CollectionRef::Packed(old)) if old == *bytes);
                if !same && !occupied.overwrite_packed(context, bytes) {
                    occupied.set_value(context, Payload::Packed(bytes), false, deadline);
                }
            }
            Draft::Grown(collection) => {
                occupied.set_value(context, Payload::Large(collection), false, deadline);
            }
            Draft::Large(_) => unreachable!("it was not given a large one"),
        }
        return (result, true, None);
    }
    let before = occupied.before_change();
    let collection = occupied.collection_mut().expect("a large collection");
    let result = act(&mut Draft::Large(collection));
    let emptied = collection.is_void();
    occupied.collection_changed(context, &before);
    let outside = if emptied {
        occupied.remove(context)
    } else {
        None
    };
    (result, !emptied, outside)
}

/// Replaces an entry's value; the one outside that was there comes back.
fn set_existing(
    context: Context<'_>,
    mut occupied: Occupied<'_>,
    value: NewValue<'_>,
    deadline: DeadlineChange,
) -> Option<Outside> {
    let raw = matches!(value, NewValue::RawBytes(_));
    let mut flat = Vec::new();
    let value = payload(value, &mut flat);
    let deadline = match deadline {
        DeadlineChange::Keep => occupied.look().deadline(),
        DeadlineChange::Clear => None,
        DeadlineChange::At(at) => Some(at),
    };
    occupied.set_value(context, value, raw, deadline)
}

/// The form in which a value is stored; a short rope is flattened into `flat`.
fn payload<'a>(value: NewValue<'a>, flat: &'a mut Vec<u8>) -> Payload<'a> {
    match value {
        NewValue::Int(value) => Payload::Int(value),
        NewValue::Bytes(bytes) | NewValue::RawBytes(bytes) => Payload::Bytes(bytes),
        NewValue::Rope(rope) if rope.len() < SLOT_MAX => {
            *flat = rope.to_vec();
            Payload::Bytes(flat)
        }
        NewValue::Rope(rope) => Payload::Rope(rope),
        NewValue::Packed(bytes) => Payload::Packed(bytes),
        NewValue::Large(collection) => Payload::Large(collection),
    }
}

impl Guarded for Shard {
    type Residue = Vec<Outside>;

    #[inline]
    fn leave(&mut self) -> Vec<Outside> {
        if self.garbage.is_empty() {
            return Vec::new();
        }
        std::mem::take(&mut self.garbage)
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("index", &self.index())
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// A rope inside the keyspace, to be changed in place.
pub struct RopeMut<'a> {
    rope: &'a mut Rope,
    before: usize,
    length_before: usize,
    census: &'a mut TableCensus,
    /// The table's counts of bytes outside its arena and of all bytes, and the shard's of all bytes.
    counts: [&'a mut usize; 2],
    held: &'a AtomicUsize,
}

impl Deref for RopeMut<'_> {
    type Target = Rope;

    fn deref(&self) -> &Rope {
        self.rope
    }
}

impl DerefMut for RopeMut<'_> {
    fn deref_mut(&mut self) -> &mut Rope {
        self.rope
    }
}

impl Drop for RopeMut<'_> {
    fn drop(&mut self) {
        let after = rope_bytes(self.rope);
        for count in &mut self.counts {
            **count = **count - self.before + after;
        }
        let before = Measure::string(self.length_before);
        self.census
            .changed(before, Measure::string(self.rope.len()));
        let held = self.held.load(Relaxed) - self.before + after;
        self.held.store(held, Relaxed);
    }
}

impl fmt::Debug for RopeMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RopeMut").field(&**self).finish()
    }
}
