//! Strings as a whole: SET and GET and their relatives.

use weft_keyspace::DeadlineChange;
use weft_resp::Args;

use super::options::{ExpiryTime, TimeBase, TimeUnit, integer, is};
use super::values::{effect_argument, effect_arguments, reply_value, reply_value_or_null, stored};
use crate::command::{Argument, Categories, CommandRow, Deprecation, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, EventClass, Key};
use crate::error::CommandError;
use crate::journal::EffectArgument;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "set",
        arity: -3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::BRIEF),
        categories: Categories::STRING,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW
                .with(KeyFlags::ACCESS)
                .with(KeyFlags::UPDATE)
                .with(KeyFlags::VARIABLE),
        )
        .notes("RW and ACCESS due to the optional `GET` argument")],
        key_flags: Some(set_key_flags),
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Writes a string, whatever the key held before.",
        history: &[
            ("2.6.12", "Takes EX, PX, NX and XX."),
            ("6.0.0", "Takes KEEPTTL."),
            ("6.2.0", "Takes GET, EXAT and PXAT."),
            ("7.0.0", "NX and GET go together."),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("value"),
            Argument::one_of(
                "condition",
                &[Argument::word("nx", "NX"), Argument::word("xx", "XX")],
            )
            .optional()
            .since("2.6.12"),
            Argument::word("get", "GET").optional().since("6.2.0"),
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").token("EX").since("2.6.12"),
                    Argument::integer("milliseconds")
                        .token("PX")
                        .since("2.6.12"),
                    Argument::unix_time("unix-time-seconds")
                        .token("EXAT")
                        .since("6.2.0"),
                    Argument::unix_time("unix-time-milliseconds")
                        .token("PXAT")
                        .since("6.2.0"),
                    Argument::word("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ],
        handler: set,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "setnx",
        arity: 3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::OW.with(KeyFlags::INSERT))],
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Writes a string if the key does not exist.",
        deprecated: Some(Deprecation {
            since: "2.6.12",
            replaced_by: "SET with NX",
        }),
        arguments: &[Argument::key("key", 0), Argument::string("value")],
        handler: setnx,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "setex",
        arity: 4,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::BRIEF),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::OW.with(KeyFlags::UPDATE))],
        group: "string",
        since: "2.0.0",
        complexity: "O(1)",
        summary: "Writes a string that expires after a number of seconds.",
        deprecated: Some(Deprecation {
            since: "2.6.12",
            replaced_by: "SET with EX",
        }),
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("seconds"),
            Argument::string("value"),
        ],
        handler: setex,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "psetex",
        arity: 4,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::BRIEF),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::OW.with(KeyFlags::UPDATE))],
        group: "string",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Writes a string that expires after a number of milliseconds.",
        deprecated: Some(Deprecation {
            since: "2.6.12",
            replaced_by: "SET with PX",
        }),
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("milliseconds"),
            Argument::string("value"),
        ],
        handler: psetex,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "get",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Reads a string.",
        arguments: &[Argument::key("key", 0)],
        handler: get,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "getset",
        arity: 3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )],
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Writes a string and answers what was there before.",
        deprecated: Some(Deprecation {
            since: "6.2.0",
            replaced_by: "SET with GET",
        }),
        arguments: &[Argument::key("key", 0), Argument::string("value")],
        handler: getset,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "getdel",
        arity: 2,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::DELETE),
        )],
        group: "string",
        since: "6.2.0",
        complexity: "O(1)",
        summary: "Reads a string and removes its key.",
        arguments: &[Argument::key("key", 0)],
        handler: getdel,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "getex",
        arity: -2,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )
        .notes("RW and UPDATE because it changes the TTL")],
        group: "string",
        since: "6.2.0",
        complexity: "O(1)",
        summary: "Reads a string and changes when its key expires.",
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").token("EX"),
                    Argument::integer("milliseconds").token("PX"),
                    Argument::unix_time("unix-time-seconds").token("EXAT"),
                    Argument::unix_time("unix-time-milliseconds").token("PXAT"),
                    Argument::word("persist", "PERSIST"),
                ],
            )
            .optional(),
        ],
        handler: getex,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "mget",
        arity: -2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::range(
            1,
            -1,
            1,
            KeyFlags::RO.with(KeyFlags::ACCESS),
        )],
        tips: &["request_policy:multi_shard"],
        group: "string",
        since: "1.0.0",
        complexity: "O(N) in the number of keys",
        summary: "Reads several strings at one moment.",
        arguments: &[Argument::key("key", 0).multiple()],
        handler: mget,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "mset",
        arity: -3,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        categories: Categories::STRING,
        keys: &[KeySpec::range(
            1,
            -1,
            2,
            KeyFlags::OW.with(KeyFlags::UPDATE),
        )],
        tips: &[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ],
        group: "string",
        since: "1.0.1",
        complexity: "O(N) in the number of keys",
        summary: "Writes several strings at one moment.",
        arguments: &[Argument::block(
            "data",
            &[Argument::key("key", 0), Argument::string("value")],
        )
        .multiple()],
        handler: mset,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "msetnx",
        arity: -3,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        categories: Categories::STRING,
        keys: &[KeySpec::range(
            1,
            -1,
            2,
            KeyFlags::OW.with(KeyFlags::INSERT),
        )],
        group: "string",
        since: "1.0.1",
        complexity: "O(N) in the number of keys",
        summary: "Writes several strings at one moment if none of the keys exists.",
        arguments: &[Argument::block(
            "data",
            &[Argument::key("key", 0), Argument::string("value")],
        )
        .multiple()],
        handler: msetnx,
        ..CommandRow::DEFAULT
    },
];

/// What SET is asked to check first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Always,
    IfMissing,
    IfPresent,
}

/// What is to become of the key's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiration {
    /// Nothing was said.
    Unsaid,
    /// KEEPTTL.
    Keep,
    /// PERSIST.
    Persist,
    /// EX, PX, EXAT or PXAT; the number is at this argument. It is looked at only when all options are read, so that a
    /// syntax error comes first.
    At(usize, TimeUnit, TimeBase),
}

/// The options of SET and GETEX.
struct Options {
    condition: Condition,
    get: bool,
    expiration: Expiration,
}

impl Options {
    /// The options of SET, which stand behind key and value.
    fn of_set(args: Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self {
            condition: Condition::Always,
            get: false,
            expiration: Expiration::Unsaid,
        };
        let mut at = 3;
        while let Some(word) = args.get(at) {
            if is(word, "NX") && options.condition != Condition::IfPresent {
                options.condition = Condition::IfMissing;
            } else if is(word, "XX") && options.condition != Condition::IfMissing {
                options.condition = Condition::IfPresent;
            } else if is(word, "GET") {
                options.get = true;
            } else if is(word, "KEEPTTL")
                && matches!(options.expiration, Expiration::Unsaid | Expiration::Keep)
            {
                options.expiration = Expiration::Keep;
            } else {
                at = options.time(args, at)?;
            }
            at += 1;
        }
        Ok(options)
    }

    /// The options of GETEX, which stand behind the key.
    fn of_getex(args: Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self {
            condition: Condition::Always,
            get: false,
            expiration: Expiration::Unsaid,
        };
        let mut at = 2;
        while let Some(word) = args.get(at) {
            if is(word, "PERSIST")
                && matches!(options.expiration, Expiration::Unsaid | Expiration::Persist)
            {
                options.expiration = Expiration::Persist;
            } else {
                at = options.time(args, at)?;
            }
            at += 1;
        }
        Ok(options)
    }

    /// Takes the expiry time whose word is at `at` and says where its number is. The same word may be repeated, the
    /// last one counts.
    fn time(&mut self, args: Args<'_>, at: usize) -> Result<usize, CommandError> {
        const WORDS: [(&str, TimeUnit, TimeBase); 4] = [
            ("EX", TimeUnit::Seconds, TimeBase::Relative),
            ("PX", TimeUnit::Milliseconds, TimeBase::Relative),
            ("EXAT", TimeUnit::Seconds, TimeBase::Absolute),
            ("PXAT", TimeUnit::Milliseconds, TimeBase::Absolute),
        ];
        let (_, unit, base) = WORDS
            .iter()
            .find(|(word, ..)| is(&args[at], word))
            .ok_or(CommandError::Syntax)?;
        let free = match self.expiration {
            Expiration::Unsaid => true,
            Expiration::At(_, said_unit, said_base) => (said_unit, said_base) == (*unit, *base),
            Expiration::Keep | Expiration::Persist => false,
        };
        if !free || at + 1 >= args.len() {
            return Err(CommandError::Syntax);
        }
        self.expiration = Expiration::At(at + 1, *unit, *base);
        Ok(at + 1)
    }
}

/// The deadline in milliseconds since 1970 that the argument at `at` asks for.
fn deadline(
    cx: &Context<'_, '_>,
    at: usize,
    unit: TimeUnit,
    base: TimeBase,
) -> Result<u64, CommandError> {
    let value = integer(&cx.args[at])?;
    ExpiryTime { value, unit, base }.positive_ms(cx.unit.now_ms(), cx.row.name)
}

/// Stores the argument at `value_at` under the key, with a deadline or without one, and records it.
fn store(cx: &mut Context<'_, '_>, key: Key<'_>, value_at: usize, deadline: DeadlineChange) {
    cx.unit.set(key, stored(cx.args, value_at), deadline);
    cx.unit.touched(key, EventClass::String, "set");
    let args = cx.args;
    cx.unit.effect_with(|| {
        let mut effect: Vec<EffectArgument> = vec![
            b"SET".as_slice().into(),
            key.name.into(),
            effect_argument(args, value_at),
        ];
        match deadline {
            DeadlineChange::Keep => effect.push(b"KEEPTTL".as_slice().into()),
            DeadlineChange::Clear => {}
            DeadlineChange::At(ms) => {
                effect.push(b"PXAT".as_slice().into());
                effect.push(weft_data::number::format_u64(ms).as_bytes().into());
            }
        }
        effect
    });
    if matches!(deadline, DeadlineChange::At(_)) {
        cx.unit.touched(key, EventClass::Generic, "expire");
    }
}

fn set(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    if cx.args.len() == 3 {
        store(cx, key, 2, DeadlineChange::Clear);
        cx.reply.ok();
        return Ok(());
    }
    let options = Options::of_set(cx.args)?;
    let deadline = match options.expiration {
        Expiration::At(at, unit, base) => DeadlineChange::At(deadline(cx, at, unit, base)?),
        Expiration::Keep => DeadlineChange::Keep,
        Expiration::Unsaid | Expiration::Persist => DeadlineChange::Clear,
    };
    if options.get {
        reply_value_or_null(&mut cx.reply, cx.unit.string(key)?);
    }
    let exists = options.condition != Condition::Always && cx.unit.peek(key).is_some();
    let refused = match options.condition {
        Condition::Always => false,
        Condition::IfMissing => exists,
        Condition::IfPresent => !exists,
    };
    if !refused {
        store(cx, key, 2, deadline);
    }
    match (options.get, refused) {
        (true, _) => {}
        (false, true) => cx.reply.null(),
        (false, false) => cx.reply.ok(),
    }
    Ok(())
}

fn setnx(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let missing = cx.unit.peek(key).is_none();
    if missing {
        store(cx, key, 2, DeadlineChange::Clear);
    }
    cx.reply.integer(i64::from(missing));
    Ok(())
}

fn setex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_expiring(cx, TimeUnit::Seconds)
}

fn psetex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    set_expiring(cx, TimeUnit::Milliseconds)
}

fn set_expiring(cx: &mut Context<'_, '_>, unit: TimeUnit) -> Result<(), CommandError> {
    let deadline = deadline(cx, 2, unit, TimeBase::Relative)?;
    store(cx, cx.keys[0], 3, DeadlineChange::At(deadline));
    cx.reply.ok();
    Ok(())
}

fn get(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_value_or_null(&mut cx.reply, cx.unit.string(cx.keys[0])?);
    Ok(())
}

fn getset(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    reply_value_or_null(&mut cx.reply, cx.unit.string(key)?);
    store(cx, key, 2, DeadlineChange::Clear);
    Ok(())
}

fn getdel(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let string = cx.unit.string(key)?;
    let found = string.is_some();
    reply_value_or_null(&mut cx.reply, string);
    if found {
        delete(cx, key);
    }
    Ok(())
}

fn delete(cx: &mut Context<'_, '_>, key: Key<'_>) {
    if cx.unit.remove(key) {
        cx.unit.touched(key, EventClass::Generic, "del");
        cx.unit.effect(&[b"DEL", key.name]);
    }
}

fn getex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let options = Options::of_getex(cx.args)?;
    let Some(entry) = cx.unit.read(key) else {
        cx.reply.null();
        return Ok(());
    };
    let string = entry.string().ok_or(CommandError::WrongType)?;
    let had_deadline = entry.deadline().is_some();
    let new = match options.expiration {
        Expiration::At(at, unit, base) => Some(deadline(cx, at, unit, base)?),
        _ => None,
    };
    reply_value(&mut cx.reply, string);
    match new {
        Some(ms) if ms <= cx.unit.now_ms() => delete(cx, key),
        Some(ms) => {
            cx.unit.set_deadline(key, Some(ms));
            cx.unit.touched(key, EventClass::Generic, "expire");
            cx.unit.effect(&[
                b"PEXPIREAT",
                key.name,
                weft_data::number::format_u64(ms).as_bytes(),
            ]);
        }
        None if options.expiration == Expiration::Persist && had_deadline => {
            cx.unit.set_deadline(key, None);
            cx.unit.touched(key, EventClass::Generic, "persist");
            cx.unit.effect(&[b"PERSIST", key.name]);
        }
        None => {}
    }
    Ok(())
}

fn mget(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.array(cx.keys.len());
    for key in cx.keys {
        // What is no string is as good as missing here.
        let string = cx.unit.read(*key).and_then(|entry| entry.string());
        reply_value_or_null(&mut cx.reply, string);
        if cx.reply_is_void() {
            break;
        }
    }
    Ok(())
}

fn mset(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pairs(cx)?;
    set_pairs(cx);
    cx.reply.ok();
    Ok(())
}

fn msetnx(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pairs(cx)?;
    let all_missing = cx.keys.iter().all(|key| cx.unit.peek(*key).is_none());
    if all_missing {
        set_pairs(cx);
    }
    cx.reply.integer(i64::from(all_missing));
    Ok(())
}

/// Whether every key has its value.
fn pairs(cx: &Context<'_, '_>) -> Result<(), CommandError> {
    if cx.args.len() % 2 == 1 {
        Ok(())
    } else {
        Err(CommandError::WrongArity(cx.row.name.into()))
    }
}

fn set_pairs(cx: &mut Context<'_, '_>) {
    for (index, key) in cx.keys.iter().enumerate() {
        cx.unit
            .set(*key, stored(cx.args, index * 2 + 2), DeadlineChange::Clear);
        cx.unit.touched(*key, EventClass::String, "set");
    }
    let args = cx.args;
    cx.unit.effect_with(|| {
        let mut effect = effect_arguments(args);
        effect[0] = b"MSET".as_slice().into();
        effect
    });
}

/// SET reads the old value only when it is asked for it.
fn set_key_flags(args: Args<'_>) -> KeyFlags {
    let get = args.iter().skip(3).any(|word| is(word, "GET"));
    if get {
        KeyFlags::RW | KeyFlags::ACCESS | KeyFlags::UPDATE
    } else {
        KeyFlags::OW | KeyFlags::UPDATE
    }
}
