//! Receiving: from the completions of multishot receives to the handler's callbacks.
//!
//! A connection's bytes go out in the order they came, through a queue of their own as soon as something has to wait: its
//! share of the turn is used up, or nobody wants them yet. Those of connections with nothing waiting are gathered and
//! handed out in groups.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use arrayvec::ArrayVec;
use rustix::io::Errno;
use rustix::net::sockopt;

use super::buffers::Buffer;
use super::ring::Completion;
use super::tag::Operation;
use super::{Connection, Flow, Phase, State, UringDriver};
use crate::driver::{ConnectionId, Delivery, GROUP_MAX, Handler};
use crate::filter::hand_out;

/// The most memory kept for what a filter makes of received bytes.
const PLAIN_KEPT: usize = 256 << 10;

/// Buffers one connection may hold while its receive goes on. Beyond that it is stopped until they are used up: a pass of
/// the kernel brings up to 32.
const HELD_WHILE_RECEIVING: usize = 4;

/// Received bytes that wait.
pub(super) enum Piece {
    Lent(Buffer),
    /// Copied, so that the buffer can be used by others; and how many have been handed out.
    Copied(Vec<u8>, usize),
}

impl Piece {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Piece::Lent(buffer) => buffer.bytes(),
            Piece::Copied(bytes, start) => &mut bytes[*start..],
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Piece::Lent(buffer) => buffer.advance(count),
            Piece::Copied(_, start) => *start += count,
        }
    }
}

/// What follows the received bytes.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// The peer will send nothing more.
    Orderly,
    Failed(Errno),
}

impl UringDriver {
    /// A receive has brought bytes, or has ended.
    pub(super) fn received<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        id: ConnectionId,
        completion: Completion,
    ) {
        let outcome = completion.outcome();
        let Some(connection) = self.connections.find_mut(id) else {
            return self.give_back(completion.buffer);
        };
        if !completion.more {
            connection.receive = Flow::Still;
        }
        let wanted = match connection.phase {
            Phase::Open | Phase::Releasing => !connection.state.input_ended,
            Phase::Flushing => connection.filter.is_some(),
            Phase::Ended(_) => false,
        };
        if !wanted {
            self.give_back(completion.buffer);
            return self.conclude(id);
        }
        match outcome {
            Ok(0) => {
                connection.end = Some(End::Orderly);
                self.give_back(completion.buffer);
            }
            Ok(_) => {
                let Some(buffer) = completion.buffer else {
                    unreachable!("received bytes are in a buffer");
                };
                if completion.more {
                    self.doubt(id);
                } else {
                    // It is started again at the end of the turn, if it is to be.
                    self.plan(id);
                }
                return self.arrive(handler, id, buffer);
            }
            Err(error) => {
                match error {
                    Errno::NOBUFS if !connection.state.in_starved => {
                        connection.state.in_starved = true;
                        self.starved.push_back(id);
                    }
                    Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN => self.plan(id),
                    _ => connection.end = Some(End::Failed(error)),
                }
                self.give_back(completion.buffer);
            }
        }
        self.deliver_group(handler);
        self.deliver(handler, id);
    }

    /// Bytes have come: hands them out with others, at once, or later.
    fn arrive<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId, buffer: Buffer) {
        if self
            .connections
            .find(id)
            .is_some_and(|it| it.state.in_group)
        {
            self.deliver_group(handler);
        }
        let turn = self.turn;
        let Some(connection) = self.connections.find_mut(id) else {
            return self.give_back(Some(buffer));
        };
        if connection.has_ended() {
            return self.give_back(Some(buffer));
        }
        let nothing_waits = connection.input.is_empty() && !connection.state.in_receive_again;
        if nothing_waits && connection.filter.is_none() && connection.wants_input() {
            connection.begin_share(turn);
            if connection.share + buffer.len() <= self.options.receive_buffer
                && handler.receive_target(id).is_none_or(|it| it.is_empty())
            {
                connection.state.in_group = true;
                self.group.push((id, buffer));
                if self.group.len() == GROUP_MAX {
                    self.deliver_group(handler);
                }
                return;
            }
        }
        connection.input.push_back(Piece::Lent(buffer));
        let wanted = connection.wants_input();
        if connection.input.len() > HELD_WHILE_RECEIVING {
            self.stop_receive(id);
        }
        if nothing_waits || !wanted {
            self.deliver_group(handler);
            self.deliver(handler, id);
        }
    }

    /// Hands out what was gathered.
    pub(super) fn deliver_group<H: Handler<Self>>(&mut self, handler: &mut H) {
        if self.group.is_empty() {
            return;
        }
        let mut group = std::mem::take(&mut self.group);
        let mut index = 0;
        while let Some(&(id, _)) = group.get(index) {
            let connection = self.connections.find_mut(id);
            if let Some(connection) = connection {
                connection.state.in_group = false;
                if connection.wants_input() {
                    let bytes = group[index].1.len();
                    connection.share += bytes;
                    self.count_received(bytes);
                    index += 1;
                    continue;
                }
            }
            // A callback has paused or closed it since.
            let (_, buffer) = group.remove(index);
            match self.connections.find_mut(id) {
                Some(connection) if connection.is_open() => {
                    connection.input.push_front(Piece::Lent(buffer));
                    self.plan_receive(id);
                }
                _ => self.give_back(Some(buffer)),
            }
        }
        if !group.is_empty() {
            let mut deliveries: ArrayVec<Delivery<'_>, GROUP_MAX> = group
                .iter_mut()
                .map(|(connection, buffer)| Delivery {
                    connection: *connection,
                    data: buffer.bytes(),
                })
                .collect();
            handler.received_group(self, &mut deliveries);
        }
        for (_, buffer) in group.drain(..) {
            self.ring.buffers.give_back(buffer);
        }
        self.group = group;
    }

    /// Hands out what the connections left over from the last turn hold.
    pub(super) fn receive_leftovers<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        mut leftovers: Vec<ConnectionId>,
    ) {
        for id in leftovers.drain(..) {
            if let Some(connection) = self.connections.find_mut(id) {
                connection.state.in_receive_again = false;
                self.deliver(handler, id);
            }
        }
        self.spare_list = leftovers;
        if self.ring.buffers.are_scarce() {
            // Those that hold several get copies instead.
            for index in 0..self.receive_again.len() {
                self.copy_input(self.receive_again[index], HELD_WHILE_RECEIVING);
            }
        }
    }

    /// Notes that the next turn hands out what this connection holds.
    pub(super) fn plan_receive(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && !connection.state.in_receive_again
        {
            connection.state.in_receive_again = true;
            self.receive_again.push(id);
        }
    }

    /// Hands out what the connection holds, as far as it is wanted and the share of this turn goes, and then its end.
    fn deliver<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId) {
        loop {
            let turn = self.turn;
            let Some(connection) = self.connections.find_mut(id) else {
                return;
            };
            if !connection.wants_input() {
                return self.keep(handler, id);
            }
            connection.begin_share(turn);
            let (share, direct_share) = (connection.share, connection.direct_share);
            let Some(mut piece) = connection.input.pop_front() else {
                break;
            };
            let filtered = connection.filter.is_some();
            let bytes = piece.bytes();
            let target = if filtered {
                None
            } else {
                handler
                    .receive_target(id)
                    .filter(|target| !target.is_empty())
            };
            let taken = if let Some(target) = target {
                let count = bytes
                    .len()
                    .min(target.len())
                    .min(self.options.direct_share.saturating_sub(direct_share));
                target[..count].copy_from_slice(&bytes[..count]);
                connection.direct_share += count;
                if count > 0 {
                    self.count_received(count);
                    handler.received_direct(self, id, count);
                }
                count
            } else {
                let count = bytes
                    .len()
                    .min(self.options.receive_buffer.saturating_sub(share));
                connection.share += count;
                if count > 0 {
                    self.count_received(count);
                    if filtered {
                        self.deliver_filtered(handler, id, &bytes[..count]);
                    } else {
                        handler.received(self, id, &mut bytes[..count]);
                    }
                }
                count
            };
            piece.advance(taken);
            let used_up = taken == 0;
            if !piece.bytes().is_empty()
                && let Some(connection) = self.connections.find_mut(id)
                && !connection.has_ended()
            {
                connection.input.push_front(piece);
                if used_up {
                    return self.plan_receive(id);
                }
            } else if let Piece::Lent(buffer) = piece {
                self.give_back(Some(buffer));
            }
        }
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        match connection.end {
            Some(End::Orderly) if matches!(connection.phase, Phase::Releasing) => {
                // Whoever gets the socket will see that too.
                self.conclude(id);
            }
            Some(End::Orderly) => self.end_input(handler, id),
            Some(End::Failed(error)) => self.fail(id, error.into()),
            None => {
                self.conclude(id);
                self.plan_input(id);
            }
        }
    }

    /// A connection that takes no input holds some, or its end: keeps it, and looks whether the peer left.
    fn keep<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        if !matches!(connection.phase, Phase::Open) {
            // Nobody will want it: the filter has let the last output through.
            self.stop_receive(id);
            self.drop_input(id);
            return self.conclude(id);
        }
        match connection.end {
            Some(End::Failed(error)) => return self.fail(id, error.into()),
            Some(End::Orderly) => connection.state.peer_ended = true,
            None => {}
        }
        if !connection.input.is_empty() {
            self.copy_input(id, 0);
            self.stop_receive(id);
        }
        self.plan(id);
        self.notice_hang_up(handler, id);
    }

    /// Gives back the buffers a connection holds beyond the first `kept`, keeping copies.
    fn copy_input(&mut self, id: ConnectionId, kept: usize) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let lent = |piece: &Piece| matches!(piece, Piece::Lent(_));
        if !connection.input.iter().skip(kept).any(lent) {
            return;
        }
        let buffers = &mut self.ring.buffers;
        let mut copied: VecDeque<Piece> = VecDeque::with_capacity(kept + 1);
        for (place, piece) in connection.input.drain(..).enumerate() {
            match piece {
                Piece::Lent(mut buffer) if place >= kept => {
                    let bytes = buffer.bytes();
                    match copied.back_mut() {
                        Some(Piece::Copied(copy, _)) => copy.extend_from_slice(bytes),
                        _ => copied.push_back(Piece::Copied(bytes.to_vec(), 0)),
                    }
                    buffers.give_back(buffer);
                }
                piece => copied.push_back(piece),
            }
        }
        connection.input = copied;
    }

    /// Drops what a connection holds.
    pub(super) fn drop_input(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id) {
            for piece in std::mem::take(&mut connection.input) {
                if let Piece::Lent(buffer) = piece {
                    self.ring.buffers.give_back(buffer);
                }
            }
        }
    }

    fn give_back(&mut self, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer {
            self.ring.buffers.give_back(buffer);
        }
    }

    fn count_received(&mut self, count: usize) {
        self.report.receives += 1;
        self.report.bytes_received += count as u64;
    }

    /// Passes wire bytes through the connection's filter to the handler.
    fn deliver_filtered<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        id: ConnectionId,
        wire: &[u8],
    ) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let Some(wired) = &mut connection.filter else {
            return;
        };
        let mut plain = std::mem::take(&mut self.plain);
        let result = wired.filtered.inbound(wire, &mut plain);
        let ended = wired.filtered.filter.input_ended();
        if !wired.filtered.unsent().is_empty() || !connection.output.is_empty() {
            self.plan(id);
        }
        hand_out(self, handler, id, &mut plain);
        plain.clear();
        if plain.capacity() <= PLAIN_KEPT {
            self.plain = plain;
        }
        match result {
            Ok(()) if ended => self.end_input(handler, id),
            Ok(()) => {}
            Err(error) => self.fail_filter(id, error),
        }
    }

    /// All input was delivered: tells the handler, once.
    fn end_input<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        match connection.phase {
            Phase::Ended(_) => return,
            // The filter was waiting for its peer to let the last output through. That will not happen now.
            Phase::Flushing => return self.finish_orderly(id),
            Phase::Open | Phase::Releasing => {}
        }
        if connection.state.input_ended {
            return;
        }
        connection.state.input_ended = true;
        // Said by the filter, it may stand before the end of the wire's bytes.
        self.stop_receive(id);
        self.drop_input(id);
        self.plan(id);
        handler.end_of_input(self, id);
    }

    /// Something happened at the end of a connection.
    pub(super) fn watched<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        id: ConnectionId,
        completion: &Completion,
    ) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        if !completion.more {
            connection.watch = Flow::Still;
        }
        if let Ok(events) = completion.outcome() {
            let any = |bits: i16| events & (bits as usize) != 0;
            let state = &mut connection.state;
            state.peer_ended |= any(libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR);
            state.dead |= any(libc::POLLHUP);
        }
        if connection.has_ended() {
            return self.conclude(id);
        }
        if !completion.more {
            self.plan(id);
        }
        self.notice_hang_up(handler, id);
        self.conclude(id);
    }

    /// Looks whether the peer of a connection that takes no input has left.
    fn notice_hang_up<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let receives = connection.receive == Flow::Going;
        if receives || connection.has_ended() || !connection.state.peer_ended {
            // A receive will tell.
            return;
        }
        if connection.state.dead
            && let Ok(Err(error)) = sockopt::socket_error(&connection.socket)
        {
            return self.fail(id, error.into());
        }
        let State {
            input_ended,
            dead,
            paused,
            hang_up_told,
            ..
        } = connection.state;
        if input_ended || !matches!(connection.phase, Phase::Open) {
            // Nobody waits for what is unread, and nothing can be sent to a peer that is gone.
            if dead {
                self.finish_orderly(id);
            }
        } else if paused && !hang_up_told {
            connection.state.hang_up_told = true;
            handler.hung_up(self, id);
        }
    }

    /// Starts receiving from a connection that wants it, or watching one that does not.
    pub(super) fn start_input(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        if connection.receive != Flow::Still {
            return;
        }
        if connection.wants_receive() {
            connection.receive = Flow::Going;
            self.ring.receive(id, connection.socket.as_fd());
            self.doubt(id);
        } else if connection.wants_watch() {
            connection.watch = Flow::Going;
            self.ring.watch(id, connection.socket.as_fd());
        }
    }

    /// Notes to start receiving if nothing stands in the way any more.
    fn plan_input(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && connection.receive == Flow::Still
            && connection.wants_receive()
        {
            self.plan(id);
        }
    }

    /// Starts the receives again that found no buffer, as many as there are buffers now.
    pub(super) fn feed_starved(&mut self) {
        self.ring.buffers.serve(self.connections.len());
        for _ in 0..self.starved.len().min(self.ring.buffers.lent()) {
            let Some(id) = self.starved.pop_front() else {
                return;
            };
            if let Some(connection) = self.connections.find_mut(id) {
                connection.state.in_starved = false;
                self.start_input(id);
            }
        }
    }

    /// Ends the receive in flight.
    pub(super) fn stop_receive(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && connection.receive == Flow::Going
        {
            connection.receive = Flow::Ceasing;
            self.ring.cancel(Operation::Receive(id));
        }
    }

    /// Ends what is in flight for the sake of input: the connection is on its way out.
    pub(super) fn stop_receiving(&mut self, id: ConnectionId) {
        self.stop_receive(id);
        if let Some(connection) = self.connections.find_mut(id)
            && connection.watch == Flow::Going
        {
            connection.watch = Flow::Ceasing;
            self.ring.cancel(Operation::Watch(id));
        }
    }
}

impl Connection {
    /// Opens the share of a turn.
    fn begin_share(&mut self, turn: u32) {
        if self.share_of != turn {
            self.share_of = turn;
            self.share = 0;
            self.direct_share = 0;
        }
    }

    fn wants_receive(&self) -> bool {
        !matches!(self.phase, Phase::Releasing)
            && self.wants_input()
            && self.input.is_empty()
            && self.end.is_none()
            && !self.state.in_starved
    }

    fn wants_watch(&self) -> bool {
        matches!(self.phase, Phase::Open)
            && (self.state.paused || self.state.input_ended)
            && self.watch == Flow::Still
            && !self.state.dead
    }
}
