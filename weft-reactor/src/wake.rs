//! Waking a driver from other threads.
//!
//! Owns the sleeping flag and the event descriptor behind it. The flag is one word with three states:
//!
//! ```text
//!            notify                 prepare_sleep              notify (the only one that costs a system call)
//!  NOTIFIED <------- AWAKE  ------------------------>  ASLEEP ---------------------> NOTIFIED
//!      \_______________^___________________________________/ wake_up
//! ```
//!
//! Invariant: whoever publishes work and then calls `notify` is seen: either the driver finds NOTIFIED before it sleeps,
//! or the notifier finds ASLEEP and wakes it, or the driver has yet to pass `wake_up` and looks at the work after it.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering, fence};

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Wakes the driver it was taken from, from any thread. `Clone + Send + Sync`; outlives the driver harmlessly.
#[derive(Clone)]
pub struct Waker {
    bell: Arc<Bell>,
}

impl Waker {
    /// Makes the driver call [`Handler::woken`](crate::Handler::woken) soon, and after everything the calling thread
    /// has published before this call. A driver that is awake is told without a system call; several calls may end in
    /// one callback.
    #[inline]
    pub fn wake(&self) {
        if self.bell.flag.notify() {
            self.bell.ring();
        }
    }
}

impl std::fmt::Debug for Waker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Waker")
    }
}

/// The driver's side: the flag and the descriptor its wait includes.
pub(crate) struct Bell {
    pub(crate) flag: SleepFlag,
    event: OwnedFd,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Arc<Bell>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Bell {
            flag: SleepFlag::new(),
            event,
        }))
    }

    pub(crate) fn waker(self: &Arc<Bell>) -> Waker {
        Waker {
            bell: Arc::clone(self),
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    #[cold]
    fn ring(&self) {
        // The counter is never read: the driver watches for edges. It would take 2^64 - 2 rings to fill it, and a full
        // counter is the only failure there is.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const NOTIFIED: u32 = 2;

/// The word that decides who pays for a wake-up. Alone on its cache line: other threads write it.
#[repr(align(128))]
pub(crate) struct SleepFlag {
    state: AtomicU32,
}

impl SleepFlag {
    pub(crate) fn new() -> SleepFlag {
        SleepFlag {
            state: AtomicU32::new(AWAKE),
        }
    }

    /// Called by anyone after publishing work. True: the owner sleeps, and the caller has to wake it.
    #[inline]
    pub(crate) fn notify(&self) -> bool {
        // Orders the published work before the look at the flag, against the fence in `wake_up`. The look comes first
        // so that a crowd of notifiers shares the line instead of passing it around.
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == NOTIFIED {
            return false;
        }
        self.state.swap(NOTIFIED, Ordering::AcqRel) == ASLEEP
    }

    /// Called by the owner before it sleeps. False: there is news, do not sleep.
    #[inline]
    pub(crate) fn prepare_sleep(&self) -> bool {
        self.state
            .compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Called by the owner while it waits without sleeping.
    #[inline]
    pub(crate) fn is_notified(&self) -> bool {
        self.state.load(Ordering::Relaxed) == NOTIFIED
    }

    /// Called by the owner after its wait, before it looks for work. True: somebody called `notify`.
    #[inline]
    pub(crate) fn wake_up(&self) -> bool {
        let notified = self.state.swap(AWAKE, Ordering::AcqRel) == NOTIFIED;
        fence(Ordering::SeqCst);
        notified
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::atomic::{AtomicBool, AtomicUsize};
    use loom::sync::{Arc, Notify};
    use loom::thread;

    /// One sleeper, and `notifiers` threads that publish a piece of work each (relaxed: only the flag orders it). A lost
    /// wake-up, or work that was announced but not seen, leaves the sleeper asleep for ever, which loom reports as a
    /// deadlock. The event descriptor is a `Notify`: a ring stays until it is waited for.
    fn no_wake_up_is_lost(notifiers: usize, preemptions: Option<usize>) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions;
        builder.check(move || {
            let flag = Arc::new(SleepFlag::new());
            let bell = Arc::new(Notify::new());
            let work = Arc::new(
                (0..notifiers)
                    .map(|_| AtomicBool::new(false))
                    .collect::<Vec<_>>(),
            );
            let rings = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..notifiers)
                .map(|index| {
                    let (flag, bell, work, rings) =
                        (flag.clone(), bell.clone(), work.clone(), rings.clone());
                    thread::spawn(move || {
                        work[index].store(true, Ordering::Relaxed);
                        if flag.notify() {
                            rings.fetch_add(1, Ordering::Relaxed);
                            bell.notify();
                        }
                    })
                })
                .collect();
            let mut done = 0;
            let mut sleeps = 0;
            while done < notifiers {
                if flag.prepare_sleep() {
                    sleeps += 1;
                    bell.wait();
                }
                if flag.wake_up() {
                    done = work
                        .iter()
                        .filter(|item| item.load(Ordering::Relaxed))
                        .count();
                }
            }
            for thread in threads {
                thread.join().unwrap();
            }
            assert!(
                rings.load(Ordering::Relaxed) <= sleeps,
                "an awake driver was rung"
            );
        });
    }

    #[test]
    fn one_notifier() {
        no_wake_up_is_lost(1, None);
    }

    #[test]
    fn two_notifiers() {
        no_wake_up_is_lost(2, Some(3));
    }
}
