//! The syntax of one configuration line: words, quotes and escapes, and the way back.
//!
//! Works on bytes and knows no parameter. Splitting accepts what the reference's own splitter accepts; quoting produces text
//! that splits back into the same bytes.

/// Cuts a line at its first zero byte and drops blanks around it.
pub(super) fn trim(line: &[u8]) -> &[u8] {
    let line = line.split(|&byte| byte == 0).next().unwrap_or(line);
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = line.iter().take_while(|byte| blank(byte)).count();
    let line = &line[start..];
    let end = line.len() - line.iter().rev().take_while(|byte| blank(byte)).count();
    &line[..end]
}

/// Splits a line into words. `None` if a quote is not closed or is followed by anything but white space.
pub(super) fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = &rest[rest.iter().take_while(|byte| is_space(**byte)).count()..];
        if rest.is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        loop {
            match rest {
                [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => break,
                [b'"', quoted @ ..] => {
                    rest = after_quote(double_quoted(quoted, &mut word)?)?;
                    break;
                }
                [b'\'', quoted @ ..] => {
                    rest = after_quote(single_quoted(quoted, &mut word)?)?;
                    break;
                }
                [byte, after @ ..] => {
                    word.push(*byte);
                    rest = after;
                }
            }
        }
        words.push(word);
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn after_quote(rest: &[u8]) -> Option<&[u8]> {
    rest.first()
        .is_none_or(|byte| is_space(*byte))
        .then_some(rest)
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) << 4 | hex(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

fn hex(digit: u8) -> u8 {
    char::from(digit).to_digit(16).unwrap_or(0) as u8
}

/// The text in double quotes, with escapes for everything that is not printable ASCII.
pub(crate) fn quote(text: &[u8]) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text {
        match byte {
            b'\\' | b'"' => {
                quoted.push('\\');
                quoted.push(char::from(*byte));
            }
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'\t' => quoted.push_str("\\t"),
            7 => quoted.push_str("\\a"),
            8 => quoted.push_str("\\b"),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            other => quoted.push_str(&format!("\\x{other:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// The text as it is if it is a plain word, else in quotes.
pub(super) fn quote_if_needed(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(word) if is_plain(text) => word.to_owned(),
        _ => quote(text),
    }
}

/// Whether a text stands for itself without quotes.
pub(super) fn is_plain(text: &[u8]) -> bool {
    let plain = |byte: &u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'\'' | b'\\');
    !text.is_empty() && text.iter().all(plain)
}
