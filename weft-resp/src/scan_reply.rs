//! Where replies end, for readers that need no more than that: load generators, proxies.
//!
//! Owns the framing of every RESP2 and RESP3 type over bytes that come in pieces: nothing is built, nothing is looked at
//! twice, and where a reply goes on in the next piece the scanner remembers how far it was. Does not check what stands
//! in a line that holds a value; [`decode_reply`](crate::decode_reply) does. Invariants: how a stream is cut changes
//! nothing; memory grows with the nesting only, which [`DecodeLimits`] bounds.

use memchr::memchr;

use crate::decode::{DecodeError, DecodeLimits};
use crate::header;

/// What kind of thing a reply is, told by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyClass {
    /// An answer that holds something.
    Value,
    /// The absent value, string or array.
    Null,
    /// An error.
    Error,
    /// A message that answers no request.
    Push,
}

/// A reply whose end has been found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScannedReply {
    /// Bytes of the piece that belong to it. If it began in this piece, they are all of it.
    pub len: usize,
    /// What it is.
    pub class: ReplyClass,
}

/// Finds the ends of the replies in one stream.
#[derive(Debug, Default)]
pub struct ReplyScanner {
    limits: DecodeLimits,
    place: Place,
    /// Of the reply under way.
    class: Option<ReplyClass>,
    /// The aggregates that are open, outermost first.
    open: Vec<Aggregate>,
    /// The digits so far of a number that was cut.
    number: Number,
}

#[derive(Clone, Copy, Debug)]
struct Aggregate {
    /// Elements that are missing; at least one.
    missing: u64,
    /// Attributes stand before a reply and are none.
    attribute: bool,
}

/// Where in a reply the scanner stands.
#[derive(Clone, Copy, Debug, Default)]
enum Place {
    /// Before a type byte.
    #[default]
    Type,
    /// In a line that holds a value, after so many bytes.
    Line(usize),
    /// Before the line feed of such a line.
    LineFeed,
    /// In a line that holds a length or a count, of this type.
    Count(u8),
    /// Before the line feed of such a line.
    CountLineFeed(u8),
    /// In a string of which so many bytes are missing.
    String(usize),
    /// Before the line feed behind a string.
    StringLineFeed,
}

/// More digits than a 64-bit number has, its sign included.
const NUMBER_BYTES: usize = 24;

#[derive(Clone, Copy, Debug, Default)]
struct Number {
    bytes: [u8; NUMBER_BYTES],
    len: usize,
}

impl Number {
    fn push(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let end = self.len + bytes.len();
        let room = self
            .bytes
            .get_mut(self.len..end)
            .ok_or(DecodeError::Malformed)?;
        room.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    /// The count it stands for; `None` is minus one.
    fn take(&mut self) -> Result<Option<u64>, DecodeError> {
        let digits = &self.bytes[..self.len];
        let digits = digits.strip_prefix(b"+").unwrap_or(digits);
        let value = header::integer(digits).ok_or(DecodeError::Malformed)?;
        self.len = 0;
        match u64::try_from(value) {
            Ok(count) => Ok(Some(count)),
            Err(_) if value == -1 => Ok(None),
            Err(_) => Err(DecodeError::Malformed),
        }
    }
}

impl ReplyScanner {
    /// A scanner at the start of a stream.
    pub fn new(limits: DecodeLimits) -> ReplyScanner {
        ReplyScanner {
            limits,
            ..ReplyScanner::default()
        }
    }

    /// Whether the last piece ended between two replies.
    pub fn is_between_replies(&self) -> bool {
        self.open.is_empty() && self.class.is_none()
    }

    /// The class of the reply that has begun, as far as it is known.
    pub fn class(&self) -> Option<ReplyClass> {
        self.class
    }

    /// Looks for the end of the reply under way in `bytes`, which follow what it has been given before. Behind the end,
    /// bytes are left for the next call; `None`: all of them belong to a reply that goes on. After an error the stream
    /// is lost.
    #[inline]
    pub fn scan(&mut self, bytes: &[u8]) -> Result<Option<ScannedReply>, DecodeError> {
        // The whole of a short string or a short line, as most replies are.
        if let Place::Type = self.place
            && self.open.is_empty()
            && let Some(reply) = whole(bytes)
        {
            self.class = None;
            return Ok(Some(reply));
        }
        self.scan_on(bytes)
    }

    fn scan_on(&mut self, bytes: &[u8]) -> Result<Option<ScannedReply>, DecodeError> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let (taken, element_ended) = match self.place {
                Place::Type => self.begin(rest)?,
                Place::Line(before) => (self.line(rest, before)?, false),
                Place::LineFeed | Place::StringLineFeed => {
                    line_feed(rest)?;
                    (1, true)
                }
                Place::Count(kind) => (self.count(rest, kind)?, false),
                Place::CountLineFeed(kind) => {
                    line_feed(rest)?;
                    (1, self.counted(kind)?)
                }
                Place::String(missing) => self.string(rest, missing)?,
            };
            at += taken;
            if element_ended {
                self.place = Place::Type;
                if self.close_aggregates() {
                    let class = self.class.take().unwrap_or(ReplyClass::Value);
                    return Ok(Some(ScannedReply { len: at, class }));
                }
            }
        }
        Ok(None)
    }

    /// An element ended: true if the reply did with it.
    fn close_aggregates(&mut self) -> bool {
        while let Some(aggregate) = self.open.last_mut() {
            aggregate.missing -= 1;
            if aggregate.missing > 0 {
                return false;
            }
            let attribute = aggregate.attribute;
            self.open.pop();
            if attribute {
                return false;
            }
        }
        true
    }

    /// The bytes taken, and whether an element ended with them.
    fn begin(&mut self, rest: &[u8]) -> Result<(usize, bool), DecodeError> {
        let kind = rest[0];
        if self.open.is_empty() {
            self.class = Some(match kind {
                b'-' | b'!' => ReplyClass::Error,
                b'>' => ReplyClass::Push,
                b'_' => ReplyClass::Null,
                _ => ReplyClass::Value,
            });
        }
        match kind {
            b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(' => {
                self.place = Place::Line(0);
                Ok((1, false))
            }
            b'$' | b'!' | b'=' | b'*' | b'~' | b'>' | b'%' | b'|' => match header::short(rest) {
                Some((count, taken)) => {
                    if rest[taken - 1] != b'\n' {
                        return Err(DecodeError::MissingLineEnd);
                    }
                    Ok((taken, self.sized(kind, count as u64)?))
                }
                None => {
                    self.number.len = 0;
                    self.place = Place::Count(kind);
                    Ok((1, false))
                }
            },
            _ => Err(DecodeError::UnknownType(kind)),
        }
    }

    fn line(&mut self, rest: &[u8], before: usize) -> Result<usize, DecodeError> {
        let window = &rest[..rest.len().min(header::LINE_MAX + 1 - before)];
        if let Some(end) = memchr(b'\r', window) {
            self.place = Place::LineFeed;
            return Ok(end + 1);
        }
        let seen = before + window.len();
        if seen > header::LINE_MAX {
            return Err(DecodeError::LineTooLong);
        }
        self.place = Place::Line(seen);
        Ok(window.len())
    }

    fn count(&mut self, rest: &[u8], kind: u8) -> Result<usize, DecodeError> {
        let window = &rest[..rest.len().min(NUMBER_BYTES + 1)];
        match memchr(b'\r', window) {
            Some(end) => {
                self.number.push(&window[..end])?;
                self.place = Place::CountLineFeed(kind);
                Ok(end + 1)
            }
            None => {
                self.number.push(window)?;
                Ok(window.len())
            }
        }
    }

    fn counted(&mut self, kind: u8) -> Result<bool, DecodeError> {
        match self.number.take()? {
            Some(count) => self.sized(kind, count),
            None if matches!(kind, b'$' | b'*') => {
                if self.open.is_empty() {
                    self.class = Some(ReplyClass::Null);
                }
                Ok(true)
            }
            None => Err(DecodeError::Malformed),
        }
    }

    /// A string or an aggregate of this type and size begins: true if that is also its end.
    fn sized(&mut self, kind: u8, count: u64) -> Result<bool, DecodeError> {
        if let b'$' | b'!' | b'=' = kind {
            if count > self.limits.bulk_max as u64 {
                return Err(DecodeError::TooLarge);
            }
            self.place = Place::String(count as usize);
            return Ok(false);
        }
        let attribute = kind == b'|';
        let paired = attribute || kind == b'%';
        let max = self.limits.elements_max as u64;
        if count > if paired { max / 2 } else { max } {
            return Err(DecodeError::TooLarge);
        }
        if self.open.len() >= self.limits.depth_max {
            return Err(DecodeError::TooDeep);
        }
        self.place = Place::Type;
        if count == 0 {
            return Ok(!attribute);
        }
        self.open.push(Aggregate {
            missing: if paired { count * 2 } else { count },
            attribute,
        });
        Ok(false)
    }

    fn string(&mut self, rest: &[u8], missing: usize) -> Result<(usize, bool), DecodeError> {
        match rest.get(missing..) {
            Some([b'\r', b'\n', ..]) => Ok((missing + 2, true)),
            Some([b'\r']) => {
                self.place = Place::StringLineFeed;
                Ok((missing + 1, false))
            }
            Some([_, ..]) => Err(DecodeError::MissingLineEnd),
            Some([]) | None => {
                self.place = Place::String(missing - rest.len());
                Ok((rest.len(), false))
            }
        }
    }
}

fn line_feed(rest: &[u8]) -> Result<(), DecodeError> {
    if rest[0] == b'\n' {
        Ok(())
    } else {
        Err(DecodeError::MissingLineEnd)
    }
}

/// The reply at the start of `bytes`, if it is a string of up to 999 bytes or `+OK`, and all there.
#[inline]
fn whole(bytes: &[u8]) -> Option<ScannedReply> {
    let len = match bytes {
        [b'$', ..] => {
            let (count, taken) = header::short(bytes)?;
            let end = taken + count;
            if bytes[taken - 1] != b'\n' || bytes.get(end..end + 2)? != b"\r\n" {
                return None;
            }
            end + 2
        }
        [b'+', b'O', b'K', b'\r', b'\n', ..] => 5,
        _ => return None,
    };
    Some(ScannedReply {
        len,
        class: ReplyClass::Value,
    })
}
