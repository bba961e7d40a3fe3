//! The options of redis-benchmark: how they are spelled and read.
//!
//! Owns the command line down to the values. Reads numbers as C's `atoi` does, as scripts rely on: what is no number is 0,
//! what follows one is ignored. Does not connect and does not print.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::numbers::atoi;
use crate::tls_settings::TlsSettings;
use crate::uri;

/// The most threads.
pub const THREADS_MAX: usize = 500;

/// The longest value, in bytes: what a server takes.
const DATA_BYTES_MAX: i64 = 1 << 30;

/// The most connections: what a computer's addresses could carry to one server, and more.
const CLIENTS_MAX: i64 = 1 << 20;

/// The deepest pipeline.
const PIPELINE_MAX: i64 = 1 << 20;

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-h`.
    pub host: String,
    /// `-p`.
    pub port: u16,
    /// `-s`: instead of host and port.
    pub socket: Option<PathBuf>,
    /// `-a`.
    pub password: Option<Vec<u8>>,
    /// `--user`.
    pub user: Option<Vec<u8>>,
    /// `--dbnum`; only a number other than 0 is selected.
    pub database: i64,
    /// `-3`.
    pub resp3: bool,
    /// `--enable-tracking`.
    pub tracking: bool,
    /// `-c`.
    pub clients: usize,
    /// `-n`.
    pub requests: u64,
    /// `-d`, in bytes.
    pub data_bytes: usize,
    /// `-r`: how many numbers there are. `None`: placeholders stay as they are.
    pub numbers: Option<u64>,
    /// `-P`.
    pub pipeline: u32,
    /// `-k`.
    pub keep_alive: bool,
    /// `--threads`; 0: one, and not called many in the report.
    pub threads: usize,
    /// `--cluster`.
    pub cluster: bool,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `-q`.
    pub quiet: bool,
    /// `--csv`.
    pub csv: bool,
    /// `--precision`: significant digits of latencies.
    pub precision: u8,
    /// `-l`.
    pub forever: bool,
    /// `-I`.
    pub idle: bool,
    /// `-t`: the names, in lower case.
    pub tests: Option<Vec<Vec<u8>>>,
    /// `-x`.
    pub last_from_stdin: bool,
    /// `--tls`, or a URI that says so, and what goes with it.
    pub tls: TlsSettings,
    /// What follows the options: a command to send instead of the tests.
    pub command: Vec<Vec<u8>>,
    /// What is worth a line before anything else happens.
    pub warnings: Vec<String>,
}

/// What to do instead of measuring.
#[derive(Debug, PartialEq, Eq)]
pub enum Instead {
    /// `--help`.
    Usage,
    /// `--version`.
    Version,
    /// An option that there is not, or whose value is missing.
    Invalid(Vec<u8>),
    /// Something else that cannot be done.
    Refused(String),
}

impl Default for Options {
    fn default() -> Options {
        Options {
            host: "127.0.0.1".to_owned(),
            port: 6379,
            socket: None,
            password: None,
            user: None,
            database: 0,
            resp3: false,
            tracking: false,
            clients: 50,
            requests: 100_000,
            data_bytes: 3,
            numbers: None,
            pipeline: 1,
            keep_alive: true,
            threads: 0,
            cluster: false,
            seed: None,
            quiet: false,
            csv: false,
            precision: 3,
            forever: false,
            idle: false,
            tests: None,
            last_from_stdin: false,
            tls: TlsSettings::default(),
            command: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Reads a command line, without the program's name.
pub fn parse(arguments: &[Vec<u8>]) -> Result<Options, Instead> {
    let mut options = Options::default();
    let mut rest = arguments;
    while let Some((name, after)) = rest.split_first() {
        if name.first() != Some(&b'-') {
            options.command = rest.to_vec();
            break;
        }
        rest = after;
        if options.switch(name)? {
            continue;
        }
        let Some((value, after)) = rest.split_first() else {
            return Err(Instead::Invalid(name.clone()));
        };
        rest = after;
        if !options.valued(name, value)? {
            return Err(Instead::Invalid(name.clone()));
        }
    }
    Ok(options)
}

impl Options {
    /// Takes an option without a value. False: it is none.
    fn switch(&mut self, name: &[u8]) -> Result<bool, Instead> {
        match name {
            b"-3" => self.resp3 = true,
            b"-l" => self.forever = true,
            b"-q" => self.quiet = true,
            b"-I" => self.idle = true,
            b"-x" => self.last_from_stdin = true,
            b"-e" => self.warnings.push(
                "WARNING: -e option has no effect. We now immediately exit on error to avoid false results."
                    .to_owned(),
            ),
            b"--csv" => self.csv = true,
            b"--cluster" => self.cluster = true,
            b"--enable-tracking" => self.tracking = true,
            b"--tls" => self.tls.enabled = true,
            b"--insecure" => self.tls.insecure = true,
            b"--help" => return Err(Instead::Usage),
            b"--version" | b"-v" => return Err(Instead::Version),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes an option with its value. False: there is no such option.
    fn valued(&mut self, name: &[u8], value: &[u8]) -> Result<bool, Instead> {
        match name {
            b"-h" => self.host = text(value),
            b"-p" => self.port = atoi(value).clamp(0, 65_535) as u16,
            b"-s" => self.socket = Some(OsStr::from_bytes(value).into()),
            b"-a" => self.password = Some(value.to_vec()),
            b"--user" => self.user = Some(value.to_vec()),
            b"-u" => self.locate(value)?,
            b"-c" => self.clients = atoi(value).clamp(1, CLIENTS_MAX) as usize,
            b"-n" => self.requests = atoi(value).max(0) as u64,
            b"-d" => self.data_bytes = atoi(value).clamp(1, DATA_BYTES_MAX) as usize,
            b"-r" => self.numbers = Some(atoi(value).max(0) as u64),
            b"-P" => self.pipeline = atoi(value).clamp(1, PIPELINE_MAX) as u32,
            b"-k" => {
                self.keep_alive = atoi(value) != 0;
                if !self.keep_alive {
                    self.warnings.push(
                        "WARNING: Keepalive disabled. You probably need 'echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse' for \
                         Linux and 'sudo sysctl -w net.inet.tcp.msl=1000' for Mac OS X in order to use a lot of \
                         clients/requests"
                            .to_owned(),
                    );
                }
            }
            b"-t" => {
                let names = value.to_ascii_lowercase();
                self.tests = Some(
                    names
                        .split(|&byte| byte == b',')
                        .map(<[u8]>::to_vec)
                        .collect(),
                );
            }
            b"--dbnum" => self.database = atoi(value),
            b"--seed" => self.seed = Some(atoi(value).unsigned_abs()),
            b"--precision" => self.precision = atoi(value).clamp(0, 4) as u8,
            b"--threads" => {
                let threads = atoi(value).max(0) as usize;
                if threads > THREADS_MAX {
                    self.warnings.push(format!(
                        "WARNING: Too many threads, limiting threads to {THREADS_MAX}."
                    ));
                }
                self.threads = threads.min(THREADS_MAX);
            }
            b"--sni" => self.tls.server_name = Some(text(value)),
            b"--cacert" => self.tls.authorities = Some(OsStr::from_bytes(value).into()),
            b"--cacertdir" => self.tls.authorities_folder = Some(OsStr::from_bytes(value).into()),
            b"--cert" => self.tls.certificate = Some(OsStr::from_bytes(value).into()),
            b"--key" => self.tls.key = Some(OsStr::from_bytes(value).into()),
            b"--tls-ciphers" => self.tls.ciphers = Some(text(value)),
            b"--tls-ciphersuites" => self.tls.ciphersuites = Some(text(value)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes what a URI says; options that follow it go before it.
    fn locate(&mut self, value: &[u8]) -> Result<(), Instead> {
        let place = uri::parse(value).map_err(|error| Instead::Refused(error.to_string()))?;
        self.tls.enabled |= place.tls;
        if let Some(host) = place.host {
            self.host = text(&host);
        }
        if let Some(port) = place.port {
            self.port = port;
        }
        if place.user.is_some() {
            self.user = place.user;
        }
        if place.password.is_some() {
            self.password = place.password;
        }
        if let Some(database) = place.database {
            self.database = database;
        }
        Ok(())
    }

    /// Whether a test of this name was asked for, by this name or by that of its family.
    pub fn selects(&self, names: &[&str]) -> bool {
        self.tests.as_ref().is_none_or(|tests| {
            tests
                .iter()
                .any(|test| names.iter().any(|name| name.as_bytes() == test))
        })
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, Instead> {
        let words: Vec<Vec<u8>> = line
            .split_ascii_whitespace()
            .map(|word| word.as_bytes().to_vec())
            .collect();
        parse(&words)
    }

    #[test]
    fn all_options_are_read() {
        let options = parsed(
            "-h example.org -p 7000 -s /tmp/s -a pass --user me --dbnum 4 -3 --enable-tracking -c 20 -n 1000 -d 128 -r 500 \
             -P 16 -k 1 --threads 4 --cluster --seed 9 -q --csv --precision 2 -l -I -t SET,get -x --tls --sni a --cacert b \
             --cacertdir c --cert d --key e --tls-ciphers f --tls-ciphersuites g --insecure lpush -x __rand_int__",
        )
        .unwrap();
        let expected = Options {
            host: "example.org".to_owned(),
            port: 7000,
            socket: Some("/tmp/s".into()),
            password: Some(b"pass".to_vec()),
            user: Some(b"me".to_vec()),
            database: 4,
            resp3: true,
            tracking: true,
            clients: 20,
            requests: 1000,
            data_bytes: 128,
            numbers: Some(500),
            pipeline: 16,
            keep_alive: true,
            threads: 4,
            cluster: true,
            seed: Some(9),
            quiet: true,
            csv: true,
            precision: 2,
            forever: true,
            idle: true,
            tests: Some(vec![b"set".to_vec(), b"get".to_vec()]),
            last_from_stdin: true,
            tls: TlsSettings {
                enabled: true,
                server_name: Some("a".to_owned()),
                authorities: Some("b".into()),
                authorities_folder: Some("c".into()),
                certificate: Some("d".into()),
                key: Some("e".into()),
                ciphers: Some("f".to_owned()),
                ciphersuites: Some("g".to_owned()),
                insecure: true,
                protocols: None,
            },
            command: vec![b"lpush".to_vec(), b"-x".to_vec(), b"__rand_int__".to_vec()],
            warnings: Vec::new(),
        };
        assert_eq!(options, expected);
        assert_eq!(parsed(""), Ok(Options::default()));
    }

    #[test]
    fn what_there_is_not_is_named() {
        for (line, name) in [
            ("-zz", "-zz"),
            ("-zz 5", "-zz"),
            ("-q --foo bar", "--foo"),
            ("-c", "-c"),
            ("-n 5 -h", "-h"),
            ("--", "--"),
            ("-", "-"),
            ("-D -q", "-D"),
        ] {
            let invalid = Instead::Invalid(name.as_bytes().to_vec());
            assert_eq!(parsed(line), Err(invalid), "{line}");
        }
        assert_eq!(parsed("-q --help -zz"), Err(Instead::Usage));
        assert_eq!(parsed("-v"), Err(Instead::Version));
        assert_eq!(
            parsed("-u foo"),
            Err(Instead::Refused("Invalid URI scheme".to_owned()))
        );
    }

    #[test]
    fn numbers_out_of_range_are_brought_into_it() {
        let options = parsed("-c 0 -n -5 -d 0 -P 0 -r 0 -p x --precision 9").unwrap();
        assert_eq!((options.clients, options.requests), (1, 0));
        assert_eq!((options.data_bytes, options.pipeline), (1, 1));
        assert_eq!((options.numbers, options.port), (Some(0), 0));
        assert_eq!(options.precision, 4);
    }

    #[test]
    fn some_options_come_with_a_warning() {
        let options = parsed("-e --threads 600").unwrap();
        assert_eq!(options.threads, 500);
        assert_eq!(
            options.warnings,
            [
                "WARNING: -e option has no effect. We now immediately exit on error to avoid false results.",
                "WARNING: Too many threads, limiting threads to 500."
            ]
        );
        assert!(!parsed("-k 0").unwrap().keep_alive);
        assert!(parsed("-k 0").unwrap().warnings[0].starts_with("WARNING: Keepalive disabled."));
    }

    #[test]
    fn a_uri_gives_way_to_what_follows_it() {
        let options = parsed("-h a -u redis://me:secret@b:7000/3 -p 7001").unwrap();
        assert_eq!((options.host.as_str(), options.port), ("b", 7001));
        assert_eq!(options.database, 3);
        assert_eq!(options.user, Some(b"me".to_vec()));
        assert_eq!(options.password, Some(b"secret".to_vec()));
        assert!(parsed("-u rediss://b").unwrap().tls.enabled);
    }

    #[test]
    fn tests_are_selected_by_name() {
        let options = parsed("-t LRANGE,set").unwrap();
        assert!(options.selects(&["set"]));
        assert!(options.selects(&["lrange_100", "lrange"]));
        assert!(!options.selects(&["get"]));
        assert!(Options::default().selects(&["get"]));
    }
}
