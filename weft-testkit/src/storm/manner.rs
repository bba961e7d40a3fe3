//! What one connection of a storm does between its connect and its end.
//!
//! Every way of ending that a server meets: an orderly close by either side, a reset, half a request and then the end, and
//! replies that nobody reads. What the server says is compared to the byte.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use socket2::SockRef;

/// The key that half a request would set.
pub(super) const HALF_KEY: &str = "storm:half";
/// The key whose value is asked for and not read.
pub(super) const LARGE_KEY: &str = "storm:large";
/// Bytes of that value: above what the server copies into a buffer.
pub(super) const LARGE_BYTES: usize = 64 * 1024;
/// How often it is asked for: more than the sockets' buffers take, so that replies pile up in the server.
const LARGE_GETS: usize = 8;

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const PONG: &[u8] = b"+PONG\r\n";
const QUIT: &[u8] = b"*1\r\n$4\r\nQUIT\r\n";
const OK: &[u8] = b"+OK\r\n";
/// A SET whose value of 100 bytes ends after three.
const HALF_REQUEST: &[u8] = b"*3\r\n$3\r\nSET\r\n$10\r\nstorm:half\r\n$100\r\nabc";

/// One way to come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Closes at once.
    Silent,
    /// PING, reads its reply, closes.
    Polite,
    /// QUIT, reads its reply and the server's close.
    Quit,
    /// PING and the end of its input, then reads the reply and the server's close.
    HalfOpen,
    /// Half a request and the end of its input, then reads the server's close.
    HalfRequest,
    /// PING, and a reset at once.
    Reset,
    /// Half a request, and a reset at once.
    ResetInRequest,
    /// Asks for much, waits for its first byte, and closes with the rest unread, which resets.
    Unread,
    /// Asks for much and closes before it comes.
    Deaf,
}

impl Manner {
    /// All of them. Those that wait for the server stand between those that do not, so that a connection that runs through
    /// them never has many waiting to be accepted.
    pub const ALL: [Manner; 9] = [
        Manner::Silent,
        Manner::Polite,
        Manner::Reset,
        Manner::HalfOpen,
        Manner::ResetInRequest,
        Manner::HalfRequest,
        Manner::Deaf,
        Manner::Unread,
        Manner::Quit,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Manner::Silent => "silent",
            Manner::Polite => "polite",
            Manner::Quit => "quit",
            Manner::HalfOpen => "half-open",
            Manner::HalfRequest => "half-request",
            Manner::Reset => "reset",
            Manner::ResetInRequest => "reset-in-request",
            Manner::Unread => "unread",
            Manner::Deaf => "deaf",
        }
    }

    /// The manner of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|manner| manner.name() == name)
    }

    /// Does it, and ends the connection.
    ///
    /// # Errors
    /// Those of the socket, and a server that says anything else than it has to.
    pub(super) fn play(self, mut stream: TcpStream) -> io::Result<()> {
        match self {
            Manner::Silent => Ok(()),
            Manner::Polite => {
                stream.write_all(PING)?;
                expect(&mut stream, PONG)
            }
            Manner::Quit => {
                stream.write_all(QUIT)?;
                expect_last(&mut stream, OK)
            }
            Manner::HalfOpen => {
                stream.write_all(PING)?;
                stream.shutdown(Shutdown::Write)?;
                expect_last(&mut stream, PONG)
            }
            Manner::HalfRequest => {
                stream.write_all(HALF_REQUEST)?;
                stream.shutdown(Shutdown::Write)?;
                expect_last(&mut stream, b"")
            }
            Manner::Reset => {
                stream.write_all(PING)?;
                reset(stream)
            }
            Manner::ResetInRequest => {
                stream.write_all(HALF_REQUEST)?;
                reset(stream)
            }
            Manner::Unread => {
                stream.write_all(&large_gets())?;
                expect(&mut stream, b"$")
            }
            Manner::Deaf => stream.write_all(&large_gets()),
        }
    }
}

fn large_gets() -> Vec<u8> {
    format!("*2\r\n$3\r\nGET\r\n${}\r\n{LARGE_KEY}\r\n", LARGE_KEY.len())
        .repeat(LARGE_GETS)
        .into_bytes()
}

/// The next bytes are these.
fn expect(stream: &mut TcpStream, expected: &[u8]) -> io::Result<()> {
    let mut found = vec![0; expected.len()];
    stream.read_exact(&mut found)?;
    compare(&found, expected)
}

/// These bytes and no more, then the end.
fn expect_last(stream: &mut TcpStream, expected: &[u8]) -> io::Result<()> {
    let mut found = Vec::new();
    // A server that talks on is not listened to for ever.
    let most = expected.len() as u64 + 64;
    stream.take(most).read_to_end(&mut found)?;
    compare(&found, expected)
}

fn compare(found: &[u8], expected: &[u8]) -> io::Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{:?} instead of {:?}",
        String::from_utf8_lossy(found),
        String::from_utf8_lossy(expected)
    )))
}

/// Closes without saying good-bye: whatever is under way is lost.
fn reset(stream: TcpStream) -> io::Result<()> {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Plays a manner against a server that says `reply` and closes after the client's input has ended or `after` bytes.
    fn against(manner: Manner, after: usize, reply: &'static [u8]) -> io::Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let client = TcpStream::connect(listener.local_addr().expect("an address"))?;
        let (mut server, _) = listener.accept()?;
        let serving = std::thread::spawn(move || {
            let mut request = vec![0; after];
            let _ = server.read_exact(&mut request);
            let _ = server.write_all(reply);
        });
        let outcome = manner.play(client);
        serving.join().expect("it does not panic");
        outcome
    }

    #[test]
    fn the_right_bytes_pass_and_others_do_not() {
        let (ping, quit) = (PING.len(), QUIT.len());
        assert!(against(Manner::Polite, ping, PONG).is_ok());
        assert!(against(Manner::Polite, ping, b"+PING\r\n").is_err());
        assert!(against(Manner::Polite, ping, b"+PO").is_err());
        assert!(against(Manner::Quit, quit, OK).is_ok());
        assert!(against(Manner::Quit, quit, b"+OK\r\n+OK\r\n").is_err());
        assert!(against(Manner::HalfOpen, ping, PONG).is_ok());
        assert!(against(Manner::HalfRequest, HALF_REQUEST.len(), b"").is_ok());
        assert!(against(Manner::HalfRequest, HALF_REQUEST.len(), b"-ERR\r\n").is_err());
        assert!(against(Manner::Unread, large_gets().len(), b"$65536\r\nxx").is_ok());
        assert!(against(Manner::Unread, large_gets().len(), b"$").is_ok());
        assert!(against(Manner::Unread, large_gets().len(), b"-").is_err());
    }

    #[test]
    fn a_reset_is_one() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let client = TcpStream::connect(listener.local_addr().expect("an address"));
        let (mut server, _) = listener.accept().expect("a connection");
        Manner::Reset
            .play(client.expect("it connects"))
            .expect("it is sent");
        let mut request = vec![0; PING.len()];
        let ends_in_reset = match server.read_exact(&mut request) {
            Ok(()) => server.read(&mut request),
            Err(error) => Err(error),
        };
        let error = ends_in_reset.expect_err("no orderly end");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn every_manner_has_its_place_once() {
        for manner in Manner::ALL {
            let places = Manner::ALL.iter().filter(|other| **other == manner);
            assert_eq!(places.count(), 1, "{}", manner.name());
        }
    }
}
