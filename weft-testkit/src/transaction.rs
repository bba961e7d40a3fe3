//! Requests on their way through a transaction, and their answers on the way out of it.
//!
//! Whatever is replied between MULTI and EXEC has to be what is replied without, so that every case and every random run can be
//! had once more.

use crate::case_file::{Case, Item, Sent};
use crate::door::{Answer, DoorSession};
use crate::error::KitError;
use crate::literal::Expected;
use crate::wire::{Kind, Wire, write_request};

/// Commands that mean something else in a transaction, or tell of it: cases with one of them are played without.
const LEFT_OUT: &[&str] = &[
    "multi", "exec", "discard", "watch", "unwatch", "reset", "quit", "monitor", "client",
    "slowlog", "shutdown", "auth", "hello",
];

/// Whether a case means the same in transactions.
pub fn fits(case: &Case) -> bool {
    case.items.iter().all(|item| {
        let Item::Exchange(exchange) = item else {
            return true;
        };
        let replies = exchange.resp2.iter().chain(&exchange.resp3);
        let awaited = replies
            .clone()
            .all(|expected| !matches!(expected, Expected::Nothing | Expected::Closed));
        let single = exchange.resp2.len() <= 1 && exchange.resp3.len() <= 1;
        match &exchange.sent {
            Sent::Bytes { .. } => false,
            Sent::Request { arguments, .. } => {
                let name = arguments
                    .first()
                    .map(|word| word.bytes())
                    .unwrap_or_default();
                let name = String::from_utf8_lossy(&name).to_lowercase();
                awaited && single && !LEFT_OUT.contains(&&*name)
            }
        }
    })
}

/// Appends requests, between MULTI and EXEC.
pub fn write_between<'r>(requests: impl IntoIterator<Item = &'r [Vec<u8>]>, bytes: &mut Vec<u8>) {
    write_request(bytes, &["MULTI"]);
    requests
        .into_iter()
        .for_each(|request| write_request(bytes, request));
    write_request(bytes, &["EXEC"]);
}

/// Reads what is answered to so many requests between MULTI and EXEC, and takes the answers out of the transaction's. A request
/// that is refused keeps that answer, and so do all that were queued with it: that of EXEC.
pub fn read_between(session: &mut dyn DoorSession, count: usize) -> Result<Vec<Answer>, KitError> {
    let begun = session.read()?;
    if begun.reply().and_then(Wire::text) != Some(b"OK") {
        return Ok(vec![begun]);
    }
    let mut answers = Vec::with_capacity(count);
    for _ in 0..count {
        answers.push(session.read()?);
    }
    let executed = session.read()?;
    let queued = |answer: &Answer| answer.reply().and_then(Wire::text) == Some(b"QUEUED");
    let elements = match &executed {
        Answer::Reply(Wire::Sequence(Kind::Array, elements)) => elements.clone(),
        _ => Vec::new(),
    };
    let mut elements = elements.into_iter();
    for answer in answers.iter_mut().filter(|answer| queued(answer)) {
        *answer = match elements.next() {
            Some(element) => Answer::Reply(element),
            None => executed.clone(),
        };
    }
    Ok(answers)
}
