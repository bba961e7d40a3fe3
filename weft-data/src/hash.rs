//! Hashes: values by the names of fields, some of which expire.
//!
//! A hash is *flat*, all fields in a few bytes, or *keyed*. Packed hashes are flat; large ones are flat as long as they are called
//! `listpack` or `listpackex` and small, because clients see the order that these names stand for: as the fields came, or first those
//! that expire, the soonest first. Owns both forms, what a hash is called, deadlines of fields, random fields, and walks. Knows no
//! keys and no clock: who asks says what time it is, and a field whose time has come is missing for him, though it may still be there.
//!
//! What a hash is called follows Redis's thresholds at the moment a field is set, and never goes back.
mod deadlines;
mod fields;
mod flat;
mod keyed;
mod sample;
mod walk;

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use weft_rope::Rope;

pub use sample::Sample;
pub use walk::Walk;

use crate::collection::{Collection, CollectionRef, Draft, PACKED_MAX};
use crate::packed;
use flat::Flat;
use keyed::Keyed;

/// The most bytes that a large hash lies flat in: enough for whatever the default thresholds let be called `listpack` (512 fields and
/// values of 64 bytes each, with deadlines).
const FLAT_MAX: usize = 80 * 1024;

/// The first deadline that is too late, milliseconds since 1970 (as in Redis).
pub const DEADLINE_END: u64 = 1 << 46;

/// From this length on, in bytes, a value is a rope and never copied whole.
pub const ROPE_MIN: usize = 64 * 1024;

/// What Redis would call the form of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Fields in the order in which they came.
    Listpack,
    /// The same, made for fields that expire: these first, the soonest before the others.
    ListpackEx,
    /// Fields in no order.
    Hashtable,
}

impl Encoding {
    /// The name that OBJECT ENCODING says.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Listpack => "listpack",
            Self::ListpackEx => "listpackex",
            Self::Hashtable => "hashtable",
        }
    }
}

/// Redis's thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `hash-max-listpack-entries`
    pub entries: usize,
    /// `hash-max-listpack-value`, in bytes.
    pub value: usize,
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Short.
    Bytes(&'a [u8]),
    /// Long.
    Rope(&'a Rope),
}

impl<'a> Value<'a> {
    /// Its length in bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Rope(rope) => rope.len(),
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Its bytes, if they lie in one piece, as those of numbers do.
    #[must_use]
    pub fn in_one_piece(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Rope(rope) => rope.as_contiguous(),
        }
    }
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: Value<'a>,
    /// When it expires, milliseconds since 1970.
    pub deadline: Option<u64>,
}

impl Field<'_> {
    /// Whether its time has not come yet.
    #[inline]
    fn is_live(&self, now_ms: u64) -> bool {
        self.deadline.is_none_or(|deadline| deadline > now_ms)
    }
}

/// What setting a value does to the field's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// It stays; a new field has none.
    Keep,
    /// There is none afterwards.
    Clear,
    /// This one, milliseconds since 1970, before [`DEADLINE_END`].
    At(u64),
}

impl Deadline {
    fn applied_to(self, old: Option<u64>) -> Option<u64> {
        match self {
            Self::Keep => old,
            Self::Clear => None,
            Self::At(ms) => Some(ms),
        }
    }
}

/// A large hash, or one that is in no keyspace. Cloning it is its snapshot.
#[derive(Clone, Debug)]
pub struct Hash(Form);

#[derive(Clone, Debug)]
enum Form {
    Flat(Arc<Vec<u8>>),
    Keyed(Box<Keyed>),
}

impl Hash {
    /// A look at it.
    #[inline]
    #[must_use]
    pub fn as_ref(&self) -> HashRef<'_> {
        match &self.0 {
            Form::Flat(bytes) => HashRef(View::Flat(Flat::new(bytes))),
            Form::Keyed(keyed) => HashRef(View::Keyed(keyed)),
        }
    }

    /// How many fields it has, those whose time has come among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_ref().len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it has allocated, as if it shared none.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        match &self.0 {
            Form::Flat(bytes) => size_of::<Vec<u8>>() + 2 * size_of::<usize>() + bytes.capacity(),
            Form::Keyed(keyed) => size_of::<Keyed>() + keyed.allocated_bytes(),
        }
    }

    /// When the first field expires, milliseconds since 1970.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        self.as_ref().due()
    }

    /// It, keyed if it is not yet.
    fn keyed(&mut self, seed: u64) -> &mut Keyed {
        if let Form::Flat(bytes) = &self.0 {
            self.0 = Form::Keyed(Box::new(Keyed::from_flat(Flat::new(bytes), seed)));
        }
        match &mut self.0 {
            Form::Keyed(keyed) => keyed,
            Form::Flat(_) => unreachable!("it was made keyed"),
        }
    }

    fn set(
        &mut self,
        name: &[u8],
        value: Value<'_>,
        deadline: Deadline,
        limits: &Limits,
        seed: u64,
    ) -> bool {
        match (&mut self.0, flat_value(name, value)) {
            (Form::Flat(bytes), Some(text)) => {
                let is_new = flat::set(Arc::make_mut(bytes), name, text, deadline, limits);
                self.spread(seed);
                is_new
            }
            _ => self.keyed(seed).set(name, value, deadline, limits),
        }
    }

    /// Becomes keyed if it is flat and should not be.
    fn spread(&mut self, seed: u64) {
        if let Form::Flat(bytes) = &self.0
            && bytes.len() > room(Flat::new(bytes).called())
        {
            self.keyed(seed);
        }
    }

    fn set_deadline(&mut self, name: &[u8], deadline: Option<u64>, seed: u64) -> bool {
        let is_there = match &mut self.0 {
            Form::Flat(bytes) => flat::set_deadline(Arc::make_mut(bytes), name, deadline),
            Form::Keyed(keyed) => keyed.set_deadline(name, deadline),
        };
        self.spread(seed);
        is_there
    }

    fn remove(&mut self, name: &[u8]) -> bool {
        match &mut self.0 {
            Form::Flat(bytes) => {
                Flat::new(bytes).get(name).is_some() && flat::remove(Arc::make_mut(bytes), name)
            }
            Form::Keyed(keyed) => keyed.remove(name),
        }
    }

    fn call_at_least(&mut self, called: Encoding, seed: u64) {
        match &mut self.0 {
            Form::Flat(bytes) => {
                flat::call_at_least(Arc::make_mut(bytes), called);
                self.spread(seed);
            }
            Form::Keyed(keyed) => keyed.call_at_least(called),
        }
    }

    fn expire_due(&mut self, now_ms: u64, most: usize, each: &mut dyn FnMut(&[u8])) -> usize {
        if self.due().is_none_or(|due| due > now_ms) {
            return 0;
        }
        match &mut self.0 {
            Form::Flat(bytes) => flat::expire_due(Arc::make_mut(bytes), now_ms, most, each),
            Form::Keyed(keyed) => keyed.expire_due(now_ms, most, each),
        }
    }
}

/// How many bytes a large hash may lie flat in. Where nobody sees an order, flat is only for what could be packed.
const fn room(called: Encoding) -> usize {
    match called {
        Encoding::Listpack | Encoding::ListpackEx => FLAT_MAX,
        Encoding::Hashtable => PACKED_MAX,
    }
}

/// The bytes of a value that may lie flat with a field of this name.
fn flat_value<'v>(name: &[u8], value: Value<'v>) -> Option<&'v [u8]> {
    match value {
        Value::Bytes(bytes)
            if name.len() <= packed::ELEMENT_MAX && bytes.len() <= packed::ELEMENT_MAX =>
        {
            Some(bytes)
        }
        _ => None,
    }
}

/// Whether packed bytes are a hash, exactly as written here: for bytes from outside.
#[must_use]
pub fn is_valid(bytes: &[u8]) -> bool {
    bytes.len() <= PACKED_MAX && flat::is_valid(bytes)
}

/// A hash to be looked at, in either form.
#[derive(Clone, Copy, Debug)]
pub struct HashRef<'a>(View<'a>);

#[derive(Clone, Copy, Debug)]
enum View<'a> {
    Flat(Flat<'a>),
    Keyed(&'a Keyed),
}

impl<'a> From<CollectionRef<'a>> for HashRef<'a> {
    /// # Panics
    /// If it is a large collection of another kind.
    #[inline]
    fn from(collection: CollectionRef<'a>) -> Self {
        match collection {
            CollectionRef::Packed(bytes) => HashRef(View::Flat(Flat::new(bytes))),
            CollectionRef::Large(Collection::Hash(hash)) => hash.as_ref(),
            CollectionRef::Large(other) => unreachable!("a hash was asked for, not {other:?}"),
        }
    }
}

impl<'a> HashRef<'a> {
    /// How many fields it has, those whose time has come among them.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        match self.0 {
            View::Flat(flat) => flat.len(),
            View::Keyed(keyed) => keyed.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// How many fields it has whose time has not come.
    #[must_use]
    pub fn live_len(self, now_ms: u64) -> usize {
        self.len() - self.due_len(now_ms)
    }

    /// How many fields it has whose time has come.
    fn due_len(self, now_ms: u64) -> usize {
        match self.due() {
            Some(due) if due <= now_ms => match self.0 {
                View::Flat(flat) => flat
                    .iter()
                    .take_while(|field| !field.is_live(now_ms))
                    .count(),
                View::Keyed(keyed) => keyed.due_len(now_ms),
            },
            _ => 0,
        }
    }

    /// When the first field expires, milliseconds since 1970.
    #[inline]
    #[must_use]
    pub fn due(self) -> Option<u64> {
        match self.0 {
            View::Flat(flat) => flat.due(),
            View::Keyed(keyed) => keyed.due(),
        }
    }

    /// What it is called.
    #[must_use]
    pub fn encoding(self) -> Encoding {
        match self.0 {
            View::Flat(flat) => flat.called(),
            View::Keyed(keyed) => keyed.called(),
        }
    }

    /// The field of this name, unless its time has come.
    #[inline]
    #[must_use]
    pub fn get(self, name: &[u8], now_ms: u64) -> Option<Field<'a>> {
        self.get_any(name).filter(|field| field.is_live(now_ms))
    }

    /// The field of this name, even if its time has come.
    #[inline]
    #[must_use]
    pub fn get_any(self, name: &[u8]) -> Option<Field<'a>> {
        match self.0 {
            View::Flat(flat) => flat.get(name),
            View::Keyed(keyed) => keyed.get(name),
        }
    }

    /// All fields that are there if the hash is so small that they are had at once, in its order.
    #[must_use]
    pub fn few(self, now_ms: u64) -> Option<impl Iterator<Item = Field<'a>> + Clone> {
        match self.0 {
            View::Flat(flat) => Some(flat.iter().skip_while(move |field| !field.is_live(now_ms))),
            View::Keyed(_) => None,
        }
    }

    /// One step of a scan: calls `each` with `at_least` so many fields from the cursor on, unless there are no more, and returns the
    /// next cursor, 0 at the end. A flat hash is had in one step. Fields that are there all the time are had at least once.
    pub fn scan(
        self,
        cursor: u64,
        at_least: usize,
        now_ms: u64,
        mut each: impl FnMut(Field<'a>),
    ) -> u64 {
        let mut each_live = |field: Field<'a>| {
            if field.is_live(now_ms) {
                each(field);
            }
        };
        match self.0 {
            View::Flat(flat) => {
                flat.iter().for_each(each_live);
                0
            }
            View::Keyed(keyed) => keyed.scan(cursor, at_least, &mut each_live),
        }
    }

    /// The field with this number, counted in the order of walks; its time may have come. Random fields are drawn by number.
    #[must_use]
    pub fn nth(self, number: usize) -> Option<Field<'a>> {
        match self.0 {
            View::Flat(flat) => flat.iter().nth(number),
            View::Keyed(keyed) => keyed.nth(number),
        }
    }

    /// A live field of which each is as likely as any other, if `draw` gives each number below its argument as likely as any other.
    pub fn random(self, now_ms: u64, draw: &mut impl FnMut(u64) -> u64) -> Option<Field<'a>> {
        /// Draws of fields whose time has come, beyond which the live ones are counted through.
        const TRIES: usize = 64;
        let live = self.live_len(now_ms);
        if live == 0 {
            return None;
        }
        match self.0 {
            View::Flat(flat) => {
                let due = flat.len() - live;
                flat.iter().nth(due + draw(live as u64) as usize)
            }
            View::Keyed(keyed) => {
                for _ in 0..TRIES {
                    let field = keyed.nth(draw(keyed.len() as u64) as usize)?;
                    if field.is_live(now_ms) {
                        return Some(field);
                    }
                }
                let number = draw(live as u64) as usize;
                keyed
                    .iter()
                    .filter(|field| field.is_live(now_ms))
                    .nth(number)
            }
        }
    }

    /// Adds what it holds to a hash, deadlines among it, independently of its form and order.
    pub fn digest(self, hasher: &mut impl Hasher) {
        let mut sum = 0_u64;
        let mut add = |field: Field<'_>| {
            let mut own = DefaultHasher::new();
            own.write_usize(field.name.len());
            own.write(field.name);
            match field.value {
                Value::Bytes(bytes) => own.write(bytes),
                Value::Rope(rope) => rope.slices(..).for_each(|slice| own.write(slice)),
            }
            own.write_u64(field.deadline.unwrap_or(0));
            sum = sum.wrapping_add(own.finish());
        };
        match self.0 {
            View::Flat(flat) => flat.iter().for_each(&mut add),
            View::Keyed(keyed) => keyed.iter().for_each(&mut add),
        }
        hasher.write_usize(self.len());
        hasher.write_u64(sum);
    }

    /// The hash apart from its key: a snapshot, or a copy of the packed bytes.
    #[must_use]
    pub fn snapshot(self) -> Hash {
        match self.0 {
            View::Flat(flat) => Hash(Form::Flat(Arc::new(flat.bytes().to_vec()))),
            View::Keyed(keyed) => Hash(Form::Keyed(Box::new(keyed.clone()))),
        }
    }
}

/// A hash that is being changed, in either form.
#[derive(Debug)]
pub struct HashMut<'d, 'a> {
    draft: &'d mut Draft<'a>,
    limits: Limits,
    seed: u64,
}

impl<'d, 'a> HashMut<'d, 'a> {
    /// The hash of a draft. `seed` is for the table that it may become.
    pub const fn new(draft: &'d mut Draft<'a>, limits: Limits, seed: u64) -> Self {
        Self {
            draft,
            limits,
            seed,
        }
    }

    /// The hash of a draft, from which fields are only removed.
    pub const fn for_removal(draft: &'d mut Draft<'a>) -> Self {
        let limits = Limits {
            entries: usize::MAX,
            value: usize::MAX,
        };
        Self::new(draft, limits, 0)
    }

    /// A look at it, if there is one.
    #[must_use]
    pub fn as_ref(&self) -> Option<HashRef<'_>> {
        self.draft.as_ref().map(HashRef::from)
    }

    /// The field of this name, unless its time has come.
    #[must_use]
    pub fn get(&self, name: &[u8], now_ms: u64) -> Option<Field<'_>> {
        self.as_ref()?.get(name, now_ms)
    }

    /// Says what is about to be set: so many fields, and names and values of at most `longest` bytes. Decides what it is called.
    pub fn expect(&mut self, fields: usize, longest: usize) {
        if fields > self.limits.entries || longest > self.limits.value {
            self.call_at_least(Encoding::Hashtable);
        }
    }

    /// Says that fields are to expire. Decides what it is called.
    pub fn expect_deadlines(&mut self) {
        self.call_at_least(Encoding::ListpackEx);
    }

    fn call_at_least(&mut self, called: Encoding) {
        match self.draft {
            Draft::Packed(bytes) => {
                flat::begin(bytes);
                flat::call_at_least(bytes, called);
                self.grow();
            }
            Draft::Large(collection) => hash_of(collection).call_at_least(called, self.seed),
            Draft::Grown(collection) => hash_of(collection).call_at_least(called, self.seed),
        }
    }

    /// Sets a field and says whether it is new. One whose time has come is not: it should have been removed.
    pub fn set(&mut self, name: &[u8], value: Value<'_>, deadline: Deadline) -> bool {
        let (limits, seed) = (self.limits, self.seed);
        let bytes = match self.draft {
            Draft::Packed(bytes) => bytes,
            Draft::Large(collection) => {
                return hash_of(collection).set(name, value, deadline, &limits, seed);
            }
            Draft::Grown(collection) => {
                return hash_of(collection).set(name, value, deadline, &limits, seed);
            }
        };
        flat::begin(bytes);
        match flat_value(name, value) {
            Some(text) if name.len() + text.len() <= FLAT_MAX => {
                let is_new = flat::set(bytes, name, text, deadline, &limits);
                self.grow();
                is_new
            }
            _ => {
                let mut hash = Hash(Form::Flat(Arc::new(std::mem::take(*bytes))));
                let is_new = hash.set(name, value, deadline, &limits, seed);
                *self.draft = Draft::Grown(Box::new(Collection::Hash(hash)));
                is_new
            }
        }
    }

    /// Gives the field a deadline, or takes it; says whether there is such a field.
    pub fn set_deadline(&mut self, name: &[u8], deadline: Option<u64>) -> bool {
        match self.draft {
            Draft::Packed(bytes) => {
                let is_there = !bytes.is_empty() && flat::set_deadline(bytes, name, deadline);
                self.grow();
                is_there
            }
            Draft::Large(collection) => hash_of(collection).set_deadline(name, deadline, self.seed),
            Draft::Grown(collection) => hash_of(collection).set_deadline(name, deadline, self.seed),
        }
    }

    /// Removes a field and says whether it was there.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let removed = match self.draft {
            Draft::Packed(bytes) => !bytes.is_empty() && flat::remove(bytes, name),
            Draft::Large(collection) => return hash_of(collection).remove(name),
            Draft::Grown(collection) => return hash_of(collection).remove(name),
        };
        self.end();
        removed
    }

    /// Removes the field if its time has come, and says whether it did.
    pub fn remove_due(&mut self, name: &[u8], now_ms: u64) -> bool {
        let hash = self.as_ref();
        let may_be_due = hash.and_then(HashRef::due).is_some_and(|due| due <= now_ms);
        let is_due = may_be_due
            && hash
                .and_then(|hash| hash.get_any(name))
                .is_some_and(|field| !field.is_live(now_ms));
        is_due && self.remove(name)
    }

    /// Removes up to `most` fields whose time has come, the soonest first, and says how many; `each` sees their names.
    pub fn expire_due(&mut self, now_ms: u64, most: usize, mut each: impl FnMut(&[u8])) -> usize {
        let expired = match self.draft {
            Draft::Packed(bytes) if bytes.is_empty() => 0,
            Draft::Packed(bytes) => flat::expire_due(bytes, now_ms, most, &mut each),
            Draft::Large(collection) => {
                return hash_of(collection).expire_due(now_ms, most, &mut each);
            }
            Draft::Grown(collection) => {
                return hash_of(collection).expire_due(now_ms, most, &mut each);
            }
        };
        self.end();
        expired
    }

    /// Packed bytes without fields are none.
    fn end(&mut self) {
        if let Draft::Packed(bytes) = self.draft
            && !bytes.is_empty()
            && Flat::new(bytes).len() == 0
        {
            bytes.clear();
        }
    }

    /// Packed bytes that have become too many become a large hash.
    fn grow(&mut self) {
        if let Draft::Packed(bytes) = self.draft
            && bytes.len() > PACKED_MAX
        {
            let mut hash = Hash(Form::Flat(Arc::new(std::mem::take(*bytes))));
            hash.spread(self.seed);
            *self.draft = Draft::Grown(Box::new(Collection::Hash(hash)));
        }
    }
}

/// # Panics
/// If it is a collection of another kind.
fn hash_of(collection: &mut Collection) -> &mut Hash {
    match collection {
        Collection::Hash(hash) => hash,
        other => unreachable!("a hash was asked for, not {other:?}"),
    }
}

#[cfg(test)]
mod tests;
