//! String values on their way in from arguments and out to replies and effects.

use std::borrow::Cow;

use weft_data::number;
use weft_data::string_value::{Classified, classify};
use weft_keyspace::{DeadlineChange, NewValue, StringRef};
use weft_resp::{Args, Writer};
use weft_rope::Rope;

use crate::dispatch::{Key, Unit};
use crate::journal::EffectArgument;

/// What to store for the argument at `index`: an integer if it is one, a large argument's own rope.
pub(super) fn stored(args: Args<'_>, index: usize) -> NewValue<'_> {
    match args.rope(index) {
        Some(rope) => NewValue::Rope(rope.clone()),
        None => stored_bytes(args.get(index).unwrap_or_default()),
    }
}

/// What to store for `bytes`.
pub(super) fn stored_bytes(bytes: &[u8]) -> NewValue<'_> {
    match classify(bytes) {
        Classified::Int(value) => NewValue::Int(value),
        Classified::Bytes => NewValue::Bytes(bytes),
    }
}

/// The argument at `index` for an effect; a large one is shared.
pub(super) fn effect_argument(args: Args<'_>, index: usize) -> EffectArgument {
    match args.rope(index) {
        Some(rope) => EffectArgument::Rope(rope.clone()),
        None => args[index].into(),
    }
}

/// All arguments for an effect that is the command itself.
pub(super) fn effect_arguments(args: Args<'_>) -> Vec<EffectArgument> {
    (0..args.len())
        .map(|index| effect_argument(args, index))
        .collect()
}

/// Writes a string value as a bulk string.
pub(super) fn reply_value(reply: &mut Writer<'_>, value: StringRef<'_>) {
    match value {
        StringRef::Int(value) => reply.bulk_integer(value),
        StringRef::Bytes(bytes) => reply.bulk(bytes),
        StringRef::Rope(rope) => reply.bulk_rope(rope),
    }
}

/// Writes a string value as a bulk string, null if there is none.
pub(super) fn reply_value_or_null(reply: &mut Writer<'_>, value: Option<StringRef<'_>>) {
    match value {
        Some(value) => reply_value(reply, value),
        None => reply.null(),
    }
}

/// The length in bytes of a string value's text.
pub(super) fn value_len(value: StringRef<'_>) -> usize {
    match value {
        StringRef::Int(value) => number::i64_text_len(value),
        StringRef::Bytes(bytes) => bytes.len(),
        StringRef::Rope(rope) => rope.len(),
    }
}

/// The text of a value, if it is short enough to be a number.
pub(super) fn short_text(value: StringRef<'_>) -> Option<Cow<'_, [u8]>> {
    match value {
        StringRef::Int(value) => Some(number::format_i64(value).as_bytes().to_vec().into()),
        StringRef::Bytes(bytes) => Some(bytes.into()),
        StringRef::Rope(rope) => rope.as_contiguous().map(Cow::from),
    }
}

/// A value that outlives the latch: short ones are copied, large ones shared.
#[derive(Clone, Debug)]
pub(super) enum Captured {
    /// A copy.
    Bytes(Vec<u8>),
    /// A large value as it was.
    Rope(Rope),
}

impl Captured {
    /// Captures a value.
    pub(super) fn of(value: StringRef<'_>) -> Self {
        match value {
            StringRef::Int(value) => Self::Bytes(number::format_i64(value).as_bytes().to_vec()),
            StringRef::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            StringRef::Rope(rope) => Self::Rope(rope.clone()),
        }
    }

    /// The whole text in one piece.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Rope(rope) => rope.to_vec(),
        }
    }
}

/// Makes an existing string `raw` without changing its bytes: what Redis does to one that it is about to change, even if nothing
/// changes then.
pub(super) fn keep_raw(unit: &mut Unit<'_>, key: Key<'_>) {
    let Some(entry) = unit.look(key) else {
        return;
    };
    let integer = match entry.string() {
        Some(StringRef::Int(value)) => Some(number::format_i64(value)),
        Some(_) if !entry.is_raw() => None,
        _ => return,
    };
    match integer {
        Some(text) => {
            let bytes = NewValue::RawBytes(text.as_bytes());
            unit.set(key, bytes, DeadlineChange::Keep);
        }
        None => unit.set_raw(key),
    }
}
