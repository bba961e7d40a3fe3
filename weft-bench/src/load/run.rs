//! A run: its threads, their common start, and what comes of them.
//!
//! Owns the threads and their messages. Invariants: no thread sends a request before all connections have been opened;
//! the end is known when the last answer has arrived, not when somebody looks; dropped, a run stops.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use weft_reactor::{Driver, DriverOptions, EpollDriver, UringDriver, Waker, monotonic_ns};

use super::failure::Failure;
use super::interval::{Interval, Intervals};
use super::live::{Counts, Live};
use super::record::Record;
use super::worker::{Finished, Worker};
use super::{Plan, Workload};

/// A run under way.
#[derive(Debug)]
pub struct Run {
    threads: Vec<JoinHandle<()>>,
    messages: Receiver<Message>,
    wakers: Vec<Waker>,
    stop: Arc<AtomicU8>,
    live: Arc<[Live]>,
    record: Record,
    intervals: Intervals,
    uses: Vec<ThreadUse>,
    unfinished: usize,
    /// When the measurement begins.
    started_ns: u64,
    ended_ns: u64,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// Latencies of all requests.
    pub record: Record,
    /// Requests answered.
    pub answered: u64,
    /// From the beginning of the measurement until the last answer.
    pub elapsed: Duration,
    /// What the threads used of the processors.
    pub threads: Vec<ThreadUse>,
}

/// One thread's use of the processors while it measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadUse {
    /// The time it measured.
    pub elapsed: Duration,
    /// The time it spent on a processor.
    pub cpu: Duration,
    /// The time it could have run and had no processor.
    pub waiting: Duration,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Sums over all threads.
    pub counts: Counts,
    /// Since the beginning of the measurement.
    pub elapsed: Duration,
}

/// What threads tell the one that waits for them.
pub(super) enum Message {
    /// All connections have been opened; this wakes the thread.
    Ready(Waker),
    /// An interval of thread K is over.
    Interval(usize, Box<Interval>),
    Finished(Box<Finished>),
    Failed(Failure),
}

/// What threads are told: nothing, to end as if everything had been sent, to end without a result.
pub(super) const GO_ON: u8 = 0;
pub(super) const END: u8 = 1;
pub(super) const STOP: u8 = 2;

impl Run {
    /// Opens all connections and starts, with the driver that takes the least processor time: rings where the system allows
    /// them, else epoll. `workload` makes the workload of thread K.
    pub fn start<W: Workload>(
        plan: &Plan,
        workload: impl FnMut(usize) -> W,
    ) -> Result<Run, Failure> {
        let options = DriverOptions::default();
        match UringDriver::probe() {
            Ok(()) => Run::start_with(plan, move || UringDriver::new(options), workload),
            Err(_) => Run::start_with(plan, move || EpollDriver::new(options), workload),
        }
    }

    /// The same with the driver that `driver` makes. `workload` makes the workload of thread K.
    pub fn start_with<D: Driver, W: Workload>(
        plan: &Plan,
        driver: impl Fn() -> io::Result<D> + Send + Copy + 'static,
        mut workload: impl FnMut(usize) -> W,
    ) -> Result<Run, Failure> {
        let plan = Arc::new(plan.clone());
        let (sender, messages) = channel();
        let live: Arc<[Live]> = (0..plan.threads).map(|_| Live::default()).collect();
        let mut run = Run {
            threads: Vec::new(),
            messages,
            wakers: Vec::new(),
            stop: Arc::new(AtomicU8::new(GO_ON)),
            live,
            record: Record::new(plan.scale, plan.classes),
            intervals: Intervals::new(plan.scale, plan.threads, plan.interval_classes()),
            uses: Vec::new(),
            unfinished: plan.threads,
            started_ns: 0,
            ended_ns: 0,
        };
        let mut starts: Vec<Sender<u64>> = Vec::new();
        for number in 0..plan.threads {
            let (start, started) = channel();
            let worker = Worker::new(&plan, number, workload(number), &run.live, sender.clone());
            let (messages, stop) = (sender.clone(), Arc::clone(&run.stop));
            let thread = std::thread::Builder::new()
                .name(format!("load-{number}"))
                .spawn(move || live_through(worker, driver, &messages, &started, &stop))
                .map_err(Failure::System)?;
            run.threads.push(thread);
            starts.push(start);
        }
        drop(sender);
        while run.wakers.len() < plan.threads {
            match run.messages.recv() {
                Ok(Message::Ready(waker)) => run.wakers.push(waker),
                Ok(Message::Failed(failure)) => {
                    drop(starts);
                    return Err(failure);
                }
                Ok(Message::Finished(_) | Message::Interval(..)) | Err(_) => {
                    unreachable!("threads wait for the start")
                }
            }
        }
        let started_ns = monotonic_ns();
        let warmup_ns = u64::try_from(plan.conduct.warmup.as_nanos()).unwrap_or(u64::MAX);
        run.started_ns = started_ns.saturating_add(warmup_ns);
        run.ended_ns = run.started_ns;
        for start in &starts {
            // A thread that has gone has said why.
            let _ = start.send(started_ns);
        }
        Ok(run)
    }

    /// Waits for the end, but at most so long: `None` when it has not come yet.
    pub fn wait(&mut self, patience: Duration) -> Option<Result<Outcome, Failure>> {
        let deadline_ns =
            monotonic_ns().saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        while self.unfinished > 0 {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
            match self.messages.recv_timeout(left) {
                Ok(Message::Finished(finished)) => {
                    self.record.merge(&finished.record);
                    self.ended_ns = self.ended_ns.max(finished.last_answer_ns);
                    self.uses.push(finished.thread);
                    self.intervals.ended(finished.number);
                    self.unfinished -= 1;
                }
                Ok(Message::Failed(failure)) => return Some(Err(failure)),
                Ok(Message::Interval(thread, interval)) => self.intervals.tell(thread, &interval),
                Ok(Message::Ready(_)) => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => {
                    let gone = io::Error::other("a thread ended without a word");
                    return Some(Err(Failure::System(gone)));
                }
            }
        }
        Some(Ok(Outcome {
            record: self.record.clone(),
            answered: self.progress().counts.answered,
            elapsed: Duration::from_nanos(self.ended_ns - self.started_ns),
            threads: self.uses.clone(),
        }))
    }

    /// The intervals that are over since the last call, if the plan asks for any.
    pub fn take_intervals(&mut self) -> impl Iterator<Item = Interval> + '_ {
        std::iter::from_fn(|| self.intervals.take())
    }

    /// Ends it before its time: nothing more is sent, and what is not answered counts as unanswered.
    pub fn end(&self) {
        self.tell(END);
    }

    fn tell(&self, word: u8) {
        self.stop.store(word, Ordering::Release);
        self.wakers.iter().for_each(Waker::wake);
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let mut sum = Counts::default();
        for counts in self.live.iter().map(Live::load) {
            sum.add(&counts);
        }
        Progress {
            counts: sum,
            elapsed: Duration::from_nanos(monotonic_ns().saturating_sub(self.started_ns)),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.tell(STOP);
        for thread in self.threads.drain(..) {
            // A panic has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}

/// The life of a thread.
fn live_through<D: Driver, W: Workload>(
    mut worker: Worker<W>,
    driver: impl Fn() -> io::Result<D>,
    messages: &Sender<Message>,
    started: &Receiver<u64>,
    stop: &AtomicU8,
) {
    let mut life = || -> Result<Option<Finished>, Failure> {
        let mut io = driver().map_err(Failure::System)?;
        worker.open(&mut io)?;
        // Whoever no longer listens no longer needs it.
        let _ = messages.send(Message::Ready(io.waker()));
        let Ok(started_ns) = started.recv() else {
            return Ok(None);
        };
        worker.run(&mut io, stop, started_ns)
    };
    let message = match life() {
        Ok(Some(finished)) => Message::Finished(Box::new(finished)),
        Ok(None) => return,
        Err(failure) => Message::Failed(failure),
    };
    let _ = messages.send(message);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use weft_rope::Output;

    use super::*;
    use crate::load::{
        Asked, Budget, Conduct, ErrorReplies, Next, Part, Prologue, Scale, Share, Target,
    };

    /// Batches of three requests, each on a connection of its own if so wanted.
    struct Batches {
        share: Share,
        reconnects: bool,
        taken: u32,
    }

    const REQUEST: &[u8] = b"*1\r\n$4\r\nPING\r\n";

    impl Workload for Batches {
        fn next(&mut self, asked: &Asked, out: &mut Output) -> Next {
            if asked.room < 3 {
                return Next::Idle;
            }
            if asked.fresh && self.taken > 0 {
                self.taken -= 1;
            } else if !self.share.take() {
                return Next::Finished;
            } else if !asked.fresh && self.reconnects {
                self.taken += 1;
                return Next::Reconnect;
            }
            out.tail().extend_from_slice(&REQUEST.repeat(3));
            Next::Requests { count: 3, class: 0 }
        }
    }

    /// Answers a batch with two absent values and an error, in two pieces.
    fn server() -> Target {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                stream.set_nodelay(true).unwrap();
                std::thread::spawn(move || {
                    let mut batch = [0; 3 * REQUEST.len()];
                    while stream.read_exact(&mut batch).is_ok() {
                        assert_eq!(batch[..], REQUEST.repeat(3)[..]);
                        for piece in ["$-1\r\n_\r", "\n-ERR no\r\n"] {
                            if stream.write_all(piece.as_bytes()).is_err() {
                                return;
                            }
                        }
                    }
                });
            }
        });
        Target::Tcp(address)
    }

    fn plan(errors: ErrorReplies) -> Plan {
        Plan {
            targets: vec![server()],
            connections: 5,
            threads: 2,
            window: 3,
            refill_at: 0,
            prologue: Arc::new(Prologue::default()),
            errors,
            scale: Scale {
                unit_ns: 1000,
                lowest: 1,
                digits: 3,
            },
            classes: 1,
            conduct: Conduct {
                interval: Some(Duration::from_secs(1)),
                interval_by_class: true,
                ..Conduct::default()
            },
        }
    }

    fn ended<D: Driver + 'static>(
        driver: fn() -> io::Result<D>,
        errors: ErrorReplies,
        reconnects: bool,
    ) -> Result<(Outcome, Part), Failure> {
        let plan = plan(errors);
        let budget = Budget::new(200, plan.threads);
        let workload = |_| Batches {
            share: budget.share(),
            reconnects,
            taken: 0,
        };
        let mut run = Run::start_with(&plan, driver, workload)?;
        let outcome = run
            .wait(Duration::from_secs(60))
            .expect("a minute is enough")?;
        let mut part = Part::default();
        run.take_intervals().for_each(|it| part.add(&it.classes[0]));
        Ok((outcome, part))
    }

    fn check<D: Driver + 'static>(driver: fn() -> io::Result<D>) {
        for reconnects in [false, true] {
            let (outcome, part) = ended(driver, ErrorReplies::Counted, reconnects).unwrap();
            let class = &outcome.record.classes()[0];
            assert_eq!(outcome.answered, 600);
            assert_eq!(class.latencies.len(), 600);
            assert_eq!((class.nulls, class.errors), (400, 200));
            assert_eq!(class.first_error.as_deref(), Some(&b"ERR no"[..]));
            assert_eq!(class.bytes_sent, 200 * 3 * REQUEST.len() as u64);
            assert_eq!(class.bytes_received, 200 * 17);
            assert_eq!(part.count(), 600);
            assert_eq!(part.sent_bytes, class.bytes_sent);
            assert_eq!(part.received_bytes, class.bytes_received);
        }
        match ended(driver, ErrorReplies::Fatal, false) {
            Err(Failure::ErrorReply(text)) => assert_eq!(text, b"ERR no"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_request_is_answered_with_epoll() {
        check(|| EpollDriver::new(DriverOptions::default()));
    }

    #[test]
    fn every_request_is_answered_with_rings() {
        if UringDriver::probe().is_ok() {
            check(|| UringDriver::new(DriverOptions::default()));
        }
    }

    #[test]
    fn a_refusal_names_the_target() {
        let free = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap();
        let mut plan = plan(ErrorReplies::Counted);
        plan.targets.insert(0, Target::Tcp(free));
        let budget = Budget::new(200, plan.threads);
        let started = Run::start(&plan, |_| Batches {
            share: budget.share(),
            reconnects: false,
            taken: 0,
        });
        let ended = started.and_then(|mut run| {
            run.wait(Duration::from_secs(60))
                .expect("a minute is enough")
        });
        match ended {
            Err(Failure::Connect { target: 0, error }) => {
                assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
            }
            other => panic!("{other:?}"),
        }
    }
}
