//! Taking members out from either end: ZPOPMIN, ZPOPMAX and ZMPOP.

use std::ops::Range;

use weft_data::collection::Kind;
use weft_data::number::{format_u64, parse_i64};
use weft_data::sorted_set::SortedSetRef;
use weft_resp::Args;

use super::super::options::is;
use super::{AT_ONCE_MAX, Listing, Snapshot, reply_header, reply_item};
use crate::command::{Argument, Begin, Categories, CommandRow, Find, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, Key};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "zpopmin",
        summary: "Takes out the members with the lowest scores.",
        handler: zpopmin,
        ..POP
    },
    CommandRow {
        name: "zpopmax",
        summary: "Takes out the members with the highest scores.",
        handler: zpopmax,
        ..POP
    },
    CommandRow {
        name: "zmpop",
        arity: -4,
        flags: Flags::WRITE.with(Flags::MOVABLE_KEYS),
        keys: &[KeySpec {
            begin: Begin::Index(1),
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
        summary: "Takes members out of the first of several sorted sets that exists.",
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key", 0).multiple(),
            Argument::one_of(
                "where",
                &[Argument::word("min", "MIN"), Argument::word("max", "MAX")],
            ),
            Argument::integer("count").token("COUNT").optional(),
        ],
        handler: zmpop,
        ..POP
    },
];

/// What is done with a key that members are taken from.
pub(super) const TAKEN: KeyFlags = KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::DELETE);

const POP: CommandRow = CommandRow {
    arity: -2,
    flags: Flags::WRITE.with(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, TAKEN)],
    group: "sorted-set",
    since: "5.0.0",
    complexity: "O(log(N)*M) for M members taken out",
    arguments: &[
        Argument::key("key", 0),
        Argument::integer("count").optional(),
    ],
    ..CommandRow::DEFAULT
};

/// An end of a sorted set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Lowest,
    Highest,
}

impl End {
    const fn command(self) -> &'static [u8] {
        match self {
            End::Lowest => b"ZPOPMIN",
            End::Highest => b"ZPOPMAX",
        }
    }

    const fn event(self) -> &'static str {
        match self {
            End::Lowest => "zpopmin",
            End::Highest => "zpopmax",
        }
    }

    fn ranks(self, len: u64, count: u64) -> Range<u64> {
        let count = count.min(len);
        match self {
            End::Lowest => 0..count,
            End::Highest => len - count..len,
        }
    }
}

fn zpopmin(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pop(cx, End::Lowest)
}

fn zpopmax(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pop(cx, End::Highest)
}

fn pop(cx: &mut Context<'_, '_>, end: End) -> Result<(), CommandError> {
    if cx.args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let given = cx.args.get(2).map(|text| {
        let count = parse_i64(text).and_then(|count| u64::try_from(count).ok());
        count.ok_or(CommandError::Text(
            "ERR value is out of range, must be positive",
        ))
    });
    let given = given.transpose()?;
    let key = cx.keys[0];
    // One without a count is no pair, in RESP3 neither.
    let pairs = given.is_some() && cx.pairs();
    let Some(len) = peek_len(cx, key)? else {
        cx.reply.array(0);
        return Ok(());
    };
    let count = given.unwrap_or(1);
    reply_header(&mut cx.reply, count.min(len), true, pairs);
    take(cx, key, len, end, count, pairs)
}

/// How many members the sorted set has that will be changed, if it is there.
pub(super) fn peek_len(cx: &Context<'_, '_>, key: Key<'_>) -> Result<Option<u64>, CommandError> {
    let found = cx.unit.peek_collection(key, Kind::SortedSet)?;
    Ok(found.map(|set| SortedSetRef::from(set).len()))
}

/// Takes members out of a sorted set of `len` and replies them, without a header.
pub(super) fn take(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    len: u64,
    end: End,
    count: u64,
    pairs: bool,
) -> Result<(), CommandError> {
    let ranks = end.ranks(len, count);
    let count = ranks.end - ranks.start;
    let backwards = end == End::Highest;
    if count == 0 {
        return Ok(());
    }
    let emptied = if count == len && count > AT_ONCE_MAX {
        // All of it becomes the reply.
        if let Some(found) = cx.unit.peek_collection(key, Kind::SortedSet)? {
            let snapshot = Snapshot::of(found);
            cx.continue_with(Listing {
                snapshot,
                ranks,
                backwards,
                with_scores: true,
                pairs,
            });
        }
        cx.unit.remove(key)
    } else {
        let edited = cx.edit_sorted_set(key, 0, |set, reply| {
            set.as_ref()
                .each(ranks.clone(), backwards, |member, score| {
                    reply_item(reply, member, score, true, pairs);
                });
            set.remove_ranks(ranks, weft_keyspace::load_ahead);
        })?;
        edited.emptied
    };
    cx.sorted_set_touched(key, end.event(), count as usize, emptied);
    let count = format_u64(count);
    cx.unit.effect(&[end.command(), key.name, count.as_bytes()]);
    Ok(())
}

fn zmpop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if !MultiplePop::parse(cx.args)?.pop(cx)? {
        cx.reply.null_array();
    }
    Ok(())
}

/// What ZMPOP and BZMPOP take out of the first sorted set that is there.
pub(super) struct MultiplePop {
    end: End,
    count: u64,
}

impl MultiplePop {
    /// From the arguments, of which the second is the number of keys.
    pub(super) fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let positive = |text: &[u8], refused| {
            let number = parse_i64(text).filter(|number| *number > 0);
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.ok_or(CommandError::Text(refused))
        };
        let keys = positive(&args[1], "ERR numkeys should be greater than 0")?;
        let at = usize::try_from(keys)
            .unwrap_or(usize::MAX)
            .saturating_add(2);
        let end = match args.get(at) {
            Some(word) if is(word, "MIN") => End::Lowest,
            Some(word) if is(word, "MAX") => End::Highest,
            _ => return Err(CommandError::Syntax),
        };
        let count = match (args.get(at + 1), args.get(at + 2), args.get(at + 3)) {
            (None, ..) => 1,
            (Some(word), Some(count), more) if is(word, "COUNT") => {
                let count = positive(count, "ERR count should be greater than 0")?;
                if more.is_some() {
                    return Err(CommandError::Syntax);
                }
                count
            }
            _ => return Err(CommandError::Syntax),
        };
        Ok(Self { end, count })
    }

    /// Replies with the key and its members; false if there are none.
    pub(super) fn pop(&self, cx: &mut Context<'_, '_>) -> Result<bool, CommandError> {
        for key in cx.keys.iter().filter(|key| key.is_at_hand()) {
            if let Some(len) = peek_len(cx, *key)? {
                cx.reply.array(2);
                cx.reply.bulk(key.name);
                reply_header(&mut cx.reply, self.count.min(len), true, true);
                take(cx, *key, len, self.end, self.count, true)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
