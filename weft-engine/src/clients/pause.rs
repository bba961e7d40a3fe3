//! CLIENT PAUSE: which commands wait, and until when.
//!
//! A pause is set by a command that runs with the keyspace alone, so that no batch is under way; every command looks for it
//! before it runs. It is over when its time is, whoever notices first.

use std::sync::atomic::Ordering;

use super::{ALL_HELD, Clients, WRITES_HELD, lock};
use crate::command::Flags;

/// Which commands wait, the narrower scope first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Those that may change the data.
    Writes,
    /// All.
    All,
}

/// A pause that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    until_ns: u64,
    scope: Scope,
}

impl Clients {
    /// Makes commands wait until then, on the scale of the engine's clock. While a pause lasts, another one can make it only longer
    /// and wider.
    pub fn pause(&self, scope: Scope, now_ns: u64, until_ns: u64) {
        let mut pause = lock(&self.pause);
        let wanted = Pause { until_ns, scope };
        let joined = match *pause {
            Some(before) if before.until_ns > now_ns => Pause {
                until_ns: before.until_ns.max(until_ns),
                scope: before.scope.max(scope),
            },
            _ => wanted,
        };
        *pause = Some(joined);
        let bit = match joined.scope {
            Scope::Writes => WRITES_HELD,
            Scope::All => ALL_HELD,
        };
        self.watch
            .0
            .fetch_and(!(WRITES_HELD | ALL_HELD), Ordering::Relaxed);
        self.watch.0.fetch_or(bit, Ordering::Release);
    }

    /// Ends the pause at once. Those who hold clients back have to be told.
    pub fn unpause(&self) {
        let mut pause = lock(&self.pause);
        if pause.take().is_some() {
            self.watch
                .0
                .fetch_and(!(WRITES_HELD | ALL_HELD), Ordering::Relaxed);
            self.pauses_ended.fetch_add(1, Ordering::Release);
        }
    }

    /// Until when clients are paused; none if they are not.
    #[must_use]
    pub fn paused_until_ns(&self, now_ns: u64) -> Option<u64> {
        if !self.may_be_paused() {
            return None;
        }
        let mut pause = lock(&self.pause);
        let until_ns = pause.as_ref()?.until_ns;
        if now_ns < until_ns {
            return Some(until_ns);
        }
        *pause = None;
        self.watch
            .0
            .fetch_and(!(WRITES_HELD | ALL_HELD), Ordering::Relaxed);
        self.pauses_ended.fetch_add(1, Ordering::Release);
        None
    }

    /// Whether a command with these flags has to wait now.
    #[cold]
    pub(crate) fn holds(&self, flags: Flags, now_ns: u64) -> bool {
        let all = self.watch() & ALL_HELD != 0;
        let concerned = all || flags.contains(Flags::WRITE) || flags.contains(Flags::MAY_REPLICATE);
        concerned && self.paused_until_ns(now_ns).is_some()
    }

    /// A number that changes with every pause that ends.
    #[must_use]
    pub fn pauses_ended(&self) -> usize {
        self.pauses_ended.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandTable;

    #[test]
    fn a_pause_lasts_until_its_time_and_further_ones_only_extend_it() {
        let clients = Clients::new(&CommandTable::new(&[]));
        assert!(!clients.may_be_paused());
        clients.pause(Scope::Writes, 0, 100);
        assert!(clients.holds(Flags::WRITE, 99));
        assert!(clients.holds(Flags::MAY_REPLICATE, 99));
        assert!(!clients.holds(Flags::READONLY, 99));
        clients.pause(Scope::All, 50, 80);
        assert!(clients.holds(Flags::NONE, 99));
        clients.pause(Scope::Writes, 60, 70);
        assert!(clients.holds(Flags::NONE, 99));
        assert_eq!(clients.paused_until_ns(99), Some(100));
        assert_eq!(clients.pauses_ended(), 0);
        assert!(!clients.holds(Flags::WRITE, 100));
        assert!(!clients.may_be_paused());
        assert_eq!(clients.pauses_ended(), 1);
        clients.pause(Scope::Writes, 100, 200);
        assert!(!clients.holds(Flags::NONE, 150));
        clients.unpause();
        assert!(!clients.may_be_paused());
        assert_eq!(clients.paused_until_ns(150), None);
        assert_eq!(clients.pauses_ended(), 2);
        // One that was over before anybody noticed leaves nothing behind.
        clients.pause(Scope::All, 200, 300);
        clients.pause(Scope::Writes, 400, 500);
        assert!(!clients.holds(Flags::NONE, 450));
        assert!(clients.holds(Flags::WRITE, 450));
    }
}
