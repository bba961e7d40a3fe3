//! KEYS and SCAN: walking through a database, at once or in small steps.
//!
//! KEYS sees one point in time: it collects the names while it has the keyspace alone and writes them afterwards. The cursor
//! is a position in the keyspace, so that a key that is there all the time is returned at least once, however the tables
//! grow and shrink in between.

use weft_data::{glob, number};
use weft_keyspace::Entry;
use weft_resp::Writer;

use super::keys::type_name;
use super::options::{integer, is};
use crate::command::{Argument, Categories, CommandRow, Flags};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "keys",
        arity: 2,
        flags: Flags::READONLY.with(Flags::EXCLUSIVE),
        categories: Categories::KEYSPACE.with(Categories::DANGEROUS),
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        group: "generic",
        since: "1.0.0",
        complexity: "O(N) in the number of keys; O(1) for a pattern without wildcards",
        summary: "Lists all keys of the database that match a pattern.",
        arguments: &[Argument::pattern("pattern")],
        handler: keys,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "scan",
        arity: -2,
        flags: Flags::READONLY.with(Flags::WALKS),
        categories: Categories::KEYSPACE,
        tips: &[
            "nondeterministic_output",
            "request_policy:special",
            "response_policy:special",
        ],
        group: "generic",
        since: "2.8.0",
        complexity: "O(1) a call, O(N) for a whole walk",
        summary: "Walks through the keys of the database in small steps.",
        history: &[("6.0.0", "Takes TYPE.")],
        arguments: &[
            Argument::integer("cursor"),
            Argument::pattern("pattern").token("MATCH").optional(),
            Argument::integer("count").token("COUNT").optional(),
            Argument::string("type")
                .token("TYPE")
                .optional()
                .since("6.0.0"),
        ],
        handler: scan,
        ..CommandRow::DEFAULT
    },
];

fn keys(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let pattern = &cx.args[1];
    let mut names = Names::default();
    if pattern == b"*" {
        // The bare star stands for everything; as a pattern it would miss the empty key.
        cx.unit.each_key(|name| names.push(name));
    } else if let Some(name) = glob::is_literal(pattern) {
        if cx.unit.look_alone(&name, |_| ()).is_some() {
            names.push(&name);
        }
    } else {
        let prefix = glob::literal_prefix(pattern);
        cx.unit.each_key(|name| {
            if name.starts_with(&prefix) && glob::matches(pattern, name, false) {
                names.push(name);
            }
        });
    }
    cx.continue_with(Listing {
        names,
        replied: None,
    });
    Ok(())
}

/// Names one after the other: a box for each would take longer than all the rest.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

/// The reply of KEYS under way.
struct Listing {
    names: Names,
    /// How many names are written; none before the header is.
    replied: Option<usize>,
}

impl Steps for Listing {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        /// About what a short bulk string takes, and how many bytes are copied in a nanosecond.
        const NS_PER_NAME: u64 = 20;
        const BYTES_PER_NS: u64 = 8;
        let count = self.names.ends.len();
        let mut at = self.replied.unwrap_or_else(|| {
            reply.array(count);
            0
        });
        while at < count && budget.left() > 0 {
            let name = self.names.get(at);
            budget.take(NS_PER_NAME + name.len() as u64 / BYTES_PER_NS);
            reply.bulk(name);
            at += 1;
        }
        self.replied = Some(at);
        if at < count {
            Progress::More
        } else {
            Progress::Done
        }
    }
}

/// What a scan goes through, which decides the options it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    /// Keys: TYPE as well.
    Keys,
    /// A hash: NOVALUES as well.
    Hash,
    /// A sorted set: Valkey's NOSCORES as well.
    SortedSet,
    /// Any other collection.
    Collection,
}

/// The options of SCAN, SSCAN, HSCAN and ZSCAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScanOptions<'a> {
    /// How much to look at.
    pub(super) count: usize,
    /// What names must match, if not everything.
    pattern: Option<&'a [u8]>,
    value_type: Option<&'a [u8]>,
    /// Fields are wanted without their values, members without their scores.
    pub(super) no_values: bool,
}

impl<'a> ScanOptions<'a> {
    /// Reads the options from argument `first` on. Of a missing key's scan nothing is looked at but the cursor.
    pub(super) fn parse(
        args: weft_resp::Args<'a>,
        first: usize,
        scanned: Scanned,
    ) -> Result<Self, CommandError> {
        let mut options = Self {
            count: 10,
            pattern: None,
            value_type: None,
            no_values: false,
        };
        let mut at = first;
        while let Some(word) = args.get(at) {
            if is(word, "NOVALUES") {
                if scanned != Scanned::Hash {
                    return Err(CommandError::Text(
                        "ERR NOVALUES option can only be used in HSCAN",
                    ));
                }
                options.no_values = true;
                at += 1;
                continue;
            }
            if is(word, "NOSCORES") && scanned == Scanned::SortedSet {
                options.no_values = true;
                at += 1;
                continue;
            }
            let value = args.get(at + 1).ok_or(CommandError::Syntax)?;
            if is(word, "COUNT") {
                options.count = match integer(value)? {
                    count @ 1.. => usize::try_from(count).unwrap_or(usize::MAX),
                    _ => return Err(CommandError::Syntax),
                };
            } else if is(word, "MATCH") {
                // The bare star stands for everything; as a pattern it would miss the empty name.
                options.pattern = (value != b"*").then_some(value);
            } else if is(word, "TYPE") && scanned == Scanned::Keys {
                options.value_type = Some(value);
            } else {
                return Err(CommandError::Syntax);
            }
            at += 2;
        }
        Ok(options)
    }

    /// What names must match, if not everything.
    pub(super) const fn pattern(&self) -> Option<&'a [u8]> {
        self.pattern
    }

    /// Whether a name is wanted.
    pub(super) fn wants(&self, name: &[u8]) -> bool {
        self.pattern
            .is_none_or(|pattern| glob::matches(pattern, name, false))
    }

    fn wants_key(&self, entry: &Entry<'_>) -> bool {
        self.wants(entry.key())
            && self
                .value_type
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(type_name(entry).as_bytes()))
    }
}

/// The cursor of a scan.
pub(super) fn cursor(text: &[u8]) -> Result<u64, CommandError> {
    number::parse_u64_lenient(text).ok_or(CommandError::Text("ERR invalid cursor"))
}

/// Writes the reply of a scan but for its elements: the next cursor, and how many elements follow.
pub(super) fn reply_batch(reply: &mut Writer<'_>, next: u64, elements: usize) {
    reply.array(2);
    reply.bulk(number::format_u64(next).as_bytes());
    reply.array(elements);
}

fn scan(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let cursor = cursor(&cx.args[1])?;
    let options = ScanOptions::parse(cx.args, 2, Scanned::Keys)?;
    let mut names: Vec<Box<[u8]>> = Vec::new();
    let next = cx.unit.scan(cursor, options.count, |entry| {
        if options.wants_key(&entry) {
            names.push(entry.key().into());
        }
    });
    reply_batch(&mut cx.reply, next, names.len());
    for name in &names {
        cx.reply.bulk(name);
    }
    Ok(())
}
