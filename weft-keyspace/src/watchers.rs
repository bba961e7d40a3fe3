//! Who watches keys of a shard, to hear of changes to them.
//!
//! Owns the lists of watchers by key; whoever touches a key under the shard's latch marks them. Does not know what they do about
//! it. A watcher of a key that was missing from the beginning does not hear of its removal: for it nothing has changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

/// What is left of the memory for lists when nobody watches any more, in keys.
const KEYS_KEPT: usize = 64;

/// Somebody who watches keys.
#[derive(Debug, Default)]
pub struct Watcher {
    marked: AtomicBool,
}

impl Watcher {
    /// Whether a key has changed that it watches. Exact for whoever holds the latches of all these keys.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.marked.load(Ordering::Acquire)
    }

    /// It has not heard of any change. Only for one that watches nothing.
    pub fn unmark(&self) {
        self.marked.store(false, Ordering::Relaxed);
    }

    /// A key has changed.
    fn mark(&self) {
        self.marked.store(true, Ordering::Release);
    }
}

/// What became of a wish to watch a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// It is the first who watches the key.
    First,
    /// Others watch it too.
    Too,
    /// It did so before.
    Already,
}

/// One who watches a key.
struct Watch {
    database: usize,
    /// The key was there when this began.
    alive: bool,
    watcher: Arc<Watcher>,
}

/// Those who watch keys of a shard.
#[derive(Default)]
pub(crate) struct Watchers {
    /// By the key's name, of all databases together.
    keys: HashMap<Box<[u8]>, SmallVec<[Watch; 1]>>,
}

impl Watchers {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether this is no more than memory kept for later.
    pub(crate) fn is_spent(&self) -> bool {
        self.keys.is_empty() && self.keys.capacity() > KEYS_KEPT
    }

    /// `alive`: the key is there.
    pub(crate) fn add(
        &mut self,
        database: usize,
        key: &[u8],
        alive: bool,
        watcher: &Arc<Watcher>,
    ) -> Watched {
        let watch = Watch {
            database,
            alive,
            watcher: Arc::clone(watcher),
        };
        let Some(watches) = self.keys.get_mut(key) else {
            self.keys.insert(key.into(), SmallVec::from_buf([watch]));
            return Watched::First;
        };
        let mut same = watches.iter().filter(|watch| watch.database == database);
        if same
            .clone()
            .any(|watch| Arc::ptr_eq(&watch.watcher, watcher))
        {
            return Watched::Already;
        }
        let first = same.next().is_none();
        watches.push(watch);
        if first { Watched::First } else { Watched::Too }
    }

    /// Whether it was the last who watched the key.
    pub(crate) fn remove(&mut self, database: usize, key: &[u8], watcher: &Arc<Watcher>) -> bool {
        let Some(watches) = self.keys.get_mut(key) else {
            return false;
        };
        let own =
            |watch: &Watch| watch.database == database && Arc::ptr_eq(&watch.watcher, watcher);
        let Some(at) = watches.iter().position(own) else {
            return false;
        };
        watches.swap_remove(at);
        let last = watches.iter().all(|watch| watch.database != database);
        if watches.is_empty() {
            self.keys.remove(key);
        }
        last
    }

    /// The key has changed; `removed`: no more than that it is gone.
    pub(crate) fn mark(&self, database: usize, key: &[u8], removed: bool) {
        let watches = self.keys.get(key).into_iter().flatten();
        watches
            .filter(|watch| watch.database == database && (watch.alive || !removed))
            .for_each(|watch| watch.watcher.mark());
    }

    /// All keys of a database are gone.
    pub(crate) fn mark_all(&self, database: usize) {
        let watches = self.keys.values().flatten();
        watches
            .filter(|watch| watch.database == database && watch.alive)
            .for_each(|watch| watch.watcher.mark());
    }

    /// Keys of two databases changed places; `is_alive` tells whether a key is in one of the two.
    pub(crate) fn mark_swapped(&self, databases: [usize; 2], is_alive: impl Fn(&[u8]) -> bool) {
        for (key, watches) in &self.keys {
            let concerned = |watch: &&Watch| databases.contains(&watch.database);
            if watches.iter().any(|watch| concerned(&watch)) && is_alive(key) {
                watches
                    .iter()
                    .filter(concerned)
                    .for_each(|watch| watch.watcher.mark());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watcher_hears_of_its_keys_and_of_no_others() {
        let mut watchers = Watchers::default();
        let [one, other] = [Arc::new(Watcher::default()), Arc::default()];
        assert_eq!(watchers.add(0, b"k", true, &one), Watched::First);
        assert_eq!(watchers.add(0, b"k", true, &one), Watched::Already);
        assert_eq!(watchers.add(0, b"k", true, &other), Watched::Too);
        assert_eq!(watchers.add(1, b"k", true, &other), Watched::First);
        watchers.mark(1, b"k", false);
        assert!(!one.is_marked() && other.is_marked());
        watchers.mark(0, b"l", false);
        assert!(!one.is_marked());
        watchers.mark(0, b"k", false);
        assert!(one.is_marked());
        assert!(!watchers.remove(0, b"k", &one));
        assert!(watchers.remove(0, b"k", &other));
        assert!(!watchers.remove(0, b"k", &other));
        assert!(watchers.remove(1, b"k", &other));
        assert!(watchers.keys.is_empty());
        assert_eq!((Arc::strong_count(&one), Arc::strong_count(&other)), (1, 1));
    }

    #[test]
    fn that_a_missing_key_is_removed_is_no_change() {
        let mut watchers = Watchers::default();
        let [missing, there] = [Arc::new(Watcher::default()), Arc::default()];
        watchers.add(0, b"k", false, &missing);
        watchers.add(0, b"k", true, &there);
        watchers.mark(0, b"k", true);
        assert!(!missing.is_marked() && there.is_marked());
        there.unmark();
        watchers.mark_all(1);
        assert!(!there.is_marked());
        watchers.mark_all(0);
        assert!(!missing.is_marked() && there.is_marked());
        watchers.mark(0, b"k", false);
        assert!(missing.is_marked());
    }

    #[test]
    fn swapping_concerns_keys_that_are_in_either_database() {
        let mut watchers = Watchers::default();
        let [one, other, third] = [Arc::new(Watcher::default()), Arc::default(), Arc::default()];
        watchers.add(0, b"k", false, &one);
        watchers.add(2, b"l", true, &other);
        watchers.add(1, b"k", true, &third);
        watchers.mark_swapped([0, 2], |key| key == b"k");
        assert!(one.is_marked() && !other.is_marked() && !third.is_marked());
    }

    #[test]
    fn memory_does_not_stay_for_good() {
        let mut watchers = Watchers::default();
        let watcher = Arc::default();
        let keys: Vec<_> = (0..1_000_u32).map(u32::to_le_bytes).collect();
        for key in &keys {
            watchers.add(0, key, true, &watcher);
        }
        for key in &keys {
            assert!(!watchers.is_spent());
            assert!(watchers.remove(0, key, &watcher));
        }
        assert!(watchers.is_spent());
        assert_eq!(Arc::strong_count(&watcher), 1);
    }
}
