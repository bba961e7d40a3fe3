//! Elements that are looked for: their positions, inserting beside them, removing them.

use weft_data::collection::Collection;
use weft_data::list::{End, List, ListRef};
use weft_resp::Writer;

use super::super::options::{integer, is};
use super::super::values::effect_arguments;
use super::{AT_ONCE_MAX, LIST, READ, REMOVE, changed, cost, edit, element, list, peek, snapshot};
use crate::command::{Argument, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "lpos",
        arity: -3,
        since: "6.0.6",
        complexity: "O(N) in the number of elements looked at",
        summary: "Finds the positions of elements that are equal to one given.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("element"),
            Argument::integer("rank").token("RANK").optional(),
            Argument::integer("num-matches").token("COUNT").optional(),
            Argument::integer("len").token("MAXLEN").optional(),
        ],
        handler: lpos,
        ..READ
    },
    CommandRow {
        name: "linsert",
        arity: 5,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::INSERT))],
        since: "2.2.0",
        complexity: "O(N) in the number of elements before the one that is looked for",
        summary: "Inserts an element before or behind another one.",
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "where",
                &[
                    Argument::word("before", "BEFORE"),
                    Argument::word("after", "AFTER"),
                ],
            ),
            Argument::string("pivot"),
            Argument::string("element"),
        ],
        handler: linsert,
        ..LIST
    },
    CommandRow {
        name: "lrem",
        complexity: "O(N+M) in the number of elements looked at and removed",
        summary: "Removes elements that are equal to one given, from either end, and the key with the last one.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("count"),
            Argument::string("element"),
        ],
        handler: lrem,
        ..REMOVE
    },
];

/// The error of numbers that are outside the range of 64 bits on both sides of zero.
const NOT_NEGATABLE: CommandError = CommandError::Text(
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
);

/// An integer whose magnitude counts and whose sign is a direction.
fn signed(text: &[u8]) -> Result<(End, usize), CommandError> {
    let number = integer(text)?;
    if number == i64::MIN {
        return Err(NOT_NEGATABLE);
    }
    let from = if number < 0 { End::Right } else { End::Left };
    Ok((
        from,
        usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX),
    ))
}

/// What LPOS is to find.
#[derive(Clone, Copy)]
struct Options {
    from: End,
    /// The first match that counts, from 1.
    rank: usize,
    /// How many matches are wanted, if they are asked for as an array.
    count: Option<usize>,
    /// How many elements are looked at.
    most: usize,
}

impl Options {
    fn parse(args: weft_resp::Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self {
            from: End::Left,
            rank: 1,
            count: None,
            most: usize::MAX,
        };
        // None at all stands for all.
        let limit = |text: &[u8], error| match integer(text) {
            Ok(0) => Ok(usize::MAX),
            Ok(number) => usize::try_from(number).map_err(|_| CommandError::Text(error)),
            Err(_) => Err(CommandError::Text(error)),
        };
        let mut at = 3;
        while let Some(word) = args.get(at) {
            let number = args.get(at + 1).ok_or(CommandError::Syntax)?;
            if is(word, "RANK") {
                (options.from, options.rank) = signed(number)?;
                if options.rank == 0 {
                    return Err(CommandError::Text(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
                         or use negative to start from the end of the list",
                    ));
                }
            } else if is(word, "COUNT") {
                options.count = Some(limit(number, "ERR COUNT can't be negative")?);
            } else if is(word, "MAXLEN") {
                options.most = limit(number, "ERR MAXLEN can't be negative")?;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 2;
        }
        Ok(options)
    }
}

/// Looking for positions, under way.
struct Search {
    options: Options,
    /// Elements looked at.
    seen: usize,
    matches: usize,
    found: Vec<usize>,
}

impl Search {
    const fn new(options: Options) -> Self {
        Self {
            options,
            seen: 0,
            matches: 0,
            found: Vec::new(),
        }
    }

    /// Looks on until it is over or the budget is spent.
    fn step(&mut self, list: ListRef<'_>, wanted: &[u8], budget: &mut Budget) -> Progress {
        let Options {
            from,
            rank,
            count,
            most,
        } = self.options;
        let (len, wanted_count) = (list.len(), count.unwrap_or(1));
        let left = most - self.seen;
        for element in list.elements_from(from, self.seen).take(left) {
            if budget.left() == 0 {
                return Progress::More;
            }
            budget.take(cost(element));
            self.seen += 1;
            if element.is_equal(wanted) {
                self.matches += 1;
                if self.matches >= rank {
                    self.found.push(match from {
                        End::Left => self.seen - 1,
                        End::Right => len - self.seen,
                    });
                    if self.found.len() == wanted_count {
                        break;
                    }
                }
            }
        }
        Progress::Done
    }

    fn reply(&self, reply: &mut Writer<'_>) {
        match (self.options.count, self.found.first()) {
            (None, Some(position)) => reply.integer(*position as i64),
            (None, None) => reply.null(),
            (Some(_), _) => {
                reply.array(self.found.len());
                let positions = self.found.iter();
                positions.for_each(|position| reply.integer(*position as i64));
            }
        }
    }
}

fn lpos(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let options = Options::parse(cx.args)?;
    let wanted = cx.args.get(2).unwrap_or_default();
    let mut search = Search::new(options);
    if let Some(list) = list(cx)? {
        let many = Some(list).filter(|list| list.len().min(options.most) > AT_ONCE_MAX);
        match many.and_then(snapshot) {
            None => {
                let mut budget = Budget::slice();
                while search.step(list, wanted, &mut budget) == Progress::More {
                    budget = Budget::slice();
                }
            }
            Some(list) => {
                let wanted = wanted.into();
                cx.continue_with(Searching {
                    list,
                    wanted,
                    search,
                });
                return Ok(());
            }
        }
    }
    search.reply(&mut cx.reply);
    Ok(())
}

/// A search of a long list.
struct Searching {
    list: List,
    wanted: Box<[u8]>,
    search: Search,
}

impl Steps for Searching {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        let list = ListRef::Large(&self.list);
        let progress = self.search.step(list, &self.wanted, budget);
        if progress == Progress::Done {
            self.search.reply(reply);
        }
        progress
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        vec![Box::new(Collection::List(self.list))]
    }
}

fn linsert(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let is_before = is(&args[2], "BEFORE");
    if !is_before && !is(&args[2], "AFTER") {
        return Err(CommandError::Syntax);
    }
    if peek(cx, key)?.is_none() {
        cx.reply.integer(0);
        return Ok(());
    }
    let inserted = edit(cx, key, |list, _| {
        list.insert(is_before, &args[3], element(args, 4))
    });
    match inserted?.result {
        Some(len) => {
            changed(cx, key, "linsert", 1, false);
            cx.unit.effect_with(|| effect_arguments(args));
            cx.reply.integer(len as i64);
        }
        None => cx.reply.integer(-1),
    }
    Ok(())
}

fn lrem(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let (from, most) = signed(&args[2])?;
    let most = if most == 0 { usize::MAX } else { most };
    if peek(cx, key)?.is_none() {
        cx.reply.integer(0);
        return Ok(());
    }
    let edited = edit(cx, key, |list, _| list.remove(most, from, &args[3]))?;
    if edited.result > 0 {
        changed(cx, key, "lrem", edited.result, edited.emptied);
        cx.unit.effect_with(|| effect_arguments(args));
    }
    cx.reply.integer(edited.result as i64);
    Ok(())
}
