//! Streams against simple models, snapshots against copies, and nodes against what Redis makes of the same entries.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use proptest::prelude::*;

use super::text::{Reader, push_number, push_text};
use super::*;
use crate::collection::{Built, CollectionRef, Draft, Kind, PACKED_MAX};
use crate::tree::Leaf as _;

const LIMIT: (u64, u64) = (4096, 100);

fn limit() -> NodeLimit {
    NodeLimit::new(LIMIT.0, LIMIT.1)
}

fn id(ms: u64, seq: u64) -> Id {
    Id { ms, seq }
}

type Fields = Vec<Vec<u8>>;

fn add(stream: &mut Stream, id: Id, fields: &[&str]) {
    let fields: Vec<&[u8]> = fields.iter().map(|text| text.as_bytes()).collect();
    stream.add(id, &fields, limit());
}

fn fields_of(entry: &Entry<'_>) -> Fields {
    let mut fields = Vec::new();
    entry.each(|name, value| fields.extend([name.to_vec(), value.to_vec()]));
    fields
}

fn entries(stream: StreamRef<'_>, backwards: bool) -> Vec<(Id, Fields)> {
    let mut all = Vec::new();
    stream.each(0..stream.len(), backwards, |entry| {
        all.push((entry.id, fields_of(&entry)));
    });
    all
}

fn digest(stream: StreamRef<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    stream.digest(&mut hasher);
    hasher.finish()
}

/// Where nodes begin when entries are added one by one.
fn node_starts(count: u64, limit: NodeLimit, fields: impl Fn(u64) -> Vec<String>) -> Vec<u64> {
    let mut stream = Stream::default();
    let mut starts = Vec::new();
    for number in 1..=count {
        let texts = fields(number);
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        let before = stream.node_count;
        stream.add(id(number, 1), &texts, limit);
        if stream.node_count > before {
            starts.push(number);
        }
    }
    starts
}

#[test]
fn ids_follow_each_other_and_are_read_as_redis_reads_them() {
    assert_eq!(id(1, 2).next(), Some(id(1, 3)));
    assert_eq!(id(1, u64::MAX).next(), Some(id(2, 0)));
    assert_eq!(Id::MAX.next(), None);
    assert_eq!(id(2, 0).previous(), Some(id(1, u64::MAX)));
    assert_eq!(Id::MIN.previous(), None);
    assert_eq!(Id::MAX.text().as_bytes().len(), 41);
    assert_eq!(id(5, 0).text().as_bytes(), b"5-0");
    for (text, expected) in [
        (&b"5"[..], Some(id(5, 7))),
        (b"5-6", Some(id(5, 6))),
        (b"+6-1", Some(id(6, 1))),
        (b" 7-01", Some(id(7, 1))),
        (b"18446744073709551615-18446744073709551615", Some(Id::MAX)),
        (b"18446744073709551616", None),
        (b"", None),
        (b"-", None),
        (b"5-", None),
        (b"-1-1", None),
        (b"9-1-1", None),
        (b"5-*", None),
        (b"x", None),
    ] {
        assert_eq!(Id::parse(text, 7), expected, "{text:?}");
    }
    assert_eq!(Id::parse(&[b'0'; 128], 0), None);
}

/// Asked of Redis 8.2.3 by XINFO STREAM after every entry.
#[test]
fn nodes_begin_where_those_of_redis_8_2_begin() {
    let x = |len: usize| move |_| vec!["a".to_owned(), "x".repeat(len)];
    let starts = |count, fields: &dyn Fn(u64) -> Vec<String>| node_starts(count, limit(), fields);
    let small = |number: u64| vec!["a".to_owned(), number.to_string()];
    assert_eq!(starts(350, &small), [1, 101, 201, 301]);
    assert_eq!(starts(120, &x(10)), [1, 101]);
    assert_eq!(starts(120, &x(50)), [1, 69]);
    assert_eq!(starts(120, &x(63)), [1, 56, 111]);
    assert_eq!(starts(120, &x(64)), [1, 55, 109]);
    assert_eq!(starts(120, &x(125)), [1, 31, 61, 91]);
    assert_eq!(starts(120, &x(126)), [1, 30, 59, 88, 117]);
    assert_eq!(starts(50, &x(500)), [1, 8, 15, 22, 29, 36, 43, 50]);
    assert_eq!(starts(9, &x(2000)), [1, 3, 5, 7, 9]);
    assert_eq!(starts(4, &x(4096)), [1, 2, 3, 4]);
    let other_names = |number: u64| vec![format!("a{number}"), "x".repeat(50)];
    assert_eq!(starts(120, &other_names), [1, 62]);
    let numbers = |number: u64| {
        let (one, other) = (1_234_567_890_123 + number, number * 1000);
        vec![
            "a".to_owned(),
            one.to_string(),
            "b".to_owned(),
            other.to_string(),
        ]
    };
    assert_eq!(starts(120, &numbers), [1, 101]);
    let with = |bytes, entries, count| node_starts(count, NodeLimit::new(bytes, entries), small);
    assert_eq!(with(4096, 3, 20), [1, 4, 7, 10, 13, 16, 19]);
    assert_eq!(with(0, 3, 20), [1, 4, 7, 10, 13, 16, 19]);
    assert_eq!(with(0, 0, 300), [1]);
    assert_eq!(with(100, 100, 30), [1, 9, 17, 25]);
}

fn filled(count: u64, id_of: impl Fn(u64) -> Id) -> Stream {
    let mut stream = Stream::default();
    for number in 1..=count {
        add(&mut stream, id_of(number), &["a", "b"]);
    }
    stream
}

const fn trim(bound: Bound) -> Trim {
    Trim {
        bound,
        approximate: true,
        limit: None,
        references: References::Keep,
    }
}

/// Asked of Redis 8.2.3 as well.
#[test]
fn whole_nodes_are_trimmed_as_by_redis_8_2() {
    let mut stream = filled(999, |number| id(number * 1000, 1));
    let counts = |stream: &Stream| {
        let view = stream.as_ref();
        (view.nodes(), view.radix_nodes(), view.len())
    };
    assert_eq!(counts(&stream), (10, 22, 999));
    let to = |most| trim(Bound::Length(most));
    assert_eq!(stream.trim(to(500), |_| ()), 400);
    assert_eq!(counts(&stream), (6, 14, 599));
    let limited = |limit| Trim {
        limit: Some(limit),
        ..to(300)
    };
    assert_eq!(stream.trim(limited(100), |_| ()), 100);
    assert_eq!(counts(&stream), (5, 12, 499));
    assert_eq!(stream.trim(limited(99), |_| ()), 0);
    for references in [References::Delete, References::Acked] {
        let spared = Trim {
            references,
            ..to(100)
        };
        assert_eq!(stream.trim(spared, |_| ()), 0);
    }
    let exact = Trim {
        approximate: false,
        ..to(100)
    };
    assert_eq!(stream.trim(exact, |_| ()), 399);
    assert_eq!(counts(&stream), (2, 6, 100));
    assert_eq!(stream.trim(exact, |_| ()), 0);
    assert_eq!(stream.as_ref().max_removed(), Id::MIN);

    // A node reaches up to its last entry even if that was removed.
    let mut stream = filled(149, |number| id(1, number));
    assert_eq!(
        stream.delete(id(1, 100), References::Keep),
        Deletion::Deleted
    );
    let from = |seq| trim(Bound::Id(id(1, seq)));
    assert_eq!(stream.trim(from(100), |_| ()), 0);
    assert_eq!(stream.trim(from(101), |_| ()), 99);
    assert_eq!(counts(&stream), (1, 2, 49));

    // Removed entries take room.
    let mut stream = filled(99, |number| id(1, number));
    stream.delete(id(1, 50), References::Keep);
    stream.delete(id(1, 51), References::Keep);
    add(&mut stream, id(1, 100), &["a", "b"]);
    assert_eq!(counts(&stream), (1, 2, 98));
    add(&mut stream, id(1, 101), &["a", "b"]);
    assert_eq!(counts(&stream), (2, 4, 99));
}

#[test]
fn trimming_spares_what_groups_need_if_it_is_told_to() {
    let mut stream = filled(250, |number| id(1, number));
    stream.add_group(Group::new(b"g", Id::MIN, None));
    let all: Vec<Id> = (1..=250).map(|seq| id(1, seq)).collect();
    stream.edit_group(b"g", |group| {
        group.add_consumer(b"c", 5);
        group.deliver(b"c", &all, 7);
        for seq in 150..=160 {
            assert!(group.acknowledge(id(1, seq)));
        }
    });
    stream.advance_group(b"g", &all);
    let exact = |references| Trim {
        bound: Bound::Length(0),
        approximate: false,
        limit: None,
        references,
    };
    let mut removed = Vec::new();
    assert_eq!(
        stream.trim(exact(References::Acked), |id| removed.push(id)),
        11
    );
    assert_eq!(
        removed,
        (150..=160).map(|seq| id(1, seq)).collect::<Vec<_>>()
    );
    assert_eq!(stream.delete(id(1, 3), References::Acked), Deletion::Needed);
    assert_eq!(
        stream.delete(id(1, 150), References::Acked),
        Deletion::Missing
    );
    assert!(stream.is_pending(id(1, 3)));
    assert_eq!(
        stream.delete(id(1, 3), References::Delete),
        Deletion::Deleted
    );
    assert!(!stream.is_pending(id(1, 3)));
    assert_eq!(stream.as_ref().max_removed(), id(1, 3));
    let pending = |stream: &Stream| stream.as_ref().group(b"g").map(Group::pending_len);
    assert_eq!(pending(&stream), Some(238));
    assert_eq!(stream.trim(exact(References::Keep), |_| ()), 238);
    assert_eq!(pending(&stream), Some(238));
    assert_eq!(stream.node_count, 0);
    // A missing entry is forgotten all the same.
    assert_eq!(
        stream.delete(id(1, 7), References::Delete),
        Deletion::Missing
    );
    assert_eq!(pending(&stream), Some(237));
    assert_eq!(stream.remove_group(b"g"), Some(237));
    assert_eq!(stream.remove_group(b"g"), None);
    assert_eq!(stream.allocated_bytes(), 0);
}

#[test]
fn a_stream_without_entries_exists() {
    let mut bytes = Vec::new();
    let mut draft = Draft::Packed(&mut bytes);
    Stream::edit(&mut draft, |stream| add(stream, id(1, 1), &["a", "1"]));
    Stream::edit(&mut draft, |stream| {
        stream.delete(id(1, 1), References::Keep)
    });
    let found = draft.as_ref().expect("a stream");
    assert_eq!((found.kind(), found.len()), (Kind::Stream, 0));
    assert!(found.is_empty() && !found.is_void());
    assert_eq!(found.encoding(), "stream");
    let stream = StreamRef::from(found);
    assert_eq!(
        (stream.last_id(), stream.max_removed()),
        (id(1, 1), id(1, 1))
    );
    assert_eq!((stream.added(), stream.nodes()), (1, 0));
    assert!(stream.first().is_none() && stream.last().is_none());
    assert!(CollectionRef::Packed(&[]).is_void());
}

/// A stream and what has to be in it.
#[derive(Clone)]
struct Pair {
    built: Built,
    model: BTreeMap<Id, Fields>,
    last_id: Id,
    added: u64,
    max_removed: Id,
}

impl Pair {
    fn new() -> Self {
        Self {
            built: Built::Packed(Vec::new()),
            model: BTreeMap::new(),
            last_id: Id::MIN,
            added: 0,
            max_removed: Id::MIN,
        }
    }

    fn edit<R>(&mut self, act: impl FnOnce(&mut Stream) -> R) -> R {
        let mut draft = match &mut self.built {
            Built::Packed(bytes) => Draft::Packed(bytes),
            Built::Large(collection) => Draft::Large(collection),
        };
        let result = Stream::edit(&mut draft, act);
        if let Draft::Grown(collection) = draft {
            self.built = Built::Large(collection);
        }
        result
    }

    fn random_fields(random: &mut fastrand::Rng) -> Fields {
        let pairs = if random.u8(..4) == 0 {
            random.usize(1..5)
        } else {
            2
        };
        let mut fields = Vec::new();
        for pair in 0..pairs {
            let name = random.usize(..3).min(random.usize(..3)) * 10 + pair;
            fields.push(format!("f{name}").into_bytes());
            fields.push(match random.u8(..8) {
                0 => vec![b'x'; random.usize(..300)],
                1 => Vec::new(),
                2 => random.i64(..).to_string().into_bytes(),
                3 => random.i16(..).to_string().into_bytes(),
                4 if random.u8(..20) == 0 => vec![b'y'; 20_000],
                _ => random.u8(..).to_string().into_bytes(),
            });
        }
        fields
    }

    fn change(&mut self, random: &mut fastrand::Rng) {
        match random.u32(..40) {
            0..24 => {
                let step = random.u64(..3);
                let next = match step {
                    0 => self.last_id.next().expect("far from the last"),
                    1 => id(self.last_id.ms + random.u64(1..2000), random.u64(..3)),
                    _ => id(self.last_id.ms, self.last_id.seq + random.u64(1..1000)),
                };
                let fields = Self::random_fields(random);
                let slices: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
                let node_limit = NodeLimit::new(4096, 20);
                self.edit(|stream| stream.add(next, &slices, node_limit));
                self.model.insert(next, fields);
                self.last_id = next;
                self.added += 1;
            }
            24..34 => {
                let target = match self.model.len() {
                    0 => id(random.u64(..100), 1),
                    len if random.u8(..5) > 0 => {
                        let keys = self.model.keys();
                        keys.copied().nth(random.usize(..len)).unwrap_or(Id::MIN)
                    }
                    _ => id(random.u64(..self.last_id.ms + 2), random.u64(..4)),
                };
                let deletion = self.edit(|stream| stream.delete(target, References::Keep));
                let expected = match self.model.remove(&target) {
                    Some(_) => {
                        self.max_removed = self.max_removed.max(target);
                        Deletion::Deleted
                    }
                    None => Deletion::Missing,
                };
                assert_eq!(deletion, expected);
            }
            34 | 35 => {
                let most = random.u64(..self.model.len() as u64 + 3);
                let approximate = random.bool();
                let wanted = Trim {
                    approximate,
                    ..trim(Bound::Length(most))
                };
                let removed = self.edit(|stream| stream.trim(wanted, |_| ()));
                let surplus = (self.model.len() as u64).saturating_sub(most);
                if approximate {
                    assert!(removed <= surplus && surplus - removed <= 20);
                } else {
                    assert_eq!(removed, surplus);
                }
                for _ in 0..removed {
                    self.model.pop_first();
                }
            }
            36 => {
                let least = id(random.u64(..self.last_id.ms + 2), 0);
                let wanted = Trim {
                    approximate: false,
                    ..trim(Bound::Id(least))
                };
                let removed = self.edit(|stream| stream.trim(wanted, |_| ()));
                let kept = self.model.split_off(&least);
                assert_eq!(removed, self.model.len() as u64);
                self.model = kept;
            }
            _ => {
                let mut from = id(random.u64(..self.last_id.ms + 2), random.u64(..3));
                let to = id(from.ms + random.u64(..3000), random.u64(..3));
                if random.bool() {
                    from = Id::MIN;
                }
                self.check_range(from, to);
            }
        }
    }

    fn check_range(&self, from: Id, to: Id) {
        let CollectionRef::Packed([]) = self.built.as_ref() else {
            let stream = StreamRef::from(self.built.as_ref());
            let wanted: Vec<Id> = self.model.range(from..=to).map(|(id, _)| *id).collect();
            for backwards in [false, true] {
                let mut found = Vec::new();
                stream.each(stream.ranks(from, to), backwards, |entry| {
                    found.push(entry.id)
                });
                if backwards {
                    found.reverse();
                }
                assert_eq!(found, wanted);
            }
            return;
        };
    }

    fn check(&self) {
        let built = self.built.as_ref();
        if let CollectionRef::Packed(bytes) = built {
            assert!(bytes.len() <= PACKED_MAX);
            if bytes.is_empty() {
                assert!(self.model.is_empty());
                return;
            }
        }
        let stream = StreamRef::from(built);
        let wanted: Vec<(Id, Fields)> = self.model.clone().into_iter().collect();
        assert_eq!(stream.len(), wanted.len() as u64);
        assert_eq!(entries(stream, false), wanted);
        let mut backwards = entries(stream, true);
        backwards.reverse();
        assert_eq!(backwards, wanted);
        assert_eq!(stream.last_id(), self.last_id);
        assert_eq!(stream.added(), self.added);
        assert_eq!(stream.max_removed(), self.max_removed);
        let ids = |entry: Option<Entry<'_>>| entry.map(|entry| entry.id);
        assert_eq!(ids(stream.first()), self.model.keys().next().copied());
        assert_eq!(ids(stream.last()), self.model.keys().last().copied());
        for (rank, (id, fields)) in wanted.iter().enumerate().step_by(7) {
            assert_eq!(stream.rank_of(*id), Some(rank as u64));
            assert_eq!(
                stream.get(*id).as_ref().map(fields_of).as_ref(),
                Some(fields)
            );
        }
        let large = stream.to_stream();
        large.nodes.verify();
        let nodes = large.nodes.leaves_from(0);
        assert_eq!(nodes.count() as u64, large.node_count);
        assert_eq!(digest(large.as_ref()), digest(stream));
    }
}

#[test]
fn changes_are_those_of_a_model_and_snapshots_stay() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pair = Pair::new();
        let mut snapshots = Vec::new();
        for step in 0..400 {
            pair.change(&mut random);
            if step % 40 == 0 {
                pair.check();
                snapshots.push(pair.clone());
            }
        }
        pair.check();
        snapshots.iter().for_each(Pair::check);
    }
}

#[derive(Clone, Default)]
struct GroupModel {
    pending: BTreeMap<Id, (Vec<u8>, i64, u64)>,
    consumers: BTreeMap<Vec<u8>, ()>,
}

impl GroupModel {
    fn check(&self, group: &Group) {
        let pending: Vec<_> = group
            .pending_from(Id::MIN)
            .map(|one| {
                (
                    one.id,
                    (one.consumer.to_vec(), one.delivered_ms, one.deliveries),
                )
            })
            .collect();
        assert_eq!(
            pending,
            self.pending.clone().into_iter().collect::<Vec<_>>()
        );
        assert_eq!(group.pending_len(), pending.len() as u64);
        assert_eq!(
            group.last_pending().map(|one| one.id),
            self.pending.keys().last().copied()
        );
        let names: Vec<_> = group.consumers().map(|one| one.name().to_vec()).collect();
        assert_eq!(names, self.consumers.keys().cloned().collect::<Vec<_>>());
        for consumer in group.consumers() {
            let own: Vec<Id> = consumer.pending_ids(Id::MIN).collect();
            let of_consumer = |(id, one): (&Id, &(Vec<u8>, i64, u64))| {
                (one.0 == **consumer.name()).then_some(*id)
            };
            let wanted: Vec<Id> = self.pending.iter().filter_map(of_consumer).collect();
            assert_eq!(own, wanted);
            assert_eq!(consumer.pending_len(), own.len() as u64);
        }
    }
}

#[test]
fn groups_are_those_of_a_model_and_snapshots_stay() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut stream = Stream::default();
        stream.add_group(Group::new(b"g", Id::MIN, None));
        stream.add_group(Group::new(b"other", Id::MIN, Some(3)));
        let mut model = GroupModel::default();
        let mut snapshots = Vec::new();
        let mut next = 1;
        for step in 0..600 {
            let name = format!("c{}", random.u32(..40)).into_bytes();
            let some = id(1, random.u64(1..next + 2));
            let now = i64::from(step);
            stream.edit_group(b"g", |group| match random.u32(..20) {
                0..3 => {
                    let is_new = model.consumers.insert(name.clone(), ()).is_none();
                    assert_eq!(group.add_consumer(&name, now), is_new);
                }
                3..9 if model.consumers.contains_key(&name) => {
                    let count = random.u64(1..60);
                    let again = random.u64(..3).min(next - 1);
                    let ids: Vec<Id> = (next - again..next + count).map(|seq| id(1, seq)).collect();
                    next += count;
                    group.deliver(&name, &ids, now);
                    for id in ids {
                        model.pending.insert(id, (name.clone(), now, 1));
                    }
                }
                9..12 if model.consumers.contains_key(&name) => {
                    group.assign(some, &name, -now, 9);
                    model.pending.insert(some, (name.clone(), -now, 9));
                }
                12..19 => {
                    for seq in some.seq..some.seq + random.u64(..8) {
                        let was_there = model.pending.remove(&id(1, seq)).is_some();
                        assert_eq!(group.acknowledge(id(1, seq)), was_there);
                    }
                }
                19 if random.u8(..3) == 0 => {
                    let removed = group.remove_consumer(&name);
                    let before = model.pending.len();
                    model.pending.retain(|_, one| one.0 != name);
                    let count = (before - model.pending.len()) as u64;
                    let wanted = model.consumers.remove(&name).map(|()| count);
                    assert_eq!(removed, wanted);
                }
                _ => {}
            });
            if step % 50 == 0 {
                let group = stream.as_ref().group(b"g").expect("the group");
                model.check(group);
                snapshots.push((stream.clone(), model.clone(), digest(stream.as_ref())));
            }
        }
        for (snapshot, model, number) in &snapshots {
            model.check(snapshot.as_ref().group(b"g").expect("the group"));
            assert_eq!(digest(snapshot.as_ref()), *number);
        }
        assert_eq!(stream.as_ref().groups_len(), 2);
    }
}

#[test]
fn a_million_entries_would_take_fewer_bytes_than_in_redis_8_2() {
    let mut stream = Stream::default();
    let count = 50_000;
    for number in 0..count {
        let (one, other) = (format!("val{number}"), format!("val{}", number + 1));
        add(
            &mut stream,
            id(1_700_000_000_000 + number / 4, number % 4),
            &["f0", &one, "f1", &other],
        );
    }
    let bytes = stream.allocated_bytes() as f64 / count as f64;
    assert!((18.0..25.0).contains(&bytes), "{bytes}");
    let node = stream.nodes.first().expect("a node");
    assert_eq!(
        (node.items(), node.bytes.capacity()),
        (100, node.bytes.len())
    );
}

#[test]
fn damaged_bytes_are_read_without_harm() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut bytes = Vec::new();
    let mut draft = Draft::Packed(&mut bytes);
    for number in 1..20 {
        Stream::edit(&mut draft, |stream| {
            add(stream, id(number, 0), &["name", "value", "n", "12345"])
        });
    }
    for _ in 0..2000 {
        let mut damaged = bytes.clone();
        for _ in 0..3 {
            let at = random.usize(1..damaged.len());
            damaged[at] = random.u8(..);
        }
        damaged.truncate(random.usize(1..=damaged.len()));
        let stream = StreamRef::from(CollectionRef::Packed(&damaged));
        for backwards in [false, true] {
            stream.each(0..stream.len(), backwards, |entry| entry.each(|_, _| ()));
        }
        assert!(stream.rank(id(7, 0)) <= u64::from(u16::MAX));
        assert!(
            stream
                .get(id(5, 0))
                .is_none_or(|entry| entry.id == id(5, 0))
        );
    }
}

proptest! {
    #[test]
    fn texts_come_back(texts in proptest::collection::vec("-?[0-9]{0,20}|.{0,200}", 0..20), numbers in proptest::collection::vec(any::<u64>(), 0..20)) {
        let mut bytes = Vec::new();
        for number in &numbers {
            push_number(&mut bytes, *number);
        }
        for text in &texts {
            push_text(&mut bytes, text.as_bytes());
        }
        let mut reader = Reader(&bytes);
        for number in &numbers {
            prop_assert_eq!(reader.number(), Some(*number));
        }
        for text in &texts {
            let found = reader.text().map(Text::to_vec);
            prop_assert_eq!(found.as_deref(), Some(text.as_bytes()));
        }
        prop_assert_eq!(reader.0.len(), 0);
        prop_assert!(reader.text().is_none());
    }
}
