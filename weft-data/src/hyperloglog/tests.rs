//! Bytes and estimates that Redis 8.2.3 gives, and both forms against plain registers.

use super::*;

const SPARSE_MAX: usize = 3000;

fn add(bytes: &mut Vec<u8>, elements: &[&[u8]]) -> usize {
    let observations = elements.iter().map(|element| observe(element));
    match with_observations(bytes, observations, SPARSE_MAX) {
        Some(added) => {
            assert!(!added.damaged);
            *bytes = added.bytes;
            added.raised
        }
        None => 0,
    }
}

#[test]
fn bytes_are_those_of_redis() {
    let mut bytes = empty();
    assert_eq!(bytes, b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    assert_eq!(cached_count(&bytes), Some(0));
    assert_eq!(add(&mut bytes, &[b"a"]), 1);
    assert_eq!(bytes, b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80q\xa6\x84NW");
    assert_eq!(cached_count(&bytes), None);
    assert_eq!(add(&mut bytes, &[b"a"]), 0);
    assert_eq!(count(&bytes), Ok(1));
    assert_eq!(add(&mut bytes, &[b"b", b"c", b"b"]), 2);
    assert_eq!(
        bytes,
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80`\xf3\x80P\xb1\x84K\xfb\x80BZ"
    );
    assert_eq!(
        runs(&bytes).as_deref(),
        Some("Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603")
    );
    assert_eq!(count(&bytes), Ok(3));
}

#[test]
fn both_forms_hold_what_was_shown() {
    let mut bytes = empty();
    let mut expected = zeroes();
    let mut promoted_at = None;
    for number in 0..30_000_u32 {
        let element = number.to_string();
        let Observation { register, rank } = observe(element.as_bytes());
        let own = &mut expected[usize::from(register)];
        let raises = rank > *own;
        *own = rank.max(*own);
        assert_eq!(add(&mut bytes, &[element.as_bytes()]), usize::from(raises));
        if encoding(&bytes) == Some(Encoding::Dense) {
            promoted_at.get_or_insert(number);
        } else {
            assert!(bytes.len() <= SPARSE_MAX);
        }
        if number % 500 == 0 || promoted_at == Some(number) {
            assert_eq!(registers(&bytes).as_ref(), Ok(&expected));
            assert_eq!(count(&bytes), Ok(count_registers(&expected)));
        }
    }
    // As Redis.
    assert_eq!(promoted_at, Some(1648));
    assert_eq!(registers(&bytes).as_ref(), Ok(&expected));
}

#[test]
fn raising_all_at_once_is_raising_one_after_the_other() {
    let mut random = fastrand::Rng::with_seed(1);
    for elements in [0, 1, 5, 100, 1000, 1500, 5000] {
        let (mut target, mut one_by_one) = (empty(), empty());
        for _ in 0..random.usize(..=elements) {
            add(&mut target, &[&random.u64(..).to_le_bytes()]);
        }
        one_by_one.clone_from(&target);
        let mut raised = registers(&target).expect("it is whole");
        for _ in 0..elements {
            let Observation { register, rank } = observe(&random.u64(..).to_le_bytes());
            let own = &mut raised[usize::from(register)];
            *own = rank.max(*own);
        }
        raise_all(&mut target, &raised, SPARSE_MAX).expect("it is whole");
        let observations = raised.iter().enumerate().filter(|(_, rank)| **rank > 0);
        let observations = observations.map(|(register, rank)| Observation {
            register: register as u16,
            rank: *rank,
        });
        let added = with_observations(&one_by_one, observations, SPARSE_MAX);
        if let Some(added) = added {
            one_by_one = added.bytes;
        }
        outdate(&mut one_by_one);
        assert_eq!(target, one_by_one, "{elements}");
    }
}

#[test]
fn a_rank_that_is_too_high_makes_it_dense() {
    let mut bytes = empty();
    for (rank, form) in [(32, Encoding::Sparse), (33, Encoding::Dense)] {
        let observation = Observation {
            register: 16383,
            rank,
        };
        let added = with_observations(&bytes, [observation], SPARSE_MAX);
        bytes = added.expect("it changes").bytes;
        assert_eq!(encoding(&bytes), Some(form));
        assert_eq!(registers(&bytes).expect("it is whole")[16383], rank);
    }
    assert_eq!(bytes.len(), 12_304);
}

#[test]
fn damage_is_told() {
    let header = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80".to_vec();
    for tail in [
        b"".as_slice(),
        b"\x7f",
        b"\x7f\xfe",
        b"\x7f\xff\0",
        b"\x7f\xff\x80",
        b"\x3f",
        b"\x7f\xfe\x81",
        b"\x7f\xfe\x41",
    ] {
        let mut bytes = [&header, tail].concat();
        assert_eq!(encoding(&bytes), Some(Encoding::Sparse));
        assert_eq!(count(&bytes), Err(Corrupted), "{tail:?}");
        assert_eq!(registers(&bytes), Err(Corrupted), "{tail:?}");
        assert_eq!(make_dense(&mut bytes), Err(Corrupted), "{tail:?}");
    }
    let last = Observation {
        register: 16383,
        rank: 1,
    };
    // What comes before the damage is added.
    let short = [&header, b"\x7f\xfe".as_slice()].concat();
    let first = Observation {
        register: 0,
        rank: 1,
    };
    let added = with_observations(&short, [first, last, first], 3000).expect("it changes");
    assert!(added.damaged);
    assert_eq!(added.raised, 1);
    assert_eq!(added.bytes[HEADER_BYTES..], *b"\x80\x7f\xfd");
    for none in [
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0".as_slice(),
        b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0\x7f\xff",
        b"HYLL\0\0\0\0\0\0\0\0\0\0\0\0\x7f\xff",
        b"hyll\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff",
        b"",
    ] {
        assert_eq!(encoding(none), None);
    }
}

#[test]
fn random_bytes_are_no_danger() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..20_000 {
        let mut bytes = empty();
        bytes.truncate(HEADER_BYTES);
        for _ in 0..random.usize(..12) {
            bytes.push(random.u8(..));
        }
        let observation = Observation {
            register: random.u16(..REGISTERS as u16),
            rank: random.u8(1..52),
        };
        let added = with_observations(&bytes, [observation], random.usize(..20));
        if let Some(mut added) = added {
            let all = zeroes();
            raise_all(&mut added.bytes, &all, 3000).expect("nothing is raised");
        }
        assert!(runs(&bytes).is_some());
    }
}

#[test]
fn the_self_test_passes() {
    let mut test = SelfTest::default();
    while test.step(10_000).expect("it passes") {}
}
