//! SCAN: walking through a database in small steps.
//!
//! The cursor is a position in the keyspace, so that a key that is there all the time is returned at least once, however
//! the tables grow and shrink in between.

use weft_data::{glob, number};

use super::options::{integer, is};
use crate::command::{Argument, Categories, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "scan",
    arity: -2,
    flags: Flags::READONLY,
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
}];

/// What to return.
struct Options<'a> {
    count: usize,
    pattern: Option<&'a [u8]>,
    value_type: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: weft_resp::Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self {
            count: 10,
            pattern: None,
            value_type: None,
        };
        let mut at = 2;
        while let Some(word) = args.get(at) {
            if is(word, "NOVALUES") {
                return Err(CommandError::Text(
                    "ERR NOVALUES option can only be used in HSCAN",
                ));
            }
            let value = args.get(at + 1).ok_or(CommandError::Syntax)?;
            if is(word, "COUNT") {
                options.count = match integer(value)? {
                    count @ 1.. => usize::try_from(count).unwrap_or(usize::MAX),
                    _ => return Err(CommandError::Syntax),
                };
            } else if is(word, "MATCH") {
                // The bare star stands for everything; as a pattern it would miss the empty key.
                options.pattern = (value != b"*").then_some(value);
            } else if is(word, "TYPE") {
                options.value_type = Some(value);
            } else {
                return Err(CommandError::Syntax);
            }
            at += 2;
        }
        Ok(options)
    }

    fn want(&self, name: &[u8]) -> bool {
        self.pattern
            .is_none_or(|pattern| glob::matches(pattern, name, false))
            && self.value_type.is_none_or(|wanted| is(wanted, "STRING"))
    }
}

fn scan(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let cursor =
        number::parse_u64_lenient(&cx.args[1]).ok_or(CommandError::Text("ERR invalid cursor"))?;
    let options = Options::parse(cx.args)?;
    let mut names: Vec<Box<[u8]>> = Vec::new();
    let next = cx.unit.scan(cursor, options.count, |entry| {
        if options.want(entry.key()) {
            names.push(entry.key().into());
        }
    });
    cx.reply.array(2);
    cx.reply.bulk(number::format_u64(next).as_bytes());
    cx.reply.array(names.len());
    for name in &names {
        cx.reply.bulk(name);
    }
    Ok(())
}
