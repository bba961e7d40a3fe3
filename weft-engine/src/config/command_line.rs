//! The command line: which mode the server was asked for, which file it reads, and options turned into configuration lines.
//!
//! Options become the same text a file would hold, so that they pass through one parser and one table. The module reads no
//! file and knows no parameter except `save`, whose option may stand without a value.

use super::syntax::{quote, split};
use crate::identity::{REDIS_VERSION, WEFT_VERSION};

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Invocation {
    /// `-v`, `--version`: print [`Program::version`] and leave.
    Version,
    /// `-h`, `--help`: print [`usage`] and leave.
    Help,
    /// `--check-system`: look at the machine's settings and leave.
    CheckSystem,
    /// A mode of the reference that does not exist here; the text says so.
    Refused(&'static str),
    /// Run the server.
    Serve(CommandLine),
}

/// Where the configuration comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Path of the configuration file as given.
    pub file: Option<String>,
    /// Whether more lines come from standard input (`-`).
    pub stdin: bool,
    /// One configuration line per option, without line ends.
    pub options: Vec<Vec<u8>>,
}

/// Under which name the program was started: a link may call it like the program it stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The server, under its own or any other name.
    Server,
    /// The server as `redis-server`.
    RedisServer,
    /// A program of Redis's that this one is not; the text says so.
    Other(&'static str),
}

impl Program {
    /// By the last part of the name it was started under.
    pub fn of(name: &str) -> Program {
        match name {
            "redis-server" => Program::RedisServer,
            "redis-sentinel" => Program::Other(
                "redis-sentinel is not available here: this program is a server; watch it with the redis-sentinel of Redis",
            ),
            "redis-check-rdb" | "redis-check-aof" => Program::Other(
                "this program is a server and checks no files; there are no data files to check yet",
            ),
            _ => Program::Server,
        }
    }

    /// The line of `--version`. As `redis-server` it is the one that installers and test tools take the version of Redis
    /// from. `allocator` is the allocator's name and version.
    pub fn version(self, allocator: &str) -> String {
        let bits = usize::BITS;
        match self {
            Program::RedisServer => format!(
                "Redis server v={REDIS_VERSION} sha=00000000:0 malloc={allocator} bits={bits} build=weft-{WEFT_VERSION}"
            ),
            _ => format!("Weft server v={WEFT_VERSION} malloc={allocator} bits={bits}"),
        }
    }
}

impl Invocation {
    /// Understands the arguments that follow the program's name.
    pub fn parse(arguments: &[Vec<u8>]) -> Invocation {
        match arguments.first().map(Vec::as_slice) {
            Some(b"-v" | b"--version") => return Invocation::Version,
            Some(b"-h" | b"--help") => return Invocation::Help,
            Some(b"--check-system") => return Invocation::CheckSystem,
            Some(b"--test-memory") => {
                return Invocation::Refused(
                    "--test-memory is not available; use a memory tester such as memtester",
                );
            }
            _ => {}
        }
        if arguments.iter().any(|argument| argument == b"--sentinel") {
            return Invocation::Refused(
                "--sentinel is not available; run redis-sentinel beside this server",
            );
        }
        let mut line = CommandLine::default();
        let mut rest = arguments;
        if let [first, after @ ..] = rest
            && !first.starts_with(b"-")
        {
            // An empty name means no file, as for the reference.
            line.file =
                Some(String::from_utf8_lossy(first).into_owned()).filter(|path| !path.is_empty());
            rest = after;
        } else if let [first, after @ ..] = rest
            && first == b"-"
        {
            line.stdin = true;
            rest = after;
        }
        if let [before @ .., last] = rest
            && last == b"-"
        {
            line.stdin = true;
            rest = before;
        }
        line.options = options(rest);
        Invocation::Serve(line)
    }
}

/// Turns option arguments into lines. An argument that starts with `--` opens an option, unless it directly follows one
/// that is a mere name: then it is that option's value, since values may look like options. Only `save` may stand alone.
/// An option may bring its value along in the same argument: `"--port 7000"`.
fn options(arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut text = Vec::new();
    let mut value_expected = false;
    let mut option: &[u8] = b"";
    for argument in arguments {
        match argument.strip_prefix(b"--") {
            Some(name) if !value_expected || option.eq_ignore_ascii_case(b"save") => {
                if !text.is_empty() {
                    text.push(b'\n');
                }
                text.extend_from_slice(name);
                text.push(b' ');
                option = name;
                value_expected = split(name).is_some_and(|words| words.len() == 1);
            }
            _ => {
                text.extend_from_slice(quote(argument).as_bytes());
                text.push(b' ');
                value_expected = false;
            }
        }
    }
    if text.is_empty() {
        Vec::new()
    } else {
        text.split(|&byte| byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    }
}

/// The text of `--help` for a program of this name.
pub fn usage(program: &str) -> String {
    format!(
        "Usage: {program} [/path/to/redis.conf] [options] [-]\n\
         \x20      {program} -                  read the configuration from standard input\n\
         \x20      {program} -v or --version\n\
         \x20      {program} -h or --help\n\
         \x20      {program} --check-system     look for settings of this machine that cost speed or safety\n\
         \n\
         An option is the name of a parameter behind two dashes, followed by its values:\n\
         \x20      {program} --port 7777\n\
         \x20      {program} --bind 127.0.0.1 ::1 --save \"\"\n\
         \x20      {program} /etc/redis/redis.conf --loglevel verbose -\n"
    )
}
