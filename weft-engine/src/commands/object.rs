//! OBJECT: how a value is stored.

use weft_data::string_value::StringEncoding;
use weft_keyspace::{Entry, ValueRef};

use super::values::value_len;
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
    summary: "Commands about how values are stored.",
    subcommands: SUBCOMMANDS,
    ..CommandRow::DEFAULT
}];

const SUBCOMMANDS: &[CommandRow] = &[CommandRow {
    name: "encoding",
    arity: 3,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(2, KeyFlags::RO)],
    tips: &["nondeterministic_output"],
    group: "generic",
    since: "2.2.3",
    complexity: "O(1)",
    summary: "Names the form in which a value is stored.",
    arguments: &[Argument::key("key", 0)],
    handler: encoding,
    ..CommandRow::DEFAULT
}];

fn encoding(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match cx.unit.peek(cx.keys[0]) {
        Some(entry) => cx.reply.bulk(encoding_of(&entry).name().as_bytes()),
        None => cx.reply.null(),
    }
    Ok(())
}

/// What Redis would call the form of this value; ours is the same bytes either way.
fn encoding_of(entry: &Entry<'_>) -> StringEncoding {
    match entry.value() {
        ValueRef::Int(_) => StringEncoding::Int,
        _ if entry.is_raw() => StringEncoding::Raw,
        value => StringEncoding::of_bytes(
            entry.key().len(),
            value_len(value),
            entry.deadline().is_some(),
        ),
    }
}
