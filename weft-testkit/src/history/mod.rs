//! Concurrent histories: recorded from many connections at once, and judged for linearizability.
//!
//! Order of reading: `record` is what was seen, `model` what one command after the other may do, `check` divides a history
//! and `search` looks for an order in which it could have happened; `shrink` reduces one that has none. `load` makes the
//! operations, `episode` plays and records them, `run` is a whole run against a server.
//!
//! No published checker for Rust fits: none knows answers that never came, pipelines (one connection's operations
//! overlap in time and are ordered all the same) or keys that vanish by themselves.

pub mod check;
pub mod episode;
pub mod load;
pub mod model;
pub mod record;
pub mod run;
pub mod search;
pub mod shrink;

#[cfg(test)]
mod tests;
