//! HyperLogLogs: strings that estimate how many different elements they have been shown.
//!
//! The bytes are those of Redis 8.2, so that a value can be read, dumped and moved between the two:
//!
//! ```text
//! "HYLL"  encoding: 1 byte, 0 dense or 1 sparse  3 bytes unused  cached count: 8 bytes, little-endian  registers
//! ```
//!
//! The highest bit of the cached count says that it is out of date. There are 16,384 registers; one holds the highest rank of the elements
//! that fell on it. `dense` and `sparse` know how registers are laid out, `estimate` what they say, `hash` where an element
//! falls, `self_test` checks it all. Bytes come from outside (anybody can SET a string): nothing here panics on them.

mod dense;
mod estimate;
mod hash;
mod self_test;
mod sparse;
#[cfg(test)]
mod tests;

use std::fmt;

pub use hash::{Observation, observe};
pub use self_test::SelfTest;

/// The number of registers; 14 bits of an element's hash choose one.
pub const REGISTERS: usize = 1 << 14;

const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const COUNT_AT: usize = 8;
/// Bytes before the registers.
pub const HEADER_BYTES: usize = 16;
const OUT_OF_DATE: u8 = 0x80;
/// The byte that has the bit saying that the cached count is out of date.
const STALE_AT: usize = HEADER_BYTES - 1;

/// What all registers hold.
pub type Registers = [u8; REGISTERS];

/// How the registers are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Six bits each.
    Dense,
    /// Runs of equal ones.
    Sparse,
}

/// The registers of a sparse value end too early or too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupted;

impl fmt::Display for Corrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corrupted HyperLogLog")
    }
}

impl std::error::Error for Corrupted {}

/// What a new key holds: sparse, all registers zero, the count up to date.
#[must_use]
pub fn empty() -> Vec<u8> {
    let mut bytes = header(Encoding::Sparse).to_vec();
    sparse::push_zeroes(&mut bytes, REGISTERS);
    bytes
}

fn header(encoding: Encoding) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    header[ENCODING_AT] = match encoding {
        Encoding::Dense => 0,
        Encoding::Sparse => 1,
    };
    header
}

/// How the registers are laid out; none if the bytes are no HyperLogLog. Whether sparse registers are whole is not looked at.
#[must_use]
pub fn encoding(bytes: &[u8]) -> Option<Encoding> {
    if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
        return None;
    }
    match bytes[ENCODING_AT] {
        0 if bytes.len() == HEADER_BYTES + dense::BYTES => Some(Encoding::Dense),
        1 => Some(Encoding::Sparse),
        _ => None,
    }
}

/// The cached count, if it is up to date. `bytes` are a HyperLogLog, as everywhere below.
#[must_use]
pub fn cached_count(bytes: &[u8]) -> Option<u64> {
    let cached = bytes.get(COUNT_AT..HEADER_BYTES)?;
    let count = u64::from_le_bytes(cached.try_into().ok()?);
    (bytes[STALE_AT] & OUT_OF_DATE == 0).then_some(count)
}

/// The bytes of a cached count and where they stand.
#[must_use]
pub const fn count_field(count: u64) -> (usize, [u8; 8]) {
    (COUNT_AT, count.to_le_bytes())
}

/// Marks the cached count as out of date.
pub fn outdate(bytes: &mut [u8]) {
    bytes[STALE_AT] |= OUT_OF_DATE;
}

/// Estimates how many different elements there have been, whatever is cached.
///
/// # Errors
/// If the registers are not whole.
pub fn count(bytes: &[u8]) -> Result<u64, Corrupted> {
    let registers = &bytes[HEADER_BYTES..];
    let histogram = match encoding(bytes) {
        Some(Encoding::Dense) => dense::histogram(registers),
        _ => sparse::histogram(registers)?,
    };
    Ok(estimate::count(&histogram))
}

/// The same for registers by themselves.
#[must_use]
pub fn count_registers(registers: &Registers) -> u64 {
    let mut histogram: estimate::Histogram = [0; 64];
    for rank in registers {
        histogram[usize::from(rank & dense::MAX)] += 1;
    }
    estimate::count(&histogram)
}

/// Raises `registers` to those of `bytes` where these are higher.
///
/// # Errors
/// If the registers are not whole.
pub fn merge_into(registers: &mut Registers, bytes: &[u8]) -> Result<(), Corrupted> {
    let own = &bytes[HEADER_BYTES..];
    match encoding(bytes) {
        Some(Encoding::Dense) => {
            dense::merge_into(registers, own);
            Ok(())
        }
        _ => sparse::merge_into(registers, own),
    }
}

/// Registers that nothing was shown yet.
#[must_use]
pub fn zeroes() -> Box<Registers> {
    Box::new([0; REGISTERS])
}

/// The registers.
///
/// # Errors
/// If they are not whole.
pub fn registers(bytes: &[u8]) -> Result<Box<Registers>, Corrupted> {
    let mut registers = zeroes();
    merge_into(&mut registers, bytes)?;
    Ok(registers)
}

/// Whether an observation would raise its register in a dense value.
#[must_use]
pub fn raises_dense(bytes: &[u8], observation: Observation) -> bool {
    let register = usize::from(observation.register);
    dense::register(&bytes[HEADER_BYTES..], register) < observation.rank
}

/// Raises a register of a dense value; whether it was lower.
pub fn raise_dense(bytes: &mut [u8], observation: Observation) -> bool {
    let raises = raises_dense(bytes, observation);
    if raises {
        let register = usize::from(observation.register);
        dense::set(&mut bytes[HEADER_BYTES..], register, observation.rank);
        outdate(bytes);
    }
    raises
}

/// What observations have made of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The new value.
    pub bytes: Vec<u8>,
    /// How many registers were raised, one as often as it was.
    pub raised: usize,
    /// The registers ended before one that was looked for, or were not whole when the value had to become dense. What came before
    /// is added, and nothing else.
    pub damaged: bool,
}

/// The value with all observations added; none if that changes nothing. It becomes dense when it would grow beyond `sparse_max`
/// bytes, header included, or when a rank is too high for the sparse form.
#[must_use]
pub fn with_observations(
    bytes: &[u8],
    observations: impl IntoIterator<Item = Observation>,
    sparse_max: usize,
) -> Option<Added> {
    let mut changed: Option<Added> = None;
    for observation in observations {
        let now = changed.as_ref().map_or(bytes, |added| &added.bytes);
        let found = if encoding(now) == Some(Encoding::Dense) {
            if !raises_dense(now, observation) {
                continue;
            }
            Ok(None)
        } else {
            match sparse::seek(now, sparse::Cursor::START, observation) {
                Ok(found) if found.rank >= observation.rank => continue,
                found => found.map(Some),
            }
        };
        let added = changed.get_or_insert_with(|| Added {
            bytes: bytes.to_vec(),
            raised: 0,
            damaged: false,
        });
        let done = match found {
            Ok(Some(found)) => {
                raise_sparse(&mut added.bytes, found, observation, sparse_max).map(|_| ())
            }
            Ok(None) => {
                raise_dense(&mut added.bytes, observation);
                Ok(())
            }
            Err(Corrupted) => Err(Corrupted),
        };
        if done.is_err() {
            added.damaged = true;
            break;
        }
        added.raised += 1;
    }
    changed
}

/// Raises a register of a sparse value, which may become dense by that. From where to look for a register that follows.
fn raise_sparse(
    bytes: &mut Vec<u8>,
    found: sparse::Found,
    observation: Observation,
    sparse_max: usize,
) -> Result<sparse::Cursor, Corrupted> {
    if let Some(next) = sparse::raise(bytes, found, observation, sparse_max) {
        outdate(bytes);
        return Ok(next);
    }
    make_dense(bytes)?;
    raise_dense(bytes, observation);
    Ok(sparse::Cursor::START)
}

/// Gives a sparse value the dense form; the cached count stays. A dense one stays as it is.
///
/// # Errors
/// If the registers are not whole.
pub fn make_dense(bytes: &mut Vec<u8>) -> Result<(), Corrupted> {
    if encoding(bytes) == Some(Encoding::Dense) {
        return Ok(());
    }
    let registers = registers(bytes)?;
    bytes.truncate(HEADER_BYTES);
    bytes[ENCODING_AT] = header(Encoding::Dense)[ENCODING_AT];
    dense::push(bytes, &registers);
    Ok(())
}

/// Raises all registers of `bytes` to those of `registers`, which are no lower than its own, and outdates the cached count.
///
/// # Errors
/// If the registers of `bytes` are not whole.
pub fn raise_all(
    bytes: &mut Vec<u8>,
    registers: &Registers,
    sparse_max: usize,
) -> Result<(), Corrupted> {
    // They come in order, so that each is looked for from where the last one was.
    let mut start = sparse::Cursor::START;
    for (register, rank) in registers.iter().enumerate() {
        if encoding(bytes) == Some(Encoding::Dense) {
            bytes.truncate(HEADER_BYTES);
            dense::push(bytes, registers);
            break;
        }
        if *rank != 0 {
            let observation = Observation {
                register: register as u16,
                rank: *rank,
            };
            let found = sparse::seek(bytes, start, observation)?;
            start = found.cursor();
            if found.rank < observation.rank {
                start = raise_sparse(bytes, found, observation, sparse_max)?;
            }
        }
    }
    outdate(bytes);
    Ok(())
}

/// The runs of a sparse value as PFDEBUG DECODE shows them; none if it is dense.
#[must_use]
pub fn runs(bytes: &[u8]) -> Option<String> {
    (encoding(bytes) == Some(Encoding::Sparse)).then(|| sparse::runs(&bytes[HEADER_BYTES..]))
}
