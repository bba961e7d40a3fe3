//! One thread of a run: its connections, from the requests that go out to the answers that come in.
//!
//! Pairs answers with requests. An answer has arrived when the turn that brings it begins; a request leaves when the turn
//! ends. So a turn reads the clock twice, and the time in which this thread works through what has arrived is in no
//! latency. Invariants: answers come in the order of the requests; a connection is in `ready` at most once; a session has
//! at most one timer.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use weft_os::load::ThreadSchedule;
use weft_reactor::{
    Close, CloseReason, ConnectionId, Driver, Handler, ListenerId, PeerAddress, TimerToken,
    monotonic_ns, start_connect, start_connect_unix,
};
use weft_resp::{DecodeError, Reply, ReplyClass, decode_reply};
use weft_rope::Output;

use super::failure::{Failure, system_text};
use super::interval::{Interval, Part};
use super::live::{Counts, Live};
use super::record::{Record, Scale};
use super::run::{GO_ON, Message, STOP, ThreadUse};
use super::session::{PROLOGUE, Sent, Session, Stage};
use super::tls::Channel;
use super::{Answer, Asked, ErrorReplies, Losses, Next, Plan, Target, Workload};

/// So many connections are opened at once. Servers accept from a queue of a few hundred; what does not fit in waits a
/// second for its second attempt.
const OPENED_AT_ONCE: usize = 128;

/// The pause in which a server accepts them.
const OPENING_PAUSE: Duration = Duration::from_millis(2);

/// The pause after a connection broke.
const RETRY_NS: u64 = 100_000_000;

/// The pause between two looks at connections that are not used yet.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// More bytes of one answer are not kept: Redis's own bound of one string (512 MB) and some room.
const ANSWER_BYTES_MAX: usize = 544 << 20;

/// Timers that are no session's.
const MEASUREMENT_BEGINS: TimerToken = TimerToken(u64::MAX);
const PATIENCE_ENDS: TimerToken = TimerToken(u64::MAX - 1);
const INTERVAL_ENDS: TimerToken = TimerToken(u64::MAX - 2);
const CONNECTIONS_ARE_LOOKED_AT: TimerToken = TimerToken(u64::MAX - 3);

/// One thread's connections and what it has measured.
pub(super) struct Worker<W> {
    plan: Arc<Plan>,
    workload: W,
    live: Arc<[Live]>,
    messages: Sender<Message>,
    number: usize,
    sessions: Vec<Session>,
    /// Session numbers by slot of their connection.
    by_slot: Vec<u32>,
    /// Sessions with room for requests.
    ready: Vec<u32>,
    output: Output,
    /// What an encrypted connection received.
    decrypted: Vec<u8>,
    measured: Measured,
    unfinished: usize,
    last_answer_ns: u64,
    failure: Option<Failure>,
    /// Set from when on its use of the processor counts.
    use_since: Option<Use>,
    /// A timer is armed for it.
    looks_at_connections: bool,
    schedule: Option<ThreadSchedule>,
}

/// What a thread leaves behind.
pub(super) struct Finished {
    pub(super) number: usize,
    pub(super) record: Record,
    pub(super) last_answer_ns: u64,
    pub(super) thread: ThreadUse,
}

/// What a thread has measured.
struct Measured {
    record: Record,
    counts: Counts,
    /// What was sent or due before this does not count.
    from_ns: u64,
    scale: Scale,
    interval: Option<UnderWay>,
    /// When the interval under way ends.
    interval_ends_ns: u64,
}

/// The interval under way.
struct UnderWay {
    interval: Interval,
    /// What the counts were when it began.
    before: Counts,
}

/// A thread's use of the processor up to a moment.
#[derive(Clone, Copy)]
struct Use {
    at_ns: u64,
    cpu_ns: u64,
    waiting_ns: u64,
}

impl<W: Workload> Worker<W> {
    pub(super) fn new(
        plan: &Arc<Plan>,
        number: usize,
        workload: W,
        live: &Arc<[Live]>,
        messages: Sender<Message>,
    ) -> Self {
        let share = (number..plan.connections).step_by(plan.threads).count();
        Worker {
            plan: Arc::clone(plan),
            workload,
            live: Arc::clone(live),
            messages,
            number,
            sessions: std::iter::repeat_with(Session::new).take(share).collect(),
            by_slot: Vec::new(),
            ready: Vec::with_capacity(share),
            output: Output::new(),
            decrypted: Vec::new(),
            measured: Measured {
                record: Record::new(plan.scale, plan.classes),
                counts: Counts::default(),
                from_ns: 0,
                scale: plan.scale,
                interval: None,
                interval_ends_ns: u64::MAX,
            },
            unfinished: share,
            last_answer_ns: 0,
            failure: None,
            use_since: None,
            looks_at_connections: false,
            schedule: None,
        }
    }

    /// Starts all connections.
    pub(super) fn open<D: Driver>(&mut self, io: &mut D) -> Result<(), Failure> {
        self.schedule = Some(ThreadSchedule::of_this_thread());
        wake_exactly();
        if self.plan.conduct.lazy {
            return Ok(());
        }
        for index in 0..self.sessions.len() {
            if index > 0 && index % OPENED_AT_ONCE == 0 {
                std::thread::sleep(OPENING_PAUSE);
            }
            self.connect(io, index)?;
        }
        self.live[self.number].store(&self.measured.counts);
        Ok(())
    }

    /// Sends and receives until everything is done, from `started_ns` on. `None`: it was stopped.
    pub(super) fn run<D: Driver>(
        &mut self,
        io: &mut D,
        stop: &AtomicU8,
        started_ns: u64,
    ) -> Result<Option<Finished>, Failure> {
        let conduct = self.plan.conduct;
        self.measured.from_ns = after(started_ns, conduct.warmup);
        match conduct.warmup.is_zero() {
            true => self.begin_measurement(io),
            false => drop(io.arm_timer(self.measured.from_ns, MEASUREMENT_BEGINS)),
        }
        if let Some(patience) = conduct.patience {
            io.arm_timer(after(started_ns, patience), PATIENCE_ENDS);
        }
        self.workload.started(started_ns);
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
            match stop.load(Ordering::Acquire) {
                GO_ON => {}
                STOP => return Ok(None),
                _ => {
                    self.give_up();
                    break;
                }
            }
            io.turn(self, None).map_err(Failure::System)?;
        }
        let now_ns = monotonic_ns();
        self.tell_interval();
        self.workload.finished(now_ns);
        self.live[self.number].store(&self.measured.counts);
        Ok(Some(Finished {
            number: self.number,
            record: self.measured.record.clone(),
            last_answer_ns: self.last_answer_ns,
            thread: self.thread_use(now_ns),
        }))
    }

    fn use_at(&self, at_ns: u64) -> Use {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        Use {
            at_ns,
            // A thread's time is never negative.
            cpu_ns: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
            waiting_ns: self.schedule.as_ref().map_or(0, ThreadSchedule::waiting_ns),
        }
    }

    fn thread_use(&self, now_ns: u64) -> ThreadUse {
        let now = self.use_at(now_ns);
        let since = self.use_since.unwrap_or(now);
        ThreadUse {
            elapsed: Duration::from_nanos(now.at_ns.saturating_sub(since.at_ns)),
            cpu: Duration::from_nanos(now.cpu_ns.saturating_sub(since.cpu_ns)),
            waiting: Duration::from_nanos(now.waiting_ns.saturating_sub(since.waiting_ns)),
        }
    }

    fn begin_measurement<D: Driver>(&mut self, io: &mut D) {
        self.use_since = Some(self.use_at(monotonic_ns()));
        if self.plan.conduct.interval.is_some() {
            self.begin_interval(io, self.measured.from_ns);
        }
    }

    /// Begins the interval in which this moment lies.
    fn begin_interval<D: Driver>(&mut self, io: &mut D, now_ns: u64) {
        let Some(length) = self.plan.conduct.interval else {
            return;
        };
        let measured = &mut self.measured;
        let length_ns = nanoseconds(length).max(1);
        let index = now_ns.saturating_sub(measured.from_ns) / length_ns;
        let end_ns = length_ns.saturating_mul(index + 1);
        measured.interval_ends_ns = measured.from_ns.saturating_add(end_ns);
        measured.interval = Some(UnderWay {
            interval: Interval::new(index, &measured.scale, self.plan.interval_classes()),
            before: measured.counts,
        });
        io.arm_timer(measured.interval_ends_ns, INTERVAL_ENDS);
    }

    /// Looks whether a turn is in another interval than the one under way. A timer does so as well, for when nothing comes.
    fn keep_interval<D: Driver>(&mut self, io: &mut D) {
        let now_ns = io.turn_started_ns();
        if now_ns >= self.measured.interval_ends_ns {
            self.tell_interval();
            self.begin_interval(io, now_ns);
        }
    }

    /// Tells of the interval under way.
    fn tell_interval(&mut self) {
        let Some(mut under_way) = self.measured.interval.take() else {
            return;
        };
        under_way.interval.counts = self.measured.counts.since(&under_way.before);
        // Whoever no longer listens no longer needs it.
        let _ = self
            .messages
            .send(Message::Interval(self.number, Box::new(under_way.interval)));
    }

    /// Ends everything; what is under way stays unanswered.
    fn give_up(&mut self) {
        let now_ns = monotonic_ns();
        let measured = &mut self.measured;
        for session in &mut self.sessions {
            session.stage = Stage::Done;
            for sent in session.under_way.drain(..) {
                if sent.class != PROLOGUE && sent.at_ns >= measured.from_ns {
                    let (count, age_ns) =
                        (u64::from(sent.count), now_ns.saturating_sub(sent.at_ns));
                    measured.record.were_unanswered(sent.class, count, age_ns);
                    measured.counts.failed += count;
                }
            }
        }
        self.unfinished = 0;
    }

    /// Starts a connection for this session.
    fn connect<D: Driver>(&mut self, io: &mut D, index: usize) -> Result<(), Failure> {
        let target = self.target(index);
        let socket = match &self.plan.targets[target] {
            Target::Unix(path) => start_connect_unix(path),
            target => match target.address() {
                Some(address) => start_connect(address, None),
                None => return Ok(()),
            },
        };
        let socket = socket.map_err(|error| Failure::Connect { target, error })?;
        let id = io.adopt(socket, None).map_err(Failure::System)?;
        if self.by_slot.len() <= id.slot() {
            self.by_slot.resize(id.slot() + 1, u32::MAX);
        }
        self.by_slot[id.slot()] = index as u32;
        let mut channel = None;
        if let Some(tls) = &self.plan.prologue.tls {
            let refused = |error| Failure::Connect { target, error };
            let mut new = Box::new(Channel::new(tls).map_err(refused)?);
            new.take_pending(&mut self.output).map_err(refused)?;
            io.send(id, &mut self.output);
            channel = Some(new);
        }
        self.sessions[index].opened(id, channel);
        self.watch_connection(io, index);
        self.measured.counts.open += 1;
        Ok(())
    }

    /// Arranges for a look at a new connection.
    fn watch_connection<D: Driver>(&mut self, io: &mut D, index: usize) {
        let Some(patience) = self.plan.conduct.connect_patience else {
            return;
        };
        let now_ns = monotonic_ns();
        self.sessions[index].opened_ns = Some(now_ns);
        if !self.looks_at_connections {
            self.looks_at_connections = true;
            io.arm_timer(after(now_ns, patience), CONNECTIONS_ARE_LOOKED_AT);
        }
    }

    /// Gives up connections that have not come about for too long.
    fn look_at_connections<D: Driver>(&mut self, io: &mut D) {
        self.looks_at_connections = false;
        let Some(patience) = self.plan.conduct.connect_patience else {
            return;
        };
        let now_ns = monotonic_ns();
        let mut next_ns = u64::MAX;
        for index in 0..self.sessions.len() {
            let session = &mut self.sessions[index];
            let (Some(id), Some(opened_ns)) = (session.connection, session.opened_ns) else {
                continue;
            };
            let deadline_ns = after(opened_ns, patience);
            // Where nothing has been sent nothing shows yet.
            if now_ns < deadline_ns || session.fresh && session.channel.is_none() {
                next_ns = next_ns.min(deadline_ns.max(after(now_ns, LOOK_AGAIN)));
                continue;
            }
            let target = self.target(index);
            let error = io::Error::from_raw_os_error(Errno::TIMEDOUT.raw_os_error());
            self.lose(io, index, Failure::Connect { target, error });
            io.close(id, Close::Now);
        }
        if next_ns < u64::MAX {
            self.looks_at_connections = true;
            io.arm_timer(next_ns, CONNECTIONS_ARE_LOOKED_AT);
        }
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
        self.wake();
        if self.ready.is_empty() {
            return;
        }
        let now_ns = monotonic_ns();
        let mut at = 0;
        // A connection that is opened again, or woken, comes to the end of the list.
        while let Some(&index) = self.ready.get(at) {
            at += 1;
            self.sessions[index as usize].in_ready = false;
            self.fill(io, index as usize, now_ns);
            self.wake();
        }
        self.ready.clear();
    }

    /// Lets connections go on of which the workload says so.
    fn wake(&mut self) {
        while W::WAKES
            && let Some(connection) = self.workload.wake()
        {
            let index = connection / self.plan.threads;
            let session = &mut self.sessions[index];
            if session.stage == Stage::Done {
                self.unfinished += 1;
            }
            session.stage = Stage::Sending;
            self.make_ready(index);
        }
    }

    /// Sends what a connection has to send.
    fn fill<D: Driver>(&mut self, io: &mut D, index: usize, now_ns: u64) {
        let connection = self.global(index);
        let window = self.plan.window;
        let session = &mut self.sessions[index];
        let prologue = if session.fresh && session.connection.is_some() {
            self.output.tail().extend(&self.plan.prologue.requests);
            self.plan.prologue.count
        } else {
            0
        };
        let mut sends = false;
        while session.count < window {
            let asked = Asked {
                connection,
                open: session.connection.is_some(),
                fresh: session.fresh,
                room: window - session.count,
                quiet: session.count == 0,
                now_ns,
            };
            let before = self.output.len();
            let next = self.workload.next(&asked, &mut self.output);
            match next {
                Next::Requests { count, class } | Next::Due { count, class, .. } => {
                    debug_assert!(asked.open && count > 0 && count <= asked.room);
                    if session.fresh && prologue > 0 {
                        session.sent(Sent {
                            count: prologue,
                            class: PROLOGUE,
                            due: false,
                            at_ns: now_ns,
                        });
                    }
                    session.fresh = false;
                    let (due, at_ns) = match next {
                        Next::Due { due_ns, .. } => (true, due_ns),
                        _ => (false, now_ns),
                    };
                    session.sent(Sent {
                        count,
                        class,
                        due,
                        at_ns,
                    });
                    session.count += count;
                    sends = true;
                    if at_ns >= self.measured.from_ns {
                        let bytes = (self.output.len() - before) as u64;
                        self.measured.record.bytes_sent(class, bytes);
                        if let Some(part) = self.measured.part(class) {
                            part.sent_bytes += bytes;
                        }
                        self.measured.counts.bytes += bytes;
                    }
                }
                Next::Idle => break,
                Next::At(deadline_ns) => {
                    session.arm(io, index, deadline_ns);
                    break;
                }
                Next::Finished => {
                    session.stage = Stage::Draining;
                    if session.count == 0 {
                        self.output.clear();
                        return self.done(io, index);
                    }
                    break;
                }
                Next::Reconnect => {
                    debug_assert!(session.count == 0 && !sends);
                    self.output.clear();
                    return self.reconnect(io, index);
                }
                Next::CloseUntil(deadline_ns) => {
                    debug_assert!(session.count == 0 && !sends);
                    self.output.clear();
                    session.arm(io, index, deadline_ns);
                    return self.disconnect(io, index);
                }
            }
        }
        match session.connection {
            Some(id) if sends => {
                if let Some(channel) = &mut session.channel
                    && let Err(error) = channel.seal(&mut self.output)
                {
                    return self.fail(Failure::Lost(error));
                }
                io.send(id, &mut self.output);
            }
            _ => self.output.clear(),
        }
    }

    fn disconnect<D: Driver>(&mut self, io: &mut D, index: usize) {
        if let Some(id) = self.sessions[index].connection.take() {
            self.measured.counts.open -= 1;
            io.close(id, Close::Now);
        }
        self.sessions[index].fresh = true;
        self.sessions[index].under_way.clear();
    }

    fn reconnect<D: Driver>(&mut self, io: &mut D, index: usize) {
        self.disconnect(io, index);
        match self.connect(io, index) {
            Ok(()) => self.make_ready(index),
            Err(failure) => match (self.plan.conduct.losses, failure) {
                // It may be that there are no descriptors or ports at the moment.
                (Losses::Counted, Failure::Connect { error, .. } | Failure::System(error)) => {
                    let record = &mut self.measured.record;
                    record.connection_lost(|| system_text(&error));
                    self.sessions[index].arm(io, index, monotonic_ns() + RETRY_NS);
                }
                (_, failure) => self.fail(failure),
            },
        }
    }

    /// Works through what an encrypted connection has received.
    fn decrypt<D: Driver>(
        &mut self,
        io: &mut D,
        index: usize,
        data: &[u8],
        now_ns: u64,
    ) -> Result<(), Failure> {
        let target = self.target(index);
        let session = &mut self.sessions[index];
        let (Some(channel), Some(id)) = (&mut session.channel, session.connection) else {
            return Ok(());
        };
        let mut plain = std::mem::take(&mut self.decrypted);
        plain.clear();
        let opened = channel.open(data, &mut plain);
        let established = channel.is_established();
        // An alert that says what is wrong goes out in any case.
        let pending = channel.take_pending(&mut self.output);
        if !self.output.is_empty() {
            io.send(id, &mut self.output);
        }
        let outcome = match opened.and(pending) {
            Ok(()) if plain.is_empty() => Ok(()),
            Ok(()) => self.answers(io, index, &plain, now_ns),
            Err(error) if established => Err(Failure::Lost(error)),
            Err(error) => Err(Failure::Connect { target, error }),
        };
        self.decrypted = plain;
        outcome
    }

    /// A session has nothing left to do.
    fn done<D: Driver>(&mut self, io: &mut D, index: usize) {
        self.sessions[index].stage = Stage::Done;
        self.unfinished -= 1;
        if self.plan.conduct.lazy {
            self.disconnect(io, index);
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// A connection is gone without having been asked to go.
    fn lose<D: Driver>(&mut self, io: &mut D, index: usize, failure: Failure) {
        if self.plan.conduct.losses == Losses::Fatal {
            return self.fail(failure);
        }
        let global = self.global(index);
        let measured = &mut self.measured;
        let session = &mut self.sessions[index];
        session.connection = None;
        session.fresh = true;
        measured.counts.open -= 1;
        for sent in session.under_way.drain(..) {
            if sent.class != PROLOGUE && sent.at_ns >= measured.from_ns {
                measured.record.were_lost(sent.class, u64::from(sent.count));
                measured.counts.failed += u64::from(sent.count);
            }
        }
        session.count = 0;
        session.drop_pieces();
        measured.record.connection_lost(|| failure.to_string());
        self.workload.lost(global);
        match session.stage {
            Stage::Sending => session.arm(io, index, monotonic_ns() + RETRY_NS),
            Stage::Draining => self.done(io, index),
            Stage::Done => {}
        }
    }

    /// The session a connection belongs to, unless it has another one by now.
    fn session_of(&self, connection: ConnectionId) -> Option<usize> {
        let index = *self.by_slot.get(connection.slot())? as usize;
        let session = self.sessions.get(index)?;
        (session.connection == Some(connection)).then_some(index)
    }

    /// Works through what a connection has received at `now_ns`.
    fn answers<D: Driver>(
        &mut self,
        io: &mut D,
        index: usize,
        data: &[u8],
        now_ns: u64,
    ) -> Result<(), Failure> {
        let connection = self.global(index);
        let measured = &mut self.measured;
        let session = &mut self.sessions[index];
        session.heard = true;
        let mut rest = data;
        // Answers to requests that left together are recorded together.
        let mut answered = Answered::default();
        while !rest.is_empty() {
            let reply = match session.scanner.scan(rest) {
                Ok(Some(reply)) => reply,
                Ok(None) => {
                    session.unfinished_bytes += rest.len() as u64;
                    if session.scanner.class() == Some(ReplyClass::Error) {
                        session.keep_error(rest);
                    }
                    if W::READS {
                        session.pieces.extend_from_slice(rest);
                        if session.pieces.len() > ANSWER_BYTES_MAX {
                            return Err(Failure::Protocol(DecodeError::TooLarge));
                        }
                    }
                    break;
                }
                Err(error) => return Err(Failure::Protocol(error)),
            };
            let (bytes, after) = rest.split_at(reply.len);
            rest = after;
            answered.bytes += reply.len as u64 + std::mem::take(&mut session.unfinished_bytes);
            if reply.class == ReplyClass::Push {
                if W::READS {
                    session.drop_pieces();
                }
                continue;
            }
            let Some(sent) = session.under_way.front() else {
                return Err(Failure::Unasked);
            };
            let (class, since_ns) = (sent.class, sent.at_ns);
            let counts = since_ns >= measured.from_ns;
            match reply.class {
                ReplyClass::Error => {
                    session.keep_error(bytes);
                    if class == PROLOGUE || self.plan.errors == ErrorReplies::Fatal {
                        return Err(Failure::ErrorReply(error_text(&session.error)));
                    }
                    if counts {
                        measured
                            .record
                            .was_error(class, || error_text(&session.error));
                        measured.counts.errors += 1;
                    }
                    session.error.clear();
                }
                ReplyClass::Null if counts => measured.record.was_null(class),
                _ => {}
            }
            if W::READS {
                let whole = if session.pieces.is_empty() {
                    bytes
                } else {
                    session.pieces.extend_from_slice(bytes);
                    &session.pieces
                };
                if class != PROLOGUE {
                    let verdict = self.workload.answer(&Answer {
                        connection,
                        class,
                        since_ns,
                        kind: reply.class,
                        bytes: whole,
                    });
                    if let Some(text) = verdict.wrong
                        && counts
                    {
                        measured.record.was_wrong(class, text);
                        measured.counts.failed += 1;
                    }
                    if let Some(unit) = verdict.unit
                        && unit.since_ns >= measured.from_ns
                    {
                        let took_ns = now_ns.saturating_sub(unit.since_ns);
                        measured.record.answered(unit.class, took_ns, 1);
                    }
                }
                session.drop_pieces();
            }
            answered.count += 1;
            let sent = &mut session.under_way[0];
            sent.count -= 1;
            if sent.count == 0 {
                measured.note(session, now_ns, answered);
                session.under_way.pop_front();
                answered = Answered::default();
            }
        }
        measured.note(session, now_ns, answered);
        self.last_answer_ns = now_ns;
        match session.stage {
            Stage::Sending if session.count <= self.plan.refill_at => self.make_ready(index),
            Stage::Draining if session.count == 0 => self.done(io, index),
            _ => {}
        }
        Ok(())
    }
}

impl Session {
    /// Has it asked again at this time, unless that is arranged for already: one timer at a time, and whoever is asked too
    /// early says so.
    fn arm<D: Driver>(&mut self, io: &mut D, index: usize, deadline_ns: u64) {
        if !self.timer_armed {
            self.timer_armed = true;
            io.arm_timer(deadline_ns, TimerToken(index as u64));
        }
    }
}

/// Answers to the oldest requests under way.
#[derive(Clone, Copy, Default)]
struct Answered {
    count: u32,
    bytes: u64,
}

impl Measured {
    /// What the interval under way tells of a class.
    fn part(&mut self, class: u16) -> Option<&mut Part> {
        let under_way = self.interval.as_mut()?;
        under_way.interval.classes.get_mut(usize::from(class))
    }

    /// Records that so many of the oldest requests under way have been answered.
    fn note(&mut self, session: &mut Session, now_ns: u64, answered: Answered) {
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
        if at_ns < self.from_ns {
            return;
        }
        let count = u64::from(answered.count);
        let latency = self
            .record
            .answered(class, now_ns.saturating_sub(at_ns), count);
        let scale = self.scale;
        if let Some(part) = self.part(class) {
            part.answered(&scale, latency, count);
            part.received_bytes += answered.bytes;
        }
        if let Some(under_way) = &mut self.interval {
            let latencies = &mut under_way.interval.latencies;
            latencies.saturating_record_n(latency, count);
        }
        self.record.bytes_received(class, answered.bytes);
        self.counts.answered += count;
        self.counts.latency_sum = self
            .counts
            .latency_sum
            .saturating_add(latency.saturating_mul(count));
        self.counts.bytes += answered.bytes;
    }
}

/// Has the kernel wake this thread when it is time and not up to 50 microseconds later. Where that is not allowed, it stays as
/// it is.
fn wake_exactly() {
    let thread = rustix::thread::gettid();
    let _ = std::fs::write(format!("/proc/{thread}/timerslack_ns"), "1");
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn after(start_ns: u64, duration: Duration) -> u64 {
    start_ns.saturating_add(nanoseconds(duration))
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
        let now_ns = io.turn_started_ns();
        self.keep_interval(io);
        let Some(index) = self.session_of(connection) else {
            return;
        };
        let outcome = match self.sessions[index].channel {
            None => self.answers(io, index, data, now_ns),
            Some(_) => self.decrypt(io, index, data, now_ns),
        };
        if let Err(failure) = outcome {
            self.fail(failure);
        }
    }

    fn end_of_input(&mut self, io: &mut D, connection: ConnectionId) {
        if let Some(index) = self.session_of(connection) {
            self.lose(io, index, Failure::Closed);
        }
        io.close(connection, Close::Now);
    }

    fn sent(&mut self, _: &mut D, connection: ConnectionId, _: usize) {
        let Some(index) = self.session_of(connection) else {
            return;
        };
        let session = &mut self.sessions[index];
        session.opened_ns = None;
        if !session.heard {
            // The connection had not come about when the requests were handed over.
            let now_ns = monotonic_ns();
            let undated = session.under_way.iter_mut().filter(|sent| !sent.due);
            undated.for_each(|sent| sent.at_ns = now_ns);
        }
    }

    fn closed(&mut self, io: &mut D, connection: ConnectionId, reason: CloseReason) {
        let Some(index) = self.session_of(connection) else {
            return;
        };
        let target = self.target(index);
        let failure = match reason {
            CloseReason::Error(error) if self.sessions[index].heard => Failure::Lost(error),
            CloseReason::Error(error) => Failure::Connect { target, error },
            _ => Failure::Closed,
        };
        self.lose(io, index, failure);
    }

    fn timer(&mut self, io: &mut D, token: TimerToken) {
        match token {
            MEASUREMENT_BEGINS => self.begin_measurement(io),
            PATIENCE_ENDS => self.give_up(),
            INTERVAL_ENDS => self.keep_interval(io),
            CONNECTIONS_ARE_LOOKED_AT => self.look_at_connections(io),
            TimerToken(index) => {
                let index = index as usize;
                self.sessions[index].timer_armed = false;
                self.make_ready(index);
            }
        }
    }

    fn turn_end(&mut self, io: &mut D) {
        self.refill(io);
        self.live[self.number].store(&self.measured.counts);
    }
}
