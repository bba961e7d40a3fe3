//! The scanner finds the ends that the decoder finds, however the stream is cut.

use proptest::collection::vec;
use proptest::prelude::*;
use weft_resp::{
    DecodeError, DecodeLimits, ReplyClass, ReplyScanner, ScannedReply, decode_reply_within,
};

/// The ends of all replies in a stream given in these pieces, and the error that ended it.
fn scan(pieces: &[&[u8]], limits: DecodeLimits) -> (Vec<(usize, ReplyClass)>, Option<DecodeError>) {
    let mut scanner = ReplyScanner::new(limits);
    let mut ends = Vec::new();
    let mut before = 0;
    for piece in pieces {
        let mut at = 0;
        loop {
            match scanner.scan(&piece[at..]) {
                Ok(Some(ScannedReply { len, class })) => {
                    assert!(len > 0);
                    assert!(scanner.is_between_replies());
                    at += len;
                    ends.push((before + at, class));
                }
                Ok(None) => break,
                Err(error) => return (ends, Some(error)),
            }
        }
        before += piece.len();
    }
    (ends, None)
}

fn ends(stream: &[u8]) -> Vec<(usize, ReplyClass)> {
    let (found, error) = scan(&[stream], DecodeLimits::default());
    assert_eq!(error, None);
    for cut in 0..=stream.len() {
        let (left, right) = stream.split_at(cut);
        assert_eq!(
            scan(&[left, right], DecodeLimits::default()),
            (found.clone(), None),
            "cut at {cut}"
        );
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(
        scan(&bytes, DecodeLimits::default()),
        (found.clone(), None),
        "cut everywhere"
    );
    found
}

fn error_of(stream: &[u8], limits: DecodeLimits) -> Option<DecodeError> {
    let (found, error) = scan(&[stream], limits);
    assert_eq!(found, []);
    for cut in 0..stream.len() {
        let (left, right) = stream.split_at(cut);
        assert_eq!(
            scan(&[left, right], limits),
            (Vec::new(), error),
            "cut at {cut}"
        );
    }
    error
}

#[test]
fn every_type_ends_where_it_does() {
    use ReplyClass::{Error, Null, Push, Value};
    for (reply, class) in [
        ("+OK\r\n", Value),
        ("+\r\n", Value),
        ("-ERR no\r\n", Error),
        (":-12\r\n", Value),
        ("$0\r\n\r\n", Value),
        ("$3\r\na\r\n\r\n", Value),
        ("$12\r\nhello\r\nworld\r\n", Value),
        ("$-1\r\n", Null),
        ("*-1\r\n", Null),
        ("_\r\n", Null),
        ("#t\r\n", Value),
        (",1.5e3\r\n", Value),
        ("(12345678901234567890123\r\n", Value),
        ("=7\r\ntxt:a\r\n\r\n", Value),
        ("!5\r\nERR x\r\n", Error),
        ("*0\r\n", Value),
        ("*2\r\n$-1\r\n-ERR x\r\n", Value),
        ("*2\r\n*1\r\n+a\r\n*0\r\n", Value),
        ("~1\r\n:1\r\n", Value),
        ("%2\r\n+a\r\n:1\r\n+b\r\n%0\r\n", Value),
        (">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n", Push),
        ("|1\r\n+ttl\r\n:1\r\n-ERR x\r\n", Error),
        ("|0\r\n_\r\n", Null),
        ("*2\r\n|1\r\n+ttl\r\n*1\r\n:1\r\n:5\r\n:6\r\n", Value),
    ] {
        let once = [(reply.len(), class)];
        assert_eq!(ends(reply.as_bytes()), once, "{reply:?}");
        let twice = [once[0], (2 * reply.len(), class)];
        assert_eq!(ends(reply.repeat(2).as_bytes()), twice, "{reply:?}");
    }
}

#[test]
fn long_strings_and_counts() {
    for len in [999, 1000, 70_000] {
        let reply = format!("${len}\r\n{}\r\n", "x".repeat(len));
        let cut = reply.as_bytes().split_at(reply.len() / 2);
        let expected = vec![(reply.len(), ReplyClass::Value)];
        assert_eq!(
            scan(&[reply.as_bytes()], DecodeLimits::default()),
            (expected.clone(), None)
        );
        assert_eq!(
            scan(&[cut.0, cut.1], DecodeLimits::default()),
            (expected, None)
        );
    }
    let reply = format!("*1200\r\n{}", ":1\r\n".repeat(1200));
    assert_eq!(
        scan(&[reply.as_bytes()], DecodeLimits::default()).0,
        [(reply.len(), ReplyClass::Value)]
    );
}

#[test]
fn what_is_no_reply_is_an_error() {
    let limits = DecodeLimits::default();
    for (stream, error) in [
        ("hello\r\n", DecodeError::UnknownType(b'h')),
        ("*1\r\n?\r\n", DecodeError::UnknownType(b'?')),
        ("$3\r\nabcd\r\n", DecodeError::MissingLineEnd),
        ("$3\r\nabc\rx", DecodeError::MissingLineEnd),
        ("$3\rxabc\r\n", DecodeError::MissingLineEnd),
        ("+OK\rx", DecodeError::MissingLineEnd),
        ("$-2\r\n", DecodeError::Malformed),
        ("~-1\r\n", DecodeError::Malformed),
        ("$01\r\n", DecodeError::Malformed),
        ("$x\r\n", DecodeError::Malformed),
        ("*\r\n", DecodeError::Malformed),
        (
            "*1111111111111111111111111111111\r\n",
            DecodeError::Malformed,
        ),
        ("$536870913\r\n", DecodeError::TooLarge),
        ("*4294967296\r\n", DecodeError::TooLarge),
        ("%2147483648\r\n", DecodeError::TooLarge),
    ] {
        assert_eq!(
            error_of(stream.as_bytes(), limits),
            Some(error),
            "{stream:?}"
        );
    }
}

#[test]
fn nesting_is_bounded() {
    let limits = DecodeLimits {
        depth_max: 3,
        ..DecodeLimits::default()
    };
    let stream = b"*1\r\n*1\r\n*1\r\n:1\r\n";
    assert_eq!(
        scan(&[stream], limits),
        (vec![(stream.len(), ReplyClass::Value)], None)
    );
    assert_eq!(
        error_of(b"*1\r\n*1\r\n*1\r\n*1\r\n", limits),
        Some(DecodeError::TooDeep)
    );
    // Without a bound this would take memory for each of them.
    let deep = "*1\r\n".repeat(100_000);
    assert_eq!(
        scan(&[deep.as_bytes()], DecodeLimits::default()).1,
        Some(DecodeError::TooDeep)
    );
}

#[test]
fn a_line_ends_or_is_an_error() {
    let longest = format!("+{}\r\n", "x".repeat(64 * 1024));
    assert_eq!(
        scan(&[longest.as_bytes()], DecodeLimits::default()),
        (vec![(longest.len(), ReplyClass::Value)], None)
    );
    let longer = format!("+{}\r\n", "x".repeat(64 * 1024 + 1));
    for cut in [0, 1, 1000, 64 * 1024, 64 * 1024 + 1] {
        let (left, right) = longer.as_bytes().split_at(cut);
        assert_eq!(
            scan(&[left, right], DecodeLimits::default()),
            (Vec::new(), Some(DecodeError::LineTooLong))
        );
    }
}

/// Text in which replies are likely.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "+OK\r\n",
        ":7\r\n",
        "$-1\r\n",
        "_\r\n",
        "$3\r\nabc\r\n",
        "$10\r\n0123456789\r\n",
        "-ERR\r\n",
        "!1\r\nx\r\n",
        "*1\r\n",
        "*3\r\n",
        "*0\r\n",
        "%1\r\n",
        "~2\r\n",
        ">1\r\n",
        "|1\r\n",
        "=5\r\ntxt:x\r\n",
        "\r",
        "\n",
        "$",
        "9",
    ]);
    vec(token, 0..24).prop_map(|tokens| tokens.concat().into_bytes())
}

proptest! {
    #[test]
    fn the_decoder_agrees(stream in stream(), cuts in vec(any::<prop::sample::Index>(), 0..6)) {
        let limits = DecodeLimits::default();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let (found, error) = scan(&pieces, limits);
        let mut at = 0;
        let mut found = found.into_iter().map(|(end, _)| end);
        loop {
            match decode_reply_within(&stream[at..], &limits) {
                Ok(Some((_, len))) => {
                    at += len;
                    prop_assert_eq!(found.next(), Some(at));
                }
                Ok(None) => {
                    prop_assert_eq!(found.next(), None);
                    break;
                }
                // What stands inside a line is not looked at by the scanner.
                Err(DecodeError::Malformed) => break,
                Err(decoded) => {
                    prop_assert_eq!(found.next(), None);
                    prop_assert_eq!(error, Some(decoded));
                    break;
                }
            }
        }
    }
}
