//! OBJECT: how a value is stored and how a key is used.

use weft_data::string_value::StringEncoding;
use weft_keyspace::{Entry, StringRef, ValueRef};

use super::reply_help;
use super::values::value_len;
use crate::access::{AccessRule, idle_s};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "object",
    arity: -2,
    flags: Flags::NONE,
    group: "generic",
    since: "2.2.3",
    complexity: "Depends on subcommand.",
    summary: "Commands about how values are stored and keys are used.",
    subcommands: SUBCOMMANDS,
    ..CommandRow::DEFAULT
}];

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "encoding",
        summary: "Names the form in which a value is stored.",
        handler: encoding,
        ..ABOUT_A_KEY
    },
    CommandRow {
        name: "freq",
        since: "4.0.0",
        summary: "Tells how often a key is used, on a logarithmic scale from 0 to 255.",
        handler: freq,
        ..ABOUT_A_KEY
    },
    CommandRow {
        name: "idletime",
        summary: "Tells for how many seconds a key has not been used.",
        handler: idletime,
        ..ABOUT_A_KEY
    },
    CommandRow {
        name: "refcount",
        summary: "Counts the references to a value: always 1.",
        handler: refcount,
        ..ABOUT_A_KEY
    },
    CommandRow {
        name: "help",
        arity: 2,
        flags: Flags::LOADING.with(Flags::STALE),
        categories: Categories::KEYSPACE,
        group: "generic",
        since: "6.2.0",
        complexity: "O(1)",
        summary: "Lists the subcommands.",
        handler: help,
        ..CommandRow::DEFAULT
    },
];

/// What the subcommands about one key have in common.
const ABOUT_A_KEY: CommandRow = CommandRow {
    arity: 3,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(2, KeyFlags::RO)],
    tips: &["nondeterministic_output"],
    group: "generic",
    since: "2.2.3",
    complexity: "O(1)",
    arguments: &[Argument::key("key", 0)],
    ..CommandRow::DEFAULT
};

const WITHOUT_LFU: CommandError = CommandError::Text(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between \
     policies at runtime LRU and LFU data will take some time to adjust.",
);
const WITH_LFU: CommandError = CommandError::Text(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at \
     runtime LRU and LFU data will take some time to adjust.",
);

fn encoding(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match cx.unit.read_unused(cx.keys[0]) {
        Some(entry) => cx.reply.bulk(encoding_of(&entry).as_bytes()),
        None => cx.reply.null(),
    }
    Ok(())
}

fn freq(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let Some(entry) = cx.unit.read_unused(cx.keys[0]) else {
        cx.reply.null();
        return Ok(());
    };
    let rule = cx.worker.access_rule();
    if rule == AccessRule::Recency {
        return Err(WITHOUT_LFU);
    }
    let frequency = rule.frequency(entry.access(), cx.unit.now_ms() / 1000);
    cx.reply.integer(i64::from(frequency));
    Ok(())
}

fn idletime(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let Some(entry) = cx.unit.read_unused(cx.keys[0]) else {
        cx.reply.null();
        return Ok(());
    };
    if cx.worker.access_rule() != AccessRule::Recency {
        return Err(WITH_LFU);
    }
    let idle = idle_s(entry.access(), cx.unit.now_ms() / 1000);
    cx.reply.integer(i64::from(idle));
    Ok(())
}

fn refcount(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match cx.unit.read_unused(cx.keys[0]) {
        Some(_) => cx.reply.integer(1),
        None => cx.reply.null(),
    }
    Ok(())
}

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_help(
        &mut cx.reply,
        &[
            "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "ENCODING <key>",
            "    Return the kind of internal representation used in order to store the value",
            "    associated with a <key>.",
            "FREQ <key>",
            "    Return the access frequency index of the <key>. The returned integer is",
            "    proportional to the logarithm of the recent access frequency of the key.",
            "IDLETIME <key>",
            "    Return the idle time of the <key>, that is the approximated number of",
            "    seconds elapsed since the last access to the key.",
            "REFCOUNT <key>",
            "    Return the number of references of the value associated with the specified",
            "    <key>.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}

/// What Redis would call the form of this value; ours is the same bytes either way.
pub(super) fn encoding_of(entry: &Entry<'_>) -> &'static str {
    match entry.value() {
        ValueRef::String(string) => string_encoding(entry, string).name(),
        ValueRef::Collection(collection) => collection.encoding(),
    }
}

/// What Redis would call the form of this string.
pub(super) fn string_encoding(entry: &Entry<'_>, string: StringRef<'_>) -> StringEncoding {
    match string {
        StringRef::Int(_) => StringEncoding::Int,
        _ if entry.is_raw() => StringEncoding::Raw,
        string => StringEncoding::of_bytes(
            entry.key().len(),
            value_len(string),
            entry.deadline().is_some(),
        ),
    }
}
