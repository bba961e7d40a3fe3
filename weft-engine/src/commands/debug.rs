//! DEBUG: what test suites ask of a server.
//!
//! It runs with the keyspace alone: DEBUG SLEEP stops everybody, and so may the rest, which nobody calls in earnest.
//! To COMMAND it is one command without subcommands, as in Redis; they stand in a table of their own here.

mod crash;
mod data;
mod inside;
mod samples;
mod switches;

use std::time::Duration;

use weft_data::glob;
use weft_data::number::{parse_f64, parse_i64};

use super::options::is;
use crate::action::Action;
use crate::command::{CommandRow, Flags};
use crate::config::Config;
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "debug",
    system: true,
    arity: -2,
    flags: Flags::ADMIN
        .with(Flags::NO_SCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::EXCLUSIVE),
    group: "server",
    since: "1.0.0",
    complexity: "depends on the subcommand",
    summary: "Commands for testing and debugging.",
    handler: debug,
    ..CommandRow::DEFAULT
}];

const NOT_ALLOWED: CommandError = CommandError::Text(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local \
     connection, otherwise you need to set this option in the configuration file, and then restart the server.",
);

/// A subcommand: its name, the fewest and the most arguments, those two words included, and what it does.
struct Subcommand {
    name: &'static str,
    least: usize,
    most: usize,
    run: fn(&mut Context<'_, '_>) -> Result<(), CommandError>,
}

/// As many as one likes.
const ANY: usize = usize::MAX;

const fn subcommand(
    name: &'static str,
    (least, most): (usize, usize),
    run: fn(&mut Context<'_, '_>) -> Result<(), CommandError>,
) -> Subcommand {
    Subcommand {
        name,
        least,
        most,
        run,
    }
}

const SUBCOMMANDS: &[Subcommand] = &[
    subcommand("ASSERT", (2, ANY), crash::assert),
    subcommand("CHANGE-REPL-ID", (2, 2), change_replication_id),
    subcommand("CLIENT-EVICTION", (2, 2), inside::client_eviction),
    subcommand("CLUSTERLINK", (5, 5), not_in_cluster_mode),
    subcommand("CONFIG-REWRITE-FORCE-ALL", (2, 2), rewrite_configuration),
    subcommand("CRASH-AND-RECOVER", (2, ANY), crash::crash_and_recover),
    subcommand("DIGEST", (2, 2), data::digest),
    subcommand("DIGEST-VALUE", (2, ANY), data::digest_values),
    subcommand("ERROR", (3, 3), error),
    subcommand("HELP", (2, 2), help),
    subcommand("HTSTATS", (3, ANY), inside::table),
    subcommand("HTSTATS-KEY", (3, ANY), inside::table_of_key),
    subcommand("INTERNAL_SECRET", (2, 2), no_secret),
    subcommand("LEAK", (3, 3), crash::leak),
    subcommand("LISTPACK", (3, 3), inside::listpack),
    subcommand("LOADAOF", (2, ANY), load_append_only_file),
    subcommand("LOG", (3, 3), log),
    subcommand("OBJECT", (3, 4), data::object),
    subcommand("OOM", (2, ANY), crash::out_of_memory),
    subcommand("PANIC", (2, ANY), crash::panic),
    subcommand("POPULATE", (3, 5), data::populate),
    subcommand("PROTOCOL", (3, 3), protocol),
    subcommand("QUICKLIST", (3, ANY), inside::quicklist),
    subcommand("RELOAD", (2, ANY), reload),
    subcommand("REPLICATE", (3, ANY), replicate),
    subcommand("RESTART", (2, ANY), crash::restart),
    subcommand("SDSLEN", (3, 3), inside::string_length),
    subcommand("SEGFAULT", (2, ANY), crash::segfault),
    subcommand("SLEEP", (3, 3), sleep),
    subcommand("STRINGMATCH-TEST", (2, 2), match_at_random),
    subcommand("STRUCTSIZE", (2, 2), inside::structure_sizes),
    subcommand("WORKERS", (3, 3), force_workers),
];

const HELP: &[&str] = &[
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ASSERT",
    "    End the process by an assertion that does not hold.",
    "CHANGE-REPL-ID",
    "    Take a new replication ID.",
    "CLIENT-EVICTION",
    "    Tell how the memory of clients is divided, which 'maxmemory-clients' limits.",
    "CONFIG-REWRITE-FORCE-ALL",
    "    Write all parameters into the configuration file, whatever they are.",
    "CRASH-AND-RECOVER [<milliseconds>]",
    "    Start anew after <milliseconds> (none by default), leaving all as it stands.",
    "DICT-RESIZING <0|1>",
    "    Taken for Redis's sake, as are AOF-FLUSH-SLEEP, CLIENT-ENFORCE-REPLY-LIST,",
    "    DROP-CLUSTER-PACKET-FILTER, KEYSIZES-HIST-ASSERT, PAUSE-AFTER-FORK,",
    "    QUICKLIST-PACKED-THRESHOLD, REPLYBUFFER, REPL-PAUSE,",
    "    SET-DISABLE-DENY-SCRIPTS and SET-SKIP-CHECKSUM-VALIDATION; changes nothing.",
    "DIGEST",
    "    Reply with a number in 40 hexadecimal digits that two servers with the same",
    "    data share.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    The same for the value of each <key>; zeros for a missing one.",
    "ERROR <string>",
    "    Reply with <string> as an error.",
    "HTSTATS <dbid> [full]",
    "    Tell how large the tables of a database are.",
    "HTSTATS-KEY <key> [full]",
    "    The same for the table in the value of <key>.",
    "LEAK <string>",
    "    Keep the memory of <string> for good.",
    "LISTPACK <key>",
    "    Tell what is in the listpack at <key>.",
    "LOADAOF",
    "    Read the data anew from the append-only file.",
    "LOG <message>",
    "    Write <message> into the log.",
    "OBJECT <key> [fast]",
    "    Tell how the value of <key> is stored and used; with 'fast' only what takes",
    "    no time to find out.",
    "OOM",
    "    End the process by an allocation that fails.",
    "PANIC",
    "    End the process by a panic.",
    "PAUSE-CRON <0|1>",
    "    Stop what the server does by the clock, or let it go on.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Make <count> strings named <prefix>:<number>, 'key' being the prefix if",
    "    none is given, unless they exist. Nothing of it is replicated.",
    "PROTOCOL <type>",
    "    Reply with a sample of a type: string, integer, double, bignum, null,",
    "    array, set, map, attrib, push, verbatim, true, false.",
    "QUICKLIST <key> [<0|1>]",
    "    Tell what is in the quicklist at <key>.",
    "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
    "    Save the data and read it anew.",
    "REPLICATE <string> [<string> ...]",
    "    Hand the strings as a command to replicas, without running it here.",
    "RESTART [<milliseconds>]",
    "    Bring the configuration file up to date, end in good order, and start anew",
    "    after <milliseconds> (none by default).",
    "SDSLEN <key>",
    "    Tell the lengths of <key> and of the string there.",
    "SEGFAULT",
    "    End the process as a wild access to memory would.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Switch the removal of overdue keys that nobody asks for off or on.",
    "SLEEP <seconds>",
    "    Stop the whole server for <seconds>, which may be a fraction.",
    "STRINGMATCH-TEST",
    "    Match random patterns against random texts.",
    "STRUCTSIZE",
    "    Tell how large some structures are, in bytes.",
    "WORKERS <count|auto>",
    "    Make so many workers active, or leave it to the controller.",
    "HELP",
    "    Print this help.",
];

fn debug(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let permission = cx.worker.settings().enable_debug_command();
    if !permission.allows(cx.client.origin().local) {
        return Err(NOT_ALLOWED);
    }
    let (args, count) = (cx.args, cx.args.len());
    let word = &args[1];
    let found = SUBCOMMANDS
        .iter()
        .find(|sub| is(word, sub.name) && (sub.least..=sub.most).contains(&count));
    match found {
        Some(subcommand) => (subcommand.run)(cx),
        None => switches::switch(cx).unwrap_or_else(|| Err(unknown(word))),
    }
}

/// What is said about a subcommand that does not exist, or not with so many arguments.
fn unknown(word: &[u8]) -> CommandError {
    let wrong = "ERR unknown subcommand or wrong number of arguments for '";
    CommandError::quoting(wrong, word, "'. Try DEBUG HELP.")
}

fn ok(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.ok();
    Ok(())
}

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    super::reply_help(&mut cx.reply, HELP);
    Ok(())
}

fn protocol(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    samples::reply_sample(&mut cx.reply, &cx.args[2])
}

/// Line ends become spaces, also the last ones, which other errors leave out.
fn error(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let in_line = |byte: &u8| match byte {
        b'\r' | b'\n' => b' ',
        byte => *byte,
    };
    let text = cx.args[2].iter().map(in_line).collect();
    Err(CommandError::Composed(text))
}

fn log(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let line = format!("DEBUG LOG: {}", String::from_utf8_lossy(&cx.args[2]));
    cx.worker.actions.push(Action::Warn(line));
    ok(cx)
}

/// None for what is no positive number.
fn sleep(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let seconds = parse_f64(&cx.args[2]).unwrap_or(0.0);
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    cx.engine.host.sleep(duration);
    ok(cx)
}

/// Its randomness need not be a secret's.
fn change_replication_id(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let random = &mut cx.worker.random;
    let id: String = (0..40).map(|_| random.digit(16)).collect();
    cx.engine.set_replication_id(id);
    ok(cx)
}

fn not_in_cluster_mode(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::Text(
        "ERR Debug option only available for cluster mode enabled setup!",
    ))
}

fn no_secret(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR Internal secret is missing"))
}

fn rewrite_configuration(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    // Without a file Redis says what its system says of a path that is none.
    let reason = match super::config::rewrite_file(cx.engine, Config::rewrite_all) {
        Some(Ok(())) => return ok(cx),
        Some(Err(error)) => error.to_string(),
        None => "Bad address".to_owned(),
    };
    let text = format!("ERR CONFIG-REWRITE-FORCE-ALL failed: {reason}");
    Err(CommandError::Composed(text.into_bytes().into()))
}

/// A journal of what was never done here: whoever reads it has other data from then on.
fn replicate(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let command: Vec<&[u8]> = cx.args.iter().skip(2).collect();
    cx.unit.effect(&command);
    ok(cx)
}

fn reload(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const OPTIONS: &[&str] = &["MERGE", "NOFLUSH", "NOSAVE"];
    let known = |word: &[u8]| OPTIONS.iter().any(|option| is(word, option));
    if !cx.args.iter().skip(2).all(known) {
        return Err(CommandError::Text(
            "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
        ));
    }
    Err(CommandError::Text(
        "ERR DEBUG RELOAD is not possible: there is no saving to disk yet",
    ))
}

fn load_append_only_file(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let reason = "DEBUG LOADAOF is not possible: there is no append-only file yet";
    cx.worker.actions.push(Action::Warn(reason.to_owned()));
    Err(CommandError::Text(
        "ERR Error trying to load the AOF files, check server logs.",
    ))
}

/// DEBUG WORKERS: a number of active workers, or `auto`.
fn force_workers(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let count = &cx.args[2];
    let number = parse_i64(count).and_then(|count| usize::try_from(count).ok());
    let forced = match number {
        None if is(count, "AUTO") => cx.engine.host.force_workers(None),
        _ => cx.engine.host.force_workers(Some(number.unwrap_or(0))),
    };
    forced.map_err(|most| {
        let text = format!(
            "ERR DEBUG WORKERS takes 'auto' or a number from 1 to {most}, the workers that 'io-threads' has started"
        );
        CommandError::Composed(text.into_bytes().into())
    })?;
    ok(cx)
}

/// Patterns and texts of an alphabet in which many patterns match.
fn match_at_random(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    const ROUNDS: usize = 100_000;
    const LENGTH_MAX: usize = 32;
    const ALPHABET: &[u8] = b"ab*?[]^-\\\0\xff";
    let random = &mut cx.worker.random;
    let mut bytes = || -> Vec<u8> {
        let length = random.usize(0..=LENGTH_MAX);
        let byte = |_| ALPHABET[random.usize(0..ALPHABET.len())];
        (0..length).map(byte).collect()
    };
    for round in 0..ROUNDS {
        let (pattern, text) = (bytes(), bytes());
        std::hint::black_box(glob::matches(&pattern, &text, round % 2 == 0));
    }
    cx.reply
        .simple("Apparently Redis did not crash: test passed");
    Ok(())
}
