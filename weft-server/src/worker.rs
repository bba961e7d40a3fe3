//! A worker: one driver, the sessions of its connections, and its part of the engine.
//!
//! Owns the loop and what happens to a connection between its arrival and its end. Everything in here belongs to one
//! thread; others reach it through its mailbox. Invariant: a connection counts as the worker's from the hand-over until
//! `closed` or `released`, or until it could not be adopted; as a client, from the first hand-over until it is gone.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use smallvec::SmallVec;
use weft_engine::action::Action;
use weft_engine::client::Origin;
use weft_engine::clients::ClientRecord;
use weft_engine::engine::{Engine, WorkerState};
use weft_engine::session::{Arrival, Session, Verdict, prepare};
use weft_reactor::{
    Close, CloseReason, ConnectionId, Delivery, Driver, Filter, GROUP_MAX, Handler, Inbox,
    ListenerId, PeerAddress, TimerToken, monotonic_ns,
};
use weft_rope::Output;

use crate::admission::is_local;
use crate::clock::SystemClock;
use crate::crew::WorkerHandle;
use crate::housekeeping::Housekeeping;
use crate::load::Load;
use crate::log::{Level, system_text};
use crate::messages::{ToMain, ToWorker};
use crate::sessions::{Connected, Departed, Sessions};
use crate::shared::Shared;
use crate::turns::Turns;

/// How long clients have, when the server ends, to take the replies they are owed.
const FAREWELL: Duration = Duration::from_millis(500);

/// The timer of what was put off. Housekeeping has another one.
const NEXT_TURN: TimerToken = TimerToken(1);

/// The timer of the end of a pause.
const PAUSE_END: TimerToken = TimerToken(2);

/// Timers of this and higher numbers end the wait of the connection of that number.
const FIRST_CONNECTION: u64 = 1 << 32;

/// So many times in a turn those are attended whose waits were ended in it, in case that this ends others'.
const ATTEND_ROUNDS: usize = 16;

/// A pause is looked at again after so long at most, however long it is meant to last.
const PAUSE_LOOK_NS: u64 = 3_600_000_000_000;

/// Output longer than this does not leave for sure at the end of the turn.
const SWOLLEN_BYTES: usize = 16 * 1024;

/// After so many turns the driver tells itself when output leaves: it is behind.
const SWOLLEN_TURNS: u8 = 2;

/// A worker's state.
pub struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: WorkerState,
    pub(crate) sessions: Sessions,
    pub(crate) clock: SystemClock,
    pub(crate) load: Load,
    inbox: Inbox<ToWorker>,
    housekeeping: Housekeeping,
    turns: Turns,
    output: Output,
    /// Sessions with requests left over from this turn.
    unfinished: Vec<ConnectionId>,
    /// Sessions with requests that a pause holds.
    held: Vec<ConnectionId>,
    /// Clients of this worker's own that are to be looked at before the turn ends.
    own: Vec<Arc<ClientRecord>>,
    /// The timer of the pause's end is set.
    awaits_pause_end: bool,
    /// How many pauses had ended when those who are held were last looked at.
    pauses_seen: usize,
    /// Connections with much output, and for how many turns that is to be looked at.
    swollen: Vec<(ConnectionId, u8)>,
    /// The generation of the settings that admission has taken over.
    settings_seen: u64,
    stopping: bool,
}

impl Worker {
    /// Worker number `id`, on the thread that it is going to run on; `seed` makes its randomness its own.
    pub fn new(shared: Arc<Shared>, inbox: Inbox<ToWorker>, id: usize, seed: u64) -> Self {
        let state = WorkerState::new(&shared.engine, id, seed);
        let settings_seen = state.settings().generation();
        Self {
            shared,
            state,
            sessions: Sessions::default(),
            clock: SystemClock::new(),
            load: Load::beginning(monotonic_ns()),
            inbox,
            housekeeping: Housekeeping::default(),
            turns: Turns::of_this_thread(),
            output: Output::new(),
            unfinished: Vec::new(),
            held: Vec::new(),
            own: Vec::new(),
            awaits_pause_end: false,
            pauses_seen: 0,
            swollen: Vec::new(),
            settings_seen,
            stopping: false,
        }
    }

    /// Serves until told to stop.
    ///
    /// # Errors
    /// Those of the driver, which leave nothing to go on with.
    pub fn run<D: Driver>(mut self, mut io: D) -> io::Result<()> {
        self.state.begin_loop(&self.clock);
        while !self.stopping {
            if self.state.begin_turn(&self.clock) {
                io.time_next_turn();
            }
            let report = io.turn(&mut self, None)?;
            self.note_unsent(&io);
            self.load.turn(&report);
            self.turns
                .turn_ended(&mut self.state, io.turn_started_ns(), &report);
        }
        self.say_farewell(&mut io)
    }

    /// Closes all connections, giving the peers a moment to take what was replied.
    fn say_farewell<D: Driver>(&mut self, io: &mut D) -> io::Result<()> {
        for id in self.sessions.ids().collect::<Vec<_>>() {
            io.close(id, Close::AfterFlush);
        }
        let deadline_ns = monotonic_ns() + FAREWELL.as_nanos() as u64;
        while io.connections() > 0 {
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                break;
            }
            io.turn(self, Some(Duration::from_nanos(left_ns)))?;
        }
        Ok(())
    }

    fn welcome<D: Driver>(&mut self, io: &mut D, socket: OwnedFd, peer: PeerAddress) {
        let origin = self.origin(&socket, peer);
        let descriptor = socket.as_raw_fd();
        match io.adopt(socket, None) {
            Ok(id) => {
                if self.shared.log.shows(Level::Verbose) {
                    self.shared
                        .log
                        .verbose(format_args!("Accepted {}", origin.address));
                }
                let engine = &self.shared.engine;
                let mut session = Session::new(engine, engine.next_client_id(), origin);
                let active_ns = io.turn_started_ns();
                session.settle(self.state.id(), id.to_bits(), descriptor, active_ns);
                self.sessions.insert(Box::new(Connected {
                    id,
                    session,
                    active_ns,
                    input_ended: false,
                    wait_end: None,
                    leaving_for: None,
                }));
                let statistics = self.state.statistics();
                statistics.connected_clients.add(1);
                statistics.connections_received.add(1);
            }
            Err(error) => self.could_not_adopt(&error),
        }
    }

    /// Goes on with a connection that another worker had.
    fn take_over<D: Driver>(&mut self, io: &mut D, departed: Departed) {
        let Departed {
            socket,
            filter,
            mut connected,
        } = departed;
        let descriptor = socket.as_raw_fd();
        match io.adopt(socket, filter) {
            Ok(id) => {
                connected.id = id;
                connected.leaving_for = None;
                let session = &mut connected.session;
                session.settle(
                    self.state.id(),
                    id.to_bits(),
                    descriptor,
                    io.turn_started_ns(),
                );
                let record = Arc::clone(session.client().record());
                let (unfinished, held) = (session.is_unfinished(), session.is_held());
                let waiting = session.client().is_waiting();
                self.sessions.insert(connected);
                // Bytes that arrived while it was on its way may have brought more than one turn's work, what a pause
                // holds, or what waits.
                if unfinished {
                    self.put_off(io, id);
                } else if waiting {
                    self.let_wait(io, id);
                } else if held {
                    self.hold(io, id);
                }
                self.attend(io, &record);
                let statistics = self.state.statistics();
                statistics.connected_clients.add(1);
                statistics.connections_moved.add(1);
            }
            Err(error) => self.could_not_adopt(&error),
        }
    }

    fn could_not_adopt(&self, error: &io::Error) {
        self.shared.log.warning(format_args!(
            "Error registering a client connection: {}",
            system_text(error)
        ));
        self.forget_connection();
    }

    /// Lets go of `count` quiet connections, those that make work first. They leave when the driver is done with them.
    fn give<D: Driver>(&mut self, io: &mut D, to: usize, count: usize) {
        let mut left = count;
        for lively in [true, false] {
            for slot in 0..self.sessions.slots() {
                if left == 0 {
                    return;
                }
                let Some(connected) = self.sessions.at_slot(slot) else {
                    continue;
                };
                let id = connected.id;
                if self.load.is_lively(connected.active_ns) == lively
                    && connected.leaving_for.is_none()
                    && connected.session.may_move()
                    && io.is_open(id)
                    && io.pending_output(id) == 0
                {
                    connected.leaving_for = Some(to);
                    io.release(id);
                    left -= 1;
                }
            }
        }
    }

    /// Tells the controller how busy the worker was, once per round.
    pub(crate) fn end_load_round(&mut self, now_ns: u64) {
        let crew = &self.shared.crew;
        let commands = self.state.statistics().commands_processed.load();
        let published = &crew.worker(self.state.id()).load;
        if self
            .load
            .end_round(now_ns, commands, || self.turns.waiting_ns(), published)
        {
            crew.round_ended(now_ns);
        }
    }

    /// The addresses of both ends, as CLIENT LIST shows them.
    fn origin(&self, socket: &OwnedFd, peer: PeerAddress) -> Origin {
        let local = is_local(&peer);
        match peer {
            PeerAddress::Internet(address) => {
                let local_address = rustix::net::getsockname(socket.as_fd())
                    .ok()
                    .and_then(|address| std::net::SocketAddr::try_from(address).ok());
                Origin {
                    address: address.to_string().into(),
                    local_address: local_address
                        .map(|address| address.to_string())
                        .unwrap_or_default()
                        .into(),
                    local,
                }
            }
            PeerAddress::Unix => {
                let path = self.state.settings().unixsocket().unwrap_or_default();
                let address: Box<str> = format!("{}:0", String::from_utf8_lossy(path)).into();
                Origin {
                    address: address.clone(),
                    local_address: address,
                    local,
                }
            }
        }
    }

    /// The counterpart of the acceptor's hand-over.
    fn forget_connection(&self) {
        self.shared.crew.worker(self.state.id()).connection_left();
        self.shared.admission.leave();
    }

    /// Lets `step` run the session with somewhere to write to, sends what it wrote, and does what follows from it.
    fn serve<D: Driver>(
        &mut self,
        io: &mut D,
        id: ConnectionId,
        step: impl FnOnce(&mut Session, &Engine, &mut WorkerState, &SystemClock, &mut Output) -> Verdict,
    ) {
        let Some(connected) = self.sessions.get_mut(id) else {
            return;
        };
        self.load.active_again(connected.active_ns);
        connected.active_ns = io.turn_started_ns();
        connected.session.set_unsent(io.pending_output(id));
        connected.session.set_active_ns(connected.active_ns);
        let verdict = step(
            &mut connected.session,
            &self.shared.engine,
            &mut self.state,
            &self.clock,
            &mut self.output,
        );
        if self.output.len() > SWOLLEN_BYTES {
            self.swollen.push((id, SWOLLEN_TURNS));
        }
        io.send(id, &mut self.output);
        match verdict {
            Verdict::Open => {
                self.check_output(io, id);
            }
            Verdict::Held => {
                self.check_output(io, id);
                self.hold(io, id);
            }
            Verdict::Unfinished => {
                self.check_output(io, id);
                self.put_off(io, id);
            }
            Verdict::Waiting => {
                self.check_output(io, id);
                self.let_wait(io, id);
            }
            Verdict::Close => io.close(id, Close::AfterFlush),
            Verdict::Drop => io.close(id, Close::Now),
        }
        self.act();
        self.housekeeping.work_done();
    }

    /// Leaves a session's other requests to the next turn, when all others have been served.
    fn put_off<D: Driver>(&mut self, io: &mut D, id: ConnectionId) {
        if self.unfinished.is_empty() {
            io.arm_timer(io.turn_started_ns(), NEXT_TURN);
        }
        io.pause_receive(id);
        self.unfinished.push(id);
    }

    /// Keeps a session whose next request a pause holds until that is over.
    fn hold<D: Driver>(&mut self, io: &mut D, id: ConnectionId) {
        io.pause_receive(id);
        self.held.push(id);
        if !std::mem::replace(&mut self.awaits_pause_end, true) {
            let now_ns = monotonic_ns();
            let clients = &self.shared.engine.clients;
            let until_ns = clients.paused_until_ns(now_ns).unwrap_or(now_ns);
            io.arm_timer(until_ns.min(now_ns + PAUSE_LOOK_NS), PAUSE_END);
        }
    }

    /// Keeps a session whose last command waits until that is over.
    fn let_wait<D: Driver>(&mut self, io: &mut D, id: ConnectionId) {
        io.pause_receive(id);
        if let Some(connected) = self.sessions.get_mut(id)
            && connected.wait_end.is_none()
            && let Some(deadline_ns) = connected.session.wait_deadline_ns()
        {
            connected.wait_end = Some(io.arm_timer(deadline_ns, TimerToken(id.to_bits())));
        }
    }

    /// Goes on with a session whose last command waited, if that is over.
    fn end_wait<D: Driver>(&mut self, io: &mut D, id: ConnectionId) {
        let Some(connected) = self.sessions.get_mut(id) else {
            return;
        };
        if connected.session.wait_is_over(io.turn_started_ns()) {
            if let Some(timer) = connected.wait_end.take() {
                io.cancel_timer(timer);
            }
            self.go_on(io, vec![id]);
        }
    }

    /// Ends a connection that may have requests left: from now on nothing is taken for it.
    fn abandon<D: Driver>(&mut self, io: &mut D, id: ConnectionId) {
        if let Some(connected) = self.sessions.get_mut(id) {
            connected.session.give_up_waiting();
        }
        io.close(id, Close::Now);
    }

    /// Brings the record of clients with much output up to date, now that it has been sent as far as it goes.
    fn note_unsent<D: Driver>(&mut self, io: &D) {
        self.swollen.retain_mut(|(id, turns)| {
            let unsent = io.pending_output(*id);
            if let Some(connected) = self.sessions.get_mut(*id) {
                connected.session.set_unsent(unsent);
            }
            *turns -= 1;
            unsent > 0 && *turns > 0
        });
    }

    /// Does what others want of a client: ends it, or sends it what was made for it. A client that has moved on is looked at
    /// where it arrives.
    fn attend<D: Driver>(&mut self, io: &mut D, record: &ClientRecord) {
        let id = ConnectionId::from_bits(record.connection());
        let Some(connected) = self.sessions.get_mut(id) else {
            return;
        };
        if connected.session.client().id() != record.id() || connected.leaving_for.is_some() {
            return;
        }
        if record.is_doomed() {
            return self.abandon(io, id);
        }
        let session = &mut connected.session;
        session.take_pushes(&self.state, &mut self.output);
        if !self.output.is_empty() {
            self.swollen.push((id, SWOLLEN_TURNS));
            io.send(id, &mut self.output);
            self.check_output(io, id);
        }
        self.end_wait(io, id);
    }

    /// Goes on with sessions that were put off or held.
    fn go_on<D: Driver>(&mut self, io: &mut D, sessions: Vec<ConnectionId>) {
        for id in sessions {
            if !io.is_open(id) {
                continue;
            }
            self.serve(io, id, |session, engine, state, clock, output| {
                session.go_on(engine, state, clock, output)
            });
            let Some(connected) = self.sessions.get_mut(id) else {
                continue;
            };
            if connected.session.is_unfinished() || connected.session.is_held() {
                continue;
            }
            if connected.input_ended {
                io.close(id, Close::AfterFlush);
            } else {
                io.resume_receive(id);
            }
        }
    }

    /// Ends a connection whose peer takes its replies too slowly, if there is a limit to that. True: time may end it.
    pub(crate) fn check_output<D: Driver>(&mut self, io: &mut D, id: ConnectionId) -> bool {
        let Some(connected) = self.sessions.get_mut(id) else {
            return false;
        };
        let (unsent, now_ns) = (io.pending_output(id), io.turn_started_ns());
        let session = &mut connected.session;
        if session.output_exceeds(&mut self.state, unsent, now_ns) {
            io.close(id, Close::Now);
            self.act();
            return false;
        }
        session.is_running_out()
    }

    fn act(&mut self) {
        let own = self.state.id();
        for action in self.state.actions.drain(..) {
            match action {
                Action::Shutdown(how) => {
                    let _ = self.shared.main.send(ToMain::Shutdown(how));
                }
                Action::Attend(record) if record.worker() == own => {
                    self.own.push(record);
                }
                Action::Attend(record) => {
                    self.shared.crew.worker(record.worker()).attend(record);
                }
                Action::SettingsChanged | Action::PauseEnded => {
                    self.shared.crew.workers().for_each(WorkerHandle::wake);
                }
                Action::Warn(text) => self.shared.log.warning(format_args!("{text}")),
            }
        }
    }

    /// New settings concern the acceptor too. A client that changed them gets its reply after this.
    fn take_over_settings(&mut self) {
        self.state.refresh_settings(&self.shared.engine);
        let generation = self.state.settings().generation();
        if generation != self.settings_seen {
            self.settings_seen = generation;
            self.shared.admission.refresh(&self.shared.engine);
            // A time-out may have been set that nobody was watching.
            self.housekeeping.work_done();
        }
    }
}

impl<D: Driver> Handler<D> for Worker {
    /// Workers do not listen.
    fn accepted(&mut self, _: &mut D, _: ListenerId, _: OwnedFd, _: PeerAddress) {}

    fn receive_target(&mut self, id: ConnectionId) -> Option<&mut [u8]> {
        self.sessions.get_mut(id)?.session.receive_target()
    }

    fn received(&mut self, io: &mut D, connection: ConnectionId, data: &mut [u8]) {
        self.received_group(io, &mut [Delivery { connection, data }]);
    }

    fn received_group(&mut self, io: &mut D, group: &mut [Delivery<'_>]) {
        let engine = &*self.shared.engine;
        let mut connections: SmallVec<[ConnectionId; GROUP_MAX]> = SmallVec::new();
        let mut arrivals: SmallVec<[Arrival<'_>; GROUP_MAX]> = SmallVec::new();
        for Delivery { connection, data } in group {
            if let Some(connected) = self.sessions.get_mut(*connection) {
                connections.push(*connection);
                let session = &mut connected.session;
                arrivals.push(session.take_in(engine, &mut self.state, &self.clock, data));
            }
        }
        prepare(engine, &mut self.state, &self.clock, &mut arrivals);
        for (id, arrival) in connections.into_iter().zip(arrivals) {
            if io.is_open(id) {
                self.serve(io, id, |session, engine, state, clock, output| {
                    session.run(engine, state, clock, arrival, output)
                });
            }
        }
    }

    fn received_direct(&mut self, io: &mut D, id: ConnectionId, count: usize) {
        self.serve(io, id, |session, engine, state, clock, output| {
            session.received_direct(engine, state, clock, count, output)
        });
    }

    fn end_of_input(&mut self, io: &mut D, id: ConnectionId) {
        match self.sessions.get_mut(id) {
            // As in Redis, what a pause holds dies with its client.
            Some(connected) if connected.session.is_held() => self.abandon(io, id),
            Some(connected) if connected.session.is_unfinished() => connected.input_ended = true,
            _ => io.close(id, Close::AfterFlush),
        }
    }

    fn hung_up(&mut self, io: &mut D, id: ConnectionId) {
        if let Some(connected) = self.sessions.get_mut(id)
            && connected.session.is_held()
        {
            self.abandon(io, id);
        }
    }

    fn sent(&mut self, io: &mut D, id: ConnectionId, remaining: usize) {
        // A client that is still taking its replies is not idle.
        if let Some(connected) = self.sessions.get_mut(id) {
            connected.active_ns = io.turn_started_ns();
            connected.session.set_active_ns(connected.active_ns);
            connected.session.set_unsent(remaining);
        }
    }

    fn closed(&mut self, io: &mut D, id: ConnectionId, _: CloseReason) {
        if let Some(mut connected) = self.sessions.remove(id) {
            if let Some(timer) = connected.wait_end.take() {
                io.cancel_timer(timer);
            }
            connected.session.leave(&self.shared.engine, &self.state);
            if self.shared.log.shows(Level::Verbose) {
                let line = connected.session.client().line(monotonic_ns());
                self.shared.log.verbose(format_args!(
                    "Client closed connection {}",
                    String::from_utf8_lossy(&line)
                ));
            }
            self.state.statistics().connected_clients.add(-1);
            self.forget_connection();
        }
        self.housekeeping.work_done();
    }

    fn released(
        &mut self,
        io: &mut D,
        id: ConnectionId,
        socket: OwnedFd,
        filter: Option<Box<dyn Filter>>,
    ) {
        let Some(mut connected) = self.sessions.remove(id) else {
            return;
        };
        if let Some(timer) = connected.wait_end.take() {
            io.cancel_timer(timer);
        }
        let crew = &self.shared.crew;
        self.state.statistics().connected_clients.add(-1);
        crew.worker(self.state.id()).connection_left();
        // Who was to have it may have stopped being active meanwhile.
        let to = match connected.leaving_for {
            Some(to) if to < crew.active() => crew.worker(to),
            _ => crew.least_loaded(),
        };
        to.hand_over(ToWorker::Moved(Box::new(Departed {
            socket,
            filter,
            connected,
        })));
        self.housekeeping.work_done();
    }

    fn timer(&mut self, io: &mut D, token: TimerToken) {
        if token == NEXT_TURN {
            let unfinished = std::mem::take(&mut self.unfinished);
            return self.go_on(io, unfinished);
        }
        if token == PAUSE_END {
            self.awaits_pause_end = false;
            let held = std::mem::take(&mut self.held);
            return self.go_on(io, held);
        }
        if token.0 >= FIRST_CONNECTION {
            let id = ConnectionId::from_bits(token.0);
            if let Some(connected) = self.sessions.get_mut(id) {
                connected.wait_end = None;
            }
            return self.end_wait(io, id);
        }
        let mut housekeeping = std::mem::take(&mut self.housekeeping);
        housekeeping.tick(self, io);
        self.housekeeping = housekeeping;
        // A key that expired may have ended somebody's wait.
        self.act();
    }

    fn woken(&mut self, io: &mut D) {
        // The first worker is woken whenever that changes.
        let active = self.shared.crew.active();
        let told = &self.shared.engine.active_workers;
        if told.load(Ordering::Relaxed) != active {
            told.store(active, Ordering::Relaxed);
        }
        let refused = self.shared.admission.take_refused();
        if refused > 0 {
            self.state
                .statistics()
                .connections_rejected
                .add(refused as i64);
        }
        for message in self.inbox.take() {
            match message {
                ToWorker::Connection(socket, peer) => self.welcome(io, socket, peer),
                ToWorker::Moved(departed) => self.take_over(io, *departed),
                ToWorker::Attend(record) => self.attend(io, &record),
                ToWorker::Give { to, count } => self.give(io, to, count),
                ToWorker::Stop => self.stopping = true,
            }
        }
        let pauses_ended = self.shared.engine.clients.pauses_ended();
        if pauses_ended != std::mem::replace(&mut self.pauses_seen, pauses_ended) {
            let held = std::mem::take(&mut self.held);
            self.go_on(io, held);
        }
        self.housekeeping.work_done();
    }

    fn turn_start(&mut self, io: &mut D) {
        self.turns.turn_began(io.turn_started_ns());
        self.state.turn_began(&self.clock);
    }

    fn turn_end(&mut self, io: &mut D) {
        let mut rounds = 0;
        while !self.own.is_empty() && rounds < ATTEND_ROUNDS {
            for record in std::mem::take(&mut self.own) {
                self.attend(io, &record);
            }
            rounds += 1;
        }
        for record in self.own.drain(..) {
            self.shared.crew.worker(self.state.id()).attend(record);
        }
        self.take_over_settings();
        self.housekeeping.arm(io, self.state.settings());
    }
}
