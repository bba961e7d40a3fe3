//! The connection itself: PING, HELLO, AUTH, SELECT and their relatives.

use weft_data::number;
use weft_resp::Protocol;

use super::client::{BAD_NAME, is_attribute};
use super::options::{integer32, is};
use crate::command::{Argument, Categories, CommandRow, Deprecation, Flags, Secrets};
use crate::dispatch::Context;
use crate::error::CommandError;
use crate::identity::REDIS_VERSION;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "ping",
        arity: -1,
        flags: Flags::FAST,
        categories: Categories::CONNECTION,
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers PONG, or the message given.",
        arguments: &[Argument::string("message").optional()],
        handler: ping,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "echo",
        arity: 2,
        flags: Flags::LOADING.with(Flags::STALE).with(Flags::FAST),
        categories: Categories::CONNECTION,
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers with its argument.",
        arguments: &[Argument::string("message")],
        handler: echo,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "quit",
        arity: -1,
        flags: Flags::NO_SCRIPT
            .with(Flags::LOADING)
            .with(Flags::STALE)
            .with(Flags::FAST)
            .with(Flags::NO_AUTH)
            .with(Flags::ALLOW_BUSY)
            .with(Flags::AT_ONCE),
        categories: Categories::CONNECTION,
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Asks the server to close the connection.",
        deprecated: Some(Deprecation {
            since: "7.2.0",
            replaced_by: "closing the connection",
        }),
        handler: quit,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "hello",
        arity: -1,
        flags: Flags::NO_SCRIPT
            .with(Flags::LOADING)
            .with(Flags::STALE)
            .with(Flags::FAST)
            .with(Flags::NO_AUTH)
            .with(Flags::ALLOW_BUSY),
        categories: Categories::CONNECTION,
        group: "connection",
        since: "6.0.0",
        complexity: "O(1)",
        summary: "Agrees on a protocol version, optionally logging in and naming the connection.",
        history: &[(
            "6.2.0",
            "The version may be left out; the reply then describes the connection.",
        )],
        arguments: &[Argument::block(
            "arguments",
            &[
                Argument::integer("protover"),
                Argument::block(
                    "auth",
                    &[Argument::string("username"), Argument::string("password")],
                )
                .token("AUTH")
                .optional(),
                Argument::string("clientname").token("SETNAME").optional(),
            ],
        )
        .optional()],
        secrets: Some(hello_secrets),
        handler: hello,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "auth",
        arity: -2,
        flags: Flags::NO_SCRIPT
            .with(Flags::LOADING)
            .with(Flags::STALE)
            .with(Flags::FAST)
            .with(Flags::NO_AUTH)
            .with(Flags::ALLOW_BUSY),
        categories: Categories::CONNECTION,
        group: "connection",
        since: "1.0.0",
        complexity: "O(N) in the number of passwords",
        summary: "Logs the connection in.",
        history: &[("6.0.0", "Takes a user name before the password.")],
        arguments: &[
            Argument::string("username").optional().since("6.0.0"),
            Argument::string("password"),
        ],
        secrets: Some(auth_secrets),
        handler: auth,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "select",
        arity: 2,
        flags: Flags::LOADING.with(Flags::STALE).with(Flags::FAST),
        categories: Categories::CONNECTION,
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Chooses the database that the connection's commands use.",
        arguments: &[Argument::integer("index")],
        handler: select,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "reset",
        arity: 1,
        flags: Flags::NO_SCRIPT
            .with(Flags::LOADING)
            .with(Flags::STALE)
            .with(Flags::FAST)
            .with(Flags::NO_AUTH)
            .with(Flags::ALLOW_BUSY)
            .with(Flags::AT_ONCE),
        categories: Categories::CONNECTION,
        group: "connection",
        since: "6.2.0",
        complexity: "O(1)",
        summary: "Puts the connection back to its state after connecting.",
        handler: reset,
        ..CommandRow::DEFAULT
    },
];

const WRONG_PASSWORD: CommandError =
    CommandError::Text("WRONGPASS invalid username-password pair or user is disabled.");
const NO_PASSWORD: CommandError = CommandError::Text(
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
);
const HELLO_BEFORE_AUTH: CommandError = CommandError::Text(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
     option can be used to authenticate the client and select the RESP protocol version at the same time",
);

fn ping(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match cx.args.len() {
        1 => cx.reply.simple("PONG"),
        2 => cx.reply.bulk(&cx.args[1]),
        _ => return Err(CommandError::WrongArity(cx.row.name.into())),
    }
    Ok(())
}

fn echo(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.bulk(&cx.args[1]);
    Ok(())
}

fn quit(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.ok();
    cx.client.close_after_reply();
    Ok(())
}

fn reset(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.forget_watched_keys();
    cx.client
        .reset(cx.worker.settings().requirepass().is_none());
    cx.reply.set_protocol(cx.client.protocol);
    cx.reply.simple("RESET");
    Ok(())
}

fn select(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const OUT_OF_RANGE: CommandError = CommandError::Text("ERR DB index is out of range");
    let index = integer32(&cx.args[1])?;
    let index = usize::try_from(index)
        .ok()
        .filter(|index| *index < cx.engine.keyspace.databases())
        .ok_or(OUT_OF_RANGE)?;
    cx.client.database = index;
    cx.reply.ok();
    Ok(())
}

fn auth(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let args = cx.args;
    match args.len() {
        2 if cx.worker.settings().requirepass().is_none() => return Err(NO_PASSWORD),
        2 => authenticate(cx, b"default", &args[1])?,
        3 => authenticate(cx, &args[1], &args[2])?,
        _ => return Err(CommandError::Syntax),
    }
    cx.reply.ok();
    Ok(())
}

/// Logs the client in; without a password set, the default user takes any.
fn authenticate(
    cx: &mut Context<'_, '_>,
    user: &[u8],
    password: &[u8],
) -> Result<(), CommandError> {
    let right = match cx.worker.settings().requirepass() {
        None => true,
        Some(wanted) => same_secret(wanted, password),
    };
    if user == b"default" && right {
        cx.client.authenticate();
        Ok(())
    } else {
        cx.worker.statistics().logins_refused.add(1);
        Err(WRONG_PASSWORD)
    }
}

/// Compares in a time that tells nothing about where the two differ.
fn same_secret(wanted: &[u8], given: &[u8]) -> bool {
    let differing = wanted
        .iter()
        .zip(given)
        .fold(0_u8, |bits, (a, b)| bits | (a ^ b));
    wanted.len() == given.len() && std::hint::black_box(differing) == 0
}

/// The options of HELLO.
#[derive(Default)]
struct Hello<'a> {
    protocol: Option<Protocol>,
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

impl<'a> Hello<'a> {
    fn parse(args: weft_resp::Args<'a>) -> Result<Self, CommandError> {
        let mut hello = Self::default();
        let Some(version) = args.get(1) else {
            return Ok(hello);
        };
        let version = number::parse_i64(version).ok_or(CommandError::Text(
            "ERR Protocol version is not an integer or out of range",
        ))?;
        let unsupported = CommandError::Text("NOPROTO unsupported protocol version");
        hello.protocol = Some(Protocol::from_number(version).ok_or(unsupported)?);
        let mut at = 2;
        while let Some(word) = args.get(at) {
            match (args.get(at + 1), args.get(at + 2)) {
                (Some(user), Some(password)) if is(word, "AUTH") => {
                    hello.login = Some((user, password));
                    at += 3;
                }
                (Some(name), _) if is(word, "SETNAME") => {
                    if !is_attribute(name) {
                        return Err(BAD_NAME);
                    }
                    hello.name = Some(name);
                    at += 2;
                }
                _ => {
                    return Err(CommandError::quoting(
                        "ERR Syntax error in HELLO option '",
                        word,
                        "'",
                    ));
                }
            }
        }
        Ok(hello)
    }
}

/// Everything behind the name, whether or not the syntax is right.
fn auth_secrets(args: weft_resp::Args<'_>) -> Secrets {
    (1..args.len()).collect()
}

/// User and password behind each AUTH that is not a client's name, whether or not the rest is right.
fn hello_secrets(args: weft_resp::Args<'_>) -> Secrets {
    let mut secrets = Secrets::new();
    let mut at = 1;
    while let Some(word) = args.get(at) {
        at += 1;
        if is(word, "AUTH") {
            secrets.extend(at..args.len().min(at + 2));
            at += 2;
        } else if is(word, "SETNAME") {
            at += 1;
        }
    }
    secrets
}

fn hello(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let hello = Hello::parse(cx.args)?;
    if let Some((user, password)) = hello.login {
        authenticate(cx, user, password)?;
    }
    if !cx.client.authenticated() {
        return Err(HELLO_BEFORE_AUTH);
    }
    if let Some(name) = hello.name {
        cx.client.record().set_name(name);
    }
    if let Some(protocol) = hello.protocol {
        cx.client.protocol = protocol;
        cx.reply.set_protocol(protocol);
    }
    cx.reply.map(7);
    cx.reply.bulk(b"server");
    cx.reply.bulk(b"redis");
    cx.reply.bulk(b"version");
    cx.reply.bulk(REDIS_VERSION.as_bytes());
    cx.reply.bulk(b"proto");
    cx.reply.integer(cx.client.protocol.number());
    cx.reply.bulk(b"id");
    cx.reply.integer(cx.client.id() as i64);
    cx.reply.bulk(b"mode");
    cx.reply.bulk(b"standalone");
    cx.reply.bulk(b"role");
    cx.reply.bulk(b"master");
    cx.reply.bulk(b"modules");
    cx.reply.array(0);
    Ok(())
}
