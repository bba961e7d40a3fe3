//! The commands, one family a file: its rows and its handlers.

mod expire;
mod options;
mod strings;
mod values;

use crate::command::CommandRow;

/// All families' rows.
pub const FAMILIES: &[&[CommandRow]] = &[strings::ROWS, expire::ROWS];
