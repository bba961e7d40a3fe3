//! What is known of one client outside its worker.
//!
//! Three parts, each on cache lines of its own: what never changes and is rarely written by others, what the owner writes
//! while it serves, and what strangers leave for the owner.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use weft_keyspace::Watcher;
use weft_resp::Protocol;

use super::{address, lock};
use crate::blocking::{Outcome, Wait};
use crate::client::Origin;
use crate::command::CommandRow;
use crate::output_watch::UNCOUNTED_BYTES;
use crate::session::Session;
use crate::statistics::Counter;
use crate::transaction::Transaction;

/// The name of the only user there is.
const USER: &str = "default";

/// A node of Redis's list of replies has at least so many bytes; `oll` counts in them.
const REPLY_NODE_BYTES: usize = 16 * 1024;

/// What a connection occupies in any case.
const FIXED_BYTES: usize = size_of::<ClientRecord>() + size_of::<Session>();

/// A client as others see it.
pub struct ClientRecord {
    id: u64,
    origin: Origin,
    /// Nanoseconds on the scale of the engine's clock.
    created_ns: AtomicU64,
    descriptor: AtomicI32,
    worker: AtomicUsize,
    /// The connection's number on its worker.
    connection: AtomicU64,
    doomed: AtomicBool,
    figures: Figures,
    texts: Mutex<Texts>,
    pushes: Mutex<Pushes>,
    /// What its last command waits for.
    wait: Mutex<Weak<Wait>>,
    /// Hears of changes to keys that it watches; made when it first does.
    watcher: OnceLock<Arc<Watcher>>,
}

/// Written by the owner only.
#[derive(Default)]
#[repr(align(128))]
struct Figures {
    /// Database, protocol and flags in one word.
    state: AtomicU64,
    /// When bytes last went in or out.
    active_ns: AtomicU64,
    /// The address of the last command's row.
    command: AtomicUsize,
    commands: Counter,
    input_bytes: Counter,
    /// Of replies made.
    output_bytes: Counter,
    unsent: AtomicUsize,
    /// Of replies that are being made.
    making: AtomicUsize,
    buffered: AtomicUsize,
    buffer_capacity: AtomicUsize,
    arguments: AtomicUsize,
    /// How many commands are queued.
    queued: AtomicUsize,
    /// Their bytes in Redis's terms.
    queued_bytes: AtomicUsize,
    /// Of what is kept for the transaction.
    transaction_bytes: AtomicUsize,
    watched: AtomicUsize,
}

/// What the client says of itself.
#[derive(Default)]
struct Texts {
    name: Box<[u8]>,
    library_name: Box<[u8]>,
    library_version: Box<[u8]>,
}

/// What has been made for the client by others, in order.
#[derive(Default)]
struct Pushes {
    waiting: Vec<Arc<[u8]>>,
    bytes: usize,
}

/// What became of something pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pushed {
    /// Nothing was waiting before: the owner does not know yet.
    pub(super) first: bool,
    /// Bytes that wait now.
    pub(super) waiting: usize,
}

/// What a client is, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientFlags(u16);

impl ClientFlags {
    /// It monitors.
    pub const MONITOR: Self = Self(1);
    /// A pause holds its next command.
    pub const HELD: Self = Self(1 << 1);
    /// It is closed once its replies are sent.
    pub const CLOSING: Self = Self(1 << 2);
    /// CLIENT NO-EVICT.
    pub const NO_EVICT: Self = Self(1 << 3);
    /// CLIENT NO-TOUCH.
    pub const NO_TOUCH: Self = Self(1 << 4);
    /// It wants no replies: CLIENT REPLY OFF.
    pub const MUTE: Self = Self(1 << 5);
    /// Its commands are queued until EXEC.
    pub const MULTI: Self = Self(1 << 6);
    /// Its last command waits for data.
    pub const WAITING: Self = Self(1 << 12);
    /// It does so for a limited time.
    pub const TIMED: Self = Self(1 << 13);

    /// Whether all of `other` are among these.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With or without `other`.
    pub(crate) const fn set(&mut self, other: Self, on: bool) {
        if on {
            self.0 |= other.0;
        } else {
            self.0 &= !other.0;
        }
    }
}

impl ClientRecord {
    pub(super) fn new(id: u64, origin: Origin) -> Self {
        Self {
            id,
            origin,
            created_ns: AtomicU64::new(0),
            descriptor: AtomicI32::new(-1),
            worker: AtomicUsize::new(0),
            connection: AtomicU64::new(0),
            doomed: AtomicBool::new(false),
            figures: Figures::default(),
            texts: Mutex::default(),
            pushes: Mutex::default(),
            wait: Mutex::default(),
            watcher: OnceLock::new(),
        }
    }

    /// Unique among all connections since the start, counted from 1.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Where it comes from.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// When it connected, on the scale of the engine's clock.
    #[must_use]
    pub fn created_ns(&self) -> u64 {
        self.created_ns.load(Ordering::Relaxed)
    }

    /// The number of the worker that owns it. On its way from one to another it is the old one's.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.worker.load(Ordering::Relaxed)
    }

    /// The connection's number on its worker, as [`settle`](Self::settle) was told.
    #[must_use]
    pub fn connection(&self) -> u64 {
        self.connection.load(Ordering::Relaxed)
    }

    /// This worker owns it from now on. Whoever leaves something for the owner after this finds the new one; what was left
    /// before, the new owner finds.
    pub(crate) fn settle(&self, worker: usize, connection: u64, descriptor: i32, now_ns: u64) {
        if self.created_ns() == 0 {
            self.created_ns.store(now_ns, Ordering::Relaxed);
            self.set_active_ns(now_ns);
        }
        self.connection.store(connection, Ordering::Relaxed);
        self.descriptor.store(descriptor, Ordering::Relaxed);
        self.worker.store(worker, Ordering::Relaxed);
        // The counterpart of the one in `doom`: one of the two sees the other's store.
        fence(Ordering::SeqCst);
    }

    /// Whether it was killed: it runs no further command, and its owner closes it.
    #[inline]
    #[must_use]
    pub fn is_doomed(&self) -> bool {
        self.doomed.load(Ordering::Relaxed)
    }

    pub(super) fn doom(&self) {
        self.doomed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// What it is.
    #[must_use]
    pub fn flags(&self) -> ClientFlags {
        ClientFlags((self.figures.state.load(Ordering::Relaxed) >> 48) as u16)
    }

    /// Bytes of replies that it has not taken, as far as known.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.figures.unsent.load(Ordering::Relaxed)
    }

    /// Bytes held for unfinished requests, room for more included.
    #[must_use]
    pub fn input_buffer(&self) -> usize {
        let figures = &self.figures;
        let buffered = figures.buffered.load(Ordering::Relaxed);
        buffered.max(figures.buffer_capacity.load(Ordering::Relaxed))
    }

    pub(super) fn command(&self) -> usize {
        self.figures.command.load(Ordering::Relaxed)
    }

    /// CLIENT GETNAME; empty if none.
    #[must_use]
    pub fn name(&self) -> Box<[u8]> {
        lock(&self.texts).name.clone()
    }

    pub(crate) fn set_name(&self, name: &[u8]) {
        lock(&self.texts).name = name.into();
    }

    pub(crate) fn set_library_name(&self, name: &[u8]) {
        lock(&self.texts).library_name = name.into();
    }

    pub(crate) fn set_library_version(&self, version: &[u8]) {
        lock(&self.texts).library_version = version.into();
    }

    /// Ends what it waits for, as if the time were up or with an error. Its owner has to be told if this is true; false: it did
    /// not wait.
    pub(crate) fn unblock(&self, with_error: bool) -> bool {
        let outcome = if with_error {
            Outcome::Refused
        } else {
            Outcome::Lapsed
        };
        let wait = lock(&self.wait).upgrade();
        let ended = wait.is_some_and(|wait| wait.claim(outcome));
        fence(Ordering::SeqCst);
        ended
    }

    // What follows is called by the owner only.

    pub(crate) fn set_wait(&self, wait: Weak<Wait>) {
        *lock(&self.wait) = wait;
    }

    pub(crate) fn set_state(&self, database: usize, protocol: Protocol, flags: ClientFlags) {
        let protocol = u64::from(protocol == Protocol::Resp3);
        let state = u64::from(flags.0) << 48 | protocol << 32 | database as u64 & 0xffff_ffff;
        self.figures.state.store(state, Ordering::Relaxed);
    }

    pub(crate) fn set_active_ns(&self, now_ns: u64) {
        self.figures.active_ns.store(now_ns, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn set_command(&self, row: Option<&'static CommandRow>) {
        let command = row.map_or(0, address);
        self.figures.command.store(command, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn count_command(&self) {
        self.figures.commands.add(1);
    }

    pub(crate) fn count_input(&self, bytes: usize) {
        self.figures.input_bytes.add(bytes as i64);
    }

    pub(crate) fn count_output(&self, bytes: usize) {
        self.figures.output_bytes.add(bytes as i64);
    }

    pub(crate) fn set_unsent(&self, bytes: usize) {
        self.figures.unsent.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_making(&self, bytes: usize) {
        self.figures.making.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_input(&self, buffered: usize, capacity: usize) {
        self.figures.buffered.store(buffered, Ordering::Relaxed);
        self.figures
            .buffer_capacity
            .store(capacity, Ordering::Relaxed);
    }

    pub(crate) fn set_arguments(&self, bytes: usize) {
        self.figures.arguments.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_transaction(&self, transaction: &Transaction) {
        let figures = &self.figures;
        let set = |figure: &AtomicUsize, value| figure.store(value, Ordering::Relaxed);
        set(&figures.queued, transaction.queue().len());
        set(&figures.queued_bytes, transaction.queued_bytes());
        set(&figures.transaction_bytes, transaction.allocated_bytes());
        set(&figures.watched, transaction.watched().len());
    }

    pub(crate) fn set_watched(&self, keys: usize) {
        self.figures.watched.store(keys, Ordering::Relaxed);
    }

    /// Hears of changes to the keys it watches.
    pub(crate) fn watcher(&self) -> &Arc<Watcher> {
        self.watcher.get_or_init(Arc::default)
    }

    /// Whether a key has changed that it watches.
    #[inline]
    pub(crate) fn sees_change(&self) -> bool {
        self.watcher
            .get()
            .is_some_and(|watcher| watcher.is_marked())
    }

    /// How many keys it watches: none once one has changed, as in Redis.
    #[must_use]
    pub fn watched(&self) -> usize {
        if self.sees_change() {
            0
        } else {
            self.figures.watched.load(Ordering::Relaxed)
        }
    }

    pub(super) fn push(&self, bytes: &Arc<[u8]>) -> Pushed {
        let mut pushes = lock(&self.pushes);
        let first = pushes.waiting.is_empty();
        pushes.bytes += bytes.len();
        pushes.waiting.push(Arc::clone(bytes));
        Pushed {
            first,
            waiting: pushes.bytes,
        }
    }

    /// Takes what others have made for it.
    pub(crate) fn take_pushes(&self) -> Vec<Arc<[u8]>> {
        let mut pushes = lock(&self.pushes);
        pushes.bytes = 0;
        std::mem::take(&mut pushes.waiting)
    }

    /// The line of CLIENT LIST. Of what does not exist the constant is shown that Redis shows where it is not used:
    /// subscriptions, redirection. Replies are made in their worker's buffer, so that none has a size.
    pub(super) fn line(&self, command: &str, now_ns: u64) -> Vec<u8> {
        let figures = &self.figures;
        let state = figures.state.load(Ordering::Relaxed);
        let flags = self.flags();
        let seconds_since = |then_ns: u64| now_ns.saturating_sub(then_ns) / 1_000_000_000;
        let behind = self.unsent();
        let unsent = behind + figures.making.load(Ordering::Relaxed);
        let buffered = figures.buffered.load(Ordering::Relaxed);
        let input = self.input_buffer();
        let arguments = figures.arguments.load(Ordering::Relaxed);
        let uncounted = unsent.min(UNCOUNTED_BYTES);
        let counted = unsent - uncounted;
        let sent = figures.output_bytes.load() - unsent as i64;
        let queued = if flags.contains(ClientFlags::MULTI) {
            figures.queued.load(Ordering::Relaxed) as i64
        } else {
            -1
        };
        let queued_bytes = figures.queued_bytes.load(Ordering::Relaxed);
        let transaction = figures.transaction_bytes.load(Ordering::Relaxed);
        let watched = self.watched();
        let mut line = Vec::with_capacity(384);
        let _ = write!(
            line,
            "id={} addr={} laddr={} fd={} name=",
            self.id,
            self.origin.address,
            self.origin.local_address,
            self.descriptor.load(Ordering::Relaxed),
        );
        let texts = lock(&self.texts);
        line.extend_from_slice(&texts.name);
        let _ = write!(
            line,
            " age={} idle={} flags=",
            seconds_since(self.created_ns()),
            seconds_since(figures.active_ns.load(Ordering::Relaxed)),
        );
        self.write_flags(flags, &mut line);
        let _ = write!(
            line,
            " db={} sub=0 psub=0 ssub=0 multi={queued} watch={watched} qbuf={buffered} qbuf-free={} argv-mem={arguments} \
             multi-mem={queued_bytes} rbs=0 rbp=0 obl={uncounted} oll={} omem={counted} tot-mem={} events={} cmd={command} user={USER} redir=-1 resp={} \
             lib-name=",
            state & 0xffff_ffff,
            input - buffered,
            counted.div_ceil(REPLY_NODE_BYTES),
            FIXED_BYTES + input + arguments + transaction + unsent,
            if behind > 0 { "rw" } else { "r" },
            2 + (state >> 32 & 1),
        );
        line.extend_from_slice(&texts.library_name);
        line.extend_from_slice(b" lib-ver=");
        line.extend_from_slice(&texts.library_version);
        let _ = write!(
            line,
            " io-thread={} tot-net-in={} tot-net-out={} tot-cmds={}",
            self.worker.load(Ordering::Relaxed),
            figures.input_bytes.load(),
            sent.max(0),
            figures.commands.load(),
        );
        line
    }

    fn write_flags(&self, flags: ClientFlags, line: &mut Vec<u8>) {
        let start = line.len();
        let mut show = |letter, shown| {
            if shown {
                line.push(letter);
            }
        };
        show(b'O', flags.contains(ClientFlags::MONITOR));
        show(b'x', flags.contains(ClientFlags::MULTI));
        let waits = flags.contains(ClientFlags::HELD) || flags.contains(ClientFlags::WAITING);
        show(b'b', waits);
        show(b'd', self.sees_change());
        show(b'c', flags.contains(ClientFlags::CLOSING));
        show(b'U', self.origin.is_unix());
        show(b'e', flags.contains(ClientFlags::NO_EVICT));
        show(b'T', flags.contains(ClientFlags::NO_TOUCH));
        if line.len() == start {
            line.push(b'N');
        }
    }
}
