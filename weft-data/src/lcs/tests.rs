//! Tests of LCS against values asked of Redis 8.2.3, and against the textbook table.

use proptest::prelude::*;

use super::*;

/// Redis's default `proto-max-bulk-len`.
const LIMIT: u64 = 512 << 20;

fn run<'a>(a: &'a [u8], b: &'a [u8], wanted: Wanted, budget: usize) -> Lcs<&'a [u8]> {
    let mut lcs = Lcs::new(a, b, wanted, LIMIT).expect("small");
    while !lcs.step(budget) {}
    lcs
}

type Case = (
    &'static [u8],
    &'static [u8],
    &'static [u8],
    &'static [(usize, usize, usize)],
);

/// Two strings; what LCS answers; and what LCS IDX WITHMATCHLEN does, as (start in the first, start in the second, length)
/// (Redis 8.2.3).
#[rustfmt::skip]
const CASES: &[Case] = &[
    (b"ohmytext", b"mynewtext", b"mytext", &[(4, 5, 4), (2, 0, 2)]),
    (b"a", b"a", b"a", &[(0, 0, 1)]),
    (b"a", b"b", b"", &[]),
    (b"ab", b"ba", b"b", &[(1, 0, 1)]),
    (b"ba", b"ab", b"a", &[(1, 0, 1)]),
    (b"abc", b"cba", b"c", &[(2, 0, 1)]),
    (b"abcabc", b"bcab", b"bcab", &[(1, 0, 4)]),
    (b"aab", b"aba", b"ab", &[(1, 0, 2)]),
    (b"abab", b"baba", b"bab", &[(1, 0, 3)]),
    (b"xaxbx", b"axb", b"axb", &[(1, 0, 3)]),
    (b"abcdef", b"badcfe", b"bdf", &[(5, 4, 1), (3, 2, 1), (1, 0, 1)]),
    (b"AGGTAB", b"GXTXAYB", b"GTAB", &[(5, 6, 1), (4, 4, 1), (3, 2, 1), (2, 0, 1)]),
    (b"aaaa", b"aa", b"aa", &[(2, 0, 2)]),
    (b"aa", b"aaaa", b"aa", &[(0, 2, 2)]),
    (b"abcdbb", b"cbacbaaba", b"bcbb", &[(5, 7, 1), (4, 4, 1), (2, 3, 1), (1, 1, 1)]),
    (b"xyz", b"xyz", b"xyz", &[(0, 0, 3)]),
    (b"12345", b"2468", b"24", &[(3, 1, 1), (1, 0, 1)]),
    (b"a\x00b\xff", b"\xffa\x00\xff", b"a\x00\xff", &[(3, 3, 1), (0, 1, 2)]),
    (b"salut les gens", b"bonjour les amis", b"u les s", &[(13, 15, 1), (5, 7, 5), (3, 5, 1)]),
    (b"cbabdbb", b"bdcaba", b"bdb", &[(6, 4, 1), (3, 0, 2)]),
    (b"bbabaaaabbabaaaabbabaaabaaaaaaaabbaaaabbabbaababbababbbbbabb", b"aababbabbbabaaaaabbbbbabbabaabbabbabbbaaabbaaabaabbbbaaabbaaabaabba", b"aaaabbabaaaabbbabaaaaaaaabbaaaabbbbaaabbaababb", &[(57, 63, 3), (56, 61, 1), (51, 59, 1), (46, 55, 4), (41, 51, 4), (36, 47, 4), (34, 44, 2), (29, 38, 5), (28, 34, 1), (27, 31, 1), (25, 27, 2), (23, 24, 2), (22, 22, 1), (19, 19, 1), (12, 13, 6), (8, 8, 4), (7, 6, 1), (6, 3, 1), (4, 0, 2)]),
    (b"abbababbbbbbbbaababbaabbbababbbbbbbaabbbbbbbbbbbbabbbaaabbbababb", b"baaabaaaabaaaaababaabbbbaaababbbbabababbbbabbbbaabbaaababababbbbabbbbba", b"baabbbbbbbbaababbbbbababbbbbbbaabbbbbbbbbabbbbba", &[(60, 69, 2), (56, 66, 3), (52, 65, 1), (45, 60, 5), (44, 58, 1), (43, 56, 1), (42, 54, 1), (40, 49, 2), (31, 43, 6), (28, 39, 3), (24, 34, 4), (22, 31, 2), (14, 25, 6), (10, 20, 4), (9, 17, 1), (8, 15, 1), (7, 9, 1), (5, 3, 2), (2, 0, 2)]),
    (b"bbbbbabbbbabaababaababbabaabbabbbbaaabbbbabbbaaabbaaabbbbbbabbaba", b"bbbbaabbbabaaabaaabbabbaaaaaabbaaabaaaaababaabaababbbbbaabababaabbaabbba", b"bbbbabbbabaaabaaabbabaaabbbaaabbbbabbbbbaabbbbbabbba", &[(63, 70, 2), (59, 67, 3), (57, 64, 2), (56, 61, 1), (55, 59, 1), (54, 57, 1), (51, 55, 2), (48, 53, 2), (40, 48, 5), (39, 45, 1), (38, 42, 1), (34, 37, 4), (33, 34, 1), (31, 29, 2), (29, 25, 1), (24, 22, 3), (20, 17, 4), (15, 13, 4), (7, 6, 7), (1, 0, 5)]),
    (b"aabaaaababbbbaabaabaaabaabbabbbbbabbbbaaabaaaaaaaabbbabbbbbbbaaaaabbbabababaababbbaabbaabbbaaaaaaabbbabbbabaaaaabbababbaaabaaababa", b"aabbaabbbbaaaabaaabaaaaaabbbbbaabbaaabbabbbaaabaabababaaabbaabbbabaabaaabbabababaabbbbaaaaaaabbbaabababbaaaabaabbbabbbabbabaabbaaabaaaaab", b"aabbabbbbaaaabaaabaabbbbbbbabbbbaaabaaaaaaabbabbbbaaaaabbabababaabbbbaabbaabbaaaaaaabbbabbbabbababbaaabaaaaa", &[(129, 135, 1), (127, 134, 1), (116, 124, 10), (111, 118, 5), (106, 117, 1), (103, 115, 2), (96, 109, 6), (92, 104, 4), (90, 100, 2), (89, 98, 1), (84, 94, 4), (82, 91, 2), (79, 83, 3), (67, 72, 11), (63, 69, 3), (60, 65, 3), (57, 61, 3), (51, 57, 3), (47, 54, 3), (46, 52, 1), (45, 50, 1), (43, 47, 2), (35, 40, 7), (34, 38, 1), (33, 36, 1), (31, 32, 2), (28, 27, 3), (23, 23, 4), (16, 12, 7), (8, 5, 7), (7, 3, 1), (0, 0, 3)]),
];

#[test]
fn the_choice_among_equals_is_that_of_redis() {
    for &(a, b, sequence, ranges) in CASES {
        for budget in [1, 64, 1000, usize::MAX] {
            let lcs = run(a, b, Wanted::Sequence, budget);
            assert_eq!(lcs.sequence(), sequence);
            assert_eq!(lcs.length(), sequence.len());
            let lcs = run(a, b, Wanted::Length, budget);
            assert_eq!(lcs.length(), sequence.len());
            assert_eq!((lcs.sequence(), lcs.ranges()), (&b""[..], &[][..]));
            let lcs = run(a, b, Wanted::Ranges { length_min: 0 }, budget);
            let found: Vec<_> = lcs
                .ranges()
                .iter()
                .map(|run| (run.a_start, run.b_start, run.length))
                .collect();
            assert_eq!(found, ranges);
            assert_eq!(lcs.length(), sequence.len());
        }
    }
}

#[test]
fn short_runs_are_left_out() {
    let run_of = |a_start, b_start, length| MatchRange {
        a_start,
        b_start,
        length,
    };
    for (length_min, expected) in [
        (1, vec![run_of(4, 5, 4), run_of(2, 0, 2)]),
        (3, vec![run_of(4, 5, 4)]),
        (4, vec![run_of(4, 5, 4)]),
        (5, vec![]),
        (usize::MAX, vec![]),
    ] {
        let lcs = run(
            b"ohmytext",
            b"mynewtext",
            Wanted::Ranges { length_min },
            100,
        );
        assert_eq!(lcs.ranges(), expected);
        assert_eq!(lcs.length(), 6);
    }
}

#[test]
fn empty_strings_have_nothing_in_common() {
    for (a, b) in [("", ""), ("a", ""), ("", "a")] {
        for wanted in [
            Wanted::Length,
            Wanted::Sequence,
            Wanted::Ranges { length_min: 0 },
        ] {
            let lcs = run(a.as_bytes(), b.as_bytes(), wanted, 1);
            assert_eq!(
                (lcs.length(), lcs.sequence(), lcs.ranges()),
                (0, &b""[..], &[][..])
            );
        }
    }
}

/// Answers of Redis 8.2.3 with `proto-max-bulk-len` 1048576, the same for every form of the command.
#[test]
fn the_table_redis_would_build_is_limited() {
    let limit = 1 << 20;
    for (a_len, b_len, allowed) in [
        (511, 511, true),
        (511, 512, false),
        (512, 512, false),
        (1, 131_071, true),
        (131_072, 1, false),
        (0, 300_000, false),
    ] {
        let (a, b) = (vec![b'a'; a_len], vec![b'b'; b_len]);
        for wanted in [
            Wanted::Length,
            Wanted::Sequence,
            Wanted::Ranges { length_min: 0 },
        ] {
            let expected = (!allowed).then_some(LcsError::OverLimit);
            assert_eq!(
                Lcs::new(&a, &b, wanted, limit).err(),
                expected,
                "{a_len} {b_len}"
            );
        }
    }
}

#[test]
fn errors_are_those_of_redis() {
    assert_eq!(LcsError::TooLong.to_string(), "ERR String too long for LCS");
    assert_eq!(
        LcsError::OverLimit.to_string(),
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
    );
    assert_eq!(
        LcsError::NoMemory.to_string(),
        "ERR Insufficient memory, failed allocating transient memory for LCS"
    );
}

#[test]
fn a_step_does_not_exceed_its_budget() {
    let (a, b) = (vec![b'a'; 1000], vec![b'b'; 640]);
    let mut lcs = Lcs::new(&a, &b, Wanted::Sequence, LIMIT).expect("small");
    // 100 of the 10 strips' 1000 rows at a time, then 640 steps back at the price of 16 rows, 7 at a time.
    let mut steps = 1;
    while !lcs.step(64 * 100) {
        steps += 1;
    }
    assert_eq!(steps, 192);
    assert_eq!(lcs.length(), 0);
    assert!(lcs.step(1));
}

/// The textbook recurrence and walk back.
fn table(a: &[u8], b: &[u8]) -> (Vec<u8>, Vec<MatchRange>) {
    let mut lengths = vec![vec![0u32; b.len() + 1]; a.len() + 1];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            lengths[i][j] = if a[i - 1] == b[j - 1] {
                lengths[i - 1][j - 1] + 1
            } else {
                lengths[i - 1][j].max(lengths[i][j - 1])
            };
        }
    }
    let (mut i, mut j) = (a.len(), b.len());
    let mut sequence = Vec::new();
    let mut ranges: Vec<MatchRange> = Vec::new();
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            (i, j) = (i - 1, j - 1);
            sequence.insert(0, a[i]);
            match ranges.last_mut() {
                Some(run) if run.a_start == i + 1 && run.b_start == j + 1 => {
                    *run = MatchRange {
                        a_start: i,
                        b_start: j,
                        length: run.length + 1,
                    };
                }
                _ => ranges.push(MatchRange {
                    a_start: i,
                    b_start: j,
                    length: 1,
                }),
            }
        } else if lengths[i - 1][j] > lengths[i][j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    (sequence, ranges)
}

proptest! {
    #[test]
    fn agrees_with_the_table(a in "[abc]{0,200}", b in "[abcd]{0,200}", budget in 1usize..20_000) {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let (sequence, ranges) = table(a, b);
        prop_assert_eq!(run(a, b, Wanted::Length, budget).length(), sequence.len());
        let lcs = run(a, b, Wanted::Sequence, budget);
        prop_assert_eq!(lcs.length(), sequence.len());
        prop_assert_eq!(lcs.sequence(), sequence);
        let lcs = run(a, b, Wanted::Ranges { length_min: 0 }, budget);
        prop_assert_eq!(lcs.ranges(), ranges);
    }
}
