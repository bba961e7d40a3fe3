//! Nanoseconds per operation and bytes per member of members by key, against hashbrown (which is the standard library's hash set)
//! and a persistent hash set.
//!
//! `cargo bench -p weft-data --bench members -- [MEMBERS ...]`, for example `-- 1000 1000000`. All allocate from jemalloc, as the server
//! does, and hash with ahash. Bytes are what the allocator gave out.

use std::collections::HashSet;
use std::hint::black_box;
use std::time::Instant;

use tikv_jemalloc_ctl::{epoch, stats};
use weft_data::members::Members;

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

/// What is measured of each.
trait Keyed: Clone {
    const NAME: &'static str;
    /// Whether cloning one is no copy.
    const SNAPSHOTS: bool = true;
    fn new() -> Self;
    fn add(&mut self, key: &[u8]) -> bool;
    fn has(&self, key: &[u8]) -> bool;
    fn remove(&mut self, key: &[u8]) -> bool;
    /// A random one, removed: its length. None where it would take a walk.
    fn pop(&mut self, random: &mut fastrand::Rng) -> Option<usize>;
    /// The lengths of all keys.
    fn walk(&self) -> usize;
}

impl Keyed for Members {
    const NAME: &'static str = "members";

    fn new() -> Self {
        Members::new(1)
    }

    fn add(&mut self, key: &[u8]) -> bool {
        self.insert(key, &[]).replaced.is_none()
    }

    fn has(&self, key: &[u8]) -> bool {
        self.contains(key)
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        Members::remove(self, key)
    }

    fn pop(&mut self, random: &mut fastrand::Rng) -> Option<usize> {
        let handle = self.random(&mut |bound| random.u64(..bound))?;
        let len = self.key(handle).len();
        self.remove_handle(handle);
        Some(len)
    }

    fn walk(&self) -> usize {
        self.iter().map(|handle| self.key(handle).len()).sum()
    }
}

type Hashbrown = HashSet<Box<[u8]>, ahash::RandomState>;

impl Keyed for Hashbrown {
    const NAME: &'static str = "hashbrown";
    const SNAPSHOTS: bool = false;

    fn new() -> Self {
        HashSet::with_hasher(ahash::RandomState::with_seeds(1, 2, 3, 4))
    }

    fn add(&mut self, key: &[u8]) -> bool {
        // As with a server that does not know whether the member is there: no allocation if it is.
        !self.contains(key) && self.insert(key.into())
    }

    fn has(&self, key: &[u8]) -> bool {
        self.contains(key)
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        HashSet::remove(self, key)
    }

    fn pop(&mut self, _: &mut fastrand::Rng) -> Option<usize> {
        None
    }

    fn walk(&self) -> usize {
        self.iter().map(|key| key.len()).sum()
    }
}

type Persistent =
    imbl::GenericHashSet<Box<[u8]>, ahash::RandomState, imbl::shared_ptr::DefaultSharedPtr>;

impl Keyed for Persistent {
    const NAME: &'static str = "imbl";

    fn new() -> Self {
        Self::with_hasher(ahash::RandomState::with_seeds(1, 2, 3, 4))
    }

    fn add(&mut self, key: &[u8]) -> bool {
        !self.contains(key) && self.insert(key.into()).is_none()
    }

    fn has(&self, key: &[u8]) -> bool {
        self.contains(key)
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        Self::remove(self, key).is_some()
    }

    fn pop(&mut self, _: &mut fastrand::Rng) -> Option<usize> {
        None
    }

    fn walk(&self) -> usize {
        self.iter().map(|key| key.len()).sum()
    }
}

fn allocated() -> usize {
    epoch::advance().expect("jemalloc has statistics");
    stats::allocated::read().expect("jemalloc has statistics")
}

/// Nanoseconds of one of so many calls.
fn time(operations: usize, mut act: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..operations).for_each(&mut act);
    start.elapsed().as_nanos() as f64 / operations as f64
}

fn measure<S: Keyed>(members: usize) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut order: Vec<usize> = (0..members).collect();
    random.shuffle(&mut order);
    let places: Vec<usize> = (0..OPERATIONS).map(|_| random.usize(..members)).collect();
    let before = allocated();
    let mut set = S::new();
    let add = time(members, |number| {
        black_box(set.add(&name(order[number])));
    });
    let bytes = allocated().saturating_sub(before) as f64 / members as f64;
    let find = time(OPERATIONS, |number| {
        black_box(set.has(&name(places[number])));
    });
    let miss = time(OPERATIONS, |number| {
        black_box(set.has(&name(members + places[number])));
    });
    let walk = time(1, |_| {
        black_box(set.walk());
    }) / members as f64;
    let snapshot = S::SNAPSHOTS.then(|| {
        time(OPERATIONS / 16, |number| {
            let snapshot = set.clone();
            set.remove(&name(places[number]));
            set.add(&name(places[number]));
            drop(snapshot);
        })
    });
    // Half go one by one by name, the other half at random.
    let remove = time(members / 2, |number| {
        black_box(set.remove(&name(order[number])));
    });
    let pops = set.pop(&mut random).is_some();
    let pop = pops.then(|| {
        time(members / 4, |_| {
            black_box(set.pop(&mut random));
        })
    });
    let text = |number: Option<f64>| number.map_or("-".into(), |number| format!("{number:.0}"));
    println!(
        "{members:>9} {:>10} {add:>7.0} {find:>7.0} {miss:>7.0} {walk:>7.1} {remove:>7.0} {:>7} {:>14} {bytes:>8.0}",
        S::NAME,
        text(pop),
        text(snapshot),
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
        "{:>9} {:>10} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>14} {:>8}",
        "members", "", "add", "find", "miss", "walk", "remove", "pop", "snapshot, edit", "bytes"
    );
    for members in sizes {
        measure::<Members>(members);
        measure::<Hashbrown>(members);
        measure::<Persistent>(members);
    }
}
