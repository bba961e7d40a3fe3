//! Reading values: from the words of a line, or from the one value of `CONFIG SET`.
//!
//! Every error text here is the one Redis 8.2.3 answers for the same value, down to its wording. Parsing never panics and
//! allocates no more than its input.

use std::borrow::Cow;

use weft_data::number::{parse_f64, parse_i64};

use super::kind::{
    EVENT_CLASSES, EVENTS_ALL, FOREIGN_SHUTDOWN_FLAGS, Kind, OutputLimit, SHUTDOWN_FLAGS,
    SavePoint, Unit, Value,
};
use super::{number, syntax, title};

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// A line of a file or an option: one word that stands for several is split as a line is, and save points collect.
    Line,
    /// `CONFIG SET`: such a word is split at every single space, and the value replaces the old one.
    Set,
}

/// Why a value was not accepted, in Redis's words.
pub type Reason = Cow<'static, str>;

const WRONG_NUMBER: &str = "wrong number of arguments";
const BIND_ADDRESSES_MAX: usize = 16;
const MEMORY_OR_PERCENT_MIN: i64 = -100;

impl Kind {
    /// Whether a value may be several words; a single one is then split again.
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
    /// (one class of output limits) is completed from.
    pub(super) fn parse(
        self,
        arguments: &[&[u8]],
        current: &Value,
        door: Door,
    ) -> Result<Value, Reason> {
        if self.takes_words() {
            return match arguments {
                [] | [b""] => self.parse_words(&[], current, door),
                [one] if door == Door::Line => {
                    let words = syntax::split(one).unwrap_or_default();
                    let words: Vec<_> = words.iter().map(Vec::as_slice).collect();
                    self.parse_words(&words, current, door)
                }
                [one] => {
                    let words: Vec<_> = one.split(|&byte| byte == b' ').collect();
                    self.parse_words(&words, current, door)
                }
                several => self.parse_words(several, current, door),
            };
        }
        match arguments {
            [one] => self.parse_one(one),
            _ => Err(WRONG_NUMBER.into()),
        }
    }

    fn parse_one(self, whole: &[u8]) -> Result<Value, Reason> {
        let text = up_to_zero(whole);
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
                let value = parse_i64(whole).ok_or(NOT_AN_INTEGER)?;
                bounded(value, min, max, unsigned)
            }
            Kind::Integer {
                min,
                max,
                unit: Unit::Memory,
                unsigned,
            } => {
                let value = match text {
                    [b'-', ..] if min < 0 => parse_i64(whole),
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
                let value = match whole {
                    [digits @ .., b'%'] => match parse_i64(digits) {
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
                bounded(parse_i64(whole).ok_or(NOT_AN_INTEGER)?, 1, max, false)
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
                if !whole.iter().all(|byte| is_node_name_byte(*byte)) {
                    return Err("Announced human node name contained invalid character".into());
                }
                Ok(Value::Text(text.into()))
            }
            Kind::ProcTitle => {
                if title::is_template(text) {
                    Ok(Value::Text(text.into()))
                } else {
                    Err("template format is invalid or contains unknown variables".into())
                }
            }
            Kind::Secret => Ok(Value::Text(whole.into())),
            _ => Ok(Value::Text(text.into())),
        }
    }

    fn parse_words(self, words: &[&[u8]], current: &Value, door: Door) -> Result<Value, Reason> {
        let cut: Vec<&[u8]>;
        let words = if matches!(self, Kind::Percentiles) {
            words
        } else {
            cut = words.iter().map(|word| up_to_zero(word)).collect();
            &cut
        };
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
            Kind::SavePoints => parse_save_points(words, current, door),
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
                    let value = parse_f64(word)
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

fn parse_save_points(words: &[&[u8]], current: &Value, door: Door) -> Result<Value, Reason> {
    let error = || Reason::from("Invalid save parameters");
    let mut points = match current {
        Value::SavePoints(points) if door == Door::Line && !words.is_empty() => points.to_vec(),
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

/// Whether a node name may hold the byte: not the characters that structure a line of the cluster's node file.
fn is_node_name_byte(byte: u8) -> bool {
    byte != 0 && !b"!#$%&()*+:;<>?@[]^{|}~".contains(&byte)
}

/// What the reference sees of a text where it takes it for C's.
fn up_to_zero(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or(text)
}
