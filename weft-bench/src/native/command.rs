//! A command as it is written, and what stands in its braces.
//!
//! Owns the meaning of braces. Does not send: `compiled` makes requests of it. Grammar of what stands in braces:
//!
//! ```text
//!  key[:NAME] [prefix=P] [count=N] [first=N] [digits=N] [dist=D]   one key; the same NAME is the same key within a unit
//!  key[:NAME]*N ...                                                N keys, each drawn anew, as N arguments
//!  pair*N                                                          N keys with their values, as 2 N arguments
//!  value[:SIZES]      int:FROM-TO      number      connection      NAME of what was captured
//! ```

use super::keys::{Distribution, KeySpace};
use super::values::Sizes;
use super::words::{self, Piece, Word, count};

/// A command of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// As it was written.
    pub text: String,
    /// Its arguments, the name among them. At least one.
    pub arguments: Vec<Argument>,
    /// What is taken from the answer.
    pub captures: Vec<Capture>,
}

/// An argument, or several.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// One, of pieces put together.
    One(Vec<Part>),
    /// So many keys of one space, each drawn anew.
    Keys(KeyUse, u32),
    /// So many keys of one space, each drawn anew and followed by its value.
    Pairs(KeyUse, u32),
    /// Everything that was captured under this name.
    Captured(String),
}

/// A piece of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Stands for itself.
    Text(Vec<u8>),
    /// A key.
    Key(KeyUse),
    /// A value, of the workload's sizes unless it has its own.
    Value(Option<Sizes>),
    /// A whole number between these two, both included.
    Integer(i64, i64),
    /// The number of the unit, from 0.
    Number,
    /// The number of the connection, from 0.
    Connection,
    /// The first of what was captured under this name.
    Captured(String),
}

/// Which key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyUse {
    /// Within a unit, the same name is the same key.
    pub name: String,
    /// What differs from the workload's keys.
    pub space: KeyChange,
}

/// What differs from a key space.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyChange {
    prefix: Option<Vec<u8>>,
    count: Option<u64>,
    first: Option<u64>,
    digits: Option<u8>,
    distribution: Option<Distribution>,
}

/// What is taken from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Under which name.
    pub name: String,
    /// From where: an index into each level, or all elements of it.
    pub path: Vec<Step>,
}

/// One level of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The element with this index.
    Element(usize),
    /// All elements.
    All,
}

/// More keys of one argument than make sense.
const KEYS_MAX: u32 = 100_000;

/// Levels of a path.
const DEPTH_MAX: usize = 16;

impl Command {
    /// Reads a line such as `SET {key} {value}`. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Command, String> {
        let words = words::split(text.as_bytes())?;
        Command::of(text.trim().to_owned(), &words)
    }

    /// The same from words that have been split already.
    pub fn of_words<W: AsRef<[u8]>>(words: &[W]) -> Result<Command, String> {
        let texts: Vec<String> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word.as_ref()).into_owned())
            .collect();
        let words: Vec<Word> = words
            .iter()
            .map(|word| words::pieces(word.as_ref()))
            .collect::<Result<_, String>>()?;
        Command::of(texts.join(" "), &words)
    }

    fn of(text: String, words: &[Word]) -> Result<Command, String> {
        if words.is_empty() {
            return Err("a command has at least a name".to_owned());
        }
        Ok(Command {
            text,
            arguments: words.iter().map(argument).collect::<Result<_, String>>()?,
            captures: Vec::new(),
        })
    }

    /// The name in capital letters, as far as it stands for itself.
    pub fn name(&self) -> String {
        match self.arguments.first() {
            Some(Argument::One(parts)) => match &parts[..] {
                [Part::Text(text)] => String::from_utf8_lossy(text).to_ascii_uppercase(),
                _ => String::new(),
            },
            _ => String::new(),
        }
    }
}

impl Capture {
    /// Reads `NAME` or `NAME = 0.1.*`. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Capture, String> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (name.trim(), path.trim()),
            None => (text.trim(), ""),
        };
        check_name(name)?;
        let step = |text: &str| match text {
            "*" => Ok(Step::All),
            index => index.parse().map(Step::Element).map_err(|_| {
                format!("'{index}' in the path of '{name}' is neither an index from 0 nor *")
            }),
        };
        let path: Vec<Step> = match path {
            "" => Vec::new(),
            path => path.split('.').map(step).collect::<Result<_, String>>()?,
        };
        if path.len() > DEPTH_MAX {
            return Err(format!(
                "the path of '{name}' has more than {DEPTH_MAX} levels"
            ));
        }
        Ok(Capture {
            name: name.to_owned(),
            path,
        })
    }
}

impl KeyChange {
    /// The space with the changes made.
    pub fn applied_to(&self, space: &KeySpace) -> KeySpace {
        KeySpace {
            prefix: self.prefix.clone().unwrap_or_else(|| space.prefix.clone()),
            count: self.count.unwrap_or(space.count),
            first: self.first.unwrap_or(space.first),
            digits: self.digits.unwrap_or(space.digits),
            distribution: self.distribution.unwrap_or(space.distribution),
        }
    }
}

/// Names that mean something else.
const RESERVED: [&str; 6] = ["key", "pair", "value", "int", "number", "connection"];

fn check_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(plain) {
        return Err(format!(
            "'{name}' is no name: names consist of letters, digits and _"
        ));
    }
    match RESERVED.contains(&name) {
        true => Err(format!(
            "'{name}' has a meaning of its own and can be no name"
        )),
        false => Ok(()),
    }
}

fn argument(word: &Word) -> Result<Argument, String> {
    if let [Piece::Braced(braced)] = &word[..] {
        return whole(braced);
    }
    let part = |piece: &Piece| match piece {
        Piece::Text(text) => Ok(Part::Text(text.clone())),
        Piece::Braced(braced) => match whole(braced)? {
            Argument::One(mut parts) => parts.pop().ok_or_else(|| "empty braces".to_owned()),
            Argument::Captured(name) => Ok(Part::Captured(name)),
            Argument::Keys(..) | Argument::Pairs(..) => Err(format!(
                "{{{braced}}} is several arguments and cannot be a part of one"
            )),
        },
    };
    let parts = word.iter().map(part).collect::<Result<_, String>>()?;
    Ok(Argument::One(parts))
}

/// What braces mean that are a whole argument.
fn whole(braced: &str) -> Result<Argument, String> {
    let mut words = braced.split_ascii_whitespace();
    let head = words.next().unwrap_or_default();
    let (head, times) = match head.split_once('*') {
        Some((head, times)) => {
            let times = times
                .parse::<u32>()
                .ok()
                .filter(|times| (1..=KEYS_MAX).contains(times))
                .ok_or_else(|| {
                    format!("'{times}' in {{{braced}}} is no number from 1 to {KEYS_MAX}")
                })?;
            (head, Some(times))
        }
        None => (head, None),
    };
    let (kind, detail) = match head.split_once(':') {
        Some((kind, detail)) => (kind, Some(detail)),
        None => (head, None),
    };
    if kind == "key" || kind == "pair" {
        let key = KeyUse {
            name: detail.unwrap_or_default().to_owned(),
            space: key_change(words, braced)?,
        };
        return match (kind, times) {
            ("key", None) => Ok(Argument::One(vec![Part::Key(key)])),
            ("key", Some(times)) => Ok(Argument::Keys(key, times)),
            (_, Some(times)) => Ok(Argument::Pairs(key, times)),
            (_, None) => Err(format!("{{{braced}}} says not how many: {{pair*10}}")),
        };
    }
    if let Some(word) = words.next() {
        return Err(format!("'{word}' in {{{braced}}} means nothing"));
    }
    if times.is_some() {
        return Err(format!("only keys and pairs can be many, not {{{braced}}}"));
    }
    let part = match (kind, detail) {
        ("value", None) => Part::Value(None),
        ("value", Some(sizes)) => Part::Value(Some(Sizes::parse(sizes)?)),
        ("int", Some(range)) => {
            let bounds = range.get(1..).and_then(|rest| {
                // The first character may be a sign.
                let middle = 1 + rest.find('-')?;
                let from = range.get(..middle)?.parse::<i64>().ok()?;
                let to = range.get(middle + 1..)?.parse::<i64>().ok()?;
                (from <= to).then_some((from, to))
            });
            let (from, to) =
                bounds.ok_or_else(|| format!("{{{braced}}} has no range such as int:1-100"))?;
            Part::Integer(from, to)
        }
        ("int", None) => return Err("{int} has no range: {int:1-100}".to_owned()),
        ("number", None) => Part::Number,
        ("connection", None) => Part::Connection,
        (_, None) => {
            check_name(kind).map_err(|_| format!("{{{braced}}} means nothing"))?;
            return Ok(Argument::Captured(kind.to_owned()));
        }
        _ => {
            return Err(format!(
                "{{{braced}}} means nothing: there are key, pair, value, int, number, connection and names of captured \
                 fields"
            ));
        }
    };
    Ok(Argument::One(vec![part]))
}

fn key_change<'a>(words: impl Iterator<Item = &'a str>, braced: &str) -> Result<KeyChange, String> {
    let mut change = KeyChange::default();
    for word in words {
        let wrong = || {
            format!(
                "'{word}' in {{{braced}}} is none of prefix=TEXT, count=N, first=N, digits=N (up to 40) and dist=DISTRIBUTION"
            )
        };
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        match name {
            "prefix" => change.prefix = Some(value.as_bytes().to_vec()),
            "count" => {
                let count = count(value).filter(|&count| count > 0).ok_or_else(wrong)?;
                change.count = Some(count);
            }
            "first" => change.first = Some(count(value).ok_or_else(wrong)?),
            "digits" => {
                let digits = value.parse().ok().filter(|&digits| digits <= 40);
                change.digits = Some(digits.ok_or_else(wrong)?);
            }
            "dist" => change.distribution = Some(Distribution::parse(value)?),
            _ => return Err(wrong()),
        }
    }
    Ok(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> KeyUse {
        KeyUse {
            name: name.to_owned(),
            space: KeyChange::default(),
        }
    }

    fn text(text: &str) -> Part {
        Part::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn braces_have_their_meaning() {
        let command =
            Command::parse("SET {key} x{value:16-1k} {int:-5-7} {{a}}:{key:b} {ids}").unwrap();
        assert_eq!(command.name(), "SET");
        assert_eq!(
            command.arguments[1..],
            [
                Argument::One(vec![Part::Key(key(""))]),
                Argument::One(vec![text("x"), Part::Value(Some(Sizes::Range(16, 1024)))]),
                Argument::One(vec![Part::Integer(-5, 7)]),
                Argument::One(vec![text("{a}:"), Part::Key(key("b"))]),
                Argument::Captured("ids".to_owned()),
            ]
        );
        let many =
            Command::of_words(&["MGET", "{key*10 dist=zipf:1.1 prefix=u: count=1e6}"]).unwrap();
        match &many.arguments[1] {
            Argument::Keys(key, 10) => assert_eq!(
                key.space.applied_to(&KeySpace::default()),
                KeySpace {
                    prefix: b"u:".to_vec(),
                    count: 1_000_000,
                    distribution: Distribution::Zipf { theta: 1.1 },
                    ..KeySpace::default()
                }
            ),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in [
            "",
            "GET {}",
            "GET {key count=0}",
            "GET {key size=1}",
            "GET {key*0}",
            "GET x{key*2}",
            "MSET {pair}",
            "SET a {value*2}",
            "SET a {value:x}",
            "SET a {int}",
            "SET a {int:9-1}",
            "SET a {int:5}",
            "GET {a b}",
            "GET {a:b}",
            "GET {a-b}",
        ] {
            assert!(Command::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn captures_have_paths() {
        assert_eq!(
            Capture::parse("ids = 0.1.*.0"),
            Ok(Capture {
                name: "ids".to_owned(),
                path: vec![
                    Step::Element(0),
                    Step::Element(1),
                    Step::All,
                    Step::Element(0)
                ],
            })
        );
        assert_eq!(
            Capture::parse(" id "),
            Ok(Capture {
                name: "id".to_owned(),
                path: Vec::new(),
            })
        );
        for text in ["", "a b", "key", "ids = x", "ids = 0..1"] {
            assert!(Capture::parse(text).is_err(), "{text}");
        }
    }
}
