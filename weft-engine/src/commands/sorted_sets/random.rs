//! ZRANDMEMBER: members by chance, each as likely as any other, found by their ranks.

use std::collections::HashSet;

use weft_data::collection::{Collection, Kind};
use weft_data::sorted_set::SortedSetRef;
use weft_resp::Writer;

use super::super::options::{integer, is};
use super::{BYTES_PER_NS, CHUNK, NS_PER_MEMBER, Snapshot, reply_header, reply_item, reply_ranks};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// The row of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "zrandmember",
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    tips: &["nondeterministic_output"],
    group: "sorted-set",
    since: "6.2.0",
    complexity: "O(N) in the number of members picked",
    summary: "Picks members by chance, each as likely as the others.",
    arguments: &[
        Argument::key("key", 0),
        Argument::block(
            "options",
            &[
                Argument::integer("count"),
                Argument::word("withscores", "WITHSCORES").optional(),
            ],
        )
        .optional(),
    ],
    handler: zrandmember,
    ..CommandRow::DEFAULT
}];

fn zrandmember(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let Some(count) = cx.args.get(2) else {
        let found = cx.unit.collection(key, Kind::SortedSet)?;
        let Some(set) = found.map(SortedSetRef::from) else {
            cx.reply.null();
            return Ok(());
        };
        let rank = cx.worker.random.u64(..set.len());
        if let Some((member, _)) = set.at(rank) {
            cx.reply.bulk(member);
        }
        return Ok(());
    };
    let (count, with_scores) = options(cx, count)?;
    let pairs = cx.pairs();
    let found = cx.unit.collection(key, Kind::SortedSet)?;
    let Some(found) = found else {
        cx.reply.array(0);
        return Ok(());
    };
    let len = SortedSetRef::from(found).len();
    let picks = if count > 0 && count.unsigned_abs() >= len {
        // All of them, from the last to the first, as Redis has them.
        return reply_ranks(cx, key, |_| 0..len, true, with_scores);
    } else if count < 0 {
        Picks::Any
    } else if count.unsigned_abs() < len / 3 {
        Picks::Different(HashSet::new())
    } else {
        Picks::Subset { next: 0 }
    };
    reply_header(&mut cx.reply, count.unsigned_abs(), with_scores, pairs);
    let snapshot = Snapshot::of(found);
    let random = cx.worker.random.fork();
    cx.continue_with(Picking {
        snapshot,
        random,
        left: count.unsigned_abs(),
        picks,
        with_scores,
        pairs,
    });
    Ok(())
}

/// How many, negative for such as may be picked again, and whether with their scores.
fn options(cx: &Context<'_, '_>, count: &[u8]) -> Result<(i64, bool), CommandError> {
    const RANGE: &str = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
    let count = integer(count)?;
    if count == i64::MIN {
        return Err(CommandError::Text(RANGE));
    }
    let with_scores = match (cx.args.get(3), cx.args.len()) {
        (None, _) => false,
        (Some(word), 4) if is(word, "WITHSCORES") => true,
        _ => return Err(CommandError::Syntax),
    };
    if with_scores && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::Text("ERR value is out of range"));
    }
    Ok((count, with_scores))
}

/// How ranks are drawn.
enum Picks {
    /// Each anew.
    Any,
    /// Those that were not drawn yet, which are most.
    Different(HashSet<u64>),
    /// Every subset as likely as any other: each rank in turn is taken with the chance that it has.
    Subset { next: u64 },
}

/// Members on their way into the reply.
struct Picking {
    snapshot: Snapshot,
    random: fastrand::Rng,
    left: u64,
    picks: Picks,
    with_scores: bool,
    pairs: bool,
}

impl Picking {
    fn draw(&mut self, len: u64) -> u64 {
        match &mut self.picks {
            Picks::Any => self.random.u64(..len),
            Picks::Different(drawn) => loop {
                let rank = self.random.u64(..len);
                if drawn.insert(rank) {
                    return rank;
                }
            },
            Picks::Subset { next } => loop {
                let rank = *next;
                *next += 1;
                if self.random.u64(..len - rank) < self.left {
                    return rank;
                }
            },
        }
    }
}

impl Steps for Picking {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        let len = self.snapshot.look().len();
        while self.left > 0 && budget.left() > 0 {
            let mut bytes = 0;
            for _ in 0..CHUNK.min(self.left) {
                let rank = self.draw(len);
                self.left -= 1;
                if let Some((member, score)) = self.snapshot.look().at(rank) {
                    bytes += member.len() as u64;
                    reply_item(reply, member, score, self.with_scores, self.pairs);
                }
            }
            budget.take(CHUNK * NS_PER_MEMBER + bytes / BYTES_PER_NS);
        }
        if self.left > 0 {
            Progress::More
        } else {
            Progress::Done
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        self.snapshot.into_large().into_iter().collect()
    }
}
