//! Keys that come to stand elsewhere: COPY, MOVE, RENAME, RENAMENX.
//!
//! A key of another database lies in the same shard as its namesake in this one, so the latches of the keys cover both.
//! A value that Redis has called `raw` stays so under its new name.

use weft_data::string_value::StringEncoding;
use weft_keyspace::{Entry, OwnedEntry};

use super::object::string_encoding;
use super::options::{integer32, is};
use super::values::effect_arguments;
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, EventClass, Key};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "copy",
        arity: -3,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        categories: Categories::KEYSPACE,
        keys: &[
            KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS)),
            KeySpec::one(2, KeyFlags::OW.with(KeyFlags::UPDATE)),
        ],
        group: "generic",
        since: "6.2.0",
        complexity: "O(N) in the elements of the value; O(1) for a string",
        summary: "Copies a key with its value and its deadline to another key.",
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            Argument::integer("destination-db").token("DB").optional(),
            Argument::word("replace", "REPLACE").optional(),
        ],
        handler: copy,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "move",
        arity: 3,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )],
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Moves a key to another database that does not have it.",
        arguments: &[Argument::key("key", 0), Argument::integer("db")],
        handler: r#move,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "rename",
        arity: 3,
        flags: Flags::WRITE,
        categories: Categories::KEYSPACE,
        keys: &[
            KeySpec::one(
                1,
                KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::DELETE),
            ),
            KeySpec::one(2, KeyFlags::OW.with(KeyFlags::UPDATE)),
        ],
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Gives a key another name, in place of a key that has it.",
        arguments: &[Argument::key("key", 0), Argument::key("newkey", 1)],
        handler: rename,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "renamenx",
        arity: 3,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[
            KeySpec::one(
                1,
                KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::DELETE),
            ),
            KeySpec::one(2, KeyFlags::OW.with(KeyFlags::INSERT)),
        ],
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Gives a key another name, unless some key has it.",
        history: &[(
            "3.2.0",
            "Answers 0 instead of an error if both names are the same.",
        )],
        arguments: &[Argument::key("key", 0), Argument::key("newkey", 1)],
        handler: renamenx,
        ..CommandRow::DEFAULT
    },
];

const SAME_OBJECT: CommandError =
    CommandError::Text("ERR source and destination objects are the same");

/// The number of a database that exists.
fn database(cx: &Context<'_, '_>, text: &[u8]) -> Result<usize, CommandError> {
    usize::try_from(integer32(text)?)
        .ok()
        .filter(|number| *number < cx.engine.keyspace.databases())
        .ok_or(CommandError::Text("ERR DB index is out of range"))
}

fn is_raw(entry: &Entry<'_>) -> bool {
    entry
        .string()
        .is_some_and(|string| string_encoding(entry, string) == StringEncoding::Raw)
}

fn copy(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let [source, destination] = [cx.keys[0], cx.keys[1]];
    let (mut target, mut replace) = (cx.unit.database(), false);
    let mut at = 3;
    while let Some(word) = cx.args.get(at) {
        at += 1;
        match cx.args.get(at) {
            _ if is(word, "REPLACE") => replace = true,
            Some(number) if is(word, "DB") => {
                target = database(cx, number)?;
                at += 1;
            }
            _ => return Err(CommandError::Syntax),
        }
    }
    if target == cx.unit.database() && source.name == destination.name {
        return Err(SAME_OBJECT);
    }
    let Some(entry) = cx.unit.read(source) else {
        cx.reply.integer(0);
        return Ok(());
    };
    let (value, deadline, raw) = (entry.to_owned_value(), entry.deadline(), is_raw(&entry));
    let copied = cx.unit.in_database(target, |unit| {
        if unit.peek(destination).is_some() && !replace {
            return false;
        }
        unit.put(destination, value, deadline, raw);
        unit.touched(destination, EventClass::Generic, "copy_to");
        true
    });
    if copied {
        cx.unit.effect_with(|| effect_arguments(cx.args));
    }
    cx.reply.integer(i64::from(copied));
    Ok(())
}

fn r#move(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let target = database(cx, &cx.args[2])?;
    if target == cx.unit.database() {
        return Err(SAME_OBJECT);
    }
    let occupied =
        cx.unit.peek(key).is_some() && cx.unit.in_database(target, |unit| unit.peek(key).is_some());
    let Some((entry, raw)) = (!occupied).then(|| take(cx, key)).flatten() else {
        cx.reply.integer(0);
        return Ok(());
    };
    cx.unit.in_database(target, |unit| {
        unit.put(key, entry.value, entry.deadline, raw)
    });
    cx.unit.touched(key, EventClass::Generic, "move_from");
    cx.unit.in_database(target, |unit| {
        unit.touched_too(key, EventClass::Generic, "move_to");
    });
    cx.unit.effect_with(|| effect_arguments(cx.args));
    cx.reply.integer(1);
    Ok(())
}

/// Takes a key out, and whether Redis calls its value `raw`.
fn take(cx: &mut Context<'_, '_>, key: Key<'_>) -> Option<(OwnedEntry, bool)> {
    let raw = is_raw(&cx.unit.look(key)?);
    Some((cx.unit.take(key)?, raw))
}

fn rename(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    rename_to(cx, true)?;
    cx.reply.ok();
    Ok(())
}

fn renamenx(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let renamed = rename_to(cx, false)?;
    cx.reply.integer(i64::from(renamed));
    Ok(())
}

/// Whether anything has changed.
fn rename_to(cx: &mut Context<'_, '_>, replace: bool) -> Result<bool, CommandError> {
    let [source, destination] = [cx.keys[0], cx.keys[1]];
    if cx.unit.peek(source).is_none() {
        return Err(CommandError::Text("ERR no such key"));
    }
    if source.name == destination.name || (cx.unit.peek(destination).is_some() && !replace) {
        return Ok(false);
    }
    let Some((entry, raw)) = take(cx, source) else {
        return Ok(false);
    };
    cx.unit.put(destination, entry.value, entry.deadline, raw);
    cx.unit.touched(source, EventClass::Generic, "rename_from");
    cx.unit
        .touched_too(destination, EventClass::Generic, "rename_to");
    cx.unit.effect_with(|| effect_arguments(cx.args));
    Ok(true)
}
