//! What is counted per command and per kind of error: by each worker for itself, summed when read.
//!
//! Owns calls, time, refusals, failures and histograms of every command, and how often each error code was replied. Knows
//! commands by their places in the table only. CONFIG RESETSTAT gives every worker a fresh set, which it takes before its
//! next batch: what it counts until then is what happened before the reset.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::command::CommandIndex;
use crate::histogram::{Durations, Histogram};
use crate::statistics::Counter;

/// How many error codes are told apart, from Redis: if there are more, clients make them up, and none is counted any more.
const ERROR_KINDS_MAX: usize = 128;

/// The longest error code that is kept, in bytes.
const ERROR_CODE_MAX: usize = 256;

/// One worker's counts.
pub struct CommandStatistics {
    commands: Box<[PerCommand]>,
    errors: Mutex<BTreeMap<Box<[u8]>, u64>>,
}

/// A line of the cache for each, since neighbours may be in use too.
#[derive(Default)]
#[repr(align(64))]
struct PerCommand {
    calls: Counter,
    spent_ns: Counter,
    rejected: Counter,
    failed: Counter,
    durations: OnceLock<Box<Histogram>>,
}

impl CommandStatistics {
    fn new(commands: usize) -> Self {
        let mut counts = Vec::new();
        counts.resize_with(commands, PerCommand::default);
        Self {
            commands: counts.into(),
            errors: Mutex::default(),
        }
    }

    /// A command ran `count` times for so long each; `tracked`: durations are kept. Only the worker may call it.
    #[inline]
    pub fn ran(&self, command: CommandIndex, count: u64, took_ns: u64, tracked: bool) {
        let counts = &self.commands[command.get()];
        counts.calls.add(count as i64);
        counts.spent_ns.add((count * took_ns) as i64);
        if tracked {
            counts
                .durations
                .get_or_init(Box::default)
                .record(took_ns, count);
        }
    }

    /// A command that ran ended in an error. Only the worker may call it.
    pub fn failed(&self, command: CommandIndex) {
        self.commands[command.get()].failed.add(1);
    }

    /// A command was refused before it ran. Only the worker may call it.
    pub fn rejected(&self, command: CommandIndex) {
        self.commands[command.get()].rejected.add(1);
    }

    fn errors(&self) -> MutexGuard<'_, BTreeMap<Box<[u8]>, u64>> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counts of all workers.
pub struct CommandAccounts {
    commands: usize,
    workers: Mutex<Vec<Arc<CommandStatistics>>>,
    /// There were too many kinds of errors since the last reset.
    errors_overflown: AtomicBool,
}

/// One command's counts, of all workers together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandTotals {
    /// How often it ran.
    pub calls: u64,
    /// For how long altogether, in nanoseconds.
    pub spent_ns: u64,
    /// How often it was refused before it ran.
    pub rejected: u64,
    /// How often it ran and ended in an error.
    pub failed: u64,
}

/// How often each error code was replied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorTotals {
    /// Codes in the order of their bytes.
    Kinds(Vec<(Box<[u8]>, u64)>),
    /// There were too many.
    TooMany,
}

impl CommandAccounts {
    /// For a table of so many commands.
    #[must_use]
    pub fn new(commands: usize) -> Self {
        Self {
            commands,
            workers: Mutex::default(),
            errors_overflown: AtomicBool::new(false),
        }
    }

    /// The set that worker `id` counts in from now on.
    #[must_use]
    pub fn of_worker(&self, id: usize) -> Arc<CommandStatistics> {
        let mut workers = self.workers();
        while workers.len() <= id {
            workers.push(Arc::new(CommandStatistics::new(self.commands)));
        }
        Arc::clone(&workers[id])
    }

    /// Begins anew. The workers go on with the old sets until they ask for their new ones.
    pub fn reset(&self) {
        let mut workers = self.workers();
        for worker in workers.iter_mut() {
            *worker = Arc::new(CommandStatistics::new(self.commands));
        }
        self.errors_overflown.store(false, Ordering::Relaxed);
    }

    /// Counts an error reply by its code: the first word of its text.
    pub fn count_error(&self, worker: &CommandStatistics, text: &[u8]) {
        if self.errors_overflown.load(Ordering::Relaxed) {
            return;
        }
        let code = code_of(text);
        let mut errors = worker.errors();
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < ERROR_KINDS_MAX {
            errors.insert(code.into(), 1);
        } else {
            errors.clear();
            self.errors_overflown.store(true, Ordering::Relaxed);
        }
    }

    /// One command's counts.
    #[must_use]
    pub fn totals(&self, command: CommandIndex) -> CommandTotals {
        let mut totals = CommandTotals::default();
        let sum = |counter: &Counter| u64::try_from(counter.load()).unwrap_or(0);
        for worker in self.workers().iter() {
            let counts = &worker.commands[command.get()];
            totals.calls += sum(&counts.calls);
            totals.spent_ns += sum(&counts.spent_ns);
            totals.rejected += sum(&counts.rejected);
            totals.failed += sum(&counts.failed);
        }
        totals
    }

    /// For how long all commands ran altogether, in nanoseconds.
    #[must_use]
    pub fn spent_ns(&self) -> u64 {
        let workers = self.workers();
        let commands = workers.iter().flat_map(|worker| &worker.commands);
        let spent = commands.map(|counts| u64::try_from(counts.spent_ns.load()).unwrap_or(0));
        spent.sum()
    }

    /// How long one command took each time, as far as that was kept.
    #[must_use]
    pub fn durations(&self, command: CommandIndex) -> Durations {
        let workers = self.workers();
        Durations::of(
            workers
                .iter()
                .filter_map(|worker| worker.commands[command.get()].durations.get())
                .map(|durations| &**durations),
        )
    }

    /// The error codes and how often each was replied.
    #[must_use]
    pub fn errors(&self) -> ErrorTotals {
        let mut kinds = BTreeMap::<Box<[u8]>, u64>::new();
        for worker in self.workers().iter() {
            for (code, count) in worker.errors().iter() {
                *kinds.entry(code.clone()).or_default() += count;
            }
        }
        if kinds.len() > ERROR_KINDS_MAX {
            self.errors_overflown.store(true, Ordering::Relaxed);
        }
        if self.errors_overflown.load(Ordering::Relaxed) {
            ErrorTotals::TooMany
        } else {
            ErrorTotals::Kinds(kinds.into_iter().collect())
        }
    }

    fn workers(&self) -> MutexGuard<'_, Vec<Arc<CommandStatistics>>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error's first word.
fn code_of(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == b' ');
    let code = &text[..end.unwrap_or(text.len())];
    &code[..code.len().min(ERROR_CODE_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandTable;
    use crate::commands::FAMILIES;

    fn place(name: &[u8]) -> CommandIndex {
        CommandTable::new(FAMILIES)
            .find_numbered(name)
            .unwrap()
            .index
    }

    #[test]
    fn workers_are_added_up_and_reset_together() {
        let accounts = CommandAccounts::new(CommandTable::new(FAMILIES).count());
        let (get, set) = (place(b"get"), place(b"set"));
        let workers = [accounts.of_worker(1), accounts.of_worker(0)];
        workers[0].ran(get, 1, 300, true);
        workers[1].ran(get, 1, 500, true);
        workers[1].ran(get, 1, 40, false);
        workers[1].failed(get);
        workers[0].rejected(get);
        let expected = CommandTotals {
            calls: 3,
            spent_ns: 840,
            rejected: 1,
            failed: 1,
        };
        assert_eq!(accounts.totals(get), expected);
        assert_eq!(accounts.totals(set), CommandTotals::default());
        accounts.of_worker(0).ran(set, 2, 100, false);
        assert_eq!(accounts.spent_ns(), 1040);
        assert_eq!(accounts.durations(get).count(), 2);
        assert_eq!(accounts.durations(get).percentile_ns(100.0), 501);
        accounts.reset();
        workers[0].ran(get, 1, 300, true);
        assert_eq!(accounts.totals(get), CommandTotals::default());
        accounts.of_worker(1).ran(get, 1, 1, true);
        assert_eq!(accounts.totals(get).calls, 1);
    }

    #[test]
    fn errors_are_counted_by_their_first_word() {
        let accounts = CommandAccounts::new(0);
        let workers = [accounts.of_worker(0), accounts.of_worker(1)];
        for text in [
            &b"ERR syntax error"[..],
            b"WRONGTYPE Operation",
            b"ERR",
            b"",
        ] {
            accounts.count_error(&workers[0], text);
        }
        accounts.count_error(&workers[1], b"ERR no such key");
        let kinds = [(&b""[..], 1), (b"ERR", 3), (b"WRONGTYPE", 1)]
            .map(|(code, count)| (code.into(), count));
        assert_eq!(accounts.errors(), ErrorTotals::Kinds(kinds.into()));
    }

    #[test]
    fn more_than_128_kinds_are_none_until_the_next_reset() {
        let text = |number: usize| format!("E{number} message").into_bytes();
        // By one worker, and by two of which neither has seen too many.
        for split in [200, 100] {
            let accounts = CommandAccounts::new(0);
            let workers = [accounts.of_worker(0), accounts.of_worker(1)];
            for number in 0..128 {
                accounts.count_error(&workers[number / split], &text(number));
            }
            assert!(matches!(accounts.errors(), ErrorTotals::Kinds(kinds) if kinds.len() == 128));
            accounts.count_error(&workers[128 / split], &text(128));
            assert_eq!(accounts.errors(), ErrorTotals::TooMany);
            accounts.count_error(&workers[0], &text(0));
            assert_eq!(accounts.errors(), ErrorTotals::TooMany);
            accounts.reset();
            accounts.count_error(&accounts.of_worker(0), b"ERR");
            assert_eq!(
                accounts.errors(),
                ErrorTotals::Kinds(vec![(b"ERR"[..].into(), 1)])
            );
        }
    }
}
