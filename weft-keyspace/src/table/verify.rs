//! The invariants of a table, checked all at once: for tests.

use weft_data::collection::CollectionRef;

use super::bucket::{Bucket, SLOTS};
use super::census::{Measure, TableCensus};
use super::{Context, Table};
use crate::arena::UNIT;
use crate::expiry::{Due16, Due32, tick};

impl Table {
    /// # Panics
    ///
    /// When an invariant does not hold.
    pub(crate) fn verify(&self, context: Context<'_>) {
        let (directory, slots, now) = (self.directory(), self.slots(), context.now);
        assert_eq!(
            context.root.load(std::sync::atomic::Ordering::Relaxed),
            self.directory.as_ptr()
        );
        let (mut len, mut deadlines, mut external, mut entry_bytes) = (0, 0, 0, 0);
        let (mut segments, mut deepest, mut segment_bytes, mut stashed) = (0, 0, 0, 0);
        let mut census = TableCensus::new();
        let mut fielded = 0;
        let mut count_in = |handle| {
            let entry = self.look_at(handle);
            census.came(Measure::of(entry.value()), entry.deadline());
            fielded += usize::from(entry.collection().and_then(CollectionRef::due).is_some());
        };
        let mut index = 0;
        while index < slots.len() {
            let slot = &slots[index];
            let depth = slot.depth();
            let (first, width) = directory.span(index, depth);
            assert_eq!(first, index, "segments fill aligned spans");
            let segment = slot.segment();
            for other in &slots[first..first + width] {
                assert_eq!(other.segment().start(), segment.start());
                assert_eq!(
                    (other.depth(), other.has_stashed()),
                    (depth, slot.has_stashed())
                );
            }
            segments += 1;
            deepest += usize::from(depth == directory.depth());
            segment_bytes += segment.bytes();
            let (low, high) = self.positions(context, first);
            let buckets = segment.buckets();
            let mut count = 0;
            for (number, bucket) in buckets.iter().enumerate() {
                let next: &Bucket = &buckets[segment.next(number)];
                let displaced = next.displaced().count();
                assert_eq!(
                    bucket.away() as usize,
                    if buckets.len() > 1 { displaced } else { 0 }
                );
                assert_eq!(bucket.displaced().and(bucket.free()).count(), 0);
                for place in bucket.used() {
                    count_in(bucket.handle(place));
                    let entry = self.entry(bucket.handle(place));
                    let position = Table::position_of(context, entry);
                    assert!((low..=high).contains(&position.bits()));
                    assert_eq!(bucket.tag(place), position.tag());
                    let home = segment.home(position, directory.shard_bits() + depth);
                    let is_displaced = bucket.displaced().contains(place);
                    let at = if is_displaced {
                        segment.next(home)
                    } else {
                        home
                    };
                    assert_eq!(at, number);
                    deadlines += usize::from(entry.has_deadline());
                    if let Some(at) = entry.due() {
                        let due = Due16::new(tick(at), now);
                        assert_eq!(bucket.due().earlier(due, now), bucket.due());
                        let due = Due32::new(tick(at), now);
                        assert_eq!(slot.due().earlier(due, now), slot.due());
                        assert!(self.due <= tick(at));
                    }
                    external += entry.external_bytes();
                    entry_bytes += entry.slot_bytes();
                    count += 1;
                }
            }
            assert_eq!(slot.count(), count);
            assert!(count <= SLOTS << segment.log2());
            len += count as usize;
            for (&bits, handles) in self.stash.range(low..=high) {
                assert!(slot.has_stashed() && !handles.is_empty());
                for &handle in handles {
                    count_in(handle);
                    let entry = self.entry(handle);
                    assert_eq!(Table::position_of(context, entry).bits(), bits);
                    deadlines += usize::from(entry.has_deadline());
                    external += entry.external_bytes();
                    entry_bytes += entry.slot_bytes();
                    stashed += 1;
                }
            }
            index += width;
        }
        assert_eq!(census, *self.census);
        assert_eq!(len + stashed, self.len);
        assert_eq!(stashed, self.stashed);
        assert_eq!(deadlines, self.deadlines);
        assert_eq!(fielded, self.fielded);
        assert_eq!(external, self.external);
        assert_eq!((segments, deepest), (self.segments, self.deepest));
        assert_eq!(segment_bytes, self.segment_bytes);
        assert!(entry_bytes <= self.arena.entry_bytes());
        // An empty string with an empty key may have a slot twice its size.
        assert!(self.arena.entry_bytes() <= entry_bytes + entry_bytes / 8 + UNIT);
        self.arena.verify();
    }
}
