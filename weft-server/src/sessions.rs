//! The sessions of one worker, found by the slot of their connection.

use std::os::fd::OwnedFd;

use weft_engine::session::Session;
use weft_reactor::{ConnectionId, Filter, TimerId};

/// A connection and its session.
pub struct Connected {
    /// The connection.
    pub id: ConnectionId,
    /// What it is to the engine.
    pub session: Session,
    /// When bytes last went in or out, on the scale of the driver's clock.
    pub active_ns: u64,
    /// The peer will send nothing more, and is owed replies.
    pub input_ended: bool,
    /// Ends the wait of its last command.
    pub wait_end: Option<TimerId>,
    /// The worker it is on its way to.
    pub leaving_for: Option<usize>,
}

/// A connection between two workers: nothing is in flight on its socket, and nobody reads it.
pub struct Departed {
    /// The socket.
    pub socket: OwnedFd,
    /// What its bytes pass through.
    pub filter: Option<Box<dyn Filter>>,
    /// The rest of it. The id was the old worker's.
    pub connected: Box<Connected>,
}

/// Sessions by slot. A lookup with the id of a connection that is gone finds nothing.
#[derive(Default)]
pub struct Sessions {
    slots: Vec<Option<Box<Connected>>>,
}

impl Sessions {
    /// Adds one.
    pub fn insert(&mut self, connected: Box<Connected>) {
        let slot = connected.id.slot();
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some(connected);
    }

    /// The session of a connection.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connected> {
        self.at_slot(id.slot())
            .filter(|connected| connected.id == id)
    }

    /// Takes one out.
    pub fn remove(&mut self, id: ConnectionId) -> Option<Box<Connected>> {
        self.get_mut(id)?;
        self.slots[id.slot()].take()
    }

    /// How many slots there are, used or not.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The session in a slot.
    pub fn at_slot(&mut self, slot: usize) -> Option<&mut Connected> {
        self.slots.get_mut(slot)?.as_deref_mut()
    }

    /// All connections.
    pub fn ids(&self) -> impl Iterator<Item = ConnectionId> {
        self.slots.iter().flatten().map(|connected| connected.id)
    }

    /// When bytes last went in or out, of every connection that may not be idle for ever.
    pub fn active_ns(&self) -> impl Iterator<Item = u64> {
        let connections = self.slots.iter().flatten();
        connections
            .filter(|connected| !connected.session.may_idle())
            .map(|connected| connected.active_ns)
    }
}
