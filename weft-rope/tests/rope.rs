//! Ropes against plain vectors.

use proptest::collection::vec;
use proptest::prelude::*;
use weft_rope::{CHUNK_BYTES, Chunk, Rope};

/// `len` bytes that differ from position to position and from `seed` to `seed`.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (at.wrapping_mul(31).wrapping_add(at >> 8).wrapping_add(seed)) as u8)
        .collect()
}

/// Checks every way of reading `rope` against `model`.
fn check(rope: &Rope, model: &[u8]) {
    assert_eq!(rope.len(), model.len());
    assert_eq!(rope.is_empty(), model.is_empty());
    assert!(rope.to_vec() == model, "contents differ");
    assert!(*rope == Rope::from_slice(model));
    assert!(*rope == *model);
    let (last, full) = match rope.chunks().split_last() {
        Some((last, full)) => (last.len(), full),
        None => (model.len(), &[][..]),
    };
    assert!(
        full.iter().all(|chunk| chunk.len() == CHUNK_BYTES),
        "a short chunk inside"
    );
    assert_eq!(full.len() * CHUNK_BYTES + last, model.len());
    assert!(model.is_empty() || last > 0, "an empty last chunk");
    assert_eq!(rope.as_contiguous().is_some(), model.len() <= CHUNK_BYTES);
    assert!(rope.allocated_bytes() >= model.len());
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Zeroes(usize),
    Chunk(usize),
    /// Offset, in thousandths of the length plus a gap, and length.
    Write(usize, usize, usize),
    Truncate(usize),
    /// Keeps a clone that must not change.
    Clone,
    /// Goes on with the oldest clone kept, keeping the present rope.
    Swap,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![
        4 => 0..300usize,
        2 => 0..40_000usize,
        1 => (0..3usize, -2..3isize).prop_map(|(chunks, off)| (chunks * CHUNK_BYTES).saturating_add_signed(off)),
    ];
    let step = prop_oneof![
        4 => len.clone().prop_map(Step::Append),
        1 => len.clone().prop_map(Step::Zeroes),
        2 => (0..=CHUNK_BYTES).prop_map(Step::Chunk),
        4 => (0..1000usize, prop_oneof![3 => Just(0), 1 => 0..100_000usize], len).prop_map(|(at, gap, len)| Step::Write(at, gap, len)),
        1 => (0..1000usize).prop_map(Step::Truncate),
        2 => Just(Step::Clone),
        1 => Just(Step::Swap),
    ];
    vec(step, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn behaves_like_a_vector(steps in steps()) {
        let (mut rope, mut model) = (Rope::new(), Vec::new());
        let mut kept: Vec<(Rope, Vec<u8>)> = Vec::new();
        for (seed, step) in steps.into_iter().enumerate() {
            let seed = seed as u64 * 7 + 1;
            match step {
                Step::Append(len) => {
                    rope.append(&pattern(len, seed));
                    model.extend(pattern(len, seed));
                }
                Step::Zeroes(count) => {
                    rope.append_zeroes(count);
                    model.resize(model.len() + count, 0);
                }
                Step::Chunk(len) => {
                    rope.push_chunk(Chunk::from_slice(&pattern(len, seed)));
                    model.extend(pattern(len, seed));
                }
                Step::Write(at, gap, len) => {
                    let offset = model.len() * at / 1000 + gap;
                    let bytes = pattern(len, seed);
                    rope.write_at(offset, &bytes);
                    if !bytes.is_empty() {
                        let end = offset + bytes.len();
                        model.resize(model.len().max(end), 0);
                        model[offset..end].copy_from_slice(&bytes);
                    }
                }
                Step::Truncate(at) => {
                    let len = model.len() * at / 1000;
                    rope.truncate(len);
                    model.truncate(len);
                }
                Step::Clone => kept.push((rope.clone(), model.clone())),
                Step::Swap => {
                    if let Some((other, bytes)) = kept.first_mut() {
                        std::mem::swap(other, &mut rope);
                        std::mem::swap(bytes, &mut model);
                    }
                }
            }
            check(&rope, &model);
            for (clone, bytes) in &kept {
                check(clone, bytes);
            }
        }
    }

    #[test]
    fn slices_cover_ranges(len in 0..300_000usize, start in 0..310_000usize, size in 0..310_000usize) {
        let model = pattern(len, 3);
        let rope = Rope::from_slice(&model);
        let end = (start + size).min(len);
        let expected = model.get(start..end).unwrap_or(&[]);
        let slices = rope.slices(start..start + size);
        prop_assert_eq!(slices.len(), slices.clone().count());
        prop_assert!(slices.clone().all(|slice| !slice.is_empty()));
        prop_assert!(slices.collect::<Vec<_>>().concat() == expected);
        prop_assert!(rope.copy_range(start..start + size) == expected);
        prop_assert_eq!(rope.byte(start), model.get(start).copied());
    }
}

#[test]
fn a_write_copies_only_what_it_touches() {
    let mut rope = Rope::from_slice(&pattern(4 * CHUNK_BYTES, 1));
    let clone = rope.clone();
    rope.write_at(CHUNK_BYTES + 5, b"x");
    let shared: Vec<bool> = rope.chunks().iter().map(Chunk::is_shared).collect();
    assert_eq!(shared, [true, false, true, true]);
    assert_eq!(
        clone.byte(CHUNK_BYTES + 5),
        Some(pattern(4 * CHUNK_BYTES, 1)[CHUNK_BYTES + 5])
    );
    assert_eq!(rope.byte(CHUNK_BYTES + 5), Some(b'x'));
}

#[test]
fn whole_chunks_are_taken_over() {
    let chunk = Chunk::from_slice(&pattern(CHUNK_BYTES, 2));
    let address = chunk.as_slice().as_ptr();
    let mut rope = Rope::new();
    rope.push_chunk(chunk.clone());
    rope.push_chunk(chunk);
    assert_eq!(rope.chunks()[0].as_slice().as_ptr(), address);
    assert_eq!(rope.chunks()[1].as_slice().as_ptr(), address);
    assert_eq!(rope.len(), 2 * CHUNK_BYTES);
}

#[test]
fn chunks_grow_by_doubling_up_to_their_limit() {
    let mut chunk = Chunk::default();
    let mut capacities = Vec::new();
    for _ in 0..CHUNK_BYTES {
        assert_eq!(chunk.extend(b"a"), 1);
        if capacities.last() != Some(&chunk.capacity()) {
            capacities.push(chunk.capacity());
        }
    }
    assert_eq!(
        capacities,
        [
            64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536
        ]
    );
    assert_eq!(chunk.extend(b"a"), 0);
    assert_eq!(chunk.extend_zeroes(3), 0);
}

#[test]
fn a_shared_chunk_is_copied_before_it_is_written() {
    let mut chunk = Chunk::from_slice(b"abc");
    let clone = chunk.clone();
    chunk.make_mut()[0] = b'x';
    assert_eq!(
        (chunk.as_slice(), clone.as_slice()),
        (&b"xbc"[..], &b"abc"[..])
    );
    let clone = chunk.clone();
    assert_eq!(chunk.extend(b"d"), 1);
    assert_eq!(
        (chunk.as_slice(), clone.as_slice()),
        (&b"xbcd"[..], &b"xbc"[..])
    );
    let clone = chunk.clone();
    chunk.truncate(1);
    assert_eq!(
        (chunk.as_slice(), clone.as_slice()),
        (&b"x"[..], &b"xbcd"[..])
    );
}

#[test]
fn overwriting_needs_the_bytes_alone_and_room_that_suits() {
    let mut rope = Rope::from_slice(&pattern(4096, 1));
    let address = rope.chunks()[0].as_slice().as_ptr();
    for len in [4096, 2048, 3000] {
        let bytes = pattern(len, len as u64);
        assert!(rope.overwrite(&bytes), "{len}");
        check(&rope, &bytes);
        assert_eq!(rope.chunks()[0].as_slice().as_ptr(), address);
    }
    let before = rope.to_vec();
    for len in [0, 1, 2047, 4097] {
        assert!(!rope.overwrite(&pattern(len, 9)), "{len}");
        check(&rope, &before);
    }
    let shared = rope.clone();
    assert!(!rope.overwrite(&pattern(4000, 3)));
    check(&shared, &before);
    drop(shared);
    assert!(rope.overwrite(&pattern(4000, 3)));
    assert!(!Rope::new().overwrite(b"x"));
    let mut two = Rope::from_slice(&pattern(CHUNK_BYTES + 1, 4));
    assert!(!two.overwrite(&pattern(CHUNK_BYTES, 5)));
}

#[test]
fn ranges_past_the_end_are_cut() {
    let rope = Rope::from_slice(b"abcdef");
    assert_eq!(rope.copy_range(2..=3), b"cd");
    assert_eq!(rope.copy_range(4..100), b"ef");
    assert_eq!(rope.copy_range(7..9), b"");
    assert_eq!(rope.copy_range(usize::MAX..), b"");
    assert_eq!(rope.copy_range(..), b"abcdef");
    assert_eq!(Rope::new().as_contiguous(), Some(&b""[..]));
    assert_eq!(Rope::new().allocated_bytes(), 0);
}

#[test]
fn many_zeroes_share_their_memory_until_they_are_written() {
    const HALF_GIGABYTE: usize = 512 << 20;
    let mut rope = Rope::new();
    rope.write_at(HALF_GIGABYTE - 1, &[1]);
    assert_eq!(rope.len(), HALF_GIGABYTE);
    let addresses = |rope: &Rope| -> Vec<*const u8> {
        let chunks = rope.chunks().iter();
        chunks.map(|chunk| chunk.as_slice().as_ptr()).collect()
    };
    let before = addresses(&rope);
    let mut distinct = before.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), 2, "the last one is written");
    let snapshot = rope.clone();
    rope.write_at(HALF_GIGABYTE / 2, &[0x80]);
    assert_eq!(snapshot.byte(HALF_GIGABYTE / 2), Some(0));
    assert_eq!(rope.byte(HALF_GIGABYTE / 2), Some(0x80));
    let copied = before
        .iter()
        .zip(addresses(&rope))
        .filter(|(old, new)| **old != *new);
    assert_eq!(copied.count(), 1);
    assert_eq!(addresses(&snapshot), before);
}

#[test]
fn one_piece_is_written_as_it_lies() {
    let mut rope = Rope::from_slice(b"abc");
    let before = rope.clone();
    rope.contiguous_mut().expect("one chunk")[1] = b'x';
    assert!(rope == *b"axc".as_slice());
    assert!(before == *b"abc".as_slice());
    assert_eq!(Rope::new().contiguous_mut(), Some([].as_mut_slice()));
    let mut long = Rope::from_slice(&[0; CHUNK_BYTES + 1]);
    assert_eq!(long.contiguous_mut(), None);
}
