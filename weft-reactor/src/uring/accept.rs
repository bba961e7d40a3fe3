//! Accepting: from a listener the ring has found ready to the handler, with a rest when descriptors or memory run out.
//!
//! The ring only polls, and accepting is a call each: that brings the peer's address along, takes no connection for a
//! listener that is removed meanwhile, and reports a lack of descriptors only when somebody waits.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::UringDriver;
use super::tag::Operation;
use crate::driver::{Handler, ListenerId};
use crate::listen::{Accepted, Listener};

/// A listener of this driver.
pub(super) struct Accepting {
    pub(super) listener: Listener,
    /// Its poll is in flight.
    pub(super) polled: bool,
    /// Set while descriptors or memory are short: not polled until then.
    resume_at_ns: Option<u64>,
}

impl Accepting {
    pub(super) fn new(listener: Listener) -> Accepting {
        Accepting {
            listener,
            polled: false,
            resume_at_ns: None,
        }
    }
}

/// Connections accepted from one listener per turn.
const ACCEPTS_PER_TURN: usize = 64;

/// How long a listener rests after the process ran out of descriptors or memory.
const ACCEPT_BACK_OFF_NS: u64 = 100_000_000;

/// Looks at the completions for the one of a cancelled poll. It is there after the first.
const CANCEL_LOOKS: usize = 1000;

impl UringDriver {
    /// Has the ring watch the listener.
    pub(super) fn poll_listener(&mut self, id: ListenerId) {
        if let Some(Some(accepting)) = self.listeners.get_mut(id.0 as usize)
            && !accepting.polled
        {
            accepting.polled = true;
            self.ring.listen(id, accepting.listener.as_fd());
        }
    }

    /// Ends the poll of a listener, and returns when it has ended.
    pub(super) fn stop_polling(&mut self, id: ListenerId) {
        let operation = Operation::Listener(id);
        self.ring.cancel(operation);
        for _ in 0..CANCEL_LOOKS {
            let place = self
                .arrived
                .iter()
                .position(|completion| completion.operation == operation);
            if let Some(place) = place {
                self.arrived.remove(place);
                return;
            }
            if self.ring.submit_and_look().is_err() {
                return;
            }
            self.ring.collect(&mut self.arrived);
        }
    }

    /// The poll of a listener has ended: somebody waits, or it failed.
    pub(super) fn polled<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        id: ListenerId,
        outcome: Result<usize, Errno>,
    ) {
        let Some(Some(accepting)) = self.listeners.get_mut(id.0 as usize) else {
            return;
        };
        accepting.polled = false;
        match outcome {
            Ok(_) => self.accept(handler, id),
            Err(error) => self.rest(handler, id, error.into()),
        }
        let rests = match self.listeners.get(id.0 as usize) {
            Some(Some(accepting)) => accepting.resume_at_ns.is_some(),
            _ => true,
        };
        if !rests {
            self.poll_listener(id);
        }
    }

    fn accept<H: Handler<Self>>(&mut self, handler: &mut H, id: ListenerId) {
        for _ in 0..ACCEPTS_PER_TURN {
            // A callback may have removed it.
            let Some(Some(accepting)) = self.listeners.get_mut(id.0 as usize) else {
                return;
            };
            match accepting.listener.accept() {
                Ok(Accepted::Connection(socket, peer)) => {
                    self.report.accepts += 1;
                    handler.accepted(self, id, socket, peer);
                }
                Ok(Accepted::Lost) => {}
                Ok(Accepted::Nobody) => return,
                // Descriptors or memory are short, or the listener itself is broken. Asking again at once would spin.
                Err(error) => return self.rest(handler, id, error),
            }
        }
    }

    /// Leaves a listener alone for a while.
    fn rest<H: Handler<Self>>(&mut self, handler: &mut H, id: ListenerId, error: io::Error) {
        let Some(Some(accepting)) = self.listeners.get_mut(id.0 as usize) else {
            return;
        };
        let resume_at_ns = self.turn_started_ns + ACCEPT_BACK_OFF_NS;
        accepting.resume_at_ns = Some(resume_at_ns);
        self.accept_again_ns = Some(
            self.accept_again_ns
                .map_or(resume_at_ns, |at| at.min(resume_at_ns)),
        );
        handler.accept_failed(self, id, error);
    }

    /// Polls the listeners whose rest is over.
    pub(super) fn accept_again(&mut self) {
        let now_ns = self.turn_started_ns;
        if self.accept_again_ns.is_none_or(|at| at > now_ns) {
            return;
        }
        self.accept_again_ns = None;
        for index in 0..self.listeners.len() {
            let Some(accepting) = &mut self.listeners[index] else {
                continue;
            };
            match accepting.resume_at_ns {
                Some(at) if at <= now_ns => {
                    accepting.resume_at_ns = None;
                    self.poll_listener(ListenerId(index as u32));
                }
                Some(at) => {
                    self.accept_again_ns =
                        Some(self.accept_again_ns.map_or(at, |earliest| earliest.min(at)));
                }
                None => {}
            }
        }
    }
}
