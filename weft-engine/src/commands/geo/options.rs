//! What a search asks for: reading its arguments, which several commands share.

use weft_data::geo::{Area, Point, Shape};
use weft_data::number::parse_f64;
use weft_data::sorted_set::SortedSetRef;
use weft_resp::Args;

use super::super::options::{integer, is};
use super::{point, point_of, unit_m};
use crate::command::{FoundKeys, KeyArgument, KeyFlags};
use crate::error::CommandError;

/// Where the arguments say what the search is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Longitude, latitude, radius and unit are the first arguments.
    Coordinates,
    /// Member, radius and unit are.
    Member,
    /// Words introduce the place and the shape.
    Words,
}

/// What a command's name says already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) form: Form,
    /// The first argument that says what the search is about.
    pub(super) first: usize,
    /// Words may ask for the result to be stored (`Words`: always is).
    pub(super) may_store: bool,
}

/// The order of what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    AsFound,
    NearestFirst,
    FarthestFirst,
}

/// What is written of each member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct With {
    pub(super) distance: bool,
    pub(super) cell: bool,
    pub(super) place: bool,
}

/// What a search asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// None if there is nothing to search in.
    pub(super) area: Option<Area>,
    pub(super) order: Order,
    pub(super) with: With,
    /// How many are wanted; 0: all.
    pub(super) count: usize,
    /// Any so many will do, not just the nearest.
    pub(super) any: bool,
    /// The result is stored.
    pub(super) stored: bool,
    /// Distances become the scores of what is stored.
    pub(super) stored_distances: bool,
}

const NO_MEMBER: CommandError = CommandError::Text("ERR could not decode requested zset member");

/// The middle and the shape of the area as far as they are known.
#[derive(Default)]
struct Found {
    center: Option<Point>,
    by_member: bool,
    by_place: bool,
    shape: Option<(Shape, f64)>,
}

impl Search {
    /// Reads the arguments of a search in `set`. Without one the middle may remain unknown.
    pub(super) fn parse(
        args: Args<'_>,
        given: Given,
        set: Option<SortedSetRef<'_>>,
    ) -> Result<Self, CommandError> {
        let Given {
            form,
            first,
            may_store,
        } = given;
        let mut found = Found::default();
        let member = |at: usize| match set {
            Some(set) => set
                .score(&args[at])
                .map(|score| Some(point_of(score)))
                .ok_or(NO_MEMBER),
            None => Ok(None),
        };
        let mut at = match form {
            Form::Coordinates => {
                found.center = Some(point(&args[first], &args[first + 1])?);
                found.shape = Some(circle(args, first + 2)?);
                first + 4
            }
            Form::Member => {
                if set.is_some() {
                    found.center = member(first)?;
                    found.shape = Some(circle(args, first + 1)?);
                }
                first + 3
            }
            Form::Words => first,
        };
        let words = form == Form::Words;
        let mut search = Self {
            area: None,
            order: Order::AsFound,
            with: With::default(),
            count: 0,
            any: false,
            stored: words && may_store,
            stored_distances: false,
        };
        while let Some(word) = args.get(at) {
            let left = args.len() - at - 1;
            if is(word, "WITHDIST") {
                search.with.distance = true;
            } else if is(word, "WITHHASH") {
                search.with.cell = true;
            } else if is(word, "WITHCOORD") {
                search.with.place = true;
            } else if is(word, "ANY") {
                search.any = true;
            } else if is(word, "ASC") {
                search.order = Order::NearestFirst;
            } else if is(word, "DESC") {
                search.order = Order::FarthestFirst;
            } else if is(word, "COUNT") && left >= 1 {
                let count = integer(&args[at + 1])?;
                if count <= 0 {
                    return Err(CommandError::Text("ERR COUNT must be > 0"));
                }
                search.count = usize::try_from(count).unwrap_or(usize::MAX);
                at += 1;
            } else if !words && may_store && left >= 1 && is_store(word) {
                search.stored = true;
                search.stored_distances = is(word, "STOREDIST");
                at += 1;
            } else if words && may_store && is(word, "STOREDIST") {
                search.stored_distances = true;
            } else if words && is(word, "FROMMEMBER") && left >= 1 && !found.by_place {
                found.center = member(at + 1)?;
                found.by_member = true;
                at += 1;
            } else if words && is(word, "FROMLONLAT") && left >= 2 && !found.by_member {
                found.center = Some(point(&args[at + 1], &args[at + 2])?);
                found.by_place = true;
                at += 2;
            } else if words
                && is(word, "BYRADIUS")
                && left >= 2
                && !matches!(found.shape, Some((Shape::Box { .. }, _)))
            {
                found.shape = Some(circle(args, at + 1)?);
                at += 2;
            } else if words
                && is(word, "BYBOX")
                && left >= 3
                && !matches!(found.shape, Some((Shape::Circle { .. }, _)))
            {
                found.shape = Some(rectangle(args, at + 1)?);
                at += 3;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        search.check(&found, words, &args[0])?;
        if search.count > 0 && search.order == Order::AsFound && !search.any {
            search.order = Order::NearestFirst;
        }
        search.area = found
            .center
            .zip(found.shape)
            .map(|(center, (shape, unit_m))| Area {
                center,
                shape,
                unit_m,
            });
        Ok(search)
    }

    fn check(&self, found: &Found, words: bool, name: &[u8]) -> Result<(), CommandError> {
        if self.stored && self.with != With::default() {
            return Err(CommandError::Text(if words {
                "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            } else {
                "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            }));
        }
        // The name as the client has written it.
        let one_of = |which: &str| {
            let before = format!("ERR exactly one of {which} can be specified for ");
            Err(CommandError::quoting(&before, name, ""))
        };
        if words && !found.by_member && !found.by_place {
            return one_of("FROMMEMBER or FROMLONLAT");
        }
        if words && found.shape.is_none() {
            return one_of("BYRADIUS and BYBOX");
        }
        if self.any && self.count == 0 {
            return Err(CommandError::Text(
                "ERR the ANY argument requires COUNT argument",
            ));
        }
        Ok(())
    }
}

fn is_store(word: &[u8]) -> bool {
    is(word, "STORE") || is(word, "STOREDIST")
}

fn length(text: &[u8], refused: &'static str) -> Result<f64, CommandError> {
    parse_f64(text).ok_or(CommandError::Text(refused))
}

/// A radius and its unit.
fn circle(args: Args<'_>, at: usize) -> Result<(Shape, f64), CommandError> {
    let radius = length(&args[at], "ERR need numeric radius")?;
    if radius < 0.0 {
        return Err(CommandError::Text("ERR radius cannot be negative"));
    }
    Ok((Shape::Circle { radius }, unit_m(&args[at + 1])?))
}

/// A width, a height and their unit.
fn rectangle(args: Args<'_>, at: usize) -> Result<(Shape, f64), CommandError> {
    let width = length(&args[at], "ERR need numeric width")?;
    let height = length(&args[at + 1], "ERR need numeric height")?;
    if width < 0.0 || height < 0.0 {
        return Err(CommandError::Text("ERR height or width cannot be negative"));
    }
    Ok((Shape::Box { width, height }, unit_m(&args[at + 2])?))
}

/// The keys of a search with options from argument `first` on: the one it looks at, and the last one that it is told to store in,
/// which is the one it stores in.
pub(super) fn keys(args: Args<'_>, first: usize) -> FoundKeys {
    let mut keys = FoundKeys::new();
    keys.push(KeyArgument {
        argument: 1,
        flags: KeyFlags::RO.with(KeyFlags::ACCESS),
    });
    let mut destination = None;
    let mut at = first;
    while let Some(word) = args.get(at) {
        if at + 1 < args.len() && is_store(word) {
            destination = Some(at + 1);
            at += 1;
        } else if is(word, "COUNT") {
            at += 1;
        }
        at += 1;
    }
    if let Some(argument) = destination {
        keys.push(KeyArgument {
            argument,
            flags: KeyFlags::OW.with(KeyFlags::UPDATE),
        });
    }
    keys
}
