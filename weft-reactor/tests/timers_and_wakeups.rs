//! Timers are never early and wake-ups never lost.

mod rig;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rig::{Happened, NewDriver, Rig, on_every_driver};
use weft_reactor::{TimerId, TimerToken, Waker, monotonic_ns};

on_every_driver! {
    timers_are_never_early_and_come_in_order
    a_cancelled_timer_does_not_fire
    a_timer_ends_a_longer_wait
    a_timer_armed_for_the_past_fires_in_the_next_turn
    a_timer_that_arms_itself_again_does_not_hold_up_the_turn
    a_wake_up_before_the_wait_is_not_lost
    wake_ups_of_many_threads_are_not_lost
    a_waker_outlives_its_driver
}

const MS: u64 = 1_000_000;

fn timers_are_never_early_and_come_in_order<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let mut random = fastrand::Rng::with_seed(1);
    let start = monotonic_ns();
    // Nanoseconds on purpose: between the ticks of the wait's own resolution.
    let deadlines: Vec<u64> = (0..300).map(|_| start + random.u64(0..40 * MS)).collect();
    let cancelled: Vec<TimerId> = deadlines
        .iter()
        .enumerate()
        .filter_map(|(number, deadline)| {
            let id = rig.io.arm_timer(*deadline, TimerToken(number as u64));
            (number % 5 == 0).then_some(id)
        })
        .collect();
    for id in cancelled {
        assert!(rig.io.cancel_timer(id));
    }
    let early = Arc::new(Mutex::new(0));
    {
        let (early, deadlines) = (Arc::clone(&early), deadlines.clone());
        rig.seen.on_timer = Some(Box::new(move |_, token| {
            if monotonic_ns() < deadlines[token as usize] {
                *early.lock().unwrap() += 1;
            }
        }));
    }
    rig.until("all have fired", |seen| seen.log.len() == 240);
    assert_eq!(*early.lock().unwrap(), 0);
    let mut expected: Vec<u64> = (0..300).filter(|number| number % 5 != 0).collect();
    expected.sort_by_key(|number| (deadlines[*number as usize], *number));
    let fired: Vec<Happened> = expected.into_iter().map(Happened::Timer).collect();
    assert_eq!(rig.seen.log, fired);
}

fn a_cancelled_timer_does_not_fire<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let now = monotonic_ns();
    let first = rig.io.arm_timer(now + MS, TimerToken(1));
    let second = rig.io.arm_timer(now + 2 * MS, TimerToken(2));
    // Cancelled from inside the turn in which it is due as well.
    while monotonic_ns() < now + 2 * MS {
        thread::yield_now();
    }
    rig.seen.on_timer = Some(Box::new(move |io, token| {
        assert_eq!(token, 1);
        assert!(!io.cancel_timer(first));
        assert!(io.cancel_timer(second));
    }));
    rig.turn(Some(Duration::ZERO));
    rig.turn(Some(Duration::from_millis(2)));
    assert_eq!(rig.seen.log, [Happened::Timer(1)]);
}

fn a_timer_ends_a_longer_wait<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let deadline = monotonic_ns() + 10 * MS;
    rig.io.arm_timer(deadline, TimerToken(1));
    let report = rig.turn(None);
    assert!(monotonic_ns() >= deadline);
    assert!(report.asleep_ns > 0);
    assert_eq!(rig.seen.log, [Happened::Timer(1)]);
    assert!(rig.io.turn_started_ns() >= deadline);
}

fn a_timer_armed_for_the_past_fires_in_the_next_turn<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    rig.io.arm_timer(0, TimerToken(7));
    let report = rig.turn(None);
    assert_eq!(rig.seen.log, [Happened::Timer(7)]);
    assert_eq!(report.asleep_ns, 0);
}

fn a_timer_that_arms_itself_again_does_not_hold_up_the_turn<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    rig.seen.on_timer = Some(Box::new(|io, token| {
        io.arm_timer(0, TimerToken(token + 1));
    }));
    rig.io.arm_timer(0, TimerToken(0));
    for turns in 1..=5u64 {
        rig.turn(None);
        assert_eq!(rig.seen.log.len() as u64, turns);
    }
}

fn a_wake_up_before_the_wait_is_not_lost<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let waker = rig.io.waker();
    waker.wake();
    waker.wake();
    let report = rig.turn(None);
    assert_eq!(rig.seen.log, [Happened::Woken]);
    assert_eq!(
        (report.events, report.asleep_ns),
        (0, 0),
        "told without a system call"
    );
    rig.turn(Some(Duration::ZERO));
    assert_eq!(rig.seen.log.len(), 1, "told once");
}

fn wake_ups_of_many_threads_are_not_lost<D: NewDriver>() {
    const THREADS: usize = 4;
    const EACH: usize = 20_000;
    let mut rig = Rig::<D>::new();
    let (sender, receiver) = mpsc::channel::<usize>();
    let taken = Arc::new(Mutex::new(0usize));
    {
        let taken = Arc::clone(&taken);
        rig.seen.on_woken = Some(Box::new(move |_| {
            *taken.lock().unwrap() += receiver.try_iter().count()
        }));
    }
    let threads: Vec<_> = (0..THREADS)
        .map(|seed| {
            let (sender, waker) = (sender.clone(), rig.io.waker());
            thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed as u64);
                for number in 0..EACH {
                    sender.send(number).unwrap();
                    waker.wake();
                    // Lets the driver fall asleep at many different moments.
                    for _ in 0..random.u32(0..200) {
                        std::hint::spin_loop();
                    }
                    if random.u32(0..64) == 0 {
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    while *taken.lock().unwrap() < THREADS * EACH {
        // A lost wake-up would sleep for this long.
        let report = rig.turn(Some(rig::PATIENCE));
        assert!(
            report.asleep_ns < rig::PATIENCE.as_nanos() as u64 / 2,
            "a wake-up was lost"
        );
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*taken.lock().unwrap(), THREADS * EACH);
}

fn a_waker_outlives_its_driver<D: NewDriver>() {
    fn shared<T: Clone + Send + Sync + 'static>(value: T) -> T {
        value
    }
    let waker: Waker = shared(Rig::<D>::new().io.waker());
    waker.wake();
}
