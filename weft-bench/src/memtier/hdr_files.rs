//! Histograms as files: the table of percentiles and the log that HdrHistogram's tools read.
//!
//! Owns their names and formats. Latencies come in microseconds; the table shows milliseconds. Source of the log's format:
//! HdrHistogram's "Histogram log format version 1.2", with the compressed histogram (V2) in base 64.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use super::table::Table;

/// Percentiles between one half of the distance to 100 % and the next.
const TICKS: u32 = 10;

/// Writes the files of one run. The error names the file.
pub fn write(
    prefix: &OsStr,
    run: u32,
    table: &Table,
    started: SystemTime,
) -> Result<(), (PathBuf, io::Error)> {
    let Some((sum, kinds)) = table.rows.split_last() else {
        return Ok(());
    };
    let full = [(sum, "Full Run".to_owned(), format!("FULL_RUN_{run}"))];
    let kinds = kinds.iter().map(|row| {
        let file = row.kind.replace(' ', "_");
        (row, row.kind.clone(), format!("{file}_command_run_{run}"))
    });
    for (row, title, file) in full.into_iter().chain(kinds) {
        let latencies = &row.class.latencies;
        if latencies.is_empty() {
            continue;
        }
        let path = |ending: &str| {
            let mut path = OsString::from(prefix);
            path.push(format!("_{file}.{ending}"));
            PathBuf::from(path)
        };
        let title = format!("{title} command HDR latency histogram results");
        let (text, log) = (path("txt"), path("hgrm"));
        eprintln!("Writing {title} to {}...", text.display());
        let written = create(&text).and_then(|mut out| {
            write_percentiles(latencies, &mut out)?;
            out.flush()
        });
        written.map_err(|error| (text, error))?;
        eprintln!(
            "Writing {title} in HistogramLogProcessor format to {}...",
            log.display()
        );
        let written = create(&log).and_then(|mut out| {
            write_log(
                &title,
                latencies,
                started,
                started + table.elapsed,
                &mut out,
            )?;
            out.flush()
        });
        written.map_err(|error| (log, error))?;
    }
    Ok(())
}

fn create(path: &PathBuf) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::new(File::create(path)?))
}

fn write_percentiles(latencies: &Histogram<u64>, out: &mut impl Write) -> io::Result<()> {
    write!(
        out,
        "{:>12} {:>12} {:>12} {:>12}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut count = 0;
    for step in latencies.iter_quantiles(TICKS) {
        count += step.count_since_last_iteration();
        let quantile = step.quantile_iterated_to();
        write!(
            out,
            "{:12.2} {quantile:12.6} {count:12} ",
            milliseconds(step.value_iterated_to())
        )?;
        match quantile < 1.0 {
            true => writeln!(out, "{:12.2}", 1.0 / (1.0 - quantile))?,
            false => writeln!(out, "{:>12}", "inf")?,
        }
    }
    writeln!(
        out,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]",
        latencies.mean() / 1000.0,
        latencies.stdev() / 1000.0
    )?;
    writeln!(
        out,
        "#[Max     = {:12.3}, Total count    = {:12}]",
        milliseconds(latencies.max()),
        latencies.len()
    )?;
    // Twice as many as the digits tell apart, and that a power of 2.
    let parts = (2 * 10_u64.pow(u32::from(latencies.sigfig()))).next_power_of_two();
    writeln!(
        out,
        "#[Buckets = {:12}, SubBuckets     = {parts:12}]",
        latencies.buckets()
    )
}

fn write_log(
    title: &str,
    latencies: &Histogram<u64>,
    from: SystemTime,
    to: SystemTime,
    out: &mut impl Write,
) -> io::Result<()> {
    let seconds = |time: SystemTime| {
        time.duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64()
    };
    writeln!(out, "#[{title}]\n#[Histogram log format version 1.2]")?;
    writeln!(
        out,
        "#[StartTime: {:.3} (seconds since epoch)]",
        seconds(from)
    )?;
    writeln!(
        out,
        r#""StartTimestamp","EndTimestamp","Interval_Max","Interval_Compressed_Histogram""#
    )?;
    writeln!(
        out,
        "{:.3},{:.3},{:.1},{}",
        seconds(from),
        seconds(to),
        latencies.max() as f64,
        compressed(latencies)
    )
}

/// The histogram in the form that logs carry.
pub fn compressed(latencies: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(latencies, &mut bytes)
        .expect("a histogram of u64 fits the format, and a Vec takes every byte");
    STANDARD.encode(bytes)
}

fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;

    use super::*;

    fn latencies() -> Histogram<u64> {
        let mut latencies = Histogram::new_with_bounds(1, 1 << 32, 3).unwrap();
        latencies.record_n(100, 3).unwrap();
        latencies.record(2500).unwrap();
        latencies
    }

    #[test]
    fn the_table_ends_with_the_whole() {
        let mut out = Vec::new();
        write_percentiles(&latencies(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with(
                "       Value   Percentile   TotalCount 1/(1-Percentile)\n\n\
                 \x20       0.10     0.000000            3         1.00\n\
                 \x20       0.10     0.050000            3         1.05\n"
            ),
            "{text}"
        );
        assert!(
            text.ends_with(
                "\x20       2.50     1.000000            4          inf\n\
                 #[Mean    =        0.700, StdDeviation   =        1.040]\n\
                 #[Max     =        2.501, Total count    =            4]\n\
                 #[Buckets =           23, SubBuckets     =         2048]\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn the_log_holds_the_histogram() {
        let mut out = Vec::new();
        let from = UNIX_EPOCH + std::time::Duration::from_millis(1500);
        write_log(
            "GET command",
            &latencies(),
            from,
            from + std::time::Duration::from_secs(2),
            &mut out,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        let line = text.lines().last().unwrap();
        let histogram = line
            .strip_prefix("1.500,3.500,2501.0,")
            .unwrap_or_else(|| panic!("{text}"));
        assert!(histogram.starts_with("HISTFAAAA"), "{histogram}");
        let bytes = STANDARD.decode(histogram).unwrap();
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        assert_eq!(read, latencies());
    }
}
