//! Replies back from the wire, for clients and tests.
//!
//! Owns the decoding of every RESP2 and RESP3 type into a tree. Does not know commands. Invariants: nothing is allocated
//! for counts that are only announced; nesting and sizes are bounded by [`DecodeLimits`].

use std::fmt;

use memchr::memchr;

use crate::header;

/// One reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// `+`
    Simple(Vec<u8>),
    /// `-`: the text with its code.
    Error(Vec<u8>),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1`: the absent string of RESP2.
    NullBulk,
    /// `*-1`: the absent array of RESP2.
    NullArray,
    /// `_`: the absent value of RESP3.
    Null,
    /// `*`
    Array(Vec<Reply>),
    /// `%`: pairs in the order they came.
    Map(Vec<(Reply, Reply)>),
    /// `~`: elements in the order they came.
    Set(Vec<Reply>),
    /// `>`: a message that answers no request.
    Push(Vec<Reply>),
    /// `,`
    Double(f64),
    /// `#`
    Boolean(bool),
    /// `(`: the digits, with their sign.
    BigNumber(Vec<u8>),
    /// `=`: the format's three bytes and the text.
    Verbatim([u8; 3], Vec<u8>),
    /// `!`: an error that may hold line ends.
    BulkError(Vec<u8>),
    /// `|`: attributes and the reply they belong to.
    Attribute(Vec<(Reply, Reply)>, Box<Reply>),
}

/// What a reply may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// How deep aggregates may nest.
    pub depth_max: usize,
    /// The longest string in bytes.
    pub bulk_max: usize,
    /// The most elements of one aggregate (a pair is two).
    pub elements_max: usize,
}

impl Default for DecodeLimits {
    fn default() -> DecodeLimits {
        DecodeLimits {
            depth_max: 128,
            bulk_max: 512 * 1024 * 1024,
            elements_max: u32::MAX as usize,
        }
    }
}

/// Why bytes are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// No type begins with this byte.
    UnknownType(u8),
    /// A number, double, boolean or null is malformed.
    Malformed,
    /// A string is not followed by a line end.
    MissingLineEnd,
    /// A line does not end within 64 KiB.
    LineTooLong,
    /// A string or an aggregate exceeds the limits.
    TooLarge,
    /// Aggregates nest too deeply.
    TooDeep,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::UnknownType(byte) => {
                write!(f, "no reply type begins with byte {byte:#04x}")
            }
            DecodeError::Malformed => f.write_str("malformed number or constant in a reply"),
            DecodeError::MissingLineEnd => f.write_str("string in a reply without its line end"),
            DecodeError::LineTooLong => f.write_str("line in a reply too long"),
            DecodeError::TooLarge => f.write_str("string or aggregate in a reply too large"),
            DecodeError::TooDeep => f.write_str("reply nested too deeply"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Decodes the reply at the start of `bytes` and tells how many bytes it took; `None` when it is incomplete.
pub fn decode_reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, DecodeError> {
    decode_reply_within(bytes, &DecodeLimits::default())
}

/// As [`decode_reply`], with other limits.
pub fn decode_reply_within(
    bytes: &[u8],
    limits: &DecodeLimits,
) -> Result<Option<(Reply, usize)>, DecodeError> {
    let mut decoder = Decoder {
        bytes,
        position: 0,
        limits,
    };
    match decoder.reply(0) {
        Ok(reply) => Ok(Some((reply, decoder.position))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Error(error)) => Err(error),
    }
}

enum Stop {
    Incomplete,
    Error(DecodeError),
}

impl From<DecodeError> for Stop {
    fn from(error: DecodeError) -> Stop {
        Stop::Error(error)
    }
}

struct Decoder<'a> {
    bytes: &'a [u8],
    position: usize,
    limits: &'a DecodeLimits,
}

impl<'a> Decoder<'a> {
    fn reply(&mut self, depth: usize) -> Result<Reply, Stop> {
        let kind = *self.bytes.get(self.position).ok_or(Stop::Incomplete)?;
        if !b"+-:$*_%~>,#(=!|".contains(&kind) {
            return Err(DecodeError::UnknownType(kind).into());
        }
        self.position += 1;
        let line = self.line()?;
        Ok(match kind {
            b'+' => Reply::Simple(line.to_vec()),
            b'-' => Reply::Error(line.to_vec()),
            b':' => Reply::Integer(integer(line)?),
            b',' => Reply::Double(double(line)?),
            b'(' => Reply::BigNumber(big_number(line)?),
            b'#' => Reply::Boolean(match line {
                b"t" => true,
                b"f" => false,
                _ => return Err(DecodeError::Malformed.into()),
            }),
            b'_' if line.is_empty() => Reply::Null,
            b'_' => return Err(DecodeError::Malformed.into()),
            b'$' if line == b"-1" => Reply::NullBulk,
            b'*' if line == b"-1" => Reply::NullArray,
            b'$' => Reply::Bulk(self.string(line)?.to_vec()),
            b'!' => Reply::BulkError(self.string(line)?.to_vec()),
            b'=' => match self.string(line)? {
                [a, b, c, b':', text @ ..] => Reply::Verbatim([*a, *b, *c], text.to_vec()),
                _ => return Err(DecodeError::Malformed.into()),
            },
            b'*' => Reply::Array(self.elements(line, depth)?),
            b'~' => Reply::Set(self.elements(line, depth)?),
            b'>' => Reply::Push(self.elements(line, depth)?),
            b'%' => Reply::Map(self.pairs(line, depth)?),
            _ => {
                let pairs = self.pairs(line, depth)?;
                Reply::Attribute(pairs, Box::new(self.reply(deeper(depth, self.limits)?)?))
            }
        })
    }

    /// The rest of the line, without its end.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.position..];
        let window = &rest[..rest.len().min(header::LINE_MAX + 1)];
        match memchr(b'\r', window) {
            Some(end) => match rest.get(end + 1) {
                Some(b'\n') => {
                    self.position += end + 2;
                    Ok(&rest[..end])
                }
                Some(_) => Err(DecodeError::MissingLineEnd.into()),
                None => Err(Stop::Incomplete),
            },
            None if rest.len() > header::LINE_MAX => Err(DecodeError::LineTooLong.into()),
            None => Err(Stop::Incomplete),
        }
    }

    /// The string whose length is `line`.
    fn string(&mut self, line: &[u8]) -> Result<&'a [u8], Stop> {
        let len = count(line, self.limits.bulk_max)?;
        let rest = &self.bytes[self.position..];
        let text = rest.get(..len).ok_or(Stop::Incomplete)?;
        match &rest[len..] {
            [b'\r', b'\n', ..] => {
                self.position += len + 2;
                Ok(text)
            }
            [] | [b'\r'] => Err(Stop::Incomplete),
            _ => Err(DecodeError::MissingLineEnd.into()),
        }
    }

    fn elements(&mut self, line: &[u8], depth: usize) -> Result<Vec<Reply>, Stop> {
        let count = count(line, self.limits.elements_max)?;
        let depth = deeper(depth, self.limits)?;
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(self.reply(depth)?);
        }
        Ok(elements)
    }

    fn pairs(&mut self, line: &[u8], depth: usize) -> Result<Vec<(Reply, Reply)>, Stop> {
        let count = count(line, self.limits.elements_max / 2)?;
        let depth = deeper(depth, self.limits)?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            let key = self.reply(depth)?;
            pairs.push((key, self.reply(depth)?));
        }
        Ok(pairs)
    }
}

fn deeper(depth: usize, limits: &DecodeLimits) -> Result<usize, DecodeError> {
    if depth < limits.depth_max {
        Ok(depth + 1)
    } else {
        Err(DecodeError::TooDeep)
    }
}

fn integer(line: &[u8]) -> Result<i64, DecodeError> {
    header::integer(line.strip_prefix(b"+").unwrap_or(line)).ok_or(DecodeError::Malformed)
}

fn count(line: &[u8], max: usize) -> Result<usize, DecodeError> {
    let count = usize::try_from(integer(line)?).map_err(|_| DecodeError::Malformed)?;
    if count <= max {
        Ok(count)
    } else {
        Err(DecodeError::TooLarge)
    }
}

fn big_number(line: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let digits = line
        .strip_prefix(b"-")
        .or_else(|| line.strip_prefix(b"+"))
        .unwrap_or(line);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(DecodeError::Malformed);
    }
    Ok(line.to_vec())
}

fn double(line: &[u8]) -> Result<f64, DecodeError> {
    match line {
        b"inf" => Ok(f64::INFINITY),
        b"-inf" => Ok(f64::NEG_INFINITY),
        b"nan" | b"-nan" => Ok(f64::NAN),
        _ if line
            .first()
            .is_none_or(|byte| !byte.is_ascii_digit() && !matches!(byte, b'-' | b'+' | b'.')) =>
        {
            Err(DecodeError::Malformed)
        }
        _ => std::str::from_utf8(line)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or(DecodeError::Malformed),
    }
}
