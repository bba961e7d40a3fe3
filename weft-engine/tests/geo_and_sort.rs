//! Geo and SORT through the engine: effects that rebuild what they store, what is told of changes, large replies, failures of steps.

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
    let keys = ["a", "b", "c", "d", "1", "2"];
    let key = |random: &mut fastrand::Rng| keys[random.usize(..keys.len())];
    let degrees = |random: &mut fastrand::Rng| f64::from(random.i32(-8000..8000)) / 100.0;
    let number = |random: &mut fastrand::Rng| random.i32(-20..20);
    let (one, other) = (key(random), key(random));
    let text = match random.u8(..18) {
        0..=3 => {
            let mut text = format!("GEOADD {one}");
            for word in ["NX", "XX", "CH"] {
                if random.u8(..12) == 0 && !text.ends_with("NX") {
                    text += &format!(" {word}");
                }
            }
            for _ in 0..random.u32(1..60) {
                let (longitude, latitude) = (degrees(random), degrees(random));
                text += &format!(" {longitude} {latitude} m{}", random.u32(..300));
            }
            text
        }
        4 => format!(
            "GEOSEARCHSTORE {one} {other} FROMLONLAT {} {} BYRADIUS {} km",
            degrees(random),
            degrees(random),
            random.u32(1..20_000)
        ),
        5 => format!(
            "GEOSEARCHSTORE {one} {other} FROMLONLAT 0 0 BYBOX 9000 9000 mi STOREDIST COUNT 9 ANY"
        ),
        6 => format!(
            "GEORADIUS {one} 1 2 {} km STORE x STOREDIST {other}",
            random.u32(1..9000)
        ),
        7 => format!("GEORADIUSBYMEMBER {one} m7 5000 km STORE {other}"),
        8 | 9 => {
            let mut text = format!("RPUSH {one}");
            for _ in 0..random.u32(1..60) {
                text += &format!(" {}", number(random));
            }
            text
        }
        10 => format!("SADD {one} {} {} x", number(random), number(random)),
        11 => format!("SORT {one} STORE {other}"),
        12 => format!("SORT {one} DESC ALPHA LIMIT 1 50 STORE {other}"),
        13 => format!("SORT {one} BY nosort GET # GET * STORE {other}"),
        14 => format!("SORT {one} BY *->f GET *->f GET none STORE {other}"),
        15 => format!("SET {one} {}", number(random)),
        16 => format!("HSET {one} f {}", number(random)),
        _ => format!("PEXPIRE {one} {}", random.u32(1..40)),
    };
    let mut command = words(&text);
    if random.u8(..40) == 0 {
        command = vec![
            b"RPUSH".to_vec(),
            one.into(),
            vec![b'x'; random.usize(..90_000)],
        ];
    }
    command
}

#[test]
fn effects_rebuild_the_data_in_another_engine() {
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut primary, mut copy) = (Local::new(), Local::new());
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
        (
            "GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
            &["new", "zadd"][..],
        ),
        ("GEOADD g 13.361389 38.115556 Palermo", &[]),
        ("GEOADD g XX 1 1 nobody", &[]),
        ("GEOADD g 1 1 Palermo", &["zadd"]),
        (
            "GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km",
            &["new", "geosearchstore"],
        ),
        (
            "GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST",
            &["geosearchstore"],
        ),
        ("GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 1 m", &["del"]),
        ("GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 1 m", &[]),
        (
            "GEORADIUS g 15 37 200 km STORE d",
            &["new", "georadiusstore"],
        ),
        (
            "GEORADIUSBYMEMBER g Catania 200 km STOREDIST d",
            &["georadiusstore"],
        ),
        ("GEORADIUSBYMEMBER nokey a 200 km STOREDIST d", &["del"]),
        ("RPUSH l 3 1 2", &["new", "rpush"]),
        ("SORT l STORE s", &["new", "sortstore"]),
        ("SORT l DESC STORE s", &["sortstore"]),
        ("SORT l LIMIT 9 9 STORE s", &["del"]),
        ("SORT nokey STORE s", &[]),
        ("SORT l BY w* GET w*", &[]),
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
    ask(&mut local, "SORT l STORE s");
    ask(&mut local, "SORT l LIMIT 9 9 STORE s");
    ask(&mut local, "GEOADD g 2 2 x 3 3 y");
    ask(
        &mut local,
        "GEOSEARCHSTORE d g FROMLONLAT 2 2 BYRADIUS 500 km",
    );
    assert_eq!(local.engine.totals().changes - changes, 3 + 1 + 2 + 1);
}

#[test]
fn results_are_recorded_instead_of_computations() {
    let mut local = Local::new();
    let mut reader = local.engine.listen_to_journal(0);
    let mut recorded = |local: &mut Local, command: &str| -> Vec<String> {
        ask(local, command);
        let effects = reader.read().into_iter().flat_map(|record| record.effects);
        effects
            .map(|effect| {
                let words = effect.to_plain();
                let words = words.iter().map(|word| String::from_utf8_lossy(word));
                words.collect::<Vec<_>>().join(" ")
            })
            .collect()
    };
    for (command, effects) in [
        (
            "GEOADD g NX 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
            &["ZADD g NX 3479099956230698 Palermo 3479447370796909 Catania"][..],
        ),
        (
            "GEORADIUS g 15 37 200 km STOREDIST d",
            &["ZADD d 56.4412578701582 Catania 190.44242984775784 Palermo"],
        ),
        (
            "GEORADIUS g 15 37 100 km STORE d",
            &["DEL d", "ZADD d 3479447370796909 Catania"],
        ),
        ("GEORADIUS g 15 37 1 km STORE d", &["DEL d"]),
        ("RPUSH l 3 1 2", &["RPUSH l 3 1 2"]),
        ("MSET w1 x w3 y", &["MSET w1 x w3 y"]),
        ("SORT l STORE s", &["RPUSH s 1 2 3"]),
        (
            "SORT l DESC GET # GET w* STORE s",
            &["DEL s", "RPUSH s 3 y 2  1 x"],
        ),
        ("SORT l LIMIT 5 1 STORE s", &["DEL s"]),
        ("SORT l LIMIT 5 1 STORE s", &[]),
    ] {
        assert_eq!(recorded(&mut local, command), effects, "{command}");
    }
}

#[test]
fn large_lists_are_sorted_in_steps() {
    let mut local = Local::new();
    let mut random = fastrand::Rng::with_seed(1);
    let mut numbers: Vec<i32> = (0..30_000).map(|_| random.i32(-9999..9999)).collect();
    for chunk in numbers.chunks(1000) {
        let chunk = chunk.iter().map(|number| number.to_string().into_bytes());
        let head = [b"RPUSH".to_vec(), b"l".to_vec()];
        run(
            &mut local,
            &head.into_iter().chain(chunk).collect::<Vec<_>>(),
        );
    }
    numbers.sort_unstable();
    let expected = |numbers: &[i32]| {
        let items = numbers.iter().map(|number| {
            let text = number.to_string();
            format!("${}\r\n{text}\r\n", text.len())
        });
        format!("*{}\r\n{}", numbers.len(), items.collect::<String>())
    };
    assert_eq!(ask(&mut local, "SORT l"), expected(&numbers));
    assert_eq!(
        ask(&mut local, "SORT l LIMIT 10000 5"),
        expected(&numbers[10_000..10_005])
    );
    assert_eq!(ask(&mut local, "SORT l STORE d"), ":30000\r\n");
    assert_eq!(ask(&mut local, "LRANGE d 0 -1"), expected(&numbers));
    numbers.reverse();
    assert_eq!(ask(&mut local, "SORT l DESC"), expected(&numbers));
    // A failure that is found in a step counts as one.
    ask(&mut local, "RPUSH l x");
    let error = "-ERR One or more scores can't be converted into double\r\n";
    assert_eq!(ask(&mut local, "SORT l"), error);
    assert_eq!(ask(&mut local, "SORT l STORE d"), error);
    ask(&mut local, "MULTI");
    ask(&mut local, "SORT l");
    ask(&mut local, "SORT l BY w* LIMIT 0 1 GET nokey");
    let replies = format!("*2\r\n{error}*1\r\n$-1\r\n");
    assert_eq!(ask(&mut local, "EXEC"), replies);
    let statistics = ask(&mut local, "INFO commandstats");
    let line = statistics
        .lines()
        .find(|line| line.starts_with("cmdstat_sort:"));
    let line = line.expect("SORT has run");
    assert!(line.contains("calls=8,"), "{line}");
    assert!(line.ends_with("rejected_calls=0,failed_calls=3"), "{line}");
}
