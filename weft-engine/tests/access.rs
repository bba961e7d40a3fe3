//! When keys were last used, and how often.

mod in_process;

use in_process::Local;

fn ask(local: &mut Local, line: &str) -> String {
    let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let reply = local.command(&arguments);
    String::from_utf8_lossy(&reply).trim_end().to_owned()
}

#[test]
fn idle_time_counts_seconds_since_the_last_use() {
    let mut local = Local::new();
    ask(&mut local, "SET k v");
    for (command, idle) in [
        ("EXISTS k", 7),
        ("TTL k", 7),
        ("TYPE k", 7),
        ("OBJECT ENCODING k", 7),
        ("OBJECT IDLETIME k", 7),
        ("MEMORY USAGE k", 7),
        ("KEYS *", 7),
        ("SCAN 0", 7),
        ("RANDOMKEY", 7),
        ("GET k", 0),
        ("TOUCH k", 0),
        ("SET k v", 0),
        ("SET k v NX", 0),
        ("APPEND k x", 0),
        ("EXPIRE k 100000", 0),
        ("COPY k other REPLACE", 0),
        ("RENAME k k", 0),
    ] {
        ask(&mut local, "TOUCH k");
        local.clock.advance_ms(7000);
        ask(&mut local, command);
        assert_eq!(
            ask(&mut local, "OBJECT IDLETIME k"),
            format!(":{idle}"),
            "{command}"
        );
    }
}

#[test]
fn a_key_that_comes_to_stand_elsewhere_is_as_new() {
    let mut local = Local::new();
    ask(&mut local, "SET k v");
    local.clock.advance_ms(5000);
    ask(&mut local, "COPY k c");
    assert_eq!(ask(&mut local, "OBJECT IDLETIME c"), ":0");
    local.clock.advance_ms(5000);
    ask(&mut local, "RENAME c d");
    assert_eq!(ask(&mut local, "OBJECT IDLETIME d"), ":0");
    assert_eq!(ask(&mut local, "OBJECT IDLETIME k"), ":5");
    ask(&mut local, "MOVE k 1");
    ask(&mut local, "SELECT 1");
    assert_eq!(ask(&mut local, "OBJECT IDLETIME k"), ":0");
}

#[test]
fn the_frequency_falls_with_every_idle_minute() {
    let mut local = Local::new();
    ask(
        &mut local,
        "CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 2",
    );
    ask(&mut local, "SET k v");
    for _ in 0..10 {
        ask(&mut local, "GET k");
    }
    assert_eq!(ask(&mut local, "OBJECT FREQ k"), ":15");
    local.clock.advance_ms(8 * 60_000);
    assert_eq!(ask(&mut local, "OBJECT FREQ k"), ":11");
    ask(&mut local, "GET k");
    assert_eq!(ask(&mut local, "OBJECT FREQ k"), ":12");
    local.clock.advance_ms(300 * 60_000);
    assert_eq!(ask(&mut local, "OBJECT FREQ k"), ":0");
}

#[test]
fn a_policy_counts_from_the_next_command_of_the_same_batch_on() {
    let mut local = Local::new();
    let replies = local.send(
        b"SET k v\r\nCONFIG SET maxmemory-policy allkeys-lfu\r\nSET n v\r\nOBJECT FREQ n\r\nGET n\r\nOBJECT FREQ n\r\n",
    );
    assert_eq!(replies, b"+OK\r\n+OK\r\n+OK\r\n:5\r\n$1\r\nv\r\n:6\r\n");
}

#[test]
fn frequent_use_counts_ever_less() {
    let mut local = Local::new();
    ask(&mut local, "CONFIG SET maxmemory-policy allkeys-lfu");
    ask(&mut local, "SET k v");
    for _ in 0..10_000 {
        local.send(b"GET k\r\n");
    }
    let reply = ask(&mut local, "OBJECT FREQ k");
    let counter: u32 = reply[1..].parse().expect("an integer");
    // Growing by one takes 10 uses for every step above 5, and the sum of 10 * (n - 5) reaches 10,000 at 50.
    assert!((40..=60).contains(&counter), "{counter}");
}
