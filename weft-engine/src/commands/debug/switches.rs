//! DEBUG's switches: two that do something, and those for parts of Redis and Valkey that Weft has no counterpart of.
//!
//! The latter are checked as there and change nothing: tables are always resized, lists have no such threshold, replies
//! have no buffer of their own, there is nothing yet that replicates, saves or runs scripts.

use std::sync::atomic::Ordering;

use weft_data::number::parse_i64;

use super::{is, ok};
use crate::config::memory_size;
use crate::dispatch::Context;
use crate::error::CommandError;

/// What a switch takes.
enum Takes {
    /// Anything.
    Anything,
    /// An integer.
    Integer,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A size in bytes below 4 GiB.
    Size,
}

const FOREIGN: &[(&str, Takes)] = &[
    ("AOF-FLUSH-SLEEP", Takes::Anything),
    ("CLIENT-ENFORCE-REPLY-LIST", Takes::Anything),
    ("DICT-RESIZING", Takes::Anything),
    ("DROP-CLUSTER-PACKET-FILTER", Takes::Integer),
    ("KEYSIZES-HIST-ASSERT", Takes::Anything),
    ("PAUSE-AFTER-FORK", Takes::Anything),
    ("QUICKLIST-PACKED-THRESHOLD", Takes::Size),
    (
        "REPL-PAUSE",
        Takes::Word(&[
            "clear",
            "after-fork",
            "before-rdb-channel",
            "on-streaming-repl-buf",
        ]),
    ),
    ("SET-DISABLE-DENY-SCRIPTS", Takes::Anything),
    ("SET-SKIP-CHECKSUM-VALIDATION", Takes::Anything),
];

/// Greater thresholds would let a list's node outgrow 32 bits in Redis.
const PACKED_THRESHOLD_MAX: u64 = (1 << 32) - (1 << 20);

/// Turns the switch that the arguments name; none if they name none.
pub(super) fn switch(cx: &mut Context<'_, '_>) -> Option<Result<(), CommandError>> {
    let word = cx.args.get(1)?;
    let value = cx.args.get(2)?;
    match cx.args.get(3) {
        None if is(word, "SET-ACTIVE-EXPIRE") => {
            cx.engine
                .active_expiry
                .store(is_on(value), Ordering::Relaxed);
        }
        None if is(word, "PAUSE-CRON") => {
            cx.engine
                .housekeeping_paused
                .store(is_on(value), Ordering::Relaxed);
        }
        None => {
            let (_, takes) = FOREIGN.iter().find(|(name, _)| is(word, name))?;
            match check(takes, value)? {
                Ok(()) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        Some(setting) if is(word, "REPLYBUFFER") && cx.args.len() == 4 => {
            let fits = match value {
                _ if is(value, "RESIZING") => true,
                _ if is(value, "PEAK-RESET-TIME") => {
                    is(setting, "NEVER") || is(setting, "RESET") || parse_i64(setting).is_some()
                }
                _ => return None,
            };
            if !fits {
                return Some(Err(CommandError::NotInteger));
            }
        }
        Some(_) => return None,
    }
    Some(ok(cx))
}

/// None if there is no such switch with such a word.
fn check(takes: &Takes, value: &[u8]) -> Option<Result<(), CommandError>> {
    let outcome = match takes {
        Takes::Anything => Ok(()),
        Takes::Integer if parse_i64(value).is_some() => Ok(()),
        Takes::Integer => Err(CommandError::NotInteger),
        Takes::Word(words) if words.iter().any(|word| is(value, word)) => Ok(()),
        Takes::Word(_) => return None,
        Takes::Size if memory_size(value).is_some_and(|size| size <= PACKED_THRESHOLD_MAX) => {
            Ok(())
        }
        Takes::Size => Err(CommandError::Text(
            "ERR argument must be a memory value bigger than 1 and smaller than 4gb",
        )),
    };
    Some(outcome)
}

/// As C's `atoi` reads a number: anything but zero is on, and what is no number is zero.
fn is_on(value: &[u8]) -> bool {
    let start = value
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'))
        .count();
    let number = value.get(start..).unwrap_or_default();
    let digits = match number {
        [b'-' | b'+', digits @ ..] => digits,
        digits => digits,
    };
    digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .any(|digit| *digit != b'0')
}
