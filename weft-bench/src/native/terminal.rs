//! What a run shows: progress while it goes on, a summary in the end, and its files.
//!
//! Owns the texts. Progress goes to the standard error, and only to a terminal unless it is asked for; the summary goes to the
//! standard output. Does not measure.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::path::Path;

use super::options::Outputs;
use super::report::{Latency, Part, Report};
use super::series::{Log, Table};
use super::{Failure, Interrupt, Watch};
use crate::load::{Interval, Progress, system_text};

/// Shows progress, writes what comes of each second, and notices when somebody wants an end.
#[derive(Debug)]
pub struct Watcher {
    table: Option<(String, Table)>,
    log: Option<(String, Log)>,
    progress: bool,
    shown: bool,
    interrupt: Interrupt,
    failure: Option<Failure>,
}

fn unwritable(path: &str, error: &io::Error) -> Failure {
    Failure::Output {
        path: path.to_owned(),
        why: system_text(error),
    }
}

/// Opens a file and keeps its name.
fn create<T>(
    path: Option<&Path>,
    open: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<Option<(String, T)>, Failure> {
    path.map(|path| {
        let name = path.display().to_string();
        match open(path) {
            Ok(file) => Ok((name, file)),
            Err(error) => Err(unwritable(&name, &error)),
        }
    })
    .transpose()
}

impl Watcher {
    /// Creates the files.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn new(outputs: &Outputs) -> Result<Watcher, Failure> {
        Ok(Watcher {
            table: create(outputs.csv.as_deref(), Table::create)?,
            log: create(outputs.hdr.as_deref(), Log::create)?,
            progress: outputs
                .progress
                .unwrap_or_else(|| io::stderr().is_terminal()),
            shown: false,
            interrupt: Interrupt::new(),
            failure: None,
        })
    }

    /// The run is over.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(self) -> Result<(), Failure> {
        if self.shown {
            eprintln!();
        }
        self.failure.map_or(Ok(()), Err)
    }
}

impl Watch for Watcher {
    fn interval(&mut self, interval: &Interval) {
        let mut written = Vec::new();
        if let Some((path, table)) = &mut self.table {
            written.push((path, table.add(interval)));
        }
        if let Some((path, log)) = &mut self.log {
            written.push((path, log.add(interval)));
        }
        for (path, result) in written {
            if let Err(error) = result {
                self.failure.get_or_insert(unwritable(path, &error));
            }
        }
        if self.progress {
            self.shown = true;
            let counts = &interval.counts;
            let p99 = Latency::of(&interval.latencies).p99_us;
            eprint!(
                "\r{:5} s  {:9} requests/s  p99 {:>10}  {} errors  {} failed  {} connections   ",
                interval.index + 1,
                counts.answered,
                time(p99),
                counts.errors,
                counts.failed,
                counts.open,
            );
        }
    }

    fn moment(&mut self, _: &Progress) -> bool {
        !self.interrupt.came()
    }
}

/// A time in the unit that fits.
fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 1000.0 => format!("{us:.1} us"),
        us if us < 1e6 => format!("{:.3} ms", us / 1e3),
        us => format!("{:.3} s", us / 1e6),
    }
}

/// Writes the report: the summary, and the file of its own if there is one.
///
/// # Errors
/// It cannot be written.
pub fn write(report: &Report, outputs: &Outputs) -> Result<(), Failure> {
    let json = || {
        let mut text = serde_json::to_string_pretty(report)
            .expect("a report consists of numbers, texts and lists");
        text.push('\n');
        text
    };
    let (path, text) = match &outputs.json {
        Some(path) if path.as_os_str() == "-" => ("standard output".to_owned(), json()),
        Some(path) => {
            let name = path.display().to_string();
            std::fs::write(path, json()).map_err(|error| unwritable(&name, &error))?;
            ("standard output".to_owned(), summary(report))
        }
        None => ("standard output".to_owned(), summary(report)),
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| unwritable(&path, &error))
}

/// The summary for people.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    lines(report, &mut text).expect("a string takes everything");
    text
}

fn lines(report: &Report, out: &mut String) -> std::fmt::Result {
    let workload = &report.workload;
    let title = match report.name.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    };
    writeln!(
        out,
        "{title}{}, {} connections x {} under way, {} client threads, {} loop",
        workload.targets.join(" "),
        workload.connections,
        workload.pipeline,
        workload.threads,
        workload.pace,
    )?;
    let rate = &report.rate;
    match rate.asked {
        Some(asked) => writeln!(
            out,
            "rate        {:.1} {}/s of {asked:.1} asked for",
            rate.achieved, rate.of
        )?,
        None => writeln!(out, "rate        {:.1} {}/s", rate.achieved, rate.of)?,
    }
    writeln!(
        out,
        "requests    {} in {:.3} s ({:.1}/s), {:.3} MB sent, {:.3} MB received",
        report.operations,
        report.elapsed_s,
        rate.requests,
        report.bytes_sent as f64 / 1e6,
        report.bytes_received as f64 / 1e6,
    )?;
    let failures = &report.failures;
    writeln!(
        out,
        "failures    {:.4} %: {} errors, {} wrong, {} lost, {} unanswered, {} unsent",
        failures.share * 100.0,
        failures.errors,
        failures.wrong,
        failures.lost,
        failures.unanswered,
        failures.unsent,
    )?;
    for first in &failures.first {
        writeln!(out, "            {}", first.escape_debug())?;
    }
    writeln!(
        out,
        "client      {:.3} s of processor time ({:.2} us per request), busiest thread {:.0} %",
        report.client.cpu_s,
        report.client.cpu_us_per_request,
        report.client.busiest_share * 100.0,
    )?;
    if let Some(server) = &report.server {
        write!(
            out,
            "server      {:.3} s of processor time ({:.2} us per request",
            server.cpu_s, server.cpu_us_per_request,
        )?;
        if let Some(per_unit) = server.cpu_us_per_unit {
            write!(out, ", {per_unit:.2} us per unit")?;
        }
        writeln!(out, "), {:.2} processors", server.processors)?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "{:24} {:>11} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8}",
        "latency", "count", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "failed"
    )?;
    let silent = failures.lost + failures.unanswered;
    let failed = failures.errors + failures.wrong + silent;
    row("all", &report.latency, failed, out)?;
    if report.commands.len() > 1 {
        for part in &report.commands {
            // A command that was never sent has no row.
            if part.bytes_sent > 0 {
                part_row(part, out)?;
            }
        }
    }
    for part in &report.units {
        part_row(part, out)?;
    }
    if let Some(schedule) = &report.schedule {
        row("(left late)", &schedule.late, 0, out)?;
        if schedule.held.count > 0 {
            row("(held up)", &schedule.held, 0, out)?;
        }
    }
    if !report.warnings.is_empty() {
        writeln!(out)?;
    }
    for warning in &report.warnings {
        writeln!(out, "WARNING: {warning}")?;
    }
    Ok(())
}

fn part_row(part: &Part, out: &mut String) -> std::fmt::Result {
    let failed = part.errors + part.wrong + part.lost + part.unanswered;
    row(&part.name, &part.latency, failed, out)
}

fn row(name: &str, latency: &Latency, failed: u64, out: &mut String) -> std::fmt::Result {
    let name: String = name.chars().take(24).collect();
    write!(out, "{name:24} {:>11}", latency.count)?;
    for us in [
        latency.mean_us,
        latency.p50_us,
        latency.p90_us,
        latency.p95_us,
        latency.p99_us,
        latency.p99_9_us,
        latency.p99_99_us,
        latency.max_us,
    ] {
        write!(out, " {:>10}", time(us))?;
    }
    writeln!(out, " {failed:>8}")
}
