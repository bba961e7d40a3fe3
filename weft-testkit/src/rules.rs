//! How replies are compared, command by command, where byte for byte would ask too much.
//!
//! This is data: each entry says what is compared instead and why. A command that is not generated at all stands here
//! too, with its reason, which every run prints. Everything else is compared byte for byte.

use crate::command_table::CommandRow;

/// How two replies to one request are compared. Errors are always compared byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Byte for byte.
    Exact,
    /// Integers may differ by so much; all else is exact. Both servers have their own moment of "now".
    Within(u64),
    /// The elements of the outermost sequence may come in any order.
    AnyOrder,
    /// Pairs of a map (in RESP2: of an array standing for one) may come in any order.
    PairsInAnyOrder,
    /// Groups of so many elements in the reference's order, except that they may come in any where the reference calls the
    /// value of the key, which is the first argument, `hashtable`: other forms have an order that clients see.
    AnyOrderIfHashtable(usize),
    /// Byte for byte, but where the reference keeps the value of the key, which is the first argument, in a table, only as many
    /// elements: what is equal in the order that is asked for comes in no order then, and a part of that may be other elements.
    LengthIfTable,
    /// A cursor and a batch: the whole iteration is driven to its end on both, and what it yields is compared as a
    /// set. Cursors are each server's own.
    Scan,
    /// Both null, or both the name of a key that exists on the server that gave it.
    SomeKey,
    /// The same kinds of values at the same places; the values tell about the process or the moment.
    Shape,
    /// A map without the values of the named fields, which tell about the process.
    MapExcept(&'static [&'static str]),
}

/// Tolerance of times in seconds.
const SECONDS: Rule = Rule::Within(1);
/// Tolerance of times in milliseconds: a loaded machine can delay one of the two servers by this much.
const MILLISECONDS: Rule = Rule::Within(1000);

const RULES: &[(&str, Rule)] = &[
    ("ttl", SECONDS),
    ("expiretime", SECONDS),
    ("pttl", MILLISECONDS),
    ("pexpiretime", MILLISECONDS),
    ("httl", SECONDS),
    ("hexpiretime", SECONDS),
    ("hpttl", MILLISECONDS),
    ("hpexpiretime", MILLISECONDS),
    ("xpending", MILLISECONDS),
    ("xinfo|stream", MILLISECONDS),
    ("xinfo|consumers", MILLISECONDS),
    ("object|idletime", SECONDS),
    ("object|freq", Rule::Within(5)),
    // In a transaction the reference's queue holds a value that has just been set, too.
    ("object|refcount", Rule::Within(1)),
    ("keys", Rule::AnyOrder),
    ("smembers", Rule::AnyOrder),
    ("sinter", Rule::AnyOrder),
    ("sunion", Rule::AnyOrder),
    ("sdiff", Rule::AnyOrder),
    ("hkeys", Rule::AnyOrderIfHashtable(1)),
    ("hvals", Rule::AnyOrderIfHashtable(1)),
    ("hgetall", Rule::AnyOrderIfHashtable(2)),
    ("sort", Rule::LengthIfTable),
    ("sort_ro", Rule::LengthIfTable),
    ("config|get", Rule::PairsInAnyOrder),
    ("scan", Rule::Scan),
    ("sscan", Rule::Scan),
    ("hscan", Rule::Scan),
    ("zscan", Rule::Scan),
    ("randomkey", Rule::SomeKey),
    ("hello", Rule::MapExcept(&["id", "version", "modules"])),
    ("client|id", Rule::Shape),
    ("client|info", Rule::Shape),
    ("client|list", Rule::Shape),
    ("time", Rule::Shape),
    ("lastsave", Rule::Shape),
    ("memory|usage", Rule::Shape),
];

/// The rule of a command, by its name as [`CommandRow::name`] gives it.
pub fn rule(name: &str) -> Rule {
    RULES
        .iter()
        .find(|(command, _)| *command == name)
        .map_or(Rule::Exact, |(_, rule)| *rule)
}

/// Whether comparing under a rule asks the servers for more, so that nothing else may be under way.
pub fn asks(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::Scan | Rule::SomeKey | Rule::AnyOrderIfHashtable(_) | Rule::LengthIfTable
    )
}

/// Commands that are sent in a batch of their own, with the reason.
const ALONE: &[(&str, &str)] = &[
    (
        "auth",
        "the reference leaves out the error reply of a failed login if another request came in the same read",
    ),
    ("hello", "its AUTH option has the same fault"),
];

/// Whether a command is sent in a batch of its own.
pub fn alone(name: &str) -> bool {
    ALONE.iter().any(|(command, _)| *command == name)
}

/// Commands that repeat a whole argument in an error.
const ECHOES: &[&str] = &["hsetex"];

/// Whether a command repeats whole arguments in its errors, where long ones would be longer than a client takes.
pub fn echoes(name: &str) -> bool {
    ECHOES.contains(&name)
}

const NOT_GENERATED: &[(&str, &str)] = &[
    ("acl", "could lock the run out; has cases of its own"),
    (
        "client|caching",
        "is about tracking, which is not generated",
    ),
    ("client|kill", "ends connections"),
    ("client|pause", "stops the server for a while"),
    ("client|reply", "takes the replies away that are compared"),
    (
        "client|tracking",
        "adds messages that nothing was asked for",
    ),
    ("client|unblock", "is about other connections"),
    ("cluster", "cluster mode is off; has cases of its own"),
    (
        "command",
        "is compared whole by the check of COMMAND DOCS and COMMAND INFO",
    ),
    ("command|count", "counts what is built so far"),
    (
        "command|docs",
        "is compared whole by the check of COMMAND DOCS and COMMAND INFO",
    ),
    (
        "command|info",
        "is compared whole by the check of COMMAND DOCS and COMMAND INFO",
    ),
    ("command|list", "lists what is built so far"),
    ("debug", "is each server's own"),
    (
        "dump",
        "has bytes of each server's own; is compared by what RESTORE makes of them",
    ),
    ("failover", "needs a replica"),
    (
        "flushall",
        "runs between the rounds, and with its options in the cases; it would only empty the databases",
    ),
    ("info", "tells about the process"),
    ("lolwut", "is each server's own"),
    ("memory|doctor", "tells about the process"),
    ("memory|malloc-stats", "tells about the process"),
    ("memory|stats", "tells about the process"),
    ("migrate", "needs a second server"),
    ("monitor", "adds messages that nothing was asked for"),
    ("quit", "ends the connection; has cases of its own"),
    (
        "reset",
        "its reply is in the protocol it switches to; has cases of its own",
    ),
    ("role", "tells about the process"),
    (
        "script|debug",
        "is refused inside a pipeline, which depends on how packets arrive",
    ),
    ("multi", "is a way of sending in these runs"),
    ("exec", "is a way of sending in these runs"),
    ("discard", "is a way of sending in these runs"),
    ("watch", "is about other connections; has cases of its own"),
    ("wait", "waits for replicas"),
    ("waitaof", "waits for replicas"),
    ("hrandfield", "is random; has cases of its own"),
    ("spop", "is random; has cases of its own"),
    ("srandmember", "is random; has cases of its own"),
    ("zrandmember", "is random; has cases of its own"),
    (
        "xgroup|destroy",
        "the reference goes on to spare entries for a group that is gone (D-19); has cases of its own",
    ),
];

/// Flags of COMMAND INFO that keep a command out.
const FLAGS_NOT_GENERATED: &[(&str, &str)] = &[
    ("admin", "administers the server"),
    ("blocking", "may wait for ever"),
    ("pubsub", "its messages are no replies"),
];

/// Commands that wait only if they are asked to, which the generator never does.
const NEVER_WAIT: &[&str] = &["xread", "xreadgroup"];

/// Why a command is kept out of random runs, if it is.
pub fn not_generated(row: &CommandRow) -> Option<&'static str> {
    let name = row.name();
    let container = row
        .words
        .first()
        .map(|word| word.to_lowercase())
        .unwrap_or_default();
    let listed = NOT_GENERATED.iter().find(|(command, _)| {
        *command == name || (*command == container && row.words.len() > 1 && *command != "command")
    });
    let flagged = || {
        FLAGS_NOT_GENERATED
            .iter()
            .find(|(flag, _)| row.flags.contains(*flag))
            .filter(|(flag, _)| *flag != "blocking" || !NEVER_WAIT.contains(&name.as_str()))
    };
    listed.or_else(flagged).map(|(_, reason)| *reason)
}
