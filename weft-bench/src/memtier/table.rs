//! The tables that memtier_benchmark prints.
//!
//! Owns titles, columns and their widths, which programs read. Does not measure. Latencies come in microseconds.

use std::io::{self, Write};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::load::Class;

/// One line's worth of requests.
#[derive(Clone, Debug)]
pub struct Row {
    /// "Sets", "Gets", "Totals", or a command.
    pub name: String,
    /// What the distribution calls it: "SET".
    pub kind: String,
    /// What was measured.
    pub class: Class,
    /// Whether anything of this kind is ever sent.
    pub sent: bool,
    /// Whether absent answers are misses.
    pub misses: bool,
    /// Whether bytes are told.
    pub bytes: bool,
    /// Answers that said that the slot has moved.
    pub moved: u64,
    /// Answers that said to ask elsewhere this once.
    pub asked: u64,
    /// Connections that broke or did not come about; known of the sum only.
    pub connection_errors: u64,
}

/// All rows of one run.
#[derive(Clone, Debug)]
pub struct Table {
    /// In their order; the last one is the sum.
    pub rows: Vec<Row>,
    /// Whether there are columns of hits and misses.
    pub hit_columns: bool,
    /// Whether there are columns of redirections.
    pub cluster: bool,
    /// From the first request to the last answer.
    pub elapsed: Duration,
}

/// The least width of the first column.
const NAME_WIDTH: usize = 7;

/// Figures per second, and latencies.
const RATE_WIDTH: usize = 12;
const LATENCY_WIDTH: usize = 15;

/// The width of the distribution's lines.
const DISTRIBUTION_WIDTH: usize = 72;

/// Percentiles are halved so often: the ticks of each half of the distance to 100 %.
const DISTRIBUTION_TICKS: u32 = 5;

impl Row {
    fn answered(&self) -> u64 {
        self.class.latencies.len()
    }

    fn nulls(&self) -> u64 {
        self.class.nulls
    }

    fn byte_count(&self) -> u64 {
        self.class.bytes_sent + self.class.bytes_received
    }
}

impl Table {
    fn per_second(&self, count: u64) -> String {
        let seconds = self.elapsed.as_secs_f64();
        let rate = if seconds > 0.0 {
            count as f64 / seconds
        } else {
            0.0
        };
        format!("{rate:.2}")
    }

    /// All runs as one: their rates are averages over the runs, and percentiles those of all requests. `None`: no runs.
    pub fn average(tables: &[Table]) -> Option<Table> {
        let (first, others) = tables.split_first()?;
        let mut sum = first.clone();
        for table in others {
            sum.elapsed += table.elapsed;
            for (row, other) in sum.rows.iter_mut().zip(&table.rows) {
                row.moved += other.moved;
                row.asked += other.asked;
                row.connection_errors += other.connection_errors;
                row.class.add(&other.class);
            }
        }
        Some(sum)
    }

    /// Answers that were there, of those that could have been absent: the row's own, and in the sum those of all rows.
    pub fn hits(&self, row: &Row) -> u64 {
        let is_sum = self.rows.last().is_some_and(|last| std::ptr::eq(last, row));
        let asked: u64 = if is_sum {
            let kinds = &self.rows[..self.rows.len() - 1];
            kinds
                .iter()
                .filter(|row| row.misses)
                .map(Row::answered)
                .sum()
        } else {
            row.answered()
        };
        asked.saturating_sub(row.nulls())
    }

    /// Requests answered in a second, of all kinds.
    pub fn rate(&self) -> f64 {
        let answered = self.rows.last().map_or(0, Row::answered);
        answered as f64 / self.elapsed.as_secs_f64()
    }

    /// Prints the table under its title.
    pub fn write(&self, title: &str, percentiles: &[f64], out: &mut impl Write) -> io::Result<()> {
        let names = self.rows.iter().map(|row| row.name.chars().count());
        let name_width = names.max().unwrap_or(0).max(NAME_WIDTH);
        let mut lines = vec![format!("{:name_width$} ", "Type")];
        lines.extend(
            self.rows
                .iter()
                .map(|row| format!("{:name_width$} ", row.name)),
        );
        let mut column = |width: usize, head: &str, cell: &dyn Fn(&Row) -> Option<String>| {
            lines[0].push_str(&format!("{head:>width$} "));
            for (line, row) in lines[1..].iter_mut().zip(&self.rows) {
                let cell = cell(row).unwrap_or_else(|| "---".to_owned());
                line.push_str(&format!("{cell:>width$} "));
            }
        };
        column(RATE_WIDTH, "Ops/sec", &|row| {
            Some(self.per_second(row.answered()))
        });
        if self.hit_columns {
            column(RATE_WIDTH, "Hits/sec", &|row| {
                row.misses.then(|| self.per_second(self.hits(row)))
            });
            column(RATE_WIDTH, "Misses/sec", &|row| {
                row.misses.then(|| self.per_second(row.nulls()))
            });
        }
        if self.cluster {
            column(RATE_WIDTH, "MOVED/sec", &|row| {
                row.bytes.then(|| self.per_second(row.moved))
            });
            column(RATE_WIDTH, "ASK/sec", &|row| {
                row.bytes.then(|| self.per_second(row.asked))
            });
        }
        column(LATENCY_WIDTH, "Avg. Latency", &|row| {
            measured(row).map(|latencies| format!("{:.5}", latencies.mean() / 1000.0))
        });
        for &percentile in percentiles {
            let head = format!("p{} Latency", percentile_text(percentile));
            column(LATENCY_WIDTH, &head, &|row| {
                measured(row).map(|latencies| {
                    let latency = latencies.value_at_percentile(percentile);
                    format!("{:.5}", latency as f64 / 1000.0)
                })
            });
        }
        column(RATE_WIDTH, "KB/sec", &|row| {
            (row.bytes && row.sent).then(|| self.kilobytes_per_second(row))
        });
        let width = lines[0].len();
        writeln!(out, "{title}\n{}", "=".repeat(width))?;
        for (number, line) in lines.iter().enumerate() {
            writeln!(out, "{line}")?;
            if number == 0 {
                writeln!(out, "{}", "-".repeat(width))?;
            }
        }
        Ok(())
    }

    fn kilobytes_per_second(&self, row: &Row) -> String {
        let rate = row.byte_count() as f64 / 1024.0 / self.elapsed.as_secs_f64();
        format!("{:.2}", if rate.is_finite() { rate } else { 0.0 })
    }

    /// Prints how latencies are distributed, kind by kind.
    pub fn write_distribution(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "\n\nRequest Latency Distribution\n{:<8} {:>7} {:>15}\n{}",
            "Type",
            "<= msec",
            "Percent",
            "-".repeat(DISTRIBUTION_WIDTH)
        )?;
        let kinds = &self.rows[..self.rows.len().saturating_sub(1)];
        for (number, row) in kinds.iter().enumerate() {
            if number > 0 {
                writeln!(out, "---")?;
            }
            let Some(latencies) = measured(row) else {
                continue;
            };
            for step in latencies.iter_quantiles(DISTRIBUTION_TICKS) {
                writeln!(
                    out,
                    "{:<8} {:>6.3} {:>12.3}",
                    row.kind,
                    step.value_iterated_to() as f64 / 1000.0,
                    step.quantile_iterated_to() * 100.0
                )?;
            }
        }
        Ok(())
    }
}

/// The latencies of a row, if there are any.
fn measured(row: &Row) -> Option<&Histogram<u64>> {
    let latencies = &row.class.latencies;
    (!latencies.is_empty()).then_some(latencies)
}

/// "50", "99.9", "99.990".
fn percentile_text(percentile: f64) -> String {
    if percentile.fract() == 0.0 {
        format!("{percentile:.0}")
    } else if (percentile * 10.0).fract().abs() < 1e-9 {
        format!("{percentile:.1}")
    } else {
        format!("{percentile:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Record, Scale};

    fn class(latencies: &[(u64, u64)], nulls: u64, bytes: u64) -> Class {
        let scale = Scale {
            unit_ns: 1000,
            lowest: 10,
            digits: 3,
        };
        let mut record = Record::new(scale, 1);
        for &(latency, count) in latencies {
            record.answered(0, latency * 1000, count);
        }
        (0..nulls).for_each(|_| record.was_null(0));
        record.bytes_sent(0, bytes);
        record.classes()[0].clone()
    }

    fn row(name: &str, class: Option<Class>, misses: bool) -> Row {
        Row {
            name: name.to_owned(),
            kind: name.trim_end_matches('s').to_uppercase(),
            sent: class.is_some(),
            class: class.unwrap_or_else(|| self::class(&[], 0, 0)),
            misses,
            bytes: name != "Waits",
            moved: 2,
            asked: 0,
            connection_errors: 0,
        }
    }

    #[test]
    fn columns_are_memtiers() {
        let table = Table {
            rows: vec![
                row("Sets", Some(class(&[(500, 100)], 0, 102_400)), false),
                row("Gets", Some(class(&[(300, 900)], 300, 51_200)), true),
                row("Waits", None, false),
                row(
                    "Totals",
                    Some(class(&[(300, 900), (500, 100)], 300, 153_600)),
                    true,
                ),
            ],
            hit_columns: true,
            cluster: false,
            elapsed: Duration::from_secs(2),
        };
        let mut out = Vec::new();
        table
            .write("ALL STATS", &[50.0, 99.0, 99.9], &mut out)
            .unwrap();
        table.write_distribution(&mut out).unwrap();
        let line = |mark: &str| mark.repeat(124);
        let expected = format!(
            "ALL STATS\n{}\n\
             Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec \n\
             {}\n\
             Sets           50.00          ---          ---         0.50000         0.50300         0.50300         0.50300        50.00 \n\
             Gets          450.00       300.00       150.00         0.30000         0.30300         0.30300         0.30300        25.00 \n\
             Waits           0.00          ---          ---             ---             ---             ---             ---          --- \n\
             Totals        500.00       300.00       150.00         0.32000         0.30300         0.50300         0.50300        75.00 \n\
             \n\nRequest Latency Distribution\n\
             Type     <= msec         Percent\n{}\n\
             SET       0.503        0.000\n\
             SET       0.503      100.000\n\
             ---\n\
             GET       0.303        0.000\n\
             GET       0.303      100.000\n\
             ---\n",
            line("="),
            line("-"),
            "-".repeat(72)
        );
        let printed = String::from_utf8(out).unwrap();
        assert_eq!(printed, expected, "printed:\n{printed}");
    }

    #[test]
    fn percentiles_are_written_as_in_memtier() {
        for (percentile, text) in [
            (50.0, "50"),
            (99.9, "99.9"),
            (99.99, "99.990"),
            (100.0, "100"),
        ] {
            assert_eq!(percentile_text(percentile), text);
        }
    }

    #[test]
    fn long_names_widen_the_first_column() {
        let table = Table {
            rows: vec![
                row("SET __key__ v", Some(class(&[(500, 1)], 0, 0)), false),
                row("Totals", Some(class(&[(500, 1)], 0, 0)), false),
            ],
            hit_columns: false,
            cluster: true,
            elapsed: Duration::from_secs(1),
        };
        let mut out = Vec::new();
        table.write("ALL STATS", &[99.5], &mut out).unwrap();
        let printed = String::from_utf8(out).unwrap();
        assert!(
            printed.contains(
                "\nType               Ops/sec    MOVED/sec      ASK/sec    Avg. Latency   p99.5 Latency       KB/sec \n"
            ),
            "{printed}"
        );
        assert!(printed.contains(
            "\nSET __key__ v         1.00         2.00         0.00         0.50000         0.50300         0.00 \n"
        ));
    }
}
