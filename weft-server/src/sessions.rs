//! The sessions of one worker, found by the slot of their connection.

use std::os::fd::OwnedFd;

use weft_engine::config::OutputLimit;
use weft_engine::session::Session;
use weft_reactor::{ConnectionId, Filter};

/// A connection and its session.
pub struct Connected {
    /// The connection.
    pub id: ConnectionId,
    /// What it is to the engine.
    pub session: Session,
    /// When bytes last went in or out, on the scale of the driver's clock.
    pub active_ns: u64,
    /// How long its replies have been waiting.
    pub backlog: Backlog,
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

/// Watches the unsent output of one connection.
#[derive(Default)]
pub struct Backlog {
    over_soft_since_ns: Option<u64>,
}

impl Backlog {
    /// Whether unsent output of this size has to end the connection.
    pub fn exceeds(&mut self, limit: &OutputLimit, pending_bytes: usize, now_ns: u64) -> bool {
        let above = |bytes: u64| bytes > 0 && pending_bytes as u64 >= bytes;
        if above(limit.hard_bytes) {
            return true;
        }
        if !above(limit.soft_bytes) {
            self.over_soft_since_ns = None;
            return false;
        }
        let since_ns = *self.over_soft_since_ns.get_or_insert(now_ns);
        let allowed_ns = u64::try_from(limit.soft_seconds).unwrap_or(0) * 1_000_000_000;
        now_ns.saturating_sub(since_ns) > allowed_ns
    }
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn limit(hard_bytes: u64, soft_bytes: u64, soft_seconds: i32) -> OutputLimit {
        OutputLimit {
            hard_bytes,
            soft_bytes,
            soft_seconds,
        }
    }

    #[test]
    fn the_hard_limit_counts_at_once_and_zero_is_no_limit() {
        let mut backlog = Backlog::default();
        assert!(!backlog.exceeds(&limit(100, 0, 0), 99, 1));
        assert!(backlog.exceeds(&limit(100, 0, 0), 100, 1));
        assert!(!backlog.exceeds(&limit(0, 0, 0), usize::MAX, 1));
    }

    #[test]
    fn the_soft_limit_counts_after_its_time_without_a_break() {
        let mut backlog = Backlog::default();
        let soft = limit(0, 100, 10);
        assert!(!backlog.exceeds(&soft, 100, 5 * SECOND_NS));
        assert!(!backlog.exceeds(&soft, 100, 15 * SECOND_NS));
        assert!(!backlog.exceeds(&soft, 99, 15 * SECOND_NS));
        assert!(!backlog.exceeds(&soft, 100, 16 * SECOND_NS));
        assert!(!backlog.exceeds(&soft, 200, 26 * SECOND_NS));
        assert!(backlog.exceeds(&soft, 200, 26 * SECOND_NS + 1));
    }
}
