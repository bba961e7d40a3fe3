//! CONFIG GET against the answers of Redis 8.2.3.

use super::*;

/// Where Weft's defaults differ: name, default.
const OWN_DEFAULTS: [(&str, &str); 2] = [("save", ""), ("io-threads", "2")];
/// What the oracle's allocator or build decides.
const BUILD_DEPENDENT: [&str; 0] = [];

#[test]
fn defaults_and_names_are_the_oracles() {
    let config = Config::new(FACTS);
    let mut listed: Vec<String> = Vec::new();
    for line in include_str!("oracle_get.txt").lines() {
        let Some((words, outcome)) = quoted_words(line) else {
            continue;
        };
        let [name, value] = &texts(words)[..] else {
            panic!("{line}")
        };
        let expected = OWN_DEFAULTS
            .iter()
            .find(|(own, _)| own == name)
            .map_or(value.as_str(), |(_, value)| value);
        if !BUILD_DEPENDENT.contains(&name.as_str()) {
            assert_eq!(get(&config, name).as_deref(), Some(expected), "{name}");
        }
        match outcome {
            "listed" => listed.push(name.clone()),
            "hidden" | "valkey" => {
                let pattern = format!("{}*", &name[..name.len() - 1]);
                let found = config.get(&[pattern.as_bytes()]);
                assert!(
                    found.iter().all(|(found, _)| found != name.as_bytes()),
                    "{name} is listed"
                );
            }
            other => panic!("{other}"),
        }
    }
    let mut found: Vec<String> = config
        .get(&[b"*"])
        .into_iter()
        .map(|(name, _)| texts(vec![name]).remove(0))
        .collect();
    found.sort();
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn literal_names_come_back_as_spelled_and_patterns_as_listed() {
    let config = Config::new(FACTS);
    let names = |patterns: &[&str]| {
        let patterns: Vec<&[u8]> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
        config
            .get(&patterns)
            .into_iter()
            .map(|(name, _)| texts(vec![name]).remove(0))
            .collect::<Vec<_>>()
    };
    let cases: [(&[&str], &[&str]); 16] = [
        (&["HZ"], &["HZ"]),
        (&["hZ", "hz"], &["hZ"]),
        (&["h[zZ]"], &["hz"]),
        (&["HZ*"], &["hz"]),
        (&["slave-read-only"], &["slave-read-only"]),
        (&["*read-only"], &["replica-read-only", "slave-read-only"]),
        (&["key-load-delay"], &["key-load-delay"]),
        (&["key-load*"], &[]),
        (&["KEY-LOAD-DELAY"], &["KEY-LOAD-DELAY"]),
        (&["nosuch"], &[]),
        (
            &["maxmemory", "save", "databases"],
            &["maxmemory", "save", "databases"],
        ),
        (&["\\hz"], &[]),
        (&["hz?"], &[]),
        (&[""], &[]),
        (
            &["*max-*-entries*"],
            &[
                "hash-max-listpack-entries",
                "hash-max-ziplist-entries",
                "set-max-intset-entries",
                "set-max-listpack-entries",
                "zset-max-listpack-entries",
                "zset-max-ziplist-entries",
            ],
        ),
        (&["hz", "*hz*"], &["hz", "dynamic-hz"]),
    ];
    for (patterns, expected) in cases {
        assert_eq!(names(patterns), expected, "{patterns:?}");
    }
}

#[test]
fn start_up_checks_of_client_frameworks_pass() {
    let mut config = Config::new(FACTS);
    assert_eq!(get(&config, "notify-keyspace-events").as_deref(), Some(""));
    assert_eq!(
        set(&mut config, &["notify-keyspace-events", "Egx"]),
        Ok(vec!["notify-keyspace-events"])
    );
    assert_eq!(
        get(&config, "notify-keyspace-events").as_deref(),
        Some("gxE")
    );
    assert_eq!(get(&config, "databases").as_deref(), Some("16"));
}

#[test]
fn typed_getters_agree_with_the_text() {
    let config = load(
        b"port 7000\nbind 127.0.0.1 -::1\nunixsocket /tmp/s\nunixsocketperm 770\ntcp-backlog 10\ntcp-keepalive 0\ntimeout 3\n\
          protected-mode no\nmaxclients 5\nrequirepass p\ndatabases 3\nproto-max-bulk-len 1mb\nclient-query-buffer-limit 2mb\n\
          client-output-buffer-limit pubsub 1kb 2 3\nhz 0\nactive-expire-effort 9\ndir /d\ndaemonize yes\npidfile /p\nlogfile /l\n\
          loglevel WARNING\nsupervised systemd\nenable-debug-command local\nenable-protected-configs yes\nio-threads 3\n",
    )
    .expect("a valid file");
    let settings = config.settings();
    assert_eq!(settings.port(), 7000);
    assert_eq!(
        settings.bind(),
        [
            Box::from(b"127.0.0.1".as_slice()),
            Box::from(b"-::1".as_slice())
        ]
    );
    assert_eq!(
        (settings.unixsocket(), settings.unixsocketperm()),
        (Some(b"/tmp/s".as_slice()), 0o770)
    );
    assert_eq!(
        (
            settings.tcp_backlog(),
            settings.tcp_keepalive_seconds(),
            settings.timeout_seconds()
        ),
        (10, 0, 3)
    );
    assert_eq!(
        (
            settings.protected_mode(),
            settings.maxclients(),
            settings.databases()
        ),
        (false, 5, 3)
    );
    assert_eq!(settings.requirepass(), Some(b"p".as_slice()));
    assert_eq!(
        (
            settings.proto_max_bulk_len(),
            settings.client_query_buffer_limit()
        ),
        (1 << 20, 2 << 20)
    );
    assert_eq!(
        settings.client_output_buffer_limits()[2],
        OutputLimit {
            hard_bytes: 1024,
            soft_bytes: 2,
            soft_seconds: 3
        }
    );
    assert_eq!(
        settings.client_output_buffer_limits()[1].hard_bytes,
        256 << 20
    );
    assert_eq!((settings.hz(), settings.active_expire_effort()), (1, 9));
    assert_eq!(
        (settings.dir(), settings.daemonize()),
        (b"/d".as_slice(), true)
    );
    assert_eq!(
        (settings.pidfile(), settings.logfile()),
        (Some(b"/p".as_slice()), Some(b"/l".as_slice()))
    );
    assert_eq!(
        (settings.loglevel(), settings.supervised()),
        (LogLevel::Warning, Supervisor::Systemd)
    );
    assert_eq!(settings.enable_debug_command(), Permission::Local);
    assert!(
        settings.enable_debug_command().allows(true)
            && !settings.enable_debug_command().allows(false)
    );
    assert_eq!(
        (settings.enable_protected_configs(), settings.io_threads()),
        (Permission::Yes, 3)
    );
}

#[test]
fn settled_texts_are_shown_and_are_no_change() {
    let mut config = Config::new(FACTS);
    config.settle(ParameterId::Dir, b"/var/lib");
    assert_eq!(get(&config, "dir").as_deref(), Some("/var/lib"));
    assert_eq!(config.settings().generation(), 0);
}
