//! Where `unsafe` may stand: in the modules listed here, nowhere else.
//!
//! A crate without such a module says `#![forbid(unsafe_code)]` in its root. Comments and strings do not count.

/// Files, and folders ending in a slash, that may use `unsafe`; each is a place where the design allows it.
const ALLOWED: &[&str] = &[
    "weft-keyspace/src/arena.rs",
    "weft-keyspace/src/arena/",
    "weft-keyspace/src/entry.rs",
    "weft-keyspace/src/gate.rs",
    "weft-keyspace/src/gate/",
    "weft-keyspace/src/keyspace.rs",
    "weft-keyspace/src/latch.rs",
    "weft-keyspace/src/shard.rs",
    "weft-keyspace/src/table.rs",
    "weft-keyspace/src/table/",
    "weft-reactor/src/mailbox.rs",
    "weft-reactor/src/uring/buffers.rs",
    "weft-reactor/src/uring/ring.rs",
    "weft-reactor/tests/refusal.rs",
    "weft-server/src/allocator.rs",
];

const FORBID: &str = "#![forbid(unsafe_code)]";

/// Looks for the keyword, and in the root of a crate for its prohibition.
pub(crate) fn check_unsafe(file: &str, text: &str, complaints: &mut Vec<String>) {
    let allowed = ALLOWED
        .iter()
        .any(|place| file == *place || (place.ends_with('/') && file.starts_with(place)));
    if !allowed {
        for (number, line) in code_only(text).lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.any(|word| word == "unsafe") {
                complaints.push(format!(
                    "{file}:{}: `unsafe` may not stand here",
                    number + 1
                ));
            }
        }
    }
    if let Some(name) = file
        .strip_suffix("/src/lib.rs")
        .or_else(|| file.strip_suffix("/src/main.rs"))
    {
        let has_place = ALLOWED
            .iter()
            .any(|place| place.starts_with(&format!("{name}/")));
        if !has_place && !text.contains(FORBID) {
            complaints.push(format!("{file}: {FORBID} is missing"));
        }
    }
}

/// The text with comments, strings and characters blanked out; the lines stay.
fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let length = if rest.starts_with(b"//") {
            rest.iter()
                .position(|&byte| byte == b'\n')
                .unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            block_comment(rest)
        } else if byte == b'"' {
            string(rest)
        } else if byte == b'r' && !follows_word(bytes, at) {
            raw_string(rest)
        } else if byte == b'\'' {
            character(rest)
        } else {
            0
        };
        if length == 0 {
            code.push(char::from(byte));
            at += 1;
        } else {
            code.extend(
                rest[..length]
                    .iter()
                    .map(|&byte| if byte == b'\n' { '\n' } else { ' ' }),
            );
            at += length;
        }
    }
    code
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|before| bytes.get(before))
        // b"..." and br"..." are strings too, their letter stays as code.
        .is_some_and(|&byte| (byte.is_ascii_alphanumeric() && byte != b'b') || byte == b'_')
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of r"..." or r#"..."#; 0 if it is none.
fn raw_string(rest: &[u8]) -> usize {
    let marks = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(1 + marks) != Some(&b'"') {
        return 0;
    }
    let end: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', marks))
        .collect();
    let body = 2 + marks;
    let found = rest[body..]
        .windows(end.len())
        .position(|window| window == end);
    found.map_or(rest.len(), |place| body + place + end.len())
}

/// The length of a character literal; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', ..] => {
            let end = rest.iter().skip(3).position(|&byte| byte == b'\'');
            end.map_or(0, |place| place + 4)
        }
        [_, _, b'\'', ..] => 3,
        // One character of several bytes.
        [_, first, ..] if !first.is_ascii() => rest
            .iter()
            .take(6)
            .skip(1)
            .position(|&byte| byte == b'\'')
            .map_or(0, |place| place + 2),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(file: &str, text: &str) -> usize {
        let mut complaints = Vec::new();
        check_unsafe(file, text, &mut complaints);
        complaints.len()
    }

    #[test]
    fn the_keyword_counts_and_its_mention_does_not() {
        assert_eq!(complaints("a/src/b.rs", "fn f() { unsafe { g() } }"), 1);
        assert_eq!(
            complaints(
                "a/src/b.rs",
                "// unsafe\n/* unsafe /* unsafe */ unsafe */ fn f() {}"
            ),
            0
        );
        assert_eq!(
            complaints(
                "a/src/b.rs",
                r##"const A: &str = "unsafe \" unsafe"; const B: &str = r#"unsafe"#;"##
            ),
            0
        );
        assert_eq!(
            complaints(
                "a/src/b.rs",
                "fn f<'a>(x: &'a str) { let _ = ('\"', '\\'', 'é'); unsafe { g() } }"
            ),
            1
        );
        assert_eq!(
            complaints("a/src/b.rs", "#![deny(unsafe_op_in_unsafe_fn)]"),
            0
        );
        assert_eq!(
            complaints("weft-keyspace/src/arena/ground.rs", "unsafe {}"),
            0
        );
    }

    #[test]
    fn a_crate_without_a_place_for_it_forbids_it() {
        assert_eq!(complaints("a/src/lib.rs", "//! A.\n"), 1);
        assert_eq!(
            complaints("a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n"),
            0
        );
        assert_eq!(complaints("weft-keyspace/src/lib.rs", "//! A.\n"), 0);
    }
}
