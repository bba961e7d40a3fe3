//! Glob patterns as KEYS, SCAN MATCH, PSUBSCRIBE and CONFIG GET understand them.
//!
//! `*` any run, `?` any byte, `[abc]`, `[a-z]` (either order), `[^a]`, `\x` the byte x. Patterns are bytes; there are no
//! invalid ones: an unterminated class ends with the pattern, a trailing backslash is itself. Matching takes no
//! memory and at most `pattern * text` steps: a star that matched is never reconsidered once a later one has been reached.
//!
//! Two of Redis's corners are kept: an empty text is matched by the empty pattern only (the commands that list
//! keys treat the pattern `*` as "all" before they come here), and beyond [`STARS_MAX`] stars nothing matches.

use std::borrow::Cow;

/// Stars (runs of them count once, and one that ends the pattern not at all) with which a pattern can still match.
pub const STARS_MAX: usize = 1000;

/// Whether `pattern` matches all of `text`. With `nocase`, ASCII letters match in both cases, those
/// escaped inside a class excepted.
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let mut rest = pattern;
    let mut remaining = text;
    // Where to go on after a mismatch: what follows the last star, and the text it is tried on.
    let mut last_star: Option<(&[u8], &[u8])> = None;
    let mut stars = 0;
    loop {
        if let [b'*', ..] = rest {
            rest = skip_stars(rest);
            if rest.is_empty() {
                return true;
            }
            stars += 1;
            if stars > STARS_MAX {
                return false;
            }
            last_star = Some((rest, remaining));
        }
        let Some((&byte, after)) = remaining.split_first() else {
            // Every element left needs a byte, and a longer star would leave even fewer.
            return rest.is_empty();
        };
        if let Some(next) = match_element(rest, byte, nocase) {
            rest = next;
            remaining = after;
            continue;
        }
        let Some((after_star, [_, shorter @ ..])) = last_star else {
            return false;
        };
        last_star = Some((after_star, shorter));
        rest = after_star;
        remaining = shorter;
    }
}

/// The one text that `pattern` matches, if it has no wildcard or class; case-sensitively.
pub fn is_literal(pattern: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (prefix, whole) = split_literal(pattern);
    whole.then_some(prefix)
}

/// The bytes that every text matched by `pattern` starts with; case-sensitively.
pub fn literal_prefix(pattern: &[u8]) -> Cow<'_, [u8]> {
    split_literal(pattern).0
}

/// The literal start of a pattern, and whether it is all of it.
fn split_literal(pattern: &[u8]) -> (Cow<'_, [u8]>, bool) {
    let plain = pattern
        .iter()
        .position(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'));
    let Some((start, mut rest)) = plain.and_then(|end| pattern.split_at_checked(end)) else {
        return (Cow::Borrowed(pattern), true);
    };
    if !matches!(rest, [b'\\', ..]) {
        return (Cow::Borrowed(start), false);
    }
    let mut literal = start.to_vec();
    loop {
        let (byte, next) = match rest {
            [] => return (Cow::Owned(literal), true),
            [b'*' | b'?' | b'[', ..] => return (Cow::Owned(literal), false),
            [b'\\', byte, next @ ..] | [byte, next @ ..] => (byte, next),
        };
        literal.push(*byte);
        rest = next;
    }
}

fn skip_stars(mut pattern: &[u8]) -> &[u8] {
    while let [b'*', rest @ ..] = pattern {
        pattern = rest;
    }
    pattern
}

/// Matches `byte` against the first element of `pattern`, which is no star; what follows that element, if it does.
fn match_element(pattern: &[u8], byte: u8, nocase: bool) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', class @ ..] => match_class(class, byte, nocase),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
            same(*literal, byte, nocase).then_some(rest)
        }
    }
}

/// Matches `byte` against a class whose `[` has been taken. Its end is found either way, since `[^` needs it.
fn match_class(class: &[u8], byte: u8, nocase: bool) -> Option<&[u8]> {
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => break,
            [b'\\', literal, next @ ..] => {
                // Not folded, unlike everything else in a class.
                found |= *literal == byte;
                next
            }
            [b']', next @ ..] => {
                rest = next;
                break;
            }
            [first, b'-', last, next @ ..] => {
                found |= in_range(*first, *last, byte, nocase);
                next
            }
            [literal, next @ ..] => {
                found |= same(*literal, byte, nocase);
                next
            }
        };
    }
    (found != negated).then_some(rest)
}

/// Whether `byte` lies between two bytes given in either order. Bytes above 127 are negative, as C's `char` is on
/// x86-64. The ends are ordered before they are folded: `[Z-a]` is empty without case.
fn in_range(first: u8, last: u8, byte: u8, nocase: bool) -> bool {
    let fold = |byte: i8| {
        if nocase {
            (byte as u8).to_ascii_lowercase() as i8
        } else {
            byte
        }
    };
    let (first, last) = (first as i8, last as i8);
    fold(first.min(last)) <= fold(byte as i8) && fold(byte as i8) <= fold(first.max(last))
}

fn same(left: u8, right: u8, nocase: bool) -> bool {
    left == right || (nocase && left.eq_ignore_ascii_case(&right))
}

#[cfg(test)]
mod tests;
