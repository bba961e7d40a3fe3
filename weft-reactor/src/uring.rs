//! The driver for io_uring: operations handed to the kernel, completions handed out.
//!
//! Each open connection has a multishot receive in flight, which fills buffers of the driver's; pausing leaves it there
//! until bytes come that nobody wants yet. What a turn sends is queued at its end and leaves with one system call, which
//! also brings what has arrived meanwhile: a busy turn makes one call, and a second one only to sleep. A few sends leave
//! with the call that sleeps, if the next turn follows at once.
//!
//! Invariants: a connection with something to hand out, that wants it, is in `receive_again` or about to be served; one
//! with something to start (a send, a receive, a watch) is in `outgoing` or `starved`; one that ended is in `ended` once,
//! when nothing of it is in flight, and only then is its socket closed.

mod accept;
#[allow(unsafe_code, reason = "memory that the kernel fills")]
mod buffers;
mod doubt;
mod receive;
#[allow(unsafe_code, reason = "what the kernel reads and writes on its own")]
mod ring;
mod send;
mod tag;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use weft_rope::Output;

use crate::clock::monotonic_ns;
use crate::connections::Connections;
use crate::driver::{
    Close, CloseReason, ConnectionId, Driver, DriverOptions, Handler, ListenerId, TimerId,
    TimerToken, TurnReport, TurnTimes,
};
use crate::filter::{Filter, Filtered};
use crate::listen::Listener;
use crate::timers::Timers;
use crate::timing::{self, SendCost, SleepCost};
use crate::wake::{Bell, Waker};
use accept::Accepting;
use buffers::Buffer;
use doubt::Doubts;
use receive::{End, Piece};
use ring::{Completion, Ring};
use tag::Operation;

/// Drives connections with io_uring. Belongs to the thread that made it.
pub struct UringDriver {
    // First: its operations end before anything else goes.
    ring: Ring,
    bell: Arc<Bell>,
    options: DriverOptions,
    connections: Connections<Connection>,
    listeners: Vec<Option<Accepting>>,
    /// The earliest `resume_at_ns` of a listener.
    accept_again_ns: Option<u64>,
    timers: Timers,
    /// Collected and not yet looked at.
    arrived: VecDeque<Completion>,
    /// Received in this pass and not yet handed out: distinct connections whose bytes go out together.
    group: Vec<(ConnectionId, Buffer)>,
    /// What a filter made of received bytes.
    plain: Vec<u8>,
    /// Connections with something to start at the end of the turn, each once.
    outgoing: Vec<ConnectionId>,
    /// Connections with something left to hand out, each once.
    receive_again: Vec<ConnectionId>,
    /// Connections whose receive found no buffer, each once, the longest waiting first.
    starved: VecDeque<ConnectionId>,
    /// Connections whose end may have gone by.
    doubts: Doubts,
    /// Connections that are over, with nothing in flight, whose handler has to be told.
    ended: Vec<ConnectionId>,
    /// Empty outputs with a buffer, exchanged for full ones in `send`.
    spare_outputs: Vec<Output>,
    /// Memory for the next list of `outgoing`, `receive_again` or `ended`.
    spare_list: Vec<ConnectionId>,
    /// Memory for a filtered connection's wire bytes.
    spare_wire: Vec<u8>,
    spin_ns: u64,
    turn_started_ns: u64,
    /// Counts turns, to tell the shares of one from those of the next.
    turn: u32,
    /// The next turn is timed.
    timing: bool,
    sleep_cost: SleepCost,
    send_cost: SendCost,
    /// Sends queued that the next call completes: small ones to open connections whose sockets had room.
    prompt_sends: usize,
    report: TurnReport,
}

struct Connection {
    socket: OwnedFd,
    phase: Phase,
    state: State,
    /// Received and not yet handed out.
    input: VecDeque<Piece>,
    /// What comes after `input`, once it is known.
    end: Option<End>,
    /// Queued and not in flight.
    output: Output,
    filter: Option<Box<Wired>>,
    receive: Flow,
    watch: Flow,
    /// The send in flight.
    sending: Option<u32>,
    /// Bytes of the output in flight.
    sending_bytes: usize,
    /// The turn of which `share` and `direct_share` speak.
    share_of: u32,
    /// Bytes handed out in this turn.
    share: usize,
    /// Bytes put into the session's own memory in this turn.
    direct_share: usize,
}

/// A filter, and wire bytes that the socket did not take at once.
struct Wired {
    filtered: Filtered,
    wire: Output,
}

/// What is to become of a connection.
///
/// ```text
///  Open ---release--> Releasing --nothing held, queued or in flight--> Ended (released)
///    \                   |
///     \--close after flush--> Flushing --nothing queued or in flight--> Ended (closed)
///
///  any but Ended ---close now, an error--> Ended (closed)
///  Ended ---nothing in flight--> told: `closed` or `released`, and gone
/// ```
enum Phase {
    Open,
    Releasing,
    /// Receives nothing more, unless its filter needs that to send.
    Flushing,
    Ended(Ending),
}

enum Ending {
    Closed(CloseReason),
    Released(Option<Box<dyn Filter>>),
}

/// A multishot operation.
///
/// ```text
///  Still --start--> Going --cancel--> Ceasing
///    ^----- the last completion ------/  (of Going too)
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Flow {
    #[default]
    Still,
    Going,
    Ceasing,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// The peer has ended its side, or an error is pending.
    peer_ended: bool,
    /// Neither direction works any more.
    dead: bool,
    /// The end of input was reached and reported.
    input_ended: bool,
    paused: bool,
    hang_up_told: bool,
    in_receive_again: bool,
    in_outgoing: bool,
    in_starved: bool,
    in_doubt: bool,
    in_group: bool,
    in_ended: bool,
    /// Output was left after an attempt to send it: its progress is reported.
    behind: bool,
}

impl Connection {
    fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Releasing)
    }

    fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Whether what has been received is handed out.
    fn wants_input(&self) -> bool {
        match self.phase {
            Phase::Open => !(self.state.paused || self.state.input_ended),
            // What the last receives brought can be handed out nowhere else.
            Phase::Releasing => !self.state.input_ended,
            // A filter in its handshake holds the last output back until it has heard from its peer.
            Phase::Flushing => {
                self.filter.is_some() && !self.output.is_empty() && !self.state.input_ended
            }
            Phase::Ended(_) => false,
        }
    }

    /// Bytes to send that are not in flight.
    fn queued(&self) -> usize {
        self.output.len()
            + self
                .filter
                .as_ref()
                .map_or(0, |wired| wired.wire.len() + wired.filtered.unsent().len())
    }

    fn in_flight(&self) -> bool {
        self.receive != Flow::Still || self.watch != Flow::Still || self.sending.is_some()
    }
}

/// Sends that leave with the next wait. If there are more, something else has arrived when they have left.
const RIDERS_MAX: usize = 4;

/// The longest of them in bytes: a socket that had room takes it whole, unless its peer has stopped reading.
const RIDER_BYTES: usize = 16 << 10;

/// How long a wait lasts that began with sends. It ends when more has completed than those; but if one of them found its
/// socket full, the rest of it must not wait for others. Beyond the kernel's next tick: a timer before that costs more than
/// the call that is saved.
const RIDE_NS: u64 = 20_000_000;

/// Outputs kept for `send` to exchange, each with a buffer of at most 64 KiB.
const SPARE_OUTPUTS: usize = 64;

impl UringDriver {
    /// A driver with nothing in it. An error says what this kernel lacks or forbids; another driver will do then.
    pub fn new(options: DriverOptions) -> io::Result<UringDriver> {
        let mut ring = Ring::new(options.events)?;
        let bell = Bell::new()?;
        ring.hear(bell.descriptor());
        // Now, so that whatever the kernel has against it shows here.
        ring.submit_and_look().map_err(ring::refusal)?;
        Ok(UringDriver {
            ring,
            bell,
            options: DriverOptions {
                receive_buffer: options.receive_buffer.max(1),
                direct_share: options.direct_share.max(1),
                events: options.events.max(1),
                ..options
            },
            connections: Connections::new(),
            listeners: Vec::new(),
            accept_again_ns: None,
            timers: Timers::default(),
            arrived: VecDeque::new(),
            group: Vec::new(),
            plain: Vec::new(),
            outgoing: Vec::new(),
            receive_again: Vec::new(),
            starved: VecDeque::new(),
            doubts: Doubts::default(),
            ended: Vec::new(),
            spare_outputs: Vec::new(),
            spare_list: Vec::new(),
            spare_wire: Vec::new(),
            spin_ns: 0,
            turn_started_ns: monotonic_ns(),
            turn: 0,
            timing: false,
            sleep_cost: SleepCost::new(),
            send_cost: SendCost::default(),
            prompt_sends: 0,
            report: TurnReport::default(),
        })
    }

    /// Whether a driver can be made in this process, and if not, why: a text for the log.
    pub fn probe() -> io::Result<()> {
        UringDriver::new(DriverOptions {
            receive_buffer: 1,
            direct_share: 1,
            events: 1,
            keeps_turning: false,
        })
        .map(drop)
    }
}

impl Driver for UringDriver {
    fn add_listener(&mut self, listener: Listener) -> io::Result<ListenerId> {
        let id = ListenerId(self.listeners.len() as u32);
        self.listeners.push(Some(Accepting::new(listener)));
        self.poll_listener(id);
        Ok(id)
    }

    fn remove_listener(&mut self, listener: ListenerId) -> Option<Listener> {
        let accepting = self.listeners.get_mut(listener.0 as usize)?.take()?;
        if accepting.polled {
            // The poll keeps the socket alive, wherever the listener goes.
            self.stop_polling(listener);
        }
        Some(accepting.listener)
    }

    fn listener(&self, listener: ListenerId) -> Option<&Listener> {
        Some(&self.listeners.get(listener.0 as usize)?.as_ref()?.listener)
    }

    fn adopt(
        &mut self,
        socket: OwnedFd,
        filter: Option<Box<dyn Filter>>,
    ) -> io::Result<ConnectionId> {
        if self.connections.len() >= tag::NUMBERS {
            return Err(Errno::MFILE.into());
        }
        let id = self.connections.insert(Connection {
            socket,
            phase: Phase::Open,
            state: State::default(),
            input: VecDeque::new(),
            end: None,
            output: Output::new(),
            filter: filter.map(|filter| {
                Box::new(Wired {
                    filtered: Filtered::new(filter),
                    wire: Output::new(),
                })
            }),
            receive: Flow::Still,
            watch: Flow::Still,
            sending: None,
            sending_bytes: 0,
            share_of: 0,
            share: 0,
            direct_share: 0,
        });
        self.plan(id);
        Ok(id)
    }

    fn release(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && matches!(connection.phase, Phase::Open)
        {
            connection.phase = Phase::Releasing;
            self.stop_receiving(id);
            self.plan(id);
            self.plan_receive(id);
        }
    }

    fn send(&mut self, id: ConnectionId, output: &mut Output) {
        let Some(connection) = self.connections.find_mut(id) else {
            return output.clear();
        };
        if !connection.is_open() {
            return output.clear();
        }
        if output.is_empty() {
            return;
        }
        if connection.output.is_empty()
            && let Some(spare) = self.spare_outputs.pop()
        {
            connection.output = spare;
        }
        connection.output.append(output);
        if connection.sending.is_none() {
            self.plan(id);
        }
    }

    fn pending_output(&self, id: ConnectionId) -> usize {
        match self.connections.find(id) {
            Some(connection) if !connection.has_ended() => {
                connection.queued() + connection.sending_bytes
            }
            _ => 0,
        }
    }

    fn pause_receive(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id) {
            connection.state.paused = true;
        }
    }

    fn resume_receive(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && connection.state.paused
        {
            connection.state.paused = false;
            if connection.input.is_empty() && connection.end.is_none() {
                self.plan(id);
            } else {
                self.plan_receive(id);
            }
        }
    }

    fn close(&mut self, id: ConnectionId, close: Close) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        if connection.has_ended() {
            return;
        }
        match close {
            Close::Now => self.finish(id, CloseReason::Local),
            Close::AfterFlush => {
                connection.phase = Phase::Flushing;
                if connection.filter.is_some() {
                    self.plan_receive(id);
                } else {
                    self.stop_receiving(id);
                    self.drop_input(id);
                }
                self.plan(id);
            }
        }
    }

    fn arm_timer(&mut self, deadline_ns: u64, token: TimerToken) -> TimerId {
        self.timers.arm(deadline_ns, token)
    }

    fn cancel_timer(&mut self, timer: TimerId) -> bool {
        self.timers.cancel(timer)
    }

    fn turn_started_ns(&self) -> u64 {
        self.turn_started_ns
    }

    fn connections(&self) -> usize {
        self.connections.len()
    }

    fn is_open(&self, id: ConnectionId) -> bool {
        self.connections.find(id).is_some_and(Connection::is_open)
    }

    fn time_next_turn(&mut self) {
        self.timing = true;
    }

    fn set_spin(&mut self, spin: Duration) {
        self.spin_ns = u64::try_from(spin.as_nanos()).unwrap_or(u64::MAX);
    }

    fn waker(&self) -> Waker {
        self.bell.waker()
    }

    fn turn<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        timeout: Option<Duration>,
    ) -> io::Result<TurnReport> {
        self.report = TurnReport {
            times: std::mem::take(&mut self.timing).then(TurnTimes::default),
            ..TurnReport::default()
        };
        self.turn = self.turn.wrapping_add(1);
        if self.report.times.is_some() && self.ring.has_submissions() {
            // What the last turn left is not this turn's work.
            self.prompt_sends = 0;
            self.ring.submit_and_look()?;
            self.ring.collect(&mut self.arrived);
            self.complete_sends(handler);
        }
        let notified = self.wait(timeout)?;
        handler.turn_start(self);
        let next_list = std::mem::take(&mut self.spare_list);
        let leftovers = std::mem::replace(&mut self.receive_again, next_list);

        if notified {
            handler.woken(self);
        }
        self.fire_timers(handler);
        // More may come to the end meanwhile: a listener that is removed waits for its poll.
        for _ in 0..self.arrived.len().min(self.options.events) {
            if let Some(completion) = self.arrived.pop_front() {
                self.report.events += 1;
                self.complete(handler, completion);
            }
        }
        self.deliver_group(handler);
        self.accept_again();
        self.receive_leftovers(handler, leftovers);
        self.settle_doubts();
        self.deliver_ended(handler);

        handler.turn_end(self);
        self.start_outgoing();
        self.feed_starved();
        if self.ring.has_submissions() && !self.may_leave_later() {
            self.submit()?;
            self.complete_sends(handler);
        }
        self.deliver_ended(handler);
        Ok(self.report)
    }
}

impl UringDriver {
    /// Whether what is queued may leave with the next turn's wait.
    fn may_leave_later(&self) -> bool {
        self.options.keeps_turning
            && (1..=RIDERS_MAX).contains(&self.prompt_sends)
            && self.arrived.is_empty()
            && self.report.times.is_none()
    }

    /// Collects what has arrived, spinning and then sleeping if there is nothing else to do. True: the waker was used.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let left_over = !(self.arrived.is_empty()
            && self.receive_again.is_empty()
            && self.outgoing.is_empty()
            && self.starved.is_empty()
            && self.ended.is_empty());
        let mut patience_ns = match timeout {
            _ if left_over => 0,
            Some(timeout) => u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
            None => u64::MAX,
        };
        let mark_ns = timing::mark(&self.report);
        if patience_ns > 0 && self.spin_ns > 0 && self.spin(patience_ns)? {
            patience_ns = 0;
        }
        let mut fell_asleep_ns = 0;
        if patience_ns > 0 {
            fell_asleep_ns = monotonic_ns();
            if let Some(deadline) = self.next_deadline_ns() {
                patience_ns = patience_ns.min(deadline.saturating_sub(fell_asleep_ns));
            }
        }
        let riders = std::mem::take(&mut self.prompt_sends);
        if riders > 0 {
            patience_ns = patience_ns.min(RIDE_NS);
        }
        let sleeps = patience_ns > 0 && !self.ring.has_news() && self.bell.flag.prepare_sleep();
        let measured = sleeps && self.report.times.is_some();
        let cost_mark_ns = if measured { self.sleep_cost.mark() } else { 0 };
        let result = if sleeps {
            self.ring.submit_and_wait(1 + riders, patience_ns)
        } else if self.arrived.is_empty() || self.ring.has_submissions() {
            self.ring.submit_and_look()
        } else {
            // The last turn's sends have brought these along.
            Ok(())
        };
        if measured {
            self.sleep_cost.measured_since(cost_mark_ns);
        }
        self.ring.collect(&mut self.arrived);
        let notified = self.bell.flag.wake_up();
        self.turn_started_ns = monotonic_ns();
        if sleeps {
            self.report.asleep_ns = self
                .sleep_cost
                .sleep_in(self.turn_started_ns - fell_asleep_ns)
                .saturating_sub(self.send_cost.of(riders));
        }
        if let Some(times) = &mut self.report.times {
            times.read_ns = self.turn_started_ns - mark_ns - self.report.asleep_ns;
        }
        match result {
            Ok(()) => Ok(notified),
            Err(error) => {
                if notified {
                    // Told again next time.
                    self.bell.flag.notify();
                }
                Err(error)
            }
        }
    }

    /// Looks for completions again and again, for at most the spinning time. True: there is something to do.
    fn spin(&mut self, patience_ns: u64) -> io::Result<bool> {
        if self.ring.has_submissions() {
            self.prompt_sends = 0;
            self.ring.submit_and_look()?;
            self.ring.collect(&mut self.arrived);
        }
        let deadline_ns = self.next_deadline_ns().unwrap_or(u64::MAX);
        let mut now_ns = monotonic_ns();
        let end_ns = now_ns.saturating_add(self.spin_ns.min(patience_ns));
        while now_ns < end_ns {
            if !self.arrived.is_empty()
                || self.ring.has_news()
                || self.bell.flag.is_notified()
                || deadline_ns <= now_ns
            {
                return Ok(true);
            }
            std::hint::spin_loop();
            now_ns = monotonic_ns();
        }
        Ok(false)
    }

    /// Hands over what the turn has queued, and collects what that and the kernel's own work have completed.
    fn submit(&mut self) -> io::Result<()> {
        let sends = std::mem::take(&mut self.prompt_sends);
        if self.report.times.is_some() {
            // Apart, so that sending and receiving can be told apart.
            let mark_ns = timing::mark(&self.report);
            self.ring.submit()?;
            let sent_ns = timing::count_write(&mut self.report, mark_ns);
            self.send_cost.note(sent_ns, sends);
            let mark_ns = timing::mark(&self.report);
            self.ring.submit_and_look()?;
            timing::count_read(&mut self.report, mark_ns);
        } else {
            self.ring.submit_and_look()?;
        }
        self.ring.collect(&mut self.arrived);
        Ok(())
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        [
            self.timers.next_deadline_ns(),
            self.accept_again_ns,
            self.doubts.due_ns,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn fire_timers<H: Handler<Self>>(&mut self, handler: &mut H) {
        let horizon = self.timers.horizon();
        while let Some(token) = self.timers.pop_due(self.turn_started_ns, horizon) {
            handler.timer(self, token);
        }
    }

    fn complete<H: Handler<Self>>(&mut self, handler: &mut H, completion: Completion) {
        match completion.operation {
            Operation::Receive(id) => self.received(handler, id, completion),
            Operation::Send(flight) => self.sent(handler, flight, completion.outcome()),
            Operation::Watch(id) => self.watched(handler, id, &completion),
            Operation::Listener(id) => {
                self.deliver_group(handler);
                self.polled(handler, id, completion.outcome());
            }
            Operation::Bell => {
                // `wait` has dealt with the wake-up itself.
                if !completion.more {
                    self.ring.hear(self.bell.descriptor());
                }
            }
            Operation::Cancel => {}
        }
    }

    /// Notes that the end of the turn may have something to start for this connection.
    fn plan(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && !connection.state.in_outgoing
        {
            connection.state.in_outgoing = true;
            self.outgoing.push(id);
        }
    }

    /// Starts what connections have waiting. Here, and not as each callback returns: no byte leaves before `turn_end`, and
    /// all of them leave together.
    fn start_outgoing(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        let next_list = std::mem::take(&mut self.spare_list);
        let mut outgoing = std::mem::replace(&mut self.outgoing, next_list);
        for id in outgoing.drain(..) {
            if let Some(connection) = self.connections.find_mut(id) {
                connection.state.in_outgoing = false;
                self.flush(id);
                self.start_input(id);
            }
        }
        self.spare_list = outgoing;
    }

    /// Ends the connection and has what is in flight cancelled.
    fn finish(&mut self, id: ConnectionId, reason: CloseReason) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        if connection.has_ended() {
            return;
        }
        connection.phase = Phase::Ended(Ending::Closed(reason));
        connection.output = Output::new();
        connection.filter = None;
        if let Some(flight) = connection.sending {
            self.ring.cancel(Operation::Send(flight));
        }
        self.stop_receiving(id);
        self.drop_input(id);
        self.conclude(id);
    }

    /// Looks whether nothing is left that the end of the connection waits for, and ends it then.
    fn conclude(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        match connection.phase {
            Phase::Open => {}
            Phase::Flushing => {
                let said_goodbye = connection
                    .filter
                    .as_ref()
                    .is_none_or(|wired| wired.filtered.finished);
                if connection.queued() > 0 || connection.sending.is_some() || !said_goodbye {
                    return;
                }
                if connection.in_flight() {
                    return self.stop_receiving(id);
                }
                if !connection.state.input_ended {
                    send::discard_input(&connection.socket);
                }
                self.finish_orderly(id);
            }
            Phase::Releasing => {
                let holds = connection.state.in_group || !connection.input.is_empty();
                if holds || connection.queued() > 0 || connection.in_flight() {
                    return;
                }
                let filter = connection.filter.take().map(|wired| wired.filtered.filter);
                connection.phase = Phase::Ended(Ending::Released(filter));
                self.conclude(id);
            }
            Phase::Ended(_) => {
                if !connection.in_flight() && !connection.state.in_ended {
                    connection.state.in_ended = true;
                    self.ended.push(id);
                }
            }
        }
    }

    fn deliver_ended<H: Handler<Self>>(&mut self, handler: &mut H) {
        if self.ended.is_empty() {
            return;
        }
        // What ends during these callbacks is told in the next round, so that the turn stays finite.
        let next_list = std::mem::take(&mut self.spare_list);
        let mut ended = std::mem::replace(&mut self.ended, next_list);
        for id in ended.drain(..) {
            let Some(connection) = self.connections.remove(id) else {
                continue;
            };
            match connection.phase {
                Phase::Ended(Ending::Released(filter)) => {
                    handler.released(self, id, connection.socket, filter);
                }
                Phase::Ended(Ending::Closed(reason)) => {
                    drop(connection.socket);
                    handler.closed(self, id, reason);
                }
                _ => unreachable!("only what has ended is in this list"),
            }
        }
        self.spare_list = ended;
    }

    /// Ends a connection whose end was asked for: by this side, or by the peer if it was first.
    fn finish_orderly(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.find(id) else {
            return;
        };
        let local = matches!(connection.phase, Phase::Flushing) && !connection.state.input_ended;
        let reason = if local {
            CloseReason::Local
        } else {
            CloseReason::Peer
        };
        self.finish(id, reason);
    }

    /// The system reported an error on the connection. One that was closing, or whose peer had ended, ends as such.
    fn fail(&mut self, id: ConnectionId, error: io::Error) {
        let Some(connection) = self.connections.find(id) else {
            return;
        };
        if matches!(connection.phase, Phase::Flushing) || connection.state.input_ended {
            self.finish_orderly(id);
        } else {
            self.finish(id, CloseReason::Error(error));
        }
    }
}

impl Drop for UringDriver {
    /// Has everything in flight cancelled, so that the ring can see it end.
    fn drop(&mut self) {
        let ids: Vec<ConnectionId> = self.connections.ids().collect();
        for id in ids {
            self.stop_receiving(id);
            if let Some(connection) = self.connections.find(id)
                && let Some(flight) = connection.sending
            {
                self.ring.cancel(Operation::Send(flight));
            }
        }
        for (number, accepting) in self.listeners.iter().enumerate() {
            if accepting.as_ref().is_some_and(|it| it.polled) {
                self.ring
                    .cancel(Operation::Listener(ListenerId(number as u32)));
            }
        }
        self.ring.cancel(Operation::Bell);
    }
}
