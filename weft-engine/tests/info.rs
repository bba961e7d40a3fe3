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
    for sections in [&[][..], &["default"], &["all"], &["everything"]] {
        let all = info(&mut local, sections);
        let titles: Vec<&str> = all
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .collect();
        assert_eq!(
            titles,
            [
                "Server",
                "Clients",
                "Memory",
                "Persistence",
                "Threads",
                "Stats",
                "Replication",
                "CPU",
                "Cluster",
                "Keyspace"
            ]
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
    // As Redis 8.2 prints them; what is not there yet is left out, and our own fields follow.
    let in_order = [
        "total_connections_received",
        "total_commands_processed",
        "instantaneous_ops_per_sec",
        "total_net_input_bytes",
        "total_net_output_bytes",
        "instantaneous_input_kbps",
        "instantaneous_output_kbps",
        "rejected_connections",
        "expired_keys",
        "keyspace_hits",
        "keyspace_misses",
        "total_error_replies",
        "total_reads_processed",
        "total_writes_processed",
        "io_threaded_reads_processed",
        "io_threaded_writes_processed",
        "client_query_buffer_limit_disconnections",
        "client_output_buffer_limit_disconnections",
        "eventloop_cycles",
        "eventloop_duration_sum",
        "eventloop_duration_cmd_sum",
        "instantaneous_eventloop_cycles_per_sec",
        "instantaneous_eventloop_duration_usec",
        "connections_moved",
    ];
    let stats = info(&mut local, &["stats"]);
    let fields = stats.lines().filter_map(|line| line.split_once(':'));
    let fields: Vec<&str> = fields.map(|(name, _)| name).collect();
    assert_eq!(fields, in_order);
}
