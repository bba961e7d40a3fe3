//! Expected replies as text: the notation of case files, with patterns for what differs from run to run.
//!
//! ```text
//! +OK   -ERR text to the end of the line   :5   "bulk"   $-1   *-1   _   ,1.5   #t   (123   ="txt:abc"   !"SYNTAX x"
//! *[ :1 "a" ]   ~[ set ]   >[ push ]   %[ key value ]   |[ key value ] reply      inside these: +"text"  -"ERR text"
//! *?[ "b" "a" ]   elements in any order (of a map: pairs)
//! :100±2   :now+100±2 (seconds)   :now_ms+100±50   any-integer   any-bulk   any
//! closed   the server hangs up        nothing   no reply belongs to what was sent
//! ```

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::quoting::{quoted, take_quoted};
use crate::wire::{Kind, Wire};

/// An expected reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Exactly this, byte for byte.
    Exact(Wire),
    /// An integer near a value.
    Near {
        /// What the offset counts from.
        base: Base,
        /// The value, after the base.
        offset: i64,
        /// How far the reply may be from it, either way.
        tolerance: u64,
    },
    /// Any integer.
    AnyInteger,
    /// Any bulk string.
    AnyBulk,
    /// Any reply.
    Any,
    /// A sequence with patterns in it.
    Sequence(Kind, Vec<Expected>),
    /// A sequence whose elements (of a map: pairs) may come in any order.
    AnyOrder(Kind, Vec<Expected>),
    /// The server closes the connection without a further reply.
    Closed,
    /// There is no reply, and none is waited for.
    Nothing,
}

/// What a near value counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Zero.
    Zero,
    /// The present time, seconds since 1970.
    NowSeconds,
    /// The present time, milliseconds since 1970.
    NowMilliseconds,
}

impl Base {
    /// Its value at this moment.
    pub fn value(self) -> i64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        match self {
            Base::Zero => 0,
            Base::NowSeconds => since.as_secs() as i64,
            Base::NowMilliseconds => since.as_millis() as i64,
        }
    }
}

impl Expected {
    /// Reads the notation. The whole text has to be one reply.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        // At the top a line reply needs no quotes.
        if let Some(line) = text.strip_prefix('+').or_else(|| text.strip_prefix('-'))
            && !line.starts_with('"')
        {
            let line = line.as_bytes().to_vec();
            return Ok(Expected::Exact(if text.starts_with('+') {
                Wire::Simple(line)
            } else {
                Wire::Error(line)
            }));
        }
        let (expected, rest) = parse_one(text)?;
        if rest.trim().is_empty() {
            Ok(expected)
        } else {
            Err(format!("unexpected {:?}", rest.trim()))
        }
    }

    /// Whether a reply is the expected one.
    pub fn matches(&self, reply: &Wire) -> bool {
        match self {
            Expected::Exact(wire) => wire == reply,
            Expected::Near {
                base,
                offset,
                tolerance,
            } => reply.integer().is_some_and(|value| {
                value.abs_diff(base.value().saturating_add(*offset)) <= *tolerance
            }),
            Expected::AnyInteger => reply.integer().is_some(),
            Expected::AnyBulk => matches!(reply, Wire::Bulk(_)),
            Expected::Any => true,
            Expected::Sequence(kind, expected) => match reply {
                Wire::Sequence(found, elements) => {
                    found == kind
                        && elements.len() == expected.len()
                        && expected
                            .iter()
                            .zip(elements)
                            .all(|(one, element)| one.matches(element))
                }
                _ => false,
            },
            Expected::AnyOrder(kind, expected) => match reply {
                Wire::Sequence(found, elements) => {
                    found == kind
                        && elements.len() == expected.len()
                        && matches_unordered(*kind, expected, elements)
                }
                _ => false,
            },
            Expected::Closed | Expected::Nothing => false,
        }
    }

    /// Whether it allows more than one reply.
    pub fn is_pattern(&self) -> bool {
        !matches!(
            self,
            Expected::Exact(_) | Expected::Closed | Expected::Nothing
        )
    }
}

fn matches_unordered(kind: Kind, expected: &[Expected], elements: &[Wire]) -> bool {
    let width = if kind == Kind::Map { 2 } else { 1 };
    let mut left: Vec<&[Wire]> = elements.chunks(width).collect();
    expected.chunks(width).all(|group| {
        let found = left.iter().position(|candidate| {
            group
                .iter()
                .zip(*candidate)
                .all(|(one, element)| one.matches(element))
        });
        found.map(|index| left.swap_remove(index)).is_some()
    })
}

fn parse_one(text: &str) -> Result<(Expected, &str), String> {
    let text = text.trim_start();
    let Some(mark) = text.bytes().next() else {
        return Err("a reply was expected".to_owned());
    };
    let after = text.get(1..).unwrap_or("");
    if let Some(kind) = Kind::of_mark(mark)
        && (after.starts_with('[') || after.starts_with("?["))
    {
        return parse_sequence(kind, after);
    }
    if mark == b'|' && after.starts_with('[') {
        let (attributes, rest) = parse_sequence(Kind::Map, after)?;
        let (reply, rest) = parse_one(rest)?;
        return match (attributes, reply) {
            (Expected::Exact(Wire::Sequence(_, attributes)), Expected::Exact(reply)) => Ok((
                Expected::Exact(Wire::Attributed(attributes, Box::new(reply))),
                rest,
            )),
            _ => Err("attributes and their reply take no patterns".to_owned()),
        };
    }
    if mark == b'"' {
        let (bytes, rest) = take_quoted(text)?;
        return Ok((Expected::Exact(Wire::Bulk(bytes)), rest));
    }
    if after.starts_with('"') {
        let (bytes, rest) = take_quoted(after)?;
        let wire = match mark {
            b'+' => Wire::Simple(bytes),
            b'-' => Wire::Error(bytes),
            b'=' => Wire::Verbatim(bytes),
            b'!' => Wire::BulkError(bytes),
            _ => return Err(format!("no reply begins with {}\"", char::from(mark))),
        };
        return Ok((Expected::Exact(wire), rest));
    }
    let end = text
        .find(|c: char| c.is_whitespace() || c == ']')
        .unwrap_or(text.len());
    let (token, rest) = text.split_at(end);
    let value = token.get(1..).unwrap_or("");
    let expected = match token {
        "$-1" => Expected::Exact(Wire::NullBulk),
        "*-1" => Expected::Exact(Wire::NullArray),
        "_" => Expected::Exact(Wire::Null),
        "#t" => Expected::Exact(Wire::Boolean(true)),
        "#f" => Expected::Exact(Wire::Boolean(false)),
        "any" => Expected::Any,
        "any-bulk" => Expected::AnyBulk,
        "any-integer" => Expected::AnyInteger,
        "closed" => Expected::Closed,
        "nothing" => Expected::Nothing,
        _ => match mark {
            b'+' => Expected::Exact(Wire::Simple(value.as_bytes().to_vec())),
            b',' => Expected::Exact(Wire::Double(value.as_bytes().to_vec())),
            b'(' => Expected::Exact(Wire::BigNumber(value.as_bytes().to_vec())),
            b':' => parse_integer(value)?,
            _ => return Err(format!("{token:?} is no reply")),
        },
    };
    Ok((expected, rest))
}

fn parse_integer(text: &str) -> Result<Expected, String> {
    let number = |text: &str| {
        text.parse::<i64>()
            .map_err(|_| format!("{text:?} is no integer"))
    };
    let Some((value, tolerance)) = text.split_once('±') else {
        return Ok(Expected::Exact(Wire::Integer(number(text)?)));
    };
    let tolerance = tolerance
        .parse()
        .map_err(|_| format!("{tolerance:?} is no tolerance"))?;
    let (base, offset) = if let Some(offset) = value.strip_prefix("now_ms") {
        (Base::NowMilliseconds, offset)
    } else if let Some(offset) = value.strip_prefix("now") {
        (Base::NowSeconds, offset)
    } else {
        (Base::Zero, value)
    };
    let offset = if offset.is_empty() {
        0
    } else {
        number(offset.strip_prefix('+').unwrap_or(offset))?
    };
    Ok(Expected::Near {
        base,
        offset,
        tolerance,
    })
}

fn parse_sequence(kind: Kind, after: &str) -> Result<(Expected, &str), String> {
    let any_order = after.starts_with('?');
    let mut rest = after
        .trim_start_matches('?')
        .strip_prefix('[')
        .unwrap_or(after);
    let mut elements = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(']') {
            let expected = if any_order {
                Expected::AnyOrder(kind, elements)
            } else if elements.iter().any(Expected::is_pattern) {
                Expected::Sequence(kind, elements)
            } else {
                let exact = |element| match element {
                    Expected::Exact(wire) => Ok(wire),
                    _ => Err("`closed` and `nothing` are no elements".to_owned()),
                };
                Expected::Exact(Wire::Sequence(
                    kind,
                    elements
                        .into_iter()
                        .map(exact)
                        .collect::<Result<_, String>>()?,
                ))
            };
            return Ok((expected, after));
        }
        if rest.is_empty() {
            return Err("the sequence does not end".to_owned());
        }
        let (element, after) = parse_one(rest)?;
        elements.push(element);
        rest = after;
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Exact(Wire::Simple(line)) if is_plain_line(line) => {
                write!(f, "+{}", String::from_utf8_lossy(line))
            }
            Expected::Exact(Wire::Error(line)) if is_plain_line(line) => {
                write!(f, "-{}", String::from_utf8_lossy(line))
            }
            other => other.write_nested(f),
        }
    }
}

/// Whether a line reply can stand without quotes and be read back.
fn is_plain_line(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' '..=b'~'))
        && line
            .first()
            .is_some_and(|&first| first != b'"' && first != b' ')
        && line.last() != Some(&b' ')
}

impl Expected {
    fn write_nested(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Exact(wire) => write_wire(f, wire),
            Expected::Near {
                base,
                offset,
                tolerance,
            } => {
                let base = match base {
                    Base::Zero => "",
                    Base::NowSeconds => "now",
                    Base::NowMilliseconds => "now_ms",
                };
                let sign = if base.is_empty() || *offset < 0 {
                    ""
                } else {
                    "+"
                };
                write!(f, ":{base}{sign}{offset}±{tolerance}")
            }
            Expected::AnyInteger => f.write_str("any-integer"),
            Expected::AnyBulk => f.write_str("any-bulk"),
            Expected::Any => f.write_str("any"),
            Expected::Closed => f.write_str("closed"),
            Expected::Nothing => f.write_str("nothing"),
            Expected::Sequence(kind, elements) | Expected::AnyOrder(kind, elements) => {
                let any = if matches!(self, Expected::AnyOrder(..)) {
                    "?"
                } else {
                    ""
                };
                write!(f, "{}{any}[", char::from(kind.mark()))?;
                for element in elements {
                    f.write_str(" ")?;
                    element.write_nested(f)?;
                }
                f.write_str(" ]")
            }
        }
    }
}

fn write_wire(f: &mut fmt::Formatter<'_>, wire: &Wire) -> fmt::Result {
    match wire {
        Wire::Simple(text) if !text.is_empty() && text.iter().all(u8::is_ascii_alphanumeric) => {
            write!(f, "+{}", String::from_utf8_lossy(text))
        }
        Wire::Simple(text) => write!(f, "+{}", quoted(text)),
        Wire::Error(text) => write!(f, "-{}", quoted(text)),
        Wire::Integer(value) => write!(f, ":{value}"),
        Wire::Bulk(bytes) => f.write_str(&quoted(bytes)),
        Wire::NullBulk => f.write_str("$-1"),
        Wire::NullArray => f.write_str("*-1"),
        Wire::Null => f.write_str("_"),
        Wire::Double(text) => write!(f, ",{}", String::from_utf8_lossy(text)),
        Wire::Boolean(value) => f.write_str(if *value { "#t" } else { "#f" }),
        Wire::BigNumber(text) => write!(f, "({}", String::from_utf8_lossy(text)),
        Wire::Verbatim(text) => write!(f, "={}", quoted(text)),
        Wire::BulkError(text) => write!(f, "!{}", quoted(text)),
        Wire::Sequence(kind, elements) => {
            write!(f, "{}[", char::from(kind.mark()))?;
            for element in elements {
                f.write_str(" ")?;
                write_wire(f, element)?;
            }
            f.write_str(" ]")
        }
        Wire::Attributed(attributes, reply) => {
            f.write_str("|[")?;
            for element in attributes {
                f.write_str(" ")?;
                write_wire(f, element)?;
            }
            f.write_str(" ] ")?;
            write_wire(f, reply)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation_is_printed_as_it_was_read() {
        for text in [
            "+OK",
            "-ERR wrong number of arguments for 'get' command",
            ":-5",
            "\"a\\x00b\"",
            "$-1",
            "*-1",
            "_",
            ",1e+100",
            "*[ ]",
            "*[ :1 \"a\" +OK -\"ERR x\" *[ ~[ #t ] ] ]",
            "%[ \"a\" :1 ]",
            "*?[ \"b\" \"a\" ]",
            "*[ :100±2 any-bulk any-integer any ]",
            ":now+100±2",
            ":now_ms+100000±300",
            "closed",
            "nothing",
            "=\"txt:abc\"",
            "|[ \"a\" :1 ] \"reply\"",
            "-\" leading\"",
        ] {
            assert_eq!(
                Expected::parse(text).map(|expected| expected.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in [
            "",
            "*[ :1",
            ":x",
            "]",
            "%",
            "+OK\" \"x",
            "*[ closed ]",
            "\"a",
            ":5±x",
        ] {
            let read = Expected::parse(text);
            assert!(
                read.is_err() || text.starts_with('+'),
                "{text} was read as {read:?}"
            );
        }
    }

    #[test]
    fn patterns_match_what_they_say() {
        let matches = |pattern: &str, reply: &[u8]| {
            Expected::parse(pattern)
                .expect("a pattern")
                .matches(&Wire::scan(reply).expect("a reply"))
        };
        assert!(matches(":100±2", b":98\r\n"));
        assert!(!matches(":100±2", b":97\r\n"));
        assert!(!matches(":100±2", b"$3\r\n100\r\n"));
        assert!(matches(
            "*?[ \"a\" \"b\" \"a\" ]",
            b"*3\r\n$1\r\na\r\n$1\r\na\r\n$1\r\nb\r\n"
        ));
        assert!(!matches(
            "*?[ \"a\" \"b\" \"b\" ]",
            b"*3\r\n$1\r\na\r\n$1\r\na\r\n$1\r\nb\r\n"
        ));
        assert!(matches(
            "%?[ \"a\" :1 \"b\" :2 ]",
            b"%2\r\n$1\r\nb\r\n:2\r\n$1\r\na\r\n:1\r\n"
        ));
        assert!(!matches(
            "%?[ \"a\" :1 \"b\" :2 ]",
            b"%2\r\n$1\r\nb\r\n:1\r\n$1\r\na\r\n:2\r\n"
        ));
        let now = Base::NowSeconds.value() + 99;
        assert!(matches(":now+100±2", format!(":{now}\r\n").as_bytes()));
        assert!(!matches("closed", b"+OK\r\n"));
    }
}
