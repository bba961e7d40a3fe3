//! The arena against a list of what was allocated: nothing overlaps, nothing is lost, and memory comes back.

use super::*;

/// Slots in use: handle, bytes, and what was written all over them.
struct Subject {
    arena: Arena,
    ground: Ground,
    slots: Vec<(u32, usize, u8)>,
    rng: fastrand::Rng,
}

impl Subject {
    fn new(seed: u64) -> Subject {
        Subject {
            arena: Arena::new(),
            ground: Ground::new(),
            slots: Vec::new(),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    fn allocate(&mut self, bytes: usize) {
        let handle = self.arena.allocate(bytes, &self.ground);
        if let Some(block) = self.arena.take_outgrown() {
            // SAFETY: nobody reads the old map.
            unsafe { block.free(&self.ground) }
        }
        let mark = self.rng.u8(..);
        // SAFETY: the slot is fresh and has room for as many bytes.
        unsafe { self.arena.address(handle).write_bytes(mark, bytes) };
        self.slots.push((handle, bytes, mark));
    }

    fn free(&mut self, which: usize) {
        let (handle, bytes, mark) = self.slots.swap_remove(which);
        let start = self.arena.address(handle);
        let slot = NonNull::slice_from_raw_parts(start, bytes);
        // SAFETY: written when it was allocated, and nobody else refers to it.
        let content = unsafe { slot.as_ref() };
        assert!(content.iter().all(|&byte| byte == mark));
        self.arena.free(handle, bytes);
    }

    fn free_all(mut self) {
        while !self.slots.is_empty() {
            let which = self.rng.usize(..self.slots.len());
            self.free(which);
        }
        self.arena.verify();
        assert_eq!(self.arena.entry_bytes(), 0);
        assert!(self.arena.classes.iter().all(|class| class.pages == 0));
        assert_eq!(self.arena.mixed.pages, 0);
        let idle = self.arena.trim(usize::MAX);
        self.arena.trimmed(idle);
        assert!(self.arena.page_bytes() <= RESERVE_PAGES * PAGE_BYTES);
        // SAFETY: nothing is in use any more.
        let done = unsafe { self.arena.give_back(&self.ground, usize::MAX) };
        assert!(done);
        // SAFETY: as above.
        unsafe { self.arena.map_block().free(&self.ground) };
    }
}

/// Grows to about `target` bytes, shrinks to a quarter, and so on, with slots of up to `largest` bytes.
fn churn(seed: u64, target: usize, largest: usize) {
    let mut subject = Subject::new(seed);
    for round in 0..3 {
        // Sizes move from round to round, so that pages change their class.
        let smallest = largest / 4 * round + 1;
        while subject.arena.entry_bytes() < target {
            let bytes = subject.rng.usize(smallest..=largest);
            subject.allocate(bytes);
            if subject.rng.u8(..3) == 0 {
                let which = subject.rng.usize(..subject.slots.len());
                subject.free(which);
            }
            if subject.rng.u8(..64) == 0 {
                subject.arena.verify();
            }
        }
        subject.arena.verify();
        while subject.arena.entry_bytes() > target / 4 {
            let which = subject.rng.usize(..subject.slots.len());
            subject.free(which);
        }
        subject.arena.verify();
    }
    subject.free_all();
}

#[test]
fn slots_keep_what_was_written_and_memory_comes_back() {
    for seed in 0..8 {
        churn(seed, 3_000, 16);
        churn(seed, 20_000, 60);
        churn(seed, 60_000, 512);
        churn(seed, 400_000, 160);
        churn(seed, 400_000, SLOT_MAX);
    }
}

/// While an arena is small, slots of many sizes share pages.
#[test]
fn a_small_arena_holds_few_pages() {
    let mut subject = Subject::new(1);
    for bytes in (16..=512).step_by(8) {
        subject.allocate(bytes);
    }
    let used = subject.arena.entry_bytes();
    assert_eq!(used, (2..=64).sum::<usize>() * UNIT);
    // Four pages would do; at the end of each there may be no room for the next slot.
    assert!(subject.arena.page_bytes() <= 5 * PAGE_BYTES);
    subject.free_all();
}

/// A large one has pages of their own for sizes that are many.
#[test]
fn a_large_arena_wastes_little() {
    let mut subject = Subject::new(2);
    for _ in 0..10_000 {
        subject.allocate(40);
        subject.allocate(120);
    }
    let waste = subject.arena.page_bytes() - subject.arena.entry_bytes();
    assert!(waste < subject.arena.entry_bytes() / 100, "{waste}");
    assert!(subject.arena.mixed.pages <= 32);
    subject.free_all();
}

/// Freed slots are used again before anything else is.
#[test]
fn sizes_that_come_again_find_their_slots() {
    let mut subject = Subject::new(3);
    for _ in 0..200 {
        for bytes in [24, 56, 104, 200] {
            subject.allocate(bytes);
        }
    }
    let pages = subject.arena.page_bytes();
    for _ in 0..5_000 {
        let which = subject.rng.usize(..subject.slots.len());
        let bytes = subject.slots[which].1;
        subject.free(which);
        subject.allocate(bytes);
    }
    assert_eq!(subject.arena.page_bytes(), pages);
    subject.arena.verify();
    subject.free_all();
}
