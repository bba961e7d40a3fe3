//! One connection that never stops: GETs and SETs by turns, with as many under way as its depth allows.
//!
//! Every second command is a SET with a value as long as those that are there, so that all replies have a known length and
//! counting bytes counts commands. Invariant: what was received is a prefix of what was asked for, checked at its ends.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::hog::thread_time;
use crate::error::KitError;

/// Pairs of commands made beforehand; then they come again.
const PAIRS: usize = 10_000;
/// Bytes written and read at once.
const PIECE_BYTES: usize = 256 * 1024;
/// How long a wait may last before the end is looked for, in nanoseconds.
const WAIT_NS: i64 = 20_000_000;
/// An unread connection that can neither send more nor was closed is given up after this.
const STANDSTILL: Duration = Duration::from_millis(300);
/// How long an unread connection stays open when all is sent.
const LINGER: Duration = Duration::from_millis(100);

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flood {
    pub(super) port: u16,
    /// Commands under way. Without reading: commands of one connection, after which the next one is opened.
    pub(super) depth: usize,
    pub(super) keys: usize,
    pub(super) value_bytes: usize,
    /// Whether replies are read.
    pub(super) reads: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flooded {
    /// Commands answered; when nothing is read: commands sent.
    pub(super) commands: u64,
    /// How often the server closed the connection.
    pub(super) closed: u64,
    /// Processor time of the thread.
    pub(super) cpu: Duration,
}

impl Flood {
    /// Floods until `stop`.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<Flooded, KitError> {
        let start = thread_time();
        let requests = self.requests();
        let mut flooded = if self.reads {
            self.read_all(&requests, stop)
        } else {
            self.read_nothing(&requests, stop)
        }
        .map_err(KitError::io("flood the server"))?;
        flooded.cpu = thread_time().saturating_sub(start);
        Ok(flooded)
    }

    fn requests(&self) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(11);
        let value = "x".repeat(self.value_bytes);
        let mut bytes = Vec::new();
        for _ in 0..PAIRS {
            let (read, written) = (random.usize(..self.keys), random.usize(..self.keys));
            bytes.extend_from_slice(
                format!(
                    "*2\r\n$3\r\nGET\r\n$16\r\nkey:{read:012}\r\n*3\r\n$3\r\nSET\r\n$16\r\nkey:{written:012}\r\n${}\r\n{value}\r\n",
                    self.value_bytes
                )
                .as_bytes(),
            );
        }
        bytes
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn read_all(&self, requests: &[u8], stop: &AtomicBool) -> io::Result<Flooded> {
        let pair_sent = requests.len() / PAIRS;
        let reply = format!(
            "${}\r\n{}\r\n+OK\r\n",
            self.value_bytes,
            "x".repeat(self.value_bytes)
        )
        .into_bytes();
        let mut stream = self.connect()?;
        let mut buffer = vec![0; PIECE_BYTES];
        let (mut sent, mut received) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            let under_way = sent / pair_sent - received / reply.len();
            let room = (self.depth / 2).saturating_sub(under_way) * pair_sent;
            let wanted = if room > 0 {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            let ready = wait(&stream, wanted)?;
            if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                let count = match stream.read(&mut buffer) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Err(error) if is_passing(&error) => 0,
                    other => other?,
                };
                let ends = [0, count.saturating_sub(1)];
                if count > 0
                    && ends
                        .iter()
                        .any(|place| buffer[*place] != reply[(received + place) % reply.len()])
                {
                    let start = String::from_utf8_lossy(&buffer[..count.min(200)]).into_owned();
                    return Err(io::Error::other(format!("an unexpected reply: {start:?}")));
                }
                received += count;
            }
            if ready.contains(PollFlags::OUT) {
                let piece = next_piece(requests, sent, room);
                match stream.write(piece) {
                    Err(error) if is_passing(&error) => {}
                    other => sent += other?,
                }
            }
        }
        Ok(Flooded {
            commands: (received / reply.len() * 2) as u64,
            ..Flooded::default()
        })
    }

    fn read_nothing(&self, requests: &[u8], stop: &AtomicBool) -> io::Result<Flooded> {
        let pair_sent = requests.len() / PAIRS;
        let limit = self.depth / 2 * pair_sent;
        let mut flooded = Flooded::default();
        while !stop.load(Ordering::Relaxed) {
            let mut stream = self.connect()?;
            let mut sent = 0;
            let mut progress = Instant::now();
            let closed = loop {
                let patience = if sent == limit { LINGER } else { STANDSTILL };
                if stop.load(Ordering::Relaxed) || progress.elapsed() > patience {
                    break false;
                }
                if sent == limit {
                    // All is sent; what the server makes of it shows in the server. It may still close.
                    if wait(&stream, PollFlags::RDHUP)?
                        .intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
                    {
                        break true;
                    }
                    continue;
                }
                if wait(&stream, PollFlags::OUT)?.is_empty() {
                    continue;
                }
                match stream.write(next_piece(requests, sent, limit - sent)) {
                    Ok(count) => {
                        sent += count;
                        progress = Instant::now();
                    }
                    Err(error) if is_passing(&error) => {}
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
                        ) =>
                    {
                        break true;
                    }
                    Err(error) => return Err(error),
                }
            };
            flooded.commands += (sent / pair_sent * 2) as u64;
            flooded.closed += u64::from(closed);
        }
        Ok(flooded)
    }
}

/// What follows after `sent` bytes: no more than `room`.
fn next_piece(requests: &[u8], sent: usize, room: usize) -> &[u8] {
    let start = sent % requests.len();
    let length = room.min(PIECE_BYTES).min(requests.len() - start);
    &requests[start..start + length]
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// What the stream is ready for; nothing after [`WAIT_NS`].
fn wait(stream: &TcpStream, flags: PollFlags) -> io::Result<PollFlags> {
    let mut polled = [PollFd::new(stream, flags)];
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: WAIT_NS,
    };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) => Ok(polled[0].revents()),
        Err(rustix::io::Errno::INTR) => Ok(PollFlags::empty()),
        Err(error) => Err(error.into()),
    }
}
