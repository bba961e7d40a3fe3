//! The words of the command line, and what they mean.
//!
//! Owns the spelling of every option of `weft-bench run`: `--name value`, `--name=value`, `-n value`. Those that describe the
//! run make a [`Spec`]; the others say where results go. Says what is wrong by naming the option, what it was given and what
//! it takes. Does not connect and does not print.

use std::fs;
use std::path::{Path, PathBuf};

use super::command::Command;
use super::keys::Distribution;
use super::pace::{Arrivals, Pace, Think};
use super::spec::{Endpoint, Limit, Setup, Spec, Unit};
use super::values::Sizes;
use super::{script, words};
use crate::spelling::{Spelling, switch, valued};
use crate::uri;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The run.
    pub spec: Spec,
    /// Where results go.
    pub outputs: Outputs,
}

/// Where results go besides the terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// The report as JSON; `-` is the standard output, instead of the text.
    pub json: Option<PathBuf>,
    /// A line for each second.
    pub csv: Option<PathBuf>,
    /// A log of histograms, one for each second.
    pub hdr: Option<PathBuf>,
    /// Whether progress is shown; `None`: if there is a terminal.
    pub progress: Option<bool>,
}

/// What to do instead of measuring.
#[derive(Debug, PartialEq, Eq)]
pub enum Instead {
    /// Print how the mode is used.
    Usage,
    /// Say what is wrong.
    Refused(String),
}

const SPELLINGS: &[Spelling] = &[
    valued(b'h', "host"),
    valued(b'p', "port"),
    valued(b's', "socket"),
    valued(0, "target"),
    valued(b'u', "uri"),
    valued(0, "user"),
    valued(b'a', "password"),
    valued(0, "db"),
    switch(b'3', "resp3"),
    valued(b'c', "connections"),
    valued(b'P', "pipeline"),
    valued(b't', "threads"),
    valued(b'd', "duration"),
    valued(b'n', "requests"),
    valued(0, "warmup"),
    valued(0, "rate"),
    valued(0, "storm"),
    valued(0, "arrivals"),
    valued(0, "think"),
    valued(0, "drain"),
    valued(0, "reconnect-every"),
    valued(0, "seed"),
    valued(0, "ratio"),
    valued(0, "command"),
    valued(0, "weight"),
    valued(0, "script"),
    valued(0, "setup"),
    switch(0, "fill"),
    valued(0, "keys"),
    valued(0, "key-prefix"),
    valued(0, "key-first"),
    valued(0, "key-digits"),
    valued(0, "key-distribution"),
    valued(0, "value-size"),
    switch(0, "verify"),
    valued(0, "server-pid"),
    valued(0, "name"),
    valued(0, "json-out"),
    valued(0, "csv-out"),
    valued(0, "hdr-out"),
    switch(0, "progress"),
    switch(0, "no-progress"),
    switch(0, "help"),
];

impl Spec {
    /// The run that these words describe, which are those of `weft-bench run` without the ones about outputs. The error says
    /// what is wrong.
    #[allow(dead_code, reason = "for modes that describe workloads by these words")]
    pub fn parse<W: AsRef<[u8]>>(words: &[W]) -> Result<Spec, String> {
        match parse(words) {
            Ok(options) if options.outputs == Outputs::default() => Ok(options.spec),
            Ok(_) => Err("what describes a workload cannot say where results go".to_owned()),
            Err(Instead::Usage) => Err("--help describes no workload".to_owned()),
            Err(Instead::Refused(why)) => Err(why),
        }
    }
}

/// Reads the command line, without the names of the program and the mode.
pub fn parse<W: AsRef<[u8]>>(words: &[W]) -> Result<Options, Instead> {
    let mut reading = Reading::default();
    let mut rest = words.iter().map(AsRef::as_ref);
    while let Some(word) = rest.next() {
        if word == b"--" {
            let command: Vec<&[u8]> = rest.by_ref().collect();
            let command = Command::of_words(&command)
                .map_err(|why| Instead::Refused(format!("the command behind --: {why}")))?;
            reading.units.push(Unit::single(command, 1));
            break;
        }
        let (spelling, attached) = find(word)?;
        let value = match (spelling.valued, attached) {
            (true, Some(value)) => value,
            (true, None) => rest.next().ok_or_else(|| {
                Instead::Refused(format!(
                    "--{} takes a value, and none follows",
                    spelling.name
                ))
            })?,
            (false, None) => b"",
            (false, Some(_)) => {
                return Err(Instead::Refused(format!(
                    "--{} takes no value",
                    spelling.name
                )));
            }
        };
        if spelling.name == "help" {
            return Err(Instead::Usage);
        }
        reading
            .option(spelling.name, value)
            .map_err(|why| Instead::Refused(format!("--{}: {why}", spelling.name)))?;
    }
    reading.finish().map_err(Instead::Refused)
}

/// The option that a word is, and the value that is attached to it.
fn find(word: &[u8]) -> Result<(&'static Spelling, Option<&[u8]>), Instead> {
    let unknown = || {
        Instead::Refused(format!(
            "no option is called '{}' (a command to send stands behind -- or in --command)",
            word.escape_ascii()
        ))
    };
    if let Some(long) = word.strip_prefix(b"--") {
        let (name, value) = match memchr::memchr(b'=', long) {
            Some(at) => (&long[..at], Some(&long[at + 1..])),
            None => (long, None),
        };
        let spelling = SPELLINGS.iter().find(|it| it.name.as_bytes() == name);
        return spelling.map(|it| (it, value)).ok_or_else(unknown);
    }
    match word {
        [b'-', letter, value @ ..] => {
            let spelling = SPELLINGS.iter().find(|it| it.letter == Some(*letter));
            let value = (!value.is_empty()).then_some(value);
            spelling.map(|it| (it, value)).ok_or_else(unknown)
        }
        _ => Err(unknown()),
    }
}

/// Whether the word is one of these options, by name, and whether its value is the next word. `None`: it is not.
pub fn shared(word: &[u8], names: &[&str]) -> Option<bool> {
    let (spelling, attached) = find(word).ok()?;
    names
        .contains(&spelling.name)
        .then_some(spelling.valued && attached.is_none())
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    spec: Spec,
    outputs: Outputs,
    host: Option<String>,
    port: Option<u16>,
    targets: Vec<Endpoint>,
    units: Vec<Unit>,
    ratio: Option<(u32, u32)>,
    rate: Option<f64>,
    storm: Option<f64>,
    arrivals: Option<Arrivals>,
    think: Option<Think>,
    duration: bool,
    requests: bool,
}

impl Reading {
    fn option(&mut self, name: &str, value: &[u8]) -> Result<(), String> {
        let spec = &mut self.spec;
        match name {
            "host" => self.host = Some(text(value)?.to_owned()),
            "port" => self.port = Some(number(value, 1, 65_535)? as u16),
            "socket" => self.targets.push(Endpoint::Unix(text(value)?.into())),
            "target" => self.targets.push(endpoint(text(value)?)?),
            "uri" => self.uri(value)?,
            "user" => spec.user = Some(value.to_vec()),
            "password" => spec.password = Some(value.to_vec()),
            "db" => spec.database = number(value, 0, i32::MAX as u64)? as u32,
            "resp3" => spec.resp3 = true,
            "connections" => {
                spec.connections = number(value, 1, super::spec::CONNECTIONS_MAX as u64)? as usize
            }
            "pipeline" => {
                spec.pipeline =
                    Some(number(value, 1, u64::from(super::spec::PIPELINE_MAX))? as u32);
            }
            "threads" => spec.threads = number(value, 1, super::spec::THREADS_MAX as u64)? as usize,
            "duration" => {
                spec.limit = Limit::Time(time(value)?);
                self.duration = true;
            }
            "requests" => {
                spec.limit = Limit::Requests(number(value, 1, u64::MAX)?);
                self.requests = true;
            }
            "warmup" => spec.warmup = time(value)?,
            "rate" => self.rate = Some(rate(value)?),
            "storm" => self.storm = Some(rate(value)?),
            "arrivals" => {
                self.arrivals = Some(match value {
                    b"constant" => Arrivals::Constant,
                    b"poisson" => Arrivals::Poisson,
                    _ => return Err(takes("constant or poisson", value)),
                });
            }
            "think" => self.think = Some(think(text(value)?)?),
            "drain" => spec.drain = time(value)?,
            "reconnect-every" => spec.reconnect_every = number(value, 1, u64::MAX)?,
            "seed" => spec.seed = number(value, 0, u64::MAX)?,
            "ratio" => self.ratio = Some(ratio(text(value)?)?),
            "command" => {
                let command = Command::parse(text(value)?)?;
                self.units.push(Unit::single(command, 1));
            }
            "weight" => {
                let unit = self
                    .units
                    .last_mut()
                    .ok_or("it belongs behind the --command whose weight it is")?;
                unit.weight = number(value, 1, u64::from(u32::MAX))? as u32;
            }
            "script" => {
                let path = text(value)?;
                let content =
                    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
                let script = script::parse(&content).map_err(|why| format!("{path}: {why}"))?;
                self.units.extend(script.units);
                spec.setup.extend(script.setup);
            }
            "setup" => spec.setup.push(Setup {
                command: Command::parse(text(value)?)?,
                may_fail: false,
            }),
            "fill" => spec.fill = true,
            "keys" => spec.keys.count = number(value, 1, u64::MAX)?,
            "key-prefix" => spec.keys.prefix = value.to_vec(),
            "key-first" => spec.keys.first = number(value, 0, u64::MAX)?,
            "key-digits" => spec.keys.digits = number(value, 0, 40)? as u8,
            "key-distribution" => spec.keys.distribution = Distribution::parse(text(value)?)?,
            "value-size" => spec.value_sizes = Sizes::parse(text(value)?)?,
            "verify" => spec.verify = true,
            "server-pid" => spec.server_pid = Some(number(value, 1, u64::from(u32::MAX))? as u32),
            "name" => spec.name = text(value)?.to_owned(),
            "json-out" => self.outputs.json = Some(path(value)?),
            "csv-out" => self.outputs.csv = Some(path(value)?),
            "hdr-out" => self.outputs.hdr = Some(path(value)?),
            "progress" => self.outputs.progress = Some(true),
            "no-progress" => self.outputs.progress = Some(false),
            _ => unreachable!("every spelling has its meaning"),
        }
        Ok(())
    }

    fn uri(&mut self, value: &[u8]) -> Result<(), String> {
        let place = uri::parse(value).map_err(|error| error.to_string())?;
        if place.tls {
            return Err("TLS is not supported".to_owned());
        }
        let host = match place.host {
            Some(host) => text(&host)?.to_owned(),
            None => "127.0.0.1".to_owned(),
        };
        self.targets
            .push(Endpoint::Tcp(host, place.port.unwrap_or(6379)));
        self.spec.user = place.user.or(self.spec.user.take());
        self.spec.password = place.password.or(self.spec.password.take());
        if let Some(database) = place.database {
            self.spec.database = u32::try_from(database)
                .map_err(|_| format!("'{database}' is no number of a database"))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Options, String> {
        let mut spec = self.spec;
        let mut targets = self.targets;
        if targets.is_empty() || self.host.is_some() || self.port.is_some() {
            let host = self.host.unwrap_or_else(|| "127.0.0.1".to_owned());
            targets.insert(0, Endpoint::Tcp(host, self.port.unwrap_or(6379)));
        }
        spec.targets = targets;
        if self.duration && self.requests {
            return Err(
                "--duration and --requests both say when to end; one of them is enough".to_owned(),
            );
        }
        spec.units = match (self.units.is_empty(), self.ratio) {
            (true, None) => spec.units,
            (true, Some((sets, gets))) => Unit::sets_and_gets(sets, gets),
            (false, None) => self.units,
            (false, Some(_)) => {
                return Err(
                    "--ratio is about SET and GET; commands of your own have a --weight".to_owned(),
                );
            }
        };
        let arrivals = self.arrivals.unwrap_or(Arrivals::Poisson);
        spec.pace = match (self.rate, self.storm, self.think) {
            (None, None, think) => {
                if self.arrivals.is_some() {
                    return Err(
                        "--arrivals says how a --rate or a --storm is spread, and there is none"
                            .to_owned(),
                    );
                }
                Pace::Closed {
                    think: think.unwrap_or(Think::None),
                }
            }
            (Some(rate), None, None) => Pace::Open { rate, arrivals },
            (None, Some(rate), None) => Pace::Storm { rate, arrivals },
            _ => {
                return Err("only one of --rate, --storm and --think can set the pace".to_owned());
            }
        };
        spec.check()?;
        Ok(Options {
            spec,
            outputs: self.outputs,
        })
    }
}

fn takes(what: &str, value: &[u8]) -> String {
    format!("takes {what}, not '{}'", value.escape_ascii())
}

fn text(value: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(value).map_err(|_| takes("text", value))
}

fn path(value: &[u8]) -> Result<PathBuf, String> {
    match value.is_empty() {
        true => Err(takes("the name of a file", value)),
        false => Ok(Path::new(text(value)?).to_owned()),
    }
}

fn number(value: &[u8], least: u64, most: u64) -> Result<u64, String> {
    std::str::from_utf8(value)
        .ok()
        .and_then(words::count)
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            if most == u64::MAX {
                takes(
                    &format!("a whole number from {least} on, such as 10k or 1e6"),
                    value,
                )
            } else {
                takes(&format!("a whole number from {least} to {most}"), value)
            }
        })
}

fn time(value: &[u8]) -> Result<std::time::Duration, String> {
    std::str::from_utf8(value)
        .ok()
        .and_then(words::duration)
        .ok_or_else(|| takes("a time such as 10, 500ms, 30s or 5m", value))
}

fn rate(value: &[u8]) -> Result<f64, String> {
    let rate = std::str::from_utf8(value).ok().and_then(|text| {
        text.parse::<f64>()
            .ok()
            .or_else(|| Some(words::count(text)? as f64))
    });
    rate.filter(|rate| *rate > 0.0 && *rate <= 1e9)
        .ok_or_else(|| takes("a number per second above 0, such as 50000", value))
}

fn ratio(value: &str) -> Result<(u32, u32), String> {
    let parts = value.split_once(':').and_then(|(sets, gets)| {
        let part = |text: &str| text.parse::<u32>().ok().filter(|&part| part <= 1_000_000);
        Some((part(sets)?, part(gets)?))
    });
    parts
        .filter(|parts| *parts != (0, 0))
        .ok_or_else(|| takes("SETS:GETS such as 1:9", value.as_bytes()))
}

fn think(value: &str) -> Result<Think, String> {
    let (text, random) = match value.strip_prefix("exponential:") {
        Some(text) => (text, true),
        None => (value, false),
    };
    let wrong = || takes("a time such as 10ms or exponential:10ms", value.as_bytes());
    let time = words::duration(text).ok_or_else(wrong)?;
    Ok(match random {
        true => Think::Exponential(time),
        false => Think::Fixed(time),
    })
}

fn endpoint(value: &str) -> Result<Endpoint, String> {
    let wrong = || takes("HOST:PORT or the path of a socket", value.as_bytes());
    if value.contains('/') {
        return Ok(Endpoint::Unix(value.into()));
    }
    let (host, port) = value.rsplit_once(':').ok_or_else(wrong)?;
    let host = host
        .strip_prefix('[')
        .map_or(host, |host| host.strip_suffix(']').unwrap_or(host));
    let port = port.parse().ok().filter(|&port: &u16| port > 0);
    match (host, port) {
        ("", _) | (_, None) => Err(wrong()),
        (host, Some(port)) => Ok(Endpoint::Tcp(host.to_owned(), port)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn spec(line: &str) -> Result<Spec, String> {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        Spec::parse(&words)
    }

    #[test]
    fn words_make_a_description() {
        assert_eq!(spec(""), Ok(Spec::default()));
        let made = spec(
            "-h db1 -p 7000 -a secret --user me --db 3 -3 -c 200 -P16 --threads=4 -d 30s --warmup 2 --ratio 1:1 \
             --keys 1e6 --key-prefix k: --key-digits 12 --key-distribution zipf:0.99 --value-size 100=90,1k=10 \
             --rate 50000 --arrivals constant --seed 7 --verify --server-pid 12 --fill",
        )
        .unwrap();
        assert_eq!(made.targets, [Endpoint::Tcp("db1".to_owned(), 7000)]);
        assert_eq!(
            (made.connections, made.window(), made.threads),
            (200, 16, 4)
        );
        assert_eq!(made.limit, Limit::Time(Duration::from_secs(30)));
        assert_eq!(made.keys.distribution, Distribution::Zipf { theta: 0.99 });
        assert_eq!(
            made.pace,
            Pace::Open {
                rate: 50_000.0,
                arrivals: Arrivals::Constant
            }
        );
        assert_eq!(made.units, Unit::sets_and_gets(1, 1));
        assert_eq!(
            made.value_sizes,
            Sizes::Weighted(vec![(100, 90), (1024, 10)])
        );
        assert!(made.resp3 && made.verify && made.fill);
    }

    #[test]
    fn commands_have_weights() {
        let words: [&[u8]; 7] = [
            b"--command",
            b"LPUSH l:{int:1-9} {value}",
            b"--weight",
            b"3",
            b"--",
            b"LPOP",
            b"l:{int:1-9}",
        ];
        let made = Spec::parse(&words).unwrap();
        let weights: Vec<u32> = made.units.iter().map(|unit| unit.weight).collect();
        assert_eq!(weights, [3, 1]);
        assert_eq!(made.units[1].name, "LPOP l:{int:1-9}");
    }

    #[test]
    fn endpoints_are_of_three_kinds() {
        let made = spec("-p 1 --target [::1]:7001 --target /tmp/x --socket y").unwrap();
        assert_eq!(
            made.targets,
            [
                Endpoint::Tcp("127.0.0.1".to_owned(), 1),
                Endpoint::Tcp("::1".to_owned(), 7001),
                Endpoint::Unix("/tmp/x".into()),
                Endpoint::Unix("y".into()),
            ]
        );
        let made = spec("-u redis://me:pw@host:7000/3").unwrap();
        assert_eq!(made.targets, [Endpoint::Tcp("host".to_owned(), 7000)]);
        assert_eq!((made.user, made.database), (Some(b"me".to_vec()), 3));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, says) in [
            (
                "--rate abc",
                "--rate: takes a number per second above 0, such as 50000, not 'abc'",
            ),
            (
                "-c 0",
                "--connections: takes a whole number from 1 to 1048576, not '0'",
            ),
            ("-c", "--connections takes a value, and none follows"),
            ("--fill=yes", "--fill takes no value"),
            (
                "--duration 5x",
                "--duration: takes a time such as 10, 500ms, 30s or 5m, not '5x'",
            ),
            (
                "--ratio 0:0",
                "--ratio: takes SETS:GETS such as 1:9, not '0:0'",
            ),
            (
                "--rate 1 --think 1ms",
                "only one of --rate, --storm and --think can set the pace",
            ),
            (
                "-n 1 -d 1",
                "--duration and --requests both say when to end; one of them is enough",
            ),
            (
                "--weight 2",
                "--weight: it belongs behind the --command whose weight it is",
            ),
            (
                "--clients 5",
                "no option is called '--clients' (a command to send stands behind -- or in --command)",
            ),
            (
                "--json-out x",
                "what describes a workload cannot say where results go",
            ),
            (
                "--script /nowhere",
                "--script: /nowhere: No such file or directory (os error 2)",
            ),
        ] {
            assert_eq!(spec(line).unwrap_err(), says, "{line}");
        }
    }
}
