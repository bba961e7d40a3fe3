//! What a probe measures, on a clock that moves by itself.

use std::cell::Cell;

use weft_resp::{Probe, Protocol, Writer};
use weft_rope::{Output, Rope};

/// A clock on which every reading is `step` later than the one before: a measured call takes one step.
fn stepping(step: u64) -> impl Fn() -> u64 {
    let now = Cell::new(0);
    move || {
        now.set(now.get() + step);
        now.get()
    }
}

type Method = fn(&mut Writer<'_>);

const METHODS: &[(&str, Method)] = &[
    ("simple", |writer| writer.simple("text")),
    ("ok", |writer| writer.ok()),
    ("error", |writer| writer.error("ERR text")),
    ("error_bytes", |writer| writer.error_bytes(b"ERR text\r\n")),
    ("integer", |writer| writer.integer(123_456)),
    ("bulk", |writer| writer.bulk(b"bytes")),
    ("bulk_rope", |writer| {
        writer.bulk_rope(&Rope::from(&b"rope"[..]))
    }),
    ("bulk_rope_range", |writer| {
        writer.bulk_rope_range(&Rope::from(&b"rope"[..]), 1..3)
    }),
    ("bulk_integer", |writer| writer.bulk_integer(-5)),
    ("bulk_double", |writer| writer.bulk_double(1.5)),
    ("null", |writer| writer.null()),
    ("null_array", |writer| writer.null_array()),
    ("array", |writer| writer.array(3)),
    ("map", |writer| writer.map(3)),
    ("set", |writer| writer.set(3)),
    ("push", |writer| writer.push(3)),
    ("attribute", |writer| {
        let _ = writer.attribute(1);
    }),
    ("double", |writer| writer.double(2.5)),
    ("boolean", |writer| writer.boolean(true)),
    ("big_number", |writer| writer.big_number("123")),
    ("verbatim", |writer| writer.verbatim("txt", b"text")),
    ("deferred", |writer| {
        let deferred = writer.deferred_array();
        writer.finish(deferred, 0);
    }),
    ("raw", |writer| writer.raw(b"+raw\r\n")),
];

#[test]
fn every_method_is_measured_once_and_writes_the_same() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        for (name, method) in METHODS {
            let ticks = stepping(10);
            let probe = Probe::new(&ticks, 0);
            let mut probed = Output::new();
            method(&mut Writer::probed(&mut probed, protocol, Some(&probe)));
            assert_eq!((probe.spent(), probe.overhead()), (10, 0), "{name}");
            let mut plain = Output::new();
            method(&mut Writer::new(&mut plain, protocol));
            assert_eq!(probed.to_vec(), plain.to_vec(), "{name}");
        }
    }
}

#[test]
fn the_cost_of_reading_the_clock_is_taken_out() {
    let ticks = stepping(25);
    let probe = Probe::new(&ticks, 20);
    let mut out = Output::new();
    let mut writer = Writer::probed(&mut out, Protocol::Resp2, Some(&probe));
    writer.ok();
    writer.ok();
    assert_eq!((probe.spent(), probe.overhead()), (10, 80));

    let cheap = stepping(5);
    let probe = Probe::new(&cheap, 20);
    Writer::probed(&mut out, Protocol::Resp2, Some(&probe)).ok();
    assert_eq!((probe.spent(), probe.overhead()), (0, 40));
}

#[test]
fn of_many_calls_some_stand_for_all() {
    const CALLS: u64 = 7_000;
    let ticks = stepping(10);
    let probe = Probe::new(&ticks, 1);
    let mut out = Output::new();
    let mut writer = Writer::probed(&mut out, Protocol::Resp2, Some(&probe));
    for _ in 0..CALLS {
        writer.integer(1);
    }
    // Eight are measured each, then numbers 14, 21, ... 6993 counted from 0, seven times each.
    let measured = 8 + 998;
    assert_eq!(probe.spent(), (8 + 998 * 7) * 9);
    assert_eq!(probe.overhead(), measured * 2);
    assert!(probe.spent().abs_diff(CALLS * 9) < CALLS * 9 / 100);
}

#[test]
fn without_a_probe_no_clock_is_needed() {
    let mut out = Output::new();
    Writer::probed(&mut out, Protocol::Resp2, None).ok();
    assert_eq!(out.to_vec(), b"+OK\r\n");
}
