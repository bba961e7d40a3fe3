//! The RESP wire protocol: requests in, replies out, and replies back in for clients.
//!
//! The only crate that knows CRLF. Owns request parsing in place and incrementally ([`RequestParser`]), encoding of
//! replies ([`Writer`]) and of requests ([`RequestWriter`]), decoding of replies ([`decode_reply`]), and finding where
//! they end ([`ReplyScanner`]). Knows no command, no key and no socket.
//!
//! Invariants: how a stream is cut into pieces never changes what is parsed from it; no allocation is larger than a
//! fixed bound plus what has actually arrived.

#![forbid(unsafe_code)]

mod args;
mod decode;
mod double;
mod error;
mod grisu;
mod header;
mod inline;
mod owned_requests;
mod parser;
mod probe;
mod protocol;
mod request_writer;
mod scan_reply;
mod writer;

pub use args::{Args, ArgsIter, OwnedArgs, Requests};
pub use decode::{DecodeError, DecodeLimits, Reply, decode_reply, decode_reply_within};
pub use double::{DoubleText, double_text};
pub use error::ProtocolError;
pub use owned_requests::OwnedRequests;
pub use parser::{LARGE_ARGUMENT_BYTES, Limits, RequestParser, Source};
pub use probe::Probe;
pub use protocol::Protocol;
pub use request_writer::RequestWriter;
pub use scan_reply::{ReplyClass, ReplyScanner, ScannedReply};
pub use writer::{Deferred, Writer};
