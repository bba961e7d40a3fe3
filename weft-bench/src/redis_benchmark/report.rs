//! What redis-benchmark prints about a test: the full report, the short line, the line of CSV, and the line while it runs.
//!
//! Owns the texts and their columns, which programs read. Does not measure. Latencies come in microseconds.

use std::io::{self, Write};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::server::Configuration;

/// The head of the CSV output.
pub const CSV_HEAD: &str = r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms""#;

/// One finished test.
#[derive(Debug)]
pub struct Report<'a> {
    /// Its title.
    pub title: &'a str,
    /// Requests answered.
    pub requests: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Latencies in microseconds.
    pub latencies: &'a Histogram<u64>,
}

/// What a full report says about the circumstances.
#[derive(Debug)]
pub struct Circumstances<'a> {
    /// Connections.
    pub clients: usize,
    /// Bytes of a value, or of the whole request of a command of the user's.
    pub payload_bytes: usize,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// What the servers told about themselves.
    pub configurations: &'a [Option<Configuration>],
    /// Whether they are a cluster.
    pub cluster: bool,
    /// Threads, if they were asked for.
    pub threads: Option<usize>,
}

impl Report<'_> {
    fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    fn quantile(&self, quantile: f64) -> f64 {
        milliseconds(self.latencies.value_at_quantile(quantile))
    }

    /// Average, least, median, 95th and 99th percentile, greatest; in milliseconds.
    fn summary(&self) -> [f64; 6] {
        let least = if self.latencies.is_empty() {
            0
        } else {
            self.latencies.min()
        };
        [
            self.latencies.mean() / 1000.0,
            milliseconds(least),
            self.quantile(0.50),
            self.quantile(0.95),
            self.quantile(0.99),
            milliseconds(self.latencies.max()),
        ]
    }

    /// The line of `-q`.
    pub fn write_short(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{}: {} requests per second, p50={} msec",
            self.title,
            number(self.rate(), 2),
            number(self.quantile(0.50), 3)
        )
    }

    /// The line of `--csv`.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "\"{}\",\"{}\"", self.title, number(self.rate(), 2))?;
        for value in self.summary() {
            write!(out, ",\"{}\"", number(value, 3))?;
        }
        writeln!(out)
    }

    /// The full report.
    pub fn write_full(&self, around: &Circumstances<'_>, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "====== {} ======", self.title)?;
        writeln!(
            out,
            "  {} requests completed in {} seconds",
            self.requests,
            number(self.elapsed.as_secs_f64(), 2)
        )?;
        writeln!(out, "  {} parallel clients", around.clients)?;
        writeln!(out, "  {} bytes payload", around.payload_bytes)?;
        writeln!(out, "  keep alive: {}", u8::from(around.keep_alive))?;
        around.write_configurations(out)?;
        match around.threads {
            Some(threads) => writeln!(out, "  multi-thread: yes\n  threads: {threads}")?,
            None => writeln!(out, "  multi-thread: no")?,
        }
        writeln!(out, "\nLatency by percentile distribution:")?;
        for line in by_percentile(self.latencies) {
            line.write(out)?;
        }
        writeln!(out, "\nCumulative distribution of latencies:")?;
        for line in by_latency(self.latencies) {
            line.write(out)?;
        }
        writeln!(
            out,
            "\nSummary:\n  throughput summary: {} requests per second\n  latency summary (msec):",
            number(self.rate(), 2)
        )?;
        write!(out, "   ")?;
        for column in ["avg", "min", "p50", "p95", "p99", "max"] {
            write!(out, " {column:>9}")?;
        }
        write!(out, "\n   ")?;
        for value in self.summary() {
            write!(out, " {:>9}", number(value, 3))?;
        }
        writeln!(out)
    }
}

impl Circumstances<'_> {
    fn write_configurations(&self, out: &mut impl Write) -> io::Result<()> {
        if self.cluster {
            writeln!(
                out,
                "  cluster mode: yes ({} masters)",
                self.configurations.len()
            )?;
            for (node, configuration) in self.configurations.iter().enumerate() {
                let Some(configuration) = configuration else {
                    continue;
                };
                let save = match &configuration.save[..] {
                    "" => "NONE",
                    save => save,
                };
                writeln!(out, "  node [{node}] configuration:\n    save: {save}")?;
                writeln!(out, "    appendonly: {}", configuration.appendonly)?;
            }
        } else if let Some(Some(configuration)) = self.configurations.first() {
            writeln!(out, "  host configuration \"save\": {}", configuration.save)?;
            writeln!(
                out,
                "  host configuration \"appendonly\": {}",
                configuration.appendonly
            )?;
        }
        Ok(())
    }
}

/// A line of either distribution.
#[derive(Debug, PartialEq)]
struct Line {
    percent: f64,
    latency: u64,
    count: u64,
}

impl Line {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{:.3}% <= {:.3} milliseconds (cumulative count {})",
            self.percent,
            milliseconds(self.latency),
            self.count
        )
    }
}

/// Latencies at 0 %, 50 %, 75 %, 87.5 % and so on, each step half as wide as the one before.
fn by_percentile(latencies: &Histogram<u64>) -> Vec<Line> {
    let mut count = 0;
    let mut lines: Vec<Line> = latencies
        .iter_quantiles(1)
        .map(|step| {
            count += step.count_since_last_iteration();
            Line {
                percent: step.quantile_iterated_to() * 100.0,
                latency: step.value_iterated_to(),
                count,
            }
        })
        .collect();
    // The end is a line of its own.
    if let Some(last) = lines.last()
        && last.percent < 100.0
    {
        let (latency, count) = (last.latency, last.count);
        lines.push(Line {
            percent: 100.0,
            latency,
            count,
        });
    }
    lines
}

/// The first part of the distribution by latency has steps of 0.1 ms.
const FINE_STEP: u64 = 100;

/// It goes so far, in microseconds.
const FINE_END: u64 = 2100;

/// From there on the steps are of 1 ms.
const COARSE_STEP: u64 = 1000;

/// How many took how long at most; where that does not change, a step is left out.
fn by_latency(latencies: &Histogram<u64>) -> Vec<Line> {
    let total = latencies.len();
    let mut recorded = latencies.iter_recorded().peekable();
    let mut lines: Vec<Line> = Vec::new();
    let mut count = 0;
    let mut upto = 0;
    while count < total {
        upto += if upto < FINE_END {
            FINE_STEP
        } else {
            COARSE_STEP
        };
        let latency = latencies.highest_equivalent(upto);
        while let Some(step) = recorded.next_if(|step| step.value_iterated_to() <= latency) {
            count += step.count_at_value();
        }
        if lines.last().is_none_or(|line| line.count != count) {
            lines.push(Line {
                percent: count as f64 / total as f64 * 100.0,
                latency,
                count,
            });
        }
    }
    lines
}

/// The line that shows how far a test is, printed over and over in the same place.
#[derive(Debug)]
pub struct ProgressLine<'a> {
    title: &'a str,
    /// Bytes of the last line, to be wiped out.
    width: usize,
    answered: u64,
    latency_sum: u64,
    elapsed: Duration,
}

impl<'a> ProgressLine<'a> {
    /// Nothing has been printed yet.
    pub fn new(title: &'a str) -> ProgressLine<'a> {
        ProgressLine {
            title,
            width: 0,
            answered: 0,
            latency_sum: 0,
            elapsed: Duration::ZERO,
        }
    }

    /// Prints what was done since the last time, and since the start: requests answered, the sum of their latencies in
    /// microseconds, the time.
    pub fn write(
        &mut self,
        answered: u64,
        latency_sum: u64,
        elapsed: Duration,
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.wipe(out)?;
        let seconds = elapsed.as_secs_f64();
        let new = (answered - self.answered) as f64;
        let line = format!(
            "{}: rps={} (overall: {}) avg_msec={} (overall: {})\r",
            self.title,
            number(new / (seconds - self.elapsed.as_secs_f64()), 1),
            number(answered as f64 / seconds, 1),
            number((latency_sum - self.latency_sum) as f64 / 1000.0 / new, 3),
            number(latency_sum as f64 / 1000.0 / answered as f64, 3),
        );
        out.write_all(line.as_bytes())?;
        out.flush()?;
        self.width = line.len();
        self.answered = answered;
        self.latency_sum = latency_sum;
        self.elapsed = elapsed;
        Ok(())
    }

    /// Makes room for what is printed next.
    pub fn wipe(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{:width$}\r", " ", width = self.width)
    }
}

fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

/// As C's `printf` prints a double.
fn number(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        "-nan".to_owned()
    } else {
        format!("{value:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(latencies: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(10, 3_600_000_000, 3).unwrap();
        for &(latency, count) in latencies {
            histogram.record_n(latency, count).unwrap();
        }
        histogram
    }

    /// What redis-benchmark 7.0.15 printed, and the latencies that it printed it about.
    #[test]
    fn the_full_report_is_redis_benchmarks() {
        let latencies = histogram(&[
            (20, 24),
            (37, 544),
            (45, 192),
            (53, 144),
            (70, 32),
            (319, 16),
            (340, 24),
            (355, 24),
        ]);
        let report = Report {
            title: "GET",
            requests: 1008,
            elapsed: Duration::from_millis(10),
            latencies: &latencies,
        };
        let around = Circumstances {
            clients: 5,
            payload_bytes: 3,
            keep_alive: true,
            configurations: &[Some(Configuration {
                save: String::new(),
                appendonly: "no".to_owned(),
            })],
            cluster: false,
            threads: None,
        };
        let mut out = Vec::new();
        report.write_full(&around, &mut out).unwrap();
        let expected = "\
====== GET ======
  1008 requests completed in 0.01 seconds
  5 parallel clients
  3 bytes payload
  keep alive: 1
  host configuration \"save\": 
  host configuration \"appendonly\": no
  multi-thread: no

Latency by percentile distribution:
0.000% <= 0.023 milliseconds (cumulative count 24)
50.000% <= 0.039 milliseconds (cumulative count 568)
75.000% <= 0.047 milliseconds (cumulative count 760)
87.500% <= 0.055 milliseconds (cumulative count 904)
93.750% <= 0.319 milliseconds (cumulative count 952)
96.875% <= 0.343 milliseconds (cumulative count 976)
98.438% <= 0.359 milliseconds (cumulative count 1000)
100.000% <= 0.359 milliseconds (cumulative count 1000)

Cumulative distribution of latencies:
93.600% <= 0.103 milliseconds (cumulative count 936)
100.000% <= 0.407 milliseconds (cumulative count 1000)

Summary:
  throughput summary: 100800.00 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        0.060     0.016     0.039     0.319     0.359     0.359
";
        let printed = String::from_utf8(out).unwrap();
        assert_eq!(printed, expected, "printed:\n{printed}");
    }

    #[test]
    fn short_and_csv() {
        let latencies = histogram(&[(500, 3), (1000, 1)]);
        let report = Report {
            title: "lpush x y",
            requests: 4,
            elapsed: Duration::from_micros(1500),
            latencies: &latencies,
        };
        let mut out = Vec::new();
        report.write_short(&mut out).unwrap();
        report.write_csv(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "lpush x y: 2666.67 requests per second, p50=0.503 msec\n\
             \"lpush x y\",\"2666.67\",\"0.626\",\"0.496\",\"0.503\",\"1.007\",\"1.007\",\"1.007\"\n"
        );
    }

    #[test]
    fn unchanged_steps_are_left_out_of_the_distribution() {
        let latencies = histogram(&[(2050, 1), (4200, 2), (17_000, 1)]);
        let line = |percent, latency, count| Line {
            percent,
            latency,
            count,
        };
        assert_eq!(
            by_latency(&latencies),
            [
                line(0.0, 103, 0),
                line(25.0, 2103, 1),
                line(75.0, 5103, 3),
                line(100.0, 17_103, 4)
            ]
        );
    }

    #[test]
    fn progress_wipes_its_own_line() {
        let mut out = Vec::new();
        let mut line = ProgressLine::new("GET");
        line.write(0, 0, Duration::from_nanos(1), &mut out).unwrap();
        line.write(1000, 500_000, Duration::from_millis(250), &mut out)
            .unwrap();
        line.wipe(&mut out).unwrap();
        let first = "GET: rps=0.0 (overall: 0.0) avg_msec=-nan (overall: -nan)\r";
        let second = "GET: rps=4000.0 (overall: 4000.0) avg_msec=0.500 (overall: 0.500)\r";
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!(" \r{first}{:58}\r{second}{:66}\r", " ", " ")
        );
    }
}
