//! Hash tags: short words whose slot of a cluster is known, so that a key with the tag lies in that slot.

use crc::{CRC_16_XMODEM, Crc};

const CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// How many slots a cluster has.
const SLOTS: u16 = 16384;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

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
        // CLUSTER KEYSLOT foo
        assert_eq!(CRC16.checksum(b"foo") % SLOTS, 12182);
    }
}
