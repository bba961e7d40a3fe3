//! When fields expire: the HEXPIRE and HTTL families.

use weft_data::number;

use super::super::options::{TimeBase, TimeUnit, is};
use super::{
    FieldList, NOT_POSITIVE, Names, READ, WRITE, changed, edit, field_deadline, hash, peek,
    record_fields, record_removal, told_if_gone,
};
use crate::command::{Argument, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The field list of COMMAND DOCS.
pub(super) const FIELD_LIST: Argument = Argument::block(
    "fields",
    &[
        Argument::integer("numfields"),
        Argument::string("field").multiple(),
    ],
)
.token("FIELDS");

const CONDITION: Argument = Argument::one_of(
    "condition",
    &[
        Argument::word("nx", "NX"),
        Argument::word("xx", "XX"),
        Argument::word("gt", "GT"),
        Argument::word("lt", "LT"),
    ],
)
.optional();

const KEY_AND_FIELDS: &[Argument] = &[Argument::key("key", 0), FIELD_LIST];

/// What the commands that set deadlines have in common.
const SET: CommandRow = CommandRow {
    arity: -6,
    flags: Flags::WRITE.with(Flags::FAST),
    since: "7.4.0",
    complexity: "O(N) in the number of fields",
    ..WRITE
};

/// What the commands that tell deadlines have in common.
const TELL: CommandRow = CommandRow {
    arity: -5,
    flags: Flags::READONLY.with(Flags::FAST),
    since: "7.4.0",
    complexity: "O(N) in the number of fields",
    arguments: KEY_AND_FIELDS,
    ..READ
};

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "hexpire",
        summary: "Lets fields of a hash expire after a number of seconds.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("seconds"),
            CONDITION,
            FIELD_LIST,
        ],
        handler: hexpire,
        ..SET
    },
    CommandRow {
        name: "hpexpire",
        summary: "Lets fields of a hash expire after a number of milliseconds.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("milliseconds"),
            CONDITION,
            FIELD_LIST,
        ],
        handler: hpexpire,
        ..SET
    },
    CommandRow {
        name: "hexpireat",
        summary: "Lets fields of a hash expire at a point in time, in seconds since 1970.",
        arguments: &[
            Argument::key("key", 0),
            Argument::unix_time("unix-time-seconds"),
            CONDITION,
            FIELD_LIST,
        ],
        handler: hexpireat,
        ..SET
    },
    CommandRow {
        name: "hpexpireat",
        summary: "Lets fields of a hash expire at a point in time, in milliseconds since 1970.",
        arguments: &[
            Argument::key("key", 0),
            Argument::unix_time("unix-time-milliseconds"),
            CONDITION,
            FIELD_LIST,
        ],
        handler: hpexpireat,
        ..SET
    },
    CommandRow {
        name: "hpersist",
        arity: -5,
        summary: "Lets fields of a hash live on without deadlines.",
        arguments: KEY_AND_FIELDS,
        handler: hpersist,
        ..SET
    },
    CommandRow {
        name: "httl",
        tips: &["nondeterministic_output"],
        summary: "Tells in how many seconds fields of a hash expire.",
        handler: httl,
        ..TELL
    },
    CommandRow {
        name: "hpttl",
        tips: &["nondeterministic_output"],
        summary: "Tells in how many milliseconds fields of a hash expire.",
        handler: hpttl,
        ..TELL
    },
    CommandRow {
        name: "hexpiretime",
        summary: "Tells when fields of a hash expire, in seconds since 1970.",
        handler: hexpiretime,
        ..TELL
    },
    CommandRow {
        name: "hpexpiretime",
        summary: "Tells when fields of a hash expire, in milliseconds since 1970.",
        handler: hpexpiretime,
        ..TELL
    },
];

/// What the commands answer for each field.
const MISSING: i64 = -2;
const WITHOUT_DEADLINE: i64 = -1;
const REFUSED: i64 = 0;
const DONE: i64 = 1;
const REMOVED: i64 = 2;

/// What is asked of the old deadline before a new one is set.
#[derive(Clone, Copy)]
enum Condition {
    None,
    NoDeadline,
    Deadline,
    Later,
    Earlier,
}

impl Condition {
    fn of_word(word: &[u8]) -> Option<Self> {
        match word {
            _ if is(word, "NX") => Some(Self::NoDeadline),
            _ if is(word, "XX") => Some(Self::Deadline),
            _ if is(word, "GT") => Some(Self::Later),
            _ if is(word, "LT") => Some(Self::Earlier),
            _ => None,
        }
    }

    /// Whether it allows `new` in place of `old`; no deadline counts as the latest of all.
    fn allows(self, old: Option<u64>, new: u64) -> bool {
        match self {
            Self::None => true,
            Self::NoDeadline => old.is_none(),
            Self::Deadline => old.is_some(),
            Self::Later => old.is_some_and(|old| new > old),
            Self::Earlier => old.is_none_or(|old| new < old),
        }
    }
}

fn hexpire(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_deadlines(cx, TimeUnit::Seconds, TimeBase::Relative)
}

fn hpexpire(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_deadlines(cx, TimeUnit::Milliseconds, TimeBase::Relative)
}

fn hexpireat(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_deadlines(cx, TimeUnit::Seconds, TimeBase::Absolute)
}

fn hpexpireat(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_deadlines(cx, TimeUnit::Milliseconds, TimeBase::Absolute)
}

fn set_deadlines(
    cx: &mut Context<'_, '_>,
    unit: TimeUnit,
    base: TimeBase,
) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let exists = peek(cx.unit, key)?.is_some();
    let now = cx.unit.now_ms();
    let deadline = field_deadline(&args[2], unit, base, now, cx.row.name)?;
    let condition = Condition::of_word(&args[3]);
    let list_at = if condition.is_some() { 4 } else { 3 };
    let list = FieldList::parse(
        args,
        list_at,
        "ERR Parameter `numFields` should be greater than 0",
    )?;
    let names = list.names(args);
    cx.reply.array(names.len());
    if !exists {
        names.iter().for_each(|_| cx.reply.integer(MISSING));
        return Ok(());
    }
    let condition = condition.unwrap_or(Condition::None);
    let mut answers = Vec::with_capacity(names.len());
    let edited = edit(cx, key, |editing| {
        let mut done = Names::new();
        editing.hash.expect_deadlines();
        for name in names.iter() {
            editing.purge(name);
            let old = editing.hash.get(name, now).map(|field| field.deadline);
            answers.push(match old {
                None => MISSING,
                Some(old) if !condition.allows(old, deadline) => REFUSED,
                Some(_) => {
                    done.push(name.into());
                    if deadline <= now {
                        editing.hash.remove(name);
                        REMOVED
                    } else {
                        editing.hash.set_deadline(name, Some(deadline));
                        DONE
                    }
                }
            });
        }
        done
    })?;
    if !edited.result.is_empty() {
        told_of_deadline(cx, &edited.result, deadline <= now, deadline);
    }
    told_if_gone(cx, key, edited.emptied);
    answers.iter().for_each(|answer| cx.reply.integer(*answer));
    Ok(())
}

/// Tells that fields, at least one, got a deadline, or went because it is over.
pub(super) fn told_of_deadline(
    cx: &mut Context<'_, '_>,
    names: &[Box<[u8]>],
    is_over: bool,
    deadline: u64,
) {
    let key = cx.keys[0];
    if is_over {
        changed(cx, key, "hdel", names.len());
        record_removal(cx, key, names);
    } else {
        changed(cx, key, "hexpire", names.len());
        let deadline = number::format_u64(deadline);
        record_fields(cx, &[b"HPEXPIREAT", key.name, deadline.as_bytes()], names);
    }
}

fn hpersist(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let exists = peek(cx.unit, key)?.is_some();
    let names = FieldList::parse(args, 2, NOT_POSITIVE)?.names(args);
    cx.reply.array(names.len());
    if !exists {
        names.iter().for_each(|_| cx.reply.integer(MISSING));
        return Ok(());
    }
    let now = cx.unit.now_ms();
    let mut answers = Vec::with_capacity(names.len());
    let edited = edit(cx, key, |editing| {
        let mut done = Names::new();
        for name in names.iter() {
            editing.purge(name);
            let old = editing.hash.get(name, now).map(|field| field.deadline);
            answers.push(match old {
                None => MISSING,
                Some(None) => WITHOUT_DEADLINE,
                Some(Some(_)) => {
                    editing.hash.set_deadline(name, None);
                    done.push(name.into());
                    DONE
                }
            });
        }
        done
    })?;
    if !edited.result.is_empty() {
        told_of_persistence(cx, &edited.result);
    }
    told_if_gone(cx, key, edited.emptied);
    answers.iter().for_each(|answer| cx.reply.integer(*answer));
    Ok(())
}

/// Tells that fields, at least one, lost their deadlines.
pub(super) fn told_of_persistence(cx: &mut Context<'_, '_>, names: &[Box<[u8]>]) {
    let key = cx.keys[0];
    changed(cx, key, "hpersist", names.len());
    record_fields(cx, &[b"HPERSIST", key.name], names);
}

fn httl(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_deadlines(cx, |deadline, now| (deadline - now).div_ceil(1000))
}

fn hpttl(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_deadlines(cx, |deadline, now| deadline - now)
}

fn hexpiretime(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_deadlines(cx, |deadline, _| deadline.div_ceil(1000))
}

fn hpexpiretime(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_deadlines(cx, |deadline, _| deadline)
}

/// Answers for each field -2 if it is missing, -1 if it does not expire, otherwise what `show` makes of deadline and now.
fn reply_deadlines(
    cx: &mut Context<'_, '_>,
    show: impl Fn(u64, u64) -> u64,
) -> Result<(), CommandError> {
    let hash = hash(cx.unit, cx.keys[0])?;
    let names = FieldList::parse(cx.args, 2, NOT_POSITIVE)?.names(cx.args);
    cx.reply.array(names.len());
    for name in names.iter() {
        let field = hash.and_then(|(hash, now)| Some((hash.get(name, now)?, now)));
        cx.reply.integer(match field {
            None => MISSING,
            Some((field, now)) => field.deadline.map_or(WITHOUT_DEADLINE, |deadline| {
                i64::try_from(show(deadline, now)).unwrap_or(i64::MAX)
            }),
        });
    }
    Ok(())
}
