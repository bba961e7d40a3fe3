//! Pre-images: how a unit's changes are undone.
//!
//! Owns the entries as they were before a unit first changed them. Does not know what the unit did. Only the first
//! image of a key is kept, so a unit that changes one key a million times captures it once.

use std::collections::HashMap;

use crate::entry::{Entry, OwnedValue};
use crate::position::Position;

/// An entry as it was before a change.
#[derive(Clone, Debug)]
pub struct PreImage {
    /// Its database.
    pub db: usize,
    /// Its position.
    pub position: Position,
    /// Its key.
    pub key: Vec<u8>,
    /// What was there; `None` when the key did not exist.
    pub prior: Option<Prior>,
}

/// The state of an entry.
#[derive(Clone, Debug)]
pub struct Prior {
    /// The value; a long one is shared with what the keyspace held.
    pub value: OwnedValue,
    /// When it expires, absolute milliseconds.
    pub deadline: Option<u64>,
    /// Short, but `raw` to Redis.
    pub raw: bool,
    /// The 24 LRU or LFU bits.
    pub access: u32,
}

/// The images that a unit has made in one shard.
#[derive(Debug, Default)]
pub(super) struct Capture {
    images: Vec<PreImage>,
    /// By database and position: the first image there. Another key at the same position is captured every time,
    /// which costs room and is right all the same.
    first: HashMap<(usize, Position), usize>,
}

impl Capture {
    pub(super) fn note(
        &mut self,
        db: usize,
        position: Position,
        key: &[u8],
        entry: Option<Entry<'_>>,
    ) {
        let number = self.images.len();
        let first = *self.first.entry((db, position)).or_insert(number);
        if first < number && self.images[first].key == key {
            return;
        }
        self.images.push(PreImage {
            db,
            position,
            key: key.to_vec(),
            prior: entry.map(|entry| Prior {
                value: entry.to_owned_value(),
                deadline: entry.deadline(),
                raw: entry.is_raw(),
                access: entry.access(),
            }),
        });
    }

    pub(super) fn into_images(self) -> Vec<PreImage> {
        self.images
    }
}
