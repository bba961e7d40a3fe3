//! The table of one driver's connections: slots with generations.
//!
//! Does not know what a driver keeps per connection. Invariant: an id finds its connection or nothing, never the
//! connection that took the slot over.

use crate::driver::ConnectionId;

/// Connections of type `C`, found by id.
pub(crate) struct Connections<C> {
    slots: Vec<Slot<C>>,
    free: Vec<u32>,
}

struct Slot<C> {
    generation: u32,
    connection: Option<C>,
}

/// Slot numbers from here on are not given to connections, so that drivers can tag other sources of events with them.
const SLOTS_MAX: u32 = 1 << 31;

impl<C> Connections<C> {
    pub(crate) fn new() -> Connections<C> {
        Connections {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Connections in the table.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, connection: C) -> ConnectionId {
        let slot = self.free.pop().unwrap_or_else(|| {
            assert!(
                self.slots.len() < SLOTS_MAX as usize,
                "more connections than descriptors can exist"
            );
            self.slots.push(Slot {
                generation: 1,
                connection: None,
            });
            (self.slots.len() - 1) as u32
        });
        let entry = &mut self.slots[slot as usize];
        entry.connection = Some(connection);
        ConnectionId::new(slot, entry.generation)
    }

    /// Those of all connections in the table.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnectionId> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter(|(_, slot)| slot.connection.is_some())
            .map(|(number, slot)| ConnectionId::new(number as u32, slot.generation))
    }

    #[inline]
    pub(crate) fn find(&self, id: ConnectionId) -> Option<&C> {
        let slot = self.slots.get(id.slot())?;
        if slot.generation == id.generation() {
            slot.connection.as_ref()
        } else {
            None
        }
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, id: ConnectionId) -> Option<&mut C> {
        let slot = self.slots.get_mut(id.slot())?;
        if slot.generation == id.generation() {
            slot.connection.as_mut()
        } else {
            None
        }
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<C> {
        let slot = self.slots.get_mut(id.slot())?;
        if slot.generation != id.generation() {
            return None;
        }
        let connection = slot.connection.take()?;
        // Zero is skipped, so that no id is ever zero.
        slot.generation = slot.generation.wrapping_add(1).max(1);
        self.free.push(id.slot() as u32);
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_id_does_not_find_the_slot_s_next_connection() {
        let mut connections = Connections::new();
        let first = connections.insert("first");
        assert_eq!(connections.remove(first), Some("first"));
        let second = connections.insert("second");
        assert_eq!(second.slot(), first.slot());
        assert_ne!(second, first);
        assert_eq!(connections.find(first), None);
        assert_eq!(connections.remove(first), None);
        assert_eq!(connections.find(second), Some(&"second"));
        assert_eq!(connections.len(), 1);
    }

    #[test]
    fn ids_survive_a_round_trip_through_bits() {
        let id = ConnectionId::new(3, 9);
        assert_eq!((id.slot(), id.generation()), (3, 9));
        assert_eq!(ConnectionId::from_bits(id.to_bits()), id);
    }
}
