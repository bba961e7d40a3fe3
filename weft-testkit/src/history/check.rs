//! Judges a history: divides it into parts that can be searched one by one, and shrinks the first that fails.
//!
//! A history is linearizable if those of its objects are (Herlihy and Wing, 1990), so keys are searched apart. They belong
//! together where one command names several, and where one connection's operations on them overlap, since the order of a
//! pipeline is known beyond its moments. FLUSHALL touches every key: with few connections all keys are searched together;
//! with more each part sees it as an operation of its own (*projected*), which finds a flush torn within a part but not
//! one torn between two parts.

use std::collections::{BTreeMap, BTreeSet};

use super::model::KeyState;
use super::record::{Key, Operation, Record};
use super::search::{Verdict, search};
use super::shrink::{self, Excerpt};

/// Connections with which all keys are searched together when there is a FLUSHALL.
const JOINED_CONNECTIONS_MAX: usize = 10;

/// Bounds of the judgement.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How far a deadline may be off: see the model.
    pub slack_ns: u64,
    /// Configurations of one search at once; a search that needs more ends undecided.
    pub configurations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            slack_ns: 3_000_000,
            configurations: 400_000,
        }
    }
}

/// What was done to judge a history, summed over its parts; those of several histories add up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    /// Operations.
    pub operations: usize,
    /// Those that were never answered.
    pub unanswered: usize,
    /// Parts searched by themselves.
    pub parts: usize,
    /// Moments within a part when nothing was pending.
    pub cuts: usize,
    /// FLUSHALLs searched with all keys together.
    pub flushes_joined: usize,
    /// FLUSHALLs searched in each part apart.
    pub flushes_projected: usize,
    /// Configurations alive at once, at most.
    pub configurations_max: usize,
    /// Parts that had too many configurations.
    pub undecided: usize,
}

impl Effort {
    /// Adds another history's effort.
    pub fn add(&mut self, other: Effort) {
        self.operations += other.operations;
        self.unanswered += other.unanswered;
        self.parts += other.parts;
        self.cuts += other.cuts;
        self.flushes_joined += other.flushes_joined;
        self.flushes_projected += other.flushes_projected;
        self.configurations_max = self.configurations_max.max(other.configurations_max);
        self.undecided += other.undecided;
    }
}

/// A history that no order explains.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The least of it that still fails.
    pub excerpt: Excerpt,
    /// All records of the part that failed, up to the moment it did.
    pub part: Vec<Record>,
}

/// Judges a history that began without keys.
pub fn check(history: &[Record], limits: Limits) -> (Effort, Option<Violation>) {
    let mut effort = Effort {
        operations: history.len(),
        unanswered: history
            .iter()
            .filter(|record| record.answer.is_none())
            .count(),
        ..Effort::default()
    };
    let flushes = history
        .iter()
        .filter(|record| record.operation == Operation::FlushAll)
        .count();
    let connections: BTreeSet<u32> = history.iter().map(|record| record.connection).collect();
    let joined = flushes > 0 && connections.len() <= JOINED_CONNECTIONS_MAX;
    if joined {
        effort.flushes_joined = flushes;
    } else {
        effort.flushes_projected = flushes;
    }
    for keys in groups(history, joined) {
        let part = part(history, &keys);
        let outcome = search(&part, keys.len(), KeyState::Missing, limits);
        effort.parts += 1;
        effort.cuts += outcome.cuts;
        effort.configurations_max = effort.configurations_max.max(outcome.configurations_max);
        match outcome.verdict {
            Verdict::Linearizable => {}
            Verdict::Undecided => effort.undecided += 1,
            Verdict::Violation => {
                let end = shrink::end(&part, keys.len(), limits);
                let excerpt = shrink::shrink(&part, &keys, end, limits);
                let mut part: Vec<Record> = part
                    .iter()
                    .filter(|record| record.invoked_ns <= end)
                    .filter_map(|record| {
                        record.with_keys(|key| keys.get(usize::from(key)).copied())
                    })
                    .collect();
                part.sort_by_key(|record| record.invoked_ns);
                return (effort, Some(Violation { excerpt, part }));
            }
        }
    }
    (effort, None)
}

/// The history seen through some keys, which become the numbers from 0; what tells nothing is left out.
fn part(history: &[Record], keys: &[Key]) -> Vec<Record> {
    let number = |key: Key| keys.binary_search(&key).ok().map(|number| number as Key);
    history
        .iter()
        .filter(|record| !record.is_void())
        .filter_map(|record| record.with_keys(number))
        .collect()
}

/// Keys that have to be searched together, each list ascending.
fn groups(history: &[Record], joined: bool) -> Vec<Vec<Key>> {
    let mut sets = Sets::default();
    let mut last: BTreeMap<u32, (u64, Vec<Key>)> = BTreeMap::new();
    for record in history {
        let keys = record.operation.keys();
        let Some(first) = keys.first() else {
            continue;
        };
        keys.iter().for_each(|key| sets.join(*first, *key));
        let before = last.insert(record.connection, (record.returned_ns, keys.clone()));
        if let Some((returned, before)) = before
            && returned >= record.invoked_ns
        {
            before.iter().for_each(|key| sets.join(*first, *key));
        }
        if joined && let Some(any) = sets.any() {
            sets.join(*first, any);
        }
    }
    sets.groups()
}

/// Disjoint sets of keys.
#[derive(Default)]
struct Sets(BTreeMap<Key, Key>);

impl Sets {
    fn any(&self) -> Option<Key> {
        self.0.keys().next().copied()
    }

    fn root(&mut self, key: Key) -> Key {
        let mut at = key;
        loop {
            let parent = *self.0.entry(at).or_insert(at);
            if parent == at {
                break;
            }
            at = parent;
        }
        self.0.insert(key, at);
        at
    }

    fn join(&mut self, one: Key, other: Key) {
        let (one, other) = (self.root(one), self.root(other));
        self.0.insert(one.max(other), one.min(other));
    }

    fn groups(mut self) -> Vec<Vec<Key>> {
        let keys: Vec<Key> = self.0.keys().copied().collect();
        let mut groups: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
        for key in keys {
            let root = self.root(key);
            groups.entry(root).or_default().push(key);
        }
        groups.into_values().collect()
    }
}
