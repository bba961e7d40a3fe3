//! DEBUG's subcommands that show what things are made of. The fields are Redis's, the numbers Weft's own.

use std::fmt::Write as _;

use weft_keyspace::StringRef;

use super::super::options::integer;
use super::super::values::value_len;
use crate::config::ParameterId;
use crate::dispatch::Context;
use crate::error::CommandError;

const NO_KEY: CommandError = CommandError::Text("ERR no such key");

/// HTSTATS. Keys with a deadline lie in the same table as the others; their part is shown as if it were a second one.
pub(super) fn table(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let keyspace = &cx.engine.keyspace;
    let database = usize::try_from(integer(&cx.args[2])?)
        .ok()
        .filter(|database| *database < keyspace.databases())
        .ok_or(CommandError::Text("ERR Out of range database"))?;
    let mut text = String::new();
    for (name, count) in [
        ("Dictionary", keyspace.key_count(database)),
        ("Expires", keyspace.deadline_count(database)),
    ] {
        let _ = writeln!(text, "[{name} HT]");
        if count > 0 {
            let memory = keyspace.database_memory(database);
            let _ = writeln!(text, "Hash table 0 stats (main hash table):");
            let _ = writeln!(text, " table bytes: {}", memory.tables);
            let _ = writeln!(text, " entry bytes: {}", memory.entries);
            let _ = writeln!(text, " number of elements: {count}");
        }
    }
    cx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// HTSTATS-KEY: no value has a table yet.
pub(super) fn table_of_key(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    exists(cx)?;
    Err(CommandError::Text(
        "ERR The value stored at the specified key is not represented using an hash table",
    ))
}

/// LISTPACK: no value is one yet.
pub(super) fn listpack(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    exists(cx)?;
    Err(CommandError::Text("ERR Not a listpack encoded object."))
}

/// QUICKLIST: no value is one yet.
pub(super) fn quicklist(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    exists(cx)?;
    Err(CommandError::Text("ERR Not a quicklist encoded object."))
}

fn exists(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.unit.look_alone(&cx.args[2], |_| ()).ok_or(NO_KEY)
}

/// SDSLEN. Neither names nor values have room to grow into; what they take beside each other is the entry's.
pub(super) fn string_length(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let name = &cx.args[2];
    let line = cx.unit.look_alone(name, |entry| {
        let value = entry.string();
        let value = value.filter(|value| !matches!(value, StringRef::Int(_)));
        value.map(|value| {
            let length = value_len(value);
            format!(
                "key_sds_len:{}, key_sds_avail:0, key_zmalloc: {}, val_sds_len:{length}, val_sds_avail:0, val_zmalloc: {length}",
                name.len(),
                name.len(),
            )
        })
    });
    let line = line
        .ok_or(NO_KEY)?
        .ok_or(CommandError::Text("ERR Not an sds encoded string."))?;
    cx.reply.simple(&line);
    Ok(())
}

/// STRUCTSIZE.
pub(super) fn structure_sizes(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let text = format!(
        "bits:{} client:{} effect:{} ",
        usize::BITS,
        size_of::<crate::client::Client>(),
        size_of::<crate::journal::Effect>(),
    );
    cx.reply.bulk(text.as_bytes());
    Ok(())
}

/// CLIENT-EVICTION: nothing is evicted by the memory of clients yet, whatever the limit.
pub(super) fn client_eviction(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let limit = cx.worker.settings().integer(ParameterId::MaxmemoryClients);
    Err(CommandError::Text(if limit == 0 {
        "ERR maxmemory-clients is disabled."
    } else {
        "ERR maxmemory-clients has no effect yet"
    }))
}
