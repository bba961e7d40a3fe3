//! Which operations an episode consists of: shapes of load, and the random choice within one.
//!
//! An episode is short, has keys of its own and begins when everybody is idle, so that each can be judged by itself. Its keys
//! are few, so that connections meet; in groups, so that not all of them meet: the search grows with the operations
//! whose order no answer tells, which is why most writes here answer what was there before.

use super::record::{BLOCK, Key, Operation, When};

/// What is done how often, out of the sum.
type Weights = &'static [(Kind, u32)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Get,
    Set,
    SetGet,
    SetIfMissing,
    SetIfPresent,
    SetFor,
    Increment,
    SetMany,
    GetMany,
    Delete,
    Exists,
    Expire,
    FlushAll,
    Transact,
    TransactGuarded,
}

/// How the values of an episode are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// As numbers, so that they can be counted up.
    Number,
    /// As a number and a padding whose length follows from it: from a few bytes to more than a rope's chunk.
    Padded,
}

/// One kind of episode.
#[derive(Debug)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// How many connections take part, at most.
    pub connections: usize,
    /// Groups of keys; each connection keeps to one.
    pub groups: usize,
    /// Keys of a group.
    pub keys: usize,
    /// Operations sent at once, at most.
    pub pipeline: usize,
    /// Operations of each connection.
    pub operations: usize,
    /// How values are written.
    pub text: Text,
    /// One batch in so many is not waited for: the connection is closed and made anew. 0: none.
    pub deaths: u32,
    /// Milliseconds of PX and PEXPIRE, at most.
    pub expire_ms: u32,
    /// Microseconds between two batches, at most.
    pub rest_us: u64,
    weights: Weights,
}

impl Shape {
    const PLAIN: Shape = Shape {
        name: "",
        connections: usize::MAX,
        groups: 1,
        keys: 2,
        pipeline: 1,
        operations: 40,
        text: Text::Number,
        deaths: 0,
        expire_ms: 0,
        rest_us: 0,
        weights: &[],
    };
}

/// All shapes, in the order in which they are played.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "counters",
        keys: 2,
        weights: &[
            (Kind::Increment, 50),
            (Kind::Get, 30),
            (Kind::SetGet, 15),
            (Kind::SetIfPresent, 2),
            (Kind::Exists, 3),
        ],
        ..Shape::PLAIN
    },
    Shape {
        name: "registers",
        groups: 6,
        keys: 2,
        weights: &[
            (Kind::Get, 35),
            (Kind::Set, 5),
            (Kind::SetGet, 20),
            (Kind::SetIfMissing, 8),
            (Kind::Increment, 20),
            (Kind::Delete, 8),
            (Kind::Exists, 4),
        ],
        ..Shape::PLAIN
    },
    Shape {
        name: "pairs",
        groups: 5,
        keys: 3,
        weights: &[
            (Kind::GetMany, 45),
            (Kind::SetMany, 20),
            (Kind::Increment, 10),
            (Kind::SetGet, 10),
            (Kind::Delete, 5),
            (Kind::Exists, 5),
            (Kind::Get, 5),
        ],
        ..Shape::PLAIN
    },
    Shape {
        name: "pipelines",
        groups: 9,
        keys: 3,
        pipeline: 12,
        operations: 120,
        weights: &[
            (Kind::Get, 25),
            (Kind::GetMany, 15),
            (Kind::Increment, 25),
            (Kind::SetGet, 15),
            (Kind::Set, 6),
            (Kind::SetMany, 6),
            (Kind::Delete, 4),
            (Kind::Exists, 4),
        ],
        ..Shape::PLAIN
    },
    Shape {
        name: "expiry",
        groups: 6,
        keys: 2,
        operations: 60,
        expire_ms: 25,
        rest_us: 1_500,
        weights: &[
            (Kind::Get, 30),
            (Kind::GetMany, 8),
            (Kind::SetFor, 12),
            (Kind::Expire, 12),
            (Kind::SetIfMissing, 10),
            (Kind::Increment, 12),
            (Kind::Exists, 8),
            (Kind::SetGet, 4),
            (Kind::Delete, 4),
        ],
        ..Shape::PLAIN
    },
    Shape {
        name: "flushes",
        groups: 8,
        keys: 3,
        operations: 60,
        weights: &[
            (Kind::GetMany, 35),
            (Kind::Get, 10),
            (Kind::SetMany, 18),
            (Kind::SetGet, 12),
            (Kind::Increment, 20),
            (Kind::SetIfMissing, 4),
            (Kind::FlushAll, 1),
        ],
        ..Shape::PLAIN
    },
    Shape {
        name: "flushes, all keys together",
        connections: 8,
        groups: 2,
        keys: 2,
        operations: 60,
        weights: &[
            (Kind::GetMany, 25),
            (Kind::Get, 25),
            (Kind::SetMany, 12),
            (Kind::SetGet, 12),
            (Kind::Increment, 18),
            (Kind::FlushAll, 8),
        ],
        ..Shape::PLAIN
    },
    Shape {
        name: "long values",
        groups: 4,
        keys: 2,
        text: Text::Padded,
        weights: &[
            (Kind::Get, 40),
            (Kind::GetMany, 20),
            (Kind::SetGet, 15),
            (Kind::Set, 10),
            (Kind::SetMany, 5),
            (Kind::Delete, 10),
        ],
        ..Shape::PLAIN
    },
    Shape {
        name: "transactions",
        groups: 5,
        keys: 3,
        weights: &[
            (Kind::Transact, 30),
            (Kind::TransactGuarded, 20),
            (Kind::GetMany, 25),
            (Kind::SetMany, 5),
            (Kind::Increment, 10),
            (Kind::SetGet, 5),
            (Kind::Get, 5),
        ],
        ..Shape::PLAIN
    },
    Shape {
        name: "deaths",
        groups: 6,
        keys: 2,
        pipeline: 3,
        deaths: 40,
        weights: &[
            (Kind::Get, 30),
            (Kind::GetMany, 10),
            (Kind::Increment, 30),
            (Kind::SetGet, 20),
            (Kind::SetIfMissing, 5),
            (Kind::Delete, 5),
        ],
        ..Shape::PLAIN
    },
];

/// Draws the operations of one connection in one episode.
#[derive(Debug)]
pub struct Draw {
    random: fastrand::Rng,
    shape: &'static Shape,
    first_key: Key,
    next_value: i64,
    value_step: i64,
}

impl Draw {
    /// The operations of connection `number` of `connections`, out of `seed`.
    pub fn new(shape: &'static Shape, seed: u64, number: usize, connections: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..=number {
            random = random.fork();
        }
        Draw {
            random,
            shape,
            first_key: (number % shape.groups * shape.keys) as Key,
            next_value: number as i64 + 1,
            value_step: connections as i64,
        }
    }

    /// The next operations, to be sent at once.
    pub fn batch(&mut self) -> Vec<Operation> {
        let count = self.random.usize(1..=self.shape.pipeline);
        (0..count).map(|_| self.operation()).collect()
    }

    /// Whether the connection dies now instead of waiting.
    pub fn dies(&mut self) -> bool {
        self.shape.deaths > 0 && self.random.u32(..self.shape.deaths) == 0
    }

    /// Microseconds to rest.
    pub fn rest_us(&mut self) -> u64 {
        self.random.u64(..=self.shape.rest_us)
    }

    fn operation(&mut self) -> Operation {
        let sum: u32 = self.shape.weights.iter().map(|(_, weight)| weight).sum();
        let mut pick = self.random.u32(..sum);
        let kind = self.shape.weights.iter().find(|(_, weight)| {
            let found = pick < *weight;
            pick = pick.wrapping_sub(*weight);
            found
        });
        match kind.map_or(Kind::Get, |(kind, _)| *kind) {
            Kind::Get => Operation::Get(self.key()),
            Kind::Set => self.set(None, When::Always, false),
            Kind::SetGet => self.set(None, When::Always, true),
            Kind::SetIfMissing => {
                let ms = (self.shape.expire_ms > 0 && self.random.bool()).then(|| self.ms());
                self.set(ms, When::Missing, false)
            }
            Kind::SetIfPresent => self.set(None, When::Present, false),
            Kind::SetFor => {
                let ms = self.ms();
                self.set(Some(ms), When::Always, false)
            }
            Kind::Increment => Operation::Increment(self.key()),
            Kind::SetMany => {
                let keys = self.keys(2);
                Operation::SetMany(keys.into_iter().map(|key| (key, self.value())).collect())
            }
            Kind::GetMany => Operation::GetMany(self.keys(2)),
            Kind::Delete => Operation::Delete(self.keys(1)),
            Kind::Exists => Operation::Exists(self.keys(1)),
            Kind::Expire => {
                let ms = self.ms();
                Operation::Expire(self.key(), ms)
            }
            Kind::FlushAll => Operation::FlushAll,
            Kind::Transact => self.transaction(0),
            Kind::TransactGuarded => self.transaction(2),
        }
    }

    /// Of several parts, with up to so many watched keys.
    fn transaction(&mut self, watched: usize) -> Operation {
        let mut guard = self.keys(1);
        guard.truncate(watched);
        let count = self.random.usize(2..=4);
        let parts = (0..count).map(|_| match self.random.u8(..8) {
            0 => Operation::Get(self.key()),
            1 | 2 => Operation::GetMany(self.keys(2)),
            3 => {
                let keys = self.keys(2);
                Operation::SetMany(keys.into_iter().map(|key| (key, self.value())).collect())
            }
            4 | 5 => self.set(None, When::Always, true),
            _ => Operation::Increment(self.key()),
        });
        let parts = parts.collect();
        Operation::Transaction {
            guard: guard.into_iter().map(|key| (key, None)).collect(),
            parts,
        }
    }

    fn set(&mut self, expire_ms: Option<u32>, when: When, get: bool) -> Operation {
        Operation::Set {
            key: self.key(),
            value: self.value(),
            expire_ms,
            when,
            get,
        }
    }

    fn ms(&mut self) -> u32 {
        self.random.u32(1..=self.shape.expire_ms.max(1))
    }

    /// A value that nobody else sets in this episode.
    fn value(&mut self) -> i64 {
        let value = self.next_value * BLOCK;
        self.next_value += self.value_step;
        value
    }

    fn key(&mut self) -> Key {
        self.first_key + self.random.u16(..self.shape.keys as Key)
    }

    /// Different keys of the group in random order, at least so many.
    fn keys(&mut self, least: usize) -> Vec<Key> {
        let mut keys: Vec<Key> = (0..self.shape.keys as Key)
            .map(|key| self.first_key + key)
            .collect();
        self.random.shuffle(&mut keys);
        keys.truncate(
            self.random
                .usize(least.min(self.shape.keys)..=self.shape.keys),
        );
        keys
    }
}
