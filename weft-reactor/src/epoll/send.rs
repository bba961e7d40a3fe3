//! Sending: one system call per connection and turn, the rest when the kernel has room.

use std::io::{self, IoSlice};

use rustix::event::epoll::{self, EventData};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use weft_rope::Output;

use super::{Connection, Ending, EpollDriver, INPUT, INPUT_AND_OUTPUT, SPARE_OUTPUTS};
use crate::driver::{CloseReason, ConnectionId, Handler};
use crate::timing;

/// Slices prepared on the stack for an ordinary send.
const FEW_SLICES: usize = 16;

/// The kernel's limit of slices per call (UIO_MAXIOV).
const MANY_SLICES: usize = 1024;

const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// Unread bytes thrown away before an orderly close. Closing with unread bytes resets the connection, and a reset
/// destroys what the peer has not read yet; a peer that keeps sending is not listened to for ever.
const DISCARDED_MAX: usize = 1 << 20;

impl EpollDriver {
    /// Notes that the end of the turn has something to do for this connection.
    pub(super) fn plan_output(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && !connection.state.in_outgoing
        {
            connection.state.in_outgoing = true;
            self.outgoing.push(id);
        }
    }

    /// Sends what the turn has queued. Here, and not as each callback returns: no byte leaves before `turn_end`, and with
    /// 50 connections and small replies it costs 3 to 5 % less processor time (with pipelines of 100 it costs 8 % more,
    /// of a tenth of a microsecond per request).
    pub(super) fn send_outgoing<H: Handler<Self>>(&mut self, handler: &mut H) {
        if self.outgoing.is_empty() {
            return;
        }
        let next_list = std::mem::take(&mut self.spare_list);
        let mut outgoing = std::mem::replace(&mut self.outgoing, next_list);
        for id in outgoing.drain(..) {
            if let Some(connection) = self.connections.find_mut(id) {
                connection.state.in_outgoing = false;
                self.flush(handler, id);
            }
        }
        self.spare_list = outgoing;
    }

    /// The kernel reports room for output, or the end of the connection. `only`: nothing else is reported.
    pub(super) fn writable<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        id: ConnectionId,
        only: bool,
    ) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let Some(socket) = &connection.socket else {
            return;
        };
        if connection.state.backed_up {
            connection.state.backed_up = false;
            self.flush(handler, id);
        } else if only {
            // Unix sockets report room whenever the peer reads. With nothing to send that would wake us for nothing.
            connection.state.output_registered = false;
            if let Err(error) =
                epoll::modify(&self.epoll, socket, EventData::new_u64(id.to_bits()), INPUT)
            {
                self.fail(id, error.into());
            }
        }
    }

    /// Sends what is queued, with one system call.
    fn flush<H: Handler<Self>>(&mut self, handler: &mut H, id: ConnectionId) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let Connection {
            socket: Some(socket),
            state,
            output,
            filter,
        } = connection
        else {
            return;
        };
        if state.backed_up {
            return;
        }
        let result = match filter {
            Some(filtered) => {
                if let Err(error) =
                    filtered.translate(output, state.close_after_flush, &mut self.spare_wire)
                {
                    return self.fail_filter(id, error);
                }
                let offered = filtered.unsent().len();
                let result = if offered == 0 {
                    Ok(0)
                } else {
                    let mark_ns = timing::mark(&self.report);
                    let result = send(&*socket, filtered.unsent(), FLAGS);
                    timing::count_write(&mut self.report, mark_ns);
                    result
                };
                if let Ok(sent) = result {
                    filtered.advance(sent, &mut self.spare_wire);
                }
                result.map(|sent| (offered, sent))
            }
            None if output.is_empty() => Ok((0, 0)),
            None => {
                let mark_ns = timing::mark(&self.report);
                let result = offer(socket.as_fd(), output);
                timing::count_write(&mut self.report, mark_ns);
                if let Ok((_, sent)) = result {
                    output.advance(sent);
                }
                result
            }
        };
        let (sent, refused) = match result {
            Ok((offered, sent)) => (sent, sent < offered),
            Err(Errno::AGAIN) => (0, true),
            Err(error) => return self.fail(id, error.into()),
        };
        let remaining = output.len()
            + filter
                .as_ref()
                .map_or(0, |filtered| filtered.unsent().len());
        let was_behind = state.behind;
        let closing = state.close_after_flush;
        state.behind = remaining > 0;
        if remaining == 0 {
            if output.allocated_bytes() > 0 {
                let spare = std::mem::take(output);
                if self.spare_outputs.len() < SPARE_OUTPUTS {
                    self.spare_outputs.push(spare);
                }
            }
        } else if refused {
            state.backed_up = true;
            if !state.output_registered {
                state.output_registered = true;
                let tag = EventData::new_u64(id.to_bits());
                if let Err(error) = epoll::modify(&self.epoll, socket, tag, INPUT_AND_OUTPUT) {
                    return self.fail(id, error.into());
                }
            }
        } else if sent > 0 {
            // More than one call takes.
            self.plan_output(id);
        } else if closing && state.input_ended {
            // The filter holds it back until it hears from its peer, which has said its last.
            return self.finish_orderly(id);
        }
        if sent > 0 {
            self.report.sends += 1;
            self.report.bytes_sent += sent as u64;
            if was_behind && !closing {
                handler.sent(self, id, remaining);
            }
        }
        if remaining == 0 {
            self.all_sent(id);
        }
    }

    /// Nothing is left to send: time for what waited for that.
    fn all_sent(&mut self, id: ConnectionId) {
        let free = self.grouped();
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        // `sent` may have queued more.
        let Connection {
            socket: Some(socket),
            state,
            output,
            filter,
        } = connection
        else {
            return;
        };
        if !output.is_empty() {
            return;
        }
        if state.close_after_flush {
            let said_goodbye = filter.as_ref().is_none_or(|filtered| filtered.finished);
            if !said_goodbye {
                return;
            }
            if !state.input_ended {
                discard_input(socket, &mut self.buffer[free..]);
            }
            self.finish_orderly(id);
        } else if state.releasing {
            let filter = filter.take().map(|filtered| filtered.filter);
            let socket = connection.socket.take().expect("matched above");
            // It is registered, so this does not fail.
            let _ = epoll::delete(&self.epoll, &socket);
            self.ended.push((id, Ending::Released(socket, filter)));
        }
    }

    /// The filter gave up: one attempt to send its last words, then the end.
    pub(super) fn fail_filter(&mut self, id: ConnectionId, error: io::Error) {
        let free = self.grouped();
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        if let Connection {
            socket: Some(socket),
            filter: Some(filtered),
            ..
        } = connection
            && !filtered.unsent().is_empty()
        {
            // Whether it arrives makes no difference any more.
            let _ = send(&*socket, filtered.unsent(), FLAGS);
            discard_input(socket, &mut self.buffer[free..]);
        }
        self.finish(id, CloseReason::Error(error));
    }
}

/// Offers output to the kernel: bytes offered and bytes taken.
fn offer(socket: BorrowedFd<'_>, output: &Output) -> Result<(usize, usize), Errno> {
    let mut slices = [IoSlice::new(&[]); FEW_SLICES];
    match output.io_slices(&mut slices) {
        1 => Ok((slices[0].len(), send(socket, &slices[0], FLAGS)?)),
        FEW_SLICES => offer_many(socket, output),
        count => offer_slices(socket, &slices[..count]),
    }
}

#[cold]
fn offer_many(socket: BorrowedFd<'_>, output: &Output) -> Result<(usize, usize), Errno> {
    let mut slices = [IoSlice::new(&[]); MANY_SLICES];
    let count = output.io_slices(&mut slices);
    offer_slices(socket, &slices[..count])
}

fn offer_slices(socket: BorrowedFd<'_>, slices: &[IoSlice<'_>]) -> Result<(usize, usize), Errno> {
    let offered = slices.iter().map(|slice| slice.len()).sum();
    Ok((
        offered,
        sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), FLAGS)?,
    ))
}

fn discard_input(socket: impl AsFd, buffer: &mut [u8]) {
    let mut discarded = 0;
    while let Ok((count @ 1.., _)) = recv(&socket, &mut *buffer, RecvFlags::DONTWAIT) {
        discarded += count;
        if count < buffer.len() || discarded >= DISCARDED_MAX {
            break;
        }
    }
}
