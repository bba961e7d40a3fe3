//! The ends of lists: pushing, popping, moving from one end to another.

use weft_data::list::{Element, End, ListMut};
use weft_data::number::format_i64;
use weft_resp::Args;

use super::super::options::{integer, is};
use super::super::values::{Captured, effect_arguments};
use super::{
    AT_ONCE_MAX, LEFT_OR_RIGHT, LIST, Listing, captured, changed, edit, element, end, peek,
    reply_element, snapshot,
};
use crate::command::{Argument, Begin, CommandRow, Deprecation, Find, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, Key};
use crate::error::CommandError;
use crate::journal::EffectArgument;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "lpush",
        summary: "Puts elements before the first one of a list, which is made if there is none.",
        handler: lpush,
        ..PUSH
    },
    CommandRow {
        name: "rpush",
        summary: "Puts elements behind the last one of a list, which is made if there is none.",
        handler: rpush,
        ..PUSH
    },
    CommandRow {
        name: "lpushx",
        since: "2.2.0",
        summary: "Puts elements before the first one of a list, if there is a list.",
        history: &[("4.0.0", "Takes several elements.")],
        handler: lpushx,
        ..PUSH
    },
    CommandRow {
        name: "rpushx",
        since: "2.2.0",
        summary: "Puts elements behind the last one of a list, if there is a list.",
        history: &[("4.0.0", "Takes several elements.")],
        handler: rpushx,
        ..PUSH
    },
    CommandRow {
        name: "lpop",
        summary: "Takes the first elements out of a list, and the key with the last one.",
        handler: lpop,
        ..POP
    },
    CommandRow {
        name: "rpop",
        summary: "Takes the last elements out of a list, and the key with the last one.",
        handler: rpop,
        ..POP
    },
    CommandRow {
        name: "lmove",
        arity: 5,
        since: "6.2.0",
        summary: "Takes an element from an end of a list to an end of the same or another one.",
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            Argument::one_of("wherefrom", LEFT_OR_RIGHT),
            Argument::one_of("whereto", LEFT_OR_RIGHT),
        ],
        handler: lmove,
        ..MOVE
    },
    CommandRow {
        name: "rpoplpush",
        arity: 3,
        since: "1.2.0",
        summary: "Takes the last element of a list to the beginning of the same or another one.",
        deprecated: Some(Deprecation {
            since: "6.2.0",
            replaced_by: "`LMOVE` with the `RIGHT` and `LEFT` arguments",
        }),
        arguments: &[Argument::key("source", 0), Argument::key("destination", 1)],
        handler: rpoplpush,
        ..MOVE
    },
    CommandRow {
        name: "lmpop",
        arity: -4,
        flags: Flags::WRITE.with(Flags::MOVABLE_KEYS),
        keys: &[KeySpec {
            begin: Begin::Index(1),
            find: Find::KeyNumber {
                number: 0,
                first: 1,
                step: 1,
            },
            flags: POPPED,
            notes: "",
        }],
        since: "7.0.0",
        complexity: "O(N+M) in the number of keys and of elements taken",
        summary: "Takes elements out of the first of several lists that is there.",
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key", 0).multiple(),
            Argument::one_of("where", LEFT_OR_RIGHT),
            Argument::integer("count").token("COUNT").optional(),
        ],
        handler: lmpop,
        ..LIST
    },
];

const PUSH: CommandRow = CommandRow {
    arity: -3,
    flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::INSERT))],
    complexity: "O(1) for each element given",
    history: &[("2.4.0", "Takes several elements.")],
    arguments: &[
        Argument::key("key", 0),
        Argument::string("element").multiple(),
    ],
    ..LIST
};

/// What is done with a key that elements are taken from.
pub(super) const POPPED: KeyFlags = KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::DELETE);

const POP: CommandRow = CommandRow {
    arity: -2,
    flags: Flags::WRITE.with(Flags::FAST),
    keys: &[KeySpec::one(1, POPPED)],
    complexity: "O(N) in the number of elements taken",
    history: &[("6.2.0", "Takes a number of elements.")],
    arguments: &[
        Argument::key("key", 0),
        Argument::integer("count").since("6.2.0").optional(),
    ],
    ..LIST
};

pub(super) const MOVE: CommandRow = CommandRow {
    flags: Flags::WRITE.with(Flags::DENY_OOM),
    keys: &[
        KeySpec::one(1, POPPED),
        KeySpec::one(2, KeyFlags::RW.with(KeyFlags::INSERT)),
    ],
    complexity: "O(1)",
    ..LIST
};

const fn push_event(end: End) -> &'static str {
    match end {
        End::Left => "lpush",
        End::Right => "rpush",
    }
}

pub(super) const fn pop_event(end: End) -> &'static str {
    match end {
        End::Left => "lpop",
        End::Right => "rpop",
    }
}

fn lpush(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    push(cx, End::Left)
}

fn rpush(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    push(cx, End::Right)
}

fn lpushx(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    push_if_there(cx, End::Left)
}

fn rpushx(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    push_if_there(cx, End::Right)
}

fn push_if_there(cx: &mut Context<'_, '_>, end: End) -> Result<(), CommandError> {
    if peek(cx, cx.keys[0])?.is_none() {
        cx.reply.integer(0);
        return Ok(());
    }
    push(cx, end)
}

fn push(cx: &mut Context<'_, '_>, end: End) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let elements = (2..args.len()).map(|index| element(args, index));
    let len = edit(cx, key, |list, _| list.push(end, elements))?.result;
    changed(cx, key, push_event(end), args.len() - 2, false);
    cx.unit.effect_with(|| effect_arguments(args));
    cx.reply.integer(len as i64);
    Ok(())
}

fn lpop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pop(cx, End::Left)
}

fn rpop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    pop(cx, End::Right)
}

fn pop(cx: &mut Context<'_, '_>, end: End) -> Result<(), CommandError> {
    const NOT_POSITIVE: CommandError =
        CommandError::Text("ERR value is out of range, must be positive");
    let (key, args) = (cx.keys[0], cx.args);
    match args.len() {
        2 => {
            let edited = edit(cx, key, |list, reply| {
                let there = !list.as_ref().is_empty();
                list.pop(end, 1, |element| reply_element(reply, element));
                there
            })?;
            if !edited.result {
                cx.reply.null();
                return Ok(());
            }
            changed(cx, key, pop_event(end), 1, edited.emptied);
        }
        3 => {
            let count = integer(&args[2]).map_err(|_| NOT_POSITIVE)?;
            let count = usize::try_from(count).map_err(|_| NOT_POSITIVE)?;
            let Some(list) = peek(cx, key)? else {
                cx.reply.null_array();
                return Ok(());
            };
            let count = count.min(list.len());
            pop_many(cx, key, end, count)?;
            if count == 0 {
                return Ok(());
            }
        }
        _ => return Err(CommandError::WrongArity(cx.row.name.into())),
    }
    cx.unit.effect_with(|| effect_arguments(args));
    Ok(())
}

/// Takes so many elements, no more than there are, from an end of the key's list and replies with them.
fn pop_many(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    end: End,
    count: usize,
) -> Result<(), CommandError> {
    cx.reply.array(count);
    if count == 0 {
        return Ok(());
    }
    let list = peek(cx, key)?.filter(|_| count > AT_ONCE_MAX);
    let snapshot = list.and_then(snapshot);
    let take = |list: &mut ListMut<'_, '_>| match end {
        End::Left => list.keep(count..list.as_ref().len()),
        End::Right => list.keep(0..list.as_ref().len() - count),
    };
    let emptied = match snapshot {
        Some(list) => {
            let emptied = edit(cx, key, |list, _| take(list))?.emptied;
            cx.continue_with(Listing {
                list,
                from: end,
                next: 0,
                left: count,
            });
            emptied
        }
        None => {
            let pop = edit(cx, key, |list, reply| {
                list.pop(end, count, |element| reply_element(reply, element));
            });
            pop?.emptied
        }
    };
    changed(cx, key, pop_event(end), count, emptied);
    Ok(())
}

fn lmove(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let args = cx.args;
    let (from, to) = (end(&args[3])?, end(&args[4])?);
    if !move_element(cx, from, to, b"LMOVE", &[&args[3], &args[4]])? {
        cx.reply.null();
    }
    Ok(())
}

fn rpoplpush(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if !move_element(cx, End::Right, End::Left, b"RPOPLPUSH", &[])? {
        cx.reply.null();
    }
    Ok(())
}

/// Moves an element from the first key to the second and replies with it; false if there is none. As an effect it is this command
/// on both keys, with these words behind them.
pub(super) fn move_element(
    cx: &mut Context<'_, '_>,
    from: End,
    to: End,
    command: &[u8],
    words: &[&[u8]],
) -> Result<bool, CommandError> {
    let [source, destination] = [cx.keys[0], cx.keys[1]];
    let list = peek(cx, source)?;
    let Some(moved) = list.and_then(|list| list.end(from)).map(captured) else {
        return Ok(false);
    };
    let moved_element = || [moved.as_element()].into_iter();
    let mut emptied = false;
    if source.name == destination.name {
        edit(cx, source, |list, _| {
            list.pop(from, 1, |_| ());
            list.push(to, moved_element());
        })?;
    } else {
        edit(cx, destination, |list, _| list.push(to, moved_element()))?;
        emptied = edit(cx, source, |list, _| list.pop(from, 1, |_| ()))?.emptied;
    }
    changed(cx, destination, push_event(to), 1, false);
    changed(cx, source, pop_event(from), 0, emptied);
    cx.unit.effect_with(|| {
        let keys = [command, source.name, destination.name];
        let arguments = keys.iter().chain(words);
        arguments.map(|argument| (*argument).into()).collect()
    });
    reply_element(&mut cx.reply, moved.as_element());
    Ok(true)
}

fn lmpop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if !MultiplePop::parse(cx.args)?.pop(cx)? {
        cx.reply.null_array();
    }
    Ok(())
}

/// What LMPOP and BLMPOP take out of the first list that is there.
pub(super) struct MultiplePop {
    from: End,
    count: usize,
}

impl MultiplePop {
    /// From the arguments, of which the second is the number of keys.
    pub(super) fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        const NO_KEYS: CommandError = CommandError::Text("ERR numkeys should be greater than 0");
        const NO_COUNT: CommandError = CommandError::Text("ERR count should be greater than 0");
        let positive = |text: &[u8], error| match integer(text) {
            Ok(number) if number > 0 => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
            _ => Err(error),
        };
        let at = positive(&args[1], NO_KEYS)?.saturating_add(2);
        let from = end(args.get(at).ok_or(CommandError::Syntax)?)?;
        let mut count = None;
        let mut at = at + 1;
        while let Some(word) = args.get(at) {
            match args.get(at + 1) {
                Some(number) if is(word, "COUNT") && count.is_none() => {
                    count = Some(positive(number, NO_COUNT)?);
                }
                _ => return Err(CommandError::Syntax),
            }
            at += 2;
        }
        Ok(Self {
            from,
            count: count.unwrap_or(1),
        })
    }

    /// Replies with the key and its elements; false if there are none.
    pub(super) fn pop(&self, cx: &mut Context<'_, '_>) -> Result<bool, CommandError> {
        let from = self.from;
        for key in cx.keys.iter().filter(|key| key.is_at_hand()) {
            let Some(list) = peek(cx, *key)? else {
                continue;
            };
            let count = self.count.min(list.len());
            cx.reply.array(2);
            cx.reply.bulk(key.name);
            pop_many(cx, *key, from, count)?;
            cx.unit.effect_with(|| {
                let command: &[u8] = match from {
                    End::Left => b"LPOP",
                    End::Right => b"RPOP",
                };
                let count = format_i64(count as i64);
                let count: &[u8] = count.as_bytes();
                [command, key.name, count].map(EffectArgument::from).into()
            });
            return Ok(true);
        }
        Ok(false)
    }
}

impl Captured {
    /// As an element of a list.
    fn as_element(&self) -> Element<'_> {
        match self {
            Self::Bytes(bytes) => Element::Bytes(bytes),
            Self::Rope(rope) => Element::Rope(rope),
        }
    }
}
