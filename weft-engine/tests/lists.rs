//! Lists through the engine: what is recorded and told of each change, and long lists that are read or cut in steps.

mod in_process;

use in_process::Local;
use weft_engine::digest::digest;

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

fn run(local: &mut Local, command: &[Vec<u8>]) -> Vec<u8> {
    let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
    local.command(&arguments)
}

fn say(local: &mut Local, line: &str) -> String {
    String::from_utf8_lossy(&run(local, &words(line))).into_owned()
}

/// A random command on one of a few lists, which grow long and are cut down again.
fn random_command(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let key = |random: &mut fastrand::Rng| ["a", "b", "c"][random.usize(..3)];
    let end = |random: &mut fastrand::Rng| ["LEFT", "RIGHT"][random.usize(..2)];
    let element = |random: &mut fastrand::Rng| match random.u8(..200) {
        0 => "x".repeat(random.usize(..90_000)),
        1..30 => "y".repeat(random.usize(..1_500)),
        _ => random.u8(..10).to_string(),
    };
    let (one, other) = (key(random), key(random));
    let line = match random.u8(..15) {
        0..4 => {
            let most = if random.u8(..6) == 0 { 300 } else { 3 };
            let elements: Vec<String> = (0..random.usize(1..most))
                .map(|_| element(random))
                .collect();
            let command = ["LPUSH", "RPUSH", "LPUSHX", "RPUSHX"][random.usize(..4)];
            format!("{command} {one} {}", elements.join(" "))
        }
        4 => format!("LPOP {one}"),
        5 => format!("RPOP {one} {}", random.usize(..200)),
        6 => format!("LMOVE {one} {other} {} {}", end(random), end(random)),
        7 => format!("RPOPLPUSH {one} {other}"),
        8 => format!(
            "LMPOP 2 {one} {other} {} COUNT {}",
            end(random),
            random.usize(1..9)
        ),
        9 => format!("LSET {one} {} {}", random.i64(-50..50), element(random)),
        10 => format!(
            "LINSERT {one} BEFORE {} {}",
            random.u8(..10),
            element(random)
        ),
        11 => format!("LREM {one} {} {}", random.i64(-3..4), random.u8(..10)),
        12 => format!("LTRIM {one} {} {}", random.usize(..200), -random.i64(1..50)),
        13 => format!("COPY {one} {other} REPLACE"),
        _ => format!("RENAME {one} {other}"),
    };
    words(&line)
}

#[test]
fn replayed_effects_rebuild_the_lists() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut primary, mut copy) = (Local::new(), Local::new());
        let mut reader = primary.engine.listen_to_journal(0);
        for step in 0..200 {
            let before = digest(&primary.engine, 0);
            let command = random_command(&mut random);
            run(&mut primary, &command);
            let mut recorded = false;
            for effect in reader.read().into_iter().flat_map(|record| record.effects) {
                run(&mut copy, &effect.to_plain());
                recorded = true;
            }
            let after = digest(&primary.engine, 0);
            let name = String::from_utf8_lossy(&command[0]).into_owned();
            assert_eq!(
                after,
                digest(&copy.engine, 0),
                "seed {seed}, step {step}: {name}"
            );
            assert!(
                recorded || after == before,
                "seed {seed}, step {step}: {name}"
            );
        }
    }
}

/// Asked of Redis 8.2.3: events by key, and by how much `rdb_changes_since_last_save` grows.
#[test]
fn changes_are_told_and_counted() {
    let mut local = Local::new();
    let _reader = local.engine.listen_to_journal(0);
    for (line, counted, events) in [
        ("RPUSH a 1 2 3 4 5 6", 6, "a:new a:rpush"),
        ("LPUSHX a 0 0", 2, "a:lpush"),
        ("LPUSHX no 0", 0, ""),
        ("LTRIM a 0 -1", 0, "a:ltrim"),
        ("LTRIM a 1 -2", 2, "a:ltrim"),
        ("LREM a 0 3", 1, "a:lrem"),
        ("LREM a 0 99", 0, ""),
        ("LSET a 0 q", 1, "a:lset"),
        ("LSET a 0 q", 1, "a:lset"),
        ("LINSERT a before q w", 1, "a:linsert"),
        ("LINSERT a before zz w", 0, ""),
        ("LMOVE a b LEFT RIGHT", 1, "b:new b:rpush a:lpop"),
        ("LMOVE a a LEFT RIGHT", 1, "a:rpush a:lpop"),
        ("RPOPLPUSH a a", 1, "a:lpush a:rpop"),
        ("RPOPLPUSH b b", 1, "b:lpush b:rpop"),
        ("RPOPLPUSH b a", 1, "a:lpush b:rpop b:del"),
        ("LPOP a 0", 0, ""),
        ("LPOP a 2", 2, "a:lpop"),
        ("LMPOP 2 no a RIGHT COUNT 2", 2, "a:rpop"),
        ("LRANGE a 0 -1", 0, ""),
        ("LPOP a", 1, "a:lpop"),
        ("RPOP a 100", 1, "a:rpop a:del"),
        ("LPOP a", 0, ""),
        ("RPUSH a 1 1 1", 3, "a:new a:rpush"),
        ("LREM a 0 1", 3, "a:lrem a:del"),
        ("RPUSH a 1 1 1", 3, "a:new a:rpush"),
        ("LTRIM a 5 1", 3, "a:ltrim a:del"),
        ("LMPOP 1 a LEFT", 0, ""),
        ("RPUSH a 1", 1, "a:new a:rpush"),
        ("LMPOP 1 a LEFT COUNT 3", 1, "a:lpop a:del"),
    ] {
        let before = local.engine.totals().changes;
        run(&mut local, &words(line));
        assert_eq!(local.engine.totals().changes - before, counted, "{line}");
        let told: Vec<String> = local
            .changes
            .take()
            .into_iter()
            .map(|change| format!("{}:{}", String::from_utf8_lossy(&change.key), change.event))
            .collect();
        assert_eq!(told.join(" "), events, "{line}");
    }
}

#[test]
fn popping_several_keys_is_recorded_as_popping_one() {
    let mut local = Local::new();
    let mut reader = local.engine.listen_to_journal(0);
    run(&mut local, &words("RPUSH b 1 2 3"));
    reader.read();
    run(&mut local, &words("LMPOP 2 a b RIGHT COUNT 10"));
    let effects = reader.read().pop().expect("a record").effects;
    let plain: Vec<_> = effects.iter().map(|effect| effect.to_plain()).collect();
    assert_eq!(plain, [words("RPOP b 3")]);
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn array(texts: impl Iterator<Item = String> + Clone) -> String {
    let head = format!("*{}\r\n", texts.clone().count());
    texts.fold(head, |reply, text| reply + &bulk(&text))
}

#[test]
fn a_long_list_is_read_and_cut_like_a_short_one() {
    const LEN: usize = 20_000;
    let mut local = Local::new();
    let text = |number: usize| format!("element:{number}");
    for first in (0..LEN).step_by(500) {
        let elements: Vec<String> = (first..first + 500).map(text).collect();
        let reply = say(&mut local, &format!("RPUSH l {}", elements.join(" ")));
        assert_eq!(reply, format!(":{}\r\n", first + 500));
    }
    assert_eq!(say(&mut local, "OBJECT ENCODING l"), bulk("quicklist"));
    assert_eq!(say(&mut local, "LRANGE l 0 -1"), array((0..LEN).map(text)));
    assert_eq!(
        say(&mut local, "LRANGE l 7000 9999"),
        array((7000..10_000).map(text))
    );
    assert_eq!(say(&mut local, "LINDEX l 12345"), bulk(&text(12_345)));
    assert_eq!(say(&mut local, "LINDEX l -1"), bulk(&text(LEN - 1)));
    assert_eq!(say(&mut local, "LPOS l element:15000"), ":15000\r\n");
    assert_eq!(
        say(&mut local, "LPOS l element:15000 RANK -1 MAXLEN 4999"),
        "$-1\r\n"
    );
    assert_eq!(
        say(&mut local, "LPOS l element:15000 RANK -1 MAXLEN 5000"),
        ":15000\r\n"
    );
    assert_eq!(say(&mut local, "LPOS l element:3 COUNT 0"), "*1\r\n:3\r\n");
    assert_eq!(say(&mut local, "LPOS l none COUNT 0"), "*0\r\n");
    assert_eq!(say(&mut local, "LPOP l 1000"), array((0..1000).map(text)));
    assert_eq!(
        say(&mut local, "RPOP l 1000"),
        array((LEN - 1000..LEN).rev().map(text))
    );
    assert_eq!(say(&mut local, "LLEN l"), format!(":{}\r\n", LEN - 2000));
    assert_eq!(say(&mut local, "LTRIM l 5000 5199"), "+OK\r\n");
    assert_eq!(
        say(&mut local, "LRANGE l 0 -1"),
        array((6000..6200).map(text))
    );
    assert_eq!(say(&mut local, "LPOP l 500"), array((6000..6200).map(text)));
    assert_eq!(say(&mut local, "EXISTS l"), ":0\r\n");
}

#[test]
fn elements_of_any_length_come_back_whole() {
    let mut local = Local::new();
    let lengths = [
        0, 1, 127, 128, 1020, 1021, 1024, 1025, 4096, 65_536, 65_537, 200_000,
    ];
    let long = |len: usize| "z".repeat(len);
    for len in lengths {
        run(
            &mut local,
            &[b"RPUSH".to_vec(), b"l".to_vec(), long(len).into_bytes()],
        );
    }
    assert_eq!(
        say(&mut local, "LRANGE l 0 -1"),
        array(lengths.into_iter().map(long))
    );
    for (index, len) in lengths.into_iter().enumerate() {
        let command = [b"LPOS".to_vec(), b"l".to_vec(), long(len).into_bytes()];
        let found = String::from_utf8_lossy(&run(&mut local, &command)).into_owned();
        assert_eq!(found, format!(":{index}\r\n"));
    }
    for len in lengths {
        assert_eq!(say(&mut local, "LMOVE l l LEFT RIGHT"), bulk(&long(len)));
    }
    for len in lengths.into_iter().rev() {
        assert_eq!(say(&mut local, "RPOPLPUSH l m"), bulk(&long(len)));
    }
    assert_eq!(
        say(&mut local, "LRANGE m 0 -1"),
        array(lengths.into_iter().map(long))
    );
    assert_eq!(say(&mut local, "EXISTS l"), ":0\r\n");
}
