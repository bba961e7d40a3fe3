//! One shard: the tables of its databases and all operations on them.
//!
//! Owns the rule that every change goes through one point, [`Shard::before_change`], which records the entry as it was
//! while a unit captures. Does not know commands, and never frees anything large: that is left for whoever unlatches.
//! Invariant: the words in the spine (counts, roots, bitmaps) agree with the tables whenever the latch is free.

mod capture;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use weft_rope::Rope;

use crate::arena::SLOT_MAX;
use crate::entry::{Draft, Entry, KeyPart, NewValue, OwnedEntry, Payload, ValueRef, is_large};
use crate::expiry::{ExpireProgress, tick};
use crate::keyspace::{Dropped, Memory, Rng};
use crate::latch::Guarded;
use crate::position::Position;
use crate::spine::Spine;
use crate::table::{Context, DueWalk, Found, Remains, Table};
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

/// What a removal leaves over.
#[derive(Debug, Default)]
pub struct Removed {
    /// When the entry would have expired, absolute milliseconds.
    pub deadline: Option<u64>,
    /// A long value, to be dropped when the latch is free.
    pub value: Option<Rope>,
}

/// Large values that were overwritten or removed; dropping it frees them.
#[derive(Debug, Default)]
pub struct Garbage {
    /// The values.
    pub ropes: Vec<Rope>,
}

impl Garbage {
    /// Whether there is nothing to free.
    pub fn is_empty(&self) -> bool {
        self.ropes.is_empty()
    }
}

/// A shard of the keyspace; reached through its latch.
#[repr(C)]
pub struct Shard {
    spine: Arc<Spine>,
    index: usize,
    tables: Box<[Option<Box<Table>>]>,
    /// The latest time seen here, milliseconds.
    now: u64,
    capture: Option<Box<Capture>>,
    garbage: Vec<Rope>,
}

impl Shard {
    pub(crate) fn new(spine: Arc<Spine>, index: usize) -> Shard {
        let tables = (0..spine.databases).map(|_| None).collect();
        Shard {
            spine,
            index,
            tables,
            now: 0,
            capture: None,
            garbage: Vec::new(),
        }
    }

    /// The shard's number.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The time that counts under this latch: the later of `now_ms` and the latest seen here, milliseconds.
    #[inline]
    pub fn clamp_now(&mut self, now_ms: u64) -> u64 {
        self.now = self.now.max(now_ms);
        self.now
    }

    /// The entry with this key, expired or not.
    #[inline]
    pub fn find(&self, db: usize, position: Position, key: &[u8]) -> Option<Entry<'_>> {
        let table = self.tables[db].as_ref()?;
        table.locate(position, key).map(|found| table.look(found))
    }

    /// Sets a key's value; whether the key existed. The LRU/LFU bits of an existing key stay.
    pub fn set(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        value: NewValue<'_>,
        deadline: DeadlineChange,
    ) -> bool {
        let found = self.before_change(db, position, key);
        let flat;
        let (value, raw) = match value {
            NewValue::Int(value) => (Payload::Int(value), false),
            NewValue::Bytes(bytes) => (Payload::Bytes(bytes), false),
            NewValue::RawBytes(bytes) => (Payload::Bytes(bytes), true),
            NewValue::Rope(rope) if rope.len() < SLOT_MAX => {
                flat = rope.to_vec();
                (Payload::Bytes(&flat), false)
            }
            NewValue::Rope(rope) => (Payload::Rope(rope), false),
        };
        match found {
            Some(found) => {
                let before = found.entry.deadline();
                let after = match deadline {
                    DeadlineChange::Keep => before,
                    DeadlineChange::Clear => None,
                    DeadlineChange::At(at) => Some(at),
                };
                self.overwrite(db, position, key, found, value, raw, after);
                true
            }
            None => {
                let mut draft = Draft {
                    key: KeyPart::new(key, position),
                    value,
                    deadline: match deadline {
                        DeadlineChange::At(at) => Some(at),
                        _ => None,
                    },
                    raw,
                    access: 0,
                };
                draft.fit();
                self.table_or_new(db);
                self.change(db, |context, table| {
                    table.insert(context, position, draft);
                });
                false
            }
        }
    }

    /// The bytes of an inline string, to be changed in place; `None` for anything else.
    pub fn edit_bytes(&mut self, db: usize, position: Position, key: &[u8]) -> Option<&mut [u8]> {
        let found = self.before_change(db, position, key)?;
        // SAFETY: the unique borrow of the shard keeps the entry live and alone.
        unsafe { found.entry.bytes_mut() }
    }

    /// The value as a rope, to be changed in place; it becomes one if it was none, and `raw`.
    pub fn rope_mut(&mut self, db: usize, position: Position, key: &[u8]) -> Option<RopeMut<'_>> {
        let mut found = self.before_change(db, position, key)?;
        let rope = match self.table(db).look(found).value() {
            ValueRef::Rope(_) => None,
            ValueRef::Bytes(bytes) => Some(Rope::from_slice(bytes)),
            ValueRef::Int(value) => Some(Rope::from_slice(value.to_string().as_bytes())),
        };
        if let Some(rope) = rope {
            let deadline = found.entry.deadline();
            self.overwrite(
                db,
                position,
                key,
                found,
                Payload::Rope(rope),
                true,
                deadline,
            );
            found = self.table(db).locate(position, key)?;
        }
        found.entry.set_raw(true);
        // SAFETY: the unique borrow of the shard keeps the entry live and alone; the table is reached only when the
        // rope's borrow has ended.
        let rope: *mut Rope = unsafe { found.entry.rope_mut() }?;
        Some(RopeMut {
            before: found.entry.external_bytes(),
            shard: self,
            db,
            found,
            rope,
        })
    }

    /// Marks an existing inline string as `raw` or not; whether the key exists.
    pub fn set_raw(&mut self, db: usize, position: Position, key: &[u8], raw: bool) -> bool {
        let Some(found) = self.before_change(db, position, key) else {
            return false;
        };
        found.entry.set_raw(raw);
        true
    }

    /// Removes a key. A long value comes back to be dropped when the latch is free.
    pub fn remove(&mut self, db: usize, position: Position, key: &[u8]) -> Option<Removed> {
        let found = self.before_change(db, position, key)?;
        Some(self.detach(db, position, found))
    }

    /// Removes a key and returns all of it.
    pub fn take(&mut self, db: usize, position: Position, key: &[u8]) -> Option<OwnedEntry> {
        let found = self.before_change(db, position, key)?;
        let entry = self.table(db).look(found);
        let taken = OwnedEntry {
            key: key.to_vec(),
            value: entry.to_owned_value(),
            deadline: entry.deadline(),
            raw: entry.is_raw(),
            access: entry.access(),
        };
        // The value is shared with `taken`, so nothing large is freed here.
        drop(self.detach(db, position, found));
        Some(taken)
    }

    /// Sets or removes a deadline, absolute milliseconds; whether the key exists.
    pub fn set_deadline(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        deadline: Option<u64>,
    ) -> bool {
        let Some(found) = self.before_change(db, position, key) else {
            return false;
        };
        let entry = found.entry;
        match deadline {
            None if !entry.has_deadline() => {}
            Some(at) if entry.has_deadline() => {
                entry.set_deadline(at);
                self.change(db, |context, table| {
                    table.note_deadline(context, position, found, at);
                });
            }
            _ => {
                let external = entry.external_bytes();
                // SAFETY: what is borrowed here is written to the new slot before the old one is freed.
                let value = match unsafe { entry.value() } {
                    ValueRef::Int(value) => Payload::Int(value),
                    ValueRef::Bytes(bytes) => Payload::Bytes(bytes),
                    ValueRef::Rope(_) => {
                        // SAFETY: the entry is freed next, without looking at its value.
                        let rope = unsafe { entry.take_rope() };
                        Payload::Rope(rope.unwrap_or_default())
                    }
                };
                self.rebuild(db, position, key, found, external, value, deadline);
            }
        }
        true
    }

    /// Keys in a database.
    pub fn len(&self, db: usize) -> usize {
        self.tables[db].as_ref().map_or(0, |table| table.len())
    }

    /// Keys with a deadline in a database.
    pub fn with_deadline(&self, db: usize) -> usize {
        self.tables[db]
            .as_ref()
            .map_or(0, |table| table.deadlines())
    }

    /// Empties a database. What was in it is freed by the caller, when the latch is free. Not captured.
    pub fn flush(&mut self, db: usize) -> Dropped {
        let Some(table) = self.tables[db].take() else {
            return Dropped::default();
        };
        self.spine
            .roots
            .at(self.index, db)
            .store(std::ptr::null_mut(), Release);
        self.publish(db);
        self.spine.mark_empty(self.index, db);
        Dropped::new(&self.spine, Remains::new(*table))
    }

    /// Exchanges two databases. Not captured.
    pub fn swap_tables(&mut self, a: usize, b: usize) {
        self.tables.swap(a, b);
        for db in [a, b] {
            let root = self.tables[db]
                .as_ref()
                .map_or(std::ptr::null_mut(), |table| table.root());
            self.spine.roots.at(self.index, db).store(root, Release);
            self.publish(db);
        }
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
        let table = self.tables[db].as_ref()?;
        table.scan(self.context(db), from, max_buckets, each)
    }

    /// A random entry of a database.
    pub fn random(&self, db: usize, rng: &mut impl Rng) -> Option<Entry<'_>> {
        self.tables[db].as_ref()?.random(rng)
    }

    /// Removes up to `max` entries that are due; `each` sees every one before it goes. Looks at no more than 16 times as
    /// many buckets. Large values go to the garbage.
    pub fn expire_due(
        &mut self,
        db: usize,
        now_ms: u64,
        max: usize,
        mut each: impl FnMut(&Entry<'_>),
    ) -> ExpireProgress {
        let now_ms = self.clamp_now(now_ms);
        let mut progress = ExpireProgress::default();
        if self.tables[db].is_none() {
            return progress;
        }
        let start = self.spine.partition.shard_start(self.index);
        let buckets = max.saturating_mul(BUCKETS_PER_REMOVAL);
        let mut walk = DueWalk::new(now_ms, start, buckets);
        while progress.removed < max {
            let due = self.change(db, |context, table| table.next_due(context, &mut walk));
            let Some((position, found)) = due else {
                break;
            };
            each(&self.table(db).look(found));
            self.record(db, position, found);
            let removed = self.detach(db, position, found);
            self.discard(removed.value);
            progress.removed += 1;
        }
        progress.more = !walk.is_done();
        progress.next_due_ms = self.next_due_ms(db);
        progress
    }

    /// Lower bound of the earliest deadline in a database, milliseconds.
    pub fn next_due_ms(&self, db: usize) -> Option<u64> {
        self.tables[db].as_ref()?.next_due_ms()
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

    /// Large values that were overwritten or expired. What nobody takes is freed right after the latch.
    pub fn take_garbage(&mut self) -> Garbage {
        Garbage {
            ropes: std::mem::take(&mut self.garbage),
        }
    }

    /// Memory of this shard.
    pub fn memory(&self) -> Memory {
        self.tables
            .iter()
            .flatten()
            .map(|table| Memory {
                entries: table.arena().entry_bytes() as u64,
                pages: table.arena().page_bytes() as u64,
                tables: table.table_bytes() as u64,
                external: table.external_bytes() as u64,
                retired: 0,
            })
            .fold(Memory::default(), Memory::plus)
    }

    pub(crate) fn arena_mut(&mut self, db: usize) -> Option<&mut crate::arena::Arena> {
        self.tables[db].as_mut().map(|table| table.arena_mut())
    }

    /// Publishes what the spine says about a database here.
    pub(crate) fn publish(&self, db: usize) {
        let keys = self.len(db);
        self.spine.keys.at(self.index, db).store(keys, Relaxed);
        self.spine
            .deadlines
            .at(self.index, db)
            .store(self.with_deadline(db), Relaxed);
        if keys > 0 {
            self.spine.mark_nonempty(self.index, db);
        }
        let held = self
            .tables
            .iter()
            .flatten()
            .map(|table| table.held_bytes())
            .sum();
        self.spine.held.at(self.index, 0).store(held, Relaxed);
    }

    /// The one point that every change of an entry passes first: finds the entry and records it as it is.
    fn before_change(&mut self, db: usize, position: Position, key: &[u8]) -> Option<Found> {
        let found = self.tables[db]
            .as_ref()
            .and_then(|table| table.locate(position, key));
        if let Some(capture) = &mut self.capture {
            let entry = found.map(|found| {
                let table = self.tables[db].as_ref().expect("it was found there");
                table.look(found)
            });
            capture.note(db, position, key, entry);
        }
        found
    }

    /// [`Shard::before_change`] for an entry that was found otherwise.
    fn record(&mut self, db: usize, position: Position, found: Found) {
        if let Some(capture) = &mut self.capture {
            let table = self.tables[db].as_ref().expect("it was found there");
            let entry = table.look(found);
            capture.note(db, position, entry.key(), Some(entry));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one entry's parts")]
    fn overwrite(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        found: Found,
        value: Payload<'_>,
        raw: bool,
        deadline: Option<u64>,
    ) {
        let entry = found.entry;
        let external = entry.external_bytes();
        let slot = self.table(db).arena().slot_bytes(found.handle);
        let fits = entry.same_shape(&value, deadline.is_some())
            && entry.size_with(&value).next_multiple_of(8) == slot;
        if !fits {
            // SAFETY: the entry is freed next, without looking at its value.
            let old = unsafe { entry.take_rope() };
            entry.set_raw(raw);
            self.rebuild(db, position, key, found, external, value, deadline);
            self.discard(old);
            return;
        }
        // SAFETY: the shape is the same and the slot large enough; the unique borrow of the shard makes it alone.
        let old = unsafe { entry.overwrite(value, raw) };
        let renewed = match deadline {
            Some(at) if entry.deadline() != Some(at) => {
                entry.set_deadline(at);
                Some(at)
            }
            _ => None,
        };
        let after = entry.external_bytes();
        if external != after || renewed.is_some() {
            self.change(db, |context, table| {
                table.external_changed(external, after);
                if let Some(at) = renewed {
                    table.note_deadline(context, position, found, at);
                }
            });
        }
        self.discard(old);
    }

    /// Moves an entry to a slot of another size.
    #[expect(clippy::too_many_arguments, reason = "one entry's parts")]
    fn rebuild(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        found: Found,
        external: usize,
        value: Payload<'_>,
        deadline: Option<u64>,
    ) {
        let entry = found.entry;
        let mut draft = Draft {
            key: entry
                .long_key()
                .map_or_else(|| KeyPart::new(key, position), KeyPart::Long),
            value,
            deadline,
            raw: entry.is_raw(),
            access: entry.access(),
        };
        draft.fit();
        self.change(db, |context, table| {
            table.replace(context, position, found, external, draft);
        });
    }

    /// Takes an entry out of its table.
    fn detach(&mut self, db: usize, position: Position, found: Found) -> Removed {
        let external = found.entry.external_bytes();
        let removed = Removed {
            deadline: found.entry.deadline(),
            // SAFETY: the entry is freed next, without looking at its value.
            value: unsafe { found.entry.take_rope() },
        };
        self.change(db, |context, table| {
            table.remove(context, position, found, external);
        });
        removed
    }

    /// Drops a value that is no more; a large one later.
    fn discard(&mut self, value: Option<Rope>) {
        if let Some(rope) = value.filter(is_large) {
            self.garbage.push(rope);
        }
    }

    #[inline]
    fn table(&self, db: usize) -> &Table {
        self.tables[db].as_ref().expect("an entry was found in it")
    }

    fn table_or_new(&mut self, db: usize) {
        if self.tables[db].is_none() {
            let table = Table::new(self.context(db));
            self.tables[db] = Some(Box::new(table));
            self.publish(db);
        }
    }

    /// Runs `act` on an existing table and publishes what it changed.
    fn change<R>(&mut self, db: usize, act: impl FnOnce(Context<'_>, &mut Table) -> R) -> R {
        let context = Context {
            spine: &self.spine,
            shard: self.index,
            root: self.spine.roots.at(self.index, db),
            now: tick(self.now),
        };
        let table = self.tables[db].as_mut().expect("an entry was found in it");
        let before = (table.len(), table.deadlines(), table.held_bytes());
        let result = act(context, table);
        let after = (table.len(), table.deadlines(), table.held_bytes());
        if before.0 != after.0 {
            self.spine.keys.at(self.index, db).store(after.0, Relaxed);
            if before.0 == 0 {
                self.spine.mark_nonempty(self.index, db);
            }
        }
        if before.1 != after.1 {
            let word = self.spine.deadlines.at(self.index, db);
            word.store(after.1, Relaxed);
        }
        if before.2 != after.2 {
            let word = self.spine.held.at(self.index, 0);
            word.store(word.load(Relaxed) - before.2 + after.2, Relaxed);
        }
        result
    }

    #[inline]
    fn context(&self, db: usize) -> Context<'_> {
        Context {
            spine: &self.spine,
            shard: self.index,
            root: self.spine.roots.at(self.index, db),
            now: tick(self.now),
        }
    }
}

impl Guarded for Shard {
    type Residue = Vec<Rope>;

    #[inline]
    fn leave(&mut self) -> Vec<Rope> {
        if self.garbage.is_empty() {
            return Vec::new();
        }
        std::mem::take(&mut self.garbage)
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        for db in 0..self.tables.len() {
            drop(self.flush(db));
        }
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("index", &self.index)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// A rope inside the keyspace, to be changed in place.
pub struct RopeMut<'a> {
    shard: &'a mut Shard,
    db: usize,
    found: Found,
    before: usize,
    rope: *mut Rope,
}

impl Deref for RopeMut<'_> {
    type Target = Rope;

    fn deref(&self) -> &Rope {
        // SAFETY: the shard is borrowed uniquely, so the entry is live and alone.
        unsafe { &*self.rope }
    }
}

impl DerefMut for RopeMut<'_> {
    fn deref_mut(&mut self) -> &mut Rope {
        // SAFETY: the shard is borrowed uniquely, so the entry is live and alone.
        unsafe { &mut *self.rope }
    }
}

impl Drop for RopeMut<'_> {
    fn drop(&mut self) {
        let after = self.found.entry.external_bytes();
        let before = self.before;
        self.shard
            .change(self.db, |_, table| table.external_changed(before, after));
    }
}

impl fmt::Debug for RopeMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RopeMut").field(&**self).finish()
    }
}
