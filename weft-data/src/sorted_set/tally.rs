//! Members with scores that are found out one after the other, and put in order when all are known: what unions and the like end in.

use std::cmp::Ordering;
use std::ops::Range;

use super::large::SortedSet;
use super::{Limits, small};
use crate::collection::{Built, Collection};
use crate::members::Members;
use crate::slab::Handle;

/// Members with scores, in no order yet.
#[derive(Debug)]
pub struct Tally {
    members: Members,
}

/// The members of a tally in the order of a sorted set.
#[derive(Debug)]
pub struct Ranking {
    members: Members,
    order: Vec<(f64, Handle)>,
}

impl Tally {
    /// Nobody yet. The seed is that of the table.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            members: Members::new(seed),
        }
    }

    /// Adds a member with this score, or makes one of the score that it has and this one.
    pub fn add(&mut self, member: &[u8], score: f64, unite: impl FnOnce(f64, f64) -> f64) {
        match self.members.get(member) {
            None => {
                self.members.insert(member, &[&score.to_le_bytes()]);
            }
            Some(handle) => {
                let payload = self.members.payload_mut(handle);
                let old = payload
                    .first_chunk()
                    .map_or(0.0, |old| f64::from_le_bytes(*old));
                payload.copy_from_slice(&unite(old, score).to_le_bytes());
            }
        }
    }

    /// Puts all in order.
    #[must_use]
    pub fn ranking(self) -> Ranking {
        let members = self.members;
        let score = |handle| {
            let score = members.payload(handle).first_chunk();
            score.map_or(0.0, |score| f64::from_le_bytes(*score))
        };
        let mut order: Vec<(f64, Handle)> = members
            .iter()
            .map(|handle| (score(handle), handle))
            .collect();
        order.sort_unstable_by(|one, other| {
            let by_score = one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal);
            by_score.then_with(|| members.key(one.1).cmp(members.key(other.1)))
        });
        Ranking { members, order }
    }
}

impl Ranking {
    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The members with these ranks, all of which exist, and their scores.
    pub fn items(&self, ranks: Range<usize>) -> impl Iterator<Item = (&[u8], f64)> {
        let items = self.order[ranks].iter();
        items.map(|(score, handle)| (self.members.key(*handle), *score))
    }

    /// A sorted set of them, in the form that fits.
    #[must_use]
    pub fn into_built(self, limits: Limits) -> Built {
        let items = || self.items(0..self.len());
        let longest = items().map(|(member, _)| member.len()).max();
        let called_listpack =
            self.len() <= limits.entries && longest.unwrap_or_default() <= limits.value;
        match small::build(called_listpack, items()) {
            Some(bytes) => Built::Packed(bytes),
            None => {
                let set = SortedSet::of_ranking(self.members, &self.order, called_listpack);
                Built::Large(Box::new(Collection::SortedSet(set)))
            }
        }
    }
}
