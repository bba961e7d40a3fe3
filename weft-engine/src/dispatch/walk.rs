//! Commands that walk through a database: dispatch latches one shard after the other for them.

use weft_keyspace::{DeadlineChange, Entry, NewValue, Position};

use super::context::Key;
use super::unit::Unit;
use crate::digest;

/// Buckets looked at under one latch.
const BUCKETS_PER_LATCH: usize = 8;
/// Buckets looked at per key wanted, so that a sparse database cannot make one SCAN long.
const BUCKETS_PER_KEY: usize = 10;

impl Unit<'_> {
    /// Calls `each` with live entries from `cursor` on, at least `count` of them unless the walk has ended or the buckets
    /// were sparse, and returns the next cursor, 0 at the end. A bucket is always handed out whole.
    pub fn scan(&mut self, cursor: u64, count: usize, mut each: impl FnMut(Entry<'_>)) -> u64 {
        let keyspace = &self.engine().keyspace;
        let Some((mut shard, mut from)) = keyspace.cursor_position(cursor) else {
            return 0;
        };
        let database = self.database();
        let now = self.now_ms();
        let mut seen = 0;
        let mut buckets = count.saturating_mul(BUCKETS_PER_KEY);
        let mut overdue: Vec<Box<[u8]>> = Vec::new();
        while let Some(next_shard) = keyspace.next_nonempty(database, shard) {
            if next_shard != shard {
                (shard, from) = (next_shard, keyspace.shard_start(next_shard));
            }
            self.latch_one(shard);
            loop {
                if seen >= count || buckets == 0 {
                    self.remove_named(&mut overdue);
                    return keyspace.cursor(from);
                }
                let slice = BUCKETS_PER_LATCH.min(buckets);
                buckets -= slice;
                let latched = self.only_shard().expect("latched above");
                let next = latched.scan(database, from, slice, |entry| match entry.deadline() {
                    Some(deadline) if deadline <= now => overdue.push(entry.key().into()),
                    _ => {
                        seen += 1;
                        each(entry);
                    }
                });
                match next {
                    Some(position) => from = position,
                    None => break,
                }
            }
            self.remove_named(&mut overdue);
            shard += 1;
            if shard == keyspace.shards() {
                break;
            }
            from = keyspace.shard_start(shard);
        }
        0
    }

    /// Calls `each` with the names of all live keys of the database, at one point in time. Only in a command that runs
    /// exclusively.
    pub fn each_key(&self, mut each: impl FnMut(&[u8])) {
        let keyspace = &self.engine().keyspace;
        let (database, now) = (self.database(), self.now_ms());
        let mut next = 0;
        while let Some(shard) = keyspace.next_nonempty(database, next) {
            let latched = self.alone().shard_mut(shard);
            let mut from = Some(keyspace.shard_start(shard));
            while let Some(position) = from {
                from = latched.scan(database, position, usize::MAX, |entry| {
                    if entry.deadline().is_none_or(|deadline| deadline > now) {
                        each(entry.key());
                    }
                });
            }
            next = shard + 1;
        }
    }

    /// What `look` makes of the live entry of this name; none if there is none. Only in a command that runs exclusively.
    pub fn look_alone<R>(&self, name: &[u8], look: impl FnOnce(Entry<'_>) -> R) -> Option<R> {
        let keyspace = &self.engine().keyspace;
        let position = keyspace.position(name);
        let latched = self.alone().shard_mut(keyspace.shard_of(position));
        let now = self.now_ms();
        let entry = latched.find(self.database(), position, name)?;
        let live = entry.deadline().is_none_or(|deadline| deadline > now);
        live.then(|| look(entry))
    }

    /// Makes a key unless there is one of this name, without a trace in the journal. Only in a command that runs
    /// exclusively.
    pub fn fill(&mut self, name: &[u8], value: NewValue<'_>) {
        let keyspace = &self.engine().keyspace;
        let position = keyspace.position(name);
        let (database, birth) = (self.database(), self.birth());
        let mut latched = self.alone().shard_mut(keyspace.shard_of(position));
        if latched.find(database, position, name).is_none() {
            let stamp = |_| birth;
            latched.set_stamped(
                database,
                position,
                name,
                value,
                DeadlineChange::Clear,
                stamp,
            );
        }
    }

    /// Digests of all databases, one a seed. Only in a command that runs exclusively.
    pub fn digest<const N: usize>(&self, seeds: [u64; N]) -> [u64; N] {
        digest::of_all(self.alone(), seeds)
    }

    /// The name of a live key, each as likely as the others; none if there is none.
    pub fn random_key(&mut self, random: &mut fastrand::Rng) -> Option<Box<[u8]>> {
        /// With nothing but overdue keys left, the search ends after so many tries.
        const TRIES_MAX: usize = 100;
        let keyspace = &self.engine().keyspace;
        let database = self.database();
        let mut source = || random.u64(..);
        for _ in 0..TRIES_MAX {
            let shard = keyspace.random_shard(database, &mut source)?;
            self.latch_one(shard);
            let now = self.now_ms();
            let latched = self.only_shard().expect("latched above");
            let Some(entry) = latched.random(database, &mut source) else {
                continue;
            };
            let (name, deadline): (Box<[u8]>, _) = (entry.key().into(), entry.deadline());
            if deadline.is_none_or(|deadline| deadline > now) {
                return Some(name);
            }
            self.remove_named(&mut vec![name]);
        }
        None
    }

    /// Removes overdue keys of the latched shard.
    fn remove_named(&mut self, names: &mut Vec<Box<[u8]>>) {
        for name in names.drain(..) {
            let position: Position = self.engine().keyspace.position(&name);
            self.purge(Key {
                name: &name,
                position,
                latch: 0,
            });
        }
    }
}
