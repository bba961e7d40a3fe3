//! What was seen of one operation: what was asked, what was answered, and between which two moments.

use std::fmt;

/// A key of an episode, by its number.
pub type Key = u16;

/// The time at which an answer came that never came.
pub const NEVER: u64 = u64::MAX;

/// Values that are set are multiples of this, each set once in an episode; what lies between was reached by counting.
pub const BLOCK: i64 = 1_000_000;

/// When SET stores its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// NX: if the key is missing.
    Missing,
    /// XX: if the key is there.
    Present,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// GET
    Get(Key),
    /// SET with PX, NX, XX and GET; GET only with [`When::Always`].
    Set {
        /// Which key.
        key: Key,
        /// Its new value.
        value: i64,
        /// PX, in milliseconds.
        expire_ms: Option<u32>,
        /// NX or XX.
        when: When,
        /// Whether the old value is answered.
        get: bool,
    },
    /// INCR
    Increment(Key),
    /// MSET
    SetMany(Vec<(Key, i64)>),
    /// MGET
    GetMany(Vec<Key>),
    /// DEL
    Delete(Vec<Key>),
    /// EXISTS
    Exists(Vec<Key>),
    /// PEXPIRE, in milliseconds.
    Expire(Key, u32),
    /// FLUSHALL
    FlushAll,
    /// Several between MULTI and EXEC: of GET, SET without options, INCR, MSET and MGET.
    Transaction {
        /// Keys that were watched, with the values they were seen to have afterwards.
        guard: Vec<(Key, Option<i64>)>,
        /// What runs if none of them has changed.
        parts: Vec<Operation>,
    },
}

impl Operation {
    /// The keys it names; FLUSHALL names none and touches all.
    pub fn keys(&self) -> Vec<Key> {
        match self {
            Operation::Get(key)
            | Operation::Set { key, .. }
            | Operation::Increment(key)
            | Operation::Expire(key, _) => vec![*key],
            Operation::SetMany(pairs) => pairs.iter().map(|(key, _)| *key).collect(),
            Operation::GetMany(keys) | Operation::Delete(keys) | Operation::Exists(keys) => {
                keys.clone()
            }
            Operation::FlushAll => Vec::new(),
            Operation::Transaction { guard, parts } => {
                let named = parts.iter().flat_map(Operation::keys);
                let mut keys: Vec<Key> = guard.iter().map(|(key, _)| *key).chain(named).collect();
                keys.sort_unstable();
                keys.dedup();
                keys
            }
        }
    }

    /// Whether it only asks.
    pub fn is_question(&self) -> bool {
        match self {
            Operation::Get(_) | Operation::GetMany(_) | Operation::Exists(_) => true,
            Operation::Transaction { parts, .. } => parts.iter().all(Operation::is_question),
            _ => false,
        }
    }

    /// The same with every key replaced; `None` drops a key, and with its last one the operation.
    pub fn with_keys(&self, replace: impl Fn(Key) -> Option<Key>) -> Option<Self> {
        let many = |keys: &[Key]| {
            let keys: Vec<Key> = keys.iter().filter_map(|key| replace(*key)).collect();
            (!keys.is_empty()).then_some(keys)
        };
        let mut copy = self.clone();
        match &mut copy {
            Operation::Get(key)
            | Operation::Set { key, .. }
            | Operation::Increment(key)
            | Operation::Expire(key, _) => *key = replace(*key)?,
            Operation::SetMany(pairs) => {
                *pairs = pairs
                    .iter()
                    .filter_map(|(key, value)| Some((replace(*key)?, *value)))
                    .collect();
                if pairs.is_empty() {
                    return None;
                }
            }
            Operation::GetMany(keys) | Operation::Delete(keys) | Operation::Exists(keys) => {
                *keys = many(keys)?;
            }
            Operation::FlushAll => {}
            Operation::Transaction { guard, parts } => {
                let kept = guard.iter();
                *guard = kept
                    .filter_map(|(key, value)| Some((replace(*key)?, *value)))
                    .collect();
                // As a function of one type, since this one calls itself.
                let replace: &dyn Fn(Key) -> Option<Key> = &replace;
                let kept = parts.iter();
                *parts = kept.filter_map(|part| part.with_keys_of(replace)).collect();
                if guard.is_empty() && parts.is_empty() {
                    return None;
                }
            }
        }
        Some(copy)
    }

    fn with_keys_of(&self, replace: &dyn Fn(Key) -> Option<Key>) -> Option<Self> {
        self.with_keys(replace)
    }

    /// The requests that it consists of, each as words.
    pub fn requests(
        &self,
        name: &dyn Fn(Key) -> Vec<u8>,
        text: &dyn Fn(i64) -> Vec<u8>,
    ) -> Vec<Vec<Vec<u8>>> {
        let Operation::Transaction { parts, .. } = self else {
            return vec![self.words(name, text)];
        };
        let mut requests = vec![vec![b"MULTI".to_vec()]];
        requests.extend(parts.iter().map(|part| part.words(name, text)));
        requests.push(vec![b"EXEC".to_vec()]);
        requests
    }

    /// The request's words, with names for keys and texts for values.
    pub fn words(
        &self,
        name: &dyn Fn(Key) -> Vec<u8>,
        text: &dyn Fn(i64) -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let word = |word: &str| word.as_bytes().to_vec();
        let many = |command: &str, keys: &[Key]| {
            let mut words = vec![word(command)];
            words.extend(keys.iter().map(|key| name(*key)));
            words
        };
        match self {
            Operation::Get(key) => many("GET", &[*key]),
            Operation::Set {
                key,
                value,
                expire_ms,
                when,
                get,
            } => {
                let mut words = vec![word("SET"), name(*key), text(*value)];
                if let Some(ms) = expire_ms {
                    words.extend([word("PX"), word(&ms.to_string())]);
                }
                match when {
                    When::Always => {}
                    When::Missing => words.push(word("NX")),
                    When::Present => words.push(word("XX")),
                }
                if *get {
                    words.push(word("GET"));
                }
                words
            }
            Operation::Increment(key) => many("INCR", &[*key]),
            Operation::SetMany(pairs) => {
                let mut words = vec![word("MSET")];
                words.extend(
                    pairs
                        .iter()
                        .flat_map(|(key, value)| [name(*key), text(*value)]),
                );
                words
            }
            Operation::GetMany(keys) => many("MGET", keys),
            Operation::Delete(keys) => many("DEL", keys),
            Operation::Exists(keys) => many("EXISTS", keys),
            Operation::Expire(key, ms) => {
                vec![word("PEXPIRE"), name(*key), word(&ms.to_string())]
            }
            Operation::FlushAll => vec![word("FLUSHALL")],
            Operation::Transaction { guard, .. } => {
                let mut words = Vec::new();
                for (key, value) in guard {
                    words.push(word("if"));
                    words.push(name(*key));
                    words.push(word("is"));
                    words.push(value.map_or_else(|| word("nil"), text));
                }
                for (at, request) in self.requests(name, text).into_iter().enumerate() {
                    if at > 0 {
                        words.push(word(";"));
                    }
                    words.extend(request);
                }
                words
            }
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words(&|key| format!("k{key}").into_bytes(), &|value| {
            value.to_string().into_bytes()
        });
        let words: Vec<String> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        f.write_str(&words.join(" "))
    }
}

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// OK
    Done,
    /// A value, or that there is none.
    Value(Option<i64>),
    /// The values of several keys.
    Values(Vec<Option<i64>>),
    /// A number.
    Integer(i64),
    /// A number from the first to the second: what is left of a count when some of its keys are looked away from.
    Between(i64, i64),
    /// What EXEC answers if it runs.
    Parts(Vec<Answer>),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<i64>| value.map_or("nil".to_owned(), |value| value.to_string());
        match self {
            Answer::Done => f.write_str("OK"),
            Answer::Value(one) => f.write_str(&value(one)),
            Answer::Values(many) => {
                let many: Vec<String> = many.iter().map(value).collect();
                write!(f, "[{}]", many.join(", "))
            }
            Answer::Integer(number) => write!(f, "{number}"),
            Answer::Between(least, most) => write!(f, "{least} to {most}"),
            Answer::Parts(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(f, "({})", parts.join("; "))
            }
        }
    }
}

/// What was seen of one operation. A history is a list of these in which every connection's are in the order it sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The connection. One that died and was made anew is another one.
    pub connection: u32,
    /// What was asked.
    pub operation: Operation,
    /// What was answered; `None` if the connection died before: it may have happened or not, or may yet.
    pub answer: Option<Answer>,
    /// Nanoseconds on the recorder's monotonic clock, read before the request was sent.
    pub invoked_ns: u64,
    /// The same after the reply was read; [`NEVER`] without a reply.
    pub returned_ns: u64,
    /// It began before the part of a history that is looked at: its effect may lie before that too.
    pub begun_before: bool,
}

impl Record {
    /// Whether it leaves every state as it is wherever it is placed, given its answer; a key seen missing whose time
    /// has come apart.
    pub fn is_passive(&self) -> bool {
        if self.begun_before {
            return false;
        }
        match (&self.operation, &self.answer) {
            (_, None) => false,
            (Operation::Transaction { .. }, Some(Answer::Value(None))) => true,
            (operation, _) if operation.is_question() => true,
            (
                Operation::Set {
                    when: When::Missing | When::Present,
                    ..
                },
                Some(Answer::Value(None)),
            ) => true,
            (Operation::Delete(_) | Operation::Expire(..), Some(answer)) => {
                matches!(answer, Answer::Integer(0) | Answer::Between(_, 0))
            }
            _ => false,
        }
    }

    /// Whether it tells nothing because it only asked and nobody answered.
    pub fn is_void(&self) -> bool {
        self.answer.is_none() && self.operation.is_question()
    }

    /// The same seen through some of its keys only.
    pub fn with_keys(&self, replace: impl Fn(Key) -> Option<Key> + Copy) -> Option<Self> {
        let operation = self.operation.with_keys(replace)?;
        let dropped = self.operation.keys().len() - operation.keys().len();
        let left = operation.keys().len() as i64;
        let answer = match &self.answer {
            Some(Answer::Parts(answers)) => {
                let Operation::Transaction { parts, .. } = &self.operation else {
                    return None;
                };
                let kept = parts.iter().zip(answers);
                let kept = kept.filter_map(|(part, answer)| {
                    let alone = Record {
                        operation: part.clone(),
                        answer: Some(answer.clone()),
                        ..*self
                    };
                    let replace: &dyn Fn(Key) -> Option<Key> = &replace;
                    alone.with_keys_of(replace)?.answer
                });
                Some(Answer::Parts(kept.collect()))
            }
            Some(Answer::Values(values)) => {
                let kept = self.operation.keys().into_iter().zip(values);
                let kept = kept.filter(|(key, _)| replace(*key).is_some());
                Some(Answer::Values(kept.map(|(_, value)| *value).collect()))
            }
            Some(Answer::Integer(count))
                if dropped > 0
                    && matches!(operation, Operation::Delete(_) | Operation::Exists(_)) =>
            {
                Some(Answer::Between(
                    (count - dropped as i64).max(0),
                    (*count).min(left),
                ))
            }
            Some(Answer::Between(least, most)) if dropped > 0 => Some(Answer::Between(
                (least - dropped as i64).max(0),
                (*most).min(left),
            )),
            other => other.clone(),
        };
        Some(Record {
            operation,
            answer,
            ..self.clone()
        })
    }

    fn with_keys_of(&self, replace: &dyn Fn(Key) -> Option<Key>) -> Option<Self> {
        self.with_keys(replace)
    }

    /// The record as a line, times in microseconds after `start_ns`.
    pub fn line(&self, start_ns: u64) -> String {
        let time = |ns: u64| (ns as f64 - start_ns as f64) / 1000.0;
        let end = if self.returned_ns == NEVER {
            "         ...".to_owned()
        } else {
            format!("{:>12.1}", time(self.returned_ns))
        };
        let answer = match &self.answer {
            Some(answer) => answer.to_string(),
            None => "(no answer)".to_owned(),
        };
        let before = if self.begun_before {
            "  (may have happened before)"
        } else {
            ""
        };
        format!(
            "{:>12.1} {end} us  connection {:<4} {} -> {answer}{before}",
            time(self.invoked_ns),
            self.connection,
            self.operation
        )
    }
}
