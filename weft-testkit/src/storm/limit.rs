//! `maxclients`: whoever is one too many is told so, exactly, and nobody else is disturbed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use weft_client::{Connection, Reply};

use super::state::{ask_text, expect, field};
use crate::error::KitError;
use crate::server::Server;

/// The limit.
const CLIENTS_MAX: usize = 10;
/// How often somebody comes who is one too many.
const REFUSALS: u64 = 500;
const REFUSAL: &[u8] = b"-ERR max number of clients reached\r\n";
/// How long a server may take to answer, and its counters to be right.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Fills a server up to its limit, knocks again and again, and lets one in when another leaves. Returns what was wrong.
///
/// # Errors
/// Those of a server that cannot be talked to.
pub fn run(program: &Path, arguments: &[String]) -> Result<Vec<String>, KitError> {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--maxclients", &CLIENTS_MAX.to_string()].map(str::to_owned));
    let server = Server::start(program, &arguments)?;
    let mut control = server.connect()?;
    // The connections that asked whether the server is ready may not be gone yet.
    wait_for(&mut control, "connected_clients", 1)?;
    let before = statistics(&mut control)?;
    let pong = Reply::Simple(b"PONG".to_vec());
    let mut inside = Vec::new();
    for _ in 1..CLIENTS_MAX {
        let mut connection = server.connect()?;
        expect(&mut connection, &["PING"], &pong)?;
        inside.push(connection);
    }
    let mut wrong = Vec::new();
    for turn in 0..REFUSALS {
        // Every second one talks before it listens, as clients with a handshake do.
        match knock(server.port(), turn % 2 == 1) {
            Ok(said) if said == REFUSAL => {}
            outcome => {
                wrong.push(format!("client 11 met {outcome:?}"));
                break;
            }
        }
    }
    for connection in &mut inside {
        expect(connection, &["PING"], &pong)?;
    }
    inside.pop();
    wait_for(&mut control, "connected_clients", CLIENTS_MAX as u64 - 1)?;
    let mut next = server.connect()?;
    expect(&mut next, &["PING"], &pong)?;
    // Refusals are added up by another thread than the one that refuses.
    if wrong.is_empty()
        && let Err(error) = wait_for(&mut control, "rejected_connections", before.1 + REFUSALS)
    {
        wrong.push(error.to_string());
    }
    let after = statistics(&mut control)?;
    if after.0 != before.0 + CLIENTS_MAX as u64 {
        wrong.push(format!(
            "total_connections_received is {}, was {} before {CLIENTS_MAX} came in",
            after.0, before.0
        ));
    }
    Ok(wrong)
}

/// All that the server says until it closes.
fn knock(port: u16, talks: bool) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    if talks {
        // It may be closed already.
        let _ = stream.write_all(b"PING\r\n");
    }
    let mut said = Vec::new();
    let mut buffer = [0; 128];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(said),
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            // Closing a socket with unread bytes resets it; what was sent before that has arrived.
            Err(error) if talks && error.kind() == std::io::ErrorKind::ConnectionReset => {
                return Ok(said);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Connections received, and rejected.
fn statistics(control: &mut Connection) -> Result<(u64, u64), KitError> {
    let text = ask_text(control, &["INFO", "stats"])?;
    Ok((
        field(&text, "total_connections_received")?,
        field(&text, "rejected_connections")?,
    ))
}

/// Waits until a field of INFO has a value: nothing announces it.
fn wait_for(control: &mut Connection, name: &str, value: u64) -> Result<(), KitError> {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    loop {
        let found = field(&ask_text(control, &["INFO"])?, name)?;
        if found == value {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(KitError::Unexpected(format!(
                "{name} stays at {found} instead of {value}"
            )));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
