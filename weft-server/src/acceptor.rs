//! The thread that accepts connections and deals them out to the workers.
//!
//! Owns all listening sockets. Serves no client: it refuses or hands over. Invariant: it never waits for another
//! thread, since others may wait for it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{SendFlags, send};
use weft_reactor::{
    CloseReason, ConnectionId, Driver, Handler, Inbox, Listener, ListenerId, PeerAddress,
};

use crate::listeners::{TcpListeners, TcpPlan};
use crate::log::system_text;
use crate::messages::{ToAcceptor, ToWorker};
use crate::shared::Shared;

/// The least time between two lines about accepting that failed.
const COMPLAINT_INTERVAL_NS: u64 = 1_000_000_000;

/// The acceptor's state.
pub struct Acceptor {
    shared: Arc<Shared>,
    inbox: Inbox<ToAcceptor>,
    tcp: TcpListeners,
    unix: Option<ListenerId>,
    complained_at_ns: Option<u64>,
    stopping: bool,
}

impl Acceptor {
    /// Takes over listening sockets; `plan` is what `tcp` was opened by.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn new<D: Driver>(
        shared: Arc<Shared>,
        inbox: Inbox<ToAcceptor>,
        plan: TcpPlan,
        tcp: Vec<Listener>,
        unix: Option<Listener>,
        io: &mut D,
    ) -> io::Result<Self> {
        let tcp = TcpListeners::adopt(plan, tcp, io)?;
        let unix = unix.map(|socket| io.add_listener(socket)).transpose()?;
        Ok(Self {
            shared,
            inbox,
            tcp,
            unix,
            complained_at_ns: None,
            stopping: false,
        })
    }

    /// Accepts until told to stop.
    ///
    /// # Errors
    /// Those of the driver, which leave nothing to go on with.
    pub fn run<D: Driver>(mut self, mut io: D) -> io::Result<()> {
        while !self.stopping {
            io.turn(&mut self, None)?;
        }
        self.tcp.close(&mut io);
        if let Some(unix) = self.unix.take() {
            // Removes the socket's file.
            drop(io.remove_listener(unix));
        }
        Ok(())
    }
}

impl<D: Driver> Handler<D> for Acceptor {
    fn accepted(&mut self, _: &mut D, _: ListenerId, socket: OwnedFd, peer: PeerAddress) {
        match self.shared.admission.enter(&peer) {
            Ok(()) => self
                .shared
                .crew
                .least_loaded()
                .hand_over(ToWorker::Connection(socket, peer)),
            Err(refusal) => {
                // A socket just opened has room for it; if not, then closing has to say enough.
                let _ = send(&socket, refusal, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                self.shared.crew.worker(0).wake();
            }
        }
    }

    fn accept_failed(&mut self, io: &mut D, _: ListenerId, error: io::Error) {
        let now = io.turn_started_ns();
        if self
            .complained_at_ns
            .is_none_or(|then| now >= then + COMPLAINT_INTERVAL_NS)
        {
            self.complained_at_ns = Some(now);
            self.shared.log.warning(format_args!(
                "Accepting client connection: accept: {}",
                system_text(&error)
            ));
        }
    }

    fn woken(&mut self, io: &mut D) {
        for message in self.inbox.take() {
            match message {
                ToAcceptor::Rebind(plan, reply) => {
                    let result = self.tcp.rebind(plan, io, &self.shared.log);
                    let _ = reply.send(result);
                }
                ToAcceptor::KeepAlive(seconds) => {
                    self.tcp.set_keepalive(seconds, io, &self.shared.log)
                }
                ToAcceptor::Stop => self.stopping = true,
            }
        }
    }

    // The acceptor adopts no connections.
    fn received(&mut self, _: &mut D, _: ConnectionId, _: &mut [u8]) {}

    fn closed(&mut self, _: &mut D, _: ConnectionId, _: CloseReason) {}
}
