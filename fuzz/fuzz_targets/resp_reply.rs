//! Replies: a decoded reply, encoded again, decodes to the same; what is cut short is incomplete.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_resp::{DecodeLimits, Protocol, Reply, Writer, decode_reply_within};
use weft_rope::Output;

fuzz_target!(|input: &[u8]| {
    let limits = DecodeLimits::default();
    let Ok(Some((reply, len))) = decode_reply_within(input, &limits) else {
        return;
    };
    assert!(len <= input.len());
    for end in 0..len.min(2048) {
        let part = decode_reply_within(&input[..end], &limits);
        assert!(
            matches!(part, Ok(None)),
            "a part of a reply is not incomplete"
        );
    }
    let mut out = Output::new();
    write(&reply, &mut Writer::new(&mut out, Protocol::Resp3));
    let bytes = out.to_vec();
    let (again, len) = decode_reply_within(&bytes, &limits)
        .expect("valid")
        .expect("complete");
    assert_eq!(len, bytes.len());
    // Debug text, in which a NaN equals itself.
    assert_eq!(format!("{again:?}"), format!("{reply:?}"));
});

fn write(reply: &Reply, writer: &mut Writer<'_>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = |replies: &[Reply], writer: &mut Writer<'_>| {
        replies.iter().for_each(|reply| write(reply, writer));
    };
    let all_pairs = |pairs: &[(Reply, Reply)], writer: &mut Writer<'_>| {
        for (key, value) in pairs {
            write(key, writer);
            write(value, writer);
        }
    };
    match reply {
        // What the writer would change, or has no call for, is repeated as it was.
        Reply::Simple(bytes) => raw_line(writer, b'+', bytes),
        Reply::Error(bytes) => raw_line(writer, b'-', bytes),
        Reply::NullBulk => writer.raw(b"$-1\r\n"),
        Reply::NullArray => writer.raw(b"*-1\r\n"),
        Reply::BulkError(bytes) => {
            writer.raw(format!("!{}\r\n", bytes.len()).as_bytes());
            writer.raw(bytes);
            writer.raw(b"\r\n");
        }
        Reply::Verbatim(format, bytes) => {
            writer.raw(format!("={}\r\n", bytes.len() + 4).as_bytes());
            writer.raw(format);
            writer.raw(b":");
            writer.raw(bytes);
            writer.raw(b"\r\n");
        }
        Reply::Integer(value) => writer.integer(*value),
        Reply::Bulk(bytes) => writer.bulk(bytes),
        Reply::Null => writer.null(),
        Reply::Array(replies) => {
            writer.array(replies.len());
            all(replies, writer);
        }
        Reply::Map(pairs) => {
            let deferred = writer.deferred_map();
            all_pairs(pairs, writer);
            writer.finish(deferred, pairs.len());
        }
        Reply::Set(replies) => {
            let deferred = writer.deferred_set();
            all(replies, writer);
            writer.finish(deferred, replies.len());
        }
        Reply::Push(replies) => {
            writer.push(replies.len());
            all(replies, writer);
        }
        Reply::Double(value) => writer.double(*value),
        Reply::Boolean(value) => writer.boolean(*value),
        Reply::BigNumber(digits) => writer.big_number(&text(digits)),
        Reply::Attribute(pairs, reply) => {
            assert!(writer.attribute(pairs.len()));
            all_pairs(pairs, writer);
            write(reply, writer);
        }
        other => unreachable!("no such reply type: {other:?}"),
    }
}

fn raw_line(writer: &mut Writer<'_>, kind: u8, bytes: &[u8]) {
    writer.raw(&[kind]);
    writer.raw(bytes);
    writer.raw(b"\r\n");
}
