//! What a stall's measurement came to: per command the latencies with nothing else, while it runs, and beside the control.
//!
//! Owns the figures, the table, and the file's format, version [`VERSION`], which docs/benchmarking.md describes. Times are in
//! microseconds, in the table in milliseconds.

use serde_json::{Value, json};

use crate::columns::{Columns, figure};
use crate::statistics::{Interval, median};

/// The version of the file's format.
pub const VERSION: u64 = 1;

/// What goes on beside the light traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// The command.
    Command,
    /// Threads that burn as much without talking to the server.
    Control,
}

impl Beside {
    /// In result files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Beside::Nothing => "nothing",
            Beside::Command => "command",
            Beside::Control => "control",
        }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phase {
    /// The round, from 0.
    pub round: usize,
    /// Answers a second.
    pub rate: f64,
    /// Requests that failed.
    pub failed: u64,
    /// Percentiles of the latency from the intended time.
    pub p50_us: f64,
    /// The 99th.
    pub p99_us: f64,
    /// The 99.9th.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Processors the server kept busy, where it tells.
    pub server_cores: Option<f64>,
    /// How often the command was answered.
    pub runs: u64,
    /// Processors that the command's client kept busy, or that the control was to burn.
    pub beside_cores: f64,
}

/// A command and its rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The command.
    pub command: String,
    /// While it ran.
    pub with_command: Vec<Phase>,
    /// Beside the control.
    pub with_control: Vec<Phase>,
    /// Why rounds are missing.
    pub failure: Option<String>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The server.
    pub server: String,
    /// Requests a second that were to be sent.
    pub asked_rate: f64,
    /// With nothing beside.
    pub with_nothing: Vec<Phase>,
    /// The commands.
    pub rows: Vec<Row>,
}

/// What a command adds to the 99.9th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Added {
    /// The median of the rounds' differences to the control, in microseconds.
    pub median_us: f64,
    /// Where the mean difference lies.
    pub interval: Option<Interval>,
}

impl Row {
    /// What the command adds, round by round.
    pub fn added(&self) -> Option<Added> {
        let pairs = self.with_command.iter().filter_map(|phase| {
            let mut controls = self.with_control.iter();
            let control = controls.find(|control| control.round == phase.round)?;
            Some(phase.p999_us - control.p999_us)
        });
        let added: Vec<f64> = pairs.collect();
        (!added.is_empty()).then(|| Added {
            median_us: median(added.iter().copied()),
            interval: Interval::of_mean(&added),
        })
    }
}

impl Report {
    /// For the terminal.
    pub fn table(&self) -> String {
        let titles = [
            "beside",
            "runs",
            "rate/s",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
            "failed",
            "server cores",
            "added p99.9 ms",
            "95 % interval",
        ];
        let mut table = Columns::new(1, &titles);
        let mut row = |name: String, phases: &[Phase], added: Option<Added>| {
            let of = |of: fn(&Phase) -> f64| median(phases.iter().map(of));
            let ms = |us: f64| figure(us / 1000.0);
            let cores: Vec<f64> = phases.iter().filter_map(|it| it.server_cores).collect();
            let runs = of(|phase| phase.runs as f64);
            let interval = added.and_then(|added| added.interval);
            let mut cells = vec![
                name,
                match runs > 0.0 {
                    true => format!("{runs:.0}"),
                    false => "-".to_owned(),
                },
            ];
            cells.push(figure(of(|phase| phase.rate)));
            for percentile in [
                |phase: &Phase| phase.p50_us,
                |phase: &Phase| phase.p99_us,
                |phase: &Phase| phase.p999_us,
                |phase: &Phase| phase.max_us,
            ] {
                cells.push(ms(of(percentile)));
            }
            cells.push(phases.iter().map(|it| it.failed).sum::<u64>().to_string());
            cells.push(figure(median(cores)));
            cells.push(added.map_or("-".to_owned(), |added| ms(added.median_us)));
            cells.push(interval.map_or("-".to_owned(), |it| {
                format!("{} to {}", ms(it.low), ms(it.high))
            }));
            table.row(cells);
        };
        row("nothing".to_owned(), &self.with_nothing, None);
        for measured in &self.rows {
            row(
                measured.command.clone(),
                &measured.with_command,
                measured.added(),
            );
            row("  its control".to_owned(), &measured.with_control, None);
        }
        let mut text = format!(
            "{}, {} requests a second asked\n{table}",
            self.server,
            figure(self.asked_rate)
        );
        for row in &self.rows {
            if let Some(why) = &row.failure {
                text.push_str(&format!("{}: {why}\n", row.command));
            }
        }
        text
    }

    /// For the file.
    pub fn to_json(&self) -> Value {
        let phases = |beside: Beside, phases: &[Phase]| -> Vec<Value> {
            phases
                .iter()
                .map(|phase| phase_json(beside, phase))
                .collect()
        };
        let rows = self.rows.iter().map(|row| {
            let added = row.added();
            let interval = added.and_then(|added| added.interval);
            let mut measurements = phases(Beside::Command, &row.with_command);
            measurements.extend(phases(Beside::Control, &row.with_control));
            json!({
                "command": row.command,
                "added_p999_us": added.map(|added| added.median_us),
                "added_p999_us_interval": interval.map(|it| json!({"mean": it.mean, "low": it.low, "high": it.high})),
                "failure": row.failure,
                "measurements": measurements,
            })
        });
        json!({
            "format": "weft-bench stall",
            "version": VERSION,
            "program": concat!("weft-bench ", env!("CARGO_PKG_VERSION")),
            "server": self.server,
            "asked_rate": self.asked_rate,
            "baseline": phases(Beside::Nothing, &self.with_nothing),
            "commands": rows.collect::<Value>(),
        })
    }
}

fn phase_json(beside: Beside, phase: &Phase) -> Value {
    json!({
        "beside": beside.name(),
        "round": phase.round,
        "rate": phase.rate,
        "failed": phase.failed,
        "p50_us": phase.p50_us,
        "p99_us": phase.p99_us,
        "p999_us": phase.p999_us,
        "max_us": phase.max_us,
        "server_cores": phase.server_cores,
        "runs": phase.runs,
        "beside_cores": phase.beside_cores,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(round: usize, p999_us: f64, runs: u64) -> Phase {
        Phase {
            round,
            rate: 999.5,
            failed: 0,
            p50_us: 100.0,
            p99_us: 400.0,
            p999_us,
            max_us: 2.0 * p999_us,
            server_cores: Some(0.25),
            runs,
            beside_cores: 0.5,
        }
    }

    fn report() -> Report {
        let row = Row {
            command: "KEYS *".to_owned(),
            with_command: vec![
                phase(0, 51_000.0, 10),
                phase(1, 52_500.0, 11),
                phase(2, 60_000.0, 12),
            ],
            with_control: vec![
                phase(0, 1000.0, 0),
                phase(1, 1500.0, 0),
                phase(2, 2000.0, 0),
            ],
            failure: None,
        };
        Report {
            server: "redis 8.2.3".to_owned(),
            asked_rate: 1000.0,
            with_nothing: vec![phase(0, 900.0, 0)],
            rows: vec![
                row,
                Row {
                    command: "NO".to_owned(),
                    failure: Some("is answered with -ERR".to_owned()),
                    ..Row::default()
                },
            ],
        }
    }

    #[test]
    fn differences_are_paired_by_round() {
        // 50, 51 and 58 ms: mean 53, standard deviation sqrt(19), 4.3027 / sqrt(3) of it on either side.
        let added = report().rows[0].added().unwrap();
        assert_eq!(added.median_us, 51_000.0);
        let interval = added.interval.unwrap();
        assert!(
            (interval.high - 53_000.0 - 10_828.0).abs() < 5.0,
            "{interval:?}"
        );
        let mut row = report().rows.remove(0);
        row.with_control.truncate(1);
        assert_eq!(
            row.added().unwrap(),
            Added {
                median_us: 50_000.0,
                interval: None
            }
        );
        assert_eq!(report().rows[1].added(), None);
    }

    #[test]
    fn the_table_has_a_row_for_each() {
        assert_eq!(
            report().table(),
            "\
redis 8.2.3, 1,000 requests a second asked
beside         runs  rate/s  p50 ms  p99 ms  p99.9 ms  max ms  failed  server cores  added p99.9 ms  95 % interval
nothing           -   1,000   0.100   0.400     0.900    1.80       0         0.250               -              -
KEYS *           11   1,000   0.100   0.400      52.5     105       0         0.250            51.0   42.2 to 63.8
  its control     -   1,000   0.100   0.400      1.50    3.00       0         0.250               -              -
NO                -       -       -       -         -       -       0             -               -              -
  its control     -       -       -       -         -       -       0             -               -              -
NO: is answered with -ERR
"
        );
    }

    #[test]
    fn the_file_says_all() {
        let value = report().to_json();
        assert_eq!(value["format"], "weft-bench stall");
        assert_eq!(value["baseline"][0]["beside"], "nothing");
        let command = &value["commands"][0];
        assert_eq!(command["added_p999_us"], 51_000.0);
        assert_eq!(command["measurements"].as_array().unwrap().len(), 6);
        assert_eq!(command["measurements"][5]["beside"], "control");
        assert_eq!(value["commands"][1]["failure"], "is answered with -ERR");
    }
}
