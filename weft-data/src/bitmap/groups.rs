//! Counting bits on processors that neither count them nor look up many of their parts at once: x86-64 without AVX2.

use super::kernel::count_words;

/// Words that are worked on at once: two registers of 128 bits.
const LANES: usize = 4;
type Words = [u64; LANES];
const WORDS_BYTES: usize = LANES * 8;

/// Bytes of one block of [`count_ones`]: sixteen groups of words.
const BLOCK_BYTES: usize = 16 * WORDS_BYTES;

fn words(bytes: &[u8]) -> Words {
    let (parts, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|lane| u64::from_le_bytes(parts[lane]))
}

/// Adds three bits in every place: their sum and their carry.
#[inline(always)]
fn add(a: Words, b: Words, c: Words) -> (Words, Words) {
    let mut sum = [0; LANES];
    let mut carry = [0; LANES];
    for lane in 0..LANES {
        let half = a[lane] ^ b[lane];
        sum[lane] = half ^ c[lane];
        carry[lane] = (a[lane] & b[lane]) | (half & c[lane]);
    }
    (sum, carry)
}

fn ones_of(words: Words) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The number of set bits.
///
/// Sixteen groups of words are added up bit by bit before any bits are counted (Harley and Seal; see Muła, Kurz and Lemire,
/// "Faster population counts using AVX2 instructions", 2018), so that it takes about five operations a word on any processor, without
/// an instruction that counts bits.
pub(super) fn count_ones(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
    let zero = [0; LANES];
    let (mut ones, mut twos, mut fours, mut eights) = (zero, zero, zero, zero);
    let mut sixteens = 0;
    for block in blocks {
        let at = |index: usize| words(&block[index * WORDS_BYTES..][..WORDS_BYTES]);
        let mut carried_eights = [zero; 2];
        for (half, carried_eight) in carried_eights.iter_mut().enumerate() {
            let mut carried_fours = [zero; 2];
            for (quarter, carried_four) in carried_fours.iter_mut().enumerate() {
                let first = half * 8 + quarter * 4;
                let (sum, carry) = add(ones, at(first), at(first + 1));
                let (sum, other) = add(sum, at(first + 2), at(first + 3));
                ones = sum;
                (twos, *carried_four) = add(twos, carry, other);
            }
            (fours, *carried_eight) = add(fours, carried_fours[0], carried_fours[1]);
        }
        let carried;
        (eights, carried) = add(eights, carried_eights[0], carried_eights[1]);
        sixteens += ones_of(carried);
    }
    let blocks = 16 * sixteens
        + 8 * ones_of(eights)
        + 4 * ones_of(fours)
        + 2 * ones_of(twos)
        + ones_of(ones);
    blocks + count_words(rest)
}
