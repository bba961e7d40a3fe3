//! Places on the earth as numbers: a longitude and a latitude become a cell of 52 bits, which a sorted set keeps as a score.
//!
//! Both coordinates are cut into 2^26 parts and their bits interleaved, so that places near each other mostly have numbers near each
//! other. Owns cells and their texts, distances on the sphere, and the few ranges of cells that cover a circle or a box. Does not know
//! sorted sets, units of length or how numbers are written. Latitudes end where the square map of the Web Mercator projection ends.
//! Every formula keeps the order of operations of the one that Redis documents, since clients see the last digit.

mod area;
mod cell;
mod sphere;

#[cfg(test)]
mod tests;

pub use self::area::{Area, Cells, Region, Shape};
pub use self::cell::{Cell, TEXT_LEN, cell_of_score, decode, encode, text};
pub use self::sphere::distance_m;

/// The highest longitude, in degrees; the lowest is its negative.
pub const LONGITUDE_MAX: f64 = 180.0;
/// The highest latitude of a place that can be kept, in degrees: where the map is as high as it is wide.
pub const LATITUDE_MAX: f64 = 85.051_128_78;

/// A place on the earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// East of Greenwich, from -180 to 180.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

impl Point {
    /// Whether it can be kept.
    #[must_use]
    pub fn is_on_map(self) -> bool {
        (-LONGITUDE_MAX..=LONGITUDE_MAX).contains(&self.longitude)
            && (-LATITUDE_MAX..=LATITUDE_MAX).contains(&self.latitude)
    }
}
