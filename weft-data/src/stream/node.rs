//! A node: a run of entries beside each other in one piece of bytes, the unit of copying.
//!
//! It begins and ends where Redis would begin and end one, so that trimming by whole nodes removes the same entries; for that it counts
//! the bytes that Redis's form would take, and what was removed from it. Ids are differences to the node's first one, and entries
//! with the same names as its first entry go without names.
//!
//! ```text
//! bytes = count, name ... ; entry ...            names: those of the first entry that there was
//! entry = rest * 2 + other, ms, seq, [count], text ...
//!         rest: of the entry's bytes behind this number;  other: its names are others, and stand before each of its values
//!         ms: difference to the first id;  seq: the same in its millisecond, else as it is;  count: of pairs, if `other`
//! ```

use std::ops::Range;

use super::Id;
use super::text::{Reader, Text, push_number, push_text};
use crate::list::naming::{element_bytes, integer_bytes};
use crate::tree::Leaf;

/// The most bytes of a node in Redis's form, whatever the setting: a write to one that a snapshot shares copies it.
const BYTES_MAX: u64 = 16 * 1024;
/// What Redis's form takes besides its elements.
const FRAME_BYTES: u64 = 7;

/// When a node is full: the settings `stream-node-max-bytes` and `stream-node-max-entries`.
#[derive(Clone, Copy, Debug)]
pub struct NodeLimit {
    /// Bytes of Redis's form.
    bytes: u64,
    /// Entries, removed ones among them.
    entries: u64,
}

impl NodeLimit {
    /// Of the settings; 0 is no limit.
    #[must_use]
    pub const fn new(bytes: u64, entries: u64) -> Self {
        let no_bytes = bytes == 0 || bytes > BYTES_MAX;
        Self {
            bytes: if no_bytes { BYTES_MAX } else { bytes },
            entries: if entries == 0 { u64::MAX } else { entries },
        }
    }
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The id of the first entry that there was.
    pub(super) base: Id,
    /// The id of the last entry that there was.
    pub(super) last: Id,
    /// How many entries there are.
    pub(super) items: u32,
    /// How many were removed.
    pub(super) removed: u32,
    /// Bytes in Redis's form, but those of the two counts.
    pub(super) listpack_bytes: u32,
    /// Where entries begin.
    pub(super) names_end: u32,
    pub(super) bytes: Vec<u8>,
}

/// A node to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) base: Id,
    /// The names of the first entry, each a text, without their number.
    pub(super) names: &'a [u8],
    pub(super) name_count: usize,
    /// The entries, one after the other.
    pub(super) entries: &'a [u8],
}

/// An entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its id.
    pub id: Id,
    /// The node's names, if they are the entry's.
    names: Option<&'a [u8]>,
    count: usize,
    body: &'a [u8],
}

impl<'a> Entry<'a> {
    /// How many pairs of a name and a value it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether it has none, as no entry that was added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// About how many bytes its values take.
    #[must_use]
    pub const fn weight(&self) -> usize {
        self.body.len()
    }

    /// Calls `each` with its names and values.
    pub fn each(&self, mut each: impl FnMut(Text<'a>, Text<'a>)) {
        let mut body = Reader(self.body);
        let mut names = self.names.map(Reader);
        for _ in 0..self.count {
            let name = match &mut names {
                Some(names) => names.text(),
                None => body.text(),
            };
            let (Some(name), Some(value)) = (name, body.text()) else {
                return;
            };
            each(name, value);
        }
    }
}

impl<'a> View<'a> {
    /// The next entry from the reader, which stands before one.
    #[inline]
    fn entry(&self, reader: &mut Reader<'a>) -> Option<Entry<'a>> {
        let head = reader.number()?;
        let mut body = Reader(reader.bytes(head >> 1)?);
        let ms = self.base.ms.wrapping_add(body.number()?);
        let seq = body.number()?;
        let seq = if ms == self.base.ms {
            self.base.seq.wrapping_add(seq)
        } else {
            seq
        };
        let same = head & 1 == 0;
        let count = if same {
            self.name_count
        } else {
            usize::try_from(body.number()?).ok()?
        };
        Some(Entry {
            id: Id { ms, seq },
            names: same.then_some(self.names),
            count,
            body: body.0,
        })
    }

    /// The entries in their order.
    #[inline]
    pub(super) fn iter(self) -> Walk<'a> {
        Walk {
            view: self,
            reader: Reader(self.entries),
        }
    }

    /// The entries from one rank on, those before it passed over unread.
    #[inline]
    pub(super) fn iter_from(self, rank: usize) -> Walk<'a> {
        Walk {
            view: self,
            reader: Reader(&self.entries[self.offset(rank)..]),
        }
    }

    /// How many entries come before this id, and whether there is one with it.
    pub(super) fn rank(self, id: Id) -> (usize, bool) {
        let mut rank = 0;
        for entry in self.iter() {
            if entry.id >= id {
                return (rank, entry.id == id);
            }
            rank += 1;
        }
        (rank, false)
    }

    /// Where the entry with this rank begins.
    fn offset(self, rank: usize) -> usize {
        let mut reader = Reader(self.entries);
        for _ in 0..rank {
            let Some(head) = reader.number() else { break };
            if reader.bytes(head >> 1).is_none() {
                break;
            }
        }
        self.entries.len() - reader.0.len()
    }
}

/// The entries of a node.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    view: View<'a>,
    reader: Reader<'a>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        self.view.entry(&mut self.reader)
    }
}

impl Node {
    /// A node of one entry; `fields` are its names and values in turn.
    pub(super) fn of(id: Id, fields: &[&[u8]], room: usize) -> Self {
        let mut bytes = Vec::with_capacity(room);
        let names = fields.iter().step_by(2);
        push_number(&mut bytes, names.len() as u64);
        let mut listpack_bytes = FRAME_BYTES + integer_bytes(names.len() as i64) + integer_bytes(0);
        for name in names {
            push_text(&mut bytes, name);
            listpack_bytes += element_bytes(name);
        }
        let mut node = Self {
            base: id,
            last: id,
            items: 0,
            removed: 0,
            listpack_bytes: u32::try_from(listpack_bytes).unwrap_or(u32::MAX),
            names_end: bytes.len() as u32,
            bytes,
        };
        node.push(id, fields);
        node
    }

    pub(super) fn view(&self) -> View<'_> {
        let (names, entries) = self.bytes.split_at(self.names_end as usize);
        let mut names = Reader(names);
        let name_count = names.number().unwrap_or_default() as usize;
        View {
            base: self.base,
            names: names.0,
            name_count,
            entries,
        }
    }

    /// Whether an entry with these fields goes into the next node.
    pub(super) fn is_full_for(&self, fields: &[&[u8]], limit: NodeLimit) -> bool {
        let added: u64 = fields.iter().map(|text| text.len() as u64).sum();
        let counts = integer_bytes(i64::from(self.items)) + integer_bytes(i64::from(self.removed));
        u64::from(self.listpack_bytes) + counts + added >= limit.bytes
            || u64::from(self.items) + u64::from(self.removed) >= limit.entries
    }

    /// Appends an entry, whose id comes after all others.
    pub(super) fn push(&mut self, id: Id, fields: &[&[u8]]) {
        let base = self.base;
        let ms = id.ms.wrapping_sub(base.ms);
        let seq = if ms == 0 {
            id.seq.wrapping_sub(base.seq)
        } else {
            id.seq
        };
        let same = self.has_names(fields);
        let count = fields.len() / 2;
        let step = if same { 2 } else { 1 };
        let texts = fields.iter().skip(usize::from(same)).step_by(step);

        // Its length stands before it: short ones get one byte for that and are moved if they turn out longer.
        let start = self.bytes.len();
        self.bytes.push(0);
        push_number(&mut self.bytes, ms);
        push_number(&mut self.bytes, seq);
        let mut elements = count + 3;
        let difference = |one: u64, other: u64| one.wrapping_sub(other) as i64;
        let mut listpack_bytes = integer_bytes(0)
            + integer_bytes(difference(id.ms, base.ms))
            + integer_bytes(difference(id.seq, base.seq));
        if !same {
            push_number(&mut self.bytes, count as u64);
            listpack_bytes += integer_bytes(count as i64);
            elements += count + 1;
        }
        for text in texts {
            push_text(&mut self.bytes, text);
            listpack_bytes += element_bytes(text);
        }
        listpack_bytes += integer_bytes(elements as i64);
        let rest = (self.bytes.len() - start - 1) as u64;
        let head = rest * 2 + u64::from(!same);
        if head < 0x80 {
            self.bytes[start] = head as u8;
        } else {
            let mut number = Vec::with_capacity(10);
            push_number(&mut number, head);
            self.bytes.splice(start..=start, number);
        }
        self.listpack_bytes = self
            .listpack_bytes
            .saturating_add(u32::try_from(listpack_bytes).unwrap_or(u32::MAX));
        self.items += 1;
        self.last = id;
    }

    /// Whether the names among these fields are the node's.
    fn has_names(&self, fields: &[&[u8]]) -> bool {
        let view = self.view();
        if view.name_count * 2 != fields.len() {
            return false;
        }
        let mut names = Reader(view.names);
        fields.iter().step_by(2).all(|name| match names.text() {
            Some(Text::Bytes(own)) => own == *name,
            Some(text) => text.with(|own| own == *name),
            None => false,
        })
    }
}

impl Leaf for Node {
    type Bound = Id;

    fn items(&self) -> usize {
        self.items as usize
    }

    fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    fn bound(&self) -> Id {
        let view = self.view();
        let first = view.entry(&mut Reader(view.entries));
        first.map_or(self.base, |entry| entry.id)
    }

    // Where nodes begin is decided when entries are added.
    fn is_full(&self) -> bool {
        false
    }

    fn split(&mut self) -> Self {
        unreachable!("a node is never full")
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn has_room_for(&self, _right: &Self) -> bool {
        false
    }

    fn absorb(&mut self, _right: &Self) {
        unreachable!("a node has no room for another")
    }

    fn remove(&mut self, range: Range<usize>) {
        let view = self.view();
        let start = self.names_end as usize;
        let bytes = start + view.offset(range.start)..start + view.offset(range.end);
        self.bytes.drain(bytes);
        self.items -= range.len() as u32;
        self.removed += range.len() as u32;
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to_fit();
        }
    }
}
