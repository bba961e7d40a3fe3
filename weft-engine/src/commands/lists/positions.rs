//! Elements by their positions: counting, reading, replacing, trimming.

use std::ops::Range;

use weft_data::collection::{Collection, Kind};
use weft_data::list::{End, ListRef};

use super::super::options::integer;
use super::super::values::effect_arguments;
use super::{
    AT_ONCE_MAX, LIST, Listing, READ, REMOVE, changed, edit, element, list, peek, reply_element,
    snapshot,
};
use crate::command::{Argument, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "llen",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        complexity: "O(1)",
        summary: "Counts the elements of a list.",
        arguments: &[Argument::key("key", 0)],
        handler: llen,
        ..READ
    },
    CommandRow {
        name: "lindex",
        arity: 3,
        complexity: "O(N) in the number of elements between; here O(log N)",
        summary: "Reads the element at a position, counted from the end if negative.",
        arguments: &[Argument::key("key", 0), Argument::integer("index")],
        handler: lindex,
        ..READ
    },
    CommandRow {
        name: "lrange",
        arity: 4,
        complexity: "O(S+N) in the distance of the first one from the nearer end and the number of elements; here S is O(log N)",
        summary: "Lists the elements between two positions.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("start"),
            Argument::integer("stop"),
        ],
        handler: lrange,
        ..READ
    },
    CommandRow {
        name: "lset",
        arity: 4,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        complexity: "O(N) in the number of elements between; here O(log N)",
        summary: "Replaces the element at a position.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("index"),
            Argument::string("element"),
        ],
        handler: lset,
        ..LIST
    },
    CommandRow {
        name: "ltrim",
        complexity: "O(N) in the number of elements removed; here O(log N), and they are freed later",
        summary: "Removes all elements but those between two positions.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("start"),
            Argument::integer("stop"),
        ],
        handler: ltrim,
        ..REMOVE
    },
];

fn llen(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let len = list(cx)?.map_or(0, ListRef::len);
    cx.reply.integer(len as i64);
    Ok(())
}

/// The position that an index means in a list of `len` elements: from the end if it is negative.
fn position(index: i64, len: usize) -> Option<usize> {
    let position = if index < 0 {
        index.checked_add(len as i64)?
    } else {
        index
    };
    usize::try_from(position).ok().filter(|at| *at < len)
}

/// The positions from `start` to `stop` inclusive in a list of `len` elements, counted from the end if negative.
fn range(start: i64, stop: i64, len: usize) -> Range<usize> {
    let from_end = |index: i64| {
        let index = if index < 0 { index + len as i64 } else { index };
        usize::try_from(index).ok()
    };
    let start = from_end(start).unwrap_or(0);
    match from_end(stop) {
        Some(stop) if start < len && start <= stop => start..len.min(stop.saturating_add(1)),
        _ => 0..0,
    }
}

fn lindex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let collection = cx.unit.collection(cx.keys[0], Kind::List)?;
    let Some(list) = collection.map(ListRef::from) else {
        cx.reply.null();
        return Ok(());
    };
    let index = integer(&cx.args[2])?;
    match position(index, list.len()).and_then(|at| list.get(at)) {
        Some(element) => reply_element(&mut cx.reply, element),
        None => cx.reply.null(),
    }
    Ok(())
}

fn lrange(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (start, stop) = (integer(&cx.args[2])?, integer(&cx.args[3])?);
    let collection = cx.unit.collection(cx.keys[0], Kind::List)?;
    let Some(list) = collection.map(ListRef::from) else {
        cx.reply.array(0);
        return Ok(());
    };
    let range = range(start, stop, list.len());
    cx.reply.array(range.len());
    let many = Some(list).filter(|_| range.len() > AT_ONCE_MAX);
    match many.and_then(snapshot) {
        Some(list) => cx.continue_with(Listing {
            list,
            from: End::Left,
            next: range.start,
            left: range.len(),
        }),
        None => {
            let elements = list.elements(range.start).take(range.len());
            elements.for_each(|element| reply_element(&mut cx.reply, element));
        }
    }
    Ok(())
}

fn lset(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let Some(list) = peek(cx, key)? else {
        return Err(CommandError::Text("ERR no such key"));
    };
    let index = integer(&args[2])?;
    // Out of range, it is still tried: what the list is called may change.
    let at = position(index, list.len()).unwrap_or(usize::MAX);
    if !edit(cx, key, |list, _| list.set(at, element(args, 3)))?.result {
        return Err(CommandError::Text("ERR index out of range"));
    }
    changed(cx, key, "lset", 1, false);
    cx.unit.effect_with(|| effect_arguments(args));
    cx.reply.ok();
    Ok(())
}

fn ltrim(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let (start, stop) = (integer(&args[2])?, integer(&args[3])?);
    let Some(list) = peek(cx, key)? else {
        cx.reply.ok();
        return Ok(());
    };
    let kept = range(start, stop, list.len());
    let removed = list.len() - kept.len();
    // Many elements are freed by the reaper, with the snapshot.
    let many = Some(list).filter(|_| removed > AT_ONCE_MAX);
    let waste = many.and_then(snapshot);
    let emptied = edit(cx, key, |list, _| list.keep(kept))?.emptied;
    if let Some(list) = waste {
        cx.worker
            .reap_snapshots(vec![Box::new(Collection::List(list))]);
    }
    changed(cx, key, "ltrim", removed, emptied);
    if removed > 0 {
        cx.unit.effect_with(|| effect_arguments(args));
    }
    cx.reply.ok();
    Ok(())
}
