//! The least of a history that still fails, and how it is shown.
//!
//! Every step keeps the proof: what is left fails only if the whole does. Looking at fewer keys, leaving out operations that
//! change nothing, and beginning later with nothing known (what is pending there may have happened before) only take
//! constraints away. A plain SET or MSET is left out when no remaining answer shows its value or whether its keys are there.

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use super::check::Limits;
use super::model::{KeyState, block, values_seen_by_key, values_written};
use super::record::{Key, NEVER, Operation, Record, When};
use super::search::{Verdict, search};

/// Keys up to which every pair is tried alone.
const PAIRS_OF_KEYS_MAX: usize = 8;

/// Configurations of one search while shrinking: what needs more is not worth its simplicity.
const CONFIGURATIONS: usize = 20_000;
/// After so long the least that was found so far will do.
const TIME: Duration = Duration::from_secs(20);

/// The least of a history that still fails.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// Its records in order of invocation, keys by their numbers in the history.
    pub records: Vec<Record>,
    /// Which of them has no place.
    pub at: usize,
    /// Whether it holds whatever was there before; otherwise it begins with no keys.
    pub from_anything: bool,
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begins = if self.from_anything {
            "whatever was there before"
        } else {
            "without keys at first"
        };
        writeln!(
            f,
            "these {} operations have no order, {begins}:",
            self.records.len()
        )?;
        let start = self.records.first().map_or(0, |record| record.invoked_ns);
        for (index, record) in self.records.iter().enumerate() {
            let mark = if index == self.at {
                "  <-- no place is left for it when it returns"
            } else {
                ""
            };
            writeln!(f, "{}{mark}", record.line(start))?;
        }
        Ok(())
    }
}

/// The moment at which a part that fails does so: when the record returns that has no place.
pub fn end(part: &[Record], keys: usize, limits: Limits) -> u64 {
    let mut ends: Vec<u64> = part.iter().map(|record| record.returned_ns).collect();
    ends.sort_unstable();
    ends.dedup();
    // The later the end, the more has to be explained: from some end on it fails.
    let at = ends.partition_point(|end| {
        let verdict = search(&until(part, *end), keys, KeyState::Missing, limits).verdict;
        verdict != Verdict::Violation
    });
    ends.get(at).copied().unwrap_or(NEVER)
}

/// Shrinks a part that has failed by the moment `end`. The part's keys are numbers from 0; `names` are those shown.
pub fn shrink(part: &[Record], names: &[Key], end: u64, limits: Limits) -> Excerpt {
    let mut least = Part {
        records: until(part, end),
        keys: (0..names.len() as Key).collect(),
        start: KeyState::Missing,
        limits: Limits {
            configurations: limits.configurations.min(CONFIGURATIONS),
            ..limits
        },
        until: Instant::now() + TIME,
    };
    if let Some(pair) = least.contradiction() {
        least.records = pair;
        least.start = KeyState::Unknown;
        return least.show(names);
    }
    least.fewer_keys();
    least.later();
    least.fewer_records();
    least.later();
    least.fewer_records();
    least.show(names)
}

/// The values that a record took away by counting on or by setting anew what it saw.
fn values_consumed(record: &Record) -> Vec<(Key, i64)> {
    match record.operation {
        Operation::Increment(_) | Operation::Set { get: true, .. } => values_seen_by_key(record),
        _ => Vec::new(),
    }
}

/// What had begun by then; what had not returned by then has to be explained by what came later, and may be left open.
fn until(part: &[Record], end: u64) -> Vec<Record> {
    let begun = part.iter().filter(|record| record.invoked_ns <= end);
    let cut = begun.map(|record| Record {
        returned_ns: if record.returned_ns <= end {
            record.returned_ns
        } else {
            NEVER
        },
        ..record.clone()
    });
    cut.filter(|record| record.returned_ns != NEVER || !is_question(record))
        .collect()
}

struct Part {
    records: Vec<Record>,
    /// The keys in use, ascending.
    keys: Vec<Key>,
    start: KeyState,
    limits: Limits,
    /// When shrinking ends.
    until: Instant,
}

impl Part {
    fn fails(&self, records: &[Record], keys: &[Key], start: KeyState) -> bool {
        if Instant::now() > self.until {
            return false;
        }
        let number = |key: Key| keys.binary_search(&key).ok().map(|number| number as Key);
        let renamed: Option<Vec<Record>> = records
            .iter()
            .map(|record| record.with_keys(number))
            .collect();
        renamed.is_some_and(|records| {
            search(&records, keys.len(), start, self.limits).verdict == Verdict::Violation
        })
    }

    /// Two records that exclude each other whatever happened around them: both took the same value away, or one saw it,
    /// or what was counted on to it, after the other had taken it away.
    fn contradiction(&self) -> Option<Vec<Record>> {
        if !self.values_are_unique() {
            return None;
        }
        let mut found: Option<(u64, [usize; 2])> = None;
        for (one, consumer) in self.records.iter().enumerate() {
            let consumed = values_consumed(consumer);
            // Counting up from a missing key begins anew every time.
            let consumed = consumed.into_iter().filter(|(_, value)| block(*value) != 0);
            for (key, value) in consumed {
                for (other, seer) in self.records.iter().enumerate() {
                    let end = consumer.returned_ns.max(seer.returned_ns);
                    let excludes = if consumer.returned_ns < seer.invoked_ns {
                        let seen = values_seen_by_key(seer);
                        seen.into_iter().any(|(seen_key, seen)| {
                            seen_key == key && block(seen) == block(value) && seen <= value
                        })
                    } else {
                        values_consumed(seer).contains(&(key, value))
                    };
                    let earlier = found.is_none_or(|(earliest, _)| end < earliest);
                    if one != other && excludes && end != NEVER && earlier {
                        found = Some((end, [one, other]));
                    }
                }
            }
        }
        found.map(|(_, pair)| pair.map(|index| self.records[index].clone()).to_vec())
    }

    fn through(&self, keys: &[Key]) -> Vec<Record> {
        let kept = |key: Key| keys.contains(&key).then_some(key);
        self.records
            .iter()
            .filter_map(|record| record.with_keys(kept))
            .collect()
    }

    fn fewer_keys(&mut self) {
        let mut choices: Vec<Vec<Key>> = self.keys.iter().map(|key| vec![*key]).collect();
        if self.keys.len() <= PAIRS_OF_KEYS_MAX {
            for (index, one) in self.keys.iter().enumerate() {
                choices.extend(
                    self.keys[index + 1..]
                        .iter()
                        .map(|other| vec![*one, *other]),
                );
            }
        }
        for index in 0..self.keys.len() {
            let mut keys = self.keys.clone();
            keys.remove(index);
            choices.push(keys);
        }
        for keys in choices {
            if keys.is_empty() || keys.len() >= self.keys.len() {
                continue;
            }
            let records = self.through(&keys);
            if self.fails(&records, &keys, self.start) {
                self.records = records;
                self.keys = keys;
                return self.fewer_keys();
            }
        }
    }

    /// Begins as late as possible, with nothing known of what was before.
    fn later(&mut self) {
        if !self.values_are_unique() {
            return;
        }
        let mut cuts: Vec<u64> = self
            .records
            .iter()
            .map(|record| record.invoked_ns)
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        // The later the beginning, the less is known: from some cut on it no longer fails.
        let (mut low, mut high) = (0, cuts.len());
        while low < high {
            let middle = (low + high) / 2;
            let records = self.from(cuts[middle]);
            if self.fails(&records, &self.keys, KeyState::Unknown) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if let Some(cut) = low.checked_sub(1) {
            self.records = self.from(cuts[cut]);
            self.start = KeyState::Unknown;
        }
    }

    fn from(&self, cut: u64) -> Vec<Record> {
        let kept = self
            .records
            .iter()
            .filter(|record| record.returned_ns >= cut);
        let kept = kept.map(|record| Record {
            begun_before: record.begun_before || record.invoked_ns < cut,
            ..record.clone()
        });
        // What only asked and was pending tells nothing.
        kept.filter(|record| !(record.begun_before && is_question(record)))
            .collect()
    }

    fn values_are_unique(&self) -> bool {
        let mut seen = HashSet::new();
        self.records
            .iter()
            .flat_map(values_written)
            .all(|value| seen.insert(block(value)))
    }

    fn fewer_records(&mut self) {
        let mut index = 0;
        while index < self.records.len() {
            if self.records[index].is_passive() || self.is_unseen(index) {
                let mut records = self.records.clone();
                records.remove(index);
                if self.fails(&records, &self.keys, self.start) {
                    self.records = records;
                    continue;
                }
            }
            index += 1;
        }
    }

    /// Whether no other answer tells of a plain SET or MSET.
    fn is_unseen(&self, index: usize) -> bool {
        let record = &self.records[index];
        let is_plain = matches!(
            record.operation,
            Operation::SetMany(_)
                | Operation::Set {
                    expire_ms: None,
                    when: When::Always,
                    get: false,
                    ..
                }
        );
        if !is_plain {
            return false;
        }
        let blocks: Vec<i64> = values_written(record).into_iter().map(block).collect();
        let keys = record.operation.keys();
        let mut others = self.records.iter().enumerate();
        others.all(|(other, seen)| {
            other == index
                || !(values_seen_by_key(seen)
                    .into_iter()
                    .any(|(_, value)| blocks.contains(&block(value)))
                    || (tells_presence(seen)
                        && seen.operation.keys().iter().any(|key| keys.contains(key))))
        })
    }

    fn show(mut self, names: &[Key]) -> Excerpt {
        self.records.sort_by_key(|record| record.invoked_ns);
        // Without it, and with it still under way, there is an order.
        let returned = self.records.iter().enumerate();
        let returned = returned.filter(|(_, record)| record.returned_ns != NEVER);
        let at = returned.max_by_key(|(_, record)| record.returned_ns);
        let at = at.map(|(index, _)| index);
        let name = |key: Key| names.get(usize::from(key)).copied();
        Excerpt {
            records: self
                .records
                .iter()
                .filter_map(|record| record.with_keys(name))
                .collect(),
            at: at.unwrap_or_default(),
            from_anything: self.start == KeyState::Unknown,
        }
    }
}

fn is_question(record: &Record) -> bool {
    record.operation.is_question()
}

/// Whether the answer tells that a key is there or not, but not its value.
fn tells_presence(record: &Record) -> bool {
    record.returned_ns != NEVER
        && matches!(
            record.operation,
            Operation::Exists(_)
                | Operation::Delete(_)
                | Operation::Expire(..)
                | Operation::Set {
                    when: When::Missing | When::Present,
                    ..
                }
        )
}
