//! Tests of number texts against values asked of Redis 8.2.3.

use proptest::prelude::*;

use super::*;

/// Arguments of ZADD and what ZSCORE then answers (Redis 8.2.3, a set too large for a listpack, whose scores lose the
/// sign of zero).
#[rustfmt::skip]
const SCORES: &[(&str, &str)] = &[
    ("0", "0"),
    ("-0", "-0"),
    ("1", "1"),
    ("-1", "-1"),
    ("17", "17"),
    ("1.1", "1.1"),
    ("3.3", "3.3"),
    ("0.1", "0.1"),
    ("0.30000000000000004", "0.30000000000000004"),
    ("100.5", "100.5"),
    ("-2.5", "-2.5"),
    ("123456.789", "123456.789"),
    ("12345.6789012345", "1.23456789012345e+4"),
    ("1234.56789", "1234.56789"),
    ("123.000456", "123.000456"),
    ("1234567890123456.7", "1234567890123456.7"),
    ("4503599627370497.5", "4503599627370498"),
    ("2251799813685249.25", "2251799813685249"),
    ("9007199254740991", "9007199254740991"),
    ("9007199254740993", "9007199254740992"),
    ("1e15", "1000000000000000"),
    ("1e17", "100000000000000000"),
    ("1e18", "1000000000000000000"),
    ("4611686018427387904", "4611686018427387904"),
    ("4611686018427388928", "4611686018427389000"),
    ("-4611686018427387904", "-4611686018427387904"),
    ("-4611686018427388928", "-4611686018427389000"),
    ("5e18", "5e+18"),
    ("9223372036854774784", "9223372036854775000"),
    ("9223372036854775807", "9223372036854776000"),
    ("-9223372036854775808", "-9223372036854776000"),
    ("18446744073709551615", "18446744073709552000"),
    ("1e19", "1e+19"),
    ("1e20", "1e+20"),
    ("1e21", "1e+21"),
    ("1e22", "1e+22"),
    ("1e23", "99999999999999990000000"),
    ("1.5e19", "1.5e+19"),
    ("1.2345e20", "1.2345e+20"),
    ("1.2345e21", "1234499999999999900000"),
    ("1.2345e22", "1.2345e+22"),
    ("1.2345678901234567e20", "123456789012345670000"),
    ("1.2345678901234567e21", "1234567890123456800000"),
    ("1.2345678901234567e23", "123456789012345670000000"),
    ("1.2345678901234567e24", "1.2345678901234568e+24"),
    ("1.2345678901234567e25", "1.2345678901234566e+25"),
    ("1e-1", "0.1"),
    ("1e-2", "0.01"),
    ("1e-3", "0.001"),
    ("1e-4", "0.0001"),
    ("1e-5", "0.00001"),
    ("1e-6", "0.000001"),
    ("1e-7", "1e-7"),
    ("-1e-7", "-1e-7"),
    ("1e-10", "1e-10"),
    ("1.5e-4", "0.00015"),
    ("1.5e-5", "0.000015"),
    ("1.5e-6", "1.5e-6"),
    ("1.5e-7", "1.5e-7"),
    ("1.25e-4", "0.000125"),
    ("1.234567e-3", "0.001234567"),
    ("1.234567e-4", "1.234567e-4"),
    ("1.234567e-5", "1.234567e-5"),
    ("0.0001234567890123", "1.234567890123e-4"),
    ("1e99", "1e+99"),
    ("1e100", "1e+100"),
    ("1.1e100", "1.1e+100"),
    ("-1e100", "-1e+100"),
    ("1e-100", "1e-100"),
    ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ("2.2250738585072014e-308", "2.2250738585072014e-308"),
    ("2.2250738585072011e-308", "2.225073858507201e-308"),
    ("5e-324", "5e-324"),
    ("1e-320", "1e-320"),
    ("inf", "inf"),
    ("-inf", "-inf"),
    ("5e-5", "0.00005"),
    ("9.5367431640625e-07", "9.5367431640625e-7"),
    ("2e15", "2000000000000000"),
    ("1e300", "1e+300"),
    ("+1", "1"),
    ("1E5", "100000"),
    ("1e+5", "100000"),
    ("INF", "inf"),
    ("+inf", "inf"),
    ("Infinity", "inf"),
    ("-infinity", "-inf"),
    ("-+inf", "-inf"),
    ("-+Infinity", "-inf"),
    (".5", "0.5"),
    ("-.5", "-0.5"),
    ("5.", "5"),
    ("3.0", "3"),
    ("4.9e-324", "5e-324"),
    ("0e99999999999999999999", "0"),
    ("0x10", "16"),
    ("-0X10", "-16"),
    ("0x1p3", "8"),
    ("0x1P+3", "8"),
    ("0x1.8", "1.5"),
    ("0x.8", "0.5"),
    ("0x1.p1", "2"),
    ("0x1p-1074", "5e-324"),
    ("0x0p99999999999", "0"),
    ("0x1.fffffffffffffp1023", "1.7976931348623157e+308"),
    ("0x1.00000000000008p0", "1"),
    ("0x1.000000000000080000000000000000000000001p0", "1.0000000000000002"),
];

#[test]
fn doubles_are_read_as_redis_reads_them() {
    for &(given, printed) in SCORES {
        let value = parse_f64(given.as_bytes()).unwrap_or_else(|| panic!("{given} refused"));
        let reread = parse_f64(printed.as_bytes()).expect("what Redis printed");
        assert_eq!(value.to_bits(), reread.to_bits(), "{given}");
    }
}

#[test]
fn what_is_no_double_is_refused() {
    let refused: &[&[u8]] = &[
        b"",
        b" 1",
        b"1 ",
        b"\t1",
        b"1\n",
        b"1\0",
        b"\0",
        b"1\x002",
        b"+",
        b"-",
        b".",
        b"-.",
        b"e5",
        b"1e",
        b"1e+",
        b"++1",
        b"+-1",
        b"--inf",
        b"+-inf",
        b"++inf",
        b"-++inf",
        b"-+1",
        b"1_0",
        b"1,5",
        b"1.5.5",
        b"1d5",
        b"1f",
        b"1L",
        b"0b1",
        b"infin",
        b"infinityx",
        b"nan",
        b"NAN",
        b"-nan",
        b"-+nan",
        b"nan()",
        b"nan(1)",
        b"0x",
        b"0x.",
        b"0xg",
        b"0xp1",
        b"0x.p1",
        b"0x1p",
        b"0x1p+",
        b"0x1.8.1",
        b"\xff1",
        // out of range, in either direction
        b"1e309",
        b"-1e400",
        b"1.7976931348623159e308",
        b"1e99999999999999999999",
        b"0x1p1024",
        b"0x1p99999999999999",
        b"1e-400",
        b"2e-324",
        b"1e-99999999999999999999",
        b"0x1p-1075",
        b"-0x1p-99999999999999999999",
    ];
    for text in refused {
        assert_eq!(parse_f64(text), None, "{:?}", String::from_utf8_lossy(text));
    }
}

#[test]
fn long_texts_are_exact() {
    let zeros = "0".repeat(100_000);
    assert_eq!(parse_f64(format!("{zeros}1").as_bytes()), Some(1.0));
    assert_eq!(parse_f64(format!("0.{zeros}1").as_bytes()), None);
    assert_eq!(
        parse_f64(format!("0.{zeros}1e100001").as_bytes()),
        Some(1.0)
    );
    assert_eq!(parse_f64(format!("1{zeros}").as_bytes()), None);
    assert_eq!(parse_f64(format!("0x{zeros}1").as_bytes()), Some(1.0));
    assert_eq!(
        parse_f64(format!("0x1{zeros}p-400000").as_bytes()),
        Some(1.0)
    );
    assert_eq!(
        parse_f64(format!("0x.{zeros}1p400004").as_bytes()),
        Some(1.0)
    );
    // Half way between two doubles, and a little more far behind.
    assert_eq!(parse_f64(b"9007199254740993"), Some(9007199254740992.0));
    assert_eq!(
        parse_f64(format!("9007199254740993.{zeros}1").as_bytes()),
        Some(9007199254740994.0)
    );
}

#[test]
fn score_bounds_are_looser_than_scores() {
    for (given, expected) in [
        ("", Some(0.0)),
        ("\0", Some(0.0)),
        ("1\0", Some(1.0)),
        ("1\0x", Some(1.0)),
        ("1e400", Some(f64::INFINITY)),
        ("-1e400", Some(f64::NEG_INFINITY)),
        ("1e-400", Some(0.0)),
        ("inf", Some(f64::INFINITY)),
        ("-inf", Some(f64::NEG_INFINITY)),
        ("-+inf", Some(f64::NEG_INFINITY)),
        ("-1.5", Some(-1.5)),
        ("nan", None),
        (" 1", None),
        ("1 ", None),
        ("0x10", None),
        ("(1", None),
        (".", None),
    ] {
        assert_eq!(parse_score_bound(given.as_bytes()), expected, "{given:?}");
    }
}

#[test]
fn integers_have_one_form() {
    for (given, expected) in [
        ("0", Some(0)),
        ("7", Some(7)),
        ("-1", Some(-1)),
        ("1000000000000000000", Some(1_000_000_000_000_000_000)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("18446744073709551615", None),
        ("18446744073709551616", None),
        ("99999999999999999999", None),
        ("-99999999999999999999", None),
        ("000000000000000000001", None),
        ("", None),
        ("-", None),
        ("+", None),
        ("--1", None),
        ("-0", None),
        ("00", None),
        ("01", None),
        ("-01", None),
        ("+5", None),
        (" 5", None),
        ("5 ", None),
        ("5\0", None),
        ("0x10", None),
        ("1e3", None),
        ("1.0", None),
        ("/", None),
        (":", None),
        ("1:", None),
        ("1234567890123456789:", None),
        ("1234/5678", None),
        ("12345678:", None),
        ("1234567\u{fa}", None),
        ("112345678", Some(112_345_678)),
        ("199999999", Some(199_999_999)),
        ("12345678987654321", Some(12_345_678_987_654_321)),
    ] {
        assert_eq!(parse_i64(given.as_bytes()), expected, "{given:?}");
    }
    for (given, expected) in [
        ("0", Some(0)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("18446744073709551620", None),
        ("99999999999999999999", None),
        ("100000000000000000000", None),
        ("-1", None),
        ("01", None),
        ("", None),
    ] {
        assert_eq!(parse_u64(given.as_bytes()), expected, "{given:?}");
    }
}

#[test]
fn cursors_are_read_leniently() {
    for (given, expected) in [
        ("0", Some(0)),
        ("00", Some(0)),
        ("01", Some(1)),
        ("-0", Some(0)),
        ("+5", Some(5)),
        (" 1", Some(1)),
        ("\t\r\n\x0b\x0c +1", Some(1)),
        ("1\0junk", Some(1)),
        ("18446744073709551615", Some(u64::MAX)),
        ("+18446744073709551615", Some(u64::MAX)),
        ("00000000000000000000000001", Some(1)),
        ("-18446744073709551615", Some(1)),
        ("-10000000000000000000", Some(8_446_744_073_709_551_616)),
        ("-9223372036854775809", Some(9_223_372_036_854_775_807)),
        ("-9223372036854775808", None),
        ("-1", None),
        ("-1\0", None),
        ("18446744073709551616", None),
        ("-18446744073709551616", None),
        ("1 ", None),
        ("", None),
        ("\0", None),
        (" ", None),
        ("-", None),
        ("--1", None),
        ("- 1", None),
        ("0x10", None),
    ] {
        assert_eq!(parse_u64_lenient(given.as_bytes()), expected, "{given:?}");
    }
}

#[test]
fn integer_texts() {
    assert_eq!(&*format_i64(i64::MIN), b"-9223372036854775808");
    assert_eq!(&*format_i64(0), b"0");
    assert_eq!(&*format_u64(u64::MAX), b"18446744073709551615");
    assert_eq!(format_i64(i64::MIN).len(), INTEGER_TEXT_MAX);
    assert_eq!(format!("{:?}", format_i64(-17)), "-17");
}

proptest! {
    #[test]
    fn integers_round_trip(value: i64, shift in 0u32..64) {
        let value = value >> shift;
        let text = format_i64(value);
        prop_assert_eq!(parse_i64(&text), Some(value));
        prop_assert_eq!(i64_text_len(value), text.len());
        prop_assert_eq!(parse_u64(&text), u64::try_from(value).ok());
        prop_assert_eq!(parse_u64_lenient(&text), u64::try_from(value).ok());
    }

    #[test]
    fn integers_are_canonical(text in "[-+0-9 ]{0,21}") {
        match parse_i64(text.as_bytes()) {
            Some(value) => prop_assert_eq!(value.to_string(), text),
            None => prop_assert!(text.parse::<i64>().map_or(true, |value| value.to_string() != text)),
        }
    }

    #[test]
    fn doubles_round_trip(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        for text in [format!("{value}"), format!("{value:e}")] {
            prop_assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), Some(bits), "{}", text);
        }
    }

    #[test]
    fn hexadecimal_doubles_are_rounded_to_the_nearest(significand: u128, scale in -1300i32..1100) {
        use rustc_apfloat::{Float as _, ieee::Double};
        let text = format!("0x{significand:x}p{scale}");
        let expected = text.parse::<Double>().map(|value| f64::from_bits(value.to_bits() as u64));
        let expected = expected.expect("a number");
        let expected = (expected.is_finite() && (expected != 0.0 || significand == 0)).then_some(expected);
        prop_assert_eq!(parse_f64(text.as_bytes()), expected, "{}", text);
    }

    #[test]
    fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        parse_i64(&bytes);
        parse_u64_lenient(&bytes);
        parse_f64(&bytes);
        parse_score_bound(&bytes);
    }
}
