//! Connections of a driver over real sockets: bytes, ends and orders, exactly.

mod rig;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use rig::{Happened, NewDriver, Reason, Rig, Target, on_every_driver, pattern};
use weft_reactor::{Close, ConnectionId, DriverOptions, TurnReport, start_connect};
use weft_rope::{Chunk, Output};

on_every_driver! {
    echoes_to_a_slow_reader_across_partial_writes
    serves_a_thousand_connections
    fills_a_session_s_own_memory
    hands_out_bounded_shares
    a_half_closed_peer_gets_its_replies
    a_session_may_answer_after_the_end_of_input
    a_reset_is_an_error
    a_reset_right_behind_bytes_is_noticed
    a_reset_is_noticed_while_paused
    a_reset_is_noticed_while_backed_up
    a_reset_of_a_connection_that_is_ending_is_no_error
    a_hang_up_is_noticed_while_paused_and_loses_nothing
    pausing_stops_at_once
    closing_now_is_the_last_word
    closing_after_flush_sends_everything_queued_and_nothing_more
    closing_after_flush_saves_the_reply_from_unread_input
    a_connection_closed_by_another_s_callback_is_not_called
    closing_in_closed_is_told_too
    buffers_of_a_closed_connection_are_freed
    ids_of_gone_connections_are_harmless
    sends_once_per_connection_and_turn
    sends_more_runs_than_one_call_takes
    a_released_connection_goes_on_elsewhere
    a_released_connection_sends_what_it_owes_first
    a_connection_moves_under_load_without_losing_a_byte
    an_outgoing_connection_sends_as_soon_as_it_stands
    a_refused_outgoing_connection_is_closed
    a_removed_listener_refuses
    an_idle_driver_sleeps
    a_spinning_driver_takes_events_without_sleeping
    random_use_keeps_every_stream_intact
}

fn echoes_to_a_slow_reader_across_partial_writes<D: NewDriver>() {
    const BYTES: usize = 24 << 20;
    let mut rig = Rig::<D>::new();
    rig.seen.echo = true;
    let (client, id) = rig.connect();
    let sent = pattern(1, BYTES);
    let writer = {
        let (mut client, sent) = (client.try_clone().unwrap(), sent.clone());
        thread::spawn(move || client.write_all(&sent).unwrap())
    };
    // The peer sends everything before it reads anything; the driver must not wait for it to read.
    rig.until("everything has arrived", |seen| {
        seen.received(id).len() == BYTES
    });
    writer.join().unwrap();
    let behind = rig.io.pending_output(id);
    assert!(
        behind > BYTES / 2,
        "the kernel took nearly everything: {behind} left"
    );

    let reader = thread::spawn(move || {
        let mut client = client;
        let mut got = vec![0; BYTES];
        for part in got.chunks_mut(1 << 20) {
            client.read_exact(part).unwrap();
        }
        got
    });
    rig.until_io("everything is sent", |io, _| io.pending_output(id) == 0);
    assert!(reader.join().unwrap() == sent);
    let progress: Vec<usize> = rig
        .seen
        .story(id)
        .into_iter()
        .map(|happened| match happened {
            Happened::Sent(_, remaining) => remaining,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(progress.last(), Some(&0));
    assert_eq!(rig.total.bytes_received, BYTES as u64);
    assert_eq!(rig.total.bytes_sent, BYTES as u64);
}

fn serves_a_thousand_connections<D: NewDriver>() {
    const COUNT: usize = 1000;
    let mut rig = Rig::<D>::new();
    rig.seen.echo = true;
    let mut clients: Vec<(TcpStream, ConnectionId)> = (0..COUNT).map(|_| rig.connect()).collect();
    assert_eq!(rig.io.connections(), COUNT);
    for round in 0..3 {
        for (number, (client, _)) in clients.iter_mut().enumerate() {
            client
                .write_all(format!("{round}:{number}\n").as_bytes())
                .unwrap();
        }
        let expected = |number: usize| {
            (0..=round)
                .map(|round| format!("{round}:{number}\n"))
                .collect::<String>()
        };
        let ids: Vec<ConnectionId> = clients.iter().map(|client| client.1).collect();
        rig.until("all have arrived", |seen| {
            ids.iter()
                .enumerate()
                .all(|(number, id)| seen.received(*id) == expected(number).as_bytes())
        });
        for (number, (client, _)) in clients.iter_mut().enumerate() {
            let line = format!("{round}:{number}\n");
            let mut got = vec![0; line.len()];
            client.read_exact(&mut got).unwrap();
            assert_eq!(got, line.as_bytes());
        }
    }
    let ids: Vec<ConnectionId> = clients.drain(..).map(|(_, id)| id).collect();
    rig.until("all are closed", |seen| seen.closed() == COUNT);
    assert_eq!(rig.io.connections(), 0);
    for id in ids {
        assert_eq!(
            rig.seen.story(id),
            [Happened::EndOfInput(id), Happened::Closed(id, Reason::Peer)]
        );
    }
}

fn fills_a_session_s_own_memory<D: NewDriver>() {
    const BYTES: usize = 10 << 20;
    let mut rig = Rig::<D>::new();
    let (mut client, id) = rig.connect();
    let sent = pattern(2, BYTES);
    rig.seen.targets.insert(
        id,
        Target {
            memory: vec![0; BYTES],
            filled: 0,
            window: 64 << 10,
        },
    );
    let writer = {
        let sent = sent.clone();
        thread::spawn(move || {
            client.write_all(&sent).unwrap();
            client.write_all(b"after").unwrap();
            client
        })
    };
    // Once the memory is full, the rest comes through the driver's buffer.
    rig.until("the rest has come", |seen| seen.received(id).len() == 5);
    assert!(rig.seen.targets[&id].memory == sent);
    assert_eq!(rig.seen.targets[&id].filled, BYTES);
    assert_eq!(rig.seen.received(id), b"after");
    drop(writer.join().unwrap());
}

fn hands_out_bounded_shares<D: NewDriver>() {
    let options = DriverOptions {
        receive_buffer: 4096,
        direct_share: 8192,
        events: 16,
        ..DriverOptions::default()
    };
    let mut rig = Rig::<D>::with(options);
    let (mut flood, flooding) = rig.connect();
    let (mut small, quiet) = rig.connect();
    // All of it is there before any of it is taken.
    rig.io.pause_receive(flooding);
    flood.write_all(&vec![b'x'; 100_000]).unwrap();
    small.write_all(b"y").unwrap();
    rig.until("the small one is served", |seen| {
        seen.received(quiet) == b"y"
    });
    assert_eq!(rig.seen.received(flooding).len(), 0);
    rig.io.resume_receive(flooding);
    small.write_all(b"z").unwrap();
    let mut turns = 0;
    while rig.seen.received(flooding).len() < 100_000 {
        let had = rig.seen.received(flooding).len();
        let TurnReport { bytes_received, .. } = rig.turn(Some(rig::PATIENCE));
        assert!(rig.seen.received(flooding).len() - had <= 4096);
        assert!(bytes_received <= 4097);
        turns += 1;
    }
    assert!(turns >= 100_000 / 4096);
    assert!(rig.seen.pieces.iter().all(|piece| *piece <= 4096));
    rig.until("the small one is served again", |seen| {
        seen.received(quiet) == b"yz"
    });

    // Direct receives have a share of their own.
    rig.seen.targets.insert(
        flooding,
        Target {
            memory: vec![0; 65_536],
            filled: 0,
            window: 4096,
        },
    );
    flood.write_all(&pattern(3, 65_536)).unwrap();
    while rig.seen.targets[&flooding].filled < 65_536 {
        let had = rig.seen.targets[&flooding].filled;
        rig.turn(Some(rig::PATIENCE));
        assert!(rig.seen.targets[&flooding].filled - had <= 8192);
    }
    assert!(rig.seen.targets[&flooding].memory == pattern(3, 65_536));
}

fn a_half_closed_peer_gets_its_replies<D: NewDriver>() {
    const BYTES: usize = 12 << 20;
    let mut rig = Rig::<D>::new();
    rig.seen.echo = true;
    let (client, id) = rig.connect();
    let sent = pattern(4, BYTES);
    let peer = {
        let (mut client, sent) = (client, sent.clone());
        thread::spawn(move || {
            client.write_all(&sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut got = Vec::new();
            client.read_to_end(&mut got).unwrap();
            got
        })
    };
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert!(peer.join().unwrap() == sent);
    let story: Vec<Happened> = rig
        .seen
        .story(id)
        .into_iter()
        .filter(|happened| !matches!(happened, Happened::Sent(..)))
        .collect();
    assert_eq!(
        story,
        [Happened::EndOfInput(id), Happened::Closed(id, Reason::Peer)]
    );
}

fn a_session_may_answer_after_the_end_of_input<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    rig.seen.keep_open = true;
    let (mut client, id) = rig.connect();
    client.write_all(b"slow command").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    rig.until("the input ends", |seen| {
        seen.story(id) == [Happened::EndOfInput(id)]
    });
    assert_eq!(rig.seen.received(id), b"slow command");
    rig.turn(Some(Duration::from_millis(5)));
    rig.send(id, b"late reply");
    rig.io.close(id, Close::AfterFlush);
    rig.until("it is closed", |seen| seen.closed() == 1);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"late reply");
    assert_eq!(
        rig.seen.story(id),
        [Happened::EndOfInput(id), Happened::Closed(id, Reason::Peer)]
    );
}

fn reset(client: TcpStream) {
    let client = socket2::Socket::from(client);
    client.set_linger(Some(Duration::ZERO)).unwrap();
}

fn a_reset_is_an_error<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (client, id) = rig.connect();
    reset(client);
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert_eq!(
        rig.seen.story(id),
        [Happened::Closed(
            id,
            Reason::Error(ErrorKind::ConnectionReset)
        )]
    );
    assert_eq!(rig.io.connections(), 0);
}

/// Both come while the receive waits, before the driver looks.
fn a_reset_right_behind_bytes_is_noticed<D: NewDriver>() {
    for _ in 0..3 {
        let mut rig = Rig::<D>::new();
        let (mut client, id) = rig.connect();
        rig.turn(Some(Duration::ZERO));
        client.write_all(b"half a request").unwrap();
        reset(client);
        rig.until("it is closed", |seen| seen.closed() == 1);
        assert_eq!(rig.seen.received(id), b"half a request");
        assert_eq!(
            rig.seen.story(id),
            [Happened::Closed(
                id,
                Reason::Error(ErrorKind::ConnectionReset)
            )]
        );
    }
}

fn a_reset_is_noticed_while_paused<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (mut client, id) = rig.connect();
    rig.io.pause_receive(id);
    client.write_all(b"unread").unwrap();
    reset(client);
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert_eq!(
        rig.seen.story(id),
        [Happened::Closed(
            id,
            Reason::Error(ErrorKind::ConnectionReset)
        )]
    );
    assert_eq!(rig.seen.received(id), b"");
}

fn a_reset_is_noticed_while_backed_up<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (client, id) = rig.connect();
    rig.send(id, &pattern(5, 32 << 20));
    rig.turn(Some(Duration::ZERO));
    assert!(rig.io.pending_output(id) > 0);
    reset(client);
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert!(
        matches!(
            rig.seen.story(id)[..],
            [Happened::Closed(_, Reason::Error(_))]
        ),
        "{:?}",
        rig.seen.story(id)
    );
    assert_eq!(rig.io.pending_output(id), 0);
}

fn a_reset_of_a_connection_that_is_ending_is_no_error<D: NewDriver>() {
    for close_locally in [true, false] {
        let mut rig = Rig::<D>::new();
        rig.seen.keep_open = true;
        let (client, id) = rig.connect();
        rig.send(id, &pattern(9, 32 << 20));
        rig.turn(Some(Duration::ZERO));
        let mut expected = Vec::new();
        if close_locally {
            rig.io.close(id, Close::AfterFlush);
            expected.push(Happened::Closed(id, Reason::Local));
        } else {
            client.shutdown(Shutdown::Write).unwrap();
            rig.until("the input ends", |seen| !seen.story(id).is_empty());
            expected.push(Happened::EndOfInput(id));
            expected.push(Happened::Closed(id, Reason::Peer));
        }
        assert!(rig.io.pending_output(id) > 0);
        reset(client);
        rig.until("it is closed", |seen| seen.closed() == 1);
        let mut story = rig.seen.story(id);
        story.retain(|happened| !matches!(happened, Happened::Sent(..)));
        assert_eq!(story, expected);
    }
}

fn a_hang_up_is_noticed_while_paused_and_loses_nothing<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (mut client, id) = rig.connect();
    rig.io.pause_receive(id);
    client.write_all(b"unread").unwrap();
    drop(client);
    rig.until("the hang-up is told", |seen| {
        seen.story(id) == [Happened::HungUp(id)]
    });
    assert_eq!(rig.seen.received(id), b"");
    // It is told once.
    rig.turn(Some(Duration::from_millis(5)));
    assert_eq!(rig.seen.story(id), [Happened::HungUp(id)]);
    rig.io.resume_receive(id);
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert_eq!(rig.seen.received(id), b"unread");
    assert_eq!(
        rig.seen.story(id),
        [
            Happened::HungUp(id),
            Happened::EndOfInput(id),
            Happened::Closed(id, Reason::Peer)
        ]
    );
}

fn pausing_stops_at_once<D: NewDriver>() {
    let options = DriverOptions {
        receive_buffer: 16,
        ..DriverOptions::default()
    };
    let mut rig = Rig::<D>::with(options);
    let (mut client, id) = rig.connect();
    rig.seen.on_received = Some(Box::new(|io, id, _| io.pause_receive(id)));
    client.write_all(&pattern(6, 64)).unwrap();
    for expected in [16, 32, 48, 64] {
        rig.until("a piece has come", |seen| {
            seen.received(id).len() >= expected
        });
        assert_eq!(rig.seen.received(id).len(), expected);
        rig.turn(Some(Duration::from_millis(2)));
        assert_eq!(
            rig.seen.received(id).len(),
            expected,
            "received while paused"
        );
        rig.io.resume_receive(id);
    }
    assert_eq!(rig.seen.received(id), pattern(6, 64));
}

fn closing_now_is_the_last_word<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (mut client, id) = rig.connect();
    rig.seen.on_received = Some(Box::new(|io, id, _| {
        let mut output = Output::new();
        output.tail().extend_from_slice(b"lost");
        io.send(id, &mut output);
        io.close(id, Close::Now);
        io.close(id, Close::AfterFlush);
        output.tail().extend_from_slice(b"dropped");
        io.send(id, &mut output);
        assert!(output.is_empty());
        assert_eq!(io.pending_output(id), 0);
    }));
    client.write_all(b"x").unwrap();
    rig.until("it is closed", |seen| seen.closed() == 1);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"");
    assert_eq!(rig.seen.story(id), [Happened::Closed(id, Reason::Local)]);
    rig.turn(Some(Duration::ZERO));
    assert_eq!(rig.seen.closed(), 1);
}

fn closing_after_flush_sends_everything_queued_and_nothing_more<D: NewDriver>() {
    const BYTES: usize = 16 << 20;
    let mut rig = Rig::<D>::new();
    let (mut client, id) = rig.connect();
    let sent = pattern(7, BYTES);
    rig.send(id, &sent);
    rig.io.close(id, Close::AfterFlush);
    rig.send(id, b"dropped");
    rig.turn(Some(Duration::ZERO));
    assert_eq!(rig.seen.closed(), 0, "the peer has not read yet");
    client.write_all(b"not listened to").unwrap();
    let reader = thread::spawn(move || {
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        got
    });
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert!(reader.join().unwrap() == sent);
    assert_eq!(rig.seen.received(id), b"");
    // Not even the progress of the last bytes is told.
    assert_eq!(rig.seen.story(id), [Happened::Closed(id, Reason::Local)]);
}

fn closing_after_flush_saves_the_reply_from_unread_input<D: NewDriver>() {
    let options = DriverOptions {
        receive_buffer: 16,
        ..DriverOptions::default()
    };
    let mut rig = Rig::<D>::with(options);
    let (mut client, id) = rig.connect();
    client.write_all(&vec![b'x'; 100_000]).unwrap();
    rig.seen.on_received = Some(Box::new(|io, id, _| {
        let mut output = Output::new();
        output.tail().extend_from_slice(b"-ERR Protocol error\r\n");
        io.send(id, &mut output);
        io.close(id, Close::AfterFlush);
    }));
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert_eq!(rig.seen.received(id).len(), 16);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"-ERR Protocol error\r\n");
}

fn a_connection_closed_by_another_s_callback_is_not_called<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (mut first, first_id) = rig.connect();
    let (mut second, second_id) = rig.connect();
    rig.io.pause_receive(first_id);
    rig.io.pause_receive(second_id);
    first.write_all(b"1").unwrap();
    second.write_all(b"2").unwrap();
    rig.turn(Some(Duration::from_millis(5)));
    rig.seen.on_received = Some(Box::new(move |io, id, _| {
        io.close(
            if id == first_id { second_id } else { first_id },
            Close::Now,
        );
    }));
    rig.io.resume_receive(first_id);
    rig.io.resume_receive(second_id);
    rig.until("one is closed", |seen| seen.closed() == 1);
    rig.turn(Some(Duration::from_millis(5)));
    assert_eq!(rig.seen.input.len(), 1);
    let survivor = *rig.seen.input.keys().next().unwrap();
    let victim = if survivor == first_id {
        second_id
    } else {
        first_id
    };
    assert_eq!(
        rig.seen.story(victim),
        [Happened::Closed(victim, Reason::Local)]
    );
    assert_eq!(rig.seen.story(survivor), []);
}

fn closing_in_closed_is_told_too<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (first, first_id) = rig.connect();
    let (_second, second_id) = rig.connect();
    rig.seen.on_closed = Some(Box::new(move |io, id| {
        if id == first_id {
            io.close(second_id, Close::Now);
        }
    }));
    drop(first);
    rig.until("both are closed", |seen| seen.closed() == 2);
    assert_eq!(
        rig.seen.story(second_id),
        [Happened::Closed(second_id, Reason::Local)]
    );
}

fn buffers_of_a_closed_connection_are_freed<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    for close_locally in [true, false] {
        let (client, id) = rig.connect();
        let chunk = Chunk::from_slice(&[b'c'; 64 << 10]);
        let mut output = Output::new();
        for _ in 0..1000 {
            output.push_counted(chunk.clone(), 0..chunk.len());
        }
        rig.io.send(id, &mut output);
        rig.turn(Some(Duration::ZERO));
        assert!(rig.io.pending_output(id) > 0);
        assert!(chunk.is_shared());
        let before = rig.seen.closed();
        if close_locally {
            rig.io.close(id, Close::Now);
        } else {
            reset(client);
        }
        rig.until("it is closed", |seen| seen.closed() > before);
        assert!(!chunk.is_shared());
    }
}

fn ids_of_gone_connections_are_harmless<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (client, gone) = rig.connect();
    drop(client);
    rig.until("it is closed", |seen| seen.closed() == 1);
    let (mut client, id) = rig.connect();
    assert_eq!(id.slot(), gone.slot(), "the slot is used again");
    assert_ne!(id, gone);
    rig.send(gone, b"for nobody");
    rig.io.pause_receive(gone);
    rig.io.resume_receive(gone);
    rig.io.release(gone);
    rig.io.close(gone, Close::Now);
    assert_eq!(rig.io.pending_output(gone), 0);
    rig.seen.echo = true;
    client.write_all(b"alive").unwrap();
    rig.until("it arrives", |seen| seen.received(id) == b"alive");
    let mut got = [0; 5];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"alive");
    assert_eq!(rig.seen.closed(), 1);
}

fn sends_once_per_connection_and_turn<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (mut client, id) = rig.connect();
    for part in ["one", "two", "three"] {
        rig.send(id, part.as_bytes());
    }
    assert_eq!(rig.io.pending_output(id), 11);
    let report = rig.turn(Some(Duration::ZERO));
    assert_eq!((report.sends, report.bytes_sent), (1, 11));
    assert_eq!(rig.io.pending_output(id), 0);
    let mut got = [0; 11];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"onetwothree");
    // Nothing was refused, so there was no progress to report.
    assert_eq!(rig.seen.story(id), []);
}

fn sends_more_runs_than_one_call_takes<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (mut client, id) = rig.connect();
    let chunk = Chunk::from_slice(b"0123456789");
    let mut output = Output::new();
    let mut expected = Vec::new();
    for number in 0..3000usize {
        let range = number % 7..10;
        expected.extend_from_slice(&chunk.as_slice()[range.clone()]);
        output.push_counted(chunk.clone(), range);
    }
    rig.io.send(id, &mut output);
    rig.until_io("all is sent", |io, _| io.pending_output(id) == 0);
    let mut got = vec![0; expected.len()];
    client.read_exact(&mut got).unwrap();
    assert!(got == expected);
    assert_eq!(rig.total.sends, 3, "1024 runs a call");
}

fn a_released_connection_goes_on_elsewhere<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let mut other = Rig::<D>::new();
    other.seen.echo = true;
    let (mut client, id) = rig.connect();
    client.write_all(b"before ").unwrap();
    rig.until("it arrives", |seen| seen.received(id) == b"before ");
    rig.io.release(id);
    client.write_all(b"between ").unwrap();
    rig.until("it is released", |seen| !seen.released.is_empty());
    assert_eq!(rig.io.connections(), 0);
    assert_eq!(rig.seen.story(id), [Happened::Released(id)]);
    assert_eq!(
        rig.seen.received(id),
        b"before ",
        "after `release` nothing more is handed out"
    );
    let (socket, filter) = rig.seen.released.pop().unwrap();
    let moved = other.io.adopt(socket, filter).unwrap();
    client.write_all(b"after").unwrap();
    other.until("the rest arrives", |seen| {
        seen.received(moved) == b"between after"
    });
    let mut got = [0; 13];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"between after");
    // The old driver hears nothing of it.
    client.write_all(b"!").unwrap();
    let report = rig.turn(Some(Duration::from_millis(20)));
    assert_eq!(report.events, 0);
    other.until("the last byte arrives", |seen| {
        seen.received(moved) == b"between after!"
    });
}

fn a_released_connection_sends_what_it_owes_first<D: NewDriver>() {
    const BYTES: usize = 16 << 20;
    let mut rig = Rig::<D>::new();
    let (client, id) = rig.connect();
    let sent = pattern(8, BYTES);
    rig.send(id, &sent);
    rig.turn(Some(Duration::ZERO));
    rig.io.release(id);
    rig.turn(Some(Duration::ZERO));
    assert!(rig.seen.released.is_empty());
    let reader = thread::spawn(move || {
        let mut client = client;
        let mut got = vec![0; BYTES];
        client.read_exact(&mut got).unwrap();
        (client, got)
    });
    rig.until("it is released", |seen| !seen.released.is_empty());
    let (mut client, got) = reader.join().unwrap();
    assert!(got == sent);
    drop(rig.seen.released.pop());
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}

/// Connections go to and fro between two drivers while their peers write and read all the time.
fn a_connection_moves_under_load_without_losing_a_byte<D: NewDriver>() {
    const PEERS: u64 = 6;
    const BYTES: usize = 2_000_000;
    let mut rigs = [Rig::<D>::new(), Rig::<D>::new()];
    let peers: Vec<_> = (0..PEERS)
        .map(|seed| {
            let address = rigs[0].address;
            thread::spawn(move || {
                let mut client = rig::connect(address);
                let sent = pattern(seed, BYTES);
                let writer = {
                    let (mut client, sent) = (client.try_clone().unwrap(), sent.clone());
                    thread::spawn(move || {
                        let mut random = fastrand::Rng::with_seed(seed);
                        let mut rest = &sent[..];
                        while !rest.is_empty() {
                            let (part, after) =
                                rest.split_at(random.usize(1..=rest.len().min(30_000)));
                            client.write_all(part).unwrap();
                            rest = after;
                        }
                    })
                };
                let mut got = vec![0; BYTES];
                client.read_exact(&mut got).unwrap();
                writer.join().unwrap();
                assert!(got == sent, "peer {seed}");
            })
        })
        .collect();
    for rig in &mut rigs {
        rig.seen.echo = true;
    }
    let deadline = std::time::Instant::now() + rig::PATIENCE;
    let mut moves = 0;
    let mut known = 0;
    let mut random = fastrand::Rng::with_seed(1);
    let mut here: [Vec<ConnectionId>; 2] = [Vec::new(), Vec::new()];
    while !peers.iter().all(|peer| peer.is_finished()) {
        assert!(std::time::Instant::now() < deadline);
        for side in 0..2 {
            rigs[side].turn(Some(Duration::from_micros(200)));
            let accepted = rigs[side].seen.accepted();
            if side == 0 {
                here[0].extend(accepted[known..].iter().copied());
                known = accepted.len();
            }
            while let Some((socket, filter)) = rigs[side].seen.released.pop() {
                moves += 1;
                here[1 - side].push(rigs[1 - side].io.adopt(socket, filter).unwrap());
            }
            if !here[side].is_empty() {
                let id = here[side].swap_remove(random.usize(0..here[side].len()));
                rigs[side].io.release(id);
            }
        }
    }
    for peer in peers {
        peer.join().unwrap();
    }
    assert!(moves > 20, "{moves} moves");
}

fn an_outgoing_connection_sends_as_soon_as_it_stands<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let mut other = Rig::<D>::new();
    let socket = start_connect(rig.address, None).unwrap();
    let outgoing = other.io.adopt(socket, None).unwrap();
    other.send(outgoing, b"PING\r\n");
    other.turn(Some(Duration::ZERO));
    rig.seen.echo = true;
    rig.until("it arrives", |seen| {
        seen.input.values().any(|input| input == b"PING\r\n")
    });
    other.until("the answer arrives", |seen| {
        seen.received(outgoing) == b"PING\r\n"
    });
    assert_eq!(other.io.pending_output(outgoing), 0);
}

fn a_refused_outgoing_connection_is_closed<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let free = rig::loopback().address().unwrap();
    let socket = match start_connect(free, None) {
        Ok(socket) => socket,
        // A kernel may refuse on the spot.
        Err(error) => return assert_eq!(error.kind(), ErrorKind::ConnectionRefused),
    };
    let id = rig.io.adopt(socket, None).unwrap();
    rig.send(id, b"PING\r\n");
    rig.until("it is closed", |seen| seen.closed() == 1);
    assert_eq!(
        rig.seen.story(id),
        [Happened::Closed(
            id,
            Reason::Error(ErrorKind::ConnectionRefused)
        )]
    );
}

fn a_removed_listener_refuses<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (mut client, id) = rig.connect();
    let listener = rig.io.remove_listener(rig.listener).unwrap();
    assert!(rig.io.remove_listener(rig.listener).is_none());
    assert!(rig.io.listener(rig.listener).is_none());
    assert_eq!(listener.address(), Some(rig.address));
    // As long as it is not dropped it listens, but not for this driver.
    let waiting = rig::connect(rig.address);
    assert_eq!(rig.turn(Some(Duration::from_millis(20))).events, 0);
    drop(waiting);
    drop(listener);
    assert_eq!(
        TcpStream::connect(rig.address).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    client.write_all(b"still here").unwrap();
    rig.until("it arrives", |seen| seen.received(id) == b"still here");
}

fn an_idle_driver_sleeps<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (_client, _) = rig.connect();
    rig.turn(Some(Duration::ZERO));
    let timeout = Duration::from_millis(30);
    let started = std::time::Instant::now();
    let report = rig.turn(Some(timeout));
    assert!(started.elapsed() >= timeout, "returned early");
    assert_eq!((report.events, report.receives, report.sends), (0, 0, 0));
    assert!(report.asleep_ns >= 30_000_000);
}

fn a_spinning_driver_takes_events_without_sleeping<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    rig.io.set_spin(rig::PATIENCE);
    rig.seen.echo = true;
    let address = rig.address;
    let waker = rig.io.waker();
    let peer = thread::spawn(move || {
        let mut client = rig::connect(address);
        for _ in 0..100 {
            client.write_all(b"x").unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        waker.wake();
        client
    });
    let mut asleep_ns = 0;
    while !rig.seen.log.contains(&Happened::Woken) {
        asleep_ns += rig.turn(None).asleep_ns;
    }
    assert_eq!(asleep_ns, 0);
    drop(peer.join().unwrap());
    // Timers and time-outs end the spinning in time.
    let started = weft_reactor::monotonic_ns();
    rig.io
        .arm_timer(started + 3_000_000, weft_reactor::TimerToken(1));
    rig.until("the timer fires", |seen| {
        seen.log.contains(&Happened::Timer(1))
    });
    assert!(weft_reactor::monotonic_ns() >= started + 3_000_000);
    let started = std::time::Instant::now();
    rig.turn(Some(Duration::from_millis(3)));
    assert!(started.elapsed() < rig::PATIENCE / 2);
}

/// Peers that write, pause and read at random against sessions that echo, pause and resume at random; every stream must
/// come back intact, in both directions, and every connection must end once.
fn random_use_keeps_every_stream_intact<D: NewDriver>() {
    const PEERS: usize = 24;
    let options = DriverOptions {
        receive_buffer: 8192,
        direct_share: 16_384,
        events: 7,
        ..DriverOptions::default()
    };
    let mut rig = Rig::<D>::with(options);
    rig.seen.echo = true;
    let mut random = fastrand::Rng::with_seed(11);
    rig.seen.on_received = Some(Box::new(move |io, id, _| {
        if random.u32(0..4) == 0 {
            io.pause_receive(id);
            let deadline = weft_reactor::monotonic_ns() + random.u64(0..2_000_000);
            io.arm_timer(deadline, weft_reactor::TimerToken(id.to_bits()));
        }
    }));
    rig.seen.on_timer = Some(Box::new(|io, token| {
        io.resume_receive(ConnectionId::from_bits(token))
    }));
    let address = rig.address;
    let peers: Vec<_> = (0..PEERS as u64)
        .map(|seed| {
            thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let sent = pattern(seed, random.usize(1..3_000_000));
                let mut client = rig::connect(address);
                let writer = {
                    let (mut client, sent, mut random) =
                        (client.try_clone().unwrap(), sent.clone(), random.fork());
                    thread::spawn(move || {
                        let mut rest = &sent[..];
                        while !rest.is_empty() {
                            let (part, after) =
                                rest.split_at(random.usize(1..=rest.len().min(100_000)));
                            client.write_all(part).unwrap();
                            rest = after;
                        }
                        client.shutdown(Shutdown::Write).unwrap();
                    })
                };
                let mut got = Vec::new();
                let mut buffer = vec![0; 200_000];
                loop {
                    let room = random.usize(1..=buffer.len());
                    match client.read(&mut buffer[..room]).unwrap() {
                        0 => break,
                        count => got.extend_from_slice(&buffer[..count]),
                    }
                    if random.u32(0..8) == 0 {
                        thread::yield_now();
                    }
                }
                writer.join().unwrap();
                assert!(
                    got == sent,
                    "peer {seed}: {} bytes of {}",
                    got.len(),
                    sent.len()
                );
            })
        })
        .collect();
    rig.until("all are closed", |seen| seen.closed() == PEERS);
    for peer in peers {
        peer.join().unwrap();
    }
    assert_eq!(rig.io.connections(), 0);
    for id in rig.seen.accepted() {
        assert_eq!(
            rig.seen.story(id).last(),
            Some(&Happened::Closed(id, Reason::Peer))
        );
    }
}
