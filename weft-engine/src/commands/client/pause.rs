//! CLIENT PAUSE and UNPAUSE.

use weft_data::number;

use super::super::options::is;
use super::too_many;
use crate::action::Action;
use crate::clients::Scope;
use crate::dispatch::Context;
use crate::error::CommandError;

/// Runs with the keyspace alone: no batch is under way, and whatever follows sees the pause.
pub(super) fn pause(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let scope = match cx.args.get(3) {
        _ if cx.args.len() > 4 => return Err(too_many(&cx.args[1])),
        None => Scope::All,
        Some(word) if is(word, "ALL") => Scope::All,
        Some(word) if is(word, "WRITE") => Scope::Writes,
        Some(_) => {
            return Err(CommandError::Text(
                "ERR CLIENT PAUSE mode must be WRITE or ALL",
            ));
        }
    };
    let timeout_ms = number::parse_i64(&cx.args[2]).ok_or(CommandError::Text(
        "ERR timeout is not an integer or out of range",
    ))?;
    let timeout_ms =
        u64::try_from(timeout_ms).map_err(|_| CommandError::Text("ERR timeout is negative"))?;
    // Redis keeps the end as milliseconds since 1970.
    if timeout_ms > (i64::MAX as u64).saturating_sub(cx.unit.clock_us() / 1000) {
        return Err(CommandError::Text("ERR timeout is out of range"));
    }
    let now_ns = cx.unit.monotonic_ns();
    let until_ns = now_ns.saturating_add(timeout_ms.saturating_mul(1_000_000));
    cx.engine.clients.pause(scope, now_ns, until_ns);
    cx.reply.ok();
    Ok(())
}

pub(super) fn unpause(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.engine.clients.unpause();
    cx.worker.actions.push(Action::PauseEnded);
    cx.reply.ok();
    Ok(())
}
