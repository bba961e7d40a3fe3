//! Lists in both forms against a vector of byte strings, and their snapshots against copies.

use std::collections::VecDeque;

use weft_rope::Rope;

use super::leaf::Leaf;
use super::{Element, End, List, ListMut, ListRef, NodeLimit, run, small};
use crate::collection::{Built, Collection, CollectionRef, Draft, Kind, PACKED_MAX};
use crate::packed;

/// A list as a keyspace would hold it, and what has to be in it.
#[derive(Clone)]
struct Pair {
    built: Built,
    model: VecDeque<Vec<u8>>,
}

impl Pair {
    fn new() -> Self {
        Self {
            built: Built::Packed(Vec::new()),
            model: VecDeque::new(),
        }
    }

    fn edit<R>(&mut self, limit: NodeLimit, act: impl FnOnce(&mut ListMut<'_, '_>) -> R) -> R {
        let mut draft = match &mut self.built {
            Built::Packed(bytes) => Draft::Packed(bytes),
            Built::Large(collection) => Draft::Large(collection),
        };
        let result = act(&mut ListMut::new(&mut draft, limit));
        if let Draft::Grown(collection) = draft {
            self.built = Built::Large(collection);
        }
        if let Built::Large(collection) = &self.built
            && collection.is_empty()
        {
            self.built = Built::Packed(Vec::new());
        }
        result
    }

    fn list(&self) -> ListRef<'_> {
        match self.built.as_ref() {
            CollectionRef::Packed([]) => ListRef::Packed(&[]),
            collection => ListRef::from(collection),
        }
    }

    fn check(&self) {
        let list = self.list();
        match list {
            ListRef::Packed(bytes) => {
                assert!(bytes.len() <= PACKED_MAX);
                if !bytes.is_empty() {
                    assert_eq!(Kind::of_tag(bytes[0]), Some(Kind::List));
                    assert_eq!(packed::validate(bytes, small::HEAD), Some(list.len()));
                    assert!(!list.is_empty());
                }
            }
            ListRef::Large(list) => verify(list),
        }
        assert_eq!(list.len(), self.model.len());
        let forward: Vec<Vec<u8>> = list.elements(0).map(bytes_of).collect();
        assert_eq!(self.model, forward);
        let mut backward: Vec<Vec<u8>> = list.elements_back(list.len()).map(bytes_of).collect();
        backward.reverse();
        assert_eq!(self.model, backward);
    }

    fn change(&mut self, random: &mut fastrand::Rng, limit: NodeLimit) {
        let len = self.model.len();
        let at = random.usize(0..len.max(1));
        let end = if random.bool() { End::Left } else { End::Right };
        let element = random_element(random);
        match random.u32(0..14) {
            0..5 => {
                let most = if random.u8(0..10) == 0 { 120 } else { 4 };
                let added: Vec<Vec<u8>> = (0..random.usize(0..most))
                    .map(|_| random_element(random))
                    .chain([element])
                    .collect();
                let elements = added.iter().map(|bytes| Element::Bytes(bytes));
                let new_len = self.edit(limit, |list| list.push(end, elements));
                match end {
                    End::Left => added
                        .into_iter()
                        .for_each(|element| self.model.push_front(element)),
                    End::Right => self.model.extend(added),
                }
                assert_eq!(new_len, self.model.len());
            }
            5..8 => {
                let most = if random.u8(0..12) == 0 { 500 } else { 3 };
                let count = random.usize(0..most);
                let mut popped = Vec::new();
                self.edit(limit, |list| {
                    list.pop(end, count, |element| popped.push(bytes_of(element)));
                });
                let expected: Vec<Vec<u8>> = (0..count)
                    .filter_map(|_| match end {
                        End::Left => self.model.pop_front(),
                        End::Right => self.model.pop_back(),
                    })
                    .collect();
                assert_eq!(popped, expected);
            }
            8 => {
                let rope = Rope::from_slice(&element);
                let new = match element.len() > 64 * 1024 {
                    true => Element::Rope(&rope),
                    false => Element::Bytes(&element),
                };
                let exists = self.edit(limit, |list| list.set(at, new));
                assert_eq!(exists, at < len);
                if exists {
                    self.model[at] = element;
                }
            }
            9..11 => {
                let pivot = match self.model.get(at) {
                    Some(pivot) if random.u8(0..4) > 0 => pivot.clone(),
                    _ => b"no such".to_vec(),
                };
                let before = random.bool();
                let new_len = self.edit(limit, |list| {
                    list.insert(before, &pivot, Element::Bytes(&element))
                });
                let found = self.model.iter().position(|other| *other == pivot);
                if let Some(found) = found {
                    self.model.insert(found + usize::from(!before), element);
                }
                assert_eq!(new_len, found.map(|_| len + 1));
            }
            11 => {
                let wanted = self.model.get(at).cloned().unwrap_or_default();
                let most = if random.bool() {
                    usize::MAX
                } else {
                    random.usize(1..4)
                };
                let removed = self.edit(limit, |list| list.remove(most, end, &wanted));
                let mut expected = 0;
                while expected < most {
                    let mut places = self.model.iter();
                    let found = match end {
                        End::Left => places.position(|other| *other == wanted),
                        End::Right => places.rposition(|other| *other == wanted),
                    };
                    let Some(found) = found else { break };
                    self.model.remove(found);
                    expected += 1;
                }
                assert_eq!(removed, expected);
            }
            _ => {
                let most = if random.u8(0..8) == 0 { len } else { 20 };
                let start = random.usize(0..(len / 3).min(most) + 1);
                let end = random.usize(len - (len / 3).min(most)..len + 1).max(start);
                self.edit(limit, |list| list.keep(start..end));
                self.model.truncate(end);
                self.model.drain(..start);
            }
        }
    }
}

fn bytes_of(element: Element<'_>) -> Vec<u8> {
    match element {
        Element::Bytes(bytes) => bytes.to_vec(),
        Element::Rope(rope) => rope.to_vec(),
    }
}

fn random_element(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u32(0..200) {
        0 => random.usize(60_000..70_000),
        1..4 => random.usize(1_000..5_000),
        4..30 => random.usize(100..1_050),
        30..60 => return random.i64(..).to_string().into_bytes(),
        60..120 => return random.u8(0..8).to_string().into_bytes(),
        _ => random.usize(0..20),
    };
    vec![random.alphanumeric() as u8; len]
}

fn verify(list: &List) {
    list.tree.verify();
    let size: u64 = super::Elements::forward(list, 0)
        .map(Element::listpack_bytes)
        .sum();
    match list.size {
        Some(known) => assert_eq!(known, size),
        None => assert!(list.is_quicklist),
    }
    for (_, leaf) in list.tree.leaves_from(0) {
        match leaf {
            Leaf::Run(run) => {
                assert!(run.capacity() <= run::RUN_MAX, "{} bytes", run.capacity());
                assert_eq!(run.elements().count(), run.items());
            }
            Leaf::Whole(rope) => assert!(rope.len() > run::ELEMENT_MAX),
        }
    }
}

#[test]
fn changes_are_those_of_a_vector_and_snapshots_stand_still() {
    for seed in 0..RUNS {
        let mut random = fastrand::Rng::with_seed(seed);
        let limit = NodeLimit::of_setting([-2, -1, -5, 4, 128][random.usize(0..5)]);
        let mut live = vec![Pair::new()];
        for _ in 0..150 {
            let which = random.usize(..live.len());
            match random.u32(0..12) {
                0 if live.len() < 5 => {
                    let snapshot = live[which].clone();
                    live.push(snapshot);
                }
                1 if live.len() > 1 => {
                    live.swap_remove(which);
                }
                _ => live[which].change(&mut random, limit),
            }
            if random.u8(0..4) == 0 {
                live[random.usize(..live.len())].check();
            }
        }
        live.iter().for_each(Pair::check);
    }
}

const RUNS: u64 = 200;

fn texts(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("element:{number:07}")).collect()
}

fn pushed(end: End, elements: &[String]) -> Pair {
    let mut pair = Pair::new();
    for chunk in elements.chunks(50) {
        let elements = chunk.iter().map(|text| Element::Bytes(text.as_bytes()));
        pair.edit(NodeLimit::of_setting(-2), |list| list.push(end, elements));
    }
    pair
}

#[test]
fn elements_are_reached_from_anywhere() {
    for len in [0, 1, 30, 5_000] {
        let expected = texts(0..len);
        let pair = pushed(End::Right, &expected);
        let list = pair.list();
        for from in [0, 1, 17, 29, 30, 2_500, 4_999, 5_000, 6_000] {
            let found = list.get(from).map(bytes_of);
            let wanted = expected.get(from).map(|text| text.clone().into_bytes());
            assert_eq!(found, wanted, "{from} of {len}");
            let forward = list.elements(from).map(bytes_of);
            let wanted = expected.iter().skip(from).map(|text| text.as_bytes());
            assert!(forward.eq(wanted), "{from} of {len}");
            let backward = list.elements_back(from).map(bytes_of);
            let wanted = expected.iter().take(from).rev().map(|text| text.as_bytes());
            assert!(backward.eq(wanted), "{from} of {len}");
        }
        let ends = [End::Left, End::Right].map(|end| list.end(end).map(bytes_of));
        let wanted = [expected.first(), expected.last()];
        assert_eq!(
            ends,
            wanted.map(|text| text.map(|text| text.clone().into_bytes()))
        );
    }
}

/// Elements of 15 bytes take 17, the rest of the memory is less than a tenth; whichever end they come in by.
#[test]
fn runs_are_filled() {
    for end in [End::Left, End::Right] {
        let pair = pushed(end, &texts(0..100_000));
        let Built::Large(collection) = &pair.built else {
            panic!("large")
        };
        let each = collection.allocated_bytes() as f64 / 100_000.0;
        assert!((17.0..18.0).contains(&each), "{each} bytes an element");
    }
}

/// A queue keeps its elements in few runs however long it is used, whichever way it runs.
#[test]
fn a_queue_does_not_wear_out() {
    for (in_by, out_by) in [
        (End::Left, End::Right),
        (End::Right, End::Left),
        (End::Left, End::Left),
    ] {
        let mut pair = pushed(in_by, &texts(0..200));
        let limit = NodeLimit::of_setting(-2);
        for text in texts(0..20_000) {
            let element = [Element::Bytes(text.as_bytes())];
            pair.edit(limit, |list| {
                list.push(in_by, element.into_iter());
                list.pop(out_by, 1, |_| ());
            });
        }
        assert_eq!(pair.list().len(), 200);
        let Built::Large(collection) = &pair.built else {
            panic!("large")
        };
        assert!(collection.allocated_bytes() < 3 * 4096 + 300);
    }
}

#[test]
fn a_long_element_is_shared_and_not_copied() {
    let long = Rope::from_slice(&vec![b'x'; 300_000]);
    let mut pair = pushed(End::Right, &texts(0..1_000));
    let limit = NodeLimit::of_setting(-2);
    pair.edit(limit, |list| {
        list.insert(true, b"element:0000500", Element::Rope(&long))
    });
    let snapshot = pair.clone();
    pair.edit(limit, |list| list.set(0, Element::Bytes(b"new")));
    pair.edit(limit, |list| {
        list.insert(false, b"element:0000500", Element::Bytes(b"new"))
    });
    for pair in [&pair, &snapshot] {
        let Some(Element::Rope(own)) = pair.list().get(500) else {
            panic!("a rope")
        };
        let first = |rope: &Rope| rope.chunks()[0].as_slice().as_ptr();
        assert_eq!(first(own), first(&long));
        pair.list().elements(0).for_each(drop);
    }
    assert_eq!(snapshot.list().len(), 1_001);
    assert_eq!(pair.list().len(), 1_002);
    pair.edit(limit, |list| {
        assert_eq!(list.remove(1, End::Left, &long.to_vec()), 1)
    });
    assert_eq!(
        pair.list().get(500).map(bytes_of),
        Some(b"element:0000500".to_vec())
    );
}

/// Asked of Redis 8.2.3: the names after each step.
#[test]
fn names_are_those_of_redis_8_2() {
    fn push(pair: &mut Pair, limit: NodeLimit, elements: &[&str]) {
        let elements = elements.iter().map(|text| Element::Bytes(text.as_bytes()));
        pair.edit(limit, |list| list.push(End::Right, elements));
    }
    let long = "x".repeat(9_000);
    let by_size = NodeLimit::of_setting(-2);
    let mut pair = Pair::new();
    push(&mut pair, by_size, &["a", "b"]);
    assert_eq!(pair.list().encoding(), "listpack");
    pair.edit(by_size, |list| {
        assert_eq!(
            list.insert(true, b"no such", Element::Bytes(long.as_bytes())),
            None
        );
    });
    assert_eq!(pair.list().encoding(), "quicklist");
    pair.edit(by_size, |list| {
        assert_eq!(list.remove(1, End::Left, b"no such"), 0)
    });
    assert_eq!(pair.list().encoding(), "quicklist");
    push(&mut pair, by_size, &["c"]);
    assert_eq!(pair.list().encoding(), "quicklist");
    pair.edit(by_size, |list| list.keep(0..3));
    assert_eq!(pair.list().encoding(), "listpack");
    push(&mut pair, by_size, &[&long]);
    assert_eq!(pair.list().encoding(), "quicklist");
    pair.edit(by_size, |list| list.pop(End::Left, 1, |_| ()));
    assert_eq!(pair.list().encoding(), "quicklist");
    pair.edit(by_size, |list| list.pop(End::Right, 1, |_| ()));
    assert_eq!(pair.list().encoding(), "listpack");
    let by_items = NodeLimit::of_setting(4);
    let mut pair = Pair::new();
    push(&mut pair, by_items, &["1", "2", "3", "4"]);
    assert_eq!(pair.list().encoding(), "listpack");
    pair.edit(by_items, |list| list.set(0, Element::Bytes(b"x")));
    assert_eq!(pair.list().encoding(), "quicklist");
    pair.edit(by_items, |list| list.pop(End::Left, 1, |_| ()));
    assert_eq!(pair.list().encoding(), "quicklist");
    pair.edit(by_items, |list| list.pop(End::Left, 1, |_| ()));
    assert_eq!(pair.list().encoding(), "listpack");
    // At 20 bytes an element, 600 of them are too many, and 204 half as many as there may be.
    let element = "x".repeat(18);
    let mut pair = Pair::new();
    for _ in 0..600 {
        push(&mut pair, by_size, &[&element]);
    }
    assert_eq!(pair.list().encoding(), "quicklist");
    while pair.list().encoding() == "quicklist" {
        pair.edit(by_size, |list| list.pop(End::Right, 1, |_| ()));
    }
    assert_eq!(pair.list().len(), 204);
}

#[test]
fn both_forms_have_the_same_digest() {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let state = RandomState::new();
    let digest = |list: ListRef<'_>| {
        let mut hasher = state.build_hasher();
        list.digest(&mut hasher);
        hasher.finish()
    };
    let small = pushed(End::Right, &texts(0..20));
    let ListRef::Packed(bytes) = small.list() else {
        panic!("packed")
    };
    let large = List::of_packed(bytes);
    assert_eq!(digest(small.list()), digest(ListRef::Large(&large)));
    let other = pushed(End::Left, &texts(0..20));
    assert_ne!(digest(small.list()), digest(other.list()));
    assert_eq!(Collection::List(large).kind(), Kind::List);
}
