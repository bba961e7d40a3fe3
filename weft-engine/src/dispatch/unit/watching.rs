//! Keys that are watched: from WATCH until EXEC, or until the watcher loses interest.

use std::sync::Arc;

use weft_keyspace::{Keyspace, Watched, Watcher};

use super::super::context::{Context, Key};
use super::{Access, EventClass, Unit};
use crate::client::Client;
use crate::engine::{Engine, WorkerState};
use crate::transaction::WatchedKey;

impl Unit<'_> {
    /// Lets those know who watch the key that it has changed.
    #[inline]
    pub(super) fn tell_watchers(&self, key: Key<'_>, class: EventClass) {
        let shard = match &self.access {
            Access::One(_, shard) => shard,
            Access::Many(shards) => match shards.get(key.latch as usize) {
                Some((_, shard)) => shard,
                None => return,
            },
            Access::None | Access::All(_) => return,
        };
        if shard.has_watchers() {
            let removed = class == EventClass::Expired;
            shard.mark_watchers(self.database, key.name, removed);
        }
    }

    /// Lets somebody hear of changes to a latched key from now on.
    fn watch(&mut self, key: Key<'_>, watcher: &Arc<Watcher>) -> (Watched, WatchedKey) {
        let database = self.database;
        let alive = self.look(key).is_some();
        let watched = self
            .shard_mut(key)
            .watch(database, key.name, alive, watcher);
        let key = WatchedKey {
            database,
            position: key.position,
            name: key.name.into(),
            alive,
        };
        (watched, key)
    }

    /// Whether time has ended a latched key since it is watched.
    pub(in crate::dispatch) fn has_ended(&self, watched: &WatchedKey) -> bool {
        let Some(key) = self.latched_key(watched.position, &watched.name) else {
            return false;
        };
        let shard = self.shard(key);
        let entry = shard.find(watched.database, key.position, key.name);
        let is_alive = entry.is_some_and(|it| it.deadline().is_none_or(|at| at > self.now_ms()));
        watched.alive && !is_alive
    }

    /// Lets somebody hear of none of these keys any more; how many nobody watches now. They need not be latched.
    pub(in crate::dispatch) fn unwatch(
        &mut self,
        watched: &[WatchedKey],
        watcher: &Arc<Watcher>,
    ) -> usize {
        let keyspace = &self.engine.keyspace;
        let mut last = 0;
        for key in watched {
            let latched = match self.latched_key(key.position, &key.name) {
                Some(latched) => latched,
                None => {
                    self.latch_one(keyspace.shard_of(key.position));
                    Key {
                        name: &key.name,
                        position: key.position,
                        latch: 0,
                    }
                }
            };
            let shard = self.shard_mut(latched);
            last += usize::from(shard.unwatch(key.database, &key.name, watcher));
        }
        last
    }
}

impl Unit<'_> {
    /// Lets a client watch no keys any more, with whatever latches are held.
    pub(in crate::dispatch) fn forget_watched(
        &mut self,
        client: &mut Client,
        worker: &WorkerState,
    ) {
        let watched = client.take_watched();
        if !watched.is_empty() {
            let last = self.unwatch(&watched, client.watcher());
            worker.statistics().watched_keys.add(-(last as i64));
            client.watcher().unmark();
        }
    }
}

impl Context<'_, '_> {
    /// The client watches its keys from now on.
    pub(crate) fn watch_keys(&mut self) {
        let watcher = Arc::clone(self.client.watcher());
        let mut first = 0;
        for key in self.keys {
            let (watched, key) = self.unit.watch(*key, &watcher);
            first += i64::from(watched == Watched::First);
            if watched != Watched::Already {
                self.client.watch(key);
            }
        }
        self.worker.statistics().watched_keys.add(first);
    }

    /// The client watches no keys any more. Not in a command with keys of its own: the latches may be others now.
    pub(crate) fn forget_watched_keys(&mut self) {
        self.unit.forget_watched(self.client, self.worker);
    }
}

/// Ends the watching of keys for a client that is gone. The worker is outside its gate.
pub(crate) fn forget(
    engine: &Engine,
    worker: &WorkerState,
    watched: &[WatchedKey],
    watcher: &Arc<Watcher>,
) {
    let keyspace: &Keyspace = &engine.keyspace;
    let gate = keyspace.gate(worker.id()).enter();
    let last = watched.iter().filter(|key| {
        let mut shard = keyspace.latch(keyspace.shard_of(key.position));
        shard.unwatch(key.database, &key.name, watcher)
    });
    worker.statistics().watched_keys.add(-(last.count() as i64));
    drop(gate);
}
