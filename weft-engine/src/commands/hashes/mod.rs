//! Hashes: fields, whole hashes, random fields, and fields that expire.
//!
//! Owns what these have in common: reaching a hash, telling of changes, replies. The order of fields, what hashes are called and where
//! deadlines stand is `weft_data::hash`'s. A field whose time has come is missing for every command; one that writes such a field removes it
//! first, and records that.

mod deadlines;
mod fields;
mod numbers;
mod random;
mod timed;
mod whole;

use weft_data::collection::Kind;
use weft_data::hash::{Field, HashMut, HashRef, Value};
use weft_resp::{Args, Writer};

use super::options::{ExpiryTime, TimeBase, TimeUnit, integer, is};
use super::values::effect_argument;
use crate::command::{Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, Edited, EventClass, Key, Unit};
use crate::error::CommandError;
use crate::journal::EffectArgument;

/// The rows about fields.
pub(super) const FIELDS: &[CommandRow] = fields::ROWS;
/// The rows about fields that are numbers.
pub(super) const NUMBERS: &[CommandRow] = numbers::ROWS;
/// The rows about all fields.
pub(super) const WHOLE: &[CommandRow] = whole::ROWS;
/// The rows about random fields.
pub(super) const RANDOM: &[CommandRow] = random::ROWS;
/// The rows about when fields expire.
pub(super) const DEADLINES: &[CommandRow] = deadlines::ROWS;
/// The rows of commands that read or write fields and their deadlines at once.
pub(super) const TIMED: &[CommandRow] = timed::ROWS;

/// What the commands that read one hash have in common.
const READ: CommandRow = CommandRow {
    flags: Flags::READONLY,
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    group: "hash",
    since: "2.0.0",
    ..CommandRow::DEFAULT
};

/// What the commands that write one hash have in common.
const WRITE: CommandRow = CommandRow {
    flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
    ..READ
};

/// The names of fields.
type Names = Vec<Box<[u8]>>;

/// The hash of the command's key, for reading, and the time if any of its fields expires.
fn hash<'u>(unit: &'u Unit<'_>, key: Key<'_>) -> Result<Option<(HashRef<'u>, u64)>, CommandError> {
    let collection = unit.collection(key, Kind::Hash)?;
    Ok(collection.map(|collection| at_its_time(unit, collection.into())))
}

/// The same before a write.
fn peek<'u>(unit: &'u Unit<'_>, key: Key<'_>) -> Result<Option<(HashRef<'u>, u64)>, CommandError> {
    let collection = unit.peek_collection(key, Kind::Hash)?;
    Ok(collection.map(|collection| at_its_time(unit, collection.into())))
}

/// The time is asked for only where it matters.
#[inline]
fn at_its_time<'u>(unit: &Unit<'_>, hash: HashRef<'u>) -> (HashRef<'u>, u64) {
    let now = hash.due().map_or(0, |_| unit.now_ms());
    (hash, now)
}

/// A change to a hash, and what it came upon.
struct Editing<'h, 'd, 'a> {
    hash: &'h mut HashMut<'d, 'a>,
    now_ms: u64,
    /// Fields that were removed because their time had come.
    expired: Names,
}

impl Editing<'_, '_, '_> {
    /// Removes the field if its time has come: before anything is done with it.
    fn purge(&mut self, name: &[u8]) {
        if self.hash.remove_due(name, self.now_ms) {
            self.expired.push(name.into());
        }
    }
}

/// Lets `act` change the key's hash, or make one. What had expired is told of and recorded before all else.
fn edit<R>(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    act: impl FnOnce(&mut Editing<'_, '_, '_>) -> R,
) -> Result<Edited<R>, CommandError> {
    edit_replying(cx, key, |editing, _| act(editing))
}

/// The same where the reply is written meanwhile.
fn edit_replying<R>(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    act: impl FnOnce(&mut Editing<'_, '_, '_>, &mut Writer<'_>) -> R,
) -> Result<Edited<R>, CommandError> {
    let (limits, seed) = (cx.worker.settings().hash_limits(), cx.unit.seed());
    let now_ms = cx.unit.now_ms();
    let reply = &mut cx.reply;
    let edited = cx.unit.edit(key, Kind::Hash, |draft| {
        let mut editing = Editing {
            hash: &mut HashMut::new(draft, limits, seed),
            now_ms,
            expired: Names::new(),
        };
        let result = act(&mut editing, reply);
        (result, editing.expired)
    })?;
    let (result, expired) = edited.result;
    cx.unit.fields_expired(key, &expired, false);
    Ok(Edited {
        result,
        emptied: edited.emptied,
    })
}

/// Tells of a change to so many fields, at least one.
fn changed(cx: &mut Context<'_, '_>, key: Key<'_>, event: &'static str, fields: usize) {
    cx.unit.touched(key, EventClass::Hash, event);
    // One is counted by that.
    cx.unit.touched_many(fields.saturating_sub(1));
}

/// Tells that the key is gone, if it is.
fn told_if_gone(cx: &mut Context<'_, '_>, key: Key<'_>, emptied: bool) {
    if emptied {
        cx.unit.touched_too(key, EventClass::Generic, "del");
    }
}

/// The value that the argument at `index` is.
fn value(args: Args<'_>, index: usize) -> Value<'_> {
    match args.rope(index) {
        Some(rope) => Value::Rope(rope),
        None => Value::Bytes(args.get(index).unwrap_or_default()),
    }
}

/// The length of the argument at `index`.
fn len(args: Args<'_>, index: usize) -> usize {
    args.bytes_len(index).unwrap_or(0)
}

fn reply_value(reply: &mut Writer<'_>, value: Value<'_>) {
    match value {
        Value::Bytes(bytes) => reply.bulk(bytes),
        Value::Rope(rope) => reply.bulk_rope(rope),
    }
}

fn reply_value_or_null(reply: &mut Writer<'_>, field: Option<Field<'_>>) {
    match field {
        Some(field) => reply_value(reply, field.value),
        None => reply.null(),
    }
}

/// Records `HDEL key field ...`.
fn record_removal(cx: &mut Context<'_, '_>, key: Key<'_>, names: &[Box<[u8]>]) {
    cx.unit.effect_with(|| {
        let words: [&[u8]; 2] = [b"HDEL", key.name];
        let words = words.into_iter().chain(names.iter().map(|name| &**name));
        words.map(EffectArgument::from).collect()
    });
}

/// Records `words ... FIELDS number field ...`.
fn record_fields(cx: &mut Context<'_, '_>, words: &[&[u8]], names: &[Box<[u8]>]) {
    cx.unit.effect_with(|| {
        let count = names.len().to_string();
        let all = words
            .iter()
            .copied()
            .chain([&b"FIELDS"[..], count.as_bytes()]);
        all.chain(names.iter().map(|name| &**name))
            .map(EffectArgument::from)
            .collect()
    });
}

/// Where the fields of a command with FIELDS stand: from `first` to the last argument.
#[derive(Clone, Copy, Debug)]
struct FieldList {
    first: usize,
}

const NO_FIELDS_WORD: CommandError =
    CommandError::Text("ERR Mandatory argument FIELDS is missing or not at the right position");
const WRONG_NUMBER: CommandError =
    CommandError::Text("ERR The `numfields` parameter must match the number of arguments");
const NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";

impl FieldList {
    /// Reads `FIELDS number field ...` from argument `at` to the end; a wrong number is answered with `refusal`.
    fn parse(args: Args<'_>, at: usize, refusal: &'static str) -> Result<Self, CommandError> {
        if !args.get(at).is_some_and(|word| is(word, "FIELDS")) {
            return Err(NO_FIELDS_WORD);
        }
        let number = args.get(at + 1).and_then(|text| integer(text).ok());
        let number = number
            .filter(|number| *number > 0)
            .ok_or(CommandError::Text(refusal))?;
        let first = at + 2;
        if u64::try_from(number).ok() == Some(args.len().saturating_sub(first) as u64) {
            Ok(Self { first })
        } else {
            Err(WRONG_NUMBER)
        }
    }

    fn names<'a>(self, args: Args<'a>) -> Args<'a> {
        args.skip(self.first)
    }
}

/// When a field is to expire, by an argument: milliseconds since 1970.
fn field_deadline(
    text: &[u8],
    unit: TimeUnit,
    base: TimeBase,
    now_ms: u64,
    command: &'static str,
) -> Result<u64, CommandError> {
    let value = integer(text)?;
    if value < 0 {
        return Err(CommandError::Text("ERR invalid expire time, must be >= 0"));
    }
    let time = ExpiryTime { value, unit, base };
    time.absolute_ms(now_ms)
        .and_then(|ms| u64::try_from(ms).ok())
        .filter(|ms| *ms < weft_data::hash::DEADLINE_END)
        .ok_or(CommandError::InvalidExpire(command))
}

/// The unit and origin of the time that follows EX, PX, EXAT or PXAT.
fn time_word(word: &[u8]) -> Option<(TimeUnit, TimeBase)> {
    match word {
        _ if is(word, "EX") => Some((TimeUnit::Seconds, TimeBase::Relative)),
        _ if is(word, "PX") => Some((TimeUnit::Milliseconds, TimeBase::Relative)),
        _ if is(word, "EXAT") => Some((TimeUnit::Seconds, TimeBase::Absolute)),
        _ if is(word, "PXAT") => Some((TimeUnit::Milliseconds, TimeBase::Absolute)),
        _ => None,
    }
}
