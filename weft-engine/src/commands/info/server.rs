//! The sections about the server as such: Server, Clients, Persistence, Replication, CPU.

use std::sync::atomic::Ordering;

use super::{Facts, Lines, positive};
use crate::blocking::AwaitedKeys;
use crate::config::ParameterId;
use crate::identity::{REDIS_VERSION, WEFT_VERSION};
use crate::statistics::{Account, Counter, Totals};

/// The clock of keys' idle times: seconds, modulo 2^24.
const LRU_CLOCK_MASK: u64 = 0xff_ffff;

pub(super) fn server(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let (identity, process) = (&facts.cx.engine.identity, &facts.process);
    let settings = facts.cx.worker.settings();
    let now_s = facts.now_us / 1_000_000;
    let uptime_s = (facts.now_us / 1000).saturating_sub(identity.started_ms) / 1000;
    lines.field("redis_version", REDIS_VERSION);
    lines.field("redis_git_sha1", "00000000");
    lines.field("redis_git_dirty", 0);
    lines.field("redis_build_id", build_id());
    lines.field("redis_mode", "standalone");
    lines.field("os", &process.operating_system);
    lines.field("arch_bits", usize::BITS);
    lines.field("monotonic_clock", "POSIX clock_gettime");
    lines.field("multiplexing_api", &process.io_driver);
    lines.field("atomicvar_api", "rust-core");
    lines.field("gcc_version", "0.0.0");
    lines.field("process_id", process.process_id);
    lines.field("process_supervised", process.supervisor);
    lines.field("run_id", &identity.run_id);
    lines.field("tcp_port", settings.port());
    lines.field("server_time_usec", facts.now_us);
    lines.field("uptime_in_seconds", uptime_s);
    lines.field("uptime_in_days", uptime_s / 86400);
    lines.field("hz", settings.hz());
    lines.field("configured_hz", settings.hz());
    lines.field("lru_clock", now_s & LRU_CLOCK_MASK);
    lines.field("executable", &process.executable);
    let config_file = identity
        .config_file
        .as_ref()
        .map(|path| path.display().to_string());
    lines.field("config_file", config_file.unwrap_or_default());
    let several = facts.cx.engine.active_workers.load(Ordering::Relaxed) > 1;
    lines.field("io_threads_active", u8::from(several));
    listeners(facts, lines);
    lines.field("weft_version", WEFT_VERSION);
}

/// The same for every build of a version.
fn build_id() -> String {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = WEFT_VERSION
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, fold);
    format!("{hash:016x}")
}

/// Where clients can connect.
fn listeners(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let settings = facts.cx.worker.settings();
    let mut number = 0;
    let mut listener = |text: String| {
        lines.field(&format!("listener{number}"), text);
        number += 1;
    };
    if settings.port() != 0 {
        let addresses: String = settings
            .bind()
            .iter()
            .map(|address| format!("bind={},", String::from_utf8_lossy(address)))
            .collect();
        listener(format!("name=tcp,{addresses}port={}", settings.port()));
    }
    if let Some(path) = settings.unixsocket() {
        let path = String::from_utf8_lossy(path);
        listener(format!("name=unix,bind={path}"));
    }
}

pub(super) fn clients(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let clients = facts.cx.engine.clients.facts();
    lines.field("connected_clients", clients.connected);
    lines.field("cluster_connections", 0);
    lines.field("maxclients", facts.cx.worker.settings().maxclients());
    lines.field("client_recent_max_input_buffer", clients.input_buffer_max);
    lines.field("client_recent_max_output_buffer", clients.output_buffer_max);
    lines.field("blocked_clients", clients.blocked);
    lines.fields(&["tracking_clients", "pubsub_clients"], 0);
    lines.field("watching_clients", clients.watching);
    lines.field("clients_in_timeout_table", clients.timed);
    let workers = facts.workers.iter();
    let watched: i64 = workers.map(|worker| worker.totals.watched_keys).sum();
    lines.field("total_watched_keys", watched);
    let awaited = match clients.blocked {
        0 => AwaitedKeys::default(),
        _ => AwaitedKeys::of(facts.cx.engine),
    };
    lines.field("total_blocking_keys", awaited.keys);
    lines.field("total_blocking_keys_on_nokey", awaited.heeding_absence);
}

pub(super) fn persistence(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let workers = facts.workers.iter();
    // CONFIG RESETSTAT leaves this one alone.
    let changes: i64 = workers
        .map(|worker| Totals::of(&worker.statistics).changes)
        .sum();
    lines.fields(
        &[
            "loading",
            "async_loading",
            "current_cow_peak",
            "current_cow_size",
            "current_cow_size_age",
        ],
        0,
    );
    lines.field("current_fork_perc", "0.00");
    lines.fields(
        &["current_save_keys_processed", "current_save_keys_total"],
        0,
    );
    lines.field("rdb_changes_since_last_save", positive(changes));
    lines.field("rdb_bgsave_in_progress", 0);
    lines.field(
        "rdb_last_save_time",
        facts.cx.engine.identity.started_ms / 1000,
    );
    lines.field("rdb_last_bgsave_status", "ok");
    lines.fields(
        &["rdb_last_bgsave_time_sec", "rdb_current_bgsave_time_sec"],
        -1,
    );
    lines.fields(
        &[
            "rdb_saves",
            "rdb_last_cow_size",
            "rdb_last_load_keys_expired",
            "rdb_last_load_keys_loaded",
            "aof_enabled",
            "aof_rewrite_in_progress",
            "aof_rewrite_scheduled",
        ],
        0,
    );
    lines.fields(
        &["aof_last_rewrite_time_sec", "aof_current_rewrite_time_sec"],
        -1,
    );
    lines.field("aof_last_bgrewrite_status", "ok");
    lines.fields(&["aof_rewrites", "aof_rewrites_consecutive_failures"], 0);
    lines.field("aof_last_write_status", "ok");
    lines.fields(
        &[
            "aof_last_cow_size",
            "module_fork_in_progress",
            "module_fork_last_cow_size",
        ],
        0,
    );
}

pub(super) fn replication(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let backlog = facts
        .cx
        .worker
        .settings()
        .integer(ParameterId::ReplBacklogSize);
    lines.field("role", "master");
    lines.field("connected_slaves", 0);
    lines.field("master_failover_state", "no-failover");
    lines.field("master_replid", facts.cx.engine.replication_id());
    lines.field("master_replid2", "0".repeat(40));
    lines.field("master_repl_offset", 0);
    lines.field("second_repl_offset", -1);
    lines.field("repl_backlog_active", 0);
    lines.field("repl_backlog_size", backlog);
    lines.fields(
        &["repl_backlog_first_byte_offset", "repl_backlog_histlen"],
        0,
    );
}

pub(super) fn cpu(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
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
        let us = |counter: &Counter| positive(counter.load());
        lines.field("used_cpu_sys_main_thread", seconds(us(&main.cpu_system_us)));
        lines.field("used_cpu_user_main_thread", seconds(us(&main.cpu_user_us)));
    }
}
