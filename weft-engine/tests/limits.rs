//! Limits on what a client may send.

mod in_process;

use in_process::Local;
use weft_engine::session::Verdict;

#[test]
fn an_unfinished_request_beyond_the_query_buffer_limit_ends_the_connection() {
    let mut local = Local::new();
    local.command(&[b"CONFIG", b"SET", b"client-query-buffer-limit", b"1mb"]);
    local.send(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$2000000\r\n");
    let piece = vec![b'x'; 64 * 1024];
    let mut sent = 0;
    while local.deliver(&piece) == Verdict::Open {
        sent += piece.len();
        assert!(sent < 2_000_000, "the limit was not noticed");
    }
    assert!((900_000..1_200_000).contains(&sent), "{sent}");
    assert_eq!(local.engine.totals().query_buffer_limit_disconnections, 1);
}

#[test]
fn a_request_within_the_limit_is_run_however_it_is_cut() {
    let mut local = Local::new();
    local.command(&[b"CONFIG", b"SET", b"client-query-buffer-limit", b"1mb"]);
    local.send(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$700000\r\n");
    for piece in vec![b'x'; 700_000].chunks(9_999) {
        local.send(piece);
    }
    assert_eq!(local.send(b"\r\n"), b"+OK\r\n");
    assert_eq!(local.command(&[b"STRLEN", b"key"]), b":700000\r\n");
}

#[test]
fn the_longest_argument_is_that_of_proto_max_bulk_len() {
    let mut local = Local::new();
    assert_eq!(
        local.command(&[b"CONFIG", b"SET", b"proto-max-bulk-len", b"1mb"]),
        b"+OK\r\n"
    );
    assert_eq!(
        local.command(&[b"SETRANGE", b"k", b"1048575", b"x"]),
        b":1048576\r\n"
    );
    let too_long = b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    assert_eq!(local.command(&[b"APPEND", b"k", b"x"]), too_long);
    assert_eq!(
        local.deliver(b"*2\r\n$3\r\nGET\r\n$1048577\r\n"),
        Verdict::Close
    );
    assert_eq!(
        local.replies(),
        b"-ERR Protocol error: invalid bulk length\r\n"
    );
}

#[test]
fn before_authentication_requests_are_small() {
    let mut local = Local::with_arguments(&["--requirepass", "secret"]);
    assert_eq!(
        local.send(b"GET k\r\n"),
        b"-NOAUTH Authentication required.\r\n"
    );
    assert_eq!(local.send(b"AUTH secret\r\n"), b"+OK\r\n");
    assert_eq!(local.send(b"*11\r\n"), b"");
    let mut stranger = Local::with_arguments(&["--requirepass", "secret"]);
    assert_eq!(stranger.deliver(b"*11\r\n"), Verdict::Close);
    assert_eq!(
        stranger.replies(),
        b"-ERR Protocol error: unauthenticated multibulk length\r\n"
    );
    let mut stranger = Local::with_arguments(&["--requirepass", "secret"]);
    assert_eq!(
        stranger.deliver(b"*2\r\n$4\r\nAUTH\r\n$16385\r\n"),
        Verdict::Close
    );
    assert_eq!(
        stranger.replies(),
        b"-ERR Protocol error: unauthenticated bulk length\r\n"
    );
}
