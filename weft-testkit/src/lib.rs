//! The test kit: oracles, doors, cases and random differential runs.
//!
//! Order of reading: `oracle` and `server` bring the processes, `door` and its kinds lead to one, `wire` and `literal` are replies
//! as bytes and as text. `case_file` and `case_run` play written cases through every door; `command_table`,
//! `generator`, `rules`, `comparison`, `state` and `differential` make and judge random runs; `command_docs` compares
//! what the servers say about their commands, `clients` runs other people's clients, `exporter` Debian's exporter for Prometheus,
//! `throughput` measures beside the reference, `threads` one setting beside another, `fairness` what one client does to the
//! others, `storm` what is left of many connections; `interval` says how sure a ratio is. It knows no internals of the product: it judges bytes.

#![forbid(unsafe_code)]

pub mod case_file;
pub mod case_run;
pub mod clients;
pub mod command_docs;
pub mod command_table;
pub mod comparison;
pub mod delivery;
pub mod deviations;
pub mod differential;
pub mod door;
pub mod engine_door;
pub mod error;
pub mod exporter;
pub mod fairness;
pub mod finding;
pub mod folder;
pub mod generator;
pub mod history;
pub mod interval;
pub mod literal;
pub mod oracle;
pub mod quoting;
pub mod raw_differential;
pub mod record;
pub mod reduction;
pub mod rules;
pub mod server;
pub mod socket_door;
pub mod state;
pub mod storm;
pub mod threads;
pub mod throughput;
pub mod transaction;
pub mod wire;
