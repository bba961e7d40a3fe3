//! One storm: threads that connect at a given rate, each connection in the manner whose turn it is.
//!
//! Each thread connects from addresses of its own (127.0.T.A), since a closed connection's port is not free for a minute. A
//! thread that is behind its schedule connects as fast as it can. What is waiting to be accepted is bounded: every
//! second manner waits for the server, which accepts in order.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use socket2::{Domain, Socket, Type};

use super::manner::Manner;
use crate::error::KitError;

/// Addresses that a thread connects from, in turn.
const ADDRESSES: u64 = 8;
/// How long a server may take to answer or to close.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Failures that are kept word for word.
const FAILURES_TOLD: usize = 5;
/// The shortest and the longest time told apart, in nanoseconds.
const TIME_NS: (u64, u64) = (1_000, 60_000_000_000);

/// What a storm is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather<'a> {
    /// The server's port on the loopback interface.
    pub(super) port: u16,
    /// What connections do, in turn.
    pub(super) manners: &'a [Manner],
    /// Connections per second, all threads together; 0: as many as can be had.
    pub(super) rate: f64,
    /// How long.
    pub(super) duration: Duration,
    /// Threads.
    pub(super) threads: usize,
}

/// What came of a storm.
#[derive(Clone, Debug)]
pub(super) struct Blown {
    /// Connections opened.
    pub(super) opened: u64,
    /// How many of them went another way than they have to, or could not be opened.
    pub(super) failed: u64,
    /// The first of those.
    pub(super) failures: Vec<String>,
    /// From before the connect of a polite one until its reply, in nanoseconds.
    pub(super) answer_ns: Histogram<u64>,
    /// How long it took, until the last thread was done.
    pub(super) elapsed: Duration,
}

impl Blown {
    fn new() -> Result<Self, KitError> {
        let answer_ns = Histogram::new_with_bounds(TIME_NS.0, TIME_NS.1, 2)
            .map_err(|error| KitError::Unexpected(error.to_string()))?;
        Ok(Blown {
            opened: 0,
            failed: 0,
            failures: Vec::new(),
            answer_ns,
            elapsed: Duration::ZERO,
        })
    }

    fn add(&mut self, other: Blown) {
        self.opened += other.opened;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.failures.truncate(FAILURES_TOLD);
        // Both have the same bounds.
        let _ = self.answer_ns.add(&other.answer_ns);
        self.elapsed = self.elapsed.max(other.elapsed);
    }

    fn failed(&mut self, what: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_TOLD {
            self.failures.push(what);
        }
    }

    /// Connections opened per second.
    pub(super) fn rate(&self) -> f64 {
        self.opened as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Runs a storm until its time is over.
pub(super) fn blow(weather: &Weather<'_>) -> Result<Blown, KitError> {
    let start = Instant::now();
    let mut all = Blown::new()?;
    let parts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..weather.threads)
            .map(|number| scope.spawn(move || part(weather, number, start)))
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for part in parts {
        let part = part.map_err(|_| {
            KitError::Unexpected("a thread of the storm ended by a panic".to_owned())
        })?;
        all.add(part?);
    }
    Ok(all)
}

/// One thread's share.
fn part(weather: &Weather<'_>, number: usize, start: Instant) -> Result<Blown, KitError> {
    let mut blown = Blown::new()?;
    // Threads begin with different manners.
    for (turn, manner) in weather
        .manners
        .iter()
        .copied()
        .cycle()
        .skip(number)
        .enumerate()
    {
        if weather.rate > 0.0 {
            let place = (turn * weather.threads + number) as f64;
            let due = start + Duration::from_secs_f64(place / weather.rate);
            // The schedule is the load; nothing is waited for here.
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        if start.elapsed() >= weather.duration {
            break;
        }
        let began = Instant::now();
        let stream = match connect(source(number, turn as u64), weather.port) {
            Ok(stream) => stream,
            Err(error) => {
                blown.failed(format!("connect: {error}"));
                continue;
            }
        };
        blown.opened += 1;
        match manner.play(stream) {
            Ok(()) if manner == Manner::Polite => blown
                .answer_ns
                .saturating_record(began.elapsed().as_nanos() as u64),
            Ok(()) => {}
            Err(error) => blown.failed(format!("{}: {error}", manner.name())),
        }
    }
    blown.elapsed = start.elapsed();
    Ok(blown)
}

/// Where a thread's connection comes from: 127.0.T.A with T from 1.
fn source(thread: usize, turn: u64) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, thread as u8 + 1, (turn % ADDRESSES) as u8 + 1)
}

fn connect(source: Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddrV4::new(source, 0).into())?;
    socket.connect(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into())?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn threads_have_addresses_of_their_own() {
        assert_eq!(source(0, 0), Ipv4Addr::new(127, 0, 1, 1));
        assert_eq!(source(0, 7), Ipv4Addr::new(127, 0, 1, 8));
        assert_eq!(source(0, 8), source(0, 0));
        assert_eq!(source(15, 9), Ipv4Addr::new(127, 0, 16, 2));
    }

    #[test]
    fn a_storm_keeps_to_its_rate_and_tells_what_failed() {
        // The kernel answers the connects; nothing answers what is sent, so only those that expect nothing pass.
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let weather = Weather {
            port: listener.local_addr().expect("an address").port(),
            manners: &Manner::ALL,
            rate: 100.0,
            duration: Duration::from_millis(300),
            threads: 1,
        };
        // Closing each at once is a server that says nothing.
        std::thread::spawn(move || while listener.accept().is_ok() {});
        let blown = blow(&weather).expect("it runs");
        assert!((1..=30).contains(&blown.opened), "{}", blown.opened);
        assert!(blown.failed >= blown.opened / 9 * 3 && blown.failed < blown.opened);
        assert!(blown.failures.len() <= FAILURES_TOLD);
        assert_eq!(blown.answer_ns.len(), 0);
    }
}
