//! Who waits for keys: for every key of a shard, and every kind of data, a queue in the order of arrival.
//!
//! Owns the order. Does not know who waits, for what command, or whether somebody has stopped waiting: that is the
//! business of whoever puts records in and takes them out. Invariants: no queue is empty; tickets are drawn once and ascend
//! within a queue; places that became vacant in the middle of a queue never outnumber those in use by much.

use std::any::Any;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ahash::RandomState;

use crate::position::Position;

/// Somebody who waits, on all keys that one command names.
pub type Waiter = Arc<dyn Any + Send + Sync>;

/// What a waiter waits for. Values of different kinds are never fought over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Awaited {
    /// Elements of a list.
    List,
    /// Members of a sorted set.
    SortedSet,
    /// Entries of a stream.
    Stream,
}

impl Awaited {
    /// All kinds.
    pub const ALL: [Awaited; 3] = [Awaited::List, Awaited::SortedSet, Awaited::Stream];
}

/// So many vacant places more than used ones are left in a queue.
const VACANT_MAX: usize = 8;

/// An empty table of queues keeps room for so many.
const KEPT: usize = 64;

/// The waiters of one shard.
pub(crate) struct Waiters {
    /// By database, kind and position; keys at one position are told apart by their names.
    queues: HashMap<(u32, Awaited, Position), Vec<Queue>, RandomState>,
    tickets: u64,
}

struct Queue {
    name: Box<[u8]>,
    places: VecDeque<(u64, Option<Waiter>)>,
    vacant: usize,
}

impl Waiters {
    pub(crate) fn new() -> Waiters {
        Waiters {
            // Positions are hashes with a secret already.
            queues: HashMap::with_hasher(RandomState::with_seeds(1, 2, 3, 4)),
            tickets: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    fn queue(&self, db: usize, kind: Awaited, position: Position, key: &[u8]) -> Option<&Queue> {
        let queues = self.queues.get(&(db as u32, kind, position))?;
        queues.iter().find(|queue| *queue.name == *key)
    }

    /// Whether anybody waits for anything under the key.
    pub(crate) fn awaits(&self, db: usize, position: Position, key: &[u8]) -> bool {
        let mut kinds = Awaited::ALL.into_iter();
        kinds.any(|kind| self.queue(db, kind, position, key).is_some())
    }

    /// Puts a waiter behind all others; its ticket, never 0.
    pub(crate) fn push(
        &mut self,
        db: usize,
        kind: Awaited,
        position: Position,
        key: &[u8],
        waiter: Waiter,
    ) -> u64 {
        self.tickets += 1;
        let queues = self.queues.entry((db as u32, kind, position)).or_default();
        let at = queues.iter().position(|queue| *queue.name == *key);
        let at = at.unwrap_or_else(|| {
            queues.push(Queue {
                name: key.into(),
                places: VecDeque::new(),
                vacant: 0,
            });
            queues.len() - 1
        });
        queues[at].places.push_back((self.tickets, Some(waiter)));
        self.tickets
    }

    /// The first waiter behind the one with this ticket (0: the first of all), and its ticket.
    pub(crate) fn next(
        &self,
        db: usize,
        kind: Awaited,
        position: Position,
        key: &[u8],
        after: u64,
    ) -> Option<(u64, &Waiter)> {
        let places = &self.queue(db, kind, position, key)?.places;
        let start = places.partition_point(|(ticket, _)| *ticket <= after);
        let mut rest = places.range(start..);
        rest.find_map(|(ticket, waiter)| Some((*ticket, waiter.as_ref()?)))
    }

    /// Takes a waiter out; whether it was there.
    pub(crate) fn remove(
        &mut self,
        db: usize,
        kind: Awaited,
        position: Position,
        key: &[u8],
        ticket: u64,
    ) -> bool {
        let Entry::Occupied(mut queues) = self.queues.entry((db as u32, kind, position)) else {
            return false;
        };
        let Some(at) = queues.get().iter().position(|queue| *queue.name == *key) else {
            return false;
        };
        let queue = &mut queues.get_mut()[at];
        let removed = queue.remove(ticket);
        if queue.places.is_empty() {
            queues.get_mut().swap_remove(at);
            if queues.get().is_empty() {
                queues.remove();
                if self.queues.is_empty() && self.queues.capacity() > KEPT {
                    self.queues.shrink_to(KEPT);
                }
            }
        }
        removed
    }

    /// Every database, position and name that somebody waits for; a key as often as kinds of data are awaited under it.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (usize, Position, &[u8])> {
        self.queues.iter().flat_map(|((db, _, position), queues)| {
            let names = queues.iter().map(|queue| &*queue.name);
            names.map(|name| (*db as usize, *position, name))
        })
    }
}

impl Queue {
    fn remove(&mut self, ticket: u64) -> bool {
        let found = self
            .places
            .binary_search_by_key(&ticket, |(ticket, _)| *ticket);
        let Ok(at) = found else {
            return false;
        };
        if self.places[at].1.take().is_none() {
            return false;
        }
        self.vacant += 1;
        while matches!(self.places.front(), Some((_, None))) {
            self.places.pop_front();
            self.vacant -= 1;
        }
        while matches!(self.places.back(), Some((_, None))) {
            self.places.pop_back();
            self.vacant -= 1;
        }
        if self.vacant > self.places.len() / 2 + VACANT_MAX {
            self.places.retain(|(_, waiter)| waiter.is_some());
            self.vacant = 0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Position = Position::from_bits(7);

    fn waiter(number: u32) -> Waiter {
        Arc::new(number)
    }

    fn number(waiter: &Waiter) -> u32 {
        *waiter.downcast_ref().unwrap()
    }

    fn order(waiters: &Waiters, key: &[u8]) -> Vec<u32> {
        let mut after = 0;
        std::iter::from_fn(|| {
            let (ticket, waiter) = waiters.next(0, Awaited::List, AT, key, after)?;
            after = ticket;
            Some(number(waiter))
        })
        .collect()
    }

    #[test]
    fn every_key_has_its_own_queue_in_the_order_of_arrival() {
        let mut waiters = Waiters::new();
        assert!(waiters.is_empty());
        // All at one position, as if their hashes collided.
        for n in 0..4 {
            waiters.push(0, Awaited::List, AT, b"a", waiter(n));
        }
        let other = waiters.push(0, Awaited::List, AT, b"b", waiter(10));
        let set = waiters.push(0, Awaited::SortedSet, AT, b"a", waiter(20));
        waiters.push(1, Awaited::List, AT, b"a", waiter(30));
        assert_eq!(order(&waiters, b"a"), [0, 1, 2, 3]);
        assert_eq!(order(&waiters, b"b"), [10]);
        assert!(waiters.awaits(1, AT, b"a"));
        assert!(!waiters.awaits(1, AT, b"b"));
        assert!(!waiters.awaits(0, Position::from_bits(8), b"a"));
        let mut keys: Vec<_> = waiters.keys().map(|(db, _, name)| (db, name)).collect();
        keys.sort_unstable();
        assert_eq!(keys, [(0, &b"a"[..]), (0, b"a"), (0, b"b"), (1, b"a")]);
        assert!(waiters.remove(0, Awaited::List, AT, b"b", other));
        assert!(!waiters.remove(0, Awaited::List, AT, b"b", other));
        assert!(!waiters.awaits(0, AT, b"b"));
        assert!(!waiters.remove(0, Awaited::List, AT, b"a", set));
        assert!(waiters.remove(0, Awaited::SortedSet, AT, b"a", set));
        assert!(waiters.awaits(0, AT, b"a"));
    }

    #[test]
    fn those_who_leave_make_no_difference_to_the_order_and_hold_no_memory() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut waiters = Waiters::new();
        let mut model: Vec<(u64, u32)> = Vec::new();
        for n in 0..20_000 {
            if model.len() < 1000 && random.bool() {
                model.push((waiters.push(0, Awaited::List, AT, b"k", waiter(n)), n));
            } else if !model.is_empty() {
                let (ticket, _) = model.remove(random.usize(0..model.len()));
                assert!(waiters.remove(0, Awaited::List, AT, b"k", ticket));
            }
            if let Some(queue) = waiters.queue(0, Awaited::List, AT, b"k") {
                assert!(queue.places.len() <= 2 * model.len() + 2 * VACANT_MAX + 2);
                assert_eq!(queue.places.len() - queue.vacant, model.len());
            } else {
                assert!(model.is_empty());
            }
        }
        let expected: Vec<u32> = model.iter().map(|(_, n)| *n).collect();
        assert_eq!(order(&waiters, b"k"), expected);
        for (ticket, _) in model {
            waiters.remove(0, Awaited::List, AT, b"k", ticket);
        }
        assert!(waiters.is_empty());
    }
}
