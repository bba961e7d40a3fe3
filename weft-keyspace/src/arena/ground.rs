//! Address space for the arenas of all shards.
//!
//! Owns the mappings and hands them out in chunks of [`CHUNK_BYTES`]. Does not know what lies in a chunk. Mappings are
//! reserved in slabs, so that chunks of different shards lie side by side and share page tables; they are excluded
//! from transparent huge pages, which would back whole 2 MiB for the few pages that a small shard touches.
//! Invariants: a mapping lives as long as the ground; chunks given back hold no memory.

use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// What an arena takes at once, bytes of address space.
pub(crate) const CHUNK_BYTES: usize = 128 << 10;
/// The unit of memory that goes to and from the system, bytes.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Reserved at once, bytes of address space.
const SLAB_BYTES: usize = 32 << 20;

/// The source of chunks.
pub(crate) struct Ground(Mutex<Slabs>);

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
        Ground(Mutex::new(Slabs {
            slabs: Vec::new(),
            used: SLAB_BYTES,
            returned: Vec::new(),
        }))
    }

    /// A chunk of zeroes that holds no memory yet. The lock is held for a system call once per slab.
    pub(crate) fn take(&self) -> NonNull<u8> {
        let mut slabs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = slabs.returned.pop() {
            return chunk;
        }
        if slabs.used == SLAB_BYTES {
            let slab = map_slab();
            slabs.slabs.push(slab);
            slabs.used = 0;
        }
        let slab = slabs.slabs[slabs.slabs.len() - 1];
        // SAFETY: less than the slab's length.
        let chunk = unsafe { slab.add(slabs.used) };
        slabs.used += CHUNK_BYTES;
        chunk
    }

    /// Takes a chunk back.
    ///
    /// # Safety
    ///
    /// The chunk came from here, and nobody refers to it.
    pub(crate) unsafe fn give_back(&self, chunk: NonNull<u8>) {
        // SAFETY: nobody refers to the chunk.
        unsafe { discard(chunk, CHUNK_BYTES) };
        let mut slabs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Gives the memory behind whole pages back to the system; they read as zeroes afterwards. On systems with larger
/// pages than ours, only what covers whole pages of the system goes.
///
/// # Safety
///
/// The range lies within one mapping of a ground and holds nothing that is in use.
pub(crate) unsafe fn discard(start: NonNull<u8>, bytes: usize) {
    let page = rustix::param::page_size();
    let lead = start.as_ptr().addr().next_multiple_of(page) - start.as_ptr().addr();
    let Some(length) = bytes.checked_sub(lead).map(|rest| rest - rest % page) else {
        return;
    };
    if length == 0 {
        return;
    }
    // SAFETY: `lead` is less than `bytes`, the length of what starts here.
    let start = unsafe { start.add(lead) };
    // SAFETY: the range lies within one of our private anonymous mappings and holds nothing that is in use. A failure
    // only keeps the memory.
    let _ = unsafe { madvise(start.as_ptr().cast(), length, Advice::LinuxDontNeed) };
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
