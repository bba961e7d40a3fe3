//! The JSON report of memtier_benchmark.
//!
//! Owns the names of the fields, which programs read. Latencies are in milliseconds there. In the series by second there are
//! no percentiles: those would take a histogram for every second.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::options::{Options, Requests};
use super::table::{Row, Table};
use crate::load::Class;

/// The report of all runs.
#[derive(Debug)]
pub struct Report {
    root: Map<String, Value>,
    runs: u32,
}

impl Report {
    /// What is known before the first run.
    pub fn new(options: &Options) -> Report {
        let path = |path: &Option<std::path::PathBuf>| match path {
            Some(path) => json!(path.display().to_string()),
            None => Value::Null,
        };
        let requests = match options.requests {
            Requests::Count(count) if options.test_seconds.is_none() => count,
            _ => 0,
        };
        let (sets, gets) = options.ratio;
        let mut root = Map::new();
        root.insert(
            "configuration".to_owned(),
            json!({
                "server": options.server,
                "port": options.port,
                "unix socket": path(&options.socket),
                "out_file": path(&options.out_file),
                "run_count": options.run_count,
                "requests": requests,
                "rate_limit": options.rate_limit,
                "clients": options.clients,
                "threads": options.threads,
                "test_time": options.test_seconds.unwrap_or(0),
                "ratio": format!("{sets}:{gets}"),
                "pipeline": options.pipeline,
                "data_offset": options.data_offset,
                "random_data": options.random_data.to_string(),
                "key_prefix": String::from_utf8_lossy(&options.key_prefix),
                "key_minimum": options.key_minimum,
                "key_maximum": options.key_maximum,
                "reconnect_interval": options.reconnect_interval,
                "multi_key_get": options.multi_key_get,
                "select-db": options.database.unwrap_or(0),
            }),
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
            runs: options.run_count,
        }
    }

    /// Adds a run. The only one is called "ALL STATS".
    pub fn add_run(
        &mut self,
        table: &Table,
        percentiles: &[f64],
        started: SystemTime,
        number: u32,
    ) {
        let milliseconds = |time: SystemTime| {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        };
        let mut stats = Map::new();
        stats.insert(
            "Runtime".to_owned(),
            json!({
                "Start time": milliseconds(started),
                "Finish time": milliseconds(started + table.elapsed),
                "Total duration": u64::try_from(table.elapsed.as_millis()).unwrap_or(u64::MAX),
                "Time unit": "MILLISECONDS",
            }),
        );
        for row in &table.rows {
            stats.insert(row.name.clone(), summary(table, row, percentiles));
        }
        let kinds = &table.rows[..table.rows.len().saturating_sub(1)];
        for row in kinds {
            if let Some(class) = &row.class {
                stats.insert(row.kind.clone(), distribution(class));
            }
        }
        let title = match self.runs {
            1 => "ALL STATS".to_owned(),
            _ => format!("RUN #{number} RESULTS"),
        };
        self.root.insert(title, Value::Object(stats));
    }

    /// The whole text.
    pub fn text(&self) -> String {
        let mut text = format!("{:#}", Value::Object(self.root.clone()));
        text.push('\n');
        text
    }
}

fn summary(table: &Table, row: &Row, percentiles: &[f64]) -> Value {
    let seconds = table.elapsed.as_secs_f64();
    let per_second = |count: u64| rounded(count as f64 / seconds, 2);
    let Some(class) = &row.class else {
        return json!({ "Count": 0, "Ops/sec": 0.0, "Latency": 0.0, "KB/sec": 0.0 });
    };
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
    let average = rounded(latencies.mean() / 1000.0, 3);
    field("Latency", average.clone());
    field("Average Latency", average);
    field("Min Latency", milliseconds(least));
    field("Max Latency", milliseconds(latencies.max()));
    let bytes = class.bytes_sent + class.bytes_received;
    field("KB/sec", rounded(bytes as f64 / 1024.0 / seconds, 2));
    let series: Map<String, Value> = class
        .seconds
        .iter()
        .enumerate()
        .map(|(second, measured)| {
            let average = measured.sum as f64 / measured.count.max(1) as f64 / 1000.0;
            (
                second.to_string(),
                json!({
                    "Count": measured.count,
                    "Average Latency": rounded(average, 3),
                    "Min Latency": milliseconds(measured.least),
                    "Max Latency": milliseconds(measured.greatest),
                }),
            )
        })
        .collect();
    field("Time-Serie", Value::Object(series));
    let percentiles: Map<String, Value> = percentiles
        .iter()
        .map(|&percentile| {
            (
                format!("p{percentile:.2}"),
                milliseconds(latencies.value_at_percentile(percentile)),
            )
        })
        .collect();
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
