//! DEBUG's subcommands that end the process, or start it anew, or waste its memory.

use std::time::Duration;

use super::super::config::rewrite_file;
use super::super::options::integer;
use super::ok;
use crate::action::{Action, Fault, Shutdown};
use crate::config::Config;
use crate::dispatch::Context;
use crate::error::CommandError;

const CANNOT_RESTART: CommandError =
    CommandError::Text("ERR failed to restart the server. Check server logs.");

pub(super) fn segfault(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.engine.host.fail(Fault::Segfault)
}

pub(super) fn panic(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.engine.host.fail(Fault::Panic)
}

pub(super) fn assert(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.engine.host.fail(Fault::Assert)
}

pub(super) fn out_of_memory(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.engine.host.fail(Fault::OutOfMemory)
}

/// For those who test tools that look for leaks.
pub(super) fn leak(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Box::leak(Box::<[u8]>::from(&cx.args[2]));
    ok(cx)
}

/// There is no reply: the client sees its connection end.
pub(super) fn restart(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let delay = delay(cx)?;
    if !cx.engine.host.can_restart() {
        return Err(CANNOT_RESTART);
    }
    if let Some(Err(error)) = rewrite_file(cx.engine, Config::rewrite) {
        let line = format!("Can't restart: rewriting the configuration file failed: {error}");
        cx.worker.actions.push(Action::Warn(line));
        return Err(CANNOT_RESTART);
    }
    cx.worker.actions.push(Action::Shutdown(Shutdown {
        restart: Some(delay),
        ..Shutdown::default()
    }));
    cx.client.close_after_reply();
    Ok(())
}

pub(super) fn crash_and_recover(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let delay = delay(cx)?;
    if cx.engine.host.can_restart() {
        cx.engine.host.crash_and_recover(delay);
    }
    Err(CANNOT_RESTART)
}

/// Milliseconds; less than none are none.
fn delay(cx: &Context<'_, '_>) -> Result<Duration, CommandError> {
    let given = cx.args.get(2).map_or(Ok(0), integer)?;
    Ok(Duration::from_millis(u64::try_from(given).unwrap_or(0)))
}
