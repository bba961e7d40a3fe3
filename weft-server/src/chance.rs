//! What a start draws by lot: seeds and the run id.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// 40 hexadecimal digits.
///
/// # Errors
/// The system's.
pub fn run_id() -> io::Result<String> {
    let bytes: [[u8; 20]; 1] = random()?;
    Ok(bytes
        .concat()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// A seed nobody can guess.
///
/// # Errors
/// The system's.
pub fn seed() -> io::Result<u64> {
    let [seed] = random()?.map(u64::from_ne_bytes);
    Ok(seed)
}

/// Seeds of the keyed hash, drawn from `hash-seed` where there is one, so that the same keys come in the same order again.
///
/// # Errors
/// The system's.
pub fn hash_seeds(text: &[u8]) -> io::Result<[u64; 4]> {
    if text.is_empty() {
        return Ok(random()?.map(u64::from_ne_bytes));
    }
    // FNV-1a, then the finaliser of SplitMix64, whose outputs for successive inputs are independent.
    let start = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Ok([1_u64, 2, 3, 4].map(|step| {
        let mixed = start.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }))
}

/// Bytes nobody can guess. The kernel hands out this few in one piece.
fn random<const LENGTH: usize, const COUNT: usize>() -> io::Result<[[u8; LENGTH]; COUNT]> {
    let mut parts = [[0; LENGTH]; COUNT];
    for part in &mut parts {
        let count = getrandom(&mut part[..], GetRandomFlags::empty())?;
        debug_assert_eq!(
            count, LENGTH,
            "the kernel splits no request of up to 256 bytes"
        );
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_gives_the_same_seeds_and_no_text_others_each_time() {
        let seeds = hash_seeds(b"blue").unwrap();
        assert_eq!(seeds, hash_seeds(b"blue").unwrap());
        assert_ne!(seeds, hash_seeds(b"blu").unwrap());
        assert_eq!(
            seeds.iter().collect::<std::collections::HashSet<_>>().len(),
            4
        );
        assert_ne!(hash_seeds(b"").unwrap(), hash_seeds(b"").unwrap());
    }

    #[test]
    fn a_run_id_is_40_digits() {
        let id = run_id().unwrap();
        assert!(id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(id, run_id().unwrap());
    }
}
