//! The mode that measures how long others wait while one client runs a slow command.
//!
//! Owns the order of the measurements. The light traffic is native mode's, sent by the clock, so that a stall delays no
//! request and each is measured from when it was due. Invariant: a command and its control are measured side by side, in
//! another order every round; nothing of the one reaches into the other.

mod burner;
mod data;
mod looped;
mod options;
mod report;

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weft_client::{Address, Connection};

use crate::interrupt::Interrupt;
use crate::load::system_text;
use crate::native::{self, Arrivals, Command, Endpoint, KeySpace, Limit, Pace, Spec, Unit};
use crate::server::{Facts, Launch, Process};
use burner::Burner;
use looped::Looped;
use options::{Options, USAGE};
use report::{Phase, Report, Row};

/// A command adds more than it may.
const BEYOND: u8 = 1;

/// A measurement failed.
const FAILED: u8 = 2;

/// What a measurement says that somebody ended.
const INTERRUPTED: &str = "interrupted";

/// What the last measurement left behind settles in this time: freed memory, sleeping threads.
const SETTLING: Duration = Duration::from_millis(200);

/// So long after its time the light traffic waits for answers.
const DRAIN: Duration = Duration::from_secs(60);

/// Does what the command line says.
pub fn run(arguments: &[Vec<u8>]) -> ExitCode {
    let ended = match options::parse(arguments) {
        Ok(Some(options)) => stall(&options),
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(why) => Err(why),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            eprintln!("weft-bench stall: {why}");
            ExitCode::from(FAILED)
        }
    }
}

fn stall(options: &Options) -> Result<u8, String> {
    let process = match &options.server {
        Some(command) => Some(Process::start(&Launch {
            command,
            threads: &options.threads,
            processors: options.server_processors.as_deref(),
        })?),
        None => None,
    };
    let server = match &process {
        Some(process) => SocketAddr::from(([127, 0, 0, 1], process.port())),
        None => reachable(&options.target)?,
    };
    let mut bench = Bench {
        options,
        server,
        connection: connect(server)?,
        interrupt: Interrupt::new(),
    };
    if options.fill > 0 {
        for missing in data::make(&mut bench.connection, options.fill)? {
            eprintln!("weft-bench stall: {missing}");
        }
    }
    let report = bench.measure()?;
    print!("{}", report.table());
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", report.to_json());
        fs::write(path, text)
            .map_err(|error| format!("{}: {}", path.display(), system_text(&error)))?;
    }
    if let Some(process) = process {
        process.stop();
    }
    let mut code = 0;
    for row in &report.rows {
        let added_ms = row.added().map(|added| added.median_us / 1000.0);
        if let (Some(most), Some(added)) = (options.added_p999_ms_max, added_ms)
            && added > most
        {
            println!("{}: adds {added:.3} ms, more than {most} ms", row.command);
            code = code.max(BEYOND);
        }
        if row.failure.is_some() {
            code = FAILED;
        }
    }
    Ok(code)
}

fn reachable((host, port): &(String, u16)) -> Result<SocketAddr, String> {
    let failed = |why: &str| format!("{host}:{port}: {why}");
    let mut addresses = (&host[..], *port)
        .to_socket_addrs()
        .map_err(|error| failed(&system_text(&error)))?;
    addresses.next().ok_or_else(|| failed("has no address"))
}

fn connect(server: SocketAddr) -> Result<Connection, String> {
    let address = Address::Tcp(server.ip().to_string(), server.port());
    Connection::connect(&address).map_err(|error| format!("{server}: {error}"))
}

/// The server, and what is asked of it.
struct Bench<'a> {
    options: &'a Options,
    server: SocketAddr,
    /// For questions between measurements.
    connection: Connection,
    interrupt: Interrupt,
}

impl Bench<'_> {
    fn measure(&mut self) -> Result<Report, String> {
        let facts = Facts::ask(&mut self.connection)?;
        let mut report = Report {
            server: facts.version.unwrap_or_else(|| self.server.to_string()),
            asked_rate: self.options.rate,
            with_nothing: Vec::new(),
            rows: Vec::new(),
        };
        report
            .rows
            .extend(self.options.commands.iter().map(|it| Row {
                command: it.0.clone(),
                ..Row::default()
            }));
        // What goes before the first measurement: connections, caches, the server's memory.
        self.light(Duration::from_millis(300).min(self.options.measured))?;
        for round in 0..self.options.rounds {
            let baseline = self.beside_nothing(round)?;
            report.with_nothing.push(baseline);
            let mut places: Vec<usize> = (0..report.rows.len()).collect();
            if round % 2 == 1 {
                places.reverse();
            }
            for place in places {
                let words = &self.options.commands[place].1;
                let row = &mut report.rows[place];
                if row.failure.is_some() {
                    continue;
                }
                if let Err(why) = self.one_round(round, words, &baseline, row) {
                    row.failure = Some(why);
                }
                if self.interrupt.came() {
                    return Ok(report);
                }
            }
        }
        Ok(report)
    }

    /// A command and its control. In odd rounds the control comes first and burns what the command took in the round before.
    fn one_round(
        &mut self,
        round: usize,
        words: &[String],
        baseline: &Phase,
        row: &mut Row,
    ) -> Result<(), String> {
        let before = row.with_command.last().copied();
        match before.filter(|_| round % 2 == 1) {
            Some(before) => {
                let control = self.beside_control(round, self.burned(&before, baseline), row)?;
                let command = self.beside_command(round, words, row)?;
                row.with_control.push(control);
                row.with_command.push(command);
            }
            None => {
                let command = self.beside_command(round, words, row)?;
                let control = self.beside_control(round, self.burned(&command, baseline), row)?;
                row.with_command.push(command);
                row.with_control.push(control);
            }
        }
        Ok(())
    }

    /// How much the control burns: what the command's client took, and what the server took more than without it, if both run
    /// on the same machine.
    fn burned(&self, with_command: &Phase, baseline: &Phase) -> f64 {
        let of_server = match (with_command.server_cores, baseline.server_cores) {
            (Some(with), Some(without)) if self.server.ip().is_loopback() => with - without,
            _ => 0.0,
        };
        let taken = with_command.beside_cores + of_server.max(0.0);
        self.options.control_cores.unwrap_or(taken)
    }

    fn beside_nothing(&mut self, round: usize) -> Result<Phase, String> {
        std::thread::sleep(SETTLING);
        eprint!("round {}: with nothing ... ", round + 1);
        let phase = self.phase(round)?;
        told(&phase);
        Ok(phase)
    }

    fn beside_command(
        &mut self,
        round: usize,
        words: &[String],
        row: &Row,
    ) -> Result<Phase, String> {
        std::thread::sleep(SETTLING);
        eprint!("round {}: {} ... ", round + 1, row.command);
        let began = Instant::now();
        let looped = Looped::start(self.server, words)?;
        let phase = self.phase(round);
        let runs = looped.stop()?;
        let phase = Phase {
            runs: runs.count,
            beside_cores: runs.cpu_seconds / began.elapsed().as_secs_f64(),
            ..phase?
        };
        told(&phase);
        Ok(phase)
    }

    fn beside_control(&mut self, round: usize, cores: f64, row: &Row) -> Result<Phase, String> {
        std::thread::sleep(SETTLING);
        eprint!(
            "round {}: control of {}, {cores:.2} cores ... ",
            round + 1,
            row.command
        );
        let burner = Burner::start(cores);
        let phase = self.phase(round)?;
        drop(burner);
        told(&phase);
        Ok(Phase {
            beside_cores: cores,
            ..phase
        })
    }

    /// The light traffic once.
    fn light(&self, time: Duration) -> Result<Phase, String> {
        let options = self.options;
        let command = Command::parse(&options.light).map_err(|why| format!("--command: {why}"))?;
        let spec = Spec {
            targets: vec![Endpoint::Tcp(
                self.server.ip().to_string(),
                self.server.port(),
            )],
            connections: options.connections,
            limit: Limit::Time(time),
            pace: Pace::Open {
                rate: options.rate,
                arrivals: Arrivals::Constant,
            },
            units: vec![Unit::single(command, 1)],
            keys: KeySpace {
                count: options.keys,
                ..KeySpace::default()
            },
            // A stall that outlasts the measurement is one all the same.
            drain: DRAIN,
            ..Spec::default()
        };
        let report = native::run_watched(&spec, &mut self.interrupt.clone());
        if self.interrupt.came() {
            return Err(INTERRUPTED.to_owned());
        }
        let report = report.map_err(|failure| failure.to_string())?;
        let failures = &report.failures;
        if report.operations == 0 {
            return Err(match failures.first.first() {
                Some(first) => format!("the light traffic: {first}"),
                None => "the light traffic: nothing was answered".to_owned(),
            });
        }
        let latency = &report.latency;
        let wrong = failures.wrong + failures.lost + failures.unanswered + failures.unsent;
        Ok(Phase {
            rate: report.rate.requests,
            failed: failures.errors + wrong,
            p50_us: latency.p50_us,
            p99_us: latency.p99_us,
            p999_us: latency.p99_9_us,
            max_us: latency.max_us,
            ..Phase::default()
        })
    }

    /// The light traffic once, and what the server used meanwhile.
    fn phase(&mut self, round: usize) -> Result<Phase, String> {
        let before = Facts::ask(&mut connect(self.server)?)?.cpu_seconds;
        let began = Instant::now();
        let mut phase = self.light(self.options.measured)?;
        let seconds = began.elapsed().as_secs_f64();
        let after = Facts::ask(&mut connect(self.server)?)?.cpu_seconds;
        phase.round = round;
        phase.server_cores = after
            .zip(before)
            .map(|(after, before)| (after - before) / seconds);
        Ok(phase)
    }
}

fn told(phase: &Phase) {
    eprintln!(
        "p99.9 {:.3} ms, {:.0}/s",
        phase.p999_us / 1000.0,
        phase.rate
    );
}
