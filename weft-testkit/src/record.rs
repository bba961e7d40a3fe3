//! Fills the replies of a case file in from the reference, for a person to review and commit.
//!
//! Replies that are there already and still match stay as they are, patterns included. What depends on the moment or
//! the process becomes a pattern by the rule of its command; what it is about, only a person can know.

use crate::case_file::{Case, CaseFile, Exchange, Item, MAIN_CONNECTION, Sent};
use crate::door::{Answer, Door, DoorSession, Protocol};
use crate::error::KitError;
use crate::literal::{Base, Expected};
use crate::quoting::quoted;
use crate::rules::{Rule, rule};
use crate::wire::{Kind, Wire, write_request};

/// An absolute time nearer than this to the present is taken to depend on it, in seconds (30 days).
const NEAR_NOW_SECONDS: i64 = 30 * 24 * 3600;

/// Records every case of a file. Tells which recorded replies were replaced.
pub fn record(file: &mut CaseFile, door: &mut dyn Door) -> Result<Vec<String>, KitError> {
    let mut replaced = Vec::new();
    for case in &mut file.cases {
        for protocol in case.protocols() {
            record_case(case, protocol, door, &mut replaced)?;
        }
        if let Some(only) = case.only {
            // The other protocol is never played; the lines are written without a number.
            for item in &mut case.items {
                if let Item::Exchange(exchange) = item {
                    match only {
                        Protocol::Resp2 => exchange.resp3 = exchange.resp2.clone(),
                        Protocol::Resp3 => exchange.resp2 = exchange.resp3.clone(),
                    }
                }
            }
        }
    }
    Ok(replaced)
}

fn record_case(
    case: &mut Case,
    protocol: Protocol,
    door: &mut dyn Door,
    replaced: &mut Vec<String>,
) -> Result<(), KitError> {
    door.reset()?;
    let mut sessions: Vec<(String, Box<dyn DoorSession>)> = Vec::new();
    for item in &mut case.items {
        let exchange = match item {
            Item::Comment(_) => continue,
            Item::Advance(milliseconds) => {
                door.advance(*milliseconds)?;
                continue;
            }
            Item::Exchange(exchange) => exchange,
        };
        if !sessions
            .iter()
            .any(|(name, _)| *name == exchange.connection)
        {
            let main = exchange.connection == MAIN_CONNECTION;
            let session = door.connect(if main { protocol } else { Protocol::Resp2 })?;
            sessions.push((exchange.connection.clone(), session));
        }
        let session = sessions
            .iter_mut()
            .find(|(name, _)| *name == exchange.connection);
        let Some((_, session)) = session else {
            continue;
        };
        let came = ask(exchange, protocol, session.as_mut())?;
        let line = exchange.line;
        let replies = match protocol {
            Protocol::Resp2 => &mut exchange.resp2,
            Protocol::Resp3 => &mut exchange.resp3,
        };
        let same = replies.len() == came.len()
            && replies
                .iter()
                .zip(&came)
                .all(|(expected, (answer, _))| match answer {
                    Answer::Reply(wire) => expected.matches(wire),
                    Answer::Closed => *expected == Expected::Closed,
                    _ => false,
                });
        if !same {
            if !replies.is_empty() {
                replaced.push(format!(
                    "line {line}, {}: case {}",
                    protocol.name(),
                    case.name
                ));
            }
            *replies = came.into_iter().map(|(_, expected)| expected).collect();
        }
    }
    Ok(())
}

/// Sends what an exchange sends and reads its replies: one to a request, to bytes as many as come. A request with
/// several replies has so many lines already.
fn ask(
    exchange: &Exchange,
    protocol: Protocol,
    session: &mut dyn DoorSession,
) -> Result<Vec<(Answer, Expected)>, KitError> {
    let mut bytes = Vec::new();
    let (rule, count) = match &exchange.sent {
        Sent::Request { arguments, .. } => {
            let arguments: Vec<Vec<u8>> = arguments.iter().map(|word| word.bytes()).collect();
            write_request(&mut bytes, &arguments);
            (rule_of(&arguments), exchange.replies(protocol).len().max(1))
        }
        Sent::Bytes { bytes: raw, .. } => {
            bytes.extend_from_slice(raw);
            (Rule::Exact, usize::MAX)
        }
    };
    session.send(&bytes)?;
    let mut replies = Vec::new();
    while replies.len() < count {
        let answer = session.read()?;
        let expected = match &answer {
            Answer::Reply(wire) => pattern(wire, rule),
            Answer::Closed => Expected::Closed,
            Answer::Nothing if replies.is_empty() => Expected::Nothing,
            Answer::Nothing => break,
            Answer::Odd(bytes) => {
                return Err(KitError::Unexpected(format!(
                    "line {}: an odd reply: {}",
                    exchange.line,
                    quoted(bytes)
                )));
            }
            Answer::Broken(what) => {
                return Err(KitError::Unexpected(format!(
                    "line {}: {what}",
                    exchange.line
                )));
            }
        };
        let end = matches!(expected, Expected::Closed | Expected::Nothing);
        replies.push((answer, expected));
        if end {
            break;
        }
    }
    Ok(replies)
}

fn rule_of(arguments: &[Vec<u8>]) -> Rule {
    let text = |index: usize| {
        arguments
            .get(index)
            .map(|word| String::from_utf8_lossy(word).to_lowercase())
            .unwrap_or_default()
    };
    match rule(&text(0)) {
        Rule::Exact => rule(&format!("{}|{}", text(0), text(1))),
        found => found,
    }
}

/// The reply as it is to be expected again.
fn pattern(reply: &Wire, rule: Rule) -> Expected {
    let exact = || Expected::Exact(reply.clone());
    match (rule, reply) {
        (Rule::Within(tolerance), Wire::Integer(value)) if *value > 0 => near(*value, tolerance),
        (Rule::AnyOrder | Rule::PairsInAnyOrder, Wire::Sequence(kind, elements))
            if elements.len() > 2 =>
        {
            Expected::AnyOrder(
                *kind,
                elements.iter().cloned().map(Expected::Exact).collect(),
            )
        }
        (Rule::Scan, Wire::Sequence(Kind::Array, parts)) => match parts.as_slice() {
            [cursor, Wire::Sequence(kind, elements)] if elements.len() > 1 => Expected::Sequence(
                Kind::Array,
                vec![
                    Expected::Exact(cursor.clone()),
                    Expected::AnyOrder(
                        *kind,
                        elements.iter().cloned().map(Expected::Exact).collect(),
                    ),
                ],
            ),
            _ => exact(),
        },
        (Rule::MapExcept(fields), Wire::Sequence(kind, elements)) => {
            let mut expected: Vec<Expected> =
                elements.iter().cloned().map(Expected::Exact).collect();
            for (place, name) in elements.iter().enumerate().step_by(2) {
                if fields
                    .iter()
                    .any(|field| name.text() == Some(field.as_bytes()))
                    && let Some(value) = expected.get_mut(place + 1)
                {
                    *value = match elements.get(place + 1) {
                        Some(Wire::Integer(_)) => Expected::AnyInteger,
                        Some(Wire::Bulk(_)) => Expected::AnyBulk,
                        _ => Expected::Any,
                    };
                }
            }
            Expected::Sequence(*kind, expected)
        }
        _ => exact(),
    }
}

fn near(value: i64, tolerance: u64) -> Expected {
    let seconds = Base::NowSeconds.value();
    let milliseconds = Base::NowMilliseconds.value();
    // A distance from now is a round number in a case, so the moment that passed since the request is taken off.
    let rounded =
        |value: i64| ((value as f64 / tolerance as f64).round() * tolerance as f64) as i64;
    if (value - seconds).abs() < NEAR_NOW_SECONDS {
        Expected::Near {
            base: Base::NowSeconds,
            offset: rounded(value - seconds),
            tolerance,
        }
    } else if (value - milliseconds).abs() < NEAR_NOW_SECONDS * 1000 {
        Expected::Near {
            base: Base::NowMilliseconds,
            offset: rounded(value - milliseconds),
            tolerance,
        }
    } else {
        Expected::Near {
            base: Base::Zero,
            offset: value,
            tolerance,
        }
    }
}
