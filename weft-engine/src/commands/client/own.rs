//! What a connection asks and says about itself.

use super::super::options::is;
use crate::clients::ClientFlags;
use crate::dispatch::Context;
use crate::error::CommandError;

pub(in super::super) const BAD_NAME: CommandError =
    CommandError::Text("ERR Client names cannot contain spaces, newlines or special characters.");

/// Whether every byte up to the first zero is printable ASCII and no space.
pub(in super::super) fn is_attribute(text: &[u8]) -> bool {
    text.iter()
        .take_while(|byte| **byte != 0)
        .all(u8::is_ascii_graphic)
}

pub(super) fn id(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.integer(cx.client.id() as i64);
    Ok(())
}

pub(super) fn info(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.client.publish(cx.reply.out.len(), cx.args.total_bytes());
    let mut line = cx.client.line(cx.unit.monotonic_ns());
    cx.client.unpublish();
    line.push(b'\n');
    cx.reply.verbatim("txt", &line);
    Ok(())
}

pub(super) fn getname(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let name = cx.client.record().name();
    if name.is_empty() {
        cx.reply.null();
    } else {
        cx.reply.bulk(&name);
    }
    Ok(())
}

pub(super) fn setname(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if !is_attribute(&cx.args[2]) {
        return Err(BAD_NAME);
    }
    cx.client.record().set_name(&cx.args[2]);
    cx.reply.ok();
    Ok(())
}

pub(super) fn setinfo(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (word, text) = (&cx.args[2], &cx.args[3]);
    let named = is(word, "LIB-NAME");
    if !named && !is(word, "LIB-VER") {
        return Err(CommandError::quoting(
            "ERR Unrecognized option '",
            word,
            "'",
        ));
    }
    if !is_attribute(text) {
        return Err(CommandError::quoting(
            "ERR ",
            word,
            " cannot contain spaces, newlines or special characters.",
        ));
    }
    let record = cx.client.record();
    if named {
        record.set_library_name(text);
    } else {
        record.set_library_version(text);
    }
    cx.reply.ok();
    Ok(())
}

/// Nothing is tracked, so nothing is redirected.
pub(super) fn getredir(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.integer(-1);
    Ok(())
}

/// Only ON is answered.
pub(super) fn reply(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match &cx.args[2] {
        word if is(word, "ON") => {
            cx.client.want_replies(true);
            cx.reply.ok();
        }
        word if is(word, "OFF") => cx.client.want_replies(false),
        word if is(word, "SKIP") => cx.client.replies.skip_next = !cx.client.replies.off,
        _ => return Err(CommandError::Syntax),
    }
    Ok(())
}

/// The argument as a switch.
fn switch(word: &[u8]) -> Result<bool, CommandError> {
    match word {
        _ if is(word, "ON") => Ok(true),
        _ if is(word, "OFF") => Ok(false),
        _ => Err(CommandError::Syntax),
    }
}

pub(super) fn no_evict(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let on = switch(&cx.args[2])?;
    cx.client.set_flag(ClientFlags::NO_EVICT, on);
    cx.reply.ok();
    Ok(())
}

pub(super) fn no_touch(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let on = switch(&cx.args[2])?;
    cx.client.set_flag(ClientFlags::NO_TOUCH, on);
    cx.reply.ok();
    Ok(())
}
