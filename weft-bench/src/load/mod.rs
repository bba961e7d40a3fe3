//! The engine: drives many connections over a few threads, each with a reactor of its own, and measures the answers.
//!
//! Owns connections, requests under way, latencies and the end of a run. What is sent comes from a [`Workload`], of which
//! every thread has one. Knows no command line, no report and no command. Invariants: no allocation per request; threads
//! write nothing that another one writes too; what is measured is merged when a thread has finished.

mod budget;
mod failure;
mod live;
mod record;
mod run;
mod template;
mod worker;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use weft_rope::Output;

pub use budget::{Budget, Share};
pub use failure::{Failure, system_text};
#[cfg(test)]
pub use record::Record;
pub use record::{Class, Scale};
pub use run::{Outcome, Progress, Run};
pub use template::{NUMBER_END, PLACEHOLDER, Template, encode};

/// What a run does, apart from what its workloads send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where connections go, in turn: the first to the first target, and so on. At least one.
    pub targets: Vec<Target>,
    /// Connections, of all threads together.
    pub connections: usize,
    /// Threads; connection K belongs to thread K modulo this. At least 1.
    pub threads: usize,
    /// How many requests of a connection may be under way. At least 1.
    pub window: u32,
    /// A connection is asked for more once so many or fewer are under way: 0 sends whole batches.
    pub refill_at: u32,
    /// What every new connection sends before anything else.
    pub prologue: Arc<Prologue>,
    /// What happens when an answer is an error.
    pub errors: ErrorReplies,
    /// How latencies are told apart.
    pub scale: Scale,
    /// How many classes of requests there are.
    pub classes: usize,
    /// Whether what was measured is also told apart by seconds.
    pub by_second: bool,
}

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over a Unix socket.
    Unix(PathBuf),
}

/// Requests whose answers are not measured: who the client is, which database it wants.
#[derive(Clone, Debug, Default)]
pub struct Prologue {
    requests: Vec<u8>,
    count: u32,
}

impl Prologue {
    /// Adds a request. An error in answer to it ends the run.
    pub fn push<A: AsRef<[u8]>>(&mut self, arguments: &[A]) {
        self.requests.extend(encode(arguments));
        self.count += 1;
    }
}

/// What happens when an answer is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorReplies {
    /// It ends the run.
    Fatal,
    /// It is counted, and measured like any answer.
    Counted,
}

/// What the connections of one thread send.
pub trait Workload: Send + 'static {
    /// Appends the next requests of a connection to `out`. Asked again at once while there is room, until the answer is
    /// something else than requests.
    fn next(&mut self, asked: &Asked, out: &mut Output) -> Next;
}

/// Who asks for requests.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The connection's number, over all threads.
    pub connection: usize,
    /// Nothing has been sent on it yet since it was (re)opened.
    pub fresh: bool,
    /// How many requests there is room for. At least 1.
    pub room: u32,
    /// Nothing is under way.
    pub quiet: bool,
    /// The time, in nanoseconds of the monotonic clock.
    pub now_ns: u64,
}

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Sends what was appended: so many requests, at least one and at most the room, of this class.
    Requests {
        /// How many.
        count: u32,
        /// Of which class.
        class: u16,
    },
    /// Is closed and opened again, and asked then. Only with nothing under way.
    Reconnect,
    /// Is asked again at this time of the monotonic clock, or when an answer comes before it.
    At(u64),
    /// Is asked again when an answer comes; with nothing under way it stays open and sends nothing.
    Idle,
    /// Has sent all it is going to send.
    Finished,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(address) => write!(f, "{}:{}", address.ip(), address.port()),
            Target::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}
