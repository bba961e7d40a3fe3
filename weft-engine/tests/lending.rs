//! Large values on their way out: lent, not copied, and sent as they were when they were asked for.

mod in_process;

use std::collections::HashSet;

use in_process::Local;
use weft_rope::Output;

const LEND_BYTES: usize = 16 * 1024;

fn value(len: usize, seed: u8) -> Vec<u8> {
    let next = |at: usize| (at * 31 % 251) as u8 ^ seed;
    (0..len).map(next).collect()
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Runs one command and keeps its reply unsent.
fn output(local: &mut Local, words: &[&[u8]]) -> Output {
    local.command(words);
    local.take_output()
}

/// Where the bytes of an output lie, run by run.
fn places(output: &Output) -> Vec<(*const u8, usize)> {
    output.runs().map(|run| (run.as_ptr(), run.len())).collect()
}

/// Bytes of `output` that lie where bytes of `other` lie: as both are held, these are the same memory.
fn shared_bytes(output: &Output, other: &Output) -> usize {
    let known: HashSet<(*const u8, usize)> = places(other).into_iter().collect();
    let shared = places(output).into_iter().filter(|run| known.contains(run));
    shared.map(|(_, len)| len).sum()
}

#[test]
fn values_of_16_kib_and_more_are_lent_whole() {
    let mut local = Local::new();
    for (len, copied) in [
        (LEND_BYTES, 0),
        (20_000, 0),
        (64 * 1024, 0),
        (64 * 1024 + 1025, 0),
        // A scrap of up to 1 KiB is not worth a slice of its own.
        (64 * 1024 + 1024, 1024),
        (200_000, 0),
        (5 << 20, 0),
        (LEND_BYTES - 1, LEND_BYTES - 1),
    ] {
        let stored = value(len, 1);
        local.command(&[b"SET", b"key", &stored]);
        let kept = output(&mut local, &[b"GET", b"key"]);
        assert_eq!(kept.to_vec(), bulk(&stored), "{len}");
        for words in [
            [b"GET".as_slice(), b"key"].as_slice(),
            &[b"GETEX", b"key", b"EX", b"100"],
            &[b"GETEX", b"key", b"PERSIST"],
            &[b"GETRANGE", b"key", b"0", b"-1"],
            &[b"SUBSTR", b"key", b"0", b"-1"],
            &[b"SET", b"key", &stored, b"XX", b"GET"],
        ] {
            let reply = output(&mut local, words);
            assert_eq!(reply.to_vec(), bulk(&stored), "{len} {words:?}");
            assert_eq!(
                shared_bytes(&reply, &kept),
                len - copied,
                "{len} {:?}",
                String::from_utf8_lossy(words[0])
            );
        }
        // SET has stored a new value.
        let kept = output(&mut local, &[b"GET", b"key"]);
        let three = output(&mut local, &[b"MGET", b"key", b"none", b"key"]);
        assert_eq!(
            three.to_vec(),
            [b"*3\r\n", &bulk(&stored)[..], b"$-1\r\n", &bulk(&stored)].concat()
        );
        assert_eq!(
            shared_bytes(&three, &kept),
            2 * (len - copied),
            "{len} MGET"
        );
        let old = output(&mut local, &[b"GETSET", b"key", &stored]);
        assert_eq!(shared_bytes(&old, &kept), len - copied, "{len} GETSET");
        let kept = output(&mut local, &[b"GET", b"key"]);
        let last = output(&mut local, &[b"GETDEL", b"key"]);
        assert_eq!(last.to_vec(), bulk(&stored));
        assert_eq!(shared_bytes(&last, &kept), len - copied, "{len} GETDEL");
    }
}

#[test]
fn parts_are_lent_like_wholes() {
    let mut local = Local::new();
    let stored = value(300_000, 2);
    local.command(&[b"SET", b"key", &stored]);
    let whole = output(&mut local, &[b"GET", b"key"]);
    // From one chunk, whose first byte is sent elsewhere.
    let part = output(&mut local, &[b"GETRANGE", b"key", b"65536", b"131071"]);
    assert_eq!(part.to_vec(), bulk(&stored[65_536..131_072]));
    assert_eq!(shared_bytes(&part, &whole), 65_536);
    // Across a border: two pieces of 10 KiB each.
    let words: &[&[u8]] = &[b"GETRANGE", b"key", b"55296", b"75775"];
    let (part, again) = (output(&mut local, words), output(&mut local, words));
    assert_eq!(part.to_vec(), bulk(&stored[55_296..75_776]));
    assert_eq!(shared_bytes(&part, &again), 20_480);
}

#[test]
fn what_is_lent_is_sent_as_it_was() {
    let old = value(200_000, 3);
    let other = value(150_000, 4);
    let changed = |at: usize, bytes: &[u8]| {
        let mut new = old.clone();
        new.resize(new.len().max(at + bytes.len()), 0);
        new[at..at + bytes.len()].copy_from_slice(bytes);
        new
    };
    type Case<'a> = (&'a [&'a [u8]], Option<Vec<u8>>);
    let cases: &[Case<'_>] = &[
        (&[b"SET", b"key", b"short"], Some(b"short".to_vec())),
        (&[b"SET", b"key", &other], Some(other.clone())),
        (
            &[b"APPEND", b"key", b"more"],
            Some(changed(200_000, b"more")),
        ),
        (&[b"APPEND", b"key", &other], Some(changed(200_000, &other))),
        (
            &[b"SETRANGE", b"key", b"0", b"new"],
            Some(changed(0, b"new")),
        ),
        (
            &[b"SETRANGE", b"key", b"65530", b"across the border"],
            Some(changed(65_530, b"across the border")),
        ),
        (
            &[b"SETRANGE", b"key", b"10", &other],
            Some(changed(10, &other)),
        ),
        (
            &[b"SETRANGE", b"key", b"250000", b"x"],
            Some(changed(250_000, b"x")),
        ),
        (&[b"GETSET", b"key", b"short"], Some(b"short".to_vec())),
        (&[b"MSET", b"key", &other, b"b", b"c"], Some(other.clone())),
        (&[b"DEL", b"key"], None),
        (&[b"UNLINK", b"key"], None),
        (&[b"GETDEL", b"key"], None),
        (&[b"PEXPIREAT", b"key", b"1"], None),
        (&[b"FLUSHALL"], None),
    ];
    for (words, after) in cases {
        let mut local = Local::new();
        local.command(&[b"SET", b"key", &old]);
        let lent = output(&mut local, &[b"GET", b"key"]);
        let part = output(&mut local, &[b"GETRANGE", b"key", b"60000", b"-1"]);
        let name = String::from_utf8_lossy(words[0]).into_owned();
        assert_eq!(shared_bytes(&lent, &part), 2 * 65_536 + 3392, "{name}");
        local.command(words);
        // Memory that was freed by mistake would now be used again.
        for number in 0..50 {
            local.command(&[b"SET", format!("other:{number}").as_bytes(), &other]);
        }
        assert!(lent.to_vec() == bulk(&old), "{name}");
        assert!(part.to_vec() == bulk(&old[60_000..]), "{name}");
        let expected = after
            .as_ref()
            .map_or_else(|| b"$-1\r\n".to_vec(), |new| bulk(new));
        assert!(local.command(&[b"GET", b"key"]) == expected, "{name}");
    }
}

#[test]
fn lent_bytes_count_as_output_and_as_memory() {
    let mut local = Local::new();
    let stored = value(1 << 20, 5);
    local.command(&[b"SET", b"key", &stored]);
    let reply = output(&mut local, &[b"GET", b"key"]);
    assert_eq!(reply.len(), (1 << 20) + 12);
    assert!(reply.allocated_bytes() >= 1 << 20);
}
