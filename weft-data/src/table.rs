//! Handles by hash, in an order that growth does not change.
//!
//! Owns a tree over the 32 high bits of hashes, the *positions*: segments of up to 128 entries ordered by position, and inner nodes that
//! deal out 8 bits each. A segment covers a range of positions; a full one becomes two, two sparse neighbours become one, and nothing
//! else moves, so that no operation touches more than one segment and its way. A scan goes through the positions in ascending order, so
//! that its cursor is exact across growth and shrinking. Inner nodes count what is below them: a random entry is found by its number.
//! Does not know keys: who calls says whether a handle is the one looked for. `clone` is O(1) and is a snapshot.

use std::fmt;
use std::sync::Arc;

use crate::cow_vec::COUNTS_BYTES;
use crate::slab::Handle;

/// Handles, found by the hashes of what they name.
#[derive(Clone)]
pub struct Table {
    root: Node,
    len: usize,
    bytes: usize,
}

#[derive(Clone)]
enum Node {
    Segment(Arc<Segment>),
    Inner(Arc<Inner>),
}

#[derive(Default)]
struct Segment {
    /// In ascending order.
    entries: Vec<Entry>,
}

/// A position in the high half, a handle in the low one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u64);

struct Inner {
    /// Which child has the positions whose next 8 bits are these.
    index: [u8; DIGITS],
    /// In the order of their positions.
    children: Vec<Child>,
}

#[derive(Clone)]
struct Child {
    node: Node,
    /// Entries below.
    count: u32,
    /// The first digit that it covers.
    first: u8,
    /// Bits of the digit that all its positions share: it covers `DIGITS >> bits` digits.
    bits: u8,
}

/// Asks the processor to load what lies at an address, which will be read soon.
pub type Load = fn(*const u8);

/// Entries that a segment holds before it becomes two.
const SEGMENT_MAX: usize = 128;
/// Entries of two neighbours that become one segment.
const MERGED_MAX: usize = SEGMENT_MAX / 2;
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
const POSITION_BITS: u32 = 32;
/// Segments that one call of `scan` looks through beyond those that it needs.
const SCAN_SEGMENTS_MAX: usize = 16;

impl Entry {
    fn new(position: u32, handle: Handle) -> Entry {
        Entry(u64::from(position) << 32 | u64::from(handle.bits()))
    }

    fn position(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn handle(self) -> Handle {
        Handle::from_bits(self.0 as u32)
    }
}

/// The part of a hash that orders entries.
#[inline]
fn position_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The digit of `position` that an inner node below `above` bits deals out.
#[inline]
fn digit(position: u32, above: u32) -> usize {
    (position >> (POSITION_BITS - DIGIT_BITS - above)) as usize % DIGITS
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("len", &self.len)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new() -> Table {
        let segment = Segment::default();
        Table {
            len: 0,
            bytes: segment.bytes(),
            root: Node::Segment(Arc::new(segment)),
        }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes allocated, shared or not.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.bytes
    }

    /// The entry of this hash for which `is` says true.
    #[inline]
    pub fn find(&self, hash: u64, mut is: impl FnMut(Handle) -> bool) -> Option<Handle> {
        let position = position_of(hash);
        let (segment, depth) = self.segment_of(position);
        let from = segment.first_at(position, depth);
        segment.entries[from..]
            .iter()
            .take_while(|entry| entry.position() == position)
            .map(|entry| entry.handle())
            .find(|&handle| is(handle))
    }

    /// Asks for what a search for this hash reads where its way ends.
    pub fn load_ahead(&self, hash: u64, load: Load) {
        let position = position_of(hash);
        let (segment, shared) = self.segment_of(position);
        if let Some(entry) = segment.entries.get(segment.guess(position, shared)) {
            load((&raw const *entry).cast());
        }
    }

    /// Adds an entry. The table does not look whether there is one like it.
    pub fn insert(&mut self, hash: u64, handle: Handle) {
        let position = position_of(hash);
        let entry = Entry::new(position, handle);
        if let Node::Segment(segment) = &mut self.root {
            if segment.entries.len() < SEGMENT_MAX {
                Arc::make_mut(segment).insert(entry, 0, &mut self.bytes);
                self.len += 1;
                return;
            }
            self.root = Node::above(segment, &mut self.bytes);
        }
        self.root.insert(entry, 0, 0, &mut self.bytes);
        self.len += 1;
    }

    /// Removes the entry of this hash and handle; says whether there was one.
    pub fn remove(&mut self, hash: u64, handle: Handle) -> bool {
        let entry = Entry::new(position_of(hash), handle);
        let removed = self.root.remove(entry, 0, 0, &mut self.bytes);
        if removed {
            self.root.become_only_child(&mut self.bytes);
            self.len -= 1;
        }
        removed
    }

    /// Puts `new` in the place of the handle `old` of this hash; says whether there was one.
    pub fn replace(&mut self, hash: u64, old: Handle, new: Handle) -> bool {
        if self.find(hash, |found| found == old).is_none() {
            return false;
        }
        let position = position_of(hash);
        let (mut node, mut above) = (&mut self.root, 0);
        loop {
            match node {
                Node::Segment(segment) => {
                    Arc::make_mut(segment)
                        .replace(Entry::new(position, old), Entry::new(position, new));
                    return true;
                }
                Node::Inner(inner) => {
                    let inner = Arc::make_mut(inner);
                    let at = usize::from(inner.index[digit(position, above)]);
                    node = &mut inner.children[at].node;
                    above += DIGIT_BITS;
                }
            }
        }
    }

    /// Gives `each` the entries from `cursor` on, in the order of their positions, until it had `at_least` or there are no more.
    /// Returns the cursor of the next call, 0 at the end. A scan starts at 0; a cursor has 32 bits.
    ///
    /// What is in the table from the first call to the last is given at least once, whatever happens in between.
    pub fn scan(&self, cursor: u64, at_least: usize, mut each: impl FnMut(Handle)) -> u64 {
        let Ok(mut from) = u32::try_from(cursor) else {
            return 0;
        };
        let mut given = 0;
        let mut spare = SCAN_SEGMENTS_MAX;
        loop {
            let (segment, end) = self.segment_and_end(from);
            let mut last = None;
            for entry in &segment.entries[segment
                .entries
                .partition_point(|entry| entry.position() < from)..]
            {
                if given >= at_least && last != Some(entry.position()) {
                    return entry.position().into();
                }
                each(entry.handle());
                given += 1;
                last = Some(entry.position());
            }
            let Ok(next) = u32::try_from(end) else {
                return 0;
            };
            if last.is_none() {
                spare -= 1;
                if spare == 0 {
                    return next.into();
                }
            }
            from = next;
        }
    }

    /// The entry with this number in the order of positions.
    #[must_use]
    pub fn nth(&self, mut number: usize) -> Option<Handle> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Segment(segment) => {
                    return segment.entries.get(number).map(|entry| entry.handle());
                }
                Node::Inner(inner) => {
                    node = inner.children.iter().find_map(|child| {
                        let count = child.count as usize;
                        if number < count {
                            return Some(&child.node);
                        }
                        number -= count;
                        None
                    })?;
                }
            }
        }
    }

    /// An entry of which each is as likely as any other, if `draw` gives each number below its argument as likely as any other.
    pub fn random(&self, draw: &mut impl FnMut(u64) -> u64) -> Option<Handle> {
        match self.len {
            0 => None,
            len => self.nth(draw(len as u64) as usize),
        }
    }

    /// All entries in the order of their positions.
    pub fn iter(&self) -> impl Iterator<Item = Handle> + '_ {
        let mut from = Some(0);
        std::iter::from_fn(move || {
            let (segment, end) = self.segment_and_end(from?);
            from = u32::try_from(end).ok();
            Some(segment.entries.iter().map(|entry| entry.handle()))
        })
        .flatten()
    }

    /// The segment that has `position`, and how many bits all its positions share.
    #[inline]
    fn segment_of(&self, position: u32) -> (&Segment, u32) {
        let (mut node, mut above, mut shared) = (&self.root, 0, 0);
        loop {
            match node {
                Node::Segment(segment) => return (segment, shared),
                Node::Inner(inner) => {
                    let child = &inner.children[usize::from(inner.index[digit(position, above)])];
                    shared = above + u32::from(child.bits);
                    above += DIGIT_BITS;
                    node = &child.node;
                }
            }
        }
    }

    /// The segment that has `position`, and the first position behind it.
    fn segment_and_end(&self, position: u32) -> (&Segment, u64) {
        let (segment, shared) = self.segment_of(position);
        let size = 1_u64 << (POSITION_BITS - shared);
        (segment, (u64::from(position) & !(size - 1)) + size)
    }
}

impl Clone for Segment {
    /// Keeps the room for more, so that a copy takes as many bytes as what it was copied from.
    fn clone(&self) -> Self {
        let mut entries = Vec::with_capacity(self.entries.capacity());
        entries.extend_from_slice(&self.entries);
        Segment { entries }
    }
}

impl Segment {
    fn bytes(&self) -> usize {
        COUNTS_BYTES + size_of::<Self>() + self.entries.capacity() * size_of::<Entry>()
    }

    /// A segment of `entries`, with the room that suits them.
    fn of(entries: &[Entry]) -> Segment {
        let mut copy = Vec::with_capacity(Self::room(entries.len()));
        copy.extend_from_slice(entries);
        Segment { entries: copy }
    }

    /// The room for `len` entries: sizes that allocators have.
    fn room(len: usize) -> usize {
        match len {
            0..=4 => len,
            5..=64 => len.next_multiple_of(8),
            _ => len.next_multiple_of(16),
        }
    }

    /// About where the first entry at `position` is: positions are spread evenly.
    #[inline]
    fn guess(&self, position: u32, shared: u32) -> usize {
        let share = u64::from(position.checked_shl(shared).unwrap_or(0));
        ((share * self.entries.len() as u64) >> POSITION_BITS) as usize
    }

    /// The index of the first entry at `position` or behind it: it is guessed, then looked for beside.
    #[inline]
    fn first_at(&self, position: u32, shared: u32) -> usize {
        let entries = self.entries.as_slice();
        let mut at = self.guess(position, shared);
        while at > 0 && entries[at - 1].position() >= position {
            at -= 1;
        }
        while at < entries.len() && entries[at].position() < position {
            at += 1;
        }
        at
    }

    fn insert(&mut self, entry: Entry, shared: u32, bytes: &mut usize) {
        let len = self.entries.len();
        if len == self.entries.capacity() {
            self.entries.reserve_exact(Self::room(len + 1) - len);
            *bytes += (self.entries.capacity() - len) * size_of::<Entry>();
        }
        let at = self.place_of(entry, shared);
        self.entries.insert(at, entry);
    }

    /// Where the entry stands or belongs.
    #[inline]
    fn place_of(&self, entry: Entry, shared: u32) -> usize {
        let mut at = self.first_at(entry.position(), shared);
        while self.entries.get(at).is_some_and(|other| *other < entry) {
            at += 1;
        }
        at
    }

    /// Removes the entry; says whether it was there.
    fn remove(&mut self, entry: Entry, shared: u32, bytes: &mut usize) -> bool {
        let at = self.place_of(entry, shared);
        if self.entries.get(at) != Some(&entry) {
            return false;
        }
        self.entries.remove(at);
        let (room, before) = (Self::room(self.entries.len()), self.entries.capacity());
        if room + 16 < before {
            self.entries.shrink_to(room);
            *bytes -= (before - self.entries.capacity()) * size_of::<Entry>();
        }
        true
    }

    fn replace(&mut self, old: Entry, new: Entry) {
        if let Ok(at) = self.entries.binary_search(&old) {
            self.entries.remove(at);
            let at = self.entries.partition_point(|&other| other < new);
            self.entries.insert(at, new);
        }
    }
}

impl Clone for Inner {
    fn clone(&self) -> Self {
        let mut children = Vec::with_capacity(self.children.capacity());
        children.extend_from_slice(&self.children);
        Inner {
            index: self.index,
            children,
        }
    }
}

impl Node {
    /// An inner node whose only child is `segment`.
    fn above(segment: &Arc<Segment>, bytes: &mut usize) -> Node {
        let count = segment.entries.len() as u32;
        let child = Child {
            node: Node::Segment(Arc::clone(segment)),
            count,
            first: 0,
            bits: 0,
        };
        let mut children = Vec::with_capacity(2);
        children.push(child);
        let inner = Inner {
            index: [0; DIGITS],
            children,
        };
        *bytes += inner.bytes();
        Node::Inner(Arc::new(inner))
    }

    /// Adds an entry below, whose first `shared` bits all positions below share; there is room, or a segment becomes two.
    fn insert(&mut self, entry: Entry, shared: u32, above: u32, bytes: &mut usize) {
        match self {
            Node::Segment(segment) => Arc::make_mut(segment).insert(entry, shared, bytes),
            Node::Inner(inner) => Arc::make_mut(inner).insert(entry, above, bytes),
        }
    }

    /// Removes an entry below, whose first `shared` bits all positions below share; says whether it was there.
    fn remove(&mut self, entry: Entry, shared: u32, above: u32, bytes: &mut usize) -> bool {
        match self {
            Node::Segment(segment) => Arc::make_mut(segment).remove(entry, shared, bytes),
            Node::Inner(inner) => Arc::make_mut(inner).remove(entry, above, bytes),
        }
    }

    /// Takes the place of an inner node that has one segment only.
    fn become_only_child(&mut self, bytes: &mut usize) {
        if let Node::Inner(inner) = self
            && let [
                Child {
                    node: Node::Segment(only),
                    ..
                },
            ] = inner.children.as_slice()
        {
            *bytes -= inner.bytes();
            *self = Node::Segment(Arc::clone(only));
        }
    }
}

impl Inner {
    fn bytes(&self) -> usize {
        COUNTS_BYTES + size_of::<Self>() + self.children.capacity() * size_of::<Child>()
    }

    fn insert(&mut self, entry: Entry, above: u32, bytes: &mut usize) {
        let digit = digit(entry.position(), above);
        loop {
            let at = usize::from(self.index[digit]);
            let child = &mut self.children[at];
            let shared = above + u32::from(child.bits);
            match &child.node {
                Node::Segment(segment)
                    if segment.entries.len() >= SEGMENT_MAX && shared < POSITION_BITS =>
                {
                    if u32::from(child.bits) < DIGIT_BITS {
                        self.split(at, above, bytes);
                    } else {
                        child.node = Node::above(segment, bytes);
                    }
                }
                _ => {
                    child.count += 1;
                    child.node.insert(entry, shared, above + DIGIT_BITS, bytes);
                    return;
                }
            }
        }
    }

    /// Makes the segment of child `at` two, by the next bit of the digit.
    fn split(&mut self, at: usize, above: u32, bytes: &mut usize) {
        let child = &mut self.children[at];
        let Node::Segment(segment) = &child.node else {
            return;
        };
        let middle = child.first + (DIGITS >> (child.bits + 1)) as u8;
        let (left, right) = segment.entries.split_at(
            segment
                .entries
                .partition_point(|entry| digit(entry.position(), above) < usize::from(middle)),
        );
        let (left, right) = (Segment::of(left), Segment::of(right));
        *bytes = *bytes - segment.bytes() + left.bytes() + right.bytes();
        child.bits += 1;
        let upper = Child {
            count: right.entries.len() as u32,
            node: Node::Segment(Arc::new(right)),
            first: middle,
            bits: child.bits,
        };
        child.count = left.entries.len() as u32;
        child.node = Node::Segment(Arc::new(left));
        let capacity = self.children.capacity();
        if self.children.len() == capacity {
            self.children.reserve_exact((capacity / 4).max(2));
            *bytes += (self.children.capacity() - capacity) * size_of::<Child>();
        }
        self.children.insert(at + 1, upper);
        for number in &mut self.index[usize::from(middle)..] {
            *number += 1;
        }
    }

    fn remove(&mut self, entry: Entry, above: u32, bytes: &mut usize) -> bool {
        let mut at = usize::from(self.index[digit(entry.position(), above)]);
        let child = &mut self.children[at];
        let shared = above + u32::from(child.bits);
        if !child.node.remove(entry, shared, above + DIGIT_BITS, bytes) {
            return false;
        }
        child.count -= 1;
        child.node.become_only_child(bytes);
        while let Some(lower) = self.mergeable(at) {
            self.merge(lower, bytes);
            at = lower;
        }
        true
    }

    /// The lower one of child `at` and the neighbour that it was split from, if both together are sparse.
    fn mergeable(&self, at: usize) -> Option<usize> {
        let child = &self.children[at];
        if child.bits == 0 {
            return None;
        }
        let neighbour_first = child.first ^ (DIGITS >> child.bits) as u8;
        let other = usize::from(self.index[usize::from(neighbour_first)]);
        let neighbour = &self.children[other];
        let are_segments = matches!(
            (&child.node, &neighbour.node),
            (Node::Segment(_), Node::Segment(_))
        );
        let is_sparse = child.count as usize + neighbour.count as usize <= MERGED_MAX;
        (are_segments && is_sparse && child.bits == neighbour.bits).then_some(at.min(other))
    }

    /// Makes the segments of children `lower` and `lower + 1` one.
    fn merge(&mut self, lower: usize, bytes: &mut usize) {
        let capacity = self.children.capacity();
        let upper = self.children.remove(lower + 1);
        for number in &mut self.index[usize::from(upper.first)..] {
            *number -= 1;
        }
        if self.children.len() * 2 < capacity {
            self.children
                .shrink_to(self.children.len() + self.children.len() / 4);
            *bytes -= (capacity - self.children.capacity()) * size_of::<Child>();
        }
        let child = &mut self.children[lower];
        child.bits -= 1;
        child.count += upper.count;
        if let (Node::Segment(left), Node::Segment(right)) = (&child.node, &upper.node) {
            let mut entries =
                Vec::with_capacity(Segment::room(left.entries.len() + right.entries.len()));
            entries.extend_from_slice(&left.entries);
            entries.extend_from_slice(&right.entries);
            let merged = Segment { entries };
            *bytes = *bytes - left.bytes() - right.bytes() + merged.bytes();
            child.node = Node::Segment(Arc::new(merged));
        }
    }
}

#[cfg(test)]
#[path = "table/tests.rs"]
mod tests;
