//! What can be listened on, and with which rules.

mod rig;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use rig::{Happened, NewDriver, Reason, Rig, on_every_driver};
use rustix::net::sockopt;
use weft_reactor::{BIND_DEFAULT, PeerAddress, TcpOptions, UnixListenError, bind_tcp, bind_unix};

on_every_driver! {
    accepted_sockets_have_the_listener_s_options
    keepalive_changes_at_run_time
    serves_a_unix_socket
    a_unix_peer_that_leaves_is_closed
    a_dropped_driver_closes_its_listeners
}

const OPTIONS: TcpOptions = TcpOptions {
    backlog: 16,
    keepalive_s: 300,
    mark: 0,
    multipath: false,
};

/// From TEST-NET-1, which no machine has.
const FOREIGN: &str = "192.0.2.1";

#[test]
fn an_address_in_use_is_an_error_even_when_optional() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for address in ["127.0.0.1", "-127.0.0.1"] {
        let error = bind_tcp(&[address], port, &OPTIONS).unwrap_err();
        assert_eq!(error.cause.kind(), ErrorKind::AddrInUse);
        assert_eq!(
            error.to_string(),
            format!(
                "Could not create server TCP listening socket 127.0.0.1:{port}: bind: Address already in use (os error 98)"
            )
        );
    }
}

#[test]
fn an_address_the_machine_does_not_have_is_an_error_unless_optional() {
    let error = bind_tcp(&[FOREIGN], 0, &OPTIONS).unwrap_err();
    assert_eq!((error.address.as_str(), error.step), (FOREIGN, "bind"));
    assert_eq!(error.cause.kind(), ErrorKind::AddrNotAvailable);
    let binding = bind_tcp(&["-192.0.2.1", "127.0.0.1"], 0, &OPTIONS).unwrap();
    assert_eq!(binding.listeners.len(), 1);
    assert_eq!(
        binding.listeners[0].address().unwrap().ip(),
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    );
    assert_eq!(binding.skipped.len(), 1);
    assert_eq!(binding.skipped[0].address, FOREIGN);
}

#[test]
fn a_name_nobody_knows_is_an_error() {
    let error = bind_tcp(&["no-such-host.invalid"], 0, &OPTIONS).unwrap_err();
    assert_eq!(error.step, "resolve");
    let error = bind_tcp(&["-"], 0, &OPTIONS).unwrap_err();
    assert_eq!(error.address, "");
}

#[test]
fn after_an_error_nothing_is_listened_on() {
    let port = rig::loopback().address().unwrap().port();
    bind_tcp(&["127.0.0.1", FOREIGN], port, &OPTIONS).unwrap_err();
    assert_eq!(
        TcpStream::connect(("127.0.0.1", port)).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    bind_tcp(&["127.0.0.1"], port, &OPTIONS).unwrap();
}

#[test]
fn by_default_every_address_of_both_kinds_is_listened_on() {
    let port = rig::loopback().address().unwrap().port();
    let binding = bind_tcp(&BIND_DEFAULT, port, &OPTIONS).unwrap();
    let addresses: Vec<IpAddr> = binding
        .listeners
        .iter()
        .map(|listener| listener.address().unwrap().ip())
        .collect();
    assert_eq!(
        addresses,
        [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        ]
    );
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    TcpStream::connect(("::1", port)).unwrap();
    assert!(!sockopt::socket_reuseport(&binding.listeners[0]).unwrap());
    assert!(sockopt::socket_reuseaddr(&binding.listeners[0]).unwrap());
    assert!(sockopt::ipv6_v6only(&binding.listeners[1]).unwrap());
}

#[test]
fn a_port_is_free_again_at_once() {
    let listener = rig::loopback();
    let address = listener.address().unwrap();
    // A connection closed by this side stays in TIME_WAIT.
    let mut client = TcpStream::connect(address).unwrap();
    let (accepted, _) = rustix::net::acceptfrom(&listener).unwrap();
    drop(accepted);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    drop(client);
    drop(listener);
    bind_tcp(&["127.0.0.1"], address.port(), &OPTIONS).unwrap();
}

#[test]
fn multipath_listeners_serve_everybody() {
    let options = TcpOptions {
        multipath: true,
        ..OPTIONS
    };
    for (address, local) in [("127.0.0.1", "127.0.0.1"), ("::*", "::1")] {
        let binding = bind_tcp(&[address], 0, &options).unwrap();
        // A kernel without it passes the address over, and says so.
        let Some(listener) = binding.listeners.first() else {
            assert_eq!(binding.skipped[0].step, "socket");
            continue;
        };
        let protocol = sockopt::socket_protocol(listener).unwrap();
        assert_eq!(protocol, Some(rustix::net::ipproto::MPTCP));
        TcpStream::connect((local, listener.address().unwrap().port())).unwrap();
    }
}

#[test]
fn packets_are_marked_where_that_is_allowed() {
    let options = TcpOptions {
        mark: 77,
        ..OPTIONS
    };
    match bind_tcp(&["127.0.0.1"], 0, &options) {
        Ok(binding) => {
            let socket = socket2::SockRef::from(&binding.listeners[0]);
            assert_eq!(socket.mark().unwrap(), 77);
        }
        Err(error) => {
            assert_eq!(error.step, "setsockopt SO_MARK");
            assert_eq!(error.cause.kind(), ErrorKind::PermissionDenied);
        }
    }
}

fn accepted_sockets_have_the_listener_s_options<D: NewDriver>() {
    for (keepalive_s, expected) in [
        (300, Some((300, 100))),
        (2, Some((2, 1))),
        (100_000, Some((32_767, 10_922))),
        (0, None),
    ] {
        let mut io = D::start(Default::default());
        let options = TcpOptions {
            keepalive_s,
            ..OPTIONS
        };
        let listener = bind_tcp(&["127.0.0.1"], 0, &options)
            .unwrap()
            .listeners
            .remove(0);
        let address = listener.address().unwrap();
        io.add_listener(listener).unwrap();
        let mut seen = rig::Recorder::new();
        seen.accepted_sockets = Some(Vec::new());
        let client = rig::connect(address);
        io.turn(&mut seen, Some(rig::PATIENCE)).unwrap();
        let socket = &seen.accepted_sockets.as_ref().unwrap()[0];
        assert_eq!(
            seen.peers,
            [PeerAddress::Internet(client.local_addr().unwrap())]
        );
        assert!(sockopt::tcp_nodelay(socket).unwrap());
        assert_eq!(
            sockopt::socket_keepalive(socket).unwrap(),
            expected.is_some()
        );
        if let Some((idle, interval)) = expected {
            assert_eq!(
                sockopt::tcp_keepidle(socket).unwrap(),
                Duration::from_secs(idle)
            );
            assert_eq!(
                sockopt::tcp_keepintvl(socket).unwrap(),
                Duration::from_secs(interval)
            );
            assert_eq!(sockopt::tcp_keepcnt(socket).unwrap(), 3);
        }
        assert!(
            rustix::io::fcntl_getfd(socket)
                .unwrap()
                .contains(rustix::io::FdFlags::CLOEXEC)
        );
        assert!(
            rustix::fs::fcntl_getfl(socket)
                .unwrap()
                .contains(rustix::fs::OFlags::NONBLOCK)
        );
    }
}

fn keepalive_changes_at_run_time<D: NewDriver>() {
    let mut rig = Rig::<D>::new();
    rig.io
        .listener(rig.listener)
        .unwrap()
        .set_keepalive(60)
        .unwrap();
    rig.seen.accepted_sockets = Some(Vec::new());
    let _client = rig::connect(rig.address);
    rig.until("it is accepted", |seen| seen.peers.len() == 1);
    let socket = &rig.seen.accepted_sockets.as_ref().unwrap()[0];
    assert_eq!(
        sockopt::tcp_keepidle(socket).unwrap(),
        Duration::from_secs(60)
    );
    assert_eq!(
        sockopt::tcp_keepintvl(socket).unwrap(),
        Duration::from_secs(20)
    );
}

/// A directory of the test's own, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        let path = std::env::temp_dir().join(format!(
            "weft-reactor-{}-{}",
            std::process::id(),
            fastrand::u64(..)
        ));
        fs::create_dir(&path).unwrap();
        Directory(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_unix_socket_has_its_permissions_and_goes_with_its_listener() {
    let directory = Directory::new();
    let path = directory.socket();
    for mode in [0o700, 0o770, 0o777, 0o600] {
        let listener = bind_unix(&path, Some(mode), 16).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            mode
        );
        assert!(listener.is_unix());
        assert_eq!(listener.address(), None);
        UnixStream::connect(&path).unwrap();
        drop(listener);
        assert!(!path.exists());
    }
}

#[test]
fn a_stale_unix_socket_is_replaced() {
    let directory = Directory::new();
    let path = directory.socket();
    // The standard library leaves the file behind.
    drop(UnixListener::bind(&path).unwrap());
    assert_eq!(
        UnixStream::connect(&path).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    let listener = bind_unix(&path, None, 16).unwrap();
    UnixStream::connect(&path).unwrap();
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn a_live_unix_socket_is_never_replaced() {
    let directory = Directory::new();
    let path = directory.socket();
    let live = UnixListener::bind(&path).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    let error = bind_unix(&path, Some(0o700), 16).unwrap_err();
    assert!(matches!(&error, UnixListenError::Live(found) if *found == path));
    assert_eq!(
        error.to_string(),
        format!(
            "Unix socket {}: another process is listening on it",
            path.display()
        )
    );
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    // Also when it cannot take another connection.
    live.set_nonblocking(true).unwrap();
    let mut waiting = Vec::new();
    loop {
        match weft_reactor::start_connect_unix(&path) {
            Ok(socket) => waiting.push(socket),
            Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert!(matches!(
        bind_unix(&path, None, 16).unwrap_err(),
        UnixListenError::Live(_)
    ));
    assert!(path.exists());
}

#[test]
fn what_is_not_a_socket_is_never_replaced() {
    let directory = Directory::new();
    let path = directory.socket();
    fs::write(&path, "precious").unwrap();
    let error = bind_unix(&path, None, 16).unwrap_err();
    assert!(matches!(error, UnixListenError::NotASocket(_)));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_unix_socket_that_somebody_replaced_is_left_alone() {
    let directory = Directory::new();
    let path = directory.socket();
    let listener = bind_unix(&path, None, 16).unwrap();
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(listener);
    assert!(path.exists());
    UnixStream::connect(&path).unwrap();
    drop(other);
}

#[test]
fn impossible_unix_sockets_say_why() {
    let directory = Directory::new();
    let step = |path: PathBuf| match bind_unix(&path, None, 16).unwrap_err() {
        UnixListenError::System { step, cause, .. } => (step, cause.kind()),
        other => panic!("{other}"),
    };
    assert_eq!(
        step(directory.0.join("missing/socket")),
        ("bind", ErrorKind::NotFound)
    );
    assert_eq!(
        step(directory.0.join("x".repeat(200))),
        ("path", ErrorKind::InvalidFilename)
    );
}

fn serves_a_unix_socket<D: NewDriver>() {
    let directory = Directory::new();
    let mut rig = Rig::<D>::new();
    rig.seen.echo = true;
    let listener = bind_unix(&directory.socket(), Some(0o700), 16).unwrap();
    let listener = rig.io.add_listener(listener).unwrap();
    let mut client = UnixStream::connect(directory.socket()).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    rig.until("it arrives", |seen| {
        seen.input.values().any(|input| input == b"PING\r\n")
    });
    let mut got = [0; 6];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"PING\r\n");
    assert_eq!(rig.seen.peers, [PeerAddress::Unix]);

    // More than the socket holds, read late: the rest follows when there is room, and then the driver sleeps again.
    let id = rig.seen.accepted()[0];
    let sent = rig::pattern(1, 4 << 20);
    rig.send(id, &sent);
    rig.turn(Some(Duration::ZERO));
    assert!(rig.io.pending_output(id) > 0);
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; 4 << 20];
        client.read_exact(&mut got).unwrap();
        (client, got)
    });
    rig.until_io("all is sent", |io, _| io.pending_output(id) == 0);
    let (mut client, got) = reader.join().unwrap();
    assert!(got == sent);
    rig.turn(Some(Duration::from_millis(5)));
    rig.send(id, b"one");
    rig.turn(Some(Duration::ZERO));
    let mut got = [0; 3];
    client.read_exact(&mut got).unwrap();
    assert_eq!(
        rig.turn(Some(Duration::from_millis(20))).events,
        0,
        "woken by the peer's reading"
    );
    drop(rig.io.remove_listener(listener).unwrap());
    assert!(!directory.socket().exists());
}

fn a_unix_peer_that_leaves_is_closed<D: NewDriver>() {
    let directory = Directory::new();
    let mut rig = Rig::<D>::new();
    let listener = bind_unix(&directory.socket(), None, 16).unwrap();
    rig.io.add_listener(listener).unwrap();
    for paused in [false, true] {
        let before = rig.seen.accepted().len();
        let mut client = UnixStream::connect(directory.socket()).unwrap();
        rig.until("it is accepted", |seen| seen.accepted().len() > before);
        let id = rig.seen.accepted()[before];
        if paused {
            rig.io.pause_receive(id);
        }
        client.write_all(b"last words").unwrap();
        if paused {
            client.shutdown(Shutdown::Write).unwrap();
            rig.until("the hang-up is told", |seen| {
                seen.story(id) == [Happened::HungUp(id)]
            });
        }
        drop(client);
        let mut expected = vec![Happened::EndOfInput(id), Happened::Closed(id, Reason::Peer)];
        if paused {
            // Leaving altogether makes another event, and is not told again.
            assert_eq!(rig.turn(Some(rig::PATIENCE)).events, 1);
            assert_eq!(rig.seen.story(id), [Happened::HungUp(id)]);
            rig.io.resume_receive(id);
            expected.insert(0, Happened::HungUp(id));
        }
        rig.until("it is closed", |seen| seen.closed() > before);
        assert_eq!(rig.seen.received(id), b"last words");
        assert_eq!(rig.seen.story(id), expected);
    }
}

fn a_dropped_driver_closes_its_listeners<D: NewDriver>() {
    let directory = Directory::new();
    let mut driver = D::start(Default::default());
    let tcp = rig::loopback();
    let address = tcp.address().unwrap();
    driver.add_listener(tcp).unwrap();
    driver
        .add_listener(bind_unix(&directory.socket(), None, 16).unwrap())
        .unwrap();
    assert!(directory.socket().exists());
    driver
        .turn(&mut rig::Recorder::new(), Some(Duration::ZERO))
        .unwrap();
    drop(driver);
    assert!(!directory.socket().exists());
    assert_eq!(
        TcpStream::connect(address).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
}
