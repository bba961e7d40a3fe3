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
    let container = named.ok_or_else(|| CommandError::unknown_command(args))?;
    let row = resolve(container, args)?;
    if !row.accepts(args.len()) {
        return Err(wrong_arity(container, row));
    }
    if !client.authenticated() && !row.flags.contains(Flags::NO_AUTH) {
        return Err(CommandError::NotAuthenticated);
    }
    Ok(row)
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
