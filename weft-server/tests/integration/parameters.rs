//! Parameters that take effect while the server runs.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::harness::{Client, PROGRAM, Server, free_port, info_field};

#[test]
fn the_port_can_be_moved() {
    let server = Server::start(&[]);
    let mut old = server.connect();
    let port = free_port();
    old.ask(&format!("CONFIG SET port {port}"), "+OK\r\n");
    Client::connect(("127.0.0.1", port))
        .unwrap()
        .ask("PING", "+PONG\r\n");
    Client::connect(("::1", port))
        .unwrap()
        .ask("PING", "+PONG\r\n");
    assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
    // Who is connected stays connected.
    old.ask("PING", "+PONG\r\n");
    assert_eq!(info_field(&mut old, "tcp_port"), port.to_string());
}

#[test]
fn a_port_that_is_taken_changes_nothing() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    client.ask(
        &format!("CONFIG SET port {port}"),
        "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs.\r\n",
    );
    assert_eq!(
        client.bulk_pair("CONFIG GET port").1,
        server.port().to_string()
    );
    server.connect().ask("PING", "+PONG\r\n");
}

#[test]
fn addresses_can_be_changed() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.ask("CONFIG SET bind 127.0.0.1", "+OK\r\n");
    assert!(TcpStream::connect(("::1", server.port())).is_err());
    server.connect().ask("PING", "+PONG\r\n");
    client.ask(
        "CONFIG SET bind 192.0.2.200",
        "-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses.\r\n",
    );
    server.connect().ask("PING", "+PONG\r\n");
    client.ask("CONFIG SET bind \"127.0.0.1 ::1\"", "+OK\r\n");
    Client::connect(("::1", server.port()))
        .unwrap()
        .ask("PING", "+PONG\r\n");
    client.ask("CONFIG SET bind \"\"", "+OK\r\n");
    assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
    client.ask("CONFIG SET bind 127.0.0.1", "+OK\r\n");
    server.connect().ask("PING", "+PONG\r\n");
}

#[test]
fn the_log_level_can_be_changed() {
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    client.ask("CONFIG SET loglevel verbose", "+OK\r\n");
    let other = server.connect();
    let address = other.stream.local_addr().unwrap();
    let line = server.wait_for_line("Accepted ");
    assert!(line.ends_with(&format!(" - Accepted {address}")), "{line}");
    drop(other);
    let line = server.wait_for_line("Client closed connection");
    assert!(line.contains(&format!(" addr={address}")), "{line}");
}

#[test]
fn more_clients_than_descriptors_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut command = Command::new("sh");
    let script = "ulimit -n 100; exec \"$0\" \"$@\"";
    command.args([
        "-c",
        script,
        PROGRAM,
        "--maxclients",
        "50",
        "--port",
        &port.to_string(),
    ]);
    let server = Server::launch(command, folder, port);
    let mut client = server.connect();
    client.ask("CONFIG SET maxclients 60", "+OK\r\n");
    // More than any system grants.
    client.send("CONFIG SET maxclients 4000000000\r\n");
    let reply = client.line();
    assert!(
        reply.starts_with(
            "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to handle \
             the specified number of clients, try with "
        ),
        "{reply}"
    );
    assert_eq!(client.bulk_pair("CONFIG GET maxclients").1, "60");
}

#[test]
fn the_directory_can_be_changed_where_that_is_allowed() {
    let server = Server::start(&["--enable-protected-configs", "yes"]);
    let mut client = server.connect();
    let folder = server.path("below");
    fs::create_dir(&folder).unwrap();
    client.ask(&format!("CONFIG SET dir {}", folder.display()), "+OK\r\n");
    let link = format!("/proc/{}/cwd", server.id());
    assert_eq!(
        fs::read_link(&link).unwrap(),
        folder.canonicalize().unwrap()
    );
    client.ask(
        "CONFIG SET dir /nonexistent",
        "-ERR CONFIG SET failed (possibly related to argument 'dir') - No such file or directory\r\n",
    );
    assert_eq!(
        fs::read_link(&link).unwrap(),
        folder.canonicalize().unwrap()
    );
}

#[test]
fn one_failure_takes_everything_back() {
    let server = Server::start(&["--enable-protected-configs", "yes"]);
    let mut client = server.connect();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    client.ask(
        &format!("CONFIG SET dir /tmp loglevel debug port {port}"),
        "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs.\r\n",
    );
    let link = format!("/proc/{}/cwd", server.id());
    assert_eq!(
        fs::read_link(&link).unwrap(),
        server.folder().canonicalize().unwrap()
    );
    assert_eq!(client.bulk_pair("CONFIG GET loglevel").1, "notice");
}

#[test]
fn the_file_is_rewritten_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weft.conf");
    let port = free_port();
    fs::write(&file, format!("# mine\nport {port}\ntimeout 10\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut command = Command::new(PROGRAM);
    // A relative name: it still means the same file after `dir` has been entered.
    command
        .arg("weft.conf")
        .args(["--dir", "/tmp"])
        .current_dir(folder.path());
    let server = Server::launch(command, folder, port);
    let mut client = server.connect();
    client.ask("CONFIG SET timeout 20", "+OK\r\n");
    client.ask("CONFIG REWRITE", "+OK\r\n");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with(&format!("# mine\nport {port}\ntimeout 20\n")),
        "{text}"
    );
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}
