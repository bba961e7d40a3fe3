//! The same random requests to the reference and to the server under test, and every reply compared.
//!
//! A run is cut into rounds: each begins with empty servers and new connections, uses one delivery and one protocol,
//! and ends with a comparison of everything the servers hold. A difference is reduced to the shortest sequence that
//! still shows it. All comes from one seed; only the clock differs from run to run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::command_table::{self, CommandRow};
use crate::comparison::compare;
use crate::delivery::Delivery;
use crate::deviations::Deviations;
use crate::door::{Answer, Door, DoorSession, Protocol};
use crate::error::KitError;
use crate::finding::Finding;
use crate::generator::{After, Generator, Step};
use crate::reduction::shorten;
use crate::rules::{alone, not_generated, rule};
use crate::state;
use crate::transaction;
use crate::wire::{Wire, write_request};

/// Requests of a round. Few enough that reducing a difference is quick, enough for the data to become interesting.
const ROUND_LENGTH: usize = 1000;
/// A batch is sent when it has so many bytes, whatever its delivery would allow.
const BATCH_BYTES_MAX: usize = 32 * 1024;
/// How long a key with a time to live of a few milliseconds is waited for, in milliseconds.
const EXPIRY_WAIT_MS: u64 = 6;
/// How long a reply may take before the server counts as hanging.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// The same while a sequence is reduced, in which the server may hang again and again.
const REDUCTION_REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// Bounds of the search for a shorter sequence.
const REDUCTION_SECONDS_MAX: u64 = 10;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The family whose commands are tried, or one command and those whose names continue its own.
    pub family: String,
    /// Requests.
    pub count: usize,
    /// What everything random comes from.
    pub seed: u64,
    /// The ways of sending; the rounds take turns.
    pub deliveries: Vec<Delivery>,
    /// Distinct differences after which the run ends.
    pub findings_max: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Requests compared.
    pub requests: usize,
    /// Distinct commands among them.
    pub commands: BTreeSet<String>,
    /// Requests that were answered with an error.
    pub errors: usize,
    /// Replies explained by a known deviation, by its id.
    pub deviations: BTreeMap<String, usize>,
    /// Differences, one of each kind.
    pub findings: Vec<Finding>,
    /// Further differences that look like one of those.
    pub repeated: usize,
}

/// The doors to the two engines of a run.
pub struct Pair {
    /// The reference's.
    pub reference: Box<dyn Door>,
    /// That of the engine under test.
    pub subject: Box<dyn Door>,
    /// Whether one left a request without reply and is not to be trusted further.
    hung: [bool; 2],
}

impl Pair {
    /// Two doors, each with an engine of its own behind it.
    pub fn new(reference: Box<dyn Door>, subject: Box<dyn Door>) -> Self {
        Pair {
            reference,
            subject,
            hung: [false; 2],
        }
    }

    /// New sessions through both.
    pub fn connect(&mut self, protocol: Protocol) -> Result<[Box<dyn DoorSession>; 2], KitError> {
        Ok([
            self.reference.connect(protocol)?,
            self.subject.connect(protocol)?,
        ])
    }

    fn doors(&mut self) -> [&mut dyn Door; 2] {
        [self.reference.as_mut(), self.subject.as_mut()]
    }

    fn set_answer_timeout(&mut self, timeout: Duration) {
        self.doors()
            .into_iter()
            .for_each(|door| door.set_answer_timeout(timeout));
    }

    /// Both engines alive and empty.
    fn begin(&mut self) -> Result<(), KitError> {
        let hung = std::mem::take(&mut self.hung);
        for (door, hung) in self.doors().into_iter().zip(hung) {
            door.revive(hung)?;
            door.reset()?;
        }
        Ok(())
    }
}

/// The families of the commands that a pair of engines can be compared by, each with its rows.
pub fn families(pair: &mut Pair) -> Result<BTreeMap<String, Vec<CommandRow>>, KitError> {
    let mut families: BTreeMap<String, Vec<CommandRow>> = BTreeMap::new();
    for row in command_table::read(pair.reference.control(), pair.subject.control())? {
        families.entry(row.family.clone()).or_default().push(row);
    }
    Ok(families)
}

/// Runs a plan. `progress` is told of each difference as soon as it is reduced.
pub fn run(
    pair: &mut Pair,
    plan: &Plan,
    deviations: &Deviations,
    progress: &mut dyn FnMut(&Finding),
) -> Result<Outcome, KitError> {
    let rows = families(pair)?;
    let generated = |rows: &[CommandRow]| -> Vec<CommandRow> {
        rows.iter()
            .filter(|row| not_generated(row).is_none())
            .cloned()
            .collect()
    };
    let family = rows.contains_key(&plan.family);
    let is_main = |row: &CommandRow| {
        if family {
            row.family == plan.family
        } else {
            row.name().starts_with(&plan.family)
        }
    };
    let all = rows.values().flat_map(|rows| generated(rows));
    let (main, others): (Vec<_>, Vec<_>) = all.partition(is_main);
    let mut outcome = Outcome::default();
    if main.is_empty() {
        return Ok(outcome);
    }
    let mut generator = Generator::new(plan.seed, main, others);
    let mut kinds = BTreeSet::new();
    let mut round = 0;
    while outcome.requests < plan.count && outcome.findings.len() < plan.findings_max {
        let length = ROUND_LENGTH.min(plan.count - outcome.requests);
        let steps: Vec<Step> = (0..length).map(|_| generator.step()).collect();
        let manner = Manner {
            delivery: plan.deliveries[round % plan.deliveries.len()],
            protocol: Protocol::ALL[round / plan.deliveries.len() % 2],
            seed: plan.seed ^ round as u64,
        };
        round += 1;
        let mut tally = Tally::default();
        let difference = play(pair, &steps, manner, deviations, &mut tally)?;
        outcome.errors += tally.errors;
        for (id, count) in tally.deviations {
            *outcome.deviations.entry(id).or_default() += count;
        }
        let played = difference.as_ref().map_or(steps.len(), |difference| {
            (difference.index + 1).min(steps.len())
        });
        outcome.requests += played;
        outcome
            .commands
            .extend(steps[..played].iter().map(|step| step.command.clone()));
        if let Some(difference) = difference {
            if !kinds.insert(difference.kind()) {
                outcome.repeated += 1;
                continue;
            }
            let finding = reduce(pair, &steps, manner, deviations, difference)?;
            kinds.insert(finding.difference.kind());
            progress(&finding);
            outcome.findings.push(finding);
        }
    }
    Ok(outcome)
}

/// What is counted while a round is played.
#[derive(Debug, Default)]
struct Tally {
    errors: usize,
    deviations: BTreeMap<String, usize>,
}

/// How the requests of a round are sent.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The way of sending.
    pub delivery: Delivery,
    /// The protocol of the connections.
    pub protocol: Protocol,
    /// What the places of cuts come from.
    pub seed: u64,
}

/// Where two servers first differed.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The request, counted from 0; the number of all requests if only the final states differ.
    pub index: usize,
    /// Its command.
    pub command: String,
    /// What is different.
    pub what: String,
    /// The answers of the reference and of the server under test.
    pub answers: Option<[Answer; 2]>,
}

impl Difference {
    /// A text that is the same for differences that are probably one and the same.
    fn kind(&self) -> String {
        let shown = match &self.answers {
            Some(answers) => answers
                .iter()
                .map(crate::finding::shown)
                .collect::<Vec<_>>()
                .join(" / "),
            None => self.what.clone(),
        };
        let masked: String = shown
            .chars()
            .map(|c| if c.is_ascii_digit() { '#' } else { c })
            .take(120)
            .collect();
        format!("{} {masked}", self.command)
    }
}

/// Plays a sequence on empty servers; the first difference.
fn play(
    pair: &mut Pair,
    steps: &[Step],
    manner: Manner,
    deviations: &Deviations,
    tally: &mut Tally,
) -> Result<Option<Difference>, KitError> {
    pair.begin()?;
    let mut servers = pair.connect(manner.protocol)?;
    let mut random = fastrand::Rng::with_seed(manner.seed);
    let mut start = 0;
    while start < steps.len() {
        let mut bytes = Vec::new();
        let mut end = start;
        let transacted = manner.delivery == Delivery::Transaction && !alone(&steps[start].command);
        while end < steps.len() {
            write_request(&mut bytes, &steps[end].request);
            end += 1;
            if end - start == manner.delivery.batch_length()
                || bytes.len() >= BATCH_BYTES_MAX
                || steps[end - 1].after != After::Nothing
                || alone(&steps[end - 1].command)
                || steps.get(end).is_some_and(|next| alone(&next.command))
            {
                break;
            }
        }
        pair.doors()
            .into_iter()
            .try_for_each(|door| door.advance(0))?;
        if transacted {
            bytes.clear();
            let requests = steps[start..end].iter().map(|step| step.request.as_slice());
            transaction::write_between(requests, &mut bytes);
        }
        for server in &mut servers {
            manner.delivery.send(server.as_mut(), &bytes, &mut random)?;
        }
        let mut difference = None;
        let mut transacted = if transacted {
            let [reference, subject] = &mut servers;
            let read = |server: &mut Box<dyn DoorSession>| {
                transaction::read_between(server.as_mut(), end - start)
            };
            let answers = read(reference)?.into_iter().zip(read(subject)?);
            Some(answers.map(|(reference, subject)| [reference, subject]))
        } else {
            None
        };
        for (index, step) in steps.iter().enumerate().take(end).skip(start) {
            let [reference, subject] = &mut servers;
            let answers = match &mut transacted {
                Some(answers) => match answers.next() {
                    Some(answers) => answers,
                    None => break,
                },
                None => [reference.read()?, subject.read()?],
            };
            tally.errors += usize::from(answers[0].reply().is_some_and(Wire::is_error));
            for (hung, answer) in pair.hung.iter_mut().zip(&answers) {
                *hung |= *answer == Answer::Nothing;
            }
            if difference.is_some() {
                // The rest of the batch is waited for, or it would run into the next round.
                if answers.iter().all(|answer| answer.reply().is_none()) {
                    break;
                }
                continue;
            }
            let result = compare(
                rule(&step.command),
                &step.request,
                [&answers[0], &answers[1]],
                [reference.as_mut(), subject.as_mut()],
            )?;
            if let Err(what) = result {
                if let [Some(left), Some(right)] = [answers[0].reply(), answers[1].reply()]
                    && let Some(id) = deviations.explain(&step.command, left, right)
                {
                    *tally.deviations.entry(id.to_owned()).or_default() += 1;
                    continue;
                }
                difference = Some(Difference {
                    index,
                    command: step.command.clone(),
                    what,
                    answers: Some(answers),
                });
            }
        }
        if difference.is_some() {
            return Ok(difference);
        }
        if let Some(last) = steps.get(end - 1)
            && matches!(last.after, After::Touch | After::Expire)
        {
            if last.after == After::Expire {
                pair.doors()
                    .into_iter()
                    .try_for_each(|door| door.advance(EXPIRY_WAIT_MS))?;
            }
            let mut request = vec![b"EXISTS".to_vec()];
            request.extend(last.request.iter().skip(1).cloned());
            for server in &mut servers {
                server.ask(&request)?;
            }
        }
        start = end;
    }
    let told = |command: &str, what: String| Difference {
        index: steps.len(),
        command: command.to_owned(),
        what,
        answers: None,
    };
    if let Some(what) = pair.subject.check()? {
        return Ok(Some(told("check", what)));
    }
    let what = state::difference([pair.reference.control(), pair.subject.control()])?;
    Ok(what.map(|what| told("state", what)))
}

/// Shortens the sequence that led to a difference, as long as one like it still shows.
fn reduce(
    pair: &mut Pair,
    steps: &[Step],
    manner: Manner,
    deviations: &Deviations,
    difference: Difference,
) -> Result<Finding, KitError> {
    let deadline = Instant::now() + Duration::from_secs(REDUCTION_SECONDS_MAX);
    let steps: Vec<Step> = steps[..(difference.index + 1).min(steps.len())].to_vec();
    let command = difference.command.clone();
    let mut shows = |steps: &[Step]| -> Result<Option<Difference>, KitError> {
        if Instant::now() > deadline {
            return Ok(None);
        }
        pair.set_answer_timeout(REDUCTION_REPLY_TIMEOUT);
        let found = play(pair, steps, manner, deviations, &mut Tally::default());
        pair.set_answer_timeout(REPLY_TIMEOUT);
        Ok(found?.filter(|found| found.command == command))
    };
    let Some(again) = shows(&steps)? else {
        return Ok(Finding {
            steps,
            manner,
            difference,
            repeatable: false,
        });
    };
    let (mut steps, mut latest) = shorten(steps, again, &mut shows)?;
    // Arguments that do not matter go too, the words of the name excepted.
    for index in 0..steps.len() {
        let name_length = steps[index].command.split('|').count();
        let mut place = steps[index].request.len();
        while place > name_length {
            place -= 1;
            let mut fewer = steps.clone();
            fewer[index].request.remove(place);
            if let Some(found) = shows(&fewer)?
                && found.index >= index
            {
                steps = fewer;
                latest = found;
            }
        }
    }
    Ok(Finding {
        steps,
        manner,
        difference: latest,
        repeatable: true,
    })
}
