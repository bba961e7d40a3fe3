//! Keys as such, whatever they hold: DEL, EXISTS, TYPE and their relatives.

use weft_keyspace::{Entry, ValueRef};

use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, EventClass};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "del",
        arity: -2,
        flags: Flags::WRITE,
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::range(
            1,
            -1,
            1,
            KeyFlags::RM.with(KeyFlags::DELETE),
        )],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        group: "generic",
        since: "1.0.0",
        complexity: "O(N) in the number of keys; O(1) for a string, O(M) for a value of M elements",
        summary: "Removes keys.",
        arguments: &[Argument::key("key", 0).multiple()],
        handler: del,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "unlink",
        arity: -2,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::range(
            1,
            -1,
            1,
            KeyFlags::RM.with(KeyFlags::DELETE),
        )],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        group: "generic",
        since: "4.0.0",
        complexity: "O(1) for each key; O(N) later, in the elements of its value",
        summary: "Removes keys at once and frees their memory later.",
        arguments: &[Argument::key("key", 0).multiple()],
        handler: unlink,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "exists",
        arity: -2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::range(1, -1, 1, KeyFlags::RO)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        group: "generic",
        since: "1.0.0",
        complexity: "O(N) in the number of keys",
        summary: "Counts how many of the keys exist, a key named twice counting twice.",
        history: &[("3.0.3", "Takes several keys.")],
        arguments: &[Argument::key("key", 0).multiple()],
        handler: exists,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "type",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Names the type of a key's value.",
        arguments: &[Argument::key("key", 0)],
        handler: r#type,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "randomkey",
        arity: 1,
        flags: Flags::READONLY.with(Flags::WALKS),
        categories: Categories::KEYSPACE,
        tips: &[
            "request_policy:all_shards",
            "response_policy:special",
            "nondeterministic_output",
        ],
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Picks any key of the database, each as likely as the others.",
        handler: randomkey,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "touch",
        arity: -2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::range(1, -1, 1, KeyFlags::RO)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        group: "generic",
        since: "3.2.1",
        complexity: "O(N) in the number of keys",
        summary: "Marks keys as just used and counts those that exist.",
        arguments: &[Argument::key("key", 0).multiple()],
        handler: touch,
        ..CommandRow::DEFAULT
    },
];

fn del(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    delete(cx, b"DEL")
}

fn unlink(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    delete(cx, b"UNLINK")
}

/// Removes the keys. Large values are freed by the reaper either way; only the effect keeps the command's name.
fn delete(cx: &mut Context<'_, '_>, command: &'static [u8]) -> Result<(), CommandError> {
    let mut removed = 0;
    for key in cx.keys {
        if cx.unit.remove(*key) {
            cx.unit.touched(*key, EventClass::Generic, "del");
            cx.unit.effect(&[command, key.name]);
            removed += 1;
        }
    }
    cx.reply.integer(removed);
    Ok(())
}

fn exists(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let keys = cx.keys.iter();
    let existing = keys.filter(|key| cx.unit.read_unused(**key).is_some());
    let existing = existing.count();
    cx.reply.integer(existing as i64);
    Ok(())
}

fn touch(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    // What the command is for, whatever the client asked for its other commands.
    cx.unit.set_traceless(false);
    let keys = cx.keys.iter();
    let existing = keys.filter(|key| cx.unit.read(**key).is_some()).count();
    cx.reply.integer(existing as i64);
    Ok(())
}

fn r#type(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let entry = cx.unit.read_unused(cx.keys[0]);
    cx.reply
        .simple(entry.map_or("none", |entry| type_name(&entry)));
    Ok(())
}

/// The name of a value's type.
pub(super) fn type_name(entry: &Entry<'_>) -> &'static str {
    match entry.value() {
        ValueRef::String(_) => "string",
        ValueRef::Collection(collection) => collection.kind().name(),
    }
}

fn randomkey(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match cx.unit.random_key(&mut cx.worker.random) {
        Some(name) => cx.reply.bulk(&name),
        None => cx.reply.null(),
    }
    Ok(())
}
