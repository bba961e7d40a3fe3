//! CLIENT: what a connection says about itself, and what is done to others.

mod others;
mod own;
mod pause;

use crate::command::{Argument, Categories, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

pub(super) use own::{BAD_NAME, is_attribute};

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "client",
    arity: -2,
    flags: Flags::NONE,
    group: "connection",
    since: "2.4.0",
    complexity: "Depends on subcommand.",
    summary: "Commands about client connections.",
    subcommands: SUBCOMMANDS,
    ..CommandRow::DEFAULT
}];

/// What most subcommands share.
const OWN: CommandRow = CommandRow {
    flags: Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE),
    categories: Categories::CONNECTION,
    group: "connection",
    complexity: "O(1)",
    ..CommandRow::DEFAULT
};

/// What those share that concern others.
const OTHERS: CommandRow = CommandRow {
    flags: Flags::ADMIN
        .with(Flags::NO_SCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    ..OWN
};

const ON_OFF: &[Argument] = &[Argument::one_of(
    "enabled",
    &[Argument::word("on", "ON"), Argument::word("off", "OFF")],
)];

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "id",
        arity: 2,
        since: "5.0.0",
        summary: "Tells the connection's number.",
        handler: own::id,
        ..OWN
    },
    CommandRow {
        name: "info",
        arity: 2,
        tips: &["nondeterministic_output"],
        since: "6.2.0",
        summary: "Tells all that is known of the connection.",
        handler: own::info,
        ..OWN
    },
    CommandRow {
        name: "getname",
        arity: 2,
        since: "2.6.9",
        summary: "Tells the connection's name.",
        handler: own::getname,
        ..OWN
    },
    CommandRow {
        name: "setname",
        arity: 3,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        since: "2.6.9",
        summary: "Names the connection.",
        arguments: &[Argument::string("connection-name")],
        handler: own::setname,
        ..OWN
    },
    CommandRow {
        name: "setinfo",
        arity: 4,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        since: "7.2.0",
        summary: "Notes the client library's name or version.",
        arguments: &[Argument::one_of(
            "attr",
            &[
                Argument::string("libname").token("LIB-NAME"),
                Argument::string("libver").token("LIB-VER"),
            ],
        )],
        handler: own::setinfo,
        ..OWN
    },
    CommandRow {
        name: "getredir",
        arity: 2,
        since: "6.0.0",
        summary: "Tells which connection gets this one's invalidation messages.",
        handler: own::getredir,
        ..OWN
    },
    CommandRow {
        name: "reply",
        arity: 3,
        since: "3.2.0",
        summary: "Chooses which replies the connection gets.",
        arguments: &[Argument::one_of(
            "action",
            &[
                Argument::word("on", "ON"),
                Argument::word("off", "OFF"),
                Argument::word("skip", "SKIP"),
            ],
        )],
        handler: own::reply,
        ..OWN
    },
    CommandRow {
        name: "no-evict",
        arity: 3,
        since: "7.0.0",
        summary: "Protects the connection from being closed to save memory.",
        arguments: ON_OFF,
        handler: own::no_evict,
        ..OTHERS
    },
    CommandRow {
        name: "no-touch",
        arity: 3,
        since: "7.2.0",
        summary: "Lets the connection's commands leave no trace in the use of keys.",
        arguments: ON_OFF,
        handler: own::no_touch,
        ..OWN
    },
    CommandRow {
        name: "list",
        arity: -2,
        tips: &["nondeterministic_output"],
        since: "2.4.0",
        complexity: "O(N) in the number of connections",
        summary: "Lists connections.",
        history: &[
            ("2.8.12", "Shows ids."),
            ("5.0.0", "Takes TYPE."),
            ("6.0.0", "Shows the user."),
            (
                "6.2.0",
                "Shows argv-mem, tot-mem, laddr and redir; takes ID.",
            ),
            ("7.0.0", "Shows resp, multi-mem, rbs and rbp."),
            ("7.0.3", "Shows ssub."),
            ("7.2.0", "Shows lib-name and lib-ver."),
            ("7.4.0", "Shows watch."),
            ("8.0.0", "Shows io-thread."),
        ],
        arguments: &[
            Argument::one_of(
                "client-type",
                &[
                    Argument::word("normal", "NORMAL"),
                    Argument::word("master", "MASTER"),
                    Argument::word("replica", "REPLICA"),
                    Argument::word("pubsub", "PUBSUB"),
                ],
            )
            .token("TYPE")
            .optional()
            .since("5.0.0"),
            Argument::integer("client-id")
                .token("ID")
                .optional()
                .multiple()
                .since("6.2.0"),
        ],
        handler: others::list,
        ..OTHERS
    },
    CommandRow {
        name: "kill",
        arity: -3,
        since: "2.4.0",
        complexity: "O(N) in the number of connections",
        summary: "Closes connections.",
        history: &[
            ("2.8.12", "Takes filters."),
            ("2.8.12", "Takes ID."),
            ("3.2.0", "Takes TYPE master."),
            (
                "5.0.0",
                "Takes TYPE replica; slave stays as another name of it.",
            ),
            ("6.2.0", "Takes LADDR."),
            ("7.4.0", "Takes MAXAGE."),
        ],
        arguments: &[Argument::one_of(
            "filter",
            &[
                Argument::string("old-format")
                    .display("ip:port")
                    .deprecated("2.8.12"),
                Argument::one_of("new-format", KILL_FILTERS).multiple(),
            ],
        )],
        handler: others::kill,
        ..OTHERS
    },
    CommandRow {
        name: "unblock",
        arity: -3,
        since: "5.0.0",
        complexity: "O(log N) in the number of connections",
        summary: "Ends the waiting of another connection's blocking command.",
        arguments: &[
            Argument::integer("client-id"),
            Argument::one_of(
                "unblock-type",
                &[
                    Argument::word("timeout", "TIMEOUT"),
                    Argument::word("error", "ERROR"),
                ],
            )
            .optional(),
        ],
        handler: others::unblock,
        ..OTHERS
    },
    CommandRow {
        name: "pause",
        arity: -3,
        flags: OTHERS.flags.with(Flags::EXCLUSIVE),
        since: "3.0.0",
        summary: "Makes commands wait for a while.",
        history: &[("6.2.0", "Takes the mode.")],
        arguments: &[
            Argument::integer("timeout"),
            Argument::one_of(
                "mode",
                &[
                    Argument::word("write", "WRITE"),
                    Argument::word("all", "ALL"),
                ],
            )
            .optional()
            .since("6.2.0"),
        ],
        handler: pause::pause,
        ..OTHERS
    },
    CommandRow {
        name: "unpause",
        arity: 2,
        since: "6.2.0",
        complexity: "O(N) in the number of paused connections",
        summary: "Lets paused commands go on.",
        handler: pause::unpause,
        ..OTHERS
    },
    CommandRow {
        name: "help",
        flags: Flags::LOADING.with(Flags::STALE),
        arity: 2,
        since: "5.0.0",
        summary: "Lists the subcommands.",
        handler: help,
        ..OWN
    },
];

const KILL_FILTERS: &[Argument] = &[
    Argument::integer("client-id")
        .token("ID")
        .optional()
        .since("2.8.12"),
    Argument::one_of(
        "client-type",
        &[
            Argument::word("normal", "NORMAL"),
            Argument::word("master", "MASTER").since("3.2.0"),
            Argument::word("slave", "SLAVE"),
            Argument::word("replica", "REPLICA").since("5.0.0"),
            Argument::word("pubsub", "PUBSUB"),
        ],
    )
    .token("TYPE")
    .optional()
    .since("2.8.12"),
    Argument::string("username").token("USER").optional(),
    Argument::string("addr")
        .display("ip:port")
        .token("ADDR")
        .optional(),
    Argument::string("laddr")
        .display("ip:port")
        .token("LADDR")
        .optional()
        .since("6.2.0"),
    Argument::one_of(
        "skipme",
        &[Argument::word("yes", "YES"), Argument::word("no", "NO")],
    )
    .token("SKIPME")
    .optional(),
    Argument::integer("maxage")
        .token("MAXAGE")
        .optional()
        .since("7.4.0"),
];

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made from the specified address",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made to specified local address",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "    * ID <client-id>",
    "      Kill connections by client id.",
    "    * MAXAGE <maxage>",
    "      Kill connections older than the specified age.",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "SETINFO <option> <value>",
    "    Set client meta attr. Options are:",
    "    * LIB-NAME: the client lib name.",
    "    * LIB-VER: the client lib version.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Will not touch LRU/LFU stats when this mode is on.",
    "HELP",
    "    Print this help.",
];

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    super::reply_help(&mut cx.reply, HELP);
    Ok(())
}

/// The error for too many arguments of a subcommand that takes a varying number of them.
fn too_many(word: &[u8]) -> CommandError {
    let wrong = "ERR unknown subcommand or wrong number of arguments for '";
    CommandError::quoting(wrong, word, "'. Try CLIENT HELP.")
}
