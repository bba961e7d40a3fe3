//! A connection's state that commands see and change; its bytes are the session's.
//!
//! What others may know of it is in its record, where the session publishes it.

use std::sync::Arc;

use weft_keyspace::Watcher;
use weft_resp::{Args, Protocol};

use crate::blocking::{Outcome, Wait, Waiting};
use crate::clients::{ClientFlags, ClientRecord, Clients, Registered};
use crate::transaction::{Queued, Transaction, WatchedKey};

/// Where a connection comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The client's address as CLIENT LIST shows it: `127.0.0.1:50000`, `[::1]:50000` or `/path/to/socket:0`.
    pub address: Box<str>,
    /// The server's address of this connection, likewise.
    pub local_address: Box<str>,
    /// Whether the client is on this machine: loopback or a Unix socket.
    pub local: bool,
}

impl Origin {
    /// Whether it came over a Unix socket: nobody connects from port 0.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        self.address.ends_with(":0")
    }
}

/// One connected client.
#[derive(Debug)]
pub struct Client {
    registered: Registered,
    authenticated: bool,
    flags: ClientFlags,
    /// Which replies it wants.
    pub(crate) replies: Replies,
    /// The length of the output at which its replies are too many. It is closed then, and what is made after that is made
    /// for nobody.
    pub(crate) output_end: usize,
    /// Bytes of replies that it has not taken yet, without those of the batch that is being run.
    pub(crate) unsent: usize,
    /// How much of the output its record has counted.
    output_counted: usize,
    /// The length of the output when the batch began.
    output_start: usize,
    /// When what is being run was received, on the scale of the clock's instants; the greatest number: not known.
    pub(crate) arrived_ns: u64,
    /// What its last command waits for.
    waiting: Option<Box<Waiting>>,
    /// The commands of its transaction are running.
    executing: bool,
    /// The commands it has queued and the keys it watches; kept from its first transaction on.
    transaction: Option<Box<Transaction>>,
    /// The selected database.
    pub database: usize,
    /// The protocol of its replies.
    pub protocol: Protocol,
}

/// CLIENT REPLY: which replies a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replies {
    /// None at all.
    pub(crate) off: bool,
    /// Not that of the command that is being run.
    pub(crate) skip: bool,
    /// Not that of the next command.
    pub(crate) skip_next: bool,
}

impl Replies {
    /// All are wanted, of the command that follows too.
    #[inline]
    pub(crate) const fn are_wanted(self) -> bool {
        !self.off && !self.skip_next
    }

    /// Whether the reply of the command that is being run is dropped.
    pub(crate) const fn drop_this(self) -> bool {
        self.off || self.skip
    }
}

impl Client {
    /// A client that has just connected; `authenticated` if no password is asked for.
    #[must_use]
    pub fn new(clients: &Arc<Clients>, id: u64, origin: Origin, authenticated: bool) -> Self {
        Self::of(clients.enter(id, origin), authenticated)
    }

    /// What stands for a client that waited while another one runs its command. Nobody sees it among the clients.
    pub(crate) fn stand_in(clients: &Arc<Clients>) -> Self {
        Self::of(clients.unlisted(), true)
    }

    /// Takes on what that client's command needs to know of it.
    pub(crate) fn stand_in_for(&mut self, wait: &Wait) {
        self.database = wait.database;
        self.protocol = wait.protocol;
    }

    fn of(registered: Registered, authenticated: bool) -> Self {
        Self {
            registered,
            authenticated,
            flags: ClientFlags::default(),
            replies: Replies::default(),
            output_end: usize::MAX,
            unsent: 0,
            output_counted: 0,
            output_start: 0,
            arrived_ns: u64::MAX,
            waiting: None,
            executing: false,
            transaction: None,
            database: 0,
            protocol: Protocol::Resp2,
        }
    }

    /// Unique among all connections since the start, counted from 1.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.record().id()
    }

    /// Where it comes from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        self.record().origin()
    }

    /// What others see of it.
    #[must_use]
    pub fn record(&self) -> &Arc<ClientRecord> {
        self.registered.record()
    }

    /// Its line as CLIENT LIST shows it. `now_ns` is on the scale of the engine's clock.
    #[must_use]
    pub fn line(&self, now_ns: u64) -> Vec<u8> {
        self.registered.clients().line(self.record(), now_ns)
    }

    /// What it is.
    #[must_use]
    pub const fn flags(&self) -> ClientFlags {
        self.flags
    }

    /// Whether it hears of every command.
    #[must_use]
    pub const fn is_monitor(&self) -> bool {
        self.flags.contains(ClientFlags::MONITOR)
    }

    /// Whether the commands of its transaction are running: nothing in it may wait.
    #[must_use]
    pub const fn in_exec(&self) -> bool {
        self.executing
    }

    /// The commands of its transaction begin or have ended.
    pub(crate) const fn set_executing(&mut self, executing: bool) {
        self.executing = executing;
    }

    pub(crate) fn set_flag(&mut self, flag: ClientFlags, on: bool) {
        self.flags.set(flag, on);
    }

    /// Whether commands other than those for authentication may run.
    #[must_use]
    pub const fn authenticated(&self) -> bool {
        self.authenticated
    }

    /// The client has proved who it is.
    pub fn authenticate(&mut self) {
        self.authenticated = true;
    }

    /// Back to the state of a new connection, except what the client library said of itself; `authenticated` as for a
    /// new one.
    pub fn reset(&mut self, authenticated: bool) {
        self.authenticated = authenticated;
        self.database = 0;
        self.protocol = Protocol::Resp2;
        self.record().set_name(b"");
        if self.is_monitor() {
            self.registered.clients().stop_monitoring(self.record());
        }
        self.end_multi();
        self.flags = ClientFlags::default();
        self.replies.off = false;
        self.replies.skip_next = false;
        self.publish_state();
    }

    /// Its command waits from now on.
    pub(crate) fn begin_waiting(&mut self, waiting: Waiting) {
        self.record().set_wait(Arc::downgrade(&waiting.wait));
        self.set_flag(ClientFlags::WAITING, true);
        let timed = waiting.wait.deadline_ns.is_some();
        self.set_flag(ClientFlags::TIMED, timed);
        self.waiting = Some(Box::new(waiting));
    }

    /// The command that waits has run for so long before.
    pub(crate) fn note_waiting(&mut self, took_ns: u64) {
        if let Some(waiting) = &mut self.waiting {
            waiting.took_ns = took_ns;
        }
    }

    /// Whether its last command waits, or the end of that is not dealt with.
    #[inline]
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub(crate) fn waiting(&self) -> Option<&Waiting> {
        self.waiting.as_deref()
    }

    /// Nobody serves it any more.
    pub(crate) fn give_up_waiting(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.wait.claim(Outcome::GivenUp);
        }
    }

    /// The wait is over and dealt with.
    pub(crate) fn end_waiting(&mut self) -> Option<Box<Waiting>> {
        let waiting = self.waiting.take()?;
        self.record().set_wait(std::sync::Weak::new());
        self.set_flag(ClientFlags::WAITING, false);
        self.set_flag(ClientFlags::TIMED, false);
        Some(waiting)
    }

    /// Whether its commands are queued.
    #[inline]
    #[must_use]
    pub const fn in_multi(&self) -> bool {
        self.flags.contains(ClientFlags::MULTI)
    }

    /// Whether it watches keys.
    #[must_use]
    pub fn is_watching(&self) -> bool {
        let transaction = self.transaction.as_ref();
        transaction.is_some_and(|transaction| !transaction.watched().is_empty())
    }

    /// Whether a key has changed that it watches.
    pub(crate) fn sees_change(&self) -> bool {
        self.record().sees_change()
    }

    /// Its commands are queued from now on.
    pub(crate) fn begin_multi(&mut self) {
        self.set_flag(ClientFlags::MULTI, true);
        self.transaction.get_or_insert_default();
    }

    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        self.transaction.as_deref()
    }

    /// Takes the transaction out for as long as it runs. What is shown of it stays.
    pub(crate) fn take_transaction(&mut self) -> Box<Transaction> {
        self.transaction.take().unwrap_or_default()
    }

    pub(crate) fn put_transaction(&mut self, transaction: Box<Transaction>) {
        self.transaction = Some(transaction);
    }

    /// Queues a command. Once it is certain that none will run, they are not kept.
    pub(crate) fn queue(&mut self, queued: Queued, args: Args<'_>) {
        let in_vain = self.sees_change();
        let transaction = self.transaction.get_or_insert_default();
        if !in_vain && !transaction.is_aborted() {
            transaction.push(queued, args);
            self.registered.record().set_transaction(transaction);
        }
    }

    /// A command was refused: if it is part of a transaction, that will run none.
    pub(crate) fn abort_multi(&mut self) {
        if self.in_multi()
            && let Some(transaction) = &mut self.transaction
        {
            transaction.abort();
        }
    }

    /// Forgets what was queued; commands run at once from now on.
    pub(crate) fn end_multi(&mut self) {
        self.set_flag(ClientFlags::MULTI, false);
        if let Some(transaction) = &mut self.transaction {
            transaction.clear();
            self.registered.record().set_transaction(transaction);
        }
    }

    /// What hears of changes to keys that it watches.
    pub(crate) fn watcher(&self) -> &Arc<Watcher> {
        self.record().watcher()
    }

    /// It watches a key.
    pub(crate) fn watch(&mut self, key: WatchedKey) {
        let transaction = self.transaction.get_or_insert_default();
        transaction.watch(key);
        self.registered.record().set_transaction(transaction);
    }

    /// It watches none of these keys any more, as far as it is concerned.
    pub(crate) fn take_watched(&mut self) -> Vec<WatchedKey> {
        let Some(transaction) = &mut self.transaction else {
            return Vec::new();
        };
        let watched = transaction.take_watched();
        self.registered.record().set_transaction(transaction);
        watched
    }

    /// Bytes of the arguments of its queued commands.
    pub(crate) fn queued_bytes(&self) -> usize {
        let transaction = self.transaction.as_ref();
        transaction.map_or(0, |transaction| transaction.argument_bytes())
    }

    /// It hears of every command from now on.
    pub(crate) fn monitor(&mut self) {
        self.set_flag(ClientFlags::MONITOR, true);
        self.publish_state();
        self.registered.clients().start_monitoring(self.record());
    }

    /// CLIENT REPLY ON or OFF.
    pub(crate) fn want_replies(&mut self, wanted: bool) {
        self.replies.off = !wanted;
        if wanted {
            self.replies.skip = false;
        }
        self.set_flag(ClientFlags::MUTE, !wanted);
        self.publish_state();
    }

    /// Closes the connection once what has been replied so far is sent; nothing after it is run.
    pub fn close_after_reply(&mut self) {
        self.set_flag(ClientFlags::CLOSING, true);
    }

    /// Whether the connection is to be closed.
    #[must_use]
    pub const fn closing(&self) -> bool {
        self.flags.contains(ClientFlags::CLOSING)
    }

    /// A batch begins, with so many bytes in the output, and those of unfinished requests in the input.
    pub(crate) fn begin_batch(&mut self, output: usize, output_room: usize, input: usize) {
        self.output_start = output;
        self.output_counted = output;
        self.output_end = output.saturating_add(output_room);
        self.record().set_input(input, input);
    }

    /// A batch is over.
    pub(crate) fn end_batch(&mut self, output: usize, input: usize, input_capacity: usize) {
        self.record()
            .count_output(output.saturating_sub(self.output_counted));
        self.record().set_input(input, input_capacity);
        self.publish_state();
    }

    /// Brings the record up to date in the middle of a batch: `output` bytes of replies have been made, and the command
    /// being run has `arguments` bytes of arguments.
    pub(crate) fn publish(&mut self, output: usize, arguments: usize) {
        let record = self.registered.record();
        record.count_output(output.saturating_sub(self.output_counted));
        self.output_counted = output;
        record.set_making(output.saturating_sub(self.output_start));
        record.set_arguments(arguments);
        self.publish_state();
    }

    /// Undoes what [`publish`](Self::publish) said of the command and of replies that are on their way.
    pub(crate) fn unpublish(&mut self) {
        self.record().set_making(0);
        self.record().set_arguments(0);
    }

    pub(crate) fn publish_state(&self) {
        self.record()
            .set_state(self.database, self.protocol, self.flags);
    }
}
