//! Whether a command may run now: one ordered list of checks.

use weft_resp::Args;

use crate::client::Client;
use crate::command::{CommandRow, Flags};
use crate::error::CommandError;

/// The command to run: `named` with a container's subcommand resolved, if it may run for this client.
pub(super) fn admit(
    named: Option<&'static CommandRow>,
    client: &Client,
    args: Args<'_>,
) -> Result<&'static CommandRow, CommandError> {
    let record = client.record();
    let found = named
        .ok_or_else(|| CommandError::unknown_command(args))
        .and_then(|container| Ok((container, resolve(container, args)?)));
    record.set_command(found.as_ref().ok().map(|(_, row)| *row));
    let (container, row) = found?;
    if !row.accepts(args.len()) {
        return Err(wrong_arity(container, row));
    }
    if !client.authenticated() && !row.flags.contains(Flags::NO_AUTH) {
        return Err(CommandError::NotAuthenticated);
    }
    if client.is_monitor() && touches_keys(row.flags) {
        return Err(MONITOR_AND_KEYS);
    }
    Ok(row)
}

/// In Redis a client that monitors is a kind of replica.
const MONITOR_AND_KEYS: CommandError =
    CommandError::Text("ERR Replica can't interact with the keyspace");

const fn touches_keys(flags: Flags) -> bool {
    flags.contains(Flags::WRITE)
        || flags.contains(Flags::READONLY)
        || flags.contains(Flags::MAY_REPLICATE)
}

fn resolve(
    container: &'static CommandRow,
    args: Args<'_>,
) -> Result<&'static CommandRow, CommandError> {
    match args.get(1) {
        Some(word) if !container.subcommands.is_empty() => container
            .subcommand(word)
            .ok_or_else(|| CommandError::unknown_subcommand(container.name, word)),
        _ => Ok(container),
    }
}

fn wrong_arity(container: &CommandRow, row: &CommandRow) -> CommandError {
    let name = if std::ptr::eq(container, row) {
        row.name.into()
    } else {
        format!("{}|{}", container.name, row.name)
    };
    CommandError::WrongArity(name.into())
}
