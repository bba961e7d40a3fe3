//! What stands in requests about streams: ids of few entries, a few groups and consumers, times that no two servers order differently.

use super::Generator;
use crate::command_table::{Argument, ArgumentKind};

/// Entries of a millisecond, in new ids.
const PER_MILLISECOND: u64 = 8;
const IDS: &[&str] = &[
    "0",
    "0-0",
    "-",
    "+",
    "$",
    ">",
    "(0-0",
    "(1-1",
    "1",
    "18446744073709551615-18446744073709551615",
    "18446744073709551615",
];
const ODD_IDS: &[&str] = &[
    "",
    "x",
    "1-",
    "-1-1",
    "1-1-1",
    "(-",
    "(+",
    "1-*",
    " 1-1",
    "01-01",
    "18446744073709551616",
];
/// Entries are idle for less than a minute, or as long as a claim says: more than an hour, or next to nothing.
const MIN_IDLE_TIMES: &[&str] = &["0", "0", "0", "-1", "3600000", "9223372036854775807"];
const IDLE_TIMES: &[&str] = &["0", "0", "10", "36000000", "-5"];
const DELIVERY_TIMES: &[&str] = &["0", "1", "1600000000000", "-1"];
const ENTRY_COUNTS: &[&str] = &["0", "1", "2", "3", "5", "10", "-1", "1000"];

/// Arguments that are left out: they would park the client.
pub(super) fn is_left_out(argument: &Argument) -> bool {
    argument.token.as_deref() == Some("BLOCK")
}

/// Tokens that are not strewn in: these park the client, or make ids from a clock.
pub(super) fn is_harmless(token: &str) -> bool {
    !matches!(token, "BLOCK" | "*")
}

impl Generator {
    /// The value of an argument of a command about streams, where it is no common one.
    pub(super) fn stream_value(&mut self, argument: &Argument) -> Option<Vec<u8>> {
        Some(match (argument.kind, argument.name.as_str()) {
            (_, "group" | "consumer") => {
                let name = argument.name.as_bytes()[0] as char;
                format!("{name}{}", self.random.usize(1..3)).into_bytes()
            }
            (_, "threshold") if self.one_in(2) => self.pick_text(ENTRY_COUNTS, ODD_IDS),
            (ArgumentKind::String, "min-idle-time") | (_, "min-idle-time") => {
                self.pick_text(MIN_IDLE_TIMES, ODD_IDS)
            }
            (ArgumentKind::Integer, "ms") => self.pick_text(IDLE_TIMES, ODD_IDS),
            (ArgumentKind::UnixTime, _) => self.pick_text(DELIVERY_TIMES, ODD_IDS),
            (ArgumentKind::Integer, "count") => self.pick_text(ENTRY_COUNTS, ODD_IDS),
            // Counters that contradict each other are answered otherwise (D-19): what is said to be read is little, what is said to
            // be added ever more.
            (ArgumentKind::Integer, "entriesread") => self.pick_text(&["0", "-1"], &["-2", "x"]),
            (ArgumentKind::Integer, "entries-added") => {
                self.next_entry += 1;
                (1000 + 10 * self.next_entry).to_string().into_bytes()
            }
            (
                ArgumentKind::String,
                "id" | "start" | "end" | "threshold" | "last-id" | "lastid" | "max-deleted-id",
            ) => self.entry_id(),
            _ => return None,
        })
    }

    fn entry_id(&mut self) -> Vec<u8> {
        match self.random.usize(..12) {
            0 => self.pick_text(IDS, ODD_IDS),
            1..6 if self.adds_entry => {
                self.next_entry += 1;
                let (ms, seq) = (
                    self.next_entry / PER_MILLISECOND,
                    self.next_entry % PER_MILLISECOND,
                );
                format!("{}-{seq}", ms + 1).into_bytes()
            }
            6 if self.adds_entry => {
                format!("{}-*", self.next_entry / PER_MILLISECOND + 1).into_bytes()
            }
            _ => {
                let some = self.random.u64(..self.next_entry + 2);
                format!("{}-{}", some / PER_MILLISECOND + 1, some % PER_MILLISECOND).into_bytes()
            }
        }
    }

    /// Makes as many ids as there are keys before them, mostly.
    pub(super) fn balance_streams(&mut self, block: &Argument, words: &mut Vec<Vec<u8>>) {
        if block.name == "streams" && !self.one_in(12) {
            let keys = words.len().div_ceil(2).max(1);
            words.truncate(keys);
            for _ in 0..keys {
                let id = if self.one_in(2) {
                    b">".to_vec()
                } else {
                    self.entry_id()
                };
                words.push(id);
            }
        }
    }
}
