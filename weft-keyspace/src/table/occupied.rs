//! One entry of a table, about to be changed.
//!
//! Owns the choice between changing an entry where it is and moving it to a slot of another size, and the accounting
//! of both. Does not know capture: who gets an [`Occupied`] has recorded the entry. Invariant: while one exists its
//! table cannot be reached otherwise, so what was found stays found.

use weft_rope::Rope;

use super::census::{TableCensus, payload_length, value_length};
use super::{Context, Found, Table};
use crate::arena::SLOT_MAX;
use crate::entry::{Draft, Entry, KeyPart, Payload, ValueRef};
use crate::expiry::{Due16, tick};
use crate::position::Position;
use crate::shard::DeadlineChange;

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
        let before = self.value_length();
        // SAFETY: the table is borrowed uniquely.
        let done = unsafe { self.found.entry.overwrite_bytes(bytes, raw) }
            || bytes.len() > SLOT_MAX && self.overwrite_rope(bytes, raw);
        if done {
            self.table.census.length_changed(before, bytes.len());
        }
        done
    }

    #[inline]
    fn value_length(&self) -> usize {
        value_length(self.look().value())
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

    /// Stores another value; the long one that was there comes back.
    pub(crate) fn set_value(
        &mut self,
        context: Context<'_>,
        value: Payload<'_>,
        raw: bool,
        deadline: Option<u64>,
    ) -> Option<Rope> {
        let entry = self.found.entry;
        let external = entry.external_bytes();
        let before = self.value_length();
        self.table
            .census
            .length_changed(before, payload_length(&value));
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
            let old = unsafe { entry.take_rope() };
            entry.set_raw(raw);
            self.move_to(context, external, value, deadline);
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
            self.note_deadline(context, at);
        }
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
                self.note_deadline(context, at);
                return;
            }
            _ => {}
        }
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

    /// Removes the entry; its long value comes back.
    pub(crate) fn remove(self, context: Context<'_>) -> Option<Rope> {
        let (length, deadline) = (self.value_length(), self.look().deadline());
        self.table.census.went(length, deadline);
        let Occupied {
            table,
            position,
            found,
        } = self;
        let entry = found.entry;
        let external = entry.external_bytes();
        // SAFETY: the entry is freed next, without looking at its value.
        let rope = unsafe { entry.take_rope() };
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
        table.arena.free(found.handle);
        table.changed = true;
        table.shrink(context, position);
        rope
    }

    /// Lowers all bounds for a new deadline.
    fn note_deadline(&mut self, context: Context<'_>, deadline: u64) {
        if let Some((bucket, _)) = self.found.place.bucket() {
            let due = Due16::new(tick(deadline), context.now);
            let segment = self.table.segment_at(self.position);
            segment.buckets()[bucket].lower_due(due, context.now);
        }
        self.table.lower_ranges(context, self.position, deadline);
    }

    /// Writes the entry anew, to a slot of the right size. Its rope has been taken, its long key moves along.
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
        table.arena.free(handle);
        table.changed = true;
        table.count_deadlines(isize::from(deadline.is_some()) - isize::from(before.is_some()));
        self.found = Found {
            entry: table.entry(new),
            handle: new,
            place,
        };
        if let Some(at) = deadline {
            self.note_deadline(context, at);
        }
    }
}

impl Table {
    /// Adds to the number of entries with a deadline.
    fn count_deadlines(&mut self, change: isize) {
        self.deadlines = self.deadlines.wrapping_add_signed(change);
        if self.deadlines == 0 {
            self.due = u64::MAX;
        }
    }
}
