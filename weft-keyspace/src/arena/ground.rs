//! Address space for the arenas and the large segments of all shards.
//!
//! Owns the mappings and hands them out in chunks of [`CHUNK_BYTES`], to arenas, and in single pages and halves, to tables: all
//! are what a look-up touches at random. Does not know what lies in them. Mappings are reserved in slabs, so that chunks of different shards lie side by side and share page tables. Transparent huge
//! pages are excluded, since they would back whole 2 MiB for the few pages that a small shard touches; instead regions
//! that are nearly full are turned into huge pages one by one ([`Ground::consolidate`]), which adds next to nothing
//! and halves the time of a random look-up in large keyspaces.
//! Invariants: a mapping lives as long as the ground; chunks given back hold no memory.

use std::collections::{BTreeMap, HashMap};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// What an arena takes at once, bytes of address space. Small, so that regions of chunks of many shards fill up early.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// The unit of memory that goes to and from the system, bytes.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Half a page, bytes.
pub(crate) const HALF_BYTES: usize = PAGE_BYTES / 2;
/// Reserved at once, bytes of address space.
const SLAB_BYTES: usize = 32 << 20;
/// What can become one huge page, bytes.
const REGION_BYTES: usize = 2 << 20;
/// Returned pages that stay backed by the system.
const WARM_PAGES: usize = 64;
const REGIONS: usize = SLAB_BYTES / REGION_BYTES;
/// Pages in use from which on a region becomes a huge page: 15 of 16.
const DENSE_PAGES: u32 = (REGION_BYTES / PAGE_BYTES / 16 * 15) as u32;

/// The source of chunks.
pub(crate) struct Ground {
    slabs: Mutex<Slabs>,
    /// Regions that became dense.
    dense: Mutex<Vec<(Arc<Slab>, usize)>>,
    pages: Mutex<Pages>,
    /// Whether single pages of ours can be given back: the system's are not larger.
    small_pages: AtomicBool,
    /// Whether the system has refused to make a huge page.
    no_huge_pages: AtomicBool,
}

#[derive(Default)]
struct Slabs {
    slabs: Vec<Arc<Slab>>,
    /// Bytes of the newest slab that were given out.
    used: usize,
    returned: Vec<Chunk>,
}

/// Pages given out one by one.
#[derive(Default)]
struct Pages {
    /// The chunks they come from, by address.
    chunks: HashMap<usize, Chunk>,
    /// The newest chunk's address, and how many of its pages were given out.
    newest: Option<(NonNull<u8>, usize)>,
    /// Returned pages that the system still backs, and those that it does not.
    warm: Vec<NonNull<u8>>,
    cold: Vec<NonNull<u8>>,
    /// Halves that are free while the other half is not, by address.
    halves: BTreeMap<usize, NonNull<u8>>,
}

// SAFETY: the pointers lead to pages that the ground owns.
unsafe impl Send for Pages {}

/// One mapping.
struct Slab {
    mapping: NonNull<u8>,
    /// The first address in the mapping at which a region can begin.
    start: NonNull<u8>,
    /// Pages in use per region.
    pages: [AtomicU32; REGIONS],
}

// SAFETY: a slab owns its mapping.
unsafe impl Send for Slab {}
// SAFETY: all that changes in a slab is atomic.
unsafe impl Sync for Slab {}

/// A piece of a slab.
pub(crate) struct Chunk {
    slab: Arc<Slab>,
    offset: usize,
    /// Pages in use.
    pages: u32,
}

impl Chunk {
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: chunks lie within their slab.
        unsafe { self.slab.start.add(self.offset) }
    }

    fn region(&self) -> usize {
        self.offset / REGION_BYTES
    }

    /// Notes that pages of the chunk came into use.
    pub(crate) fn use_pages(&mut self, count: u32, ground: &Ground) {
        self.pages += count;
        let before = self.slab.pages[self.region()].fetch_add(count, Relaxed);
        if before < DENSE_PAGES && before + count >= DENSE_PAGES {
            lock(&ground.dense).push((Arc::clone(&self.slab), self.region()));
        }
    }

    /// Notes that pages of the chunk were given to the system.
    pub(crate) fn unuse_pages(&mut self, count: u32) {
        self.pages -= count;
        self.slab.pages[self.region()].fetch_sub(count, Relaxed);
    }
}

impl Ground {
    pub(crate) fn new() -> Ground {
        Ground {
            slabs: Mutex::new(Slabs {
                used: SLAB_BYTES,
                ..Slabs::default()
            }),
            dense: Mutex::default(),
            pages: Mutex::default(),
            small_pages: AtomicBool::new(false),
            no_huge_pages: AtomicBool::new(false),
        }
    }

    /// A chunk of zeroes that holds no memory yet. The lock is held for a system call once per slab.
    pub(crate) fn take(&self) -> Chunk {
        let mut slabs = lock(&self.slabs);
        if let Some(chunk) = slabs.returned.pop() {
            return chunk;
        }
        if slabs.used == SLAB_BYTES {
            let slab = Slab::map();
            self.small_pages.store(slab.has_small_pages(), Relaxed);
            slabs.slabs.push(Arc::new(slab));
            slabs.used = 0;
        }
        let offset = slabs.used;
        slabs.used += CHUNK_BYTES;
        Chunk {
            slab: Arc::clone(&slabs.slabs[slabs.slabs.len() - 1]),
            offset,
            pages: 0,
        }
    }

    /// Bytes of all pages in use, those of arenas and those of tables.
    pub(crate) fn used_bytes(&self) -> usize {
        let slabs = lock(&self.slabs);
        let pages = slabs.slabs.iter().flat_map(|slab| &slab.pages);
        pages
            .map(|pages| pages.load(Relaxed) as usize)
            .sum::<usize>()
            * PAGE_BYTES
    }

    /// Whether single pages of ours can be given back.
    pub(crate) fn small_pages(&self) -> bool {
        self.small_pages.load(Relaxed)
    }

    /// Takes a chunk back.
    ///
    /// # Safety
    ///
    /// Nobody refers to what is in it.
    pub(crate) unsafe fn give_back(&self, mut chunk: Chunk) {
        chunk.unuse_pages(chunk.pages);
        // SAFETY: nobody refers to the chunk, which is a multiple of any page's size.
        unsafe { discard(chunk.start(), CHUNK_BYTES) };
        lock(&self.slabs).returned.push(chunk);
    }

    /// A page of zeroes.
    pub(crate) fn take_page(&self) -> NonNull<u8> {
        self.page(&mut lock(&self.pages))
    }

    fn page(&self, pages: &mut Pages) -> NonNull<u8> {
        if let Some(page) = pages.warm.pop() {
            // SAFETY: nobody else has the page.
            unsafe { page.write_bytes(0, PAGE_BYTES) };
            return page;
        }
        let page = match (pages.cold.pop(), pages.newest) {
            (Some(page), _) => page,
            (None, Some((chunk, used))) if used < CHUNK_BYTES / PAGE_BYTES => {
                pages.newest = Some((chunk, used + 1));
                // SAFETY: within the chunk.
                unsafe { chunk.add(used * PAGE_BYTES) }
            }
            _ => {
                let chunk = self.take();
                let start = chunk.start();
                pages.chunks.insert(start.as_ptr().addr(), chunk);
                pages.newest = Some((start, 1));
                start
            }
        };
        pages.chunk_of(page).use_pages(1, self);
        page
    }

    /// Takes a page back.
    ///
    /// # Safety
    ///
    /// It came from [`Ground::take_page`], and nobody refers to it.
    pub(crate) unsafe fn give_back_page(&self, page: NonNull<u8>) {
        lock(&self.pages).warm.push(page);
    }

    /// Half a page of zeroes.
    pub(crate) fn take_half(&self) -> NonNull<u8> {
        let mut pages = lock(&self.pages);
        if let Some((_, half)) = pages.halves.pop_first() {
            // SAFETY: nobody else has this half.
            unsafe { half.write_bytes(0, HALF_BYTES) };
            return half;
        }
        let page = self.page(&mut pages);
        // SAFETY: within the page.
        let other = unsafe { page.add(HALF_BYTES) };
        pages.halves.insert(other.as_ptr().addr(), other);
        page
    }

    /// Takes half a page back. Both halves together are a page again.
    ///
    /// # Safety
    ///
    /// It came from [`Ground::take_half`], and nobody refers to it.
    pub(crate) unsafe fn give_back_half(&self, half: NonNull<u8>) {
        let address = half.as_ptr().addr();
        let mut pages = lock(&self.pages);
        match pages.halves.remove(&(address ^ HALF_BYTES)) {
            Some(other) => pages.warm.push(half.min(other)),
            None => {
                pages.halves.insert(address, half);
            }
        }
    }

    /// Gives returned pages to the system, a few apart. Not to be called under a latch.
    pub(crate) fn trim_pages(&self) {
        if !self.small_pages() {
            return;
        }
        loop {
            // A few at a time, and not under the lock: somebody with a latch may want a page.
            let batch: Vec<NonNull<u8>> = {
                let mut pages = lock(&self.pages);
                let surplus = pages.warm.len().saturating_sub(WARM_PAGES);
                pages.warm.drain(..surplus.min(16)).collect()
            };
            if batch.is_empty() {
                return;
            }
            for &page in &batch {
                // SAFETY: nobody refers to the page, and nobody can get it meanwhile.
                unsafe { discard(page, PAGE_BYTES) };
            }
            let mut pages = lock(&self.pages);
            for page in batch {
                pages.chunk_of(page).unuse_pages(1);
                pages.cold.push(page);
            }
        }
    }

    /// Makes huge pages of up to `most` dense regions; bytes that became huge. Each takes some hundred microseconds, and
    /// whoever touches the region meanwhile waits for it: for a thread in the background.
    pub(crate) fn consolidate(&self, most: usize) -> usize {
        let mut bytes = 0;
        for _ in 0..most {
            if self.no_huge_pages.load(Relaxed) {
                lock(&self.dense).clear();
                break;
            }
            let Some((slab, region)) = lock(&self.dense).pop() else {
                break;
            };
            if slab.pages[region].load(Relaxed) < DENSE_PAGES {
                continue;
            }
            match slab.make_huge(region) {
                Ok(()) => bytes += REGION_BYTES,
                // Out of huge pages for now: those that come later may be luckier.
                Err(error) if error.raw_os_error() != Some(libc::EINVAL) => break,
                Err(_) => self.no_huge_pages.store(true, Relaxed),
            }
        }
        bytes
    }
}

impl Pages {
    fn chunk_of(&mut self, page: NonNull<u8>) -> &mut Chunk {
        let address = page.as_ptr().addr();
        let chunk = self.chunks.get_mut(&(address - address % CHUNK_BYTES));
        chunk.expect("chunks are aligned, and all that pages came from are here")
    }
}

impl Slab {
    fn map() -> Slab {
        let bytes = SLAB_BYTES + REGION_BYTES;
        // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing that exists.
        let mapped = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let mapped = mapped.ok().map(|address| address.cast::<u8>());
        let Some(mapping) = mapped.and_then(NonNull::new) else {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; SLAB_BYTES]>())
        };
        // SAFETY: the mapping was just made. Kernels without huge pages refuse, and need not be told.
        let _ = unsafe { madvise(mapping.as_ptr().cast(), bytes, Advice::LinuxNoHugepage) };
        let address = mapping.as_ptr().addr();
        let lead = address.next_multiple_of(REGION_BYTES) - address;
        Slab {
            mapping,
            // SAFETY: less than a region, by which the mapping is longer than the slab.
            start: unsafe { mapping.add(lead) },
            pages: Default::default(),
        }
    }

    /// Whether the system's pages are not larger than ours: a larger one would not begin at the second of ours.
    fn has_small_pages(&self) -> bool {
        // SAFETY: within the slab.
        let second = unsafe { self.start.add(PAGE_BYTES) };
        // SAFETY: this advice changes nothing.
        unsafe { madvise(second.as_ptr().cast(), PAGE_BYTES, Advice::Normal) }.is_ok()
    }

    /// Copies a region into a huge page, in place. The exclusion of huge pages is lifted only meanwhile, so nothing else
    /// ever becomes one.
    fn make_huge(&self, region: usize) -> std::io::Result<()> {
        // SAFETY: within the slab.
        let start = unsafe { self.start.add(region * REGION_BYTES) };
        let start = start.as_ptr().cast();
        // SAFETY: advice within our own mapping that leaves its content as it is.
        unsafe { madvise(start, REGION_BYTES, Advice::LinuxHugepage) }?;
        // SAFETY: as above.
        let result = unsafe { libc::madvise(start, REGION_BYTES, libc::MADV_COLLAPSE) };
        let error = std::io::Error::last_os_error();
        // SAFETY: as above. It cannot fail where the opposite has just been done.
        let _ = unsafe { madvise(start, REGION_BYTES, Advice::LinuxNoHugepage) };
        if result == 0 { Ok(()) } else { Err(error) }
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        let bytes = SLAB_BYTES + REGION_BYTES;
        // SAFETY: the ground and all chunks are gone, so nothing refers to the mapping. A failure leaks address space.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), bytes) };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the memory behind whole pages back to the system; they read as zeroes afterwards.
///
/// # Safety
///
/// The range lies within one mapping of a ground and holds nothing that is in use. On a system with larger pages than
/// [`PAGE_BYTES`] it consists of whole ones.
pub(crate) unsafe fn discard(start: NonNull<u8>, bytes: usize) {
    // SAFETY: by the caller's word. A failure only keeps the memory.
    let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
}
