//! The lines of MONITOR.
//!
//! Owns their grammar, escapes included: what stands in quotes becomes the bytes that the client sent. Takes lines from a
//! server as well as those that redis-cli prints. Invariant: a line that does not follow the grammar to its end is refused.
//!
//! ```text
//!  [+]SECONDS.MICROSECONDS [DATABASE SOURCE] "ARGUMENT" "ARGUMENT" ...
//!  SOURCE: address:port, [address]:port, unix:path, lua       escapes: \" \\ \n \r \t \a \b \xHH
//! ```

use std::fmt;

/// What a line tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// In which database.
    pub database: u32,
    /// Who sent it.
    pub source: Source<'a>,
    /// The command. At least one argument.
    pub arguments: Vec<Vec<u8>>,
}

/// Who sent a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// The client with this address.
    Client(&'a [u8]),
    /// A script, which another line has called.
    Script,
}

/// Why a line is none of MONITOR's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// It does not begin with a time.
    Time,
    /// Behind the time there is no database and source in brackets.
    Source,
    /// An argument does not begin with a quote, or does not end with one.
    Quote,
    /// A backslash is followed by something that is no escape.
    Escape,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LineError::Time => "no time at its beginning",
            LineError::Source => "no database and source in brackets behind the time",
            LineError::Quote => "an argument that is not in quotes",
            LineError::Escape => "a backslash with something behind it that is no escape",
        })
    }
}

/// Reads a line, without its end.
pub fn parse(line: &[u8]) -> Result<Line<'_>, LineError> {
    let line = line.strip_prefix(b"+").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (at_us, rest) = time(line).ok_or(LineError::Time)?;
    let rest = rest.strip_prefix(b"[").ok_or(LineError::Source)?;
    // An address of IPv6 has brackets of its own, but no argument behind them.
    let end = memchr::memmem::find(rest, b"] \"").ok_or(LineError::Source)?;
    let (database, source) = database_and_source(&rest[..end]).ok_or(LineError::Source)?;
    Ok(Line {
        at_us,
        database,
        source,
        arguments: arguments(&rest[end + 2..])?,
    })
}

/// The time in microseconds, and what is behind the space after it.
fn time(line: &[u8]) -> Option<(u64, &[u8])> {
    let end = memchr::memchr(b' ', line)?;
    let text = std::str::from_utf8(&line[..end]).ok()?;
    let (seconds, fraction) = text.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() != 6 {
        return None;
    }
    let at_us = seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(fraction.parse().ok()?)?;
    Some((at_us, &line[end + 1..]))
}

fn database_and_source(text: &[u8]) -> Option<(u32, Source<'_>)> {
    let space = memchr::memchr(b' ', text)?;
    let database = std::str::from_utf8(&text[..space]).ok()?.parse().ok()?;
    let source = match &text[space + 1..] {
        b"" => return None,
        b"lua" => Source::Script,
        address => Source::Client(address),
    };
    Some((database, source))
}

fn arguments(text: &[u8]) -> Result<Vec<Vec<u8>>, LineError> {
    let mut arguments = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.strip_prefix(b"\"").ok_or(LineError::Quote)?;
        let mut argument = Vec::new();
        loop {
            let end = memchr::memchr2(b'"', b'\\', rest).ok_or(LineError::Quote)?;
            argument.extend_from_slice(&rest[..end]);
            let special = rest[end];
            rest = &rest[end + 1..];
            if special == b'"' {
                break;
            }
            let (byte, len) = escape(rest).ok_or(LineError::Escape)?;
            argument.push(byte);
            rest = &rest[len..];
        }
        arguments.push(argument);
        match rest.split_first() {
            None => return Ok(arguments),
            Some((b' ', after)) => rest = after,
            Some(_) => return Err(LineError::Quote),
        }
    }
}

/// The byte that stands behind a backslash, and how long its escape is.
fn escape(rest: &[u8]) -> Option<(u8, usize)> {
    Some(match rest.first()? {
        b'n' => (b'\n', 1),
        b'r' => (b'\r', 1),
        b't' => (b'\t', 1),
        b'a' => (7, 1),
        b'b' => (8, 1),
        byte @ (b'"' | b'\\') => (*byte, 1),
        b'x' => {
            let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16);
            ((digit(1)? << 4 | digit(2)?) as u8, 3)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let line = parse(b"+1339518083.107412 [3 127.0.0.1:60866] \"set\" \"a b\" \"\\x00\\n\\\"\\\\\\xfe\\a\\b\\t\\r\"\r").unwrap();
        assert_eq!(line.at_us, 1_339_518_083_107_412);
        assert_eq!(line.database, 3);
        assert_eq!(line.source, Source::Client(b"127.0.0.1:60866"));
        assert_eq!(
            line.arguments,
            [&b"set"[..], b"a b", b"\0\n\"\\\xfe\x07\x08\t\r"]
        );
        let source = |line: &'static str| parse(line.as_bytes()).unwrap().source;
        assert_eq!(
            source("1.000000 [0 [::1]:7] \"PING\""),
            Source::Client(b"[::1]:7")
        );
        assert_eq!(
            source("1.000000 [0 unix:/tmp/a b] \"PING\" \"\""),
            Source::Client(b"unix:/tmp/a b")
        );
        assert_eq!(source("1.000000 [0 lua] \"get\" \"] \""), Source::Script);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for (line, error) in [
            ("", LineError::Time),
            ("OK", LineError::Time),
            ("1.5 [0 a:1] \"x\"", LineError::Time),
            ("x.000000 [0 a:1] \"x\"", LineError::Time),
            ("99999999999999999999.000000 [0 a:1] \"x\"", LineError::Time),
            ("1.000000 0 a:1 \"x\"", LineError::Source),
            ("1.000000 [0 a:1]", LineError::Source),
            ("1.000000 [0 ] \"x\"", LineError::Source),
            ("1.000000 [-1 a:1] \"x\"", LineError::Source),
            ("1.000000 [0 a:1] \"x", LineError::Quote),
            ("1.000000 [0 a:1] \"x\" ", LineError::Quote),
            ("1.000000 [0 a:1] \"x\"y", LineError::Quote),
            ("1.000000 [0 a:1] \"\\q\"", LineError::Escape),
            ("1.000000 [0 a:1] \"\\x0g\"", LineError::Escape),
            ("1.000000 [0 a:1] \"\\x0", LineError::Escape),
        ] {
            assert_eq!(parse(line.as_bytes()), Err(error), "{line}");
        }
    }

    #[test]
    fn random_bytes_are_read_without_harm() {
        let mut random = fastrand::Rng::with_seed(1);
        let alphabet = b"1.0 [] \"\\xn:a\r";
        for _ in 0..20_000 {
            let mut line = b"1.000000 [0 a:1] \"".to_vec();
            line.truncate(random.usize(..=line.len()));
            line.extend((0..random.usize(..20)).map(|_| alphabet[random.usize(..alphabet.len())]));
            let _ = parse(&line);
        }
    }
}
