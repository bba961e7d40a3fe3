//! The process's memory allocator: which one, how it is set up, and what can be asked of it.
//!
//! The only module of this crate with `unsafe`: two facts about jemalloc's C interface have no safe wrapper.
#![allow(unsafe_code)]

use std::ptr;

use tikv_jemalloc_ctl::{background_thread, epoch, stats, stats_print};
use weft_engine::action::AllocatorFacts;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// jemalloc's options, read before the first allocation. Pages that became free go back to the system by a thread of
/// jemalloc's own, since a worker that does it between two requests stalls for milliseconds; after a second instead of ten, and at once instead of through the lazy state, so that resident memory says
/// what is in use. No huge pages: an empty server must stay small.
///
/// The name is the one jemalloc is built to look for.
// SAFETY: the symbol is jemalloc's option string: a pointer to bytes that end with a zero, which this is.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static OPTIONS: &[u8; 72] =
    b"background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,thp:default\0";

/// The allocator's name and version, for INFO.
pub fn name() -> String {
    let version = tikv_jemalloc_ctl::version::read().unwrap_or("unknown");
    // "5.3.0-1-ge13ca993e8ccb9ba9847cc330696e02839f328f7" names a commit that interests nobody.
    format!("jemalloc-{}", version.split('-').next().unwrap_or(version))
}

/// Bytes the program has allocated and not freed.
pub fn allocated_bytes() -> u64 {
    // The counters are those of the last epoch.
    let _ = epoch::advance();
    stats::allocated::read().unwrap_or(0) as u64
}

/// What jemalloc holds now.
pub fn facts() -> AllocatorFacts {
    let _ = epoch::advance();
    let bytes = |read: tikv_jemalloc_ctl::Result<usize>| read.unwrap_or(0) as u64;
    AllocatorFacts {
        allocated: bytes(stats::allocated::read()),
        active: bytes(stats::active::read()),
        resident: bytes(stats::resident::read()),
    }
}

/// jemalloc's own report.
pub fn report() -> String {
    let mut text = Vec::new();
    // Writing into memory does not fail.
    let _ = stats_print::stats_print(&mut text, stats_print::Options::default());
    String::from_utf8_lossy(&text).into_owned()
}

/// Whether free pages go back to the system by a thread of the allocator's own; otherwise by whoever allocates.
pub fn work_in_background(on: bool) {
    if background_thread::read().is_ok_and(|now| now != on) {
        // Fails only where there are no threads.
        let _ = background_thread::write(on);
    }
}

/// Gives all pages that are free to the system now. Takes microseconds to milliseconds: for quiet moments.
pub fn purge() {
    // SAFETY: the name ends with a zero; this command reads and writes nothing through the four pointers.
    let status = unsafe {
        tikv_jemalloc_sys::mallctl(
            c"arena.4096.purge".as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
        )
    };
    debug_assert_eq!(status, 0, "4096 is jemalloc's name for all arenas");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_those_asked_for() {
        assert_eq!(OPTIONS.last(), Some(&0));
        assert!(tikv_jemalloc_ctl::opt::background_thread::read().unwrap());
        assert!(name().starts_with("jemalloc-5."), "{}", name());
    }

    #[test]
    fn the_thread_is_switched() {
        for on in [false, true] {
            work_in_background(on);
            assert_eq!(background_thread::read().unwrap(), on);
        }
    }

    #[test]
    fn facts_and_report_are_those_of_a_running_allocator() {
        let facts = facts();
        assert!(facts.allocated > 0);
        assert!(facts.allocated <= facts.active && facts.active <= facts.resident);
        let report = report();
        assert!(report.starts_with("___ Begin jemalloc statistics ___"));
        assert!(
            report.ends_with("--- End jemalloc statistics ---\n"),
            "{report}"
        );
    }

    #[test]
    fn allocations_are_counted_and_purging_returns_pages() {
        const BYTES: usize = 64 << 20;
        let before = allocated_bytes();
        let block = vec![1_u8; BYTES];
        assert!(allocated_bytes() >= before + BYTES as u64);
        let resident = weft_os::memory::resident_bytes().unwrap();
        drop(std::hint::black_box(block));
        purge();
        let after = weft_os::memory::resident_bytes().unwrap();
        assert!(after + BYTES as u64 / 2 < resident, "{resident} -> {after}");
    }
}
