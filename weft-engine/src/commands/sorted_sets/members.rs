//! Members of sorted sets by their names: adding, scoring, removing, asking for their scores and ranks.

use smallvec::SmallVec;
use weft_data::collection::Kind;
use weft_data::sorted_set::{SortedSetRef, Update};
use weft_resp::Args;

use super::super::options::is;
use super::super::values::effect_arguments;
use super::bounds;
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "zadd",
        arity: -4,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::SORTED_SET,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        group: "sorted-set",
        since: "1.2.0",
        complexity: "O(log(N)) for each member",
        summary: "Adds members to a sorted set, which is made if missing, or gives them other scores.",
        history: &[
            ("2.4.0", "Takes several members."),
            ("3.0.2", "Takes XX, NX, CH and INCR."),
            ("6.2.0", "Takes GT and LT."),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "condition",
                &[Argument::word("nx", "NX"), Argument::word("xx", "XX")],
            )
            .optional()
            .since("3.0.2"),
            Argument::one_of(
                "comparison",
                &[Argument::word("gt", "GT"), Argument::word("lt", "LT")],
            )
            .optional()
            .since("6.2.0"),
            Argument::word("change", "CH").optional().since("3.0.2"),
            Argument::word("increment", "INCR")
                .optional()
                .since("3.0.2"),
            Argument::block(
                "data",
                &[Argument::double("score"), Argument::string("member")],
            )
            .multiple(),
        ],
        handler: zadd,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "zincrby",
        arity: 4,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::SORTED_SET,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )],
        group: "sorted-set",
        since: "1.2.0",
        complexity: "O(log(N))",
        summary: "Adds to the score of a member, which is made with that score if missing.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("increment"),
            Argument::string("member"),
        ],
        handler: zincrby,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "zrem",
        arity: -3,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::SORTED_SET,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::DELETE))],
        group: "sorted-set",
        since: "1.2.0",
        complexity: "O(M*log(N)) for M members to be removed",
        summary: "Removes members from a sorted set.",
        history: &[("2.4.0", "Takes several members.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member").multiple(),
        ],
        handler: zrem,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "zcard",
        arity: 2,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        since: "1.2.0",
        complexity: "O(1)",
        summary: "Counts the members of a sorted set.",
        arguments: &[Argument::key("key", 0)],
        handler: zcard,
        ..ASKING
    },
    CommandRow {
        name: "zscore",
        arity: 3,
        since: "1.2.0",
        complexity: "O(1)",
        summary: "Tells the score of a member.",
        arguments: &[Argument::key("key", 0), Argument::string("member")],
        handler: zscore,
        ..ASKING
    },
    CommandRow {
        name: "zmscore",
        arity: -3,
        since: "6.2.0",
        complexity: "O(N) in the number of members asked for",
        summary: "Tells the scores of members.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member").multiple(),
        ],
        handler: zmscore,
        ..ASKING
    },
    CommandRow {
        name: "zrank",
        summary: "Tells how many members come before one.",
        handler: zrank,
        ..RANK
    },
    CommandRow {
        name: "zrevrank",
        summary: "Tells how many members come behind one.",
        handler: zrevrank,
        ..RANK
    },
];

const ASKING: CommandRow = CommandRow {
    flags: Flags::READONLY.with(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    group: "sorted-set",
    ..CommandRow::DEFAULT
};

const RANK: CommandRow = CommandRow {
    arity: -3,
    since: "2.0.0",
    complexity: "O(log(N))",
    history: &[("7.2.0", "Takes WITHSCORE.")],
    arguments: &[
        Argument::key("key", 0),
        Argument::string("member"),
        Argument::word("withscore", "WITHSCORE").optional(),
    ],
    ..ASKING
};

/// Which members get the score that is given for them, and whether it is added to what they have.
#[derive(Clone, Copy, Default)]
struct Terms {
    only_new: bool,
    only_old: bool,
    greater: bool,
    less: bool,
    increment: bool,
    count_changed: bool,
}

/// What came of one member.
enum Decision {
    /// Its score is this now, which it may have been before.
    Score(f64),
    /// It stays as it is.
    Leave,
    /// The sum is no number.
    NotANumber,
}

impl Terms {
    /// Reads the words, and returns where the scores begin.
    fn parse(args: Args<'_>) -> (Self, usize) {
        let mut terms = Self::default();
        let mut at = 2;
        while let Some(word) = args.get(at) {
            let term = if is(word, "NX") {
                &mut terms.only_new
            } else if is(word, "XX") {
                &mut terms.only_old
            } else if is(word, "GT") {
                &mut terms.greater
            } else if is(word, "LT") {
                &mut terms.less
            } else if is(word, "INCR") {
                &mut terms.increment
            } else if is(word, "CH") {
                &mut terms.count_changed
            } else {
                break;
            };
            *term = true;
            at += 1;
        }
        (terms, at)
    }

    fn check(self, members: usize) -> Result<(), CommandError> {
        let refused = |text| Err(CommandError::Text(text));
        if self.only_new && self.only_old {
            return refused("ERR XX and NX options at the same time are not compatible");
        }
        if (self.greater || self.less) && self.only_new || self.greater && self.less {
            return refused("ERR GT, LT, and/or NX options at the same time are not compatible");
        }
        if self.increment && members > 1 {
            return refused("ERR INCR option supports a single increment-element pair");
        }
        Ok(())
    }

    fn decide(self, given: f64, old: Option<f64>) -> Decision {
        let Some(old) = old else {
            return if self.only_old {
                Decision::Leave
            } else {
                Decision::Score(given)
            };
        };
        if self.only_new {
            return Decision::Leave;
        }
        let new = if self.increment { old + given } else { given };
        if new.is_nan() {
            return Decision::NotANumber;
        }
        if (self.greater && new <= old) || (self.less && new >= old) {
            return Decision::Leave;
        }
        Decision::Score(new)
    }
}

fn zadd(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (terms, first) = Terms::parse(cx.args);
    add(cx, terms, first)
}

/// In the place of the increment a word that ZADD knows is one here, too: what is missing then is a syntax error.
fn zincrby(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (mut terms, first) = Terms::parse(cx.args);
    terms.increment = true;
    add(cx, terms, first)
}

/// Adds the members from argument `first` on, each behind its score.
fn add(cx: &mut Context<'_, '_>, terms: Terms, first: usize) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    let given = args.len() - first;
    if given == 0 || !given.is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    terms.check(given / 2)?;
    // All scores are read before anything is changed.
    let scores: Result<SmallVec<[f64; 8]>, _> = (first..args.len())
        .step_by(2)
        .map(|at| bounds::score(&args[at]))
        .collect();
    let scores = scores?;
    let (mut added, mut changed) = (0, 0);
    let mut last = Decision::Leave;
    cx.edit_sorted_set(key, scores.len(), |set, _| {
        for (index, given) in scores.iter().enumerate() {
            let update = set.update(&args[first + 2 * index + 1], |old| {
                last = terms.decide(*given, old);
                match last {
                    Decision::Score(new) => Some(new),
                    Decision::Leave | Decision::NotANumber => None,
                }
            });
            match update {
                Update::Added => added += 1,
                Update::Changed => changed += 1,
                Update::Nothing => {}
            }
        }
    })?;
    if matches!(last, Decision::NotANumber) {
        return Err(CommandError::Text(
            "ERR resulting score is not a number (NaN)",
        ));
    }
    if added + changed > 0 {
        let event = if terms.increment { "zincr" } else { "zadd" };
        cx.sorted_set_touched(key, event, added + changed, false);
        cx.unit.effect_with(|| effect_arguments(args));
    }
    match last {
        Decision::Score(score) if terms.increment => cx.reply.double(score),
        _ if terms.increment => cx.reply.null(),
        _ if terms.count_changed => cx.reply.integer((added + changed) as i64),
        _ => cx.reply.integer(added as i64),
    }
    Ok(())
}

fn zrem(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    let edited = cx.edit_sorted_set(key, 0, |set, _| {
        let members = args.iter().skip(2);
        members
            .filter(|member| set.remove(member).is_some())
            .count()
    })?;
    if edited.result > 0 {
        cx.sorted_set_touched(key, "zrem", edited.result, edited.emptied);
        cx.unit.effect_with(|| effect_arguments(args));
    }
    cx.reply.integer(edited.result as i64);
    Ok(())
}

fn zcard(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let count = cx.sorted_set(cx.keys[0])?.map_or(0, SortedSetRef::len);
    cx.reply.integer(count as i64);
    Ok(())
}

fn zscore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let set = cx.sorted_set(cx.keys[0])?;
    match set.and_then(|set| set.score(&cx.args[2])) {
        Some(score) => cx.reply.double(score),
        None => cx.reply.null(),
    }
    Ok(())
}

fn zmscore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let args = cx.args;
    let set = cx.unit.collection(cx.keys[0], Kind::SortedSet)?;
    let set = set.map(SortedSetRef::from);
    cx.reply.array(args.len() - 2);
    for member in args.iter().skip(2) {
        match set.and_then(|set| set.score(member)) {
            Some(score) => cx.reply.double(score),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

fn zrank(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    rank(cx, false)
}

fn zrevrank(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    rank(cx, true)
}

fn rank(cx: &mut Context<'_, '_>, backwards: bool) -> Result<(), CommandError> {
    if cx.args.len() > 4 {
        return Err(CommandError::WrongArity(cx.row.name.into()));
    }
    let with_score = match cx.args.get(3) {
        None => false,
        Some(word) if is(word, "WITHSCORE") => true,
        Some(_) => return Err(CommandError::Syntax),
    };
    let found = cx.sorted_set(cx.keys[0])?.and_then(|set| {
        let (rank, score) = set.rank(&cx.args[2])?;
        let rank = if backwards {
            set.len() - 1 - rank
        } else {
            rank
        };
        Some((rank, score))
    });
    match found {
        None if with_score => cx.reply.null_array(),
        None => cx.reply.null(),
        Some((rank, score)) => {
            if with_score {
                cx.reply.array(2);
            }
            cx.reply.integer(rank as i64);
            if with_score {
                cx.reply.double(score);
            }
        }
    }
    Ok(())
}
