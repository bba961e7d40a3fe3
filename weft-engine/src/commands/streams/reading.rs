//! Reading on from where one was: XREAD, and XREADGROUP on behalf of a group.
//!
//! A request is read once (`Reading::parse`), which is when `$` and `+` become ids, and can then be served any number of times: serving says
//! whether there was anything. If there was not, the client may wait: each stream then has its own condition.

use smallvec::SmallVec;
use weft_data::collection::Kind;
use weft_data::stream::{Id, StreamRef};
use weft_keyspace::{Awaited, Entry};
use weft_resp::{OwnedArgs, Protocol};

use super::super::options::{integer, is};
use super::super::timeouts;
use super::{
    Before, Listing, Part, READ, Snapshot, edit, id_argument, is_brief, number_argument, quoting,
    reply_before, reply_entry, strict_id, touched, touched_silently,
};
use crate::blocking::{Condition, Nothing, Wish};
use crate::command::{Argument, Begin, CommandRow, Find, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, Key};
use crate::error::CommandError;
use crate::journal::EffectArgument;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "xread",
        arity: -4,
        flags: Flags::READONLY
            .with(Flags::BLOCKING)
            .with(Flags::MOVABLE_KEYS),
        keys: &[streams_from(1)],
        summary: "Reads the entries of several streams that come after given ones.",
        arguments: &[COUNT, BLOCK, STREAMS],
        handler: xread,
        ..READ
    },
    CommandRow {
        name: "xreadgroup",
        arity: -7,
        flags: Flags::WRITE.with(Flags::BLOCKING).with(Flags::MOVABLE_KEYS),
        keys: &[streams_from(4)],
        complexity: "O(M) for M entries read",
        summary: "Reads entries of several streams on behalf of a group: new ones, or those that are pending.",
        arguments: &[
            Argument::block(
                "group-block",
                &[Argument::string("group"), Argument::string("consumer")],
            )
            .token("GROUP"),
            COUNT,
            BLOCK,
            Argument::word("noack", "NOACK").optional(),
            STREAMS,
        ],
        handler: xreadgroup,
        ..READ
    },
];

const COUNT: Argument = Argument::integer("count").token("COUNT").optional();
const BLOCK: Argument = Argument::integer("milliseconds").token("BLOCK").optional();
const STREAMS: Argument = Argument::block(
    "streams",
    &[
        Argument::key("key", 0).multiple(),
        Argument::string("id").multiple(),
    ],
)
.token("STREAMS");

const fn streams_from(argument: i32) -> KeySpec {
    KeySpec {
        begin: Begin::Keyword("STREAMS", argument),
        find: Find::Range {
            last: -1,
            step: 1,
            limit: 2,
        },
        flags: KeyFlags::RO.with(KeyFlags::ACCESS),
        notes: "",
    }
}

/// So many ids an effect takes at most.
const IDS_PER_EFFECT: usize = 256;

/// Where to begin in a stream.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// Behind this entry; in a group: behind this one of the consumer's pending entries.
    After(Id),
    /// With what the group was not given yet.
    New,
}

/// What XREAD or XREADGROUP asks for.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    /// The beginning in each of the command's keys.
    starts: SmallVec<[Start; 4]>,
    /// At most so many entries of each.
    most: u64,
    /// The group and the consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    /// What is delivered counts as acknowledged.
    no_ack: bool,
    /// If there is nothing, wait for so long.
    block: Option<Block>,
    /// The argument with the first id.
    first_id: usize,
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
struct Block {
    deadline_ns: Option<u64>,
}

/// What a stream has for the reader.
enum Found {
    /// The entries with these ranks.
    Ranks(std::ops::Range<u64>),
    /// The entries with these ids, as far as they still exist.
    Ids(Vec<Id>),
}

fn xread(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    read(cx, false)
}

fn xreadgroup(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    read(cx, true)
}

fn read(cx: &mut Context<'_, '_>, in_group: bool) -> Result<(), CommandError> {
    let reading = Reading::parse(cx, in_group)?;
    if reading.serve(cx)? {
        return Ok(());
    }
    match reading.block {
        Some(block) => reading.wait(cx, block),
        None => cx.reply.null_array(),
    }
    Ok(())
}

impl<'a> Reading<'a> {
    fn parse(cx: &Context<'a, '_>, in_group: bool) -> Result<Self, CommandError> {
        let args = cx.args;
        let mut reading = Self {
            starts: SmallVec::new(),
            most: u64::MAX,
            group: None,
            no_ack: false,
            block: None,
            first_id: 0,
        };
        let mut at = 1;
        loop {
            let Some(word) = args.get(at) else {
                return Err(CommandError::Syntax);
            };
            let more = args.len() - at - 1;
            if is(word, "COUNT") && more >= 1 {
                let most = u64::try_from(integer(&args[at + 1])?).unwrap_or(0);
                reading.most = if most == 0 { u64::MAX } else { most };
                at += 2;
            } else if is(word, "BLOCK") && more >= 1 {
                let deadline_ns = timeouts::milliseconds(cx, &args[at + 1])?;
                reading.block = Some(Block { deadline_ns });
                at += 2;
            } else if is(word, "STREAMS") && more >= 1 {
                at += 1;
                break;
            } else if is(word, "GROUP") && more >= 2 {
                if !in_group {
                    return Err(CommandError::Text(
                        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                reading.group = args.get(at + 1).zip(args.get(at + 2));
                at += 3;
            } else if is(word, "NOACK") {
                if !in_group {
                    return Err(CommandError::Text(
                        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                reading.no_ack = true;
                at += 1;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        reading.parse_streams(cx, at, in_group)?;
        Ok(reading)
    }

    /// Reads the keys and ids, which are all arguments from this one on.
    fn parse_streams(
        &mut self,
        cx: &Context<'a, '_>,
        at: usize,
        in_group: bool,
    ) -> Result<(), CommandError> {
        let args = cx.args;
        let both = args.len() - at;
        if both % 2 == 1 {
            return Err(CommandError::Text(if in_group {
                "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
            } else {
                "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified."
            }));
        }
        if in_group && self.group.is_none() {
            return Err(CommandError::Text(
                "ERR Missing GROUP option for XREADGROUP",
            ));
        }
        // A group that is called STREAMS misleads the search for keys, and then others are latched.
        let is_key = |(place, key): (usize, &Key<'_>)| args.get(at + place) == Some(key.name);
        if cx.keys.len() != both / 2 || !cx.keys.iter().enumerate().all(is_key) {
            return Err(CommandError::Syntax);
        }
        self.first_id = at + both / 2;
        let ids = args.skip(self.first_id);
        for (key, id) in cx.keys.iter().zip(ids.iter()) {
            let start = self.parse_start(cx, *key, id)?;
            self.starts.push(start);
        }
        Ok(())
    }

    fn parse_start(
        &self,
        cx: &Context<'a, '_>,
        key: Key<'_>,
        text: &[u8],
    ) -> Result<Start, CommandError> {
        if !key.is_at_hand() {
            // Not looked at: one that waited is served from another stream.
            return Ok(Start::New);
        }
        let found = super::peek(cx.unit, key)?;
        if let Some((group, _)) = self.group
            && found.and_then(|stream| stream.group(group)).is_none()
        {
            let parts = [
                "NOGROUP No such key '",
                "' or consumer group '",
                "' in XREADGROUP with GROUP option",
            ];
            return Err(quoting(parts, key.name, group));
        }
        let in_group = self.group.is_some();
        Ok(match text {
            b"$" if in_group => {
                return Err(CommandError::Text(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                     consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return \
                     an empty result set.",
                ));
            }
            b"+" if in_group => {
                return Err(CommandError::Text(
                    "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                     consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return \
                     an empty result set.",
                ));
            }
            b"$" => Start::After(found.map_or(Id::MIN, StreamRef::last_id)),
            // Behind the last but one; behind all that there ever were if there is none.
            b"+" => Start::After(found.map_or(Id::MIN, |stream| match stream.last() {
                Some(last) => last.id.previous().unwrap_or(Id::MIN),
                None => stream.last_id(),
            })),
            b">" if in_group => Start::New,
            b">" => {
                return Err(CommandError::Text(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
                ));
            }
            text => match strict_id(text, 0)? {
                // As in Redis, where nothing can come after it.
                Id::MAX if in_group => Start::New,
                id => Start::After(id),
            },
        })
    }

    /// Replies what there is, and notes in the group that it was given; false, and no reply, if there is nothing.
    fn serve(&self, cx: &mut Context<'_, '_>) -> Result<bool, CommandError> {
        let keys = cx.keys;
        let mut served: SmallVec<[(Key<'_>, Found); 4]> = SmallVec::new();
        let starts = keys.iter().zip(&self.starts);
        for (key, start) in starts.filter(|(key, _)| key.is_at_hand()) {
            let found = match self.group {
                Some((group, consumer)) => self.take(cx, *key, *start, group, consumer)?,
                None => self.look(cx, *key, *start)?,
            };
            served.extend(found.map(|found| (*key, found)));
        }
        if served.is_empty() {
            return Ok(false);
        }
        let is_map = cx.reply.protocol == Protocol::Resp3;
        if is_map {
            cx.reply.map(served.len());
        } else {
            cx.reply.array(served.len());
        }
        let mut parts = Vec::new();
        for (key, found) in served {
            let before = Before::Stream {
                name: key.name.into(),
                is_pair: !is_map,
            };
            let entry = cx.unit.look(key);
            let Some(collection) = entry.and_then(|entry| entry.collection()) else {
                continue;
            };
            let stream = StreamRef::from(collection);
            let reply = &mut cx.reply;
            match found {
                Found::Ranks(ranks) => {
                    let count = ranks.end - ranks.start;
                    if parts.is_empty() && is_brief(collection, count) {
                        reply_before(reply, &before, count);
                        stream.each(ranks, false, |entry| reply_entry(reply, &entry));
                    } else {
                        parts.push(Part {
                            snapshot: Snapshot::of(collection),
                            ranks,
                            ids: Vec::new(),
                            backwards: false,
                            before,
                        });
                    }
                }
                Found::Ids(ids) => {
                    let count = ids.len() as u64;
                    if parts.is_empty() && is_brief(collection, count) {
                        reply_before(reply, &before, count);
                        for id in ids {
                            super::reply_pending_entry(reply, stream, id);
                        }
                    } else {
                        parts.push(Part {
                            snapshot: Snapshot::of(collection),
                            ranks: 0..count,
                            ids,
                            backwards: false,
                            before,
                        });
                    }
                }
            }
        }
        if !parts.is_empty() {
            cx.continue_with(Listing::of(parts));
        }
        Ok(true)
    }

    /// Waits until one of the streams has something. What stood for the present end of a stream becomes the id of that.
    fn wait(&self, cx: &mut Context<'_, '_>, block: Block) {
        let mut args = OwnedArgs::default();
        for argument in cx.args.iter().take(self.first_id) {
            args.push(argument);
        }
        let mut awaited = Vec::with_capacity(cx.keys.len());
        for (key, start) in cx.keys.iter().zip(&self.starts) {
            let after = match start {
                Start::After(id) => {
                    args.push(id.text().as_bytes());
                    Some(*id)
                }
                Start::New => {
                    args.push(b">");
                    None
                }
            };
            awaited.push((key.name.into(), after));
        }
        cx.wait(Wish {
            awaits: Some((Awaited::Stream, 0..cx.keys.len())),
            condition: Some(Box::new(HasMore {
                awaited,
                group: self.group.map(|(group, _)| group.into()),
            })),
            args: Some(args),
            feeds: None,
            deadline_ns: block.deadline_ns,
            lapsed: Nothing::NullArray,
            denied: Nothing::NullArray,
        });
    }

    /// What comes after an entry.
    fn look(
        &self,
        cx: &Context<'_, '_>,
        key: Key<'_>,
        start: Start,
    ) -> Result<Option<Found>, CommandError> {
        let stream = super::stream(cx.unit, key)?;
        let (Some(stream), Start::After(id)) = (stream, start) else {
            return Ok(None);
        };
        Ok(self.after(stream, id).map(Found::Ranks))
    }

    fn after(&self, stream: StreamRef<'_>, id: Id) -> Option<std::ops::Range<u64>> {
        let mut ranks = stream.ranks(id.next()?, Id::MAX);
        ranks.end = ranks.end.min(ranks.start.saturating_add(self.most));
        (!ranks.is_empty()).then_some(ranks)
    }

    /// The same on behalf of a group.
    fn take(
        &self,
        cx: &mut Context<'_, '_>,
        key: Key<'_>,
        start: Start,
        group: &[u8],
        consumer: &[u8],
    ) -> Result<Option<Found>, CommandError> {
        // A waiter's group may have gone meanwhile.
        let Some(stream) =
            super::peek(cx.unit, key)?.filter(|stream| stream.group(group).is_some())
        else {
            return Ok(None);
        };
        let now_ms = cx.unit.now_ms() as i64;
        let last_id = stream.group(group).map_or(Id::MIN, |group| group.last_id);
        let (found, delivered) = match start {
            Start::New => {
                let ranks = self.after(stream, last_id);
                let mut ids = Vec::new();
                if let Some(ranks) = &ranks {
                    stream.each(ranks.clone(), false, |entry| ids.push(entry.id));
                }
                (ranks.map(Found::Ranks), ids)
            }
            Start::After(id) => {
                let of_consumer = stream
                    .group(group)
                    .and_then(|group| group.consumer(consumer));
                let ids = of_consumer.zip(id.next()).map(|(consumer, from)| {
                    let most = usize::try_from(self.most).unwrap_or(usize::MAX);
                    consumer.pending_ids(from).take(most).collect::<Vec<_>>()
                });
                (Some(Found::Ids(ids.unwrap_or_default())), Vec::new())
            }
        };
        let again: Vec<Id> = match &found {
            // What was removed meanwhile is not delivered again.
            Some(Found::Ids(ids)) => {
                let ids = ids.iter().copied();
                ids.filter(|id| stream.rank_of(*id).is_some()).collect()
            }
            _ => Vec::new(),
        };
        let no_ack = self.no_ack;
        let (is_new, deliveries) = edit(cx.unit, key, |stream| {
            if !delivered.is_empty() {
                stream.advance_group(group, &delivered);
            }
            let changed = stream.edit_group(group, |group| {
                let is_new = group.add_consumer(consumer, now_ms);
                group.note_consumer(consumer, now_ms, !no_ack && !delivered.is_empty());
                if !no_ack {
                    group.deliver(consumer, &delivered, now_ms);
                }
                let mut deliveries = Vec::with_capacity(again.len());
                for id in &again {
                    let count = group.pending(*id).map_or(0, |pending| pending.deliveries);
                    let count = count.wrapping_add(1);
                    group.assign(*id, consumer, now_ms, count);
                    deliveries.push(count);
                }
                (is_new, deliveries)
            });
            changed.unwrap_or_default()
        })?;
        if is_new {
            touched(cx.unit, key, "xgroup-createconsumer", 1);
            let words: [&[u8]; 5] = [b"XGROUP", b"CREATECONSUMER", key.name, group, consumer];
            cx.unit.effect(&words);
        }
        if !delivered.is_empty() {
            touched_silently(cx.unit, key, 1);
        } else if !again.is_empty() {
            touched_silently(cx.unit, key, 0);
        }
        if cx.unit.is_recorded() {
            let claim = Claim {
                key,
                group,
                consumer,
                now_ms,
            };
            if !no_ack {
                for ids in delivered.chunks(IDS_PER_EFFECT) {
                    claim.record(cx, ids, 1);
                }
            }
            for (id, deliveries) in again.iter().zip(deliveries) {
                claim.record(cx, &[*id], deliveries);
            }
            if !delivered.is_empty() {
                record_position(cx, key, group);
            }
        }
        Ok(found)
    }
}

/// That a stream has something for one who waits.
struct HasMore {
    /// Names, and the entries behind which something has to be; none: behind what the group was given.
    awaited: Vec<(Box<[u8]>, Option<Id>)>,
    /// Without it there is nothing to wait for.
    group: Option<Box<[u8]>>,
}

impl Condition for HasMore {
    fn is_met(&self, key: &[u8], entry: Option<Entry<'_>>) -> bool {
        let collection = entry.and_then(|entry| entry.collection());
        let stream = collection
            .filter(|collection| collection.kind() == Kind::Stream)
            .map(StreamRef::from);
        let Some(stream) = stream else {
            return self.heeds_absence();
        };
        let group = self.group.as_ref().map(|name| stream.group(name));
        if matches!(group, Some(None)) {
            return true;
        }
        let has_after = |id: Id| {
            let from = id.next();
            from.is_some_and(|from| !stream.ranks(from, Id::MAX).is_empty())
        };
        let mut named = self.awaited.iter().filter(|(name, _)| **name == *key);
        named.any(|(_, after)| match (after, &group) {
            (Some(id), _) => has_after(*id),
            (None, Some(Some(group))) => has_after(group.last_id),
            (None, _) => false,
        })
    }

    fn heeds_absence(&self) -> bool {
        self.group.is_some()
    }
}

/// What a consumer was given, for the journal.
struct Claim<'a> {
    key: Key<'a>,
    group: &'a [u8],
    consumer: &'a [u8],
    now_ms: i64,
}

impl Claim<'_> {
    fn record(&self, cx: &mut Context<'_, '_>, ids: &[Id], deliveries: u64) {
        record_claim(
            cx,
            self.key,
            self.group,
            self.consumer,
            ids,
            self.now_ms,
            deliveries,
        );
    }
}

/// Records that entries are pending with a consumer since some time, and how often they were delivered.
pub(super) fn record_claim(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    group: &[u8],
    consumer: &[u8],
    ids: &[Id],
    delivered_ms: i64,
    deliveries: u64,
) {
    cx.unit.effect_with(|| {
        let word = |word: &[u8]| EffectArgument::from(word);
        let mut arguments = vec![word(b"XCLAIM"), key.name.into(), group.into()];
        arguments.extend([consumer.into(), word(b"0")]);
        arguments.extend(ids.iter().map(|id| id_argument(*id)));
        let time = weft_data::number::format_i64(delivered_ms);
        arguments.extend([word(b"TIME"), time.as_bytes().into()]);
        arguments.extend([word(b"RETRYCOUNT"), number_argument(deliveries)]);
        arguments.extend([word(b"FORCE"), word(b"JUSTID")]);
        arguments.extend([word(b"LASTID"), word(b"0-0")]);
        arguments
    });
}

/// Records how far a group has read.
fn record_position(cx: &mut Context<'_, '_>, key: Key<'_>, group: &[u8]) {
    let entry = cx.unit.look(key).and_then(|entry| entry.collection());
    let Some(found) = entry.and_then(|found| StreamRef::from(found).group(group)) else {
        return;
    };
    let (last_id, read) = (found.last_id, found.entries_read);
    cx.unit.effect_with(|| {
        let word = |word: &[u8]| EffectArgument::from(word);
        let mut arguments = vec![
            word(b"XGROUP"),
            word(b"SETID"),
            key.name.into(),
            group.into(),
        ];
        arguments.push(id_argument(last_id));
        if let Some(read) = read {
            arguments.extend([word(b"ENTRIESREAD"), number_argument(read)]);
        }
        arguments
    });
}
