//! Receiving: from a readable connection to the handler's callbacks.

use std::io;
use std::os::fd::OwnedFd;

use arrayvec::ArrayVec;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};

use super::{EpollDriver, State};
use crate::driver::{CloseReason, ConnectionId, Delivery, GROUP_MAX, Handler, TurnReport};
use crate::filter::hand_out;
use crate::timing;

/// The most memory kept for what a filter makes of the receive buffer.
const PLAIN_KEPT: usize = 256 << 10;

/// What one look at a connection came to.
enum Received {
    /// So many bytes, and whether the room for them was filled.
    Bytes {
        count: usize,
        full: bool,
    },
    Nothing,
    End,
    Failed(Errno),
}

impl EpollDriver {
    /// Receives from a connection that has something: into the group if it can be part of one, otherwise until it has no
    /// more, wants no more or has had its share.
    pub(super) fn receive<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId) {
        let Some(connection) = self.connections.find(id) else {
            return;
        };
        if connection.socket.is_none() {
            return;
        }
        if !connection.wants_input() {
            return self.notice_hang_up(handler, id);
        }
        let filtered = connection.filter.is_some();
        let target = |handler: &mut H| handler.receive_target(id).is_some_and(|t| !t.is_empty());
        if filtered || target(handler) {
            self.deliver_group(handler);
            self.receive_alone(handler, id);
        } else {
            self.receive_into_group(handler, id);
        }
    }

    /// One receive whose bytes are delivered with those of other connections.
    fn receive_into_group<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId) {
        if self.group.len() == GROUP_MAX || self.grouped() > self.options.receive_buffer {
            self.deliver_group(handler);
        }
        let start = self.grouped();
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let Some(socket) = &connection.socket else {
            return;
        };
        let room = &mut self.buffer[start..start + self.options.receive_buffer.max(1)];
        let received = timed_recv(&mut self.report, socket, room);
        match received {
            Received::Bytes { count, full } => {
                self.group.push((id, start + count));
                if full || connection.state.peer_ended {
                    self.plan_receive(id);
                } else {
                    // A stream socket that gave less than there was room for has no more: the next byte makes a new edge.
                    connection.state.readable = false;
                }
                self.count_received(count);
            }
            Received::Nothing => connection.state.readable = false,
            Received::End => {
                connection.state.readable = false;
                self.end_input(handler, id);
            }
            Received::Failed(error) => self.fail(id, error.into()),
        }
    }

    /// Bytes of the receive buffer that hold deliveries.
    pub(super) fn grouped(&self) -> usize {
        self.group.last().map_or(0, |&(_, end)| end)
    }

    /// Hands out what has been received into the group.
    pub(super) fn deliver_group<H: Handler<Self>>(&mut self, handler: &mut H) {
        if self.group.is_empty() {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut rest = &mut buffer[..];
        let mut start = 0;
        let mut deliveries: ArrayVec<Delivery<'_>, GROUP_MAX> = ArrayVec::new();
        for (connection, end) in self.group.drain(..) {
            let data;
            (data, rest) = rest.split_at_mut(end - start);
            start = end;
            deliveries.push(Delivery { connection, data });
        }
        handler.received_group(self, &mut deliveries);
        drop(deliveries);
        self.buffer = buffer;
    }

    /// Receives until the connection has no more, wants no more or has had its share, and delivers as it goes.
    fn receive_alone<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId) {
        let mut direct = 0;
        loop {
            let Some(connection) = self.connections.find_mut(id) else {
                return;
            };
            let Some(socket) = &connection.socket else {
                return;
            };
            if !connection.wants_input() {
                return self.notice_hang_up(handler, id);
            }
            let mut used_up = false;
            let received = if connection.filter.is_some() {
                let room = &mut self.buffer[..self.options.receive_buffer.max(1)];
                let received = timed_recv(&mut self.report, socket, room);
                if let Received::Bytes { count, .. } = received {
                    self.count_received(count);
                    used_up = true;
                    self.deliver_filtered(handler, id, count);
                }
                received
            } else if let Some(target) = handler
                .receive_target(id)
                .filter(|target| !target.is_empty())
            {
                let received = timed_recv(&mut self.report, socket, target);
                if let Received::Bytes { count, .. } = received {
                    self.count_received(count);
                    direct += count;
                    used_up = direct >= self.options.direct_share;
                    handler.received_direct(self, id, count);
                }
                received
            } else {
                // The large piece is complete; what follows is delivered as usual.
                return self.receive_into_group(handler, id);
            };
            let Some(connection) = self.connections.find_mut(id) else {
                return;
            };
            match received {
                // The end of the stream, once reported, makes no new edge.
                Received::Bytes { full: false, .. } if !connection.state.peer_ended => {
                    connection.state.readable = false;
                    return;
                }
                Received::Bytes { full: true, .. } if used_up => return self.plan_receive(id),
                Received::Bytes { .. } => {}
                Received::Nothing => {
                    connection.state.readable = false;
                    return;
                }
                Received::End => {
                    connection.state.readable = false;
                    return self.end_input(handler, id);
                }
                Received::Failed(error) => return self.fail(id, error.into()),
            }
        }
    }

    /// Receives from the connections left over from the last turn.
    pub(super) fn receive_leftovers<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        mut leftovers: Vec<ConnectionId>,
    ) {
        for id in leftovers.drain(..) {
            if let Some(connection) = self.connections.find_mut(id) {
                connection.state.in_receive_again = false;
                self.receive(handler, id);
            }
        }
        self.deliver_group(handler);
        self.spare_list = leftovers;
    }

    /// Notes that the next turn looks at this connection, whether it has an event or not.
    pub(super) fn plan_receive(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && !connection.state.in_receive_again
        {
            connection.state.in_receive_again = true;
            self.receive_again.push(id);
        }
    }

    fn count_received(&mut self, count: usize) {
        self.report.receives += 1;
        self.report.bytes_received += count as u64;
    }

    /// Passes the first `count` bytes of the receive buffer through the connection's filter to the handler.
    fn deliver_filtered<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        id: ConnectionId,
        count: usize,
    ) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let Some(filtered) = &mut connection.filter else {
            return;
        };
        let mut plain = std::mem::take(&mut self.plain);
        let result = filtered.inbound(&self.buffer[..count], &mut plain);
        let ended = filtered.filter.input_ended();
        if !filtered.unsent().is_empty() || !connection.output.is_empty() {
            self.plan_output(id);
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
        if connection.socket.is_none() {
            return;
        }
        if connection.state.close_after_flush {
            // The filter was waiting for its peer to let the last output through. That will not happen now.
            return self.finish_orderly(id);
        }
        connection.state.input_ended = true;
        handler.end_of_input(self, id);
    }

    /// A connection that takes no input has an event: looks whether the peer left.
    fn notice_hang_up<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let Some(socket) = &connection.socket else {
            return;
        };
        let state = &mut connection.state;
        if !state.peer_ended {
            return;
        }
        if state.dead
            && let Ok(Err(error)) = sockopt::socket_error(socket)
        {
            return self.fail(id, error.into());
        }
        if state.input_ended || state.close_after_flush || state.releasing {
            // Nobody waits for what is unread, and nothing can be sent to a peer that is gone.
            if state.dead {
                self.finish_orderly(id);
            }
        } else if !state.hang_up_told {
            state.hang_up_told = true;
            handler.hung_up(self, id);
        }
    }

    /// Ends a connection whose end was asked for: by this side, or by the peer if it was first.
    pub(super) fn finish_orderly(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.find(id) else {
            return;
        };
        let State {
            input_ended,
            close_after_flush,
            ..
        } = connection.state;
        let reason = if close_after_flush && !input_ended {
            CloseReason::Local
        } else {
            CloseReason::Peer
        };
        self.finish(id, reason);
    }

    /// The system reported an error on the connection. One that was closing, or whose peer had ended, ends as such.
    pub(super) fn fail(&mut self, id: ConnectionId, error: io::Error) {
        let Some(connection) = self.connections.find(id) else {
            return;
        };
        if connection.state.close_after_flush || connection.state.input_ended {
            self.finish_orderly(id);
        } else {
            self.finish(id, CloseReason::Error(error));
        }
    }
}

/// One receive, whose time is counted if the turn is timed.
#[inline]
fn timed_recv(report: &mut TurnReport, socket: &OwnedFd, room: &mut [u8]) -> Received {
    let mark_ns = timing::mark(report);
    let received = outcome(recv(socket, &mut *room, RecvFlags::DONTWAIT), room.len());
    timing::count_read(report, mark_ns);
    received
}

fn outcome(result: Result<(usize, usize), Errno>, room: usize) -> Received {
    match result {
        Ok((0, _)) => Received::End,
        Ok((count, _)) => Received::Bytes {
            count,
            full: count == room,
        },
        Err(Errno::AGAIN) => Received::Nothing,
        Err(error) => Received::Failed(error),
    }
}
