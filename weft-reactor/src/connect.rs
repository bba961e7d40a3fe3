//! Outgoing connections: started here, finished by the driver that adopts them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with, sockopt,
};

/// Starts a TCP connection to `peer`, from `source` if given, and returns its socket without waiting. Adopt it: what is
/// sent goes out when the connection stands, and a refusal shows as [`Handler::closed`](crate::Handler::closed).
pub fn start_connect(peer: SocketAddr, source: Option<SocketAddr>) -> io::Result<OwnedFd> {
    let family = if peer.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket_with(
        family,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    if let Some(source) = source {
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &source)?;
    }
    match connect(&socket, &peer) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Connects to the Unix socket at `path`. Errors come at once: these connections stand or fail immediately.
pub fn start_connect_unix(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}
