//! The kit's command line: random differential runs, cases, recording, checks of the command tables, oracles.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weft_testkit::case_file::CaseFile;
use weft_testkit::case_run::{self, Explained};
use weft_testkit::clients::{self, Verdict};
use weft_testkit::command_docs;
use weft_testkit::delivery::Delivery;
use weft_testkit::deviations::Deviations;
use weft_testkit::differential::{self, Plan};
use weft_testkit::door::{Door, Protocol};
use weft_testkit::error::KitError;
use weft_testkit::exporter;
use weft_testkit::folder;
use weft_testkit::oracle::Oracles;
use weft_testkit::raw_differential;
use weft_testkit::record;
use weft_testkit::rules::not_generated;
use weft_testkit::server::Server;
use weft_testkit::socket_door::SocketDoor;
use weft_testkit::throughput::{self, Contender};

mod arguments;
mod contest;
mod histories;
mod measuring;

use arguments::Arguments;
use contest::Contest;

/// Bytes sent as they are have so many replies as come before this much silence.
const RECORD_SILENCE: Duration = Duration::from_millis(300);

/// The exit status when something from outside could not be had; a caller may count that as skipped.
const EXIT_MISSING: u8 = 3;

const USAGE: &str = "\
weft-testkit COMMAND [OPTIONS]

  oracles                 fetch the oracles and tell where they are
  differential            random requests to the reference and to the server under test
      --family NAME         only this family, or the commands that begin so (may be repeated); default: all families that the server has
      --count N             requests per family (10000)
      --seed N              what everything random comes from (1)
      --delivery NAME       single, pipeline, split or bytes (may be repeated); default: all in turn
      --findings N          distinct differences per family after which it is left (5)
  streams                 random byte streams, good and bad requests, to both
      --count N             streams per door (10000)
      --seed N, --findings N  as above
  cases [FILE ...]        written cases through every door (default: all in weft-testkit/cases)
      --delivery NAME       as above; default: each
  record FILE ...         fill the replies of case files in from the reference
  command-docs            COMMAND INFO and COMMAND DOCS of every command that the server has, against the reference
  clients [NAME ...]      the command-line tools and client libraries against the server; those whose names begin so
      --strict              a client that could not be had is a failure
  exporter                prometheus-redis-exporter against the server, and whether what it exports is right
  pages [--check]         write the pages and the sample file that are made from tables, or check that they are up to date
  histories               what many connections see at once, and whether an order of their operations explains it
      --seconds N           no episode begins later (20); --episodes N: so many at most
      --connections N       (50)
      --seed N              as above
      --workers N           with so many workers, all made active by DEBUG WORKERS
      --migrate             the number of active workers changes all the time
      --pauses SEED         random pauses at latches and gates (a server built with them: weft-server-paused)
      --break-latch N       with latches let go within one in N writes, which must be found within --seeds N (5) seeds
      --target HOST:PORT    a server that listens there, whose keys are lost
      --shape NAME          only this shape of load
      --slack-ms N          how far a deadline may be off (3)
  throughput              redis-benchmark and memory, beside the reference
      --rounds N            rounds, of which the median counts (3)
  threads                 whether a setting of io-threads is slower than one thread, by redis-benchmark
      --io-threads LIST     settings (1,2,4,8,auto), each beside 1
      --connections LIST    numbers of connections (1,4,50,400)
      --pipeline LIST       requests under way per connection (1,16)
      --forced              make as many workers active as the setting allows (DEBUG WORKERS), whatever the load asks for
      --test NAME           redis-benchmark's test (get)
      --client-threads N    threads of redis-benchmark (1)
      --keys N, --value-bytes N  what is there before (200000 keys of 128 bytes)
      --warm-up S, --window S  seconds before and while a rate is taken (0.3, 1.0)
      --max-rounds N        rounds after which a wide interval is left as it is (30)
      --csv FILE            the table as comma-separated values too
  fairness                what a client with an always full pipeline does to the latency of others
      --phases LIST         what happens besides (control,hog,flood,unread)
      --probes N, --rate N  connections whose latency is measured (20), requests per second of each (200)
      --depth N             commands under way in the flooding connection (100000)
      --hog client|both     whether the hog burns what the client burns in a flood, or also what the server does (client)
      --warm-up S, --window S  seconds before and while a phase is measured (0.3, 5.0)
      --rounds N            rounds, of which the medians count (5)
      --bound-ms MS         how far the p99 may rise (1.0)
      --keys N, --csv FILE  as above; the file has all samples
  storm                   connections that come and go in every manner, twice, and what is left of them; maxclients
      --workers LIST        active workers (1,4), each with a server of its own; 0 leaves it to the server
      --manners LIST        what they do, in turn (silent,polite,reset,half-open,reset-in-request,half-request,deaf,unread,quit)
      --rate N              connections per second (10000); 0: as many as can be had
      --seconds S           how long each storm lasts (10)
      --client-threads N    threads that connect (16)
      --working N, --working-rate N  connections that work meanwhile (100), requests per second of each (20)

Options of all commands:
      --subject PATH        the server under test: a path, redis8 or redis70 (default: weft-server beside this program)
      --reference PATH      the reference: a path, redis8 (default) or redis70
      --door NAME           socket or engine (in this process); default: both for Weft, the socket for another server
      --subject-arg WORD    an argument for the server under test (may be repeated)
";

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!("{what}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let result = match arguments.command.as_str() {
        "oracles" => oracles(),
        "differential" => run_differential(&arguments),
        "streams" => run_streams(&arguments),
        "cases" => run_cases(&arguments),
        "command-docs" => run_command_docs(&arguments),
        "clients" => run_clients(&arguments),
        "exporter" => run_exporter(&arguments),
        "pages" => run_pages(&arguments),
        "throughput" => run_throughput(&arguments),
        "threads" => measuring::run_threads(&arguments),
        "fairness" => measuring::run_fairness(&arguments),
        "storm" => measuring::run_storm(&arguments),
        "histories" => histories::run(&arguments),
        "record" => run_record(&arguments),
        "" | "help" => {
            print!("{USAGE}");
            Ok(true)
        }
        other => {
            eprintln!("unknown command {other:?}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("weft-testkit: {error}");
            ExitCode::from(if matches!(error, KitError::Missing(_)) {
                EXIT_MISSING
            } else {
                1
            })
        }
    }
}

fn oracles() -> Result<bool, KitError> {
    let found = Oracles::obtain();
    for (name, path) in [
        ("reference", &found.reference),
        ("redis70", &found.redis70),
        ("redis-cli", &found.redis_cli),
        ("redis-benchmark", &found.redis_benchmark),
    ] {
        if let Some(path) = path {
            println!("{name}: {}", path.display());
        }
    }
    if found.missing.is_empty() {
        Ok(true)
    } else {
        Err(KitError::Missing(format!(
            "not to be had: {}",
            found.missing.join("; ")
        )))
    }
}

fn run_differential(arguments: &Arguments) -> Result<bool, KitError> {
    let deviations = Deviations::read(&folder::workspace())?;
    let deliveries = deliveries(arguments)?;
    let (mut passed, mut failed) = (0, 0);
    for mut pair in Contest::of(arguments)?.pairs()? {
        let door = pair.subject.name();
        let door = door.split(',').next().unwrap_or_default();
        let rows = differential::families(&mut pair)?;
        let mut families: Vec<String> = arguments.all("family").to_vec();
        if families.is_empty() {
            families = rows.keys().cloned().collect();
        }
        for family in families {
            let plan = Plan {
                family: family.clone(),
                count: arguments.number("count", 10_000)?,
                seed: arguments.number("seed", 1)? as u64,
                deliveries: deliveries.clone(),
                findings_max: arguments.number("findings", 5)?,
            };
            let start = Instant::now();
            let outcome = differential::run(&mut pair, &plan, &deviations, &mut |finding| {
                println!("\n{finding}")
            })?;
            let rows = rows.get(&family).map(Vec::as_slice).unwrap_or_default();
            for row in rows {
                if let Some(reason) = not_generated(row) {
                    println!("  {family}: {} is not generated: {reason}", row.name());
                }
            }
            for (id, count) in &outcome.deviations {
                println!("  {family}: {count} replies are explained by {id}");
            }
            println!(
                "{family}, {door}: {} requests of {} commands (seed {}), {} % errors, {} differences ({} more like them), {:.1} s",
                outcome.requests,
                outcome.commands.len(),
                plan.seed,
                outcome.errors * 100 / outcome.requests.max(1),
                outcome.findings.len(),
                outcome.repeated,
                start.elapsed().as_secs_f64(),
            );
            if outcome.findings.is_empty() {
                passed += 1
            } else {
                failed += 1
            }
        }
    }
    println!("differential: {passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn run_streams(arguments: &Arguments) -> Result<bool, KitError> {
    let (mut passed, mut failed) = (0, 0);
    for mut pair in Contest::of(arguments)?.pairs()? {
        let count = arguments.number("count", 10_000)?;
        let seed = arguments.number("seed", 1)? as u64;
        let start = Instant::now();
        let findings =
            raw_differential::run(&mut pair, count, seed, arguments.number("findings", 5)?)?;
        findings.iter().for_each(|finding| println!("\n{finding}"));
        println!(
            "streams, {}: {count} (seed {seed}), {} differences, {:.1} s",
            pair.subject.name().split(',').next().unwrap_or_default(),
            findings.len(),
            start.elapsed().as_secs_f64(),
        );
        if findings.is_empty() {
            passed += 1
        } else {
            failed += 1
        }
    }
    println!("streams: {passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn deliveries(arguments: &Arguments) -> Result<Vec<Delivery>, KitError> {
    match arguments.all("delivery") {
        [] => Ok(Delivery::ALL.to_vec()),
        names => names
            .iter()
            .map(|name| {
                Delivery::of_name(name)
                    .ok_or_else(|| KitError::syntax("--delivery", 0, format!("unknown: {name}")))
            })
            .collect(),
    }
}

fn case_files(arguments: &Arguments) -> Result<Vec<PathBuf>, KitError> {
    if !arguments.words.is_empty() {
        return Ok(arguments.words.iter().map(PathBuf::from).collect());
    }
    let folder = folder::workspace().join("weft-testkit/cases");
    let entries =
        std::fs::read_dir(&folder).map_err(KitError::io(format!("list {}", folder.display())))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "case")
        })
        .collect();
    files.sort();
    Ok(files)
}

fn run_cases(arguments: &Arguments) -> Result<bool, KitError> {
    let contest = Contest::of(arguments)?;
    let deviations = Deviations::read(&folder::workspace())?;
    let mut explained = Explained {
        deviations,
        counts: BTreeMap::new(),
    };
    let is_reference = contest.is_reference_alone();
    let (mut passed, mut failed) = (0, 0);
    for path in case_files(arguments)? {
        let file = CaseFile::read(&path)?;
        let place = path
            .strip_prefix(folder::workspace())
            .unwrap_or(&path)
            .display()
            .to_string();
        let mut doors = contest.doors(&file.server)?;
        let (mut played, mut wrong) = (0, 0);
        let mut skipped = BTreeSet::new();
        let start = Instant::now();
        for door in &mut doors {
            let commands = door.commands()?;
            for delivery in deliveries(arguments)? {
                door.set_delivery(delivery);
                let outcome = case_run::play_file(
                    &place,
                    &file,
                    door.as_mut(),
                    &commands,
                    is_reference,
                    &mut explained,
                )?;
                played += outcome.count;
                wrong += outcome.failures.len();
                skipped.extend(outcome.skipped);
                outcome
                    .failures
                    .iter()
                    .for_each(|failure| println!("{failure}"));
            }
        }
        for case in &skipped {
            println!("  {place}: skipped: {case}");
        }
        println!(
            "{place}: {} cases, {played} times played, {wrong} failed, {} skipped, {:.1} s",
            file.cases.len(),
            skipped.len(),
            start.elapsed().as_secs_f64()
        );
        passed += played - wrong;
        failed += wrong;
    }
    for (id, count) in &explained.counts {
        println!("  {count} replies are explained by {id}");
    }
    println!("cases: {passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn run_record(arguments: &Arguments) -> Result<bool, KitError> {
    let contest = Contest::of(arguments)?;
    for path in case_files(arguments)? {
        let mut file = CaseFile::read(&path)?;
        let mut door = SocketDoor::start(&contest.reference()?, &file.server)?;
        door.set_answer_timeout(RECORD_SILENCE);
        for replaced in record::record(&mut file, &mut door)? {
            println!("{}: replaced: {replaced}", path.display());
        }
        std::fs::write(&path, file.to_string())
            .map_err(KitError::io(format!("write {}", path.display())))?;
        println!("{}: {} cases recorded", path.display(), file.cases.len());
    }
    Ok(true)
}

fn run_clients(arguments: &Arguments) -> Result<bool, KitError> {
    let contest = Contest::of(arguments)?;
    let subject = contest
        .subject
        .ok_or_else(|| KitError::Missing("clients need the socket door".to_owned()))?;
    let oracles = Oracles::obtain();
    let server = Server::start(&subject, &contest.arguments)?;
    let (mut passed, mut failed, mut missing) = (0, 0, 0);
    let mut tell = |client: &str, verdict: &Verdict| match verdict {
        Verdict::Passed(checks) => {
            passed += 1;
            println!("{client}: {checks} checks passed");
        }
        Verdict::Failed(what) => {
            failed += 1;
            println!("{client}: FAILED\n{what}");
        }
        Verdict::Missing(why) => {
            missing += 1;
            println!("{client}: not to be had: {why}");
        }
    };
    clients::run(&server, &oracles, &arguments.words, &mut tell);
    println!("clients: {passed} passed, {failed} failed, {missing} skipped");
    if failed == 0 && missing > 0 && arguments.one("strict").is_some() {
        return Err(KitError::Missing(
            "some clients could not be had".to_owned(),
        ));
    }
    Ok(failed == 0)
}

fn run_exporter(arguments: &Arguments) -> Result<bool, KitError> {
    let contest = Contest::of(arguments)?;
    let subject = contest
        .subject
        .ok_or_else(|| KitError::Missing("the exporter needs the socket door".to_owned()))?;
    let server = Server::start(&subject, &contest.arguments)?;
    match exporter::run(&server) {
        Ok(values) => println!("exporter: {values} values are right\nexporter: 1 passed, 0 failed"),
        Err(KitError::Unexpected(what)) => {
            println!("{what}\nexporter: 0 passed, 1 failed");
            return Ok(false);
        }
        Err(error) => return Err(error),
    }
    Ok(true)
}

fn run_throughput(arguments: &Arguments) -> Result<bool, KitError> {
    let contest = Contest::of(arguments)?;
    let reference = contest.reference()?;
    let subject = contest
        .subject
        .ok_or_else(|| KitError::Missing("this needs the socket door".to_owned()))?;
    let oracles = Oracles::obtain();
    let benchmark = oracles
        .redis_benchmark
        .clone()
        .ok_or_else(|| KitError::Missing(oracles.missing.join("; ")))?;
    let contenders = [
        Contender {
            name: "weft",
            program: subject,
            arguments: contest.arguments,
        },
        Contender {
            name: "reference",
            program: reference,
            arguments: Vec::new(),
        },
    ];
    throughput::run(&contenders, &benchmark, arguments.number("rounds", 3)?)?;
    Ok(true)
}

/// Pages made from tables: path and text.
fn pages() -> Vec<(PathBuf, String)> {
    let root = folder::workspace();
    vec![
        (
            root.join("docs").join("configuration.md"),
            weft_engine::config::reference_page(),
        ),
        (root.join("weft.conf"), weft_engine::config::sample_file()),
    ]
}

fn run_pages(arguments: &Arguments) -> Result<bool, KitError> {
    let check = arguments.one("check").is_some();
    let mut stale = 0;
    for (path, text) in pages() {
        let place = path
            .strip_prefix(folder::workspace())
            .unwrap_or(&path)
            .display()
            .to_string();
        if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if check {
            println!("{place}: is out of date; `cargo xtask pages` writes it anew");
            stale += 1;
        } else {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)
                    .map_err(KitError::io(format!("make {}", folder.display())))?;
            }
            std::fs::write(&path, text).map_err(KitError::io(format!("write {place}")))?;
            println!("{place}: written");
        }
    }
    println!("pages: {} passed, {stale} failed", pages().len() - stale);
    Ok(stale == 0)
}

fn run_command_docs(arguments: &Arguments) -> Result<bool, KitError> {
    let mut failed = BTreeSet::new();
    let mut compared = 0;
    // One door is enough: the tables are the same behind all of them.
    for mut pair in Contest::of(arguments)?.pairs()?.into_iter().take(1) {
        for protocol in Protocol::ALL {
            let [mut reference, mut subject] = pair.connect(protocol)?;
            let comparison = command_docs::compare(reference.as_mut(), subject.as_mut())?;
            compared = comparison.commands;
            if protocol == Protocol::Resp2 && !comparison.missing.is_empty() {
                println!(
                    "  subcommands that are not there: {}",
                    comparison.missing.join(" ")
                );
            }
            for what in comparison.differences {
                failed.insert(what.split([':', '|']).next().unwrap_or_default().to_owned());
                println!("{}: {what}", protocol.name());
            }
        }
    }
    println!(
        "command docs: {} passed, {} failed",
        compared.saturating_sub(failed.len()),
        failed.len()
    );
    Ok(failed.is_empty())
}
