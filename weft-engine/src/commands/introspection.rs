//! COMMAND: what clients can learn about commands, all of it derived from their rows.

use smallvec::SmallVec;
use weft_data::glob;
use weft_resp::{Args, Writer};

use super::options::is;
use crate::command::{
    Argument, ArgumentKind, Begin, Categories, CommandRow, Find, Flags, KeyArgument, KeySpec,
    KeysError,
};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "command",
    arity: -1,
    flags: Flags::LOADING.with(Flags::STALE),
    categories: Categories::CONNECTION,
    tips: &["nondeterministic_output_order"],
    group: "server",
    since: "2.8.13",
    complexity: "O(N) in the number of commands",
    summary: "Describes every command to clients.",
    subcommands: SUBCOMMANDS,
    handler: command,
    ..CommandRow::DEFAULT
}];

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "count",
        arity: 2,
        flags: Flags::LOADING.with(Flags::STALE),
        categories: Categories::CONNECTION,
        group: "server",
        since: "2.8.13",
        complexity: "O(1)",
        summary: "Counts the commands.",
        handler: count,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "docs",
        arity: -2,
        flags: Flags::LOADING.with(Flags::STALE),
        categories: Categories::CONNECTION,
        tips: &["nondeterministic_output_order"],
        group: "server",
        since: "7.0.0",
        complexity: "O(N) in the number of commands",
        summary: "Documents commands: arguments, versions, complexity.",
        arguments: &[Argument::string("command-name").optional().multiple()],
        handler: docs,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "getkeys",
        arity: -3,
        flags: Flags::LOADING.with(Flags::STALE),
        categories: Categories::CONNECTION,
        group: "server",
        since: "2.8.13",
        complexity: "O(N) in the number of arguments",
        summary: "Finds the keys among a command's arguments.",
        arguments: &[
            Argument::string("command"),
            Argument::string("arg").optional().multiple(),
        ],
        handler: getkeys,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "getkeysandflags",
        arity: -3,
        flags: Flags::LOADING.with(Flags::STALE),
        categories: Categories::CONNECTION,
        group: "server",
        since: "7.0.0",
        complexity: "O(N) in the number of arguments",
        summary: "Finds the keys among a command's arguments and what is done with each.",
        arguments: &[
            Argument::string("command"),
            Argument::string("arg").optional().multiple(),
        ],
        handler: getkeysandflags,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "info",
        arity: -2,
        flags: Flags::LOADING.with(Flags::STALE),
        categories: Categories::CONNECTION,
        tips: &["nondeterministic_output_order"],
        group: "server",
        since: "2.8.13",
        complexity: "O(N) in the number of commands",
        summary: "Describes commands as COMMAND does.",
        history: &[("7.0.0", "Without arguments it describes all commands.")],
        arguments: &[Argument::string("command-name").optional().multiple()],
        handler: info,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "list",
        arity: -2,
        flags: Flags::LOADING.with(Flags::STALE),
        categories: Categories::CONNECTION,
        tips: &["nondeterministic_output_order"],
        group: "server",
        since: "7.0.0",
        complexity: "O(N) in the number of commands",
        summary: "Lists command names.",
        arguments: &[Argument::one_of(
            "filterby",
            &[
                Argument::string("module-name").token("MODULE"),
                Argument::string("category").token("ACLCAT"),
                Argument::pattern("pattern").token("PATTERN"),
            ],
        )
        .token("FILTERBY")
        .optional()],
        handler: list,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "help",
        arity: 2,
        flags: Flags::LOADING.with(Flags::STALE),
        categories: Categories::CONNECTION,
        group: "server",
        since: "5.0.0",
        complexity: "O(1)",
        summary: "Lists the subcommands.",
        handler: help,
        ..CommandRow::DEFAULT
    },
];

fn command(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let rows = cx.engine.commands.rows();
    cx.reply.array(rows.len());
    rows.iter()
        .for_each(|row| reply_info(&mut cx.reply, "", row));
    Ok(())
}

fn count(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.reply.integer(cx.engine.commands.rows().len() as i64);
    Ok(())
}

fn info(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if cx.args.len() == 2 {
        return command(cx);
    }
    cx.reply.array(cx.args.len() - 2);
    for name in cx.args.iter().skip(2) {
        match cx.engine.commands.find_full(name) {
            Some((container, row)) => reply_info(&mut cx.reply, container, row),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

fn list(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let filter = Filter::parse(cx.args)?;
    let mut names = Vec::new();
    for row in cx.engine.commands.rows() {
        if filter.want(row.name, row) {
            names.push(row.name.to_owned());
        }
        let subcommands = row
            .subcommands
            .iter()
            .map(|sub| (full_name(row.name, sub), sub));
        names.extend(
            subcommands
                .filter(|(name, sub)| filter.want(name, sub))
                .map(|(name, _)| name),
        );
    }
    cx.reply.array(names.len());
    names.iter().for_each(|name| cx.reply.bulk(name.as_bytes()));
    Ok(())
}

/// What COMMAND LIST lists.
enum Filter<'a> {
    None,
    Pattern(&'a [u8]),
    /// No command belongs to a category that does not exist.
    Category(Option<Categories>),
    /// No command comes from a module.
    Module,
}

impl<'a> Filter<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        match (args.get(2), args.get(3), args.get(4)) {
            (None, ..) => Ok(Self::None),
            (Some(word), Some(kind), Some(value)) if args.len() == 5 && is(word, "FILTERBY") => {
                match kind {
                    _ if is(kind, "PATTERN") => Ok(Self::Pattern(value)),
                    _ if is(kind, "ACLCAT") => Ok(Self::Category(Categories::by_name(value))),
                    _ if is(kind, "MODULE") => Ok(Self::Module),
                    _ => Err(CommandError::Syntax),
                }
            }
            _ => Err(CommandError::Syntax),
        }
    }

    fn want(&self, name: &str, row: &CommandRow) -> bool {
        match self {
            Self::None => true,
            Self::Pattern(pattern) => glob::matches(pattern, name.as_bytes(), true),
            Self::Category(category) => {
                category.is_some_and(|category| row.all_categories().contains(category))
            }
            Self::Module => false,
        }
    }
}

fn docs(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let commands = &cx.engine.commands;
    let rows: Vec<_> = match cx.args.len() {
        2 => commands.rows().iter().map(|row| ("", *row)).collect(),
        _ => cx
            .args
            .iter()
            .skip(2)
            .filter_map(|name| commands.find_full(name))
            .collect(),
    };
    cx.reply.map(rows.len());
    for (container, row) in rows {
        reply_docs(&mut cx.reply, container, row);
    }
    Ok(())
}

fn getkeys(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let keys = keys_of_inner(cx)?;
    cx.reply.array(keys.len());
    for key in keys {
        cx.reply.bulk(&cx.args[key.argument + 2]);
    }
    Ok(())
}

fn getkeysandflags(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let keys = keys_of_inner(cx)?;
    cx.reply.array(keys.len());
    for key in keys {
        cx.reply.array(2);
        cx.reply.bulk(&cx.args[key.argument + 2]);
        reply_names(&mut cx.reply, key.flags.names());
    }
    Ok(())
}

/// The keys of the command that stands behind the first two arguments.
fn keys_of_inner(cx: &Context<'_, '_>) -> Result<SmallVec<[KeyArgument; 4]>, CommandError> {
    let inner = cx.args.skip(2);
    const INVALID: CommandError = CommandError::Text("ERR Invalid command specified");
    let container = cx.engine.commands.find(&inner[0]).ok_or(INVALID)?;
    let row = match inner.get(1) {
        Some(word) if !container.subcommands.is_empty() => {
            container.subcommand(word).ok_or(INVALID)?
        }
        _ => container,
    };
    if row.keys.is_empty() {
        return Err(CommandError::Text("ERR The command has no key arguments"));
    }
    if !row.accepts(inner.len()) {
        return Err(CommandError::Text(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    const NOT_KEYS: CommandError =
        CommandError::Text("ERR Invalid arguments specified for command");
    let keys = row.keys_of(inner).map_err(|KeysError::Invalid| NOT_KEYS)?;
    // A range of keys without a key is one too few, although PFMERGE runs without sources.
    let is_bare = |spec: &KeySpec| {
        let mut found = SmallVec::new();
        let is_range = matches!(
            (spec.begin, spec.find),
            (Begin::Index(_), Find::Range { .. })
        );
        is_range && spec.extract(inner, &mut found).is_ok() && found.is_empty()
    };
    if row.keys.iter().any(is_bare) {
        return Err(NOT_KEYS);
    }
    // No keys are one too few, except for scripts.
    if keys.is_empty() && !row.flags.contains(Flags::NO_MANDATORY_KEYS) {
        return Err(NOT_KEYS);
    }
    Ok(keys)
}

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    super::reply_help(
        &mut cx.reply,
        &[
            "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "(no subcommand)",
            "    Return details about all Redis commands.",
            "COUNT",
            "    Return the total number of commands in this Redis server.",
            "LIST",
            "    Return a list of all commands in this Redis server.",
            "INFO [<command-name> ...]",
            "    Return details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "DOCS [<command-name> ...]",
            "    Return documentation details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "GETKEYS <full-command>",
            "    Return the keys from a full Redis command.",
            "GETKEYSANDFLAGS <full-command>",
            "    Return the keys and the access flags from a full Redis command.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}

/// A subcommand's name as clients see it; the command's own if `container` is empty.
fn full_name(container: &str, row: &CommandRow) -> String {
    if container.is_empty() {
        row.name.to_owned()
    } else {
        format!("{container}|{}", row.name)
    }
}

fn reply_names(reply: &mut Writer<'_>, names: impl Iterator<Item = &'static str>) {
    let names: SmallVec<[&str; 8]> = names.collect();
    reply.set(names.len());
    names.iter().for_each(|name| reply.simple(name));
}

fn reply_info(reply: &mut Writer<'_>, container: &str, row: &CommandRow) {
    reply.array(10);
    reply.bulk(full_name(container, row).as_bytes());
    reply.integer(i64::from(row.arity));
    reply_names(reply, row.flags.names());
    let (first, last, step) = row.key_range();
    [first, last, step]
        .iter()
        .for_each(|number| reply.integer(i64::from(*number)));
    let categories: SmallVec<[&str; 8]> = row.all_categories().names().collect();
    reply.set(categories.len());
    categories
        .iter()
        .for_each(|name| reply.simple(&format!("@{name}")));
    reply.set(row.tips.len());
    row.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(row.keys.len());
    row.keys.iter().for_each(|spec| reply_key_spec(reply, spec));
    reply.set(row.subcommands.len());
    row.subcommands
        .iter()
        .for_each(|sub| reply_info(reply, row.name, sub));
}

fn reply_text(reply: &mut Writer<'_>, field: &str, text: &str) {
    reply.bulk(field.as_bytes());
    reply.bulk(text.as_bytes());
}

fn reply_number(reply: &mut Writer<'_>, field: &str, number: i32) {
    reply.bulk(field.as_bytes());
    reply.integer(i64::from(number));
}

fn reply_key_spec(reply: &mut Writer<'_>, spec: &KeySpec) {
    reply.map(if spec.notes.is_empty() { 3 } else { 4 });
    if !spec.notes.is_empty() {
        reply_text(reply, "notes", spec.notes);
    }
    reply.bulk(b"flags");
    reply_names(reply, spec.flags.names());
    reply.bulk(b"begin_search");
    reply.map(2);
    match spec.begin {
        Begin::Index(index) => {
            reply_text(reply, "type", "index");
            reply.bulk(b"spec");
            reply.map(1);
            reply_number(reply, "index", index);
        }
        Begin::Keyword(keyword, from) => {
            reply_text(reply, "type", "keyword");
            reply.bulk(b"spec");
            reply.map(2);
            reply_text(reply, "keyword", keyword);
            reply_number(reply, "startfrom", from);
        }
        Begin::Unknown => {
            reply_text(reply, "type", "unknown");
            reply.bulk(b"spec");
            reply.map(0);
        }
    }
    reply.bulk(b"find_keys");
    reply.map(2);
    match spec.find {
        Find::Range { last, step, limit } => {
            reply_text(reply, "type", "range");
            reply.bulk(b"spec");
            reply.map(3);
            reply_number(reply, "lastkey", last);
            reply_number(reply, "keystep", step);
            reply_number(reply, "limit", limit);
        }
        Find::KeyNumber {
            number,
            first,
            step,
        } => {
            reply_text(reply, "type", "keynum");
            reply.bulk(b"spec");
            reply.map(3);
            reply_number(reply, "keynumidx", number);
            reply_number(reply, "firstkey", first);
            reply_number(reply, "keystep", step);
        }
        Find::Unknown => {
            reply_text(reply, "type", "unknown");
            reply.bulk(b"spec");
            reply.map(0);
        }
    }
}

/// A command's name and the map of what is known of it.
fn reply_docs(reply: &mut Writer<'_>, container: &str, row: &CommandRow) {
    reply.bulk(full_name(container, row).as_bytes());
    let map = reply.deferred_map();
    let mut fields = 3;
    reply_text(reply, "summary", row.summary);
    reply_text(reply, "since", row.since);
    reply_text(reply, "group", row.group);
    if !row.complexity.is_empty() {
        fields += 1;
        reply_text(reply, "complexity", row.complexity);
    }
    if row.deprecated.is_some() || row.system {
        fields += 1;
        reply.bulk(b"doc_flags");
        let flags = [
            (row.deprecated.is_some(), "deprecated"),
            (row.system, "syscmd"),
        ];
        reply_names(
            reply,
            flags
                .into_iter()
                .filter(|(set, _)| *set)
                .map(|(_, name)| name),
        );
    }
    if let Some(deprecation) = row.deprecated {
        fields += 2;
        reply_text(reply, "deprecated_since", deprecation.since);
        reply_text(reply, "replaced_by", deprecation.replaced_by);
    }
    if !row.history.is_empty() {
        fields += 1;
        reply.bulk(b"history");
        reply.set(row.history.len());
        for (version, change) in row.history {
            reply.array(2);
            reply.bulk(version.as_bytes());
            reply.bulk(change.as_bytes());
        }
    }
    if !row.arguments.is_empty() {
        fields += 1;
        reply.bulk(b"arguments");
        reply_arguments(reply, row.arguments);
    }
    if !row.subcommands.is_empty() {
        fields += 1;
        reply.bulk(b"subcommands");
        reply.map(row.subcommands.len());
        row.subcommands
            .iter()
            .for_each(|sub| reply_docs(reply, row.name, sub));
    }
    reply.finish(map, fields);
}

fn reply_arguments(reply: &mut Writer<'_>, arguments: &[Argument]) {
    reply.array(arguments.len());
    for argument in arguments {
        let map = reply.deferred_map();
        let fields = reply_argument(reply, argument);
        reply.finish(map, fields);
    }
}

/// Writes the fields of one argument and says how many.
fn reply_argument(reply: &mut Writer<'_>, argument: &Argument) -> usize {
    let mut fields = 2;
    reply_text(reply, "name", argument.name);
    reply_text(reply, "type", argument.kind.name());
    if !matches!(
        argument.kind,
        ArgumentKind::OneOf(_) | ArgumentKind::Block(_)
    ) {
        fields += 1;
        reply_text(
            reply,
            "display_text",
            if argument.display.is_empty() {
                argument.name
            } else {
                argument.display
            },
        );
    }
    if let Some(spec) = argument.key_spec {
        fields += 1;
        reply_number(reply, "key_spec_index", i32::from(spec));
    }
    for (field, text) in [
        ("token", argument.token),
        ("since", argument.since),
        ("deprecated_since", argument.deprecated_since),
    ] {
        if !text.is_empty() {
            fields += 1;
            reply_text(reply, field, text);
        }
    }
    let flags = [
        (argument.optional, "optional"),
        (argument.multiple, "multiple"),
        (argument.multiple_token, "multiple_token"),
    ];
    if flags.iter().any(|(set, _)| *set) {
        fields += 1;
        reply.bulk(b"flags");
        reply_names(
            reply,
            flags
                .into_iter()
                .filter(|(set, _)| *set)
                .map(|(_, name)| name),
        );
    }
    if !argument.kind.children().is_empty() {
        fields += 1;
        reply.bulk(b"arguments");
        reply_arguments(reply, argument.kind.children());
    }
    fields
}
