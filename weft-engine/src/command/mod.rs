//! What a command is: its row.
//!
//! A row is the single source for dispatch, latching, ACL categories, COMMAND and COMMAND DOCS, key extraction and the
//! random command generator. Rows stand beside their handlers in `commands/<family>.rs`; this folder owns the types
//! and everything derived from them, and knows no command by name.

mod args;
mod flags;
mod keys;
mod row;
mod table;

pub use args::{Argument, ArgumentKind};
pub use flags::{Categories, Flags, KeyFlags};
pub use keys::{Begin, Find, FoundKeys, KeyArgument, KeySpec, KeysError};
pub use row::{CommandRow, Deprecation, Handler, REDACTED, Secrets};
pub use table::{CommandIndex, CommandTable, Numbered};
