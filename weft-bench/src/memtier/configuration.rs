//! The options as reports tell of them: the `configuration` of the JSON report and what `--show-config` prints.
//!
//! Owns the names, which programs read, and their order.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::keys::Pattern;
use super::options::{Options, Requests, Sizes, Verify};
use crate::reach::Family;

/// How an option is told of.
enum Told {
    Number(Value),
    Text(String),
    /// `None`: null.
    Maybe(Option<String>),
    Flag(bool),
    /// Two numbers with a colon between them in JSON, a dash otherwise.
    Range(u64, u64),
}

/// All of them, as JSON.
pub fn json(options: &Options) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, told) in told(options) {
        let value = match told {
            Told::Number(number) => number,
            Told::Text(text) => Value::String(text),
            Told::Maybe(text) => text.map_or(Value::Null, Value::String),
            Told::Flag(flag) => Value::String(flag.to_string()),
            Told::Range(from, to) if name == "wait-timeout" => json!(format!("{from}-{to}")),
            Told::Range(from, to) => json!(format!("{from}:{to}")),
        };
        map.insert(name.to_owned(), value);
    }
    map
}

/// All of them, one a line.
pub fn text(options: &Options) -> String {
    let mut text = String::new();
    for (name, told) in told(options) {
        let value = match told {
            Told::Number(number) => number.to_string(),
            Told::Text(text) => text,
            Told::Maybe(text) => text.unwrap_or_else(|| "(null)".to_owned()),
            Told::Flag(true) => "yes".to_owned(),
            Told::Flag(false) => "no".to_owned(),
            Told::Range(from, to) => format!("{from}-{to}"),
        };
        // A String takes every text.
        let _ = writeln!(text, "{name} = {value}");
    }
    text
}

fn told(options: &Options) -> Vec<(&'static str, Told)> {
    use Told::{Flag, Maybe, Number, Range, Text};
    let path = |path: &Option<std::path::PathBuf>| {
        Maybe(path.as_ref().map(|path| path.display().to_string()))
    };
    let prefix = |prefix: &Option<std::ffi::OsString>| {
        Maybe(prefix.as_ref().map(|it| it.to_string_lossy().into_owned()))
    };
    let requests = match options.requests {
        Requests::Count(count) if options.test_seconds.is_none() => count,
        _ => 0,
    };
    let (sets, gets) = options.ratio;
    let (size, sizes, list) = match &options.data_sizes {
        Sizes::Fixed(size) => (*size, (0, 0), String::new()),
        Sizes::Range(from, to) => (0, (*from as u64, *to as u64), String::new()),
        Sizes::Weighted(sizes) => {
            let items: Vec<String> = sizes
                .iter()
                .map(|(size, weight)| format!("{size}:{weight}"))
                .collect();
            (0, (0, 0), items.join(","))
        }
    };
    let expiry = options.expiry.unwrap_or_default();
    let patterns = format!(
        "{}:{}",
        letter(options.key_patterns.0),
        letter(options.key_patterns.1)
    );
    let family = match options.family {
        Family::Any => "Unspecified",
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    };
    let protocol = match options.resp {
        None => "redis",
        Some(2) => "resp2",
        Some(_) => "resp3",
    };
    let account = match (&options.user, &options.password) {
        // Reports are passed on; secrets are not.
        (_, Some(_)) => "***",
        _ => "",
    };
    let (wait_ratio, replicas, timeout) = match &options.wait {
        Some(wait) => (
            (u64::from(wait.sets), u64::from(wait.waits)),
            wait.replicas,
            wait.timeout,
        ),
        None => Default::default(),
    };
    vec![
        ("server", Text(options.server.clone())),
        ("port", Number(json!(options.port))),
        ("uri", Text(options.uri.clone())),
        ("unix socket", path(&options.socket)),
        ("address family", Text(family.to_owned())),
        ("protocol", Text(protocol.to_owned())),
        ("out_file", path(&options.out_file)),
        ("tls", Flag(options.tls.enabled)),
        ("cert", path(&options.tls.certificate)),
        ("key", path(&options.tls.key)),
        ("cacert", path(&options.tls.authorities)),
        ("tls_skip_verify", Flag(options.tls.insecure)),
        ("sni", Maybe(options.tls.server_name.clone())),
        ("client_stats", prefix(&options.client_stats)),
        ("run_count", Number(json!(options.run_count))),
        ("debug", Number(json!(0))),
        ("requests", Number(json!(requests))),
        ("rate_limit", Number(json!(options.rate_limit))),
        ("clients", Number(json!(options.clients))),
        ("threads", Number(json!(options.threads))),
        (
            "test_time",
            Number(json!(options.test_seconds.unwrap_or(0))),
        ),
        ("ratio", Text(format!("{sets}:{gets}"))),
        ("pipeline", Number(json!(options.pipeline))),
        ("data_size", Number(json!(size))),
        ("data_offset", Number(json!(options.data_offset))),
        ("random_data", Flag(options.random_data)),
        ("data_size_range", Range(sizes.0, sizes.1)),
        ("data_size_list", Text(list)),
        (
            "data_size_pattern",
            Text(if options.sizes_by_key { "S" } else { "R" }.to_owned()),
        ),
        ("expiry_range", Range(expiry.0, expiry.1)),
        ("data_import", Maybe(None)),
        ("data_verify", Flag(options.verify != Verify::No)),
        ("verify_only", Flag(options.verify == Verify::Only)),
        ("generate_keys", Flag(false)),
        (
            "key_prefix",
            Text(String::from_utf8_lossy(&options.key_prefix).into_owned()),
        ),
        ("key_minimum", Number(json!(options.key_minimum))),
        ("key_maximum", Number(json!(options.key_maximum))),
        ("key_pattern", Text(patterns)),
        (
            "key_stddev",
            Number(json!(options.key_stddev.unwrap_or(0.0))),
        ),
        (
            "key_median",
            Number(json!(options.key_median.unwrap_or(0.0))),
        ),
        ("key_zipf_exp", Number(json!(options.zipf_exponent))),
        (
            "reconnect_interval",
            Number(json!(options.reconnect_interval)),
        ),
        (
            "connection_timeout",
            Number(json!(options.connection_seconds_max)),
        ),
        (
            "thread_conn_start_min_jitter_micros",
            Number(json!(options.start_jitter.0)),
        ),
        (
            "thread_conn_start_max_jitter_micros",
            Number(json!(options.start_jitter.1)),
        ),
        ("multi_key_get", Number(json!(options.multi_key_get))),
        ("authenticate", Text(account.to_owned())),
        ("select-db", Number(json!(options.database.unwrap_or(0)))),
        ("no-expiry", Flag(false)),
        ("wait-ratio", Range(wait_ratio.0, wait_ratio.1)),
        ("num-slaves", Range(replicas.0, replicas.1)),
        ("wait-timeout", Range(timeout.0, timeout.1)),
        ("print-all-runs", Flag(options.print_all_runs)),
    ]
}

fn letter(pattern: Pattern) -> char {
    match pattern {
        Pattern::Random => 'R',
        Pattern::Sequential => 'S',
        Pattern::Parallel => 'P',
        Pattern::Gaussian => 'G',
        Pattern::Zipf => 'Z',
    }
}
