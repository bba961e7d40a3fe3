//! The command `histories`: concurrent histories against a server, and against one that was broken on purpose.

use std::time::Duration;

use weft_testkit::error::KitError;
use weft_testkit::folder;
use weft_testkit::history::check::Limits;
use weft_testkit::history::run::{self, Plan, Summary};
use weft_testkit::server::Server;

use crate::arguments::Arguments;
use crate::contest::Contest;

/// What makes a server that was built for it pause at random at latches and gates; the value is the seed.
const PAUSES: &str = "WEFT_PAUSES";
/// What makes such a server let go of its latches within a unit: one time in so many.
const BREAK_LATCH: &str = "WEFT_BREAK_LATCH";

/// Runs it; whether everything passed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, KitError> {
    let plan = plan(arguments)?;
    let passed = match arguments.one("break-latch") {
        Some(rate) => finds_a_broken_latch(arguments, &plan, rate)?,
        None => {
            let summary = once(arguments, &plan, None)?;
            tell(&plan, &summary);
            summary.passed()
        }
    };
    println!(
        "histories: {} passed, {} failed",
        usize::from(passed),
        usize::from(!passed)
    );
    Ok(passed)
}

fn plan(arguments: &Arguments) -> Result<Plan, KitError> {
    let workers = arguments.number("workers", 0)? as u32;
    let limits = Limits::default();
    let slack_ms = arguments.number("slack-ms", (limits.slack_ns / 1_000_000) as usize)?;
    Ok(Plan {
        connections: arguments.number("connections", 50)?.max(1),
        time: Duration::from_secs(arguments.number("seconds", 20)? as u64),
        episodes: arguments.number("episodes", usize::MAX)?,
        seed: arguments.number("seed", 1)? as u64,
        workers: (workers > 0).then_some(workers),
        migrate: arguments.one("migrate").is_some(),
        shape: arguments.one("shape").map(str::to_owned),
        limits: Limits {
            slack_ns: slack_ms as u64 * 1_000_000,
            ..limits
        },
        folder: folder::target().join("histories"),
    })
}

/// One run, against a server that listens already or one of its own.
fn once(
    arguments: &Arguments,
    plan: &Plan,
    break_latch: Option<&str>,
) -> Result<Summary, KitError> {
    if let Some(target) = arguments.one("target") {
        let address = target
            .rsplit_once(':')
            .and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)))
            .ok_or_else(|| KitError::syntax("--target", 0, "it is HOST:PORT"))?;
        return run::run(address, plan);
    }
    let contest = Contest::of(arguments)?;
    let subject = contest
        .subject
        .ok_or_else(|| KitError::Missing("histories need the socket door".to_owned()))?;
    let mut settings = contest.arguments;
    if let Some(workers) = plan.workers {
        let more = [
            "--io-threads",
            &workers.to_string(),
            "--enable-debug-command",
            "yes",
        ];
        settings.extend(more.map(str::to_owned));
    }
    let mut environment = Vec::new();
    environment.extend(arguments.one("pauses").map(|seed| (PAUSES, seed)));
    environment.extend(break_latch.map(|rate| (BREAK_LATCH, rate)));
    let mut server = Server::start_within(&subject, &settings, &environment)?;
    let summary = run::run(("127.0.0.1".to_owned(), server.port()), plan);
    if !server.is_alive() {
        return Err(server.failure("ended during the run"));
    }
    summary.map_err(|error| server.failure(&error.to_string()))
}

/// Whether a violation is found with one of several seeds while the latches are broken, and none without.
fn finds_a_broken_latch(arguments: &Arguments, plan: &Plan, rate: &str) -> Result<bool, KitError> {
    let seeds = arguments.number("seeds", 5)? as u64;
    for seed in plan.seed..plan.seed + seeds {
        let plan = Plan {
            seed,
            ..plan.clone()
        };
        let broken = once(arguments, &plan, Some(rate))?;
        tell(&plan, &broken);
        if broken.violation.is_some() {
            println!("found, as it has to be; now the same with whole latches");
            let whole = once(arguments, &plan, None)?;
            tell(&plan, &whole);
            return Ok(whole.passed());
        }
    }
    println!("latches were broken, and none of {seeds} seeds showed it");
    Ok(false)
}

fn tell(plan: &Plan, summary: &Summary) {
    let effort = &summary.effort;
    println!(
        "histories, seed {}: {} episodes, {} operations of {} connections ({} unanswered), played in {:.1} s, judged in {:.1} s",
        plan.seed,
        summary.episodes,
        effort.operations,
        plan.connections,
        effort.unanswered,
        summary.playing.as_secs_f64(),
        summary.judging.as_secs_f64(),
    );
    println!(
        "  {} parts of keys, {} moments with nothing pending, {} flushes with all keys together and {} in parts, at most {} configurations, {} parts undecided, {} changes of the number of workers",
        effort.parts,
        effort.cuts,
        effort.flushes_joined,
        effort.flushes_projected,
        effort.configurations_max,
        effort.undecided,
        summary.migrations,
    );
    if let Some(violation) = &summary.violation {
        println!("\n{violation}");
    }
}
