//! Messages to the thread of a driver: never blocking the sender, never lost, in each sender's order.
//!
//! Owns a list of nodes. Every message brings its own, so that posting cannot fail for lack of room and takes one
//! compare-and-swap; the receiver takes the whole list with one swap and turns it round.
//! Invariant: a node belongs to whoever took it out: the sender until it is linked, the receiver after its swap.

#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicPtr, Ordering};

use std::ptr;
use std::sync::Arc;

use crate::wake::Waker;

/// The sending end, for any number of threads.
pub struct Mailbox<T> {
    list: Arc<List<T>>,
    waker: Waker,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self {
            list: Arc::clone(&self.list),
            waker: self.waker.clone(),
        }
    }
}

impl<T: Send> Mailbox<T> {
    /// A mailbox of the thread that `waker` wakes.
    pub fn new(waker: Waker) -> (Self, Inbox<T>) {
        let list = Arc::new(List::new());
        let inbox = Inbox {
            list: Arc::clone(&list),
        };
        (Self { list, waker }, inbox)
    }

    /// Delivers a message and wakes the thread. A message to a thread that has ended is dropped with the last sender.
    pub fn post(&self, message: T) {
        self.list.push(Box::new(Node::new(message)));
        self.waker.wake();
    }

    /// Makes the thread look around, without a message.
    pub fn wake(&self) {
        self.waker.wake();
    }
}

/// The receiving end.
pub struct Inbox<T> {
    list: Arc<List<T>>,
}

impl<T: Send> Inbox<T> {
    /// Everything posted so far, in order.
    pub fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.list.take()
    }
}

struct Node<T> {
    message: T,
    next: *mut Node<T>,
}

impl<T> Node<T> {
    fn new(message: T) -> Self {
        Self {
            message,
            next: ptr::null_mut(),
        }
    }
}

/// The newest node first. Alone on its cache line: other threads write it.
#[repr(align(128))]
struct List<T> {
    newest: AtomicPtr<Node<T>>,
}

// SAFETY: a list hands each message from one thread to another and shows it to nobody in between.
unsafe impl<T: Send> Sync for List<T> {}
// SAFETY: as above; it owns its messages.
unsafe impl<T: Send> Send for List<T> {}

impl<T> List<T> {
    fn new() -> Self {
        Self {
            newest: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn push(&self, node: Box<Node<T>>) {
        let node = Box::into_raw(node);
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: the node came from a box and is not linked yet: it is this thread's alone.
            unsafe { (*node).next = newest };
            match self.newest.compare_exchange_weak(
                newest,
                node,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => newest = now,
            }
        }
    }

    /// Takes all nodes, the oldest first.
    fn take(&self) -> Taken<T> {
        let mut node = self.newest.swap(ptr::null_mut(), Ordering::Acquire);
        let mut oldest: Option<Box<Node<T>>> = None;
        while !node.is_null() {
            // SAFETY: it came from a box; the swap made the whole list this thread's, and each node is visited once.
            let mut taken = unsafe { Box::from_raw(node) };
            node = taken.next;
            taken.next = oldest.map_or(ptr::null_mut(), Box::into_raw);
            oldest = Some(taken);
        }
        Taken { oldest }
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Messages taken out, linked from the oldest to the newest.
struct Taken<T> {
    oldest: Option<Box<Node<T>>>,
}

// SAFETY: it owns its messages.
unsafe impl<T: Send> Send for Taken<T> {}

impl<T> Iterator for Taken<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let Node { message, next } = *self.oldest.take()?;
        if !next.is_null() {
            // SAFETY: `take` made it from a box, and nothing else refers to it.
            self.oldest = Some(unsafe { Box::from_raw(next) });
        }
        Some(message)
    }
}

impl<T> Drop for Taken<T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_order_and_unread_ones_are_dropped() {
        let list = List::new();
        let counted = Arc::new(());
        for number in 0..5 {
            list.push(Box::new(Node::new((number, Arc::clone(&counted)))));
        }
        let mut taken = list.take();
        assert_eq!(taken.next().map(|(number, _)| number), Some(0));
        assert_eq!(taken.next().map(|(number, _)| number), Some(1));
        drop(taken);
        assert_eq!(Arc::strong_count(&counted), 1);
        list.push(Box::new(Node::new((9, Arc::clone(&counted)))));
        assert_eq!(Arc::strong_count(&counted), 2);
        drop(list);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::{Arc, Notify};
    use loom::thread;

    use super::{List, Node};
    use crate::wake::SleepFlag;

    /// Two senders post to a receiver that sleeps whenever it has nothing to do. A message that is announced and not
    /// found leaves the receiver asleep for ever, which loom reports as a deadlock.
    #[test]
    fn every_message_arrives_in_its_sender_s_order() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let list = Arc::new(List::new());
            let flag = Arc::new(SleepFlag::new());
            let bell = Arc::new(Notify::new());
            let senders: Vec<_> = [[1, 2].as_slice(), &[10]]
                .into_iter()
                .map(|messages| {
                    let (list, flag, bell) = (list.clone(), flag.clone(), bell.clone());
                    thread::spawn(move || {
                        for message in messages {
                            list.push(Box::new(Node::new(*message)));
                            if flag.notify() {
                                bell.notify();
                            }
                        }
                    })
                })
                .collect();
            let mut received = Vec::new();
            while received.len() < 3 {
                if flag.prepare_sleep() {
                    bell.wait();
                }
                if flag.wake_up() {
                    received.extend(list.take());
                }
            }
            for sender in senders {
                sender.join().unwrap();
            }
            let small: Vec<i32> = received.iter().copied().filter(|&m| m < 10).collect();
            assert_eq!(small, [1, 2]);
            assert!(received.contains(&10));
        });
    }
}
