//! Command lines, and what Redis 8.2.3 makes of them.

use super::*;

fn arguments(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn files() -> Files {
    Files::of(&[("C", "hz 10\ntimeout 5\n"), ("$", "tcp-keepalive 7\n\n")])
}

fn load_arguments(words: &[Vec<u8>]) -> Result<Config, StartError> {
    match Invocation::parse(words) {
        Invocation::Serve(command_line) => Config::load(&command_line, &mut files(), FACTS),
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_fail_as_at_the_oracle() {
    let mut checked = 0;
    for line in include_str!("oracle_args.txt").lines() {
        let Some((mut words, _)) = quoted_words(line) else {
            continue;
        };
        checked += 1;
        let slash = words
            .iter()
            .rposition(|word| word == b"/")
            .expect("a slash");
        let expected = texts(words.split_off(slash + 1));
        words.pop();
        let error = match load_arguments(&words) {
            Ok(_) => panic!("{line}: accepted"),
            Err(error) => error.to_string(),
        };
        let [number, text, reason] = &expected[..] else {
            panic!("{line}")
        };
        if number == "fatal" {
            assert_eq!(error, *text, "{line}");
            continue;
        }
        assert_eq!(
            error,
            format!(
                "\n*** FATAL CONFIG FILE ERROR (Redis 8.2.3) ***\nReading the configuration file, at line {number}\n\
                 >>> '{}'\n{reason}\n(command line, line {number})\n",
                if text.starts_with("requirepass") {
                    "requirepass (value not shown)"
                } else {
                    text
                }
            ),
            "{line}"
        );
    }
    assert!(checked > 50, "only {checked} command lines were checked");
}

#[test]
fn options_override_standard_input_which_overrides_the_file() {
    let config = load_arguments(&arguments(&[
        "C", "--hz", "30", "--bind", "a", "-::1", "--save", "--port", "7000", "-",
    ]))
    .unwrap_or_else(|error| panic!("{error}"));
    let settings = config.settings();
    assert_eq!(
        (
            settings.hz(),
            settings.timeout_seconds(),
            settings.tcp_keepalive_seconds()
        ),
        (30, 5, 7)
    );
    assert_eq!(
        (get(&config, "bind").as_deref(), settings.port()),
        (Some("a -::1"), 7000)
    );
    let config = load_arguments(&arguments(&["-", "--tcp-keepalive", "9"]))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.settings().tcp_keepalive_seconds(), 9);
}

#[test]
fn an_option_may_bring_its_value_in_the_same_argument() {
    for (words, timeout, title) in [
        (&["--timeout 3", "--loglevel verbose"][..], 3, None),
        (&["--timeout 3", "--loglevel", "verbose"], 3, None),
        (&["--timeout ", "4", "--loglevel\tverbose"], 4, None),
        (&["--timeout  3 ", "--loglevel 'verbose'"], 3, None),
        (
            &["--proc-title-template", "--x", "--loglevel verbose"],
            0,
            Some("--x"),
        ),
        (
            &["--proc-title-template --x", "--loglevel verbose"],
            0,
            Some("--x"),
        ),
    ] {
        let config = load_arguments(&arguments(words)).unwrap_or_else(|error| panic!("{error}"));
        let settings = config.settings();
        assert_eq!(settings.timeout_seconds(), timeout, "{words:?}");
        assert_eq!(settings.loglevel(), LogLevel::Verbose, "{words:?}");
        if title.is_some() {
            let shown = get(&config, "proc-title-template");
            assert_eq!(shown.as_deref(), title, "{words:?}");
        }
    }
    for (words, line, reason) in [
        (
            &["--timeout 3", "4"][..],
            "timeout 3 \"4\"",
            "wrong number of arguments",
        ),
        (
            &["--proc-title-template 'a", "--timeout 3"],
            "proc-title-template 'a",
            "Unbalanced quotes in configuration line",
        ),
    ] {
        let error = match load_arguments(&arguments(words)) {
            Ok(_) => panic!("{words:?}: accepted"),
            Err(error) => error.to_string(),
        };
        let expected = format!(">>> '{line}'\n{reason}\n");
        assert!(error.contains(&expected), "{words:?}: {error}");
    }
}

#[test]
fn values_pass_unharmed_through_their_quotes() {
    let odd: Vec<u8> = (0..=255).collect();
    let config = load_arguments(&[
        b"--requirepass".to_vec(),
        odd.clone(),
        b"--unixsocket".to_vec(),
        b"/a b'\"".to_vec(),
    ])
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.settings().requirepass(), Some(odd.as_slice()));
    assert_eq!(config.settings().unixsocket(), Some(b"/a b'\"".as_slice()));
    let config = load_arguments(&arguments(&[
        "--shutdown-on-sigint",
        "nosave force",
        "--shutdown-on-sigterm",
        "now",
        "force",
    ]))
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        get(&config, "shutdown-on-sigint").as_deref(),
        Some("nosave force")
    );
    assert_eq!(
        get(&config, "shutdown-on-sigterm").as_deref(),
        Some("now force")
    );
}

#[test]
fn modes_are_told_apart() {
    let cases: [(&[&str], Invocation); 9] = [
        (&["-v"], Invocation::Version),
        (&["--version", "x"], Invocation::Version),
        (&["-h"], Invocation::Help),
        (&["--help", "x"], Invocation::Help),
        (&["--check-system"], Invocation::CheckSystem),
        (&[], Invocation::Serve(CommandLine::default())),
        (
            &["--"],
            Invocation::Serve(CommandLine {
                options: vec![b" ".to_vec()],
                ..CommandLine::default()
            }),
        ),
        (
            &["-"],
            Invocation::Serve(CommandLine {
                stdin: true,
                ..CommandLine::default()
            }),
        ),
        (
            &["/c", "-"],
            Invocation::Serve(CommandLine {
                file: Some("/c".into()),
                stdin: true,
                options: Vec::new(),
            }),
        ),
    ];
    for (words, expected) in cases {
        assert_eq!(Invocation::parse(&arguments(words)), expected, "{words:?}");
    }
    for words in [
        &["--sentinel"][..],
        &["/c", "--sentinel"],
        &["--test-memory", "10"],
    ] {
        assert!(
            matches!(Invocation::parse(&arguments(words)), Invocation::Refused(_)),
            "{words:?}"
        );
    }
}

#[test]
fn the_usage_names_the_program() {
    assert!(
        usage("weft-server")
            .starts_with("Usage: weft-server [/path/to/redis.conf] [options] [-]\n")
    );
}

#[test]
fn links_decide_which_program_this_is() {
    for name in ["weft-server", "redis-server-7", "", "valkey-server"] {
        assert_eq!(Program::of(name), Program::Server, "{name}");
    }
    assert_eq!(Program::of("redis-server"), Program::RedisServer);
    for name in ["redis-sentinel", "redis-check-rdb", "redis-check-aof"] {
        assert!(matches!(Program::of(name), Program::Other(_)), "{name}");
    }
    assert_eq!(
        Program::RedisServer.version("jemalloc-5.3.0"),
        "Redis server v=7.2.4 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=weft-0.1.0"
    );
    assert_eq!(
        Program::Server.version("jemalloc-5.3.0"),
        "Weft server v=0.1.0 malloc=jemalloc-5.3.0 bits=64"
    );
}
