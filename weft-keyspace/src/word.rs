//! A 32-bit word that threads can sleep on.
//!
//! Owns the choice between the real thing (an atomic and the futex system call) and the model of it that loom can
//! explore. Latch and gate are written against this and know neither.

#[cfg(not(loom))]
pub(crate) use real::{Word, fence, spin_hint};

#[cfg(loom)]
pub(crate) use model::{Word, fence, spin_hint};

#[cfg(not(loom))]
mod real {
    pub(crate) use core::sync::atomic::fence;
    use core::sync::atomic::{AtomicU32, Ordering};
    use rustix::thread::futex;

    /// An atomic 32-bit word with sleepers.
    #[derive(Debug, Default)]
    pub(crate) struct Word(AtomicU32);

    impl Word {
        pub(crate) fn new(value: u32) -> Word {
            Word(AtomicU32::new(value))
        }

        #[inline]
        pub(crate) fn load(&self, order: Ordering) -> u32 {
            self.0.load(order)
        }

        #[inline]
        pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
            self.0.swap(value, order)
        }

        #[inline]
        pub(crate) fn store(&self, value: u32, order: Ordering) {
            self.0.store(value, order);
        }

        #[inline]
        pub(crate) fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
            self.0.fetch_add(value, order)
        }

        #[inline]
        pub(crate) fn exchange(&self, old: u32, new: u32, order: Ordering) -> bool {
            self.0
                .compare_exchange(old, new, order, Ordering::Relaxed)
                .is_ok()
        }

        /// Sleeps while the word holds `expected`; may also return for no reason.
        #[cold]
        pub(crate) fn sleep(&self, expected: u32) {
            // Every error means the same as a spurious return (the word changed, a signal came): the caller looks again.
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, expected, None);
        }

        #[cold]
        pub(crate) fn wake_one(&self) {
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }

        #[cold]
        pub(crate) fn wake_all(&self) {
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }

    #[inline]
    pub(crate) fn spin_hint() {
        core::hint::spin_loop();
    }
}

#[cfg(loom)]
mod model {
    pub(crate) use loom::sync::atomic::fence;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};

    /// The model: like the kernel, it compares the word and queues the sleeper in one step as seen by wakers.
    #[derive(Debug)]
    pub(crate) struct Word {
        value: AtomicU32,
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Word {
        pub(crate) fn new(value: u32) -> Word {
            Word {
                value: AtomicU32::new(value),
                queue: Mutex::new(()),
                woken: Condvar::new(),
            }
        }

        pub(crate) fn load(&self, order: Ordering) -> u32 {
            self.value.load(order)
        }

        pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
            self.value.swap(value, order)
        }

        pub(crate) fn store(&self, value: u32, order: Ordering) {
            self.value.store(value, order);
        }

        pub(crate) fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
            self.value.fetch_add(value, order)
        }

        pub(crate) fn exchange(&self, old: u32, new: u32, order: Ordering) -> bool {
            self.value
                .compare_exchange(old, new, order, Ordering::Relaxed)
                .is_ok()
        }

        pub(crate) fn sleep(&self, expected: u32) {
            let queue = self.queue.lock().expect("no holder panics");
            if self.value.load(Ordering::Relaxed) == expected {
                drop(self.woken.wait(queue).expect("no holder panics"));
            }
        }

        pub(crate) fn wake_one(&self) {
            let queue = self.queue.lock().expect("no holder panics");
            self.woken.notify_one();
            drop(queue);
        }

        pub(crate) fn wake_all(&self) {
            let queue = self.queue.lock().expect("no holder panics");
            self.woken.notify_all();
            drop(queue);
        }
    }

    impl Default for Word {
        fn default() -> Word {
            Word::new(0)
        }
    }

    pub(crate) fn spin_hint() {
        loom::thread::yield_now();
    }
}
