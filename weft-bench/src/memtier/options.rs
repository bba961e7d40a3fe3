//! The options of memtier_benchmark: how they are spelled, read and checked.
//!
//! Owns the command line down to the values, in the manner of `getopt_long`: `--name=value`, `--name value`, `-nvalue`,
//! `-n value`, names cut short where that is unambiguous. Spellings that people publish although memtier refuses them are
//! taken for what they mean, and a note says what that is. Does not connect and does not print.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::keys::Pattern;

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub server: String,
    pub port: u16,
    pub socket: Option<PathBuf>,
    /// `HELLO` with this version.
    pub resp: Option<u8>,
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
    pub run_count: u32,
    pub out_file: Option<PathBuf>,
    pub json_out_file: Option<PathBuf>,
    pub hide_histogram: bool,
    pub percentiles: Vec<f64>,
    pub print_all_runs: bool,
    pub breakdown: Breakdown,
    pub requests: Requests,
    /// Requests per second of one connection; 0: no limit.
    pub rate_limit: u64,
    /// Connections of each thread.
    pub clients: usize,
    pub threads: usize,
    /// Seconds; instead of a number of requests.
    pub test_seconds: Option<u64>,
    pub ratio: (u32, u32),
    pub pipeline: u32,
    /// 0: connections are kept.
    pub reconnect_interval: u64,
    /// 0: GET.
    pub multi_key_get: u32,
    pub database: Option<i64>,
    pub distinct_client_seed: bool,
    pub randomize: bool,
    pub commands: Vec<CommandOption>,
    pub data_sizes: Sizes,
    pub data_offset: usize,
    pub random_data: bool,
    /// Sizes are spread over the keys rather than drawn.
    pub sizes_by_key: bool,
    /// Seconds, from and to.
    pub expiry: Option<(u64, u64)>,
    pub key_prefix: Vec<u8>,
    pub key_minimum: u64,
    pub key_maximum: u64,
    pub key_patterns: (Pattern, Pattern),
    pub key_stddev: Option<f64>,
    pub key_median: Option<f64>,
    pub zipf_exponent: f64,
    /// How things were understood that memtier refuses: "X as Y".
    pub understood: Vec<String>,
}

/// How many requests each connection sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    Count(u64),
    /// As many as there are keys.
    AllKeys,
}

/// What a line of the report is about, when commands are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breakdown {
    /// All commands of a name.
    Command,
    /// One command of the command line.
    Line,
}

/// Sizes of values in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    Fixed(usize),
    Range(usize, usize),
    /// Sizes with their weights, none of them 0.
    Weighted(Vec<(usize, u32)>),
}

/// `--command` with the options that follow it.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandOption {
    pub text: Vec<u8>,
    pub ratio: u32,
    pub pattern: Pattern,
}

/// What to do instead of measuring.
#[derive(Debug, PartialEq, Eq)]
pub enum Instead {
    Usage,
    Version,
    /// Something is wrong; this says what.
    Refused(String),
}

/// The longest value in bytes: what a server takes.
const DATA_BYTES_MAX: u64 = 512 << 20;

/// More connections of a thread, threads or requests under way than make sense anywhere.
const CLIENTS_MAX: u64 = 1 << 20;
const THREADS_MAX: u64 = 1024;
const PIPELINE_MAX: u64 = 1 << 20;

impl Default for Options {
    fn default() -> Options {
        Options {
            server: "localhost".to_owned(),
            port: 6379,
            socket: None,
            resp: None,
            user: None,
            password: None,
            run_count: 1,
            out_file: None,
            json_out_file: None,
            hide_histogram: false,
            percentiles: vec![50.0, 99.0, 99.9],
            print_all_runs: false,
            breakdown: Breakdown::Command,
            requests: Requests::Count(10_000),
            rate_limit: 0,
            clients: 50,
            threads: 4,
            test_seconds: None,
            ratio: (1, 10),
            pipeline: 1,
            reconnect_interval: 0,
            multi_key_get: 0,
            database: None,
            distinct_client_seed: false,
            randomize: false,
            commands: Vec::new(),
            data_sizes: Sizes::Fixed(32),
            data_offset: 0,
            random_data: false,
            sizes_by_key: false,
            expiry: None,
            key_prefix: b"memtier-".to_vec(),
            key_minimum: 0,
            key_maximum: 10_000_000,
            key_patterns: (Pattern::Random, Pattern::Random),
            key_stddev: None,
            key_median: None,
            zipf_exponent: 1.0,
            understood: Vec::new(),
        }
    }
}

/// An option as it is spelled.
struct Spelling {
    letter: Option<u8>,
    name: &'static str,
    valued: bool,
}

const fn valued(letter: u8, name: &'static str) -> Spelling {
    Spelling {
        letter: if letter == 0 { None } else { Some(letter) },
        name,
        valued: true,
    }
}

const fn switch(letter: u8, name: &'static str) -> Spelling {
    Spelling {
        letter: if letter == 0 { None } else { Some(letter) },
        name,
        valued: false,
    }
}

/// Every option of version 2.3, and the other names under which people publish them.
const SPELLINGS: &[Spelling] = &[
    valued(b's', "server"),
    valued(0, "host"),
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
    switch(b'h', "help"),
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

/// Reads a command line, without the program's name.
pub fn parse(arguments: &[Vec<u8>]) -> Result<Options, Instead> {
    let mut options = Options::default();
    let mut seen = Seen::default();
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
            options.take(spelling.name, &value.unwrap_or_default(), &mut seen)?;
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
                        [] => rest.next().cloned().ok_or_else(|| missing(spelling))?,
                        attached => attached.to_vec(),
                    };
                    letters = &[];
                }
                options.take(spelling.name, &value, &mut seen)?;
            }
        } else {
            return Err(unknown(argument));
        }
    }
    options.settle(&seen)?;
    Ok(options)
}

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

fn refuse<T>(why: String) -> Result<T, Instead> {
    Err(Instead::Refused(why))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Options that matter together with others.
#[derive(Default)]
struct Seen {
    requests: bool,
    ratio: Option<Vec<u32>>,
    key_pattern: bool,
    size_pattern: bool,
    sizes: u32,
}

impl Options {
    fn take(&mut self, name: &str, value: &[u8], seen: &mut Seen) -> Result<(), Instead> {
        let count = |least: u64, most: u64| number(name, value, least, most);
        match name {
            "server" | "host" => self.server = text(value),
            "port" => self.port = count(1, 65_535)? as u16,
            "unix-socket" => self.socket = Some(OsStr::from_bytes(value).into()),
            "protocol" => match value {
                b"redis" => self.resp = None,
                b"resp2" => self.resp = Some(2),
                b"resp3" => self.resp = Some(3),
                b"memcache_text" | b"memcache_binary" => {
                    return refuse(format!("protocol {} is not supported", text(value)));
                }
                _ => return refuse(format!("there is no protocol {}", text(value))),
            },
            "authenticate" => match value.iter().position(|&byte| byte == b':') {
                Some(at) => {
                    self.user = Some(value[..at].to_vec()).filter(|user| !user.is_empty());
                    self.password = Some(value[at + 1..].to_vec());
                }
                None => self.password = Some(value.to_vec()),
            },
            "uri" => self.locate(value)?,
            "run-count" => self.run_count = count(1, 1_000_000)? as u32,
            "out-file" => self.out_file = Some(OsStr::from_bytes(value).into()),
            "json-out-file" => self.json_out_file = Some(OsStr::from_bytes(value).into()),
            "hide-histogram" => self.hide_histogram = true,
            "print-percentiles" => self.percentiles = percentiles(value)?,
            "print-all-runs" => self.print_all_runs = true,
            "command-stats-breakdown" => {
                self.breakdown = match value {
                    b"command" => Breakdown::Command,
                    b"line" => Breakdown::Line,
                    _ => return refuse(format!("--{name} is command or line")),
                }
            }
            "requests" if value == b"allkeys" => {
                self.requests = Requests::AllKeys;
                seen.requests = true;
            }
            "requests" => {
                self.requests = Requests::Count(count(1, u64::MAX)?);
                seen.requests = true;
            }
            "rate-limiting" => self.rate_limit = count(1, 1_000_000_000)?,
            "clients" => self.clients = count(1, CLIENTS_MAX)? as usize,
            "threads" => self.threads = count(1, THREADS_MAX)? as usize,
            "test-time" => self.test_seconds = Some(count(1, 1 << 31)?),
            "run-time" => {
                self.test_seconds = Some(count(1, 1 << 31)?);
                self.understood.push("--run-time as --test-time".to_owned());
            }
            "ratio" => seen.ratio = Some(ratio(name, value)?),
            "pipeline" => self.pipeline = count(1, PIPELINE_MAX)? as u32,
            "reconnect-interval" => self.reconnect_interval = count(1, u64::MAX)?,
            "multi-key-get" => self.multi_key_get = count(0, 1 << 20)? as u32,
            "select-db" => self.database = Some(count(0, 1 << 31)? as i64),
            "distinct-client-seed" => self.distinct_client_seed = true,
            "randomize" => self.randomize = true,
            "command" => {
                let text = self.understood(value);
                self.commands.push(CommandOption {
                    text,
                    ratio: 1,
                    pattern: Pattern::Random,
                });
            }
            "command-ratio" => self.last_command(name)?.ratio = count(1, 1 << 30)? as u32,
            "command-key-pattern" => self.last_command(name)?.pattern = pattern(name, value)?,
            "data-size" => {
                self.data_sizes = Sizes::Fixed(count(1, DATA_BYTES_MAX)? as usize);
                seen.sizes += 1;
            }
            "data-offset" => self.data_offset = count(0, DATA_BYTES_MAX)? as usize,
            "random-data" => self.random_data = true,
            "data-size-range" => {
                let (from, to) = range(name, value, DATA_BYTES_MAX)?;
                self.data_sizes = Sizes::Range(from.max(1) as usize, to.max(1) as usize);
                seen.sizes += 1;
            }
            "data-size-list" => {
                self.data_sizes = Sizes::Weighted(weights(name, value)?);
                seen.sizes += 1;
            }
            "data-size-pattern" => {
                seen.size_pattern = true;
                self.sizes_by_key = match value {
                    b"R" => false,
                    b"S" => true,
                    _ => return refuse(format!("--{name} is R or S")),
                }
            }
            "expiry-range" => self.expiry = Some(range(name, value, 1 << 31)?),
            "key-prefix" => self.key_prefix = value.to_vec(),
            "key-minimum" => self.key_minimum = count(0, u64::MAX - 1)?,
            "key-maximum" => self.key_maximum = count(1, u64::MAX - 1)?,
            "key-pattern" => {
                let (set, get) = match value.iter().position(|&byte| byte == b':') {
                    Some(at) => (&value[..at], &value[at + 1..]),
                    None => return refuse(format!("--{name} is two letters, such as R:R")),
                };
                self.key_patterns = (pattern(name, set)?, pattern(name, get)?);
                seen.key_pattern = true;
            }
            "key-stddev" => self.key_stddev = Some(positive(name, value)?),
            "key-median" => self.key_median = Some(positive(name, value)?),
            "key-zipf-exp" => {
                self.zipf_exponent = positive(name, value)?;
                if self.zipf_exponent >= 5.0 {
                    return refuse(format!("--{name} must be below 5"));
                }
            }
            "help" => return Err(Instead::Usage),
            "version" => return Err(Instead::Version),
            // What they ask for is the case anyway, or has nothing to work on without TLS.
            "debug" | "show-config" | "cert" | "key" | "cacert" | "tls-skip-verify"
            | "tls-protocols" | "sni" | "no-expiry" | "connection-timeout" => {}
            "data-import" | "generate-keys" => {
                return refuse(format!("--{name}: importing data is not supported"));
            }
            _ => return refuse(format!("--{name} is not supported yet")),
        }
        Ok(())
    }

    fn last_command(&mut self, name: &str) -> Result<&mut CommandOption, Instead> {
        self.commands
            .last_mut()
            .ok_or_else(|| Instead::Refused(format!("--{name} belongs behind a --command")))
    }

    /// The command with the names of placeholders that memtier has.
    fn understood(&mut self, command: &[u8]) -> Vec<u8> {
        let mut command = command.to_vec();
        for (published, own) in [("{{id}}", "__key__"), ("{{value}}", "__data__")] {
            if memchr::memmem::find(&command, published.as_bytes()).is_none() {
                continue;
            }
            command = crate::substitute::replaced(&command, published.as_bytes(), own.as_bytes());
            let note = format!("{published} as {own}");
            if !self.understood.contains(&note) {
                self.understood.push(note);
            }
        }
        command
    }

    fn locate(&mut self, value: &[u8]) -> Result<(), Instead> {
        let place =
            crate::uri::parse(value).map_err(|error| Instead::Refused(error.to_string()))?;
        if place.tls {
            return refuse("TLS is not supported yet".to_owned());
        }
        if let Some(host) = place.host {
            self.server = text(&host);
        }
        self.port = place.port.unwrap_or(self.port);
        self.user = place.user.or(self.user.take());
        self.password = place.password.or(self.password.take());
        self.database = place.database.or(self.database);
        Ok(())
    }

    /// Checks what belongs together.
    fn settle(&mut self, seen: &Seen) -> Result<(), Instead> {
        if self.key_minimum >= self.key_maximum {
            return refuse("--key-minimum must be below --key-maximum".to_owned());
        }
        if seen.sizes > 1 {
            return refuse(
                "only one of --data-size, --data-size-range and --data-size-list".to_owned(),
            );
        }
        if seen.size_pattern && !matches!(self.data_sizes, Sizes::Range(..)) {
            return refuse("--data-size-pattern belongs to --data-size-range".to_owned());
        }
        if seen.requests && self.test_seconds.is_some() {
            return refuse("only one of --requests and --test-time".to_owned());
        }
        if self.commands.is_empty() {
            match seen.ratio.as_deref() {
                None => {}
                Some(&[set, get]) if set > 0 || get > 0 => self.ratio = (set, get),
                Some(_) => return refuse("--ratio is two numbers, not both 0".to_owned()),
            }
            return Ok(());
        }
        if let Some(ratio) = &seen.ratio {
            for (command, &ratio) in self.commands.iter_mut().zip(ratio) {
                command.ratio = ratio;
            }
            if self.commands.iter().all(|command| command.ratio == 0) {
                self.commands
                    .iter_mut()
                    .for_each(|command| command.ratio = 1);
            }
            self.understood
                .push("--ratio as the ratios of the commands, in their order".to_owned());
        }
        if seen.key_pattern {
            let pattern = self.key_patterns.0;
            self.commands
                .iter_mut()
                .for_each(|command| command.pattern = pattern);
            self.understood
                .push("--key-pattern (its first letter) as that of the commands".to_owned());
        }
        Ok(())
    }
}

fn number(name: &str, value: &[u8], least: u64, most: u64) -> Result<u64, Instead> {
    let number = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok())
        .filter(|number| (least..=most).contains(number));
    match number {
        Some(number) => Ok(number),
        None if most == u64::MAX => {
            refuse(format!("--{name} must be a number of at least {least}"))
        }
        None => refuse(format!("--{name} must be a number from {least} to {most}")),
    }
}

fn positive(name: &str, value: &[u8]) -> Result<f64, Instead> {
    std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.trim().parse::<f64>().ok())
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| Instead::Refused(format!("--{name} must be a number above 0")))
}

fn ratio(name: &str, value: &[u8]) -> Result<Vec<u32>, Instead> {
    value
        .split(|&byte| byte == b':')
        .map(|part| number(name, part, 0, 1 << 30).map(|number| number as u32))
        .collect()
}

fn range(name: &str, value: &[u8], most: u64) -> Result<(u64, u64), Instead> {
    let Some(at) = value.iter().position(|&byte| byte == b'-') else {
        return refuse(format!("--{name} is two numbers, such as 10-20"));
    };
    let from = number(name, &value[..at], 0, most)?;
    let to = number(name, &value[at + 1..], 0, most)?;
    if from > to {
        return refuse(format!("--{name} must begin with the smaller number"));
    }
    Ok((from, to))
}

fn weights(name: &str, value: &[u8]) -> Result<Vec<(usize, u32)>, Instead> {
    let mut weights = Vec::new();
    for item in value.split(|&byte| byte == b',') {
        let Some(at) = item.iter().position(|&byte| byte == b':') else {
            return refuse(format!(
                "--{name} is sizes with weights, such as 32:80,1024:20"
            ));
        };
        let size = number(name, &item[..at], 1, DATA_BYTES_MAX)? as usize;
        let weight = number(name, &item[at + 1..], 0, 1 << 20)? as u32;
        if weight > 0 {
            weights.push((size, weight));
        }
    }
    if weights.is_empty() {
        return refuse(format!("--{name} needs a weight above 0"));
    }
    Ok(weights)
}

fn percentiles(value: &[u8]) -> Result<Vec<f64>, Instead> {
    let percentile = |item: &[u8]| {
        let item = item.strip_prefix(b"p").unwrap_or(item);
        positive("print-percentiles", item).and_then(|percentile| {
            if percentile <= 100.0 {
                Ok(percentile)
            } else {
                refuse("--print-percentiles must be at most 100".to_owned())
            }
        })
    };
    value.split(|&byte| byte == b',').map(percentile).collect()
}

fn pattern(name: &str, value: &[u8]) -> Result<Pattern, Instead> {
    Ok(match value {
        b"R" => Pattern::Random,
        b"S" => Pattern::Sequential,
        b"P" => Pattern::Parallel,
        b"G" => Pattern::Gaussian,
        b"Z" => Pattern::Zipf,
        _ => return refuse(format!("--{name} consists of the letters G, P, R, S and Z")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options, Instead> {
        let arguments: Vec<Vec<u8>> = arguments
            .iter()
            .map(|argument| argument.as_bytes().to_vec())
            .collect();
        parse(&arguments)
    }

    fn refusal(arguments: &[&str]) -> String {
        match parsed(arguments) {
            Err(Instead::Refused(why)) => why,
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    #[test]
    fn options_are_read_in_all_their_spellings() {
        let options = parsed(&[
            "-s",
            "h",
            "-p7000",
            "--clients=20",
            "--threads",
            "2",
            "-n",
            "allkeys",
            "--pipe=4",
            "-Rd",
            "128",
            "--ratio=1:0",
            "--key-pattern=P:G",
            "--key-min=5",
            "--key-maximum=50",
            "--key-prefix=",
            "-a",
            "me:secret",
            "--protocol=resp3",
            "--select-db=3",
            "--expiry-range=10-20",
            "--hide-histogram",
            "--distinct-client-seed",
            "--print-percentiles=50,99.99",
            "-x3",
            "-oout.txt",
            "--reconnect-interval=9",
            "--rate-limiting=100",
        ])
        .unwrap();
        let expected = Options {
            server: "h".to_owned(),
            port: 7000,
            clients: 20,
            threads: 2,
            requests: Requests::AllKeys,
            pipeline: 4,
            random_data: true,
            data_sizes: Sizes::Fixed(128),
            ratio: (1, 0),
            key_patterns: (Pattern::Parallel, Pattern::Gaussian),
            key_minimum: 5,
            key_maximum: 50,
            key_prefix: Vec::new(),
            user: Some(b"me".to_vec()),
            password: Some(b"secret".to_vec()),
            resp: Some(3),
            database: Some(3),
            expiry: Some((10, 20)),
            hide_histogram: true,
            distinct_client_seed: true,
            percentiles: vec![50.0, 99.99],
            run_count: 3,
            out_file: Some("out.txt".into()),
            reconnect_interval: 9,
            rate_limit: 100,
            ..Options::default()
        };
        assert_eq!(options, expected);
        assert_eq!(parsed(&[]), Ok(Options::default()));
        assert_eq!(parsed(&["--help"]), Err(Instead::Usage));
        assert_eq!(parsed(&["-v"]), Err(Instead::Version));
    }

    #[test]
    fn published_spellings_are_understood() {
        let options = parsed(&["--run-time=60"]).unwrap();
        assert_eq!(options.test_seconds, Some(60));
        assert_eq!(options.understood, ["--run-time as --test-time"]);
        let options = parsed(&[
            "--key-pattern=S:S",
            "--ratio=1:3",
            "--command=SET user:{{id}} {{value}}",
            "--command=GET user:{{id}}",
            "--command=PING",
        ])
        .unwrap();
        let command = |text: &str, ratio| CommandOption {
            text: text.as_bytes().to_vec(),
            ratio,
            pattern: Pattern::Sequential,
        };
        assert_eq!(
            options.commands,
            [
                command("SET user:__key__ __data__", 1),
                command("GET user:__key__", 3),
                command("PING", 1)
            ]
        );
        assert_eq!(
            options.understood,
            [
                "{{id}} as __key__",
                "{{value}} as __data__",
                "--ratio as the ratios of the commands, in their order",
                "--key-pattern (its first letter) as that of the commands"
            ]
        );
        let options = parsed(&["--ratio=1:0", "--command=SET key:{{id}} {{value}}"]).unwrap();
        assert_eq!(options.commands[0].ratio, 1);
    }

    #[test]
    fn options_of_a_command_follow_it() {
        let options = parsed(&[
            "--command=a",
            "--command-ratio=3",
            "--command-key-pattern=Z",
            "--command=b",
        ])
        .unwrap();
        assert_eq!(
            (options.commands[0].ratio, options.commands[0].pattern),
            (3, Pattern::Zipf)
        );
        assert_eq!(
            (options.commands[1].ratio, options.commands[1].pattern),
            (1, Pattern::Random)
        );
        assert_eq!(
            refusal(&["--command-ratio=3"]),
            "--command-ratio belongs behind a --command"
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (arguments, why) in [
            (&["--foo"][..], "unrecognized option --foo"),
            (&["-q"], "unrecognized option -q"),
            (&["foo"], "unrecognized option foo"),
            (&["--key-m=5"], "option --key-m is ambiguous"),
            (&["--clients"], "option --clients needs a value"),
            (&["--randomize=1"], "option --randomize takes no value"),
            (
                &["--clients=0"],
                "--clients must be a number from 1 to 1048576",
            ),
            (&["-t", "x"], "--threads must be a number from 1 to 1024"),
            (&["-n0"], "--requests must be a number of at least 1"),
            (&["--ratio=1"], "--ratio is two numbers, not both 0"),
            (&["--ratio=0:0"], "--ratio is two numbers, not both 0"),
            (
                &["--key-pattern=R"],
                "--key-pattern is two letters, such as R:R",
            ),
            (
                &["--key-pattern=R:X"],
                "--key-pattern consists of the letters G, P, R, S and Z",
            ),
            (
                &["--key-minimum=5", "--key-maximum=5"],
                "--key-minimum must be below --key-maximum",
            ),
            (
                &["-n5", "--test-time=5"],
                "only one of --requests and --test-time",
            ),
            (
                &["-P", "memcache_text"],
                "protocol memcache_text is not supported",
            ),
            (
                &["--data-import=x"],
                "--data-import: importing data is not supported",
            ),
            (&["--tls"], "--tls is not supported yet"),
            (&["--cluster-mode"], "--cluster-mode is not supported yet"),
            (
                &["--data-size-range=20-10"],
                "--data-size-range must begin with the smaller number",
            ),
            (
                &["--data-size-pattern=S"],
                "--data-size-pattern belongs to --data-size-range",
            ),
            (
                &["--data-size-list=5"],
                "--data-size-list is sizes with weights, such as 32:80,1024:20",
            ),
            (
                &["-d5", "--data-size-list=5:1"],
                "only one of --data-size, --data-size-range and --data-size-list",
            ),
        ] {
            assert_eq!(refusal(arguments), why);
        }
    }

    #[test]
    fn sizes_have_three_forms() {
        let sizes = |argument: &str| parsed(&[argument]).unwrap().data_sizes;
        assert_eq!(sizes("--data-size=7"), Sizes::Fixed(7));
        assert_eq!(sizes("--data-size-range=1-9"), Sizes::Range(1, 9));
        assert_eq!(
            sizes("--data-size-list=32:80,64:0,1024:20"),
            Sizes::Weighted(vec![(32, 80), (1024, 20)])
        );
    }
}
