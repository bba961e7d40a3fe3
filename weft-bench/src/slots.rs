//! The slots of a cluster: which one a key lies in, and hash tags, which are short words whose slot is known, so that a key
//! with the tag lies in that slot.

use crc::{CRC_16_XMODEM, Crc};

const CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// How many slots a cluster has.
pub const SLOTS: u16 = 16384;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The slot of a key. Of a key with braces, what stands between the first pair of them counts, unless that is nothing.
pub fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|&byte| byte == b'}')?;
        Some(&rest[..close]).filter(|tag| !tag.is_empty())
    });
    CRC16.checksum(tag.unwrap_or(key)) % SLOTS
}

/// The first word of three letters that lies in `slot`. There is one for every slot; `None` if there is no such slot.
pub fn tag(slot: u16) -> Option<String> {
    let words = LETTERS.iter().flat_map(|&first| {
        LETTERS
            .iter()
            .flat_map(move |&second| LETTERS.iter().map(move |&third| [first, second, third]))
    });
    words
        .into_iter()
        .find(|word| CRC16.checksum(word) % SLOTS == slot)
        .map(|word| word.iter().copied().map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_a_tag() {
        let mut seen = vec![false; usize::from(SLOTS)];
        for &first in LETTERS {
            for &second in LETTERS {
                for &third in LETTERS {
                    let slot = CRC16.checksum(&[first, second, third]) % SLOTS;
                    seen[usize::from(slot)] = true;
                }
            }
        }
        assert!(seen.iter().all(|&seen| seen));
        assert_eq!(tag(0).as_deref(), Some("06S"));
        assert_eq!(tag(SLOTS), None);
    }

    // As CLUSTER KEYSLOT answers.
    #[test]
    fn tags_decide_where_keys_lie() {
        for (key, expected) in [
            ("foo", 12182),
            ("{foo}bar", 12182),
            ("a{foo}{bar}", 12182),
            ("foo{}", 5542),
            ("{foo", 13308),
            ("", 0),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
    }
}
