//! Ends of replies: the scanner finds those that the decoder finds, wherever the stream is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_resp::{DecodeError, DecodeLimits, ReplyScanner, decode_reply_within};

/// The ends of the replies in a stream of two pieces, and whether an error ended it.
fn scan(left: &[u8], right: &[u8], limits: DecodeLimits) -> (Vec<usize>, Option<DecodeError>) {
    let mut scanner = ReplyScanner::new(limits);
    let mut ends = Vec::new();
    let mut before = 0;
    for piece in [left, right] {
        let mut at = 0;
        loop {
            match scanner.scan(&piece[at..]) {
                Ok(Some(reply)) => {
                    at += reply.len;
                    ends.push(before + at);
                }
                Ok(None) => break,
                Err(error) => return (ends, Some(error)),
            }
        }
        before += piece.len();
    }
    (ends, None)
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, stream) = input;
    let limits = DecodeLimits::default();
    let (left, right) = stream.split_at(usize::from(cut) % (stream.len() + 1));
    let whole = scan(stream, &[], limits);
    assert_eq!(scan(left, right, limits), whole);
    let mut at = 0;
    for end in whole.0 {
        match decode_reply_within(&stream[at..], &limits) {
            Ok(Some((_, len))) => at += len,
            // What stands inside a line is not looked at by the scanner, and attributes do not nest for it.
            Err(DecodeError::Malformed | DecodeError::TooDeep) => return,
            other => panic!("the decoder sees {other:?}"),
        }
        assert_eq!(at, end);
    }
});
