//! Whether a setting of `io-threads` hurts: every setting beside `io-threads 1`, over numbers of connections and pipelines.
//!
//! One server for each setting runs all the time; one that nobody talks to costs nothing. In a round each setting is
//! loaded once, in an order that changes from round to round, and its rate is divided by that of `io-threads 1` in the
//! same round. Rounds go on until every setting's interval is narrow enough. A rate is what the server counted
//! within a fixed window, not what the load generator says: its own end and its connecting stay out of it.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weft_client::{Connection, Reply};

use crate::error::KitError;
use crate::interval::{Interval, median};
use crate::server::Server;
use crate::throughput::{cpu_us, fill};

/// A setting hurts if its whole interval lies below this.
pub const HURTS_BELOW: f64 = 0.97;
/// Fewer rounds than these say nothing, however narrow the interval is.
pub const ROUNDS_MIN: usize = 5;
/// The interval wanted, as half of its width.
pub const HALF_WIDTH_WANTED: f64 = 0.05;

/// More requests than fit into any window: the load generator is ended, it does not come to an end.
const REQUESTS: &str = "2000000000";
/// How long the load generator may take to connect.
const CONNECT_SECONDS_MAX: u64 = 20;
/// Between looks at whether it has.
const CONNECT_POLL: Duration = Duration::from_millis(5);

/// A value of `io-threads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A number of threads.
    Threads(usize),
    /// `auto`.
    Auto,
}

impl Setting {
    /// The setting that the others are compared with.
    pub const BASE: Setting = Setting::Threads(1);

    /// The setting of a text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Setting::Auto),
            number => match number.parse() {
                Ok(threads @ 1..=1024) => Some(Setting::Threads(threads)),
                _ => None,
            },
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Threads(threads) => write!(f, "{threads}"),
            Setting::Auto => f.write_str("auto"),
        }
    }
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server's program.
    pub program: PathBuf,
    /// Its arguments besides `io-threads`.
    pub arguments: Vec<String>,
    /// Whether as many workers are made active as the setting allows, whatever the load asks for.
    pub forced: bool,
    /// The settings; [`Setting::BASE`] is measured even if it is not among them.
    pub settings: Vec<Setting>,
    /// Numbers of connections.
    pub connections: Vec<usize>,
    /// Requests under way per connection.
    pub pipelines: Vec<usize>,
    /// redis-benchmark's name of the test.
    pub test: String,
    /// Threads of the load generator.
    pub client_threads: usize,
    /// Keys that are there before, each with a value of `value_bytes`.
    pub keys: usize,
    /// Bytes of every value.
    pub value_bytes: usize,
    /// How long the load runs before it is measured.
    pub warm_up: Duration,
    /// How long it is measured.
    pub window: Duration,
    /// Rounds after which a cell is left, narrow or not.
    pub rounds_max: usize,
}

/// One setting under one load.
#[derive(Clone, Debug)]
pub struct Row {
    /// Connections of the load.
    pub connections: usize,
    /// Requests under way per connection.
    pub pipeline: usize,
    /// The setting.
    pub setting: Setting,
    /// Its rate divided by that of [`Setting::BASE`]; `None` for that one itself, and after fewer than two rounds.
    pub interval: Option<Interval>,
    /// Commands per second, the median of the rounds.
    pub rate: f64,
    /// Microseconds of processor time per command, the median of the rounds.
    pub cpu_us: f64,
    /// Cores that the load generator kept busy, the median of the rounds: as many as it has threads mean that it, and not
    /// the server, was the limit.
    pub client_cores: f64,
    /// How often it was measured.
    pub rounds: usize,
}

impl Row {
    /// The head of [`csv`](Self::csv).
    pub const CSV_HEAD: &'static str = "connections,pipeline,io_threads,rate,ratio,low,high,cpu_us_per_op,client_cores,rounds,hurts";
    /// The head of the text form.
    const HEAD: &'static str = "connections  pipeline  io-threads      k/s   ratio   95 % interval   CPU us/op  client cores  rounds";

    /// Whether the setting is slower than one thread, beyond doubt.
    pub fn hurts(&self) -> bool {
        self.interval
            .is_some_and(|interval| interval.lies_below(HURTS_BELOW))
    }

    /// Whether the interval is wider than wanted.
    fn is_wide(&self) -> bool {
        self.setting != Setting::BASE
            && self
                .interval
                .is_none_or(|interval| interval.half_width() > HALF_WIDTH_WANTED)
    }

    /// As a line of comma-separated values.
    pub fn csv(&self) -> String {
        let interval = self.interval.map_or(",,".to_owned(), |interval| {
            format!(
                "{:.4},{:.4},{:.4}",
                interval.ratio, interval.low, interval.high
            )
        });
        format!(
            "{},{},{},{:.0},{interval},{:.3},{:.2},{},{}",
            self.connections,
            self.pipeline,
            self.setting,
            self.rate,
            self.cpu_us,
            self.client_cores,
            self.rounds,
            u8::from(self.hurts())
        )
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = self.interval.map_or(format!("{:24}", ""), |interval| {
            format!(
                "{:>8.3}   {:.3} - {:.3}",
                interval.ratio, interval.low, interval.high
            )
        });
        let remark = if self.hurts() {
            "  HURTS"
        } else if self.is_wide() {
            "  (wide)"
        } else {
            ""
        };
        write!(
            f,
            "{:>11}{:>10}{:>12}{:>9.1}{interval}{:>12.3}{:>14.2}{:>8}{remark}",
            self.connections,
            self.pipeline,
            self.setting.to_string(),
            self.rate / 1000.0,
            self.cpu_us,
            self.client_cores,
            self.rounds
        )
    }
}

/// Measures all cells, prints each when it is done, writes comma-separated values to `csv` if it is there, and returns all
/// rows.
pub fn run(
    plan: &Plan,
    benchmark: &std::path::Path,
    csv: Option<&mut dyn Write>,
) -> Result<Vec<Row>, KitError> {
    let mut settings = vec![Setting::BASE];
    for setting in &plan.settings {
        if !settings.contains(setting) {
            settings.push(*setting);
        }
    }
    let mut subjects = Vec::new();
    for setting in settings {
        subjects.push(Subject::start(plan, setting)?);
    }
    let mut rows = Vec::new();
    println!("{}", Row::HEAD);
    for &pipeline in &plan.pipelines {
        for &connections in &plan.connections {
            let load = Load {
                plan,
                benchmark,
                connections,
                pipeline,
            };
            for row in load.cell(&mut subjects)? {
                println!("{row}");
                rows.push(row);
            }
        }
    }
    if let Some(csv) = csv {
        let lines: Vec<String> = rows.iter().map(Row::csv).collect();
        writeln!(csv, "{}\n{}", Row::CSV_HEAD, lines.join("\n"))
            .map_err(KitError::io("write the comma-separated values"))?;
    }
    Ok(rows)
}

/// A server with one of the settings, filled.
struct Subject {
    setting: Setting,
    server: Server,
    control: Connection,
}

impl Subject {
    fn start(plan: &Plan, setting: Setting) -> Result<Self, KitError> {
        let mut arguments = plan.arguments.clone();
        arguments.extend(["--io-threads".to_owned(), setting.to_string()]);
        if plan.forced {
            arguments.extend(["--enable-debug-command", "yes"].map(str::to_owned));
        }
        let server = Server::start(&plan.program, &arguments)?;
        let mut control = server.connect()?;
        let value = vec![b'x'; plan.value_bytes];
        fill(&mut control, plan.keys, |number| {
            [format!("key:{number:012}").into_bytes(), value.clone()]
        })?;
        if plan.forced {
            let workers = match setting {
                Setting::Threads(threads) => threads.to_string(),
                Setting::Auto => cap(&mut control)?,
            };
            let reply = control.command(&["DEBUG", "WORKERS", &workers])?;
            if reply != Reply::Simple(b"OK".to_vec()) {
                return Err(unexpected(&format!("DEBUG WORKERS {workers}"), &reply));
            }
        }
        Ok(Subject {
            setting,
            server,
            control,
        })
    }
}

/// What `io-threads` amounts to.
fn cap(control: &mut Connection) -> Result<String, KitError> {
    let reply = control.command(&["CONFIG", "GET", "io-threads"])?;
    if let Reply::Array(words) = &reply
        && let [_, Reply::Bulk(number)] = words.as_slice()
    {
        return Ok(String::from_utf8_lossy(number).into_owned());
    }
    Err(unexpected("CONFIG GET io-threads", &reply))
}

fn unexpected(request: &str, reply: &Reply) -> KitError {
    let text = match reply {
        Reply::Error(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    };
    KitError::Unexpected(format!("{request} was answered {text}"))
}

/// A number of INFO.
fn info_number(control: &mut Connection, section: &str, field: &str) -> Result<u64, KitError> {
    let reply = control.command(&["INFO", section])?;
    let Reply::Bulk(text) = &reply else {
        return Err(unexpected(&format!("INFO {section}"), &reply));
    };
    String::from_utf8_lossy(text)
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':')?.parse().ok())
        .ok_or_else(|| KitError::Unexpected(format!("INFO {section} tells no {field}")))
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    rate: f64,
    cpu_us: f64,
    client_cores: f64,
}

/// One cell's load.
struct Load<'a> {
    plan: &'a Plan,
    benchmark: &'a std::path::Path,
    connections: usize,
    pipeline: usize,
}

impl Load<'_> {
    fn cell(&self, subjects: &mut [Subject]) -> Result<Vec<Row>, KitError> {
        let mut cell = Cell::new(subjects.iter().map(|subject| subject.setting).collect());
        let mut round = 0;
        while round < self.plan.rounds_max {
            let order = cell.order(round);
            if order.is_empty() {
                break;
            }
            let mut samples = Vec::new();
            for place in order {
                samples.push((place, self.measure(&mut subjects[place])?));
            }
            cell.take(&samples);
            round += 1;
        }
        Ok(cell.rows(self.connections, self.pipeline))
    }

    fn measure(&self, subject: &mut Subject) -> Result<Sample, KitError> {
        let generator = self.start(subject)?;
        self.wait_until_connected(subject)?;
        std::thread::sleep(self.plan.warm_up);
        let commands =
            |control: &mut Connection| info_number(control, "stats", "total_commands_processed");
        let commands_before = commands(&mut subject.control)?;
        let start = Instant::now();
        let server = subject.server.process();
        let (server_before, client_before) = (cpu_us(server)?, cpu_us(generator.0.id())?);
        // The window is what is measured.
        std::thread::sleep(self.plan.window);
        let server_us = cpu_us(server)?.saturating_sub(server_before);
        let client_us = cpu_us(generator.0.id())?.saturating_sub(client_before);
        let commands_after = commands(&mut subject.control)?;
        let seconds = start.elapsed().as_secs_f64();
        drop(generator);
        let done = commands_after.saturating_sub(commands_before);
        if done == 0 {
            return Err(subject.server.failure("did nothing under load"));
        }
        Ok(Sample {
            rate: done as f64 / seconds,
            cpu_us: server_us as f64 / done as f64,
            client_cores: client_us as f64 / seconds / 1e6,
        })
    }

    fn start(&self, subject: &Subject) -> Result<Generator, KitError> {
        let mut command = Command::new(self.benchmark);
        command
            .args(["-p", &subject.server.port().to_string()])
            .args(["-c", &self.connections.to_string()])
            .args(["-P", &self.pipeline.to_string()])
            .args(["-r", &self.plan.keys.to_string()])
            .args(["-d", &self.plan.value_bytes.to_string()])
            .args(["-t", &self.plan.test, "-n", REQUESTS, "--csv"]);
        if self.plan.client_threads > 1 {
            command.args(["--threads", &self.plan.client_threads.to_string()]);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(KitError::io("run redis-benchmark"))?;
        Ok(Generator(child))
    }

    fn wait_until_connected(&self, subject: &mut Subject) -> Result<(), KitError> {
        let deadline = Instant::now() + Duration::from_secs(CONNECT_SECONDS_MAX);
        // The control connection is one of them.
        let wanted = self.connections as u64 + 1;
        while info_number(&mut subject.control, "clients", "connected_clients")? < wanted {
            if Instant::now() > deadline {
                return Err(subject
                    .server
                    .failure(&format!("never had {wanted} connections")));
            }
            std::thread::sleep(CONNECT_POLL);
        }
        Ok(())
    }
}

/// A running load generator, ended when dropped.
struct Generator(Child);

impl Drop for Generator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The samples of all settings under one load; the first is the base.
struct Cell {
    settings: Vec<Setting>,
    samples: Vec<Vec<Sample>>,
    ratios: Vec<Vec<f64>>,
}

impl Cell {
    fn new(settings: Vec<Setting>) -> Self {
        Cell {
            samples: vec![Vec::new(); settings.len()],
            ratios: vec![Vec::new(); settings.len()],
            settings,
        }
    }

    /// Who is measured in a round, in which order: the base and all whose interval is not yet narrow enough, each at
    /// another place every round and with the other neighbour every second round. Nobody if all are.
    fn order(&self, round: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (1..self.settings.len())
            .filter(|place| !self.is_settled(*place))
            .collect();
        if order.is_empty() {
            return order;
        }
        order.insert(0, 0);
        let turn = round / 2 % order.len();
        order.rotate_left(turn);
        if round % 2 == 1 {
            order.reverse();
        }
        order
    }

    fn is_settled(&self, place: usize) -> bool {
        let ratios = &self.ratios[place];
        ratios.len() >= ROUNDS_MIN
            && Interval::of_ratios(ratios)
                .is_some_and(|interval| interval.half_width() <= HALF_WIDTH_WANTED)
    }

    /// The samples of one round, among them the base's.
    fn take(&mut self, samples: &[(usize, Sample)]) {
        let base = samples
            .iter()
            .find(|(place, _)| *place == 0)
            .map(|(_, sample)| sample.rate);
        for (place, sample) in samples {
            self.samples[*place].push(*sample);
            if let Some(base) = base {
                self.ratios[*place].push(sample.rate / base);
            }
        }
    }

    fn rows(&self, connections: usize, pipeline: usize) -> Vec<Row> {
        let row = |place: usize| Row {
            connections,
            pipeline,
            setting: self.settings[place],
            interval: (place > 0)
                .then(|| Interval::of_ratios(&self.ratios[place]))
                .flatten(),
            rate: median(self.samples[place].iter().map(|sample| sample.rate)),
            cpu_us: median(self.samples[place].iter().map(|sample| sample.cpu_us)),
            client_cores: median(self.samples[place].iter().map(|sample| sample.client_cores)),
            rounds: self.samples[place].len(),
        };
        (0..self.settings.len()).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rate: f64) -> Sample {
        Sample {
            rate,
            cpu_us: 2.0,
            client_cores: 1.0,
        }
    }

    #[test]
    fn settings_are_numbers_and_auto() {
        assert_eq!(Setting::parse("1"), Some(Setting::BASE));
        assert_eq!(Setting::parse("1024"), Some(Setting::Threads(1024)));
        assert_eq!(Setting::parse("auto"), Some(Setting::Auto));
        for wrong in ["0", "1025", "-1", "", "two", "Auto"] {
            assert_eq!(Setting::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_setting_comes_first_and_last_in_turn() {
        let cell = Cell::new(vec![Setting::BASE, Setting::Threads(2), Setting::Auto]);
        let orders: Vec<Vec<usize>> = (0..6).map(|round| cell.order(round)).collect();
        assert_eq!(
            orders,
            [
                [0, 1, 2],
                [2, 1, 0],
                [1, 2, 0],
                [0, 2, 1],
                [2, 0, 1],
                [1, 0, 2]
            ]
        );
    }

    #[test]
    fn ratios_are_those_of_one_round_and_narrow_settings_rest() {
        let mut cell = Cell::new(vec![Setting::BASE, Setting::Threads(2), Setting::Auto]);
        for round in 0..ROUNDS_MIN {
            assert_eq!(cell.order(round).len(), 3);
            // The machine's speed changes from round to round; the second setting is always a tenth slower.
            let speed = 1000.0 + 500.0 * round as f64;
            let wild = if round % 2 == 0 { 0.5 } else { 2.0 };
            cell.take(&[
                (2, sample(speed * wild)),
                (1, sample(speed * 0.9)),
                (0, sample(speed)),
            ]);
        }
        let mut left = cell.order(0);
        left.sort_unstable();
        assert_eq!(left, [0, 2], "the first has settled");
        let rows = cell.rows(50, 16);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].interval, None);
        assert!(!rows[0].hurts());
        assert_eq!(rows[0].rate, 2000.0);
        assert!(rows[1].hurts());
        assert!(!rows[1].is_wide());
        assert!(rows[2].is_wide());
        assert!(!rows[2].hurts());
        assert_eq!(
            rows[1].csv(),
            "50,16,2,1800,0.9000,0.9000,0.9000,2.000,1.00,5,1"
        );
        assert_eq!(rows[0].csv(), "50,16,1,2000,,,,2.000,1.00,5,0");
        assert_eq!(
            Row::CSV_HEAD.split(',').count(),
            rows[0].csv().split(',').count()
        );
    }

    #[test]
    fn a_cell_without_other_settings_is_done_at_once() {
        assert_eq!(Cell::new(vec![Setting::BASE]).order(0), Vec::<usize>::new());
    }
}
