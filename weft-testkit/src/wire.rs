//! A reply as it stands on the wire, with the text of its numbers kept.
//!
//! The kit scans and writes replies itself, apart from the product's own protocol crate: a reference must not share
//! its mistakes with what it judges. Replies are those of servers that the kit started, so the bounds are wide.

/// Depth of nested replies that are followed.
const DEPTH_MAX: usize = 64;

/// One reply. Text that the protocol leaves to the server (doubles, big numbers) is kept as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `+OK`
    Simple(Vec<u8>),
    /// `-ERR ...`
    Error(Vec<u8>),
    /// `:1`
    Integer(i64),
    /// `$1 a`
    Bulk(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    /// `_`, RESP3
    Null,
    /// `,1.5`, RESP3: the text after the comma
    Double(Vec<u8>),
    /// `#t`, RESP3
    Boolean(bool),
    /// `(123`, RESP3: the text after the parenthesis
    BigNumber(Vec<u8>),
    /// `=`, RESP3: format and text as they came, `txt:...`
    Verbatim(Vec<u8>),
    /// `!`, RESP3
    BulkError(Vec<u8>),
    /// `*`, `~`, `>` or `%` with its elements; a map's keys and values alternate
    Sequence(Kind, Vec<Wire>),
    /// `|`, RESP3: attributes, keys and values alternating, and the reply they belong to
    Attributed(Vec<Wire>, Box<Wire>),
}

/// What a sequence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `*`
    Array,
    /// `~`, RESP3
    Set,
    /// `>`, RESP3
    Push,
    /// `%`, RESP3
    Map,
}

impl Kind {
    /// The byte that begins such a sequence on the wire and in the notation of case files.
    pub fn mark(self) -> u8 {
        match self {
            Kind::Array => b'*',
            Kind::Set => b'~',
            Kind::Push => b'>',
            Kind::Map => b'%',
        }
    }

    /// The kind that a byte begins.
    pub fn of_mark(mark: u8) -> Option<Self> {
        [Kind::Array, Kind::Set, Kind::Push, Kind::Map]
            .into_iter()
            .find(|kind| kind.mark() == mark)
    }

    fn elements_per_count(self) -> usize {
        if self == Kind::Map { 2 } else { 1 }
    }
}

impl Wire {
    /// Reads one whole reply; `None` unless `bytes` are exactly one reply in its one canonical writing.
    pub fn scan(bytes: &[u8]) -> Option<Self> {
        Self::scan_first(bytes)
            .filter(|(_, length)| *length == bytes.len())
            .map(|(wire, _)| wire)
    }

    /// Reads the reply that `bytes` begin with, and its length; `None` unless it is whole and canonical.
    pub fn scan_first(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut rest = bytes;
        let wire = Self::scan_one(&mut rest, 0)?;
        let length = bytes.len() - rest.len();
        (wire.to_bytes() == bytes[..length]).then_some((wire, length))
    }

    fn scan_one(rest: &mut &[u8], depth: usize) -> Option<Self> {
        let line = take_line(rest)?;
        let (&mark, text) = line.split_first()?;
        Some(match mark {
            b'+' => Wire::Simple(text.to_vec()),
            b'-' => Wire::Error(text.to_vec()),
            b':' => Wire::Integer(number(text)?),
            b',' => Wire::Double(text.to_vec()),
            b'(' => Wire::BigNumber(text.to_vec()),
            b'_' => Wire::Null,
            b'#' => Wire::Boolean(text == b"t"),
            b'$' if text == b"-1" => Wire::NullBulk,
            b'*' if text == b"-1" => Wire::NullArray,
            b'$' => Wire::Bulk(take_bulk(rest, text)?),
            b'=' => Wire::Verbatim(take_bulk(rest, text)?),
            b'!' => Wire::BulkError(take_bulk(rest, text)?),
            b'|' => {
                let attributes = Self::scan_many(rest, text, Kind::Map, depth)?;
                Wire::Attributed(attributes, Box::new(Self::scan_one(rest, depth + 1)?))
            }
            _ => {
                let kind = Kind::of_mark(mark)?;
                Wire::Sequence(kind, Self::scan_many(rest, text, kind, depth)?)
            }
        })
    }

    fn scan_many(rest: &mut &[u8], count: &[u8], kind: Kind, depth: usize) -> Option<Vec<Self>> {
        let count = usize::try_from(number(count)?)
            .ok()?
            .checked_mul(kind.elements_per_count())?;
        if depth == DEPTH_MAX {
            return None;
        }
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(Self::scan_one(rest, depth + 1)?);
        }
        Some(elements)
    }

    /// The reply's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Wire::Simple(text) => line(out, b'+', text),
            Wire::Error(text) => line(out, b'-', text),
            Wire::Integer(value) => line(out, b':', value.to_string().as_bytes()),
            Wire::Double(text) => line(out, b',', text),
            Wire::BigNumber(text) => line(out, b'(', text),
            Wire::Null => line(out, b'_', b""),
            Wire::NullBulk => line(out, b'$', b"-1"),
            Wire::NullArray => line(out, b'*', b"-1"),
            Wire::Boolean(value) => line(out, b'#', if *value { b"t" } else { b"f" }),
            Wire::Bulk(bytes) => bulk(out, b'$', bytes),
            Wire::Verbatim(bytes) => bulk(out, b'=', bytes),
            Wire::BulkError(bytes) => bulk(out, b'!', bytes),
            Wire::Sequence(kind, elements) => {
                let count = elements.len() / kind.elements_per_count();
                line(out, kind.mark(), count.to_string().as_bytes());
                elements.iter().for_each(|element| element.write(out));
            }
            Wire::Attributed(attributes, reply) => {
                line(out, b'|', (attributes.len() / 2).to_string().as_bytes());
                attributes.iter().for_each(|element| element.write(out));
                reply.write(out);
            }
        }
    }

    /// The bytes of a string of any kind, errors excepted.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Wire::Simple(text) | Wire::Bulk(text) => Some(text),
            Wire::Verbatim(text) => text.get(4..),
            _ => None,
        }
    }

    /// The same as a `String`, bytes that are no UTF-8 replaced; empty for anything but a string.
    pub fn string(&self) -> String {
        self.text()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .unwrap_or_default()
    }

    /// The elements of an array, set or push; of a map, keys and values alternating.
    pub fn elements(&self) -> Option<&[Wire]> {
        match self {
            Wire::Sequence(_, elements) => Some(elements),
            _ => None,
        }
    }

    /// Keys and values of a map, or of an array that stands for one in RESP2.
    pub fn pairs(&self) -> Vec<(&Wire, &Wire)> {
        let elements = self.elements().unwrap_or_default();
        elements
            .chunks_exact(2)
            .map(|pair| (&pair[0], &pair[1]))
            .collect()
    }

    /// The value of a map under a key.
    pub fn field(&self, key: &str) -> Option<&Wire> {
        self.pairs()
            .into_iter()
            .find(|(name, _)| name.text() == Some(key.as_bytes()))
            .map(|(_, value)| value)
    }

    /// The integer, if it is one.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Wire::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it is an error of either kind.
    pub fn is_error(&self) -> bool {
        matches!(self, Wire::Error(_) | Wire::BulkError(_))
    }

    /// Whether it is one of the three nulls.
    pub fn is_null(&self) -> bool {
        matches!(self, Wire::NullBulk | Wire::NullArray | Wire::Null)
    }
}

/// Writes a request as a client does.
pub fn write_request<A: AsRef<[u8]>>(out: &mut Vec<u8>, arguments: &[A]) {
    line(out, b'*', arguments.len().to_string().as_bytes());
    for argument in arguments {
        bulk(out, b'$', argument.as_ref());
    }
}

fn line(out: &mut Vec<u8>, mark: u8, text: &[u8]) {
    out.push(mark);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn bulk(out: &mut Vec<u8>, mark: u8, bytes: &[u8]) {
    line(out, mark, bytes.len().to_string().as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn take_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, after) = rest.split_at_checked(end)?;
    *rest = after.get(2..)?;
    Some(line)
}

fn take_bulk(rest: &mut &[u8], length: &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(number(length)?).ok()?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after.strip_prefix(b"\r\n")?;
    Some(bytes.to_vec())
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_scan_and_write() {
        let bytes: &[u8] = b"*9\r\n+OK\r\n-ERR x\r\n:-5\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n%1\r\n_\r\n,1e+100\r\n~1\r\n#t\r\n=7\r\ntxt:abc\r\n";
        let wire = Wire::scan(bytes).expect("a whole reply");
        assert_eq!(wire.to_bytes(), bytes);
        let elements = wire.elements().expect("an array");
        assert_eq!(elements[2], Wire::Integer(-5));
        assert_eq!(elements[3], Wire::Bulk(b"a\r\n".to_vec()));
        assert_eq!(
            elements[6],
            Wire::Sequence(
                Kind::Map,
                vec![Wire::Null, Wire::Double(b"1e+100".to_vec())]
            )
        );
        assert_eq!(elements[8].text(), Some(&b"abc"[..]));
    }

    #[test]
    fn what_is_not_canonical_or_whole_is_refused() {
        for bytes in [
            &b":05\r\n"[..],
            b"$3\r\nab\r\n",
            b"+OK\r\n+OK\r\n",
            b"*2\r\n:1\r\n",
            b"$02\r\nab\r\n",
            b"",
        ] {
            assert_eq!(Wire::scan(bytes), None, "{bytes:?}");
        }
    }
}
