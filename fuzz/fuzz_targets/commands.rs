//! Commands on a whole engine: nothing panics, and the recorded effects rebuild the data.
//!
//! The input chooses commands and arguments from small pools, so that they meet each other's keys; some arguments are
//! bytes of the input. The engine runs in this process, its unsafe modules under AddressSanitizer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_testkit::door::{Door, Protocol};
use weft_testkit::engine_door::EngineDoor;

const NAMES: &[&str] = &[
    "SET",
    "GET",
    "GETSET",
    "GETDEL",
    "GETEX",
    "MSET",
    "MSETNX",
    "MGET",
    "SETNX",
    "SETEX",
    "PSETEX",
    "APPEND",
    "STRLEN",
    "SETRANGE",
    "GETRANGE",
    "INCR",
    "DECRBY",
    "INCRBYFLOAT",
    "LCS",
    "DEL",
    "UNLINK",
    "EXISTS",
    "TYPE",
    "EXPIRE",
    "PEXPIRE",
    "PEXPIREAT",
    "TTL",
    "PERSIST",
    "SCAN",
    "RANDOMKEY",
    "DBSIZE",
    "FLUSHDB",
    "SELECT",
    "OBJECT",
    "COMMAND",
    "CONFIG",
];
const WORDS: &[&str] = &[
    "a", "b", "c", "", "0", "1", "-1", "7", "3000", "70000", "1.5", "EX", "PX", "PXAT", "NX", "XX",
    "GET", "KEEPTTL", "PERSIST", "GT", "LT", "IDX", "LEN", "COUNT", "MATCH", "*", "ENCODING",
    "DOCS",
];
/// Commands of one input.
const COMMANDS_MAX: usize = 200;

fuzz_target!(|input: &[u8]| {
    let mut door = EngineDoor::start(&[]).expect("an engine");
    let mut session = door.connect(Protocol::Resp3).expect("a session");
    let mut bytes = input.iter().copied();
    for _ in 0..COMMANDS_MAX {
        let Some(name) = bytes.next() else { break };
        if name == u8::MAX {
            door.advance(u64::from(bytes.next().unwrap_or(1)))
                .expect("a clock that can be moved");
            continue;
        }
        let mut request = vec![NAMES[usize::from(name) % NAMES.len()].as_bytes().to_vec()];
        let count = bytes.next().unwrap_or(0) % 6;
        for _ in 0..count {
            request.push(argument(&mut bytes));
        }
        let reply = session.ask(&request);
        assert!(reply.is_ok(), "{request:?}: {reply:?}");
    }
    let difference = door.check().expect("two engines");
    assert_eq!(difference, None);
});

/// A word of the pool, some bytes of the input, or a long run of one byte.
fn argument(bytes: &mut impl Iterator<Item = u8>) -> Vec<u8> {
    let kind = bytes.next().unwrap_or(0);
    match kind {
        0..=199 => WORDS[usize::from(kind) % WORDS.len()].as_bytes().to_vec(),
        200..=239 => bytes.take(usize::from(kind) - 200).collect(),
        _ => vec![b'x'; 1 << (usize::from(kind) - 239)],
    }
}
