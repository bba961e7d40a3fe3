//! CONFIG: reading and changing parameters while the server runs.

use std::io;

use crate::action::Action;
use crate::command::{Argument, CommandRow, Flags, Secrets};
use crate::config::{Config, ParameterId, is_secret};
use crate::dispatch::Context;
use crate::engine::Engine;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "config",
    arity: -2,
    flags: Flags::NONE,
    group: "server",
    since: "2.0.0",
    complexity: "Depends on subcommand.",
    summary: "Commands about the configuration.",
    subcommands: SUBCOMMANDS,
    ..CommandRow::DEFAULT
}];

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "get",
        arity: -3,
        flags: Flags::ADMIN
            .with(Flags::NO_SCRIPT)
            .with(Flags::LOADING)
            .with(Flags::STALE),
        group: "server",
        since: "2.0.0",
        complexity: "O(N) in the number of parameters",
        summary: "Reads parameters by name or pattern.",
        history: &[("7.0.0", "Takes several patterns.")],
        arguments: &[Argument::string("parameter").multiple()],
        handler: get,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "set",
        arity: -4,
        flags: Flags::ADMIN
            .with(Flags::NO_SCRIPT)
            .with(Flags::LOADING)
            .with(Flags::STALE),
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        group: "server",
        since: "2.0.0",
        complexity: "O(N) in the number of parameters given",
        summary: "Changes parameters while the server runs.",
        history: &[("7.0.0", "Takes several parameters.")],
        arguments: &[Argument::block(
            "data",
            &[Argument::string("parameter"), Argument::string("value")],
        )
        .multiple()],
        secrets: Some(set_secrets),
        handler: set,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "rewrite",
        arity: 2,
        flags: Flags::ADMIN
            .with(Flags::NO_SCRIPT)
            .with(Flags::LOADING)
            .with(Flags::STALE),
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        group: "server",
        since: "2.8.0",
        complexity: "O(1)",
        summary: "Writes the parameters in force into the configuration file.",
        handler: rewrite,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "resetstat",
        arity: 2,
        flags: Flags::ADMIN
            .with(Flags::NO_SCRIPT)
            .with(Flags::LOADING)
            .with(Flags::STALE),
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        group: "server",
        since: "2.0.0",
        complexity: "O(1)",
        summary: "Starts the counters of INFO anew.",
        handler: resetstat,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "help",
        arity: 2,
        flags: Flags::LOADING.with(Flags::STALE),
        group: "server",
        since: "5.0.0",
        complexity: "O(1)",
        summary: "Lists the subcommands.",
        handler: help,
        ..CommandRow::DEFAULT
    },
];

fn get(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let patterns: Vec<&[u8]> = cx.args.iter().skip(2).collect();
    let found = cx.engine.config().get(&patterns);
    cx.reply.map(found.len());
    for (name, value) in found {
        cx.reply.bulk(&name);
        cx.reply.bulk(&value);
    }
    Ok(())
}

/// The values of parameters that hold passwords.
fn set_secrets(args: weft_resp::Args<'_>) -> Secrets {
    (3..args.len())
        .step_by(2)
        .filter(|at| is_secret(&args[at - 1]))
        .collect()
}

/// All pairs or none: the surroundings are asked first whether they can follow.
fn set(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let pairs: Vec<&[u8]> = cx.args.iter().skip(2).collect();
    let protected_allowed = cx
        .worker
        .settings()
        .enable_protected_configs()
        .allows(cx.client.origin().local);
    let refused = |error: crate::config::SetError| {
        CommandError::Composed(error.to_string().into_bytes().into())
    };
    let mut config = cx.engine.config();
    let update = config.prepare(&pairs, protected_allowed).map_err(refused)?;
    cx.engine
        .host
        .apply(update.changes(), update.settings())
        .map_err(refused)?;
    let changes = config.commit(update);
    let moved = changes.iter().any(|change| change.id == ParameterId::Dir);
    if let Some(folder) = cx.engine.host.working_folder().filter(|_| moved) {
        config.settle(ParameterId::Dir, &folder);
    }
    drop(config);
    cx.engine.settings_changed();
    cx.worker.refresh_settings(cx.engine);
    cx.worker.actions.push(Action::SettingsChanged);
    cx.unit.set_access_rule(cx.worker.access_rule());
    cx.reply.ok();
    Ok(())
}

fn rewrite(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let rewritten = rewrite_file(cx.engine, Config::rewrite).ok_or(CommandError::Text(
        "ERR The server is running without a config file",
    ))?;
    rewritten.map_err(|error| {
        let text = format!("ERR Rewriting config file: {error}");
        CommandError::Composed(text.into_bytes().into())
    })?;
    cx.reply.ok();
    Ok(())
}

/// Brings the configuration file up to date, its new text made of the old one by `rewrite`; none if there is no file.
pub(super) fn rewrite_file(
    engine: &Engine,
    rewrite: impl FnOnce(&Config, &[u8]) -> Vec<u8>,
) -> Option<io::Result<()>> {
    let path = engine.identity.config_file.as_ref()?;
    // Locked until the file is written: the last to write it is the last to have looked.
    let config = engine.config();
    let old = match engine.host.read_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Some(Err(error)),
        Ok(old) => old,
    };
    Some(engine.host.replace_file(path, &rewrite(&config, &old)))
}

fn resetstat(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.engine.reset_statistics(cx.unit.monotonic_ns());
    cx.worker.refresh_settings(cx.engine);
    cx.reply.ok();
    Ok(())
}

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    super::reply_help(
        &mut cx.reply,
        &[
            "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "GET <pattern>",
            "    Return parameters matching the glob-like <pattern> and their values.",
            "SET <directive> <value>",
            "    Set the configuration <directive> to <value>.",
            "RESETSTAT",
            "    Reset statistics reported by the INFO command.",
            "REWRITE",
            "    Rewrite the configuration file.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
