//! Configuration files, and what Redis 8.2.3 says of them.

use super::*;

/// The start's message for a line of the one loaded file.
fn message(line: &str, text: &str, reason: &str, place: &str) -> String {
    format!(
        "\n*** FATAL CONFIG FILE ERROR (Redis 8.2.3) ***\nReading the configuration file, at line {line}\n>>> '{text}'\n{reason}\n({place}, line {line})\n"
    )
}

fn load_files(files: &[(&str, &str)]) -> Result<Config, StartError> {
    let command_line = CommandLine {
        file: Some(files[0].0.to_owned()),
        ..CommandLine::default()
    };
    Config::load(&command_line, &mut Files::of(files), FACTS)
}

fn error_of(files: &[(&str, &str)]) -> String {
    match load_files(files) {
        Ok(_) => panic!("{files:?} was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn lines_are_accepted_and_refused_as_by_the_oracle() {
    let mut checked = 0;
    for line in include_str!("oracle_files.txt").lines() {
        let Some((words, outcome)) = quoted_words(line) else {
            continue;
        };
        checked += 1;
        let text = &words[0];
        let found = load(text);
        if outcome == "OK" {
            assert!(
                found.is_ok(),
                "{line}: {}",
                found
                    .err()
                    .map_or_else(String::new, |error| error.to_string())
            );
            continue;
        }
        let [_, number, shown, reason] = &texts(words)[..] else {
            panic!("{line}")
        };
        let error = match found {
            Ok(_) => panic!("{line}: accepted"),
            Err(error) => error.to_string(),
        };
        let shown = if shown.starts_with("sentinel ") {
            "sentinel (value not shown)"
        } else {
            shown
        };
        assert_eq!(
            error,
            message(number, shown, reason, "file '/etc/c.conf'"),
            "{line}"
        );
    }
    assert!(checked > 100, "only {checked} files were checked");
}

#[test]
fn unknown_names_stop_the_start_with_file_line_and_text() {
    assert_eq!(
        error_of(&[("/a.conf", "port 1\n\nnosuch  \"a b\"  c\n")]),
        message(
            "3",
            "nosuch  \"a b\"  c",
            "Bad directive or wrong number of arguments",
            "file '/a.conf'"
        )
    );
    assert_eq!(
        error_of(&[
            ("/a.conf", "include /b.conf\n"),
            ("/b.conf", "# x\nsearch-timeout 5\n")
        ]),
        message(
            "2",
            "search-timeout 5",
            "Bad directive or wrong number of arguments",
            "file '/b.conf'"
        )
    );
}

#[test]
fn what_is_not_built_yet_stops_the_start_at_its_line() {
    for line in [
        "appendonly yes",
        "save 900 1",
        "save \"3600 1 300 100\"",
        "maxmemory 100mb",
        "replicaof 127.0.0.1 6379",
        "slaveof localhost 6379",
        "tls-port 6380",
        "aclfile /etc/users.acl",
        "cluster-enabled yes",
        "loadmodule /x.so",
        "rename-command FLUSHALL \"\"",
    ] {
        let error = error_of(&[("/a.conf", &format!("port 1\n{line}\ntimeout 1\n"))]);
        let start = format!(
            "\n*** FATAL CONFIG FILE ERROR (Redis 8.2.3) ***\nReading the configuration file, at line 2\n>>> '{line}'\n"
        );
        assert!(
            error.starts_with(&start) && error.ends_with("(file '/a.conf', line 2)\n"),
            "{error}"
        );
        assert!(error.contains("not available"), "{error}");
    }
    // Line by line they are harmless; the value that is left decides.
    for text in [
        "save 900 1\nsave 300 10\nsave \"\"\n",
        "appendonly yes\nappendonly no\n",
        "replicaof a 1\nreplicaof no one\n",
    ] {
        assert!(load(text.as_bytes()).is_ok(), "{text}");
    }
    // The first one is named.
    let error = error_of(&[(
        "/a.conf",
        "maxmemory 1\nrename-command A B\nappendonly yes\n",
    )]);
    assert!(error.contains("\n>>> 'maxmemory 1'\n"), "{error}");
    let error = error_of(&[("/a.conf", "rename-command A B\nmaxmemory 1\n")]);
    assert!(error.contains("\n>>> 'rename-command A B'\n"), "{error}");
}

#[test]
fn the_default_user_that_the_reference_writes_is_understood() {
    let hash = "#2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let open = "user default on nopass sanitize-payload ~* &* +@all\n";
    let closed = format!("user default on sanitize-payload {hash} ~* &* +@all\n");
    for text in [
        open.to_owned(),
        "user default on nopass allkeys allchannels allcommands\n".to_owned(),
        format!("{closed}\nrequirepass \"foo\"\n"),
        format!("{open}requirepass foo\n"),
    ] {
        let config = load(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let expected = text.contains("requirepass").then_some(&b"foo"[..]);
        assert_eq!(config.settings().requirepass(), expected, "{text}");
        let rewritten = config.rewrite(text.as_bytes());
        assert_eq!(
            String::from_utf8_lossy(&rewritten),
            text.replace("requirepass foo", "requirepass \"foo\"")
        );
    }
    for text in [
        closed.clone(),
        format!("requirepass foo\n{closed}"),
        format!("requirepass foo\n{open}"),
        format!("{closed}requirepass \"\"\n"),
        "user default off nopass ~* &* +@all\n".to_owned(),
        "user default on nopass ~x* &* +@all\n".to_owned(),
        "user default on nopass ~* &* +@all -flushall\n".to_owned(),
        "user default on nopass ~* +@all\n".to_owned(),
        "user other on nopass ~* &* +@all\n".to_owned(),
    ] {
        let error = error_of(&[("/a.conf", &text)]);
        assert!(
            error.contains(">>> 'user (value not shown)'")
                && error.contains("access control lists are not available yet"),
            "{text}: {error}"
        );
    }
}

#[test]
fn io_threads_of_zero_stop_the_start_with_the_reason() {
    assert_eq!(
        error_of(&[("/a.conf", "io-threads 0\n")]),
        message(
            "1",
            "io-threads 0",
            "argument must be between 1 and 1024 inclusive",
            "file '/a.conf'"
        )
    );
}

#[test]
fn passwords_are_never_printed() {
    for line in [
        "requirepass hunter2 x",
        "REQUIREPASS \"hunter2",
        "\"requirepass\" hunter2 x",
        "masterauth hunter2 x",
        "primaryauth hunter2 x",
        "tls-key-file-pass hunter2 x",
        "user alice on >hunter2",
        "sentinel auth-pass m hunter2",
        "requirepass=hunter2",
        "\"\\x72equirepass\" hunter2 x",
    ] {
        let error = error_of(&[("/a.conf", line)]);
        assert!(
            !error.contains("hunter2") && error.contains("(value not shown)"),
            "{error}"
        );
    }
}

#[test]
fn includes_nest_follow_patterns_and_later_lines_win() {
    let config = load_files(&[
        (
            "/a.conf",
            "hz 20\ninclude /d/*.conf\ntimeout 9\ninclude \"/e.conf\"\n",
        ),
        ("/d/1.conf", "hz 30\ntimeout 1\n"),
        ("/d/2.conf", "INCLUDE /f.conf\nhz 40\n"),
        ("/e.conf", "maxclients 77"),
        ("/f.conf", "tcp-keepalive 60\nhz 35\n"),
    ])
    .unwrap_or_else(|error| panic!("{error}"));
    let settings = config.settings();
    assert_eq!((settings.hz(), settings.timeout_seconds()), (40, 9));
    assert_eq!(
        (settings.maxclients(), settings.tcp_keepalive_seconds()),
        (77, 60)
    );
    let origin = config.origin(ParameterId::TcpKeepalive).expect("the line");
    assert_eq!(
        (&origin.source, origin.line),
        (&Source::File("/f.conf".into()), 1)
    );
    assert!(load_files(&[("/a.conf", "include /nothing/*.conf\n")]).is_ok());
    assert_eq!(
        error_of(&[("/a.conf", "include /none.conf\n")]),
        "Fatal error, can't open config file '/none.conf': No such file or directory"
    );
}

#[test]
fn a_file_that_includes_itself_ends_in_an_error() {
    for text in [
        "include /a.conf\n",
        "include /a*\ninclude /a*\n",
        "include /b.conf\ninclude /b.conf\n",
    ] {
        let error = error_of(&[("/a.conf", text), ("/b.conf", "include /a.conf\n")]);
        assert!(
            error.contains("too many included files; does a file include itself?"),
            "{error}"
        );
    }
}

#[test]
fn parameters_without_effect_are_listed_once_set() {
    assert!(Config::new(FACTS).without_effect().is_empty());
    let config = load(b"port 7000\nlazyfree-lazy-user-del yes\ntimeout 4\nslave-priority 5\nlist-compress-depth 1\nhz 10\nio-threads 4\n")
        .expect("a valid file");
    assert_eq!(
        config.without_effect(),
        ["list-compress-depth", "replica-priority"]
    );
}

#[test]
fn retired_lines_are_accepted() {
    for name in RETIRED {
        assert!(load(format!("{name} yes\n").as_bytes()).is_ok(), "{name}");
    }
}

#[test]
fn errors_found_when_a_value_is_applied_name_its_line() {
    let config = load(b"\ndir /nonexistent\n").expect("a valid file");
    assert_eq!(
        config
            .start_error(ParameterId::Dir, "No such file or directory")
            .to_string(),
        message(
            "2",
            "dir /nonexistent",
            "No such file or directory",
            "file '/etc/c.conf'"
        )
    );
}

#[test]
fn save_and_output_limits_collect_over_lines() {
    let config = load(
        b"client-output-buffer-limit normal 1 2 3\nclient-output-buffer-limit replica 4mb 5 6\n\
          client-output-buffer-limit pubsub 7 8 9\nclient-output-buffer-limit normal 0 0 0\n",
    )
    .expect("a valid file");
    assert_eq!(
        get(&config, "client-output-buffer-limit").as_deref(),
        Some("normal 0 0 0 slave 4194304 5 6 pubsub 7 8 9")
    );
}

#[test]
fn every_parameter_of_three_servers_is_a_line_with_its_default() {
    let mut checked = 0;
    for section in include_str!("oracle_defaults.txt").split("# ").skip(2) {
        let (server, lines) = section.split_once('\n').expect("a title");
        // Saving and replication are not there yet; the reference itself reads no empty `replicaof` from a file.
        let lines: Vec<&str> = lines
            .lines()
            .filter(|line| {
                !["save ", "replicaof ", "slaveof "]
                    .iter()
                    .any(|name| line.starts_with(name))
            })
            .collect();
        let text = lines.join("\n") + "\n";
        let config = load(text.as_bytes()).unwrap_or_else(|error| panic!("{server}: {error}"));
        for line in &lines {
            let (name, value) = line.split_once(' ').expect("a name and a value");
            assert_eq!(
                get(&config, name).as_deref(),
                Some(value.trim_matches('"')),
                "{server}: {name}"
            );
        }
        // Rewritten, it still says the same.
        let rewritten = config.rewrite(text.as_bytes());
        let again = load(&rewritten).unwrap_or_else(|error| panic!("{server}: {error}"));
        for id in ParameterId::ALL {
            assert_eq!(
                config.settings().show(*id),
                again.settings().show(*id),
                "{server}: {}",
                id.name()
            );
        }
        checked += lines.len();
    }
    assert_eq!(checked, 616);
}
