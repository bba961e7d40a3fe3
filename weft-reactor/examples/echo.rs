//! The floor under redis-benchmark: a driver that answers every request with `+PONG`, or a bulk string of BYTES, and does
//! nothing else.
//!
//! Requests are counted, not understood: each must be an array of bulk strings whose bytes hold no line feed, as those
//! of redis-benchmark do, or an inline line.
//!
//! usage: echo --port N [--reply BYTES] [--driver epoll|uring]

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;

use weft_reactor::{
    BIND_DEFAULT, CloseReason, ConnectionId, Driver, DriverOptions, EpollDriver, Handler,
    ListenerId, PeerAddress, TcpOptions, UringDriver, bind_tcp,
};
use weft_rope::Output;

/// What is known of a connection's unfinished request.
#[derive(Clone, Copy, Default)]
struct Session {
    /// Lines the request still has; 0 between requests.
    lines: u32,
    /// In the first line of a request: its argument count so far.
    header: Option<u32>,
}

struct Echo {
    sessions: Vec<Session>,
    output: Output,
    reply: Vec<u8>,
}

impl Session {
    /// Takes bytes and returns how many requests they complete.
    fn count(&mut self, mut data: &[u8]) -> usize {
        let mut complete = 0;
        while let Some(&first) = data.first() {
            if self.lines == 0 && self.header.is_none() {
                if first != b'*' {
                    // An inline request: one line.
                    self.lines = 1;
                } else {
                    self.header = Some(0);
                    data = &data[1..];
                }
            }
            if let Some(count) = self.header {
                match data.first() {
                    Some(digit @ b'0'..=b'9') => {
                        self.header = Some(count * 10 + u32::from(digit - b'0'))
                    }
                    Some(b'\n') => {
                        self.header = None;
                        self.lines = 2 * count;
                    }
                    Some(_) => {}
                    None => break,
                }
                data = &data[1..];
                continue;
            }
            let Some(end) = data.iter().position(|&byte| byte == b'\n') else {
                break;
            };
            data = &data[end + 1..];
            self.lines -= 1;
            complete += usize::from(self.lines == 0);
        }
        complete
    }
}

impl<D: Driver> Handler<D> for Echo {
    fn accepted(&mut self, io: &mut D, _: ListenerId, socket: OwnedFd, _: PeerAddress) {
        if let Ok(connection) = io.adopt(socket, None) {
            let slot = connection.slot();
            if self.sessions.len() <= slot {
                self.sessions.resize(slot + 1, Session::default());
            }
            self.sessions[slot] = Session::default();
        }
    }

    fn received(&mut self, io: &mut D, connection: ConnectionId, data: &mut [u8]) {
        let complete = self.sessions[connection.slot()].count(data);
        for _ in 0..complete {
            self.output.tail().extend_from_slice(&self.reply);
        }
        io.send(connection, &mut self.output);
    }

    fn closed(&mut self, _: &mut D, _: ConnectionId, _: CloseReason) {}
}

fn main() -> io::Result<()> {
    let usage = || io::Error::other("usage: echo --port N [--reply BYTES] [--driver epoll|uring]");
    let mut port = None;
    let mut reply = b"+PONG\r\n".to_vec();
    let mut uring = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(usage)?;
        match (name.as_str(), value.parse::<usize>()) {
            ("--port", Ok(value)) => port = u16::try_from(value).ok(),
            ("--reply", Ok(value)) => {
                reply = format!("${value}\r\n{}\r\n", "x".repeat(value)).into_bytes();
            }
            ("--driver", _) if value == "epoll" || value == "uring" => uring = value == "uring",
            _ => return Err(usage()),
        }
    }
    let port = port.ok_or_else(usage)?;
    let options = DriverOptions {
        keeps_turning: true,
        ..DriverOptions::default()
    };
    if uring {
        serve(UringDriver::new(options)?, port, reply)
    } else {
        serve(EpollDriver::new(options)?, port, reply)
    }
}

fn serve<D: Driver>(mut driver: D, port: u16, reply: Vec<u8>) -> io::Result<()> {
    let options = TcpOptions {
        backlog: 511,
        keepalive_s: 300,
        mark: 0,
        multipath: false,
    };
    let binding = bind_tcp(&BIND_DEFAULT, port, &options).map_err(io::Error::other)?;
    for listener in binding.listeners {
        driver.add_listener(listener)?;
    }
    let mut echo = Echo {
        sessions: Vec::new(),
        output: Output::new(),
        reply,
    };
    loop {
        driver.turn(&mut echo, None)?;
    }
}
