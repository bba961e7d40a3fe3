//! Sending: one operation per connection and turn, the rest when it has completed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::tag::Operation;
use super::{Phase, RIDER_BYTES, SPARE_OUTPUTS, UringDriver};
use crate::driver::{CloseReason, ConnectionId, Handler};

/// Unread bytes thrown away before an orderly close. Closing with unread bytes resets the connection, and a reset
/// destroys what the peer has not read yet; a peer that keeps sending is not listened to for ever.
const DISCARDED_MAX: usize = 1 << 20;

impl UringDriver {
    /// Starts sending what is queued, unless a send is in flight already.
    pub(super) fn flush(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        if connection.sending.is_some() || connection.has_ended() {
            return;
        }
        let closing = matches!(connection.phase, Phase::Flushing);
        let operand = match &mut connection.filter {
            Some(wired) => {
                if wired.wire.is_empty() {
                    if let Err(error) = wired.filtered.translate(
                        &mut connection.output,
                        closing,
                        &mut self.spare_wire,
                    ) {
                        return self.fail_filter(id, error);
                    }
                    let unsent = wired.filtered.unsent();
                    let count = unsent.len();
                    if count > 0 {
                        wired.wire = self.spare_outputs.pop().unwrap_or_default();
                        wired.wire.tail().extend_from_slice(unsent);
                    }
                    wired.filtered.advance(count, &mut self.spare_wire);
                }
                &mut wired.wire
            }
            None => &mut connection.output,
        };
        if operand.is_empty() {
            if closing && connection.state.input_ended && connection.queued() > 0 {
                // The filter holds it back until it hears from its peer, which has said its last.
                return self.finish_orderly(id);
            }
            return self.conclude(id);
        }
        let operand = std::mem::take(operand);
        connection.sending_bytes = operand.len();
        let waits = connection.state.behind;
        let socket = connection.socket.as_fd();
        connection.sending = Some(self.ring.send(id, socket, operand, waits));
        if !waits
            && connection.sending_bytes <= RIDER_BYTES
            && matches!(connection.phase, Phase::Open)
        {
            self.prompt_sends += 1;
        }
    }

    /// Looks at what a turn's last call has completed: sends that took bytes, and what connections on their way out were
    /// waiting for. Everything else is the next turn's.
    pub(super) fn complete_sends<H: Handler<Self>>(&mut self, handler: &mut H) {
        for _ in 0..self.arrived.len() {
            let Some(completion) = self.arrived.pop_front() else {
                return;
            };
            let now = match completion.operation {
                // Errors wait for their turn: a receive that completed before may know better what happened.
                Operation::Send(_) => completion.result >= 0,
                Operation::Receive(id) | Operation::Watch(id) => {
                    self.connections.find(id).is_none_or(|connection| {
                        connection.has_ended()
                            || matches!(connection.phase, Phase::Flushing)
                                && connection.filter.is_none()
                    })
                }
                _ => false,
            };
            if now {
                self.complete(handler, completion);
            } else {
                self.arrived.push_back(completion);
            }
        }
    }

    /// A send has completed.
    pub(super) fn sent<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        flight: u32,
        outcome: Result<usize, Errno>,
    ) {
        let Some((id, mut rest)) = self.ring.land(flight) else {
            return;
        };
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        connection.sending = None;
        connection.sending_bytes = 0;
        if connection.has_ended() {
            return self.conclude(id);
        }
        let sent = match outcome {
            Ok(sent) => sent,
            Err(Errno::INTR | Errno::AGAIN | Errno::CANCELED) => 0,
            Err(error) => return self.fail(id, error.into()),
        };
        rest.advance(sent);
        let queue = match &mut connection.filter {
            Some(wired) => &mut wired.wire,
            None => &mut connection.output,
        };
        if rest.is_empty() {
            if self.spare_outputs.len() < SPARE_OUTPUTS {
                self.spare_outputs.push(rest);
            }
        } else {
            // What was queued meanwhile comes after it.
            rest.append(queue);
            *queue = rest;
        }
        let remaining = connection.queued();
        let was_behind = connection.state.behind;
        let closing = matches!(connection.phase, Phase::Flushing);
        connection.state.behind = remaining > 0;
        if remaining > 0 {
            self.plan(id);
        }
        if sent > 0 {
            self.report.sends += 1;
            self.report.bytes_sent += sent as u64;
            if was_behind && !closing {
                handler.sent(self, id, remaining);
            }
        }
        self.conclude(id);
    }

    /// The filter gave up: one attempt to send its last words, then the end.
    pub(super) fn fail_filter(&mut self, id: ConnectionId, error: io::Error) {
        if let Some(connection) = self.connections.find_mut(id)
            && !connection.has_ended()
            && let Some(wired) = &connection.filter
            && !wired.filtered.unsent().is_empty()
            && connection.sending.is_none()
        {
            // Whether it arrives makes no difference any more.
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let _ = send(&connection.socket, wired.filtered.unsent(), flags);
            discard_input(&connection.socket);
        }
        self.finish(id, CloseReason::Error(error));
    }
}

pub(super) fn discard_input(socket: &OwnedFd) {
    let mut buffer = [0; 16 << 10];
    let mut discarded = 0;
    while let Ok((count @ 1.., _)) = recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
        discarded += count;
        if count < buffer.len() || discarded >= DISCARDED_MAX {
            break;
        }
    }
}
