//! From a parsed request to its reply: admit, latch, execute, propagate.
//!
//! Dispatch is the only place in the engine that takes latches. A unit is what is atomic: one command here. What a
//! handler did is buffered in its unit and leaves it only when the unit commits, latches still held.

mod admit;
mod context;
mod exec;
mod expiry;
mod run;
mod serve;
mod unit;
mod walk;

pub use context::{Budget, Context, Key, Progress, Steps};
pub use unit::{Change, Edited, EventClass, Unit};

pub(crate) use expiry::{ExpiryCursor, expire_cycle, next_due_ms};
pub(crate) use run::{Batch, Planned, run};
pub(crate) use serve::leave_queues;
pub(crate) use unit::{UnitLog, forget};
