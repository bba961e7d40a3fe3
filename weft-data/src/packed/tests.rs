//! Packed elements against vectors, and readers against bytes that nobody wrote.
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// What stands before the first element.
const TAG: &[u8] = &[9];

fn packed(model: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = TAG.to_vec();
    for element in model {
        push(&mut bytes, &[element]);
    }
    bytes
}

/// The offsets of the elements and of the end.
fn offsets(model: &[Vec<u8>]) -> Vec<usize> {
    let mut offsets = vec![TAG.len()];
    for element in model {
        offsets.push(offsets[offsets.len() - 1] + size_of(element.len()));
    }
    offsets
}

fn assert_holds(bytes: &[u8], model: &[Vec<u8>]) {
    let forwards: Vec<(usize, &[u8])> = Elements::new(bytes, TAG.len()).collect();
    let mut backwards: Vec<(usize, &[u8])> = Elements::new(bytes, TAG.len()).rev().collect();
    backwards.reverse();
    let wanted: Vec<(usize, &[u8])> = std::iter::zip(offsets(model), model)
        .map(|(offset, element)| (offset, element.as_slice()))
        .collect();
    assert_eq!(forwards, wanted);
    assert_eq!(backwards, wanted);
    assert_eq!(validate(bytes, TAG.len()), Some(model.len()));
    assert_eq!(bytes, packed(model));
}

#[test]
fn lays_elements_out_as_documented() {
    let mut bytes = TAG.to_vec();
    push(&mut bytes, &[b"ab", b"", b"c"]);
    push(&mut bytes, &[]);
    assert_eq!(bytes, b"\x09\x03abc\x04\x00\x01");
    let mut wide = Vec::new();
    push(&mut wide, &[&[b'x'; 300]]);
    assert_eq!(&wide[..2], [0x81, 0x2c]);
    assert_eq!(&wide[302..], [0x2e, 0x81]);
    assert_eq!(wide.len(), size_of(300));
}

#[test]
fn sizes_at_the_edges() {
    for (len, size) in [
        (0, 2),
        (126, 128),
        (127, 130),
        (128, 132),
        (1020, 1024),
        (ELEMENT_MAX, 0x7fff + 2),
    ] {
        assert_eq!(size_of(len), size, "{len}");
        let mut bytes = Vec::new();
        push(&mut bytes, &[&vec![7; len]]);
        assert_eq!(bytes.len(), size);
        assert_eq!(validate(&bytes, 0), Some(1));
    }
}

#[test]
fn finds_only_at_the_stride() {
    let model: Vec<Vec<u8>> = [&b"f"[..], b"v", b"v", b"w", b"x", b"x"]
        .map(<[u8]>::to_vec)
        .into();
    let bytes = packed(&model);
    let offsets = offsets(&model);
    assert_eq!(find(&bytes, 1, 1, b"v"), Some((1, offsets[1])));
    assert_eq!(find(&bytes, 1, 2, b"v"), Some((2, offsets[2])));
    assert_eq!(find(&bytes, 1, 2, b"w"), None);
    assert_eq!(find(&bytes, 1, 2, b"x"), Some((4, offsets[4])));
    assert_eq!(find(&bytes, 1, 3, b"x"), None);
}

#[test]
fn knows_damage() {
    assert_eq!(validate(b"", 0), Some(0));
    assert_eq!(validate(b"", 1), None);
    for damaged in [
        &b"\x01"[..],             // cut off
        b"\x01a",                 // without a size
        b"\x01a\x03",             // with a wrong size
        b"\x80\x01a\x03",         // a length in more bytes than it needs
        b"\x01a\x02\x80\x02",     // a size in more bytes than it needs
        b"\xff\xff",              // far too long
        b"\x01a\x02\x01",         // something behind
        b"\x00\x01\x00\x01\x00*", // the same
    ] {
        assert_eq!(validate(damaged, 0), None, "{damaged:?}");
    }
    assert!(!replace(&mut b"\x05a".to_vec(), 0, &[b"x"]));
    assert!(!replace(&mut Vec::new(), 3, &[b"x"]));
}

#[derive(Clone, Debug)]
enum Step {
    Push(Vec<u8>),
    Insert(usize, Vec<u8>),
    Replace(usize, Vec<u8>),
    Remove(usize, usize),
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => vec(any::<u8>(), 0..6),
        1 => vec(any::<u8>(), 120..135),
        1 => vec(any::<u8>(), 250..300),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        element().prop_map(Step::Push),
        (any::<usize>(), element()).prop_map(|(at, element)| Step::Insert(at, element)),
        (any::<usize>(), element()).prop_map(|(at, element)| Step::Replace(at, element)),
        (any::<usize>(), 0..4_usize).prop_map(|(at, count)| Step::Remove(at, count)),
    ]
}

proptest! {
    #[test]
    fn behaves_like_a_vector(steps in vec(step(), 0..60)) {
        let mut model: Vec<Vec<u8>> = Vec::new();
        let mut bytes = TAG.to_vec();
        for step in steps {
            let offsets = offsets(&model);
            match step {
                Step::Push(element) => {
                    push(&mut bytes, &[&element]);
                    model.push(element);
                }
                Step::Insert(at, element) => {
                    let at = at % (model.len() + 1);
                    let (left, right) = element.split_at(element.len() / 2);
                    insert(&mut bytes, offsets[at], &[left, right]);
                    model.insert(at, element);
                }
                Step::Replace(at, element) if !model.is_empty() => {
                    let at = at % model.len();
                    prop_assert!(replace(&mut bytes, offsets[at], &[&element]));
                    model[at] = element;
                }
                Step::Replace(..) => {}
                Step::Remove(at, count) => {
                    let at = at % (model.len() + 1);
                    let end = (at + count).min(model.len());
                    remove(&mut bytes, offsets[at]..offsets[end]);
                    model.drain(at..end);
                }
            }
            assert_holds(&bytes, &model);
        }
    }

    #[test]
    fn both_ends_meet(model in vec(element(), 0..8), turns in vec(any::<bool>(), 0..12)) {
        let bytes = packed(&model);
        let mut elements = Elements::new(&bytes, TAG.len());
        let mut left = std::collections::VecDeque::from(model);
        for front in turns {
            let (got, wanted) = if front {
                (elements.next(), left.pop_front())
            } else {
                (elements.next_back(), left.pop_back())
            };
            prop_assert_eq!(got.map(|(_, element)| element.to_vec()), wanted);
        }
        let range = elements.offsets();
        prop_assert_eq!(Elements::within(&bytes, range).count(), left.len());
    }

    #[test]
    fn survives_any_bytes(bytes in vec(prop_oneof![0..6_u8, any::<u8>()], 0..40), start in 0..44_usize) {
        let forwards = Elements::new(&bytes, start).count();
        let backwards = Elements::new(&bytes, start).rev().count();
        if let Some(count) = validate(&bytes, start) {
            prop_assert_eq!((forwards, backwards), (count, count));
        }
        let mut turns = Elements::new(&bytes, start);
        while turns.next().is_some() && turns.next_back().is_some() {}
        for offset in 0..bytes.len() + 2 {
            let _ = at(&bytes, offset);
            let _ = find(&bytes, offset, 2, b"\x01");
            replace(&mut bytes.clone(), offset, &[b"abc"]);
        }
    }
}

#[test]
fn skipping_is_going_one_by_one() {
    let mut bytes = b"tag".to_vec();
    let mut places = Vec::new();
    for len in [0, 1, 125, 126, 127, 128, 129, 5, 1000, 0] {
        places.push(bytes.len());
        push(&mut bytes, &[&vec![b'x'; len]]);
    }
    places.push(bytes.len());
    let last = places.len() - 1;
    for count in 0..14 {
        assert_eq!(skip(&bytes, 3, count), places[count.min(last)], "{count}");
        let from_end = places[last - count.min(last)];
        assert_eq!(
            skip_back(&bytes, 3, bytes.len(), count),
            from_end,
            "{count}"
        );
    }
    // Damage ends it, without a panic.
    for at in 3..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        assert!(skip(&damaged, 3, 100) <= bytes.len());
        assert!(skip_back(&damaged, 3, bytes.len(), 100) >= 3);
    }
}
