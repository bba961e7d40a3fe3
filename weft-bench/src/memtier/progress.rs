//! The line that shows how far a run is, and the same figures for who looks on from elsewhere.

use std::time::Duration;

use super::mix::Limit;
use super::statsd::Figures;
use crate::load::{Interval, Progress};

/// What the line showed last.
#[derive(Debug)]
pub struct ProgressLine {
    run: u32,
    limit: Limit,
    clients: usize,
    last: Option<Progress>,
}

/// What a moment looks like.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Threads that are at work.
    pub threads: usize,
    /// Clients of each thread.
    pub clients: usize,
    pub now: Progress,
}

impl ProgressLine {
    /// Nothing yet. `clients`: of all threads together.
    pub fn new(run: u32, limit: Limit, clients: usize) -> ProgressLine {
        ProgressLine {
            run,
            limit,
            clients,
            last: None,
        }
    }

    /// Shows a moment, and returns its figures with what the latest interval came to.
    pub fn write<'a>(&mut self, moment: &Moment, interval: Option<&'a Interval>) -> Figures<'a> {
        let Moment {
            threads,
            clients,
            now,
        } = *moment;
        let (counts, elapsed) = (now.counts, now.elapsed.as_secs_f64());
        let done = match self.limit {
            _ if threads == 0 => 1.0,
            Limit::Requests(requests) => {
                counts.answered as f64 / (requests as f64 * self.clients as f64)
            }
            Limit::Time(time_ns) => now.elapsed.as_nanos() as f64 / time_ns as f64,
        };
        let (before, since) = match &self.last {
            Some(last) => (
                last.counts,
                now.elapsed.saturating_sub(last.elapsed).as_secs_f64(),
            ),
            None => (Default::default(), elapsed),
        };
        let rate = |count: u64, seconds: f64| {
            let rate = count as f64 / seconds;
            if rate.is_finite() { rate } else { 0.0 }
        };
        let new = counts.answered - before.answered;
        let latency = |sum: u64, count: u64| match count {
            0 => 0.0,
            count => sum as f64 / count as f64 / 1000.0,
        };
        let figures = Figures {
            ops: (rate(new, since), rate(counts.answered, elapsed)),
            bytes: (
                rate(counts.bytes - before.bytes, since),
                rate(counts.bytes, elapsed),
            ),
            latency: (
                latency(counts.latency_sum - before.latency_sum, new),
                latency(counts.latency_sum, counts.answered),
            ),
            connections: counts.open,
            progress: (done * 100.0).min(100.0),
            latencies: interval.map(|interval| &interval.latencies),
        };
        eprint!(
            "[RUN #{} {:.0}%, {:3} secs] {threads:2} threads {clients:2} conns: {:11} ops, {:7.0} (avg: {:7.0}) ops/sec, \
             {}/sec (avg: {}/sec), {:5.2} (avg: {:5.2}) msec latency\r",
            self.run,
            figures.progress,
            now.elapsed.as_secs(),
            counts.answered,
            figures.ops.0,
            figures.ops.1,
            size(figures.bytes.0),
            size(figures.bytes.1),
            figures.latency.0,
            figures.latency.1,
        );
        self.last = Some(now);
        figures
    }
}

/// Clients of a thread after so long, with a staircase.
pub fn clients_at(stairs: &super::options::Staircase, most: usize, elapsed: Duration) -> usize {
    let steps = usize::try_from(elapsed.as_secs() / stairs.seconds).unwrap_or(usize::MAX);
    steps
        .saturating_mul(stairs.step)
        .saturating_add(stairs.start)
        .min(most)
}

/// Bytes in the unit that fits.
fn size(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["B", "KB", "MB", "GB"];
    let mut size = bytes;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.2}{}", UNITS[unit])
}

/// Tells how the number of clients will grow.
pub fn announce(run: u32, stairs: &super::options::Staircase, options: &super::options::Options) {
    const BARS: usize = 20;
    eprintln!(
        "[RUN #{run}] Client staircase pattern (per thread x {} threads):",
        options.threads
    );
    let end = options.test_seconds.unwrap_or(0);
    let most = options.clients;
    let steps = (most - stairs.start).div_ceil(stairs.step);
    for step in 0..=steps {
        let clients = stairs.start.saturating_add(step * stairs.step).min(most);
        let from = stairs.seconds * step as u64;
        let is_last = step == steps;
        let to = match is_last {
            true => end.max(from),
            false => from + stairs.seconds,
        };
        eprintln!(
            "  Step {step}: {from:3}s - {to:3}s : {clients:3} clients  {}{}",
            "\u{2588}".repeat((clients * BARS / most).max(1)),
            if is_last { "  (max)" } else { "" }
        );
    }
    let reached = stairs.seconds * steps as u64;
    let enough = if reached <= end { "OK" } else { "is too short" };
    eprintln!(
        "  Total max connections: {most} x {} = {}\n  Minimum time to reach max: {reached}s (test_time: {end}s {enough})\n",
        options.threads,
        most * options.threads
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memtier::options::Staircase;

    #[test]
    fn clients_grow_step_by_step() {
        let stairs = Staircase {
            start: 1,
            step: 2,
            seconds: 10,
        };
        for (seconds, clients) in [(0, 1), (9, 1), (10, 3), (29, 5), (30, 6), (1000, 6)] {
            let elapsed = Duration::from_secs(seconds);
            assert_eq!(clients_at(&stairs, 6, elapsed), clients, "{seconds} s");
        }
    }

    #[test]
    fn bytes_have_the_unit_that_fits() {
        assert_eq!(size(12.0), "12.00B");
        assert_eq!(size(4373.0), "4.27KB");
        assert_eq!(size(3.0 * 1024.0 * 1024.0), "3.00MB");
    }
}
