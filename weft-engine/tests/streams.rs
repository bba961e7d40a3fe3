//! Streams through the engine: effects that rebuild them, what is told of changes, large replies, keys without entries.

mod in_process;

use in_process::{Local, START_MS};
use weft_engine::digest::digest;

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

fn run(local: &mut Local, command: &[Vec<u8>]) -> Vec<u8> {
    let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
    local.command(&arguments)
}

fn ask(local: &mut Local, text: &str) -> String {
    String::from_utf8(run(local, &words(text))).expect("these replies are text")
}

/// A random write, or a read of what may be overdue, over a few keys. `next` is an id that no entry has yet.
fn random_command(random: &mut fastrand::Rng, next: u64) -> Vec<Vec<u8>> {
    let pick =
        |random: &mut fastrand::Rng, from: &[&str]| from[random.usize(..from.len())].to_owned();
    let keys = ["a", "b"];
    let (key, other) = (pick(random, &keys), pick(random, &keys));
    let (group, consumer) = (pick(random, &["g", "h"]), pick(random, &["x", "y", "z"]));
    let id = |random: &mut fastrand::Rng| format!("1-{}", random.u64(1..next + 2));
    let (one, two) = (id(random), id(random));
    let count = random.u64(..20);
    let how = pick(random, &["", " KEEPREF", " DELREF", " ACKED"]);
    let trim = match random.u8(..4) {
        0 => format!("MAXLEN = {count}"),
        1 => format!("MAXLEN ~ {count}"),
        2 => format!("MINID {one}"),
        _ => format!("MINID ~ {one}"),
    };
    let text = match random.u8(..32) {
        0..=6 => format!("XADD {key} 1-{next} f {count} g {next}"),
        7 => format!("XADD {key}{how} {trim} 1-{next} other {one} g x"),
        8 => format!("XADD {key} NOMKSTREAM 1-{next} f 1"),
        9 => format!("XDEL {key} {one} {two}"),
        10 => format!("XTRIM {key} {trim}{how}"),
        11 | 12 => format!("XGROUP CREATE {key} {group} 0 MKSTREAM"),
        13 => format!("XGROUP CREATE {key} {group} $ ENTRIESREAD {count}"),
        14 => format!("XGROUP SETID {key} {group} {one} ENTRIESREAD {count}"),
        15 if random.bool() => format!("XGROUP DESTROY {key} {group}"),
        15 => format!("XGROUP DELCONSUMER {key} {group} {consumer}"),
        16 => format!("XGROUP CREATECONSUMER {key} {group} {consumer}"),
        17..=20 => format!("XREADGROUP GROUP {group} {consumer} COUNT {count} STREAMS {key} >"),
        21 => format!("XREADGROUP GROUP {group} {consumer} NOACK STREAMS {key} {other} > >"),
        22 => format!("XREADGROUP GROUP {group} {consumer} COUNT 3 STREAMS {key} {one}"),
        23 => format!("XACK {key} {group} {one} {two}"),
        24 => format!("XACKDEL {key} {group}{how} IDS 2 {one} {two}"),
        25 => format!("XDELEX {key}{how} IDS 2 {one} {two}"),
        26 => format!("XCLAIM {key} {group} {consumer} 0 {one} {two} FORCE IDLE 3"),
        27 => format!("XCLAIM {key} {group} {consumer} 4 {one} {two} JUSTID LASTID {one}"),
        28 => format!("XAUTOCLAIM {key} {group} {consumer} 2 {one} COUNT 4"),
        29 => format!("XSETID {key} 1-{next} ENTRIESADDED {next} MAXDELETEDID {one}"),
        30 => match random.u8(..3) {
            0 => format!("COPY {key} {other} REPLACE"),
            1 => format!("PEXPIRE {key} {count}"),
            _ => format!("SET {key} x"),
        },
        _ if random.bool() => format!("DEL {key}"),
        _ => format!("XADD {key} * f 1"),
    };
    words(&text)
}

#[test]
fn replayed_effects_rebuild_streams() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let entries = random.u32(1..8).to_string();
        let arguments = ["--stream-node-max-entries", &entries];
        let (mut primary, mut copy) = (
            Local::with_arguments(&arguments),
            Local::with_arguments(&arguments),
        );
        let mut reader = primary.engine.listen_to_journal(0);
        for step in 1..=400 {
            let command = random_command(&mut random, step);
            let before = digest(&primary.engine, 0);
            primary.changes.take();
            run(&mut primary, &command);
            let line = String::from_utf8_lossy(&command.join(&b' ')).into_owned();
            for record in reader.read() {
                for effect in record.effects {
                    let reply = run(&mut copy, &effect.to_plain());
                    let reply = String::from_utf8_lossy(&reply).into_owned();
                    assert!(
                        !reply.starts_with('-'),
                        "{line} recorded {effect:?}: {reply}"
                    );
                }
            }
            assert_eq!(
                digest(&primary.engine, 0),
                digest(&copy.engine, 0),
                "seed {seed}, step {step}: {line}"
            );
            let told = !primary.changes.take().is_empty();
            assert!(
                told || digest(&primary.engine, 0) == before,
                "{line} changed the data and told nobody"
            );
            // The copy's clock stands still: it removes nothing by itself, and times are ahead of it.
            primary.clock.advance_ms(random.u64(..10));
        }
    }
}

#[test]
fn changes_are_told_in_the_words_of_notifications() {
    let mut local = Local::new();
    for (command, events) in [
        ("XADD s NOMKSTREAM 1-1 a 1", &[][..]),
        ("XADD s 1-1 a 1", &["new", "xadd"]),
        ("XADD s MAXLEN 1 1-2 a 1", &["xadd", "xtrim"]),
        ("XADD s 1-2 a 1", &[]),
        ("XTRIM s MAXLEN 1", &[]),
        ("XDEL s 1-1", &[]),
        ("XDEL s 1-2", &["xdel"]),
        ("XADD s 1-3 a 1", &["xadd"]),
        ("XTRIM s MINID 9", &["xtrim"]),
        ("XSETID s 1-9", &["xsetid"]),
        ("XGROUP CREATE s g 0", &["xgroup-create"]),
        ("XGROUP CREATE t g 0 MKSTREAM", &["new", "xgroup-create"]),
        ("XGROUP SETID s g 0", &["xgroup-setid"]),
        ("XGROUP CREATECONSUMER s g c", &["xgroup-createconsumer"]),
        ("XGROUP CREATECONSUMER s g c", &[]),
        ("XADD s 2-1 a 1", &["xadd"]),
        ("XADD s 2-2 a 1", &["xadd"]),
        // These changes are for whoever watches, not for subscribers.
        ("XREADGROUP GROUP g c COUNT 1 STREAMS s >", &["xgroup"]),
        (
            "XREADGROUP GROUP g d STREAMS s >",
            &["xgroup-createconsumer", "xgroup"],
        ),
        ("XREADGROUP GROUP g d STREAMS s >", &[]),
        ("XREADGROUP GROUP g d STREAMS s 0", &["xgroup"]),
        ("XREADGROUP GROUP g d STREAMS s 9", &[]),
        ("XCLAIM s g c 0 2-2", &["xgroup"]),
        ("XCLAIM s g c 100000 2-2", &[]),
        ("XAUTOCLAIM s g e 0 -", &["xgroup-createconsumer", "xgroup"]),
        ("XACK s g 2-1", &["xgroup"]),
        ("XACK s g 2-1", &[]),
        ("XACKDEL s g IDS 1 2-2", &["xdel"]),
        ("XDELEX s IDS 1 2-1", &["xdel"]),
        ("XDELEX s IDS 1 2-1", &[]),
        ("XGROUP DELCONSUMER s g c", &["xgroup-delconsumer"]),
        ("XGROUP DESTROY s g", &["xgroup-destroy"]),
        ("XGROUP DESTROY s g", &[]),
        ("DEL s", &["del"]),
    ] {
        run(&mut local, &words(command));
        let told: Vec<&str> = local
            .changes
            .take()
            .iter()
            .map(|change| change.event)
            .collect();
        assert_eq!(told, events, "{command}");
    }
}

/// As many as Redis 8.2.3 counts in `rdb_changes_since_last_save`.
#[test]
fn changes_are_counted_as_by_redis_8_2() {
    let mut local = Local::new();
    for (command, changes) in [
        ("XADD s 1-1 a 1", 1),
        ("XADD s 1-2 a 2", 1),
        ("XADD s 1-3 a 3", 1),
        ("XADD s 1-4 a 4", 1),
        ("XADD s MAXLEN 4 1-5 a 5", 1),
        ("XGROUP CREATE s g 0", 1),
        ("XREADGROUP GROUP g c COUNT 3 STREAMS s >", 2),
        ("XREADGROUP GROUP g c STREAMS s 0", 0),
        ("XCLAIM s g d 0 1-2", 2),
        ("XCLAIM s g d 0 1-2 JUSTID", 1),
        ("XDEL s 1-2 1-3", 2),
        ("XCLAIM s g e 0 1-2 1-4", 3),
        ("XAUTOCLAIM s g f 0 0-0", 3),
        ("XACK s g 1-4 1-9", 1),
        ("XTRIM s MAXLEN 0", 2),
        ("XSETID s 9-9", 1),
        ("XGROUP DESTROY s g", 1),
    ] {
        let before = local.engine.totals().changes;
        ask(&mut local, command);
        assert_eq!(local.engine.totals().changes - before, changes, "{command}");
    }
}

#[test]
fn what_came_of_a_command_is_recorded() {
    let mut local = Local::with_arguments(&["--stream-node-max-entries", "2"]);
    let mut reader = local.engine.listen_to_journal(0);
    let mut recorded = |local: &mut Local, command: &str| -> Vec<String> {
        ask(local, command);
        let effects = reader.read().into_iter().flat_map(|record| record.effects);
        let line = |words: Vec<Vec<u8>>| String::from_utf8_lossy(&words.join(&b' ')).into_owned();
        effects.map(|effect| line(effect.to_plain())).collect()
    };
    assert_eq!(
        recorded(&mut local, "XADD s * f v"),
        [format!("XADD s {START_MS}-0 f v")]
    );
    assert_eq!(
        recorded(&mut local, "XADD s * f v"),
        [format!("XADD s {START_MS}-1 f v")]
    );
    let later = START_MS + 9;
    assert_eq!(
        recorded(&mut local, &format!("XADD s MAXLEN ~ 1 {later}-* f v")),
        [
            format!("XADD s {later}-0 f v"),
            "XTRIM s MAXLEN = 1".to_owned()
        ]
    );
    assert_eq!(
        recorded(&mut local, "XGROUP CREATE s g 0 ENTRIESREAD 99"),
        ["XGROUP CREATE s g 0-0 ENTRIESREAD 3"]
    );
    assert_eq!(
        recorded(&mut local, "XREADGROUP GROUP g c STREAMS s >"),
        [
            "XGROUP CREATECONSUMER s g c".to_owned(),
            format!(
                "XCLAIM s g c 0 {later}-0 TIME {START_MS} RETRYCOUNT 1 FORCE JUSTID LASTID 0-0"
            ),
            format!("XGROUP SETID s g {later}-0 ENTRIESREAD 3"),
        ]
    );
    local.clock.advance_ms(5);
    assert_eq!(
        recorded(&mut local, "XAUTOCLAIM s g d 3 0"),
        [
            "XGROUP CREATECONSUMER s g d".to_owned(),
            format!(
                "XCLAIM s g d 0 {later}-0 TIME {} RETRYCOUNT 2 FORCE JUSTID LASTID 0-0",
                START_MS + 5
            ),
        ]
    );
    recorded(&mut local, &format!("XDEL s {later}-0"));
    assert_eq!(
        recorded(&mut local, &format!("XCLAIM s g d 0 {later}-0")),
        [format!("XACK s g {later}-0")]
    );
}

/// The ids in a reply, given its text in RESP2, which has no other lines like them.
fn ids(reply: &str) -> Vec<&str> {
    let lines = reply.split("\r\n");
    lines
        .filter(|line| line.starts_with("1-") || line.starts_with("2-"))
        .collect()
}

#[test]
fn large_parts_are_replied_whole_and_in_order() {
    let mut local = Local::new();
    let count = 5000;
    let name = |number: u32| format!("{}-{number}", 1 + number / 3000);
    for number in 1..=count {
        ask(
            &mut local,
            &format!("XADD s {} field {number}", name(number)),
        );
    }
    let forwards: Vec<String> = (1..=count).map(name).collect();
    let backwards: Vec<String> = (1..=count).rev().map(name).collect();
    assert_eq!(ids(&ask(&mut local, "XRANGE s - +")), forwards);
    assert_eq!(ids(&ask(&mut local, "XREVRANGE s + -")), backwards);
    assert_eq!(
        ids(&ask(&mut local, "XRANGE s (1-100 2-4000 COUNT 3000")),
        forwards[100..3100]
    );
    assert_eq!(
        ids(&ask(&mut local, "XREVRANGE s 2-4000 1-5 COUNT 1001")),
        backwards[1000..2001]
    );
    assert_eq!(
        ids(&ask(&mut local, "XREAD STREAMS s 1-10")),
        forwards[10..]
    );
    let both = ask(&mut local, "XREAD COUNT 300 STREAMS s nokey s 0 0 2-3500");
    let wanted: Vec<String> = [&forwards[..300], &forwards[3500..3800]].concat();
    assert_eq!(ids(&both), wanted);
    ask(&mut local, "XGROUP CREATE s g 0");
    let new = ask(&mut local, "XREADGROUP GROUP g c STREAMS s >");
    assert_eq!(ids(&new), forwards);
    let again = ask(&mut local, "XREADGROUP GROUP g c COUNT 4000 STREAMS s 1-7");
    assert_eq!(ids(&again), forwards[7..4007]);
    let full = ask(&mut local, "XINFO STREAM s FULL COUNT 0");
    // Every entry, pending in the group and with the consumer; the last id three times more, the first one once.
    assert_eq!(ids(&full).len(), 3 * count as usize + 3);
    let claimed = ask(&mut local, "XAUTOCLAIM s g d 0 0 COUNT 3000 JUSTID");
    assert_eq!(ids(&claimed)[1..], forwards[..3000]);
    assert_eq!(ids(&claimed)[0], forwards[3000]);
    let summary = ask(&mut local, "XPENDING s g");
    assert_eq!(
        summary,
        "*4\r\n:5000\r\n$3\r\n1-1\r\n$6\r\n2-5000\r\n*2\r\n*2\r\n$1\r\nc\r\n$4\r\n2000\r\n*2\r\n$1\r\nd\r\n$4\r\n3000\r\n"
    );
    // What is read does not change while it is written: the reply is as large as the stream was.
    let long = "x".repeat(100_000);
    ask(&mut local, &format!("XADD s 3-1 {long} {long}"));
    let last = ask(&mut local, "XREVRANGE s + - COUNT 1");
    assert_eq!(
        last.len(),
        "*1\r\n*2\r\n$3\r\n3-1\r\n*2\r\n".len() + 2 * (100_000 + 11)
    );
}

#[test]
fn a_stream_outlives_its_entries_and_other_types_do_not() {
    let mut local = Local::new();
    for command in ["XADD s 1-1 a 1", "XADD s 1-2 a 1", "XTRIM s MAXLEN 0"] {
        ask(&mut local, command);
    }
    ask(&mut local, "XGROUP CREATE g g $ MKSTREAM");
    for key in ["s", "g"] {
        assert_eq!(ask(&mut local, &format!("EXISTS {key}")), ":1\r\n");
        assert_eq!(ask(&mut local, &format!("TYPE {key}")), "+stream\r\n");
        assert_eq!(ask(&mut local, &format!("XLEN {key}")), ":0\r\n");
        assert_eq!(
            ask(&mut local, &format!("OBJECT ENCODING {key}")),
            "$6\r\nstream\r\n"
        );
        assert_eq!(ask(&mut local, &format!("COPY {key} {key}2")), ":1\r\n");
        assert_eq!(ask(&mut local, &format!("RENAME {key}2 {key}3")), "+OK\r\n");
        assert_eq!(ask(&mut local, &format!("MOVE {key}3 1")), ":1\r\n");
    }
    // A large one too.
    for number in 1..=300 {
        ask(&mut local, &format!("XADD l 1-{number} a 1"));
    }
    assert_eq!(ask(&mut local, "XTRIM l MINID 2"), ":300\r\n");
    assert_eq!(ask(&mut local, "XADD l 1-300 a 1").as_bytes()[0], b'-');
    assert_eq!(ask(&mut local, "EXISTS l"), ":1\r\n");
    ask(&mut local, "SELECT 1");
    assert_eq!(ask(&mut local, "XADD s3 1-2 a 1").as_bytes()[0], b'-');
    assert_eq!(
        ask(&mut local, "XINFO GROUPS g3").as_bytes()[..4],
        *b"*1\r\n"
    );
    ask(&mut local, "SELECT 0");
    ask(&mut local, "SADD set m");
    ask(&mut local, "SREM set m");
    assert_eq!(ask(&mut local, "EXISTS set"), ":0\r\n");
}

#[test]
fn the_clock_makes_ids_that_ascend() {
    let mut local = Local::new();
    assert_eq!(
        ask(&mut local, "XADD s * a 1"),
        format!("$15\r\n{START_MS}-0\r\n")
    );
    assert_eq!(
        ask(&mut local, "XADD s * a 1"),
        format!("$15\r\n{START_MS}-1\r\n")
    );
    let ahead = START_MS + 1000;
    ask(&mut local, &format!("XADD s {ahead}-7 a 1"));
    assert_eq!(
        ask(&mut local, "XADD s * a 1"),
        format!("$15\r\n{ahead}-8\r\n")
    );
    local.clock.advance_ms(2000);
    assert_eq!(
        ask(&mut local, "XADD s * a 1"),
        format!("$15\r\n{}-0\r\n", START_MS + 2000)
    );
}
