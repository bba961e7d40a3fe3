//! The server: threads, sockets, files and signals around the engine.
//!
//! `start` is the way from the command line to a running server. A request's way is `acceptor` (who hands the connection
//! over), `worker` (who owns it and feeds the engine's session), and back through the driver. What the engine asks of the
//! outside is in `host`.
#![deny(unsafe_code)]
// A program has no outside: `pub` is for its other modules.
#![allow(unreachable_pub)]

mod acceptor;
mod admission;
mod advice;
mod allocator;
mod appearance;
mod banner;
mod chance;
mod check_system;
mod clock;
mod configuration;
mod controller;
mod crash;
mod crew;
mod descriptor_limit;
mod fault;
mod files;
mod host;
mod housekeeping;
mod io_driver;
mod listeners;
mod load;
mod log;
mod messages;
mod reaper;
mod restart;
mod service;
mod sessions;
mod shared;
mod signals;
mod start;
mod syslog;
mod turns;
mod worker;

fn main() -> std::process::ExitCode {
    start::run(std::env::args_os().collect())
}
