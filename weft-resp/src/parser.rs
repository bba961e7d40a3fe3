//! Requests out of a byte stream, in place.
//!
//! Owns the state of one connection's input: the bytes of an unfinished request and how far it has been parsed. Does
//! not know what a request means. A request that arrived whole is parsed where it lies and nothing is copied; only
//! an unfinished one is kept. Arguments above 64 KiB go into a rope as they arrive. Invariants: no byte of a finished
//! argument is looked at twice, however the stream is cut; nothing is allocated for lengths that are only announced,
//! beyond one chunk.
//!
//! ```text
//! begin(data) -> Source   parse(Source)* -> Requests   end(Source)
//!      |                                                  |
//!      +-- joins what `end` kept with the new bytes <-----+
//! ```

use std::borrow::Cow;
use std::ops::Deref;

use memchr::memchr2;
use weft_rope::{CHUNK_BYTES, Chunk, Rope};

use crate::args::{Place, Requests, Span, Store};
use crate::error::ProtocolError;
use crate::header::{self, LineEnd};
use crate::inline;

/// An argument longer than this (in bytes) is received into a rope.
pub const LARGE_ARGUMENT_BYTES: usize = Span::LEN_MAX;

/// The longest argument of a client that has not authenticated, in bytes.
const UNAUTHENTICATED_BULK_MAX: usize = 16 * 1024;

/// The most arguments of a client that has not authenticated.
const UNAUTHENTICATED_MULTIBULK_MAX: usize = 10;

/// A kept buffer with more capacity than this is shrunk when it is mostly unused.
const ROOMY_BYTES: usize = 32 * 1024;

/// What a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest argument in bytes (`proto-max-bulk-len`; Redis's default is 512 MiB).
    pub bulk_max: usize,
    /// The longest inline request in bytes; at most 64 KiB, Redis's fixed value.
    pub inline_max: usize,
    /// The most arguments of one request; Redis's fixed value is the largest 32-bit integer.
    pub multibulk_max: usize,
    /// Whether the client has authenticated or need not. If not, a request has at most 10 arguments of at most 16 KiB.
    /// Since a request may change this, parse one request at a time while it is false.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bulk_max: 512 * 1024 * 1024,
            inline_max: 64 * 1024,
            multibulk_max: i32::MAX as usize,
            authenticated: true,
        }
    }
}

impl Limits {
    #[inline]
    fn bulk(&self) -> usize {
        if self.authenticated {
            self.bulk_max
        } else {
            self.bulk_max.min(UNAUTHENTICATED_BULK_MAX)
        }
    }

    #[inline]
    fn multibulk(&self) -> usize {
        if self.authenticated {
            self.multibulk_max
        } else {
            self.multibulk_max.min(UNAUTHENTICATED_MULTIBULK_MAX)
        }
    }
}

/// The bytes to parse: those received, or, when a request was unfinished, the kept ones and those received.
#[derive(Debug)]
pub struct Source<'a> {
    bytes: Cow<'a, [u8]>,
}

impl Deref for Source<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// One connection's input. Holds nothing but three words while no request is unfinished.
#[derive(Debug, Default)]
pub struct RequestParser {
    /// Bytes kept from earlier reads.
    pending: Vec<u8>,
    /// How far the source has been consumed; between `end` and `begin`, how far `pending` has.
    position: usize,
    /// How far the request at `position` has been parsed, if it is an unfinished multibulk.
    partial: Option<Box<Partial>>,
}

impl RequestParser {
    /// A parser that has seen nothing; allocates nothing.
    pub fn new() -> RequestParser {
        RequestParser::default()
    }

    /// Takes newly received bytes: `data` itself when nothing is pending, otherwise the joined buffer. What continues
    /// a large argument goes straight into its rope and is not part of the source.
    pub fn begin<'a>(&mut self, mut data: &'a [u8]) -> Source<'a> {
        if let Some(partial) = &mut self.partial {
            data = &data[partial.feed(data)..];
        }
        if self.pending.is_empty() {
            self.position = 0;
            return Source {
                bytes: Cow::Borrowed(data),
            };
        }
        self.pending.extend_from_slice(data);
        Source {
            bytes: Cow::Owned(std::mem::take(&mut self.pending)),
        }
    }

    /// Appends up to `max_requests` requests to `out` and tells whether more complete ones may remain. Empty requests
    /// (blank lines, counts below one) are skipped. After an error the connection must be closed; the requests before
    /// the bad one are in `out`, and everything behind it is dropped.
    pub fn parse(
        &mut self,
        source: &Source<'_>,
        limits: &Limits,
        max_requests: usize,
        out: &mut Requests,
    ) -> Result<bool, ProtocolError> {
        let result = self.requests(source, limits, max_requests, out);
        if result.is_err() {
            self.position = source.len();
            self.partial = None;
            out.spans.truncate(out.finished_spans());
        }
        result
    }

    /// Gives the source back; what is unfinished in it is kept.
    pub fn end(&mut self, source: Source<'_>) {
        // What follows the header of a large argument is already in its rope.
        let large = self
            .partial
            .as_ref()
            .filter(|partial| partial.large.is_some());
        let end = large.map_or(source.len(), |partial| self.position + partial.position);
        match source.bytes {
            Cow::Borrowed(data) => {
                self.pending.extend_from_slice(&data[self.position..end]);
                self.position = 0;
            }
            Cow::Owned(mut bytes) => {
                bytes.truncate(end);
                // Moving the rest to the front each time would be quadratic when little is consumed at a time.
                if self.position >= bytes.len() / 2 {
                    bytes.drain(..self.position);
                    self.position = 0;
                    if bytes.capacity() > ROOMY_BYTES && bytes.len() < bytes.capacity() / 4 {
                        bytes.shrink_to(bytes.len() * 2);
                    }
                }
                if !bytes.is_empty() {
                    self.pending = bytes;
                }
            }
        }
    }

    /// Where the next bytes of the connection belong, if they are the inside of a large argument: never empty, and
    /// never longer than what is missing. Only between `end` and `begin`.
    pub fn large_target(&mut self) -> Option<&mut [u8]> {
        self.partial.as_mut()?.large.as_mut()?.target()
    }

    /// Notes that `count` bytes were written to the front of [`RequestParser::large_target`].
    ///
    /// # Panics
    /// When that is more than it held.
    pub fn large_filled(&mut self, count: usize) {
        if let Some(large) = self
            .partial
            .as_mut()
            .and_then(|partial| partial.large.as_mut())
        {
            large.filled(count);
        }
    }

    /// Bytes held for unfinished requests, for `client-query-buffer-limit`.
    pub fn buffered_bytes(&self) -> usize {
        self.pending.len() - self.position.min(self.pending.len())
            + self.partial.as_ref().map_or(0, |partial| partial.bytes())
    }

    /// Bytes of memory held for unfinished requests, at least as many as are buffered.
    pub fn allocated_bytes(&self) -> usize {
        self.pending.capacity() + self.partial.as_ref().map_or(0, |partial| partial.bytes())
    }

    fn requests(
        &mut self,
        source: &[u8],
        limits: &Limits,
        max_requests: usize,
        out: &mut Requests,
    ) -> Result<bool, ProtocolError> {
        let full = out.len().saturating_add(max_requests);
        if max_requests == 0 {
            return Ok(self.position < source.len());
        }
        if let Some(partial) = &mut self.partial {
            let Some(consumed) = partial.resume(&source[self.position..], limits)? else {
                return Ok(false);
            };
            partial.hand_over(self.position, out);
            self.partial = None;
            self.position += consumed;
        }
        let mut at = self.position;
        let more = loop {
            if out.len() >= full {
                break at < source.len();
            }
            let Some(&first) = source.get(at) else {
                break false;
            };
            let consumed = if first == b'*' {
                match multibulk(source, at, limits, out)? {
                    Parsed::Consumed(count) => count,
                    Parsed::Incomplete => break false,
                    Parsed::Partial(partial) => {
                        self.partial = Some(partial);
                        break false;
                    }
                }
            } else {
                match inline_request(source, at, limits, out)? {
                    Some(count) => count,
                    None => break false,
                }
            };
            at += consumed;
        };
        self.position = at;
        Ok(more)
    }
}

/// What became of the request at some position.
enum Parsed {
    /// It took this many bytes.
    Consumed(usize),
    /// It is unfinished, and nothing is known of it that is worth keeping.
    Incomplete,
    /// It is unfinished, parsed so far.
    Partial(Box<Partial>),
}

/// Parses the multibulk at `start`.
#[inline]
fn multibulk(
    source: &[u8],
    start: usize,
    limits: &Limits,
    out: &mut Requests,
) -> Result<Parsed, ProtocolError> {
    let rest = &source[start..];
    let (count, header) = match header::short(rest) {
        Some((count, header)) if count <= limits.multibulk() => (count, header),
        _ => match multibulk_header(rest, limits)? {
            Some(found) => found,
            None => return Ok(Parsed::Incomplete),
        },
    };
    if count == 0 {
        return Ok(Parsed::Consumed(header));
    }
    let mut position = start + header;
    let mut missing = count;
    match arguments(
        source,
        &mut position,
        &mut missing,
        limits,
        &mut out.spans,
        &mut out.store,
    )? {
        Status::Complete => {
            out.finish();
            Ok(Parsed::Consumed(position - start))
        }
        status => Ok(Parsed::Partial(Partial::new(
            start, position, missing, status, source, out,
        ))),
    }
}

/// The count of a multibulk and the length of its header; negative counts are zero. `None` when it is incomplete.
#[cold]
fn multibulk_header(rest: &[u8], limits: &Limits) -> Result<Option<(usize, usize)>, ProtocolError> {
    let end = match header::line_end(rest) {
        LineEnd::At(end) => end,
        LineEnd::Incomplete => return Ok(None),
        LineEnd::TooBig => return Err(ProtocolError::MultibulkCountTooBig),
    };
    let count = header::integer(&rest[1..end]).ok_or(ProtocolError::InvalidMultibulkLength)?;
    let count = usize::try_from(count).unwrap_or(0);
    if count > limits.multibulk_max {
        return Err(ProtocolError::InvalidMultibulkLength);
    }
    if count > limits.multibulk() {
        return Err(ProtocolError::UnauthenticatedMultibulkLength);
    }
    Ok(Some((count, end + 2)))
}

/// The length of an argument and of its header. `None` when it is incomplete.
fn bulk_header(rest: &[u8], limits: &Limits) -> Result<Option<(usize, usize)>, ProtocolError> {
    let end = match header::line_end(rest) {
        LineEnd::At(end) => end,
        LineEnd::Incomplete => return Ok(None),
        LineEnd::TooBig => return Err(ProtocolError::BulkCountTooBig),
    };
    if rest[0] != b'$' {
        return Err(ProtocolError::ExpectedDollar(rest[0]));
    }
    let len = header::integer(&rest[1..end]).ok_or(ProtocolError::InvalidBulkLength)?;
    let len = usize::try_from(len).map_err(|_| ProtocolError::InvalidBulkLength)?;
    if len > limits.bulk_max {
        return Err(ProtocolError::InvalidBulkLength);
    }
    if len > limits.bulk() {
        return Err(ProtocolError::UnauthenticatedBulkLength);
    }
    Ok(Some((len, end + 2)))
}

/// How far the arguments of a multibulk were found.
enum Status {
    Complete,
    Incomplete,
    /// A large argument of this length begins, unfinished, at the position.
    Large(usize),
}

/// Parses arguments from `position` on until none is `missing`.
#[inline]
fn arguments(
    source: &[u8],
    position: &mut usize,
    missing: &mut usize,
    limits: &Limits,
    spans: &mut Vec<Span>,
    store: &mut Store,
) -> Result<Status, ProtocolError> {
    let bulk_max = limits.bulk();
    while *missing > 0 {
        let rest = &source[*position..];
        let (len, header) = match header::short(rest) {
            Some((len, header)) if rest[0] == b'$' && len <= bulk_max => (len, header),
            _ => match bulk_header(rest, limits)? {
                Some(found) => found,
                None => return Ok(Status::Incomplete),
            },
        };
        let available = rest.len() - header;
        if len > LARGE_ARGUMENT_BYTES {
            *position += header;
            if available < 2 || available - 2 < len {
                return Ok(Status::Large(len));
            }
            spans.push(store.push_large(Rope::from_slice(&source[*position..*position + len])));
            *position += len + 2;
        } else {
            if available < len + 2 {
                return Ok(Status::Incomplete);
            }
            spans.push(Span::source(*position + header, len));
            *position += header + len + 2;
        }
        *missing -= 1;
    }
    Ok(Status::Complete)
}

/// Parses the inline request at `start` and returns how many bytes it took; `None` when it is incomplete.
#[cold]
fn inline_request(
    source: &[u8],
    start: usize,
    limits: &Limits,
    out: &mut Requests,
) -> Result<Option<usize>, ProtocolError> {
    let rest = &source[start..];
    let max = limits.inline_max.min(header::LINE_MAX);
    let window = &rest[..rest.len().min(max + 1)];
    let end = match memchr2(b'\n', 0, window) {
        Some(end) if window[end] == b'\n' => end,
        _ if rest.len() > max => return Err(ProtocolError::InlineTooBig),
        _ => return Ok(None),
    };
    let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
    let before = out.spans.len();
    inline::split(line, start, &mut out.spans, &mut out.store)?;
    if out.spans.len() > before {
        out.finish();
    }
    Ok(Some(end + 1))
}

/// A multibulk of which more is to come. Positions are relative to its start.
#[derive(Debug)]
struct Partial {
    spans: Vec<Span>,
    store: Store,
    /// Where the next argument's header begins.
    position: usize,
    /// Arguments still to come, the large one in progress included.
    missing: usize,
    large: Option<LargeInput>,
}

impl Partial {
    /// Takes the spans pushed since the last finished request out of `out`.
    #[cold]
    fn new(
        start: usize,
        position: usize,
        missing: usize,
        status: Status,
        source: &[u8],
        out: &mut Requests,
    ) -> Box<Partial> {
        let first = out.finished_spans();
        let mut store = Store::default();
        let mut spans = Vec::with_capacity(out.spans.len() - first);
        let mut large_first = None;
        for span in out.spans.drain(first..) {
            spans.push(match span.place() {
                Place::Source(offset, len) => Span::source(offset - start, len),
                Place::Own(offset, len) => Span::own(offset, len),
                Place::Large(index) => Span::large(index - *large_first.get_or_insert(index)),
            });
        }
        if let Some(large_first) = large_first {
            store.large.extend(out.store.large.drain(large_first..));
        }
        let mut partial = Box::new(Partial {
            spans,
            store,
            position: position - start,
            missing,
            large: None,
        });
        if let Status::Large(len) = status {
            partial.large = Some(LargeInput::new(len));
            partial.feed(&source[position..]);
        }
        partial
    }

    /// Moves what of `data` continues the large argument into it and returns how many bytes that were.
    fn feed(&mut self, data: &[u8]) -> usize {
        let Some(large) = &mut self.large else {
            return 0;
        };
        let taken = large.feed(data);
        if large.is_complete()
            && let Some(large) = self.large.take()
        {
            self.spans.push(self.store.push_large(large.finish()));
            self.missing -= 1;
        }
        taken
    }

    /// Goes on with the bytes of the request, `rest`, and returns their number when it is complete.
    fn resume(&mut self, rest: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        if self.large.is_some() {
            return Ok(None);
        }
        let Partial {
            spans,
            store,
            position,
            missing,
            ..
        } = self;
        match arguments(rest, position, missing, limits, spans, store)? {
            Status::Complete => Ok(Some(*position)),
            Status::Incomplete => Ok(None),
            Status::Large(len) => {
                self.large = Some(LargeInput::new(len));
                let position = self.position;
                self.feed(&rest[position..]);
                Ok(None)
            }
        }
    }

    /// Appends the finished request, which begins at `start` of the source, to `out`.
    fn hand_over(&mut self, start: usize, out: &mut Requests) {
        let large_first = out.store.large.len();
        out.store.large.append(&mut self.store.large);
        out.spans
            .extend(self.spans.drain(..).map(|span| match span.place() {
                Place::Source(offset, len) => Span::source(start + offset, len),
                Place::Own(offset, len) => Span::own(offset, len),
                Place::Large(index) => Span::large(large_first + index),
            }));
        out.finish();
    }

    fn bytes(&self) -> usize {
        let large: usize = self.store.large.iter().map(|large| large.rope.len()).sum();
        self.spans.len() * size_of::<Span>()
            + large
            + self.large.as_ref().map_or(0, LargeInput::received)
    }
}

/// A large argument being received.
#[derive(Debug)]
struct LargeInput {
    rope: Rope,
    /// The chunk being filled; bytes from `filled` on are zeroes waiting to be overwritten.
    chunk: Vec<u8>,
    filled: usize,
    /// Bytes of the argument still to come.
    missing: usize,
    /// Bytes of the line end behind it still to come.
    trailer: usize,
}

impl LargeInput {
    fn new(len: usize) -> LargeInput {
        LargeInput {
            rope: Rope::new(),
            chunk: Vec::new(),
            filled: 0,
            missing: len,
            trailer: 2,
        }
    }

    fn received(&self) -> usize {
        self.rope.len() + self.filled
    }

    fn is_complete(&self) -> bool {
        self.missing == 0 && self.trailer == 0
    }

    /// Size of the chunk being filled.
    fn chunk_len(&self) -> usize {
        CHUNK_BYTES.min(self.filled + self.missing)
    }

    fn feed(&mut self, data: &[u8]) -> usize {
        let mut rest = data;
        while self.missing > 0 && !rest.is_empty() {
            let len = self.chunk_len();
            let (now, later) = rest.split_at(rest.len().min(len - self.filled));
            self.chunk.truncate(self.filled);
            self.chunk.reserve_exact(len - self.filled);
            self.chunk.extend_from_slice(now);
            self.filled(now.len());
            rest = later;
        }
        let skip = if self.missing == 0 {
            rest.len().min(self.trailer)
        } else {
            0
        };
        self.trailer -= skip;
        data.len() - rest.len() + skip
    }

    fn target(&mut self) -> Option<&mut [u8]> {
        if self.missing == 0 {
            return None;
        }
        let len = self.chunk_len();
        if self.chunk.len() < len {
            self.chunk.reserve_exact(len - self.chunk.len());
            self.chunk.resize(len, 0);
        }
        Some(&mut self.chunk[self.filled..])
    }

    fn filled(&mut self, count: usize) {
        assert!(
            count <= self.chunk.len() - self.filled,
            "more bytes received than there was room for"
        );
        self.filled += count;
        self.missing -= count;
        if self.filled == CHUNK_BYTES || self.missing == 0 {
            self.rope
                .push_chunk(Chunk::from(std::mem::take(&mut self.chunk)));
            self.filled = 0;
        }
    }

    fn finish(self) -> Rope {
        self.rope
    }
}
