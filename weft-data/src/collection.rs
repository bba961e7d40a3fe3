//! Collections: lists, sets, sorted sets and hashes, in either of their two forms.
//!
//! A small collection is *packed*: a few bytes that the keyspace keeps inside the key's entry. Any other is *large*: nodes
//! with counts, so that cloning one is its snapshot, and changing it copies only the shared nodes on the way. Owns the choice
//! between the two; does not know keys or latches. What OBJECT ENCODING says follows Redis's thresholds, not the form.
//!
//! Packed bytes begin with a tag: the kind in its low three bits; the others belong to the type.

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
}

/// The bits of a packed collection's tag that say its kind.
pub const KIND_MASK: u8 = 0b111;
/// The most bytes that a packed collection takes, its tag included.
pub const PACKED_MAX: usize = 1024;

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::List, Kind::Set, Kind::SortedSet, Kind::Hash];

    /// The kind that a tag says, if it is one.
    #[must_use]
    pub const fn of_tag(tag: u8) -> Option<Kind> {
        match tag & KIND_MASK {
            1 => Some(Kind::List),
            2 => Some(Kind::Set),
            3 => Some(Kind::SortedSet),
            4 => Some(Kind::Hash),
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
        }
    }
}
