//! Byte strings by 32-bit handles, with a snapshot that costs nothing.
//!
//! Owns where the records lie: in counted pages of 4 KiB, cut into units of 4 bytes. A page fills up from its front; what is freed
//! becomes a hole in its list, neighbours are joined when no hole is large enough, and records go into the pages with the most room first.
//! A record above [`INSIDE_MAX`] lies apart in an allocation of its own. A write copies its page, if that is shared, and the way to it.
//! Does not know what the records mean; a handle stays good until its record is removed, in each snapshot by itself.
//!
//! Page: first hole u16, end of use u16, units in holes u16, records u16 (little endian; places are numbers of units), then the rest.
//! Record: its length in one byte, or from 0x80 on in two, big endian with the highest bit set; its bytes; up to 3 bytes of nothing.
//! Hole: next hole u16 (0: none), size u16.

use std::fmt;
use std::sync::Arc;

use crate::cow_vec::{COUNTS_BYTES, CowVec};
use crate::table::Load;

/// The name of a record in its slab.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(u32);

/// Records, reached by their handles. `clone` is O(1) and is a snapshot.
#[derive(Clone, Default)]
pub struct Slab {
    pages: CowVec<Page>,
    /// The pages with much room in holes.
    roomy: CowVec<u32>,
    /// The numbers of pages that are gone.
    vacant: CowVec<u32>,
    /// The page that fills up, if there is any page.
    filling: u32,
    apart: CowVec<Option<Arc<[u8]>>>,
    /// The numbers that are free in `apart`.
    apart_vacant: CowVec<u32>,
    /// Bytes of pages and of records that lie apart.
    bytes: usize,
}

/// The longest record inside a page, in bytes.
pub const INSIDE_MAX: usize = 512;

const UNIT: usize = 4;
/// With the counts before it a page is an allocation of 4,096 bytes.
const PAGE_BYTES: usize = 4096 - COUNTS_BYTES;
const HEADER_UNITS: usize = 2;
/// The sizes that a page grows through: allocations of 256 to 4,096 bytes.
const STEPS: [usize; 6] = [
    256 - COUNTS_BYTES,
    512 - COUNTS_BYTES,
    1024 - COUNTS_BYTES,
    2048 - COUNTS_BYTES,
    3072 - COUNTS_BYTES,
    PAGE_BYTES,
];
/// Units in holes that make a page one to fill up first, and those below which it is none any more.
const ROOMY: usize = PAGE_BYTES / UNIT / 8;
const CRAMPED: usize = PAGE_BYTES / UNIT / 32;
/// Pages whose holes are looked through for one record.
const TRIES: usize = 4;

/// Words of a bit per unit of a page.
const MAP_WORDS: usize = (PAGE_BYTES / UNIT).div_ceil(64);

const UNIT_BITS: u32 = 10;
const APART: u32 = 1 << 31;
/// Pages that a handle can name.
const PAGES_MAX: usize = 1 << (31 - UNIT_BITS);
const NOWHERE: u32 = u32::MAX;

#[derive(Clone)]
struct Page {
    /// `None` when the page is gone.
    bytes: Option<Arc<[u8]>>,
    /// Its place among the roomy ones, or [`NOWHERE`].
    roomy_at: u32,
}

impl Handle {
    /// The handle as a number, to be stored.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The handle that has this number.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Handle {
        Handle(bits)
    }

    fn inside(page: u32, unit: usize) -> Handle {
        Handle(page << UNIT_BITS | unit as u32)
    }

    fn is_apart(self) -> bool {
        self.0 & APART != 0
    }

    /// The number of the record that lies apart.
    fn number(self) -> usize {
        (self.0 & !APART) as usize
    }

    fn page(self) -> u32 {
        self.0 >> UNIT_BITS
    }

    fn unit(self) -> usize {
        (self.0 & ((1 << UNIT_BITS) - 1)) as usize
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("pages", &(self.pages.len() - self.vacant.len()))
            .field("apart", &(self.apart.len() - self.apart_vacant.len()))
            .field("bytes", &self.allocated_bytes())
            .finish()
    }
}

impl Slab {
    /// A slab without records; allocates nothing.
    #[must_use]
    pub fn new() -> Slab {
        Slab::default()
    }

    /// Bytes allocated, shared or not.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.bytes
            + self.pages.allocated_bytes()
            + self.roomy.allocated_bytes()
            + self.vacant.allocated_bytes()
            + self.apart.allocated_bytes()
            + self.apart_vacant.allocated_bytes()
    }

    /// The bytes of a record.
    ///
    /// # Panics
    /// If the record was removed, or panics or returns another record's bytes if the handle is not this slab's.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle) -> &[u8] {
        if handle.is_apart() {
            return self
                .apart
                .get(handle.number())
                .and_then(Option::as_deref)
                .expect("a handle names a record of its slab");
        }
        let bytes = self.page(handle.page());
        let (start, len) = extent(bytes, handle.unit());
        &bytes[start..start + len]
    }

    /// Asks for the first bytes of a record.
    pub fn load_ahead(&self, handle: Handle, load: Load) {
        let start = if handle.is_apart() {
            self.apart
                .get(handle.number())
                .and_then(|record| record.as_ref()?.first())
        } else {
            self.page(handle.page()).get(handle.unit() * UNIT)
        };
        if let Some(start) = start {
            load(start);
        }
    }

    /// The bytes of a record, to be written over; a page that a snapshot shares is copied first.
    ///
    /// # Panics
    /// As [`Slab::get`].
    pub fn get_mut(&mut self, handle: Handle) -> &mut [u8] {
        if handle.is_apart() {
            let record = self.apart.get_mut(handle.number()).and_then(Option::as_mut);
            return Arc::make_mut(record.expect("a handle names a record of its slab"));
        }
        let bytes = self.page_mut(handle.page());
        let (start, len) = extent(bytes, handle.unit());
        &mut bytes[start..start + len]
    }

    /// Adds a record that consists of `parts`.
    ///
    /// # Panics
    /// When there are 2^31 records apart already.
    pub fn insert<'p>(&mut self, parts: impl Iterator<Item = &'p [u8]> + Clone) -> Handle {
        let len = parts.clone().map(<[u8]>::len).sum();
        if len > INSIDE_MAX {
            return self.insert_apart(len, parts);
        }
        match self.place(units_of(len)) {
            Some((page, unit)) => {
                write_record(self.page_mut(page), unit, len, parts);
                Handle::inside(page, unit)
            }
            None => self.insert_apart(len, parts),
        }
    }

    /// Replaces the bytes of a record: under its handle where its place is as large as the new bytes need, otherwise under another.
    ///
    /// # Panics
    /// As [`Slab::get`].
    pub fn replace<'p>(
        &mut self,
        handle: Handle,
        parts: impl Iterator<Item = &'p [u8]> + Clone,
    ) -> Handle {
        let len: usize = parts.clone().map(<[u8]>::len).sum();
        if handle.is_apart() {
            if len > INSIDE_MAX {
                let record = collect(len, parts);
                let place = self.apart.get_mut(handle.number()).and_then(Option::as_mut);
                let before =
                    std::mem::replace(place.expect("a handle names a record of its slab"), record);
                self.bytes = self.bytes - before.len() + len;
                return handle;
            }
        } else if len <= INSIDE_MAX {
            let (_, before) = extent(self.page(handle.page()), handle.unit());
            if units_of(before) == units_of(len) {
                write_record(self.page_mut(handle.page()), handle.unit(), len, parts);
                return handle;
            }
        }
        self.remove(handle);
        self.insert(parts)
    }

    /// Removes a record. Its handle may be given out again.
    ///
    /// # Panics
    /// As [`Slab::get`].
    pub fn remove(&mut self, handle: Handle) {
        if handle.is_apart() {
            let place = self.apart.get_mut(handle.number());
            let record = place
                .and_then(Option::take)
                .expect("a handle names a record of its slab");
            self.bytes -= record.len() + COUNTS_BYTES;
            self.apart_vacant.push(handle.number() as u32);
            return;
        }
        let number = handle.page();
        let is_filling = number == self.filling;
        let bytes = self.page_mut(number);
        let (unit, len) = (handle.unit(), extent(bytes, handle.unit()).1);
        let units = units_of(len);
        if is_filling && unit + units == header(bytes, END) {
            set_header(bytes, END, unit);
        } else {
            free(bytes, unit, units);
        }
        set_header(bytes, RECORDS, header(bytes, RECORDS) - 1);
        let holes = header(bytes, HOLES);
        if header(bytes, RECORDS) > 0 {
            if holes >= ROOMY {
                self.note_roomy(number);
            }
        } else if is_filling {
            bytes[..HEADER_UNITS * UNIT].copy_from_slice(&EMPTY_HEADER);
            self.forget_roomy(number);
        } else {
            self.forget_roomy(number);
            let page = self
                .pages
                .get_mut(number as usize)
                .and_then(|page| page.bytes.take());
            self.bytes -= page.map_or(0, |bytes| bytes.len() + COUNTS_BYTES);
            self.vacant.push(number);
        }
    }

    fn insert_apart<'p>(&mut self, len: usize, parts: impl Iterator<Item = &'p [u8]>) -> Handle {
        let record = collect(len, parts);
        self.bytes += len + COUNTS_BYTES;
        let number = match self.apart_vacant.pop() {
            Some(number) => {
                *self
                    .apart
                    .get_mut(number as usize)
                    .expect("vacant places are places") = Some(record);
                number
            }
            None => {
                self.apart.push(Some(record));
                u32::try_from(self.apart.len() - 1).unwrap_or(u32::MAX)
            }
        };
        assert!(
            number < APART,
            "a collection holds at most 2^31 records apart"
        );
        Handle(number | APART)
    }

    fn page(&self, number: u32) -> &[u8] {
        self.pages
            .get(number as usize)
            .and_then(|page| page.bytes.as_deref())
            .expect("a handle names a record of its slab")
    }

    fn page_mut(&mut self, number: u32) -> &mut [u8] {
        let page = self
            .pages
            .get_mut(number as usize)
            .and_then(|page| page.bytes.as_mut());
        Arc::make_mut(page.expect("a handle names a record of its slab"))
    }

    /// Finds a place of `units`: in a hole of a roomy page, at the end of the page that fills up, or on a new page.
    /// `None` when there are as many pages as handles can name.
    fn place(&mut self, units: usize) -> Option<(u32, usize)> {
        for _ in 0..TRIES {
            let Some(&number) = self.roomy.last() else {
                break;
            };
            let mut found = find_hole(self.page(number), units);
            if found.is_none() {
                join_holes(self.page_mut(number));
                found = find_hole(self.page(number), units);
            }
            let Some((before, hole)) = found else {
                self.forget_roomy(number);
                continue;
            };
            let bytes = self.page_mut(number);
            let unit = take_hole(bytes, before, hole, units);
            if header(bytes, HOLES) < CRAMPED {
                self.forget_roomy(number);
            }
            return Some((number, unit));
        }
        if self.pages.is_empty() {
            self.add_page(STEPS[0])?;
        }
        if !self.has_end(self.filling, units) {
            self.add_page(STEPS[2])?;
            let has_end = self.has_end(self.filling, units);
            debug_assert!(has_end, "a record inside fits an empty page");
        }
        let number = self.filling;
        let bytes = self.page_mut(number);
        let unit = header(bytes, END);
        set_header(bytes, END, unit + units);
        set_header(bytes, RECORDS, header(bytes, RECORDS) + 1);
        Some((number, unit))
    }

    /// Whether `units` fit behind what the page uses; grows it if it may.
    fn has_end(&mut self, number: u32, units: usize) -> bool {
        let bytes = self.page(number);
        let needed = (header(bytes, END) + units) * UNIT;
        if needed <= bytes.len() {
            return true;
        }
        let Some(&step) = STEPS.iter().find(|&&step| step >= needed) else {
            return false;
        };
        let mut grown = Vec::with_capacity(step);
        grown.extend_from_slice(bytes);
        grown.resize(step, 0);
        self.bytes += step - bytes.len();
        if let Some(page) = self.pages.get_mut(number as usize) {
            page.bytes = Some(Arc::from(grown));
        }
        true
    }

    /// Adds an empty page, which fills up from now on. What is left at the end of the one before counts as a hole.
    fn add_page(&mut self, size: usize) -> Option<()> {
        if self.vacant.is_empty() && self.pages.len() == PAGES_MAX {
            return None;
        }
        if !self.pages.is_empty() {
            self.close_filling();
        }
        let mut bytes = vec![0; size];
        bytes[..HEADER_UNITS * UNIT].copy_from_slice(&EMPTY_HEADER);
        self.bytes += size + COUNTS_BYTES;
        let page = Page {
            bytes: Some(Arc::from(bytes)),
            roomy_at: NOWHERE,
        };
        self.filling = match self.vacant.pop() {
            Some(number) => {
                *self
                    .pages
                    .get_mut(number as usize)
                    .expect("vacant pages are pages") = page;
                number
            }
            None => {
                self.pages.push(page);
                (self.pages.len() - 1) as u32
            }
        };
        Some(())
    }

    fn close_filling(&mut self) {
        let number = self.filling;
        let bytes = self.page(number);
        let (end, units) = (header(bytes, END), bytes.len() / UNIT);
        if end < units {
            let bytes = self.page_mut(number);
            set_header(bytes, END, units);
            free(bytes, end, units - end);
            if header(bytes, HOLES) >= ROOMY {
                self.note_roomy(number);
            }
        }
    }

    fn note_roomy(&mut self, number: u32) {
        let at = self.roomy.len() as u32;
        match self.pages.get_mut(number as usize) {
            Some(page) if page.roomy_at == NOWHERE => page.roomy_at = at,
            _ => return,
        }
        self.roomy.push(number);
    }

    fn forget_roomy(&mut self, number: u32) {
        let at = match self.pages.get(number as usize) {
            Some(page) if page.roomy_at != NOWHERE => page.roomy_at,
            _ => return,
        };
        self.roomy.swap_remove(at as usize);
        if let Some(&moved) = self.roomy.get(at as usize)
            && let Some(page) = self.pages.get_mut(moved as usize)
        {
            page.roomy_at = at;
        }
        if let Some(page) = self.pages.get_mut(number as usize) {
            page.roomy_at = NOWHERE;
        }
    }
}

/// The fields of a page's header, by their offsets.
const FIRST_HOLE: usize = 0;
const END: usize = 2;
const HOLES: usize = 4;
const RECORDS: usize = 6;
const EMPTY_HEADER: [u8; HEADER_UNITS * UNIT] = [0, 0, HEADER_UNITS as u8, 0, 0, 0, 0, 0];

fn header(page: &[u8], field: usize) -> usize {
    u16::from_le_bytes([page[field], page[field + 1]]).into()
}

fn set_header(page: &mut [u8], field: usize, value: usize) {
    page[field..field + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

fn units_of(len: usize) -> usize {
    let length_bytes = if len < 0x80 { 1 } else { 2 };
    (length_bytes + len).div_ceil(UNIT)
}

/// Where the bytes of the record at `unit` start and how many there are.
#[inline]
fn extent(page: &[u8], unit: usize) -> (usize, usize) {
    let at = unit * UNIT;
    let first = usize::from(page[at]);
    if first < 0x80 {
        (at + 1, first)
    } else {
        (at + 2, (first & 0x7f) << 8 | usize::from(page[at + 1]))
    }
}

fn write_record<'p>(
    page: &mut [u8],
    unit: usize,
    len: usize,
    parts: impl Iterator<Item = &'p [u8]>,
) {
    let mut at = unit * UNIT;
    if len < 0x80 {
        page[at] = len as u8;
        at += 1;
    } else {
        page[at] = 0x80 | (len >> 8) as u8;
        page[at + 1] = len as u8;
        at += 2;
    }
    for part in parts {
        page[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}

fn collect<'p>(len: usize, parts: impl Iterator<Item = &'p [u8]>) -> Arc<[u8]> {
    let mut record = Vec::with_capacity(len);
    parts.for_each(|part| record.extend_from_slice(part));
    Arc::from(record)
}

fn hole(page: &[u8], unit: usize) -> (usize, usize) {
    let at = unit * UNIT;
    (header(page, at), header(page, at + 2))
}

fn set_hole(page: &mut [u8], unit: usize, next: usize, size: usize) {
    set_header(page, unit * UNIT, next);
    set_header(page, unit * UNIT + 2, size);
}

/// Makes `next` follow the hole at `before`, or the first one when `before` is 0: the header's first field is where a hole has its link.
fn set_link(page: &mut [u8], before: usize, next: usize) {
    set_header(page, before * UNIT, next);
}

/// The first hole of at least `units`, and the one before it.
fn find_hole(page: &[u8], units: usize) -> Option<(usize, usize)> {
    let (mut before, mut at) = (0, header(page, FIRST_HOLE));
    while at != 0 {
        let (next, size) = hole(page, at);
        if size >= units {
            return Some((before, at));
        }
        (before, at) = (at, next);
    }
    None
}

/// Takes `units` from the end of a hole; returns where they are.
fn take_hole(page: &mut [u8], before: usize, at: usize, units: usize) -> usize {
    let (next, size) = hole(page, at);
    if size == units {
        set_link(page, before, next);
    } else {
        set_hole(page, at, next, size - units);
    }
    set_header(page, HOLES, header(page, HOLES) - units);
    set_header(page, RECORDS, header(page, RECORDS) + 1);
    at + size - units
}

/// Makes a hole of `units`, the first in the list.
fn free(page: &mut [u8], unit: usize, units: usize) {
    set_hole(page, unit, header(page, FIRST_HOLE), units);
    set_link(page, 0, unit);
    set_header(page, HOLES, header(page, HOLES) + units);
}

/// Joins holes that are neighbours, and puts the list in the order of their places.
fn join_holes(page: &mut [u8]) {
    let mut free_units = [0_u64; MAP_WORDS];
    let mut at = header(page, FIRST_HOLE);
    while at != 0 {
        let (next, size) = hole(page, at);
        (at..at + size).for_each(|unit| free_units[unit / 64] |= 1 << (unit % 64));
        at = next;
    }
    let is_free = |unit: usize| free_units[unit / 64] >> (unit % 64) & 1 == 1;
    let end = header(page, END);
    let (mut before, mut unit) = (0, HEADER_UNITS);
    while unit < end {
        let start = unit;
        while unit < end && is_free(unit) {
            unit += 1;
        }
        if unit > start {
            set_link(page, before, start);
            set_hole(page, start, 0, unit - start);
            before = start;
        }
        unit += 1;
    }
}

#[cfg(test)]
#[path = "slab/tests.rs"]
mod tests;
