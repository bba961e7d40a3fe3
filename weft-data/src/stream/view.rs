//! Reading a stream in either form.

use std::hash::Hasher;
use std::ops::Range;

use super::node::Entry;
use super::small::Small;
use super::{Group, Id, Stream};
use crate::collection::{Collection, CollectionRef};

/// A stream to be read.
#[derive(Clone, Copy, Debug)]
pub struct StreamRef<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Small(Small<'a>),
    Large(&'a Stream),
}

impl<'a> From<CollectionRef<'a>> for StreamRef<'a> {
    /// # Panics
    /// If the collection is no stream.
    fn from(collection: CollectionRef<'a>) -> Self {
        match collection {
            CollectionRef::Packed(bytes) => Self(Form::Small(Small(bytes))),
            CollectionRef::Large(Collection::Stream(stream)) => Self(Form::Large(stream)),
            CollectionRef::Large(other) => unreachable!("{other:?} is no stream"),
        }
    }
}

/// Up to so many nodes the nodes of Redis's radix tree are counted.
const COUNTED_NODES_MAX: u64 = 1024;

impl<'a> StreamRef<'a> {
    pub(super) const fn of(stream: &'a Stream) -> Self {
        Self(Form::Large(stream))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(self) -> u64 {
        match self.0 {
            Form::Small(small) => small.len() as u64,
            Form::Large(stream) => stream.nodes.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The id that the next entry's has to be greater than.
    #[must_use]
    pub fn last_id(self) -> Id {
        match self.0 {
            Form::Small(small) => small.last_id(),
            Form::Large(stream) => stream.last_id,
        }
    }

    /// The greatest id that was removed by itself, and not by trimming.
    #[must_use]
    pub fn max_removed(self) -> Id {
        match self.0 {
            Form::Small(small) => small.max_removed(),
            Form::Large(stream) => stream.max_removed,
        }
    }

    /// How many entries were ever added.
    #[must_use]
    pub fn added(self) -> u64 {
        match self.0 {
            Form::Small(small) => small.added(),
            Form::Large(stream) => stream.added,
        }
    }

    /// How many nodes it has.
    #[must_use]
    pub fn nodes(self) -> u64 {
        match self.0 {
            Form::Small(small) => u64::from(small.len() > 0),
            Form::Large(stream) => stream.node_count,
        }
    }

    /// How many nodes the radix tree has in which Redis keeps as many nodes of entries: each branch, each leaf, and each piece of a
    /// path without branches. An estimate for streams of more than 1,024 nodes.
    #[must_use]
    pub fn radix_nodes(self) -> u64 {
        const KEY_BYTES: u32 = 16;
        let stream = match self.0 {
            Form::Small(_) => return 1 + self.nodes(),
            Form::Large(stream) => stream,
        };
        if stream.node_count > COUNTED_NODES_MAX {
            return stream.node_count * 2 + stream.node_count / 64;
        }
        let mut count = 0;
        // The depths of the branches above the last key, and whether there was one before.
        let mut branches: Vec<u32> = Vec::new();
        let mut before: Option<u128> = None;
        let piece = |from: Option<&u32>, to: u32| u64::from(to > from.map_or(0, |from| from + 1));
        let close = |branches: &mut Vec<u32>, count: &mut u64, shared: Option<u32>| {
            while let Some(depth) = branches.last().copied() {
                if shared.is_some_and(|shared| depth <= shared) {
                    break;
                }
                branches.pop();
                let parent = branches.last().copied();
                let parent = match (parent, shared) {
                    (Some(parent), Some(shared)) => Some(parent.max(shared)),
                    (parent, shared) => parent.or(shared),
                };
                *count += 1 + piece(parent.as_ref(), depth);
            }
        };
        for (_, node) in stream.nodes.leaves_from(0) {
            let key = u128::from(node.base.ms) << 64 | u128::from(node.base.seq);
            if let Some(before) = before {
                let shared = (before ^ key).leading_zeros() / 8;
                let deepest = branches
                    .last()
                    .copied()
                    .map_or(shared, |last| last.max(shared));
                count += 1 + piece(Some(&deepest), KEY_BYTES);
                close(&mut branches, &mut count, Some(shared));
                if branches.last() != Some(&shared) {
                    branches.push(shared);
                }
            }
            before = Some(key);
        }
        if before.is_some() {
            count += 1 + piece(branches.last(), KEY_BYTES);
            close(&mut branches, &mut count, None);
            count
        } else {
            1
        }
    }

    /// How many entries have lower ids.
    #[must_use]
    pub fn rank(self, id: Id) -> u64 {
        self.place(id).0
    }

    /// The rank of the entry with this id, if there is one.
    #[must_use]
    pub fn rank_of(self, id: Id) -> Option<u64> {
        let (rank, is_there) = self.place(id);
        is_there.then_some(rank)
    }

    fn place(self, id: Id) -> (u64, bool) {
        if id > self.last_id() {
            return (self.len(), false);
        }
        match self.0 {
            Form::Small(small) => {
                let (rank, is_there) = small.view().rank(id);
                (rank as u64, is_there)
            }
            Form::Large(stream) => {
                let Some((first, node)) = stream.nodes.seek(|bound| *bound <= id) else {
                    return (0, false);
                };
                let (rank, is_there) = if id > node.last {
                    (node.items as usize, false)
                } else {
                    node.view().rank(id)
                };
                (first + rank as u64, is_there)
            }
        }
    }

    /// The ranks of the entries whose ids are in a range, both ends included.
    #[must_use]
    pub fn ranks(self, from: Id, to: Id) -> Range<u64> {
        let start = self.rank(from);
        let end = match to.next() {
            Some(after) => self.rank(after),
            None => self.len(),
        };
        start..end.max(start)
    }

    /// Calls `each` with the entries that have these ranks.
    pub fn each(self, ranks: Range<u64>, backwards: bool, mut each: impl FnMut(Entry<'a>)) {
        let mut left = ranks.end.min(self.len()).saturating_sub(ranks.start) as usize;
        if left == 0 {
            return;
        }
        let stream = match self.0 {
            Form::Small(small) => {
                let entries = small.view().iter_from(ranks.start as usize);
                let entries = entries.take(left);
                if backwards {
                    entries.collect::<Vec<_>>().into_iter().rev().for_each(each);
                } else {
                    entries.for_each(each);
                }
                return;
            }
            Form::Large(stream) => stream,
        };
        if backwards {
            let last = ranks.start + left as u64 - 1;
            let mut found = Vec::new();
            for (first, node) in stream.nodes.leaves_back_from(last) {
                let behind = (last + 1).saturating_sub(first).min(u64::from(node.items)) as usize;
                let wanted = behind.min(left);
                found.extend(node.view().iter_from(behind - wanted).take(wanted));
                while let Some(entry) = found.pop() {
                    each(entry);
                    left -= 1;
                    if left == 0 {
                        return;
                    }
                }
            }
        } else {
            for (first, node) in stream.nodes.leaves_from(ranks.start) {
                let skipped = ranks.start.saturating_sub(first) as usize;
                for entry in node.view().iter_from(skipped) {
                    each(entry);
                    left -= 1;
                    if left == 0 {
                        return;
                    }
                }
            }
        }
    }

    /// The entry with this id.
    #[must_use]
    pub fn get(self, id: Id) -> Option<Entry<'a>> {
        match self.0 {
            Form::Small(small) => small.view().iter().find(|entry| entry.id == id),
            Form::Large(stream) => {
                let (_, node) = stream.nodes.seek(|bound| *bound <= id)?;
                let mut entries = node.view().iter();
                entries
                    .find(|entry| entry.id >= id)
                    .filter(|entry| entry.id == id)
            }
        }
    }

    /// The first entry.
    #[must_use]
    pub fn first(self) -> Option<Entry<'a>> {
        match self.0 {
            Form::Small(small) => small.view().iter().next(),
            Form::Large(stream) => stream.nodes.first()?.view().iter().next(),
        }
    }

    /// The last entry.
    #[must_use]
    pub fn last(self) -> Option<Entry<'a>> {
        match self.0 {
            Form::Small(small) => {
                let last = small.len().checked_sub(1)?;
                small.view().iter_from(last).next()
            }
            Form::Large(stream) => {
                let node = stream.nodes.last()?;
                node.view().iter_from(node.items as usize - 1).next()
            }
        }
    }

    /// How many groups there are.
    #[must_use]
    pub fn groups_len(self) -> u64 {
        match self.0 {
            Form::Small(_) => 0,
            Form::Large(stream) => stream.groups.len(),
        }
    }

    /// The groups, in the order of their names, from one index on.
    pub fn groups_from(self, index: u64) -> impl Iterator<Item = &'a Group> {
        let groups = match self.0 {
            Form::Small(_) => None,
            Form::Large(stream) => Some(stream.groups.from(index)),
        };
        groups.into_iter().flatten()
    }

    /// The group of that name.
    #[must_use]
    pub fn group(self, name: &[u8]) -> Option<&'a Group> {
        match self.0 {
            Form::Small(_) => None,
            Form::Large(stream) => stream.groups.get(name),
        }
    }

    /// Whether nothing was removed by itself from this id on.
    pub(super) fn is_whole_from(self, id: Id) -> bool {
        let removed = self.max_removed();
        self.is_empty() || removed == Id::MIN || id > removed
    }

    /// How many entries were added up to the one with this id, as far as that can be known.
    #[must_use]
    pub fn added_up_to(self, id: Id) -> Option<u64> {
        let added = self.added();
        if added == 0 {
            return Some(0);
        }
        let (len, last, removed) = (self.len(), self.last_id(), self.max_removed());
        if len == 0 && id <= last {
            return Some(added);
        }
        if id != Id::MIN && id < removed {
            return None;
        }
        if id >= last {
            return (id == last).then_some(added);
        }
        let first = self.first()?.id;
        if removed != Id::MIN && removed >= first {
            return None;
        }
        if id < first {
            Some(added - len)
        } else if id == first {
            Some(added - len + 1)
        } else {
            None
        }
    }

    /// How many entries a group has yet to be given, as far as that can be known.
    #[must_use]
    pub fn lag(self, group: &Group) -> Option<u64> {
        let (added, removed) = (self.added(), self.max_removed());
        let Some(first) = self.first().filter(|_| added > 0) else {
            return Some(0);
        };
        if group.last_id < first.id && removed < first.id {
            return Some(self.len());
        }
        let read = match group.entries_read {
            Some(read) if self.is_whole_from(group.last_id) => Some(read),
            _ => self.added_up_to(group.last_id),
        };
        // XSETID may have set counters that contradict each other.
        read.and_then(|read| added.checked_sub(read))
    }

    /// A snapshot.
    #[must_use]
    pub fn to_stream(self) -> Stream {
        match self.0 {
            Form::Small(small) => small.to_stream(),
            Form::Large(stream) => stream.clone(),
        }
    }

    /// Adds what it holds to a hash: entries, what is known of all that there ever were, groups, consumers and what is pending.
    pub fn digest(self, hasher: &mut impl Hasher) {
        hasher.write_u64(self.len());
        self.each(0..self.len(), false, |entry| {
            entry.id.digest(hasher);
            hasher.write_usize(entry.len());
            entry.each(|name, value| {
                name.digest(hasher);
                value.digest(hasher);
            });
        });
        self.last_id().digest(hasher);
        self.max_removed().digest(hasher);
        hasher.write_u64(self.added());
        hasher.write_u64(self.groups_len());
        self.groups_from(0).for_each(|group| group.digest(hasher));
    }
}
