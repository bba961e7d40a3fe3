//! Removing entries: the oldest ones, or single ones.

use super::{Id, Stream};

/// Up to where entries are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Until no more than so many are left.
    Length(u64),
    /// Until none is left with a lower id.
    Id(Id),
}

/// What happens to entries that groups have yet to deliver, or to have acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// They are removed, and stay pending.
    #[default]
    Keep,
    /// They are removed, and are pending no more.
    Delete,
    /// They are left alone.
    Acked,
}

/// A way to remove the oldest entries.
#[derive(Clone, Copy, Debug)]
pub struct Trim {
    /// Up to where.
    pub bound: Bound,
    /// Only whole nodes.
    pub approximate: bool,
    /// At most so many, if it is approximate.
    pub limit: Option<u64>,
    /// What groups have to do with it.
    pub references: References,
}

/// What came of removing an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// There is no such entry.
    Missing,
    /// It is gone.
    Deleted,
    /// A group needs it.
    Needed,
}

impl Stream {
    /// Removes the oldest entries and says how many; `each` gets their ids, unless groups have nothing to do with it.
    pub fn trim(&mut self, trim: Trim, mut each: impl FnMut(Id)) -> u64 {
        let len = self.nodes.len();
        let surplus = match trim.bound {
            Bound::Length(most) => len.saturating_sub(most),
            Bound::Id(least) => self.as_ref().rank(least),
        };
        if surplus == 0 {
            return 0;
        }
        match trim.references {
            References::Keep => {
                let count = if trim.approximate {
                    self.whole_nodes(trim)
                } else {
                    surplus
                };
                self.remove_first(count);
                count
            }
            // Redis removes nodes whole only if it need not look at their entries.
            _ if trim.approximate => 0,
            References::Delete => {
                let ids = self.first_ids(surplus);
                self.remove_first(surplus);
                for id in &ids {
                    self.forget(*id);
                    each(*id);
                }
                surplus
            }
            References::Acked => {
                let candidates = match trim.bound {
                    Bound::Length(_) => len,
                    Bound::Id(_) => surplus,
                };
                let mut removed = 0;
                for id in self.first_ids(candidates) {
                    if removed == surplus {
                        break;
                    }
                    if !self.is_needed(id) {
                        self.take(id);
                        removed += 1;
                        each(id);
                    }
                }
                removed
            }
        }
    }

    /// How many entries the nodes have that can be removed whole.
    fn whole_nodes(&self, trim: Trim) -> u64 {
        let len = self.nodes.len();
        let mut removed = 0;
        for (_, node) in self.nodes.leaves_from(0) {
            let after = removed + u64::from(node.items);
            let fits = match trim.bound {
                Bound::Length(most) => len - after >= most,
                Bound::Id(least) => node.last < least,
            };
            if !fits || trim.limit.is_some_and(|limit| after > limit) {
                break;
            }
            removed = after;
        }
        removed
    }

    fn first_ids(&self, count: u64) -> Vec<Id> {
        let mut ids = Vec::with_capacity(count as usize);
        self.as_ref()
            .each(0..count, false, |entry| ids.push(entry.id));
        ids
    }

    fn remove_first(&mut self, count: u64) {
        self.remove_ranks(0, count);
    }

    fn remove_ranks(&mut self, start: u64, end: u64) {
        let mut whole = 0;
        self.nodes.remove_range(start..end, |node, range| {
            whole += u64::from(range.len() == node.items as usize);
        });
        self.node_count -= whole;
    }

    /// Removes the entry with this id, if there is one.
    fn take(&mut self, id: Id) -> bool {
        let Some(rank) = self.as_ref().rank_of(id) else {
            return false;
        };
        self.remove_ranks(rank, rank + 1);
        true
    }

    /// Whether a group has yet to deliver an entry, or to have it acknowledged.
    fn is_needed(&self, id: Id) -> bool {
        self.groups.iter().any(|group| group.needs(id))
    }

    /// Whether a group waits for an entry to be acknowledged.
    #[must_use]
    pub fn is_pending(&self, id: Id) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| group.pending(id).is_some())
    }

    /// An entry is pending with nobody any more.
    fn forget(&mut self, id: Id) {
        let names: Vec<_> = self
            .groups
            .iter()
            .filter(|group| group.pending(id).is_some())
            .map(|group| group.name().clone())
            .collect();
        for name in names {
            self.groups.edit(&*name, |group| group.acknowledge(id));
        }
    }

    /// Removes an entry. Groups may need even a missing one; it is pending no more if that is wanted.
    pub fn delete(&mut self, id: Id, references: References) -> Deletion {
        if references == References::Acked && self.is_needed(id) {
            return Deletion::Needed;
        }
        if references == References::Delete {
            self.forget(id);
        }
        if !self.take(id) {
            return Deletion::Missing;
        }
        self.max_removed = self.max_removed.max(id);
        Deletion::Deleted
    }
}
