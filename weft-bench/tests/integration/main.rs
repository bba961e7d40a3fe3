//! The program as its users meet it, against a scripted server and beside the tools whose place it takes.
// A test program has no outside: `pub` is for its other modules.
#![allow(unreachable_pub)]

mod memtier;
mod memtier_cluster;
mod memtier_files;
mod native;
mod native_server;
mod program;
mod proof;
mod redis_benchmark;
mod replay;
mod scripted;
mod shape;
mod stall;
mod stand_in;
mod sweep;
mod tls;
