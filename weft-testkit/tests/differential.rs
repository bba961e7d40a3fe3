//! The kit judged by itself: two sound engines never differ, and a planted fault is found and reduced.

use std::time::Duration;

use weft_testkit::case_file::CaseFile;
use weft_testkit::case_run::{self, Explained};
use weft_testkit::delivery::Delivery;
use weft_testkit::deviations::Deviations;
use weft_testkit::differential::{self, Outcome, Pair, Plan};
use weft_testkit::door::{Answer, Door, DoorSession};
use weft_testkit::engine_door::EngineDoor;
use weft_testkit::error::KitError;
use weft_testkit::wire::Wire;

fn engine() -> Box<dyn Door> {
    Box::new(EngineDoor::start(&[]).expect("an engine starts"))
}

fn run(subject: Box<dyn Door>, count: usize) -> Outcome {
    let plan = Plan {
        family: "string".to_owned(),
        count,
        seed: 3,
        deliveries: Delivery::ALL.to_vec(),
        findings_max: 1,
    };
    let mut pair = Pair::new(engine(), subject);
    differential::run(&mut pair, &plan, &Deviations::default(), &mut |_| {})
        .expect("both engines answer")
}

#[test]
fn two_sound_engines_never_differ() {
    let outcome = run(engine(), 4000);
    let told: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
    assert_eq!(told, Vec::<String>::new());
    assert_eq!(outcome.requests, 4000);
    assert!(
        outcome.errors > 400,
        "only {} requests were faulty",
        outcome.errors
    );
    assert!(
        outcome.errors < 2000,
        "{} requests were faulty",
        outcome.errors
    );
}

#[test]
fn a_planted_fault_is_found_and_reduced_to_what_shows_it() {
    let outcome = run(Box::new(Faulty(engine())), 10_000);
    let [finding] = outcome.findings.as_slice() else {
        panic!("{} findings", outcome.findings.len());
    };
    assert!(finding.repeatable);
    // At most one request makes something of ten bytes, or the number nine; the last one shows the fault.
    assert!(finding.steps.len() <= 2, "{finding}");
    let Some([Answer::Reply(right), Answer::Reply(wrong)]) = &finding.difference.answers else {
        panic!("{finding}");
    };
    assert_eq!((right.integer(), wrong.integer()), (Some(10), Some(11)));
}

/// An engine that takes ten for eleven.
struct Faulty(Box<dyn Door>);

impl Door for Faulty {
    fn name(&self) -> String {
        self.0.name()
    }

    fn delivery(&self) -> Delivery {
        self.0.delivery()
    }

    fn set_delivery(&mut self, delivery: Delivery) {
        self.0.set_delivery(delivery);
    }

    fn set_answer_timeout(&mut self, timeout: Duration) {
        self.0.set_answer_timeout(timeout);
    }

    fn open(&mut self) -> Result<Box<dyn DoorSession>, KitError> {
        Ok(Box::new(FaultySession(self.0.open()?)))
    }

    fn control(&mut self) -> &mut dyn DoorSession {
        self.0.control()
    }

    fn advance(&mut self, milliseconds: u64) -> Result<(), KitError> {
        self.0.advance(milliseconds)
    }

    fn revive(&mut self, distrusted: bool) -> Result<(), KitError> {
        self.0.revive(distrusted)
    }

    fn check(&mut self) -> Result<Option<String>, KitError> {
        self.0.check()
    }
}

struct FaultySession(Box<dyn DoorSession>);

impl DoorSession for FaultySession {
    fn send(&mut self, bytes: &[u8]) -> Result<(), KitError> {
        self.0.send(bytes)
    }

    fn read(&mut self) -> Result<Answer, KitError> {
        Ok(match self.0.read()? {
            Answer::Reply(Wire::Integer(10)) => Answer::Reply(Wire::Integer(11)),
            other => other,
        })
    }

    fn finish(&mut self) -> Result<Vec<u8>, KitError> {
        self.0.finish()
    }
}

#[test]
fn a_wrong_expectation_is_told_with_its_place() {
    let text = "case one\n> SET k v\n< +OK\n> GET k\n< \"w\"\n\ncase two\n> GET nokey\n<2 $-1\n<3 _\n\ncase three\nneeds nosuchcommand\n> NOSUCHCOMMAND\n< +OK\n";
    let file = CaseFile::parse("some.case", text).expect("a case file");
    let mut door = engine();
    let commands = door.commands().expect("the engine answers");
    for delivery in Delivery::ALL {
        door.set_delivery(delivery);
        let mut explained = Explained::default();
        let played = case_run::play_file(
            "some.case",
            &file,
            door.as_mut(),
            &commands,
            false,
            &mut explained,
        )
        .expect("the engine answers");
        assert_eq!(played.count, 4);
        assert_eq!(played.skipped, ["three (no nosuchcommand)"]);
        let told: Vec<_> = played
            .failures
            .iter()
            .map(|failure| {
                (
                    failure.line,
                    failure.expected.as_str(),
                    failure.came.as_str(),
                )
            })
            .collect();
        assert_eq!(told, [(4, "\"w\"", "\"v\""), (4, "\"w\"", "\"v\"")]);
    }
}
