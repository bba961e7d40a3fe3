//! Elements on their way from a collection into a batch, a few at a time.

use std::ops::Range;

use weft_data::collection::{Built, Collection, CollectionRef, Kind};
use weft_data::list::{Element, End, ListRef};
use weft_data::set::{SetRef, Walk};
use weft_data::sorted_set::SortedSetRef;

use super::batch::Batch;

/// Elements of a step.
const STEP: usize = 64;
/// About what a step takes.
pub(super) const NS_PER_STEP: u64 = 64 * 40;

/// A part of a collection as it was, being loaded.
#[derive(Debug)]
pub(super) struct Loader {
    source: Source,
    /// The positions of what is still to be loaded, counted from the end if backwards. A set is loaded whole.
    left: Range<usize>,
    backwards: bool,
}

// There is one of it.
#[expect(clippy::large_enum_variant)]
#[derive(Debug)]
enum Source {
    /// A list or a sorted set.
    Ordered(Built),
    Set(Walk),
}

impl Loader {
    /// Of a collection that is no hash.
    pub(super) fn new(collection: CollectionRef<'_>, part: Range<usize>, backwards: bool) -> Self {
        let source = match collection.kind() {
            Kind::Set => Source::Set(Walk::new(SetRef::from(collection).snapshot())),
            _ => Source::Ordered(collection.to_built()),
        };
        Self {
            source,
            left: part,
            backwards,
        }
    }

    /// Loads the next few elements; false if there are none.
    pub(super) fn step(&mut self, batch: &mut Batch) -> bool {
        let built = match &mut self.source {
            Source::Ordered(built) => built,
            Source::Set(walk) => {
                let over = walk.is_over();
                walk.step(|member| member.with(|text| batch.push(text)));
                return !over;
            }
        };
        let Range { start, end } = self.left;
        let next = end.min(start + STEP);
        self.left.start = next;
        let collection = built.as_ref();
        match collection.kind() {
            Kind::List => {
                let from = if self.backwards {
                    End::Right
                } else {
                    End::Left
                };
                let elements = ListRef::from(collection).elements_from(from, start);
                for element in elements.take(next - start) {
                    match element {
                        Element::Bytes(bytes) => batch.push(bytes),
                        Element::Rope(rope) => batch.push_rope(rope),
                    }
                }
            }
            _ => {
                let set = SortedSetRef::from(collection);
                let ranks = if self.backwards {
                    set.len() - next as u64..set.len() - start as u64
                } else {
                    start as u64..next as u64
                };
                set.each(ranks, self.backwards, |member, _| batch.push(member));
            }
        }
        start < next
    }

    /// What the reaper has to free.
    pub(super) fn into_large(self) -> Option<Box<Collection>> {
        match self.source {
            Source::Ordered(Built::Large(collection)) => Some(collection),
            Source::Ordered(Built::Packed(_)) => None,
            Source::Set(walk) => Some(Box::new(Collection::Set(walk.into_set()))),
        }
    }
}
