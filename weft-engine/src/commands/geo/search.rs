//! What lies in an area: looking for it, putting it in order, replying or storing it.
//!
//! Whoever only reads captures a large sorted set under the latch and searches it afterwards, in steps. What is stored is found and stored
//! at once.

use std::cmp::Ordering;
use std::ops::Range;

use smallvec::SmallVec;
use weft_data::collection::{Built, Collection, Kind};
use weft_data::geo::{Area, Region};
use weft_data::sorted_set::{ScoreRange, SortedSetRef, Tally};
use weft_resp::{Args, Writer};

use super::options::{self, Form, Given, Order, Search};
use super::{UNIT, point_of, reply_distance, reply_point};
use crate::command::{
    Argument, Begin, Categories, CommandRow, Deprecation, Find, Flags, FoundKeys, KeyFlags, KeySpec,
};
use crate::dispatch::{Budget, Context, Key, Progress, Steps};
use crate::error::CommandError;

/// So many members are looked at under the latch, without a snapshot.
const AT_ONCE_MAX: u64 = 128;
/// So many are looked at, or written, between two looks at the budget.
const CHUNK: u64 = 64;
/// About what looking at a member takes, what putting one in its place does, and what writing one does.
const NS_PER_LOOK: u64 = 60;
const NS_PER_SORTED: u64 = 50;
const NS_PER_REPLY: u64 = 200;
const BYTES_PER_NS: u64 = 8;

const WITH: [Argument; 3] = [
    Argument::word("withcoord", "WITHCOORD").optional(),
    Argument::word("withdist", "WITHDIST").optional(),
    Argument::word("withhash", "WITHHASH").optional(),
];
const ORDER: Argument = Argument::one_of(
    "order",
    &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")],
)
.optional();
const COUNT: Argument = Argument::block(
    "count-block",
    &[
        Argument::integer("count").token("COUNT"),
        Argument::word("any", "ANY").optional(),
    ],
)
.optional();
/// With a note on when ANY came.
const COUNT_SINCE: Argument = Argument::block(
    "count-block",
    &[
        Argument::integer("count").token("COUNT"),
        Argument::word("any", "ANY").optional().since("6.2.0"),
    ],
)
.optional();
const STORE: Argument = Argument::one_of(
    "store",
    &[
        Argument::key("storekey", 1).token("STORE").display("key"),
        Argument::key("storedistkey", 2)
            .token("STOREDIST")
            .display("key"),
    ],
)
.optional();
const FROM: Argument = Argument::one_of(
    "from",
    &[
        Argument::string("member").token("FROMMEMBER"),
        Argument::block(
            "fromlonlat",
            &[Argument::double("longitude"), Argument::double("latitude")],
        )
        .token("FROMLONLAT"),
    ],
);
const BY: Argument = Argument::one_of(
    "by",
    &[
        Argument::block(
            "circle",
            &[Argument::double("radius").token("BYRADIUS"), UNIT],
        ),
        Argument::block(
            "box",
            &[
                Argument::double("width").token("BYBOX"),
                Argument::double("height"),
                UNIT,
            ],
        ),
    ],
);

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "geosearch",
        handler: geosearch,
        ..WORDS
    },
    CommandRow {
        name: "geosearchstore",
        arity: -8,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        keys: &[
            KeySpec::one(1, KeyFlags::OW.with(KeyFlags::UPDATE)),
            KeySpec::one(2, KeyFlags::RO.with(KeyFlags::ACCESS)),
        ],
        summary: "Stores the members whose places lie in a circle or a box under another key.",
        arguments: &[
            Argument::key("destination", 0),
            Argument::key("source", 1),
            FROM,
            BY,
            ORDER,
            COUNT,
            Argument::word("storedist", "STOREDIST").optional(),
        ],
        handler: geosearchstore,
        ..WORDS
    },
    CommandRow {
        name: "georadius",
        arity: -6,
        flags: STORING,
        keys: &[
            KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS)),
            stored_behind("STORE", 6),
            stored_behind("STOREDIST", 6),
        ],
        key_finder: Some(georadius_keys),
        since: "3.2.0",
        summary: "Lists or stores the members within a distance of a place.",
        deprecated: replaced_by("GEOSEARCH and GEOSEARCHSTORE with BYRADIUS"),
        arguments: &[
            Argument::key("key", 0),
            Argument::double("longitude"),
            Argument::double("latitude"),
            Argument::double("radius"),
            UNIT,
            WITH[0],
            WITH[1],
            WITH[2],
            COUNT_SINCE,
            ORDER,
            STORE,
        ],
        handler: georadius,
        ..RADIUS
    },
    CommandRow {
        name: "georadius_ro",
        arity: -6,
        summary: "Lists the members within a distance of a place.",
        deprecated: replaced_by("GEOSEARCH with BYRADIUS"),
        arguments: &[
            Argument::key("key", 0),
            Argument::double("longitude"),
            Argument::double("latitude"),
            Argument::double("radius"),
            UNIT,
            WITH[0],
            WITH[1],
            WITH[2],
            COUNT_SINCE,
            ORDER,
        ],
        handler: georadius_ro,
        ..RADIUS
    },
    CommandRow {
        name: "georadiusbymember",
        arity: -5,
        flags: STORING,
        keys: &[
            KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS)),
            stored_behind("STORE", 5),
            stored_behind("STOREDIST", 5),
        ],
        key_finder: Some(georadiusbymember_keys),
        since: "3.2.0",
        summary: "Lists or stores the members within a distance of a member.",
        deprecated: replaced_by("GEOSEARCH and GEOSEARCHSTORE with BYRADIUS and FROMMEMBER"),
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member"),
            Argument::double("radius"),
            UNIT,
            WITH[0],
            WITH[1],
            WITH[2],
            COUNT,
            ORDER,
            STORE,
        ],
        handler: georadiusbymember,
        ..RADIUS
    },
    CommandRow {
        name: "georadiusbymember_ro",
        arity: -5,
        summary: "Lists the members within a distance of a member.",
        deprecated: replaced_by("GEOSEARCH with BYRADIUS and FROMMEMBER"),
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member"),
            Argument::double("radius"),
            UNIT,
            WITH[0],
            WITH[1],
            WITH[2],
            COUNT,
            ORDER,
        ],
        handler: georadiusbymember_ro,
        ..RADIUS
    },
];

const WORDS: CommandRow = CommandRow {
    arity: -7,
    flags: Flags::READONLY,
    categories: Categories::GEO,
    keys: &[KeySpec::one(1, KeyFlags::RO.with(KeyFlags::ACCESS))],
    group: "geo",
    since: "6.2.0",
    complexity: "O(N+log(M)) with N members in the cells around the area and M in all",
    summary: "Lists the members whose places lie in a circle or a box.",
    history: &[("7.0.0", "Takes units in upper case.")],
    arguments: &[
        Argument::key("key", 0),
        FROM,
        BY,
        ORDER,
        COUNT,
        WITH[0],
        WITH[1],
        WITH[2],
    ],
    ..CommandRow::DEFAULT
};

const RADIUS: CommandRow = CommandRow {
    since: "3.2.10",
    history: &[
        ("6.2.0", "Takes ANY behind COUNT."),
        ("7.0.0", "Takes units in upper case."),
    ],
    ..WORDS
};

const STORING: Flags = Flags::WRITE.with(Flags::DENY_OOM).with(Flags::MOVABLE_KEYS);

const fn stored_behind(word: &'static str, from: i32) -> KeySpec {
    KeySpec {
        begin: Begin::Keyword(word, from),
        find: Find::Range {
            last: 0,
            step: 1,
            limit: 0,
        },
        flags: KeyFlags::OW.with(KeyFlags::UPDATE),
        notes: "",
    }
}

const fn replaced_by(replaced_by: &'static str) -> Option<Deprecation> {
    Some(Deprecation {
        since: "6.2.0",
        replaced_by,
    })
}

fn georadius_keys(args: Args<'_>) -> FoundKeys {
    options::keys(args, 6)
}

fn georadiusbymember_keys(args: Args<'_>) -> FoundKeys {
    options::keys(args, 5)
}

const fn given(form: Form, first: usize, may_store: bool) -> Given {
    Given {
        form,
        first,
        may_store,
    }
}

fn geosearch(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    run(cx, given(Form::Words, 2, false), 0)
}

fn geosearchstore(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    run(cx, given(Form::Words, 3, true), 1)
}

fn georadius(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    run(cx, given(Form::Coordinates, 2, true), 0)
}

fn georadius_ro(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    run(cx, given(Form::Coordinates, 2, false), 0)
}

fn georadiusbymember(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    run(cx, given(Form::Member, 2, true), 0)
}

fn georadiusbymember_ro(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    run(cx, given(Form::Member, 2, false), 0)
}

/// Searches in the key with the number `source`. The other one, if there is one, is where the result is stored.
fn run(cx: &mut Context<'_, '_>, given: Given, source: usize) -> Result<(), CommandError> {
    let collection = cx.unit.collection(cx.keys[source], Kind::SortedSet)?;
    let set = collection.map(SortedSetRef::from);
    let search = Search::parse(cx.args, given, set)?;
    let destination = search.stored.then(|| cx.keys[1 - source]);
    let (Some(set), Some(area)) = (set, search.area) else {
        match destination {
            Some(key) => store(cx, key, given.form, Built::Packed(Vec::new())),
            None => cx.reply.array(0),
        }
        return Ok(());
    };
    let mut hunt = Hunt::new(search, &area, set);
    if let Some(key) = destination {
        hunt.finish(set);
        let (limits, seed) = (cx.sorted_set_limits(), cx.unit.seed());
        let mut tally = Tally::new(seed);
        for hit in hunt.wanted() {
            let score = if search.stored_distances {
                hit.distance_m / area.unit_m
            } else {
                hit.score
            };
            tally.add(hunt.name(hit), score, |_, last| last);
        }
        store(cx, key, given.form, tally.ranking().into_built(limits));
        return Ok(());
    }
    if hunt.left() <= AT_ONCE_MAX {
        hunt.finish(set);
        hunt.reply_header(&mut cx.reply);
        for hit in hunt.wanted() {
            hunt.reply_hit(&mut cx.reply, hit);
        }
        return Ok(());
    }
    // What is looked for is more than what a packed set holds.
    let snapshot = collection.map(|found| found.to_built());
    if let Some(snapshot) = snapshot {
        cx.continue_with(Listing {
            snapshot,
            hunt,
            replied: None,
        });
    }
    Ok(())
}

fn store(cx: &mut Context<'_, '_>, key: Key<'_>, form: Form, built: Built) {
    let event = match form {
        Form::Words => "geosearchstore",
        Form::Coordinates | Form::Member => "georadiusstore",
    };
    cx.store_sorted_set(key, built, event);
}

/// A member that lies in the area.
#[derive(Clone, Debug)]
struct Hit {
    /// Its name among the names.
    name: Range<usize>,
    score: f64,
    distance_m: f64,
}

/// A search under way.
struct Hunt {
    search: Search,
    region: Region,
    unit_m: f64,
    /// The ranks that are still to be looked at.
    ranks: SmallVec<[Range<u64>; 9]>,
    /// More are not needed.
    most: usize,
    hits: Vec<Hit>,
    names: Vec<u8>,
}

impl Hunt {
    fn new(search: Search, area: &Area, set: SortedSetRef<'_>) -> Self {
        let ranks = area.cells().into_iter().map(|cell| {
            let (start, end) = cell.span();
            set.ranks_by_score(&ScoreRange {
                min: start as f64,
                min_excluded: false,
                max: end as f64,
                max_excluded: true,
            })
        });
        Self {
            search,
            region: Region::new(area),
            unit_m: area.unit_m,
            ranks: ranks.rev().collect(),
            most: if search.any { search.count } else { usize::MAX },
            hits: Vec::new(),
            names: Vec::new(),
        }
    }

    /// How many members are still to be looked at, at most.
    fn left(&self) -> u64 {
        self.ranks.iter().map(|ranks| ranks.end - ranks.start).sum()
    }

    /// Looks at some members. False if there is nothing more to look at.
    fn look(&mut self, set: SortedSetRef<'_>) -> bool {
        let Self {
            region,
            ranks,
            most,
            hits,
            names,
            ..
        } = self;
        let Some(next) = ranks.last_mut().filter(|_| hits.len() < *most) else {
            return false;
        };
        let chunk = next.start..next.end.min(next.start + CHUNK);
        next.start = chunk.end;
        if next.is_empty() {
            ranks.pop();
        }
        set.each(chunk, false, |member, score| {
            if hits.len() >= *most {
                return;
            }
            if let Some(distance_m) = region.distance_m(point_of(score)) {
                let start = names.len();
                names.extend_from_slice(member);
                hits.push(Hit {
                    name: start..names.len(),
                    score,
                    distance_m,
                });
            }
        });
        true
    }

    fn finish(&mut self, set: SortedSetRef<'_>) {
        while self.look(set) {}
        self.sort();
    }

    /// Puts what was found in order, what is equally far away as it was found.
    fn sort(&mut self) {
        let by_distance = |one: &Hit, other: &Hit| {
            let order = one.distance_m.partial_cmp(&other.distance_m);
            order.unwrap_or(Ordering::Equal)
        };
        match self.search.order {
            Order::AsFound => {}
            Order::NearestFirst => self.hits.sort_by(by_distance),
            Order::FarthestFirst => self.hits.sort_by(|one, other| by_distance(other, one)),
        }
    }

    fn wanted(&self) -> &[Hit] {
        let wanted = match self.search.count {
            0 => self.hits.len(),
            count => count.min(self.hits.len()),
        };
        &self.hits[..wanted]
    }

    fn name(&self, hit: &Hit) -> &[u8] {
        &self.names[hit.name.clone()]
    }

    fn reply_header(&self, reply: &mut Writer<'_>) {
        reply.array(self.wanted().len());
    }

    fn reply_hit(&self, reply: &mut Writer<'_>, hit: &Hit) {
        let with = self.search.with;
        let extras = usize::from(with.distance) + usize::from(with.cell) + usize::from(with.place);
        if extras > 0 {
            reply.array(1 + extras);
        }
        reply.bulk(self.name(hit));
        if with.distance {
            reply_distance(reply, hit.distance_m / self.unit_m);
        }
        if with.cell {
            reply.integer(hit.score as i64);
        }
        if with.place {
            reply_point(reply, point_of(hit.score));
        }
    }
}

/// A search in a large sorted set, and then its reply.
struct Listing {
    snapshot: Built,
    hunt: Hunt,
    /// How many have been written, once all are found.
    replied: Option<usize>,
}

impl Steps for Listing {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        let Some(replied) = &mut self.replied else {
            let set = SortedSetRef::from(self.snapshot.as_ref());
            while self.hunt.look(set) {
                budget.take(CHUNK * NS_PER_LOOK);
                if budget.left() == 0 {
                    return Progress::More;
                }
            }
            self.hunt.sort();
            budget.take(self.hunt.hits.len() as u64 * NS_PER_SORTED);
            self.hunt.reply_header(reply);
            self.replied = Some(0);
            return Progress::More;
        };
        let hits = self.hunt.wanted();
        while *replied < hits.len() && budget.left() > 0 {
            let hit = &hits[*replied];
            self.hunt.reply_hit(reply, hit);
            budget.take(NS_PER_REPLY + hit.name.len() as u64 / BYTES_PER_NS);
            *replied += 1;
        }
        if *replied < hits.len() {
            Progress::More
        } else {
            Progress::Done
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        match self.snapshot {
            Built::Large(collection) => vec![collection],
            Built::Packed(_) => Vec::new(),
        }
    }
}
