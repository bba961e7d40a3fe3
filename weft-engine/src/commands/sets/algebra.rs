//! Intersections, unions and differences: their members, how many there are, or a set of them under another key.
//!
//! Reading commands capture the sets under the latches and compute afterwards, in steps. The STORE forms do it all at once. Their effect
//! is the result and not the computation: the sets may have been gone for whoever replays it.

use weft_data::collection::{Built, Collection, Kind};
use weft_data::set::{Algebra, Operation, Outcome, Set, SetRef};
use weft_resp::Writer;

use super::super::options::{integer, is};
use super::{Listing, MemberEffects, boxed};
use crate::command::{Argument, Begin, Categories, CommandRow, Find, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, EventClass, Key, Progress, Steps};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "sinter",
        complexity: INTERSECTION_COMPLEXITY,
        summary: "Lists the members that all the sets have.",
        handler: sinter,
        ..READ
    },
    CommandRow {
        name: "sintercard",
        arity: -3,
        flags: Flags::READONLY.with(Flags::MOVABLE_KEYS),
        keys: &[KeySpec {
            begin: Begin::Index(1),
            find: Find::KeyNumber {
                number: 0,
                first: 1,
                step: 1,
            },
            flags: KeyFlags::RO.with(KeyFlags::ACCESS),
            notes: "",
        }],
        tips: &[],
        since: "7.0.0",
        complexity: INTERSECTION_COMPLEXITY,
        summary: "Counts the members that all the sets have, up to a limit.",
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key", 0).multiple(),
            Argument::integer("limit").token("LIMIT").optional(),
        ],
        handler: sintercard,
        ..READ
    },
    CommandRow {
        name: "sinterstore",
        complexity: INTERSECTION_COMPLEXITY,
        summary: "Stores the members that all the sets have.",
        handler: sinterstore,
        ..STORE
    },
    CommandRow {
        name: "sunion",
        complexity: "O(N) in the number of members of all the sets",
        summary: "Lists the members that any of the sets has.",
        handler: sunion,
        ..READ
    },
    CommandRow {
        name: "sunionstore",
        complexity: "O(N) in the number of members of all the sets",
        summary: "Stores the members that any of the sets has.",
        handler: sunionstore,
        ..STORE
    },
    CommandRow {
        name: "sdiff",
        complexity: "O(N) in the number of members of all the sets",
        summary: "Lists the members of the first set that no other has.",
        handler: sdiff,
        ..READ
    },
    CommandRow {
        name: "sdiffstore",
        complexity: "O(N) in the number of members of all the sets",
        summary: "Stores the members of the first set that no other has.",
        handler: sdiffstore,
        ..STORE
    },
];

const INTERSECTION_COMPLEXITY: &str =
    "O(N*M) at worst, in the members of the smallest set and the number of sets";

/// What the commands that list their result have in common.
const READ: CommandRow = CommandRow {
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::SET,
    keys: &[KeySpec::range(
        1,
        -1,
        1,
        KeyFlags::RO.with(KeyFlags::ACCESS),
    )],
    tips: &["nondeterministic_output_order"],
    group: "set",
    since: "1.0.0",
    arguments: &[Argument::key("key", 0).multiple()],
    ..CommandRow::DEFAULT
};

/// What the commands that store their result have in common.
const STORE: CommandRow = CommandRow {
    arity: -3,
    flags: Flags::WRITE.with(Flags::DENY_OOM),
    categories: Categories::SET,
    keys: &[
        KeySpec::one(1, KeyFlags::OW.with(KeyFlags::UPDATE)),
        KeySpec::range(2, -1, 1, KeyFlags::RO.with(KeyFlags::ACCESS)),
    ],
    group: "set",
    since: "1.0.0",
    arguments: &[
        Argument::key("destination", 0),
        Argument::key("key", 1).multiple(),
    ],
    ..CommandRow::DEFAULT
};

fn sinter(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Operation::Intersection)
}

fn sunion(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Operation::Union)
}

fn sdiff(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Operation::Difference)
}

fn sinterstore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    store(cx, Operation::Intersection, "sinterstore")
}

fn sunionstore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    store(cx, Operation::Union, "sunionstore")
}

fn sdiffstore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    store(cx, Operation::Difference, "sdiffstore")
}

/// The sets as they are now; what does not exist is an empty one.
fn capture(cx: &Context<'_, '_>, keys: &[Key<'_>]) -> Result<Vec<Set>, CommandError> {
    keys.iter()
        .map(|key| {
            let collection = cx.unit.collection(*key, Kind::Set)?;
            Ok(collection.map_or_else(Set::default, |set| SetRef::from(set).snapshot()))
        })
        .collect()
}

fn list(cx: &mut Context<'_, '_>, operation: Operation) -> Result<(), CommandError> {
    let sets = capture(cx, cx.keys)?;
    let (limits, seed) = (cx.worker.settings().set_limits(), cx.unit.seed());
    let algebra = Algebra::members(operation, sets, limits, seed);
    cx.continue_with(Computation::new(algebra));
    Ok(())
}

fn sintercard(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const TOO_FEW: CommandError = CommandError::Text("ERR numkeys should be greater than 0");
    const TOO_MANY: CommandError =
        CommandError::Text("ERR Number of keys can't be greater than number of args");
    const NEGATIVE: CommandError = CommandError::Text("ERR LIMIT can't be negative");
    let count = integer(&cx.args[1]).ok();
    let count = count.filter(|count| *count > 0).ok_or(TOO_FEW)?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > cx.args.len() - 2 {
        return Err(TOO_MANY);
    }
    let mut limit = 0;
    let mut at = 2 + count;
    while let Some(word) = cx.args.get(at) {
        let number = cx.args.get(at + 1).filter(|_| is(word, "LIMIT"));
        let number = integer(number.ok_or(CommandError::Syntax)?).ok();
        limit = number
            .and_then(|number| usize::try_from(number).ok())
            .ok_or(NEGATIVE)?;
        at += 2;
    }
    if limit == 0 {
        limit = usize::MAX;
    }
    let sets = capture(cx, cx.keys)?;
    let limits = cx.worker.settings().set_limits();
    let algebra = Algebra::intersection_count(sets, limit, limits);
    cx.continue_with(Computation::new(algebra));
    Ok(())
}

fn store(
    cx: &mut Context<'_, '_>,
    operation: Operation,
    event: &'static str,
) -> Result<(), CommandError> {
    let destination = cx.keys[0];
    let sets = capture(cx, &cx.keys[1..])?;
    let (limits, seed) = (cx.worker.settings().set_limits(), cx.unit.seed());
    let mut algebra = Algebra::stored(operation, sets, limits, seed);
    while algebra.step().is_some() {}
    let (outcome, sets) = algebra.finish();
    let result = match outcome {
        Outcome::Set(set) => set,
        Outcome::Gathered(_) | Outcome::Count(_) => {
            unreachable!("what is to be stored comes as a set")
        }
    };
    cx.worker.reap_snapshots(boxed(sets).collect());
    let members = result.len();
    let mut effects = MemberEffects::new(b"SADD", destination.name);
    if cx.unit.is_recorded() {
        effects.push_all(result.as_ref());
    }
    let result = result.into_built();
    let stored = result.is_some();
    let existed = cx.unit.put_collection(
        destination,
        result.unwrap_or_else(|| Built::Packed(Vec::new())),
    );
    if stored {
        cx.unit.touched(destination, EventClass::Set, event);
    } else if existed {
        cx.unit.touched(destination, EventClass::Generic, "del");
    }
    if existed {
        cx.unit.effect(&[b"DEL", destination.name]);
    }
    effects.record(cx);
    cx.reply.integer(members as i64);
    Ok(())
}

/// A computation under way, and then its reply.
struct Computation {
    algebra: Option<Algebra>,
    listing: Option<Listing>,
    /// The sets that it was made from.
    sets: Vec<Set>,
}

impl Computation {
    const fn new(algebra: Algebra) -> Self {
        Self {
            algebra: Some(algebra),
            listing: None,
            sets: Vec::new(),
        }
    }
}

impl Steps for Computation {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        if let Some(mut algebra) = self.algebra.take() {
            while let Some(ns) = algebra.step() {
                budget.take(ns);
                if budget.left() == 0 {
                    self.algebra = Some(algebra);
                    return Progress::More;
                }
            }
            let (outcome, sets) = algebra.finish();
            self.sets = sets;
            match outcome {
                Outcome::Gathered(gathered) => self.listing = Some(Listing::of_gathered(gathered)),
                Outcome::Set(set) => self.listing = Some(Listing::of_set(set)),
                Outcome::Count(count) => reply.integer(count as i64),
            }
        }
        match &mut self.listing {
            Some(listing) => listing.step(budget, reply),
            None => Progress::Done,
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        let mut sets = self.sets;
        sets.extend(
            self.algebra
                .map(Algebra::finish)
                .into_iter()
                .flat_map(|(_, sets)| sets),
        );
        sets.extend(self.listing.and_then(Listing::into_set));
        boxed(sets).collect()
    }
}
