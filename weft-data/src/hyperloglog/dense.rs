//! Registers of six bits, one after the other from the low bits of each byte on: four registers in three bytes.

use super::estimate::Histogram;
use super::{REGISTERS, Registers};

const BITS: usize = 6;
/// What a register can hold at most.
pub(super) const MAX: u8 = (1 << BITS) - 1;
/// Bytes of all registers.
pub(super) const BYTES: usize = REGISTERS * BITS / 8;

/// The byte that a register begins in and the bit there.
const fn place(register: usize) -> (usize, usize) {
    (register * BITS / 8, register * BITS % 8)
}

/// What a register holds.
pub(super) fn register(bytes: &[u8], register: usize) -> u8 {
    let (at, bit) = place(register);
    let next = bytes.get(at + 1).copied().unwrap_or_default();
    (u16::from_le_bytes([bytes[at], next]) >> bit) as u8 & MAX
}

/// Writes a register.
pub(super) fn set(bytes: &mut [u8], register: usize, rank: u8) {
    let (at, bit) = place(register);
    let next = bytes.get(at + 1).copied().unwrap_or_default();
    let pair = u16::from_le_bytes([bytes[at], next]);
    let pair = pair & !(u16::from(MAX) << bit) | u16::from(rank & MAX) << bit;
    let [low, high] = pair.to_le_bytes();
    bytes[at] = low;
    if let Some(next) = bytes.get_mut(at + 1) {
        *next = high;
    }
}

/// Four registers from their three bytes.
#[inline(always)]
fn unpack(bytes: [u8; 3]) -> [u8; 4] {
    let [a, b, c] = bytes;
    [
        a & MAX,
        (a >> 6 | b << 2) & MAX,
        (b >> 4 | c << 4) & MAX,
        c >> 2,
    ]
}

/// Appends all registers.
pub(super) fn push(bytes: &mut Vec<u8>, registers: &Registers) {
    bytes.reserve_exact(BYTES);
    for [a, b, c, d] in registers.as_chunks::<4>().0 {
        bytes.extend_from_slice(&[a | b << 6, b >> 2 | c << 4, c >> 4 | d << 2]);
    }
}

/// Raises `registers` to those in `bytes` where these are higher.
pub(super) fn merge_into(registers: &mut Registers, bytes: &[u8]) {
    let (groups, _) = bytes.as_chunks::<3>();
    for (own, group) in registers.as_chunks_mut::<4>().0.iter_mut().zip(groups) {
        let other = unpack(*group);
        for (own, other) in own.iter_mut().zip(other) {
            *own = other.max(*own);
        }
    }
}

/// How many registers hold each rank.
pub(super) fn histogram(bytes: &[u8]) -> Histogram {
    // Neighbours often hold the same rank: separate counts do not wait for each other.
    let mut histograms = [[0_u32; 64]; 4];
    for group in bytes.as_chunks::<3>().0 {
        for (histogram, rank) in histograms.iter_mut().zip(unpack(*group)) {
            histogram[usize::from(rank)] += 1;
        }
    }
    let mut sum: Histogram = [0; 64];
    for histogram in histograms {
        for (sum, count) in sum.iter_mut().zip(histogram) {
            *sum += count;
        }
    }
    sum
}
