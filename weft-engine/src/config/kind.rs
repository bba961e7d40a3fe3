//! The kinds of values a parameter can have: bounds, parsing, and the text that `CONFIG GET` shows.
//!
//! Every error text here is the one Redis 8.2.3 answers for the same value, down to its wording. The module does not know
//! names, doors (file, command line, `CONFIG SET`) or snapshots. Parsing never panics and allocates no more than its input.

use std::borrow::Cow;
use std::fmt;

use super::number;

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
    /// Any bytes.
    Text,
    /// Any bytes; empty means absent.
    NullableText,
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
    ("save", 1),
    ("nosave", 2),
    ("now", 4),
    ("force", 8),
];

/// Flags that only Valkey knows: accepted and kept, not listed.
const FOREIGN_SHUTDOWN_FLAGS: &[(&str, u32)] = &[("safe", 16), ("failover", 32)];

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
const EVENTS_BESIDE_ALL: u32 = 1 << 13 | 1 << 14 | 1 << 15;

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

/// A parsed value. Its debug form shows no text, since texts can be passwords.
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

/// Why a value was not accepted, in Redis's words.
pub type Reason = Cow<'static, str>;

const WRONG_NUMBER: &str = "wrong number of arguments";
const BIND_ADDRESSES_MAX: usize = 16;
const MEMORY_OR_PERCENT_MIN: i64 = -100;

impl Kind {
    /// Whether a value may be several words; a single one is then split at spaces.
    fn takes_words(self) -> bool {
        matches!(
            self,
            Kind::ShutdownFlags
                | Kind::Addresses
                | Kind::SavePoints
                | Kind::OutputLimits
                | Kind::OomScores
                | Kind::Percentiles
                | Kind::Primary
        )
    }

    /// Parses the arguments of a line, or the one value of `CONFIG SET`. `current` is what a value that names only a part
    /// (one class of output limits) is completed from. With `accumulate`, save points are added to the current ones.
    pub(super) fn parse(
        self,
        arguments: &[&[u8]],
        current: &Value,
        accumulate: bool,
    ) -> Result<Value, Reason> {
        if self.takes_words() {
            let split;
            let words = match arguments {
                [] | [b""] => &[],
                [one] => {
                    split = one.split(|&byte| byte == b' ').collect::<Vec<_>>();
                    split.as_slice()
                }
                several => several,
            };
            return self.parse_words(words, current, accumulate);
        }
        match arguments {
            [one] => self.parse_one(one),
            _ => Err(WRONG_NUMBER.into()),
        }
    }

    fn parse_one(self, text: &[u8]) -> Result<Value, Reason> {
        match self {
            Kind::Bool => {
                if text.eq_ignore_ascii_case(b"yes") {
                    Ok(Value::Bool(true))
                } else if text.eq_ignore_ascii_case(b"no") {
                    Ok(Value::Bool(false))
                } else {
                    Err("argument must be 'yes' or 'no'".into())
                }
            }
            Kind::Integer {
                min,
                max,
                unit: Unit::Plain,
                unsigned,
            } => {
                let value = number::strict_i64(text).ok_or(NOT_AN_INTEGER)?;
                bounded(value, min, max, unsigned)
            }
            Kind::Integer {
                min,
                max,
                unit: Unit::Memory,
                unsigned,
            } => {
                let value = match text {
                    [b'-', ..] if min < 0 => number::strict_i64(text),
                    _ => number::memory(text).map(|bytes| bytes as i64),
                };
                bounded(
                    value.ok_or("argument must be a memory value")?,
                    min,
                    max,
                    unsigned,
                )
            }
            Kind::MemoryOrPercent => {
                let error = "argument must be a memory or percent value";
                let value = match text {
                    [digits @ .., b'%'] => match number::strict_i64(digits) {
                        Some(percent) if percent >= 0 => -percent,
                        _ => return Err(error.into()),
                    },
                    _ => number::memory(text).ok_or(error)? as i64,
                };
                if value < MEMORY_OR_PERCENT_MIN {
                    return Err("percentage argument must be less or equal to 100".into());
                }
                Ok(Value::Integer(value))
            }
            Kind::Octal { max } => {
                let value =
                    number::octal(text).ok_or("argument couldn't be parsed as an octal number")?;
                if value < 0 {
                    return Err(NOT_NEGATIVE.into());
                }
                if value > max {
                    return Err(format!("argument must be between 0 and {max:o} inclusive").into());
                }
                Ok(Value::Integer(value))
            }
            Kind::IoThreads { max } => {
                if text.eq_ignore_ascii_case(b"auto") {
                    return Ok(Value::Integer(0));
                }
                bounded(
                    number::strict_i64(text).ok_or(NOT_AN_INTEGER)?,
                    1,
                    max,
                    false,
                )
            }
            Kind::Choice { words, also } => words
                .iter()
                .chain(also)
                .position(|word| text.eq_ignore_ascii_case(word.as_bytes()))
                .map(|index| Value::Choice(index as u8))
                .ok_or_else(|| one_of(words.iter().copied())),
            Kind::KeyspaceEvents => {
                let mut flags = 0;
                for letter in text {
                    flags |= match EVENT_CLASSES.iter().find(|(class, _)| class == letter) {
                        Some((_, bit)) => *bit,
                        None if *letter == b'A' => EVENTS_ALL,
                        None => {
                            return Err(
                                "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".into()
                            );
                        }
                    };
                }
                Ok(Value::Flags(flags))
            }
            Kind::FileName { empty, path } => match (empty, path) {
                (Some(error), _) if text.is_empty() => Err(error.into()),
                (_, Some(error)) if text.contains(&b'/') => Err(error.into()),
                _ => Ok(Value::Text(text.into())),
            },
            Kind::HostName => {
                if text.len() > 255 {
                    return Err("Hostnames must be less than 256 characters".into());
                }
                let allowed =
                    |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
                if !text.iter().all(allowed) {
                    return Err(
                        "Hostnames may only contain alphanumeric characters, hyphens or dots"
                            .into(),
                    );
                }
                Ok(Value::Text(text.into()))
            }
            Kind::NodeName => {
                if !text.iter().all(|byte| is_node_name_byte(*byte)) {
                    return Err("Announced human node name contained invalid character".into());
                }
                Ok(Value::Text(text.into()))
            }
            Kind::ProcTitle => {
                if is_title_template(text) {
                    Ok(Value::Text(text.into()))
                } else {
                    Err("template format is invalid or contains unknown variables".into())
                }
            }
            _ => Ok(Value::Text(text.into())),
        }
    }

    fn parse_words(
        self,
        words: &[&[u8]],
        current: &Value,
        accumulate: bool,
    ) -> Result<Value, Reason> {
        match self {
            Kind::ShutdownFlags => {
                let names = || SHUTDOWN_FLAGS.iter().map(|(name, _)| *name);
                let mut flags = 0;
                for word in words {
                    flags |= SHUTDOWN_FLAGS
                        .iter()
                        .chain(FOREIGN_SHUTDOWN_FLAGS)
                        .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
                        .ok_or_else(|| one_of(names()))?
                        .1;
                }
                if words.is_empty() {
                    return Err(one_of(names()));
                }
                if flags & 3 == 3 {
                    return Err(
                        "shutdown options SAVE and NOSAVE can't be used simultaneously".into(),
                    );
                }
                Ok(Value::Flags(flags))
            }
            Kind::Addresses => {
                if words.len() > BIND_ADDRESSES_MAX {
                    return Err("Too many bind addresses specified.".into());
                }
                Ok(Value::Words(
                    words.iter().map(|word| Box::from(*word)).collect(),
                ))
            }
            Kind::SavePoints => parse_save_points(words, current, accumulate),
            Kind::OutputLimits => parse_output_limits(words, current),
            Kind::OomScores => {
                let [first, second, third] = words else {
                    return Err(WRONG_NUMBER.into());
                };
                let score = |text| {
                    number::lenient_i64(text)
                        .and_then(|score| i32::try_from(score).ok())
                        .filter(|score| (-2000..=2000).contains(score))
                        .ok_or("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")
                };
                Ok(Value::OomScores([
                    score(first)?,
                    score(second)?,
                    score(third)?,
                ]))
            }
            Kind::Percentiles => {
                let mut percentiles = Vec::with_capacity(words.len());
                for word in words {
                    let value = number::float(word)
                        .ok_or("Invalid latency-tracking-info-percentiles parameters")?;
                    if !(0.0..=100.0).contains(&value) {
                        return Err(
                            "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".into()
                        );
                    }
                    percentiles.push(value);
                }
                Ok(Value::Percentiles(percentiles.into()))
            }
            Kind::Primary => {
                let [host, port] = words else {
                    return Err(WRONG_NUMBER.into());
                };
                if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
                    return Ok(Value::Primary(None));
                }
                let port = number::lenient_i64(port).and_then(|port| u16::try_from(port).ok());
                Ok(Value::Primary(Some((
                    Box::from(*host),
                    port.ok_or("Invalid master port")?,
                ))))
            }
            _ => Err(WRONG_NUMBER.into()),
        }
    }

    /// The text that `CONFIG GET` answers. `io_threads_auto` is what `io-threads auto` amounts to.
    pub(super) fn show(self, value: &Value, io_threads_auto: u16) -> Vec<u8> {
        match (self, value) {
            (Kind::Bool, Value::Bool(on)) => if *on { "yes" } else { "no" }.into(),
            (Kind::Octal { .. }, Value::Integer(mode)) => format!("{mode:o}").into(),
            (Kind::IoThreads { .. }, Value::Integer(0)) => io_threads_auto.to_string().into(),
            (Kind::MemoryOrPercent, Value::Integer(percent @ ..0)) => {
                format!("{}%", percent.unsigned_abs()).into()
            }
            (_, Value::Integer(number)) => number.to_string().into(),
            (Kind::Choice { words, also }, Value::Choice(index)) => words
                .iter()
                .chain(also)
                .nth(usize::from(*index))
                .map_or_else(Vec::new, |word| word.as_bytes().to_vec()),
            (Kind::ShutdownFlags, Value::Flags(flags)) => shutdown_words(*flags).into(),
            (_, Value::Flags(flags)) => event_letters(*flags),
            (_, Value::Text(text)) => text.to_vec(),
            (_, Value::Words(words)) => words.join(&b' '),
            (_, Value::SavePoints(points)) => {
                let points: Vec<_> = points
                    .iter()
                    .map(|point| format!("{} {}", point.seconds, point.changes))
                    .collect();
                points.join(" ").into()
            }
            (_, Value::OutputLimits(limits)) => {
                let mut text = String::new();
                for (class, limit) in OUTPUT_CLASSES.iter().zip(limits) {
                    let space = if text.is_empty() { "" } else { " " };
                    text += &format!(
                        "{space}{class} {} {} {}",
                        limit.hard_bytes, limit.soft_bytes, limit.soft_seconds
                    );
                }
                text.into()
            }
            (_, Value::OomScores([first, second, third])) => {
                format!("{first} {second} {third}").into()
            }
            (_, Value::Percentiles(percentiles)) => {
                let percentiles: Vec<_> = percentiles
                    .iter()
                    .map(|value| number::six_decimals(*value))
                    .collect();
                percentiles.join(" ").into()
            }
            (_, Value::Primary(Some((host, port)))) => {
                let mut text = host.to_vec();
                text.extend_from_slice(format!(" {port}").as_bytes());
                text
            }
            (_, Value::Primary(None)) | (_, Value::Bool(_)) | (_, Value::Choice(_)) => Vec::new(),
        }
    }
}

const NOT_AN_INTEGER: &str = "argument couldn't be parsed into an integer";
const NOT_NEGATIVE: &str = "argument must be greater or equal to 0";

fn bounded(value: i64, min: i64, max: i64, unsigned: bool) -> Result<Value, Reason> {
    if unsigned && value < 0 {
        return Err(NOT_NEGATIVE.into());
    }
    if (min..=max).contains(&value) {
        Ok(Value::Integer(value))
    } else {
        Err(format!("argument must be between {min} and {max} inclusive").into())
    }
}

fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> Reason {
    let words: Vec<_> = words.collect();
    format!(
        "argument(s) must be one of the following: {}",
        words.join(", ")
    )
    .into()
}

fn parse_save_points(words: &[&[u8]], current: &Value, accumulate: bool) -> Result<Value, Reason> {
    let error = || Reason::from("Invalid save parameters");
    let mut points = match current {
        Value::SavePoints(points) if accumulate && !words.is_empty() => points.to_vec(),
        _ => Vec::new(),
    };
    let pairs = words.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(error());
    }
    for pair in pairs {
        let seconds = number::lenient_i64(pair[0])
            .filter(|seconds| *seconds >= 1)
            .ok_or_else(error)?;
        // The count wraps to 32 bits, as the reference does.
        let changes = number::lenient_i64(pair[1])
            .map(|changes| changes as i32)
            .filter(|changes| *changes >= 0);
        points.push(SavePoint {
            seconds,
            changes: changes.ok_or_else(error)?,
        });
    }
    Ok(Value::SavePoints(points.into()))
}

fn parse_output_limits(words: &[&[u8]], current: &Value) -> Result<Value, Reason> {
    let mut limits = match current {
        Value::OutputLimits(limits) => *limits,
        _ => {
            [OutputLimit {
                hard_bytes: 0,
                soft_bytes: 0,
                soft_seconds: 0,
            }; 3]
        }
    };
    let groups = words.chunks_exact(4);
    if !groups.remainder().is_empty() {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    for group in groups {
        let class = match group[0] {
            class if class.eq_ignore_ascii_case(b"normal") => 0,
            class
                if class.eq_ignore_ascii_case(b"slave")
                    || class.eq_ignore_ascii_case(b"replica") =>
            {
                1
            }
            class if class.eq_ignore_ascii_case(b"pubsub") => 2,
            _ => {
                return Err("Invalid client class specified in buffer limit configuration.".into());
            }
        };
        let error = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        limits[class] = OutputLimit {
            hard_bytes: number::memory(group[1]).ok_or(error)?,
            soft_bytes: number::memory(group[2]).ok_or(error)?,
            soft_seconds: number::lenient_i64(group[3])
                .map(|seconds| seconds as i32)
                .filter(|seconds| *seconds >= 0)
                .ok_or(error)?,
        };
    }
    Ok(Value::OutputLimits(limits))
}

/// The words of a set of shutdown flags, `default` for none.
pub(super) fn shutdown_words(flags: u32) -> String {
    let words: Vec<_> = SHUTDOWN_FLAGS
        .iter()
        .chain(FOREIGN_SHUTDOWN_FLAGS)
        .filter(|(_, bit)| flags & bit != 0)
        .map(|(name, _)| *name)
        .collect();
    if words.is_empty() {
        "default".into()
    } else {
        words.join(" ")
    }
}

/// The letters of a set of event classes. With all of `A`, the classes that stand outside it and are neither `K`, `E` nor
/// `m` are not shown, as the reference does.
fn event_letters(flags: u32) -> Vec<u8> {
    let mut letters = Vec::new();
    let mut shown = flags;
    if flags & EVENTS_ALL == EVENTS_ALL {
        letters.push(b'A');
        shown &= EVENTS_BESIDE_ALL;
    }
    letters.extend(
        EVENT_CLASSES
            .iter()
            .filter(|(_, bit)| shown & bit != 0)
            .map(|(letter, _)| *letter),
    );
    letters
}

/// Whether a node name may hold the byte: not the characters that structure a line of the cluster's node file.
fn is_node_name_byte(byte: u8) -> bool {
    !b"!#$%&()*+:;<>?@[]^{|}~".contains(&byte)
}

/// Whether every brace opens a known placeholder and the template is not empty.
fn is_title_template(text: &[u8]) -> bool {
    const PLACEHOLDERS: &[&[u8]] = &[
        b"title",
        b"listen-addr",
        b"server-mode",
        b"port",
        b"tls-port",
        b"unixsocket",
        b"config-file",
    ];
    let mut rest = text;
    while let Some(open) = rest.iter().position(|&byte| byte == b'{') {
        let inside = &rest[open + 1..];
        let Some(close) = inside.iter().position(|&byte| byte == b'}') else {
            return false;
        };
        if !PLACEHOLDERS.contains(&&inside[..close]) {
            return false;
        }
        rest = &inside[close + 1..];
    }
    !text.is_empty()
}
