//! INFO, on an engine whose loop is played by hand.

mod in_process;

use in_process::{Local, START_MS};
use weft_engine::engine::WorkerState;
use weft_engine::step_times::{SystemTimes, Turn};

const START_NS: u64 = START_MS * 1_000_000;
const MS: u64 = 1_000_000;

fn info(local: &mut Local, sections: &[&str]) -> String {
    let mut arguments: Vec<&[u8]> = vec![b"INFO"];
    arguments.extend(sections.iter().map(|section| section.as_bytes()));
    let reply = String::from_utf8(local.command(&arguments)).unwrap();
    let (_, body) = reply.split_once("\r\n").unwrap();
    body.strip_suffix("\r\n").unwrap().to_owned()
}

fn value<'i>(info: &'i str, field: &str) -> &'i str {
    let value = info
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {field} in {info}"))
}

/// A turn that began and ended so many milliseconds after the start.
fn turn(began_ms: u64, ended_ms: u64) -> Turn {
    Turn {
        started_ns: START_NS + began_ms * MS,
        ended_ns: START_NS + ended_ms * MS,
        eventful: true,
        ..Turn::default()
    }
}

#[test]
fn threads_tells_redis_s_fields_and_where_the_time_went() {
    let mut local = Local::new();
    let worker = WorkerState::new(&local.engine, 1, 8);
    worker.statistics().connected_clients.add(-1);
    worker.statistics().reads.add(4);
    local.worker.statistics().connected_clients.add(3);
    local.worker.begin_loop(&local.clock);
    assert!(local.worker.begin_turn(&local.clock));
    local.worker.statistics().sampled_parse_ns.add(2_000);
    local.worker.statistics().sampled_execute_ns.add(5_000);
    local.worker.statistics().sampled_encode_ns.add(1_000);
    let system = SystemTimes {
        read_ns: 3_000,
        write_ns: 9_000,
    };
    let first = Turn {
        asleep_ns: 6 * MS,
        receives: 5,
        sends: 4,
        system: Some(system),
        ..turn(6, 8)
    };
    local.worker.end_turn(&first, || MS);
    local.clock.advance_ms(22);
    local.send(b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
    assert_eq!(
        info(&mut local, &["threads"]),
        "# Threads\r\n\
         io_thread_0:clients=3,reads=5,writes=4\r\n\
         io_thread_1:clients=0,reads=4,writes=0\r\n\
         weft_worker_0:busy_percent=9.09,read_us=300,parse_us=200,execute_us=500,encode_us=100,write_us=900,\
         idle_us=20000,longest_turn_us=1000,loops=1,batch=2.00\r\n\
         weft_worker_1:busy_percent=0.00,read_us=0,parse_us=0,execute_us=0,encode_us=0,write_us=0,\
         idle_us=0,longest_turn_us=0,loops=0,batch=0.00\r\n\
         bottleneck_step:write\r\n"
    );
}

#[test]
fn resetstat_begins_anew_and_keeps_what_is_now() {
    let mut local = Local::new();
    local.worker.statistics().connected_clients.add(1);
    local.worker.begin_loop(&local.clock);
    let _ = local.worker.begin_turn(&local.clock);
    let busy = Turn {
        receives: 2,
        sends: 2,
        system: Some(SystemTimes {
            read_ns: 50,
            write_ns: 50,
        }),
        ..turn(0, 10)
    };
    local.worker.end_turn(&busy, || 0);
    local.clock.advance_ms(10);
    assert_eq!(
        local.command(&[b"CONFIG", b"RESETSTAT"]),
        b"+OK\r\n".as_slice()
    );
    local.clock.advance_ms(5);
    let threads = info(&mut local, &["threads"]);
    assert_eq!(value(&threads, "io_thread_0"), "clients=1,reads=0,writes=0");
    assert_eq!(
        value(&threads, "weft_worker_0"),
        "busy_percent=0.00,read_us=0,parse_us=0,execute_us=0,encode_us=0,write_us=0,\
         idle_us=5000,longest_turn_us=0,loops=0,batch=1.00"
    );
    assert_eq!(value(&threads, "bottleneck_step"), "none");
    let stats = info(&mut local, &["stats"]);
    for field in [
        "total_reads_processed",
        "total_writes_processed",
        "eventloop_cycles",
        "eventloop_duration_sum",
        "instantaneous_ops_per_sec",
    ] {
        assert_eq!(value(&stats, field), "0", "{field}");
    }
}

#[test]
fn reads_and_writes_of_other_workers_than_the_first_are_threaded() {
    let mut local = Local::new();
    let second = WorkerState::new(&local.engine, 1, 8);
    for (worker, reads, writes) in [(&local.worker, 10, 9), (&second, 7, 5)] {
        worker.statistics().reads.add(reads);
        worker.statistics().writes.add(writes);
    }
    let stats = info(&mut local, &["stats"]);
    assert_eq!(value(&stats, "total_reads_processed"), "17");
    assert_eq!(value(&stats, "total_writes_processed"), "14");
    assert_eq!(value(&stats, "io_threaded_reads_processed"), "7");
    assert_eq!(value(&stats, "io_threaded_writes_processed"), "5");
}

#[test]
fn io_threads_are_active_when_several_workers_serve() {
    let mut local = Local::new();
    for (workers, active) in [(1, "0"), (2, "1"), (8, "1"), (1, "0")] {
        let count = &local.engine.active_workers;
        count.store(workers, std::sync::atomic::Ordering::Relaxed);
        let server = info(&mut local, &["server"]);
        assert_eq!(value(&server, "io_threads_active"), active);
    }
}

#[test]
fn rates_are_those_of_the_last_seconds() {
    let mut local = Local::new();
    local.worker.begin_loop(&local.clock);
    // 20 turns of 100 ms, each with 50 commands of 14 bytes, replied with 7, and busy for half of it.
    for number in 0..20 {
        let _ = local.worker.begin_turn(&local.clock);
        for _ in 0..50 {
            local.send(b"*1\r\n$4\r\nPING\r\n");
        }
        local.clock.advance_ms(100);
        let end = (number + 1) * 100;
        let turn = Turn {
            asleep_ns: 50 * MS,
            ..turn(end - 50, end)
        };
        local.worker.end_turn(&turn, || 0);
    }
    // A whole number of buckets of a tenth of a second: the newest is empty but for the last turn.
    let stats = info(&mut local, &["stats"]);
    let rate: u32 = value(&stats, "instantaneous_ops_per_sec").parse().unwrap();
    assert!((500..=535).contains(&rate), "{rate}");
    let number = |field| value(&stats, field).parse::<f64>().unwrap();
    let input = number("instantaneous_input_kbps");
    assert!(
        (input - f64::from(rate) * 14.0 / 1024.0).abs() < 0.05,
        "{input}"
    );
    let output = number("instantaneous_output_kbps");
    assert!(
        (output - f64::from(rate) * 7.0 / 1024.0).abs() < 0.05,
        "{output}"
    );
    let cycles = number("instantaneous_eventloop_cycles_per_sec");
    assert!((9.9..=10.7).contains(&cycles), "{cycles}");
    assert_eq!(
        value(&stats, "instantaneous_eventloop_duration_usec"),
        "50000"
    );
    assert_eq!(value(&stats, "eventloop_cycles"), "20");
    assert_eq!(value(&stats, "eventloop_duration_sum"), "1000000");

    local.clock.advance_ms(1_800);
    let stats = info(&mut local, &["stats"]);
    assert_eq!(value(&stats, "instantaneous_ops_per_sec"), "0");
    assert_eq!(value(&stats, "instantaneous_input_kbps"), "0.00");
    assert_eq!(value(&stats, "instantaneous_eventloop_duration_usec"), "0");
}

#[test]
fn sections_and_fields_stand_in_redis_s_order() {
    let mut local = Local::new();
    let by_default = "Server Clients Memory Persistence Threads Stats Replication CPU Modules Errorstats Cluster \
                      Keyspace Keysizes";
    let all = "Server Clients Memory Persistence Threads Stats Replication CPU Modules Commandstats Errorstats \
               Latencystats Cluster Keyspace Keysizes";
    for (sections, expected) in [
        (&[][..], by_default),
        (&["default"], by_default),
        (&["all"], all),
        (&["everything"], all),
        (&["Everything", "keysizes"], all),
        (&["latencystats", "SERVER", "nosuch"], "Server Latencystats"),
        (
            &["default", "commandstats"],
            "Server Clients Memory Persistence Threads Stats Replication CPU Modules Commandstats Errorstats Cluster \
             Keyspace Keysizes",
        ),
        (&["nosuch"], ""),
    ] {
        let info = info(&mut local, sections);
        let titles = info.lines().filter_map(|line| line.strip_prefix("# "));
        let titles: Vec<&str> = titles.collect();
        assert_eq!(titles.join(" "), expected, "{sections:?}");
        assert_eq!(
            info.matches("\r\n\r\n").count(),
            titles.len().saturating_sub(1)
        );
    }
    let cpu = info(&mut local, &["CPU"]);
    assert_eq!(
        cpu,
        "# CPU\r\n\
         used_cpu_sys:0.000000\r\n\
         used_cpu_user:0.000000\r\n\
         used_cpu_sys_children:0.000000\r\n\
         used_cpu_user_children:0.000000\r\n\
         used_cpu_sys_main_thread:0.000000\r\n\
         used_cpu_user_main_thread:0.000000\r\n"
    );
    local.worker.statistics().cpu_user_us.set(1_234_567);
    local.worker.statistics().cpu_system_us.set(89);
    let cpu = info(&mut local, &["cpu"]);
    assert_eq!(value(&cpu, "used_cpu_user_main_thread"), "1.234567");
    assert_eq!(value(&cpu, "used_cpu_sys_main_thread"), "0.000089");
}

/// Ours, behind Redis's of the section.
const OWN_FIELDS: &[(&str, &[&str])] = &[
    ("Server", &["weft_version"]),
    ("Stats", &["connections_moved"]),
];

/// The fields of Redis 8.2.3, section by section, as a server without data prints them.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "Server",
        &[
            "redis_version",
            "redis_git_sha1",
            "redis_git_dirty",
            "redis_build_id",
            "redis_mode",
            "os",
            "arch_bits",
            "monotonic_clock",
            "multiplexing_api",
            "atomicvar_api",
            "gcc_version",
            "process_id",
            "process_supervised",
            "run_id",
            "tcp_port",
            "server_time_usec",
            "uptime_in_seconds",
            "uptime_in_days",
            "hz",
            "configured_hz",
            "lru_clock",
            "executable",
            "config_file",
            "io_threads_active",
            "listener0",
        ],
    ),
    (
        "Clients",
        &[
            "connected_clients",
            "cluster_connections",
            "maxclients",
            "client_recent_max_input_buffer",
            "client_recent_max_output_buffer",
            "blocked_clients",
            "tracking_clients",
            "pubsub_clients",
            "watching_clients",
            "clients_in_timeout_table",
            "total_watched_keys",
            "total_blocking_keys",
            "total_blocking_keys_on_nokey",
        ],
    ),
    (
        "Memory",
        &[
            "used_memory",
            "used_memory_human",
            "used_memory_rss",
            "used_memory_rss_human",
            "used_memory_peak",
            "used_memory_peak_human",
            "used_memory_peak_time",
            "used_memory_peak_perc",
            "used_memory_overhead",
            "used_memory_startup",
            "used_memory_dataset",
            "used_memory_dataset_perc",
            "allocator_allocated",
            "allocator_active",
            "allocator_resident",
            "allocator_muzzy",
            "total_system_memory",
            "total_system_memory_human",
            "used_memory_lua",
            "used_memory_vm_eval",
            "used_memory_lua_human",
            "used_memory_scripts_eval",
            "number_of_cached_scripts",
            "number_of_functions",
            "number_of_libraries",
            "used_memory_vm_functions",
            "used_memory_vm_total",
            "used_memory_vm_total_human",
            "used_memory_functions",
            "used_memory_scripts",
            "used_memory_scripts_human",
            "maxmemory",
            "maxmemory_human",
            "maxmemory_policy",
            "allocator_frag_ratio",
            "allocator_frag_bytes",
            "allocator_rss_ratio",
            "allocator_rss_bytes",
            "rss_overhead_ratio",
            "rss_overhead_bytes",
            "mem_fragmentation_ratio",
            "mem_fragmentation_bytes",
            "mem_not_counted_for_evict",
            "mem_replication_backlog",
            "mem_total_replication_buffers",
            "mem_replica_full_sync_buffer",
            "mem_clients_slaves",
            "mem_clients_normal",
            "mem_cluster_links",
            "mem_aof_buffer",
            "mem_allocator",
            "mem_overhead_db_hashtable_rehashing",
            "active_defrag_running",
            "lazyfree_pending_objects",
            "lazyfreed_objects",
        ],
    ),
    (
        "Persistence",
        &[
            "loading",
            "async_loading",
            "current_cow_peak",
            "current_cow_size",
            "current_cow_size_age",
            "current_fork_perc",
            "current_save_keys_processed",
            "current_save_keys_total",
            "rdb_changes_since_last_save",
            "rdb_bgsave_in_progress",
            "rdb_last_save_time",
            "rdb_last_bgsave_status",
            "rdb_last_bgsave_time_sec",
            "rdb_current_bgsave_time_sec",
            "rdb_saves",
            "rdb_last_cow_size",
            "rdb_last_load_keys_expired",
            "rdb_last_load_keys_loaded",
            "aof_enabled",
            "aof_rewrite_in_progress",
            "aof_rewrite_scheduled",
            "aof_last_rewrite_time_sec",
            "aof_current_rewrite_time_sec",
            "aof_last_bgrewrite_status",
            "aof_rewrites",
            "aof_rewrites_consecutive_failures",
            "aof_last_write_status",
            "aof_last_cow_size",
            "module_fork_in_progress",
            "module_fork_last_cow_size",
        ],
    ),
    (
        "Stats",
        &[
            "total_connections_received",
            "total_commands_processed",
            "instantaneous_ops_per_sec",
            "total_net_input_bytes",
            "total_net_output_bytes",
            "total_net_repl_input_bytes",
            "total_net_repl_output_bytes",
            "instantaneous_input_kbps",
            "instantaneous_output_kbps",
            "instantaneous_input_repl_kbps",
            "instantaneous_output_repl_kbps",
            "rejected_connections",
            "sync_full",
            "sync_partial_ok",
            "sync_partial_err",
            "expired_subkeys",
            "expired_keys",
            "expired_stale_perc",
            "expired_time_cap_reached_count",
            "expire_cycle_cpu_milliseconds",
            "evicted_keys",
            "evicted_clients",
            "evicted_scripts",
            "total_eviction_exceeded_time",
            "current_eviction_exceeded_time",
            "keyspace_hits",
            "keyspace_misses",
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
            "total_error_replies",
            "dump_payload_sanitizations",
            "total_reads_processed",
            "total_writes_processed",
            "io_threaded_reads_processed",
            "io_threaded_writes_processed",
            "io_threaded_total_prefetch_batches",
            "io_threaded_total_prefetch_entries",
            "client_query_buffer_limit_disconnections",
            "client_output_buffer_limit_disconnections",
            "reply_buffer_shrinks",
            "reply_buffer_expands",
            "eventloop_cycles",
            "eventloop_duration_sum",
            "eventloop_duration_cmd_sum",
            "instantaneous_eventloop_cycles_per_sec",
            "instantaneous_eventloop_duration_usec",
            "acl_access_denied_auth",
            "acl_access_denied_cmd",
            "acl_access_denied_key",
            "acl_access_denied_channel",
        ],
    ),
    (
        "Debug",
        &[
            "eventloop_duration_aof_sum",
            "eventloop_duration_cron_sum",
            "eventloop_duration_max",
            "eventloop_cmd_per_cycle_max",
            "allocator_allocated_lua",
            "allocator_active_lua",
            "allocator_resident_lua",
            "allocator_frag_bytes_lua",
        ],
    ),
    (
        "Replication",
        &[
            "role",
            "connected_slaves",
            "master_failover_state",
            "master_replid",
            "master_replid2",
            "master_repl_offset",
            "second_repl_offset",
            "repl_backlog_active",
            "repl_backlog_size",
            "repl_backlog_first_byte_offset",
            "repl_backlog_histlen",
        ],
    ),
    (
        "CPU",
        &[
            "used_cpu_sys",
            "used_cpu_user",
            "used_cpu_sys_children",
            "used_cpu_user_children",
            "used_cpu_sys_main_thread",
            "used_cpu_user_main_thread",
        ],
    ),
    ("Cluster", &["cluster_enabled"]),
];

#[test]
fn every_field_of_redis_is_there_in_its_place() {
    let mut local = Local::new();
    for (section, redis) in FIELDS {
        let info = info(&mut local, &[section]);
        let fields = info.lines().filter_map(|line| line.split_once(':'));
        let fields: Vec<&str> = fields.map(|(name, _)| name).collect();
        let own = OWN_FIELDS.iter().find(|(title, _)| title == section);
        let own = own.map_or(&[][..], |(_, fields)| fields);
        assert_eq!(fields, [redis, own].concat(), "{section}");
    }
}

#[test]
fn databases_tell_their_keys_and_when_they_end() {
    let mut local = Local::new();
    assert_eq!(info(&mut local, &["keyspace"]), "# Keyspace\r\n");
    for request in [
        &[b"SET".as_slice(), b"a", b"1"][..],
        &[b"SET", b"b", b"1", b"PX", b"1000"],
        &[b"SET", b"c", b"12345", b"PX", b"4000"],
        &[b"SELECT", b"3"],
        &[b"SET", b"d", b""],
    ] {
        assert_eq!(local.command(request), b"+OK\r\n");
    }
    assert_eq!(
        info(&mut local, &["keyspace", "keysizes"]),
        "# Keyspace\r\n\
         db0:keys=3,expires=2,avg_ttl=2500,subexpiry=0\r\n\
         db3:keys=1,expires=0,avg_ttl=0,subexpiry=0\r\n\
         \r\n\
         # Keysizes\r\n\
         db0_distrib_strings_sizes:1=2,4=1\r\n\
         db3_distrib_strings_sizes:0=1\r\n"
    );
    // Overdue and not yet removed counts, as in Redis.
    local.clock.advance_ms(2_000);
    let keyspace = info(&mut local, &["keyspace"]);
    assert_eq!(
        value(&keyspace, "db0"),
        "keys=3,expires=2,avg_ttl=500,subexpiry=0"
    );
    local.clock.advance_ms(2_000);
    let keyspace = info(&mut local, &["keyspace"]);
    assert_eq!(
        value(&keyspace, "db0"),
        "keys=3,expires=2,avg_ttl=0,subexpiry=0"
    );
}
