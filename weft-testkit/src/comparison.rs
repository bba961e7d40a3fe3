//! Whether two servers' answers to one request say the same, under the rule of its command.

use crate::door::{Answer, DoorSession};
use crate::error::KitError;
use crate::quoting::word;
use crate::rules::Rule;
use crate::wire::{Kind, Wire};

/// Batches of one iteration that are fetched at most; more means that it does not end.
const SCAN_BATCHES_MAX: usize = 100_000;

/// Compares two answers. `Err` of the inner result says what is different.
///
/// A scan is driven to its end, and keys are asked for: for those (see [`crate::rules::asks`]) the connections must have
/// nothing else under way.
pub fn compare(
    rule: Rule,
    request: &[Vec<u8>],
    answers: [&Answer; 2],
    servers: [&mut dyn DoorSession; 2],
) -> Result<Result<(), String>, KitError> {
    if answers[0] == answers[1]
        && matches!(answers[0], Answer::Reply(_))
        && !matches!(rule, Rule::Scan | Rule::SomeKey)
    {
        return Ok(Ok(()));
    }
    let (Some(left), Some(right)) = (answers[0].reply(), answers[1].reply()) else {
        return Ok(Err("no comparable replies".to_owned()));
    };
    if left.is_error() || right.is_error() {
        return Ok(if left == right {
            Ok(())
        } else {
            Err("errors differ".to_owned())
        });
    }
    if *left == queued() && *right == queued() {
        return Ok(Ok(()));
    }
    Ok(match rule {
        Rule::Exact => same(left == right, "replies differ"),
        Rule::Within(tolerance) => same(
            within(left, right, tolerance),
            &format!("replies differ by more than {tolerance}"),
        ),
        Rule::AnyOrder => same(any_order(left, right, 1), "the sets of elements differ"),
        Rule::PairsInAnyOrder => same(any_order(left, right, 2), "the sets of pairs differ"),
        Rule::Shape => same(same_shape(left, right), "the kinds of values differ"),
        Rule::MapExcept(fields) => map_except(left, right, fields),
        Rule::AnyOrderIfHashtable(width) => {
            let [reference, _] = servers;
            return any_order_if_hashtable(request, [left, right], width, reference);
        }
        Rule::LengthIfTable => {
            let [reference, _] = servers;
            return length_if_table(request, [left, right], reference);
        }
        Rule::Scan => return scan(request, [left, right], servers),
        Rule::SomeKey => return some_key([left, right], servers),
    })
}

/// What a transaction answers until it is executed.
fn queued() -> Wire {
    Wire::Simple(b"QUEUED".to_vec())
}

fn same(equal: bool, otherwise: &str) -> Result<(), String> {
    if equal {
        Ok(())
    } else {
        Err(otherwise.to_owned())
    }
}

fn within(left: &Wire, right: &Wire, tolerance: u64) -> bool {
    match (left, right) {
        // Negative values are answers of their own: no key, no time to live.
        (Wire::Integer(left), Wire::Integer(right)) => {
            left == right || (*left >= 0 && *right >= 0 && left.abs_diff(*right) <= tolerance)
        }
        (Wire::Sequence(one, left), Wire::Sequence(other, right)) => {
            one == other
                && left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| within(left, right, tolerance))
        }
        _ => left == right,
    }
}

fn any_order(left: &Wire, right: &Wire, width: usize) -> bool {
    match (left, right) {
        (Wire::Sequence(one, left), Wire::Sequence(other, right)) => {
            one == other && left.len() == right.len() && sorted(left, width) == sorted(right, width)
        }
        _ => left == right,
    }
}

fn any_order_if_hashtable(
    request: &[Vec<u8>],
    [left, right]: [&Wire; 2],
    width: usize,
    reference: &mut dyn DoorSession,
) -> Result<Result<(), String>, KitError> {
    if !any_order(left, right, width) {
        return Ok(Err("the sets of elements differ".to_owned()));
    }
    let key = request.get(1).map(Vec::as_slice).unwrap_or_default();
    let encoding = reference.ask(&[&b"OBJECT"[..], b"ENCODING", key])?;
    Ok(same(
        encoding.text() == Some(b"hashtable"),
        "the orders differ",
    ))
}

fn length_if_table(
    request: &[Vec<u8>],
    [left, right]: [&Wire; 2],
    reference: &mut dyn DoorSession,
) -> Result<Result<(), String>, KitError> {
    if left == right {
        return Ok(Ok(()));
    }
    let (Wire::Sequence(one, left), Wire::Sequence(other, right)) = (left, right) else {
        return Ok(Err("replies differ".to_owned()));
    };
    if one != other || left.len() != right.len() {
        return Ok(Err("the lengths differ".to_owned()));
    }
    let key = request.get(1).map(Vec::as_slice).unwrap_or_default();
    let encoding = reference.ask(&[&b"OBJECT"[..], b"ENCODING", key])?;
    let table = matches!(encoding.text(), Some(b"hashtable" | b"skiplist"));
    Ok(same(table, "the orders differ"))
}

fn sorted(elements: &[Wire], width: usize) -> Vec<Vec<u8>> {
    let mut groups: Vec<Vec<u8>> = elements
        .chunks(width)
        .map(|group| group.iter().flat_map(Wire::to_bytes).collect())
        .collect();
    groups.sort();
    groups
}

fn same_shape(left: &Wire, right: &Wire) -> bool {
    match (left, right) {
        (Wire::Sequence(one, left), Wire::Sequence(other, right)) => {
            one == other
                && left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same_shape(left, right))
        }
        _ => std::mem::discriminant(left) == std::mem::discriminant(right),
    }
}

fn map_except(left: &Wire, right: &Wire, fields: &[&str]) -> Result<(), String> {
    let (one, other) = (left.pairs(), right.pairs());
    if !same_kind(left, right) || one.len() != other.len() {
        return Err("the maps have different forms".to_owned());
    }
    for ((key, value), (other_key, other_value)) in one.into_iter().zip(other) {
        let free = fields
            .iter()
            .any(|field| key.text() == Some(field.as_bytes()));
        if key != other_key || (value != other_value && !free) {
            return Err(format!("the field {} differs", key.string()));
        }
    }
    Ok(())
}

fn same_kind(left: &Wire, right: &Wire) -> bool {
    match (left, right) {
        (Wire::Sequence(one, _), Wire::Sequence(other, _)) => one == other,
        _ => false,
    }
}

fn some_key(
    replies: [&Wire; 2],
    servers: [&mut dyn DoorSession; 2],
) -> Result<Result<(), String>, KitError> {
    if replies[0].is_null() != replies[1].is_null() {
        return Ok(Err("one is null".to_owned()));
    }
    for (reply, server) in replies.into_iter().zip(servers) {
        if let Some(key) = reply.text()
            && server.ask(&[&b"EXISTS"[..], key])? != Wire::Integer(1)
        {
            return Ok(Err(format!("the key {} does not exist", word(key))));
        }
    }
    Ok(Ok(()))
}

fn scan(
    request: &[Vec<u8>],
    replies: [&Wire; 2],
    servers: [&mut dyn DoorSession; 2],
) -> Result<Result<(), String>, KitError> {
    // SCAN's cursor is its first argument, that of the others the second.
    let place = if request
        .first()
        .is_some_and(|name| name.eq_ignore_ascii_case(b"SCAN"))
    {
        1
    } else {
        2
    };
    let from_start = request.get(place).is_some_and(|cursor| cursor == b"0");
    let width = match request.first() {
        Some(name) if name.eq_ignore_ascii_case(b"ZSCAN") => 2,
        Some(name)
            if name.eq_ignore_ascii_case(b"HSCAN")
                && !request
                    .iter()
                    .any(|word| word.eq_ignore_ascii_case(b"NOVALUES")) =>
        {
            2
        }
        _ => 1,
    };
    let mut found = Vec::new();
    for (reply, server) in replies.into_iter().zip(servers) {
        let Some((mut cursor, mut elements)) = batch(reply) else {
            return Ok(Err("not a cursor and a batch".to_owned()));
        };
        let mut batches = 0;
        while from_start && cursor != b"0" {
            let mut next = request.to_vec();
            next[place] = cursor;
            let reply = server.ask(&next)?;
            let Some((following, more)) = batch(&reply) else {
                return Ok(Err("a later batch is not a cursor and a batch".to_owned()));
            };
            cursor = following;
            elements.extend(more);
            batches += 1;
            if batches > SCAN_BATCHES_MAX {
                return Ok(Err("the iteration does not end".to_owned()));
            }
        }
        if is_named(request, b"ZSCAN") {
            elements.iter_mut().skip(1).step_by(2).for_each(read_score);
        }
        // An iteration may yield an element twice.
        let mut groups = sorted(&elements, width);
        groups.dedup();
        found.push(groups);
    }
    // From a cursor in the middle each server may yield what it likes.
    Ok(same(
        !from_start || found[0] == found[1],
        "the iterations yield different sets",
    ))
}

fn is_named(request: &[Vec<u8>], name: &[u8]) -> bool {
    request
        .first()
        .is_some_and(|word| word.eq_ignore_ascii_case(name))
}

/// Writes the text of a score in one and the same way: the reference has two of them here (D-17).
fn read_score(score: &mut Wire) {
    if let Wire::Bulk(text) = score
        && let Some(number) = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<f64>().ok())
    {
        *text = format!("{number:e}").into_bytes();
    }
}

fn batch(reply: &Wire) -> Option<(Vec<u8>, Vec<Wire>)> {
    match reply {
        Wire::Sequence(Kind::Array, parts) => match parts.as_slice() {
            [Wire::Bulk(cursor), Wire::Sequence(Kind::Array, elements)] => {
                Some((cursor.clone(), elements.clone()))
            }
            _ => None,
        },
        _ => None,
    }
}
