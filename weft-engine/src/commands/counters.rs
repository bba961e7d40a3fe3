//! Strings as numbers: INCR and its relatives.

use weft_data::long_double::LongDouble;
use weft_data::number;
use weft_keyspace::{DeadlineChange, NewValue};

use super::options::integer;
use super::values::short_text;
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, EventClass};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "incr",
        arity: 2,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )],
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Adds one to an integer; a missing key counts as 0.",
        arguments: &[Argument::key("key", 0)],
        handler: incr,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "decr",
        arity: 2,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )],
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Subtracts one from an integer; a missing key counts as 0.",
        arguments: &[Argument::key("key", 0)],
        handler: decr,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "incrby",
        arity: 3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )],
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Adds a number to an integer; a missing key counts as 0.",
        arguments: &[Argument::key("key", 0), Argument::integer("increment")],
        handler: incrby,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "decrby",
        arity: 3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )],
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Subtracts a number from an integer; a missing key counts as 0.",
        arguments: &[Argument::key("key", 0), Argument::integer("decrement")],
        handler: decrby,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "incrbyfloat",
        arity: 3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )],
        group: "string",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Adds a number to a decimal number; a missing key counts as 0.",
        arguments: &[Argument::key("key", 0), Argument::double("increment")],
        handler: incrbyfloat,
        ..CommandRow::DEFAULT
    },
];

fn incr(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    add(cx, 1)
}

fn decr(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    add(cx, -1)
}

fn incrby(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let delta = integer(&cx.args[2])?;
    add(cx, delta)
}

fn decrby(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let delta = integer(&cx.args[2])?
        .checked_neg()
        .ok_or(CommandError::Text("ERR decrement would overflow"))?;
    add(cx, delta)
}

fn add(cx: &mut Context<'_, '_>, delta: i64) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let value = match cx.unit.peek_string(key)? {
        None => 0,
        Some(string) => short_text(string)
            .and_then(|text| number::parse_i64(&text))
            .ok_or(CommandError::NotInteger)?,
    };
    let sum = value.checked_add(delta).ok_or(CommandError::Overflow)?;
    cx.unit.set(key, NewValue::Int(sum), DeadlineChange::Keep);
    cx.unit.touched(key, EventClass::String, "incrby");
    cx.unit
        .effect(&[b"INCRBY", key.name, number::format_i64(delta).as_bytes()]);
    cx.reply.integer(sum);
    Ok(())
}

/// The sum's text is the reply, the stored value and the effect, so that nobody computes it differently.
fn incrbyfloat(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let value = match cx.unit.peek_string(key)? {
        None => LongDouble::parse(b"0"),
        Some(string) => short_text(string).and_then(|text| LongDouble::parse(&text)),
    };
    let value = value.ok_or(CommandError::NotFloat)?;
    let delta = LongDouble::parse(&cx.args[2]).ok_or(CommandError::NotFloat)?;
    let sum = value + delta;
    if !sum.is_finite() {
        return Err(CommandError::NotANumberOrInfinity);
    }
    let text = sum.to_text();
    cx.unit
        .set(key, NewValue::Bytes(&text), DeadlineChange::Keep);
    cx.unit.touched(key, EventClass::String, "incrbyfloat");
    cx.unit.effect(&[b"SET", key.name, &text, b"KEEPTTL"]);
    cx.reply.bulk(&text);
    Ok(())
}
