//! Counters, one set per worker: written by their worker only, summed when read.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// One worker's counters. Deltas may be negative: only sums over all workers have a meaning.
        #[derive(Default)]
        #[repr(align(128))]
        pub struct WorkerStatistics {
            $($(#[$doc])* pub $name: Counter,)*
        }

        /// Sums over all workers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $name: i64,)*
        }

        impl Totals {
            /// The sums of all workers' counters.
            #[must_use]
            pub fn of(workers: &[Arc<WorkerStatistics>]) -> Self {
                let mut totals = Self::default();
                for worker in workers {
                    $(totals.$name += worker.$name.load();)*
                }
                totals
            }

            /// What has been counted since `earlier`.
            #[must_use]
            pub fn since(self, earlier: &Self) -> Self {
                Self { $($name: self.$name - earlier.$name,)* }
            }
        }
    };
}

counters! {
    /// Connections open now.
    connected_clients,
    /// Connections accepted.
    connections_received,
    /// Connections refused for `maxclients`.
    connections_rejected,
    /// Connections that came from another worker.
    connections_moved,
    /// Commands run, failed ones included.
    commands_processed,
    /// Error replies.
    error_replies,
    /// Bytes received.
    input_bytes,
    /// Bytes of replies made.
    output_bytes,
    /// Reads that found their key.
    keyspace_hits,
    /// Reads that did not.
    keyspace_misses,
    /// Keys removed because their time had come.
    expired_keys,
    /// Changes to the data set.
    changes,
    /// Clients cut off because their unfinished request grew over the limit.
    query_buffer_limit_disconnections,
    /// Clients cut off because their unsent replies grew over the limit.
    output_buffer_limit_disconnections,
}

/// A counter that one thread writes and others read.
#[derive(Default)]
pub struct Counter(AtomicI64);

impl Counter {
    /// Adds `delta`. Only the counter's worker may call it: a plain load and store, no locked instruction.
    pub fn add(&self, delta: i64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(delta),
            Ordering::Relaxed,
        );
    }

    /// The value now.
    #[must_use]
    pub fn load(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
