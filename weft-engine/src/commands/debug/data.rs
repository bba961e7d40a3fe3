//! DEBUG's subcommands about the data: OBJECT, POPULATE, DIGEST, DIGEST-VALUE.

use weft_data::number::{i64_text_len, parse_i64};
use weft_keyspace::{Entry, NewValue, StringRef, ValueRef};

use super::super::object::encoding_of;
use super::super::options::is;
use super::super::values::value_len;
use crate::access::idle_s;
use crate::dispatch::Context;
use crate::error::CommandError;

/// Three digests make the 40 digits that Redis's SHA-1 has.
const SEEDS: [u64; 3] = [1, 2, 3];

/// The fields that suites look at. The address is the key's position; the length is that of the uncompressed text in a
/// dump, and left out for those who want it fast.
pub(super) fn object(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let name = &cx.args[2];
    let fast = match cx.args.get(3) {
        None => false,
        Some(word) if is(word, "FAST") => true,
        Some(_) => return Err(super::unknown(&cx.args[1])),
    };
    let now_s = cx.unit.now_ms() / 1000;
    let position = cx.engine.keyspace.position(name).bits();
    let text = cx.unit.look_alone(name, |entry| {
        let length = if fast {
            String::new()
        } else {
            format!(" serializedlength:{}", serialized_len(&entry))
        };
        format!(
            "Value at:0x{position:x} refcount:1 encoding:{}{length} lru:{} lru_seconds_idle:{}",
            encoding_of(&entry),
            entry.access(),
            idle_s(entry.access(), now_s),
        )
    });
    match text {
        Some(text) => {
            cx.reply.simple(&text);
            Ok(())
        }
        None => Err(CommandError::Text("ERR no such key")),
    }
}

/// Bytes of a value in a dump: its length and its text, or an integer of up to 32 bits in as few bytes as it takes.
fn serialized_len(entry: &Entry<'_>) -> usize {
    let value = match entry.value() {
        ValueRef::String(string) => string,
        // Something of that order: a dump is not made for it.
        ValueRef::Collection(_) => return entry.allocated_bytes(),
    };
    if let StringRef::Int(number) = value {
        return match number {
            -0x80..=0x7f => 2,
            -0x8000..=0x7fff => 3,
            -0x8000_0000..=0x7fff_ffff => 5,
            _ => 1 + i64_text_len(number),
        };
    }
    let length = value_len(value);
    let header = match length {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..=0xffff_ffff => 5,
        _ => 9,
    };
    header + length
}

pub(super) fn populate(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let positive = |text: &[u8]| {
        parse_i64(text)
            .and_then(|number| usize::try_from(number).ok())
            .ok_or(CommandError::Text(
                "ERR value is out of range, must be positive",
            ))
    };
    let count = positive(&cx.args[2])?;
    let prefix = cx.args.get(3).unwrap_or(b"key");
    let size = match cx.args.get(4) {
        Some(size) => positive(size)?,
        None => 0,
    };
    if size > cx.worker.settings().proto_max_bulk_len() {
        return Err(CommandError::StringTooLong);
    }
    for number in 0..count {
        let name = [prefix, format!(":{number}").as_bytes()].concat();
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        cx.unit.fill(&name, NewValue::Bytes(&value));
    }
    cx.reply.ok();
    Ok(())
}

pub(super) fn digest(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let text = digits(cx.unit.digest(SEEDS));
    cx.reply.simple(&text);
    Ok(())
}

pub(super) fn digest_values(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.array(cx.args.len() - 2);
    for name in cx.args.iter().skip(2) {
        let sums = cx.unit.look_alone(name, |entry| {
            SEEDS.map(|seed| crate::digest::of_value(seed, &entry))
        });
        cx.reply.simple(&digits(sums.unwrap_or_default()));
    }
    Ok(())
}

fn digits([one, two, three]: [u64; 3]) -> String {
    format!("{one:016x}{two:016x}{:08x}", three as u32)
}
