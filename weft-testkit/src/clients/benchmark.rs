//! redis-benchmark: the tests that need strings only. What it reports, and what it leaves in the server.

use std::process::{Command, Stdio};

use weft_client::{Connection, Reply};

use super::{Site, Verdict, limited, said};
use crate::error::KitError;

/// Requests per test.
const REQUESTS: &str = "20000";

/// Options, the tests that run by them, and what is in the server afterwards.
type Run = (
    &'static [&'static str],
    &'static [&'static str],
    &'static [(&'static [&'static str], Left)],
);

/// A reply to a request after the run.
enum Left {
    Integer(i64),
    Bulk(&'static str),
    /// At least one and at most so many.
    UpTo(i64),
}

/// Without options for keys, a test uses one key, whose name has the placeholder as it stands. Its values are the letters that
/// the program fills them with.
const RUNS: &[Run] = &[
    (
        &["-t", "ping_inline,ping_mbulk,set,get,incr,mset"],
        &[
            "PING_INLINE",
            "PING_MBULK",
            "SET",
            "GET",
            "INCR",
            "MSET (10 keys)",
        ],
        &[
            (&["GET", "counter:__rand_int__"], Left::Bulk(REQUESTS)),
            (&["GET", "key:__rand_int__"], Left::Bulk("VXK")),
            (&["DBSIZE"], Left::Integer(2)),
        ],
    ),
    (
        &["-t", "set,get", "-P", "16", "-r", "1000", "-d", "100"],
        &["SET", "GET"],
        &[
            (&["STRLEN", "key:000000000007"], Left::Integer(100)),
            (&["DBSIZE"], Left::UpTo(1000)),
        ],
    ),
    (
        &["-t", "incr", "-r", "10", "-c", "200", "-k", "0"],
        &["INCR"],
        &[(&["DBSIZE"], Left::Integer(10))],
    ),
    (
        &["-t", "set,get", "-3", "--threads", "2"],
        &["SET", "GET"],
        &[(&["DBSIZE"], Left::Integer(1))],
    ),
    (
        &["APPEND", "grown", "x"],
        &["APPEND grown x"],
        &[
            (&["STRLEN", "grown"], Left::Integer(20_000)),
            (&["DBSIZE"], Left::Integer(1)),
        ],
    ),
];

/// All runs: each test is reported, nothing else is, and the data is what so many requests make.
pub(super) fn tests(site: &Site<'_>) -> Result<Verdict, KitError> {
    let program = site
        .oracles
        .redis_benchmark
        .as_deref()
        .ok_or_else(|| KitError::Missing(site.oracles.missing.join("; ")))?;
    let mut control = site.server.connect()?;
    let mut passed = 0;
    for (options, names, left) in RUNS {
        if control.command(&["FLUSHALL"])? != Reply::Simple(b"OK".to_vec()) {
            return Ok(Verdict::Failed("FLUSHALL failed".to_owned()));
        }
        let mut command = Command::new(program);
        command
            .args(["-p", &site.port, "-n", REQUESTS, "--csv"])
            .args(*options);
        let output = limited(command)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| KitError::Missing(format!("it cannot be run: {error}")))?;
        let line = options.join(" ");
        let failed = |what: &str| {
            Verdict::Failed(format!("redis-benchmark {line}: {what}: {}", said(&output)))
        };
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Ok(failed("it failed"));
        }
        let found: Option<Vec<&str>> = printed.lines().skip(1).map(test_name).collect();
        if found.as_deref() != Some(*names) {
            return Ok(failed("other tests are reported"));
        }
        passed += names.len();
        for (request, expected) in *left {
            if let Some(what) = differs(&mut control, request, expected)? {
                return Ok(failed(&what));
            }
            passed += 1;
        }
    }
    Ok(Verdict::Passed(passed))
}

/// The name in a line of comma-separated values whose rate, the second one, is above nothing.
fn test_name(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix('"')?.split_once("\",\"")?;
    let rate: f64 = rest.split('"').next()?.parse().ok()?;
    (rate > 0.0).then_some(name)
}

fn differs(
    control: &mut Connection,
    request: &[&str],
    expected: &Left,
) -> Result<Option<String>, KitError> {
    let reply = control.command(request)?;
    let is_right = match (expected, &reply) {
        (Left::Integer(expected), Reply::Integer(found)) => expected == found,
        (Left::UpTo(most), Reply::Integer(found)) => (1..=*most).contains(found),
        (Left::Bulk(expected), Reply::Bulk(found)) => expected.as_bytes() == found.as_slice(),
        _ => false,
    };
    Ok((!is_right).then(|| format!("{} was answered {reply:?}", request.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_test_if_it_has_a_rate() {
        assert_eq!(
            test_name("\"MSET (10 keys)\",\"123456.79\",\"0.2\""),
            Some("MSET (10 keys)")
        );
        assert_eq!(test_name("\"SET\",\"0.00\",\"0.2\""), None);
        assert_eq!(test_name("Error from server: ERR"), None);
    }
}
