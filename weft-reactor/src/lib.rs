//! Sockets, timers and wake-ups behind one trait.
//!
//! A [`Driver`] belongs to one thread. It owns that thread's listeners, connections and timers, and in each
//! [`Driver::turn`] waits once, hands what arrived to a [`Handler`] and sends what the handler produced. The semantics
//! are those of completions ("these bytes have arrived"), so that a readiness driver ([`EpollDriver`]) and a ring driver
//! ([`UringDriver`]) fit behind the same trait.
//!
//! What it does not know: protocols, sessions, threads, configuration. It allocates nothing per event, starts no
//! thread, never blocks outside its one wait, and holds no buffer for a connection with nothing to send.

#![deny(unsafe_code)]

mod clock;
mod connect;
mod connections;
mod driver;
mod epoll;
mod filter;
mod listen;
#[allow(unsafe_code)]
mod mailbox;
mod timers;
mod timing;
mod unix_socket;
mod uring;
mod wake;

pub use clock::monotonic_ns;
pub use connect::{start_connect, start_connect_unix};
pub use driver::{
    Close, CloseReason, ConnectionId, Delivery, Driver, DriverOptions, GROUP_MAX, Handler,
    ListenerId, PeerAddress, TimerId, TimerToken, TurnReport, TurnTimes,
};
pub use epoll::EpollDriver;
pub use filter::Filter;
pub use listen::{BIND_DEFAULT, BindError, Listener, TcpBinding, TcpOptions, bind_tcp};
pub use mailbox::{Inbox, Mailbox};
pub use unix_socket::{UnixListenError, bind_unix};
pub use uring::UringDriver;
pub use wake::Waker;
