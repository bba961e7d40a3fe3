//! Places: members of sorted sets whose scores are cells of a map.
//!
//! One file a part: its rows and its handlers. Owns how places, lengths and distances are read and written. Cells and distances
//! are `weft_data::geo`'s.

mod members;
mod options;
mod search;

use weft_data::geo::{Point, cell_of_score, decode};
use weft_data::number::parse_f64;
use weft_resp::Writer;

use super::options::is;
use crate::command::{Argument, CommandRow};
use crate::error::CommandError;

/// The rows about members.
pub(super) const MEMBERS: &[CommandRow] = members::ROWS;
/// The rows about what lies in an area.
pub(super) const SEARCH: &[CommandRow] = search::ROWS;

/// The units of length.
const UNIT: Argument = Argument::one_of(
    "unit",
    &[
        Argument::word("m", "M"),
        Argument::word("km", "KM"),
        Argument::word("ft", "FT"),
        Argument::word("mi", "MI"),
    ],
);

/// The meters of a unit.
fn unit_m(text: &[u8]) -> Result<f64, CommandError> {
    const METERS: [(&str, f64); 4] = [("M", 1.0), ("KM", 1000.0), ("FT", 0.3048), ("MI", 1609.34)];
    let unit = METERS.iter().find(|(name, _)| is(text, name));
    unit.map(|(_, meters)| *meters).ok_or(CommandError::Text(
        "ERR unsupported unit provided. please use M, KM, FT, MI",
    ))
}

/// A place from its longitude and its latitude.
fn point(longitude: &[u8], latitude: &[u8]) -> Result<Point, CommandError> {
    let number = |text| parse_f64(text).ok_or(CommandError::NotFloat);
    let point = Point {
        longitude: number(longitude)?,
        latitude: number(latitude)?,
    };
    if point.is_on_map() {
        return Ok(point);
    }
    let text = format!(
        "ERR invalid longitude,latitude pair {:.6},{:.6}",
        point.longitude, point.latitude
    );
    Err(CommandError::Composed(text.into_bytes().into()))
}

/// The place that a score stands for.
fn point_of(score: f64) -> Point {
    decode(cell_of_score(score))
}

fn reply_point(reply: &mut Writer<'_>, point: Point) {
    reply.array(2);
    reply.double(point.longitude);
    reply.double(point.latitude);
}

/// Writes a distance with four digits behind the point. What lies in the middle between two, once it is multiplied, becomes even.
fn reply_distance(reply: &mut Writer<'_>, distance: f64) {
    let scaled = (distance * 1e4).round_ties_even();
    let text = if (0.0..1e18).contains(&scaled) {
        let scaled = scaled as u64;
        format!("{}.{:04}", scaled / 10_000, scaled % 10_000)
    } else {
        format!("{distance:.4}")
    };
    reply.bulk(text.as_bytes());
}
