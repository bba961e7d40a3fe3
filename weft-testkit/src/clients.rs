//! Real clients against a running server: redis-cli, redis-benchmark, redis-py, ioredis, node-redis.
//!
//! The libraries are installed under the target folder in pinned versions, without touching the system. A client
//! that could not be had is told with the reason, and is neither passed nor failed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::error::KitError;
use crate::folder::{target, workspace};
use crate::oracle::{Oracles, on_path};
use crate::server::Server;

/// Python packages, pinned.
const PYTHON_PACKAGES: &[&str] = &["redis==7.4.1"];
/// Node packages, pinned.
const NODE_PACKAGES: &[&str] = &["ioredis@5.11.1", "redis@5.12.1"];
/// Requests per command of redis-benchmark.
const BENCHMARK_REQUESTS: &str = "20000";

/// What came of one client.
#[derive(Debug)]
pub enum Verdict {
    /// So many checks passed.
    Passed(usize),
    /// What it said.
    Failed(String),
    /// Why it could not be had.
    Missing(String),
}

/// Runs every client against `server`, one after the other.
pub fn run(server: &Server, oracles: &Oracles) -> Vec<(&'static str, Verdict)> {
    let scripts = workspace().join("weft-testkit/clients");
    let port = server.port().to_string();
    let python = python();
    let node = node();
    let with_python = |script: &str| match &python {
        Ok(python) => script_verdict(Command::new(python).arg(scripts.join(script)).arg(&port)),
        Err(error) => Verdict::Missing(error.to_string()),
    };
    let with_node = |script: &str| match &node {
        Ok((node, modules)) => script_verdict(
            Command::new(node)
                .arg(scripts.join(script))
                .arg(&port)
                .env("NODE_PATH", modules),
        ),
        Err(error) => Verdict::Missing(error.to_string()),
    };
    let missing = || Verdict::Missing(oracles.missing.join("; "));
    vec![
        (
            "redis-cli",
            oracles
                .redis_cli
                .as_deref()
                .map_or_else(missing, |program| redis_cli(program, &port)),
        ),
        (
            "redis-benchmark",
            oracles
                .redis_benchmark
                .as_deref()
                .map_or_else(missing, |program| redis_benchmark(program, &port)),
        ),
        ("redis-py", with_python("redis_py.py")),
        ("ioredis", with_node("ioredis.js")),
        ("node-redis", with_node("node_redis.js")),
    ]
}

fn script_verdict(command: &mut Command) -> Verdict {
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout);
            Verdict::Passed(said.lines().filter(|line| line.starts_with("ok ")).count())
        }
        Ok(output) => Verdict::Failed(said(&output)),
        Err(error) => Verdict::Missing(format!("it cannot be run: {error}")),
    }
}

fn said(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let words = String::from_utf8_lossy(&output.stdout);
    let text = if errors.trim().is_empty() {
        words
    } else {
        errors
    };
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(25)..].join("\n")
}

/// redis-cli's arguments, what it is given to read, and what it prints.
const CLI_CHECKS: &[(&[&str], &str, &str)] = &[
    (&["FLUSHALL"], "", "OK\n"),
    (&["SET", "greeting", "hello"], "", "OK\n"),
    (&["GET", "greeting"], "", "hello\n"),
    (&["--no-raw", "GET", "greeting"], "", "\"hello\"\n"),
    (&["--no-raw", "GET", "nothing"], "", "(nil)\n"),
    (&["-3", "--no-raw", "GET", "nothing"], "", "(nil)\n"),
    (&["--no-raw", "INCR", "count"], "", "(integer) 1\n"),
    (
        &["--no-raw", "INCR", "greeting"],
        "",
        "(error) ERR value is not an integer or out of range\n",
    ),
    (
        &["--no-raw", "MGET", "greeting", "nothing"],
        "",
        "1) \"hello\"\n2) (nil)\n",
    ),
    (&["-x", "SET", "read"], "from standard input", "OK\n"),
    (&["GET", "read"], "", "from standard input\n"),
    (&[], "SET a 1\nGET a\nPING\n", "OK\n1\nPONG\n"),
    (&["-r", "3", "INCR", "again"], "", "1\n2\n3\n"),
    (&["-n", "1", "DBSIZE"], "", "0\n"),
    (&["--scan", "--pattern", "gree*"], "", "greeting\n"),
    (
        &["-3", "--json", "MGET", "greeting", "nothing"],
        "",
        "[\"hello\",null]\n",
    ),
    (
        &["--pipe"],
        "SET piped 1\r\nSET piped 2\r\n",
        "All data transferred. Waiting for the last reply...\nLast reply received from server.\nerrors: 0, replies: 2\n",
    ),
];

fn redis_cli(program: &Path, port: &str) -> Verdict {
    for (arguments, input, expected) in CLI_CHECKS {
        let mut command = Command::new(program);
        command.args(["-p", port]).args(*arguments);
        match with_input(&mut command, input) {
            Err(error) => return Verdict::Missing(error.to_string()),
            Ok(output) => {
                let printed = String::from_utf8_lossy(&output.stdout);
                if printed != *expected {
                    return Verdict::Failed(format!(
                        "redis-cli {}: printed {printed:?} instead of {expected:?}; {}",
                        arguments.join(" "),
                        String::from_utf8_lossy(&output.stderr).trim()
                    ));
                }
            }
        }
    }
    Verdict::Passed(CLI_CHECKS.len())
}

fn with_input(command: &mut Command, input: &str) -> Result<Output, KitError> {
    use std::io::Write;
    let doing = || "run redis-cli".to_owned();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(KitError::io(doing()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read its input may be gone already.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(KitError::io(doing()))
}

fn redis_benchmark(program: &Path, port: &str) -> Verdict {
    let tests: [(&[&str], &[&str]); 3] = [
        (
            &["-t", "ping,set,get,incr,mset"],
            &["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"],
        ),
        (
            &["-t", "set,get", "-P", "16", "-r", "1000"],
            &["SET", "GET"],
        ),
        (&["-t", "set,get", "-3", "--threads", "2"], &["SET", "GET"]),
    ];
    let mut passed = 0;
    for (arguments, names) in tests {
        let mut command = Command::new(program);
        command
            .args(["-p", port, "-q", "-n", BENCHMARK_REQUESTS])
            .args(arguments)
            .stdin(Stdio::null());
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => return Verdict::Missing(format!("it cannot be run: {error}")),
        };
        // Progress and results share a line, separated by carriage returns.
        let printed = String::from_utf8_lossy(&output.stdout).replace('\r', "\n");
        for name in names {
            let measured =
                |line: &str| line.starts_with(name) && line.contains("requests per second");
            if !output.status.success() || !printed.lines().any(measured) {
                return Verdict::Failed(format!(
                    "redis-benchmark {}: {name}: {}",
                    arguments.join(" "),
                    said(&output)
                ));
            }
            passed += 1;
        }
    }
    Verdict::Passed(passed)
}

/// The interpreter of a virtual environment that has the packages.
fn python() -> Result<PathBuf, KitError> {
    let folder = target().join("clients/python");
    let python = folder.join("bin/python");
    if is_installed(&folder, PYTHON_PACKAGES) {
        return Ok(python);
    }
    run_tool(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
    )?;
    run_tool(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet"])
            .args(PYTHON_PACKAGES),
    )?;
    mark_installed(&folder, PYTHON_PACKAGES)?;
    Ok(python)
}

/// Node, and the folder that has the packages.
fn node() -> Result<(PathBuf, PathBuf), KitError> {
    let node =
        on_path("node").ok_or_else(|| KitError::Missing("node is not installed".to_owned()))?;
    let folder = target().join("clients/node");
    let modules = folder.join("node_modules");
    if is_installed(&folder, NODE_PACKAGES) {
        return Ok((node, modules));
    }
    std::fs::create_dir_all(&folder).map_err(KitError::io(format!("make {}", folder.display())))?;
    run_tool(
        Command::new("npm")
            .args([
                "install",
                "--silent",
                "--no-fund",
                "--no-audit",
                "--no-save",
                "--prefix",
            ])
            .arg(&folder)
            .args(NODE_PACKAGES),
    )?;
    mark_installed(&folder, NODE_PACKAGES)?;
    Ok((node, modules))
}

fn marker(folder: &Path) -> PathBuf {
    folder.join("installed.txt")
}

fn is_installed(folder: &Path, packages: &[&str]) -> bool {
    std::fs::read_to_string(marker(folder)).is_ok_and(|text| text == packages.join("\n"))
}

fn mark_installed(folder: &Path, packages: &[&str]) -> Result<(), KitError> {
    std::fs::write(marker(folder), packages.join("\n"))
        .map_err(KitError::io(format!("write {}", marker(folder).display())))
}

fn run_tool(command: &mut Command) -> Result<(), KitError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| KitError::Missing(format!("cannot run {name}: {error}")))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(KitError::Missing(format!(
            "{name} failed ({}): {}",
            output.status,
            said(&output)
        )))
    }
}
