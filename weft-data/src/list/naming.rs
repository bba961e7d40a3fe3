//! What Redis 8.2 calls a list: `listpack` or `quicklist`.
//!
//! Found by asking it. A list begins as a listpack; it becomes a quicklist by an addition that makes it too large, and a
//! listpack again by a removal or replacement that leaves half as much. Sizes are those of Redis's own form, in which integers
//! are short; they have to be computed, since ours is another one.

use crate::number::parse_i64;

/// Bytes of a listpack without elements.
const EMPTY_BYTES: u64 = 7;
/// What Redis allows for the head of an element that is added to a quicklist.
const GATHERED_BYTES: u64 = 8;
/// The size that is too much whatever `list-max-listpack-size` says of the number of elements.
const BYTES_MAX: u64 = 8192;

/// How large a listpack may be: `list-max-listpack-size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimit {
    bytes: u64,
    items: u64,
}

impl NodeLimit {
    /// What a value of the setting means: -1 to -5 are sizes of 4 to 64 KiB, others numbers of elements.
    #[must_use]
    pub const fn of_setting(setting: i64) -> Self {
        if setting < 0 {
            let power = if setting < -5 { 4 } else { -setting - 1 };
            Self {
                bytes: 4096 << power,
                items: u64::MAX,
            }
        } else {
            Self {
                bytes: BYTES_MAX,
                items: if setting == 0 { 1 } else { setting as u64 },
            }
        }
    }

    /// The same for elements that are gathered one by one in what becomes a quicklist if it does not fit, as SORT gathers its result:
    /// each is taken for a little longer then.
    #[must_use]
    pub const fn for_gathering(self) -> Self {
        Self {
            bytes: self.bytes - GATHERED_BYTES,
            items: self.items,
        }
    }

    /// Whether a listpack of this size and number of elements is too large.
    pub(super) const fn is_exceeded(self, bytes: u64, items: u64) -> bool {
        bytes > self.bytes || items > self.items
    }

    /// Whether a quicklist of this size and number of elements has become small enough to be a listpack.
    pub(super) const fn is_half_kept(self, bytes: u64, items: u64) -> bool {
        if self.items == u64::MAX {
            bytes <= self.bytes / 2
        } else {
            bytes <= self.bytes && items <= self.items / 2
        }
    }

    /// What a quicklist cannot become a listpack above, in bytes of ours, which are never more than this many to one.
    pub(super) const fn own_bytes_max(self) -> usize {
        self.bytes as usize * 4
    }
}

/// Bytes of a listpack, less those of its elements.
pub(super) const fn listpack_bytes(elements: u64) -> u64 {
    elements + EMPTY_BYTES
}

/// Bytes that an element with these bytes takes in a listpack.
pub(crate) fn element_bytes(element: &[u8]) -> u64 {
    let integer = match element.first() {
        Some(b'0'..=b'9' | b'-') if element.len() <= 20 => parse_i64(element),
        _ => None,
    };
    match integer {
        Some(integer) => integer_bytes(integer),
        None => string_bytes(element.len()),
    }
}

pub(crate) const fn integer_bytes(integer: i64) -> u64 {
    match integer {
        0..=127 => 2,
        -4096..=4095 => 3,
        -32_768..=32_767 => 4,
        -8_388_608..=8_388_607 => 5,
        -2_147_483_648..=2_147_483_647 => 6,
        _ => 10,
    }
}

/// The same for an element of this length that is no integer.
pub(super) const fn string_bytes(len: usize) -> u64 {
    let head = match len {
        0..64 => 1,
        64..4096 => 2,
        _ => 5,
    };
    let body = len as u64 + head;
    body + match body {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many equal elements make a listpack a quicklist at the default setting, asked of Redis 8.2.3.
    #[test]
    fn sizes_are_those_of_redis_8_2() {
        let x = |len: usize| "x".repeat(len);
        let limit = NodeLimit::of_setting(-2);
        for (element, expected) in [
            (x(1), 2730),
            ("0".into(), 4094),
            ("127".into(), 4093),
            ("128".into(), 2729),
            ("-1".into(), 2729),
            ("4095".into(), 2729),
            ("4096".into(), 2047),
            ("-4096".into(), 2728),
            ("-4097".into(), 2047),
            ("32767".into(), 2047),
            ("32768".into(), 1638),
            ("8388607".into(), 1637),
            ("8388608".into(), 1365),
            ("2147483648".into(), 819),
            (x(63), 126),
            (x(64), 123),
            (x(125), 64),
            (x(126), 63),
            (x(128), 63),
            ("1".repeat(20), 373),
            ("1".repeat(19), 818),
            ("007".into(), 1638),
        ] {
            let size = element_bytes(element.as_bytes());
            let fits = |count: &u64| {
                let before = listpack_bytes(size * (count - 1));
                !limit.is_exceeded(before + element.len() as u64, *count)
            };
            let first = (1..).find(|count| !fits(count));
            assert_eq!(first, Some(expected), "{element}");
        }
    }

    #[test]
    fn settings_are_sizes_or_numbers() {
        for (setting, bytes, items) in [
            (-1, 4096, u64::MAX),
            (-2, 8192, u64::MAX),
            (-5, 65_536, u64::MAX),
            (0, 8192, 1),
            (1, 8192, 1),
            (128, 8192, 128),
        ] {
            let limit = NodeLimit::of_setting(setting);
            assert!(!limit.is_exceeded(bytes, items), "{setting}");
            assert!(limit.is_exceeded(bytes + 1, items), "{setting}");
            let beyond = items.checked_add(1);
            assert_eq!(
                beyond.is_some_and(|items| limit.is_exceeded(1, items)),
                items < u64::MAX
            );
        }
        assert!(NodeLimit::of_setting(-1).is_half_kept(2048, 1000));
        assert!(!NodeLimit::of_setting(-1).is_half_kept(2049, 1));
        assert!(NodeLimit::of_setting(5).is_half_kept(8000, 2));
        assert!(!NodeLimit::of_setting(5).is_half_kept(8000, 3));
        assert!(!NodeLimit::of_setting(1).is_half_kept(8, 1));
    }
}
