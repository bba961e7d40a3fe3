//! Debian's prometheus-redis-exporter against a running server: it scrapes without an error, and what it exports is right.
//!
//! The program is taken from the system, or from its package, unpacked under the target folder. What it must export stands
//! below as values that follow from the requests sent before.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::KitError;
use crate::folder::target;
use crate::oracle::{find_file, on_path, unpack_debian};
use crate::server::Server;

const PROGRAM: &str = "prometheus-redis-exporter";

/// How long it may take until it listens, and to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is sent to an empty server whose statistics have just been reset.
const REQUESTS: &[&str] = &[
    "SET a 1",
    "SET b 12345 EX 1000",
    "SET c 1",
    "GET a",
    "GET a",
    "GET nothing",
    "INCR a",
    "INCR a x",
    "SET a 1 BAD",
    "NOSUCH",
    "CONFIG SET slowlog-log-slower-than 0",
    "PING",
    "CONFIG SET slowlog-log-slower-than 10000",
    "SELECT 3",
    "SET d 1",
];

/// Samples with their labels, and the values they must have.
const EXPECTED: &[(&str, f64)] = &[
    ("redis_up", 1.0),
    ("redis_exporter_last_scrape_error{err=\"\"}", 0.0),
    ("redis_db_keys{db=\"db0\"}", 3.0),
    ("redis_db_keys{db=\"db3\"}", 1.0),
    ("redis_db_keys{db=\"db1\"}", 0.0),
    ("redis_db_keys_expiring{db=\"db0\"}", 1.0),
    ("redis_commands_total{cmd=\"set\"}", 5.0),
    ("redis_commands_total{cmd=\"get\"}", 3.0),
    ("redis_keyspace_hits_total", 2.0),
    ("redis_keyspace_misses_total", 1.0),
    ("redis_rejected_connections_total", 0.0),
    ("redis_memory_max_bytes", 0.0),
    ("redis_connected_slaves", 0.0),
    ("redis_loading_dump_file", 0.0),
    ("redis_config_maxclients", 10000.0),
    ("redis_blocked_clients", 0.0),
    // The two CONFIG SETs between which it was on: the first ends when it is already in force.
    ("redis_slowlog_length", 2.0),
];

/// Samples of which only a least value is known.
const AT_LEAST: &[(&str, f64)] = &[
    ("redis_connected_clients", 2.0),
    ("redis_commands_processed_total", 14.0),
    ("redis_memory_used_bytes", 1000.0),
    ("redis_memory_used_rss_bytes", 1000.0),
    ("redis_uptime_in_seconds", 0.0),
    ("redis_net_input_bytes_total", 200.0),
    ("redis_cpu_user_seconds_total", 0.0),
];

/// Runs it and returns how many values were right.
///
/// # Errors
/// [`KitError::Missing`] if the program is not to be had, others with what is wrong.
pub fn run(server: &Server) -> Result<usize, KitError> {
    let mut connection = server.connect()?;
    for request in ["FLUSHALL", "CONFIG RESETSTAT", "SLOWLOG RESET"]
        .iter()
        .chain(REQUESTS)
    {
        let words: Vec<&str> = request.split(' ').collect();
        connection.command(&words)?;
    }
    let exporter = Exporter::start(server.port())?;
    let text = exporter.scrape()?;
    let samples = samples_of(&text);
    let value = |name: &str| {
        samples.get(name).copied().ok_or_else(|| {
            let kin = name.split('{').next().unwrap_or(name);
            let found: Vec<&str> = text.lines().filter(|line| line.contains(kin)).collect();
            KitError::Unexpected(format!("no sample {name}; there is {found:#?}"))
        })
    };
    for (name, expected) in EXPECTED {
        let found = value(name)?;
        if found != *expected {
            return Err(KitError::Unexpected(format!(
                "{name} is {found} instead of {expected}"
            )));
        }
    }
    for (name, least) in AT_LEAST {
        let found = value(name)?;
        if found < *least {
            return Err(KitError::Unexpected(format!(
                "{name} is {found}, less than {least}"
            )));
        }
    }
    Ok(EXPECTED.len() + AT_LEAST.len())
}

/// The running program.
struct Exporter {
    child: Child,
    port: u16,
}

impl Exporter {
    fn start(redis_port: u16) -> Result<Self, KitError> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| Ok(listener.local_addr()?.port()))
            .map_err(KitError::io("find a free port"))?;
        let child = Command::new(program()?)
            .arg(format!("-redis.addr=redis://127.0.0.1:{redis_port}"))
            .arg(format!("-web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| KitError::Missing(format!("{PROGRAM} cannot be run: {error}")))?;
        Ok(Self { child, port })
    }

    /// All samples, in Prometheus's text form.
    fn scrape(&self) -> Result<String, KitError> {
        let deadline = Instant::now() + PATIENCE;
        let mut stream = loop {
            match TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => {
                    return Err(KitError::Io(format!("reach {PROGRAM}"), error));
                }
                // Nothing announces the listener, so it is asked for every few milliseconds.
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut answer = String::new();
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n"))
            .and_then(|()| stream.read_to_string(&mut answer))
            .map_err(KitError::io(format!("scrape {PROGRAM}")))?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.0 200") => Ok(body.to_owned()),
            _ => Err(KitError::Unexpected(format!(
                "{PROGRAM} answered {:?}",
                answer.lines().next()
            ))),
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of the form `name{labels} value`, without comments.
fn samples_of(text: &str) -> BTreeMap<&str, f64> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name, value.parse().ok()?))
        })
        .collect()
}

fn program() -> Result<PathBuf, KitError> {
    if let Some(installed) = on_path(PROGRAM) {
        return Ok(installed);
    }
    let cache = target().join("oracles");
    let program = cache.join(PROGRAM);
    if !program.exists() {
        let unpacked = unpack_debian(&cache, PROGRAM)?;
        let found = find_file(unpacked.path(), PROGRAM)?;
        std::fs::copy(&found, &program)
            .map_err(KitError::io(format!("copy {}", found.display())))?;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_names_with_labels() {
        let text = "# HELP a b c\n# TYPE a gauge\na 1\na{b=\"c d\"} 2.5e+06\nbad\n";
        let samples = samples_of(text);
        assert_eq!(samples.len(), 2);
        assert_eq!(samples["a{b=\"c d\"}"], 2.5e6);
    }
}
