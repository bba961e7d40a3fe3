//! When keys expire: the EXPIRE and TTL families.

use weft_data::number;

use super::options::{ExpiryTime, TimeBase, TimeUnit, integer, is};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, EventClass};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "expire",
        arity: -3,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Lets a key expire after a number of seconds.",
        history: &[("7.0.0", "Takes NX, XX, GT and LT.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("seconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .optional()
            .since("7.0.0"),
        ],
        handler: expire,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "pexpire",
        arity: -3,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        group: "generic",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Lets a key expire after a number of milliseconds.",
        history: &[("7.0.0", "Takes NX, XX, GT and LT.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("milliseconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .optional()
            .since("7.0.0"),
        ],
        handler: pexpire,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "expireat",
        arity: -3,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        group: "generic",
        since: "1.2.0",
        complexity: "O(1)",
        summary: "Lets a key expire at a point in time, in seconds since 1970.",
        history: &[("7.0.0", "Takes NX, XX, GT and LT.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::unix_time("unix-time-seconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .optional()
            .since("7.0.0"),
        ],
        handler: expireat,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "pexpireat",
        arity: -3,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        group: "generic",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Lets a key expire at a point in time, in milliseconds since 1970.",
        history: &[("7.0.0", "Takes NX, XX, GT and LT.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::unix_time("unix-time-milliseconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .optional()
            .since("7.0.0"),
        ],
        handler: pexpireat,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "ttl",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Tells in how many seconds a key expires.",
        history: &[("2.8.0", "Answers -2 for a missing key.")],
        arguments: &[Argument::key("key", 0)],
        handler: ttl,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "pttl",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        group: "generic",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Tells in how many milliseconds a key expires.",
        history: &[("2.8.0", "Answers -2 for a missing key.")],
        arguments: &[Argument::key("key", 0)],
        handler: pttl,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "expiretime",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        group: "generic",
        since: "7.0.0",
        complexity: "O(1)",
        summary: "Tells when a key expires, in seconds since 1970.",
        arguments: &[Argument::key("key", 0)],
        handler: expiretime,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "pexpiretime",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        group: "generic",
        since: "7.0.0",
        complexity: "O(1)",
        summary: "Tells when a key expires, in milliseconds since 1970.",
        arguments: &[Argument::key("key", 0)],
        handler: pexpiretime,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "persist",
        arity: 2,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        group: "generic",
        since: "2.2.0",
        complexity: "O(1)",
        summary: "Lets a key live on without a deadline.",
        arguments: &[Argument::key("key", 0)],
        handler: persist,
        ..CommandRow::DEFAULT
    },
];

fn expire(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_deadline(cx, TimeUnit::Seconds, TimeBase::Relative)
}

fn pexpire(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_deadline(cx, TimeUnit::Milliseconds, TimeBase::Relative)
}

fn expireat(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_deadline(cx, TimeUnit::Seconds, TimeBase::Absolute)
}

fn pexpireat(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_deadline(cx, TimeUnit::Milliseconds, TimeBase::Absolute)
}

/// What is asked of the old deadline before a new one is set.
#[derive(Clone, Copy, Default)]
struct Conditions {
    none: bool,
    some: bool,
    later: bool,
    earlier: bool,
}

impl Conditions {
    fn parse(args: weft_resp::Args<'_>) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for word in args.iter().skip(3) {
            let condition = match word {
                _ if is(word, "NX") => &mut conditions.none,
                _ if is(word, "XX") => &mut conditions.some,
                _ if is(word, "GT") => &mut conditions.later,
                _ if is(word, "LT") => &mut conditions.earlier,
                _ => return Err(CommandError::quoting("ERR Unsupported option ", word, "")),
            };
            *condition = true;
        }
        if conditions.none && (conditions.some || conditions.later || conditions.earlier) {
            return Err(CommandError::Text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if conditions.later && conditions.earlier {
            return Err(CommandError::Text(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(conditions)
    }

    /// Whether they allow `new` in place of `old`; no deadline counts as the latest of all.
    fn allow(self, old: Option<u64>, new: i64) -> bool {
        let old_ms = old.map(|old| i64::try_from(old).unwrap_or(i64::MAX));
        !(self.none && old.is_some()
            || self.some && old.is_none()
            || self.later && old_ms.is_none_or(|old| new <= old)
            || self.earlier && old_ms.is_some_and(|old| new >= old))
    }
}

fn set_deadline(
    cx: &mut Context<'_, '_>,
    unit: TimeUnit,
    base: TimeBase,
) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let conditions = Conditions::parse(cx.args)?;
    let time = ExpiryTime {
        value: integer(&cx.args[2])?,
        unit,
        base,
    };
    let now = cx.unit.now_ms();
    let new = time
        .absolute_ms(now)
        .ok_or(CommandError::InvalidExpire(cx.row.name))?;
    let allowed = cx
        .unit
        .peek(key)
        .is_some_and(|entry| conditions.allow(entry.deadline(), new));
    if !allowed {
        cx.reply.integer(0);
        return Ok(());
    }
    match u64::try_from(new) {
        Ok(ms) if ms > now => {
            cx.unit.set_deadline(key, Some(ms));
            cx.unit.touched(key, EventClass::Generic, "expire");
            cx.unit
                .effect(&[b"PEXPIREAT", key.name, number::format_u64(ms).as_bytes()]);
        }
        _ => {
            cx.unit.remove(key);
            cx.unit.touched(key, EventClass::Generic, "del");
            cx.unit.effect(&[b"DEL", key.name]);
        }
    }
    cx.reply.integer(1);
    Ok(())
}

fn persist(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let had_deadline = cx
        .unit
        .peek(key)
        .is_some_and(|entry| entry.deadline().is_some());
    if had_deadline {
        cx.unit.set_deadline(key, None);
        cx.unit.touched(key, EventClass::Generic, "persist");
        cx.unit.effect(&[b"PERSIST", key.name]);
    }
    cx.reply.integer(i64::from(had_deadline));
    Ok(())
}

fn ttl(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_deadline(cx, |deadline, now| {
        (deadline.saturating_sub(now) + 500) / 1000
    })
}

fn pttl(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_deadline(cx, u64::saturating_sub)
}

fn expiretime(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_deadline(cx, |deadline, _| (deadline + 500) / 1000)
}

fn pexpiretime(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_deadline(cx, |deadline, _| deadline)
}

/// Answers -2 for a missing key, -1 for one without a deadline, otherwise what `show` makes of deadline and now.
fn reply_deadline(
    cx: &mut Context<'_, '_>,
    show: impl Fn(u64, u64) -> u64,
) -> Result<(), CommandError> {
    let shown = match cx
        .unit
        .read_unused(cx.keys[0])
        .map(|entry| entry.deadline())
    {
        None => -2,
        Some(None) => -1,
        Some(Some(deadline)) => i64::try_from(show(deadline, cx.unit.now_ms())).unwrap_or(i64::MAX),
    };
    cx.reply.integer(shown);
    Ok(())
}
