//! BITFIELD: a string as an array of integers of any width.

use std::ops::ControlFlow;

use smallvec::SmallVec;
use weft_data::bitmap::field::{FieldType, Overflow, WINDOW_BYTES, Window};
use weft_keyspace::StringRef;
use weft_resp::Args;

use super::bitmaps::{OFFSET_OUT_OF_RANGE, checked_offset};
use super::options::{integer, is};
use super::ranges::overwrite;
use super::values::{effect_arguments, keep_raw, short_text, value_len};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, EventClass, Key, Unit};
use crate::error::CommandError;

const ENCODING: Argument = Argument::string("encoding");
const OFFSET: Argument = Argument::integer("offset");

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "bitfield",
        arity: -2,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        categories: Categories::BITMAP,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW
                .with(KeyFlags::ACCESS)
                .with(KeyFlags::UPDATE)
                .with(KeyFlags::VARIABLE),
        )
        .notes("This command allows both access and modification of the key")],
        key_flags: Some(key_flags),
        group: "bitmap",
        since: "3.2.0",
        complexity: "O(1) for each operation",
        summary: "Reads and changes integers of any width at any place in a string.",
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "operation",
                &[
                    Argument::block("get-block", &[ENCODING, OFFSET]).token("GET"),
                    Argument::block(
                        "write",
                        &[
                            Argument::one_of(
                                "overflow-block",
                                &[
                                    Argument::word("wrap", "WRAP"),
                                    Argument::word("sat", "SAT"),
                                    Argument::word("fail", "FAIL"),
                                ],
                            )
                            .token("OVERFLOW")
                            .optional(),
                            Argument::one_of(
                                "write-operation",
                                &[
                                    Argument::block(
                                        "set-block",
                                        &[ENCODING, OFFSET, Argument::integer("value")],
                                    )
                                    .token("SET"),
                                    Argument::block(
                                        "incrby-block",
                                        &[ENCODING, OFFSET, Argument::integer("increment")],
                                    )
                                    .token("INCRBY"),
                                ],
                            ),
                        ],
                    ),
                ],
            )
            .optional()
            .multiple(),
        ],
        handler: bitfield,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "bitfield_ro",
        arity: -2,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::BITMAP,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        group: "bitmap",
        since: "6.0.0",
        complexity: "O(1) for each operation",
        summary: "Reads integers of any width at any place in a string.",
        arguments: &[
            Argument::key("key", 0),
            Argument::block("get-block", &[ENCODING, OFFSET])
                .token("GET")
                .optional()
                .multiple_token(),
        ],
        handler: bitfield_ro,
        ..CommandRow::DEFAULT
    },
];

/// What is done to one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

/// One operation: on which field, and what.
#[derive(Clone, Copy, Debug)]
struct Operation {
    action: Action,
    kind: FieldType,
    /// The number of its first bit.
    bit: usize,
}

impl Operation {
    /// The byte that it begins in, and the bit there.
    const fn place(self) -> (usize, u32) {
        (self.bit / 8, (self.bit % 8) as u32)
    }

    /// The length that a string must have for it.
    const fn end(self) -> usize {
        let (index, shift) = self.place();
        index + self.kind.bytes(shift)
    }
}

type Operations = SmallVec<[Operation; 4]>;

fn parse(cx: &Context<'_, '_>) -> Result<Operations, CommandError> {
    let args = cx.args;
    let mut overflow = Overflow::Wrap;
    let mut operations = Operations::new();
    let mut at = 2;
    while let Some(word) = args.get(at) {
        let left = args.len() - at - 1;
        let takes = if is(word, "GET") && left >= 2 {
            2
        } else if (is(word, "SET") || is(word, "INCRBY")) && left >= 3 {
            3
        } else if is(word, "OVERFLOW") && left >= 1 {
            overflow = overflow_of(&args[at + 1])?;
            at += 2;
            continue;
        } else {
            return Err(CommandError::Syntax);
        };
        let kind = FieldType::parse(&args[at + 1]).ok_or(NO_TYPE)?;
        let bit = field_offset(cx, &args[at + 2], kind)?;
        let action = if takes == 2 {
            Action::Get
        } else {
            let value = integer(&args[at + 3])?;
            if is(word, "SET") {
                Action::Set(value, overflow)
            } else {
                Action::Add(value, overflow)
            }
        };
        operations.push(Operation { action, kind, bit });
        at += 1 + takes;
    }
    Ok(operations)
}

const NO_TYPE: CommandError = CommandError::Text(
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
);

fn overflow_of(word: &[u8]) -> Result<Overflow, CommandError> {
    if is(word, "WRAP") {
        Ok(Overflow::Wrap)
    } else if is(word, "SAT") {
        Ok(Overflow::Saturate)
    } else if is(word, "FAIL") {
        Ok(Overflow::Fail)
    } else {
        Err(CommandError::Text("ERR Invalid OVERFLOW type specified"))
    }
}

/// The number of a bit, or with `#` of a field of this type. Redis lets the product overflow before it looks at it.
fn field_offset(cx: &Context<'_, '_>, text: &[u8], kind: FieldType) -> Result<usize, CommandError> {
    let (digits, scale) = match text.strip_prefix(b"#") {
        Some(digits) => (digits, i64::from(kind.bits())),
        None => (text, 1),
    };
    let number = integer(digits).map_err(|_| OFFSET_OUT_OF_RANGE)?;
    if number < 0 {
        return Err(OFFSET_OUT_OF_RANGE);
    }
    checked_offset(cx, number.wrapping_mul(scale))
}

/// The bytes of a value's text from `index` on.
fn window(value: Option<StringRef<'_>>, index: usize) -> Window {
    let mut window = [0; WINDOW_BYTES];
    let mut filled = 0;
    let mut fill = |bytes: &[u8]| {
        window[filled..filled + bytes.len()].copy_from_slice(bytes);
        filled += bytes.len();
    };
    match value {
        None => {}
        Some(StringRef::Rope(rope)) => rope
            .slices(index..index.saturating_add(WINDOW_BYTES))
            .for_each(fill),
        Some(value) => {
            let text = short_text(value).unwrap_or_default();
            let rest = text.get(index..).unwrap_or_default();
            fill(&rest[..rest.len().min(WINDOW_BYTES)]);
        }
    }
    window
}

/// Reads fields only.
fn reply_fields(cx: &mut Context<'_, '_>, operations: &Operations) -> Result<(), CommandError> {
    let string = cx.unit.string(cx.keys[0])?;
    cx.reply.array(operations.len());
    for operation in operations {
        let (index, shift) = operation.place();
        let window = window(string, index);
        cx.reply.integer(operation.kind.read(&window, shift));
    }
    Ok(())
}

fn bitfield_ro(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let operations = parse(cx)?;
    if writes(&operations).next().is_some() {
        return Err(CommandError::Text(
            "ERR BITFIELD_RO only supports the GET subcommand",
        ));
    }
    reply_fields(cx, &operations)
}

fn writes(operations: &Operations) -> impl Iterator<Item = &Operation> {
    operations
        .iter()
        .filter(|operation| operation.action != Action::Get)
}

fn bitfield(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let operations = parse(cx)?;
    let Some(end) = writes(&operations).map(|operation| operation.end()).max() else {
        return reply_fields(cx, &operations);
    };
    let key = cx.keys[0];
    let old_len = cx.unit.peek_string(key)?.map_or(0, value_len);
    let grows = end > old_len;
    // It becomes as long as the furthest write needs, also if that fails.
    if grows {
        overwrite(cx.unit, key, old_len, end - 1, &[0]);
    } else {
        keep_raw(cx.unit, key);
    }
    let mut changes = 0;
    cx.reply.array(operations.len());
    for operation in &operations {
        match run(cx.unit, key, old_len.max(end), *operation) {
            ControlFlow::Break(()) => cx.reply.null(),
            ControlFlow::Continue((answer, changed)) => {
                cx.reply.integer(answer);
                changes += usize::from(operation.action != Action::Get && (changed || grows));
            }
        }
    }
    if changes > 0 {
        cx.unit.touched(key, EventClass::String, "setbit");
        cx.unit.touched_many(changes - 1);
    } else if grows {
        cx.unit.touched_too(key, EventClass::Silent, "setbit");
    } else {
        return Ok(());
    }
    let args = cx.args;
    cx.unit.effect_with(|| effect_arguments(args));
    Ok(())
}

/// Runs one operation on a string of `len` bytes: its answer and whether the field has changed; a break if the value does not fit
/// and nothing is to be done then.
fn run(
    unit: &mut Unit<'_>,
    key: Key<'_>,
    len: usize,
    operation: Operation,
) -> ControlFlow<(), (i64, bool)> {
    let Operation { action, kind, .. } = operation;
    let (index, shift) = operation.place();
    let string = unit.look(key).and_then(|entry| entry.string());
    let mut window = window(string, index);
    let old = kind.read(&window, shift);
    let (new, answers_new) = match action {
        Action::Get => return ControlFlow::Continue((old, false)),
        Action::Set(value, overflow) => (kind.set(value, overflow), false),
        Action::Add(delta, overflow) => (kind.sum(old, delta, overflow), true),
    };
    let Some(new) = new else {
        return ControlFlow::Break(());
    };
    if new != old {
        kind.write(&mut window, shift, new);
        overwrite(unit, key, len, index, &window[..kind.bytes(shift)]);
    }
    ControlFlow::Continue((if answers_new { new } else { old }, new != old))
}

/// BITFIELD with nothing but GET only reads.
fn key_flags(args: Args<'_>) -> KeyFlags {
    let mut at = 2;
    while let Some(word) = args.get(at) {
        let left = args.len() - at - 1;
        if is(word, "GET") && left >= 2 {
            at += 3;
        } else if is(word, "OVERFLOW") && left >= 1 {
            at += 2;
        } else {
            return KeyFlags::RW | KeyFlags::ACCESS | KeyFlags::UPDATE;
        }
    }
    KeyFlags::RO | KeyFlags::ACCESS
}
