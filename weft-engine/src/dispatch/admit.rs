//! Whether a command may run now: one ordered list of checks.

use weft_resp::Args;

use crate::client::Client;
use crate::command::{CommandIndex, CommandRow, Flags, Numbered};
use crate::error::CommandError;

/// Why a request does not run.
pub(super) struct Refusal {
    pub(super) error: CommandError,
    /// The command, if there is such a one.
    pub(super) command: Option<CommandIndex>,
}

impl Refusal {
    fn without_command(error: CommandError) -> Self {
        Self {
            error,
            command: None,
        }
    }
}

/// The command to run: `named` with a container's subcommand resolved, if it may run for this client.
pub(super) fn admit(
    named: Option<Numbered>,
    client: &Client,
    args: Args<'_>,
) -> Result<Numbered, Refusal> {
    let found = named
        .ok_or_else(|| CommandError::unknown_command(args))
        .and_then(|container| Ok((container, resolve(container, args)?)));
    let row = found.as_ref().ok().map(|(_, command)| command.row);
    client.record().set_command(row);
    let (container, command) = found.map_err(Refusal::without_command)?;
    match check(container.row, command.row, client, args) {
        Ok(()) => Ok(command),
        Err(error) => Err(Refusal {
            error,
            command: Some(command.index),
        }),
    }
}

fn check(
    container: &CommandRow,
    row: &CommandRow,
    client: &Client,
    args: Args<'_>,
) -> Result<(), CommandError> {
    if !row.accepts(args.len()) {
        return Err(wrong_arity(container, row));
    }
    if !client.authenticated() && !row.flags.contains(Flags::NO_AUTH) {
        return Err(CommandError::NotAuthenticated);
    }
    if client.is_monitor() && touches_keys(row.flags) {
        return Err(MONITOR_AND_KEYS);
    }
    Ok(())
}

/// In Redis a client that monitors is a kind of replica.
const MONITOR_AND_KEYS: CommandError =
    CommandError::Text("ERR Replica can't interact with the keyspace");

const fn touches_keys(flags: Flags) -> bool {
    flags.contains(Flags::WRITE)
        || flags.contains(Flags::READONLY)
        || flags.contains(Flags::MAY_REPLICATE)
}

fn resolve(container: Numbered, args: Args<'_>) -> Result<Numbered, CommandError> {
    match args.get(1) {
        Some(word) if !container.row.subcommands.is_empty() => container
            .subcommand(word)
            .ok_or_else(|| CommandError::unknown_subcommand(container.row.name, word)),
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
