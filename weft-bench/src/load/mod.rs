//! The engine: drives many connections over a few threads, each with a reactor of its own, and measures the answers.
//!
//! Owns connections, requests under way, latencies and the end of a run. What is sent comes from a [`Workload`], of which
//! every thread has one. Knows no command line, no report and no command. Invariants: no allocation per request; threads
//! write nothing that another one writes too; what is measured is merged when a thread has finished.

mod budget;
mod failure;
mod interval;
mod live;
mod record;
mod run;
mod session;
mod template;
mod tls;
mod worker;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use weft_resp::ReplyClass;
use weft_rope::Output;

pub use budget::{Budget, Share};
pub use failure::{Failure, system_text};
pub use interval::{Interval, Part};
#[cfg(test)]
pub use record::Record;
pub use record::{Class, Scale};
pub use run::{Outcome, Progress, Run};
pub use template::{NUMBER_END, PLACEHOLDER, Template, encode};
pub use tls::Tls;

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
    /// What only some modes want otherwise.
    pub conduct: Conduct,
}

impl Plan {
    /// How many classes intervals tell apart.
    fn interval_classes(&self) -> usize {
        match self.conduct.interval_by_class {
            true => self.classes,
            false => 0,
        }
    }
}

/// What a run does besides sending and measuring. The default: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conduct {
    /// What happens when a connection breaks.
    pub losses: Losses,
    /// Connections are opened when their workload says so and closed when it is finished, rather than all of them before
    /// the start.
    pub lazy: bool,
    /// What is sent before so long after the start is not recorded.
    pub warmup: Duration,
    /// So long after the start the run ends; what is not answered then counts as unanswered.
    pub patience: Option<Duration>,
    /// How long the intervals are about which [`Run::take_intervals`] tells. None: it has nothing to tell.
    pub interval: Option<Duration>,
    /// Whether they tell of each class.
    pub interval_by_class: bool,
    /// So long a connection may take to come about; then it counts as broken. `None`: as long as the system lets it.
    pub connect_patience: Option<Duration>,
}

/// What happens when a connection breaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Losses {
    /// It ends the run.
    #[default]
    Fatal,
    /// What was under way on it is counted as lost, and after a moment its workload is asked again.
    Counted,
}

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over a Unix socket.
    Unix(PathBuf),
    /// Over TCP, to an address that is found out during the run, before the first connection is to be opened.
    Later(Arc<OnceLock<SocketAddr>>),
}

impl Target {
    /// Its address. `None`: it has none, or none yet.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Target::Tcp(address) => Some(*address),
            Target::Later(address) => address.get().copied(),
            Target::Unix(_) => None,
        }
    }
}

/// How a connection begins, which is not measured: encryption, and requests that say who the client is and which database
/// it wants.
#[derive(Clone, Debug, Default)]
pub struct Prologue {
    requests: Vec<u8>,
    count: u32,
    tls: Option<Tls>,
}

impl Prologue {
    /// Adds a request. An error in answer to it ends the run.
    pub fn push<A: AsRef<[u8]>>(&mut self, arguments: &[A]) {
        self.requests.extend(encode(arguments));
        self.count += 1;
    }

    /// Has connections encrypted.
    pub fn encrypt(&mut self, tls: Option<Tls>) {
        self.tls = tls;
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
    /// Whether [`Workload::answer`] wants to see the answers.
    const READS: bool = false;

    /// Whether [`Workload::wake`] has anything to say.
    const WAKES: bool = false;

    /// The run begins, at this time of the monotonic clock: the same for all threads.
    fn started(&mut self, now_ns: u64) {
        let _ = now_ns;
    }

    /// Appends the next requests of a connection to `out`. Asked again at once while there is room, until the answer is
    /// something else than requests.
    fn next(&mut self, asked: &Asked, out: &mut Output) -> Next;

    /// A connection that has something to send by now, although it was not asked or had said that it was finished. Asked again
    /// until there is none, if [`Workload::WAKES`].
    fn wake(&mut self) -> Option<usize> {
        None
    }

    /// An answer is complete. Called in the order of a connection's requests, if [`Workload::READS`].
    fn answer(&mut self, answer: &Answer<'_>) -> Verdict {
        let _ = answer;
        Verdict::default()
    }

    /// A connection is gone, and so are the answers that were under way on it.
    fn lost(&mut self, connection: usize) {
        let _ = connection;
    }

    /// The thread has ended, at this time of the monotonic clock. Not called when a run is dropped or fails.
    fn finished(&mut self, now_ns: u64) {
        let _ = now_ns;
    }
}

/// A complete answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The connection's number, over all threads.
    pub connection: usize,
    /// The class of the request.
    pub class: u16,
    /// When the request left, or was due.
    pub since_ns: u64,
    /// What kind of thing it is.
    pub kind: ReplyClass,
    /// All of it, as it came.
    pub bytes: &'a [u8],
}

/// What the workload makes of an answer.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// It is not what it should be: why.
    pub wrong: Option<Vec<u8>>,
    /// It is the last one of several that are measured together.
    pub unit: Option<UnitEnd>,
}

/// The end of several requests that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitEnd {
    /// The class under which they count together.
    pub class: u16,
    /// When they began.
    pub since_ns: u64,
}

/// Who asks for requests.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The connection's number, over all threads.
    pub connection: usize,
    /// It is open, or being opened. If not, it can be opened, wait or be finished.
    pub open: bool,
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
    /// The same, but their latency counts from this time of the monotonic clock: when they should have been sent.
    Due {
        /// How many.
        count: u32,
        /// Of which class.
        class: u16,
        /// When.
        due_ns: u64,
    },
    /// Is closed, if it is open, and opened again, and asked then. Only with nothing under way.
    Reconnect,
    /// Is closed and asked again at this time of the monotonic clock. Only with nothing under way.
    CloseUntil(u64),
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
            Target::Later(address) => match address.get() {
                Some(address) => write!(f, "{}:{}", address.ip(), address.port()),
                None => f.write_str("an unknown server"),
            },
        }
    }
}
