//! Figures for a StatsD server while a run lasts, and notes of its beginning and its end for Graphite.
//!
//! Owns the names of the figures, which dashboards read. What cannot be sent is not sent: a run is measured whether or not
//! somebody looks on.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::json;

use super::options::StatsdOptions;

/// How long a note of an event may take.
const EVENT_PATIENCE: Duration = Duration::from_secs(1);

/// A second's figures.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    /// Requests answered in a second: lately, and on average since the start.
    pub ops: (f64, f64),
    /// Bytes in a second.
    pub bytes: (f64, f64),
    /// Milliseconds.
    pub latency: (f64, f64),
    pub connections: u64,
    /// Percent of the run.
    pub progress: f64,
    /// Latencies lately, in microseconds.
    pub latencies: Option<&'a Histogram<u64>>,
}

/// A way to the server.
#[derive(Debug)]
pub struct Statsd {
    socket: UdpSocket,
    options: StatsdOptions,
}

impl Statsd {
    /// Finds the server. The error is for the user.
    pub fn new(options: &StatsdOptions) -> Result<Statsd, String> {
        let place = (options.host.as_str(), options.port);
        let failed =
            |error: std::io::Error| format!("statsd at {}:{}: {error}", options.host, options.port);
        let address = place
            .to_socket_addrs()
            .map_err(failed)?
            .next()
            .ok_or_else(|| format!("statsd at {}: no address", options.host))?;
        let own = if address.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let socket = UdpSocket::bind(own).map_err(failed)?;
        socket.connect(address).map_err(failed)?;
        eprintln!(
            "statsd: initialized, sending metrics to {}:{} with prefix '{}' run_label '{}'",
            options.host, options.port, options.prefix, options.label
        );
        Ok(Statsd {
            socket,
            options: options.clone(),
        })
    }

    /// Sends what a second came to.
    pub fn tell(&self, figures: &Figures<'_>, percentiles: &[f64]) {
        for line in lines(figures, percentiles) {
            let (prefix, label) = (&self.options.prefix, &self.options.label);
            // A refusal concerns an earlier line; nobody listens.
            let _ = self
                .socket
                .send(format!("{prefix}.{label}.{line}").as_bytes());
        }
    }

    /// Notes that a run begins.
    pub fn begun(&self, threads: usize, connections: usize, run: u32) {
        let data = format!("threads={threads} connections={connections} run={run}");
        self.note("Benchmark Started", "start", &data);
    }

    /// Notes that a run is complete: the figures become 0.
    pub fn ended(&self, run: u32) {
        let nothing = Figures {
            ops: (0.0, 0.0),
            bytes: (0.0, 0.0),
            latency: (0.0, 0.0),
            connections: 0,
            progress: 0.0,
            latencies: None,
        };
        self.tell(&nothing, &[]);
        self.note("Benchmark Completed", "end", &format!("run={run}"));
    }

    fn note(&self, what: &str, tag: &str, data: &str) {
        let StatsdOptions {
            host,
            graphite_port,
            label,
            ..
        } = &self.options;
        let body =
            json!({ "what": what, "tags": format!("memtier,{tag},run:{label}"), "data": data })
                .to_string();
        let request = format!(
            "POST /events/ HTTP/1.1\r\nHost: {host}:{graphite_port}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        // Few have a Graphite.
        let _ = post(host, *graphite_port, &request);
    }
}

fn post(host: &str, port: u16, request: &str) -> std::io::Result<()> {
    let mut addresses = (host, port).to_socket_addrs()?;
    let address = addresses.next().ok_or(std::io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&address, EVENT_PATIENCE)?;
    stream.set_read_timeout(Some(EVENT_PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = [0; 512];
    stream.read(&mut answer).map(drop)
}

/// The figures as StatsD reads them: gauges, and one timer.
fn lines(figures: &Figures<'_>, percentiles: &[f64]) -> Vec<String> {
    let mut lines = vec![
        format!("ops_sec:{:.0}|g", figures.ops.0),
        format!("ops_sec_avg:{:.0}|g", figures.ops.1),
        format!("bytes_sec:{:.0}|g", figures.bytes.0),
        format!("bytes_sec_avg:{:.0}|g", figures.bytes.1),
        format!("latency_ms:{:.3}|ms", figures.latency.0),
        format!("latency_avg_ms:{:.3}|ms", figures.latency.1),
        format!("connections:{}|g", figures.connections),
        format!("progress_pct:{:.6}|g", figures.progress),
    ];
    if let Some(latencies) = figures.latencies {
        lines.extend(percentiles.iter().map(|&percentile| {
            let name = format!("{percentile}").replace('.', "_");
            let latency = latencies.value_at_percentile(percentile) as f64 / 1000.0;
            format!("latency_p{name}:{latency:.6}|g")
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_names_that_dashboards_read() {
        let mut latencies = Histogram::new_with_bounds(1, 1 << 32, 3).unwrap();
        latencies.record_n(183, 99).unwrap();
        latencies.record(2000).unwrap();
        let figures = Figures {
            ops: (99.4, 99.6),
            bytes: (4373.0, 4372.2),
            latency: (0.878, 0.526),
            connections: 2,
            progress: 33.366_233,
            latencies: Some(&latencies),
        };
        assert_eq!(
            lines(&figures, &[50.0, 99.9]),
            [
                "ops_sec:99|g",
                "ops_sec_avg:100|g",
                "bytes_sec:4373|g",
                "bytes_sec_avg:4372|g",
                "latency_ms:0.878|ms",
                "latency_avg_ms:0.526|ms",
                "connections:2|g",
                "progress_pct:33.366233|g",
                "latency_p50:0.183000|g",
                "latency_p99_9:2.000000|g",
            ]
        );
    }
}
