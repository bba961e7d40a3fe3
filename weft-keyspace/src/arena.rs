//! Where entries live: pages of 8-byte size classes behind 32-bit handles.
//!
//! Owns the entries' memory of one table, its free lists and its accounting. Does not know what an entry is, and takes
//! no lock: whoever holds the shard's latch is alone here. A handle counts 8-byte units: the upper bits name a chunk
//! (see [`Ground`]), the lower [`UNIT_BITS`] the unit in it; chunk 0 does not exist, so that 0 means "none".
//! Classes up to 512 bytes live in pages of 4 KiB, larger ones in runs of four pages; a page holds one class. Free
//! slots are linked through their first two bytes, by unit number within the page. The first pages of an arena are
//! mixed: they hold slots of all sizes (see [`mixed`]).
//!
//! A directory of chunks instead of one reservation per shard: 512 reservations of 32 GiB would not fit the 39-bit
//! address space of many aarch64 kernels nor any RLIMIT_AS, and the directory costs one load from a line that stays
//! cached.
//! Invariants: memory of a chunk is never unmapped while the arena lives; a page in no list is full or being trimmed.

pub(crate) mod ground;
mod mixed;
#[cfg(all(test, not(loom)))]
mod tests;

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use crate::gate::GateGuard;
use crate::gate::limbo::Block;
use ground::{CHUNK_BYTES, Chunk, Ground, PAGE_BYTES, discard};
use mixed::{MIXED, Mixed};

/// Bits of a handle that number the unit within its chunk.
pub(crate) const UNIT_BITS: u32 = (CHUNK_BYTES / UNIT).trailing_zeros();
/// What handles count, bytes.
pub(crate) const UNIT: usize = 8;
/// The largest slot, bytes.
pub(crate) const SLOT_MAX: usize = 2048;

const UNIT_MASK: u32 = (1 << UNIT_BITS) - 1;
const PAGE_UNITS: u32 = (PAGE_BYTES / UNIT) as u32;
const PAGE_UNIT_BITS: u32 = PAGE_UNITS.trailing_zeros();
/// Pages of a run.
const RUN_PAGES: u32 = 4;
const CHUNK_RUNS: u32 = (CHUNK_BYTES / PAGE_BYTES) as u32 / RUN_PAGES;
const CHUNK_PAGES: u32 = CHUNK_RUNS * RUN_PAGES;
/// Classes up to this many units live in single pages: 512 bytes, eight to a page.
const SMALL_UNITS: u16 = 64;
/// Free pages that stay resident when the rest goes back to the system.
const RESERVE_PAGES: usize = 2;
/// The end of a list of pages or runs.
const NONE: u32 = u32::MAX;

/// What stands behind handles: chunk number to address. Slot 0, which is no chunk, holds the capacity.
pub(crate) type ChunkMap = AtomicPtr<u8>;

/// One slot of a map.
///
/// # Safety
///
/// `map` is a map that is not freed for `'a`, and `number` is less than its capacity.
#[inline]
unsafe fn map_slot<'a>(map: *const ChunkMap, number: usize) -> &'a ChunkMap {
    // SAFETY: less than the capacity.
    let slot = unsafe { map.add(number) };
    // SAFETY: within the map, all of whose slots are initialised.
    unsafe { &*slot }
}

/// The address of `handle`, by way of `map`.
///
/// # Safety
///
/// `map` is the current map of the arena that gave out `handle`.
#[inline]
pub(crate) unsafe fn address(map: *const ChunkMap, handle: u32) -> NonNull<u8> {
    // SAFETY: the arena gave out the handle, so its chunk has a slot in the map.
    let slot = unsafe { map_slot(map, (handle >> UNIT_BITS) as usize) };
    let offset = (handle & UNIT_MASK) as usize * UNIT;
    // SAFETY: the slot holds the address of a whole chunk, and the offset is less than that.
    let address = unsafe { slot.load(Relaxed).add(offset) };
    // SAFETY: chunk addresses are never null.
    unsafe { NonNull::new_unchecked(address) }
}

/// Where `handle` may lie, for a prefetch; null when this map does not reach that far. `handle` may be stale.
///
/// # Safety
///
/// `map` was a map of the arena and has not been freed.
#[inline]
pub(crate) unsafe fn address_hint(map: *const ChunkMap, handle: u32) -> *const u8 {
    let chunk = (handle >> UNIT_BITS) as usize;
    // SAFETY: slot 0 exists in every map.
    let capacity = unsafe { map_slot(map, 0) }.load(Relaxed).addr();
    if chunk == 0 || chunk >= capacity {
        return ptr::null();
    }
    // SAFETY: within the capacity.
    let slot = unsafe { map_slot(map, chunk) };
    slot.load(Relaxed)
        .wrapping_add((handle & UNIT_MASK) as usize * UNIT)
}

/// One page of 4 KiB, or the first page of a run.
#[derive(Clone, Copy)]
struct Page {
    /// Slot size in units, or [`MIXED`]; 0 while free. The three other pages of a run repeat it.
    class: u16,
    /// Slots in use; of a mixed page, units.
    live: u16,
    /// First free slot, as its unit number within the page plus 1; 0 when none.
    free: u16,
    /// Units given out at least once; what lies behind them is untouched.
    bump: u16,
    /// Neighbours in the list of pages of this class with room.
    previous: u32,
    next: u32,
}

/// Four pages, used singly or as one run.
#[derive(Clone, Copy)]
struct Run {
    /// Bit per page: free.
    free: u8,
    /// Bit per page: free, but the system still backs it.
    resident: u8,
    previous: u32,
    next: u32,
}

const ALL: u8 = 0b1111;

#[derive(Clone, Copy)]
struct Class {
    /// First page with room.
    head: u32,
    /// Pages of this class, full ones too.
    pages: u32,
}

/// The memory of one table's entries.
pub(crate) struct Arena {
    /// Unlike that of any other arena of this process.
    id: u64,
    map: NonNull<ChunkMap>,
    map_capacity: usize,
    /// The map before the current one, until the current one is published.
    outgrown: Option<Block>,
    /// What the map leads to, from number 1 on.
    chunks: Vec<Chunk>,
    /// Runs given out at least once; those of the chunks behind are untouched.
    fresh: u32,
    pages: Vec<Page>,
    runs: Vec<Run>,
    classes: Vec<Class>,
    mixed: Mixed,
    /// Runs with some free pages, and runs with four.
    some_free: u32,
    all_free: u32,
    resident_free: usize,
    entry_bytes: usize,
    page_bytes: usize,
}

// SAFETY: the arena owns what its pointers lead to.
unsafe impl Send for Arena {}

impl Arena {
    pub(crate) fn new() -> Arena {
        let capacity = 2;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arena {
            id: NEXT.fetch_add(1, Relaxed),
            map: new_map(capacity),
            map_capacity: capacity,
            outgrown: None,
            chunks: Vec::new(),
            fresh: 0,
            pages: Vec::new(),
            runs: Vec::new(),
            classes: Vec::new(),
            mixed: Mixed::new(),
            some_free: NONE,
            all_free: NONE,
            resident_free: 0,
            entry_bytes: 0,
            page_bytes: 0,
        }
    }

    /// Tells arenas apart.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The map for prefetchers and look-ups; changes only in [`Arena::allocate`].
    pub(crate) fn map(&self) -> *mut ChunkMap {
        self.map.as_ptr()
    }

    /// The map that the current one replaced, to be retired once the current one is published.
    pub(crate) fn take_outgrown(&mut self) -> Option<Block> {
        self.outgrown.take()
    }

    /// Bytes of the slots in use.
    pub(crate) fn entry_bytes(&self) -> usize {
        self.entry_bytes
    }

    /// Bytes of the pages in use and of free ones that the system still backs.
    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Bytes of records about pages.
    pub(crate) fn record_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Page>()
            + self.runs.capacity() * size_of::<Run>()
            + self.classes.capacity() * size_of::<Class>()
            + self.mixed.record_bytes()
            + self.chunks.capacity() * size_of::<Chunk>()
            + self.map_capacity * size_of::<ChunkMap>()
    }

    #[inline]
    pub(crate) fn address(&self, handle: u32) -> NonNull<u8> {
        debug_assert_ne!(self.pages[page_of(handle)].class, 0, "a live handle");
        // SAFETY: this is the arena's map; handles come from this arena.
        unsafe { address(self.map.as_ptr(), handle) }
    }

    /// A slot of at least `bytes` (1 to [`SLOT_MAX`]), its content undefined.
    pub(crate) fn allocate(&mut self, bytes: usize, ground: &Ground) -> u32 {
        let units = bytes.div_ceil(UNIT) as u16;
        let mut class = units;
        let mut head = self.head_of(class);
        if head == NONE {
            if units <= SMALL_UNITS
                && let Some(handle) = self.allocate_mixed(units, ground)
            {
                return handle;
            }
            self.add_classes(units);
            class = self.class_for(units);
            head = self.head_of(class);
        }
        if head == NONE {
            head = self.new_page(class, ground);
            self.link_page(head);
        }
        let page = &mut self.pages[head as usize];
        let unit = if page.free != 0 {
            let unit = page.free - 1;
            let handle = handle_of(head, u32::from(unit));
            // SAFETY: this is the arena's map, and the page is one of its pages.
            let slot = unsafe { address(self.map.as_ptr(), handle) };
            // SAFETY: a free slot holds its successor in its first two bytes, and slots are 8-byte aligned.
            page.free = unsafe { slot.cast::<u16>().read() };
            unit
        } else {
            let unit = page.bump;
            page.bump += class;
            unit
        };
        page.live += 1;
        let full = page.free == 0 && page.bump + class > page_units(class);
        if full {
            self.unlink_page(head);
        }
        self.entry_bytes += class as usize * UNIT;
        handle_of(head, u32::from(unit))
    }

    /// Takes back a slot that was allocated for so many bytes, or for as many units at least.
    pub(crate) fn free(&mut self, handle: u32, bytes: usize) {
        let mut index = page_of(handle);
        let class = self.pages[index].class;
        if class == MIXED {
            return self.free_mixed(handle, bytes.div_ceil(UNIT) as u16);
        }
        if class > SMALL_UNITS {
            index &= !(RUN_PAGES as usize - 1);
        }
        let slot = self.address(handle).cast::<u16>();
        let page = &mut self.pages[index];
        debug_assert!(page.live > 0, "a slot in use");
        let was_full = page.free == 0 && page.bump + class > page_units(class);
        // SAFETY: the slot was in use, is at least 8 bytes and nobody refers to it any more.
        unsafe { slot.write(page.free) };
        let first_unit = (index as u32) << PAGE_UNIT_BITS;
        page.free = (handle_units(handle) - first_unit) as u16 + 1;
        page.live -= 1;
        let empty = page.live == 0;
        self.entry_bytes -= class as usize * UNIT;
        if was_full && !empty {
            self.link_page(index as u32);
        } else if empty {
            if !was_full {
                self.unlink_page(index as u32);
            }
            self.release_page(index as u32);
        }
    }

    /// Takes up to `most` free pages that the system backs out of use, so that they can be given to the system without
    /// the latch. [`Arena::trimmed`] brings them back.
    pub(crate) fn trim(&mut self, most: usize) -> IdlePages {
        let mut idle = IdlePages(Vec::new());
        let surplus = self.resident_free.saturating_sub(RESERVE_PAGES);
        if surplus == 0 {
            return idle;
        }
        let most = most.min(surplus);
        for list in [self.all_free, self.some_free] {
            let mut run = list;
            while run != NONE && idle.0.len() < most {
                let next = self.runs[run as usize].next;
                for page in 0..RUN_PAGES {
                    let bit = 1 << page;
                    if self.runs[run as usize].resident & bit != 0 && idle.0.len() < most {
                        self.mark_used(run, bit);
                        let index = run * RUN_PAGES + page;
                        idle.0.push((index, self.page_address(index)));
                    }
                }
                run = next;
            }
        }
        idle
    }

    /// The pages that [`Arena::trim`] took are no longer backed.
    pub(crate) fn trimmed(&mut self, pages: IdlePages) {
        for (index, _) in pages.0 {
            self.page_bytes -= PAGE_BYTES;
            self.chunks[(index / CHUNK_PAGES) as usize].unuse_pages(1);
            self.mark_free(index / RUN_PAGES, 1 << (index % RUN_PAGES), false);
        }
    }

    /// Gives up to `most` chunks back; true when there are none left.
    ///
    /// # Safety
    ///
    /// Nothing in the arena is used any more, and the chunks came from `ground`.
    pub(crate) unsafe fn give_back(&mut self, ground: &Ground, most: usize) -> bool {
        for chunk in self.chunks.drain(self.chunks.len().saturating_sub(most)..) {
            // SAFETY: by the caller's word.
            unsafe { ground.give_back(chunk) };
        }
        self.chunks.is_empty()
    }

    /// The map, to be freed after the chunks.
    pub(crate) fn map_block(&self) -> Block {
        Block::Map(self.map, self.map_capacity)
    }

    /// Checks that lists, records and counts agree: for tests.
    pub(crate) fn verify(&self) {
        let (mut entry_bytes, mut page_bytes, mut resident) = (0, 0, 0);
        let mut pages_of = vec![0; self.classes.len()];
        for (number, run) in self.runs.iter().enumerate() {
            assert_eq!(run.resident & !run.free, 0);
            resident += run.resident.count_ones() as usize;
            page_bytes += run.resident.count_ones() as usize * PAGE_BYTES;
            for page in 0..RUN_PAGES {
                let record = &self.pages[number * RUN_PAGES as usize + page as usize];
                let is_free = run.free >> page & 1 != 0;
                assert!(!is_free || record.class == 0);
                page_bytes += if is_free { 0 } else { PAGE_BYTES };
                if record.class == MIXED {
                    entry_bytes += usize::from(record.live) * UNIT;
                } else if record.class != 0 && (record.class <= SMALL_UNITS || page == 0) {
                    assert!(record.live > 0, "empty pages are free");
                    entry_bytes += usize::from(record.live) * usize::from(record.class) * UNIT;
                    pages_of[usize::from(record.class)] += 1;
                }
            }
        }
        assert_eq!(resident, self.resident_free);
        assert_eq!(
            (entry_bytes, page_bytes),
            (self.entry_bytes, self.page_bytes)
        );
        for (class, (record, pages)) in self.classes.iter().zip(pages_of).enumerate() {
            assert_eq!(record.pages, pages);
            let (mut page, mut previous) = (record.head, NONE);
            while page != NONE {
                let entry = &self.pages[page as usize];
                assert_eq!(
                    (usize::from(entry.class), entry.previous),
                    (class, previous)
                );
                let room = page_units(entry.class) / entry.class;
                assert!(entry.live < room, "full pages are in no list");
                (previous, page) = (page, entry.next);
            }
        }
        self.verify_mixed();
    }

    /// The first page of a class that has room.
    #[inline]
    fn head_of(&self, class: u16) -> u32 {
        self.classes
            .get(usize::from(class))
            .map_or(NONE, |class| class.head)
    }

    /// Makes records for all classes up to this one.
    fn add_classes(&mut self, last: u16) {
        let needed = last as usize + 1;
        if self.classes.len() < needed {
            self.classes.reserve_exact(needed - self.classes.len());
            let blank = Class {
                head: NONE,
                pages: 0,
            };
            self.classes.resize(needed, blank);
        }
    }

    /// The class to take a slot of `units` from: its own, or a slightly larger one with room while this arena is small
    /// in it. Otherwise values of many sizes would each hold a page of their own in each of hundreds of shards.
    fn class_for(&self, units: u16) -> u16 {
        let own = self.classes[units as usize];
        if own.head != NONE || own.pages >= 4 {
            return units;
        }
        let limit = (units + units / 8).min(if units <= SMALL_UNITS {
            SMALL_UNITS
        } else {
            u16::MAX
        });
        (units + 1..=limit)
            .take_while(|&class| (class as usize) < self.classes.len())
            .find(|&class| self.classes[class as usize].head != NONE)
            .unwrap_or(units)
    }

    /// Makes a page of `class`, which is in no list yet.
    #[cold]
    fn new_page(&mut self, class: u16, ground: &Ground) -> u32 {
        let (first, count) = if is_single(class) {
            let run = if self.some_free != NONE {
                self.some_free
            } else if self.all_free != NONE {
                self.all_free
            } else {
                self.fresh_run(ground)
            };
            // A page the system backs already, if there is one.
            let Run { free, resident, .. } = self.runs[run as usize];
            let candidates = if resident != 0 { resident } else { free };
            let page = candidates.trailing_zeros();
            self.mark_used(run, 1 << page);
            if resident == 0 {
                self.come_into_use(run, 1, ground);
            }
            (run * RUN_PAGES + page, 1)
        } else {
            let run = if self.all_free != NONE {
                self.all_free
            } else {
                self.fresh_run(ground)
            };
            let backed = self.runs[run as usize].resident.count_ones();
            self.mark_used(run, ALL);
            self.come_into_use(run, RUN_PAGES - backed, ground);
            (run * RUN_PAGES, RUN_PAGES)
        };
        for index in first..first + count {
            self.pages[index as usize] = Page {
                class,
                live: 0,
                free: 0,
                bump: 0,
                previous: NONE,
                next: NONE,
            };
        }
        *self.page_count(class) += 1;
        first
    }

    /// How many pages there are of this class.
    fn page_count(&mut self, class: u16) -> &mut u32 {
        if class == MIXED {
            &mut self.mixed.pages
        } else {
            &mut self.classes[class as usize].pages
        }
    }

    /// Counts pages of a run that the system will have to back from now on.
    fn come_into_use(&mut self, run: u32, count: u32, ground: &Ground) {
        self.page_bytes += count as usize * PAGE_BYTES;
        self.chunks[(run / CHUNK_RUNS) as usize].use_pages(count, ground);
    }

    /// Gives an empty page, which is in no list, back to its run.
    fn release_page(&mut self, first: u32) {
        let class = self.pages[first as usize].class;
        let count = if is_single(class) { 1 } else { RUN_PAGES };
        for index in first..first + count {
            self.pages[index as usize].class = 0;
        }
        *self.page_count(class) -= 1;
        let bits = if count == 1 {
            1 << (first % RUN_PAGES)
        } else {
            ALL
        };
        self.mark_free(first / RUN_PAGES, bits, true);
    }

    /// The next run that was never used, entered in the list of free ones.
    fn fresh_run(&mut self, ground: &Ground) -> u32 {
        if self.fresh as usize == self.chunks.len() * CHUNK_RUNS as usize {
            self.add_chunk(ground);
        }
        let run = self.fresh;
        self.fresh += 1;
        let missing = self.fresh as usize - self.runs.len();
        if self.runs.capacity() < self.fresh as usize {
            // Small steps: in hundreds of shards, doubling would hold more than the pages described.
            let more = (self.runs.len() / 4).max(2);
            self.runs.reserve_exact(more);
            self.pages.reserve_exact(more * RUN_PAGES as usize);
        }
        debug_assert_eq!(missing, 1);
        self.runs.push(Run {
            free: 0,
            resident: 0,
            previous: NONE,
            next: NONE,
        });
        let blank = Page {
            class: 0,
            live: 0,
            free: 0,
            bump: 0,
            previous: NONE,
            next: NONE,
        };
        self.pages
            .resize(self.pages.len() + RUN_PAGES as usize, blank);
        self.mark_free(run, ALL, false);
        run
    }

    fn add_chunk(&mut self, ground: &Ground) {
        let number = self.chunks.len() + 1;
        assert!(
            number < 1 << (32 - UNIT_BITS),
            "one table of one shard holds at most 32 GiB of entries"
        );
        if number == self.map_capacity {
            let capacity = self.map_capacity * 2;
            let larger = new_map(capacity);
            for chunk in 1..number {
                // SAFETY: within the old map.
                let from = unsafe { map_slot(self.map.as_ptr(), chunk) };
                // SAFETY: within the new map.
                let to = unsafe { map_slot(larger.as_ptr(), chunk) };
                to.store(from.load(Relaxed), Relaxed);
            }
            let old = std::mem::replace(&mut self.map, larger);
            self.outgrown = Some(Block::Map(old, self.map_capacity));
            self.map_capacity = capacity;
        }
        let chunk = ground.take();
        // SAFETY: less than the capacity.
        let slot = unsafe { map_slot(self.map.as_ptr(), number) };
        slot.store(chunk.start().as_ptr(), Release);
        if self.chunks.len() == self.chunks.capacity() {
            self.chunks.reserve_exact((self.chunks.len() / 4).max(1));
        }
        self.chunks.push(chunk);
    }

    fn page_address(&self, index: u32) -> NonNull<u8> {
        // SAFETY: this is the arena's map, and the page is one of its pages.
        unsafe { address(self.map.as_ptr(), handle_of(index, 0)) }
    }

    fn link_page(&mut self, index: u32) {
        let class = self.pages[index as usize].class as usize;
        let head = std::mem::replace(&mut self.classes[class].head, index);
        if head != NONE {
            self.pages[head as usize].previous = index;
        }
        let page = &mut self.pages[index as usize];
        page.previous = NONE;
        page.next = head;
    }

    fn unlink_page(&mut self, index: u32) {
        let Page {
            class,
            previous,
            next,
            ..
        } = self.pages[index as usize];
        if previous == NONE {
            self.classes[class as usize].head = next;
        } else {
            self.pages[previous as usize].next = next;
        }
        if next != NONE {
            self.pages[next as usize].previous = previous;
        }
    }

    /// Removes free pages of a run from the free lists.
    fn mark_used(&mut self, run: u32, bits: u8) {
        self.unlink_run(run);
        let record = &mut self.runs[run as usize];
        debug_assert_eq!(record.free & bits, bits, "these pages are free");
        self.resident_free -= (record.resident & bits).count_ones() as usize;
        record.free &= !bits;
        record.resident &= !bits;
        self.link_run(run);
    }

    /// Enters pages of a run in the free lists.
    fn mark_free(&mut self, run: u32, bits: u8, resident: bool) {
        self.unlink_run(run);
        let record = &mut self.runs[run as usize];
        debug_assert_eq!(record.free & bits, 0, "these pages are in use");
        record.free |= bits;
        if resident {
            record.resident |= bits;
            self.resident_free += bits.count_ones() as usize;
        }
        self.link_run(run);
    }

    fn run_list(&mut self, free: u8) -> Option<&mut u32> {
        match free {
            0 => None,
            ALL => Some(&mut self.all_free),
            _ => Some(&mut self.some_free),
        }
    }

    fn link_run(&mut self, run: u32) {
        let Some(list) = self.run_list(self.runs[run as usize].free) else {
            return;
        };
        let head = std::mem::replace(list, run);
        if head != NONE {
            self.runs[head as usize].previous = run;
        }
        let record = &mut self.runs[run as usize];
        record.previous = NONE;
        record.next = head;
    }

    fn unlink_run(&mut self, run: u32) {
        let Run {
            free,
            previous,
            next,
            ..
        } = self.runs[run as usize];
        if free == 0 {
            return;
        }
        if previous == NONE {
            let list = self.run_list(free).expect("a free run is in a list");
            *list = next;
        } else {
            self.runs[previous as usize].next = next;
        }
        if next != NONE {
            self.runs[next as usize].previous = previous;
        }
    }
}

/// Free pages on their way back to the system: number and address.
#[must_use]
pub(crate) struct IdlePages(Vec<(u32, NonNull<u8>)>);

impl IdlePages {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives their memory back, without the latch; bytes given. The passage must have begun before the pages were
    /// taken: while it lasts, the arena's chunks cannot get another owner.
    pub(crate) fn discard(&self, _inside: &GateGuard<'_>) -> usize {
        for &(_, address) in &self.0 {
            // SAFETY: the arena holds these pages out of use, and nobody else can have got its chunks.
            unsafe { discard(address, PAGE_BYTES) };
        }
        self.0.len() * PAGE_BYTES
    }
}

/// Units from the first unit of the first chunk.
#[inline]
fn handle_units(handle: u32) -> u32 {
    handle - (1 << UNIT_BITS)
}

#[inline]
fn page_of(handle: u32) -> usize {
    (handle_units(handle) >> PAGE_UNIT_BITS) as usize
}

#[inline]
fn handle_of(page: u32, unit: u32) -> u32 {
    (1 << UNIT_BITS) + (page << PAGE_UNIT_BITS) + unit
}

/// Whether a page of this class is a single one, not a run.
#[inline]
fn is_single(class: u16) -> bool {
    class <= SMALL_UNITS || class == MIXED
}

/// Units that a page of this class has.
#[inline]
fn page_units(class: u16) -> u16 {
    if class <= SMALL_UNITS {
        PAGE_UNITS as u16
    } else {
        (PAGE_UNITS * RUN_PAGES) as u16
    }
}

fn new_map(capacity: usize) -> NonNull<ChunkMap> {
    let mut slots: Vec<ChunkMap> = Vec::with_capacity(capacity);
    slots.push(AtomicPtr::new(ptr::without_provenance_mut(capacity)));
    slots.resize_with(capacity, || AtomicPtr::new(ptr::null_mut()));
    NonNull::from(Box::leak(slots.into_boxed_slice())).cast()
}

/// Loads the map that a directory publishes.
#[inline]
pub(crate) fn published_map(place: &AtomicPtr<ChunkMap>) -> *const ChunkMap {
    place.load(Acquire)
}

const _: () = assert!(CHUNK_PAGES * PAGE_UNITS == 1 << UNIT_BITS);
