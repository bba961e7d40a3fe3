//! Integers in ascending order in a few bytes, all of the same width: 2, 4 or 8 bytes, little-endian.
//!
//! Does not know what stands before them. Readers take any bytes; what is left over at the end counts for nothing.

/// How many bytes each integer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Width {
    Two = 0,
    Four = 1,
    Eight = 2,
}

impl Width {
    pub(super) const fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Two),
            1 => Some(Self::Four),
            2 => Some(Self::Eight),
            _ => None,
        }
    }

    pub(super) const fn bytes(self) -> usize {
        2 << (self as u8)
    }

    /// The narrowest that takes `value`.
    pub(super) const fn of(value: i64) -> Self {
        if value as i16 as i64 == value {
            Self::Two
        } else if value as i32 as i64 == value {
            Self::Four
        } else {
            Self::Eight
        }
    }
}

/// Integers to be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Integers<'a> {
    bytes: &'a [u8],
    width: Width,
}

impl<'a> Integers<'a> {
    pub(super) const fn new(bytes: &'a [u8], width: Width) -> Self {
        Self { bytes, width }
    }

    pub(super) const fn len(self) -> usize {
        self.bytes.len() / self.width.bytes()
    }

    /// The one at `index`, in ascending order.
    #[inline]
    pub(super) fn at(self, index: usize) -> Option<i64> {
        let start = index.checked_mul(self.width.bytes())?;
        let bytes = self.bytes.get(start..)?;
        Some(match self.width {
            Width::Two => i64::from(i16::from_le_bytes(*bytes.first_chunk()?)),
            Width::Four => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
            Width::Eight => i64::from_le_bytes(*bytes.first_chunk()?),
        })
    }

    /// The index of `value`, or that where it belongs.
    pub(super) fn search(self, value: i64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        // What comes last is tried first: numbers are often added in ascending order.
        if let Some(last) = high.checked_sub(1).and_then(|last| self.at(last)) {
            match last.cmp(&value) {
                std::cmp::Ordering::Less => return Err(high),
                std::cmp::Ordering::Equal => return Ok(high - 1),
                std::cmp::Ordering::Greater => high -= 1,
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(found) = self.at(middle) else {
                return Err(low);
            };
            match found.cmp(&value) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = i64> + use<'a> {
        (0..self.len()).map_while(move |index| self.at(index))
    }

    /// The longest text of any of them, in bytes.
    pub(super) fn text_len_max(self) -> usize {
        [0, self.len().saturating_sub(1)]
            .into_iter()
            .filter_map(|index| self.at(index))
            .map(crate::number::i64_text_len)
            .max()
            .unwrap_or(0)
    }

    /// Whether they are whole and ascend.
    pub(super) fn is_valid(self) -> bool {
        self.bytes.len().is_multiple_of(self.width.bytes())
            && (1..self.len()).all(|index| self.at(index - 1) < self.at(index))
    }
}

/// Inserts `value` as the integer number `index` of those that begin at `start`. It must fit their width.
pub(super) fn insert(bytes: &mut Vec<u8>, start: usize, width: Width, index: usize, value: i64) {
    let offset = start + index * width.bytes();
    let text = value.to_le_bytes();
    bytes.splice(offset..offset, text[..width.bytes()].iter().copied());
}

/// Removes the integer number `index`.
pub(super) fn remove(bytes: &mut Vec<u8>, start: usize, width: Width, index: usize) {
    let offset = start + index * width.bytes();
    bytes.drain(offset..offset + width.bytes());
}

/// Writes the integers from `start` on in a greater width.
pub(super) fn widen(bytes: &mut Vec<u8>, start: usize, from: Width, to: Width) {
    let old = bytes.split_off(start);
    for value in Integers::new(&old, from).iter() {
        bytes.extend_from_slice(&value.to_le_bytes()[..to.bytes()]);
    }
}
