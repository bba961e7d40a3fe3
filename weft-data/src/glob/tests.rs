//! Tests of glob patterns against values asked of Redis 8.2.3, and against their definition.

use proptest::prelude::*;

use super::*;

#[rustfmt::skip]
const TEXTS: &[&[u8]] = &[
    b"",
    b"a",
    b"b",
    b"c",
    b"z",
    b"-",
    b"]",
    b"[",
    b"\\",
    b"^",
    b"*",
    b"?",
    b"9",
    b"A",
    b",",
    b"!",
    b"ab",
    b"ba",
    b"aa",
    b"aab",
    b"a]",
    b"[a]",
    b"a[",
    b"a\\",
    b"]]",
    b"a-",
    b"^]",
    b"a*",
    b"hello",
    b"hallo",
    b"hllo",
    b"heello",
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff",
];

/// Patterns and the keys of [`TEXTS`] that KEYS then lists (Redis 8.2.3; for `*` the empty key is left out, which KEYS
/// lists without matching).
#[rustfmt::skip]
const PATTERNS: &[(&[u8], &[&[u8]])] = &[
    (b"", &[b""]),
    (b"*", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"ab", b"ba", b"aa", b"aab", b"a]", b"[a]", b"a[", b"a\\", b"]]", b"a-", b"^]", b"a*", b"hello", b"hallo", b"hllo", b"heello", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"**", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"ab", b"ba", b"aa", b"aab", b"a]", b"[a]", b"a[", b"a\\", b"]]", b"a-", b"^]", b"a*", b"hello", b"hallo", b"hllo", b"heello", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"?", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"??", &[b"ab", b"ba", b"aa", b"a]", b"a[", b"a\\", b"]]", b"a-", b"^]", b"a*"]),
    (b"a", &[b"a"]),
    (b"ab", &[b"ab"]),
    (b"a*", &[b"a", b"ab", b"aa", b"aab", b"a]", b"a[", b"a\\", b"a-", b"a*"]),
    (b"*a", &[b"a", b"ba", b"aa"]),
    (b"*a*", &[b"a", b"ab", b"ba", b"aa", b"aab", b"a]", b"[a]", b"a[", b"a\\", b"a-", b"a*", b"hallo"]),
    (b"a*b", &[b"ab", b"aab"]),
    (b"a?", &[b"ab", b"aa", b"a]", b"a[", b"a\\", b"a-", b"a*"]),
    (b"*?", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"ab", b"ba", b"aa", b"aab", b"a]", b"[a]", b"a[", b"a\\", b"]]", b"a-", b"^]", b"a*", b"hello", b"hallo", b"hllo", b"heello", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"?*", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"ab", b"ba", b"aa", b"aab", b"a]", b"[a]", b"a[", b"a\\", b"]]", b"a-", b"^]", b"a*", b"hello", b"hallo", b"hllo", b"heello", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"**a", &[b"a", b"ba", b"aa"]),
    (b"a**", &[b"a", b"ab", b"aa", b"aab", b"a]", b"a[", b"a\\", b"a-", b"a*"]),
    (b"h?llo", &[b"hello", b"hallo"]),
    (b"h*llo", &[b"hello", b"hallo", b"hllo", b"heello"]),
    (b"h[ae]llo", &[b"hello", b"hallo"]),
    (b"h[^e]llo", &[b"hallo"]),
    (b"h[a-b]llo", &[b"hallo"]),
    (b"[", &[]),
    (b"[a", &[b"a"]),
    (b"[^", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"[^a", &[b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"[]", &[]),
    (b"[]a]", &[]),
    (b"[^]", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"[^]a]", &[b"[a]"]),
    (b"a[", &[]),
    (b"a[b", &[b"ab"]),
    (b"\\", &[b"\\"]),
    (b"a\\", &[b"a\\"]),
    (b"\\a", &[b"a"]),
    (b"\\\\", &[b"\\"]),
    (b"[\\", &[b"\\"]),
    (b"[\\]", &[b"]"]),
    (b"[\\]]", &[b"]"]),
    (b"[a\\", &[b"a", b"\\"]),
    (b"[a-", &[b"a", b"-"]),
    (b"[a-z", &[b"a", b"b", b"c", b"z"]),
    (b"[a-]", &[b"a", b"]", b"^"]),
    (b"[z-a]", &[b"a", b"b", b"c", b"z"]),
    (b"[\\a-z]", &[b"a", b"z", b"-"]),
    (b"[a-\\]", &[b"a", b"]", b"\\", b"^"]),
    (b"[a-\\]]", &[b"a]", b"]]", b"^]"]),
    (b"[-a]", &[b"a", b"-"]),
    (b"[a-z-9]", &[b"a", b"b", b"c", b"z", b"-", b"9"]),
    (b"[^^]", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"*", b"?", b"9", b"A", b",", b"!", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"[!a]", &[b"a", b"!"]),
    (b"[^a-c]", &[b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"*[", &[]),
    (b"*\\", &[b"\\", b"a\\"]),
    (b"[*]", &[b"*"]),
    (b"[?]", &[b"?"]),
    (b"[a-c-e]", &[b"a", b"b", b"c", b"-"]),
    (b"[\\-]", &[b"-"]),
    (b"[\\\\]", &[b"\\"]),
    (b"[[]", &[b"["]),
    (b"[[a]]", &[b"a]"]),
    (b"[a]]", &[b"a]"]),
    (b"*\\*", &[b"*", b"a*"]),
    (b"a*\\", &[b"a\\"]),
    (b"[^\\]]", &[b"a", b"b", b"c", b"z", b"-", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"[\\^a]", &[b"a", b"^"]),
    (b"\\[a]", &[b"[a]"]),
    (b"[--a]", &[b"a", b"-", b"]", b"[", b"\\", b"^", b"?", b"9", b"A"]),
    (b"[+--]", &[b"-", b","]),
    (b"[a\\-z]", &[b"a", b"z", b"-"]),
    (b"\\*", &[b"*"]),
    (b"\\?", &[b"?"]),
    (b"[^a]*", &[b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"ba", b"[a]", b"]]", b"^]", b"hello", b"hallo", b"hllo", b"heello", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"*[^a]", &[b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"ab", b"aab", b"a]", b"[a]", b"a[", b"a\\", b"]]", b"a-", b"^]", b"a*", b"hello", b"hallo", b"hllo", b"heello", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"*]", &[b"]", b"a]", b"[a]", b"]]", b"^]"]),
    (b"[\x00-\x7f]", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"\x00", b"\x7f"]),
    (b"[\x80-\xff]", &[b"\x80", b"\xff"]),
    (b"[\x00-\xff]", &[b"\x00", b"\xff"]),
    (b"[\x7f-\x80]", &[b"a", b"b", b"c", b"z", b"-", b"]", b"[", b"\\", b"^", b"*", b"?", b"9", b"A", b",", b"!", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (b"\xff*", &[b"\xff"]),
];

#[test]
fn keys_match_as_in_redis() {
    for &(pattern, expected) in PATTERNS {
        let found: Vec<&[u8]> = TEXTS
            .iter()
            .copied()
            .filter(|text| matches(pattern, text, false))
            .collect();
        assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(pattern));
    }
}

/// Answers of COMMAND LIST FILTERBY PATTERN (Redis 8.2.3), which ignores case.
#[test]
fn case_is_folded_except_behind_a_backslash_in_a_class() {
    for (pattern, text, expected) in [
        ("GE[S-U]", "get", true),
        ("GE[U-S]", "get", true),
        ("\\GET", "get", true),
        ("[\\G]ET", "get", false),
        ("[\\g]ET", "get", true),
        ("[G]ET", "get", true),
        ("[^g]ET", "get", false),
        ("[^g]ET", "set", true),
        ("[Z-a]ET", "get", false),
        ("[@-h]ET", "get", true),
        ("[F-h]ET", "get", true),
        ("G?T", "get", true),
        ("g[E]T", "get", true),
    ] {
        assert_eq!(
            matches(pattern.as_bytes(), text.as_bytes(), true),
            expected,
            "{pattern}"
        );
    }
    assert!(!matches(b"GET", b"get", false));
    assert!(matches(b"get", b"GET", true));
}

#[test]
fn more_than_a_thousand_stars_match_nothing() {
    for (count, star_first, letter_first, together) in [
        (10, true, true, true),
        (1000, true, true, true),
        (1001, false, true, true),
        (1002, false, false, true),
    ] {
        let text = vec![b'a'; count];
        assert_eq!(
            matches(&b"*a".repeat(count), &text, false),
            star_first,
            "{count}"
        );
        assert_eq!(
            matches(&b"a*".repeat(count), &text, false),
            letter_first,
            "{count}"
        );
        let stars = [b"*".repeat(count), b"a".repeat(count)].concat();
        assert_eq!(matches(&stars, &text, false), together, "{count}");
    }
}

#[test]
fn hostile_patterns_take_linear_steps() {
    // Exponential for naive backtracking: this many stars would never end.
    let pattern = [b"a*".repeat(900), b"b".to_vec()].concat();
    assert!(!matches(&pattern, &vec![b'a'; 20_000], false));
    let pattern = [b"*[^b]".repeat(900), b"?b".to_vec()].concat();
    assert!(!matches(&pattern, &vec![b'a'; 20_000], false));
    assert!(matches(&b"*".repeat(1_000_000), b"a", false));
    assert!(!matches(&b"[".repeat(1_000_000), b"a", false));
}

#[test]
fn literals_are_recognised() {
    for (pattern, prefix, literal) in [
        ("", "", true),
        ("abc", "abc", true),
        ("a*", "a", false),
        ("*", "", false),
        ("user:?", "user:", false),
        ("user:[12]", "user:", false),
        ("a\\*b", "a*b", true),
        ("a\\*b*", "a*b", false),
        ("a\\", "a\\", true),
        ("a\\\\", "a\\", true),
        ("\\[a]", "[a]", true),
        ("a]", "a]", true),
        ("[", "", false),
    ] {
        assert_eq!(
            &*literal_prefix(pattern.as_bytes()),
            prefix.as_bytes(),
            "{pattern}"
        );
        let expected = literal.then_some(prefix.as_bytes());
        assert_eq!(
            is_literal(pattern.as_bytes()).as_deref(),
            expected,
            "{pattern}"
        );
    }
}

/// The definition, without a thought for time: all ways to split at a star.
fn matches_slowly(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => {
            (0..=text.len()).any(|taken| matches_slowly(rest, &text[taken..]))
        }
        (_, []) => false,
        (_, [byte, after @ ..]) => {
            match_element(pattern, *byte, false).is_some_and(|rest| matches_slowly(rest, after))
        }
    }
}

proptest! {
    #[test]
    fn backtracking_to_the_last_star_is_enough(pattern in "[ab*?]{0,10}|[ab*\\[\\]^-]{0,10}", text in "[ab-]{1,12}") {
        let expected = matches_slowly(pattern.as_bytes(), text.as_bytes());
        prop_assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), expected);
    }

    #[test]
    fn literals_agree_with_matching(pattern in "[ab*?\\[\\]\\\\]{0,6}", text in "[ab*?\\[\\]\\\\]{0,4}") {
        let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
        if let Some(literal) = is_literal(pattern) {
            prop_assert_eq!(matches(pattern, text, false), *literal == *text);
            prop_assert!(matches(pattern, &literal, false));
        }
        if matches(pattern, text, false) {
            prop_assert!(text.starts_with(&literal_prefix(pattern)));
        }
    }

    #[test]
    fn any_bytes_match_without_panic(
        pattern in proptest::collection::vec(any::<u8>(), 0..40),
        text in proptest::collection::vec(any::<u8>(), 0..40),
        nocase: bool,
    ) {
        matches(&pattern, &text, nocase);
    }
}
