//! What only the driver for io_uring has: lent buffers, queues that overflow, operations in flight at the wrong moment.

mod rig;

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rig::{Happened, Reason, Rig, Target, pattern};
use weft_reactor::{
    Close, CloseReason, ConnectionId, Delivery, Driver, DriverOptions, GROUP_MAX, Handler,
    ListenerId, PeerAddress, UringDriver,
};
use weft_rope::{Chunk, Output};

/// Bytes of all lent buffers together.
const LENT: usize = 1 << 20;

/// More connections than there are buffers, each with something in more than one: nobody waits for ever, nothing is lost,
/// and nothing sleeps before all is done.
#[test]
fn running_out_of_buffers_starves_nobody() {
    const COUNT: usize = 300;
    const BYTES: usize = 20_000;
    let mut rig = Rig::<UringDriver>::new();
    let mut clients: Vec<_> = (0..COUNT).map(|_| rig.connect()).collect();
    for (seed, (client, _)) in clients.iter_mut().enumerate() {
        client.write_all(&pattern(seed as u64, BYTES)).unwrap();
    }
    let mut turns = 0;
    let total = COUNT * BYTES;
    let mut got = 0;
    while got < total {
        let report = rig.turn(Some(rig::PATIENCE));
        got += report.bytes_received as usize;
        assert_eq!(report.asleep_ns, 0, "slept with {got} bytes of {total}");
        turns += 1;
    }
    assert!(turns <= 200, "{turns} turns");
    for (seed, (_, id)) in clients.iter().enumerate() {
        assert!(rig.seen.received(*id) == pattern(seed as u64, BYTES));
    }
    // All are being received from again.
    for (client, id) in &mut clients {
        client.write_all(b"more").unwrap();
        let id = *id;
        rig.until("more arrives", |seen| seen.received(id).len() == BYTES + 4);
    }
}

/// Connections that flood take turns with others, however much they have sent.
#[test]
fn a_flood_leaves_others_their_buffers() {
    const FLOODS: usize = 4;
    const BYTES: usize = 8 << 20;
    let mut rig = Rig::<UringDriver>::new();
    let floods: Vec<_> = (0..FLOODS)
        .map(|seed| {
            let (mut client, id) = rig.connect();
            let sent = pattern(seed as u64, BYTES);
            (
                id,
                thread::spawn(move || client.write_all(&sent).map(|()| client)),
            )
        })
        .collect();
    let (mut small, quiet) = rig.connect();
    let done = |rig: &Rig<UringDriver>| {
        floods
            .iter()
            .all(|(id, _)| rig.seen.received(*id).len() == BYTES)
    };
    let mut asked = 0;
    while !done(&rig) {
        small.write_all(b"?").unwrap();
        asked += 1;
        // One turn may pass before there is a buffer, one more until the receive has been started again.
        let mut turns = 0;
        while rig.seen.received(quiet).len() < asked {
            rig.turn(Some(rig::PATIENCE));
            turns += 1;
            assert!(turns <= 8, "the flood goes first");
        }
    }
    for (seed, (id, writer)) in floods.into_iter().enumerate() {
        assert!(rig.seen.received(id) == pattern(seed as u64, BYTES));
        drop(writer.join().unwrap().unwrap());
    }
}

#[test]
fn connections_that_are_paused_hold_no_buffers() {
    const PAUSED: usize = 100;
    const BYTES: usize = 40_000;
    let mut rig = Rig::<UringDriver>::new();
    const { assert!(PAUSED * BYTES > 3 * LENT) };
    let mut paused: Vec<_> = (0..PAUSED).map(|_| rig.connect()).collect();
    for (seed, (client, id)) in paused.iter_mut().enumerate() {
        rig.io.pause_receive(*id);
        client.write_all(&pattern(seed as u64, BYTES)).unwrap();
    }
    let (mut client, id) = rig.connect();
    for round in 1..=200 {
        client.write_all(&[b'x'; 1000]).unwrap();
        rig.until("it is served", |seen| {
            seen.received(id).len() == round * 1000
        });
    }
    for (seed, (_, id)) in paused.iter().enumerate() {
        let id = *id;
        assert_eq!(rig.seen.received(id), b"");
        rig.io.resume_receive(id);
        rig.until("the rest comes", |seen| seen.received(id).len() == BYTES);
        assert!(rig.seen.received(id) == pattern(seed as u64, BYTES));
    }
}

/// Queues of 8 submissions and 32 completions under hundreds of connections.
#[test]
fn overflowing_queues_lose_nothing() {
    const COUNT: usize = 400;
    let options = DriverOptions {
        events: 1,
        ..DriverOptions::default()
    };
    let mut rig = Rig::<UringDriver>::with(options);
    rig.seen.echo = true;
    let mut clients: Vec<_> = (0..COUNT).map(|_| rig.connect()).collect();
    for round in 1..=3 {
        for (number, (client, _)) in clients.iter_mut().enumerate() {
            client.write_all(&pattern(number as u64, 100)).unwrap();
        }
        let ids: Vec<ConnectionId> = clients.iter().map(|client| client.1).collect();
        rig.until_io("all is echoed", |io, seen| {
            ids.iter()
                .all(|id| seen.received(*id).len() == round * 100 && io.pending_output(*id) == 0)
        });
        for (number, (client, _)) in clients.iter_mut().enumerate() {
            let mut got = [0; 100];
            client.read_exact(&mut got).unwrap();
            assert!(got[..] == pattern(number as u64, 100));
        }
    }
    // All of them end at once, some here, some there.
    for (number, (client, id)) in clients.into_iter().enumerate() {
        match number % 3 {
            0 => rig.io.close(id, Close::Now),
            1 => rig.io.close(id, Close::AfterFlush),
            _ => drop(client),
        }
    }
    rig.until("all are closed", |seen| seen.closed() == COUNT);
    assert_eq!(rig.io.connections(), 0);
    for id in rig.seen.accepted() {
        assert!(matches!(
            rig.seen.story(id).last(),
            Some(Happened::Closed(_, Reason::Local | Reason::Peer))
        ));
    }
}

/// Connections end at every moment, with receives, sends and watches in flight, and their slots go to others at once.
#[test]
fn completions_after_a_close_meet_nobody() {
    let mut rig = Rig::<UringDriver>::new();
    let mut random = fastrand::Rng::with_seed(3);
    let chunk = Chunk::from_slice(&[b'c'; 64 << 10]);
    for round in 0..300u64 {
        let (mut client, id) = rig.connect();
        if random.bool() {
            rig.io.pause_receive(id);
        }
        if random.bool() {
            let mut output = Output::new();
            for _ in 0..random.usize(1..200) {
                output.push_counted(chunk.clone(), 0..chunk.len());
            }
            rig.io.send(id, &mut output);
        }
        if random.bool() {
            client.write_all(&pattern(round, 5000)).unwrap();
        }
        for _ in 0..random.u32(0..3) {
            rig.turn(Some(Duration::ZERO));
        }
        if random.bool() {
            client.write_all(b"late").unwrap();
        }
        let had = rig.seen.received(id).to_vec();
        if random.bool() {
            client.shutdown(Shutdown::Write).unwrap();
        }
        rig.io.close(id, Close::Now);
        rig.io.close(id, Close::Now);
        let before = rig.seen.closed();
        rig.until("it is closed", |seen| seen.closed() > before);
        assert_eq!(rig.seen.received(id), had, "received after the close");
        let end = rig.seen.story(id).pop();
        assert_eq!(end, Some(Happened::Closed(id, Reason::Local)));
        assert!(!chunk.is_shared(), "output of a closed connection lives on");
    }
    assert_eq!(rig.seen.closed(), 300);
    assert_eq!(rig.io.connections(), 0);
}

/// Sockets, listeners and output are gone with their driver, whatever they were waiting for.
#[test]
fn a_driver_is_dropped_with_everything_in_flight() {
    for turns in 0..4 {
        let chunk = Chunk::from_slice(&[b'c'; 64 << 10]);
        let mut rig = Rig::<UringDriver>::new();
        let mut clients = Vec::new();
        for number in 0..40 {
            let (mut client, id) = rig.connect();
            let mut output = Output::new();
            for _ in 0..200 * (number % 2) {
                output.push_counted(chunk.clone(), 0..chunk.len());
            }
            rig.io.send(id, &mut output);
            if number % 3 == 0 {
                rig.io.pause_receive(id);
            }
            client.write_all(&pattern(1, 30_000)).unwrap();
            if number % 5 == 0 {
                client.shutdown(Shutdown::Write).unwrap();
            }
            clients.push(client);
        }
        rig.seen.keep_open = true;
        for _ in 0..turns {
            rig.turn(Some(Duration::ZERO));
        }
        let late: Vec<TcpStream> = (0..10).map(|_| rig::connect(rig.address)).collect();
        let address = rig.address;
        assert!(chunk.is_shared());
        drop(rig);
        assert!(!chunk.is_shared());
        assert_eq!(
            TcpStream::connect(address).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        for mut client in clients.into_iter().chain(late) {
            // The end, or a reset: there may have been unread bytes.
            let mut got = Vec::new();
            match client.read_to_end(&mut got) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            }
        }
    }
}

/// Counts groups, and pauses, closes or takes straight into memory as told.
#[derive(Default)]
struct Grouped {
    ids: Vec<ConnectionId>,
    groups: Vec<Vec<ConnectionId>>,
    singles: Vec<ConnectionId>,
    input: HashMap<ConnectionId, Vec<u8>>,
    direct: HashMap<ConnectionId, (Vec<u8>, usize)>,
}

impl Handler<UringDriver> for Grouped {
    fn accepted(&mut self, io: &mut UringDriver, _: ListenerId, socket: OwnedFd, _: PeerAddress) {
        self.ids.push(io.adopt(socket, None).unwrap());
    }

    fn receive_target(&mut self, id: ConnectionId) -> Option<&mut [u8]> {
        let (memory, filled) = self.direct.get_mut(&id)?;
        Some(&mut memory[*filled..])
    }

    fn received(&mut self, _: &mut UringDriver, id: ConnectionId, data: &mut [u8]) {
        self.singles.push(id);
        self.input.entry(id).or_default().extend_from_slice(data);
    }

    fn received_group(&mut self, io: &mut UringDriver, group: &mut [Delivery<'_>]) {
        assert!((1..=GROUP_MAX).contains(&group.len()));
        self.groups
            .push(group.iter().map(|delivery| delivery.connection).collect());
        for delivery in group {
            assert!(io.is_open(delivery.connection));
            self.input
                .entry(delivery.connection)
                .or_default()
                .extend_from_slice(delivery.data);
            // The handler may write to it.
            delivery.data.fill(0);
        }
    }

    fn received_direct(&mut self, _: &mut UringDriver, id: ConnectionId, count: usize) {
        self.direct.get_mut(&id).unwrap().1 += count;
    }

    fn closed(&mut self, _: &mut UringDriver, _: ConnectionId, _: CloseReason) {}
}

#[test]
fn what_arrives_together_is_handed_out_in_groups() {
    const COUNT: usize = 45;
    let mut io = UringDriver::new(DriverOptions::default()).unwrap();
    let listener = rig::loopback();
    let address = listener.address().unwrap();
    io.add_listener(listener).unwrap();
    let mut seen = Grouped::default();
    let mut clients = Vec::new();
    let deadline = Instant::now() + rig::PATIENCE;
    while clients.len() < COUNT {
        clients.push(rig::connect(address));
        while seen.ids.len() < clients.len() {
            assert!(Instant::now() < deadline);
            io.turn(&mut seen, Some(rig::PATIENCE)).unwrap();
        }
    }
    // One that wants its bytes elsewhere, and one that sends more than a buffer holds.
    let (direct, long) = (seen.ids[7], seen.ids[9]);
    seen.direct.insert(direct, (vec![0; 50], 0));
    let bytes = |number: usize| pattern(number as u64, if number == 9 { 40_000 } else { 100 });
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(&bytes(number)).unwrap();
    }
    let total: usize = (0..COUNT).map(|number| bytes(number).len()).sum();
    let mut got = 0;
    while got < total {
        assert!(Instant::now() < deadline);
        let report = io.turn(&mut seen, Some(rig::PATIENCE)).unwrap();
        got += report.bytes_received as usize;
    }
    for (number, id) in seen.ids.iter().enumerate() {
        let mut input = Vec::new();
        if let Some((memory, filled)) = seen.direct.get(id) {
            input.extend_from_slice(&memory[..*filled]);
        }
        input.extend(seen.input.get(id).into_iter().flatten());
        assert!(input == bytes(number), "connection {number}");
    }
    let grouped: Vec<ConnectionId> = seen.groups.concat();
    assert!(grouped.len() >= 30, "only {} came in groups", grouped.len());
    assert!(!grouped.contains(&direct));
    for group in &seen.groups {
        let mut distinct = group.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), group.len());
    }
    let pieces = grouped.iter().chain(&seen.singles);
    assert!(pieces.filter(|id| **id == long).count() >= 3);
}

/// A large argument goes where the session wants it, in any number of pieces, though it arrives elsewhere.
#[test]
fn a_target_of_changing_size_gets_every_byte() {
    let options = DriverOptions {
        receive_buffer: 5000,
        direct_share: 70_000,
        events: 16,
        ..DriverOptions::default()
    };
    let mut rig = Rig::<UringDriver>::with(options);
    let (mut client, id) = rig.connect();
    let bytes = pattern(4, 2_000_000);
    rig.seen.targets.insert(
        id,
        Target {
            memory: vec![0; bytes.len()],
            filled: 0,
            window: 1,
        },
    );
    let writer = {
        let bytes = bytes.clone();
        thread::spawn(move || client.write_all(&bytes).map(|()| client))
    };
    let mut random = fastrand::Rng::with_seed(5);
    while rig.seen.targets[&id].filled < bytes.len() {
        let before = rig.seen.targets[&id].filled;
        rig.turn(Some(rig::PATIENCE));
        let target = rig.seen.targets.get_mut(&id).unwrap();
        assert!(target.filled - before <= 70_000);
        target.window = random.usize(1..100_000);
    }
    assert!(rig.seen.targets[&id].memory == bytes);
    drop(writer.join().unwrap().unwrap());
}

#[test]
fn a_timed_turn_tells_receiving_from_sending() {
    let mut rig = Rig::<UringDriver>::new();
    rig.seen.echo = true;
    let (mut client, id) = rig.connect();
    client.write_all(&pattern(1, 100_000)).unwrap();
    rig.io.time_next_turn();
    let started = Instant::now();
    let report = rig.turn(Some(rig::PATIENCE));
    let elapsed_ns = started.elapsed().as_nanos() as u64;
    let times = report.times.unwrap();
    assert!(report.receives > 0 && report.sends > 0);
    assert!(times.read_ns > 0 && times.write_ns > 0);
    assert!(times.read_ns + times.write_ns + report.asleep_ns <= elapsed_ns);
    rig.until("all has arrived", |seen| seen.received(id).len() == 100_000);
    assert_eq!(rig.turn(Some(Duration::ZERO)).times, None);
    // Asleep is not at work.
    rig.io.time_next_turn();
    let report = rig.turn(Some(Duration::from_millis(20)));
    assert!(report.asleep_ns >= 20_000_000);
    assert!(report.times.unwrap().read_ns < 10_000_000);
}

const KEEPS_TURNING: DriverOptions = DriverOptions {
    receive_buffer: 64 << 10,
    direct_share: 256 << 10,
    events: 256,
    keeps_turning: true,
};

/// Small sends leave with the next turn's wait, which still sleeps until something else happens.
#[test]
fn sends_leave_with_the_wait_that_follows() {
    let mut rig = Rig::<UringDriver>::with(KEEPS_TURNING);
    rig.seen.echo = true;
    let (mut client, id) = rig.connect();
    client.set_read_timeout(Some(rig::PATIENCE)).unwrap();
    let peer = thread::spawn(move || {
        let mut answer = [0; 5];
        for round in 0..1000_u32 {
            let asked = format!("{round:05}");
            client.write_all(asked.as_bytes()).unwrap();
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, asked.as_bytes());
        }
        client
    });
    let mut turns = 0;
    while rig.seen.received(id).len() < 5000 {
        let report = rig.turn(Some(rig::PATIENCE));
        assert!(report.sends <= 1);
        turns += 1;
    }
    assert!(turns < 1500, "{turns} turns for 1000 requests");
    let mut client = {
        // The last answer is still queued.
        rig.turn(Some(Duration::ZERO));
        peer.join().unwrap()
    };
    assert_eq!(rig.io.pending_output(id), 0);
    // A turn that is timed tells sleep from sending, whatever was left to it.
    client.write_all(b"again").unwrap();
    rig.until("it arrives", |seen| seen.received(id).len() == 5005);
    rig.io.time_next_turn();
    let report = rig.turn(Some(Duration::from_millis(10)));
    assert_eq!((report.sends, report.times.unwrap().write_ns), (1, 0));
    assert!(report.asleep_ns >= 9_000_000);
    client.read_exact(&mut [0; 5]).unwrap();
}

/// What a full socket did not take of a small send follows soon, though nothing else happens.
#[test]
fn a_small_send_to_a_full_socket_waits_for_nobody_else() {
    let mut rig = Rig::<UringDriver>::with(KEEPS_TURNING);
    let (mut client, id) = rig.connect();
    let piece = pattern(9, 10_000);
    let mut sent = 0;
    // Until a send is not completed at once: the socket is full.
    while rig.io.pending_output(id) == 0 {
        rig.send(id, &piece);
        sent += piece.len();
        rig.turn(Some(Duration::from_millis(1)));
        assert!(sent < 1 << 30);
    }
    let reader = thread::spawn(move || {
        let mut all = vec![0; sent];
        client.read_exact(&mut all).map(|()| all)
    });
    let started = Instant::now();
    while rig.io.pending_output(id) > 0 {
        rig.turn(Some(rig::PATIENCE));
        assert!(
            started.elapsed() < rig::PATIENCE / 2,
            "it waited for another event"
        );
    }
    let all = reader.join().unwrap().unwrap();
    assert!(all.chunks(piece.len()).all(|chunk| chunk == piece));
}
