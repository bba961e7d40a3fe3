//! A connection's state that commands see and change; its bytes are the session's.

use weft_resp::Protocol;

/// One connected client.
#[derive(Debug)]
pub struct Client {
    id: u64,
    authenticated: bool,
    closing: bool,
    /// The selected database.
    pub database: usize,
    /// The protocol of its replies.
    pub protocol: Protocol,
    /// CLIENT SETNAME; empty if none.
    pub name: Box<str>,
    /// CLIENT SETINFO LIB-NAME.
    pub library_name: Box<str>,
    /// CLIENT SETINFO LIB-VER.
    pub library_version: Box<str>,
}

impl Client {
    /// A client that has just connected; `authenticated` if no password is asked for.
    #[must_use]
    pub fn new(id: u64, authenticated: bool) -> Self {
        Self {
            id,
            authenticated,
            closing: false,
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

    /// Whether commands other than those for authentication may run.
    #[must_use]
    pub const fn authenticated(&self) -> bool {
        self.authenticated
    }

    /// The client has proved who it is.
    pub fn authenticate(&mut self) {
        self.authenticated = true;
    }

    /// Back to the state of a new connection; `authenticated` as for a new one.
    pub fn reset(&mut self, authenticated: bool) {
        let (library_name, library_version) =
            (std::mem::take(&mut self.library_name), std::mem::take(&mut self.library_version));
        *self = Self { library_name, library_version, ..Self::new(self.id, authenticated) };
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
