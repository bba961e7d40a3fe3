//! INFO: facts and counters, section by section, in the lines that monitoring tools parse.

mod threads;

use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering;

use super::options::is;
use crate::action::ProcessFacts;
use crate::command::{Argument, Categories, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;
use crate::identity::{REDIS_VERSION, WEFT_VERSION};
use crate::recent::Window;
use crate::statistics::{Account, Counter, Totals};

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "info",
    arity: -1,
    flags: Flags::LOADING.with(Flags::STALE),
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
}

type Section = fn(&Facts<'_, '_, '_>, &mut Lines);

/// All sections, in the order they are printed.
const SECTIONS: &[(&str, &str, Section)] = &[
    ("server", "Server", server),
    ("clients", "Clients", clients),
    ("memory", "Memory", memory),
    ("persistence", "Persistence", persistence),
    ("threads", "Threads", threads::threads),
    ("stats", "Stats", stats),
    ("replication", "Replication", replication),
    ("cpu", "CPU", cpu),
    ("cluster", "Cluster", cluster),
    ("keyspace", "Keyspace", keyspace),
];

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
}

fn info(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let wanted = |name: &str| {
        let named = |word: &[u8]| {
            word.eq_ignore_ascii_case(name.as_bytes())
                || is(word, "DEFAULT")
                || is(word, "ALL")
                || is(word, "EVERYTHING")
        };
        cx.args.len() == 1 || cx.args.iter().skip(1).any(named)
    };
    let workers = cx.engine.accounts();
    let facts = Facts {
        cx,
        process: cx.engine.host.process(),
        totals: Totals::sum(workers.iter().map(|worker| &worker.totals)),
        workers,
        now_us: cx.unit.clock_us(),
        monotonic_ns: cx.unit.monotonic_ns(),
    };
    let mut lines = Lines::default();
    for (name, title, section) in SECTIONS {
        if wanted(name) {
            lines.title(title);
            section(&facts, &mut lines);
        }
    }
    cx.reply.verbatim("txt", lines.0.as_bytes());
    Ok(())
}

fn server(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let (identity, process) = (&facts.cx.engine.identity, &facts.process);
    let settings = facts.cx.worker.settings();
    let uptime_s = (facts.now_us / 1000).saturating_sub(identity.started_ms) / 1000;
    lines.field("redis_version", REDIS_VERSION);
    lines.field("weft_version", WEFT_VERSION);
    lines.field("redis_mode", "standalone");
    lines.field("os", &process.operating_system);
    lines.field("arch_bits", usize::BITS);
    lines.field("multiplexing_api", &process.io_driver);
    lines.field("process_id", process.process_id);
    lines.field("run_id", &identity.run_id);
    lines.field("tcp_port", settings.port());
    lines.field("server_time_usec", facts.now_us);
    lines.field("uptime_in_seconds", uptime_s);
    lines.field("uptime_in_days", uptime_s / 86400);
    lines.field("hz", settings.hz());
    lines.field("configured_hz", settings.hz());
    lines.field("executable", &process.executable);
    let config_file = identity
        .config_file
        .as_ref()
        .map(|path| path.display().to_string());
    lines.field("config_file", config_file.unwrap_or_default());
    let several = facts.cx.engine.active_workers.load(Ordering::Relaxed) > 1;
    lines.field("io_threads_active", u8::from(several));
}

fn clients(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    lines.field("connected_clients", facts.totals.connected_clients);
    lines.field("maxclients", facts.cx.worker.settings().maxclients());
    lines.field("blocked_clients", 0);
}

fn memory(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let process = &facts.process;
    let keyspace = facts.cx.engine.keyspace.memory();
    let used = process.allocated_bytes + keyspace.pages;
    lines.field("used_memory", used);
    lines.field("used_memory_human", human(used));
    lines.field("used_memory_rss", process.resident_bytes);
    lines.field("used_memory_rss_human", human(process.resident_bytes));
    lines.field("used_memory_dataset", keyspace.entries + keyspace.external);
    lines.field("total_system_memory", process.total_memory_bytes);
    lines.field(
        "total_system_memory_human",
        human(process.total_memory_bytes),
    );
    lines.field("maxmemory", 0);
    lines.field("maxmemory_human", human(0));
    lines.field("maxmemory_policy", "noeviction");
    lines.field(
        "mem_fragmentation_ratio",
        format_args!("{:.2}", process.resident_bytes as f64 / used.max(1) as f64),
    );
    lines.field("mem_allocator", &process.allocator);
}

/// Bytes in the largest unit that leaves a number above one, as Redis shows them.
fn human(bytes: u64) -> String {
    const UNITS: [(&str, u32); 5] = [("P", 50), ("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    match UNITS.iter().find(|(_, bits)| bytes >> bits > 0) {
        Some((unit, bits)) => format!("{:.2}{unit}", bytes as f64 / (1_u64 << bits) as f64),
        None => format!("{bytes}B"),
    }
}

fn persistence(_: &Facts<'_, '_, '_>, lines: &mut Lines) {
    lines.field("loading", 0);
}

fn stats(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let totals = &facts.totals;
    let recent = Window::of(
        facts.workers.iter().map(|worker| &worker.statistics.recent),
        facts.monotonic_ns,
        facts.cx.engine.statistics_reset_ns(),
    );
    lines.field("total_connections_received", totals.connections_received);
    lines.field("total_commands_processed", totals.commands_processed);
    lines.field(
        "instantaneous_ops_per_sec",
        per_second(recent.commands, &recent),
    );
    lines.field("total_net_input_bytes", totals.input_bytes);
    lines.field("total_net_output_bytes", totals.output_bytes);
    lines.field(
        "instantaneous_input_kbps",
        kibibytes(recent.input_bytes, &recent),
    );
    lines.field(
        "instantaneous_output_kbps",
        kibibytes(recent.output_bytes, &recent),
    );
    lines.field("rejected_connections", totals.connections_rejected);
    lines.field("expired_keys", totals.expired_keys);
    lines.field("keyspace_hits", totals.keyspace_hits);
    lines.field("keyspace_misses", totals.keyspace_misses);
    lines.field("total_error_replies", totals.error_replies);
    // The first worker stands for Redis's main thread.
    let main = facts
        .workers
        .first()
        .map_or_else(Totals::default, |worker| worker.totals);
    lines.field("total_reads_processed", totals.reads);
    lines.field("total_writes_processed", totals.writes);
    lines.field("io_threaded_reads_processed", totals.reads - main.reads);
    lines.field("io_threaded_writes_processed", totals.writes - main.writes);
    lines.field(
        "client_query_buffer_limit_disconnections",
        totals.query_buffer_limit_disconnections,
    );
    lines.field(
        "client_output_buffer_limit_disconnections",
        totals.output_buffer_limit_disconnections,
    );
    lines.field("eventloop_cycles", totals.loops);
    lines.field("eventloop_duration_sum", totals.busy_ns / 1000);
    lines.field("eventloop_duration_cmd_sum", threads::execute_us(facts));
    lines.field(
        "instantaneous_eventloop_cycles_per_sec",
        per_second(recent.loops, &recent),
    );
    lines.field(
        "instantaneous_eventloop_duration_usec",
        recent.busy_ns / 1000 / recent.loops.max(1),
    );
    lines.field("connections_moved", totals.connections_moved);
}

fn per_second(count: i64, recent: &Window) -> i64 {
    (count as f64 / recent.seconds) as i64
}

/// Kibibytes per second.
fn kibibytes(bytes: i64, recent: &Window) -> String {
    format!("{:.2}", bytes as f64 / recent.seconds / 1024.0)
}

fn replication(_: &Facts<'_, '_, '_>, lines: &mut Lines) {
    lines.field("role", "master");
    lines.field("connected_slaves", 0);
}

fn cpu(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let process = &facts.process;
    lines.field("used_cpu_sys", seconds(process.system_cpu_us));
    lines.field("used_cpu_user", seconds(process.user_cpu_us));
    // There are no children: nothing forks.
    lines.field("used_cpu_sys_children", seconds(0));
    lines.field("used_cpu_user_children", seconds(0));
    if let Some(Account {
        statistics: main, ..
    }) = facts.workers.first()
    {
        let us = |counter: &Counter| u64::try_from(counter.load()).unwrap_or(0);
        lines.field("used_cpu_sys_main_thread", seconds(us(&main.cpu_system_us)));
        lines.field("used_cpu_user_main_thread", seconds(us(&main.cpu_user_us)));
    }
}

fn cluster(_: &Facts<'_, '_, '_>, lines: &mut Lines) {
    lines.field("cluster_enabled", 0);
}

fn keyspace(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let keyspace = &facts.cx.engine.keyspace;
    for database in 0..keyspace.databases() {
        let keys = keyspace.key_count(database);
        if keys > 0 {
            let expires = keyspace.deadline_count(database);
            lines.field(
                &format!("db{database}"),
                format_args!("keys={keys},expires={expires},avg_ttl=0,subexpiry=0"),
            );
        }
    }
}
