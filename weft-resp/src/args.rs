//! Parsed requests and their arguments.
//!
//! Owns the flat, reusable store the parser fills ([`Requests`]), the borrowed view that handlers get ([`Args`]) and
//! the copy that outlives the receive buffer ([`OwnedArgs`]). Does not know how requests look on the wire. An argument
//! is a [`Span`]: a place in the source buffer, in the store's own bytes (unquoted inline arguments), or a large one.
//! Invariant: the source given to [`Requests::get`] is the one that was parsed.

use std::fmt;
use std::ops::Index;
use std::sync::OnceLock;

use weft_rope::Rope;

/// The requests found in one buffer. Reused from batch to batch; `clear` keeps the memory.
#[derive(Debug, Default)]
pub struct Requests {
    /// Of each request, where its spans end in `spans`; they begin where those of the request before end.
    ends: Vec<u32>,
    pub(crate) spans: Vec<Span>,
    pub(crate) store: Store,
}

impl Requests {
    /// An empty store; allocates nothing.
    pub fn new() -> Requests {
        Requests::default()
    }

    /// Forgets all requests, keeping memory for the next ones (unless an outsized batch grew it).
    pub fn clear(&mut self) {
        const KEEP: usize = 16 * 1024;
        self.ends.clear();
        self.spans.clear();
        self.store.clear();
        if self.spans.capacity() > KEEP {
            self.spans.shrink_to(KEEP);
            self.ends.shrink_to(KEEP);
        }
    }

    /// Number of requests.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The arguments of request `index`; `source` is the buffer that was parsed.
    ///
    /// # Panics
    /// When there is no such request.
    #[inline]
    pub fn get<'a>(&'a self, index: usize, source: &'a [u8]) -> Args<'a> {
        let start = if index == 0 {
            0
        } else {
            self.ends[index - 1] as usize
        };
        let end = self.ends[index] as usize;
        Args {
            spans: &self.spans[start..end],
            source,
            store: &self.store,
        }
    }

    /// All requests in order; `source` is the buffer that was parsed.
    pub fn iter<'a>(&'a self, source: &'a [u8]) -> impl ExactSizeIterator<Item = Args<'a>> {
        (0..self.len()).map(move |index| self.get(index, source))
    }

    /// Bytes of memory, large arguments included.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.ends.capacity() * size_of::<u32>()
            + self.spans.capacity() * size_of::<Span>()
            + self.store.allocated_bytes()
    }

    /// Appends a request of which a copy is made: of short arguments behind those in `bytes`, which is the source from then on. Large
    /// ones are shared.
    pub(crate) fn push_copy(&mut self, args: Args<'_>, bytes: &mut Vec<u8>) {
        for span in args.spans {
            let copied = match span.place() {
                Place::Large(index) => self.store.push_large(args.store.large[index].rope.clone()),
                _ => {
                    let (start, argument) = (bytes.len(), args.bytes(*span));
                    bytes.extend_from_slice(argument);
                    Span::source(start, argument.len())
                }
            };
            self.spans.push(copied);
        }
        self.finish();
    }

    /// Ends the request whose spans have just been pushed.
    #[inline]
    pub(crate) fn finish(&mut self) {
        // An argument takes at least six bytes of the source: this many would need 24 GiB of it.
        debug_assert!(u32::try_from(self.spans.len()).is_ok());
        self.ends.push(self.spans.len() as u32);
    }

    /// Spans that belong to finished requests.
    #[inline]
    pub(crate) fn finished_spans(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }
}

/// The arguments of one request, the command's name first.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    spans: &'a [Span],
    source: &'a [u8],
    store: &'a Store,
}

impl<'a> Args<'a> {
    /// Number of arguments, the name included.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none. A parsed request has at least one.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Argument `index`. A large one is copied into one piece, once; see [`Args::rope`].
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| self.bytes(*span))
    }

    /// Argument `index` as the rope it arrived in, if it is a large one (more than 64 KiB).
    #[inline]
    pub fn rope(&self, index: usize) -> Option<&'a Rope> {
        match self.spans.get(index)?.place() {
            Place::Large(index) => Some(&self.store.large[index].rope),
            _ => None,
        }
    }

    /// Length of argument `index` in bytes, without copying a large one together.
    #[inline]
    pub fn bytes_len(&self, index: usize) -> Option<usize> {
        Some(self.span_len(*self.spans.get(index)?))
    }

    /// All arguments in order. Large ones are copied into one piece each, once.
    #[inline]
    pub fn iter(&self) -> ArgsIter<'a> {
        ArgsIter {
            args: *self,
            next: 0,
        }
    }

    /// The arguments from `first` on; empty when there are not that many.
    #[inline]
    pub fn skip(&self, first: usize) -> Args<'a> {
        Args {
            spans: self.spans.get(first..).unwrap_or(&[]),
            ..*self
        }
    }

    /// Bytes of all arguments together.
    pub fn total_bytes(&self) -> usize {
        self.spans.iter().map(|span| self.span_len(*span)).sum()
    }

    #[inline]
    fn bytes(&self, span: Span) -> &'a [u8] {
        match span.place() {
            Place::Source(start, len) => &self.source[start..start + len],
            Place::Own(start, len) => &self.store.own[start..start + len],
            Place::Large(index) => self.store.large[index].flat(),
        }
    }

    fn span_len(&self, span: Span) -> usize {
        match span.place() {
            Place::Source(_, len) | Place::Own(_, len) => len,
            Place::Large(index) => self.store.large[index].rope.len(),
        }
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        self.bytes(self.spans[index])
    }
}

impl<'a> IntoIterator for Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(
                self.iter()
                    .map(|arg| String::from_utf8_lossy(arg).into_owned()),
            )
            .finish()
    }
}

/// The arguments of one request, in order.
#[derive(Clone, Debug)]
pub struct ArgsIter<'a> {
    args: Args<'a>,
    next: usize,
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        Some(arg)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.args.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}

/// Arguments that own their bytes: for whatever queues, blocks or is recorded. Large ones stay shared ropes.
#[derive(Clone, Debug, Default)]
pub struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    store: Store,
}

impl OwnedArgs {
    /// A copy of `slices`, the command's name first.
    pub fn from_slices(slices: &[&[u8]]) -> OwnedArgs {
        let mut owned = OwnedArgs {
            bytes: Vec::with_capacity(slices.iter().map(|slice| slice.len()).sum()),
            spans: Vec::with_capacity(slices.len()),
            store: Store::default(),
        };
        slices.iter().for_each(|slice| owned.push(slice));
        owned
    }

    /// Appends a copy of `bytes` as one more argument.
    pub fn push(&mut self, bytes: &[u8]) {
        if bytes.len() > Span::LEN_MAX {
            self.push_rope(Rope::from_slice(bytes));
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.spans.push(Span::source(start, bytes.len()));
    }

    /// Appends `rope` as one more argument; shared, not copied, when it is large (more than 64 KiB).
    pub fn push_rope(&mut self, rope: Rope) {
        if rope.len() > Span::LEN_MAX {
            self.spans.push(self.store.push_large(rope));
            return;
        }
        let start = self.bytes.len();
        rope.slices(..)
            .for_each(|slice| self.bytes.extend_from_slice(slice));
        self.spans.push(Span::source(start, rope.len()));
    }

    /// The arguments.
    #[inline]
    pub fn args(&self) -> Args<'_> {
        Args {
            spans: &self.spans,
            source: &self.bytes,
            store: &self.store,
        }
    }

    /// Number of arguments, the name included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes of memory held, shared ropes included.
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.store.allocated_bytes()
    }
}

impl From<Args<'_>> for OwnedArgs {
    fn from(args: Args<'_>) -> OwnedArgs {
        let small = |span: &Span| {
            if let Place::Large(_) = span.place() {
                0
            } else {
                args.span_len(*span)
            }
        };
        let mut owned = OwnedArgs {
            bytes: Vec::with_capacity(args.spans.iter().map(small).sum()),
            spans: Vec::with_capacity(args.len()),
            store: Store::default(),
        };
        for span in args.spans {
            match span.place() {
                Place::Large(index) => owned.push_rope(args.store.large[index].rope.clone()),
                _ => owned.push(args.bytes(*span)),
            }
        }
        owned
    }
}

impl PartialEq for OwnedArgs {
    fn eq(&self, other: &OwnedArgs) -> bool {
        let (left, right) = (self.args(), other.args());
        left.len() == right.len()
            && (0..left.len()).all(|index| match (left.rope(index), right.rope(index)) {
                (Some(left), Some(right)) => left == right,
                (None, None) => left[index] == right[index],
                _ => false,
            })
    }
}

impl Eq for OwnedArgs {}

/// Where one argument lies, packed into eight bytes: offset (45 bits), length (17 bits), kind (2 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(u64);

pub(crate) enum Place {
    /// Offset and length in the source buffer.
    Source(usize, usize),
    /// Offset and length in the store's own bytes.
    Own(usize, usize),
    /// Index of a large argument.
    Large(usize),
}

impl Span {
    /// The longest argument a span into a buffer can describe. Longer ones are large.
    pub(crate) const LEN_MAX: usize = weft_rope::CHUNK_BYTES;
    const LEN_BITS: u32 = 17;
    const KIND_BITS: u32 = 2;
    const OFFSET_SHIFT: u32 = Span::LEN_BITS + Span::KIND_BITS;
    const SOURCE: u64 = 0;
    const OWN: u64 = 1;
    const LARGE: u64 = 2;

    #[inline]
    pub(crate) fn source(start: usize, len: usize) -> Span {
        debug_assert!(len <= Span::LEN_MAX);
        Span((start as u64) << Span::OFFSET_SHIFT | (len as u64) << Span::KIND_BITS | Span::SOURCE)
    }

    pub(crate) fn own(start: usize, len: usize) -> Span {
        debug_assert!(len <= Span::LEN_MAX);
        Span((start as u64) << Span::OFFSET_SHIFT | (len as u64) << Span::KIND_BITS | Span::OWN)
    }

    pub(crate) fn large(index: usize) -> Span {
        Span((index as u64) << Span::OFFSET_SHIFT | Span::LARGE)
    }

    #[inline]
    pub(crate) fn place(self) -> Place {
        let offset = (self.0 >> Span::OFFSET_SHIFT) as usize;
        let len = (self.0 >> Span::KIND_BITS) as usize & ((1 << Span::LEN_BITS) - 1);
        match self.0 & ((1 << Span::KIND_BITS) - 1) {
            Span::SOURCE => Place::Source(offset, len),
            Span::OWN => Place::Own(offset, len),
            _ => Place::Large(offset),
        }
    }
}

/// What arguments own besides spans of a source buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    /// Bytes of arguments that differ from the source: quoted inline arguments.
    pub(crate) own: Vec<u8>,
    pub(crate) large: Vec<Large>,
}

impl Store {
    /// Adds a large argument and returns its span.
    pub(crate) fn push_large(&mut self, rope: Rope) -> Span {
        self.large.push(Large {
            rope,
            flat: OnceLock::new(),
        });
        Span::large(self.large.len() - 1)
    }

    fn clear(&mut self) {
        self.large.clear();
        if self.own.capacity() > Span::LEN_MAX {
            self.own = Vec::new();
        } else {
            self.own.clear();
        }
    }

    fn allocated_bytes(&self) -> usize {
        let large: usize = self
            .large
            .iter()
            .map(|large| {
                large.rope.allocated_bytes()
                    + large.flat.get().map_or(0, |flat| flat.len())
                    + size_of::<Large>()
            })
            .sum();
        self.own.capacity() + large
    }
}

/// An argument of more than 64 KiB.
#[derive(Clone, Debug)]
pub(crate) struct Large {
    pub(crate) rope: Rope,
    /// The bytes in one piece, made when first asked for.
    flat: OnceLock<Box<[u8]>>,
}

impl Large {
    #[cold]
    fn flat(&self) -> &[u8] {
        match self.rope.as_contiguous() {
            Some(bytes) => bytes,
            None => self
                .flat
                .get_or_init(|| self.rope.to_vec().into_boxed_slice()),
        }
    }
}
