//! LCS: the longest common subsequence of two strings.

use weft_data::lcs::{Lcs, MatchRange, Wanted};
use weft_resp::Writer;

use super::options::{integer, is};
use super::values::Captured;
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "lcs",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::STRING,
    keys: &[KeySpec::range(1, 2, 1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    group: "string",
    since: "7.0.0",
    complexity: "O(N*M) in the lengths of the strings",
    summary: "Finds the longest common subsequence of two strings.",
    arguments: &[
        Argument::key("key1", 0),
        Argument::key("key2", 0),
        Argument::word("len", "LEN").optional(),
        Argument::word("idx", "IDX").optional(),
        Argument::integer("min-match-len")
            .token("MINMATCHLEN")
            .optional(),
        Argument::word("withmatchlen", "WITHMATCHLEN").optional(),
    ],
    handler: lcs,
    ..CommandRow::DEFAULT
}];

/// What of the result is wanted, and how it is shown.
#[derive(Clone, Copy, Default)]
struct Options {
    length: bool,
    ranges: bool,
    with_lengths: bool,
    length_min: usize,
}

impl Options {
    fn parse(args: weft_resp::Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut at = 3;
        while let Some(word) = args.get(at) {
            if is(word, "IDX") {
                options.ranges = true;
            } else if is(word, "LEN") {
                options.length = true;
            } else if is(word, "WITHMATCHLEN") {
                options.with_lengths = true;
            } else if is(word, "MINMATCHLEN") && at + 1 < args.len() {
                at += 1;
                options.length_min = usize::try_from(integer(&args[at])?).unwrap_or(0);
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        if options.length && options.ranges {
            return Err(CommandError::Text(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }

    const fn wanted(self) -> Wanted {
        match self {
            Self {
                ranges: true,
                length_min,
                ..
            } => Wanted::Ranges { length_min },
            Self { length: true, .. } => Wanted::Length,
            Self { .. } => Wanted::Sequence,
        }
    }
}

const NOT_STRINGS: CommandError =
    CommandError::Text("ERR The specified keys must contain string values");

fn lcs(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let strings = [0, 1].map(|index| cx.unit.read(cx.keys[index]));
    if (strings.iter().flatten()).any(|entry| entry.string().is_none()) {
        return Err(NOT_STRINGS);
    }
    let captured = strings.map(|entry| match entry.and_then(|entry| entry.string()) {
        Some(string) => Captured::of(string),
        None => Captured::Bytes(Vec::new()),
    });
    let options = Options::parse(cx.args)?;
    let [a, b] = captured.map(Captured::into_bytes);
    let memory_max = cx.worker.settings().proto_max_bulk_len() as u64;
    let lcs = Lcs::new(a, b, options.wanted(), memory_max)
        .map_err(|error| CommandError::Composed(error.to_string().into_bytes().into()))?;
    cx.continue_with(Computation { lcs, options });
    Ok(())
}

/// The computation, and what is made of its result.
struct Computation {
    lcs: Lcs<Vec<u8>>,
    options: Options,
}

impl Steps for Computation {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        let cells = budget.take(u64::MAX);
        if !self.lcs.step(usize::try_from(cells).unwrap_or(usize::MAX)) {
            return Progress::More;
        }
        if self.options.ranges {
            self.reply_ranges(reply);
        } else if self.options.length {
            reply.integer(self.lcs.length() as i64);
        } else {
            reply.bulk(self.lcs.sequence());
        }
        Progress::Done
    }
}

impl Computation {
    fn reply_ranges(&self, reply: &mut Writer<'_>) {
        let ranges = self.lcs.ranges();
        reply.map(2);
        reply.bulk(b"matches");
        reply.array(ranges.len());
        for MatchRange {
            a_start,
            b_start,
            length,
        } in ranges
        {
            reply.array(if self.options.with_lengths { 3 } else { 2 });
            for start in [a_start, b_start] {
                reply.array(2);
                reply.integer(*start as i64);
                reply.integer((start + length - 1) as i64);
            }
            if self.options.with_lengths {
                reply.integer(*length as i64);
            }
        }
        reply.bulk(b"len");
        reply.integer(self.lcs.length() as i64);
    }
}
