//! Sessions, dispatch, commands, configuration and journal: bytes in, bytes and actions out.

pub mod config;
