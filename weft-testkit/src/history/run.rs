//! A run: episodes of all shapes against one server, each judged when it has ended, while connections migrate.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weft_client::{Address, Connection, Reply};

use super::check::{Effort, Limits, check};
use super::episode::{Episode, Players};
use super::load::SHAPES;
use crate::error::KitError;

/// How long the server may take for a command that has the keyspace to itself.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Milliseconds between two changes of the number of workers.
const MIGRATION_MS: std::ops::Range<u64> = 20..50;

/// A judgement that takes longer is told.
const SLOW: Duration = Duration::from_secs(1);

/// What a run consists of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Connections under load.
    pub connections: usize,
    /// No episode begins after so long, once every shape of load has had its turn.
    pub time: Duration,
    /// Episodes at most.
    pub episodes: usize,
    /// What everything random comes from.
    pub seed: u64,
    /// Workers to be made active by DEBUG WORKERS; `None` leaves it to the server.
    pub workers: Option<u32>,
    /// Whether the number of workers changes all the time between 1 and `workers`, so that connections migrate.
    pub migrate: bool,
    /// Only shapes whose names contain this.
    pub shape: Option<String>,
    /// Bounds of the judgement.
    pub limits: Limits,
    /// Where a violation is written to.
    pub folder: PathBuf,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// Episodes played and judged.
    pub episodes: usize,
    /// What the judgement took.
    pub effort: Effort,
    /// Time spent playing.
    pub playing: Duration,
    /// Time spent judging.
    pub judging: Duration,
    /// How often the number of workers was changed.
    pub migrations: usize,
    /// A history that no order explains, as it is told.
    pub violation: Option<String>,
}

impl Summary {
    /// Whether nothing was found and nothing left open.
    pub fn passed(&self) -> bool {
        self.violation.is_none() && self.effort.undecided == 0 && self.episodes > 0
    }
}

/// Runs against the server at `address`, all of whose keys are lost. Ends at the first violation.
pub fn run(address: (String, u16), plan: &Plan) -> Result<Summary, KitError> {
    let mut summary = Summary::default();
    let mut control = connect(&address)?;
    if let Some(workers) = plan.workers {
        activate(&mut control, workers)?;
    }
    let players = Players::connect(address.clone(), plan.connections)?;
    let migration = match plan.workers {
        Some(workers) if plan.migrate => Some(Migration::start(&address, workers, plan.seed)?),
        _ => None,
    };
    let chosen = |name: &str| plan.shape.as_deref().is_none_or(|part| name.contains(part));
    let kinds = SHAPES.iter().filter(|shape| chosen(shape.name)).count();
    let shapes = SHAPES.iter().filter(|shape| chosen(shape.name)).cycle();
    let start = Instant::now();
    for (number, shape) in shapes.take(plan.episodes).enumerate() {
        // Every shape has its turn, however slow the server is.
        if start.elapsed() > plan.time && number >= kinds {
            break;
        }
        // Nobody is active, so that everything begins without keys.
        expect_ok(&mut control, &["FLUSHALL"])?;
        let begin = Instant::now();
        let history = players.play(Episode {
            shape,
            seed: plan.seed.wrapping_mul(1_000_003) + number as u64,
            prefix: format!("{}:{number}:", plan.seed),
        })?;
        summary.playing += begin.elapsed();
        let begin = Instant::now();
        let (effort, violation) = check(&history, plan.limits);
        summary.judging += begin.elapsed();
        if begin.elapsed() > SLOW {
            println!(
                "episode {number} ({}): judged in {:.1} s, {} configurations",
                shape.name,
                begin.elapsed().as_secs_f64(),
                effort.configurations_max
            );
        }
        summary.episodes += 1;
        if effort.undecided > 0 {
            println!(
                "episode {number} ({}): {} parts undecided with {} configurations",
                shape.name, effort.undecided, plan.limits.configurations
            );
        }
        summary.effort.add(effort);
        if let Some(violation) = violation {
            let title = format!(
                "seed {}, episode {number} ({}), {} operations",
                plan.seed,
                shape.name,
                history.len()
            );
            let mut text = format!("{title}\n{}", violation.excerpt);
            let path = plan
                .folder
                .join(format!("violation-{}-{number}.txt", plan.seed));
            let start_ns = violation.part.first().map_or(0, |first| first.invoked_ns);
            let lines: Vec<String> = violation
                .part
                .iter()
                .map(|record| record.line(start_ns))
                .collect();
            let file = format!(
                "{text}\nthe part of the history that they are from:\n{}\n",
                lines.join("\n")
            );
            std::fs::create_dir_all(&plan.folder)
                .and_then(|()| std::fs::write(&path, file))
                .map_err(KitError::io(format!("write {}", path.display())))?;
            text.push_str(&format!("all of it: {}\n", path.display()));
            summary.violation = Some(text);
            break;
        }
    }
    drop(players);
    if let Some(migration) = migration {
        summary.migrations = migration.stop()?;
    }
    Ok(summary)
}

fn connect((host, port): &(String, u16)) -> Result<Connection, KitError> {
    let mut connection = Connection::connect(&Address::Tcp(host.clone(), *port))?;
    connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(connection)
}

fn expect_ok(connection: &mut Connection, words: &[&str]) -> Result<(), KitError> {
    match connection.command(words)? {
        Reply::Simple(text) if text == b"OK" => Ok(()),
        other => Err(KitError::Unexpected(format!(
            "{} was answered {other:?}",
            words.join(" ")
        ))),
    }
}

fn activate(connection: &mut Connection, workers: u32) -> Result<(), KitError> {
    expect_ok(connection, &["DEBUG", "WORKERS", &workers.to_string()])
}

/// Changes the number of workers all the time.
struct Migration {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<usize, KitError>>,
}

impl Migration {
    fn start(address: &(String, u16), most: u32, seed: u64) -> Result<Self, KitError> {
        let mut connection = connect(address)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut random = fastrand::Rng::with_seed(seed);
        let thread = std::thread::Builder::new()
            .name("migration".to_owned())
            .spawn(move || {
                let mut changes = 0;
                while !stopped.load(Ordering::Relaxed) {
                    activate(&mut connection, random.u32(1..=most))?;
                    changes += 1;
                    std::thread::sleep(Duration::from_millis(random.u64(MIGRATION_MS)));
                }
                Ok(changes)
            })
            .map_err(KitError::io("start a thread"))?;
        Ok(Migration { stop, thread })
    }

    fn stop(self) -> Result<usize, KitError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .unwrap_or_else(|_| Err(KitError::Unexpected("the migration panicked".to_owned())))
    }
}
