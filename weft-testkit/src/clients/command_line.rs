//! redis-cli: requests, its options, and the modes that look at the whole server.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use weft_client::Reply;

use super::{Site, Verdict, install, limited, outcome};
use crate::error::KitError;

/// redis-cli's arguments, what it is given to read, and what it prints.
type Check = (&'static [&'static str], &'static str, &'static str);

const CHECKS: &[Check] = &[
    (&["FLUSHALL"], "", "OK\n"),
    (&["SET", "greeting", "hello"], "", "OK\n"),
    (&["GET", "greeting"], "", "hello\n"),
    (&["--no-raw", "GET", "greeting"], "", "\"hello\"\n"),
    (&["--no-raw", "GET", "nothing"], "", "(nil)\n"),
    (&["-3", "--no-raw", "GET", "nothing"], "", "(nil)\n"),
    (&["--no-raw", "INCR", "count"], "", "(integer) 1\n"),
    (
        &["--no-raw", "INCR", "greeting"],
        "",
        "(error) ERR value is not an integer or out of range\n",
    ),
    (
        &["--no-raw", "MGET", "greeting", "nothing"],
        "",
        "1) \"hello\"\n2) (nil)\n",
    ),
    (
        &["-3", "--no-raw", "CONFIG", "GET", "maxmemory-samples"],
        "",
        "1# \"maxmemory-samples\" => \"5\"\n",
    ),
    (&["-x", "SET", "read"], "from standard input", "OK\n"),
    (&["GET", "read"], "", "from standard input\n"),
    (&["-X", "here", "SET", "read", "here"], "tagged", "OK\n"),
    (&["GET", "read"], "", "tagged\n"),
    (&[], "SET a 1\nGET a\nPING\n", "OK\n1\nPONG\n"),
    (&["-d", ",", "MGET", "a", "greeting"], "", "1,hello\n"),
    (&["-D", "|", "GET", "a"], "", "1|"),
    (&["-r", "3", "INCR", "again"], "", "1\n2\n3\n"),
    (&["-r", "3", "-i", "0.01", "INCR", "again"], "", "4\n5\n6\n"),
    (&["-n", "1", "DBSIZE"], "", "0\n"),
    (
        &["--quoted-input", "SET", "\"a\\x00b\"", "zero"],
        "",
        "OK\n",
    ),
    (&["--quoted-input", "GET", "\"a\\x00b\""], "", "zero\n"),
    (&["--quoted-input", "DEL", "\"a\\x00b\""], "", "1\n"),
    (&["--scan", "--pattern", "gree*"], "", "greeting\n"),
    (
        &["--scan", "--quoted-pattern", "\"\\x67ree*\""],
        "",
        "greeting\n",
    ),
    (
        &["--csv", "MGET", "greeting", "nothing", "a"],
        "",
        "\"hello\",NULL,\"1\"\n",
    ),
    (
        &["-3", "--csv", "CONFIG", "GET", "maxmemory-samples"],
        "",
        "\"maxmemory-samples\",\"5\"\n",
    ),
    (
        &["-3", "--json", "MGET", "greeting", "nothing"],
        "",
        "[\"hello\",null]\n",
    ),
    (
        &["--json", "CONFIG", "GET", "maxmemory-samples"],
        "",
        "{\"maxmemory-samples\":\"5\"}\n",
    ),
    (
        &["--pipe"],
        "SET piped 1\r\nSET piped 2\r\n",
        "All data transferred. Waiting for the last reply...\nLast reply received from server.\nerrors: 0, replies: 2\n",
    ),
    (
        &["--pipe"],
        "*3\r\n$3\r\nSET\r\n$5\r\npiped\r\n$1\r\n3\r\n*2\r\n$4\r\nINCR\r\n$8\r\ngreeting\r\n",
        "All data transferred. Waiting for the last reply...\nLast reply received from server.\nerrors: 1, replies: 2\n",
    ),
    (&["GET", "piped"], "", "3\n"),
];

/// Requests and options, through TCP, a URL and the Unix socket.
pub(super) fn requests(site: &Site<'_>) -> Result<Verdict, KitError> {
    let program = program(site)?;
    for (arguments, input, expected) in CHECKS {
        if let Some(what) = differs(program, &["-p", &site.port], arguments, input, expected)? {
            return Ok(Verdict::Failed(what));
        }
    }
    let url = format!("redis://127.0.0.1:{}/0", site.port);
    for way in [["-u", &url], ["-s", &site.socket]] {
        if let Some(what) = differs(program, &way, &["GET", "greeting"], "", "hello\n")? {
            return Ok(Verdict::Failed(what));
        }
    }
    let many = "*2\r\n$4\r\nINCR\r\n$4\r\nmany\r\n".repeat(10_000);
    let all = "All data transferred. Waiting for the last reply...\nLast reply received from server.\nerrors: 0, replies: 10000\n";
    for (arguments, input, expected) in [
        (["--pipe"].as_slice(), many.as_str(), all),
        (&["GET", "many"], "", "10000\n"),
    ] {
        if let Some(what) = differs(program, &["-p", &site.port], arguments, input, expected)? {
            return Ok(Verdict::Failed(what));
        }
    }
    Ok(Verdict::Passed(CHECKS.len() + 4))
}

/// What begins the part of a scan's output that does not depend on the order of keys.
const SUMMARY: &str = "-------- summary -------\n\n";

/// `--bigkeys`, `--memkeys`, `--hotkeys` and `--latency`, which end by themselves where nobody looks on.
pub(super) fn scans(site: &Site<'_>) -> Result<Verdict, KitError> {
    let program = program(site)?;
    let mut control = site.server.connect()?;
    let large = "z".repeat(1000);
    let mut bytes = 0;
    let mut bytes_of_large = 0;
    control.command(&["FLUSHALL"])?;
    for (key, value) in [("k:1", "x"), ("k:2", "yy"), ("large", large.as_str())] {
        control.command(&["SET", key, value])?;
        match control.command(&["MEMORY", "USAGE", key])? {
            Reply::Integer(found) => bytes_of_large = found,
            other => {
                return Ok(Verdict::Failed(format!(
                    "MEMORY USAGE {key} was answered {other:?}"
                )));
            }
        }
        bytes += bytes_of_large;
    }
    // The connection would be one of those that redis-cli's statistics tell.
    drop(control);
    for (option, unit, of_large, all) in [
        (
            "--bigkeys",
            ["items", "fields", "entries", "members"],
            1000,
            1003,
        ),
        ("--memkeys", ["bytes"; 4], bytes_of_large, bytes),
    ] {
        let output = play(program, &["-p", &site.port], &[option], "")?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let summary = printed.split_once(SUMMARY).map(|(_, summary)| summary);
        let expected = summary_of(unit, of_large, all);
        if summary != Some(expected.as_str()) {
            return Ok(Verdict::Failed(format!(
                "redis-cli {option}: printed {printed:?}, which does not end in {expected:?}; {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )));
        }
    }
    let output = play(program, &["-p", &site.port], &["--hotkeys"], "")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let expected = "Error: ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.\n";
    if errors != expected {
        return Ok(Verdict::Failed(format!(
            "redis-cli --hotkeys: said {errors:?} instead of {expected:?}"
        )));
    }
    for (format, separator) in [("--raw", ' '), ("--csv", ',')] {
        let arguments = [format, "--latency", "-i", "0.2"];
        let output = play(program, &["-p", &site.port], &arguments, "")?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if !is_latency(&printed, separator) {
            return Ok(Verdict::Failed(format!(
                "redis-cli {}: printed {printed:?}",
                arguments.join(" ")
            )));
        }
    }
    Ok(Verdict::Passed(5))
}

/// The summary of the three keys. `units` are those of lists, hashes, streams, and of sets of both kinds.
fn summary_of(units: [&str; 4], of_large: i64, all: i64) -> String {
    let [items, fields, entries, members] = units;
    let none = |kind: &str, unit: &str| {
        format!("0 {kind} with 0 {unit} (00.00% of keys, avg size 0.00)\n")
    };
    [
        "Sampled 3 keys in the keyspace!\nTotal key length in bytes is 11 (avg len 3.67)\n\n",
        &format!("Biggest string found '\"large\"' has {of_large} bytes\n\n"),
        &none("lists", items),
        &none("hashs", fields),
        &format!(
            "3 strings with {all} bytes (100.00% of keys, avg size {:.2})\n",
            all as f64 / 3.0
        ),
        &none("streams", entries),
        &none("sets", members),
        &none("zsets", members),
    ]
    .concat()
}

/// "0 1 0.10 21\n": least, most and mean milliseconds, and how many PINGs.
fn is_latency(printed: &str, separator: char) -> bool {
    let numbers: Option<Vec<f64>> = printed.strip_suffix('\n').and_then(|line| {
        line.split(separator)
            .map(|word| word.parse().ok())
            .collect()
    });
    match numbers.as_deref() {
        Some([least, most, mean, count]) => least <= mean && mean <= most && *count > 0.0,
        _ => false,
    }
}

/// What it does at a prompt, and the modes that never end.
pub(super) fn terminal(site: &Site<'_>) -> Result<Verdict, KitError> {
    let mut command = Command::new("python3");
    command
        .arg(install::script("redis_cli_terminal.py"))
        .arg(program(site)?)
        .arg(&site.port);
    Ok(outcome(command))
}

fn program<'a>(site: &Site<'a>) -> Result<&'a Path, KitError> {
    site.oracles
        .redis_cli
        .as_deref()
        .ok_or_else(|| KitError::Missing(site.oracles.missing.join("; ")))
}

fn differs(
    program: &Path,
    way: &[&str],
    arguments: &[&str],
    input: &str,
    expected: &str,
) -> Result<Option<String>, KitError> {
    let output = play(program, way, arguments, input)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    Ok((printed != expected).then(|| {
        format!(
            "redis-cli {}: printed {printed:?} instead of {expected:?}; {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )
    }))
}

fn play(program: &Path, way: &[&str], arguments: &[&str], input: &str) -> Result<Output, KitError> {
    let doing = || "run redis-cli".to_owned();
    let mut command = Command::new(program);
    command.args(way).args(arguments);
    let mut child = limited(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(KitError::io(doing()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read its input may be gone already.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(KitError::io(doing()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_four_numbers_in_order() {
        assert!(is_latency("0 1 0.10 21\n", ' '));
        assert!(is_latency("0,1,0.05,21\n", ','));
        assert!(!is_latency("0 1 0.10 0\n", ' '));
        assert!(!is_latency("1 0 0.10 21\n", ' '));
        assert!(!is_latency("Error\n", ' '));
        assert!(!is_latency("", ' '));
    }
}
