//! MONITOR: a connection that hears of every command.

use crate::command::{CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "monitor",
    arity: 1,
    flags: Flags::ADMIN
        .with(Flags::NO_SCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    group: "server",
    since: "1.0.0",
    summary: "Shows the connection every command that the server runs.",
    handler: monitor,
    ..CommandRow::DEFAULT
}];

/// Whoever monitors already gets no reply, as in Redis.
fn monitor(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if !cx.may_block() {
        return Err(CommandError::Text(
            "ERR MONITOR isn't allowed for DENY BLOCKING client",
        ));
    }
    if !cx.client.is_monitor() {
        cx.client.monitor();
        cx.reply.ok();
    }
    Ok(())
}
