//! Looks for an order in which operations could have happened one after the other, each between its two moments.
//!
//! The search goes through the moments in order and keeps every *configuration* that may be true: how many of its pending
//! operations each connection has had done, and the keys' state (Wing and Gong, "Testing and verifying concurrent objects",
//! 1993; Lowe, "Testing for linearizability", 2017: just in time, each configuration once). An operation is done only when
//! it returns and must have been, together with whatever has to be done before it. One exception: an operation that
//! leaves the state as it is is done as soon as it can be, which never closes a way. Looking ahead, a configuration is given
//! up when a value that is set only once has gone and an answer still to be explained shows it.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use super::check::Limits;
use super::model::{KeyState, Model, State, block, values_seen_by_key, values_written};
use super::record::{Key, NEVER, Record};

type Seen = HashSet<Configuration, ahash::RandomState>;

/// Fixed seeds: the same history is searched in the same order every time.
fn none_seen() -> Seen {
    Seen::with_hasher(ahash::RandomState::with_seeds(1, 2, 3, 4))
}

/// What came of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order.
    Linearizable,
    /// There is none.
    Violation,
    /// There were too many ways to follow.
    Undecided,
}

/// What a search found out, and how hard it was.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// Configurations alive at once, at most.
    pub configurations_max: usize,
    /// Moments at which nothing was pending.
    pub cuts: usize,
}

/// Searches through `records` on `keys` keys, all in the state `start` at first.
pub fn search(records: &[Record], keys: usize, start: KeyState, limits: Limits) -> Outcome {
    let search = Search::new(records, limits);
    search.run(std::iter::repeat_n(start, keys).collect())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Configuration {
    /// Pending operations done, by column.
    done: SmallVec<[u8; 16]>,
    state: State,
}

/// The operations of one connection.
#[derive(Debug, Default)]
struct Column {
    records: Vec<usize>,
    /// How many have returned.
    returned: usize,
    /// How many have been invoked.
    invoked: usize,
}

impl Column {
    fn next(&self, done: u8) -> Option<usize> {
        let at = self.returned + usize::from(done);
        (at < self.invoked).then(|| self.records[at])
    }
}

struct Search<'a> {
    records: &'a [Record],
    model: Model<'a>,
    passive: Vec<bool>,
    columns: Vec<Column>,
    column_of: Vec<usize>,
    /// A record's number within its column.
    number_of: Vec<usize>,
    /// By key and block of values, the records that have to see a value of it, and which.
    needs: HashMap<(Key, i64), Vec<(i64, usize)>>,
    configurations: usize,
}

impl<'a> Search<'a> {
    fn new(records: &'a [Record], limits: Limits) -> Self {
        let mut connections: Vec<u32> = records.iter().map(|record| record.connection).collect();
        connections.sort_unstable();
        connections.dedup();
        let column_of: Vec<usize> = records
            .iter()
            .map(|record| {
                connections
                    .binary_search(&record.connection)
                    .unwrap_or_default()
            })
            .collect();
        let mut columns: Vec<Column> = connections.iter().map(|_| Column::default()).collect();
        let mut number_of = Vec::with_capacity(records.len());
        for (index, column) in column_of.iter().enumerate() {
            number_of.push(columns[*column].records.len());
            columns[*column].records.push(index);
        }
        Search {
            records,
            model: Model::new(records, limits.slack_ns),
            passive: records.iter().map(Record::is_passive).collect(),
            columns,
            column_of,
            number_of,
            needs: needs(records),
            configurations: limits.configurations,
        }
    }

    fn run(mut self, start: State) -> Outcome {
        let mut alive: Vec<Configuration> = vec![Configuration {
            done: std::iter::repeat_n(0, self.columns.len()).collect(),
            state: start,
        }];
        let (mut pending, mut cuts, mut configurations_max) = (0_usize, 0, 1);
        let end = |verdict, configurations_max, cuts| Outcome {
            verdict,
            configurations_max,
            cuts,
        };
        for (_, returns, index) in moments(self.records) {
            let column = self.column_of[index];
            if !returns {
                self.columns[column].invoked += 1;
                pending += 1;
                for configuration in &mut alive {
                    self.absorb_column(configuration, column);
                }
                continue;
            }
            match self.after_return(alive, column) {
                Some(next) => alive = next,
                None => return end(Verdict::Undecided, configurations_max, cuts),
            }
            if alive.is_empty() {
                return end(Verdict::Violation, configurations_max, cuts);
            }
            configurations_max = configurations_max.max(alive.len());
            pending -= 1;
            cuts += usize::from(pending == 0);
        }
        end(Verdict::Linearizable, configurations_max, cuts)
    }

    /// The configurations in which the operation of `column` that returns now has been done; `None` if too many.
    fn after_return(
        &mut self,
        alive: Vec<Configuration>,
        column: usize,
    ) -> Option<Vec<Configuration>> {
        let mut done = none_seen();
        let mut seen = none_seen();
        let mut open = Vec::new();
        for configuration in alive {
            if configuration.done[column] > 0 {
                done.insert(configuration);
            } else if seen.insert(configuration.clone()) {
                open.push(configuration);
            }
        }
        while let Some(configuration) = open.pop() {
            for other in 0..self.columns.len() {
                let Some(index) = self.columns[other].next(configuration.done[other]) else {
                    continue;
                };
                let mut follow = |state| {
                    let mut next = Configuration {
                        done: configuration.done.clone(),
                        state,
                    };
                    next.done[other] += 1;
                    for column in 0..self.columns.len() {
                        self.absorb_column(&mut next, column);
                    }
                    if self.has_lost(&configuration.state, &next) {
                        return;
                    }
                    if next.done[column] > 0 {
                        done.insert(next);
                    } else if !seen.contains(&next) {
                        seen.insert(next.clone());
                        open.push(next);
                    }
                };
                // It may have happened before everything here. That matters when it returns, and to what follows it.
                let last = self.columns[other]
                    .next(configuration.done[other] + 1)
                    .is_none();
                if self.records[index].begun_before && (other == column || !last) {
                    follow(configuration.state.clone());
                }
                self.model.step(&configuration.state, index, &mut follow);
            }
            if seen.len() + done.len() > self.configurations {
                return None;
            }
        }
        self.columns[column].returned += 1;
        let done = done.into_iter().map(|mut configuration| {
            configuration.done[column] -= 1;
            configuration
        });
        Some(done.collect())
    }

    /// Whether a value is gone that a record not yet done has to see.
    fn has_lost(&self, before: &State, next: &Configuration) -> bool {
        let changes = before.iter().zip(&next.state).enumerate();
        changes.into_iter().any(|(key, (old, new))| {
            let KeyState::Present { value: old, .. } = old else {
                return false;
            };
            // The least value of the old one's block that may still come.
            let least = match new {
                KeyState::Present { value, .. } if block(*value) == block(*old) => *value,
                _ => i64::MAX,
            };
            let needs = self.needs.get(&(key as Key, block(*old)));
            needs.is_some_and(|needs| {
                let mut lost = needs.iter().filter(|(value, _)| *value < least);
                lost.any(|(_, index)| !self.is_done(next, *index))
            })
        })
    }

    fn is_done(&self, configuration: &Configuration, index: usize) -> bool {
        let column = self.column_of[index];
        let done = self.columns[column].returned + usize::from(configuration.done[column]);
        self.number_of[index] < done
    }

    /// Does the next operations of a column as long as they leave the state as it is.
    fn absorb_column(&self, configuration: &mut Configuration, column: usize) {
        while let Some(index) = self.columns[column].next(configuration.done[column]) {
            if !self.passive[index] {
                return;
            }
            let mut stays = false;
            self.model.step(&configuration.state, index, &mut |state| {
                stays |= state == configuration.state;
            });
            if !stays {
                return;
            }
            configuration.done[column] += 1;
        }
    }
}

/// Which records have to see which values, of blocks that are set once at most.
fn needs(records: &[Record]) -> HashMap<(Key, i64), Vec<(i64, usize)>> {
    let mut writers: HashMap<i64, usize> = HashMap::new();
    for value in records.iter().flat_map(values_written) {
        *writers.entry(block(value)).or_default() += 1;
    }
    let mut needs: HashMap<(Key, i64), Vec<(i64, usize)>> = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        if record.returned_ns == NEVER || record.begun_before {
            continue;
        }
        for (key, value) in values_seen_by_key(record) {
            let block = block(value);
            // Counting up from a missing key begins anew every time.
            if block != 0 && writers.get(&block).is_none_or(|writers| *writers < 2) {
                needs.entry((key, block)).or_default().push((value, index));
            }
        }
    }
    needs
}

/// All invocations and returns in order of time: moment, whether it is a return, record. At the same moment invocations
/// come first, so that operations that touch count as concurrent.
pub fn moments(records: &[Record]) -> Vec<(u64, bool, usize)> {
    let mut moments = Vec::with_capacity(records.len() * 2);
    for (index, record) in records.iter().enumerate() {
        moments.push((record.invoked_ns, false, index));
        if record.returned_ns != NEVER {
            moments.push((record.returned_ns, true, index));
        }
    }
    moments.sort_unstable();
    moments
}
