//! DEBUG: what test suites ask of a server.

use std::sync::atomic::Ordering;

use weft_data::number::parse_i64;
use weft_resp::{Protocol, Writer};

use super::options::is;
use crate::command::{CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "debug",
    system: true,
    arity: -2,
    flags: Flags::ADMIN
        .with(Flags::NO_SCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    group: "server",
    since: "1.0.0",
    complexity: "depends on the subcommand",
    summary: "Commands for testing and debugging.",
    handler: debug,
    ..CommandRow::DEFAULT
}];

const NOT_ALLOWED: CommandError = CommandError::Text(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local \
     connection, otherwise you need to set this option in the configuration file, and then restart the server.",
);

fn debug(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let permission = cx.worker.settings().enable_debug_command();
    if !permission.allows(cx.client.origin().local) {
        return Err(NOT_ALLOWED);
    }
    let word = &cx.args[1];
    match cx.args.get(2) {
        Some(on) if is(word, "SET-ACTIVE-EXPIRE") && cx.args.len() == 3 => {
            cx.engine
                .active_expiry
                .store(!is(on, "0"), Ordering::Relaxed);
            cx.reply.ok();
            Ok(())
        }
        Some(count) if is(word, "WORKERS") && cx.args.len() == 3 => force_workers(cx, count),
        Some(name) if is(word, "PROTOCOL") && cx.args.len() == 3 => {
            reply_sample(&mut cx.reply, name)
        }
        _ => {
            let wrong = "ERR unknown subcommand or wrong number of arguments for '";
            Err(CommandError::quoting(wrong, word, "'. Try DEBUG HELP."))
        }
    }
}

/// DEBUG WORKERS: a number of active workers, or `auto`.
fn force_workers(cx: &mut Context<'_, '_>, count: &[u8]) -> Result<(), CommandError> {
    let number = parse_i64(count).and_then(|count| usize::try_from(count).ok());
    let forced = match number {
        None if is(count, "AUTO") => cx.engine.host.force_workers(None),
        _ => cx.engine.host.force_workers(Some(number.unwrap_or(0))),
    };
    match forced {
        Ok(()) => {
            cx.reply.ok();
            Ok(())
        }
        Err(most) => {
            let text = format!(
                "ERR DEBUG WORKERS takes 'auto' or a number from 1 to {most}, the workers that 'io-threads' has started"
            );
            Err(CommandError::Composed(text.into_bytes().into()))
        }
    }
}

/// Replies with a value of the named type, for testing clients.
#[allow(
    clippy::approx_constant,
    reason = "these digits are what test suites expect, not pi"
)]
fn reply_sample(reply: &mut Writer<'_>, name: &[u8]) -> Result<(), CommandError> {
    match name {
        _ if is(name, "STRING") => reply.bulk(b"Hello World"),
        _ if is(name, "INTEGER") => reply.integer(12345),
        _ if is(name, "DOUBLE") => reply.double(3.141),
        _ if is(name, "NULL") => reply.null(),
        _ if is(name, "ARRAY") => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        _ if is(name, "SET") => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        _ if is(name, "MAP") => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        _ if is(name, "ATTRIB") => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        _ if is(name, "PUSH") => {
            if reply.protocol == Protocol::Resp2 {
                return Err(CommandError::Text(
                    "ERR RESP2 is not supported by this command",
                ));
            }
            reply.bulk(b"Some real reply following the push reply");
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
        }
        _ if is(name, "VERBATIM") => reply.verbatim("txt", b"This is a verbatim\nstring"),
        _ if is(name, "TRUE") => reply.boolean(true),
        _ if is(name, "FALSE") => reply.boolean(false),
        _ if is(name, "BIGNUM") => reply.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err(CommandError::Text(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}
