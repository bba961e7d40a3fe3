//! CONFIG SET against the answers of Redis 8.2.3.

use super::*;

/// Values that Weft treats differently on purpose: name, value.
fn is_deviation(name: &str, value: &str) -> bool {
    match name {
        // Valkey refuses sizes beyond 64 bits; Redis takes them for the greatest, and Weft follows Redis.
        "slot-migration-max-failover-repl-bytes" => value == "99999999999999999999",
        _ => false,
    }
}

#[test]
fn every_parameter_answers_odd_values_as_the_oracle() {
    let mut names: Vec<&str> = Vec::new();
    let mut checked = 0;
    let mut wrong = Vec::new();
    for line in include_str!("oracle_set.txt").lines() {
        if let Some(list) = line.strip_prefix("names ") {
            names = list.split(' ').collect();
            continue;
        }
        let Some((values, outcome)) = quoted_words(line) else {
            continue;
        };
        let values = texts(values);
        for name in &names {
            for value in &values {
                if is_deviation(name, value) {
                    continue;
                }
                let mut config = Config::new(FACTS);
                let found = match set(&mut config, &[name, value]) {
                    Ok(_) => {
                        let shown = get(&config, name).unwrap_or_default();
                        if shown == *value {
                            "OK".to_owned()
                        } else {
                            format!("OK {shown}")
                        }
                    }
                    Err(error) => error
                        .strip_prefix(&format!(
                            "ERR CONFIG SET failed (possibly related to argument '{name}') - "
                        ))
                        .map_or(error.clone(), str::to_owned),
                };
                if found != outcome {
                    wrong.push(format!(
                        "{name} {value:?}: expected {outcome:?}, found {found:?}"
                    ));
                }
                checked += 1;
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {checked} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(checked > 3000, "only {checked} values were checked");
}

#[test]
fn names_are_checked_before_values_and_all_or_nothing_changes() {
    let mut config = Config::new(FACTS);
    let failed = |name: &str, reason: &str| {
        Err(format!(
            "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
        ))
    };
    let unknown = |name: &str| {
        Err(format!(
            "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
        ))
    };
    type Outcome = Result<Vec<&'static str>, String>;
    let cases: [(&[&str], Outcome); 20] = [
        (&["nosuch", "1"], unknown("nosuch")),
        (
            &["maxmemory", "1", "hz"],
            Err("ERR syntax error".to_owned()),
        ),
        (&["hz", "10", "nosuch", "1"], unknown("nosuch")),
        (
            &["hz", "10", "hz", "11"],
            failed("hz", "duplicate parameter"),
        ),
        (
            &["hz", "10", "HZ", "11"],
            failed("HZ", "duplicate parameter"),
        ),
        (
            &["HZ", "bogus"],
            failed("hz", "argument couldn't be parsed into an integer"),
        ),
        (
            &["SLAVE-read-only", "bogus"],
            failed("slave-read-only", "argument must be 'yes' or 'no'"),
        ),
        (
            &["hz", "0", "timeout", "bogus"],
            failed("timeout", "argument couldn't be parsed into an integer"),
        ),
        (
            &["daemonize", "yes", "hz", "bogus"],
            failed("daemonize", "can't set immutable config"),
        ),
        (
            &["hz", "bogus", "daemonize", "yes"],
            failed("daemonize", "can't set immutable config"),
        ),
        (&["nosuch", "1", "daemonize", "yes"], unknown("nosuch")),
        (
            &["daemonize", "yes", "nosuch", "1"],
            failed("daemonize", "can't set immutable config"),
        ),
        (&["port", "x", "nosuch", "1"], unknown("nosuch")),
        (
            &["hz", "x", "timeout", "y"],
            failed("hz", "argument couldn't be parsed into an integer"),
        ),
        (&["bad\0name", "1"], unknown("bad")),
        (&["", "1"], unknown("")),
        (&["timeout", "5", "hz", "500"], Ok(vec!["timeout", "hz"])),
        (&["timeout", "5", "hz", "20"], Ok(vec!["hz"])),
        (
            &["slave-read-only", "no", "replica-read-only", "yes"],
            Ok(vec![]),
        ),
        (&[], Ok(vec![])),
    ];
    for (arguments, expected) in cases {
        let before = config.settings().clone();
        let found = set(&mut config, arguments);
        assert_eq!(found, expected, "{arguments:?}");
        if found.is_err() {
            assert!(Arc::ptr_eq(&before, config.settings()), "{arguments:?}");
        }
    }
    assert_eq!(config.settings().hz(), 20);
    assert_eq!(config.settings().timeout_seconds(), 5);
    assert_eq!(config.settings().generation(), 2);
    let long = "x".repeat(300);
    assert_eq!(set(&mut config, &[&long, "1"]), unknown(&long));
}

#[test]
fn protected_parameters_need_permission() {
    let mut config = Config::new(FACTS);
    for name in ["dir", "dbfilename"] {
        let error = config
            .set(&[name.as_bytes(), b"x"], false)
            .expect_err("a refusal")
            .to_string();
        assert_eq!(
            error,
            format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - can't set protected config"
            )
        );
        assert_eq!(set(&mut config, &[name, "x"]), Ok(vec![name]));
    }
    let error = config
        .set(&[b"hz", b"bogus", b"dir", b"/tmp"], false)
        .expect_err("a refusal")
        .to_string();
    assert_eq!(
        error,
        "ERR CONFIG SET failed (possibly related to argument 'dir') - can't set protected config"
    );
}

#[test]
fn what_is_not_built_yet_is_refused_and_its_default_is_not() {
    let mut config = Config::new(FACTS);
    for (name, refused, accepted) in [
        ("appendonly", "yes", "no"),
        ("save", "900 1", ""),
        ("maxmemory", "100mb", "0"),
        ("tls-port", "6380", "0"),
    ] {
        let Err(error) = set(&mut config, &["hz", "50", name, refused]) else {
            panic!("{name} was accepted")
        };
        let start = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - ");
        assert!(
            error.starts_with(&start) && error.contains("not available yet"),
            "{error}"
        );
        assert_eq!(set(&mut config, &[name, accepted]), Ok(vec![]));
        assert_eq!(config.settings().hz(), 10);
    }
    for name in ["replicaof", "slaveof", "aclfile", "cluster-enabled"] {
        assert_eq!(
            set(&mut config, &[name, "x"]),
            Err(format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - can't set immutable config"
            ))
        );
    }
}

#[test]
fn prepared_settings_wait_for_the_commit() {
    let mut config = Config::new(FACTS);
    let update = config
        .prepare(&[b"maxclients", b"50", b"port", b"7000"], false)
        .expect("valid values");
    assert_eq!(update.settings().maxclients(), 50);
    assert_eq!(config.settings().maxclients(), 10000);
    let ids: Vec<_> = update.changes().iter().map(|change| change.id).collect();
    assert_eq!(ids, [ParameterId::Maxclients, ParameterId::Port]);
    config.commit(update);
    assert_eq!(
        (config.settings().maxclients(), config.settings().port()),
        (50, 7000)
    );
    assert_eq!(
        SetError::failed(ParameterId::Maxclients, SetError::too_many_clients(19968)).to_string(),
        "ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to handle \
         the specified number of clients, try with 19968"
    );
}

#[test]
fn io_threads_take_auto_and_show_a_number() {
    let mut config = Config::new(FACTS);
    assert_eq!(
        (
            get(&config, "io-threads").as_deref(),
            config.settings().io_threads()
        ),
        (Some("2"), 2)
    );
    assert_eq!(
        set(&mut config, &["io-threads", "7"]),
        Ok(vec!["io-threads"])
    );
    assert_eq!(
        (
            get(&config, "io-threads").as_deref(),
            config.settings().io_threads()
        ),
        (Some("7"), 7)
    );
    assert_eq!(
        set(&mut config, &["io-threads", "AUTO"]),
        Ok(vec!["io-threads"])
    );
    assert_eq!(config.settings().io_threads(), 2);
    let refused = "ERR CONFIG SET failed (possibly related to argument 'io-threads') - argument must be between 1 and 1024 inclusive";
    for value in ["0", "-1", "1025"] {
        assert_eq!(
            set(&mut config, &["io-threads", value]),
            Err(refused.to_owned())
        );
    }
}

#[test]
fn passwords_stay_out_of_debug_prints_and_errors() {
    let mut config = Config::new(FACTS);
    assert_eq!(
        set(&mut config, &["requirepass", "hunter2"]),
        Ok(vec!["requirepass"])
    );
    let printed = format!("{:?}", config.settings().value(ParameterId::Requirepass));
    assert_eq!(printed, "Text(7 bytes)");
    assert_eq!(config.settings().requirepass(), Some(b"hunter2".as_slice()));
    let error = config
        .start_error(ParameterId::Requirepass, "reason")
        .to_string();
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn a_zero_byte_ends_what_the_oracle_takes_for_a_text() {
    let number = Err("argument couldn't be parsed into an integer");
    let memory = Err("argument must be a memory value");
    for (name, value, expected) in [
        ("activedefrag", "no\0x", Ok("no")),
        ("lazyfree-lazy-expire", "yes\0x", Ok("yes")),
        ("appendfsync", "no\0x", Ok("no")),
        ("loglevel", "debug\0x", Ok("debug")),
        ("notify-keyspace-events", "KE\0A", Ok("KE")),
        ("shutdown-on-sigint", "nosave\0x", Ok("nosave")),
        ("oom-score-adj-values", "1 2 3\0", Ok("1 2 3")),
        (
            "client-output-buffer-limit",
            "normal\0x 1 1 1",
            Ok("normal 1 1 1 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
        ),
        ("cluster-announce-hostname", "a\0/", Ok("a")),
        ("cluster-announce-ip", "a\0b", Ok("a")),
        ("dbfilename", "a\0/b", Ok("a")),
        ("proc-title-template", "x\0{", Ok("x")),
        ("repl-backlog-size", "1mb\0", Ok("1048576")),
        ("hash-max-listpack-value", "5\0x", Ok("5")),
        ("maxmemory-clients", "5k\0x", Ok("5000")),
        (
            "maxmemory-clients",
            "5%\0",
            Err("argument must be a memory or percent value"),
        ),
        ("auto-aof-rewrite-min-size", "-1\0", memory),
        ("hz", "5\0", number),
        ("timeout", "5\0x", number),
        ("hash-max-listpack-entries", "5\0", number),
        (
            "latency-tracking-info-percentiles",
            "50\0 1",
            Err("Invalid latency-tracking-info-percentiles parameters"),
        ),
        (
            "cluster-announce-human-nodename",
            "a\0b",
            Err("Announced human node name contained invalid character"),
        ),
        ("masterauth", "a\0b", Ok("a\0b")),
        ("requirepass", "a\0b", Ok("a\0b")),
    ] {
        let mut config = Config::new(FACTS);
        let found = set(&mut config, &[name, value]);
        match expected {
            Ok(shown) => {
                assert!(found.is_ok(), "{name} {value:?}: {found:?}");
                assert_eq!(
                    get(&config, name).as_deref(),
                    Some(shown),
                    "{name} {value:?}"
                );
            }
            Err(reason) => assert_eq!(
                found,
                Err(format!(
                    "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
                )),
                "{value:?}"
            ),
        }
    }
}
