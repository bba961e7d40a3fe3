//! The options of memtier_benchmark: what they mean, and what of them goes together.
//!
//! Owns the command line down to the values. Spellings that people publish although memtier refuses them are taken for what
//! they mean, and a note says what that is. Does not connect and does not print.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::keys::Pattern;
use super::spelling;
use super::value::{
    DATA_BYTES_MAX, not_negative, number, pattern, percentiles, positive, range, ratio, refuse,
    text, weights,
};
use crate::reach::Family;
use crate::tls_settings::TlsSettings;

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub server: String,
    pub port: u16,
    /// As it was given, without what it says about the account.
    pub uri: String,
    pub socket: Option<PathBuf>,
    pub family: Family,
    pub tls: TlsSettings,
    /// `HELLO` with this version.
    pub resp: Option<u8>,
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
    pub run_count: u32,
    pub out_file: Option<PathBuf>,
    pub json_out_file: Option<PathBuf>,
    /// What the names of files about each client begin with.
    pub client_stats: Option<OsString>,
    /// What the names of files with histograms begin with.
    pub hdr_prefix: Option<OsString>,
    pub statsd: Option<StatsdOptions>,
    pub show_config: bool,
    pub cluster: bool,
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
    pub staircase: Option<Staircase>,
    pub ratio: (u32, u32),
    pub pipeline: u32,
    /// 0: connections are kept.
    pub reconnect_interval: u64,
    /// `None`: a connection that breaks ends the run.
    pub reconnect: Option<Reconnect>,
    /// Seconds in which a connection has to come about; 0: as long as the system waits.
    pub connection_seconds_max: u64,
    /// Microseconds between two connections of a thread, from and to.
    pub start_jitter: (u64, u64),
    /// 0: GET.
    pub multi_key_get: u32,
    pub database: Option<i64>,
    pub distinct_client_seed: bool,
    pub randomize: bool,
    pub commands: Vec<CommandOption>,
    /// A file of lines that MONITOR printed.
    pub monitor: Option<PathBuf>,
    /// Its lines are drawn at random rather than taken in order.
    pub monitor_random: bool,
    /// SCAN goes on where its last answer says; at most so often before it begins again, 0: to the end.
    pub scan_steps_max: Option<u64>,
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
    pub wait: Option<WaitOption>,
    pub verify: Verify,
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

/// Clients of each thread that begin later than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staircase {
    /// From the start on.
    pub start: usize,
    /// With each step.
    pub step: usize,
    /// From one step to the next.
    pub seconds: u64,
}

/// How a connection that broke is opened again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reconnect {
    /// Attempts without an answer in between; 0: without end.
    pub attempts_max: u32,
    /// Before attempt K the pause is this to the power of K, in seconds; 0: no pause.
    pub backoff: f64,
}

/// WAIT between SETs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitOption {
    /// After so many SETs.
    pub sets: u32,
    /// So many WAITs.
    pub waits: u32,
    /// For so many replicas, from and to.
    pub replicas: (u64, u64),
    /// For so many milliseconds, from and to.
    pub timeout: (u64, u64),
}

/// Whether the values that were stored are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    No,
    /// When the test is complete.
    After,
    /// Nothing else is done.
    Only,
}

/// Where figures go while a run lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsdOptions {
    pub host: String,
    pub port: u16,
    pub prefix: String,
    pub label: String,
    /// Where Graphite takes notes of events.
    pub graphite_port: u16,
}

/// What to do instead of measuring.
#[derive(Debug, PartialEq, Eq)]
pub enum Instead {
    Usage,
    Version,
    /// Something is wrong; this says what.
    Refused(String),
}

/// More connections of a thread, threads or requests under way than make sense anywhere.
const CLIENTS_MAX: u64 = 1 << 20;
const THREADS_MAX: u64 = 1024;
const PIPELINE_MAX: u64 = 1 << 20;

impl Default for Options {
    fn default() -> Options {
        Options {
            server: "localhost".to_owned(),
            port: 6379,
            uri: String::new(),
            socket: None,
            family: Family::Any,
            tls: TlsSettings::default(),
            resp: None,
            user: None,
            password: None,
            run_count: 1,
            out_file: None,
            json_out_file: None,
            client_stats: None,
            hdr_prefix: None,
            statsd: None,
            show_config: false,
            cluster: false,
            hide_histogram: false,
            percentiles: vec![50.0, 99.0, 99.9],
            print_all_runs: false,
            breakdown: Breakdown::Command,
            requests: Requests::Count(10_000),
            rate_limit: 0,
            clients: 50,
            threads: 4,
            test_seconds: None,
            staircase: None,
            ratio: (1, 10),
            pipeline: 1,
            reconnect_interval: 0,
            reconnect: None,
            connection_seconds_max: 0,
            start_jitter: (0, 0),
            multi_key_get: 0,
            database: None,
            distinct_client_seed: false,
            randomize: false,
            commands: Vec::new(),
            monitor: None,
            monitor_random: false,
            scan_steps_max: None,
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
            wait: None,
            verify: Verify::No,
            understood: Vec::new(),
        }
    }
}

/// Reads a command line, without the program's name.
pub fn parse(arguments: &[Vec<u8>]) -> Result<Options, Instead> {
    let mut options = Options::default();
    let mut seen = Seen::default();
    spelling::walk(arguments, |name, value| {
        options.take(name, value, &mut seen)
    })?;
    options.settle(&seen)?;
    Ok(options)
}

/// Options that matter together with others.
#[derive(Default)]
struct Seen {
    requests: bool,
    ratio: Option<Vec<u32>>,
    key_pattern: bool,
    size_pattern: bool,
    sizes: u32,
    clients_start: Option<usize>,
    clients_step: Option<usize>,
    step_seconds: Option<u64>,
    reconnect_on_error: bool,
    attempts_max: Option<u32>,
    backoff: Option<f64>,
    scan: bool,
    scan_steps_max: Option<u64>,
    wait_ratio: Option<Vec<u32>>,
    replicas: Option<(u64, u64)>,
    wait_timeout: Option<(u64, u64)>,
    statsd_host: Option<String>,
    statsd_port: Option<u16>,
    statsd_prefix: Option<String>,
    statsd_label: Option<String>,
    graphite_port: Option<u16>,
}

impl Options {
    fn take(&mut self, name: &str, value: &[u8], seen: &mut Seen) -> Result<(), Instead> {
        let count = |least: u64, most: u64| number(name, value, least, most);
        match name {
            "server" | "host" => self.server = text(value),
            "port" => self.port = count(1, 65_535)? as u16,
            "unix-socket" => self.socket = Some(OsStr::from_bytes(value).into()),
            "ipv4" => self.family = Family::V4,
            "ipv6" => self.family = Family::V6,
            "tls" => self.tls.enabled = true,
            "cert" => self.tls.certificate = Some(OsStr::from_bytes(value).into()),
            "key" => self.tls.key = Some(OsStr::from_bytes(value).into()),
            "cacert" => self.tls.authorities = Some(OsStr::from_bytes(value).into()),
            "tls-skip-verify" => self.tls.insecure = true,
            "tls-protocols" => self.tls.protocols = Some(text(value)),
            "sni" => self.tls.server_name = Some(text(value)),
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
            "client-stats" => self.client_stats = Some(OsStr::from_bytes(value).into()),
            "hdr-file-prefix" => self.hdr_prefix = Some(OsStr::from_bytes(value).into()),
            "show-config" => self.show_config = true,
            "cluster-mode" => self.cluster = true,
            "statsd-host" => seen.statsd_host = Some(text(value)),
            "statsd-port" => seen.statsd_port = Some(count(1, 65_535)? as u16),
            "statsd-prefix" => seen.statsd_prefix = Some(text(value)),
            "statsd-run-label" => seen.statsd_label = Some(text(value)),
            "graphite-port" => seen.graphite_port = Some(count(1, 65_535)? as u16),
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
            "clients-start" => seen.clients_start = Some(count(1, CLIENTS_MAX)? as usize),
            "clients-step" => seen.clients_step = Some(count(1, CLIENTS_MAX)? as usize),
            "step-duration" => seen.step_seconds = Some(count(1, 1 << 31)?),
            "reconnect-on-error" => seen.reconnect_on_error = true,
            "max-reconnect-attempts" => {
                seen.attempts_max = Some(count(0, u64::from(u32::MAX))? as u32);
            }
            "reconnect-backoff-factor" => seen.backoff = Some(not_negative(name, value)?),
            "connection-timeout" => self.connection_seconds_max = count(0, 1 << 31)?,
            "thread-conn-start-min-jitter-micros" => self.start_jitter.0 = count(0, 1 << 31)?,
            "thread-conn-start-max-jitter-micros" => self.start_jitter.1 = count(0, 1 << 31)?,
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
            "monitor-input" => self.monitor = Some(OsStr::from_bytes(value).into()),
            "monitor-pattern" => {
                self.monitor_random = match value {
                    b"S" => false,
                    b"R" => true,
                    _ => return refuse(format!("--{name} is S or R")),
                }
            }
            "scan-incremental-iteration" => seen.scan = true,
            "scan-incremental-max-iterations" => seen.scan_steps_max = Some(count(0, u64::MAX)?),
            "wait-ratio" => seen.wait_ratio = Some(ratio(name, value)?),
            "num-slaves" => seen.replicas = Some(range(name, value, 1 << 20)?),
            "wait-timeout" => seen.wait_timeout = Some(range(name, value, 1 << 31)?),
            "data-verify" if self.verify == Verify::No => self.verify = Verify::After,
            "data-verify" => {}
            "verify-only" => self.verify = Verify::Only,
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
            // What they ask for is the case anyway.
            "debug" => {}
            _ => return refuse(format!("--{name}: importing data is not supported")),
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
        let shown = text(value);
        self.uri = match (shown.split_once("//"), shown.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, rest))) => format!("{scheme}//{rest}"),
            _ => shown,
        };
        self.tls.enabled |= place.tls;
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
        self.settle_clients(seen)?;
        self.settle_wait(seen)?;
        self.settle_scan(seen)?;
        if let Some(host) = &seen.statsd_host {
            self.statsd = Some(StatsdOptions {
                host: host.clone(),
                port: seen.statsd_port.unwrap_or(8125),
                prefix: seen
                    .statsd_prefix
                    .clone()
                    .unwrap_or_else(|| "memtier".to_owned()),
                label: seen
                    .statsd_label
                    .clone()
                    .unwrap_or_else(|| "default".to_owned()),
                graphite_port: seen.graphite_port.unwrap_or(8080),
            });
        }
        if self.cluster && self.monitor.is_some() {
            return refuse("--monitor-input is not supported in cluster mode".to_owned());
        }
        if self.cluster && self.socket.is_some() {
            return refuse("--unix-socket is not supported in cluster mode".to_owned());
        }
        if self.verify != Verify::No && !(self.commands.is_empty() && self.data_offset == 0) {
            return refuse("values can be verified only where SET stores them".to_owned());
        }
        self.settle_commands(seen)
    }

    fn settle_clients(&mut self, seen: &Seen) -> Result<(), Instead> {
        self.staircase = match (seen.clients_start, seen.clients_step, seen.step_seconds) {
            (None, None, None) => None,
            (Some(start), Some(step), Some(seconds)) => {
                if start >= self.clients {
                    return refuse(format!(
                        "--clients-start ({start}) must be less than --clients ({})",
                        self.clients
                    ));
                }
                if self.test_seconds.is_none() {
                    return refuse("--clients-start goes with --test-time".to_owned());
                }
                Some(Staircase {
                    start,
                    step,
                    seconds,
                })
            }
            _ => {
                return refuse(
                    "--clients-start, --clients-step and --step-duration go together".to_owned(),
                );
            }
        };
        if seen.reconnect_on_error || seen.attempts_max.is_some() || seen.backoff.is_some() {
            if !seen.reconnect_on_error {
                return refuse(
                    "--max-reconnect-attempts and --reconnect-backoff-factor go with --reconnect-on-error"
                        .to_owned(),
                );
            }
            self.reconnect = Some(Reconnect {
                attempts_max: seen.attempts_max.unwrap_or(0),
                backoff: seen.backoff.unwrap_or(0.0),
            });
        }
        let (least, most) = self.start_jitter;
        if least > most {
            return refuse(
                "--thread-conn-start-min-jitter-micros must be at most the greatest".to_owned(),
            );
        }
        Ok(())
    }

    fn settle_wait(&mut self, seen: &Seen) -> Result<(), Instead> {
        let Some(ratio) = &seen.wait_ratio else {
            return match seen.replicas.is_some() || seen.wait_timeout.is_some() {
                true => refuse("--num-slaves and --wait-timeout go with --wait-ratio".to_owned()),
                false => Ok(()),
            };
        };
        let &[sets @ 1..=u32::MAX, waits] = &ratio[..] else {
            return refuse("--wait-ratio is two numbers, the first of them above 0".to_owned());
        };
        if !self.commands.is_empty() {
            return refuse("--wait-ratio does not go with --command".to_owned());
        }
        if waits > 0 {
            self.wait = Some(WaitOption {
                sets,
                waits,
                replicas: seen.replicas.unwrap_or_default(),
                timeout: seen.wait_timeout.unwrap_or_default(),
            });
        }
        Ok(())
    }

    fn settle_scan(&mut self, seen: &Seen) -> Result<(), Instead> {
        if !seen.scan {
            return match seen.scan_steps_max {
                Some(_) => refuse(
                    "--scan-incremental-max-iterations goes with --scan-incremental-iteration"
                        .to_owned(),
                ),
                None => Ok(()),
            };
        }
        let why = match &self.commands[..] {
            _ if self.pipeline != 1 => "requires --pipeline 1",
            [only] => {
                let mut words = only
                    .text
                    .split(u8::is_ascii_whitespace)
                    .filter(|word| !word.is_empty());
                match (words.next(), words.next()) {
                    (Some(name), Some(b"0")) if name.eq_ignore_ascii_case(b"SCAN") => "",
                    _ => "requires the command to be a SCAN command that begins at 0",
                }
            }
            _ => "requires exactly one --command (a SCAN command)",
        };
        if !why.is_empty() {
            return refuse(format!("--scan-incremental-iteration {why}"));
        }
        self.scan_steps_max = Some(seen.scan_steps_max.unwrap_or(0));
        Ok(())
    }

    fn settle_commands(&mut self, seen: &Seen) -> Result<(), Instead> {
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

#[cfg(test)]
mod tests;
