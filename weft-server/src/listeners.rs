//! The listening sockets: opened at the start, moved at run time.
//!
//! Owns the order of steps that keeps the server reachable: new sockets are opened before the old ones are closed
//! wherever both fit, and when the new ones cannot be had the old ones stay. Knows no threads.

use std::fmt;
use std::path::Path;

use weft_engine::config::{ParameterId, Settings};
use weft_reactor::{
    BindError, Driver, Listener, ListenerId, TcpOptions, UnixListenError, bind_tcp, bind_unix,
};

use crate::log::{Log, system_text};

/// Where to listen over TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpPlan {
    /// As the `bind` parameter has them. Empty: nowhere.
    pub addresses: Vec<String>,
    /// 0: nowhere.
    pub port: u16,
    /// The `tcp-backlog`, `tcp-keepalive`, `socket-mark-id` and `mptcp` parameters.
    pub options: TcpOptions,
}

/// The addresses of the plan could not be listened on; the log says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebindError;

impl TcpPlan {
    /// What the settings say.
    pub fn of(settings: &Settings) -> Self {
        let addresses = settings
            .bind()
            .iter()
            .map(|address| String::from_utf8_lossy(address).into_owned());
        let options = TcpOptions {
            backlog: i32::try_from(settings.tcp_backlog()).unwrap_or(i32::MAX),
            keepalive_s: settings.tcp_keepalive_seconds(),
            mark: settings.socket_mark_id(),
            multipath: settings.flag(ParameterId::Mptcp),
        };
        Self {
            addresses: addresses.collect(),
            port: settings.port(),
            options,
        }
    }

    /// Whether it says to listen nowhere.
    pub fn is_nowhere(&self) -> bool {
        self.port == 0 || self.addresses.is_empty()
    }

    /// Listens. Addresses that were passed over are logged.
    ///
    /// # Errors
    /// The address that could not be had; then nothing is listened on.
    pub fn open(&self, log: &Log) -> Result<Vec<Listener>, BindError> {
        if self.is_nowhere() {
            return Ok(Vec::new());
        }
        let binding = bind_tcp(&self.addresses, self.port, &self.options)?;
        for skipped in &binding.skipped {
            log.warning(Failure(skipped));
        }
        Ok(binding.listeners)
    }
}

/// Listens on the Unix socket, as the parameters `unixsocket`, `unixsocketperm` and `unixsocketgroup` say.
///
/// # Errors
/// The reason, as the log should have it.
pub fn open_unix(
    path: &Path,
    permissions: Option<u32>,
    group: Option<&[u8]>,
    backlog: i32,
) -> Result<Listener, String> {
    let failed = |reason: &dyn fmt::Display| format!("Failed opening Unix socket: {reason}");
    let group = match group.map(String::from_utf8_lossy) {
        None => None,
        Some(name) => match weft_os::process::group_id(&name) {
            None => return Err(failed(&format_args!("there is no group {name}"))),
            found => found,
        },
    };
    let listener = bind_unix(path, permissions, backlog).map_err(|error| match error {
        UnixListenError::System { step, cause, .. } => {
            failed(&format_args!("{step}: {}", system_text(&cause)))
        }
        other => failed(&other),
    })?;
    if let Some(group) = group {
        std::os::unix::fs::chown(path, None, Some(group))
            .map_err(|error| failed(&format_args!("chown: {}", system_text(&error))))?;
    }
    Ok(listener)
}

/// The TCP sockets a driver listens on.
pub struct TcpListeners {
    plan: TcpPlan,
    open: Vec<ListenerId>,
}

impl TcpListeners {
    /// Hands sockets that were opened by this plan to the driver.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn adopt<D: Driver>(
        plan: TcpPlan,
        sockets: Vec<Listener>,
        io: &mut D,
    ) -> std::io::Result<Self> {
        let open = sockets
            .into_iter()
            .map(|socket| io.add_listener(socket))
            .collect::<Result<_, _>>()?;
        Ok(Self { plan, open })
    }

    /// Listens by another plan. On an error everything is as it was.
    ///
    /// # Errors
    /// See [`RebindError`].
    pub fn rebind<D: Driver>(
        &mut self,
        plan: TcpPlan,
        io: &mut D,
        log: &Log,
    ) -> Result<(), RebindError> {
        // Sockets for the same address and port cannot exist twice: only where that happens the old ones go first, and
        // for that moment nobody can connect.
        let sockets = match bind_tcp(&plan.addresses, plan.port, &plan.options) {
            _ if plan.is_nowhere() => Vec::new(),
            Ok(binding) => {
                binding
                    .skipped
                    .iter()
                    .for_each(|skipped| log.warning(Failure(skipped)));
                binding.listeners
            }
            Err(_) => {
                self.close(io);
                match plan.open(log) {
                    Ok(sockets) => sockets,
                    Err(error) => {
                        log.warning(Failure(&error));
                        self.reopen(io, log);
                        return Err(RebindError);
                    }
                }
            }
        };
        self.close(io);
        match Self::adopt(plan, sockets, io) {
            Ok(listeners) => {
                *self = listeners;
                Ok(())
            }
            Err(error) => {
                log.warning(format_args!(
                    "Listening sockets cannot be watched: {}",
                    system_text(&error)
                ));
                self.reopen(io, log);
                Err(RebindError)
            }
        }
    }

    fn reopen<D: Driver>(&mut self, io: &mut D, log: &Log) {
        let plan = self.plan.clone();
        match plan.open(log) {
            Ok(sockets) => match Self::adopt(plan, sockets, io) {
                Ok(listeners) => *self = listeners,
                Err(error) => log.warning(format_args!(
                    "Listening sockets cannot be watched: {}",
                    system_text(&error)
                )),
            },
            Err(error) => log.warning(Failure(&error)),
        }
    }

    /// Changes `tcp-keepalive` for connections that arrive from now on.
    pub fn set_keepalive<D: Driver>(&mut self, seconds: u32, io: &D, log: &Log) {
        self.plan.options.keepalive_s = seconds;
        for listener in self.open.iter().filter_map(|&id| io.listener(id)) {
            if let Err(error) = listener.set_keepalive(seconds) {
                log.warning(format_args!(
                    "tcp-keepalive cannot be set: {}",
                    system_text(&error)
                ));
            }
        }
    }

    /// Stops listening.
    pub fn close<D: Driver>(&mut self, io: &mut D) {
        for id in self.open.drain(..) {
            drop(io.remove_listener(id));
        }
    }
}

/// How the log names an address that could not be listened on.
pub struct Failure<'a>(pub &'a BindError);

impl fmt::Display for Failure<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BindError {
            address,
            port,
            step,
            cause,
        } = self.0;
        write!(
            formatter,
            "Warning: Could not create server TCP listening socket {address}:{port}: "
        )?;
        // The resolver's own words name it well enough.
        if *step != "resolve" {
            write!(formatter, "{step}: ")?;
        }
        formatter.write_str(&system_text(cause))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicU16, Ordering};

    use weft_reactor::{DriverOptions, EpollDriver};

    use super::*;

    fn plan(addresses: &[&str], port: u16) -> TcpPlan {
        let options = TcpOptions {
            backlog: 16,
            keepalive_s: 300,
            mark: 0,
            multipath: false,
        };
        TcpPlan {
            addresses: addresses.iter().map(ToString::to_string).collect(),
            port,
            options,
        }
    }

    /// Below the range from which the system takes ports for connections, so that none of those is in the way.
    fn free_port() -> u16 {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        const FIRST: u16 = 10_000;
        let start = (std::process::id() % 2000) as u16;
        loop {
            let port = FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 2000;
            if TcpListener::bind(("0.0.0.0", port)).is_ok() {
                return port;
            }
        }
    }

    fn reachable(port: u16) -> bool {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    }

    #[test]
    fn listeners_move_to_another_port_and_back() {
        let log = Log::to_standard_output();
        let mut io = EpollDriver::new(DriverOptions::default()).unwrap();
        let (first, second) = (
            plan(&["127.0.0.1"], free_port()),
            plan(&["127.0.0.1"], free_port()),
        );
        let mut listeners =
            TcpListeners::adopt(first.clone(), first.open(&log).unwrap(), &mut io).unwrap();
        assert!(reachable(first.port) && !reachable(second.port));
        listeners.rebind(second.clone(), &mut io, &log).unwrap();
        assert!(!reachable(first.port) && reachable(second.port));
        listeners
            .rebind(plan(&["*", "-::*"], second.port), &mut io, &log)
            .unwrap();
        assert!(reachable(second.port));
        listeners
            .rebind(plan(&["127.0.0.1"], 0), &mut io, &log)
            .unwrap();
        assert!(!reachable(second.port));
    }

    #[test]
    fn a_plan_that_fails_leaves_everything_as_it_was() {
        let log = Log::to_standard_output();
        let mut io = EpollDriver::new(DriverOptions::default()).unwrap();
        let first = plan(&["127.0.0.1"], free_port());
        let mut listeners =
            TcpListeners::adopt(first.clone(), first.open(&log).unwrap(), &mut io).unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let busy = plan(&["127.0.0.1"], taken.local_addr().unwrap().port());
        assert_eq!(listeners.rebind(busy, &mut io, &log), Err(RebindError));
        assert!(reachable(first.port));
        let foreign = plan(&["127.0.0.1", "192.0.2.200"], first.port);
        assert_eq!(listeners.rebind(foreign, &mut io, &log), Err(RebindError));
        assert!(reachable(first.port));
        assert_eq!(listeners.plan, first);
    }

    #[test]
    fn failures_read_as_operators_know_them() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = plan(&["127.0.0.1"], port)
            .open(&Log::to_standard_output())
            .unwrap_err();
        assert_eq!(
            Failure(&error).to_string(),
            format!(
                "Warning: Could not create server TCP listening socket 127.0.0.1:{port}: bind: Address already in use"
            )
        );
    }

    #[test]
    fn a_unix_socket_that_is_in_use_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let first = open_unix(&path, Some(0o700), None, 16).unwrap();
        let text = open_unix(&path, None, None, 16).unwrap_err();
        assert!(
            text.starts_with("Failed opening Unix socket: ") && text.contains("listening"),
            "{text}"
        );
        drop(first);
        assert!(!path.exists());
        let text = open_unix(&path, None, Some(b"no such group"), 16).unwrap_err();
        assert_eq!(
            text,
            "Failed opening Unix socket: there is no group no such group"
        );
        assert!(!path.exists());
        let text = open_unix(Path::new("/nonexistent/socket"), None, None, 16).unwrap_err();
        assert_eq!(
            text,
            "Failed opening Unix socket: bind: No such file or directory"
        );
    }
}
