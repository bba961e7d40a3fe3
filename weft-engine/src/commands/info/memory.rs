//! Memory: what is in use, what it is used for, and what the process holds.

use std::fmt::Display;

use super::{Facts, Lines, human};
use crate::commands::memory::{Account, ratio};
use crate::config::{ParameterId, Settings};

pub(super) fn memory(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let process = &facts.process;
    let account = Account::of(facts.cx.engine, facts.now_us / 1_000_000);
    let memory = &account.memory;
    let percent = |part: u64, whole: u64| format!("{:.2}%", ratio(part, whole) * 100.0);
    lines.bytes("used_memory", memory.used);
    lines.bytes("used_memory_rss", account.resident);
    lines.bytes("used_memory_peak", memory.peak);
    lines.field("used_memory_peak_time", memory.peak_at_s);
    lines.field("used_memory_peak_perc", percent(memory.used, memory.peak));
    lines.field("used_memory_overhead", account.overhead());
    lines.field("used_memory_startup", memory.startup);
    lines.field("used_memory_dataset", account.dataset());
    lines.field(
        "used_memory_dataset_perc",
        percent(account.dataset(), account.net()),
    );
    let [allocated, active, resident] = account.held();
    lines.field("allocator_allocated", allocated);
    lines.field("allocator_active", active);
    lines.field("allocator_resident", resident);
    lines.field("allocator_muzzy", 0);
    lines.bytes("total_system_memory", process.total_memory_bytes);
    scripts(lines);
    limits(facts.cx.worker.settings(), lines);
    for (name, held, of) in [
        ("allocator_frag", active, allocated),
        ("allocator_rss", resident, active),
        ("rss_overhead", account.resident, resident),
        ("mem_fragmentation", account.resident, memory.used),
    ] {
        let bytes = (held as i64).wrapping_sub(of as i64);
        lines.field(
            &format!("{name}_ratio"),
            format_args!("{:.2}", ratio(held, of)),
        );
        lines.field(&format!("{name}_bytes"), bytes);
    }
    lines.fields(
        &[
            "mem_not_counted_for_evict",
            "mem_replication_backlog",
            "mem_total_replication_buffers",
            "mem_replica_full_sync_buffer",
            "mem_clients_slaves",
        ],
        0,
    );
    lines.field("mem_clients_normal", account.clients);
    lines.fields(&["mem_cluster_links", "mem_aof_buffer"], 0);
    lines.field("mem_allocator", &process.allocator);
    lines.fields(
        &[
            "mem_overhead_db_hashtable_rehashing",
            "active_defrag_running",
        ],
        0,
    );
    lines.field(
        "lazyfree_pending_objects",
        facts.cx.engine.host.waste_left(),
    );
    lines.field("lazyfreed_objects", facts.totals.reaped_objects);
}

/// There are no interpreters yet.
fn scripts(lines: &mut Lines) {
    let none: &[(&str, &dyn Display)] = &[
        ("used_memory_lua", &0),
        ("used_memory_vm_eval", &0),
        ("used_memory_lua_human", &"0B"),
        ("used_memory_scripts_eval", &0),
        ("number_of_cached_scripts", &0),
        ("number_of_functions", &0),
        ("number_of_libraries", &0),
        ("used_memory_vm_functions", &0),
        ("used_memory_vm_total", &0),
        ("used_memory_vm_total_human", &"0B"),
        ("used_memory_functions", &0),
        ("used_memory_scripts", &0),
        ("used_memory_scripts_human", &"0B"),
    ];
    for (name, value) in none {
        lines.field(name, value);
    }
}

fn limits(settings: &Settings, lines: &mut Lines) {
    let most = super::positive(settings.integer(ParameterId::Maxmemory));
    lines.field("maxmemory", most);
    lines.field("maxmemory_human", human(most));
    let policy = settings.show(ParameterId::MaxmemoryPolicy);
    lines.field("maxmemory_policy", String::from_utf8_lossy(&policy));
}
