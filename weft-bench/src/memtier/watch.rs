//! What comes of each client, second by second, and the files about it.
//!
//! Owns the figures of one client and the columns of its file. Latencies are kept in microseconds, to two digits.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use hdrhistogram::Histogram;
use weft_resp::ReplyClass;

use super::clients::Found;
use super::workload::{GETS, SETS, WAITS, Workload};
use crate::load::Answer;

/// So many seconds are told apart: a day. Later ones count as the last.
const SECONDS_MAX: usize = 86_400;

/// Percentiles between one half of the distance to 100 % and the next.
const TICKS: u32 = 10;

/// One client's figures.
#[derive(Debug)]
pub struct Watch {
    start_ns: u64,
    /// By class.
    latencies: Vec<Histogram<u64>>,
    /// By second, by class.
    seconds: Vec<Vec<Figures>>,
    classes: usize,
}

/// One second's figures of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    answered: u64,
    latency_ns: u64,
    sent_bytes: u64,
    received_bytes: u64,
    nulls: u64,
    moved: u64,
    asked: u64,
}

impl Watch {
    /// Nothing yet, for so many classes.
    pub fn new(classes: usize) -> Watch {
        let empty = || Histogram::new(2).expect("two digits are in the range that the type allows");
        Watch {
            start_ns: 0,
            latencies: std::iter::repeat_with(empty).take(classes).collect(),
            seconds: Vec::new(),
            classes,
        }
    }

    /// The run begins.
    pub fn start(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
    }

    fn figures(&mut self, class: u16, now_ns: u64) -> Option<&mut Figures> {
        let second = now_ns.saturating_sub(self.start_ns) / 1_000_000_000;
        let second = usize::try_from(second).map_or(SECONDS_MAX - 1, |it| it.min(SECONDS_MAX - 1));
        if self.seconds.len() <= second {
            let classes = vec![Figures::default(); self.classes];
            self.seconds.resize(second + 1, classes);
        }
        self.seconds[second].get_mut(usize::from(class))
    }

    /// A request is sent.
    pub fn sent(&mut self, class: u16, bytes: u64, now_ns: u64) {
        if let Some(figures) = self.figures(class, now_ns) {
            figures.sent_bytes += bytes;
        }
    }

    /// A request is answered.
    pub fn answered(&mut self, answer: &Answer<'_>, now_ns: u64) {
        let latency_ns = now_ns.saturating_sub(answer.since_ns);
        if let Some(figures) = self.figures(answer.class, now_ns) {
            figures.answered += 1;
            figures.latency_ns += latency_ns;
            figures.received_bytes += answer.bytes.len() as u64;
            figures.nulls += u64::from(answer.kind == ReplyClass::Null);
        }
        if let Some(latencies) = self.latencies.get_mut(usize::from(answer.class)) {
            latencies.saturating_record(latency_ns / 1000);
        }
    }

    /// A request is sent elsewhere.
    pub fn redirected(&mut self, class: u16, ask: bool, now_ns: u64) {
        if let Some(figures) = self.figures(class, now_ns) {
            figures.moved += u64::from(!ask);
            figures.asked += u64::from(ask);
        }
    }

    fn write(
        &self,
        workload: &Workload,
        own: bool,
        cluster: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let reported = &workload.kinds;
        let mut head = "Second".to_owned();
        for (class, kind) in reported.iter().enumerate() {
            let name = &kind.name;
            head += &format!(",{name} Requests,{name} Average Latency");
            if kind.bytes {
                head += &format!(",{name} Total Bytes,{name} Total Bytes TX,{name} Total Bytes RX");
            }
            if !own && class == usize::from(GETS) {
                head += &format!(",{name} Misses,{name} Hits");
            }
        }
        let title = match own {
            true => "Per-Second Benchmark Arbitrary Commands Data",
            false => "Per-Second Benchmark Data",
        };
        writeln!(out, "{title}\n{head}")?;
        for (second, classes) in self.seconds.iter().enumerate() {
            write!(out, "{second}")?;
            for (class, (kind, figures)) in reported.iter().zip(classes).enumerate() {
                let average = figures.latency_ns as f64 / figures.answered.max(1) as f64 / 1e9;
                write!(out, ",{},{average:.6}", figures.answered)?;
                if kind.bytes {
                    let (sent, received) = (figures.sent_bytes, figures.received_bytes);
                    write!(out, ",{},{sent},{received}", sent + received)?;
                }
                if !own && class == usize::from(GETS) {
                    let hits = figures.answered.saturating_sub(figures.nulls);
                    write!(out, ",{},{hits}", figures.nulls)?;
                }
            }
            writeln!(out)?;
        }
        // The order that readers of these files know.
        let order: Vec<usize> = match own {
            true => (0..reported.len()).collect(),
            false => [GETS, SETS, WAITS].map(usize::from).to_vec(),
        };
        for class in order {
            let name = &reported[class].name;
            writeln!(out, "\nFull-Test {name} Latency\nLatency (<= msec),Percent")?;
            let latencies = &self.latencies[class];
            if latencies.is_empty() {
                writeln!(out, "{:8.3},{:.3}", 0.0, 100.0)?;
                continue;
            }
            for step in latencies.iter_quantiles(TICKS) {
                let latency = step.value_iterated_to() as f64 / 1000.0;
                writeln!(
                    out,
                    "{latency:8.3},{:.3}",
                    step.quantile_iterated_to() * 100.0
                )?;
            }
        }
        if cluster {
            self.write_redirections(workload, out)?;
        }
        Ok(())
    }

    fn write_redirections(&self, workload: &Workload, out: &mut impl Write) -> io::Result<()> {
        let redirected = |kind: &&super::workload::Kind| kind.bytes;
        writeln!(out, "\nPer-Second Benchmark Cluster Data")?;
        write!(out, "Second")?;
        for kind in workload.kinds.iter().filter(redirected) {
            write!(out, ",{name} Moved,{name} Ask", name = kind.name)?;
        }
        writeln!(out)?;
        for (second, classes) in self.seconds.iter().enumerate() {
            write!(out, "{second}")?;
            for (kind, figures) in workload.kinds.iter().zip(classes) {
                if kind.bytes {
                    write!(out, ",{},{}", figures.moved, figures.asked)?;
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Writes a file for each client: `PREFIX-RUN-THREAD-CLIENT.csv`. `own`: the commands are the user's. The error names the
/// file.
pub fn write(
    prefix: &OsStr,
    run: u32,
    founds: &[Found],
    workload: &Workload,
    own: bool,
    cluster: bool,
) -> Result<(), (PathBuf, io::Error)> {
    eprintln!("[RUN {run}] Writing client stats files...");
    for found in founds {
        for (client, watch) in found.watches.iter().enumerate() {
            let mut path = OsString::from(prefix);
            path.push(format!("-{run}-{}-{client}.csv", found.thread));
            let path = PathBuf::from(path);
            let written = File::create(&path).and_then(|file| {
                let mut out = BufWriter::new(file);
                watch.write(workload, own, cluster, &mut out)?;
                out.flush()
            });
            written.map_err(|error| (path, error))?;
        }
    }
    Ok(())
}
