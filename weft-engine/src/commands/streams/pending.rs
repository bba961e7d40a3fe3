//! XPENDING: what was delivered and not acknowledged.

use weft_data::number::format_u64;
use weft_data::stream::{Group, Id, Pending};

use super::super::options::{integer, is};
use super::{READ, end_id, no_group, reply_id, start_id};
use crate::command::{Argument, CommandRow};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "xpending",
    arity: -3,
    tips: &["nondeterministic_output"],
    complexity: "O(N) in the number of entries or consumers listed; with IDLE, in the number of entries looked at",
    summary: "Tells which entries a group was given and has not acknowledged.",
    history: &[(
        "6.2.0",
        "Option `IDLE`, and ends that are left out of the range.",
    )],
    arguments: &[
        Argument::key("key", 0),
        Argument::string("group"),
        Argument::block(
            "filters",
            &[
                Argument::integer("min-idle-time")
                    .token("IDLE")
                    .optional()
                    .since("6.2.0"),
                Argument::string("start"),
                Argument::string("end"),
                Argument::integer("count"),
                Argument::string("consumer").optional(),
            ],
        )
        .optional(),
    ],
    handler: xpending,
    ..READ
}];

/// Which pending entries are listed.
struct Filter<'a> {
    min_idle_ms: i64,
    start: Id,
    end: Id,
    most: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    /// None for the summary.
    fn parse(cx: &Context<'a, '_>) -> Result<Option<Self>, CommandError> {
        let args = cx.args;
        if args.len() == 3 {
            return Ok(None);
        }
        let has_idle = args.get(3).is_some_and(|word| is(word, "IDLE"));
        let (first, longest) = if has_idle { (5, 9) } else { (3, usize::MAX) };
        if args.len() < 6 || args.len() > 9.min(longest) {
            return Err(CommandError::Syntax);
        }
        let min_idle_ms = if has_idle { integer(&args[4])? } else { 0 };
        if args.len() < first + 3 {
            return Err(CommandError::Syntax);
        }
        let most = integer(&args[first + 2])?;
        let (start, end) = (start_id(&args[first])?, end_id(&args[first + 1])?);
        Ok(Some(Self {
            min_idle_ms,
            start,
            end,
            most: usize::try_from(most).unwrap_or(0),
            consumer: args.get(first + 3),
        }))
    }
}

fn xpending(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let filter = Filter::parse(cx)?;
    let (key, name) = (cx.keys[0], &cx.args[2]);
    let stream = super::stream(cx.unit, key)?;
    let group = stream.and_then(|stream| stream.group(name));
    let group = group.ok_or_else(|| no_group(key.name, name))?;
    let now_ms = cx.unit.now_ms() as i64;
    let reply = &mut cx.reply;
    match filter {
        None => reply_summary(reply, group),
        Some(filter) => reply_list(reply, group, &filter, now_ms),
    }
    Ok(())
}

fn reply_summary(reply: &mut weft_resp::Writer<'_>, group: &Group) {
    reply.array(4);
    reply.integer(group.pending_len() as i64);
    let first = group.pending_from(Id::MIN).next();
    let (Some(first), Some(last)) = (first, group.last_pending()) else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply_id(reply, first.id);
    reply_id(reply, last.id);
    let busy = || {
        let consumers = group.consumers();
        consumers.filter(|consumer| consumer.pending_len() > 0)
    };
    reply.array(busy().count());
    for consumer in busy() {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk(format_u64(consumer.pending_len()).as_bytes());
    }
}

fn reply_list(reply: &mut weft_resp::Writer<'_>, group: &Group, filter: &Filter<'_>, now_ms: i64) {
    let idle_ms = |pending: &Pending| now_ms.wrapping_sub(pending.delivered_ms);
    let wanted =
        |pending: &&Pending| filter.min_idle_ms <= 0 || idle_ms(pending) >= filter.min_idle_ms;
    let header = reply.deferred_array();
    let mut count = 0;
    let mut list = |pending: &Pending| {
        count += 1;
        reply.array(4);
        reply_id(reply, pending.id);
        reply.bulk(&pending.consumer);
        reply.integer(idle_ms(pending).max(0));
        reply.integer(pending.deliveries as i64);
    };
    match filter.consumer {
        None => group
            .pending_from(filter.start)
            .take_while(|pending| pending.id <= filter.end)
            .filter(wanted)
            .take(filter.most)
            .for_each(&mut list),
        Some(name) => group
            .consumer(name)
            .into_iter()
            .flat_map(|consumer| consumer.pending_ids(filter.start))
            .take_while(|id| *id <= filter.end)
            .filter_map(|id| group.pending(id))
            .filter(wanted)
            .take(filter.most)
            .for_each(&mut list),
    }
    reply.finish(header, count);
}
