//! What a completion belongs to: the 64 bits that accompany an operation through the kernel.
//!
//! ```text
//!  bits 63..60  59..32      31..0
//!  kind         slot        generation of the connection     RECEIVE, WATCH
//!               flight      0                                SEND (the flight knows its connection)
//!               number      0                                LISTENER
//!               0           0                                BELL, CANCEL
//! ```
//!
//! Two operations in flight never have the same bits, cancellations apart: a connection has at most one of each kind, and
//! its slot stays its own until the last of them has completed.

use crate::driver::{ConnectionId, ListenerId};

/// One operation, as its completion names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    /// The multishot receive of a connection.
    Receive(ConnectionId),
    /// The send of the flight with this number.
    Send(u32),
    /// The multishot poll for the end of a connection.
    Watch(ConnectionId),
    /// The poll of a listener.
    Listener(ListenerId),
    /// The multishot poll of the bell.
    Bell,
    /// The cancellation of another operation. Only its target's own completion means anything.
    Cancel,
}

const RECEIVE: u64 = 1;
const SEND: u64 = 2;
const WATCH: u64 = 3;
const LISTENER: u64 = 4;
const BELL: u64 = 5;
const CANCEL: u64 = 6;

/// Slots, flights and listeners there can be: more than descriptors.
pub(super) const NUMBERS: usize = 1 << 28;

impl Operation {
    pub(super) fn to_bits(self) -> u64 {
        let (kind, number, generation) = match self {
            Operation::Receive(id) => (RECEIVE, id.slot() as u32, id.generation()),
            Operation::Send(flight) => (SEND, flight, 0),
            Operation::Watch(id) => (WATCH, id.slot() as u32, id.generation()),
            Operation::Listener(id) => (LISTENER, id.0, 0),
            Operation::Bell => (BELL, 0, 0),
            Operation::Cancel => (CANCEL, 0, 0),
        };
        debug_assert!((number as usize) < NUMBERS);
        kind << 60 | u64::from(number) << 32 | u64::from(generation)
    }

    /// The inverse of [`Operation::to_bits`]. None: bits that no operation has.
    pub(super) fn from_bits(bits: u64) -> Option<Operation> {
        let number = (bits >> 32) as u32 & (NUMBERS as u32 - 1);
        let id = ConnectionId::new(number, bits as u32);
        Some(match bits >> 60 {
            RECEIVE => Operation::Receive(id),
            SEND => Operation::Send(number),
            WATCH => Operation::Watch(id),
            LISTENER => Operation::Listener(ListenerId(number)),
            BELL => Operation::Bell,
            CANCEL => Operation::Cancel,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_survive_a_round_trip_through_bits() {
        let id = ConnectionId::new(NUMBERS as u32 - 1, u32::MAX);
        let operations = [
            Operation::Receive(id),
            Operation::Send(NUMBERS as u32 - 1),
            Operation::Watch(id),
            Operation::Listener(ListenerId(7)),
            Operation::Bell,
            Operation::Cancel,
        ];
        for operation in operations {
            assert_eq!(Operation::from_bits(operation.to_bits()), Some(operation));
        }
        assert_eq!(Operation::from_bits(0), None);
    }
}
