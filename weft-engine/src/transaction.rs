//! What a client keeps for a transaction: the commands between MULTI and EXEC, and the keys it watches.
//!
//! Commands are copied out of the receive buffer, each with the place of its only key, so that EXEC need not look for it. Does not
//! run anything and knows no shard: whoever takes keys off the list also ends their being watched in the keyspace.

use weft_keyspace::Position;
use weft_resp::{Args, OwnedRequests};

use crate::command::{Flags, Numbered};

/// What Redis counts for a queued command beside its arguments, in bytes: `multi-mem` is shown in these terms.
const COMMAND_BYTES: usize = 16;

/// So many entries of emptied lists stay.
const KEPT_MAX: usize = 64;

/// A client's transaction, or what is watched for one that may follow.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    queue: Queue,
    /// A command was refused: EXEC runs none.
    aborted: bool,
    watched: Vec<WatchedKey>,
    /// Bytes of the names of these keys.
    names: usize,
}

/// Commands in the order they came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    requests: OwnedRequests,
    commands: Vec<Queued>,
    flags: Flags,
}

/// A command that waits for EXEC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) command: Numbered,
    /// Where its key lives, if it has just one in a fixed place.
    pub(crate) position: Option<Position>,
}

/// A key whose change lets EXEC run nothing.
#[derive(Debug)]
pub(crate) struct WatchedKey {
    pub(crate) database: usize,
    pub(crate) position: Position,
    pub(crate) name: Box<[u8]>,
    /// It was there when that began: its end by time is a change too.
    pub(crate) alive: bool,
}

impl Queue {
    /// How many commands there are.
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// The flags of all of them together.
    pub(crate) const fn flags(&self) -> Flags {
        self.flags
    }

    /// The commands with their arguments, in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (Queued, Args<'_>)> {
        self.commands.iter().copied().zip(self.requests.iter())
    }

    fn clear(&mut self) {
        self.requests.clear();
        self.commands.clear();
        self.commands.shrink_to(KEPT_MAX);
        self.flags = Flags::NONE;
    }
}

impl Transaction {
    /// Appends a command.
    pub(crate) fn push(&mut self, queued: Queued, args: Args<'_>) {
        self.queue.requests.push(args);
        self.queue.commands.push(queued);
        self.queue.flags = self.queue.flags | queued.command.row.flags;
    }

    pub(crate) const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// A command was refused.
    pub(crate) const fn abort(&mut self) {
        self.aborted = true;
    }

    pub(crate) const fn is_aborted(&self) -> bool {
        self.aborted
    }

    /// Forgets the commands, not the keys.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.aborted = false;
    }

    pub(crate) fn watched(&self) -> &[WatchedKey] {
        &self.watched
    }

    pub(crate) fn watch(&mut self, key: WatchedKey) {
        self.names += key.name.len();
        self.watched.push(key);
    }

    /// Takes all keys off the list.
    pub(crate) fn take_watched(&mut self) -> Vec<WatchedKey> {
        self.names = 0;
        std::mem::take(&mut self.watched)
    }

    /// Bytes of the commands in Redis's terms.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.requests.total_bytes() + self.queue.len() * COMMAND_BYTES
    }

    /// Bytes of the commands' arguments.
    pub(crate) fn argument_bytes(&self) -> usize {
        self.queue.requests.total_bytes()
    }

    /// Bytes of memory for all of it.
    pub(crate) fn allocated_bytes(&self) -> usize {
        size_of::<Self>()
            + self.queue.requests.allocated_bytes()
            + self.queue.commands.capacity() * size_of::<Queued>()
            + self.watched.capacity() * size_of::<WatchedKey>()
            + self.names
    }
}
