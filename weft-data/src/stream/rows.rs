//! Rows in the order of their keys, in a copy-on-write tree: what groups, consumers and pending entries are kept in.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Range;

use crate::tree::{Leaf, Tree};

/// What has a key.
pub(super) trait Row: Clone {
    /// What rows are ordered by.
    type Key: Ord + Clone;

    /// So many rows in one piece.
    const ROOM: usize;

    fn key(&self) -> &Self::Key;

    /// Bytes that it has allocated beside itself, in O(1).
    fn heap_bytes(&self) -> usize;
}

/// Rows, no two with one key. Cloning is O(1) and makes a snapshot.
#[derive(Clone)]
pub(super) struct Rows<R: Row>(Tree<Run<R>>);

impl<R: Row> fmt::Debug for Rows<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<R: Row> Default for Rows<R> {
    fn default() -> Self {
        Self(Tree::new())
    }
}

#[derive(Clone)]
struct Run<R: Row> {
    rows: Vec<R>,
    /// What the rows have allocated.
    outside: usize,
}

impl<R: Row> Run<R> {
    fn of(row: R) -> Self {
        Self {
            outside: row.heap_bytes(),
            rows: vec![row],
        }
    }

    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        R::Key: Borrow<Q>,
    {
        self.rows
            .binary_search_by(|row| row.key().borrow().cmp(key))
    }
}

impl<R: Row> Leaf for Run<R> {
    type Bound = R::Key;

    fn items(&self) -> usize {
        self.rows.len()
    }

    fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<R>() + self.outside
    }

    fn bound(&self) -> R::Key {
        self.rows[0].key().clone()
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= R::ROOM
    }

    fn split(&mut self) -> Self {
        let rows = self.rows.split_off(self.rows.len() / 2);
        let outside = rows.iter().map(R::heap_bytes).sum();
        self.outside -= outside;
        Self { rows, outside }
    }

    fn is_sparse(&self) -> bool {
        self.rows.len() < R::ROOM / 4
    }

    fn has_room_for(&self, right: &Self) -> bool {
        self.rows.len() + right.rows.len() <= R::ROOM * 3 / 4
    }

    fn absorb(&mut self, right: &Self) {
        self.rows.extend_from_slice(&right.rows);
        self.outside += right.outside;
    }

    fn remove(&mut self, range: Range<usize>) {
        let gone: usize = self.rows.drain(range).map(|row| row.heap_bytes()).sum();
        self.outside -= gone;
    }
}

impl<R: Row> Rows<R> {
    pub(super) fn len(&self) -> u64 {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.0.allocated_bytes()
    }

    /// The index of the row with this key, if there is one, else of where it would be.
    pub(super) fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<u64, u64>
    where
        R::Key: Borrow<Q>,
    {
        let Some((first, run)) = self.0.seek(|bound| bound.borrow() <= key) else {
            return Err(0);
        };
        match run.place(key) {
            Ok(at) => Ok(first + at as u64),
            Err(at) => Err(first + at as u64),
        }
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&R>
    where
        R::Key: Borrow<Q>,
    {
        let (_, run) = self.0.seek(|bound| bound.borrow() <= key)?;
        let at = run.place(key).ok()?;
        run.rows.get(at)
    }

    /// Lets `act` change the row with this key, but not its key. None if there is none.
    pub(super) fn edit<Q: Ord + ?Sized, T>(
        &mut self,
        key: &Q,
        act: impl FnOnce(&mut R) -> T,
    ) -> Option<T>
    where
        R::Key: Borrow<Q>,
    {
        let index = self.place(key).ok()?;
        self.0.edit_at(index, |run, at| {
            let row = &mut run.rows[at];
            let before = row.heap_bytes();
            let result = act(row);
            run.outside = run.outside - before + row.heap_bytes();
            result
        })
    }

    /// Adds a row, in place of the one with its key if there is one.
    pub(super) fn put(&mut self, row: R) {
        if self.0.is_empty() {
            self.0.push_last(Run::of(row));
            return;
        }
        let key = row.key().clone();
        self.0.splice_where(
            |bound| *bound <= key,
            |run, _, more| match run.place(&key) {
                Ok(at) => {
                    run.outside = run.outside - run.rows[at].heap_bytes() + row.heap_bytes();
                    run.rows[at] = row;
                }
                // Whoever adds in ascending order leaves full runs behind.
                Err(at) if at + 1 >= R::ROOM => more.push(Run::of(row)),
                Err(at) => {
                    run.outside += row.heap_bytes();
                    run.rows.insert(at, row);
                }
            },
        );
    }

    /// Adds rows that come, in their order, behind all others.
    pub(super) fn append(&mut self, rows: impl Iterator<Item = R>) {
        let mut rows = rows.peekable();
        if self.0.is_empty() {
            let Some(first) = rows.next() else { return };
            self.0.push_last(Run::of(first));
        }
        if rows.peek().is_none() {
            return;
        }
        self.0.splice_last(|last, more| {
            for row in rows {
                let run = more.last_mut().unwrap_or(last);
                if run.rows.len() + 1 >= R::ROOM {
                    more.push(Run::of(row));
                } else {
                    run.outside += row.heap_bytes();
                    run.rows.push(row);
                }
            }
        });
    }

    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<R>
    where
        R::Key: Borrow<Q>,
    {
        let index = self.place(key).ok()?;
        self.0.edit_at(index, |run, at| {
            let row = run.rows.remove(at);
            run.outside -= row.heap_bytes();
            if run.rows.len() * 4 < run.rows.capacity() {
                run.rows.shrink_to(run.rows.len() * 2);
            }
            row
        })
    }

    /// The rows from an index on.
    pub(super) fn from(&self, index: u64) -> impl Iterator<Item = &R> {
        let skipped = self.0.at(index).map_or(0, |(_, offset)| offset);
        let runs = self.0.leaves_from(index);
        runs.flat_map(|(_, run)| run.rows.iter()).skip(skipped)
    }

    /// All rows.
    pub(super) fn iter(&self) -> impl Iterator<Item = &R> {
        self.from(0)
    }

    /// The last row.
    pub(super) fn last(&self) -> Option<&R> {
        self.0.last()?.rows.last()
    }
}
