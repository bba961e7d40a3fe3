//! What one measurement of one server under one load came to.
//!
//! Owns the figures, their names and units in result files, and what is made of several of them. Latencies are in
//! microseconds. Invariant: what is written is read back as it was.

use serde_json::{Map, Value, json};

use crate::server::{STEPS, ThreadSpent};
use crate::statistics::median;

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The round it belongs to, from 0: measurements of one round are compared with each other.
    pub round: usize,
    /// Requests answered.
    pub answered: u64,
    /// Requests that failed: error answers, wrong values, those lost with a connection.
    pub failed: u64,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// Answers a second.
    pub rate: f64,
    /// Percentiles of the latency.
    pub p50_us: f64,
    /// The 99th.
    pub p99_us: f64,
    /// The 99.9th.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// What the server used.
    pub server: Side,
    /// What part of the server's processor time was in the kernel, 0 to 1.
    pub kernel_share: f64,
    /// Microseconds per request in each of the [`STEPS`], where the server tells.
    pub steps_us: Option<[f64; 5]>,
    /// The server's resident memory at the end.
    pub resident_bytes: u64,
    /// What this program used.
    pub client: Side,
    /// The part of the time in which the machine's processors had nothing to do; `None` where the system does not tell.
    pub idle: Option<f64>,
}

/// What one side used meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Processor time per request.
    pub cpu_us: f64,
    /// Processors kept busy.
    pub cores: f64,
    /// By thread.
    pub threads: Vec<ThreadSpent>,
}

impl Side {
    /// The thread that was ready to run for the greatest part of the time.
    pub fn busiest(&self) -> Option<&ThreadSpent> {
        let ready = |thread: &ThreadSpent| thread.run + thread.wait;
        self.threads
            .iter()
            .max_by(|left, right| ready(left).total_cmp(&ready(right)))
    }

    fn switches(&self, of: impl Fn(&ThreadSpent) -> u64) -> u64 {
        self.threads.iter().map(of).sum()
    }
}

/// A figure that is told of every series.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// In result files.
    pub name: &'static str,
    /// In tables.
    pub title: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// From a measurement.
    pub of: fn(&Sample) -> f64,
}

/// All of them.
pub const FIGURES: [Figure; 9] = [
    Figure {
        name: "rate",
        title: "rate/s",
        more_is_better: true,
        of: |sample| sample.rate,
    },
    Figure {
        name: "p50_us",
        title: "p50 us",
        more_is_better: false,
        of: |sample| sample.p50_us,
    },
    Figure {
        name: "p99_us",
        title: "p99 us",
        more_is_better: false,
        of: |sample| sample.p99_us,
    },
    Figure {
        name: "p999_us",
        title: "p99.9 us",
        more_is_better: false,
        of: |sample| sample.p999_us,
    },
    Figure {
        name: "failure_rate",
        title: "failed",
        more_is_better: false,
        of: Sample::failure_rate,
    },
    Figure {
        name: "cpu_us_per_op",
        title: "CPU us/op",
        more_is_better: false,
        of: |sample| sample.server.cpu_us,
    },
    Figure {
        name: "cores",
        title: "cores",
        more_is_better: false,
        of: |sample| sample.server.cores,
    },
    Figure {
        name: "switches_per_op",
        title: "switches/op",
        more_is_better: false,
        of: Sample::switches_per_op,
    },
    Figure {
        name: "client_cpu_us_per_op",
        title: "client us/op",
        more_is_better: false,
        of: |sample| sample.client.cpu_us,
    },
];

impl Sample {
    /// The part of the requests that failed, 0 to 1.
    pub fn failure_rate(&self) -> f64 {
        ratio(self.failed as f64, (self.answered.max(self.failed)) as f64)
    }

    /// Context switches of the server per request, of either kind.
    pub fn switches_per_op(&self) -> f64 {
        let switches = self
            .server
            .switches(|thread| thread.voluntary + thread.involuntary);
        ratio(switches as f64, self.answered as f64)
    }

    /// For a result file.
    pub fn to_json(&self) -> Value {
        let mut sample = Map::new();
        let mut put = |name: &str, value: Value| sample.insert(name.to_owned(), value);
        put("round", json!(self.round));
        put("answered", json!(self.answered));
        put("failed", json!(self.failed));
        put("seconds", json!(self.seconds));
        for figure in &FIGURES {
            put(figure.name, json!((figure.of)(self)));
        }
        put("max_us", json!(self.max_us));
        put("kernel_share", json!(self.kernel_share));
        put("resident_bytes", json!(self.resident_bytes));
        put("threads", threads_json(&self.server, true));
        if let Some(steps) = self.steps_us {
            let steps = STEPS.iter().zip(steps);
            let steps = steps.map(|(name, us)| ((*name).to_owned(), json!(us)));
            put("steps_us_per_op", Value::Object(steps.collect()));
        }
        put("client_cores", json!(self.client.cores));
        put("client_threads", threads_json(&self.client, false));
        if let Some(idle) = self.idle {
            put("machine_idle_share", json!(idle));
        }
        Value::Object(sample)
    }

    /// From a result file; `None` if something is missing that every measurement has.
    pub fn from_json(value: &Value) -> Option<Sample> {
        let number = |name: &str| value.get(name)?.as_f64();
        let count = |name: &str| value.get(name)?.as_u64();
        let steps = |steps: &Value| {
            let mut us = [0.0; 5];
            for (us, name) in us.iter_mut().zip(STEPS) {
                *us = steps.get(name)?.as_f64()?;
            }
            Some(us)
        };
        Some(Sample {
            round: usize::try_from(count("round")?).ok()?,
            answered: count("answered")?,
            failed: count("failed")?,
            seconds: number("seconds")?,
            rate: number("rate")?,
            p50_us: number("p50_us")?,
            p99_us: number("p99_us")?,
            p999_us: number("p999_us")?,
            max_us: number("max_us")?,
            server: Side {
                cpu_us: number("cpu_us_per_op")?,
                cores: number("cores")?,
                threads: threads_from_json(value.get("threads")?)?,
            },
            kernel_share: number("kernel_share")?,
            steps_us: value.get("steps_us_per_op").and_then(steps),
            resident_bytes: count("resident_bytes")?,
            client: Side {
                cpu_us: number("client_cpu_us_per_op")?,
                cores: number("client_cores")?,
                threads: threads_from_json(value.get("client_threads")?)?,
            },
            idle: number("machine_idle_share"),
        })
    }
}

/// `switches`: they are known.
fn threads_json(side: &Side, switches: bool) -> Value {
    let thread = |thread: &ThreadSpent| {
        let mut value = json!({
            "name": thread.name,
            "run_share": thread.run,
            "wait_share": thread.wait,
        });
        if switches {
            value["voluntary_switches"] = json!(thread.voluntary);
            value["involuntary_switches"] = json!(thread.involuntary);
        }
        value
    };
    side.threads.iter().map(thread).collect()
}

fn threads_from_json(value: &Value) -> Option<Vec<ThreadSpent>> {
    let thread = |thread: &Value| {
        let switches = |name: &str| thread.get(name).and_then(Value::as_u64).unwrap_or(0);
        Some(ThreadSpent {
            name: thread.get("name")?.as_str()?.to_owned(),
            run: thread.get("run_share")?.as_f64()?,
            wait: thread.get("wait_share")?.as_f64()?,
            voluntary: switches("voluntary_switches"),
            involuntary: switches("involuntary_switches"),
        })
    };
    value.as_array()?.iter().map(thread).collect()
}

/// The median of a figure.
pub fn median_of(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    median(samples.iter().map(of))
}

/// 0 if there is nothing to divide by.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A measurement with this rate; every figure has a value of its own.
    pub fn sample(round: usize, rate: f64) -> Sample {
        let thread = |name: &str, run, wait| ThreadSpent {
            name: name.to_owned(),
            run,
            wait,
            voluntary: 300,
            involuntary: 20,
        };
        Sample {
            round,
            answered: 1000,
            failed: 5,
            seconds: 2.5,
            rate,
            p50_us: 100.0,
            p99_us: 250.5,
            p999_us: 900.0,
            max_us: 1500.0,
            server: Side {
                cpu_us: 5.25,
                cores: 0.75,
                threads: vec![thread("main", 0.5, 0.125), thread("io", 0.25, 0.0)],
            },
            kernel_share: 0.8,
            steps_us: Some([1.0, 0.5, 0.25, 0.125, 3.0]),
            resident_bytes: 7 << 20,
            client: Side {
                cpu_us: 3.5,
                cores: 0.5,
                threads: vec![ThreadSpent {
                    voluntary: 0,
                    involuntary: 0,
                    ..thread("load-0", 0.5, 0.1875)
                }],
            },
            idle: Some(0.25),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let sample = sample(3, 12345.5);
        assert_eq!(sample.failure_rate(), 0.005);
        assert_eq!(sample.switches_per_op(), 0.64);
        let text = sample.to_json().to_string();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(Sample::from_json(&value), Some(sample.clone()));
        let bare = Sample {
            steps_us: None,
            idle: None,
            ..sample
        };
        assert_eq!(Sample::from_json(&bare.to_json()), Some(bare));
        assert_eq!(Sample::from_json(&json!({"round": 1})), None);
    }
}
