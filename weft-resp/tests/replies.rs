//! Replies: exact bytes as Redis 8.2 sent them in both protocols, and back.

use proptest::collection::vec;
use proptest::prelude::*;
use weft_resp::{
    DecodeError, DecodeLimits, Protocol, Reply, RequestWriter, Writer, decode_reply,
    decode_reply_within,
};
use weft_rope::{Output, Rope};

fn written(protocol: Protocol, write: impl Fn(&mut Writer<'_>)) -> String {
    let mut out = Output::new();
    write(&mut Writer::new(&mut out, protocol));
    out.to_vec().escape_ascii().to_string()
}

/// Checks what `write` gives in RESP2 and in RESP3.
fn check(resp2: &str, resp3: &str, write: impl Fn(&mut Writer<'_>)) {
    assert_eq!(written(Protocol::Resp2, &write), resp2);
    assert_eq!(written(Protocol::Resp3, &write), resp3);
}

fn check_both(expected: &str, write: impl Fn(&mut Writer<'_>)) {
    check(expected, expected, write);
}

#[test]
fn lines() {
    check_both(r"+OK\r\n", |writer| writer.ok());
    check_both(r"+PONG\r\n", |writer| writer.simple("PONG"));
    check_both(r"+a b \r\n", |writer| writer.simple("a\nb\n"));
    check_both(r"-ERR no such key\r\n", |writer| {
        writer.error("ERR no such key")
    });
    check_both(r"-ERR a  b\r\n", |writer| writer.error("ERR a\r\nb\r\n"));
    check_both(r"-ERR \xff\x00\r\n", |writer| {
        writer.error_bytes(b"ERR \xff\0")
    });
    check_both(r"-\r\n", |writer| writer.error("\r\n"));
}

#[test]
fn integers() {
    for value in [
        0,
        7,
        9,
        10,
        42,
        99,
        100,
        101,
        999,
        1000,
        12_345,
        1_234_567_890,
        i64::MAX,
        -1,
        -9,
        -10,
        -100,
        -1234,
        i64::MIN,
    ] {
        check_both(&format!(r":{value}\r\n"), |writer| writer.integer(value));
        let len = value.to_string().len();
        check_both(&format!(r"${len}\r\n{value}\r\n"), |writer| {
            writer.bulk_integer(value)
        });
    }
    for exponent in 0..19 {
        for value in [
            10i64.pow(exponent) - 1,
            10i64.pow(exponent),
            -(10i64.pow(exponent)),
        ] {
            check_both(&format!(r":{value}\r\n"), |writer| writer.integer(value));
        }
    }
}

#[test]
fn strings() {
    check_both(r"$0\r\n\r\n", |writer| writer.bulk(b""));
    check_both(r"$3\r\na\r\n\r\n", |writer| writer.bulk(b"a\r\n"));
    for len in [1, 9, 10, 99, 100, 128, 999, 1000, 65_536, 100_000] {
        let bytes = vec![b'x'; len];
        let expected = format!(r"${len}\r\n{}\r\n", "x".repeat(len));
        check_both(&expected, |writer| writer.bulk(&bytes));
        check_both(&expected, |writer| {
            writer.bulk_rope(&Rope::from_slice(&bytes))
        });
    }
    check(
        r"$25\r\nThis is a verbatim\nstring\r\n",
        r"=29\r\ntxt:This is a verbatim\nstring\r\n",
        |writer| {
            writer.verbatim("txt", b"This is a verbatim\nstring");
        },
    );
    check(
        r"$37\r\n1234567999999999999999999999999999999\r\n",
        r"(1234567999999999999999999999999999999\r\n",
        |writer| writer.big_number("1234567999999999999999999999999999999"),
    );
}

#[test]
fn absence_and_booleans() {
    check(r"$-1\r\n", r"_\r\n", |writer| writer.null());
    check(r"*-1\r\n", r"_\r\n", |writer| writer.null_array());
    check(r":1\r\n", r"#t\r\n", |writer| writer.boolean(true));
    check(r":0\r\n", r"#f\r\n", |writer| writer.boolean(false));
}

#[test]
fn aggregates() {
    check_both(r"*3\r\n", |writer| writer.array(3));
    check_both(r"*1000000\r\n", |writer| writer.array(1_000_000));
    check(r"*6\r\n", r"%3\r\n", |writer| writer.map(3));
    check(r"*3\r\n", r"~3\r\n", |writer| writer.set(3));
    check(r"*2\r\n", r">2\r\n", |writer| writer.push(2));
    check(r":1\r\n", r"|1\r\n+k\r\n+v\r\n:1\r\n", |writer| {
        if writer.attribute(1) {
            writer.simple("k");
            writer.simple("v");
        }
        writer.integer(1);
    });
}

#[test]
fn deferred_aggregates() {
    check(
        r"*2\r\n*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n*1\r\n$1\r\nx\r\n",
        r"*2\r\n%2\r\n:1\r\n:2\r\n:3\r\n:4\r\n~1\r\n$1\r\nx\r\n",
        |writer| {
            let outer = writer.deferred_array();
            let map = writer.deferred_map();
            (1..=4).for_each(|value| writer.integer(value));
            writer.finish(map, 2);
            let set = writer.deferred_set();
            writer.bulk(b"x");
            writer.finish(set, 1);
            writer.finish(outer, 2);
        },
    );
    check_both(r"*0\r\n", |writer| {
        let deferred = writer.deferred_array();
        writer.finish(deferred, 0);
    });
    // The elements fill several runs and hold a lent rope.
    let rope = Rope::from_slice(&[b'y'; 100_000]);
    let expected = format!(
        r":1\r\n*3001\r\n$100000\r\n{}\r\n{}",
        "y".repeat(100_000),
        format!(r"$100\r\n{}\r\n", "x".repeat(100)).repeat(3000)
    );
    check_both(&expected, |writer| {
        writer.integer(1);
        let deferred = writer.deferred_array();
        writer.bulk_rope(&rope);
        (0..3000).for_each(|_| writer.bulk(&[b'x'; 100]));
        writer.finish(deferred, 3001);
    });
}

/// Scores and what ZSCORE answered.
const DOUBLES: &[(f64, &str)] = &[
    (3.0, "3"),
    (-3.0, "-3"),
    (0.0, "0"),
    (-0.0, "-0"),
    (f64::INFINITY, "inf"),
    (f64::NEG_INFINITY, "-inf"),
    (f64::NAN, "nan"),
    (2.5001, "2.5001"),
    (0.1, "0.1"),
    (1.5, "1.5"),
    (1e15, "1000000000000000"),
    (1e18, "1000000000000000000"),
    (1e19, "1e+19"),
    (1e22, "1e+22"),
    // Not the shortest digits, but those that Redis finds.
    (1e23, "99999999999999990000000"),
    (1.234e22, "12339999999999999000000"),
    (1e24, "1e+24"),
    (1e100, "1e+100"),
    (1e-100, "1e-100"),
    (1e-5, "0.00001"),
    (1e-6, "0.000001"),
    (1e-7, "1e-7"),
    (1.5e-5, "0.000015"),
    (1.234e-5, "1.234e-5"),
    (-1.5e-7, "-1.5e-7"),
    (0.000123, "0.000123"),
    (1.23e-6, "1.23e-6"),
    (123_456_789_012_345_678.0, "123456789012345680"),
    (1_234_567_890_123_456_789_012.0, "1234567890123456800000"),
    (1.234e21, "1.234e+21"),
    (4_611_686_018_427_387_904.0, "4611686018427387904"),
    (-4_611_686_018_427_387_904.0, "-4611686018427387904"),
    (9_223_372_036_854_775_807.0, "9223372036854776000"),
    (9.3e18, "9.3e+18"),
    (5e-324, "5e-324"),
    (2.225_073_858_507_201_4e-308, "2.2250738585072014e-308"),
    (f64::MAX, "1.7976931348623157e+308"),
    (1.000_000_000_000_000_2, "1.0000000000000002"),
    (123_456_789.123, "123456789.123"),
    (1_234_567_890_123_456.7, "1234567890123456.7"),
    (15_799_334.033_162_236, "1.5799334033162236e+7"),
    (2.904_078_757_486_794_3, "2.9040787574867943"),
    (0.027_974_984_083_842_358, "0.027974984083842358"),
];

#[test]
fn doubles() {
    for (value, text) in DOUBLES {
        let resp2 = format!(r"${}\r\n{text}\r\n", text.len());
        check(&resp2, &format!(r",{text}\r\n"), |writer| {
            writer.double(*value)
        });
        check_both(&resp2, |writer| writer.bulk_double(*value));
    }
}

/// 100,000 doubles, half of them of any magnitude, half between 2^-32 and 2^96: the FNV-1a hash of the lines that
/// ZSCORE answered for them.
#[test]
fn many_doubles() {
    const ANSWERED: u64 = 0xed9f_a427_146f_4d72;
    let mut state = 0u64;
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for index in 0..100_000 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        if index % 2 == 1 {
            bits = bits & !(0x7ff << 52) | (1023 - 32 + (bits >> 52 & 0x7f)) << 52;
        }
        let value = f64::from_bits(bits);
        let text = weft_resp::double_text(if value.is_finite() { value } else { 0.0 });
        for byte in text.as_bytes().iter().chain(b"\n") {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    assert_eq!(hash, ANSWERED);
}

#[test]
fn requests_are_written_as_multibulks() {
    let mut out = Vec::new();
    let mut writer = RequestWriter::new(&mut out);
    writer.command(&[b"SET", b"k", b""]);
    writer.begin(2);
    writer.arg_integer(-1234);
    writer.arg_rope(&Rope::from_slice(b"xy"));
    assert_eq!(
        out,
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n*2\r\n$5\r\n-1234\r\n$2\r\nxy\r\n"
    );
}

fn decoded(bytes: &[u8]) -> Reply {
    let (reply, len) = decode_reply(bytes)
        .expect("a valid reply")
        .expect("a complete reply");
    assert_eq!(len, bytes.len());
    for end in 0..bytes.len() {
        assert_eq!(decode_reply(&bytes[..end]), Ok(None), "cut at {end}");
    }
    reply
}

#[test]
fn every_type_is_decoded() {
    let bulk = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
    assert_eq!(decoded(b"+OK\r\n"), Reply::Simple(b"OK".to_vec()));
    assert_eq!(decoded(b"-ERR x\r\n"), Reply::Error(b"ERR x".to_vec()));
    assert_eq!(decoded(b":-12\r\n"), Reply::Integer(-12));
    assert_eq!(decoded(b":+12\r\n"), Reply::Integer(12));
    assert_eq!(decoded(b"$5\r\na\r\nbc\r\n"), bulk("a\r\nbc"));
    assert_eq!(decoded(b"$-1\r\n"), Reply::NullBulk);
    assert_eq!(decoded(b"*-1\r\n"), Reply::NullArray);
    assert_eq!(decoded(b"_\r\n"), Reply::Null);
    assert_eq!(decoded(b"#t\r\n"), Reply::Boolean(true));
    assert_eq!(decoded(b"#f\r\n"), Reply::Boolean(false));
    assert_eq!(decoded(b",1e+100\r\n"), Reply::Double(1e100));
    assert_eq!(decoded(b",-inf\r\n"), Reply::Double(f64::NEG_INFINITY));
    assert!(matches!(decoded(b",nan\r\n"), Reply::Double(value) if value.is_nan()));
    assert_eq!(
        decoded(b"(-123456789012345678901\r\n"),
        Reply::BigNumber(b"-123456789012345678901".to_vec())
    );
    assert_eq!(
        decoded(b"=7\r\nmkd:# a\r\n"),
        Reply::Verbatim(*b"mkd", b"# a".to_vec())
    );
    assert_eq!(
        decoded(b"!5\r\nERR\r\n\r\n"),
        Reply::BulkError(b"ERR\r\n".to_vec())
    );
    assert_eq!(
        decoded(b"*2\r\n:1\r\n*0\r\n"),
        Reply::Array(vec![Reply::Integer(1), Reply::Array(Vec::new())])
    );
    assert_eq!(decoded(b"~1\r\n$1\r\na\r\n"), Reply::Set(vec![bulk("a")]));
    assert_eq!(decoded(b">1\r\n$1\r\na\r\n"), Reply::Push(vec![bulk("a")]));
    assert_eq!(
        decoded(b"%1\r\n$1\r\na\r\n:1\r\n"),
        Reply::Map(vec![(bulk("a"), Reply::Integer(1))])
    );
    assert_eq!(
        decoded(b"|1\r\n+a\r\n:1\r\n*1\r\n_\r\n"),
        Reply::Attribute(
            vec![(Reply::Simple(b"a".to_vec()), Reply::Integer(1))],
            Box::new(Reply::Array(vec![Reply::Null]))
        )
    );
}

#[test]
fn malformed_replies() {
    let cases: &[(&[u8], DecodeError)] = &[
        (b"x\r\n", DecodeError::UnknownType(b'x')),
        (b":1x\r\n", DecodeError::Malformed),
        (b":\r\n", DecodeError::Malformed),
        (b":01\r\n", DecodeError::Malformed),
        (b":9223372036854775808\r\n", DecodeError::Malformed),
        (b",abc\r\n", DecodeError::Malformed),
        (b",infinity\r\n", DecodeError::Malformed),
        (b",\r\n", DecodeError::Malformed),
        (b"#x\r\n", DecodeError::Malformed),
        (b"_x\r\n", DecodeError::Malformed),
        (b"(12a\r\n", DecodeError::Malformed),
        (b"(\r\n", DecodeError::Malformed),
        (b"=3\r\ntxt\r\n", DecodeError::Malformed),
        (b"$-2\r\n", DecodeError::Malformed),
        (b"~-1\r\n", DecodeError::Malformed),
        (b"$1\r\nabc", DecodeError::MissingLineEnd),
        (b"$1\r\na\rb", DecodeError::MissingLineEnd),
        (b"+a\rb", DecodeError::MissingLineEnd),
        (b"$536870913\r\n", DecodeError::TooLarge),
        (b"*4294967296\r\n", DecodeError::TooLarge),
    ];
    for (bytes, error) in cases {
        assert_eq!(
            decode_reply(bytes),
            Err(*error),
            "{:?}",
            bytes.escape_ascii().to_string()
        );
    }
    assert_eq!(
        decode_reply(&[&b"+"[..], &[b'a'; 70_000]].concat()),
        Err(DecodeError::LineTooLong)
    );
    assert_eq!(decode_reply(&b"*1\r\n".repeat(128)), Ok(None));
    assert_eq!(
        decode_reply(&b"*1\r\n".repeat(129)),
        Err(DecodeError::TooDeep)
    );
    assert_eq!(
        decode_reply(&b"|0\r\n".repeat(100_000)),
        Err(DecodeError::TooDeep)
    );
    let limits = DecodeLimits {
        depth_max: 1,
        bulk_max: 3,
        elements_max: 4,
    };
    assert_eq!(
        decode_reply_within(b"$4\r\n", &limits),
        Err(DecodeError::TooLarge)
    );
    assert_eq!(
        decode_reply_within(b"%3\r\n", &limits),
        Err(DecodeError::TooLarge)
    );
    assert_eq!(
        decode_reply_within(b"*1\r\n*1\r\n", &limits),
        Err(DecodeError::TooDeep)
    );
}

/// A reply to write: what every type becomes in each protocol is known.
#[derive(Clone, Debug)]
enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    NullArray,
    Double(f64),
    Boolean(bool),
    BigNumber(String),
    Verbatim(Vec<u8>),
    Array(Vec<Value>, bool),
    Set(Vec<Value>, bool),
    Push(Vec<Value>),
    Map(Vec<(Value, Value)>, bool),
    Attribute(Vec<(Value, Value)>, Box<Value>),
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        "[ -~]{0,12}".prop_map(Value::Simple),
        "[!-~][ -~]{0,12}".prop_map(Value::Error),
        any::<i64>().prop_map(Value::Integer),
        (-1200..1200i64).prop_map(Value::Integer),
        vec(any::<u8>(), 0..200).prop_map(Value::Bulk),
        (0..70_000usize).prop_map(|len| Value::Bulk(vec![b'b'; len])),
        Just(Value::Null),
        Just(Value::NullArray),
        any::<f64>()
            .prop_filter("nan equals nothing", |value| !value.is_nan())
            .prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        "-?[1-9][0-9]{0,40}".prop_map(Value::BigNumber),
        vec(any::<u8>(), 0..20).prop_map(Value::Verbatim),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let pairs = vec((inner.clone(), inner.clone()), 0..4);
        prop_oneof![
            (vec(inner.clone(), 0..6), any::<bool>())
                .prop_map(|(elements, deferred)| Value::Array(elements, deferred)),
            (vec(inner.clone(), 0..6), any::<bool>())
                .prop_map(|(elements, deferred)| Value::Set(elements, deferred)),
            vec(inner.clone(), 0..6).prop_map(Value::Push),
            (pairs.clone(), any::<bool>())
                .prop_map(|(pairs, deferred)| Value::Map(pairs, deferred)),
            (pairs, inner).prop_map(|(pairs, value)| Value::Attribute(pairs, Box::new(value))),
        ]
    })
}

fn write(value: &Value, writer: &mut Writer<'_>) {
    let all = |values: &[Value], writer: &mut Writer<'_>| {
        values.iter().for_each(|value| write(value, writer))
    };
    let all_pairs = |pairs: &[(Value, Value)], writer: &mut Writer<'_>| {
        for (key, value) in pairs {
            write(key, writer);
            write(value, writer);
        }
    };
    match value {
        Value::Simple(text) => writer.simple(text),
        Value::Error(text) => writer.error(text),
        Value::Integer(value) => writer.integer(*value),
        Value::Bulk(bytes) if bytes.len() > 60_000 => writer.bulk_rope(&Rope::from_slice(bytes)),
        Value::Bulk(bytes) => writer.bulk(bytes),
        Value::Null => writer.null(),
        Value::NullArray => writer.null_array(),
        Value::Double(value) => writer.double(*value),
        Value::Boolean(value) => writer.boolean(*value),
        Value::BigNumber(digits) => writer.big_number(digits),
        Value::Verbatim(bytes) => writer.verbatim("txt", bytes),
        Value::Array(values, false) => {
            writer.array(values.len());
            all(values, writer);
        }
        Value::Array(values, true) => {
            let deferred = writer.deferred_array();
            all(values, writer);
            writer.finish(deferred, values.len());
        }
        Value::Set(values, false) => {
            writer.set(values.len());
            all(values, writer);
        }
        Value::Set(values, true) => {
            let deferred = writer.deferred_set();
            all(values, writer);
            writer.finish(deferred, values.len());
        }
        Value::Push(values) => {
            writer.push(values.len());
            all(values, writer);
        }
        Value::Map(pairs, false) => {
            writer.map(pairs.len());
            all_pairs(pairs, writer);
        }
        Value::Map(pairs, true) => {
            let deferred = writer.deferred_map();
            all_pairs(pairs, writer);
            writer.finish(deferred, pairs.len());
        }
        Value::Attribute(pairs, value) => {
            if writer.attribute(pairs.len()) {
                all_pairs(pairs, writer);
            }
            write(value, writer);
        }
    }
}

/// What decoding gives for `value` written in `protocol`.
fn expected(value: &Value, protocol: Protocol) -> Reply {
    let resp3 = protocol == Protocol::Resp3;
    let all = |values: &[Value]| {
        values
            .iter()
            .map(|value| expected(value, protocol))
            .collect::<Vec<_>>()
    };
    let pairs = |pairs: &[(Value, Value)]| {
        pairs
            .iter()
            .map(|(key, value)| (expected(key, protocol), expected(value, protocol)))
            .collect::<Vec<_>>()
    };
    let bulk = |bytes: &[u8]| Reply::Bulk(bytes.to_vec());
    match value {
        Value::Simple(text) => Reply::Simple(text.clone().into_bytes()),
        Value::Error(text) => Reply::Error(text.clone().into_bytes()),
        Value::Integer(value) => Reply::Integer(*value),
        Value::Bulk(bytes) => bulk(bytes),
        Value::Null | Value::NullArray if resp3 => Reply::Null,
        Value::Null => Reply::NullBulk,
        Value::NullArray => Reply::NullArray,
        Value::Double(value) if resp3 => Reply::Double(*value),
        Value::Double(value) => bulk(weft_resp::double_text(*value).as_bytes()),
        Value::Boolean(value) if resp3 => Reply::Boolean(*value),
        Value::Boolean(value) => Reply::Integer(i64::from(*value)),
        Value::BigNumber(digits) if resp3 => Reply::BigNumber(digits.clone().into_bytes()),
        Value::BigNumber(digits) => bulk(digits.as_bytes()),
        Value::Verbatim(bytes) if resp3 => Reply::Verbatim(*b"txt", bytes.clone()),
        Value::Verbatim(bytes) => bulk(bytes),
        Value::Array(values, _) => Reply::Array(all(values)),
        Value::Set(values, _) if resp3 => Reply::Set(all(values)),
        Value::Push(values) if resp3 => Reply::Push(all(values)),
        Value::Set(values, _) | Value::Push(values) => Reply::Array(all(values)),
        Value::Map(values, _) if resp3 => Reply::Map(pairs(values)),
        Value::Map(values, _) => Reply::Array(
            pairs(values)
                .into_iter()
                .flat_map(|(key, value)| [key, value])
                .collect(),
        ),
        Value::Attribute(values, value) if resp3 => {
            Reply::Attribute(pairs(values), Box::new(expected(value, protocol)))
        }
        Value::Attribute(_, value) => expected(value, protocol),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_written_is_decoded(values in vec(value(), 1..4), cut in 0..10_000usize) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut out = Output::new();
            let mut ends = Vec::new();
            for value in &values {
                write(value, &mut Writer::new(&mut out, protocol));
                ends.push(out.len());
            }
            let bytes = out.to_vec();
            let mut position = 0;
            for (value, end) in values.iter().zip(ends) {
                let (reply, len) = decode_reply(&bytes[position..]).unwrap().unwrap();
                prop_assert_eq!(position + len, end);
                prop_assert!(reply == expected(value, protocol));
                let part = position + (len - 1) * cut / 10_000;
                prop_assert_eq!(decode_reply(&bytes[position..part]), Ok(None));
                position = end;
            }
            prop_assert_eq!(position, bytes.len());
        }
    }

    #[test]
    fn doubles_read_back_the_same(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        let text = weft_resp::double_text(value);
        let text = std::str::from_utf8(text.as_bytes()).unwrap();
        let back: f64 = text.parse().unwrap();
        prop_assert!(back == value || value.is_nan(), "{} became {}", value, text);
    }

    #[test]
    fn no_bytes_panic_the_decoder(parts in vec(prop_oneof![
        Just(b"\r\n".to_vec()), Just(b"*2".to_vec()), Just(b"%1".to_vec()), Just(b"$3".to_vec()), Just(b":1".to_vec()),
        Just(b"=5\r\ntxt:a\r\n".to_vec()), Just(b"|1\r\n".to_vec()), Just(b"_\r\n".to_vec()), vec(any::<u8>(), 0..5),
    ], 0..30)) {
        let bytes = parts.concat();
        // A prefix of what is incomplete is incomplete, too.
        if decode_reply(&bytes) == Ok(None) {
            for end in 0..bytes.len() {
                prop_assert_eq!(decode_reply(&bytes[..end]), Ok(None));
            }
        }
    }
}
