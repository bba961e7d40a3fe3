//! Fields and their deadlines, or their removal, at once: HGETDEL, HGETEX and HSETEX.

use weft_data::hash::Deadline;
use weft_data::number;
use weft_resp::Args;

use super::super::options::{integer, is};
use super::deadlines::{FIELD_LIST, told_of_deadline, told_of_persistence};
use super::{
    FieldList, NOT_POSITIVE, Names, WRITE, changed, edit, edit_replying, effect_argument,
    field_deadline, len, peek, record_removal, reply_value_or_null, time_word, told_if_gone, value,
};
use crate::command::{Argument, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, EventClass, Key};
use crate::error::CommandError;

const SECONDS: Argument = Argument::integer("seconds").token("EX");
const MILLISECONDS: Argument = Argument::integer("milliseconds").token("PX");
const SECONDS_AT: Argument = Argument::unix_time("unix-time-seconds").token("EXAT");
const MILLISECONDS_AT: Argument = Argument::unix_time("unix-time-milliseconds").token("PXAT");

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "hgetdel",
        arity: -5,
        flags: Flags::WRITE.with(Flags::FAST),
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::DELETE),
        )],
        since: "8.0.0",
        complexity: "O(N) in the number of fields",
        summary: "Reads fields of a hash and removes them.",
        arguments: &[Argument::key("key", 0), FIELD_LIST],
        handler: hgetdel,
        ..WRITE
    },
    CommandRow {
        name: "hgetex",
        arity: -5,
        flags: Flags::WRITE.with(Flags::FAST),
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )
        .notes("RW and UPDATE because it changes the TTL")],
        since: "8.0.0",
        complexity: "O(N) in the number of fields",
        summary: "Reads fields of a hash and gives them deadlines or takes these.",
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "expiration",
                &[
                    SECONDS,
                    MILLISECONDS,
                    SECONDS_AT,
                    MILLISECONDS_AT,
                    Argument::word("persist", "PERSIST"),
                ],
            )
            .optional(),
            FIELD_LIST,
        ],
        handler: hgetex,
        ..WRITE
    },
    CommandRow {
        name: "hsetex",
        arity: -6,
        since: "8.0.0",
        complexity: "O(N) in the number of fields",
        summary: "Sets fields of a hash together with their deadlines.",
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "condition",
                &[Argument::word("fnx", "FNX"), Argument::word("fxx", "FXX")],
            )
            .optional(),
            Argument::one_of(
                "expiration",
                &[
                    SECONDS,
                    MILLISECONDS,
                    SECONDS_AT,
                    MILLISECONDS_AT,
                    Argument::word("keepttl", "KEEPTTL"),
                ],
            )
            .optional(),
            Argument::block(
                "fields",
                &[
                    Argument::integer("numfields"),
                    Argument::block(
                        "data",
                        &[Argument::string("field"), Argument::string("value")],
                    )
                    .multiple(),
                ],
            )
            .token("FIELDS"),
        ],
        handler: hsetex,
        ..WRITE
    },
];

fn hgetdel(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let exists = peek(cx.unit, key)?.is_some();
    let names = FieldList::parse(args, 2, NOT_POSITIVE)?.names(args);
    cx.reply.array(names.len());
    if !exists {
        names.iter().for_each(|_| cx.reply.null());
        return Ok(());
    }
    let edited = edit_replying(cx, key, |editing, reply| {
        let mut removed = Names::new();
        for name in names.iter() {
            editing.purge(name);
            reply_value_or_null(reply, editing.hash.get(name, editing.now_ms));
            if editing.hash.remove(name) {
                removed.push(name.into());
            }
        }
        removed
    })?;
    let removed = edited.result;
    if !removed.is_empty() {
        changed(cx, key, "hdel", removed.len());
        record_removal(cx, key, &removed);
    }
    told_if_gone(cx, key, edited.emptied);
    Ok(())
}

/// What HGETEX does besides reading.
#[derive(Clone, Copy)]
enum Change {
    None,
    Persist,
    Expire(u64),
}

fn hgetex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let exists = peek(cx.unit, key)?.is_some();
    let now = cx.unit.now_ms();
    let (change, list_at) = match time_word(&args[2]) {
        Some((unit, base)) => {
            let deadline = field_deadline(&args[3], unit, base, now, cx.row.name)?;
            if args.len() < 6 {
                return Err(CommandError::WrongArity(cx.row.name.into()));
            }
            (Change::Expire(deadline), 4)
        }
        None if is(&args[2], "PERSIST") => (Change::Persist, 3),
        None => (Change::None, 2),
    };
    let names = FieldList::parse(args, list_at, NOT_POSITIVE)?.names(args);
    cx.reply.array(names.len());
    if !exists {
        names.iter().for_each(|_| cx.reply.null());
        return Ok(());
    }
    let edited = edit_replying(cx, key, |editing, reply| {
        if !matches!(change, Change::None) {
            editing.hash.expect_deadlines();
        }
        let mut done = Names::new();
        for name in names.iter() {
            editing.purge(name);
            let field = editing.hash.get(name, now);
            reply_value_or_null(reply, field);
            let Some(old) = field.map(|field| field.deadline) else {
                continue;
            };
            let is_done = match change {
                Change::None => false,
                Change::Persist => old.is_some() && editing.hash.set_deadline(name, None),
                Change::Expire(deadline) if deadline <= now => editing.hash.remove(name),
                Change::Expire(deadline) => editing.hash.set_deadline(name, Some(deadline)),
            };
            if is_done {
                done.push(name.into());
            }
        }
        done
    })?;
    let done = edited.result;
    match change {
        _ if done.is_empty() => {}
        Change::None => {}
        Change::Persist => told_of_persistence(cx, &done),
        Change::Expire(deadline) => told_of_deadline(cx, &done, deadline <= now, deadline),
    }
    told_if_gone(cx, key, edited.emptied);
    Ok(())
}

/// What must hold of all fields before HSETEX sets any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    NoneIsThere,
    AllAreThere,
}

/// What HSETEX is asked to do.
struct Setting {
    condition: Option<Condition>,
    deadline: Deadline,
    /// Where the first field stands; fields and values reach to the end.
    first: usize,
}

impl Setting {
    /// The length of the longest name or value.
    fn longest(&self, args: Args<'_>) -> usize {
        let lengths = (self.first..args.len()).map(|index| len(args, index));
        lengths.max().unwrap_or(0)
    }

    fn parse(args: Args<'_>, now_ms: u64, command: &'static str) -> Result<Self, CommandError> {
        const ONE_CONDITION: CommandError =
            CommandError::Text("ERR Only one of FXX or FNX arguments can be specified");
        const ONE_DEADLINE: CommandError = CommandError::Text(
            "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
        );
        let wrong_arity = || CommandError::WrongArity(command.into());
        let (mut condition, mut deadline) = (None, None);
        let mut at = 2;
        while let Some(word) = args.get(at) {
            let wanted = match word {
                _ if is(word, "FNX") => Some(Condition::NoneIsThere),
                _ if is(word, "FXX") => Some(Condition::AllAreThere),
                _ => None,
            };
            if wanted.is_some() {
                if condition.is_some() {
                    return Err(ONE_CONDITION);
                }
                condition = wanted;
            } else if let Some((unit, base)) = time_word(word) {
                if deadline.is_some() {
                    return Err(ONE_DEADLINE);
                }
                at += 1;
                let text = args.get(at).ok_or_else(wrong_arity)?;
                deadline = Some(Deadline::At(field_deadline(
                    text, unit, base, now_ms, command,
                )?));
            } else if is(word, "KEEPTTL") {
                if deadline.is_some() {
                    return Err(ONE_DEADLINE);
                }
                deadline = Some(Deadline::Keep);
            } else if is(word, "FIELDS") {
                if args.len() < at + 4 {
                    return Err(wrong_arity());
                }
                let number = integer(&args[at + 1])
                    .ok()
                    .and_then(|number| i32::try_from(number).ok());
                let number = number.filter(|number| *number > 0);
                let number = number.ok_or(CommandError::Text("ERR invalid number of fields"))?;
                let first = at + 2;
                if args.len() - first != 2 * number as usize {
                    return Err(wrong_arity());
                }
                return Ok(Self {
                    condition,
                    deadline: deadline.unwrap_or(Deadline::Clear),
                    first,
                });
            } else {
                return Err(CommandError::quoting("ERR unknown argument: ", word, ""));
            }
            at += 1;
        }
        Err(wrong_arity())
    }
}

fn hsetex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let now = cx.unit.now_ms();
    let setting = Setting::parse(args, now, cx.row.name)?;
    let pairs = (setting.first..args.len()).step_by(2);
    let hash = peek(cx.unit, key)?.map(|(hash, _)| hash);
    let is_there = |at| hash.is_some_and(|hash| hash.get(&args[at], now).is_some());
    let holds = match setting.condition {
        None => true,
        Some(Condition::NoneIsThere) => !pairs.clone().any(is_there),
        Some(Condition::AllAreThere) => pairs.clone().all(is_there),
    };
    if !holds {
        cx.reply.integer(0);
        return Ok(());
    }
    match setting.deadline {
        Deadline::At(deadline) if deadline <= now => set_and_remove(cx, key, &setting)?,
        _ => set_with_deadline(cx, key, &setting)?,
    }
    cx.reply.integer(1);
    Ok(())
}

fn set_with_deadline(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    setting: &Setting,
) -> Result<(), CommandError> {
    let args = cx.args;
    let pairs = (setting.first..args.len()).step_by(2);
    edit(cx, key, |editing| {
        editing.hash.expect(pairs.len(), setting.longest(args));
        for at in pairs.clone() {
            editing.purge(&args[at]);
            editing
                .hash
                .set(&args[at], value(args, at + 1), setting.deadline);
        }
    })?;
    changed(cx, key, "hset", pairs.len());
    if let Deadline::At(_) = setting.deadline {
        cx.unit.touched_too(key, EventClass::Hash, "hexpire");
    }
    cx.unit.effect_with(|| {
        let mut words = vec![(&b"HSETEX"[..]).into(), key.name.into()];
        match setting.deadline {
            Deadline::Clear => {}
            Deadline::Keep => words.push((&b"KEEPTTL"[..]).into()),
            Deadline::At(deadline) => {
                words.push((&b"PXAT"[..]).into());
                words.push(number::format_u64(deadline).as_bytes().into());
            }
        }
        let rest = setting.first - 2..args.len();
        words.extend(rest.map(|index| effect_argument(args, index)));
        words
    });
    Ok(())
}

/// Fields that are set with a time that is over are gone at once, and were there for nobody.
fn set_and_remove(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    setting: &Setting,
) -> Result<(), CommandError> {
    let args = cx.args;
    let pairs = (setting.first..args.len()).step_by(2);
    let fields = pairs.len();
    let edited = edit(cx, key, |editing| {
        let mut removed = Names::new();
        if editing.hash.as_ref().is_some() {
            editing.hash.expect(fields, setting.longest(args));
            editing.hash.expect_deadlines();
        }
        for at in pairs {
            editing.purge(&args[at]);
            if editing.hash.remove(&args[at]) {
                removed.push(args[at].into());
            }
        }
        (
            removed,
            editing.hash.as_ref().is_none_or(|hash| hash.is_empty()),
        )
    })?;
    let (removed, nothing_is_left) = edited.result;
    changed(cx, key, "hset", fields);
    cx.unit.touched_too(key, EventClass::Hash, "hdel");
    told_if_gone(cx, key, nothing_is_left);
    if !removed.is_empty() {
        record_removal(cx, key, &removed);
    }
    Ok(())
}
