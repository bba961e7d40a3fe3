//! DEBUG: who may use it, and what it replies.

mod in_process;

use in_process::Local;

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
