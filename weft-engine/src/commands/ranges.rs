//! Parts of strings: APPEND, GETRANGE, SETRANGE and their relatives.

use std::ops::Range;

use weft_data::number;
use weft_keyspace::{DeadlineChange, NewValue, StringRef};
use weft_resp::Writer;
use weft_rope::Rope;

use super::options::integer;
use super::values::{effect_arguments, stored, value_len};
use crate::command::{Argument, Categories, CommandRow, Deprecation, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, EventClass, Key, Progress, Steps, Unit};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "append",
        arity: 3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::INSERT))],
        group: "string",
        since: "2.0.0",
        complexity: "O(1) amortized for short additions",
        summary: "Adds bytes to the end of a string, which is made if missing.",
        arguments: &[Argument::key("key", 0), Argument::string("value")],
        handler: append,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "strlen",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        group: "string",
        since: "2.2.0",
        complexity: "O(1)",
        summary: "Tells the length of a string in bytes.",
        arguments: &[Argument::key("key", 0)],
        handler: strlen,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "getrange",
        arity: 4,
        flags: Flags::READONLY,
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        group: "string",
        since: "2.4.0",
        complexity: "O(N) in the length of the part, O(1) for a short one",
        summary: "Reads a part of a string.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("start"),
            Argument::integer("end"),
        ],
        handler: getrange,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "substr",
        arity: 4,
        flags: Flags::READONLY,
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        group: "string",
        since: "1.0.0",
        complexity: "O(N) in the length of the part, O(1) for a short one",
        summary: "Reads a part of a string.",
        deprecated: Some(Deprecation {
            since: "2.0.0",
            replaced_by: "GETRANGE",
        }),
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("start"),
            Argument::integer("end"),
        ],
        handler: substr,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "setrange",
        arity: 4,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        group: "string",
        since: "2.2.0",
        complexity: "O(1) for a short part, otherwise O(M) in its length",
        summary: "Overwrites a part of a string, which is made or lengthened as needed.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("offset"),
            Argument::string("value"),
        ],
        handler: setrange,
        ..CommandRow::DEFAULT
    },
];

fn strlen(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let length = cx.unit.string(cx.keys[0])?.map_or(0, value_len);
    cx.reply.integer(length as i64);
    Ok(())
}

fn append(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, added) = (cx.keys[0], cx.args.bytes_len(2).unwrap_or_default());
    let old_len = cx.unit.peek_string(key)?.map(value_len);
    match old_len {
        None => {
            cx.unit.set(key, stored(cx.args, 2), DeadlineChange::Clear);
        }
        Some(old_len) => {
            check_len(cx, old_len, added)?;
            overwrite(cx.unit, key, old_len, old_len, &cx.args[2]);
        }
    }
    cx.unit.touched(key, EventClass::String, "append");
    let args = cx.args;
    cx.unit.effect_with(|| effect_arguments(args));
    cx.reply
        .integer((old_len.unwrap_or_default() + added) as i64);
    Ok(())
}

fn setrange(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, added) = (cx.keys[0], cx.args.bytes_len(3).unwrap_or_default());
    let offset = integer(&cx.args[2])?;
    let offset =
        usize::try_from(offset).map_err(|_| CommandError::Text("ERR offset is out of range"))?;
    let old_len = cx.unit.peek_string(key)?.map_or(0, value_len);
    if added == 0 {
        cx.reply.integer(old_len as i64);
        return Ok(());
    }
    check_len(cx, offset, added)?;
    overwrite(cx.unit, key, old_len, offset, &cx.args[3]);
    cx.unit.touched(key, EventClass::String, "setrange");
    let args = cx.args;
    cx.unit.effect_with(|| effect_arguments(args));
    cx.reply.integer(old_len.max(offset + added) as i64);
    Ok(())
}

/// Whether `added` bytes at `offset` stay within the longest string allowed.
fn check_len(cx: &Context<'_, '_>, offset: usize, added: usize) -> Result<(), CommandError> {
    let most = cx.worker.settings().proto_max_bulk_len();
    match offset.checked_add(added) {
        Some(len) if len <= most => Ok(()),
        _ => Err(CommandError::StringTooLong),
    }
}

/// Writes `bytes` into the key's string of `old_len` bytes at `offset`, zeroes in between if it is shorter. It is `raw` from then on.
/// A missing key is made.
pub(super) fn overwrite(
    unit: &mut Unit<'_>,
    key: Key<'_>,
    old_len: usize,
    offset: usize,
    bytes: &[u8],
) {
    /// Up to here a new string is put together in one piece; longer ones are ropes.
    const PIECE_MAX: usize = 2048;
    let new_len = old_len.max(offset + bytes.len());
    if old_len == new_len
        && let Some(value) = unit.edit_bytes(key)
    {
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        unit.set_raw(key);
        return;
    }
    let old = unit.look(key).and_then(|entry| entry.string());
    if new_len <= PIECE_MAX {
        let mut value = Vec::with_capacity(new_len);
        match old {
            None => {}
            Some(StringRef::Int(old)) => {
                value.extend_from_slice(number::format_i64(old).as_bytes())
            }
            Some(StringRef::Bytes(old)) => value.extend_from_slice(old),
            Some(StringRef::Rope(old)) => value.extend_from_slice(&old.to_vec()),
        }
        value.resize(new_len, 0);
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        unit.set(key, NewValue::RawBytes(&value), DeadlineChange::Keep);
    } else if old.is_some() {
        if let Some(mut rope) = unit.rope_mut(key) {
            rope.write_at(offset, bytes);
        }
    } else {
        let mut rope = Rope::new();
        rope.write_at(offset, bytes);
        unit.set(key, NewValue::Rope(rope), DeadlineChange::Clear);
    }
}

fn getrange(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (start, end) = (integer(&cx.args[2])?, integer(&cx.args[3])?);
    let Some(string) = cx.unit.string(cx.keys[0])? else {
        cx.reply.bulk(b"");
        return Ok(());
    };
    let range = range(start, end, value_len(string));
    match string {
        StringRef::Int(value) => cx.reply.bulk(&number::format_i64(value).as_bytes()[range]),
        StringRef::Bytes(bytes) => cx.reply.bulk(&bytes[range]),
        StringRef::Rope(rope) => {
            let rope = rope.clone();
            cx.continue_with(RopePart { rope, range });
        }
    }
    Ok(())
}

fn substr(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    getrange(cx)
}

/// The units from `start` to `end` inclusive of a string of `len` units, negative numbers counted from its end. Nothing if both
/// are negative and in the wrong order, even where both would be cut to the first unit.
pub(super) fn range(start: i64, end: i64, len: usize) -> Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    range_cut(start, end, len)
}

/// The same without that exception.
pub(super) fn range_cut(start: i64, end: i64, len: usize) -> Range<usize> {
    let len = len as i64;
    if len == 0 {
        return 0..0;
    }
    let from_start = |at: i64| if at < 0 { (len + at).max(0) } else { at };
    let (start, end) = (from_start(start), from_start(end).min(len - 1));
    if start > end {
        0..0
    } else {
        start as usize..end as usize + 1
    }
}

/// A part of a large string on its way into the reply.
struct RopePart {
    rope: Rope,
    range: Range<usize>,
}

impl Steps for RopePart {
    fn step(&mut self, _budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        reply.bulk_rope_range(&self.rope, self.range.clone());
        Progress::Done
    }
}
