//! Bitmaps: strings whose bits are read, changed, counted, sought and combined.

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;
use weft_data::bitmap::combine::{Operator, combine};
use weft_data::bitmap::{self, Counting, Seeking, Sought};
use weft_keyspace::{DeadlineChange, NewValue, StringRef};
use weft_resp::Writer;
use weft_rope::{CHUNK_BYTES, Chunk, Rope};

use super::options::{integer, is};
use super::ranges::{overwrite, range, range_cut};
use super::values::{effect_arguments, keep_raw, short_text, value_len};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, EventClass, Key, Progress, Steps, Unit};
use crate::error::CommandError;
use crate::journal::EffectArgument;

/// BYTE or BIT.
const UNIT: Argument = Argument::one_of(
    "unit",
    &[Argument::word("byte", "BYTE"), Argument::word("bit", "BIT")],
)
.optional()
.since("7.0.0");

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "setbit",
        arity: 4,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::BRIEF),
        categories: Categories::BITMAP,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::UPDATE),
        )],
        group: "bitmap",
        since: "2.2.0",
        complexity: "O(1)",
        summary: "Writes one bit of a string, which is made or lengthened as needed, and answers what it was.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("offset"),
            Argument::integer("value"),
        ],
        handler: setbit,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "getbit",
        arity: 3,
        flags: Flags::READONLY.with(Flags::FAST),
        categories: Categories::BITMAP,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        group: "bitmap",
        since: "2.2.0",
        complexity: "O(1)",
        summary: "Reads one bit of a string.",
        arguments: &[Argument::key("key", 0), Argument::integer("offset")],
        handler: getbit,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "bitcount",
        arity: -2,
        flags: Flags::READONLY,
        categories: Categories::BITMAP,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        group: "bitmap",
        since: "2.6.0",
        complexity: "O(N)",
        summary: "Counts the bits of a string that are set.",
        history: &[("7.0.0", "Takes BYTE and BIT.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::block(
                "range",
                &[Argument::integer("start"), Argument::integer("end"), UNIT],
            )
            .optional(),
        ],
        handler: bitcount,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "bitpos",
        arity: -3,
        flags: Flags::READONLY,
        categories: Categories::BITMAP,
        keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
        group: "bitmap",
        since: "2.8.7",
        complexity: "O(N)",
        summary: "Finds the first bit of a string that is set, or that is clear.",
        history: &[("7.0.0", "Takes BYTE and BIT.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("bit"),
            Argument::block(
                "range",
                &[
                    Argument::integer("start"),
                    Argument::block("end-unit-block", &[Argument::integer("end"), UNIT]).optional(),
                ],
            )
            .optional(),
        ],
        handler: bitpos,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "bitop",
        arity: -4,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        categories: Categories::BITMAP,
        keys: &[
            KeySpec::one(2, KeyFlags::OW.with(KeyFlags::UPDATE)),
            KeySpec::range(3, -1, 1, KeyFlags::RO.with(KeyFlags::ACCESS)),
        ],
        group: "bitmap",
        since: "2.6.0",
        complexity: "O(N)",
        summary: "Combines strings bit by bit and stores the result.",
        arguments: &[
            Argument::one_of(
                "operation",
                &[
                    Argument::word("and", "AND"),
                    Argument::word("or", "OR"),
                    Argument::word("xor", "XOR"),
                    Argument::word("not", "NOT"),
                    Argument::word("diff", "DIFF"),
                    Argument::word("diff1", "DIFF1"),
                    Argument::word("andor", "ANDOR"),
                    Argument::word("one", "ONE"),
                ],
            ),
            Argument::key("destkey", 0),
            Argument::key("key", 1).multiple(),
        ],
        handler: bitop,
        ..CommandRow::DEFAULT
    },
];

/// A bit's offset is no number, negative, or behind the longest string allowed.
pub(super) const OFFSET_OUT_OF_RANGE: CommandError =
    CommandError::Text("ERR bit offset is not an integer or out of range");
const NO_BIT: CommandError = CommandError::Text("ERR bit is not an integer or out of range");

/// Checks the number of a bit against the longest string allowed.
pub(super) fn checked_offset(cx: &Context<'_, '_>, offset: i64) -> Result<usize, CommandError> {
    usize::try_from(offset)
        .ok()
        .filter(|offset| offset / 8 < cx.worker.settings().proto_max_bulk_len())
        .ok_or(OFFSET_OUT_OF_RANGE)
}

fn offset(cx: &Context<'_, '_>, at: usize) -> Result<usize, CommandError> {
    let offset = integer(&cx.args[at]).map_err(|_| OFFSET_OUT_OF_RANGE)?;
    checked_offset(cx, offset)
}

/// The byte at `index` of a value's text, 0 where there is none.
fn byte_at(value: Option<StringRef<'_>>, index: usize) -> u8 {
    let byte = match value {
        None => None,
        Some(StringRef::Rope(rope)) => rope.byte(index),
        Some(value) => short_text(value).and_then(|text| text.get(index).copied()),
    };
    byte.unwrap_or_default()
}

fn setbit(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let (index, mask) = bitmap::locate(offset(cx, 2)?);
    let set = match integer(&cx.args[3]) {
        Ok(0) => false,
        Ok(1) => true,
        _ => return Err(NO_BIT),
    };
    let old = cx.unit.peek_string(key)?;
    let (old_len, byte) = (old.map_or(0, value_len), byte_at(old, index));
    let was = byte & mask != 0;
    if was != set || index >= old_len {
        let byte = if set { byte | mask } else { byte & !mask };
        overwrite(cx.unit, key, old_len, index, &[byte]);
        cx.unit.touched(key, EventClass::String, "setbit");
        let args = cx.args;
        cx.unit.effect_with(|| effect_arguments(args));
    } else {
        keep_raw(cx.unit, key);
    }
    cx.reply.integer(i64::from(was));
    Ok(())
}

fn getbit(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (index, mask) = bitmap::locate(offset(cx, 2)?);
    let byte = byte_at(cx.unit.string(cx.keys[0])?, index);
    cx.reply.integer(i64::from(byte & mask != 0));
    Ok(())
}

/// Whether a range counts bits.
fn counts_bits(word: &[u8]) -> Result<bool, CommandError> {
    if is(word, "BIT") {
        Ok(true)
    } else if is(word, "BYTE") {
        Ok(false)
    } else {
        Err(CommandError::Syntax)
    }
}

/// The bits of a range that counts them or their bytes.
fn in_bits(range: Range<usize>, counts_bits: bool) -> Range<usize> {
    if counts_bits {
        range
    } else {
        range.start * 8..range.end * 8
    }
}

fn bitcount(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let asked = match cx.args.len() {
        2 => None,
        4 | 5 => {
            let (start, end) = (integer(&cx.args[2])?, integer(&cx.args[3])?);
            let by_bit = cx.args.get(4).map_or(Ok(false), counts_bits)?;
            Some((start, end, by_bit))
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some(string) = cx.unit.string(cx.keys[0])? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let len = value_len(string);
    let bits = match asked {
        None => 0..len * 8,
        Some((start, end, true)) => range(start, end, len * 8),
        Some((start, end, false)) => in_bits(range(start, end, len), false),
    };
    match (short_text(string), string) {
        (Some(text), _) => cx.reply.integer(bitmap::count(&text, bits) as i64),
        (None, StringRef::Rope(rope)) => {
            let counting = Counting::new(rope.clone(), bits);
            cx.continue_with(Count(counting));
        }
        (None, _) => unreachable!("what is no rope is short"),
    }
    Ok(())
}

fn bitpos(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let wanted = match integer(&cx.args[2])? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::Text("ERR The bit argument must be 1 or 0.")),
    };
    if cx.args.len() > 6 {
        return Err(CommandError::Syntax);
    }
    let start = cx.args.get(3).map_or(Ok(0), integer)?;
    let by_bit = cx.args.get(5).map_or(Ok(false), counts_bits)?;
    let end = cx.args.get(4).map(integer).transpose()?;
    let Some(string) = cx.unit.string(cx.keys[0])? else {
        // A missing string is zeroes without end.
        cx.reply.integer(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let units = value_len(string) * if by_bit { 8 } else { 1 };
    let bits = in_bits(range_cut(start, end.unwrap_or(-1), units), by_bit);
    // Without an end the string counts as followed by zeroes.
    let otherwise = if !wanted && end.is_none() && !bits.is_empty() {
        bits.end as i64
    } else {
        -1
    };
    match (short_text(string), string) {
        (Some(text), _) => {
            let found = bitmap::position(&text, wanted, bits);
            cx.reply.integer(found.map_or(otherwise, |bit| bit as i64));
        }
        (None, StringRef::Rope(rope)) => {
            let seeking = Seeking::new(rope.clone(), wanted, bits);
            cx.continue_with(Seek { seeking, otherwise });
        }
        (None, _) => unreachable!("what is no rope is short"),
    }
    Ok(())
}

/// Bytes that are surely looked at in a nanosecond.
const BYTES_PER_NS: u64 = 4;

fn bytes_in(budget: &mut Budget) -> usize {
    let work = budget.take(u64::MAX).saturating_mul(BYTES_PER_NS);
    usize::try_from(work).unwrap_or(usize::MAX)
}

struct Count(Counting);

impl Steps for Count {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        match self.0.step(bytes_in(budget)) {
            Some(ones) => {
                reply.integer(ones as i64);
                Progress::Done
            }
            None => Progress::More,
        }
    }
}

struct Seek {
    seeking: Seeking,
    otherwise: i64,
}

impl Steps for Seek {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        let answer = match self.seeking.step(bytes_in(budget)) {
            Sought::More => return Progress::More,
            Sought::At(bit) => bit as i64,
            Sought::Nowhere => self.otherwise,
        };
        reply.integer(answer);
        Progress::Done
    }
}

/// A string to be combined, where it lies.
enum Source<'a> {
    Short(Cow<'a, [u8]>),
    Long(&'a Rope),
}

impl<'a> Source<'a> {
    fn of(value: Option<StringRef<'a>>) -> Self {
        match value {
            None => Self::Short(Cow::default()),
            Some(StringRef::Rope(rope)) => Self::Long(rope),
            Some(value) => Self::Short(short_text(value).unwrap_or_default()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Short(bytes) => bytes.len(),
            Self::Long(rope) => rope.len(),
        }
    }

    /// What of it lies in the chunk of that number. A short one lies in the first.
    fn chunk(&self, index: usize) -> &[u8] {
        match self {
            Self::Short(bytes) if index == 0 => bytes,
            Self::Short(_) => &[],
            Self::Long(rope) => rope.chunks().get(index).map_or(&[], Chunk::as_slice),
        }
    }
}

fn bitop(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let operator = Operator::by_name(&cx.args[1]).ok_or(CommandError::Syntax)?;
    let Some((target, keys)) = cx.keys.split_first() else {
        return Err(CommandError::Syntax);
    };
    if operator == Operator::Not && keys.len() != 1 {
        return Err(CommandError::Text(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    if operator.needs_others() && keys.len() < 2 {
        let name = String::from_utf8_lossy(&cx.args[1]).to_ascii_uppercase();
        let text = format!("ERR BITOP {name} must be called with at least two source keys.");
        return Err(CommandError::Composed(text.into_bytes().into()));
    }
    let target = *target;
    let (len, shared) = match combined(cx.unit, operator, keys)? {
        Combined::Nothing => {
            if cx.unit.remove(target) {
                cx.unit.touched(target, EventClass::Generic, "del");
                cx.unit.effect(&[b"DEL", target.name]);
            }
            cx.reply.integer(0);
            return Ok(());
        }
        Combined::Short(bytes) => {
            let value = NewValue::RawBytes(&bytes);
            cx.unit.set(target, value, DeadlineChange::Clear);
            (bytes.len(), None)
        }
        Combined::Long(rope) => {
            let value = NewValue::Rope(rope.clone());
            cx.unit.set(target, value, DeadlineChange::Clear);
            (rope.len(), Some(rope))
        }
    };
    cx.unit.touched(target, EventClass::String, "set");
    let args = cx.args;
    cx.unit.effect_with(|| match shared {
        None => effect_arguments(args),
        // The result itself: nobody has to combine so much again.
        Some(rope) => vec![
            b"SET".as_slice().into(),
            target.name.into(),
            EffectArgument::Rope(rope),
        ],
    });
    cx.reply.integer(len as i64);
    Ok(())
}

/// What came of combining strings.
enum Combined {
    /// All are missing or empty.
    Nothing,
    /// Up to a chunk.
    Short(Vec<u8>),
    /// More.
    Long(Rope),
}

fn combined(
    unit: &Unit<'_>,
    operator: Operator,
    keys: &[Key<'_>],
) -> Result<Combined, CommandError> {
    let mut sources: SmallVec<[Source<'_>; 4]> = SmallVec::with_capacity(keys.len());
    for key in keys {
        sources.push(Source::of(unit.string(*key)?));
    }
    let len = sources.iter().map(Source::len).max().unwrap_or_default();
    let piece = |index: usize| {
        let chunks = sources.iter().map(|source| source.chunk(index));
        let chunks: SmallVec<[&[u8]; 4]> = chunks.collect();
        combine(
            operator,
            &chunks,
            CHUNK_BYTES.min(len - index * CHUNK_BYTES),
        )
    };
    Ok(match len {
        0 => Combined::Nothing,
        1..=CHUNK_BYTES => Combined::Short(piece(0)),
        _ => {
            let mut rope = Rope::new();
            for index in 0..len.div_ceil(CHUNK_BYTES) {
                rope.push_chunk(Chunk::from(piece(index)));
            }
            Combined::Long(rope)
        }
    })
}
