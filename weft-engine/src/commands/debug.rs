//! DEBUG: what test suites ask of a server.
//!
//! It runs with the keyspace alone: DEBUG SLEEP stops everybody, and so may the rest, which nobody calls in earnest.

mod data;

use std::sync::atomic::Ordering;
use std::time::Duration;

use weft_data::number::{parse_f64, parse_i64};
use weft_resp::{Protocol, Writer};

use super::options::is;
use crate::action::Action;
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
        .with(Flags::STALE)
        .with(Flags::EXCLUSIVE),
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

/// Switches for parts of Redis that Weft has no counterpart of: its tables are always resized, its lists have no such
/// threshold. They take any value and change nothing.
const FOREIGN_SWITCHES: &[&str] = &[
    "DICT-RESIZING",
    "KEYSIZES-HIST-ASSERT",
    "QUICKLIST-PACKED-THRESHOLD",
];

const HELP: &[&str] = &[
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANGE-REPL-ID",
    "    Take a new replication ID.",
    "DIGEST",
    "    Reply with a number in 40 hexadecimal digits that two servers with the same",
    "    data share.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    The same for the value of each <key>; zeros for a missing one.",
    "ERROR <string>",
    "    Reply with <string> as an error.",
    "LOG <message>",
    "    Write <message> into the log.",
    "OBJECT <key>",
    "    Tell how the value of <key> is stored and used.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Make <count> strings named <prefix>:<number>, 'key' being the prefix if",
    "    none is given, unless they exist. Nothing of it is replicated.",
    "PROTOCOL <type>",
    "    Reply with a sample of a type: string, integer, double, bignum, null,",
    "    array, set, map, attrib, push, verbatim, true, false.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Switch the removal of overdue keys that nobody asks for off or on.",
    "SLEEP <seconds>",
    "    Stop the whole server for <seconds>, which may be a fraction.",
    "WORKERS <count|auto>",
    "    Make so many workers active, or leave it to the controller.",
    "HELP",
    "    Print this help.",
];

/// The time that DEBUG SLEEP means: none for what is no positive number.
fn duration(seconds: &[u8]) -> Duration {
    let seconds = parse_f64(seconds).unwrap_or(0.0);
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

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
        Some(text) if is(word, "ERROR") && cx.args.len() == 3 => {
            Err(CommandError::Composed(text.into()))
        }
        Some(text) if is(word, "LOG") && cx.args.len() == 3 => {
            let line = format!("DEBUG LOG: {}", String::from_utf8_lossy(text));
            cx.worker.actions.push(Action::Warn(line));
            cx.reply.ok();
            Ok(())
        }
        Some(seconds) if is(word, "SLEEP") && cx.args.len() == 3 => {
            cx.engine.host.sleep(duration(seconds));
            cx.reply.ok();
            Ok(())
        }
        // Nothing replicates by an id yet, so that a new one makes no difference.
        None if is(word, "CHANGE-REPL-ID") => {
            cx.reply.ok();
            Ok(())
        }
        Some(_) if cx.args.len() == 3 && FOREIGN_SWITCHES.iter().any(|name| is(word, name)) => {
            cx.reply.ok();
            Ok(())
        }
        None if is(word, "HELP") => {
            super::reply_help(&mut cx.reply, HELP);
            Ok(())
        }
        Some(name) if is(word, "OBJECT") && cx.args.len() == 3 => data::object(cx, name),
        Some(count) if is(word, "POPULATE") && cx.args.len() <= 5 => data::populate(cx, count),
        None if is(word, "DIGEST") => data::digest(cx),
        _ if is(word, "DIGEST-VALUE") => data::digest_values(cx),
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
