//! Glob matching for the names that `CONFIG GET` patterns select: `*`, `?`, `[a-z]`, `[^a-z]` and `\` escapes, in any case.
//!
//! Names are short and come from the table; a pattern costs at most its length times the name's, since only the last `*` is
//! ever returned to.

/// Whether `pattern` matches the whole of `name`, ignoring case.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            None if n == name.len() => return true,
            None => None,
            Some(_) => name.get(n).and_then(|&byte| match_one(&pattern[p..], byte)),
        };
        match step {
            Some(length) => {
                p += length;
                n += 1;
            }
            None => match star {
                Some((after, start)) if start < name.len() => {
                    star = Some((after, start + 1));
                    p = after;
                    n = start + 1;
                }
                _ => return false,
            },
        }
    }
}

/// Whether the pattern has characters that select more than one name.
pub(super) fn is_pattern(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Length of the pattern's first element if it matches `byte`.
fn match_one(pattern: &[u8], byte: u8) -> Option<usize> {
    let byte = byte.to_ascii_lowercase();
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (escaped.to_ascii_lowercase() == byte).then_some(2),
        [b'[', class @ ..] => {
            let (negated, mut at) = match class {
                [b'^', ..] => (true, 1),
                _ => (false, 0),
            };
            let mut found = false;
            loop {
                match &class[at.min(class.len())..] {
                    [] => break,
                    [b']', ..] => {
                        at += 1;
                        break;
                    }
                    [b'\\', escaped, ..] => {
                        found |= escaped.to_ascii_lowercase() == byte;
                        at += 2;
                    }
                    [low, b'-', high, ..] => {
                        let (low, high) = (low.to_ascii_lowercase(), high.to_ascii_lowercase());
                        found |= (low.min(high)..=low.max(high)).contains(&byte);
                        at += 3;
                    }
                    [one, ..] => {
                        found |= one.to_ascii_lowercase() == byte;
                        at += 1;
                    }
                }
            }
            (found != negated).then_some(1 + at)
        }
        [literal, ..] => (literal.to_ascii_lowercase() == byte).then_some(1),
        [] => None,
    }
}
