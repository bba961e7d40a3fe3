//! Nanoseconds of processor time per request through a session, without sockets: GET and SET over 200,000 keys of 128 bytes,
//! with a clock that costs nothing and with the one that servers have.
//!
//! `cargo bench -p weft-engine --bench pipeline [rounds]`

#[path = "../tests/in_process/mod.rs"]
mod in_process;

use std::hint::black_box;

use in_process::Local;
use weft_engine::clock::Clock;

const KEYS: u64 = 200_000;
const REQUESTS: u64 = 2_000_000;

fn request(into: &mut Vec<u8>, set: bool, key: u64) {
    let value = "x".repeat(128);
    if set {
        into.extend_from_slice(
            format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:{key:012}\r\n$128\r\n{value}\r\n").as_bytes(),
        );
    } else {
        into.extend_from_slice(format!("*2\r\n$3\r\nGET\r\n$16\r\nkey:{key:012}\r\n").as_bytes());
    }
}

/// As the server's clock.
struct SystemClock(quanta::Clock);

impl Clock for SystemClock {
    fn unix_us(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
    }

    fn monotonic_ns(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn instant_ns(&self) -> u64 {
        self.0.delta_as_nanos(0, self.0.raw())
    }
}

/// This thread's processor time: other work on the machine disturbs it less than it does the clock.
fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn main() {
    let rounds = std::env::args()
        .filter_map(|word| word.parse().ok())
        .next()
        .unwrap_or(5);
    let mut random = fastrand::Rng::with_seed(1);
    let mut local = Local::new();
    for key in 0..KEYS {
        let mut bytes = Vec::new();
        request(&mut bytes, true, key);
        local.send(&bytes);
    }
    let system = SystemClock(quanta::Clock::new());
    println!(
        "{:6} {:>9} {:>8} {:>12}",
        "", "pipeline", "ns/op", "with clock"
    );
    for set in [false, true] {
        for depth in [1, 16, 100] {
            let batches: Vec<Vec<u8>> = (0..20_000 / depth)
                .map(|_| {
                    let mut bytes = Vec::new();
                    (0..depth).for_each(|_| request(&mut bytes, set, random.u64(..KEYS)));
                    bytes
                })
                .collect();
            let mut best = [f64::INFINITY; 2];
            for _ in 0..rounds {
                for (best, clock) in best.iter_mut().zip([None, Some(&system)]) {
                    let start = cpu_ns();
                    for turn in 0..(REQUESTS / depth) as usize {
                        let bytes = &batches[turn % batches.len()];
                        let replied = match clock {
                            None => local.receive(bytes),
                            Some(clock) => local.receive_at(bytes, clock),
                        };
                        black_box(replied);
                    }
                    *best = best.min((cpu_ns() - start) as f64 / REQUESTS as f64);
                }
            }
            let name = if set { "SET" } else { "GET" };
            println!("{name:6} {depth:9} {:8.1} {:12.1}", best[0], best[1]);
        }
    }
}
