//! Taking elements out of lists that need not be there yet: the commands that wait.

use std::ops::Range;

use weft_data::list::End;
use weft_keyspace::Awaited;

use super::super::timeouts;
use super::ends::{MOVE, MultiplePop, POPPED, move_element, pop_event};
use super::{LEFT_OR_RIGHT, LIST, changed, edit, end, reply_element};
use crate::blocking::{Nothing, Wish};
use crate::command::{Argument, Begin, CommandRow, Deprecation, Find, Flags, KeySpec};
use crate::dispatch::{Context, Key};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "blpop",
        summary: "Takes the first element out of the first of several lists that is there, waiting until there is one.",
        handler: blpop,
        ..POP
    },
    CommandRow {
        name: "brpop",
        summary: "Takes the last element out of the first of several lists that is there, waiting until there is one.",
        handler: brpop,
        ..POP
    },
    CommandRow {
        name: "blmove",
        arity: 6,
        flags: MOVES,
        since: "6.2.0",
        summary: "Takes an element from an end of a list to an end of the same or another one, waiting until there is one.",
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            Argument::one_of("wherefrom", LEFT_OR_RIGHT),
            Argument::one_of("whereto", LEFT_OR_RIGHT),
            TIMEOUT,
        ],
        handler: blmove,
        ..MOVE
    },
    CommandRow {
        name: "brpoplpush",
        arity: 4,
        flags: MOVES,
        since: "2.2.0",
        summary: "Takes the last element of a list to the beginning of the same or another one, waiting until there is one.",
        deprecated: Some(Deprecation {
            since: "6.2.0",
            replaced_by: "`BLMOVE` with the `RIGHT` and `LEFT` arguments",
        }),
        history: SECONDS,
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            TIMEOUT,
        ],
        handler: brpoplpush,
        ..MOVE
    },
    CommandRow {
        name: "blmpop",
        arity: -5,
        flags: Flags::WRITE.with(Flags::BLOCKING).with(Flags::MOVABLE_KEYS),
        keys: &[KeySpec {
            begin: Begin::Index(2),
            find: Find::KeyNumber {
                number: 0,
                first: 1,
                step: 1,
            },
            flags: POPPED,
            notes: "",
        }],
        since: "7.0.0",
        complexity: "O(N+M) in the number of keys and of elements taken",
        summary: "Takes elements out of the first of several lists that is there, waiting until there is one.",
        arguments: &[
            TIMEOUT,
            Argument::integer("numkeys"),
            Argument::key("key", 0).multiple(),
            Argument::one_of("where", LEFT_OR_RIGHT),
            Argument::integer("count").token("COUNT").optional(),
        ],
        handler: blmpop,
        ..LIST
    },
];

const TIMEOUT: Argument = Argument::double("timeout");

const SECONDS: &[(&str, &str)] = &[("6.0.0", "Takes fractions of a second.")];

const MOVES: Flags = Flags::WRITE.with(Flags::DENY_OOM).with(Flags::BLOCKING);

const POP: CommandRow = CommandRow {
    arity: -3,
    flags: Flags::WRITE.with(Flags::BLOCKING),
    keys: &[KeySpec::range(1, -2, 1, POPPED)],
    since: "2.0.0",
    complexity: "O(N) in the number of keys",
    history: SECONDS,
    arguments: &[Argument::key("key", 0).multiple(), TIMEOUT],
    ..LIST
};

fn blpop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pop(cx, End::Left)
}

fn brpop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pop(cx, End::Right)
}

fn pop(cx: &mut Context<'_, '_>, from: End) -> Result<(), CommandError> {
    let deadline_ns = timeouts::seconds(cx, &cx.args[cx.args.len() - 1])?;
    let keys = cx.keys;
    for key in keys.iter().filter(|key| key.is_at_hand()) {
        if pop_one(cx, *key, from)? {
            return Ok(());
        }
    }
    wait(cx, 0..keys.len(), None, deadline_ns, Nothing::NullArray);
    Ok(())
}

/// Takes an element from an end of the key's list and replies with both names; false if there is none.
fn pop_one(cx: &mut Context<'_, '_>, key: Key<'_>, from: End) -> Result<bool, CommandError> {
    let edited = edit(cx, key, |list, reply| {
        let there = !list.as_ref().is_empty();
        if there {
            reply.array(2);
            reply.bulk(key.name);
            list.pop(from, 1, |element| reply_element(reply, element));
        }
        there
    })?;
    if edited.result {
        changed(cx, key, pop_event(from), 1, edited.emptied);
        let command: &[u8] = match from {
            End::Left => b"LPOP",
            End::Right => b"RPOP",
        };
        cx.unit.effect(&[command, key.name]);
    }
    Ok(edited.result)
}

fn blmove(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let args = cx.args;
    let (from, to) = (end(&args[3])?, end(&args[4])?);
    let deadline_ns = timeouts::seconds(cx, &args[5])?;
    if !move_element(cx, from, to, b"LMOVE", &[&args[3], &args[4]])? {
        wait(cx, 0..1, Some(1), deadline_ns, Nothing::Null);
    }
    Ok(())
}

fn brpoplpush(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let deadline_ns = timeouts::seconds(cx, &cx.args[3])?;
    if !move_element(cx, End::Right, End::Left, b"RPOPLPUSH", &[])? {
        wait(cx, 0..1, Some(1), deadline_ns, Nothing::Null);
    }
    Ok(())
}

fn blmpop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let wanted = MultiplePop::parse(cx.args.skip(1))?;
    let deadline_ns = timeouts::seconds(cx, &cx.args[1])?;
    if !wanted.pop(cx)? {
        let keys = 0..cx.keys.len();
        wait(cx, keys, None, deadline_ns, Nothing::NullArray);
    }
    Ok(())
}

/// Waits for a list under one of these keys. Whatever the command, its time-out is a null array; where it may not wait, the reply is
/// the one of the command that never does.
fn wait(
    cx: &mut Context<'_, '_>,
    keys: Range<usize>,
    feeds: Option<usize>,
    deadline_ns: Option<u64>,
    denied: Nothing,
) {
    cx.wait(Wish {
        awaits: Some((Awaited::List, keys)),
        condition: None,
        args: None,
        feeds,
        deadline_ns,
        lapsed: Nothing::NullArray,
        denied,
    });
}
