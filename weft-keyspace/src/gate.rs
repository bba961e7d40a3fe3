//! The gates: how one thread gets the keyspace to itself.
//!
//! Owns one gate per worker, the queue of those who want all of them closed, and the knowledge of which workers have
//! been outside since a given moment (the epochs by which retired memory is freed). Does not know what is behind.
//! A gate's word is `passages << 2 | state`. Only its worker moves it between OUTSIDE and INSIDE; the owner of the
//! exclusive right may turn INSIDE into WATCHED, which asks the worker to wake it on leaving.
//!
//! ```text
//!             enter                     owner waits
//!   OUTSIDE ---------> INSIDE -----------------------------> WATCHED
//!      ^  <--- leave ----'                                       |
//!      '------------------- leave, wakes the owner -------------'
//! ```
//! Enter stores its word, fences, then looks whether the gates are closed; the owner closes, fences, then looks at the
//! words. So at least one of them sees the other.

pub(crate) mod limbo;

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::pauses::pause;
use crate::word::{Word, fence, spin_hint};

const OUTSIDE: u32 = 0;
const INSIDE: u32 = 1;
const WATCHED: u32 = 2;
const STATE: u32 = 3;
const PASSAGE: u32 = 4;

const OPEN: u32 = 0;
const CLOSED: u32 = 1;

/// Looks at an occupied gate before sleeping: about 2 us, see the latch.
const SPINS: u32 = if cfg!(loom) { 1 } else { 40 };

/// Alone in its 128 bytes.
#[repr(align(128))]
struct Line<T>(T);

/// All gates of a keyspace.
pub(crate) struct Gates {
    closed: Line<Word>,
    /// Tickets drawn, and the ticket whose turn it is.
    drawn: Line<Word>,
    serving: Word,
    /// How many gates have been in use so far: the first ones. The others are OUTSIDE, and nobody looks at them.
    used: Word,
    gates: Box<[Line<Word>]>,
}

impl Gates {
    /// Gates for at most `most` workers, the first `workers` of them in use.
    pub(crate) fn new(workers: usize, most: usize) -> Gates {
        Gates {
            closed: Line(Word::new(OPEN)),
            drawn: Line(Word::new(0)),
            serving: Word::new(0),
            used: Word::new(workers as u32),
            gates: (0..most.max(workers))
                .map(|_| Line(Word::new(OUTSIDE)))
                .collect(),
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.in_use().len()
    }

    /// Has to be called before the worker enters its gate for the first time.
    pub(crate) fn take_into_use(&self, worker: usize) {
        let count = worker as u32 + 1;
        loop {
            let used = self.used.load(Relaxed);
            // Like a gate's own word, this comes before the look at `closed` in whatever enters next: an owner that does not
            // see it is seen.
            if used >= count || self.used.exchange(used, count, SeqCst) {
                fence(SeqCst);
                return;
            }
        }
    }

    fn in_use(&self) -> &[Line<Word>] {
        &self.gates[..self.used.load(Acquire) as usize]
    }

    #[inline]
    pub(crate) fn gate(&self, worker: usize) -> Gate<'_> {
        debug_assert!(
            (worker as u32) < self.used.load(Relaxed),
            "this gate is in use"
        );
        Gate {
            word: &self.gates[worker].0,
            closed: &self.closed.0,
        }
    }

    /// Whether this is a passage through one of these gates.
    pub(crate) fn guards(&self, inside: &GateGuard<'_>) -> bool {
        self.gates
            .as_ptr_range()
            .contains(&std::ptr::from_ref(inside.word).cast())
    }

    /// Waits for its turn, closes all gates and waits until everyone is outside.
    pub(crate) fn close(&self, worker: usize) -> Closed<'_> {
        assert_eq!(
            self.gates[worker].0.load(Relaxed) & STATE,
            OUTSIDE,
            "a worker leaves its gate before it asks for the keyspace"
        );
        let ticket = self.drawn.0.fetch_add(1, Relaxed);
        loop {
            let serving = self.serving.load(Acquire);
            if serving == ticket {
                break;
            }
            pause();
            self.serving.sleep(serving);
        }
        pause();
        self.closed.0.store(CLOSED, SeqCst);
        fence(SeqCst);
        pause();
        for gate in self.in_use() {
            wait_until_outside(&gate.0);
        }
        Closed {
            gates: self,
            thread: PhantomData,
        }
    }

    /// What every gate looks like now, after everything this thread did so far.
    pub(crate) fn stamp(&self) -> Box<[u32]> {
        fence(SeqCst);
        self.in_use()
            .iter()
            .map(|gate| gate.0.load(Acquire))
            .collect()
    }

    /// Whether every worker has been outside at some time since `stamp` was taken.
    pub(crate) fn all_left_since(&self, stamp: &[u32]) -> bool {
        self.gates.iter().zip(stamp).all(|(gate, &then)| {
            let now = gate.0.load(Acquire);
            then & STATE == OUTSIDE || now & STATE == OUTSIDE || now & !STATE != then & !STATE
        })
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gates")
            .field("workers", &self.workers())
            .finish_non_exhaustive()
    }
}

fn wait_until_outside(word: &Word) {
    let mut spins = 0;
    loop {
        let seen = word.load(Acquire);
        match seen & STATE {
            OUTSIDE => return,
            INSIDE if spins < SPINS => {
                spins += 1;
                spin_hint();
            }
            INSIDE => {
                let watched = seen & !STATE | WATCHED;
                pause();
                if word.exchange(seen, watched, Relaxed) {
                    pause();
                    word.sleep(watched);
                }
            }
            _ => word.sleep(seen),
        }
    }
}

/// One worker's gate.
#[derive(Clone, Copy)]
pub struct Gate<'a> {
    word: &'a Word,
    closed: &'a Word,
}

impl<'a> Gate<'a> {
    /// Enters, waiting while the gates are closed.
    ///
    /// # Panics
    ///
    /// When this gate's worker is inside already.
    #[inline]
    pub fn enter(self) -> GateGuard<'a> {
        loop {
            let passages = self.word.load(Relaxed) & !STATE;
            let inside = passages.wrapping_add(PASSAGE) | INSIDE;
            let before = self.word.swap(inside, SeqCst);
            assert_eq!(before & STATE, OUTSIDE, "one gate, one thread, one passage");
            // On x86-64 the swap is a full barrier; elsewhere what follows could otherwise overtake its store.
            if cfg!(any(loom, not(target_arch = "x86_64"))) {
                fence(SeqCst);
            }
            let guard = GateGuard {
                word: self.word,
                thread: PhantomData,
            };
            pause();
            if self.closed.load(Acquire) == OPEN {
                return guard;
            }
            drop(guard);
            pause();
            self.closed.sleep(CLOSED);
        }
    }

    /// Whether the gates are being closed or are closed: a long batch should end.
    #[inline]
    pub fn is_wanted(self) -> bool {
        self.closed.load(Relaxed) == CLOSED
    }
}

impl fmt::Debug for Gate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

/// Being inside a gate; dropping it leaves.
#[must_use]
pub struct GateGuard<'a> {
    word: &'a Word,
    /// Not `Send`: a passage belongs to its thread.
    thread: PhantomData<*mut ()>,
}

impl Drop for GateGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Only this thread changes the passages, so the relaxed load has the right ones.
        let outside = self.word.load(Relaxed) & !STATE | OUTSIDE;
        pause();
        if self.word.swap(outside, Release) & STATE == WATCHED {
            self.word.wake_all();
        }
    }
}

impl fmt::Debug for GateGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateGuard").finish_non_exhaustive()
    }
}

/// All gates closed and everybody outside; dropping it opens them.
pub(crate) struct Closed<'a> {
    gates: &'a Gates,
    thread: PhantomData<*mut ()>,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        pause();
        self.gates.closed.0.store(OPEN, Release);
        pause();
        self.gates.closed.0.wake_all();
        self.gates.serving.fetch_add(1, Release);
        self.gates.serving.wake_all();
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::atomic::Ordering::{Acquire, Release};

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    use super::Gates;

    struct Shared {
        gates: Gates,
        /// Read inside a gate, written by the owner.
        cells: [UnsafeCell<usize>; 2],
        /// Which cell readers find.
        root: AtomicUsize,
    }

    // SAFETY: loom fails the test if accesses to a cell overlap.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    impl Shared {
        fn new(workers: usize) -> Arc<Shared> {
            Arc::new(Shared {
                gates: Gates::new(workers, workers + 1),
                cells: [UnsafeCell::new(0), UnsafeCell::new(0)],
                root: AtomicUsize::new(0),
            })
        }

        fn read(&self, cell: usize) -> usize {
            // SAFETY: loom fails the test if this overlaps a write.
            self.cells[cell].with(|value| unsafe { *value })
        }

        fn write(&self, cell: usize) {
            // SAFETY: loom fails the test if this overlaps any other access.
            self.cells[cell].with_mut(|value| unsafe { *value += 1 });
        }
    }

    fn check(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(test);
    }

    #[test]
    fn loom_the_owner_is_alone_and_everybody_goes_on() {
        check(3, || {
            let shared = Shared::new(2);
            let worker = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    for _ in 0..2 {
                        let inside = shared.gates.gate(0).enter();
                        shared.read(0);
                        drop(inside);
                    }
                })
            };
            let closed = shared.gates.close(1);
            shared.write(0);
            drop(closed);
            let inside = shared.gates.gate(1).enter();
            assert_eq!(shared.read(0), 1);
            drop(inside);
            worker.join().expect("it does not panic");
        });
    }

    #[test]
    fn loom_a_gate_taken_into_use_late_is_seen() {
        check(3, || {
            let shared = Shared::new(1);
            let worker = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.gates.take_into_use(1);
                    let inside = shared.gates.gate(1).enter();
                    shared.read(0);
                    drop(inside);
                })
            };
            let closed = shared.gates.close(0);
            shared.write(0);
            drop(closed);
            worker.join().expect("it does not panic");
        });
    }

    #[test]
    fn loom_owners_queue() {
        check(2, || {
            let shared = Shared::new(3);
            let worker = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let inside = shared.gates.gate(0).enter();
                    shared.read(0);
                    drop(inside);
                })
            };
            let owner = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let closed = shared.gates.close(1);
                    shared.write(0);
                    drop(closed);
                })
            };
            let closed = shared.gates.close(2);
            shared.write(0);
            drop(closed);
            owner.join().expect("it does not panic");
            worker.join().expect("it does not panic");
            assert_eq!(shared.read(0), 2);
        });
    }

    #[test]
    fn loom_what_was_replaced_is_free_once_everybody_has_left() {
        check(3, || {
            let shared = Shared::new(1);
            let reader = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    for _ in 0..2 {
                        let inside = shared.gates.gate(0).enter();
                        shared.read(shared.root.load(Acquire));
                        drop(inside);
                    }
                })
            };
            shared.root.store(1, Release);
            let stamp = shared.gates.stamp();
            if shared.gates.all_left_since(&stamp) {
                shared.write(0);
            }
            reader.join().expect("it does not panic");
            assert!(shared.gates.all_left_since(&stamp));
        });
    }
}
