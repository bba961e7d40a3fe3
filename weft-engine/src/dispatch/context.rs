//! What a handler sees.

use weft_data::collection::Collection;
use weft_keyspace::Position;
use weft_resp::{Args, Writer};

use super::unit::Unit;
use crate::blocking::Wish;
use crate::client::Client;
use crate::command::CommandRow;
use crate::engine::{Engine, WorkerState};
use crate::error::CommandError;

/// One key of the running command.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key's name.
    pub name: &'a [u8],
    /// Where it lives.
    pub position: Position,
    /// Which of the unit's latches covers it.
    pub(super) latch: u32,
}

/// The latch of a key that is not at hand.
pub(super) const UNLATCHED: u32 = u32::MAX;

impl Key<'_> {
    /// Whether the key may be touched. All are when a command is called; when one that waited is served, only those that may
    /// have become what it waited for, and the one it puts data into.
    #[must_use]
    pub const fn is_at_hand(&self) -> bool {
        self.latch != UNLATCHED
    }
}

/// Everything a handler may touch: its arguments, the latched keys among them, and the reply.
pub struct Context<'a, 'k> {
    /// The arguments, the command's name first.
    pub args: Args<'a>,
    /// The keys among the arguments, in order.
    pub keys: &'a [Key<'a>],
    /// Where the reply goes.
    pub reply: Writer<'a>,
    /// The latched part of the keyspace, and the record of what is done to it.
    pub unit: &'a mut Unit<'k>,
    /// The calling client.
    pub client: &'a mut Client,
    /// The worker that runs the command.
    pub worker: &'a mut WorkerState,
    /// What all workers share.
    pub engine: &'k Engine,
    /// The command being run.
    pub row: &'static CommandRow,
    pub(super) steps: Option<Box<dyn Steps>>,
    pub(super) wish: Option<Wish>,
}

impl Context<'_, '_> {
    /// Whether the replies have become too many, so that nobody will get the rest of this one.
    #[must_use]
    pub fn reply_is_void(&self) -> bool {
        self.reply.out.len() >= self.client.output_end
    }

    /// Lets the client wait, instead of replying. The handler has done nothing yet, and will be called again when what it waits
    /// for is there. Where waiting is not allowed, it is as if the time were up.
    pub(crate) fn wait(&mut self, wish: Wish) {
        if self.may_block() {
            self.wish = Some(wish);
        } else {
            wish.denied.write(&mut self.reply);
        }
    }

    /// Whether the command may make its client wait. In a transaction it acts as if its time were over.
    #[must_use]
    pub const fn may_block(&self) -> bool {
        !self.client.in_exec()
    }

    /// Leaves the rest of the work to `steps`, which saw the data only through what was captured under the latch.
    pub fn continue_with(&mut self, steps: impl Steps + 'static) {
        self.steps = Some(Box::new(steps));
    }
}

/// Work that outlives the latch: it sees only what its handler captured.
pub trait Steps {
    /// Works until done or until the budget is spent.
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress;

    /// What they failed with, once they are done: then they have written nothing.
    fn failure(&self) -> Option<CommandError> {
        None
    }

    /// Gives up the snapshots of collections that it captured. The collections themselves may have gone meanwhile, and then
    /// these are what has to be freed.
    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        Vec::new()
    }
}

/// Whether steps are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The reply is complete.
    Done,
    /// More to do.
    More,
}

/// How much work a step may do, in units of about a nanosecond.
#[derive(Debug)]
pub struct Budget(u64);

impl Budget {
    /// One slice: about 200 microseconds.
    #[must_use]
    pub const fn slice() -> Self {
        Self(200_000)
    }

    /// The work left.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.0
    }

    /// Takes up to `work` from the budget and says how much it got.
    pub fn take(&mut self, work: u64) -> u64 {
        let taken = work.min(self.0);
        self.0 -= taken;
        taken
    }
}
