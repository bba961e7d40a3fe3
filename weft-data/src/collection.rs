//! Collections: lists, sets, sorted sets, hashes and streams, in either of their two forms.
//!
//! A small collection is *packed*: a few bytes that the keyspace keeps inside the key's entry. Any other is *large*: nodes
//! with counts, so that cloning one is its snapshot, and changing it copies only the shared nodes on the way. Owns the choice
//! between the two; does not know keys or latches. What OBJECT ENCODING says follows Redis's thresholds, not the form.
//!
//! Packed bytes begin with a tag: the kind in its low three bits; the others belong to the type.

use std::hash::Hasher;

use crate::hash::{Hash, HashMut, HashRef};
use crate::list::{List, ListRef};
use crate::set::{Set, SetRef};
use crate::sorted_set::{SortedSet, SortedSetRef};
use crate::stream::{Stream, StreamRef};

/// The types of collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Strings in an order, reached by position.
    List = 1,
    /// Different strings.
    Set = 2,
    /// Different strings ordered by their scores.
    SortedSet = 3,
    /// Strings by their names, the fields.
    Hash = 4,
    /// Entries in the order of their ids.
    Stream = 5,
}

/// The bits of a packed collection's tag that say its kind.
pub const KIND_MASK: u8 = 0b111;
/// The most bytes that a packed collection takes, its tag included.
pub const PACKED_MAX: usize = 1024;

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 5] = [
        Kind::List,
        Kind::Set,
        Kind::SortedSet,
        Kind::Hash,
        Kind::Stream,
    ];

    /// The kind that a tag says, if it is one.
    #[must_use]
    pub const fn of_tag(tag: u8) -> Option<Kind> {
        match tag & KIND_MASK {
            1 => Some(Kind::List),
            2 => Some(Kind::Set),
            3 => Some(Kind::SortedSet),
            4 => Some(Kind::Hash),
            5 => Some(Kind::Stream),
            _ => None,
        }
    }

    /// The tag without flags.
    #[must_use]
    pub const fn tag(self) -> u8 {
        self as u8
    }

    /// The name that TYPE says.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::List => "list",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::Hash => "hash",
            Kind::Stream => "stream",
        }
    }
}

/// A large collection. Cloning it takes the same time whatever its size: the clone is its snapshot.
#[derive(Clone, Debug)]
pub enum Collection {
    /// Strings in an order.
    List(List),
    /// Different strings.
    Set(Set),
    /// Different strings in the order of their scores.
    SortedSet(SortedSet),
    /// Strings by their names.
    Hash(Hash),
    /// Entries in the order of their ids.
    Stream(Stream),
}

impl Collection {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Collection::List(_) => Kind::List,
            Collection::Set(_) => Kind::Set,
            Collection::SortedSet(_) => Kind::SortedSet,
            Collection::Hash(_) => Kind::Hash,
            Collection::Stream(_) => Kind::Stream,
        }
    }

    /// How many items it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Collection::List(list) => list.len(),
            Collection::Set(set) => set.len(),
            Collection::SortedSet(set) => set.len(),
            Collection::Hash(hash) => hash.len(),
            Collection::Stream(stream) => stream.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its key has to go: it has no items, and is of a kind that does not exist without.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.is_empty() && self.kind() != Kind::Stream
    }

    /// Bytes that it has allocated, as if it shared none. A count that is kept: asking costs nothing.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        match self {
            Collection::List(list) => list.allocated_bytes(),
            Collection::Set(set) => set.allocated_bytes(),
            Collection::SortedSet(set) => set.allocated_bytes(),
            Collection::Hash(hash) => hash.allocated_bytes(),
            Collection::Stream(stream) => stream.allocated_bytes(),
        }
    }

    /// When its first field expires, milliseconds since 1970.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        match self {
            Collection::Hash(hash) => hash.due(),
            _ => None,
        }
    }
}

/// A collection to be looked at.
#[derive(Clone, Copy, Debug)]
pub enum CollectionRef<'a> {
    /// Packed, with its tag.
    Packed(&'a [u8]),
    /// Large.
    Large(&'a Collection),
}

impl CollectionRef<'_> {
    /// What it is.
    ///
    /// # Panics
    /// If packed bytes are no collection's.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            CollectionRef::Packed(bytes) => packed_kind(bytes),
            CollectionRef::Large(collection) => collection.kind(),
        }
    }

    /// How many items it has.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            CollectionRef::Packed([]) => 0,
            CollectionRef::Packed(_) => match self.kind() {
                Kind::Set => SetRef::from(self).len(),
                Kind::SortedSet => SortedSetRef::from(self).len() as usize,
                Kind::Hash => HashRef::from(self).len(),
                Kind::List => ListRef::from(self).len(),
                Kind::Stream => StreamRef::from(self).len() as usize,
            },
            CollectionRef::Large(collection) => collection.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether its key has to go: it has no items, and is of a kind that does not exist without.
    #[must_use]
    pub fn is_void(self) -> bool {
        self.is_empty()
            && (matches!(self, CollectionRef::Packed([])) || self.kind() != Kind::Stream)
    }

    /// When its first field expires, milliseconds since 1970.
    #[must_use]
    pub fn due(self) -> Option<u64> {
        match self {
            CollectionRef::Packed(_) if self.kind() == Kind::Hash => HashRef::from(self).due(),
            CollectionRef::Packed(_) => None,
            CollectionRef::Large(collection) => collection.due(),
        }
    }

    /// What Redis would call its form.
    #[must_use]
    pub fn encoding(self) -> &'static str {
        match self.kind() {
            Kind::Set => SetRef::from(self).encoding().name(),
            Kind::SortedSet => SortedSetRef::from(self).encoding(),
            Kind::Hash => HashRef::from(self).encoding().name(),
            Kind::List => ListRef::from(self).encoding(),
            Kind::Stream => "stream",
        }
    }

    /// Adds what it holds to a hash, independently of its form, and of an order that it does not have.
    pub fn digest(self, hasher: &mut impl Hasher) {
        match self.kind() {
            Kind::Set => SetRef::from(self).digest(hasher),
            Kind::SortedSet => SortedSetRef::from(self).digest(hasher),
            Kind::Hash => HashRef::from(self).digest(hasher),
            Kind::List => ListRef::from(self).digest(hasher),
            Kind::Stream => StreamRef::from(self).digest(hasher),
        }
    }

    /// A copy of the packed bytes, or a snapshot.
    #[must_use]
    pub fn to_built(self) -> Built {
        match self {
            CollectionRef::Packed(bytes) => Built::Packed(bytes.to_vec()),
            CollectionRef::Large(collection) => Built::Large(Box::new(collection.clone())),
        }
    }
}

fn packed_kind(bytes: &[u8]) -> Kind {
    let tag = bytes.first().copied().unwrap_or_default();
    Kind::of_tag(tag).expect("packed bytes begin with a tag")
}

/// A collection that is in no keyspace: made anew, taken out, or a snapshot.
#[derive(Clone, Debug)]
pub enum Built {
    /// Packed, with its tag. No bytes: no collection.
    Packed(Vec<u8>),
    /// Large.
    Large(Box<Collection>),
}

impl Built {
    /// A look at it.
    #[must_use]
    pub fn as_ref(&self) -> CollectionRef<'_> {
        match self {
            Built::Packed(bytes) => CollectionRef::Packed(bytes),
            Built::Large(collection) => CollectionRef::Large(collection),
        }
    }
}

/// A collection that is being changed.
#[derive(Debug)]
pub enum Draft<'a> {
    /// Its packed bytes, tag first. No bytes: there is no such key, or not any more.
    Packed(&'a mut Vec<u8>),
    /// Large, where it is. Without items its key goes, unless it is a stream.
    Large(&'a mut Collection),
    /// It was packed, and became large by this change.
    Grown(Box<Collection>),
}

impl Draft<'_> {
    /// A look at it, if there is anything.
    #[must_use]
    pub fn as_ref(&self) -> Option<CollectionRef<'_>> {
        match self {
            Draft::Packed(bytes) if bytes.is_empty() => None,
            Draft::Packed(bytes) => Some(CollectionRef::Packed(bytes)),
            Draft::Large(collection) => Some(CollectionRef::Large(collection)),
            Draft::Grown(collection) => Some(CollectionRef::Large(collection)),
        }
    }

    /// Removes up to `most` fields whose time has come by `now_ms`, milliseconds since 1970; `each` sees their names.
    pub fn expire_fields(&mut self, now_ms: u64, most: usize, each: impl FnMut(&[u8])) {
        if self.kind() == Some(Kind::Hash) {
            HashMut::for_removal(self).expire_due(now_ms, most, each);
        }
    }

    /// The kind of what is there.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.as_ref().map(CollectionRef::kind)
    }
}
