//! XGROUP: making, moving and removing groups and consumers.

use weft_data::stream::{Group, Id, StreamRef};

use super::super::options::{integer, is};
use super::super::reply_help;
use super::{
    READ, WRITE, edit, id_argument, loose_id, number_argument, peek, quoting, strict_id, touched,
};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Context, Key};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "xgroup",
    arity: -2,
    flags: Flags::NONE,
    group: "stream",
    since: "5.0.0",
    complexity: "Depends on subcommand.",
    summary: "Commands about groups of consumers.",
    subcommands: SUBCOMMANDS,
    ..CommandRow::DEFAULT
}];

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "create",
        arity: -5,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        keys: &[KeySpec::one(2, KeyFlags::RW.with(KeyFlags::INSERT))],
        summary: "Makes a group.",
        history: &[("7.0.0", "Option `ENTRIESREAD`.")],
        arguments: &[
            KEY,
            GROUP,
            POSITION,
            Argument::word("mkstream", "MKSTREAM").optional(),
            ENTRIES_READ,
        ],
        handler: create,
        ..ABOUT_A_GROUP
    },
    CommandRow {
        name: "createconsumer",
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        keys: &[KeySpec::one(2, KeyFlags::RW.with(KeyFlags::INSERT))],
        since: "6.2.0",
        summary: "Makes a consumer of a group.",
        arguments: &[KEY, GROUP, CONSUMER],
        handler: create_consumer,
        ..ABOUT_A_GROUP
    },
    CommandRow {
        name: "delconsumer",
        summary: "Removes a consumer of a group.",
        arguments: &[KEY, GROUP, CONSUMER],
        handler: delete_consumer,
        ..ABOUT_A_GROUP
    },
    CommandRow {
        name: "destroy",
        arity: 4,
        complexity: "O(N) in the number of pending entries",
        summary: "Removes a group.",
        arguments: &[KEY, GROUP],
        handler: destroy,
        ..ABOUT_A_GROUP
    },
    CommandRow {
        name: "setid",
        arity: -5,
        keys: &[KeySpec::one(2, KeyFlags::RW.with(KeyFlags::UPDATE))],
        summary: "Sets the entry that a group has read up to.",
        history: &[("7.0.0", "Option `ENTRIESREAD`.")],
        arguments: &[KEY, GROUP, POSITION, ENTRIES_READ],
        handler: set_id,
        ..ABOUT_A_GROUP
    },
    CommandRow {
        name: "help",
        arity: 2,
        flags: Flags::LOADING.with(Flags::STALE),
        keys: &[],
        summary: "Lists the subcommands.",
        handler: help,
        ..READ_NOTHING
    },
];

const KEY: Argument = Argument::key("key", 0);
const GROUP: Argument = Argument::string("group");
const CONSUMER: Argument = Argument::string("consumer");
const POSITION: Argument = Argument::one_of(
    "id-selector",
    &[Argument::string("id"), Argument::word("new-id", "$")],
);
const ENTRIES_READ: Argument = Argument::integer("entriesread")
    .display("entries-read")
    .token("ENTRIESREAD")
    .optional();

const ABOUT_A_GROUP: CommandRow = CommandRow {
    arity: 5,
    flags: Flags::WRITE,
    keys: &[KeySpec::one(2, KeyFlags::RW.with(KeyFlags::DELETE))],
    complexity: "O(1)",
    ..WRITE
};

const READ_NOTHING: CommandRow = CommandRow {
    categories: Categories::STREAM,
    complexity: "O(1)",
    ..READ
};

const NO_STREAM: CommandError = CommandError::Text(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to \
     create an empty stream automatically.",
);

/// The stream at the command's key has no such group.
pub(super) fn no_such_group(key: &[u8], group: &[u8]) -> CommandError {
    let parts = ["NOGROUP No such consumer group '", "' for key name '", "'"];
    quoting(parts, group, key)
}

/// The command's stream and the group of it that it names.
fn existing<'u>(cx: &'u Context<'_, '_>) -> Result<(StreamRef<'u>, &'u Group), CommandError> {
    let (key, name) = (cx.keys[0], &cx.args[3]);
    let stream = peek(cx.unit, key)?.ok_or(NO_STREAM)?;
    let group = stream.group(name);
    let group = group.ok_or_else(|| no_such_group(key.name, name))?;
    Ok((stream, group))
}

/// What the options behind the id say.
#[derive(Default)]
struct Options {
    make_stream: bool,
    /// Given, and known unless -1.
    entries_read: Option<Option<u64>>,
}

impl Options {
    fn parse(cx: &Context<'_, '_>, may_make: bool) -> Result<Self, CommandError> {
        let args = cx.args;
        let mut options = Self::default();
        let mut at = 5;
        while let Some(word) = args.get(at) {
            if may_make && is(word, "MKSTREAM") {
                options.make_stream = true;
                at += 1;
            } else if is(word, "ENTRIESREAD") && at + 1 < args.len() {
                let read = integer(&args[at + 1])?;
                if read < -1 {
                    return Err(CommandError::Text(
                        "ERR value for ENTRIESREAD must be positive or -1",
                    ));
                }
                options.entries_read = Some(u64::try_from(read).ok());
                at += 2;
            } else {
                return Err(wrong_use(cx, "XGROUP"));
            }
        }
        Ok(options)
    }

    /// How many entries were read up to an id: as said, but no more than there were.
    fn entries_read(&self, stream: Option<StreamRef<'_>>) -> Option<u64> {
        let added = stream.map_or(0, StreamRef::added);
        self.entries_read.flatten().map(|read| read.min(added))
    }
}

/// The arguments of a subcommand are not what it takes.
pub(super) fn wrong_use(cx: &Context<'_, '_>, container: &str) -> CommandError {
    let help = format!("'. Try {container} HELP.");
    CommandError::quoting(
        "ERR unknown subcommand or wrong number of arguments for '",
        &cx.args[1],
        &help,
    )
}

fn record(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    subcommand: &[u8],
    id: Id,
    options: &Options,
    read: Option<u64>,
) {
    let name = &cx.args[3];
    cx.unit.effect_with(|| {
        let mut arguments = vec![b"XGROUP"[..].into(), subcommand.into(), key.name.into()];
        arguments.extend([name.into(), id_argument(id)]);
        if options.make_stream {
            arguments.push(b"MKSTREAM"[..].into());
        }
        if let Some(read) = read {
            arguments.extend([b"ENTRIESREAD"[..].into(), number_argument(read)]);
        }
        arguments
    });
}

fn create(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let options = Options::parse(cx, true)?;
    let (key, args) = (cx.keys[0], cx.args);
    let stream = peek(cx.unit, key)?;
    if stream.is_none() && !options.make_stream {
        return Err(NO_STREAM);
    }
    let id = match &args[4] {
        b"$" => stream.map_or(Id::MIN, StreamRef::last_id),
        text => strict_id(text, 0)?,
    };
    let name = &args[3];
    if stream.and_then(|stream| stream.group(name)).is_some() {
        return Err(CommandError::Text(
            "BUSYGROUP Consumer Group name already exists",
        ));
    }
    let read = options.entries_read(stream);
    edit(cx.unit, key, |stream| {
        stream.add_group(Group::new(name, id, read));
    })?;
    touched(cx.unit, key, "xgroup-create", 1);
    record(cx, key, b"CREATE", id, &options, read);
    cx.reply.ok();
    Ok(())
}

fn set_id(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let options = Options::parse(cx, false)?;
    let (key, args) = (cx.keys[0], cx.args);
    let (stream, _) = existing(cx)?;
    let id = match &args[4] {
        b"$" => stream.last_id(),
        text => loose_id(text, 0)?,
    };
    let read = options.entries_read(Some(stream));
    edit(cx.unit, key, |stream| {
        stream.edit_group(&args[3], |group| {
            group.last_id = id;
            group.entries_read = read;
        });
    })?;
    touched(cx.unit, key, "xgroup-setid", 1);
    record(cx, key, b"SETID", id, &options, read);
    cx.reply.ok();
    Ok(())
}

fn destroy(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let stream = peek(cx.unit, key)?.ok_or(NO_STREAM)?;
    let name = &args[3];
    let is_there = stream.group(name).is_some();
    if is_there {
        edit(cx.unit, key, |stream| stream.remove_group(name))?;
        touched(cx.unit, key, "xgroup-destroy", 1);
        cx.unit.effect(&[b"XGROUP", b"DESTROY", key.name, name]);
    }
    cx.reply.integer(i64::from(is_there));
    Ok(())
}

fn create_consumer(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let (name, consumer) = (&args[3], &args[4]);
    let is_new = existing(cx)?.1.consumer(consumer).is_none();
    if is_new {
        let now_ms = cx.unit.now_ms() as i64;
        edit(cx.unit, key, |stream| {
            stream.edit_group(name, |group| group.add_consumer(consumer, now_ms));
        })?;
        touched(cx.unit, key, "xgroup-createconsumer", 1);
        let words: [&[u8]; 5] = [b"XGROUP", b"CREATECONSUMER", key.name, name, consumer];
        cx.unit.effect(&words);
    }
    cx.reply.integer(i64::from(is_new));
    Ok(())
}

fn delete_consumer(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (key, args) = (cx.keys[0], cx.args);
    let (name, consumer) = (&args[3], &args[4]);
    let mut pending = 0;
    if existing(cx)?.1.consumer(consumer).is_some() {
        let removed = edit(cx.unit, key, |stream| {
            stream.edit_group(name, |group| group.remove_consumer(consumer))
        })?;
        pending = removed.flatten().unwrap_or_default();
        touched(cx.unit, key, "xgroup-delconsumer", 1);
        let words: [&[u8]; 5] = [b"XGROUP", b"DELCONSUMER", key.name, name, consumer];
        cx.unit.effect(&words);
    }
    cx.reply.integer(pending as i64);
    Ok(())
}

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_help(
        &mut cx.reply,
        &[
            "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "CREATE <key> <groupname> <id|$> [option]",
            "    Create a new consumer group. Options are:",
            "    * MKSTREAM",
            "      Create the empty stream if it does not exist.",
            "    * ENTRIESREAD entries_read",
            "      Set the group's entries_read counter (internal use).",
            "CREATECONSUMER <key> <groupname> <consumer>",
            "    Create a new consumer in the specified group.",
            "DELCONSUMER <key> <groupname> <consumer>",
            "    Remove the specified consumer.",
            "DESTROY <key> <groupname>",
            "    Remove the specified group.",
            "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
            "    Set the current group ID and entries_read counter.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
