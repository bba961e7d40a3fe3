//! Written cases: a text file of requests and the replies the reference gives to them.
//!
//! ```text
//! server --requirepass secret    arguments of the server that this file needs (before the first case)
//! case the name of a case        each begins with empty databases and new connections
//! only RESP2                     run it in one protocol (RESP2 or RESP3)
//! needs keys object              it is skipped by a server that lacks one of these commands
//! reference-fault why            the reference itself gives these replies to single requests only
//! > SET k "a\x00b"               a request; {now+100} and {now_ms-1} stand for the present time in it
//! < +OK                          the reply, in the notation of `literal`; <2 or <3 where the protocols differ
//! @b > GET k                     the same on a second connection, named b
//! >> "PING\r\n"                  bytes sent as they are (strings are joined); as many replies as follow
//! advance 20                     milliseconds pass
//! ```

use std::fmt;
use std::path::Path;

use crate::door::Protocol;
use crate::error::KitError;
use crate::literal::{Base, Expected};
use crate::quoting::take_quoted;

/// The connection of requests that name none.
pub const MAIN_CONNECTION: &str = "";

/// A file of cases, with its comments: printed it is the same text, in regular spacing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseFile {
    /// Arguments of the server.
    pub server: Vec<String>,
    /// What stands before the first case, without the server line.
    pub preface: Vec<String>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The line it begins at.
    pub line: usize,
    /// The only protocol it is for.
    pub only: Option<Protocol>,
    /// The commands without which it is skipped, in lower case.
    pub needs: Vec<String>,
    /// Why the reference fails it except with single requests.
    pub reference_fault: Option<String>,
    /// What it does, comments and blank lines included.
    pub items: Vec<Item>,
}

/// A part of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A comment or a blank line, as it stands.
    Comment(String),
    /// Milliseconds that pass.
    Advance(u64),
    /// Something sent and the replies to it.
    Exchange(Exchange),
}

/// Something sent and the replies to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The line of the request.
    pub line: usize,
    /// The connection it is sent on.
    pub connection: String,
    /// What is sent.
    pub sent: Sent,
    /// The replies in RESP2.
    pub resp2: Vec<Expected>,
    /// The replies in RESP3.
    pub resp3: Vec<Expected>,
}

impl Exchange {
    /// The replies in a protocol.
    pub fn replies(&self, protocol: Protocol) -> &[Expected] {
        match protocol {
            Protocol::Resp2 => &self.resp2,
            Protocol::Resp3 => &self.resp3,
        }
    }
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A request, as it is written.
    Request {
        /// The text.
        text: String,
        /// Its arguments.
        arguments: Vec<Word>,
    },
    /// Bytes, as they are written and as they are.
    Bytes {
        /// The text.
        text: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// An argument of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A point in time, counted from the present.
    Time(Base, i64),
}

impl Word {
    /// The argument's bytes at this moment.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Word::Bytes(bytes) => bytes.clone(),
            Word::Time(base, offset) => base
                .value()
                .saturating_add(*offset)
                .to_string()
                .into_bytes(),
        }
    }
}

impl CaseFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, KitError> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(KitError::io(format!("read {place}")))?;
        Self::parse(&place, &text)
    }

    /// Reads the text of a file; `place` is its name in errors.
    pub fn parse(place: &str, text: &str) -> Result<Self, KitError> {
        let mut file = CaseFile::default();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            file.line(number, line.trim_end())
                .map_err(|what| KitError::syntax(place, number, what))?;
        }
        Ok(file)
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        if let Some(name) = line.strip_prefix("case ") {
            let name = name.trim();
            if self.cases.iter().any(|case| case.name == name) {
                return Err(format!("there is a case {name:?} already"));
            }
            self.cases.push(Case {
                name: name.to_owned(),
                line: number,
                only: None,
                needs: Vec::new(),
                reference_fault: None,
                items: Vec::new(),
            });
            return Ok(());
        }
        let comment = line.is_empty() || line.starts_with('#');
        let Some(case) = self.cases.last_mut() else {
            if comment {
                // The blank line behind the server's is printed anyway.
                if self.server.is_empty() || !line.is_empty() {
                    self.preface.push(line.to_owned());
                }
            } else if let Some(arguments) = line.strip_prefix("server ") {
                self.server = words(arguments)?
                    .iter()
                    .map(|word| String::from_utf8_lossy(&word.bytes()).into_owned())
                    .collect();
            } else {
                return Err("only comments and `server` stand before the first case".to_owned());
            }
            return Ok(());
        };
        if comment {
            case.items.push(Item::Comment(line.to_owned()));
        } else if let Some(protocol) = line.strip_prefix("only ") {
            let found = Protocol::ALL
                .into_iter()
                .find(|known| known.name() == protocol);
            case.only = Some(found.ok_or_else(|| format!("{protocol:?} is no protocol"))?);
        } else if let Some(commands) = line.strip_prefix("needs ") {
            case.needs = commands.split_whitespace().map(str::to_lowercase).collect();
        } else if let Some(why) = line.strip_prefix("reference-fault ") {
            case.reference_fault = Some(why.to_owned());
        } else if let Some(milliseconds) = line.strip_prefix("advance ") {
            let milliseconds = milliseconds
                .parse()
                .map_err(|_| format!("{milliseconds:?} is no number"))?;
            case.items.push(Item::Advance(milliseconds));
        } else if let Some(reply) = line.strip_prefix('<') {
            case.reply(reply)?;
        } else {
            let (connection, request) = match line.strip_prefix('@') {
                Some(rest) => rest
                    .split_once(' ')
                    .ok_or("a request was expected after the connection's name")?,
                None => (MAIN_CONNECTION, line),
            };
            let sent = if let Some(text) = request.strip_prefix(">> ") {
                let mut bytes = Vec::new();
                let mut rest = text;
                while !rest.is_empty() {
                    let (part, after) = take_quoted(rest)?;
                    bytes.extend(part);
                    rest = after.trim_start();
                }
                Sent::Bytes {
                    text: text.to_owned(),
                    bytes,
                }
            } else if let Some(text) = request.strip_prefix("> ") {
                Sent::Request {
                    text: text.to_owned(),
                    arguments: words(text)?,
                }
            } else {
                return Err(format!("{line:?} is no line of a case"));
            };
            case.items.push(Item::Exchange(Exchange {
                line: number,
                connection: connection.to_owned(),
                sent,
                resp2: Vec::new(),
                resp3: Vec::new(),
            }));
        }
        Ok(())
    }
}

impl Case {
    fn reply(&mut self, text: &str) -> Result<(), String> {
        let Some(Item::Exchange(exchange)) = self.items.last_mut() else {
            return Err("a reply stands behind no request".to_owned());
        };
        if let Some(text) = text.strip_prefix("2 ") {
            exchange.resp2.push(Expected::parse(text)?);
        } else if let Some(text) = text.strip_prefix("3 ") {
            exchange.resp3.push(Expected::parse(text)?);
        } else {
            let expected = Expected::parse(text)?;
            exchange.resp2.push(expected.clone());
            exchange.resp3.push(expected);
        }
        Ok(())
    }

    /// The protocols it is run in.
    pub fn protocols(&self) -> Vec<Protocol> {
        self.only
            .map_or_else(|| Protocol::ALL.to_vec(), |only| vec![only])
    }
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('"') {
            let (bytes, after) = take_quoted(rest)?;
            if !after.is_empty() && !after.starts_with(' ') {
                return Err(format!("a space was expected before {after:?}"));
            }
            words.push(Word::Bytes(bytes));
            rest = after.trim_start();
            continue;
        }
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        words.push(
            match word
                .strip_prefix('{')
                .and_then(|word| word.strip_suffix('}'))
            {
                Some(time) => time_word(time)?,
                None => Word::Bytes(word.as_bytes().to_vec()),
            },
        );
        rest = after.trim_start();
    }
    if words.is_empty() {
        Err("an empty request".to_owned())
    } else {
        Ok(words)
    }
}

fn time_word(text: &str) -> Result<Word, String> {
    let (base, offset) = match (text.strip_prefix("now_ms"), text.strip_prefix("now")) {
        (Some(offset), _) => (Base::NowMilliseconds, offset),
        (None, Some(offset)) => (Base::NowSeconds, offset),
        _ => return Err(format!("{{{text}}} is no placeholder")),
    };
    let offset = offset.strip_prefix('+').unwrap_or(offset);
    let offset = if offset.is_empty() {
        0
    } else {
        offset
            .parse()
            .map_err(|_| format!("{{{text}}} is no placeholder"))?
    };
    Ok(Word::Time(base, offset))
}

impl fmt::Display for CaseFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.preface {
            writeln!(f, "{line}")?;
        }
        if !self.server.is_empty() {
            writeln!(f, "server {}\n", crate::quoting::request_line(&self.server))?;
        }
        for case in &self.cases {
            writeln!(f, "case {}", case.name)?;
            if let Some(protocol) = case.only {
                writeln!(f, "only {}", protocol.name())?;
            }
            if !case.needs.is_empty() {
                writeln!(f, "needs {}", case.needs.join(" "))?;
            }
            if let Some(why) = &case.reference_fault {
                writeln!(f, "reference-fault {why}")?;
            }
            for item in &case.items {
                match item {
                    Item::Comment(text) => writeln!(f, "{text}")?,
                    Item::Advance(milliseconds) => writeln!(f, "advance {milliseconds}")?,
                    Item::Exchange(exchange) => write!(f, "{exchange}")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.connection != MAIN_CONNECTION {
            write!(f, "@{} ", self.connection)?;
        }
        match &self.sent {
            Sent::Request { text, .. } => writeln!(f, "> {text}")?,
            Sent::Bytes { text, .. } => writeln!(f, ">> {text}")?,
        }
        if self.resp2 == self.resp3 {
            return self
                .resp2
                .iter()
                .try_for_each(|reply| writeln!(f, "< {reply}"));
        }
        self.resp2
            .iter()
            .try_for_each(|reply| writeln!(f, "<2 {reply}"))?;
        self.resp3
            .iter()
            .try_for_each(|reply| writeln!(f, "<3 {reply}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# About these.
server --requirepass "a b"

case first
only RESP2
needs set get
# Why.
> SET k "a\x00b" PXAT {now_ms+1000}
< +OK
> GET nokey
<2 $-1
<3 _
advance 20
@b > GET k
< "a"

case second
reference-fault it forgets
>> "PING\r\nPING\r\n"
< +PONG
< +PONG
"#;

    #[test]
    fn a_file_is_printed_as_it_was_read() {
        let file = CaseFile::parse("test", TEXT).expect("a case file");
        assert_eq!(file.to_string(), TEXT);
        assert_eq!(file.server, ["--requirepass", "a b"]);
        assert_eq!(file.cases.len(), 2);
        let Item::Exchange(exchange) = &file.cases[0].items[2] else {
            panic!("an exchange")
        };
        assert_eq!(
            exchange.replies(Protocol::Resp3),
            [Expected::parse("_").expect("null")]
        );
    }

    #[test]
    fn what_is_no_case_is_refused_with_its_line() {
        for (text, line) in [
            ("> GET k\n", 1),
            ("case a\n< +OK\n", 2),
            ("case a\n\ncase a\n", 3),
            ("case a\n> \"x\n", 2),
        ] {
            match CaseFile::parse("test", text) {
                Err(KitError::Syntax { line: found, .. }) => assert_eq!(found, line, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
