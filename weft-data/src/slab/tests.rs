//! The slab against a map of byte strings, its snapshots, its accounts and its use of room.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

impl Slab {
    /// The bytes of pages and records apart, counted anew, and every page's header checked against its holes and records.
    fn counted_bytes(&self, live: impl Iterator<Item = Handle>) -> usize {
        let mut used: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
        for handle in live.filter(|handle| !handle.is_apart()) {
            let (_, len) = extent(self.page(handle.page()), handle.unit());
            used.entry(handle.page())
                .or_default()
                .push((handle.unit(), units_of(len)));
        }
        let mut bytes = 0;
        for (number, page) in self.pages.iter().enumerate() {
            let number = number as u32;
            if page.roomy_at != NOWHERE {
                assert_eq!(self.roomy.get(page.roomy_at as usize), Some(&number));
            }
            let records = used.remove(&number).unwrap_or_default();
            let Some(page) = page.bytes.as_deref() else {
                assert!(records.is_empty() && self.vacant.iter().any(|&vacant| vacant == number));
                continue;
            };
            bytes += page.len() + COUNTS_BYTES;
            assert_eq!(header(page, RECORDS), records.len());
            let mut covered = records;
            let (mut at, mut holes) = (header(page, FIRST_HOLE), 0);
            while at != 0 {
                let (next, size) = hole(page, at);
                covered.push((at, size));
                holes += size;
                at = next;
            }
            assert_eq!(header(page, HOLES), holes);
            covered.sort_unstable();
            let end = covered.iter().fold(HEADER_UNITS, |end, &(at, size)| {
                assert_eq!(at, end, "units are used once");
                at + size
            });
            assert_eq!(header(page, END), end);
            if number != self.filling {
                assert_eq!(end * UNIT, PAGE_BYTES);
            }
        }
        assert!(used.is_empty());
        bytes
            + self
                .apart
                .iter()
                .flatten()
                .map(|record| record.len() + COUNTS_BYTES)
                .sum::<usize>()
    }
}

fn record(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (seed.wrapping_mul(0x9e37_79b9).wrapping_add(at * 7) >> 3) as u8)
        .collect()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(usize),
    Remove(usize),
    Replace(usize, usize),
    Write(usize),
    Snapshot,
    Release(usize),
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0..40_usize,
        3 => 100..150_usize,
        2 => 300..=INSIDE_MAX,
        1 => INSIDE_MAX + 1..3000_usize,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => length().prop_map(Step::Insert),
        6 => any::<usize>().prop_map(Step::Remove),
        4 => (any::<usize>(), length()).prop_map(|(which, len)| Step::Replace(which, len)),
        3 => any::<usize>().prop_map(Step::Write),
        1 => Just(Step::Snapshot),
        1 => any::<usize>().prop_map(Step::Release),
    ];
    proptest::collection::vec(step, 1..600)
}

type Model = BTreeMap<Handle, Vec<u8>>;

fn assert_same(slab: &Slab, model: &Model) {
    for (&handle, bytes) in model {
        assert_eq!(slab.get(handle), bytes);
    }
    assert_eq!(slab.bytes, slab.counted_bytes(model.keys().copied()));
}

fn nth(model: &Model, which: usize) -> Option<Handle> {
    model.keys().nth(which % model.len().max(1)).copied()
}

proptest! {
    #[test]
    fn records_stay_and_snapshots_stay(steps in steps()) {
        let (mut slab, mut model) = (Slab::new(), Model::new());
        let mut snapshots: Vec<(Slab, Model)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            let seed = number as u64;
            match step {
                Step::Insert(len) => {
                    let bytes = record(seed, len);
                    let (front, back) = bytes.split_at(len / 3);
                    let handle = slab.insert([front, back].into_iter());
                    prop_assert_eq!(model.insert(handle, bytes), None);
                }
                Step::Remove(which) => if let Some(handle) = nth(&model, which) {
                    slab.remove(handle);
                    model.remove(&handle);
                },
                Step::Replace(which, len) => if let Some(handle) = nth(&model, which) {
                    let bytes = record(seed, len);
                    let before = model.remove(&handle).expect("it is there");
                    let after = slab.replace(handle, std::iter::once(bytes.as_slice()));
                    if before.len() == len {
                        prop_assert_eq!(after, handle);
                    }
                    prop_assert_eq!(model.insert(after, bytes), None);
                },
                Step::Write(which) => if let Some(handle) = nth(&model, which) {
                    let bytes = record(seed, model[&handle].len());
                    slab.get_mut(handle).copy_from_slice(&bytes);
                    model.insert(handle, bytes);
                },
                Step::Snapshot => snapshots.push((slab.clone(), model.clone())),
                Step::Release(which) => if !snapshots.is_empty() {
                    let (slab, model) = snapshots.swap_remove(which % snapshots.len());
                    assert_same(&slab, &model);
                },
            }
        }
        snapshots.push((slab, model));
        for (slab, model) in &snapshots {
            assert_same(slab, model);
        }
    }
}

#[test]
fn room_that_was_freed_is_used_again() {
    let mut slab = Slab::new();
    let small = [7_u8; 25];
    let handles: Vec<Handle> = (0..100_000)
        .map(|_| slab.insert([small.as_slice()].into_iter()))
        .collect();
    let full = slab.allocated_bytes();
    // Every other record goes; what comes needs twice the room.
    handles
        .iter()
        .step_by(2)
        .for_each(|&handle| slab.remove(handle));
    let rest: Vec<Handle> = handles.iter().skip(1).step_by(2).copied().collect();
    for &handle in &rest {
        slab.remove(handle);
        slab.insert([[7_u8; 52].as_slice()].into_iter());
    }
    assert!(
        slab.allocated_bytes() < full + full / 8,
        "{} of {full}",
        slab.allocated_bytes()
    );
}

#[test]
fn pages_without_records_go() {
    let mut slab = Slab::new();
    let handles: Vec<Handle> = (0..50_000_u32)
        .map(|number| slab.insert([number.to_le_bytes().as_slice(), &[0; 20]].into_iter()))
        .collect();
    handles.iter().for_each(|&handle| slab.remove(handle));
    // One page and the list of pages.
    assert_eq!(slab.bytes, 4096);
    assert!(
        slab.allocated_bytes() < 4096 + 50_000,
        "{}",
        slab.allocated_bytes()
    );
}

#[test]
fn a_small_slab_is_small() {
    let mut slab = Slab::new();
    assert_eq!(slab.allocated_bytes(), 0);
    slab.insert([[1; 10].as_slice()].into_iter());
    assert_eq!(slab.bytes, 256);
    assert!(slab.allocated_bytes() <= 256 + 80);
}
