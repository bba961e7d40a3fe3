//! MEMORY: what the server's memory is used for.
//!
//! The fields of MEMORY STATS are Redis's, with values that are true of Weft: 0 where it has no such thing.

use std::fmt::Write as _;

use weft_keyspace::{Keyspace, PLACE_BYTES};

use super::options::{integer, is};
use super::reply_help;
use crate::command::{Argument, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::Context;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::memory::MemoryUse;
use crate::session::Session;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "memory",
    arity: -2,
    flags: Flags::NONE,
    group: "server",
    since: "4.0.0",
    complexity: "Depends on subcommand.",
    summary: "Commands about the use of memory.",
    subcommands: SUBCOMMANDS,
    ..CommandRow::DEFAULT
}];

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "doctor",
        summary: "Reports what is unusual about the use of memory.",
        handler: doctor,
        ..ABOUT_THE_SERVER
    },
    CommandRow {
        name: "help",
        flags: Flags::LOADING.with(Flags::STALE),
        tips: &[],
        summary: "Lists the subcommands.",
        handler: help,
        ..ABOUT_THE_SERVER
    },
    CommandRow {
        name: "malloc-stats",
        complexity: "Depends on how much memory is allocated",
        summary: "Shows the general allocator's own report.",
        handler: malloc_stats,
        ..ABOUT_THE_SERVER
    },
    CommandRow {
        name: "purge",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        complexity: "Depends on how much memory is allocated",
        summary: "Gives memory that is held for nobody to the system.",
        handler: purge,
        ..ABOUT_THE_SERVER
    },
    CommandRow {
        name: "stats",
        summary: "Tells what memory is used for.",
        handler: stats,
        ..ABOUT_THE_SERVER
    },
    CommandRow {
        name: "usage",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(2, KeyFlags::RO)],
        group: "server",
        since: "4.0.0",
        complexity: "O(N) in the number of samples",
        summary: "Tells how many bytes a key and its value take.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("count").token("SAMPLES").optional(),
        ],
        handler: usage,
        ..CommandRow::DEFAULT
    },
];

/// What the subcommands without arguments have in common.
const ABOUT_THE_SERVER: CommandRow = CommandRow {
    arity: 2,
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    group: "server",
    since: "4.0.0",
    complexity: "O(1)",
    ..CommandRow::DEFAULT
};

/// The bytes of the entry, what lies outside it, and its place in the table. Nothing has to be sampled to know them.
fn usage(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let mut at = 3;
    while let Some(word) = cx.args.get(at) {
        match cx.args.get(at + 1) {
            Some(count) if is(word, "SAMPLES") => {
                if integer(count)? < 0 {
                    return Err(CommandError::Syntax);
                }
            }
            _ => return Err(CommandError::Syntax),
        }
        at += 2;
    }
    match cx.unit.look(cx.keys[0]) {
        Some(entry) => {
            let bytes = entry.allocated_bytes() + PLACE_BYTES;
            cx.reply.integer(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        None => cx.reply.null(),
    }
    Ok(())
}

/// What MEMORY STATS, MEMORY DOCTOR and INFO tell, in bytes where it says nothing else.
pub(super) struct Account {
    pub(super) memory: MemoryUse,
    pub(super) resident: u64,
    pub(super) clients: u64,
    databases: Vec<Database>,
}

/// A database with keys.
struct Database {
    number: usize,
    keys: u64,
    /// Its tables.
    tables: u64,
    /// What keys cost beside their names and values: tables and headers.
    main: u64,
    /// What deadlines cost.
    expires: u64,
}

impl Database {
    fn of(keyspace: &Keyspace, number: usize) -> Option<Self> {
        /// An entry's header, and its deadline if it has one.
        const WORD: u64 = 8;
        let keys = keyspace.key_count(number) as u64;
        (keys > 0).then(|| {
            let tables = keyspace.database_memory(number).tables;
            Self {
                number,
                keys,
                tables,
                main: tables + keys * WORD,
                expires: keyspace.deadline_count(number) as u64 * WORD,
            }
        })
    }
}

impl Account {
    pub(super) fn of(engine: &Engine, now_s: u64) -> Self {
        let keyspace = &engine.keyspace;
        let connected = u64::try_from(engine.totals().connected_clients).unwrap_or(0);
        Self {
            memory: engine.memory_use(now_s),
            resident: engine.host.process().resident_bytes,
            clients: connected * size_of::<Session>() as u64,
            databases: (0..keyspace.databases())
                .filter_map(|number| Database::of(keyspace, number))
                .collect(),
        }
    }

    fn sum(&self, of: impl Fn(&Database) -> u64) -> u64 {
        self.databases.iter().map(of).sum()
    }

    /// All that is not the keys' names and values.
    pub(super) fn overhead(&self) -> u64 {
        self.memory.startup + self.clients + self.sum(|database| database.main + database.expires)
    }

    pub(super) fn dataset(&self) -> u64 {
        self.memory.used.saturating_sub(self.overhead())
    }

    /// What the allocator holds, as allocated, as active and as resident. The keyspace's pages count as the allocator's.
    pub(super) fn held(&self) -> [u64; 3] {
        let allocator = &self.memory.allocator;
        [allocator.allocated, allocator.active, allocator.resident]
            .map(|bytes| bytes + self.memory.mapped)
    }

    /// What is in use beyond an empty server's.
    pub(super) fn net(&self) -> u64 {
        self.memory.used.saturating_sub(self.memory.startup).max(1)
    }
}

/// A value of MEMORY STATS.
enum Figure {
    Bytes(u64),
    Difference(u64, u64),
    Number(f64),
}

/// `part` of `whole`; 0 of nothing.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn stats(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    use Figure::{Bytes, Difference, Number};
    let account = Account::of(cx.engine, cx.unit.clock_us() / 1_000_000);
    let memory = &account.memory;
    let keys = account.sum(|database| database.keys);
    let [allocated, active, resident] = account.held();
    let before = [
        ("peak.allocated", Bytes(memory.peak)),
        ("total.allocated", Bytes(memory.used)),
        ("startup.allocated", Bytes(memory.startup)),
        ("replication.backlog", Bytes(0)),
        ("replica.fullsync.buffer", Bytes(0)),
        ("clients.slaves", Bytes(0)),
        ("clients.normal", Bytes(account.clients)),
        ("cluster.links", Bytes(0)),
        ("aof.buffer", Bytes(0)),
        ("lua.caches", Bytes(0)),
        ("functions.caches", Bytes(0)),
        ("script.VMs", Bytes(0)),
    ];
    let after = [
        (
            "overhead.db.hashtable.lut",
            Bytes(account.sum(|database| database.tables)),
        ),
        ("overhead.db.hashtable.rehashing", Bytes(0)),
        ("overhead.total", Bytes(account.overhead())),
        ("db.dict.rehashing.count", Bytes(0)),
        ("keys.count", Bytes(keys)),
        (
            "keys.bytes-per-key",
            Bytes(account.dataset().checked_div(keys).unwrap_or(0)),
        ),
        ("dataset.bytes", Bytes(account.dataset())),
        (
            "dataset.percentage",
            Number(ratio(account.dataset(), account.net()) * 100.0),
        ),
        (
            "peak.percentage",
            Number(ratio(memory.used, memory.peak) * 100.0),
        ),
        ("allocator.allocated", Bytes(allocated)),
        ("allocator.active", Bytes(active)),
        ("allocator.resident", Bytes(resident)),
        ("allocator.muzzy", Bytes(0)),
        (
            "allocator-fragmentation.ratio",
            Number(ratio(active, allocated)),
        ),
        (
            "allocator-fragmentation.bytes",
            Difference(active, allocated),
        ),
        ("allocator-rss.ratio", Number(ratio(resident, active))),
        ("allocator-rss.bytes", Difference(resident, active)),
        (
            "rss-overhead.ratio",
            Number(ratio(account.resident, resident)),
        ),
        ("rss-overhead.bytes", Difference(account.resident, resident)),
        (
            "fragmentation",
            Number(ratio(account.resident, memory.used)),
        ),
        (
            "fragmentation.bytes",
            Difference(account.resident, memory.used),
        ),
    ];
    cx.reply
        .map(before.len() + account.databases.len() + after.len());
    reply_figures(cx, &before);
    for database in &account.databases {
        cx.reply.bulk(format!("db.{}", database.number).as_bytes());
        cx.reply.map(2);
        reply_figures(
            cx,
            &[
                ("overhead.hashtable.main", Bytes(database.main)),
                ("overhead.hashtable.expires", Bytes(database.expires)),
            ],
        );
    }
    reply_figures(cx, &after);
    Ok(())
}

fn reply_figures(cx: &mut Context<'_, '_>, figures: &[(&str, Figure)]) {
    for (name, figure) in figures {
        cx.reply.bulk(name.as_bytes());
        match figure {
            Figure::Bytes(bytes) => cx.reply.integer(i64::try_from(*bytes).unwrap_or(i64::MAX)),
            Figure::Difference(bytes, less) => {
                cx.reply.integer((*bytes as i64).wrapping_sub(*less as i64));
            }
            Figure::Number(number) => cx.reply.double(*number),
        }
    }
}

/// Below this use, in bytes, ratios say nothing.
const SMALL: u64 = 5 << 20;
/// From this ratio on memory in use counts as far below its peak, or memory held as far above what is used.
const FAR: f64 = 1.4;

fn doctor(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let report = diagnosis(&Account::of(cx.engine, cx.unit.clock_us() / 1_000_000));
    cx.reply.verbatim("txt", report.as_bytes());
    Ok(())
}

fn diagnosis(account: &Account) -> String {
    let memory = &account.memory;
    if memory.used < SMALL {
        return "Too little memory is in use to judge: ratios mean something from 5 MiB on.\n"
            .into();
    }
    let held = memory.allocator.active + memory.mapped;
    let kept = memory.allocator.resident + memory.mapped;
    let findings = [
        (
            ratio(memory.peak, memory.used),
            "Peak: at some time {} times as much memory was in use. What was freed may still be resident; MEMORY PURGE gives \
             it back now.",
        ),
        (
            ratio(held, memory.used),
            "Fragmentation: the pages that hold allocations are {} times as large as what is allocated in them. Values that \
             grow and shrink leave gaps; a restart from a saved file closes them.",
        ),
        (
            ratio(kept, held.max(1)),
            "Retained pages: the allocator keeps {} times the pages it needs. They go back to the system within seconds; \
             MEMORY PURGE does it now.",
        ),
        (
            ratio(account.resident, kept.max(1)),
            "Other resident memory: the process has {} times the memory of its allocator in RAM: code, stacks, buffers of the \
             system.",
        ),
    ];
    let mut report = String::new();
    for (found, text) in findings {
        if found > FAR {
            let line = text.replace("{}", &format!("{found:.2}"));
            let _ = writeln!(report, "* {line}");
        }
    }
    if report.is_empty() {
        report.push_str("Nothing unusual about the use of memory.\n");
    }
    report
}

fn malloc_stats(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let report = cx.engine.host.allocator_report();
    cx.reply.verbatim("txt", report.as_bytes());
    Ok(())
}

fn purge(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.engine.keyspace.collect_retired();
    cx.engine.host.purge_allocator();
    cx.reply.ok();
    Ok(())
}

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_help(
        &mut cx.reply,
        &[
            "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "DOCTOR",
            "    Return memory problems reports.",
            "MALLOC-STATS",
            "    Return internal statistics report from the memory allocator.",
            "PURGE",
            "    Attempt to purge dirty pages for reclamation by the allocator.",
            "STATS",
            "    Return information about the memory usage of the server.",
            "USAGE <key> [SAMPLES <count>]",
            "    Return memory in bytes used by <key> and its value. Nested values are",
            "    sampled up to <count> times (default: 5, 0 means sample all).",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
