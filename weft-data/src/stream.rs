//! Streams: entries in the order of their ids, and what groups of consumers have read of them.
//!
//! Owns both forms. Packed: one node in a few bytes (`small`). Large: a [`Tree`] whose leaves are nodes of entries (`node`), and the
//! groups, with all that is pending, in trees of their own (`rows`, `group`), so that everything is shared with snapshots and a write
//! copies its path only. Any change of a packed stream is made to a large one of it, which is packed again if it can be. A stream
//! without entries still exists. Knows no keys, writes no replies and reads no clock.

mod group;
mod id;
mod node;
mod rows;
mod small;
mod text;
mod trim;
mod view;

#[cfg(test)]
mod tests;

use self::node::Node;
use self::rows::Rows;
use crate::collection::{Collection, Draft};
use crate::tree::Tree;

pub use self::group::{Consumer, Group, Name, Pending};
pub use self::id::{Id, IdText};
pub use self::node::{Entry, NodeLimit};
pub use self::text::Text;
pub use self::trim::{Bound, Deletion, References, Trim};
pub use self::view::StreamRef;

/// A large stream. Cloning it is O(1) and makes a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    nodes: Tree<Node>,
    node_count: u64,
    last_id: Id,
    max_removed: Id,
    added: u64,
    groups: Rows<Group>,
}

/// The room that the first node of a stream gets, and any further one.
const FIRST_ROOM: usize = 64;
const ROOM: usize = 1024;

impl Stream {
    /// Lets `act` change the stream in a draft, or a new one if there is none, in whichever form.
    pub fn edit<R>(draft: &mut Draft<'_>, act: impl FnOnce(&mut Stream) -> R) -> R {
        match draft {
            Draft::Large(Collection::Stream(stream)) => act(stream),
            Draft::Packed(bytes) => {
                let mut stream = small::Small(bytes).to_stream();
                let result = act(&mut stream);
                if !small::pack(&stream, bytes) {
                    *draft = Draft::Grown(Box::new(Collection::Stream(stream)));
                }
                result
            }
            Draft::Grown(collection) => match &mut **collection {
                Collection::Stream(stream) => act(stream),
                _ => unreachable!("the draft is a stream's"),
            },
            Draft::Large(_) => unreachable!("the draft is a stream's"),
        }
    }

    /// A look at it.
    #[must_use]
    pub const fn as_ref(&self) -> StreamRef<'_> {
        StreamRef::of(self)
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len() as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Bytes allocated, as if none were shared. A count that is kept.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.nodes.allocated_bytes() + self.groups.allocated_bytes()
    }

    /// Appends an entry, whose id is greater than the last one; `fields` are its names and values in turn.
    pub fn add(&mut self, id: Id, fields: &[&[u8]], limit: NodeLimit) {
        debug_assert!(id > self.last_id, "ids ascend");
        let appended = self.nodes.splice_last(|node, more| {
            if !node.is_full_for(fields, limit) {
                node.push(id, fields);
                return false;
            }
            node.bytes.shrink_to_fit();
            more.push(Node::of(id, fields, ROOM));
            true
        });
        if appended.is_none() {
            self.nodes.push_last(Node::of(id, fields, FIRST_ROOM));
        }
        if appended != Some(false) {
            self.node_count += 1;
        }
        self.last_id = id;
        self.added += 1;
    }

    /// Sets what is known of all entries that there ever were.
    pub fn set_ids(&mut self, last_id: Id, added: Option<u64>, max_removed: Option<Id>) {
        self.last_id = last_id;
        self.added = added.unwrap_or(self.added);
        self.max_removed = max_removed.unwrap_or(self.max_removed);
    }

    /// Adds a group; false if there is one of that name.
    pub fn add_group(&mut self, group: Group) -> bool {
        let is_new = self.groups.get(&**group.name()).is_none();
        if is_new {
            self.groups.put(group);
        }
        is_new
    }

    /// Removes a group, and says how many entries were pending; none if there is no such group.
    pub fn remove_group(&mut self, name: &[u8]) -> Option<u64> {
        let group = self.groups.remove(name)?;
        Some(group.pending_len())
    }

    /// Lets `act` change a group. None if there is no such group.
    pub fn edit_group<R>(&mut self, name: &[u8], act: impl FnOnce(&mut Group) -> R) -> Option<R> {
        self.groups.edit(name, act)
    }

    /// Notes that a group was given these entries, in ascending order: all those from its last one on, up to some number.
    pub fn advance_group(&mut self, name: &[u8], ids: &[Id]) {
        let Some(group) = self.groups.get(name) else {
            return;
        };
        let view = self.as_ref();
        let first = view.first().map_or(Id::MAX, |first| first.id);
        let (mut last_id, mut read) = (group.last_id, group.entries_read);
        for id in ids.iter().filter(|id| **id > group.last_id) {
            // Counting on is right if it was right so far, and if nothing behind was removed that would be missed.
            let goes_on = last_id >= first && view.is_whole_from(last_id);
            read = match read {
                Some(read) if goes_on && read < self.added => Some(read + 1),
                _ => view.added_up_to(*id),
            };
            last_id = *id;
        }
        self.groups.edit(name, |group| {
            group.last_id = last_id;
            group.entries_read = read;
        });
    }
}
