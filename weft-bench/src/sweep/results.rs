//! All measurements of a sweep, and the file that holds them.
//!
//! Owns the file's format, version [`VERSION`], which docs/benchmarking.md describes. What is made of the measurements
//! (medians, intervals, bounds, sweet spots) is written too, for those who read the file with other programs; read is only
//! what was measured. Invariant: what is written is read back as it was.

use serde_json::{Map, Value, json};

use super::judgement::{Bound, BoundBy, Setting, SweetSpot, bound, sweet_spot};
use super::sample::{FIGURES, Sample, median_of};
use crate::server::STEPS;
use crate::statistics::Interval;

/// What the file says it is.
pub const FORMAT: &str = "weft-bench sweep";

/// The version of the format. A reader takes its own version only.
pub const VERSION: u64 = 1;

/// A sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// What the user calls it.
    pub label: Option<String>,
    /// When it began, in seconds since 1970.
    pub unix_seconds: u64,
    /// Where: system and processors.
    pub machine: Machine,
    /// How.
    pub settings: Settings,
    /// Of what.
    pub servers: Vec<Server>,
    /// The loads' names, in their order.
    pub cells: Vec<String>,
    /// The measurements: every server with every setting of threads under every load.
    pub series: Vec<Series>,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// "Linux 6.1.0 x86_64".
    pub system: String,
    /// Processors that this program may use.
    pub processors: usize,
}

/// How it was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Rounds.
    pub rounds: usize,
    /// Of each measurement.
    pub seconds: f64,
    /// Before it.
    pub warm_up_seconds: f64,
    /// Keys, of loads whose values are small enough.
    pub keys: u64,
    /// Processors of the servers.
    pub server_processors: Option<String>,
}

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// What it is called here.
    pub name: String,
    /// How it is started.
    pub command: String,
    /// What it calls itself.
    pub version: Option<String>,
}

/// One server with one setting of threads under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The server's place.
    pub server: usize,
    /// What stood for `{threads}`; "-" for a server whose command line has no place for it.
    pub threads: String,
    /// The load's place.
    pub cell: usize,
    /// The rounds.
    pub samples: Vec<Sample>,
    /// Why rounds are missing.
    pub failures: Vec<String>,
}

impl Series {
    /// What bounds it.
    pub fn bound(&self) -> Option<Bound> {
        bound(&self.samples)
    }

    /// The mean rate and where it lies.
    pub fn rate(&self) -> Option<Interval> {
        let rates: Vec<f64> = self.samples.iter().map(|sample| sample.rate).collect();
        Interval::of_mean(&rates)
    }

    /// Microseconds per request in each step, where the server tells.
    pub fn steps_us(&self) -> Option<[f64; 5]> {
        let told: Vec<[f64; 5]> = self.samples.iter().filter_map(|it| it.steps_us).collect();
        let median = |step: usize| crate::statistics::median(told.iter().map(|us| us[step]));
        (!told.is_empty()).then(|| std::array::from_fn(median))
    }
}

impl Results {
    /// The series of a server under a load, in the order of the settings.
    pub fn of(&self, server: usize, cell: usize) -> Vec<&Series> {
        let series = self.series.iter();
        series
            .filter(|it| it.server == server && it.cell == cell)
            .collect()
    }

    /// The best setting of a server under a load, and its series. `None` if there is no choice.
    pub fn sweet_spot(&self, server: usize, cell: usize) -> Option<(SweetSpot, &Series)> {
        let series = self.of(server, cell);
        let settings: Vec<Setting<'_>> = series
            .iter()
            .map(|it| Setting {
                threads: &it.threads,
                samples: &it.samples,
            })
            .collect();
        if settings.len() < 2 {
            return None;
        }
        let spot = sweet_spot(&settings)?;
        let chosen = series.get(spot.setting).copied()?;
        Some((spot, chosen))
    }

    /// For the file.
    pub fn to_json(&self) -> Value {
        let servers = self.servers.iter().map(|server| {
            json!({"name": server.name, "command": server.command, "version": server.version})
        });
        let series = self.series.iter().map(|it| self.series_json(it));
        let mut spots = Vec::new();
        for cell in 0..self.cells.len() {
            for server in 0..self.servers.len() {
                if let Some((spot, chosen)) = self.sweet_spot(server, cell) {
                    spots.push(json!({
                        "server": self.servers[server].name,
                        "cell": self.cells[cell],
                        "threads": chosen.threads,
                        "rate_ratio_to_fastest": spot.ratio,
                        "interval": spot.interval.map(interval_json),
                    }));
                }
            }
        }
        json!({
            "format": FORMAT,
            "version": VERSION,
            "program": concat!("weft-bench ", env!("CARGO_PKG_VERSION")),
            "label": self.label,
            "unix_seconds": self.unix_seconds,
            "machine": {"system": self.machine.system, "processors": self.machine.processors},
            "settings": {
                "rounds": self.settings.rounds,
                "seconds": self.settings.seconds,
                "warm_up_seconds": self.settings.warm_up_seconds,
                "keys": self.settings.keys,
                "server_processors": self.settings.server_processors,
            },
            "servers": servers.collect::<Value>(),
            "cells": self.cells,
            "series": series.collect::<Value>(),
            "sweet_spots": spots,
        })
    }

    fn series_json(&self, series: &Series) -> Value {
        let samples = &series.samples;
        let mut summary = Map::new();
        if !samples.is_empty() {
            for figure in &FIGURES {
                let median = median_of(samples, figure.of);
                summary.insert(figure.name.to_owned(), json!(median));
            }
            if let Some(rate) = series.rate() {
                summary.insert("rate_interval".to_owned(), interval_json(rate));
            }
            if let Some(us) = series.steps_us() {
                let steps = STEPS.iter().zip(us);
                let steps = steps.map(|(name, us)| ((*name).to_owned(), json!(us)));
                summary.insert("steps_us_per_op".to_owned(), Value::Object(steps.collect()));
            }
        }
        let bound = series.bound().map(|bound| {
            let step = match bound.by {
                BoundBy::Step(step, _) => Some(step),
                _ => None,
            };
            json!({"by": bound.by.name(), "step": step, "because": bound.to_string()})
        });
        json!({
            "server": self.servers[series.server].name,
            "threads": series.threads,
            "cell": self.cells[series.cell],
            "median": summary,
            "bound": bound,
            "failures": series.failures,
            "samples": samples.iter().map(Sample::to_json).collect::<Value>(),
        })
    }

    /// From the file.
    ///
    /// # Errors
    /// Why it cannot be read, as a clause.
    pub fn from_json(value: &Value) -> Result<Results, String> {
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err("it is no result of weft-bench sweep or run".to_owned());
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => {
                return Err(format!(
                    "it is of version {other}, this program reads version {VERSION}"
                ));
            }
            None => return Err("it has no version".to_owned()),
        }
        read(value).ok_or_else(|| "something is missing in it".to_owned())
    }
}

fn interval_json(interval: Interval) -> Value {
    json!({"mean": interval.mean, "low": interval.low, "high": interval.high})
}

fn read(value: &Value) -> Option<Results> {
    let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let count = |value: &Value, name: &str| usize::try_from(value.get(name)?.as_u64()?).ok();
    let texts = |value: &Value| -> Option<Vec<String>> {
        let texts = value.as_array()?.iter();
        texts.map(|text| Some(text.as_str()?.to_owned())).collect()
    };
    let list = |name: &str| value.get(name)?.as_array();
    let servers = list("servers")?.iter().map(|server| {
        Some(Server {
            name: text(server, "name")?,
            command: text(server, "command")?,
            version: text(server, "version"),
        })
    });
    let servers: Vec<Server> = servers.collect::<Option<_>>()?;
    let cells = texts(value.get("cells")?)?;
    let series = list("series")?.iter().map(|series| {
        let server = text(series, "server")?;
        let cell = text(series, "cell")?;
        let samples = series.get("samples")?.as_array()?.iter();
        Some(Series {
            server: servers.iter().position(|it| it.name == server)?,
            threads: text(series, "threads")?,
            cell: cells.iter().position(|it| *it == cell)?,
            samples: samples.map(Sample::from_json).collect::<Option<_>>()?,
            failures: texts(series.get("failures")?)?,
        })
    });
    let series = series.collect::<Option<_>>()?;
    let (machine, settings) = (value.get("machine")?, value.get("settings")?);
    Some(Results {
        label: text(value, "label"),
        unix_seconds: value.get("unix_seconds")?.as_u64()?,
        machine: Machine {
            system: text(machine, "system")?,
            processors: count(machine, "processors")?,
        },
        settings: Settings {
            rounds: count(settings, "rounds")?,
            seconds: settings.get("seconds")?.as_f64()?,
            warm_up_seconds: settings.get("warm_up_seconds")?.as_f64()?,
            keys: settings.get("keys")?.as_u64()?,
            server_processors: text(settings, "server_processors"),
        },
        servers,
        cells,
        series,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::sample::tests::sample;
    use super::*;

    /// Two servers, the first with 1 and 2 threads, under two loads, three rounds each.
    pub fn results() -> Results {
        let server = |name: &str, version: Option<&str>| Server {
            name: name.to_owned(),
            command: format!("/opt/{name} --io-threads {{threads}}"),
            version: version.map(str::to_owned),
        };
        let series = |server, threads: &str, cell, rate: f64| Series {
            server,
            threads: threads.to_owned(),
            cell,
            samples: (0..3)
                .map(|round| sample(round, rate + round as f64))
                .collect(),
            failures: Vec::new(),
        };
        let mut results = Results {
            label: Some("a <b> & c".to_owned()),
            unix_seconds: 1_793_000_000,
            machine: Machine {
                system: "Linux 6.1.0 x86_64".to_owned(),
                processors: 2,
            },
            settings: Settings {
                rounds: 3,
                seconds: 5.0,
                warm_up_seconds: 1.0,
                keys: 1000,
                server_processors: None,
            },
            servers: vec![server("weft", Some("weft 0.1.0")), server("other", None)],
            cells: vec![
                "GET, 3 B, 50 connections".to_owned(),
                "SET, 3 B, 1 connection".to_owned(),
            ],
            series: vec![
                series(0, "1", 0, 100_000.0),
                series(0, "2", 0, 200_000.0),
                series(1, "1", 0, 70_000.0),
                series(0, "1", 1, 20_000.0),
                series(0, "2", 1, 20_001.0),
                series(1, "1", 1, 15_000.0),
            ],
        };
        results.series[5].failures.push("it went away".to_owned());
        for sample in &mut results.series[2].samples {
            sample.steps_us = None;
        }
        results
    }

    #[test]
    fn what_is_written_is_read_back() {
        let results = results();
        let text = serde_json::to_string_pretty(&results.to_json()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(Results::from_json(&value), Ok(results));
    }

    #[test]
    fn what_is_made_of_it_is_written_too() {
        let value = results().to_json();
        let first = &value["series"][0];
        assert_eq!(first["median"]["rate"], 100_001.0);
        assert_eq!(first["median"]["steps_us_per_op"]["write"], 3.0);
        let interval = &first["median"]["rate_interval"];
        // A standard deviation of 1 in three rounds: 4.3027 / sqrt(3) on either side.
        let reach = interval["high"].as_f64().unwrap() - interval["mean"].as_f64().unwrap();
        assert!((reach - 2.4842).abs() < 1e-3, "{reach}");
        assert_eq!(first["bound"]["by"], "latency");
        let spots = value["sweet_spots"].as_array().unwrap();
        assert_eq!(spots.len(), 2);
        assert_eq!(
            (&spots[0]["threads"], &spots[1]["threads"]),
            (&json!("2"), &json!("1"))
        );
    }

    #[test]
    fn other_files_are_refused() {
        let refused = |value: Value| Results::from_json(&value).unwrap_err();
        assert_eq!(
            refused(json!([])),
            "it is no result of weft-bench sweep or run"
        );
        let mut value = results().to_json();
        value["version"] = json!(2);
        assert_eq!(
            refused(value.clone()),
            "it is of version 2, this program reads version 1"
        );
        value["version"] = json!(1);
        value["series"][0]["samples"][0]["rate"] = json!("fast");
        assert_eq!(refused(value), "something is missing in it");
    }
}
