//! The latch of a shard, and the cell it guards.
//!
//! Owns mutual exclusion for times of microseconds: a waiter spins shortly, then sleeps. Does not know what it guards.
//! Invariants: the word lies alone in 128 bytes, so that waiters of one shard never slow its neighbours; the word is
//! [`SLEEPERS`] whenever a thread sleeps on it that nobody is about to wake.
//!
//! ```text
//!            acquire                    a waiter gives up spinning
//!   FREE ---------------> HELD ---------------------------------------> SLEEPERS
//!    ^  <----- release ----'                                                |
//!    '--------------------------- release, wakes one ----------------------'
//! ```
//! A woken waiter takes the word as SLEEPERS, since it cannot know whether others still sleep.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::pauses::pause;
use crate::word::{Word, spin_hint};

const FREE: u32 = 0;
const HELD: u32 = 1;
const SLEEPERS: u32 = 2;

/// Looks at a held word before sleeping. A pause takes 40 to 140 cycles on current x86-64 and 1 to 50 on aarch64: at
/// most about 2 us.
const SPINS: u32 = if cfg!(loom) { 1 } else { 40 };

/// What a cell holds. `leave` runs at the end of every holding, and what it returns is dropped after the latch is
/// free: that is how memory is given back without anybody waiting for it.
pub trait Guarded {
    /// Dropped after the latch is free.
    type Residue;

    /// Ends a holding.
    fn leave(&mut self) -> Self::Residue;
}

/// A latch and what it guards.
pub(crate) struct LatchCell<T> {
    latch: Latch,
    value: Apart<UnsafeCell<T>>,
}

/// Begins a line of its own.
#[repr(align(128))]
struct Apart<T>(T);

// SAFETY: the latch hands out one `Held` at a time, so sharing the cell is passing `T` between threads.
unsafe impl<T: Send> Sync for LatchCell<T> {}

impl<T: Guarded> LatchCell<T> {
    pub(crate) fn new(value: T) -> LatchCell<T> {
        LatchCell {
            latch: Latch::new(),
            value: Apart(UnsafeCell::new(value)),
        }
    }

    /// The cache lines that a holder touches first.
    #[inline]
    pub(crate) fn lines(&self) -> [*const u8; 2] {
        [
            std::ptr::from_ref(&self.latch).cast(),
            self.value.0.get().cast_const().cast(),
        ]
    }

    #[inline]
    pub(crate) fn acquire(&self) -> Held<'_, T> {
        self.latch.acquire();
        Held {
            cell: self,
            thread: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn try_acquire(&self) -> Option<Held<'_, T>> {
        self.latch.try_acquire().then(|| Held {
            cell: self,
            thread: PhantomData,
        })
    }
}

/// Access to what a latch guards; dropping it lets the next one in.
pub struct Held<'a, T: Guarded> {
    cell: &'a LatchCell<T>,
    /// Not `Send`: a holding belongs to the thread that took it.
    thread: PhantomData<*mut ()>,
}

impl<T: Guarded> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the latch, and the borrow of the guard bounds the reference.
        unsafe { &*self.cell.value.0.get() }
    }
}

impl<T: Guarded> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the latch, and the unique borrow of the guard bounds the reference.
        unsafe { &mut *self.cell.value.0.get() }
    }
}

impl<T: Guarded> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let residue = self.leave();
        self.cell.latch.release();
        drop(residue);
    }
}

impl<T: Guarded> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latched").finish_non_exhaustive()
    }
}

/// The latch alone.
#[repr(align(128))]
pub(crate) struct Latch(Word);

impl Latch {
    pub(crate) fn new() -> Latch {
        Latch(Word::new(FREE))
    }

    #[inline]
    pub(crate) fn try_acquire(&self) -> bool {
        self.0.exchange(FREE, HELD, Acquire)
    }

    #[inline]
    pub(crate) fn acquire(&self) {
        pause();
        if !self.try_acquire() {
            self.wait();
        }
        pause();
    }

    #[inline]
    pub(crate) fn release(&self) {
        pause();
        if self.0.swap(FREE, Release) == SLEEPERS {
            self.0.wake_one();
        }
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..SPINS {
            match self.0.load(Relaxed) {
                FREE if self.try_acquire() => return,
                // Others sleep already: spinning past them would only lengthen their wait.
                SLEEPERS => break,
                _ => spin_hint(),
            }
        }
        while self.0.swap(SLEEPERS, Acquire) != FREE {
            pause();
            self.0.sleep(SLEEPERS);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::atomic::Ordering::Relaxed;

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    use super::{Guarded, LatchCell};

    /// A number that loom lets nobody touch while somebody else does.
    struct Number(UnsafeCell<usize>);

    impl Guarded for Number {
        type Residue = ();
        fn leave(&mut self) {}
    }

    // SAFETY: only the holder of the latch touches it, which is what the test proves.
    unsafe impl Send for Number {}

    fn increment(number: &Number) {
        // SAFETY: loom fails the test if the accesses overlap.
        number.0.with_mut(|value| unsafe { *value += 1 });
    }

    fn explore(threads: usize, rounds: usize, preemptions: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(move || {
            let cell = Arc::new(LatchCell::new(Number(UnsafeCell::new(0))));
            let work = move |cell: Arc<LatchCell<Number>>| {
                for _ in 0..rounds {
                    increment(&cell.acquire());
                }
            };
            let others: Vec<_> = (1..threads)
                .map(|_| {
                    let cell = Arc::clone(&cell);
                    thread::spawn(move || work(cell))
                })
                .collect();
            work(Arc::clone(&cell));
            for other in others {
                other.join().expect("it does not panic");
            }
            // SAFETY: all others have ended.
            let total = cell.acquire().0.with(|value| unsafe { *value });
            assert_eq!(total, threads * rounds);
        });
    }

    #[test]
    fn loom_two_threads_exclude_each_other_and_always_wake() {
        explore(2, 2, 4);
    }

    #[test]
    fn loom_three_threads_exclude_each_other_and_always_wake() {
        explore(3, 1, 3);
    }

    #[test]
    fn loom_trying_never_enters_beside_a_holder() {
        loom::model(|| {
            let cell = Arc::new(LatchCell::new(Number(UnsafeCell::new(0))));
            let tries = Arc::new(AtomicUsize::new(0));
            let other = {
                let (cell, tries) = (Arc::clone(&cell), Arc::clone(&tries));
                thread::spawn(move || {
                    if let Some(held) = cell.try_acquire() {
                        increment(&held);
                        tries.fetch_add(1, Relaxed);
                    }
                })
            };
            increment(&cell.acquire());
            other.join().expect("it does not panic");
            // SAFETY: the other has ended.
            let total = cell.acquire().0.with(|value| unsafe { *value });
            assert_eq!(total, 1 + tries.load(Relaxed));
        });
    }
}
