//! Tests of 80-bit arithmetic against values asked of Redis 8.2.3, and against an independent implementation.

use proptest::prelude::*;
use rustc_apfloat::ieee::X87DoubleExtended;
use rustc_apfloat::{Float as _, Round};

use super::*;

fn parse(text: &str) -> Option<LongDouble> {
    LongDouble::parse(text.as_bytes())
}

fn text(value: LongDouble) -> String {
    String::from_utf8(value.to_text()).expect("ASCII")
}

/// The 80 bits that x87 would store.
fn bits(value: LongDouble) -> u128 {
    let (significand, biased) = match value.magnitude {
        Magnitude::Finite {
            significand,
            exponent,
        } => (
            significand,
            if significand >> 63 == 0 {
                0
            } else {
                exponent + 16446
            },
        ),
        Magnitude::Infinite => (1 << 63, 0x7fff),
        Magnitude::Nan => (3 << 62, 0x7fff),
    };
    u128::from(value.negative) << 79 | (biased as u128) << 64 | u128::from(significand)
}

/// `SET k` first, `INCRBYFLOAT k` second, and the answer of Redis 8.2.3 on x86-64.
#[rustfmt::skip]
const SUMS: &[(&str, &str, &str)] = &[
    ("10.1", "0.2", "10.3"),
    ("1.1", "2.2", "3.3"),
    ("3.0e3", "200", "3200"),
    ("5.0e3", "-200", "4800"),
    ("1", "1.00001", "2.00001"),
    ("10.5", "0.1", "10.6"),
    ("0.1", "0.2", "0.3"),
    ("0", "0.1", "0.1"),
    ("0", "3.3", "3.3"),
    ("0", "0.7", "0.7"),
    ("-1", "1", "0"),
    ("-1.5", "0.5", "-1"),
    ("0", "-0", "0"),
    ("-1e-20", "-1e-20", "0"),
    ("0", "1e-7", "0.0000001"),
    ("0", "1e-16", "0.0000000000000001"),
    ("0", "1e-17", "0.00000000000000001"),
    ("0", "9e-18", "0.00000000000000001"),
    ("0", "5e-18", "0"),
    ("0", "5.000000000000000001e-18", "0.00000000000000001"),
    ("0", "4.9e-18", "0"),
    ("0", "1.5e-17", "0.00000000000000002"),
    ("0", "2.5e-17", "0.00000000000000002"),
    ("0", "-1e-17", "-0.00000000000000001"),
    ("0", "0x1p-17", "0.00000762939453125"),
    ("0", "0x1p-18", "0.00000381469726562"),
    ("0", "0x3p-18", "0.00001144409179688"),
    ("0", "0x5p-18", "0.00001907348632812"),
    ("0", "0x1p-63", "0"),
    ("1", "0x1p-63", "1"),
    ("1", "0x1p-64", "1"),
    ("1", "0x1.8p-64", "1"),
    ("0", "0x1.fffffffffffffffep0", "2"),
    ("0", "0x1.ffffffffffffffffp0", "2"),
    ("0", "0.99999999999999999", "0.99999999999999999"),
    ("0", "0.999999999999999995", "1"),
    ("0", "9.999999999999999999", "10"),
    ("0", "123456789.123456789", "123456789.12345678899873747"),
    ("0", "1234567890123.123456789", "1234567890123.12345683574676514"),
    ("9223372036854775807", "1", "9223372036854775808"),
    ("-9223372036854775808", "-1", "-9223372036854775809"),
    ("18446744073709551615", "1", "18446744073709551616"),
    ("18446744073709551615", "0.5", "18446744073709551616"),
    ("18446744073709551614", "0.5", "18446744073709551614"),
    ("9223372036854775808", "0.5", "9223372036854775808"),
    ("9223372036854775808", "0.25", "9223372036854775808"),
    ("1e19", "1", "10000000000000000001"),
    ("1e20", "1", "100000000000000000000"),
    ("1e21", "-1", "1000000000000000000000"),
    ("1e17", "0.01", "100000000000000000.0078125"),
    ("0", "1e30", "1000000000000000000024696061952"),
    ("0", "1e40", "9999999999999999999783686092270256259072"),
    ("0", "123456789012345678901234567890", "123456789012345678899921813504"),
    ("1e40", "-1e40", "0"),
    ("1e40", "-1e20", "9999999999999999999783686092270256259072"),
    ("0", "1e60", "999999999999999999999373423426722168652130621984886772203520"),
    ("0", "0x1p100", "1267650600228229401496703205376"),
    ("0", "0x.8", "0.5"),
    ("0", "0x10", "16"),
    ("0", "-0x1.8P+1", "-3"),
    ("0", ".5", "0.5"),
    ("0", "5.", "5"),
    ("0", "+5", "5"),
    ("0", "-.5e1", "-5"),
    ("0", "1E2", "100"),
    ("0", "00012.500", "12.5"),
    ("0", "3.14159265358979323846", "3.14159265358979324"),
    ("0", "2.718281828459045235360", "2.71828182845904524"),
    ("1.7", "-1.6", "0.1"),
    ("1e-4950", "1e-4950", "0"),
    ("0", "3.6e-4951", "0"),
    ("100000000000000000000", "-99999999999999999999", "0"),
    ("0", "12345678901234567890123.5", "12345678901234567889920"),
    ("0", "0.000000000000000015", "0.00000000000000002"),
    ("0", "1.00000000000000000542", "1.00000000000000001"),
    ("0", "1.00000000000000000543", "1.00000000000000001"),
];

#[test]
fn sums_are_those_of_redis() {
    for &(left, right, expected) in SUMS {
        let sum = parse(left).expect(left) + parse(right).expect(right);
        assert_eq!(text(sum), expected, "{left} + {right}");
    }
}

#[test]
fn huge_values_print_every_digit() {
    let max = text(parse("1.18973149535723176502e4932").expect("the largest value"));
    assert_eq!(max.len(), 4933);
    assert!(max.starts_with("1189731495357231765021263853030970205169"));
    assert!(max.ends_with("19552086811989770240"));
    let negative = text(parse("-1e4932").expect("in range"));
    assert_eq!(negative.len(), TEXT_MAX);
    assert!(negative.starts_with("-1000000000000000000006018949387963891323"));
    assert!(negative.ends_with("38418113791886622720"));
    let ones = text(parse(&"1".repeat(400)).expect("in range"));
    assert_eq!(ones.len(), 400);
    assert!(ones.starts_with("1111111111111111111089493706460225139319"));
    assert!(ones.ends_with("68943092888590352384"));
    let sum = text(parse("-1e4900").expect("in range") + parse("1e4899").expect("in range"));
    assert_eq!(sum.len(), 4901);
    assert!(sum.starts_with("-900000000000000000016425129188023083576"));
    assert!(sum.ends_with("29996030878278483968"));
}

#[test]
fn the_ends_of_the_format() {
    for accepted in [
        "1e4932",
        "0x1p16383",
        "0x1.fffffffffffffffep16383",
        "0x1.ffffffffffffffff7p0",
        "1.9e-4951",
        "3.36210314311209350626e-4932",
        "0x1p-16445",
        "0x1.8p-16446",
        "0e99999999999999999999",
        "-0x0p-99999999999999999999",
    ] {
        assert!(
            parse(accepted).is_some_and(|value| value.is_finite()),
            "{accepted}"
        );
    }
    for refused in [
        "1.18973149535723176508e4932",
        "1.2e4932",
        "1e4933",
        "0x1p16384",
        "0x1.ffffffffffffffffp16383",
        "1e99999999999999999999",
        "1.8e-4951",
        "1e-4951",
        "1e-5000",
        "0x1p-16446",
        "1e-99999999999999999999",
        "0x1p-99999999999999",
    ] {
        assert!(parse(refused).is_none(), "{refused}");
    }
}

#[test]
fn what_is_no_number_is_refused() {
    for refused in [
        "",
        " 1",
        "1 ",
        "\t1",
        "1\n",
        "1\0",
        "\0",
        "1\x002",
        "+",
        "-",
        ".",
        "-.",
        "++1",
        "+-1",
        "e5",
        "1e",
        "1e+",
        "1_0",
        "1,5",
        "1.5.5",
        "1d5",
        "1L",
        "0b1",
        "nan",
        "NaN(12)",
        "-nan",
        "infin",
        "infinityx",
        "-+inf",
        "0x",
        "0x.",
        "0xg",
        "0xp1",
        "0x.p1",
        "0x1p",
        "0x1p+",
    ] {
        assert!(parse(refused).is_none(), "{refused:?}");
    }
}

#[test]
fn the_length_of_texts_is_limited() {
    let padded = |length: usize| format!("{}1", "0".repeat(length - 1));
    assert_eq!(parse(&padded(TEXT_LIMIT)).map(text).as_deref(), Some("1"));
    assert!(parse(&padded(TEXT_LIMIT + 1)).is_none());
    assert!(parse(&padded(10_000_000)).is_none());
    let small = format!("0.{}1", "0".repeat(4949));
    assert_eq!(parse(&small).map(text).as_deref(), Some("0"));
    let smaller = format!("0.{}1", "0".repeat(4950));
    assert!(parse(&smaller).is_none());
}

#[test]
fn infinities_are_values_and_their_difference_is_none() {
    let infinite = parse("inf").expect("an infinity");
    let negative = parse("-Infinity").expect("an infinity");
    let one = LongDouble::from(1);
    assert!(infinite.is_infinite() && !infinite.is_nan() && !infinite.is_finite());
    assert_eq!(text(infinite + one), "inf");
    assert_eq!(text(one + negative), "-inf");
    assert!((infinite + negative).is_nan());
    assert_eq!(text(infinite + negative + one), "nan");
    let large = parse("1e4932").expect("in range");
    assert_eq!(text(large + large), "inf");
    let large = parse("-1e4932").expect("in range");
    assert_eq!(text(large + large), "-inf");
}

#[test]
fn integers_convert_exactly() {
    for value in [0, 1, -1, 10, i64::MAX, i64::MIN, -1_234_567_890_123_456_789] {
        assert_eq!(text(value.into()), value.to_string());
    }
    assert_eq!(text(LongDouble::ZERO), "0");
}

fn any_value() -> impl Strategy<Value = (u128, LongDouble)> {
    (
        any::<bool>(),
        0i32..32766,
        any::<u64>(),
        0u32..64,
        any::<bool>(),
    )
        .prop_map(|(negative, biased, raw, shift, near)| {
            // Exponents close to each other make sums interesting.
            let biased = if near { 16383 + biased % 80 } else { biased };
            let significand = raw >> shift << shift;
            let (biased, significand) = if biased == 0 {
                (0, significand >> 1)
            } else {
                (biased, significand | 1 << 63)
            };
            let value = LongDouble {
                negative,
                magnitude: Magnitude::Finite {
                    significand,
                    exponent: biased.max(1) - 16446,
                },
            };
            (bits(value), value)
        })
}

proptest! {
    #[test]
    fn sums_agree_with_an_independent_implementation((left_bits, left) in any_value(), (right_bits, right) in any_value()) {
        let expected = X87DoubleExtended::from_bits(left_bits) + X87DoubleExtended::from_bits(right_bits);
        prop_assert_eq!(bits(left + right), expected.value.to_bits());
    }

    #[test]
    fn decimals_agree_with_an_independent_implementation(
        digits in "[0-9]{1,60}",
        fraction in "[0-9]{0,60}",
        exponent in prop_oneof![-5100i32..5000, -40i32..40],
    ) {
        let text = format!("{digits}.{fraction}e{exponent}");
        let expected = X87DoubleExtended::from_str_r(&text, Round::NearestTiesToEven).expect("a number").value;
        let nonzero = text.split('e').next().is_some_and(|mantissa| mantissa.contains(|c| ('1'..='9').contains(&c)));
        match parse(&text) {
            Some(value) => prop_assert_eq!(bits(value), expected.to_bits(), "{}", text),
            None => prop_assert!(expected.is_infinite() || (expected.is_zero() && nonzero), "{}", text),
        }
    }

    #[test]
    fn hexadecimals_agree_with_an_independent_implementation(significand: u128, exponent in prop_oneof![-16700i32..16400, -100i32..100]) {
        let text = format!("0x{significand:x}p{exponent}");
        let expected = text.parse::<X87DoubleExtended>().expect("a number");
        match parse(&text) {
            Some(value) => prop_assert_eq!(bits(value), expected.to_bits(), "{}", text),
            None => prop_assert!(expected.is_infinite() || (expected.is_zero() && significand != 0), "{}", text),
        }
    }

    #[test]
    fn the_quick_and_the_thorough_way_agree(value: u128, shift in 0u32..128, places in 0u32..=19) {
        let value = (value >> shift).max(1);
        prop_assert_eq!(divide_small(value, places), scale_big(BigUint::from(value), -(places as i32)));
    }

    #[test]
    fn decimals_of_17_places_survive(whole in 0u32..90, decimals in 0u64..100_000_000_000_000_000) {
        // 64 bits hold 19 digits of numbers below 92.
        let given = format!("{whole}.{decimals:017}");
        let value = parse(&given).expect("a number");
        let trimmed = given.trim_end_matches('0').trim_end_matches('.');
        prop_assert_eq!(text(value), trimmed);
    }

    #[test]
    fn texts_are_the_rounded_value((_, value) in any_value()) {
        let printed = text(value);
        let Magnitude::Finite { significand, exponent } = value.magnitude else { unreachable!() };
        let (whole, decimals) = printed.trim_start_matches('-').split_once('.').unwrap_or((printed.trim_start_matches('-'), ""));
        prop_assert!(decimals.len() <= 17 && !decimals.ends_with('0'));
        prop_assert!(printed != "-0");
        // |printed - value| * 10^17 <= 1/2, in integers: everything times 2 * 2^16445.
        let scaled: BigUint = format!("{whole}{decimals:0<17}").parse().expect("digits");
        let printed_side = scaled << 16446u32;
        let value_side = (BigUint::from(significand) * BigUint::from(DECIMAL_SCALE)) << (exponent + 16446).unsigned_abs();
        let error = if printed_side > value_side { printed_side - value_side } else { value_side - printed_side };
        prop_assert!(error <= BigUint::from(1u8) << 16445u32);
    }

    #[test]
    fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let _ = LongDouble::parse(&bytes);
    }
}
