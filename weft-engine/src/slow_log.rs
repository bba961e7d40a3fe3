//! The slow log: commands that took too long, the newest first.
//!
//! Owns the entries of all workers, their numbers, and what of a command is kept: at most 32 arguments of 128 bytes, none of
//! them a secret. Its lock is only taken for commands that were slow and by those who read it. An entry also tells how
//! long its request had waited before it ran.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_resp::Args;

use crate::client::Client;
use crate::command::{CommandRow, REDACTED};

/// The most arguments that an entry keeps, from Redis; if there are more, the last place tells how many.
const ARGUMENTS_MAX: usize = 32;

/// The most bytes of an argument that an entry keeps, from Redis.
const ARGUMENT_BYTES_MAX: usize = 128;

/// A command that was slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowCommand {
    /// Unique since the start, ascending.
    pub id: u64,
    /// When it ended, in seconds since 1970.
    pub ended_s: u64,
    /// How long it ran.
    pub took_us: u64,
    /// How long it had waited before that: since its last bytes were received.
    pub waited_us: u64,
    /// Its arguments, the command's name first, as much of them as is kept.
    pub arguments: Vec<Box<[u8]>>,
    /// The client's address.
    pub client_address: Box<str>,
    /// The client's name; empty if none.
    pub client_name: Box<[u8]>,
}

impl SlowCommand {
    /// An entry without a number yet.
    #[must_use]
    pub fn new(
        row: &CommandRow,
        args: Args<'_>,
        client: &Client,
        ended_s: u64,
        took_us: u64,
        waited_us: u64,
    ) -> Self {
        Self {
            id: 0,
            ended_s,
            took_us,
            waited_us,
            arguments: kept_arguments(row, args),
            client_address: client.origin().address.clone(),
            client_name: client.record().name(),
        }
    }
}

fn kept_arguments(row: &CommandRow, args: Args<'_>) -> Vec<Box<[u8]>> {
    let kept = if args.len() > ARGUMENTS_MAX {
        ARGUMENTS_MAX - 1
    } else {
        args.len()
    };
    let secrets = row.secrets_among(args);
    let mut arguments: Vec<Box<[u8]>> = (0..kept)
        .map(|at| {
            if secrets.contains(&at) {
                REDACTED.into()
            } else {
                kept_bytes(args, at)
            }
        })
        .collect();
    if kept < args.len() {
        let rest = format!("... ({} more arguments)", args.len() - kept);
        arguments.push(rest.into_bytes().into());
    }
    arguments
}

fn kept_bytes(args: Args<'_>, at: usize) -> Box<[u8]> {
    let len = args.bytes_len(at).unwrap_or(0);
    // A large argument need not be copied into one piece for its beginning.
    let first = match args.rope(at) {
        Some(rope) => rope.slices(..).next().unwrap_or_default(),
        None => args.get(at).unwrap_or_default(),
    };
    if len <= ARGUMENT_BYTES_MAX {
        return first.into();
    }
    let mut kept = first[..first.len().min(ARGUMENT_BYTES_MAX)].to_vec();
    kept.extend_from_slice(format!("... ({} more bytes)", len - kept.len()).as_bytes());
    kept.into()
}

/// The log of one engine.
#[derive(Default)]
pub struct SlowLog(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    next_id: u64,
    /// The newest first.
    entries: VecDeque<SlowCommand>,
}

impl SlowLog {
    /// Adds an entry and keeps no more than `most`; with `most` 0 the log stays as it is.
    pub fn add(&self, entry: SlowCommand, most: usize) {
        if most == 0 {
            return;
        }
        let mut log = self.lock();
        let id = log.next_id;
        log.next_id += 1;
        log.entries.push_front(SlowCommand { id, ..entry });
        log.entries.truncate(most);
    }

    /// The newest entries, at most so many.
    #[must_use]
    pub fn newest(&self, most: usize) -> Vec<SlowCommand> {
        self.lock().entries.iter().take(most).cloned().collect()
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all entries; numbers go on.
    pub fn reset(&self) {
        let entries = std::mem::take(&mut self.lock().entries);
        // Freed without the lock.
        drop(entries);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use weft_resp::OwnedArgs;
    use weft_rope::Rope;

    use super::*;

    const ROW: CommandRow = CommandRow {
        secrets: Some(|_| smallvec::smallvec![2]),
        ..CommandRow::DEFAULT
    };

    fn kept(args: &OwnedArgs) -> Vec<String> {
        kept_arguments(&ROW, args.args())
            .iter()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    #[test]
    fn arguments_are_shortened_as_redis_does() {
        let long = |len: usize| "x".repeat(len);
        let (fits, over) = (long(128), long(129));
        let args = OwnedArgs::from_slices(&[b"SET", fits.as_bytes(), b"pw", over.as_bytes()]);
        let cut = format!("{fits}... (1 more bytes)");
        assert_eq!(kept(&args), ["SET", &fits, "(redacted)", &cut]);
        let mut large = OwnedArgs::from_slices(&[b"SET"]);
        large.push_rope(Rope::from_slice(&vec![b'y'; 200_000]));
        assert_eq!(
            kept(&large)[1],
            format!("{}... (199872 more bytes)", "y".repeat(128))
        );
    }

    #[test]
    fn from_33_arguments_on_the_last_place_counts_the_rest() {
        let args = |count| OwnedArgs::from_slices(&vec![b"a".as_slice(); count]);
        assert_eq!(kept(&args(32)).len(), 32);
        assert_eq!(kept(&args(32))[31], "a");
        let cut = kept(&args(50));
        assert_eq!(cut.len(), 32);
        assert_eq!(cut[30..], ["a", "... (19 more arguments)"]);
    }

    fn entry(took_us: u64) -> SlowCommand {
        SlowCommand {
            id: 0,
            ended_s: 1,
            took_us,
            waited_us: 0,
            arguments: Vec::new(),
            client_address: "".into(),
            client_name: Box::default(),
        }
    }

    fn ids(log: &SlowLog, most: usize) -> Vec<u64> {
        log.newest(most).iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn the_newest_are_kept_and_numbers_never_repeat() {
        let log = SlowLog::default();
        (0..5).for_each(|took_us| log.add(entry(took_us), 3));
        assert_eq!(ids(&log, 10), [4, 3, 2]);
        assert_eq!(ids(&log, 1), [4]);
        assert_eq!(log.newest(1)[0].took_us, 4);
        log.add(entry(9), 0);
        assert_eq!(log.len(), 3);
        log.reset();
        assert!(log.is_empty());
        log.add(entry(9), 3);
        assert_eq!(ids(&log, 10), [5]);
    }

    #[test]
    fn many_threads_get_ascending_numbers() {
        let log = SlowLog::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|took_us| log.add(entry(took_us), 1000)));
            }
        });
        let expected: Vec<u64> = (0..400).rev().collect();
        assert_eq!(ids(&log, 1000), expected);
    }
}
