//! Accepting: from a ready listener to the handler, with a rest when descriptors or memory run out.

use std::io;
use std::os::fd::AsFd;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::EpollDriver;
use crate::driver::{Handler, ListenerId};
use crate::listen::{Accepted, Listener};

/// A listener of this driver.
pub(super) struct Accepting {
    pub(super) listener: Listener,
    /// Set while descriptors or memory are short: not registered until then.
    pub(super) resume_at_ns: Option<u64>,
}

/// Connections accepted from one listener per turn.
const ACCEPTS_PER_TURN: usize = 64;

/// How long a listener rests after the process ran out of descriptors or memory.
const ACCEPT_BACK_OFF_NS: u64 = 100_000_000;

impl EpollDriver {
    pub(super) fn register_listener(&self, id: ListenerId, listener: &Listener) -> io::Result<()> {
        let tag = EventData::new_u64(u64::from(id.0));
        Ok(epoll::add(
            &self.epoll,
            listener.as_fd(),
            tag,
            EventFlags::IN,
        )?)
    }

    pub(super) fn accept<H: Handler<Self>>(&mut self, handler: &mut H, id: ListenerId) {
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
                Err(error) => {
                    let resume_at_ns = self.turn_started_ns + ACCEPT_BACK_OFF_NS;
                    // Registered until now, so this does not fail.
                    let _ = epoll::delete(&self.epoll, accepting.listener.as_fd());
                    accepting.resume_at_ns = Some(resume_at_ns);
                    self.accept_again_ns = Some(
                        self.accept_again_ns
                            .map_or(resume_at_ns, |at| at.min(resume_at_ns)),
                    );
                    return handler.accept_failed(self, id, error);
                }
            }
        }
    }

    /// Registers the listeners whose rest is over.
    pub(super) fn accept_again<H: Handler<Self>>(&mut self, handler: &mut H) {
        if self
            .accept_again_ns
            .is_none_or(|at| at > self.turn_started_ns)
        {
            return;
        }
        self.accept_again_ns = None;
        for index in 0..self.listeners.len() {
            let Some(Accepting {
                listener,
                resume_at_ns: Some(at),
            }) = &self.listeners[index]
            else {
                continue;
            };
            let (id, mut at) = (ListenerId(index as u32), *at);
            if at <= self.turn_started_ns {
                match self.register_listener(id, listener) {
                    Ok(()) => {
                        self.listeners[index]
                            .as_mut()
                            .expect("still there")
                            .resume_at_ns = None;
                        continue;
                    }
                    Err(error) => {
                        at = self.turn_started_ns + ACCEPT_BACK_OFF_NS;
                        self.listeners[index]
                            .as_mut()
                            .expect("still there")
                            .resume_at_ns = Some(at);
                        handler.accept_failed(self, id, error);
                    }
                }
            }
            self.accept_again_ns =
                Some(self.accept_again_ns.map_or(at, |earliest| earliest.min(at)));
        }
    }
}
