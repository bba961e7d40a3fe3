//! Counted, chunked byte strings.
//!
//! Owns the three shapes in which bulk bytes travel without being copied: [`Chunk`] (counted bytes, at most
//! [`CHUNK_BYTES`]), [`Rope`] (a string of chunks, cheap to clone, copied on write chunk by chunk) and [`Output`]
//! (what a session is going to send). Knows nothing of the wire protocol, of keys or of sockets.
//!
//! Invariants: a shared chunk is never written in place; every chunk of a rope but the last holds exactly
//! [`CHUNK_BYTES`], so a position is found by division.

#![forbid(unsafe_code)]

mod chunk;
mod output;
mod rope;

pub use chunk::{CHUNK_BYTES, Chunk};
pub use output::{Mark, Output};
pub use rope::{Rope, Slices};
