//! Mixed pages: slots of all small sizes side by side, for arenas that are small.
//!
//! Owns how slots are cut from such a page and come back. A page for each size would be mostly empty in each of hundreds of
//! shards, and there would be several: together more than what small shards hold. So an arena's first pages are mixed.
//! Slots are cut off one after the other; one that comes back is used again for the same size only. Who frees one says
//! its size, since the page does not know. Free slots are linked with those of the same size, by handle:
//!
//! ```text
//! free slot = next 4 bytes | previous 4 | units 4        0: there is none
//! ```
//!
//! Invariants: up to its `bump` a mixed page is slots, each in use or in a list; `live` counts
//! the units in use, and no page without any stays.

use super::ground::Ground;
use super::{Arena, NONE, PAGE_UNITS, SMALL_UNITS, UNIT, handle_of, page_of};

/// In place of a page's class: the page is mixed.
pub(super) const MIXED: u16 = u16::MAX;
/// Pages that may be mixed: 128 KiB of each table.
const PAGES_MAX: u32 = 32;
/// What a free slot needs for its links.
const UNITS_MIN: u16 = 2;

/// An arena's mixed pages.
pub(super) struct Mixed {
    /// The one that slots are cut from.
    current: u32,
    pub(super) pages: u32,
    /// By their size in units the first free slots, 0 where there is none; as far as there have been any.
    free: Vec<u32>,
}

impl Mixed {
    pub(super) fn new() -> Mixed {
        Mixed {
            current: NONE,
            pages: 0,
            free: Vec::new(),
        }
    }

    pub(super) fn record_bytes(&self) -> usize {
        self.free.capacity() * size_of::<u32>()
    }

    /// The first free slot of this size, 0 if there is none.
    #[inline]
    fn first(&self, units: u16) -> u32 {
        self.free.get(usize::from(units)).copied().unwrap_or(0)
    }
}

/// The words of a free slot.
#[derive(Clone, Copy)]
enum Word {
    Next = 0,
    Previous = 1,
    Units = 2,
}

impl Arena {
    /// A slot of a small size in a mixed page, if there is one or there may be one more page.
    pub(super) fn allocate_mixed(&mut self, units: u16, ground: &Ground) -> Option<u32> {
        let units = units.max(UNITS_MIN);
        let free = self.mixed.first(units);
        let handle = if free != 0 {
            self.unlink_slot(free, units);
            free
        } else {
            let page = self.page_with_room(units, ground)?;
            let record = &mut self.pages[page as usize];
            let unit = record.bump;
            record.bump += units;
            handle_of(page, u32::from(unit))
        };
        self.pages[page_of(handle)].live += units;
        self.entry_bytes += usize::from(units) * UNIT;
        Some(handle)
    }

    /// Takes back a slot of this size in a mixed page.
    pub(super) fn free_mixed(&mut self, handle: u32, units: u16) {
        let units = units.max(UNITS_MIN);
        let page = page_of(handle);
        let record = &mut self.pages[page];
        debug_assert!(record.live >= units, "a slot in use");
        record.live -= units;
        let is_empty = record.live == 0;
        self.entry_bytes -= usize::from(units) * UNIT;
        self.link_slot(handle, units);
        if is_empty {
            self.release_mixed(page as u32);
        }
    }

    /// The page to cut so many units from.
    fn page_with_room(&mut self, units: u16, ground: &Ground) -> Option<u32> {
        let current = self.mixed.current;
        let bump = match current {
            NONE => PAGE_UNITS as u16,
            page => self.pages[page as usize].bump,
        };
        let rest = PAGE_UNITS as u16 - bump;
        if rest >= units {
            return Some(current);
        }
        if self.mixed.pages >= PAGES_MAX {
            return None;
        }
        if rest >= UNITS_MIN {
            self.pages[current as usize].bump += rest;
            self.link_slot(handle_of(current, u32::from(bump)), rest);
        }
        self.mixed.current = self.new_page(MIXED, ground);
        Some(self.mixed.current)
    }

    /// Gives a page back none of whose slots is in use.
    fn release_mixed(&mut self, page: u32) {
        let end = u32::from(self.pages[page as usize].bump);
        let mut unit = 0;
        // Each step undoes one allocation.
        while unit + u32::from(UNITS_MIN) <= end {
            let handle = handle_of(page, unit);
            let units = self.word(handle, Word::Units);
            self.unlink_slot(handle, units as u16);
            unit += units;
        }
        if self.mixed.current == page {
            self.mixed.current = NONE;
        }
        self.release_page(page);
    }

    fn link_slot(&mut self, handle: u32, units: u16) {
        let (firsts, units_at) = (&mut self.mixed.free, usize::from(units));
        if firsts.len() <= units_at {
            firsts.reserve_exact(units_at + 1 - firsts.len());
            firsts.resize(units_at + 1, 0);
        }
        let next = std::mem::replace(&mut firsts[units_at], handle);
        if next != 0 {
            self.set_word(next, Word::Previous, handle);
        }
        self.set_word(handle, Word::Next, next);
        self.set_word(handle, Word::Previous, 0);
        self.set_word(handle, Word::Units, u32::from(units));
    }

    fn unlink_slot(&mut self, handle: u32, units: u16) {
        let next = self.word(handle, Word::Next);
        let previous = self.word(handle, Word::Previous);
        if previous == 0 {
            self.mixed.free[usize::from(units)] = next;
        } else {
            self.set_word(previous, Word::Next, next);
        }
        if next != 0 {
            self.set_word(next, Word::Previous, previous);
        }
    }

    /// A word of a free slot of a mixed page.
    fn word(&self, handle: u32, word: Word) -> u32 {
        let slot = self.address(handle).cast::<u32>();
        // SAFETY: slots of mixed pages have four words at least.
        let place = unsafe { slot.add(word as usize) };
        // SAFETY: aligned, and written when the slot became free; nobody else refers to a free slot.
        unsafe { place.read() }
    }

    fn set_word(&mut self, handle: u32, word: Word, value: u32) {
        let slot = self.address(handle).cast::<u32>();
        // SAFETY: slots of mixed pages have four words at least.
        let place = unsafe { slot.add(word as usize) };
        // SAFETY: aligned, and nobody else refers to a free slot.
        unsafe { place.write(value) };
    }

    /// Checks lists and counts of mixed pages: for tests.
    pub(super) fn verify_mixed(&self) {
        let mut free_units = vec![0_u32; self.pages.len()];
        for (units, &first) in self.mixed.free.iter().enumerate() {
            let (mut slot, mut previous) = (first, 0);
            while slot != 0 {
                assert_eq!(self.word(slot, Word::Previous), previous);
                assert_eq!(self.word(slot, Word::Units) as usize, units);
                assert!(units <= usize::from(SMALL_UNITS));
                free_units[page_of(slot)] += units as u32;
                (previous, slot) = (slot, self.word(slot, Word::Next));
            }
        }
        let mut pages = 0;
        for (page, &free) in self.pages.iter().zip(&free_units) {
            if page.class == MIXED {
                pages += 1;
                assert!(page.live > 0, "empty pages are free");
                assert_eq!(u32::from(page.live) + free, u32::from(page.bump));
                assert!(u32::from(page.bump) <= PAGE_UNITS);
            } else {
                assert_eq!(free, 0, "only mixed pages have such slots");
            }
        }
        assert_eq!(pages, self.mixed.pages);
        assert!(pages <= PAGES_MAX);
        let current = self.mixed.current;
        assert!(current == NONE || self.pages[current as usize].class == MIXED);
    }
}
