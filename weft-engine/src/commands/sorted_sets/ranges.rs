//! Parts of sorted sets by rank, by score or by member: listed, counted, stored, removed.

use std::ops::Range;

use weft_data::collection::{Built, Kind};
use weft_data::sorted_set::{self, MemberRange, ScoreRange, SortedSetRef};
use weft_resp::Args;

use super::super::options::{integer, is};
use super::super::values::effect_arguments;
use super::{bounds, reply_ranks};
use crate::command::{Argument, Categories, CommandRow, Deprecation, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, Key};
use crate::error::CommandError;

const WITH_SCORES: Argument = Argument::word("withscores", "WITHSCORES").optional();
const LIMIT: Argument = Argument::block(
    "limit",
    &[Argument::integer("offset"), Argument::integer("count")],
)
.token("LIMIT")
.optional();
const SORT_BY: Argument = Argument::one_of(
    "sortby",
    &[
        Argument::word("byscore", "BYSCORE"),
        Argument::word("bylex", "BYLEX"),
    ],
)
.optional();
const REVERSED: Argument = Argument::word("rev", "REV").optional();

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "zrange",
        since: "1.2.0",
        summary: "Lists members in their order: by rank, or those in a range of scores or of members.",
        history: &[("6.2.0", "Takes REV, BYSCORE, BYLEX and LIMIT.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("start"),
            Argument::string("stop"),
            SORT_BY.since("6.2.0"),
            REVERSED.since("6.2.0"),
            LIMIT.since("6.2.0"),
            WITH_SCORES,
        ],
        handler: zrange,
        ..LISTING
    },
    CommandRow {
        name: "zrevrange",
        since: "1.2.0",
        summary: "Lists members by rank, counted from the highest score.",
        deprecated: replaced_by("ZRANGE with REV"),
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("start"),
            Argument::integer("stop"),
            WITH_SCORES,
        ],
        handler: zrevrange,
        ..LISTING
    },
    CommandRow {
        name: "zrangebyscore",
        since: "1.0.5",
        summary: "Lists the members in a range of scores.",
        history: &[("2.0.0", "Takes WITHSCORES.")],
        deprecated: replaced_by("ZRANGE with BYSCORE"),
        arguments: &[
            Argument::key("key", 0),
            Argument::double("min"),
            Argument::double("max"),
            WITH_SCORES.since("2.0.0"),
            LIMIT,
        ],
        handler: zrangebyscore,
        ..LISTING
    },
    CommandRow {
        name: "zrevrangebyscore",
        since: "2.2.0",
        summary: "Lists the members in a range of scores, the highest first.",
        history: &[("2.1.6", "Both ends can be left out.")],
        deprecated: replaced_by("ZRANGE with REV and BYSCORE"),
        arguments: &[
            Argument::key("key", 0),
            Argument::double("max"),
            Argument::double("min"),
            WITH_SCORES,
            LIMIT,
        ],
        handler: zrevrangebyscore,
        ..LISTING
    },
    CommandRow {
        name: "zrangebylex",
        since: "2.8.9",
        summary: "Lists the members in a range of members, if all scores are equal.",
        deprecated: replaced_by("ZRANGE with BYLEX"),
        arguments: &[
            Argument::key("key", 0),
            Argument::string("min"),
            Argument::string("max"),
            LIMIT,
        ],
        handler: zrangebylex,
        ..LISTING
    },
    CommandRow {
        name: "zrevrangebylex",
        since: "2.8.9",
        summary: "Lists the members in a range of members, the highest first, if all scores are equal.",
        deprecated: replaced_by("ZRANGE with REV and BYLEX"),
        arguments: &[
            Argument::key("key", 0),
            Argument::string("max"),
            Argument::string("min"),
            LIMIT,
        ],
        handler: zrevrangebylex,
        ..LISTING
    },
    CommandRow {
        name: "zrangestore",
        arity: -5,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        keys: &[
            KeySpec::one(1, KeyFlags::OW.with(KeyFlags::UPDATE)),
            KeySpec::one(2, KeyFlags::RO.with(KeyFlags::ACCESS)),
        ],
        since: "6.2.0",
        complexity: "O(log(N)+M) with M members stored",
        summary: "Stores a part of a sorted set under another key.",
        arguments: &[
            Argument::key("dst", 0),
            Argument::key("src", 1),
            Argument::string("min"),
            Argument::string("max"),
            SORT_BY,
            REVERSED,
            LIMIT,
        ],
        handler: zrangestore,
        ..LISTING
    },
    CommandRow {
        name: "zcount",
        since: "2.0.0",
        summary: "Counts the members in a range of scores.",
        arguments: &[
            Argument::key("key", 0),
            Argument::double("min"),
            Argument::double("max"),
        ],
        handler: zcount,
        ..COUNTING
    },
    CommandRow {
        name: "zlexcount",
        since: "2.8.9",
        summary: "Counts the members in a range of members, if all scores are equal.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("min"),
            Argument::string("max"),
        ],
        handler: zlexcount,
        ..COUNTING
    },
    CommandRow {
        name: "zremrangebyrank",
        since: "2.0.0",
        summary: "Removes members by rank.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("start"),
            Argument::integer("stop"),
        ],
        handler: zremrangebyrank,
        ..REMOVING
    },
    CommandRow {
        name: "zremrangebyscore",
        since: "1.2.0",
        summary: "Removes the members in a range of scores.",
        arguments: &[
            Argument::key("key", 0),
            Argument::double("min"),
            Argument::double("max"),
        ],
        handler: zremrangebyscore,
        ..REMOVING
    },
    CommandRow {
        name: "zremrangebylex",
        since: "2.8.9",
        summary: "Removes the members in a range of members, if all scores are equal.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("min"),
            Argument::string("max"),
        ],
        handler: zremrangebylex,
        ..REMOVING
    },
];

const LISTING: CommandRow = CommandRow {
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    group: "sorted-set",
    complexity: "O(log(N)+M) with M members listed",
    ..CommandRow::DEFAULT
};

const COUNTING: CommandRow = CommandRow {
    arity: 4,
    flags: Flags::READONLY.with(Flags::FAST),
    complexity: "O(log(N))",
    ..LISTING
};

const REMOVING: CommandRow = CommandRow {
    arity: 4,
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::DELETE))],
    complexity: "O(log(N)+M) with M members removed",
    ..LISTING
};

const fn replaced_by(replaced_by: &'static str) -> Option<Deprecation> {
    Some(Deprecation {
        since: "6.2.0",
        replaced_by,
    })
}

/// What a range goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Member,
}

/// The two ends of a range.
#[derive(Clone, Copy, Debug)]
enum Ends<'a> {
    Ranks(i64, i64),
    Scores(ScoreRange),
    Members(MemberRange<'a>),
}

/// A part of a sorted set, and how it is listed.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    ends: Ends<'a>,
    backwards: bool,
    /// How many are left out first; if negative, all.
    offset: i64,
    /// How many are wanted; if negative, all.
    count: i64,
    with_scores: bool,
}

/// What the command's name says already of the part it is about.
#[derive(Clone, Copy, Default)]
struct Given {
    by: Option<By>,
    backwards: Option<bool>,
    /// The part is stored.
    stored: bool,
}

impl<'a> Part<'a> {
    /// Reads the ends at argument `first` and the words behind them.
    fn parse(args: Args<'a>, first: usize, given: Given) -> Result<Self, CommandError> {
        let Given {
            mut by,
            mut backwards,
            stored,
        } = given;
        let (mut offset, mut count, mut with_scores) = (0, -1, false);
        let mut at = first + 2;
        while let Some(word) = args.get(at) {
            if !stored && is(word, "WITHSCORES") {
                with_scores = true;
            } else if is(word, "LIMIT") && args.len() - at > 2 {
                offset = integer(&args[at + 1])?;
                count = integer(&args[at + 2])?;
                at += 2;
            } else if backwards.is_none() && is(word, "REV") {
                backwards = Some(true);
            } else if by.is_none() && is(word, "BYLEX") {
                by = Some(By::Member);
            } else if by.is_none() && is(word, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        let (by, backwards) = (by.unwrap_or(By::Rank), backwards.unwrap_or(false));
        if count != -1 && by == By::Rank {
            return Err(CommandError::Text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && by == By::Member {
            return Err(CommandError::Text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        // Arguments live as long as the request.
        let text = |at| args.get(at).unwrap_or_default();
        let (start, stop) = (text(first), text(first + 1));
        let (min, max) = if backwards {
            (stop, start)
        } else {
            (start, stop)
        };
        let ends = match by {
            By::Rank => Ends::Ranks(integer(start)?, integer(stop)?),
            By::Score => Ends::Scores(bounds::score_range(min, max)?),
            By::Member => Ends::Members(bounds::member_range(min, max)?),
        };
        if by == By::Rank {
            (offset, count) = (0, -1);
        }
        Ok(Self {
            ends,
            backwards,
            offset,
            count,
            with_scores,
        })
    }

    /// The ranks of what belongs to it, in ascending order.
    fn ranks(&self, set: SortedSetRef<'_>) -> Range<u64> {
        let Range { start, end } = match self.ends {
            Ends::Ranks(start, stop) => {
                let len = set.len();
                let ranks = bounds::ranks(start, stop, len);
                if self.backwards {
                    len - ranks.end..len - ranks.start
                } else {
                    ranks
                }
            }
            Ends::Scores(ref range) => set.ranks_by_score(range),
            Ends::Members(ref range) => set.ranks_by_member(range, self.backwards),
        };
        let found = end - start;
        let skipped = u64::try_from(self.offset).map_or(found, |offset| offset.min(found));
        let count = u64::try_from(self.count).map_or(found, |count| count.min(found));
        let count = count.min(found - skipped);
        if self.backwards {
            end - skipped - count..end - skipped
        } else {
            start + skipped..start + skipped + count
        }
    }
}

fn zrange(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Given::default())
}

fn zrevrange(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, given(By::Rank, true))
}

fn zrangebyscore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, given(By::Score, false))
}

fn zrevrangebyscore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, given(By::Score, true))
}

fn zrangebylex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, given(By::Member, false))
}

fn zrevrangebylex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, given(By::Member, true))
}

const fn given(by: By, backwards: bool) -> Given {
    Given {
        by: Some(by),
        backwards: Some(backwards),
        stored: false,
    }
}

fn list(cx: &mut Context<'_, '_>, given: Given) -> Result<(), CommandError> {
    let part = Part::parse(cx.args, 2, given)?;
    let key = cx.keys[0];
    reply_ranks(
        cx,
        key,
        |set| part.ranks(set),
        part.backwards,
        part.with_scores,
    )
}

fn zrangestore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let given = Given {
        stored: true,
        ..Given::default()
    };
    let part = Part::parse(cx.args, 3, given)?;
    let (limits, seed) = (cx.sorted_set_limits(), cx.unit.seed());
    let built = match cx.sorted_set(cx.keys[1])? {
        None => Built::Packed(Vec::new()),
        Some(set) => sorted_set::part_of(set, part.ranks(set), limits, seed),
    };
    cx.store_sorted_set(cx.keys[0], built, "zrangestore");
    Ok(())
}

fn zcount(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let range = bounds::score_range(&cx.args[2], &cx.args[3])?;
    count(cx, |set| set.ranks_by_score(&range))
}

fn zlexcount(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let args = cx.args;
    let range = bounds::member_range(&args[2], &args[3])?;
    count(cx, |set| set.ranks_by_member(&range, false))
}

fn count(
    cx: &mut Context<'_, '_>,
    ranks: impl Fn(SortedSetRef<'_>) -> Range<u64>,
) -> Result<(), CommandError> {
    let set = cx.sorted_set(cx.keys[0])?;
    let ranks = set.map_or(0..0, ranks);
    cx.reply.integer((ranks.end - ranks.start) as i64);
    Ok(())
}

fn zremrangebyrank(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (start, stop) = (integer(&cx.args[2])?, integer(&cx.args[3])?);
    remove(cx, "zremrangebyrank", |set| {
        bounds::ranks(start, stop, set.len())
    })
}

fn zremrangebyscore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let range = bounds::score_range(&cx.args[2], &cx.args[3])?;
    remove(cx, "zremrangebyscore", |set| set.ranks_by_score(&range))
}

fn zremrangebylex(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let args = cx.args;
    let range = bounds::member_range(&args[2], &args[3])?;
    remove(cx, "zremrangebylex", |set| {
        set.ranks_by_member(&range, false)
    })
}

fn remove(
    cx: &mut Context<'_, '_>,
    event: &'static str,
    ranks: impl Fn(SortedSetRef<'_>) -> Range<u64>,
) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    let (removed, emptied) = remove_ranks(cx, key, ranks)?;
    if removed > 0 {
        cx.sorted_set_touched(key, event, removed as usize, emptied);
        cx.unit.effect_with(|| effect_arguments(args));
    }
    cx.reply.integer(removed as i64);
    Ok(())
}

/// Removes the members with these ranks: how many, and whether the key is gone.
fn remove_ranks(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    ranks: impl Fn(SortedSetRef<'_>) -> Range<u64>,
) -> Result<(u64, bool), CommandError> {
    let found = cx.unit.peek_collection(key, Kind::SortedSet)?;
    let Some(set) = found.map(SortedSetRef::from) else {
        return Ok((0, false));
    };
    let (found, len) = (ranks(set), set.len());
    let count = found.end - found.start;
    if count == 0 {
        return Ok((0, false));
    }
    if count == len {
        // What is large goes to the reaper as a whole.
        cx.unit.remove(key);
        return Ok((len, true));
    }
    let edited = cx.edit_sorted_set(key, 0, |set, _| {
        set.remove_ranks(found, weft_keyspace::load_ahead)
    })?;
    Ok((edited.result, edited.emptied))
}
