//! Traffic of others: recorded from MONITOR, and played back.
//!
//! `monitor` reads the lines of MONITOR, `format` is the file, `record` makes one and `replay` plays it.

mod format;
mod monitor;
pub mod record;
pub mod replay;
