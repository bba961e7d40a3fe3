//! Streams: what the parts of the family have in common.
//!
//! One file a part: its rows and its handlers. Owns how ids are read, how entries are written, and the step-wise reply of many. What is
//! large is captured under the latch and read afterwards. Effects carry ids and times as they came to be, so that whoever replays
//! them needs no clock.

mod acknowledge;
mod claims;
mod entries;
mod groups;
mod information;
mod pending;
mod ranges;
mod reading;
mod trimming;

use std::ops::Range;

use weft_data::collection::{Built, Collection, CollectionRef, Kind};
use weft_data::stream::{Entry, Id, Stream, StreamRef, Text};
use weft_resp::Writer;

use crate::command::{Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, EventClass, Key, Progress, Steps, Unit};
use crate::error::CommandError;
use crate::journal::EffectArgument;

pub(super) const ENTRIES: &[CommandRow] = entries::ROWS;
pub(super) const RANGES: &[CommandRow] = ranges::ROWS;
pub(super) const READING: &[CommandRow] = reading::ROWS;
pub(super) const GROUPS: &[CommandRow] = groups::ROWS;
pub(super) const PENDING: &[CommandRow] = pending::ROWS;
pub(super) const CLAIMS: &[CommandRow] = claims::ROWS;
pub(super) const ACKNOWLEDGE: &[CommandRow] = acknowledge::ROWS;
pub(super) const INFORMATION: &[CommandRow] = information::ROWS;

/// What the commands that read one stream have in common.
const READ: CommandRow = CommandRow {
    flags: Flags::READONLY,
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    group: "stream",
    since: "5.0.0",
    ..CommandRow::DEFAULT
};

/// What the commands that write one stream have in common.
const WRITE: CommandRow = CommandRow {
    flags: Flags::WRITE.with(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::DELETE))],
    ..READ
};

const INVALID_ID: CommandError =
    CommandError::Text("ERR Invalid stream ID specified as stream command argument");

/// An id as given, with this number if it has but a time.
fn strict_id(text: &[u8], missing_seq: u64) -> Result<Id, CommandError> {
    Id::parse(text, missing_seq).ok_or(INVALID_ID)
}

/// The same, or `-` for the first and `+` for the last one.
fn loose_id(text: &[u8], missing_seq: u64) -> Result<Id, CommandError> {
    match text {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        text => strict_id(text, missing_seq),
    }
}

/// The lower end of an interval; `(` before it leaves it out.
fn start_id(text: &[u8]) -> Result<Id, CommandError> {
    const REFUSED: CommandError = CommandError::Text("ERR invalid start ID for the interval");
    match text.strip_prefix(b"(") {
        Some(text) => strict_id(text, 0)?.next().ok_or(REFUSED),
        None => loose_id(text, 0),
    }
}

/// The upper end of an interval.
fn end_id(text: &[u8]) -> Result<Id, CommandError> {
    const REFUSED: CommandError = CommandError::Text("ERR invalid end ID for the interval");
    match text.strip_prefix(b"(") {
        Some(text) => strict_id(text, u64::MAX)?.previous().ok_or(REFUSED),
        None => loose_id(text, u64::MAX),
    }
}

/// The stream at a key, to be read.
fn stream<'u>(unit: &'u Unit<'_>, key: Key<'_>) -> Result<Option<StreamRef<'u>>, CommandError> {
    Ok(unit.collection(key, Kind::Stream)?.map(StreamRef::from))
}

/// The stream at a key, before it is written.
fn peek<'u>(unit: &'u Unit<'_>, key: Key<'_>) -> Result<Option<StreamRef<'u>>, CommandError> {
    let found = unit.peek_collection(key, Kind::Stream)?;
    Ok(found.map(StreamRef::from))
}

/// Changes the stream at a key, or makes one.
fn edit<R>(
    unit: &mut Unit<'_>,
    key: Key<'_>,
    act: impl FnOnce(&mut Stream) -> R,
) -> Result<R, CommandError> {
    let edited = unit.edit(key, Kind::Stream, |draft| Stream::edit(draft, act))?;
    Ok(edited.result)
}

/// Says that so many changes were made to a stream.
fn touched(unit: &mut Unit<'_>, key: Key<'_>, event: &'static str, changes: usize) {
    unit.touched(key, EventClass::Stream, event);
    unit.touched_many(changes.saturating_sub(1));
}

/// Says the same of changes that nobody is notified of. They may count as none.
fn touched_silently(unit: &mut Unit<'_>, key: Key<'_>, changes: usize) {
    unit.touched_too(key, EventClass::Silent, "xgroup");
    unit.touched_many(changes);
}

fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    quoting(
        ["NOGROUP No such key '", "' or consumer group '", "'"],
        key,
        group,
    )
}

/// A text that quotes two names, each up to the first zero.
fn quoting(parts: [&str; 3], one: &[u8], other: &[u8]) -> CommandError {
    let shown = |name: &[u8]| {
        let end = name.iter().position(|byte| *byte == 0);
        name[..end.unwrap_or(name.len())].to_vec()
    };
    let [before, between, behind] = parts.map(str::as_bytes);
    let all = [before, &shown(one), between, &shown(other), behind];
    CommandError::Composed(all.concat().into())
}

fn reply_id(reply: &mut Writer<'_>, id: Id) {
    reply.bulk(id.text().as_bytes());
}

fn reply_text(reply: &mut Writer<'_>, text: Text<'_>) {
    match text {
        Text::Bytes(bytes) => reply.bulk(bytes),
        Text::Integer(value) => reply.bulk_integer(value),
    }
}

fn reply_entry(reply: &mut Writer<'_>, entry: &Entry<'_>) {
    reply.array(2);
    reply_id(reply, entry.id);
    reply.array(entry.len() * 2);
    entry.each(|name, value| {
        reply_text(reply, name);
        reply_text(reply, value);
    });
}

/// Writes an entry that is pending and may be gone, with null in the place of its fields then; says about how long it is.
fn reply_pending_entry(reply: &mut Writer<'_>, stream: StreamRef<'_>, id: Id) -> usize {
    match stream.get(id) {
        Some(entry) => {
            reply_entry(reply, &entry);
            entry.weight()
        }
        None => {
            reply.array(2);
            reply_id(reply, id);
            reply.null_array();
            0
        }
    }
}

fn reply_optional(reply: &mut Writer<'_>, number: Option<u64>) {
    match number {
        Some(number) => reply.integer(number as i64),
        None => reply.null(),
    }
}

fn id_argument(id: Id) -> EffectArgument {
    id.text().as_bytes().into()
}

fn number_argument(number: u64) -> EffectArgument {
    weft_data::number::format_u64(number).as_bytes().into()
}

/// A stream that outlives the latch.
#[derive(Clone)]
struct Snapshot(Built);

impl Snapshot {
    fn of(stream: CollectionRef<'_>) -> Self {
        Self(stream.to_built())
    }

    fn look(&self) -> StreamRef<'_> {
        StreamRef::from(self.0.as_ref())
    }

    /// What the reaper has to free.
    fn into_large(self) -> Option<Box<Collection>> {
        match self.0 {
            Built::Large(collection) => Some(collection),
            Built::Packed(_) => None,
        }
    }
}

/// So many entries are written at once, without a snapshot, and so many bytes of them.
const AT_ONCE_MAX: u64 = 128;
const BYTES_AT_ONCE_MAX: u64 = 64 * 1024;
/// About what finding and writing an entry takes, and how many bytes are copied in a nanosecond.
const NS_PER_ENTRY: u64 = 120;
const BYTES_PER_NS: u64 = 8;

/// Whether so many entries are few enough to be written under the latch.
fn is_brief(found: CollectionRef<'_>, count: u64) -> bool {
    let CollectionRef::Large(collection) = found else {
        return true;
    };
    let share = collection.allocated_bytes() as u64 / collection.len().max(1) as u64;
    count <= AT_ONCE_MAX && share.saturating_mul(count) <= BYTES_AT_ONCE_MAX
}

/// A run of entries on its way into the reply.
struct Part {
    snapshot: Snapshot,
    /// The ranks of the entries, or the places of their ids among `ids`.
    ranks: Range<u64>,
    /// The ids, if they are not those of a range. Some may be gone.
    ids: Vec<Id>,
    backwards: bool,
    /// What comes before it.
    before: Before,
}

/// What comes before the entries of a part.
enum Before {
    /// Nothing yet to be written.
    Nothing,
    /// The header of so many.
    Header,
    /// The name of the stream and the header; in a pair of their own unless it is one of a map.
    Stream { name: Box<[u8]>, is_pair: bool },
}

fn reply_before(reply: &mut Writer<'_>, before: &Before, count: u64) {
    match before {
        Before::Nothing => return,
        Before::Header => {}
        Before::Stream { name, is_pair } => {
            if *is_pair {
                reply.array(2);
            }
            reply.bulk(name);
        }
    }
    reply.array(count as usize);
}

impl Part {
    /// Writes some entries; whether all are written.
    fn write(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> bool {
        let Range { start, end } = &mut self.ranks;
        let before = std::mem::replace(&mut self.before, Before::Nothing);
        reply_before(reply, &before, *end - *start);
        // Entries may be large, and are looked at a few at a time for that.
        let mut chunk = 8;
        while start < end && budget.left() > 0 {
            let count = chunk.min(*end - *start);
            let ranks = if self.backwards {
                *end -= count;
                *end..*end + count
            } else {
                *start += count;
                *start - count..*start
            };
            let mut bytes = 0;
            let stream = self.snapshot.look();
            if self.ids.is_empty() {
                stream.each(ranks, self.backwards, |entry| {
                    bytes += entry.weight() as u64;
                    reply_entry(reply, &entry);
                });
            } else {
                let ids = &self.ids[ranks.start as usize..ranks.end as usize];
                for id in ids {
                    bytes += reply_pending_entry(reply, stream, *id) as u64;
                }
            }
            budget.take(count * NS_PER_ENTRY + bytes / BYTES_PER_NS);
            chunk = (BYTES_AT_ONCE_MAX / (bytes / count + 1)).clamp(1, AT_ONCE_MAX);
        }
        start >= end
    }
}

/// Runs of entries on their way into the reply. Those that are written stay, to be given up at the end.
struct Listing {
    parts: Vec<Part>,
    at: usize,
}

impl Listing {
    const fn of(parts: Vec<Part>) -> Self {
        Self { parts, at: 0 }
    }
}

impl Steps for Listing {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        while let Some(part) = self.parts.get_mut(self.at) {
            if !part.write(budget, reply) {
                return Progress::More;
            }
            self.at += 1;
        }
        Progress::Done
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        let parts = self.parts.into_iter();
        let snapshots = parts.map(|part| part.snapshot);
        snapshots.filter_map(Snapshot::into_large).collect()
    }
}

/// Replies the entries with these ranks: at once if they are few, else in steps.
fn reply_ranks(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    backwards: bool,
    ranks_of: impl FnOnce(StreamRef<'_>) -> Range<u64>,
) -> Result<(), CommandError> {
    let Some(found) = cx.unit.collection(key, Kind::Stream)? else {
        cx.reply.array(0);
        return Ok(());
    };
    let stream = StreamRef::from(found);
    let ranks = ranks_of(stream);
    let count = ranks.end - ranks.start;
    if is_brief(found, count) {
        cx.reply.array(count as usize);
        let reply = &mut cx.reply;
        stream.each(ranks, backwards, |entry| reply_entry(reply, &entry));
        return Ok(());
    }
    let part = Part {
        snapshot: Snapshot::of(found),
        ranks,
        ids: Vec::new(),
        backwards,
        before: Before::Header,
    };
    cx.continue_with(Listing::of(vec![part]));
    Ok(())
}
