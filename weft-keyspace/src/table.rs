//! The table of one database in one shard: positions to entries.
//!
//! Owns the directory, the segments, the stash and the arena with the entries. Extendible hashing: the bits of a position
//! after the shard's choose a directory slot, the next ones a bucket of its segment. A segment starts as one bucket,
//! doubles up to 64, then splits; it halves or merges with its buddy when sparse. So no operation ever touches more
//! than one segment's entries. Entries that crowd out of a sparsely filled segment (equal positions, which only
//! chance or a broken seed can produce) go to the stash, a tree by position: slower, never wrong.
//! Does not know capture, values' meaning or the time. The shard's latch is held for all of it except
//! [`prefetch_bucket`] and [`prefetch_entry`], which run inside a gate only.
//! Invariants: the root leads to this table's directory; what the root led to before is retired, not freed.

mod bucket;
mod census;
mod databases;
mod directory;
mod dissolve;
mod due;
mod growth;
mod occupied;
mod segment;
mod verify;
mod walk;

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub use census::{Census, LENGTH_CLASSES, Lengths};
pub(crate) use census::{Measure, TableCensus};
pub(crate) use databases::Databases;
pub(crate) use directory::Directory;
pub use dissolve::Dropped;
pub(crate) use dissolve::Remains;
pub(crate) use occupied::Occupied;

use crate::arena::{self, Arena};
use crate::entry::{Draft, Entry, RawEntry};
use crate::expiry::{Due16, Due32, tick};
use crate::gate::GateGuard;
use crate::keyspace::Memory;
use crate::position::Position;
use crate::spine::Spine;
use bucket::Bucket;
use directory::Slot;
use due::Round;
use segment::Segment;

/// What an entry's place in its bucket takes, bytes.
pub const PLACE_BYTES: usize = size_of::<Bucket>().div_ceil(bucket::SLOTS as usize);

/// What a table needs from its surroundings to change.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) spine: &'a Spine,
    pub(crate) shard: usize,
    /// Where the table's directory is published.
    pub(crate) root: &'a AtomicPtr<Directory>,
    /// The shard's time, in ticks.
    pub(crate) now: u64,
}

/// Where an entry was found: two words, so that it travels in registers. Valid until the table changes.
#[derive(Clone, Copy)]
struct Found {
    entry: RawEntry,
    handle: u32,
    place: Place,
}

/// Bucket and slot in the segment of the position, or the stash.
#[derive(Clone, Copy)]
struct Place(u32);

impl Place {
    const STASH: Place = Place(u32::MAX);

    #[inline]
    fn new(bucket: usize, slot: u32) -> Place {
        Place((bucket as u32) << 8 | slot)
    }

    /// Bucket and slot, unless it is the stash.
    #[inline]
    fn bucket(self) -> Option<(usize, u32)> {
        (self.0 != u32::MAX).then_some(((self.0 >> 8) as usize, self.0 & 0xff))
    }
}

/// One table.
pub(crate) struct Table {
    directory: NonNull<Directory>,
    arena: Arena,
    len: usize,
    deadlines: usize,
    /// Entries with fields that expire.
    fielded: usize,
    /// On lines of its own, since most writes leave it alone.
    census: Box<TableCensus>,
    /// Bytes outside the arena: long keys, ropes and large collections.
    external: usize,
    /// Lower bound of all deadlines, those of fields too, as a tick; `u64::MAX` when there are none.
    due: u64,
    /// Where expiry goes on, between two calls.
    round: Option<Round>,
    segments: usize,
    segment_bytes: usize,
    /// Segments that all bits of the directory are needed to identify.
    deepest: usize,
    stash: BTreeMap<u64, Vec<u32>>,
    stashed: usize,
    /// Bytes held as the spine knows them.
    held: usize,
    /// Counts or memory changed since [`Table::take_changed`].
    changed: bool,
}

// SAFETY: the table owns everything its pointers lead to.
unsafe impl Send for Table {}

impl Table {
    /// An empty table, published.
    pub(crate) fn new(context: Context<'_>) -> Table {
        let arena = Arena::new();
        let shard_bits = context.spine.partition.shard_bits();
        let directory = Directory::allocate(0, shard_bits, arena.map());
        let segment = Segment::allocate(0, &context.spine.ground);
        // SAFETY: just allocated, and not freed while in use here.
        let slots = unsafe { Directory::slots(directory) };
        directory::install(slots, (0, 1), 0, segment, false);
        context.root.store(directory.as_ptr(), Release);
        Table {
            directory,
            arena,
            len: 0,
            deadlines: 0,
            fielded: 0,
            census: Box::new(TableCensus::new()),
            external: 0,
            due: u64::MAX,
            round: None,
            segments: 1,
            segment_bytes: segment.bytes(),
            deepest: 1,
            stash: BTreeMap::new(),
            stashed: 0,
            held: 0,
            changed: true,
        }
    }

    /// Whether counts or memory changed since the last call.
    #[inline]
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::replace(&mut self.changed, false)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Entries with a deadline.
    pub(crate) fn deadlines(&self) -> usize {
        self.deadlines
    }

    /// What is known of all entries together.
    pub(crate) fn census(&self) -> &TableCensus {
        &self.census
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    pub(crate) fn arena_mut(&mut self) -> &mut Arena {
        self.changed = true;
        &mut self.arena
    }

    /// Bytes of directory, segments, stash and page records.
    fn table_bytes(&self) -> usize {
        /// About what a tree's node takes per entry, with the vector behind it.
        const PER_STASHED: usize = 64;
        size_of::<Table>()
            + self.segment_bytes
            + self.directory().bytes()
            + self.arena.record_bytes()
            + self.stashed * PER_STASHED
    }

    /// What the table and its entries take.
    pub(crate) fn memory(&self) -> Memory {
        Memory {
            entries: self.arena.entry_bytes() as u64,
            pages: self.arena.page_bytes() as u64,
            tables: self.table_bytes() as u64,
            external: self.external as u64,
            retired: 0,
        }
    }

    /// The entry with this key.
    #[inline]
    pub(crate) fn get(&self, position: Position, key: &[u8]) -> Option<Entry<'_>> {
        // SAFETY: the borrow of the table bounds the result, and only methods that borrow it uniquely change entries.
        self.locate(position, key)
            .map(|found| unsafe { Entry::new(found.entry) })
    }

    /// The entry with this key, to be changed.
    #[inline]
    pub(crate) fn occupied(&mut self, position: Position, key: &[u8]) -> Option<Occupied<'_>> {
        let found = self.locate(position, key)?;
        Some(Occupied::new(self, position, found))
    }

    /// Adds an entry whose key is not in the table.
    pub(crate) fn insert(&mut self, context: Context<'_>, position: Position, draft: Draft<'_>) {
        let deadline = draft.deadline;
        self.census
            .came(census::Measure::of_payload(&draft.value), deadline);
        let handle = self.store(context, draft);
        let entry = self.entry(handle);
        self.external += entry.external_bytes();
        self.len += 1;
        self.changed = true;
        self.deadlines += usize::from(deadline.is_some());
        self.fielded += usize::from(entry.fields_due().is_some());
        let due = entry.due();
        self.place(context, position, handle, Due16::of(due, context.now));
        if let Some(due) = due {
            self.lower_ranges(context, position, due);
        }
    }

    #[inline]
    fn locate(&self, position: Position, key: &[u8]) -> Option<Found> {
        let directory = self.directory();
        let slot = &self.slots()[directory.index(position)];
        let found = search(directory, slot, position, key);
        if found.is_none() && slot.has_stashed() {
            return self.locate_stashed(position, key);
        }
        found
    }

    #[cold]
    fn locate_stashed(&self, position: Position, key: &[u8]) -> Option<Found> {
        let handles = self.stash.get(&position.bits())?;
        handles.iter().find_map(|&handle| {
            let entry = self.entry(handle);
            // SAFETY: live while the table is borrowed.
            let found = unsafe { entry.key() } == key;
            found.then_some(Found {
                handle,
                entry,
                place: Place::STASH,
            })
        })
    }

    /// The entry behind a handle of this table.
    #[inline]
    fn entry(&self, handle: u32) -> RawEntry {
        // SAFETY: handles in buckets and stash lead to live entries, and the latch is held.
        unsafe { RawEntry::new(self.arena.address(handle)) }
    }

    /// A look at the entry behind a handle of this table.
    fn look_at(&self, handle: u32) -> Entry<'_> {
        // SAFETY: live while the table is borrowed.
        unsafe { Entry::new(self.entry(handle)) }
    }

    /// Writes an entry into a new slot.
    fn store(&mut self, context: Context<'_>, draft: Draft<'_>) -> u32 {
        let handle = self.arena.allocate(draft.size(), &context.spine.ground);
        if let Some(block) = self.arena.take_outgrown() {
            self.directory().map.store(self.arena.map(), Release);
            context.spine.limbo.retire(block);
        }
        // SAFETY: the slot is fresh and large enough.
        unsafe { RawEntry::write(self.arena.address(handle), draft) };
        handle
    }

    /// Enters a handle, making room as needed.
    fn place(&mut self, context: Context<'_>, position: Position, handle: u32, due: Due16) {
        loop {
            let directory = self.directory();
            let index = directory.index(position);
            let slots = self.slots();
            let slot = &slots[index];
            let segment = slot.segment();
            let home = segment.home(position, directory.shard_bits() + slot.depth());
            if segment.place(home, position.tag(), handle, due, context.now) {
                let (first, _) = directory.span(index, slot.depth());
                slots[first].set_count(slots[first].count() + 1);
                return;
            }
            if !self.grow(context, index) {
                self.stash(position, handle);
                let depth = self.slots()[index].depth();
                let span = self.directory().span(index, depth);
                directory::mark_stashed(self.slots(), span, true);
                return;
            }
        }
    }

    fn stash(&mut self, position: Position, handle: u32) {
        self.stash.entry(position.bits()).or_default().push(handle);
        self.stashed += 1;
    }

    fn unstash(&mut self, position: Position, handle: u32) {
        let handles = self.stash.get_mut(&position.bits()).expect("found there");
        let at = handles.iter().position(|&stashed| stashed == handle);
        handles.swap_remove(at.expect("found there"));
        if handles.is_empty() {
            self.stash.remove(&position.bits());
        }
        self.stashed -= 1;
    }

    /// Lowers the bounds of the segment and of the table.
    fn lower_ranges(&mut self, context: Context<'_>, position: Position, deadline: u64) {
        // Not later than the bucket's bound: who looks at a bucket again in time must come by here.
        let tick = Due16::reach(tick(deadline), context.now);
        self.due = self.due.min(tick);
        let directory = self.directory();
        let index = directory.index(position);
        let slots = self.slots();
        let (first, _) = directory.span(index, slots[index].depth());
        let due = Due32::new(tick, context.now);
        slots[first].set_due(slots[first].due().earlier(due, context.now));
    }

    #[inline]
    fn directory<'a>(&self) -> &'a Directory {
        // SAFETY: freed only after this table let go of it; callers do not keep it beyond that.
        unsafe { self.directory.as_ref() }
    }

    #[inline]
    fn slots<'a>(&self) -> &'a [Slot] {
        // SAFETY: freed only after this table let go of it; callers do not keep it beyond that.
        unsafe { Directory::slots(self.directory) }
    }

    fn segment_at(&self, position: Position) -> Segment {
        self.slots()[self.directory().index(position)].segment()
    }

    /// The position of an entry, hashed anew unless the entry keeps it.
    fn position_of(context: Context<'_>, entry: RawEntry) -> Position {
        entry.stored_position().unwrap_or_else(|| {
            // SAFETY: live while the latch is held.
            context.spine.partition.position(unsafe { entry.key() })
        })
    }
}

/// The entry with this key in the table of a root, unless it is stashed: then only the table can tell. The outer `None`
/// means just that.
///
/// # Safety
///
/// The latch of the root's shard is held for `'a`, and the table is not changed.
#[inline]
pub(crate) unsafe fn get_by_root<'a>(
    root: &AtomicPtr<Directory>,
    position: Position,
    key: &[u8],
) -> Option<Option<Entry<'a>>> {
    let Some(start) = NonNull::new(root.load(Relaxed)) else {
        return Some(None);
    };
    // SAFETY: a root leads to a live directory.
    let directory: &'a Directory = unsafe { start.as_ref() };
    // SAFETY: as above.
    let slots = unsafe { Directory::slots(start) };
    let slot = &slots[directory.index(position)];
    match search(directory, slot, position, key) {
        // SAFETY: by the caller's word.
        Some(found) => Some(Some(unsafe { Entry::new(found.entry) })),
        None if slot.has_stashed() => None,
        None => Some(None),
    }
}

/// The entry with this key in the segment of a slot.
#[inline]
fn search(directory: &Directory, slot: &Slot, position: Position, key: &[u8]) -> Option<Found> {
    let map = directory.map.load(Relaxed);
    let segment = slot.segment();
    let buckets = segment.buckets();
    let home = segment.home(position, directory.shard_bits() + slot.depth());
    let look = |number: usize, foreign: bool| {
        let bucket = &buckets[number];
        let matches = bucket.matches(position.tag());
        let candidates = if foreign {
            matches.and(bucket.displaced())
        } else {
            matches
        };
        for slot in candidates {
            let handle = bucket.handle(slot);
            // SAFETY: the map is the current one, and occupied slots hold handles of this table's arena.
            let address = unsafe { arena::address(map, handle) };
            // SAFETY: the entry is live, and the latch is held.
            let entry = unsafe { RawEntry::new(address) };
            // SAFETY: live for the comparison.
            if unsafe { entry.key() } == key {
                return Some(Found {
                    handle,
                    entry,
                    place: Place::new(number, slot),
                });
            }
        }
        None
    };
    look(home, false).or_else(|| {
        if buckets[home].away() > 0 {
            look(segment.next(home), true)
        } else {
            None
        }
    })
}

/// The home bucket of a position, as far as can be told without the latch.
#[inline]
fn bucket_hint<'a>(
    spine: &Spine,
    inside: &'a GateGuard<'_>,
    db: usize,
    position: Position,
) -> Option<(&'a Directory, Segment, usize)> {
    assert!(spine.gates.guards(inside), "a gate of another keyspace");
    let root = spine.roots.at(spine.partition.shard_of(position), db);
    let start = NonNull::new(root.load(Acquire))?;
    // SAFETY: what a root led to while the caller was inside is not freed before it leaves.
    let directory: &'a Directory = unsafe { start.as_ref() };
    // SAFETY: as above.
    let slots = unsafe { Directory::slots(start) };
    let slot = &slots[directory.index(position)];
    let segment = slot.segment();
    let home = segment.home(position, directory.shard_bits() + slot.depth());
    Some((directory, segment, home))
}

/// Starts loading the bucket that a position's entry would be in.
#[inline]
pub(crate) fn prefetch_bucket(
    spine: &Spine,
    inside: &GateGuard<'_>,
    db: usize,
    position: Position,
) {
    if let Some((_, segment, home)) = bucket_hint(spine, inside, db, position) {
        load_ahead(std::ptr::from_ref::<Bucket>(&segment.buckets()[home]).cast());
    }
}

/// Starts loading the entries that a position's tag matches.
#[inline]
pub(crate) fn prefetch_entry(
    spine: &Spine,
    inside: &GateGuard<'_>,
    db: usize,
    position: Position,
    to_write: bool,
) {
    let prefetch = if to_write {
        prefetch_to_write
    } else {
        load_ahead
    };
    let Some((directory, segment, home)) = bucket_hint(spine, inside, db, position) else {
        return;
    };
    let map = arena::published_map(&directory.map);
    let buckets = segment.buckets();
    let look = |bucket: &Bucket| {
        let mut any = false;
        for slot in bucket.matches(position.tag()) {
            // SAFETY: maps are retired like directories, so this one is not freed before the caller leaves.
            let address = unsafe { arena::address_hint(map, bucket.handle(slot)) };
            prefetch(address);
            prefetch(address.wrapping_add(64));
            prefetch(address.wrapping_add(128));
            any = true;
        }
        any
    };
    if !look(&buckets[home]) && buckets[home].away() > 0 {
        look(&buckets[segment.next(home)]);
    }
}

/// Asks the processor for a cache line that is going to be written, so that it need not be fetched from another processor
/// a second time for that.
#[inline]
pub(crate) fn prefetch_to_write(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        // There is an intrinsic, but it stands for the ordinary prefetch unless a target feature is on. Processors without
        // the instruction take it for a no-op.
        // SAFETY: a prefetch never faults and has no effect that a program can see.
        unsafe {
            core::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: a prefetch never faults and has no effect that a program can see.
        unsafe {
            core::arch::asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Asks the processor for a cache line; any address is allowed.
#[inline]
pub fn load_ahead(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults and has no effect that a program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: a prefetch never faults and has no effect that a program can see.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
