//! Looking into an answer that is complete: its strings, and the fields that a path leads to.
//!
//! Works on the bytes as they came; builds nothing. Knows RESP2 and RESP3: maps are the list of their keys and values in
//! turn, sets are lists. Invariant: bytes that are no reply lead to fewer findings, never further than their end.

use super::command::Step;

/// A string, number or absent value in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// What it is.
    pub kind: u8,
    /// Its bytes; `None`: it is absent.
    pub bytes: Option<&'a [u8]>,
}

impl<'a> Leaf<'a> {
    /// Whether it is a string that may hold anything.
    pub fn is_string(&self) -> bool {
        matches!(self.kind, b'$' | b'=')
    }
}

/// All leaves of an answer, in order.
pub fn leaves(bytes: &[u8]) -> impl Iterator<Item = Leaf<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            let (head, after) = head(rest)?;
            rest = after;
            if let Head::Leaf(leaf) = head {
                return Some(leaf);
            }
        }
    })
}

/// Calls `found` with each leaf that the path leads to, in order. An empty path leads to the answer itself.
pub fn follow<'a>(bytes: &'a [u8], path: &[Step], found: &mut impl FnMut(&'a [u8])) {
    walk(bytes, path, found);
}

enum Head<'a> {
    Leaf(Leaf<'a>),
    /// So many elements follow; attributes and what they stand before are two.
    Many {
        elements: u64,
        attribute: bool,
    },
}

/// The first thing in `bytes`, and what is behind it (or behind its head, if elements follow).
fn head(bytes: &[u8]) -> Option<(Head<'_>, &[u8])> {
    let (&kind, rest) = bytes.split_first()?;
    let end = memchr::memchr(b'\n', rest)?;
    let line = rest.get(..end.checked_sub(1)?)?;
    let rest = &rest[end + 1..];
    let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
    match kind {
        b'$' | b'=' | b'!' => match usize::try_from(number()?) {
            Ok(len) => {
                let text = rest.get(..len)?;
                // What the three bytes of a format and a colon stand before.
                let text = if kind == b'=' { text.get(4..)? } else { text };
                let leaf = Leaf {
                    kind,
                    bytes: Some(text),
                };
                Some((Head::Leaf(leaf), rest.get(len + 2..)?))
            }
            Err(_) => Some((Head::Leaf(Leaf { kind, bytes: None }), rest)),
        },
        b'*' | b'~' | b'>' | b'%' | b'|' => match u64::try_from(number()?) {
            Ok(elements) => {
                let pairs = matches!(kind, b'%' | b'|');
                let elements = if pairs {
                    elements.checked_mul(2)?
                } else {
                    elements
                };
                let attribute = kind == b'|';
                Some((
                    Head::Many {
                        elements,
                        attribute,
                    },
                    rest,
                ))
            }
            Err(_) => Some((Head::Leaf(Leaf { kind, bytes: None }), rest)),
        },
        b'_' => Some((Head::Leaf(Leaf { kind, bytes: None }), rest)),
        _ => Some((
            Head::Leaf(Leaf {
                kind,
                bytes: Some(line),
            }),
            rest,
        )),
    }
}

/// What is behind the first whole thing in `bytes`.
fn behind(bytes: &[u8]) -> Option<&[u8]> {
    let mut missing = 1_u64;
    let mut rest = bytes;
    while missing > 0 {
        let (head, after) = head(rest)?;
        rest = after;
        missing -= 1;
        if let Head::Many {
            elements,
            attribute,
        } = head
        {
            missing = missing
                .checked_add(elements)?
                .checked_add(u64::from(attribute))?;
        }
    }
    Some(rest)
}

fn walk<'a>(bytes: &'a [u8], path: &[Step], found: &mut impl FnMut(&'a [u8])) -> Option<()> {
    let (head, mut rest) = head(bytes)?;
    match (head, path.split_first()) {
        (
            Head::Many {
                elements,
                attribute: true,
            },
            _,
        ) => {
            for _ in 0..elements {
                rest = behind(rest)?;
            }
            walk(rest, path, found)
        }
        (Head::Leaf(leaf), None) => {
            if let (Some(bytes), true) = (leaf.bytes, !matches!(leaf.kind, b'-' | b'!')) {
                found(bytes);
            }
            Some(())
        }
        (Head::Many { elements, .. }, Some((step, path))) => {
            for index in 0..elements {
                let wanted = match step {
                    Step::All => true,
                    Step::Element(element) => index == *element as u64,
                };
                if wanted {
                    walk(rest, path, found)?;
                    if *step != Step::All {
                        return Some(());
                    }
                }
                rest = behind(rest)?;
            }
            Some(())
        }
        // The path goes on where there is nothing, or ends where there is more.
        (Head::Leaf(_), Some(_)) | (Head::Many { .. }, None) => Some(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::Capture;
    use super::*;

    fn found(bytes: &str, path: &str) -> Vec<String> {
        let path = Capture::parse(&format!("x = {path}")).unwrap().path;
        let mut found = Vec::new();
        follow(bytes.as_bytes(), &path, &mut |bytes| {
            found.push(String::from_utf8(bytes.to_vec()).unwrap());
        });
        found
    }

    const STREAM: &str = "*1\r\n*2\r\n$4\r\njobs\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n\
                          *2\r\n$3\r\n2-0\r\n*2\r\n$1\r\nc\r\n$-1\r\n";

    #[test]
    fn paths_lead_to_fields() {
        assert_eq!(found(STREAM, "0.1.*.0"), ["1-0", "2-0"]);
        assert_eq!(found(STREAM, "0.0"), ["jobs"]);
        assert_eq!(found(STREAM, "0.1.*.1.*"), ["a", "b", "c"]);
        assert_eq!(found(STREAM, "0.1.1.0"), ["2-0"]);
        assert!(found(STREAM, "0.1").is_empty());
        assert!(found(STREAM, "5").is_empty());
        assert_eq!(found("%1\r\n$4\r\njobs\r\n*1\r\n:7\r\n", "1.0"), ["7"]);
        assert_eq!(found("|1\r\n+a\r\n+b\r\n$1\r\nx\r\n", ""), ["x"]);
        assert_eq!(found("+OK\r\n", ""), ["OK"]);
        assert!(found("-ERR x\r\n", "").is_empty());
        assert!(found("$-1\r\n", "").is_empty());
        assert!(found("*-1\r\n", "*").is_empty());
    }

    #[test]
    fn leaves_come_in_order() {
        let all: Vec<Option<&[u8]>> = leaves(STREAM.as_bytes()).map(|leaf| leaf.bytes).collect();
        assert_eq!(all.len(), 7);
        assert_eq!(all[0], Some(&b"jobs"[..]));
        assert_eq!(all[6], None);
        let verbatim: Vec<Leaf<'_>> = leaves(b"=7\r\ntxt:abc\r\n").collect();
        assert_eq!(verbatim[0].bytes, Some(&b"abc"[..]));
        assert!(verbatim[0].is_string());
    }

    #[test]
    fn what_is_cut_leads_nowhere() {
        for end in 0..STREAM.len() {
            let cut = &STREAM.as_bytes()[..end];
            leaves(cut).for_each(drop);
            follow(cut, &[Step::All, Step::All, Step::All], &mut |_| {});
        }
        for broken in [
            "$99\r\nab\r\n",
            "*99999999999999\r\n",
            "$x\r\n",
            "\r\n",
            "%9223372036854775807\r\n",
        ] {
            assert!(behind(broken.as_bytes()).is_none() || broken == "\r\n");
        }
    }
}
