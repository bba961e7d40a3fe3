//! The journal: effects of committed units, in one order.
//!
//! A unit appends its effects while its latches are held: to its worker's own segment, under a global sequence number.
//! One reader merges the segments by number. While nobody listens, a unit pays one relaxed load.
//! An effect is the deterministic form of a write: absolute times, results instead of causes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weft_rope::Rope;

/// One write command in its deterministic form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The database it applies to.
    pub database: u32,
    /// The command and its arguments.
    pub arguments: Vec<EffectArgument>,
}

/// An argument of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectArgument {
    /// Copied bytes.
    Bytes(Box<[u8]>),
    /// A large value, shared with the keyspace.
    Rope(Rope),
}

impl From<&[u8]> for EffectArgument {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl Effect {
    /// A command of plain arguments.
    #[must_use]
    pub fn command(database: u32, arguments: &[&[u8]]) -> Self {
        Self {
            database,
            arguments: arguments
                .iter()
                .map(|argument| (*argument).into())
                .collect(),
        }
    }

    /// The arguments as plain bytes.
    #[must_use]
    pub fn to_plain(&self) -> Vec<Vec<u8>> {
        let plain = |argument: &EffectArgument| match argument {
            EffectArgument::Bytes(bytes) => bytes.to_vec(),
            EffectArgument::Rope(rope) => rope.copy_range(0..rope.len()),
        };
        self.arguments.iter().map(plain).collect()
    }
}

/// What one unit did: applied together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place in the order of all units, without gaps.
    pub sequence: u64,
    /// Its effects, in order.
    pub effects: Vec<Effect>,
}

/// A worker's own part of the journal, on its own cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Segment(Mutex<Vec<Record>>);

/// The journal of one engine.
pub struct Journal {
    next: AtomicU64,
    segments: Box<[Segment]>,
}

impl Journal {
    /// A journal with a segment for each of `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            next: AtomicU64::new(0),
            segments: (0..workers).map(|_| Segment::default()).collect(),
        }
    }

    /// Appends a unit's effects. Call it while the unit's latches are held: that makes the order of the numbers the
    /// order of the changes.
    pub fn append(&self, worker: usize, effects: Vec<Effect>) {
        let mut segment = self.segments[worker]
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        segment.push(Record { sequence, effects });
    }

    /// The only reader, starting at what is appended from now on. Call it while no unit is running.
    #[must_use]
    pub fn reader(self: &Arc<Self>) -> JournalReader {
        JournalReader {
            next: self.next.load(Ordering::Relaxed),
            journal: Arc::clone(self),
            early: BTreeMap::new(),
        }
    }
}

/// Merges the segments into one order.
pub struct JournalReader {
    journal: Arc<Journal>,
    next: u64,
    /// Records whose predecessors have not been seen yet.
    early: BTreeMap<u64, Record>,
}

impl JournalReader {
    /// All records that are next in order.
    pub fn read(&mut self) -> Vec<Record> {
        for segment in &self.journal.segments {
            let records =
                std::mem::take(&mut *segment.0.lock().unwrap_or_else(PoisonError::into_inner));
            self.early
                .extend(records.into_iter().map(|record| (record.sequence, record)));
        }
        let mut ready = Vec::new();
        while let Some(record) = self.early.remove(&self.next) {
            ready.push(record);
            self.next += 1;
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(word: &[u8]) -> Vec<Effect> {
        vec![Effect::command(0, &[word])]
    }

    #[test]
    fn records_of_all_workers_come_in_the_order_they_were_appended() {
        let journal = Arc::new(Journal::new(2));
        let mut reader = journal.reader();
        for (worker, word) in [(1, b"a"), (0, b"b"), (0, b"c"), (1, b"d")] {
            journal.append(worker, one(word));
        }
        let words: Vec<_> = reader
            .read()
            .into_iter()
            .map(|record| record.effects[0].to_plain()[0].clone())
            .collect();
        assert_eq!(words, [b"a", b"b", b"c", b"d"]);
        assert!(reader.read().is_empty());
    }

    #[test]
    fn threads_lose_and_double_nothing() {
        let journal = Arc::new(Journal::new(4));
        let mut reader = journal.reader();
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            let journal = &journal;
            for worker in 0..4 {
                scope.spawn(move || {
                    (0..1000).for_each(|_| journal.append(worker, one(&[worker as u8])))
                });
            }
            while seen.len() < 4000 {
                seen.extend(reader.read());
            }
        });
        assert!(
            seen.iter()
                .enumerate()
                .all(|(index, record)| record.sequence == index as u64)
        );
        for worker in 0..4_u8 {
            assert_eq!(
                seen.iter()
                    .filter(|record| record.effects == one(&[worker]))
                    .count(),
                1000
            );
        }
    }
}
