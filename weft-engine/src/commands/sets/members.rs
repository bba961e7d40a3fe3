//! Members of a set: adding, removing, moving, asking for them, listing them.

use super::super::scan::{ScanOptions, Scanned, cursor, reply_batch};
use super::super::values::effect_arguments;
use super::{Listing, changed, edit, reply_member, set};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::error::CommandError;
use weft_data::collection::Kind;
use weft_data::set::{Gathered, SetRef};

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "sadd",
        arity: -3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::SET,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::INSERT))],
        group: "set",
        since: "1.0.0",
        complexity: "O(1) for each member",
        summary: "Adds members to a set, which is made if there is none.",
        history: &[("2.4.0", "Takes several members.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member").multiple(),
        ],
        handler: sadd,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "srem",
        arity: -3,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::SET,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::DELETE))],
        group: "set",
        since: "1.0.0",
        complexity: "O(N) in the number of members given",
        summary: "Removes members from a set, and the key with the last one.",
        history: &[("2.4.0", "Takes several members.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member").multiple(),
        ],
        handler: srem,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "smove",
        arity: 4,
        flags: Flags::WRITE.with(Flags::FAST),
        categories: Categories::SET,
        keys: &[
            KeySpec::one(
                1,
                KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::DELETE),
            ),
            KeySpec::one(2, KeyFlags::RW.with(KeyFlags::INSERT)),
        ],
        group: "set",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Takes a member from one set to another.",
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            Argument::string("member"),
        ],
        handler: smove,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "sismember",
        arity: 3,
        flags: Flags::READONLY.with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        complexity: "O(1)",
        summary: "Tells whether a set has a member.",
        arguments: &[Argument::key("key", 0), Argument::string("member")],
        handler: sismember,
        ..READ
    },
    CommandRow {
        name: "smismember",
        arity: -3,
        flags: Flags::READONLY.with(Flags::FAST),
        since: "6.2.0",
        complexity: "O(N) in the number of members given",
        summary: "Tells of each member whether a set has it.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member").multiple(),
        ],
        handler: smismember,
        ..READ
    },
    CommandRow {
        name: "scard",
        arity: 2,
        flags: Flags::READONLY.with(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        complexity: "O(1)",
        summary: "Counts the members of a set.",
        handler: scard,
        ..READ
    },
    CommandRow {
        name: "smembers",
        arity: 2,
        tips: &["nondeterministic_output_order"],
        complexity: "O(N) in the number of members",
        summary: "Lists the members of a set.",
        handler: smembers,
        ..READ
    },
    CommandRow {
        name: "sscan",
        arity: -3,
        tips: &["nondeterministic_output"],
        since: "2.8.0",
        complexity: "O(1) a call, O(N) for a whole walk",
        summary: "Walks through the members of a set in small steps.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("cursor"),
            Argument::pattern("pattern").token("MATCH").optional(),
            Argument::integer("count").token("COUNT").optional(),
        ],
        handler: sscan,
        ..READ
    },
];

/// What the commands that read one set have in common.
const READ: CommandRow = CommandRow {
    flags: Flags::READONLY,
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    group: "set",
    since: "1.0.0",
    arguments: &[Argument::key("key", 0)],
    ..CommandRow::DEFAULT
};

fn sadd(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let added = edit(cx, key, |set| set.add_all(args.skip(2).iter()))?.result;
    if added > 0 {
        changed(cx, key, "sadd", added, false);
        cx.unit.effect_with(|| effect_arguments(args));
    }
    cx.reply.integer(added as i64);
    Ok(())
}

fn srem(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let edited = edit(cx, key, |set| {
        let members = args.skip(2);
        members.iter().filter(|member| set.remove(member)).count()
    })?;
    if edited.result > 0 {
        changed(cx, key, "srem", edited.result, edited.emptied);
        cx.unit.effect_with(|| effect_arguments(args));
    }
    cx.reply.integer(edited.result as i64);
    Ok(())
}

fn smove(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let [source, destination] = [cx.keys[0], cx.keys[1]];
    let args = cx.args;
    let member = args.get(3).unwrap_or_default();
    let there = match cx.unit.peek_collection(source, Kind::Set)? {
        Some(set) => {
            cx.unit.peek_collection(destination, Kind::Set)?;
            SetRef::from(set).contains(member)
        }
        None => false,
    };
    if there && source.name != destination.name {
        let emptied = edit(cx, source, |set| set.remove(member))?.emptied;
        changed(cx, source, "srem", 1, emptied);
        if edit(cx, destination, |set| set.add(member))?.result {
            changed(cx, destination, "sadd", 1, false);
        }
        cx.unit.effect_with(|| effect_arguments(args));
    }
    cx.reply.integer(i64::from(there));
    Ok(())
}

fn sismember(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let there = set(cx, 0)?.is_some_and(|set| set.contains(&cx.args[2]));
    cx.reply.integer(i64::from(there));
    Ok(())
}

fn smismember(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let collection = cx.unit.collection(cx.keys[0], Kind::Set)?;
    let set = collection.map(SetRef::from);
    let members = cx.args.skip(2);
    cx.reply.array(members.len());
    for member in members.iter() {
        let there = set.is_some_and(|set| set.contains(member));
        cx.reply.integer(i64::from(there));
    }
    Ok(())
}

fn scard(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let members = set(cx, 0)?.map_or(0, SetRef::len);
    cx.reply.integer(members as i64);
    Ok(())
}

fn smembers(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let collection = cx.unit.collection(cx.keys[0], Kind::Set)?;
    let Some(set) = collection.map(SetRef::from) else {
        cx.reply.set(0);
        return Ok(());
    };
    if let Some(members) = set.few() {
        cx.reply.set(set.len());
        members.for_each(|member| reply_member(&mut cx.reply, member));
        return Ok(());
    }
    let set = set.snapshot();
    cx.continue_with(Listing::of_set(set));
    Ok(())
}

fn sscan(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let cursor = cursor(&cx.args[2])?;
    let collection = cx.unit.collection(cx.keys[0], Kind::Set)?;
    let Some(set) = collection.map(SetRef::from) else {
        reply_batch(&mut cx.reply, 0, 0);
        return Ok(());
    };
    let options = ScanOptions::parse(cx.args, 3, Scanned::Collection)?;
    let mut found = Gathered::default();
    let next = set.scan(cursor, options.count, |member| {
        member.with(|text| {
            if options.wants(text) {
                found.push(text);
            }
        });
    });
    reply_batch(&mut cx.reply, next, found.len());
    found.iter().for_each(|member| cx.reply.bulk(member));
    Ok(())
}
