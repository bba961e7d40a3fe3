//! What came of each second: a table and a log of histograms.
//!
//! Owns the two files' forms. The log is the interval log of HdrHistogram with histograms in its format V2, compressed, values
//! in nanoseconds; its tools plot it. Both are written while the run goes on.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;

use super::report::Latency;
use crate::load::Interval;

/// The columns of the table.
const COLUMNS: &str = "second,requests,errors,failed,open_connections,bytes,mean_us,p50_us,p90_us,p99_us,p99_9_us,max_us\n";

/// A table with a line for each second.
#[derive(Debug)]
pub struct Table {
    file: BufWriter<File>,
}

impl Table {
    /// Begins a file.
    pub fn create(path: &Path) -> io::Result<Table> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(COLUMNS.as_bytes())?;
        Ok(Table { file })
    }

    /// Adds a second.
    pub fn add(&mut self, interval: &Interval) -> io::Result<()> {
        let latency = Latency::of(&interval.latencies);
        let counts = &interval.counts;
        writeln!(
            self.file,
            "{},{},{},{},{},{},{},{},{},{},{},{}",
            interval.index,
            counts.answered,
            counts.errors,
            counts.failed,
            counts.open,
            counts.bytes,
            latency.mean_us,
            latency.p50_us,
            latency.p90_us,
            latency.p99_us,
            latency.p99_9_us,
            latency.max_us
        )?;
        self.file.flush()
    }
}

/// A log with a histogram for each second.
#[derive(Debug)]
pub struct Log {
    file: BufWriter<File>,
}

impl Log {
    /// Begins a file.
    pub fn create(path: &Path) -> io::Result<Log> {
        let mut file = BufWriter::new(File::create(path)?);
        let now = SystemTime::now();
        let remark = concat!(
            "[Histogram log format version 1.3]\nlatencies in nanoseconds, by weft-bench ",
            env!("CARGO_PKG_VERSION")
        );
        IntervalLogWriterBuilder::new()
            .add_comment(remark)
            .with_start_time(now)
            .with_base_time(now)
            .begin_log_with(&mut file, &mut V2DeflateSerializer::new())?;
        Ok(Log { file })
    }

    /// Adds a second.
    pub fn add(&mut self, interval: &Interval) -> io::Result<()> {
        let mut serializer = V2DeflateSerializer::new();
        // A writer of its own for each line, since one cannot be kept beside the file that it borrows. It writes no head.
        let mut writer =
            IntervalLogWriterBuilder::new().begin_log_with(&mut self.file, &mut serializer)?;
        let start = Duration::from_secs(interval.index);
        writer
            .write_histogram(&interval.latencies, start, Duration::from_secs(1), None)
            .map_err(|error| io::Error::other(error.to_string()))?;
        self.file.flush()
    }
}
