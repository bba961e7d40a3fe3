//! The trait every driver implements, and the one its user implements.
//!
//! The life of a connection, as its handler sees it:
//!
//! ```text
//!  adopt --> open: received*, sent* --> end_of_input? --> closed       exactly once, nothing after it
//!              |                                     \--> released     instead of closed, after `release`
//!              \-- hung_up? (only while receiving is paused)
//! ```
//!
//! Invariants: callbacks are never nested; an id whose connection is gone is harmless everywhere (what is sent to it is
//! dropped); a handler may call any method of the driver from any callback except `turn`.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use weft_rope::Output;

use crate::filter::Filter;
use crate::listen::Listener;
use crate::wake::Waker;

/// Sockets, timers and wake-ups of one thread.
pub trait Driver: Sized {
    /// Starts accepting on `listener`. Errors are those of the system's readiness interface.
    fn add_listener(&mut self, listener: Listener) -> io::Result<ListenerId>;

    /// Stops accepting and gives the listener back (dropping it closes it, and removes a Unix socket's file). None: no
    /// such listener.
    fn remove_listener(&mut self, listener: ListenerId) -> Option<Listener>;

    /// The listener, to look at or to change its options.
    fn listener(&self, listener: ListenerId) -> Option<&Listener>;

    /// Takes over a connected (or connecting, see [`start_connect`](crate::start_connect)) stream socket and starts
    /// receiving from it. With a filter, all bytes pass through it. On an error the socket is closed.
    fn adopt(
        &mut self,
        socket: OwnedFd,
        filter: Option<Box<dyn Filter>>,
    ) -> io::Result<ConnectionId>;

    /// Gives the socket back through [`Handler::released`] once everything sent so far has left and no receive is in
    /// flight; until then receives nothing more, though what had been taken off the socket before is still handed out,
    /// paused or not. For moving a connection to another thread's driver.
    fn release(&mut self, connection: ConnectionId);

    /// Queues everything in `output`, which is empty afterwards (but may bring a used buffer: keep one `Output` per
    /// thread, not one per session). It is sent at the end of the turn with whatever else was queued, and the rest when
    /// the socket takes more.
    fn send(&mut self, connection: ConnectionId, output: &mut Output);

    /// Bytes queued and not yet taken by the kernel.
    fn pending_output(&self, connection: ConnectionId) -> usize;

    /// Stops receiving, from the next callback on (what a filter has translated already is still handed out). Costs no
    /// system call.
    fn pause_receive(&mut self, connection: ConnectionId);

    /// Undoes [`Driver::pause_receive`]. What has arrived meanwhile is delivered in the next turn.
    fn resume_receive(&mut self, connection: ConnectionId);

    /// Ends a connection. [`Handler::closed`] follows later in this turn or in the next; no other callback does.
    fn close(&mut self, connection: ConnectionId, close: Close);

    /// Arranges for [`Handler::timer`] at or shortly after `deadline_ns` on the scale of
    /// [`monotonic_ns`](crate::monotonic_ns), never before.
    fn arm_timer(&mut self, deadline_ns: u64, token: TimerToken) -> TimerId;

    /// False: it has fired or was cancelled before. After true it does not fire.
    fn cancel_timer(&mut self, timer: TimerId) -> bool;

    /// Monotonic nanoseconds read once per turn, after the wait. For coarse uses; deadlines are checked against it.
    fn turn_started_ns(&self) -> u64;

    /// Open connections, those on their way out included.
    fn connections(&self) -> usize;

    /// Whether the connection stands and nobody has asked for its end.
    fn is_open(&self, connection: ConnectionId) -> bool;

    /// Asks for [`TurnReport::times`] of the next turn. Measuring costs a few clock readings, so it is done for samples.
    fn time_next_turn(&mut self);

    /// Before falling asleep, keep looking for events this long. 0 to begin with. It saves a lone synchronous client the
    /// wake-up, and pays only while another processor is idle.
    fn set_spin(&mut self, spin: Duration);

    /// A handle that wakes this driver from other threads.
    fn waker(&self) -> Waker;

    /// Waits for events at most `timeout` (None: for ever; not at all while work is left over), then delivers them all.
    /// Each connection gets a bounded share. Interrupted by a signal, it returns as if the time were over.
    fn turn<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        timeout: Option<Duration>,
    ) -> io::Result<TurnReport>;
}

/// What the user of a driver does with what happens. `io` is the driver that calls.
pub trait Handler<D: Driver> {
    /// A connection was accepted. It belongs to nobody yet: [`Driver::adopt`] it, pass it on, or drop it.
    /// The socket is non-blocking, close-on-exec, and has the listener's [`TcpOptions`](crate::TcpOptions).
    fn accepted(&mut self, io: &mut D, listener: ListenerId, socket: OwnedFd, peer: PeerAddress);

    /// Accepting failed for lack of descriptors or memory. The driver tries again after a pause of its own.
    fn accept_failed(&mut self, io: &mut D, listener: ListenerId, error: io::Error) {
        let _ = (io, listener, error);
    }

    /// Where the next bytes of this connection should go, when the session wants them straight in its own memory.
    /// Asked before every delivery. What arrives there is announced with [`Handler::received_direct`] before anything
    /// else happens; it may be less than the room offered. None or an empty slice: use the driver's buffer.
    fn receive_target(&mut self, connection: ConnectionId) -> Option<&mut [u8]> {
        let _ = connection;
        None
    }

    /// Bytes have arrived, in a buffer of the driver's that is used again after the callback.
    fn received(&mut self, io: &mut D, connection: ConnectionId, data: &mut [u8]);

    /// Bytes of several connections have arrived in the same turn, each connection once: a chance to look at all of them
    /// before working on any. Connections with a filter or a [`Handler::receive_target`] never come in groups. An
    /// implementation has to leave out those that it closed on the way, as this one does.
    fn received_group(&mut self, io: &mut D, group: &mut [Delivery<'_>]) {
        for delivery in group {
            if io.is_open(delivery.connection) {
                self.received(io, delivery.connection, delivery.data);
            }
        }
    }

    /// The first `count` bytes of the last [`Handler::receive_target`] have been filled.
    fn received_direct(&mut self, io: &mut D, connection: ConnectionId, count: usize) {
        let _ = (io, connection, count);
    }

    /// The peer will send nothing more, and all it has sent has been delivered. It may still be reading. The default
    /// closes after what is queued has been sent; a session that still owes replies may wait with that.
    fn end_of_input(&mut self, io: &mut D, connection: ConnectionId) {
        io.close(connection, Close::AfterFlush);
    }

    /// The peer has ended its side while receiving is paused; unread bytes may be left. At most once per connection.
    /// A peer that is gone altogether (reset) is reported by [`Handler::closed`] instead, paused or not.
    fn hung_up(&mut self, io: &mut D, connection: ConnectionId) {
        let _ = (io, connection);
    }

    /// A connection whose output the kernel did not take at once has made progress; `remaining` bytes are still queued.
    fn sent(&mut self, io: &mut D, connection: ConnectionId, remaining: usize) {
        let _ = (io, connection, remaining);
    }

    /// The connection is gone: its descriptor is closed and its buffers are freed. The id will not come back.
    fn closed(&mut self, io: &mut D, connection: ConnectionId, reason: CloseReason);

    /// The answer to [`Driver::release`]: the connection left this driver alive, with nothing in flight.
    fn released(
        &mut self,
        io: &mut D,
        connection: ConnectionId,
        socket: OwnedFd,
        filter: Option<Box<dyn Filter>>,
    ) {
        let _ = (io, connection, socket, filter);
    }

    /// An armed timer is due.
    fn timer(&mut self, io: &mut D, token: TimerToken) {
        let _ = (io, token);
    }

    /// Somebody called [`Waker::wake`] since the last time.
    fn woken(&mut self, io: &mut D) {
        let _ = io;
    }

    /// The wait is over; the turn's events follow.
    fn turn_start(&mut self, io: &mut D) {
        let _ = io;
    }

    /// The turn's events are all delivered; what is queued goes out next. After this only `sent`, `closed` and
    /// `released` can follow, from that sending.
    fn turn_end(&mut self, io: &mut D) {
        let _ = io;
    }
}

/// Bytes that have arrived on one connection, in a buffer of the driver's that is used again after the callback.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// Where they came from.
    pub connection: ConnectionId,
    /// The bytes, at least one.
    pub data: &'a mut [u8],
}

/// The most deliveries in one group.
pub const GROUP_MAX: usize = 32;

/// Names a connection of one driver: a slot and how many connections the slot has had. Never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ConnectionId(u64);

impl ConnectionId {
    pub(crate) fn new(slot: u32, generation: u32) -> ConnectionId {
        ConnectionId(u64::from(generation) << 32 | u64::from(slot))
    }

    /// Index of the slot: small numbers, used again. Suits as an index into a table of sessions.
    #[inline]
    pub fn slot(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }

    /// Tells apart the connections a slot has had. At least 1.
    #[inline]
    pub fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Both parts in one word.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`ConnectionId::to_bits`].
    #[inline]
    pub fn from_bits(bits: u64) -> ConnectionId {
        ConnectionId(bits)
    }
}

/// Names a listener of one driver. Not used again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ListenerId(pub(crate) u32);

/// What an armed timer carries: the handler's own word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimerToken(pub u64);

/// Names an armed timer, for [`Driver::cancel_timer`]. Not used again after it fired.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimerId(u64);

impl TimerId {
    pub(crate) fn new(slot: u32, generation: u32) -> TimerId {
        TimerId(u64::from(generation) << 32 | u64::from(slot))
    }

    pub(crate) fn slot(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// How [`Driver::close`] treats output that is still queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Close {
    /// Stop receiving now, close once everything queued has been sent. Later sends are dropped.
    AfterFlush,
    /// Close now; what is queued is lost.
    Now,
}

/// Why a connection ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer ended it, in good order.
    Peer,
    /// This side closed it.
    Local,
    /// The system (a reset, a refused connection, a keepalive time-out) or the filter.
    Error(io::Error),
}

/// Where an accepted connection comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PeerAddress {
    /// Over TCP.
    Internet(SocketAddr),
    /// Over a Unix socket; clients of those have no address.
    Unix,
}

/// What one [`Driver::turn`] did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TurnReport {
    /// Readiness reports or completions the wait returned.
    pub events: u32,
    /// Connections accepted.
    pub accepts: u32,
    /// Receives that brought bytes.
    pub receives: u32,
    /// Sends that took bytes.
    pub sends: u32,
    /// Bytes received, as on the wire.
    pub bytes_received: u64,
    /// Bytes sent, as on the wire.
    pub bytes_sent: u64,
    /// Nanoseconds spent asleep in the wait; without the processor time of falling asleep and waking up, as far as a
    /// timed turn has measured it.
    pub asleep_ns: u64,
    /// Where the rest of the time went, if [`Driver::time_next_turn`] asked for it.
    pub times: Option<TurnTimes>,
}

/// Nanoseconds of one turn that the kernel worked for the driver. What is neither this nor sleep was the handler's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TurnTimes {
    /// Waiting without sleep, and receiving.
    pub read_ns: u64,
    /// Sending.
    pub write_ns: u64,
}

/// Sizes a driver is created with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverOptions {
    /// Bytes of the one receive buffer; also the most one connection is handed through it per turn. 64 KiB: some 1,800
    /// pipelined GETs, well under a millisecond of work.
    pub receive_buffer: usize,
    /// Bytes one connection may receive per turn straight into its own memory, where they cost only the copy.
    pub direct_share: usize,
    /// Events taken per wait.
    pub events: usize,
    /// Turns follow each other at once, so that what one sends may leave with the next one's wait.
    pub keeps_turning: bool,
}

impl Default for DriverOptions {
    fn default() -> DriverOptions {
        DriverOptions {
            receive_buffer: 64 << 10,
            direct_share: 256 << 10,
            events: 256,
            keeps_turning: false,
        }
    }
}
