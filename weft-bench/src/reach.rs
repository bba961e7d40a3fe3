//! Finding the server: which of a host's addresses answers, under which name it is spoken of.

use std::net::ToSocketAddrs;
use std::path::Path;

use weft_client::{Address, ClientError, Connection};

use crate::load::{Target, system_text};

/// Where a server is, as the user says it and as the system does.
#[derive(Debug, Clone)]
pub struct Server {
    /// For messages: `host:port` or a path.
    pub name: String,
    /// For connections.
    pub target: Target,
}

/// A server cannot be reached.
#[derive(Debug)]
pub struct Unreachable {
    /// The server's name.
    pub name: String,
    /// What the system says.
    pub why: String,
}

/// Finds an address at which something listens, and the connection that shows it. A socket goes before host and port.
pub fn reach(
    host: &str,
    port: u16,
    socket: Option<&Path>,
) -> Result<(Server, Connection), Unreachable> {
    if let Some(path) = socket {
        let server = Server {
            name: path.display().to_string(),
            target: Target::Unix(path.to_owned()),
        };
        let connection = connect(&server)?;
        return Ok((server, connection));
    }
    let name = format!("{host}:{port}");
    let unreachable = |why: String| Unreachable {
        name: name.clone(),
        why,
    };
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|error| unreachable(system_text(&error)))?;
    let mut last = unreachable("no address".to_owned());
    for address in addresses {
        let server = Server {
            name: name.clone(),
            target: Target::Tcp(address),
        };
        match connect(&server) {
            Ok(connection) => return Ok((server, connection)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A connection to a server.
pub fn connect(server: &Server) -> Result<Connection, Unreachable> {
    let address = match &server.target {
        Target::Tcp(address) => Address::Tcp(address.ip().to_string(), address.port()),
        Target::Unix(path) => Address::Unix(path.clone()),
    };
    Connection::connect(&address).map_err(|error| Unreachable {
        name: server.name.clone(),
        why: match &error {
            ClientError::Io(error) => system_text(error),
            other => other.to_string(),
        },
    })
}
