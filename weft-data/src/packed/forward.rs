//! Elements that are only read from the front: without the size behind the bytes, which saves a byte each.
//!
//! ```text
//! element = length, bytes
//! ```

use super::{ELEMENT_MAX, WIDE, WIDE_FROM, read_length, total, width};

pub use super::remove;

/// How many bytes an element with `len` bytes takes in all.
#[inline]
#[must_use]
pub const fn size_of(len: usize) -> usize {
    width(len) + len
}

/// Appends an element made of `parts`, which are `ELEMENT_MAX` bytes at most; how many they are.
#[inline]
pub fn push(bytes: &mut Vec<u8>, parts: &[&[u8]]) -> usize {
    let len = total(parts);
    assert!(len <= ELEMENT_MAX, "an element is small");
    bytes.reserve(super::size_of(len));
    if len < WIDE_FROM {
        bytes.push(len as u8);
    } else {
        bytes.extend_from_slice(&[WIDE | (len >> 8) as u8, len as u8]);
    }
    for part in parts {
        bytes.extend_from_slice(part);
    }
    len
}

/// Puts another element in the place of the one at `offset`. False, and no change, if there is none.
pub fn replace(bytes: &mut Vec<u8>, offset: usize, element: &[u8]) -> bool {
    let Some((len, start)) = at_with_start(bytes, offset).map(|(old, start)| (old.len(), start))
    else {
        return false;
    };
    if len == element.len() {
        bytes[start..start + len].copy_from_slice(element);
    } else {
        bytes.drain(offset..start + len);
        let end = bytes.len();
        push(bytes, &[element]);
        let size = bytes.len() - end;
        bytes[offset..].rotate_right(size);
    }
    true
}

/// The element at `offset`, if there is one.
#[inline]
#[must_use]
pub fn at(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    at_with_start(bytes, offset).map(|(element, _)| element)
}

#[inline]
fn at_with_start(bytes: &[u8], offset: usize) -> Option<(&[u8], usize)> {
    let (len, start) = read_length(bytes, offset)?;
    Some((bytes.get(start..start + len)?, start))
}

/// The offset of the first element equal to `wanted` among every `stride`-th one, beginning with the one at `start`.
#[inline]
#[must_use]
pub fn find(bytes: &[u8], start: usize, stride: usize, wanted: &[u8]) -> Option<usize> {
    let mut elements = Elements::new(bytes, start);
    loop {
        let offset = elements.offset();
        if elements.next()? == wanted {
            return Some(offset);
        }
        for _ in 1..stride {
            elements.next()?;
        }
    }
}

/// Counts the elements from `start` to the end; none if the bytes are not whole elements.
#[must_use]
pub fn validate(bytes: &[u8], start: usize) -> Option<usize> {
    if start > bytes.len() {
        return None;
    }
    let mut elements = Elements::new(bytes, start);
    let count = elements.by_ref().count();
    (elements.offset() == bytes.len()).then_some(count)
}

/// The elements one after the other, up to the end or to the first damage.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Elements<'a> {
    /// The elements from the one at `start`.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8], start: usize) -> Self {
        Self {
            bytes,
            offset: start,
        }
    }

    /// Where the next element begins, or the last one ends.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (element, start) = at_with_start(self.bytes, self.offset)?;
        self.offset = start + element.len();
        Some(element)
    }
}

impl std::iter::FusedIterator for Elements<'_> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(elements: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![b'#'];
        for element in elements {
            assert_eq!(push(&mut bytes, &[element]), element.len());
        }
        bytes
    }

    fn list() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let short = prop::collection::vec(any::<u8>(), 0..5);
        let long = prop::collection::vec(any::<u8>(), 120..300);
        prop::collection::vec(prop_oneof![4 => short, 1 => long], 0..12)
    }

    proptest! {
        #[test]
        fn elements_come_back(elements in list()) {
            let bytes = of(&elements);
            let sizes: usize = elements.iter().map(|element| size_of(element.len())).sum();
            prop_assert_eq!(bytes.len(), 1 + sizes);
            prop_assert_eq!(validate(&bytes, 1), Some(elements.len()));
            prop_assert!(Elements::new(&bytes, 1).eq(elements.iter().map(|element| &element[..])));
        }

        #[test]
        fn an_element_takes_the_place_of_another(
            elements in list(),
            new in prop::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
        ) {
            prop_assume!(!elements.is_empty());
            let at = at.index(elements.len());
            let mut bytes = of(&elements);
            let before: usize = elements[..at].iter().map(|element| size_of(element.len())).sum();
            prop_assert!(replace(&mut bytes, 1 + before, &new));
            let mut expected = elements;
            expected[at] = new;
            prop_assert_eq!(bytes, of(&expected));
        }

        #[test]
        fn only_every_so_many_th_is_looked_at(elements in list(), stride in 1_usize..4, at in any::<prop::sample::Index>()) {
            prop_assume!(!elements.is_empty());
            let bytes = of(&elements);
            let wanted = &elements[at.index(elements.len())];
            let expected = elements.iter().step_by(stride).position(|element| element == wanted);
            let offset = expected.map(|nth| {
                1 + elements[..nth * stride].iter().map(|element| size_of(element.len())).sum::<usize>()
            });
            prop_assert_eq!(find(&bytes, 1, stride, wanted), offset);
        }

        #[test]
        fn damage_ends_reading(bytes in prop::collection::vec(any::<u8>(), 0..200), start in 0_usize..250) {
            let read: usize = Elements::new(&bytes, start).map(|element| size_of(element.len())).sum();
            prop_assert!(read == 0 || start + read <= bytes.len());
            let whole = start <= bytes.len() && start + read == bytes.len();
            prop_assert_eq!(validate(&bytes, start).is_some(), whole);
            prop_assert!(!replace(&mut bytes.clone(), bytes.len(), b"x"));
        }
    }

    #[test]
    fn a_length_in_two_bytes_that_needs_one_is_damage() {
        assert_eq!(at(&[0x80, 1, b'x'], 0), None);
        assert_eq!(at(&[1, b'x'], 0), Some(&b"x"[..]));
    }
}
