//! Timers: a binary heap ordered by deadline whose entries know their place, so that cancelling is O(log n) too.
//!
//! Knows no clock: time is what the caller says. Invariant: `places[entry.place].position` is the entry's index in `heap`
//! for every entry of the heap; free places form a list.

use crate::driver::{TimerId, TimerToken};

/// All armed timers of one driver.
#[derive(Default)]
pub(crate) struct Timers {
    heap: Vec<Entry>,
    places: Vec<Place>,
    free: Vec<u32>,
    armed: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    deadline_ns: u64,
    /// Timers of one deadline fire in the order they were armed.
    order: u64,
    place: u32,
}

impl Entry {
    fn before(&self, other: &Entry) -> bool {
        (self.deadline_ns, self.order) < (other.deadline_ns, other.order)
    }
}

struct Place {
    token: TimerToken,
    generation: u32,
    position: u32,
}

/// `Place::position` of a place that is free.
const NOWHERE: u32 = u32::MAX;

impl Timers {
    pub(crate) fn arm(&mut self, deadline_ns: u64, token: TimerToken) -> TimerId {
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize].token = token;
                place
            }
            None => {
                self.places.push(Place {
                    token,
                    generation: 1,
                    position: NOWHERE,
                });
                (self.places.len() - 1) as u32
            }
        };
        self.armed += 1;
        self.heap.push(Entry {
            deadline_ns,
            order: self.armed,
            place,
        });
        self.rise(self.heap.len() - 1);
        TimerId::new(place, self.places[place as usize].generation)
    }

    pub(crate) fn cancel(&mut self, id: TimerId) -> bool {
        match self.places.get(id.slot() as usize) {
            Some(place) if place.generation == id.generation() && place.position != NOWHERE => {
                self.remove(place.position as usize);
                true
            }
            _ => false,
        }
    }

    /// The earliest deadline, in nanoseconds.
    #[inline]
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.heap.first().map(|entry| entry.deadline_ns)
    }

    /// Takes the earliest timer that is due at `now_ns` and was armed before `horizon` (see [`Timers::horizon`]).
    pub(crate) fn pop_due(&mut self, now_ns: u64, horizon: u64) -> Option<TimerToken> {
        let first = self.heap.first()?;
        if first.deadline_ns > now_ns || first.order > horizon {
            return None;
        }
        let token = self.places[first.place as usize].token;
        self.remove(0);
        Some(token)
    }

    /// Marks "everything armed until now", so that a callback that arms a timer already due does not extend the turn.
    pub(crate) fn horizon(&self) -> u64 {
        self.armed
    }

    fn remove(&mut self, position: usize) {
        let entry = self.heap.swap_remove(position);
        let place = &mut self.places[entry.place as usize];
        place.position = NOWHERE;
        place.generation = place.generation.wrapping_add(1).max(1);
        self.free.push(entry.place);
        if position < self.heap.len() {
            self.rise(position);
            self.sink(position);
        }
        if self.heap.is_empty() {
            self.release_memory();
        }
    }

    /// A burst of timers must not hold its memory for ever. Places keep their generations, so they stay.
    fn release_memory(&mut self) {
        const KEPT: usize = 1024;
        if self.heap.capacity() > KEPT {
            self.heap.shrink_to(KEPT);
        }
    }

    fn rise(&mut self, mut position: usize) {
        let entry = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / 2;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        self.put(position, entry);
    }

    fn sink(&mut self, mut position: usize) {
        let entry = self.heap[position];
        loop {
            let mut child = 2 * position + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1].before(&self.heap[child]) {
                child += 1;
            }
            if !self.heap[child].before(&entry) {
                break;
            }
            self.put(position, self.heap[child]);
            position = child;
        }
        self.put(position, entry);
    }

    fn put(&mut self, position: usize, entry: Entry) {
        self.heap[position] = entry;
        self.places[entry.place as usize].position = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(timers: &mut Timers, now_ns: u64) -> Vec<u64> {
        let horizon = timers.horizon();
        std::iter::from_fn(|| timers.pop_due(now_ns, horizon))
            .map(|token| token.0)
            .collect()
    }

    #[test]
    fn fire_in_order_of_deadline_then_of_arming() {
        let mut timers = Timers::default();
        for (token, deadline) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 30)] {
            timers.arm(deadline, TimerToken(token));
        }
        assert_eq!(timers.next_deadline_ns(), Some(10));
        assert_eq!(due(&mut timers, 9), []);
        assert_eq!(due(&mut timers, 10), [2, 4]);
        assert_eq!(due(&mut timers, 29), [3]);
        assert_eq!(due(&mut timers, 30), [1, 5]);
        assert_eq!(timers.next_deadline_ns(), None);
    }

    #[test]
    fn a_cancelled_timer_is_gone_and_its_id_stays_dead() {
        let mut timers = Timers::default();
        let first = timers.arm(10, TimerToken(1));
        assert!(timers.cancel(first));
        assert!(!timers.cancel(first));
        let second = timers.arm(10, TimerToken(2));
        assert!(
            !timers.cancel(first),
            "the place is used again, the identity is not"
        );
        assert_eq!(due(&mut timers, 10), [2]);
        assert!(!timers.cancel(second), "it has fired");
    }

    #[test]
    fn one_armed_in_a_callback_waits_for_the_next_round() {
        let mut timers = Timers::default();
        timers.arm(10, TimerToken(1));
        let horizon = timers.horizon();
        assert_eq!(timers.pop_due(10, horizon), Some(TimerToken(1)));
        timers.arm(5, TimerToken(2));
        assert_eq!(timers.pop_due(10, horizon), None);
        assert_eq!(due(&mut timers, 10), [2]);
    }

    #[test]
    fn agrees_with_a_sorted_list_under_random_use() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut timers = Timers::default();
        let mut model: Vec<(u64, u64, TimerId)> = Vec::new();
        let mut now = 0;
        for token in 0..20_000u64 {
            match random.u32(0..10) {
                0..=5 => {
                    let deadline = now + random.u64(0..1000);
                    model.push((deadline, token, timers.arm(deadline, TimerToken(token))));
                }
                6..=7 if !model.is_empty() => {
                    let (_, _, id) = model.remove(random.usize(0..model.len()));
                    assert!(timers.cancel(id));
                }
                _ => {
                    now += random.u64(0..100);
                    model.sort_by_key(|&(deadline, token, _)| (deadline, token));
                    let expected: Vec<u64> = model
                        .iter()
                        .take_while(|entry| entry.0 <= now)
                        .map(|entry| entry.1)
                        .collect();
                    model.drain(..expected.len());
                    assert_eq!(due(&mut timers, now), expected);
                }
            }
            assert_eq!(
                timers.next_deadline_ns(),
                model.iter().map(|entry| entry.0).min()
            );
        }
    }
}
