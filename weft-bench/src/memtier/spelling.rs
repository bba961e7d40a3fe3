//! How the options of memtier_benchmark are spelled.
//!
//! Owns their names and letters, in the manner of `getopt_long`: `--name=value`, `--name value`, `-nvalue`, `-n value`, names
//! cut short where that is unambiguous. Does not know what an option means.

use super::options::Instead;
use super::value::{refuse, text};
use crate::spelling::{Spelling, switch, valued};

/// Reads a command line, without the program's name: calls `take` for each option with its name and its value, which is empty
/// for one that has none.
pub fn walk(
    arguments: &[Vec<u8>],
    mut take: impl FnMut(&'static str, &[u8]) -> Result<(), Instead>,
) -> Result<(), Instead> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if let Some(long) = argument.strip_prefix(b"--") {
            let (name, value) = match long.iter().position(|&byte| byte == b'=') {
                Some(at) => (&long[..at], Some(long[at + 1..].to_vec())),
                None => (long, None),
            };
            let spelling = find(name)?;
            let value = match (spelling.valued, value) {
                (true, None) => Some(rest.next().cloned().ok_or_else(|| missing(spelling))?),
                (false, Some(_)) => {
                    return refuse(format!("option --{} takes no value", spelling.name));
                }
                (_, value) => value,
            };
            take(spelling.name, &value.unwrap_or_default())?;
        } else if let Some(letters) = argument.strip_prefix(b"-").filter(|rest| !rest.is_empty()) {
            let mut letters = letters;
            while let Some((&letter, after)) = letters.split_first() {
                letters = after;
                let spelling = SPELLINGS
                    .iter()
                    .find(|spelling| spelling.letter == Some(letter))
                    .ok_or_else(|| unknown(&[b'-', letter]))?;
                let mut value = Vec::new();
                if spelling.valued {
                    value = match letters {
                        // As many programs have it.
                        [] if letter == b'h' && rest.len() == 0 => return Err(Instead::Usage),
                        [] => rest.next().cloned().ok_or_else(|| missing(spelling))?,
                        attached => attached.to_vec(),
                    };
                    letters = &[];
                }
                take(spelling.name, &value)?;
            }
        } else {
            return Err(unknown(argument));
        }
    }
    Ok(())
}

/// Every option of version 2.3, and the other names under which people publish them.
const SPELLINGS: &[Spelling] = &[
    valued(b's', "server"),
    valued(b'h', "host"),
    valued(b'p', "port"),
    valued(b'S', "unix-socket"),
    switch(b'4', "ipv4"),
    switch(b'6', "ipv6"),
    valued(b'P', "protocol"),
    valued(b'a', "authenticate"),
    valued(b'u', "uri"),
    switch(0, "tls"),
    valued(0, "cert"),
    valued(0, "key"),
    valued(0, "cacert"),
    switch(0, "tls-skip-verify"),
    valued(0, "tls-protocols"),
    valued(0, "sni"),
    valued(b'x', "run-count"),
    switch(b'D', "debug"),
    valued(0, "client-stats"),
    valued(b'o', "out-file"),
    valued(0, "json-out-file"),
    valued(0, "hdr-file-prefix"),
    switch(0, "show-config"),
    switch(0, "hide-histogram"),
    valued(0, "print-percentiles"),
    switch(0, "print-all-runs"),
    valued(0, "command-stats-breakdown"),
    switch(0, "cluster-mode"),
    switch(0, "help"),
    switch(b'v', "version"),
    valued(b'n', "requests"),
    valued(0, "rate-limiting"),
    valued(b'c', "clients"),
    valued(b't', "threads"),
    valued(0, "test-time"),
    valued(0, "run-time"),
    valued(0, "clients-start"),
    valued(0, "clients-step"),
    valued(0, "step-duration"),
    valued(0, "ratio"),
    valued(0, "pipeline"),
    valued(0, "reconnect-interval"),
    switch(0, "reconnect-on-error"),
    valued(0, "max-reconnect-attempts"),
    valued(0, "reconnect-backoff-factor"),
    valued(0, "connection-timeout"),
    valued(0, "thread-conn-start-min-jitter-micros"),
    valued(0, "thread-conn-start-max-jitter-micros"),
    valued(0, "multi-key-get"),
    valued(0, "select-db"),
    switch(0, "distinct-client-seed"),
    switch(0, "randomize"),
    valued(0, "command"),
    valued(0, "command-ratio"),
    valued(0, "command-key-pattern"),
    valued(0, "monitor-input"),
    valued(0, "monitor-pattern"),
    switch(0, "scan-incremental-iteration"),
    valued(0, "scan-incremental-max-iterations"),
    valued(b'd', "data-size"),
    valued(0, "data-offset"),
    switch(b'R', "random-data"),
    valued(0, "data-size-range"),
    valued(0, "data-size-list"),
    valued(0, "data-size-pattern"),
    valued(0, "expiry-range"),
    valued(0, "data-import"),
    switch(0, "data-verify"),
    switch(0, "verify-only"),
    switch(0, "generate-keys"),
    switch(0, "no-expiry"),
    valued(0, "key-prefix"),
    valued(0, "key-minimum"),
    valued(0, "key-maximum"),
    valued(0, "key-pattern"),
    valued(0, "key-stddev"),
    valued(0, "key-median"),
    valued(0, "key-zipf-exp"),
    valued(0, "wait-ratio"),
    valued(0, "num-slaves"),
    valued(0, "wait-timeout"),
    valued(0, "statsd-host"),
    valued(0, "statsd-port"),
    valued(0, "statsd-prefix"),
    valued(0, "statsd-run-label"),
    valued(0, "graphite-port"),
];

fn find(name: &[u8]) -> Result<&'static Spelling, Instead> {
    let exact = SPELLINGS.iter().find(|it| it.name.as_bytes() == name);
    if let Some(spelling) = exact {
        return Ok(spelling);
    }
    let mut cut = SPELLINGS
        .iter()
        .filter(|it| !name.is_empty() && it.name.as_bytes().starts_with(name));
    match (cut.next(), cut.next()) {
        (Some(spelling), None) => Ok(spelling),
        (Some(_), Some(_)) => refuse(format!("option --{} is ambiguous", text(name))),
        (None, _) => Err(unknown(&[b"--", name].concat())),
    }
}

fn unknown(argument: &[u8]) -> Instead {
    Instead::Refused(format!("unrecognized option {}", text(argument)))
}

fn missing(spelling: &Spelling) -> Instead {
    Instead::Refused(format!("option --{} needs a value", spelling.name))
}
