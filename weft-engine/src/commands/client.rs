//! CLIENT: what a connection says about itself.

use super::options::is;
use crate::command::{Argument, Categories, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

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

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "id",
        arity: 2,
        flags: Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE),
        categories: Categories::CONNECTION,
        group: "connection",
        since: "5.0.0",
        complexity: "O(1)",
        summary: "Tells the connection's number.",
        handler: id,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "getname",
        arity: 2,
        flags: Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE),
        categories: Categories::CONNECTION,
        group: "connection",
        since: "2.6.9",
        complexity: "O(1)",
        summary: "Tells the connection's name.",
        handler: getname,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "setname",
        arity: 3,
        flags: Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE),
        categories: Categories::CONNECTION,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        group: "connection",
        since: "2.6.9",
        complexity: "O(1)",
        summary: "Names the connection.",
        arguments: &[Argument::string("connection-name")],
        handler: setname,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "setinfo",
        arity: 4,
        flags: Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE),
        categories: Categories::CONNECTION,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        group: "connection",
        since: "7.2.0",
        complexity: "O(1)",
        summary: "Notes the client library's name or version.",
        arguments: &[Argument::one_of(
            "attr",
            &[
                Argument::string("libname").token("LIB-NAME"),
                Argument::string("libver").token("LIB-VER"),
            ],
        )],
        handler: setinfo,
        ..CommandRow::DEFAULT
    },
];

pub(super) const BAD_NAME: CommandError =
    CommandError::Text("ERR Client names cannot contain spaces, newlines or special characters.");

/// Whether every byte up to the first zero is printable ASCII and no space.
pub(super) fn is_attribute(text: &[u8]) -> bool {
    text.iter()
        .take_while(|byte| **byte != 0)
        .all(u8::is_ascii_graphic)
}

fn id(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.integer(cx.client.id() as i64);
    Ok(())
}

fn getname(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if cx.client.name.is_empty() {
        cx.reply.null();
    } else {
        cx.reply.bulk(&cx.client.name);
    }
    Ok(())
}

fn setname(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if !is_attribute(&cx.args[2]) {
        return Err(BAD_NAME);
    }
    cx.client.name = cx.args[2].into();
    cx.reply.ok();
    Ok(())
}

fn setinfo(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let word = &cx.args[2];
    let attribute = if is(word, "LIB-NAME") {
        &mut cx.client.library_name
    } else if is(word, "LIB-VER") {
        &mut cx.client.library_version
    } else {
        return Err(CommandError::quoting(
            "ERR Unrecognized option '",
            word,
            "'",
        ));
    };
    if !is_attribute(&cx.args[3]) {
        return Err(CommandError::quoting(
            "ERR ",
            word,
            " cannot contain spaces, newlines or special characters.",
        ));
    }
    *attribute = cx.args[3].into();
    cx.reply.ok();
    Ok(())
}
