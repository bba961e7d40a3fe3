//! Replies onto the wire.
//!
//! Owns the encoding of every reply type, with what RESP2 gets in place of the types it lacks. Does not know commands.
//! The frequent ones (bulk strings, integers, array headers) are a few plain stores into the output's tail.

use std::ops::Range;

use weft_rope::{Mark, Output, Rope};

use crate::double;
use crate::probe::Probe;
use crate::protocol::Protocol;

/// Encodes replies into an [`Output`]. Nested replies are written after the header that counts them.
#[derive(Debug)]
pub struct Writer<'a> {
    /// Where the bytes go.
    pub out: &'a mut Output,
    /// What the connection speaks.
    pub protocol: Protocol,
    probe: Option<&'a Probe<'a>>,
}

/// An aggregate whose size is told by [`Writer::finish`], once it is known. Finished last in, first out.
#[derive(Debug)]
#[must_use]
pub struct Deferred {
    mark: Mark,
    kind: Aggregate,
}

#[derive(Clone, Copy, Debug)]
enum Aggregate {
    Array,
    Map,
    Set,
}

impl<'a> Writer<'a> {
    /// A writer of `protocol` into `out`.
    #[inline]
    pub fn new(out: &'a mut Output, protocol: Protocol) -> Writer<'a> {
        Writer {
            out,
            protocol,
            probe: None,
        }
    }

    /// The same, its time measured by `probe` if there is one.
    #[inline]
    pub fn probed(
        out: &'a mut Output,
        protocol: Protocol,
        probe: Option<&'a Probe<'a>>,
    ) -> Writer<'a> {
        Writer {
            out,
            protocol,
            probe,
        }
    }

    /// From here on replies are written in `protocol`.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// `+text`. Line ends in `text` become spaces.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.ok());
        }
        self.out.tail().extend_from_slice(b"+OK\r\n");
    }

    /// `-text`, which begins with its code: `ERR no such key`. Line ends at the end of `text` are dropped, others
    /// become spaces.
    pub fn error(&mut self, text: &str) {
        self.error_bytes(text.as_bytes());
    }

    /// As [`Writer::error`], for texts that quote bytes of a client.
    pub fn error_bytes(&mut self, text: &[u8]) {
        let kept = text
            .iter()
            .rposition(|byte| !is_line_end(*byte))
            .map_or(0, |last| last + 1);
        self.line(b'-', &text[..kept]);
    }

    /// `:value`.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.integer(value));
        }
        number_line(self.out.tail(), b':', value);
    }

    /// A bulk string holding `bytes`.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.bulk(bytes));
        }
        let tail = self.out.tail();
        tail.reserve(bytes.len() + NUMBER_LINE_MAX + 2);
        header(tail, b'$', bytes.len());
        tail.extend_from_slice(bytes);
        tail.extend_from_slice(b"\r\n");
    }

    /// A bulk string holding the bytes of `rope`, lent to the output when they are many.
    pub fn bulk_rope(&mut self, rope: &Rope) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.bulk_rope(rope));
        }
        header(self.out.tail(), b'$', rope.len());
        self.out.push_rope(rope);
        self.out.tail().extend_from_slice(b"\r\n");
    }

    /// A bulk string holding a part of `rope`, lent to the output when it is long.
    pub fn bulk_rope_range(&mut self, rope: &Rope, range: Range<usize>) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.bulk_rope_range(rope, range));
        }
        header(self.out.tail(), b'$', range.len());
        self.out.push_rope_range(rope, range);
        self.out.tail().extend_from_slice(b"\r\n");
    }

    /// A bulk string holding `value` in decimal.
    #[inline]
    pub fn bulk_integer(&mut self, value: i64) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.bulk_integer(value));
        }
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A bulk string holding `value` as [`Writer::double`] prints it.
    pub fn bulk_double(&mut self, value: f64) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.bulk_double(value));
        }
        self.bulk(double::double_text(value).as_bytes());
    }

    /// The absence of a value: `_`, in RESP2 the null bulk string `$-1`.
    #[inline]
    pub fn null(&mut self) {
        self.by_protocol(b"$-1\r\n", b"_\r\n");
    }

    /// The absence of an array: `_`, in RESP2 the null array `*-1`.
    #[inline]
    pub fn null_array(&mut self) {
        self.by_protocol(b"*-1\r\n", b"_\r\n");
    }

    /// The header of an array of `count` elements.
    #[inline]
    pub fn array(&mut self, count: usize) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.array(count));
        }
        header(self.out.tail(), b'*', count);
    }

    /// The header of a map of `pairs` keys and values; in RESP2 of an array of twice as many elements.
    #[inline]
    pub fn map(&mut self, pairs: usize) {
        self.aggregate(Aggregate::Map, pairs);
    }

    /// The header of a set of `count` elements; in RESP2 of an array.
    #[inline]
    pub fn set(&mut self, count: usize) {
        self.aggregate(Aggregate::Set, count);
    }

    /// The header of a push message of `count` elements; in RESP2 of an array.
    #[inline]
    pub fn push(&mut self, count: usize) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.push(count));
        }
        let kind = if self.protocol == Protocol::Resp3 {
            b'>'
        } else {
            b'*'
        };
        header(self.out.tail(), kind, count);
    }

    /// The header of attributes of the next reply, `pairs` keys and values. RESP2 has none: then nothing is written,
    /// the answer is false, and the keys and values must be left out.
    #[must_use = "the pairs are written only if this is true"]
    pub fn attribute(&mut self, pairs: usize) -> bool {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.attribute(pairs));
        }
        let known = self.protocol == Protocol::Resp3;
        if known {
            header(self.out.tail(), b'|', pairs);
        }
        known
    }

    /// `,value`, in RESP2 a bulk string: `inf`, `-inf`, `nan` or the shortest digits that read back the same.
    pub fn double(&mut self, value: f64) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.double(value));
        }
        let text = double::double_text(value);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// `#t` or `#f`, in RESP2 the integer 1 or 0.
    #[inline]
    pub fn boolean(&mut self, value: bool) {
        if value {
            self.by_protocol(b":1\r\n", b"#t\r\n");
        } else {
            self.by_protocol(b":0\r\n", b"#f\r\n");
        }
    }

    /// `(digits`, in RESP2 a bulk string. `digits` is an optional minus sign and decimal digits.
    pub fn big_number(&mut self, digits: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(digits.as_bytes()),
            Protocol::Resp3 => self.line(b'(', digits.as_bytes()),
        }
    }

    /// A string with a three-byte format (`txt`, `mkd`), in RESP2 a bulk string without it. A format of another
    /// length is cut or filled with spaces.
    pub fn verbatim(&mut self, format: &str, bytes: &[u8]) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.verbatim(format, bytes));
        }
        if self.protocol == Protocol::Resp2 {
            return self.bulk(bytes);
        }
        let mut prefix = *b"   :";
        prefix
            .iter_mut()
            .zip(format.bytes().take(3))
            .for_each(|(slot, byte)| *slot = byte);
        let tail = self.out.tail();
        header(tail, b'=', bytes.len() + prefix.len());
        tail.extend_from_slice(&prefix);
        tail.extend_from_slice(bytes);
        tail.extend_from_slice(b"\r\n");
    }

    /// Begins an array whose size is not known yet.
    pub fn deferred_array(&mut self) -> Deferred {
        self.deferred(Aggregate::Array)
    }

    /// Begins a map whose size is not known yet.
    pub fn deferred_map(&mut self) -> Deferred {
        self.deferred(Aggregate::Map)
    }

    /// Begins a set whose size is not known yet.
    pub fn deferred_set(&mut self) -> Deferred {
        self.deferred(Aggregate::Set)
    }

    /// Tells the size of a deferred aggregate: elements of an array or set, pairs of a map.
    pub fn finish(&mut self, deferred: Deferred, count: usize) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.finish(deferred, count));
        }
        let (kind, count) = self.shape(deferred.kind, count);
        let mut line = Vec::with_capacity(NUMBER_LINE_MAX);
        header(&mut line, kind, count);
        self.out.insert(deferred.mark, &line);
    }

    /// Appends bytes that are already encoded.
    #[inline]
    pub fn raw(&mut self, encoded: &[u8]) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.raw(encoded));
        }
        self.out.tail().extend_from_slice(encoded);
    }

    /// Runs a call of this writer under the probe, and what that calls in turn without.
    #[cold]
    #[inline(never)]
    fn measured<R>(&mut self, probe: &'a Probe<'a>, call: impl FnOnce(&mut Writer<'a>) -> R) -> R {
        self.probe = None;
        let result = probe.measure(|| call(self));
        self.probe = Some(probe);
        result
    }

    fn deferred(&mut self, kind: Aggregate) -> Deferred {
        Deferred {
            mark: self.out.mark(),
            kind,
        }
    }

    #[inline]
    fn aggregate(&mut self, kind: Aggregate, count: usize) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.aggregate(kind, count));
        }
        let (kind, count) = self.shape(kind, count);
        header(self.out.tail(), kind, count);
    }

    #[inline]
    fn shape(&self, kind: Aggregate, count: usize) -> (u8, usize) {
        match (kind, self.protocol) {
            (Aggregate::Map, Protocol::Resp3) => (b'%', count),
            (Aggregate::Set, Protocol::Resp3) => (b'~', count),
            (Aggregate::Map, Protocol::Resp2) => (b'*', count * 2),
            (Aggregate::Array, _) | (Aggregate::Set, Protocol::Resp2) => (b'*', count),
        }
    }

    #[inline]
    fn by_protocol<const RESP2: usize, const RESP3: usize>(
        &mut self,
        resp2: &[u8; RESP2],
        resp3: &[u8; RESP3],
    ) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.by_protocol(resp2, resp3));
        }
        // Arrays, not slices: each branch is then one store.
        match self.protocol {
            Protocol::Resp2 => self.out.tail().extend_from_slice(resp2),
            Protocol::Resp3 => self.out.tail().extend_from_slice(resp3),
        }
    }

    /// A line of `text`, in which line ends become spaces.
    fn line(&mut self, kind: u8, text: &[u8]) {
        if let Some(probe) = self.probe {
            return self.measured(probe, |writer| writer.line(kind, text));
        }
        let tail = self.out.tail();
        tail.reserve(text.len() + 3);
        tail.push(kind);
        let start = tail.len();
        tail.extend_from_slice(text);
        tail[start..]
            .iter_mut()
            .filter(|byte| is_line_end(**byte))
            .for_each(|byte| *byte = b' ');
        tail.extend_from_slice(b"\r\n");
    }
}

/// Room for a type byte, any integer and the line end.
const NUMBER_LINE_MAX: usize = 24;

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Appends the header of a string or an aggregate.
#[inline]
pub(crate) fn header(tail: &mut Vec<u8>, kind: u8, count: usize) {
    number_line(tail, kind, count as i64);
}

/// Appends `kind`, `value` and a line end. Numbers below 1000 are one store of eight bytes, cut to size.
#[inline]
fn number_line(tail: &mut Vec<u8>, kind: u8, value: i64) {
    if (0..10).contains(&value) {
        tail.extend_from_slice(&[kind, b'0' + value as u8, b'\r', b'\n']);
    } else if (10..100).contains(&value) {
        let value = value as u8;
        tail.extend_from_slice(&[
            kind,
            b'0' + value / 10,
            b'0' + value % 10,
            b'\r',
            b'\n',
            0,
            0,
            0,
        ]);
        tail.truncate(tail.len() - 3);
    } else if (100..1000).contains(&value) {
        let value = value as u16;
        let (hundreds, rest) = ((value / 100) as u8, (value % 100) as u8);
        let digits = [b'0' + hundreds, b'0' + rest / 10, b'0' + rest % 10];
        tail.extend_from_slice(&[kind, digits[0], digits[1], digits[2], b'\r', b'\n', 0, 0]);
        tail.truncate(tail.len() - 2);
    } else {
        long_number_line(tail, kind, value);
    }
}

/// As `number_line`, for any number: built from its end backwards.
fn long_number_line(tail: &mut Vec<u8>, kind: u8, value: i64) {
    let mut line = [0; NUMBER_LINE_MAX];
    let [body @ .., carriage_return, newline] = &mut line;
    (*carriage_return, *newline) = (b'\r', b'\n');
    let mut start = body.len();
    let mut rest = value.unsigned_abs();
    while rest >= 100 {
        let pair = (rest % 100) as u8;
        rest /= 100;
        start -= 2;
        body[start] = b'0' + pair / 10;
        body[start + 1] = b'0' + pair % 10;
    }
    start -= 1;
    body[start] = b'0' + (rest % 10) as u8;
    if rest >= 10 {
        start -= 1;
        body[start] = b'0' + (rest / 10) as u8;
    }
    if value < 0 {
        start -= 1;
        body[start] = b'-';
    }
    start -= 1;
    body[start] = kind;
    tail.extend_from_slice(&line[start..]);
}
