//! INFO: facts and counters, section by section, in the lines that monitoring tools parse.
//!
//! Every section has all fields of Redis's, in its order; where Weft has no such thing a field has the value it has in a Redis
//! that makes no use of it. What is Weft's own has names of its own, behind Redis's.

mod commands;
mod keyspace;
mod memory;
mod server;
mod stats;
mod threads;

use std::cell::OnceCell;
use std::fmt::{Display, Write as _};

use weft_keyspace::Census;

use super::options::is;
use crate::action::ProcessFacts;
use crate::command::{Argument, Categories, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;
use crate::recent::Window;
use crate::statistics::{Account, Totals};

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "info",
    arity: -1,
    flags: Flags::LOADING.with(Flags::STALE).with(Flags::WALKS),
    categories: Categories::DANGEROUS,
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    group: "server",
    since: "1.0.0",
    complexity: "O(1)",
    summary: "Reports facts and counters of the server.",
    history: &[("7.0.0", "Takes several sections.")],
    arguments: &[Argument::string("section").optional().multiple()],
    handler: info,
    ..CommandRow::DEFAULT
}];

/// What the sections are written from.
struct Facts<'a, 'b, 'k> {
    cx: &'a Context<'b, 'k>,
    process: ProcessFacts,
    /// Each worker's counters.
    workers: Vec<Account>,
    totals: Totals,
    now_us: u64,
    monotonic_ns: u64,
    /// Drawn up when first asked for, since that takes latches.
    databases: OnceCell<Vec<Database>>,
}

/// A database with keys: its number, how many there are, and what is known of them.
type Database = (usize, usize, Census);

impl Facts<'_, '_, '_> {
    fn databases(&self) -> impl Iterator<Item = &Database> {
        let keyspace = &self.cx.engine.keyspace;
        let draw_up = || {
            (0..keyspace.databases())
                .map(|number| (number, keyspace.key_count(number)))
                .filter(|(_, keys)| *keys > 0)
                .map(|(number, keys)| (number, keys, keyspace.census(number)))
                .collect()
        };
        self.databases.get_or_init(draw_up).iter()
    }

    /// The last seconds of all workers.
    fn recent(&self) -> Window {
        Window::of(
            self.workers.iter().map(|worker| &worker.statistics.recent),
            self.monotonic_ns,
            self.cx.engine.statistics_reset_ns(),
        )
    }
}

type Write = fn(&Facts<'_, '_, '_>, &mut Lines);

struct Section {
    name: &'static str,
    title: &'static str,
    shown: Shown,
    write: Write,
}

/// When a section is shown, besides by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// If nothing is asked for in particular.
    ByDefault,
    /// If all is asked for.
    WithAll,
    /// Never.
    ByName,
}

/// All sections, in the order they are printed.
const SECTIONS: &[Section] = {
    const fn section(
        name: &'static str,
        title: &'static str,
        shown: Shown,
        write: Write,
    ) -> Section {
        Section {
            name,
            title,
            shown,
            write,
        }
    }
    use Shown::{ByDefault, ByName, WithAll};
    &[
        section("server", "Server", ByDefault, server::server),
        section("clients", "Clients", ByDefault, server::clients),
        section("memory", "Memory", ByDefault, memory::memory),
        section("persistence", "Persistence", ByDefault, server::persistence),
        section("threads", "Threads", ByDefault, threads::threads),
        section("stats", "Stats", ByDefault, stats::stats),
        section("replication", "Replication", ByDefault, server::replication),
        section("cpu", "CPU", ByDefault, server::cpu),
        section("modules", "Modules", ByDefault, |_, _| {}),
        section(
            "commandstats",
            "Commandstats",
            WithAll,
            commands::commandstats,
        ),
        section("errorstats", "Errorstats", ByDefault, commands::errorstats),
        section(
            "latencystats",
            "Latencystats",
            WithAll,
            commands::latencystats,
        ),
        section("cluster", "Cluster", ByDefault, |_, lines| {
            lines.field("cluster_enabled", 0)
        }),
        section("keyspace", "Keyspace", ByDefault, keyspace::keyspace),
        section("keysizes", "Keysizes", ByDefault, keyspace::keysizes),
        section("debug", "Debug", ByName, stats::debug),
        section("slowlog", "Slowlog", ByName, commands::slowlog),
    ]
};

/// The text being made.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn title(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push_str("\r\n");
        }
        let _ = write!(self.0, "# {title}\r\n");
    }

    fn field(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    /// Fields that all have the same value.
    fn fields(&mut self, names: &[&str], value: impl Display) {
        for name in names {
            self.field(name, &value);
        }
    }

    /// A number of bytes, and the same for people.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.field(name, bytes);
        self.field(&format!("{name}_human"), human(bytes));
    }
}

/// Bytes in the largest unit that leaves a number above one, as Redis shows them.
fn human(bytes: u64) -> String {
    const UNITS: [(&str, u32); 5] = [("P", 50), ("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    match UNITS.iter().find(|(_, bits)| bytes >> bits > 0) {
        Some((unit, bits)) => format!("{:.2}{unit}", bytes as f64 / (1_u64 << bits) as f64),
        None => format!("{bytes}B"),
    }
}

/// A sum of counters that cannot be below zero, however its parts were read.
fn positive(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn info(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let wanted = |section: &Section| {
        let named = |word: &[u8]| {
            word.eq_ignore_ascii_case(section.name.as_bytes())
                || is(word, "DEFAULT") && section.shown == Shown::ByDefault
                || (is(word, "ALL") || is(word, "EVERYTHING")) && section.shown != Shown::ByName
        };
        if cx.args.len() == 1 {
            section.shown == Shown::ByDefault
        } else {
            cx.args.iter().skip(1).any(named)
        }
    };
    let workers = cx.engine.accounts();
    let facts = Facts {
        cx,
        process: cx.engine.host.process(),
        totals: Totals::sum(workers.iter().map(|worker| &worker.totals)),
        workers,
        now_us: cx.unit.clock_us(),
        monotonic_ns: cx.unit.monotonic_ns(),
        databases: OnceCell::new(),
    };
    let mut lines = Lines::default();
    for section in SECTIONS {
        if wanted(section) {
            lines.title(section.title);
            (section.write)(&facts, &mut lines);
        }
    }
    cx.reply.verbatim("txt", lines.0.as_bytes());
    Ok(())
}
