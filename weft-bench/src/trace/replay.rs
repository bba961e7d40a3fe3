//! `weft-bench replay`: sends what a trace holds, and reports like `weft-bench run`.
//!
//! Owns the command line and what each connection sends: one for each client of the trace, opened shortly before its first
//! request and closed after its last. At a pace, requests are due when they were recorded, and latencies count from then;
//! without one, each connection sends as fast as it is answered. Commands that would take a server out of service, or whose
//! answers do not come one by one, are left out and counted. Invariant: a connection's requests keep their order.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weft_resp::RequestWriter;
use weft_rope::Output;

use super::Others;
use super::format::{Place, Request, Trace};
use crate::load::{Asked, Conduct, ErrorReplies, Losses, Next, Plan, Run, Workload, system_text};
use crate::native::options::{self, Instead, Outputs};
use crate::native::report::{ClassName, Material, Report, SCALE, Tally, Workload as Description};
use crate::native::{Spec, prologue, raise_descriptors, reached, terminal, watch_run};

const USAGE: &str = "\
Usage: weft-bench replay [options] TRACE

Sends what `weft-bench record` recorded, one connection for each client, and reports like `weft-bench run`.
It writes to the server what was written then: take one that may be written to.

  -h, --host HOST, -p, --port PORT, -s, --socket PATH, -u, --uri URI
  --user NAME, -a, --password PASSWORD, -3, --resp3
  --speed X            so many times as fast as recorded (1); `max`: as fast as answers come
  -P, --pipeline N     requests of a connection under way (1000; with --speed max 1)
  -t, --threads N      threads of this program (1)
  --skip NAME,...      leave out these commands too
  --drain TIME         how long to wait for answers in the end (10s)
  --server-pid PID, --name TEXT, --json-out FILE, --csv-out FILE, --hdr-out FILE, --progress, --no-progress
";

/// Options that mean what they mean in `weft-bench run`.
const SHARED: [&str; 18] = [
    "host",
    "port",
    "socket",
    "target",
    "uri",
    "user",
    "password",
    "resp3",
    "pipeline",
    "threads",
    "drain",
    "server-pid",
    "name",
    "json-out",
    "csv-out",
    "hdr-out",
    "progress",
    "no-progress",
];

/// Commands that are left out: they end or change the server, or their answers do not come one by one.
const SKIPPED: [&str; 15] = [
    "SHUTDOWN",
    "REPLICAOF",
    "SLAVEOF",
    "FAILOVER",
    "SYNC",
    "PSYNC",
    "REPLCONF",
    "MONITOR",
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "QUIT",
];

/// Commands that are left out with these subcommands.
const SKIPPED_SUBCOMMANDS: [(&str, &str); 3] =
    [("CLIENT", "REPLY"), ("DEBUG", ""), ("CLUSTER", "")];

/// So many commands are told apart in the report.
const CLASSES_MAX: usize = 200;

/// A connection is opened so long before its first request.
const LEAD_NS: u64 = 200_000_000;

/// Requests of a connection under way, unless that is said.
const PIPELINE_PACED: u32 = 1000;

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    spec: Spec,
    outputs: Outputs,
    /// `None`: as fast as answers come.
    speed: Option<f64>,
    skip: Vec<String>,
    trace: PathBuf,
}

/// Does what the command line says, without the program's and the mode's name in it.
pub fn main(arguments: &[Vec<u8>]) -> ExitCode {
    let ended = match parse(arguments) {
        Ok(options) => replay(&options),
        Err(Instead::Usage) => io::stdout()
            .write_all(USAGE.as_bytes())
            .map_err(|error| error.to_string()),
        Err(Instead::Refused(why)) => Err(format!(
            "{why}\nTry 'weft-bench replay --help' for the options."
        )),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("weft-bench replay: {why}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[Vec<u8>]) -> Result<Options, Instead> {
    let refused = |why: String| Instead::Refused(why);
    let mut others = Others::default();
    let (mut speed, mut skip) = (Some(1.0), Vec::new());
    let mut rest = arguments.iter().map(Vec::as_slice);
    while let Some(word) = rest.next() {
        let (name, attached) = match memchr::memchr(b'=', word) {
            Some(at) if word.starts_with(b"--") => (&word[..at], Some(&word[at + 1..])),
            _ => (word, None),
        };
        let mut text = || {
            let name = String::from_utf8_lossy(name).into_owned();
            let value = attached.or_else(|| rest.next());
            let value =
                value.ok_or_else(|| refused(format!("{name} takes a value, and none follows")))?;
            std::str::from_utf8(value).map_err(|_| refused(format!("{name} takes text")))
        };
        match name {
            b"--help" => return Err(Instead::Usage),
            b"--speed" => {
                let value = text()?;
                speed = match value {
                    "max" => None,
                    _ => {
                        let factor = value.parse::<f64>().ok();
                        let factor = factor.filter(|it| (1e-3..=1e6).contains(it));
                        Some(factor.ok_or_else(|| {
                            refused(format!(
                                "--speed takes a factor from 0.001 to 1000000 or max, not '{value}'"
                            ))
                        })?)
                    }
                };
            }
            b"--skip" => {
                let names = text()?.split(',').filter(|name| !name.is_empty());
                skip.extend(names.map(str::to_ascii_uppercase));
            }
            _ => others.take(word, &SHARED, &mut rest)?,
        }
    }
    let options = options::parse(&others.shared)?;
    Ok(Options {
        spec: options.spec,
        outputs: options.outputs,
        speed,
        skip,
        trace: others.trace()?,
    })
}

/// Replays and reports. The error is for the user.
fn replay(options: &Options) -> Result<(), String> {
    let path = options.trace.display();
    let bytes =
        fs::read(&options.trace).map_err(|error| format!("{path}: {}", system_text(&error)))?;
    let trace = Trace::open(bytes.into()).map_err(|error| format!("{path}: {error}"))?;
    let mut notes = Vec::new();
    if !trace.complete {
        notes.push(format!(
            "the trace was cut off after {} requests",
            trace.requests
        ));
    }
    let said = |failure: crate::native::Failure| failure.to_string();
    let servers = options
        .spec
        .targets
        .iter()
        .map(|target| reached(target).map_err(said))
        .collect::<Result<Vec<_>, String>>()?;
    let score = Arc::new(Score::new(trace, options));
    if score.parts.is_empty() {
        return Err(format!("{path}: there is nothing in it to send"));
    }
    if score.skipped > 0 {
        notes.push(format!(
            "{} requests of the trace were left out, since they would end or change the server or have no answer of their own",
            score.skipped
        ));
    }
    let plan = plan(options, &score, &servers);
    let (connections, threads, window) = (plan.connections, plan.threads, plan.window);
    let mut watch = terminal::Watcher::new(&options.outputs).map_err(said)?;
    let run = Run::start(&plan, |thread| Players::new(&score, thread, threads))
        .map_err(|failure| failure.to_string())?;
    let watched =
        watch_run(run, Duration::ZERO, options.spec.server_pid, &mut watch).map_err(said)?;
    watch.finish().map_err(said)?;
    let tally = match score.tally.lock() {
        Ok(tally) => tally.clone(),
        Err(poisoned) => poisoned.into_inner().clone(),
    };
    let length_s = score.trace.length_us as f64 / 1e6;
    let asked = options
        .speed
        .filter(|_| length_s > 0.0)
        .map(|speed| score.requests as f64 / length_s * speed);
    let mut report = Report::new(Material {
        name: &options.spec.name,
        workload: Description {
            targets: servers.iter().map(|server| server.name.clone()).collect(),
            pace: match options.speed {
                Some(speed) => format!("replay {speed}"),
                None => "replay max".to_owned(),
            },
            connections,
            pipeline: window,
            threads,
            commands: vec![format!("trace {path}")],
            ..Description::default()
        },
        asked,
        started_unix_s: watched.started_unix_s,
        time: None,
        outcome: &watched.outcome,
        classes: &score.classes,
        commands: score.classes.len(),
        tally: &tally,
        server: watched.server,
    });
    notes.append(&mut report.warnings);
    report.warnings = notes;
    terminal::write(&report, &options.outputs).map_err(said)
}

fn plan(options: &Options, score: &Score, servers: &[crate::reach::Server]) -> Plan {
    let spec = &options.spec;
    let connections = score.parts.len();
    let threads = spec.threads.min(connections);
    raise_descriptors(connections, threads);
    let window = spec.pipeline.unwrap_or(match options.speed {
        Some(_) => PIPELINE_PACED,
        None => 1,
    });
    Plan {
        targets: servers.iter().map(|server| server.target.clone()).collect(),
        connections,
        threads,
        window,
        refill_at: window - 1,
        prologue: Arc::new(prologue(spec)),
        errors: ErrorReplies::Counted,
        scale: SCALE,
        classes: score.classes.len(),
        conduct: Conduct {
            losses: Losses::Counted,
            lazy: true,
            warmup: Duration::ZERO,
            patience: options.speed.map(|speed| {
                let length = Duration::from_micros(score.trace.length_us);
                let seconds = (length.as_secs_f64() / speed).min(31_536_000.0);
                Duration::from_secs_f64(seconds) + spec.drain
            }),
            interval: Some(Duration::from_secs(1)),
            ..Conduct::default()
        },
    }
}

/// What is played.
#[derive(Debug)]
struct Score {
    trace: Trace,
    /// What each connection sends: places of requests, with their class.
    parts: Vec<Vec<(Place, u16)>>,
    requests: u64,
    skipped: u64,
    classes: Vec<ClassName>,
    /// Nanoseconds for a microsecond of the trace; `None`: as fast as answers come.
    pace_ns: Option<f64>,
    tally: Mutex<Tally>,
}

/// The class of the SELECT that is sent when a request wants another database than the last one.
const SELECT: u16 = 0;

impl Score {
    fn new(mut trace: Trace, options: &Options) -> Score {
        let mut classes = vec![ClassName {
            name: "(SELECT)".to_owned(),
            text: "SELECT, sent where a request wants another database".to_owned(),
        }];
        let mut known: HashMap<Vec<u8>, u16> = HashMap::new();
        let mut skipped = 0;
        let clients = std::mem::take(&mut trace.clients);
        let parts: Vec<Vec<(Place, u16)>> = clients
            .into_iter()
            .map(|client| {
                let mut part = Vec::with_capacity(client.requests.len());
                for place in client.requests {
                    let request = trace.request(place);
                    let name = request.name.to_ascii_uppercase();
                    if is_skipped(&name, &request, &options.skip) {
                        skipped += 1;
                        continue;
                    }
                    let class = match known.get(&name) {
                        Some(&class) => class,
                        None => {
                            let class = classes.len().min(CLASSES_MAX);
                            if class == classes.len() {
                                let text = match class {
                                    CLASSES_MAX => "others".to_owned(),
                                    _ => String::from_utf8_lossy(&name).into_owned(),
                                };
                                classes.push(ClassName {
                                    name: text.clone(),
                                    text,
                                });
                            }
                            known.insert(name, class as u16);
                            class as u16
                        }
                    };
                    part.push((place, class));
                }
                part
            })
            .filter(|part| !part.is_empty())
            .collect();
        Score {
            requests: parts.iter().map(|part| part.len() as u64).sum(),
            parts,
            skipped,
            classes,
            pace_ns: options.speed.map(|speed| 1000.0 / speed),
            tally: Mutex::new(Tally::new()),
            trace,
        }
    }
}

fn is_skipped(name: &[u8], request: &Request<'_>, more: &[String]) -> bool {
    let is = |text: &str| text.as_bytes() == name;
    let subcommand = || {
        let first = request.arguments().next().unwrap_or_default();
        first.to_ascii_uppercase()
    };
    SKIPPED.iter().any(|text| is(text))
        || more.iter().any(|text| is(text))
        || SKIPPED_SUBCOMMANDS.iter().any(|(name, wanted)| {
            is(name) && (wanted.is_empty() || subcommand() == wanted.as_bytes())
        })
}

/// The connections of one thread.
#[derive(Debug)]
struct Players {
    score: Arc<Score>,
    thread: usize,
    threads: usize,
    players: Vec<Player>,
    start_ns: u64,
    tally: Tally,
}

#[derive(Clone, Debug, Default)]
struct Player {
    /// The next request.
    next: usize,
    database: u32,
    /// Nothing was sent that was due because the connection had no room.
    held_up: bool,
}

impl Players {
    fn new(score: &Arc<Score>, thread: usize, threads: usize) -> Players {
        Players {
            players: vec![Player::default(); (thread..score.parts.len()).step_by(threads).count()],
            score: Arc::clone(score),
            thread,
            threads,
            start_ns: 0,
            tally: Tally::new(),
        }
    }
}

impl Workload for Players {
    fn started(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
    }

    fn next(&mut self, asked: &Asked, out: &mut Output) -> Next {
        let score = &*self.score;
        let player = &mut self.players[asked.connection / self.threads];
        let part = &score.parts[asked.connection];
        let Some(&(place, class)) = part.get(player.next) else {
            return Next::Finished;
        };
        let due_ns = score.pace_ns.map(|pace_ns| {
            self.start_ns
                .saturating_add((place.at_us as f64 * pace_ns) as u64)
        });
        if !asked.open {
            let opening_ns = due_ns.unwrap_or(0).saturating_sub(LEAD_NS);
            return match opening_ns > asked.now_ns {
                true => Next::CloseUntil(opening_ns),
                false => Next::Reconnect,
            };
        }
        if asked.fresh {
            player.database = 0;
        }
        if let Some(due_ns) = due_ns
            && due_ns > asked.now_ns
        {
            player.held_up = false;
            return Next::At(due_ns);
        }
        let request = score.trace.request(place);
        let selected = selected(&request);
        if selected.is_none() && request.database != player.database {
            player.database = request.database;
            let mut writer = RequestWriter::new(out.tail());
            writer.begin(2);
            writer.arg(b"SELECT");
            writer.arg_integer(i64::from(request.database));
            return Next::Requests {
                count: 1,
                class: SELECT,
            };
        }
        player.database = selected.unwrap_or(player.database);
        let mut writer = RequestWriter::new(out.tail());
        writer.begin(1 + request.count);
        writer.arg(request.name);
        for argument in request.arguments() {
            writer.arg(argument);
        }
        player.next += 1;
        match due_ns {
            Some(due_ns) => {
                let late = asked.now_ns.saturating_sub(due_ns) / SCALE.unit_ns;
                match player.held_up {
                    true => self.tally.held.saturating_record(late),
                    false => self.tally.late.saturating_record(late),
                }
                player.held_up |= asked.room == 1;
                Next::Due {
                    count: 1,
                    class,
                    due_ns,
                }
            }
            None => Next::Requests { count: 1, class },
        }
    }

    fn lost(&mut self, connection: usize) {
        self.players[connection / self.threads].held_up = true;
    }

    fn finished(&mut self, now_ns: u64) {
        if let Some(pace_ns) = self.score.pace_ns {
            let passed_us = (now_ns.saturating_sub(self.start_ns) as f64 / pace_ns) as u64;
            for (index, player) in self.players.iter().enumerate() {
                let part = &self.score.parts[self.thread + index * self.threads];
                let rest = &part[player.next..];
                self.tally.unsent +=
                    rest.partition_point(|(place, _)| place.at_us < passed_us) as u64;
            }
        }
        match self.score.tally.lock() {
            Ok(mut tally) => tally.add(&self.tally),
            Err(poisoned) => poisoned.into_inner().add(&self.tally),
        }
    }
}

/// The database that a request selects.
fn selected(request: &Request<'_>) -> Option<u32> {
    if !request.name.eq_ignore_ascii_case(b"SELECT") {
        return None;
    }
    let number = request.arguments().next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}
