//! What handlers record: effects that rebuild the data, and a change for every key that changed.

mod in_process;

use in_process::Local;
use weft_engine::digest::digest;

const KEYS: [&str; 6] = ["a", "b", "c", "n", "f", ""];

/// A random write or read over a few keys, with times that sometimes lie in the past.
fn random_command(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let key = |random: &mut fastrand::Rng| KEYS[random.usize(..KEYS.len())].to_owned();
    let number = |random: &mut fastrand::Rng| random.i64(-20..20).to_string();
    let long = |random: &mut fastrand::Rng| "x".repeat(random.usize(..90_000));
    let member = |random: &mut fastrand::Rng| match random.u8(..4) {
        0 => random.i64(-9..9).to_string(),
        1 => "m".repeat(random.usize(..90)),
        _ => format!("m{}", random.u8(..200)),
    };
    let words: Vec<String> = match random.u8(..48) {
        0 => vec!["SET".into(), key(random), number(random)],
        1 => vec!["SET".into(), key(random), long(random)],
        2 => vec![
            "SET".into(),
            key(random),
            "v".into(),
            "PX".into(),
            random.u32(1..50).to_string(),
        ],
        3 => vec![
            "SET".into(),
            key(random),
            "v".into(),
            "NX".into(),
            "GET".into(),
        ],
        4 => vec!["SET".into(), key(random), "w".into(), "KEEPTTL".into()],
        5 => vec!["SETNX".into(), key(random), "1".into()],
        6 => vec![
            "SETEX".into(),
            key(random),
            random.u32(1..3).to_string(),
            "s".into(),
        ],
        7 => vec!["GETSET".into(), key(random), number(random)],
        8 => vec!["GETDEL".into(), key(random)],
        9 => vec![
            "GETEX".into(),
            key(random),
            "PX".into(),
            random.u32(1..50).to_string(),
        ],
        10 => vec!["GETEX".into(), key(random), "PERSIST".into()],
        11 => vec!["GETEX".into(), key(random), "PXAT".into(), "1".into()],
        12 => vec![
            "MSET".into(),
            key(random),
            number(random),
            key(random),
            "m".into(),
        ],
        13 => vec![
            "MSETNX".into(),
            key(random),
            number(random),
            key(random),
            "m".into(),
        ],
        14 => vec!["INCR".into(), key(random)],
        15 => vec!["DECRBY".into(), key(random), number(random)],
        16 => vec!["INCRBYFLOAT".into(), key(random), "0.1".into()],
        17 => vec!["APPEND".into(), key(random), number(random)],
        18 => vec!["APPEND".into(), key(random), long(random)],
        19 => vec![
            "SETRANGE".into(),
            key(random),
            random.u32(..5000).to_string(),
            "part".into(),
        ],
        20 => vec!["DEL".into(), key(random), key(random)],
        21 => vec!["UNLINK".into(), key(random)],
        22 => vec![
            "PEXPIRE".into(),
            key(random),
            random.i64(-5..50).to_string(),
            "NX".into(),
        ],
        23 => vec!["EXPIRE".into(), key(random), number(random)],
        24 => vec!["PERSIST".into(), key(random)],
        25 => vec!["GET".into(), key(random)],
        26 => vec!["MGET".into(), key(random), key(random), key(random)],
        27 => vec!["SCAN".into(), "0".into(), "COUNT".into(), "100".into()],
        28 => vec![
            (if random.u8(..12) == 0 {
                "FLUSHDB"
            } else {
                "DBSIZE"
            })
            .into(),
        ],
        29 => vec!["RENAME".into(), key(random), key(random)],
        30 => vec!["RENAMENX".into(), key(random), key(random)],
        31 => vec!["COPY".into(), key(random), key(random)],
        32 => vec![
            "COPY".into(),
            key(random),
            key(random),
            "REPLACE".into(),
            "DB".into(),
            random.u8(..3).to_string(),
        ],
        33 => vec!["MOVE".into(), key(random), random.u8(..3).to_string()],
        34 if random.u8(..4) == 0 => vec![
            "SWAPDB".into(),
            random.u8(..3).to_string(),
            random.u8(..3).to_string(),
        ],
        34 => vec!["KEYS".into(), "*".into()],
        35 => vec!["OBJECT".into(), "IDLETIME".into(), key(random)],
        36 => {
            let mut words = vec!["SADD".into(), key(random)];
            words.extend((0..random.usize(1..60)).map(|_| member(random)));
            words
        }
        37 | 38 => vec!["SADD".into(), key(random), member(random), member(random)],
        39 => vec!["SREM".into(), key(random), member(random), member(random)],
        40 => vec!["SMOVE".into(), key(random), key(random), member(random)],
        41 => vec!["SPOP".into(), key(random)],
        42 => vec![
            "SPOP".into(),
            key(random),
            random.usize(..40).pow(2).to_string(),
        ],
        43 => vec!["SINTERSTORE".into(), key(random), key(random), key(random)],
        44 => vec!["SUNIONSTORE".into(), key(random), key(random), key(random)],
        45 => vec!["SDIFFSTORE".into(), key(random), key(random), key(random)],
        46 => vec!["SINTER".into(), key(random), key(random)],
        _ => vec!["SELECT".into(), random.u8(..3).to_string()],
    };
    words.into_iter().map(String::into_bytes).collect()
}

fn run(local: &mut Local, command: &[Vec<u8>]) {
    let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
    local.command(&arguments);
}

#[test]
fn replayed_effects_rebuild_the_data() {
    for seed in 0..10 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut primary, mut copy) = (Local::new(), Local::new());
        let mut reader = primary.engine.listen_to_journal(0);
        let mut selected = 0;
        for step in 0..300 {
            let command = random_command(&mut random);
            run(&mut primary, &command);
            for record in reader.read() {
                for effect in record.effects {
                    if effect.database != selected {
                        selected = effect.database;
                        run(
                            &mut copy,
                            &[b"SELECT".to_vec(), selected.to_string().into_bytes()],
                        );
                    }
                    run(&mut copy, &effect.to_plain());
                }
            }
            assert_eq!(
                digest(&primary.engine, 0),
                digest(&copy.engine, 0),
                "seed {seed}, step {step}: {}",
                command
                    .iter()
                    .map(|word| String::from_utf8_lossy(&word[..word.len().min(40)]))
                    .collect::<Vec<_>>()
                    .join(" "),
            );
            // The copy's clock stands still: it removes nothing by itself.
            primary.clock.advance_ms(random.u64(..10));
        }
    }
}

#[test]
fn every_change_of_the_data_is_told() {
    let mut random = fastrand::Rng::with_seed(99);
    let mut local = Local::new();
    for _ in 0..2000 {
        let before = digest(&local.engine, 0);
        let command = random_command(&mut random);
        run(&mut local, &command);
        let changed = digest(&local.engine, 0) != before;
        // These two change more keys than can be told one by one.
        let whole = command[0] == b"FLUSHDB" || command[0] == b"SWAPDB";
        let told = !local.changes.take().is_empty() || whole;
        assert!(
            told || !changed,
            "{:?} changed the data and told nobody",
            command[0]
        );
        local.clock.advance_ms(random.u64(..10));
    }
}

#[test]
fn overdue_keys_are_deleted_in_the_journal_before_they_are_written() {
    let mut local = Local::new();
    let mut reader = local.engine.listen_to_journal(0);
    local.command(&[b"SET", b"k", b"old", b"PX", b"10"]);
    local.clock.advance_ms(10);
    local.command(&[b"APPEND", b"k", b"new"]);
    let effects: Vec<_> = reader
        .read()
        .into_iter()
        .flat_map(|record| record.effects)
        .map(|effect| effect.to_plain())
        .collect();
    let plain = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
    assert_eq!(
        effects,
        [
            plain(&[b"SET", b"k", b"old", b"PXAT", b"1700000000010"]),
            plain(&[b"DEL", b"k"]),
            plain(&[b"APPEND", b"k", b"new"]),
        ]
    );
    assert_eq!(local.command(&[b"GET", b"k"]), b"$3\r\nnew\r\n");
}

#[test]
fn a_unit_is_one_record() {
    let mut local = Local::new();
    let mut reader = local.engine.listen_to_journal(0);
    local.command(&[b"SET", b"a", b"1", b"PX", b"5"]);
    local.command(&[b"SET", b"b", b"1", b"PX", b"5"]);
    assert_eq!(reader.read().len(), 2);
    local.clock.advance_ms(5);
    local.command(&[b"MGET", b"a", b"b"]);
    let records = reader.read();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].effects.len(), 2);
}

#[test]
fn a_floating_point_sum_is_replied_stored_and_recorded_as_one_text() {
    let mut local = Local::new();
    let mut reader = local.engine.listen_to_journal(0);
    for (start, delta, sum) in [
        ("10.1", "0.2", "10.3"),
        ("1.1", "2.2", "3.3"),
        ("3.0e3", "200", "3200"),
        ("5.0e3", "-1e-5", "4999.99998999999999993"),
        ("17179869184", "1.5", "17179869185.5"),
    ] {
        local.command(&[b"SET", b"f", start.as_bytes()]);
        let reply = local.command(&[b"INCRBYFLOAT", b"f", delta.as_bytes()]);
        assert_eq!(reply, format!("${}\r\n{sum}\r\n", sum.len()).into_bytes());
        assert_eq!(local.command(&[b"GET", b"f"]), reply);
        let effects = reader.read().pop().expect("a record").effects;
        let words = [
            b"SET".to_vec(),
            b"f".to_vec(),
            sum.into(),
            b"KEEPTTL".to_vec(),
        ];
        assert_eq!(effects.last().expect("an effect").to_plain(), words);
    }
    local.command(&[b"SET", b"f", b" 11"]);
    assert_eq!(
        local.command(&[b"INCRBYFLOAT", b"f", b"1"]),
        b"-ERR value is not a valid float\r\n"
    );
    local.command(&[b"SET", b"f", b"1"]);
    let infinite = b"-ERR increment would produce NaN or Infinity\r\n";
    assert_eq!(local.command(&[b"INCRBYFLOAT", b"f", b"inf"]), infinite);
}

/// What was told of one command's changes: database, key and event.
fn told(local: &Local) -> Vec<(u32, String, &'static str)> {
    let plain = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let changes = local.changes.take();
    changes
        .into_iter()
        .map(|change| (change.database, plain(&change.key), change.event))
        .collect()
}

#[test]
fn keys_that_come_to_stand_elsewhere_are_told_at_both_ends() {
    let mut local = Local::new();
    let mut reader = local.engine.listen_to_journal(0);
    let changes = |local: &Local| local.engine.totals().changes;
    local.command(&[b"MSET", b"a", b"1", b"b", b"2"]);
    told(&local);
    let event = |database, key: &str, event| (database, key.to_owned(), event);
    let before = changes(&local);
    for (command, reply, events) in [
        (
            vec!["RENAME", "a", "b"],
            "+OK",
            vec![
                event(0, "b", "new"),
                event(0, "a", "rename_from"),
                event(0, "b", "rename_to"),
            ],
        ),
        (
            vec!["COPY", "b", "c"],
            ":1",
            vec![event(0, "c", "new"), event(0, "c", "copy_to")],
        ),
        (
            vec!["COPY", "c", "b", "DB", "2", "REPLACE"],
            ":1",
            vec![event(2, "b", "new"), event(2, "b", "copy_to")],
        ),
        (
            vec!["MOVE", "c", "1"],
            ":1",
            vec![
                event(1, "c", "new"),
                event(0, "c", "move_from"),
                event(1, "c", "move_to"),
            ],
        ),
        (
            vec!["RENAMENX", "b", "d"],
            ":1",
            vec![
                event(0, "d", "new"),
                event(0, "b", "rename_from"),
                event(0, "d", "rename_to"),
            ],
        ),
        (vec!["SWAPDB", "0", "1"], "+OK", vec![]),
    ] {
        reader.read();
        let arguments: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
        assert_eq!(
            local.command(&arguments),
            format!("{reply}\r\n").into_bytes(),
            "{command:?}"
        );
        assert_eq!(told(&local), events, "{command:?}");
        let effects = reader.read().pop().expect("a record").effects;
        assert_eq!(effects.len(), 1);
        assert_eq!(effects[0].database, 0);
        assert_eq!(effects[0].to_plain(), arguments, "{command:?}");
    }
    assert_eq!(changes(&local) - before, 6, "each command is one change");
    for command in [
        vec!["RENAME", "c", "c"],
        vec!["RENAMENX", "c", "c"],
        vec!["COPY", "nokey", "x"],
        vec!["MOVE", "nokey", "3"],
        vec!["RENAME", "nokey", "x"],
    ] {
        let arguments: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
        local.command(&arguments);
        assert_eq!(told(&local), [], "{command:?}");
        assert!(reader.read().is_empty(), "{command:?}");
    }
}

#[test]
fn an_overdue_key_of_another_database_is_deleted_there() {
    let mut local = Local::new();
    let mut reader = local.engine.listen_to_journal(0);
    local.command(&[b"SELECT", b"1"]);
    local.command(&[b"SET", b"k", b"old", b"PX", b"10"]);
    local.command(&[b"SELECT", b"0"]);
    local.command(&[b"SET", b"k", b"new"]);
    reader.read();
    local.clock.advance_ms(10);
    assert_eq!(local.command(&[b"MOVE", b"k", b"1"]), b":1\r\n");
    let effects: Vec<_> = reader
        .read()
        .into_iter()
        .flat_map(|record| record.effects)
        .map(|effect| (effect.database, effect.to_plain().concat()))
        .collect();
    assert_eq!(effects, [(1, b"DELk".to_vec()), (0, b"MOVEk1".to_vec())]);
    local.command(&[b"SELECT", b"1"]);
    assert_eq!(local.command(&[b"GET", b"k"]), b"$3\r\nnew\r\n");
}
