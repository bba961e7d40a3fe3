//! Stats: what was counted since the start or the last CONFIG RESETSTAT.

use super::{Facts, Lines, positive};
use crate::recent::Window;
use crate::statistics::{Maximum, Totals, WorkerStatistics};

pub(super) fn stats(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let totals = &facts.totals;
    let recent = facts.recent();
    lines.field("total_connections_received", totals.connections_received);
    lines.field("total_commands_processed", totals.commands_processed);
    lines.field(
        "instantaneous_ops_per_sec",
        per_second(recent.commands, &recent),
    );
    lines.field("total_net_input_bytes", totals.input_bytes);
    lines.field("total_net_output_bytes", totals.output_bytes);
    lines.fields(
        &["total_net_repl_input_bytes", "total_net_repl_output_bytes"],
        0,
    );
    lines.field(
        "instantaneous_input_kbps",
        kibibytes(recent.input_bytes, &recent),
    );
    lines.field(
        "instantaneous_output_kbps",
        kibibytes(recent.output_bytes, &recent),
    );
    lines.fields(
        &[
            "instantaneous_input_repl_kbps",
            "instantaneous_output_repl_kbps",
        ],
        "0.00",
    );
    lines.field("rejected_connections", totals.connections_rejected);
    lines.fields(&["sync_full", "sync_partial_ok", "sync_partial_err"], 0);
    lines.field("expired_subkeys", totals.expired_fields);
    lines.field("expired_keys", totals.expired_keys);
    // Deadlines are found by their buckets, not by samples: no stale share is estimated.
    lines.field("expired_stale_perc", "0.00");
    lines.field("expired_time_cap_reached_count", totals.expire_cycles_cut);
    lines.field(
        "expire_cycle_cpu_milliseconds",
        positive(totals.expire_cycle_ns) / 1_000_000,
    );
    lines.fields(
        &[
            "evicted_keys",
            "evicted_clients",
            "evicted_scripts",
            "total_eviction_exceeded_time",
            "current_eviction_exceeded_time",
        ],
        0,
    );
    lines.field("keyspace_hits", totals.keyspace_hits);
    lines.field("keyspace_misses", totals.keyspace_misses);
    lines.fields(
        &[
            "pubsub_channels",
            "pubsub_patterns",
            "pubsubshard_channels",
            "latest_fork_usec",
            "total_forks",
            "migrate_cached_sockets",
            "slave_expires_tracked_keys",
            "active_defrag_hits",
            "active_defrag_misses",
            "active_defrag_key_hits",
            "active_defrag_key_misses",
            "total_active_defrag_time",
            "current_active_defrag_time",
            "tracking_total_keys",
            "tracking_total_items",
            "tracking_total_prefixes",
            "unexpected_error_replies",
        ],
        0,
    );
    lines.field("total_error_replies", totals.error_replies);
    lines.field("dump_payload_sanitizations", 0);
    work(facts, &recent, lines);
    lines.field("acl_access_denied_auth", totals.logins_refused);
    lines.fields(
        &[
            "acl_access_denied_cmd",
            "acl_access_denied_key",
            "acl_access_denied_channel",
        ],
        0,
    );
    lines.field("connections_moved", totals.connections_moved);
}

/// What the loops did.
fn work(facts: &Facts<'_, '_, '_>, recent: &Window, lines: &mut Lines) {
    let totals = &facts.totals;
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
        "io_threaded_total_prefetch_batches",
        totals.prefetched_batches,
    );
    lines.field(
        "io_threaded_total_prefetch_entries",
        totals.prefetched_requests,
    );
    lines.field(
        "client_query_buffer_limit_disconnections",
        totals.query_buffer_limit_disconnections,
    );
    lines.field(
        "client_output_buffer_limit_disconnections",
        totals.output_buffer_limit_disconnections,
    );
    // Replies are made in one buffer per worker, which is not a client's.
    lines.fields(&["reply_buffer_shrinks", "reply_buffer_expands"], 0);
    lines.field("eventloop_cycles", totals.loops);
    lines.field("eventloop_duration_sum", totals.busy_ns / 1000);
    let commands_ns = facts.cx.engine.command_accounts.spent_ns();
    lines.field("eventloop_duration_cmd_sum", commands_ns / 1000);
    lines.field(
        "instantaneous_eventloop_cycles_per_sec",
        per_second(recent.loops, recent),
    );
    lines.field(
        "instantaneous_eventloop_duration_usec",
        recent.busy_ns / 1000 / recent.loops.max(1),
    );
}

/// A section that is only shown by its name.
pub(super) fn debug(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let most = |of: fn(&WorkerStatistics) -> &Maximum| {
        let all = facts.workers.iter();
        all.map(|worker| of(&worker.statistics).load())
            .max()
            .unwrap_or(0)
    };
    lines.field("eventloop_duration_aof_sum", 0);
    lines.field(
        "eventloop_duration_cron_sum",
        positive(facts.totals.expire_cycle_ns) / 1000,
    );
    lines.field(
        "eventloop_duration_max",
        most(|worker| &worker.longest_turn_ns) / 1000,
    );
    lines.field(
        "eventloop_cmd_per_cycle_max",
        most(|worker| &worker.most_commands_in_turn),
    );
    lines.fields(
        &[
            "allocator_allocated_lua",
            "allocator_active_lua",
            "allocator_resident_lua",
            "allocator_frag_bytes_lua",
        ],
        0,
    );
}

fn per_second(count: i64, recent: &Window) -> i64 {
    (count as f64 / recent.seconds) as i64
}

/// Kibibytes per second.
fn kibibytes(bytes: i64, recent: &Window) -> String {
    format!("{:.2}", bytes as f64 / recent.seconds / 1024.0)
}
