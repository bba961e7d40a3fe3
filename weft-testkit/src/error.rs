//! What can go wrong in a test run apart from a wrong answer of the server under test.

use std::fmt;
use std::io;

use weft_client::ClientError;

/// Why the kit could not do what it was asked. A difference between two servers is a finding, not one of these.
#[derive(Debug)]
#[non_exhaustive]
pub enum KitError {
    /// Something from outside could not be had: an oracle, a tool, a library. The text says what and why.
    Missing(String),
    /// A server did not start, or ended on its own; the text holds the end of its log.
    Server(String),
    /// A connection to a server failed.
    Client(ClientError),
    /// A case file, a list or an argument is not written as it has to be.
    Syntax {
        /// The file, or what else was read.
        place: String,
        /// The line, counted from 1; 0 when there is none.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A reply has another shape than the kit relies on.
    Unexpected(String),
    /// A file could not be read or written.
    Io(String, io::Error),
}

impl KitError {
    /// A syntax error on a line of a file.
    pub fn syntax(place: &str, line: usize, what: impl Into<String>) -> Self {
        KitError::Syntax {
            place: place.to_owned(),
            line,
            what: what.into(),
        }
    }

    /// An I/O error with what was being done.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> KitError {
        let doing = doing.into();
        move |error| KitError::Io(doing, error)
    }
}

impl fmt::Display for KitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KitError::Missing(what) | KitError::Server(what) | KitError::Unexpected(what) => {
                f.write_str(what)
            }
            KitError::Client(error) => write!(f, "{error}"),
            KitError::Syntax {
                place,
                line: 0,
                what,
            } => write!(f, "{place}: {what}"),
            KitError::Syntax { place, line, what } => write!(f, "{place}:{line}: {what}"),
            KitError::Io(doing, error) => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for KitError {}

impl From<ClientError> for KitError {
    fn from(error: ClientError) -> Self {
        KitError::Client(error)
    }
}
