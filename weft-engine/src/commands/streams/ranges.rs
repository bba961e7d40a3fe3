//! Entries in a range of ids: XRANGE and XREVRANGE.

use super::super::options::{integer, is};
use super::{READ, end_id, reply_ranks, start_id};
use crate::command::{Argument, CommandRow};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "xrange",
        summary: "Reads the entries of a stream whose ids are in a range.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("start"),
            Argument::string("end"),
            COUNT,
        ],
        handler: xrange,
        ..RANGE
    },
    CommandRow {
        name: "xrevrange",
        summary: "Reads the entries of a stream whose ids are in a range, the last one first.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("end"),
            Argument::string("start"),
            COUNT,
        ],
        handler: xrevrange,
        ..RANGE
    },
];

const COUNT: Argument = Argument::integer("count").token("COUNT").optional();

const RANGE: CommandRow = CommandRow {
    arity: -4,
    complexity: "O(N) in the number of entries read",
    history: &[("6.2.0", "Ends can be left out of the range.")],
    ..READ
};

fn xrange(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    range(cx, 2, 3, false)
}

fn xrevrange(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    range(cx, 3, 2, true)
}

fn range(
    cx: &mut Context<'_, '_>,
    start: usize,
    end: usize,
    backwards: bool,
) -> Result<(), CommandError> {
    let args = cx.args;
    let (start, end) = (start_id(&args[start])?, end_id(&args[end])?);
    let mut most = None;
    let mut at = 4;
    while at < args.len() {
        if !is(&args[at], "COUNT") || at + 1 >= args.len() {
            return Err(CommandError::Syntax);
        }
        most = Some(integer(&args[at + 1])?.max(0) as u64);
        at += 2;
    }
    if most == Some(0) && super::stream(cx.unit, cx.keys[0])?.is_some() {
        cx.reply.null_array();
        return Ok(());
    }
    reply_ranks(cx, cx.keys[0], backwards, |stream| {
        let mut ranks = stream.ranks(start, end);
        let count = (ranks.end - ranks.start).min(most.unwrap_or(u64::MAX));
        if backwards {
            ranks.start = ranks.end - count;
        } else {
            ranks.end = ranks.start + count;
        }
        ranks
    })
}
