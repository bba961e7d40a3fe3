//! The two protocol versions a connection can speak.

/// The protocol version of a connection. Every connection starts with RESP2; `HELLO` changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Simple strings, errors, integers, bulk strings and arrays.
    #[default]
    Resp2,
    /// Maps, sets, doubles, booleans, null, big numbers, verbatim strings, attributes and pushes besides.
    Resp3,
}

impl Protocol {
    /// The version's number, as `HELLO` takes and answers it: 2 or 3.
    pub const fn number(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }

    /// The version with that number, if there is one.
    pub const fn from_number(number: i64) -> Option<Protocol> {
        match number {
            2 => Some(Protocol::Resp2),
            3 => Some(Protocol::Resp3),
            _ => None,
        }
    }
}
