//! Places of members: giving them, asking for them and for distances.

use smallvec::SmallVec;
use weft_data::collection::Kind;
use weft_data::geo::{distance_m, encode, text};
use weft_data::sorted_set::{SortedSetRef, Update};
use weft_resp::{Args, Writer};

use super::super::options::is;
use super::{UNIT, point, point_of, reply_distance, reply_point, unit_m};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;
use crate::journal::EffectArgument;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "geoadd",
        arity: -5,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        categories: Categories::GEO,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        group: "geo",
        since: "3.2.0",
        complexity: "O(log(N)) for each member",
        summary: "Adds members with their places to a sorted set, which is made if missing.",
        history: &[("6.2.0", "Takes CH, NX and XX.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "condition",
                &[Argument::word("nx", "NX"), Argument::word("xx", "XX")],
            )
            .optional()
            .since("6.2.0"),
            Argument::word("change", "CH").optional().since("6.2.0"),
            Argument::block(
                "data",
                &[
                    Argument::double("longitude"),
                    Argument::double("latitude"),
                    Argument::string("member"),
                ],
            )
            .multiple(),
        ],
        handler: geoadd,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "geopos",
        summary: "Tells the longitudes and latitudes of members.",
        handler: geopos,
        ..EACH
    },
    CommandRow {
        name: "geohash",
        summary: "Tells the places of members as geohash texts.",
        handler: geohash,
        ..EACH
    },
    CommandRow {
        name: "geodist",
        arity: -4,
        complexity: "O(1)",
        summary: "Tells how far two members are from each other.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member1"),
            Argument::string("member2"),
            UNIT.optional(),
        ],
        handler: geodist,
        ..EACH
    },
];

/// What the commands that ask for members have in common.
const EACH: CommandRow = CommandRow {
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::GEO,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    group: "geo",
    since: "3.2.0",
    complexity: "O(1) for each member",
    arguments: &[
        Argument::key("key", 0),
        Argument::string("member").optional().multiple(),
    ],
    ..CommandRow::DEFAULT
};

fn geoadd(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    let (mut only_new, mut only_old, mut count_changed) = (false, false, false);
    let mut first = 2;
    while let Some(word) = args.get(first) {
        let term = if is(word, "NX") {
            &mut only_new
        } else if is(word, "XX") {
            &mut only_old
        } else if is(word, "CH") {
            &mut count_changed
        } else {
            break;
        };
        *term = true;
        first += 1;
    }
    if !(args.len() - first).is_multiple_of(3) || (only_new && only_old) {
        return Err(CommandError::Syntax);
    }
    // All places are read before anything is changed.
    let cells: Result<SmallVec<[u64; 8]>, _> = (first..args.len())
        .step_by(3)
        .map(|at| Ok(encode(point(&args[at], &args[at + 1])?)))
        .collect();
    let cells = cells?;
    let (mut added, mut changed) = (0, 0);
    cx.edit_sorted_set(key, cells.len(), |set, _| {
        for (index, cell) in cells.iter().enumerate() {
            let update = set.update(&args[first + 3 * index + 2], |old| {
                let leave = if old.is_some() { only_new } else { only_old };
                (!leave).then_some(*cell as f64)
            });
            match update {
                Update::Added => added += 1,
                Update::Changed => changed += 1,
                Update::Nothing => {}
            }
        }
    })?;
    if added + changed > 0 {
        cx.sorted_set_touched(key, "zadd", added + changed, false);
        cx.unit.effect_with(|| effect(args, first, &cells));
    }
    let counted = if count_changed {
        added + changed
    } else {
        added
    };
    cx.reply.integer(counted as i64);
    Ok(())
}

/// The same as a ZADD, which needs no rounding.
fn effect(args: Args<'_>, first: usize, cells: &[u64]) -> Vec<EffectArgument> {
    let head = (1..first).map(|at| args[at].into());
    let mut arguments: Vec<EffectArgument> = vec![b"ZADD"[..].into()];
    arguments.extend(head);
    for (index, cell) in cells.iter().enumerate() {
        arguments.push(cell.to_string().as_bytes().into());
        arguments.push(args[first + 3 * index + 2].into());
    }
    arguments
}

/// Replies one value for each member asked for.
fn each(
    cx: &mut Context<'_, '_>,
    mut reply_one: impl FnMut(&mut Writer<'_>, Option<f64>),
) -> Result<(), CommandError> {
    let args = cx.args;
    let set = cx.unit.collection(cx.keys[0], Kind::SortedSet)?;
    let set = set.map(SortedSetRef::from);
    cx.reply.array(args.len() - 2);
    for member in args.iter().skip(2) {
        reply_one(&mut cx.reply, set.and_then(|set| set.score(member)));
    }
    Ok(())
}

fn geopos(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    each(cx, |reply, score| match score {
        Some(score) => reply_point(reply, point_of(score)),
        None => reply.null_array(),
    })
}

fn geohash(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    use weft_data::geo::cell_of_score;
    each(cx, |reply, score| match score {
        Some(score) => reply.bulk(&text(cell_of_score(score))),
        None => reply.null(),
    })
}

fn geodist(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let args = cx.args;
    let unit_m = match args.len() {
        4 => 1.0,
        5 => unit_m(&args[4])?,
        _ => return Err(CommandError::Syntax),
    };
    let set = cx.sorted_set(cx.keys[0])?;
    let score = |at: usize| set.and_then(|set| set.score(&args[at]));
    match (score(2), score(3)) {
        (Some(one), Some(other)) => {
            let distance = distance_m(point_of(one), point_of(other));
            reply_distance(&mut cx.reply, distance / unit_m);
        }
        _ => cx.reply.null(),
    }
    Ok(())
}
