//! The keyspace: all shards, their latches and gates.
//!
//! Owns the way to a shard (latch), to all of them (the gates), and what can be known without either. Does not know
//! commands, connections or the time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::gate::{Closed, Gate, GateGuard};
use crate::latch::{Held, LatchCell};
use crate::position::{Partition, Position};
use crate::shard::Shard;
use crate::spine::Spine;
use crate::table::{self, Census};

/// Free pages given to the system by one call of [`Keyspace::trim`].
const TRIM_PAGES: usize = 64;

/// The shape of a keyspace.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of shards, a power of two up to 65536.
    pub shards: usize,
    /// Number of databases.
    pub databases: usize,
    /// Number of gates in use from the start; every thread that touches shards needs one.
    pub workers: usize,
    /// The most there can be, see [`Keyspace::take_gate_into_use`].
    pub workers_max: usize,
    /// Secret of the hash, random per process.
    pub hash_seeds: [u64; 4],
}

/// Bytes held, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Slots of entries in use.
    pub entries: u64,
    /// Pages that hold those slots, free ones that stay resident included.
    pub pages: u64,
    /// Directories, buckets, page records.
    pub tables: u64,
    /// Long keys, ropes and large collections.
    pub external: u64,
    /// Replaced directories and segments that wait until nobody can be reading them.
    pub retired: u64,
}

impl Memory {
    pub(crate) fn plus(self, other: Memory) -> Memory {
        Memory {
            entries: self.entries + other.entries,
            pages: self.pages + other.pages,
            tables: self.tables + other.tables,
            external: self.external + other.external,
            retired: self.retired + other.retired,
        }
    }

    /// All bytes held; entries lie in the pages and are not counted twice.
    pub fn held(&self) -> u64 {
        self.pages + self.tables + self.external + self.retired
    }
}

/// A source of random numbers.
pub trait Rng {
    /// 64 random bits.
    fn next_u64(&mut self) -> u64;
}

impl<F: FnMut() -> u64> Rng for F {
    fn next_u64(&mut self) -> u64 {
        self()
    }
}

/// A latched shard; dropping it releases the latch.
pub type Latched<'a> = Held<'a, Shard>;

/// All keys of all databases.
pub struct Keyspace {
    shards: Box<[LatchCell<Shard>]>,
    spine: Arc<Spine>,
}

impl Keyspace {
    /// An empty keyspace.
    ///
    /// # Panics
    ///
    /// When `shards` is no power of two up to 65536.
    pub fn new(options: Options) -> Keyspace {
        Keyspace::with_position_mask(options, u64::MAX)
    }

    /// A keyspace whose positions have only the bits of `mask`: for tests that want them to collide.
    #[doc(hidden)]
    pub fn with_position_mask(options: Options, mask: u64) -> Keyspace {
        let Options {
            shards,
            databases,
            workers,
            workers_max,
            hash_seeds,
        } = options;
        let partition = Partition::new(shards, hash_seeds, mask);
        let spine = Arc::new(Spine::new(
            partition,
            shards,
            databases,
            workers,
            workers_max,
        ));
        let shards = (0..shards)
            .map(|index| LatchCell::new(Shard::new(Arc::clone(&spine), index)))
            .collect();
        Keyspace { shards, spine }
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Number of databases.
    pub fn databases(&self) -> usize {
        self.spine.databases
    }

    /// Number of gates in use.
    pub fn workers(&self) -> usize {
        self.spine.gates.workers()
    }

    /// Where a key belongs.
    #[inline]
    pub fn position(&self, key: &[u8]) -> Position {
        self.spine.partition.position(key)
    }

    /// The shard of a position.
    #[inline]
    pub fn shard_of(&self, position: Position) -> usize {
        self.spine.partition.shard_of(position)
    }

    /// The lowest position of a shard.
    pub fn shard_start(&self, shard: usize) -> Position {
        self.spine.partition.shard_start(shard)
    }

    /// A shard's latch, waiting for it.
    #[inline]
    pub fn latch(&self, shard: usize) -> Latched<'_> {
        self.shards[shard].acquire()
    }

    /// A shard's latch, if it is free.
    #[inline]
    pub fn try_latch(&self, shard: usize) -> Option<Latched<'_>> {
        self.shards[shard].try_acquire()
    }

    /// To be called by a worker that comes later, before it enters its gate for the first time.
    pub fn take_gate_into_use(&self, worker: usize) {
        self.spine.gates.take_into_use(worker);
    }

    /// A worker's gate.
    #[inline]
    pub fn gate(&self, worker: usize) -> Gate<'_> {
        self.spine.gates.gate(worker)
    }

    /// The keyspace alone: waits for its turn, closes all gates and waits until everybody is outside.
    ///
    /// # Panics
    ///
    /// When `worker` is inside its own gate.
    pub fn exclusive(&self, worker: usize) -> Exclusive<'_> {
        Exclusive {
            closed: self.spine.gates.close(worker),
            keyspace: self,
        }
    }

    /// Keys in a database, without latches: exact when nothing is being changed.
    pub fn key_count(&self, db: usize) -> usize {
        let keys = self.spine.keys.column(db);
        keys.map(|keys| keys.load(Relaxed)).sum()
    }

    /// Keys with a deadline in a database, without latches.
    pub fn deadline_count(&self, db: usize) -> usize {
        let keys = self.spine.deadlines.column(db);
        keys.map(|keys| keys.load(Relaxed)).sum()
    }

    /// Keys with fields that expire in a database, without latches.
    pub fn fielded_count(&self, db: usize) -> usize {
        let keys = self.spine.fielded.column(db);
        keys.map(|keys| keys.load(Relaxed)).sum()
    }

    /// Keys of a database in one shard, without its latch.
    pub fn shard_len(&self, shard: usize, db: usize) -> usize {
        self.spine.keys.at(shard, db).load(Relaxed)
    }

    /// The first shard from `from` on that has keys in a database.
    pub fn next_nonempty(&self, db: usize, from: usize) -> Option<usize> {
        self.spine.next_nonempty(db, from)
    }

    /// A random shard, each as likely as it has keys in a database; `None` when there are no keys.
    pub fn random_shard(&self, db: usize, rng: &mut impl Rng) -> Option<usize> {
        let total = self.key_count(db) as u128;
        let mut pick = ((u128::from(rng.next_u64()) * total) >> 64) as usize;
        for (shard, keys) in self.spine.keys.column(db).enumerate() {
            let keys = keys.load(Relaxed);
            if pick < keys {
                return Some(shard);
            }
            pick -= keys;
        }
        // The counts changed between the two looks.
        self.next_nonempty(db, 0)
    }

    /// Starts loading the bucket that an entry at `position` would be in, and the latch on the way to it.
    #[inline]
    pub fn prefetch_bucket(
        &self,
        inside: &GateGuard<'_>,
        db: usize,
        position: Position,
        to_write: bool,
    ) {
        let [latch, shard] = self.shards[self.shard_of(position)].lines();
        // Whoever comes writes the latch. The shard itself stays shared among those that only read.
        table::prefetch_to_write(latch);
        if to_write {
            table::prefetch_to_write(shard);
        } else {
            table::load_ahead(shard);
        }
        table::prefetch_bucket(&self.spine, inside, db, position);
    }

    /// Starts loading the entries that may be at `position`. Worth while once the bucket has arrived.
    #[inline]
    pub fn prefetch_entry(
        &self,
        inside: &GateGuard<'_>,
        db: usize,
        position: Position,
        to_write: bool,
    ) {
        table::prefetch_entry(&self.spine, inside, db, position, to_write);
    }

    /// The SCAN cursor for going on at `position`: at most 48 bits.
    pub fn cursor(&self, position: Position) -> u64 {
        self.spine.partition.cursor(position)
    }

    /// Shard and position of a SCAN cursor; `None` when it is larger than any cursor.
    pub fn cursor_position(&self, cursor: u64) -> Option<(usize, Position)> {
        let position = self.spine.partition.cursor_position(cursor)?;
        Some((self.shard_of(position), position))
    }

    /// Memory of all shards; takes each latch in turn.
    pub fn memory(&self) -> Memory {
        let retired = Memory {
            retired: self.spine.limbo.bytes() as u64,
            ..Memory::default()
        };
        (0..self.shards())
            .map(|shard| self.latch(shard).memory())
            .fold(retired, Memory::plus)
    }

    /// Memory of one database; takes each latch in turn.
    pub fn database_memory(&self, db: usize) -> Memory {
        (0..self.shards())
            .map(|shard| self.latch(shard).database_memory(db))
            .fold(Memory::default(), Memory::plus)
    }

    /// What is known of all entries of a database together; takes the latch of each shard with keys in turn.
    pub fn census(&self, db: usize) -> Census {
        let mut census = Census::default();
        let mut from = 0;
        while let Some(shard) = self.next_nonempty(db, from) {
            self.latch(shard).add_to_census(db, &mut census);
            from = shard + 1;
        }
        census
    }

    /// Bytes of memory in use that comes from the system and not from the general allocator, without latches.
    pub fn mapped_bytes(&self) -> u64 {
        self.spine.ground.used_bytes() as u64
    }

    /// Bytes of pages, tables and long values, without latches.
    pub fn held_bytes(&self) -> u64 {
        let held = self.spine.held.column(0).map(|held| held.load(Relaxed));
        (held.sum::<usize>() + self.spine.limbo.bytes()) as u64
    }

    /// Gives some of a shard's free pages to the system, without holding its latch meanwhile; bytes given. The caller
    /// is inside its gate, so that the pages cannot get another owner in between.
    pub fn trim(&self, inside: &GateGuard<'_>, shard: usize) -> usize {
        assert!(self.spine.gates.guards(inside), "a gate of this keyspace");
        let mut bytes = 0;
        if !self.spine.ground.small_pages() {
            return bytes;
        }
        for db in 0..self.databases() {
            let mut latched = self.latch(shard);
            let Some((_, table)) = latched.databases_mut().table_mut(db, 0) else {
                continue;
            };
            let arena_id = table.arena().id();
            let idle = table.arena_mut().trim(TRIM_PAGES);
            drop(latched);
            if idle.is_empty() {
                continue;
            }
            bytes += idle.discard(inside);
            let mut latched = self.latch(shard);
            let databases = latched.databases_mut();
            // FLUSHDB may have taken the table away, and SWAPDB may have moved it.
            for other in 0..self.databases() {
                if let Some((_, table)) = databases.table_mut(other, 0)
                    && table.arena().id() == arena_id
                {
                    table.arena_mut().trimmed(idle);
                    databases.publish(other);
                    break;
                }
            }
        }
        bytes
    }

    /// Makes huge pages of up to `most` regions of 2 MiB that are nearly full; bytes that became huge. Each takes some
    /// hundred microseconds and delays whoever touches it meanwhile: for a thread in the background, which needs no gate.
    /// Unless this is called no memory of entries is ever backed by huge pages.
    pub fn consolidate(&self, most: usize) -> usize {
        self.spine.ground.consolidate(most)
    }

    /// Frees replaced directories and segments that nobody can be reading any more.
    pub fn collect_retired(&self) {
        self.spine.limbo.collect();
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace")
            .field("shards", &self.shards())
            .field("databases", &self.databases())
            .field("workers", &self.workers())
            .finish_non_exhaustive()
    }
}

/// The keyspace alone; dropping it opens the gates.
pub struct Exclusive<'a> {
    closed: Closed<'a>,
    keyspace: &'a Keyspace,
}

impl Exclusive<'_> {
    /// A shard. Nobody else can hold its latch for long, so taking it costs nothing and keeps this sound also against
    /// threads that touch shards outside a gate.
    pub fn shard_mut(&self, shard: usize) -> Latched<'_> {
        self.keyspace.latch(shard)
    }

    /// All shards in order, one at a time.
    pub fn shards(&self) -> impl Iterator<Item = Latched<'_>> {
        (0..self.keyspace.shards()).map(|shard| self.shard_mut(shard))
    }

    /// The keyspace.
    pub fn keyspace(&self) -> &Keyspace {
        self.keyspace
    }
}

impl fmt::Debug for Exclusive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = &self.closed;
        f.debug_struct("Exclusive").finish_non_exhaustive()
    }
}
