//! Lists: their ends, and what is reached by position or by looking for it.
//!
//! Owns what these have in common: reaching a list, elements from arguments and to replies, and replies with many elements.
//! How elements are kept, and what lists are called, is `weft_data::list`'s.

mod blocking;
mod ends;
mod find;
mod positions;

use weft_data::collection::{Collection, Kind};
use weft_data::list::{Element, End, List, ListMut, ListRef};
use weft_resp::{Args, Writer};

use super::options::is;
use super::values::Captured;
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, Edited, EventClass, Key, Progress, Steps};
use crate::error::CommandError;

/// The rows about the ends of lists.
pub(super) const ENDS: &[CommandRow] = ends::ROWS;
/// The rows of those that wait.
pub(super) const BLOCKING: &[CommandRow] = blocking::ROWS;
/// The rows about positions.
pub(super) const POSITIONS: &[CommandRow] = positions::ROWS;
/// The rows about finding elements.
pub(super) const FIND: &[CommandRow] = find::ROWS;

/// What all these commands have in common.
const LIST: CommandRow = CommandRow {
    categories: Categories::LIST,
    group: "list",
    since: "1.0.0",
    ..CommandRow::DEFAULT
};

/// What the commands that read a list have in common.
const READ: CommandRow = CommandRow {
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    ..LIST
};

/// What the commands that remove elements other than from an end have in common.
const REMOVE: CommandRow = CommandRow {
    arity: 4,
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::DELETE))],
    ..LIST
};

const LEFT_OR_RIGHT: &[Argument] = &[
    Argument::word("left", "LEFT"),
    Argument::word("right", "RIGHT"),
];

/// Elements of a large list that are replied with, or removed, under the latch; with more, others need not wait.
const AT_ONCE_MAX: usize = 128;
/// About what an element takes, and how many bytes are copied or compared in a nanosecond.
const NS_PER_ELEMENT: u64 = 20;
const BYTES_PER_NS: u64 = 8;

/// The list of the command's first key, for reading.
fn list<'c>(cx: &'c Context<'_, '_>) -> Result<Option<ListRef<'c>>, CommandError> {
    let collection = cx.unit.collection(cx.keys[0], Kind::List)?;
    Ok(collection.map(ListRef::from))
}

/// The key's list before it is written.
fn peek<'c>(cx: &'c Context<'_, '_>, key: Key<'_>) -> Result<Option<ListRef<'c>>, CommandError> {
    let collection = cx.unit.peek_collection(key, Kind::List)?;
    Ok(collection.map(ListRef::from))
}

/// Lets `act` change the key's list, or make one. It may write the reply, too.
fn edit<R>(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    act: impl FnOnce(&mut ListMut<'_, '_>, &mut Writer<'_>) -> R,
) -> Result<Edited<R>, CommandError> {
    let limit = cx.worker.settings().list_limit();
    let reply = &mut cx.reply;
    cx.unit.edit(key, Kind::List, |draft| {
        act(&mut ListMut::new(draft, limit), reply)
    })
}

/// Tells of a change to so many elements, and that the key is gone if it is.
fn changed(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    event: &'static str,
    elements: usize,
    emptied: bool,
) {
    cx.unit.touched_many(elements);
    cx.unit.touched_too(key, EventClass::List, event);
    if emptied {
        cx.unit.touched_too(key, EventClass::Generic, "del");
    }
}

/// The end that a word names.
fn end(word: &[u8]) -> Result<End, CommandError> {
    if is(word, "LEFT") {
        Ok(End::Left)
    } else if is(word, "RIGHT") {
        Ok(End::Right)
    } else {
        Err(CommandError::Syntax)
    }
}

/// The argument at `index`, as an element to be stored.
fn element(args: Args<'_>, index: usize) -> Element<'_> {
    match args.rope(index) {
        Some(rope) => Element::Rope(rope),
        None => Element::Bytes(args.get(index).unwrap_or_default()),
    }
}

/// An element that outlives the latch.
fn captured(element: Element<'_>) -> Captured {
    match element {
        Element::Bytes(bytes) => Captured::Bytes(bytes.to_vec()),
        Element::Rope(rope) => Captured::Rope(rope.clone()),
    }
}

fn reply_element(reply: &mut Writer<'_>, element: Element<'_>) {
    match element {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Rope(rope) => reply.bulk_rope(rope),
    }
}

/// A snapshot of the list, if it is a large one.
fn snapshot(list: ListRef<'_>) -> Option<List> {
    match list {
        ListRef::Packed(_) => None,
        ListRef::Large(list) => Some(list.clone()),
    }
}

/// A reply with many elements, under way.
struct Listing {
    list: List,
    from: End,
    /// How many elements lie between that end and the next one to be written.
    next: usize,
    left: usize,
}

impl Steps for Listing {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        let elements = ListRef::Large(&self.list).elements_from(self.from, self.next);
        for element in elements.take(self.left) {
            if budget.left() == 0 {
                return Progress::More;
            }
            budget.take(cost(element));
            reply_element(reply, element);
            self.next += 1;
            self.left -= 1;
        }
        Progress::Done
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        vec![Box::new(Collection::List(self.list))]
    }
}

/// About the time that writing or comparing an element takes, in nanoseconds.
fn cost(element: Element<'_>) -> u64 {
    NS_PER_ELEMENT
        + match element {
            Element::Bytes(bytes) => bytes.len() as u64 / BYTES_PER_NS,
            Element::Rope(_) => 0,
        }
}
