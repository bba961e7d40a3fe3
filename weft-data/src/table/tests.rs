//! The table against a map, its shape, its accounts, its snapshots.

use super::*;
use fastrand::Rng;
use std::collections::BTreeMap;

impl Table {
    /// Checks every node, and that the kept numbers are the counted ones.
    fn check(&self) {
        let mut len = 0;
        let mut bytes = 0;
        check_below(&self.root, 0, 0, &mut len, &mut bytes);
        assert_eq!((self.len, self.bytes), (len, bytes));
    }

    /// How many nodes there are that `other` does not share.
    fn nodes_of_its_own(&self, other: &Table) -> usize {
        fn collect(node: &Node, seen: &mut Vec<usize>) {
            match node {
                Node::Segment(segment) => seen.push(Arc::as_ptr(segment) as usize),
                Node::Inner(inner) => {
                    seen.push(Arc::as_ptr(inner) as usize);
                    inner
                        .children
                        .iter()
                        .for_each(|child| collect(&child.node, seen));
                }
            }
        }
        let (mut own, mut others) = (Vec::new(), Vec::new());
        collect(&self.root, &mut own);
        collect(&other.root, &mut others);
        others.sort_unstable();
        own.iter()
            .filter(|node| others.binary_search(node).is_err())
            .count()
    }
}

/// Checks a node whose positions share the `shared` highest bits with `prefix`.
fn check_below(node: &Node, prefix: u32, shared: u32, len: &mut usize, bytes: &mut usize) {
    match node {
        Node::Segment(segment) => {
            assert!(segment.entries.is_sorted());
            let size = 1_u64 << (POSITION_BITS - shared);
            for entry in &segment.entries {
                assert_eq!(
                    u64::from(entry.position()) & !(size - 1),
                    u64::from(prefix),
                    "a segment has its own positions"
                );
            }
            *len += segment.entries.len();
            *bytes += segment.bytes();
        }
        Node::Inner(inner) => {
            assert_eq!(shared % DIGIT_BITS, 0);
            *bytes += inner.bytes();
            let mut next = 0;
            for (number, child) in inner.children.iter().enumerate() {
                assert_eq!(usize::from(child.first), next);
                let width = DIGITS >> child.bits;
                for digit in next..next + width {
                    assert_eq!(usize::from(inner.index[digit]), number);
                }
                if matches!(child.node, Node::Inner(_)) {
                    assert_eq!(u32::from(child.bits), DIGIT_BITS);
                }
                let below = *len;
                let prefix = prefix | (next as u32) << (POSITION_BITS - DIGIT_BITS - shared);
                check_below(
                    &child.node,
                    prefix,
                    shared + u32::from(child.bits),
                    len,
                    bytes,
                );
                assert_eq!(*len - below, child.count as usize);
                next += width;
            }
            assert_eq!(next, DIGITS);
            assert!(inner.children.len() > 1 || matches!(inner.children[0].node, Node::Inner(_)));
        }
    }
}

/// What should be in a table: hashes by handle.
type Model = BTreeMap<u32, u64>;

fn assert_same(table: &Table, model: &Model) {
    table.check();
    let mut given: Vec<u32> = table.iter().map(Handle::bits).collect();
    let positions: Vec<u32> = given
        .iter()
        .map(|handle| position_of(model[handle]))
        .collect();
    assert!(positions.is_sorted());
    given.sort_unstable();
    assert!(given.iter().eq(model.keys()));
    for (&handle, &hash) in model {
        assert_eq!(
            table.find(hash, |found| found.bits() == handle),
            Some(Handle::from_bits(handle))
        );
    }
}

/// Hashes as a good function gives them, or (`mask`) such that many are equal.
fn run(seed: u64, mask: u64, steps: usize) {
    let mut rng = Rng::with_seed(seed);
    let (mut table, mut model) = (Table::new(), Model::new());
    let mut snapshots: Vec<(Table, Model)> = Vec::new();
    let mut next = 0_u32;
    let mut grows = true;
    for step in 0..steps {
        if step % (steps / 6) == 0 {
            grows = rng.bool();
        }
        match rng.u32(..1000) {
            0 if snapshots.len() < 4 => snapshots.push((table.clone(), model.clone())),
            1 if !snapshots.is_empty() => {
                let (table, model) = snapshots.swap_remove(rng.usize(..snapshots.len()));
                assert_same(&table, &model);
            }
            2..50 if !model.is_empty() => {
                let (&old, &hash) = model
                    .range(rng.u32(..next)..)
                    .next()
                    .or(model.first_key_value())
                    .expect("it is not empty");
                assert!(table.replace(hash, Handle::from_bits(old), Handle::from_bits(next)));
                model.remove(&old);
                model.insert(next, hash);
                next += 1;
            }
            draw => {
                if (draw % 10 < 7) == grows || model.is_empty() {
                    let hash = rng.u64(..) & mask;
                    table.insert(hash, Handle::from_bits(next));
                    model.insert(next, hash);
                    next += 1;
                } else {
                    let (&handle, &hash) = model
                        .range(rng.u32(..next)..)
                        .next()
                        .or(model.first_key_value())
                        .expect("it is not empty");
                    assert!(table.remove(hash, Handle::from_bits(handle)));
                    assert!(!table.remove(hash, Handle::from_bits(handle)));
                    model.remove(&handle);
                }
            }
        }
        assert_eq!(table.len(), model.len());
    }
    snapshots.push((table, model));
    for (table, model) in &snapshots {
        assert_same(table, model);
    }
    let (mut table, mut model) = snapshots.pop().expect("it was pushed");
    while let Some((handle, hash)) = model.pop_first() {
        assert!(table.remove(hash, Handle::from_bits(handle)));
        if model.len().is_multiple_of(97) {
            table.check();
        }
    }
    assert_eq!(table.len(), 0);
    assert!(table.allocated_bytes() <= Table::new().allocated_bytes() + 64 * size_of::<Entry>());
    for (table, model) in &snapshots {
        assert_same(table, model);
    }
}

#[test]
fn it_is_a_map_and_snapshots_stay() {
    for seed in 0..12 {
        run(seed, u64::MAX, 6000);
    }
    run(100, u64::MAX, 60_000);
}

#[test]
fn equal_positions_are_kept_apart_by_the_caller() {
    for seed in 0..6 {
        run(seed, 0x0000_0003_0000_0000, 3000);
        run(seed, 0xff00_0000_0000_00ff, 6000);
        run(seed, 0x0000_00ff_ffff_ffff, 6000);
    }
}

fn table_of(seed: u64, len: u32) -> (Table, Vec<u64>) {
    let mut rng = Rng::with_seed(seed);
    let mut table = Table::new();
    let hashes = (0..len)
        .map(|handle| {
            let hash = rng.u64(..);
            table.insert(hash, Handle::from_bits(handle));
            hash
        })
        .collect();
    (table, hashes)
}

#[test]
fn a_write_touches_one_segment_and_its_way() {
    let (mut table, hashes) = table_of(1, 250_000);
    let mut rng = Rng::with_seed(2);
    let mut splits = 0;
    for handle in 250_000..253_000 {
        let before = table.clone();
        table.insert(rng.u64(..), Handle::from_bits(handle));
        let touched = table.nodes_of_its_own(&before);
        // Three levels; a split makes one more segment, and perhaps an inner node above the two.
        assert!(touched <= 5, "{touched}");
        splits += usize::from(touched > 3);
        if handle % 8 == 0 {
            let before = table.clone();
            let victim = rng.usize(..hashes.len());
            table.remove(hashes[victim], Handle::from_bits(victim as u32));
            assert!(table.nodes_of_its_own(&before) <= 3);
        }
    }
    assert!(splits > 10, "{splits}");
}

#[test]
fn a_scan_gives_all_that_stays() {
    for seed in 0..30 {
        let mut rng = Rng::with_seed(seed);
        let (mut table, hashes) = table_of(seed, 2000);
        let mut others: Vec<(u64, Handle)> = Vec::new();
        let mut seen = vec![0_u32; hashes.len()];
        let (mut cursor, mut calls) = (0, 0);
        let grows = seed % 2 == 0;
        if !grows {
            for handle in 0..30_000 {
                let hash = rng.u64(..);
                others.push((hash, Handle::from_bits(1_000_000 + handle)));
                table.insert(hash, others[others.len() - 1].1);
            }
        }
        loop {
            let mut given = 0;
            cursor = table.scan(cursor, 10, |handle| {
                given += 1;
                if let Some(times) = seen.get_mut(handle.bits() as usize) {
                    *times += 1;
                }
            });
            calls += 1;
            assert!(given <= 12, "{given}");
            assert!(cursor < 1 << 32);
            if cursor == 0 {
                break;
            }
            for _ in 0..20 {
                if grows {
                    let hash = rng.u64(..);
                    others.push((hash, Handle::from_bits(1_000_000 + others.len() as u32)));
                    table.insert(hash, others[others.len() - 1].1);
                } else if !others.is_empty() {
                    let (hash, handle) = others.swap_remove(rng.usize(..others.len()));
                    assert!(table.remove(hash, handle));
                }
            }
        }
        assert!(calls > 100);
        // Nothing moves, so nothing is given twice either.
        assert!(seen.iter().all(|&times| times == 1));
    }
}

#[test]
fn a_scan_from_a_cursor_that_was_never_given_ends() {
    let (table, _) = table_of(3, 1000);
    assert_eq!(table.scan(1 << 32, 10, |_| panic!("there is nothing")), 0);
    assert_eq!(table.scan(u64::MAX, 10, |_| panic!("there is nothing")), 0);
    assert_eq!(Table::new().scan(0, 10, |_| panic!("there is nothing")), 0);
    assert_eq!(table.scan(0, 2000, |_| {}), 0);
}

#[test]
fn random_entries_are_uniform() {
    let (table, _) = table_of(4, 100);
    let mut rng = Rng::with_seed(5);
    let mut times = [0_u32; 100];
    for _ in 0..100_000 {
        let handle = table
            .random(&mut |bound| rng.u64(..bound))
            .expect("it is not empty");
        times[handle.bits() as usize] += 1;
    }
    let chi_square: f64 = times
        .iter()
        .map(|&times| (f64::from(times) - 1000.0).powi(2) / 1000.0)
        .sum();
    // The quantile of 99 degrees of freedom for p = 0.001.
    assert!(chi_square < 148.23, "{chi_square}");
    assert_eq!(Table::new().random(&mut |_| 0), None);
}

#[test]
fn numbers_are_those_of_the_order() {
    let (table, _) = table_of(6, 30_000);
    let all: Vec<Handle> = table.iter().collect();
    for number in (0..30_000).step_by(37) {
        assert_eq!(table.nth(number), Some(all[number]));
    }
    assert_eq!(table.nth(30_000), None);
}
