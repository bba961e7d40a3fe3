//! How many more there are to send, shared by the threads that send them.
//!
//! Owns one number that all threads draw from. A thread draws many at a time, so that the number is not written once per
//! request; towards the end it draws few, so that no thread is left with much while the others have nothing. Invariant:
//! the amounts drawn sum to what there was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Draws at most this much at a time, so that a thread which falls behind leaves the rest to the others.
const DRAWN_MAX: u64 = 8192;

/// What is left to draw, to be shared.
#[derive(Debug)]
pub struct Budget {
    amount: u64,
    left: AtomicU64,
    threads: u64,
}

impl Budget {
    /// `amount` for so many threads.
    pub fn new(amount: u64, threads: usize) -> Arc<Budget> {
        Arc::new(Budget {
            amount,
            left: AtomicU64::new(amount),
            threads: threads.max(1) as u64,
        })
    }

    /// A thread's access to it.
    pub fn share(self: &Arc<Budget>) -> Share {
        Share {
            budget: Arc::clone(self),
            held: 0,
            next: 0,
        }
    }

    /// Some of what is left, and how much was drawn before it; 0 when nothing is.
    fn draw(&self) -> (u64, u64) {
        let portion = |left: u64| match self.threads {
            1 => left,
            threads => (left / (2 * threads)).clamp(1, DRAWN_MAX).min(left),
        };
        // Relaxed: nothing else is told by this number.
        let drawn = self
            .left
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                (left > 0).then(|| left - portion(left))
            });
        drawn.map_or((0, self.amount), |left| (portion(left), self.amount - left))
    }
}

/// One thread's part of a [`Budget`].
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    held: u64,
    next: u64,
}

impl Share {
    /// Takes one. False: nothing is left, and nothing will be.
    #[inline]
    pub fn take(&mut self) -> bool {
        self.take_numbered().is_some()
    }

    /// Takes one, and tells its number: each from 0 up to the amount is given out once, over all threads.
    #[inline]
    pub fn take_numbered(&mut self) -> Option<u64> {
        if self.held == 0 {
            (self.held, self.next) = self.budget.draw();
            if self.held == 0 {
                return None;
            }
        }
        self.held -= 1;
        self.next += 1;
        Some(self.next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(share: &mut Share) -> u64 {
        let mut taken = 0;
        while share.take() {
            taken += 1;
        }
        taken
    }

    #[test]
    fn one_thread_takes_it_all() {
        for amount in [0, 1, 7, 100_000] {
            let budget = Budget::new(amount, 1);
            assert_eq!(taken(&mut budget.share()), amount);
            assert_eq!(taken(&mut budget.share()), 0);
        }
    }

    #[test]
    fn portions_shrink_towards_the_end() {
        let budget = Budget::new(100, 2);
        assert_eq!(budget.draw(), (25, 0));
        assert_eq!(budget.draw(), (18, 25));
        assert_eq!(budget.draw(), (14, 43));
        let rest: Vec<u64> =
            std::iter::from_fn(|| Some(budget.draw().0).filter(|&n| n > 0)).collect();
        assert_eq!(rest.iter().sum::<u64>(), 100 - 25 - 18 - 14);
        assert_eq!(rest[rest.len() - 4..], [1, 1, 1, 1]);
        assert_eq!(Budget::new(u64::MAX, 2).draw(), (DRAWN_MAX, 0));
    }

    #[test]
    fn threads_take_each_one_once() {
        const AMOUNT: u64 = 200_000;
        let budget = Budget::new(AMOUNT, 4);
        let sum: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let mut share = budget.share();
                    scope.spawn(move || taken(&mut share))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(sum, AMOUNT);
    }

    #[test]
    fn threads_take_each_number_once() {
        const AMOUNT: u64 = 20_000;
        let budget = Budget::new(AMOUNT, 3);
        let mut numbers: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let mut share = budget.share();
                    scope.spawn(move || {
                        std::iter::from_fn(|| share.take_numbered()).collect::<Vec<u64>>()
                    })
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        numbers.sort_unstable();
        assert_eq!(numbers, (0..AMOUNT).collect::<Vec<u64>>());
    }
}
