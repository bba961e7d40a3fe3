//! Fields that expire: what is recorded and told when writes come upon them, and that effects rebuild hashes.

mod in_process;

use in_process::{Local, START_MS};
use weft_engine::digest::digest;

const KEYS: [&str; 3] = ["h", "i", "j"];
const BIG: [&str; 2] = ["hash-max-listpack-entries", "hash-max-listpack-value"];

fn fields(random: &mut fastrand::Rng, with_values: bool) -> Vec<String> {
    let count = match random.u8(..12) {
        0 => 60,
        1 => 20,
        _ => random.usize(1..4),
    };
    let mut words = Vec::new();
    for _ in 0..count {
        words.push(format!("f{}", random.u8(..90)));
        if with_values {
            words.push(match random.u8(..40) {
                0 => "x".repeat(random.usize(..70_000)),
                1..4 => "y".repeat(random.usize(..90)),
                _ => random.i64(-50..50).to_string(),
            });
        }
    }
    words
}

/// A random command about hashes, with times that sometimes lie in the past and soon come.
fn random_command(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let key = KEYS[random.usize(..KEYS.len())].to_owned();
    let field = format!("f{}", random.u8(..90));
    let milliseconds = random.u32(0..40).to_string();
    let at = (START_MS + random.u64(..1000)).to_string();
    let word = |word: &str| word.to_owned();
    let listed = |mut words: Vec<String>, names: Vec<String>, per_field: usize| {
        words.extend([word("FIELDS"), (names.len() / per_field).to_string()]);
        words.extend(names);
        words
    };
    let words: Vec<String> = match random.u8(..28) {
        0..6 => [vec![word("HSET"), key], fields(random, true)].concat(),
        6 => [vec![word("HMSET"), key], fields(random, true)].concat(),
        7 => vec![word("HSETNX"), key, field, milliseconds],
        8 => [vec![word("HDEL"), key], fields(random, false)].concat(),
        9 => vec![word("HINCRBY"), key, field, milliseconds],
        10 => vec![word("HINCRBYFLOAT"), key, field, word("0.5")],
        11..14 => {
            let condition = ["NX", "XX", "GT", "LT"].get(random.usize(..8));
            let mut words = vec![word("HPEXPIRE"), key, milliseconds];
            words.extend(condition.map(|condition| word(condition)));
            listed(words, fields(random, false), 1)
        }
        14 => listed(vec![word("HPEXPIREAT"), key, at], fields(random, false), 1),
        15 => listed(
            vec![word("HEXPIRE"), key, word("1")],
            fields(random, false),
            1,
        ),
        16 => listed(vec![word("HPERSIST"), key], fields(random, false), 1),
        17 => listed(vec![word("HGETDEL"), key], fields(random, false), 1),
        18 => listed(
            vec![word("HGETEX"), key, word("PX"), milliseconds],
            fields(random, false),
            1,
        ),
        19 => listed(
            vec![word("HGETEX"), key, word("PERSIST")],
            fields(random, false),
            1,
        ),
        20 => listed(
            vec![word("HSETEX"), key, word("PX"), milliseconds],
            fields(random, true),
            2,
        ),
        21 => listed(
            vec![word("HSETEX"), key, word("KEEPTTL")],
            fields(random, true),
            2,
        ),
        22 => listed(
            vec![word("HSETEX"), key, word("FXX"), word("PXAT"), at],
            fields(random, true),
            2,
        ),
        23 => vec![word("HGETALL"), key],
        24 => vec![word("DEL"), key],
        25 => vec![
            word("COPY"),
            key,
            word(KEYS[random.usize(..3)]),
            word("REPLACE"),
        ],
        26 => vec![word("RENAME"), key, word(KEYS[random.usize(..3)])],
        _ => vec![word("PEXPIRE"), key, word("200"), word("NX")],
    };
    words.into_iter().map(String::into_bytes).collect()
}

fn run(local: &mut Local, command: &[Vec<u8>]) {
    let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
    local.command(&arguments);
}

fn shown(command: &[Vec<u8>]) -> String {
    let words = command
        .iter()
        .map(|word| String::from_utf8_lossy(&word[..word.len().min(20)]));
    words.collect::<Vec<_>>().join(" ")
}

/// Each kind of hash: the thresholds decide how soon they become hashtables.
fn local(seed: u64) -> Local {
    let mut local = Local::new();
    let (entries, value) = [("512", "64"), ("30", "64"), ("5", "10")][seed as usize % 3];
    local.command(&[
        b"CONFIG",
        b"SET",
        BIG[0].as_bytes(),
        entries.as_bytes(),
        BIG[1].as_bytes(),
        value.as_bytes(),
    ]);
    local
}

#[test]
fn replayed_effects_rebuild_hashes_with_the_times_of_their_fields() {
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut primary, mut copy) = (local(seed), local(seed + 1));
        let mut reader = primary.engine.listen_to_journal(0);
        for step in 0..500 {
            let command = random_command(&mut random);
            run(&mut primary, &command);
            for record in reader.read() {
                for effect in record.effects {
                    run(&mut copy, &effect.to_plain());
                }
            }
            let (one, other) = (digest(&primary.engine, 0), digest(&copy.engine, 0));
            assert_eq!(one, other, "seed {seed}, step {step}: {}", shown(&command));
            // The copy's clock stands still: it removes nothing by itself.
            primary.clock.advance_ms(random.u64(..6));
        }
    }
}

#[test]
fn every_change_of_a_hash_is_told() {
    let mut random = fastrand::Rng::with_seed(77);
    let mut local = local(1);
    for _ in 0..3000 {
        let before = digest(&local.engine, 0);
        let command = random_command(&mut random);
        run(&mut local, &command);
        let changed = digest(&local.engine, 0) != before;
        let told = !local.changes.take().is_empty();
        assert!(
            told || !changed,
            "{} changed the data and told nobody",
            shown(&command)
        );
        local.clock.advance_ms(random.u64(..6));
    }
}

/// Sends a line's words, and returns the events, the effects and the reply.
struct Asked {
    events: Vec<&'static str>,
    effects: Vec<String>,
    reply: String,
}

fn ask(local: &mut Local, reader: &mut weft_engine::journal::JournalReader, line: &str) -> Asked {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let reply = String::from_utf8_lossy(&local.command(&words)).replace("\r\n", " ");
    let events = local
        .changes
        .take()
        .iter()
        .map(|change| change.event)
        .collect();
    let records = reader.read().into_iter().flat_map(|record| record.effects);
    let effects = records.map(|effect| shown(&effect.to_plain())).collect();
    Asked {
        events,
        effects,
        reply,
    }
}

#[test]
fn writes_remove_fields_whose_time_has_come_and_record_it() {
    let setup = "HSETEX h PX 10 FIELDS 2 a 1 b 2";
    for (line, events, effects, reply) in [
        ("HDEL h a", vec!["hexpired"], vec!["HDEL h a"], ":0 "),
        (
            "HGETDEL h FIELDS 1 a",
            vec!["hexpired"],
            vec!["HDEL h a"],
            "*1 $-1 ",
        ),
        (
            "HPERSIST h FIELDS 1 a",
            vec!["hexpired"],
            vec!["HDEL h a"],
            "*1 :-2 ",
        ),
        (
            "HEXPIRE h 5 FIELDS 1 a",
            vec!["hexpired"],
            vec!["HDEL h a"],
            "*1 :-2 ",
        ),
        (
            "HGETEX h PERSIST FIELDS 1 a",
            vec!["hexpired"],
            vec!["HDEL h a"],
            "*1 $-1 ",
        ),
        (
            "HSET h a 5",
            vec!["hexpired", "hset"],
            vec!["HDEL h a", "HSET h a 5"],
            ":1 ",
        ),
        (
            "HSETNX h a 5",
            vec!["hexpired", "hset"],
            vec!["HDEL h a", "HSET h a 5"],
            ":1 ",
        ),
        (
            "HINCRBY h a 5",
            vec!["hexpired", "hincrby"],
            vec!["HDEL h a", "HINCRBY h a 5"],
            ":5 ",
        ),
        (
            "HINCRBYFLOAT h a 5.5",
            vec!["hexpired", "hincrbyfloat"],
            vec!["HDEL h a", "HSET h a 5.5"],
            "$3 5.5 ",
        ),
        (
            "HSETEX h KEEPTTL FIELDS 1 a 5",
            vec!["hexpired", "hset"],
            vec!["HDEL h a", "HSETEX h KEEPTTL FIELDS 1 a 5"],
            ":1 ",
        ),
        ("HSETEX h FXX FIELDS 1 a 5", vec![], vec![], ":0 "),
        (
            "HSETEX h FNX PX 7 FIELDS 1 a 5",
            vec!["hexpired", "hset", "hexpire"],
            vec!["HDEL h a", "HSETEX h PXAT 1700000000017 FIELDS 1 a 5"],
            ":1 ",
        ),
        (
            "HDEL h a b",
            vec!["hexpired", "del"],
            vec!["HDEL h a b"],
            ":0 ",
        ),
        ("HGET h a", vec![], vec![], "$-1 "),
        ("HLEN h", vec![], vec![], ":0 "),
        ("HGETALL h", vec![], vec![], "*0 "),
        ("HSCAN h 0", vec![], vec![], "*2 $1 0 *0 "),
        ("HRANDFIELD h 5", vec![], vec![], "*0 "),
    ] {
        for seed in [0, 2] {
            let mut local = local(seed);
            if seed == 2 {
                // A hashtable with more fields.
                let mut words: Vec<String> = ["HSET", "h"].map(str::to_owned).to_vec();
                words.extend((0..200).flat_map(|number| [format!("n{number}"), "1".to_owned()]));
                run(
                    &mut local,
                    &words
                        .into_iter()
                        .map(String::into_bytes)
                        .collect::<Vec<_>>(),
                );
            }
            let mut reader = local.engine.listen_to_journal(0);
            ask(&mut local, &mut reader, setup);
            local.clock.advance_ms(10);
            let asked = ask(&mut local, &mut reader, line);
            if seed == 0 {
                assert_eq!(asked.events, events, "{line}");
                assert_eq!(asked.effects, effects, "{line}");
                assert_eq!(asked.reply, reply, "{line}");
            } else if events.first() == Some(&"hexpired") {
                assert_eq!(asked.events.first(), events.first(), "{line}");
                assert!(!asked.events.contains(&"del"), "{line}");
            }
        }
    }
}

#[test]
fn effects_are_results_in_absolute_times() {
    let mut local = local(0);
    let mut reader = local.engine.listen_to_journal(0);
    for (line, events, effects) in [
        (
            "HMSET h a 1 b 2",
            vec!["new", "hset"],
            vec!["HMSET h a 1 b 2"],
        ),
        (
            "HEXPIRE h 10 FIELDS 3 a b c",
            vec!["hexpire"],
            vec!["HPEXPIREAT h 1700000010000 FIELDS 2 a b"],
        ),
        ("HEXPIRE h 10 NX FIELDS 1 a", vec![], vec![]),
        ("HINCRBY h a 1", vec!["hincrby"], vec!["HINCRBY h a 1"]),
        (
            "HINCRBYFLOAT h a 0.5",
            vec!["hincrbyfloat"],
            vec!["HSETEX h KEEPTTL FIELDS 1 a 2.5"],
        ),
        (
            "HPERSIST h FIELDS 2 a c",
            vec!["hpersist"],
            vec!["HPERSIST h FIELDS 1 a"],
        ),
        (
            "HINCRBYFLOAT h a 0.5",
            vec!["hincrbyfloat"],
            vec!["HSET h a 3"],
        ),
        (
            "HGETEX h EX 1 FIELDS 2 a c",
            vec!["hexpire"],
            vec!["HPEXPIREAT h 1700000001000 FIELDS 1 a"],
        ),
        ("HGETEX h FIELDS 1 a", vec![], vec![]),
        (
            "HGETEX h PERSIST FIELDS 2 a b",
            vec!["hpersist"],
            vec!["HPERSIST h FIELDS 2 a b"],
        ),
        ("HGETDEL h FIELDS 2 a c", vec!["hdel"], vec!["HDEL h a"]),
        (
            "HSETEX h EX 1 FIELDS 1 a 1",
            vec!["hset", "hexpire"],
            vec!["HSETEX h PXAT 1700000001000 FIELDS 1 a 1"],
        ),
        (
            "HSETEX h PXAT 1 FIELDS 2 a 1 c 2",
            vec!["hset", "hdel"],
            vec!["HDEL h a"],
        ),
        (
            "HPEXPIREAT h 1 FIELDS 1 b",
            vec!["hdel", "del"],
            vec!["HDEL h b"],
        ),
        (
            "HSETEX h PXAT 1 FIELDS 1 a 1",
            vec!["hset", "hdel", "del"],
            vec![],
        ),
        ("HSETNX h a 1", vec!["new", "hset"], vec!["HSET h a 1"]),
        ("HDEL h a x", vec!["hdel", "del"], vec!["HDEL h a"]),
    ] {
        let asked = ask(&mut local, &mut reader, line);
        assert_eq!(asked.events, events, "{line}");
        assert_eq!(asked.effects, effects, "{line}");
    }
}

/// A time of one second lasts one second, whatever part of one it begins at.
#[test]
fn times_of_fields_are_not_rounded() {
    let mut local = local(0);
    local.clock.advance_ms(850);
    local.command(&[b"HSET", b"h", b"f", b"1"]);
    local.command(&[b"HEXPIRE", b"h", b"1", b"FIELDS", b"1", b"f"]);
    local.clock.advance_ms(999);
    assert_eq!(
        local.command(&[b"HPTTL", b"h", b"FIELDS", b"1", b"f"]),
        b"*1\r\n:1\r\n"
    );
    assert_eq!(
        local.command(&[b"HTTL", b"h", b"FIELDS", b"1", b"f"]),
        b"*1\r\n:1\r\n"
    );
    assert_eq!(local.command(&[b"HGET", b"h", b"f"]), b"$1\r\n1\r\n");
    local.clock.advance_ms(1);
    assert_eq!(local.command(&[b"HGET", b"h", b"f"]), b"$-1\r\n");
}

/// Growing past the thresholds loses no field and no time.
#[test]
fn fields_keep_their_times_when_a_hash_becomes_a_hashtable() {
    let mut local = local(0);
    for number in 0..600 {
        let (name, at) = (format!("f{number}"), (START_MS + 1000 + number).to_string());
        let words = ["HSETEX", "h", "PXAT", &at, "FIELDS", "1", &name, "v"].map(str::as_bytes);
        local.command(&words);
    }
    assert_eq!(
        local.command(&[b"OBJECT", b"ENCODING", b"h"]),
        b"$9\r\nhashtable\r\n"
    );
    for number in 0..600 {
        let name = format!("f{number}");
        let reply = local.command(&[b"HPEXPIRETIME", b"h", b"FIELDS", b"1", name.as_bytes()]);
        assert_eq!(
            reply,
            format!("*1\r\n:{}\r\n", START_MS + 1000 + number).into_bytes()
        );
    }
    local.clock.advance_ms(1299);
    assert_eq!(local.command(&[b"HLEN", b"h"]), b":300\r\n");
}

/// A long value goes in and out as it is.
#[test]
fn long_values_are_values() {
    let mut local = local(0);
    let long = vec![b'l'; 300_000];
    assert_eq!(
        local.command(&[b"HSET", b"h", b"f", &long, b"g", b"1"]),
        b":2\r\n"
    );
    assert_eq!(local.command(&[b"HSTRLEN", b"h", b"f"]), b":300000\r\n");
    let mut bulk = b"$300000\r\n".to_vec();
    bulk.extend_from_slice(&long);
    bulk.extend_from_slice(b"\r\n");
    assert_eq!(local.command(&[b"HGET", b"h", b"f"]), bulk);
    assert_eq!(
        local.command(&[b"HINCRBY", b"h", b"f", b"1"]),
        b"-ERR hash value is not an integer\r\n"
    );
    assert_eq!(
        local.command(&[b"HINCRBYFLOAT", b"h", b"f", b"1"]),
        b"-ERR hash value is not a float\r\n"
    );
    assert_eq!(
        local.command(&[b"HGETDEL", b"h", b"FIELDS", b"1", b"f"]),
        [&b"*1\r\n"[..], &bulk].concat()
    );
    assert_eq!(
        local.command(&[b"HGETALL", b"h"]),
        b"*2\r\n$1\r\ng\r\n$1\r\n1\r\n"
    );
}

/// A scan gives the same fields however many it is to look at.
#[test]
fn long_scans_find_what_short_ones_find() {
    let mut local = local(2);
    for number in 0..3000 {
        let (name, value) = (format!("f{number}"), format!("{number}"));
        local.command(&[b"HSET", b"h", name.as_bytes(), value.as_bytes()]);
    }
    local.command(&[b"HPEXPIRE", b"h", b"5", b"FIELDS", b"2", b"f17", b"f18"]);
    local.clock.advance_ms(5);
    let mut walked = Vec::new();
    for count in ["10", "256", "257", "1000", "100000"] {
        for tail in [&["MATCH", "f1*"][..], &["MATCH", "f1*", "NOVALUES"]] {
            let mut fields = std::collections::BTreeMap::new();
            let mut cursor = "0".to_owned();
            let mut calls = 0;
            loop {
                let mut words = vec!["HSCAN", "h", &cursor, "COUNT", count];
                words.extend(tail);
                let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
                let reply = String::from_utf8(local.command(&words)).expect("it is text");
                let lines: Vec<&str> = reply.split("\r\n").collect();
                let given: usize = lines[3][1..].parse().expect("a number");
                assert_eq!(lines.len(), 4 + 2 * given + 1);
                let texts: Vec<&str> = lines[4..].iter().copied().skip(1).step_by(2).collect();
                let width = if tail.len() == 2 { 2 } else { 1 };
                for field in texts.chunks(width) {
                    let before = fields.insert(field[0].to_owned(), field[width - 1].to_owned());
                    assert_eq!(before, None);
                }
                calls += 1;
                cursor = lines[2].to_owned();
                if cursor == "0" {
                    break;
                }
            }
            let least: usize = count.parse().expect("a number");
            assert!(calls <= 3000 / least + 1, "{calls} calls of {count}");
            walked.push(fields.into_keys().collect::<Vec<_>>());
        }
    }
    // f1, ten times f1x, a hundred times f1xx, a thousand times f1xxx; but two are gone.
    assert_eq!(walked[0].len(), 1109);
    assert!(walked.iter().all(|fields| *fields == walked[0]));
}

/// Fields whose time has come go although nobody asks, and the key with the last one.
#[test]
fn expired_fields_go_by_themselves() {
    let mut local = local(2);
    let mut reader = local.engine.listen_to_journal(0);
    ask(&mut local, &mut reader, "HSETEX h PX 10 FIELDS 2 a 1 b 2");
    ask(&mut local, &mut reader, "HSET h c 3");
    ask(&mut local, &mut reader, "HSETEX k PX 10 FIELDS 1 a 1");
    for number in 0..100 {
        let line = format!("HSETEX many PX 10 FIELDS 1 f{number} 1");
        ask(&mut local, &mut reader, &line);
    }
    local.clock.advance_ms(9);
    local.worker.expire(&local.engine, &local.clock, 1000);
    assert_eq!(local.changes.take(), []);
    local.clock.advance_ms(1);
    let mut rounds = 0;
    while local.worker.expire(&local.engine, &local.clock, 50) {
        rounds += 1;
        assert!(rounds < 100);
    }
    local.worker.expire(&local.engine, &local.clock, 1000);
    let mut told: Vec<(String, &str)> = local
        .changes
        .take()
        .into_iter()
        .map(|change| {
            (
                String::from_utf8_lossy(&change.key).into_owned(),
                change.event,
            )
        })
        .collect();
    told.sort();
    told.dedup();
    let told: Vec<(&str, &str)> = told
        .iter()
        .map(|(key, event)| (key.as_str(), *event))
        .collect();
    let gone = [
        ("h", "hexpired"),
        ("k", "del"),
        ("k", "hexpired"),
        ("many", "del"),
        ("many", "hexpired"),
    ];
    assert_eq!(told, gone);
    let records = reader.read().into_iter().flat_map(|record| record.effects);
    let mut removed: Vec<Vec<u8>> = Vec::new();
    for effect in records.map(|effect| effect.to_plain()) {
        assert_eq!(effect[0], b"HDEL");
        removed.extend(effect[2..].iter().cloned());
    }
    assert_eq!(removed.len(), 103);
    assert_eq!(local.command(&[b"EXISTS", b"k", b"many", b"h"]), b":1\r\n");
    assert_eq!(
        local.command(&[b"HGETALL", b"h"]),
        b"*2\r\n$1\r\nc\r\n$1\r\n3\r\n"
    );
}
