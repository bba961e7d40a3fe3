//! The loops over many bytes. They work on words beside each other, which the compiler turns into vector instructions.
//!
//! On x86-64 every processor has registers of 128 bits; those with AVX2, which is looked for at run time, get the same loops compiled for it
//! (`pulp`, whose dispatch is safe to call). On aarch64 the plain loops are as fast as it gets.

/// Whether the processor has AVX2, and the way to use it.
#[cfg(target_arch = "x86_64")]
fn wide() -> Option<pulp::x86::V3> {
    match pulp::Arch::new() {
        pulp::Arch::V3(wide) => Some(wide),
        _ => None,
    }
}

/// The number of set bits.
pub(super) fn count_ones(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        match wide() {
            Some(wide) => wide.vectorize(
                #[inline(always)]
                || count_words(bytes),
            ),
            None => super::groups::count_ones(bytes),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    count_words(bytes)
}

/// Word by word, for processors that count bits or look up sixteen or more of their parts at once.
#[inline(always)]
pub(super) fn count_words(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let words: u64 = words
        .iter()
        .map(|word| u64::from(u64::from_le_bytes(*word).count_ones()))
        .sum();
    let tail: u64 = tail.iter().map(|byte| u64::from(byte.count_ones())).sum();
    words + tail
}

/// The first byte that is not `filler`.
pub(super) fn first_other(bytes: &[u8], filler: u8) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = wide() {
        return wide.vectorize(
            #[inline(always)]
            || seek_other(bytes, filler),
        );
    }
    seek_other(bytes, filler)
}

#[inline(always)]
fn seek_other(bytes: &[u8], filler: u8) -> Option<usize> {
    const STRIDE: usize = 128;
    let same = u64::from_le_bytes([filler; 8]);
    let mut skipped = 0;
    for block in bytes.as_chunks::<STRIDE>().0 {
        let mut other = 0;
        for part in block.as_chunks::<8>().0 {
            other |= u64::from_le_bytes(*part) ^ same;
        }
        if other != 0 {
            break;
        }
        skipped += STRIDE;
    }
    bytes[skipped..]
        .iter()
        .position(|byte| *byte != filler)
        .map(|index| skipped + index)
}
