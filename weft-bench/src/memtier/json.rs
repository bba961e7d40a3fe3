//! The JSON report of memtier_benchmark.
//!
//! Owns the names of the fields, which programs read. Latencies are in milliseconds there.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::configuration;
use super::hdr_files::compressed;
use super::options::{Options, Requests};
use super::series::{Second, Series};
use super::table::{Row, Table};
use crate::load::Class;

/// The report of all runs.
#[derive(Debug)]
pub struct Report {
    root: Map<String, Value>,
    distributions: bool,
    percentiles: Vec<f64>,
}

/// When a run took place, and what came of each second.
#[derive(Clone, Debug)]
pub struct Course {
    pub started: SystemTime,
    pub elapsed: Duration,
    /// Somebody ended it before its time.
    pub interrupted: bool,
    pub series: Series,
}

impl Report {
    /// What is known before the first run.
    pub fn new(options: &Options) -> Report {
        let requests = match options.requests {
            Requests::Count(count) if options.test_seconds.is_none() => count,
            _ => 0,
        };
        let mut root = Map::new();
        root.insert(
            "configuration".to_owned(),
            Value::Object(configuration::json(options)),
        );
        let mut about = Map::new();
        about.insert("Threads".to_owned(), json!(options.threads));
        about.insert("Connections per thread".to_owned(), json!(options.clients));
        match options.test_seconds {
            Some(seconds) => about.insert("Seconds".to_owned(), json!(seconds)),
            None => about.insert("Requests per client".to_owned(), json!(requests)),
        };
        about.insert("Format version".to_owned(), json!(2));
        root.insert("run information".to_owned(), Value::Object(about));
        Report {
            root,
            distributions: !options.hide_histogram,
            percentiles: options.percentiles.clone(),
        }
    }

    /// Adds results under their title. An average over several runs has no course.
    pub fn add(&mut self, title: &str, table: &Table, course: Option<&Course>) {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (started, elapsed) = match course {
            Some(course) => {
                let started = course.started.duration_since(UNIX_EPOCH);
                (started.unwrap_or_default(), course.elapsed)
            }
            None => Default::default(),
        };
        let interrupted = course.is_some_and(|course| course.interrupted);
        let mut stats = Map::new();
        stats.insert(
            "Runtime".to_owned(),
            json!({
                "Start time": milliseconds(started),
                "Finish time": milliseconds(started + elapsed),
                "Total duration": milliseconds(elapsed),
                "Time unit": "MILLISECONDS",
                "Interrupted": interrupted.to_string(),
            }),
        );
        for (line, row) in table.rows.iter().enumerate() {
            let mut seconds = Map::new();
            let series = course.map(|course| course.series.line(line));
            for (number, second) in series.into_iter().flatten().enumerate() {
                let figures = figures(second, &self.percentiles);
                seconds.insert(number.to_string(), Value::Object(figures));
            }
            let summary = summary(table, row, &self.percentiles, seconds);
            stats.insert(row.name.clone(), summary);
        }
        let kinds = match self.distributions {
            true => &table.rows[..table.rows.len().saturating_sub(1)],
            false => &[],
        };
        for row in kinds {
            let distribution = distribution(&row.class);
            stats.insert(row.kind.clone(), distribution);
        }
        self.root.insert(title.to_owned(), Value::Object(stats));
    }

    /// The whole text.
    pub fn text(&self) -> String {
        let mut text = format!("{:#}", Value::Object(self.root.clone()));
        text.push('\n');
        text
    }
}

/// What came of a second.
fn figures(second: &Second, percentiles: &[f64]) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    field("Bytes RX", json!(second.received_bytes));
    field("Bytes TX", json!(second.sent_bytes));
    field("Count", json!(second.count));
    if second.count == 0 {
        return fields;
    }
    let sum = second.sum as f64 / 1000.0;
    field("Average Latency", rounded(sum / second.count as f64, 3));
    field("Accumulated Latency", json!(sum as u64));
    field("Min Latency", milliseconds(second.least));
    field("Max Latency", milliseconds(second.greatest));
    for (percentile, &latency) in percentiles.iter().zip(&second.percentiles) {
        field(&format!("p{percentile:.2}"), milliseconds(latency));
    }
    fields
}

fn summary(table: &Table, row: &Row, percentiles: &[f64], seconds: Map<String, Value>) -> Value {
    let elapsed_s = table.elapsed.as_secs_f64();
    let per_second = |count: u64| rounded(count as f64 / elapsed_s, 2);
    let kilobytes = |bytes: u64| rounded(bytes as f64 / 1024.0 / elapsed_s, 2);
    let class = &row.class;
    let latencies = &class.latencies;
    let least = if latencies.is_empty() {
        0
    } else {
        latencies.min()
    };
    let mut fields = Map::new();
    let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    field("Count", json!(latencies.len()));
    field("Ops/sec", per_second(latencies.len()));
    if row.misses {
        field("Hits/sec", per_second(table.hits(row)));
        field("Misses/sec", per_second(class.nulls));
    } else {
        field("Hits/sec", json!(0.0));
        field("Misses/sec", json!(0.0));
    }
    if table.cluster {
        field("MOVED/sec", per_second(row.moved));
        field("ASK/sec", per_second(row.asked));
    }
    field("Connection Errors/sec", per_second(row.connection_errors));
    field("Connection Errors", json!(row.connection_errors));
    let mean = latencies.mean() / 1000.0;
    let average = rounded(mean, 3);
    field("Latency", average.clone());
    field("Average Latency", average);
    field(
        "Accumulated Latency",
        json!((mean * latencies.len() as f64) as u64),
    );
    field("Min Latency", milliseconds(least));
    field("Max Latency", milliseconds(latencies.max()));
    let all = kilobytes(class.bytes_sent + class.bytes_received);
    field("KB/sec", all.clone());
    field("KB/sec RX/TX", all);
    field("KB/sec RX", kilobytes(class.bytes_received));
    field("KB/sec TX", kilobytes(class.bytes_sent));
    field("Time-Serie", Value::Object(seconds));
    let mut percentiles: Map<String, Value> = percentiles
        .iter()
        .map(|&percentile| {
            (
                format!("p{percentile:.2}"),
                milliseconds(latencies.value_at_percentile(percentile)),
            )
        })
        .collect();
    percentiles.insert(
        "Histogram log format".to_owned(),
        json!({ "Compressed Histogram": compressed(latencies) }),
    );
    field("Percentile Latencies", Value::Object(percentiles));
    Value::Object(fields)
}

fn distribution(class: &Class) -> Value {
    let steps = class.latencies.iter_quantiles(5).map(|step| {
        json!({
            "<=msec": step.value_iterated_to() as f64 / 1000.0,
            "percent": step.quantile_iterated_to() * 100.0,
        })
    });
    if class.latencies.is_empty() {
        return json!([]);
    }
    Value::Array(steps.collect())
}

fn milliseconds(microseconds: u64) -> Value {
    rounded(microseconds as f64 / 1000.0, 3)
}

/// With so many decimals; what is no number is 0, as JSON has no other.
fn rounded(value: f64, decimals: i32) -> Value {
    let factor = 10_f64.powi(decimals);
    let value = (value * factor).round() / factor;
    json!(if value.is_finite() { value } else { 0.0 })
}
