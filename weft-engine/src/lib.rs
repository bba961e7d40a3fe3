//! Weft's engine: sessions, dispatch, commands, configuration and journal. Bytes in, bytes and actions out.
//!
//! It does no I/O, starts no thread and reads no clock: time comes in as an argument, files are a trait, and everything
//! else it wants done goes out as an action.
#![forbid(unsafe_code)]

pub mod access;
pub mod action;
mod blocking;
pub mod client;
pub mod clients;
pub mod clock;
pub mod command;
pub mod command_statistics;
pub mod commands;
pub mod config;
pub mod digest;
pub mod dispatch;
pub mod engine;
pub mod error;
pub mod histogram;
pub mod identity;
pub mod journal;
pub mod latency;
pub mod memory;
pub mod output_watch;
mod recent;
pub mod session;
pub mod slow_log;
pub mod statistics;
pub mod step_times;
mod transaction;
