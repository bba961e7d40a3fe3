//! Cells: coordinates as interleaved bits, and back.
//!
//! A cell of `steps` bits a coordinate has 2 * `steps` bits: from the lowest on, one of the latitude and one of the longitude in turn. The
//! longitude 180 is one part beyond the last, so that its cell has a bit more; it is kept so because clients see the number.

use super::{LATITUDE_MAX, LONGITUDE_MAX, Point};

/// Bits of a coordinate in a cell that is kept.
pub(super) const STEPS_MAX: u32 = 26;
/// Characters of a cell's text.
pub const TEXT_LEN: usize = 11;
/// The digits of texts: no a, i, l, o.
const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// The latitude that texts begin and end with: those of the standard cover the poles.
const TEXT_LATITUDE_MAX: f64 = 90.0;

/// A part of the map: what a number of `2 * steps` bits stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The interleaved bits.
    pub bits: u64,
    /// Bits of each coordinate.
    pub steps: u32,
}

/// The edges of a cell, in degrees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    pub(super) west: f64,
    pub(super) east: f64,
    pub(super) south: f64,
    pub(super) north: f64,
}

/// The cell of a place, which has to be on the map.
#[must_use]
pub fn encode(point: Point) -> u64 {
    Cell::of(point, STEPS_MAX).bits
}

/// The middle of a cell as `encode` gives it. Of other numbers too, as far as the map goes.
#[must_use]
pub fn decode(bits: u64) -> Point {
    let steps = STEPS_MAX;
    let edges = Cell { bits, steps }.edges();
    let middle = |low: f64, high: f64, max: f64| f64::midpoint(low, high).clamp(-max, max);
    Point {
        longitude: middle(edges.west, edges.east, LONGITUDE_MAX),
        latitude: middle(edges.south, edges.north, LATITUDE_MAX),
    }
}

/// The number that a score stands for. For a score that is no cell it is what the processor of an x86-64 Redis makes of it.
#[must_use]
pub fn cell_of_score(score: f64) -> u64 {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    const INDEFINITE: u64 = 1 << 63;
    let signed = |value: f64| {
        if (-TWO_63..TWO_63).contains(&value) {
            value as i64 as u64
        } else {
            INDEFINITE
        }
    };
    if score < TWO_63 {
        signed(score)
    } else {
        signed(score - TWO_63) ^ INDEFINITE
    }
}

/// The text that other programs know a cell by: the standard's, whose latitudes go to the poles. Its last character says nothing.
#[must_use]
pub fn text(bits: u64) -> [u8; TEXT_LEN] {
    let point = decode(bits);
    let bits = interleaved(point, TEXT_LATITUDE_MAX, STEPS_MAX);
    let mut text = [ALPHABET[0]; TEXT_LEN];
    for (index, character) in text.iter_mut().take(TEXT_LEN - 1).enumerate() {
        let digit = bits >> (2 * STEPS_MAX as usize - 5 * (index + 1)) & 31;
        *character = ALPHABET[digit as usize];
    }
    text
}

impl Cell {
    /// The cell of so many steps that a place on the map is in.
    pub(super) fn of(point: Point, steps: u32) -> Self {
        Self {
            bits: interleaved(point, LATITUDE_MAX, steps),
            steps,
        }
    }

    pub(super) fn edges(self) -> Edges {
        let (latitude, longitude) = (gather(self.bits), gather(self.bits >> 1));
        let parts = (1_u64 << self.steps) as f64;
        let edge = |part: u64, max: f64| -max + part as f64 / parts * (max + max);
        Edges {
            west: edge(longitude, LONGITUDE_MAX),
            east: edge(longitude + 1, LONGITUDE_MAX),
            south: edge(latitude, LATITUDE_MAX),
            north: edge(latitude + 1, LATITUDE_MAX),
        }
    }

    /// The cell so many cells to the east and to the north, around the map's edges in both directions. A coordinate that is not
    /// moved keeps all its bits.
    pub(super) fn moved(self, east: i64, north: i64) -> Self {
        let parts = 1_i64 << self.steps;
        let moved = |coordinate: u64, by: i64| match by {
            0 => coordinate,
            by => (coordinate as i64 + by).rem_euclid(parts) as u64,
        };
        let (latitude, longitude) = (gather(self.bits), gather(self.bits >> 1));
        Self {
            bits: spread(moved(latitude, north)) | spread(moved(longitude, east)) << 1,
            steps: self.steps,
        }
    }

    /// The numbers of the smallest cells in it: from the first up to, but without, the second.
    #[must_use]
    pub const fn span(self) -> (u64, u64) {
        let shift = 2 * (STEPS_MAX - self.steps);
        (self.bits << shift, (self.bits + 1) << shift)
    }
}

fn interleaved(point: Point, latitude_max: f64, steps: u32) -> u64 {
    let parts = (1_u64 << steps) as f64;
    let part = |value: f64, max: f64| ((value + max) / (max + max) * parts) as u64;
    let latitude = part(point.latitude, latitude_max);
    spread(latitude) | spread(part(point.longitude, LONGITUDE_MAX)) << 1
}

/// Moves the lowest 32 bits apart, a zero behind each.
const fn spread(value: u64) -> u64 {
    let mut value = value & 0xffff_ffff;
    value = (value | value << 16) & 0x0000_ffff_0000_ffff;
    value = (value | value << 8) & 0x00ff_00ff_00ff_00ff;
    value = (value | value << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    value = (value | value << 2) & 0x3333_3333_3333_3333;
    (value | value << 1) & 0x5555_5555_5555_5555
}

/// Every second bit, from the lowest on, together.
const fn gather(value: u64) -> u64 {
    let mut value = value & 0x5555_5555_5555_5555;
    value = (value | value >> 1) & 0x3333_3333_3333_3333;
    value = (value | value >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    value = (value | value >> 4) & 0x00ff_00ff_00ff_00ff;
    value = (value | value >> 8) & 0x0000_ffff_0000_ffff;
    (value | value >> 16) & 0xffff_ffff
}
