//! Waiting until others have what was written: WAIT and WAITAOF, of a server that has neither replicas nor a file yet.

use super::options::integer;
use super::timeouts;
use crate::blocking::{Nothing, Wish};
use crate::command::{Argument, Categories, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "wait",
        arity: 3,
        since: "3.0.0",
        summary: "Waits until replicas have what the connection has written.",
        arguments: &[
            Argument::integer("numreplicas"),
            Argument::integer("timeout"),
        ],
        handler: wait,
        ..WAIT
    },
    CommandRow {
        name: "waitaof",
        arity: 4,
        since: "7.2.0",
        summary: "Waits until what the connection has written is in the files of this server or of replicas.",
        arguments: &[
            Argument::integer("numlocal"),
            Argument::integer("numreplicas"),
            Argument::integer("timeout"),
        ],
        handler: waitaof,
        ..WAIT
    },
];

const WAIT: CommandRow = CommandRow {
    flags: Flags::BLOCKING,
    categories: Categories::CONNECTION,
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    group: "generic",
    complexity: "O(1)",
    ..CommandRow::DEFAULT
};

fn wait(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let replicas = integer(&cx.args[1])?;
    let deadline_ns = timeouts::milliseconds(cx, &cx.args[2])?;
    wait_for(cx, replicas, deadline_ns, Nothing::Zero);
    Ok(())
}

fn waitaof(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const LOCAL: CommandError =
        CommandError::Text("ERR value is out of range, value must between 0 and 1");
    const NOT_POSITIVE: CommandError =
        CommandError::Text("ERR value is out of range, must be positive");
    const NO_FILE: CommandError = CommandError::Text(
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
    );
    let local = integer(&cx.args[1])?;
    if !(0..=1).contains(&local) {
        return Err(LOCAL);
    }
    let replicas = integer(&cx.args[2]).map_err(|_| NOT_POSITIVE)?;
    if replicas < 0 {
        return Err(NOT_POSITIVE);
    }
    let deadline_ns = timeouts::milliseconds(cx, &cx.args[3])?;
    if local > 0 {
        return Err(NO_FILE);
    }
    wait_for(cx, replicas, deadline_ns, Nothing::Zeros);
    Ok(())
}

/// So many replicas do not come, so that only time or somebody else ends it.
fn wait_for(cx: &mut Context<'_, '_>, replicas: i64, deadline_ns: Option<u64>, none: Nothing) {
    if replicas <= 0 {
        return none.write(&mut cx.reply);
    }
    cx.wait(Wish {
        awaits: None,
        condition: None,
        args: None,
        feeds: None,
        deadline_ns,
        lapsed: none,
        denied: none,
    });
}
