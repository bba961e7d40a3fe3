//! One thread of a run: its connections, from the requests that go out to the answers that come in.
//!
//! Owns the state of each connection and pairs answers with requests. An answer has arrived when the turn that brings it
//! begins; a request leaves when the turn ends. So a turn reads the clock twice, and the time in which this thread works
//! through what has arrived is in no latency. Invariants: answers come in the order of the requests; a connection is in
//! `ready` at most once.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weft_reactor::{
    Close, CloseReason, ConnectionId, Driver, Handler, ListenerId, PeerAddress, TimerToken,
    monotonic_ns, start_connect, start_connect_unix,
};
use weft_resp::{DecodeLimits, Reply, ReplyClass, ReplyScanner, decode_reply};
use weft_rope::Output;

use super::failure::Failure;
use super::live::{Counts, Live};
use super::record::Record;
use super::{Asked, ErrorReplies, Next, Plan, Target, Workload};

/// So many connections are opened at once. Servers accept from a queue of a few hundred; what does not fit in waits a
/// second for its second attempt.
const OPENED_AT_ONCE: usize = 128;

/// The pause in which a server accepts them.
const OPENING_PAUSE: Duration = Duration::from_millis(2);

/// An error's text is kept up to here.
const ERROR_BYTES_MAX: usize = 4096;

/// The class of the requests that open a connection.
const PROLOGUE: u16 = u16::MAX;

/// One thread's connections and what it has measured.
pub(super) struct Worker<W> {
    plan: Arc<Plan>,
    workload: W,
    live: Arc<[Live]>,
    number: usize,
    sessions: Vec<Session>,
    /// Session numbers by slot of their connection.
    by_slot: Vec<u32>,
    /// Sessions with room for requests.
    ready: Vec<u32>,
    output: Output,
    record: Record,
    counts: Counts,
    unfinished: usize,
    last_answer_ns: u64,
    /// When the run began, if seconds are told apart.
    series_start_ns: Option<u64>,
    failure: Option<Failure>,
}

/// What a thread leaves behind.
pub(super) struct Finished {
    pub(super) record: Record,
    pub(super) last_answer_ns: u64,
}

struct Session {
    connection: Option<ConnectionId>,
    scanner: ReplyScanner,
    /// Requests under way, oldest first.
    under_way: VecDeque<Sent>,
    /// Their sum.
    count: u32,
    /// Nothing has been sent since it was opened.
    fresh: bool,
    /// Something has been received since it was opened.
    heard: bool,
    in_ready: bool,
    timer_armed: bool,
    stage: Stage,
    /// Bytes so far of the answer that is coming in.
    unfinished_bytes: u64,
    /// The part of an error that an earlier delivery brought.
    error: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Sending,
    /// Sends nothing more, but answers are missing.
    Draining,
    Done,
}

/// Requests of one class that left at one time.
struct Sent {
    count: u32,
    class: u16,
    at_ns: u64,
}

impl<W: Workload> Worker<W> {
    pub(super) fn new(plan: &Arc<Plan>, number: usize, workload: W, live: &Arc<[Live]>) -> Self {
        let share = (number..plan.connections).step_by(plan.threads).count();
        let session = || Session {
            connection: None,
            scanner: ReplyScanner::new(DecodeLimits::default()),
            under_way: VecDeque::new(),
            count: 0,
            fresh: true,
            heard: false,
            in_ready: false,
            timer_armed: false,
            stage: Stage::Sending,
            unfinished_bytes: 0,
            error: Vec::new(),
        };
        Worker {
            plan: Arc::clone(plan),
            workload,
            live: Arc::clone(live),
            number,
            sessions: std::iter::repeat_with(session).take(share).collect(),
            by_slot: Vec::new(),
            ready: Vec::with_capacity(share),
            output: Output::new(),
            record: Record::new(plan.scale, plan.classes),
            counts: Counts::default(),
            unfinished: share,
            last_answer_ns: 0,
            series_start_ns: None,
            failure: None,
        }
    }

    /// Starts all connections.
    pub(super) fn open<D: Driver>(&mut self, io: &mut D) -> Result<(), Failure> {
        for index in 0..self.sessions.len() {
            if index > 0 && index % OPENED_AT_ONCE == 0 {
                std::thread::sleep(OPENING_PAUSE);
            }
            self.connect(io, index)?;
        }
        self.live[self.number].store(&self.counts);
        Ok(())
    }

    /// Sends and receives until everything is done. `None`: it was stopped.
    pub(super) fn run<D: Driver>(
        &mut self,
        io: &mut D,
        stop: &AtomicBool,
    ) -> Result<Option<Finished>, Failure> {
        self.series_start_ns = self.plan.by_second.then(monotonic_ns);
        for index in 0..self.sessions.len() {
            self.make_ready(index);
        }
        self.refill(io);
        loop {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if self.unfinished == 0 {
                break;
            }
            if stop.load(Ordering::Acquire) {
                return Ok(None);
            }
            io.turn(self, None).map_err(Failure::System)?;
        }
        self.live[self.number].store(&self.counts);
        Ok(Some(Finished {
            record: self.record.clone(),
            last_answer_ns: self.last_answer_ns,
        }))
    }

    /// Starts a connection for this session.
    fn connect<D: Driver>(&mut self, io: &mut D, index: usize) -> Result<(), Failure> {
        let target = self.target(index);
        let socket = match &self.plan.targets[target] {
            Target::Tcp(address) => start_connect(*address, None),
            Target::Unix(path) => start_connect_unix(path),
        };
        let socket = socket.map_err(|error| Failure::Connect { target, error })?;
        let id = io.adopt(socket, None).map_err(Failure::System)?;
        if self.by_slot.len() <= id.slot() {
            self.by_slot.resize(id.slot() + 1, u32::MAX);
        }
        self.by_slot[id.slot()] = index as u32;
        let session = &mut self.sessions[index];
        session.connection = Some(id);
        session.scanner = ReplyScanner::new(DecodeLimits::default());
        session.fresh = true;
        session.heard = false;
        session.error.clear();
        session.unfinished_bytes = 0;
        self.counts.open += 1;
        Ok(())
    }

    /// A session's number over all threads.
    fn global(&self, index: usize) -> usize {
        self.number + index * self.plan.threads
    }

    fn target(&self, index: usize) -> usize {
        self.global(index) % self.plan.targets.len()
    }

    fn make_ready(&mut self, index: usize) {
        let session = &mut self.sessions[index];
        if !session.in_ready && session.stage == Stage::Sending {
            session.in_ready = true;
            self.ready.push(index as u32);
        }
    }

    /// Sends on every connection that has room.
    fn refill<D: Driver>(&mut self, io: &mut D) {
        if self.ready.is_empty() {
            return;
        }
        let now_ns = monotonic_ns();
        let mut at = 0;
        // A connection that is opened again comes to the end of the list.
        while let Some(&index) = self.ready.get(at) {
            at += 1;
            self.sessions[index as usize].in_ready = false;
            self.fill(io, index as usize, now_ns);
        }
        self.ready.clear();
    }

    /// Sends what a connection has to send.
    fn fill<D: Driver>(&mut self, io: &mut D, index: usize, now_ns: u64) {
        let connection = self.global(index);
        let window = self.plan.window;
        let session = &mut self.sessions[index];
        let Some(id) = session.connection else {
            return;
        };
        let prologue = if session.fresh {
            self.output.tail().extend(&self.plan.prologue.requests);
            self.plan.prologue.count
        } else {
            0
        };
        let mut sends = false;
        while session.count < window {
            let asked = Asked {
                connection,
                fresh: session.fresh,
                room: window - session.count,
                quiet: session.count == 0,
                now_ns,
            };
            let before = self.output.len();
            match self.workload.next(&asked, &mut self.output) {
                Next::Requests { count, class } => {
                    debug_assert!(count > 0 && count <= asked.room);
                    if session.fresh && prologue > 0 {
                        session.sent(prologue, PROLOGUE, now_ns);
                    }
                    session.fresh = false;
                    session.sent(count, class, now_ns);
                    session.count += count;
                    sends = true;
                    let bytes = (self.output.len() - before) as u64;
                    self.record.bytes_sent(class, bytes);
                    self.counts.bytes += bytes;
                }
                Next::Idle => break,
                Next::At(deadline_ns) => {
                    // One at a time: when it is due, or an answer comes, the connection is asked again.
                    if !session.timer_armed {
                        session.timer_armed = true;
                        io.arm_timer(deadline_ns, TimerToken(index as u64));
                    }
                    break;
                }
                Next::Finished => {
                    session.stage = Stage::Draining;
                    if session.count == 0 {
                        session.stage = Stage::Done;
                        self.unfinished -= 1;
                    }
                    break;
                }
                Next::Reconnect => {
                    debug_assert!(session.count == 0 && !sends);
                    self.output.clear();
                    return self.reconnect(io, index);
                }
            }
        }
        if sends {
            io.send(id, &mut self.output);
        } else {
            self.output.clear();
        }
    }

    fn reconnect<D: Driver>(&mut self, io: &mut D, index: usize) {
        if let Some(id) = self.sessions[index].connection.take() {
            self.counts.open -= 1;
            io.close(id, Close::Now);
        }
        match self.connect(io, index) {
            Ok(()) => self.make_ready(index),
            Err(failure) => self.fail(failure),
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// The session a connection belongs to, unless it has another one by now.
    fn session_of(&self, connection: ConnectionId) -> Option<usize> {
        let index = *self.by_slot.get(connection.slot())? as usize;
        let session = self.sessions.get(index)?;
        (session.connection == Some(connection)).then_some(index)
    }

    /// Works through what a connection has received at `now_ns`.
    fn answers(&mut self, index: usize, data: &[u8], now_ns: u64) -> Result<(), Failure> {
        let session = &mut self.sessions[index];
        session.heard = true;
        let mut rest = data;
        // Answers to requests that left together are recorded together.
        let nothing = Answered {
            series_start_ns: self.series_start_ns,
            ..Answered::default()
        };
        let mut answered = nothing;
        while !rest.is_empty() {
            let reply = match session.scanner.scan(rest) {
                Ok(Some(reply)) => reply,
                Ok(None) => {
                    session.unfinished_bytes += rest.len() as u64;
                    if session.scanner.class() == Some(ReplyClass::Error) {
                        session.keep_error(rest);
                    }
                    break;
                }
                Err(error) => return Err(Failure::Protocol(error)),
            };
            let (bytes, after) = rest.split_at(reply.len);
            rest = after;
            answered.bytes += reply.len as u64 + std::mem::take(&mut session.unfinished_bytes);
            if reply.class == ReplyClass::Push {
                continue;
            }
            let Some(sent) = session.under_way.front_mut() else {
                return Err(Failure::Unasked);
            };
            let class = sent.class;
            match reply.class {
                ReplyClass::Error => {
                    session.keep_error(bytes);
                    if class == PROLOGUE || self.plan.errors == ErrorReplies::Fatal {
                        return Err(Failure::ErrorReply(error_text(&session.error)));
                    }
                    self.record.was_error(class, || error_text(&session.error));
                    session.error.clear();
                    self.counts.errors += 1;
                }
                ReplyClass::Null => self.record.was_null(class),
                _ => {}
            }
            answered.count += 1;
            let sent = &mut session.under_way[0];
            sent.count -= 1;
            if sent.count == 0 {
                note(
                    &mut self.record,
                    &mut self.counts,
                    session,
                    now_ns,
                    answered,
                );
                session.under_way.pop_front();
                answered = nothing;
            }
        }
        note(
            &mut self.record,
            &mut self.counts,
            session,
            now_ns,
            answered,
        );
        self.last_answer_ns = now_ns;
        match session.stage {
            Stage::Sending if session.count <= self.plan.refill_at => self.make_ready(index),
            Stage::Draining if session.count == 0 => {
                session.stage = Stage::Done;
                self.unfinished -= 1;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Session {
    /// Requests have left.
    fn sent(&mut self, count: u32, class: u16, at_ns: u64) {
        match self.under_way.back_mut() {
            Some(last) if last.class == class && last.at_ns == at_ns => last.count += count,
            _ => self.under_way.push_back(Sent {
                count,
                class,
                at_ns,
            }),
        }
    }

    fn keep_error(&mut self, bytes: &[u8]) {
        let room = ERROR_BYTES_MAX.saturating_sub(self.error.len());
        self.error.extend(bytes.iter().take(room));
    }
}

/// Answers to the oldest requests under way.
#[derive(Clone, Copy, Default)]
struct Answered {
    count: u32,
    bytes: u64,
    /// When the run began, if seconds are told apart.
    series_start_ns: Option<u64>,
}

/// Records that so many of the oldest requests under way have been answered.
fn note(
    record: &mut Record,
    counts: &mut Counts,
    session: &mut Session,
    now_ns: u64,
    answered: Answered,
) {
    if answered.count == 0 {
        return;
    }
    let Some(&Sent { class, at_ns, .. }) = session.under_way.front() else {
        return;
    };
    if class == PROLOGUE {
        return;
    }
    session.count -= answered.count;
    let count = u64::from(answered.count);
    let latency = record.answered(class, now_ns.saturating_sub(at_ns), count);
    if let Some(start_ns) = answered.series_start_ns {
        let second = now_ns.saturating_sub(start_ns) / 1_000_000_000;
        record.answered_in(class, second, latency, count);
    }
    record.bytes_received(class, answered.bytes);
    counts.answered += count;
    counts.latency_sum += latency.saturating_mul(count);
    counts.bytes += answered.bytes;
}

/// The text of an error, from its bytes on the wire.
fn error_text(bytes: &[u8]) -> Vec<u8> {
    match decode_reply(bytes) {
        Ok(Some((Reply::Error(text) | Reply::BulkError(text), _))) => text,
        // Longer than what was kept.
        _ => bytes.get(1..).unwrap_or_default().to_vec(),
    }
}

impl<D: Driver, W: Workload> Handler<D> for Worker<W> {
    fn accepted(&mut self, _: &mut D, _: ListenerId, _: OwnedFd, _: PeerAddress) {
        // There is no listener.
    }

    fn received(&mut self, io: &mut D, connection: ConnectionId, data: &mut [u8]) {
        if let Some(index) = self.session_of(connection)
            && let Err(failure) = self.answers(index, data, io.turn_started_ns())
        {
            self.fail(failure);
        }
    }

    fn end_of_input(&mut self, io: &mut D, connection: ConnectionId) {
        if self.session_of(connection).is_some() {
            self.fail(Failure::Closed);
        }
        io.close(connection, Close::Now);
    }

    fn sent(&mut self, _: &mut D, connection: ConnectionId, _: usize) {
        let Some(index) = self.session_of(connection) else {
            return;
        };
        let session = &mut self.sessions[index];
        if !session.heard {
            // The connection had not come about when the requests were handed over.
            let now_ns = monotonic_ns();
            session
                .under_way
                .iter_mut()
                .for_each(|sent| sent.at_ns = now_ns);
        }
    }

    fn closed(&mut self, _: &mut D, connection: ConnectionId, reason: CloseReason) {
        let Some(index) = self.session_of(connection) else {
            return;
        };
        let target = self.target(index);
        self.fail(match reason {
            CloseReason::Error(error) if self.sessions[index].heard => Failure::Lost(error),
            CloseReason::Error(error) => Failure::Connect { target, error },
            _ => Failure::Closed,
        });
    }

    fn timer(&mut self, _: &mut D, token: TimerToken) {
        let index = token.0 as usize;
        self.sessions[index].timer_armed = false;
        self.make_ready(index);
    }

    fn turn_end(&mut self, io: &mut D) {
        self.refill(io);
        self.live[self.number].store(&self.counts);
    }
}
