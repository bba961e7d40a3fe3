//! How much memory the server uses.
//!
//! Owns what counts as used: what is allocated from the general allocator, and the pages that the keyspace takes from the
//! system by itself. Knows the most ever seen and what a server without data takes. Allocates nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use weft_keyspace::Keyspace;

use crate::action::{AllocatorFacts, Host};
use crate::engine::Engine;

/// What was in use at notable moments, in bytes.
#[derive(Debug)]
pub(crate) struct Watermarks {
    /// When the engine was made.
    startup: u64,
    /// The most that was seen.
    peak: AtomicU64,
    /// When that was, in seconds since 1970; 0: when the engine was made.
    peak_at_s: AtomicU64,
}

impl Watermarks {
    pub(crate) fn begin(host: &dyn Host, keyspace: &Keyspace) -> Self {
        let startup = host.allocator().allocated + keyspace.mapped_bytes();
        Self {
            startup,
            peak: AtomicU64::new(startup),
            peak_at_s: AtomicU64::new(0),
        }
    }
}

/// The use of memory at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// In use.
    pub used: u64,
    /// The most that was seen in use, now or earlier.
    pub peak: u64,
    /// When that was, in seconds since 1970.
    pub peak_at_s: u64,
    /// In use when the engine was made.
    pub startup: u64,
    /// The general allocator's part.
    pub allocator: AllocatorFacts,
    /// The keyspace's own pages.
    pub mapped: u64,
}

impl Engine {
    /// What is in use at `now_s`, seconds since 1970. Takes no latch; tens of microseconds, most of them the allocator's.
    pub fn memory_use(&self, now_s: u64) -> MemoryUse {
        let allocator = self.host.allocator();
        let mapped = self.keyspace.mapped_bytes();
        let used = allocator.allocated + mapped;
        let peak_at_s = &self.watermarks.peak_at_s;
        let before = self.watermarks.peak.fetch_max(used, Ordering::Relaxed);
        if used > before {
            peak_at_s.store(now_s, Ordering::Relaxed);
        }
        let peak_at_s = match peak_at_s.load(Ordering::Relaxed) {
            0 => self.identity.started_ms / 1000,
            at_s => at_s,
        };
        MemoryUse {
            used,
            peak: before.max(used),
            peak_at_s,
            startup: self.watermarks.startup,
            allocator,
            mapped,
        }
    }
}
