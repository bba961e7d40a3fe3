//! Address space for the arenas of all shards.
//!
//! Owns the mappings and hands them out in chunks of [`CHUNK_BYTES`]. Does not know what lies in a chunk. Mappings are
//! reserved in slabs, so that chunks of different shards lie side by side and share page tables; they are excluded
//! from transparent huge pages, which would back whole 2 MiB for the few pages that a small shard touches.
//! Invariants: a mapping lives as long as the ground; chunks given back hold no memory.

use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// What an arena takes at once, bytes of address space.
pub(crate) const CHUNK_BYTES: usize = 128 << 10;
/// The unit of memory that goes to and from the system, bytes.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Reserved at once, bytes of address space.
const SLAB_BYTES: usize = 32 << 20;

/// The source of chunks.
pub(crate) struct Ground {
    slabs: Mutex<Slabs>,
    /// Whether single pages of ours can be given back: the system's are not larger.
    small_pages: AtomicBool,
}

struct Slabs {
    slabs: Vec<NonNull<u8>>,
    /// Bytes of the newest slab that were given out.
    used: usize,
    returned: Vec<NonNull<u8>>,
}

// SAFETY: the pointers are mappings owned by the ground.
unsafe impl Send for Slabs {}

impl Ground {
    pub(crate) fn new() -> Ground {
        Ground {
            slabs: Mutex::new(Slabs {
                slabs: Vec::new(),
                used: SLAB_BYTES,
                returned: Vec::new(),
            }),
            small_pages: AtomicBool::new(false),
        }
    }

    /// A chunk of zeroes that holds no memory yet. The lock is held for a system call once per slab.
    pub(crate) fn take(&self) -> NonNull<u8> {
        let mut slabs = self.slabs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = slabs.returned.pop() {
            return chunk;
        }
        if slabs.used == SLAB_BYTES {
            let slab = map_slab();
            self.small_pages.store(has_small_pages(slab), Relaxed);
            slabs.slabs.push(slab);
            slabs.used = 0;
        }
        let slab = slabs.slabs[slabs.slabs.len() - 1];
        // SAFETY: less than the slab's length.
        let chunk = unsafe { slab.add(slabs.used) };
        slabs.used += CHUNK_BYTES;
        chunk
    }

    /// Whether single pages of ours can be given back.
    pub(crate) fn small_pages(&self) -> bool {
        self.small_pages.load(Relaxed)
    }

    /// Takes a chunk back.
    ///
    /// # Safety
    ///
    /// The chunk came from here, and nobody refers to it.
    pub(crate) unsafe fn give_back(&self, chunk: NonNull<u8>) {
        // SAFETY: nobody refers to the chunk.
        unsafe { discard(chunk, CHUNK_BYTES) };
        let mut slabs = self.slabs.lock().unwrap_or_else(PoisonError::into_inner);
        slabs.returned.push(chunk);
    }
}

impl Drop for Slabs {
    fn drop(&mut self) {
        for slab in &self.slabs {
            // SAFETY: the ground goes last; nothing refers to its memory any more. A failure leaks address space.
            let _ = unsafe { munmap(slab.as_ptr().cast(), SLAB_BYTES) };
        }
    }
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

fn map_slab() -> NonNull<u8> {
    // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing that exists.
    let mapped = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            SLAB_BYTES,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    };
    let layout = std::alloc::Layout::new::<[u8; SLAB_BYTES]>();
    let Some(slab) = mapped
        .ok()
        .and_then(|address| NonNull::new(address.cast::<u8>()))
    else {
        std::alloc::handle_alloc_error(layout)
    };
    // SAFETY: the mapping was just made. Kernels without huge pages refuse, and need not be told.
    let _ = unsafe { madvise(slab.as_ptr().cast(), SLAB_BYTES, Advice::LinuxNoHugepage) };
    slab
}

/// Whether the system's pages are not larger than ours: a larger one would not begin at the second of ours.
fn has_small_pages(slab: NonNull<u8>) -> bool {
    // SAFETY: within the slab.
    let second = unsafe { slab.add(PAGE_BYTES) };
    // SAFETY: this advice changes nothing.
    unsafe { madvise(second.as_ptr().cast(), PAGE_BYTES, Advice::Normal) }.is_ok()
}
