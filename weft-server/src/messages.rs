//! What threads say to each other: messages that never block the sender and never get lost.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use weft_engine::action::Shutdown;
use weft_engine::clients::ClientRecord;
use weft_reactor::PeerAddress;

use crate::listeners::{RebindError, TcpPlan};
use crate::sessions::Departed;

/// To a worker.
pub enum ToWorker {
    /// A connection that is the worker's from now on, and already counted as one of its.
    Connection(OwnedFd, PeerAddress),
    /// The same, of a connection that another worker had.
    Moved(Box<Departed>),
    /// Look at this client's record: it was killed, or something was made for it.
    Attend(Arc<ClientRecord>),
    /// Hand `count` connections to the worker numbered `to`, as they become quiet.
    Give {
        /// The worker that gets them.
        to: usize,
        /// How many.
        count: usize,
    },
    /// Send what has been replied, close all connections, end.
    Stop,
}

/// To the acceptor.
pub enum ToAcceptor {
    /// Listen elsewhere over TCP, and say what came of it.
    Rebind(TcpPlan, Sender<Result<(), RebindError>>),
    /// Connections that arrive from now on have this `tcp-keepalive`, in seconds.
    KeepAlive(u32),
    /// Close all listening sockets and end.
    Stop,
}

/// To the main thread.
#[derive(Debug)]
pub enum ToMain {
    /// A signal or a client asks for an orderly end.
    Shutdown(Shutdown),
    /// There should be so many workers; those that are missing are to be started.
    Workers(usize),
    /// A thread has ended; its name, and the reason if it was not told to.
    Ended(String, Option<std::io::Error>),
}
