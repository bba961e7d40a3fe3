//! Limits on what a client may send.

mod in_process;

use in_process::Local;
use weft_engine::action::Action;
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

/// What a client gets with `client-output-buffer-limit` and so many bytes unsent.
fn limited(limit: &[u8], unsent: usize, request: &[u8]) -> (Verdict, usize, Vec<String>) {
    let mut local = Local::new();
    local.command(&[b"SET", b"key", &[b'v'; 1000]]);
    local.command(&[b"CONFIG", b"SET", b"client-output-buffer-limit", limit]);
    local.set_unsent(unsent);
    let verdict = local.deliver(request);
    let warnings = local
        .worker
        .actions
        .drain(..)
        .filter_map(|action| match action {
            Action::Warn(text) => Some(text),
            _ => None,
        });
    let warnings = warnings.collect();
    let closed = local.engine.totals().output_buffer_limit_disconnections;
    assert_eq!(closed, i64::from(verdict == Verdict::Drop));
    (verdict, local.replies().len(), warnings)
}

#[test]
fn replies_beyond_the_output_limit_end_the_connection_while_they_are_made() {
    // The first 16 KiB do not count.
    let many = b"GET key\r\n".repeat(1000);
    let (verdict, replied, warnings) = limited(b"normal 100000 0 0", 0, &many);
    assert_eq!((verdict, replied), (Verdict::Drop, 0));
    // 116,384 bytes are reached by the 116th reply of 1,009 bytes.
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(warning.starts_with("Client id=1 addr=127.0.0.1:1 laddr=127.0.0.1:2 fd="));
    assert!(
        warning.contains(" obl=16384 oll=7 omem=100660 "),
        "{warning}"
    );
    let fate = " scheduled to be closed ASAP for overcoming of output buffer limits.";
    assert!(warning.ends_with(fate), "{warning}");
    let (verdict, replied, warnings) =
        limited(b"normal 100000 0 0", 0, &b"GET key\r\n".repeat(115));
    assert_eq!((verdict, replied), (Verdict::Open, 115 * 1009));
    assert_eq!(warnings, [""; 0]);
    // What is unsent counts, one command is cut too, and without a limit nothing is.
    let (verdict, ..) = limited(b"normal 100000 0 0", 115_500, b"GET key\r\n");
    assert_eq!(verdict, Verdict::Drop);
    let keys = format!("MGET{}\r\n", " key".repeat(5000));
    let (verdict, replied, warnings) = limited(b"normal 100000 0 0", 0, keys.as_bytes());
    assert_eq!((verdict, replied), (Verdict::Drop, 0));
    assert!(warnings[0].contains(" omem=100667 "), "{}", warnings[0]);
    let (verdict, replied, _) = limited(b"normal 0 1 0", usize::MAX / 2, keys.as_bytes());
    assert_eq!((verdict, replied), (Verdict::Open, 5_045_007));
    // A limit of one byte lets ordinary replies pass.
    let (verdict, ..) = limited(b"normal 1 0 0", 0, &b"GET key\r\n".repeat(16));
    assert_eq!(verdict, Verdict::Open);
    let (verdict, ..) = limited(b"normal 1 0 0", 0, &b"GET key\r\n".repeat(17));
    assert_eq!(verdict, Verdict::Drop);
}
