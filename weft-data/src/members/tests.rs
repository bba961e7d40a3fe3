//! Members against a map, their snapshots, and what they take.

use super::*;
use fastrand::Rng;
use std::collections::{BTreeMap, HashSet};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn assert_same(members: &Members, model: &Model) {
    assert_eq!(members.len(), model.len());
    let mut seen = HashSet::new();
    for handle in members.iter() {
        let (key, payload) = members.record(handle);
        assert_eq!(model.get(key).map(Vec::as_slice), Some(payload));
        assert!(seen.insert(key.to_vec()));
    }
    assert_eq!(seen.len(), model.len());
    for (key, payload) in model {
        let handle = members.get(key).expect("it is there");
        assert_eq!(
            (members.key(handle), members.payload(handle)),
            (key.as_slice(), payload.as_slice())
        );
    }
}

fn some_key(rng: &mut Rng) -> Vec<u8> {
    let number = rng.u32(..4000);
    let mut key = format!("key:{number}").into_bytes();
    match number % 97 {
        0 => key.resize(600, b'x'),
        1 => key.resize(20_000, b'y'),
        2 => key.resize(126 + number as usize % 5, b'z'),
        _ => {}
    }
    if number == 3 {
        key.clear();
    }
    key
}

fn some_payload(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.u32(..20) {
        0 => 1500,
        1 => rng.usize(100..500),
        _ => rng.usize(..12),
    };
    std::iter::repeat_with(|| rng.u8(..)).take(len).collect()
}

#[test]
fn they_are_a_map_and_snapshots_stay() {
    for seed in 0..10 {
        let mut rng = Rng::with_seed(seed);
        let (mut members, mut model) = (Members::new(seed), Model::new());
        let mut snapshots: Vec<(Members, Model)> = Vec::new();
        for _ in 0..8000 {
            let key = some_key(&mut rng);
            match rng.u32(..100) {
                0..55 => {
                    let payload = some_payload(&mut rng);
                    let (front, back) = payload.split_at(payload.len() / 2);
                    let before = members.get(&key);
                    let inserted = members.insert(&key, &[front, back]);
                    assert_eq!(inserted.replaced, before);
                    assert_eq!(members.get(&key), Some(inserted.handle));
                    let same_size = model
                        .get(&key)
                        .is_some_and(|old| old.len() == payload.len());
                    assert!(!same_size || inserted.replaced == Some(inserted.handle));
                    model.insert(key, payload);
                }
                55..65 => {
                    if let Some(handle) = members.get(&key) {
                        let payload = model.get_mut(&key).expect("it is there");
                        payload.reverse();
                        members.payload_mut(handle).copy_from_slice(payload);
                    }
                }
                65..99 => assert_eq!(members.remove(&key), model.remove(&key).is_some()),
                _ => {
                    if snapshots.len() == 3 {
                        let (members, model) = snapshots.swap_remove(rng.usize(..3));
                        assert_same(&members, &model);
                    }
                    snapshots.push((members.clone(), model.clone()));
                }
            }
        }
        snapshots.push((members, model));
        for (members, model) in &snapshots {
            assert_same(members, model);
        }
    }
}

#[test]
fn a_seed_decides_the_order() {
    let order = |seed| {
        let mut members = Members::new(seed);
        for number in 0..300 {
            members.insert(format!("{number}").as_bytes(), &[]);
        }
        members
            .iter()
            .map(|handle| members.key(handle).to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

/// What a sorted set keeps here of each member: the member and 8 bytes.
#[test]
fn a_member_takes_less_than_40_bytes() {
    let mut members = Members::new(7);
    let count = 300_000;
    for number in 0..count {
        members.insert(format!("member:{number:09}").as_bytes(), &[&[0; 8]]);
    }
    let records = members.slab.allocated_bytes() as f64 / f64::from(count);
    let entries = members.table.allocated_bytes() as f64 / f64::from(count);
    // A record is 26 bytes in units of 4; an entry 8 bytes in segments that are about nine tenths full.
    assert!((28.0..28.8).contains(&records), "{records}");
    assert!((8.0..11.0).contains(&entries), "{entries}");
    assert_eq!(
        members.allocated_bytes(),
        members.slab.allocated_bytes() + members.table.allocated_bytes()
    );
}
