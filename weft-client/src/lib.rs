//! A blocking RESP client over TCP and Unix sockets, for the command-line tools and the tests.
//!
//! It owns the socket and the bytes received but not yet decoded. It does not know what the commands mean, keeps
//! no pool, never reconnects and never retries: what the server did is what the caller sees. The wire format is
//! `weft-resp`'s. Replies come decoded, as the very bytes received, or both.

#![forbid(unsafe_code)]

mod connection;
mod error;

pub use connection::{Address, Connection, RawReply};
pub use error::ClientError;
pub use weft_resp::Reply;
