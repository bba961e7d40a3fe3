//! Counting, seeking and combining against bit by bit; fields against numbers.

use super::combine::{Operator, combine};
use super::field::{FieldType, Overflow, WINDOW_BYTES, Window};
use super::*;

fn bit(bytes: &[u8], index: usize) -> bool {
    let (byte, mask) = locate(index);
    bytes[byte] & mask != 0
}

/// Bytes of which many are all zeroes or all ones.
fn random_bytes(random: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    let kind = random.u8(..4);
    (0..len)
        .map(|_| match kind {
            0 => random.u8(..),
            1 if random.usize(..500) == 0 => 1,
            1 => 0,
            2 if random.usize(..500) == 0 => 0x7f,
            2 => 0xff,
            _ => [0, 0xff][random.usize(..2)],
        })
        .collect()
}

fn random_range(random: &mut fastrand::Rng, len: usize) -> Range<usize> {
    let start = random.usize(..=len);
    start..random.usize(start..=len)
}

#[test]
fn ranges_are_counted_and_searched_as_bit_by_bit() {
    let mut random = fastrand::Rng::with_seed(1);
    for len in (0..40).chain([511, 512, 513, 1023, 1600, 4000]) {
        let bytes = random_bytes(&mut random, len);
        for _ in 0..20 {
            let bits = random_range(&mut random, len * 8);
            let ones = bits.clone().filter(|index| bit(&bytes, *index)).count();
            assert_eq!(count(&bytes, bits.clone()), ones as u64, "{len} {bits:?}");
            #[cfg(target_arch = "x86_64")]
            let all = (0..len * 8).filter(|index| bit(&bytes, *index)).count();
            #[cfg(target_arch = "x86_64")]
            assert_eq!(groups::count_ones(&bytes), all as u64, "{len}");
            for wanted in [false, true] {
                let first = bits.clone().find(|index| bit(&bytes, *index) == wanted);
                assert_eq!(
                    position(&bytes, wanted, bits.clone()),
                    first,
                    "{len} {bits:?}"
                );
            }
        }
    }
}

#[test]
fn large_strings_are_counted_and_searched_in_steps() {
    let mut random = fastrand::Rng::with_seed(2);
    for len in [
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        3 * CHUNK_BYTES + 77,
    ] {
        let mut bytes = vec![0; len];
        bytes[len - 1] = 0x10;
        bytes[len / 2] = random.u8(..);
        for _ in 0..10 {
            let bits = random_range(&mut random, len * 8);
            let rope = Rope::from_slice(&bytes);
            let part = random.usize(1..2 * CHUNK_BYTES);
            let mut counting = Counting::new(rope.clone(), bits.clone());
            let ones = std::iter::repeat_with(|| counting.step(part))
                .flatten()
                .next();
            assert_eq!(ones, Some(count(&bytes, bits.clone())));
            for wanted in [false, true] {
                let mut seeking = Seeking::new(rope.clone(), wanted, bits.clone());
                let sought = std::iter::repeat_with(|| seeking.step(part))
                    .find(|sought| *sought != Sought::More);
                let expected = position(&bytes, wanted, bits.clone());
                assert_eq!(sought, Some(expected.map_or(Sought::Nowhere, Sought::At)));
            }
        }
    }
}

#[test]
fn strings_are_combined_as_bit_by_bit() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..300 {
        let count = random.usize(1..6);
        let strings: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let len = random.usize(..100);
                random_bytes(&mut random, len)
            })
            .collect();
        let strings: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
        let len = strings.iter().map(|string| string.len()).max().unwrap_or(0);
        for (name, of_bits) in [
            (
                "AND",
                (|bits| bits.iter().all(|bit| *bit)) as fn(&[bool]) -> bool,
            ),
            ("or", |bits| bits.contains(&true)),
            ("XOR", |bits| {
                bits.iter().filter(|bit| **bit).count() % 2 == 1
            }),
            ("Not", |bits| !bits[0]),
            ("DIFF", |bits| bits[0] && !bits[1..].contains(&true)),
            ("DIFF1", |bits| !bits[0] && bits[1..].contains(&true)),
            ("ANDOR", |bits| bits[0] && bits[1..].contains(&true)),
            ("ONE", |bits| bits.iter().filter(|bit| **bit).count() == 1),
        ] {
            let operator = Operator::by_name(name.as_bytes()).expect("it is one");
            let strings = if operator == Operator::Not {
                &strings[..1]
            } else {
                &strings
            };
            let combined = combine(operator, strings, len);
            assert_eq!(combined.len(), len);
            for index in 0..len * 8 {
                let bits: Vec<bool> = strings
                    .iter()
                    .map(|string| index / 8 < string.len() && bit(string, index))
                    .collect();
                assert_eq!(bit(&combined, index), of_bits(&bits), "{name} {index}");
            }
        }
    }
    assert_eq!(Operator::by_name(b"NAND"), None);
}

fn kind(text: &str) -> FieldType {
    FieldType::parse(text.as_bytes()).expect("a type")
}

#[test]
fn types_of_fields() {
    for text in ["u1", "u63", "i1", "i64"] {
        assert_eq!(kind(text).bits().to_string(), text[1..]);
    }
    for text in [
        "u64", "i65", "u0", "i0", "u", "i", "", "8", "U8", "u08", "u+8", "i-1", "i8 ",
    ] {
        assert_eq!(FieldType::parse(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn fields_are_read_and_written_at_any_bit() {
    let mut random = fastrand::Rng::with_seed(4);
    for bits in 1..=64 {
        for shift in 0..8 {
            let before: Window = std::array::from_fn(|_| random.u8(..));
            let mut window = before;
            let value = random.i64(..);
            let signed = kind(&format!("i{bits}"));
            signed.write(&mut window, shift, value);
            let up = 64 - bits;
            assert_eq!(signed.read(&window, shift), (value << up) >> up);
            if bits < 64 {
                let unsigned = kind(&format!("u{bits}")).read(&window, shift);
                assert_eq!(
                    unsigned.cast_unsigned(),
                    (value.cast_unsigned() << up) >> up
                );
            }
            for index in (0..WINDOW_BYTES * 8)
                .filter(|index| !(shift..shift + bits).contains(&(*index as u32)))
            {
                assert_eq!(bit(&window, index), bit(&before, index));
            }
        }
    }
}

#[test]
fn values_that_do_not_fit() {
    use Overflow::{Fail, Saturate, Wrap};
    for (text, old, delta, wrapped, saturated) in [
        ("u8", 250, 10, 4, 255),
        ("u8", 5, -10, 251, 0),
        ("u8", 5, i64::MIN, 5, 0),
        ("i8", 120, 10, -126, 127),
        ("i8", -120, -10, 126, -128),
        ("i1", 0, 1, -1, 0),
        ("u63", i64::MAX, 1, 0, i64::MAX),
        ("u63", i64::MAX, i64::MAX, i64::MAX - 1, i64::MAX),
        ("i64", i64::MAX, 1, i64::MIN, i64::MAX),
        ("i64", i64::MIN, -1, i64::MAX, i64::MIN),
    ] {
        let kind = kind(text);
        assert_eq!(
            kind.sum(old, delta, Wrap),
            Some(wrapped),
            "{text} {old} {delta}"
        );
        assert_eq!(
            kind.sum(old, delta, Saturate),
            Some(saturated),
            "{text} {old} {delta}"
        );
        assert_eq!(kind.sum(old, delta, Fail), None, "{text} {old} {delta}");
    }
    // What an unsigned field is set to has no sign.
    assert_eq!(kind("u8").set(-1, Saturate), Some(255));
    assert_eq!(kind("u8").set(-2, Wrap), Some(254));
    assert_eq!(kind("u8").set(-1, Fail), None);
    assert_eq!(kind("i8").set(-300, Saturate), Some(-128));
    assert_eq!(kind("i8").set(127, Fail), Some(127));
}
