//! What is known of all entries of a table together: how long their values are, and when their deadlines are on average.
//!
//! Kept as entries change, under the latch, so that nobody has to look at them for it. A change within a class of lengths
//! writes nothing.

use weft_data::collection::{CollectionRef, Kind};

use crate::entry::{Payload, StringRef, ValueRef};

/// Classes of lengths: 0, then one for every power of two, the last one for all that are longer.
pub const LENGTH_CLASSES: usize = 40;
/// Strings, and each kind of collection.
const TYPES: usize = 1 + Kind::ALL.len();

/// How many values are how long: by the class of their length.
pub type Lengths = [u64; LENGTH_CLASSES];

/// Of all tables of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    lengths: [Lengths; TYPES],
    /// Entries with a deadline.
    pub deadlines: u64,
    /// Their deadlines in milliseconds since 1970, added up.
    pub deadline_sum: u128,
}

impl Default for Census {
    fn default() -> Self {
        Self {
            lengths: [[0; LENGTH_CLASSES]; TYPES],
            deadlines: 0,
            deadline_sum: 0,
        }
    }
}

impl Census {
    /// The lengths of the strings, in bytes.
    #[must_use]
    pub const fn strings(&self) -> &Lengths {
        &self.lengths[0]
    }

    /// The lengths of the collections of a kind, in items.
    #[must_use]
    pub fn collections(&self, kind: Kind) -> &Lengths {
        &self.lengths[type_of(kind)]
    }

    /// The shortest length of a class.
    #[must_use]
    pub const fn shortest(class: usize) -> u64 {
        if class == 0 { 0 } else { 1 << (class - 1) }
    }

    pub(crate) fn add(&mut self, table: &TableCensus, deadlines: usize) {
        for (sums, counts) in self.lengths.iter_mut().zip(&table.lengths) {
            let counts = counts.iter().flat_map(|counts| counts.iter());
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += u64::from(*count);
            }
        }
        self.deadlines += deadlines as u64;
        self.deadline_sum += table.deadline_sum;
    }
}

/// Of one table, which counts its deadlines itself.
#[derive(Clone, Debug)]
pub(crate) struct TableCensus {
    /// None yet for types that the table has never had.
    lengths: [Option<Box<[u32; LENGTH_CLASSES]>>; TYPES],
    deadline_sum: u128,
}

impl PartialEq for TableCensus {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &Option<Box<_>>, b: &Option<Box<_>>| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => a == b,
            (Some(one), None) | (None, Some(one)) => **one == [0; LENGTH_CLASSES],
        };
        self.deadline_sum == other.deadline_sum
            && (self.lengths.iter().zip(&other.lengths)).all(|(a, b)| same(a, b))
    }
}

/// A value's type and the class of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    of_type: usize,
    class: usize,
}

impl Measure {
    #[inline]
    pub(crate) fn string(length: usize) -> Self {
        Self {
            of_type: 0,
            class: class(length),
        }
    }

    #[inline]
    fn collection(collection: CollectionRef<'_>) -> Self {
        Self {
            of_type: type_of(collection.kind()),
            class: class(collection.len()),
        }
    }

    /// Of a value as clients see it.
    #[inline]
    pub(crate) fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::String(string) => Self::string(match string {
                StringRef::Int(value) => integer_length(value),
                StringRef::Bytes(bytes) => bytes.len(),
                StringRef::Rope(rope) => rope.len(),
            }),
            ValueRef::Collection(collection) => Self::collection(collection),
        }
    }

    #[inline]
    pub(super) fn of_payload(value: &Payload<'_>) -> Self {
        match value {
            Payload::Int(value) => Self::string(integer_length(*value)),
            Payload::Bytes(bytes) => Self::string(bytes.len()),
            Payload::Rope(rope) => Self::string(rope.len()),
            Payload::Packed(bytes) => Self::collection(CollectionRef::Packed(bytes)),
            Payload::Large(collection) => Self::collection(CollectionRef::Large(collection)),
        }
    }
}

#[inline]
const fn type_of(kind: Kind) -> usize {
    kind as usize
}

impl TableCensus {
    pub(super) const fn new() -> Self {
        Self {
            lengths: [const { None }; TYPES],
            deadline_sum: 0,
        }
    }

    pub(super) fn came(&mut self, measure: Measure, deadline: Option<u64>) {
        *self.count(measure) += 1;
        self.deadline_changed(None, deadline);
    }

    pub(super) fn went(&mut self, measure: Measure, deadline: Option<u64>) {
        *self.count(measure) -= 1;
        self.deadline_changed(deadline, None);
    }

    #[inline]
    pub(crate) fn changed(&mut self, before: Measure, after: Measure) {
        if before != after {
            *self.count(before) -= 1;
            *self.count(after) += 1;
        }
    }

    #[inline]
    fn count(&mut self, measure: Measure) -> &mut u32 {
        let lengths =
            self.lengths[measure.of_type].get_or_insert_with(|| Box::new([0; LENGTH_CLASSES]));
        &mut lengths[measure.class]
    }

    #[inline]
    pub(super) fn deadline_changed(&mut self, before: Option<u64>, after: Option<u64>) {
        if before == after {
            return;
        }
        if let Some(at) = before {
            self.deadline_sum -= u128::from(at);
        }
        if let Some(at) = after {
            self.deadline_sum += u128::from(at);
        }
    }
}

/// The class of a length.
#[inline]
fn class(length: usize) -> usize {
    let class = (usize::BITS - length.leading_zeros()) as usize;
    class.min(LENGTH_CLASSES - 1)
}

/// Characters of an integer in decimal.
fn integer_length(value: i64) -> usize {
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    digits as usize + usize::from(value < 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two() {
        for (length, shortest) in [
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 2),
            (4, 4),
            (1023, 512),
            (1024, 1024),
            (1 << 29, 1 << 29),
            (usize::MAX, 1 << 38),
        ] {
            assert_eq!(Census::shortest(class(length)), shortest, "{length}");
        }
    }

    #[test]
    fn integers_are_as_long_as_their_text() {
        for value in [0, 7, -7, 9, 10, 99, 100, -100, 12345, i64::MAX, i64::MIN] {
            assert_eq!(integer_length(value), value.to_string().len(), "{value}");
        }
    }

    #[test]
    fn changes_keep_the_sums_right() {
        let mut census = TableCensus::new();
        census.came(Measure::string(5), Some(100));
        census.came(Measure::string(0), None);
        census.changed(Measure::string(5), Measure::string(7));
        let counts = |census: &TableCensus| {
            census.lengths[0]
                .as_deref()
                .copied()
                .unwrap_or([0; LENGTH_CLASSES])
        };
        assert_eq!((counts(&census)[0], counts(&census)[3]), (1, 1));
        census.changed(Measure::string(7), Measure::string(8));
        census.deadline_changed(Some(100), Some(300));
        census.deadline_changed(None, Some(u64::MAX));
        assert_eq!((counts(&census)[3], counts(&census)[4]), (0, 1));
        assert_eq!(census.deadline_sum, u128::from(u64::MAX) + 300);
        let mut all = Census::default();
        all.add(&census, 2);
        all.add(&census, 2);
        assert_eq!((all.strings()[4], all.deadlines), (2, 4));
        assert_eq!(all.deadline_sum, 2 * census.deadline_sum);
        census.went(Measure::string(8), Some(300));
        census.went(Measure::string(0), Some(u64::MAX));
        assert_eq!(census, TableCensus::new());
    }

    #[test]
    fn types_are_told_apart() {
        let list = Measure {
            of_type: type_of(Kind::List),
            class: class(5),
        };
        let mut census = TableCensus::new();
        census.came(Measure::string(5), None);
        census.changed(Measure::string(5), list);
        let mut all = Census::default();
        all.add(&census, 0);
        assert_eq!(all.strings(), &[0; LENGTH_CLASSES]);
        assert_eq!(all.collections(Kind::List)[3], 1);
        assert_eq!(all.collections(Kind::Hash), &[0; LENGTH_CLASSES]);
        census.went(list, None);
        assert_eq!(census, TableCensus::new());
    }
}
