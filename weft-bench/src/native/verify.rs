//! Whether an answer is what it should be.
//!
//! Owns the comparison of values with the keys they were asked for by, and what is said about a wrong one. Values carry their
//! key and a checksum (`values`); an absent value is always right, since nobody has to have set it. Errors are counted as
//! such elsewhere and are not wrong besides.

use weft_resp::ReplyClass;

use super::answer::{Leaf, leaves};
use super::compiled::{Expects, Program, Request};
use super::values::{Content, content};
use crate::load::Answer;

/// So much of a wrong value is shown.
const SHOWN_BYTES: usize = 80;

/// What is wrong with the answer to a request with these keys, if anything is. `scratch` is for the text of a key.
pub fn wrong(
    program: &Program,
    request: &Request,
    answer: &Answer<'_>,
    mut keys: impl Iterator<Item = (usize, u64)>,
    scratch: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    if answer.kind == ReplyClass::Error || answer.bytes == b"+QUEUED\r\n" {
        return None;
    }
    let spell = |(space, key): (usize, u64), scratch: &mut Vec<u8>| {
        scratch.clear();
        program.spaces[space].write(key, scratch);
    };
    let complaint = match request.expects {
        Expects::Ok => (answer.bytes != b"+OK\r\n").then(|| told("not OK", answer.bytes)),
        Expects::Value | Expects::Values => leaves(answer.bytes).find_map(|leaf| {
            let Some(key) = keys.next() else {
                return Some(told("more values than keys", answer.bytes));
            };
            spell(key, scratch);
            wrong_value(&leaf, Some(scratch), true)
        }),
        Expects::Anything => {
            let only = match (request.keys, keys.next()) {
                (1, Some(key)) => {
                    spell(key, scratch);
                    Some(&scratch[..])
                }
                _ => None,
            };
            leaves(answer.bytes).find_map(|leaf| wrong_value(&leaf, only, false))
        }
    };
    complaint.map(|complaint| {
        let name = &program.classes[usize::from(request.class)].name;
        format!("{name}: {complaint}").into_bytes()
    })
}

/// What is wrong with a value. `strict`: it has to carry a checksum.
fn wrong_value(leaf: &Leaf<'_>, key: Option<&[u8]>, strict: bool) -> Option<String> {
    let value = match (leaf.bytes, leaf.is_string()) {
        (None, _) => return None,
        (Some(value), true) => value,
        (Some(other), false) => return strict.then(|| told("no string", other)),
    };
    let for_key = || match key {
        Some(key) => format!(" for {}", key.escape_ascii()),
        None => String::new(),
    };
    match (content(value), key) {
        (Content::Broken, _) => Some(told(&format!("a damaged value{}", for_key()), value)),
        (Content::Foreign, _) if strict => Some(told(
            &format!("a value{} that this program has not written", for_key()),
            value,
        )),
        (Content::Whole(body), Some(key)) => {
            let its_own = body
                .strip_prefix(key)
                .is_some_and(|rest| rest.first() == Some(&b':'));
            (!its_own).then(|| told(&format!("the value of another key{}", for_key()), value))
        }
        (Content::Whole(_) | Content::Foreign, _) => None,
    }
}

fn told(what: &str, bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let more = if shown.len() < bytes.len() { "..." } else { "" };
    format!(
        "{what}: \"{}{more}\" ({} bytes)",
        shown.escape_ascii(),
        bytes.len()
    )
}
