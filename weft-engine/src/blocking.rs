//! A command that waits: what is known of it while it does, and how it ends.
//!
//! A record lies in the queues of all keys the command waits for, and with the session that waits. Whoever claims it, by one
//! compare-and-swap, ends the wait; the session then replies and takes the record out of the queues where it still is.
//!
//! ```text
//!            the unit that made data available runs the command, then leaves the reply here
//!          .------------------------------------> SERVED -----------------------------.
//!  OPEN ---+-- the time is up, CLIENT UNBLOCK --> LAPSED, REFUSED: the session replies --> over
//!          '-- the client is gone --------------> GIVEN_UP
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use weft_data::collection::Kind;
use weft_keyspace::{Awaited, Entry, Position};
use weft_resp::{Args, OwnedArgs, Protocol, Writer};
use weft_rope::Output;

use crate::client::Client;
use crate::clients::{ClientFlags, ClientRecord};
use crate::command::Numbered;
use crate::engine::Engine;

/// What a command says that got nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// Null.
    Null,
    /// A null array.
    NullArray,
    /// The number 0.
    Zero,
    /// It twice, in an array.
    Zeros,
}

impl Nothing {
    pub(crate) fn write(self, reply: &mut Writer<'_>) {
        match self {
            Self::Null => reply.null(),
            Self::NullArray => reply.null_array(),
            Self::Zero => reply.integer(0),
            Self::Zeros => {
                reply.array(2);
                reply.integer(0);
                reply.integer(0);
            }
        }
    }
}

/// The error that ends a wait on request: CLIENT UNBLOCK ERROR.
pub(crate) const UNBLOCKED: &[u8] = b"UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// What a handler asks for that found nothing: that its client wait.
pub(crate) struct Wish {
    /// What is awaited, and under which of the command's keys; none: nothing but time.
    pub(crate) awaits: Option<(Awaited, Range<usize>)>,
    /// What has to hold besides the key's holding such a value.
    pub(crate) condition: Option<Box<dyn Condition>>,
    /// The arguments to be run with in place of the command's own, the keys in the same places.
    pub(crate) args: Option<OwnedArgs>,
    /// Which of the command's keys the command puts data into when it is served.
    pub(crate) feeds: Option<usize>,
    /// When the wait ends at the latest, on the scale of the engine's clock.
    pub(crate) deadline_ns: Option<u64>,
    /// The reply when the time is up.
    pub(crate) lapsed: Nothing,
    /// The reply where waiting is not allowed.
    pub(crate) denied: Nothing,
}

/// Decides whether what a key holds now ends a wait.
pub(crate) trait Condition: Send + Sync {
    /// The key's live entry, if there is one, is of any kind.
    fn is_met(&self, key: &[u8], entry: Option<Entry<'_>>) -> bool;

    /// Whether a key that is gone, or holds something else, can end it as well.
    fn heeds_absence(&self) -> bool {
        false
    }
}

/// What an entry can be awaited as.
pub(crate) fn awaited_as(entry: Entry<'_>) -> Option<Awaited> {
    match entry.collection()?.kind() {
        Kind::List => Some(Awaited::List),
        Kind::SortedSet => Some(Awaited::SortedSet),
        Kind::Stream => Some(Awaited::Stream),
        _ => None,
    }
}

const OPEN: u8 = 0;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Outcome {
    /// There was data: the command has run.
    Served = 1,
    /// The time was up, or somebody made it so.
    Lapsed,
    /// Somebody ended it with an error.
    Refused,
    /// The client is gone.
    GivenUp,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Served, Self::Lapsed, Self::Refused, Self::GivenUp];
}

/// A command that waits.
pub(crate) struct Wait {
    state: AtomicU8,
    pub(crate) client: Arc<ClientRecord>,
    pub(crate) command: Numbered,
    pub(crate) args: OwnedArgs,
    pub(crate) database: usize,
    pub(crate) protocol: Protocol,
    /// Its use of keys leaves no trace.
    pub(crate) traceless: bool,
    pub(crate) condition: Option<Box<dyn Condition>>,
    /// The argument that names the key it puts data into, and where that lives.
    pub(crate) feeds: Option<(usize, Position)>,
    pub(crate) deadline_ns: Option<u64>,
    pub(crate) lapsed: Nothing,
    reply: Mutex<Option<Output>>,
}

impl Wait {
    /// The wait of `client` for what `wish` says. `feeds` is its key in terms of arguments.
    pub(crate) fn new(
        client: &Client,
        command: Numbered,
        args: Args<'_>,
        wish: Wish,
        feeds: Option<(usize, Position)>,
    ) -> Self {
        Self {
            state: AtomicU8::new(OPEN),
            client: Arc::clone(client.record()),
            command,
            args: wish.args.unwrap_or_else(|| args.into()),
            database: client.database,
            protocol: client.protocol,
            traceless: client.flags().contains(ClientFlags::NO_TOUCH),
            condition: wish.condition,
            feeds,
            deadline_ns: wish.deadline_ns,
            lapsed: wish.lapsed,
            reply: Mutex::default(),
        }
    }

    /// Whether nobody has ended it.
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == OPEN
    }

    /// Ends it, if nobody else has.
    pub(crate) fn claim(&self, outcome: Outcome) -> bool {
        self.state
            .compare_exchange(OPEN, outcome as u8, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// How it ended; none while it lasts.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let state = self.state.load(Ordering::Acquire);
        Outcome::ALL
            .into_iter()
            .find(|outcome| *outcome as u8 == state)
    }

    /// Whether what a key holds now would end it. `entry` is of the awaited kind unless absence is heeded.
    pub(crate) fn is_met(&self, key: &[u8], entry: Option<Entry<'_>>) -> bool {
        match &self.condition {
            None => true,
            Some(condition) => condition.is_met(key, entry),
        }
    }

    /// Whether a key that is gone can end it.
    pub(crate) fn heeds_absence(&self) -> bool {
        let condition = self.condition.as_ref();
        condition.is_some_and(|condition| condition.heeds_absence())
    }

    /// Leaves the reply of one that was served. Its owner has to be told.
    pub(crate) fn leave_reply(&self, reply: Output) {
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
        // The counterpart of the one in `ClientRecord::settle`: a new owner finds the reply, or is found to be told of it.
        fence(Ordering::SeqCst);
    }

    fn take_reply(&self) -> Option<Output> {
        let mut reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        reply.take()
    }

    fn has_reply(&self) -> bool {
        let reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        reply.is_some()
    }
}

/// How many keys somebody waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AwaitedKeys {
    /// All of them.
    pub(crate) keys: usize,
    /// Those whose absence somebody heeds.
    pub(crate) heeding_absence: usize,
}

impl AwaitedKeys {
    /// Takes every shard's latch in turn.
    pub(crate) fn of(engine: &Engine) -> Self {
        let mut total = Self::default();
        for shard in 0..engine.keyspace.shards() {
            let latched = engine.keyspace.latch(shard);
            let mut names: Vec<_> = latched.awaited_keys().collect();
            names.sort_unstable();
            names.dedup();
            total.keys += names.len();
            total.heeding_absence += names
                .iter()
                .filter(|(database, position, name)| {
                    let mut after = 0;
                    std::iter::from_fn(|| {
                        let kind = Awaited::Stream;
                        let next = latched.next_waiter(*database, kind, *position, name, after);
                        let (ticket, waiter) = next?;
                        after = ticket;
                        Some(waiter.downcast_ref().is_some_and(Wait::heeds_absence))
                    })
                    .any(|heeds| heeds)
                })
                .count();
        }
        total
    }
}

/// Where a record lies in a queue.
pub(crate) struct Place {
    pub(crate) kind: Awaited,
    /// The argument that names the key.
    pub(crate) argument: usize,
    pub(crate) position: Position,
    pub(crate) ticket: u64,
}

/// A wait as the session has it that waits.
pub(crate) struct Waiting {
    pub(crate) wait: Arc<Wait>,
    pub(crate) places: SmallVec<[Place; 1]>,
    /// Nobody wants the reply.
    pub(crate) muted: bool,
    /// How long the command has run so far.
    pub(crate) took_ns: u64,
}

impl Waiting {
    /// Whether the session can go on.
    pub(crate) fn is_over(&self) -> bool {
        match self.wait.outcome() {
            None => false,
            Some(Outcome::Served) => self.wait.has_reply(),
            Some(_) => true,
        }
    }

    /// The reply of one that was served.
    pub(crate) fn take_reply(&self) -> Output {
        self.wait.take_reply().unwrap_or_default()
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("command", &self.wait.command.row.name)
            .field("outcome", &self.wait.outcome())
            .finish_non_exhaustive()
    }
}

impl Drop for Waiting {
    /// Nothing is taken for a client that is gone, even if its record still lies somewhere.
    fn drop(&mut self) {
        self.wait.claim(Outcome::GivenUp);
    }
}
