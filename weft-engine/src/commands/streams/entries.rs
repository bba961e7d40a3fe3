//! Adding and removing entries: XADD, XLEN, XDEL, XTRIM and XSETID.

use smallvec::SmallVec;
use weft_data::stream::{Deletion, Id, References, StreamRef};
use weft_resp::Args;

use super::super::options::{integer, is};
use super::super::values::{effect_argument, effect_arguments};
use super::trimming::{Options, trim};
use super::{READ, WRITE, edit, id_argument, peek, reply_id, stream, strict_id, touched};
use crate::command::{Argument, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, EventClass};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "xadd",
        arity: -5,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))
            .notes("UPDATE instead of INSERT because of the optional trimming feature")],
        tips: &["nondeterministic_output"],
        complexity: "O(1), with trimming O(N) in the number of entries removed",
        summary: "Appends an entry to a stream, which is made if there is none.",
        history: &[
            ("6.2.0", "Options `NOMKSTREAM`, `MINID` and `LIMIT`."),
            ("7.0.0", "An id of a given time, `<ms>-*`."),
            ("8.2.0", "Options `KEEPREF`, `DELREF` and `ACKED`."),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::word("nomkstream", "NOMKSTREAM")
                .optional()
                .since("6.2.0"),
            CONDITION.optional(),
            Argument::block("trim", &[STRATEGY, OPERATOR, THRESHOLD, LIMIT]).optional(),
            Argument::one_of(
                "id-selector",
                &[Argument::word("auto-id", "*"), Argument::string("id")],
            ),
            Argument::block(
                "data",
                &[Argument::string("field"), Argument::string("value")],
            )
            .multiple(),
        ],
        handler: xadd,
        ..WRITE
    },
    CommandRow {
        name: "xlen",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        complexity: "O(1)",
        summary: "Counts the entries of a stream.",
        arguments: &[Argument::key("key", 0)],
        handler: xlen,
        ..READ
    },
    CommandRow {
        name: "xdel",
        arity: -3,
        complexity: "O(1) for each entry removed, more exactly the logarithm of the number of entries",
        summary: "Removes entries from a stream.",
        arguments: &[Argument::key("key", 0), Argument::string("id").multiple()],
        handler: xdel,
        ..WRITE
    },
    CommandRow {
        name: "xtrim",
        arity: -4,
        flags: Flags::WRITE,
        tips: &["nondeterministic_output"],
        complexity: "O(N) in the number of entries removed",
        summary: "Removes the oldest entries of a stream.",
        history: &[
            ("6.2.0", "Options `MINID` and `LIMIT`."),
            ("8.2.0", "Options `KEEPREF`, `DELREF` and `ACKED`."),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::block(
                "trim",
                &[STRATEGY, OPERATOR, THRESHOLD, LIMIT, CONDITION.optional()],
            ),
        ],
        handler: xtrim,
        ..WRITE
    },
    CommandRow {
        name: "xsetid",
        arity: -3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        complexity: "O(1)",
        summary: "Sets what a stream knows of all its entries, for whoever copies it.",
        history: &[("7.0.0", "Options `ENTRIESADDED` and `MAXDELETEDID`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("last-id"),
            Argument::integer("entries-added")
                .token("ENTRIESADDED")
                .optional()
                .since("7.0.0"),
            Argument::string("max-deleted-id")
                .token("MAXDELETEDID")
                .optional()
                .since("7.0.0"),
        ],
        handler: xsetid,
        ..WRITE
    },
];

/// What happens to entries that groups need.
pub(super) const CONDITION: Argument = Argument::one_of(
    "condition",
    &[
        Argument::word("keepref", "KEEPREF"),
        Argument::word("delref", "DELREF"),
        Argument::word("acked", "ACKED"),
    ],
);
const STRATEGY: Argument = Argument::one_of(
    "strategy",
    &[
        Argument::word("maxlen", "MAXLEN"),
        Argument::word("minid", "MINID").since("6.2.0"),
    ],
);
const OPERATOR: Argument = Argument::one_of(
    "operator",
    &[
        Argument::word("equal", "="),
        Argument::word("approximately", "~"),
    ],
)
.optional();
const THRESHOLD: Argument = Argument::string("threshold");
const LIMIT: Argument = Argument::integer("count")
    .token("LIMIT")
    .optional()
    .since("6.2.0");

/// How the id of a new entry is found.
enum NewId {
    /// From the clock.
    Auto,
    /// The next one of that millisecond.
    At(u64),
    /// As given.
    Given(Id),
}

impl NewId {
    fn parse(text: &[u8]) -> Result<Self, CommandError> {
        if text == b"*" {
            return Ok(Self::Auto);
        }
        if let Some(ms) = text.strip_suffix(b"-*") {
            return Ok(Self::At(strict_id(ms, 0)?.ms));
        }
        Ok(Self::Given(strict_id(text, 0)?))
    }

    fn after(self, last: Id, now_ms: impl FnOnce() -> u64) -> Result<Id, CommandError> {
        if last == Id::MAX {
            return Err(CommandError::Text(
                "ERR The stream has exhausted the last possible ID, unable to add more items",
            ));
        }
        let id = match self {
            Self::Auto => {
                let ms = now_ms();
                if ms > last.ms {
                    Some(Id { ms, seq: 0 })
                } else {
                    last.next()
                }
            }
            Self::At(ms) if ms == last.ms => last.next().filter(|id| id.ms == ms),
            Self::At(ms) => Some(Id { ms, seq: 0 }),
            Self::Given(id) => Some(id),
        };
        id.filter(|id| *id > last).ok_or(CommandError::Text(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ))
    }
}

fn xadd(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let args = cx.args;
    let (options, at) = Options::parse(args, true)?;
    let wrong_arity = || CommandError::WrongArity("xadd".into());
    let id = args.get(at).map(NewId::parse).transpose()?;
    options.check(true)?;
    let id = id.ok_or_else(wrong_arity)?;
    let fields: SmallVec<[&[u8]; 16]> = args.skip(at + 1).iter().collect();
    if fields.is_empty() || fields.len() % 2 == 1 {
        return Err(wrong_arity());
    }
    if matches!(id, NewId::Given(Id::MIN)) {
        return Err(CommandError::Text(
            "ERR The ID specified in XADD must be greater than 0-0",
        ));
    }
    let key = cx.keys[0];
    let last = peek(cx.unit, key)?.map(StreamRef::last_id);
    if last.is_none() && options.make_no_stream {
        cx.reply.null();
        return Ok(());
    }
    let id = id.after(last.unwrap_or(Id::MIN), || cx.unit.now_ms())?;
    let limit = cx.stream_node_limit();
    let wanted = options.trim(cx.worker.settings().stream_node_max_entries());
    let trimmed = edit(cx.unit, key, |stream| {
        stream.add(id, &fields, limit);
        wanted.map(|wanted| trim(stream, wanted))
    })?;
    touched(cx.unit, key, "xadd", 1);
    cx.unit.effect_with(|| {
        let mut arguments = vec![b"XADD"[..].into(), key.name.into(), id_argument(id)];
        arguments.extend((at + 1..args.len()).map(|at| effect_argument(args, at)));
        arguments
    });
    if let (Some(wanted), Some(trimmed)) = (wanted, trimmed)
        && trimmed.removed > 0
    {
        cx.unit.touched_too(key, EventClass::Stream, "xtrim");
        cx.record_trim(key, wanted, trimmed);
    }
    reply_id(&mut cx.reply, id);
    Ok(())
}

fn xlen(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let stream = stream(cx.unit, cx.keys[0])?;
    cx.reply.integer(stream.map_or(0, StreamRef::len) as i64);
    Ok(())
}

/// The ids from an argument on.
pub(super) fn ids(args: Args<'_>, from: usize) -> Result<SmallVec<[Id; 8]>, CommandError> {
    let texts = args.skip(from);
    texts.iter().map(|text| strict_id(text, 0)).collect()
}

fn xdel(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    if peek(cx.unit, key)?.is_none() {
        cx.reply.integer(0);
        return Ok(());
    }
    let ids = ids(args, 2)?;
    let removed = edit(cx.unit, key, |stream| {
        let deletions = ids.iter().map(|id| stream.delete(*id, References::Keep));
        deletions.filter(|one| *one == Deletion::Deleted).count()
    })?;
    if removed > 0 {
        touched(cx.unit, key, "xdel", removed);
        cx.unit.effect_with(|| effect_arguments(args));
    }
    cx.reply.integer(removed as i64);
    Ok(())
}

fn xtrim(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (options, _) = Options::parse(cx.args, false)?;
    options.check(false)?;
    let key = cx.keys[0];
    let wanted = options.trim(cx.worker.settings().stream_node_max_entries());
    let (Some(_), Some(wanted)) = (peek(cx.unit, key)?, wanted) else {
        cx.reply.integer(0);
        return Ok(());
    };
    let trimmed = edit(cx.unit, key, |stream| trim(stream, wanted))?;
    if trimmed.removed > 0 {
        touched(cx.unit, key, "xtrim", trimmed.removed as usize);
        cx.record_trim(key, wanted, trimmed);
    }
    cx.reply.integer(trimmed.removed as i64);
    Ok(())
}

fn xsetid(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    let last_id = strict_id(&args[2], 0)?;
    let (mut added, mut max_removed) = (None, None);
    let mut at = 3;
    while let Some(word) = args.get(at) {
        let Some(value) = args.get(at + 1) else {
            return Err(CommandError::Syntax);
        };
        if is(word, "ENTRIESADDED") {
            let number = u64::try_from(integer(value)?);
            added =
                Some(number.map_err(|_| CommandError::Text("ERR entries_added must be positive"))?);
        } else if is(word, "MAXDELETEDID") {
            let id = strict_id(value, 0)?;
            if last_id < id {
                return Err(CommandError::Text(
                    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                ));
            }
            max_removed = Some(id);
        } else {
            return Err(CommandError::Syntax);
        }
        at += 2;
    }
    let Some(found) = peek(cx.unit, key)? else {
        return Err(CommandError::Text("ERR no such key"));
    };
    if last_id < found.max_removed() {
        return Err(CommandError::Text(
            "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
        ));
    }
    if found.last().is_some_and(|last| last_id < last.id) {
        return Err(CommandError::Text(
            "ERR The ID specified in XSETID is smaller than the target stream top item",
        ));
    }
    if added.is_some_and(|added| added < found.len()) {
        return Err(CommandError::Text(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    let max_removed = max_removed.filter(|id| *id != Id::MIN);
    edit(cx.unit, key, |stream| {
        stream.set_ids(last_id, added, max_removed)
    })?;
    touched(cx.unit, key, "xsetid", 1);
    cx.unit.effect_with(|| effect_arguments(args));
    cx.reply.ok();
    Ok(())
}
