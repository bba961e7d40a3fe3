//! ZSCAN.

use weft_data::collection::Kind;
use weft_data::sorted_set::SortedSetRef;

use super::super::scan::{ScanOptions, Scanned, cursor, reply_batch};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The row of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "zscan",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    tips: &["nondeterministic_output"],
    group: "sorted-set",
    since: "2.8.0",
    complexity: "O(1) a call, O(N) for a whole walk",
    summary: "Walks through the members of a sorted set and their scores in small steps.",
    arguments: &[
        Argument::key("key", 0),
        Argument::integer("cursor"),
        Argument::pattern("pattern").token("MATCH").optional(),
        Argument::integer("count").token("COUNT").optional(),
    ],
    handler: zscan,
    ..CommandRow::DEFAULT
}];

fn zscan(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let cursor = cursor(&cx.args[2])?;
    let Some(found) = cx.unit.collection(cx.keys[0], Kind::SortedSet)? else {
        reply_batch(&mut cx.reply, 0, 0);
        return Ok(());
    };
    let options = ScanOptions::parse(cx.args, 3, Scanned::SortedSet)?;
    let mut items: Vec<(Vec<u8>, f64)> = Vec::new();
    let set = SortedSetRef::from(found);
    let next = set.scan(cursor, options.count, |member, score| {
        if options.wants(member) {
            items.push((member.to_vec(), score));
        }
    });
    let with_scores = !options.no_values;
    let width = if with_scores { 2 } else { 1 };
    reply_batch(&mut cx.reply, next, items.len() * width);
    for (member, score) in &items {
        cx.reply.bulk(member);
        if with_scores {
            cx.reply.bulk_double(*score);
        }
    }
    Ok(())
}
