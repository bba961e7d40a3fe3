//! Random members: SPOP removes them, SRANDMEMBER only names them. Each is as likely as any other.

use weft_data::collection::{Collection, Kind};
use weft_data::set::{Popped, Sample, SetRef};
use weft_resp::Writer;

use super::super::options::integer;
use super::{Listing, MemberEffects, NS_PER_MEMBER, boxed, changed, edit, reply_member};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "spop",
        arity: -2,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::SET,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::DELETE),
        )],
        tips: &["nondeterministic_output"],
        group: "set",
        since: "1.0.0",
        complexity: "O(1); with a count O(N) in it",
        summary: "Removes random members from a set and returns them.",
        history: &[("3.2.0", "Takes a count.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("count").optional().since("3.2.0"),
        ],
        handler: spop,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "srandmember",
        arity: -2,
        flags: Flags::READONLY,
        categories: Categories::SET,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        group: "set",
        since: "1.0.0",
        complexity: "O(1); with a count O(N) in its absolute value",
        summary: "Returns random members of a set.",
        history: &[("2.6.0", "Takes a count.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("count").optional().since("2.6.0"),
        ],
        handler: srandmember,
        ..CommandRow::DEFAULT
    },
];

fn spop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match cx.args.len() {
        2 => pop_one(cx),
        3 => pop_many(cx),
        _ => Err(CommandError::Syntax),
    }
}

fn pop_one(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let mut random = cx.worker.random.clone();
    let edited = edit(cx, key, |set| set.pop(|bound| random.u64(..bound)))?;
    cx.worker.random = random;
    match edited.result {
        Some(member) => {
            changed(cx, key, "spop", 1, edited.emptied);
            cx.unit.effect(&[b"SREM", key.name, &member]);
            cx.reply.bulk(&member);
        }
        None => cx.reply.null(),
    }
    Ok(())
}

fn pop_many(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const REFUSED: CommandError = CommandError::Text("ERR value is out of range, must be positive");
    let count = integer(&cx.args[2]).ok();
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(REFUSED)?;
    let key = cx.keys[0];
    let mut random = cx.worker.random.clone();
    let edited = edit(cx, key, |set| {
        set.pop_many(count, |bound| random.u64(..bound))
    })?;
    cx.worker.random = random;
    let popped = edited.result;
    if !popped.is_empty() {
        changed(cx, key, "spop", popped.len(), edited.emptied);
        if edited.emptied {
            cx.unit.effect(&[b"DEL", key.name]);
        } else if cx.unit.is_recorded() {
            let mut effects = MemberEffects::new(b"SREM", key.name);
            match &popped {
                Popped::Gathered(gathered) => gathered.iter().for_each(|text| effects.push(text)),
                Popped::Rest(set) => effects.push_all(set.as_ref()),
            }
            effects.record(cx);
        }
    }
    cx.continue_with(match popped {
        Popped::Gathered(gathered) => Listing::of_gathered(gathered),
        Popped::Rest(set) => Listing::of_set(set),
    });
    Ok(())
}

fn srandmember(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match cx.args.len() {
        2 => name_one(cx),
        3 => name_many(cx),
        _ => Err(CommandError::Syntax),
    }
}

fn name_one(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let collection = cx.unit.collection(cx.keys[0], Kind::Set)?;
    let random = &mut cx.worker.random;
    let member = collection.and_then(|set| SetRef::from(set).random(|bound| random.u64(..bound)));
    match member {
        Some(member) => reply_member(&mut cx.reply, member),
        None => cx.reply.null(),
    }
    Ok(())
}

fn name_many(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const RANGE: CommandError = CommandError::Text(
        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
    );
    let count = integer(&cx.args[2])?;
    if count == i64::MIN {
        return Err(RANGE);
    }
    let collection = cx.unit.collection(cx.keys[0], Kind::Set)?;
    let Some(set) = collection.map(SetRef::from).filter(|_| count != 0) else {
        cx.reply.array(0);
        return Ok(());
    };
    let set = set.snapshot();
    let sample = if count < 0 {
        Sample::repeated(set, count.unsigned_abs())
    } else {
        Sample::different(set, usize::try_from(count).unwrap_or(usize::MAX))
    };
    let random = cx.worker.random.fork();
    cx.continue_with(Naming {
        sample,
        random,
        begun: false,
    });
    Ok(())
}

/// The reply of SRANDMEMBER under way.
struct Naming {
    sample: Sample,
    random: fastrand::Rng,
    begun: bool,
}

impl Steps for Naming {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        /// About what it takes to find a random member, or to pass over one.
        const NS_PER_DRAW: u64 = 100;
        let Self {
            sample,
            random,
            begun,
        } = self;
        if !*begun {
            reply.array(usize::try_from(sample.left()).unwrap_or(usize::MAX));
            *begun = true;
        }
        while sample.left() > 0 && budget.left() > 0 {
            let mut draws = 0;
            let draw = |bound| {
                draws += 1;
                random.u64(..bound)
            };
            sample.step(draw, |member| reply_member(reply, member));
            budget.take(NS_PER_MEMBER + NS_PER_DRAW * draws);
        }
        if sample.left() > 0 {
            Progress::More
        } else {
            Progress::Done
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        boxed([self.sample.into_set()]).collect()
    }
}
