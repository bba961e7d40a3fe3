//! Finding the server: which of a host's addresses answers, under which name it is spoken of.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use rustls::StreamOwned;
use weft_client::{Address, ClientError, Connection};

use crate::load::{Target, Tls, system_text};

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

/// Which addresses are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All.
    #[default]
    Any,
    /// Those of IPv4.
    V4,
    /// Those of IPv6.
    V6,
}

impl Family {
    fn has(self, address: &SocketAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }
}

/// How connections are made, where it is not the plain way.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// Which addresses are tried.
    pub family: Family,
    /// How connections are encrypted.
    pub tls: Option<Tls>,
    /// How long each address is waited for. `None`: as long as the system does.
    pub patience: Option<Duration>,
}

/// Finds an address at which something listens, and the connection that shows it. A socket goes before host and port.
pub fn reach(
    host: &str,
    port: u16,
    socket: Option<&Path>,
) -> Result<(Server, Connection), Unreachable> {
    reach_by(&Manner::default(), host, port, socket)
}

/// The same in a manner of one's own.
pub fn reach_by(
    manner: &Manner,
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
    for address in addresses.filter(|address| manner.family.has(address)) {
        let server = Server {
            name: name.clone(),
            target: Target::Tcp(address),
        };
        match connect_by(manner, &server) {
            Ok(connection) => return Ok((server, connection)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A connection to a server.
pub fn connect(server: &Server) -> Result<Connection, Unreachable> {
    connect_by(&Manner::default(), server)
}

/// The same in a manner of one's own.
pub fn connect_by(manner: &Manner, server: &Server) -> Result<Connection, Unreachable> {
    let connected = match (&server.target, server.target.address()) {
        (Target::Unix(path), _) => Connection::connect(&Address::Unix(path.clone())),
        (_, Some(address)) if manner.tls.is_some() || manner.patience.is_some() => {
            connect_tcp(manner, &address)
        }
        (_, Some(address)) => {
            Connection::connect(&Address::Tcp(address.ip().to_string(), address.port()))
        }
        (_, None) => Err(ClientError::Io(std::io::ErrorKind::NotFound.into())),
    };
    connected.map_err(|error| Unreachable {
        name: server.name.clone(),
        why: match &error {
            ClientError::Io(error) => system_text(error),
            other => other.to_string(),
        },
    })
}

fn connect_tcp(manner: &Manner, address: &SocketAddr) -> Result<Connection, ClientError> {
    let stream = match manner.patience {
        Some(patience) => TcpStream::connect_timeout(address, patience),
        None => TcpStream::connect(address),
    };
    let mut stream = stream.map_err(ClientError::Io)?;
    stream.set_nodelay(true).map_err(ClientError::Io)?;
    let Some(tls) = &manner.tls else {
        return Ok(Connection::over(stream));
    };
    let refused =
        |why: String| ClientError::Io(std::io::Error::other(format!("SSL_connect failed: {why}")));
    let mut client = tls.client().map_err(|error| refused(error.to_string()))?;
    while client.is_handshaking() {
        client
            .complete_io(&mut stream)
            .map_err(|error| refused(system_text(&error)))?;
    }
    Ok(Connection::over(StreamOwned::new(client, stream)))
}
