//! Cells, texts, distances and covers against what is known of them, and covers against brute force.

use super::sphere::degrees;
use super::{Area, Point, Region, Shape, cell_of_score, decode, distance_m, encode, text};

const PALERMO: Point = Point {
    longitude: 13.361_389,
    latitude: 38.115_556,
};
const CATANIA: Point = Point {
    longitude: 15.087_269,
    latitude: 37.502_669,
};

#[test]
fn known_cells() {
    assert_eq!(encode(PALERMO), 3_479_099_956_230_698);
    assert_eq!(encode(CATANIA), 3_479_447_370_796_909);
    let at = |longitude, latitude| Point {
        longitude,
        latitude,
    };
    assert_eq!(encode(at(-180.0, -85.051_128_78)), 0);
    assert_eq!(encode(at(0.0, 0.0)), 3_377_699_720_527_872);
    assert_eq!(encode(at(-0.0, -0.0)), 3_377_699_720_527_872);
    // One part beyond the last in both directions.
    assert_eq!(encode(at(180.0, 0.0)), 10_133_099_161_583_616);
    assert_eq!(encode(at(180.0, 85.051_128_78)), 13_510_798_882_111_488);
    assert_eq!(
        decode(3_479_099_956_230_698).longitude,
        13.361_389_338_970_184
    );
    assert_eq!(decode(3_479_099_956_230_698).latitude, 38.115_556_395_496_3);
    assert_eq!(decode(13_510_798_882_111_488), at(180.0, 85.051_128_78));
}

#[test]
fn known_texts() {
    assert_eq!(&text(3_479_099_956_230_698), b"sqc8b49rny0");
    assert_eq!(&text(0), b"00bh0hbj200");
    assert_eq!(&text(10_133_099_161_583_616), b"80000000000");
}

#[test]
fn scores_that_are_no_cells() {
    assert_eq!(cell_of_score(1.5), 1);
    assert_eq!(cell_of_score(-1.0), u64::MAX);
    assert_eq!(cell_of_score(9.3e18), 9_300_000_000_000_000_000);
    assert_eq!(cell_of_score(f64::INFINITY), 0);
    assert_eq!(cell_of_score(1e300), 0);
    assert_eq!(cell_of_score(f64::NEG_INFINITY), 1 << 63);
}

#[test]
fn known_distances() {
    let stored = |point| decode(encode(point));
    let distance = distance_m(stored(PALERMO), stored(CATANIA));
    assert_eq!((distance * 1e4).round(), 1_662_741_516.0);
    assert_eq!(distance_m(PALERMO, PALERMO), 0.0);
}

/// Every place that lies in an area lies in one of its cells, unless the area reaches over the map's upper or lower edge.
#[test]
fn cells_cover_the_area() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut found = 0;
    for _ in 0..3000 {
        let center = Point {
            longitude: random.f64() * 360.0 - 180.0,
            latitude: random.f64() * 120.0 - 60.0,
        };
        let size = 10_f64.powf(random.f64() * 6.0);
        let shape = if random.bool() {
            Shape::Circle { radius: size }
        } else {
            Shape::Box {
                width: size,
                height: size * random.f64(),
            }
        };
        let area = Area {
            center,
            shape,
            unit_m: 1.0,
        };
        let (region, cells) = (Region::new(&area), area.cells());
        for _ in 0..20 {
            let reach = degrees(size / 6_372_797.560_856);
            let longitude = center.longitude + (random.f64() - 0.5) * 4.0 * reach;
            let point = Point {
                longitude: (longitude + 540.0).rem_euclid(360.0) - 180.0,
                latitude: center.latitude + (random.f64() - 0.5) * 2.0 * reach,
            };
            if !point.is_on_map() {
                continue;
            }
            let cell = encode(point);
            if region.distance_m(decode(cell)).is_some() {
                found += 1;
                let covered = cells.iter().any(|each| {
                    let (start, end) = each.span();
                    (start..end).contains(&cell)
                });
                assert!(covered, "{area:?} has {point:?} but no cell of it");
            }
        }
    }
    assert!(found > 5_000, "only {found} places lay in their areas");
}

#[test]
fn haversines_that_are_spared_change_nothing() {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..20_000 {
        let mut point = || Point {
            longitude: random.f64() * 2.0,
            latitude: random.f64() * 2.0,
        };
        let (center, other) = (point(), point());
        let exact = distance_m(center, other);
        // Just reached, and just not.
        for (radius, within) in [(exact, true), (exact.next_down(), false)] {
            let area = Area {
                center,
                shape: Shape::Circle { radius },
                unit_m: 1.0,
            };
            let found = Region::new(&area).distance_m(other);
            assert_eq!(found, within.then_some(exact));
        }
    }
}
