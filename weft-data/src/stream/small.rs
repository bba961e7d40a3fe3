//! The packed form: a stream without groups whose entries are one small node.
//!
//! ```text
//! packed = tag, items (2), last id (16), greatest removed id (16), entries added (8), node
//! node   = first id (16), last id (16), removed (2), bytes in Redis's form (2), end of the names (2), bytes as `node` lays them out
//! ```
//! All numbers are little endian. A stream without entries has a node of zeros without bytes.

use super::node::{Node, View};
use super::text::Reader;
use super::{Id, Stream};
use crate::collection::{Kind, PACKED_MAX};
use crate::tree::Tree;

const ITEMS: usize = 1;
const LAST_ID: usize = ITEMS + 2;
const MAX_REMOVED: usize = LAST_ID + ID_BYTES;
const ADDED: usize = MAX_REMOVED + ID_BYTES;
const BASE: usize = ADDED + 8;
const NODE_LAST: usize = BASE + ID_BYTES;
const REMOVED: usize = NODE_LAST + ID_BYTES;
const LISTPACK: usize = REMOVED + 2;
const NAMES_END: usize = LISTPACK + 2;
const START: usize = NAMES_END + 2;
const ID_BYTES: usize = 16;

/// Packed bytes to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Small<'a>(pub(super) &'a [u8]);

impl<'a> Small<'a> {
    fn part<const N: usize>(self, at: usize) -> [u8; N] {
        let part = self.0.get(at..).and_then(|rest| rest.first_chunk());
        part.copied().unwrap_or([0; N])
    }

    fn short(self, at: usize) -> usize {
        usize::from(u16::from_le_bytes(self.part(at)))
    }

    fn long(self, at: usize) -> u64 {
        u64::from_le_bytes(self.part(at))
    }

    fn id(self, at: usize) -> Id {
        Id {
            ms: self.long(at),
            seq: self.long(at + 8),
        }
    }

    pub(super) fn len(self) -> usize {
        self.short(ITEMS)
    }

    pub(super) fn last_id(self) -> Id {
        self.id(LAST_ID)
    }

    pub(super) fn max_removed(self) -> Id {
        self.id(MAX_REMOVED)
    }

    pub(super) fn added(self) -> u64 {
        self.long(ADDED)
    }

    pub(super) fn base(self) -> Id {
        self.id(BASE)
    }

    pub(super) fn view(self) -> View<'a> {
        let bytes = self.0.get(START..).unwrap_or_default();
        let names_end = self.short(NAMES_END);
        let (names, entries) = bytes.split_at_checked(names_end).unwrap_or_default();
        let mut names = Reader(names);
        let name_count = names.number().unwrap_or_default();
        View {
            base: self.base(),
            names: names.0,
            name_count: name_count as usize,
            entries,
        }
    }

    /// The same as a large one.
    pub(super) fn to_stream(self) -> Stream {
        let len = self.len();
        let mut stream = Stream {
            last_id: self.last_id(),
            max_removed: self.max_removed(),
            added: self.added(),
            ..Stream::default()
        };
        if len > 0 {
            stream.nodes = Tree::from_leaves([Node {
                base: self.base(),
                last: self.id(NODE_LAST),
                items: len as u32,
                removed: self.short(REMOVED) as u32,
                listpack_bytes: self.short(LISTPACK) as u32,
                names_end: self.short(NAMES_END) as u32,
                bytes: self.0.get(START..).unwrap_or_default().to_vec(),
            }]);
            stream.node_count = 1;
        }
        stream
    }
}

/// Writes a stream into `bytes`, if it can be packed.
pub(super) fn pack(stream: &Stream, bytes: &mut Vec<u8>) -> bool {
    if stream.node_count > 1 || !stream.groups.is_empty() {
        return false;
    }
    let node = stream.nodes.first();
    let short = |number: u32| u16::try_from(number).map(u16::to_le_bytes);
    let counts = node.map_or([Ok([0; 2]); 4], |node| {
        [
            short(node.items),
            short(node.removed),
            short(node.listpack_bytes),
            short(node.names_end),
        ]
    });
    let [Ok(items), Ok(removed), Ok(listpack_bytes), Ok(names_end)] = counts else {
        return false;
    };
    let rest = node.map_or(&[][..], |node| &node.bytes);
    if START + rest.len() > PACKED_MAX {
        return false;
    }
    bytes.clear();
    bytes.push(Kind::Stream.tag());
    bytes.extend_from_slice(&items);
    push_id(bytes, stream.last_id);
    push_id(bytes, stream.max_removed);
    bytes.extend_from_slice(&stream.added.to_le_bytes());
    push_id(bytes, node.map_or(Id::MIN, |node| node.base));
    push_id(bytes, node.map_or(Id::MIN, |node| node.last));
    for part in [removed, listpack_bytes, names_end] {
        bytes.extend_from_slice(&part);
    }
    bytes.extend_from_slice(rest);
    true
}

fn push_id(bytes: &mut Vec<u8>, id: Id) {
    bytes.extend_from_slice(&id.ms.to_le_bytes());
    bytes.extend_from_slice(&id.seq.to_le_bytes());
}
