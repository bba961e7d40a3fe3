//! What bitmaps and HyperLogLogs record: effects that rebuild the data, changes that are told and counted.

mod in_process;

use in_process::Local;
use weft_engine::digest::digest;

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
const OPERATORS: [&str; 8] = ["AND", "OR", "XOR", "NOT", "DIFF", "DIFF1", "ANDOR", "ONE"];
const OVERFLOWS: [&str; 3] = ["WRAP", "SAT", "FAIL"];

fn random_command(random: &mut fastrand::Rng) -> Vec<String> {
    fn one_of(random: &mut fastrand::Rng, words: &[&str]) -> String {
        words[random.usize(..words.len())].to_owned()
    }
    let key = |random: &mut fastrand::Rng| one_of(random, &KEYS);
    let offset = |random: &mut fastrand::Rng| match random.u8(..8) {
        0 => random.u32(..2_000_000).to_string(),
        1..4 => random.u32(..30_000).to_string(),
        _ => random.u32(..100).to_string(),
    };
    let kind = |random: &mut fastrand::Rng| format!("i{}", random.u8(1..=64));
    let number = |random: &mut fastrand::Rng| random.i64(-200..200).to_string();
    match random.u8(..16) {
        0..3 => vec![
            "SETBIT".into(),
            key(random),
            offset(random),
            random.u8(..2).to_string(),
        ],
        3..5 => vec![
            "BITFIELD".into(),
            key(random),
            "OVERFLOW".into(),
            one_of(random, &OVERFLOWS),
            one_of(random, &["SET", "INCRBY"]),
            kind(random),
            offset(random),
            number(random),
            "GET".into(),
            "u8".into(),
            "0".into(),
        ],
        5..7 => {
            let mut words = vec!["BITOP".into(), one_of(random, &OPERATORS)];
            words.extend((0..random.usize(2..5)).map(|_| key(random)));
            words
        }
        7 => vec!["SET".into(), key(random), number(random)],
        8 => vec![
            "BITCOUNT".into(),
            key(random),
            number(random),
            number(random),
        ],
        9 => vec!["DEL".into(), key(random), key(random)],
        10..13 => {
            let mut words = vec!["PFADD".into(), key(random)];
            words.extend((0..random.usize(..400)).map(|_| random.u32(..).to_string()));
            words
        }
        13 => (0..random.usize(1..4)).fold(vec!["PFCOUNT".into()], |mut words, _| {
            words.push(key(random));
            words
        }),
        14 => vec!["PFMERGE".into(), key(random), key(random), key(random)],
        _ => vec![
            "PFDEBUG".into(),
            one_of(random, &["TODENSE", "GETREG", "ENCODING"]),
            key(random),
        ],
    }
}

fn run(local: &mut Local, words: &[Vec<u8>]) {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    local.command(&words);
}

#[test]
fn replayed_effects_rebuild_the_data_and_every_change_is_told() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut primary, mut copy) = (Local::new(), Local::new());
        let mut reader = primary.engine.listen_to_journal(0);
        let mut before = digest(&primary.engine, 0);
        for step in 0..400 {
            let command = random_command(&mut random);
            let words: Vec<Vec<u8>> = command.iter().map(|word| word.clone().into()).collect();
            run(&mut primary, &words);
            let mut recorded = false;
            for record in reader.read() {
                for effect in record.effects {
                    recorded = true;
                    run(&mut copy, &effect.to_plain());
                }
            }
            let after = digest(&primary.engine, 0);
            let command = command.join(" ");
            assert_eq!(after, digest(&copy.engine, 0), "{seed} {step}: {command}");
            let told = !primary.changes.take().is_empty();
            assert!(told || before == after, "{seed} {step}: {command}");
            assert_eq!(told, recorded, "{seed} {step}: {command}");
            before = after;
        }
    }
}

/// How much `rdb_changes_since_last_save` grows.
fn changes(local: &mut Local, words: &[&[u8]]) -> i64 {
    let before = local.engine.totals().changes;
    local.command(words);
    local.engine.totals().changes - before
}

#[test]
fn changes_are_counted_as_redis_counts_them() {
    let mut local = Local::new();
    for (line, expected) in [
        ("SETBIT k 5 1", 1),
        ("SETBIT k 5 1", 0),
        ("SETBIT k 20 0", 1),
        ("BITFIELD f SET u8 0 1 GET u8 0 SET u8 0 2", 2),
        ("BITFIELD f SET u8 0 2", 0),
        ("BITFIELD f SET u8 16 0 SET u8 0 2", 2),
        ("BITFIELD f INCRBY u8 0 0", 0),
        ("BITFIELD f OVERFLOW FAIL INCRBY u8 0 255", 0),
        ("BITFIELD g OVERFLOW FAIL SET u8 40 300", 0),
        ("BITOP AND d k f", 1),
        ("BITOP AND d nokey", 1),
        ("BITOP AND d nokey", 0),
        ("PFADD h", 1),
        ("PFADD h", 0),
        ("PFADD h a", 1),
        ("PFADD h b c", 2),
        ("PFCOUNT h", 1),
        ("PFCOUNT h", 0),
        ("PFCOUNT h h", 0),
        ("PFMERGE m h", 1),
        ("PFMERGE m h", 1),
        ("PFDEBUG TODENSE m", 1),
        ("PFDEBUG TODENSE m", 0),
    ] {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        assert_eq!(changes(&mut local, &words), expected, "{line}");
    }
}

#[test]
fn a_large_combination_is_recorded_as_its_result() {
    let mut local = Local::new();
    local.command(&[b"SETBIT", b"a", b"1000000", b"1"]);
    let mut reader = local.engine.listen_to_journal(0);
    local.command(&[b"BITOP", b"NOT", b"b", b"a"]);
    let effect = &reader.read()[0].effects[0];
    let plain = effect.to_plain();
    assert_eq!(plain[..2], [b"SET".to_vec(), b"b".to_vec()]);
    let mut expected = vec![0xff; 125_001];
    expected[125_000] = 0x7f;
    assert_eq!(plain[2], expected);
    assert_eq!(local.command(&[b"BITCOUNT", b"b"]), b":1000007\r\n");
}

#[test]
fn half_a_gigabyte_is_a_moment() {
    let mut local = Local::new();
    assert_eq!(
        local.command(&[b"SETBIT", b"k", b"4294967295", b"1"]),
        b":0\r\n"
    );
    assert_eq!(local.command(&[b"COPY", b"k", b"snapshot"]), b":1\r\n");
    assert_eq!(
        local.command(&[b"SETBIT", b"k", b"2147483648", b"1"]),
        b":0\r\n"
    );
    assert_eq!(local.command(&[b"BITCOUNT", b"k"]), b":2\r\n");
    assert_eq!(local.command(&[b"BITPOS", b"k", b"1"]), b":2147483648\r\n");
    assert_eq!(
        local.command(&[b"BITPOS", b"snapshot", b"1"]),
        b":4294967295\r\n"
    );
    assert_eq!(
        local.command(&[b"BITFIELD", b"k", b"GET", b"u8", b"#536870911"]),
        b"*1\r\n:1\r\n"
    );
}
