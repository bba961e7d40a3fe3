//! The commands, one family a file: its rows and its handlers.

mod bitfield;
mod bitmaps;
mod client;
mod config;
mod connection;
mod copying;
mod counters;
mod database;
mod debug;
mod expire;
mod geo;
mod hashes;
mod hyperloglog;
mod info;
mod introspection;
mod keys;
mod latency;
mod lcs;
mod lists;
mod lolwut;
mod memory;
mod monitor;
mod object;
mod options;
mod ranges;
mod replicas;
mod scan;
mod server;
mod sets;
mod slowlog;
mod sort;
mod sorted_sets;
mod streams;
mod strings;
mod timeouts;
mod transactions;
mod values;

use weft_resp::Writer;

use crate::command::CommandRow;

/// All families' rows.
pub const FAMILIES: &[&[CommandRow]] = &[
    strings::ROWS,
    counters::ROWS,
    ranges::ROWS,
    lcs::ROWS,
    hashes::FIELDS,
    hashes::NUMBERS,
    hashes::WHOLE,
    hashes::RANDOM,
    hashes::DEADLINES,
    hashes::TIMED,
    bitmaps::ROWS,
    bitfield::ROWS,
    hyperloglog::ROWS,
    sets::MEMBERS,
    sets::RANDOM,
    sets::ALGEBRA,
    sorted_sets::MEMBERS,
    sorted_sets::RANGES,
    sorted_sets::POPS,
    sorted_sets::BLOCKING,
    sorted_sets::RANDOM,
    sorted_sets::ALGEBRA,
    sorted_sets::SCAN,
    geo::MEMBERS,
    geo::SEARCH,
    lists::ENDS,
    lists::BLOCKING,
    lists::POSITIONS,
    lists::FIND,
    sort::ROWS,
    streams::ENTRIES,
    streams::RANGES,
    streams::READING,
    streams::GROUPS,
    streams::PENDING,
    streams::CLAIMS,
    streams::ACKNOWLEDGE,
    streams::INFORMATION,
    keys::ROWS,
    copying::ROWS,
    object::ROWS,
    memory::ROWS,
    expire::ROWS,
    scan::ROWS,
    database::ROWS,
    connection::ROWS,
    transactions::ROWS,
    client::ROWS,
    replicas::ROWS,
    monitor::ROWS,
    server::ROWS,
    debug::ROWS,
    lolwut::ROWS,
    info::ROWS,
    slowlog::ROWS,
    latency::ROWS,
    config::ROWS,
    introspection::ROWS,
];

/// A container's HELP: one line a string.
fn reply_help(reply: &mut Writer<'_>, lines: &[&str]) {
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.simple(line));
}
