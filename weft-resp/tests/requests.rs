//! Requests: exact values and errors as Redis 8.2 answered them over a raw socket, each with every cut of the bytes.

use weft_resp::{Limits, ProtocolError, RequestParser, Requests};

type Command = Vec<Vec<u8>>;

/// What became of a stream: the requests, the error, and how many bytes were held at the end.
#[derive(Debug, PartialEq)]
struct Outcome {
    requests: Vec<Command>,
    error: Option<ProtocolError>,
}

fn run(pieces: &[&[u8]], limits: &Limits, max_requests: usize) -> Outcome {
    let mut parser = RequestParser::new();
    let mut outcome = Outcome {
        requests: Vec::new(),
        error: None,
    };
    let mut requests = Requests::new();
    for piece in pieces {
        let source = parser.begin(piece);
        let mut more = true;
        while more {
            requests.clear();
            match parser.parse(&source, limits, max_requests, &mut requests) {
                Ok(again) => more = again,
                Err(error) => {
                    outcome.error = Some(error);
                    more = false;
                }
            }
            assert!(requests.len() <= max_requests);
            for args in requests.iter(&source) {
                outcome
                    .requests
                    .push(args.iter().map(<[u8]>::to_vec).collect());
            }
        }
        parser.end(source);
        if outcome.error.is_some() {
            break;
        }
    }
    outcome
}

/// The outcome of `stream` with the default limits, checked to be the same whole, bytewise and in two pieces.
fn outcome_within(stream: &[u8], limits: &Limits) -> Outcome {
    let whole = run(&[stream], limits, usize::MAX);
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(run(&bytes, limits, 1), whole, "byte by byte");
    assert_eq!(run(&[stream], limits, 1), whole, "one at a time");
    let step = (stream.len() / 200).max(1);
    for cut in (0..=stream.len()).step_by(step) {
        let (left, right) = stream.split_at(cut);
        assert_eq!(run(&[left, right], limits, 3), whole, "cut at {cut}");
    }
    whole
}

fn outcome(stream: &[u8]) -> Outcome {
    outcome_within(stream, &Limits::default())
}

fn parsed(stream: &[u8]) -> Vec<Command> {
    let outcome = outcome(stream);
    assert_eq!(outcome.error, None);
    outcome.requests
}

fn error(stream: &[u8]) -> String {
    outcome(stream).error.expect("a protocol error").to_string()
}

fn command(args: &[&[u8]]) -> Command {
    args.iter().map(|arg| arg.to_vec()).collect()
}

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

fn with_ping(stream: &[u8]) -> Vec<u8> {
    [stream, PING].concat()
}

#[test]
fn multibulk() {
    assert_eq!(parsed(PING), [command(&[b"PING"])]);
    assert_eq!(
        parsed(b"*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000001\r\n$0\r\n\r\n*1\r\n$4\r\nQUIT\r\n"),
        [
            command(&[b"SET", b"key:000000000001", b""]),
            command(&[b"QUIT"])
        ]
    );
    let value = vec![b'v'; 1234];
    let mut stream = b"*2\r\n$4\r\nECHO\r\n$1234\r\n".to_vec();
    stream.extend_from_slice(&value);
    stream.extend_from_slice(b"\r\n");
    assert_eq!(
        parsed(&with_ping(&stream)),
        [command(&[b"ECHO", &value]), command(&[b"PING"])]
    );
}

#[test]
fn line_ends_are_not_looked_at() {
    assert_eq!(
        parsed(&with_ping(b"*1\rX$4\rYPINGZZ")),
        [command(&[b"PING"]), command(&[b"PING"])]
    );
    assert_eq!(
        parsed(&with_ping(b"*1\r\n$5\r\nhelloXX")),
        [command(&[b"hello"]), command(&[b"PING"])]
    );
    assert_eq!(
        parsed(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nabcdPING\r\n"),
        [command(&[b"SET", b"k", b"abc"]), command(&[b"ING"])]
    );
}

#[test]
fn empty_requests_are_skipped() {
    for empty in [
        &b"*0\r\n"[..],
        b"*-1\r\n",
        b"*-5\r\n",
        b"*-9223372036854775808\r\n",
        b"\r\n",
        b"\n",
        b"  \t\r\n",
    ] {
        assert_eq!(
            parsed(&with_ping(empty)),
            [command(&[b"PING"])],
            "{empty:?}"
        );
        assert_eq!(parsed(empty), Vec::<Command>::new());
    }
}

#[test]
fn invalid_multibulk_length() {
    for bad in [
        "*x",
        "*",
        "*+1",
        "*2147483648",
        "*-9223372036854775809",
        "*01",
        "*-0",
        "* 1",
        "*1 ",
        "*9223372036854775808",
    ] {
        let stream = [PING, bad.as_bytes(), b"\r\n", PING].concat();
        let outcome = outcome(&stream);
        assert_eq!(outcome.requests, [command(&[b"PING"])], "{bad}");
        assert_eq!(
            outcome.error,
            Some(ProtocolError::InvalidMultibulkLength),
            "{bad}"
        );
    }
    assert_eq!(error(b"*x\r\n"), "Protocol error: invalid multibulk length");
    assert_eq!(parsed(b"*2147483647\r\n"), Vec::<Command>::new());
    assert_eq!(parsed(b"*x\r"), Vec::<Command>::new());
}

#[test]
fn invalid_bulk_length() {
    for bad in [
        "$-1",
        "$",
        "$x",
        "$+4",
        "$04",
        "$536870913",
        "$4294967300",
        "$18446744073709551616",
        "$-0",
        "$4 ",
    ] {
        let stream = [b"*1\r\n", bad.as_bytes(), b"\r\nPING\r\n"].concat();
        assert_eq!(
            error(&stream),
            "Protocol error: invalid bulk length",
            "{bad}"
        );
    }
    assert_eq!(parsed(b"*1\r\n$536870912\r\n"), Vec::<Command>::new());
    assert_eq!(parsed(b"*1\r\n$x\r"), Vec::<Command>::new());
}

#[test]
fn expected_dollar() {
    assert_eq!(
        error(b"*1\r\n:5\r\n"),
        "Protocol error: expected '$', got ':'"
    );
    assert_eq!(
        error(b"*1\r\n\r\n"),
        "Protocol error: expected '$', got ' '"
    );
    assert_eq!(
        error(b"*1\r\n\n\r\n"),
        "Protocol error: expected '$', got ' '"
    );
    assert_eq!(
        outcome(b"*1\r\n\xff\r\n").error.unwrap().message().as_ref(),
        b"Protocol error: expected '$', got '\xff'"
    );
    assert_eq!(parsed(b"*1\r\n:5"), Vec::<Command>::new());
    assert_eq!(parsed(b"*1\r\n:5\r"), Vec::<Command>::new());
}

#[test]
fn a_nul_hides_the_rest_of_a_line() {
    for stream in [
        &b"*1\0\r\n"[..],
        b"*1\r\n$4\0\r\nPING\r\n",
        b"*1\r\n\0\r\n",
        b"PING\0 x\r\n",
        b"ECHO \"a\0b\"\r\n",
    ] {
        assert_eq!(
            parsed(&with_ping(stream)),
            Vec::<Command>::new(),
            "{stream:?}"
        );
    }
}

#[test]
fn lines_too_long() {
    let outcome = |start: &str, len: usize, end: &str| {
        let mut stream = start.as_bytes().to_vec();
        let line = start.rfind('\n').map_or(0, |at| at + 1);
        stream.resize(line + len, b'1');
        stream.extend_from_slice(end.as_bytes());
        run(&[&stream], &Limits::default(), usize::MAX).error
    };
    assert_eq!(outcome("*", 65_536, ""), None);
    assert_eq!(
        outcome("*", 65_537, ""),
        Some(ProtocolError::MultibulkCountTooBig)
    );
    assert_eq!(
        outcome("*", 65_536, "\r\n"),
        Some(ProtocolError::InvalidMultibulkLength)
    );
    assert_eq!(outcome("*1\r\n$", 65_536, ""), None);
    assert_eq!(
        outcome("*1\r\n$", 65_537, ""),
        Some(ProtocolError::BulkCountTooBig)
    );
    assert_eq!(
        outcome("*1\r\n$", 65_536, "\r\n"),
        Some(ProtocolError::InvalidBulkLength)
    );
    assert_eq!(
        outcome("*1\r\nx", 65_537, ""),
        Some(ProtocolError::BulkCountTooBig)
    );
    assert_eq!(outcome("A", 65_536, ""), None);
    assert_eq!(outcome("A", 65_537, ""), Some(ProtocolError::InlineTooBig));
    assert_eq!(outcome("A", 65_536, "\n"), None);
    assert_eq!(
        ProtocolError::MultibulkCountTooBig.to_string(),
        "Protocol error: too big mbulk count string"
    );
    assert_eq!(
        ProtocolError::BulkCountTooBig.to_string(),
        "Protocol error: too big bulk count string"
    );
    assert_eq!(
        ProtocolError::InlineTooBig.to_string(),
        "Protocol error: too big inline request"
    );
}

#[test]
fn unauthenticated() {
    let limits = Limits {
        authenticated: false,
        ..Limits::default()
    };
    let error = |stream: &[u8]| {
        outcome_within(stream, &limits)
            .error
            .map(|error| error.to_string())
    };
    assert_eq!(error(b"*10\r\n$4\r\nECHO\r\n"), None);
    assert_eq!(
        error(b"*11\r\n").as_deref(),
        Some("Protocol error: unauthenticated multibulk length")
    );
    assert_eq!(error(b"*1\r\n$16384\r\n"), None);
    assert_eq!(
        error(b"*1\r\n$16385\r\n").as_deref(),
        Some("Protocol error: unauthenticated bulk length")
    );
    assert_eq!(
        error(b"*1\r\n$536870913\r\n").as_deref(),
        Some("Protocol error: invalid bulk length")
    );
    assert_eq!(
        error(b"*2147483648\r\n").as_deref(),
        Some("Protocol error: invalid multibulk length")
    );
    assert_eq!(error(b"PING a b c d e f g h i j k l m n\r\n"), None);
}

#[test]
fn inline() {
    let cases: &[(&[u8], &[&[u8]])] = &[
        (b"PING\r\n", &[b"PING"]),
        (b"PING\n", &[b"PING"]),
        (b"\rPING\r\n", &[b"PING"]),
        (b"PING\r\r\n", &[b"PING"]),
        (b"\t PING \t\r\n", &[b"PING"]),
        (b"ECHO a\rb\n", &[b"ECHO", b"a", b"b"]),
        (b"ECHO a\tb\r\n", &[b"ECHO", b"a", b"b"]),
        (b"ECHO \x0b\x0ca\r\n", &[b"ECHO", b"a"]),
        (b"ECHO a\x0bb\r\n", &[b"ECHO", b"a\x0bb"]),
        (b"ECHO a\x0cb\r\n", &[b"ECHO", b"a\x0cb"]),
        (
            b"ECHO \"a\\x41\\n\\r\\t\\b\\a\\q\\\"\\\\\"\r\n",
            &[b"ECHO", b"aA\n\r\t\x08\x07q\"\\"],
        ),
        (b"ECHO 'a\\'b\\n\\x41'\r\n", &[b"ECHO", b"a'b\\n\\x41"]),
        (b"ECHO a'b'\r\n", &[b"ECHO", b"ab"]),
        (b"ECHO ab\"c d\"\r\n", &[b"ECHO", b"abc d"]),
        (b"ECHO \"\" ''\r\n", &[b"ECHO", b"", b""]),
        (b"ECHO \"\\xZZ\"\r\n", &[b"ECHO", b"xZZ"]),
        (b"ECHO \"\\x4\"\r\n", &[b"ECHO", b"x4"]),
        (b"ECHO \"\\xaF\\x00\"\r\n", &[b"ECHO", b"\xaf\0"]),
        (b"ECHO \"a\"\x0b\r\n", &[b"ECHO", b"a"]),
        (b"ECHO \"a\"\tb\r\n", &[b"ECHO", b"a", b"b"]),
        (b"ECHO \xa0\xff\r\n", &[b"ECHO", b"\xa0\xff"]),
        (b"PING \"\r\" \r\n", &[b"PING", b"\r"]),
        (b"\"\"\r\n", &[b""]),
        (b"$4\r\n", &[b"$4"]),
    ];
    for (line, expected) in cases {
        assert_eq!(
            parsed(&with_ping(line)),
            [command(expected), command(&[b"PING"])],
            "{:?}",
            line.escape_ascii().to_string()
        );
    }
    for unbalanced in [
        &b"ECHO \"abc\r\n"[..],
        b"ECHO \"a\"b\r\n",
        b"ECHO 'a'b\r\n",
        b"ECHO a\"b\"c\r\n",
        b"ECHO \"a\\\r\n",
        b"ECHO 'a\r\n",
        b"ECHO a\"b c\"d\r\n",
        b"ECHO a\"b\r\n",
        b"ECHO 'a\\'\r\n",
    ] {
        let stream = [PING, unbalanced, PING].concat();
        let outcome = outcome(&stream);
        assert_eq!(outcome.requests, [command(&[b"PING"])]);
        assert_eq!(
            outcome.error.unwrap().to_string(),
            "Protocol error: unbalanced quotes in request"
        );
    }
}
