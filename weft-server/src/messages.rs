//! What threads say to each other: messages that never block the sender and never get lost.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};

use weft_reactor::{PeerAddress, Waker};

use crate::listeners::{RebindError, TcpPlan};

/// To a worker.
pub enum ToWorker {
    /// A connection that is the worker's from now on, and already counted as one of its.
    Connection(OwnedFd, PeerAddress),
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
    Shutdown,
    /// A thread has ended; its name, and the reason if it was not told to.
    Ended(String, Option<std::io::Error>),
}

/// The sending end of a thread's queue, and the way to wake the thread.
pub struct Mailbox<T> {
    sender: Sender<T>,
    waker: Waker,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            waker: self.waker.clone(),
        }
    }
}

impl<T> Mailbox<T> {
    /// A queue for the thread that `waker` wakes.
    pub fn new(waker: Waker) -> (Self, Receiver<T>) {
        let (sender, receiver) = channel();
        (Self { sender, waker }, receiver)
    }

    /// Delivers a message. One to a thread that has ended is dropped, for then the server ends too.
    pub fn post(&self, message: T) {
        if self.sender.send(message).is_ok() {
            self.waker.wake();
        }
    }

    /// Makes the thread look around, without a message.
    pub fn wake(&self) {
        self.waker.wake();
    }
}
