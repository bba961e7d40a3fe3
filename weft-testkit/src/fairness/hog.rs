//! Processor time burnt on purpose.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Burnt at a stretch, unless the whole core is to be burnt.
const STRETCH: Duration = Duration::from_micros(200);
/// The longest rest, so that a small share is spread and an end is noticed.
const REST_MAX: Duration = Duration::from_millis(20);

/// Keeps `share` of a core busy until `stop`, and returns how much time it got. It cannot get more than a whole core.
pub(super) fn burn(share: f64, stop: &AtomicBool) -> Duration {
    let start = Instant::now();
    let cpu_start = thread_time();
    let spent = || thread_time().saturating_sub(cpu_start);
    while !stop.load(Ordering::Relaxed) {
        // How long the time spent so far ought to have lasted.
        let due = spent().as_secs_f64() / share.max(1e-3);
        let ahead = due - start.elapsed().as_secs_f64();
        if ahead > 0.0 {
            std::thread::sleep(Duration::from_secs_f64(ahead).min(REST_MAX));
        } else {
            let end = spent() + STRETCH;
            while spent() < end {
                std::hint::spin_loop();
            }
        }
    }
    spent()
}

/// This thread's processor time so far.
pub(super) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_burns_about_its_share() {
        let stop = AtomicBool::new(false);
        let (burnt, elapsed) = std::thread::scope(|scope| {
            let start = Instant::now();
            let hog = scope.spawn(|| burn(0.2, &stop));
            // How long it may burn is what is measured, not a wait for something.
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
            (hog.join().expect("it does not panic"), start.elapsed())
        });
        let share = burnt.as_secs_f64() / elapsed.as_secs_f64();
        assert!(share < 0.25, "{share}");
        assert!(burnt > Duration::ZERO);
    }
}
