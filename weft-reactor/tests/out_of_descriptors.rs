//! Running out of descriptors. In a process of its own, because the limit is the process's.

mod rig;

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use rig::{Happened, NewDriver, Rig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weft_reactor::{EpollDriver, UringDriver};

/// One after the other: the limit is the process's.
#[test]
fn accepting_rests_reports_and_recovers_on_every_driver() {
    accepting_rests_reports_and_recovers::<EpollDriver>();
    accepting_rests_reports_and_recovers::<UringDriver>();
}

fn accepting_rests_reports_and_recovers<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (_first, _) = rig.connect();
    let limits = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(64),
            maximum: limits.maximum,
        },
    )
    .unwrap();
    // The client's socket exists before the last descriptor is gone.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let mut eaten = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        eaten.push(file);
    }
    socket.connect(&rig.address.into()).unwrap();

    rig.until("the failure is reported", |seen| {
        seen.log
            .iter()
            .any(|happened| matches!(happened, Happened::AcceptFailed(_)))
    });
    // Some hundred milliseconds of this: the driver sleeps through nearly all of it.
    let started = Instant::now();
    let mut turns = 0;
    let mut asleep_ns = 0;
    while started.elapsed() < Duration::from_millis(350) {
        asleep_ns += rig.turn(Some(Duration::from_millis(50))).asleep_ns;
        turns += 1;
    }
    assert!(turns <= 30, "{turns} turns");
    assert!(asleep_ns > 300_000_000, "asleep for {asleep_ns} ns");
    let failures = rig
        .seen
        .log
        .iter()
        .filter(|happened| matches!(happened, Happened::AcceptFailed(_)))
        .count();
    assert!((2..=5).contains(&failures), "tried {failures} times");
    assert_eq!(rig.seen.accepted().len(), 1);

    drop(eaten);
    rig.until("the connection is accepted after all", |seen| {
        seen.accepted().len() == 2
    });
    setrlimit(Resource::Nofile, limits).unwrap();
    let id = rig.seen.accepted()[1];
    (&socket).write_all(b"x").unwrap();
    rig.until("it works", |seen| seen.received(id) == b"x");
}
