//! The results of a sweep for the terminal: a table for each load, then what they say.
//!
//! Owns the texts and columns. Medians of the rounds; behind the rate the reach of its 95 % interval.

use std::fmt::Write;

use super::results::{Results, Series};
use super::sample::{FIGURES, median_of};
use crate::columns::{Columns, figure};
use crate::server::STEPS;

/// The whole text.
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    for (place, cell) in results.cells.iter().enumerate() {
        if place > 0 {
            text.push('\n');
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "{cell}\n{}", rows(results, place));
        for line in conclusions(results, place) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

fn rows(results: &Results, cell: usize) -> Columns {
    let mut titles = vec!["server", "threads"];
    for column in &FIGURES {
        titles.push(column.title);
        if column.name == "rate" {
            titles.push("+-");
        }
    }
    titles.push("bound by");
    let mut table = Columns::new(1, &titles);
    for (server, facts) in results.servers.iter().enumerate() {
        for series in results.of(server, cell) {
            let mut row = vec![facts.name.clone(), series.threads.clone()];
            for column in &FIGURES {
                let median = median_of(&series.samples, column.of);
                row.push(match column.name {
                    "failure_rate" if median > 0.0 => format!("{:.2} %", median * 100.0),
                    _ => figure(median),
                });
                if column.name == "rate" {
                    let reach = series.rate().map(|rate| rate.high - rate.mean);
                    row.push(reach.map_or("-".to_owned(), figure));
                }
            }
            row.push(series.bound().map_or("-".to_owned(), |it| it.by.short()));
            table.row(row);
        }
    }
    table
}

/// What the table of a load says, in sentences.
pub fn conclusions(results: &Results, cell: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (server, facts) in results.servers.iter().enumerate() {
        let name = &facts.name;
        let of_server = results.of(server, cell);
        let spot = results.sweet_spot(server, cell);
        if let Some((spot, chosen)) = &spot {
            let mut line = format!("{name}: best with {}", counted(&chosen.threads));
            let fastest = of_server.get(spot.fastest);
            match fastest {
                Some(fastest) if spot.fastest != spot.setting => {
                    let _ = write!(
                        line,
                        ", whose rate is {:.2} times that of {}",
                        spot.ratio,
                        counted(&fastest.threads)
                    );
                    if let Some(interval) = spot.interval {
                        let _ = write!(line, " ({:.2} to {:.2})", interval.low, interval.high);
                    }
                    line.push_str(": more threads gain nothing that was shown");
                }
                _ => line.push_str(", the highest rate; fewer do not reach it"),
            }
            lines.push(line);
        }
        let shown = match &spot {
            Some((_, chosen)) => Some(*chosen),
            None => of_server.first().copied(),
        };
        if let Some(series) = shown {
            lines.extend(
                series
                    .bound()
                    .map(|bound| format!("{name}: bounded by {bound}")),
            );
            lines.extend(steps(series).map(|steps| format!("{name}: {steps}")));
            lines.extend(threads(series).map(|threads| format!("{name}: {threads}")));
        }
        for series in of_server {
            for failure in &series.failures {
                lines.push(format!(
                    "{name}, {}: a round failed: {failure}",
                    counted(&series.threads)
                ));
            }
        }
    }
    lines
}

/// "1 thread", "4 threads", "threads auto".
pub fn counted(threads: &str) -> String {
    match threads {
        "1" => "1 thread".to_owned(),
        "-" => "its only setting".to_owned(),
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("{number} threads"),
        other => format!("threads {other}"),
    }
}

fn steps(series: &Series) -> Option<String> {
    let us = series.steps_us()?;
    let steps = STEPS.iter().zip(us);
    let steps: Vec<String> = steps
        .map(|(step, us)| format!("{step} {}", figure(us)))
        .collect();
    Some(format!(
        "us/op by step, by the server's clock: {}",
        steps.join(", ")
    ))
}

/// So many threads are told of by name, the busiest first.
const THREADS_SHOWN: usize = 8;

fn threads(series: &Series) -> Option<String> {
    let last = series.samples.last()?;
    let mut threads: Vec<_> = last.server.threads.iter().collect();
    threads.sort_by(|left, right| right.run.total_cmp(&left.run));
    let told: Vec<String> = threads
        .iter()
        .filter(|thread| thread.run >= 0.005)
        .take(THREADS_SHOWN)
        .map(|thread| {
            format!(
                "{} {:.0} % (waited {:.0} %)",
                thread.name,
                thread.run * 100.0,
                thread.wait * 100.0
            )
        })
        .collect();
    (!told.is_empty()).then(|| format!("CPU by thread, last round: {}", told.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn a_table_for_each_load_and_what_it_says() {
        assert_eq!(
            text(&results()),
            "\
GET, 3 B, 50 connections
server  threads   rate/s    +-  p50 us  p99 us  p99.9 us  failed  CPU us/op  cores  switches/op  client us/op  bound by
weft          1  100,001  2.48     100     250       900  0.50 %       5.25  0.750        0.640          3.50   latency
weft          2  200,001  2.48     100     250       900  0.50 %       5.25  0.750        0.640          3.50   latency
other         1   70,001  2.48     100     250       900  0.50 %       5.25  0.750        0.640          3.50   latency

weft: best with 2 threads, the highest rate; fewer do not reach it
weft: bounded by latency, nobody is busy: load-0 ran 50 % and waited for a processor 19 % of the time, the machine was idle 25 %
weft: us/op by step, by the server's clock: read 1.00, parse 0.500, execute 0.250, encode 0.125, write 3.00
weft: CPU by thread, last round: main 50 % (waited 12 %), io 25 % (waited 0 %)
other: bounded by latency, nobody is busy: load-0 ran 50 % and waited for a processor 19 % of the time, the machine was idle 25 %
other: CPU by thread, last round: main 50 % (waited 12 %), io 25 % (waited 0 %)

SET, 3 B, 1 connection
server  threads  rate/s    +-  p50 us  p99 us  p99.9 us  failed  CPU us/op  cores  switches/op  client us/op  bound by
weft          1  20,001  2.48     100     250       900  0.50 %       5.25  0.750        0.640          3.50   latency
weft          2  20,002  2.48     100     250       900  0.50 %       5.25  0.750        0.640          3.50   latency
other         1  15,001  2.48     100     250       900  0.50 %       5.25  0.750        0.640          3.50   latency

weft: best with 1 thread, whose rate is 1.00 times that of 2 threads (1.00 to 1.00): more threads gain nothing that was shown
weft: bounded by latency, nobody is busy: load-0 ran 50 % and waited for a processor 19 % of the time, the machine was idle 25 %
weft: us/op by step, by the server's clock: read 1.00, parse 0.500, execute 0.250, encode 0.125, write 3.00
weft: CPU by thread, last round: main 50 % (waited 12 %), io 25 % (waited 0 %)
other: bounded by latency, nobody is busy: load-0 ran 50 % and waited for a processor 19 % of the time, the machine was idle 25 %
other: us/op by step, by the server's clock: read 1.00, parse 0.500, execute 0.250, encode 0.125, write 3.00
other: CPU by thread, last round: main 50 % (waited 12 %), io 25 % (waited 0 %)
other, 1 thread: a round failed: it went away
"
        );
    }
}
