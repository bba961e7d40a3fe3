//! The client against a scripted peer: what arrives in pieces, late, wrongly or not at all.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::time::Duration;

use weft_client::{Address, ClientError, Connection, Reply};

/// A connection to a peer that runs `script` on its end.
fn connected(script: impl FnOnce(TcpStream) + Send + 'static) -> Connection {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("a bound listener").port();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("the client connects");
        stream.set_nodelay(true).expect("a TCP stream");
        script(stream);
    });
    let address = Address::Tcp("127.0.0.1".to_owned(), port);
    let mut connection = Connection::connect(&address).expect("the peer listens");
    connection
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a TCP stream");
    connection
}

fn expect(stream: &mut impl Read, bytes: &[u8]) {
    let mut received = vec![0; bytes.len()];
    stream.read_exact(&mut received).expect("the client sends");
    assert_eq!(
        String::from_utf8_lossy(&received),
        String::from_utf8_lossy(bytes)
    );
}

#[test]
fn a_command_is_a_multibulk_and_its_reply_may_come_byte_by_byte() {
    let mut connection = connected(|mut stream| {
        expect(&mut stream, b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n");
        for byte in b"*2\r\n$3\r\n\r\n\x00\r\n:-7\r\n" {
            stream.write_all(&[*byte]).expect("the client reads");
        }
    });
    let reply = connection
        .command(&[&b"GET"[..], b"a\r\n"])
        .expect("a reply");
    assert_eq!(
        reply,
        Reply::Array(vec![Reply::Bulk(b"\r\n\x00".to_vec()), Reply::Integer(-7)])
    );
}

#[test]
fn raw_replies_are_the_bytes_received() {
    let mut connection = connected(|mut stream| {
        stream
            .write_all(b"+OK\r\n%1\r\n$1\r\nk\r\n,1e+100\r\n_\r\n")
            .expect("the client reads");
    });
    let replies: Vec<Vec<u8>> = (0..3)
        .map(|_| connection.read_raw_reply().expect("a reply").bytes)
        .collect();
    assert_eq!(
        replies,
        [&b"+OK\r\n"[..], b"%1\r\n$1\r\nk\r\n,1e+100\r\n", b"_\r\n"]
    );
}

#[test]
fn a_timeout_inside_a_reply_loses_nothing() {
    let (go_on, wait) = mpsc::channel::<()>();
    let mut connection = connected(move |mut stream| {
        stream.write_all(b"$5\r\nhe").expect("the client reads");
        wait.recv().expect("the test goes on");
        stream.write_all(b"llo\r\n").expect("the client reads");
        // Until the client has read it all.
        let _ = stream.read(&mut [0]);
    });
    connection
        .set_read_timeout(Some(Duration::from_millis(30)))
        .expect("a TCP stream");
    assert!(matches!(
        connection.read_reply(),
        Err(ClientError::TimedOut)
    ));
    go_on.send(()).expect("the peer waits");
    connection
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a TCP stream");
    assert_eq!(
        connection.read_reply().expect("a reply"),
        Reply::Bulk(b"hello".to_vec())
    );
}

#[test]
fn the_end_of_a_connection_is_told_apart_from_the_middle_of_a_reply() {
    let mut connection = connected(|mut stream| {
        stream.write_all(b"+OK\r\n").expect("the client reads");
    });
    assert_eq!(
        connection.read_reply().expect("a reply"),
        Reply::Simple(b"OK".to_vec())
    );
    assert!(matches!(
        connection.read_reply(),
        Err(ClientError::Closed { pending: 0 })
    ));

    let mut connection = connected(|mut stream| {
        stream.write_all(b"$5\r\nhe").expect("the client reads");
    });
    assert!(matches!(
        connection.read_reply(),
        Err(ClientError::Closed { pending: 6 })
    ));
}

#[test]
fn what_is_no_reply_is_an_error() {
    let mut connection = connected(|mut stream| {
        stream
            .write_all(b"HTTP/1.1 400\r\n")
            .expect("the client reads");
    });
    assert!(matches!(
        connection.read_reply(),
        Err(ClientError::Malformed(_))
    ));
}

#[test]
fn a_reply_beyond_the_limit_is_refused() {
    let mut connection = connected(|mut stream| {
        stream
            .write_all(b"$100000000\r\n")
            .expect("the client reads");
        // Goes on until the client gives up.
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    connection.set_reply_bytes_max(1_000_000);
    assert!(matches!(
        connection.read_reply(),
        Err(ClientError::TooLarge(1_000_000))
    ));
}

#[test]
fn a_pipeline_larger_than_the_sockets_does_not_lock_up() {
    // The peer answers each request before it reads the next, so both directions fill if nobody reads.
    let mut connection = connected(|mut stream| {
        let request = b"*2\r\n$4\r\nECHO\r\n$1000\r\n";
        let mut body = vec![0; request.len() + 1002];
        let reply = [&b"$1000\r\n"[..], &[b'y'; 1000], b"\r\n"].concat();
        for _ in 0..20_000 {
            stream.read_exact(&mut body).expect("the client sends");
            stream.write_all(&reply).expect("the client reads");
        }
    });
    let request = vec![b"ECHO".to_vec(), vec![b'x'; 1000]];
    let replies = connection
        .pipeline(&vec![request; 20_000])
        .expect("all replies");
    assert_eq!(replies.len(), 20_000);
    assert!(
        replies
            .iter()
            .all(|raw| raw.reply == Reply::Bulk(vec![b'y'; 1000]))
    );
}

#[test]
fn bytes_go_out_as_they_are_and_what_comes_before_the_end_is_kept() {
    let mut connection = connected(|mut stream| {
        expect(&mut stream, b"PING\r\n");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the client ends");
        stream
            .write_all(b"+PONG\r\n-ERR half")
            .expect("the client reads");
    });
    connection.send_bytes(b"PING\r\n").expect("the peer reads");
    connection.finish_sending().expect("a TCP stream");
    assert_eq!(
        connection.read_reply().expect("a reply"),
        Reply::Simple(b"PONG".to_vec())
    );
    assert_eq!(connection.read_to_close().expect("the end"), b"-ERR half");
}

#[test]
fn unix_sockets_work_alike() {
    let folder = std::env::temp_dir().join(format!("weft-client-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).expect("a fresh path");
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the client connects");
        expect(&mut stream, b"*1\r\n$4\r\nPING\r\n");
        stream.write_all(b"+PONG\r\n").expect("the client reads");
    });
    let mut connection = Connection::connect(&Address::Unix(path)).expect("the peer listens");
    assert_eq!(
        connection.command(&["PING"]).expect("a reply"),
        Reply::Simple(b"PONG".to_vec())
    );
    peer.join().expect("the peer is content");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}
