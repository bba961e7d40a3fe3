//! All fields: HGETALL, HKEYS, HVALS, and HSCAN in small steps.

use weft_data::collection::Collection;
use weft_data::glob;
use weft_data::hash::{Field, Hash, Walk};
use weft_resp::Writer;

use super::super::scan::{ScanOptions, Scanned, cursor, reply_batch};
use super::{READ, hash, reply_value};
use crate::command::{Argument, CommandRow};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "hgetall",
        arity: 2,
        tips: &["nondeterministic_output_order"],
        complexity: "O(N) in the number of fields",
        summary: "Reads all fields of a hash.",
        arguments: &[Argument::key("key", 0)],
        handler: hgetall,
        ..READ
    },
    CommandRow {
        name: "hkeys",
        arity: 2,
        tips: &["nondeterministic_output_order"],
        complexity: "O(N) in the number of fields",
        summary: "Lists the names of a hash's fields.",
        arguments: &[Argument::key("key", 0)],
        handler: hkeys,
        ..READ
    },
    CommandRow {
        name: "hvals",
        arity: 2,
        tips: &["nondeterministic_output_order"],
        complexity: "O(N) in the number of fields",
        summary: "Lists the values of a hash's fields.",
        arguments: &[Argument::key("key", 0)],
        handler: hvals,
        ..READ
    },
    CommandRow {
        name: "hscan",
        arity: -3,
        tips: &["nondeterministic_output"],
        since: "2.8.0",
        complexity: "O(1) a call, O(N) for a whole walk",
        summary: "Walks through the fields of a hash in small steps.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("cursor"),
            Argument::pattern("pattern").token("MATCH").optional(),
            Argument::integer("count").token("COUNT").optional(),
            Argument::word("novalues", "NOVALUES").optional(),
        ],
        handler: hscan,
        ..READ
    },
];

/// What of each field is wanted.
#[derive(Clone, Copy)]
enum Wanted {
    Names,
    Values,
    Both,
}

impl Wanted {
    fn begin(self, reply: &mut Writer<'_>, fields: usize) {
        match self {
            Self::Both => reply.map(fields),
            Self::Names | Self::Values => reply.array(fields),
        }
    }

    /// How many replies a field makes where it is no pair of a map.
    const fn replies(self) -> usize {
        match self {
            Self::Both => 2,
            Self::Names | Self::Values => 1,
        }
    }

    fn write(self, reply: &mut Writer<'_>, field: &Field<'_>) {
        if !matches!(self, Self::Values) {
            reply.bulk(field.name);
        }
        if !matches!(self, Self::Names) {
            reply_value(reply, field.value);
        }
    }
}

fn hgetall(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Wanted::Both)
}

fn hkeys(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Wanted::Names)
}

fn hvals(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    list(cx, Wanted::Values)
}

/// Few fields are written at once, many in steps.
fn list(cx: &mut Context<'_, '_>, wanted: Wanted) -> Result<(), CommandError> {
    let Some((hash, now)) = hash(cx.unit, cx.keys[0])? else {
        wanted.begin(&mut cx.reply, 0);
        return Ok(());
    };
    if let Some(fields) = hash.few(now) {
        wanted.begin(&mut cx.reply, hash.live_len(now));
        fields.for_each(|field| wanted.write(&mut cx.reply, &field));
        return Ok(());
    }
    let listing = Listing {
        fields: hash.live_len(now),
        walk: Walk::new(hash.snapshot(), now),
        wanted,
        begun: false,
    };
    cx.continue_with(listing);
    Ok(())
}

/// The reply of HGETALL and its kin under way.
struct Listing {
    walk: Walk,
    fields: usize,
    wanted: Wanted,
    begun: bool,
}

impl Steps for Listing {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        /// About what a field takes in a reply, and how many bytes are copied in a nanosecond.
        const NS_PER_FIELD: u64 = 60;
        const BYTES_PER_NS: u64 = 8;
        let wanted = self.wanted;
        if !self.begun {
            wanted.begin(reply, self.fields);
            self.begun = true;
        }
        while !self.walk.is_over() && budget.left() > 0 {
            self.walk.step(|field| {
                let bytes = field.name.len() + field.value.len();
                budget.take(NS_PER_FIELD + bytes as u64 / BYTES_PER_NS);
                wanted.write(reply, &field);
            });
        }
        if self.walk.is_over() {
            Progress::Done
        } else {
            Progress::More
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        vec![Box::new(Collection::Hash(self.walk.into_hash()))]
    }
}

/// Fields that a scan looks at while it has the latch; a call that is to look at more does so in steps.
const SCANNED_AT_ONCE: usize = 256;

fn hscan(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let cursor = cursor(&cx.args[2])?;
    let Some((hash, now)) = hash(cx.unit, cx.keys[0])? else {
        reply_batch(&mut cx.reply, 0, 0);
        return Ok(());
    };
    let options = ScanOptions::parse(cx.args, 3, Scanned::Hash)?;
    let wanted = if options.no_values {
        Wanted::Names
    } else {
        Wanted::Both
    };
    if options.count > SCANNED_AT_ONCE && hash.few(now).is_none() {
        let scanning = Scanning {
            hash: hash.snapshot(),
            now_ms: now,
            from: cursor,
            count: options.count,
            pattern: options.pattern().map(Box::from),
            wanted,
            at: cursor,
            left: options.count,
            found: 0,
            is_counted: false,
        };
        cx.continue_with(scanning);
        return Ok(());
    }
    let mut found: Vec<Field<'_>> = Vec::new();
    let next = hash.scan(cursor, options.count, now, |field| {
        if options.wants(field.name) {
            found.push(field);
        }
    });
    reply_batch(&mut cx.reply, next, found.len() * wanted.replies());
    found
        .iter()
        .for_each(|field| wanted.write(&mut cx.reply, field));
    Ok(())
}

/// The reply of a long HSCAN under way: the fields are counted first and then passed again to be written, so that nothing is copied.
struct Scanning {
    hash: Hash,
    now_ms: u64,
    from: u64,
    count: usize,
    pattern: Option<Box<[u8]>>,
    wanted: Wanted,
    /// Where this pass is, and how many fields it has yet to look at.
    at: u64,
    left: usize,
    found: usize,
    is_counted: bool,
}

impl Scanning {
    /// Looks at a few fields and gives `each` those that are wanted; whether the pass is over.
    fn pass(&mut self, mut each: impl FnMut(&Field<'_>)) -> bool {
        const FIELDS_A_STEP: usize = 32;
        let some = self.left.min(FIELDS_A_STEP);
        let pattern = self.pattern.as_deref();
        self.at = self
            .hash
            .as_ref()
            .scan(self.at, some, self.now_ms, |field| {
                if pattern.is_none_or(|pattern| glob::matches(pattern, field.name, false)) {
                    each(&field);
                }
            });
        self.left -= some;
        self.at == 0 || self.left == 0
    }
}

impl Steps for Scanning {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        /// About what a few fields take to be looked at, and one to be written.
        const NS_PER_PASS: u64 = 1500;
        const NS_PER_FIELD: u64 = 60;
        const BYTES_PER_NS: u64 = 8;
        let wanted = self.wanted;
        while budget.left() > 0 {
            budget.take(NS_PER_PASS);
            if self.is_counted {
                let is_over = self.pass(|field| {
                    let bytes = field.name.len() + field.value.len();
                    budget.take(NS_PER_FIELD + bytes as u64 / BYTES_PER_NS);
                    wanted.write(reply, field);
                });
                if is_over {
                    return Progress::Done;
                }
            } else {
                let mut found = 0;
                let is_over = self.pass(|_| found += 1);
                self.found += found;
                if is_over {
                    reply_batch(reply, self.at, self.found * wanted.replies());
                    (self.at, self.left) = (self.from, self.count);
                    self.is_counted = true;
                }
            }
        }
        Progress::More
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        vec![Box::new(Collection::Hash(self.hash))]
    }
}
