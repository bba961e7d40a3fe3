//! Byte strings as text, in redis-cli's quoting: a word, or `"a \"b\"\x00"`; a long run is written `"a"*70000`.

/// Bytes that one repeated string may make, so that a slip in a file cannot fill the memory.
const REPEATED_BYTES_MAX: usize = 1 << 30;
/// A run of one byte at least this long is written with its count.
const RUN_BYTES_MIN: usize = 48;

/// The bytes as a quoted string.
pub fn quoted(bytes: &[u8]) -> String {
    if let Some(&first) = bytes.first()
        && bytes.len() >= RUN_BYTES_MIN
        && bytes.iter().all(|&byte| byte == first)
    {
        return format!("{}*{}", quoted(&[first]), bytes.len());
    }
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

/// The bytes as a bare word where that is possible, otherwise quoted. `{` starts a placeholder in requests, so
/// a word never holds it.
pub fn word(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\{}#".contains(byte);
    if !bytes.is_empty() && bytes.len() < RUN_BYTES_MIN && bytes.iter().all(plain) {
        String::from_utf8_lossy(bytes).into_owned()
    } else {
        quoted(bytes)
    }
}

/// A request on one line.
pub fn request_line<A: AsRef<[u8]>>(arguments: &[A]) -> String {
    let words: Vec<String> = arguments
        .iter()
        .map(|argument| word(argument.as_ref()))
        .collect();
    words.join(" ")
}

/// Reads a quoted string that `text` begins with, with its count if there is one; returns the bytes and the rest.
pub fn take_quoted(text: &str) -> Result<(Vec<u8>, &str), String> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'"') {
        return Err("a quoted string was expected".to_owned());
    }
    let mut value = Vec::new();
    let mut at = 1;
    loop {
        let Some(&byte) = bytes.get(at) else {
            return Err("the quoted string does not end".to_owned());
        };
        at += 1;
        match byte {
            b'"' => break,
            b'\\' => {
                let Some(&escape) = bytes.get(at) else {
                    return Err("the quoted string does not end".to_owned());
                };
                at += 1;
                match escape {
                    b'n' => value.push(b'\n'),
                    b'r' => value.push(b'\r'),
                    b't' => value.push(b'\t'),
                    b'a' => value.push(7),
                    b'b' => value.push(8),
                    b'x' => {
                        let digits = text.get(at..at + 2).unwrap_or("");
                        value.push(
                            u8::from_str_radix(digits, 16)
                                .map_err(|_| format!("\\x{digits} is no byte"))?,
                        );
                        at += 2;
                    }
                    other => value.push(other),
                }
            }
            other => value.push(other),
        }
    }
    // `at` stands behind an ASCII byte, so the rest begins at a character boundary.
    let rest = text.get(at..).unwrap_or("");
    let Some(count) = rest.strip_prefix('*') else {
        return Ok((value, rest));
    };
    let digits = count.bytes().take_while(u8::is_ascii_digit).count();
    let (count, rest) = count.split_at(digits);
    let count: usize = count
        .parse()
        .map_err(|_| "a count was expected after *".to_owned())?;
    if value
        .len()
        .checked_mul(count)
        .is_none_or(|total| total > REPEATED_BYTES_MAX)
    {
        return Err("the repeated string is too long".to_owned());
    }
    Ok((value.repeat(count), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_is_undone_by_reading() {
        for bytes in [
            &b""[..],
            b"a b",
            b"\x00\xff\r\n\t\"\\",
            b"{now}",
            &[b'x'; 100],
            "é".as_bytes(),
        ] {
            let text = quoted(bytes);
            assert_eq!(take_quoted(&text), Ok((bytes.to_vec(), "")), "{text}");
        }
        assert_eq!(quoted(b"\x00a\"\n"), r#""\x00a\"\n""#);
        assert_eq!(quoted(&[b'x'; 100]), "\"x\"*100");
        assert_eq!(word(b"GET"), "GET");
        assert_eq!(word(b""), "\"\"");
        assert_eq!(request_line(&[&b"SET"[..], b"a b", b"1"]), "SET \"a b\" 1");
        assert_eq!(take_quoted("\"ab\"*3 x"), Ok((b"ababab".to_vec(), " x")));
    }
}
