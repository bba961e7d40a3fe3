//! What the driver tests share: a handler that records everything, and a loop with a deadline.

#![allow(
    dead_code,
    unused_macros,
    unused_imports,
    reason = "each test binary uses its own part"
)]

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use weft_reactor::{
    Close, CloseReason, ConnectionId, Driver, DriverOptions, EpollDriver, Filter, Handler,
    Listener, ListenerId, PeerAddress, TcpOptions, TimerToken, TurnReport, UringDriver, bind_tcp,
};
use weft_rope::Output;

/// Longer than any test may wait for anything: reaching it means that something was lost.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Makes a driver for a test.
pub(crate) trait NewDriver: Driver {
    fn start(options: DriverOptions) -> Self;
}

impl NewDriver for EpollDriver {
    fn start(options: DriverOptions) -> Self {
        EpollDriver::new(options).unwrap()
    }
}

impl NewDriver for UringDriver {
    fn start(options: DriverOptions) -> Self {
        UringDriver::new(options).unwrap()
    }
}

/// Runs each test on every driver.
macro_rules! on_every_driver {
    ($($test:ident)*) => {
        mod epoll {
            $(#[test] fn $test() { super::$test::<weft_reactor::EpollDriver>(); })*
        }
        mod uring {
            $(#[test] fn $test() { super::$test::<weft_reactor::UringDriver>(); })*
        }
    };
}
pub(crate) use on_every_driver;

/// One callback, as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Happened {
    Accepted(ConnectionId),
    EndOfInput(ConnectionId),
    HungUp(ConnectionId),
    Sent(ConnectionId, usize),
    Closed(ConnectionId, Reason),
    Released(ConnectionId),
    Timer(u64),
    Woken,
    AcceptFailed(io::ErrorKind),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    Peer,
    Local,
    Error(io::ErrorKind),
}

/// A session's own memory, filled in windows of at most `window` bytes.
pub(crate) struct Target {
    pub(crate) memory: Vec<u8>,
    pub(crate) filled: usize,
    pub(crate) window: usize,
}

type WokenHook<D> = Box<dyn FnMut(&mut D)>;
type Hook<D> = Box<dyn FnMut(&mut D, ConnectionId, &mut [u8])>;
type HookOf<D, T> = Box<dyn FnMut(&mut D, T)>;

/// Records all callbacks. Received bytes are collected per connection, and answered as told.
pub(crate) struct Recorder<D> {
    pub(crate) log: Vec<Happened>,
    pub(crate) input: HashMap<ConnectionId, Vec<u8>>,
    pub(crate) targets: HashMap<ConnectionId, Target>,
    /// Sizes of the pieces `received` was called with.
    pub(crate) pieces: Vec<usize>,
    pub(crate) peers: Vec<PeerAddress>,
    /// Send back what arrives.
    pub(crate) echo: bool,
    /// Leave connections open when their input ends.
    pub(crate) keep_open: bool,
    pub(crate) filter: Option<fn() -> Box<dyn Filter>>,
    /// Called with what arrives, after it was collected.
    pub(crate) on_received: Option<Hook<D>>,
    pub(crate) on_direct: Option<HookOf<D, ConnectionId>>,
    pub(crate) on_timer: Option<HookOf<D, u64>>,
    pub(crate) on_closed: Option<HookOf<D, ConnectionId>>,
    pub(crate) on_woken: Option<WokenHook<D>>,
    pub(crate) accepted_sockets: Option<Vec<OwnedFd>>,
    pub(crate) released: Vec<(OwnedFd, Option<Box<dyn Filter>>)>,
    over: Vec<ConnectionId>,
}

impl<D: Driver> Recorder<D> {
    pub(crate) fn new() -> Recorder<D> {
        Recorder {
            log: Vec::new(),
            input: HashMap::new(),
            targets: HashMap::new(),
            pieces: Vec::new(),
            peers: Vec::new(),
            echo: false,
            keep_open: false,
            filter: None,
            on_received: None,
            on_direct: None,
            on_timer: None,
            on_closed: None,
            on_woken: None,
            accepted_sockets: None,
            released: Vec::new(),
            over: Vec::new(),
        }
    }

    pub(crate) fn accepted(&self) -> Vec<ConnectionId> {
        let accepted = |happened: &Happened| match happened {
            Happened::Accepted(id) => Some(*id),
            _ => None,
        };
        self.log.iter().filter_map(accepted).collect()
    }

    pub(crate) fn closed(&self) -> usize {
        self.log
            .iter()
            .filter(|happened| matches!(happened, Happened::Closed(..)))
            .count()
    }

    pub(crate) fn received(&self, id: ConnectionId) -> &[u8] {
        self.input.get(&id).map_or(&[], |input| input)
    }

    /// What happened to one connection after it was accepted.
    pub(crate) fn story(&self, id: ConnectionId) -> Vec<Happened> {
        let about = |happened: &&Happened| match happened {
            Happened::EndOfInput(about)
            | Happened::HungUp(about)
            | Happened::Sent(about, _)
            | Happened::Closed(about, _)
            | Happened::Released(about) => *about == id,
            _ => false,
        };
        self.log.iter().filter(about).cloned().collect()
    }

    fn alive(&self, id: ConnectionId) {
        assert!(
            !self.over.contains(&id),
            "a callback for {id:?} after it was closed"
        );
    }
}

impl<D: Driver> Handler<D> for Recorder<D> {
    fn accepted(&mut self, io: &mut D, _: ListenerId, socket: OwnedFd, peer: PeerAddress) {
        self.peers.push(peer);
        if let Some(sockets) = &mut self.accepted_sockets {
            return sockets.push(socket);
        }
        let id = io
            .adopt(socket, self.filter.map(|filter| filter()))
            .unwrap();
        self.log.push(Happened::Accepted(id));
    }

    fn accept_failed(&mut self, _: &mut D, _: ListenerId, error: io::Error) {
        self.log.push(Happened::AcceptFailed(error.kind()));
    }

    fn receive_target(&mut self, id: ConnectionId) -> Option<&mut [u8]> {
        self.alive(id);
        let target = self.targets.get_mut(&id)?;
        let end = target.memory.len().min(target.filled + target.window);
        Some(&mut target.memory[target.filled..end])
    }

    fn received(&mut self, io: &mut D, id: ConnectionId, data: &mut [u8]) {
        self.alive(id);
        assert!(!data.is_empty());
        self.pieces.push(data.len());
        self.input.entry(id).or_default().extend_from_slice(data);
        if self.echo {
            let mut output = Output::new();
            output.tail().extend_from_slice(data);
            io.send(id, &mut output);
            assert!(output.is_empty());
        }
        if let Some(mut hook) = self.on_received.take() {
            hook(io, id, data);
            self.on_received = Some(hook);
        }
    }

    fn received_direct(&mut self, io: &mut D, id: ConnectionId, count: usize) {
        self.alive(id);
        let target = self.targets.get_mut(&id).unwrap();
        assert!(count > 0 && count <= target.window);
        target.filled += count;
        assert!(target.filled <= target.memory.len());
        if let Some(mut hook) = self.on_direct.take() {
            hook(io, id);
            self.on_direct = Some(hook);
        }
    }

    fn end_of_input(&mut self, io: &mut D, id: ConnectionId) {
        self.alive(id);
        self.log.push(Happened::EndOfInput(id));
        if !self.keep_open {
            io.close(id, Close::AfterFlush);
        }
    }

    fn hung_up(&mut self, _: &mut D, id: ConnectionId) {
        self.alive(id);
        self.log.push(Happened::HungUp(id));
    }

    fn sent(&mut self, io: &mut D, id: ConnectionId, remaining: usize) {
        self.alive(id);
        assert_eq!(remaining, io.pending_output(id));
        self.log.push(Happened::Sent(id, remaining));
    }

    fn closed(&mut self, io: &mut D, id: ConnectionId, reason: CloseReason) {
        self.alive(id);
        self.over.push(id);
        let reason = match reason {
            CloseReason::Peer => Reason::Peer,
            CloseReason::Local => Reason::Local,
            CloseReason::Error(error) => Reason::Error(error.kind()),
            other => panic!("unknown reason {other:?}"),
        };
        self.log.push(Happened::Closed(id, reason));
        assert_eq!(io.pending_output(id), 0);
        if let Some(mut hook) = self.on_closed.take() {
            hook(io, id);
            self.on_closed = Some(hook);
        }
    }

    fn released(
        &mut self,
        _: &mut D,
        id: ConnectionId,
        socket: OwnedFd,
        filter: Option<Box<dyn Filter>>,
    ) {
        self.alive(id);
        self.over.push(id);
        self.released.push((socket, filter));
        self.log.push(Happened::Released(id));
    }

    fn timer(&mut self, io: &mut D, token: TimerToken) {
        self.log.push(Happened::Timer(token.0));
        if let Some(mut hook) = self.on_timer.take() {
            hook(io, token.0);
            self.on_timer = Some(hook);
        }
    }

    fn woken(&mut self, io: &mut D) {
        self.log.push(Happened::Woken);
        if let Some(mut hook) = self.on_woken.take() {
            hook(io);
            self.on_woken = Some(hook);
        }
    }
}

/// A driver listening on a loopback port of its own, and its recorder.
pub(crate) struct Rig<D> {
    pub(crate) io: D,
    pub(crate) seen: Recorder<D>,
    pub(crate) address: SocketAddr,
    pub(crate) listener: ListenerId,
    pub(crate) total: TurnReport,
}

impl<D: NewDriver> Rig<D> {
    pub(crate) fn new() -> Rig<D> {
        Rig::with(DriverOptions::default())
    }

    pub(crate) fn with(options: DriverOptions) -> Rig<D> {
        let mut io = D::start(options);
        let listener = loopback();
        let address = listener.address().unwrap();
        let listener = io.add_listener(listener).unwrap();
        Rig {
            io,
            seen: Recorder::new(),
            address,
            listener,
            total: TurnReport::default(),
        }
    }

    /// A connected pair: the blocking client socket and the driver's connection.
    pub(crate) fn connect(&mut self) -> (TcpStream, ConnectionId) {
        let before = self.seen.accepted().len();
        let client = connect(self.address);
        self.until("a connection is accepted", |seen| {
            seen.accepted().len() > before
        });
        let id = self.seen.accepted()[before];
        (client, id)
    }

    pub(crate) fn turn(&mut self, timeout: Option<Duration>) -> TurnReport {
        let report = self.io.turn(&mut self.seen, timeout).unwrap();
        self.total.sends += report.sends;
        self.total.receives += report.receives;
        self.total.bytes_received += report.bytes_received;
        self.total.bytes_sent += report.bytes_sent;
        report
    }

    /// Turns until `done`; panics when that takes longer than anything may.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&Recorder<D>) -> bool) {
        self.until_io(what, |_, seen| done(seen));
    }

    pub(crate) fn until_io(
        &mut self,
        what: &str,
        mut done: impl FnMut(&mut D, &Recorder<D>) -> bool,
    ) {
        let deadline = Instant::now() + PATIENCE;
        while !done(&mut self.io, &self.seen) {
            let left = deadline.checked_duration_since(Instant::now());
            let left = left
                .unwrap_or_else(|| panic!("waited in vain until {what}; log: {:?}", self.seen.log));
            self.turn(Some(left));
        }
    }

    pub(crate) fn send(&mut self, id: ConnectionId, bytes: &[u8]) {
        let mut output = Output::new();
        output.tail().extend_from_slice(bytes);
        self.io.send(id, &mut output);
    }
}

pub(crate) fn loopback() -> Listener {
    let options = TcpOptions {
        backlog: 1024,
        keepalive_s: 0,
        mark: 0,
        multipath: false,
    };
    bind_tcp(&["127.0.0.1"], 0, &options)
        .unwrap()
        .listeners
        .remove(0)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    client.set_nodelay(true).unwrap();
    client
}

/// Bytes that differ from each other at every distance that matters.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    bytes
}
