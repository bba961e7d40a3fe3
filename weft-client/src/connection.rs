//! One connection: bytes out, replies in.
//!
//! Invariants: `received[consumed..]` are exactly the bytes that came after the last reply handed out, so a timeout
//! in the middle of a reply loses nothing; a pipeline never has more than a window of unanswered bytes under way, so
//! that client and server cannot both wait for the other to read.

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use weft_resp::{Reply, RequestWriter, decode_reply};

use crate::error::ClientError;

/// Bytes of requests a pipeline sends before it reads the replies to them.
const PIPELINE_WINDOW_BYTES: usize = 64 * 1024;
/// Bytes asked of the socket at a time.
const READ_BYTES: usize = 64 * 1024;
/// The default bound of one reply, in bytes: Redis's own bound of one bulk string (512 MB) and some room.
const REPLY_BYTES_MAX: usize = 544 * 1024 * 1024;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host name or numeric address, and port.
    Tcp(String, u16),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A reply together with the bytes it was decoded from.
#[derive(Clone, Debug)]
pub struct RawReply {
    /// Exactly what the server sent for this reply.
    pub bytes: Vec<u8>,
    /// The same, decoded.
    pub reply: Reply,
}

/// A blocking connection to one server.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    received: Vec<u8>,
    consumed: usize,
    reply_bytes_max: usize,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Other(Box<dyn Duplex>),
}

/// Bytes in both directions, over whatever the caller has made.
trait Duplex: Read + Write + Send + fmt::Debug {}

impl<S: Read + Write + Send + fmt::Debug> Duplex for S {}

impl Connection {
    /// Connects to `address`. A TCP connection sends without delay (TCP_NODELAY).
    pub fn connect(address: &Address) -> Result<Self, ClientError> {
        let stream = match address {
            Address::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port))?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Address::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
        };
        Ok(Connection::new(stream))
    }

    /// Speaks over a stream that has come about in another way, such as one that encrypts. Its timeouts are its maker's.
    pub fn over(stream: impl Read + Write + Send + fmt::Debug + 'static) -> Self {
        Connection::new(Stream::Other(Box::new(stream)))
    }

    fn new(stream: Stream) -> Self {
        Connection {
            stream,
            received: Vec::new(),
            consumed: 0,
            reply_bytes_max: REPLY_BYTES_MAX,
        }
    }

    /// How long one wait for bytes may last; `None` waits for ever.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) -> Result<(), ClientError> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout)?,
            Stream::Unix(stream) => stream.set_read_timeout(timeout)?,
            Stream::Other(_) => {}
        }
        Ok(())
    }

    /// Bounds one reply, in bytes; a greater one is [`ClientError::TooLarge`].
    pub fn set_reply_bytes_max(&mut self, bytes: usize) {
        self.reply_bytes_max = bytes;
    }

    /// Sends bytes as they are, whether or not they are a request.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes)?,
            Stream::Unix(stream) => stream.write_all(bytes)?,
            Stream::Other(stream) => {
                stream.write_all(bytes)?;
                stream.flush()?;
            }
        }
        Ok(())
    }

    /// Sends one command without waiting for its reply.
    pub fn send<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<(), ClientError> {
        let mut request = Vec::new();
        encode_request(&mut request, arguments);
        self.send_bytes(&request)
    }

    /// Tells the server that nothing more will be sent; replies can still be read.
    pub fn finish_sending(&mut self) -> Result<(), ClientError> {
        let how = std::net::Shutdown::Write;
        match &mut self.stream {
            Stream::Tcp(stream) => stream.shutdown(how)?,
            Stream::Unix(stream) => stream.shutdown(how)?,
            Stream::Other(stream) => stream.flush()?,
        }
        Ok(())
    }

    /// The next reply, decoded. Push messages come in their order, as replies of their own kind; attributes belong to
    /// the reply they stand before.
    pub fn read_reply(&mut self) -> Result<Reply, ClientError> {
        Ok(self.read_decoded()?.0)
    }

    /// The next reply with the bytes it consists of.
    pub fn read_raw_reply(&mut self) -> Result<RawReply, ClientError> {
        let (reply, length) = self.read_decoded()?;
        let end = self.consumed;
        Ok(RawReply {
            bytes: self.received[end - length..end].to_vec(),
            reply,
        })
    }

    /// Waits for the server to close the connection and returns the bytes that came before that and belong to no
    /// reply read so far.
    pub fn read_to_close(&mut self) -> Result<Vec<u8>, ClientError> {
        while self.receive()? > 0 {}
        Ok(self.take_received())
    }

    /// The bytes that have arrived and belong to no reply read so far; nothing is waited for.
    pub fn take_received(&mut self) -> Vec<u8> {
        self.received.split_off(self.consumed)
    }

    /// Sends one command and waits for its reply.
    pub fn command<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<Reply, ClientError> {
        self.send(arguments)?;
        self.read_reply()
    }

    /// Sends all commands without waiting between them (in windows, see the module) and returns one reply each.
    pub fn pipeline<A: AsRef<[u8]>>(
        &mut self,
        commands: &[Vec<A>],
    ) -> Result<Vec<RawReply>, ClientError> {
        let mut replies = Vec::with_capacity(commands.len());
        let mut window = Vec::new();
        let mut sent = 0;
        for (index, command) in commands.iter().enumerate() {
            encode_request(&mut window, command);
            if window.len() >= PIPELINE_WINDOW_BYTES || index + 1 == commands.len() {
                self.send_bytes(&window)?;
                window.clear();
                while sent <= index {
                    replies.push(self.read_raw_reply()?);
                    sent += 1;
                }
            }
        }
        Ok(replies)
    }

    fn read_decoded(&mut self) -> Result<(Reply, usize), ClientError> {
        loop {
            let pending = &self.received[self.consumed..];
            match decode_reply(pending) {
                Ok(Some((reply, length))) => {
                    self.consumed += length;
                    return Ok((reply, length));
                }
                Ok(None) if pending.len() > self.reply_bytes_max => {
                    return Err(ClientError::TooLarge(self.reply_bytes_max));
                }
                Ok(None) => {}
                Err(error) => return Err(ClientError::Malformed(error.to_string())),
            }
            if self.receive()? == 0 {
                let pending = self.received.len() - self.consumed;
                return Err(ClientError::Closed { pending });
            }
        }
    }

    /// Reads once from the socket; 0 when the server has closed. An unfinished reply is decoded again from its start
    /// with each arrival, so the room offered doubles with what is pending.
    fn receive(&mut self) -> Result<usize, ClientError> {
        if self.consumed > 0 {
            self.received.drain(..self.consumed);
            self.consumed = 0;
        }
        let start = self.received.len();
        self.received.resize(start + start.max(READ_BYTES), 0);
        let outcome = loop {
            let space = &mut self.received[start..];
            let count = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(space),
                Stream::Unix(stream) => stream.read(space),
                Stream::Other(stream) => stream.read(space),
            };
            match count {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.received
            .truncate(start + outcome.as_ref().map_or(0, |count| *count));
        Ok(outcome?)
    }
}

fn encode_request<A: AsRef<[u8]>>(request: &mut Vec<u8>, arguments: &[A]) {
    let mut writer = RequestWriter::new(request);
    writer.begin(arguments.len());
    for argument in arguments {
        writer.arg(argument.as_ref());
    }
}
