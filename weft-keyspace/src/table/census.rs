//! What is known of all entries of a table together: how long their values are, and when their deadlines are on average.
//!
//! Kept as entries change, under the latch, so that nobody has to look at them for it. A change within a class of lengths
//! writes nothing.

use crate::entry::{Payload, ValueRef};

/// Classes of lengths: 0, then one for every power of two, the last one for all that are longer.
pub const LENGTH_CLASSES: usize = 40;

/// Of all tables of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    /// How many values are how long: by the class of their length in bytes.
    pub lengths: [u64; LENGTH_CLASSES],
    /// Entries with a deadline.
    pub deadlines: u64,
    /// Their deadlines in milliseconds since 1970, added up.
    pub deadline_sum: u128,
}

impl Default for Census {
    fn default() -> Self {
        Self {
            lengths: [0; LENGTH_CLASSES],
            deadlines: 0,
            deadline_sum: 0,
        }
    }
}

impl Census {
    /// The shortest length of a class.
    #[must_use]
    pub const fn shortest(class: usize) -> u64 {
        if class == 0 { 0 } else { 1 << (class - 1) }
    }

    pub(crate) fn add(&mut self, table: &TableCensus, deadlines: usize) {
        for (sum, count) in self.lengths.iter_mut().zip(table.lengths) {
            *sum += u64::from(count);
        }
        self.deadlines += deadlines as u64;
        self.deadline_sum += table.deadline_sum;
    }
}

/// Of one table, which counts its deadlines itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableCensus {
    lengths: [u32; LENGTH_CLASSES],
    deadline_sum: u128,
}

impl TableCensus {
    pub(super) const fn new() -> Self {
        Self {
            lengths: [0; LENGTH_CLASSES],
            deadline_sum: 0,
        }
    }

    pub(super) fn came(&mut self, length: usize, deadline: Option<u64>) {
        self.lengths[class(length)] += 1;
        self.deadline_changed(None, deadline);
    }

    pub(super) fn went(&mut self, length: usize, deadline: Option<u64>) {
        self.lengths[class(length)] -= 1;
        self.deadline_changed(deadline, None);
    }

    #[inline]
    pub(crate) fn length_changed(&mut self, before: usize, after: usize) {
        let (before, after) = (class(before), class(after));
        if before != after {
            self.lengths[before] -= 1;
            self.lengths[after] += 1;
        }
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

/// A value's length in bytes as clients see it.
#[inline]
pub(super) fn value_length(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Int(value) => integer_length(value),
        ValueRef::Bytes(bytes) => bytes.len(),
        ValueRef::Rope(rope) => rope.len(),
    }
}

#[inline]
pub(super) fn payload_length(value: &Payload<'_>) -> usize {
    match value {
        Payload::Int(value) => integer_length(*value),
        Payload::Bytes(bytes) => bytes.len(),
        Payload::Rope(rope) => rope.len(),
    }
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
        census.came(5, Some(100));
        census.came(0, None);
        census.length_changed(5, 7);
        assert_eq!((census.lengths[0], census.lengths[3]), (1, 1));
        census.length_changed(7, 8);
        census.deadline_changed(Some(100), Some(300));
        census.deadline_changed(None, Some(u64::MAX));
        assert_eq!((census.lengths[3], census.lengths[4]), (0, 1));
        assert_eq!(census.deadline_sum, u128::from(u64::MAX) + 300);
        let mut all = Census::default();
        all.add(&census, 2);
        all.add(&census, 2);
        assert_eq!((all.lengths[4], all.deadlines), (2, 4));
        assert_eq!(all.deadline_sum, 2 * census.deadline_sum);
        census.went(8, Some(300));
        census.went(0, Some(u64::MAX));
        assert_eq!(census, TableCensus::new());
    }
}
