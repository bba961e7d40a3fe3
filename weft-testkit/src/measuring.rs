//! The commands that measure: `threads`, `fairness` and `storm`. What their options mean, and what they print.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use weft_testkit::error::KitError;
use weft_testkit::fairness::{self, Phase, Sample};
use weft_testkit::oracle::Oracles;
use weft_testkit::storm::{self, Manner, Storm};
use weft_testkit::threads::{self, Setting};

use crate::arguments::Arguments;
use crate::contest::Contest;

/// Each thread of a storm has a loopback address of its own.
const STORM_THREADS_MAX: usize = 200;

/// `threads`: whether a setting of io-threads hurts. False if one does.
pub(crate) fn run_threads(arguments: &Arguments) -> Result<bool, KitError> {
    let (program, server_arguments) = subject(arguments)?;
    let plan = threads_plan(arguments, program, server_arguments)?;
    let oracles = Oracles::obtain();
    let benchmark = oracles
        .redis_benchmark
        .as_deref()
        .ok_or_else(|| KitError::Missing(oracles.missing.join("; ")))?;
    let mut csv = csv(arguments)?;
    println!(
        "{} {}: {} of {} bytes among {} keys, {} client threads, windows of {} s",
        plan.program.display(),
        plan.arguments.join(" "),
        plan.test,
        plan.value_bytes,
        plan.keys,
        plan.client_threads,
        plan.window.as_secs_f64()
    );
    let rows = threads::run(
        &plan,
        benchmark,
        csv.as_mut().map(|file| file as &mut dyn Write),
    )?;
    let compared = rows
        .iter()
        .filter(|row| row.setting != Setting::BASE)
        .count();
    let hurting = rows.iter().filter(|row| row.hurts()).count();
    println!("threads: {} passed, {hurting} failed", compared - hurting);
    Ok(hurting == 0)
}

/// `fairness`: what a flooding client does to the others. False if it is more than the bound.
pub(crate) fn run_fairness(arguments: &Arguments) -> Result<bool, KitError> {
    let (program, server_arguments) = subject(arguments)?;
    let plan = fairness_plan(arguments, program, server_arguments)?;
    let bound_ms = arguments.real("bound-ms", 1.0)?;
    let mut csv = csv(arguments)?;
    let report = fairness::run(&plan, &mut |sample: &Sample| {
        println!(
            "  round {}, {}: p50 {:.3}, p99 {:.3}, p99.9 {:.3} ms",
            sample.round,
            sample.phase.name(),
            sample.p50_ms,
            sample.p99_ms,
            sample.p999_ms
        );
    })?;
    if let Some(file) = &mut csv {
        report.write_csv(file)?;
    }
    print!("{report}");
    let verdicts = report.verdicts(bound_ms);
    let exceeded = verdicts.iter().filter(|(_, holds)| !holds).count();
    println!(
        "fairness: {} passed, {exceeded} failed (bound {bound_ms} ms)",
        verdicts.len() - exceeded
    );
    Ok(exceeded == 0)
}

/// `storm`: connections that come and go, and what is left of them. False if anything is.
pub(crate) fn run_storm(arguments: &Arguments) -> Result<bool, KitError> {
    let (program, server_arguments) = subject(arguments)?;
    let plan = storm_plan(arguments, program, server_arguments)?;
    let storms = storm::run(&plan, &mut |storm: &Storm| println!("{storm}"))?;
    let mut failed = storms
        .iter()
        .filter(|storm| !storm.complaints.is_empty())
        .count();
    let wrong = storm::run_limit(&plan.program, &plan.arguments)?;
    wrong
        .iter()
        .for_each(|wrong| println!("maxclients: WRONG: {wrong}"));
    failed += usize::from(!wrong.is_empty());
    println!(
        "storm: {} passed, {failed} failed",
        storms.len() + 1 - failed
    );
    Ok(failed == 0)
}

/// The server under test, and its arguments.
fn subject(arguments: &Arguments) -> Result<(PathBuf, Vec<String>), KitError> {
    let contest = Contest::of(arguments)?;
    let program = contest
        .subject
        .ok_or_else(|| KitError::Missing("this needs the socket door".to_owned()))?;
    Ok((program, contest.arguments))
}

fn csv(arguments: &Arguments) -> Result<Option<File>, KitError> {
    let create = |path| File::create(path).map_err(KitError::io(format!("make {path}")));
    arguments.one("csv").map(create).transpose()
}

fn threads_plan(
    arguments: &Arguments,
    program: PathBuf,
    server_arguments: Vec<String>,
) -> Result<threads::Plan, KitError> {
    Ok(threads::Plan {
        program,
        arguments: server_arguments,
        forced: arguments.one("forced").is_some(),
        settings: arguments.list("io-threads", "1,2,4,8,auto", Setting::parse)?,
        connections: arguments.list("connections", "1,4,50,400", positive)?,
        pipelines: arguments.list("pipeline", "1,16", positive)?,
        test: arguments.one("test").unwrap_or("get").to_owned(),
        client_threads: at_least_one(arguments, "client-threads", 1)?,
        keys: at_least_one(arguments, "keys", 200_000)?,
        value_bytes: at_least_one(arguments, "value-bytes", 128)?,
        warm_up: seconds(arguments, "warm-up", 0.3)?,
        window: seconds(arguments, "window", 1.0)?,
        rounds_max: at_least_one(arguments, "max-rounds", 30)?,
    })
}

fn fairness_plan(
    arguments: &Arguments,
    program: PathBuf,
    server_arguments: Vec<String>,
) -> Result<fairness::Plan, KitError> {
    let hog_for_server = match arguments.one("hog").unwrap_or("client") {
        "client" => false,
        "both" => true,
        other => return Err(KitError::syntax("--hog", 0, format!("unknown: {other}"))),
    };
    Ok(fairness::Plan {
        program,
        arguments: server_arguments,
        phases: arguments.list("phases", "control,hog,flood,unread", Phase::of_name)?,
        probes: at_least_one(arguments, "probes", 20)?,
        rate: at_least_one(arguments, "rate", 200)?,
        depth: at_least_one(arguments, "depth", 100_000)?,
        hog_for_server,
        keys: at_least_one(arguments, "keys", 200_000)?,
        warm_up: seconds(arguments, "warm-up", 0.3)?,
        duration: seconds(arguments, "window", 5.0)?,
        rounds: at_least_one(arguments, "rounds", 5)?,
    })
}

fn storm_plan(
    arguments: &Arguments,
    program: PathBuf,
    server_arguments: Vec<String>,
) -> Result<storm::Plan, KitError> {
    let rate = arguments.real("rate", 10_000.0)?;
    if !(0.0..=1e9).contains(&rate) {
        return Err(KitError::syntax(
            "--rate",
            0,
            format!("{rate} is not possible"),
        ));
    }
    Ok(storm::Plan {
        program,
        arguments: server_arguments,
        workers: arguments.list("workers", "1,4", |text| text.parse().ok())?,
        manners: match arguments.one("manners") {
            Some(_) => arguments.list("manners", "", Manner::of_name)?,
            None => Manner::ALL.to_vec(),
        },
        rate,
        duration: seconds(arguments, "seconds", 10.0)?,
        threads: at_least_one(arguments, "client-threads", 16)?.min(STORM_THREADS_MAX),
        working: at_least_one(arguments, "working", 100)?,
        working_rate: at_least_one(arguments, "working-rate", 20)?,
    })
}

fn positive(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number| *number > 0)
}

fn at_least_one(arguments: &Arguments, name: &str, default: usize) -> Result<usize, KitError> {
    match arguments.number(name, default)? {
        0 => Err(KitError::syntax(
            &format!("--{name}"),
            0,
            "must be at least 1",
        )),
        number => Ok(number),
    }
}

fn seconds(arguments: &Arguments, name: &str, default: f64) -> Result<Duration, KitError> {
    let seconds = arguments.real(name, default)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| KitError::syntax(&format!("--{name}"), 0, format!("{seconds}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Arguments {
        Arguments::parse(line.split(' ').map(str::to_owned)).expect("a complete command line")
    }

    fn threads_of(line: &str) -> Result<threads::Plan, KitError> {
        threads_plan(&parse(line), PathBuf::from("server"), Vec::new())
    }

    fn fairness_of(line: &str) -> Result<fairness::Plan, KitError> {
        fairness_plan(&parse(line), PathBuf::from("server"), Vec::new())
    }

    #[test]
    fn threads_has_the_whole_matrix_by_itself() {
        let plan = threads_of("threads").expect("defaults");
        let shown: Vec<String> = plan.settings.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["1", "2", "4", "8", "auto"]);
        assert_eq!(plan.connections, [1, 4, 50, 400]);
        assert_eq!(plan.pipelines, [1, 16]);
        assert_eq!((plan.keys, plan.value_bytes), (200_000, 128));
        assert_eq!(plan.window, Duration::from_secs(1));
        assert_eq!((plan.test.as_str(), plan.client_threads), ("get", 1));
        assert!(!plan.forced);
    }

    #[test]
    fn threads_takes_parts_of_it() {
        let line = "threads --forced --io-threads 2,auto --connections 50 --pipeline=16 --window 0.25 --max-rounds 7 --test set --client-threads 2";
        let plan = threads_of(line).expect("good options");
        assert!(plan.forced);
        assert_eq!(plan.settings, [Setting::Threads(2), Setting::Auto]);
        assert_eq!(plan.connections, [50]);
        assert_eq!(plan.pipelines, [16]);
        assert_eq!(plan.window, Duration::from_millis(250));
        assert_eq!((plan.rounds_max, plan.client_threads), (7, 2));
        assert_eq!(plan.test, "set");
    }

    #[test]
    fn arguments_for_the_server_may_look_like_options() {
        let arguments =
            parse("threads --subject-arg --io-driver --subject-arg epoll --subject server");
        let (program, server_arguments) = subject(&arguments).expect("a path needs no look-up");
        assert_eq!(program, PathBuf::from("server"));
        assert_eq!(server_arguments, ["--io-driver", "epoll"]);
    }

    #[test]
    fn fairness_has_defaults_and_takes_options() {
        let plan = fairness_of("fairness").expect("defaults");
        assert_eq!(plan.phases, Phase::ALL);
        assert_eq!((plan.probes, plan.rate, plan.depth), (20, 200, 100_000));
        assert!(!plan.hog_for_server);
        let plan =
            fairness_of("fairness --phases control,flood --hog both --window 0.5 --rounds 2")
                .expect("good options");
        assert_eq!(plan.phases, [Phase::Control, Phase::Flood]);
        assert!(plan.hog_for_server);
        assert_eq!(plan.duration, Duration::from_millis(500));
        assert_eq!(plan.rounds, 2);
    }

    #[test]
    fn storm_has_defaults_and_takes_options() {
        let plan_of = |line: &str| storm_plan(&parse(line), PathBuf::from("server"), Vec::new());
        let plan = plan_of("storm").expect("defaults");
        assert_eq!(
            (plan.workers.as_slice(), plan.threads),
            ([1, 4].as_slice(), 16)
        );
        assert_eq!(
            (plan.rate, plan.duration),
            (10_000.0, Duration::from_secs(10))
        );
        assert_eq!((plan.working, plan.working_rate), (100, 20));
        let plan = plan_of("storm --workers 0 --rate 0 --seconds 0.5 --client-threads 1000")
            .expect("good options");
        assert_eq!((plan.workers.as_slice(), plan.rate), ([0].as_slice(), 0.0));
        assert_eq!(plan.manners, Manner::ALL);
        let manners = plan_of("storm --manners reset,half-open")
            .expect("good options")
            .manners;
        assert_eq!(manners, [Manner::Reset, Manner::HalfOpen]);
        assert_eq!(
            (plan.duration, plan.threads),
            (Duration::from_millis(500), 200)
        );
        for line in [
            "storm --manners rude",
            "storm --rate -1",
            "storm --rate nan",
            "storm --workers x",
            "storm --working 0",
        ] {
            assert!(plan_of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [
            "threads --io-threads 0",
            "threads --io-threads 1,,2",
            "threads --connections 4,x",
            "threads --pipeline 0",
            "threads --window -1",
            "threads --window x",
            "threads --max-rounds 0",
            "threads --keys 0",
        ] {
            assert!(threads_of(line).is_err(), "{line}");
        }
        for line in [
            "fairness --phases quiet",
            "fairness --hog server",
            "fairness --rate 0",
            "fairness --window nan",
        ] {
            assert!(fairness_of(line).is_err(), "{line}");
        }
    }
}
