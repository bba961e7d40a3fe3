//! Those who wait for the unit's keys.
//!
//! Owns the list of keys that were touched while somebody waits for them, and the reach of what serving those may write:
//! a served command can make data available under another key, for which others wait.

use std::sync::Arc;

use smallvec::SmallVec;
use weft_data::collection::Kind;
use weft_keyspace::{Awaited, Entry, Position, Shard, Waiter};

use super::{Access, Key, Unit};
use crate::blocking::Wait;
use crate::command::Flags;

/// A key that was touched while somebody waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::dispatch) struct Ready {
    pub(in crate::dispatch) database: usize,
    pub(in crate::dispatch) position: Position,
    pub(in crate::dispatch) name: Box<[u8]>,
}

/// A list that may get elements, and how far its queue has been looked at.
struct Fed {
    database: usize,
    position: Position,
    name: Box<[u8]>,
    /// So many elements may come.
    elements: usize,
    /// So many waiters would have taken one.
    served: usize,
    /// The ticket of the last one looked at.
    after: u64,
    /// There is nobody else, or the shard is not latched.
    ended: bool,
}

impl Unit<'_> {
    /// Whether anybody waits for a key in the latched shards.
    #[inline]
    pub(in crate::dispatch) fn has_waiters(&self) -> bool {
        match &self.access {
            Access::One(_, shard) => shard.has_waiters(),
            Access::Many(shards) => shards.iter().any(|(_, shard)| shard.has_waiters()),
            Access::None | Access::All(_) => false,
        }
    }

    /// Whether anybody waits for a key in this one's shard.
    #[inline]
    pub(super) fn may_be_awaited(&self, key: Key<'_>) -> bool {
        match &self.access {
            Access::One(_, shard) => shard.has_waiters(),
            Access::Many(shards) => {
                let shard = shards.get(key.latch as usize);
                shard.is_some_and(|(_, shard)| shard.has_waiters())
            }
            Access::None | Access::All(_) => false,
        }
    }

    /// Whether keys were touched that somebody waits for.
    #[inline]
    pub(in crate::dispatch) fn has_ready(&self) -> bool {
        !self.log.ready.is_empty()
    }

    /// Notes that the key may be what somebody waits for.
    #[cold]
    pub(super) fn note_ready(&mut self, name: &[u8]) {
        // The caller need not know where the key lives.
        let position = self.engine.keyspace.position(name);
        let database = self.database;
        let awaited = self.shard_at(position);
        if awaited.is_some_and(|shard| shard.awaits(database, position, name)) {
            self.log.ready.push(Ready {
                database,
                position,
                name: name.into(),
            });
        }
    }

    /// Notes all keys of these databases that somebody waits for. Only in a command that runs exclusively; from then on the unit
    /// has all latches one by one.
    pub(super) fn note_all_ready(&mut self, concerned: impl Fn(usize) -> bool) {
        let Access::All(all) = &self.access else {
            unreachable!("whole databases are changed exclusively")
        };
        for shard in all.shards().filter(|shard| shard.has_waiters()) {
            let keys = shard.awaited_keys();
            for (database, position, name) in keys.filter(|(database, ..)| concerned(*database)) {
                self.log.ready.push(Ready {
                    database,
                    position,
                    name: name.into(),
                });
            }
        }
        if self.has_ready() {
            self.spread();
        }
    }

    /// Takes the whole keyspace and all its latches. The worker must be outside its gate.
    pub(in crate::dispatch) fn latch_everything(&mut self, worker: usize) {
        self.latch_all(worker);
        self.spread();
    }

    /// Has the keyspace, which is this unit's alone, in the way that a command with these flags needs it: as a whole, without
    /// any latch, or with all.
    pub(in crate::dispatch) fn suit(&mut self, flags: Flags) {
        let all_latched = matches!(self.access, Access::Many(_));
        if flags.contains(Flags::EXCLUSIVE) {
            if let Some(all) = self.alone.take() {
                self.access = Access::None;
                self.access = Access::All(all);
            }
        } else if flags.contains(Flags::WALKS) {
            if let Access::All(all) = std::mem::replace(&mut self.access, Access::None) {
                self.alone = Some(all);
            }
        } else if !all_latched {
            self.spread();
        }
    }

    /// Goes from the keyspace alone to all latches, still alone.
    fn spread(&mut self) {
        if let Access::All(all) = std::mem::replace(&mut self.access, Access::None) {
            self.alone = Some(all);
        }
        if self.alone.is_some() {
            let keyspace = &self.engine.keyspace;
            let shards = (0..keyspace.shards()).map(|shard| (shard, keyspace.latch(shard)));
            self.access = Access::Many(shards.collect());
        }
    }

    /// The ready key numbered `at`, in the order they were touched.
    pub(in crate::dispatch) fn ready(&self, at: usize) -> Option<Ready> {
        self.log.ready.get(at).cloned()
    }

    /// Whether the key is among those that were touched.
    pub(in crate::dispatch) fn is_ready(&self, database: usize, name: &[u8]) -> bool {
        let mut ready = self.log.ready.iter();
        ready.any(|ready| ready.database == database && *ready.name == *name)
    }

    pub(in crate::dispatch) fn forget_ready(&mut self) {
        self.log.ready.clear();
    }

    /// The time that stood still goes on, up to now.
    pub(in crate::dispatch) fn read_time_anew(&self) {
        self.now.set(None);
    }

    /// From here on the unit runs a command for a client that waited, at the same point in time as others that are served.
    pub(in crate::dispatch) fn go_on_for(&mut self, database: usize, traceless: bool) {
        self.database = database;
        self.looked.set(false);
        self.traceless = traceless;
    }

    /// A key whose shard is latched.
    pub(in crate::dispatch) fn latched_key<'a>(
        &self,
        position: Position,
        name: &'a [u8],
    ) -> Option<Key<'a>> {
        let shard = self.engine.keyspace.shard_of(position);
        let latch = match &self.access {
            Access::One(held, _) => (*held == shard).then_some(0),
            Access::Many(shards) => shards
                .binary_search_by_key(&shard, |(shard, _)| *shard)
                .ok()
                .map(|at| at as u32),
            Access::None | Access::All(_) => None,
        }?;
        Some(Key {
            name,
            position,
            latch,
        })
    }

    fn shard_at(&self, position: Position) -> Option<&Shard> {
        let key = self.latched_key(position, &[])?;
        Some(self.shard(key))
    }

    /// Lets somebody wait for a key; the ticket of the place in its queue.
    pub(in crate::dispatch) fn enqueue(
        &mut self,
        key: Key<'_>,
        kind: Awaited,
        wait: Waiter,
    ) -> u64 {
        let database = self.database;
        self.shard_mut(key)
            .enqueue(database, kind, key.position, key.name, wait)
    }

    /// The first who waits for the key behind the place with this ticket.
    pub(in crate::dispatch) fn next_waiter(
        &self,
        key: Key<'_>,
        kind: Awaited,
        after: u64,
    ) -> Option<(u64, Arc<Wait>)> {
        let shard = self.shard(key);
        let (ticket, waiter) =
            shard.next_waiter(self.database, kind, key.position, key.name, after)?;
        Some((ticket, wait_of(waiter)?))
    }

    pub(in crate::dispatch) fn dequeue(&mut self, key: Key<'_>, kind: Awaited, ticket: u64) {
        let database = self.database;
        self.shard_mut(key)
            .dequeue(database, kind, key.position, key.name, ticket);
    }

    /// Takes one latch more, letting go of all others for a moment. Only when the unit has committed.
    #[cold]
    pub(in crate::dispatch) fn latch_also(&mut self, position: Position) {
        let mut shards = self.latched_shards();
        shards.push(self.engine.keyspace.shard_of(position));
        shards.sort_unstable();
        shards.dedup();
        self.latch_many(&shards);
        self.read_time_anew();
    }

    /// The shards that are latched, in ascending order.
    pub(in crate::dispatch) fn latched_shards(&self) -> SmallVec<[usize; 16]> {
        match &self.access {
            Access::One(shard, _) => SmallVec::from_slice(&[*shard]),
            Access::Many(shards) => shards.iter().map(|(shard, _)| *shard).collect(),
            Access::None | Access::All(_) => SmallVec::new(),
        }
    }

    /// The shards that may be written to and are not latched, if each of these keys may get so many elements: those of keys that
    /// waiters move elements to, and so on from there. Which waiters come into question is exact: as many as there are
    /// elements, in their order. One whose destination holds something else gets an error and takes nothing.
    pub(in crate::dispatch) fn unlatched_reach(
        &self,
        fed: impl Iterator<Item = (Position, Box<[u8]>, usize)>,
    ) -> SmallVec<[usize; 16]> {
        let mut missing = SmallVec::new();
        let mut lists: Vec<Fed> = Vec::new();
        let mut named: Vec<Box<[u8]>> = Vec::new();
        for (position, name, elements) in fed {
            named.push(name.clone());
            let Some(shard) = self.shard_at(position) else {
                continue;
            };
            if elements < usize::MAX {
                feed(&mut lists, self.database, position, &name, elements);
                continue;
            }
            // A whole value may come, in whatever database.
            let awaited: SmallVec<[usize; 4]> = shard
                .awaited_keys()
                .filter(|(_, _, awaited)| *awaited == &*name)
                .map(|(database, ..)| database)
                .collect();
            for database in awaited {
                feed(&mut lists, database, position, &name, elements);
            }
        }
        while let Some(at) = lists
            .iter()
            .position(|list| !list.ended && list.served < list.elements)
        {
            let list = &mut lists[at];
            let Some(shard) = self.shard_at(list.position) else {
                list.ended = true;
                missing.push(self.engine.keyspace.shard_of(list.position));
                continue;
            };
            let database = list.database;
            let next = shard.next_waiter(
                database,
                Awaited::List,
                list.position,
                &list.name,
                list.after,
            );
            let Some((ticket, waiter)) = next else {
                list.ended = true;
                continue;
            };
            list.after = ticket;
            let Some(wait) = wait_of(waiter).filter(|wait| wait.is_open()) else {
                continue;
            };
            let Some((argument, position)) = wait.feeds else {
                list.served += 1;
                continue;
            };
            let args = wait.args.args();
            let name = args.get(argument).unwrap_or_default();
            let refused = self.shard_at(position).is_some_and(|shard| {
                let entry = shard.find(database, position, name);
                let alive =
                    |entry: &Entry<'_>| entry.deadline().is_none_or(|at| at > self.now_ms());
                let entry = entry.filter(alive);
                let kind = entry.map(|entry| entry.collection().map(|it| it.kind()));
                kind.is_some_and(|kind| kind != Some(Kind::List))
            });
            // The unit itself may put something else there first.
            if !refused && !named.iter().any(|named| **named == *name) {
                list.served += 1;
            }
            feed(&mut lists, database, position, name, 1);
        }
        missing
    }
}

/// So many elements more may come to a list.
fn feed(lists: &mut Vec<Fed>, database: usize, position: Position, name: &[u8], elements: usize) {
    let same = |list: &&mut Fed| list.database == database && *list.name == *name;
    if let Some(list) = lists.iter_mut().find(same) {
        list.elements = list.elements.saturating_add(elements);
        return;
    }
    lists.push(Fed {
        database,
        position,
        name: name.into(),
        elements,
        served: 0,
        after: 0,
        ended: false,
    });
}

fn wait_of(waiter: &Waiter) -> Option<Arc<Wait>> {
    Arc::clone(waiter).downcast().ok()
}
