//! DEBUG: who may use it, and what it replies.

mod in_process;

use std::sync::atomic::Ordering;

use in_process::Local;
use weft_engine::journal::Effect;

/// Type, reply in RESP2, reply in RESP3, as Redis 8.2.3 gives them.
const SAMPLES: &[(&str, &str, &str)] = &[
    ("string", "$11\r\nHello World\r\n", "$11\r\nHello World\r\n"),
    ("integer", ":12345\r\n", ":12345\r\n"),
    ("double", "$5\r\n3.141\r\n", ",3.141\r\n"),
    ("null", "$-1\r\n", "_\r\n"),
    (
        "array",
        "*3\r\n:0\r\n:1\r\n:2\r\n",
        "*3\r\n:0\r\n:1\r\n:2\r\n",
    ),
    (
        "set",
        "*3\r\n:0\r\n:1\r\n:2\r\n",
        "~3\r\n:0\r\n:1\r\n:2\r\n",
    ),
    (
        "map",
        "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
        "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
    ),
    (
        "attrib",
        "$39\r\nSome real reply following the attribute\r\n",
        "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n$39\r\nSome real reply following the attribute\r\n",
    ),
    (
        "push",
        "-ERR RESP2 is not supported by this command\r\n",
        "$40\r\nSome real reply following the push reply\r\n>2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n",
    ),
    (
        "verbatim",
        "$25\r\nThis is a verbatim\nstring\r\n",
        "=29\r\ntxt:This is a verbatim\nstring\r\n",
    ),
    ("true", ":1\r\n", "#t\r\n"),
    ("false", ":0\r\n", "#f\r\n"),
    (
        "bignum",
        "$37\r\n1234567999999999999999999999999999999\r\n",
        "(1234567999999999999999999999999999999\r\n",
    ),
];

#[test]
fn every_reply_type_in_both_protocols() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "local"]);
    for (name, resp2, resp3) in SAMPLES {
        local.send(b"HELLO 2\r\n");
        assert_eq!(
            String::from_utf8(local.command(&[b"DEBUG", b"protocol", name.as_bytes()])).unwrap(),
            *resp2,
            "{name}"
        );
        local.send(b"HELLO 3\r\n");
        assert_eq!(
            String::from_utf8(local.command(&[b"debug", b"PROTOCOL", name.as_bytes()])).unwrap(),
            *resp3,
            "{name}"
        );
    }
}

#[test]
fn debug_is_refused_by_default() {
    let reply = Local::new().command(&[b"DEBUG", b"PROTOCOL", b"string"]);
    assert!(reply.starts_with(b"-ERR DEBUG command not allowed."));
}

#[test]
fn an_unknown_subcommand_is_named() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    assert_eq!(
        local.command(&[b"DEBUG", b"foo"]),
        b"-ERR unknown subcommand or wrong number of arguments for 'foo'. Try DEBUG HELP.\r\n"
    );
}

#[test]
fn active_expiry_can_be_switched_off() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    local.command(&[b"SET", b"k", b"v", b"PX", b"5"]);
    local.command(&[b"DEBUG", b"SET-ACTIVE-EXPIRE", b"0"]);
    local.clock.advance_ms(1000);
    local.worker.expire(&local.engine, &local.clock, 100);
    assert_eq!(local.command(&[b"DBSIZE"]), b":1\r\n");
    local.command(&[b"DEBUG", b"SET-ACTIVE-EXPIRE", b"1"]);
    local.worker.expire(&local.engine, &local.clock, 100);
    assert_eq!(local.command(&[b"DBSIZE"]), b":0\r\n");
}

#[test]
fn a_switch_is_on_for_what_is_not_zero() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    for (value, on) in [
        ("0", false),
        ("1", true),
        ("x", false),
        ("5", true),
        ("-0", false),
        (" -2x", true),
    ] {
        local.command(&[b"DEBUG", b"SET-ACTIVE-EXPIRE", value.as_bytes()]);
        local.command(&[b"DEBUG", b"PAUSE-CRON", value.as_bytes()]);
        let engine = &local.engine;
        let switches = [&engine.active_expiry, &engine.housekeeping_paused];
        assert_eq!(
            switches.map(|switch| switch.load(Ordering::Relaxed)),
            [on, on],
            "{value}"
        );
    }
}

#[test]
fn what_is_replicated_is_not_done() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    let mut reader = local.engine.listen_to_journal(0);
    local.command(&[b"DEBUG", b"REPLICATE", b"SET", b"k", b"v"]);
    let records = reader.read();
    let effects: Vec<_> = records
        .iter()
        .flat_map(|record| record.effects.iter().map(Effect::to_plain))
        .collect();
    assert_eq!(effects, [[b"SET".to_vec(), b"k".to_vec(), b"v".to_vec()]]);
    assert_eq!(local.command(&[b"DBSIZE"]), b":0\r\n");
}

#[test]
fn tables_and_strings_are_measured() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    local.command(&[b"SET", b"key", b"value", b"EX", b"100"]);
    local.command(&[b"SET", b"other", b"value"]);
    assert_eq!(
        local.command(&[b"DEBUG", b"SDSLEN", b"key"]),
        b"+key_sds_len:3, key_sds_avail:0, key_zmalloc: 3, val_sds_len:5, val_sds_avail:0, val_zmalloc: 5\r\n"
    );
    let tables = local.command(&[b"DEBUG", b"HTSTATS", b"0"]);
    let text = String::from_utf8(tables).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines[0], "[Dictionary HT]");
    assert_eq!(lines[4], " number of elements: 2");
    assert_eq!(lines[5], "[Expires HT]");
    assert_eq!(lines[9], " number of elements: 1");
    let sizes = local.command(&[b"DEBUG", b"STRUCTSIZE"]);
    assert!(String::from_utf8(sizes).unwrap().contains("\nbits:64 "));
}

#[test]
fn an_object_is_described() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    let describe = |local: &mut Local, key: &[u8]| {
        let reply = local.command(&[b"DEBUG", b"OBJECT", key]);
        let text = String::from_utf8(reply).unwrap();
        let (address, rest) = text
            .strip_prefix("+Value at:0x")
            .and_then(|rest| rest.split_once(' '))
            .unwrap_or_else(|| panic!("{text}"));
        assert!(address.bytes().all(|byte| byte.is_ascii_hexdigit()));
        rest.trim_end().to_owned()
    };
    let access = in_process::START_MS / 1000 % (1 << 24);
    local.command(&[b"MSET", b"k", b"v", b"n", b"300", b"m", b"99999999999"]);
    local.clock.advance_ms(3000);
    for (key, described) in [
        (b"k", "embstr serializedlength:2"),
        (b"n", "int serializedlength:3"),
        (b"m", "int serializedlength:12"),
    ] {
        let expected = format!("refcount:1 encoding:{described} lru:{access} lru_seconds_idle:3");
        assert_eq!(describe(&mut local, key), expected);
    }
    local.command(&[b"SET", b"long", &[b'x'; 100]]);
    assert!(describe(&mut local, b"long").contains("encoding:raw serializedlength:102 "));
    let fast = local.command(&[b"DEBUG", b"OBJECT", b"n", b"fast"]);
    let expected = format!("refcount:1 encoding:int lru:{access} lru_seconds_idle:3\r\n");
    assert!(fast.ends_with(expected.as_bytes()));
    assert_eq!(
        local.command(&[b"DEBUG", b"OBJECT", b"nokey"]),
        b"-ERR no such key\r\n"
    );
}

#[test]
fn keys_are_made_unless_they_exist_and_nobody_is_told() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    let mut reader = local.engine.listen_to_journal(0);
    local.command(&[b"SET", b"key:1", b"mine"]);
    reader.read();
    for (command, reply) in [
        ("DEBUG POPULATE 3", "+OK"),
        ("GET key:0", "$7\r\nvalue:0"),
        ("GET key:1", "$4\r\nmine"),
        ("DBSIZE", ":3"),
        ("DEBUG POPULATE 1 p 10", "+OK"),
        ("GET p:0", "$10\r\nvalue:0\0\0\0"),
        ("DEBUG POPULATE 1 q 3", "+OK"),
        ("GET q:0", "$3\r\nval"),
        ("DEBUG POPULATE 1 big 100000", "+OK"),
        ("STRLEN big:0", ":100000"),
        (
            "DEBUG POPULATE -1",
            "-ERR value is out of range, must be positive",
        ),
        (
            "DEBUG POPULATE 1 q abc",
            "-ERR value is out of range, must be positive",
        ),
        ("OBJECT IDLETIME q:0", ":0"),
    ] {
        let replied = local.send(format!("{command}\r\n").as_bytes());
        assert_eq!(
            String::from_utf8(replied).unwrap(),
            format!("{reply}\r\n"),
            "{command}"
        );
    }
    assert!(reader.read().is_empty());
}

#[test]
fn digests_tell_data_apart() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    let zeros = "0".repeat(40);
    let digest = |local: &mut Local| {
        let reply = local.command(&[b"DEBUG", b"DIGEST"]);
        String::from_utf8(reply[1..41].to_vec()).unwrap()
    };
    assert_eq!(digest(&mut local), zeros);
    local.command(&[b"SET", b"a", b"1"]);
    let one = digest(&mut local);
    local.command(&[b"SET", b"b", b"1"]);
    let both = digest(&mut local);
    assert!(one != zeros && both != one);
    local.command(&[b"DEL", b"a"]);
    assert_ne!(digest(&mut local), one);
    local.command(&[b"SET", b"a", b"1"]);
    assert_eq!(digest(&mut local), both);
    local.command(&[b"EXPIRE", b"a", b"100"]);
    assert_ne!(digest(&mut local), both);
    local.command(&[b"SET", b"a", b"1"]);
    let values = local.command(&[b"DEBUG", b"DIGEST-VALUE", b"a", b"b", b"nokey"]);
    let values = String::from_utf8(values).unwrap();
    let lines: Vec<&str> = values.split("\r\n").collect();
    assert_eq!((lines[0], lines[3]), ("*3", format!("+{zeros}").as_str()));
    assert_eq!(lines[1], lines[2]);
    assert_ne!(lines[1], lines[3]);
}

#[test]
fn errors_switches_and_help() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    for (command, reply) in [
        ("DEBUG ERROR \"MY own words\"", "-MY own words"),
        ("DEBUG LOG hello", "+OK"),
        ("DEBUG SLEEP 0.5", "+OK"),
        ("DEBUG SLEEP abc", "+OK"),
        ("DEBUG SLEEP -1", "+OK"),
        ("DEBUG CHANGE-REPL-ID", "+OK"),
        (
            "DEBUG STRINGMATCH-TEST",
            "+Apparently Redis did not crash: test passed",
        ),
        ("CONFIG SET maxmemory-clients 100mb", "+OK"),
        (
            "DEBUG CLIENT-EVICTION",
            "-ERR maxmemory-clients has no effect yet",
        ),
        (
            "DEBUG RELOAD MERGE NOSAVE",
            "-ERR DEBUG RELOAD is not possible: there is no saving to disk yet",
        ),
        (
            "DEBUG RESTART",
            "-ERR failed to restart the server. Check server logs.",
        ),
        (
            "DEBUG CRASH-AND-RECOVER 10 more",
            "-ERR failed to restart the server. Check server logs.",
        ),
        (
            "DEBUG OBJECT k slow",
            "-ERR unknown subcommand or wrong number of arguments for 'OBJECT'. Try DEBUG HELP.",
        ),
        (
            "DEBUG WORKERS 2",
            "-ERR DEBUG WORKERS takes 'auto' or a number from 1 to 1, the workers that 'io-threads' has started",
        ),
    ] {
        let replied = local.send(format!("{command}\r\n").as_bytes());
        assert_eq!(
            String::from_utf8(replied).unwrap(),
            format!("{reply}\r\n"),
            "{command}"
        );
    }
    let help = String::from_utf8(local.command(&[b"DEBUG", b"HELP"])).unwrap();
    assert!(help.contains("\r\n+SLEEP <seconds>\r\n"));
    let art = String::from_utf8(local.command(&[b"LOLWUT"])).unwrap();
    assert!(art.ends_with("Redis ver. 7.2.4\n\r\n"), "{art}");
    assert_eq!(
        local.command(&[b"LOLWUT", b"VERSION", b"abc"]),
        b"-ERR value is not an integer or out of range\r\n"
    );
}

#[test]
fn the_replication_id_is_taken_anew() {
    let mut local = Local::with_arguments(&["--enable-debug-command", "yes"]);
    let id = |local: &mut Local| {
        let info = String::from_utf8(local.command(&[b"INFO", b"replication"])).unwrap();
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("master_replid:"));
        line.unwrap().to_owned()
    };
    let first = id(&mut local);
    assert_eq!(local.command(&[b"DEBUG", b"CHANGE-REPL-ID"]), b"+OK\r\n");
    let second = id(&mut local);
    assert_ne!(first, second);
    assert_eq!(second.len(), 40);
    assert!(
        second
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    );
}
