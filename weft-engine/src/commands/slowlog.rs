//! SLOWLOG: commands that took too long.

use weft_data::number;

use super::reply_help;
use crate::command::{Argument, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "slowlog",
    arity: -2,
    flags: Flags::NONE,
    group: "server",
    since: "2.2.12",
    complexity: "Depends on subcommand.",
    summary: "Commands about the log of slow commands.",
    subcommands: SUBCOMMANDS,
    ..CommandRow::DEFAULT
}];

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "get",
        arity: -2,
        flags: ADMINISTRATION,
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        group: "server",
        since: "2.2.12",
        complexity: "O(N) in the number of entries returned",
        summary: "Returns the newest entries.",
        history: &[("4.0.0", "Entries tell the client's address and name.")],
        arguments: &[Argument::integer("count").optional()],
        handler: get,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "help",
        arity: 2,
        flags: Flags::LOADING.with(Flags::STALE),
        group: "server",
        since: "6.2.0",
        complexity: "O(1)",
        summary: "Lists the subcommands.",
        handler: help,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "len",
        arity: 2,
        flags: ADMINISTRATION,
        tips: &[
            "request_policy:all_nodes",
            "response_policy:agg_sum",
            "nondeterministic_output",
        ],
        group: "server",
        since: "2.2.12",
        complexity: "O(1)",
        summary: "Counts the entries.",
        handler: len,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "reset",
        arity: 2,
        flags: ADMINISTRATION,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        group: "server",
        since: "2.2.12",
        complexity: "O(N) in the number of entries",
        summary: "Forgets all entries.",
        handler: reset,
        ..CommandRow::DEFAULT
    },
];

const ADMINISTRATION: Flags = Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE);

/// How many entries are returned if nobody says how many.
const COUNT_DEFAULT: usize = 10;

fn get(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const COUNT: CommandError =
        CommandError::Text("ERR count should be greater than or equal to -1");
    let count = match (cx.args.get(2), cx.args.len()) {
        (None, _) => COUNT_DEFAULT,
        (Some(count), 3) => match number::parse_i64(count) {
            Some(-1) => usize::MAX,
            Some(count) => usize::try_from(count).map_err(|_| COUNT)?,
            None => return Err(COUNT),
        },
        _ => {
            return Err(CommandError::quoting(
                "ERR unknown subcommand or wrong number of arguments for '",
                &cx.args[1],
                "'. Try SLOWLOG HELP.",
            ));
        }
    };
    let entries = cx.engine.slow_log.newest(count);
    let integer = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    cx.reply.array(entries.len());
    for entry in entries {
        cx.reply.array(6);
        cx.reply.integer(integer(entry.id));
        cx.reply.integer(integer(entry.ended_s));
        cx.reply.integer(integer(entry.took_us));
        cx.reply.array(entry.arguments.len());
        for argument in &entry.arguments {
            cx.reply.bulk(argument);
        }
        cx.reply.bulk(entry.client_address.as_bytes());
        cx.reply.bulk(&entry.client_name);
    }
    Ok(())
}

fn len(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.integer(cx.engine.slow_log.len() as i64);
    Ok(())
}

fn reset(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.engine.slow_log.reset();
    cx.reply.ok();
    Ok(())
}

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_help(
        &mut cx.reply,
        &[
            "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "GET [<count>]",
            "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
            "    Entries are made of:",
            "    id, timestamp, time in microseconds, arguments array, client IP and port,",
            "    client name",
            "LEN",
            "    Return the length of the slowlog.",
            "RESET",
            "    Reset the slowlog.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
