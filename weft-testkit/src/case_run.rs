//! Plays written cases through a door and judges the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::case_file::{Case, CaseFile, Exchange, Item, MAIN_CONNECTION, Sent};
use crate::delivery::Delivery;
use crate::deviations::Deviations;
use crate::door::{Answer, Door, DoorSession, Protocol};
use crate::error::KitError;
use crate::finding::shown;
use crate::literal::Expected;
use crate::transaction;
use crate::wire::write_request;

/// A case that did not get the expected answer.
#[derive(Debug)]
pub struct Failure {
    /// The file.
    pub file: String,
    /// The line of the request.
    pub line: usize,
    /// The case.
    pub case: String,
    /// The door and the protocol.
    pub door: String,
    /// What was sent.
    pub sent: String,
    /// What was expected.
    pub expected: String,
    /// What came.
    pub came: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}:{}: case {} ({})",
            self.file, self.line, self.case, self.door
        )?;
        writeln!(f, "  > {}", self.sent)?;
        writeln!(f, "  expected {}", self.expected)?;
        writeln!(f, "  came     {}", self.came)
    }
}

/// The known differences and how often one explained an answer.
#[derive(Debug, Default)]
pub struct Explained {
    /// What is known.
    pub deviations: Deviations,
    /// Answers explained, by the entry's id.
    pub counts: BTreeMap<String, usize>,
}

/// Plays one case in one protocol; what went wrong first.
pub fn play(
    file: &str,
    case: &Case,
    door: &mut dyn Door,
    protocol: Protocol,
    seed: u64,
    explained: &mut Explained,
) -> Result<Option<Failure>, KitError> {
    door.revive(false)?;
    door.reset()?;
    door.advance(0)?;
    let mut player = Player {
        sessions: BTreeMap::new(),
        waiting: Vec::new(),
        protocol,
        delivery: door.delivery(),
        random: fastrand::Rng::with_seed(seed),
    };
    let told = |door: &dyn Door, wrong: Wrong| Failure {
        file: file.to_owned(),
        line: wrong.line,
        case: case.name.clone(),
        door: format!("{}, {}", door.name(), protocol.name()),
        sent: wrong.sent,
        expected: wrong.expected,
        came: wrong.came,
    };
    for item in &case.items {
        let wrong = match item {
            Item::Comment(_) => None,
            Item::Advance(milliseconds) => {
                let wrong = player.settle(explained)?;
                door.advance(*milliseconds)?;
                wrong
            }
            Item::Exchange(exchange) => player.exchange(exchange, door, explained)?,
        };
        if let Some(wrong) = wrong {
            return Ok(Some(told(door, wrong)));
        }
    }
    if let Some(wrong) = player.settle(explained)? {
        return Ok(Some(told(door, wrong)));
    }
    Ok(door.check()?.map(|came| {
        let wrong = Wrong {
            line: case.line,
            sent: "(all of it)".to_owned(),
            expected: "a sound engine".to_owned(),
            came,
        };
        told(door, wrong)
    }))
}

/// What came of a file.
#[derive(Debug, Default)]
pub struct Played {
    /// Cases played, each protocol counted.
    pub count: usize,
    /// Those that failed.
    pub failures: Vec<Failure>,
    /// Cases left out, with what the server lacks for them.
    pub skipped: Vec<String>,
}

/// Plays all cases of a file. `commands` are those that the server has.
pub fn play_file(
    place: &str,
    file: &CaseFile,
    door: &mut dyn Door,
    commands: &BTreeSet<String>,
    is_reference: bool,
    explained: &mut Explained,
) -> Result<Played, KitError> {
    let mut played = Played::default();
    for case in &file.cases {
        if is_reference && case.reference_fault.is_some() && door.delivery() != Delivery::Single {
            continue;
        }
        if let Some(missing) = case.needs.iter().find(|name| !commands.contains(*name)) {
            played.skipped.push(format!("{} (no {missing})", case.name));
            continue;
        }
        if door.delivery() == Delivery::Transaction && !transaction::fits(case) {
            continue;
        }
        for protocol in case.protocols() {
            played.count += 1;
            played.failures.extend(play(
                place,
                case,
                door,
                protocol,
                played.count as u64,
                explained,
            )?);
        }
    }
    Ok(played)
}

struct Wrong {
    line: usize,
    sent: String,
    expected: String,
    came: String,
}

struct Player<'a> {
    sessions: BTreeMap<String, Box<dyn DoorSession>>,
    /// Exchanges of one connection whose bytes are not sent yet.
    waiting: Vec<&'a Exchange>,
    protocol: Protocol,
    delivery: Delivery,
    random: fastrand::Rng,
}

impl<'a> Player<'a> {
    fn exchange(
        &mut self,
        exchange: &'a Exchange,
        door: &mut dyn Door,
        explained: &mut Explained,
    ) -> Result<Option<Wrong>, KitError> {
        let other_connection = self
            .waiting
            .last()
            .is_some_and(|last| last.connection != exchange.connection);
        if other_connection && let Some(wrong) = self.settle(explained)? {
            return Ok(Some(wrong));
        }
        if !self.sessions.contains_key(&exchange.connection) {
            let main = exchange.connection == MAIN_CONNECTION;
            let session = door.connect(if main { self.protocol } else { Protocol::Resp2 })?;
            self.sessions.insert(exchange.connection.clone(), session);
        }
        self.waiting.push(exchange);
        // The present time in a request has to be present when it is executed, and what follows the end of a
        // connection has nobody to go to.
        let at_once = self.delivery == Delivery::Transaction
            || self.waiting.len() >= self.delivery.batch_length()
            || exchange.replies(self.protocol).contains(&Expected::Closed);
        if at_once {
            self.settle(explained)
        } else {
            Ok(None)
        }
    }

    /// Sends what waits and judges the answers.
    fn settle(&mut self, explained: &mut Explained) -> Result<Option<Wrong>, KitError> {
        let exchanges = std::mem::take(&mut self.waiting);
        let Some(session) = exchanges
            .first()
            .and_then(|first| self.sessions.get_mut(&first.connection))
        else {
            return Ok(None);
        };
        if self.delivery == Delivery::Transaction {
            return transact(session.as_mut(), &exchanges, self.protocol, explained);
        }
        let mut bytes = Vec::new();
        for exchange in &exchanges {
            match &exchange.sent {
                Sent::Request { arguments, .. } => {
                    let arguments: Vec<Vec<u8>> =
                        arguments.iter().map(|word| word.bytes()).collect();
                    write_request(&mut bytes, &arguments);
                }
                Sent::Bytes { bytes: raw, .. } => bytes.extend_from_slice(raw),
            }
        }
        let mut rest = bytes.as_slice();
        for piece in self.delivery.pieces(bytes.len(), &mut self.random) {
            let (now, later) = rest.split_at(piece);
            session.send(now)?;
            rest = later;
        }
        for exchange in exchanges {
            let replies = exchange.replies(self.protocol);
            if replies.is_empty() {
                return Ok(Some(wrong(
                    exchange,
                    "a reply that is recorded".to_owned(),
                    "nothing yet".to_owned(),
                )));
            }
            for expected in replies
                .iter()
                .filter(|expected| **expected != Expected::Nothing)
            {
                let answer = session.read()?;
                if !agrees(expected, &answer) && !explained.explains(exchange, expected, &answer) {
                    return Ok(Some(wrong(exchange, expected.to_string(), shown(&answer))));
                }
            }
        }
        Ok(None)
    }
}

/// Sends each request between MULTI and EXEC, and judges what was answered in between.
fn transact(
    session: &mut dyn DoorSession,
    exchanges: &[&Exchange],
    protocol: Protocol,
    explained: &mut Explained,
) -> Result<Option<Wrong>, KitError> {
    for exchange in exchanges {
        let (Sent::Request { arguments, .. }, Some(expected)) =
            (&exchange.sent, exchange.replies(protocol).first())
        else {
            continue;
        };
        let request: Vec<Vec<u8>> = arguments.iter().map(|word| word.bytes()).collect();
        let mut bytes = Vec::new();
        transaction::write_between([request.as_slice()], &mut bytes);
        session.send(&bytes)?;
        for answer in transaction::read_between(session, 1)? {
            if !agrees(expected, &answer) && !explained.explains(exchange, expected, &answer) {
                return Ok(Some(wrong(exchange, expected.to_string(), shown(&answer))));
            }
        }
    }
    Ok(None)
}

fn wrong(exchange: &Exchange, expected: String, came: String) -> Wrong {
    let (Sent::Request { text, .. } | Sent::Bytes { text, .. }) = &exchange.sent;
    Wrong {
        line: exchange.line,
        sent: text.clone(),
        expected,
        came,
    }
}

fn agrees(expected: &Expected, answer: &Answer) -> bool {
    match answer {
        Answer::Reply(wire) => expected.matches(wire),
        Answer::Closed => *expected == Expected::Closed,
        _ => false,
    }
}

impl Explained {
    fn explains(&mut self, exchange: &Exchange, expected: &Expected, answer: &Answer) -> bool {
        let (Expected::Exact(reference), Answer::Reply(weft)) = (expected, answer) else {
            return false;
        };
        let command = match &exchange.sent {
            Sent::Request { arguments, .. } => arguments
                .first()
                .map(|word| word.bytes())
                .unwrap_or_default(),
            Sent::Bytes { .. } => Vec::new(),
        };
        let command = String::from_utf8_lossy(&command).to_lowercase();
        match self.deviations.explain(&command, reference, weft) {
            Some(id) => {
                *self.counts.entry(id.to_owned()).or_default() += 1;
                true
            }
            None => false,
        }
    }
}
