//! Running a batch of parsed requests: look up, hash and prefetch all, then latch, execute and encode one by one.

use std::sync::Arc;

use smallvec::SmallVec;
use weft_keyspace::{GateGuard, Position};
use weft_resp::{Args, Probe, Requests, Writer};
use weft_rope::Output;

use super::admit::admit;
use super::context::{Budget, Context, Key, Progress, Steps};
use super::unit::Unit;
use crate::action::Action;
use crate::client::Client;
use crate::clients::{ClientFlags, ClientRecord, monitors};
use crate::clock::Clock;
use crate::command::{CommandRow, Flags};
use crate::engine::{Engine, WorkerState};
use crate::error::CommandError;
use crate::{output_watch, session};

/// A request that has been looked at ahead of its turn.
#[derive(Clone, Copy)]
pub(crate) struct Planned {
    /// The command, a container's subcommand not yet resolved; none if the name is unknown.
    row: Option<&'static CommandRow>,
    /// Where its key lives, if it has just one in a fixed place.
    position: Option<Position>,
}

impl Planned {
    /// Of a request whose turn it is.
    pub(crate) fn now(engine: &Engine, args: Args<'_>) -> Self {
        let row = args.get(0).and_then(|name| engine.commands.find(name));
        let key = row
            .and_then(CommandRow::single_key)
            .and_then(|at| args.get(at));
        let position = key.map(|key| engine.keyspace.position(key));
        Self { row, position }
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
        for args in self.requests.iter(source) {
            let planned = Planned::now(engine, args);
            if ahead && let (Some(row), Some(position)) = (planned.row, planned.position) {
                let to_write = row.flags.contains(Flags::WRITE);
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
                row: Some(row),
                position: Some(position),
            } = planned
            {
                let to_write = row.flags.contains(Flags::WRITE);
                engine
                    .keyspace
                    .prefetch_entry(gate, database, *position, to_write);
            }
        }
    }
}

/// One connection's batch on its worker.
struct Run<'b, 'k> {
    engine: &'k Engine,
    worker: &'b mut WorkerState,
    client: &'b mut Client,
    unit: Unit<'k>,
    /// Held but while an exclusive command runs.
    gate: Option<GateGuard<'k>>,
    /// Measures encoding in a turn that is timed.
    probe: Option<&'b Probe<'b>>,
    /// A pause holds the request whose turn it was.
    held: bool,
    /// The command has run and those who monitor are to know.
    shown: Option<&'static CommandRow>,
    /// For those who monitor.
    lines: Vec<u8>,
}

/// Runs planned requests in order until the end, until a pause holds one, or until the client is to be closed, and says how many it
/// ran. Replies are appended to `out`.
pub(crate) fn run<'a>(
    engine: &Engine,
    worker: &mut WorkerState,
    client: &mut Client,
    clock: &dyn Clock,
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
        gate: Some(gate),
        probe,
        held: false,
        shown: None,
        lines: Vec::new(),
    };
    let mut served = 0;
    for (planned, args) in requests {
        if run.client.record().is_doomed() {
            break;
        }
        if run.client.replies.are_wanted() {
            run.one(&planned, args, out);
        } else {
            run.one_unwanted(&planned, args, out);
        }
        if run.held {
            // Its turn comes again.
            run.worker.statistics().commands_processed.add(-1);
            break;
        }
        served += 1;
        if run.client.closing() || out.len() >= run.client.output_end {
            break;
        }
    }
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
    /// Runs a command whose reply may be dropped: only then is it known whether it is.
    #[cold]
    fn one_unwanted(&mut self, planned: &Planned, args: Args<'_>, out: &mut Output) {
        self.client.replies.skip = std::mem::take(&mut self.client.replies.skip_next);
        let mut reply = Output::new();
        self.one(planned, args, &mut reply);
        if self.held {
            self.client.replies.skip_next = self.client.replies.skip;
        } else if !self.client.replies.drop_this() {
            out.append(&mut reply);
        }
        self.client.replies.skip = false;
    }

    fn one(&mut self, planned: &Planned, args: Args<'_>, out: &mut Output) {
        self.worker.statistics().commands_processed.add(1);
        let outcome = self.execute(planned, args, out);
        self.unit.commit(self.worker);
        if self.gate.is_none() {
            self.unit.release();
            self.gate = Some(self.engine.keyspace.gate(self.worker.id()).enter());
        }
        match outcome {
            Ok(None) => {}
            Ok(Some(mut steps)) => {
                self.unit.release();
                let mut reply = Writer::probed(out, self.client.protocol, self.probe);
                while steps.step(&mut Budget::slice(), &mut reply) == Progress::More
                    && reply.out.len() < self.client.output_end
                {}
            }
            Err(error) => {
                self.worker.statistics().error_replies.add(1);
                Writer::probed(out, self.client.protocol, self.probe).error_bytes(&error.text());
            }
        }
        if let Some(row) = self.shown.take() {
            self.note_for_monitors(row, args, out);
        }
    }

    fn execute(
        &mut self,
        planned: &Planned,
        args: Args<'_>,
        out: &mut Output,
    ) -> Result<Option<Box<dyn Steps>>, CommandError> {
        if planned.row.is_none() && is_http(args) {
            self.cut_off_http();
            return Ok(None);
        }
        let row = admit(planned.row, self.client, args)?;
        if self.engine.clients.may_be_paused() && self.has_to_wait(row) {
            return Ok(None);
        }
        self.unit.begin(self.client.database);
        self.unit
            .set_traceless(self.client.flags().contains(ClientFlags::NO_TOUCH));
        let mut keys = keys(self.engine, row, planned, args);
        self.latch(row, &mut keys);
        if self.gate.is_none() && self.engine.clients.may_be_paused() && self.has_to_wait(row) {
            // The pause began while it waited for the keyspace.
            return Ok(None);
        }
        let mut context = Context {
            args,
            keys: &keys,
            reply: Writer::probed(out, self.client.protocol, self.probe),
            unit: &mut self.unit,
            client: self.client,
            worker: self.worker,
            engine: self.engine,
            row,
            steps: None,
        };
        let result = (row.handler)(&mut context);
        let steps = context.steps;
        self.client.record().count_command();
        if self.engine.clients.is_monitored() && monitors::is_shown(row) {
            self.shown = Some(row);
        }
        result.map(|()| steps)
    }

    /// Lets those who monitor know of a command that has run. The client itself, if it is one of them, sees it behind the
    /// reply.
    #[cold]
    fn note_for_monitors(&mut self, row: &CommandRow, args: Args<'_>, out: &mut Output) {
        let start = self.lines.len();
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
        if client.is_monitor() && !client.closing() && !client.replies.drop_this() {
            out.tail().extend_from_slice(&self.lines[start..]);
        }
    }

    /// Whether a pause holds the command. Those who monitor are not paused, as in Redis.
    #[cold]
    fn has_to_wait(&mut self, row: &CommandRow) -> bool {
        self.held = !self.client.is_monitor()
            && self
                .engine
                .clients
                .holds(row.flags, self.unit.monotonic_ns());
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
    fn latch(&mut self, row: &CommandRow, keys: &mut [Key<'_>]) {
        let keyspace = &self.engine.keyspace;
        match keys {
            [] if row.flags.contains(Flags::EXCLUSIVE) => {
                self.unit.release();
                self.gate = None;
                self.unit.latch_all(self.worker.id());
            }
            [] => self.unit.release(),
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
                        .unwrap_or_default() as u16;
                }
                self.unit.latch_many(&shards);
            }
        }
    }
}

/// Whether the request begins as one over HTTP does.
fn is_http(args: Args<'_>) -> bool {
    args.get(0).is_some_and(|name| {
        name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
    })
}

/// The command's keys. A wrong number of keys gives none: the handler answers with its own error.
fn keys<'a>(
    engine: &Engine,
    row: &CommandRow,
    planned: &Planned,
    args: Args<'a>,
) -> SmallVec<[Key<'a>; 2]> {
    let key = |name: &'a [u8], position| Key {
        name,
        position,
        latch: 0,
    };
    match (row.single_key(), planned.position) {
        (Some(at), Some(position)) => {
            let name = args.get(at);
            name.map(|name| key(name, position)).into_iter().collect()
        }
        _ if row.keys.is_empty() => SmallVec::new(),
        _ => row
            .keys_of(args)
            .unwrap_or_default()
            .iter()
            .filter_map(|found| args.get(found.argument))
            .map(|name| key(name, engine.keyspace.position(name)))
            .collect(),
    }
}
