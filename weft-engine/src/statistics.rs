//! Counters, one set per worker: written by their worker only, summed when read.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::recent::Recent;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// One worker's counters. Deltas may be negative.
        #[derive(Default)]
        #[repr(align(128))]
        pub struct WorkerStatistics {
            $($(#[$doc])* pub $name: Counter,)*
            /// Nanoseconds of the longest turn of its loop since the start or the last reset, without sleep and without
            /// the time that another thread had the processor.
            pub longest_turn_ns: Maximum,
            /// The most commands that one turn of its loop has run since the start or the last reset.
            pub most_commands_in_turn: Maximum,
            /// When its loop began, on the scale of the engine's clock; 0 before that.
            pub loop_began_ns: Counter,
            /// Processor time of its thread in user mode, in microseconds, as last looked at.
            pub cpu_user_us: Counter,
            /// Processor time of its thread in the kernel, in microseconds, as last looked at.
            pub cpu_system_us: Counter,
            pub(crate) recent: Recent,
        }

        /// One worker's counters, or sums over all workers, as they stood once.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $name: i64,)*
        }

        impl Totals {
            /// One worker's counters now.
            #[must_use]
            pub fn of(worker: &WorkerStatistics) -> Self {
                Self { $($name: worker.$name.load(),)* }
            }

            /// All together.
            #[must_use]
            pub fn sum<'t>(workers: impl IntoIterator<Item = &'t Self>) -> Self {
                let mut totals = Self::default();
                for worker in workers {
                    $(totals.$name += worker.$name;)*
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
    /// Commands run, failed ones included, refused ones not.
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
    /// Fields of hashes removed because their time had come.
    expired_fields,
    /// Nanoseconds spent looking for such keys that nobody asked for.
    expire_cycle_ns,
    /// Such searches that ended with work left.
    expire_cycles_cut,
    /// Logins that failed.
    logins_refused,
    /// Values handed over to be freed.
    reaped_objects,
    /// Keys that are watched now, each counted once.
    watched_keys,
    /// Changes to the data set.
    changes,
    /// Clients cut off because their unfinished request grew over the limit.
    query_buffer_limit_disconnections,
    /// Clients cut off because their unsent replies grew over the limit.
    output_buffer_limit_disconnections,
    /// Receives that brought bytes.
    reads,
    /// Sends that took bytes.
    writes,
    /// Turns of the loop in which something happened.
    loops,
    /// Batches of requests whose keys were looked up together.
    batches,
    /// Requests in them.
    batched_requests,
    /// Batches of several requests, whose entries were loaded ahead.
    prefetched_batches,
    /// Requests in those.
    prefetched_requests,
    /// Nanoseconds the loop was not asleep.
    busy_ns,
    /// Of those, in turns that were timed: waiting without sleep, and receiving.
    sampled_read_ns,
    /// Parsing.
    sampled_parse_ns,
    /// Looking up, latching, running, committing.
    sampled_execute_ns,
    /// Writing replies into the output.
    sampled_encode_ns,
    /// Sending.
    sampled_write_ns,
}

/// What one worker has counted.
pub struct Account {
    /// Its counters, live.
    pub statistics: Arc<WorkerStatistics>,
    /// What they gained between the last reset and the moment this was drawn up.
    pub totals: Totals,
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

    /// Replaces the value. Only the counter's worker may call it.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value now.
    #[must_use]
    pub fn load(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The largest value so far. One thread raises it, others read it and begin anew.
#[derive(Default)]
pub struct Maximum(AtomicU64);

impl Maximum {
    /// Raises it to `value` if that is more. Only its worker may call it; a reset in the same moment may be lost.
    pub fn raise(&self, value: u64) {
        if value > self.load() {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    /// The largest so far.
    #[must_use]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Begins anew.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
