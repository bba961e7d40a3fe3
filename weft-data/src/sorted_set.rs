//! Sorted sets: different strings, the members, in the order of their scores and, where those are equal, of their bytes.
//!
//! Owns both forms and the choice between them, every range by rank, score or member, and what Redis would call the form: it is
//! `listpack` until a member is added that is one too many or too long by the thresholds, and never again after. The form itself
//! is packed as long as that takes few bytes. Does not know keys, commands or how scores are written. Scores are never NaN;
//! zeroes are equal, and lose their sign where Redis would keep them in a listpack.

mod large;
mod leaf;
mod range;
mod small;
mod tally;

#[cfg(test)]
mod tests;

use std::hash::Hasher;
use std::ops::Range;

pub use self::large::SortedSet;
pub use self::range::{MemberBound, MemberRange, ScoreRange};
pub use self::small::Small;
pub use self::tally::{Ranking, Tally};
use crate::collection::{Built, Collection, CollectionRef, Draft};
use crate::table::Load;

/// Up to where Redis calls the form `listpack`.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most members.
    pub entries: usize,
    /// The most bytes of a member.
    pub value: usize,
}

/// What an update did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// There is a new member.
    Added,
    /// A member has another score.
    Changed,
    /// Nothing.
    Nothing,
}

/// A sorted set to be looked at, in either form.
#[derive(Clone, Copy, Debug)]
pub enum SortedSetRef<'a> {
    /// Packed.
    Small(Small<'a>),
    /// Large.
    Large(&'a SortedSet),
}

impl<'a> From<CollectionRef<'a>> for SortedSetRef<'a> {
    /// # Panics
    /// If the collection is of another kind.
    fn from(collection: CollectionRef<'a>) -> Self {
        match collection {
            CollectionRef::Packed(bytes) => Self::packed(bytes),
            CollectionRef::Large(Collection::SortedSet(set)) => Self::Large(set),
            CollectionRef::Large(_) => unreachable!("{KIND_IS_CHECKED}"),
        }
    }
}

const KIND_IS_CHECKED: &str = "whoever asks has checked the kind";

impl<'a> SortedSetRef<'a> {
    /// Of packed bytes with their tag.
    #[must_use]
    pub const fn packed(bytes: &'a [u8]) -> Self {
        Self::Small(Small::new(bytes))
    }

    /// How many members it has.
    #[inline]
    #[must_use]
    pub fn len(self) -> u64 {
        match self {
            Self::Small(small) => small.len() as u64,
            Self::Large(large) => large.len() as u64,
        }
    }

    /// Whether it has none.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// What Redis would call its form.
    #[must_use]
    pub fn encoding(self) -> &'static str {
        if self.is_called_listpack() {
            "listpack"
        } else {
            "skiplist"
        }
    }

    fn is_called_listpack(self) -> bool {
        match self {
            Self::Small(small) => small.is_called_listpack(),
            Self::Large(large) => large.is_called_listpack(),
        }
    }

    /// The score of a member.
    #[must_use]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Small(small) => small.rank(member).map(|(_, score)| score),
            Self::Large(large) => large.score(member),
        }
    }

    /// How many members come before this one, and its score.
    #[must_use]
    pub fn rank(self, member: &[u8]) -> Option<(u64, f64)> {
        match self {
            Self::Small(small) => small.rank(member),
            Self::Large(large) => large.rank(member),
        }
    }

    /// The member with this rank, and its score.
    #[must_use]
    pub fn at(self, rank: u64) -> Option<(&'a [u8], f64)> {
        match self {
            Self::Small(small) => small.items().nth(usize::try_from(rank).ok()?),
            Self::Large(large) => large.at(rank),
        }
    }

    /// The ranks of the members with scores in this range.
    #[must_use]
    pub fn ranks_by_score(self, range: &ScoreRange) -> Range<u64> {
        match self {
            Self::Small(small) => {
                let mut items = small.items().map(|(_, score)| score);
                let start = items
                    .position(|score| !range.is_after(score))
                    .unwrap_or(small.len());
                let end = small
                    .items()
                    .skip(start)
                    .take_while(|(_, score)| !range.is_before(*score));
                start as u64..(start + end.count()) as u64
            }
            Self::Large(large) => large.ranks_by_score(range),
        }
    }

    /// The ranks of the members in this range of their bytes, provided that all scores are equal.
    ///
    /// If they are not, the answer is still what Redis gives for a listpack, which it walks through in one direction or the other
    /// until the range begins, and on until it ends.
    #[must_use]
    pub fn ranks_by_member(self, range: &MemberRange<'_>, backwards: bool) -> Range<u64> {
        match self {
            Self::Large(large) if !large.is_called_listpack() || large.is_level() => {
                if range.is_void() {
                    return 0..0;
                }
                large.ranks_by_member(range)
            }
            _ => self.walk_by_member(range, backwards),
        }
    }

    fn walk_by_member(self, range: &MemberRange<'_>, backwards: bool) -> Range<u64> {
        let len = self.len();
        let (Some((first, _)), Some((last, _))) = (self.at(0), self.at(len.wrapping_sub(1))) else {
            return 0..0;
        };
        if range.is_void() || range.is_before(first) || range.is_after(last) {
            return 0..0;
        }
        // How many are passed over until the range begins, and how many belong to it; whether it has ended.
        let (mut passed, mut found, mut over) = (0, 0, false);
        self.each(0..len, backwards, |member, _| {
            let (before, behind) = (range.is_after(member), range.is_before(member));
            let (not_yet, beyond) = if backwards {
                (behind, before)
            } else {
                (before, behind)
            };
            if over {
            } else if found == 0 && not_yet {
                passed += 1;
            } else if beyond {
                over = true;
            } else {
                found += 1;
            }
        });
        if backwards {
            len - passed - found..len - passed
        } else {
            passed..passed + found
        }
    }

    /// Gives `each` the members with these ranks, as far as they exist, and their scores.
    pub fn each(self, ranks: Range<u64>, backwards: bool, mut each: impl FnMut(&[u8], f64)) {
        let ranks = ranks.start..ranks.end.min(self.len());
        if ranks.is_empty() {
            return;
        }
        match self {
            Self::Large(large) if backwards => large.each_backwards(ranks, each),
            Self::Large(large) => large.each(ranks, each),
            Self::Small(small) => {
                let count = (ranks.end - ranks.start) as usize;
                if backwards {
                    let skipped = small.len() - ranks.end as usize;
                    let items = small.items().rev().skip(skipped).take(count);
                    items.for_each(|(member, score)| each(member, score));
                } else {
                    let items = small.items().skip(ranks.start as usize).take(count);
                    items.for_each(|(member, score)| each(member, score));
                }
            }
        }
    }

    /// Gives `each` at least so many members from `cursor` on, with their scores; returns the next cursor, 0 at the end. What is
    /// there all the time is given at least once. What is called a listpack is given at once.
    pub fn scan(self, cursor: u64, at_least: usize, each: impl FnMut(&[u8], f64)) -> u64 {
        match self {
            Self::Large(large) if !large.is_called_listpack() => large.scan(cursor, at_least, each),
            _ => {
                self.each(0..self.len(), false, each);
                0
            }
        }
    }

    /// Adds members and scores to a hash, whatever the form.
    pub fn digest(self, hasher: &mut impl Hasher) {
        self.each(0..self.len(), false, |member, score| {
            hasher.write_usize(member.len());
            hasher.write(member);
            // Zeroes are equal, and whether one has kept its sign depends on what the form was called once.
            hasher.write_u64((score + 0.0).to_bits());
        });
    }
}

/// A sorted set of these members, with their scores and in their order, in the form that fits. `items` is asked up to three times.
#[must_use]
pub fn build<'m, I>(limits: Limits, seed: u64, items: impl Fn() -> I) -> Built
where
    I: Iterator<Item = (&'m [u8], f64)>,
{
    let (count, longest) = items().fold((0, 0), |(count, longest), (member, _)| {
        (count + 1, member.len().max(longest))
    });
    let called_listpack = count <= limits.entries && longest <= limits.value;
    match small::build(called_listpack, items()) {
        Some(bytes) => Built::Packed(bytes),
        None => {
            let set = SortedSet::build(seed, called_listpack, items());
            Built::Large(Box::new(Collection::SortedSet(set)))
        }
    }
}

/// A sorted set of the members with these ranks.
#[must_use]
pub fn part_of(set: SortedSetRef<'_>, ranks: Range<u64>, limits: Limits, seed: u64) -> Built {
    if let SortedSetRef::Large(large) = set
        && ranks == (0..set.len())
        && !large.is_called_listpack()
        && large.len() > limits.entries
    {
        return Built::Large(Box::new(Collection::SortedSet(large.clone())));
    }
    let mut bytes = Vec::new();
    let mut ends: Vec<(usize, f64)> = Vec::new();
    set.each(ranks, false, |member, score| {
        bytes.extend_from_slice(member);
        ends.push((bytes.len(), score));
    });
    build(limits, seed, || {
        let mut start = 0;
        ends.iter().map({
            let bytes = &bytes;
            move |&(end, score)| {
                let member = &bytes[start..end];
                start = end;
                (member, score)
            }
        })
    })
}

/// A sorted set to be changed: one that is there, or one to be made.
pub struct SortedSetMut<'d, 'a> {
    draft: &'d mut Draft<'a>,
    limits: Limits,
    seed: u64,
    /// Whether a new one is called a listpack.
    begins_as_listpack: bool,
}

impl<'d, 'a> SortedSetMut<'d, 'a> {
    /// Of a draft of that kind, or an empty one. `expected`: so many members are about to be added, which decides what a new one is
    /// called.
    pub fn new(draft: &'d mut Draft<'a>, limits: Limits, seed: u64, expected: usize) -> Self {
        Self {
            draft,
            limits,
            seed,
            begins_as_listpack: expected <= limits.entries,
        }
    }

    /// A look at it.
    #[must_use]
    pub fn as_ref(&self) -> SortedSetRef<'_> {
        self.draft
            .as_ref()
            .map_or(SortedSetRef::packed(&[]), SortedSetRef::from)
    }

    /// Gives `member` the score that `decide` says for the one it has, if it is there; none leaves it as it is.
    pub fn update(
        &mut self,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Update {
        let limits = self.limits;
        let bytes = match form(self.draft) {
            Form::Small(bytes) => bytes,
            Form::Large(set) => return set.update(member, limits, decide),
        };
        let found = small::find(bytes, member);
        match (decide(found.map(|(_, score)| score)), found) {
            (None, _) => Update::Nothing,
            (Some(new), Some((_, old))) if new == old => Update::Nothing,
            (Some(new), Some((offset, _))) => {
                small::change(bytes, offset, new);
                Update::Changed
            }
            (Some(new), None) => {
                let set = SortedSetRef::packed(bytes);
                let called_listpack = if bytes.is_empty() {
                    self.begins_as_listpack
                } else {
                    set.is_called_listpack()
                };
                let fits = set.len() < limits.entries as u64 && member.len() <= limits.value;
                let called_listpack = called_listpack && fits;
                if small::fits(bytes, member) {
                    small::add(bytes, called_listpack, member, new);
                } else {
                    let items = Small::new(bytes).items();
                    let mut set = SortedSet::build(self.seed, called_listpack, items);
                    set.update(member, limits, |_| Some(new));
                    *self.draft = Draft::Grown(Box::new(Collection::SortedSet(set)));
                }
                Update::Added
            }
        }
    }

    /// Removes a member and returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match form(self.draft) {
            Form::Small(bytes) => {
                let (offset, score) = small::find(bytes, member)?;
                small::remove_at(bytes, offset);
                Some(score)
            }
            Form::Large(set) => set.remove(member),
        }
    }

    /// Removes the members with these ranks, as far as they exist, and says how many. `load` is asked for what removing the ones
    /// after them will read.
    pub fn remove_ranks(&mut self, ranks: Range<u64>, load: Load) -> u64 {
        let ranks = ranks.start..ranks.end.min(self.as_ref().len());
        if ranks.is_empty() {
            return 0;
        }
        match form(self.draft) {
            Form::Small(bytes) => small::remove_ranks(bytes, ranks.clone()),
            Form::Large(set) => set.remove_ranks(ranks.clone(), load),
        }
        ranks.end - ranks.start
    }
}

/// A draft of a sorted set.
enum Form<'d> {
    Small(&'d mut Vec<u8>),
    Large(&'d mut SortedSet),
}

fn form<'d>(draft: &'d mut Draft<'_>) -> Form<'d> {
    let collection = match draft {
        Draft::Packed(bytes) => return Form::Small(bytes),
        Draft::Large(collection) => collection,
        Draft::Grown(grown) => &mut **grown,
    };
    match collection {
        Collection::SortedSet(set) => Form::Large(set),
        _ => unreachable!("{KIND_IS_CHECKED}"),
    }
}
