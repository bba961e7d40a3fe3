//! The seam between a connection's plain bytes and what is on its wire, where TLS sits.
//!
//! Owns the trait and the wire bytes a filtered connection has yet to send. Knows no driver and no socket.

use std::io;

use weft_rope::Output;

use crate::driver::{ConnectionId, Driver, Handler};

/// Translates one connection's bytes in both directions. It keeps incomplete records itself and does no I/O.
pub trait Filter: Send {
    /// Takes all of `wire`, as received. Appends what it says to `plain`, and what the filter itself has to answer
    /// (a handshake, an alert) to `reply`. An error ends the connection, after one attempt to send `reply`.
    fn inbound(&mut self, wire: &[u8], plain: &mut Vec<u8>, reply: &mut Vec<u8>) -> io::Result<()>;

    /// Translates output: takes up to about `room` bytes off the front of `plain` and appends their wire form. It may
    /// take none (a handshake in progress); it is asked again whenever something has arrived. Called once right after
    /// the connection was adopted, with empty output, so that a client's filter can speak first.
    fn outbound(&mut self, plain: &mut Output, room: usize, wire: &mut Vec<u8>) -> io::Result<()>;

    /// Says goodbye, once, after all output was translated and before an orderly close.
    fn finish(&mut self, wire: &mut Vec<u8>) {
        let _ = wire;
    }

    /// True once the peer has said, inside the filter's own protocol, that nothing follows.
    fn input_ended(&self) -> bool {
        false
    }
}

/// A filter and its translated bytes on their way out.
pub(crate) struct Filtered {
    pub(crate) filter: Box<dyn Filter>,
    /// Wire bytes; the first `sent` have left.
    wire: Vec<u8>,
    sent: usize,
    pub(crate) finished: bool,
}

/// Wire bytes prepared ahead of the socket, and translated in one go. Bounds the memory of a slow reader to its plain
/// output, and is four TLS records.
const WIRE_AHEAD: usize = 64 << 10;

/// The most memory of an emptied wire buffer that is passed on to the next connection.
const WIRE_KEPT: usize = 256 << 10;

impl Filtered {
    pub(crate) fn new(filter: Box<dyn Filter>) -> Filtered {
        Filtered {
            filter,
            wire: Vec::new(),
            sent: 0,
            finished: false,
        }
    }

    /// Wire bytes not yet sent.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.wire[self.sent..]
    }

    /// Where the filter's own answers go.
    pub(crate) fn inbound(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        self.filter.inbound(wire, plain, &mut self.wire)
    }

    /// Translates more output while little is waiting, in the memory of `spare` if this one has none. `last`: nothing
    /// will follow, say goodbye when all is translated.
    pub(crate) fn translate(
        &mut self,
        plain: &mut Output,
        last: bool,
        spare: &mut Vec<u8>,
    ) -> io::Result<()> {
        if self.wire.capacity() == 0 {
            std::mem::swap(&mut self.wire, spare);
        }
        let waiting = self.wire.len() - self.sent;
        if waiting < WIRE_AHEAD {
            self.filter
                .outbound(plain, WIRE_AHEAD - waiting, &mut self.wire)?;
        }
        if last && plain.is_empty() && !self.finished {
            self.finished = true;
            self.filter.finish(&mut self.wire);
        }
        Ok(())
    }

    /// The socket took `count` bytes. When that was all, the memory goes to `spare`: a connection with nothing to send
    /// holds none.
    pub(crate) fn advance(&mut self, count: usize, spare: &mut Vec<u8>) {
        self.sent += count;
        if self.sent == self.wire.len() {
            self.sent = 0;
            let mut wire = std::mem::take(&mut self.wire);
            if wire.capacity() > spare.capacity() && wire.capacity() <= WIRE_KEPT {
                wire.clear();
                *spare = wire;
            }
        } else if self.sent >= WIRE_AHEAD {
            self.wire.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// Hands out what a filter has translated, into the session's own memory where it wants that. Once the connection is
/// closing, only the filter itself still listens.
pub(crate) fn hand_out<D: Driver, H: Handler<D>>(
    io: &mut D,
    handler: &mut H,
    id: ConnectionId,
    mut plain: &mut [u8],
) {
    while !plain.is_empty() && io.is_open(id) {
        match handler
            .receive_target(id)
            .filter(|target| !target.is_empty())
        {
            Some(target) => {
                let count = target.len().min(plain.len());
                target[..count].copy_from_slice(&plain[..count]);
                plain = &mut plain[count..];
                handler.received_direct(io, id, count);
            }
            None => return handler.received(io, id, plain),
        }
    }
}
