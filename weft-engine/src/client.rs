//! A connection's state that commands see and change; its bytes are the session's.

use weft_resp::Protocol;

/// Where a connection comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The client's address as CLIENT LIST shows it: `127.0.0.1:50000`, `[::1]:50000` or `/path/to/socket:0`.
    pub address: Box<str>,
    /// The server's address of this connection, likewise.
    pub local_address: Box<str>,
    /// Whether the client is on this machine: loopback or a Unix socket.
    pub local: bool,
}

/// One connected client.
#[derive(Debug)]
pub struct Client {
    id: u64,
    origin: Origin,
    authenticated: bool,
    closing: bool,
    /// The length of the output at which its replies are too many. It is closed then, and what is made after that is made
    /// for nobody.
    pub(crate) output_end: usize,
    /// The selected database.
    pub database: usize,
    /// The protocol of its replies.
    pub protocol: Protocol,
    /// CLIENT SETNAME; empty if none.
    pub name: Box<[u8]>,
    /// CLIENT SETINFO LIB-NAME.
    pub library_name: Box<[u8]>,
    /// CLIENT SETINFO LIB-VER.
    pub library_version: Box<[u8]>,
}

impl Client {
    /// A client that has just connected; `authenticated` if no password is asked for.
    #[must_use]
    pub fn new(id: u64, origin: Origin, authenticated: bool) -> Self {
        Self {
            id,
            origin,
            authenticated,
            closing: false,
            output_end: usize::MAX,
            database: 0,
            protocol: Protocol::Resp2,
            name: Box::default(),
            library_name: Box::default(),
            library_version: Box::default(),
        }
    }

    /// Unique among all connections since the start, counted from 1.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Where it comes from.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Whether commands other than those for authentication may run.
    #[must_use]
    pub const fn authenticated(&self) -> bool {
        self.authenticated
    }

    /// The client has proved who it is.
    pub fn authenticate(&mut self) {
        self.authenticated = true;
    }

    /// Back to the state of a new connection, except what the client library said of itself; `authenticated` as for a
    /// new one.
    pub fn reset(&mut self, authenticated: bool) {
        self.authenticated = authenticated;
        self.database = 0;
        self.protocol = Protocol::Resp2;
        self.name = Box::default();
    }

    /// Closes the connection once what has been replied so far is sent; nothing after it is run.
    pub fn close_after_reply(&mut self) {
        self.closing = true;
    }

    /// Whether the connection is to be closed.
    #[must_use]
    pub const fn closing(&self) -> bool {
        self.closing
    }
}
