//! Real clients against a running server: the command-line tools, and the libraries of six languages.
//!
//! Each runs as its own documentation shows, and what it gets is compared exactly (`weft-testkit/clients/`). What the system
//! does not have is installed under the target folder in pinned versions (`install.rs`). A client that could not be had is
//! told with the reason, and is neither passed nor failed. Clients run one after the other, and each begins with FLUSHALL.

mod benchmark;
mod command_line;
mod install;

use std::process::{Command, Output, Stdio};

use weft_client::Address;

use crate::error::KitError;
use crate::oracle::Oracles;
use crate::server::Server;

/// Seconds that a client may take. It needs a few; a machine that builds beside it may make fifty of them, more is a hang.
const SECONDS_MAX: &str = "300";

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

/// What a client is run against, and with.
struct Site<'a> {
    server: &'a Server,
    oracles: &'a Oracles,
    port: String,
    socket: String,
}

type Play = fn(&Site<'_>) -> Result<Verdict, KitError>;

const REDIS_PY: &str = "redis==8.1.0";
const REDIS_PY_BEFORE: &str = "redis==7.4.1";
const HIREDIS_PY: &str = "hiredis==3.5.0";

/// All clients: name, and how it runs. Of libraries that many programs still use in an older major version, that one runs too.
const CLIENTS: &[(&str, Play)] = &[
    ("redis-cli", command_line::requests),
    ("redis-cli, scans", command_line::scans),
    ("redis-cli in a terminal", command_line::terminal),
    ("redis-benchmark", benchmark::tests),
    ("redis-py 8", |site| {
        python(site, "redis_py.py", &[REDIS_PY], "python")
    }),
    ("redis-py 8 with hiredis", |site| {
        python(site, "redis_py.py", &[REDIS_PY, HIREDIS_PY], "hiredis")
    }),
    ("redis-py 8, asyncio", |site| {
        python(site, "redis_py_async.py", &[REDIS_PY], "python")
    }),
    ("redis-py 8 with hiredis, asyncio", |site| {
        python(
            site,
            "redis_py_async.py",
            &[REDIS_PY, HIREDIS_PY],
            "hiredis",
        )
    }),
    ("redis-py 7", |site| {
        python(site, "redis_py.py", &[REDIS_PY_BEFORE], "python")
    }),
    ("hiredis-py", |site| {
        python(site, "hiredis_py.py", &[HIREDIS_PY], "hiredis")
    }),
    ("hiredis", |site| {
        Ok(script(site, Command::new(install::hiredis()?)))
    }),
    ("ioredis 6", |site| node(site, "ioredis.js", "ioredis-6")),
    ("ioredis 5", |site| node(site, "ioredis.js", "ioredis-5")),
    ("node-redis 6", |site| {
        node(site, "node_redis.js", "redis-6")
    }),
    ("node-redis 5", |site| {
        node(site, "node_redis.js", "redis-5")
    }),
    ("phpredis", |site| {
        let mut command = Command::new(install::php()?);
        command.arg(install::script("phpredis.php"));
        Ok(script(site, command))
    }),
    ("redis-rb", |site| {
        let mut command = Command::new(install::ruby()?);
        command.arg(install::script("redis_rb.rb"));
        Ok(script(site, command))
    }),
    ("redis-rs", |site| {
        Ok(script(site, Command::new(install::redis_rs()?)))
    }),
];

/// Runs the clients whose name begins with one of `names`, or all if there is none, one after the other; `tell` hears of each.
pub fn run(
    server: &Server,
    oracles: &Oracles,
    names: &[String],
    tell: &mut dyn FnMut(&str, &Verdict),
) {
    let socket = match server.socket() {
        Address::Unix(path) => path.display().to_string(),
        Address::Tcp(..) => String::new(),
    };
    let site = Site {
        server,
        oracles,
        port: server.port().to_string(),
        socket,
    };
    for (client, play) in CLIENTS {
        if names.is_empty() || names.iter().any(|name| client.starts_with(name.as_str())) {
            let verdict = play(&site).unwrap_or_else(|error| match error {
                KitError::Missing(why) => Verdict::Missing(why),
                other => Verdict::Failed(other.to_string()),
            });
            tell(client, &verdict);
        }
    }
}

/// A script that may use `packages`, in the interpreter that is installed; `parser` is what has to read the replies.
fn python(
    site: &Site<'_>,
    name: &str,
    packages: &[&str],
    parser: &str,
) -> Result<Verdict, KitError> {
    let mut command = Command::new("python3");
    command
        .arg(install::script(name))
        .env("PYTHONPATH", install::python_path(packages)?);
    Ok(script_with(site, command, Some(parser)))
}

fn node(site: &Site<'_>, name: &str, module: &str) -> Result<Verdict, KitError> {
    let (node, modules) = install::node()?;
    let mut command = Command::new(node);
    command.arg(install::script(name)).env("NODE_PATH", modules);
    Ok(script_with(site, command, Some(module)))
}

/// A program that is given the port and the socket, and prints a line that begins with "ok" for each check that passed.
fn script(site: &Site<'_>, command: Command) -> Verdict {
    script_with(site, command, None)
}

fn script_with(site: &Site<'_>, mut command: Command, word: Option<&str>) -> Verdict {
    command.args([&site.port, &site.socket]).args(word);
    outcome(command)
}

fn outcome(command: Command) -> Verdict {
    match limited(command).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout);
            match said.lines().filter(|line| line.starts_with("ok ")).count() {
                0 => Verdict::Failed("it checked nothing".to_owned()),
                checks => Verdict::Passed(checks),
            }
        }
        Ok(output) => Verdict::Failed(format!("{}: {}", output.status, said(&output))),
        Err(error) => Verdict::Missing(format!("it cannot be run: {error}")),
    }
}

/// The same command, ended after [`SECONDS_MAX`].
fn limited(command: Command) -> Command {
    let mut limited = Command::new("timeout");
    limited
        .args(["--kill-after", "5", SECONDS_MAX])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

/// The end of what a program said, of its errors if there are any.
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
