//! Giving pending entries to another consumer: XCLAIM and XAUTOCLAIM.

use weft_data::number::parse_i64;
use weft_data::stream::{Id, Stream, StreamRef};
use weft_resp::Args;

use super::super::options::{integer, is};
use super::reading::record_claim;
use super::{
    Before, Listing, Part, Snapshot, WRITE, edit, is_brief, no_group, peek, reply_entry, reply_id,
    start_id, strict_id, touched, touched_silently,
};
use crate::command::{Argument, CommandRow, KeyFlags, KeySpec};
use crate::dispatch::{Context, Key};
use crate::error::CommandError;
use crate::journal::EffectArgument;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "xclaim",
        arity: -6,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::UPDATE))],
        tips: &["nondeterministic_output"],
        complexity: "O(log N) for each entry, of N pending ones",
        summary: "Gives pending entries to another consumer.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("group"),
            Argument::string("consumer"),
            Argument::string("min-idle-time"),
            Argument::string("id").multiple(),
            Argument::integer("ms").token("IDLE").optional(),
            Argument::unix_time("unix-time-milliseconds")
                .token("TIME")
                .optional(),
            Argument::integer("count").token("RETRYCOUNT").optional(),
            Argument::word("force", "FORCE").optional(),
            Argument::word("justid", "JUSTID").optional(),
            Argument::string("lastid").token("LASTID").optional(),
        ],
        handler: xclaim,
        ..WRITE
    },
    CommandRow {
        name: "xautoclaim",
        arity: -6,
        tips: &["nondeterministic_output"],
        since: "6.2.0",
        complexity: "O(1) for each entry looked at, ten times COUNT at most",
        summary: "Gives entries that have been pending for some time to another consumer.",
        history: &[(
            "7.0.0",
            "The reply tells which entries were dropped because they do not exist any more.",
        )],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("group"),
            Argument::string("consumer"),
            Argument::string("min-idle-time"),
            Argument::string("start"),
            Argument::integer("count").token("COUNT").optional(),
            Argument::word("justid", "JUSTID").optional(),
        ],
        handler: xautoclaim,
        ..WRITE
    },
];

/// How entries are claimed.
#[derive(Clone, Copy)]
struct Manner {
    min_idle_ms: i64,
    now_ms: i64,
    /// When they count as delivered.
    delivered_ms: i64,
    /// How often they count as delivered, if not once more.
    deliveries: Option<u64>,
    /// Entries that are not pending are claimed too.
    force: bool,
    /// They are not delivered again.
    just_id: bool,
    /// The group has read up to there, at least.
    last_id: Id,
}

/// What came of claiming.
#[derive(Default)]
struct Claimed {
    /// Entries with how often they were delivered.
    entries: Vec<(Id, u64)>,
    /// Those that do not exist any more and are pending no more.
    gone: Vec<Id>,
    is_new_consumer: bool,
    last_id_moved: bool,
}

/// Claims one entry.
fn claim_one(
    stream: &mut Stream,
    group: &[u8],
    consumer: &[u8],
    id: Id,
    manner: Manner,
    claimed: &mut Claimed,
) {
    let view = stream.as_ref();
    let pending = view.group(group).and_then(|group| group.pending(id));
    let pending = pending.map(|pending| (pending.delivered_ms, pending.deliveries));
    if view.rank_of(id).is_none() {
        if pending.is_some() {
            stream.edit_group(group, |group| group.acknowledge(id));
            claimed.gone.push(id);
        }
        return;
    }
    let before = match pending {
        Some((delivered_ms, deliveries)) => {
            let idle_ms = manner.now_ms.wrapping_sub(delivered_ms);
            if manner.min_idle_ms > 0 && idle_ms < manner.min_idle_ms {
                return;
            }
            deliveries
        }
        None if manner.force => 1,
        None => return,
    };
    let once_more = before.wrapping_add(u64::from(!manner.just_id));
    let deliveries = manner.deliveries.unwrap_or(once_more);
    stream.edit_group(group, |group| {
        group.assign(id, consumer, manner.delivered_ms, deliveries);
    });
    claimed.entries.push((id, deliveries));
}

/// Begins to claim: the consumer is made if there is none.
fn begin(stream: &mut Stream, group: &[u8], consumer: &[u8], manner: Manner) -> Claimed {
    let begun = stream.edit_group(group, |group| {
        let last_id_moved = manner.last_id > group.last_id;
        group.last_id = group.last_id.max(manner.last_id);
        let is_new_consumer = group.add_consumer(consumer, manner.now_ms);
        group.note_consumer(consumer, manner.now_ms, false);
        Claimed {
            is_new_consumer,
            last_id_moved,
            ..Claimed::default()
        }
    });
    begun.unwrap_or_default()
}

fn end(stream: &mut Stream, group: &[u8], consumer: &[u8], manner: Manner, claimed: &Claimed) {
    if !claimed.entries.is_empty() {
        stream.edit_group(group, |group| {
            group.note_consumer(consumer, manner.now_ms, true);
        });
    }
}

/// Tells of what was claimed, and records it.
fn tell(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    group: &[u8],
    consumer: &[u8],
    manner: Manner,
    claimed: &Claimed,
) {
    if claimed.is_new_consumer {
        touched(cx.unit, key, "xgroup-createconsumer", 1);
        let words: [&[u8]; 5] = [b"XGROUP", b"CREATECONSUMER", key.name, group, consumer];
        cx.unit.effect(&words);
    }
    let changes = claimed.entries.len() + claimed.gone.len();
    if changes > 0 || claimed.last_id_moved {
        touched_silently(cx.unit, key, changes);
    }
    if !cx.unit.is_recorded() {
        return;
    }
    for (id, deliveries) in &claimed.entries {
        record_claim(
            cx,
            key,
            group,
            consumer,
            &[*id],
            manner.delivered_ms,
            *deliveries,
        );
    }
    if !claimed.gone.is_empty() {
        let gone = claimed.gone.iter().map(|id| super::id_argument(*id));
        cx.unit.effect_with(|| {
            let head = [
                EffectArgument::from(&b"XACK"[..]),
                key.name.into(),
                group.into(),
            ];
            head.into_iter().chain(gone).collect()
        });
    }
    if claimed.last_id_moved {
        // Nothing is claimed: only the position is said.
        cx.unit.effect_with(|| {
            let word = |word: &[u8]| EffectArgument::from(word);
            let mut arguments = vec![word(b"XCLAIM"), key.name.into(), group.into()];
            arguments.extend([consumer.into(), word(b"0"), word(b"0-0")]);
            arguments.extend([word(b"LASTID"), super::id_argument(manner.last_id)]);
            arguments
        });
    }
}

fn min_idle(text: &[u8], refused: &'static str) -> Result<i64, CommandError> {
    let number = parse_i64(text).ok_or(CommandError::Text(refused))?;
    Ok(number.max(0))
}

/// Reads the options of XCLAIM from an argument on.
fn options(
    args: Args<'_>,
    mut at: usize,
    min_idle_ms: i64,
    now_ms: i64,
) -> Result<Manner, CommandError> {
    let mut delivered_ms = None;
    let mut has_last_id = false;
    let mut manner = Manner {
        min_idle_ms,
        now_ms,
        delivered_ms: now_ms,
        deliveries: None,
        force: false,
        just_id: false,
        last_id: Id::MIN,
    };
    while let Some(word) = args.get(at) {
        let next = args.get(at + 1);
        let number = |text: &[u8], refused| parse_i64(text).ok_or(CommandError::Text(refused));
        at += 2;
        match next {
            _ if is(word, "FORCE") => {
                manner.force = true;
                at -= 1;
            }
            _ if is(word, "JUSTID") => {
                manner.just_id = true;
                at -= 1;
            }
            Some(text) if is(word, "IDLE") => {
                let idle = number(text, "ERR Invalid IDLE option argument for XCLAIM")?;
                delivered_ms = Some(now_ms.wrapping_sub(idle));
            }
            Some(text) if is(word, "TIME") => {
                delivered_ms = Some(number(text, "ERR Invalid TIME option argument for XCLAIM")?);
            }
            Some(text) if is(word, "RETRYCOUNT") => {
                let count = number(text, "ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
                manner.deliveries = u64::try_from(count).ok();
            }
            Some(text) if is(word, "LASTID") => {
                manner.last_id = strict_id(text, 0)?;
                has_last_id = true;
            }
            _ => {
                return Err(CommandError::quoting(
                    "ERR Unrecognized XCLAIM option '",
                    word,
                    "'",
                ));
            }
        }
    }
    // What was recorded elsewhere, which these three tell, may be of a clock that is ahead of this one.
    let recorded = manner.force && manner.just_id && has_last_id;
    if let Some(ms) = delivered_ms.filter(|ms| *ms >= 0 && (recorded || *ms <= now_ms)) {
        manner.delivered_ms = ms;
    }
    Ok(manner)
}

fn xclaim(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (args, key) = (cx.args, cx.keys[0]);
    let (group, consumer) = (&args[2], &args[3]);
    let stream = peek(cx.unit, key)?;
    if stream.and_then(|stream| stream.group(group)).is_none() {
        return Err(no_group(key.name, group));
    }
    let min_idle_ms = min_idle(&args[4], "ERR Invalid min-idle-time argument for XCLAIM")?;
    let texts = args.skip(5);
    let ids: Vec<Id> = texts.iter().map_while(|text| Id::parse(text, 0)).collect();
    let manner = options(args, 5 + ids.len(), min_idle_ms, cx.unit.now_ms() as i64)?;
    let claimed = edit(cx.unit, key, |stream| {
        let mut claimed = begin(stream, group, consumer, manner);
        for id in &ids {
            claim_one(stream, group, consumer, *id, manner, &mut claimed);
        }
        end(stream, group, consumer, manner, &claimed);
        claimed
    })?;
    tell(cx, key, group, consumer, manner, &claimed);
    let ids: Vec<Id> = claimed.entries.iter().map(|(id, _)| *id).collect();
    let count = ids.len() as u64;
    let entry = cx.unit.look(key);
    let found = entry.and_then(|entry| entry.collection());
    match found {
        Some(found) if !manner.just_id && !is_brief(found, count) => {
            let part = Part {
                snapshot: Snapshot::of(found),
                ranks: 0..count,
                ids,
                backwards: false,
                before: Before::Header,
            };
            cx.continue_with(Listing::of(vec![part]));
        }
        found => {
            let reply = &mut cx.reply;
            reply_claimed(reply, found.map(StreamRef::from), &ids, manner.just_id);
        }
    }
    Ok(())
}

fn reply_claimed(
    reply: &mut weft_resp::Writer<'_>,
    stream: Option<StreamRef<'_>>,
    ids: &[Id],
    just_id: bool,
) {
    reply.array(ids.len());
    for id in ids {
        let entry = stream.and_then(|stream| stream.get(*id));
        match entry.filter(|_| !just_id) {
            Some(entry) => reply_entry(reply, &entry),
            None => reply_id(reply, *id),
        }
    }
}

fn xautoclaim(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    /// So many entries are looked at for each that may be claimed.
    const ATTEMPTS: usize = 10;
    const DEFAULT_COUNT: usize = 100;
    /// More would not fit into an address space of the reference's.
    const COUNT_MAX: i64 = i64::MAX / 16;
    const COUNT_REFUSED: CommandError = CommandError::Text("ERR COUNT must be > 0");
    let (args, key) = (cx.args, cx.keys[0]);
    let (group, consumer) = (&args[2], &args[3]);
    let min_idle_ms = min_idle(
        &args[4],
        "ERR Invalid min-idle-time argument for XAUTOCLAIM",
    )?;
    let start = start_id(&args[5])?;
    let (mut most, mut just_id) = (DEFAULT_COUNT, false);
    let mut at = 6;
    while let Some(word) = args.get(at) {
        match args.get(at + 1) {
            Some(text) if is(word, "COUNT") => {
                let count = integer(text).map_err(|_| COUNT_REFUSED)?;
                let count = Some(count).filter(|count| (1..=COUNT_MAX).contains(count));
                most = count.ok_or(COUNT_REFUSED)? as usize;
                at += 2;
            }
            _ if is(word, "JUSTID") => {
                just_id = true;
                at += 1;
            }
            _ => return Err(CommandError::Syntax),
        }
    }
    let stream = peek(cx.unit, key)?;
    if stream.and_then(|stream| stream.group(group)).is_none() {
        return Err(no_group(key.name, group));
    }
    let now_ms = cx.unit.now_ms() as i64;
    let manner = Manner {
        min_idle_ms,
        now_ms,
        delivered_ms: now_ms,
        deliveries: None,
        force: false,
        just_id,
        last_id: Id::MIN,
    };
    let mut next = Some(start);
    let claimed = edit(cx.unit, key, |stream| {
        let mut claimed = begin(stream, group, consumer, manner);
        let mut attempts = most.saturating_mul(ATTEMPTS);
        while let Some(from) = next
            && attempts > 0
            && claimed.entries.len() + claimed.gone.len() < most
        {
            attempts -= 1;
            let view = stream.as_ref();
            let mut pending = view
                .group(group)
                .into_iter()
                .flat_map(|group| group.pending_from(from));
            let found = pending.next().map(|pending| pending.id);
            next = pending.next().map(|pending| pending.id);
            drop(pending);
            if let Some(id) = found {
                claim_one(stream, group, consumer, id, manner, &mut claimed);
            }
        }
        end(stream, group, consumer, manner, &claimed);
        claimed
    })?;
    let next = next.unwrap_or(Id::MIN);
    tell(cx, key, group, consumer, manner, &claimed);
    let ids: Vec<Id> = claimed.entries.iter().map(|(id, _)| *id).collect();
    let entry = cx.unit.look(key);
    let found = entry.and_then(|entry| entry.collection());
    let reply = &mut cx.reply;
    reply.array(3);
    reply_id(reply, next);
    reply_claimed(reply, found.map(StreamRef::from), &ids, just_id);
    reply.array(claimed.gone.len());
    for id in claimed.gone {
        reply_id(reply, id);
    }
    Ok(())
}
