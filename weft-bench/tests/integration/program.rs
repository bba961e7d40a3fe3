//! Runs programs and keeps what they leave behind.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_weft-bench");

/// What a program that ended by itself left behind.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

/// Runs a program to its end, with `input` on its standard input.
pub fn run(mut command: Command, input: &str) -> Ended {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Few programs read it, and those that do not close it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    Ended {
        code: status.code(),
        output: String::from_utf8(stdout).unwrap(),
        errors: String::from_utf8(stderr).unwrap(),
    }
}

/// The program in its redis-benchmark mode.
pub fn redis_benchmark(arguments: &[String]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("redis-benchmark").args(arguments);
    command
}

/// A program of this name on the search path.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    path.is_file()
}
