//! What a server says, and the system says of it, before and after a storm.

use std::fs;
use std::time::{Duration, Instant};

use weft_client::{Connection, Reply};

use crate::error::KitError;
use crate::server::Server;
use crate::throughput::{cpu_us, resident_bytes};

/// How long counters may take until they are back where they were.
const SETTLING_MAX: Duration = Duration::from_secs(10);
/// Between two looks at them: nothing announces that a server has noticed the last close.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Counters and sizes at one moment.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// `connected_clients`.
    pub(super) clients: u64,
    /// The clients of each worker; one number where the server does not tell.
    pub(super) worker_clients: Vec<u64>,
    /// `total_connections_received`.
    pub(super) received: u64,
    /// `rejected_connections`.
    pub(super) rejected: u64,
    /// `used_memory`, in bytes.
    pub(super) used: u64,
    /// Resident memory, in bytes.
    pub(super) resident: u64,
    /// Open file descriptors.
    pub(super) descriptors: usize,
    /// Processor time so far, in microseconds.
    pub(super) cpu_us: u64,
}

impl State {
    /// As it is now.
    pub(super) fn of(server: &Server, control: &mut Connection) -> Result<Self, KitError> {
        let text = ask_text(control, &["INFO", "everything"])?;
        let process = server.process();
        Ok(State {
            clients: field(&text, "connected_clients")?,
            worker_clients: worker_clients(&text),
            received: field(&text, "total_connections_received")?,
            rejected: field(&text, "rejected_connections")?,
            used: field(&text, "used_memory")?,
            resident: resident_bytes(process)?,
            descriptors: descriptors(process)?,
            cpu_us: cpu_us(process)?,
        })
    }

    /// As it is when it has come to `rest`, or when waiting for that has been given up. Memory that is free has been given
    /// back.
    pub(super) fn settled(
        server: &Server,
        control: &mut Connection,
        rest: Rest,
    ) -> Result<Self, KitError> {
        let deadline = Instant::now() + SETTLING_MAX;
        loop {
            let state = Self::of(server, control)?;
            let is_settled = state.clients == rest.clients
                && state.received >= rest.received
                && state.descriptors <= rest.descriptors;
            if is_settled || Instant::now() > deadline {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        expect(
            control,
            &["MEMORY", "PURGE"],
            &Reply::Simple(b"OK".to_vec()),
        )?;
        Self::of(server, control)
    }
}

/// When nothing is under way any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// So many clients are connected.
    pub(super) clients: u64,
    /// So many connections, or more, have been received: none is waiting to be accepted.
    pub(super) received: u64,
    /// No more descriptors are open.
    pub(super) descriptors: usize,
}

/// The number of a field of INFO.
pub(super) fn field(text: &str, name: &str) -> Result<u64, KitError> {
    let values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let mut numbers = values.map(|value| value.trim().parse());
    match numbers.next() {
        Some(Ok(number)) => Ok(number),
        _ => Err(KitError::Unexpected(format!("INFO tells no {name}"))),
    }
}

/// "io_thread_0:clients=3,reads=5,writes=4", a line for each worker.
fn worker_clients(text: &str) -> Vec<u64> {
    let of_line = |line: &str| {
        let (_, values) = line.strip_prefix("io_thread_")?.split_once(":clients=")?;
        values.split(',').next()?.parse().ok()
    };
    text.lines().filter_map(of_line).collect()
}

/// Sends a command whose reply is text.
pub(super) fn ask_text(control: &mut Connection, words: &[&str]) -> Result<String, KitError> {
    match control.command(words)? {
        Reply::Bulk(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        other => Err(unexpected(words, &other)),
    }
}

/// Sends a command whose reply is known.
pub(super) fn expect(
    control: &mut Connection,
    words: &[&str],
    expected: &Reply,
) -> Result<(), KitError> {
    let reply = control.command(words)?;
    if reply == *expected {
        Ok(())
    } else {
        Err(unexpected(words, &reply))
    }
}

fn unexpected(words: &[&str], reply: &Reply) -> KitError {
    KitError::Unexpected(format!("{} was answered {reply:?}", words.join(" ")))
}

fn descriptors(process: u32) -> Result<usize, KitError> {
    let path = format!("/proc/{process}/fd");
    let entries = fs::read_dir(&path).map_err(KitError::io(format!("list {path}")))?;
    Ok(entries.count())
}

/// Connections that the kernel, for all listeners of the machine, could not queue for accepting.
pub(super) fn listen_overflows() -> u64 {
    fs::read_to_string("/proc/net/netstat")
        .ok()
        .and_then(|text| kernel_counter(&text, "ListenOverflows"))
        .unwrap_or(0)
}

/// A line of names is followed by a line of their numbers; both begin with the protocol.
fn kernel_counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        if let Some(place) = names.split_ascii_whitespace().position(|word| word == name) {
            return numbers.split_ascii_whitespace().nth(place)?.parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "# Clients\r\nconnected_clients:12\r\nused_memory_rss:7\r\nused_memory:5\r\n";
        assert_eq!(field(text, "connected_clients").expect("it is there"), 12);
        assert_eq!(field(text, "used_memory").expect("it is there"), 5);
        assert!(field(text, "clients").is_err());
    }

    #[test]
    fn workers_tell_their_clients() {
        let text = "io_threads_active:1\r\nio_thread_0:clients=3,reads=5,writes=4\r\nio_thread_1:clients=0,reads=0,writes=0\r\n";
        assert_eq!(worker_clients(text), [3, 0]);
    }

    #[test]
    fn kernel_counters_stand_under_their_names() {
        let text = "TcpExt: A ListenOverflows B\nTcpExt: 1 22 3\nIpExt: C\nIpExt: 4\n";
        assert_eq!(kernel_counter(text, "ListenOverflows"), Some(22));
        assert_eq!(kernel_counter(text, "C"), Some(4));
        assert_eq!(kernel_counter(text, "D"), None);
    }
}
