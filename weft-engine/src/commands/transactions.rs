//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! What happens between MULTI and EXEC is dispatch's: it queues commands, and runs them when EXEC comes. Its handler is called
//! only where there is nothing to run.

use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;

/// What the rows of this family have in common.
const FAMILY: CommandRow = CommandRow {
    arity: 1,
    flags: Flags::NO_SCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST)
        .with(Flags::ALLOW_BUSY),
    categories: Categories::TRANSACTION,
    group: "transactions",
    ..CommandRow::DEFAULT
};

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "multi",
        flags: FAMILY.flags.with(Flags::AT_ONCE),
        since: "1.2.0",
        complexity: "O(1)",
        summary: "Begins a transaction: commands are queued from here on.",
        handler: multi,
        ..FAMILY
    },
    CommandRow {
        name: "exec",
        flags: Flags::NO_SCRIPT
            .with(Flags::LOADING)
            .with(Flags::STALE)
            .with(Flags::SKIP_SLOWLOG)
            .with(Flags::AT_ONCE)
            .with(Flags::RUNS_QUEUE),
        since: "1.2.0",
        complexity: "That of the commands queued",
        summary: "Runs the queued commands as one, unless a watched key has changed.",
        handler: exec,
        ..FAMILY
    },
    CommandRow {
        name: "discard",
        flags: FAMILY.flags.with(Flags::AT_ONCE),
        since: "2.0.0",
        complexity: "O(N) in the number of queued commands",
        summary: "Ends a transaction without running what was queued.",
        handler: discard,
        ..FAMILY
    },
    CommandRow {
        name: "watch",
        arity: -2,
        flags: FAMILY.flags.with(Flags::AT_ONCE),
        keys: &[KeySpec::range(1, -1, 1, KeyFlags::RO)],
        since: "2.2.0",
        complexity: "O(1) per key",
        summary: "Lets the next EXEC run nothing if one of these keys changes before.",
        arguments: &[Argument::key("key", 0).multiple()],
        handler: watch,
        ..FAMILY
    },
    CommandRow {
        name: "unwatch",
        since: "2.2.0",
        complexity: "O(1)",
        summary: "Forgets all watched keys.",
        handler: unwatch,
        ..FAMILY
    },
];

fn multi(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if cx.client.in_multi() {
        return Err(CommandError::Text("ERR MULTI calls can not be nested"));
    }
    cx.client.begin_multi();
    cx.reply.ok();
    Ok(())
}

fn exec(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR EXEC without MULTI"))
}

fn discard(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if !cx.client.in_multi() {
        return Err(CommandError::Text("ERR DISCARD without MULTI"));
    }
    cx.client.end_multi();
    cx.forget_watched_keys();
    cx.reply.ok();
    Ok(())
}

fn watch(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if cx.client.in_multi() {
        return Err(CommandError::Text("ERR WATCH inside MULTI is not allowed"));
    }
    // Once a key has changed there is nothing more to find out.
    if !cx.client.sees_change() {
        cx.watch_keys();
    }
    cx.reply.ok();
    Ok(())
}

fn unwatch(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.forget_watched_keys();
    cx.reply.ok();
    Ok(())
}
