//! One connection's session: bytes in, bytes out.
//!
//! A session belongs to one worker at a time. It knows nothing of sockets: its owner hands it what was received, sends
//! what it wrote, and closes the connection when the session says so.

use std::collections::VecDeque;

use weft_resp::{Limits, OwnedArgs, Probe, ProtocolError, RequestParser, Source, Writer};
use weft_rope::Output;

use crate::action::Action;
use crate::blocking::{Outcome, UNBLOCKED};
use crate::client::{Client, Origin};
use crate::clients::ClientFlags;
use crate::clock::Clock;
use crate::config::OutputLimit;
use crate::dispatch::{self, Batch, Planned};
use crate::engine::{Engine, WorkerState};
use crate::output_watch::{self, OutputWatch};
use crate::step_times::Step;

/// How many requests of one connection are looked at ahead of their turn.
const BATCH_MAX: usize = 32;
/// So many bytes of replies a session makes at a time, a batch more at most: some hundred microseconds of copying. Then others
/// come first, and the replies can leave before they count as piled up.
const OUTPUT_SHARE: usize = 1 << 20;
/// The longest inline request in bytes, from Redis.
const INLINE_MAX: usize = 64 * 1024;

/// A connection's parser and client state.
pub struct Session {
    parser: RequestParser,
    client: Client,
    watch: OutputWatch,
    /// Complete requests may be waiting in the parser.
    unfinished: bool,
    /// Requests that a pause holds: they come before those in the parser.
    held: VecDeque<OwnedArgs>,
    /// What is wrong with the request behind those that are held.
    held_error: Option<ProtocolError>,
}

/// What has arrived on one connection: its first requests parsed, none run. Its session must run it before it takes in more.
pub struct Arrival<'a> {
    source: Source<'a>,
    batch: Box<Batch>,
    /// Whether more requests may remain behind the batch.
    parsed: Result<bool, ProtocolError>,
    /// The database the client had selected.
    database: usize,
}

/// Looks up the commands of all `arrivals`, finds where their keys live, and begins to load what is there. With a single
/// request there is nothing to gain from that.
pub fn prepare(
    engine: &Engine,
    worker: &mut WorkerState,
    clock: &dyn Clock,
    arrivals: &mut [Arrival<'_>],
) {
    worker.timer.start(clock);
    let requests: usize = arrivals
        .iter()
        .map(|arrival| arrival.batch.requests.len())
        .sum();
    count_batch(worker, requests);
    let gate = engine.keyspace.gate(worker.id()).enter();
    for arrival in &mut *arrivals {
        let Arrival {
            source,
            batch,
            database,
            ..
        } = arrival;
        batch.plan(engine, &gate, *database, source, requests > 1);
    }
    if requests > 1 {
        for arrival in arrivals {
            arrival
                .batch
                .prefetch_entries(engine, &gate, arrival.database);
        }
    }
    drop(gate);
    worker.timer.lap(clock, Step::Execute);
}

fn count_batch(worker: &WorkerState, requests: usize) {
    if requests > 0 {
        let statistics = worker.statistics();
        statistics.batches.add(1);
        statistics.batched_requests.add(requests as i64);
        if requests > 1 {
            statistics.prefetched_batches.add(1);
            statistics.prefetched_requests.add(requests as i64);
        }
    }
}

/// What the session's owner has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on receiving.
    Open,
    /// Requests are left, since enough replies were made for now. [`Session::go_on`] when others had their turn, and
    /// receive nothing until then.
    Unfinished,
    /// A pause holds the next request. [`Session::go_on`] when it is over, and receive nothing until then.
    Held,
    /// The last command waits. [`Session::go_on`] when [that is over](Session::wait_is_over), and receive nothing until then.
    Waiting,
    /// Send what was written, then close.
    Close,
    /// Close at once: replies pile up that the client does not take.
    Drop,
}

impl Session {
    /// A new connection's session. `id` is unique since the start.
    #[must_use]
    pub fn new(engine: &Engine, id: u64, origin: Origin) -> Self {
        Self {
            parser: RequestParser::new(),
            client: Client::new(&engine.clients, id, origin, engine.open_to_all()),
            watch: OutputWatch::default(),
            unfinished: false,
            held: VecDeque::new(),
            held_error: None,
        }
    }

    /// Worker number `worker` owns the session from now on and knows its connection as `connection`, on the socket
    /// `descriptor`. `now_ns` is on the scale of the engine's clock.
    pub fn settle(&mut self, worker: usize, connection: u64, descriptor: i32, now_ns: u64) {
        self.client
            .record()
            .settle(worker, connection, descriptor, now_ns);
    }

    /// The client's state.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// So many bytes of replies the client has not taken yet: to be told before anything is run.
    pub fn set_unsent(&mut self, bytes: usize) {
        self.client.unsent = bytes;
        self.client.record().set_unsent(bytes);
    }

    /// Bytes went in or out just now, on the scale of the engine's clock.
    pub fn set_active_ns(&mut self, now_ns: u64) {
        self.client.record().set_active_ns(now_ns);
    }

    /// Whether the client is to be cut off because of this many bytes of unsent replies, since they are too many or have been too many for
    /// too long. `now_ns` is on any scale that never goes back.
    pub fn output_exceeds(&mut self, worker: &mut WorkerState, unsent: usize, now_ns: u64) -> bool {
        let exceeds = self.watch.exceeds(output_limit(worker), unsent, now_ns);
        if exceeds {
            self.client.record().set_unsent(unsent);
            tell_of_output(worker, &self.client.line(now_ns), "closed");
        }
        exceeds
    }

    /// Whether unsent replies will be too many if nothing but time passes.
    #[must_use]
    pub const fn is_running_out(&self) -> bool {
        self.watch.is_running_out()
    }

    /// Where the next bytes should be received if a large argument is under way; otherwise anywhere.
    pub fn receive_target(&mut self) -> Option<&mut [u8]> {
        self.parser.large_target()
    }

    /// Whether another worker may go on with the session. Not while it is being closed, nor while requests are left or held,
    /// nor while lines are pushed to it, nor with a transaction. One that waits may.
    #[must_use]
    pub fn may_move(&self) -> bool {
        let held = !self.held.is_empty() || self.held_error.is_some();
        let transaction = self.client.in_multi() || self.client.is_watching();
        !self.client.closing()
            && !self.unfinished
            && !held
            && !self.client.is_monitor()
            && !transaction
    }

    /// Whether it may wait for ever for its client: such a session is not ended by `timeout`.
    #[must_use]
    pub fn may_idle(&self) -> bool {
        self.is_held() || self.client.is_monitor()
    }

    /// Appends what others have made for the client to `out`. Between replies only.
    pub fn take_pushes(&mut self, worker: &WorkerState, out: &mut Output) {
        let before = out.len();
        for push in self.client.record().take_pushes() {
            out.tail().extend_from_slice(&push);
        }
        let bytes = out.len() - before;
        worker.statistics().output_bytes.add(bytes as i64);
        self.client.record().count_output(bytes);
    }

    /// Takes bytes received and parses the first requests that are complete with them.
    pub fn take_in<'a>(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        data: &'a [u8],
    ) -> Arrival<'a> {
        worker.refresh_settings(engine);
        worker.statistics().input_bytes.add(data.len() as i64);
        self.client.record().count_input(data.len());
        self.parse(worker, clock, data)
    }

    fn parse<'a>(
        &mut self,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        data: &'a [u8],
    ) -> Arrival<'a> {
        worker.timer.start(clock);
        if !self.unfinished && !self.is_held() {
            self.client.arrived_ns = worker.turn_began_ns;
        }
        let source = self.parser.begin(data);
        let mut batch = worker.take_batch();
        let parsed = self.parse_batch(worker, &source, &mut batch);
        worker.timer.lap(clock, Step::Parse);
        Arrival {
            source,
            batch,
            parsed,
            database: self.client.database,
        }
    }

    fn parse_batch(
        &mut self,
        worker: &WorkerState,
        source: &Source<'_>,
        batch: &mut Batch,
    ) -> Result<bool, ProtocolError> {
        batch.requests.clear();
        if self.is_held() {
            // Their turn comes after those that are held.
            return Ok(true);
        }
        let (limits, most) = (self.limits(worker), self.batch_max());
        self.parser
            .parse(source, &limits, most, &mut batch.requests)
    }

    /// Runs all complete requests of what arrived, once it is [prepared](prepare), and appends their replies to `out`.
    pub fn run(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        arrival: Arrival<'_>,
        out: &mut Output,
    ) -> Verdict {
        let Arrival {
            source,
            mut batch,
            mut parsed,
            ..
        } = arrival;
        let before = out.len();
        let room = output_watch::hard_end(output_limit(worker)).saturating_sub(self.client.unsent);
        self.client.begin_batch(before, room, source.len());
        self.unfinished = false;
        let ticks = || clock.monotonic_ns();
        let probe = worker.timer.probe(&ticks);
        worker.timer.start(clock);
        while self.end_wait(engine, worker, out) {
            let served = if self.is_held() {
                self.run_held(engine, worker, clock, out, probe.as_ref());
                0
            } else {
                dispatch::run(
                    engine,
                    worker,
                    &mut self.client,
                    clock,
                    batch.planned(&source),
                    out,
                    probe.as_ref(),
                )
            };
            match parsed {
                _ if self.has_to_end(out) => break,
                _ if served < batch.requests.len() => {
                    self.hold(&batch, &source, served);
                    self.held_error = parsed.err();
                    break;
                }
                _ if self.is_held() => {
                    self.held_error = self.held_error.take().or(parsed.err());
                    self.note_held();
                    break;
                }
                Ok(true) if out.len() - before >= OUTPUT_SHARE => {
                    self.unfinished = true;
                    break;
                }
                Ok(true) => {
                    worker.timer.lap(clock, Step::Execute);
                    parsed = self.parse_batch(worker, &source, &mut batch);
                    worker.timer.lap(clock, Step::Parse);
                    let several = batch.requests.len() > 1;
                    count_batch(worker, batch.requests.len());
                    let database = self.client.database;
                    let gate = engine.keyspace.gate(worker.id()).enter();
                    batch.plan(engine, &gate, database, &source, several);
                    if several {
                        batch.prefetch_entries(engine, &gate, database);
                    }
                }
                Ok(false) => break,
                Err(error) => {
                    self.refuse(engine, worker, &error, out);
                    break;
                }
            }
        }
        worker.timer.lap(clock, Step::Execute);
        worker.timer.take_encoding_out(probe);
        worker.put_batch(batch);
        self.parser.end(source);
        worker
            .statistics()
            .output_bytes
            .add((out.len() - before) as i64);
        if self.client.record().is_doomed() {
            self.client.close_after_reply();
            return Verdict::Drop;
        }
        if out.len() >= self.client.output_end {
            self.client.publish(out.len(), 0);
            let line = self.client.line(clock.monotonic_ns());
            tell_of_output(worker, &line, "scheduled to be closed ASAP");
            out.clear();
            self.client.close_after_reply();
            return Verdict::Drop;
        }
        let verdict = self.verdict(worker, clock, out);
        self.client.end_batch(
            out.len(),
            self.parser.buffered_bytes(),
            self.parser.allocated_bytes(),
        );
        verdict
    }

    /// Whether the client gets nothing more run.
    fn has_to_end(&self, out: &Output) -> bool {
        self.client.closing()
            || out.len() >= self.client.output_end
            || self.client.record().is_doomed()
    }

    /// Keeps the requests of the batch from the one numbered `first` on.
    fn hold(&mut self, batch: &Batch, source: &Source<'_>, first: usize) {
        let left = batch.requests.iter(source).skip(first);
        self.held.extend(left.map(OwnedArgs::from));
        self.note_held();
    }

    fn note_held(&mut self) {
        let held = self.held.iter().map(OwnedArgs::args);
        let waits = self
            .client
            .waiting()
            .map(|waiting| waiting.wait.args.args());
        let bytes = held.chain(waits).map(|args| args.total_bytes());
        self.client.record().set_arguments(bytes.sum());
        let paused = !self.held.is_empty() && !self.client.is_waiting();
        self.client.set_flag(ClientFlags::HELD, paused);
    }

    /// Runs requests that a pause held, as far as it is over; then what was wrong behind them is told.
    fn run_held(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        out: &mut Output,
        probe: Option<&Probe<'_>>,
    ) {
        let requests = self.held.iter().map(OwnedArgs::args);
        let planned = requests.map(|args| (Planned::now(engine, args), args));
        let served = dispatch::run(engine, worker, &mut self.client, clock, planned, out, probe);
        self.held.drain(..served);
        self.note_held();
        if self.held.is_empty()
            && !self.client.is_waiting()
            && !self.has_to_end(out)
            && let Some(error) = self.held_error.take()
        {
            self.refuse(engine, worker, &error, out);
        }
    }

    /// Whether requests are held, by a pause or behind a command that waits.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.held.is_empty() || self.held_error.is_some() || self.client.is_waiting()
    }

    /// Deals with a wait that is over. False: there is one that is not.
    fn end_wait(&mut self, engine: &Engine, worker: &mut WorkerState, out: &mut Output) -> bool {
        match self.client.waiting() {
            None => return true,
            Some(waiting) if !waiting.is_over() => return false,
            Some(_) => {}
        }
        let Some(waiting) = self.client.end_waiting() else {
            return true;
        };
        dispatch::leave_queues(engine, worker.id(), &waiting);
        let wait = &waiting.wait;
        let mut reply = waiting.take_reply();
        let mut writer = Writer::new(&mut reply, wait.protocol);
        match wait.outcome() {
            Some(Outcome::Lapsed) => wait.lapsed.write(&mut writer),
            Some(Outcome::Refused) => {
                writer.error_bytes(UNBLOCKED);
                worker.commands.failed(wait.command.index);
                worker.count_error(engine, UNBLOCKED);
            }
            Some(Outcome::Served | Outcome::GivenUp) | None => {}
        }
        if !waiting.muted {
            out.append(&mut reply);
        }
        worker.count_waited(wait.command, waiting.took_ns);
        self.note_held();
        true
    }

    /// When the wait of the last command ends at the latest, on the scale of the engine's clock; none: it has no such limit.
    #[must_use]
    pub fn wait_deadline_ns(&self) -> Option<u64> {
        self.client.waiting()?.wait.deadline_ns
    }

    /// Whether the last command waited, and that is over: by data, on request, or since its time is up.
    #[must_use]
    pub fn wait_is_over(&self, now_ns: u64) -> bool {
        let Some(waiting) = self.client.waiting() else {
            return false;
        };
        if waiting.wait.deadline_ns.is_some_and(|at| at <= now_ns) {
            waiting.wait.claim(Outcome::Lapsed);
        }
        waiting.is_over()
    }

    /// The client is gone: from now on nothing is taken for it.
    pub fn give_up_waiting(&self) {
        self.client.give_up_waiting();
    }

    /// The connection is gone.
    pub fn leave(&mut self, engine: &Engine, worker: &WorkerState) {
        self.client.give_up_waiting();
        if let Some(waiting) = self.client.end_waiting() {
            dispatch::leave_queues(engine, worker.id(), &waiting);
        }
        let watched = self.client.take_watched();
        if !watched.is_empty() {
            dispatch::forget(engine, worker, &watched, self.client.watcher());
        }
    }

    /// Runs more of the requests that were left.
    pub fn go_on(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        out: &mut Output,
    ) -> Verdict {
        let mut arrival = self.take_in(engine, worker, clock, &[]);
        prepare(engine, worker, clock, std::slice::from_mut(&mut arrival));
        self.run(engine, worker, clock, arrival, out)
    }

    /// Whether requests are left.
    #[must_use]
    pub const fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// Takes in and runs all that was received on one connection alone.
    pub fn received(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        data: &[u8],
        out: &mut Output,
    ) -> Verdict {
        let mut arrival = self.take_in(engine, worker, clock, data);
        prepare(engine, worker, clock, std::slice::from_mut(&mut arrival));
        let mut before = out.len();
        let mut verdict = self.run(engine, worker, clock, arrival, out);
        while verdict == Verdict::Unfinished {
            self.client.unsent += out.len() - before;
            before = out.len();
            verdict = self.go_on(engine, worker, clock, out);
        }
        verdict
    }

    /// `count` bytes were received into the [receive target](Self::receive_target): runs what is complete with them.
    pub fn received_direct(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        count: usize,
        out: &mut Output,
    ) -> Verdict {
        worker.refresh_settings(engine);
        self.parser.large_filled(count);
        worker.statistics().input_bytes.add(count as i64);
        self.client.record().count_input(count);
        if self.parser.large_target().is_some() {
            let (buffered, allocated) =
                (self.parser.buffered_bytes(), self.parser.allocated_bytes());
            self.client.record().set_input(buffered, allocated);
            return self.verdict(worker, clock, out);
        }
        let mut arrival = self.parse(worker, clock, &[]);
        prepare(engine, worker, clock, std::slice::from_mut(&mut arrival));
        self.run(engine, worker, clock, arrival, out)
    }

    /// Before authentication the limits change with every command, so that requests are parsed one at a time.
    fn batch_max(&self) -> usize {
        if self.client.authenticated() {
            BATCH_MAX
        } else {
            1
        }
    }

    fn limits(&self, worker: &WorkerState) -> Limits {
        Limits {
            bulk_max: worker.settings().proto_max_bulk_len(),
            inline_max: INLINE_MAX,
            multibulk_max: i32::MAX as usize,
            authenticated: self.client.authenticated(),
        }
    }

    fn refuse(
        &mut self,
        engine: &Engine,
        worker: &WorkerState,
        error: &ProtocolError,
        out: &mut Output,
    ) {
        let text = [b"ERR ".as_slice(), &error.message()].concat();
        worker.count_error(engine, &text);
        if self.client.replies.are_wanted() {
            Writer::new(out, self.client.protocol).error_bytes(&text);
        }
        self.client.close_after_reply();
    }

    fn verdict(
        &mut self,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        out: &mut Output,
    ) -> Verdict {
        // What is queued counts as not yet finished, as in Redis.
        let buffered = self.parser.buffered_bytes() + self.client.queued_bytes();
        if buffered > worker.settings().client_query_buffer_limit() {
            worker.statistics().query_buffer_limit_disconnections.add(1);
            self.client
                .record()
                .set_input(buffered, self.parser.allocated_bytes());
            let line = self.client.line(clock.monotonic_ns());
            worker.actions.push(Action::Warn(format!(
                "Closing client that reached max query buffer length: {}",
                String::from_utf8_lossy(&line)
            )));
            out.clear();
            self.client.close_after_reply();
        }
        if self.client.closing() {
            Verdict::Close
        } else if self.client.is_waiting() {
            Verdict::Waiting
        } else if self.is_held() {
            Verdict::Held
        } else if self.unfinished {
            Verdict::Unfinished
        } else {
            Verdict::Open
        }
    }
}

/// In the words of Redis's line.
pub(crate) fn tell_of_output(worker: &mut WorkerState, line: &[u8], fate: &str) {
    worker
        .statistics()
        .output_buffer_limit_disconnections
        .add(1);
    worker.actions.push(Action::Warn(format!(
        "Client {} {fate} for overcoming of output buffer limits.",
        String::from_utf8_lossy(line)
    )));
}

/// Clients that monitor are of the first class too, the normal one, as in Redis; of the others there are none yet.
pub(crate) fn output_limit(worker: &WorkerState) -> &OutputLimit {
    let [limit, ..] = worker.settings().client_output_buffer_limits();
    limit
}
