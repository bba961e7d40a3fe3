//! A consumer group: how far it has read, its consumers, and what they were given and have not acknowledged.
//!
//! Every pending entry stands twice: in the group's list, with all that is known of it, and among the ids of its consumer. Invariants:
//! the two say the same, and a consumer that a pending entry names exists.

use std::hash::Hasher;
use std::sync::Arc;

use super::Id;
use super::rows::{Row, Rows};

/// The name of a group or a consumer.
pub type Name = Arc<[u8]>;

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    name: Name,
    /// The last entry that was delivered: the next ones come after it.
    pub last_id: Id,
    /// How many entries were added up to that one, if that is known.
    pub entries_read: Option<u64>,
    pending: Rows<Pending>,
    consumers: Rows<Consumer>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Which one.
    pub id: Id,
    /// Whom it was delivered to last.
    pub consumer: Name,
    /// When, in milliseconds since 1970.
    pub delivered_ms: i64,
    /// How often.
    pub deliveries: u64,
}

/// Who reads on behalf of a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Name,
    /// When it last asked, in milliseconds since 1970.
    pub seen_ms: i64,
    /// When it was last given something, if ever.
    pub active_ms: Option<i64>,
    pending: Rows<PendingId>,
}

#[derive(Clone, Copy, Debug)]
struct PendingId(Id);

impl Row for Pending {
    type Key = Id;
    const ROOM: usize = 64;

    fn key(&self) -> &Id {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Row for PendingId {
    type Key = Id;
    const ROOM: usize = 128;

    fn key(&self) -> &Id {
        &self.0
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Row for Consumer {
    type Key = Name;
    const ROOM: usize = 16;

    fn key(&self) -> &Name {
        &self.name
    }

    fn heap_bytes(&self) -> usize {
        name_bytes(&self.name) + self.pending.allocated_bytes()
    }
}

impl Row for Group {
    type Key = Name;
    const ROOM: usize = 16;

    fn key(&self) -> &Name {
        &self.name
    }

    fn heap_bytes(&self) -> usize {
        name_bytes(&self.name) + self.pending.allocated_bytes() + self.consumers.allocated_bytes()
    }
}

fn name_bytes(name: &Name) -> usize {
    2 * size_of::<usize>() + name.len()
}

impl Consumer {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// How many entries are pending with it.
    #[must_use]
    pub fn pending_len(&self) -> u64 {
        self.pending.len()
    }

    /// The ids of its pending entries from this one on.
    pub fn pending_ids(&self, from: Id) -> impl Iterator<Item = Id> {
        let index = self.pending.place(&from).unwrap_or_else(|index| index);
        self.pending.from(index).map(|row| row.0)
    }
}

impl Group {
    /// A group without consumers.
    #[must_use]
    pub fn new(name: &[u8], last_id: Id, entries_read: Option<u64>) -> Self {
        Self {
            name: name.into(),
            last_id,
            entries_read,
            pending: Rows::default(),
            consumers: Rows::default(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// How many consumers there are.
    #[must_use]
    pub fn consumers_len(&self) -> u64 {
        self.consumers.len()
    }

    /// The consumers, in the order of their names.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.consumers.iter()
    }

    /// The consumers from one index of that order on.
    pub fn consumers_from(&self, index: u64) -> impl Iterator<Item = &Consumer> {
        self.consumers.from(index)
    }

    /// The consumer of that name.
    #[must_use]
    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.consumers.get(name)
    }

    /// How many entries are pending.
    #[must_use]
    pub fn pending_len(&self) -> u64 {
        self.pending.len()
    }

    /// The entry with this id, if it is pending.
    #[must_use]
    pub fn pending(&self, id: Id) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// The pending entries from this id on.
    pub fn pending_from(&self, from: Id) -> impl Iterator<Item = &Pending> {
        let index = self.pending.place(&from).unwrap_or_else(|index| index);
        self.pending.from(index)
    }

    /// The last pending entry.
    #[must_use]
    pub fn last_pending(&self) -> Option<&Pending> {
        self.pending.last()
    }

    /// Whether an entry is pending, or is yet to be delivered.
    #[must_use]
    pub fn needs(&self, id: Id) -> bool {
        id > self.last_id || self.pending.get(&id).is_some()
    }

    /// Makes a consumer unless there is one; whether it did.
    pub fn add_consumer(&mut self, name: &[u8], now_ms: i64) -> bool {
        if self.consumers.get(name).is_some() {
            return false;
        }
        self.consumers.put(Consumer {
            name: name.into(),
            seen_ms: now_ms,
            active_ms: None,
            pending: Rows::default(),
        });
        true
    }

    /// Removes a consumer with all that is pending with it, and says how much that was; none if there is no such consumer.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<u64> {
        let consumer = self.consumers.remove(name)?;
        for row in consumer.pending.iter() {
            self.pending.remove(&row.0);
        }
        Some(consumer.pending.len())
    }

    /// Notes that a consumer has asked, and whether it was given something.
    pub fn note_consumer(&mut self, name: &[u8], now_ms: i64, active: bool) {
        self.consumers.edit(name, |consumer| {
            consumer.seen_ms = now_ms;
            if active {
                consumer.active_ms = Some(now_ms);
            }
        });
    }

    /// Notes that entries, in ascending order, were delivered to a consumer for the first time. Those that were pending
    /// already are pending with this one from now on.
    pub fn deliver(&mut self, consumer: &[u8], ids: &[Id], now_ms: i64) {
        let Some(name) = self
            .consumer(consumer)
            .map(|consumer| consumer.name.clone())
        else {
            return;
        };
        // Most are new ones, behind all others.
        let last = self.pending.last().map(|last| last.id);
        let again = ids.partition_point(|id| last.is_some_and(|last| *id <= last));
        let (again, new) = ids.split_at(again);
        for id in again {
            self.assign(*id, consumer, now_ms, 1);
        }
        self.pending.append(new.iter().map(|id| Pending {
            id: *id,
            consumer: name.clone(),
            delivered_ms: now_ms,
            deliveries: 1,
        }));
        self.consumers.edit(consumer, |consumer| {
            consumer.pending.append(new.iter().copied().map(PendingId));
        });
    }

    /// Makes an entry pending with a consumer, which exists, or changes what is known of it.
    pub fn assign(&mut self, id: Id, consumer: &[u8], delivered_ms: i64, deliveries: u64) {
        let Some(name) = self
            .consumer(consumer)
            .map(|consumer| consumer.name.clone())
        else {
            return;
        };
        let owned = self.pending.edit(&id, |pending| {
            pending.delivered_ms = delivered_ms;
            pending.deliveries = deliveries;
            pending.consumer == name
        });
        match owned {
            Some(true) => return,
            Some(false) => {
                self.disown(id);
                self.pending.edit(&id, |pending| pending.consumer = name);
            }
            None => self.pending.put(Pending {
                id,
                consumer: name,
                delivered_ms,
                deliveries,
            }),
        }
        self.consumers
            .edit(consumer, |consumer| consumer.pending.put(PendingId(id)));
    }

    /// Takes an id from among those of its consumer.
    fn disown(&mut self, id: Id) {
        if let Some(pending) = self.pending.get(&id) {
            let owner = pending.consumer.clone();
            self.consumers
                .edit(&*owner, |consumer| consumer.pending.remove(&id));
        }
    }

    /// An entry is pending no more; whether it was.
    pub fn acknowledge(&mut self, id: Id) -> bool {
        let Some(pending) = self.pending.remove(&id) else {
            return false;
        };
        self.consumers
            .edit(&*pending.consumer, |consumer| consumer.pending.remove(&id));
        true
    }

    /// When consumers asked and were given something is left out: a copy of the data may know other times.
    pub(super) fn digest(&self, hasher: &mut impl Hasher) {
        let text = |hasher: &mut _, text: &[u8]| {
            Hasher::write_usize(hasher, text.len());
            Hasher::write(hasher, text);
        };
        text(hasher, &self.name);
        self.last_id.digest(hasher);
        hasher.write_u64(self.entries_read.map_or(0, |read| read + 1));
        hasher.write_u64(self.pending.len());
        for pending in self.pending.iter() {
            pending.id.digest(hasher);
            text(hasher, &pending.consumer);
            hasher.write_i64(pending.delivered_ms);
            hasher.write_u64(pending.deliveries);
        }
        hasher.write_u64(self.consumers.len());
        for consumer in self.consumers.iter() {
            text(hasher, &consumer.name);
            hasher.write_u64(consumer.pending.len());
        }
    }
}
