//! Unions, intersections and differences of sorted sets, and of sets, whose members count as 1.
//!
//! What takes part is captured under the latch. Commands that reply compute afterwards, in steps; the STORE forms compute at once.

use std::ops::Range;

use weft_data::collection::{Built, Collection, CollectionRef, Kind};
use weft_data::set::SetRef;
use weft_data::sorted_set::{Ranking, SortedSetRef, Tally};
use weft_keyspace::ValueRef;
use weft_resp::Writer;

use super::super::options::{integer, is};
use super::{BYTES_PER_NS, CHUNK, NS_PER_MEMBER, bounds, reply_header, reply_item};
use crate::command::{Argument, Begin, Categories, CommandRow, Find, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, Key, Progress, Steps};
use crate::error::CommandError;

const WEIGHTS: Argument = Argument::integer("weight")
    .token("WEIGHTS")
    .optional()
    .multiple();
const AGGREGATE: Argument = Argument::one_of(
    "aggregate",
    &[
        Argument::word("sum", "SUM"),
        Argument::word("min", "MIN"),
        Argument::word("max", "MAX"),
    ],
)
.token("AGGREGATE")
.optional();
const WITH_SCORES: Argument = Argument::word("withscores", "WITHSCORES").optional();

const UNION_COMPLEXITY: &str =
    "O(N)+O(M*log(M)) in the members of all the sorted sets and of the result";
const INTERSECTION_COMPLEXITY: &str = "O(N*K)+O(M*log(M)) at worst, in the members of the smallest sorted set, the sorted sets and the members of the result";
const DIFFERENCE_COMPLEXITY: &str = "O(L + (N-K)log(N)) at worst, in all members, those of the first sorted set and those of the result";

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "zunion",
        complexity: UNION_COMPLEXITY,
        summary: "Lists the members that any of the sorted sets has.",
        handler: zunion,
        ..READ
    },
    CommandRow {
        name: "zinter",
        complexity: INTERSECTION_COMPLEXITY,
        summary: "Lists the members that all the sorted sets have.",
        handler: zinter,
        ..READ
    },
    CommandRow {
        name: "zdiff",
        complexity: DIFFERENCE_COMPLEXITY,
        summary: "Lists the members of the first sorted set that no other has.",
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key", 0).multiple(),
            WITH_SCORES,
        ],
        handler: zdiff,
        ..READ
    },
    CommandRow {
        name: "zunionstore",
        since: "2.0.0",
        complexity: UNION_COMPLEXITY,
        summary: "Stores the members that any of the sorted sets has.",
        handler: zunionstore,
        ..STORE
    },
    CommandRow {
        name: "zinterstore",
        since: "2.0.0",
        complexity: INTERSECTION_COMPLEXITY,
        summary: "Stores the members that all the sorted sets have.",
        handler: zinterstore,
        ..STORE
    },
    CommandRow {
        name: "zdiffstore",
        since: "6.2.0",
        complexity: DIFFERENCE_COMPLEXITY,
        summary: "Stores the members of the first sorted set that no other has.",
        arguments: &[
            Argument::key("destination", 0),
            Argument::integer("numkeys"),
            Argument::key("key", 1).multiple(),
        ],
        handler: zdiffstore,
        ..STORE
    },
    CommandRow {
        name: "zintercard",
        since: "7.0.0",
        complexity: "O(N*K) at worst, in the members of the smallest sorted set and the sorted sets",
        summary: "Counts the members that all the sorted sets have, up to a limit.",
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key", 0).multiple(),
            Argument::integer("limit").token("LIMIT").optional(),
        ],
        handler: zintercard,
        ..READ
    },
];

/// The keys that an argument counts, which stands at this place.
const fn sources_at(number: i32) -> KeySpec {
    KeySpec {
        begin: Begin::Index(number),
        find: Find::KeyNumber {
            number: 0,
            first: 1,
            step: 1,
        },
        flags: KeyFlags::RO.with(KeyFlags::ACCESS),
        notes: "",
    }
}

const READ: CommandRow = CommandRow {
    arity: -3,
    flags: Flags::READONLY.with(Flags::MOVABLE_KEYS),
    categories: Categories::SORTED_SET,
    keys: &[sources_at(1)],
    group: "sorted-set",
    since: "6.2.0",
    arguments: &[
        Argument::integer("numkeys"),
        Argument::key("key", 0).multiple(),
        WEIGHTS,
        AGGREGATE,
        WITH_SCORES,
    ],
    ..CommandRow::DEFAULT
};

const STORE: CommandRow = CommandRow {
    arity: -4,
    flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::MOVABLE_KEYS),
    keys: &[
        KeySpec::one(1, KeyFlags::OW.with(KeyFlags::UPDATE)),
        sources_at(2),
    ],
    arguments: &[
        Argument::key("destination", 0),
        Argument::integer("numkeys"),
        Argument::key("key", 1).multiple(),
        WEIGHTS,
        AGGREGATE,
    ],
    ..READ
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

fn zunion(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Operation::Union)
}

fn zinter(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Operation::Intersection)
}

fn zdiff(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Operation::Difference)
}

fn zunionstore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    store(cx, Operation::Union, "zunionstore")
}

fn zinterstore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    store(cx, Operation::Intersection, "zinterstore")
}

fn zdiffstore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    store(cx, Operation::Difference, "zdiffstore")
}

/// How the scores of one member become one.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// A sum that is no number is 0.
    fn unite(self, one: f64, other: f64) -> f64 {
        match self {
            Aggregate::Sum => or_zero(one + other),
            Aggregate::Min if other < one => other,
            Aggregate::Max if other > one => other,
            Aggregate::Min | Aggregate::Max => one,
        }
    }
}

fn or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// A sorted set or a set that takes part.
struct Source {
    built: Built,
    weight: f64,
}

/// A look at what takes part.
#[derive(Clone, Copy)]
enum Look<'a> {
    Nothing,
    SortedSet(SortedSetRef<'a>),
    Set(SetRef<'a>),
}

impl Source {
    fn look(&self) -> Look<'_> {
        let collection = self.built.as_ref();
        if collection.is_empty() {
            return Look::Nothing;
        }
        match collection.kind() {
            Kind::Set => Look::Set(SetRef::from(collection)),
            _ => Look::SortedSet(SortedSetRef::from(collection)),
        }
    }
}

impl Look<'_> {
    fn len(self) -> u64 {
        match self {
            Look::Nothing => 0,
            Look::SortedSet(set) => set.len(),
            Look::Set(set) => set.len() as u64,
        }
    }

    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Look::Nothing => None,
            Look::SortedSet(set) => set.score(member),
            Look::Set(set) => set.contains(member).then_some(1.0),
        }
    }

    fn each(self, mut each: impl FnMut(&[u8], f64)) {
        match self {
            Look::Nothing => {}
            Look::SortedSet(set) => set.each(0..set.len(), false, each),
            Look::Set(set) => set.for_each(|member| member.with(|member| each(member, 1.0))),
        }
    }
}

/// What is to be computed.
struct Task {
    operation: Operation,
    sources: Vec<Source>,
    aggregate: Aggregate,
    with_scores: bool,
    seed: u64,
}

/// Checks the number of keys at argument `at` against the arguments, and captures what these keys hold.
fn sources(cx: &Context<'_, '_>, at: usize, keys: &[Key<'_>]) -> Result<Vec<Source>, CommandError> {
    let number = integer(&cx.args[at])?;
    if number < 1 {
        let text = format!(
            "ERR at least 1 input key is needed for '{}' command",
            cx.row.name
        );
        return Err(CommandError::Composed(text.into_bytes().into()));
    }
    if usize::try_from(number).is_ok_and(|number| number > cx.args.len() - at - 1) {
        return Err(CommandError::Syntax);
    }
    keys.iter().map(|key| capture(cx, *key)).collect()
}

fn capture(cx: &Context<'_, '_>, key: Key<'_>) -> Result<Source, CommandError> {
    let built = match cx.unit.read(key).map(|entry| entry.value()) {
        None => Built::Packed(Vec::new()),
        Some(ValueRef::Collection(found)) if is_member(found) => found.to_built(),
        Some(_) => return Err(CommandError::WrongType),
    };
    Ok(Source { built, weight: 1.0 })
}

fn is_member(collection: CollectionRef<'_>) -> bool {
    matches!(collection.kind(), Kind::Set | Kind::SortedSet)
}

impl Task {
    /// Of the arguments from the number of keys on, at `at`.
    fn parse(
        cx: &Context<'_, '_>,
        operation: Operation,
        at: usize,
        keys: &[Key<'_>],
        stored: bool,
    ) -> Result<Self, CommandError> {
        let mut task = Self {
            operation,
            sources: sources(cx, at, keys)?,
            aggregate: Aggregate::Sum,
            with_scores: false,
            seed: cx.unit.seed(),
        };
        let weighted = operation != Operation::Difference;
        let count = task.sources.len();
        let args = cx.args;
        let mut at = at + 1 + count;
        while let Some(word) = args.get(at) {
            if weighted && is(word, "WEIGHTS") && args.len() - at > count {
                for (index, source) in task.sources.iter_mut().enumerate() {
                    let weight = bounds::score(&args[at + 1 + index]);
                    source.weight = weight
                        .map_err(|_| CommandError::Text("ERR weight value is not a float"))?;
                }
                at += count;
            } else if weighted && is(word, "AGGREGATE") && args.len() - at > 1 {
                at += 1;
                task.aggregate = match &args[at] {
                    word if is(word, "SUM") => Aggregate::Sum,
                    word if is(word, "MIN") => Aggregate::Min,
                    word if is(word, "MAX") => Aggregate::Max,
                    _ => return Err(CommandError::Syntax),
                };
            } else if !stored && is(word, "WITHSCORES") {
                task.with_scores = true;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        if operation != Operation::Difference {
            // The smallest first: for what all have it is the one to walk through, and the order decides how sums are rounded.
            task.sources.sort_by_key(|source| source.look().len());
        }
        Ok(task)
    }

    fn compute(&self) -> Ranking {
        let mut tally = Tally::new(self.seed);
        let Some((first, others)) = self.sources.split_first() else {
            return tally.ranking();
        };
        let unite = |one, other| self.aggregate.unite(one, other);
        match self.operation {
            Operation::Union => {
                for source in &self.sources {
                    source.look().each(|member, score| {
                        tally.add(member, or_zero(source.weight * score), unite);
                    });
                }
            }
            Operation::Intersection => {
                first.look().each(|member, score| {
                    let start = Some(or_zero(first.weight * score));
                    let united = others.iter().try_fold(start, |united, other| {
                        let score = other.weight * other.look().score(member)?;
                        Some(united.map(|united| unite(united, score)))
                    });
                    if let Some(score) = united.flatten() {
                        tally.add(member, score, unite);
                    }
                });
            }
            Operation::Difference => {
                first.look().each(|member, score| {
                    let found = |other: &Source| other.look().score(member).is_some();
                    if !others.iter().any(found) {
                        tally.add(member, score, unite);
                    }
                });
            }
        }
        tally.ranking()
    }
}

fn list(cx: &mut Context<'_, '_>, operation: Operation) -> Result<(), CommandError> {
    let task = Task::parse(cx, operation, 1, cx.keys, false)?;
    let pairs = cx.pairs();
    cx.continue_with(Computation {
        task,
        found: None,
        pairs,
    });
    Ok(())
}

fn store(
    cx: &mut Context<'_, '_>,
    operation: Operation,
    event: &'static str,
) -> Result<(), CommandError> {
    let sources = cx.keys.get(1..).unwrap_or_default();
    let task = Task::parse(cx, operation, 2, sources, true)?;
    let built = task.compute().into_built(cx.sorted_set_limits());
    cx.store_sorted_set(cx.keys[0], built, event);
    Ok(())
}

/// A result, once it is known, on its way into the reply.
struct Computation {
    task: Task,
    found: Option<(Ranking, Range<usize>)>,
    pairs: bool,
}

impl Steps for Computation {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        let with_scores = self.task.with_scores;
        let Some((ranking, left)) = &mut self.found else {
            let ranking = self.task.compute();
            let len = ranking.len();
            reply_header(reply, len as u64, with_scores, self.pairs);
            self.found = Some((ranking, 0..len));
            return Progress::More;
        };
        while left.start < left.end && budget.left() > 0 {
            let end = left.end.min(left.start + CHUNK as usize);
            let mut bytes = 0;
            for (member, score) in ranking.items(left.start..end) {
                bytes += member.len() as u64;
                reply_item(reply, member, score, with_scores, self.pairs);
            }
            budget.take(CHUNK * NS_PER_MEMBER + bytes / BYTES_PER_NS);
            left.start = end;
        }
        if left.start < left.end {
            Progress::More
        } else {
            Progress::Done
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        large(self.task.sources).collect()
    }
}

/// What the reaper has to free.
fn large(sources: Vec<Source>) -> impl Iterator<Item = Box<Collection>> {
    sources.into_iter().filter_map(|source| match source.built {
        Built::Large(collection) => Some(collection),
        Built::Packed(_) => None,
    })
}

fn zintercard(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let mut sources = sources(cx, 1, cx.keys)?;
    let args = cx.args;
    let mut limit = 0;
    let mut at = 2 + sources.len();
    while let Some(word) = args.get(at) {
        let Some(number) = args.get(at + 1).filter(|_| is(word, "LIMIT")) else {
            return Err(CommandError::Syntax);
        };
        let refused = CommandError::Text("ERR LIMIT can't be negative");
        limit = integer(number)
            .ok()
            .and_then(|number| u64::try_from(number).ok())
            .ok_or(refused)?;
        at += 2;
    }
    sources.sort_by_key(|source| source.look().len());
    cx.continue_with(Counting { sources, limit });
    Ok(())
}

/// Counts what all have, up to a limit if there is one.
struct Counting {
    sources: Vec<Source>,
    limit: u64,
}

impl Steps for Counting {
    fn step(&mut self, _: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        let most = if self.limit == 0 {
            u64::MAX
        } else {
            self.limit
        };
        let mut count = 0;
        if let Some((first, others)) = self.sources.split_first() {
            first.look().each(|member, _| {
                let has = |other: &Source| other.look().score(member).is_some();
                if count < most && others.iter().all(has) {
                    count += 1;
                }
            });
        }
        reply.integer(count as i64);
        Progress::Done
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        large(self.sources).collect()
    }
}
