//! Outputs against plain vectors.

use std::io::IoSlice;

use proptest::collection::vec;
use proptest::prelude::*;
use weft_rope::{CHUNK_BYTES, Chunk, Output, Rope};

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 31 + (at >> 8) + seed) as u8)
        .collect()
}

#[derive(Clone, Debug)]
enum Step {
    Tail(usize),
    Counted(usize, usize),
    Rope(usize),
    Advance(usize),
    /// Appends another output of these parts, part of it already sent.
    Append(Vec<usize>, usize),
    /// Writes these parts, then inserts bytes before them.
    Insert(Vec<usize>),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![3 => 0..100usize, 2 => 0..10_000usize, 1 => 0..200_000usize];
    let step = prop_oneof![
        4 => len.clone().prop_map(Step::Tail),
        2 => (0..=CHUNK_BYTES, 0..=CHUNK_BYTES).prop_map(|(start, end)| Step::Counted(start, end)),
        2 => len.clone().prop_map(Step::Rope),
        4 => (0..=1000usize).prop_map(Step::Advance),
        2 => (vec(len.clone(), 0..5), 0..1000usize).prop_map(|(parts, sent)| Step::Append(parts, sent)),
        2 => vec(len, 0..5).prop_map(Step::Insert),
        1 => Just(Step::Clear),
    ];
    vec(step, 1..30)
}

/// Appends parts of `parts` bytes in turn as tail bytes, ropes and counted chunks.
fn write_parts(out: &mut Output, parts: &[usize], seed: usize) -> Vec<u8> {
    let mut model = Vec::new();
    for (index, len) in parts.iter().enumerate() {
        let bytes = pattern(*len, seed + index);
        match (index + seed) % 3 {
            0 => out.tail().extend_from_slice(&bytes),
            1 => out.push_rope(&Rope::from_slice(&bytes)),
            _ => bytes
                .chunks(CHUNK_BYTES)
                .for_each(|part| out.push_counted(Chunk::from_slice(part), 0..part.len())),
        }
        model.extend(bytes);
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn behaves_like_a_queue_of_bytes(steps in steps()) {
        let (mut out, mut model) = (Output::new(), Vec::new());
        for (seed, step) in steps.into_iter().enumerate() {
            match step {
                Step::Tail(len) => {
                    out.tail().extend(pattern(len, seed));
                    model.extend(pattern(len, seed));
                }
                Step::Counted(start, end) => {
                    let bytes = pattern(40_000, seed);
                    out.push_counted(Chunk::from_slice(&bytes), start..end);
                    model.extend_from_slice(bytes.get(start..end.min(bytes.len())).unwrap_or(&[]));
                }
                Step::Rope(len) => {
                    out.push_rope(&Rope::from_slice(&pattern(len, seed)));
                    model.extend(pattern(len, seed));
                }
                Step::Advance(part) => {
                    let count = model.len() * part / 1000;
                    out.advance(count);
                    model.drain(..count);
                }
                Step::Append(parts, sent) => {
                    let mut other = Output::new();
                    let bytes = write_parts(&mut other, &parts, seed);
                    let sent = bytes.len() * sent / 1000;
                    other.advance(sent);
                    out.append(&mut other);
                    prop_assert!(other.is_empty());
                    model.extend_from_slice(&bytes[sent..]);
                }
                Step::Insert(parts) => {
                    let outer = out.mark();
                    let first = write_parts(&mut out, &parts, seed);
                    let inner = out.mark();
                    let second = write_parts(&mut out, &parts, seed + 1);
                    out.insert(inner, b"inner");
                    out.insert(outer, b"outer");
                    model.extend([&b"outer"[..], &first, b"inner", &second].concat());
                }
                Step::Clear => {
                    out.clear();
                    model.clear();
                }
            }
            prop_assert_eq!(out.len(), model.len());
            prop_assert_eq!(out.is_empty(), model.is_empty());
            prop_assert!(out.to_vec() == model);
            let mut slices = [IoSlice::new(&[]); 3];
            let filled = out.io_slices(&mut slices);
            let prefix: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter().copied()).collect();
            prop_assert!(model.starts_with(&prefix));
            prop_assert!(filled == 3 || prefix.len() == model.len());
            prop_assert!(slices[..filled].iter().all(|slice| !slice.is_empty()));
        }
    }
}

#[test]
fn long_ropes_are_lent_but_for_scraps() {
    let mut out = Output::new();
    let rope = Rope::from_slice(&pattern(CHUNK_BYTES + 100, 1));
    out.tail().extend_from_slice(b"head");
    out.push_rope(&rope);
    out.tail().extend_from_slice(b"end");
    let runs: Vec<&[u8]> = out.runs().collect();
    assert_eq!(
        runs.iter().map(|run| run.len()).collect::<Vec<_>>(),
        [4, CHUNK_BYTES, 103]
    );
    assert_eq!(runs[1].as_ptr(), rope.chunks()[0].as_slice().as_ptr());
    assert!(rope.chunks()[0].is_shared());
    out.advance(4 + CHUNK_BYTES);
    assert!(!rope.chunks()[0].is_shared());
    assert_eq!(out.len(), 103);
}

#[test]
fn the_length_of_the_whole_decides_whether_a_part_is_lent() {
    let rope = Rope::from_slice(&pattern(3 * CHUNK_BYTES, 1));
    for (range, lent) in [
        (0..16 * 1024, true),
        (1..16 * 1024, false),
        (CHUNK_BYTES - 2000..CHUNK_BYTES + 15_000, true),
        (CHUNK_BYTES - 2000..CHUNK_BYTES + 14_000, false),
    ] {
        let mut out = Output::new();
        out.push_rope_range(&rope, range.clone());
        let start = rope.slices(range.clone()).next().unwrap().as_ptr();
        assert_eq!(
            out.runs().next().unwrap().as_ptr() == start,
            lent,
            "{range:?}"
        );
        assert_eq!(out.to_vec(), rope.copy_range(range));
    }
}

#[test]
fn a_write_does_not_change_what_was_lent() {
    let mut rope = Rope::from_slice(&[b'a'; 20_000]);
    let mut out = Output::new();
    out.push_rope(&rope);
    rope.write_at(0, b"b");
    assert_eq!(out.to_vec(), [b'a'; 20_000]);
    assert_eq!(rope.byte(0), Some(b'b'));
}

#[test]
fn clear_keeps_one_bounded_run() {
    let mut out = Output::new();
    out.tail().extend_from_slice(&[0; 1000]);
    out.advance(1000);
    assert!((1000..=64 * 1024).contains(&out.tail().capacity()));
    out.tail().extend_from_slice(&vec![0; 1 << 20]);
    out.clear();
    assert_eq!(out.tail().capacity(), 0);
}
