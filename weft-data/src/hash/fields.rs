//! The bytes of fields: how names, values and deadlines lie one after the other.
//!
//! ```text
//! field    = lengths, name, value                a plain field
//!          | lengths, name, value, deadline      where all fields have a place for one
//! lengths  = 0nnnvvvv                            a name of nnn + 1 bytes, 1 to 8, and a value of vvvv bytes
//!          | 1nnnnnnn, number                    else: a name of nnnnnnn bytes, below 127, and a value of `number` bytes
//!          | 11111111, number, number            or both as numbers of `packed`
//! deadline = 0                                   the field does not expire
//!          | 6, 6 bytes, high first              milliseconds since 1970
//! ```
//! Readers never panic, whatever the bytes are: they end at the first damage, which includes lengths longer than need be.
use std::iter::FusedIterator;

use super::{Field, Value};
use crate::packed::{self, ELEMENT_MAX};

const DEADLINE_BYTES: usize = 6;

/// Flag of the first byte of lengths that need more than one.
const WIDE: u8 = 0x80;
/// The longest name and the longest value whose lengths fit one byte.
const NAME_SHORT: usize = 8;
const VALUE_SHORT: usize = 15;
/// Says in the place of a name's length that this is a number.
const NAME_FOLLOWS: u8 = 0x7f;

/// What fields have besides names and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    WithDeadlines,
}

/// Where the parts of a field lie.
#[derive(Clone, Copy, Debug)]
struct Parts {
    name: usize,
    value: usize,
    /// Behind the value.
    end: usize,
}

/// Reads where the field at `offset` has its parts. They may lie outside the bytes.
#[inline]
fn parts(bytes: &[u8], offset: usize) -> Option<Parts> {
    let first = *bytes.get(offset)?;
    if first & WIDE == 0 {
        let name = offset + 1;
        let value = name + usize::from(first >> 4) + 1;
        let end = value + usize::from(first & 0xf);
        return Some(Parts { name, value, end });
    }
    wide_parts(bytes, offset, first & !WIDE)
}

#[inline]
fn wide_parts(bytes: &[u8], offset: usize, name_len: u8) -> Option<Parts> {
    let (name_len, at) = if name_len == NAME_FOLLOWS {
        let (len, at) = packed::read_number(bytes, offset + 1)?;
        if len < usize::from(NAME_FOLLOWS) {
            return None;
        }
        (len, at)
    } else {
        (usize::from(name_len), offset + 1)
    };
    let (value_len, name) = packed::read_number(bytes, at)?;
    if is_short(name_len, value_len) {
        return None;
    }
    let value = name + name_len;
    Some(Parts {
        name,
        value,
        end: value + value_len,
    })
}

#[inline]
const fn is_short(name: usize, value: usize) -> bool {
    1 <= name && name <= NAME_SHORT && value <= VALUE_SHORT
}

/// Appends a field. Its name and value are `ELEMENT_MAX` bytes at most; a deadline is for shapes that have one.
pub(super) fn push(
    bytes: &mut Vec<u8>,
    shape: Shape,
    name: &[u8],
    value: &[u8],
    deadline: Option<u64>,
) {
    const LENGTHS_MAX: usize = 5;
    assert!(
        name.len() <= ELEMENT_MAX && value.len() <= ELEMENT_MAX,
        "names and values are small here"
    );
    bytes.reserve(LENGTHS_MAX + name.len() + value.len() + 1 + DEADLINE_BYTES);
    if is_short(name.len(), value.len()) {
        bytes.push(((name.len() - 1) << 4 | value.len()) as u8);
    } else {
        if name.len() < usize::from(NAME_FOLLOWS) {
            bytes.push(WIDE | name.len() as u8);
        } else {
            bytes.push(WIDE | NAME_FOLLOWS);
            packed::push_number(bytes, name.len());
        }
        packed::push_number(bytes, value.len());
    }
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(value);
    if shape == Shape::WithDeadlines {
        push_deadline(bytes, deadline);
    }
}

/// Appends what follows a value where fields have a place for a deadline.
pub(super) fn push_deadline(bytes: &mut Vec<u8>, deadline: Option<u64>) {
    match deadline {
        Some(ms) => {
            bytes.push(DEADLINE_BYTES as u8);
            bytes.extend_from_slice(&ms.to_be_bytes()[8 - DEADLINE_BYTES..]);
        }
        None => bytes.push(0),
    }
}

/// Reads the deadline at `offset`, and where it ends.
#[inline]
fn deadline(bytes: &[u8], offset: usize) -> Option<(Option<u64>, usize)> {
    const LEN: u8 = DEADLINE_BYTES as u8;
    match *bytes.get(offset)? {
        0 => Some((None, offset + 1)),
        LEN => {
            let bytes = bytes.get(offset + 1..offset + 1 + DEADLINE_BYTES)?;
            let ms = bytes.iter().fold(0, |ms, &byte| ms << 8 | u64::from(byte));
            Some((Some(ms), offset + 1 + DEADLINE_BYTES))
        }
        _ => None,
    }
}

/// Puts another value of the same length into the field at `offset`. False, and no change, if the length is another.
pub(super) fn overwrite(bytes: &mut [u8], offset: usize, value: &[u8]) -> bool {
    match parts(bytes, offset).and_then(|parts| bytes.get_mut(parts.value..parts.end)) {
        Some(place) if place.len() == value.len() => {
            place.copy_from_slice(value);
            true
        }
        _ => false,
    }
}

/// Where the field of this name begins, if there is one from the field at `start` on.
#[inline]
pub(super) fn find(bytes: &[u8], start: usize, shape: Shape, name: &[u8]) -> Option<usize> {
    let mut offset = start;
    loop {
        let parts = parts(bytes, offset)?;
        if bytes.get(parts.name..parts.value)? == name {
            return Some(offset);
        }
        offset = match shape {
            Shape::Plain => parts.end,
            Shape::WithDeadlines => deadline(bytes, parts.end)?.1,
        };
    }
}

/// Fields one after the other, up to the end or to the first damage.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    offset: usize,
    shape: Shape,
}

impl<'a> Fields<'a> {
    /// The fields from the one at `start` on.
    #[inline]
    pub(super) const fn new(bytes: &'a [u8], start: usize, shape: Shape) -> Self {
        Self {
            bytes,
            offset: start,
            shape,
        }
    }

    /// Where the next field begins, or the last one ends.
    #[inline]
    pub(super) const fn place(&self) -> usize {
        self.offset
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        let parts = parts(self.bytes, self.offset)?;
        let name = self.bytes.get(parts.name..parts.value)?;
        let value = self.bytes.get(parts.value..parts.end)?;
        let (deadline, end) = match self.shape {
            Shape::Plain => (None, parts.end),
            Shape::WithDeadlines => deadline(self.bytes, parts.end)?,
        };
        self.offset = end;
        Some(Field {
            name,
            value: Value::Bytes(value),
            deadline,
        })
    }
}

impl FusedIterator for Fields<'_> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Row = (Vec<u8>, Vec<u8>, Option<u64>);

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let short = prop::collection::vec(any::<u8>(), 0..18);
        let long = prop::collection::vec(any::<u8>(), 120..300);
        prop_oneof![5 => short, 1 => long]
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let deadline = prop::option::of(0_u64..1 << 46);
        prop::collection::vec((bytes(), bytes(), deadline), 0..12)
    }

    fn shape() -> impl Strategy<Value = Shape> {
        prop_oneof![Just(Shape::Plain), Just(Shape::WithDeadlines)]
    }

    fn of(rows: &[Row], shape: Shape) -> Vec<u8> {
        let mut bytes = vec![b'#'];
        for (name, value, deadline) in rows {
            push(&mut bytes, shape, name, value, *deadline);
        }
        bytes
    }

    fn row(field: Field<'_>) -> Row {
        let Value::Bytes(value) = field.value else {
            panic!("there are no ropes in a few bytes")
        };
        (field.name.to_vec(), value.to_vec(), field.deadline)
    }

    proptest! {
        #[test]
        fn fields_come_back(rows in rows(), shape in shape()) {
            let bytes = of(&rows, shape);
            let mut fields = Fields::new(&bytes, 1, shape);
            let back: Vec<Row> = fields.by_ref().map(row).collect();
            prop_assert_eq!(fields.place(), bytes.len());
            let expected = rows.into_iter().map(|(name, value, deadline)| {
                (name, value, deadline.filter(|_| shape == Shape::WithDeadlines))
            });
            prop_assert!(back.into_iter().eq(expected));
        }

        #[test]
        fn the_first_of_a_name_is_found(rows in rows(), shape in shape(), at in any::<prop::sample::Index>(), other in bytes()) {
            prop_assume!(!rows.is_empty());
            let bytes = of(&rows, shape);
            for wanted in [&rows[at.index(rows.len())].0, &other] {
                let expected = rows.iter().position(|row| row.0 == *wanted);
                let offset = expected.map(|nth| of(&rows[..nth], shape).len());
                prop_assert_eq!(find(&bytes, 1, shape, wanted), offset);
            }
        }

        #[test]
        fn a_value_of_the_same_length_takes_the_place_of_another(
            rows in rows(),
            shape in shape(),
            at in any::<prop::sample::Index>(),
            value in bytes(),
        ) {
            prop_assume!(!rows.is_empty());
            let at = at.index(rows.len());
            let mut bytes = of(&rows, shape);
            let offset = of(&rows[..at], shape).len();
            let fits = rows[at].1.len() == value.len();
            prop_assert_eq!(overwrite(&mut bytes, offset, &value), fits);
            let same = vec![b'!'; rows[at].1.len()];
            prop_assert!(overwrite(&mut bytes, offset, &same));
            let mut expected = rows;
            expected[at].1 = same;
            prop_assert_eq!(bytes, of(&expected, shape));
        }

        #[test]
        fn damage_ends_reading(bytes in prop::collection::vec(any::<u8>(), 0..200), start in 0_usize..250, shape in shape()) {
            let mut fields = Fields::new(&bytes, start, shape);
            let rows: Vec<Row> = fields.by_ref().map(row).collect();
            prop_assert!(rows.is_empty() || fields.place() <= bytes.len());
            // What was read is written the same way.
            prop_assert_eq!(&of(&rows, shape)[1..], bytes.get(start..fields.place()).unwrap_or_default());
            find(&bytes, start, shape, b"name");
            overwrite(&mut bytes.clone(), start, b"value");
        }
    }

    #[test]
    fn lengths_take_what_they_need() {
        for (name, value, lengths) in [
            (0, 0, 2),
            (1, 0, 1),
            (8, 15, 1),
            (9, 15, 2),
            (8, 16, 2),
            (126, 127, 2),
            (126, 128, 3),
            (127, 127, 3),
            (128, 128, 5),
        ] {
            let mut bytes = Vec::new();
            push(
                &mut bytes,
                Shape::Plain,
                &vec![b'n'; name],
                &vec![b'v'; value],
                None,
            );
            assert_eq!(bytes.len(), lengths + name + value, "{name}, {value}");
        }
    }

    #[test]
    fn lengths_that_are_longer_than_need_be_are_damage() {
        let first = |bytes: &[u8]| Fields::new(bytes, 0, Shape::Plain).next().map(row);
        assert_eq!(
            first(&[0x01, b'n', b'v']),
            Some((b"n".to_vec(), b"v".to_vec(), None))
        );
        assert_eq!(first(&[0x81, 1, b'n', b'v']), None);
        assert_eq!(first(&[0x81, 0x80, 1, b'n', b'v']), None);
        assert_eq!(first(&[0xff, 1, 1, b'n', b'v']), None);
    }
}
