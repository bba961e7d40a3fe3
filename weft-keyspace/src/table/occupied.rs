//! One entry of a table, about to be changed.
//!
//! Owns the choice between changing an entry where it is and moving it to a slot of another size, and the accounting
//! of both. Does not know capture: who gets an [`Occupied`] has recorded the entry. Invariant: while one exists its
//! table cannot be reached otherwise, so what was found stays found.

use weft_data::collection::{Collection, CollectionRef};
use weft_rope::Rope;

use super::census::{Measure, TableCensus};
use super::{Context, Found, Table};
use crate::arena::SLOT_MAX;
use crate::entry::{Draft, Entry, KeyPart, Outside, Payload, StringRef, ValueRef};
use crate::expiry::{Due16, tick};
use crate::position::Position;
use crate::shard::DeadlineChange;

/// What an entry was like before its collection was changed in place.
pub(crate) struct BeforeChange {
    measure: Measure,
    external: usize,
    fields_due: Option<u64>,
}

/// An entry that exists, and its table.
pub(crate) struct Occupied<'a> {
    table: &'a mut Table,
    position: Position,
    found: Found,
}

impl<'a> Occupied<'a> {
    #[inline]
    pub(super) fn new(table: &'a mut Table, position: Position, found: Found) -> Occupied<'a> {
        Occupied {
            table,
            position,
            found,
        }
    }

    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// The entry.
    #[inline]
    pub(crate) fn look(&self) -> Entry<'_> {
        // SAFETY: the table is borrowed, so the entry is live and unchanged.
        unsafe { Entry::new(self.found.entry) }
    }

    pub(crate) fn set_raw(&mut self, raw: bool) {
        self.found.entry.set_raw(raw);
    }

    /// Stores another string where the old one is, if nothing else of the entry has to change for it.
    #[inline]
    pub(crate) fn overwrite_bytes(
        &mut self,
        bytes: &[u8],
        raw: bool,
        deadline: DeadlineChange,
    ) -> bool {
        let stays = match deadline {
            DeadlineChange::Keep => true,
            DeadlineChange::Clear => !self.found.entry.has_deadline(),
            DeadlineChange::At(_) => false,
        };
        if !stays {
            return false;
        }
        let before = self.measure();
        // SAFETY: the table is borrowed uniquely.
        let done = unsafe { self.found.entry.overwrite_bytes(bytes, raw) }
            || bytes.len() > SLOT_MAX && self.overwrite_rope(bytes, raw);
        if done {
            let after = Measure::string(bytes.len());
            self.table.census.changed(before, after);
        }
        done
    }

    /// Stores another packed collection where the old one is, if nothing else of the entry has to change for it.
    #[inline]
    pub(crate) fn overwrite_packed(&mut self, context: Context<'_>, bytes: &[u8]) -> bool {
        let before = self.measure();
        let fields_due = self.found.entry.fields_due();
        // SAFETY: the table is borrowed uniquely.
        let done = unsafe { self.found.entry.overwrite_packed(bytes) };
        if done {
            self.table.census.changed(before, self.measure());
            self.fields_changed(context, fields_due);
        }
        done
    }

    #[inline]
    fn measure(&self) -> Measure {
        Measure::of(self.look().value())
    }

    /// Brings the bounds and the count of entries with fields that expire in step.
    #[inline]
    fn fields_changed(&mut self, context: Context<'_>, before: Option<u64>) {
        let after = self.found.entry.fields_due();
        if before == after {
            return;
        }
        let change = isize::from(after.is_some()) - isize::from(before.is_some());
        self.table.count_fielded(change);
        if let Some(at) = after {
            self.note_due(context, at);
        }
    }

    /// The same for a string that cannot be inside an entry.
    fn overwrite_rope(&mut self, bytes: &[u8], raw: bool) -> bool {
        // SAFETY: the table is borrowed uniquely.
        let rope = unsafe { self.found.entry.rope_mut() };
        let done = rope.is_some_and(|rope| rope.overwrite(bytes));
        if done {
            self.set_raw(raw);
        }
        done
    }

    /// Stores another value; the one outside that was there comes back.
    pub(crate) fn set_value(
        &mut self,
        context: Context<'_>,
        value: Payload<'_>,
        raw: bool,
        deadline: Option<u64>,
    ) -> Option<Outside> {
        let entry = self.found.entry;
        let external = entry.external_bytes();
        let fields_due = entry.fields_due();
        let (before, after) = (self.measure(), Measure::of_payload(&value));
        self.table.census.changed(before, after);
        let value = match value {
            // Known now, it can go where the old one was.
            Payload::Bytes(bytes) if bytes.len() > SLOT_MAX => {
                Payload::Rope(Rope::from_slice(bytes))
            }
            other => other,
        };
        if !entry.same_shape(&value, deadline.is_some())
            || entry.size_with(&value).next_multiple_of(8) != entry.slot_bytes()
        {
            // SAFETY: the entry is freed next, without looking at its value.
            let old = unsafe { entry.take_outside() };
            entry.set_raw(raw);
            self.move_to(context, external, value, deadline);
            self.fields_changed(context, fields_due);
            return old;
        }
        // SAFETY: the shape is the same, a slot of this size is what the entry has, and the table is borrowed uniquely.
        let old = unsafe { entry.overwrite(value, raw) };
        let after = entry.external_bytes();
        if external != after {
            self.table.external = self.table.external - external + after;
            self.table.changed = true;
        }
        if let Some(at) = deadline
            && entry.deadline() != Some(at)
        {
            let census = &mut self.table.census;
            census.deadline_changed(entry.deadline(), deadline);
            entry.set_deadline(at);
            self.note_due(context, at);
        }
        self.fields_changed(context, fields_due);
        old
    }

    /// Sets or removes the deadline.
    pub(crate) fn set_deadline(&mut self, context: Context<'_>, deadline: Option<u64>) {
        let entry = self.found.entry;
        match deadline {
            None if !entry.has_deadline() => return,
            Some(at) if entry.has_deadline() => {
                let census = &mut self.table.census;
                census.deadline_changed(entry.deadline(), deadline);
                entry.set_deadline(at);
                self.note_due(context, at);
                return;
            }
            _ => {}
        }
        let external = entry.external_bytes();
        // SAFETY: what is borrowed here is written to the new slot before the old one is freed.
        let value = match unsafe { entry.value() } {
            ValueRef::String(StringRef::Int(value)) => Payload::Int(value),
            ValueRef::String(StringRef::Bytes(bytes)) => Payload::Bytes(bytes),
            ValueRef::Collection(CollectionRef::Packed(bytes)) => Payload::Packed(bytes),
            ValueRef::String(StringRef::Rope(_)) | ValueRef::Collection(_) => {
                // SAFETY: the entry is freed next, without looking at its value.
                match unsafe { entry.take_outside() } {
                    Some(Outside::Rope(rope)) => Payload::Rope(rope),
                    Some(Outside::Collection(collection)) => Payload::Large(collection),
                    None => unreachable!("the value lies outside"),
                }
            }
        };
        self.move_to(context, external, value, deadline);
    }

    /// The inline bytes, to be changed in place.
    pub(crate) fn into_bytes(self) -> Option<&'a mut [u8]> {
        // SAFETY: the table is borrowed uniquely for 'a.
        unsafe { self.found.entry.bytes_mut() }
    }

    /// The rope, to be changed in place, and the table's counts of external bytes and of all bytes as published, and its
    /// census, to be kept right.
    pub(crate) fn into_rope(
        self,
    ) -> Option<(&'a mut Rope, [&'a mut usize; 2], &'a mut TableCensus)> {
        // SAFETY: the table is borrowed uniquely for 'a, and entries are no part of its fields.
        let rope = unsafe { self.found.entry.rope_mut() }?;
        let table = self.table;
        Some((
            rope,
            [&mut table.external, &mut table.held],
            &mut table.census,
        ))
    }

    /// The large collection, to be changed in place. [`Occupied::collection_changed`] is called afterwards.
    pub(crate) fn collection_mut(&mut self) -> Option<&mut Collection> {
        // SAFETY: the table is borrowed uniquely.
        unsafe { self.found.entry.collection_mut() }
    }

    /// What [`Occupied::collection_changed`] has to know.
    pub(crate) fn before_change(&self) -> BeforeChange {
        BeforeChange {
            measure: self.measure(),
            external: self.found.entry.external_bytes(),
            fields_due: self.found.entry.fields_due(),
        }
    }

    /// Brings counts and bounds in step with a collection that was changed in place.
    pub(crate) fn collection_changed(&mut self, context: Context<'_>, before: &BeforeChange) {
        self.table.census.changed(before.measure, self.measure());
        let after = self.found.entry.external_bytes();
        if before.external != after {
            self.table.external = self.table.external - before.external + after;
            self.table.changed = true;
        }
        self.fields_changed(context, before.fields_due);
    }

    /// Removes the entry; its value comes back if it lay outside.
    pub(crate) fn remove(self, context: Context<'_>) -> Option<Outside> {
        let (measure, deadline) = (self.measure(), self.look().deadline());
        self.table.census.went(measure, deadline);
        let fields_due = self.found.entry.fields_due();
        let Occupied {
            table,
            position,
            found,
        } = self;
        let entry = found.entry;
        let external = entry.external_bytes();
        // SAFETY: the entry is freed next, without looking at its value.
        let value = unsafe { entry.take_outside() };
        let slots = table.slots();
        let index = table.directory().index(position);
        match found.place.bucket() {
            Some((bucket, slot)) => {
                slots[index].segment().vacate(bucket, slot, context.now);
                let (first, _) = table.directory().span(index, slots[index].depth());
                slots[first].set_count(slots[first].count() - 1);
            }
            None => table.unstash(position, found.handle),
        }
        if let Some(long) = entry.long_key() {
            // SAFETY: nothing leads to the entry any more.
            unsafe { long.free() };
        }
        table.len -= 1;
        table.external -= external;
        if entry.has_deadline() {
            table.count_deadlines(-1);
        }
        if fields_due.is_some() {
            table.count_fielded(-1);
        }
        table.arena.free(found.handle, entry.slot_bytes());
        table.changed = true;
        table.shrink(context, position);
        value
    }

    /// Lowers all bounds for a new deadline of the entry or of one of its fields.
    fn note_due(&mut self, context: Context<'_>, deadline: u64) {
        if let Some((bucket, _)) = self.found.place.bucket() {
            let due = Due16::new(tick(deadline), context.now);
            let segment = self.table.segment_at(self.position);
            segment.buckets()[bucket].lower_due(due, context.now);
        }
        self.table.lower_ranges(context, self.position, deadline);
    }

    /// Writes the entry anew, to a slot of the right size. What lay outside has been taken, its long key moves along.
    #[cold]
    fn move_to(
        &mut self,
        context: Context<'_>,
        external: usize,
        value: Payload<'_>,
        deadline: Option<u64>,
    ) {
        let Found {
            entry,
            handle,
            place,
        } = self.found;
        // SAFETY: the key is read before the slot is freed.
        let key = unsafe { entry.key() };
        let long = entry.long_key();
        let mut draft = Draft {
            key: long.map_or(KeyPart::Inline(key), KeyPart::Long),
            value,
            deadline,
            raw: entry.is_raw(),
            access: entry.access(),
        };
        draft.fit();
        let table = &mut *self.table;
        let before = entry.deadline();
        table.census.deadline_changed(before, deadline);
        // First the new one: the draft may still point into the old slot.
        let new = table.store(context, draft);
        table.external = table.external - external + table.entry(new).external_bytes();
        match place.bucket() {
            Some((bucket, slot)) => {
                let segment = table.segment_at(self.position);
                segment.buckets()[bucket].set_handle(slot, new);
            }
            None => {
                table.unstash(self.position, handle);
                table.stash(self.position, new);
            }
        }
        table.arena.free(handle, entry.slot_bytes());
        table.changed = true;
        table.count_deadlines(isize::from(deadline.is_some()) - isize::from(before.is_some()));
        self.found = Found {
            entry: table.entry(new),
            handle: new,
            place,
        };
        if let Some(at) = deadline {
            self.note_due(context, at);
        }
    }
}

impl Table {
    /// Adds to the number of entries with a deadline.
    fn count_deadlines(&mut self, change: isize) {
        self.deadlines = self.deadlines.wrapping_add_signed(change);
        self.forget_bound();
    }

    /// Adds to the number of entries with fields that expire.
    fn count_fielded(&mut self, change: isize) {
        self.fielded = self.fielded.wrapping_add_signed(change);
        self.changed = true;
        self.forget_bound();
    }

    fn forget_bound(&mut self) {
        if self.deadlines == 0 && self.fielded == 0 {
            self.due = u64::MAX;
        }
    }
}
