//! SORT: the elements of a list, a set or a sorted set in an order of the caller's, replied or stored.
//!
//! Owns the rows and the way of one SORT. Without patterns it captures the collection under the latch of its key, and loads, sorts and
//! replies in steps. With patterns it reads keys that it does not name, so that dispatch gives it the whole keyspace and all happens at
//! once; so does what is stored.

mod batch;
mod load;
mod merging;
mod options;
mod patterns;
mod store;

use std::ops::Range;

use weft_data::collection::{Collection, CollectionRef, Kind};
use weft_resp::Writer;

use self::batch::Batch;
use self::load::Loader;
use self::options::{Get, Options};
use self::patterns::Pattern;
use super::values::reply_value;
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// So many elements are sorted under the latch, without a snapshot.
const AT_ONCE_MAX: usize = 128;
/// About what an element takes in a reply, and how many bytes are copied in a nanosecond.
const NS_PER_REPLY: u64 = 20;
const BYTES_PER_NS: u64 = 8;

const KEY: Argument = Argument::key("key", 0);
const BY: Argument = Argument {
    key_spec: Some(1),
    ..Argument::pattern("by-pattern")
        .token("BY")
        .display("pattern")
        .optional()
};
const LIMIT: Argument = Argument::block(
    "limit",
    &[Argument::integer("offset"), Argument::integer("count")],
)
.token("LIMIT")
.optional();
const GET: Argument = Argument {
    key_spec: Some(1),
    ..Argument::pattern("get-pattern")
        .token("GET")
        .display("pattern")
        .optional()
        .multiple_token()
};
const ORDER: Argument = Argument::one_of(
    "order",
    &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")],
)
.optional();
const ALPHA: Argument = Argument::word("sorting", "ALPHA").optional();

const SOURCE: KeySpec = KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS));
const FOREIGN: KeySpec = KeySpec::unknown(KeyFlags::RO.with(KeyFlags::ACCESS))
    .notes("Keys that BY and GET lead to: their names depend on what is sorted");
const DESTINATION: KeySpec = KeySpec::unknown(KeyFlags::OW.with(KeyFlags::UPDATE))
    .notes("The key behind the last STORE, which can stand anywhere");

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "sort",
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::MOVABLE_KEYS),
        keys: &[SOURCE, FOREIGN, DESTINATION],
        key_finder: Some(options::keys),
        since: "1.0.0",
        summary: "Lists the elements of a list, a set or a sorted set in order, or stores them as a list.",
        arguments: &[
            KEY,
            BY,
            LIMIT,
            GET,
            ORDER,
            ALPHA,
            Argument::key("destination", 2).token("STORE").optional(),
        ],
        handler: sort,
        ..READ
    },
    CommandRow {
        name: "sort_ro",
        handler: sort_ro,
        ..READ
    },
];

const READ: CommandRow = CommandRow {
    arity: -2,
    flags: Flags::READONLY.with(Flags::MOVABLE_KEYS),
    categories: Categories::SET
        .with(Categories::SORTED_SET)
        .with(Categories::LIST)
        .with(Categories::DANGEROUS),
    keys: &[SOURCE, FOREIGN],
    key_finder: Some(options::keys_read),
    needs_all: Some(options::needs_all),
    group: "generic",
    since: "7.0.0",
    complexity: "O(N+M*log(M)) with N elements to sort and M to reply; O(N) if they are not sorted",
    summary: "Lists the elements of a list, a set or a sorted set in order.",
    arguments: &[KEY, BY, LIMIT, GET, ORDER, ALPHA],
    ..CommandRow::DEFAULT
};

const NOT_NUMBERS: CommandError =
    CommandError::Text("ERR One or more scores can't be converted into double");

fn sort(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    run(cx, true)
}

fn sort_ro(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    run(cx, false)
}

fn run(cx: &mut Context<'_, '_>, may_store: bool) -> Result<(), CommandError> {
    let mut options = Options::parse(cx.args, may_store)?;
    let entry = cx.unit.read(cx.keys[0]);
    let collection = match entry.map(|entry| entry.collection()) {
        None => CollectionRef::Packed(&[]),
        Some(Some(collection)) if is_sortable(collection.kind()) => collection,
        Some(_) => return Err(CommandError::WrongType),
    };
    if collection.is_empty() {
        match options.store {
            Some(_) => store::replace(cx, cx.keys[1], Vec::new()),
            None => cx.reply.array(0),
        }
        return Ok(());
    }
    if options.store.is_some() && options.unsorted && collection.kind() == Kind::Set {
        // A set has no order that everybody who replays this would agree on.
        options.unsorted = false;
        options.alpha = true;
        options.by = None;
    }
    let at_once = options.looks_up() || options.store.is_some() || collection.len() <= AT_ONCE_MAX;
    let mut job = Job::new(options, collection);
    if !at_once {
        cx.continue_with(job);
        return Ok(());
    }
    while job.loader.step(&mut job.batch) {}
    if let Some(by) = job.options.by {
        weigh(cx, &mut job.batch, by);
    }
    if job.batch.failed() {
        return Err(NOT_NUMBERS);
    }
    while !job.merge(&mut Budget::slice()) {}
    match job.options.store {
        Some(_) => {
            let values = store::values(cx, &job);
            cx.worker.reap_snapshots(job.into_snapshots());
            store::replace(cx, cx.keys[1], values);
        }
        None => {
            reply_header(&mut cx.reply, &job);
            for index in job.wanted() {
                reply_one(cx, &job, index);
            }
            cx.worker.reap_snapshots(job.into_snapshots());
        }
    }
    Ok(())
}

/// Looks up what the elements are sorted by.
fn weigh(cx: &Context<'_, '_>, batch: &mut Batch, by: usize) {
    let Some(pattern) = Pattern::parse(&cx.args[by]) else {
        return;
    };
    let mut name = Vec::new();
    for index in 0..batch.len() {
        pattern.write_name(&batch.text(index), &mut name);
        let found = patterns::look(cx.unit, &pattern, &name);
        match found {
            Some(found) if batch.weighs_integer(index, found.value()) => {}
            found => batch.weigh(index, found.map(patterns::Found::text).as_deref()),
        }
    }
}

/// One SORT under way.
struct Job {
    options: Options,
    loader: Loader,
    batch: Batch,
    /// Those of the loaded elements that are wanted.
    window: Range<usize>,
    phase: Phase,
}

enum Phase {
    Loading,
    Sorting,
    /// The next element to be replied.
    Replying(usize),
}

impl Job {
    fn new(options: Options, collection: CollectionRef<'_>) -> Self {
        let wanted = options.window(collection.len());
        // What has an order of its own and keeps it need not be loaded whole.
        let ordered = options.unsorted && collection.kind() != Kind::Set;
        let (part, window) = if ordered {
            (wanted.clone(), 0..wanted.len())
        } else {
            (0..collection.len(), wanted)
        };
        let backwards = ordered && options.descending;
        Self {
            batch: Batch::new(&options, part.len()),
            loader: Loader::new(collection, part, backwards),
            options,
            window,
            phase: Phase::Loading,
        }
    }

    /// Sorts on until done or until the budget is spent; whether it is done.
    fn merge(&mut self, budget: &mut Budget) -> bool {
        if self.options.unsorted {
            return true;
        }
        self.batch.sort(self.options.descending, budget)
    }

    /// What the reaper has to free.
    #[expect(clippy::vec_box, reason = "they come in boxes and go in boxes")]
    fn into_snapshots(self) -> Vec<Box<Collection>> {
        self.loader.into_large().into_iter().collect()
    }

    fn wanted(&self) -> Range<usize> {
        self.window.clone()
    }
}

const fn is_sortable(kind: Kind) -> bool {
    matches!(kind, Kind::List | Kind::Set | Kind::SortedSet)
}

fn reply_header(reply: &mut Writer<'_>, job: &Job) {
    reply.array(job.window.len() * job.options.gets.len().max(1));
}

/// Replies one element, or what is to be got for it.
fn reply_one(cx: &mut Context<'_, '_>, job: &Job, index: usize) {
    if job.options.gets.is_empty() {
        return job.batch.reply(&mut cx.reply, index);
    }
    let mut name = Vec::new();
    for get in &job.options.gets {
        let at = match *get {
            Get::Itself => {
                job.batch.reply(&mut cx.reply, index);
                continue;
            }
            Get::Nothing => {
                cx.reply.null();
                continue;
            }
            Get::Pattern(at) => at,
        };
        let pattern = Pattern::parse(&cx.args[at]);
        let found = pattern.and_then(|pattern| {
            pattern.write_name(&job.batch.text(index), &mut name);
            patterns::look(cx.unit, &pattern, &name)
        });
        match found {
            None => cx.reply.null(),
            Some(found) => reply_value(&mut cx.reply, found.value()),
        }
    }
}

impl Steps for Job {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        loop {
            match self.phase {
                Phase::Loading => {
                    while budget.left() > 0 {
                        if !self.loader.step(&mut self.batch) {
                            self.phase = Phase::Sorting;
                            break;
                        }
                        budget.take(load::NS_PER_STEP);
                    }
                    if self.batch.failed() {
                        return Progress::Done;
                    }
                }
                Phase::Sorting => {
                    if self.merge(budget) {
                        reply_header(reply, self);
                        self.phase = Phase::Replying(self.window.start);
                    }
                }
                Phase::Replying(next) => {
                    let mut next = next;
                    while next < self.window.end && budget.left() > 0 {
                        let len = self.batch.text_len(next);
                        budget.take(NS_PER_REPLY + len as u64 / BYTES_PER_NS);
                        if self.options.gets.is_empty() {
                            self.batch.reply(reply, next);
                        }
                        for get in &self.options.gets {
                            match get {
                                Get::Itself => self.batch.reply(reply, next),
                                // What looks up is done at once.
                                Get::Nothing | Get::Pattern(_) => reply.null(),
                            }
                        }
                        next += 1;
                    }
                    self.phase = Phase::Replying(next);
                    if next == self.window.end {
                        return Progress::Done;
                    }
                }
            }
            if budget.left() == 0 {
                return Progress::More;
            }
        }
    }

    fn failure(&self) -> Option<CommandError> {
        self.batch.failed().then_some(NOT_NUMBERS)
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        self.into_snapshots()
    }
}
