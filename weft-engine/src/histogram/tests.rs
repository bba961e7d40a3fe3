//! Against HdrHistogram's own cells, and against what Redis 8.2 printed.

use super::*;

fn durations(all_ns: &[u64]) -> Durations {
    let histogram = Histogram::default();
    all_ns.iter().for_each(|ns| histogram.record(*ns, 1));
    Durations::of(std::iter::once(&histogram))
}

/// Nanoseconds of so many milliseconds.
fn ms(ms: &[f64]) -> Vec<u64> {
    ms.iter().map(|ms| (ms * 1e6) as u64).collect()
}

#[test]
fn cells_are_those_of_hdr_histogram() {
    let reference = hdrhistogram::Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 2).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let edges = (0..30).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    let drawn = (0..20_000).map(|_| random.u64(1..=LONGEST_NS) >> random.u32(0..30));
    for ns in edges
        .chain(drawn)
        .chain([LONGEST_NS])
        .filter(|ns| (1..=LONGEST_NS).contains(ns))
    {
        let (block, cell) = place(ns);
        assert_eq!(
            shortest_ns(block, cell),
            reference.lowest_equivalent(ns),
            "{ns}"
        );
        assert_eq!(
            longest_ns(block, cell),
            reference.highest_equivalent(ns),
            "{ns}"
        );
    }
    assert_eq!(place(LONGEST_NS).0, BLOCKS - 1);
}

#[test]
fn percentiles_are_those_that_redis_prints() {
    // DEBUG SLEEP of 2, 4, ... 24 ms, each a little longer than asked for.
    let twelve: Vec<f64> = (1..=12).map(|n| f64::from(n) * 2.0 + 0.092).collect();
    let twelve = durations(&ms(&twelve));
    for (percent, expected_ns) in [
        (0.0, 2_088_960),
        (0.00001, 2_097_151),
        (12.4, 2_097_151),
        (12.6, 4_095_999),
        (50.0, 12_124_159),
        (54.5, 14_155_775),
        (95.7, 22_151_167),
        (95.9, 24_117_247),
        (100.0, 24_117_247),
    ] {
        assert_eq!(twelve.percentile_ns(percent), expected_ns, "{percent} %");
    }
    for (ns, lowest, highest) in [
        (0, 1, 1),
        (1_000, 1_000, 1_003),
        (3_000, 2_992, 3_007),
        (46_900, 46_848, 47_103),
        (1_100_000_000, 998_244_352, 1_002_438_655),
    ] {
        let one = durations(&[ns]);
        assert_eq!(one.percentile_ns(0.0), lowest);
        assert_eq!(one.percentile_ns(50.0), highest);
        assert_eq!(one.percentile_ns(100.0), highest);
    }
    assert_eq!(durations(&[]).percentile_ns(50.0), 0);
}

#[test]
fn distributions_are_those_that_redis_prints() {
    for (all_ns, expected) in [
        (vec![1_000, 11_000], &[(1, 1), (16, 2)][..]),
        (
            vec![0, 0, 1_000, 33_000, 34_000],
            &[(1, 3), (33, 4), (66, 5)],
        ),
        (vec![20_100_000, 30_100_000], &[(33_816, 2)]),
        (vec![1_100_000_000, 2_300_000_000], &[(1_073_741, 2)]),
        (vec![], &[]),
    ] {
        assert_eq!(durations(&all_ns).distribution(), expected, "{all_ns:?}");
    }
    let bounds: Vec<u64> = (0..21).map(|bit| (1 << bit) * 1_000).collect();
    let bounds: Vec<u64> = durations(&bounds)
        .distribution()
        .into_iter()
        .map(|(bound, _)| bound)
        .collect();
    assert_eq!(
        bounds,
        [
            1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113, 4227, 8454, 16908, 33816, 67633,
            135266, 270532, 541065, 1_073_741
        ]
    );
}

#[test]
fn several_threads_add_up() {
    let (one, other) = (Histogram::default(), Histogram::default());
    one.record(500, 3);
    other.record(500, 1);
    other.record(70_000, 1);
    let all = Durations::of([&one, &other].into_iter());
    assert_eq!(all.count(), 5);
    assert_eq!(all.distribution(), [(1, 4), (132, 5)]);
    assert_eq!(one.allocated_bytes(), 1024);
    assert_eq!(other.allocated_bytes(), 2048);
}
