//! Whole databases: DBSIZE, FLUSHDB, FLUSHALL, SWAPDB.

use super::options::{integer32, is};
use super::values::effect_arguments;
use crate::command::{Argument, Categories, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "dbsize",
        arity: 1,
        flags: Flags::READONLY.with(Flags::FAST).with(Flags::EXCLUSIVE),
        categories: Categories::KEYSPACE,
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        group: "server",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Counts the keys of the database.",
        handler: dbsize,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "flushdb",
        arity: -1,
        flags: Flags::WRITE.with(Flags::EXCLUSIVE),
        categories: Categories::KEYSPACE.with(Categories::DANGEROUS),
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        group: "server",
        since: "1.0.0",
        complexity: "O(N) in the number of keys",
        summary: "Empties the database.",
        history: &[("4.0.0", "Takes ASYNC."), ("6.2.0", "Takes SYNC.")],
        arguments: &[Argument::one_of(
            "flush-type",
            &[
                Argument::word("async", "ASYNC").since("4.0.0"),
                Argument::word("sync", "SYNC").since("6.2.0"),
            ],
        )
        .optional()],
        handler: flushdb,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "flushall",
        arity: -1,
        flags: Flags::WRITE.with(Flags::EXCLUSIVE),
        categories: Categories::KEYSPACE.with(Categories::DANGEROUS),
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        group: "server",
        since: "1.0.0",
        complexity: "O(N) in the number of keys",
        summary: "Empties all databases.",
        history: &[("4.0.0", "Takes ASYNC."), ("6.2.0", "Takes SYNC.")],
        arguments: &[Argument::one_of(
            "flush-type",
            &[
                Argument::word("async", "ASYNC").since("4.0.0"),
                Argument::word("sync", "SYNC").since("6.2.0"),
            ],
        )
        .optional()],
        handler: flushall,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "swapdb",
        arity: 3,
        flags: Flags::WRITE.with(Flags::FAST).with(Flags::EXCLUSIVE),
        categories: Categories::KEYSPACE.with(Categories::DANGEROUS),
        group: "server",
        since: "4.0.0",
        complexity: "O(N) in the clients that watch or wait for keys of the two databases",
        summary: "Exchanges two databases.",
        arguments: &[Argument::integer("index1"), Argument::integer("index2")],
        handler: swapdb,
        ..CommandRow::DEFAULT
    },
];

fn dbsize(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply
        .integer(cx.engine.keyspace.key_count(cx.unit.database()) as i64);
    Ok(())
}

fn flushdb(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    check_mode(cx)?;
    let database = cx.unit.database();
    flush(cx, Some(database), b"FLUSHDB")
}

fn flushall(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    check_mode(cx)?;
    flush(cx, None, b"FLUSHALL")
}

/// Tables are dropped at once and freed by the reaper whatever the mode.
fn check_mode(cx: &Context<'_, '_>) -> Result<(), CommandError> {
    match cx.args.get(1) {
        None => Ok(()),
        Some(mode) if cx.args.len() == 2 && (is(mode, "ASYNC") || is(mode, "SYNC")) => Ok(()),
        Some(_) => Err(CommandError::Syntax),
    }
}

fn flush(
    cx: &mut Context<'_, '_>,
    database: Option<usize>,
    command: &'static [u8],
) -> Result<(), CommandError> {
    let removed = cx.unit.flush(database);
    cx.unit.touched_many(removed);
    cx.unit.effect(&[command]);
    cx.reply.ok();
    Ok(())
}

fn swapdb(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const FIRST: CommandError = CommandError::Text("ERR invalid first DB index");
    const SECOND: CommandError = CommandError::Text("ERR invalid second DB index");
    let one = integer32(&cx.args[1]).map_err(|_| FIRST)?;
    let other = integer32(&cx.args[2]).map_err(|_| SECOND)?;
    let exists = |number: i32| {
        usize::try_from(number)
            .ok()
            .filter(|number| *number < cx.engine.keyspace.databases())
            .ok_or(CommandError::Text("ERR DB index is out of range"))
    };
    let (one, other) = (exists(one)?, exists(other)?);
    if one != other {
        cx.unit.swap_databases(one, other);
    }
    cx.unit.touched_many(1);
    cx.unit.effect_with(|| effect_arguments(cx.args));
    cx.reply.ok();
    Ok(())
}
