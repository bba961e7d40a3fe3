//! Sets: different strings.
//!
//! A set is *flat*, all members in a few bytes, or a *table*. Packed sets are flat; large ones are flat as long as they are called
//! `intset` or `listpack` and small, because clients see the order that these names stand for: ascending integers, or the order
//! in which members came. Owns both forms, what a set is called, random members, walks, and algebra. Knows no keys.
//!
//! What a set is called follows Redis's thresholds at the moment a member is added, and never goes back.
mod algebra;
mod flat;
mod gathered;
mod integers;
mod sample;
mod walk;

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

pub use algebra::{Algebra, Operation, Outcome};
pub use gathered::Gathered;
pub use sample::{Popped, Sample};
pub use walk::Walk;

use crate::collection::{Built, Collection, CollectionRef, Draft, PACKED_MAX};
use crate::members::Members;
use crate::number::{self, NumberText};
use flat::{Addition, Flat};

/// The most bytes that a large set lies flat in: enough for whatever the default thresholds let be called `listpack` or
/// `intset` (128 members of 64 bytes, 512 integers of 8), and so few that looking through or copying them takes about a microsecond.
const FLAT_MAX: usize = 16 * 1024;

/// What Redis would call the form of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// Integers in ascending order.
    Intset = 0,
    /// Members in the order in which they came.
    Listpack = 1,
    /// Members in no order.
    Hashtable = 2,
}

impl Encoding {
    const fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Intset),
            1 => Some(Self::Listpack),
            2 => Some(Self::Hashtable),
            _ => None,
        }
    }

    /// The name that OBJECT ENCODING says.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intset => "intset",
            Self::Listpack => "listpack",
            Self::Hashtable => "hashtable",
        }
    }
}

/// Redis's thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `set-max-intset-entries`
    pub intset_entries: usize,
    /// `set-max-listpack-entries`
    pub listpack_entries: usize,
    /// `set-max-listpack-value`, in bytes.
    pub listpack_value: usize,
}

impl Limits {
    /// What a set is called at first that is made for about `count` members, this one among them.
    fn called_first(&self, member: Member<'_>, count: usize) -> Encoding {
        if member.integer().is_some() && count <= self.intset_entries {
            Encoding::Intset
        } else if count <= self.listpack_entries {
            Encoding::Listpack
        } else {
            Encoding::Hashtable
        }
    }

    /// What a set of `len` members is called once it has this one as well, which is new to it.
    fn called_with(
        &self,
        called: Encoding,
        len: usize,
        member: Member<'_>,
        text_len_max: impl FnOnce() -> usize,
    ) -> Encoding {
        let listed = || len < self.listpack_entries && member.len() <= self.listpack_value;
        let stays = match called {
            Encoding::Intset if member.integer().is_some() => {
                return if len < self.intset_entries {
                    Encoding::Intset
                } else {
                    Encoding::Hashtable
                };
            }
            Encoding::Intset => listed() && text_len_max() <= self.listpack_value,
            Encoding::Listpack => listed(),
            Encoding::Hashtable => false,
        };
        if stays {
            Encoding::Listpack
        } else {
            Encoding::Hashtable
        }
    }

    /// Whether a set that has so many members and is to have any others, or other orders of them, is called `hashtable` for sure.
    const fn exceeded_by(&self, len: usize) -> bool {
        len > self.intset_entries && len > self.listpack_entries
    }
}

/// One member.
#[derive(Clone, Copy, Debug)]
pub enum Member<'a> {
    /// As it is.
    Bytes(&'a [u8]),
    /// The text of an integer.
    Integer(i64),
}

impl<'a> Member<'a> {
    /// Its text, for which `buffer` has room if need be.
    #[inline]
    pub fn text<'b>(&self, buffer: &'b mut Option<NumberText>) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self {
            Member::Bytes(bytes) => bytes,
            Member::Integer(value) => buffer.insert(number::format_i64(value)),
        }
    }

    /// Calls `act` with its text.
    #[inline]
    pub fn with<R>(self, act: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Member::Bytes(bytes) => act(bytes),
            Member::Integer(value) => act(&number::format_i64(value)),
        }
    }

    /// Its text, copied.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        self.with(<[u8]>::to_vec)
    }

    /// The integer whose canonical text it is, if it is one.
    #[inline]
    fn integer(self) -> Option<i64> {
        match self {
            Member::Bytes(bytes) => number::parse_i64(bytes),
            Member::Integer(value) => Some(value),
        }
    }

    /// Whether its text is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The length of its text in bytes.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Member::Bytes(bytes) => bytes.len(),
            Member::Integer(value) => number::i64_text_len(value),
        }
    }
}

/// A large set, or one that is in no keyspace. Cloning it is its snapshot.
#[derive(Clone, Debug)]
pub struct Set(Form);

// A table lies where its collection's box is: one cache miss less. Flat sets that are that large are few.
#[expect(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
enum Form {
    Flat(Arc<Vec<u8>>),
    Table { members: Members, called: Encoding },
}

impl Default for Set {
    /// A set without members.
    fn default() -> Self {
        Self::empty(Encoding::Intset)
    }
}

impl Set {
    /// One without members, which is to be called so.
    fn empty(called: Encoding) -> Self {
        Self(Form::Flat(Arc::new(flat::empty(called))))
    }

    /// A look at it.
    #[inline]
    #[must_use]
    pub fn as_ref(&self) -> SetRef<'_> {
        match &self.0 {
            Form::Flat(bytes) => SetRef(View::Flat(bytes)),
            Form::Table { members, called } => SetRef(View::Table(members, *called)),
        }
    }

    /// How many members it has.
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
            Form::Table { members, .. } => members.allocated_bytes(),
        }
    }

    /// Adds a member and says whether it is new.
    fn add(&mut self, member: Member<'_>, limits: &Limits, seed: u64) -> bool {
        if let Form::Flat(bytes) = &mut self.0 {
            // What others look at as well is copied only to be changed.
            if Arc::get_mut(bytes).is_none() && Flat::new(bytes).contains(member) {
                return false;
            }
            match flat::add(Arc::make_mut(bytes), member, limits, room) {
                Addition::Present => return false,
                Addition::Added => return true,
                Addition::Full => self.spread(seed),
            }
        }
        let Form::Table { members, called } = &mut self.0 else {
            unreachable!("it was spread");
        };
        let len = members.len();
        if !member.with(|text| insert(members, text)) {
            return false;
        }
        // The new member's text is among the others' by now; it may not be too long either.
        let text_len_max = || members.iter().map(|handle| members.key(handle).len()).max();
        *called = limits.called_with(*called, len, member, || text_len_max().unwrap_or(0));
        true
    }

    /// Makes a flat set a table.
    fn spread(&mut self, seed: u64) {
        if let Form::Flat(bytes) = &self.0 {
            let mut members = Members::new(seed);
            let flat = Flat::new(bytes);
            for member in flat.iter() {
                member.with(|text| insert(&mut members, text));
            }
            let called = flat.called();
            self.0 = Form::Table { members, called };
        }
    }

    /// Removes a member and says whether it was there.
    fn remove(&mut self, member: Member<'_>) -> bool {
        match &mut self.0 {
            Form::Flat(bytes) => {
                let there = Arc::get_mut(bytes).is_some() || Flat::new(bytes).contains(member);
                there && flat::remove(Arc::make_mut(bytes), member)
            }
            Form::Table { members, .. } => member.with(|text| members.remove(text)),
        }
    }

    /// The set as a value of a key; none if it is empty.
    #[must_use]
    pub fn into_built(self) -> Option<Built> {
        if self.is_empty() {
            return None;
        }
        let packed = match &self.0 {
            Form::Flat(bytes) if bytes.len() <= PACKED_MAX => Some(bytes.to_vec()),
            Form::Flat(_) => None,
            Form::Table { members, called } => packed(members, *called),
        };
        Some(match packed {
            Some(bytes) => Built::Packed(bytes),
            None => Built::Large(Box::new(Collection::Set(self))),
        })
    }
}

/// How many bytes a large set may lie flat in. Where nobody sees an order, flat is only for what could be packed.
const fn room(called: Encoding) -> usize {
    match called {
        Encoding::Intset | Encoding::Listpack => FLAT_MAX,
        Encoding::Hashtable => PACKED_MAX,
    }
}

fn insert(members: &mut Members, text: &[u8]) -> bool {
    members.insert(text, &[]).replaced.is_none()
}

/// The packed bytes of a table that is called `hashtable`, if they are few enough.
fn packed(members: &Members, called: Encoding) -> Option<Vec<u8>> {
    // An element takes two bytes at least.
    if called != Encoding::Hashtable || members.len() > PACKED_MAX / 2 {
        return None;
    }
    let everything = Limits {
        intset_entries: 0,
        listpack_entries: 0,
        listpack_value: 0,
    };
    let mut bytes = flat::empty(called);
    for handle in members.iter() {
        let member = Member::Bytes(members.key(handle));
        if flat::add(&mut bytes, member, &everything, |_| PACKED_MAX) == Addition::Full {
            return None;
        }
    }
    Some(bytes)
}

/// Whether packed bytes are a set, exactly as written here: for bytes from outside.
#[must_use]
pub fn is_valid(bytes: &[u8]) -> bool {
    bytes.len() <= PACKED_MAX && flat::is_valid(bytes)
}

/// A set to be looked at, in either form.
#[derive(Clone, Copy, Debug)]
pub struct SetRef<'a>(View<'a>);

#[derive(Clone, Copy, Debug)]
enum View<'a> {
    Flat(&'a [u8]),
    Table(&'a Members, Encoding),
}

impl<'a> From<CollectionRef<'a>> for SetRef<'a> {
    /// # Panics
    /// If it is a large collection of another kind.
    fn from(collection: CollectionRef<'a>) -> Self {
        match collection {
            CollectionRef::Packed(bytes) => SetRef(View::Flat(bytes)),
            CollectionRef::Large(Collection::Set(set)) => set.as_ref(),
            CollectionRef::Large(other) => unreachable!("{}, not {other:?}", WANTED),
        }
    }
}

impl<'a> SetRef<'a> {
    /// How many members it has.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        match self.0 {
            View::Flat(bytes) => Flat::new(bytes).len(),
            View::Table(members, _) => members.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// What it is called.
    #[must_use]
    pub fn encoding(self) -> Encoding {
        match self.0 {
            View::Flat(bytes) => Flat::new(bytes).called(),
            View::Table(_, called) => called,
        }
    }

    /// Whether it has this member.
    #[inline]
    #[must_use]
    pub fn contains(self, member: &[u8]) -> bool {
        self.has(Member::Bytes(member))
    }

    fn has(self, member: Member<'_>) -> bool {
        match self.0 {
            View::Flat(bytes) => Flat::new(bytes).contains(member),
            View::Table(members, _) => member.with(|text| members.get(text).is_some()),
        }
    }

    /// Calls `each` with all members, in the set's order if it has one. Takes time with their number: walks do not.
    pub fn for_each(self, mut each: impl FnMut(Member<'a>)) {
        match self.0 {
            View::Flat(bytes) => Flat::new(bytes).iter().for_each(each),
            View::Table(members, _) => members
                .iter()
                .for_each(|handle| each(Member::Bytes(members.key(handle)))),
        }
    }

    /// All members if the set is so small that they are had at once, in its order.
    #[must_use]
    pub fn few(self) -> Option<impl Iterator<Item = Member<'a>>> {
        match self.0 {
            View::Flat(bytes) => Some(Flat::new(bytes).iter()),
            View::Table(..) => None,
        }
    }

    /// One step of a scan: calls `each` with `at_least` so many members from the cursor on, unless there are no more, and returns
    /// the next cursor, 0 at the end. A flat set is had in one step. Members that are there all the time are had at least once.
    pub fn scan(self, cursor: u64, at_least: usize, mut each: impl FnMut(Member<'a>)) -> u64 {
        match self.0 {
            View::Flat(bytes) => {
                Flat::new(bytes).iter().for_each(each);
                0
            }
            View::Table(members, _) => members.scan(cursor, at_least, |handle| {
                each(Member::Bytes(members.key(handle)));
            }),
        }
    }

    /// Adds the members to a hash, whatever their order.
    pub fn digest(self, hasher: &mut impl Hasher) {
        let mut sum = 0_u64;
        self.for_each(|member| {
            let mut own = DefaultHasher::new();
            member.with(|text| own.write(text));
            sum = sum.wrapping_add(own.finish());
        });
        hasher.write_usize(self.len());
        hasher.write_u64(sum);
    }

    /// The set apart from its key: a snapshot, or a copy of the packed bytes.
    #[must_use]
    pub fn snapshot(self) -> Set {
        match self.0 {
            View::Flat(bytes) => Set(Form::Flat(Arc::new(bytes.to_vec()))),
            View::Table(members, called) => Set(Form::Table {
                members: members.clone(),
                called,
            }),
        }
    }
}

/// A set to be changed, in either form; it may be one that does not exist yet.
#[derive(Debug)]
pub struct SetMut<'d, 'a> {
    draft: &'d mut Draft<'a>,
    limits: Limits,
    seed: u64,
}

impl<'d, 'a> SetMut<'d, 'a> {
    /// The set of a draft. `seed` is for the table that it may become.
    pub const fn new(draft: &'d mut Draft<'a>, limits: Limits, seed: u64) -> Self {
        Self {
            draft,
            limits,
            seed,
        }
    }

    /// A look at it, if there is one.
    #[must_use]
    pub fn as_ref(&self) -> Option<SetRef<'_>> {
        self.draft.as_ref().map(SetRef::from)
    }

    /// Adds members and says how many were new. What a new set is called depends on the first one and on their number.
    pub fn add_all<'m>(&mut self, members: impl ExactSizeIterator<Item = &'m [u8]>) -> usize {
        let mut members = members.peekable();
        let count = members.len();
        if let (Draft::Packed(bytes), Some(first)) = (&mut *self.draft, members.peek())
            && bytes.is_empty()
        {
            let called = self.limits.called_first(Member::Bytes(first), count);
            **bytes = flat::empty(called);
        }
        members.filter(|member| self.add(member)).count()
    }

    /// Adds a member and says whether it is new.
    pub fn add(&mut self, member: &[u8]) -> bool {
        let member = Member::Bytes(member);
        let bytes = match self.draft {
            Draft::Packed(bytes) => bytes,
            Draft::Large(collection) => {
                return set_of(collection).add(member, &self.limits, self.seed);
            }
            Draft::Grown(collection) => {
                return set_of(collection).add(member, &self.limits, self.seed);
            }
        };
        if bytes.is_empty() {
            **bytes = flat::empty(self.limits.called_first(member, 1));
        }
        match flat::add(bytes, member, &self.limits, |_| PACKED_MAX) {
            Addition::Present => false,
            Addition::Added => true,
            Addition::Full => {
                let mut set = Set(Form::Flat(Arc::new(std::mem::take(*bytes))));
                set.add(member, &self.limits, self.seed);
                *self.draft = Draft::Grown(Box::new(Collection::Set(set)));
                true
            }
        }
    }

    /// Removes a member and says whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let member = Member::Bytes(member);
        match self.draft {
            Draft::Packed(bytes) => {
                let removed = !bytes.is_empty() && flat::remove(bytes, member);
                if removed && Flat::new(bytes).len() == 0 {
                    bytes.clear();
                }
                removed
            }
            Draft::Large(collection) => set_of(collection).remove(member),
            Draft::Grown(collection) => set_of(collection).remove(member),
        }
    }
}

const WANTED: &str = "a set was asked for";

/// # Panics
/// If it is a collection of another kind.
fn set_of(collection: &mut Collection) -> &mut Set {
    match collection {
        Collection::Set(set) => set,
        other => unreachable!("{}, not {other:?}", WANTED),
    }
}

#[cfg(test)]
mod tests;
