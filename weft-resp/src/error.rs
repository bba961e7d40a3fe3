//! What a client did wrong on the wire.
//!
//! Owns the texts that clients see for it. Every one of these ends the connection after it has been answered.

use std::borrow::Cow;
use std::fmt;

/// A violation of the request protocol. Answered as `-ERR ` and [`ProtocolError::message`]; then the connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The number after `*` is not an integer or exceeds the limit.
    InvalidMultibulkLength,
    /// The number after `$` is not an integer, is negative or exceeds the limit.
    InvalidBulkLength,
    /// An argument does not begin with `$` but with this byte.
    ExpectedDollar(u8),
    /// The line after `*` does not end within 64 KiB.
    MultibulkCountTooBig,
    /// The line after `$` does not end within 64 KiB.
    BulkCountTooBig,
    /// An inline request does not end within the limit.
    InlineTooBig,
    /// A quoted argument of an inline request is not closed, or not followed by a space.
    UnbalancedQuotes,
    /// Too many arguments for a client that has not authenticated.
    UnauthenticatedMultibulkLength,
    /// Too large an argument for a client that has not authenticated.
    UnauthenticatedBulkLength,
}

impl ProtocolError {
    /// The text as Redis sends it after `-ERR `, for example `Protocol error: invalid bulk length`. Bytes, since it
    /// may quote a byte that the client sent.
    pub fn message(&self) -> Cow<'static, [u8]> {
        let text: &'static str = match self {
            ProtocolError::InvalidMultibulkLength => "Protocol error: invalid multibulk length",
            ProtocolError::InvalidBulkLength => "Protocol error: invalid bulk length",
            ProtocolError::MultibulkCountTooBig => "Protocol error: too big mbulk count string",
            ProtocolError::BulkCountTooBig => "Protocol error: too big bulk count string",
            ProtocolError::InlineTooBig => "Protocol error: too big inline request",
            ProtocolError::UnbalancedQuotes => "Protocol error: unbalanced quotes in request",
            ProtocolError::UnauthenticatedMultibulkLength => {
                "Protocol error: unauthenticated multibulk length"
            }
            ProtocolError::UnauthenticatedBulkLength => {
                "Protocol error: unauthenticated bulk length"
            }
            ProtocolError::ExpectedDollar(byte) => {
                let shown = if matches!(byte, b'\r' | b'\n') {
                    b' '
                } else {
                    *byte
                };
                let mut text = b"Protocol error: expected '$', got '".to_vec();
                text.extend_from_slice(&[shown, b'\'']);
                return Cow::Owned(text);
            }
        };
        Cow::Borrowed(text.as_bytes())
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.message()))
    }
}

impl std::error::Error for ProtocolError {}
