//! One key and its value: the layout of an entry in its arena slot.
//!
//! Owns the bytes of an entry and what they mean. Does not know tables or how slots are found. All parts that need
//! alignment come first, so an entry needs the 8 bytes that slots have:
//!
//! ```text
//! header 8 | deadline 8, if any | long key 24, if the key is one | integer 8, rope or collection 8 | key | inline bytes
//!
//! header, from bit 0: kind 4 | has deadline, raw, long key, - | snapshot 8 | access 24 | key length 12 | value length 12
//! ```
//! A long key (over [`KEY_INLINE_MAX`]) is a box of its own, kept with its position so that splitting a segment need
//! not hash it again. Invariant: an entry's size never exceeds [`SLOT_MAX`].

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use weft_data::collection::{Built, Collection, CollectionRef, PACKED_MAX};
use weft_rope::{CHUNK_BYTES, Rope};

use crate::arena::{SLOT_MAX, UNIT};
use crate::position::Position;

/// Longest key inside an entry, bytes.
pub(crate) const KEY_INLINE_MAX: usize = 512;
/// Values outside their entries that are so long are freed by whoever drops the latch, not under it.
const LARGE_BYTES: usize = CHUNK_BYTES;

const INT: u64 = 1;
const BYTES: u64 = 2;
const ROPE: u64 = 3;
const PACKED: u64 = 4;
const LARGE: u64 = 5;

const HAS_DEADLINE: u64 = 1 << 4;
const RAW: u64 = 1 << 5;
const LONG_KEY: u64 = 1 << 6;
const ACCESS_SHIFT: u32 = 16;
const ACCESS_MASK: u64 = 0xff_ffff;
const KEY_SHIFT: u32 = 40;
const VALUE_SHIFT: u32 = 52;
const LENGTH_MASK: u64 = 0xfff;

const HEADER_BYTES: usize = 8;
const ROPE_BYTES: usize = size_of::<Rope>().next_multiple_of(8);
const LARGE_POINTER_BYTES: usize = size_of::<Box<Collection>>();

/// A value to store.
#[derive(Debug)]
pub enum NewValue<'a> {
    /// An integer, stored as one.
    Int(i64),
    /// A string.
    Bytes(&'a [u8]),
    /// A string that Redis would report as `raw` although it is short.
    RawBytes(&'a [u8]),
    /// A string in chunks. Short ones are stored inline all the same.
    Rope(Rope),
    /// A packed collection, tag first: at most [`PACKED_MAX`] bytes.
    Packed(&'a [u8]),
    /// A large collection.
    Large(Box<Collection>),
}

impl<'a> From<&'a OwnedValue> for NewValue<'a> {
    fn from(value: &'a OwnedValue) -> Self {
        match value {
            OwnedValue::Int(value) => NewValue::Int(*value),
            OwnedValue::Bytes(bytes) => NewValue::Bytes(bytes),
            OwnedValue::Rope(rope) => NewValue::Rope(rope.clone()),
            OwnedValue::Collection(Built::Packed(bytes)) => NewValue::Packed(bytes),
            OwnedValue::Collection(Built::Large(collection)) => NewValue::Large(collection.clone()),
        }
    }
}

/// A stored value.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// A string.
    String(StringRef<'a>),
    /// A collection.
    Collection(CollectionRef<'a>),
}

/// A stored string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StringRef<'a> {
    /// An integer.
    Int(i64),
    /// A string inside the entry.
    Bytes(&'a [u8]),
    /// A long string.
    Rope(&'a Rope),
}

impl StringRef<'_> {
    /// The string, copied; a long one is shared.
    pub fn to_owned_value(self) -> OwnedValue {
        match self {
            StringRef::Int(value) => OwnedValue::Int(value),
            StringRef::Bytes(bytes) => OwnedValue::Bytes(bytes.to_vec()),
            StringRef::Rope(rope) => OwnedValue::Rope(rope.clone()),
        }
    }
}

/// A value taken out of the keyspace.
#[derive(Clone, Debug)]
pub enum OwnedValue {
    /// An integer.
    Int(i64),
    /// A string that was inside its entry.
    Bytes(Vec<u8>),
    /// A long string.
    Rope(Rope),
    /// A collection.
    Collection(Built),
}

impl OwnedValue {
    /// The value in the form in which it is stored again.
    pub fn as_new(&self, raw: bool) -> NewValue<'_> {
        match self {
            OwnedValue::Bytes(bytes) if raw => NewValue::RawBytes(bytes),
            other => other.into(),
        }
    }
}

/// A value that lay outside its entry.
#[derive(Debug)]
pub enum Outside {
    /// A long string.
    Rope(Rope),
    /// A large collection.
    Collection(Box<Collection>),
}

impl Outside {
    /// Whether freeing it is too much work to do under a latch.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Outside::Rope(rope) => rope.len() >= LARGE_BYTES,
            Outside::Collection(collection) => collection.allocated_bytes() >= LARGE_BYTES,
        }
    }

    /// About how many allocations are freed with it.
    pub fn pieces(&self) -> usize {
        /// A node of a collection, about.
        const NODE_BYTES: usize = 4096;
        match self {
            Outside::Rope(rope) => rope.chunks().len(),
            Outside::Collection(collection) => collection.allocated_bytes() / NODE_BYTES,
        }
    }
}

/// An entry taken out of the keyspace.
#[derive(Clone, Debug)]
pub struct OwnedEntry {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: OwnedValue,
    /// When it expires, absolute milliseconds.
    pub deadline: Option<u64>,
    /// Short, but `raw` to Redis.
    pub raw: bool,
    /// The 24 LRU or LFU bits.
    pub access: u32,
}

/// A look at an entry; the borrow of the shard bounds it.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    raw: RawEntry,
    shard: PhantomData<&'a ()>,
}

impl<'a> Entry<'a> {
    /// # Safety
    ///
    /// The entry is live and stays unchanged, access bits apart, for `'a`.
    #[inline]
    pub(crate) unsafe fn new(raw: RawEntry) -> Entry<'a> {
        Entry {
            raw,
            shard: PhantomData,
        }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        // SAFETY: live and unchanged for 'a.
        unsafe { self.raw.key() }
    }

    /// When it expires, absolute milliseconds.
    #[inline]
    pub fn deadline(&self) -> Option<u64> {
        self.raw.deadline()
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> ValueRef<'a> {
        // SAFETY: live and unchanged for 'a.
        unsafe { self.raw.value() }
    }

    /// Whether the string was stored as [`NewValue::RawBytes`].
    #[inline]
    pub fn is_raw(&self) -> bool {
        self.raw.header() & RAW != 0
    }

    /// The 24 LRU or LFU bits.
    #[inline]
    pub fn access(&self) -> u32 {
        self.raw.access()
    }

    /// Sets the LRU or LFU bits, writing only when they differ.
    #[inline]
    pub fn set_access(&self, bits: u32) {
        if self.raw.access() != bits & ACCESS_MASK as u32 {
            self.raw.set_access(bits);
        }
    }

    /// The string; none if the value is a collection.
    #[inline]
    pub fn string(&self) -> Option<StringRef<'a>> {
        match self.value() {
            ValueRef::String(string) => Some(string),
            ValueRef::Collection(_) => None,
        }
    }

    /// The collection; none if the value is a string.
    #[inline]
    pub fn collection(&self) -> Option<CollectionRef<'a>> {
        match self.value() {
            ValueRef::String(_) => None,
            ValueRef::Collection(collection) => Some(collection),
        }
    }

    /// When it or the first of its fields expires, absolute milliseconds.
    #[inline]
    pub fn due(&self) -> Option<u64> {
        self.raw.due()
    }

    /// The value, copied; a long string and a large collection are shared.
    pub fn to_owned_value(&self) -> OwnedValue {
        match self.value() {
            ValueRef::String(string) => string.to_owned_value(),
            ValueRef::Collection(collection) => OwnedValue::Collection(collection.to_built()),
        }
    }

    /// Bytes that the entry occupies, its long key and long value included.
    pub fn allocated_bytes(&self) -> usize {
        self.raw.slot_bytes() + self.raw.external_bytes()
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key().escape_ascii().to_string())
            .field("value", &self.value())
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

/// Bytes that a rope has allocated, without visiting its chunks: all but the last are full.
pub(crate) fn rope_bytes(rope: &Rope) -> usize {
    /// A chunk's counts and vector.
    const PER_CHUNK: usize = 40;
    /// The list's counts and vector, and a chunk's slot in it. A single chunk needs no list.
    const LIST: usize = 40;
    const SLOT: usize = 8;
    match rope.chunks() {
        [] => 0,
        [only] => only.capacity() + PER_CHUNK,
        [full @ .., last] => {
            full.len() * (CHUNK_BYTES + PER_CHUNK + SLOT)
                + last.capacity()
                + PER_CHUNK
                + SLOT
                + LIST
        }
    }
}

/// Bytes that a large collection has allocated, itself included.
pub(crate) fn collection_bytes(collection: &Collection) -> usize {
    size_of::<Collection>() + collection.allocated_bytes()
}

/// The value part of an entry about to be written.
pub(crate) enum Payload<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Rope(Rope),
    Packed(&'a [u8]),
    Large(Box<Collection>),
}

impl Payload<'_> {
    fn kind(&self) -> u64 {
        match self {
            Payload::Int(_) => INT,
            Payload::Bytes(_) => BYTES,
            Payload::Rope(_) => ROPE,
            Payload::Packed(_) => PACKED,
            Payload::Large(_) => LARGE,
        }
    }

    /// How many bytes of it lie behind the key.
    fn inline_len(&self) -> usize {
        match self {
            Payload::Bytes(bytes) | Payload::Packed(bytes) => bytes.len(),
            Payload::Int(_) | Payload::Rope(_) | Payload::Large(_) => 0,
        }
    }

    /// How many bytes of it lie before the key.
    fn fixed_len(&self) -> usize {
        fixed_len(self.kind())
    }
}

/// What a value of this kind takes before the key, bytes.
#[inline]
const fn fixed_len(kind: u64) -> usize {
    match kind {
        INT => 8,
        ROPE => ROPE_BYTES,
        LARGE => LARGE_POINTER_BYTES,
        _ => 0,
    }
}

/// The key part of an entry about to be written.
pub(crate) enum KeyPart<'a> {
    Inline(&'a [u8]),
    Long(LongKey),
}

impl<'a> KeyPart<'a> {
    pub(crate) fn new(key: &'a [u8], position: Position) -> KeyPart<'a> {
        if key.len() <= KEY_INLINE_MAX {
            return KeyPart::Inline(key);
        }
        let boxed: Box<[u8]> = key.into();
        KeyPart::Long(LongKey {
            len: boxed.len(),
            start: NonNull::from(Box::leak(boxed)).cast(),
            position,
        })
    }

    fn bytes(&self) -> (usize, usize) {
        match self {
            KeyPart::Inline(key) => (0, key.len()),
            KeyPart::Long(_) => (size_of::<LongKey>(), 0),
        }
    }
}

/// A key outside its entry, owned by it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LongKey {
    start: NonNull<u8>,
    len: usize,
    position: Position,
}

impl LongKey {
    /// # Safety
    ///
    /// Nobody uses the key any more.
    pub(crate) unsafe fn free(self) {
        let bytes = NonNull::slice_from_raw_parts(self.start, self.len);
        // SAFETY: leaked from a box of this length.
        drop(unsafe { Box::from_raw(bytes.as_ptr()) });
    }
}

/// Everything of an entry about to be written.
pub(crate) struct Draft<'a> {
    pub(crate) key: KeyPart<'a>,
    pub(crate) value: Payload<'a>,
    pub(crate) deadline: Option<u64>,
    pub(crate) raw: bool,
    pub(crate) access: u32,
}

impl Draft<'_> {
    /// The entry's size, bytes.
    pub(crate) fn size(&self) -> usize {
        let (fixed, inline) = self.key.bytes();
        let value = self.value.fixed_len() + self.value.inline_len();
        HEADER_BYTES + if self.deadline.is_some() { 8 } else { 0 } + fixed + inline + value
    }

    /// Turns an inline value into a rope if the entry would be too large otherwise.
    pub(crate) fn fit(&mut self) {
        if self.size() > SLOT_MAX
            && let Payload::Bytes(bytes) = self.value
        {
            self.value = Payload::Rope(Rope::from_slice(bytes));
        }
    }
}

/// The address of an entry. Its methods that read are safe to call while the entry is live, which every creator of a
/// `RawEntry` answers for.
#[derive(Clone, Copy)]
pub(crate) struct RawEntry(NonNull<u8>);

impl RawEntry {
    /// # Safety
    ///
    /// An entry was written here, and the result is used only while it is live and the shard's latch is held.
    #[inline]
    pub(crate) unsafe fn new(address: NonNull<u8>) -> RawEntry {
        RawEntry(address)
    }

    #[inline]
    fn header(self) -> u64 {
        // SAFETY: a live entry starts with its header.
        unsafe { self.0.cast::<u64>().read() }
    }

    #[inline]
    fn set_header(self, header: u64) {
        // SAFETY: a live entry starts with its header, to which no reference exists.
        unsafe { self.0.cast::<u64>().write(header) }
    }

    #[inline]
    fn at(self, offset: usize) -> NonNull<u8> {
        // SAFETY: callers stay within the entry.
        unsafe { self.0.add(offset) }
    }

    #[inline]
    pub(crate) fn has_deadline(self) -> bool {
        self.header() & HAS_DEADLINE != 0
    }

    #[inline]
    pub(crate) fn is_raw(self) -> bool {
        self.header() & RAW != 0
    }

    #[inline]
    pub(crate) fn access(self) -> u32 {
        (self.header() >> ACCESS_SHIFT & ACCESS_MASK) as u32
    }

    pub(crate) fn set_access(self, bits: u32) {
        let cleared = self.header() & !(ACCESS_MASK << ACCESS_SHIFT);
        self.set_header(cleared | (u64::from(bits) & ACCESS_MASK) << ACCESS_SHIFT);
    }

    pub(crate) fn set_raw(self, raw: bool) {
        let cleared = self.header() & !RAW;
        self.set_header(if raw { cleared | RAW } else { cleared });
    }

    #[inline]
    pub(crate) fn deadline(self) -> Option<u64> {
        // SAFETY: the flag says that the deadline follows the header.
        self.has_deadline()
            .then(|| unsafe { self.at(HEADER_BYTES).cast::<u64>().read() })
    }

    /// Changes a deadline that the entry has.
    pub(crate) fn set_deadline(self, deadline: u64) {
        debug_assert!(self.has_deadline(), "the entry has room for it");
        // SAFETY: the deadline follows the header, and no reference to it exists.
        unsafe { self.at(HEADER_BYTES).cast::<u64>().write(deadline) }
    }

    #[inline]
    fn after_deadline(header: u64) -> usize {
        if header & HAS_DEADLINE != 0 {
            2 * HEADER_BYTES
        } else {
            HEADER_BYTES
        }
    }

    #[inline]
    fn value_offset(header: u64) -> usize {
        let long = if header & LONG_KEY != 0 {
            size_of::<LongKey>()
        } else {
            0
        };
        Self::after_deadline(header) + long
    }

    #[inline]
    fn key_offset(header: u64) -> usize {
        Self::value_offset(header) + fixed_len(header & 0xf)
    }

    #[inline]
    fn key_len(header: u64) -> usize {
        (header >> KEY_SHIFT & LENGTH_MASK) as usize
    }

    #[inline]
    fn value_len(header: u64) -> usize {
        (header >> VALUE_SHIFT & LENGTH_MASK) as usize
    }

    pub(crate) fn long_key(self) -> Option<LongKey> {
        let header = self.header();
        let place = self.at(Self::after_deadline(header)).cast::<LongKey>();
        // SAFETY: the flag says that it is there.
        (header & LONG_KEY != 0).then(|| unsafe { place.read() })
    }

    /// # Safety
    ///
    /// The entry stays live for `'a`.
    #[inline]
    pub(crate) unsafe fn key<'a>(self) -> &'a [u8] {
        let header = self.header();
        let (start, len) = if header & LONG_KEY == 0 {
            (self.at(Self::key_offset(header)), Self::key_len(header))
        } else {
            let long = self.long_key().expect("the flag is set");
            (long.start, long.len)
        };
        // SAFETY: the key's bytes, which never change.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    /// The position, if the entry keeps it.
    pub(crate) fn stored_position(self) -> Option<Position> {
        self.long_key().map(|long| long.position)
    }

    /// # Safety
    ///
    /// The entry stays live and its value unchanged for `'a`.
    #[inline]
    pub(crate) unsafe fn value<'a>(self) -> ValueRef<'a> {
        let header = self.header();
        match header & 0xf {
            INT => {
                let place = self.at(Self::value_offset(header)).cast::<i64>();
                // SAFETY: the kind says that an integer is there.
                ValueRef::String(StringRef::Int(unsafe { place.read() }))
            }
            ROPE => {
                let place = self.at(Self::value_offset(header)).cast::<Rope>();
                // SAFETY: the kind says that a rope is there.
                ValueRef::String(StringRef::Rope(unsafe { place.as_ref() }))
            }
            LARGE => {
                let place = self.large_place(header);
                // SAFETY: the kind says that a collection is there.
                ValueRef::Collection(CollectionRef::Large(unsafe { place.as_ref() }))
            }
            kind => {
                let (start, len) = self.inline_bytes(header);
                // SAFETY: the value's bytes.
                let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), len) };
                if kind == PACKED {
                    ValueRef::Collection(CollectionRef::Packed(bytes))
                } else {
                    ValueRef::String(StringRef::Bytes(bytes))
                }
            }
        }
    }

    /// When the entry or the first of its fields expires.
    #[inline]
    pub(crate) fn due(self) -> Option<u64> {
        let deadline = self.deadline();
        match self.fields_due() {
            None => deadline,
            Some(due) => Some(deadline.map_or(due, |deadline| deadline.min(due))),
        }
    }

    /// When the first of its fields expires.
    #[inline]
    pub(crate) fn fields_due(self) -> Option<u64> {
        let kind = self.header() & 0xf;
        if kind != PACKED && kind != LARGE {
            return None;
        }
        // SAFETY: the reference ends here.
        match unsafe { self.value() } {
            ValueRef::Collection(collection) => collection.due(),
            ValueRef::String(_) => None,
        }
    }

    /// Where the large collection is, given that the value is one.
    fn large_place(self, header: u64) -> NonNull<Collection> {
        let place = self.at(Self::value_offset(header));
        // SAFETY: the kind says that a pointer from a box is there.
        unsafe { place.cast::<NonNull<Collection>>().read() }
    }

    /// The large collection for writing.
    ///
    /// # Safety
    ///
    /// The entry stays live for `'a`, and nobody else looks at it.
    pub(crate) unsafe fn collection_mut<'a>(self) -> Option<&'a mut Collection> {
        let header = self.header();
        if header & 0xf != LARGE {
            return None;
        }
        let mut place = self.large_place(header);
        // SAFETY: the kind says that a collection is there, alone by the caller's word.
        Some(unsafe { place.as_mut() })
    }

    /// Where the inline bytes are, given that the value is inline.
    #[inline]
    fn inline_bytes(self, header: u64) -> (NonNull<u8>, usize) {
        let key = if header & LONG_KEY == 0 {
            Self::key_len(header)
        } else {
            0
        };
        (
            self.at(Self::key_offset(header) + key),
            Self::value_len(header),
        )
    }

    /// The inline bytes for writing.
    ///
    /// # Safety
    ///
    /// The entry stays live for `'a`, and nobody else looks at it.
    pub(crate) unsafe fn bytes_mut<'a>(self) -> Option<&'a mut [u8]> {
        let header = self.header();
        if header & 0xf != BYTES {
            return None;
        }
        let (start, len) = self.inline_bytes(header);
        // SAFETY: the value's bytes, alone by the caller's word.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) })
    }

    /// The rope for writing.
    ///
    /// # Safety
    ///
    /// The entry stays live for `'a`, and nobody else looks at it.
    pub(crate) unsafe fn rope_mut<'a>(self) -> Option<&'a mut Rope> {
        let header = self.header();
        if header & 0xf != ROPE {
            return None;
        }
        let mut place = self.at(Self::value_offset(header)).cast::<Rope>();
        // SAFETY: the kind says that a rope is there, alone by the caller's word.
        Some(unsafe { place.as_mut() })
    }

    /// Takes out what lies outside; the entry must be freed or overwritten next, without looking at its value.
    ///
    /// # Safety
    ///
    /// Called once per entry.
    pub(crate) unsafe fn take_outside(self) -> Option<Outside> {
        let header = self.header();
        match header & 0xf {
            ROPE => {
                let place = self.at(Self::value_offset(header)).cast::<Rope>();
                // SAFETY: the kind says that a rope is there; the caller does not use it again.
                Some(Outside::Rope(unsafe { place.read() }))
            }
            LARGE => {
                let place = self.large_place(header);
                // SAFETY: it came from a box, and the caller does not use it again.
                let collection = unsafe { Box::from_raw(place.as_ptr()) };
                Some(Outside::Collection(collection))
            }
            _ => None,
        }
    }

    /// Bytes outside the slot: a long key, and a value outside.
    #[inline]
    pub(crate) fn external_bytes(self) -> usize {
        let header = self.header();
        let kind = header & 0xf;
        if kind != ROPE && kind != LARGE && header & LONG_KEY == 0 {
            return 0;
        }
        let key = self.long_key().map_or(0, |long| long.len);
        // SAFETY: the reference ends here.
        let value = match unsafe { self.value() } {
            ValueRef::String(StringRef::Rope(rope)) => rope_bytes(rope),
            ValueRef::Collection(CollectionRef::Large(collection)) => collection_bytes(collection),
            _ => 0,
        };
        key + value
    }

    /// The slot that the entry needs, bytes. The one it has may be a little larger.
    #[inline]
    pub(crate) fn slot_bytes(self) -> usize {
        let header = self.header();
        let inline = Self::key_len(header) + Self::value_len(header);
        (Self::key_offset(header) + inline).next_multiple_of(UNIT)
    }

    /// Whether [`RawEntry::overwrite`] can store this without moving the key. The slot's size is the caller's matter.
    #[inline]
    pub(crate) fn same_shape(self, value: &Payload<'_>, deadline: bool) -> bool {
        let header = self.header();
        header & 0xf == value.kind() && (header & HAS_DEADLINE != 0) == deadline
    }

    /// The entry's size with a value of the same shape.
    #[inline]
    pub(crate) fn size_with(self, value: &Payload<'_>) -> usize {
        let header = self.header();
        Self::key_offset(header) + Self::key_len(header) + value.inline_len()
    }

    /// Stores an inline string over another one if the slot need not change; whether it did.
    ///
    /// # Safety
    ///
    /// Nobody looks at the entry.
    #[inline]
    pub(crate) unsafe fn overwrite_bytes(self, bytes: &[u8], raw: bool) -> bool {
        // SAFETY: by the caller's word.
        unsafe { self.overwrite_inline(BYTES, bytes, raw) }
    }

    /// The same for a packed collection.
    ///
    /// # Safety
    ///
    /// Nobody looks at the entry.
    #[inline]
    pub(crate) unsafe fn overwrite_packed(self, bytes: &[u8]) -> bool {
        // SAFETY: by the caller's word.
        unsafe { self.overwrite_inline(PACKED, bytes, false) }
    }

    /// # Safety
    ///
    /// Nobody looks at the entry.
    #[inline]
    unsafe fn overwrite_inline(self, kind: u64, bytes: &[u8], raw: bool) -> bool {
        let header = self.header();
        let start = Self::key_offset(header) + Self::key_len(header);
        let before = start + Self::value_len(header);
        let after = start + bytes.len();
        if header & 0xf != kind || after.next_multiple_of(UNIT) != before.next_multiple_of(UNIT) {
            return false;
        }
        let cleared = header & !(LENGTH_MASK << VALUE_SHIFT | RAW);
        let flag = if raw { RAW } else { 0 };
        self.set_header(cleared | (bytes.len() as u64) << VALUE_SHIFT | flag);
        let place = self.at(start);
        // SAFETY: the slot has room for as many units as before; `bytes` cannot lie in an entry that nobody looks at.
        unsafe { place.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        true
    }

    /// Stores a value of the same shape; returns what lay outside.
    ///
    /// # Safety
    ///
    /// [`RawEntry::same_shape`] said yes, and the slot holds [`RawEntry::size_with`] bytes. Nobody looks at the entry.
    #[inline]
    pub(crate) unsafe fn overwrite(self, value: Payload<'_>, raw: bool) -> Option<Outside> {
        let header = self.header() & !RAW | if raw { RAW } else { 0 };
        let place = self.at(Self::value_offset(header));
        if !matches!(value, Payload::Bytes(_) | Payload::Packed(_)) {
            self.set_header(header);
        }
        match value {
            Payload::Int(value) => {
                // SAFETY: the kind says that an integer is there.
                unsafe { place.cast::<i64>().write(value) };
                None
            }
            Payload::Bytes(bytes) | Payload::Packed(bytes) => {
                let cleared = header & !(LENGTH_MASK << VALUE_SHIFT);
                self.set_header(cleared | (bytes.len() as u64) << VALUE_SHIFT);
                let (start, _) = self.inline_bytes(header);
                // SAFETY: the slot is large enough by the caller's word; `bytes` cannot lie in an entry that nobody
                // looks at.
                unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
                None
            }
            Payload::Rope(rope) => {
                // SAFETY: the kind says that a rope is there.
                let old = unsafe { place.cast::<Rope>().replace(rope) };
                Some(Outside::Rope(old))
            }
            Payload::Large(collection) => {
                // SAFETY: the kind says that a collection is there.
                let old = unsafe { place.cast::<Box<Collection>>().replace(collection) };
                Some(Outside::Collection(old))
            }
        }
    }

    /// Writes an entry.
    ///
    /// # Safety
    ///
    /// `slot` is free, aligned to 8 and at least `draft.size()` bytes long, which is at most [`SLOT_MAX`].
    pub(crate) unsafe fn write(slot: NonNull<u8>, draft: Draft<'_>) -> RawEntry {
        debug_assert!(draft.size() <= SLOT_MAX, "the draft was fitted");
        let entry = RawEntry(slot);
        let (kind, value_len) = (draft.value.kind(), draft.value.inline_len());
        let (long, key_len) = match &draft.key {
            KeyPart::Inline(key) => (0, key.len()),
            KeyPart::Long(_) => (LONG_KEY, 0),
        };
        let header =
            kind | if draft.deadline.is_some() {
                HAS_DEADLINE
            } else {
                0
            } | if draft.raw { RAW } else { 0 }
                | long
                | (u64::from(draft.access) & ACCESS_MASK) << ACCESS_SHIFT
                | (key_len as u64) << KEY_SHIFT
                | (value_len as u64) << VALUE_SHIFT;
        entry.set_header(header);
        if let Some(deadline) = draft.deadline {
            entry.set_deadline(deadline);
        }
        match draft.key {
            KeyPart::Inline(key) => {
                let place = entry.at(Self::key_offset(header));
                // SAFETY: within the slot; the key lies elsewhere.
                unsafe { place.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len()) };
            }
            KeyPart::Long(long) => {
                let place = entry.at(Self::after_deadline(header)).cast::<LongKey>();
                // SAFETY: within the slot, aligned.
                unsafe { place.write(long) };
            }
        }
        let place = entry.at(Self::value_offset(header));
        match draft.value {
            // SAFETY: within the slot, aligned.
            Payload::Int(value) => unsafe { place.cast::<i64>().write(value) },
            Payload::Bytes(bytes) | Payload::Packed(bytes) => {
                let (start, _) = entry.inline_bytes(header);
                // SAFETY: within the slot; the bytes lie elsewhere.
                unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
            }
            // SAFETY: within the slot, aligned.
            Payload::Rope(rope) => unsafe { place.cast::<Rope>().write(rope) },
            // SAFETY: within the slot, aligned.
            Payload::Large(collection) => unsafe {
                place.cast::<Box<Collection>>().write(collection);
            },
        }
        entry
    }
}

const _: () = assert!(align_of::<Rope>() <= 8 && SLOT_MAX < 1 << 12);
// A packed collection always fits beside its key.
const _: () =
    assert!(2 * HEADER_BYTES + size_of::<LongKey>() + KEY_INLINE_MAX + PACKED_MAX <= SLOT_MAX);
