//! Circles and boxes: what lies in them, and the cells that cover them.
//!
//! A cell as large as the area and its eight neighbours cover it, wherever in the cell the middle is. Which cells these are, and in which
//! order they are looked through, clients see in the order of replies.

use smallvec::SmallVec;

use super::Point;
use super::cell::{Cell, Edges, STEPS_MAX};
use super::sphere::{Origin, RADIUS_M, degrees, radians};

/// Half of the earth's circumference as the map has it, in meters.
const MAP_HALF_M: f64 = 20_037_726.37;

/// What an area looks like, in a unit of length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A circle.
    Circle {
        /// Its radius.
        radius: f64,
    },
    /// A box, as wide as it says at every latitude.
    Box {
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
}

/// A part of the earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Its middle.
    pub center: Point,
    /// What it looks like.
    pub shape: Shape,
    /// The meters of the unit that it is measured in.
    pub unit_m: f64,
}

/// The cells that cover an area, in the order in which they are looked through.
pub type Cells = SmallVec<[Cell; 9]>;

/// An area, prepared for many places to be compared with it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    origin: Origin,
    center: Point,
    limits_m: Limits,
    /// What is certainly above this haversine is certainly outside.
    haversine_max: f64,
}

/// How far from the middle an area goes.
#[derive(Clone, Copy, Debug)]
enum Limits {
    Circle { radius: f64 },
    Box { half_width: f64, half_height: f64 },
}

impl Region {
    /// Of an area.
    #[must_use]
    pub fn new(area: &Area) -> Self {
        let (limits_m, farthest) = match area.shape {
            Shape::Circle { radius } => {
                let radius = radius * area.unit_m;
                (Limits::Circle { radius }, radius)
            }
            Shape::Box { width, height } => {
                let half = |length: f64| length * area.unit_m / 2.0;
                let (half_width, half_height) = (half(width), half(height));
                let limits = Limits::Box {
                    half_width,
                    half_height,
                };
                (limits, f64::INFINITY)
            }
        };
        // Ample room for how sines are rounded.
        let half_angle = farthest / (2.0 * RADIUS_M);
        let haversine_max = if half_angle < std::f64::consts::FRAC_PI_2 {
            let sine = half_angle.sin();
            sine * sine * (1.0 + 1e-9) + 1e-18
        } else {
            f64::INFINITY
        };
        Self {
            origin: Origin::new(area.center),
            center: area.center,
            limits_m,
            haversine_max,
        }
    }

    /// How many meters a place is from the middle, if it lies in the area.
    #[must_use]
    pub fn distance_m(&self, point: Point) -> Option<f64> {
        match self.limits_m {
            Limits::Circle { radius } => {
                let distance = self.origin.bounded_distance_m(point, self.haversine_max)?;
                (distance <= radius).then_some(distance)
            }
            Limits::Box {
                half_width,
                half_height,
            } => {
                if self.origin.height_m(point) > half_height {
                    return None;
                }
                let abeam = Point {
                    latitude: point.latitude,
                    ..self.center
                };
                if Origin::new(point).distance_m(abeam) > half_width {
                    return None;
                }
                Some(self.origin.distance_m(point))
            }
        }
    }
}

impl Area {
    /// The cells to look through for what lies in it. Some may be there twice, but never one behind the other, if the area is so large that
    /// the map has fewer cells than it takes.
    #[must_use]
    pub fn cells(&self) -> Cells {
        let bounds = self.bounds();
        let mut steps = steps_for(self.radius_m(), self.center.latitude);
        let middle = |steps| Cell::of(self.center, steps);
        // Near the poles and for elongated areas the neighbours may end within the area: then cells of twice the size are taken.
        let falls_short = |cell: Cell| {
            cell.moved(0, 1).edges().north < bounds.north
                || cell.moved(0, -1).edges().south > bounds.south
                || cell.moved(1, 0).edges().east < bounds.east
                || cell.moved(-1, 0).edges().west > bounds.west
        };
        if steps > 1 && falls_short(middle(steps)) {
            steps -= 1;
        }
        let cell = middle(steps);
        let edges = cell.edges();
        // Where the middle cell reaches as far as the area, its neighbours on that side are not needed. With cells of a quarter of the
        // map they may be needed all the same, because the map is round.
        let fine = steps >= 2;
        let needed = |east: i64, north: i64| {
            let spared = (north < 0 && edges.south < bounds.south)
                || (north > 0 && edges.north > bounds.north)
                || (east < 0 && edges.west < bounds.west)
                || (east > 0 && edges.east > bounds.east);
            !(fine && spared)
        };
        const ORDER: [(i64, i64); 9] = [
            (0, 0),
            (0, 1),
            (0, -1),
            (1, 0),
            (-1, 0),
            (1, 1),
            (-1, 1),
            (1, -1),
            (-1, -1),
        ];
        let mut cells = Cells::new();
        for (east, north) in ORDER {
            let next = cell.moved(east, north);
            if needed(east, north) && cells.last() != Some(&next) {
                cells.push(next);
            }
        }
        cells
    }

    /// How far the area goes from its middle at most, in meters.
    fn radius_m(&self) -> f64 {
        let radius = match self.shape {
            Shape::Circle { radius } => radius,
            Shape::Box { width, height } => {
                (width / 2.0 * (width / 2.0) + height / 2.0 * (height / 2.0)).sqrt()
            }
        };
        radius * self.unit_m
    }

    /// A box in degrees around the area, which may go beyond the map.
    fn bounds(&self) -> Edges {
        let (half_width, half_height) = match self.shape {
            Shape::Circle { radius } => (self.unit_m * radius, self.unit_m * radius),
            Shape::Box { width, height } => {
                (self.unit_m * (width / 2.0), self.unit_m * (height / 2.0))
            }
        };
        let Point {
            longitude,
            latitude,
        } = self.center;
        let up = degrees(half_height / RADIUS_M);
        // The side that is nearer to a pole takes more degrees.
        let polar = if latitude < 0.0 {
            latitude - up
        } else {
            latitude + up
        };
        let aside = degrees(half_width / RADIUS_M / radians(polar).cos());
        Edges {
            west: longitude - aside,
            east: longitude + aside,
            south: latitude - up,
            north: latitude + up,
        }
    }
}

/// How fine cells may be so that one and its neighbours cover a circle of this radius.
fn steps_for(radius_m: f64, latitude: f64) -> u32 {
    if radius_m == 0.0 {
        return STEPS_MAX;
    }
    let mut steps = 1_i64;
    let mut reached = radius_m;
    while reached < MAP_HALF_M {
        reached *= 2.0;
        steps += 1;
    }
    // The neighbours have to cover it whatever the place of the middle is in its cell.
    steps -= 2;
    // Towards the poles cells are narrower.
    if latitude.abs() > 66.0 {
        steps -= 1;
    }
    if latitude.abs() > 80.0 {
        steps -= 1;
    }
    steps.clamp(1, i64::from(STEPS_MAX)) as u32
}
