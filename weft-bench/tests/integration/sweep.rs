//! The modes that start servers and compare results: sweep and compare.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Ended, PROGRAM, run};
use crate::stand_in;

fn weft_bench(arguments: &[&str]) -> Ended {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    run(command, "")
}

/// A short sweep of the stand-in with one and two threads, two rounds each; what follows `more` are further options.
fn swept(folder: &Path, more: &[&str]) -> Ended {
    let server = format!("stand={}", stand_in::command_line(&folder.join("ids")));
    let mut arguments = vec!["sweep", "--server", &server];
    arguments.extend(["--threads", "1,2", "--connections", "3", "--keys", "20"]);
    arguments.extend(["--seconds", "0.2", "--warm-up", "0.05", "--rounds", "2"]);
    arguments.extend(more);
    weft_bench(&arguments)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_setting_is_measured_in_every_round() {
    let folder = tempfile::tempdir().unwrap();
    let [json_file, page] = ["a.json", "a.html"].map(|name| folder.path().join(name));
    let ended = swept(
        folder.path(),
        &[
            "--mix",
            "get",
            "--mix",
            "set:1,hgetall:3",
            "--json",
            json_file.to_str().unwrap(),
            "--html",
            page.to_str().unwrap(),
            "--label",
            "one <two>",
        ],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let ids = stand_in::ids(&folder.path().join("ids"));
    assert_eq!(ids.len(), 8);
    assert!(ids.iter().all(|id| !stand_in::is_alive(*id)));

    let value = json(&json_file);
    assert_eq!(value["format"], "weft-bench sweep");
    assert_eq!(value["servers"][0]["version"], "weft 9.9");
    let series = value["series"].as_array().unwrap();
    let places: Vec<(&str, &str)> = series
        .iter()
        .map(|it| {
            (
                it["cell"].as_str().unwrap(),
                it["threads"].as_str().unwrap(),
            )
        })
        .collect();
    let [get, mix] = [
        "GET, 100 B, 3 connections",
        "SET/HGETALL 1:3, 100 B, 3 connections",
    ];
    assert_eq!(places, [(get, "1"), (get, "2"), (mix, "1"), (mix, "2")]);
    for series in series {
        let samples = series["samples"].as_array().unwrap();
        assert_eq!(samples.len(), 2);
        for (round, sample) in samples.iter().enumerate() {
            assert_eq!(sample["round"], round);
            assert_eq!(sample["failed"], 0);
            let figure = |name: &str| sample[name].as_f64().unwrap();
            assert!(figure("rate") > 0.0 && figure("cpu_us_per_op") > 0.0);
            assert!(figure("p50_us") > 0.0 && figure("p99_us") >= figure("p50_us"));
            assert!(figure("p999_us") >= figure("p99_us") && figure("max_us") >= figure("p999_us"));
            // 1, 2 and 4 for each request, and the two questions before and after.
            let step = |name: &str| sample["steps_us_per_op"][name].as_f64().unwrap();
            assert!((step("read") - 1.0).abs() < 0.1, "{}", step("read"));
            assert!((step("execute") - 2.0).abs() < 0.2 && step("parse") == 0.0);
            assert!((step("write") - 4.0).abs() < 0.4);
            let threads = sample["threads"].as_array().unwrap();
            assert!(
                threads
                    .iter()
                    .any(|it| it["run_share"].as_f64().unwrap() > 0.0)
            );
            assert!(!sample["client_threads"].as_array().unwrap().is_empty());
        }
        assert!(
            series["bound"]["because"]
                .as_str()
                .unwrap()
                .contains(" of the time")
        );
    }
    assert_eq!(value["sweet_spots"].as_array().unwrap().len(), 2);
    for words in [
        get,
        mix,
        "server  threads",
        "stand: best with ",
        "us/op by step, by the server's clock: read 1.0",
    ] {
        assert!(ended.output.contains(words), "{words}: {}", ended.output);
    }
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("<h1>one &lt;two&gt;</h1>") && text.ends_with("</html>\n"));

    // The file alone gives the same table and page.
    let again = folder.path().join("b.html");
    let shown = weft_bench(&[
        "sweep",
        "--from",
        json_file.to_str().unwrap(),
        "--html",
        again.to_str().unwrap(),
    ]);
    assert_eq!((shown.code, shown.output), (Some(0), ended.output));
    assert_eq!(fs::read_to_string(again).unwrap(), text);
}

#[test]
fn a_server_ends_with_the_program_even_if_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ids");
    let server = format!("stand={}", stand_in::command_line(&file));
    let mut program = Command::new(PROGRAM)
        .args(["sweep", "--server", &server, "--seconds", "600"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let wait_until = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(Instant::now() < deadline, "a minute is enough");
            thread_yield();
        }
    };
    wait_until(&|| !stand_in::ids(&file).is_empty());
    let id = stand_in::ids(&file)[0];
    assert!(stand_in::is_alive(id));
    program.kill().unwrap();
    program.wait().unwrap();
    wait_until(&|| !stand_in::is_alive(id));
}

/// Processes tell nobody else of their end; it is looked for now and then.
fn thread_yield() {
    std::thread::sleep(Duration::from_millis(5));
}

#[test]
fn what_a_server_said_is_shown_when_it_does_not_start() {
    let ended = weft_bench(&[
        "sweep",
        "--server",
        "x=sh -c 'echo wrong configuration; exit 3'",
        "--rounds",
        "1",
    ]);
    assert_eq!(ended.code, Some(1));
    let errors = &ended.errors;
    assert!(
        errors.contains(
            "the server ended at its start (exit status: 3); it printed:\nwrong configuration"
        ),
        "{errors}"
    );
    assert!(errors.ends_with("weft-bench sweep: no measurement succeeded\n"));
    let ended = weft_bench(&["sweep", "--server", "x=/no/such/server", "--rounds", "1"]);
    assert!(
        ended
            .errors
            .contains("cannot run /no/such/server: No such file or directory"),
        "{}",
        ended.errors
    );
}

#[test]
fn help_and_presets_need_no_server() {
    let ended = weft_bench(&["sweep", "--presets"]);
    assert_eq!(ended.code, Some(0));
    assert!(
        ended
            .output
            .starts_with("threads    200 connections, SET/GET 1:9 of 128 B\n")
    );
    for mode in ["sweep", "compare", "stall"] {
        let ended = weft_bench(&[mode, "--help"]);
        assert_eq!(ended.code, Some(0));
        assert!(
            ended
                .output
                .starts_with(&format!("Usage: weft-bench {mode} "))
        );
    }
}

/// The file with every figure of this name multiplied.
fn changed(file: &Path, figure: &str, factor: f64, to: &Path) {
    let mut value = json(file);
    for series in value["series"].as_array_mut().unwrap() {
        for sample in series["samples"].as_array_mut().unwrap() {
            let new = sample[figure].as_f64().unwrap() * factor;
            sample[figure] = new.into();
        }
    }
    fs::write(to, value.to_string()).unwrap();
}

#[test]
fn comparisons_have_exit_statuses() {
    let folder = tempfile::tempdir().unwrap();
    let [base, new] = ["base.json", "new.json"].map(|name| folder.path().join(name));
    let [base_name, new_name] = [&base, &new].map(|path| path.to_str().unwrap().to_owned());
    let swept = swept(folder.path(), &["--json", &base_name]);
    assert_eq!(swept.code, Some(0), "{}", swept.errors);
    let compare = |arguments: &[&str]| {
        let mut all = vec!["compare", &base_name];
        all.extend(arguments);
        weft_bench(&all)
    };

    let same = compare(&[&base_name]);
    assert_eq!(same.code, Some(0), "{}", same.output);
    assert!(
        same.output.ends_with("\nno regression\n"),
        "{}",
        same.output
    );
    assert_eq!(same.output.matches("no difference shown").count(), 2 * 9);

    changed(&base, "rate", 0.5, &new);
    let report = folder.path().join("report.json");
    let half = compare(&[&new_name, "--json", report.to_str().unwrap()]);
    assert_eq!(half.code, Some(1), "{}", half.output);
    let line = "regression: GET, 100 B, 3 connections; stand; threads 1: rate/s, -50.0 % (worse)";
    assert!(half.output.contains(line), "{}", half.output);
    let change = &json(&report)["series"][0]["changes"][0];
    assert_eq!(
        (&change["figure"], &change["regression"]),
        (&"rate".into(), &true.into())
    );
    assert!((change["ratio"].as_f64().unwrap() - 0.5).abs() < 1e-9);
    assert_eq!(
        compare(&[&new_name, "--threshold", "rate=60"]).code,
        Some(0)
    );
    assert_eq!(
        compare(&[&new_name, "--threshold", "rate=none"]).code,
        Some(0)
    );

    changed(&base, "p99_us", 2.0, &new);
    assert_eq!(compare(&[&new_name]).code, Some(1));
    changed(&base, "p99_us", 0.5, &new);
    let better = compare(&[&new_name]);
    assert_eq!(better.code, Some(0));
    assert!(better.output.contains("better"));
    // Runs of several files are further rounds.
    let both = compare(&[&format!("{base_name},{new_name}")]);
    assert_eq!(both.code, Some(0));
    let twice = weft_bench(&[
        "compare",
        &format!("{base_name},{base_name}"),
        &format!("{base_name},{new_name}"),
    ]);
    assert!(twice.output.contains("      4  "), "{}", twice.output);

    let threads = compare(&["--threads", "1=2"]);
    assert!(
        threads
            .output
            .starts_with("GET, 100 B, 3 connections; stand; threads 1 -> 2\n")
    );

    for arguments in [&["--servers", "stand=other"][..], &["no-such-file"], &[]] {
        assert_eq!(compare(arguments).code, Some(2), "{arguments:?}");
    }
    fs::write(&new, "{}").unwrap();
    let refused = compare(&[&new_name]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .errors
            .contains("new.json: it is no result of weft-bench sweep or run"),
        "{}",
        refused.errors
    );
}

#[test]
fn an_interrupted_sweep_leaves_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let [ids, file] = ["ids", "a.json"].map(|name| folder.path().join(name));
    let server = format!("stand={}", stand_in::command_line(&ids));
    let program = Command::new(PROGRAM)
        .args([
            "sweep",
            "--server",
            &server,
            "--threads",
            "1,2",
            "--rounds",
            "600",
        ])
        .args([
            "--seconds",
            "0.1",
            "--warm-up",
            "0",
            "--keys",
            "10",
            "--connections",
            "2",
            "--json",
        ])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    // The third server is of the second round: the first one's two measurements are there.
    while stand_in::ids(&ids).len() < 3 {
        assert!(Instant::now() < deadline, "a minute is enough");
        thread_yield();
    }
    let kill = Command::new("kill")
        .args(["-INT", &program.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = program.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stand_in::ids(&ids)
            .iter()
            .all(|id| !stand_in::is_alive(*id))
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("GET, 100 B, 2 connections\n")
            && text.contains("a round failed: interrupted\n")
    );
    let samples = json(&file)["series"][0]["samples"]
        .as_array()
        .unwrap()
        .len();
    assert!((1..600).contains(&samples), "{samples}");
}
