//! What is compared: named series of figures, whatever file they come from.
//!
//! Owns the reading of result files into them. A series has a place (load, server, setting of threads) that says which
//! series of the other side it belongs to; of a figure it has the rounds in their order.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::native::Report;
use crate::sweep::{FIGURES, Results};

/// A series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Load, server and threads, as far as the file has them.
    pub place: Place,
    /// Figures by round.
    pub figures: Vec<Rounds>,
}

/// Where a series belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The load.
    pub cell: String,
    /// The server.
    pub server: Option<String>,
    /// The setting of threads.
    pub threads: Option<String>,
}

/// A figure's rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    /// The figure's name in result files.
    pub name: String,
    /// Its title in tables.
    pub title: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// Values with their rounds.
    pub values: Vec<(usize, f64)>,
}

/// All series of several files. What a later file has of the same place are further rounds.
///
/// # Errors
/// Which file cannot be read, and why.
pub fn of_files<P: AsRef<Path>>(files: &[P]) -> Result<Vec<Series>, String> {
    let mut all: Vec<Series> = Vec::new();
    let mut rounds_before = 0;
    for file in files {
        let file = file.as_ref();
        let failed = |why: String| format!("{}: {why}", file.display());
        let bytes = fs::read(file).map_err(|error| failed(crate::load::system_text(&error)))?;
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|error| failed(format!("it is no JSON: {error}")))?;
        let mut of_file = of_value(&value).map_err(failed)?;
        let mut rounds = rounds_before;
        for (round, _) in of_file.iter_mut().flat_map(|series| {
            let figures = series.figures.iter_mut();
            figures.flat_map(|figure| figure.values.iter_mut())
        }) {
            *round += rounds_before;
            rounds = rounds.max(*round + 1);
        }
        rounds_before = rounds;
        for series in of_file {
            match all.iter_mut().find(|known| known.place == series.place) {
                Some(known) => {
                    for rounds in series.figures {
                        match known.figures.iter_mut().find(|it| it.name == rounds.name) {
                            Some(known) => known.values.extend(rounds.values),
                            None => known.figures.push(rounds),
                        }
                    }
                }
                None => all.push(series),
            }
        }
    }
    Ok(all)
}

/// The version of a native run's report that is read.
const REPORT_VERSION: u32 = 1;

fn of_value(value: &Value) -> Result<Vec<Series>, String> {
    if value.get("workload").is_none() {
        return Ok(of_sweep(&Results::from_json(value)?));
    }
    let report: Report = serde_json::from_value(value.clone())
        .map_err(|error| format!("it is no report of a native run: {error}"))?;
    match report.version {
        REPORT_VERSION => Ok(vec![of_report(&report)]),
        other => Err(format!(
            "it is of version {other}, this program reads version {REPORT_VERSION}"
        )),
    }
}

/// A native run is a load of its own, with one round.
fn of_report(report: &Report) -> Series {
    let workload = &report.workload;
    let cell = format!(
        "{}; {}, {} connections, pipeline {}",
        workload.commands.join(", "),
        workload.pace,
        workload.connections,
        workload.pipeline
    );
    let server = report.server.as_ref();
    let value = |name: &str| match name {
        "rate" => Some(report.rate.achieved),
        "p50_us" => Some(report.latency.p50_us),
        "p99_us" => Some(report.latency.p99_us),
        "p999_us" => Some(report.latency.p99_9_us),
        "failure_rate" => Some(report.failures.share),
        "cpu_us_per_op" => server.map(|server| server.cpu_us_per_request),
        "cores" => server.map(|server| server.processors),
        "client_cpu_us_per_op" => Some(report.client.cpu_us_per_request),
        _ => None,
    };
    let figures = FIGURES.iter().filter_map(|figure| {
        Some(Rounds {
            name: figure.name.to_owned(),
            title: figure.title.to_owned(),
            more_is_better: figure.more_is_better,
            values: vec![(0, value(figure.name)?)],
        })
    });
    Series {
        place: Place {
            cell,
            server: None,
            threads: None,
        },
        figures: figures.collect(),
    }
}

fn of_sweep(results: &Results) -> Vec<Series> {
    let series = results.series.iter().filter(|it| !it.samples.is_empty());
    let series = series.map(|series| Series {
        place: Place {
            cell: results.cells[series.cell].clone(),
            server: Some(results.servers[series.server].name.clone()),
            threads: Some(series.threads.clone()),
        },
        figures: FIGURES
            .iter()
            .map(|figure| Rounds {
                name: figure.name.to_owned(),
                title: figure.title.to_owned(),
                more_is_better: figure.more_is_better,
                values: series
                    .samples
                    .iter()
                    .map(|sample| (sample.round, (figure.of)(sample)))
                    .collect(),
            })
            .collect(),
    });
    series.collect()
}
