//! The server as its users meet it: the real program, real sockets, real signals.
// A test program has no outside: `pub` is for its other modules.
#![allow(unreachable_pub)]

mod advice;
mod blocking;
mod clients;
mod clients_across;
mod debug;
mod harness;
mod idle;
mod parameters;
mod process;
mod published;
mod shutdown;
mod slow_readers;
mod start;
mod statistics;
mod threads;
mod workers;
