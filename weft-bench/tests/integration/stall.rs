//! The mode that measures how long others wait, against a server that lets them wait for a known time.

use std::process::Command;

use serde_json::Value;

use crate::program::{Ended, PROGRAM, run};
use crate::stand_in;

/// Two short rounds with these further options; with what is written as JSON.
fn stalled(more: &[&str]) -> (Ended, Option<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stall.json");
    let ids = folder.path().join("ids");
    let mut command = Command::new(PROGRAM);
    command
        .args(["stall", "--server", &stand_in::command_line(&ids)])
        .args(["--seconds", "0.5", "--rounds", "2", "--rate", "400"])
        .arg("--json")
        .arg(&file)
        .args(more);
    let ended = run(command, "");
    assert!(
        stand_in::ids(&ids)
            .iter()
            .all(|id| !stand_in::is_alive(*id))
    );
    let text = std::fs::read(file).ok();
    (
        ended,
        text.map(|text| serde_json::from_slice(&text).unwrap()),
    )
}

#[test]
fn a_command_that_holds_the_server_is_found_and_one_that_does_not_is_not() {
    let (ended, value) = stalled(&[
        "--run",
        "SLEEP 60",
        "--run",
        "SLEEP 0",
        "--control-cores",
        "0",
        "--max-added-p999",
        "20",
    ]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.output, ended.errors);
    let value = value.unwrap();
    assert_eq!(value["format"], "weft-bench stall");
    assert_eq!(value["server"], "weft 9.9");
    assert_eq!(value["baseline"].as_array().unwrap().len(), 2);
    let commands = value["commands"].as_array().unwrap();
    let added_ms = |place: usize| commands[place]["added_p999_us"].as_f64().unwrap() / 1000.0;
    // Whoever comes just after the lock was taken waits for nearly all of the time.
    assert!(added_ms(0) > 45.0, "{}", ended.output);
    assert!(added_ms(1) < added_ms(0) / 2.0, "{}", ended.output);
    for command in commands {
        let measurements = command["measurements"].as_array().unwrap();
        assert_eq!(measurements.len(), 4);
        for measurement in measurements {
            assert_eq!(measurement["failed"], 0);
            let runs = measurement["runs"].as_u64().unwrap();
            assert_eq!(runs > 0, measurement["beside"] == "command");
            // Sent by the clock, whatever the answers do.
            let rate = measurement["rate"].as_f64().unwrap();
            assert!((300.0..450.0).contains(&rate), "{rate}");
        }
    }
    assert!(
        ended.output.contains("\nSLEEP 60: adds "),
        "{}",
        ended.output
    );
}

#[test]
fn within_the_bound_all_is_well() {
    let (ended, _) = stalled(&["--run", "SLEEP 1", "--max-added-p999", "60000"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert!(ended.output.contains("its control"), "{}", ended.output);
}

#[test]
fn a_command_that_fails_is_told() {
    let (ended, value) = stalled(&["--run", "FAIL", "--rounds", "1"]);
    assert_eq!(ended.code, Some(2), "{}", ended.output);
    assert!(
        ended
            .output
            .contains("FAIL: is answered with -ERR it fails\n"),
        "{}",
        ended.output
    );
    let value = value.unwrap();
    assert_eq!(
        value["commands"][0]["failure"],
        "is answered with -ERR it fails"
    );
}
