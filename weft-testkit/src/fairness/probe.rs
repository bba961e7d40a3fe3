//! Probes: connections that each send a GET at a fixed rate, whatever became of the one before.
//!
//! One thread, no spinning: it sleeps in epoll until a reply or its timer (exact to microseconds, unlike a time-out of
//! epoll) is due. Each connection sends once in every interval, at a random moment of it, so that it cannot fall into step with
//! what the server does periodically. Latency is from the moment a request was meant to be sent until its reply is complete.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::Duration;

use hdrhistogram::Histogram;
use rustix::event::epoll;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::error::KitError;

/// The shortest and the longest latency told apart, in nanoseconds.
const LATENCY_NS: (u64, u64) = (1_000, 120_000_000_000);
/// Digits of a latency that are kept.
const DIGITS: u8 = 3;
/// How long replies may be overdue when a phase ends.
const DRAIN: Duration = Duration::from_secs(60);
/// Bytes read at once.
const READ_BYTES: usize = 16 * 1024;
/// The timer's mark among the events; connections have their numbers.
const TIMER: u64 = u64::MAX;

/// What the probes are to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// Requests per second and connection.
    pub(crate) rate: usize,
    /// How long before anything counts.
    pub(crate) warm_up: Duration,
    /// How long requests count.
    pub(crate) duration: Duration,
}

/// What the probes saw, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Observed {
    /// From the moment a request was meant to be sent until its reply.
    pub(crate) latency: Histogram<u64>,
    /// From the moment a request was meant to be sent until it was: the probe's own delay, since sending waits for nothing.
    pub(crate) lateness: Histogram<u64>,
    /// From the moment a request was sent until its reply.
    pub(crate) service: Histogram<u64>,
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Probe {
    epoll: OwnedFd,
    timer: OwnedFd,
    connections: Vec<Connection>,
    random: fastrand::Rng,
    reply: Vec<u8>,
    keys: usize,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// The unanswered requests, the oldest first.
    pending: VecDeque<Request>,
    /// Bytes of the oldest one's reply that have come.
    received: usize,
}

/// When a request was meant to be sent and when it was, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Request {
    intended: u64,
    sent: u64,
}

impl Probe {
    /// Connects. The keys `key:%012d` below `keys` hold values of `value_bytes` times `x`.
    pub(crate) fn connect(
        port: u16,
        count: usize,
        keys: usize,
        value_bytes: usize,
    ) -> Result<Self, KitError> {
        let open = || -> io::Result<Self> {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let timer = timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )?;
            let watch = |descriptor: &dyn std::os::fd::AsFd, mark: u64| {
                epoll::add(
                    &epoll,
                    descriptor.as_fd(),
                    epoll::EventData::new_u64(mark),
                    epoll::EventFlags::IN,
                )
            };
            watch(&timer, TIMER)?;
            let mut connections = Vec::with_capacity(count);
            for number in 0..count {
                let stream = TcpStream::connect(("127.0.0.1", port))?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                watch(&stream, number as u64)?;
                connections.push(Connection {
                    stream,
                    pending: VecDeque::new(),
                    received: 0,
                });
            }
            Ok(Probe {
                epoll,
                timer,
                connections,
                random: fastrand::Rng::with_seed(23),
                reply: format!("${value_bytes}\r\n{}\r\n", "x".repeat(value_bytes)).into_bytes(),
                keys,
            })
        };
        open().map_err(KitError::io("connect the probes"))
    }

    /// Sends as scheduled, waits for all replies, and tells their latencies.
    pub(crate) fn run(&mut self, schedule: &Schedule) -> Result<Observed, KitError> {
        self.play(schedule).map_err(KitError::io("probe"))
    }

    fn play(&mut self, schedule: &Schedule) -> io::Result<Observed> {
        let histogram = || {
            Histogram::new_with_bounds(LATENCY_NS.0, LATENCY_NS.1, DIGITS)
                .map_err(|error| io::Error::other(error.to_string()))
        };
        let mut observed = Observed {
            latency: histogram()?,
            lateness: histogram()?,
            service: histogram()?,
        };
        let interval = 1_000_000_000 / schedule.rate.max(1) as u64;
        let start = now();
        let counts_from = start + nanoseconds(schedule.warm_up);
        let end = counts_from + nanoseconds(schedule.duration);
        let drained_by = end + nanoseconds(DRAIN);
        // When each connection sends next, and in which of its intervals.
        let mut due: BinaryHeap<Reverse<(u64, u64, usize)>> = (0..self.connections.len())
            .map(|number| Reverse((start + self.random.u64(..interval), 0, number)))
            .collect();
        let mut armed = 0;
        let mut events = Vec::with_capacity(self.connections.len() + 1);
        loop {
            let moment = now();
            while let Some(Reverse((intended, turn, number))) = due.peek().copied() {
                if intended > moment {
                    break;
                }
                due.pop();
                if intended >= end {
                    continue;
                }
                let sent = self.send(number, intended)?;
                if intended >= counts_from {
                    observed
                        .lateness
                        .saturating_record(sent.saturating_sub(intended));
                }
                let next = start + (turn + 1) * interval + self.random.u64(..interval);
                due.push(Reverse((next, turn + 1, number)));
            }
            let unanswered = self
                .connections
                .iter()
                .any(|connection| !connection.pending.is_empty());
            if due.is_empty() && !unanswered {
                return Ok(observed);
            }
            let next = due.peek().map_or(drained_by, |Reverse((next, ..))| *next);
            if due.is_empty() && now() > drained_by {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "replies are still missing long after the last request",
                ));
            }
            if next != armed {
                // Setting it takes an expiry back that nobody has read.
                self.arm(next)?;
                armed = next;
            }
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                None,
            ) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let mark = event.data.u64();
                if mark != TIMER {
                    self.receive(mark as usize, counts_from, &mut observed)?;
                }
            }
        }
    }

    /// Sends a request and says when.
    fn send(&mut self, number: usize, intended: u64) -> io::Result<u64> {
        let key = self.random.usize(..self.keys);
        let request = format!("*2\r\n$3\r\nGET\r\n$16\r\nkey:{key:012}\r\n");
        let connection = &mut self.connections[number];
        let sent = now();
        // The kernel holds thousands of requests; more than that unanswered is no latency any more.
        let written = connection.stream.write(request.as_bytes())?;
        if written != request.len() {
            return Err(io::Error::other("a request went out only in part"));
        }
        connection.pending.push_back(Request { intended, sent });
        Ok(sent)
    }

    fn receive(
        &mut self,
        number: usize,
        counts_from: u64,
        observed: &mut Observed,
    ) -> io::Result<()> {
        let connection = &mut self.connections[number];
        let mut buffer = [0; READ_BYTES];
        let count = match connection.stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return Ok(());
            }
            other => other?,
        };
        let moment = now();
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            let wanted = &self.reply[connection.received..];
            let length = wanted.len().min(rest.len());
            let (piece, later) = rest.split_at(length);
            if piece != &wanted[..length] {
                return Err(io::Error::other(format!(
                    "an unexpected reply: {:?}",
                    String::from_utf8_lossy(piece)
                )));
            }
            rest = later;
            connection.received += length;
            if connection.received == self.reply.len() {
                connection.received = 0;
                let request = connection
                    .pending
                    .pop_front()
                    .ok_or_else(|| io::Error::other("a reply that nobody asked for"))?;
                if request.intended >= counts_from {
                    let since = |start: u64| moment.saturating_sub(start);
                    observed.latency.saturating_record(since(request.intended));
                    observed.service.saturating_record(since(request.sent));
                }
            }
        }
        Ok(())
    }

    fn arm(&self, moment: u64) -> io::Result<()> {
        let value = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: (moment / 1_000_000_000) as i64,
                tv_nsec: (moment % 1_000_000_000) as i64,
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value)?;
        Ok(())
    }
}

/// The clock that never goes back, in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const REQUEST_BYTES: usize = 36;
    const STALL: Duration = Duration::from_millis(200);

    /// Answers every request, and stands still once, for all connections, after so many requests.
    fn answer(mut stream: TcpStream, served: &AtomicU64, stall_at: u64, still: &Mutex<()>) {
        let mut request = [0; REQUEST_BYTES];
        while stream.read_exact(&mut request).is_ok() {
            let turn = still.lock().expect("nobody panics");
            if served.fetch_add(1, Ordering::Relaxed) == stall_at {
                // This is the stall that is to be measured, not a wait for something.
                std::thread::sleep(STALL);
            }
            drop(turn);
            if stream.write_all(b"$4\r\nxxxx\r\n").is_err() {
                return;
            }
        }
    }

    /// A stall of 200 ms delays every request that was due meanwhile, not only the one that met it: 4 connections of 100
    /// requests a second have 80 of them.
    #[test]
    fn a_stall_counts_for_all_that_it_delays() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (served, still) = (AtomicU64::new(0), Mutex::new(()));
        let observed = std::thread::scope(|scope| {
            let mut probe = Probe::connect(port, 4, 1000, 4).expect("it connects");
            for _ in 0..4 {
                let (stream, _) = listener.accept().expect("a connection");
                let (served, still) = (&served, &still);
                scope.spawn(move || answer(stream, served, 100, still));
            }
            let observed = probe
                .run(&Schedule {
                    rate: 100,
                    warm_up: Duration::from_millis(100),
                    duration: Duration::from_secs(1),
                })
                .expect("all is answered");
            drop(probe);
            observed
        });
        // One request in each of the 100 intervals of a connection; the bounds of the phase cut intervals.
        let count = observed.latency.len();
        assert!((392..=408).contains(&count), "{count} replies");
        assert_eq!(observed.lateness.len(), count);
        assert_eq!(observed.service.len(), count);
        assert!(observed.latency.max() >= 195_000_000);
        let delayed = observed.latency.count_between(100_000_000, LATENCY_NS.1);
        assert!(
            delayed >= 36,
            "{delayed} requests were delayed by half of the stall"
        );
    }
}
