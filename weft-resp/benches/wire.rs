//! Nanoseconds per request and per reply: `cargo bench -p weft-resp`. Each figure is the best of several rounds, since
//! what else runs on the machine only ever adds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use weft_resp::{Limits, Probe, Protocol, RequestParser, RequestWriter, Requests, Writer};
use weft_rope::Output;

const PIPELINE: usize = 100;
const ROUNDS: usize = 30;
const PER_ROUND: Duration = Duration::from_millis(10);

/// Prints the best nanoseconds that one of the `items` of a call took.
fn measure(name: &str, items: usize, mut call: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut calls = 0;
        while start.elapsed() < PER_ROUND {
            (0..16).for_each(|_| call());
            calls += 16;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (calls * items) as f64);
    }
    println!("{name:<44} {best:8.2} ns");
}

fn pipeline(command: impl Fn(usize) -> Vec<Vec<u8>>) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut writer = RequestWriter::new(&mut stream);
    for index in 0..PIPELINE {
        let args = command(index);
        writer.begin(args.len());
        args.iter().for_each(|arg| writer.arg(arg));
    }
    stream
}

fn parse(name: &str, stream: &[u8]) {
    let limits = Limits::default();
    let mut parser = RequestParser::new();
    let mut requests = Requests::new();
    measure(&format!("parse {name}"), PIPELINE, || {
        let source = parser.begin(black_box(stream));
        requests.clear();
        parser
            .parse(&source, &limits, usize::MAX, &mut requests)
            .expect("a valid stream");
        assert_eq!(requests.len(), PIPELINE);
        black_box(&requests);
        parser.end(source);
    });
    measure(
        &format!("parse {name}, batches of 32, arguments read"),
        PIPELINE,
        || {
            let source = parser.begin(black_box(stream));
            let mut more = true;
            while more {
                requests.clear();
                more = parser
                    .parse(&source, &limits, 32, &mut requests)
                    .expect("a valid stream");
                for index in 0..requests.len() {
                    let args = requests.get(index, &source);
                    black_box((&args[0], &args[1]));
                }
            }
            parser.end(source);
        },
    );
    let (left, right) = stream.split_at(stream.len() / 2 + 7);
    measure(
        &format!("parse {name}, cut inside a request"),
        PIPELINE,
        || {
            for piece in [left, right] {
                let source = parser.begin(black_box(piece));
                requests.clear();
                parser
                    .parse(&source, &limits, usize::MAX, &mut requests)
                    .expect("a valid stream");
                black_box(&requests);
                parser.end(source);
            }
        },
    );
}

fn write(name: &str, protocol: Protocol, reply: impl Fn(&mut Writer<'_>)) {
    let mut out = Output::new();
    measure(&format!("write {name}"), PIPELINE, || {
        for _ in 0..PIPELINE {
            reply(&mut Writer::new(&mut out, black_box(protocol)));
        }
        black_box(&mut out);
        out.clear();
    });
}

/// As [`write`], under a probe as in a turn that is timed: one in 32.
fn write_probed(name: &str, reply: impl Fn(&mut Writer<'_>)) {
    let start = Instant::now();
    let ticks = || start.elapsed().as_nanos() as u64;
    let mut out = Output::new();
    measure(&format!("write {name}, under a probe"), PIPELINE, || {
        let probe = Probe::new(&ticks, 0);
        for _ in 0..PIPELINE {
            reply(&mut Writer::probed(
                &mut out,
                black_box(Protocol::Resp2),
                Some(&probe),
            ));
        }
        black_box((&mut out, probe.spent()));
        out.clear();
    });
}

fn main() {
    let key = |index: usize| format!("key:{index:012}").into_bytes();
    parse("GET", &pipeline(|index| vec![b"GET".to_vec(), key(index)]));
    parse(
        "SET, 16 bytes",
        &pipeline(|index| vec![b"SET".to_vec(), key(index), vec![b'v'; 16]]),
    );
    parse(
        "SET, 128 bytes",
        &pipeline(|index| vec![b"SET".to_vec(), key(index), vec![b'v'; 128]]),
    );
    parse("PING", &pipeline(|_| vec![b"PING".to_vec(), Vec::new()]));
    let (short, long) = ([b'v'; 16], [b'v'; 128]);
    write("bulk, 16 bytes", Protocol::Resp2, |writer| {
        writer.bulk(black_box(&short))
    });
    write("bulk, 128 bytes", Protocol::Resp2, |writer| {
        writer.bulk(black_box(&long))
    });
    write_probed("bulk, 128 bytes", |writer| writer.bulk(black_box(&long)));
    write("ok", Protocol::Resp2, |writer| writer.ok());
    write("null", Protocol::Resp3, |writer| writer.null());
    write("integer, one digit", Protocol::Resp2, |writer| {
        writer.integer(black_box(7))
    });
    write("integer, ten digits", Protocol::Resp2, |writer| {
        writer.integer(black_box(1_234_567_890))
    });
    write("double", Protocol::Resp3, |writer| {
        writer.double(black_box(1234.5678))
    });
    write("error", Protocol::Resp2, |writer| {
        writer.error(black_box("ERR no such key"))
    });
}
