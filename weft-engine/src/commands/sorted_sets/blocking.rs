//! Taking members out of sorted sets that need not be there yet: the commands that wait.

use weft_keyspace::Awaited;

use super::super::timeouts;
use super::pops::{End, MultiplePop, TAKEN, peek_len, take};
use crate::blocking::{Nothing, Wish};
use crate::command::{Argument, Begin, Categories, CommandRow, Find, Flags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "bzpopmin",
        summary: "Takes the member with the lowest score out of the first of several sorted sets that exists, waiting for one.",
        handler: bzpopmin,
        ..POP
    },
    CommandRow {
        name: "bzpopmax",
        summary: "Takes the member with the highest score out of the first of several sorted sets that exists, waiting for one.",
        handler: bzpopmax,
        ..POP
    },
    CommandRow {
        name: "bzmpop",
        arity: -5,
        flags: Flags::WRITE.with(Flags::BLOCKING).with(Flags::MOVABLE_KEYS),
        keys: &[KeySpec {
            begin: Begin::Index(2),
            find: Find::KeyNumber {
                number: 0,
                first: 1,
                step: 1,
            },
            flags: TAKEN,
            notes: "",
        }],
        since: "7.0.0",
        complexity: "O(K)+O(M*log(N)) for K keys and M members taken out",
        summary: "Takes members out of the first of several sorted sets that exists, waiting for one.",
        history: &[],
        arguments: &[
            TIMEOUT,
            Argument::integer("numkeys"),
            Argument::key("key", 0).multiple(),
            Argument::one_of(
                "where",
                &[Argument::word("min", "MIN"), Argument::word("max", "MAX")],
            ),
            Argument::integer("count").token("COUNT").optional(),
        ],
        handler: bzmpop,
        ..POP
    },
];

const TIMEOUT: Argument = Argument::double("timeout");

const POP: CommandRow = CommandRow {
    arity: -3,
    flags: Flags::WRITE.with(Flags::BLOCKING).with(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::range(1, -2, 1, TAKEN)],
    group: "sorted-set",
    since: "5.0.0",
    complexity: "O(log(N))",
    history: &[("6.0.0", "Takes fractions of a second.")],
    arguments: &[Argument::key("key", 0).multiple(), TIMEOUT],
    ..CommandRow::DEFAULT
};

fn bzpopmin(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pop(cx, End::Lowest)
}

fn bzpopmax(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pop(cx, End::Highest)
}

fn pop(cx: &mut Context<'_, '_>, end: End) -> Result<(), CommandError> {
    let deadline_ns = timeouts::seconds(cx, &cx.args[cx.args.len() - 1])?;
    let keys = cx.keys;
    for key in keys.iter().filter(|key| key.is_at_hand()) {
        if let Some(len) = peek_len(cx, *key)? {
            // The key, the member and the score, flat in either protocol.
            cx.reply.array(3);
            cx.reply.bulk(key.name);
            return take(cx, *key, len, end, 1, false);
        }
    }
    wait(cx, deadline_ns);
    Ok(())
}

fn bzmpop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let wanted = MultiplePop::parse(cx.args.skip(1))?;
    let deadline_ns = timeouts::seconds(cx, &cx.args[1])?;
    if !wanted.pop(cx)? {
        wait(cx, deadline_ns);
    }
    Ok(())
}

fn wait(cx: &mut Context<'_, '_>, deadline_ns: Option<u64>) {
    cx.wait(Wish {
        awaits: Some((Awaited::SortedSet, 0..cx.keys.len())),
        condition: None,
        args: None,
        feeds: None,
        deadline_ns,
        lapsed: Nothing::NullArray,
        denied: Nothing::NullArray,
    });
}
