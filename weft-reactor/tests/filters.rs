//! The filter seam, proved with a filter that has everything TLS needs: a handshake, records that do not align with
//! receives, a change of the bytes, a goodbye, and errors with last words.

mod rig;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use rig::{Happened, NewDriver, Reason, Rig, Target, on_every_driver, pattern};
use weft_reactor::{Close, ConnectionId, DriverOptions, Filter};
use weft_rope::Output;

on_every_driver! {
    holds_output_back_until_the_handshake_is_done
    carries_both_directions_in_records
    large_output_passes_a_slow_reader
    fills_a_session_s_own_memory_through_the_filter
    says_goodbye_before_an_orderly_close
    closes_after_the_handshake_when_that_is_what_the_last_output_waits_for
    closes_when_the_peer_ends_before_the_handshake
    ends_the_input_when_the_peer_says_goodbye
    takes_no_input_after_a_close
    an_error_ends_the_connection_after_its_last_words
    moves_with_its_connection
    speaks_first_when_it_is_a_client_s
}

/// Record: length (2 bytes, big-endian), then as many bytes, each xored with the key. Length 0 is the goodbye. Before
/// the first record a peer sends "hello!", which is answered with "welcome". A length above 4096 is an error, answered
/// with "alert".
struct Records {
    pending: Vec<u8>,
    greeted: bool,
    /// A client's end: sends the hello, awaits the welcome.
    client: bool,
    spoken: bool,
    ended: bool,
}

const KEY: u8 = 0x5a;
const RECORD_MAX: usize = 4096;

fn server() -> Box<dyn Filter> {
    Box::new(Records {
        pending: Vec::new(),
        greeted: false,
        client: false,
        spoken: false,
        ended: false,
    })
}

fn client() -> Box<dyn Filter> {
    Box::new(Records {
        pending: Vec::new(),
        greeted: false,
        client: true,
        spoken: false,
        ended: false,
    })
}

impl Filter for Records {
    fn inbound(&mut self, wire: &[u8], plain: &mut Vec<u8>, reply: &mut Vec<u8>) -> io::Result<()> {
        self.pending.extend_from_slice(wire);
        let mut rest = &self.pending[..];
        if !self.greeted {
            let greeting: &[u8] = if self.client { b"welcome" } else { b"hello!" };
            let Some(after) = rest.strip_prefix(greeting) else {
                if greeting.starts_with(rest) {
                    return Ok(());
                }
                reply.extend_from_slice(b"alert");
                return Err(io::Error::new(io::ErrorKind::InvalidData, "no greeting"));
            };
            rest = after;
            self.greeted = true;
            if !self.client {
                reply.extend_from_slice(b"welcome");
            }
        }
        while let [high, low, after @ ..] = rest {
            let len = usize::from(*high) << 8 | usize::from(*low);
            if len > RECORD_MAX {
                reply.extend_from_slice(b"alert");
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "record too long",
                ));
            }
            if after.len() < len {
                break;
            }
            self.ended |= len == 0;
            plain.extend(after[..len].iter().map(|byte| byte ^ KEY));
            rest = &after[len..];
        }
        self.pending = rest.to_vec();
        Ok(())
    }

    fn outbound(&mut self, plain: &mut Output, room: usize, wire: &mut Vec<u8>) -> io::Result<()> {
        if self.client && !self.spoken {
            self.spoken = true;
            wire.extend_from_slice(b"hello!");
        }
        if !self.greeted {
            return Ok(());
        }
        let mut taken = 0;
        while taken < room {
            let Some(run) = plain.runs().next() else {
                break;
            };
            let part = &run[..run.len().min(RECORD_MAX)];
            wire.extend(encode(part));
            let len = part.len();
            taken += len;
            plain.advance(len);
        }
        Ok(())
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        wire.extend_from_slice(&[0, 0]);
    }

    fn input_ended(&self) -> bool {
        self.ended
    }
}

fn encode(plain: &[u8]) -> Vec<u8> {
    let mut wire = (plain.len() as u16).to_be_bytes().to_vec();
    wire.extend(plain.iter().map(|byte| byte ^ KEY));
    wire
}

/// Reads records until the goodbye or `count` plain bytes; the second says whether the goodbye came.
fn read_records(socket: &mut TcpStream, count: usize) -> (Vec<u8>, bool) {
    let mut plain = Vec::new();
    while plain.len() < count {
        let mut len = [0; 2];
        socket.read_exact(&mut len).unwrap();
        let mut record = vec![0; usize::from(u16::from_be_bytes(len))];
        if record.is_empty() {
            return (plain, true);
        }
        socket.read_exact(&mut record).unwrap();
        plain.extend(record.iter().map(|byte| byte ^ KEY));
    }
    (plain, false)
}

fn start<D: NewDriver>(options: DriverOptions) -> (Rig<D>, TcpStream, ConnectionId) {
    let mut rig = Rig::with(options);
    rig.seen.filter = Some(server);
    let (client, id) = rig.connect();
    (rig, client, id)
}

fn greet<D: NewDriver>(rig: &mut Rig<D>, client: &mut TcpStream) {
    client.write_all(b"hello!").unwrap();
    let sends = rig.total.sends;
    let deadline = std::time::Instant::now() + rig::PATIENCE;
    while rig.total.sends == sends {
        assert!(std::time::Instant::now() < deadline);
        rig.turn(Some(Duration::from_millis(100)));
    }
    let mut welcome = [0; 7];
    client.read_exact(&mut welcome).unwrap();
    assert_eq!(&welcome, b"welcome");
}

fn holds_output_back_until_the_handshake_is_done<D: NewDriver>() {
    let (mut rig, mut client, id) = start::<D>(DriverOptions::default());
    rig.send(id, b"early");
    for _ in 0..3 {
        // Waiting for the peer must not spin: nothing is left over from one turn to the next.
        rig.turn(Some(Duration::ZERO));
    }
    let report = rig.turn(Some(Duration::from_millis(5)));
    assert!(report.asleep_ns > 0);
    assert_eq!(rig.io.pending_output(id), 5);
    client.write_all(b"hel").unwrap();
    while rig.total.bytes_received < 3 {
        rig.turn(Some(rig::PATIENCE));
    }
    assert_eq!(rig.io.pending_output(id), 5);
    client.write_all(b"lo!").unwrap();
    rig.until_io("it is sent", |io, _| io.pending_output(id) == 0);
    let mut got = [0; 7 + 2 + 5];
    client.read_exact(&mut got).unwrap();
    assert_eq!(got[..], [&b"welcome"[..], &encode(b"early")].concat());
}

fn carries_both_directions_in_records<D: NewDriver>() {
    // A receive buffer that cuts records in two.
    let options = DriverOptions {
        receive_buffer: 1000,
        ..DriverOptions::default()
    };
    let (mut rig, mut client, id) = start::<D>(options);
    greet(&mut rig, &mut client);
    rig.seen.echo = true;
    let plain = pattern(1, 300_000);
    let peer = {
        let plain = plain.clone();
        thread::spawn(move || {
            let mut writer = client.try_clone().unwrap();
            let writing = thread::spawn(move || {
                for part in plain.chunks(4093) {
                    writer.write_all(&encode(part)).unwrap();
                }
            });
            let (got, _) = read_records(&mut client, 300_000);
            writing.join().unwrap();
            got
        })
    };
    rig.until_io("all is echoed", |io, seen| {
        seen.received(id).len() == 300_000 && io.pending_output(id) == 0
    });
    assert!(rig.seen.received(id) == plain);
    assert!(peer.join().unwrap() == plain);
}

fn large_output_passes_a_slow_reader<D: NewDriver>() {
    const BYTES: usize = 16 << 20;
    let (mut rig, mut client, id) = start::<D>(DriverOptions::default());
    greet(&mut rig, &mut client);
    let sent = pattern(2, BYTES);
    rig.send(id, &sent);
    rig.turn(Some(Duration::ZERO));
    assert!(rig.io.pending_output(id) > 0);
    let reader = thread::spawn(move || read_records(&mut client, BYTES).0);
    rig.until_io("all is sent", |io, _| io.pending_output(id) == 0);
    assert!(reader.join().unwrap() == sent);
    assert_eq!(rig.seen.story(id).last(), Some(&Happened::Sent(id, 0)));
}

fn fills_a_session_s_own_memory_through_the_filter<D: NewDriver>() {
    let (mut rig, mut client, id) = start::<D>(DriverOptions::default());
    greet(&mut rig, &mut client);
    let plain = pattern(3, 100_000);
    rig.seen.targets.insert(
        id,
        Target {
            memory: vec![0; 100_000],
            filled: 0,
            window: 7000,
        },
    );
    for part in plain.chunks(4096) {
        client.write_all(&encode(part)).unwrap();
    }
    client.write_all(&encode(b"after")).unwrap();
    rig.until("the rest has come", |seen| seen.received(id).len() == 5);
    assert!(rig.seen.targets[&id].memory == plain);
    assert_eq!(rig.seen.received(id), b"after");
}

fn says_goodbye_before_an_orderly_close<D: NewDriver>() {
    let (mut rig, mut client, id) = start::<D>(DriverOptions::default());
    greet(&mut rig, &mut client);
    rig.send(id, b"last");
    rig.io.close(id, Close::AfterFlush);
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert_eq!(
        read_records(&mut client, usize::MAX),
        (b"last".to_vec(), true)
    );
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert_eq!(rig.seen.story(id), [Happened::Closed(id, Reason::Local)]);
}

fn closes_after_the_handshake_when_that_is_what_the_last_output_waits_for<D: NewDriver>() {
    for paused in [false, true] {
        let (mut rig, mut client, id) = start::<D>(DriverOptions::default());
        if paused {
            rig.io.pause_receive(id);
            client.write_all(b"hello!").unwrap();
            rig.turn(Some(Duration::from_millis(5)));
        }
        rig.send(id, b"-ERR max number of clients reached");
        rig.io.close(id, Close::AfterFlush);
        rig.turn(Some(Duration::from_millis(5)));
        if !paused {
            assert_eq!(rig.seen.closed(), 0);
            client.write_all(b"hello!").unwrap();
        }
        rig.until("it is closed", |seen| seen.closed() == 1);
        let mut welcome = [0; 7];
        client.read_exact(&mut welcome).unwrap();
        let expected = b"-ERR max number of clients reached".to_vec();
        assert_eq!(read_records(&mut client, usize::MAX), (expected, true));
        assert_eq!(rig.seen.story(id), [Happened::Closed(id, Reason::Local)]);
    }
}

fn closes_when_the_peer_ends_before_the_handshake<D: NewDriver>() {
    for close_first in [false, true] {
        let (mut rig, client, id) = start::<D>(DriverOptions::default());
        rig.send(id, b"held back");
        let mut expected = vec![Happened::Closed(id, Reason::Local)];
        if close_first {
            rig.io.close(id, Close::AfterFlush);
            rig.turn(Some(Duration::ZERO));
        } else {
            expected = vec![Happened::EndOfInput(id), Happened::Closed(id, Reason::Peer)];
        }
        client.shutdown(std::net::Shutdown::Write).unwrap();
        rig.until("it is closed", |seen| seen.closed() == 1);
        assert_eq!(rig.seen.story(id), expected);
    }
}

fn takes_no_input_after_a_close<D: NewDriver>() {
    let (mut rig, mut client, id) = start::<D>(DriverOptions::default());
    greet(&mut rig, &mut client);
    rig.seen.targets.insert(
        id,
        Target {
            memory: vec![0; 3],
            filled: 0,
            window: 3,
        },
    );
    rig.seen.on_direct = Some(Box::new(|io, id| io.close(id, Close::AfterFlush)));
    // One receive: what fills the target, more, and the goodbye.
    client
        .write_all(&[encode(b"one"), encode(b"two"), vec![0, 0]].concat())
        .unwrap();
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert_eq!(rig.seen.targets[&id].memory, b"one");
    assert_eq!(rig.seen.received(id), b"");
    assert_eq!(rig.seen.story(id), [Happened::Closed(id, Reason::Local)]);
}

fn ends_the_input_when_the_peer_says_goodbye<D: NewDriver>() {
    let (mut rig, mut client, id) = start::<D>(DriverOptions::default());
    greet(&mut rig, &mut client);
    rig.seen.echo = true;
    client.write_all(&encode(b"one")).unwrap();
    client.write_all(&[0, 0]).unwrap();
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert_eq!(rig.seen.received(id), b"one");
    assert_eq!(
        read_records(&mut client, usize::MAX),
        (b"one".to_vec(), true)
    );
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert_eq!(
        rig.seen.story(id),
        [Happened::EndOfInput(id), Happened::Closed(id, Reason::Peer)]
    );
}

fn an_error_ends_the_connection_after_its_last_words<D: NewDriver>() {
    let (mut rig, mut client, id) = start::<D>(DriverOptions::default());
    greet(&mut rig, &mut client);
    let mut bytes = encode(b"good");
    bytes.extend_from_slice(&[0xff, 0xff]);
    client.write_all(&bytes).unwrap();
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert_eq!(
        rig.seen.received(id),
        b"good",
        "what came before the error counts"
    );
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"alert");
    assert_eq!(
        rig.seen.story(id),
        [Happened::Closed(
            id,
            Reason::Error(io::ErrorKind::InvalidData)
        )]
    );
}

fn moves_with_its_connection<D: NewDriver>() {
    let (mut rig, mut client, id) = start::<D>(DriverOptions::default());
    greet(&mut rig, &mut client);
    // Half a record stays inside the filter.
    let record = encode(b"split");
    client.write_all(&record[..4]).unwrap();
    let before = rig.total.bytes_received;
    while rig.total.bytes_received < before + 4 {
        rig.turn(Some(rig::PATIENCE));
    }
    rig.io.release(id);
    rig.until("it is released", |seen| !seen.released.is_empty());
    let (socket, filter) = rig.seen.released.pop().unwrap();
    let mut other = Rig::<D>::new();
    other.seen.echo = true;
    let moved = other.io.adopt(socket, filter).unwrap();
    client.write_all(&record[4..]).unwrap();
    other.until("it arrives", |seen| seen.received(moved) == b"split");
    assert_eq!(read_records(&mut client, 5), (b"split".to_vec(), false));
}

fn speaks_first_when_it_is_a_client_s<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    rig.seen.filter = Some(server);
    rig.seen.echo = true;
    let mut other = Rig::<D>::new();
    let socket = weft_reactor::start_connect(rig.address, None).unwrap();
    let outgoing = other.io.adopt(socket, Some(client())).unwrap();
    other.send(outgoing, b"through two filters");
    let deadline = std::time::Instant::now() + rig::PATIENCE;
    while other.seen.received(outgoing) != b"through two filters" {
        assert!(std::time::Instant::now() < deadline);
        other.turn(Some(Duration::from_millis(1)));
        rig.turn(Some(Duration::from_millis(1)));
    }
}
