//! Running a batch of parsed requests: look up, hash and prefetch all, then latch, execute and encode one by one.

use std::sync::Arc;

use smallvec::SmallVec;
use weft_keyspace::{GateGuard, Position};
use weft_resp::{Args, Probe, Requests, Writer};
use weft_rope::Output;

use super::admit::{Refusal, admit};
use super::context::{Budget, Context, Key, Progress, Steps};
use super::serve::{Served, hand_over, has_steps, serve};
use super::unit::Unit;
use crate::action::Action;
use crate::blocking::{Place, Wait, Waiting, Wish};
use crate::client::Client;
use crate::clients::{ClientFlags, ClientRecord, monitors};
use crate::clock::Clock;
use crate::command::{Categories, CommandRow, Flags, KeyFlags, Numbered};
use crate::engine::{Engine, WorkerState};
use crate::error::CommandError;
use crate::latency::{LatencyEvent, LatencySample};
use crate::slow_log::SlowCommand;
use crate::{output_watch, session};

/// The most commands that share a reading of the clock.
const TOGETHER_MAX: u64 = 8;

/// The most arguments of such a command, and the most bytes of one that is short only if they are few.
const TOGETHER_ARGUMENTS_MAX: usize = 8;
const TOGETHER_BYTES_MAX: usize = 4096;

/// Readings are shared only if nobody wants to know of what takes less than this, in nanoseconds.
const TOGETHER_NOTABLE_NS: u64 = 1_000_000;

/// Each round finds what those newly latched lead to. After so many, the command gets the keyspace alone.
const REACH_ROUNDS: usize = 4;

/// So much more than usual, in nanoseconds, is not spread over the commands that share a reading.
const UNUSUAL_NS: u64 = 1_000;

/// A request that has been looked at ahead of its turn.
#[derive(Clone, Copy)]
pub(crate) struct Planned {
    /// The command, a container's subcommand not yet resolved; none if the name is unknown.
    command: Option<Numbered>,
    /// Where its key lives, if it has just one in a fixed place.
    pub(super) position: Option<Position>,
    /// The next request is known, and is of the same command, with as many arguments.
    next_is_alike: bool,
}

impl Planned {
    /// Of a request whose turn it is.
    pub(crate) fn now(engine: &Engine, args: Args<'_>) -> Self {
        let command = args
            .get(0)
            .and_then(|name| engine.commands.find_numbered(name));
        let key = command
            .map(|command| command.row)
            .and_then(CommandRow::single_key)
            .and_then(|at| args.get(at));
        let position = key.map(|key| engine.keyspace.position(key));
        Self {
            command,
            position,
            next_is_alike: false,
        }
    }
}

/// Requests of one connection that are run one after the other. Used again and again, to keep its memory.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) requests: Requests,
    plan: Vec<Planned>,
}

impl Batch {
    /// Looks up every command, finds where its key lives, and begins to load what leads there. `ahead`: there will be time
    /// before the first request runs.
    pub(crate) fn plan(
        &mut self,
        engine: &Engine,
        gate: &GateGuard<'_>,
        database: usize,
        source: &[u8],
        ahead: bool,
    ) {
        self.plan.clear();
        let mut kind_before = None;
        for args in self.requests.iter(source) {
            let planned = Planned::now(engine, args);
            // Two of a container may be of different subcommands.
            let simple = |command: &Numbered| command.row.subcommands.is_empty();
            let kind = planned
                .command
                .filter(simple)
                .map(|command| (command.index, args.len()));
            if kind.is_some()
                && kind == kind_before
                && let Some(before) = self.plan.last_mut()
            {
                before.next_is_alike = true;
            }
            kind_before = kind;
            if ahead && let (Some(command), Some(position)) = (planned.command, planned.position) {
                let to_write = command.row.flags.contains(Flags::WRITE);
                engine
                    .keyspace
                    .prefetch_bucket(gate, database, position, to_write);
            }
            self.plan.push(planned);
        }
    }

    /// The requests in order, with what is known of them.
    pub(crate) fn planned<'a>(
        &'a self,
        source: &'a [u8],
    ) -> impl ExactSizeIterator<Item = (Planned, Args<'a>)> {
        let plan = self.plan.iter().copied();
        plan.zip(self.requests.iter(source))
    }

    /// Begins to load the entries that the buckets lead to. Buckets and entries of many requests are loaded in two rounds, so
    /// that their cache misses overlap.
    pub(crate) fn prefetch_entries(&self, engine: &Engine, gate: &GateGuard<'_>, database: usize) {
        for planned in &self.plan {
            if let Planned {
                command: Some(command),
                position: Some(position),
                ..
            } = planned
            {
                let to_write = command.row.flags.contains(Flags::WRITE);
                engine
                    .keyspace
                    .prefetch_entry(gate, database, *position, to_write);
            }
        }
    }
}

/// One connection's batch on its worker.
pub(super) struct Run<'b, 'k> {
    pub(super) engine: &'k Engine,
    pub(super) worker: &'b mut WorkerState,
    pub(super) client: &'b mut Client,
    pub(super) unit: Unit<'k>,
    pub(super) clock: &'k dyn Clock,
    /// When the running command began, which is when the one before it ended. With commands that share a reading: when the first
    /// of them began.
    pub(super) began_ns: u64,
    /// Commands of one kind that have run since then and are not counted yet.
    uncounted: Option<(Numbered, u64)>,
    /// What each of the last commands that shared a reading took.
    usual_ns: u64,
    /// Held but while an exclusive command runs.
    pub(super) gate: Option<GateGuard<'k>>,
    /// Measures encoding in a turn that is timed.
    pub(super) probe: Option<&'b Probe<'b>>,
    /// A pause holds the request whose turn it was.
    pub(super) held: bool,
    /// What the command that has run waits for.
    wish: Option<Wish>,
    /// The command has run and those who monitor are to know.
    pub(super) shown: Option<&'static CommandRow>,
    /// For those who monitor.
    pub(super) lines: Vec<u8>,
}

/// Runs planned requests in order until the end, until a pause holds one, or until the client is to be closed, and says how many it
/// ran. Replies are appended to `out`.
pub(crate) fn run<'a, 'k>(
    engine: &'k Engine,
    worker: &mut WorkerState,
    client: &mut Client,
    clock: &'k dyn Clock,
    requests: impl ExactSizeIterator<Item = (Planned, Args<'a>)>,
    out: &mut Output,
    probe: Option<&Probe<'_>>,
) -> usize {
    if requests.len() == 0 {
        return 0;
    }
    let gate = engine.keyspace.gate(worker.id()).enter();
    let unit = Unit::new(engine, clock, worker.take_log());
    let mut run = Run {
        engine,
        worker,
        client,
        unit,
        clock,
        began_ns: clock.instant_ns(),
        uncounted: None,
        usual_ns: 0,
        gate: Some(gate),
        probe,
        held: false,
        wish: None,
        shown: None,
        lines: Vec::new(),
    };
    let mut served = 0;
    // Replies that may be dropped: only when the command has run is it known whether they are.
    let mut aside = Output::new();
    for (planned, args) in requests {
        if run.client.record().is_doomed() {
            break;
        }
        let wanted = run.client.replies.are_wanted();
        if !wanted {
            let replies = &mut run.client.replies;
            replies.skip = std::mem::take(&mut replies.skip_next);
        }
        let reply = if wanted { &mut *out } else { &mut aside };
        run.one(&planned, args, reply);
        if !wanted {
            run.decide_on_reply(&mut aside, out);
        }
        if run.held {
            // Its turn comes again.
            break;
        }
        served += 1;
        if run.client.is_waiting() || run.client.closing() || out.len() >= run.client.output_end {
            break;
        }
    }
    run.count_left();
    let Run {
        worker,
        client,
        unit,
        gate,
        lines,
        ..
    } = run;
    worker.put_log(unit.finish());
    drop(gate);
    worker.hand_over_waste(engine);
    if !lines.is_empty() {
        show(engine, worker, client, &lines, clock.monotonic_ns());
    }
    served
}

/// Leaves what was done with those who monitor.
#[cold]
fn show(engine: &Engine, worker: &mut WorkerState, client: &Client, lines: &[u8], now_ns: u64) {
    let most = output_watch::hard_end(session::output_limit(worker));
    let mut tell = |monitor: &Arc<ClientRecord>, too_much: bool| {
        if too_much {
            let line = engine.clients.line(monitor, now_ns);
            session::tell_of_output(worker, &line, "scheduled to be closed ASAP");
        }
        worker.actions.push(Action::Attend(Arc::clone(monitor)));
    };
    engine.clients.show(lines, client.id(), most, &mut tell);
}

impl Run<'_, '_> {
    /// Lets the reply of a command that has run to the client, unless it is not wanted.
    #[cold]
    fn decide_on_reply(&mut self, reply: &mut Output, out: &mut Output) {
        let replies = &mut self.client.replies;
        if self.held {
            replies.skip_next = replies.skip;
        } else if !replies.drop_this() {
            out.append(reply);
        }
        replies.skip = false;
        reply.clear();
    }

    fn one(&mut self, planned: &Planned, args: Args<'_>, out: &mut Output) {
        if planned.command.is_none() && is_http(args) {
            return self.cut_off_http();
        }
        let command = match admit(planned.command, self.client, args) {
            Ok(command) => command,
            Err(refusal) => return self.refuse(refusal, planned, out),
        };
        if self.client.in_multi() && self.in_multi(command, planned, args, out) {
            return;
        }
        let outcome = self.execute(command.row, planned, args, out);
        if let Some(wish) = self.wish.take() {
            self.park(command, args, wish);
        }
        self.unit.commit(self.worker);
        let mut served = Vec::new();
        if self.unit.has_ready() {
            served = serve(self.engine, self.worker, &mut self.unit);
        }
        if self.gate.is_none() {
            self.unit.release();
            self.gate = Some(self.engine.keyspace.gate(self.worker.id()).enter());
        }
        match outcome {
            Ok(None) => {}
            Ok(Some(steps)) => {
                self.unit.release();
                self.finish_steps(command, steps, out);
            }
            Err(error) => {
                self.worker.commands.failed(command.index);
                self.reply_error(&error, out);
            }
        }
        if !served.is_empty() {
            self.hand_over(served);
        }
        if self.held {
            return;
        }
        if self.client.is_waiting() {
            self.note_waiting();
        } else {
            self.account(command, args, planned.next_is_alike);
        }
        if let Some(row) = self.shown.take() {
            self.note_for_monitors(row, args, out);
        }
    }

    /// Does what a command has left for later.
    pub(super) fn finish_steps(
        &mut self,
        command: Numbered,
        mut steps: Box<dyn Steps>,
        out: &mut Output,
    ) {
        let mut reply = Writer::probed(out, self.client.protocol, self.probe);
        while steps.step(&mut Budget::slice(), &mut reply) == Progress::More
            && reply.out.len() < self.client.output_end
        {}
        let failure = steps.failure();
        self.worker.reap_snapshots(steps.snapshots());
        if let Some(error) = failure {
            self.worker.commands.failed(command.index);
            self.reply_error(&error, out);
        }
    }

    #[cold]
    pub(super) fn refuse(&mut self, mut refusal: Refusal, planned: &Planned, out: &mut Output) {
        self.client.abort_multi();
        if planned
            .command
            .is_some_and(|command| command.row.flags.contains(Flags::RUNS_QUEUE))
        {
            refusal.error = self.abort_exec(&refusal.error);
        }
        if let Some(command) = refusal.command {
            self.worker.commands.rejected(command);
        }
        self.reply_error(&refusal.error, out);
        self.count_left();
        // The next command's time does not contain this.
        self.began_ns = self.clock.instant_ns();
    }

    pub(super) fn reply_error(&mut self, error: &CommandError, out: &mut Output) {
        let text = error.text();
        self.worker.count_error(self.engine, &text);
        Writer::probed(out, self.client.protocol, self.probe).error_bytes(&text);
    }

    /// Counts a command that ends now. Its time is from the end of the one before: the clock is read once for both. Even that
    /// costs as much as a tenth of a GET, so that a few alike share a reading.
    #[inline]
    pub(super) fn account(&mut self, command: Numbered, args: Args<'_>, next_is_alike: bool) {
        let count = self.uncounted.map_or(0, |(_, count)| count) + 1;
        if next_is_alike && count < TOGETHER_MAX && self.may_share(command.row, args) {
            self.uncounted = Some((command, count));
            return;
        }
        self.uncounted = None;
        let (began_ns, took_ns) = self.count_until_now(command, count);
        if took_ns >= self.worker.notable_ns {
            self.note_slow(command.row, args, began_ns, took_ns);
        }
    }

    /// Whether a command is so certainly short that one reading will do for it and the next of its kind. If it was not short after
    /// all the slow log shows it: it is told of the whole.
    fn may_share(&self, row: &CommandRow, args: Args<'_>) -> bool {
        let is_short = row.flags.contains(Flags::FAST)
            || row.flags.contains(Flags::BRIEF) && args.total_bytes() <= TOGETHER_BYTES_MAX;
        args.len() <= TOGETHER_ARGUMENTS_MAX
            && is_short
            && !row.flags.contains(Flags::NO_AUTH)
            && self.worker.notable_ns >= TOGETHER_NOTABLE_NS
    }

    /// Counts `count` commands that ran one after the other since the last reading, and says when they began and for how long the
    /// longest ran. Their whole time is exact. Who took what is not known: as much as the ones before, or all alike; if that
    /// leaves much over, one of them took it.
    #[inline]
    fn count_until_now(&mut self, command: Numbered, count: u64) -> (u64, u64) {
        let now_ns = self.clock.instant_ns();
        let began_ns = std::mem::replace(&mut self.began_ns, now_ns);
        let whole_ns = now_ns.saturating_sub(began_ns);
        let worker = &self.worker;
        let (commands, tracked) = (&worker.commands, worker.tracks_latency);
        worker.statistics().commands_processed.add(count as i64);
        if count == 1 {
            commands.ran(command.index, 1, whole_ns, tracked);
            return (began_ns, whole_ns);
        }
        let mean_ns = whole_ns / count;
        let each_ns = if mean_ns > self.usual_ns + UNUSUAL_NS && self.usual_ns > 0 {
            self.usual_ns
        } else {
            self.usual_ns = mean_ns;
            mean_ns
        };
        let longest_ns = whole_ns - each_ns * (count - 1);
        commands.ran(command.index, count - 1, each_ns, tracked);
        commands.ran(command.index, 1, longest_ns, tracked);
        (began_ns, longest_ns)
    }

    /// Counts what shares a reading with a command that did not come.
    pub(super) fn count_left(&mut self) {
        if let Some((command, count)) = self.uncounted.take() {
            self.count_until_now(command, count);
        }
    }

    /// Tells the slow log and the latency monitor of a command, as far as they want it.
    #[cold]
    fn note_slow(&self, row: &CommandRow, args: Args<'_>, began_ns: u64, took_ns: u64) {
        let settings = self.worker.settings();
        let (took_us, took_ms) = (took_ns / 1_000, took_ns / 1_000_000);
        let now_s = self.clock.unix_ms() / 1_000;
        let reaches = |threshold: Option<u64>, took| threshold.is_some_and(|least| took >= least);
        if reaches(settings.slowlog_log_slower_than_us(), took_us)
            && !row.flags.contains(Flags::SKIP_SLOWLOG)
        {
            let waited_us = began_ns.saturating_sub(self.client.arrived_ns) / 1_000;
            let entry = SlowCommand::new(row, args, self.client, now_s, took_us, waited_us);
            self.engine.slow_log.add(entry, settings.slowlog_max_len());
        }
        if reaches(settings.latency_monitor_threshold_ms(), took_ms) {
            let event = if row.flags.contains(Flags::FAST) {
                LatencyEvent::FastCommand
            } else {
                LatencyEvent::Command
            };
            let sample = LatencySample {
                at_s: now_s,
                took_ms,
            };
            self.engine.latency.add(event, sample);
        }
    }

    fn execute(
        &mut self,
        row: &'static CommandRow,
        planned: &Planned,
        args: Args<'_>,
        out: &mut Output,
    ) -> Result<Option<Box<dyn Steps>>, CommandError> {
        if self.engine.clients.may_be_paused() && self.has_to_wait(row.flags) {
            return Ok(None);
        }
        self.unit.begin(self.client.database);
        self.unit
            .set_traceless(self.client.flags().contains(ClientFlags::NO_TOUCH));
        let (mut single, mut several): ([Key<'_>; 1], SmallVec<[Key<'_>; 8]>);
        let keys: &mut [Key<'_>] = match (row.single_key(), planned.position) {
            (Some(at), Some(position)) => {
                single = [Key {
                    name: args.get(at).unwrap_or_default(),
                    position,
                    latch: 0,
                }];
                &mut single
            }
            _ => {
                several = keys(self.engine, row, args);
                &mut several
            }
        };
        self.latch(row, args, keys);
        if row.flags.contains(Flags::WRITE) && self.unit.has_waiters() {
            self.latch_for_waiters(row, args, keys);
        }
        if self.gate.is_none() && self.engine.clients.may_be_paused() && self.has_to_wait(row.flags)
        {
            // The pause began while it waited for the keyspace.
            return Ok(None);
        }
        self.call(row, args, keys, out)
    }

    /// Calls a command's handler, all latches held.
    #[inline(always)]
    pub(super) fn call(
        &mut self,
        row: &'static CommandRow,
        args: Args<'_>,
        keys: &[Key<'_>],
        out: &mut Output,
    ) -> Result<Option<Box<dyn Steps>>, CommandError> {
        let mut context = Context {
            args,
            keys,
            reply: Writer::probed(out, self.client.protocol, self.probe),
            unit: &mut self.unit,
            client: self.client,
            worker: self.worker,
            engine: self.engine,
            row,
            steps: None,
            wish: None,
        };
        let result = (row.handler)(&mut context);
        let steps = context.steps;
        self.wish = context.wish;
        self.client.record().count_command();
        if self.engine.clients.is_monitored() && monitors::is_shown(row) {
            self.shown = Some(row);
        }
        result.map(|()| steps)
    }

    /// Lets the client wait: in the queues of all keys it named, whose latches are still held.
    #[cold]
    fn park(&mut self, command: Numbered, args: Args<'_>, mut wish: Wish) {
        let found = command.row.keys_of(args).unwrap_or_default();
        let named = |at: usize| {
            let argument = found.get(at)?.argument;
            let name = args.get(argument)?;
            Some((argument, name, self.engine.keyspace.position(name)))
        };
        let awaits = wish.awaits.take();
        let feeds = wish.feeds.and_then(named);
        let feeds = feeds.map(|(argument, _, position)| (argument, position));
        let wait = Arc::new(Wait::new(self.client, command, args, wish, feeds));
        let mut places: SmallVec<[Place; 1]> = SmallVec::new();
        if let Some((kind, among)) = awaits {
            for (argument, name, position) in among.filter_map(named) {
                let known = |place: &Place| args.get(place.argument) == Some(name);
                let key = self.unit.latched_key(position, name);
                if let Some(key) = key.filter(|_| !places.iter().any(known)) {
                    let ticket = self.unit.enqueue(key, kind, Arc::clone(&wait) as _);
                    places.push(Place {
                        kind,
                        argument,
                        position,
                        ticket,
                    });
                }
            }
        }
        self.client.begin_waiting(Waiting {
            wait,
            places,
            muted: self.client.replies.drop_this(),
            took_ns: 0,
        });
    }

    /// Keeps for its end how long a command has run that waits now.
    fn note_waiting(&mut self) {
        self.count_left();
        let now_ns = self.clock.instant_ns();
        let took_ns = now_ns.saturating_sub(std::mem::replace(&mut self.began_ns, now_ns));
        self.client.note_waiting(took_ns);
    }

    /// Lets those know who were served while the command ran.
    #[cold]
    pub(super) fn hand_over(&mut self, served: Vec<Served>) {
        if has_steps(&served) {
            self.unit.release();
        }
        hand_over(self.worker, served);
    }

    /// Takes further latches, before anything is written: of keys that those who wait for the command's keys write to when they
    /// are served.
    #[cold]
    fn latch_for_waiters(&mut self, row: &CommandRow, args: Args<'_>, keys: &mut [Key<'_>]) {
        let mut fed = Vec::new();
        feed(row, args, keys, &mut fed);
        self.latch_reach(keys, &fed);
    }

    /// The same for what may come to these keys.
    pub(super) fn latch_reach(&mut self, keys: &mut [Key<'_>], fed: &[Fed]) {
        for _ in 0..REACH_ROUNDS {
            let mut missing = self.unit.unlatched_reach(fed.iter().cloned());
            if missing.is_empty() {
                return;
            }
            missing.extend(self.unit.latched_shards());
            missing.sort_unstable();
            missing.dedup();
            self.unit.latch_many(&missing);
            self.number_latches(keys);
        }
        self.unit.release();
        self.gate = None;
        self.unit.latch_everything(self.worker.id());
        self.number_latches(keys);
    }

    pub(super) fn number_latches(&self, keys: &mut [Key<'_>]) {
        for key in keys {
            if let Some(latched) = self.unit.latched_key(key.position, key.name) {
                key.latch = latched.latch;
            }
        }
    }

    /// Lets those who monitor know of a command that has run. The client itself, if it is one of them, sees it behind the
    /// reply.
    #[cold]
    fn note_for_monitors(&mut self, row: &CommandRow, args: Args<'_>, out: &mut Output) {
        let start = self.lines.len();
        self.write_for_monitors(row, args);
        self.show_own_lines(start, out);
    }

    #[cold]
    pub(super) fn write_for_monitors(&mut self, row: &CommandRow, args: Args<'_>) {
        let client = &*self.client;
        let (now_us, database) = (self.unit.clock_us(), client.database);
        monitors::write_line(
            now_us,
            database,
            client.origin(),
            row,
            args,
            &mut self.lines,
        );
    }

    /// Lets the client itself see what was written for those who monitor from there on, if it is one of them.
    #[cold]
    pub(super) fn show_own_lines(&self, start: usize, out: &mut Output) {
        let client = &*self.client;
        if client.is_monitor() && !client.closing() && !client.replies.drop_this() {
            out.tail().extend_from_slice(&self.lines[start..]);
        }
    }

    /// Whether a pause holds the command. Those who monitor are not paused, as in Redis.
    #[cold]
    pub(super) fn has_to_wait(&mut self, flags: Flags) -> bool {
        self.held =
            !self.client.is_monitor() && self.engine.clients.holds(flags, self.unit.monotonic_ns());
        self.held
    }

    /// A browser that was tricked into talking to the server gets no answer and no second chance.
    fn cut_off_http(&mut self) {
        let address = &self.client.origin().address;
        self.worker.actions.push(Action::Warn(format!(
            "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis. \
             This is likely due to an attacker attempting to use Cross Protocol Scripting to compromise your Redis \
             instance. Connection from {address} aborted."
        )));
        self.client.close_after_reply();
    }

    /// Takes the latches of `keys`, in ascending order, all before the handler runs.
    fn latch(&mut self, row: &CommandRow, args: Args<'_>, keys: &mut [Key<'_>]) {
        let keyspace = &self.engine.keyspace;
        match keys {
            [] if row.flags.contains(Flags::EXCLUSIVE) => {
                self.unit.release();
                self.gate = None;
                self.unit.latch_all(self.worker.id());
            }
            [] => self.unit.release(),
            keys if row.needs_all.is_some_and(|needs_all| needs_all(args)) => {
                let shards: Vec<usize> = (0..keyspace.shards()).collect();
                self.unit.latch_many(&shards);
                self.number_latches(keys);
            }
            [key] => self.unit.latch_one(keyspace.shard_of(key.position)),
            keys => {
                let mut shards: SmallVec<[usize; 16]> = keys
                    .iter()
                    .map(|key| keyspace.shard_of(key.position))
                    .collect();
                shards.sort_unstable();
                shards.dedup();
                for key in keys {
                    key.latch = shards
                        .binary_search(&keyspace.shard_of(key.position))
                        .unwrap_or_default() as u32;
                }
                self.unit.latch_many(&shards);
            }
        }
    }
}

/// Where a key lives, its name, and how many elements it may get.
pub(super) type Fed = (Position, Box<[u8]>, usize);

/// Appends what may come to a command's keys.
pub(super) fn feed(row: &CommandRow, args: Args<'_>, keys: &[Key<'_>], fed: &mut Vec<Fed>) {
    let found = row.keys_of(args).unwrap_or_default();
    fed.extend(keys.iter().enumerate().map(|(at, key)| {
        let flags = found.get(at).map(|found| found.flags);
        let elements = elements_max(row, flags, args.len(), keys.len());
        (key.position, key.name.into(), elements)
    }));
}

/// How many elements a key may get from a command; the greatest number for a whole value, which may come into any database.
fn elements_max(row: &CommandRow, flags: Option<KeyFlags>, arguments: usize, keys: usize) -> usize {
    let Some(flags) = flags else {
        return usize::MAX;
    };
    if flags.contains(KeyFlags::RO) {
        0
    } else if row.categories.contains(Categories::KEYSPACE) || flags.contains(KeyFlags::OW) {
        usize::MAX
    } else if !flags.contains(KeyFlags::INSERT) {
        0
    } else if keys > 1 {
        // One is moved from another key.
        1
    } else {
        arguments.saturating_sub(2)
    }
}

/// Whether the request begins as one over HTTP does.
fn is_http(args: Args<'_>) -> bool {
    args.get(0).is_some_and(|name| {
        name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
    })
}

/// The command's keys, if they are not one in a fixed place. A wrong number of keys gives none: the handler answers with its own
/// error.
pub(super) fn keys<'a>(
    engine: &Engine,
    row: &CommandRow,
    args: Args<'a>,
) -> SmallVec<[Key<'a>; 8]> {
    if row.keys.is_empty() {
        return SmallVec::new();
    }
    row.keys_of(args)
        .unwrap_or_default()
        .iter()
        .filter_map(|found| args.get(found.argument))
        .map(|name| Key {
            name,
            position: engine.keyspace.position(name),
            latch: 0,
        })
        .collect()
}
