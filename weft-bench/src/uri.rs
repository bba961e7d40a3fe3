//! `redis://user:password@host:port/database`, as the tools of Redis read it.
//!
//! Owns the parts and their percent encoding. A URI without a user name before the password may leave out the colon:
//! `redis://password@host`.

use std::fmt;

use crate::numbers::atoi;

/// What a URI says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// `rediss:`.
    pub tls: bool,
    /// The host.
    pub host: Option<Vec<u8>>,
    /// The port.
    pub port: Option<u16>,
    /// The user.
    pub user: Option<Vec<u8>>,
    /// The password.
    pub password: Option<Vec<u8>>,
    /// The database's number.
    pub database: Option<i64>,
}

/// What is wrong with a URI.
#[derive(Debug, PartialEq, Eq)]
pub enum UriError {
    /// It is neither `redis:` nor `rediss:`.
    Scheme,
    /// A percent sign is not followed by two hexadecimal digits.
    Encoding,
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UriError::Scheme => "Invalid URI scheme",
            UriError::Encoding => "Invalid character in URI component",
        })
    }
}

/// Reads a URI.
pub fn parse(uri: &[u8]) -> Result<Place, UriError> {
    let (tls, rest) = match (
        uri.strip_prefix(b"redis://"),
        uri.strip_prefix(b"rediss://"),
    ) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => return Err(UriError::Scheme),
    };
    let mut place = Place {
        tls,
        ..Place::default()
    };
    let (authority, path) = split(rest, b'/');
    let (account, address) = match authority.iter().rposition(|&byte| byte == b'@') {
        Some(at) => (Some(&authority[..at]), &authority[at + 1..]),
        None => (None, authority),
    };
    if let Some(account) = account {
        match split(account, b':') {
            (password, None) => place.password = Some(decode(password)?),
            (user, Some(password)) => {
                place.user = Some(decode(user)?).filter(|user| !user.is_empty());
                place.password = Some(decode(password)?);
            }
        }
    }
    // An IPv6 address stands in brackets.
    let (host, port) = match address.strip_prefix(b"[") {
        Some(bracketed) => {
            let (host, after) = split(bracketed, b']');
            (host, after.and_then(|after| after.strip_prefix(b":")))
        }
        None => split(address, b':'),
    };
    if !host.is_empty() {
        place.host = Some(decode(host)?);
    }
    place.port = port.map(|port| atoi(port).clamp(0, 65_535) as u16);
    place.database = path
        .map(|path| split(path, b'?').0)
        .filter(|path| !path.is_empty())
        .map(atoi);
    Ok(place)
}

/// What stands before and behind the first `separator`.
fn split(text: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&byte| byte == separator) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

fn decode(text: &[u8]) -> Result<Vec<u8>, UriError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digit = |at: usize| {
            let digit = char::from(*rest.get(at)?).to_digit(16)?;
            u8::try_from(digit).ok()
        };
        match (digit(0), digit(1)) {
            (Some(high), Some(low)) => decoded.push(high << 4 | low),
            _ => return Err(UriError::Encoding),
        }
        rest = &rest[2..];
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Option<Vec<u8>> {
        Some(text.as_bytes().to_vec())
    }

    #[test]
    fn parts_are_told_apart() {
        assert_eq!(
            parse(b"rediss://me:p%40ss@host:7000/3?x=1"),
            Ok(Place {
                tls: true,
                host: bytes("host"),
                port: Some(7000),
                user: bytes("me"),
                password: bytes("p@ss"),
                database: Some(3),
            })
        );
        assert_eq!(parse(b"redis://"), Ok(Place::default()));
        assert_eq!(
            parse(b"redis://secret@host/"),
            Ok(Place {
                host: bytes("host"),
                password: bytes("secret"),
                ..Place::default()
            })
        );
        assert_eq!(
            parse(b"redis://:secret@[::1]:7000"),
            Ok(Place {
                host: bytes("::1"),
                port: Some(7000),
                password: bytes("secret"),
                ..Place::default()
            })
        );
    }

    #[test]
    fn what_is_none_is_refused() {
        assert_eq!(parse(b"foo"), Err(UriError::Scheme));
        assert_eq!(parse(b"http://a"), Err(UriError::Scheme));
        for uri in ["redis://%4@a", "redis://%zz@a", "redis://a%"] {
            assert_eq!(parse(uri.as_bytes()), Err(UriError::Encoding));
        }
    }
}
