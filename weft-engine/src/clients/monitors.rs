//! MONITOR: who listens to every command, and what they are sent.
//!
//! Lines are made by the worker that ran the commands, once per batch, and left with each listener's record in the order of
//! execution; its owner sends them between replies.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weft_resp::Args;

use super::{ClientFlags, ClientRecord, Clients, MONITORED, lock};
use crate::client::Origin;
use crate::command::{CommandRow, Flags, REDACTED};
use crate::config::quote;

impl Clients {
    /// This client hears of every command from now on. Its owner sets its flag.
    pub(crate) fn start_monitoring(&self, record: &Arc<ClientRecord>) {
        let mut monitors = lock(&self.monitors);
        monitors.push(Arc::clone(record));
        self.watch.0.fetch_or(MONITORED, Ordering::Relaxed);
    }

    /// It does so no longer, and what it has not been sent yet is dropped.
    pub(crate) fn stop_monitoring(&self, record: &ClientRecord) {
        let mut monitors = lock(&self.monitors);
        monitors.retain(|monitor| monitor.id() != record.id());
        if monitors.is_empty() {
            self.watch.0.fetch_and(!MONITORED, Ordering::Relaxed);
        }
        record.take_pushes();
    }

    /// Leaves `lines` with everybody who monitors but `own`, who has seen them already. `tell` is called for those whose owners
    /// have to be told, and with true for those who have `most` bytes or more waiting for them and are dropped.
    pub(crate) fn show(
        &self,
        lines: &[u8],
        own: u64,
        most: usize,
        mut tell: impl FnMut(&Arc<ClientRecord>, bool),
    ) {
        let lines: Arc<[u8]> = lines.into();
        let monitors = lock(&self.monitors);
        for monitor in monitors.iter() {
            if monitor.id() == own || monitor.is_doomed() {
                continue;
            }
            if monitor.flags().contains(ClientFlags::MUTE) {
                continue;
            }
            let pushed = monitor.push(&lines);
            if pushed.waiting.saturating_add(monitor.unsent()) >= most {
                if self.kill(monitor) {
                    tell(monitor, true);
                }
            } else if pushed.first {
                tell(monitor, false);
            }
        }
    }
}

/// Whether those who monitor see commands of this kind.
pub(crate) const fn is_shown(row: &CommandRow) -> bool {
    !row.flags.contains(Flags::ADMIN) && !row.flags.contains(Flags::SKIP_MONITOR)
}

/// Appends the line of a command that has run: seconds since 1970, database, address, quoted arguments.
pub(crate) fn write_line(
    unix_us: u64,
    database: usize,
    origin: &Origin,
    row: &CommandRow,
    args: Args<'_>,
    into: &mut Vec<u8>,
) {
    let (seconds, micros) = (unix_us / 1_000_000, unix_us % 1_000_000);
    let (scheme, address) = match origin.address.strip_suffix(":0") {
        Some(path) => ("unix:", path),
        None => ("", &*origin.address),
    };
    let _ = write!(
        into,
        "+{seconds}.{micros:06} [{database} {scheme}{address}]"
    );
    let secrets = row.secrets_among(args);
    for (at, argument) in args.iter().enumerate() {
        into.push(b' ');
        let hidden = secrets.contains(&at);
        let shown = if hidden { REDACTED } else { argument };
        into.extend_from_slice(quote(shown).as_bytes());
    }
    into.extend_from_slice(b"\r\n");
}
