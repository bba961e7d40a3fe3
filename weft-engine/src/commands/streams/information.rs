//! XINFO: what is known of a stream, its groups and their consumers.

use weft_data::collection::{Collection, Kind};
use weft_data::stream::{Entry, Group, Id, StreamRef};
use weft_resp::Writer;

use super::super::options::{integer, is};
use super::super::reply_help;
use super::groups::{no_such_group, wrong_use};
use super::{BYTES_PER_NS, NS_PER_ENTRY, READ, Snapshot, reply_entry, reply_id, reply_optional};
use crate::command::{Argument, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "xinfo",
    arity: -2,
    flags: Flags::NONE,
    group: "stream",
    since: "5.0.0",
    complexity: "Depends on subcommand.",
    summary: "Commands that tell about streams.",
    subcommands: SUBCOMMANDS,
    ..CommandRow::DEFAULT
}];

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "consumers",
        arity: 4,
        tips: &["nondeterministic_output"],
        summary: "Lists the consumers of a group.",
        history: &[("7.2.0", "`inactive`, and another meaning of `idle`.")],
        arguments: &[Argument::key("key", 0), Argument::string("group")],
        handler: consumers,
        ..ABOUT_A_STREAM
    },
    CommandRow {
        name: "groups",
        arity: 3,
        summary: "Lists the groups of a stream.",
        history: &[("7.0.0", "`entries-read` and `lag`.")],
        arguments: &[Argument::key("key", 0)],
        handler: groups,
        ..ABOUT_A_STREAM
    },
    CommandRow {
        name: "stream",
        arity: -3,
        summary: "Tells about a stream.",
        history: &[
            ("6.0.0", "Option `FULL`."),
            (
                "7.0.0",
                "`max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag`.",
            ),
            (
                "7.2.0",
                "`active-time`, and another meaning of `seen-time`.",
            ),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::block(
                "full-block",
                &[
                    Argument::word("full", "FULL"),
                    Argument::integer("count").token("COUNT").optional(),
                ],
            )
            .optional(),
        ],
        handler: stream,
        ..ABOUT_A_STREAM
    },
    CommandRow {
        name: "help",
        arity: 2,
        flags: Flags::LOADING.with(Flags::STALE),
        keys: &[],
        summary: "Lists the subcommands.",
        handler: help,
        ..ABOUT_A_STREAM
    },
];

const ABOUT_A_STREAM: CommandRow = CommandRow {
    keys: &[KeySpec::one(2, KeyFlags::RO.with(KeyFlags::ACCESS))],
    complexity: "O(1)",
    ..READ
};

const NO_KEY: CommandError = CommandError::Text("ERR no such key");

fn consumers(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, name) = (cx.keys[0], &cx.args[3]);
    let stream = super::stream(cx.unit, key)?.ok_or(NO_KEY)?;
    let group = stream.group(name);
    let group = group.ok_or_else(|| no_such_group(key.name, name))?;
    let now_ms = cx.unit.now_ms() as i64;
    let reply = &mut cx.reply;
    reply.array(group.consumers_len() as usize);
    for consumer in group.consumers() {
        let since = |ms: i64| now_ms.saturating_sub(ms).max(0);
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        reply.bulk(b"pending");
        reply.integer(consumer.pending_len() as i64);
        reply.bulk(b"idle");
        reply.integer(since(consumer.seen_ms));
        reply.bulk(b"inactive");
        reply.integer(consumer.active_ms.map_or(-1, since));
    }
    Ok(())
}

fn groups(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let stream = super::stream(cx.unit, cx.keys[0])?.ok_or(NO_KEY)?;
    let reply = &mut cx.reply;
    reply.array(stream.groups_len() as usize);
    for group in stream.groups_from(0) {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(group.name());
        reply.bulk(b"consumers");
        reply.integer(group.consumers_len() as i64);
        reply.bulk(b"pending");
        reply.integer(group.pending_len() as i64);
        reply_position(reply, stream, group);
    }
    Ok(())
}

/// How far a group has read.
fn reply_position(reply: &mut Writer<'_>, stream: StreamRef<'_>, group: &Group) {
    reply.bulk(b"last-delivered-id");
    reply_id(reply, group.last_id);
    reply.bulk(b"entries-read");
    reply_optional(reply, group.entries_read);
    reply.bulk(b"lag");
    reply_optional(reply, stream.lag(group));
}

fn stream(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    /// So many entries, and pending ones, of each list by default.
    const DEFAULT_COUNT: u64 = 10;
    let (args, key) = (cx.args, cx.keys[0]);
    let found = cx.unit.collection(key, Kind::Stream)?.ok_or(NO_KEY)?;
    let stream = StreamRef::from(found);
    let most = match (args.len(), args.get(3)) {
        (3, _) => {
            reply_stream(&mut cx.reply, stream);
            return Ok(());
        }
        (4, Some(word)) if is(word, "FULL") => DEFAULT_COUNT,
        (6, Some(word)) if is(word, "FULL") && is(&args[4], "COUNT") => {
            match u64::try_from(integer(&args[5])?) {
                Ok(0) => u64::MAX,
                Ok(count) => count,
                Err(_) => DEFAULT_COUNT,
            }
        }
        _ => return Err(wrong_use(cx, "XINFO")),
    };
    let full = Full {
        snapshot: Snapshot::of(found),
        most,
        at: Place::Head,
    };
    cx.continue_with(full);
    Ok(())
}

/// What both forms of XINFO STREAM begin with.
fn reply_head(reply: &mut Writer<'_>, stream: StreamRef<'_>) {
    reply.bulk(b"length");
    reply.integer(stream.len() as i64);
    reply.bulk(b"radix-tree-keys");
    reply.integer(stream.nodes() as i64);
    reply.bulk(b"radix-tree-nodes");
    reply.integer(stream.radix_nodes() as i64);
    reply.bulk(b"last-generated-id");
    reply_id(reply, stream.last_id());
    reply.bulk(b"max-deleted-entry-id");
    reply_id(reply, stream.max_removed());
    reply.bulk(b"entries-added");
    reply.integer(stream.added() as i64);
    reply.bulk(b"recorded-first-entry-id");
    reply_id(reply, stream.first().map_or(Id::MIN, |entry| entry.id));
}

fn reply_stream(reply: &mut Writer<'_>, stream: StreamRef<'_>) {
    let entry = |reply: &mut Writer<'_>, entry: Option<Entry<'_>>| match entry {
        Some(entry) => reply_entry(reply, &entry),
        None => reply.null(),
    };
    reply.map(10);
    reply_head(reply, stream);
    reply.bulk(b"groups");
    reply.integer(stream.groups_len() as i64);
    reply.bulk(b"first-entry");
    entry(reply, stream.first());
    reply.bulk(b"last-entry");
    entry(reply, stream.last());
}

/// XINFO STREAM FULL under way.
struct Full {
    snapshot: Snapshot,
    /// At most so many of each list.
    most: u64,
    at: Place,
}

/// What comes next.
enum Place {
    Head,
    /// The entries from this rank on.
    Entries(u64),
    /// The group with this index.
    Group(u64),
    /// So many pending entries of the group, from this id on.
    Pending(u64, Id, u64),
    /// A consumer of the group.
    Consumer(u64, u64),
    /// So many of the consumer's pending entries, from this id on.
    ConsumerPending(u64, u64, Id, u64),
    Done,
}

/// So many are written between two looks at the budget.
const CHUNK: u64 = 32;
/// About what a group or a consumer takes to be found and written.
const NS_PER_GROUP: u64 = 500;

impl Full {
    fn advance(&self, budget: &mut Budget, reply: &mut Writer<'_>) -> Place {
        let stream = self.snapshot.look();
        match self.at {
            Place::Head => {
                reply.map(9);
                reply_head(reply, stream);
                reply.bulk(b"entries");
                reply.array(stream.len().min(self.most) as usize);
                Place::Entries(0)
            }
            Place::Entries(from) => {
                let end = stream.len().min(self.most);
                let to = (from + CHUNK).min(end);
                let mut bytes = 0;
                stream.each(from..to, false, |entry| {
                    bytes += entry.weight() as u64;
                    reply_entry(reply, &entry);
                });
                budget.take((to - from) * NS_PER_ENTRY + bytes / BYTES_PER_NS);
                if to < end {
                    return Place::Entries(to);
                }
                reply.bulk(b"groups");
                reply.array(stream.groups_len() as usize);
                Place::Group(0)
            }
            Place::Group(index) => {
                budget.take(NS_PER_GROUP);
                let Some(group) = stream.groups_from(index).next() else {
                    return Place::Done;
                };
                reply.map(7);
                reply.bulk(b"name");
                reply.bulk(group.name());
                reply_position(reply, stream, group);
                reply.bulk(b"pel-count");
                reply.integer(group.pending_len() as i64);
                let count = group.pending_len().min(self.most);
                reply.bulk(b"pending");
                reply.array(count as usize);
                Place::Pending(index, Id::MIN, count)
            }
            Place::Pending(index, from, left) => {
                let Some(group) = stream.groups_from(index).next() else {
                    return Place::Done;
                };
                let count = left.min(CHUNK);
                budget.take(NS_PER_GROUP + count * NS_PER_ENTRY);
                let mut next = from;
                for pending in group.pending_from(from).take(count as usize) {
                    reply.array(4);
                    reply_id(reply, pending.id);
                    reply.bulk(&pending.consumer);
                    reply.integer(pending.delivered_ms);
                    reply.integer(pending.deliveries as i64);
                    next = pending.id.next().unwrap_or(Id::MAX);
                }
                if left > count {
                    return Place::Pending(index, next, left - count);
                }
                reply.bulk(b"consumers");
                reply.array(group.consumers_len() as usize);
                Place::Consumer(index, 0)
            }
            Place::Consumer(index, which) => {
                budget.take(NS_PER_GROUP);
                let group = stream.groups_from(index).next();
                let consumer = group.and_then(|group| group.consumers_from(which).next());
                let Some(consumer) = consumer else {
                    return Place::Group(index + 1);
                };
                reply.map(5);
                reply.bulk(b"name");
                reply.bulk(consumer.name());
                reply.bulk(b"seen-time");
                reply.integer(consumer.seen_ms);
                reply.bulk(b"active-time");
                reply.integer(consumer.active_ms.unwrap_or(-1));
                reply.bulk(b"pel-count");
                reply.integer(consumer.pending_len() as i64);
                let count = consumer.pending_len().min(self.most);
                reply.bulk(b"pending");
                reply.array(count as usize);
                Place::ConsumerPending(index, which, Id::MIN, count)
            }
            Place::ConsumerPending(index, which, from, left) => {
                let group = stream.groups_from(index).next();
                let consumer = group.and_then(|group| group.consumers_from(which).next());
                let (Some(group), Some(consumer)) = (group, consumer) else {
                    return Place::Done;
                };
                let count = left.min(CHUNK);
                budget.take(NS_PER_GROUP + count * NS_PER_ENTRY);
                let mut next = from;
                for id in consumer.pending_ids(from).take(count as usize) {
                    let pending = group.pending(id);
                    reply.array(3);
                    reply_id(reply, id);
                    reply.integer(pending.map_or(0, |pending| pending.delivered_ms));
                    reply.integer(pending.map_or(0, |pending| pending.deliveries) as i64);
                    next = id.next().unwrap_or(Id::MAX);
                }
                if left > count {
                    return Place::ConsumerPending(index, which, next, left - count);
                }
                Place::Consumer(index, which + 1)
            }
            Place::Done => Place::Done,
        }
    }
}

impl Steps for Full {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        while budget.left() > 0 {
            if matches!(self.at, Place::Done) {
                return Progress::Done;
            }
            self.at = self.advance(budget, reply);
        }
        if matches!(self.at, Place::Done) {
            Progress::Done
        } else {
            Progress::More
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        self.snapshot.into_large().into_iter().collect()
    }
}

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_help(
        &mut cx.reply,
        &[
            "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "CONSUMERS <key> <groupname>",
            "    Show consumers of <groupname>.",
            "GROUPS <key>",
            "    Show the stream consumer groups.",
            "STREAM <key> [FULL [COUNT <count>]",
            "    Show information about the stream.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
