//! How people write numbers, times and commands.
//!
//! Owns the spelling of counts (`10k`), times (`500ms`) and of a command in one line, with quotes as redis-cli has them. What
//! stands in braces stays together, spaces and all, and keeps its braces.

use std::time::Duration;

/// A count, with `k`, `m` or `g` behind it for 1024, its square and its cube, or `e3` and the like for powers of ten.
pub fn count(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    if let Some((digits, power)) = lower.split_once('e') {
        let power: u32 = power.parse().ok()?;
        return digits
            .parse::<u64>()
            .ok()?
            .checked_mul(10_u64.checked_pow(power)?);
    }
    let (digits, unit) = match lower.as_bytes().last()? {
        b'k' => (&lower[..lower.len() - 1], 1 << 10),
        b'm' => (&lower[..lower.len() - 1], 1 << 20),
        b'g' => (&lower[..lower.len() - 1], 1 << 30),
        _ => (&lower[..], 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// A time in seconds, or with `us`, `ms`, `s`, `m` or `h` behind it; up to a year.
pub fn duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 5] = [
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, seconds)| Some((text.strip_suffix(name)?, *seconds)))
        .unwrap_or((text, 1.0));
    let seconds = digits.parse::<f64>().ok()? * unit;
    (seconds.is_finite() && (0.0..=31_536_000.0).contains(&seconds))
        .then(|| Duration::from_secs_f64(seconds))
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Stands for itself.
    Text(Vec<u8>),
    /// What stood in braces.
    Braced(String),
}

/// A word of a command: its pieces.
pub type Word = Vec<Piece>;

/// Splits a line into words. The error says what is wrong.
pub fn split(line: &[u8]) -> Result<Vec<Word>, String> {
    let mut reader = Reader {
        rest: line,
        word: Vec::new(),
        text: Vec::new(),
        begun: false,
        words: Vec::new(),
    };
    while let Some((&byte, rest)) = reader.rest.split_first() {
        reader.rest = rest;
        match byte {
            byte if byte.is_ascii_whitespace() => reader.end_word(),
            b'"' => reader.double_quoted()?,
            b'\'' => reader.single_quoted()?,
            byte => reader.plain(byte)?,
        }
    }
    reader.end_word();
    Ok(reader.words)
}

/// Takes a word apart that has been split off already: only braces mean anything in it.
pub fn pieces(word: &[u8]) -> Result<Word, String> {
    let mut reader = Reader {
        rest: word,
        word: Vec::new(),
        text: Vec::new(),
        begun: true,
        words: Vec::new(),
    };
    while let Some((&byte, rest)) = reader.rest.split_first() {
        reader.rest = rest;
        reader.plain(byte)?;
    }
    reader.end_word();
    Ok(reader.words.pop().unwrap_or_default())
}

struct Reader<'a> {
    rest: &'a [u8],
    word: Word,
    text: Vec<u8>,
    /// A word has begun, were it an empty one.
    begun: bool,
    words: Vec<Word>,
}

impl Reader<'_> {
    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.word.push(Piece::Text(std::mem::take(&mut self.text)));
        }
    }

    fn end_word(&mut self) {
        self.end_text();
        if std::mem::take(&mut self.begun) {
            self.words.push(std::mem::take(&mut self.word));
        }
    }

    /// A byte outside of quotes, or one that is not special inside them.
    fn plain(&mut self, byte: u8) -> Result<(), String> {
        self.begun = true;
        match (byte, self.rest.first()) {
            (b'{', Some(b'{')) | (b'}', Some(b'}')) => {
                self.rest = &self.rest[1..];
                self.text.push(byte);
            }
            (b'{', _) => {
                let end = memchr::memchr(b'}', self.rest)
                    .ok_or("a brace is not closed; a brace that stands for itself is written {{")?;
                let braced = std::str::from_utf8(&self.rest[..end])
                    .map_err(|_| "what stands in braces is no text")?
                    .trim()
                    .to_owned();
                self.rest = &self.rest[end + 1..];
                self.end_text();
                self.word.push(Piece::Braced(braced));
            }
            (b'}', _) => {
                return Err(
                    "a brace is closed that was not opened; one that stands for itself is written }}"
                        .to_owned(),
                );
            }
            _ => self.text.push(byte),
        }
        Ok(())
    }

    fn double_quoted(&mut self) -> Result<(), String> {
        self.begun = true;
        loop {
            let byte = self.byte("\"")?;
            match byte {
                b'"' => return Ok(()),
                b'\\' => {
                    let escaped = self.byte("\"")?;
                    let byte = match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'b' => 8,
                        b'a' => 7,
                        b'x' => {
                            let digits = self.rest.get(..2).unwrap_or_default();
                            let value = std::str::from_utf8(digits)
                                .ok()
                                .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                                .ok_or("\\x is not followed by two hexadecimal digits")?;
                            self.rest = &self.rest[2..];
                            value
                        }
                        other => other,
                    };
                    self.text.push(byte);
                }
                byte => self.plain(byte)?,
            }
        }
    }

    fn single_quoted(&mut self) -> Result<(), String> {
        self.begun = true;
        loop {
            match self.byte("'")? {
                b'\'' => return Ok(()),
                byte => self.plain(byte)?,
            }
        }
    }

    fn byte(&mut self, quote: &str) -> Result<u8, String> {
        let (&byte, rest) = self
            .rest
            .split_first()
            .ok_or_else(|| format!("a quote ({quote}) is not closed"))?;
        self.rest = rest;
        Ok(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.as_bytes().to_vec())
    }

    fn braced(name: &str) -> Piece {
        Piece::Braced(name.to_owned())
    }

    #[test]
    fn counts_and_times_are_read() {
        for (text, value) in [
            ("12", Some(12)),
            ("10k", Some(10_240)),
            ("2M", Some(2 << 20)),
            ("1g", Some(1 << 30)),
            ("1e6", Some(1_000_000)),
            ("", None),
            ("k", None),
            ("-1", None),
            ("1e99", None),
            ("99999999999g", None),
        ] {
            assert_eq!(count(text), value, "{text}");
        }
        for (text, value) in [
            ("10", Some(Duration::from_secs(10))),
            ("0.5", Some(Duration::from_millis(500))),
            ("500ms", Some(Duration::from_millis(500))),
            ("7us", Some(Duration::from_micros(7))),
            ("2m", Some(Duration::from_secs(120))),
            ("1h", Some(Duration::from_secs(3600))),
            ("", None),
            ("x", None),
            ("-1", None),
            ("inf", None),
            ("1e30", None),
        ] {
            assert_eq!(duration(text), value, "{text}");
        }
    }

    #[test]
    fn lines_are_split_as_redis_cli_does() {
        assert_eq!(
            split(b"  SET  \"a b\\x41\\n\" 'c\"d' \"\" x'y'z "),
            Ok(vec![
                vec![text("SET")],
                vec![text("a bA\n")],
                vec![text("c\"d")],
                vec![],
                vec![text("xyz")],
            ])
        );
        assert_eq!(split(b""), Ok(vec![]));
        assert!(split(b"GET \"a").unwrap_err().contains("not closed"));
        assert!(split(b"GET \"\\xzz\"").is_err());
    }

    #[test]
    fn braces_hold_together() {
        assert_eq!(
            split(b"SET p:{key dist=zipf:1 count=5}x \"{value}\" {{tag}}:{id}"),
            Ok(vec![
                vec![text("SET")],
                vec![text("p:"), braced("key dist=zipf:1 count=5"), text("x")],
                vec![braced("value")],
                vec![text("{tag}:"), braced("id")],
            ])
        );
        assert!(split(b"GET {key").is_err());
        assert!(split(b"GET key}").is_err());
        assert_eq!(
            pieces(b"a 'b' {key}"),
            Ok(vec![text("a 'b' "), braced("key")])
        );
        assert_eq!(pieces(b""), Ok(vec![]));
    }
}
