//! Fields by name: HSET, HGET, HDEL and their relatives.

use weft_data::hash::{Deadline, Field, HashRef};

use super::super::values::effect_arguments;
use super::{
    Names, READ, WRITE, changed, edit, effect_argument, hash, len, peek, reply_value_or_null,
    told_if_gone, value,
};
use crate::command::{Argument, CommandRow, Deprecation, Flags, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;

const FIELDS_AND_VALUES: &[Argument] = &[
    Argument::key("key", 0),
    Argument::block(
        "data",
        &[Argument::string("field"), Argument::string("value")],
    )
    .multiple(),
];
const ONE_FIELD: &[Argument] = &[Argument::key("key", 0), Argument::string("field")];
const MANY_FIELDS: &[Argument] = &[
    Argument::key("key", 0),
    Argument::string("field").multiple(),
];

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "hset",
        arity: -4,
        complexity: "O(1) a field, O(N) for all of them",
        summary: "Sets fields of a hash.",
        history: &[("4.0.0", "Takes many fields and values.")],
        arguments: FIELDS_AND_VALUES,
        handler: hset,
        ..WRITE
    },
    CommandRow {
        name: "hsetnx",
        arity: 4,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::INSERT))],
        complexity: "O(1)",
        summary: "Sets a field of a hash unless it is there.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("field"),
            Argument::string("value"),
        ],
        handler: hsetnx,
        ..WRITE
    },
    CommandRow {
        name: "hmset",
        arity: -4,
        complexity: "O(N) in the number of fields",
        summary: "Sets fields of a hash.",
        deprecated: Some(Deprecation {
            since: "4.0.0",
            replaced_by: "`HSET`",
        }),
        arguments: FIELDS_AND_VALUES,
        handler: hmset,
        ..WRITE
    },
    CommandRow {
        name: "hget",
        arity: 3,
        flags: Flags::READONLY.with(Flags::FAST),
        complexity: "O(1)",
        summary: "Reads a field of a hash.",
        arguments: ONE_FIELD,
        handler: hget,
        ..READ
    },
    CommandRow {
        name: "hmget",
        arity: -3,
        flags: Flags::READONLY.with(Flags::FAST),
        complexity: "O(N) in the number of fields",
        summary: "Reads fields of a hash.",
        arguments: MANY_FIELDS,
        handler: hmget,
        ..READ
    },
    CommandRow {
        name: "hlen",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        complexity: "O(1)",
        summary: "Counts the fields of a hash.",
        arguments: &[Argument::key("key", 0)],
        handler: hlen,
        ..READ
    },
    CommandRow {
        name: "hstrlen",
        arity: 3,
        flags: Flags::READONLY.with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        since: "3.2.0",
        complexity: "O(1)",
        summary: "Tells the length of a field's value in bytes.",
        arguments: ONE_FIELD,
        handler: hstrlen,
        ..READ
    },
    CommandRow {
        name: "hexists",
        arity: 3,
        flags: Flags::READONLY.with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        complexity: "O(1)",
        summary: "Tells whether a hash has a field.",
        arguments: ONE_FIELD,
        handler: hexists,
        ..READ
    },
    CommandRow {
        name: "hdel",
        arity: -3,
        flags: Flags::WRITE.with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::DELETE))],
        complexity: "O(N) in the number of fields",
        summary: "Removes fields of a hash, and its key with the last one.",
        history: &[("2.4.0", "Takes many fields.")],
        arguments: MANY_FIELDS,
        handler: hdel,
        ..READ
    },
];

fn hset(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let added = set_pairs(cx)?;
    cx.reply.integer(added as i64);
    Ok(())
}

fn hmset(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_pairs(cx)?;
    cx.reply.ok();
    Ok(())
}

/// Sets the fields and values from argument 2 on, and says how many fields are new.
fn set_pairs(cx: &mut Context<'_, '_>) -> Result<usize, CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::WrongArity(cx.row.name.into()));
    }
    let pairs = (args.len() - 2) / 2;
    let added = edit(cx, key, |editing| {
        let longest = (2..args.len()).map(|index| len(args, index)).max();
        editing.hash.expect(pairs, longest.unwrap_or(0));
        let mut added = 0;
        for at in (2..args.len()).step_by(2) {
            editing.purge(&args[at]);
            added += usize::from(
                editing
                    .hash
                    .set(&args[at], value(args, at + 1), Deadline::Clear),
            );
        }
        added
    })?;
    changed(cx, key, "hset", pairs);
    cx.unit.effect_with(|| effect_arguments(args));
    Ok(added.result)
}

fn hsetnx(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let is_there = peek(cx.unit, key)?.is_some_and(|(hash, now)| hash.get(&args[2], now).is_some());
    if !is_there {
        edit(cx, key, |editing| {
            editing.purge(&args[2]);
            editing.hash.set(&args[2], value(args, 3), Deadline::Clear)
        })?;
        changed(cx, key, "hset", 1);
        cx.unit.effect_with(|| {
            let words = [(&b"HSET"[..]).into(), key.name.into()];
            words
                .into_iter()
                .chain([2, 3].map(|index| effect_argument(args, index)))
                .collect()
        });
    }
    cx.reply.integer(i64::from(!is_there));
    Ok(())
}

fn hget(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let field = hash(cx.unit, cx.keys[0])?.and_then(|(hash, now)| hash.get(&cx.args[2], now));
    reply_value_or_null(&mut cx.reply, field);
    Ok(())
}

fn hmget(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let hash = hash(cx.unit, cx.keys[0])?;
    let names = cx.args.skip(2);
    cx.reply.array(names.len());
    for name in names.iter() {
        let field = hash.and_then(|(hash, now)| hash.get(name, now));
        reply_value_or_null(&mut cx.reply, field);
    }
    Ok(())
}

fn hlen(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let fields = hash(cx.unit, cx.keys[0])?.map_or(0, |(hash, now)| HashRef::live_len(hash, now));
    cx.reply.integer(fields as i64);
    Ok(())
}

fn hstrlen(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let len = one_field(cx)?.map_or(0, |field| field.value.len());
    cx.reply.integer(len as i64);
    Ok(())
}

fn hexists(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let is_there = one_field(cx)?.is_some();
    cx.reply.integer(i64::from(is_there));
    Ok(())
}

/// The field that argument 2 names.
fn one_field<'c>(cx: &'c Context<'_, '_>) -> Result<Option<Field<'c>>, CommandError> {
    let hash = hash(cx.unit, cx.keys[0])?;
    Ok(hash.and_then(|(hash, now)| hash.get(&cx.args[2], now)))
}

fn hdel(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let edited = edit(cx, key, |editing| {
        let mut removed = Names::new();
        for name in args.skip(2).iter() {
            editing.purge(name);
            if editing.hash.remove(name) {
                removed.push(name.into());
            }
        }
        removed
    })?;
    let removed = edited.result.len();
    if removed > 0 {
        changed(cx, key, "hdel", removed);
        super::record_removal(cx, key, &edited.result);
    }
    told_if_gone(cx, key, edited.emptied);
    cx.reply.integer(removed as i64);
    Ok(())
}
