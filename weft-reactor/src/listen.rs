//! TCP listeners: what the `bind`, `port`, `tcp-backlog`, `tcp-keepalive`, `socket-mark-id` and `mptcp` parameters mean.
//!
//! Everything an accepted socket needs is set on the listening socket, from which the kernel hands it down: accepting
//! costs one system call. Knows no driver and no configuration.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, acceptfrom_with, bind, getsockname, ipproto, listen,
    socket_with, sockopt,
};
use socket2::SockRef;

use crate::driver::PeerAddress;
use crate::unix_socket::SocketFile;

/// A listening socket, non-blocking and close-on-exec. Dropping it closes it; that of a Unix socket also removes the
/// file, if it is still the one this process made.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    file: Option<SocketFile>,
}

/// How TCP connections are listened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpOptions {
    /// Connections waiting to be accepted; the kernel caps it at `net.core.somaxconn`.
    pub backlog: i32,
    /// Seconds of silence after which a peer is probed; it is given up after three probes a third of that apart.
    /// 0: never.
    pub keepalive_s: u32,
    /// SO_MARK of the packets of the listening socket and its connections, which takes privileges; 0: none.
    pub mark: u32,
    /// Multipath TCP, for clients that speak it; others are served as ever.
    pub multipath: bool,
}

/// What [`bind_tcp`] came to.
#[derive(Debug)]
pub struct TcpBinding {
    /// One per address, in their order.
    pub listeners: Vec<Listener>,
    /// Addresses passed over as their prefix or an unsupported protocol allows. Worth a warning each.
    pub skipped: Vec<BindError>,
}

/// An address that could not be listened on.
#[derive(Debug)]
pub struct BindError {
    /// As configured, without the `-`.
    pub address: String,
    /// The port.
    pub port: u16,
    /// What failed: "socket", "bind" ...
    pub step: &'static str,
    /// Why.
    pub cause: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BindError {
            address,
            port,
            step,
            cause,
        } = self;
        write!(
            formatter,
            "Could not create server TCP listening socket {address}:{port}: {step}: {cause}"
        )
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// What an absent `bind` stands for: every IPv4 address, and every IPv6 address where the machine has any.
pub const BIND_DEFAULT: [&str; 2] = ["*", "-::*"];

/// Listens on `port` of each address: a literal address, a name, `*` (every IPv4 address) or `::*` (every IPv6 address).
/// A leading `-` means that the address may be one this machine does not have; one that is in use is an error all the
/// same, and a protocol the machine does not know is passed over in any case. On an error nothing is listened on.
/// Port 0 lets the kernel choose, separately for each address.
pub fn bind_tcp<A: AsRef<str>>(
    addresses: &[A],
    port: u16,
    options: &TcpOptions,
) -> Result<TcpBinding, BindError> {
    let mut binding = TcpBinding {
        listeners: Vec::new(),
        skipped: Vec::new(),
    };
    for address in addresses {
        let address = address.as_ref();
        let (address, optional) = match address.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (address, false),
        };
        match bind_one(address, port, options) {
            Ok(listener) => binding.listeners.push(listener),
            Err((step, cause)) => {
                let passable = match Errno::from_io_error(&cause) {
                    Some(Errno::ADDRNOTAVAIL) => optional,
                    Some(
                        Errno::NOPROTOOPT
                        | Errno::PROTONOSUPPORT
                        | Errno::SOCKTNOSUPPORT
                        | Errno::PFNOSUPPORT
                        | Errno::AFNOSUPPORT,
                    ) => true,
                    _ => false,
                };
                let error = BindError {
                    address: address.to_owned(),
                    port,
                    step,
                    cause,
                };
                if !passable {
                    return Err(error);
                }
                binding.skipped.push(error);
            }
        }
    }
    Ok(binding)
}

type Failure = (&'static str, io::Error);

fn bind_one(address: &str, port: u16, options: &TcpOptions) -> Result<Listener, Failure> {
    let address = resolve(address, port).map_err(|cause| ("resolve", cause))?;
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let protocol = options.multipath.then_some(ipproto::MPTCP);
    let socket = step(
        "socket",
        socket_with(family, SocketType::STREAM, flags, protocol),
    )?;
    if options.mark != 0 {
        SockRef::from(&socket)
            .set_mark(options.mark)
            .map_err(|cause| ("setsockopt SO_MARK", cause))?;
    }
    if address.is_ipv6() {
        // Else `::*` would take the IPv4 addresses too, and `*` beside it would fail.
        step(
            "setsockopt IPV6_V6ONLY",
            sockopt::set_ipv6_v6only(&socket, true),
        )?;
    }
    step(
        "setsockopt SO_REUSEADDR",
        sockopt::set_socket_reuseaddr(&socket, true),
    )?;
    step(
        "setsockopt TCP_NODELAY",
        sockopt::set_tcp_nodelay(&socket, true),
    )?;
    step(
        "setsockopt SO_KEEPALIVE",
        keep_alive(socket.as_fd(), options.keepalive_s),
    )?;
    step("bind", bind(&socket, &address))?;
    step("listen", listen(&socket, options.backlog))?;
    Ok(Listener { socket, file: None })
}

fn step<T>(name: &'static str, result: Result<T, Errno>) -> Result<T, Failure> {
    result.map_err(|error| (name, error.into()))
}

fn resolve(address: &str, port: u16) -> io::Result<SocketAddr> {
    let ip = match address {
        "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "::*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => match address.parse() {
            Ok(ip) => ip,
            Err(_) => {
                // A name stands for its IPv4 address. What holds a colon is an IPv6 address with a zone.
                let wants_ipv6 = address.contains(':');
                return (address, port)
                    .to_socket_addrs()?
                    .find(|found| found.is_ipv6() == wants_ipv6)
                    .ok_or_else(|| Errno::ADDRNOTAVAIL.into());
            }
        },
    };
    Ok(SocketAddr::new(ip, port))
}

/// The kernel's limit of TCP_KEEPIDLE, in seconds.
const KEEPALIVE_S_MAX: u32 = 32_767;

fn keep_alive(socket: BorrowedFd<'_>, seconds: u32) -> Result<(), Errno> {
    sockopt::set_socket_keepalive(socket, seconds > 0)?;
    if seconds > 0 {
        let idle = seconds.min(KEEPALIVE_S_MAX);
        sockopt::set_tcp_keepidle(socket, Duration::from_secs(idle.into()))?;
        sockopt::set_tcp_keepintvl(socket, Duration::from_secs((idle / 3).max(1).into()))?;
        sockopt::set_tcp_keepcnt(socket, 3)?;
    }
    Ok(())
}

/// What a look at a listener came to.
pub(crate) enum Accepted {
    /// A connection, non-blocking.
    Connection(OwnedFd, PeerAddress),
    /// One was there and is gone; others may wait.
    Lost,
    Nobody,
}

impl Listener {
    pub(crate) fn unix(socket: OwnedFd, file: SocketFile) -> Listener {
        Listener {
            socket,
            file: Some(file),
        }
    }

    /// The address listened on, with the port the kernel chose if it was to; None for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        getsockname(&self.socket).ok()?.try_into().ok()
    }

    /// Takes the next connection, if one is there. Errors mean that descriptors or memory are short, or that the listener
    /// itself is broken: asking again at once would spin.
    pub(crate) fn accept(&self) -> io::Result<Accepted> {
        match acceptfrom_with(self, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok((socket, address)) => {
                let peer = match address.map(SocketAddr::try_from) {
                    Some(Ok(address)) => PeerAddress::Internet(address),
                    _ => PeerAddress::Unix,
                };
                Ok(Accepted::Connection(socket, peer))
            }
            Err(Errno::AGAIN) => Ok(Accepted::Nobody),
            // About the one connection that was not accepted: its network failed, or its peer gave up before it was
            // taken (the list of accept(2)).
            Err(
                Errno::CONNABORTED
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::INTR
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::NONET
                | Errno::NOPROTOOPT
                | Errno::OPNOTSUPP
                | Errno::PERM
                | Errno::PROTO,
            ) => Ok(Accepted::Lost),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether this is a Unix socket.
    pub fn is_unix(&self) -> bool {
        self.file.is_some()
    }

    /// Changes [`TcpOptions::keepalive_s`] for connections that arrive from now on. Does nothing on a Unix socket.
    pub fn set_keepalive(&self, seconds: u32) -> io::Result<()> {
        if !self.is_unix() {
            keep_alive(self.as_fd(), seconds)?;
        }
        Ok(())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
