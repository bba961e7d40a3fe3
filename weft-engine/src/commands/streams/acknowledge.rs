//! Being done with entries: XACK, XACKDEL and XDELEX.

use smallvec::SmallVec;
use weft_data::number::parse_i64;
use weft_data::stream::{Deletion, Id, References, Stream};
use weft_resp::Args;

use super::super::options::is;
use super::super::values::effect_arguments;
use super::entries::{CONDITION, ids};
use super::trimming::references;
use super::{WRITE, edit, peek, strict_id, touched, touched_silently};
use crate::command::{Argument, CommandRow, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "xack",
        arity: -4,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        complexity: "O(1) for each id, more exactly the logarithm of the number of pending entries",
        summary: "Acknowledges entries: the group is done with them.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("group"),
            Argument::string("id").multiple(),
        ],
        handler: xack,
        ..WRITE
    },
    CommandRow {
        name: "xackdel",
        arity: -6,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::UPDATE).with(KeyFlags::DELETE),
        )],
        since: "8.2.0",
        complexity: "O(1) for each id, more exactly the logarithm of the number of entries",
        summary: "Acknowledges entries and removes them.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("group"),
            CONDITION.optional(),
            IDS,
        ],
        handler: xackdel,
        ..WRITE
    },
    CommandRow {
        name: "xdelex",
        arity: -5,
        since: "8.2.0",
        complexity: "O(1) for each id, more exactly the logarithm of the number of entries",
        summary: "Removes entries, and says what becomes of those that groups need.",
        arguments: &[Argument::key("key", 0), CONDITION.optional(), IDS],
        handler: xdelex,
        ..WRITE
    },
];

const IDS: Argument = Argument::block(
    "ids",
    &[
        Argument::integer("numids"),
        Argument::string("id").multiple(),
    ],
)
.token("IDS");

fn xack(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    let name = &args[2];
    let stream = peek(cx.unit, key)?;
    if stream.and_then(|stream| stream.group(name)).is_none() {
        cx.reply.integer(0);
        return Ok(());
    }
    let ids = ids(args, 3)?;
    let acknowledged = edit(cx.unit, key, |stream| {
        stream.edit_group(name, |group| {
            let done = ids.iter().filter(|id| group.acknowledge(**id));
            done.count()
        })
    })?;
    let acknowledged = acknowledged.unwrap_or_default();
    if acknowledged > 0 {
        touched_silently(cx.unit, key, acknowledged);
        cx.unit.effect_with(|| effect_arguments(args));
    }
    cx.reply.integer(acknowledged as i64);
    Ok(())
}

/// What XACKDEL and XDELEX say: the ids, as texts, and what becomes of entries that groups need.
struct Wanted<'a> {
    texts: SmallVec<[&'a [u8]; 8]>,
    references: References,
}

impl<'a> Wanted<'a> {
    fn parse(args: Args<'a>, mut at: usize) -> Result<Self, CommandError> {
        let mut given = None;
        let mut texts = None;
        while let Some(word) = args.get(at) {
            if is(word, "IDS") && at + 1 < args.len() {
                let count = parse_i64(&args[at + 1]).filter(|count| *count > 0);
                let count = count.and_then(|count| usize::try_from(count).ok());
                let count = count.ok_or(CommandError::Text(
                    "ERR Number of IDs must be a positive integer",
                ))?;
                at += 2;
                if count > args.len() - at {
                    return Err(CommandError::Text(
                        "ERR The `numids` parameter must match the number of arguments",
                    ));
                }
                texts = Some(args.skip(at).iter().take(count).collect());
                at += count;
            } else if given.is_none()
                && let Some(references) = references(word)
            {
                given = Some(references);
                at += 1;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(Self {
            texts: texts.ok_or(CommandError::Syntax)?,
            references: given.unwrap_or_default(),
        })
    }

    fn ids(&self) -> Result<SmallVec<[Id; 8]>, CommandError> {
        self.texts.iter().map(|text| strict_id(text, 0)).collect()
    }
}

/// What the reply says of an id.
const MISSING: i64 = -1;
const DONE: i64 = 1;
const NEEDED: i64 = 2;

fn reply_fates(cx: &mut Context<'_, '_>, fates: &[i64]) {
    cx.reply.array(fates.len());
    fates.iter().for_each(|fate| cx.reply.integer(*fate));
}

fn xdelex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    let exists = peek(cx.unit, key)?.is_some();
    let wanted = Wanted::parse(args, 2)?;
    if !exists {
        reply_fates(cx, &vec![MISSING; wanted.texts.len()]);
        return Ok(());
    }
    let ids = wanted.ids()?;
    let (mut deleted, mut forgotten) = (0, false);
    let fates = edit(cx.unit, key, |stream| {
        let fate_of = |id: &Id| {
            forgotten |= wanted.references == References::Delete && stream.is_pending(*id);
            match stream.delete(*id, wanted.references) {
                Deletion::Missing => MISSING,
                Deletion::Needed => NEEDED,
                Deletion::Deleted => {
                    deleted += 1;
                    DONE
                }
            }
        };
        ids.iter().map(fate_of).collect::<Vec<i64>>()
    })?;
    if deleted > 0 {
        touched(cx.unit, key, "xdel", deleted);
    } else if forgotten {
        touched_silently(cx.unit, key, 0);
    }
    if deleted > 0 || forgotten {
        cx.unit.effect_with(|| effect_arguments(args));
    }
    reply_fates(cx, &fates);
    Ok(())
}

fn xackdel(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    let name = &args[2];
    let stream = peek(cx.unit, key)?;
    let exists = stream.and_then(|stream| stream.group(name)).is_some();
    let wanted = Wanted::parse(args, 3)?;
    if !exists {
        reply_fates(cx, &vec![MISSING; wanted.texts.len()]);
        return Ok(());
    }
    let ids = wanted.ids()?;
    let (mut acknowledged, mut deleted) = (0, false);
    let fates = edit(cx.unit, key, |stream: &mut Stream| {
        let fate_of = |id: &Id| {
            let was_pending = stream.edit_group(name, |group| group.acknowledge(*id));
            if was_pending != Some(true) {
                return MISSING;
            }
            acknowledged += 1;
            match stream.delete(*id, wanted.references) {
                Deletion::Needed => NEEDED,
                Deletion::Missing => DONE,
                Deletion::Deleted => {
                    deleted = true;
                    DONE
                }
            }
        };
        ids.iter().map(fate_of).collect::<Vec<i64>>()
    })?;
    if deleted {
        touched(cx.unit, key, "xdel", acknowledged);
    } else if acknowledged > 0 {
        touched_silently(cx.unit, key, acknowledged);
    }
    if acknowledged > 0 {
        cx.unit.effect_with(|| effect_arguments(args));
    }
    reply_fates(cx, &fates);
    Ok(())
}
