//! Replacing one text by another, in bytes.

use memchr::memmem;

/// `text` with `new` for every `old`.
pub fn replaced(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memmem::find_iter(text, old) {
        result.extend_from_slice(&text[from..at]);
        result.extend_from_slice(new);
        from = at + old.len();
    }
    result.extend_from_slice(&text[from..]);
    result
}

#[test]
fn every_occurrence_is_replaced() {
    assert_eq!(replaced(b"a{x}b{x}", b"{x}", b"1234"), b"a1234b1234");
    assert_eq!(replaced(b"ab", b"{x}", b"1"), b"ab");
}
