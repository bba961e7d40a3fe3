//! Nanoseconds per operation and bytes per member of sorted sets, against the standard library's collections and persistent ones.
//!
//! `cargo bench -p weft-data --bench sorted_set -- [MEMBERS ...]`, for example `-- 1000 1000000`. All allocate from jemalloc, as the server
//! does. The standard ones are a hash map of scores and an ordered set, which finds no ranks and takes no snapshots.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use weft_data::collection::{Collection, CollectionRef, Draft};
use weft_data::sorted_set::{Limits, ScoreRange, SortedSetMut, SortedSetRef};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const OPERATIONS: usize = 1 << 19;

fn name(number: usize) -> [u8; 16] {
    let mut name = *b"member:000000000";
    let mut rest = number;
    for digit in name[7..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    name
}

/// What is measured of each. Scores are whole numbers.
trait Scored: Clone {
    const NAME: &'static str;
    /// Whether cloning one is no copy.
    const SNAPSHOTS: bool = true;
    fn new() -> Self;
    fn set(&mut self, member: &[u8], score: f64);
    fn score(&self, member: &[u8]) -> Option<f64>;
    /// None where it would take a walk.
    fn rank(&self, member: &[u8]) -> Option<u64>;
    /// The lengths of ten members from this score on together.
    fn ten_from(&self, score: f64) -> usize;
    fn pop_lowest(&mut self) -> usize;
    fn allocated_bytes(&self) -> Option<usize>;
}

#[derive(Clone)]
struct Large(Box<Collection>);

const LIMITS: Limits = Limits {
    entries: 128,
    value: 64,
};

impl Large {
    fn edit<R>(&mut self, act: impl FnOnce(&mut SortedSetMut<'_, '_>) -> R) -> R {
        let mut draft = Draft::Large(&mut self.0);
        act(&mut SortedSetMut::new(&mut draft, LIMITS, 1, 1))
    }

    fn look(&self) -> SortedSetRef<'_> {
        CollectionRef::Large(&self.0).into()
    }
}

impl Scored for Large {
    const NAME: &'static str = "sorted set";

    fn new() -> Self {
        let mut bytes = Vec::new();
        let mut draft = Draft::Packed(&mut bytes);
        let mut set = SortedSetMut::new(&mut draft, LIMITS, 1, 1);
        set.update(&[b'x'; 2000], |_| Some(-1.0));
        let Draft::Grown(collection) = draft else {
            unreachable!("it is too long to be packed")
        };
        Self(collection)
    }

    fn set(&mut self, member: &[u8], score: f64) {
        self.edit(|set| set.update(member, |_| Some(score)));
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        self.look().score(member)
    }

    fn rank(&self, member: &[u8]) -> Option<u64> {
        Some(self.look().rank(member)?.0)
    }

    fn ten_from(&self, score: f64) -> usize {
        let ranks = self.look().ranks_by_score(&ScoreRange {
            min: score,
            min_excluded: false,
            max: f64::INFINITY,
            max_excluded: false,
        });
        let mut bytes = 0;
        let ranks = ranks.start..ranks.start + 10;
        self.look()
            .each(ranks, false, |member, _| bytes += member.len());
        bytes
    }

    fn pop_lowest(&mut self) -> usize {
        let len = self.look().at(0).map_or(0, |(member, _)| member.len());
        self.edit(|set| set.remove_ranks(0..1, |_| {}));
        len
    }

    fn allocated_bytes(&self) -> Option<usize> {
        Some(self.0.allocated_bytes())
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Score(f64);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

type Name = Arc<[u8]>;

#[derive(Clone)]
struct Standard {
    scores: HashMap<Name, f64, ahash::RandomState>,
    order: BTreeSet<(Score, Name)>,
}

impl Scored for Standard {
    const NAME: &'static str = "standard";
    const SNAPSHOTS: bool = false;

    fn new() -> Self {
        Self {
            scores: HashMap::with_hasher(ahash::RandomState::with_seeds(1, 2, 3, 4)),
            order: BTreeSet::new(),
        }
    }

    fn set(&mut self, member: &[u8], score: f64) {
        let name: Name = member.into();
        if let Some(old) = self.scores.insert(name.clone(), score) {
            self.order.remove(&(Score(old), name.clone()));
        }
        self.order.insert((Score(score), name));
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    fn rank(&self, _: &[u8]) -> Option<u64> {
        None
    }

    fn ten_from(&self, score: f64) -> usize {
        let from = (Score(score), Name::from(&b""[..]));
        let ten = self.order.range(from..).take(10);
        ten.map(|(_, member)| member.len()).sum()
    }

    fn pop_lowest(&mut self) -> usize {
        let Some((_, member)) = self.order.pop_first() else {
            return 0;
        };
        self.scores.remove(&member);
        member.len()
    }

    fn allocated_bytes(&self) -> Option<usize> {
        None
    }
}

#[derive(Clone)]
struct Persistent {
    scores: imbl::HashMap<Name, f64>,
    order: imbl::OrdSet<(Score, Name)>,
}

impl Scored for Persistent {
    const NAME: &'static str = "imbl";

    fn new() -> Self {
        Self {
            scores: imbl::HashMap::new(),
            order: imbl::OrdSet::new(),
        }
    }

    fn set(&mut self, member: &[u8], score: f64) {
        let name: Name = member.into();
        if let Some(old) = self.scores.insert(name.clone(), score) {
            self.order.remove(&(Score(old), name.clone()));
        }
        self.order.insert((Score(score), name));
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    fn rank(&self, _: &[u8]) -> Option<u64> {
        None
    }

    fn ten_from(&self, score: f64) -> usize {
        let from = (Score(score), Name::from(&b""[..]));
        let ten = self.order.range(from..).take(10);
        ten.map(|(_, member)| member.len()).sum()
    }

    fn pop_lowest(&mut self) -> usize {
        let Some((_, member)) = self.order.remove_min() else {
            return 0;
        };
        self.scores.remove(&member);
        member.len()
    }

    fn allocated_bytes(&self) -> Option<usize> {
        None
    }
}

/// Nanoseconds of one of so many calls.
fn time(operations: usize, mut act: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..operations).for_each(&mut act);
    start.elapsed().as_nanos() as f64 / operations as f64
}

fn measure<S: Scored>(members: usize) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut order: Vec<usize> = (0..members).collect();
    random.shuffle(&mut order);
    let places: Vec<usize> = (0..OPERATIONS).map(|_| random.usize(..members)).collect();
    let mut set = S::new();
    let add = time(members, |number| {
        let number = order[number];
        set.set(&name(number), number as f64);
    });
    let bytes = set.allocated_bytes();
    let score = time(OPERATIONS, |number| {
        black_box(set.score(&name(places[number])));
    });
    let rank = set.rank(&name(0)).map(|_| {
        time(OPERATIONS, |number| {
            black_box(set.rank(&name(places[number])));
        })
    });
    let ten = time(OPERATIONS / 4, |number| {
        black_box(set.ten_from(places[number] as f64));
    });
    let change = time(OPERATIONS, |number| {
        set.set(
            &name(places[number]),
            places[OPERATIONS - 1 - number] as f64,
        );
    });
    let snapshot = S::SNAPSHOTS.then(|| {
        time(OPERATIONS / 16, |number| {
            let snapshot = set.clone();
            set.set(&name(places[number]), number as f64);
            drop(snapshot);
        })
    });
    let pop = time(members, |_| {
        black_box(set.pop_lowest());
    });
    let text = |number: Option<f64>| number.map_or("-".into(), |number| format!("{number:.0}"));
    println!(
        "{members:>9} {:>10} {add:>7.0} {score:>7.0} {:>7} {ten:>9.0} {change:>8.0} {pop:>7.0} {:>14} {:>8}",
        S::NAME,
        text(rank),
        text(snapshot),
        text(bytes.map(|bytes| bytes as f64 / members as f64)),
    );
}

fn main() {
    let sizes: Vec<usize> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let sizes = if sizes.is_empty() {
        vec![1000, 100_000, 1_000_000]
    } else {
        sizes
    };
    println!(
        "{:>9} {:>10} {:>7} {:>7} {:>7} {:>9} {:>8} {:>7} {:>14} {:>8}",
        "members",
        "",
        "add",
        "score",
        "rank",
        "10 of it",
        "change",
        "pop",
        "snapshot, edit",
        "bytes"
    );
    for members in sizes {
        measure::<Large>(members);
        measure::<Standard>(members);
        measure::<Persistent>(members);
    }
}
