//! Random fields: HRANDFIELD. Each is as likely as any other.

use weft_data::collection::Collection;
use weft_data::hash::{Field, Sample};
use weft_resp::{Protocol, Writer};

use super::super::options::{integer, is};
use super::{READ, hash, reply_value};
use crate::command::{Argument, CommandRow};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "hrandfield",
    arity: -2,
    tips: &["nondeterministic_output"],
    since: "6.2.0",
    complexity: "O(N) in the number of fields returned",
    summary: "Names random fields of a hash.",
    arguments: &[
        Argument::key("key", 0),
        Argument::block(
            "options",
            &[
                Argument::integer("count"),
                Argument::word("withvalues", "WITHVALUES").optional(),
            ],
        )
        .optional(),
    ],
    handler: hrandfield,
    ..READ
}];

fn hrandfield(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if cx.args.len() > 2 {
        return name_many(cx);
    }
    let random = &mut cx.worker.random;
    let field = hash(cx.unit, cx.keys[0])?
        .and_then(|(hash, now)| hash.random(now, &mut |bound| random.u64(..bound)));
    match field {
        Some(field) => cx.reply.bulk(field.name),
        None => cx.reply.null(),
    }
    Ok(())
}

fn name_many(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const RANGE: CommandError = CommandError::Text(
        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
    );
    const DOUBLED_RANGE: CommandError = CommandError::Text("ERR value is out of range");
    let count = integer(&cx.args[2])?;
    if count == i64::MIN {
        return Err(RANGE);
    }
    let with_values = match cx.args.len() {
        3 => false,
        4 if is(&cx.args[3], "WITHVALUES") => true,
        _ => return Err(CommandError::Syntax),
    };
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(DOUBLED_RANGE);
    }
    let hash = hash(cx.unit, cx.keys[0])?;
    let Some((hash, now)) = hash.filter(|_| count != 0) else {
        cx.reply.array(0);
        return Ok(());
    };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let sample = if count < 0 {
        Sample::repeated(hash.snapshot(), wanted as u64, now)
    } else {
        Sample::different(hash.snapshot(), wanted, now)
    };
    let random = cx.worker.random.fork();
    cx.continue_with(Naming {
        sample,
        random,
        with_values,
        in_pairs: with_values && cx.client.protocol == Protocol::Resp3,
        begun: false,
    });
    Ok(())
}

/// The reply of HRANDFIELD under way.
struct Naming {
    sample: Sample,
    random: fastrand::Rng,
    with_values: bool,
    /// Each field and its value are a pair, as RESP3 has them.
    in_pairs: bool,
    begun: bool,
}

impl Steps for Naming {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        /// About what it takes to find a random field, or to pass over one, and what a field takes in a reply.
        const NS_PER_DRAW: u64 = 100;
        const NS_PER_FIELD: u64 = 60;
        let Self {
            sample,
            random,
            with_values,
            in_pairs,
            begun,
        } = self;
        let in_pairs = *in_pairs;
        if !*begun {
            let fields = usize::try_from(sample.left()).unwrap_or(usize::MAX);
            let flat = *with_values && !in_pairs;
            reply.array(if flat {
                fields.saturating_mul(2)
            } else {
                fields
            });
            *begun = true;
        }
        let mut write = |field: Field<'_>| {
            if in_pairs {
                reply.array(2);
            }
            reply.bulk(field.name);
            if *with_values {
                reply_value(reply, field.value);
            }
        };
        while sample.left() > 0 && budget.left() > 0 {
            let mut draws = 0;
            let draw = |bound| {
                draws += 1;
                random.u64(..bound)
            };
            sample.step(draw, &mut write);
            budget.take(NS_PER_FIELD + NS_PER_DRAW * draws);
        }
        if sample.left() > 0 {
            Progress::More
        } else {
            Progress::Done
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        vec![Box::new(Collection::Hash(self.sample.into_hash()))]
    }
}
