//! Sets through commands: chance, what is recorded and told, scans across growth.

mod in_process;

use std::collections::BTreeSet;

use in_process::Local;

fn run(local: &mut Local, line: &str) -> String {
    let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    String::from_utf8(local.command(&arguments)).expect("text")
}

/// The bulk strings of a reply.
fn texts(reply: &str) -> Vec<String> {
    let mut lines = reply.split("\r\n");
    let mut texts = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with('$') && line != "$-1" {
            texts.extend(lines.next().map(str::to_owned));
        }
    }
    texts
}

fn add(local: &mut Local, key: &str, members: impl Iterator<Item = String>) {
    let mut arguments: Vec<Vec<u8>> = vec![b"SADD".to_vec(), key.into()];
    arguments.extend(members.map(String::into_bytes));
    let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
    local.command(&arguments);
}

/// Pearson's statistic against equally likely cells.
fn chi_square(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let square = |count: &u64| (*count as f64 - mean).powi(2) / mean;
    counts.iter().map(square).sum()
}

/// For 99 degrees of freedom a value is above this so seldom that any of the 28 below is with a probability of 0.001.
const CHI_SQUARE_99: f64 = 165.1;
/// All 28 together, 2772 degrees of freedom, are above this with a probability of 0.001.
const CHI_SQUARE_2772: f64 = 3008.6;

#[test]
fn each_of_a_hundred_members_is_as_likely() {
    let mut sum = 0.0;
    // As integers, in the order in which they came, and in a table.
    for (before, encoding, low) in [
        ("", "intset", false),
        ("m", "listpack", false),
        ("a member that is not short ", "listpack", false),
        ("a member that is not short ", "hashtable", true),
    ] {
        let mut local = Local::new();
        if low {
            run(&mut local, "CONFIG SET set-max-listpack-entries 4");
        }
        let member = |number: usize| format!("{before}{number}");
        add(&mut local, "s", (0..100).map(member));
        assert!(run(&mut local, "OBJECT ENCODING s").contains(encoding));
        let number = |text: &str| text[before.len()..].parse::<usize>().expect("a member");
        for (command, times) in [
            ("SRANDMEMBER s", 20_000),
            ("SRANDMEMBER s -50", 400),
            ("SRANDMEMBER s 10", 2000),
            ("SRANDMEMBER s 60", 400),
        ] {
            let mut counts = [0; 100];
            for _ in 0..times {
                let found = texts(&run(&mut local, command));
                let different: BTreeSet<&String> = found.iter().collect();
                assert!(command.contains('-') || different.len() == found.len());
                found.iter().for_each(|text| counts[number(text)] += 1);
            }
            let value = chi_square(&counts);
            sum += value;
            assert!(value < CHI_SQUARE_99, "{command} of {encoding}: {value}");
        }
        run(&mut local, "COPY s whole");
        for (command, times) in [("SPOP s", 10_000), ("SPOP s 10", 1000), ("SPOP s 95", 200)] {
            let mut counts = [0; 100];
            for _ in 0..times {
                run(&mut local, "COPY whole s REPLACE");
                let found = texts(&run(&mut local, command));
                found.iter().for_each(|text| counts[number(text)] += 1);
                let gone = run(&mut local, "SCARD s");
                assert_eq!(gone, format!(":{}\r\n", 100 - found.len()));
            }
            let value = chi_square(&counts);
            sum += value;
            assert!(value < CHI_SQUARE_99, "{command} of {encoding}: {value}");
        }
    }
    assert!(sum < CHI_SQUARE_2772, "{sum}");
}

#[test]
fn random_choices_are_recorded_as_their_results() {
    let mut local = Local::new();
    let mut reader = local.engine.listen_to_journal(0);
    let mut effects = |local: &mut Local, line: &str| -> (String, Vec<String>) {
        let reply = run(local, line);
        let records = reader.read();
        let effects = records.into_iter().flat_map(|record| record.effects);
        let words = effects.map(|effect| {
            let words = effect.to_plain();
            let words = words.iter().map(|word| String::from_utf8_lossy(word));
            words.collect::<Vec<_>>().join(" ")
        });
        (reply, words.collect())
    };
    effects(&mut local, "SADD s a b c d e");
    let (reply, recorded) = effects(&mut local, "SPOP s");
    assert_eq!(recorded, [format!("SREM s {}", texts(&reply)[0])]);
    let (reply, recorded) = effects(&mut local, "SPOP s 2");
    assert_eq!(recorded, [format!("SREM s {}", texts(&reply).join(" "))]);
    let (reply, recorded) = effects(&mut local, "SPOP s 2");
    assert_eq!(texts(&reply).len(), 2);
    assert_eq!(recorded, ["DEL s"]);
    assert_eq!(effects(&mut local, "SPOP s 2").1, [""; 0]);
    assert_eq!(effects(&mut local, "SRANDMEMBER s").1, [""; 0]);
    // Results, since the sets themselves may be gone for whoever replays it.
    effects(&mut local, "SADD a 1 2 3");
    effects(&mut local, "SADD b 3 2 9");
    for (line, recorded) in [
        ("SINTERSTORE d a b", vec!["SADD d 2 3"]),
        ("SUNIONSTORE d a b", vec!["DEL d", "SADD d 1 2 3 9"]),
        ("SDIFFSTORE d a b", vec!["DEL d", "SADD d 1"]),
        ("SDIFFSTORE d a a", vec!["DEL d"]),
        ("SDIFFSTORE d a a", vec![]),
        ("SINTERSTORE a a b", vec!["DEL a", "SADD a 2 3"]),
        ("SMOVE a b 2", vec!["SMOVE a b 2"]),
        ("SMOVE b b 2", vec![]),
        ("SADD a 3", vec![]),
        ("SREM a 2", vec![]),
        ("SREM a 2 3", vec!["SREM a 2 3"]),
    ] {
        assert_eq!(effects(&mut local, line).1, recorded, "{line}");
    }
    // As many as one effect should not name.
    add(
        &mut local,
        "large",
        (0..5000).map(|number| format!("m{number}")),
    );
    effects(&mut local, "PING");
    let (reply, recorded) = effects(&mut local, "SPOP large 4900");
    assert_eq!(recorded.len(), 5);
    let mut named: Vec<&str> = recorded
        .iter()
        .flat_map(|effect| effect.strip_prefix("SREM large ").expect("SREM").split(' '))
        .collect();
    let mut popped = texts(&reply);
    named.sort_unstable();
    popped.sort_unstable();
    assert_eq!(named, popped);
}

#[test]
fn changes_are_told_and_counted_as_redis_does() {
    let mut local = Local::new();
    for (line, changes, events) in [
        ("SADD s 1 2 3 x y", 5, "new:s sadd:s"),
        ("SADD s 1", 0, ""),
        ("SADD s 9 1", 1, "sadd:s"),
        ("SREM s 1 9 8", 2, "srem:s"),
        ("SREM s 8", 0, ""),
        ("SMOVE s d x", 2, "srem:s new:d sadd:d"),
        ("SMOVE s d 99", 0, ""),
        ("SADD s x", 1, "sadd:s"),
        ("SMOVE s d x", 1, "srem:s"),
        ("SMOVE s s 2", 0, ""),
        ("SADD one 1", 1, "new:one sadd:one"),
        ("SMOVE one d 1", 2, "srem:one del:one sadd:d"),
        ("SADD p 1 2 3 4 5 6", 6, "new:p sadd:p"),
        ("SPOP p", 1, "spop:p"),
        ("SPOP p 2", 2, "spop:p"),
        ("SPOP p 0", 0, ""),
        ("SPOP p 3", 3, "spop:p del:p"),
        ("SADD p 1", 1, "new:p sadd:p"),
        ("SPOP p", 1, "spop:p del:p"),
        ("SPOP p", 0, ""),
        ("SADD p 1 2", 2, "new:p sadd:p"),
        ("SREM p 1 2", 2, "srem:p del:p"),
        ("SADD a 1 2 3", 3, "new:a sadd:a"),
        ("SINTERSTORE z a d", 1, "new:z sinterstore:z"),
        ("SUNIONSTORE z a d", 1, "sunionstore:z"),
        ("SDIFFSTORE z a d", 1, "sdiffstore:z"),
        ("SDIFFSTORE z a a", 1, "del:z"),
        ("SDIFFSTORE z a a", 0, ""),
        ("SINTER a d", 0, ""),
    ] {
        let before = local.engine.totals().changes;
        run(&mut local, line);
        let told = local.changes.take().into_iter().map(|change| {
            let key = String::from_utf8_lossy(&change.key).into_owned();
            format!("{}:{key}", change.event)
        });
        let told: Vec<String> = told.collect();
        assert_eq!(told.join(" "), events, "{line}");
        assert_eq!(local.engine.totals().changes - before, changes, "{line}");
    }
}

#[test]
fn a_scan_yields_what_stays_across_growth_and_shrinking() {
    let mut local = Local::new();
    let stays: BTreeSet<String> = (0..300).map(|number| format!("stays{number}")).collect();
    add(&mut local, "s", stays.iter().cloned());
    for round in 0..5 {
        let mut cursor = "0".to_owned();
        let mut seen = BTreeSet::new();
        let mut calls = 0;
        loop {
            let reply = texts(&run(&mut local, &format!("SSCAN s {cursor} COUNT 7")));
            assert!(reply[0].parse::<u64>().is_ok());
            seen.extend(reply[1..].iter().cloned());
            cursor.clone_from(&reply[0]);
            if cursor == "0" {
                break;
            }
            calls += 1;
            let comes = (0..200).map(|number| format!("comes{round}-{calls}-{number}"));
            if calls < 20 {
                add(&mut local, "s", comes);
            } else if calls < 40 {
                for number in 0..200 {
                    let gone = calls - 19;
                    run(&mut local, &format!("SREM s comes{round}-{gone}-{number}"));
                }
            }
        }
        assert!(calls >= 40, "{calls}");
        assert!(stays.is_subset(&seen), "round {round}");
    }
    // From a small form into a table.
    add(
        &mut local,
        "t",
        (0..100).map(|number| format!("stays{number}")),
    );
    let reply = texts(&run(&mut local, "SSCAN t 0 COUNT 3"));
    assert_eq!((reply[0].as_str(), reply.len()), ("0", 101));
}

#[test]
fn a_snapshot_stands_while_its_reply_is_made() {
    let mut local = Local::new();
    add(
        &mut local,
        "s",
        (0..20_000).map(|number| format!("m{number}")),
    );
    let requests =
        b"SMEMBERS s\r\nSPOP s 19000\r\nSCARD s\r\nSRANDMEMBER s -3000\r\nSDIFF s nokey\r\n";
    let reply = String::from_utf8(local.send(requests)).expect("text");
    let (members, rest) = reply.split_once("*19000\r\n").expect("what was popped");
    let members: BTreeSet<String> = texts(members).into_iter().collect();
    assert_eq!(members.len(), 20_000);
    let (popped, rest) = rest.split_once(":1000\r\n").expect("how many stay");
    let popped: BTreeSet<String> = texts(popped).into_iter().collect();
    assert_eq!(popped.len(), 19_000);
    let (named, left) = rest.split_once("*1000\r\n").expect("those that stay");
    assert!(named.starts_with("*3000\r\n"));
    let left: BTreeSet<String> = texts(left).into_iter().collect();
    assert!(texts(named).iter().all(|text| left.contains(text)));
    assert_eq!(&members - &popped, left);
}
