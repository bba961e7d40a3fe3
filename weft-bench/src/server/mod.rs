//! A server of our own: started from a command line, watched while it works, gone when we are.
//!
//! Owns the process, its port and folder, and what the kernel and the server itself tell about the work done. Knows no
//! workload and no report. Invariants: no server outlives this program, however it ends (the kernel kills it with us);
//! only processes that were started here are ended, by their id.

mod command_line;
mod filling;
mod info;
mod launcher;
mod process;
mod usage;

pub use command_line::{CommandLine, split_words};
pub use filling::fill;
pub use info::{Facts, STEPS};
pub use launcher::{LAUNCHER, launch};
pub use process::{Launch, Process};
pub use usage::{Machine, Spent, ThreadSpent};
