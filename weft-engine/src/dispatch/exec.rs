//! Transactions: commands are queued between MULTI and EXEC, and run as one unit.
//!
//! The unit's latches are those of all keys that are named and watched, taken before the first command runs; its time stands still
//! throughout; what all commands did is let out by one commit. If one of them needs the whole keyspace, all run with it.
//! A command that fails changes nothing for the others.

use smallvec::SmallVec;
use weft_resp::{Args, Writer};
use weft_rope::Output;

use super::admit::Refusal;
use super::context::Key;
use super::run::{Fed, Planned, Run, feed, keys};
use super::serve::serve;
use crate::clients::ClientFlags;
use crate::command::{CommandIndex, CommandRow, Flags, Numbered};
use crate::error::CommandError;
use crate::transaction::{Queued, Transaction};

const NOT_ALLOWED: CommandError =
    CommandError::Text("ERR Command not allowed inside a transaction");
const ABORTED: CommandError =
    CommandError::Text("EXECABORT Transaction discarded because of previous errors.");

/// A command of a transaction that is about to run.
struct Step<'a> {
    queued: Queued,
    args: Args<'a>,
    /// Where its keys end among those of all commands; they begin where those of the command before end.
    keys_end: usize,
}

impl Run<'_, '_> {
    /// Deals with a command between MULTI and EXEC. False: it runs at once, as it would without.
    #[cold]
    pub(super) fn in_multi(
        &mut self,
        command: Numbered,
        planned: &Planned,
        args: Args<'_>,
        out: &mut Output,
    ) -> bool {
        let flags = command.row.flags;
        if flags.contains(Flags::RUNS_QUEUE) {
            self.exec(command, args, out);
            return true;
        }
        if flags.contains(Flags::AT_ONCE) {
            // What was queued took time that is not this one's.
            self.count_left();
            self.began_ns = self.clock.instant_ns();
            return false;
        }
        if flags.contains(Flags::NO_MULTI) {
            let refusal = Refusal {
                error: NOT_ALLOWED,
                command: Some(command.index),
            };
            self.refuse(refusal, planned, out);
            return true;
        }
        if self.engine.clients.may_be_paused() && self.has_to_wait(flags) {
            return true;
        }
        self.count_left();
        let position = planned.position;
        self.client.queue(Queued { command, position }, args);
        Writer::probed(out, self.client.protocol, self.probe).simple("QUEUED");
        true
    }

    /// EXEC came with wrong arguments: the transaction is over all the same.
    #[cold]
    pub(super) fn abort_exec(&mut self, error: &CommandError) -> CommandError {
        self.client.end_multi();
        self.forget_watched();
        let reason = error.text();
        let reason = reason.strip_prefix(b"ERR ").unwrap_or(&reason);
        let text = [b"EXECABORT Transaction discarded because of: ", reason].concat();
        CommandError::Composed(text.into())
    }

    fn exec(&mut self, command: Numbered, args: Args<'_>, out: &mut Output) {
        let flags = self.client.transaction().map(|it| it.queue().flags());
        let flags = flags.unwrap_or_default() | command.row.flags;
        if self.engine.clients.may_be_paused() && self.has_to_wait(flags) {
            return;
        }
        self.count_left();
        let began_ns = self.clock.instant_ns();
        self.began_ns = began_ns;
        let lines_start = self.lines.len();
        let transaction = self.client.take_transaction();
        let error = if transaction.is_aborted() {
            self.client.put_transaction(transaction);
            Some(ABORTED)
        } else {
            self.run_queue(transaction, flags, out);
            None
        };
        if self.held {
            // The pause began while it waited for the keyspace.
            return;
        }
        self.client.end_multi();
        self.forget_watched();
        self.client.record().count_command();
        if let Some(error) = error {
            self.worker.commands.failed(command.index);
            self.reply_error(&error, out);
        }
        self.began_ns = began_ns;
        self.account(command, args, false);
        if self.engine.clients.is_monitored() {
            self.write_for_monitors(command.row, args);
            self.show_own_lines(lines_start, out);
        }
    }

    fn forget_watched(&mut self) {
        self.unit.forget_watched(self.client, self.worker);
    }

    /// Runs what was queued, unless a watched key has changed.
    fn run_queue(&mut self, mut transaction: Box<Transaction>, flags: Flags, out: &mut Output) {
        self.unit.begin(self.client.database);
        if self.client.sees_change() {
            self.client.put_transaction(transaction);
            return Writer::probed(out, self.client.protocol, self.probe).null_array();
        }
        let mut named: Vec<Key<'_>> = Vec::with_capacity(transaction.queue().len());
        let mut steps: Vec<Step<'_>> = Vec::with_capacity(transaction.queue().len());
        for (queued, args) in transaction.queue().iter() {
            let row = queued.command.row;
            match (row.single_key(), queued.position) {
                (Some(at), Some(position)) => named.push(Key {
                    name: args.get(at).unwrap_or_default(),
                    position,
                    latch: 0,
                }),
                _ => named.extend(keys(self.engine, row, args)),
            }
            steps.push(Step {
                queued,
                args,
                keys_end: named.len(),
            });
        }
        let alone = flags.contains(Flags::EXCLUSIVE)
            || flags.contains(Flags::WALKS)
            || steps.iter().any(needs_all);
        self.latch_queue(&transaction, &steps, &mut named, alone);
        if self.gate.is_none() && self.engine.clients.may_be_paused() && self.has_to_wait(flags) {
            self.come_back();
            drop((named, steps));
            return self.client.put_transaction(transaction);
        }
        // From here on nothing can change.
        let mut watched = transaction.watched().iter();
        if self.client.sees_change() || watched.any(|key| self.unit.has_ended(key)) {
            drop((named, steps));
            Writer::probed(out, self.client.protocol, self.probe).null_array();
            self.client.put_transaction(transaction);
            self.forget_watched();
            return self.come_back();
        }
        // What is watched is of no interest any more, and the transaction's own changes are none.
        let last = self
            .unit
            .unwatch(transaction.watched(), self.client.watcher());
        self.worker.statistics().watched_keys.add(-(last as i64));
        self.client.record().set_watched(0);
        self.run_steps(&steps, &named, alone, out);
        self.unit.commit(self.worker);
        let mut served = Vec::new();
        if self.unit.has_ready() {
            served = serve(self.engine, self.worker, &mut self.unit);
        }
        drop((named, steps));
        transaction.take_watched();
        self.client.put_transaction(transaction);
        self.come_back();
        if !served.is_empty() {
            self.hand_over(served);
        }
    }

    /// Lets go of the keyspace if it was the unit's alone.
    fn come_back(&mut self) {
        if self.gate.is_none() {
            self.unit.release();
            self.gate = Some(self.engine.keyspace.gate(self.worker.id()).enter());
        }
    }

    fn run_steps(&mut self, steps: &[Step<'_>], keys: &[Key<'_>], alone: bool, out: &mut Output) {
        self.client.set_executing(true);
        // Replies that nobody wants: whether they do may change with every command.
        let mut aside = Output::new();
        {
            let reply = if self.client.replies.drop_this() {
                &mut aside
            } else {
                &mut *out
            };
            Writer::probed(reply, self.client.protocol, self.probe).array(steps.len());
        }
        let mut keys_start = 0;
        for (at, step) in steps.iter().enumerate() {
            let row = step.queued.command.row;
            self.unit.begin_next(
                self.client.database,
                self.client.flags().contains(ClientFlags::NO_TOUCH),
            );
            if alone {
                self.unit.suit(row.flags);
            }
            let own_keys = &keys[keys_start..step.keys_end];
            keys_start = step.keys_end;
            let next_is_alike = steps.get(at + 1).is_some_and(|next| is_alike(step, next));
            if self.client.replies.drop_this() {
                aside.clear();
                self.run_step(step, own_keys, next_is_alike, &mut aside);
                if !self.client.replies.drop_this() {
                    out.append(&mut aside);
                }
            } else {
                self.run_step(step, own_keys, next_is_alike, out);
            }
        }
        self.count_left();
        if alone {
            self.unit.suit(Flags::NONE);
        }
        self.client.set_executing(false);
    }

    /// Runs one command of several to its end.
    fn run_step(
        &mut self,
        step: &Step<'_>,
        keys: &[Key<'_>],
        next_is_alike: bool,
        out: &mut Output,
    ) {
        let (command, args) = (step.queued.command, step.args);
        match self.call(command.row, args, keys, out) {
            Ok(None) => {}
            Ok(Some(steps)) => self.finish_steps(command, steps, out),
            Err(error) => {
                self.worker.commands.failed(command.index);
                self.reply_error(&error, out);
            }
        }
        self.account(command, args, next_is_alike);
        if let Some(row) = self.shown.take() {
            self.write_for_monitors(row, args);
        }
    }

    /// Takes the latches of everything that the transaction names and watches, and of what those who wait for it lead to.
    fn latch_queue(
        &mut self,
        transaction: &Transaction,
        steps: &[Step<'_>],
        keys: &mut [Key<'_>],
        alone: bool,
    ) {
        let keyspace = &self.engine.keyspace;
        if alone {
            self.unit.release();
            self.gate = None;
            self.unit.latch_everything(self.worker.id());
            self.number_latches(keys);
            // Before one of the commands makes it hard to tell.
            self.unit.now_ms();
            return;
        }
        let named = keys.iter().map(|key| key.position);
        let watched = transaction.watched().iter().map(|key| key.position);
        let mut shards: SmallVec<[usize; 16]> = named
            .chain(watched)
            .map(|position| keyspace.shard_of(position))
            .collect();
        shards.sort_unstable();
        shards.dedup();
        match *shards {
            [] => self.unit.release(),
            [shard] => self.unit.latch_one(shard),
            _ => self.unit.latch_many(&shards),
        }
        if shards.len() > 1 {
            self.number_latches(keys);
        }
        if self.unit.has_waiters() {
            let selects = steps
                .iter()
                .any(|step| chooses_database(step.queued.command.row));
            let mut keys_start = 0;
            let mut fed: Vec<Fed> = Vec::new();
            for step in steps {
                let own = &keys[keys_start..step.keys_end];
                keys_start = step.keys_end;
                let row = step.queued.command.row;
                if row.flags.contains(Flags::WRITE) {
                    feed(row, step.args, own, &mut fed);
                }
            }
            if selects {
                // What comes to a key may come to it in any database.
                fed.iter_mut()
                    .for_each(|(_, _, elements)| *elements = usize::MAX);
            }
            self.latch_reach(keys, &fed);
        }
    }
}

/// Whether a command reads keys that it does not name.
fn needs_all(step: &Step<'_>) -> bool {
    let needs_all = step.queued.command.row.needs_all;
    needs_all.is_some_and(|needs_all| needs_all(step.args))
}

/// Whether commands behind it may concern another database.
fn chooses_database(row: &CommandRow) -> bool {
    row.keys.is_empty() && row.group == "connection"
}

/// Whether two commands are so much the same that their times may be measured together.
fn is_alike(one: &Step<'_>, other: &Step<'_>) -> bool {
    let index = |step: &Step<'_>| -> CommandIndex { step.queued.command.index };
    index(one) == index(other) && one.args.len() == other.args.len()
}
