//! Fields as numbers: HINCRBY and HINCRBYFLOAT. What a field is when it is counted up keeps its deadline.

use weft_data::hash::{Deadline, Field, Value};
use weft_data::long_double::LongDouble;
use weft_data::number;

use super::super::options::integer;
use super::{WRITE, changed, edit, peek};
use crate::command::{Argument, CommandRow, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "hincrby",
        arity: 4,
        keys: COUNTED,
        complexity: "O(1)",
        summary: "Adds a number to a field that is an integer; a missing one counts as 0.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("field"),
            Argument::integer("increment"),
        ],
        handler: hincrby,
        ..WRITE
    },
    CommandRow {
        name: "hincrbyfloat",
        arity: 4,
        keys: COUNTED,
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Adds a number to a field that is a decimal number; a missing one counts as 0.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("field"),
            Argument::double("increment"),
        ],
        handler: hincrbyfloat,
        ..WRITE
    },
];

const COUNTED: &[KeySpec] = &[KeySpec::one(
    1,
    KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
)];

/// What `parse` makes of the field that argument 2 names: `missing` if there is none, `refusal` if it is no number. Also whether
/// it expires.
fn counted<T>(
    cx: &Context<'_, '_>,
    missing: T,
    parse: impl FnOnce(&[u8]) -> Option<T>,
    refusal: &'static str,
) -> Result<(T, bool), CommandError> {
    let hash = peek(cx.unit, cx.keys[0])?;
    let field: Option<Field<'_>> = hash.and_then(|(hash, now)| hash.get(&cx.args[2], now));
    let Some(field) = field else {
        return Ok((missing, false));
    };
    let value = field.value.in_one_piece().and_then(parse);
    let value = value.ok_or(CommandError::Text(refusal))?;
    Ok((value, field.deadline.is_some()))
}

fn store(cx: &mut Context<'_, '_>, text: &[u8], event: &'static str) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    edit(cx, key, |editing| {
        editing.purge(&args[2]);
        editing
            .hash
            .set(&args[2], Value::Bytes(text), Deadline::Keep)
    })?;
    changed(cx, key, event, 1);
    Ok(())
}

fn hincrby(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let delta = integer(&cx.args[3])?;
    let (value, _) = counted(cx, 0, number::parse_i64, "ERR hash value is not an integer")?;
    let sum = value.checked_add(delta).ok_or(CommandError::Overflow)?;
    store(cx, number::format_i64(sum).as_bytes(), "hincrby")?;
    let (key, delta) = (cx.keys[0], number::format_i64(delta));
    cx.unit
        .effect(&[b"HINCRBY", key.name, &cx.args[2], delta.as_bytes()]);
    cx.reply.integer(sum);
    Ok(())
}

/// The sum's text is the reply, the stored value and the effect, so that nobody computes it differently.
fn hincrbyfloat(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let delta = LongDouble::parse(&cx.args[3]).ok_or(CommandError::NotFloat)?;
    if !delta.is_finite() {
        return Err(CommandError::Text("ERR value is NaN or Infinity"));
    }
    let zero = LongDouble::parse(b"0").ok_or(CommandError::NotFloat)?;
    let (value, expires) = counted(cx, zero, LongDouble::parse, "ERR hash value is not a float")?;
    let sum = value + delta;
    if !sum.is_finite() {
        return Err(CommandError::NotANumberOrInfinity);
    }
    let text = sum.to_text();
    store(cx, &text, "hincrbyfloat")?;
    let (key, name) = (cx.keys[0].name, &cx.args[2]);
    if expires {
        cx.unit
            .effect(&[b"HSETEX", key, b"KEEPTTL", b"FIELDS", b"1", name, &text]);
    } else {
        cx.unit.effect(&[b"HSET", key, name, &text]);
    }
    cx.reply.bulk(&text);
    Ok(())
}
