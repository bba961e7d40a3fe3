//! The mode that compares two results: what changed, how sure that is, and an exit status for scripts.
//!
//! Owns which series belong together, the texts and the exit status. Measures nothing.

mod options;
mod series;
mod verdict;

use std::fs;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::columns::{Columns, figure};
use crate::load::system_text;
use options::{Options, USAGE};
use series::{Place, Series};
use verdict::{Change, change};

/// A regression.
const REGRESSION: u8 = 1;

/// Nothing could be compared.
const INCOMPARABLE: u8 = 2;

/// What became of a series.
struct Compared {
    place: Place,
    changes: Vec<Change>,
}

/// Does what the command line says.
pub fn run(arguments: &[Vec<u8>]) -> ExitCode {
    let ended = match options::parse(arguments) {
        Ok(Some(options)) => compare(&options),
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(why) => Err(why),
    };
    match ended {
        Ok(true) => ExitCode::from(REGRESSION),
        Ok(false) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("weft-bench compare: {why}");
            ExitCode::from(INCOMPARABLE)
        }
    }
}

/// Whether there is a regression.
fn compare(options: &Options) -> Result<bool, String> {
    let base = chosen(series::of_files(&options.base)?, options, |pair| &pair.0);
    let new = chosen(series::of_files(&options.new)?, options, |pair| &pair.1);
    let mut all = Vec::new();
    let mut alone = Vec::new();
    // Two results of one load each are meant for each other, whatever the loads are called.
    let only = base.len() == 1 && new.len() == 1;
    for (place, series) in &base {
        match new.iter().find(|(other, _)| only || other == place) {
            Some((_, other)) => all.push(compared(place, series, other, options)),
            None => alone.push(format!("{}: only in the base", title(place))),
        }
    }
    for (place, _) in &new {
        if !only && !base.iter().any(|(other, _)| other == place) {
            alone.push(format!("{}: only in the new result", title(place)));
        }
    }
    if all.is_empty() {
        return Err("the results have no load in common".to_owned());
    }
    for (number, compared) in all.iter().enumerate() {
        if number > 0 {
            println!();
        }
        println!("{}\n{}", title(&compared.place), table(&compared.changes));
    }
    println!();
    for line in &alone {
        println!("{line}");
    }
    let mut regressions = 0;
    for compared in &all {
        for change in compared.changes.iter().filter(|change| change.regression) {
            regressions += 1;
            println!(
                "regression: {}: {}, {} ({})",
                title(&compared.place),
                change.title,
                percent(change),
                change.verdict
            );
        }
    }
    if regressions == 0 {
        println!("no regression");
    }
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", report(&all));
        fs::write(path, text)
            .map_err(|error| format!("{}: {}", path.display(), system_text(&error)))?;
    }
    Ok(regressions > 0)
}

/// The series that take part, under the places that both sides have: without what was asked to be different.
fn chosen(
    all: Vec<Series>,
    options: &Options,
    side: impl Fn(&(String, String)) -> &String,
) -> Vec<(Place, Series)> {
    let fits = |wanted: &Option<(String, String)>, found: &Option<String>| match wanted {
        Some(pair) => found.as_ref() == Some(side(pair)),
        None => true,
    };
    let taking_part = all.into_iter().filter(|series| {
        fits(&options.servers, &series.place.server)
            && fits(&options.threads, &series.place.threads)
    });
    let arrow = |pair: &(String, String)| format!("{} -> {}", pair.0, pair.1);
    let placed = taking_part.map(|series| {
        let mut place = series.place.clone();
        if let Some(pair) = &options.servers {
            place.server = Some(arrow(pair));
        }
        if let Some(pair) = &options.threads {
            place.threads = Some(arrow(pair));
        }
        (place, series)
    });
    placed.collect()
}

fn compared(place: &Place, base: &Series, new: &Series, options: &Options) -> Compared {
    let mut changes = Vec::new();
    for rounds in &base.figures {
        let threshold = options.thresholds.iter().find(|it| it.0 == rounds.name);
        if let Some(other) = new.figures.iter().find(|it| it.name == rounds.name) {
            changes.push(change(rounds, other, threshold.and_then(|it| it.1)));
        }
    }
    Compared {
        place: place.clone(),
        changes,
    }
}

fn title(place: &Place) -> String {
    let mut title = place.cell.clone();
    if let Some(server) = &place.server {
        title.push_str(&format!("; {server}"));
    }
    if let Some(threads) = place.threads.as_ref().filter(|it| *it != "-") {
        title.push_str(&format!("; threads {threads}"));
    }
    title
}

fn table(changes: &[Change]) -> Columns {
    let mut table = Columns::new(
        1,
        &[
            "figure",
            "base",
            "new",
            "ratio",
            "change",
            "95 % interval",
            "pairs",
            "verdict",
        ],
    );
    for change in changes {
        let value = |value: f64| match &change.name[..] {
            "failure_rate" => format!("{:.2} %", value * 100.0),
            _ => figure(value),
        };
        let interval = change
            .interval
            .map(|interval| format!("{:.3} to {:.3}", interval.low, interval.high));
        table.row(vec![
            change.title.clone(),
            value(change.base),
            value(change.new),
            change
                .ratio
                .map_or("-".to_owned(), |ratio| format!("{ratio:.3}")),
            percent(change),
            interval.unwrap_or("-".to_owned()),
            change.pairs.to_string(),
            change.verdict.to_string(),
        ]);
    }
    table
}

fn percent(change: &Change) -> String {
    match change.ratio {
        Some(ratio) => format!("{:+.1} %", (ratio - 1.0) * 100.0),
        None => "-".to_owned(),
    }
}

fn report(all: &[Compared]) -> Value {
    let series = all.iter().map(|compared| {
        let changes = compared.changes.iter().map(|change| {
            json!({
                "figure": change.name,
                "base": change.base,
                "new": change.new,
                "ratio": change.ratio,
                "interval": change.interval.map(|it| json!({"low": it.low, "high": it.high})),
                "pairs": change.pairs,
                "verdict": change.verdict.to_string(),
                "regression": change.regression,
            })
        });
        json!({
            "cell": compared.place.cell,
            "server": compared.place.server,
            "threads": compared.place.threads,
            "changes": changes.collect::<Value>(),
        })
    });
    json!({"format": "weft-bench comparison", "version": 1, "series": series.collect::<Value>()})
}
