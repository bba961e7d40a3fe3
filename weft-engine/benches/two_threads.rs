//! What sharing costs: two threads on one engine beside two processes with an engine each, without sockets.
//!
//! `cargo bench -p weft-engine --bench two_threads [rounds]`
//!
//! Every thread has its own worker and session, and sends batches of 16 requests on random keys, values of 128 bytes. Three
//! parties take turns: two threads on one million shared keys; two processes with a million keys each, which together
//! hold twice the memory and so find less of it in the caches; two processes with half a million each, which hold as much
//! together as the threads do. Those of one party run in the same window of time. Told are medians of
//! the rounds: of the rates, of the threads' rate divided by the processes' in the same round, and the same by processor
//! time, which work of others on the machine disturbs less.

#[path = "../tests/in_process/mod.rs"]
mod in_process;

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::time::{ClockId, clock_gettime};
use weft_engine::clock::ManualClock;
use weft_engine::config::{Config, Facts};
use weft_engine::engine::{Engine, WorkerState};
use weft_engine::session::{Session, Verdict};
use weft_rope::Output;

/// Keys of the two threads together, and of the greater processes each.
const KEYS: u32 = 1_000_000;
/// Only this many hexadecimal digits of a key change.
const DIGITS: usize = 6;
const _: () = assert!(KEYS <= 1 << (4 * DIGITS));
const VALUE_BYTES: usize = 128;
/// Requests that a session is given at once.
const BATCH: usize = 16;
/// Different mixtures of requests in a batch.
const TEMPLATES: usize = 64;
/// Batches between looks at the clock.
const STRETCH: usize = 8;
const WINDOW_NS: u64 = 1_000_000_000;
/// From the order to run to the run itself, so that all have heard it.
const NOTICE_NS: u64 = 30_000_000;
const ROUNDS: usize = 5;
/// Names and percentages of SETs.
const LOADS: [(&str, u8); 3] = [("GET", 0), ("SET", 100), ("half of each", 50)];
/// The word by which this program is told to be one of the parties' processes.
const PARTY: &str = "party";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(place) = words.iter().position(|word| word == PARTY) {
        let number = |offset: usize| {
            words
                .get(place + offset)
                .and_then(|word| word.parse().ok())
                .expect("a number of threads and one of keys")
        };
        return Party::new(number(1) as usize, number(2)).serve();
    }
    let rounds = words.iter().find_map(|word| word.parse().ok());
    compare(rounds.unwrap_or(ROUNDS));
}

/// Nanoseconds of a clock; the one that never goes back is the same in all processes.
fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What was done in a window: requests per second, and requests per microsecond of processor time.
#[derive(Clone, Copy)]
struct Speed {
    rate: f64,
    per_cpu_us: f64,
}

fn compare(rounds: usize) {
    let mut parties = [
        ("two threads, 1 M keys", vec![Process::start(2, KEYS)]),
        (
            "two processes, 1 M each",
            vec![Process::start(1, KEYS), Process::start(1, KEYS)],
        ),
        (
            "two processes, 0.5 M each",
            vec![Process::start(1, KEYS / 2), Process::start(1, KEYS / 2)],
        ),
    ];
    println!(
        "{:<14}{:<27}{:>9}{:>10}{:>16}{:>15}",
        "", "", "k/s", "CPU ns/op", "threads / these", "by CPU time"
    );
    for (load, sets) in LOADS {
        let mut speeds: [Vec<Speed>; 3] = Default::default();
        for round in 0..rounds {
            for turn in 0..parties.len() {
                let place = (turn + round) % parties.len();
                speeds[place].push(run_together(&mut parties[place].1, sets));
            }
        }
        for ((name, _), those) in parties.iter().zip(&speeds) {
            let threads = &speeds[0];
            let ratio = |of: fn(&Speed) -> f64| {
                median(
                    threads
                        .iter()
                        .zip(those)
                        .map(|(ours, theirs)| of(ours) / of(theirs)),
                )
            };
            println!(
                "{load:<14}{name:<27}{:>9.0}{:>10.1}{:>16.3}{:>15.3}",
                median(those.iter().map(|speed| speed.rate)) / 1e3,
                median(those.iter().map(|speed| 1e3 / speed.per_cpu_us)),
                ratio(|speed| speed.rate),
                ratio(|speed| speed.per_cpu_us),
            );
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// All processes of a party in one window.
fn run_together(processes: &mut [Process], sets: u8) -> Speed {
    let start = clock_ns(ClockId::Monotonic) + NOTICE_NS;
    for process in processes.iter_mut() {
        writeln!(process.orders, "{sets} {start} {}", start + WINDOW_NS).expect("it listens");
    }
    let (mut rate, mut requests, mut cpu_ns) = (0.0, 0.0, 0.0);
    for process in processes {
        let [its_rate, its_requests, its_cpu_ns] = process.answer();
        rate += its_rate;
        requests += its_requests;
        cpu_ns += its_cpu_ns;
    }
    Speed {
        rate,
        per_cpu_us: requests / cpu_ns * 1e3,
    }
}

/// A process of a party, seen from outside. It waits for orders, then for its window.
struct Process {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    /// Starts one and waits until its keys are there.
    fn start(threads: usize, keys: u32) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args([PARTY, &threads.to_string(), &keys.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let mut process = Process {
            orders: child.stdin.take().expect("a pipe"),
            answers: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        };
        process.answer::<1>();
        process
    }

    fn answer<const COUNT: usize>(&mut self) -> [f64; COUNT] {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        let numbers: Vec<f64> = line
            .split_whitespace()
            .map(|word| word.parse().expect("a number"))
            .collect();
        numbers.try_into().expect("as many as were asked for")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What runs in such a process: an engine, and for each thread what it has for itself.
struct Party {
    engine: Engine,
    keys: u32,
    threads: Vec<Thread>,
}

/// On cache lines of its own, as a server's worker is on its own stack.
#[repr(align(128))]
struct Thread {
    worker: WorkerState,
    session: Session,
    clock: ManualClock,
    out: Output,
    random: fastrand::Rng,
}

impl Party {
    fn new(threads: usize, keys: u32) -> Self {
        let config = Config::new(Facts { usable_cpus: 2 });
        // Also the engine of one thread has room for two workers: both have as many shards.
        let engine = in_process::engine(config, 2, None);
        let mut threads: Vec<Thread> = (0..threads)
            .map(|id| Thread {
                worker: WorkerState::new(&engine, id, id as u64),
                session: in_process::session(&engine, id as u64 + 1),
                clock: ManualClock::at_ms(in_process::START_MS),
                out: Output::new(),
                random: fastrand::Rng::with_seed(u64::from(std::process::id()) * 64 + id as u64),
            })
            .collect();
        for key in 0..keys {
            let mut request = Vec::new();
            push_request(&mut request, true, key);
            threads[0].give(&engine, &request);
        }
        Party {
            engine,
            keys,
            threads,
        }
    }

    /// Says that it is ready, then runs as it is told: the percentage of SETs, the start and the end.
    fn serve(mut self) {
        println!("0");
        for order in io::stdin().lines() {
            let order = order.expect("text");
            let numbers: Vec<u64> = order
                .split_whitespace()
                .map(|word| word.parse().expect("a number"))
                .collect();
            let [sets, start, end] = numbers[..] else {
                panic!("not an order: {order:?}");
            };
            let (engine, keys) = (&self.engine, self.keys);
            let done: Vec<[f64; 3]> = std::thread::scope(|scope| {
                let running: Vec<_> = self
                    .threads
                    .iter_mut()
                    .map(|thread| scope.spawn(move || thread.run(engine, keys, sets, start, end)))
                    .collect();
                running
                    .into_iter()
                    .map(|running| running.join().expect("no panic"))
                    .collect()
            });
            let sum = |place: usize| done.iter().map(|numbers| numbers[place]).sum::<f64>();
            println!("{} {} {}", sum(0), sum(1), sum(2));
        }
    }
}

impl Thread {
    fn give(&mut self, engine: &Engine, bytes: &[u8]) -> usize {
        self.out.clear();
        let verdict =
            self.session
                .received(engine, &mut self.worker, &self.clock, bytes, &mut self.out);
        assert_eq!(verdict, Verdict::Open);
        self.out.len()
    }

    /// Requests per second, requests, and nanoseconds of processor time.
    fn run(&mut self, engine: &Engine, keys: u32, sets: u64, start: u64, end: u64) -> [f64; 3] {
        let mut batches: Vec<Batch> = (0..TEMPLATES)
            .map(|_| Batch::new(&mut self.random, sets))
            .collect();
        while clock_ns(ClockId::Monotonic) < start {
            let rest = start - clock_ns(ClockId::Monotonic).min(start);
            std::thread::sleep(std::time::Duration::from_nanos(rest));
        }
        let cpu_start = clock_ns(ClockId::ThreadCPUTime);
        let began = clock_ns(ClockId::Monotonic);
        let mut turns = 0;
        let mut now = began;
        while now < end {
            for _ in 0..STRETCH {
                let batch = &mut batches[turns % TEMPLATES];
                batch.draw(&mut self.random, keys);
                let replied = self.give(engine, &batch.bytes);
                assert_eq!(replied, batch.reply_bytes);
                turns += 1;
            }
            now = clock_ns(ClockId::Monotonic);
        }
        let requests = (turns * BATCH) as f64;
        let cpu_ns = clock_ns(ClockId::ThreadCPUTime) - cpu_start;
        [
            requests / (now - began) as f64 * 1e9,
            requests,
            cpu_ns as f64,
        ]
    }
}

fn push_request(into: &mut Vec<u8>, set: bool, key: u32) {
    let text = if set {
        let value = "x".repeat(VALUE_BYTES);
        format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:{key:012x}\r\n${VALUE_BYTES}\r\n{value}\r\n")
    } else {
        format!("*2\r\n$3\r\nGET\r\n$16\r\nkey:{key:012x}\r\n")
    };
    into.extend_from_slice(text.as_bytes());
}

/// A batch whose keys are drawn anew each time: only their last digits change.
struct Batch {
    bytes: Vec<u8>,
    /// Where the changing digits of each key stand.
    digits: [usize; BATCH],
    reply_bytes: usize,
}

impl Batch {
    fn new(random: &mut fastrand::Rng, sets: u64) -> Self {
        let mut batch = Batch {
            bytes: Vec::new(),
            digits: [0; BATCH],
            reply_bytes: 0,
        };
        let bulk_bytes = format!("${VALUE_BYTES}\r\n").len() + VALUE_BYTES + 2;
        for place in &mut batch.digits {
            let set = random.u64(..100) < sets;
            let start = batch.bytes.len();
            push_request(&mut batch.bytes, set, 0);
            *place = start + "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000000".len() - DIGITS;
            batch.reply_bytes += if set { "+OK\r\n".len() } else { bulk_bytes };
        }
        batch
    }

    fn draw(&mut self, random: &mut fastrand::Rng, keys: u32) {
        const FIGURES: &[u8; 16] = b"0123456789abcdef";
        for place in self.digits {
            let key = random.u32(..keys);
            for (digit, byte) in self.bytes[place..place + DIGITS]
                .iter_mut()
                .rev()
                .enumerate()
            {
                *byte = FIGURES[(key >> (4 * digit) & 15) as usize];
            }
        }
    }
}
