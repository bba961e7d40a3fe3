//! Sorted sets through the engine: effects that rebuild them, what is told of changes, large replies, chance.

mod in_process;

use in_process::Local;
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

/// A random write, or a read of what may be overdue, over a few keys.
fn random_command(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let keys = ["a", "b", "c", "d"];
    let key = |random: &mut fastrand::Rng| keys[random.usize(..keys.len())];
    let score = |random: &mut fastrand::Rng| match random.u8(..12) {
        0 => "inf".to_owned(),
        1 => "-inf".to_owned(),
        2 => "-0".to_owned(),
        _ => (f64::from(random.i32(-40..40)) / 8.0).to_string(),
    };
    let member = |random: &mut fastrand::Rng| {
        let number = random.u32(..300);
        format!(
            "m{number}{}",
            "x".repeat(if number % 40 == 7 { 80 } else { 0 })
        )
    };
    let (one, other, third) = (key(random), key(random), key(random));
    let text = match random.u8(..24) {
        0..=4 => {
            let mut text = format!("ZADD {one}");
            for word in ["NX", "XX", "GT", "LT", "CH"] {
                if random.u8(..12) == 0 {
                    text += &format!(" {word}");
                }
            }
            for _ in 0..random.u32(1..30) {
                text += &format!(" {} {}", score(random), member(random));
            }
            text
        }
        5 => format!("ZADD {one} INCR {} {}", score(random), member(random)),
        6 => format!("ZINCRBY {one} {} {}", score(random), member(random)),
        7 => format!("ZREM {one} {} {}", member(random), member(random)),
        8 => format!(
            "ZREMRANGEBYRANK {one} {} {}",
            random.i32(-9..9),
            random.i32(-9..9)
        ),
        9 => format!(
            "ZREMRANGEBYSCORE {one} ({} {}",
            score(random),
            score(random)
        ),
        10 => format!("ZREMRANGEBYLEX {one} [{} (m2", member(random)),
        11 => format!("ZPOPMIN {one}"),
        12 => format!("ZPOPMAX {one} {}", random.u32(..40)),
        13 => format!("ZMPOP 2 {one} {other} MAX COUNT {}", random.u32(1..5)),
        14 => format!("ZRANGESTORE {one} {other} {} -1", random.i32(-20..5)),
        15 => format!(
            "ZRANGESTORE {one} {other} +inf {} BYSCORE REV LIMIT 1 50",
            score(random)
        ),
        16 => format!("ZUNIONSTORE {one} 3 {one} {other} {third} WEIGHTS 0.1 inf -3"),
        17 => format!("ZINTERSTORE {one} 2 {other} {third} AGGREGATE MIN"),
        18 => format!("ZDIFFSTORE {one} 2 {other} {third}"),
        19 => format!("PEXPIRE {one} {}", random.u32(1..40)),
        20 => format!("ZUNION 2 {one} {other} WITHSCORES"),
        21 => format!("SET {one} x"),
        22 => format!("DEL {one}"),
        _ => format!("COPY {one} {other} REPLACE"),
    };
    words(&text)
}

#[test]
fn replayed_effects_rebuild_sorted_sets() {
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let entries = random.u32(..200).to_string();
        let arguments = ["--zset-max-listpack-entries", &entries];
        let (mut primary, mut copy) = (
            Local::with_arguments(&arguments),
            Local::with_arguments(&arguments),
        );
        let mut reader = primary.engine.listen_to_journal(0);
        for step in 0..400 {
            let command = random_command(&mut random);
            let before = digest(&primary.engine, 0);
            primary.changes.take();
            run(&mut primary, &command);
            for record in reader.read() {
                for effect in record.effects {
                    run(&mut copy, &effect.to_plain());
                }
            }
            let name = String::from_utf8_lossy(&command[0]).into_owned();
            assert_eq!(
                digest(&primary.engine, 0),
                digest(&copy.engine, 0),
                "seed {seed}, step {step}: {name}"
            );
            let told = !primary.changes.take().is_empty();
            assert!(
                told || digest(&primary.engine, 0) == before,
                "{name} changed the data and told nobody"
            );
            // The copy's clock stands still: it removes nothing by itself.
            primary.clock.advance_ms(random.u64(..10));
        }
    }
}

#[test]
fn changes_are_told_in_the_words_of_notifications() {
    let mut local = Local::new();
    for (command, events) in [
        ("ZADD z 1 a 2 b", &["new", "zadd"][..]),
        ("ZADD z 1 a", &[]),
        ("ZADD z XX 3 nobody", &[]),
        ("ZADD z 5 a", &["zadd"]),
        ("ZADD z INCR 1 a", &["zincr"]),
        ("ZINCRBY z 1 c", &["zincr"]),
        ("ZINCRBY z 0 c", &[]),
        ("ZREM z nobody", &[]),
        ("ZREM z a", &["zrem"]),
        ("ZRANGESTORE y z 0 -1", &["new", "zrangestore"]),
        ("ZRANGESTORE y z 0 0", &["zrangestore"]),
        ("ZRANGESTORE y z 8 9", &["del"]),
        ("ZRANGESTORE y z 8 9", &[]),
        ("ZUNIONSTORE u 1 z", &["new", "zunionstore"]),
        ("ZINTERSTORE i 2 z u", &["new", "zinterstore"]),
        ("ZDIFFSTORE d 1 z", &["new", "zdiffstore"]),
        ("ZDIFFSTORE d 2 z z", &["del"]),
        ("ZREMRANGEBYRANK u 0 0", &["zremrangebyrank"]),
        ("ZREMRANGEBYRANK u 0 -1", &["zremrangebyrank", "del"]),
        ("ZREMRANGEBYSCORE i -inf 2", &["zremrangebyscore"]),
        ("ZREMRANGEBYLEX i - +", &["zremrangebylex", "del"]),
        ("ZPOPMIN z", &["zpopmin"]),
        ("ZPOPMIN z 0", &[]),
        ("ZMPOP 2 nokey z MAX", &["zpopmax", "del"]),
        ("ZPOPMAX z", &[]),
        ("ZADD z 1 a", &["new", "zadd"]),
        ("ZREM z a", &["zrem", "del"]),
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
    let changes = local.engine.totals().changes;
    ask(&mut local, "ZADD z 1 a 2 b 3 c");
    ask(&mut local, "ZADD z 1 a 3 b 4 d");
    ask(&mut local, "ZPOPMIN z 2");
    assert_eq!(local.engine.totals().changes - changes, 3 + 2 + 2);
}

#[test]
fn results_are_recorded_instead_of_computations() {
    let mut local = Local::new();
    let mut reader = local.engine.listen_to_journal(0);
    let mut recorded = |local: &mut Local, command: &str| -> Vec<String> {
        ask(local, command);
        let effects = reader.read().into_iter().flat_map(|record| record.effects);
        let line = |words: Vec<Vec<u8>>| String::from_utf8_lossy(&words.join(&b' ')).into_owned();
        effects.map(|effect| line(effect.to_plain())).collect()
    };
    recorded(&mut local, "ZADD a 0.1 x 1 y");
    recorded(&mut local, "ZADD b 0.2 x 7 z");
    recorded(&mut local, "PEXPIRE b 10");
    assert_eq!(
        recorded(&mut local, "ZUNIONSTORE d 2 a b"),
        ["ZADD d 0.30000000000000004 x 1 y 7 z"]
    );
    assert_eq!(
        recorded(&mut local, "ZINTERSTORE d 2 a b"),
        ["DEL d", "ZADD d 0.30000000000000004 x"]
    );
    local.clock.advance_ms(10);
    assert_eq!(
        recorded(&mut local, "ZUNIONSTORE d 2 a b"),
        ["DEL d", "ZADD d 0.1 x 1 y", "DEL b"]
    );
    assert_eq!(recorded(&mut local, "ZRANGESTORE d a 5 6"), ["DEL d"]);
    assert_eq!(recorded(&mut local, "ZMPOP 2 nokey a MIN"), ["ZPOPMIN a 1"]);
    assert_eq!(recorded(&mut local, "ZPOPMAX a 9"), ["ZPOPMAX a 1"]);
    assert_eq!(recorded(&mut local, "ZPOPMAX a 9"), [""; 0]);
}

/// A reply's members, given its text in RESP2.
fn members(reply: &str) -> Vec<&str> {
    let lines = reply.split("\r\n").skip(1);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('$'))
        .collect()
}

#[test]
fn large_parts_are_replied_whole_and_in_order() {
    let mut local = Local::new();
    let count = 5000;
    for number in 0..count {
        let number = (number * 7919) % count;
        ask(
            &mut local,
            &format!("ZADD z {} m{number:05}", f64::from(number) / 2.0),
        );
    }
    let name = |number: i32| format!("m{number:05}");
    let forwards: Vec<String> = (0..count).map(name).collect();
    let backwards: Vec<String> = (0..count).rev().map(name).collect();
    assert_eq!(members(&ask(&mut local, "ZRANGE z 0 -1")), forwards);
    assert_eq!(members(&ask(&mut local, "ZRANGE z 0 -1 REV")), backwards);
    assert_eq!(
        members(&ask(&mut local, "ZREVRANGE z 100 -101")),
        backwards[100..4900]
    );
    assert_eq!(
        members(&ask(
            &mut local,
            "ZRANGE z (1000 (2000 BYSCORE LIMIT 5 1500"
        )),
        forwards[2006..3506]
    );
    assert_eq!(
        members(&ask(
            &mut local,
            "ZRANGE z 2000 1000 BYSCORE REV LIMIT 5 1500"
        )),
        backwards[1004..2504]
    );
    assert_eq!(members(&ask(&mut local, "ZUNION 2 z nokey")), forwards);
    assert_eq!(members(&ask(&mut local, "ZINTER 2 z z")), forwards);
    assert_eq!(ask(&mut local, "ZINTERCARD 2 z z"), ":5000\r\n");
    assert_eq!(members(&ask(&mut local, "ZRANDMEMBER z 9999")), backwards);
    let mut picked: Vec<String> = members(&ask(&mut local, "ZRANDMEMBER z 4000"))
        .into_iter()
        .map(str::to_owned)
        .collect();
    picked.sort();
    picked.dedup();
    assert_eq!(picked.len(), 4000);
    assert_eq!(ask(&mut local, "ZRANK z m02500"), ":2500\r\n");
    assert_eq!(ask(&mut local, "ZCOUNT z (10 20"), ":20\r\n");
    assert_eq!(ask(&mut local, "ZUNIONSTORE u 1 z"), ":5000\r\n");
    assert_eq!(members(&ask(&mut local, "ZRANGE u 0 -1")), forwards);
    assert_eq!(ask(&mut local, "ZREMRANGEBYRANK u 1000 1999"), ":1000\r\n");
    assert_eq!(ask(&mut local, "ZRANK u m02000"), ":1000\r\n");
    let pairs = ask(&mut local, "ZPOPMAX z 6000");
    let popped: Vec<&str> = members(&pairs).into_iter().step_by(2).collect();
    assert_eq!(popped, backwards);
    assert_eq!(ask(&mut local, "EXISTS z"), ":0\r\n");
    assert_eq!(
        members(&ask(&mut local, "ZRANGE u 0 -1"))[..1000],
        forwards[..1000]
    );
}

#[test]
fn what_is_there_all_the_time_is_scanned() {
    let mut local = Local::new();
    let mut random = fastrand::Rng::with_seed(5);
    for number in 0..200 {
        ask(&mut local, &format!("ZADD z {number} kept{number}"));
    }
    for round in 0..20 {
        let mut cursor = "0".to_owned();
        let mut seen = std::collections::HashSet::new();
        let mut step = 0;
        loop {
            let reply = ask(&mut local, &format!("ZSCAN z {cursor} COUNT {}", 1 + round));
            let found = members(&reply);
            cursor = found[0].to_owned();
            // Behind the cursor there is the header of the batch.
            seen.extend(
                found[2..]
                    .iter()
                    .step_by(2)
                    .map(|member| (*member).to_owned()),
            );
            if cursor == "0" {
                break;
            }
            step += 1;
            for _ in 0..random.u32(..60) {
                let number = random.u32(..5000);
                let growing = (step / 8) % 2 == 0;
                let command = if growing { "ZADD z 1" } else { "ZREM z" };
                ask(&mut local, &format!("{command} other{number}"));
            }
            assert!(step < 20_000, "the walk ends");
        }
        for number in 0..200 {
            assert!(seen.contains(&format!("kept{number}")), "kept{number}");
        }
    }
}

#[test]
fn scores_can_be_left_out_of_a_scan() {
    let mut local = Local::new();
    ask(&mut local, "ZADD z 1 a 2 b");
    let expected = "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n";
    assert_eq!(ask(&mut local, "ZSCAN z 0 COUNT 5 noscores"), expected);
}

#[test]
fn every_member_is_as_likely_as_any_other() {
    /// Chi-square with 99 degrees of freedom is larger than this in one case of 1,000.
    const LIMIT: f64 = 148.23;
    for (listpack, command, per_call) in [
        ("128", "ZRANDMEMBER z", 1),
        ("128", "ZRANDMEMBER z -10", 10),
        ("128", "ZRANDMEMBER z 10", 10),
        ("0", "ZRANDMEMBER z 60", 60),
        ("0", "ZRANDMEMBER z -100", 100),
    ] {
        let mut local = Local::with_arguments(&["--zset-max-listpack-entries", listpack]);
        for number in 0..100 {
            ask(&mut local, &format!("ZADD z {} m{number}", number % 7));
        }
        let mut counts = std::collections::HashMap::new();
        let calls = 100_000 / per_call;
        for _ in 0..calls {
            let reply = ask(&mut local, command);
            let picked: Vec<&str> = reply
                .split("\r\n")
                .filter(|line| line.starts_with('m'))
                .collect();
            assert_eq!(picked.len(), per_call, "{command}");
            for member in picked {
                *counts.entry(member.to_owned()).or_insert(0_u32) += 1;
            }
        }
        let expected = (calls * per_call) as f64 / 100.0;
        let mut chi_square = 0.0;
        for number in 0..100 {
            let count = counts.get(&format!("m{number}")).copied().unwrap_or(0);
            chi_square += (f64::from(count) - expected).powi(2) / expected;
        }
        assert!(chi_square < LIMIT, "{command}: {chi_square}");
    }
}
