//! The commands a random run may use: name, arity, flags and argument syntax, read at run time.
//!
//! The syntax comes from the reference's COMMAND DOCS and COMMAND INFO, limited to what the server under test lists
//! itself; so a command is tried from the moment it exists, and against the reference's idea of its syntax.

use std::collections::BTreeSet;

use crate::door::DoorSession;
use crate::error::KitError;
use crate::wire::Wire;

/// One command, or one subcommand of a container.
#[derive(Clone, Debug)]
pub struct CommandRow {
    /// The words of its name in upper case: `["SET"]`, `["CONFIG", "GET"]`.
    pub words: Vec<String>,
    /// Its group in COMMAND DOCS, which is its family: `string`, `generic` ...
    pub family: String,
    /// Arguments with the name: exactly so many, or at least so many if negative.
    pub arity: i64,
    /// Its flags in COMMAND INFO.
    pub flags: BTreeSet<String>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

impl CommandRow {
    /// The name as one word: `set`, `config|get`.
    pub fn name(&self) -> String {
        self.words.join("|").to_lowercase()
    }
}

/// One argument of a command's syntax.
#[derive(Clone, Debug)]
pub struct Argument {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub kind: ArgumentKind,
    /// The word before it, or that it consists of.
    pub token: Option<String>,
    /// Whether it can be left out.
    pub optional: bool,
    /// Whether it can be given several times.
    pub multiple: bool,
    /// Whether the token is then repeated with it.
    pub multiple_token: bool,
    /// Of a oneof: the alternatives; of a block: the parts.
    pub children: Vec<Argument>,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// The name of a key.
    Key,
    /// Any bytes.
    String,
    /// An integer.
    Integer,
    /// A floating-point number.
    Double,
    /// A glob.
    Pattern,
    /// A point in time since 1970.
    UnixTime,
    /// The token alone.
    PureToken,
    /// One of its children.
    OneOf,
    /// All of its children.
    Block,
}

/// The commands that the reference describes and the server under test has, subcommands as rows of their own.
pub fn read(
    reference: &mut dyn DoorSession,
    subject: &mut dyn DoorSession,
) -> Result<Vec<CommandRow>, KitError> {
    let present = names(&subject.ask(&["COMMAND"])?)?;
    let mut rows = Vec::new();
    for name in &present {
        let docs = reference.ask(&["COMMAND", "DOCS", name])?;
        let info = reference.ask(&["COMMAND", "INFO", name])?;
        let Some((_, docs)) = docs.pairs().first().copied() else {
            // The server under test has a command of its own: nothing to compare it with.
            continue;
        };
        let Some(info) = info.elements().and_then(|list| list.first()) else {
            continue;
        };
        let theirs = subject.ask(&["COMMAND", "INFO", name])?;
        let subcommands = subcommand_names(&theirs);
        collect(docs, info, name, &subcommands, &mut rows);
    }
    // The servers list subcommands in an order of their own, and one seed has to mean one run.
    rows.sort_by_key(CommandRow::name);
    Ok(rows)
}

/// The names in a reply to COMMAND, in lower case and sorted.
pub fn names(reply: &Wire) -> Result<BTreeSet<String>, KitError> {
    let Some(list) = reply.elements() else {
        return Err(KitError::Unexpected(format!(
            "COMMAND is answered with {reply:?}"
        )));
    };
    Ok(list
        .iter()
        .filter_map(|entry| entry.elements().and_then(|fields| fields.first()))
        .map(|name| name.string().to_lowercase())
        .collect())
}

/// Place of the list of subcommands in an entry of COMMAND INFO.
const INFO_SUBCOMMANDS: usize = 9;

fn subcommand_names(info: &Wire) -> BTreeSet<String> {
    let entry = info
        .elements()
        .and_then(|list| list.first())
        .and_then(Wire::elements);
    let subcommands = entry
        .and_then(|fields| fields.get(INFO_SUBCOMMANDS))
        .and_then(Wire::elements);
    subcommands
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| entry.elements().and_then(|fields| fields.first()))
        .map(|name| name.string().to_lowercase())
        .collect()
}

fn collect(
    docs: &Wire,
    info: &Wire,
    name: &str,
    present: &BTreeSet<String>,
    rows: &mut Vec<CommandRow>,
) {
    let fields = info.elements().unwrap_or_default();
    let subcommands = docs
        .field("subcommands")
        .map(Wire::pairs)
        .unwrap_or_default();
    for (full_name, docs) in &subcommands {
        let full_name = full_name.string();
        if !present.contains(&full_name) {
            continue;
        }
        let entries = fields
            .get(INFO_SUBCOMMANDS)
            .and_then(Wire::elements)
            .unwrap_or_default();
        let entry = entries.iter().find(|entry| {
            entry
                .elements()
                .and_then(|fields| fields.first())
                .is_some_and(|name| name.string() == full_name)
        });
        if let Some(entry) = entry {
            collect(docs, entry, &full_name, present, rows);
        }
    }
    // A container is a command of its own only where it can be called without a subcommand.
    let arity = fields.get(1).and_then(Wire::integer).unwrap_or(0);
    if !subcommands.is_empty() && arity <= -2 {
        return;
    }
    let flags = fields.get(2).and_then(Wire::elements).unwrap_or_default();
    rows.push(CommandRow {
        words: name.split('|').map(str::to_uppercase).collect(),
        family: docs.field("group").map(Wire::string).unwrap_or_default(),
        arity,
        flags: flags.iter().map(Wire::string).collect(),
        arguments: arguments(docs),
    });
}

fn arguments(of: &Wire) -> Vec<Argument> {
    let list = of
        .field("arguments")
        .and_then(Wire::elements)
        .unwrap_or_default();
    list.iter().map(argument).collect()
}

fn argument(wire: &Wire) -> Argument {
    let flags: Vec<String> = wire
        .field("flags")
        .and_then(Wire::elements)
        .unwrap_or_default()
        .iter()
        .map(Wire::string)
        .collect();
    let has = |flag: &str| flags.iter().any(|found| found == flag);
    let kind = match wire.field("type").map(Wire::string).as_deref() {
        Some("key") => ArgumentKind::Key,
        Some("integer") => ArgumentKind::Integer,
        Some("double") => ArgumentKind::Double,
        Some("pattern") => ArgumentKind::Pattern,
        Some("unix-time") => ArgumentKind::UnixTime,
        Some("pure-token") => ArgumentKind::PureToken,
        Some("oneof") => ArgumentKind::OneOf,
        Some("block") => ArgumentKind::Block,
        _ => ArgumentKind::String,
    };
    Argument {
        name: wire.field("name").map(Wire::string).unwrap_or_default(),
        kind,
        token: wire.field("token").map(Wire::string),
        optional: has("optional"),
        multiple: has("multiple"),
        multiple_token: has("multiple_token"),
        children: arguments(wire),
    }
}
