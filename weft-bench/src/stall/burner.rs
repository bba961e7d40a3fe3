//! Threads that burn processor time and talk to nobody: the control of a stall's measurement.
//!
//! Owns how much is burned: so many processors' worth, as whole threads and one that rests between. They compete for
//! processors as the slow command and its client do, and for nothing else. Dropped, they stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A thread that burns a part of a processor does so this often.
const PERIOD: Duration = Duration::from_millis(10);

/// Less than this part of a processor is not worth a thread.
const LEAST: f64 = 0.02;

/// The flag is looked at after so many steps of burning: a few microseconds.
const STEPS: u32 = 2000;

/// Burning threads.
#[derive(Debug)]
pub struct Burner {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Burner {
    /// Burns so many processors' worth, until dropped.
    pub fn start(cores: f64) -> Burner {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = shares(cores).into_iter().filter_map(|share| {
            let stop = Arc::clone(&stop);
            let thread = std::thread::Builder::new().name("burn".to_owned());
            // Without the thread less is burned, which the report tells.
            thread.spawn(move || burn(share, &stop)).ok()
        });
        Burner {
            threads: threads.collect(),
            stop: Arc::clone(&stop),
        }
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The part of a processor that each thread burns.
fn shares(cores: f64) -> Vec<f64> {
    let cores = cores.clamp(0.0, 1024.0);
    let mut shares = vec![1.0; cores as usize];
    let rest = cores.fract();
    if rest >= LEAST {
        shares.push(rest);
    }
    shares
}

fn burn(share: f64, stop: &AtomicBool) {
    let mut value = 1_u64;
    let mut period = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..STEPS {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005) + 1);
        }
        if share < 1.0 && period.elapsed() >= PERIOD.mul_f64(share) {
            std::thread::sleep(PERIOD.saturating_sub(period.elapsed()));
            period = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::ProcessCpu;

    #[test]
    fn processors_are_divided_into_threads() {
        assert!(shares(0.0).is_empty());
        assert!(shares(0.01).is_empty());
        assert_eq!(shares(2.0), [1.0, 1.0]);
        assert_eq!(shares(1.25), [1.0, 0.25]);
        assert!(shares(f64::NAN).is_empty());
    }

    #[test]
    fn time_is_burned_until_it_is_dropped() {
        let id = std::process::id();
        let burned = || {
            let threads = ProcessCpu::read(id).unwrap().since(&ProcessCpu::default());
            let burning = threads.iter().filter(|thread| thread.name == "burn");
            burning.map(|thread| thread.cpu_s).sum::<f64>()
        };
        let burner = Burner::start(1.0);
        while burned() < 0.02 {}
        drop(burner);
        assert_eq!(burned(), 0.0);
    }
}
