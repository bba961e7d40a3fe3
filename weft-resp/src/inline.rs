//! Inline requests: one line, arguments separated by spaces, quoted as in a shell.
//!
//! Owns the splitting and unquoting. Does not know where the line came from. Within `"..."` the escapes are `\xHH`,
//! `\n`, `\r`, `\t`, `\b`, `\a`; any other escaped byte stands for itself. Within `'...'` only `\'` is one. A closing
//! quote must be followed by a space or the end of the line. The line holds no newline and no NUL.

use crate::args::{Span, Store};
use crate::error::ProtocolError;

/// Splits `line`, which starts at `base` of the source, and pushes one span per argument.
pub(crate) fn split(
    line: &[u8],
    base: usize,
    spans: &mut Vec<Span>,
    store: &mut Store,
) -> Result<(), ProtocolError> {
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|byte| is_space(*byte)) {
            at += 1;
        }
        if at == line.len() {
            return Ok(());
        }
        let start = at;
        while line
            .get(at)
            .is_some_and(|byte| !ends_word(*byte) && !matches!(byte, b'"' | b'\''))
        {
            at += 1;
        }
        if line.get(at).is_none_or(|byte| ends_word(*byte)) {
            spans.push(Span::source(base + start, at - start));
            continue;
        }
        let own = store.own.len();
        store.own.extend_from_slice(&line[start..at]);
        at += quoted(&line[at..], &mut store.own)?;
        spans.push(Span::own(own, store.own.len() - own));
    }
}

/// Reads the rest of a word that holds a quote into `word` and returns how many bytes of `rest` that took.
fn quoted(rest: &[u8], word: &mut Vec<u8>) -> Result<usize, ProtocolError> {
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'"' | b'\'' => {
                at += 1;
                at += if byte == b'"' {
                    double_quoted(&rest[at..], word)
                } else {
                    single_quoted(&rest[at..], word)
                }?;
                return match rest.get(at) {
                    Some(next) if !is_space(*next) => Err(ProtocolError::UnbalancedQuotes),
                    _ => Ok(at),
                };
            }
            byte if ends_word(byte) => break,
            byte => word.push(byte),
        }
        at += 1;
    }
    Ok(at)
}

/// Reads up to and including the closing `"`.
fn double_quoted(rest: &[u8], word: &mut Vec<u8>) -> Result<usize, ProtocolError> {
    let mut at = 0;
    loop {
        match &rest[at..] {
            [] | [b'\\'] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', ..] => return Ok(at + 1),
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex(*high) << 4 | hex(*low));
                at += 4;
            }
            [b'\\', escaped, ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                at += 2;
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

/// Reads up to and including the closing `'`.
fn single_quoted(rest: &[u8], word: &mut Vec<u8>) -> Result<usize, ProtocolError> {
    let mut at = 0;
    loop {
        match &rest[at..] {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\'', ..] => return Ok(at + 1),
            [b'\\', b'\'', ..] => {
                word.push(b'\'');
                at += 2;
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

/// What separates arguments, as C's `isspace` in the C locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// What ends an unquoted word: fewer bytes than what may stand between words.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
