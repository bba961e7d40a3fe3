//! Process titles, as Redis 8.2.3 shows and refuses them.

use super::*;

fn title(changes: &[&str], file: Option<&str>) -> Option<String> {
    let mut config = Config::new(FACTS);
    set(&mut config, changes).unwrap_or_else(|error| panic!("{error}"));
    process_title(
        config.settings(),
        b"/opt/redis-server",
        file.map(str::as_bytes),
    )
    .map(|title| String::from_utf8_lossy(&title).into_owned())
}

#[test]
fn placeholders_stand_for_settings() {
    for (template, expected) in [
        (
            "{title} {listen-addr} {server-mode}",
            "/opt/redis-server *:6379",
        ),
        (
            "{port}/{tls-port}/{unixsocket}/{config-file}",
            "6379/0///etc/c.conf",
        ),
        ("x", "x"),
        ("a}b", "a}b"),
        ("{{port}}", "{port}}"),
        ("{{title}", "{title}"),
        ("{listen-addr}}", "*:6379}"),
        ("{title}x", "/opt/redis-serverx"),
        ("{port}{title}", "6379/opt/redis-server"),
        ("{port}{port}{port}", "637963796379"),
        ("{port} {server-mode}", "6379"),
        ("{server-mode} x", "x"),
        ("x{server-mode}y", "xy"),
        ("{title}  {port}  ", "/opt/redis-server  6379"),
    ] {
        assert_eq!(
            title(&["proc-title-template", template], Some("/etc/c.conf")).as_deref(),
            Some(expected),
            "{template}"
        );
    }
    // Without a file.
    assert_eq!(
        title(&["proc-title-template", "{config-file}"], None).as_deref(),
        Some("-")
    );
    for (bind, expected) in [
        ("127.0.0.1 -::1", "127.0.0.1:7000"),
        ("-::1 127.0.0.1", "-::1:7000"),
        ("", "*:7000"),
    ] {
        let found = title(
            &[
                "bind",
                bind,
                "port",
                "7000",
                "proc-title-template",
                "{listen-addr}",
            ],
            None,
        );
        assert_eq!(found.as_deref(), Some(expected), "{bind}");
    }
}

#[test]
fn titles_that_could_be_empty_or_have_no_meaning_are_refused() {
    let mut config = Config::new(FACTS);
    for template in [
        "",
        "   ",
        "{title}",
        "{title}{title}",
        "{title} {title}",
        "{server-mode}",
        "{bogus}",
        "{ti",
        "a{",
        "{}",
    ] {
        assert_eq!(
            set(&mut config, &["proc-title-template", template]),
            Err(
                "ERR CONFIG SET failed (possibly related to argument 'proc-title-template') - \
                 template format is invalid or contains unknown variables"
                    .to_owned()
            ),
            "{template}"
        );
    }
}

#[test]
fn no_title_is_wanted_where_none_is_to_be_set() {
    let config = load(b"set-proc-title no\n").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(process_title(config.settings(), b"weft-server", None), None);
    let config =
        load(b"port 0\nunixsocket /run/w.sock\n").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        process_title(config.settings(), b"weft-server", None).as_deref(),
        Some(&b"weft-server unixsocket:/run/w.sock"[..])
    );
}
