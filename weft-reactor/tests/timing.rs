//! A timed turn tells where its time went, and only when it was asked to.

mod rig;

use std::io::Write as _;
use std::time::Duration;

use rig::{NewDriver, PATIENCE, Rig, on_every_driver};
use weft_reactor::{TurnReport, TurnTimes, monotonic_ns};

on_every_driver! {
    only_the_turn_after_the_request_is_timed
    sleep_is_no_part_of_reading
    receiving_and_sending_are_told_apart
    an_untimed_turn_that_sleeps_is_asleep_no_longer_than_it_took
}

/// One turn, and how long it took.
fn clocked<D: NewDriver>(rig: &mut Rig<D>, timeout: Duration) -> (TurnReport, u64) {
    let start_ns = monotonic_ns();
    let report = rig.turn(Some(timeout));
    (report, monotonic_ns() - start_ns)
}

fn times(report: &TurnReport) -> TurnTimes {
    report.times.expect("the turn was to be timed")
}

fn only_the_turn_after_the_request_is_timed<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    assert_eq!(rig.turn(Some(Duration::ZERO)).times, None);
    rig.io.time_next_turn();
    let (report, took_ns) = clocked(&mut rig, Duration::ZERO);
    let TurnTimes { read_ns, write_ns } = times(&report);
    assert!(read_ns > 0 && read_ns <= took_ns, "{report:?} in {took_ns}");
    assert_eq!(write_ns, 0);
    assert_eq!(rig.turn(Some(Duration::ZERO)).times, None);
}

fn sleep_is_no_part_of_reading<D: NewDriver>() {
    const SLEEP: Duration = Duration::from_millis(30);
    let mut rig = Rig::<D>::new();
    rig.io.time_next_turn();
    let (report, took_ns) = clocked(&mut rig, SLEEP);
    let sleep_ns = SLEEP.as_nanos() as u64;
    assert!(took_ns >= sleep_ns);
    // What waking up costs is well below a millisecond; the rest was sleep.
    assert!(
        report.asleep_ns >= sleep_ns - 5_000_000,
        "{report:?} in {took_ns}"
    );
    let read_ns = times(&report).read_ns;
    assert!(read_ns > 0, "{report:?}");
    assert!(
        read_ns + report.asleep_ns <= took_ns,
        "{report:?} in {took_ns}"
    );
}

fn receiving_and_sending_are_told_apart<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    let (mut client, id) = rig.connect();
    rig.seen.echo = true;
    client.write_all(&rig::pattern(1, 60_000)).unwrap();
    let mut read_ns = 0;
    let mut write_ns = 0;
    let mut took_ns = 0;
    while rig.seen.received(id).len() < 60_000 || rig.total.bytes_sent < 60_000 {
        rig.io.time_next_turn();
        let (report, turn_ns) = clocked(&mut rig, PATIENCE);
        let times = times(&report);
        read_ns += times.read_ns;
        write_ns += times.write_ns;
        took_ns += turn_ns - report.asleep_ns;
    }
    assert!(read_ns > 0 && write_ns > 0);
    assert!(
        read_ns + write_ns <= took_ns,
        "{read_ns} {write_ns} {took_ns}"
    );
}

fn an_untimed_turn_that_sleeps_is_asleep_no_longer_than_it_took<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    for timed in [true, false, true, false, false] {
        if timed {
            rig.io.time_next_turn();
        }
        let (report, took_ns) = clocked(&mut rig, Duration::from_millis(3));
        assert_eq!(report.times.is_some(), timed);
        assert!(report.asleep_ns <= took_ns, "{report:?} in {took_ns}");
    }
}
