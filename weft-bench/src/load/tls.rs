//! TLS over the bytes of a connection.
//!
//! Owns the encryption of one connection: bytes of requests become bytes for the socket, bytes of the socket become bytes of
//! answers. Does not read files and does not send. Invariant: what was handed over is either in the output or waits for
//! the handshake.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use weft_rope::Output;

/// How connections are encrypted.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Whom to trust, who we are.
    pub config: Arc<ClientConfig>,
    /// What the server is called.
    pub name: ServerName<'static>,
}

impl Tls {
    /// The state of a new connection.
    pub fn client(&self) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }
}

/// One connection's encryption.
#[derive(Debug)]
pub(super) struct Channel {
    client: ClientConnection,
}

impl Channel {
    pub(super) fn new(tls: &Tls) -> io::Result<Channel> {
        let mut client = tls.client().map_err(said)?;
        // The window bounds what is under way.
        client.set_buffer_limit(None);
        Ok(Channel { client })
    }

    /// Whether the server has been recognized.
    pub(super) fn is_established(&self) -> bool {
        !self.client.is_handshaking()
    }

    /// Replaces requests by what is to be sent for them.
    pub(super) fn seal(&mut self, output: &mut Output) -> io::Result<()> {
        for run in output.runs() {
            self.client.writer().write_all(run)?;
        }
        output.clear();
        self.take_pending(output)
    }

    /// Appends what the handshake, or requests that waited for it, have to send.
    pub(super) fn take_pending(&mut self, output: &mut Output) -> io::Result<()> {
        while self.client.wants_write() {
            self.client.write_tls(output.tail())?;
        }
        Ok(())
    }

    /// Appends to `plain` the bytes of answers that are in `received`.
    pub(super) fn open(&mut self, mut received: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        while !received.is_empty() {
            self.client.read_tls(&mut received)?;
            let state = self.client.process_new_packets().map_err(said)?;
            let start = plain.len();
            plain.resize(start + state.plaintext_bytes_to_read(), 0);
            self.client.reader().read_exact(&mut plain[start..])?;
        }
        Ok(())
    }
}

/// What is said about an error of TLS.
fn said(error: rustls::Error) -> io::Error {
    io::Error::other(format!("SSL_connect failed: {error}"))
}
