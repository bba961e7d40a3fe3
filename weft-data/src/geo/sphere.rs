//! Distances on a sphere of the earth's size, by the haversine formula.

use super::Point;

/// The radius of the sphere in meters that Redis counts with.
pub(super) const RADIUS_M: f64 = 6_372_797.560_856;

/// Radians.
pub(super) fn radians(degrees: f64) -> f64 {
    degrees * (std::f64::consts::PI / 180.0)
}

/// Degrees.
pub(super) fn degrees(radians: f64) -> f64 {
    radians / (std::f64::consts::PI / 180.0)
}

/// The distance of two places in meters.
#[must_use]
pub fn distance_m(one: Point, other: Point) -> f64 {
    Origin::new(one).distance_m(other)
}

/// A place that distances are counted from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    longitude: f64,
    latitude: f64,
    cosine: f64,
}

impl Origin {
    pub(super) fn new(point: Point) -> Self {
        let latitude = radians(point.latitude);
        Self {
            longitude: radians(point.longitude),
            latitude,
            cosine: latitude.cos(),
        }
    }

    /// The distance in meters.
    pub(super) fn distance_m(self, point: Point) -> f64 {
        self.bounded_distance_m(point, f64::INFINITY)
            .unwrap_or(f64::INFINITY)
    }

    /// The same, unless the haversine is certainly above this one: then the expensive half of the formula is saved.
    pub(super) fn bounded_distance_m(self, point: Point, haversine_max: f64) -> Option<f64> {
        let latitude = radians(point.latitude);
        let half_height = ((latitude - self.latitude) / 2.0).sin();
        let high = half_height * half_height;
        if high > haversine_max {
            return None;
        }
        let half_width = ((radians(point.longitude) - self.longitude) / 2.0).sin();
        if half_width == 0.0 {
            return Some(RADIUS_M * (latitude - self.latitude).abs());
        }
        let haversine = high + self.cosine * latitude.cos() * half_width * half_width;
        if haversine > haversine_max {
            return None;
        }
        Some(2.0 * RADIUS_M * haversine.sqrt().asin())
    }

    /// How many meters further north or south a place is.
    pub(super) fn height_m(self, point: Point) -> f64 {
        RADIUS_M * (radians(point.latitude) - self.latitude).abs()
    }
}
