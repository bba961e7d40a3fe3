//! What one operation after the other may do: the sequential model, as a set of next states.
//!
//! Keys with a deadline vanish by themselves. The deadline that an operation sets lies, on the recorder's clock, between
//! `invoked + ms - slack` and `returned + ms + slack`. An operation may find the key gone if it returned at or after the
//! former, and still there if it was invoked before the latter; once found gone it stays gone. So a correct server is
//! never refused: whatever time it read lies within the operation, and the slack covers its rounding to milliseconds and
//! the difference of the two clocks. A server that is off by more than the operations' own length and the slack is.

use std::collections::HashSet;

use smallvec::SmallVec;

use super::record::{Answer, BLOCK, Key, NEVER, Operation, Record, When};

/// A key as it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// Nothing is known of it yet: only in parts of histories.
    Unknown,
    /// There is no such key.
    Missing,
    /// It has this value.
    Present {
        /// The value.
        value: i64,
        /// Until when.
        deadline: Deadline,
    },
}

/// Until when a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deadline {
    /// For ever.
    None,
    /// Nobody knows: the key was there before the part of the history that is looked at.
    Unknown,
    /// As the record with this number set it.
    Of(u32),
}

/// All keys of a part of a history.
pub type State = SmallVec<[KeyState; 4]>;

/// The model of a list of records whose keys are the numbers from 0.
#[derive(Debug)]
pub struct Model<'a> {
    records: &'a [Record],
    slack_ns: u64,
    /// Blocks of values that come into being within the records, so that none of them was there before.
    blocks: HashSet<i64>,
}

impl<'a> Model<'a> {
    /// A model of these records.
    pub fn new(records: &'a [Record], slack_ns: u64) -> Self {
        let within = records.iter().filter(|record| !record.begun_before);
        Model {
            records,
            slack_ns,
            blocks: within.flat_map(values_written).map(block).collect(),
        }
    }

    /// Calls `emit` with every state that a record may lead to; with none if its answer is impossible. That a record that
    /// began before may have no effect here is the caller's to know.
    pub fn step(&self, state: &State, index: usize, emit: &mut dyn FnMut(State)) {
        let record = &self.records[index];
        self.apply(state, index, &record.operation, &record.answer, emit);
    }

    /// The parts of a transaction, one after the other.
    fn apply_parts(
        &self,
        state: &State,
        index: usize,
        parts: &[(&Operation, Option<Answer>)],
        emit: &mut dyn FnMut(State),
    ) {
        let Some(((operation, answer), rest)) = parts.split_first() else {
            return emit(state.clone());
        };
        if answer.is_none() && operation.is_question() {
            return self.apply_parts(state, index, rest, emit);
        }
        self.apply(state, index, operation, answer, &mut |next| {
            self.apply_parts(&next, index, rest, emit);
        });
    }

    fn apply(
        &self,
        state: &State,
        index: usize,
        operation: &Operation,
        answer: &Option<Answer>,
        emit: &mut dyn FnMut(State),
    ) {
        let record = &self.records[index];
        let one = |key: Key, new: Option<KeyState>, emit: &mut dyn FnMut(State)| {
            if let Some(new) = new {
                let mut next = state.clone();
                next[usize::from(key)] = new;
                emit(next);
            }
        };
        let old = |key: Key| state[usize::from(key)];
        match (operation, answer) {
            (Operation::Transaction { .. }, Some(Answer::Value(None))) => emit(state.clone()),
            (Operation::Transaction { guard, parts }, answer) => {
                if answer.is_none() && !guard.is_empty() {
                    emit(state.clone());
                }
                let mut next = state.clone();
                for (key, value) in guard {
                    let place = &mut next[usize::from(*key)];
                    match self.seen(*place, record, *value) {
                        Some(new) => *place = new,
                        None => return,
                    }
                }
                let answer_of = |at: usize| match answer {
                    Some(Answer::Parts(answers)) => answers.get(at).cloned(),
                    _ => None,
                };
                let parts: Vec<(&Operation, Option<Answer>)> = parts
                    .iter()
                    .enumerate()
                    .map(|(at, part)| (part, answer_of(at)))
                    .collect();
                self.apply_parts(&next, index, &parts, emit);
            }
            (Operation::Get(key), Some(Answer::Value(seen))) => {
                one(*key, self.seen(old(*key), record, *seen), emit);
            }
            (Operation::GetMany(keys), Some(Answer::Values(values))) => {
                let mut next = state.clone();
                for (key, value) in keys.iter().zip(values) {
                    let place = &mut next[usize::from(*key)];
                    match self.seen(*place, record, *value) {
                        Some(new) => *place = new,
                        None => return,
                    }
                }
                emit(next);
            }
            (
                Operation::Set {
                    key,
                    value,
                    expire_ms,
                    when,
                    ..
                },
                answer,
            ) => {
                let new = KeyState::Present {
                    value: *value,
                    deadline: expire_ms.map_or(Deadline::None, |_| Deadline::Of(index as u32)),
                };
                let old = old(*key);
                let may_store = match (when, answer) {
                    // With GET.
                    (When::Always, Some(Answer::Value(seen))) => {
                        self.seen(old, record, *seen).is_some()
                    }
                    (When::Always, _) => true,
                    (When::Missing, _) => self.gone(old, record),
                    (When::Present, _) => self.there(old, record),
                };
                // Nil, or unanswered: it may have found that it must not store.
                if !matches!(answer, Some(Answer::Done)) {
                    match when {
                        When::Missing if self.there(old, record) => one(*key, Some(old), emit),
                        When::Present if self.gone(old, record) => {
                            one(*key, Some(KeyState::Missing), emit);
                        }
                        _ => {}
                    }
                }
                let stored = *when == When::Always || !matches!(answer, Some(Answer::Value(_)));
                if stored && may_store {
                    one(*key, Some(new), emit);
                }
            }
            (Operation::Increment(key), answer) => {
                self.increment(old(*key), record, answer, &mut |new| {
                    one(*key, Some(new), emit);
                })
            }
            (Operation::SetMany(pairs), _) => {
                let mut next = state.clone();
                for (key, value) in pairs {
                    next[usize::from(*key)] = KeyState::Present {
                        value: *value,
                        deadline: Deadline::None,
                    };
                }
                emit(next);
            }
            (Operation::Delete(keys), answer) => {
                let (mut least, mut most) = (0, 0);
                let mut next = state.clone();
                for key in keys {
                    let place = &mut next[usize::from(*key)];
                    least += i64::from(!self.gone(*place, record));
                    most += i64::from(self.there(*place, record));
                    *place = KeyState::Missing;
                }
                if answer
                    .as_ref()
                    .is_none_or(|answer| overlaps(answer, least, most))
                {
                    emit(next);
                }
            }
            (Operation::Exists(keys), Some(answer)) => {
                self.count(state.clone(), keys, 0, record, answer, emit);
            }
            (Operation::Expire(key, _), answer) => {
                let old = old(*key);
                let may_find = answer.as_ref().is_none_or(|answer| overlaps(answer, 1, 1));
                let may_miss = answer.as_ref().is_none_or(|answer| overlaps(answer, 0, 0));
                if may_find && self.there(old, record) {
                    let new = match old {
                        KeyState::Present { value, .. } => KeyState::Present {
                            value,
                            deadline: Deadline::Of(index as u32),
                        },
                        other => other,
                    };
                    one(*key, Some(new), emit);
                }
                if may_miss && self.gone(old, record) {
                    one(*key, Some(KeyState::Missing), emit);
                }
            }
            (Operation::FlushAll, _) => {
                emit(state.iter().map(|_| KeyState::Missing).collect());
            }
            // Answers of another shape are refused by the recorder, and unanswered questions are left out.
            (Operation::Get(_) | Operation::GetMany(_) | Operation::Exists(_), _) => {}
        }
    }

    fn increment(
        &self,
        old: KeyState,
        record: &Record,
        answer: &Option<Answer>,
        emit: &mut dyn FnMut(KeyState),
    ) {
        let fits = |sum: i64| match answer {
            Some(answer) => overlaps(answer, sum, sum),
            None => true,
        };
        if self.gone(old, record) && fits(1) {
            emit(KeyState::Present {
                value: 1,
                deadline: Deadline::None,
            });
        }
        match old {
            KeyState::Present { value, deadline } if fits(value + 1) && self.there(old, record) => {
                emit(KeyState::Present {
                    value: value + 1,
                    deadline,
                });
            }
            KeyState::Unknown => match answer {
                Some(Answer::Integer(sum)) if self.may_begin_with(sum - 1) => {
                    emit(KeyState::Present {
                        value: *sum,
                        deadline: Deadline::Unknown,
                    });
                }
                Some(_) => {}
                None => emit(old),
            },
            _ => {}
        }
    }

    /// EXISTS: every choice of keys whose time may have come.
    fn count(
        &self,
        state: State,
        keys: &[Key],
        found: i64,
        record: &Record,
        answer: &Answer,
        emit: &mut dyn FnMut(State),
    ) {
        let Some((key, rest)) = keys.split_first() else {
            if overlaps(answer, found, found) {
                emit(state);
            }
            return;
        };
        let old = state[usize::from(*key)];
        if self.there(old, record) {
            self.count(state.clone(), rest, found + 1, record, answer, emit);
        }
        if self.gone(old, record) {
            let mut next = state;
            next[usize::from(*key)] = KeyState::Missing;
            self.count(next, rest, found, record, answer, emit);
        }
    }

    /// The key's state after this value of it, or its absence, has been seen; `None` if it cannot have been.
    fn seen(&self, state: KeyState, record: &Record, seen: Option<i64>) -> Option<KeyState> {
        match (state, seen) {
            (_, None) => self.gone(state, record).then_some(KeyState::Missing),
            (KeyState::Missing, Some(_)) => None,
            (KeyState::Unknown, Some(value)) => {
                self.may_begin_with(value).then_some(KeyState::Present {
                    value,
                    deadline: Deadline::Unknown,
                })
            }
            (KeyState::Present { value, .. }, Some(seen)) => {
                (value == seen && self.there(state, record)).then_some(state)
            }
        }
    }

    /// Whether the key may be there for a record.
    fn there(&self, state: KeyState, record: &Record) -> bool {
        match state {
            KeyState::Unknown => true,
            KeyState::Missing => false,
            KeyState::Present { deadline, .. } => self
                .window(deadline)
                .is_none_or(|(_, latest)| record.invoked_ns < latest),
        }
    }

    /// Whether the key may be missing for a record.
    fn gone(&self, state: KeyState, record: &Record) -> bool {
        match state {
            KeyState::Unknown | KeyState::Missing => true,
            KeyState::Present { deadline, .. } => match deadline {
                Deadline::None => false,
                _ => self
                    .window(deadline)
                    .is_none_or(|(earliest, _)| record.returned_ns >= earliest),
            },
        }
    }

    /// Between which moments a deadline lies; `None` if it may be any or never comes.
    fn window(&self, deadline: Deadline) -> Option<(u64, u64)> {
        let Deadline::Of(setter) = deadline else {
            return None;
        };
        let record = &self.records[setter as usize];
        let ms = match record.operation {
            Operation::Set { expire_ms, .. } => expire_ms.unwrap_or(0),
            Operation::Expire(_, ms) => ms,
            _ => 0,
        };
        let span = u64::from(ms) * 1_000_000;
        let latest = match record.returned_ns {
            NEVER => NEVER,
            returned => returned.saturating_add(span + self.slack_ns),
        };
        Some((
            (record.invoked_ns + span).saturating_sub(self.slack_ns),
            latest,
        ))
    }

    /// Whether a value may have been there before the records begin.
    fn may_begin_with(&self, value: i64) -> bool {
        block(value) == 0 || !self.blocks.contains(&block(value))
    }
}

/// Which of the values that were set a value was counted up from.
pub fn block(value: i64) -> i64 {
    value.div_euclid(BLOCK)
}

/// The values that a record's operation stores, counting apart.
pub fn values_written(record: &Record) -> Vec<i64> {
    values_set(&record.operation)
}

fn values_set(operation: &Operation) -> Vec<i64> {
    match operation {
        Operation::Set { value, .. } => vec![*value],
        Operation::SetMany(pairs) => pairs.iter().map(|(_, value)| *value).collect(),
        Operation::Transaction { parts, .. } => parts.iter().flat_map(values_set).collect(),
        _ => Vec::new(),
    }
}

/// The keys and values that a record's answer shows to have been there.
pub fn values_seen_by_key(record: &Record) -> Vec<(Key, i64)> {
    values_seen(&record.operation, &record.answer)
}

fn values_seen(operation: &Operation, answer: &Option<Answer>) -> Vec<(Key, i64)> {
    match (operation, answer) {
        (Operation::Transaction { guard, parts }, Some(Answer::Parts(answers))) => {
            let guarded = guard
                .iter()
                .filter_map(|(key, value)| Some((*key, (*value)?)));
            let mut seen: Vec<(Key, i64)> = guarded.collect();
            // What it has written itself was not there before.
            let mut written: Vec<Key> = Vec::new();
            for (part, answer) in parts.iter().zip(answers) {
                let before = values_seen(part, &Some(answer.clone()));
                seen.extend(before.into_iter().filter(|(key, _)| !written.contains(key)));
                if !part.is_question() {
                    written.extend(part.keys());
                }
            }
            seen
        }
        (Operation::Get(key) | Operation::Set { key, .. }, Some(Answer::Value(Some(value)))) => {
            vec![(*key, *value)]
        }
        (Operation::GetMany(keys), Some(Answer::Values(values))) => {
            let pairs = keys.iter().zip(values);
            pairs
                .filter_map(|(key, value)| Some((*key, (*value)?)))
                .collect()
        }
        (Operation::Increment(key), Some(Answer::Integer(sum))) if *sum > 1 => {
            vec![(*key, sum - 1)]
        }
        _ => Vec::new(),
    }
}

fn overlaps(answer: &Answer, least: i64, most: i64) -> bool {
    match answer {
        Answer::Integer(number) => (least..=most).contains(number),
        Answer::Between(from, to) => *from <= most && least <= *to,
        _ => false,
    }
}
