//! The kinds of values a parameter can have, and the values themselves.
//!
//! Types and the small vocabularies they draw on; `parse` reads values and `show` writes them. A value's debug form never
//! shows a text, since texts can be passwords.

use std::fmt;

/// How values of a parameter are written, bounded and shown.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A whole number.
    Integer {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
        /// How it is written.
        unit: Unit,
        /// Whether a negative number has its own error text.
        unsigned: bool,
    },
    /// Bytes, or `N%`, which is kept as a negative number.
    MemoryOrPercent,
    /// Permission bits, written and shown in octal.
    Octal {
        /// Greatest value.
        max: i64,
    },
    /// `auto` (kept as 0) or a number of threads from 1.
    IoThreads {
        /// Greatest value.
        max: i64,
    },
    /// One word of a list, in any case.
    Choice {
        /// The words, in the order the error text lists them.
        words: &'static [&'static str],
        /// Further words that are accepted and not listed.
        also: &'static [&'static str],
    },
    /// Words of [`SHUTDOWN_FLAGS`], combined.
    ShutdownFlags,
    /// Letters of [`EVENT_CLASSES`].
    KeyspaceEvents,
    /// Any bytes up to the first zero byte.
    Text,
    /// The same; empty means absent.
    NullableText,
    /// Any bytes, zero bytes too; empty means absent.
    Secret,
    /// A name without directory.
    FileName {
        /// Error text for the empty name, if that is refused.
        empty: Option<&'static str>,
        /// Error text for a name that holds a slash.
        path: Option<&'static str>,
    },
    /// A host name of at most 255 letters, digits, dots and hyphens.
    HostName,
    /// Text without the characters that structure a line of the cluster's node file.
    NodeName,
    /// A template for the process title.
    ProcTitle,
    /// At most 16 addresses.
    Addresses,
    /// Pairs of seconds and changes.
    SavePoints,
    /// Output limits per client class.
    OutputLimits,
    /// Three scores from -2000 to 2000.
    OomScores,
    /// Percentiles from 0 to 100.
    Percentiles,
    /// Host and port of a primary.
    Primary,
}

/// How an integer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain digits.
    Plain,
    /// Digits and an optional `b`, `k`, `kb`, `m`, `mb`, `g` or `gb`.
    Memory,
}

pub(super) const fn integer(min: i64, max: i64) -> Kind {
    Kind::Integer {
        min,
        max,
        unit: Unit::Plain,
        unsigned: false,
    }
}

pub(super) const fn size(min: i64, max: i64) -> Kind {
    Kind::Integer {
        min,
        max,
        unit: Unit::Plain,
        unsigned: true,
    }
}

pub(super) const fn bytes(min: i64, max: i64) -> Kind {
    Kind::Integer {
        min,
        max,
        unit: Unit::Memory,
        unsigned: true,
    }
}

pub(super) const fn signed_bytes(min: i64, max: i64) -> Kind {
    Kind::Integer {
        min,
        max,
        unit: Unit::Memory,
        unsigned: false,
    }
}

pub(super) const fn choice(words: &'static [&'static str]) -> Kind {
    Kind::Choice { words, also: &[] }
}

pub(super) const fn choice_also(
    words: &'static [&'static str],
    also: &'static [&'static str],
) -> Kind {
    Kind::Choice { words, also }
}

/// Words of `shutdown-on-sigint` and `shutdown-on-sigterm`, with their bits; `default` is no bit.
pub const SHUTDOWN_FLAGS: &[(&str, u32)] = &[
    ("default", 0),
    ("save", SHUTDOWN_SAVE),
    ("nosave", 2),
    ("now", 4),
    ("force", SHUTDOWN_FORCE),
];

pub(super) const SHUTDOWN_SAVE: u32 = 1;
pub(super) const SHUTDOWN_FORCE: u32 = 8;

/// Flags that only Valkey knows: accepted and kept, not listed.
pub(super) const FOREIGN_SHUTDOWN_FLAGS: &[(&str, u32)] = &[("safe", 16), ("failover", 32)];

/// Letters of `notify-keyspace-events` in the order `CONFIG GET` shows them, with their bits.
pub const EVENT_CLASSES: &[(u8, u32)] = &[
    (b'g', 1),
    (b'$', 1 << 1),
    (b'l', 1 << 2),
    (b's', 1 << 3),
    (b'h', 1 << 4),
    (b'z', 1 << 5),
    (b'x', 1 << 6),
    (b'e', 1 << 7),
    (b't', 1 << 8),
    (b'd', 1 << 9),
    (b'n', 1 << 10),
    (b'o', 1 << 11),
    (b'c', 1 << 12),
    (b'K', 1 << 13),
    (b'E', 1 << 14),
    (b'm', 1 << 15),
];

/// The classes that `A` stands for: `g$lshzxetd`.
pub const EVENTS_ALL: u32 = (1 << 10) - 1;

/// The classes that are shown beside `A`.
pub(super) const EVENTS_BESIDE_ALL: u32 = 1 << 13 | 1 << 14 | 1 << 15;

/// One `save` point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last save, at least 1.
    pub seconds: i64,
    /// Changes since the last save.
    pub changes: i32,
}

/// The output limits of one class of client; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes of unsent replies that disconnect at once.
    pub hard_bytes: u64,
    /// Bytes of unsent replies that disconnect after `soft_seconds`.
    pub soft_bytes: u64,
    /// Seconds for which `soft_bytes` may be exceeded.
    pub soft_seconds: i32,
}

/// Classes of [`Value::OutputLimits`], in order: normal clients, replicas, subscribers.
pub const OUTPUT_CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

/// A parsed value.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// Of [`Kind::Bool`].
    Bool(bool),
    /// Of the numeric kinds.
    Integer(i64),
    /// Of [`Kind::Choice`]: the index into `words`, then `also`.
    Choice(u8),
    /// Of [`Kind::ShutdownFlags`] and [`Kind::KeyspaceEvents`].
    Flags(u32),
    /// Of the text kinds.
    Text(Box<[u8]>),
    /// Of [`Kind::Addresses`].
    Words(Box<[Box<[u8]>]>),
    /// Of [`Kind::SavePoints`].
    SavePoints(Box<[SavePoint]>),
    /// Of [`Kind::OutputLimits`], by [`OUTPUT_CLASSES`].
    OutputLimits([OutputLimit; 3]),
    /// Of [`Kind::OomScores`].
    OomScores([i32; 3]),
    /// Of [`Kind::Percentiles`].
    Percentiles(Box<[f64]>),
    /// Of [`Kind::Primary`]; `None` for no primary.
    Primary(Option<(Box<[u8]>, u16)>),
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "Bool({value})"),
            Value::Integer(value) => write!(f, "Integer({value})"),
            Value::Choice(value) => write!(f, "Choice({value})"),
            Value::Flags(value) => write!(f, "Flags({value:#x})"),
            Value::Text(value) => write!(f, "Text({} bytes)", value.len()),
            Value::Words(value) => write!(f, "Words({})", value.len()),
            Value::SavePoints(value) => write!(f, "SavePoints({value:?})"),
            Value::OutputLimits(value) => write!(f, "OutputLimits({value:?})"),
            Value::OomScores(value) => write!(f, "OomScores({value:?})"),
            Value::Percentiles(value) => write!(f, "Percentiles({value:?})"),
            Value::Primary(value) => write!(f, "Primary({})", value.is_some()),
        }
    }
}
