//! The driver for epoll: readiness turned into completions.
//!
//! Every connection is registered once, edge-triggered, for input and hang-up; whether it is readable is remembered
//! here, so pausing, resuming and bounded shares cost no system call (in throughput, edges and levels measure the same).
//! Interest in output is registered when the kernel first refuses bytes and then stays.
//!
//! Invariants: a connection that is open, wants bytes, and is known to be readable, is in `receive_again` or about to be
//! received from; one with output it has not tried to send is in `outgoing`; one that ended is in `ended` once.

mod accept;
mod receive;
mod send;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use weft_rope::Output;

use crate::clock::monotonic_ns;
use crate::connections::Connections;
use crate::driver::{
    Close, CloseReason, ConnectionId, Driver, DriverOptions, GROUP_MAX, Handler, ListenerId,
    TimerId, TimerToken, TurnReport, TurnTimes,
};
use crate::filter::{Filter, Filtered};
use crate::listen::Listener;
use crate::timers::Timers;
use crate::timing::{self, SleepCost};
use crate::wake::{Bell, Waker};
use accept::Accepting;

/// Drives connections with epoll.
pub struct EpollDriver {
    epoll: OwnedFd,
    bell: Arc<Bell>,
    options: DriverOptions,
    connections: Connections<Connection>,
    listeners: Vec<Option<Accepting>>,
    /// The earliest `resume_at_ns` of a listener.
    accept_again_ns: Option<u64>,
    timers: Timers,
    events: Vec<Event>,
    /// The receive buffer, lent to the handler while it is told: room for a group and one more receive.
    buffer: Vec<u8>,
    /// Connections whose bytes wait in the buffer to be delivered together, and where those end; each once.
    group: ArrayVec<(ConnectionId, usize), GROUP_MAX>,
    /// What a filter made of the receive buffer.
    plain: Vec<u8>,
    /// Connections with output to try to send at the end of the turn, each once.
    outgoing: Vec<ConnectionId>,
    /// Readable connections whose share of a turn was used up, or that were resumed; each once.
    receive_again: Vec<ConnectionId>,
    /// Connections that are over and whose handler has to be told.
    ended: Vec<(ConnectionId, Ending)>,
    /// Empty outputs with a buffer, exchanged for full ones in `send`.
    spare_outputs: Vec<Output>,
    /// Memory for the next list of `outgoing` or `receive_again`.
    spare_list: Vec<ConnectionId>,
    /// Memory for a filtered connection's wire bytes, while it sends.
    spare_wire: Vec<u8>,
    spin_ns: u64,
    turn_started_ns: u64,
    /// The next turn is timed.
    timing: bool,
    sleep_cost: SleepCost,
    report: TurnReport,
}

struct Connection {
    /// None once it is over.
    socket: Option<OwnedFd>,
    state: State,
    output: Output,
    filter: Option<Box<Filtered>>,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// An edge said that bytes, or the end of them, may be waiting.
    readable: bool,
    /// The peer has ended its side, or an error is pending: receive until that shows.
    peer_ended: bool,
    /// Neither direction works any more; received bytes may be waiting.
    dead: bool,
    /// The end of input was reached and reported.
    input_ended: bool,
    paused: bool,
    hang_up_told: bool,
    in_receive_again: bool,
    in_outgoing: bool,
    /// Output was left after an attempt to send it: its progress is reported.
    behind: bool,
    /// The kernel has refused bytes: wait until it reports room.
    backed_up: bool,
    /// Output readiness is part of the registration.
    output_registered: bool,
    close_after_flush: bool,
    releasing: bool,
}

impl Connection {
    fn wants_input(&self) -> bool {
        let state = &self.state;
        if state.close_after_flush {
            // A filter in its handshake holds the last output back until it has heard from its peer.
            return self.filter.is_some() && !self.output.is_empty() && !state.input_ended;
        }
        !(state.paused || state.input_ended || state.releasing)
    }
}

enum Ending {
    Closed(CloseReason),
    Released(OwnedFd, Option<Box<dyn Filter>>),
}

/// A connection's event tag is its id, whose upper half is at least 1. A listener's is its number, which has no upper
/// half. This one's slot is no connection's.
const BELL_TAG: u64 = u64::MAX;

/// Outputs kept for `send` to exchange, each with a buffer of at most 64 KiB.
const SPARE_OUTPUTS: usize = 64;

const INPUT: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);
const INPUT_AND_OUTPUT: EventFlags = INPUT.union(EventFlags::OUT);

impl EpollDriver {
    /// A driver with nothing in it.
    pub fn new(options: DriverOptions) -> io::Result<EpollDriver> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = Bell::new()?;
        epoll::add(
            &epoll,
            bell.descriptor(),
            EventData::new_u64(BELL_TAG),
            EventFlags::IN | EventFlags::ET,
        )?;
        Ok(EpollDriver {
            epoll,
            bell,
            options,
            connections: Connections::new(),
            listeners: Vec::new(),
            accept_again_ns: None,
            timers: Timers::default(),
            events: Vec::with_capacity(options.events.max(1)),
            buffer: vec![0; 2 * options.receive_buffer.max(1)],
            group: ArrayVec::new(),
            plain: Vec::new(),
            outgoing: Vec::new(),
            receive_again: Vec::new(),
            ended: Vec::new(),
            spare_outputs: Vec::new(),
            spare_list: Vec::new(),
            spare_wire: Vec::new(),
            spin_ns: 0,
            turn_started_ns: monotonic_ns(),
            timing: false,
            sleep_cost: SleepCost::new(),
            report: TurnReport::default(),
        })
    }
}

impl Driver for EpollDriver {
    fn add_listener(&mut self, listener: Listener) -> io::Result<ListenerId> {
        let id = ListenerId(self.listeners.len() as u32);
        self.register_listener(id, &listener)?;
        self.listeners.push(Some(Accepting {
            listener,
            resume_at_ns: None,
        }));
        Ok(id)
    }

    fn remove_listener(&mut self, listener: ListenerId) -> Option<Listener> {
        let accepting = self.listeners.get_mut(listener.0 as usize)?.take()?;
        if accepting.resume_at_ns.is_none() {
            // The listener may live on elsewhere, so closing it would not end the registration. It was registered, so
            // this does not fail.
            let _ = epoll::delete(&self.epoll, accepting.listener.as_fd());
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
        let filtered = filter.is_some();
        let id = self.connections.insert(Connection {
            socket: None,
            state: State::default(),
            output: Output::new(),
            filter: filter.map(|filter| Box::new(Filtered::new(filter))),
        });
        if let Err(error) = epoll::add(
            &self.epoll,
            &socket,
            EventData::new_u64(id.to_bits()),
            INPUT,
        ) {
            self.connections.remove(id);
            return Err(error.into());
        }
        let connection = self.connections.find_mut(id).expect("just inserted");
        connection.socket = Some(socket);
        if filtered {
            self.plan_output(id);
        }
        Ok(id)
    }

    fn release(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && connection.socket.is_some()
            && !connection.state.close_after_flush
        {
            connection.state.releasing = true;
            // The end of the turn finds nothing left to send, now or later.
            self.plan_output(id);
        }
    }

    fn send(&mut self, id: ConnectionId, output: &mut Output) {
        let Some(connection) = self.connections.find_mut(id) else {
            return output.clear();
        };
        if connection.socket.is_none() || connection.state.close_after_flush {
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
        if !connection.state.backed_up {
            self.plan_output(id);
        }
    }

    fn pending_output(&self, id: ConnectionId) -> usize {
        match self.connections.find(id) {
            Some(connection) => {
                connection.output.len()
                    + connection
                        .filter
                        .as_ref()
                        .map_or(0, |filtered| filtered.unsent().len())
            }
            None => 0,
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
            if connection.state.readable {
                self.plan_receive(id);
            }
        }
    }

    fn close(&mut self, id: ConnectionId, close: Close) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        if connection.socket.is_none() {
            return;
        }
        match close {
            Close::Now => self.finish(id, CloseReason::Local),
            Close::AfterFlush => {
                connection.state.close_after_flush = true;
                let receives_on = connection.state.readable && connection.filter.is_some();
                if !connection.state.backed_up {
                    self.plan_output(id);
                }
                if receives_on {
                    self.plan_receive(id);
                }
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
        self.connections.find(id).is_some_and(|connection| {
            connection.socket.is_some() && !connection.state.close_after_flush
        })
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
        let mut events = std::mem::take(&mut self.events);
        let notified = match self.wait(&mut events, timeout) {
            Ok(notified) => notified,
            Err(error) => {
                self.events = events;
                return Err(error);
            }
        };
        self.report.events = events.len() as u32;
        handler.turn_start(self);
        let next_list = std::mem::take(&mut self.spare_list);
        let leftovers = std::mem::replace(&mut self.receive_again, next_list);

        if notified {
            handler.woken(self);
        }
        self.fire_timers(handler);
        for event in &events {
            let (tag, flags) = (event.data.u64(), event.flags);
            if tag == BELL_TAG {
                // `wait` has dealt with it.
            } else if tag <= u64::from(u32::MAX) {
                self.accept(handler, ListenerId(tag as u32));
            } else {
                self.connection_event(handler, ConnectionId::from_bits(tag), flags);
            }
        }
        events.clear();
        self.events = events;
        self.accept_again(handler);
        self.receive_leftovers(handler, leftovers);
        self.deliver_ended(handler);

        handler.turn_end(self);
        self.send_outgoing(handler);
        self.deliver_ended(handler);
        Ok(self.report)
    }
}

impl EpollDriver {
    /// Fills `events`, spinning and then sleeping if there is nothing else to do. True: the waker was used.
    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<bool> {
        let left_over =
            !(self.receive_again.is_empty() && self.outgoing.is_empty() && self.ended.is_empty());
        let mut patience_ns = match timeout {
            _ if left_over => 0,
            Some(timeout) => u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
            None => u64::MAX,
        };
        let mark_ns = timing::mark(&self.report);
        events.clear();
        if patience_ns > 0 && self.spin_ns > 0 && self.spin(events, patience_ns)? {
            patience_ns = 0;
        }
        let mut fell_asleep_ns = 0;
        if patience_ns > 0 {
            fell_asleep_ns = monotonic_ns();
            if let Some(deadline) = self.next_deadline_ns() {
                patience_ns = patience_ns.min(deadline.saturating_sub(fell_asleep_ns));
            }
        }
        let sleeps = patience_ns > 0 && self.bell.flag.prepare_sleep();
        let measured = sleeps && self.report.times.is_some();
        let cost_mark_ns = if measured { self.sleep_cost.mark() } else { 0 };
        let result = if events.is_empty() {
            let patience = if sleeps { patience_ns } else { 0 };
            wait_for_events(&self.epoll, events, patience)
        } else {
            Ok(())
        };
        if measured {
            self.sleep_cost.measured_since(cost_mark_ns);
        }
        let notified = self.bell.flag.wake_up();
        self.turn_started_ns = monotonic_ns();
        if sleeps {
            self.report.asleep_ns = self
                .sleep_cost
                .sleep_in(self.turn_started_ns - fell_asleep_ns);
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

    /// Looks for events again and again, for at most the spinning time. True: there is something to do.
    fn spin(&self, events: &mut Vec<Event>, patience_ns: u64) -> io::Result<bool> {
        let deadline_ns = self.next_deadline_ns().unwrap_or(u64::MAX);
        let mut now_ns = monotonic_ns();
        let end_ns = now_ns.saturating_add(self.spin_ns.min(patience_ns));
        while now_ns < end_ns {
            wait_for_events(&self.epoll, events, 0)?;
            if !events.is_empty() || self.bell.flag.is_notified() || deadline_ns <= now_ns {
                return Ok(true);
            }
            std::hint::spin_loop();
            now_ns = monotonic_ns();
        }
        Ok(false)
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        [self.timers.next_deadline_ns(), self.accept_again_ns]
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

    fn connection_event<H: Handler<Self>>(
        &mut self,
        handler: &mut H,
        id: ConnectionId,
        flags: EventFlags,
    ) {
        // An event that was reported together with the one whose callback ended the connection finds nothing here.
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let state = &mut connection.state;
        let input = flags
            .intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        state.readable |= input;
        state.peer_ended |= flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        state.dead |= flags.contains(EventFlags::HUP);
        let shared_turn = state.in_receive_again;
        if state.output_registered
            && flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR)
        {
            self.writable(handler, id, !input);
        }
        // One that is also left over from the last turn gets its share there.
        if input && !shared_turn {
            self.receive(handler, id);
        }
    }

    /// Takes the connection down and notes the handler's `closed`.
    fn finish(&mut self, id: ConnectionId, reason: CloseReason) {
        let Some(connection) = self.connections.find_mut(id) else {
            return;
        };
        let Some(socket) = connection.socket.take() else {
            return;
        };
        connection.output = Output::new();
        connection.filter = None;
        // Closing ends the registration: nobody else holds this descriptor.
        drop(socket);
        self.ended.push((id, Ending::Closed(reason)));
    }

    fn deliver_ended<H: Handler<Self>>(&mut self, handler: &mut H) {
        if self.ended.is_empty() {
            return;
        }
        // What ends during these callbacks is told in the next round, so that the turn stays finite.
        for (id, ending) in std::mem::take(&mut self.ended) {
            self.connections.remove(id);
            match ending {
                Ending::Closed(reason) => handler.closed(self, id, reason),
                Ending::Released(socket, filter) => handler.released(self, id, socket, filter),
            }
        }
    }
}

/// Fills `events`, waiting for the first at most `patience_ns` (`u64::MAX`: for ever). An interruption is no event.
fn wait_for_events(epoll: &OwnedFd, events: &mut Vec<Event>, patience_ns: u64) -> io::Result<()> {
    let patience = match patience_ns {
        u64::MAX => None,
        // The system call waits in milliseconds and this is rounded up to them, so that it never returns early.
        _ => Some(Timespec {
            tv_sec: (patience_ns / 1_000_000_000).min(PATIENCE_SECONDS_MAX) as i64,
            tv_nsec: (patience_ns % 1_000_000_000) as i64,
        }),
    };
    match epoll::wait(epoll, spare_capacity(events), patience.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The longest wait asked of the system call, whose milliseconds are 32 bits wide. The caller just waits again.
const PATIENCE_SECONDS_MAX: u64 = 1_000_000;
